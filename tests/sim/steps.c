/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that do not end. A core lets its logs step until none asks for another step. Such a turn may call no port, and
 * no event comes before its end: nothing else in the simulator runs meanwhile. So the linker puts this function in
 * front of leat_log_turn_end() (--wrap), in the programs of the simulator alone. */
#include "multilog/log.h"
#include "tests/sim/scenario.h"

enum { STEPS_MAX = 100 * 1000 }; /* of all logs in one turn; usual turns have fewer than 100 */

static struct {
    struct sim_world *world;
    uint64_t turn; /* the world's event in which the last step was */
    uint32_t steps;
} watch; /* of the one scenario of a process */

void sim_steps_watch(struct sim_world *world)
{
    watch.world = world;
    watch.turn = watch.steps = 0;
}

void __real_leat_log_turn_end(struct leat_log *log);
void __wrap_leat_log_turn_end(struct leat_log *log);

void __wrap_leat_log_turn_end(struct leat_log *log)
{
    struct sim_world *world = watch.world;
    if (watch.turn != world->event_count) watch.steps = 0;
    watch.turn = world->event_count;
    if (++watch.steps == STEPS_MAX) {
        sim_fail(world, "A10 stuck: a turn of %s does not end: logs took %d steps in it",
                 world->entered->name, STEPS_MAX);
        sim_process_die(world->entered, SIM_DEATH_KILL); /* does not return */
    }
    __real_leat_log_turn_end(log);
}
