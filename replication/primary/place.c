/* SPDX-License-Identifier: Apache-2.0 */
/* Placement (dissertation §4.3; §6.6 of it for why five): of the nodes that break the fewest
 * preferences five are drawn, and the least loaded of them wins. And which copies lie badly: better.c. */
#include <string.h>

#include "replication/primary/state.h"

/* How much two nodes share: 2 for a host, 1 for a rack. */
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
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    if (!peer || peer->state != REP_PEER_ATTACHED || peer->node.draining) return false;
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
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    const struct leat_primary *primary = set->log->primary;
    const struct leat_random *random = primary->options.env->random;
    struct rep_peer *list[LEAT_REP_NODES_MAX];
    unsigned count = 0, least = 3;
    for (unsigned i = 0; i < primary->peer_end; i++) {
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
    LEAT_ASSERT_OWNER(primary->options.owner);
    for (unsigned i = 0; i < primary->peer_end; i++)
        if (primary->peers[i] && rep_peer_is_coming(primary->peers[i])) return true;
    return false;
}

void rep_place_judge(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    set->misplaced = false;
    for (unsigned i = 0; i < set->copy_count; i++)
        if (penalty(set, set->copies[i]->peer)) set->misplaced = true;
    rep_place_note(set);
}

/* ---- copies that lie together ---- */
static unsigned shared_with_all(const struct rep_set *set, const struct rep_peer *peer,
                                const struct rep_copy *without)
{
    unsigned sum = rep_place_shared(&peer->node, &set->log->primary->options.self);
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i] != without && set->copies[i]->peer != peer)
            sum += rep_place_shared(&peer->node, &set->copies[i]->peer->node);
    return sum;
}

/* In place of any of its copies; NULL: none would be better. */
struct rep_peer *rep_place_better(const struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    const struct leat_primary *primary = set->log->primary;
    struct rep_peer *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        unsigned now = shared_with_all(set, copy->peer, copy);
        for (unsigned k = 0; now > most && k < primary->peer_end; k++) {
            struct rep_peer *peer = primary->peers[k];
            if (!rep_place_is_candidate(set, peer)) continue;
            unsigned then = shared_with_all(set, peer, copy);
            if (then >= now || now - then <= most) continue;
            most = now - then;
            best = peer;
        }
    }
    return best;
}

struct rep_copy *rep_place_worst(const struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    struct rep_copy *worst = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < set->copy_count; i++) {
        unsigned one = shared_with_all(set, set->copies[i]->peer, set->copies[i]);
        if (worst && one <= most) continue;
        worst = set->copies[i];
        most = one;
    }
    return worst;
}

/* Judged segments are not judged again until the nodes change: most clusters with badly placed segments have no
 * better place. */
void rep_place_nodes_changed(struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    primary->places++;
    primary->crowded_left = primary->crowded_count;
}

void rep_place_forget(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    if (leat_list_empty(&set->crowded)) return;
    leat_list_remove(&set->crowded);
    set->log->primary->crowded_count--;
}

void rep_place_note(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    struct leat_primary *primary = set->log->primary;
    if (!rep_set_is_closed(set) || set->dropping || !set->misplaced) {
        rep_place_forget(set);
        return;
    }
    if (leat_list_empty(&set->crowded)) {
        leat_list_push_front(&primary->crowded, &set->crowded);
        primary->crowded_count++;
    }
    if (set->places == primary->places || !rep_place_better(set)) return;
    primary->crowded_left = primary->crowded_count;
    rep_arm(primary, REP_TICK_US);
}
