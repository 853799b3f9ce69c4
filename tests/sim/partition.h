/* SPDX-License-Identifier: Apache-2.0 */
/* A core's table of its logs, as watchers walk it. The table has 1,024 buckets at least, and a seed's logs lie in a few
 * of these: empty buckets are passed eight at a time. */
#ifndef LEAT_TESTS_SIM_PARTITION_H
#define LEAT_TESTS_SIM_PARTITION_H

#include "broker/data/core_data.h"
#include "broker/net/core.h"

/* The first bucket from this one on that has any; past partition_mask: there is none. The table's size is a power of
 * two, and more than eight. */
static inline uint32_t sim_partition_from(const struct leat_core *core, uint32_t h)
{
    enum { AT_ONCE = 8 };
    if (!core->data->partitions) return core->data->partition_mask + 1;
    while (h <= core->data->partition_mask && !core->data->partitions[h]) {
        h++;
        for (; h % AT_ONCE == 0 && h <= core->data->partition_mask; h += AT_ONCE) {
            uintptr_t any = 0;
            for (uint32_t i = 0; i < AT_ONCE; i++)
                any |= (uintptr_t)core->data->partitions[h + i];
            if (any) break;
        }
    }
    return h;
}

#endif
