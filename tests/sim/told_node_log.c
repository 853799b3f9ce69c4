/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes' own logs (base/node_log.h) are checked like data (A13), from level WARN on.
 * - For trouble that lasts until somebody asks (told.c) the owner has written, in this life of the owner, a line with
 *   the log's name: that the log waits, that it takes no more appends, or what of the log is damaged or missing; for a
 *   disk without space, that appends which need a segment are refused.
 * - While the cluster is quiet no line says that a log waits or takes no appends unless the log does.
 * - Where no bit flips, no power goes and no disk fails no line says that anything is damaged.
 * Lines that are many are summed up (leat_node_log_summed()). From a node that had as many within this time, once in
 * its life, no line is expected: trouble that began then is named by no later line. */
#include "tests/sim/told.h"

#include <stdio.h>
#include <string.h>

#include "base/node_log.h"
#include "broker/probe.h"
#include "multilog/probe.h"
#include "tests/sim/truth.h"

enum {
    WORDS_WAIT = 1,   /* a log waits, or takes no appends */
    WORDS_DAMAGE = 2, /* bytes are damaged, or missing */
    NAME_BYTES = 24,
};

static struct {
    struct scenario *scenario;
    bool quiet;
    unsigned boots[SIM_SERVERS_MAX]; /* what follows is of that life */
    /* The last lines that may be followed by a sum in place of a line, and whether any were so many. */
    uint64_t lines_us[SIM_SERVERS_MAX][LEAT_NODE_LOG_SUM_LINES];
    unsigned lines[SIM_SERVERS_MAX];
    bool summed[SIM_SERVERS_MAX];
    bool full[SIM_SERVERS_MAX];
    bool named[SIM_SERVERS_MAX][SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
} node_log;

static void begin(struct scenario *scenario)
{
    if (node_log.scenario != scenario)
        memset(&node_log, 0, sizeof node_log); /* nobody has written anything */
    node_log.scenario = scenario;
}

static const struct sim_server *writer_of(const struct scenario *scenario)
{
    const struct sim_actor *running = scenario->world->running;
    for (unsigned i = 0; running && i < scenario->server_count; i++)
        if (scenario->servers[i].process == running->process) return &scenario->servers[i];
    return running ? NULL : scenario->starting;
}

static void life_note(const struct sim_server *server)
{
    unsigned at = server->number;
    if (node_log.boots[at] == server->boots) return;
    node_log.boots[at] = server->boots;
    node_log.lines[at] = 0;
    node_log.summed[at] = false;
    node_log.full[at] = false;
    memset(node_log.named[at], 0, sizeof node_log.named[at]);
}

/* Which of the scenario's logs a line names; log.stream: the scenario's. */
static bool log_named(const struct scenario *scenario, const char *line, struct leat_log_ref *out)
{
    char name[NAME_BYTES + 1];
    const char *at;
    unsigned id;
    for (at = line; (at = strstr(at, "log ")) != NULL; at++)
        if (sscanf(at, "log %u/%u/%u", &id, &out->streamlet, &out->log) == 3)
            return sim_stream_of(scenario, id, &out->stream);
    at = strstr(line, "stream ");
    if (!at) return false;
    if (sscanf(at, "stream %u, streamlet %u, log %u", &id, &out->streamlet, &out->log) == 3 ||
        sscanf(at, "stream %u streamlet %u log %u", &id, &out->streamlet, &out->log) == 3)
        return sim_stream_of(scenario, id, &out->stream);
    if (sscanf(at, "stream \"%24[^\"]\", streamlet %u, log %u", name, &out->streamlet, &out->log) !=
        3)
        return false;
    for (out->stream = 0; out->stream < SIM_STREAMS; out->stream++)
        if (strcmp(scenario->streams[out->stream].name, name) == 0) return true;
    return false;
}

static unsigned words_of(const char *line)
{
    static const char *const damage[] = {"damaged",         "missing",
                                         "are not there",   "reads in front of segment",
                                         "did not survive", "the rest can be read"};
    /* What a leader's attempt has come to: the next one may have ended well by now. */
    if (strncmp(line, "recovery ", strlen("recovery ")) == 0) return 0;
    unsigned words =
        strstr(line, " waits: ") || strstr(line, "takes no more appends") ? WORDS_WAIT : 0;
    /* Said of how a write ends that a kill cut, as that can't be told from damage. */
    bool cut = strstr(line, "or its last write had not ended") || strstr(line, "are passed over");
    for (size_t i = 0; !cut && i < sizeof damage / sizeof *damage; i++)
        if (strstr(line, damage[i])) words |= WORDS_DAMAGE;
    return words;
}

/* Nothing that was written there can be anything else. */
bool sim_told_is_unharmed(const struct scenario *scenario)
{
    bool harmed = scenario->server_count == 1 || scenario->victim || scenario->rows_rot ||
                  scenario->trap == SIM_TRAP_UNASKED || scenario->trap == SIM_TRAP_LOSS ||
                  scenario->world->faults[SIM_FAULT_IO_ERROR] > 0;
    for (unsigned i = 0; i < scenario->server_count; i++)
        harmed |= scenario->servers[i].powered_us > 0;
    return !harmed;
}

static void line_judge(struct scenario *scenario, const struct sim_server *writer,
                       struct leat_log_ref log, unsigned words, const char *line)
{
    struct truth_log truth;
    struct leat_log_ref ref = log;
    ref.stream = scenario->streams[log.stream].id;
    if (!node_log.quiet || !(words & WORDS_WAIT) || !truth_find(scenario, ref, &truth)) return;
    if (truth.served && truth.owner == writer && !truth_is_troubled(&truth))
        sim_fail(scenario->world, "A13 told: log %u/%u of %s serves, and %s writes: %.200s",
                 ref.streamlet, ref.log, truth.stream, writer->name, line);
}

/* So many within the time for which a node counts them, by a clock that may be slower: the next one it sums up. */
static void line_count(const struct scenario *scenario, unsigned at)
{
    uint64_t now_us = scenario->world->now_us, *times_us = node_log.lines_us[at];
    times_us[node_log.lines[at]++ % LEAT_NODE_LOG_SUM_LINES] = now_us;
    uint64_t since_us = now_us - times_us[node_log.lines[at] % LEAT_NODE_LOG_SUM_LINES];
    if (node_log.lines[at] >= LEAT_NODE_LOG_SUM_LINES &&
        since_us <= LEAT_NODE_LOG_SUM_US + LEAT_NODE_LOG_SUM_US / 20)
        node_log.summed[at] = true;
}

void sim_node_log_line(struct scenario *scenario, enum leat_node_log_level level, const char *line)
{
    struct leat_log_ref log;
    begin(scenario);
    const struct sim_server *writer = writer_of(scenario);
    if (!writer || level > LEAT_NODE_LOG_WARN) return;
    life_note(writer);
    unsigned words = words_of(line);
    node_log.full[writer->number] |= strstr(line, "no space left in the data directory") != NULL;
    if (!words) return;
    /* What is on a node that is away is missing, too. */
    bool away = strstr(line, "missing") || strstr(line, "are not there") ||
                strstr(line, "reads in front of segment");
    if ((words & WORDS_DAMAGE) && !away && sim_told_is_unharmed(scenario))
        sim_fail(scenario->world, "A13 told: nothing is damaged, and %s writes: %.200s",
                 writer->name, line);
    line_count(scenario, writer->number);
    if (!log_named(scenario, line, &log) || log.streamlet >= CHECK_STREAMLETS_MAX ||
        log.log >= CHECK_LOGS_MAX)
        return;
    node_log.named[writer->number][log.stream][log.streamlet][log.log] = true;
    line_judge(scenario, writer, log, words, line);
}

void sim_node_log_quiet(bool quiet)
{
    node_log.quiet = quiet;
}

void sim_node_log_full_look(struct scenario *scenario, const struct sim_server *server)
{
    if (node_log.scenario != scenario) return;
    life_note(server);
    if (!node_log.full[server->number] && !node_log.summed[server->number])
        sim_fail(scenario->world, "A13 told: the disk of %s is full, and it has not written so",
                 server->name);
}

/* Of what is told as missing. In front of where a log begins nobody misses anything. */
void sim_node_log_front_look(const struct sim_server *server, struct leat_log *log)
{
    struct leat_log_damage damage;
    struct leat_log_info info;
    struct leat_log_seen seen;
    uint64_t at = 0;
    leat_log_see(log, &seen);
    if (!seen.damage_look) return;
    leat_log_info(log, &info);
    while (leat_log_damage_find(log, &at, &damage))
        if (damage.missing && damage.first_offset < info.first_offset)
            sim_fail(server->scenario->world,
                     "A13 told: %s says that log id %u/%u/%u lacks records from %llu on, and it "
                     "begins at %llu",
                     server->name, info.ref.stream, info.ref.streamlet, info.ref.log,
                     (unsigned long long)damage.first_offset,
                     (unsigned long long)info.first_offset);
}

static void log_look(void *arg, const struct truth_log *log)
{
    struct leat_log_ref ref = log->ref;
    struct scenario *scenario = node_log.scenario;
    if (!log->served || !sim_stream_of(scenario, log->ref.stream, &ref.stream)) return;
    unsigned at = log->owner->number;
    life_note(log->owner);
    if (log->full && !node_log.full[at])
        sim_fail(scenario->world, "A13 told: %s: the disk of %s is full, and it has not written so",
                 (const char *)arg, log->owner->name);
    if (!truth_is_troubled(log) || node_log.summed[at]) return;
    if (!node_log.named[at][ref.stream][ref.streamlet][ref.log])
        sim_fail(scenario->world,
                 "A13 told: %s: log %u/%u of %s is in trouble (state %d, damaged %d), and %s has "
                 "not written so",
                 (const char *)arg, ref.streamlet, ref.log, log->stream, (int)log->state,
                 (int)log->damaged, log->owner->name);
}

void sim_node_log_loss_look(struct scenario *scenario, struct leat_log_ref log)
{
    struct truth_log truth;
    char when[] = "before its loss is accepted";
    struct leat_log_ref ref = {scenario->streams[log.stream].id, log.streamlet, log.log};
    begin(scenario);
    if (!truth_find(scenario, ref, &truth) || truth.state != LEAT_LOG_WAITING) return;
    truth.full = false; /* that is looked at when it is quiet */
    log_look(when, &truth);
}

void sim_node_log_look(struct scenario *scenario, const char *when)
{
    char text[80];
    snprintf(text, sizeof text, "%s", when);
    begin(scenario);
    (void)truth_each(scenario, log_look, text);
}
