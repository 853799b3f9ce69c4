/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's thread takes whole answers and decodes records where they lie. */
#include "handle.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    /* Uncompressed records of one batch; grown to this from the batch's own size. */
    CONSUMER_UNPACKED_BYTES_MAX = 256 * 1024 * 1024,
};

void leat_consumer_run_return(struct leat_consumer *consumer)
{
    if (!consumer->run) return;
    leat_spin_lock(&consumer->lock);
    leat_list_push_back(&consumer->returned, &consumer->run->link);
    leat_spin_unlock(&consumer->lock);
    consumer->run = NULL;
    consumer->in_batch = false;
    if (atomic_exchange(&consumer->hungry, false)) leat_consumer_notify(consumer);
}

static bool place_set(struct leat_consumer *consumer)
{
    const struct leat_fetched *run = consumer->run;
    /* Logs take turns, so the one sought is often the last one or the next. */
    for (uint32_t n = 0, i = consumer->place; n < consumer->place_count; n++, i++) {
        if (i >= consumer->place_count) i = 0;
        if (!leat_log_ref_equal(consumer->places[i].log, run->log) ||
            consumer->places[i].group != run->group)
            continue;
        consumer->place = i;
        return true;
    }
    if (consumer->place_count == consumer->place_capacity) {
        uint32_t capacity = consumer->place_capacity ? consumer->place_capacity * 2 : 8;
        struct consumer_place *places =
            leat_mem_realloc(LEAT_MEM_CLIENT, consumer->places, capacity, sizeof *places);
        if (!places) return false;
        consumer->places = places;
        consumer->place_capacity = capacity;
    }
    consumer->place = consumer->place_count++;
    consumer->places[consumer->place] =
        (struct consumer_place){.log = run->log, .group = run->group};
    return true;
}

/* The next answer's run of batches becomes the one being read. */
static bool run_take(struct leat_consumer *consumer)
{
    leat_spin_lock(&consumer->lock);
    bool revoked = consumer->revoked;
    consumer->revoked = false;
    struct leat_list *link = leat_list_pop_front(&consumer->runs);
    leat_spin_unlock(&consumer->lock);
    if (revoked) consumer->place_count = 0; /* of logs that may be another member's now */
    if (!link) return false;
    consumer->run = LEAT_CONTAINER(link, struct leat_fetched, link);
    consumer->run_at = 0;
    consumer->in_batch = false;
    return true;
}

static leat_err unpack(struct leat_consumer *consumer, const uint8_t **out_records,
                       size_t *out_bytes)
{
    for (;;) {
        leat_err rc = leat_batch_records(&consumer->batch, consumer->unpacked,
                                         consumer->unpacked_bytes, out_records, out_bytes);
        if (rc != LEAT_E_TOO_LARGE) return rc;
        size_t bytes = consumer->unpacked_bytes ? consumer->unpacked_bytes * 2 : 1024 * 1024;
        if (bytes > CONSUMER_UNPACKED_BYTES_MAX) return LEAT_E_TOO_LARGE;
        uint8_t *grown = leat_mem_calloc(LEAT_MEM_CLIENT, 1, bytes);
        if (!grown) return LEAT_E_NO_MEMORY;
        leat_mem_free(consumer->unpacked);
        consumer->unpacked = grown;
        consumer->unpacked_bytes = bytes;
    }
}

/* Step to the run's next batch. LEAT_E_NOT_FOUND: the run is read. */
static leat_err batch_next(struct leat_consumer *consumer)
{
    const struct leat_fetched *run = consumer->run;
    consumer->in_batch = false;
    if (consumer->run_at == 0 && !place_set(consumer)) return LEAT_E_NO_MEMORY;
    if (consumer->run_at >= run->byte_count) return LEAT_E_NOT_FOUND;
    const uint8_t *at = run->bytes + consumer->run_at;
    uint32_t left = run->byte_count - consumer->run_at;
    uint64_t bytes = leat_batch_bytes(at, left);
    if (bytes == 0 || bytes > left) return LEAT_E_CORRUPT;
    leat_err rc = leat_batch_view(at, (size_t)bytes, &consumer->batch);
    if (rc) return rc;
    const uint8_t *records;
    size_t record_bytes;
    rc = unpack(consumer, &records, &record_bytes);
    if (rc) return rc;
    consumer->run_at += (uint32_t)bytes;
    consumer->stats.bytes += bytes;
    leat_record_reader_init(&consumer->reader, &consumer->batch, records, record_bytes);
    consumer->in_batch = true;
    return LEAT_OK;
}

/* If records will never be readable, the error also names the offset to go on at: a server that does not check
 * compressed records may have accepted arbitrary bytes. */
static leat_code consumer_refuse(struct leat_consumer *consumer, leat_err rc)
{
    const struct leat_batch *batch = &consumer->batch;
    unsigned long long first = batch->base_offset, behind = first + batch->record_count;
    const char *text = leat_err_text(rc);
    if (rc == LEAT_E_UNSUPPORTED)
        text = "the records are compressed with gzip, and this library was built without zlib";
    if (rc == LEAT_E_CORRUPT) text = "the producer's batch is not what its header says";
    char *out = consumer->stats.last_text;
    size_t room = sizeof consumer->stats.last_text;
    int used = snprintf(out, room, "streamlet %u log %u offset %llu: %s",
                        consumer->run->log.streamlet, consumer->run->log.log, first, text);
    bool for_good = rc == LEAT_E_CORRUPT || rc == LEAT_E_TOO_LARGE || rc == LEAT_E_UNSUPPORTED;
    if (for_good && used > 0 && (size_t)used < room)
        snprintf(out + used, room - (size_t)used, "; begin behind it (offset %llu)", behind);
    consumer->stats.last_error = (leat_code)rc;
    return (leat_code)rc;
}

/* Records of the batch being read, at most `count`; 0: none is left (*out_rc LEAT_OK) or the next is
 * unreadable. */
static size_t batch_read(struct leat_consumer *consumer, leat_record_view *views, size_t count,
                         leat_err *out_rc)
{
    const struct leat_fetched *run = consumer->run;
    struct leat_record_reader reader = consumer->reader; /* local: no store below aliases it */
    uint64_t base = consumer->batch.base_offset, from = run->from_offset, end = run->end_offset;
    uint32_t streamlet = run->log.streamlet, log = run->log.log;
    uint32_t partition = streamlet * consumer->q + log;
    size_t n = 0;
    leat_err rc = LEAT_OK;
    while (n < count) {
        struct leat_record record;
        rc = leat_record_read(&reader, &record);
        if (__builtin_expect(rc != LEAT_OK, 0)) break;
        uint64_t offset = base + record.offset_delta;
        if (__builtin_expect(offset < from || offset >= end, 0)) continue;
        views[n++] = (leat_record_view){
            .key = record.key,
            .value = record.value,
            .key_bytes = record.key_bytes,
            .value_bytes = record.value_bytes,
            .key_null = record.key == NULL,
            .value_null = record.value == NULL,
            .timestamp_ms = record.timestamp_ms,
            .offset = offset,
            .streamlet = streamlet,
            .log = log,
            .partition = partition,
            .headers = record.headers,
            .headers_bytes = record.headers_bytes,
            .header_count = record.header_count,
        };
    }
    consumer->reader = reader;
    if (n > 0) {
        struct consumer_place *place = &consumer->places[consumer->place];
        place->next = views[n - 1].offset + 1;
        place->changed = true;
        consumer->stats.records += n;
        return n; /* the next call meets the unreadable bytes after these records again */
    }
    *out_rc = rc == LEAT_E_NOT_FOUND ? LEAT_OK : rc;
    return 0;
}

/* Records of the current run, or 0 when it is used up (*out_rc LEAT_OK) or unreadable. */
static size_t run_read(struct leat_consumer *consumer, leat_record_view *views, size_t count,
                       leat_err *out_rc)
{
    for (;;) {
        leat_err rc = LEAT_OK;
        size_t n = consumer->in_batch ? batch_read(consumer, views, count, &rc) : 0;
        if (__builtin_expect(n > 0, 1)) return n;
        if (rc == LEAT_OK) rc = batch_next(consumer);
        if (rc == LEAT_OK) continue;
        *out_rc = rc == LEAT_E_NOT_FOUND ? LEAT_OK : rc;
        return 0;
    }
}

static leat_code failure_look(struct leat_consumer *consumer)
{
    leat_spin_lock(&consumer->lock);
    leat_code failed = consumer->failed;
    struct leat_error failure = consumer->failure;
    leat_spin_unlock(&consumer->lock);
    if (failed) {
        consumer->stats.last_error = failed;
        memcpy(consumer->stats.last_text, failure.text, sizeof consumer->stats.last_text);
    }
    return failed;
}

/* Nothing is ready. Returns false when the time is over or the consumer failed. */
static bool consumer_wait(struct leat_consumer *consumer, int timeout_ms, uint64_t *deadline,
                          uint32_t seen, leat_code *out_code)
{
    *out_code = failure_look(consumer);
    if (*out_code) return false;
    if (timeout_ms == 0) {
        uint64_t count;
        if (consumer->fd >= 0 && read(consumer->fd, &count, sizeof count) < 0) return false;
        return false;
    }
    if (*deadline == 0) *deadline = leat_shared_deadline(timeout_ms);
    return leat_event_wait(&consumer->ready, seen, *deadline);
}

/* No run is being read: take one, or wait for one. Returns false when there is none. */
static bool run_await(struct leat_consumer *consumer, int timeout_ms, uint64_t *deadline,
                      leat_code *out_code)
{
    for (;;) {
        uint32_t seen = leat_event_look(&consumer->ready);
        if (run_take(consumer)) return true;
        /* The descriptor is emptied before the last look, so that later records make it readable again. */
        if (timeout_ms == 0 && consumer->fd >= 0) {
            uint64_t count;
            if (read(consumer->fd, &count, sizeof count) > 0 && run_take(consumer)) return true;
        }
        if (atomic_load(&consumer->at_end) && timeout_ms != 0 && *deadline != 0) {
            *out_code = failure_look(consumer);
            return false; /* at the end: the caller may want to know before the time is over */
        }
        if (!consumer_wait(consumer, timeout_ms, deadline, seen, out_code)) return false;
    }
}

size_t leat_consumer_next_many(leat_consumer *consumer, leat_record_view *views, size_t count,
                               int timeout_ms, leat_code *out_code)
{
    uint64_t deadline = 0;
    *out_code = 0;
    while (count > 0) {
        if (__builtin_expect(consumer->run != NULL, 1)) {
            leat_err rc = LEAT_OK;
            size_t n = run_read(consumer, views, count, &rc);
            if (__builtin_expect(n > 0, 1)) return n;
            if (rc) {
                *out_code = consumer_refuse(consumer, rc);
                return 0; /* and again the next time: what can't be read is not skipped */
            }
            leat_consumer_run_return(consumer);
        }
        if (!run_await(consumer, timeout_ms, &deadline, out_code)) return 0;
    }
    return 0;
}

const leat_record_view *leat_consumer_next(leat_consumer *consumer, int timeout_ms,
                                           leat_code *out_code)
{
    return leat_consumer_next_many(consumer, &consumer->view, 1, timeout_ms, out_code)
               ? &consumer->view
               : NULL;
}

int leat_consumer_fd(leat_consumer *consumer)
{
    if (consumer->fd >= 0) return consumer->fd;
    int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC); /* 1: look once before waiting */
    __atomic_store_n(&consumer->fd, fd, __ATOMIC_RELEASE);
    return fd;
}

bool leat_consumer_at_end(leat_consumer *consumer)
{
    if (consumer->run || !atomic_load(&consumer->at_end)) return false;
    leat_spin_lock(&consumer->lock);
    bool empty = leat_list_empty(&consumer->runs);
    leat_spin_unlock(&consumer->lock);
    return empty;
}
