/* Copies that lie together though they need not: two on a host or in a rack, because that was all there
 * was when they were placed. When another node can be used, closed segments get a copy there and then
 * lose the one that lies badly, in the background; a head is rolled, so that its successor is placed
 * anew and it is itself closed. Each move breaks strictly fewer preferences, so they come to an end. */
#include <string.h>

#include "replication/primary.h"

/* ---- what would be better ---- */

static unsigned shared_with_all(const struct rep_set *set, const struct rep_peer *peer,
                                const struct rep_copy *without)
{
    unsigned sum = rep_place_shared(&peer->node, &set->log->primary->options.self);
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i] != without && set->copies[i]->peer != peer)
            sum += rep_place_shared(&peer->node, &set->copies[i]->peer->node);
    return sum;
}

static struct rep_copy *worst_copy(const struct rep_set *set)
{
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

/* In place of any of its copies; NULL: none would be better. */
static struct rep_peer *better_node(const struct rep_set *set)
{
    const struct leat_primary *primary = set->log->primary;
    struct rep_peer *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        unsigned now = shared_with_all(set, copy->peer, copy);
        for (unsigned k = 0; now > most && k < LEAT_REP_NODES_MAX; k++) {
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

/* What was judged stays judged until something changes among the nodes: most clusters that have such
 * segments have no better place for them. */
void rep_better_nodes_changed(struct leat_primary *primary)
{
    primary->places++;
    primary->crowded_left = primary->crowded_count;
}

/* ---- heads ---- */

/* Logs are cared for once a second, all together: a second's worth at once, and no more than that. */
static bool roll_take(struct leat_primary *primary)
{
    uint64_t now_us = rep_now(primary);
    if (primary->rolls_at_us < now_us) primary->rolls_at_us = now_us;
    if (primary->rolls_at_us >= now_us + REP_ROLLS_AHEAD_US) return false;
    primary->rolls_at_us += REP_ROLL_US;
    return true;
}

bool rep_better_roll(struct leat_primary_log *log, const struct leat_segment *seg)
{
    struct rep_set *set = seg->copies_pointer;
    struct leat_primary *primary = log->primary;
    if (!set || !set->misplaced || set->closed || set->dropping || log->releasing) return false;
    if (set->places == primary->places || set->rolled_places == primary->places) return false;
    bool rolled = log->rolled_places == primary->places;
    if ((rolled && log->rolls == REP_ROLLS_MAX) || !better_node(set)) {
        set->places = primary->places;
        return false;
    }
    if (!roll_take(primary)) return false; /* asked again with the next care */
    log->rolls = rolled ? log->rolls + 1 : 1;
    log->rolled_places = set->rolled_places = primary->places;
    return true;
}

/* ---- closed segments ---- */

void rep_better_forget(struct rep_set *set)
{
    if (leat_list_empty(&set->crowded)) return;
    leat_list_remove(&set->crowded);
    set->log->primary->crowded_count--;
}

void rep_better_note(struct rep_set *set)
{
    struct leat_primary *primary = set->log->primary;
    if (!set->closed || set->dropping || !set->misplaced) {
        rep_better_forget(set);
        return;
    }
    if (leat_list_empty(&set->crowded)) {
        leat_list_push_front(&primary->crowded, &set->crowded);
        primary->crowded_count++;
    }
    if (set->places == primary->places || !better_node(set)) return;
    primary->crowded_left = primary->crowded_count;
    rep_arm(primary, REP_TICK_US);
}

static bool is_still(const struct rep_set *set)
{
    if (!set->closed || set->dropping || set->close || set->evict || set->seg->rotten) return false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state != REP_COPY_CLOSED || copy->incomplete || copy->found || copy->writes ||
            rep_copy_is_busy(copy))
            return false;
    }
    return true;
}

/* SUBTLE: the copy that lies badly goes only when each of the others is whole, closed, and its backup
 * knows that it is counted on (README.md, "Who may drop"). */
void rep_better_surplus(struct rep_set *set)
{
    if (set->copy_count > rep_wanted(set->log) && is_still(set)) rep_copy_drop(worst_copy(set));
}

static void look_again(struct leat_primary *primary, uint64_t at_us)
{
    if (!primary->crowded_again_us || primary->crowded_again_us > at_us)
        primary->crowded_again_us = at_us;
}

static struct rep_peer *look(struct rep_set *set, uint64_t now_us)
{
    struct leat_primary *primary = set->log->primary;
    if (set->copy_count > rep_wanted(set->log)) {
        rep_better_surplus(set);
        look_again(primary, now_us + REP_CROWDED_AGAIN_US);
        return NULL;
    }
    if (set->places == primary->places) return NULL;
    if (now_us < set->retry_us || !is_still(set)) {
        look_again(primary, now_us + REP_CROWDED_AGAIN_US);
        return NULL;
    }
    bool has_room = set->copy_count < LEAT_COPIES_MAX - 1;
    struct rep_peer *peer = has_room ? better_node(set) : NULL;
    if (peer) return peer;
    bool refused = false;
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX / 64; i++)
        refused |= set->refused[i] != 0;
    if (refused) {
        memset(set->refused, 0, sizeof set->refused);
        set->retry_us = now_us + REP_CROWDED_AGAIN_US;
        look_again(primary, set->retry_us);
    } else {
        set->places = primary->places;
    }
    return NULL;
}

struct rep_copy *rep_better_begin(struct leat_primary *primary, uint64_t now_us)
{
    if (primary->crowded_again_us && now_us >= primary->crowded_again_us) {
        primary->crowded_again_us = 0;
        primary->crowded_left = primary->crowded_count;
    }
    if (primary->crowded_left > primary->crowded_count)
        primary->crowded_left = primary->crowded_count;
    for (unsigned i = 0; i < REP_CROWDED_LOOKS && primary->crowded_left; i++) {
        struct rep_set *set = LEAT_CONTAINER(primary->crowded.next, struct rep_set, crowded);
        primary->crowded_left--;
        leat_list_remove(&set->crowded);
        leat_list_push_back(&primary->crowded, &set->crowded);
        struct rep_peer *peer = look(set, now_us);
        if (!peer) continue;
        look_again(primary, now_us + REP_CROWDED_AGAIN_US); /* should it come to nothing */
        struct rep_copy *copy = rep_copy_new(set, peer);
        return copy && rep_copy_open(copy, true) ? copy : NULL;
    }
    return NULL;
}

uint64_t rep_better_next_us(const struct leat_primary *primary, uint64_t now_us)
{
    if (primary->crowded_left) return REP_TICK_US;
    if (!primary->crowded_again_us) return UINT64_MAX;
    return primary->crowded_again_us > now_us ? primary->crowded_again_us - now_us : REP_TICK_US;
}
