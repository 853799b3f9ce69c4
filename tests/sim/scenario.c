/* SPDX-License-Identifier: Apache-2.0 */
/* A seed, from its first event to its verdict. */
#include "tests/sim/scenario.h"
#include "tests/sim/aims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"
#include "tests/sim/stage.h"
#include "tests/sim/stranger.h"
#include "tests/sim/swift.h"
#include "tests/sim/told.h"

enum {
    RUN_US_MAX = 400 * 1000 * 1000, /* virtual: faults stop then, whatever is left */
    CLUSTER_RUN_US_MAX = 15 * 1000 * 1000,
    BRIEF_RUN_US_MAX = 4 * 1000 * 1000,
    HEAL_US_MAX = 120 * 1000 * 1000, /* progress must resume and end within */
    AUDIT_US_MAX = 60 * 1000 * 1000,
    LEFT_COMES_US = 5 * 1000 * 1000,
    /* An operator who accepts the losses of all logs, one after the other: the new owner of a log looks for its end for
     * 3 s, and the streams have 36 logs at most. */
    LOOK_US_MAX = 180 * 1000 * 1000,
    /* Until every segment has its copies: grace and care take a minute each. */
    WHOLE_US_MAX = 180 * 1000 * 1000,
    LEFT_US_MAX = 60 * 1000 * 1000, /* until nothing is left of a stream that was deleted */
    RECORDS = 3600,
    SLOW_READERS = 4, /* more than a core has buffers for bytes that have left memory */
    FIRST_PRODUCER = 1,
    RAW_PRODUCER = 20,
    KAFKA_PRODUCER = 24,
};

static void on_violation(void *ctx, const char *text)
{
    sim_fail(ctx, "%s", text);
}

static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    static const char *const levels[] = {"ERROR", "WARN", "INFO", "DEBUG"};
    struct scenario *scenario = ctx;
    sim_trace_line(scenario->world, "server", "%s %s", levels[level], line);
    sim_node_log_line(scenario, level, line);
}

/* In half of the seeds others come by Kafka's protocol, to the same streams. */
static unsigned kafka_count(struct scenario *scenario, unsigned most)
{
    if (!scenario->with_kafka) return 0;
    return scenario->few ? 1 : (unsigned)sim_rng_between(&scenario->kafka, 1, most);
}

static void clients_start(struct scenario *scenario, uint32_t records)
{
    struct sim_rng *rng = &scenario->world->work;
    (void)sim_client_start(scenario, SIM_CLIENT_CONTROL, 0, 0);
    unsigned producers = (unsigned)sim_rng_between(rng, 2, scenario->brief ? 3 : 5);
    for (unsigned i = 0; i < producers; i++) {
        struct sim_client *client =
            sim_client_start(scenario, SIM_CLIENT_PRODUCER, 0, FIRST_PRODUCER + i);
        client->quota = records / producers;
        scenario->producers_running++;
    }
    if (scenario->server_count > 1)
        scenario->batches_min =
            sim_brief_work(scenario).batches * sim_trap_needs(scenario)->batches;
    (void)sim_client_start(scenario, SIM_CLIENT_RAW, 0, RAW_PRODUCER);
    for (unsigned i = 0, count = kafka_count(scenario, 2); i < count; i++) {
        struct sim_client *client =
            sim_client_start(scenario, SIM_CLIENT_KAFKA_PRODUCER, 0, KAFKA_PRODUCER + i);
        client->quota = records / 6;
        scenario->producers_running++;
    }
    if (scenario->with_trims)
        scenario->trimmer = sim_client_start(scenario, SIM_CLIENT_TRIMMER, 0, 0);
}

static void deaf_start(struct scenario *scenario)
{
    uint32_t stream = (uint32_t)sim_rng_below(&scenario->world->work, SIM_STREAMS);
    (void)sim_client_start(scenario, SIM_CLIENT_DEAF, stream, 0);
}

/* In some seeds strangers hold what they can. */
static void strangers_start(struct scenario *scenario)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "strangers");
    if (sim_rng_chance(&rng, 200)) (void)sim_client_start(scenario, SIM_CLIENT_CUTTER, 0, 0);
    if (scenario->server_count > 1 && sim_rng_chance(&rng, 200))
        (void)sim_client_start(scenario, SIM_CLIENT_IMPOSTOR, 0, 0);
    scenario->slow_readers = sim_rng_chance(&rng, 300);
}

static void consumers_start(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        (void)sim_client_start(scenario, SIM_CLIENT_READER, i, 0);
    unsigned members = (unsigned)sim_rng_between(rng, 1, scenario->few ? 2 : 3);
    for (unsigned i = 0; i < members; i++)
        (void)sim_client_start(scenario, SIM_CLIENT_MEMBER, 0, i);
    if (sim_rng_chance(rng, scenario->few ? 150 : 500))
        for (unsigned i = 0; i < 2; i++)
            (void)sim_client_start(scenario, SIM_CLIENT_SHARER, 3, i);
    if (sim_rng_chance(rng, 150) && !scenario->few) deaf_start(scenario);
    if (scenario->with_kafka)
        (void)sim_client_start(scenario, SIM_CLIENT_KAFKA_READER,
                               (uint32_t)sim_rng_below(&scenario->kafka, SIM_STREAMS), 0);
    for (unsigned i = 0, count = kafka_count(scenario, 3); i < count; i++)
        (void)sim_client_start(scenario, SIM_CLIENT_KAFKA_MEMBER, 0, i);
    if (!scenario->few) strangers_start(scenario);
    sim_deaf_watch(scenario);
}

static bool streams_made(struct scenario *scenario)
{
    return scenario->streams_made;
}

static bool all_sent(struct scenario *scenario)
{
    return scenario->producers_running == 0;
}

static bool trims_answered(struct scenario *scenario)
{
    return scenario->trimmer == NULL || sim_trim_done(scenario->trimmer);
}

static bool all_answered(struct scenario *scenario)
{
    if (scenario->producers_running || check_open_count(scenario->check)) return false;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_RAW && !sim_raw_done(client)) return false;
    }
    return trims_answered(scenario) && sim_deletes_done(scenario);
}

static bool all_read(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        bool reads = client->kind == SIM_CLIENT_READER || client->kind == SIM_CLIENT_MEMBER ||
                     client->kind == SIM_CLIENT_KAFKA_READER ||
                     client->kind == SIM_CLIENT_KAFKA_MEMBER;
        if (reads && client->process->alive && !sim_consumer_done(client)) {
            scenario->waits_for = client->process->name;
            return false;
        }
    }
    return true;
}

/* SUBTLE: a log that waits for its end looks as if it ended there. So a verifier can be at the end of all logs before
 * all that is left can be read.
 *  1. Logs have lost their ends with the power, and a node is away. Until the node is up no loss of theirs is accepted.
 *  2. The verifier reads these logs to the end that they have meanwhile.
 *  3. Judged now, acked records would be called lost that nobody gave up: they may still come back. */
static bool has_read_all(const struct scenario *scenario, const struct sim_client *client)
{
    return sim_consumer_at_end(client) && check_stream_whole(scenario->check, client->stream);
}

/* Verifiers stand at the end of the list. Where one had to give up, its stream is excused. */
static bool audited(struct scenario *scenario)
{
    for (unsigned i = 0; i < SIM_STREAMS; i++) {
        const struct sim_client *client = scenario->clients[scenario->client_count - 1 - i];
        if (!client->given_up && !has_read_all(scenario, client) &&
            !check_audit_done(scenario->check, client->stream, scenario->behind)) {
            scenario->waits_for = client->process->name;
            return false;
        }
    }
    return true;
}

/* Where a verifier had to give up, a log of its stream has said that data is missing. */
static void audit_judge(struct scenario *scenario)
{
    for (unsigned i = 0; i < SIM_STREAMS; i++) {
        const struct sim_client *client = scenario->clients[scenario->client_count - 1 - i];
        if (!client->given_up) check_final(scenario->check, client->stream);
    }
}

/* It took too long. A reader at the end of all its logs has seen all that there is, and a record that it did not see is
 * lost. A reader that still asks was not answered: that says nothing of the records that are there. */
static void audit_fails(struct scenario *scenario)
{
    const struct sim_client *late = NULL;
    for (unsigned i = 0; i < SIM_STREAMS; i++) {
        const struct sim_client *client = scenario->clients[scenario->client_count - 1 - i];
        bool at_end = client->consumer && leat_consumer_engine_at_end(client->consumer);
        if (client->given_up) continue;
        if (at_end || check_audit_done(scenario->check, client->stream, scenario->behind))
            check_final(scenario->check, client->stream);
        else
            late = client;
    }
    if (!late) return;
    (void)check_audit_done(scenario->check, late->stream, scenario->behind);
    scenario->waits_for = late->process->name;
    char what[LEAT_ERROR_TEXT_BYTES + 80];
    snprintf(what, sizeof what, "the final pass is not answered; last it was told: %s",
             late->told[0] ? late->told : "nothing");
    sim_stuck(scenario, what);
}

/* A fresh consumer per stream reads everything from the beginning. */
static void verifiers_start(struct scenario *scenario)
{
    check_audit_begin(scenario->check);
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        (void)sim_client_start(scenario, SIM_CLIENT_VERIFIER, i, 0);
}

static void verifiers_wait(struct scenario *scenario)
{
    if (sim_run_until(scenario, audited, AUDIT_US_MAX)) return;
    audit_fails(scenario);
    audit_judge(scenario);
    sim_stuck(scenario, "the final pass does not reach the end");
}

static void verifiers_end(struct scenario *scenario)
{
    for (unsigned i = 0; i < SIM_STREAMS; i++)
        sim_client_kill(scenario->clients[--scenario->client_count]);
}

static void audit(struct scenario *scenario)
{
    verifiers_start(scenario);
    verifiers_wait(scenario);
    audit_judge(scenario);
    verifiers_end(scenario);
}

/* Did they see all that a verifier before saw, and was none told that data is missing? */
static bool audit_is_whole(struct scenario *scenario)
{
    for (unsigned i = 0; i < SIM_STREAMS; i++) {
        const struct sim_client *client = scenario->clients[scenario->client_count - 1 - i];
        if (client->given_up ||
            !check_audit_done(scenario->check, client->stream, scenario->behind))
            return false;
    }
    return true;
}

/* The rest of a log after an accepted loss may be on the node that came up last: verifiers that do not see this rest
 * within the time that the node takes to come up end, and other verifiers read (seed 8184). */
static void last_audit(struct scenario *scenario)
{
    uint64_t comes_us = scenario->world->now_us + LEFT_COMES_US;
    verifiers_start(scenario);
    if (check_loss_accepted(scenario->check) &&
        !(sim_run_until(scenario, audited, LEFT_COMES_US) && audit_is_whole(scenario))) {
        verifiers_end(scenario);
        sim_world_run(scenario->world, comes_us, NULL);
        verifiers_start(scenario);
    }
    verifiers_wait(scenario);
    audit_judge(scenario);
    verifiers_end(scenario);
}

/* Logs that are written no more begin later once more, many of them at their end; a death follows. */
static bool last_trims(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    if (!scenario->trimmer || !sim_rng_chance(rng, 700)) return true;
    sim_trim_all(scenario->trimmer);
    if (sim_rng_chance(rng, 300)) { /* it comes amid them */
        sim_world_run(scenario->world, scenario->world->now_us + sim_rng_below(rng, 30000), NULL);
        return true;
    }
    if (!sim_run_until(scenario, trims_answered, HEAL_US_MAX)) {
        sim_stuck(scenario, "what is in front can't be given up");
        return false;
    }
    if (sim_rng_chance(rng, 500)) /* they may hibernate */
        sim_world_run(scenario->world, scenario->world->now_us + sim_rng_below(rng, 4000000), NULL);
    return true;
}

static bool nobody_is_owed(struct scenario *scenario)
{
    return sim_deaf_all_done(scenario);
}

static void strangers_end(struct scenario *scenario)
{
    if (!sim_run_until(scenario, sim_impostors_gone, HEAL_US_MAX))
        sim_stuck(scenario, "strangers without the key are not done");
    if (!sim_run_until(scenario, sim_cutter_all_gone, HEAL_US_MAX))
        sim_stuck(scenario, "connections of strangers who have gone are still there");
}

static bool server_ready(struct scenario *scenario)
{
    return scenario->servers[0].ready;
}

static bool (*sweep_hook)(struct scenario *, uint64_t, enum sim_cut_phase);

/* Whoever else is at work comes to its end. */
static bool others_end(struct scenario *scenario, const struct scenario_options *options)
{
    if (!options->wait_for || sim_run_until(scenario, options->wait_for, RUN_US_MAX)) return true;
    sim_stuck(scenario, "who else was at work does not come to an end");
    return false;
}

static bool sweep(void *arg, uint64_t op, enum sim_cut_phase phase)
{
    return sweep_hook(arg, op, phase);
}

/* It may be dead and back between two looks. */
static bool server_dead(struct scenario *scenario)
{
    const struct sim_server *server = &scenario->servers[0];
    return !server->process->alive || !server->ready || server->boots != scenario->boots_before;
}

/* One death more: what was answered is still there after it. */
static bool last_death(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    struct sim_process *server = scenario->servers[0].process;
    if (sim_rng_chance(&world->work, 300)) {
        /* It has to hibernate every log: a pin that nobody gives back would show here. */
        scenario->boots_before = scenario->servers[0].boots;
        sim_server_stop(&scenario->servers[0]);
        if (!sim_run_until(scenario, server_dead, HEAL_US_MAX)) {
            sim_stuck(scenario, "the server does not stop");
            return false;
        }
    } else {
        bool power = scenario->power_cuts && sim_rng_chance(&world->work, 500);
        sim_process_die(server, power ? SIM_DEATH_POWER : SIM_DEATH_KILL);
    }
    if (sim_run_until(scenario, server_ready, HEAL_US_MAX)) return true;
    sim_stuck(scenario, "the server does not come back");
    return false;
}

static void phase(struct scenario *scenario, const char *name)
{
    sim_trace(scenario->world, "phase: %s; %llu events", name,
              (unsigned long long)scenario->world->event_count);
}

static bool operator_has_looked(struct scenario *scenario)
{
    return scenario->operator_rounds >= scenario->rounds_wanted;
}

/* The operator looks at every log, once from its beginning to its end, before the log is judged. That takes as long as
 * a streamlet that lost all its open replicas waits for a node that answers for it. */
static void operator_look(struct scenario *scenario)
{
    scenario->rounds_wanted = scenario->operator_rounds + 2;
    scenario->hurried = true; /* nothing else is waited for */
    if (!sim_run_until(scenario, operator_has_looked, LOOK_US_MAX))
        sim_stuck(scenario, "an operator is not told how each log is");
    scenario->hurried = false;
    /* An owner that has not heard yet that it is no owner shows records that were trimmed at the next owner: seed
     * 4994. */
    (void)sim_run_until(scenario, sim_nodes_are_even, LOOK_US_MAX);
}

static void deleted_is_gone(struct scenario *scenario)
{
    if (sim_run_until(scenario, sim_deletes_nothing_left, LEFT_US_MAX)) return;
    scenario->waits_for = NULL;
    sim_stuck(scenario, "something is left of a stream that was deleted");
}

/* In the other seeds all end with copies still under way. */
static bool copies_come(struct scenario *scenario)
{
    if (!sim_rng_chance(&scenario->look, scenario->few ? 200 : 500)) return true;
    phase(scenario, "copies");
    if (sim_run_until(scenario, sim_copies_are_whole, WHOLE_US_MAX)) return true;
    sim_stuck(scenario, "a segment lacks copies, with all nodes there and nobody who appends");
    return false;
}

/* What no stage asked for, beside the scheduled faults. */
static bool may_strike(const struct scenario *scenario)
{
    return !scenario->calm && scenario->trap != SIM_TRAP_STAGE;
}

static void cluster_faults_start(struct scenario *scenario, const struct scenario_options *options)
{
    sim_copies_watch(scenario);
    sim_kept_watch(scenario);
    sim_places_watch(scenario);
    sim_visits_start(scenario);
    if (scenario->stage && scenario->stage->beside) sim_stage_start(scenario);
    if (scenario->trap != SIM_TRAP_NONE) {
        sim_trap_start(scenario);
    } else if (!options->calm) {
        if (!sim_aim_refused_start(scenario) && !sim_aim_move_start(scenario))
            sim_nodes_faults_start(scenario);
        sim_closed_start(scenario);
        sim_aims_start(scenario);
        sim_aim_adopt_start(scenario);
        sim_aim_groups_start(scenario);
        sim_traps_start(scenario);
        sim_trap_torn_start(scenario);
        sim_slow_lines_start(scenario);
    }
    sim_deletes_start(scenario);
}

static void all_nodes_end(struct scenario *scenario)
{
    phase(scenario, "the end of all nodes");
    sim_rows_strike(scenario);
    sim_nodes_die(scenario);
    sim_deletes_start_anew(scenario);
    if (sim_nodes_ready(scenario, HEAL_US_MAX)) {
        sim_round_begin(scenario, "after the end of all nodes");
        if (!sim_run_until(scenario, trims_answered, HEAL_US_MAX))
            sim_stuck(scenario, "what is in front can't be given up");
        operator_look(scenario);
        sim_copies_check(scenario);
        last_audit(scenario);
        sim_round_end(scenario);
        deleted_is_gone(scenario);
        sim_rows_judge(scenario);
    } else
        sim_stuck(scenario, "the cluster does not come back after all its nodes died");
}

static void cluster_body(struct scenario *scenario, const struct scenario_options *options)
{
    struct sim_world *world = scenario->world;
    sim_trace(world, "a %s seed, %u records, trap %d", scenario->brief ? "brief" : "long",
              sim_brief_work(scenario).records, (int)scenario->trap);
    phase(scenario, "forming");
    if (may_strike(scenario)) sim_aim_first_choose(scenario);
    if (may_strike(scenario)) sim_aim_identity_choose(scenario);
    sim_aim_hold_choose(scenario);
    sim_aim_loss_choose();
    if (!sim_nodes_form(scenario, HEAL_US_MAX)) {
        sim_stuck(scenario, "the nodes do not become a cluster");
        return;
    }
    phase(scenario, "streams");
    clients_start(scenario, options->records ? options->records : sim_brief_work(scenario).records);
    if (!sim_run_until(scenario, streams_made, RUN_US_MAX)) {
        sim_stuck(scenario, "streams are not made");
        return;
    }
    phase(scenario, "work");
    consumers_start(scenario);
    if (!options->on_built && !options->calm) sim_swift_start(scenario);
    if (!options->on_built && may_strike(scenario)) sim_stranger_choose(scenario);
    cluster_faults_start(scenario, options);
    (void)sim_run_until(scenario, all_sent,
                        scenario->brief ? BRIEF_RUN_US_MAX : CLUSTER_RUN_US_MAX);
    phase(scenario, "healing");
    sim_nodes_heal(scenario);
    if (!sim_nodes_ready(scenario, HEAL_US_MAX)) {
        sim_stuck(scenario, "a node does not come back");
        return;
    }
    sim_round_begin(scenario, "after the healing");
    phase(scenario, "answering");
    if (!sim_run_until(scenario, all_answered, HEAL_US_MAX)) {
        sim_stuck(scenario, "producers do not finish");
        return;
    }
    scenario->acked_all = sim_acked_batches(scenario);
    phase(scenario, "reading");
    if (!others_end(scenario, options)) return;
    if (!sim_run_until(scenario, all_read, HEAL_US_MAX)) {
        sim_stuck(scenario, "consumers do not reach the end");
        return;
    }
    strangers_end(scenario);
    /* The quiet period ends where closed segments are damaged once more. */
    if (scenario->closed_rot) sim_round_end(scenario);
    phase(scenario, "audit");
    sim_closed_strike(scenario, SIM_CLOSED_LAST);
    operator_look(scenario);
    sim_copies_check(scenario);
    audit(scenario);
    sim_round_end(scenario);
    deleted_is_gone(scenario);
    if (world->failure[0]) return;
    sim_closed_judge(scenario);
    sim_closed_strike(scenario, SIM_CLOSED_LAST);
    if (world->failure[0] || !last_trims(scenario)) return;
    if (!copies_come(scenario)) return;
    sim_quiet_run(scenario);
    if (!world->failure[0] && scenario->ends_anew) all_nodes_end(scenario);
    sim_rounds_judge(scenario);
}

static void scenario_body(struct scenario *scenario, const struct scenario_options *options)
{
    struct sim_world *world = scenario->world;
    sweep_hook = options->sweep;
    if (options->sweep) sim_disk_sweep(scenario->servers[0].disk, sweep, scenario);
    sim_server_boot(&scenario->servers[0]);
    clients_start(scenario, options->records ? options->records : RECORDS);
    if (may_strike(scenario)) sim_faults_start(scenario);
    sim_stage_start(scenario);
    if (!sim_run_until(scenario, streams_made, RUN_US_MAX)) {
        sim_stuck(scenario, "streams are not made");
        return;
    }
    consumers_start(scenario);
    if (!options->on_built && !options->sweep && !options->calm) sim_swift_start(scenario);
    (void)sim_run_until(scenario, all_sent, RUN_US_MAX);
    sim_faults_heal(scenario);
    if (sim_rng_chance(&world->work, 150)) deaf_start(scenario);
    if (!sim_run_until(scenario, all_answered, HEAL_US_MAX)) {
        sim_stuck(scenario, "producers do not finish");
        return;
    }
    scenario->acked_all = sim_acked_batches(scenario);
    if (!others_end(scenario, options)) return;
    if (!sim_run_until(scenario, all_read, HEAL_US_MAX)) {
        sim_stuck(scenario, "consumers do not reach the end");
        return;
    }
    if (!sim_run_until(scenario, nobody_is_owed, HEAL_US_MAX)) {
        sim_stuck(scenario, "a reader that reads nothing is not cut off");
        return;
    }
    strangers_end(scenario);
    audit(scenario);
    sim_round_begin(scenario, "after the audit");
    if (world->failure[0] || !last_trims(scenario) || !last_death(scenario)) return;
    sim_round_begin(scenario, "after the last death");
    if (!sim_run_until(scenario, trims_answered, HEAL_US_MAX))
        sim_stuck(scenario, "what is in front can't be given up");
    /* What was stored before the last start lies in files; now some ask for it who read nothing. */
    for (unsigned i = 0; scenario->slow_readers && i < SLOW_READERS; i++)
        deaf_start(scenario);
    /* The operator looks at every log before it is judged. */
    sim_world_run(world, world->now_us + 1000000, NULL);
    audit(scenario);
    if (world->failure[0] || !sim_rng_chance(&world->work, 200)) return;
    for (unsigned i = 0; i < scenario->client_count; i++)
        if (scenario->clients[i]->process->alive) sim_client_kill(scenario->clients[i]);
    sim_swift_end();
    sim_rot_run(scenario);
    if (!world->failure[0]) audit(scenario);
    if (!world->failure[0]) sim_lost_run(scenario);
}

/* A fault that nobody's append waits through proves nothing. */
static bool somebody_waits(void *arg)
{
    return check_open_count(((struct scenario *)arg)->check) > 0;
}

static void result_take(const struct scenario *scenario, struct scenario_result *out_result)
{
    const struct sim_world *world = scenario->world;
    memset(out_result, 0, sizeof *out_result);
    memcpy(out_result->failure, world->failure, sizeof out_result->failure);
    memcpy(out_result->faults, world->counted, sizeof out_result->faults);
    /* These are for the end, when all is answered. */
    out_result->faults[SIM_FAULT_FLIP] = world->faults[SIM_FAULT_FLIP];
    if (scenario->server_count == 1)
        out_result->faults[SIM_FAULT_LOST_FILE] = world->faults[SIM_FAULT_LOST_FILE];
    for (int i = SIM_FAULT_CLOSED_OWN; i <= SIM_FAULT_TOLD_GROUPS; i++)
        out_result->faults[i] = world->faults[i];
    out_result->faults[SIM_FAULT_STRANGER] = world->faults[SIM_FAULT_STRANGER];
    out_result->faults[SIM_FAULT_STAGE] = world->faults[SIM_FAULT_STAGE];
    out_result->faults[SIM_FAULT_DEAF] = world->faults[SIM_FAULT_DEAF];
    out_result->trace_hash = world->trace_hash;
    out_result->acked_records = check_acked_count(scenario->check);
    /* What was given up no verifier has seen. */
    out_result->acked_batches = scenario->acked_all;
    out_result->batches_wanted =
        scenario->server_count > 1 ? sim_brief_work(scenario).batches : SIM_BATCHES;
    out_result->compared = scenario->compared;
    out_result->marks = scenario->marks;
    out_result->visited = scenario->visited;
    out_result->events = world->event_count;
    out_result->virtual_us = world->now_us;
    out_result->disk_ops = sim_disk_ops_count(scenario->servers[0].disk);
}

void scenario_run(const struct scenario_options *options, struct scenario_result *out_result)
{
    struct scenario *scenario = calloc(1, sizeof *scenario);
    LEAT_ASSERT(scenario != NULL);
    struct sim_world *world = sim_world_create(options->seed, options->tracing);
    scenario->world = world;
    scenario->client_create = sim_client_create;
    scenario->watch = &sim_server_watch;
    sim_ends_start();
    sim_steps_watch(world);
    if (options->dice) sim_dice_start(scenario, options->dice);
    scenario->check = check_create(on_violation, world);
    scenario->stage = options->stage;
    if (options->stage && !options->stage->beside) scenario->trap = SIM_TRAP_STAGE;
    /* Now and then one machine more, which is no voter; a stage says how many there are. */
    bool one_more = options->nodes == SIM_VOTERS_MAX && scenario->trap != SIM_TRAP_STAGE &&
                    sim_rng_chance(&world->work, 125);
    one_more |= sim_trap_choose_early(scenario, options);
    sim_servers_init(scenario, options->nodes > 1 ? options->nodes + one_more : 1);
    scenario->cores = (uint32_t)sim_rng_between(&world->work, 1, SIM_CORES_MAX);
    scenario->memory_bytes = 512ull * 1024 * 1024;
    sim_budget_choose(scenario);
    scenario->hibernate_after_us = sim_rng_between(&world->work, 200000, 3000000);
    scenario->flush_delay_us = sim_rng_between(&world->work, 10000, 2000000);
    scenario->power_cuts = sim_rng_chance(&world->work, 700);
    /* Small files and early snapshots: both happen in a seed's few entries, and a start reads less. */
    scenario->raft_segment_bytes = sim_rng_between(&world->work, 1, 8) * 16 * 1024;
    scenario->raft_snapshot_bytes_min = sim_rng_between(&world->work, 1, 64) * 1024;
    scenario->calm = options->calm;
    scenario->groups_unasked = options->on_built != NULL;
    /* Where every disk operation or allocation is a run, they would be too many. */
    sim_rng_init(&scenario->kafka, options->seed, "kafka");
    struct sim_rng keys;
    sim_rng_init(&keys, options->seed, "key");
    for (size_t i = 0; i < sizeof scenario->key; i++)
        scenario->key.bytes[i] = (uint8_t)sim_rng_next(&keys);
    scenario->with_kafka = options->records == 0 && sim_rng_chance(&scenario->kafka, 500);
    scenario->with_kafka |= scenario->trap == SIM_TRAP_READER;
    struct sim_rng trims;
    sim_rng_init(&trims, options->seed, "trims");
    scenario->with_trims = sim_rng_chance(&trims, 500);
    scenario->pause_us_max = 20000;
    scenario->value_bytes = 200;
    scenario->hard = options->hard && scenario->server_count > 1;
    if (scenario->server_count > 1) sim_cluster_choose(scenario);
    bool struck_alone = scenario->trap == SIM_TRAP_FILL || scenario->trap == SIM_TRAP_LEAVE ||
                        (scenario->trap == SIM_TRAP_STAGE && !options->deletes);
    if (scenario->server_count > 1 && !struck_alone) sim_deletes_choose(scenario, options->deletes);
    if (scenario->server_count > 1) sim_trap_choose(scenario);
    if (scenario->server_count > 1 && options->hasty && !scenario->grace_us)
        sim_nodes_grace_choose(scenario); /* a trap may have one of its own */
    if (scenario->server_count > 1) sim_brief_choose(scenario, options);
    sim_stage_choose(scenario);
    world->somebody_waits = somebody_waits;
    world->waits_arg = scenario;
    if (!options->on_built)
        sim_process_memory_watch(world); /* the allocation sweep asks for itself */
    leat_node_log_set(on_node_log, scenario,
                      options->tracing ? LEAT_NODE_LOG_DEBUG : LEAT_NODE_LOG_WARN);
    struct sim_rng room;
    sim_rng_init(&room, options->seed, "room for frames");
    world->room_divisor = sim_rng_chance(&room, 300) ? 64 : 1;
    sim_streams_choose(scenario);
    if (options->on_built) options->on_built(scenario);
    if (options->life) sim_life_start(scenario, options->life);
    if (scenario->server_count > 1)
        cluster_body(scenario, options);
    else
        scenario_body(scenario, options);
    result_take(scenario, out_result);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    /* The memory of killed processes goes with this process: leat-sim forks for each seed. */
}
