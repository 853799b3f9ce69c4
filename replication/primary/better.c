/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that share a host or rack without need: there was no better node when they were placed. When another node
 * can be used, closed segments get a copy there and then lose the badly placed copy, in the background; a head is
 * rolled, so that the next head is placed anew and the old head is closed. Each move violates strictly fewer
 * preferences, so the moves come to an end. */
#include <string.h>

#include "replication/primary/state.h"

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
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    struct rep_set *set = seg->copies_pointer;
    struct leat_primary *primary = log->primary;
    if (!set || !set->misplaced || rep_set_is_closed(set) || set->dropping || log->releasing)
        return false;
    if (set->places == primary->places || set->rolled_places == primary->places) return false;
    bool rolled = log->rolled_places == primary->places;
    if ((rolled && log->rolls == REP_ROLLS_MAX) || !rep_place_better(set)) {
        set->places = primary->places;
        return false;
    }
    if (!roll_take(primary)) return false; /* asked again with the next care */
    log->rolls = rolled ? log->rolls + 1 : 1;
    log->rolled_places = set->rolled_places = primary->places;
    return true;
}

/* ---- closed segments ---- */

/* What is set already is earlier: each caller asks for the same time from now on. */
static void look_again(struct leat_primary *primary, uint64_t now_us)
{
    if (!primary->crowded_again_us) primary->crowded_again_us = now_us + REP_CROWDED_AGAIN_US;
}

static struct rep_peer *look(struct rep_set *set, uint64_t now_us)
{
    struct leat_primary *primary = set->log->primary;
    if (set->copy_count > rep_wanted(set->log)) {
        rep_set_surplus(set);
        look_again(primary, now_us);
        return NULL;
    }
    if (set->places == primary->places) return NULL;
    if (now_us < set->retry_us || !rep_set_is_still(set)) {
        look_again(primary, now_us);
        return NULL;
    }
    bool has_room = set->copy_count < LEAT_COPIES_MAX - 1;
    struct rep_peer *peer = has_room ? rep_place_better(set) : NULL;
    if (peer) return peer;
    bool refused = false;
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX / 64; i++)
        refused |= set->refused[i] != 0;
    if (refused) {
        memset(set->refused, 0, sizeof set->refused);
        set->retry_us = now_us + REP_CROWDED_AGAIN_US;
        look_again(primary, now_us);
    } else {
        set->places = primary->places;
    }
    return NULL;
}

struct rep_copy *rep_better_begin(struct leat_primary *primary, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
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
        look_again(primary, now_us); /* in case this attempt fails */
        struct rep_copy *copy = rep_copy_new(set, peer);
        return copy && rep_copy_open(copy, true) ? copy : NULL;
    }
    return NULL;
}

uint64_t rep_better_next_us(const struct leat_primary *primary, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    if (primary->crowded_left) return REP_TICK_US;
    if (!primary->crowded_again_us) return UINT64_MAX;
    return primary->crowded_again_us > now_us ? primary->crowded_again_us - now_us : REP_TICK_US;
}
