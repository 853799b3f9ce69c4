/* SPDX-License-Identifier: Apache-2.0 */
/* What recovery sees of this node and of its peers. */
#include "coordinator/membership/services.h"

#include "base/assert.h"
#include "coordinator/membership/state.h"

uint64_t co_now(const struct leat_coordinator *coordinator)
{
    return coordinator->env->clock->now_us(coordinator->env->clock->ctx);
}

uint64_t co_random(const struct leat_coordinator *coordinator)
{
    return coordinator->env->random->next(coordinator->env->random->ctx);
}

bool co_leads(const struct leat_coordinator *coordinator)
{
    return coordinator->votes && leat_raft_drive_leads(&coordinator->drive);
}

bool co_clustered(const struct leat_coordinator *coordinator)
{
    return coordinator->clustered;
}

bool co_ready(const struct leat_coordinator *coordinator)
{
    return coordinator->start == CO_START_READY;
}

uint64_t co_applied(const struct leat_coordinator *coordinator)
{
    return coordinator->applied;
}

uint64_t co_incarnation(const struct leat_coordinator *coordinator)
{
    return coordinator->incarnation;
}

struct leat_machine *co_tables(const struct leat_coordinator *coordinator)
{
    return (struct leat_machine *)&coordinator->machine;
}

const struct leat_coordinator_options *co_options(const struct leat_coordinator *coordinator)
{
    return &coordinator->options;
}

struct co_recovery *co_recovery_of(const struct leat_coordinator *coordinator)
{
    return coordinator->recovery;
}

void co_recovery_set(struct leat_coordinator *coordinator, struct co_recovery *recovery)
{
    coordinator->recovery = recovery;
}

struct leat_links *co_links(const struct leat_coordinator *coordinator)
{
    return coordinator->links;
}

struct leat_link *co_peer_link(const struct co_peer *peer)
{
    return peer->link;
}

uint64_t co_peer_voter_id(const struct co_peer *peer)
{
    return peer->state.voter_id;
}

void co_peers_tell(struct leat_coordinator *coordinator, enum co_kind kind, const uint8_t *bytes,
                   size_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer->link || !leat_link_is_up(peer->link)) continue;
        if (leat_link_tell(peer->link, (uint16_t)kind, bytes, (uint32_t)count) != LEAT_OK)
            LEAT_MAYBE(true); /* full or down: the sender tells again */
    }
}
