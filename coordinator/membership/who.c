/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups among the other coordinators, by their states and by committed entries. */
#include <string.h>

#include "base/assert.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

static bool peer_up(const struct co_peer *peer)
{
    return peer->link && leat_link_is_up(peer->link) && peer->state.known;
}

struct co_peer *co_peer_of_voter(struct leat_coordinator *coordinator, uint64_t id)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->state.voter_id == id && co_peer_votes(coordinator, peer)) return peer;
    }
    return NULL;
}

struct co_peer *co_peer_of_incarnation(struct leat_coordinator *coordinator, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer_up(peer) || peer->state.incarnation != incarnation) continue;
        const struct leat_machine_node *node =
            leat_machine_incarnation_find(&coordinator->machine, incarnation);
        if (!node || strcmp(node->info.name, peer->state.node) == 0) return peer;
    }
    return NULL;
}

struct co_peer *co_peer_of_node(struct leat_coordinator *coordinator, const char *name)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer_up(peer) && strcmp(peer->state.node, name) == 0) return peer;
    }
    return NULL;
}

struct co_peer *co_peer_of_address(struct leat_coordinator *coordinator, const char *address)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer_up(peer) && strcmp(peer->state.address, address) == 0) return peer;
    }
    return NULL;
}

struct co_peer *co_peer_leader(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_peer *best = NULL;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->state.role != LEAT_VOTER_LEADER || !co_peer_votes(coordinator, peer) ||
            (co_cluster_known(coordinator) && !co_same_cluster(coordinator, peer)))
            continue;
        if (!best || peer->state.term > best->state.term) best = peer;
    }
    return best;
}

enum leat_voter_role co_role(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (coordinator->failed != LEAT_OK) return LEAT_VOTER_FAILED;
    if (!coordinator->votes) return coordinator->forming;
    if (co_learns(coordinator)) return LEAT_VOTER_JOINING;
    switch (raft_state((struct raft *)(uintptr_t)&coordinator->drive.raft)) {
    case RAFT_LEADER:
        return LEAT_VOTER_LEADER;
    case RAFT_CANDIDATE:
        return LEAT_VOTER_CANDIDATE;
    default:
        return LEAT_VOTER_FOLLOWER;
    }
}
