/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a core's tables. Nothing here changes anything. Thread: the core's. */
#ifndef LEAT_BROKER_DATA_LOOKUP_H
#define LEAT_BROKER_DATA_LOOKUP_H

#include "broker/data/partition.h"

uint32_t leat_name_hash(const char *name, size_t bytes);
uint32_t leat_partition_hash(struct leat_log_ref ref);
struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id);
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes);
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref);

#endif
