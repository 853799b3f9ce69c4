/* SPDX-License-Identifier: Apache-2.0 */
/* The node that the leader asks when streamlets have lost their owner: which replicas does it hold (COLLECT), and which
 * copies shall it make (PULL)? The node's broker answers. docs/recovery.md has the whole. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/recovery/attempt.h"
#include "wire/row.h"

#define LEAT_ROWS "coordinator/recovery/bodies.def"
#include "wire/rows_make.h"

enum { ROW_BYTES_MAX = 128 };

/* ---- rows ---- */

leat_err co_rows_decode(const uint8_t *bytes, size_t count, struct leat_replica_row **out_rows,
                        size_t *out_count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t rows = co_replica_rows_read(&reader); /* no more than there are bytes */
    if (reader.failed || rows > CO_COLLECT_ROWS_MAX) return LEAT_E_INVALID;
    struct leat_replica_row *out = leat_mem_calloc(LEAT_MEM_COORDINATOR, rows + 1, sizeof *out);
    if (!out) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < rows && !reader.failed; i++) {
        (void)co_replica_row_read(&reader, &out[i]);
        if (out[i].kind < LEAT_REPLICA_MARK) reader.failed = true;
    }
    if (!leat_msg_read_done(&reader)) {
        leat_mem_free(out);
        return LEAT_E_INVALID;
    }
    *out_rows = out;
    *out_count = rows;
    return LEAT_OK;
}

static uint8_t *rows_encode(const struct leat_replica_row *rows, size_t count, size_t *out_bytes)
{
    size_t capacity = 16 + count * ROW_BYTES_MAX;
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, capacity, 1);
    if (!bytes) return NULL;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, capacity);
    co_replica_rows_write(&writer, count);
    for (size_t i = 0; i < count; i++)
        co_replica_row_write(&writer, &rows[i]);
    LEAT_ASSERT(!writer.overflow);
    *out_bytes = writer.used;
    return bytes;
}

/* ---- answers with a payload ---- */

struct reply {
    struct leat_link_answer answer;
    struct leat_iov iov;
    uint8_t *bytes;
    uint8_t control[16];
};

static void reply_sent(struct leat_link_answer *answer, leat_err rc)
{
    struct reply *reply = answer->owner;
    (void)rc;
    leat_mem_free(reply->bytes);
    leat_mem_free(reply);
}

static void rows_answer(struct leat_coordinator *coordinator, const struct co_collecting *it)
{
    const struct leat_collect *collect = &it->collect;
    if (collect->rc != LEAT_OK || collect->row_count > CO_COLLECT_ROWS_MAX) {
        leat_err rc = collect->rc != LEAT_OK ? collect->rc : LEAT_E_TOO_LARGE;
        leat_link_answer_error(co_links(coordinator), &it->ticket, rc, leat_err_text(rc));
        return;
    }
    struct reply *reply = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *reply);
    size_t bytes = 0;
    if (reply) reply->bytes = rows_encode(collect->rows, collect->row_count, &bytes);
    if (!reply || !reply->bytes) {
        leat_mem_free(reply);
        leat_link_answer_error(co_links(coordinator), &it->ticket, LEAT_E_NO_MEMORY,
                               "no memory for the answer");
        return;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, reply->control, sizeof reply->control);
    co_attempt_said_write(&writer, &(struct co_attempt_said){collect->attempt});
    reply->iov = (struct leat_iov){reply->bytes, bytes};
    reply->answer = (struct leat_link_answer){.control = reply->control,
                                              .control_bytes = writer.used,
                                              .payload = &reply->iov,
                                              .payload_count = 1,
                                              .on_sent = reply_sent,
                                              .owner = reply};
    if (leat_link_answer_send(co_links(coordinator), &it->ticket, &reply->answer) != LEAT_OK)
        reply_sent(&reply->answer, LEAT_E_CLOSED);
}

/* ---- collecting ---- */

static void collecting_free(struct co_collecting *it)
{
    if (!it) return;
    leat_list_remove(&it->list);
    leat_mem_free(it->collect.rows);
    leat_mem_free(it->logs);
    leat_mem_free(it->crashed);
    leat_mem_free(it->streamlets);
    leat_mem_free(it);
}

static void collecting_end(struct leat_coordinator *coordinator, struct co_collecting *it)
{
    if (it->local)
        co_recovery_rows(coordinator, co_incarnation(coordinator), &it->collect);
    else
        rows_answer(coordinator, it);
    co_recovery_of(coordinator)->collecting_count--;
    collecting_free(it);
}

static void collected_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_collect *collect = LEAT_CONTAINER(mail, struct leat_collect, mail);
    collecting_end(actor, LEAT_CONTAINER(collect, struct co_collecting, collect));
}

void leat_collected(const struct leat_post *post, struct leat_collect *collect)
{
    collect->mail.deliver = collected_deliver;
    post->send(post->ctx, LEAT_ACTOR_COORDINATOR, &collect->mail);
}

static int log_order(const void *left, const void *right)
{
    const struct leat_collect_log *a = left, *b = right;
    return leat_log_ref_order(a->log, b->log);
}

/* The logs of the streamlets that were asked about, as the tables have them now. A deleted stream has none. */
static leat_err logs_fill(struct leat_coordinator *coordinator, struct co_collecting *it)
{
    struct leat_machine *machine = co_tables(coordinator);
    size_t count = 0;
    for (size_t pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            it->logs = leat_mem_calloc(LEAT_MEM_COORDINATOR, count + 1, sizeof *it->logs);
            if (!it->logs) return LEAT_E_NO_MEMORY;
            it->collect.log_count = count;
            count = 0;
        }
        for (size_t s = 0; s < it->streamlet_count; s++) {
            struct leat_log_ref ref = {it->streamlets[s].stream, it->streamlets[s].streamlet, 0};
            struct leat_machine_stream *stream;
            if (!leat_machine_log_find(machine, ref, &stream)) continue;
            uint32_t logs = stream->desc->settings.logs;
            if (count + logs > CO_COLLECT_LOGS_MAX) return LEAT_E_TOO_LARGE;
            for (uint32_t q = 0; q < logs && pass == 1; q++) {
                ref.log = q;
                it->logs[count + q] = (struct leat_collect_log){
                    ref, leat_machine_log_find(machine, ref, &stream)->record};
            }
            count += logs;
        }
    }
    qsort(it->logs, count, sizeof *it->logs, log_order);
    it->collect.logs = it->logs;
    return LEAT_OK;
}

/* SUBTLE: a fence is final, so it follows a committed entry, never a message alone. (1) An earlier leader, or a node
 * that lies, asks for the fence of a living incarnation. (2) From then on backups refuse this incarnation, which is
 * up by all tables. (3) Its appends never end, and no node notices. */
static bool crashes_committed(struct leat_coordinator *coordinator, const struct co_collecting *it)
{
    for (size_t i = 0; i < it->collect.crashed_count; i++) {
        const struct leat_crashed_node *said = &it->crashed[i];
        const struct leat_machine_node *node =
            leat_machine_node_find(co_tables(coordinator), said->name, strlen(said->name));
        if (!node || node->info.incarnation < said->incarnation ||
            (node->info.incarnation == said->incarnation && !node->info.crashed))
            return false;
    }
    return true;
}

void co_collect_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *recovery = co_recovery_of(coordinator);
    LEAT_LIST_EACH(&recovery->collects, at)
    {
        struct co_collecting *it = LEAT_CONTAINER(at, struct co_collecting, list);
        if (it->told || co_applied(coordinator) < it->index) continue;
        it->told = true;
        it->collect.rc =
            crashes_committed(coordinator, it) ? logs_fill(coordinator, it) : LEAT_E_DENIED;
        if (it->collect.rc == LEAT_OK) {
            co_options(coordinator)->on_collect(co_options(coordinator)->owner, &it->collect);
            continue;
        }
        collecting_end(coordinator, it);
        return; /* what follows comes in the next turn: the list has changed */
    }
}

leat_err co_collect_add(struct leat_coordinator *coordinator, uint64_t attempt, uint64_t index,
                        const struct co_collect_asked *asked, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (co_recovery_of(coordinator)->collecting_count == CO_COLLECTS_MAX) return LEAT_E_AGAIN;
    struct co_collecting *it = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *it);
    if (!it) return LEAT_E_NO_MEMORY;
    leat_list_init(&it->list);
    it->crashed =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, asked->crashed_count + 1, sizeof *it->crashed);
    it->streamlets =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, asked->streamlet_count + 1, sizeof *it->streamlets);
    if (!it->crashed || !it->streamlets) {
        collecting_free(it);
        return LEAT_E_NO_MEMORY;
    }
    if (asked->crashed_count)
        memcpy(it->crashed, asked->crashed, asked->crashed_count * sizeof *it->crashed);
    if (asked->streamlet_count)
        memcpy(it->streamlets, asked->streamlets, asked->streamlet_count * sizeof *it->streamlets);
    it->streamlet_count = asked->streamlet_count;
    it->collect.crashed = it->crashed;
    it->collect.crashed_count = asked->crashed_count;
    it->collect.attempt = attempt;
    it->index = index;
    it->local = ticket == NULL;
    if (ticket) it->ticket = *ticket;
    co_recovery_of(coordinator)->collecting_count++;
    leat_list_push_back(&co_recovery_of(coordinator)->collects, &it->list);
    return LEAT_OK;
}

static bool asked_read(struct leat_msg_reader *reader, struct co_collect_asked *asked,
                       struct leat_crashed_node *crashed, struct co_streamlet *streamlets)
{
    struct co_collect_whom whom;
    uint32_t left = co_collect_whom_read(reader, &whom);
    if (reader->failed || whom.node_count > LEAT_NODES_MAX) return false;
    for (uint32_t i = 0; i < whom.node_count; i++) {
        struct co_collect_node node;
        (void)co_collect_node_read(reader, &node);
        if (reader->failed || node.node.bytes >= sizeof crashed[i].name) return false;
        memcpy(crashed[i].name, node.node.text, node.node.bytes);
        crashed[i].incarnation = node.incarnation;
    }
    left = leat_msg_row_read_behind(reader, co_collect_whom_row(), &whom,
                                    offsetof(struct co_collect_whom, node_count), left);
    if (reader->failed || whom.streamlet_count > CO_COLLECT_LOGS_MAX) return false;
    for (uint32_t i = 0; i < whom.streamlet_count; i++)
        (void)co_collect_streamlet_read(reader, &streamlets[i]);
    *asked = (struct co_collect_asked){crashed, whom.node_count, streamlets, whom.streamlet_count};
    return leat_msg_read_end(reader, left);
}

void co_collect_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                     const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_msg_reader reader;
    struct co_collect_said said;
    bool good = co_collect_said_decode(frame->control, frame->control_bytes, &said) == LEAT_OK;
    struct leat_crashed_node *crashed =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, LEAT_NODES_MAX, sizeof *crashed);
    struct co_streamlet *streamlets =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, CO_COLLECT_LOGS_MAX, sizeof *streamlets);
    leat_err rc = crashed && streamlets ? LEAT_OK : LEAT_E_NO_MEMORY;
    if (rc == LEAT_OK) {
        struct co_collect_asked asked = {0};
        leat_msg_reader_init(&reader, frame->payload, frame->payload_bytes);
        good = good && asked_read(&reader, &asked, crashed, streamlets);
        rc = good ? co_collect_add(coordinator, said.attempt, said.index, &asked, ticket)
                  : LEAT_E_INVALID;
        struct leat_link *link = leat_link_of(co_links(coordinator), ticket);
        if (rc == LEAT_OK && link) co_feed_behind(coordinator, leat_link_user(link), said.index);
    }
    leat_mem_free(crashed);
    leat_mem_free(streamlets);
    if (rc != LEAT_OK) leat_link_answer_error(co_links(coordinator), ticket, rc, leat_err_text(rc));
}

/* ---- pulling ---- */

struct co_pull {
    struct leat_pull pull;
    struct co_pulling *of;
};
struct co_pulling {
    struct leat_list list;
    bool local;
    struct leat_link_ticket ticket;
    uint32_t count, done;
    struct co_pull pulls[];
};

static void pulls_answer(struct leat_coordinator *coordinator, const struct co_pulling *it)
{
    uint8_t bytes[LEAT_ERROR_TEXT_BYTES + 32 + 4 * CO_PULLS_MAX];
    const char *text = "";
    for (uint32_t i = 0; i < it->count && !*text; i++)
        if (it->pulls[i].pull.rc != LEAT_OK) text = it->pulls[i].pull.error.text;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    struct co_pulled_said said = {{text, (uint32_t)strlen(text)}, it->count};
    co_pulled_said_write(&writer, &said);
    for (uint32_t i = 0; i < it->count; i++)
        leat_msg_write_u64(&writer, (uint64_t)it->pulls[i].pull.rc);
    LEAT_ASSERT(!writer.overflow);
    leat_link_answer(co_links(coordinator), &it->ticket, bytes, writer.used);
}

static void pulling_end(struct leat_coordinator *coordinator, struct co_pulling *it)
{
    leat_err codes[CO_PULLS_MAX];
    for (uint32_t i = 0; i < it->count; i++)
        codes[i] = it->pulls[i].pull.rc;
    co_recovery_of(coordinator)->pulling_count--;
    leat_list_remove(&it->list);
    if (it->local)
        co_recovery_pulled(coordinator, co_incarnation(coordinator), it->pulls[0].pull.attempt,
                           codes, it->count);
    else
        pulls_answer(coordinator, it);
    leat_mem_free(it);
}

static void pulled_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_pull *pull = LEAT_CONTAINER(mail, struct leat_pull, mail);
    struct co_pulling *it = LEAT_CONTAINER(pull, struct co_pull, pull)->of;
    LEAT_ASSERT_CMP(it->done, <, it->count);
    if (++it->done == it->count) pulling_end(actor, it);
}

void leat_pulled(const struct leat_post *post, struct leat_pull *pull)
{
    pull->mail.deliver = pulled_deliver;
    post->send(post->ctx, LEAT_ACTOR_COORDINATOR, &pull->mail);
}

leat_err co_pull_add(struct leat_coordinator *coordinator, const struct leat_pull *pulls,
                     uint32_t count, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_ASSERT(count > 0 && count <= CO_PULLS_MAX);
    if (co_recovery_of(coordinator)->pulling_count == CO_PULLINGS_MAX) return LEAT_E_AGAIN;
    struct co_pulling *it =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *it + count * sizeof it->pulls[0]);
    if (!it) return LEAT_E_NO_MEMORY;
    it->local = ticket == NULL;
    if (ticket) it->ticket = *ticket;
    it->count = count;
    co_recovery_of(coordinator)->pulling_count++;
    leat_list_push_back(&co_recovery_of(coordinator)->pullings, &it->list);
    for (uint32_t i = 0; i < count; i++) {
        it->pulls[i].pull = pulls[i];
        it->pulls[i].of = it;
    }
    /* No answer comes inside the call: answers come by message. */
    for (uint32_t i = 0; i < count; i++)
        co_options(coordinator)->on_pull(co_options(coordinator)->owner, &it->pulls[i].pull);
    return LEAT_OK;
}

static bool text_take(struct leat_msg_string text, char *out, size_t capacity)
{
    if (text.bytes >= capacity) return false;
    memcpy(out, text.text, text.bytes);
    out[text.bytes] = 0;
    return true;
}

static bool pull_read(struct leat_msg_reader *reader, struct leat_pull *pull)
{
    (void)co_pull_said_read(reader, pull);
    if (reader->failed || pull->source_count > LEAT_PULL_SOURCES_MAX || pull->source_count == 0)
        return false;
    for (uint32_t i = 0; i < pull->source_count; i++) {
        struct leat_pull_source *source = &pull->sources[i];
        struct co_pull_source said;
        (void)co_pull_source_read(reader, &said);
        if (reader->failed || !text_take(said.node, source->node, sizeof source->node) ||
            !text_take(said.node_address, source->node_address, sizeof source->node_address))
            return false;
        source->incarnation = said.incarnation;
    }
    return true;
}

static leat_err pulls_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                           struct leat_pull *pulls, const struct leat_link_ticket *ticket)
{
    struct leat_msg_reader reader;
    struct co_attempt_said said;
    if (co_attempt_said_decode(frame->control, frame->control_bytes, &said) != LEAT_OK)
        return LEAT_E_INVALID;
    leat_msg_reader_init(&reader, frame->payload, frame->payload_bytes);
    uint32_t count = co_pulls_said_read(&reader);
    if (reader.failed || count == 0 || count > CO_PULLS_MAX) return LEAT_E_INVALID;
    for (uint32_t i = 0; i < count; i++) {
        if (!pull_read(&reader, &pulls[i])) return LEAT_E_INVALID;
        pulls[i].attempt = said.attempt;
    }
    if (!leat_msg_read_done(&reader)) return LEAT_E_INVALID;
    return co_pull_add(coordinator, pulls, count, ticket);
}

void co_pull_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_pull *pulls = leat_mem_calloc(LEAT_MEM_COORDINATOR, CO_PULLS_MAX, sizeof *pulls);
    leat_err rc = pulls ? pulls_take(coordinator, frame, pulls, ticket) : LEAT_E_NO_MEMORY;
    leat_mem_free(pulls);
    if (rc != LEAT_OK) leat_link_answer_error(co_links(coordinator), ticket, rc, leat_err_text(rc));
}

void co_collect_fini(struct leat_coordinator *coordinator)
{
    struct co_recovery *recovery = co_recovery_of(coordinator);
    if (!recovery) return;
    while (!leat_list_empty(&recovery->collects))
        collecting_free(LEAT_CONTAINER(recovery->collects.next, struct co_collecting, list));
    struct leat_list *at;
    while ((at = leat_list_pop_front(&recovery->pullings)))
        leat_mem_free(LEAT_CONTAINER(at, struct co_pulling, list));
}
