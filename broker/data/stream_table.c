/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that a core knows, by id and by name. */
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"

static void streams_grow(struct leat_core *core)
{
    uint32_t mask = core->data->stream_mask * 2 + 1;
    struct leat_stream **ids = leat_mem_calloc(LEAT_MEM_ROWS, (size_t)mask + 1, sizeof *ids);
    struct leat_stream **names = leat_mem_calloc(LEAT_MEM_ROWS, (size_t)mask + 1, sizeof *names);
    if (ids == NULL || names == NULL) {
        leat_mem_free(ids);
        leat_mem_free(names);
        return;
    }
    for (uint32_t i = 0; i <= core->data->stream_mask; i++) {
        struct leat_stream *stream = core->data->streams_by_id[i];
        while (stream != NULL) {
            struct leat_stream *next = stream->by_id_next;
            uint32_t by_id = stream->desc->id & mask;
            uint32_t by_name =
                leat_name_hash(stream->desc->name, strlen(stream->desc->name)) & mask;
            stream->by_id_next = ids[by_id];
            ids[by_id] = stream;
            stream->by_name_next = names[by_name];
            names[by_name] = stream;
            stream = next;
        }
    }
    leat_mem_free(core->data->streams_by_id);
    leat_mem_free(core->data->streams_by_name);
    core->data->streams_by_id = ids;
    core->data->streams_by_name = names;
    core->data->stream_mask = mask;
}

static void logs_count(struct leat_core *core, struct leat_stream *stream)
{
    core->logs_known -= stream->logs;
    stream->logs = (uint64_t)stream->desc->streamlet_count * stream->desc->settings.logs;
    core->logs_known += stream->logs;
}

leat_err leat_stream_put(struct leat_core *core, struct leat_stream_desc *desc,
                         struct leat_stream **out_stream)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find(core, desc->id);
    if (stream != NULL) {
        leat_stream_desc_ref(desc);
        leat_stream_desc_unref(stream->desc);
        stream->desc = desc;
        logs_count(core, stream);
        *out_stream = stream;
        return LEAT_OK;
    }
    stream = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *stream);
    if (stream == NULL) return LEAT_E_NO_MEMORY;
    if (core->data->stream_count > core->data->stream_mask) streams_grow(core);
    leat_stream_desc_ref(desc);
    stream->desc = desc;
    stream->has_groups = strcmp(desc->name, LEAT_GROUPS_STREAM_NAME) == 0;
    leat_list_init(&stream->waiters);
    uint32_t by_id = desc->id & core->data->stream_mask;
    uint32_t by_name = leat_name_hash(desc->name, strlen(desc->name)) & core->data->stream_mask;
    stream->by_id_next = core->data->streams_by_id[by_id];
    core->data->streams_by_id[by_id] = stream;
    stream->by_name_next = core->data->streams_by_name[by_name];
    core->data->streams_by_name[by_name] = stream;
    core->data->stream_count++;
    logs_count(core, stream);
    if (desc->id > core->data->stream_seen) core->data->stream_seen = desc->id;
    *out_stream = stream;
    return LEAT_OK;
}

static void stream_tell_waiters(struct leat_stream *stream)
{
    struct leat_list now, *link;
    leat_list_init(&now);
    while ((link = leat_list_pop_front(&stream->waiters)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_stream_wait *wait = LEAT_CONTAINER(link, struct leat_stream_wait, link);
        wait->on_ready(wait);
    }
}

void leat_stream_publish(struct leat_stream *stream)
{
    stream->published = true;
    stream_tell_waiters(stream);
}

void leat_stream_remove(struct leat_core *core, struct leat_stream *stream)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream_desc *desc = stream->desc;
    struct leat_stream **at = &core->data->streams_by_id[desc->id & core->data->stream_mask];
    while (*at != stream)
        at = &(*at)->by_id_next;
    *at = stream->by_id_next;
    at = &core->data->streams_by_name[leat_name_hash(desc->name, strlen(desc->name)) &
                                      core->data->stream_mask];
    while (*at != stream)
        at = &(*at)->by_name_next;
    *at = stream->by_name_next;
    core->data->stream_count--;
    core->logs_known -= stream->logs;
    stream_tell_waiters(stream);
    leat_begun_unref(stream->begun);
    leat_stream_desc_unref(stream->desc);
    leat_mem_free(stream);
}
