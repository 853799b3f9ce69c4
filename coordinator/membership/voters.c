/* SPDX-License-Identifier: Apache-2.0 */
/* Who votes: raft's configuration names each voter's node beside its address.
 *
 * SUBTLE: an address is no proof of identity.
 *  1. Voter n1 is at 10.0.0.1:7701. A node that does not vote comes up under its own name with that address.
 *  2. If a voter were found by its address in the tables, the node would count as the voter now: it could have other
 *     nodes declared crashed, and send raft entries.
 * So the name that a peer proved in its handshake is compared with the name in the configuration. Every voter has the
 * configuration, and has it durably before anything is committed. An address only says where to connect. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    const char *space = strchr(text, ' ');
    size_t bytes = space ? (size_t)(space - text) : strlen(text);
    memset(out, 0, sizeof *out);
    if (bytes > LEAT_ADDRESS_BYTES_MAX) return; /* no node has such an address */
    memcpy(out->address, text, bytes);
    if (space && strlen(space + 1) <= LEAT_NODE_NAME_BYTES_MAX)
        memcpy(out->name, space + 1, strlen(space + 1));
}

void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name)
{
    snprintf(out, CO_VOTER_BYTES_MAX + 1, "%.127s %.255s", address, name);
}

/* ---- peers that this node has reached at a voter's address ---- */

const struct co_peer *co_peer_reached(const struct leat_coordinator *coordinator,
                                      const char *address)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->wanted && leat_link_is_up(peer->link) && peer->state.known &&
            strcmp(leat_link_address(peer->link), address) == 0)
            return peer;
    }
    return NULL;
}

static bool is_listed(const struct leat_coordinator *coordinator, const char *address)
{
    for (uint32_t i = 0; i < coordinator->options.voter_count; i++)
        if (strcmp(coordinator->options.voters[i], address) == 0) return true;
    return false;
}

/* If a voter's name is known, its address proves nothing: another node may have the address while the voter is down. */
static bool address_tells(const struct leat_coordinator *coordinator, const char *address)
{
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    const struct leat_machine *machine = &coordinator->machine;
    struct leat_machine_voter voter;
    for (unsigned i = 0; coordinator->votes && i < configuration->n; i++) {
        co_voter_read(configuration->servers[i].address, &voter);
        if (strcmp(voter.address, address) == 0) return !voter.name[0];
    }
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (strcmp(machine->voters[i].address, address) == 0) return !machine->voters[i].name[0];
    return is_listed(coordinator, address);
}

/* Was the node of this name reached at an address that is a voter's, by the operator's list or by a configuration that
 * does not name the voter? */
static bool name_was_reached(const struct leat_coordinator *coordinator, const char *name)
{
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->wanted && leat_link_is_up(peer->link) &&
            strcmp(leat_link_peer(peer->link)->node, name) == 0 &&
            address_tells(coordinator, leat_link_address(peer->link)))
            return true;
    }
    return false;
}

/* ---- raft's servers ---- */

const struct raft_server *co_server_of_id(const struct leat_coordinator *coordinator, uint64_t id)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++)
        if (configuration->servers[i].id == id) return &configuration->servers[i];
    return NULL;
}

/* A configuration of an earlier version has no names, until the leader has added them: until then the voter is the
 * node that was reached at its address from here. */
bool co_server_is(const struct leat_coordinator *coordinator, const struct raft_server *server,
                  const char *name)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine_voter voter;
    co_voter_read(server->address, &voter);
    if (voter.name[0]) return strcmp(voter.name, name) == 0;
    const struct co_peer *peer = co_peer_reached(coordinator, voter.address);
    return peer && strcmp(leat_link_peer(peer->link)->node, name) == 0;
}

const struct raft_server *co_server_of_node(const struct leat_coordinator *coordinator,
                                            const char *name)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++)
        if (co_server_is(coordinator, &configuration->servers[i], name))
            return &configuration->servers[i];
    return NULL;
}

/* ---- does that peer vote? ---- */

static bool voter_is_committed(const struct leat_machine *machine, const char *name)
{
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (strcmp(machine->voters[i].name, name) == 0) return true;
    return false;
}

static bool was_introduced(const struct leat_coordinator *coordinator, const char *name)
{
    for (uint32_t i = 0; i < CO_INTRODUCED_MAX; i++)
        if (strcmp(coordinator->introduced[i], name) == 0) return true;
    return false;
}

/* SUBTLE: raft takes messages of voters that this one's configuration lacks.
 *  1. This voter is down while nodes become voters, or voters are replaced in turn. When it is back, it knows none of
 *     the new voters.
 *  2. Its vote is needed for a majority, and the leader or candidate has an id that this voter never heard of.
 * So such an id counts while this voter follows no leader, or follows that node: otherwise any node with an invented
 * id could depose a leader that is heard. The node must also fulfil a second condition: it votes here under another
 * id (a replaced voter keeps its name), was reached at a voter's address of the operator's list, or is in the
 * configuration of a voter. Otherwise any node with an invented id could lead a voter that has just started. */
static bool newcomer_counts(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    const char *name = leat_link_peer(peer->link)->node, *address = NULL;
    raft_id leader = 0;
    raft_leader((struct raft *)(uintptr_t)&coordinator->drive.raft, &leader, &address);
    if (leader != 0 && leader != peer->state.voter_id) return false;
    return co_server_of_node(coordinator, name) || name_was_reached(coordinator, name) ||
           was_introduced(coordinator, name);
}

/* By this node's own connections, tables and configuration, not by the word of another node. */
static bool votes_by_itself(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    const char *name = leat_link_peer(peer->link)->node;
    if (!coordinator->votes || coordinator->drive.raft.configuration.n == 0)
        return name_was_reached(coordinator, name) ||
               voter_is_committed(&coordinator->machine, name);
    const struct raft_server *server = co_server_of_id(coordinator, peer->state.voter_id);
    return server && co_server_is(coordinator, server, name);
}

bool co_peer_votes(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!peer->link || !leat_link_is_up(peer->link) || !peer->state.known) return false;
    if (votes_by_itself(coordinator, peer)) return true;
    if (!coordinator->votes || coordinator->drive.raft.configuration.n == 0)
        return was_introduced(coordinator, leat_link_peer(peer->link)->node);
    return !co_server_of_id(coordinator, peer->state.voter_id) &&
           newcomer_counts(coordinator, peer);
}

/* ---- introductions: further voters, named by a voter ---- */

uint64_t co_configuration_index(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft *raft = &coordinator->drive.raft;
    if (!coordinator->votes) return 0;
    return raft->configuration_uncommitted_index ? raft->configuration_uncommitted_index
                                                 : raft->configuration_committed_index;
}

uint32_t co_introductions(const struct leat_coordinator *coordinator,
                          struct leat_machine_voter out_voters[LEAT_VOTERS_MAX])
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    uint32_t count = 0;
    for (unsigned i = 0; coordinator->votes && i < configuration->n && count < LEAT_VOTERS_MAX;
         i++) {
        co_voter_read(configuration->servers[i].address, &out_voters[count]);
        count += configuration->servers[i].role == RAFT_VOTER && out_voters[count].name[0] != 0;
    }
    return count;
}

/* SUBTLE: the configuration of one voter counts for another voter with an older configuration.
 *  1. n0, n1 and n2 vote; n2 is down while n3 becomes a voter. n0 leads, has an entry on n3 only, and dies.
 *  2. n2 comes back. n1 gets no vote of n3, whose log is longer; n3 gets no vote of n2, which does not know n3. Three
 *     of four voters are there, and none leads as long as n0 is down.
 * So n2 believes n1, which is in n2's own configuration; n2 does not believe a voter that was only introduced. Voters
 * keep their names, so an introduction stays right. */
void co_introductions_take(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           uint32_t count, struct leat_msg_reader *names)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!co_same_cluster(coordinator, peer) || !votes_by_itself(coordinator, peer)) return;
    for (uint32_t i = 0; i < count && i < LEAT_VOTERS_MAX; i++) {
        struct leat_msg_string said = leat_msg_read_string(names);
        char name[LEAT_NODE_NAME_BYTES_MAX + 1] = "";
        if (names->failed || said.bytes == 0 || said.bytes >= sizeof name) return;
        memcpy(name, said.text, said.bytes);
        if (was_introduced(coordinator, name)) continue;
        memcpy(coordinator->introduced[coordinator->introduced_next], name, sizeof name);
        coordinator->introduced_next = (coordinator->introduced_next + 1) % CO_INTRODUCED_MAX;
    }
}

/* ---- what is committed ---- */

void co_voters_applied(struct leat_coordinator *coordinator,
                       const struct raft_configuration *configuration)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine *machine = &coordinator->machine;
    memset(machine->voters, 0, sizeof machine->voters);
    machine->voter_count = 0;
    for (unsigned i = 0; i < configuration->n && i < LEAT_VOTERS_MAX; i++) {
        struct leat_machine_voter *voter = &machine->voters[machine->voter_count++];
        co_voter_read(configuration->servers[i].address, voter);
    }
}

/* SUBTLE: the configuration is corrected where it lacks the name of a voter, or has an old address of a voter. (1) A
 * voter comes back at another address; it counts, by its name. (2) Nodes that start later know only the address in
 * the configuration, where no node listens. A name is written only for a node that was reached from here at this
 * address and is up there by the tables: the tables alone prove nothing, since any node could have said so. */
bool co_voter_correct(const struct leat_coordinator *coordinator, const struct raft_server *server,
                      char out[CO_VOTER_BYTES_MAX + 1])
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine *machine = (struct leat_machine *)(uintptr_t)&coordinator->machine;
    struct leat_machine_voter voter;
    co_voter_read(server->address, &voter);
    const struct co_peer *peer = co_peer_reached(coordinator, voter.address);
    bool own = server->id == coordinator->voter_id;
    const char *name = voter.name[0] ? voter.name
                       : own         ? co_own_name(coordinator)
                       : peer        ? leat_link_peer(peer->link)->node
                                     : NULL;
    const struct leat_machine_node *node =
        name ? leat_machine_node_find(machine, name, strlen(name)) : NULL;
    if (!node || node->info.state != LEAT_NODE_UP || node->info.crashed) return false;
    const char *address = node->info.node_address;
    if (!strchr(address, ':')) return false;
    if (voter.name[0] ? strcmp(address, voter.address) == 0
                      : !own && strcmp(address, voter.address) != 0)
        return false;
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (strcmp(machine->voters[i].address, address) == 0 &&
            strcmp(machine->voters[i].address, voter.address) != 0)
            return false; /* another voter's address, until that voter is known to be elsewhere */
    co_voter_write(out, address, name);
    return true;
}
