/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: incarnations that were declared gone. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "link/internal.h"

static struct leat_link_fence *fence_find(const struct leat_links *links, const char *node)
{
    for (uint32_t i = 0; i < links->fence_count; i++)
        if (strcmp(links->fences[i].node, node) == 0) return &links->fences[i];
    return NULL;
}

bool leat_links_fenced(const struct leat_links *links, const struct leat_link_identity *peer)
{
    LEAT_ASSERT_OWNER(links->actor);
    const struct leat_link_fence *fence = fence_find(links, peer->node);
    return fence && peer->incarnation != 0 && peer->incarnation <= fence->incarnation;
}

leat_err leat_links_fence(struct leat_links *links, const char *node, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(links->actor);
    struct leat_link_fence *fence = fence_find(links, node);
    if (!fence) {
        if (links->fence_count == LEAT_LINK_FENCES_MAX) return LEAT_E_TOO_MANY;
        if (links->fence_count == links->fence_capacity) {
            uint32_t capacity = links->fence_capacity ? 2 * links->fence_capacity : 8;
            void *fences =
                leat_mem_realloc(LEAT_MEM_NET, links->fences, capacity, sizeof *links->fences);
            if (!fences) return LEAT_E_NO_MEMORY;
            links->fences = fences;
            links->fence_capacity = capacity;
        }
        fence = &links->fences[links->fence_count++];
        memset(fence, 0, sizeof *fence);
        snprintf(fence->node, sizeof fence->node, "%s", node);
    }
    if (incarnation > fence->incarnation) fence->incarnation = incarnation;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        struct leat_link *link = links->table[i];
        if (link && link->state == LINK_UP && leat_links_fenced(links, &link->peer))
            leat_link_cut(link, LEAT_E_STALE_EPOCH, "this incarnation was declared gone");
    }
    return LEAT_OK;
}
