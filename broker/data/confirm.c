/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the coordinators before an answer that only the owner may give: see confirm.h.
 *
 * Why: (1) a node stands still, and other nodes take its streamlets over. (2) The node wakes up, and a reader asks it
 * for an offset that the new owner has acked; the node's coordinator has not heard of the new owner yet. (3) The
 * node's copy of the log ends where the node stood still. So the node answers that there is no such offset, and the
 * reader begins elsewhere: records are read twice, or never (docs/stories.md 19). Therefore the node looks at the log
 * and then asks for a barrier: an entry that is committed after all earlier changes of owners, and so says who owned
 * the log at the time of the look. */
#include "broker/data/confirm.h"

#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/net/core.h"

static void confirm_on_caught_up(struct leat_catch_up *catch_up, leat_err rc);

void leat_confirmer_init(struct leat_core *core)
{
    leat_list_init(&core->data->confirmer->asked);
    leat_list_init(&core->data->confirmer->waiting);
    core->data->confirmer->catch_up.on_done = confirm_on_caught_up;
    core->data->confirmer->catch_up.owner = core;
}

bool leat_confirm_needed(const struct leat_core *core)
{
    return core->members.links != NULL;
}

static void confirm_start(struct leat_core *core)
{
    struct leat_confirmer *confirmer = core->data->confirmer;
    struct leat_list *link;
    if (confirmer->busy || leat_list_empty(&confirmer->waiting)) return;
    while ((link = leat_list_pop_front(&confirmer->waiting)) != NULL)
        leat_list_push_back(&confirmer->asked, link);
    confirmer->busy = true;
    leat_catch_up(core, &confirmer->catch_up);
}

static void confirm_on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    struct leat_core *core = catch_up->owner;
    struct leat_list *link;
    core->data->confirmer->busy = false;
    /* A request that is made inside on_done goes to the other list. */
    while ((link = leat_list_pop_front(&core->data->confirmer->asked)) != NULL) {
        struct leat_confirm *confirm = LEAT_CONTAINER(link, struct leat_confirm, link);
        confirm->on_done(confirm, rc);
    }
    confirm_start(core);
}

void leat_confirm_ask(struct leat_core *core, struct leat_confirm *confirm)
{
    LEAT_ASSERT_OWNER(core);
    leat_list_push_back(&core->data->confirmer->waiting, &confirm->link);
    confirm_start(core);
}
