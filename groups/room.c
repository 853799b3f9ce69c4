/* SPDX-License-Identifier: Apache-2.0 */
/* Whose groups take how much of a node's memory: see room.h. */
#include "groups/room.h"

void leat_groups_room_init(struct leat_groups_room *room, const struct leat_random *random,
                           uint64_t bytes_max)
{
    room->bytes_max = bytes_max;
    room->number = random->next(random->ctx) | 1;
}

static uint32_t bucket_of(const struct leat_groups_room *room, uint64_t address)
{
    return leat_share_bucket(room->number, address, LEAT_GROUPS_ROOM_BUCKETS);
}

/* SUBTLE: homes of other cores may take the same bytes at this moment. Each home then exceeds its limit by a commit,
 * which is less than malloc's overhead between blocks. */
bool leat_groups_room_has(const struct leat_groups_room *room, uint64_t address, uint64_t more)
{
    uint64_t all = atomic_load_explicit(&room->bytes, memory_order_relaxed), own = 0;
    if (address != 0)
        own = atomic_load_explicit(&room->shares[bucket_of(room, address)], memory_order_relaxed);
    return leat_groups_share_has(address, own, all, room->bytes_max, more);
}

void leat_groups_room_count(struct leat_groups_room *room, uint64_t address, uint64_t before,
                            uint64_t after)
{
    /* Unsigned wrap-around makes the subtraction of a group that shrinks. */
    atomic_fetch_add_explicit(&room->bytes, after - before, memory_order_relaxed);
    if (address != 0)
        atomic_fetch_add_explicit(&room->shares[bucket_of(room, address)], after - before,
                                  memory_order_relaxed);
}

uint64_t leat_groups_room_over(const struct leat_groups_room *room)
{
    uint64_t bytes = atomic_load_explicit(&room->bytes, memory_order_relaxed);
    return bytes > room->bytes_max ? bytes - room->bytes_max : 0;
}
