/* SPDX-License-Identifier: Apache-2.0 */
/* Other dice from a turn on: see dice.h. */
#include "tests/sim/dice.h"

#include "tests/sim/scenario.h"

static struct {
    struct scenario *scenario;
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
    uint64_t value;
    if (dice.next < plan->count) {
        value = plan->at[dice.next++].value;
    } else {
        plan->stop_turn = 0;
        value = plan->on_stop();
    }
    sim_dice_throw(value);
    if (value % 2) sim_nodes_strike_soon(dice.scenario);
    turn_next(world);
}

void sim_dice_start(struct scenario *scenario, const struct sim_dice_plan *plan)
{
    dice.scenario = scenario;
    dice.plan = *plan;
    dice.next = 0;
    scenario->world->on_dice = on_turn;
    turn_next(scenario->world);
}

uint64_t sim_dice_turn(void)
{
    return dice.scenario ? dice.scenario->world->event_count : 0;
}
