/* SPDX-License-Identifier: Apache-2.0 */
/* Fetch: acked batches of one or several logs, sent from where they lie.
 *
 * A request reads its logs one after the other (each on the log's own core), until the request has enough bytes
 * (fetch_read.c). With fewer bytes than asked for the request watches all its logs and a deadline, and begins anew
 * when a log moves (fetch_wait.c). Nothing polls. Batches that have been read are pinned in segment memory, or lie in
 * one of the core's few buffers, until the connection has sent them. */
#include "broker/data/fetch.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "broker/data/confirm.h"
#include "broker/data/core_data.h"
#include "broker/data/lend.h"
#include "broker/data/route.h"
#include "broker/net/call.h"

_Static_assert(offsetof(struct leat_fetch, ends.read.iovs) == LEAT_FETCH_STRUCT_BYTES, "stock.h");
_Static_assert(sizeof(struct leat_fetch_item) == LEAT_FETCH_ITEM_BYTES, "stock.h");
_Static_assert(sizeof(struct leat_fetch_read) == LEAT_FETCH_READ_BYTES, "stock.h");

static enum leat_handled fetch_refuse(struct leat_peer *peer, const struct leat_frame *frame,
                                      leat_err code, const char *text);
static leat_err fetch_parse(struct leat_peer *peer, const struct leat_frame *frame,
                            struct leat_fetch **out_fetch, struct leat_error *error);
static void fetch_on_confirmed(struct leat_confirm *confirm, leat_err rc);
static void fetch_answer(struct leat_fetch *fetch);

/* ---- a frame ---- */

enum leat_handled leat_fetch_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    struct leat_error error;
    if (core->stopping) return fetch_refuse(peer, frame, LEAT_E_STARTING, "the server is stopping");
    struct leat_fetch *fetch = NULL;
    leat_err rc = fetch_parse(peer, frame, &fetch, &error);
    if (rc == LEAT_E_AGAIN) return LEAT_HELD;
    if (rc != LEAT_OK) {
        if (fetch != NULL) leat_fetch_free(fetch);
        return fetch_refuse(peer, frame, rc, error.text);
    }
    fetch->number = frame->request;
    leat_fetch_start(fetch);
    return LEAT_HANDLED;
}

void leat_fetch_start(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    if (leat_peer_is_slow(fetch->peer))
        leat_list_push_back(&fetch->core->data->deferred_fetches, &fetch->link);
    else
        leat_fetch_run(fetch);
}

/* The structs of a request, of both kinds at once: a fetch that has begun never waits for structs. */
static bool fetch_take_structs(struct leat_peer *peer, bool only, uint32_t log_count)
{
    struct leat_core *core = peer->core;
    struct leat_stock *const stocks[] = {&core->fetch_pool, &core->item_pool};
    const uint32_t counts[] = {1, log_count};
    for (unsigned i = 0; i < 2; i++) {
        if (leat_stock_admits(stocks[i], peer, only, counts[i]) &&
            leat_stock_widen(stocks[i], peer, only, counts[i]))
            continue;
        leat_stock_narrow(stocks[0], peer);
        leat_stock_wait(stocks[i], peer, only, counts[i]);
        return false;
    }
    peer->stock.called = false;
    return true;
}

struct leat_fetch *leat_fetch_begin(struct leat_peer *peer, bool only, uint32_t log_count,
                                    uint32_t min_bytes, uint32_t max_bytes, uint32_t wait_ms,
                                    void (*on_ready)(struct leat_fetch *fetch), void *owner)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    LEAT_ASSERT_CMP(log_count, <=, core->item_pool.count);
    if (!fetch_take_structs(peer, only, log_count)) return NULL;
    struct leat_fetch *fetch = leat_stock_take(&core->fetch_pool, peer->sharer);
    memset(fetch, 0, LEAT_FETCH_STRUCT_BYTES);
    leat_list_init(&fetch->link);
    fetch->core = core;
    fetch->peer = peer;
    fetch->sharer = leat_sharer_keep(peer->sharer);
    fetch->on_ready = on_ready;
    fetch->owner = owner;
    fetch->items_tail = &fetch->items;
    fetch->timer.on_expired = leat_fetch_on_timer;
    fetch->timer.owner = fetch;
    leat_list_init(&fetch->confirm.link);
    fetch->confirm.on_done = fetch_on_confirmed;
    fetch->confirm.owner = fetch;
    leat_list_init(&fetch->buffer_wait.link);
    fetch->buffer_wait.on_buffer = leat_fetch_on_buffer;
    fetch->buffer_wait.owner = fetch;
    leat_list_push_back(&core->data->fetches, &fetch->by_core);
    leat_peer_begin(peer);
    fetch->max_bytes = max_bytes < LEAT_FETCH_BYTES_MAX ? max_bytes : LEAT_FETCH_BYTES_MAX;
    if (fetch->max_bytes == 0) fetch->max_bytes = 1;
    fetch->min_bytes = min_bytes < fetch->max_bytes ? min_bytes : fetch->max_bytes;
    if (wait_ms > LEAT_FETCH_WAIT_MS_MAX) wait_ms = LEAT_FETCH_WAIT_MS_MAX;
    fetch->over_deadline = wait_ms == 0;
    if (!fetch->over_deadline) fetch->deadline_us = leat_core_now(core) + wait_ms * 1000ull;
    return fetch;
}

struct leat_fetch_item *leat_fetch_add(struct leat_fetch *fetch,
                                       const struct leat_msg_fetch_log *want, uint32_t max_bytes)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    struct leat_fetch_item *item = leat_stock_take(&core->item_pool, fetch->sharer);
    LEAT_ASSERT(item != NULL);
    memset(item, 0, sizeof *item);
    leat_list_init(&item->waiting);
    item->fetch = fetch;
    item->want = *want;
    item->max_bytes = max_bytes;
    *fetch->items_tail = item;
    fetch->items_tail = &item->next;
    fetch->item_count++;
    item->refused = leat_partition_route(core, want->log, want->epoch, &item->home, NULL);
    item->result.by_position = want->by_position;
    item->result.next = want->position;
    return item;
}

static enum leat_handled fetch_refuse(struct leat_peer *peer, const struct leat_frame *frame,
                                      leat_err code, const char *text)
{
    leat_peer_refuse(peer, LEAT_KIND_FETCH, frame->request, code, text);
    return LEAT_HANDLED;
}

/* LEAT_E_AGAIN: there are no structs. *out_fetch is set when it has begun, also on refusal. */
static leat_err fetch_parse(struct leat_peer *peer, const struct leat_frame *frame,
                            struct leat_fetch **out_fetch, struct leat_error *error)
{
    struct leat_msg_reader reader;
    struct leat_msg_fetch body;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t left = leat_msg_fetch_read(&reader, &body);
    if (reader.failed)
        return leat_error_set(error, LEAT_E_INVALID,
                              "the control body of a fetch is not [min bytes, max bytes, wait ms, "
                              "[log...]]");
    if (body.log_count == 0 || body.log_count > LEAT_FETCH_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a fetch names 1 to %d logs, not %u",
                              LEAT_FETCH_LOGS_MAX, body.log_count);
    struct leat_fetch *fetch =
        leat_fetch_begin(peer, peer->requests == 0, body.log_count, body.min_bytes, body.max_bytes,
                         body.wait_ms, NULL, NULL);
    if (fetch == NULL) return LEAT_E_AGAIN;
    *out_fetch = fetch;
    for (uint32_t i = 0; i < body.log_count; i++) {
        struct leat_msg_fetch_log want = {0};
        leat_msg_fetch_log_read(&reader, &want);
        if (reader.failed) {
            /* Structs that no log of this fetch took are not counted: else they would be given back later. */
            leat_stock_narrow(&peer->core->item_pool, peer);
            return leat_error_set(error, LEAT_E_INVALID,
                                  "log %u of the fetch is not [stream, streamlet, log, epoch, "
                                  "from]",
                                  i + 1);
        }
        leat_fetch_add(fetch, &want, UINT32_MAX);
    }
    if (!leat_msg_read_end(&reader, left))
        return leat_error_set(error, LEAT_E_INVALID, "bytes follow the control body of the fetch");
    return LEAT_OK;
}

/* ---- one round over all logs ---- */

void leat_fetch_run(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    LEAT_ASSERT(fetch->reads == NULL && fetch->watches_out == 0);
    leat_fetch_enter(fetch, LEAT_FETCH_RUNNING);
    fetch->called = false;
    fetch->bytes = 0;
    fetch->records = 0;
    fetch->refused = fetch->full = false;
    uint32_t taken_max = fetch->peer->borrowed.answer_bytes_max;
    bool short_answer = taken_max != 0 && taken_max < fetch->max_bytes;
    fetch->bytes_max = short_answer ? taken_max : fetch->max_bytes;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        item->result.code = LEAT_OK;
        item->result.bytes = 0;
        item->result.next = item->want.position;
        item->result.resume = 0;
        item->watch_from = item->want.offset;
    }
    fetch->at = fetch->items;
    while (fetch->at != NULL)
        if (!leat_fetch_read_at(fetch)) return; /* goes on in fetch_read_back() */
    leat_fetch_finish(fetch);
}

/* ---- an offset is too high ----
 * A reader that is told so begins elsewhere. A reader by position only waits for the records. */

static bool item_is_too_high(const struct leat_fetch_item *item)
{
    return item->result.code == LEAT_E_OFFSET_OUT_OF_RANGE && !item->want.by_position &&
           !item->confirmed && item->want.offset > item->result.acked_offset;
}

static bool fetch_is_too_high(const struct leat_fetch *fetch)
{
    for (const struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next)
        if (item_is_too_high(item)) return true;
    return false;
}

static void fetch_on_confirmed(struct leat_confirm *confirm, leat_err rc)
{
    struct leat_fetch *fetch = confirm->owner;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        if (!item_is_too_high(item)) continue;
        item->confirmed = true;
        item->refused = leat_confirm_owner(fetch->core, item->want.log, item->want.epoch, rc);
    }
    leat_fetch_enter(fetch, LEAT_FETCH_UNWATCHING);
    leat_list_push_back(&fetch->core->data->ready_fetches, &fetch->link);
}

/* ---- enough, or not yet ---- */

static uint32_t fetch_enough(const struct leat_fetch *fetch)
{
    return fetch->min_bytes < fetch->bytes_max ? fetch->min_bytes : fetch->bytes_max;
}

/* Records follow the batches that were read, and are left to the next request: these records are in another file or
 * segment group, or the limit of the log is reached. Or the reader is at the end of a segment group, which has no
 * further records, and goes on with another group.
 *
 * SUBTLE: if such a fetch waits for more bytes, its watch ends at once, as the log ends after what was read. The
 * fetch read the same batches again and again until its time was over. */
static bool fetch_leaves_records(const struct leat_fetch *fetch)
{
    for (const struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        if (item->result.bytes > 0 && item->watch_from < item->result.acked_offset) return true;
        if (item->want.by_position && item->result.next.group > item->want.position.group)
            return true;
    }
    return false;
}

void leat_fetch_finish(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    if (fetch->peer == NULL) {
        leat_fetch_drop_reads(fetch);
        leat_fetch_free(fetch);
        return;
    }
    if (leat_confirm_needed(fetch->core) && fetch_is_too_high(fetch) &&
        !LEAT_BUG(END_UNCONFIRMED)) {
        /* the runs are read again later: no segment is held for so long */
        leat_fetch_drop_reads(fetch);
        leat_fetch_enter(fetch, LEAT_FETCH_CONFIRMING);
        leat_confirm_ask(fetch->core, &fetch->confirm);
        return;
    }
    if (fetch->bytes < fetch_enough(fetch) && !fetch->full && !fetch->over_deadline &&
        !fetch->refused && !fetch->core->stopping && !fetch_leaves_records(fetch)) {
        leat_fetch_drop_reads(fetch);
        leat_fetch_wait(fetch);
        return;
    }
    if (fetch->on_ready == NULL) {
        fetch_answer(fetch);
        return;
    }
    leat_fetch_enter(fetch, LEAT_FETCH_READY);
    fetch->on_ready(fetch);
}

/* All limited fetches look again: if only the first did, it might have nothing to send, and the next would never be
 * called. */
void leat_fetch_call_limited(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_list *link;
    if (leat_fetch_peer_holds_enough(peer)) return;
    while ((link = leat_list_pop_front(&peer->limited)) != NULL)
        leat_list_push_back(&peer->core->data->ready_fetches, link);
}

void leat_fetch_read_sent(struct leat_fetch_read *read)
{
    LEAT_ASSERT_OWNER(read->fetch->core);
    struct leat_fetch *fetch = read->fetch;
    leat_lend_end(read);
    leat_fetch_release_read(read);
    if (fetch->peer != NULL) {
        fetch->peer->reads--;
        leat_fetch_call_limited(fetch->peer);
    }
    if (--fetch->sends_left == 0 && fetch->state == LEAT_FETCH_SENDING) leat_fetch_free(fetch);
}

static void fetch_on_sent(struct leat_send *send, leat_err rc)
{
    struct leat_fetch_read *read = send->owner;
    struct leat_peer *peer = read->fetch->peer;
    (void)rc; /* the peer learns of its end by on_closed */
    if (peer != NULL) leat_peer_begin(peer);
    leat_fetch_read_sent(read);
    if (peer == NULL) return;
    leat_lend_taken(peer);
    leat_peer_drained(peer);
    leat_peer_end(peer);
}

/* The sentence of a refusal is made when it is written, from what holds then. */
static void fetch_write_row(struct leat_msg_writer *writer, struct leat_fetch_item *item)
{
    struct leat_msg_fetched row = item->result;
    struct leat_error error = {LEAT_OK, ""};
    uint32_t home;
    leat_err now = row.code;
    if (item->refused != LEAT_OK) {
        now = leat_partition_route(item->fetch->core, item->want.log, item->want.epoch, &home,
                                   &error);
        if (item->confirmed && row.code == LEAT_E_STARTING && now != row.code)
            now = leat_error_set(&error, row.code,
                                 "the offset is beyond what this node has, and whether it is still "
                                 "the owner can't be found out now: try again");
    } else if (row.code == LEAT_OK && row.bytes == 0 && item->end_missing) {
        /* Else a reader would take the end of what is stored here for the log's end. */
        now = row.code = leat_error_set(&error, LEAT_E_LOG_INCOMPLETE,
                                        "the log's end is missing, and may come back");
    } else if (row.code == LEAT_E_OFFSET_OUT_OF_RANGE && !row.by_position) {
        const struct leat_log_ref log = item->want.log;
        leat_error_set(&error, row.code,
                       "offset %llu of stream %u streamlet %u log %u is outside the valid range "
                       "%llu to %llu",
                       (unsigned long long)item->want.offset, log.stream, log.streamlet, log.log,
                       (unsigned long long)row.first_offset, (unsigned long long)row.acked_offset);
    } else if (row.code == LEAT_E_STARTING || row.code == LEAT_E_UNKNOWN_STREAM) {
        leat_error_set(&error, row.code, "%s", leat_partition_absent_words(row.code));
    }
    if (now == row.code)
        row.text = (struct leat_msg_string){error.text, (uint32_t)strlen(error.text)};
    leat_msg_fetched_write(writer, &row);
}

static void fetch_answer(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    leat_msg_fetched_all_write(&writer, fetch->item_count);
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next)
        fetch_write_row(&writer, item);
    LEAT_ASSERT(!writer.overflow);
    leat_peer_send(peer, core->scratch, LEAT_KIND_FETCH, LEAT_FRAME_ANSWER, fetch->number,
                   writer.used, fetch->bytes);
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next)
        leat_fetch_send(fetch, item);
    leat_fetch_end(fetch);
}

void leat_fetch_send(struct leat_fetch *fetch, const struct leat_fetch_item *item)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    struct leat_fetch_read *read;
    if (peer == NULL || peer->closing) return;
    while ((read = fetch->reads) != NULL && read->item == item) {
        fetch->reads = read->next;
        fetch->sends_left++;
        read->send.iovs = read->read.iovs;
        read->send.iov_count = read->read.iov_count;
        read->send.on_sent = fetch_on_sent;
        read->send.owner = read;
        leat_peer_owes(peer);
        leat_lend(read);
        peer->reads++;
        core->net->send(peer->conn, &read->send);
    }
}

static void fetch_free_items(struct leat_fetch *fetch)
{
    struct leat_fetch_item *item = fetch->items;
    fetch->items = NULL;
    while (item != NULL) {
        struct leat_fetch_item *next = item->next;
        LEAT_ASSERT_CMP(item->mails_out, ==, 0);
        leat_stock_give(&fetch->core->item_pool, item, fetch->peer, fetch->sharer);
        item = next;
    }
}

void leat_fetch_end(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_counters *totals = &fetch->core->counters;
    leat_fetch_enter(fetch, LEAT_FETCH_SENDING);
    leat_fetch_drop_reads(fetch);
    if (fetch->sends_left == 0) {
        leat_fetch_free(fetch);
        return;
    }
    fetch_free_items(fetch); /* however long its connection takes for the rest */
    atomic_fetch_add_explicit(&totals->fetched_records, fetch->records, memory_order_relaxed);
    atomic_fetch_add_explicit(&totals->fetched_bytes, fetch->bytes, memory_order_relaxed);
}

void leat_fetch_free(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    leat_timer_stop(&core->timers, &fetch->timer);
    leat_list_remove(&fetch->link);
    leat_list_remove(&fetch->by_core);
    leat_list_remove(&fetch->confirm.link);
    if (peer != NULL) leat_buffer_wait_end(peer, &fetch->buffer_wait);
    if (fetch->buffer != NULL) leat_buffer_give(core, fetch->buffer);
    fetch_free_items(fetch);
    struct leat_sharer *sharer = fetch->sharer;
    leat_stock_give(&core->fetch_pool, fetch, peer, sharer);
    leat_sharer_leave(core, sharer);
    if (peer != NULL) leat_peer_end(peer);
}

/* SUBTLE: rows without bytes would say where logs end, though no read has looked there: a reader until the end would
 * leave these logs out. So the reader is told to ask again. */
void leat_fetch_refuse(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    if (fetch->on_ready == NULL) {
        leat_peer_refuse(fetch->peer, LEAT_KIND_FETCH, fetch->number, LEAT_E_AGAIN,
                         "others wait for what this request holds until earlier answers are taken: "
                         "try again");
        leat_fetch_free(fetch);
        return;
    }
    leat_list_remove(&fetch->link);
    leat_fetch_drop_reads(fetch);
    fetch->bytes = 0;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        item->result.code = LEAT_E_AGAIN;
        item->result.bytes = 0;
    }
    leat_fetch_enter(fetch, LEAT_FETCH_READY);
    fetch->on_ready(fetch);
}

/* ---- the peer, or the node, goes ---- */

void leat_fetch_peer_closed(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    LEAT_LIST_EACH(&core->data->fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, by_core);
        if (fetch->peer != peer) continue;
        bool awaits_buffer = !leat_list_empty(&fetch->buffer_wait.link);
        leat_buffer_wait_end(peer, &fetch->buffer_wait);
        fetch->peer = NULL;
        leat_peer_end(peer);
        if (fetch->state == LEAT_FETCH_WAITING) {
            leat_fetch_wake(fetch);
        } else if (fetch->state == LEAT_FETCH_READY) {
            leat_fetch_end(fetch);
        } else if (fetch->state == LEAT_FETCH_CONFIRMING || awaits_buffer ||
                   (fetch->state != LEAT_FETCH_SENDING && !leat_list_empty(&fetch->link))) {
            /* Also deferred, or waiting for a struct: nothing is under way. */
            leat_fetch_free(fetch);
        }
    }
}

void leat_fetch_stop(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_LIST_EACH(&core->data->fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, by_core);
        fetch->over_deadline = true;
        if (fetch->state == LEAT_FETCH_WAITING) leat_fetch_wake(fetch);
        if (fetch->state != LEAT_FETCH_CONFIRMING) continue;
        leat_list_remove(&fetch->confirm.link);
        fetch_on_confirmed(&fetch->confirm, LEAT_E_STARTING);
    }
}
