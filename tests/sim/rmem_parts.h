/* SPDX-License-Identifier: Apache-2.0 */
/* What rmem.c and rmem_host.c share. */
#ifndef LEAT_TESTS_SIM_RMEM_PARTS_H
#define LEAT_TESTS_SIM_RMEM_PARTS_H

#include "tests/sim/rmem.h"

struct region {
    struct leat_rmem_arena port;
    struct region *next;
    struct sim_rmem_host *host;
    bool retired, lost; /* lost: with the power */
};

struct sim_rmem_host {
    struct sim_world *world;
    struct sim_rmem_host *next;
    struct sim_rng rng;
    struct region *regions;
    struct sim_actor *actor; /* of the living process */
    struct leat_rmem_host port;
    uint32_t last_number;
};

bool sim_rmem_host_lives(const struct sim_rmem_host *host);
/** The region that an address names; NULL: it is another host's, or is gone. */
struct region *sim_rmem_region(struct sim_rmem_host *host, const struct leat_rmem_address *address);

#endif
