/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until a condition holds, and the verdict of a wait that takes too long: A10. */
#include "tests/sim/scenario.h"

bool sim_run_until(struct scenario *scenario, bool (*holds)(struct scenario *), uint64_t limit_us)
{
    struct sim_world *world = scenario->world;
    uint64_t end_us = world->now_us + limit_us;
    while (world->now_us < end_us && !world->failure[0]) {
        if (holds(scenario)) return true;
        uint64_t next_us = world->now_us + 5000;
        sim_visits_look(scenario, next_us);
        sim_world_run(world, next_us, NULL);
    }
    return !world->failure[0] && holds(scenario);
}

/* The producers that still wait for an answer, and the last answer of each. */
static void producers_trace(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind != SIM_CLIENT_PRODUCER || !client->producer) continue;
        const struct leat_producer_engine_stats *stats =
            leat_producer_engine_stats(client->producer);
        sim_trace(
            scenario->world,
            "%s: %llu records open, %u to send, %llu batches acked, %llu appends, last %s: %s",
            client->process->name,
            (unsigned long long)leat_producer_engine_open_records(client->producer), client->quota,
            (unsigned long long)stats->batches_acked, (unsigned long long)stats->appends_sent,
            leat_err_name(stats->last_error), stats->last_text);
    }
}

void sim_stuck(struct scenario *scenario, const char *what)
{
    producers_trace(scenario);
    sim_fail(
        scenario->world,
        "A10 stuck: %s (%s %s): %u producers still have records, %llu records without an answer, "
        "server %s (%u starts%s%s)",
        what, scenario->waits_for ? scenario->waits_for : "-", scenario->behind,
        scenario->producers_running, (unsigned long long)check_open_count(scenario->check),
        scenario->servers[0].ready ? "ready" : "not ready", scenario->servers[0].boots,
        scenario->servers[0].last_failure[0] ? ", last refusal " : "",
        scenario->servers[0].last_failure);
}
