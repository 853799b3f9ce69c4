/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/turns.h"

#include "base/mem.h"

void leat_turn_init(struct leat_turn *turn)
{
    leat_list_init(&turn->link);
    turn->used = 0;
}

void leat_turns_init(struct leat_turns *turns)
{
    turns->now = LEAT_TURNS_CREDIT;
    turns->count = 0;
    for (unsigned i = 0; i < LEAT_TURNS_ROUNDS; i++)
        leat_list_init(&turns->rounds[i]);
}

static uint64_t round_of(uint64_t used)
{
    return used / LEAT_TURNS_ROUND_COST;
}

/* Neither credit nor debt without end. */
static void used_limit(const struct leat_turns *turns, struct leat_turn *turn)
{
    uint64_t least = turns->now - LEAT_TURNS_CREDIT;
    uint64_t most = least + (LEAT_TURNS_ROUNDS - 2) * (uint64_t)LEAT_TURNS_ROUND_COST;
    if (turn->used < least) turn->used = least;
    if (turn->used > most) turn->used = most;
}

void leat_turns_wait(struct leat_turns *turns, struct leat_turn *turn)
{
    if (!leat_list_empty(&turn->link)) return;
    used_limit(turns, turn);
    leat_list_push_back(&turns->rounds[round_of(turn->used) % LEAT_TURNS_ROUNDS], &turn->link);
    turns->count++;
}

void leat_turns_leave(struct leat_turns *turns, struct leat_turn *turn)
{
    if (leat_list_empty(&turn->link)) return;
    leat_list_remove(&turn->link);
    turns->count--;
}

struct leat_turn *leat_turns_next(struct leat_turns *turns)
{
    uint64_t least = round_of(turns->now - LEAT_TURNS_CREDIT);
    for (uint64_t round = least; round < least + LEAT_TURNS_ROUNDS; round++) {
        const struct leat_list *list = &turns->rounds[round % LEAT_TURNS_ROUNDS];
        if (leat_list_empty(list)) continue;
        /* no member that waits has used less */
        if (round > round_of(turns->now)) turns->now = round * LEAT_TURNS_ROUND_COST;
        return LEAT_CONTAINER(list->next, struct leat_turn, link);
    }
    return NULL;
}

void leat_turns_charge(struct leat_turns *turns, struct leat_turn *turn, uint64_t cost)
{
    bool waits = !leat_list_empty(&turn->link);
    leat_turns_leave(turns, turn);
    used_limit(turns, turn);
    turn->used += cost;
    /* no member waits, so none has used less */
    if (turns->count == 0 && turn->used > turns->now) turns->now = turn->used;
    if (waits) leat_turns_wait(turns, turn);
}

/* ---- addresses, and of each its connections ---- */

struct leat_address_turns *leat_address_turns_of(struct leat_address_turns **slot)
{
    if (*slot != NULL) return *slot;
    struct leat_address_turns *own = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *own);
    if (own == NULL) return NULL;
    leat_turn_init(&own->turn);
    leat_turns_init(&own->members);
    return *slot = own;
}

void leat_address_turns_wait(struct leat_turns *addresses, struct leat_address_turns *own,
                             struct leat_turn *member)
{
    leat_turns_wait(&own->members, member);
    leat_turns_wait(addresses, &own->turn);
}

void leat_address_turns_leave(struct leat_turns *addresses, struct leat_address_turns *own,
                              struct leat_turn *member)
{
    leat_turns_leave(&own->members, member);
    if (own->members.count == 0) leat_turns_leave(addresses, &own->turn);
}

struct leat_turn *leat_address_turns_next(struct leat_turns *addresses)
{
    struct leat_turn *turn = leat_turns_next(addresses);
    if (turn == NULL) return NULL;
    return leat_turns_next(&LEAT_CONTAINER(turn, struct leat_address_turns, turn)->members);
}

void leat_address_turns_charge(struct leat_turns *addresses, struct leat_address_turns *own,
                               struct leat_turn *member, uint64_t cost)
{
    leat_turns_charge(&own->members, member, cost);
    leat_turns_charge(addresses, &own->turn, cost);
}
