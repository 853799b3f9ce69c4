/* SPDX-License-Identifier: Apache-2.0 */
/* Committed entries and snapshots take effect here, and are reported. */
#include "coordinator/membership/applied.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"

leat_err co_apply(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine_result result;
    bool formed = coordinator->machine.formed;
    leat_err rc = leat_machine_apply(&coordinator->machine, bytes, count, &result);
    if (rc != LEAT_OK) return rc;
    if (result.malformed)
        leat_node_log_warn(
            "coordinator: a committed entry of %zu bytes is refused on all nodes: it is "
            "no command",
            count);
    if (formed != coordinator->machine.formed) co_identity_update(coordinator);
    co_requests_applied(coordinator, &result);
    return LEAT_OK;
}

void co_tables_tell(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine *machine = &coordinator->machine;
    for (uint32_t i = 0; i < machine->node_count && machine->on_node; i++)
        machine->on_node(machine->owner, &machine->nodes[i].info);
    for (uint32_t i = 0; i < machine->stream_count && machine->on_stream; i++)
        machine->on_stream(machine->owner, machine->streams[i].desc);
    if (machine->on_stream && coordinator->options.on_streams_given)
        coordinator->options.on_streams_given(coordinator->options.owner,
                                              machine->next_stream_id - 1);
}

leat_err co_restore(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine *machine = &coordinator->machine;
    uint32_t old_count = machine->stream_count;
    uint32_t *old = leat_mem_calloc(LEAT_MEM_COORDINATOR, old_count + 1, sizeof *old);
    if (!old) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < old_count; i++)
        old[i] = machine->streams[i].id;
    leat_err rc = leat_machine_restore(machine, bytes, count);
    for (uint32_t i = 0; rc == LEAT_OK && i < old_count && machine->on_stream_deleted; i++)
        if (!leat_machine_stream_find(machine, old[i]))
            machine->on_stream_deleted(machine->owner, old[i]);
    leat_mem_free(old);
    if (rc != LEAT_OK) return rc;
    co_tables_tell(coordinator);
    co_identity_update(coordinator);
    co_peers_want(coordinator);
    co_requests_restored(coordinator);
    return LEAT_OK;
}
