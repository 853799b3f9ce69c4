/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log that a request names is served here, on which core, and why not. */
#include "broker/data/route.h"

#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"

leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream *stream = leat_stream_find(core, ref.stream);
    /* A request that came here was sent by metadata that names this node: the log is being made, moved or taken
     * over. A stream that was not seen: its event is on its way over the cores, and the request was faster. */
    const bool comes = stream != NULL || ref.stream > core->data->stream_seen;
    if (stream != NULL && stream->logs_missing && !core->stopping &&
        leat_node_heap_refuses(core->node, leat_core_now(core)))
        return LEAT_E_NO_MEMORY;
    return core->stopping || comes ? LEAT_E_STARTING : LEAT_E_UNKNOWN_STREAM;
}

const char *leat_partition_absent_words(leat_err absent)
{
    if (absent == LEAT_E_NO_MEMORY)
        return "the memory budget has no room for another log: delete streams, shorten their "
               "retention, or give the server a larger --memory";
    return absent == LEAT_E_STARTING ? "the log is not ready here: it is being made, moved or "
                                       "taken over, or the server stops; try again"
                                     : "the stream was deleted meanwhile";
}

leat_err leat_partition_place(struct leat_core *core, struct leat_log_ref ref, uint32_t *out_home,
                              struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream *stream = leat_stream_find(core, ref.stream);
    if (stream == NULL && ref.stream > core->data->stream_seen && core->members.links != NULL)
        return leat_error_set(error, LEAT_E_STARTING,
                              "this node has not heard of stream %u yet: try again", ref.stream);
    if (stream == NULL)
        return leat_error_set(error, LEAT_E_UNKNOWN_STREAM,
                              "no stream has id %u; it was deleted, or the id is another cluster's",
                              ref.stream);
    const struct leat_stream_desc *desc = stream->desc;
    if (ref.streamlet >= desc->streamlet_count || ref.log >= desc->settings.logs)
        return leat_error_set(
            error, LEAT_E_UNKNOWN_LOG,
            "stream \"%.64s\" has streamlets 0 to %u, each with logs 0 to %u; there is no "
            "streamlet %u, log %u",
            desc->name, desc->streamlet_count - 1, desc->settings.logs - 1, ref.streamlet, ref.log);
    if (!leat_core_owns(core, desc, ref.streamlet)) {
        if (error == NULL) return LEAT_E_NOT_OWNER;
        char owner[192];
        leat_member_words(core, desc->streamlets[ref.streamlet].owner, owner, sizeof owner);
        return leat_error_set(error, LEAT_E_NOT_OWNER,
                              "streamlet %u of \"%.64s\" is served by %.150s: ask for metadata "
                              "again",
                              ref.streamlet, desc->name, owner);
    }
    *out_home = leat_core_of_log(core->node, ref, desc->settings.logs);
    return LEAT_OK;
}

leat_err leat_partition_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                              uint32_t *out_home, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    leat_err rc = leat_partition_place(core, ref, out_home, error);
    if (rc != LEAT_OK) return rc;
    const struct leat_stream_desc *desc = leat_stream_find(core, ref.stream)->desc;
    rc = leat_node_stands(core->node, error);
    if (rc != LEAT_OK) return rc;
    uint32_t current = desc->streamlets[ref.streamlet].epoch.v;
    if (epoch < current)
        return leat_error_set(error, LEAT_E_STALE_EPOCH,
                              "streamlet %u of \"%.64s\" is owned under epoch %u, the request "
                              "names %u: ask for metadata again",
                              ref.streamlet, desc->name, current, epoch);
    if (epoch > current)
        return leat_error_set(error, LEAT_E_NOT_OWNER,
                              "streamlet %u of \"%.64s\" is served here under epoch %u, the "
                              "request names the newer %u: ask for metadata again",
                              ref.streamlet, desc->name, current, epoch);
    return LEAT_OK;
}
