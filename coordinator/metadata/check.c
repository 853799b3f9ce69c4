/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the cluster's tables between two entries, whatever the entries were. */
#include "coordinator/metadata/private.h"

#include "base/assert.h"

struct owned {
    uint64_t streamlets, logs;
};

/* Adds to what each node owns. */
static void stream_check(const struct leat_machine *machine,
                         const struct leat_machine_stream *stream, struct owned *owned)
{
    const struct leat_stream_desc *desc = stream->desc;
    uint32_t logs = desc->settings.logs;
    LEAT_ASSERT_CMP(stream->id, ==, desc->id);
    LEAT_ASSERT_CMP(stream->log_count, ==, desc->streamlet_count * logs);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        uint16_t owner = stream->owners[i];
        if (owner == LEAT_OWNER_NONE) continue;
        LEAT_ASSERT_CMP(owner, <, machine->node_count);
        owned[owner].streamlets++;
        owned[owner].logs += logs;
    }
}

void leat_machine_check(const struct leat_machine *machine)
{
    struct owned owned[LEAT_NODES_MAX] = {{0, 0}};
    uint64_t logs = 0;
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        const struct leat_machine_stream *stream = &machine->streams[i];
        LEAT_ASSERT(i == 0 || machine->streams[i - 1].id < stream->id);
        stream_check(machine, stream, owned);
        logs += stream->log_count;
    }
    LEAT_ASSERT_CMP(logs, ==, machine->log_count);
    LEAT_ASSERT_CMP(machine->node_count, <=, LEAT_NODES_MAX);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_machine_node *node = &machine->nodes[i];
        LEAT_ASSERT_CMP(node->info.streamlets, ==, owned[i].streamlets);
        LEAT_ASSERT_CMP(node->logs, ==, owned[i].logs);
        /* A node that was declared crashed is never up again under the same incarnation. */
        LEAT_ASSERT(!node->info.crashed || node->info.state != LEAT_NODE_UP);
    }
    LEAT_ASSERT_CMP(machine->session_count, <=, LEAT_SESSIONS_MAX);
    LEAT_ASSERT_CMP(machine->voter_count, <=, LEAT_VOTERS_MAX);
    LEAT_ASSERT_CMP(machine->staged_bytes, <=, machine->staged_capacity);
}
