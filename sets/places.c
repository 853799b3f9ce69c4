/* SPDX-License-Identifier: Apache-2.0 */
/* Places for sets: who makes way for a new one, and how a set is forgotten. */
#include <string.h>

#include "sets/internal.h"

static bool has_a_set(const struct leat_sets *sets, uint64_t address)
{
    for (uint32_t i = 0; i < sets->set_count; i++)
        if (sets->sets[i]->maker == address) return true;
    return false;
}

/* One that says nothing makes way: groups that were joined once and never committed. Those of the same maker, and only
 * for an address that has none others', too. Recorded, else a restart would find more sets than there may be. */
static void set_idle_drop(struct leat_sets *sets, uint64_t maker)
{
    if (!leat_sets_record_fits(sets, RECORD_HEAD_BYTES)) return;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_set *set = sets->sets[i];
        if (!leat_set_idle(set) || (maker != 0 && set->maker != maker)) continue;
        leat_sets_set_forget(sets, set);
        return;
    }
}

void leat_sets_set_forget(struct leat_sets *sets, const struct leat_set *set)
{
    struct leat_msg_writer writer = leat_sets_record_begin(sets, RECORD_DELETE, 1);
    leat_msg_write_string(&writer, set->name, strlen(set->name));
    leat_sets_set_remove(sets, set->name);
    leat_sets_record_add(sets, &writer);
}

bool leat_sets_set_room(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    const struct leat_set_member *again = set ? leat_set_member_find(set, request->member) : NULL;
    if (set && !again) leat_set_maker_adopt(set, request->address);
    const uint32_t more = set == NULL;
    const uint64_t maker = again ? 0 : set ? set->maker : request->address;
    size_t bytes = 4 * RECORD_HEAD_BYTES, memory = leat_set_memory_bytes_max();
    if (again) { /* only streams beyond those that it named before take room: the table counts 5 bytes for each */
        bytes = request->stream_count > again->stream_count
                    ? 5 * (size_t)(request->stream_count - again->stream_count)
                    : 0;
        memory = 0;
    }
    const char *why = leat_sets_lacks(sets, maker, more, bytes, memory);
    /* Two of others' at most: a share of one set takes two places that are free (leat_sets_share_has()). */
    for (int others = 0; why && more && others < 3; others++) {
        if (others && (sets->set_count + 1 < LEAT_SETS_PER_HOME_MAX || has_a_set(sets, maker)))
            break;
        set_idle_drop(sets, others ? 0 : maker);
        why = leat_sets_lacks(sets, maker, more, bytes, memory);
    }
    if (!why) return true;
    (void)leat_sets_answer(request, LEAT_E_TOO_MANY, why);
    return false;
}
