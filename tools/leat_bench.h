/* What the two benchmarks share: a histogram, figures, the report. */
#ifndef LEAT_TOOLS_LEAT_BENCH_H
#define LEAT_TOOLS_LEAT_BENCH_H

#include "tools/cli.h"

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

struct bench_report {
    const char *what; /* "append", "pull" */
    uint64_t records, bytes, failed;
    double seconds, server_cpu_seconds, client_cpu_seconds;
    const struct bench_histogram *latency; /* NULL: none */
    bool closed_loop;
    const char *settings; /* JSON members */
    const double *per_second;
    size_t second_count;
};
/** Human figures to stdout; JSON to a file ("-": stdout instead of them). */
int bench_print(const struct bench_report *report, const char *json_path);
double bench_cpu_seconds(void);

#endif
