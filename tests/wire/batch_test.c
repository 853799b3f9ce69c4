/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of record batches: check, reader, builder, compression. */
#include "known_batch.h"

#include "wire/codec.h"
#include "wire/value.h"

static void batch_known_bytes_are_built_and_read(void **state)
{
    uint8_t known[256], built[256], hundred[100];
    memset(hundred, 'x', sizeof hundred);
    size_t bytes = known_batch(known);
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, built, sizeof built);
    assert_int_equal(leat_batch_builder_add(&builder, 1000, "k", 1, "hello", 5, NULL, 0, 0), 0);
    assert_int_equal(
        leat_batch_builder_add(&builder, 1300, NULL, 0, hundred, 100, "\x02h\x04vw", 5, 1), 0);
    assert_int_equal(leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 42, 3, 256), bytes);
    assert_memory_equal(built, known, bytes);

    struct leat_batch batch;
    struct leat_error error;
    assert_int_equal(leat_batch_check(known, bytes, &batch, &error), LEAT_OK);
    assert_int_equal(batch.record_count, 2);
    assert_int_equal(batch.producer_id, 42);
    assert_int_equal(batch.producer_epoch, 3);
    assert_int_equal(batch.base_sequence, 256);
    assert_int_equal(batch.base_timestamp_ms, 1000);
    assert_int_equal(batch.max_timestamp_ms, 1300);
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, &batch, known + 61, bytes - 61);
    assert_int_equal(leat_record_next(&reader, &record), LEAT_OK);
    assert_int_equal(record.key_bytes, 1);
    assert_memory_equal(record.value, "hello", 5);
    assert_int_equal(leat_record_next(&reader, &record), LEAT_OK);
    assert_null(record.key);
    assert_int_equal(record.timestamp_ms, 1300);
    assert_int_equal(record.offset_delta, 1);
    assert_int_equal(record.header_count, 1);
    assert_memory_equal(record.headers, "\x02h\x04vw", 5);
    assert_int_equal(leat_record_next(&reader, &record), LEAT_E_NOT_FOUND);
}

/* Sizes around every change of a varint's length; negative time deltas; nulls. */
static size_t size_pick(struct leat_xoshiro *random)
{
    static const size_t edges[] = {0, 1, 15, 16, 50, 57, 63, 64, 127, 128, 256, 8100, 8191, 8192};
    uint64_t pick = leat_xoshiro_below(random, 20);
    return pick < 14 ? edges[pick] : (size_t)leat_xoshiro_below(random, 200);
}

static void batch_random_records_read_back(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 21);
    static uint8_t bytes[256 * 1024], data[16384];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)leat_xoshiro_next(&random);
    for (int round = 0; round < 3000; round++) {
        struct {
            const uint8_t *key, *value;
            size_t key_bytes, value_bytes;
            int64_t time;
        } put[40];
        uint32_t count = 0, wanted = 1 + (uint32_t)leat_xoshiro_below(&random, 40);
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, bytes, 200 + leat_xoshiro_below(&random, 100000));
        while (count < wanted) {
            __typeof__(put[0]) *r = &put[count];
            r->key_bytes = size_pick(&random);
            r->value_bytes = size_pick(&random);
            r->key = leat_xoshiro_below(&random, 3) ? data + count : NULL;
            r->value = leat_xoshiro_below(&random, 9) ? data + 2 * count : NULL;
            r->time = (int64_t)(leat_xoshiro_next(&random) >> leat_xoshiro_below(&random, 64));
            if (leat_batch_builder_add(&builder, r->time, r->key, r->key ? r->key_bytes : 0,
                                       r->value, r->value ? r->value_bytes : 0, NULL, 0, 0) != 0)
                break;
            count++;
        }
        if (count == 0) continue;
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        struct leat_batch batch;
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
        assert_int_equal(batch.record_count, count);
        struct leat_record_reader reader;
        leat_record_reader_init(&reader, &batch, bytes + 61, total - 61);
        struct leat_record record;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(leat_record_next(&reader, &record), LEAT_OK);
            assert_int_equal(record.offset_delta, i);
            assert_int_equal(record.timestamp_ms, put[i].time);
            assert_int_equal(record.key == NULL, put[i].key == NULL);
            assert_int_equal(record.value == NULL, put[i].value == NULL);
            if (record.key) assert_int_equal(record.key_bytes, put[i].key_bytes);
            if (record.key) assert_memory_equal(record.key, put[i].key, put[i].key_bytes);
            if (record.value) assert_int_equal(record.value_bytes, put[i].value_bytes);
            if (record.value) assert_memory_equal(record.value, put[i].value, put[i].value_bytes);
        }
        assert_int_equal(leat_record_next(&reader, &record), LEAT_E_NOT_FOUND);
    }
}

/* A builder of each capacity takes what fits to the byte, and is unchanged where it does not. */
static void builder_each_capacity_never_passes_its_end(void **state)
{
    uint8_t bytes[400], value[64] = {1};
    for (size_t capacity = 61; capacity < sizeof bytes; capacity++) {
        memset(bytes, 0xee, sizeof bytes);
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, bytes, capacity);
        uint32_t before;
        do
            before = builder.used;
        while (leat_batch_builder_add(&builder, 5, "k", 1, value, 60, NULL, 0, 0) == LEAT_OK);
        assert_int_equal(builder.used, before);
        /* 60 + 1 bytes and 8 of fields each. */
        assert_int_equal(before, 61 + 69 * ((capacity - 61) / 69));
        for (size_t i = capacity; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], 0xee);
    }
}

static void batch_flipped_bits_are_detected_or_outside_crc(void **state)
{
    uint8_t known[256];
    size_t bytes = known_batch(known);
    struct leat_batch batch;
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        known[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool stamped = bit / 8 < 8 || (bit / 8 >= 12 && bit / 8 < 16);
        leat_err rc = leat_batch_check(known, bytes, &batch, NULL);
        assert_int_equal(rc == LEAT_OK, stamped);
        /* No flipped bit that the CRC covers, or of the magic, is told as the producer's mistake. */
        bool covered = bit / 8 >= LEAT_BATCH_CRC_AT, magic = bit / 8 == 16;
        if (covered || magic) assert_int_equal(rc, LEAT_E_CORRUPT);
        assert_int_equal(leat_batch_crc_is_right(known, bytes), !covered);
        known[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        assert_int_not_equal(leat_batch_check(known, cut, &batch, NULL), LEAT_OK);
        assert_int_not_equal(leat_batch_view(known, cut, &batch), LEAT_OK);
        assert_false(leat_batch_crc_is_right(known, cut));
    }
    known[16] = 1; /* an older format, whose CRC is elsewhere */
    known[LEAT_BATCH_CRC_AT] ^= 1;
    assert_int_equal(leat_batch_check(known, bytes, &batch, NULL), LEAT_E_UNSUPPORTED);
}

static void batch_wrong_fields_with_good_crc_are_refused(void **state)
{
    static const struct {
        uint8_t at, value;
        leat_err code;
    } wrong[] = {
        {16, 1, LEAT_E_CORRUPT},     {22, 0x10, LEAT_E_UNSUPPORTED}, {22, 0x20, LEAT_E_UNSUPPORTED},
        {22, 5, LEAT_E_UNSUPPORTED}, {26, 2, LEAT_E_INVALID},        {60, 3, LEAT_E_INVALID},
        {57, 0x80, LEAT_E_INVALID},  {43, 0x80, LEAT_E_INVALID},     {51, 0x80, LEAT_E_INVALID},
        {53, 0x80, LEAT_E_INVALID},  {11, 1, LEAT_E_INVALID},        {8, 0x80, LEAT_E_INVALID},
        {61, 0x16, LEAT_E_INVALID},  {61, 0x1a, LEAT_E_INVALID},     {61, 0x01, LEAT_E_INVALID},
        {61, 0x0a, LEAT_E_INVALID},  {61, 0xfe, LEAT_E_INVALID},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t known[256];
        size_t bytes = known_batch(known);
        known[wrong[i].at] = wrong[i].value;
        set_crc(known, bytes);
        struct leat_batch batch;
        struct leat_error error = {.code = LEAT_OK};
        assert_int_equal(leat_batch_check(known, bytes, &batch, &error), wrong[i].code);
        assert_int_equal(error.code, wrong[i].code);
        assert_true(strlen(error.text) > 0);
    }
    /* So many records that offsets would leap: of compressed ones the header alone says how many there are. */
    uint8_t many[256];
    size_t many_bytes = known_batch(many);
    struct leat_batch taken;
    leat_put_be32(many + 57, LEAT_RECORDS_PER_BATCH_MAX + 1);
    leat_put_be32(many + 23, LEAT_RECORDS_PER_BATCH_MAX);
    for (unsigned codec = LEAT_CODEC_NONE; codec <= LEAT_CODEC_ZSTD; codec++) {
        many[22] = (uint8_t)codec;
        set_crc(many, many_bytes);
        assert_int_equal(leat_batch_check(many, many_bytes, &taken, NULL), LEAT_E_TOO_LARGE);
    }
    /* Equal lengths, the last one running past the end: the walk's short cut must notice. */
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 4);
    uint8_t bytes[2048], value[70] = {0};
    struct leat_batch_builder builder;
    struct leat_batch batch;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    for (int i = 0; i < 10; i++)
        assert_int_equal(leat_batch_builder_add(&builder, 1, NULL, 0, value, 70, NULL, 0, 0), 0);
    uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    for (uint32_t less = 1; less < 80; less++) {
        leat_put_be32(bytes + 8, total - less - 12);
        set_crc(bytes, total - less);
        assert_int_equal(leat_batch_check(bytes, total - less, &batch, NULL), LEAT_E_INVALID);
    }
}

static uint32_t random_batch(struct leat_xoshiro *random, uint8_t *bytes, size_t capacity)
{
    static const uint8_t value[300], header[] = {2, 'h', 2, 'v'};
    static const uint32_t counts[] = {3, 70, 200, 9000};
    static const int64_t spreads[] = {1, 50, 5000, INT64_C(1) << 40};
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, bytes, capacity);
    uint32_t count =
        1 + (uint32_t)leat_xoshiro_below(
                random, counts[leat_xoshiro_below(random, (sizeof counts / sizeof counts[0]))]);
    int64_t spread = spreads[leat_xoshiro_below(random, (sizeof spreads / sizeof spreads[0]))];
    uint64_t key = leat_xoshiro_below(random, 3), like = leat_xoshiro_below(random, 300);
    bool alike = leat_xoshiro_below(random, 3) != 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t time = 1000000 + (int64_t)leat_xoshiro_below(random, (uint64_t)spread);
        bool odd = !alike || leat_xoshiro_below(random, 40) == 0;
        leat_err rc = leat_batch_builder_add(&builder, time, key ? "key" : NULL, key, value,
                                             odd ? leat_xoshiro_below(random, 300) : like, header,
                                             odd ? sizeof header : 0, odd);
        if (rc == LEAT_E_AGAIN) break; /* full */
        assert_int_equal(rc, LEAT_OK);
    }
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 3, 1, 5);
}

/* Old clients for Go leave the highest time out (-1); other clients may send any value. The batch is checked by the
 * times of its records, and the header gets the highest of them. */
static void batch_highest_time_is_what_the_records_say(void **state)
{
    (void)state;
    static uint8_t bytes[LEAT_BATCH_BYTES_MAX];
    static const int64_t lies[] = {-1, INT64_MIN, INT64_MAX, 0, 1};
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 61);
    for (unsigned round = 0; round < 400; round++) {
        uint32_t total = random_batch(&random, bytes, sizeof bytes);
        struct leat_batch batch;
        int64_t newest = newest_by_reading(bytes, total);
        if (round % 6 != 5) {
            leat_put_be64(bytes + 35, (uint64_t)lies[round % 6]);
            set_crc(bytes, total);
        }
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
        assert_int_equal(batch.max_timestamp_ms, newest);
        leat_batch_set_max_time(bytes, &batch);
        assert_int_equal(leat_get_be64(bytes + 35), newest);
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK); /* the CRC, too */
    }
    /* What is compressed is not looked into here: no record of it is older than the first. */
    uint8_t known[256];
    size_t known_bytes = known_batch(known);
    int64_t first = (int64_t)leat_get_be64(known + 27);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct leat_batch batch;
        known[22] = LEAT_CODEC_LZ4;
        leat_put_be64(known + 35, (uint64_t)lies[i]);
        set_crc(known, known_bytes);
        assert_int_equal(leat_batch_check(known, known_bytes, &batch, NULL), LEAT_OK);
        assert_int_equal(batch.max_timestamp_ms, lies[i] < first ? first : lies[i]);
    }
}

/* One byte differs, under a right CRC: the check takes exactly the batches that the reader takes, with the same times.
 * Records that are like each other are compared rather than decoded, so such records are tried most. */
static void batch_check_takes_just_what_can_be_read(void **state)
{
    (void)state;
    static uint8_t bytes[LEAT_BATCH_BYTES_MAX];
    static const uint8_t likely[] = {0, 1, 2, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 62);
    unsigned taken = 0, refused = 0;
    while (taken + refused < 60000) {
        uint32_t total = random_batch(&random, bytes, sizeof bytes);
        if (total > 8192) continue;
        for (unsigned i = 0; i < 60; i++) {
            uint32_t at = LEAT_BATCH_HEADER_BYTES +
                          (uint32_t)leat_xoshiro_below(&random, total - LEAT_BATCH_HEADER_BYTES);
            uint8_t was = bytes[at];
            bytes[at] = likely[leat_xoshiro_below(&random, (sizeof likely / sizeof likely[0]))];
            set_crc(bytes, total);
            struct leat_batch batch;
            leat_err rc = leat_batch_check(bytes, total, &batch, NULL);
            int64_t newest = newest_by_reading(bytes, total);
            assert_int_equal(rc == LEAT_OK ? batch.max_timestamp_ms : INT64_MIN, newest);
            if (rc == LEAT_OK)
                taken++;
            else
                refused++;
            bytes[at] = was;
        }
    }
    assert_true(taken > 1000 && refused > 1000);
}

/* The log sets the times in the header alone: a full pass finds the CRC right, and every record has that
 * time, compressed or not. */
static void batch_whose_times_the_log_sets_keeps_its_bytes(void **state)
{
    (void)state;
    static uint8_t bytes[65536], before[65536];
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 5);
    for (unsigned round = 0; round < 200; round++) {
        struct leat_batch_builder builder;
        struct leat_batch batch;
        struct leat_record_reader reader;
        struct leat_record record;
        uint8_t value[900] = {(uint8_t)round};
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        uint32_t count = 1 + (uint32_t)leat_xoshiro_below(&random, 60);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(leat_batch_builder_add(&builder,
                                                    (int64_t)leat_xoshiro_below(&random, 1 << 30),
                                                    "k", 1, value, round * 4, NULL, 0, 0),
                             LEAT_OK);
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 7, 1, 3);
        int64_t time = (int64_t)leat_xoshiro_next(&random) >> leat_xoshiro_below(&random, 40);
        memcpy(before, bytes, total);
        for (int again = 0; again < 2; again++) {
            leat_batch_set_append_time(bytes, total, time + again);
            assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
            assert_int_equal(batch.attributes, LEAT_BATCH_APPEND_TIME);
            assert_int_equal(batch.max_timestamp_ms, time + again);
            leat_record_reader_init(&reader, &batch, bytes + LEAT_BATCH_HEADER_BYTES,
                                    total - LEAT_BATCH_HEADER_BYTES);
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(leat_record_next(&reader, &record), LEAT_OK);
                assert_int_equal(record.timestamp_ms, time + again);
            }
        }
        assert_memory_equal(bytes, before, LEAT_BATCH_CRC_AT);
        assert_memory_equal(bytes + 23, before + 23, 35 - 23);
        assert_memory_equal(bytes + 43, before + 43, total - 43);
    }
}

/* Any byte after any byte: the reader ends, with every view inside the section. */
static void reader_mutated_records_stay_inside(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 22);
    uint8_t known[256];
    size_t bytes = known_batch(known);
    struct leat_batch batch;
    assert_int_equal(leat_batch_check(known, bytes, &batch, NULL), LEAT_OK);
    for (int round = 0; round < 200000; round++) {
        size_t count = bytes - 61;
        uint8_t *copy = malloc(count); /* its own block: ASan sees one byte too far */
        assert_non_null(copy);
        memcpy(copy, known + 61, count);
        for (int i = 0; i < 3; i++)
            copy[leat_xoshiro_below(&random, count)] = (uint8_t)leat_xoshiro_next(&random);
        struct leat_record_reader reader;
        struct leat_record record;
        leat_record_reader_init(&reader, &batch, copy, count);
        while (leat_record_next(&reader, &record) == LEAT_OK) {
            assert_true(record.headers >= copy &&
                        record.headers + record.headers_bytes <= copy + count);
            assert_true(
                record.value == NULL ||
                (record.value >= copy && record.value + record.value_bytes <= copy + count));
        }
        free(copy);
    }
}

static void compressed_batch_reads_back(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 23);
    enum { CAPACITY = 1 << 20 };
    uint8_t *plain = malloc(CAPACITY), *packed = malloc(CAPACITY), *again = malloc(CAPACITY);
    assert_true(plain != NULL && packed != NULL && again != NULL);
    for (int round = 0; round < 60; round++) {
        enum leat_codec codec = round % 2 ? LEAT_CODEC_LZ4 : LEAT_CODEC_ZSTD;
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, plain, CAPACITY);
        uint64_t records = 20 + leat_xoshiro_below(&random, 6000);
        for (uint64_t i = 0; i < records; i++) {
            char text[64];
            int n = snprintf(text, sizeof text, "sensor %u reads %u", (unsigned)(i % 7),
                             (unsigned)leat_xoshiro_below(&random, 1000));
            assert_int_equal(
                leat_batch_builder_add(&builder, 1, NULL, 0, text, (size_t)n, NULL, 0, 0), 0);
        }
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 5, 1, 9);
        uint32_t packed_bytes = 0;
        assert_int_equal(
            leat_batch_compress(plain, total, codec, round % 12, packed, CAPACITY, &packed_bytes),
            LEAT_OK);
        assert_true(packed_bytes < total);
        struct leat_batch batch;
        assert_int_equal(leat_batch_check(packed, packed_bytes, &batch, NULL), LEAT_OK);
        assert_int_equal(batch.codec, codec);
        assert_int_equal(batch.producer_id, 5);
        const uint8_t *records_at = NULL;
        size_t count = 0;
        assert_int_equal(leat_batch_records(&batch, again, CAPACITY, &records_at, &count), LEAT_OK);
        assert_int_equal(count, total - 61);
        assert_memory_equal(records_at, plain + 61, count);
        /* To the byte; and one less is a bomb. */
        assert_int_equal(leat_batch_records(&batch, again, count, &records_at, &count), LEAT_OK);
        assert_int_equal(leat_batch_records(&batch, again, count - 1, &records_at, &count),
                         LEAT_E_TOO_LARGE);
        for (size_t cut = 62; cut < packed_bytes; cut += 1 + cut / 8) {
            struct leat_batch torn = batch;
            torn.byte_count = (uint32_t)cut;
            assert_int_not_equal(leat_batch_records(&torn, again, CAPACITY, &records_at, &count),
                                 LEAT_OK);
        }
        assert_int_equal(
            leat_batch_compress(plain, total, codec, 0, packed, packed_bytes / 2, &packed_bytes),
            LEAT_E_AGAIN);
    }
    /* Noise does not shrink. */
    uint32_t total = fixture_batch(&random, plain, CAPACITY, 0, 50, 2000), unused;
    assert_int_equal(
        leat_batch_compress(plain, total, LEAT_CODEC_LZ4, 0, packed, CAPACITY, &unused),
        LEAT_E_AGAIN);
    free(plain);
    free(packed);
    free(again);
}

/* Goal: the short way of adding a value writes the bytes of the long one, at every size, also where
 * offset and time take more bytes, and refuses what it must not decide. */
/* What Kafka's clients compress and Leat only reads: known bytes, every prefix of them, every capacity
 * too small, and bytes that lie. */
static void
foreign_codec_check(leat_err (*uncompress)(const uint8_t *, size_t, uint8_t *, size_t, size_t *),
                    const uint8_t *in, size_t in_bytes, const char *pattern, size_t out_bytes)
{
    struct leat_xoshiro random;
    uint8_t *out = malloc(out_bytes + 64), copy[256];
    size_t made = 0, pattern_bytes = strlen(pattern);
    assert_int_equal(uncompress(in, in_bytes, out, out_bytes + 64, &made), LEAT_OK);
    assert_int_equal(made, out_bytes);
    for (size_t i = 0; i < made; i++)
        assert_int_equal(out[i], pattern[i % pattern_bytes]);
    assert_int_equal(uncompress(in, in_bytes, out, out_bytes, &made), LEAT_OK);
    for (size_t room = 1; room < out_bytes; room++) {
        uint8_t *tight = malloc(room); /* its own block: ASan sees one byte too far */
        assert_int_equal(uncompress(in, in_bytes, tight, room, &made), LEAT_E_TOO_LARGE);
        free(tight);
    }
    leat_xoshiro_seed(&random, 31);
    for (int round = 0; round < 20000; round++) {
        size_t bytes = 1 + leat_xoshiro_below(&random, in_bytes);
        memcpy(copy, in, bytes);
        for (int i = 0; i < round % 4; i++)
            copy[leat_xoshiro_below(&random, bytes)] = (uint8_t)leat_xoshiro_next(&random);
        leat_err rc = uncompress(copy, bytes, out, out_bytes, &made);
        if (rc == LEAT_OK) assert_true(made <= out_bytes);
    }
    free(out);
}

static void foreign_codecs_are_read_and_never_pass_their_end(void **state)
{
    (void)state;
    /* Length 12; "abcd"; a copy of 8 bytes from 4 back, which overlaps itself. */
    static const uint8_t block[] = {0x0c, 0x0c, 'a', 'b', 'c', 'd', 0x11, 0x04};
    static const uint8_t framed[] = {0x82, 'S',  'N',  'A',  'P', 'P', 'Y',  0,    0,    0,
                                     0,    1,    0,    0,    0,   1,   0,    0,    0,    8,
                                     0x0c, 0x0c, 'a',  'b',  'c', 'd', 0x11, 0x04, 0,    0,
                                     0,    7,    0x08, 0x0c, 'a', 'b', 'c',  'd',  0x0d, 0x04};
    foreign_codec_check(leat_snappy_uncompress, block, sizeof block, "abcd", 12);
    /* The second block of the frame: "abcd" and a copy of 7 bytes would be one too many. */
    uint8_t out[64], whole[sizeof framed];
    size_t made;
    assert_int_equal(leat_snappy_uncompress(framed, sizeof framed, out, sizeof out, &made),
                     LEAT_E_CORRUPT);
    memcpy(whole, framed, sizeof framed);
    whole[sizeof whole - 8] = 0x0b; /* length 11 */
    assert_int_equal(leat_snappy_uncompress(whole, sizeof whole, out, sizeof out, &made),
                     LEAT_E_CORRUPT); /* the copy is cut off by the block's length */
    assert_int_equal(leat_snappy_uncompress(framed, 28, out, sizeof out, &made), LEAT_OK);
    assert_int_equal(made, 12);
    /* A copy from before the beginning. */
    static const uint8_t before[] = {0x08, 0x0c, 'a', 'b', 'c', 'd', 0x01, 0x05};
    assert_int_equal(leat_snappy_uncompress(before, sizeof before, out, sizeof out, &made),
                     LEAT_E_CORRUPT);
    static const uint8_t member[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                     0x03, 0x4b, 0x4c, 0x4a, 0x4e, 0x49, 0x1c, 0x06, 0x18,
                                     0x00, 0x13, 0x20, 0xf9, 0xa3, 0xc8, 0x00, 0x00, 0x00};
    if (leat_gzip_uncompress(member, sizeof member, out, 0, &made) == LEAT_E_UNSUPPORTED) return;
    foreign_codec_check(leat_gzip_uncompress, member, sizeof member, "abcd", 200);
    for (size_t bytes = 0; bytes < sizeof member; bytes++)
        assert_int_equal(leat_gzip_uncompress(member, bytes, out, sizeof out, &made) == LEAT_OK,
                         false);
}

static void builder_short_way_writes_the_same(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 11);
    static uint8_t shorter[1 << 20], longer[1 << 20], data[LEAT_VALUE_BYTES_MAX + 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)leat_xoshiro_next(&random);
    uint32_t taken = 0;
    for (uint32_t round = 0; round < 400; round++) {
        struct leat_batch_builder a, b;
        size_t capacity = 4096 + leat_xoshiro_below(&random, sizeof longer - 4096);
        leat_batch_builder_init(&a, shorter, capacity);
        leat_batch_builder_init(&b, longer, capacity);
        assert_false(leat_batch_builder_add_value(&a, 1000, data, 100)); /* the first record */
        for (uint32_t i = 0; i < 300; i++) {
            size_t bytes = leat_xoshiro_below(&random, i % 3 ? 200 : sizeof data);
            int64_t stamp = (int64_t)(leat_xoshiro_next(&random) >>
                                      leat_xoshiro_below(&random, i % 5 ? 3 : 64));
            bool may = b.record_count > 0 && bytes >= LEAT_VALUE_BYTES_MIN &&
                       bytes <= LEAT_VALUE_BYTES_MAX;
            leat_err rc = leat_batch_builder_add(&b, stamp, NULL, 0, data, bytes, NULL, 0, 0);
            if (leat_batch_builder_add_value(&a, stamp, data, bytes)) {
                assert_true(may && rc == LEAT_OK);
                taken++;
            } else {
                /* Near the end it leaves to the long way what may still fit. */
                assert_true(!may || b.used + bytes + 2 * LEAT_VALUE_EXTRA_BYTES_MAX > capacity);
                assert_int_equal(
                    leat_batch_builder_add(&a, stamp, NULL, 0, data, bytes, NULL, 0, 0), rc);
            }
            if (rc) break;
            assert_int_equal(a.max_timestamp_ms, b.max_timestamp_ms);
        }
        assert_int_equal(a.record_count, b.record_count);
        assert_int_equal(a.used, b.used);
        if (a.record_count == 0) continue;
        (void)leat_batch_builder_finish(&a, LEAT_CODEC_NONE, 1, 2, 3);
        (void)leat_batch_builder_finish(&b, LEAT_CODEC_NONE, 1, 2, 3);
        assert_memory_equal(shorter, longer, a.used);
    }
    assert_true(taken > 10000);
}

/* A batch whose CRC was begun while the batch was built is equal to a batch whose CRC was computed at its end. */
static void builder_digest_at_any_points_gives_the_same_batch(void **state)
{
    (void)state;
    enum { CAPACITY = 32 * 1024, ROUNDS = 300 };
    static uint8_t once[CAPACITY], begun[CAPACITY], data[3000];
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 20);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)leat_xoshiro_next(&random);
    unsigned digested = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct leat_batch_builder a, b;
        leat_batch_builder_init(&a, once, CAPACITY);
        leat_batch_builder_init(&b, begun, CAPACITY);
        uint64_t records = 1 + leat_xoshiro_below(&random, 60);
        for (uint64_t i = 0; i < records; i++) {
            size_t bytes = leat_xoshiro_below(&random, sizeof data);
            leat_err rc = leat_batch_builder_add(&a, 1, NULL, 0, data, bytes, NULL, 0, 0);
            assert_int_equal(leat_batch_builder_add(&b, 1, NULL, 0, data, bytes, NULL, 0, 0), rc);
            if (leat_xoshiro_below(&random, 3) == 0) leat_batch_builder_digest(&b, 1000);
        }
        digested += b.digested > LEAT_BATCH_HEADER_BYTES;
        uint32_t bytes = leat_batch_builder_finish(&a, LEAT_CODEC_NONE, 7, 1, round);
        assert_int_equal(leat_batch_builder_finish(&b, LEAT_CODEC_NONE, 7, 1, round), bytes);
        assert_memory_equal(once, begun, bytes);
        struct leat_batch batch;
        assert_int_equal(leat_batch_check(begun, bytes, &batch, NULL), LEAT_OK);
    }
    assert_true(digested > ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_known_bytes_are_built_and_read),
        cmocka_unit_test(batch_random_records_read_back),
        cmocka_unit_test(builder_each_capacity_never_passes_its_end),
        cmocka_unit_test(builder_short_way_writes_the_same),
        cmocka_unit_test(builder_digest_at_any_points_gives_the_same_batch),
        cmocka_unit_test(batch_flipped_bits_are_detected_or_outside_crc),
        cmocka_unit_test(batch_wrong_fields_with_good_crc_are_refused),
        cmocka_unit_test(foreign_codecs_are_read_and_never_pass_their_end),
        cmocka_unit_test(batch_highest_time_is_what_the_records_say),
        cmocka_unit_test(batch_check_takes_just_what_can_be_read),
        cmocka_unit_test(batch_whose_times_the_log_sets_keeps_its_bytes),
        cmocka_unit_test(reader_mutated_records_stay_inside),
        cmocka_unit_test(compressed_batch_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
