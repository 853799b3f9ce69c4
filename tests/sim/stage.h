/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: worlds of their own (`--stage NAME`), each for one rare moment that the usual worlds seldom or never come
 * to. A stage's file is stage_NAME.c; stages.def lists them. No stage changes a seed of another world. */
#ifndef LEAT_TESTS_SIM_STAGE_H
#define LEAT_TESTS_SIM_STAGE_H

#include "tests/sim/job.h"

/* Of a stage with `deletes`: how streams are that are deleted, and when (deletes.c). */
struct sim_stage_deletes {
    void (*settings)(struct leat_stream_settings *settings); /* NULL: as in other seeds */
    /* The stream's deletion is about to be sent. true: not yet, its moment is waited for. Two more records for the
     * stream: produce(client). */
    bool (*waits)(struct sim_client *client, uint32_t stream,
                  void (*produce)(struct sim_client *client));
};

struct sim_stage {
    const char *name; /* of `--stage`, and of the world "stage NAME" in bugs.md */
    uint32_t nodes;
    bool hard, deletes,
        hasty; /* as the options of these names; with `deletes` streams are deleted, without: none is */
    bool
        beside; /* the scheduled faults, traps and aims strike, too; else nothing but the stage strikes */
    bool gentle; /* keeps no node from the others for as long as a node is waited for: server.c */
    struct sim_trap_needs needs; /* of the streams, where the stage is not `beside` */
    void (*choose)(
        struct scenario *scenario); /* after all other choices, before streams are; NULL: none */
    /* From now on clients work, and of clusters the streams are made. The stage calls sim_stage_came() whenever its
     * moment has come, and does nothing more once scenario->faults_over is set. NULL: `choose` begins it. */
    void (*start)(struct scenario *scenario);
    const struct sim_stage_deletes *thrown; /* NULL: streams are deleted as in other seeds */
};

/** The number of a stage, from 1 on; 0: no stage is called so. */
unsigned sim_stage_find(const char *name);
/** NULL: there is no stage of that number. */
const struct sim_stage *sim_stage_at(unsigned number);
/** Make the setting that of the stage, with the rule broken that it names. */
void sim_stage_set(struct sim_setting *setting, unsigned number);

/** Of a scenario with a stage; without a stage these do nothing. */
void sim_stage_choose(struct scenario *scenario);
void sim_stage_start(struct scenario *scenario);
/** The moment of the stage has come: what a run of 20 seeds of a stage must have counted. */
void sim_stage_came(struct scenario *scenario);

#endif
