/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: a histogram, figures, the report. */
#ifndef LEAT_TOOLS_BENCH_REPORT_H
#define LEAT_TOOLS_BENCH_REPORT_H

#include "tools/leat/cli.h"

/* Latencies in logarithmic buckets of 1/32 (3 %) each; one writer, readers at any time. */
enum { HISTOGRAM_SUB = 32, HISTOGRAM_BUCKETS = 59 * HISTOGRAM_SUB };
/* Of the number in each record; the bits above name the run. */
enum { BENCH_NUMBER_BITS = 40 };
struct bench_histogram {
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS];
    _Atomic uint64_t max;
};
void bench_note(struct bench_histogram *histogram, uint64_t us);
void bench_merge(struct bench_histogram *into, const struct bench_histogram *from);
uint64_t bench_percentile(const struct bench_histogram *histogram, double percent);

/* The nodes that were up when the benchmark began, and their reports then and after. */
enum { BENCH_NODES_MAX = 64 };
struct bench_node {
    char name[128], address[256];
    struct cli_status before, after;
};
struct bench_nodes {
    uint32_t count;
    struct bench_node rows[BENCH_NODES_MAX];
};
/** Each of these says what is wrong and returns an exit code. */
int bench_nodes_find(struct bench_nodes *nodes);
int bench_nodes_begin(struct bench_nodes *nodes);
int bench_nodes_end(struct bench_nodes *nodes);
/** Do all nodes replicate by this transport? */
int bench_nodes_transport(const struct bench_nodes *nodes, const char *wanted);
/** Of all processes, between begin and end. */
double bench_nodes_cpu_seconds(const struct bench_nodes *nodes);
void bench_nodes_json(FILE *out, const struct bench_nodes *nodes);
void bench_nodes_print(const struct bench_nodes *nodes);

struct bench_report {
    const char *what; /* "append", "pull" */
    const char *stream;
    const struct leat_stream_settings *stream_settings; /* NULL: not shown to people */
    uint64_t records, bytes, failed;
    uint64_t warming; /* records in the stream that came before the figures */
    double seconds, server_cpu_seconds, client_cpu_seconds;
    const struct bench_histogram *latency; /* NULL: none */
    bool closed_loop;
    const struct bench_nodes *nodes; /* NULL: not asked */
    const char *settings;            /* JSON members */
    const double *per_second;
    size_t second_count;
};
/** The progress line, in the report's units: records and bytes per second. */
void bench_live(const char *what, double records, double bytes,
                const struct bench_histogram *latency);
/** Human figures to stdout; JSON to a file ("-": stdout instead of them). */
int bench_print(const struct bench_report *report, const char *json_path);
/** Before anything is measured: CLI_FAILED after a message where the figures can't be written. NULL, "-": nothing. */
int bench_json_check(const char *json_path);
/** NULL, or the name of a transport; false after a message. */
bool bench_replication_check(const char *kind);
double bench_cpu_seconds(void);

#endif
