/* SPDX-License-Identifier: Apache-2.0 */
/* How each log is, seen from inside: see truth.h.
 *
 * Nothing that reports, counts or keeps for reports is asked, but what the node itself acts by: the coordinators'
 * tables, the state of a log, its table of segments, and the copies of each. */
#include "tests/sim/truth.h"

#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "groups/probe.h"
#include "multilog/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/asks.h"

static struct leat_machine *machine_any(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (sim_serves(server) && leat_node_coordinator(server->node))
            return leat_coordinator_tables(leat_node_coordinator(server->node));
    }
    return NULL;
}

static const struct sim_server *server_named(struct scenario *scenario, const char *name)
{
    if (scenario->server_count == 1) return &scenario->servers[0];
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (strcmp(scenario->servers[i].name, name) == 0) return &scenario->servers[i];
    return NULL;
}

static bool partition_on(const struct sim_server *server, struct leat_log_ref ref,
                         struct leat_partition_seen *out_partition)
{
    return leat_node_partition_at(server->node, ref, out_partition) && out_partition->log &&
           !out_partition->going;
}

/* What is being copied is no copy yet. */
static bool is_whole(const struct leat_copy_seen *copy)
{
    return copy->state != LEAT_COPY_OPENING && !copy->incomplete;
}

static uint32_t whole_copies(const struct leat_set_seen *set)
{
    uint32_t count = 1;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        count += is_whole(&copy);
    }
    return count;
}

static uint32_t in_sync(struct scenario *scenario, const struct leat_set_seen *set)
{
    uint32_t count = 1;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        for (unsigned s = 0; s < scenario->server_count && is_whole(&copy); s++)
            count += sim_serves(&scenario->servers[s]) &&
                     leat_node_incarnation(scenario->servers[s].node) == copy.incarnation;
    }
    return count;
}

static void copies_look(struct scenario *scenario, const struct leat_primary_log *rep,
                        unsigned nodes_up, struct truth_log *out)
{
    const struct leat_primary_log_seen as = leat_primary_log_see(rep);
    out->copies = as.copies;
    out->whole = 0;
    for (unsigned active = 0; active < 2; active++) {
        struct leat_set_seen set = {0};
        while (leat_set_see_next(rep, !active, &set)) {
            if (set.started && !set.dropping) out->in_sync = in_sync(scenario, &set);
            if (!set.reserved || set.dropping) continue;
            out->whole = whole_copies(&set);
            bool own_corrupt = set.seg && leat_segment_is_damaged(set.seg);
            out->lacking += out->whole < out->copies || own_corrupt;
        }
    }
    out->below_min = nodes_up < as.min_copies;
}

static void partition_look(struct scenario *scenario, const struct leat_partition_seen *partition,
                           unsigned nodes_up, struct truth_log *out)
{
    struct leat_log *log = partition->log;
    struct leat_log_info info;
    struct leat_log_damage damage;
    uint64_t at = 0;
    leat_log_info(log, &info);
    out->served = true;
    out->state = info.state;
    out->first = info.first_offset;
    out->end = info.acked_offset;
    out->damaged = leat_log_damage_find(log, &at, &damage);
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    out->damaged |= seen.refused;
    out->full = seen.place_rc == LEAT_E_DISK_FULL && sim_disk_is_full(out->owner->disk);
    for (uint32_t i = 0; i < seen.segment_count; i++) {
        struct leat_log_segment_seen segment = leat_log_see_segment(log, i);
        out->passed |= segment.closed && segment.seg->passed_bytes > 0;
    }
    out->copies = out->whole = 1;
    if (partition->copies) copies_look(scenario, partition->copies, nodes_up, out);
}

static void log_look(struct scenario *scenario, struct leat_machine *machine,
                     const struct leat_machine_stream *stream, struct leat_log_ref ref,
                     struct truth_log *out)
{
    uint16_t owner = stream->owners[ref.streamlet];
    unsigned up = 0;
    *out = (struct truth_log){.ref = ref, .stream = stream->desc->name};
    if (owner == LEAT_OWNER_NONE) return;
    for (unsigned i = 0; i < scenario->server_count; i++)
        up += sim_serves(&scenario->servers[i]);
    out->owner = server_named(scenario, machine->nodes[owner].info.name);
    if (!out->owner || !sim_serves(out->owner)) return;
    struct leat_partition_seen partition;
    if (partition_on(out->owner, ref, &partition)) partition_look(scenario, &partition, up, out);
}

bool truth_each(struct scenario *scenario, void (*each)(void *arg, const struct truth_log *log),
                void *arg)
{
    struct leat_machine *machine = machine_any(scenario);
    if (!machine) return false;
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        const struct leat_machine_stream *stream = &machine->streams[i];
        uint32_t logs = stream->desc->settings.logs;
        for (uint32_t n = 0; n < stream->desc->streamlet_count * logs; n++) {
            struct truth_log log;
            log_look(scenario, machine, stream,
                     (struct leat_log_ref){stream->id, n / logs, n % logs}, &log);
            each(arg, &log);
        }
    }
    return true;
}

bool truth_find(struct scenario *scenario, struct leat_log_ref ref, struct truth_log *out)
{
    struct leat_machine *machine = machine_any(scenario);
    struct leat_machine_stream *stream;
    if (!machine || !leat_machine_log_find(machine, ref, &stream)) return false;
    log_look(scenario, machine, stream, ref, out);
    return true;
}

bool truth_is_troubled(const struct truth_log *log)
{
    if (!log->owner) return true;
    return log->served && (log->state != LEAT_LOG_SERVING || log->damaged);
}

void truth_home_find(struct scenario *scenario, const char *group, struct truth_home *out)
{
    struct leat_machine *machine = machine_any(scenario);
    *out = (struct truth_home){.known = false};
    for (uint32_t i = 0; machine && i < machine->stream_count; i++) {
        const struct leat_machine_stream *stream = &machine->streams[i];
        if (strcmp(stream->desc->name, LEAT_GROUPS_STREAM_NAME) != 0) continue;
        struct leat_log_ref ref = leat_groups_home_log(stream->id, stream->desc->settings.logs,
                                                       leat_groups_home(group, strlen(group)));
        struct truth_log log;
        log_look(scenario, machine, stream, ref, &log);
        out->known = true;
        out->owner = log.owner;
        if (!log.served || log.state != LEAT_LOG_SERVING || log.damaged) return;
        struct leat_partition_seen partition;
        if (partition_on(log.owner, ref, &partition)) out->groups = partition.groups;
    }
}

struct leat_group *truth_group_find(struct scenario *scenario, const char *group)
{
    struct truth_home home;
    truth_home_find(scenario, group, &home);
    return home.groups ? leat_groups_see_group(home.groups, group) : NULL;
}
