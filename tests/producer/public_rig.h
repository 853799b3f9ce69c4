/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the public producer: a producer on the fake background thread, the report of each record, and
 * the records in the server's logs. */
#ifndef LEAT_TESTS_PRODUCER_PUBLIC_RIG_H
#define LEAT_TESTS_PRODUCER_PUBLIC_RIG_H

#include "tests/producer/fake_shared.h"

#include "leat/producer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct told { /* of one record */
    unsigned count;
    leat_result result;
    char text[256];
    uint64_t at_us;
};
/** A leat_result_fn, whose arg is a struct told. */
void public_told(void *arg, const leat_result *result);

/** A producer, of which these options are as they are here, and a world of that seed. */
leat_producer *public_open(uint64_t seed, const leat_producer_options *options);
/** Close it, and end the world: nothing is left of it. */
void public_end(leat_producer *producer);
leat_producer_options public_options(void);
/** A record with that value. */
leat_produce_record public_record(const char *value);

/** The server is down from now on: how long after it was added a record fails with a timeout, within so much time. */
uint64_t public_times_out(leat_producer *producer, uint64_t us);

/** All records of a log, in order, at most `max`; out_batches[i]: which batch the i-th is of. */
uint32_t public_stored(uint32_t log, struct leat_record *out, uint32_t *out_batches, uint32_t max);
bool public_is(const struct leat_record *record, const char *value);

#endif
