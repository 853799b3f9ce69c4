/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/sharer.h"

#include "base/assert.h"
#include "base/mem.h"
#include "broker/net/core.h"

static struct leat_sharer **sharer_at(struct leat_core *core, uint32_t address)
{
    struct leat_sharer **at = &core->sharers[address % LEAT_SHARER_BUCKETS];
    while (*at != NULL && (*at)->address != address)
        at = &(*at)->next;
    return at;
}

static struct leat_sharer *sharer_create(struct leat_core *core, uint32_t address)
{
    struct leat_sharer *sharer = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *sharer);
    if (sharer == NULL) return NULL;
    sharer->address = address;
    atomic_fetch_add_explicit(&core->counters.addresses, 1, memory_order_relaxed);
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++)
        leat_queue_init(&sharer->output.queues[line]);
    for (unsigned line = 0; line < 2; line++) {
        for (unsigned i = 0; i < LEAT_SHARER_STOCKS_MAX; i++)
            leat_queue_init(&sharer->stocks[i].queues[line]);
    }
    return sharer;
}

bool leat_sharer_join(struct leat_core *core, struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_sharer **at = sharer_at(core, peer->address);
    if (*at == NULL) *at = sharer_create(core, peer->address);
    if (*at == NULL) return false;
    peer->sharer = leat_sharer_keep(*at);
    return true;
}

void leat_sharer_leave(struct leat_core *core, struct leat_sharer *sharer)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(sharer->members, >, 0);
    if (--sharer->members > 0) return;
    LEAT_ASSERT_CMP(sharer->output.held + sharer->output.kept + sharer->output.last + sharer->calls,
                    ==, 0);
    for (unsigned i = 0; i < LEAT_SHARER_STOCKS_MAX; i++)
        LEAT_ASSERT_CMP(sharer->stocks[i].taken, ==, 0);
    *sharer_at(core, sharer->address) = sharer->next;
    leat_mem_free(sharer->unpack);
    leat_mem_free(sharer->pace);
    leat_mem_free(sharer);
    atomic_fetch_sub_explicit(&core->counters.addresses, 1, memory_order_relaxed);
}
