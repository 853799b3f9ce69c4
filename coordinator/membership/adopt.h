/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: decide for all logs, and put the decisions into entries. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_ADOPT_H
#define LEAT_COORDINATOR_MEMBERSHIP_ADOPT_H

#include <raft.h>

#include "coordinator/membership/coordinate.h"
#include "coordinator/metadata/decide.h"
#include "coordinator/metadata/machine.h"

/**
 * Fill request->decisions: one per log that this incarnation may adopt, ascending. request->incarnation 0 means the
 * newest one. Errors: LEAT_E_WRONG_CLUSTER when the marks name a stream or an epoch that this coordinator has never
 * given out (the coordinator has lost entries, or is another cluster's: its tables must not cause any drop),
 * LEAT_E_INVALID, LEAT_E_NO_MEMORY. leaves: streamlets of several copies are left to recovery, except streamlets
 * whose tails are committed and here.
 */
leat_err leat_adopt_decide(struct leat_machine *machine, struct leat_coordinate *request,
                           bool leaves, struct leat_error *error) LEAT_NODISCARD;
/**
 * Entries of the attempt, below 1 MiB each; only all together take effect.
 * out_bytes: what the commands point into; given, leat_mem_free(), after they are proposed.
 */
leat_err leat_adopt_encode(struct leat_machine *machine, const struct leat_coordinate *request,
                           uint64_t attempt, struct raft_buffer *commands, unsigned commands_max,
                           unsigned *out_count, uint8_t **out_bytes,
                           struct leat_error *error) LEAT_NODISCARD;

#endif
