/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions about logs that come, between two turns of core 0. Not checked: `rc`, `whole`, `unsure` and
 * `first_retained`, because the log's core may be writing them. */
#include "base/assert.h"
#include "broker/ownership/takeover.h"

/* Of the takeovers of one log exactly one is not queued, and at least one is not replaced. */
static void log_check(const struct leat_list *all, struct leat_log_ref ref)
{
    unsigned going = 0, lasting = 0;
    for (const struct leat_list *it = all->next; it != all; it = it->next) {
        const struct leat_takeover *takeover = LEAT_CONTAINER(it, const struct leat_takeover, link);
        if (!leat_log_ref_equal(takeover->ref, ref)) continue;
        going += !takeover->queued;
        lasting += !takeover->replaced;
    }
    LEAT_ASSERT_CMP(going, ==, 1);
    LEAT_ASSERT(lasting > 0);
}

void leat_takeovers_check(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_list *all = &core->takeovers->all;
    unsigned older_count = 0;
    for (const struct leat_list *it = all->next; it != all; it = it->next) {
        const struct leat_takeover *takeover = LEAT_CONTAINER(it, const struct leat_takeover, link);
        LEAT_ASSERT(takeover_core(takeover) == core);
        LEAT_ASSERT(takeover->seg == NULL || takeover->state == TAKEOVER_TAIL ||
                    takeover->state == TAKEOVER_OLDER);
        LEAT_ASSERT(takeover->busy || takeover->state != TAKEOVER_ABSENT);
        LEAT_ASSERT(takeover->hole_end == 0 || !takeover_wants_tail(takeover));
        LEAT_ASSERT(!takeover->queued || !takeover->busy);
        if (takeover->queued || takeover->replaced) log_check(all, takeover->ref);
        older_count += takeover->state == TAKEOVER_OLDER;
    }
    LEAT_ASSERT_CMP(older_count, ==, core->takeovers->older_count);
}
