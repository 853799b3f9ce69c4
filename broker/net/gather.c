/* SPDX-License-Identifier: Apache-2.0 */
/* One question to several nodes: see gather.h. */
#include "broker/net/gather.h"

#include "base/assert.h"
#include "broker/net/core.h"

static void one_less(struct leat_gather *gather)
{
    LEAT_ASSERT_CMP(gather->out, >, 0);
    if (--gather->out == 0) gather->on_done(gather);
}

static void gather_on_answer(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                             const char *why)
{
    const struct leat_gather_part *part = ask->owner;
    struct leat_gather *gather = part->gather;
    gather->on_answer(gather, (uint32_t)(part - gather->parts), rc, answer, why);
    one_less(gather);
}

void leat_gather_start(struct leat_gather *gather)
{
    LEAT_ASSERT_OWNER(gather->core);
    gather->out = 1;
    for (uint32_t i = 0; i < gather->count; i++) {
        struct leat_gather_part *part = &gather->parts[i];
        struct leat_error error;
        if (part->skip) continue;
        part->gather = gather;
        part->ask = (struct leat_ask){
            .on_done = gather_on_answer, .owner = part, .timeout_us = gather->timeout_us};
        leat_err rc = leat_ask_start(gather->core, &part->ask, part->node, gather->kind,
                                     gather->control, gather->control_bytes, &error);
        if (rc == LEAT_OK)
            gather->out++;
        else
            gather->on_answer(gather, i, rc, NULL, error.text);
    }
    one_less(gather);
}

uint32_t leat_gather_owners(const struct leat_core *core, const struct leat_stream_desc *desc,
                            uint64_t out_owners[LEAT_NODES_MAX])
{
    LEAT_ASSERT_OWNER(core);
    uint32_t count = 0;
    for (uint32_t s = 0; s < desc->streamlet_count; s++) {
        bool known = leat_core_owns(core, desc, s);
        for (uint32_t i = 0; i < count && !known; i++)
            known = out_owners[i] == desc->streamlets[s].owner;
        if (!known && count < LEAT_NODES_MAX) out_owners[count++] = desc->streamlets[s].owner;
    }
    return count;
}
