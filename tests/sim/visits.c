/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster seed has visited. All nodes are looked at every little while, in the lists that they walk
 * themselves, and once more when one dies. What was under way at the last look is not counted again. */
#include "tests/sim/visits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    VISITS_LEAST = 50,
    VISITS_SEEDS = 20000,
    LOOK_US = 1250,
    DEEP_EVERY = 2, /* calls, 5 ms apart */
    AFTER_RECOVER_US = 20 * 1000,
};

/* The visits that a look at replicas of other nodes' logs finds. */
#define BIT(id) (1ull << SIM_VISIT_##id)
static const uint64_t DEEP = BIT(FRONT_UNKNOWN) | BIT(LEAVE_AMID_FILL) | BIT(READ_AMID_ADOPTION) |
                             BIT(FENCE_AMID_ADOPTION) | BIT(TWO_OF_ONE) | BIT(PLACE_LEFT) |
                             BIT(TORN_ALONE) | BIT(VERSION_AMID_FENCE) | BIT(FENCED_LIVES) |
                             BIT(FENCED_WRITES) | BIT(FENCED_UNLED);

static const char *const names[] = {
#define SIM_VISIT_ROW(id, name, text) [SIM_VISIT_##id] = name,
#include "tests/sim/visits.def"
#undef SIM_VISIT_ROW
};

/* Of one node, just now. */
struct seen {
    uint64_t visits; /* bits */
    bool version, roll, hibernate, fill, drop, move, takeover, fence, adoption, provisional;
    bool recovers, commits;
};

static struct {
    bool looking;
    unsigned calls;
    uint64_t before[SIM_SERVERS_MAX];
    bool committed[SIM_SERVERS_MAX]; /* it was about to have a recovery's entry committed */
    bool drop_waits
        [SIM_SERVERS_MAX]; /* a replica's drop, while the node reads replicas for others */
    uint64_t recovered_us;
    unsigned fenced
        [SIM_SERVERS_MAX]; /* writers, of nodes that a recovery under way has looked at; + 1 */
} visits;                  /* of the one scenario of a process */

const char *sim_visit_name(enum sim_visit visit)
{
    return names[visit];
}

void sim_visited_add(struct sim_visited *to, const struct sim_visited *from)
{
    for (int i = 0; i < SIM_VISITS; i++)
        to->count[i] += from->count[i];
}

void sim_visits_print(const struct sim_visited *visited, bool zeros)
{
    printf("visits:");
    for (int i = 0; i < SIM_VISITS; i++)
        if (zeros || visited->count[i]) printf(" %s %" PRIu64, names[i], visited->count[i]);
    printf("\n");
}

/* 50 times in 20,000 seeds; where they are fewer, half of that share: chance brings less now and then. */
int sim_visits_rare(const struct sim_visited *visited, uint64_t seeds)
{
    uint64_t least = seeds * VISITS_LEAST / VISITS_SEEDS;
    int rare = 0;
    if (seeds < VISITS_SEEDS) least /= 2;
    for (int i = 0; i < SIM_VISITS; i++)
        if (visited->count[i] < least) {
            printf("leat-sim: %s was met %" PRIu64 " times, and at least %" PRIu64 " are wanted\n",
                   names[i], visited->count[i], least);
            rare++;
        }
    return rare;
}

static void met(struct scenario *scenario, enum sim_visit visit)
{
    struct sim_visited *visited = &scenario->visited;
    if (visited->count[visit]++ == 0) visited->first[visit] = scenario->world->event_count;
    sim_trace(scenario->world, "visit: %s", names[visit]);
}

static bool lives(const struct sim_server *server)
{
    return server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static void note(struct seen *seen, enum sim_visit visit, bool is)
{
    if (is) seen->visits |= 1ull << visit;
}

/* ---- an owner's logs ---- */

struct log_seen {
    unsigned open; /* sets that bytes may lie in, and that are not closed */
    bool roll, hibernate, resume, fill, drop, drop_amid_writes;
};

static void set_see(const struct leat_set_seen *set, struct log_seen *out)
{
    bool fill = false, writes = false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        fill |= copy.incomplete && copy.writes != 0;
        writes |= copy.writes != 0;
    }
    out->open += set->started && !set->closed && !set->dropping && !set->hibernated;
    out->roll |= set->closes || out->open > 1;
    out->hibernate |= set->hibernates;
    out->resume |= set->resumes;
    out->drop |= set->dropping;
    out->fill |= fill;
    out->drop_amid_writes |= set->dropping && writes;
}

static void log_see(const struct leat_primary_log *log, struct seen *seen)
{
    struct log_seen it = {0};
    struct leat_set_seen set = {0};
    while (leat_set_see_next(log, false, &set))
        set_see(&set, &it);
    if (!set.at) return;
    const struct leat_primary_log_seen as = leat_primary_log_see(log);
    bool version = as.held, moves = as.silent;
    note(seen, SIM_VISIT_DROP_AMID_WRITES, it.drop_amid_writes);
    note(seen, SIM_VISIT_ROLL_AMID_VERSION, version && it.roll);
    note(seen, SIM_VISIT_HIBERNATE_AMID_VERSION, version && it.hibernate);
    note(seen, SIM_VISIT_RESUME_AMID_VERSION, version && it.resume);
    note(seen, SIM_VISIT_FILL_AMID_VERSION, version && it.fill);
    note(seen, SIM_VISIT_FILL_AMID_ROLL, it.roll && it.fill);
    note(seen, SIM_VISIT_MOVE_AMID_VERSION, version && moves);
    note(seen, SIM_VISIT_MOVE_AMID_ROLL, it.roll && moves);
    seen->version |= version;
    seen->roll |= it.roll;
    seen->hibernate |= it.hibernate;
    seen->fill |= it.fill;
    seen->drop |= it.drop;
}

static bool front_is_unknown(const struct leat_log *log)
{
    struct leat_log_seen seen = {0};
    if (log) leat_log_see(log, &seen);
    if (!seen.front_unknown || seen.segment_count < 2) return false;
    const struct leat_segment *first = leat_log_see_segment(log, 0).seg;
    return first && first->next_offset == first->base_offset;
}

static void logs_see(const struct leat_primary *primary, struct seen *seen)
{
    const struct leat_primary_log *log = NULL;
    while ((log = leat_primary_log_next(primary, log)))
        log_see(log, seen);
}

/* A copy goes, and without it the segment has too few: another is made, or will be when the word has come. */
static bool leaves_amid_fill(const struct leat_set_seen *set, uint32_t copies)
{
    unsigned whole = 0;
    bool leaves = false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        leaves |= copy.leaves;
        whole += !copy.leaves && !copy.incomplete && copy.state != LEAT_COPY_OPENING;
    }
    return leaves && !set->dropping && whole + 1 < copies;
}

static void leaves_see(const struct leat_primary *primary, struct seen *seen)
{
    const struct leat_primary_log *log = NULL;
    while ((log = leat_primary_log_next(primary, log))) {
        uint32_t copies = leat_primary_log_see(log).copies;
        for (unsigned settled = 0; settled < 2; settled++) {
            struct leat_set_seen set = {0};
            while (leat_set_see_next(log, settled, &set))
                note(seen, SIM_VISIT_LEAVE_AMID_FILL, leaves_amid_fill(&set, copies));
        }
    }
}

static void fronts_see(const struct leat_node *node, struct seen *seen)
{
    struct leat_partition_seen at = {0};
    while (leat_node_log_next(node, &at))
        note(seen, SIM_VISIT_FRONT_UNKNOWN, front_is_unknown(at.log));
}

/* ---- what it keeps of others' ---- */

static bool has_another(const struct leat_backup *backup, const struct leat_segment *seg)
{
    struct leat_replica_seen other = {0};
    while (leat_backup_see_of(backup, seg->log, &other))
        if (other.seg != seg && other.seg->id.v == seg->id.v) return true;
    return false;
}

static bool has_segment(const struct sim_server *server, const struct leat_segment *seg)
{
    const struct leat_backup *backup = leat_node_backup(server->node);
    struct leat_replica_seen copy = {0};
    struct leat_partition_seen own;
    while (backup && leat_backup_see_of(backup, seg->log, &copy))
        if (copy.seg->id.v == seg->id.v) return true;
    return leat_node_partition_at(server->node, seg->log, &own) &&
           leat_log_see_id(own.log, seg->id.v).seg != NULL;
}

static bool is_alone(const struct sim_server *server, const struct leat_segment *seg)
{
    const struct scenario *scenario = server->scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other != server && lives(other) && has_segment(other, seg)) return false;
    }
    return true;
}

static void replica_see(const struct sim_server *server, const struct leat_replica_seen *rep,
                        struct seen *seen)
{
    const struct leat_backup *backup = leat_node_backup(server->node);
    const struct leat_segment *seg = rep->seg;
    bool serves = leat_backup_serving(backup) > 0;
    bool leaves = rep->leave || (rep->drop_wanted && rep->written);
    note(seen, SIM_VISIT_READ_AMID_ADOPTION, rep->adopting && serves);
    note(seen, SIM_VISIT_FENCE_AMID_ADOPTION, rep->adopting && rep->move_wanted);
    note(seen, SIM_VISIT_TWO_OF_ONE, rep->written && has_another(backup, seg));
    note(seen, SIM_VISIT_PLACE_LEFT, leaves && rep->writer.at && !rep->writer.fenced);
    note(seen, SIM_VISIT_TORN_ALONE,
         seg->integrity == LEAT_INTEGRITY_TORN && is_alone(server, seg));
    seen->adoption |= rep->adopting;
    seen->provisional |= seg->provisional;
}

static void backup_see(const struct sim_server *server, struct seen *seen)
{
    const struct leat_backup *backup = leat_node_backup(server->node);
    struct leat_replica_seen rep = {0};
    seen->fence |= leat_backup_moving(backup) > 0;
    while (leat_backup_see_next(backup, &rep))
        if (rep.seg) replica_see(server, &rep, seen);
}

/* Between two looks a read ends: it takes 0.2 ms where the disk does not stand still. So each turn of the backup's core
 * is looked at. */
static void turn_see(struct sim_actor *actor)
{
    const struct sim_server *server = actor->process->owner;
    struct scenario *scenario = server->scenario;
    const struct leat_backup *backup = server->node ? leat_node_backup(server->node) : NULL;
    struct leat_replica_seen rep = {0};
    bool waits = false;
    if (!backup || !visits.looking || scenario->faults_over) return;
    while (leat_backup_serving(backup) > 0 && !waits && leat_backup_see_next(backup, &rep))
        waits = rep.seg && rep.drop_wanted && !rep.dropping;
    if (waits && !visits.drop_waits[server->number]) met(scenario, SIM_VISIT_READ_AMID_DROP);
    visits.drop_waits[server->number] = waits;
}

void sim_visits_watch(struct sim_server *server)
{
    visits.drop_waits[server->number] = false;
    server->cores[0]->after_turn = turn_see;
}

/* ---- who is fenced, and lives ---- */

static bool reaches(const struct sim_server *from, const struct sim_server *to)
{
    return sim_net_cut_until(from->process, to->process) == 0;
}

static bool writes_to(const struct sim_server *server, const char *name)
{
    const struct scenario *scenario = server->scenario;
    for (uint32_t c = 0; c < scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(server->node, c);
        struct leat_peer_seen peer = {0};
        while (leat_peer_see_next(primary, &peer))
            if (strcmp(peer.node, name) == 0 && peer.writes) return true;
    }
    return false;
}

static const struct sim_server *leader_of(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        const struct leat_coordinator *it =
            lives(server) ? leat_node_coordinator(server->node) : NULL;
        if (it && leat_coordinator_see(it).recovers) return server;
    }
    return NULL;
}

static void fenced_see(const struct sim_server *server, const struct leat_backup *backup,
                       struct seen *seen)
{
    const struct scenario *scenario = server->scenario;
    struct leat_writer_seen writer = {0};
    while (leat_backup_see_writer(backup, &writer)) {
        for (unsigned i = 0; i < scenario->server_count && writer.fenced; i++) {
            const struct sim_server *other = &scenario->servers[i];
            if (!lives(other) || strcmp(leat_node_name(other->node), writer.node) != 0) continue;
            const struct leat_coordinator *of = leat_node_coordinator(other->node);
            if (!of || leat_coordinator_see(of).incarnation != writer.incarnation) continue;
            const struct sim_server *leader = leader_of(scenario);
            note(seen, SIM_VISIT_FENCED_LIVES, true);
            note(seen, SIM_VISIT_FENCED_WRITES, writes_to(other, leat_node_name(server->node)));
            note(seen, SIM_VISIT_FENCED_UNLED,
                 leader && leader != server && reaches(other, server) && !reaches(other, leader));
        }
    }
}

/* ---- who is fenced after a look ---- */

/* Has this node told the leader, whose recovery is under way, of its replicas? */
static bool was_looked_at(const struct sim_server *server, const struct sim_server *leader)
{
    const struct leat_coordinator *it = leat_node_coordinator(leader->node);
    const struct leat_machine *tables = leat_coordinator_tables(it);
    for (uint32_t i = 0; i < tables->node_count; i++)
        if (strcmp(tables->nodes[i].info.name, leat_node_name(server->node)) == 0)
            return leat_attempt_answered(it, i);
    return false;
}

static void fences_see(const struct sim_server *server, const struct sim_server *leader,
                       struct seen *seen)
{
    const struct leat_backup *backup = leat_node_backup(server->node);
    unsigned *before = &visits.fenced[server->number], fenced = 1;
    if (!leader || !backup || !was_looked_at(server, leader)) {
        *before = 0;
        return;
    }
    struct leat_writer_seen writer = {0};
    while (leat_backup_see_writer(backup, &writer))
        fenced += writer.fenced;
    note(seen, SIM_VISIT_FENCE_AFTER_LOOK, *before && fenced > *before);
    *before = fenced;
}

static const struct sim_server *recovering(const struct scenario *scenario, const struct seen *seen)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (seen[i].recovers) return &scenario->servers[i];
    return NULL;
}

/* ---- a node ---- */

static void kept_see(const struct sim_server *server, struct seen *seen)
{
    const struct leat_node *node = server->node;
    const struct leat_backup *backup = leat_node_backup(node);
    fronts_see(node, seen);
    for (uint32_t c = 0; c < server->scenario->cores; c++)
        leaves_see(leat_node_primary(node, c), seen);
    if (!backup) return;
    backup_see(server, seen);
    fenced_see(server, backup, seen);
}

static void server_see(const struct sim_server *server, struct seen *seen)
{
    struct leat_node *node = server->node;
    *seen = (struct seen){0};
    for (uint32_t c = 0; c < server->scenario->cores; c++)
        logs_see(leat_node_primary(node, c), seen);
    seen->move = leat_node_handing_over(node) > 0;
    seen->takeover = leat_node_taking_over(node);
    const struct leat_coordinator *coordinator = leat_node_coordinator(node);
    if (!coordinator) return;
    enum leat_recovery_phase phase = leat_coordinator_see(coordinator).phase;
    seen->recovers = phase != LEAT_RECOVERY_NONE;
    seen->commits = phase == LEAT_RECOVERY_COMMIT;
}

/* ---- all of them ---- */

/* deep: also at what nodes keep of others', which is much and changes seldom. */
static void look(struct scenario *scenario, bool deep)
{
    struct seen seen[SIM_SERVERS_MAX];
    struct seen any = {0};
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        seen[i] = (struct seen){0};
        if (lives(server)) server_see(server, &seen[i]);
        if (lives(server) && deep) kept_see(server, &seen[i]);
        if (visits.committed[i] && !seen[i].commits && lives(server))
            visits.recovered_us = scenario->world->now_us;
        visits.committed[i] = seen[i].commits;
        any.version |= seen[i].version;
        any.recovers |= seen[i].recovers;
    }
    const struct sim_server *leader = any.recovers ? recovering(scenario, seen) : NULL;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        if (lives(&scenario->servers[i])) fences_see(&scenario->servers[i], leader, &seen[i]);
        note(&seen[i], SIM_VISIT_VERSION_AMID_FENCE, seen[i].fence && any.version);
        note(&seen[i], SIM_VISIT_MOVE_AMID_RECOVERY, seen[i].move && any.recovers);
        for (uint64_t left = seen[i].visits & ~visits.before[i]; left; left &= left - 1)
            met(scenario, (enum sim_visit)__builtin_ctzll(left));
        visits.before[i] = seen[i].visits | (deep ? 0 : visits.before[i] & DEEP);
    }
}

void sim_visits_start(struct scenario *scenario)
{
    memset(&visits, 0, sizeof visits);
    visits.looking = true;
    sim_waits_start();
    (void)scenario;
}

void sim_visits_look(struct scenario *scenario, uint64_t until_us)
{
    struct sim_world *world = scenario->world;
    if (!visits.looking || scenario->faults_over) return;
    bool deep = visits.calls++ % DEEP_EVERY == 0;
    look(scenario, deep);
    if (deep) sim_waits_look(scenario);
    while (world->now_us + LOOK_US < until_us && !world->failure[0]) {
        sim_world_run(world, world->now_us + LOOK_US, NULL);
        look(scenario, false);
    }
}

static bool another_has_provisional(const struct sim_server *than)
{
    struct scenario *scenario = than->scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        struct seen seen;
        if (server == than || !lives(server)) continue;
        seen = (struct seen){0};
        kept_see(server, &seen);
        if (seen.provisional) return true;
    }
    return false;
}

void sim_visits_death(struct sim_server *server, enum sim_death death)
{
    struct scenario *scenario = server->scenario;
    struct seen seen;
    if (!server->node || !leat_node_has_cores(server->node)) return;
    server_see(server, &seen);
    kept_see(server, &seen);
    if (seen.roll) met(scenario, SIM_VISIT_DEATH_AMID_ROLL);
    if (seen.hibernate) met(scenario, SIM_VISIT_DEATH_AMID_HIBERNATE);
    if (seen.fill) met(scenario, SIM_VISIT_DEATH_AMID_FILL);
    if (seen.drop) met(scenario, SIM_VISIT_DEATH_AMID_DROP);
    if (seen.takeover) met(scenario, SIM_VISIT_DEATH_AMID_TAKEOVER);
    if (seen.fence) met(scenario, SIM_VISIT_DEATH_AMID_FENCE);
    if (seen.adoption) met(scenario, SIM_VISIT_DEATH_AMID_ADOPTION);
    visits.before[server->number] = 0;
    if (death != SIM_DEATH_POWER) return;
    if (another_has_provisional(server)) met(scenario, SIM_VISIT_POWER_AMID_PROVISIONAL);
    if (visits.recovered_us && scenario->world->now_us < visits.recovered_us + AFTER_RECOVER_US)
        met(scenario, SIM_VISIT_POWER_AFTER_RECOVER);
}
