/* SPDX-License-Identifier: Apache-2.0 */
/* Checking records, whatever they come from: a batch, or a piece of what a batch uncompresses to. Private to wire/. */
#ifndef LEAT_WIRE_CHECK_H
#define LEAT_WIRE_CHECK_H

#include "wire/batch.h"

/* Where in a record a piece has ended. */
enum leat_record_field {
    LEAT_RECORD_NONE, /* between two */
    LEAT_RECORD_LENGTH,
    LEAT_RECORD_ATTRIBUTES,
    LEAT_RECORD_TIME,
    LEAT_RECORD_OFFSET,
    LEAT_RECORD_KEY_LENGTH,
    LEAT_RECORD_KEY,
    LEAT_RECORD_VALUE_LENGTH,
    LEAT_RECORD_VALUE,
    LEAT_RECORD_HEADERS,
    LEAT_RECORD_HEADER_KEY_LENGTH,
    LEAT_RECORD_HEADER_KEY,
    LEAT_RECORD_HEADER_VALUE_LENGTH,
    LEAT_RECORD_HEADER_VALUE,
};

struct leat_record_check {
    int64_t base_timestamp_ms;
    uint64_t delta_mask;      /* 0: the log has set the times, deltas do not count */
    int64_t max_timestamp_ms; /* of the records taken; INT64_MIN: none yet */
    uint32_t count, left;     /* records of the batch, and remaining records */
    /* The first record that is not older, from a place on; all zero: none is looked for. */
    bool seeks, found;
    int64_t sought_ms, found_ms;
    uint32_t sought_from, found_at;
    /* Of the record that the last piece has cut. */
    enum leat_record_field field;
    unsigned varint_bytes; /* of a number that is cut, so many have come */
    uint64_t varint;
    uint64_t record_left; /* bytes of the record after its length */
    uint64_t skip;        /* of these, bytes of the present key or value */
    uint32_t headers_left;
};

void leat_record_check_init(struct leat_record_check *check, const struct leat_batch *batch);

/**
 * Take the records that lie whole between `at` and `end`, as far as the count goes. Each has to be well-formed and to
 * have its place as offset delta.
 *
 * Returns where the first record begins that was not taken. *out_wrong is set, to a constant, only where a record
 * can't be one whatever follows.
 * Thread: any. Hot: about a nanosecond a record where one is like the other, some five where not.
 */
const uint8_t *leat_record_check_take(struct leat_record_check *check, const uint8_t *at,
                                      const uint8_t *end, const char **out_wrong);

/** The same for one piece after the other, cut anywhere. Returns what is wrong, a constant, or NULL. Thread: any. */
const char *leat_record_check_feed(struct leat_record_check *check, const uint8_t *piece,
                                   size_t bytes);
/** No piece follows: what is wrong, or NULL. */
const char *leat_record_check_end(const struct leat_record_check *check);

#endif
