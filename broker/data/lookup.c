/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a core's tables: streams by id and name, logs. */
#include "broker/data/lookup.h"

#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "broker/data/core_data.h"

struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    struct leat_stream *stream = core->data->streams_by_id[id & core->data->stream_mask];
    while (stream != NULL && stream->desc->id != id)
        stream = stream->by_id_next;
    return stream;
}

struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream =
        core->data->streams_by_name[leat_name_hash(name, bytes) & core->data->stream_mask];
    while (stream != NULL &&
           (strlen(stream->desc->name) != bytes || memcmp(stream->desc->name, name, bytes) != 0))
        stream = stream->by_name_next;
    return stream;
}

uint32_t leat_name_hash(const char *name, size_t bytes)
{
    return leat_crc32c(0, name, bytes);
}

uint32_t leat_partition_hash(struct leat_log_ref ref)
{
    uint64_t h = ((uint64_t)ref.stream << 32 | ref.streamlet) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ ref.log) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    struct leat_partition *partition =
        core->data->partitions[leat_partition_hash(ref) & core->data->partition_mask];
    while (partition != NULL && !leat_log_ref_equal(partition->ref, ref))
        partition = partition->hash_next;
    return partition;
}
