/* SPDX-License-Identifier: Apache-2.0 */
/* A small client of Kafka's protocol on the net port, by the tables of kafka/: a connection to each
 * node, calls answered in order or lost with their connection, who leads which partition. Private to
 * the simulator. */
#ifndef LEAT_TESTS_SIM_KAFKA_CLIENT_H
#define LEAT_TESTS_SIM_KAFKA_CLIENT_H

#include "kafka/apis.h"
#include "tests/sim/scenario.h"

enum {
    SIM_KAFKA_LINKS_MAX = 16, /* addresses that one client may hear of */
    SIM_KAFKA_PARTITIONS_MAX = CHECK_STREAMLETS_MAX * CHECK_LOGS_MAX,
    SIM_KAFKA_REQUEST_BYTES_MAX = 64 * 1024,
};

struct sim_kafka_leader {
    int32_t node; /* -1: nobody */
    int32_t epoch;
};
/* A topic as the client knows it; partition s*Q + q. */
struct sim_kafka_topic {
    bool known;
    struct leat_kafka_uuid id;
    struct sim_kafka_leader leaders[SIM_KAFKA_PARTITIONS_MAX];
};

struct sim_kafka_call;
struct sim_kafka_link {
    struct sim_kafka *kafka;
    char address[64];
    int32_t node; /* -1: not told yet */
    struct leat_conn *conn;
    bool open;
    struct sim_kafka_call *first, *last; /* not answered */
    uint8_t *queued;                     /* until it is open */
    size_t queued_bytes;
};
struct sim_kafka {
    struct sim_client *client;
    struct sim_kafka_link links[SIM_KAFKA_LINKS_MAX];
    unsigned link_count;
    int32_t correlation;
    struct leat_kafka_arena arena; /* of the answer at hand */
    struct sim_kafka_topic topics[SIM_STREAMS];
    bool asking; /* for metadata */
    void (*on_metadata)(struct sim_client *client, bool ok);
};

/** answer: a struct leat_kafka_NAME_response until return; NULL: the call is lost, whatever became of
 * it. `n` is the caller's. Never inside sim_kafka_send(). */
typedef void (*sim_kafka_done)(struct sim_client *client, void *owner, uint64_t n,
                               const void *answer);

void sim_kafka_init(struct sim_kafka *kafka, struct sim_client *client);
/** A version that is served, not below `low` or above `high`. */
int16_t sim_kafka_version(struct sim_client *client, enum leat_kafka_key key, int16_t low,
                          int16_t high);
/** A request as bytes, its length in front; `bytes` has room for SIM_KAFKA_REQUEST_BYTES_MAX. */
size_t sim_kafka_encode(const struct leat_kafka_api *api, int16_t version, int32_t correlation,
                        const void *body, uint8_t *bytes);
/** node -1: any. false: it can't be reached right now, and on_done does not run. */
bool sim_kafka_send(struct sim_kafka *kafka, int32_t node, enum leat_kafka_key key, int16_t version,
                    const void *body, sim_kafka_done on_done, void *owner, uint64_t n);
/** Ask anew who leads what; kafka->on_metadata follows, unless one is being asked for already. */
void sim_kafka_metadata(struct sim_kafka *kafka);
/** Told by an answer: where a node is. */
void sim_kafka_node(struct sim_kafka *kafka, int32_t node, struct leat_kafka_string host,
                    int32_t port);
struct leat_log_ref sim_kafka_log(const struct scenario *scenario, uint32_t stream,
                                  uint32_t partition);
uint32_t sim_kafka_partitions(const struct scenario *scenario, uint32_t stream);
struct leat_kafka_string sim_kafka_topic_name(const struct scenario *scenario, uint32_t stream);

/* ---- kafka_trim.c ---- */
/** Give up what is before an offset; UINT64_MAX: all. Its leader has to be known. */
void sim_kafka_trim(struct sim_kafka *kafka, uint32_t partition, uint64_t before);

/* ---- kafka_produce.c, kafka_pull.c ---- */
void sim_kafka_producer_start(struct sim_client *client);
void sim_kafka_puller_start(struct sim_client *client);
/** A reader takes the node there for the leader of all partitions, as if it had been told long ago; NULL: it asks. */
void sim_kafka_lead(struct sim_client *client, const char *address);
bool sim_kafka_at_end(const struct sim_client *client);
/** The client's member id, while the client says that it is a member of its group and reads; else NULL. */
const char *sim_kafka_member(const struct sim_client *client);

#endif
