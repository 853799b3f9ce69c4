/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of benchmarks, and their reports. */
#include "tools/bench/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

static unsigned bucket_of(uint64_t us)
{
    if (us < HISTOGRAM_SUB) return (unsigned)us;
    unsigned power = 63u - (unsigned)__builtin_clzll(us);
    return (power - 4) * HISTOGRAM_SUB + (unsigned)((us >> (power - 5)) & (HISTOGRAM_SUB - 1));
}

/* The largest value of a bucket: percentiles are never told too small. */
static uint64_t bucket_top(unsigned bucket)
{
    if (bucket < HISTOGRAM_SUB) return bucket;
    unsigned power = bucket / HISTOGRAM_SUB + 4;
    uint64_t sub = bucket % HISTOGRAM_SUB;
    return ((HISTOGRAM_SUB + sub + 1) << (power - 5)) - 1;
}

void bench_note(struct bench_histogram *histogram, uint64_t us)
{
    unsigned bucket = bucket_of(us);
    if (bucket >= HISTOGRAM_BUCKETS) bucket = HISTOGRAM_BUCKETS - 1;
    _Atomic uint64_t *count = &histogram->counts[bucket];
    /* One writer: no locked instruction needed. */
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (us > atomic_load_explicit(&histogram->max, memory_order_relaxed))
        atomic_store_explicit(&histogram->max, us, memory_order_relaxed);
}

void bench_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->counts[i] += atomic_load_explicit(&from->counts[i], memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&from->max, memory_order_relaxed);
    if (max > into->max) into->max = max;
}

uint64_t bench_percentile(const struct bench_histogram *histogram, double percent)
{
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += histogram->counts[i];
    double wanted = (double)total * percent / 100;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen && (double)seen >= wanted) {
            uint64_t top = bucket_top(i);
            return top < histogram->max ? top : histogram->max;
        }
    }
    return 0;
}

double bench_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* "27.31 M records", or "815 records" where millions would show as 0.00. */
static const char *count_text(double count, char out[32])
{
    if (count < 1e5)
        snprintf(out, 32, "%.0f records", count);
    else
        snprintf(out, 32, "%.2f M records", count / 1e6);
    return out;
}

void bench_live(const char *what, double records, double bytes,
                const struct bench_histogram *latency)
{
    char count[32], size[32];
    cli_progress("%s: %s/s, %s/s, p50 %" PRIu64 " us, p99 %" PRIu64 " us", what,
                 count_text(records, count), cli_bytes_text(bytes, size),
                 bench_percentile(latency, 50), bench_percentile(latency, 99));
}

static void json_print(FILE *out, const struct bench_report *r)
{
    double server = r->server_cpu_seconds > 0 ? r->server_cpu_seconds : 1e-9;
    fprintf(out,
            "{\"benchmark\":\"%s\",\"records\":%" PRIu64 ",\"seconds\":%.6f,"
            "\"records_per_second\":%.0f,\"bytes\":%" PRIu64 ",\"bytes_per_second\":%.0f,"
            "\"failed_records\":%" PRIu64 ",\"server_cpu_seconds\":%.6f,"
            "\"client_cpu_seconds\":%.6f,\"records_per_server_cpu_second\":%.0f",
            r->what, r->records, r->seconds, (double)r->records / r->seconds, r->bytes,
            (double)r->bytes / r->seconds, r->failed, r->server_cpu_seconds, r->client_cpu_seconds,
            (double)r->records / server);
    if (r->warming) fprintf(out, ",\"warming_records\":%" PRIu64, r->warming);
    if (r->latency)
        fprintf(out,
                ",\"latency_kind\":\"%s\",\"latency_us\":{\"p50\":%" PRIu64 ",\"p90\":%" PRIu64
                ",\"p99\":%" PRIu64 ",\"p999\":%" PRIu64 ",\"max\":%" PRIu64 "}",
                r->closed_loop ? "closed_loop" : "intended_send_time",
                bench_percentile(r->latency, 50), bench_percentile(r->latency, 90),
                bench_percentile(r->latency, 99), bench_percentile(r->latency, 99.9),
                (uint64_t)r->latency->max);
    if (r->nodes) bench_nodes_json(out, r->nodes);
    fprintf(out, ",\"per_second\":[");
    for (size_t i = 0; i < r->second_count; i++)
        fprintf(out, "%s%.0f", i ? "," : "", r->per_second[i]);
    fprintf(out, "],\"settings\":{%s}}\n", r->settings);
}

int bench_json_check(const char *json_path)
{
    if (!json_path || strcmp(json_path, "-") == 0) return CLI_OK;
    FILE *out = fopen(json_path, "a");
    if (out) return fclose(out) ? CLI_FAILED : CLI_OK;
    cli_error("%s can't be written: %s", json_path, strerror(errno));
    return CLI_FAILED;
}

int bench_print(const struct bench_report *r, const char *json_path)
{
    cli_progress_end();
    if (json_path && strcmp(json_path, "-") == 0) {
        json_print(stdout, r);
        return CLI_OK;
    }
    char count[32], rate[32], text[CLI_SETTINGS_BYTES];
    double server = r->server_cpu_seconds > 0 ? r->server_cpu_seconds : 1e-9;
    double client = r->client_cpu_seconds > 0 ? r->client_cpu_seconds : 1e-9;
    printf("%s: %" PRIu64 " record%s in %.2f s\n", r->what, r->records, cli_s(r->records),
           r->seconds);
    if (r->stream_settings)
        printf("  stream      %s: %s\n", r->stream, cli_settings_text(r->stream_settings, text));
    printf("  throughput  %s/s, %s/s\n", count_text((double)r->records / r->seconds, count),
           cli_bytes_text((double)r->bytes / r->seconds, rate));
    if (r->warming)
        printf("  besides     %" PRIu64 " record%s to open the logs, before the time began\n",
               r->warming, cli_s(r->warming));
    if (r->failed) printf("  failed      %" PRIu64 " record%s\n", r->failed, cli_s(r->failed));
    printf("  server CPU  %.2f s, %s per CPU second\n", r->server_cpu_seconds,
           count_text((double)r->records / server, count));
    printf("  client CPU  %.2f s, %s per CPU second\n", r->client_cpu_seconds,
           count_text((double)r->records / client, count));
    if (r->latency)
        printf("  latency     p50 %" PRIu64 " us, p90 %" PRIu64 " us, p99 %" PRIu64
               " us, p99.9 %" PRIu64 " us, max %" PRIu64 " us (%s)\n",
               bench_percentile(r->latency, 50), bench_percentile(r->latency, 90),
               bench_percentile(r->latency, 99), bench_percentile(r->latency, 99.9),
               (uint64_t)r->latency->max,
               r->closed_loop ? "closed_loop" : "from the intended send time");
    if (r->nodes) bench_nodes_print(r->nodes);
    if (!json_path) return CLI_OK;
    FILE *out = fopen(json_path, "w");
    if (!out) {
        cli_error("%s can't be written: %s", json_path, strerror(errno));
        return CLI_FAILED;
    }
    json_print(out, r);
    return fclose(out) ? CLI_FAILED : CLI_OK;
}
