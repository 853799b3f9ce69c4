/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log is on its way here. */
#include "base/assert.h"
#include "broker/ownership/takeover.h"

bool leat_takeover_is_under_way(const struct leat_core *core, struct leat_log_ref ref)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_list *all = &core->takeovers->all;
    for (const struct leat_list *it = all->next; it != all; it = it->next)
        if (leat_log_ref_equal(LEAT_CONTAINER(it, const struct leat_takeover, link)->ref, ref))
            return true;
    return false;
}
