/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer/probe.h"

#include "consumer/internal.h"

bool leat_consumer_is_member(const struct leat_consumer_engine *engine, uint32_t *out_generation)
{
    *out_generation = engine->group_generation;
    return engine->group_state == GROUP_IN;
}

bool leat_consumer_stands_still(const struct leat_consumer_engine *engine)
{
    bool asks = engine->group_state == GROUP_JOINING || engine->group_state == GROUP_FETCHING;
    return asks && !engine->group_busy && !engine->failed && !engine->left;
}
