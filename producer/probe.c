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
