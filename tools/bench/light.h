/* SPDX-License-Identifier: Apache-2.0 */
/* A light load for a benchmark: a producer of a record every millisecond and a consumer, which go on through all
 * faults, and record times and durations of appends. Threads: its own two; all functions are called on the thread
 * that began the load. */
#ifndef LEAT_TOOLS_BENCH_LIGHT_H
#define LEAT_TOOLS_BENCH_LIGHT_H

#include "tools/bench/report.h"

#include "leat/consumer.h"
#include "leat/producer.h"

#include <pthread.h>

/* What appends take: at rest, once a dead node's successor serves, while lost copies are made again, while
 * the dead one comes back. */
enum bench_window { WINDOW_REST, WINDOW_AFTER, WINDOW_COPYING, WINDOW_BACK, WINDOWS };

struct bench_mark;
struct bench_light {
    const char *stream;
    leat_producer *producer;
    leat_consumer *consumer;
    pthread_t writer, reader;
    _Atomic bool over;
    _Atomic uint64_t killed_us; /* 0: none is waited for */
    _Atomic uint64_t dead_us;   /* what is produced from then on can't be the old owner's */
    _Atomic uint64_t acked_us, read_us, acked, failed;
    _Atomic int window;
    struct bench_histogram latency[WINDOWS];
    struct bench_mark *marks;
};

/** Says what is wrong and returns an exit code. */
int bench_light_begin(struct bench_light *light, const char *stream, const char *brokers);
void bench_light_end(struct bench_light *light);

#endif
