/* SPDX-License-Identifier: Apache-2.0 */
/* How the coordinator stands, asked for by others. */
#include "base/assert.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/actor.h"
#include "coordinator/recovery/recovery.h"

void leat_coordinator_status(const struct leat_coordinator *coordinator,
                             struct leat_coordinator_status *out_status)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_coordinator *it = (struct leat_coordinator *)(uintptr_t)coordinator;
    co_status_fill(it, out_status);
    co_report_fill(it, &out_status->recovery);
}

static void ask_answered(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_coordinator_ask *ask = LEAT_CONTAINER(mail, struct leat_coordinator_ask, mail);
    ask->on_done(ask);
}

static void ask_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_coordinator *coordinator = actor;
    struct leat_coordinator_ask *ask = LEAT_CONTAINER(mail, struct leat_coordinator_ask, mail);
    leat_coordinator_status(coordinator, ask->status);
    ask->mail.deliver = ask_answered;
    const struct leat_post *post = co_env(coordinator)->post;
    post->send(post->ctx, ask->from, &ask->mail);
}

void leat_coordinator_status_ask(const struct leat_post *post, struct leat_coordinator_ask *ask)
{
    ask->from = post->self;
    ask->mail.deliver = ask_deliver;
    post->send(post->ctx, LEAT_ACTOR_COORDINATOR, &ask->mail);
}
