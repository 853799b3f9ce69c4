/* Checking records, whatever they come from: a batch, or a piece of what a batch uncompresses to. Private to wire/. */
#ifndef LEAT_WIRE_CHECK_H
#define LEAT_WIRE_CHECK_H

#include "wire/batch.h"

struct leat_record_check {
    int64_t base_timestamp_ms;
    uint64_t delta_mask;      /* 0: the log has set the times, deltas do not count */
    int64_t max_timestamp_ms; /* of the records taken; INT64_MIN: none yet */
    uint32_t count, left;     /* records of the batch, and those that are to come */
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

#endif
