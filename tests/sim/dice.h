/* SPDX-License-Identifier: Apache-2.0 */
/* A run that goes on with other dice from a turn on: another future of the same past. A turn is one event of the
 * world (event_count), so a seed and a list of these replay exactly. */
#ifndef LEAT_TESTS_SIM_DICE_H
#define LEAT_TESTS_SIM_DICE_H

#include <stdint.h>

enum { SIM_DICE_MAX = 16 };

struct sim_dice {
    uint64_t turn, value;
};

struct sim_dice_plan {
    struct sim_dice at[SIM_DICE_MAX]; /* turns ascend */
    unsigned count;
    uint64_t stop_turn;        /* behind all of them; 0: none */
    uint64_t (*on_stop)(void); /* asked at that turn, once: what the dice are from then on */
};

struct scenario;
/** Of the world that was just made. Dice that are odd bring a fault with them, right after they are thrown
 * (sim_nodes_strike_soon()). */
void sim_dice_start(struct scenario *scenario, const struct sim_dice_plan *plan);
/** Which turn is it? 0: none has dice. */
uint64_t sim_dice_turn(void);

#endif
