/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench append: what its parts share. */
#ifndef LEAT_TOOLS_BENCH_APPEND_H
#define LEAT_TOOLS_BENCH_APPEND_H

#include "tools/bench/report.h"

#include "leat/producer.h"

enum { APPEND_SECONDS_MAX = 100000 }; /* seconds that are counted one by one */

struct append_options {
    /* streamlets, logs, copies, durability: as asked for, 0 or NULL where it does not matter */
    uint64_t producers, record_bytes, batch_records, records, seconds_ms, rate, linger_us,
        streamlets, logs, in_flight, copies, threads;
    const char *compression, *stream, *durability, *replication, *json;
    bool fresh;
    bool existed;                    /* the stream, before */
    struct leat_stream_settings has; /* what the stream was made with */
};

/* ---- append_stream.c ---- */
/** Make the requested stream, or find it; sets `stream` and `has`. Returns an exit code, after a message where it is
 * not CLI_OK. */
int append_stream_prepare(struct append_options *options);

/* ---- append_load.c ---- */
/* A producer, driven by one thread. */
struct append_source {
    leat_producer *producer;
    const struct append_options *options;
    uint32_t index;
    uint64_t quota, interval_ns, stop_us, start_us;
    _Atomic uint64_t acked_batches, ended; /* ended: batches, acked or not */
    struct leat_event *end;                /* its thread's: told after `ended`, with --in-flight */
    uint64_t produced, batch;
    struct append_mark *marks;
    size_t mark_count;
    bool over; /* nothing more comes of it */
    struct bench_histogram latency;
    leat_code refused;
};

/* What is acked in each second. */
struct append_watch {
    struct append_source *sources;
    const struct append_options *options;
    double *seconds; /* [APPEND_SECONDS_MAX] */
    size_t count;
    _Atomic bool stop;
    struct leat_event end;
};

/** A producer for each source. An exit code, after a message where it is not CLI_OK. */
int append_sources_open(struct append_source *sources, const struct append_options *options);
/** The first record of each producer is sent before the clock runs: connections, metadata and
 * producer ids are not what is measured. An exit code, as above. */
int append_sources_warm(struct append_source *sources, const struct append_options *options);
/** All that is to be sent, until it is acked or refused, or the time is over. */
void append_sources_run(struct append_source *sources, const struct append_options *options,
                        struct append_watch *watch);

#endif
