/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a request, or the first of all there are, in order: each is looked at once, and not once for each that is
 * told. Thread: core. */
#ifndef LEAT_KAFKA_HANDLERS_NAMES_H
#define LEAT_KAFKA_HANDLERS_NAMES_H

#include "kafka/front/request.h"

struct leat_kafka_names {
    struct leat_kafka_string *at; /* the last in order first, until they are sorted */
    uint32_t count, most;
};

int leat_kafka_name_order(struct leat_kafka_string a, struct leat_kafka_string b);
/** For `most` of them; the memory is the request's. false: there is none. */
bool leat_kafka_names_init(struct leat_kafka_names *names, struct leat_kafka_request *request,
                           uint32_t most) LEAT_NODISCARD;
/** Of all added names the first `most` in order are kept. The text is borrowed. */
void leat_kafka_names_add(struct leat_kafka_names *names, struct leat_kafka_string name);
/** When all names are added: sort them. */
void leat_kafka_names_sort(struct leat_kafka_names *names);

#endif
