/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed draws before it begins: its streams, and for a cluster how its nodes reach each other and which faults
 * may happen. brief.c and trap.c choose the kind of seed. */
#include <stdio.h>

#include "tests/sim/scenario.h"

void sim_streams_choose(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    const struct sim_trap_needs *needs = sim_trap_needs(scenario);
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_stream *stream = &scenario->streams[i];
        /* 0: disk; 1: memory; 2: disk that trims; 3: either */
        bool memory = i == 1 || (i == 3 && sim_rng_chance(rng, 500));
        uint32_t copies = scenario->server_count > 1 ? 1 + (uint32_t)sim_rng_below(rng, 3) : 1;
        if (scenario->victim) { /* what one loses others have: on their disks, if they lose power */
            if (copies == 1) copies = 2;
            if (scenario->power_cuts) memory = false;
        }
        if ((scenario->power_domain || needs->copies_min > 1) && copies == 1) copies = 2;
        if (needs->copies) copies = needs->copies;
        if (needs->on_disk || needs->in_memory) memory = needs->in_memory;
        /* Of clusters some have few logs: their segments fill up. */
        bool few = scenario->closed_rot || scenario->rows_rot || needs->few_logs ||
                   (scenario->brief && sim_rng_chance(rng, 600)) ||
                   (scenario->hard && sim_rng_chance(rng, 500));
        snprintf(stream->name, sizeof stream->name, "stream-%u", i);
        stream->trims = i == 2;
        stream->settings = (struct leat_stream_settings){
            .streamlets = (uint32_t)sim_rng_between(rng, 1, few ? 1 : CHECK_STREAMLETS_MAX),
            .logs = (uint32_t)sim_rng_between(rng, 1, few ? 2 : CHECK_LOGS_MAX),
            .copies = copies,
            .durability = memory ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK,
            .segment_bytes_max = sim_rng_chance(rng, 700) ? 16 * 1024 : 64 * 1024,
            .retention_ms = i % 2 ? 24 * 3600 * 1000 : -1, /* longer than any run */
            .retention_bytes = stream->trims ? 48 * 1024 : -1,
        };
        if (needs->one_log) stream->settings.logs = 1;
        check_stream_add(scenario->check, i, stream->settings.streamlets, stream->settings.logs,
                         stream->settings.durability, stream->trims,
                         stream->trims ? (uint64_t)stream->settings.retention_bytes : 0);
    }
}

/* In some seeds the power of one machine alone goes: level memory loses nothing then. */
static void power_domain_choose(struct scenario *scenario)
{
    enum { POWER_DOMAIN_PER_MILLE = 250 };
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "cord"); /* another word: other seeds have it */
    if (!scenario->power_cuts || scenario->victim) return;
    if (!sim_rng_chance(&rng, POWER_DOMAIN_PER_MILLE)) return;
    scenario->power_domain = &scenario->servers[sim_rng_below(&rng, scenario->server_count)];
}

void sim_cluster_choose(struct scenario *scenario)
{
    static const struct {
        enum leat_rmem_kind only;
        unsigned kinds;
    } choices[] = {
        {LEAT_RMEM_NONE, 1u << LEAT_RMEM_VERBS},
        {LEAT_RMEM_VERBS, 1u << LEAT_RMEM_VERBS},
        {LEAT_RMEM_NONE, 1u << LEAT_RMEM_SHM},
        {LEAT_RMEM_SHM, 1u << LEAT_RMEM_SHM},
        {LEAT_RMEM_NONE, 0},
        {LEAT_RMEM_RPC, 0},
    };
    struct sim_rng *rng = &scenario->world->work;
    unsigned choice = (unsigned)sim_rng_below(rng, sizeof choices / sizeof *choices);
    scenario->transport = choices[choice].only;
    scenario->rmem_kinds = choices[choice].kinds;
    scenario->pause_us_max = sim_rng_between(rng, 17000, 130000);
    if (scenario->hard && sim_rng_chance(rng, 400))
        scenario->world->rmem_slow_per_mille = (uint32_t)sim_rng_between(rng, 1, 10);
    if (scenario->hard && sim_rng_chance(rng, 500)) scenario->value_bytes = 1600;
    scenario->world->silent_power = true;
    if (scenario->trap == SIM_TRAP_STAGE) return;
    if (scenario->trap == SIM_TRAP_FILL || scenario->trap == SIM_TRAP_LEAVE) {
        if (scenario->trap == SIM_TRAP_FILL) sim_trap_fill_set(scenario);
        if (scenario->trap == SIM_TRAP_LEAVE) sim_trap_leave_set(scenario);
        return;
    }
    sim_damage_choose(scenario);
    sim_rows_choose(scenario);
    power_domain_choose(scenario);
    if (scenario->closed_rot || scenario->rows_rot)
        scenario->value_bytes = 1600; /* many segments are closed */
    scenario->move_per_mille =
        sim_rng_chance(rng, 500) ? (uint32_t)sim_rng_between(rng, 10, 500) : 0;
}
