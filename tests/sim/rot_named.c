/* SPDX-License-Identifier: Apache-2.0 */
/* Which logs were named as damaged since a bit flipped. */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void sim_rot_named(struct scenario *scenario, struct leat_log_ref log, const char *what)
{
    uint32_t index = log.stream;
    LEAT_ASSERT(index < SIM_STREAMS);
    sim_trace(scenario->world, "named as damaged: %u/%u/%u: %s", index, log.streamlet, log.log,
              what);
    if (log.streamlet >= CHECK_STREAMLETS_MAX || log.log >= CHECK_LOGS_MAX) return;
    scenario->named[index][log.streamlet][log.log] = true;
}

/* `segment S of log A/B/C: ...` or `stream "NAME", streamlet B, log C ...`. */
void sim_rot_complaint(struct scenario *scenario, const char *line)
{
    struct leat_log_ref log;
    unsigned long long segment;
    char name[24];
    if (strstr(line, "complaints more")) scenario->told_in_sum = true;
    if (sscanf(line, "segment %llu of log %u/%u/%u:", &segment, &log.stream, &log.streamlet,
               &log.log) == 4) {
        if (!sim_stream_of(scenario, log.stream, &log.stream)) return;
        sim_rot_named(scenario, log, line);
        return;
    }
    if (sscanf(line, "stream \"%23[^\"]\", streamlet %u, log %u", name, &log.streamlet, &log.log) !=
        3)
        return;
    for (log.stream = 0; log.stream < SIM_STREAMS; log.stream++)
        if (strcmp(scenario->streams[log.stream].name, name) == 0)
            sim_rot_named(scenario, log, line);
}
