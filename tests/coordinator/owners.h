/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables count for each node is what it owns. */
#ifndef LEAT_TESTS_COORDINATOR_OWNERS_H
#define LEAT_TESTS_COORDINATOR_OWNERS_H

#include "coordinator/metadata/machine.h"

static inline bool owners_are_counted(const struct leat_machine *machine)
{
    for (uint32_t n = 0; n < machine->node_count; n++) {
        uint64_t streamlets = 0, logs = 0;
        for (uint32_t s = 0; s < machine->stream_count; s++) {
            const struct leat_machine_stream *stream = &machine->streams[s];
            for (uint32_t i = 0; i < stream->desc->streamlet_count; i++) {
                if (stream->owners[i] != n) continue;
                streamlets++;
                logs += stream->desc->settings.logs;
            }
        }
        if (machine->nodes[n].info.streamlets != streamlets || machine->nodes[n].logs != logs)
            return false;
    }
    return true;
}

#endif
