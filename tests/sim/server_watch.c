/* SPDX-License-Identifier: Apache-2.0 */
/* What checkers and faults do when a server starts or dies, and what a server's complaints excuse. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

/* A line that the server writes at its start is the other way for a log to say that data is gone: older segments may be
 * missing while the log's end is there. */
static void complaint(void *arg, const char *line)
{
    struct sim_server *server = arg;
    struct scenario *scenario = server->scenario;
    struct leat_log_ref log, ref;
    unsigned long long segment;
    bool io_error = scenario->world->faults[SIM_FAULT_IO_ERROR] != 0;
    sim_trace(scenario->world, "complaint: %s", line);
    if (scenario->corrupt) {
        sim_rot_complaint(scenario, line);
        return;
    }
    /* The damage is to be repaired all the same: readers say at the end whether it was. */
    if (scenario->closed_rot && (strstr(line, "truncated") || strstr(line, "is damaged:") ||
                                 strstr(line, ": damaged: only"))) /* its row was not closed yet */
        return;
    if (server == scenario->victim) { /* others have it */
        sim_damage_named(server);
        return;
    }
    /* A trap's own bits: another node has them whole, and the trap waits until they are made good. */
    if (server->corrupt && strstr(line, "is damaged:")) return;
    /* A disk that failed while the server came up takes a replica out of use, no bytes. */
    if (strstr(line, "cannot be") && io_error) return;
    if (sscanf(line, "segment %llu of log %u/%u/%u:", &segment, &log.stream, &log.streamlet,
               &log.log) != 4)
        return;
    ref = log;
    if (!sim_stream_of(scenario, log.stream, &log.stream) || log.stream >= SIM_STREAMS) return;
    /* Somebody else's copy: others are left. */
    if (scenario->server_count > 1 && !sim_copies_owns(scenario, server, log)) return;
    /* SUBTLE: this may also be so where the log is this node's by now. (1) X dies, and B is to move the replica that X
     * wrote to memory of its own. (2) B's disk refuses the row, which goes on naming X's memory; this memory goes. (3)
     * B gets the streamlet, as another log of it was decided, and dies. (4) The memory that the row names is gone. X
     * has the segment. */
    if (io_error && sim_copies_written_elsewhere(server, ref, segment)) return;
    if (scenario->power_domain) return; /* nor is the server alone with what it lost */
    check_waiting(scenario->check, log, line);
}

static void on_ready(struct sim_server *server)
{
    leat_node_complaints(server->node, complaint, server);
    sim_nodes_grace_set(server);
}

static void on_created(struct sim_server *server)
{
    if (server->scenario->server_count == 1) return;
    sim_aim_first_boot(server);
    sim_aim_identity_boot(server);
    sim_aim_hold_boot(server);
}

static void on_stops(struct sim_server *server)
{
    if (server->scenario->server_count > 1) sim_aim_hold_stop(server);
}

static void on_started(struct sim_server *server)
{
    if (server->scenario->server_count == 1) return;
    sim_attempts_watch(server);
    sim_visits_watch(server);
}

static void on_died(struct sim_server *server, enum sim_death death)
{
    struct scenario *scenario = server->scenario;
    sim_copies_note(scenario, server);
    if (scenario->server_count > 1) {
        sim_copies_death(scenario, server);
        sim_amid_count(server);
        sim_visits_death(server, death);
        sim_damage_on_death(server);
    }
    /* A file whose flush failed may lose what the cache had, the catalogue's rows too: what a log
     * of level memory knows of itself. */
    if (sim_disk_lost_flush(server->disk)) check_power_cut(scenario->check);
    /* Records that one machine had in memory are in the memory of others, too. */
    if (death == SIM_DEATH_POWER && !scenario->power_domain) check_power_cut(scenario->check);
    if (scenario->server_count > 1) sim_copies_check(scenario);
}

const struct sim_server_watch sim_server_watch = {
    .boots = sim_damage_apply,
    .created = on_created,
    .started = on_started,
    .ready = on_ready,
    .stops = on_stops,
    .died = on_died,
};
