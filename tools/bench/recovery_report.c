/* SPDX-License-Identifier: Apache-2.0 */
/* What leat bench recovery tells of its trials: each phase, and what appends took meanwhile. */
#include "tools/bench/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const phase_names[PHASES] = {
    "detect", "fence",     "collect",    "prepare copies",  "seal (commit)",
    "adopt",  "first ack", "first read", "fully replicated"};
static const char *const phase_keys[PHASES] = {"detect",    "fence",      "collect",
                                               "prepare",   "seal",       "adopt",
                                               "first_ack", "first_read", "replicated"};
static const char *const phase_words[PHASES] = {
    "from the kill until it is declared crashed",
    "the slowest node's; revoking what it could write to",
    "all nodes asked what they hold (fence included) and answered",
    "what was decided lies on min-copies nodes",
    "the entry with owner and end is committed",
    "from there until the new owner serves",
    "from the kill to the first ack of a record produced after it",
    "from the kill until a record produced after it is read",
    "from the kill until no segment lacks a copy"};
static const char *const window_names[WINDOWS] = {"at rest", "after it", "copying", "coming back"};
static const char *const window_keys[WINDOWS] = {"rest", "after", "copying", "back"};

static int order(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The least, the middle one and the most; the values are ordered. 0: none. */
static size_t three_of(double *values, size_t count, double out[3])
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, order);
    out[0] = values[0];
    out[1] = values[count / 2];
    out[2] = values[count - 1];
    return count;
}

/* Of trials with this phase. 0: none. */
static size_t spread(const struct recovery_trial *trials, size_t count, unsigned phase,
                     double out[3])
{
    double values[RECOVERY_TRIALS_MAX];
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (trials[i].ms[phase] >= 0) values[found++] = trials[i].ms[phase];
    return three_of(values, found, out);
}

/* How much longer than before the kill appends took while copies were made: p99 by p99 of each trial. */
static size_t slowdown(const struct recovery_trial *trials, size_t count, double out[3])
{
    double values[RECOVERY_TRIALS_MAX];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bench_latency *of = trials[i].latency;
        if (of[WINDOW_REST].p99 && of[WINDOW_COPYING].p99)
            values[found++] = (double)of[WINDOW_COPYING].p99 / (double)of[WINDOW_REST].p99;
    }
    return three_of(values, found, out);
}

static void json_write(FILE *out, const struct recovery_options *o,
                       const struct recovery_trial *trials, size_t count, struct bench_light *light)
{
    fprintf(out,
            "{\"benchmark\":\"recovery\",\"stored_bytes\":%" PRIu64 ",\"copies\":%" PRIu64
            ",\"nodes\":%" PRIu64
            ",\"how\":\"%s\",\"durability\":\"%s\",\"replication\":\"%s\",\"trials\":[",
            o->stored, o->copies, o->nodes, o->how, o->durability,
            o->replication ? o->replication : "auto");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s{\"victim\":\"%s\",\"led\":%s", i ? "," : "", trials[i].victim,
                trials[i].led ? "true" : "false");
        for (unsigned p = 0; p < PHASES; p++)
            if (trials[i].ms[p] >= 0)
                fprintf(out, ",\"%s_ms\":%.3f", phase_keys[p], trials[i].ms[p]);
        for (unsigned w = 0; w < WINDOW_BACK; w++)
            if (trials[i].latency[w].p99)
                fprintf(out, ",\"%s_p50_us\":%" PRIu64 ",\"%s_p99_us\":%" PRIu64, window_keys[w],
                        trials[i].latency[w].p50, window_keys[w], trials[i].latency[w].p99);
        fprintf(out, "}");
    }
    fprintf(out, "],\"phases\":{");
    bool first = true;
    for (unsigned p = 0; p < PHASES; p++) {
        double at[3];
        if (!spread(trials, count, p, at)) continue;
        fprintf(out, "%s\"%s\":{\"least_ms\":%.3f,\"half_ms\":%.3f,\"most_ms\":%.3f}",
                first ? "" : ",", phase_keys[p], at[0], at[1], at[2]);
        first = false;
    }
    fprintf(out, "}");
    for (unsigned w = 0; w < WINDOWS; w++) {
        const struct bench_histogram *seen = &light->latency[w];
        fprintf(out,
                ",\"latency_%s_us\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}",
                window_keys[w], bench_percentile(seen, 50), bench_percentile(seen, 99),
                (uint64_t)seen->max);
    }
    fprintf(out, ",\"failed_records\":%" PRIu64 "}\n", (uint64_t)atomic_load(&light->failed));
}

static void print(const struct recovery_options *o, const struct recovery_trial *trials,
                  size_t count, struct bench_light *light)
{
    char size[32];
    printf("recovery: %zu trial%s (%s), %s stored in %" PRIu64 " copies on %" PRIu64
           " nodes, durability %s\n",
           count, cli_s(count), o->how, cli_bytes_text((double)o->stored, size), o->copies,
           o->nodes, o->durability);
    printf("  %-18s %9s %9s %9s ms\n", "", "least", "median", "most");
    for (unsigned p = 0; p < PHASES; p++) {
        double at[3];
        if (!spread(trials, count, p, at)) continue;
        printf("  %-18s %9.1f %9.1f %9.1f    %s\n", phase_names[p], at[0], at[1], at[2],
               phase_words[p]);
    }
    for (unsigned w = 0; w < WINDOWS; w++) {
        const struct bench_histogram *seen = &light->latency[w];
        if (bench_percentile(seen, 50) == 0) continue;
        printf("  append %-11s p50 %" PRIu64 " us, p99 %" PRIu64 " us, max %" PRIu64 " us\n",
               window_names[w], bench_percentile(seen, 50), bench_percentile(seen, 99),
               (uint64_t)seen->max);
    }
    double slower[3];
    if (slowdown(trials, count, slower))
        printf("  append p99 copying, by that at rest: %.2f x / %.2f x / %.2f x (least, median, "
               "most)\n",
               slower[0], slower[1], slower[2]);
    if (atomic_load(&light->failed))
        printf("  failed records     %" PRIu64 "\n", (uint64_t)atomic_load(&light->failed));
}

int recovery_report(const struct recovery_options *o, const struct recovery_trial *trials,
                    size_t count, struct bench_light *light)
{
    bool to_stdout = o->json && strcmp(o->json, "-") == 0;
    if (!to_stdout) print(o, trials, count, light);
    int failed = atomic_load(&light->failed) ? CLI_FAILED : CLI_OK;
    if (!o->json) return failed;
    FILE *out = to_stdout ? stdout : fopen(o->json, "w");
    if (!out) {
        cli_error("%s can't be written: %s", o->json, strerror(errno));
        return CLI_FAILED;
    }
    json_write(out, o, trials, count, light);
    return (to_stdout ? fflush(out) : fclose(out)) ? CLI_FAILED : failed;
}
