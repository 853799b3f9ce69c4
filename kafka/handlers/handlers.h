/* SPDX-License-Identifier: Apache-2.0 */
/* One handler for each row of apis.def, each in a file of its area. */
#ifndef LEAT_KAFKA_HANDLERS_HANDLERS_H
#define LEAT_KAFKA_HANDLERS_HANDLERS_H

#include "kafka/front/request.h"

#define API(name, key, first, last, flexible, entry, flags)                                        \
    void leat_kafka_handle_##entry(struct leat_kafka_request *request);
#include "kafka/codec/apis.def"
#undef API

/** See struct leat_kafka_table: home. */
bool leat_kafka_produce_home(const struct leat_kafka_request *request, uint32_t *out_home);
bool leat_kafka_fetch_home(const struct leat_kafka_request *request, uint32_t *out_home);

#endif
