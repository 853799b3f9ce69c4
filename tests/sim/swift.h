/* SPDX-License-Identifier: Apache-2.0 */
/* A stream whose requests are answered in time, whatever happens to other streams. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_SWIFT_H
#define LEAT_TESTS_SIM_SWIFT_H

#include "tests/sim/scenario.h"

void sim_swift_start(struct scenario *scenario);
/** Whoever comes now damages what is stored. */
void sim_swift_end(void);
/* ---- torment.c ---- */
/** In a part of the seeds of one node and one core somebody gives that core much to do. */
void sim_torment_start(struct scenario *scenario);
/** Has the seed a torment, unless it is a calm one? */
bool sim_torment_is_chosen(const struct scenario *scenario);

#endif
