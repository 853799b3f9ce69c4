/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients as bytes, of both protocols, and which log to ask for. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_ASKS_H
#define LEAT_TESTS_SIM_ASKS_H

#include "tests/sim/scenario.h"

enum { SIM_ASK_BYTES_MAX = 256 };

/* A log that a server has. */
struct sim_place {
    struct leat_log_ref log;
    uint32_t epoch;
    const char *topic; /* of Kafka: the stream's name and the partition that the log is */
    uint32_t partition;
    uint64_t end; /* what is acked lies before it */
};
/** The server is up, and says so. */
bool sim_serves(const struct sim_server *server);
/** Under which epoch that node has a log; false: it has none, or does not serve. */
bool sim_log_epoch(const struct sim_server *server, struct leat_log_ref ref, uint32_t *out_epoch);
/** One of the logs of a stream that a server has; nth: modulo how many it has. false: it has none. */
bool sim_place_find(const struct sim_server *server, uint32_t stream, unsigned nth,
                    struct sim_place *out_place);

/* Each returns how many bytes of `out`, which has room for SIM_ASK_BYTES_MAX, it has written. */
size_t sim_ask_hello(uint8_t *out, const char *name, int64_t lane, uint32_t number);
/** The cluster's status, and the description of a stream: what an operator asks. */
size_t sim_ask_status(uint8_t *out, uint32_t number);
size_t sim_ask_describe(uint8_t *out, const char *stream, uint32_t number);
size_t sim_ask_fetch(uint8_t *out, const struct sim_place *place, uint64_t offset, uint32_t number);
size_t sim_ask_locate(uint8_t *out, const struct sim_place *place, enum leat_locate what,
                      uint32_t number);
size_t sim_ask_kafka_versions(uint8_t *out, uint32_t number);
size_t sim_ask_kafka_fetch(uint8_t *out, const struct sim_place *place, uint64_t offset,
                           uint32_t number);
/** time: -1 the end, -2 the beginning, else the first record at or after that. */
size_t sim_ask_kafka_offsets(uint8_t *out, const struct sim_place *place, int64_t time,
                             uint32_t number);

#endif
