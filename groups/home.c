/* SPDX-License-Identifier: Apache-2.0 */
/* A home, for all parts: groups, answers, waiting requests, and the end of a home that is out of order. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "groups/internal.h"

const char leat_groups_gone_words[] =
    "the consumer group's home goes to another node, or its server "
    "is stopping; whether this took effect "
    "is unknown";

static struct leat_group **group_slot(struct leat_groups *groups, const char *name)
{
    for (uint32_t i = 0; i < groups->group_count; i++)
        if (strcmp(groups->groups[i]->name, name) == 0) return &groups->groups[i];
    return NULL;
}

struct leat_group *leat_groups_group_find(struct leat_groups *groups, const char *name)
{
    struct leat_group **slot = group_slot(groups, name);
    return slot ? *slot : NULL;
}

size_t leat_groups_table_bytes(const struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    size_t bytes = 16;
    for (uint32_t i = 0; i < groups->group_count; i++)
        bytes += groups->groups[i]->bytes;
    return bytes;
}

void leat_groups_group_remove(struct leat_groups *groups, const char *name)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group **slot = group_slot(groups, name);
    if (!slot) return;
    leat_group_destroy(slot);
    *slot = groups->groups[--groups->group_count];
}

void leat_groups_table_clear(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    while (groups->group_count > 0)
        leat_group_destroy(&groups->groups[--groups->group_count]);
}

void leat_groups_group_add(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    groups->groups[groups->group_count++] = group;
    leat_group_room_enter(group, groups->options.room);
}

const char *leat_groups_lacks(const struct leat_groups *groups, uint64_t address,
                              uint32_t more_groups, size_t more_bytes, size_t more_memory)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    const struct leat_groups_room *room = groups->options.room;
    uint64_t own_groups = 0, own_bytes = 0;
    if (more_groups == 0 && more_bytes == 0 && more_memory == 0) return NULL;
    for (uint32_t i = 0; address != 0 && i < groups->group_count; i++) {
        if (groups->groups[i]->maker != address) continue;
        own_groups++;
        own_bytes += groups->groups[i]->bytes;
    }
    if (more_groups > 0 && !leat_groups_share_has(address, own_groups, groups->group_count,
                                                  LEAT_GROUPS_PER_HOME_MAX, more_groups))
        return "this home has as many consumer groups as it may, or of those of this address";
    if (more_bytes > 0 &&
        !leat_groups_share_has(address, own_bytes, leat_groups_table_bytes(groups),
                               LEAT_GROUPS_TABLE_BYTES_MAX, more_bytes))
        return "the table of this home is full, or what groups of this address may have of it";
    if (room && more_memory > 0 && !leat_groups_room_has(room, address, more_memory))
        return "the memory for consumer groups is full, or what groups of this address may have of "
               "it";
    return NULL;
}

bool leat_groups_answer(struct leat_groups_request *request, leat_err rc, const char *why)
{
    request->rc = rc;
    if (rc != LEAT_OK) (void)leat_error_set(&request->error, rc, "%s", why);
    return true;
}

bool leat_groups_answer_fits(struct leat_groups_request *request, size_t bytes)
{
    request->answer_bytes = bytes;
    if (bytes <= request->answer_bytes_max) return true;
    (void)leat_groups_answer(request, LEAT_E_NO_MEMORY, "the answer takes more memory than it may");
    return false;
}

static struct leat_list *waits_in(struct leat_groups *groups, enum request_state state)
{
    if (state == REQUEST_READ) return &groups->reading;
    return state == REQUEST_QUERY ? &groups->querying : &groups->waiting;
}

void leat_groups_wait_begin(struct leat_groups *groups, struct leat_groups_request *request,
                            enum request_state state)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    request->state = state;
    request->deadline_us = leat_groups_now_us(groups) + LEAT_GROUPS_ACK_WAIT_US_MAX;
    leat_list_push_back(waits_in(groups, state), &request->link);
    leat_shares_add(&groups->shares, request->address);
}

void leat_groups_wait_end(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    leat_list_remove(&request->link);
    leat_shares_remove(&groups->shares, request->address);
    request->state = REQUEST_FREE;
}

void leat_groups_tell(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    leat_groups_wait_end(groups, request);
    request->on_done(request);
}

void leat_groups_wait_fail(struct leat_groups *groups, struct leat_list *list, leat_err rc,
                           const char *why)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    LEAT_LIST_EACH(list, link)
    {
        struct leat_groups_request *request =
            LEAT_CONTAINER(link, struct leat_groups_request, link);
        leat_mem_free(request->assigned);
        request->assigned = NULL;
        request->assigned_count = 0;
        if (why == leat_groups_gone_words && LEAT_BUG(GONE_IS_CANCELLED)) rc = LEAT_E_CANCELLED;
        (void)leat_groups_answer(request, rc, why);
        leat_groups_tell(groups, request);
    }
}

void leat_groups_joins_forget(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    for (uint32_t i = 0; i < groups->group_count; i++)
        for (uint32_t m = 0; m < groups->groups[i]->member_count; m++)
            groups->groups[i]->members[m].join = NULL;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        struct leat_classic *classic = groups->groups[i]->classic;
        for (uint32_t m = 0; classic && m < classic->member_count; m++)
            classic->members[m]->join = classic->members[m]->sync = NULL;
    }
}

void leat_groups_is_read(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (groups->unread)
        atomic_fetch_sub_explicit(&groups->options.room->unread, 1, memory_order_relaxed);
    groups->unread = false;
}

void leat_groups_break(struct leat_groups *groups, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (groups->broken) return;
    groups->broken = true;
    groups->broken_rc = rc;
    snprintf(groups->why, sizeof groups->why,
             "the home log of this consumer group is out of order: %s", why);
    leat_groups_is_read(groups);
    leat_groups_joins_forget(groups);
    leat_groups_wait_fail(groups, &groups->waiting, rc, groups->why);
    leat_groups_wait_fail(groups, &groups->reading, rc, groups->why);
}
