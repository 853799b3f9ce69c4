/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided writes in the simulated world: both ports of base/rmem.h. Private to tests/sim. */
#ifndef LEAT_TESTS_SIM_RMEM_H
#define LEAT_TESTS_SIM_RMEM_H

#include "base/rmem.h"
#include "tests/sim/sim.h"

/** The memory of a machine that others write into; the world's until its end. */
struct sim_rmem_host *sim_rmem_host_create(struct sim_world *world, const char *node);
/** The port for a new process: what an earlier one had is inherited, and revoked now. kinds: bits
 * 1 << LEAT_RMEM_SHM, 1 << LEAT_RMEM_VERBS. */
const struct leat_rmem_host *sim_rmem_host_attach(struct sim_rmem_host *host,
                                                  struct sim_actor *actor, unsigned kinds);
/** The writer port of an actor. kind: LEAT_RMEM_SHM or LEAT_RMEM_VERBS. Lives as long as the seed's
 * process. */
const struct leat_rmem *sim_rmem_create(struct sim_actor *actor, enum leat_rmem_kind kind);
/** Strike when the n-th write of that machine (or to it) from now lies there in part and the rest is
 * on its way. strike runs as the world. n 0: never. */
void sim_rmem_aim(struct sim_world *world, const char *host, bool at_target, uint64_t n,
                  void (*strike)(void *arg), void *arg);
/** The next write from one machine to the other that takes several pieces arrives without its first piece, and
 * fails. */
void sim_rmem_tear(struct sim_world *world, const char *from_host, const char *to_host);

#endif
