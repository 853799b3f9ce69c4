/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for an owner that stands still until it is declared crashed. When the owner goes on it hears of two
 * things at once: its backups have revoked its writes, so the store is asked to stamp its own copies anew; and its
 * streamlets are other nodes', so it gives its logs up. Its disk answers a little later: each log may be released only
 * after the answer. */
#include <string.h>

#include "broker/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 400 * 1000,
    STILL_US_MIN = 180 * 1000, /* a silent node is declared crashed after 160 ms */
    STILL_US_MAX = 350 * 1000,
    DISK_US_MAX = 60 * 1000, /* the disk answers so much later than its node goes on */
    GAP_US_MIN = 600 * 1000, /* the node starts again */
    GAP_US_MAX = 1200 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
} stage; /* of the one scenario of a process */

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    if (scenario->faults_over) return;
    if (sim_serves(server) && leat_node_is_confirmed(server->node)) {
        uint64_t until_us = world->now_us + sim_rng_between(&stage.rng, STILL_US_MIN, STILL_US_MAX);
        sim_fault_struck(world, SIM_FAULT_PAUSE);
        sim_process_pause(server->process, until_us);
        sim_disk_stall(server->disk, until_us + sim_rng_below(&stage.rng, DISK_US_MAX));
        sim_stage_came(scenario);
    }
    sim_world_at(world,
                 world->now_us + STILL_US_MAX + sim_rng_between(&stage.rng, GAP_US_MIN, GAP_US_MAX),
                 look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-still");
    scenario->pause_us_max = 20 * 1000; /* logs are written all the time */
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_still = {.name = "still",
                                          .nodes = 3,
                                          .needs = {.batches = 4, .copies_min = 2},
                                          .choose = choose,
                                          .start = start};
