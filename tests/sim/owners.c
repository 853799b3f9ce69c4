/* SPDX-License-Identifier: Apache-2.0 */
/* The owners of streamlets, as the leader's tables have them, after each turn of the leader: other nodes may apply an
 * entry long after the leader. A streamlet goes from an owner that lives only when somebody has asked for that: the
 * streamlets that a recovery gives away were a dead node's when that was decided, and another node may serve them by
 * now (A1). */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/scenario.h"

enum {
    ROWS_MAX = 256,
    MOVE_US = 10 * 1000 * 1000, /* from when it is asked for to when it is there, at most */
};

/* As a node had them when it last looked. */
static struct {
    uint64_t changes;
    bool leads; /* and has applied all that was committed before */
    uint32_t count;
    struct {
        uint32_t stream, streamlet;
        uint64_t owner;
    } rows[ROWS_MAX];
} seen[SIM_SERVERS_MAX];

static uint64_t owner_before(unsigned server, uint32_t stream, uint32_t streamlet)
{
    for (uint32_t i = 0; i < seen[server].count; i++)
        if (seen[server].rows[i].stream == stream && seen[server].rows[i].streamlet == streamlet)
            return seen[server].rows[i].owner;
    return 0;
}

static bool is_wished(const struct scenario *scenario, uint32_t stream, uint32_t streamlet)
{
    uint64_t asked_us = scenario->move_us[stream][streamlet];
    return asked_us != 0 && scenario->world->now_us < asked_us + MOVE_US;
}

static void owner_see(const struct sim_server *server, struct leat_machine *machine, uint32_t id,
                      uint32_t streamlet, uint64_t owner)
{
    struct scenario *scenario = server->scenario;
    uint64_t before = owner_before(server->number, id, streamlet);
    uint32_t stream;
    if (before == 0 || before == owner || !sim_stream_of(scenario, id, &stream) ||
        !leat_machine_incarnation_lives(machine, before) || is_wished(scenario, stream, streamlet))
        return;
    sim_fail(scenario->world,
             "A1 lost-write: streamlet %u of %s goes from incarnation %llu, which lives, to %llu, "
             "and nobody asked for that",
             streamlet, scenario->streams[stream].name, (unsigned long long)before,
             (unsigned long long)owner);
}

void sim_owners_see(const struct sim_server *server)
{
    unsigned at = server->number;
    uint32_t count = 0;
    struct leat_coordinator *coordinator =
        server->node ? leat_node_coordinator(server->node) : NULL;
    if (!coordinator) return;
    const struct leat_coordinator_seen now = leat_coordinator_see(coordinator);
    struct leat_machine *machine = leat_coordinator_tables(coordinator);
    bool led = seen[at].leads;
    seen[at].leads = now.leads && now.ready;
    if (machine->changes == seen[at].changes) return;
    for (uint32_t i = 0; led && seen[at].leads && i < machine->stream_count; i++) {
        const struct leat_stream_desc *desc = machine->streams[i].desc;
        for (uint32_t s = 0; s < desc->streamlet_count; s++)
            owner_see(server, machine, desc->id, s, desc->streamlets[s].owner);
    }
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        const struct leat_stream_desc *desc = machine->streams[i].desc;
        for (uint32_t s = 0; s < desc->streamlet_count && count < ROWS_MAX; s++) {
            seen[at].rows[count].stream = desc->id;
            seen[at].rows[count].streamlet = s;
            seen[at].rows[count++].owner = desc->streamlets[s].owner;
        }
    }
    seen[at].count = count;
    seen[at].changes = machine->changes;
}

void sim_owners_forget(const struct sim_server *server)
{
    memset(&seen[server->number], 0, sizeof seen[server->number]);
}
