/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as entries. */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "coordinator/membership/adopt.h"
#include "coordinator/membership/requests.h"
#include "coordinator/metadata/assign.h"
#include "wire/row.h"

enum {
    COMMAND_BYTES_MAX = 4096, /* of all kinds but those with logs */
    WRAP_BYTES_MAX = 32,      /* of a REQUEST around a command */
    REF_BYTES_MAX = 16,       /* array of three 32-bit numbers */
};

void co_form_command(struct leat_msg_writer *writer, const uint8_t cluster_id[16])
{
    struct leat_entry_form form;
    memcpy(form.cluster_id, cluster_id, sizeof form.cluster_id);
    leat_entry_form_write(writer, &form);
    LEAT_ASSERT(!writer->overflow);
}

static void refs_write(struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    for (size_t i = 0; i < request->log_count; i++)
        leat_entry_ref_write(writer, &request->logs[i]);
}

static struct leat_msg_string text_of(const char *text)
{
    return (struct leat_msg_string){text, text ? (uint32_t)strlen(text) : 0};
}

enum { INTERNAL_COPIES_MAX = 3 };

/* What the cluster itself keeps (committed offsets) shall outlive a node, and a power cut. */
static void internal_complete(const struct leat_coordinator *coordinator,
                              struct leat_stream_settings *settings)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *info = &coordinator->machine.nodes[i].info;
        if (info->state != LEAT_NODE_GONE && info->node_address[0]) nodes++;
    }
    if (settings->copies == 0)
        settings->copies = nodes < INTERNAL_COPIES_MAX ? nodes : INTERNAL_COPIES_MAX;
    if (settings->durability == LEAT_DURABILITY_DEFAULT)
        settings->durability = LEAT_DURABILITY_DISK;
}

static void create_write(const struct leat_coordinator *coordinator, struct leat_msg_writer *writer,
                         const struct leat_coordinate *request)
{
    /* Defaults of this node go into the entry: voters with other cores must apply the same. What
     * can't be completed is refused, with its sentence, when the entry is applied. */
    struct leat_entry_create create = {text_of(request->name), request->settings};
    struct leat_stream_settings *settings = &create.settings;
    if (strncmp(request->name, "leat.", 5) == 0) internal_complete(coordinator, settings);
    if (settings->durability == LEAT_DURABILITY_DEFAULT && settings->copies >= 3 &&
        leat_machine_hosts_up(&coordinator->machine) >= 3)
        settings->durability = LEAT_DURABILITY_MEMORY; /* no one power cut takes all copies */
    if (leat_stream_settings_complete(settings, coordinator->options.cores, NULL) != LEAT_OK)
        LEAT_MAYBE(true);
    leat_entry_create_write(writer, &create);
}

static void node_up_write(struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    const struct leat_entry_node_up up = {
        .name = text_of(request->node_name),
        .address = text_of(request->address),
        .node_address = text_of(request->node_address),
        .rack = text_of(request->rack),
        .kafka_address = text_of(request->kafka_address),
        .host = text_of(request->host),
        .id = {request->node_id, sizeof request->node_id},
        .memory_bytes = request->memory_bytes,
        .boot = request->boot,
        .boot_before = request->boot_before,
        .logs_most = request->logs_most,
        .cores = request->cores,
    };
    leat_entry_node_up_write(writer, &up);
}

static void opened_write(struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    const struct leat_entry_opened opened = {
        .incarnation = request->incarnation,
        .epoch = request->epoch.v,
        .version = request->version ? request->version : 1,
        .log_count = (uint32_t)request->log_count,
        .began = true,
    };
    leat_entry_opened_write(writer, &opened);
    refs_write(writer, request);
    leat_msg_row_write_behind(writer, leat_entry_opened_row(), &opened,
                              offsetof(struct leat_entry_opened, log_count));
}

/* Logs of one streamlet from i on. */
static uint32_t run_of(const struct leat_coordinate *request, size_t i)
{
    uint32_t count = 1;
    while (i + count < request->log_count &&
           request->logs[i + count].stream == request->logs[i].stream &&
           request->logs[i + count].streamlet == request->logs[i].streamlet)
        count++;
    return count;
}

static void move_write(const struct leat_coordinator *coordinator, struct leat_msg_writer *writer,
                       const struct leat_coordinate *request)
{
    const struct leat_machine_node *to =
        leat_machine_node_find((struct leat_machine *)(uintptr_t)&coordinator->machine,
                               request->target, strlen(request->target));
    struct leat_assign_entry entry = {.reason = LEAT_ASSIGN_MOVE,
                                      .incarnation = request->incarnation};
    for (size_t i = 0; i < request->log_count; i += run_of(request, i))
        entry.streamlets++;
    leat_assign_entry_write(writer, &entry);
    uint32_t left = 0;
    for (size_t i = 0; i < request->log_count; i++, left--) {
        struct leat_assign_row row = {.log = request->logs[i],
                                      .seen_owner = request->incarnation,
                                      .seen_epoch = request->epoch.v,
                                      .owner = to ? to->info.incarnation : 0,
                                      .rows = run_of(request, i),
                                      .seen_log_epoch = request->epoch.v,
                                      .decision = LEAT_RECOVER_TAIL,
                                      .tail = request->tails[i]};
        if (left == 0) leat_assign_streamlet_write(writer, &row);
        if (left == 0) left = row.rows;
        leat_assign_log_write(writer, &row);
    }
}

static void accept_loss_write(struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    const struct leat_tail_record *tail = request->tails;
    struct leat_assign_row row = {.log = request->logs[0],
                                  .seen_owner = request->incarnation,
                                  .owner = request->incarnation,
                                  .rows = 1,
                                  .seen_log_epoch = request->epoch.v,
                                  .decision = LEAT_RECOVER_LEFT,
                                  .tail.segment = request->segment,
                                  .heard = request->stands_in};
    if (tail) row.tail = *tail;
    row.tail.next_offset = request->next_offset;
    leat_assign_entry_write(writer, &(struct leat_assign_entry){.reason = LEAT_ASSIGN_LOSS,
                                                                .incarnation = request->incarnation,
                                                                .streamlets = 1});
    leat_assign_streamlet_write(writer, &row);
    leat_assign_log_write(writer, &row);
}

static void command_write(const struct leat_coordinator *coordinator,
                          struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    switch (request->kind) {
    case LEAT_COORDINATE_STREAM_CREATE:
        create_write(coordinator, writer, request);
        break;
    case LEAT_COORDINATE_STREAM_CHANGE:
        leat_entry_change_write(writer,
                                &(struct leat_entry_change){text_of(request->name), request->change,
                                                            request->settings});
        break;
    case LEAT_COORDINATE_STREAM_DELETE:
        leat_entry_delete_write(writer, &(struct leat_entry_delete){text_of(request->name)});
        break;
    case LEAT_COORDINATE_PRODUCER_IDS:
        leat_entry_producer_ids_write(writer,
                                      &(struct leat_entry_producer_ids){LEAT_PRODUCER_ID_BLOCK});
        break;
    case LEAT_COORDINATE_OPENED:
        opened_write(writer, request);
        break;
    case LEAT_COORDINATE_VERSION:
        leat_entry_version_write(
            writer, &(struct leat_entry_version){request->incarnation, request->epoch.v,
                                                 request->version, (uint32_t)request->log_count});
        refs_write(writer, request);
        break;
    case LEAT_COORDINATE_MOVE:
        move_write(coordinator, writer, request);
        break;
    case LEAT_COORDINATE_NODE_UP:
        node_up_write(writer, request);
        break;
    case LEAT_COORDINATE_NODE_DRAIN:
        leat_entry_drain_write(
            writer, &(struct leat_entry_drain){text_of(request->target),
                                               request->draining && !request->takes_back});
        break;
    case LEAT_COORDINATE_CRASH:
        leat_entry_crash_write(
            writer, &(struct leat_entry_crash){text_of(request->target), request->incarnation});
        break;
    case LEAT_COORDINATE_ACCEPT_LOSS:
        accept_loss_write(writer, request);
        break;
    case LEAT_COORDINATE_ADOPT: /* this request and the next four never come here */
    case LEAT_COORDINATE_ADD_VOTER:
    case LEAT_COORDINATE_NODE_REPLACE:
    case LEAT_COORDINATE_TAILS:
    case LEAT_COORDINATE_RECOVER:
    case LEAT_COORDINATE_BARRIER:
        leat_entry_barrier_write(writer, &(struct leat_entry_barrier){0});
        break;
    }
}

static bool too_long(const char *text, size_t bytes_max)
{
    return text && strlen(text) > bytes_max;
}

/* What can be refused without asking the tables, because an entry could not even hold it. */
const char *co_request_offence(const struct leat_coordinate *request)
{
    bool many = request->log_count > LEAT_OPENED_LOGS_MAX;
    switch (request->kind) {
    case LEAT_COORDINATE_OPENED:
    case LEAT_COORDINATE_VERSION:
        return many ? "too many logs in one request" : NULL;
    case LEAT_COORDINATE_MOVE:
        if (!request->target || too_long(request->target, LEAT_NODE_NAME_BYTES_MAX))
            return "a node's name is missing or too long";
        return many || request->log_count == 0 ? "no logs, or too many, in one request" : NULL;
    case LEAT_COORDINATE_ACCEPT_LOSS:
        return request->log_count != 1 ? "exactly one log is expected" : NULL;
    case LEAT_COORDINATE_NODE_DRAIN:
    case LEAT_COORDINATE_CRASH:
    case LEAT_COORDINATE_ADD_VOTER:
    case LEAT_COORDINATE_NODE_REPLACE:
        if (!request->target || too_long(request->target, LEAT_NODE_NAME_BYTES_MAX))
            return "a node's name is missing or too long";
        return NULL;
    case LEAT_COORDINATE_NODE_UP:
        if (!request->node_name || !request->address ||
            too_long(request->node_name, LEAT_NODE_NAME_BYTES_MAX) ||
            too_long(request->address, LEAT_ADDRESS_BYTES_MAX) ||
            too_long(request->node_address, LEAT_ADDRESS_BYTES_MAX) ||
            too_long(request->kafka_address, LEAT_ADDRESS_BYTES_MAX))
            return "a node's name or address is missing or too long";
        return too_long(request->rack, LEAT_RACK_BYTES_MAX)   ? "a rack's name is too long"
               : too_long(request->host, LEAT_RACK_BYTES_MAX) ? "a host's name is too long"
                                                              : NULL;
    default:
        break;
    }
    return NULL;
}

/* ---- records ---- */

static size_t command_bytes_max(const struct leat_coordinate *request)
{
    if (request->kind == LEAT_COORDINATE_OPENED || request->kind == LEAT_COORDINATE_VERSION)
        return 64 + request->log_count * REF_BYTES_MAX;
    if (request->kind == LEAT_COORDINATE_MOVE)
        return COMMAND_BYTES_MAX + request->log_count * LEAT_ASSIGN_ROW_BYTES_MAX;
    return COMMAND_BYTES_MAX;
}

/* One record at `out`: its length, then the command with an id around it. */
static size_t record_write(struct leat_coordinator *coordinator, uint8_t *out, size_t capacity,
                           const uint8_t *command, size_t bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + CO_RECORD_HEADER_BYTES, capacity - CO_RECORD_HEADER_BYTES);
    leat_entry_request_write(&writer, &(struct leat_entry_request){coordinator->session,
                                                                   ++coordinator->next_sequence,
                                                                   {command, (uint32_t)bytes}});
    LEAT_ASSERT(!writer.overflow);
    leat_put_le32(out, writer.used);
    return CO_RECORD_HEADER_BYTES + writer.used;
}

static leat_err refuse_memory(struct leat_coordinate *request)
{
    return leat_error_set(&request->error, LEAT_E_NO_MEMORY, "no memory for a request");
}

/* The command was made by recovery. */
static leat_err recover_encode(struct leat_coordinator *coordinator,
                               struct leat_coordinate *request)
{
    size_t capacity = request->command_bytes + WRAP_BYTES_MAX + CO_RECORD_HEADER_BYTES;
    request->bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, capacity);
    if (!request->bytes) return refuse_memory(request);
    request->byte_count = record_write(coordinator, request->bytes, capacity, request->command,
                                       request->command_bytes);
    request->sequence = coordinator->next_sequence;
    return LEAT_OK;
}

leat_err co_drain_refuse(struct leat_coordinate *request)
{
    return leat_error_set(
        &request->error, LEAT_E_INVALID,
        "node '%.100s' is the last that is not drained: nobody could take what it has. "
        "Start another, or take one back into use first: leat node undrain",
        request->target);
}

/* A drain of the last node that is not drained is refused here, by the tables of the node that proposes the drain: the
 * committed entry can't be refused (leat_machine_apply_node_drain()). Two drains of the last two nodes may be proposed
 * at the same time: the later drain is taken back, drain_take_back(). */
static leat_err drain_check(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    if (request->kind != LEAT_COORDINATE_NODE_DRAIN || !request->draining || request->takes_back ||
        !leat_machine_drains_last(&coordinator->machine, request->target, strlen(request->target)))
        return LEAT_OK;
    return co_drain_refuse(request);
}

/* SUBTLE: the vote of a server alone has no name (check_name() of actor.c knows the names of other votes).
 *  1. A server alone is node 'a', and owns its streams under this name.
 *  2. The host gets another name, and the server starts as node 'b': a second node, as far as the tables say.
 *  3. Nobody starts 'a' again, so nobody serves its streams.
 * So the only voter comes up under no name that the tables don't have, as long as they have a server alone. */
static leat_err name_check(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    struct leat_machine *machine = &coordinator->machine;
    if (request->kind != LEAT_COORDINATE_NODE_UP || !coordinator->votes ||
        coordinator->drive.raft.configuration.n != 1 ||
        leat_machine_node_find(machine, request->node_name, strlen(request->node_name)))
        return LEAT_OK;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (info->node_address[0] == '\0')
            return leat_error_set(&request->error, LEAT_E_CONFIG,
                                  "this data directory has the streams of node '%.100s': start it "
                                  "with --node '%.100s'",
                                  info->name, info->name);
    }
    return LEAT_OK;
}

leat_err co_request_encode(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (request->kind == LEAT_COORDINATE_RECOVER) return recover_encode(coordinator, request);
    leat_err rc = drain_check(coordinator, request);
    if (rc == LEAT_OK) rc = name_check(coordinator, request);
    if (rc != LEAT_OK) return rc;
    size_t capacity = command_bytes_max(request);
    size_t record_capacity = capacity + WRAP_BYTES_MAX + CO_RECORD_HEADER_BYTES;
    uint8_t *command = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, capacity);
    if (!command) return refuse_memory(request);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, command, capacity);
    command_write(coordinator, &writer, request);
    LEAT_ASSERT(!writer.overflow);
    record_capacity -= capacity - writer.used;
    request->bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, record_capacity);
    if (request->bytes)
        request->byte_count =
            record_write(coordinator, request->bytes, record_capacity, command, writer.used);
    request->sequence = coordinator->next_sequence;
    leat_mem_free(command);
    return request->bytes ? LEAT_OK : refuse_memory(request);
}

/* Decide on the tables as they are now; the entries say which state that was. */
leat_err co_adopt_encode(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint8_t *bytes = NULL;
    unsigned count = 0;
    request->attempt =
        coordinator->env->random->next(coordinator->env->random->ctx) | 1; /* 0 means none */
    leat_err rc =
        leat_adopt_decide(&coordinator->machine, request, coordinator->clustered, &request->error);
    if (rc == LEAT_OK)
        rc = leat_adopt_encode(&coordinator->machine, request, request->attempt,
                               coordinator->commands, CO_SUBMIT_COMMANDS_MAX, &count, &bytes,
                               &request->error);
    if (rc != LEAT_OK) return rc;
    size_t capacity = 0, used = 0;
    for (unsigned i = 0; i < count; i++)
        capacity += coordinator->commands[i].len + WRAP_BYTES_MAX + CO_RECORD_HEADER_BYTES;
    request->bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, capacity);
    for (unsigned i = 0; i < count && request->bytes; i++)
        used += record_write(coordinator, request->bytes + used, capacity - used,
                             coordinator->commands[i].base, coordinator->commands[i].len);
    request->byte_count = used;
    request->sequence = coordinator->next_sequence;
    leat_mem_free(bytes);
    return request->bytes ? LEAT_OK : refuse_memory(request);
}
