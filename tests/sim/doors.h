/* SPDX-License-Identifier: Apache-2.0 */
/* What an isolated node says to clients of Kafka: see doors.c. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_DOORS_H
#define LEAT_TESTS_SIM_DOORS_H

#include "tests/sim/scenario.h"

/** From now on a client asks the node that sim_doors_owner() names. */
void sim_doors_start(struct scenario *scenario);
/** The node that the leader does not reach; NULL: none, and nothing is asked. */
void sim_doors_owner(const struct sim_server *owner);

#endif
