/* SPDX-License-Identifier: Apache-2.0 */
/* A batch whose bytes are written out, and how tests read and seal batches. */
#ifndef LEAT_TESTS_WIRE_KNOWN_BATCH_H
#define LEAT_TESTS_WIRE_KNOWN_BATCH_H

#include "wire_fixture.h"

/* CRC-32C bit by bit, so that the known answer owes nothing to the library. */
static inline uint32_t crc_slow(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

/* Two records, byte by byte from the format's description: "k" = "hello" at 1000, and null = 100 x
 * "x" at 1300 with the header "h" = "vw". */
static inline size_t known_batch(uint8_t *out)
{
    static const uint8_t head[] = {
        0, 0, 0, 0, 0,    0,    0, 0,    0, 0, 0, 0x00, /* offset, length (below) */
        0, 0, 0, 0, 2,    0,    0, 0,    0,             /* leader epoch, magic, CRC (below) */
        0, 0, 0, 0, 0,    1,                            /* attributes, last offset delta */
        0, 0, 0, 0, 0,    0,    3, 0xe8,                /* base timestamp 1000 */
        0, 0, 0, 0, 0,    0,    5, 0x14,                /* max timestamp 1300 */
        0, 0, 0, 0, 0,    0,    0, 42,                  /* producer id */
        0, 3, 0, 0, 0x01, 0x00, 0, 0,    0, 2,          /* epoch, sequence 256, count */
    };
    static const uint8_t first[] = {0x18, 0, 0, 0, 0x02, 'k', 0x0a, 'h', 'e', 'l', 'l', 'o', 0x00};
    static const uint8_t second[] = {0xe2, 0x01, 0, 0xd8, 0x04, 0x02, 0x01, 0xc8, 0x01};
    static const uint8_t headers[] = {0x02, 0x02, 'h', 0x04, 'v', 'w'};
    uint8_t *at = out;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    memcpy(at, first, sizeof first);
    at += sizeof first;
    memcpy(at, second, sizeof second);
    at += sizeof second;
    memset(at, 'x', 100);
    at += 100;
    memcpy(at, headers, sizeof headers);
    at += sizeof headers;
    size_t bytes = (size_t)(at - out);
    out[11] = (uint8_t)(bytes - 12);
    uint32_t crc = crc_slow(out + 21, bytes - 21);
    for (int i = 0; i < 4; i++)
        out[17 + i] = (uint8_t)(crc >> (24 - 8 * i));
    return bytes;
}

static inline void set_crc(uint8_t *batch, size_t bytes)
{
    leat_put_be32(batch + 17, leat_crc32c(0, batch + 21, bytes - 21));
}

/* The newest timestamp, by reading one record after the other, by the reader, which knows no short cut. INT64_MIN:
 * something is wrong. */
static inline int64_t newest_by_reading(const uint8_t *bytes, uint32_t total)
{
    struct leat_batch batch;
    struct leat_record_reader reader;
    struct leat_record record;
    if (leat_batch_view(bytes, total, &batch) != LEAT_OK) return INT64_MIN;
    leat_record_reader_init(&reader, &batch, bytes + LEAT_BATCH_HEADER_BYTES,
                            total - LEAT_BATCH_HEADER_BYTES);
    int64_t newest = INT64_MIN;
    leat_err rc;
    for (uint32_t i = 0; (rc = leat_record_next(&reader, &record)) == LEAT_OK; i++) {
        if (record.offset_delta != i) return INT64_MIN;
        if (record.timestamp_ms > newest) newest = record.timestamp_ms;
    }
    return rc == LEAT_E_NOT_FOUND ? newest : INT64_MIN;
}

#endif
