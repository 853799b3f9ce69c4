/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that do not reach each other, or slowly. Private to the simulated network. */
#ifndef LEAT_TESTS_SIM_NET_CUTS_H
#define LEAT_TESTS_SIM_NET_CUTS_H

#include "tests/sim/sim.h"

struct sim_line; /* net_lines.c */

struct sim_cut {
    struct sim_cut *next;
    char from[24], to[24];
    uint64_t until_us, delay_us;
    struct sim_line *line; /* NULL: it was never slow */
};

/** Of two processes; NULL: they reach each other at once. Asked for every chunk. */
const struct sim_cut *sim_cut_between(const struct sim_process *from, const struct sim_process *to);
/** 0: not cut now. cut: may be NULL. */
uint64_t sim_cut_until_us(const struct sim_world *world, const struct sim_cut *cut);

/* ---- net_lines.c ---- */
/** bytes_per_s: until then; 0: as fast as other lines from now on. */
void sim_line_rate(struct sim_world *world, struct sim_cut *cut, uint64_t bytes_per_s,
                   uint64_t until_us);
/** cut: may be NULL. */
bool sim_line_is_slow(const struct sim_cut *cut);
/** A one-sided write of so many bytes begins now: when a slow line has carried it; 0: the line is fast. */
uint64_t sim_line_write_us(struct sim_world *world, const struct sim_cut *cut, uint64_t bytes);
void sim_line_destroy(struct sim_line *line);

#endif
