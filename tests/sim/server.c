/* SPDX-License-Identifier: Apache-2.0 */
/* The server under test: a whole node on simulated ports, started again whenever it died. */
#include "kafka/kafka.h"
#include "replication/transport/transport.h"
#include "tests/sim/rmem.h"
#include "tests/sim/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { CLOCK_PPM_MAX = 20000 };

static uint64_t cpu_us(void *ctx)
{
    (void)ctx;
    return 0;
}

static void boot_failed(struct sim_server *server, leat_err rc, const struct leat_error *error)
{
    struct scenario *scenario = server->scenario;
    snprintf(server->last_failure, sizeof server->last_failure, "%s: %s", leat_err_name(rc),
             error ? error->text : "");
    sim_trace(scenario->world, "server does not start: %s", server->last_failure);
    server->failed_boots++;
    if (server == scenario->victim && (server->corrupt || server->older) &&
        server->failed_boots >= 2)
        server->damage = SIM_DAMAGE_EMPTY;
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
    struct sim_server *server = owner;
    struct scenario *scenario = server->scenario;
    if (rc != LEAT_OK) {
        boot_failed(server, rc, error);
        sim_world_at(scenario->world, scenario->world->now_us + 1000, die_later, server->process);
        return;
    }
    sim_trace(scenario->world, "server ready on %s", address);
    server->ready = true;
    server->ready_us = sim_process_now_us(server->process);
    server->failed_boots = 0;
    scenario->watch->ready(server);
}

static void exit_now(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!server->process->alive) return;
    sim_fault_struck(world, SIM_FAULT_RESTART);
    /* leatd asks when all actors have ended, too: after on_stopped the node may still fence a writer, and the
     * fenced replicas are segments that memory alone has. */
    bool is_spent = leat_node_pool_is_spent(server->node);
    sim_process_die(server->process, SIM_DEATH_EXIT);
    if (is_spent) sim_arena_empty(server->arena);
}

static void on_stopped(void *owner, leat_err rc)
{
    struct sim_server *server = owner;
    struct sim_world *world = server->scenario->world;
    sim_trace(world, "server stopped: %s", leat_err_name(rc));
    /* The process leaves after this callback; what it queued for the network may still go. */
    sim_world_at(world, world->now_us + 500, exit_now, server);
}

/* In such a stage all nodes live, and nothing keeps one from the others for as long as a node is waited for. */
static bool nothing_has_struck(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (scenario->servers[i].boots > 1 || !scenario->servers[i].process->alive) return false;
    return scenario->stage && scenario->stage->gentle;
}

/* Declared crashed: leatd starts itself anew, without ceremony. */
static void on_crashed(void *owner)
{
    struct sim_server *server = owner;
    struct sim_world *world = server->scenario->world;
    if (nothing_has_struck(server->scenario))
        sim_fail(world,
                 "A10 stuck: %s was declared crashed, and nothing has kept it from the others",
                 server->name);
    sim_trace(world, "server was declared crashed");
    sim_world_at(world, world->now_us + 500, die_later, server->process);
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
    struct sim_server *server = arg;
    struct scenario *scenario = server->scenario;
    unsigned voter_count = 0;
    scenario->starting = server;
    while (voter_count < scenario->server_count && voter_count < SIM_VOTERS_MAX) {
        server->voters[voter_count] = scenario->servers[voter_count].node_address;
        voter_count++;
    }
    struct leat_node_options options = {
        .cores = scenario->cores,
        .name = server->name,
        .listen_address = server->address,
        .version = "simulated",
        .memory_bytes = scenario->memory_bytes,
        .heap_bytes = scenario->budget ? sim_budget_bytes : NULL,
        .heap_ctx = scenario,
        .auto_create = false,
        .hibernate_after_us = scenario->hibernate_after_us,
        .flush_delay_us = scenario->flush_delay_us,
        .raft_segment_bytes = scenario->raft_segment_bytes,
        .raft_snapshot_bytes_min = scenario->raft_snapshot_bytes_min,
        .scrub_bytes_per_second = scenario->scrubs ? SIM_SCRUB_BYTES_PER_SECOND : 0,
        .audit_us = scenario->audit_us,
        .core_envs = server->core_envs,
        .store_env = &server->store->env,
        .coordinator_env = &server->coordinator->env,
        .cpu_us = cpu_us,
        .on_ready = on_ready,
        .on_stopped = on_stopped,
        .on_crashed = on_crashed,
        .owner = server,
    };
    if (scenario->server_count > 1)
        options.cluster = (struct leat_node_cluster){.node_address = server->node_address,
                                                     .key = &scenario->key,
                                                     .advertise = server->address,
                                                     .host = server->host,
                                                     .replication = scenario->transport,
                                                     .baseline = &leat_transport_rpc,
                                                     .coordinators = server->voters,
                                                     .coordinator_count = voter_count};
    struct leat_error error = {LEAT_OK, ""};
    struct leat_kafka_options kafka = {.address = server->kafka_address};
    leat_err rc = leat_kafka_open(&kafka, &server->kafka);
    options.door = server->kafka;
    if (rc == LEAT_OK) rc = leat_node_create(&options, &server->node, &error);
    if (rc != LEAT_OK) {
        boot_failed(server, rc, &error);
        server->node = NULL;
    }
}

enum sim_death sim_death_of(const struct sim_server *server, enum sim_death death)
{
    const struct scenario *scenario = server->scenario;
    bool stays =
        !scenario->power_cuts || (scenario->power_domain && scenario->power_domain != server);
    return death == SIM_DEATH_POWER && stays ? SIM_DEATH_KILL : death;
}

static void on_death(struct sim_process *process, enum sim_death death)
{
    struct sim_server *server = process->owner;
    struct scenario *scenario = server->scenario;
    server->ready = server->stopping = false;
    if (death == SIM_DEATH_POWER) {
        LEAT_ASSERT(sim_death_of(server, death) == death || !scenario->power_domain);
        server->powered_us = scenario->world->now_us; /* the clock starts anew */
    }
    scenario->watch->died(server, death);
    uint64_t away_us_max = server->away_us_max ? server->away_us_max : 200000;
    server->away_us_max = 0;
    if (server->down_wanted) return;
    sim_server_boot_later(server, sim_rng_between(&scenario->world->fault, 500, away_us_max));
}

/* In one seed of four each machine's clock has a rate of its own. Two percent are more than a clock of a machine has:
 * what adds up in hours there shows within a seed. Nodes of one machine have one clock. */
static void clocks_draw(struct scenario *scenario, bool shared_machines)
{
    struct sim_rng rates;
    int32_t ppm[SIM_SERVERS_MAX];
    sim_rng_init(&rates, scenario->world->seed, "rates of clocks");
    if (!sim_rng_chance(&rates, 250)) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        ppm[i] = (int32_t)sim_rng_below(&rates, 2 * CLOCK_PPM_MAX + 1) - CLOCK_PPM_MAX;
        scenario->servers[i].clock_ppm = ppm[shared_machines ? i % 2 : i];
    }
    sim_fault_struck(scenario->world, SIM_FAULT_DRIFT);
}

void sim_servers_init(struct scenario *scenario, unsigned count)
{
    LEAT_ASSERT(count >= 1 && count <= SIM_SERVERS_MAX);
    scenario->server_count = count;
    struct sim_rng machines; /* its own: seeds stay what they were */
    sim_rng_init(&machines, scenario->world->seed, "machines");
    bool shared_machines = sim_rng_below(&machines, 3) == 0 || scenario->trap == SIM_TRAP_LEAVE;
    for (unsigned i = 0; i < count; i++) {
        struct sim_server *server = &scenario->servers[i];
        server->scenario = scenario;
        server->number = i;
        server->disk = sim_disk_create(scenario->world);
        server->arena = sim_arena_create(scenario->world, 4ull * LEAT_ARENA_STEP_BYTES);
        if (count == 1) {
            snprintf(server->name, sizeof server->name, "sim");
            snprintf(server->address, sizeof server->address, SIM_ADDRESS);
            snprintf(server->kafka_address, sizeof server->kafka_address, SIM_KAFKA_ADDRESS);
            snprintf(scenario->addresses, sizeof scenario->addresses, SIM_ADDRESS);
            continue;
        }
        snprintf(server->name, sizeof server->name, "node%u", i + 1);
        snprintf(server->address, sizeof server->address, "node%u:7700", i + 1);
        snprintf(server->node_address, sizeof server->node_address, "node%u:7701", i + 1);
        snprintf(server->kafka_address, sizeof server->kafka_address, "node%u:9092", i + 1);
        /* Two machines: copies that had to lie together move apart when nodes come back. */
        if (shared_machines) snprintf(server->host, sizeof server->host, "m%u", i % 2);
        size_t used = strlen(scenario->addresses);
        snprintf(scenario->addresses + used, sizeof scenario->addresses - used, "%s%s",
                 i ? "," : "", server->address);
        server->rmem_host = sim_rmem_host_create(scenario->world, server->name);
        /* Each disk tears in its own way. */
        sim_disk_reseed(server->disk, scenario->world->seed * SIM_SERVERS_MAX + i);
    }
    if (count > 1) clocks_draw(scenario, shared_machines);
}

/* Core 0 has the memory that others write into; every core writes into others'. */
static void rmem_attach(struct sim_server *server)
{
    if (!server->rmem_host) return;
    unsigned kinds = server->scenario->rmem_kinds;
    server->core_envs[0].rmem_host =
        sim_rmem_host_attach(server->rmem_host, server->cores[0], kinds);
    for (unsigned i = 0; i < server->scenario->cores; i++) {
        unsigned slot = 0;
        for (unsigned kind = LEAT_RMEM_SHM; kind <= LEAT_RMEM_VERBS; kind++)
            if (kinds & (1u << kind))
                server->core_envs[i].rmems[slot++] =
                    sim_rmem_create(server->cores[i], (enum leat_rmem_kind)kind);
    }
}

void sim_server_boot(struct sim_server *server)
{
    struct scenario *scenario = server->scenario;
    struct sim_world *world = scenario->world;
    if (server->process && server->process->alive) return;
    scenario->watch->boots(server);
    if (++server->boots > SIM_REBOOTS_MAX) {
        sim_fail(world, "A10 stuck: %u starts, the last refused: %s", server->boots,
                 server->last_failure);
        return;
    }
    char name[24];
    if (scenario->server_count == 1)
        snprintf(name, sizeof name, "server%u", server->boots);
    else
        snprintf(name, sizeof name, "%s.%u", server->name, server->boots);
    struct sim_process *process = sim_process_create(world, name);
    int64_t wall_jump_ms = server->process ? server->process->wall_jump_ms : 0;
    snprintf(process->host, sizeof process->host, "%s", server->name);
    process->disk = server->disk;
    process->arena = server->arena;
    process->rmem_host = server->rmem_host;
    process->owner = server;
    process->on_death = on_death;
    process->wall_jump_ms = wall_jump_ms;
    process->clock_offset_us = -(int64_t)server->powered_us;
    process->clock_ppm = server->clock_ppm;
    if (server->process) sim_process_memory_drop(server->process);
    server->process = process;
    server->ready = false;
    for (unsigned i = 0; i < scenario->cores; i++) {
        server->cores[i] = sim_actor_create(process, i);
        server->core_envs[i] = server->cores[i]->env;
    }
    rmem_attach(server);
    server->store = sim_actor_create(process, LEAT_ACTOR_STORE);
    server->coordinator = sim_actor_create(process, LEAT_ACTOR_COORDINATOR);
    server->node = NULL;
    scenario->watch->created(server);
    if (!sim_process_enter(process, create_node, server)) return;
    if (!server->node) {
        sim_process_die(process, SIM_DEATH_KILL);
        return;
    }
    for (unsigned i = 0; i < scenario->cores; i++)
        sim_actor_register(server->cores[i], leat_node_core(server->node, i), &leat_core_actor);
    sim_actor_register(server->store, leat_node_store(server->node), &leat_store_actor);
    sim_actor_register(server->coordinator, leat_node_coordinator(server->node),
                       &leat_coordinator_actor);
    scenario->watch->started(server);
    sim_actor_post(server->cores[0], 0, start_node, server->node);
}

static void boot_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!server->down_wanted) sim_server_boot(server);
    (void)world;
}

void sim_server_boot_later(struct sim_server *server, uint64_t delay_us)
{
    struct sim_world *world = server->scenario->world;
    sim_world_at(world, world->now_us + delay_us, boot_due, server);
}

void sim_server_stop(struct sim_server *server)
{
    if (!server->process || !server->process->alive || server->stopping) return;
    if (!server->ready) { /* as leatd: it ends at once, and its memory stays */
        sim_process_die(server->process, SIM_DEATH_KILL);
        return;
    }
    server->stopping = true;
    server->scenario->watch->stops(server);
    sim_actor_post(server->cores[0], 0, stop_node, server->node);
}
