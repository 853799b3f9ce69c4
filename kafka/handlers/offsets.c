/* SPDX-License-Identifier: Apache-2.0 */
/* ListOffsets and OffsetForLeaderEpoch: logs are asked as native LOCATE asks them (broker/front_logs.h). */
#include <stdlib.h>

#include "base/assert.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

enum {
    TIME_LATEST = -1,
    TIME_EARLIEST = -2,
    TIME_NEWEST = -3,         /* the record with the highest time, from version 7 on */
    TIME_EARLIEST_LOCAL = -4, /* all of a log is local */
};

/* One partition: where its answer goes, and its place among the logs that are asked. */
struct offsets_part {
    void *out;
    int32_t at; /* -1: refused */
    int32_t epoch;
};
struct offsets {
    struct leat_kafka_request *request;
    void *response;
    struct offsets_part *parts;
    uint32_t part_count;
    struct leat_locator locator;
};

static struct offsets *offsets_create(struct leat_kafka_request *request, void *response,
                                      uint32_t count, void (*on_done)(struct leat_locator *locator))
{
    struct offsets *offsets = leat_kafka_take(request, 1, sizeof *offsets);
    if (offsets == NULL || response == NULL) return NULL;
    struct leat_locator *locator = &offsets->locator;
    offsets->request = request;
    offsets->response = response;
    offsets->parts = leat_kafka_take(request, count, sizeof *offsets->parts);
    locator->asked = leat_kafka_take(request, count, sizeof *locator->asked);
    locator->found = leat_kafka_take(request, count, sizeof *locator->found);
    locator->epochs = leat_kafka_take(request, count, sizeof *locator->epochs);
    if (offsets->parts == NULL || locator->asked == NULL || locator->found == NULL ||
        locator->epochs == NULL)
        return NULL;
    locator->core = request->core;
    locator->peer = request->conn->peer;
    locator->on_done = on_done;
    locator->owner = offsets;
    return offsets;
}

/* Ask for one more, if this node may answer for it. */
static enum leat_kafka_error offsets_add(struct offsets *offsets,
                                         const struct leat_stream_desc *stream, int32_t partition,
                                         int32_t epoch, enum leat_locate what, int64_t value,
                                         void *out)
{
    LEAT_ASSERT_CMP(offsets->locator.count, <=, offsets->part_count);
    struct offsets_part *part = &offsets->parts[offsets->part_count++];
    struct leat_log_ref log;
    uint32_t home;
    *part = (struct offsets_part){.out = out, .at = -1};
    enum leat_kafka_error code =
        leat_kafka_partition_find(offsets->request->core, stream, partition, epoch, &log, &home);
    if (code != LEAT_KAFKA_NONE) return code;
    part->at = (int32_t)offsets->locator.count++;
    part->epoch = (int32_t)stream->streamlets[log.streamlet].epoch.v;
    offsets->locator.asked[part->at] =
        (struct leat_msg_locate){.log = log, .what = what, .value = value};
    return LEAT_KAFKA_NONE;
}

static int asked_compare(const void *a, const void *b)
{
    const struct leat_log_ref *x = &(*(struct leat_msg_locate *const *)a)->log;
    const struct leat_log_ref *y = &(*(struct leat_msg_locate *const *)b)->log;
    return leat_log_ref_order(*x, *y);
}

/* Partitions that are named twice are refused, as Kafka refuses them: one request would cost as much as it
 * likes. false: no memory. */
static bool offsets_refuse_duplicates(struct offsets *offsets)
{
    struct leat_locator *locator = &offsets->locator;
    const struct leat_msg_locate **sorted =
        leat_kafka_take(offsets->request, locator->count, sizeof(struct leat_msg_locate *));
    bool *duplicates = leat_kafka_take(offsets->request, locator->count, sizeof *duplicates);
    if (sorted == NULL || duplicates == NULL) return false;
    for (uint32_t i = 0; i < locator->count; i++)
        sorted[i] = &locator->asked[i];
    qsort(sorted, locator->count, sizeof *sorted, asked_compare);
    for (uint32_t i = 1; i < locator->count; i++)
        if (asked_compare(&sorted[i - 1], &sorted[i]) == 0)
            duplicates[sorted[i - 1] - locator->asked] = duplicates[sorted[i] - locator->asked] =
                true;
    locator->count = 0;
    for (uint32_t i = 0; i < offsets->part_count; i++) {
        struct offsets_part *part = &offsets->parts[i];
        struct leat_kafka_list_offsets_response_partition *out = part->out;
        if (part->at < 0) continue;
        if (duplicates[part->at]) {
            out->error_code = LEAT_KAFKA_INVALID_REQUEST;
            part->at = -1;
            continue;
        }
        /* The rows only move toward the front */
        LEAT_ASSERT_CMP(locator->count, <=, (uint32_t)part->at);
        locator->asked[locator->count] = locator->asked[part->at];
        part->at = (int32_t)locator->count++;
    }
    return true;
}

static enum leat_kafka_error located_error_of(leat_err code)
{
    return code == LEAT_E_STARTING ? LEAT_KAFKA_LEADER_NOT_AVAILABLE : leat_kafka_error_of(code);
}

/* ---- ListOffsets ---- */

static void list_on_done(struct leat_locator *locator)
{
    struct offsets *offsets = locator->owner;
    LEAT_ASSERT_OWNER(offsets->request->core);
    for (uint32_t i = 0; i < offsets->part_count; i++) {
        const struct offsets_part *part = &offsets->parts[i];
        struct leat_kafka_list_offsets_response_partition *out = part->out;
        if (part->at < 0) continue;
        LEAT_ASSERT_CMP((uint32_t)part->at, <, locator->count);
        const struct leat_msg_located *found = &locator->found[part->at];
        out->error_code = (int16_t)located_error_of(found->code);
        if (found->code != LEAT_OK) continue;
        const struct leat_msg_locate *asked = &locator->asked[part->at];
        bool by_time = asked->what == LEAT_LOCATE_TIME || asked->what == LEAT_LOCATE_NEWEST;
        /* No record is that young: Kafka says so by -1, and not by the log's end. */
        if (by_time && found->timestamp_ms < 0) continue;
        out->offset = (int64_t)found->offset;
        if (by_time) out->timestamp = found->timestamp_ms;
        if (asked->what == LEAT_LOCATE_LATEST) out->leader_epoch = part->epoch;
    }
    leat_kafka_answer(offsets->request, offsets->response);
}

static enum leat_locate list_what(int64_t timestamp)
{
    switch (timestamp) {
    case TIME_LATEST:
        return LEAT_LOCATE_LATEST;
    case TIME_EARLIEST:
    case TIME_EARLIEST_LOCAL:
        return LEAT_LOCATE_EARLIEST;
    case TIME_NEWEST:
        return LEAT_LOCATE_NEWEST;
    default:
        return LEAT_LOCATE_TIME;
    }
}

void leat_kafka_handle_list_offsets(struct leat_kafka_request *request)
{
    const struct leat_kafka_list_offsets_request *body = request->body;
    struct leat_kafka_list_offsets_response *response =
        LEAT_KAFKA_MAKE(request, list_offsets_response, 1);
    uint32_t count = 0;
    for (int32_t t = 0; t < body->topics.count; t++)
        count += (uint32_t)body->topics.at[t].partitions.count;
    struct offsets *offsets = offsets_create(request, response, count, list_on_done);
    if (offsets != NULL)
        response->topics.at =
            LEAT_KAFKA_MAKE(request, list_offsets_response_topic, (size_t)body->topics.count);
    if (offsets == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->topics.count = body->topics.count;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_list_offsets_request_topic *in = &body->topics.at[t];
        struct leat_kafka_list_offsets_response_topic *out = &response->topics.at[t];
        const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->name);
        out->name = in->name;
        out->partitions.at =
            LEAT_KAFKA_MAKE(request, list_offsets_response_partition, (size_t)in->partitions.count);
        if (out->partitions.at == NULL) {
            leat_kafka_answer(request, NULL);
            return;
        }
        out->partitions.count = in->partitions.count;
        for (int32_t p = 0; p < in->partitions.count; p++) {
            const struct leat_kafka_list_offsets_request_partition *asked = &in->partitions.at[p];
            struct leat_kafka_list_offsets_response_partition *answer = &out->partitions.at[p];
            answer->partition = asked->partition;
            answer->error_code =
                (int16_t)offsets_add(offsets, stream, asked->partition, asked->current_leader_epoch,
                                     list_what(asked->timestamp), asked->timestamp, answer);
        }
    }
    if (!offsets_refuse_duplicates(offsets)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    leat_locator_start(&offsets->locator);
}

/* ---- OffsetForLeaderEpoch ---- */

static void epoch_on_done(struct leat_locator *locator)
{
    struct offsets *offsets = locator->owner;
    for (uint32_t i = 0; i < offsets->part_count; i++) {
        const struct offsets_part *part = &offsets->parts[i];
        struct leat_kafka_offset_for_leader_epoch_response_partition *out = part->out;
        if (part->at < 0) continue;
        const struct leat_msg_located *found = &locator->found[part->at];
        out->error_code = (int16_t)located_error_of(found->code);
        if (found->code != LEAT_OK) continue;
        int64_t asked = locator->asked[part->at].value;
        /* An epoch that this owner has not heard of has no end: (-1, -1). */
        if (asked > part->epoch) continue;
        out->end_offset = (int64_t)found->offset;
        out->leader_epoch =
            asked == part->epoch ? part->epoch : (int32_t)locator->epochs[part->at].v;
        if (out->leader_epoch == 0) out->leader_epoch = -1;
    }
    leat_kafka_answer(offsets->request, offsets->response);
}

void leat_kafka_handle_offset_for_leader_epoch(struct leat_kafka_request *request)
{
    const struct leat_kafka_offset_for_leader_epoch_request *body = request->body;
    struct leat_kafka_offset_for_leader_epoch_response *response =
        LEAT_KAFKA_MAKE(request, offset_for_leader_epoch_response, 1);
    uint32_t count = 0;
    for (int32_t t = 0; t < body->topics.count; t++)
        count += (uint32_t)body->topics.at[t].partitions.count;
    struct offsets *offsets = offsets_create(request, response, count, epoch_on_done);
    if (offsets != NULL)
        response->topics.at = LEAT_KAFKA_MAKE(request, offset_for_leader_epoch_response_topic,
                                              (size_t)body->topics.count);
    if (offsets == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->topics.count = body->topics.count;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_offset_for_leader_epoch_request_topic *in = &body->topics.at[t];
        struct leat_kafka_offset_for_leader_epoch_response_topic *out = &response->topics.at[t];
        const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->topic);
        out->topic = in->topic;
        out->partitions.at = LEAT_KAFKA_MAKE(request, offset_for_leader_epoch_response_partition,
                                             (size_t)in->partitions.count);
        if (out->partitions.at == NULL) {
            leat_kafka_answer(request, NULL);
            return;
        }
        out->partitions.count = in->partitions.count;
        for (int32_t p = 0; p < in->partitions.count; p++) {
            const struct leat_kafka_offset_for_leader_epoch_request_partition *asked =
                &in->partitions.at[p];
            struct leat_kafka_offset_for_leader_epoch_response_partition *answer =
                &out->partitions.at[p];
            answer->partition = asked->partition;
            answer->error_code =
                (int16_t)offsets_add(offsets, stream, asked->partition, asked->current_leader_epoch,
                                     LEAT_LOCATE_EPOCH, asked->leader_epoch, answer);
        }
    }
    leat_locator_start(&offsets->locator);
}
