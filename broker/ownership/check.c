/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions about logs that come, between two turns of core 0. The log's core may have a takeover meanwhile, and
 * writes `rc`, `whole`, `unsure` and `first_retained`: these fields are not checked. */
#include "base/assert.h"
#include "broker/ownership/takeover.h"

/* From `it` to `end` there is another takeover of the same log. */
static bool is_in(const struct leat_list *it, const struct leat_list *end, struct leat_log_ref ref)
{
    for (; it != end; it = it->next)
        if (leat_log_ref_equal(LEAT_CONTAINER(it, const struct leat_takeover, link)->ref, ref))
            return true;
    return false;
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
        LEAT_ASSERT(takeover->hole_behind == 0 || !takeover_wants_tail(takeover));
        LEAT_ASSERT(!takeover->behind || !takeover->busy);
        LEAT_ASSERT(!takeover->behind || is_in(all->next, it, takeover->ref));
        LEAT_ASSERT(!takeover->over || is_in(it->next, all, takeover->ref));
        older_count += takeover->state == TAKEOVER_OLDER;
    }
    LEAT_ASSERT_CMP(older_count, ==, core->takeovers->older_count);
}
