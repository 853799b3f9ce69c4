/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the first segment and rolling from one to the next. */
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "multilog/internal.h"

enum { START_ON_STACK_BYTES = 4096 };

static uint32_t app_bytes(const struct leat_log *log)
{
    const struct leat_log_app *app = &log->options.app;
    size_t bytes = app->ctx ? app->snapshot_bytes(app->ctx) : 0;
    LEAT_ASSERT_CMP(bytes, <=, LEAT_START_BYTES_MAX / 2);
    return (uint32_t)bytes;
}

uint32_t log_start_bytes(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    size_t bytes =
        sizeof(struct leat_start) + leat_producers_encoded_bytes(&log->producers) + app_bytes(log);
    LEAT_ASSERT_CMP(bytes, <=, LEAT_START_BYTES_MAX);
    return (uint32_t)bytes;
}

static uint32_t header_payload_bytes(const struct leat_log *log)
{
    return (uint32_t)(sizeof(struct leat_segment_header) + strlen(log->stream_name));
}

static uint32_t power_of_two_at_least(uint64_t bytes)
{
    uint32_t power = LEAT_SEGMENT_BYTES_MIN;
    while (power < bytes && power < LEAT_SEGMENT_BYTES_MAX)
        power *= 2;
    return power;
}

/* The least bytes of a segment: header, start and one batch, and its end. */
static uint64_t bytes_needed(const struct leat_log *log, uint32_t capacity)
{
    return (uint64_t)leat_entry_bytes(header_payload_bytes(log)) +
           leat_entry_bytes(log_start_bytes(log)) + leat_entry_bytes(log->room_bytes) +
           leat_entry_bytes(leat_index_close_bytes_max(capacity)) +
           leat_entry_bytes(sizeof(struct leat_trim)) + 4 * LEAT_ENTRY_HEADER_BYTES;
}

/* A fixed size would roll for ever once the producers' state outgrows it (docs/stories.md 28). */
static uint32_t capacity_wanted(const struct leat_log *log)
{
    uint64_t base = 4 * (uint64_t)log_start_bytes(log) + leat_entry_bytes(log->room_bytes);
    uint32_t wanted = power_of_two_at_least(base > log->roll_capacity ? base : log->roll_capacity);
    uint32_t most = log->options.settings.segment_bytes_max;
    if (most && wanted > most) wanted = most;
    while (wanted < LEAT_SEGMENT_BYTES_MAX && wanted < bytes_needed(log, wanted))
        wanted *= 2;
    return wanted;
}

static bool next_is_enough(const struct leat_log *log)
{
    return log->next && log->next->capacity >= bytes_needed(log, log->next->capacity);
}

/* ---- reserving ---- */

static void write_header(struct leat_log *log, struct leat_segment *seg)
{
    struct {
        struct leat_segment_header header;
        char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    } payload = {0};
    const struct leat_log_options *options = &log->options;
    size_t name_bytes = strlen(log->stream_name);
    payload.header = (struct leat_segment_header){
        .magic = LEAT_SEGMENT_MAGIC,
        .format_version = LEAT_FORMAT_VERSION,
        .name_bytes = (uint16_t)name_bytes,
        .stream = options->ref.stream,
        .streamlet = options->ref.streamlet,
        .log = options->ref.log,
        .epoch = options->epoch.v,
        .group = log_group_of(seg->id.v),
        .segment = seg->id.v,
        .owner_incarnation = options->incarnation,
        .capacity = seg->capacity,
        .durability = (uint32_t)options->durability,
        .created_ms = log->env->clock->wall_ms(log->env->clock->ctx),
        .retention_ms = options->settings.retention_ms,
        .retention_bytes = options->settings.retention_bytes,
        .streamlets = options->settings.streamlets,
        .logs = options->settings.logs,
        .copies = options->settings.copies,
        .segment_bytes_max = options->settings.segment_bytes_max,
    };
    memcpy(payload.header.cluster_id, options->cluster_id, sizeof payload.header.cluster_id);
    memcpy(payload.name, log->stream_name, name_bytes);
    uint32_t bytes = header_payload_bytes(log);
    leat_entry_writer_init(&log->next_writer, seg->buffer, seg->capacity);
    (void)leat_entry_append(&log->next_writer, LEAT_ENTRY_SEGMENT, 0, 0, &payload, bytes,
                            leat_crc32c(0, &payload, bytes));
}

static void on_reserved(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    log->reserving = false;
    log->reserve_rc = req->rc;
    if (req->rc == LEAT_OK) {
        log->next = req->seg;
        log->memory_bytes += req->seg->capacity;
        log_segment_own(log, req->seg);
        write_header(log, req->seg);
    } else {
        leat_index_destroy(&log->next_index);
        /* No room elsewhere: the head stays where it is. */
        log->leave_wanted = false;
        log->leave_not_before_us = log_now(log) + LOG_LEAVE_PAUSE_US;
        if (req->rc == LEAT_E_DISK_FULL || req->rc == LEAT_E_NO_MEMORY)
            log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        else if (leat_err_class(req->rc) != LEAT_CLASS_RETRY)
            log_fail_finally(log, req->rc, "reserving a segment failed");
    }
    log_mark_dirty(log);
}

bool leat_log_lacks_space(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log->reserve_rc == LEAT_E_DISK_FULL;
}

/* A log of the size that its retention allows takes one segment more at most. */
static bool is_at_its_size(const struct leat_log *log)
{
    int64_t most = log->options.settings.retention_bytes;
    return most > 0 && log->closed_bytes + log->head.writer.used >= (uint64_t)most;
}

/* SUBTLE: a segment that frees memory is not refused, or no memory would ever be freed: (1) the heads of all logs are
 * full, and so is the heap; (2) the records of some logs expire; (3) a trim entry gives these records up, and has no
 * room in the head. The same holds for a head whose data has expired, and for records that are given up by request. */
static bool may_take_spare(const struct leat_log *log)
{
    return log->options.app.ctx || log->roll_wanted || log_trim_is_pending(log) ||
           is_at_its_size(log);
}

static bool memory_is_full(struct leat_log *log)
{
    const struct leat_log_options *options = &log->options;
    bool spare = may_take_spare(log);
    if (!options->memory_is_full) return false;
    if (log_place_refusal(log, spare) == LEAT_E_NO_MEMORY) return true;
    size_t bytes = LEAT_SEGMENT_HEAP_BYTES + leat_index_bytes(capacity_wanted(log));
    if (log->slot_begin + log->slot_count == log->slot_capacity)
        bytes += log->slot_capacity * sizeof *log->slots; /* the table grows */
    if (!options->memory_is_full(options->owner, spare, bytes)) return false;
    log->memory_spent = spare;
    log->memory_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
    log->leave_wanted = false;
    return true;
}

static void reserve_start(struct leat_log *log)
{
    if (log->reserving || log_now(log) < log->reserve_not_before_us) return;
    if (memory_is_full(log)) return;
    uint32_t capacity = capacity_wanted(log);
    LEAT_ASSERT(log->next_index == NULL);
    log->next_index = leat_index_create(capacity);
    if (!log->next_index || log_slots_reserve(log, 1) != LEAT_OK) {
        leat_index_destroy(&log->next_index);
        log->reserve_rc = LEAT_E_NO_MEMORY;
        log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        return;
    }
    log->reserving = true;
    log->reserve.log = log->options.ref;
    log->reserve.id.v = log->next_segment;
    log->reserve.epoch = log->options.epoch;
    log->reserve.durability = log->options.durability;
    log->reserve.capacity = capacity;
    log_request(log, &log->reserve, LEAT_STORE_RESERVE, NULL, on_reserved);
}

static void on_next_dropped(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    log->reserving = false;
    log_mark_dirty(log);
}

/* A reservation that never started is not part of the log: it may go (docs/stories.md 4). */
void log_drop_next(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log->next || log->reserving) return;
    struct leat_segment *seg = log->next;
    log->next = NULL;
    log->memory_bytes -= seg->capacity;
    leat_index_destroy(&log->next_index);
    log->reserving = true;
    log_request(log, &log->reserve, LEAT_STORE_DROP, seg, on_next_dropped);
}

/* ---- the start entry ---- */

static void start_encode(const struct leat_log *log, uint8_t *out, uint32_t bytes,
                         struct leat_prefix_id previous)
{
    const struct leat_log_app *app = &log->options.app;
    size_t producer_bytes = leat_producers_encoded_bytes(&log->producers);
    struct leat_start start = {
        .base_offset = log->next_offset,
        .previous = previous,
        .first_segment = log->slot_count ? log->first_segment : log->next_segment,
        .first_offset = log->begin_offset,
        .producer_count = log->producers.count,
        .app_bytes = bytes - (uint32_t)(sizeof start + producer_bytes),
        .producers_expired = log->producers.expired,
    };
    /* SUBTLE: a trim entry that lies in N and is not acked yet counts already. (1) It is acked
     * after this start entry was written; (2) the front is dropped; (3) after a crash the last
     * segment's start entry would call retained what is gone, as if it had been lost. */
    if (log->trim_written) {
        start.first_segment = log->trim_segment;
        if (start.first_offset < log->trim_offset) start.first_offset = log->trim_offset;
    }
    memcpy(out, &start, sizeof start);
    leat_producers_encode(&log->producers, out + sizeof start);
    if (start.app_bytes) app->snapshot_write(app->ctx, out + sizeof start + producer_bytes);
}

/* The reservation becomes the head: from here on it is part of the log. */
static void start_write(struct leat_log *log, const uint8_t *payload, uint32_t bytes)
{
    struct leat_segment *seg = log->next;
    struct log_open *head = &log->head;
    *head = (struct log_open){.seg = seg, .writer = log->next_writer, .index = log->next_index};
    log->next = NULL;
    log->next_index = NULL;
    seg->state = LEAT_SEGMENT_OPEN;
    seg->base_offset = log->next_offset;
    head->max_timestamp_ms = INT64_MIN;
    head->safe_offset = head->sealed_offset = log->next_offset;
    (void)leat_entry_append(&head->writer, LEAT_ENTRY_START, 0, 0, payload, bytes,
                            leat_crc32c(0, payload, bytes));
    (void)leat_entry_seal(&head->writer, 0);
    head->start_end = head->writer.sealed_bytes;
    log_slot_push(log, seg);
    log_slot_at(log, log->slot_count - 1)->joint =
        log->jumped ? LOG_JOINT_JUMPED : LOG_JOINT_CHAINED;
    log->jumped = false;
    log->next_segment++;
}

/* ---- rolling ----
 *
 * SUBTLE: N+1's start entry holds (length, CRC) of N up to and with its close trailer, and yet it
 * must be safe before that trailer exists anywhere:
 *  1. Were N's close trailer written first, a kill between the two would leave N closed and nothing
 *     open: no mark says where the log ends (docs/stories.md 1), and it waits for an operator.
 *  2. So the close entry is written into N without a trailer (a scan does not count it), the
 *     trailer's CRC is computed without writing it, N+1's start entry carries the result, and the
 *     trailer follows in log_step_close() once the start entry is safe.
 *  3. The trailer holds N's acked length, which may grow meanwhile: the value used in the
 *     computation is kept and used again.
 */
static struct leat_prefix_id close_write(struct leat_log *log, struct log_open *open)
{
    if (open->writer.used > open->writer.sealed_bytes) {
        (void)leat_entry_seal(&open->writer, open->acked_bytes);
        open->sealed_offset = log->next_offset;
    }
    struct leat_close *close = &open->index->close;
    close->next_offset = log->next_offset;
    close->record_count = open->record_count;
    close->max_timestamp_ms = open->max_timestamp_ms;
    close->bytes = open->writer.used;
    uint32_t payload = leat_index_payload_bytes(close);
    (void)leat_entry_append(&open->writer, LEAT_ENTRY_CLOSE, 0, 0, close, payload,
                            leat_crc32c(0, close, payload));
    open->close_acked_bytes = open->acked_bytes;
    /* The same call that will write it later, on a copy of the writer and of what lies there. */
    struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .base_offset = open->acked_bytes};
    return (struct leat_prefix_id){open->writer.used + LEAT_ENTRY_HEADER_BYTES,
                                   leat_entry_trailer_crc(open->writer.chain, &trailer)};
}

/* By this log's pace alone: when the pool is short, the store refuses. */
static void pace_note(struct leat_log *log)
{
    uint64_t now = log_now(log);
    uint32_t capacity = log->head.seg->capacity;
    uint64_t lasted = now - log->rolled_us;
    log->rolling_fast = lasted < LOG_FAST_ROLL_US;
    if (log->rolling_fast)
        log->roll_capacity =
            capacity < LEAT_SEGMENT_BYTES_MAX / 4 ? capacity * 4 : LEAT_SEGMENT_BYTES_MAX;
    else
        log->roll_capacity = lasted > LOG_SLOW_ROLL_US ? capacity / 4 : capacity;
    log->rolled_us = now;
}

static void roll(struct leat_log *log)
{
    uint8_t small[START_ON_STACK_BYTES], *payload = small;
    uint32_t bytes = log_start_bytes(log);
    if (bytes > sizeof small) payload = leat_mem_calloc(LEAT_MEM_LOG, bytes, 1);
    if (!payload) {
        log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        return;
    }
    struct leat_prefix_id previous = log->previous;
    /* Requests to begin later, and to leave, say nothing about how fast the log grows. */
    bool paced = log->room_wanted;
    log->roll_wanted = log->leave_wanted = false;
    log_begin_take(log);
    if (log->head.seg) {
        previous = close_write(log, &log->head);
        if (paced) pace_note(log);
        log->old = log->head;
        log->old.seg->prefix_id = previous;
    } else {
        log->rolled_us = log_now(log);
    }
    start_encode(log, payload, bytes, previous);
    start_write(log, payload, bytes);
    if (payload != small) leat_mem_free(payload);
}

/* A reservation that lies where the head is not to stay would be in the way next. */
static bool next_lies_well(const struct leat_log *log)
{
    return !log->leave_wanted || !log->store_port.in_the_way(log->store_port.ctx, log->next);
}

/* The table grows before it is full, so a producer is refused only when it is really full. */
static void producers_grow(struct leat_log *log)
{
    const struct leat_log_options *options = &log->options;
    if (!log->producers_wanted && !leat_producers_wants_room(&log->producers)) return;
    if (log_producers_are_refused(log)) return;
    size_t bytes = leat_producers_prepare_bytes(&log->producers);
    if (options->memory_is_full && options->memory_is_full(options->owner, false, bytes)) {
        log->producers_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        log->producers_wanted = false; /* waiting producers try again, and are refused by name */
    } else if (leat_producers_prepare(&log->producers) == LEAT_OK) {
        log->producers_wanted = false;
    }
}

/* Room for what was refused: resume, reserve, open or roll; one step at a time. */
void log_step_room(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->state != LEAT_LOG_SERVING || log_is_unloaded(log) || log->ending != LOG_LIVES) return;
    producers_grow(log);
    bool ahead = log->rolling_fast && log->head.seg && !log->old.seg;
    bool fits = !log->room_wanted || log_head_fits(log, log->room_bytes);
    if (fits && !log->roll_wanted && !log->leave_wanted) {
        if (ahead && !log->next) reserve_start(log);
        return;
    }
    if (log->hibernating != LOG_AWAKE) return;
    if (log->old.seg || (log->head.seg && !log_is_opened(log))) return;
    if (log->next && !(next_is_enough(log) && next_lies_well(log))) log_drop_next(log);
    if (!log->next) {
        reserve_start(log);
        return;
    }
    if (log_now(log) >= log->reserve_not_before_us) roll(log);
}

/* ---- closing the old one ---- */

static void on_closed(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    log->closing = false;
    if (req->rc != LEAT_OK) {
        /* SUBTLE: the row on the disk still says that the segment is open. (1) The log moves to another node; (2) the
         * new owner counts this node's copy as a closed replica; (3) this node starts again, and finds fewer bytes. A
         * backup keeps the same rule (backup_close()). */
        req->seg->state = LEAT_SEGMENT_OPEN;
        log_fail_finally(log, req->rc, "recording a closed segment failed");
    }
    /* With the next care, a second later, a fast log would be past its size by a gigabyte, written to disk only to be
     * dropped there. */
    bool cared_for = log->state == LEAT_LOG_SERVING && log->ending == LOG_LIVES;
    if (cared_for && log->options.settings.retention_bytes > 0) log_retain(log);
    log_mark_dirty(log);
}

void log_step_close(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_open *old = &log->old;
    if (!old->seg || log->state == LEAT_LOG_STOPPED) return;
    if (!log_old_close_is_sealed(log)) {
        if (log->head.safe_bytes < log->head.start_end && !LEAT_BUG(CLOSE_BEFORE_START)) return;
        struct leat_prefix_id prefix_id = leat_entry_seal(&old->writer, old->close_acked_bytes);
        LEAT_ASSERT_CMP(prefix_id.bytes, ==, old->seg->prefix_id.bytes);
        LEAT_ASSERT_CMP(prefix_id.crc, ==, old->seg->prefix_id.crc);
    }
    if (old->safe_bytes < old->seg->prefix_id.bytes || log->closing) return;
    struct leat_segment *seg = old->seg;
    seg->state = LEAT_SEGMENT_CLOSED;
    log_slot_find(log, seg->id.v)->closed = true;
    seg->next_offset = old->index->close.next_offset;
    seg->max_timestamp_ms = old->max_timestamp_ms;
    seg->written_ms = log->gathered_wall_ms;
    log->closed_bytes += seg->prefix_id.bytes;
    leat_index_destroy(&old->index);
    *old = (struct log_open){0};
    log_step_seal(log); /* batches that had to wait for the close */
    log->closing = true;
    log_request(log, &log->close, LEAT_STORE_CLOSE, seg, on_closed);
}
