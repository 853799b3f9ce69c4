/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts do with a home: its sets, answers, requests that wait, and its end when it is out of order. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sets/internal.h"

const char leat_sets_gone_words[] = "the consumer set's home goes to another node, or its server "
                                    "is stopping; whether this took effect "
                                    "is unknown";

static struct leat_set **set_slot(struct leat_sets *sets, const char *name)
{
    for (uint32_t i = 0; i < sets->set_count; i++)
        if (strcmp(sets->sets[i]->name, name) == 0) return &sets->sets[i];
    return NULL;
}

struct leat_set *leat_sets_set_find(struct leat_sets *sets, const char *name)
{
    struct leat_set **slot = set_slot(sets, name);
    return slot ? *slot : NULL;
}

size_t leat_sets_table_bytes(const struct leat_sets *sets)
{
    size_t bytes = 16;
    for (uint32_t i = 0; i < sets->set_count; i++)
        bytes += sets->sets[i]->bytes;
    return bytes;
}

void leat_sets_set_remove(struct leat_sets *sets, const char *name)
{
    struct leat_set **slot = set_slot(sets, name);
    if (!slot) return;
    leat_set_destroy(slot);
    *slot = sets->sets[--sets->set_count];
}

void leat_sets_table_clear(struct leat_sets *sets)
{
    while (sets->set_count > 0)
        leat_set_destroy(&sets->sets[--sets->set_count]);
}

void leat_sets_set_add(struct leat_sets *sets, struct leat_set *set)
{
    sets->sets[sets->set_count++] = set;
    leat_set_room_enter(set, sets->options.room);
}

const char *leat_sets_lacks(const struct leat_sets *sets, uint64_t address, uint32_t more_sets,
                            size_t more_bytes, size_t more_memory)
{
    const struct leat_sets_room *room = sets->options.room;
    uint64_t own_sets = 0, own_bytes = 0;
    if (more_sets == 0 && more_bytes == 0 && more_memory == 0) return NULL;
    for (uint32_t i = 0; address != 0 && i < sets->set_count; i++) {
        if (sets->sets[i]->maker != address) continue;
        own_sets++;
        own_bytes += sets->sets[i]->bytes;
    }
    if (more_sets > 0 &&
        !leat_sets_share_has(address, own_sets, sets->set_count, LEAT_SETS_PER_HOME_MAX, more_sets))
        return "this home has as many consumer sets as it may, or of those of this address";
    if (more_bytes > 0 && !leat_sets_share_has(address, own_bytes, leat_sets_table_bytes(sets),
                                               LEAT_SETS_TABLE_BYTES_MAX, more_bytes))
        return "the table of this home is full, or what sets of this address may have of it";
    if (room && more_memory > 0 && !leat_sets_room_has(room, address, more_memory))
        return "the memory for consumer sets is full, or what sets of this address may have of it";
    return NULL;
}

bool leat_sets_answer(struct leat_sets_request *request, leat_err rc, const char *why)
{
    request->rc = rc;
    if (rc != LEAT_OK) (void)leat_error_set(&request->error, rc, "%s", why);
    return true;
}

bool leat_sets_answer_fits(struct leat_sets_request *request, size_t bytes)
{
    request->answer_bytes = bytes;
    if (bytes <= request->answer_bytes_max) return true;
    (void)leat_sets_answer(request, LEAT_E_NO_MEMORY, "the answer takes more memory than it may");
    return false;
}

static struct leat_list *waits_in(struct leat_sets *sets, enum request_state state)
{
    if (state == REQUEST_READ) return &sets->reading;
    return state == REQUEST_QUERY ? &sets->querying : &sets->waiting;
}

void leat_sets_wait_begin(struct leat_sets *sets, struct leat_sets_request *request,
                          enum request_state state)
{
    request->state = state;
    request->deadline_us = leat_sets_now_us(sets) + LEAT_SETS_ACK_WAIT_US_MAX;
    leat_list_push_back(waits_in(sets, state), &request->link);
    leat_shares_add(&sets->shares, request->address);
}

void leat_sets_wait_end(struct leat_sets *sets, struct leat_sets_request *request)
{
    leat_list_remove(&request->link);
    leat_shares_remove(&sets->shares, request->address);
    request->state = REQUEST_FREE;
}

void leat_sets_tell(struct leat_sets *sets, struct leat_sets_request *request)
{
    leat_sets_wait_end(sets, request);
    request->on_done(request);
}

void leat_sets_wait_fail(struct leat_sets *sets, struct leat_list *list, leat_err rc,
                         const char *why)
{
    LEAT_LIST_EACH(list, link)
    {
        struct leat_sets_request *request = LEAT_CONTAINER(link, struct leat_sets_request, link);
        leat_mem_free(request->assigned);
        request->assigned = NULL;
        request->assigned_count = 0;
        (void)leat_sets_answer(request, rc, why);
        leat_sets_tell(sets, request);
    }
}

void leat_sets_joins_forget(struct leat_sets *sets)
{
    for (uint32_t i = 0; i < sets->set_count; i++)
        for (uint32_t m = 0; m < sets->sets[i]->member_count; m++)
            sets->sets[i]->members[m].join = NULL;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        struct leat_group *group = sets->sets[i]->group;
        for (uint32_t m = 0; group && m < group->member_count; m++)
            group->members[m]->join = group->members[m]->sync = NULL;
    }
}

void leat_sets_is_read(struct leat_sets *sets)
{
    if (sets->unread)
        atomic_fetch_sub_explicit(&sets->options.room->unread, 1, memory_order_relaxed);
    sets->unread = false;
}

void leat_sets_break(struct leat_sets *sets, leat_err rc, const char *why)
{
    if (sets->broken) return;
    sets->broken = true;
    sets->broken_rc = rc;
    snprintf(sets->why, sizeof sets->why, "the home log of this consumer set is out of order: %s",
             why);
    leat_sets_is_read(sets);
    leat_sets_joins_forget(sets);
    leat_sets_wait_fail(sets, &sets->waiting, rc, sets->why);
    leat_sets_wait_fail(sets, &sets->reading, rc, sets->why);
}
