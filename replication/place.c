/* Placement (dissertation §4.3; §6.6 of it for why five): of the nodes that break the fewest
 * preferences five are drawn, and the least loaded of them wins. */
#include <string.h>

#include "replication/primary.h"

/* How much a node shares with those that have a copy: 2 for a host, 1 for a rack. */
unsigned rep_place_shared(const struct leat_rep_node *a, const struct leat_rep_node *b)
{
    if (strcmp(a->host, b->host) == 0) return 2;
    return a->rack[0] && strcmp(a->rack, b->rack) == 0 ? 1 : 0;
}

bool rep_place_differs(const struct leat_rep_node *a, const struct leat_rep_node *b)
{
    return a->draining != b->draining || strcmp(a->host, b->host) != 0 ||
           strcmp(a->rack, b->rack) != 0;
}

static unsigned penalty(const struct rep_set *set, const struct rep_peer *peer)
{
    unsigned most = rep_place_shared(&peer->node, &set->log->primary->options.self);
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_peer *other = set->copies[i]->peer;
        unsigned one = other == peer ? 0 : rep_place_shared(&peer->node, &other->node);
        if (one > most) most = one;
    }
    return most;
}

bool rep_place_is_candidate(const struct rep_set *set, const struct rep_peer *peer)
{
    if (!peer || !peer->attached || peer->node.draining) return false;
    unsigned number = peer->node.number;
    if (set->refused[number / 64] >> (number % 64) & 1) return false;
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->peer == peer) return false;
    return true;
}

static uint64_t load_of(const struct rep_peer *peer)
{
    /* What the backup said last, and what was opened there since then, roughly. */
    return peer->load_bytes + (uint64_t)peer->open_count * LEAT_SEGMENT_BYTES_MIN;
}

struct rep_peer *rep_place_choose(const struct rep_set *set)
{
    const struct leat_primary *primary = set->log->primary;
    const struct leat_random *random = primary->options.env->random;
    struct rep_peer *list[LEAT_REP_NODES_MAX];
    unsigned count = 0, least = 3;
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX; i++) {
        struct rep_peer *peer = primary->peers[i];
        if (!rep_place_is_candidate(set, peer)) continue;
        unsigned one = penalty(set, peer);
        if (one > least) continue;
        if (one < least) count = 0;
        least = one;
        list[count++] = peer;
    }
    struct rep_peer *best = NULL;
    for (unsigned i = 0; i < LEAT_REP_CANDIDATES && count; i++) {
        struct rep_peer *peer = list[random->next(random->ctx) % count];
        if (!best || load_of(peer) < load_of(best)) best = peer;
    }
    return best;
}

bool rep_place_may_come(const struct leat_primary *primary)
{
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX; i++)
        if (primary->peers[i] && primary->peers[i]->up && !primary->peers[i]->attached) return true;
    return false;
}

void rep_place_judge(struct rep_set *set)
{
    set->misplaced = false;
    for (unsigned i = 0; i < set->copy_count; i++)
        if (penalty(set, set->copies[i]->peer)) set->misplaced = true;
    rep_better_note(set);
}
