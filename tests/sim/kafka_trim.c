/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Kafka's protocol gives up what is in front of a partition: DeleteRecords. The trimmer's
 * rules (trim.c), but for that nobody sends it again: what has no answer may have been done. */
#include "base/assert.h"
#include "tests/sim/kafka_client.h"

enum { TIMEOUT_MS = 2000, PARTITION_SHIFT = 56 };
static const uint64_t to_end = (1ull << PARTITION_SHIFT) - 1; /* in `n` */

static void deleted(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct scenario *scenario = client->scenario;
    const struct leat_kafka_delete_records_response *response = answer;
    uint32_t partition = (uint32_t)(n >> PARTITION_SHIFT);
    uint64_t before = n & to_end;
    if (before == to_end) before = UINT64_MAX;
    (void)owner;
    if (!response || response->topics.count != 1 || response->topics.at[0].partitions.count != 1)
        return;
    const struct leat_kafka_delete_records_response_partition *row =
        &response->topics.at[0].partitions.at[0];
    struct leat_log_ref log = sim_kafka_log(scenario, client->stream, partition);
    sim_trace(scenario->world, "delete records of %u/%u/%u before %llu: %d, begins at %lld",
              log.stream, log.streamlet, log.log, (unsigned long long)before, row->error_code,
              (long long)row->low_watermark);
    if (row->error_code != LEAT_KAFKA_NONE) return;
    check_trimmed(scenario->check, log, before, (uint64_t)row->low_watermark);
    sim_fault_struck(scenario->world, SIM_FAULT_TRIM);
}

void sim_kafka_trim(struct sim_kafka *kafka, uint32_t partition, uint64_t before)
{
    struct sim_client *client = kafka->client;
    struct scenario *scenario = client->scenario;
    int32_t node = kafka->topics[client->stream].leaders[partition].node;
    bool end = before == UINT64_MAX;
    struct leat_kafka_delete_records_request_partition row = {(int32_t)partition,
                                                              end ? -1 : (int64_t)before};
    struct leat_kafka_delete_records_request_topic topic = {
        sim_kafka_topic_name(scenario, client->stream), {&row, 1}};
    struct leat_kafka_delete_records_request body = {{&topic, 1}, TIMEOUT_MS};
    LEAT_ASSERT(end || before < to_end);
    if (node < 0) return;
    check_trim_asked(scenario->check, sim_kafka_log(scenario, client->stream, partition), before);
    (void)sim_kafka_send(kafka, node, LEAT_KAFKA_DELETE_RECORDS,
                         sim_kafka_version(client, LEAT_KAFKA_DELETE_RECORDS, 0, 127), &body,
                         deleted, NULL,
                         (uint64_t)partition << PARTITION_SHIFT | (end ? to_end : before));
}
