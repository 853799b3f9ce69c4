/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of frames on their way out, kept for the next ones. */
#include "base/mem.h"
#include "link/internal.h"

struct leat_link_slot *leat_link_slot_take(struct leat_links *links, uint32_t control_bytes)
{
    LEAT_ASSERT_OWNER(links->actor);
    uint8_t *big = NULL;
    if (control_bytes > LINK_SLOT_CONTROL_BYTES) {
        big = leat_mem_calloc(LEAT_MEM_NET, 1, (size_t)LEAT_FRAME_HEADER_BYTES + control_bytes);
        if (!big) return NULL;
    }
    struct leat_link_slot *slot = leat_free_list_take(&links->free_slots);
    if (slot) {
        links->free_slot_count--;
    } else {
        slot = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *slot);
        if (!slot) {
            leat_mem_free(big);
            return NULL;
        }
    }
    slot->big = big;
    return slot;
}

void leat_link_slot_give(struct leat_links *links, struct leat_link_slot *slot)
{
    LEAT_ASSERT_OWNER(links->actor);
    leat_mem_free(slot->big);
    slot->big = NULL;
    slot->call = NULL;
    slot->answer = NULL;
    if (links->free_slot_count == LINK_SLOTS_KEPT_MAX) {
        leat_mem_free(slot);
        return;
    }
    leat_free_list_give(&links->free_slots, slot);
    links->free_slot_count++;
}

void leat_links_slots_free(struct leat_links *links)
{
    LEAT_ASSERT_OWNER(links->actor);
    leat_free_list_fini(&links->free_slots);
}
