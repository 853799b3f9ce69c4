/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the state machine share: machine*.c. */
#ifndef LEAT_COORDINATOR_METADATA_PRIVATE_H
#define LEAT_COORDINATOR_METADATA_PRIVATE_H

#include "coordinator/metadata/machine.h"

/* One kind of entry: reads its fields, which follow version and kind, checks them
 * against the tables, changes these. */
typedef leat_err leat_machine_apply_fn(struct leat_machine *machine, struct leat_msg_reader *reader,
                                       struct leat_machine_result *result);

/* entry.c */
leat_err leat_machine_malformed(struct leat_machine_result *result);
/** The next of the cluster-wide epochs, or 0 when they are used up. */
uint32_t leat_machine_epoch_draw(struct leat_machine *machine);
leat_err leat_machine_epochs_used_up(struct leat_machine_result *result);
void leat_machine_stream_told(struct leat_machine *machine, struct leat_stream_desc *desc);

/* machine.c */
/** A command without its wrapping. */
leat_err leat_machine_apply_plain(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                                  struct leat_machine_result *result);

/** Note a change to what this owner (an index, or LEAT_OWNER_NONE) has. */
void leat_machine_owner_changed(struct leat_machine *machine, uint16_t owner);

/* apply_stream.c */
leat_machine_apply_fn leat_machine_apply_form;
leat_machine_apply_fn leat_machine_apply_stream_create;
leat_machine_apply_fn leat_machine_apply_stream_delete;
leat_machine_apply_fn leat_machine_apply_producer_ids;
leat_machine_apply_fn leat_machine_apply_barrier;

/* apply_log.c */
leat_machine_apply_fn leat_machine_apply_opened;
leat_machine_apply_fn leat_machine_apply_version;
leat_machine_apply_fn leat_machine_apply_accept_loss;
leat_machine_apply_fn leat_machine_apply_move;
void leat_machine_refuse_log(struct leat_machine_result *result, bool stream_known,
                             struct leat_log_ref ref);

/* apply_adopt.c */
leat_machine_apply_fn leat_machine_apply_adopt;

/* apply_change.c */
leat_machine_apply_fn leat_machine_apply_stream_change;

/* apply_recover.c */
leat_machine_apply_fn leat_machine_apply_recover;

/* apply_node.c */
leat_machine_apply_fn leat_machine_apply_node_up;
leat_machine_apply_fn leat_machine_apply_node_drain;
leat_machine_apply_fn leat_machine_apply_node_state;
leat_machine_apply_fn leat_machine_apply_crash;
/** Who shall own one streamlet more, of so many logs: of the nodes that are up and not draining, and have said that
 * they have memory for them, the one with the fewest; where none has, of all of them. NULL: there is none. */
struct leat_machine_node *leat_machine_owner_choose(struct leat_machine *machine, uint32_t logs);
/** It has one streamlet more, or less, of so many logs. */
void leat_machine_owner_count(struct leat_machine_node *node, uint32_t logs, bool more);

/* apply_request.c */
leat_machine_apply_fn leat_machine_apply_request;

#endif
