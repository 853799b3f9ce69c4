/* SPDX-License-Identifier: Apache-2.0 */
/* A round of questions for each quiet period of each seed (checkers.md, "Answers to operators and clients").
 * - In some seeds each node is asked when the period begins, and nothing else goes on until all answers are right. That
 *   takes a second of virtual time, as logs get their copies and caches grow old: 6 to 16 ms of a processor.
 * - In the other seeds one node, another in each round, is asked when the period ends. That node asks all other nodes
 *   for their logs, so the answers show what each node says, and nearly every answer is right at once.
 * - A loss that is accepted within the period would leave nothing to tell. So where a log is in trouble when the period
 *   begins, that node is also asked then for the cluster's status and the streams' descriptions, and no loss is
 *   accepted before the answers are right. The same before some rounds without such a log: copies are missing then. */
#include "tests/sim/told.h"
#include "tests/sim/told_groups.h"
#include "tests/sim/truth.h"

enum {
    EARLY_PER_MILLE = 250, /* of the rounds: also when the period begins */
    /* Of the rounds: groups are asked for by Kafka's protocol, which wakes homes that sleep. */
    GROUPS_PER_MILLE = 200,
    GROUPS_PER_MILLE_KAFKA = 600, /* ... where there are clients of Kafka's protocol; */
    MEMBERS_PER_MILLE = 600,      /* of these: for the group of those clients */
    READY_US_MAX = 20 * 1000 * 1000,
    PLACES_US_MAX = 6 * 1000 * 1000, /* nodes know of replicas what was true as long ago */
};

static struct {
    struct sim_rng rng;
    const struct sim_server *server; /* to be asked when the period ends; NULL: the round is over */
    const char *when;
    uint64_t since_us; /* when the period began */
    unsigned periods, rounds;
} round_of_seed;

static void trouble_look(void *arg, const struct truth_log *log)
{
    bool *trouble = arg;
    *trouble |= truth_is_troubled(log);
}

static bool log_is_in_trouble(struct scenario *scenario)
{
    bool trouble = false;
    (void)truth_each(scenario, trouble_look, &trouble);
    return trouble;
}

static void round_note(struct scenario *scenario)
{
    round_of_seed.rounds++;
    scenario->world->faults[SIM_FAULT_TOLD_ROUND]++;
}

void sim_round_begin(struct scenario *scenario, const char *when)
{
    struct sim_rng *rng = &round_of_seed.rng;
    bool all = scenario->server_count == 1 || scenario->told_asked;
    if (scenario->world->failure[0]) return;
    sim_rng_init(rng, scenario->world->seed + scenario->world->now_us, "round");
    const struct sim_server *server =
        &scenario->servers[sim_rng_below(rng, scenario->server_count)];
    round_of_seed.server = all ? NULL : server;
    round_of_seed.when = when;
    round_of_seed.since_us = scenario->world->now_us;
    round_of_seed.periods++;
    bool early = sim_rng_chance(rng, EARLY_PER_MILLE);
    if (!all && !early && !log_is_in_trouble(scenario)) return;
    sim_trace(scenario->world, "questions to %s, %s", all ? "all" : server->name, when);
    bool held = scenario->loss_held; /* by a stage or a trap, which also ends that */
    scenario->loss_held = true;      /* what was lost is not given up before it has been told */
    sim_told_look(scenario, when, round_of_seed.server, all ? SIM_TOLD_ALL : SIM_TOLD_LOGS);
    if (!held) scenario->loss_held = false;
    if (all) round_note(scenario);
}

/* Of a group, its home alone knows more than what was committed. */
static void groups_ask(struct scenario *scenario)
{
    struct sim_rng *rng = &round_of_seed.rng;
    bool kafka = scenario->with_kafka;
    struct truth_home home;
    if (!sim_rng_chance(rng, kafka ? GROUPS_PER_MILLE_KAFKA : GROUPS_PER_MILLE)) return;
    enum sim_group group = (enum sim_group)sim_rng_below(rng, SIM_GROUPS);
    if (kafka && sim_rng_chance(rng, MEMBERS_PER_MILLE)) group = SIM_GROUP_KAFKA;
    truth_home_find(scenario, sim_group_name(group), &home);
    if (home.groups) sim_groups_look(scenario, round_of_seed.when, group);
}

void sim_round_end(struct scenario *scenario)
{
    const struct sim_server *server = round_of_seed.server;
    if (!server || scenario->world->failure[0]) return;
    if (!sim_nodes_ready(scenario, READY_US_MAX)) {
        sim_stuck(scenario, "a node is not ready, and nothing has struck");
        return;
    }
    bool old = scenario->world->now_us >= round_of_seed.since_us + PLACES_US_MAX;
    round_of_seed.server = NULL;
    sim_trace(scenario->world, "questions to %s, at the end of the time %s", server->name,
              round_of_seed.when);
    sim_told_look(scenario, round_of_seed.when, server,
                  old ? SIM_TOLD_ALL : SIM_TOLD_ALL_BUT_COPIES);
    groups_ask(scenario);
    round_note(scenario);
}

void sim_rounds_judge(struct scenario *scenario)
{
    if (scenario->world->failure[0]) return;
    if (round_of_seed.periods == 0 || round_of_seed.rounds != round_of_seed.periods)
        sim_fail(scenario->world, "A13 told: of %u quiet periods nodes were asked in %u",
                 round_of_seed.periods, round_of_seed.rounds);
}
