/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the Kafka protocol for tests: requests by the tables, over a plain socket. */
#ifndef LEAT_TESTS_KAFKA_WIRE_CLIENT_H
#define LEAT_TESTS_KAFKA_WIRE_CLIENT_H

#include "kafka/apis.h"

struct wire_client {
    int fd;
    int32_t correlation;
    struct leat_kafka_arena arena; /* of the last answer */
    uint8_t *in;
    size_t in_bytes;
};
/** A port that nobody listens on right now. */
unsigned wire_free_port(void);
void wire_open(struct wire_client *client, unsigned port);
void wire_close(struct wire_client *client);
void wire_send_bytes(struct wire_client *client, const void *bytes, size_t count);
/** Send a request, body: a struct leat_kafka_NAME_request; returns its correlation id. */
int32_t wire_send(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                  const void *body);
/** The next frame, whole, without its size; false: the server closed. View until the next one. */
bool wire_next(struct wire_client *client, const uint8_t **out_bytes, size_t *out_count);
/** The next answer, which has to be this one and to be used up exactly. */
void *wire_answer(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                  int32_t correlation);
/** Both. */
void *wire_call(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                const void *body);
/** The server closes, having said nothing. */
void wire_expect_closed(struct wire_client *client);

#endif
