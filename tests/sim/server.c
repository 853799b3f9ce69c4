/* The server under test: a whole node on simulated ports, started again whenever it died. */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static uint64_t cpu_us(void *ctx)
{
    (void)ctx;
    return 0;
}

/* What the server says at its start is the other way for a log to say that data is gone: older
 * segments may be missing while its end is there. */
static void complaint(void *arg, const char *line)
{
    struct scenario *scenario = arg;
    struct leat_log_ref log;
    unsigned long long segment;
    sim_trace(scenario->world, "complaint: %s", line);
    if (scenario->rotten) {
        sim_rot_complaint(scenario, line);
        return;
    }
    if (sscanf(line, "segment %llu of log %u/%u/%u:", &segment, &log.stream, &log.streamlet,
               &log.log) != 4 ||
        !sim_stream_of(scenario, log.stream, &log.stream) || log.stream >= SIM_STREAMS)
        return;
    check_waiting(scenario->check, log, line);
}

static void boot_failed(struct scenario *scenario, leat_err rc, const struct leat_error *error)
{
    struct sim_server *server = &scenario->server;
    snprintf(server->last_failure, sizeof server->last_failure, "%s: %s", leat_err_name(rc),
             error ? error->text : "");
    sim_trace(scenario->world, "server does not start: %s", server->last_failure);
    server->failed_boots++;
    /* Damage and refusals for ever are never excused: every byte that was flushed is there. */
    if (server->failed_boots > 50 && scenario->faults_over)
        sim_fail(scenario->world, "A11 assert: the server does not start: %s",
                 server->last_failure);
}

static void die_later(struct sim_world *world, struct sim_event *event)
{
    sim_process_die(event->a, SIM_DEATH_KILL);
    (void)world;
}

static void on_ready(void *owner, leat_err rc, const struct leat_error *error, const char *address)
{
    struct scenario *scenario = owner;
    struct sim_server *server = &scenario->server;
    if (rc != LEAT_OK) {
        boot_failed(scenario, rc, error);
        sim_world_at(scenario->world, scenario->world->now_us + 1000, die_later, server->process);
        return;
    }
    sim_trace(scenario->world, "server ready on %s", address);
    server->ready = true;
    server->failed_boots = 0;
    leat_node_complaints(server->node, complaint, scenario);
}

static void exit_now(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (!scenario->server.process->alive) return;
    world->faults[SIM_FAULT_RESTART]++;
    sim_process_die(scenario->server.process, SIM_DEATH_EXIT);
}

static void on_stopped(void *owner, leat_err rc)
{
    struct scenario *scenario = owner;
    sim_trace(scenario->world, "server stopped: %s", leat_err_name(rc));
    /* The process leaves after this callback; what it queued for the network may still go. */
    sim_world_at(scenario->world, scenario->world->now_us + 500, exit_now, scenario);
}

static void start_node(struct sim_world *world, struct sim_event *event)
{
    leat_node_start(event->a);
    (void)world;
}

static void stop_node(struct sim_world *world, struct sim_event *event)
{
    leat_node_stop(event->a);
    (void)world;
}

static void create_node(void *arg)
{
    struct scenario *scenario = arg;
    struct sim_server *server = &scenario->server;
    struct leat_node_options options = {
        .cores = scenario->cores,
        .name = "sim",
        .listen_address = SIM_ADDRESS,
        .version = "simulated",
        .memory_bytes = scenario->memory_bytes,
        .auto_create = false,
        .park_after_us = scenario->park_after_us,
        .flush_delay_us = scenario->flush_delay_us,
        .scrub_bytes_per_second = 0,
        .core_envs = server->core_envs,
        .store_env = &server->store->env,
        .coordinator_env = &server->coordinator->env,
        .cpu_us = cpu_us,
        .on_ready = on_ready,
        .on_stopped = on_stopped,
        .owner = scenario,
    };
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = leat_node_create(&options, &server->node, &error);
    if (rc != LEAT_OK) {
        boot_failed(scenario, rc, &error);
        server->node = NULL;
    }
}

static void on_death(struct sim_process *process, enum sim_death death)
{
    struct scenario *scenario = process->owner;
    scenario->server.ready = scenario->server.stopping = false;
    /* A file whose flush failed may lose what the cache had, the catalogue's rows too: what a log
     * of level memory knows of itself. */
    if (sim_disk_lost_flush(scenario->disk)) check_power_cut(scenario->check);
    if (death == SIM_DEATH_POWER) {
        check_power_cut(scenario->check);
        scenario->powered_us = scenario->world->now_us; /* the clock starts anew */
    }
    if (scenario->server.down_wanted) return;
    sim_server_boot_later(scenario, sim_rng_between(&scenario->world->fault, 500, 200000));
}

void sim_server_boot(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    struct sim_server *server = &scenario->server;
    if (server->process && server->process->alive) return;
    if (++server->boots > SIM_REBOOTS_MAX) {
        sim_fail(world, "A10 stuck: %u starts, the last refused: %s", server->boots,
                 server->last_failure);
        return;
    }
    char name[24];
    snprintf(name, sizeof name, "server%u", server->boots);
    struct sim_process *process = sim_process_create(world, name);
    int64_t wall_jump_ms = server->process ? server->process->wall_jump_ms : 0;
    process->disk = scenario->disk;
    process->arena = scenario->arena;
    process->owner = scenario;
    process->on_death = on_death;
    process->wall_jump_ms = wall_jump_ms;
    process->clock_offset_us = -(int64_t)scenario->powered_us;
    server->process = process;
    server->ready = false;
    for (unsigned i = 0; i < scenario->cores; i++) {
        server->cores[i] = sim_actor_create(process, i);
        server->core_envs[i] = server->cores[i]->env;
    }
    server->store = sim_actor_create(process, LEAT_ACTOR_STORE);
    server->coordinator = sim_actor_create(process, LEAT_ACTOR_COORDINATOR);
    server->node = NULL;
    if (!sim_process_enter(process, create_node, scenario)) return;
    if (!server->node) {
        sim_process_die(process, SIM_DEATH_KILL);
        return;
    }
    for (unsigned i = 0; i < scenario->cores; i++)
        sim_actor_register(server->cores[i], leat_node_core(server->node, i), &leat_core_actor);
    sim_actor_register(server->store, leat_node_store(server->node), &leat_store_actor);
    sim_actor_register(server->coordinator, leat_node_coordinator(server->node),
                       &leat_coordinator_actor);
    sim_actor_post(server->cores[0], 0, start_node, server->node);
}

static void boot_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (!scenario->server.down_wanted) sim_server_boot(scenario);
    (void)world;
}

void sim_server_boot_later(struct scenario *scenario, uint64_t delay_us)
{
    sim_world_at(scenario->world, scenario->world->now_us + delay_us, boot_due, scenario);
}

void sim_server_stop(struct scenario *scenario)
{
    struct sim_server *server = &scenario->server;
    if (!server->ready || server->stopping) return;
    server->stopping = true;
    sim_actor_post(server->cores[0], 0, stop_node, server->node);
}
