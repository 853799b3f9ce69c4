/* SPDX-License-Identifier: Apache-2.0 */
/* ElectLeaders, ListPartitionReassignments: owners are chosen by the coordinators alone, and moved by `leat`. */
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

/* ---- ElectLeaders ---- */

/* There is no preferred owner, and an owner that is down is replaced without a request as soon as that loses nothing.
 */
static void elect_one(struct leat_kafka_request *request, const struct leat_stream_desc *stream,
                      int32_t partition, struct leat_kafka_elect_leaders_response_partition *out)
{
    struct leat_log_ref ref;
    int32_t leader = -1, epoch;
    out->partition_id = partition;
    if (stream == NULL || !leat_kafka_partition_log(stream, partition, &ref)) {
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                          "there is no such partition");
        return;
    }
    leat_kafka_leader_of(request->core, stream, ref.streamlet, &leader, &epoch);
    if (leader >= 0)
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_ELECTION_NOT_NEEDED,
                          "the partition has an owner; leat streamlet move gives it another");
    else
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE,
                          "the partition waits for a node that has all of it; leat cluster status "
                          "names it");
}

void leat_kafka_handle_elect_leaders(struct leat_kafka_request *request)
{
    const struct leat_kafka_elect_leaders_request *body = request->body;
    int32_t count = body->topic_partitions.count > 0 ? body->topic_partitions.count : 0;
    struct leat_kafka_elect_leaders_response *response =
        LEAT_KAFKA_MAKE(request, elect_leaders_response, 1);
    struct leat_kafka_elect_leaders_response_topic *topics =
        LEAT_KAFKA_MAKE(request, elect_leaders_response_topic, (size_t)count);
    bool good = response != NULL && topics != NULL;
    for (int32_t t = 0; t < count && good; t++) {
        const struct leat_kafka_elect_leaders_request_topic *in = &body->topic_partitions.at[t];
        const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->topic);
        int32_t partitions = in->partitions.count > 0 ? in->partitions.count : 0;
        topics[t].topic = in->topic;
        topics[t].partition_result.at =
            LEAT_KAFKA_MAKE(request, elect_leaders_response_partition, (size_t)partitions);
        good = topics[t].partition_result.at != NULL;
        topics[t].partition_result.count = good ? partitions : 0;
        for (int32_t p = 0; p < partitions && good; p++)
            elect_one(request, stream, in->partitions.at[p], &topics[t].partition_result.at[p]);
    }
    if (good) {
        response->replica_election_results.at = topics;
        response->replica_election_results.count = count;
    }
    leat_kafka_answer(request, good ? response : NULL);
}

/* ---- ListPartitionReassignments ---- */

/* A streamlet that moves has both owners' copies for a moment only; nothing is under way that a list could show. */
void leat_kafka_handle_list_partition_reassignments(struct leat_kafka_request *request)
{
    leat_kafka_answer(request, LEAT_KAFKA_MAKE(request, list_partition_reassignments_response, 1));
}
