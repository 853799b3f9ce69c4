/* SPDX-License-Identifier: Apache-2.0 */
/* COLLECT and PULL on their way to nodes: see recovery/collect.c for the other side. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/recovery/attempt.h"
#include "wire/row.h"

enum {
    CRASHED_BYTES_MAX = LEAT_NODE_NAME_BYTES_MAX + 16,
    STREAMLET_BYTES_MAX = 16,
    PULL_BYTES_MAX =
        96 + LEAT_PULL_SOURCES_MAX * (LEAT_NODE_NAME_BYTES_MAX + LEAT_ADDRESS_BYTES_MAX + 24),
};

struct asking {
    struct leat_link_call call;
    struct leat_coordinator *coordinator;
    struct leat_iov iov;
    uint64_t incarnation, attempt;
    uint32_t count; /* of pulls */
    uint8_t control[32];
    uint8_t payload[];
};

static struct asking *asking_make(struct leat_coordinator *coordinator, uint32_t node, size_t bytes)
{
    struct asking *it = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *it + bytes);
    if (!it) return NULL;
    it->coordinator = coordinator;
    it->incarnation = co_tables(coordinator)->nodes[node].info.incarnation;
    it->attempt = co_recovery_of(coordinator)->attempt;
    return it;
}

/* The caller has set kind, time and on_done of the call. If the call can't be sent, `it` is freed. */
static leat_err asking_send(struct asking *it, const struct leat_msg_writer *control,
                            const struct leat_msg_writer *payload)
{
    struct co_peer *peer = co_peer_of_incarnation(it->coordinator, it->incarnation);
    LEAT_ASSERT(!control->overflow && !payload->overflow);
    it->iov = (struct leat_iov){it->payload, payload->used};
    it->call.control = it->control;
    it->call.control_bytes = control->used;
    it->call.payload = &it->iov;
    it->call.payload_count = 1;
    it->call.owner = it;
    leat_err rc = peer ? leat_link_call(co_peer_link(peer), &it->call) : LEAT_E_CLOSED;
    if (rc != LEAT_OK) leat_mem_free(it);
    return rc;
}

/* ---- collect ---- */

static void rows_give(struct leat_coordinator *coordinator, uint64_t incarnation, uint64_t attempt,
                      leat_err rc, const struct leat_frame *answer)
{
    struct leat_collect collect = {.attempt = attempt, .rc = rc};
    if (rc == LEAT_OK)
        collect.rc = co_rows_decode(answer->payload, answer->payload_bytes, &collect.rows,
                                    &collect.row_count);
    co_recovery_rows(coordinator, incarnation, &collect);
    leat_mem_free(collect.rows);
}

static void collect_answered(struct leat_link_call *call, leat_err rc,
                             const struct leat_frame *answer, const struct leat_error *error)
{
    struct asking *it = call->owner;
    (void)error;
    if (rc != LEAT_E_CANCELLED)
        rows_give(it->coordinator, it->incarnation, it->attempt, rc, answer);
    leat_mem_free(it);
}

static void asked_write(struct leat_msg_writer *writer, const struct co_recovery *recovery)
{
    struct co_collect_whom whom = {(uint32_t)recovery->crashed_count, recovery->streamlet_count};
    co_collect_whom_write(writer, &whom);
    for (size_t i = 0; i < recovery->crashed_count; i++) {
        const struct leat_crashed_node *crashed = &recovery->crashed[i];
        struct co_collect_node node = {{crashed->name, (uint32_t)strlen(crashed->name)},
                                       crashed->incarnation};
        co_collect_node_write(writer, &node);
    }
    leat_msg_row_write_behind(writer, co_collect_whom_row(), &whom,
                              offsetof(struct co_collect_whom, node_count));
    for (uint32_t i = 0; i < recovery->streamlet_count; i++)
        co_collect_streamlet_write(writer, &recovery->streamlets[i].ref);
}

static leat_err collect_here(struct leat_coordinator *coordinator)
{
    const struct co_recovery *recovery = co_recovery_of(coordinator);
    struct co_streamlet *refs =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, recovery->streamlet_count, sizeof *refs);
    if (!refs) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < recovery->streamlet_count; i++)
        refs[i] = recovery->streamlets[i].ref;
    struct co_collect_asked asked = {recovery->crashed, recovery->crashed_count, refs,
                                     recovery->streamlet_count};
    leat_err rc = co_collect_add(coordinator, recovery->attempt, recovery->index, &asked, NULL);
    leat_mem_free(refs);
    return rc;
}

static leat_err collect_there(struct leat_coordinator *coordinator, uint32_t node)
{
    const struct co_recovery *recovery = co_recovery_of(coordinator);
    size_t bytes = 32 + recovery->crashed_count * CRASHED_BYTES_MAX +
                   (size_t)recovery->streamlet_count * STREAMLET_BYTES_MAX;
    struct asking *it = asking_make(coordinator, node, bytes);
    if (!it) return LEAT_E_NO_MEMORY;
    struct leat_msg_writer control, payload;
    leat_msg_writer_init(&control, it->control, sizeof it->control);
    co_collect_said_write(&control, &(struct co_collect_said){recovery->attempt, recovery->index});
    leat_msg_writer_init(&payload, it->payload, bytes);
    asked_write(&payload, recovery);
    it->call = (struct leat_link_call){
        .kind = CO_KIND_COLLECT, .timeout_us = CO_COLLECT_WAIT_US_MAX, .on_done = collect_answered};
    co_state_tell(coordinator, false); /* that this node leads: otherwise nodes refuse its calls */
    return asking_send(it, &control, &payload);
}

void co_recovery_ask(struct leat_coordinator *coordinator, uint32_t node)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint64_t incarnation = co_tables(coordinator)->nodes[node].info.incarnation;
    leat_err rc = incarnation == co_incarnation(coordinator) ? collect_here(coordinator)
                                                             : collect_there(coordinator, node);
    if (rc != LEAT_OK)
        rows_give(coordinator, incarnation, co_recovery_of(coordinator)->attempt, rc, NULL);
}

/* ---- pull ---- */

static void pulled(struct leat_coordinator *coordinator, uint64_t incarnation, uint64_t attempt,
                   leat_err rc, uint32_t count)
{
    leat_err codes[CO_PULLS_MAX];
    for (uint32_t i = 0; i < count; i++)
        codes[i] = rc;
    co_recovery_pulled(coordinator, incarnation, attempt, codes, count);
}

static void pull_answered(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct asking *it = call->owner;
    leat_err codes[CO_PULLS_MAX];
    (void)error;
    if (rc == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        struct co_pulled_said said;
        uint32_t left = co_pulled_said_read(&reader, &said);
        if (said.count != it->count) reader.failed = true;
        for (uint32_t i = 0; i < it->count; i++)
            codes[i] = (leat_err)leat_msg_read_u32(&reader);
        if (!leat_msg_read_end(&reader, left)) rc = LEAT_E_INVALID;
    }
    if (rc == LEAT_OK)
        co_recovery_pulled(it->coordinator, it->incarnation, it->attempt, codes, it->count);
    else if (rc != LEAT_E_CANCELLED)
        pulled(it->coordinator, it->incarnation, it->attempt, rc, it->count);
    leat_mem_free(it);
}

static bool source_has(const struct co_row *row, const struct co_task *task)
{
    return task->before ? row->before : row->holds;
}

static void pull_fill(struct leat_coordinator *coordinator, const struct co_task *task,
                      struct leat_pull *pull)
{
    struct co_recovery *recovery = co_recovery_of(coordinator);
    const struct co_recover_log *log = &recovery->logs[task->log];
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(co_tables(coordinator), log->ref.stream);
    memset(pull, 0, sizeof *pull);
    pull->attempt = recovery->attempt;
    pull->log = log->ref;
    pull->segment = log->tail.segment - (task->before ? 1 : 0);
    pull->prefix_id = task->before ? log->before : log->tail.prefix_id;
    pull->next_offset = task->before ? log->before_next_offset : log->tail.next_offset;
    pull->epoch = log->seen.stamp_epoch;
    pull->version = log->seen.stamp_version;
    pull->durability = stream ? stream->desc->settings.durability : LEAT_DURABILITY_DISK;
    for (uint32_t i = 0; i < log->row_count && pull->source_count < LEAT_PULL_SOURCES_MAX; i++) {
        const struct co_row *row = &recovery->rows[log->row_first + i];
        const struct leat_node_info *info = &co_tables(coordinator)->nodes[row->node].info;
        const struct co_row *last = i > 0 ? row - 1 : NULL;
        bool again = last && last->node == row->node && source_has(last, task);
        if (!source_has(row, task) || again || info->crashed) continue;
        struct leat_pull_source *source = &pull->sources[pull->source_count++];
        memcpy(source->node, info->name, sizeof source->node);
        memcpy(source->node_address, info->node_address, sizeof source->node_address);
        source->incarnation = info->incarnation;
    }
}

static void pull_write(struct leat_msg_writer *writer, const struct leat_pull *pull)
{
    co_pull_said_write(writer, pull);
    for (uint32_t i = 0; i < pull->source_count; i++) {
        const struct leat_pull_source *source = &pull->sources[i];
        struct co_pull_source said = {
            {source->node, (uint32_t)strlen(source->node)},
            {source->node_address, (uint32_t)strlen(source->node_address)},
            source->incarnation};
        co_pull_source_write(writer, &said);
    }
}

static leat_err pull_there(struct leat_coordinator *coordinator, uint32_t node,
                           const struct leat_pull *pulls, uint32_t count)
{
    size_t bytes = 16 + (size_t)count * PULL_BYTES_MAX;
    struct asking *it = asking_make(coordinator, node, bytes);
    if (!it) return LEAT_E_NO_MEMORY;
    struct leat_msg_writer control, payload;
    leat_msg_writer_init(&control, it->control, sizeof it->control);
    co_attempt_said_write(&control,
                          &(struct co_attempt_said){co_recovery_of(coordinator)->attempt});
    leat_msg_writer_init(&payload, it->payload, bytes);
    co_pulls_said_write(&payload, count);
    for (uint32_t i = 0; i < count; i++)
        pull_write(&payload, &pulls[i]);
    it->count = count;
    it->call = (struct leat_link_call){
        .kind = CO_KIND_PULL, .timeout_us = CO_PULL_US_MAX, .on_done = pull_answered};
    return asking_send(it, &control, &payload);
}

void co_recovery_pull(struct leat_coordinator *coordinator, uint32_t node)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *recovery = co_recovery_of(coordinator);
    uint32_t next = recovery->pulls[node].next, count = recovery->pulls[node].end - next;
    if (count == 0 || recovery->pulls[node].in_flight) return;
    if (count > CO_PULLS_MAX) count = CO_PULLS_MAX;
    uint64_t incarnation = co_tables(coordinator)->nodes[node].info.incarnation;
    struct leat_pull *pulls = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, sizeof *pulls);
    leat_err rc = LEAT_E_NO_MEMORY;
    recovery->pulls[node].in_flight = count;
    for (uint32_t i = 0; i < count && pulls; i++)
        pull_fill(coordinator, &recovery->tasks[next + i], &pulls[i]);
    if (pulls && incarnation == co_incarnation(coordinator))
        rc = co_pull_add(coordinator, pulls, count, NULL);
    else if (pulls)
        rc = pull_there(coordinator, node, pulls, count);
    leat_mem_free(pulls);
    /* All copies of this message have failed. The node's next message is sent from in there, and may fail, too. */
    if (rc != LEAT_OK) pulled(coordinator, incarnation, recovery->attempt, rc, count);
}
