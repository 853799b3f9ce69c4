/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that do not reach each other, or slowly. Private to the simulated network. */
#ifndef LEAT_TESTS_SIM_NET_CUTS_H
#define LEAT_TESTS_SIM_NET_CUTS_H

#include "tests/sim/sim.h"

struct sim_cut {
    struct sim_cut *next;
    char from[24], to[24];
    uint64_t until_us, delay_us;
};

/** Of two processes; NULL: they reach each other at once. Asked for every chunk. */
const struct sim_cut *sim_cut_between(const struct sim_process *from, const struct sim_process *to);
/** 0: not cut now. cut: may be NULL. */
uint64_t sim_cut_until_us(const struct sim_world *world, const struct sim_cut *cut);

#endif
