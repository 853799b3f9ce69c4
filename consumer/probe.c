/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer/probe.h"

#include "consumer/internal.h"

bool leat_consumer_is_member(const struct leat_consumer_engine *engine, uint32_t *out_generation)
{
    *out_generation = engine->group_generation;
    return engine->group_state == GROUP_IN;
}

static const struct leat_consumer_lane *lane_find(const struct leat_consumer_engine *engine,
                                                  const struct leat_client_log *where)
{
    for (uint32_t i = 0; i < engine->lane_count; i++)
        if (engine->lanes[i]->owner == where->owner && engine->lanes[i]->lane == where->lane)
            return engine->lanes[i];
    return NULL;
}

bool leat_consumer_log_next(const struct leat_consumer_engine *engine,
                            struct leat_consumer_log_seen *seen)
{
    uint32_t at = seen->at;
    *seen = (struct leat_consumer_log_seen){.at = at + 1};
    if (at >= engine->log_count) return false;
    const struct leat_consumer_log *log = &engine->logs[at];
    const struct leat_client_stream *stream =
        leat_client_stream(engine->client, engine->stream_name);
    seen->ref = log->ref;
    seen->next = log->next;
    seen->generation = engine->generation;
    if (!stream || stream->id != engine->stream_id || log->ref.streamlet >= engine->streamlets)
        return true;
    const struct leat_client_log *where =
        &stream->logs[log->ref.streamlet * stream->settings.logs + log->ref.log];
    const struct leat_consumer_lane *lane = lane_find(engine, where);
    seen->owner = where->owner;
    seen->epoch = where->epoch.v;
    seen->grace_us = engine->options.min_bytes > 1 ? engine->options.wait_ms * 1000ull : 0;
    seen->by_position = log->by_position;
    seen->group = log->group;
    seen->fetching = log->state == CLOG_FETCHING;
    seen->poll_us = log->by_position ? engine->options.wait_ms * 1000ull : 0;
    seen->retry_at_us = log->retry_at_us;
    seen->reads = !engine->failed && !engine->looking && lane &&
                  lane->answers < engine->options.prefetch &&
                  (log->by_position || log->state >= CLOG_READY);
    return true;
}

bool leat_consumer_stands_still(const struct leat_consumer_engine *engine)
{
    bool asks = engine->group_state == GROUP_JOINING || engine->group_state == GROUP_FETCHING;
    return asks && !engine->group_busy && !engine->failed && !engine->left;
}
