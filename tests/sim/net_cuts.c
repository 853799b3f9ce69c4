/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/net_cuts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static struct sim_cut *cut_find(const struct sim_world *world, const char *from, const char *to)
{
    struct sim_cut *cut = world->cuts;
    while (cut && (strcmp(cut->from, from) != 0 || strcmp(cut->to, to) != 0))
        cut = cut->next;
    return cut;
}

/* Of two processes: asked for every chunk. Their names are filled up with zeros, as those of cuts. */
const struct sim_cut *sim_cut_between(const struct sim_process *from, const struct sim_process *to)
{
    const struct sim_cut *cut = from->world->cuts;
    _Static_assert(sizeof cut->from == sizeof from->host, "compared whole");
    if (!from->host[0] || !to->host[0]) return NULL; /* a client's: cuts are between machines */
    while (cut && (memcmp(cut->from, from->host, sizeof cut->from) != 0 ||
                   memcmp(cut->to, to->host, sizeof cut->to) != 0))
        cut = cut->next;
    return cut;
}

static struct sim_cut *cut_of(struct sim_world *world, const char *from, const char *to)
{
    struct sim_cut *cut = cut_find(world, from, to);
    if (cut) return cut;
    cut = calloc(1, sizeof *cut);
    LEAT_ASSERT(cut != NULL);
    snprintf(cut->from, sizeof cut->from, "%s", from);
    snprintf(cut->to, sizeof cut->to, "%s", to);
    cut->next = world->cuts;
    world->cuts = cut;
    return cut;
}

void sim_net_cut(struct sim_world *world, const char *from_host, const char *to_host,
                 uint64_t until_us)
{
    cut_of(world, from_host, to_host)->until_us = until_us;
}

void sim_net_delay(struct sim_world *world, const char *from_host, const char *to_host,
                   uint64_t delay_us)
{
    cut_of(world, from_host, to_host)->delay_us = delay_us;
}

void sim_net_rate(struct sim_world *world, const char *from_host, const char *to_host,
                  uint64_t bytes_per_s, uint64_t until_us)
{
    sim_line_rate(world, cut_of(world, from_host, to_host), bytes_per_s, until_us);
}

bool sim_net_is_slow(const struct sim_process *from, const struct sim_process *to)
{
    return sim_line_is_slow(sim_cut_between(from, to));
}

uint64_t sim_cut_until_us(const struct sim_world *world, const struct sim_cut *cut)
{
    return cut && cut->until_us > world->now_us ? cut->until_us : 0;
}

uint64_t sim_net_cut_until(const struct sim_process *from, const struct sim_process *to)
{
    return sim_cut_until_us(from->world, sim_cut_between(from, to));
}
