/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a store file that has lost its end when the disk is full. A file of a single server grows, the
 * flush of the file fails, and the process is killed: the file loses what it has grown by, and not the rows of the
 * segments there, nor the memory of these segments. The disk has no space for the file's end at the next start, nor for
 * a while after that. Then the disk has space again, and nobody starts the server anew. A start that finds bytes in
 * memory for the file's end is refused until there is space: the moment comes where none does. */
#include <string.h>

#include "broker/probe.h"
#include "tests/sim/stage.h"

enum {
    LOOK_US = 500,
    KILL_US_MAX = 5 * 1000,
    STARTS_US_LEAST =
        300 * 1000, /* for which starts may be refused, as memory has no place in the file */
    STARTS_US_MAX = 1000 * 1000,
    FULL_US_LEAST = 50 * 1000,
    FULL_US_MAX = 800 * 1000,
    GAP_US_MAX = 300 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { GROWS, FAILED, DEAD, FULL } step;
    uint64_t until_us;
} stage; /* of the one scenario of a process */

static void step_to(unsigned step, uint64_t least_us, uint64_t most_us)
{
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + sim_rng_between(&stage.rng, least_us, most_us);
}

static void kill_now(struct sim_server *server)
{
    sim_disk_set_full(server->disk, true);
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    sim_process_die(server->process, SIM_DEATH_KILL);
    (void)sim_disk_took_error(server->disk); /* the server is started anew for it now */
    step_to(DEAD, STARTS_US_LEAST, STARTS_US_MAX);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (stage.scenario->faults_over) return;
    bool serves = server->process->alive && server->ready;
    bool due = world->now_us >= stage.until_us;
    sim_disk_fail_grown(server->disk, stage.step == GROWS && due && serves);
    if (stage.step == GROWS && sim_disk_failed_grown(server->disk)) {
        step_to(FAILED, 0, KILL_US_MAX);
    } else if (stage.step == FAILED && due) {
        kill_now(server);
    } else if (stage.step == DEAD && serves) {
        sim_stage_came(stage.scenario);
        step_to(FULL, FULL_US_LEAST, FULL_US_MAX);
    } else if ((stage.step == DEAD || stage.step == FULL) && due) {
        sim_trace(world, "stage: the disk has space again");
        sim_disk_set_full(server->disk, false);
        step_to(GROWS, 0, GAP_US_MAX);
    }
    sim_world_at(world, world->now_us + LOOK_US, look, server);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-cut-end");
}

static void start(struct scenario *scenario)
{
    struct sim_server *server = &scenario->servers[0];
    sim_disk_crash_gives(server->disk);
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, server);
}

const struct sim_stage sim_stage_cut_end = {
    .name = "cut-end",
    .nodes = 1,
    .needs = {.batches = 1},
    .choose = choose,
    .start = start,
};
