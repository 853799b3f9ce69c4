/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is checked of compressed batches: each codec, held against reading the same records uncompressed. */
#include "wire_fixture.h"

#include "wire/check.h"
#include "wire/unpack.h"

#include <lz4frame.h>
#include <zstd.h>
#ifdef LEAT_HAVE_ZLIB
#include <zlib.h>
#endif

enum { PACKED_BYTES_MAX = 48 * 1024 * 1024, PLAIN_BYTES_MAX = 40 * 1024 * 1024 };
static uint8_t plain[LEAT_BATCH_BYTES_MAX], packed[PACKED_BYTES_MAX], again[LEAT_BATCH_BYTES_MAX];
static struct leat_unpacker *unpacker;

/* Ways to compress: codecs, and what else their formats allow. */
enum way {
    WAY_ZSTD,
    WAY_ZSTD_FRAMES,
    WAY_LZ4,
    WAY_LZ4_SUMS,
    WAY_SNAPPY,
    WAY_SNAPPY_FRAMES,
    WAY_GZIP,
    WAY_GZIP_MEMBERS,
    WAYS,
};

static enum leat_codec codec_of(enum way way)
{
    static const enum leat_codec codecs[WAYS] = {
        LEAT_CODEC_ZSTD,   LEAT_CODEC_ZSTD,   LEAT_CODEC_LZ4,  LEAT_CODEC_LZ4,
        LEAT_CODEC_SNAPPY, LEAT_CODEC_SNAPPY, LEAT_CODEC_GZIP, LEAT_CODEC_GZIP,
    };
    return codecs[way];
}

/* Literals only, and a copy of what is sixteen bytes back where that is the same: valid, if not small. */
static size_t snappy_block(const uint8_t *in, size_t bytes, uint8_t *out)
{
    uint8_t *at = out;
    uint64_t left = bytes;
    do
        *at++ = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    while (left >>= 7);
    for (size_t i = 0; i < bytes;) {
        size_t run = 0;
        while (i >= 16 && i + run < bytes && run < 64 && in[i + run] == in[i + run - 16])
            run++;
        if (run >= 4) {
            *at++ = (uint8_t)((run - 1) << 2 | 2);
            *at++ = 16;
            *at++ = 0;
            i += run;
            continue;
        }
        size_t count = bytes - i < 16 ? bytes - i : 16;
        *at++ = (uint8_t)((count - 1) << 2);
        memcpy(at, in + i, count);
        at += count;
        i += count;
    }
    return (size_t)(at - out);
}

#ifdef LEAT_HAVE_ZLIB
static size_t gzip_member(const uint8_t *in, size_t bytes, uint8_t *out, size_t capacity)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)in;
    stream.avail_in = (uInt)bytes;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t made = capacity - stream.avail_out;
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return made;
}
#endif

static size_t lz4_frame(const uint8_t *in, size_t bytes, uint8_t *out, size_t capacity, bool sums)
{
    LZ4F_preferences_t how = {.frameInfo = {.blockMode = LZ4F_blockIndependent}};
    if (sums) {
        how.frameInfo.blockSizeID = LZ4F_max4MB;
        how.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
        how.frameInfo.blockChecksumFlag = LZ4F_blockChecksumEnabled;
        how.frameInfo.contentSize = bytes;
    }
    size_t made = LZ4F_compressFrame(out, capacity, in, bytes, &how);
    assert_false(LZ4F_isError(made));
    return made;
}

static size_t pack_bytes(enum way way, const uint8_t *in, size_t bytes, uint8_t *out, size_t room)
{
    size_t half = bytes / 2, made = 0;
    switch (way) {
    case WAY_ZSTD:
        return ZSTD_compress(out, room, in, bytes, 1);
    case WAY_ZSTD_FRAMES:
        made = ZSTD_compress(out, room, in, half, 1);
        return made + ZSTD_compress(out + made, room - made, in + half, bytes - half, 3);
    case WAY_LZ4:
    case WAY_LZ4_SUMS:
        return lz4_frame(in, bytes, out, room, way == WAY_LZ4_SUMS);
    case WAY_SNAPPY:
        return snappy_block(in, bytes, out);
    case WAY_SNAPPY_FRAMES:
        memcpy(out, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
        made = snappy_block(in, half, out + 20);
        leat_put_be32(out + 16, (uint32_t)made);
        size_t second = snappy_block(in + half, bytes - half, out + 24 + made);
        leat_put_be32(out + 20 + made, (uint32_t)second);
        return 24 + made + second;
#ifdef LEAT_HAVE_ZLIB
    case WAY_GZIP:
        return gzip_member(in, bytes, out, room);
    case WAY_GZIP_MEMBERS:
        made = gzip_member(in, half, out, room);
        return made + gzip_member(in + half, bytes - half, out + made, room - made);
#endif
    default:
        return 0;
    }
}

static void header_finish(uint8_t *batch, size_t bytes, enum leat_codec codec)
{
    leat_put_be32(batch + LEAT_BATCH_LENGTH_AT, (uint32_t)bytes - LEAT_BATCH_LENGTH_AT - 4);
    batch[22] = (uint8_t)((batch[22] & ~7) | (int)codec);
    uint32_t crc = leat_crc32c(0, batch + LEAT_BATCH_CRC_FROM, bytes - LEAT_BATCH_CRC_FROM);
    leat_put_be32(batch + LEAT_BATCH_CRC_AT, crc);
}

/* Whatever lies behind the header, compressed that way. 0: not this way, or not with this build. */
static size_t pack(enum way way, size_t plain_bytes)
{
    memcpy(packed, plain, LEAT_BATCH_HEADER_BYTES);
    size_t made =
        pack_bytes(way, plain + LEAT_BATCH_HEADER_BYTES, plain_bytes - LEAT_BATCH_HEADER_BYTES,
                   packed + LEAT_BATCH_HEADER_BYTES, sizeof packed - 4096);
    size_t bytes = made + LEAT_BATCH_HEADER_BYTES;
    if (made == 0 || bytes > LEAT_BATCH_BYTES_MAX) return 0;
    header_finish(packed, bytes, codec_of(way));
    return bytes;
}

/* In steps it is judged the same, though its bytes lie elsewhere each time. */
static void check_steps(size_t bytes, const struct leat_batch *whole, leat_err whole_rc,
                        size_t whole_cost, const struct leat_error *whole_error)
{
    static uint8_t copies[2][LEAT_BATCH_BYTES_MAX];
    struct leat_batch batch;
    struct leat_error error = {LEAT_OK, ""};
    size_t cost, cost_all = 0, most = bytes % 8 == 0 ? 1 : 300 * 1024;
    leat_err rc = LEAT_E_AGAIN;
    for (unsigned step = 0; rc == LEAT_E_AGAIN; step++) {
        memset(copies[(step + 1) % 2], 0xa5, bytes);
        memcpy(copies[step % 2], packed, bytes);
        assert_int_equal(leat_batch_check(copies[step % 2], bytes, &batch, NULL), LEAT_OK);
        if (step == 0) leat_unpacker_begin(unpacker, &batch);
        rc = leat_unpacker_step(unpacker, &batch, most, &cost, &error);
        assert_true(rc != LEAT_E_AGAIN || cost >= most);
        cost_all += cost;
    }
    assert_int_equal(rc, whole_rc);
    assert_int_equal(cost_all, whole_cost);
    assert_string_equal(error.text, whole_error->text);
    assert_true(batch.max_timestamp_ms == whole->max_timestamp_ms);
}

static leat_err check_packed(size_t bytes, struct leat_batch *batch)
{
    size_t cost;
    struct leat_error error = {LEAT_OK, ""};
    assert_int_equal(leat_batch_check(packed, bytes, batch, NULL), LEAT_OK);
    leat_err rc = leat_unpacker_check(unpacker, batch, &cost, &error);
    assert_true(rc == LEAT_OK || error.text[0] != '\0');
    if (bytes % 4 == 0) check_steps(bytes, batch, rc, cost, &error);
    assert_true(cost <= LEAT_UNPACKED_BYTES_MAX + LEAT_UNPACK_WINDOW_BYTES);
    return rc;
}

static uint32_t plain_make(struct leat_xoshiro *random, uint32_t count_max, uint32_t value_max)
{
    static uint8_t value[100000];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, plain, sizeof plain);
    uint32_t count = 1 + (uint32_t)leat_xoshiro_below(random, count_max);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes = (uint32_t)leat_xoshiro_below(random, value_max);
        for (uint32_t b = 0; b < bytes && b < 8; b++)
            value[leat_xoshiro_below(random, bytes)] = (uint8_t)leat_xoshiro_next(random);
        int64_t time = 1000000 + (int64_t)leat_xoshiro_below(random, 100000);
        bool key = leat_xoshiro_below(random, 2), header = leat_xoshiro_below(random, 5) == 0;
        leat_err rc = leat_batch_builder_add(&builder, time, key ? "key" : NULL, key ? 3 : 0, value,
                                             bytes, "\2h\2v", header ? 4 : 0, header);
        if (rc == LEAT_E_AGAIN) break;
        assert_int_equal(rc, LEAT_OK);
    }
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
}

/* The same batches are right and wrong, however they are compressed; and the highest time is the same, which the header
 * does not tell. */
static void compressed_batch_is_judged_by_its_records(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 71);
    unsigned right = 0, wrong = 0;
    for (int round = 0; round < 1500; round++) {
        uint32_t large = round % 50 == 0 ? 100000 : 300;
        uint32_t bytes = plain_make(&random, round % 7 == 0 ? 3000 : 60, large);
        if (leat_xoshiro_below(&random, 2)) {
            static const uint8_t likely[] = {0, 1, 2, 0x7f, 0x80, 0xff};
            size_t at = LEAT_BATCH_HEADER_BYTES +
                        leat_xoshiro_below(&random, bytes - LEAT_BATCH_HEADER_BYTES);
            plain[at] = likely[leat_xoshiro_below(&random, sizeof likely)];
        }
        if (leat_xoshiro_below(&random, 10) == 0) bytes -= 1 + (uint32_t)round % 3;
        leat_put_be64(plain + 35, UINT64_MAX);
        header_finish(plain, bytes, LEAT_CODEC_NONE);
        struct leat_batch batch, told;
        leat_err wanted = leat_batch_check(plain, bytes, &told, NULL);
        for (enum way way = 0; way < WAYS; way++) {
            size_t packed_bytes = pack(way, bytes);
            if (packed_bytes == 0) continue;
            /* Of several members or frames some clients read the first only. */
            if (way == WAY_GZIP_MEMBERS || way == WAY_ZSTD_FRAMES) {
                assert_int_equal(check_packed(packed_bytes, &batch), LEAT_E_INVALID);
                continue;
            }
            assert_int_equal(check_packed(packed_bytes, &batch), wanted);
            if (wanted == LEAT_OK) assert_int_equal(batch.max_timestamp_ms, told.max_timestamp_ms);
            *(wanted == LEAT_OK ? &right : &wrong) += 1;
        }
    }
    assert_true(right > 1000 && wrong > 1000);
}

/* Pieces that end anywhere say what the whole says. */
static void records_in_pieces_are_judged_as_in_one(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 72);
    for (int round = 0; round < 20000; round++) {
        uint32_t bytes = plain_make(&random, 30, 90);
        if (round % 2)
            plain[LEAT_BATCH_HEADER_BYTES +
                  leat_xoshiro_below(&random, bytes - LEAT_BATCH_HEADER_BYTES)] ^=
                (uint8_t)(1 << round % 8);
        else if (round % 8 == 4 && memcmp(plain + bytes - 4, "\2h\2v", 4) == 0)
            memcpy(plain + bytes - 4, "\1\4hv", 4); /* a header without a key */
        header_finish(plain, bytes, LEAT_CODEC_NONE);
        struct leat_batch batch, told;
        leat_err wanted = leat_batch_check(plain, bytes, &told, NULL);
        assert_int_equal(leat_batch_view(plain, bytes, &batch), LEAT_OK);
        struct leat_record_check check;
        leat_record_check_init(&check, &batch);
        const char *wrong = NULL;
        uint64_t most = 1 + leat_xoshiro_below(&random, 60);
        for (uint32_t at = LEAT_BATCH_HEADER_BYTES; at < bytes && wrong == NULL;) {
            uint32_t piece = (uint32_t)leat_xoshiro_below(&random, most) + 1;
            if (piece > bytes - at) piece = bytes - at;
            uint8_t *own = malloc(piece); /* ASan sees one byte too far */
            assert_non_null(own);
            memcpy(own, plain + at, piece);
            wrong = leat_record_check_feed(&check, own, piece);
            free(own);
            at += piece;
        }
        if (wrong == NULL) wrong = leat_record_check_end(&check);
        assert_int_equal(wrong == NULL ? LEAT_OK : LEAT_E_INVALID, wanted);
        if (wrong == NULL) assert_int_equal(check.max_timestamp_ms, told.max_timestamp_ms);
    }
}

/* Compressed bytes of which some are other ones, or missing, under a right CRC: what is taken can be read. */
static void damaged_compression_that_is_taken_can_be_read(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 73);
    unsigned refused = 0;
    for (int round = 0; round < 12000; round++) {
        enum way way = (enum way)(round % WAYS);
        size_t bytes = pack(way, plain_make(&random, 40, 120));
        if (bytes == 0) continue;
        size_t body = bytes - LEAT_BATCH_HEADER_BYTES;
        for (uint64_t i = leat_xoshiro_below(&random, 3); i < 3; i++)
            packed[LEAT_BATCH_HEADER_BYTES + leat_xoshiro_below(&random, body)] ^=
                (uint8_t)(1 << leat_xoshiro_below(&random, 8));
        if (round % 3 == 0) bytes -= leat_xoshiro_below(&random, body);
        header_finish(packed, bytes, codec_of(way));
        struct leat_batch batch;
        leat_err rc = check_packed(bytes, &batch);
        if (rc != LEAT_OK) {
            refused++;
            continue;
        }
        const uint8_t *records;
        size_t records_bytes;
        assert_int_equal(leat_batch_records(&batch, again, sizeof again, &records, &records_bytes),
                         LEAT_OK);
        struct leat_record_reader reader;
        struct leat_record record;
        leat_record_reader_init(&reader, &batch, records, records_bytes);
        while ((rc = leat_record_next(&reader, &record)) == LEAT_OK)
            assert_true(record.timestamp_ms <= batch.max_timestamp_ms);
        assert_int_equal(rc, LEAT_E_NOT_FOUND);
    }
    assert_true(refused > 1000);
}

static leat_err seek(struct leat_unpacker *by, const struct leat_batch *batch, int64_t time_ms,
                     uint32_t from, uint32_t *out_delta, int64_t *out_ms, unsigned *out_steps)
{
    leat_err rc;
    *out_steps = 0;
    leat_unpacker_seek_begin(by, batch, time_ms, from, LEAT_BATCH_BYTES_MAX);
    do {
        rc = leat_unpacker_seek_step(by, batch, 1, out_delta, out_ms);
        (*out_steps)++;
    } while (rc == LEAT_E_AGAIN);
    return rc;
}

/* Goal: the first record that is not older than a time, and not before a place, is found in pieces as it is among
 * uncompressed records; gzip does with less memory. */
static void record_of_a_time_is_found_in_pieces(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 76);
    struct leat_unpacker *small = leat_unpacker_create(LEAT_UNPACKER_GZIP_BYTES);
    assert_non_null(small);
    unsigned found = 0, steps_most = 0;
    for (int round = 0; round < 2000; round++) {
        enum way way = (enum way)(round % WAYS);
        uint32_t large = round % 50 < 8 ? 60000 : 300;
        uint32_t plain_bytes = plain_make(&random, 60, large);
        size_t bytes = pack(way, plain_bytes);
        if (bytes == 0 || way == WAY_ZSTD_FRAMES || way == WAY_GZIP_MEMBERS) continue;
        struct leat_batch batch;
        assert_int_equal(leat_batch_check(packed, bytes, &batch, NULL), LEAT_OK);
        uint32_t from = (uint32_t)leat_xoshiro_below(&random, batch.record_count);
        int64_t span = batch.max_timestamp_ms - batch.base_timestamp_ms;
        int64_t time_ms =
            batch.max_timestamp_ms + 1 - (int64_t)leat_xoshiro_below(&random, (uint64_t)span + 2);
        struct leat_record_reader reader;
        struct leat_record record;
        leat_record_reader_init(&reader, &batch, plain + LEAT_BATCH_HEADER_BYTES,
                                plain_bytes - LEAT_BATCH_HEADER_BYTES);
        leat_err wanted;
        while ((wanted = leat_record_next(&reader, &record)) == LEAT_OK)
            if (record.timestamp_ms >= time_ms && record.offset_delta >= from) break;
        uint32_t delta = 0;
        int64_t found_ms = 0;
        unsigned steps;
        struct leat_unpacker *by = codec_of(way) == LEAT_CODEC_GZIP ? small : unpacker;
        assert_int_equal(seek(by, &batch, time_ms, from, &delta, &found_ms, &steps), wanted);
        if (steps > steps_most) steps_most = steps;
        if (wanted != LEAT_OK) continue;
        assert_int_equal(delta, record.offset_delta);
        assert_int_equal(found_ms, record.timestamp_ms);
        found++;
    }
    assert_true(found > 200);
    assert_true(steps_most > 3);
    leat_unpacker_destroy(small);
}

/* Goal: a few bytes that make many, of each codec that can; and a batch that says a million records of nothing. */
static void bombs_are_refused_by_name(void **state)
{
    (void)state;
    uint8_t *zeros = calloc(1, PLAIN_BYTES_MAX);
    assert_non_null(zeros);
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 74);
    (void)plain_make(&random, 1, 10);
    static const enum way ways[] = {WAY_ZSTD, WAY_LZ4, WAY_LZ4_SUMS, WAY_GZIP};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        memcpy(packed, plain, LEAT_BATCH_HEADER_BYTES);
        /* One record whose value is all of the rest. */
        static const uint8_t start[] = {0xf0, 0xff, 0xff, 0x26, 0, 0, 0, 1, 0xd0, 0xff, 0xff, 0x26};
        memcpy(zeros, start, sizeof start);
        size_t made = pack_bytes(ways[i], zeros, PLAIN_BYTES_MAX, packed + LEAT_BATCH_HEADER_BYTES,
                                 sizeof packed - 4096);
        if (made == 0) continue;
        header_finish(packed, made + LEAT_BATCH_HEADER_BYTES, codec_of(ways[i]));
        struct leat_batch batch;
        assert_int_equal(check_packed(made + LEAT_BATCH_HEADER_BYTES, &batch), LEAT_E_TOO_LARGE);
    }
    free(zeros);
    memset(plain + LEAT_BATCH_HEADER_BYTES, 0xff, 20);
    leat_put_be32(plain + 23, LEAT_RECORDS_PER_BATCH_MAX - 1);
    leat_put_be32(plain + 57, LEAT_RECORDS_PER_BATCH_MAX);
    for (int codec = LEAT_CODEC_GZIP; codec <= LEAT_CODEC_ZSTD; codec++) {
        memcpy(packed, plain, 81);
        header_finish(packed, 81, (enum leat_codec)codec);
        struct leat_batch batch;
        leat_err rc = check_packed(81, &batch);
        assert_int_equal(rc, LEAT_E_INVALID);
    }
}

/* What Kafka's other clients can't read: an lz4 frame with a wrong checksum of its own, or with blocks that refer to
 * the one before; a zstd window that is larger than theirs. */
static void frames_that_others_cannot_read_are_refused(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    struct leat_batch batch;
    leat_xoshiro_seed(&random, 75);
    uint32_t bytes = plain_make(&random, 200, 200);
    static const enum way ways[] = {WAY_ZSTD, WAY_LZ4, WAY_SNAPPY, WAY_GZIP};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) { /* something behind the records */
        size_t made = pack(ways[i], bytes);
        if (made == 0) continue;
        memset(packed + made, 0, 8);
        header_finish(packed, made + 8, codec_of(ways[i]));
        assert_int_equal(check_packed(made + 8, &batch), LEAT_E_INVALID);
    }
    for (enum way way = WAY_LZ4; way <= WAY_LZ4_SUMS; way++) {
        size_t made = pack(way, bytes);
        assert_int_equal(check_packed(made, &batch), LEAT_OK);
        packed[LEAT_BATCH_HEADER_BYTES + (way == WAY_LZ4 ? 6 : 14)] ^= 1; /* the descriptor's */
        header_finish(packed, made, LEAT_CODEC_LZ4);
        assert_int_equal(check_packed(made, &batch), LEAT_E_INVALID);
        if (way == WAY_LZ4) continue;
        made = pack(way, bytes);
        packed[made - 1] ^= 1; /* the content's */
        header_finish(packed, made, LEAT_CODEC_LZ4);
        assert_int_equal(check_packed(made, &batch), LEAT_E_INVALID);
        made = pack(way, bytes);
        packed[made - 9] ^= 1; /* the block's */
        header_finish(packed, made, LEAT_CODEC_LZ4);
        assert_int_equal(check_packed(made, &batch), LEAT_E_INVALID);
    }
    LZ4F_preferences_t linked = {.frameInfo = {.blockMode = LZ4F_blockLinked}};
    uint8_t *body = packed + LEAT_BATCH_HEADER_BYTES;
    size_t made = LZ4F_compressFrame(body, PACKED_BYTES_MAX - 4096, plain + LEAT_BATCH_HEADER_BYTES,
                                     bytes - LEAT_BATCH_HEADER_BYTES, &linked);
    assert_false(LZ4F_isError(made));
    if (!(body[4] & 0x20)) { /* one block alone is called independent */
        header_finish(packed, made + LEAT_BATCH_HEADER_BYTES, LEAT_CODEC_LZ4);
        assert_int_equal(check_packed(made + LEAT_BATCH_HEADER_BYTES, &batch), LEAT_E_INVALID);
    }
    ZSTD_CCtx *context = ZSTD_createCCtx();
    assert_non_null(context);
    for (int log = 23; log <= 24; log++) {
        (void)ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
        (void)ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, log);
        ZSTD_outBuffer to = {body, PACKED_BYTES_MAX - 4096, 0};
        ZSTD_inBuffer from = {plain + LEAT_BATCH_HEADER_BYTES, bytes - LEAT_BATCH_HEADER_BYTES, 0};
        /* In two calls, so that it does not know how little will come. */
        (void)ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
        assert_int_equal(ZSTD_compressStream2(context, &to, &from, ZSTD_e_end), 0);
        header_finish(packed, to.pos + LEAT_BATCH_HEADER_BYTES, LEAT_CODEC_ZSTD);
        assert_int_equal(check_packed(to.pos + LEAT_BATCH_HEADER_BYTES, &batch),
                         log == 23 ? LEAT_OK : LEAT_E_UNSUPPORTED);
    }
    (void)ZSTD_freeCCtx(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_batch_is_judged_by_its_records),
        cmocka_unit_test(records_in_pieces_are_judged_as_in_one),
        cmocka_unit_test(damaged_compression_that_is_taken_can_be_read),
        cmocka_unit_test(record_of_a_time_is_found_in_pieces),
        cmocka_unit_test(bombs_are_refused_by_name),
        cmocka_unit_test(frames_that_others_cannot_read_are_refused),
    };
    unpacker = leat_unpacker_create(LEAT_UNPACKER_BYTES);
    int failed = unpacker == NULL || cmocka_run_group_tests(tests, NULL, NULL) != 0;
    leat_unpacker_destroy(unpacker);
    return failed;
}
