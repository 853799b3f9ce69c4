/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are like the record before are compared with it, not decoded (wire/check.c). This test decodes all
 * records, byte by byte, and expects the same of both: of batches as producers make them, and of batches that differ in
 * a few bytes. Each batch lies in memory of just its size, so that ASan reports a read beyond.
 * Called with a number the program looks at as many batches; a second number says where they begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "wire/check.h"

enum { BYTES_MAX = 1 << 18, RECORDS_MAX = 9000, BATCHES = 200000, NULL_LENGTH = -1 };

static uint64_t rng_state, batch_count = BATCHES, batch_first = 1;

static uint64_t rng(void)
{
    uint64_t z = rng_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static uint32_t below(uint32_t most)
{
    return (uint32_t)(rng() % most);
}
static bool one_in(uint32_t times)
{
    return below(times) == 0;
}

/* ---- the plain decoder ---- */

struct plain {
    const uint8_t *at, *end;
};

static bool plain_number(struct plain *from, unsigned bytes_max, uint64_t *out)
{
    unsigned __int128 number = 0;
    for (unsigned i = 0; i < bytes_max && from->at < from->end; i++) {
        uint8_t byte = *from->at++;
        number |= (unsigned __int128)(byte & 0x7f) << (7 * i);
        if (byte & 0x80) continue;
        *out = (uint64_t)number;
        return number >> (bytes_max == 5 ? 32 : 64) == 0;
    }
    return false;
}

static int64_t plain_signed(uint64_t number)
{
    return number & 1 ? -(int64_t)(number / 2) - 1 : (int64_t)(number / 2);
}

static bool plain_bytes(struct plain *from, bool may_be_null)
{
    uint64_t number;
    if (!plain_number(from, 5, &number)) return false;
    int64_t length = plain_signed(number);
    if (length == NULL_LENGTH && may_be_null) return true;
    if (length < 0 || length > from->end - from->at) return false;
    from->at += length;
    return true;
}

enum verdict { TAKEN, CUT, WRONG };

static enum verdict plain_record(struct plain *from, uint32_t place, int64_t *out_delta)
{
    uint64_t number, offset, headers;
    const ptrdiff_t there = from->end - from->at;
    if (!plain_number(from, 5, &number)) return there < 5 ? CUT : WRONG;
    int64_t length = plain_signed(number);
    if (length < 6) return WRONG;
    if (length > from->end - from->at) return CUT;
    struct plain body = {from->at + 1, from->at + length};
    if (!plain_number(&body, 10, &number) || !plain_number(&body, 5, &offset)) return WRONG;
    *out_delta = plain_signed(number);
    if (!plain_bytes(&body, true) || !plain_bytes(&body, true)) return WRONG;
    if (!plain_number(&body, 5, &headers) || plain_signed(headers) < 0) return WRONG;
    for (int64_t i = plain_signed(headers); i > 0; i--)
        if (!plain_bytes(&body, false) || !plain_bytes(&body, true)) return WRONG;
    if (body.at != body.end || plain_signed(offset) != place) return WRONG;
    from->at = body.end;
    return TAKEN;
}

/* ---- batches ---- */

struct bytes {
    uint8_t at[BYTES_MAX];
    uint32_t count, record_count;
};

static void put_number(struct bytes *out, uint64_t number, unsigned wider)
{
    unsigned count = 1;
    for (uint64_t rest = number >> 7; rest > 0; rest >>= 7)
        count++;
    for (count += wider; count > 0; count--, number >>= 7)
        out->at[out->count++] = (uint8_t)((number & 0x7f) | (count > 1 ? 0x80 : 0));
}

static void put_signed(struct bytes *out, int64_t number, unsigned wider)
{
    put_number(out, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0), wider);
}

struct kind { /* of a record */
    int32_t key, value, headers;
    unsigned wide_length, wide_time, wide_offset, wide_key, wide_value;
    uint8_t attributes;
    bool offset_cut; /* of its offset the last byte is not there */
};

static struct kind kind_any(void)
{
    struct kind kind = {.key = (int32_t)below(6) - 1,
                        .value = (int32_t)below(one_in(2) ? 20 : 150) - 1};
    if (one_in(8)) kind.headers = (int32_t)below(3);
    if (one_in(20)) kind.key = 60 + (int32_t)below(10);
    if (one_in(6)) kind.wide_length = below(3);
    if (one_in(6)) kind.wide_time = below(4);
    if (one_in(6)) kind.wide_offset = below(3);
    if (one_in(6)) kind.wide_key = below(3);
    if (one_in(6)) kind.wide_value = below(3);
    if (one_in(6)) kind.attributes = (uint8_t)rng();
    return kind;
}

static void put_bytes(struct bytes *out, int32_t count, unsigned wider)
{
    put_signed(out, count, wider);
    /* Bytes that may be taken for something else. */
    for (int32_t i = 0; i < count; i++)
        out->at[out->count++] = (uint8_t)(one_in(4) ? rng() : below(4) * 2);
}

static void put_record(struct bytes *out, const struct kind *kind, uint32_t place, int64_t delta)
{
    static struct bytes body;
    body.count = 0;
    body.at[body.count++] = kind->attributes;
    put_signed(&body, delta, kind->wide_time);
    put_signed(&body, place, kind->wide_offset);
    if (kind->offset_cut) body.count--;
    put_bytes(&body, kind->key, kind->wide_key);
    put_bytes(&body, kind->value, kind->wide_value);
    put_signed(&body, kind->headers, 0);
    for (int32_t i = 0; i < kind->headers; i++) {
        put_bytes(&body, (int32_t)below(4), 0);
        put_bytes(&body, (int32_t)below(4) - 1, 0);
    }
    put_signed(out, body.count, kind->wide_length);
    memcpy(out->at + out->count, body.at, body.count);
    out->count += body.count;
}

/* Of the same size, where that is possible: bytes go over from one field to another. */
static void kind_shift(struct kind *kind)
{
    int32_t by = (int32_t)below(3) - 1;
    if (one_in(3)) kind->attributes ^= (uint8_t)(1u << below(8));
    if (kind->key + by < -1 || kind->value - by < -1) return;
    kind->key += by;
    kind->value -= by;
}

static int64_t time_any(void)
{
    static const unsigned bits[] = {1, 6, 7, 13, 14, 20, 21, 31, 63};
    int64_t time = (int64_t)(rng() >> (64 - bits[below(9)]));
    return one_in(4) ? -time : time;
}

static void batch_make(struct bytes *out)
{
    struct kind kind = kind_any();
    int64_t time = one_in(2) ? 0 : time_any();
    uint32_t count = 1 + below(one_in(3) ? 200 : 20), changes = one_in(2) ? 1000 : 1 + below(20);
    if (one_in(500)) { /* past where an offset has three bytes */
        count = RECORDS_MAX;
        kind.key = -1;
        kind.value = (int32_t)below(8);
        changes = 3000;
    }
    out->count = 0;
    for (uint32_t i = 0; i < count && out->count < BYTES_MAX - 4096; i++) {
        if (one_in(changes)) time = one_in(2) ? time + (int64_t)below(9) : time_any();
        struct kind now = kind;
        if (one_in(changes)) kind_shift(&now);
        now.offset_cut = (i == 64 || i == 8192) && one_in(3); /* from where they are wider */
        if (one_in(changes * 2)) now = kind = kind_any();
        put_record(out, &now, i, time);
        out->record_count = i + 1;
    }
}

static void batch_change(struct bytes *batch)
{
    uint8_t *at = batch->at + below(batch->count);
    switch (below(7)) {
    case 0:
        *at ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        *at = (uint8_t)rng();
        break;
    case 2:
        *at = (uint8_t)(*at + (one_in(2) ? 2 : -2));
        break;
    case 3: /* what one has more the next has less */
        at[0]++;
        if (at + 1 < batch->at + batch->count) at[1]--;
        break;
    case 4:
        batch->count = 1 + below(batch->count);
        break;
    case 5: /* a byte too many, or too few */
        memmove(at + 1, at, (size_t)(batch->at + batch->count - at));
        batch->count++;
        break;
    default:
        batch->record_count = batch->record_count + below(3) - 1;
        break;
    }
}

/* ---- both ---- */

static void fail_at(uint64_t number, const char *what)
{
    fail_msg("batch %llu: %s", (unsigned long long)number, what);
}

/* In pieces, cut anywhere. Is it right? */
static bool pieces_take(const struct leat_batch *info, const uint8_t *bytes, size_t count,
                        int64_t *out_newest)
{
    struct leat_record_check check;
    leat_record_check_init(&check, info);
    const uint32_t most = one_in(2) ? 16 : 1 + (uint32_t)count;
    for (size_t at = 0, piece; at < count; at += piece) {
        piece = 1 + below(most);
        if (piece > count - at) piece = count - at;
        uint8_t *copy = malloc(piece);
        assert_non_null(copy);
        memcpy(copy, bytes + at, piece);
        const char *wrong = leat_record_check_feed(&check, copy, piece);
        free(copy);
        if (wrong != NULL) return false;
    }
    *out_newest = check.max_timestamp_ms;
    return leat_record_check_end(&check) == NULL;
}

static void batch_look(const struct bytes *batch, uint64_t number)
{
    struct leat_batch info = {.base_timestamp_ms = (int64_t)(rng() >> (one_in(9) ? 0 : 23)),
                              .record_count = batch->record_count};
    info.max_timestamp_ms = info.base_timestamp_ms + 5;
    if (one_in(8)) info.attributes = LEAT_BATCH_APPEND_TIME;
    uint8_t *bytes = malloc(batch->count);
    assert_non_null(bytes);
    memcpy(bytes, batch->at, batch->count);

    struct plain plain = {bytes, bytes + batch->count};
    int64_t newest = INT64_MIN, delta;
    uint32_t place = 0;
    enum verdict verdict = TAKEN;
    while (place < batch->record_count) {
        struct plain next = plain;
        if ((verdict = plain_record(&next, place, &delta)) != TAKEN) break;
        plain = next;
        int64_t time = (int64_t)((uint64_t)info.base_timestamp_ms + (uint64_t)delta);
        if (info.attributes & LEAT_BATCH_APPEND_TIME) time = info.max_timestamp_ms;
        if (time > newest) newest = time;
        place++;
    }
    const bool whole = place == batch->record_count && plain.at == plain.end;

    struct leat_record_check check;
    const char *wrong = NULL;
    leat_record_check_init(&check, &info);
    const uint8_t *at = leat_record_check_take(&check, bytes, bytes + batch->count, &wrong);
    if (at != plain.at) fail_at(number, "the first record not taken is another");
    if (check.left != batch->record_count - place) fail_at(number, "another count is left");
    if ((wrong != NULL) != (verdict == WRONG)) fail_at(number, wrong ? wrong : "nothing is wrong");
    /* Of a record that is none something may have been noted: its batch is refused. */
    if (wrong == NULL && check.max_timestamp_ms != newest) fail_at(number, "another newest time");
    int64_t of_pieces = INT64_MIN;
    if (pieces_take(&info, bytes, batch->count, &of_pieces) != whole)
        fail_at(number, "in pieces it is another");
    if (whole && of_pieces != newest) fail_at(number, "another newest time in pieces");
    free(bytes);
}

/* Goal: both take the same of whatever comes, and find the same newest time. */
static void records_are_taken_as_a_plain_decoder_takes_them(void **state)
{
    (void)state;
    struct bytes *batch = calloc(1, sizeof *batch);
    assert_non_null(batch);
    for (uint64_t number = batch_first; number < batch_first + batch_count; number++) {
        rng_state = number * UINT64_C(0x2545f4914f6cdd1d);
        batch_make(batch);
        for (unsigned i = one_in(4) ? 0 : 1 + below(3); i > 0; i--)
            batch_change(batch);
        batch_look(batch, number);
    }
    free(batch);
}

int main(int argc, char **argv)
{
    if (argc > 1) batch_count = strtoull(argv[1], NULL, 10);
    if (argc > 2) batch_first = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_taken_as_a_plain_decoder_takes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
