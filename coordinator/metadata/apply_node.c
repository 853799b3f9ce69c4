/* SPDX-License-Identifier: Apache-2.0 */
/* Entries about nodes. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"

/* The directory has come up under another name since: matches no mark, which are drawn at random. */
#define BOOT_ELSEWHERE UINT64_MAX

static void node_told(struct leat_machine *machine, const struct leat_machine_node *node)
{
    if (machine->on_node) machine->on_node(machine->owner, &node->info);
}

static bool node_takes_more(const struct leat_machine_node *node)
{
    return node->info.state == LEAT_NODE_UP && !node->info.draining;
}

bool leat_machine_node_has_room(const struct leat_machine_node *node, uint64_t logs)
{
    return node->info.logs_most == 0 || node->logs + logs <= node->info.logs_most;
}

/* SUBTLE: the fewest streamlets alone must not decide. (1) A node with room for one log comes up, or a lying node.
 * (2) This node has the fewest streamlets, so all new streamlets go there. (3) Their logs wait there for memory. */
struct leat_machine_node *leat_machine_owner_choose(struct leat_machine *machine, uint32_t logs)
{
    struct leat_machine_node *best = NULL;
    bool best_room = false;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        struct leat_machine_node *node = &machine->nodes[i];
        if (!node_takes_more(node)) continue;
        bool room = leat_machine_node_has_room(node, logs);
        bool fewer = best && node->info.streamlets < best->info.streamlets;
        if (best && (room == best_room ? !fewer : !room)) continue;
        best = node;
        best_room = room;
    }
    return best;
}

void leat_machine_owner_count(struct leat_machine_node *node, uint32_t logs, bool more)
{
    node->info.streamlets += more ? 1 : -1;
    node->logs += more ? logs : -(uint64_t)logs;
}

void leat_machine_owner_changed(struct leat_machine *machine, uint16_t owner)
{
    if (owner == LEAT_OWNER_NONE)
        machine->unowned_changes++;
    else
        machine->nodes[owner].changes++;
}

/* Both only grow, so their sum is the same only when both are. */
uint64_t leat_machine_seen(const struct leat_machine *machine, const struct leat_machine_node *node)
{
    return machine->unowned_changes + node->changes;
}

uint32_t leat_machine_nodes_up(const struct leat_machine *machine)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (node_takes_more(&machine->nodes[i])) count++;
    return count;
}

/* The numbers of logs that nodes announced memory for, of nodes that are up: the sum, the greatest, and the node with
 * the least. silent: nodes without an announcement. */
struct room {
    const struct leat_machine_node *least;
    uint64_t all, most, up, silent;
};

static void room_add(struct room *room, uint64_t logs)
{
    if (logs > LEAT_CLUSTER_LOGS_MAX) logs = LEAT_CLUSTER_LOGS_MAX;
    room->all += logs;
    if (logs > room->most) room->most = logs;
}

/* SUBTLE: not the least number times the number of nodes: (1) a node with little memory, or a hostile node with the
 * key, announces room for one log; (2) no stream can be made until this node is drained. And not the greatest number:
 * (1) a node announces room for all possible logs; (2) streams are made until the other nodes have no memory; (3) the
 * node goes. */
bool leat_machine_has_room(const struct leat_machine *machine, uint64_t more,
                           struct leat_machine_result *result)
{
    struct room room = {0};
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_machine_node *node = &machine->nodes[i];
        if (node->info.state != LEAT_NODE_UP) continue;
        room.up++;
        room.silent += node->info.logs_most == 0;
        if (node->info.logs_most != 0) room_add(&room, node->info.logs_most);
        if (node->info.logs_most == 0 || !node_takes_more(node)) continue;
        if (!room.least || node->info.logs_most < room.least->info.logs_most) room.least = node;
    }
    if (!room.least) return true;
    for (uint64_t i = 0; i < room.silent; i++)
        room_add(&room, room.least->info.logs_most);
    /* A node may die, and the other nodes get its logs. */
    uint64_t left = room.up > 1 ? room.all - room.most : room.all;
    if (machine->log_count + more <= left) return true;
    result->rc = leat_error_set(
        &result->error, LEAT_E_TOO_MANY,
        "the cluster has %" PRIu64 " logs; with %" PRIu64
        " more it would have more than the %" PRIu64
        " that its nodes have memory for, %s(node '%.100s' has the least: %" PRIu64 ")",
        machine->log_count, more, left, room.up > 1 ? "with one of them down " : "",
        room.least->info.name, room.least->info.logs_most);
    return false;
}

/* Its machine, or its address up to the port. */
static const char *host_of(const struct leat_node_info *info, size_t *out_bytes)
{
    const char *text = info->host[0]           ? info->host
                       : info->node_address[0] ? info->node_address
                                               : info->address;
    const char *colon = info->host[0] ? NULL : strrchr(text, ':');
    *out_bytes = colon ? (size_t)(colon - text) : strlen(text);
    return text;
}

static bool same_host(const struct leat_machine_node *a, const struct leat_machine_node *b)
{
    size_t left_bytes, right_bytes;
    const char *left = host_of(&a->info, &left_bytes);
    const char *right = host_of(&b->info, &right_bytes);
    return left_bytes == right_bytes && memcmp(left, right, left_bytes) == 0;
}

uint32_t leat_machine_hosts_up(const struct leat_machine *machine)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        if (!node_takes_more(&machine->nodes[i])) continue;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = node_takes_more(&machine->nodes[j]) &&
                   same_host(&machine->nodes[i], &machine->nodes[j]);
        if (!seen) count++;
    }
    return count;
}

bool leat_machine_adoptable(const struct leat_machine *machine,
                            const struct leat_machine_stream *stream, uint32_t streamlet,
                            const struct leat_machine_node *node)
{
    return stream->owners[streamlet] == LEAT_OWNER_NONE ||
           stream->owners[streamlet] == leat_machine_node_index(machine, node);
}

struct leat_machine_node *leat_machine_incarnation_find(struct leat_machine *machine,
                                                        uint64_t incarnation)
{
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].info.incarnation == incarnation) return &machine->nodes[i];
    return NULL;
}

bool leat_machine_incarnation_lives(struct leat_machine *machine, uint64_t incarnation)
{
    const struct leat_machine_node *node = leat_machine_incarnation_find(machine, incarnation);
    return node && !node->info.crashed;
}

/* ---- up ---- */

static bool node_up_allowed(const struct leat_entry_node_up *up, struct leat_machine_result *result)
{
    if (up->name.bytes == 0 || up->name.bytes > LEAT_NODE_NAME_BYTES_MAX ||
        up->address.bytes > LEAT_ADDRESS_BYTES_MAX ||
        up->node_address.bytes > LEAT_ADDRESS_BYTES_MAX ||
        up->kafka_address.bytes > LEAT_ADDRESS_BYTES_MAX ||
        !leat_node_log_is_text(up->name.text, up->name.bytes) ||
        !leat_node_log_is_text(up->address.text, up->address.bytes) ||
        !leat_node_log_is_text(up->node_address.text, up->node_address.bytes) ||
        (up->node_address.bytes && memchr(up->node_address.text, ' ', up->node_address.bytes)))
        result->rc = leat_error_set(&result->error, LEAT_E_BAD_NAME,
                                    "a node needs a name of 1 to %d bytes and an address of at "
                                    "most %d, without control characters",
                                    LEAT_NODE_NAME_BYTES_MAX, LEAT_ADDRESS_BYTES_MAX);
    else if (up->rack.bytes > LEAT_RACK_BYTES_MAX || up->host.bytes > LEAT_RACK_BYTES_MAX)
        result->rc =
            leat_error_set(&result->error, LEAT_E_BAD_NAME,
                           "the name of a rack or host has at most %d bytes", LEAT_RACK_BYTES_MAX);
    else if (up->id.bytes != 0 && up->id.bytes != 16)
        result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "a node's id has 16 bytes");
    return result->rc == LEAT_OK;
}

static void text_put(char *out, size_t capacity, struct leat_msg_string text)
{
    memset(out, 0, capacity); /* whole: snapshots of equal tables are equal */
    LEAT_ASSERT_CMP(text.bytes, <, capacity);
    if (text.bytes) memcpy(out, text.text, text.bytes);
}

/* Two machines under one name would serve the same streamlets. A restart is told from that by the
 * id of the data directory, which one process at a time can hold. */
static bool name_is_taken(const struct leat_machine_node *node, const struct leat_entry_node_up *up)
{
    static const uint8_t none[16];
    return node->info.state == LEAT_NODE_UP && up->id.bytes == 16 &&
           memcmp(up->id.data, none, sizeof none) != 0 &&
           memcmp(node->id, none, sizeof none) != 0 &&
           memcmp(node->id, up->id.data, sizeof none) != 0;
}

/* SUBTLE: a data directory that was put back to an older state holds less than it has promised.
 *  1. A node has replicas of all acked records, under the newest generation, and reports these to recovery.
 *  2. Its directory is replaced by a copy made an hour ago, with the same generation of the last segment.
 *  3. The other replicas are lost, or their nodes are down: this node would decide where the log ends.
 * So each start writes a mark into the directory before the node comes up, and notes afterwards that the node was up.
 * A directory of a node that was up is an older state if it lacks both the mark of the last start that came up here
 * and the mark of a start in progress then. The node's name does not matter: the directory may have a new name.
 *
 * Returns the node whose last start it was; NULL: none. */
static struct leat_machine_node *node_of_directory(struct leat_machine *machine,
                                                   const struct leat_entry_node_up *up)
{
    for (uint32_t i = 0; up->boot_before != 0 && i < machine->node_count; i++) {
        uint64_t boot = machine->nodes[i].boot;
        if (boot != 0 && (boot == up->boot_before || boot == up->boot)) return &machine->nodes[i];
    }
    return NULL;
}

/* `bearer` is the node that came up last from this directory, or from the directory's original. */
static bool directory_allowed(const struct leat_machine_node *node,
                              const struct leat_machine_node *bearer,
                              const struct leat_entry_node_up *up,
                              struct leat_machine_result *result)
{
    if (bearer && bearer != node && bearer->info.state == LEAT_NODE_UP)
        result->rc = leat_error_set(&result->error, LEAT_E_EXISTS,
                                    "its data directory is node '%.100s''s, or a copy of it, and "
                                    "that node is up at %s: start with an empty directory",
                                    bearer->info.name, bearer->info.node_address);
    else if (up->boot_before != 0 && !bearer && !(node && node->boot == 0))
        result->rc = leat_error_set(
            &result->error, LEAT_E_DAMAGED,
            "its data directory is an older state of itself: %s%.100s%s "
            "was up with a newer one. Restore the newest state, or start "
            "with an empty directory (a voter also needs leat node replace)",
            node ? "node '" : "", node ? node->info.name : "another node", node ? "'" : "");
    return result->rc == LEAT_OK;
}

static bool votes(const struct leat_machine *machine, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (leat_machine_text_equal(machine->voters[i].name, name, bytes)) return true;
    return false;
}

/* SUBTLE: a node with the address of another node keeps the other node out when it comes back, and gets its messages.
 * The address of a node that is down may belong to another machine by now, as with leased addresses (DHCP). But a
 * node that does not vote never gets the address of a voter: nodes that start know only this address. Voters may swap
 * addresses. */
static bool address_allowed(struct leat_machine *machine, const struct leat_entry_node_up *up,
                            struct leat_machine_result *result)
{
    const char *whose = NULL, *how = "is up";
    if (up->node_address.bytes == 0) return true;
    for (uint32_t i = 0; i < machine->node_count && !whose; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (info->state == LEAT_NODE_UP &&
            leat_machine_text_equal(info->node_address, up->node_address.text,
                                    up->node_address.bytes) &&
            !leat_machine_text_equal(info->name, up->name.text, up->name.bytes))
            whose = info->name;
    }
    bool newcomer = !votes(machine, up->name.text, up->name.bytes);
    for (uint32_t i = 0; i < machine->voter_count && !whose && newcomer; i++) {
        const struct leat_machine_voter *voter = &machine->voters[i];
        if (!voter->name[0] ||
            !leat_machine_text_equal(voter->address, up->node_address.text, up->node_address.bytes))
            continue;
        whose = voter->name;
        how = "votes";
    }
    if (whose)
        result->rc = leat_error_set(&result->error, LEAT_E_EXISTS,
                                    "node '%.100s' %s at %.*s: choose another address for nodes "
                                    "(--node-listen)",
                                    whose, how, (int)up->node_address.bytes, up->node_address.text);
    return !whose;
}

leat_err leat_machine_apply_node_up(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_entry_node_up up;
    (void)leat_entry_node_up_read(reader, &up);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    if (!node_up_allowed(&up, result)) return LEAT_OK;
    struct leat_machine_node *node = leat_machine_node_find(machine, up.name.text, up.name.bytes);
    if (node && name_is_taken(node, &up)) {
        result->rc = leat_error_set(&result->error, LEAT_E_EXISTS,
                                    "a node named '%.100s' is up at %s: choose another name",
                                    node->info.name, node->info.node_address);
        return LEAT_OK;
    }
    struct leat_machine_node *bearer = node_of_directory(machine, &up);
    if (!directory_allowed(node, bearer, &up, result)) return LEAT_OK;
    if (!address_allowed(machine, &up, result)) return LEAT_OK;
    if (!node) {
        if (machine->node_count == LEAT_NODES_MAX) {
            result->rc =
                leat_error_set(&result->error, LEAT_E_TOO_MANY,
                               "the cluster has %d nodes, as many as it may", LEAT_NODES_MAX);
            return LEAT_OK;
        }
        node = &machine->nodes[machine->node_count++];
        text_put(node->info.name, sizeof node->info.name, up.name);
    }
    text_put(node->info.address, sizeof node->info.address, up.address);
    text_put(node->info.node_address, sizeof node->info.node_address, up.node_address);
    text_put(node->info.kafka_address, sizeof node->info.kafka_address, up.kafka_address);
    text_put(node->info.rack, sizeof node->info.rack, up.rack);
    text_put(node->info.host, sizeof node->info.host, up.host);
    memset(node->id, 0, sizeof node->id);
    if (up.id.bytes) memcpy(node->id, up.id.data, sizeof node->id);
    /* It has another name from here on: what comes under the old one with the same mark is a copy. */
    if (bearer && bearer != node) bearer->boot = BOOT_ELSEWHERE;
    node->boot = up.boot;
    node->info.cores = up.cores;
    node->info.memory_bytes = up.memory_bytes;
    node->info.logs_most = up.logs_most;
    if (node->info.state == LEAT_NODE_GONE) node->info.draining = false; /* it is wanted again */
    node->info.state = LEAT_NODE_UP;
    node->info.crashed = false;
    /* What the old incarnation owned stays the node's, and is named anew when it is adopted. */
    node->info.incarnation = machine->next_incarnation++;
    machine->changes++;
    machine->node_changes++;
    node->changes++;
    result->incarnation = node->info.incarnation;
    node_told(machine, node);
    return LEAT_OK;
}

/* ---- draining, down ---- */

static struct leat_machine_node *node_named(struct leat_machine *machine,
                                            struct leat_msg_string name,
                                            struct leat_machine_result *result)
{
    struct leat_machine_node *node = leat_machine_node_find(machine, name.text, name.bytes);
    if (!node)
        result->rc = leat_error_set(&result->error, LEAT_E_NOT_FOUND,
                                    "no node '%.*s': leat cluster status names them",
                                    (int)name.bytes, name.text);
    return node;
}

/* NULL: no such node, or another incarnation of it; result says so. */
static struct leat_machine_node *incarnation_named(struct leat_machine *machine,
                                                   struct leat_msg_string name,
                                                   uint64_t incarnation,
                                                   struct leat_machine_result *result)
{
    struct leat_machine_node *node = node_named(machine, name, result);
    if (!node || node->info.incarnation == incarnation) return node;
    result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                "node '%.100s' has come up anew since", node->info.name);
    return NULL;
}

bool leat_machine_drains_last(struct leat_machine *machine, const char *name, size_t bytes)
{
    const struct leat_machine_node *node = leat_machine_node_find(machine, name, bytes);
    if (!node || node->info.draining) return false;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_machine_node *other = &machine->nodes[i];
        if (other != node && other->info.state != LEAT_NODE_GONE && !other->info.draining)
            return false;
    }
    return true;
}

static bool all_drained(const struct leat_machine *machine)
{
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].info.state != LEAT_NODE_GONE && !machine->nodes[i].info.draining)
            return false;
    return true;
}

/* SUBTLE: this function does not check for the last node (co_request_encode() and drain_take_back() do). Voters of
 * versions without this rule applied such a drain; if later versions refused the entry, the voters' tables would
 * differ. */
leat_err leat_machine_apply_node_drain(struct leat_machine *machine, struct leat_msg_reader *reader,
                                       struct leat_machine_result *result)
{
    struct leat_entry_drain drain;
    (void)leat_entry_drain_read(reader, &drain);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    const bool draining = drain.draining;
    struct leat_machine_node *node = node_named(machine, drain.name, result);
    if (!node || node->info.draining == draining) return LEAT_OK;
    node->info.draining = draining;
    if (draining && node->info.state == LEAT_NODE_DOWN && node->info.streamlets == 0)
        node->info.state = LEAT_NODE_GONE;
    result->drained_last = draining && all_drained(machine);
    node_told(machine, node);
    return LEAT_OK;
}

leat_err leat_machine_apply_node_state(struct leat_machine *machine, struct leat_msg_reader *reader,
                                       struct leat_machine_result *result)
{
    struct leat_entry_node_state said;
    (void)leat_entry_node_state_read(reader, &said);
    if (!leat_msg_read_done(reader) || (said.state != LEAT_NODE_UP && said.state != LEAT_NODE_DOWN))
        return leat_machine_malformed(result);
    struct leat_machine_node *node =
        incarnation_named(machine, said.name, said.incarnation, result);
    if (!node) return LEAT_OK;
    if (node->info.crashed) {
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "node '%.100s' was declared crashed, which is for good",
                                    node->info.name);
        return LEAT_OK;
    }
    enum leat_node_state wanted = (enum leat_node_state)said.state;
    if (wanted == LEAT_NODE_DOWN && node->info.draining && node->info.streamlets == 0)
        wanted = LEAT_NODE_GONE;
    if (node->info.state == wanted) return LEAT_OK;
    node->info.state = wanted;
    node_told(machine, node);
    return LEAT_OK;
}

/* ---- crashed ---- */

/* From here on no entry of this incarnation takes effect, and every node fences it. Separate entries recover its
 * streamlets. */
leat_err leat_machine_apply_crash(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    struct leat_entry_crash crash;
    (void)leat_entry_crash_read(reader, &crash);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    struct leat_machine_node *node =
        incarnation_named(machine, crash.name, crash.incarnation, result);
    if (!node) return LEAT_OK;
    if (node->info.crashed || node->info.state == LEAT_NODE_GONE) return LEAT_OK;
    node->info.crashed = true;
    node->info.state =
        node->info.draining && node->info.streamlets == 0 ? LEAT_NODE_GONE : LEAT_NODE_DOWN;
    machine->changes++;
    machine->node_changes++;
    node->changes++; /* an earlier adoption of this node is refused */
    node_told(machine, node);
    return LEAT_OK;
}
