/* SPDX-License-Identifier: Apache-2.0 */
/* Append: from a frame's bytes to a log's head, and back to an answer. The hot path: nothing here
 * allocates while requests go to the core their log lives on and are not refused. */
#include "broker/data/append.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/stream.h"

_Static_assert(sizeof(struct leat_append_request) == LEAT_APPEND_REQUEST_BYTES, "stock.h");
_Static_assert(sizeof(struct leat_append_part) == LEAT_APPEND_PART_BYTES, "stock.h");

static struct leat_append_request *append_begin(struct leat_peer *peer,
                                                const struct leat_frame *frame);
static leat_err append_step(struct leat_append_request *request, const uint8_t *payload,
                            uint32_t payload_bytes);
static void append_refuse_rest(struct leat_append_request *request, leat_err rc,
                               const struct leat_error *error);
static void append_on_acked(struct leat_append *append, leat_err rc);
static void append_on_confirmed(struct leat_append *append, leat_err rc);
static void append_on_owner(struct leat_confirm *confirm, leat_err rc);
static void append_finish(struct leat_append_request *request);
static void append_free(struct leat_append_request *request);
static leat_err append_route(struct leat_append_request *request, struct leat_log_ref ref,
                             uint32_t epoch, uint32_t batch_count, struct leat_error *error);
static leat_err append_forward(struct leat_append_request *request, const uint8_t *payload,
                               uint32_t payload_bytes);
static leat_err append_unpack_all(struct leat_append_request *request, const uint8_t *payload,
                                  uint32_t payload_bytes);
static void append_wait(struct leat_core *core, struct leat_partition *partition,
                        struct leat_room_wait *room);
static void append_unhold(struct leat_peer *peer);
static void append_release_now(struct leat_peer *peer);

enum {
    /* Header, array, error string; and per batch [code, offset] at most 1 + 5 + 9 bytes. */
    APPEND_ANSWER_FIXED_BYTES = LEAT_FRAME_HEADER_BYTES + 5 + LEAT_ERROR_TEXT_BYTES + 3,
    APPEND_ANSWER_BATCH_BYTES = 15,
    APPEND_FEED_BYTES = 16 * 1024, /* answers gathered before they are copied to the connection */
};

/* ---- a frame ---- */

enum leat_handled leat_append_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_append_request *request = peer->append_now;
    if (request == NULL) request = append_begin(peer, frame);
    if (request == NULL) return LEAT_HELD;
    return leat_append_take(request, frame->payload, frame->payload_bytes);
}

enum leat_handled leat_append_take(struct leat_append_request *request, const uint8_t *payload,
                                   uint32_t payload_bytes)
{
    LEAT_ASSERT_OWNER(request->core);
    struct leat_peer *peer = request->peer;
    struct leat_core *core = request->core;
    if (request != peer->append_now) {
        if (request->done) return LEAT_HANDLED;
    } else if (request->refused) {
        /* The request waited too long for room and was refused meanwhile; its frame still lay in the port. */
        append_release_now(peer);
        return LEAT_HANDLED;
    }

    bool away = request->home != core;
    leat_err rc = away ? append_unpack_all(request, payload, payload_bytes)
                       : append_step(request, payload, payload_bytes);
    if (rc == LEAT_E_AGAIN) {
        peer->append_now = request;
        peer->room.peer = peer;
        leat_peer_pause(peer, LEAT_PAUSE_ROOM);
        append_wait(core, leat_unpack_waits(peer) ? NULL : leat_partition_find(core, request->ref),
                    &peer->room);
        return LEAT_HELD;
    }
    if (!away) {
        append_release_now(peer);
        return LEAT_HANDLED;
    }
    append_unhold(peer); /* before the request is sent: then it belongs to another core */
    rc = append_forward(request, payload, payload_bytes);
    if (rc != LEAT_OK) append_refuse_rest(request, rc, NULL);
    return LEAT_HANDLED;
}

static void append_unhold(struct leat_peer *peer)
{
    if (peer->append_now == NULL) return;
    leat_unpack_leave(peer);
    peer->append_now = NULL;
    peer->room.deadline_us = 0;
}

/* The request's frame is consumed: the request may be answered and freed. */
static void append_release_now(struct leat_peer *peer)
{
    struct leat_append_request *request = peer->append_now;
    append_unhold(peer);
    if (request != NULL && request->done) append_finish(request);
}

/* The structs are there: a request that has begun never waits for structs. */
static void append_take_parts(struct leat_append_request *request, uint32_t more)
{
    struct leat_append_part *tail = &request->first;
    for (uint32_t i = 0; i < more; i++) {
        struct leat_append_part *part =
            leat_stock_take(&request->core->part_pool, request->peer->sharer);
        LEAT_ASSERT(part != NULL);
        part->request = request;
        part->next = NULL;
        part->unpacked = LEAT_E_AGAIN;
        tail->next = part;
        tail = part;
    }
}

/* The structs of a request, of both kinds at once. NULL: the peer is paused, and its frame comes again at its turn. */
static struct leat_append_request *append_take_structs(struct leat_peer *peer, bool only,
                                                       uint32_t batch_count)
{
    struct leat_core *core = peer->core;
    struct leat_stock *parts = &core->part_pool;
    const bool many = batch_count > 1 && batch_count <= LEAT_APPEND_BATCHES_MAX;
    const uint32_t more = many ? batch_count - 1 : 0;
    if (many && (!leat_stock_admits(parts, peer, only, more) ||
                 !leat_stock_widen(parts, peer, only, more))) {
        leat_stock_wait(parts, peer, only, more);
        return NULL;
    }
    struct leat_append_request *request = leat_stock_take_for(&core->append_pool, peer, only);
    if (request == NULL) {
        leat_stock_narrow(parts, peer);
        return NULL;
    }
    /* Everything before `first` is set here; the rest is when it is used. */
    memset(request, 0, offsetof(struct leat_append_request, first));
    request->core = request->home = core;
    request->peer = peer;
    request->last = &request->first;
    request->first.request = request;
    request->first.next = NULL;
    request->first.unpacked = LEAT_E_AGAIN;
    leat_list_init(&request->room.by_log);
    leat_list_init(&request->room.by_time);
    append_take_parts(request, more);
    return request;
}

static struct leat_append_request *append_begin(struct leat_peer *peer,
                                                const struct leat_frame *frame)
{
    struct leat_msg_append body;
    leat_err rc = leat_msg_append_decode(frame->control, frame->control_bytes, &body);
    struct leat_append_request *request =
        append_take_structs(peer, peer->requests == 0, rc == LEAT_OK ? body.batch_count : 1);
    if (request == NULL) return NULL;
    request->number = frame->request;
    leat_peer_begin(peer);
    if (peer->append_last != NULL)
        peer->append_last->next = request;
    else
        peer->append_first = request;
    peer->append_last = request;

    struct leat_error error = {LEAT_OK, ""};
    if (rc != LEAT_OK)
        leat_error_set(&error, rc,
                       "the control body of an append is not [stream, streamlet, log, "
                       "epoch, batches]");
    else
        rc = append_route(request, body.log, body.epoch, body.batch_count, &error);
    if (rc != LEAT_OK) append_refuse_rest(request, rc, &error);
    return request;
}

static leat_err append_route(struct leat_append_request *request, struct leat_log_ref ref,
                             uint32_t epoch, uint32_t batch_count, struct leat_error *error)
{
    struct leat_core *core = request->core;
    uint32_t home = core->index;
    if (batch_count == 0 || batch_count > LEAT_APPEND_BATCHES_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "an append carries 1 to %d batches, not %u",
                              LEAT_APPEND_BATCHES_MAX, batch_count);
    if (core->stopping) return leat_error_set(error, LEAT_E_STARTING, "the server is stopping");
    leat_err rc = leat_partition_route(core, ref, epoch, &home, error);
    if (rc != LEAT_OK) return rc;
    request->ref = ref;
    request->batch_count = batch_count;
    request->home = &core->node->cores[home];
    return LEAT_OK;
}

struct leat_append_request *leat_append_begin(struct leat_peer *peer, bool only,
                                              struct leat_log_ref ref, uint32_t epoch,
                                              uint32_t batch_count,
                                              void (*on_done)(struct leat_append_request *request),
                                              void *owner)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_append_request *request = append_take_structs(peer, only, batch_count);
    struct leat_error error = {LEAT_OK, ""};
    if (request == NULL) return NULL;
    request->on_done = on_done;
    request->owner = owner;
    leat_err rc = append_route(request, ref, epoch, batch_count, &error);
    if (rc != LEAT_OK) append_refuse_rest(request, rc, &error);
    return request;
}

void leat_append_end(struct leat_append_request *request)
{
    LEAT_ASSERT_OWNER(request->core);
    LEAT_ASSERT(request->done && request->on_done != NULL);
    append_free(request);
}

/* ---- the check of batches ---- */

/* LEAT_E_AGAIN: other batches come first. */
static leat_err append_unpack(struct leat_append_request *request, struct leat_append_part *part,
                              const struct leat_stream *stream, struct leat_batch *batch,
                              struct leat_error *error)
{
    if (stream == NULL || stream->desc->settings.validate != LEAT_VALIDATE_FULL) return LEAT_OK;
    if (part->unpacked == LEAT_E_AGAIN) {
        leat_err rc = leat_unpack(request->peer, batch, error);
        if (rc != LEAT_OK) return rc;
        part->unpacked = LEAT_OK;
        part->max_timestamp_ms = batch->max_timestamp_ms;
    }
    batch->max_timestamp_ms = part->max_timestamp_ms;
    return LEAT_OK;
}

/* Of a request for another core: the log's core appends the batches that are found right here, and refuses the rest. */
static leat_err append_unpack_all(struct leat_append_request *request, const uint8_t *payload,
                                  uint32_t payload_bytes)
{
    const struct leat_stream *stream = leat_stream_find(request->core, request->ref.stream);
    struct leat_append_part *part = &request->first;
    for (uint32_t i = 0, at = 0; i < request->batch_count; i++, part = part->next) {
        uint64_t bytes = leat_batch_bytes(payload + at, payload_bytes - at);
        if (bytes == 0 || bytes > payload_bytes - at) return LEAT_OK;
        const uint8_t *batch_at = payload + at;
        at += (uint32_t)bytes;
        if (leat_batch_codec(batch_at, (size_t)bytes) == LEAT_CODEC_NONE ||
            part->unpacked == LEAT_OK)
            continue;
        struct leat_batch batch;
        struct leat_error error = {LEAT_OK, ""};
        if (leat_batch_check(batch_at, (size_t)bytes, &batch, NULL) != LEAT_OK) return LEAT_OK;
        leat_err rc = append_unpack(request, part, stream, &batch, &error);
        if (rc == LEAT_OK) continue;
        if (rc == LEAT_E_AGAIN) return rc;
        part->unpacked = rc;
        request->text = leat_mem_strdup(LEAT_MEM_BROKER, error.text);
        return LEAT_OK;
    }
    return LEAT_OK;
}

static leat_err append_check(struct leat_append_request *request, struct leat_append_part *part,
                             const struct leat_partition *partition, const uint8_t *bytes,
                             size_t count, struct leat_batch *out_batch, struct leat_error *error)
{
    leat_err rc = leat_batch_check(bytes, count, out_batch, error);
    if (rc != LEAT_OK || out_batch->codec == LEAT_CODEC_NONE) return rc;
    if (request->copy == NULL)
        return append_unpack(request, part, partition->stream, out_batch, error);
    /* From another core, which has checked it. AGAIN: the stream's settings did not ask for that there. */
    if (part->unpacked == LEAT_OK) out_batch->max_timestamp_ms = part->max_timestamp_ms;
    return part->unpacked == LEAT_E_AGAIN ? LEAT_OK : part->unpacked;
}

/* ---- batches onto the log; on the log's core ---- */

/* SUBTLE: the log's state of a producer may rest on appends that are never acked, so a refusal waits for their acks.
 *  1. A owns the log, then B, then A again; B has not heard of A's second epoch. A producer that knows only A's first
 *     epoch appends sequences 0 to 12 at A.
 *  2. B's metadata are newer than the producer's, so the producer sends sequence 13 to B. B's copy of the log lacks 0
 *     to 12.
 *  3. B refuses sequence 13 for the gap, and a Kafka client gives up for good, though A has every record.
 * B's last appends are never acked, so the refused batch gets the answer of those appends. Where all appends are
 * acked, the node asks the coordinators who owns the log (confirm.c). */
static void append_await(struct leat_append_request *request, struct leat_partition *partition,
                         leat_err rc)
{
    struct leat_append_part *part = request->last;
    if (rc != LEAT_E_SEQUENCE_GAP && rc != LEAT_E_UNKNOWN_PRODUCER && rc != LEAT_E_PRODUCER_FENCED)
        return;
    part->append.on_acked = append_on_confirmed;
    bool awaits = leat_log_await_acked(partition->log, &part->append);
    bool asks = !awaits && leat_confirm_needed(request->home);
    if (!awaits && !asks) return;
    request->waiting++;
    if (!asks) return;
    /* Not the log's own epoch, which an accepted loss raises. */
    request->owner_of.epoch = partition->stream->desc->streamlets[request->ref.streamlet].epoch.v;
    request->owner_of.confirm = (struct leat_confirm){.on_done = append_on_owner, .owner = request};
    leat_confirm_ask(request->home, &request->owner_of.confirm);
}

/* LEAT_E_AGAIN: the log has no room, and on_room follows, or it is not this connection's turn to have a batch checked.
 * Otherwise all batches are begun or refused. */
static leat_err append_step(struct leat_append_request *request, const uint8_t *payload,
                            uint32_t payload_bytes)
{
    struct leat_core *core = request->home;
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = LEAT_OK;
    struct leat_partition *partition = leat_partition_find(core, request->ref);
    if (partition == NULL ||
        leat_partition_goes(partition)) /* going: stopped, deleted, or being made anew */
        rc = leat_partition_absent(core, request->ref);
    if (rc == LEAT_E_NO_MEMORY) leat_error_set(&error, rc, "%s", leat_partition_absent_words(rc));

    while (rc == LEAT_OK && request->begun < request->batch_count) {
        struct leat_append_part *part = request->last;
        const uint8_t *bytes = payload + request->taken_bytes;
        uint32_t left = payload_bytes - request->taken_bytes;
        uint64_t batch_bytes = leat_batch_bytes(bytes, left);
        if (batch_bytes == 0 || batch_bytes > left) {
            rc = leat_error_set(&error, LEAT_E_CORRUPT,
                                "batch %u of %u does not fit the frame's payload",
                                request->begun + 1, request->batch_count);
            break;
        }
        struct leat_batch batch;
        rc = append_check(request, part, partition, bytes, (size_t)batch_bytes, &batch, &error);
        if (rc == LEAT_E_AGAIN) return rc;
        if (rc != LEAT_OK) break;
        part->append.on_acked = append_on_acked;
        part->append.owner = part;
        part->append.duplicate = false;
        part->append.address = request->peer->address + 1;
        part->record_count = batch.record_count;
        part->bytes = (uint32_t)batch_bytes;
        rc = leat_log_append(partition->log, &batch, &part->append, &error);
        if (rc == LEAT_E_AGAIN) return rc;
        if (rc != LEAT_OK) {
            append_await(request, partition, rc);
            break;
        }
        request->waiting++;
        request->begun++;
        request->taken_bytes += (uint32_t)batch_bytes;
        if (part->next != NULL) request->last = part->next;
    }
    /* Stray bytes after the last batch are ignored: the batches are under way, and a refusal now
     * would call appended batches refused. */
    if (rc != LEAT_OK) append_refuse_rest(request, rc, &error);
    return LEAT_OK;
}

/* The current batch is refused with rc, and so are the batches after it. */
static void append_refuse_rest(struct leat_append_request *request, leat_err rc,
                               const struct leat_error *error)
{
    LEAT_ASSERT(rc != LEAT_OK && !request->refused);
    request->refused = true;
    request->rc = rc;
    struct leat_append_part *part = request->last;
    /* The current batch is not refused for an error that the check of a later batch found. */
    if (rc == LEAT_E_AGAIN || part->unpacked != rc) {
        leat_mem_free(request->text);
        request->text = NULL;
    }
    if (request->text == NULL && error != NULL && error->text[0] != '\0')
        request->text = leat_mem_strdup(LEAT_MEM_BROKER, error->text);
    for (uint32_t i = request->begun; i < request->batch_count; i++, part = part->next) {
        part->rc = i == request->begun ? rc : LEAT_E_CANCELLED;
        part->append.first_offset = 0;
    }
    request->begun = request->batch_count;
    if (request->waiting == 0) append_finish(request);
}

static void append_one_less(struct leat_append_request *request)
{
    LEAT_ASSERT_CMP(request->waiting, >, 0);
    if (--request->waiting == 0 && request->begun == request->batch_count) append_finish(request);
}

static void append_on_acked(struct leat_append *append, leat_err rc)
{
    struct leat_append_part *part = append->owner;
    struct leat_append_request *request = part->request;
    part->rc = rc;
    if (rc == LEAT_OK && !append->duplicate) {
        struct leat_counters *totals = &request->home->counters;
        /* Only the own core writes; other cores read at any time: no order needed. */
        atomic_store_explicit(
            &totals->appended_records,
            atomic_load_explicit(&totals->appended_records, memory_order_relaxed) +
                part->record_count,
            memory_order_relaxed);
        atomic_store_explicit(&totals->appended_bytes,
                              atomic_load_explicit(&totals->appended_bytes, memory_order_relaxed) +
                                  part->bytes,
                              memory_order_relaxed);
    }
    append_one_less(request);
}

/* LEAT_OK: this node is the owner, so the refusal of the batch stands. */
static void append_confirmed(struct leat_append_request *request, leat_err rc)
{
    if (rc != LEAT_OK) {
        request->last->rc = request->rc = rc;
        leat_mem_free(request->text);
        request->text = NULL;
    }
    append_one_less(request);
}

static void append_on_confirmed(struct leat_append *append, leat_err rc)
{
    const struct leat_append_part *part = append->owner;
    append_confirmed(part->request, rc);
}

static void append_on_owner(struct leat_confirm *confirm, leat_err rc)
{
    struct leat_append_request *request = confirm->owner;
    append_confirmed(request,
                     leat_confirm_owner(request->home, request->ref, request->owner_of.epoch, rc));
}

/* ---- waiting for room, or for a turn ---- */

/* partition: whose log has no room; NULL: it waits for a turn. */
static void append_wait(struct leat_core *core, struct leat_partition *partition,
                        struct leat_room_wait *room)
{
    if (leat_list_empty(&room->by_time)) {
        /* The clock runs from the first refusal of this request, not from the latest. */
        if (room->deadline_us == 0) room->deadline_us = leat_core_now(core) + LEAT_APPEND_ROOM_US;
        leat_list_push_back(&core->data->room_waits, &room->by_time);
    }
    leat_list_remove(&room->by_log);
    if (partition != NULL) leat_list_push_back(&partition->blocked, &room->by_log);
}

static void append_forwarded_step(struct leat_append_request *request)
{
    leat_err rc = append_step(request, request->copy, request->copy_bytes);
    if (rc == LEAT_E_AGAIN)
        append_wait(request->home, leat_partition_find(request->home, request->ref),
                    &request->room);
}

void leat_append_on_room(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_list now;
    leat_list_init(&now);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&partition->blocked)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_room_wait *room = LEAT_CONTAINER(link, struct leat_room_wait, by_log);
        leat_list_remove(&room->by_time);
        if (room->request != NULL)
            append_forwarded_step(room->request);
        else
            leat_peer_resume(room->peer, LEAT_PAUSE_ROOM); /* the peer's frame comes again */
        /* The append waits again, and later appends must not overtake it: the next batch of the same producer would
         * be refused for the gap. */
        if (!leat_list_empty(&partition->blocked) && !LEAT_BUG(OVERTAKES)) break;
    }
    while ((link = leat_list_pop_front(&now)) != NULL)
        leat_list_push_back(&partition->blocked, link);
}

/* The request ends on this core, though its log belongs to another core: nothing of the request was sent there. */
static void append_not_sent(struct leat_append_request *request)
{
    leat_unpack_leave(request->peer);
    request->home = request->core;
}

/* Requests that have waited long enough: batches that have not been taken are refused; no byte of them was appended. */
void leat_append_expire(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    uint64_t now = leat_core_now(core);
    LEAT_LIST_EACH(&core->data->room_waits, link)
    {
        struct leat_room_wait *room = LEAT_CONTAINER(link, struct leat_room_wait, by_time);
        if (room->deadline_us > now) continue;
        leat_list_remove(&room->by_time);
        leat_list_remove(&room->by_log);
        struct leat_append_request *request =
            room->request != NULL ? room->request : room->peer->append_now;
        LEAT_ASSERT(request != NULL);
        struct leat_error error;
        bool forwarded =
            room->request != NULL; /* its own core may have freed it after the refusal */
        bool turn = !forwarded && leat_unpack_waits(room->peer);
        leat_error_set(&error, LEAT_E_AGAIN,
                       turn ? "no turn for %d s to have compressed batches checked: many are sent; "
                              "send it again"
                            : "no room in the log for %d s: memory or disk can't keep up; send it "
                              "again",
                       LEAT_APPEND_ROOM_US / 1000000);
        if (turn) append_not_sent(request);
        append_refuse_rest(request, LEAT_E_AGAIN, &error);
        /* The peer's frame is presented again; append_now says that it has been dealt with. */
        if (!forwarded) leat_peer_resume(room->peer, LEAT_PAUSE_ROOM);
    }
}

/* ---- to another core and back ---- */

static void append_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_append_request *request = LEAT_CONTAINER(mail, struct leat_append_request, mail);
    LEAT_ASSERT(actor == request->home);
    struct leat_partition *partition = leat_partition_find(request->home, request->ref);
    /* Earlier requests wait for room: this request waits after them, or batches of a producer would change their
     * order. */
    if (partition != NULL && !leat_list_empty(&partition->blocked)) {
        append_wait(request->home, partition, &request->room);
        return;
    }
    append_forwarded_step(request);
}

static void forward_give(struct leat_core *core, uint32_t bytes)
{
    core->data->forward_bytes -= bytes;
    /* A count that nothing else is published by. */
    atomic_fetch_sub_explicit(&core->node->forwards_bytes, bytes, memory_order_relaxed);
}

/* Each core has a part of the bytes, so that no core takes all; all parts together may exceed the sum. */
static bool forward_take(struct leat_core *core, uint32_t bytes)
{
    struct leat_node *node = core->node;
    if (core->data->forward_bytes + bytes > core->data->forward_bytes_max) return false;
    core->data->forward_bytes += bytes;
    if (atomic_fetch_add_explicit(&node->forwards_bytes, bytes, memory_order_relaxed) + bytes <=
        node->forwards_bytes_max)
        return true;
    forward_give(core, bytes);
    return false;
}

static leat_err append_forward(struct leat_append_request *request, const uint8_t *payload,
                               uint32_t payload_bytes)
{
    struct leat_core *core = request->core;
    if (!forward_take(core, payload_bytes)) {
        request->home = core;
        return LEAT_E_AGAIN;
    }
    request->copy = leat_mem_copy(LEAT_MEM_BROKER, payload, payload_bytes);
    if (request->copy == NULL) {
        forward_give(core, payload_bytes);
        request->home = core;
        return LEAT_E_NO_MEMORY;
    }
    request->copy_bytes = payload_bytes;
    request->room.request = request;
    request->room.peer = NULL;
    request->room.deadline_us = 0;
    leat_core_mail(core, request->home->index, &request->mail, append_deliver_home);
    return LEAT_OK;
}

static void append_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_append_request *request = LEAT_CONTAINER(mail, struct leat_append_request, mail);
    struct leat_core *core = request->core;
    LEAT_ASSERT(actor == core);
    forward_give(core, request->copy_bytes);
    leat_mem_free(request->copy);
    request->copy = NULL;
    request->home = core;
    append_finish(request);
}

/* ---- answers ---- */

static void append_finish(struct leat_append_request *request)
{
    struct leat_core *core = request->core;
    if (request->home != core) {
        leat_core_mail(request->home, core->index, &request->mail, append_deliver_back);
        return;
    }
    request->done = true;
    struct leat_peer *peer = request->peer;
    if (request->on_done != NULL) {
        /* While its frame is held the peer still points at it. */
        if (peer->append_now != request) request->on_done(request);
        return;
    }
    if (peer->append_first == request && leat_list_empty(&peer->answers))
        leat_list_push_back(&core->answer_peers, &peer->answers);
}

static uint32_t append_encode(uint8_t *out, size_t capacity, struct leat_append_request *request)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES,
                         capacity - LEAT_FRAME_HEADER_BYTES);
    uint8_t flags = LEAT_FRAME_ANSWER;
    const char *text = request->text != NULL ? request->text : leat_err_text(request->rc);
    if (request->batch_count == 0) {
        flags |= LEAT_FRAME_ERROR;
        leat_msg_error_encode(&writer, request->rc, text);
    } else {
        leat_msg_appended_all_write(&writer, request->batch_count + (request->refused ? 1 : 0));
        struct leat_append_part *part = &request->first;
        for (uint32_t i = 0; i < request->batch_count; i++, part = part->next)
            leat_msg_appended_write(
                &writer, &(struct leat_msg_appended){part->rc, part->append.first_offset});
        if (request->refused) leat_msg_write_string(&writer, text, strlen(text));
    }
    LEAT_ASSERT(!writer.overflow);
    leat_frame_encode(out, LEAT_KIND_APPEND, LEAT_PROTOCOL_VERSION_MAX, flags, request->number,
                      writer.used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer.used;
}

/* Answer what is done at the front, in order, gathered into one piece. */
void leat_append_answer(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    uint32_t used = 0;
    struct leat_append_request *request;
    leat_peer_begin(peer); /* the last request's end must not end the peer under our hands */
    while ((request = peer->append_first) != NULL && request->done && request != peer->append_now) {
        if (peer->conn != NULL && !peer->closing) {
            used += append_encode(core->scratch + used, LEAT_CORE_SCRATCH_BYTES - used, request);
            uint32_t next_bytes =
                APPEND_ANSWER_FIXED_BYTES + LEAT_APPEND_BATCHES_MAX * APPEND_ANSWER_BATCH_BYTES;
            if (used >= APPEND_FEED_BYTES || used + next_bytes > LEAT_CORE_SCRATCH_BYTES) {
                leat_peer_send_bytes(peer, core->scratch, used);
                used = 0;
            }
        }
        peer->append_first = request->next;
        if (request->next == NULL) peer->append_last = NULL;
        append_free(request);
        leat_peer_end(peer);
    }
    if (used > 0) leat_peer_send_bytes(peer, core->scratch, used);
    leat_peer_end(peer);
}

static void append_free(struct leat_append_request *request)
{
    struct leat_core *core = request->core;
    struct leat_append_part *part = request->first.next;
    while (part != NULL) {
        struct leat_append_part *next = part->next;
        leat_stock_give(&core->part_pool, part, request->peer, request->peer->sharer);
        part = next;
    }
    leat_mem_free(request->text);
    leat_stock_give(&core->append_pool, request, request->peer, request->peer->sharer);
}

/* The connection is gone. What has been given to logs goes on; a frame half taken ends here, its
 * rest was never looked at. */
void leat_append_peer_closed(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    leat_list_remove(&peer->room.by_log);
    leat_list_remove(&peer->room.by_time);
    struct leat_append_request *request = peer->append_now;
    if (request != NULL && !request->refused) {
        append_not_sent(request);
        append_refuse_rest(request, LEAT_E_CLOSED, NULL);
    }
    append_release_now(peer);
}
