/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that strike where a rare state is: each source aims at one kind of state. */
#ifndef LEAT_TESTS_SIM_AIMS_H
#define LEAT_TESTS_SIM_AIMS_H

#include "tests/sim/scenario.h"

/* ---- aims.c ---- */
/** Now and then something is struck in the middle, from now on. */
void sim_aims_start(struct scenario *scenario);

/* ---- aims_adopt.c ---- */
/** Replicas that become a log's are struck, now and then, from now on. */
void sim_aim_adopt_start(struct scenario *scenario);

/* ---- aims_first.c ---- */
/** Which machine's first starts are struck, if any. Before they begin. */
void sim_aim_first_choose(struct scenario *scenario);
/** It starts now. */
void sim_aim_first_boot(struct sim_server *server);

/* ---- aims_groups.c ---- */
/** Homes of consumer groups are struck, in some of the seeds with --hard. */
void sim_aim_groups_start(struct scenario *scenario);

/* ---- aims_identity.c ---- */
/** Which machine's `identity` is struck, if any. Before the first starts. */
void sim_aim_identity_choose(struct scenario *scenario);
/** It starts now. */
void sim_aim_identity_boot(struct sim_server *server);

/* ---- aims_grown.c ---- */
/** In some of the seeds of one server. */
void sim_aim_grown_start(struct scenario *scenario);

/* ---- aims_place.c ---- */
/** That consumer is about to go back to the place that it has kept. True: not yet. */
bool sim_aim_place_waits(struct sim_client *client);

/* ---- aims_hold.c ---- */
/** In some of the cluster seeds that delete streams. */
void sim_aim_hold_choose(struct scenario *scenario);
/** A node of a cluster starts; an orderly stop of such a node begins. */
void sim_aim_hold_boot(struct sim_server *server);
void sim_aim_hold_stop(struct sim_server *server);

/* ---- aims_loss.c ---- */
/** Before a seed begins. */
void sim_aim_loss_choose(void);
/** An operator gives up what a log of a cluster lacks: the request is on its way. */
void sim_aim_loss_asked(struct scenario *scenario);

/* ---- aims_trim.c ---- */
/** Of one server: in some of the seeds a disk fails, and the power goes, when retention trims. */
void sim_aim_trim_start(struct scenario *scenario);

/* ---- aims_move.c ---- */
/** In a few seeds all faults strike while a streamlet moves; false: this is none of them. */
bool sim_aim_move_start(struct scenario *scenario);

/* ---- aims_refused.c ---- */
/** In some of the cluster seeds that delete streams, in place of other faults; false: this is none of them. */
bool sim_aim_refused_start(struct scenario *scenario);

#endif
