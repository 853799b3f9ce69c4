/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a link, for all parts: its place in the table, entering and leaving, the cut, and the time when the
 * actor's timer must look at the link. */
#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "link/internal.h"

static bool table_grow(struct leat_links *links)
{
    uint32_t capacity = links->table_capacity ? 2 * links->table_capacity : 16;
    void *table = leat_mem_realloc(LEAT_MEM_NET, links->table, capacity, sizeof *links->table);
    if (!table) return false;
    links->table = table;
    for (uint32_t i = links->table_capacity; i < capacity; i++)
        links->table[i] = NULL;
    links->table_capacity = capacity;
    return true;
}

struct leat_link *leat_link_make(struct leat_links *links)
{
    LEAT_ASSERT_OWNER(links->actor);
    if (links->closing || links->count >= LEAT_LINKS_MAX + LINK_ENDING_MAX) return NULL;
    uint32_t slot = 0;
    while (slot < links->table_capacity && links->table[slot])
        slot++;
    if (slot == links->table_capacity && !table_grow(links)) return NULL;
    struct leat_link *link = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *link);
    if (!link) return NULL;
    link->links = links;
    link->slot = slot;
    link->connection = ++links->next_connection;
    link->since_us = link->heard_us = leat_links_now(links);
    leat_list_init(&link->calls);
    leat_list_init(&link->strange);
    links->table[slot] = link;
    links->count++;
    return link;
}

void leat_links_free_if_empty(struct leat_links *links)
{
    LEAT_ASSERT_OWNER(links->actor);
    if (!links->closing || links->count > 0) return;
    leat_links_slots_free(links);
    leat_mem_free(links->fences);
    leat_mem_free(links->table);
    leat_mem_free(links);
}

void leat_link_free(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    LEAT_ASSERT(!link->net && link->slots_out == 0 && leat_list_empty(&link->calls));
    links->table[link->slot] = NULL;
    links->count--;
    leat_mem_free(link->expect_node);
    leat_mem_free(link);
    leat_links_free_if_empty(links);
}

void leat_link_enter(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    link->entered++;
}

bool leat_link_leave(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    LEAT_ASSERT(link->entered > 0);
    link->entered--;
    if (!link->gone) return true;
    if (link->entered == 0 && !link->net) leat_link_free(link);
    return false;
}

void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    if (!link->net || link->state == LINK_CLOSING) return;
    leat_link_stranger_end(link);
    (void)leat_error_set(&link->why, rc, "%s", why); /* rc is told by on_down */
    leat_link_state_enter(link, LINK_CLOSING);
    link->links->env->net->close(link->net);
}

void leat_link_complain(struct leat_link *link, const char *text)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    leat_node_log_summed(&links->refused, leat_links_now(links), LEAT_NODE_LOG_WARN,
                         "link: %s %s: %s", link->address,
                         link->accepted ? "was refused" : "does not let this node in", text);
}

void leat_links_due(struct leat_links *links, uint64_t at_us)
{
    LEAT_ASSERT_OWNER(links->actor);
    if (at_us >= links->next_us || links->closing) return;
    links->next_us = at_us;
    if (links->sweeping) return; /* armed at its end */
    uint64_t now_us = leat_links_now(links);
    leat_timer_start(links->timers, &links->timer, at_us > now_us ? at_us - now_us : 0);
}

/* A pause that doubles, a random half of it taken off: nodes that lost the same peer do not connect again all at
 * once. */
void leat_link_retry_later(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    uint32_t doublings =
        link->attempts < LINK_RETRY_DOUBLINGS_MAX ? link->attempts : LINK_RETRY_DOUBLINGS_MAX;
    uint64_t pause_us = links->retry_us_min << doublings;
    if (pause_us > links->retry_us_max) pause_us = links->retry_us_max;
    pause_us -= links->env->random->next(links->env->random->ctx) % (pause_us / 2 + 1);
    link->attempts++;
    leat_link_state_enter(link, LINK_WAITING);
    link->try_at_us = leat_links_now(links) + pause_us;
    leat_links_due(links, link->try_at_us);
}
