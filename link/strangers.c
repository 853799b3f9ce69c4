/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers: accepted connections that have not proved the cluster's key.
 *
 * Strangers cost little (a frame of a nonce's size, two seconds) and are never many: at the limit, the oldest
 * stranger of the address with most strangers is closed. A node needs one round trip to prove the key, so it gets in
 * even while strangers take all places. */
#include <string.h>

#include "base/assert.h"
#include "link/internal.h"

static bool is_of(const struct leat_link *link, const struct leat_link_origin *origin)
{
    return memcmp(link->key, origin->key, sizeof link->key) == 0;
}

static struct leat_link_origin *origin_find(struct leat_links *links, const struct leat_link *link)
{
    for (uint32_t i = 0; i < links->origin_count; i++)
        if (is_of(link, &links->origins[i])) return &links->origins[i];
    return NULL;
}

/* The oldest of an address makes room. */
static void oldest_drop(struct leat_links *links, const struct leat_link_origin *origin)
{
    LEAT_LIST_EACH(&links->strangers, at)
    {
        struct leat_link *link = LEAT_CONTAINER(at, struct leat_link, strange);
        if (!is_of(link, origin)) continue;
        leat_link_complain(
            link,
            "too many connections come from there that do not prove the cluster's key, and the "
            "oldest is closed");
        leat_link_cut(link, LEAT_E_TOO_MANY, "too many have not proved the cluster's key");
        return;
    }
}

static void room_make(struct leat_links *links, const struct leat_link *newcomer)
{
    const struct leat_link_origin *origin = origin_find(links, newcomer);
    if (origin && origin->count >= links->strangers_max / 2) {
        oldest_drop(links, origin);
        return;
    }
    if (links->stranger_count < links->strangers_max) return;
    const struct leat_link_origin *most = &links->origins[0];
    for (uint32_t i = 1; i < links->origin_count; i++)
        if (links->origins[i].count > most->count) most = &links->origins[i];
    oldest_drop(links, most);
}

void leat_link_stranger_begin(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    room_make(links, link);
    struct leat_link_origin *origin = origin_find(links, link);
    if (!origin) {
        LEAT_ASSERT_CMP(links->origin_count, <, (uint32_t)LEAT_LINK_STRANGERS_MAX);
        origin = &links->origins[links->origin_count++];
        memset(origin, 0, sizeof *origin);
        memcpy(origin->key, link->key, sizeof origin->key);
    }
    origin->count++;
    links->stranger_count++;
    leat_list_push_back(&links->strangers, &link->strange);
}

void leat_link_stranger_end(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    if (leat_list_empty(&link->strange)) return;
    leat_list_remove(&link->strange);
    links->stranger_count--;
    struct leat_link_origin *origin = origin_find(links, link);
    LEAT_ASSERT(origin && origin->count > 0);
    if (--origin->count == 0) *origin = links->origins[--links->origin_count];
}
