/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble on purpose while nothing else happens, so that there is something to be told (told.c): a node is away, or the
 * disk of a node is full while a client appends. In one cluster seed of seven, after the first audit. */
#include "broker/probe.h"
#include "store/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/scenario.h"
#include "tests/sim/told.h"

enum {
    QUIET_PER_MILLE = 140,
    FULL_PER_MILLE = 500, /* of these: a full disk */
    FILL_US_MAX = 5 * 1000 * 1000,
    BACK_US_MAX = 120 * 1000 * 1000,
    PRODUCER = 19, /* a number that no other has */
    RECORDS = 400,
    VALUE_BYTES = 1600, /* at most: segments have to follow each other */
};

/* Neither what the file has free, nor what grows: nothing is given out. */
static void space_is(const struct sim_server *server, bool there)
{
    leat_store_space_hide(leat_node_store(server->node), !there);
    sim_disk_set_full(server->disk, !there);
}

static bool disk_lacks(struct scenario *scenario)
{
    const struct sim_server *server = scenario->quiet_server;
    struct leat_store_usage usage;
    leat_store_usage(leat_node_store(server->node), &usage);
    return usage.disk_lacks_bytes > 0;
}

static bool all_acked(struct scenario *scenario)
{
    return scenario->producers_running == 0 && check_open_count(scenario->check) == 0;
}

static void fill(struct scenario *scenario)
{
    uint32_t value_bytes = scenario->value_bytes;
    space_is(scenario->quiet_server, false);
    sim_trace(scenario->world, "the disk of %s is full", scenario->quiet_server->name);
    struct sim_client *client = sim_client_start(scenario, SIM_CLIENT_PRODUCER, 0, PRODUCER);
    scenario->value_bytes = VALUE_BYTES;
    client->quota = RECORDS;
    scenario->producers_running++;
    if (sim_run_until(scenario, disk_lacks, FILL_US_MAX))
        scenario->world->faults[SIM_FAULT_TOLD_FULL]++;
    scenario->groups_unasked = true;
    sim_told_look(scenario, "with a full disk", NULL, SIM_TOLD_ALL);
    scenario->groups_unasked = false;
    scenario->value_bytes = value_bytes;
    if (scenario->world->failure[0]) return;
    space_is(scenario->quiet_server, true);
    if (!sim_run_until(scenario, all_acked, BACK_US_MAX))
        sim_stuck(scenario, "appends do not go on when a disk has space again");
}

static void go_away(struct scenario *scenario)
{
    struct sim_server *server = scenario->quiet_server;
    server->down_wanted = true;
    sim_trace(scenario->world, "%s stays away", server->name);
    sim_process_die(server->process, SIM_DEATH_KILL);
    scenario->world->faults[SIM_FAULT_TOLD_AWAY]++;
    sim_told_look(scenario, "with a node away", NULL, SIM_TOLD_ALL);
    server->down_wanted = false;
    sim_server_boot_later(server, 1000);
    if (!sim_nodes_ready(scenario, BACK_US_MAX)) sim_stuck(scenario, "a node does not come back");
}

void sim_quiet_run(struct scenario *scenario)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "quiet");
    /* What is away or refuses there would be missed: a minority's disks hold the only whole copies. */
    if (!sim_rng_chance(&rng, QUIET_PER_MILLE) || scenario->victim || scenario->rows_rot) return;
    scenario->quiet_server = &scenario->servers[sim_rng_below(&rng, scenario->server_count)];
    if (!sim_serves(scenario->quiet_server)) return;
    /* Not in brief seeds, nor behind traps: space_is() hides what a file has free, and not what it was given and has
     * not grown into yet. */
    bool may_fill = !scenario->brief && scenario->trap == SIM_TRAP_NONE;
    if (sim_rng_chance(&rng, FULL_PER_MILLE) && may_fill)
        fill(scenario);
    else
        go_away(scenario);
    sim_told_look(scenario, "when that is over", NULL, SIM_TOLD_ALL);
}
