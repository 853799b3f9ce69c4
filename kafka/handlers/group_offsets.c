/* SPDX-License-Identifier: Apache-2.0 */
/* OffsetCommit and OffsetFetch: partitions by name here, logs by reference in groups/. */
#include <string.h>

#include "base/assert.h"
#include "base/log_rows.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/group.h"

static const struct leat_stream_desc *topic_find(const struct leat_core *core,
                                                 struct leat_kafka_string name)
{
    const struct leat_stream_desc *stream = leat_kafka_topic_by_name(core, name);
    return stream != NULL && !stream->internal ? stream : NULL;
}

static bool partition_find(const struct leat_stream_desc *stream, int32_t partition,
                           struct leat_log_ref *out)
{
    return stream != NULL && leat_kafka_partition_log(stream, partition, out);
}

/* ---- OffsetCommit ---- */

static size_t commit_rows_count(const struct leat_kafka_offset_commit_request *body)
{
    size_t count = 0;
    for (int32_t t = 0; t < body->topics.count; t++)
        if (body->topics.at[t].partitions.count > 0)
            count += (size_t)body->topics.at[t].partitions.count;
    return count;
}

/* error_code of each partition; partitions that are to be committed get `rest`. */
static bool commit_errors(struct leat_kafka_request *request,
                          struct leat_kafka_offset_commit_response *response, int16_t rest)
{
    const struct leat_kafka_offset_commit_request *body = request->body;
    int32_t count = body->topics.count > 0 ? body->topics.count : 0;
    struct leat_kafka_offset_commit_response_topic *topics =
        LEAT_KAFKA_MAKE(request, offset_commit_response_topic, (size_t)count);
    if (topics == NULL) return false;
    response->topics.at = topics;
    response->topics.count = count;
    for (int32_t t = 0; t < count; t++) {
        const struct leat_stream_desc *stream = topic_find(request->core, body->topics.at[t].name);
        int32_t partitions =
            body->topics.at[t].partitions.count > 0 ? body->topics.at[t].partitions.count : 0;
        topics[t].name = body->topics.at[t].name;
        topics[t].partitions.count = partitions;
        topics[t].partitions.at =
            LEAT_KAFKA_MAKE(request, offset_commit_response_partition, (size_t)partitions);
        if (topics[t].partitions.at == NULL) return false;
        for (int32_t p = 0; p < partitions; p++) {
            const struct leat_kafka_offset_commit_request_partition *row =
                &body->topics.at[t].partitions.at[p];
            struct leat_log_ref ref;
            int16_t error = rest;
            if (!partition_find(stream, row->partition_index, &ref))
                error = LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
            else if (row->committed_metadata.bytes > LEAT_CLASSIC_METADATA_BYTES_MAX)
                error = LEAT_KAFKA_OFFSET_METADATA_TOO_LARGE;
            else if (row->committed_offset < 0)
                error = LEAT_KAFKA_OFFSET_OUT_OF_RANGE;
            topics[t].partitions.at[p].partition_index = row->partition_index;
            topics[t].partitions.at[p].error_code = error;
        }
    }
    return true;
}

/* The rows without an error. */
static size_t commit_rows(const struct leat_kafka_request *request,
                          const struct leat_kafka_offset_commit_response *response,
                          struct leat_groups_offset *rows)
{
    const struct leat_kafka_offset_commit_request *body = request->body;
    size_t count = 0;
    for (int32_t t = 0; t < response->topics.count; t++) {
        const struct leat_stream_desc *stream = topic_find(request->core, body->topics.at[t].name);
        for (int32_t p = 0; p < response->topics.at[t].partitions.count; p++) {
            const struct leat_kafka_offset_commit_request_partition *in =
                &body->topics.at[t].partitions.at[p];
            if (response->topics.at[t].partitions.at[p].error_code != LEAT_KAFKA_NONE) continue;
            struct leat_groups_offset *row = &rows[count++];
            *row = (struct leat_groups_offset){.group = LEAT_SEGMENT_GROUP_NONE,
                                               .offset = (uint64_t)in->committed_offset};
            bool found = partition_find(stream, in->partition_index, &row->log);
            LEAT_ASSERT(found); /* as before, in this turn */
            if (in->committed_leader_epoch >= 0)
                row->leader_epoch_plus_1 = (uint32_t)in->committed_leader_epoch + 1;
            if (in->committed_metadata.bytes > 0) {
                row->metadata = in->committed_metadata.text;
                row->metadata_bytes = (uint32_t)in->committed_metadata.bytes;
            }
        }
    }
    LEAT_ASSERT_CMP(count, <=, commit_rows_count(body));
    return count;
}

static void commit_answer(struct leat_kafka_request *request,
                          struct leat_kafka_offset_commit_response *response, int16_t error)
{
    for (int32_t t = 0; t < response->topics.count; t++)
        for (int32_t p = 0; p < response->topics.at[t].partitions.count; p++)
            if (response->topics.at[t].partitions.at[p].error_code == LEAT_KAFKA_NONE)
                response->topics.at[t].partitions.at[p].error_code = error;
    leat_kafka_answer(request, response);
}

static void commit_on_done(struct leat_kafka_group_ask *ask)
{
    leat_err rc = ask->home_request.rc;
    /* For a join this error means a group that is too large; here offsets find no room. */
    if (rc == LEAT_E_TOO_MANY) rc = LEAT_E_TOO_LARGE;
    commit_answer(ask->request, ask->owner, leat_kafka_group_error(rc));
}

void leat_kafka_handle_offset_commit(struct leat_kafka_request *request)
{
    const struct leat_kafka_offset_commit_request *body = request->body;
    struct leat_kafka_group_ask *ask = leat_kafka_group_ask_make(request, LEAT_GROUPS_COMMIT);
    struct leat_kafka_offset_commit_response *response =
        LEAT_KAFKA_MAKE(request, offset_commit_response, 1);
    struct leat_groups_offset *rows =
        leat_kafka_take(request, commit_rows_count(body) + 1, sizeof *rows);
    if (ask == NULL || response == NULL || rows == NULL ||
        !commit_errors(request, response, LEAT_KAFKA_NONE)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    if (!leat_kafka_group_member_set(ask, body->member_id)) {
        commit_answer(request, response, LEAT_KAFKA_UNKNOWN_MEMBER_ID);
        return;
    }
    ask->home_request.commits = rows;
    ask->home_request.commit_count = commit_rows(request, response, rows);
    ask->home_request.generation = body->generation_id_or_member_epoch >= 0
                                       ? (uint32_t)body->generation_id_or_member_epoch
                                       : LEAT_CLASSIC_GENERATION_NONE;
    ask->call.instance = leat_kafka_group_text(body->group_instance_id);
    ask->owner = response;
    ask->on_done = commit_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}

/* ---- OffsetFetch ---- */

/* Rows come in the order of logs. Of a group that reads groups of segments there is nothing to tell. */
static const struct leat_groups_offset *row_find(const struct leat_groups_request *home_answer,
                                                 struct leat_log_ref ref)
{
    size_t at = LEAT_LOG_ROWS_FROM(home_answer->offsets, home_answer->offset_count, log, ref);
    if (at == home_answer->offset_count) return NULL;
    const struct leat_groups_offset *row = &home_answer->offsets[at];
    return leat_log_ref_equal(row->log, ref) && row->group == LEAT_SEGMENT_GROUP_NONE ? row : NULL;
}

static void partition_fill(struct leat_kafka_offset_fetch_response_partition *out,
                           int32_t partition, const struct leat_groups_offset *row)
{
    out->partition_index = partition;
    out->metadata = leat_kafka_text("");
    if (row == NULL) return;
    out->committed_offset = (int64_t)row->offset;
    out->committed_leader_epoch = (int32_t)row->leader_epoch_plus_1 - 1;
    if (row->metadata_bytes > 0)
        out->metadata = (struct leat_kafka_string){row->metadata, (int32_t)row->metadata_bytes};
}

static bool topics_fill(struct leat_kafka_request *request,
                        const struct leat_kafka_offset_fetch_request_group *group,
                        const struct leat_groups_request *home_answer,
                        struct leat_kafka_offset_fetch_response_topic *topics)
{
    for (int32_t t = 0; t < group->topics.count; t++) {
        const struct leat_kafka_offset_fetch_request_topic *in = &group->topics.at[t];
        const struct leat_stream_desc *stream = topic_find(request->core, in->name);
        int32_t count = in->partition_indexes.count > 0 ? in->partition_indexes.count : 0;
        topics[t].name = in->name;
        topics[t].partitions.count = count;
        topics[t].partitions.at =
            LEAT_KAFKA_MAKE(request, offset_fetch_response_partition, (size_t)count);
        if (topics[t].partitions.at == NULL) return false;
        for (int32_t p = 0; p < count; p++) {
            struct leat_log_ref ref;
            bool known = home_answer->rc == LEAT_OK &&
                         partition_find(stream, in->partition_indexes.at[p], &ref);
            partition_fill(&topics[t].partitions.at[p], in->partition_indexes.at[p],
                           known ? row_find(home_answer, ref) : NULL);
        }
    }
    return true;
}

/* Topics without a name here are gone: deleted, and not yet forgotten by the group. */
static const struct leat_stream_desc *stream_of(const struct leat_core *core,
                                                const struct leat_groups_offset *row)
{
    const struct leat_stream_desc *stream = leat_front_stream(core, row->log.stream);
    return stream != NULL && row->group == LEAT_SEGMENT_GROUP_NONE ? stream : NULL;
}

/* All offsets that the group has committed: rows of one topic stand together. Returns how many topics, or -1. */
static int32_t topics_fill_all(struct leat_kafka_request *request,
                               const struct leat_groups_request *home_answer,
                               struct leat_kafka_offset_fetch_response_topic *topics)
{
    int32_t count = 0;
    for (size_t i = 0, end; i < home_answer->offset_count; i = end) {
        for (end = i; end < home_answer->offset_count &&
                      home_answer->offsets[end].log.stream == home_answer->offsets[i].log.stream;)
            end++;
        const struct leat_stream_desc *stream = stream_of(request->core, &home_answer->offsets[i]);
        if (stream == NULL) continue;
        LEAT_ASSERT(i == 0 ||
                    home_answer->offsets[i - 1].log.stream != home_answer->offsets[i].log.stream);
        struct leat_kafka_offset_fetch_response_topic *topic = &topics[count++];
        topic->name = leat_kafka_keep(request, leat_kafka_text(stream->name));
        topic->partitions.at = LEAT_KAFKA_MAKE(request, offset_fetch_response_partition, end - i);
        if (topic->name.text == NULL || topic->partitions.at == NULL) return -1;
        topic->partitions.count = (int32_t)(end - i);
        for (size_t r = i; r < end; r++) {
            struct leat_log_ref ref = home_answer->offsets[r].log;
            partition_fill(&topic->partitions.at[r - i],
                           (int32_t)(ref.streamlet * stream->settings.logs + ref.log),
                           &home_answer->offsets[r]);
        }
    }
    return count;
}

static size_t topics_most(const struct leat_groups_request *home_answer)
{
    size_t topics = 0;
    for (size_t i = 0; i < home_answer->offset_count; i++)
        topics +=
            i == 0 || home_answer->offsets[i].log.stream != home_answer->offsets[i - 1].log.stream;
    return topics;
}

static bool group_fill(struct leat_kafka_request *request,
                       const struct leat_kafka_offset_fetch_request_group *group,
                       const struct leat_groups_request *home_answer,
                       struct leat_kafka_offset_fetch_response_group *out)
{
    bool all = group->topics.count < 0;
    size_t most = all ? topics_most(home_answer) : (size_t)group->topics.count;
    out->group_id = group->group_id;
    out->error_code = leat_kafka_group_error(home_answer->rc);
    out->topics.at = LEAT_KAFKA_MAKE(request, offset_fetch_response_topic, most);
    if (out->topics.at == NULL) return false;
    if (!all) {
        out->topics.count = group->topics.count;
        return topics_fill(request, group, home_answer, out->topics.at);
    }
    if (home_answer->rc != LEAT_OK) return true;
    out->topics.count = topics_fill_all(request, home_answer, out->topics.at);
    return out->topics.count >= 0;
}

static void fetch_answer(struct leat_kafka_request *request,
                         const struct leat_kafka_group_asks *fetch)
{
    const struct leat_kafka_offset_fetch_request_group *asked = fetch->owner;
    struct leat_kafka_offset_fetch_response *response =
        LEAT_KAFKA_MAKE(request, offset_fetch_response, 1);
    struct leat_kafka_offset_fetch_response_group *groups =
        LEAT_KAFKA_MAKE(request, offset_fetch_response_group, fetch->count);
    bool ok = response != NULL && groups != NULL;
    for (uint32_t i = 0; i < fetch->count && ok; i++)
        ok = group_fill(request, &asked[i], &fetch->asks[i]->home_request, &groups[i]);
    if (!ok) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->groups.at = groups;
    response->groups.count = (int32_t)fetch->count;
    if (request->version < 8) {
        LEAT_ASSERT_CMP(fetch->count, ==, 1);
        response->error_code = groups[0].error_code;
        response->topics.at = groups[0].topics.at;
        response->topics.count = groups[0].topics.count;
        /* Version 1 has no place for it but here. */
        for (int32_t t = 0; t < response->topics.count && request->version < 2; t++)
            for (int32_t p = 0; p < response->topics.at[t].partitions.count; p++)
                response->topics.at[t].partitions.at[p].error_code = groups[0].error_code;
    }
    leat_kafka_answer(request, response);
}

/* The request in the form of version 8 and later: a list of groups. */
static struct leat_kafka_offset_fetch_request_group *
fetch_groups(struct leat_kafka_request *request)
{
    const struct leat_kafka_offset_fetch_request *body = request->body;
    if (request->version >= 8) return body->groups.at;
    struct leat_kafka_offset_fetch_request_group *group =
        LEAT_KAFKA_MAKE(request, offset_fetch_request_group, 1);
    if (group == NULL) return NULL;
    group->group_id = body->group_id;
    group->topics.at = body->topics.at;
    group->topics.count = body->topics.count;
    return group;
}

void leat_kafka_handle_offset_fetch(struct leat_kafka_request *request)
{
    const struct leat_kafka_offset_fetch_request *body = request->body;
    const int32_t count = request->version < 8 ? 1 : body->groups.count;
    struct leat_kafka_offset_fetch_request_group *groups = fetch_groups(request);
    struct leat_kafka_group_asks *fetch =
        leat_kafka_group_asks_make(request, LEAT_GROUPS_FETCH, count > 0 ? (uint32_t)count : 0);
    if (fetch == NULL || (groups == NULL && count > 0)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    for (uint32_t i = 0; i < fetch->count; i++)
        fetch->asks[i]->group = groups[i].group_id;
    fetch->owner = groups;
    fetch->on_all = fetch_answer;
    leat_kafka_group_asks_start(fetch);
}
