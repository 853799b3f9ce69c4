/* Fetch: acked batches of one or several logs, sent from where they lie.
 *
 * A request reads its logs one after the other (each on the log's own core), until it has enough.
 * If that is less than it asked for it watches all its logs and a deadline, and begins anew when
 * one of them moves. Nothing polls. What has been read is pinned in segment memory, or lies in one
 * of the core's few buffers, until the connection has sent it.
 */
#include "broker/fetch.h"

#include <string.h>

#include "base/assert.h"

static enum leat_handled fetch_refuse(struct leat_peer *peer, const struct leat_frame *frame,
                                      leat_err code, const char *text);
static leat_err fetch_parse(struct leat_peer *peer, const struct leat_frame *frame,
                            struct leat_fetch **out_fetch, struct leat_error *error);
static void fetch_run(struct leat_fetch *fetch);
static bool fetch_read_at(struct leat_fetch *fetch);
static void fetch_begin_read(struct leat_fetch_read *read);
static void fetch_read_here(struct leat_fetch_read *read);
static void fetch_on_read(struct leat_read *read);
static void fetch_read_back(struct leat_fetch_read *read);
static bool fetch_take_result(struct leat_fetch_read *read);
static void fetch_on_confirmed(struct leat_confirm *confirm, leat_err rc);
static void fetch_finish(struct leat_fetch *fetch);
static void fetch_wait(struct leat_fetch *fetch);
static void fetch_answer(struct leat_fetch *fetch);
static void fetch_drop_reads(struct leat_fetch *fetch);
static void fetch_release_read(struct leat_fetch_read *read);
static void fetch_free(struct leat_fetch *fetch);
static void fetch_wake(struct leat_fetch *fetch);
static void fetch_unwatch(struct leat_fetch *fetch);
static void fetch_on_timer(struct leat_timer *timer);

/* ---- a frame ---- */

enum leat_handled leat_fetch_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct leat_core *core = peer->core;
    struct leat_error error;
    if (core->stopping) return fetch_refuse(peer, frame, LEAT_E_STARTING, "the server is stopping");
    struct leat_fetch *fetch = NULL;
    leat_err rc = fetch_parse(peer, frame, &fetch, &error);
    if (rc == LEAT_E_AGAIN) return LEAT_HELD;
    if (rc != LEAT_OK) {
        if (fetch != NULL) fetch_free(fetch);
        return fetch_refuse(peer, frame, rc, error.text);
    }
    fetch->number = frame->request;
    leat_fetch_start(fetch);
    return LEAT_HANDLED;
}

void leat_fetch_start(struct leat_fetch *fetch)
{
    if (leat_peer_is_slow(fetch->peer))
        leat_list_push_back(&fetch->core->deferred_fetches, &fetch->link);
    else
        fetch_run(fetch);
}

struct leat_fetch *leat_fetch_begin(struct leat_peer *peer, uint32_t log_count, uint32_t min_bytes,
                                    uint32_t max_bytes, uint32_t wait_ms,
                                    void (*on_ready)(struct leat_fetch *fetch), void *owner)
{
    struct leat_core *core = peer->core;
    LEAT_ASSERT_CMP(log_count, <=, LEAT_CORE_FETCH_ITEMS_MAX);
    uint32_t items_wanted = log_count > LEAT_FETCH_LOGS_MAX ? log_count : LEAT_FETCH_LOGS_MAX;
    if (core->fetch_pool.left == 0 || core->item_pool.left < items_wanted) {
        leat_peer_pause(peer, LEAT_PAUSE_STARVED);
        leat_list_remove(&peer->starved);
        leat_list_push_back(&core->starved_peers, &peer->starved);
        return NULL;
    }
    struct leat_fetch *fetch = leat_stock_take(&core->fetch_pool);
    memset(fetch, 0, sizeof *fetch);
    leat_list_init(&fetch->link);
    fetch->core = core;
    fetch->peer = peer;
    fetch->on_ready = on_ready;
    fetch->owner = owner;
    fetch->items_tail = &fetch->items;
    fetch->timer.on_expired = fetch_on_timer;
    fetch->timer.owner = fetch;
    leat_list_init(&fetch->confirm.link);
    fetch->confirm.on_done = fetch_on_confirmed;
    fetch->confirm.owner = fetch;
    leat_list_push_back(&core->fetches, &fetch->by_core);
    leat_peer_begin(peer);
    fetch->max_bytes = max_bytes < LEAT_FETCH_BYTES_MAX ? max_bytes : LEAT_FETCH_BYTES_MAX;
    if (fetch->max_bytes == 0) fetch->max_bytes = 1;
    fetch->min_bytes = min_bytes < fetch->max_bytes ? min_bytes : fetch->max_bytes;
    if (wait_ms > LEAT_FETCH_WAIT_MS_MAX) wait_ms = LEAT_FETCH_WAIT_MS_MAX;
    fetch->over_deadline = wait_ms == 0 || fetch->min_bytes == 0;
    if (!fetch->over_deadline) fetch->deadline_us = leat_core_now(core) + wait_ms * 1000ull;
    return fetch;
}

struct leat_fetch_item *leat_fetch_add(struct leat_fetch *fetch,
                                       const struct leat_msg_fetch_log *want, uint32_t max_bytes)
{
    struct leat_core *core = fetch->core;
    struct leat_fetch_item *item = leat_stock_take(&core->item_pool);
    LEAT_ASSERT(item != NULL);
    memset(item, 0, sizeof *item);
    leat_list_init(&item->waiting);
    item->fetch = fetch;
    item->want = *want;
    item->max_bytes = max_bytes;
    *fetch->items_tail = item;
    fetch->items_tail = &item->next;
    fetch->item_count++;
    item->refused = leat_hosted_route(core, want->log, want->epoch, &item->home, NULL);
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
    leat_msg_fetch_read(&reader, &body);
    if (reader.failed)
        return leat_error_set(error, LEAT_E_INVALID,
                              "the control body of a fetch is not [min bytes, max bytes, wait ms, "
                              "[log...]]");
    if (body.log_count == 0 || body.log_count > LEAT_FETCH_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a fetch names 1 to %d logs, not %u",
                              LEAT_FETCH_LOGS_MAX, body.log_count);
    struct leat_fetch *fetch = leat_fetch_begin(peer, body.log_count, body.min_bytes,
                                                body.max_bytes, body.wait_ms, NULL, NULL);
    if (fetch == NULL) return LEAT_E_AGAIN;
    *out_fetch = fetch;
    for (uint32_t i = 0; i < body.log_count; i++) {
        struct leat_msg_fetch_log want = {0};
        leat_msg_fetch_log_read(&reader, &want);
        if (reader.failed)
            return leat_error_set(error, LEAT_E_INVALID,
                                  "log %u of the fetch is not [stream, streamlet, log, epoch, "
                                  "from]",
                                  i + 1);
        leat_fetch_add(fetch, &want, UINT32_MAX);
    }
    return LEAT_OK;
}

/* ---- one round over all logs ---- */

static void fetch_run(struct leat_fetch *fetch)
{
    LEAT_ASSERT(fetch->reads == NULL && fetch->watches_out == 0);
    fetch->state = LEAT_FETCH_RUNNING;
    fetch->called = false;
    fetch->bytes = 0;
    fetch->records = 0;
    fetch->refused = false;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        item->result.code = LEAT_OK;
        item->result.bytes = 0;
        item->watch_from = item->want.offset;
    }
    fetch->at = fetch->items;
    while (fetch->at != NULL)
        if (!fetch_read_at(fetch)) return; /* goes on in fetch_read_back() */
    fetch_finish(fetch);
}

/* Whoever stops taking its answers keeps the structs that they were read with until it is closed. So
 * nobody's answers may hold more than are left for all others: one connection's half of them, two a
 * third each, and there are always some (Choudhury and Hahne, Dynamic Queue Length Thresholds for
 * Shared-Memory Packet Switches, ToN 6(2), 1998). It then waits until its own have been sent.
 *
 * SUBTLE: only what the network has been given counts, because only of that the end is told without
 * anybody else's doing: an answer that waits for an earlier one of its connection might be waiting
 * for this very fetch. */
static bool peer_holds_enough(const struct leat_fetch *fetch)
{
    const struct leat_peer *peer = fetch->peer;
    return peer != NULL && peer->reads > 0 && peer->reads >= fetch->core->read_pool.left;
}

/* Take one step at fetch->at; false: it is under way elsewhere. */
static bool fetch_read_at(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    struct leat_fetch_item *item = fetch->at;
    if (item->refused != LEAT_OK) {
        item->result.code = item->refused;
        fetch->refused = true;
        fetch->at = item->next;
        return true;
    }
    if (peer_holds_enough(fetch)) {
        fetch->called = false;
        if (fetch->bytes > 0) {
            fetch->at = NULL; /* as below */
            return true;
        }
        leat_list_push_back(&fetch->peer->limited, &fetch->link);
        return false;
    }
    bool my_turn = fetch->called || leat_list_empty(&core->starved_reads);
    struct leat_fetch_read *read = my_turn ? leat_stock_take(&core->read_pool) : NULL;
    if (read == NULL) {
        fetch->called = false;
        /* What there is goes out; only a request that has nothing waits for a struct. */
        if (fetch->bytes > 0) {
            fetch->at = NULL;
            return true;
        }
        leat_list_push_back(&core->starved_reads, &fetch->link);
        return false;
    }
    read->fetch = fetch;
    read->item = item;
    read->next = NULL;
    read->home = &core->node->cores[item->home];
    read->rc = LEAT_OK;
    read->read.by_position = item->want.by_position && item->result.bytes == 0;
    read->read.from.v = item->result.bytes == 0 ? item->want.offset : item->watch_from;
    read->read.position = item->want.position;
    /* Nothing but the two ends of the log once there is enough: its next request brings the rest */
    read->read.max_bytes = fetch->max_bytes > fetch->bytes ? fetch->max_bytes - fetch->bytes : 0;
    uint32_t item_left =
        item->max_bytes > item->result.bytes ? item->max_bytes - item->result.bytes : 0;
    if (read->read.max_bytes > item_left) read->read.max_bytes = item_left;
    read->read.disk_buffer = NULL;
    read->read.disk_buffer_bytes = 0;
    read->read.pinned = NULL;
    read->read.bytes = 0;
    read->read.iov_count = 0;
    read->read.phase = 0;
    leat_list_init(&read->read.link);
    if (item->home == core->index) {
        fetch_read_here(read);
        if (read->rc == LEAT_E_AGAIN) return false;
        return fetch_take_result(read);
    }
    fetch_begin_read(read);
    return false;
}

static void fetch_deliver_read(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_read *read = LEAT_CONTAINER(mail, struct leat_fetch_read, mail);
    LEAT_ASSERT(actor == read->home);
    fetch_read_here(read);
    if (read->rc != LEAT_E_AGAIN) fetch_read_back(read);
}

/* Mail it to the log's core. */
static void fetch_begin_read(struct leat_fetch_read *read)
{
    leat_core_mail(read->fetch->core, read->home->index, &read->mail, fetch_deliver_read);
}

static void fetch_note_ends(struct leat_fetch_read *read, const struct leat_log *log)
{
    struct leat_log_info info;
    leat_log_info(log, &info);
    read->first_offset = info.first_offset;
    read->acked_offset = info.acked_offset;
}

/* A segment in front that had not come when it was looked for last: it is looked for now, and the read
 * waits for that. true: it does. */
static bool fetch_look_older(struct leat_fetch_read *read, struct leat_hosted *hosted)
{
    const struct leat_segment *first = leat_log_first_held(hosted->log);
    uint64_t now_us = leat_core_now(hosted->core);
    if (read->read.rc != LEAT_E_DAMAGED || !hosted->older_asked || first == NULL) return false;
    if (read->read.next.v > first->base_offset) return false;
    if (now_us < hosted->older_looked_us + LEAT_OLDER_READ_US) return false;
    hosted->older_looked_us = now_us;
    leat_log_older_again(hosted->log);
    leat_takeover_older(hosted);
    if (hosted->older_asked) leat_log_older_done(hosted->log); /* not now */
    return leat_log_read(hosted->log, &read->read) == LEAT_E_AGAIN;
}

/* What a node has that is down is not lost: nobody is told to begin behind it, or to give it up. */
static void fetch_hope(struct leat_fetch_read *read, const struct leat_hosted *hosted)
{
    const struct leat_segment *first = leat_log_first_held(hosted->log);
    if (read->read.rc != LEAT_E_DAMAGED || !hosted->older_away || first == NULL) return;
    if (read->read.next.v <= first->base_offset) read->read.rc = LEAT_E_STARTING;
}

/* On the log's core. read->rc AGAIN: the disk is asked. */
static void fetch_read_here(struct leat_fetch_read *read)
{
    struct leat_core *home = read->home;
    struct leat_hosted *hosted = leat_hosted_find(home, read->item->want.log);
    if (hosted == NULL || hosted->going) {
        /* going: stopped, deleted, or being made anew after accepted loss */
        read->rc = leat_hosted_absent(home, read->item->want.log);
        return;
    }
    fetch_note_ends(read, hosted->log);
    read->rc = LEAT_OK;
    read->read.rc = LEAT_OK;
    if (read->read.max_bytes == 0) return;
    read->read.on_done = fetch_on_read;
    read->read.owner = read;
    if (leat_log_read(hosted->log, &read->read) == LEAT_E_AGAIN || fetch_look_older(read, hosted)) {
        read->rc = LEAT_E_AGAIN;
        if (leat_log_reads_wait(hosted->log)) leat_hosted_watch(hosted); /* not for ever */
    } else {
        fetch_hope(read, hosted);
    }
}

static void fetch_on_read(struct leat_read *done)
{
    struct leat_fetch_read *read = done->owner;
    /* Meanwhile it may have been found out what is missing in front. */
    fetch_note_ends(read, done->log);
    const struct leat_hosted *hosted = leat_hosted_find(read->home, read->item->want.log);
    if (hosted != NULL && hosted->log == done->log) fetch_hope(read, hosted);
    read->rc = LEAT_OK;
    fetch_read_back(read);
}

static void fetch_goes_on(struct leat_fetch_read *read)
{
    struct leat_fetch *fetch = read->fetch;
    if (!fetch_take_result(read)) return;
    while (fetch->at != NULL)
        if (!fetch_read_at(fetch)) return;
    fetch_finish(fetch);
}

static void fetch_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_read *read = LEAT_CONTAINER(mail, struct leat_fetch_read, mail);
    LEAT_ASSERT(actor == read->fetch->core);
    fetch_goes_on(read);
}

/* A read that did not end at once has ended, on the log's core. */
static void fetch_read_back(struct leat_fetch_read *read)
{
    struct leat_core *core = read->fetch->core;
    if (read->home == core)
        fetch_goes_on(read);
    else
        leat_core_mail(read->home, core->index, &read->mail, fetch_deliver_back);
}

static void fetch_on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    struct leat_fetch_read *read = wait->owner;
    read->read.disk_buffer = buffer;
    read->read.disk_buffer_bytes = LEAT_DISK_BUFFER_BYTES;
    /* By mail even to oneself: the giver of the buffer is in the middle of something. */
    fetch_begin_read(read);
}

/* The bytes have left memory: again, with a buffer. */
static void fetch_again_with_buffer(struct leat_fetch_read *read)
{
    struct leat_core *core = read->fetch->core;
    void *buffer = leat_core_buffer_try(core);
    leat_list_init(&read->buffer_wait.link);
    read->buffer_wait.on_buffer = fetch_on_buffer;
    read->buffer_wait.owner = read;
    if (buffer != NULL)
        fetch_on_buffer(&read->buffer_wait, buffer);
    else
        leat_core_buffer_wait(core, &read->buffer_wait);
}

/* On the request's core: enter what a read brought. false: it has to be made again. */
static bool fetch_take_result(struct leat_fetch_read *read)
{
    struct leat_fetch *fetch = read->fetch;
    struct leat_fetch_item *item = read->item;
    leat_err code = read->rc != LEAT_OK ? read->rc : read->read.rc;
    if (code == LEAT_E_NO_MEMORY && read->read.disk_buffer == NULL && read->rc == LEAT_OK) {
        if (fetch->bytes == 0) {
            fetch_again_with_buffer(read);
            return false;
        }
        /* What lies in memory goes out now; the rest begins the next request. */
        code = LEAT_OK;
        read->read.bytes = 0;
        read->read.max_bytes = 0;
    }
    if (read->rc == LEAT_OK) {
        item->result.first_offset = read->first_offset;
        item->result.acked_offset = read->acked_offset;
    }
    if (code != LEAT_OK && item->result.bytes == 0) {
        item->result.code = code;
        item->result.resume = code == LEAT_E_DAMAGED ? read->read.next.v : 0;
        fetch->refused = true;
    }
    uint32_t bytes = code == LEAT_OK ? read->read.bytes : 0;
    fetch->at = item->next;
    if (bytes == 0) {
        /* Where nothing is left of a group, or offsets jump, the place moves on all the same. */
        if (code == LEAT_OK && read->read.max_bytes > 0 && item->result.bytes == 0)
            item->result.next = read->read.next_position;
        /* Offsets were given up, and nothing has come behind them yet. */
        if (code == LEAT_OK && read->read.max_bytes > 0 && item->result.bytes == 0 &&
            !item->want.by_position && read->read.next.v > item->want.offset)
            item->result.resume = read->read.next.v;
        fetch_release_read(read);
        return true;
    }
    item->result.bytes += bytes;
    item->result.next = read->read.next_position;
    item->watch_from = read->read.next.v;
    fetch->bytes += bytes;
    fetch->records += read->read.record_count;
    if (fetch->reads_last != NULL)
        fetch->reads_last->next = read;
    else
        fetch->reads = read;
    fetch->reads_last = read;
    if (read->read.pinned != NULL && read->read.disk_buffer != NULL) {
        leat_core_buffer_give(fetch->core, read->read.disk_buffer);
        read->read.disk_buffer = NULL;
    }
    /* The next segment of the same log, while there is room and it comes from memory. Who reads by
     * position may own only this group (parallel mode), so that ends at the group's end. */
    bool group_left =
        item->want.by_position && read->read.next_position.group != item->want.position.group;
    if (fetch->bytes < fetch->max_bytes && item->result.bytes < item->max_bytes &&
        read->read.next.v < read->acked_offset && read->read.disk_buffer == NULL && !group_left)
        fetch->at = item;
    return true;
}

/* ---- an offset is too high ----
 * Readers that are told so begin elsewhere. Those by position only wait for what they asked for. */

static bool item_is_too_high(const struct leat_fetch_item *item)
{
    return item->result.code == LEAT_E_OFFSET_OUT_OF_RANGE && item->refused == LEAT_OK &&
           !item->want.by_position && !item->confirmed &&
           item->want.offset > item->result.acked_offset;
}

static bool fetch_is_too_high(const struct leat_fetch *fetch)
{
    for (const struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next)
        if (item_is_too_high(item)) return true;
    return false;
}

/* Who was the owner, behind the look at the log, has every record that had been acked by then: there
 * is no such offset. Who was not, or can't know, must not say so. */
static void fetch_on_confirmed(struct leat_confirm *confirm, leat_err rc)
{
    struct leat_fetch *fetch = confirm->owner;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        if (!item_is_too_high(item)) continue;
        uint32_t home;
        item->confirmed = true;
        item->refused = rc != LEAT_OK ? LEAT_E_STARTING
                                      : leat_hosted_route(fetch->core, item->want.log,
                                                          item->want.epoch, &home, NULL);
    }
    fetch->state = LEAT_FETCH_UNWATCHING;
    leat_list_push_back(&fetch->core->ready_fetches, &fetch->link);
}

/* ---- enough, or not yet ---- */

static void fetch_finish(struct leat_fetch *fetch)
{
    if (fetch->peer == NULL) {
        fetch_drop_reads(fetch);
        fetch_free(fetch);
        return;
    }
    if (leat_confirm_needed(fetch->core) && fetch_is_too_high(fetch)) {
        /* What was read is read again: nobody's segments are held so long. */
        fetch_drop_reads(fetch);
        fetch->state = LEAT_FETCH_CONFIRMING;
        leat_confirm_ask(fetch->core, &fetch->confirm);
        return;
    }
    if (fetch->bytes < fetch->min_bytes && !fetch->over_deadline && !fetch->refused &&
        !fetch->core->stopping) {
        fetch_drop_reads(fetch);
        fetch_wait(fetch);
        return;
    }
    if (fetch->on_ready == NULL) {
        fetch_answer(fetch);
        return;
    }
    fetch->state = LEAT_FETCH_READY;
    fetch->on_ready(fetch);
}

/* All that wait for its peer's own reads look again: the first may turn out to have nothing to send,
 * and then nobody would call the next. */
static void fetch_call_limited(struct leat_fetch *fetch)
{
    struct leat_list *link;
    if (peer_holds_enough(fetch)) return;
    while ((link = leat_list_pop_front(&fetch->peer->limited)) != NULL)
        leat_list_push_back(&fetch->core->ready_fetches, link);
}

static void fetch_on_sent(struct leat_send *send, leat_err rc)
{
    struct leat_fetch_read *read = send->owner;
    struct leat_fetch *fetch = read->fetch;
    (void)rc; /* the peer learns of its end by on_closed */
    fetch_release_read(read);
    if (fetch->peer != NULL) {
        fetch->peer->reads--;
        fetch_call_limited(fetch);
        leat_peer_drained(fetch->peer);
    }
    if (--fetch->sends_left == 0 && fetch->state == LEAT_FETCH_SENDING) fetch_free(fetch);
}

/* The sentence of a refusal is made when it is written, from what holds then. */
static void fetch_write_row(struct leat_msg_writer *writer, struct leat_fetch_item *item)
{
    struct leat_msg_fetched row = item->result;
    struct leat_error error = {LEAT_OK, ""};
    uint32_t home;
    leat_err now = row.code;
    if (item->refused != LEAT_OK) {
        now = leat_hosted_route(item->fetch->core, item->want.log, item->want.epoch, &home, &error);
        if (item->confirmed && row.code == LEAT_E_STARTING && now != row.code)
            now = leat_error_set(&error, row.code,
                                 "the offset is beyond what this node has, and whether it is still "
                                 "the owner can't be found out now: try again");
    } else if (row.code == LEAT_E_STARTING || row.code == LEAT_E_UNKNOWN_STREAM) {
        leat_error_set(&error, row.code, "%s", leat_hosted_absent_words(row.code));
    }
    if (row.code != LEAT_OK && now == row.code)
        row.text = (struct leat_msg_string){error.text, (uint32_t)strlen(error.text)};
    leat_msg_fetched_write(writer, &row);
}

static void fetch_answer(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    leat_msg_write_array(&writer, fetch->item_count);
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
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    struct leat_fetch_read *read;
    if (peer == NULL || peer->closing) return;
    while ((read = fetch->reads) != NULL && read->item == item) {
        fetch->reads = read->next;
        if (fetch->reads == NULL) fetch->reads_last = NULL;
        fetch->sends_left++;
        read->send.iovs = read->read.iovs;
        read->send.iov_count = read->read.iov_count;
        read->send.on_sent = fetch_on_sent;
        read->send.owner = read;
        leat_peer_owes(peer);
        peer->reads++;
        core->net->send(peer->conn, &read->send);
    }
}

void leat_fetch_end(struct leat_fetch *fetch)
{
    struct leat_counters *totals = &fetch->core->counters;
    fetch->state = LEAT_FETCH_SENDING;
    fetch_drop_reads(fetch);
    if (fetch->sends_left == 0) {
        fetch_free(fetch);
        return;
    }
    atomic_fetch_add_explicit(&totals->fetched_records, fetch->records, memory_order_relaxed);
    atomic_fetch_add_explicit(&totals->fetched_bytes, fetch->bytes, memory_order_relaxed);
}

static void fetch_drop_reads(struct leat_fetch *fetch)
{
    struct leat_fetch_read *read = fetch->reads;
    fetch->reads = fetch->reads_last = NULL;
    while (read != NULL) {
        struct leat_fetch_read *next = read->next;
        fetch_release_read(read);
        read = next;
    }
}

static void fetch_release_read(struct leat_fetch_read *read)
{
    struct leat_core *core = read->fetch->core;
    if (read->read.pinned != NULL) leat_segment_unpin(read->read.pinned, core->env->post);
    read->read.pinned = NULL;
    if (read->read.disk_buffer != NULL) leat_core_buffer_give(core, read->read.disk_buffer);
    read->read.disk_buffer = NULL;
    leat_stock_give(&core->read_pool, read); /* who waits for one goes on at the end of this turn */
}

static void fetch_free(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    struct leat_peer *peer = fetch->peer;
    leat_timer_stop(&core->timers, &fetch->timer);
    leat_list_remove(&fetch->link);
    leat_list_remove(&fetch->by_core);
    leat_list_remove(&fetch->confirm.link);
    struct leat_fetch_item *item = fetch->items;
    while (item != NULL) {
        struct leat_fetch_item *next = item->next;
        LEAT_ASSERT_CMP(item->mails_out, ==, 0);
        leat_stock_give(&core->item_pool, item);
        item = next;
    }
    leat_stock_give(&core->fetch_pool, fetch);
    if (peer != NULL) leat_peer_end(peer);
}

/* ---- long poll ---- */

/* On the log's core: is it past `watch_from` already? Else stand in line. */
static bool item_watch(struct leat_core *home, struct leat_fetch_item *item)
{
    struct leat_hosted *hosted = leat_hosted_find(home, item->want.log);
    if (hosted == NULL || hosted->going || home->stopping) return false;
    if (leat_log_acked_offset(hosted->log) > item->watch_from) return false;
    leat_list_push_back(&hosted->waiters, &item->waiting);
    return true;
}

static void item_deliver_tell(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, tell);
    (void)actor;
    item->mails_out--;
    item->fetch->watches_out--;
    fetch_wake(item->fetch);
}

static void item_deliver_ask(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, ask);
    if (!item_watch(home, item))
        leat_core_mail(home, item->fetch->core->index, &item->tell, item_deliver_tell);
}

static void item_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, cancel);
    (void)actor;
    item->mails_out--;
    if (item->watch_ended) {
        item->mails_out--;
        item->fetch->watches_out--;
    }
    item->fetch->watches_out--;
    fetch_wake(item->fetch);
}

static void item_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, cancel);
    item->watch_ended = !leat_list_empty(&item->waiting);
    leat_list_remove(&item->waiting);
    leat_core_mail(home, item->fetch->core->index, &item->cancel, item_deliver_cancelled);
}

static void fetch_wait(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    uint64_t now = leat_core_now(core);
    fetch->state = LEAT_FETCH_WAITING;
    if (now >= fetch->deadline_us) {
        fetch->over_deadline = true;
    } else if (!leat_timer_armed(&fetch->timer)) {
        leat_timer_start(&core->timers, &fetch->timer, fetch->deadline_us - now);
    }
    bool woken = fetch->over_deadline;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        /* From an application offset nothing tells what comes next: any move wakes. */
        if (item->want.by_position && item->watch_from == item->want.offset)
            item->watch_from = item->result.acked_offset;
        if (item->home != core->index) {
            item->mails_out++;
            item->watch_ended = false;
            fetch->watches_out++;
            leat_core_mail(core, item->home, &item->ask, item_deliver_ask);
        } else if (!item_watch(core, item)) {
            woken = true;
        }
    }
    if (woken) fetch_wake(fetch);
}

/* Something moved, or time is up, or a watch came back. */
static void fetch_wake(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    if (fetch->state == LEAT_FETCH_WAITING) {
        fetch->state = LEAT_FETCH_UNWATCHING;
        fetch_unwatch(fetch);
    }
    if (fetch->state == LEAT_FETCH_UNWATCHING && fetch->watches_out == 0 &&
        leat_list_empty(&fetch->link))
        leat_list_push_back(&core->ready_fetches, &fetch->link);
}

static void fetch_unwatch(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        if (item->home == core->index) {
            leat_list_remove(&item->waiting);
        } else if (item->mails_out > 0) {
            item->mails_out++;
            fetch->watches_out++;
            leat_core_mail(core, item->home, &item->cancel, item_deliver_cancel);
        }
    }
}

/* A log's acked end moved: on the log's core. */
void leat_fetch_on_acked(struct leat_hosted *hosted)
{
    struct leat_core *core = hosted->core;
    struct leat_list *link;
    while ((link = leat_list_pop_front(&hosted->waiters)) != NULL) {
        struct leat_fetch_item *item = LEAT_CONTAINER(link, struct leat_fetch_item, waiting);
        if (item->fetch->core == core)
            fetch_wake(item->fetch);
        else
            leat_core_mail(core, item->fetch->core->index, &item->tell, item_deliver_tell);
    }
}

static void fetch_on_timer(struct leat_timer *timer)
{
    struct leat_fetch *fetch = timer->owner;
    fetch->over_deadline = true;
    fetch_wake(fetch);
}

/* ---- at the end of a turn ---- */

/* As many of those who wait for a struct to read with as there are structs. Counted anew each time,
 * because a call can be in vain: its fetch may be gone, or a newcomer was faster. Were it not, all
 * structs could lie free while everybody stands in line behind everybody else. */
static bool fetch_call_starved(struct leat_core *core)
{
    uint32_t count = 0;
    struct leat_list *link;
    while (count < core->read_pool.left &&
           (link = leat_list_pop_front(&core->starved_reads)) != NULL) {
        LEAT_CONTAINER(link, struct leat_fetch, link)->called = true;
        leat_list_push_back(&core->ready_fetches, link);
        count++;
    }
    return count > 0;
}

static void fetch_run_ready_once(struct leat_core *core)
{
    struct leat_list now;
    leat_list_init(&now);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&core->ready_fetches)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, link);
        if (fetch->state == LEAT_FETCH_RUNNING) {
            /* It waited for a struct to read with. */
            while (fetch->at != NULL)
                if (!fetch_read_at(fetch)) break;
            if (fetch->at == NULL) fetch_finish(fetch);
        } else if (fetch->peer == NULL) {
            fetch_free(fetch);
        } else if (leat_peer_is_slow(fetch->peer)) {
            leat_list_push_back(&core->deferred_fetches, &fetch->link);
        } else {
            fetch_run(fetch);
        }
    }
}

void leat_fetch_run_ready(struct leat_core *core)
{
    fetch_call_starved(core);
    do {
        fetch_run_ready_once(core);
    } while (fetch_call_starved(core));
}

/* Slow readers have been looked at: who takes bytes again is fetched for again. */
void leat_fetch_undefer(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->deferred_fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, link);
        if (fetch->peer != NULL && !leat_list_empty(&fetch->peer->slow)) continue;
        leat_list_remove(&fetch->link);
        fetch->state = LEAT_FETCH_UNWATCHING;
        leat_list_push_back(&core->ready_fetches, &fetch->link);
    }
}

void leat_fetch_peer_closed(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    LEAT_LIST_EACH(&core->fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, by_core);
        if (fetch->peer != peer) continue;
        fetch->peer = NULL;
        leat_peer_end(peer);
        if (fetch->state == LEAT_FETCH_WAITING) {
            fetch_wake(fetch);
        } else if (fetch->state == LEAT_FETCH_READY) {
            leat_fetch_end(fetch);
        } else if (fetch->state == LEAT_FETCH_CONFIRMING ||
                   (fetch->state != LEAT_FETCH_SENDING && !leat_list_empty(&fetch->link))) {
            /* Also deferred, or waiting for a struct: nothing is under way. */
            fetch_free(fetch);
        }
    }
}

void leat_fetch_stop(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, by_core);
        fetch->over_deadline = true;
        if (fetch->state == LEAT_FETCH_WAITING) fetch_wake(fetch);
        if (fetch->state != LEAT_FETCH_CONFIRMING) continue;
        leat_list_remove(&fetch->confirm.link);
        fetch_on_confirmed(&fetch->confirm, LEAT_E_STARTING);
    }
}
