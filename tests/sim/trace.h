/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of a trace are shown, and what each is about: a kind, a node, a log, a segment. Private to the
 * simulator. */
#ifndef LEAT_TESTS_SIM_TRACE_H
#define LEAT_TESTS_SIM_TRACE_H

#include "base/error.h"
#include "base/types.h"

/* What a line is about, as far as its text says so. */
struct sim_trace_about {
    bool has_log, has_segment;
    struct leat_log_ref log; /* by the numbers of the simulator's streams */
    uint64_t segment;
};

/* Lines that agree with all that is set are shown. */
struct sim_trace_filter {
    const char *kind, *node; /* NULL: any */
    struct sim_trace_about about;
};

/** NULL: all lines. The filter stays the caller's. */
void sim_trace_filter_set(const struct sim_trace_filter *filter);
/** "STREAM/STREAMLET/LOG". false: it is no such thing. */
bool sim_trace_log_read(const char *text, struct leat_log_ref *out);
/** The product gave the simulator's stream `index` this id: texts of the product name logs by it. */
void sim_trace_stream_is(uint32_t index, uint32_t id);
/** What a line of that kind is about. Names of logs: "1/0/0" and "stream stream-1 streamlet 0 log 0" by the simulator's
 * numbers; "log id 7/0/0", and whatever lines of the kind "server" say, by the product's ids. */
void sim_trace_about(const char *kind, const char *text, struct sim_trace_about *out);
/** Print a line to stderr, unless it is filtered out. file: the source file that says the line, from which its kind
 * follows: "tests/sim/traps_fill.c" says lines of the kind "traps_fill". actor: "node1.2/0"; "": the world's own. */
void sim_trace_print(uint64_t now_us, const char *file, const char *actor, const char *text);
/** Is that line shown? As above. Pure but for the filter. */
bool sim_trace_is_shown(const char *kind, const char *actor, const char *text,
                        const struct sim_trace_about *about);

#endif
