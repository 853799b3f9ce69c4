/* SPDX-License-Identifier: Apache-2.0 */
/* Other dice from a turn on: see dice.h. */
#include "tests/sim/dice.h"

#include "tests/sim/sim.h"

static struct {
    struct sim_dice_plan plan;
    unsigned next;
} dice; /* of the one world of a process */

static void turn_next(struct sim_world *world)
{
    const struct sim_dice_plan *plan = &dice.plan;
    world->dice_turn = dice.next < plan->count ? plan->at[dice.next].turn : plan->stop_turn;
}

static void on_turn(struct sim_world *world)
{
    struct sim_dice_plan *plan = &dice.plan;
    if (dice.next < plan->count) {
        sim_dice_throw(plan->at[dice.next++].value);
    } else {
        plan->stop_turn = 0;
        sim_dice_throw(plan->on_stop());
    }
    turn_next(world);
}

void sim_dice_start(struct sim_world *world, const struct sim_dice_plan *plan)
{
    dice.plan = *plan;
    dice.next = 0;
    world->on_dice = on_turn;
    turn_next(world);
}
