/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator's actor calls: each part of recovery gets its turn, and its messages. */
#include "base/assert.h"
#include "coordinator/recovery/attempt.h"

void co_recovery_turn_end(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    co_recovery_advance(coordinator);
    co_report_tell(coordinator);
    co_collect_advance(coordinator);
}

void co_recovery_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    switch (frame->kind) {
    case CO_KIND_COLLECT:
        co_collect_take(coordinator, frame, ticket);
        break;
    case CO_KIND_PULL:
        co_pull_take(coordinator, frame, ticket);
        break;
    default:
        LEAT_ASSERT_CMP(frame->kind, ==, CO_KIND_RECOVERY);
        co_report_take(coordinator, peer, frame);
    }
}

void co_recovery_close(struct leat_coordinator *coordinator)
{
    co_collect_fini(coordinator);
    co_recovery_fini(coordinator);
}
