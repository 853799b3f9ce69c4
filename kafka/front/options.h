/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the Kafka front end. */
#ifndef LEAT_KAFKA_FRONT_OPTIONS_H
#define LEAT_KAFKA_FRONT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct leat_kafka_options {
    const char *address;   /* "HOST:PORT" to listen on */
    const char *advertise; /* the address for clients; NULL: the address that was bound */
    bool optional;         /* should the address not be free: warn, and go on without */
    uint32_t partitions;   /* of a topic that is made without a number; 0: 1 */
    uint32_t copies;       /* the same */
};

#endif
