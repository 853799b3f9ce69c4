/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench recovery: the results of a trial, and the report about many trials. Thread: the main one. */
#ifndef LEAT_TOOLS_BENCH_RECOVERY_H
#define LEAT_TOOLS_BENCH_RECOVERY_H

#include "tools/bench/light.h"

enum { RECOVERY_TRIALS_MAX = 1000 };

struct recovery_options {
    uint64_t stored, copies, nodes, trials, memory;
    const char *how, *durability, *replication, *dir, *leatd, *json;
    bool keep, replicated;
};

enum phase {
    PHASE_DETECT,
    PHASE_FENCE,
    PHASE_COLLECT,
    PHASE_PREPARE,
    PHASE_SEAL,
    PHASE_ADOPT,
    PHASE_ACK,
    PHASE_READ,
    PHASE_WHOLE,
    PHASES
};

struct recovery_trial {
    double ms[PHASES]; /* -1: not seen */
    char victim[8];
    bool led;
    struct bench_latency {
        uint64_t p50, p99; /* 0: no append */
    } latency[WINDOWS];    /* but of coming back, which goes on after it */
};

/** By table, or as JSON where that is asked for. Returns the exit code. */
int recovery_report(const struct recovery_options *o, const struct recovery_trial *trials,
                    size_t count, struct bench_light *light);

#endif
