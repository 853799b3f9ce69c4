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
/* A partition that a reader or member reads, or to which a producer appends, as waits_kafka.c sees it. */
struct sim_kafka_part_seen {
    uint32_t at; /* the partition's number in the walk, from 1 on; 0: the walk begins */
    struct leat_log_ref log;
    const struct sim_kafka_link
        *link;     /* to the leader; NULL: the client does not know the leader */
    int32_t epoch; /* the leader's */
    uint64_t next; /* the next offset; or the first record without an answer */
    uint64_t turn; /* changes when positions change, perhaps to the same `next` */
    /* There is something to do at the leader, and the connection to the leader owes nothing else before. */
    bool waits;
    bool any; /* of a producer: there is a batch without an answer */
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
    /** The next partition; the first when all of `seen` is zero. false: no more. A pointer, as what this leads to is
     * above the looks. */
    bool (*part_next)(const struct sim_client *client, struct sim_kafka_part_seen *seen);
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
/* The call of a connection that is answered next. */
struct sim_kafka_call_seen {
    enum leat_kafka_key key;
    int32_t correlation;
    uint64_t n;       /* the caller's */
    uint64_t wait_us; /* a fetch: how long the node may wait for records */
};
/** false: the connection has no call without an answer. */
bool sim_kafka_call_see(const struct sim_kafka_link *link, struct sim_kafka_call_seen *out_seen);
/** The connection to that node. NULL: the client does not know where the node is. */
const struct sim_kafka_link *sim_kafka_link_see(const struct sim_kafka *kafka, int32_t node);
/** Of a producer, reader or member of the scenario that has begun. NULL: another client. */
const struct sim_kafka *sim_kafka_of(const struct sim_client *client);
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
