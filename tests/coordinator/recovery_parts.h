/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and structs that the parts of the model broker share. Private to recovery_*.c. */
#ifndef LEAT_TESTS_COORDINATOR_RECOVERY_PARTS_H
#define LEAT_TESTS_COORDINATOR_RECOVERY_PARTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/recovery_rig.h"

static inline struct model *model_of(struct rig_node *node)
{
    return node->rig->model;
}
static inline unsigned model_index_of(struct rig_node *node)
{
    return (unsigned)(node - node->rig->nodes);
}
static inline struct model_node *model_mine(struct rig_node *node)
{
    return &model_of(node)->nodes[model_index_of(node)];
}
static inline struct sim_rng *model_dice(struct model *model)
{
    return &model->rig->world->work;
}
static inline bool prefix_id_same(struct leat_prefix_id a, struct leat_prefix_id b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

/* recovery_check.c: logs, their bytes, and what is held against them */
_Noreturn void model_wrong(struct model *model, const char *what, unsigned log);
int model_stream_slot(struct model *model, uint32_t id);
struct leat_log_ref model_ref_of(struct model *model, unsigned log);
int model_log_of(struct model *model, struct leat_log_ref ref);
struct leat_prefix_id truth_prefix_id(const struct truth *truth, uint32_t count, bool closed);
struct truth *truth_make(struct model *model, unsigned log, uint64_t segment, uint64_t base,
                         uint32_t epoch);
/** Which bytes a tail names; NULL: nobody ever wrote such. */
const struct truth *truth_of_tail(struct model *model, unsigned log,
                                  const struct leat_tail_record *tail, uint32_t *out_count,
                                  bool *out_closed);
/** Every node applies the same, some earlier. */
void model_tables_check(struct model *model, struct rig_node *node, struct leat_stream_desc *desc);

/* recovery_owner.c: copies, and an owner that writes them */
struct copy *model_copy_find(struct model_node *node, const struct truth *truth);
struct copy *model_copy_make(struct model_node *node, struct truth *truth);
bool model_reaches(struct model *model, unsigned from, unsigned to);
/** The owner of that log there goes on with what it does. */
void model_own_step(struct model *model, unsigned at, unsigned log);

/* recovery_broker.c: what the coordinator tells and asks */
extern const struct rig_broker model_broker;
void model_answers_give(struct model *model, unsigned at);
void model_come_up(struct model *model, unsigned at);
void model_tails_step(struct model *model, unsigned at);

#endif
