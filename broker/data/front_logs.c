/* SPDX-License-Identifier: Apache-2.0 */
/* What front ends see of streams, logs, and requests to them: see broker/front_logs.h. */
#include "broker/front_logs.h"

#include "base/assert.h"
#include "base/bug.h"
#include "broker/data/append.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"

/* ---- streams ---- */

static const struct leat_stream_desc *if_served(const struct leat_stream *stream)
{
    return stream != NULL && stream->published ? stream->desc : NULL;
}

const struct leat_stream_desc *leat_front_stream(const struct leat_core *core, uint32_t id)
{
    LEAT_ASSERT_OWNER(core);
    return if_served(leat_stream_find(core, id));
}

const struct leat_stream_desc *leat_front_stream_named(const struct leat_core *core,
                                                       const char *name, size_t bytes)
{
    LEAT_ASSERT_OWNER(core);
    return if_served(leat_stream_find_name(core, name, bytes));
}

const struct leat_stream_desc *leat_front_stream_heard(const struct leat_core *core,
                                                       const char *name, size_t bytes,
                                                       bool *out_served)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream *stream = leat_stream_find_name(core, name, bytes);
    if (stream != NULL && out_served != NULL) *out_served = stream->published;
    return stream != NULL ? stream->desc : NULL;
}

const struct leat_stream_desc *leat_front_stream_next(const struct leat_core *core,
                                                      const struct leat_stream_desc *after)
{
    const struct leat_stream *next = core->data->streams_by_id[0];
    uint32_t row = 0;
    LEAT_ASSERT_OWNER(core);
    if (after != NULL) {
        const struct leat_stream *stream = leat_stream_find(core, after->id);
        LEAT_ASSERT(stream != NULL); /* the caller got this stream in the same callback */
        row = after->id & core->data->stream_mask;
        next = stream->by_id_next;
    }
    for (;;) {
        for (; next != NULL; next = next->by_id_next)
            if (next->published && !next->desc->internal) return next->desc;
        if (row++ == core->data->stream_mask) return NULL;
        next = core->data->streams_by_id[row];
    }
}

uint32_t leat_front_stream_count(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return core->data->stream_count;
}

void leat_front_stream_wait(struct leat_core *core, uint32_t id, struct leat_stream_wait *wait)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find(core, id);
    LEAT_ASSERT(stream != NULL && !stream->published);
    leat_list_push_back(&stream->waiters, &wait->link);
}

/* ---- logs ---- */

bool leat_front_log_home(const struct leat_core *core, const struct leat_stream_desc *stream,
                         struct leat_log_ref log, uint32_t *out_home)
{
    LEAT_ASSERT_OWNER(core);
    if (!leat_core_owns(core, stream, log.streamlet) ||
        (leat_node_stands(core->node, NULL) != LEAT_OK && !LEAT_BUG(ISOLATED_OWNS)))
        return false;
    *out_home = leat_core_of_log(core->node, log, stream->settings.logs);
    LEAT_ASSERT_CMP(*out_home, <, core->node->options.cores);
    return true;
}

uint64_t leat_front_log_bytes(const struct leat_core *core, struct leat_log_ref log)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_partition *partition = leat_partition_find(core, log);
    if (partition == NULL || partition->log == NULL) return 0;
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    return info.bytes;
}

struct leat_groups *leat_front_groups(const struct leat_core *core, struct leat_log_ref log)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_partition *partition = leat_partition_find(core, log);
    return partition != NULL && !leat_partition_goes(partition) ? partition->groups : NULL;
}

/* ---- requests ---- */

struct leat_append_outcome leat_append_outcome(const struct leat_append_request *request)
{
    LEAT_ASSERT_OWNER(request->core);
    const struct leat_append_part *first = &request->first;
    return (struct leat_append_outcome){
        .rc = request->rc != LEAT_OK ? request->rc : first->rc,
        .text = request->text,
        .first_offset = first->append.first_offset,
        .append_time_ms = first->append.append_time_ms,
    };
}

void *leat_append_owner(const struct leat_append_request *request)
{
    LEAT_ASSERT_OWNER(request->core);
    return request->owner;
}

struct leat_append_request *leat_append_held(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->append_now;
}

void *leat_fetch_owner(const struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    return fetch->owner;
}

uint32_t leat_fetch_bytes(const struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    return fetch->bytes;
}

const struct leat_msg_fetched *leat_fetch_result(const struct leat_fetch_item *item)
{
    return &item->result;
}
