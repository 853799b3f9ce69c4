/* SPDX-License-Identifier: Apache-2.0 */
/* A core's state for logs that come, leave and are repaired, from the start of the core to its end. */
#include "broker/ownership/calls.h"

#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/ownership/handover.h"
#include "broker/ownership/move.h"

struct core_ownership_parts {
    struct leat_takeovers takeovers;
    struct leat_repairs repairs;
    struct leat_movers movers;
};

leat_err leat_core_ownership_make(struct leat_core *core)
{
    struct core_ownership_parts *parts = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *parts);
    if (parts == NULL) return LEAT_E_NO_MEMORY;
    core->takeovers = &parts->takeovers;
    core->repairs = &parts->repairs;
    core->movers = &parts->movers;
    leat_takeovers_init(core);
    leat_repairs_init(core);
    leat_movers_init(core);
    return LEAT_OK;
}

void leat_core_ownership_fini(struct leat_core *core)
{
    leat_takeovers_fini(core);
    leat_repairs_fini(core);
    leat_movers_fini(core);
}

void leat_core_ownership_free(struct leat_core *core)
{
    if (core->takeovers == NULL) return;
    leat_mem_free(LEAT_CONTAINER(core->takeovers, struct core_ownership_parts, takeovers));
    core->takeovers = NULL;
    core->repairs = NULL;
    core->movers = NULL;
}

uint32_t leat_movers_count(const struct leat_core *core)
{
    return core->movers->count;
}
