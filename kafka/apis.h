/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all APIs: the top of the module, which knows every handler. */
#ifndef LEAT_KAFKA_APIS_H
#define LEAT_KAFKA_APIS_H

#include "kafka/front/request.h"

/** NULL: not served. Thread: any. */
const struct leat_kafka_api *leat_kafka_api_find(int16_t key);
/** All of them, in the order of apis.def. Thread: any. */
const struct leat_kafka_api *leat_kafka_apis(uint32_t *out_count);
/** The same table, for the lower libraries. Thread: any. */
const struct leat_kafka_table *leat_kafka_table(void);

#endif
