/* SPDX-License-Identifier: Apache-2.0 */
#include "producer/probe.h"

#include "producer/internal.h"

static uint32_t sequenced(const struct leat_producer_log *log)
{
    uint32_t count = 0;
    LEAT_LIST_EACH(&log->queue, link)
    {
        const struct leat_producer_batch *batch =
            LEAT_CONTAINER(link, const struct leat_producer_batch, link);
        count += batch->sequence >= 0;
    }
    return count;
}

bool leat_producer_under_way_is_right(const struct leat_producer_engine *engine)
{
    for (unsigned i = 0; i < LEAT_GATHER_STREAMS_MAX; i++) {
        const struct leat_producer_stream *stream = engine->streams[i];
        for (uint32_t s = 0; stream && stream->own && s < stream->streamlets; s++)
            if (stream->own[s] && stream->own[s]->sequenced != sequenced(stream->own[s]))
                return false;
    }
    return true;
}

bool leat_producer_log_next(const struct leat_producer_engine *engine,
                            struct leat_producer_log_seen *seen)
{
    for (; seen->stream < LEAT_GATHER_STREAMS_MAX; seen->stream++, seen->streamlet = 0) {
        const struct leat_producer_stream *stream = engine->streams[seen->stream];
        while (stream && stream->own && seen->streamlet < stream->streamlets) {
            const struct leat_producer_log *log = stream->own[seen->streamlet++];
            if (!log) continue;
            seen->ref = log->ref;
            seen->oldest_us = 0;
            if (!leat_list_empty(&log->queue))
                seen->oldest_us =
                    LEAT_CONTAINER(log->queue.next, struct leat_producer_batch, link)->opened_us;
            return true;
        }
    }
    return false;
}
