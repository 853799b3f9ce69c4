/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of an actor's links between two turns, whatever the peers sent. */
#include "base/assert.h"
#include "link/internal.h"

static void calls_check(const struct leat_link *link)
{
    uint32_t count = 0;
    LEAT_LIST_EACH(&link->calls, it)
    {
        const struct leat_link_call *call = LEAT_CONTAINER(it, const struct leat_link_call, list);
        LEAT_ASSERT(call->link == link);
        LEAT_ASSERT(!call->sent || (!call->one_way && !call->early));
        /* Else the call would wait beyond its time. */
        LEAT_ASSERT(link->state != LINK_UP || link->links->next_us <= call->deadline_us);
        count++;
    }
    LEAT_ASSERT_CMP(count, ==, link->call_count);
    LEAT_ASSERT_CMP(count, <=, (uint32_t)LEAT_LINK_CALLS_MAX);
    LEAT_ASSERT(count == 0 || link->state == LINK_UP || link->state == LINK_CLOSING);
}

static void queue_check(const struct leat_link *link)
{
    LEAT_ASSERT((link->slots_out == 0) == (link->queued_bytes == 0));
    LEAT_ASSERT(link->slots_out == 0 || link->net != NULL);
    LEAT_ASSERT_CMP(link->request_count, <=, (uint32_t)LEAT_LINK_REQUESTS_MAX);
}

/* When the actor's timer has to look at the link, at the latest. */
static uint64_t due_us(const struct leat_link *link)
{
    const struct leat_links *links = link->links;
    uint64_t asked_us = link->pinged_us > link->heard_us ? link->pinged_us : link->heard_us;
    switch (link->state) {
    case LINK_WAITING:
        return link->try_at_us;
    case LINK_CONNECTING:
    case LINK_NONCE:
    case LINK_HELLO:
        return link->since_us + links->silence_us;
    case LINK_UP:
        return asked_us + links->ping_us;
    case LINK_CLOSING: /* a link that was cut is over with its connection */
        return UINT64_MAX;
    }
    return UINT64_MAX;
}

static void link_check(const struct leat_links *links, const struct leat_link *link, uint32_t slot)
{
    bool proving = link->state == LINK_HELLO || link->state == LINK_UP;
    LEAT_ASSERT(link->links == links && link->slot == slot);
    LEAT_ASSERT_CMP(link->entered, ==, 0);
    LEAT_ASSERT((link->net != NULL) == (link->state != LINK_WAITING));
    LEAT_ASSERT(!link->accepted || link->state >= LINK_NONCE);
    LEAT_ASSERT(!link->gone || link->state == LINK_CLOSING);
    LEAT_ASSERT(link->was_up || link->state != LINK_UP);
    LEAT_ASSERT(link->handler != NULL || link->state != LINK_UP);
    /* Without both keys a frame could be neither proved nor checked. */
    LEAT_ASSERT(!proving || (link->mac_in != NULL && link->mac_out != NULL));
    LEAT_ASSERT(link->state >= LINK_HELLO || (link->mac_in == NULL && link->mac_out == NULL));
    LEAT_ASSERT_CMP(links->next_us, <=, due_us(link));
    for (uint32_t i = 0; link->state == LINK_UP && i < links->table_capacity; i++) {
        const struct leat_link *other = links->table[i];
        /* Else what the peer sent before would be carried out after what it sends now. */
        LEAT_ASSERT(other == NULL || other->state != LINK_UP || !leat_link_is_earlier(other, link));
    }
    calls_check(link);
    queue_check(link);
}

static void strangers_check(const struct leat_links *links)
{
    uint32_t count = 0, counted = 0;
    LEAT_LIST_EACH(&links->strangers, it)
    {
        const struct leat_link *link = LEAT_CONTAINER(it, const struct leat_link, strange);
        LEAT_ASSERT(link->accepted);
        LEAT_ASSERT(link->state == LINK_NONCE || link->state == LINK_HELLO);
        count++;
    }
    for (uint32_t i = 0; i < links->origin_count; i++) {
        LEAT_ASSERT_CMP(links->origins[i].count, >, 0);
        LEAT_ASSERT_CMP(links->origins[i].count, <=, links->strangers_max / 2);
        counted += links->origins[i].count;
    }
    LEAT_ASSERT_CMP(count, ==, links->stranger_count);
    LEAT_ASSERT_CMP(counted, ==, links->stranger_count);
    LEAT_ASSERT_CMP(count, <=, links->strangers_max);
}

void leat_links_check(const struct leat_links *links)
{
    LEAT_ASSERT_OWNER(links->actor);
    uint32_t count = 0;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        if (links->table[i] == NULL) continue;
        link_check(links, links->table[i], i);
        count++;
    }
    LEAT_ASSERT_CMP(count, ==, links->count);
    LEAT_ASSERT(!links->sweeping);
    /* Else no link would be looked at any more. */
    LEAT_ASSERT(leat_timer_armed(&links->timer) == (links->next_us != UINT64_MAX));
    LEAT_ASSERT_CMP(links->free_slot_count, <=, (uint32_t)LINK_SLOTS_KEPT_MAX);
    LEAT_ASSERT_CMP(links->fence_count, <=, links->fence_capacity);
    strangers_check(links);
}
