/* SPDX-License-Identifier: Apache-2.0 */
/* The gather beside a plain one: whatever is added, taken and given back, both have the same batches with the same
 * bytes, in the same lists, and say the same. */
#include "producer/gather.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCHES = 64, STREAMS = 3, CALLS = 128, BYTES_MAX = 4096 };

/* A batch as the plain model expects it. */
struct plain_batch {
    struct leat_producer_batch *real;
    uint32_t stream;
    int32_t streamlet;
    bool big, held;
    uint64_t opened_us;
    int64_t opened_ms;
    struct leat_batch_builder builder;
    uint8_t bytes[BYTES_MAX];
    struct leat_gather_call calls[CALLS];
    uint32_t call_count;
};
struct plain_list {
    struct plain_batch *at[BATCHES];
    uint32_t count;
};
struct plain {
    struct leat_gather real;
    uint64_t now_us, seed;
    struct plain_batch batches[BATCHES];
    struct plain_list unused, opened, held, ready, taken;
    struct {
        bool made;
        uint32_t streamlets, limit;
        leat_err refused;
    } streams[STREAMS];
    int32_t last; /* stream of the last add, -1: none */
    uint32_t free_count, batch_count, batch_bytes, batch_records, linger_us;
    uint64_t big_bytes, open_records;
    bool notify_wanted, room_wanted;
    unsigned seen[8]; /* that something happened proves that it was looked at */
};
enum {
    SEEN_FULL,
    SEEN_BIG_FULL,
    SEEN_HELD,
    SEEN_RUN,
    SEEN_RUN_ENDS_LATE,
    SEEN_ROOM,
    SEEN_CUT,
    SEEN_REFUSED
};
static const char *const names[STREAMS] = {"a", "stream", "another-stream"};

static uint64_t dice(struct plain *plain, uint64_t below)
{
    uint64_t z = plain->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static uint64_t now_us(void *ctx)
{
    return ((struct plain *)ctx)->now_us;
}
static int64_t wall_ms(void *ctx)
{
    return 1000000 + (int64_t)((struct plain *)ctx)->now_us;
}

/* ---- lists ---- */

static void list_add(struct plain_list *list, struct plain_batch *batch)
{
    assert_true(list->count < BATCHES);
    list->at[list->count++] = batch;
}
static bool list_remove(struct plain_list *list, const struct plain_batch *batch)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == batch) {
            memmove(&list->at[i], &list->at[i + 1], (--list->count - i) * sizeof list->at[0]);
            return true;
        }
    return false;
}
static struct plain_batch *list_find(const struct plain_list *list, uint32_t stream,
                                     int32_t streamlet)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i]->stream == stream && list->at[i]->streamlet == streamlet)
            return list->at[i];
    return NULL;
}
static struct plain_batch *open_of(struct plain *plain, uint32_t stream, int32_t streamlet)
{
    struct plain_batch *batch = list_find(&plain->opened, stream, streamlet);
    return batch ? batch : list_find(&plain->held, stream, streamlet);
}
static void make_ready(struct plain *plain, struct plain_batch *batch)
{
    if (!list_remove(&plain->opened, batch)) assert_true(list_remove(&plain->held, batch));
    list_add(&plain->ready, batch);
}
static void close_all(struct plain *plain)
{
    while (plain->opened.count)
        make_ready(plain, plain->opened.at[0]);
    while (plain->held.count)
        make_ready(plain, plain->held.at[0]);
}

/* ---- adding ---- */

static leat_err builder_add(struct plain_batch *batch, const struct leat_gather_record *record,
                            int64_t stamp)
{
    return leat_batch_builder_add(&batch->builder, stamp, record->key, record->key_bytes,
                                  record->value, record->value_bytes, record->headers,
                                  record->headers_bytes, record->header_count);
}

static leat_err batch_add(struct plain *plain, struct plain_batch *batch,
                          const struct leat_gather_record *record)
{
    int64_t stamp = record->timestamp_ms;
    if (!stamp)
        stamp = plain->linger_us <= 5000 && !batch->held ? batch->opened_ms : wall_ms(plain);
    uint32_t number = batch->builder.record_count;
    leat_err rc = builder_add(batch, record, stamp);
    if (rc == LEAT_OK && record->fn)
        batch->calls[batch->call_count++] =
            (struct leat_gather_call){number, record->fn, record->arg};
    return rc;
}

static leat_err batch_next(struct plain *plain, uint32_t stream, int32_t streamlet,
                           const struct leat_gather_record *record, struct plain_batch **out)
{
    size_t bytes =
        LEAT_BATCH_HEADER_BYTES +
        leat_batch_record_bytes_max(record->key_bytes, record->value_bytes, record->headers_bytes);
    bool big = bytes > plain->batch_bytes;
    if (big ? plain->big_bytes &&
                  plain->big_bytes + bytes > (uint64_t)plain->batch_count * plain->batch_bytes
            : plain->free_count == 0) {
        plain->seen[big ? SEEN_BIG_FULL : SEEN_FULL]++;
        close_all(plain);
        plain->room_wanted = true;
        return LEAT_E_AGAIN;
    }
    assert_true(plain->unused.count > 0);
    struct plain_batch *batch = plain->unused.at[0];
    (void)list_remove(&plain->unused, batch);
    size_t room = big ? bytes : plain->batch_bytes, limit = plain->streams[stream].limit;
    if (big)
        plain->big_bytes += bytes;
    else
        plain->free_count--;
    if (limit && limit < bytes) limit = bytes;
    if (limit && limit < room) {
        room = limit;
        plain->seen[SEEN_CUT]++;
    }
    *batch = (struct plain_batch){.stream = stream,
                                  .streamlet = streamlet,
                                  .big = big,
                                  .opened_us = plain->now_us,
                                  .opened_ms = wall_ms(plain)};
    leat_batch_builder_init(&batch->builder, batch->bytes, room);
    list_add(&plain->opened, batch);
    *out = batch;
    return batch_add(plain, batch, record);
}

static leat_err plain_route(struct plain *plain, uint32_t stream,
                            const struct leat_gather_record *record, int32_t *out_streamlet)
{
    uint32_t streamlets = plain->streams[stream].streamlets;
    *out_streamlet = -1;
    if (streamlets == 1 && record->streamlet <= 0) {
        struct plain_batch *any = open_of(plain, stream, -1);
        if (any) make_ready(plain, any);
        *out_streamlet = 0;
    } else if (record->streamlet >= 0 || record->key) {
        if (streamlets == 0) {
            plain->room_wanted = true;
            return LEAT_E_AGAIN;
        }
        if (record->streamlet >= (int32_t)streamlets) return LEAT_E_UNKNOWN_LOG;
        *out_streamlet =
            record->streamlet >= 0
                ? record->streamlet
                : (int32_t)leat_gather_streamlet_of_key(record->key, record->key_bytes, streamlets);
    }
    return LEAT_OK;
}

static leat_err plain_add(struct plain *plain, uint32_t stream,
                          const struct leat_gather_record *record, bool *out_notify)
{
    plain->streams[stream].made = true;
    plain->last = (int32_t)stream;
    if (plain->streams[stream].refused) {
        plain->seen[SEEN_REFUSED]++;
        *out_notify = true;
        return plain->streams[stream].refused;
    }
    int32_t streamlet;
    leat_err rc = plain_route(plain, stream, record, &streamlet);
    bool event = false;
    struct plain_batch *batch = rc ? NULL : open_of(plain, stream, streamlet);
    if (!rc)
        rc = batch ? batch_add(plain, batch, record) : LEAT_E_AGAIN;
    else {
        *out_notify = rc == LEAT_E_AGAIN;
        return rc;
    }
    if (rc == LEAT_E_AGAIN) {
        if (batch) make_ready(plain, batch);
        event = batch || plain->opened.count == 0;
        rc = batch_next(plain, stream, streamlet, record, &batch);
    }
    if (rc) {
        *out_notify = rc == LEAT_E_AGAIN;
        return rc;
    }
    plain->open_records++;
    if (batch->big || batch->builder.record_count >= plain->batch_records) {
        make_ready(plain, batch);
        event = true;
    }
    *out_notify = event && plain->notify_wanted;
    if (event) plain->notify_wanted = false;
    return LEAT_OK;
}

/* ---- comparing ---- */

static struct leat_producer_batch *first_of(const struct leat_list *link, bool open)
{
    return open ? LEAT_CONTAINER(link, struct leat_producer_batch, open_link)
                : LEAT_CONTAINER(link, struct leat_producer_batch, link);
}

static void batch_compare(struct plain *plain, struct plain_batch *want,
                          struct leat_producer_batch *real)
{
    if (!want->real) want->real = real;
    assert_ptr_equal(want->real, real);
    assert_ptr_equal(real->stream, plain->real.streams[real->stream->index]);
    assert_string_equal(real->stream->name, names[want->stream]);
    assert_int_equal(real->streamlet, want->streamlet);
    assert_int_equal(real->big, want->big);
    assert_int_equal(real->held, want->held);
    assert_int_equal(real->opened_us, want->opened_us);
    assert_int_equal(real->opened_wall_ms, want->opened_ms);
    assert_int_equal(real->builder.record_count, want->builder.record_count);
    assert_int_equal(real->builder.used, want->builder.used);
    assert_int_equal(real->builder.capacity, want->builder.capacity);
    assert_ptr_equal(real->builder.bytes, real->bytes);
    assert_memory_equal(real->bytes + LEAT_BATCH_HEADER_BYTES,
                        want->bytes + LEAT_BATCH_HEADER_BYTES,
                        want->builder.used - LEAT_BATCH_HEADER_BYTES);
    assert_int_equal(real->call_count, want->call_count);
    for (uint32_t i = 0; i < want->call_count; i++)
        assert_true(real->calls[i].record == want->calls[i].record &&
                    real->calls[i].fn == want->calls[i].fn &&
                    real->calls[i].arg == want->calls[i].arg);
    assert_int_equal(real->sequence, -1);
    assert_int_equal(real->byte_count, 0);
    assert_int_equal(real->code, LEAT_OK);
    assert_false(real->finished || real->in_flight || real->acked || real->reported ||
                 real->maybe_appended);
}

static void list_compare(struct plain *plain, struct plain_list *want, const struct leat_list *list,
                         bool open)
{
    const struct leat_list *link = list->next;
    for (uint32_t i = 0; i < want->count; i++, link = link->next) {
        assert_ptr_not_equal(link, list);
        batch_compare(plain, want->at[i], first_of(link, open));
    }
    assert_ptr_equal(link, list);
}

static void compare(struct plain *plain)
{
    const struct leat_gather *real = &plain->real;
    list_compare(plain, &plain->opened, &real->opened, true);
    list_compare(plain, &plain->held, &real->held, true);
    list_compare(plain, &plain->ready, &real->ready, false);
    assert_int_equal(real->free_count, plain->free_count);
    assert_int_equal(real->big_bytes, plain->big_bytes);
    assert_int_equal(real->open_records, plain->open_records);
    assert_int_equal(real->notify_wanted, plain->notify_wanted);
    assert_int_equal(real->room_wanted, plain->room_wanted);
    assert_null(real->filling);
    assert_false(real->close_wanted);
    for (uint32_t i = 0; i < real->stream_count; i++) {
        const struct leat_gather_stream *stream = real->streams[i];
        uint32_t s = 0;
        while (strcmp(names[s], stream->name) != 0)
            s++;
        assert_int_equal(stream->index, i);
        assert_int_equal(stream->name_bytes, strlen(names[s]));
        assert_int_equal(stream->streamlets, plain->streams[s].streamlets);
        assert_int_equal(stream->refused, plain->streams[s].refused);
        for (int32_t at = -1; at < (int32_t)stream->streamlets; at++) {
            const struct plain_batch *open = open_of(plain, s, at);
            assert_ptr_equal(at < 0 ? stream->open_any : stream->open[at],
                             open ? open->real : NULL);
        }
    }
}

/* ---- what happens ---- */

static uint8_t value[BYTES_MAX];

static void some_call(void)
{
}

static void do_add(struct plain *plain)
{
    uint32_t stream = (uint32_t)dice(plain, STREAMS);
    static const uint8_t headers[] = {2, 'h', 2, 'v'};
    struct leat_gather_record record = {.stream = names[stream],
                                        .streamlet = (int32_t)dice(plain, 8) - 4,
                                        .timestamp_ms = dice(plain, 3) ? 0 : 77,
                                        .value = value + dice(plain, 100)};
    if (record.streamlet < -1) record.streamlet = -1;
    record.value_bytes = dice(plain, 10) ? dice(plain, 120) : dice(plain, 1200);
    if (dice(plain, 4) == 0) {
        record.key = value + 200;
        record.key_bytes = dice(plain, 9);
    }
    if (dice(plain, 5) == 0) {
        record.headers = headers;
        record.headers_bytes = sizeof headers;
        record.header_count = 1;
    }
    if (dice(plain, 2) == 0) {
        record.fn = some_call;
        record.arg = value + dice(plain, 1000);
    }
    bool notify = false, want_notify = false;
    leat_err want = plain_add(plain, stream, &record, &want_notify);
    assert_int_equal(leat_gather_add(&plain->real, &record, &notify), want);
    assert_int_equal(notify, want_notify);
}

static bool hold_some(void *arg, const struct leat_producer_batch *batch)
{
    return ((uint32_t)batch->streamlet + *(uint32_t *)arg) % 3 == 0;
}

static bool is_held(uint32_t how, const struct plain_batch *batch)
{
    return how < 3 && ((uint32_t)batch->streamlet + how) % 3 == 0;
}

static void do_take(struct plain *plain, struct plain_batch *filling)
{
    uint32_t how = (uint32_t)dice(plain, 6); /* of 3 and more nobody is asked */
    uint64_t before = plain->now_us - (filling ? 0 : dice(plain, 60));
    for (uint32_t i = 0; i < plain->held.count;)
        if (is_held(how, plain->held.at[i]))
            i++;
        else
            make_ready(plain, plain->held.at[i]);
    for (uint32_t i = 0; i < plain->opened.count && plain->opened.at[i]->opened_us <= before;) {
        struct plain_batch *batch = plain->opened.at[i];
        if (is_held(how, batch)) {
            batch->held = true;
            plain->seen[SEEN_HELD]++;
            (void)list_remove(&plain->opened, batch);
            list_add(&plain->held, batch);
        } else if (batch == filling) {
            plain->seen[SEEN_RUN_ENDS_LATE]++;
            i++;
        } else {
            make_ready(plain, batch);
        }
    }
    struct leat_list taken;
    leat_list_init(&taken);
    leat_gather_take(&plain->real, before, how < 3 ? hold_some : NULL, &how, &taken);
    list_compare(plain, &plain->ready, &taken, false);
    for (uint32_t i = 0; i < plain->ready.count; i++)
        list_add(&plain->taken, plain->ready.at[i]);
    plain->ready.count = 0;
    while (leat_list_pop_front(&taken))
        ;
}

/* Sent, and acked: whatever the engine has noted in it. */
static void do_give(struct plain *plain)
{
    if (!plain->taken.count) return;
    struct plain_batch *batch = plain->taken.at[dice(plain, plain->taken.count)];
    struct leat_producer_batch *real = batch->real;
    batch_compare(plain, batch, real);
    struct leat_batch checked;
    uint32_t bytes = leat_batch_builder_finish(&real->builder, LEAT_CODEC_NONE, 1, 2, 3);
    assert_int_equal(leat_batch_check(real->bytes, bytes, &checked, NULL), LEAT_OK);
    assert_int_equal(checked.record_count, batch->builder.record_count);
    real->finished = real->in_flight = real->acked = real->reported = true;
    real->maybe_appended = real->held = true;
    real->sequence = 7;
    real->byte_count = bytes;
    real->code = LEAT_E_DISK;
    (void)list_remove(&plain->taken, batch);
    list_add(&plain->unused, batch);
    if (batch->big)
        plain->big_bytes -= batch->real->capacity;
    else
        plain->free_count++;
    bool room = plain->room_wanted && plain->free_count >= plain->batch_count / 2;
    if (room) plain->room_wanted = false;
    plain->seen[SEEN_ROOM] += room;
    assert_int_equal(leat_gather_give(&plain->real, real), room);
}

static void do_known(struct plain *plain)
{
    uint32_t at = (uint32_t)dice(plain, STREAMS), streamlets = 1 + (uint32_t)dice(plain, 4);
    for (uint32_t i = 0; i < plain->real.stream_count; i++) {
        struct leat_gather_stream *stream = plain->real.streams[i];
        if (strcmp(stream->name, names[at]) != 0) continue;
        if (at == 0 && streamlets > 1) streamlets = 1; /* one has one only */
        if (dice(plain, 5) == 0) {
            stream->refused = plain->streams[at].refused = LEAT_E_UNKNOWN_STREAM;
            return;
        }
        assert_int_equal(leat_gather_stream_known(stream, streamlets), LEAT_OK);
        stream->batch_bytes_max = plain->streams[at].limit = (uint32_t)dice(plain, 3) * 200;
        if (streamlets > plain->streams[at].streamlets) plain->streams[at].streamlets = streamlets;
        plain->streams[at].refused = LEAT_OK;
    }
}

/* Which batch takes a run; NULL: none. */
static struct plain_batch *run_of(struct plain *plain, uint32_t stream)
{
    if (plain->last != (int32_t)stream || plain->streams[stream].refused || plain->linger_us > 5000)
        return NULL;
    bool one = plain->streams[stream].streamlets == 1;
    if (one && open_of(plain, stream, -1)) return NULL;
    struct plain_batch *batch = open_of(plain, stream, one ? 0 : -1);
    return batch && !batch->held ? batch : NULL;
}

static size_t run_plain(struct plain *plain, struct plain_batch *batch,
                        const leat_produce_record *records, size_t count)
{
    size_t added = 0;
    for (; added < count; added++) {
        const leat_produce_record *from = &records[added];
        if (batch->builder.record_count + 1 >= plain->batch_records) break;
        if (batch->streamlet == 0 ? from->streamlet > 0 : from->streamlet >= 0 || from->key) break;
        struct leat_gather_record record = {.key = from->key,
                                            .key_bytes = from->key ? from->key_bytes : 0,
                                            .value = from->value,
                                            .value_bytes = from->value ? from->value_bytes : 0,
                                            .headers = from->headers,
                                            .headers_bytes =
                                                from->headers ? from->headers_bytes : 0,
                                            .header_count = from->headers ? from->header_count : 0};
        if (builder_add(batch, &record, from->timestamp_ms ? from->timestamp_ms : batch->opened_ms))
            break;
    }
    return added;
}

static void do_run(struct plain *plain)
{
    static const uint8_t headers[] = {2, 'h', 2, 'v'};
    leat_produce_record records[20];
    uint32_t stream = (uint32_t)dice(plain, STREAMS);
    struct plain_batch *batch = run_of(plain, stream);
    struct leat_producer_batch *real = leat_gather_run_begin(&plain->real, names[stream]);
    assert_ptr_equal(real, batch ? batch->real : NULL);
    if (!real) return;
    plain->seen[SEEN_RUN]++;
    size_t count = dice(plain, 20);
    for (size_t i = 0; i < count; i++) {
        records[i] =
            (leat_produce_record){.value = dice(plain, 9) ? value + dice(plain, 99) : NULL,
                                  .value_bytes = dice(plain, 50),
                                  .streamlet = dice(plain, 30) ? -1 : (int32_t)dice(plain, 2)};
        if (dice(plain, 20) == 0) records[i].timestamp_ms = 99;
        if (dice(plain, 20) == 0) records[i].key = value;
        records[i].key_bytes = dice(plain, 7);
        if (dice(plain, 20) == 0) records[i].headers = headers;
        records[i].headers_bytes = sizeof headers;
        records[i].header_count = 1;
    }
    uint32_t late = plain->seen[SEEN_RUN_ENDS_LATE];
    if (dice(plain, 3) == 0) do_take(plain, batch);
    late = plain->seen[SEEN_RUN_ENDS_LATE] - late;
    size_t want = run_plain(plain, batch, records, count);
    assert_int_equal(leat_gather_run_fill(&plain->real, real, records, count), want);
    bool notify = false;
    leat_gather_run_end(&plain->real, want, &notify);
    plain->open_records += want;
    bool want_notify = late && plain->notify_wanted;
    if (late) make_ready(plain, batch);
    if (late) plain->notify_wanted = false;
    assert_int_equal(notify, want_notify);
}

static void plain_begin(struct plain *plain, uint64_t seed)
{
    static const uint32_t lingers[] = {0, 1000, 5000, 5001, 100000}, counts[] = {0, 1, 2, 5, 30};
    memset(plain, 0, sizeof *plain);
    plain->seed = seed;
    plain->now_us = 1000;
    plain->last = -1;
    plain->batch_bytes = 300 + (uint32_t)dice(plain, 300);
    plain->batch_count = 2 + (uint32_t)dice(plain, 9);
    plain->linger_us = lingers[seed % 5];
    uint32_t records = counts[seed / 5 % 5];
    plain->batch_records = records ? records : LEAT_RECORDS_PER_BATCH_MAX;
    uint64_t stride = (plain->batch_bytes + 63u) / 64 * 64;
    struct leat_gather_options options = {.batch_bytes = plain->batch_bytes,
                                          .batch_records = records,
                                          .linger_us = plain->linger_us,
                                          .buffer_bytes = stride * plain->batch_count + stride - 1};
    struct leat_gather_clock clock = {plain, now_us, wall_ms};
    assert_int_equal(leat_gather_init(&plain->real, &options, clock), LEAT_OK);
    plain->free_count = plain->batch_count;
    plain->notify_wanted = true;
    for (uint32_t i = 0; i < BATCHES; i++)
        list_add(&plain->unused, &plain->batches[i]);
}

/* Goal: the gather is what the plain one is, after each of thousands of steps of any kind. */
static void gather_is_as_the_plain_one(void **state)
{
    (void)state;
    static struct plain plain;
    unsigned seen[8] = {0};
    size_t before = leat_mem_bytes(LEAT_MEM_CLIENT);
    for (uint32_t i = 0; i < BYTES_MAX; i++)
        value[i] = (uint8_t)(i * 7);
    for (uint64_t seed = 0; seed < 500; seed++) {
        plain_begin(&plain, seed);
        for (unsigned step = 0; step < 400; step++) {
            uint64_t what = dice(&plain, 40);
            if (what < 20)
                do_add(&plain);
            else if (what < 23)
                do_take(&plain, NULL);
            else if (what < 29)
                do_give(&plain);
            else if (what < 31)
                do_known(&plain);
            else if (what < 35)
                do_run(&plain);
            else if (what < 38)
                plain.now_us += dice(&plain, 30);
            else if (what < 39)
                plain.notify_wanted = plain.real.notify_wanted = true;
            else {
                close_all(&plain);
                leat_gather_close_all(&plain.real);
            }
            compare(&plain);
        }
        close_all(&plain);
        leat_gather_close_all(&plain.real);
        do_take(&plain, NULL);
        while (plain.taken.count)
            do_give(&plain);
        compare(&plain);
        assert_int_equal(plain.free_count, plain.batch_count);
        assert_int_equal(plain.big_bytes, 0);
        leat_gather_fini(&plain.real);
        for (unsigned i = 0; i < 8; i++)
            seen[i] += plain.seen[i];
    }
    for (unsigned i = 0; i < 8; i++)
        assert_true(seen[i] > 50);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_is_as_the_plain_one),
    };
    return cmocka_run_group_tests_name("producer gather plain", tests, NULL, NULL);
}
