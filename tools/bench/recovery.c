/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench recovery: a cluster of its own, an owner that dies, and how long which step takes. */
#include "tools/bench/recovery.h"
#include "tools/bench/bench.h"
#include "tools/bench/servers.h"
#include "tools/leat/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

static const char help[] =
    "Usage: leat bench recovery [OPTION...]\n"
    "\n"
    "Starts a cluster on this machine, stores records, kills the node that serves them while a\n"
    "producer and a consumer go on, and prints the time of each step until the next ack.\n"
    "\n"
    "  --stored SIZE        records in one log (default 100M); the disk takes SIZE times the\n"
    "                       copies\n"
    "  --copies N           (default 3)\n"
    "  --nodes N            (default 4, three of them vote)\n"
    "  --trials N           (default 5)\n"
    "  --how HOW            kill (kill -9; default), leader (kill -9 of the owner that leads\n"
    "                       the coordinators too), stop (SIGSTOP, SIGCONT afterwards)\n"
    "  --replicated         also wait until all lost copies are made again (a minute and more),\n"
    "                       and print how long appends take meanwhile\n"
    "  --durability LEVEL   memory (default) or disk\n"
    "  --replication KIND   auto (default), shm, tcp, verbs; rpc, with --leatd .../leatd-rpc\n"
    "  --memory SIZE        of each server (default 512M)\n"
    "  --dir DIR            directory of the data (default /var/tmp); removed at the end\n"
    "  --keep               keep the data, and the log of each node\n"
    "  --leatd PATH         (default: beside this program)\n"
    "  --json FILE          write the figures as JSON ('-': stdout)\n";

enum {
    STORE_RECORD_BYTES = 1000,
    WELL_MS = 120 * 1000,
    REPLICATED_MS = 30 * 60 * 1000,
    POLL_MS = 20,
    QUIET_MS = 1000, /* of light load, before each trial */
    QUIET_LONG_MS =
        5000,        /* likewise, where appends are compared with those while copies are made */
    DYING_US = 2000, /* a process that is killed runs on for a moment, and may still answer */
};
#define STREAM "bench"

/* ---- what is stored ---- */

static void on_stored(void *arg, const leat_result *result)
{
    if (result->code) atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

static int store(const struct recovery_options *o, const char *brokers)
{
    struct leat_stream_settings settings = {
        .streamlets = 1, .logs = 1, .copies = (uint32_t)o->copies};
    struct cli_answer answer;
    int code = cli_durability_parse(o->durability, &settings.durability);
    if (code) return code;
    if (cli_stream_create(STREAM, &settings, &answer)) return cli_refused(&answer);
    cli_answer_fini(&answer);
    leat_producer_options options;
    leat_producer_options_init(&options);
    options.brokers = brokers;
    options.batch_bytes = 512 * 1024;
    leat_message message;
    leat_producer *producer = leat_producer_open(&options, &message);
    if (!producer) {
        cli_error("%s", message.text);
        return CLI_FAILED;
    }
    _Atomic uint64_t failed = 0;
    uint64_t count = o->stored / STORE_RECORD_BYTES;
    char value[STORE_RECORD_BYTES], stored[32], all[32];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)('a' + i % 26);
    leat_produce_record record = {.value = value, .value_bytes = sizeof value, .streamlet = -1};
    for (uint64_t i = 0; i < count && !cli_interrupted() && code == CLI_OK; i++) {
        if (leat_produce(producer, STREAM, &record, on_stored, &failed)) code = CLI_FAILED;
        if (i % 65536 == 0)
            cli_progress("storing: %s of %s",
                         cli_bytes_text((double)i * STORE_RECORD_BYTES, stored),
                         cli_bytes_text((double)o->stored, all));
    }
    uint64_t open = leat_producer_flush(producer, 120000);
    leat_producer_close(producer);
    cli_progress_end();
    if (cli_interrupted()) return CLI_FAILED;
    if (code == CLI_OK && !open && !atomic_load(&failed)) return CLI_OK;
    cli_error("%" PRIu64 " records could not be stored", open + atomic_load(&failed));
    return CLI_FAILED;
}

/* ---- asking ---- */

static struct leat_cluster_told cluster; /* large */
static struct cli_answer cluster_answer;

/* Of all but one; the answer is to be given back. */
static bool ask(struct bench_servers *servers, uint32_t without)
{
    cli_disconnect(); /* the node that was asked last may be the node that died */
    cli_brokers = bench_servers_brokers(servers, without);
    return cli_cluster_get(&cluster, &cluster_answer, true) == CLI_OK;
}

/* All nodes but one are up, and no recovery runs; out_lacking: segments and logs that lack a copy. */
static bool is_well(const struct bench_servers *servers, uint32_t without, uint64_t *out_lacking)
{
    bool well =
        cluster.head.leader_address.bytes && !cluster.recovery.phase && !cluster.recovery.waiting;
    uint64_t logs = 0;
    *out_lacking = 0;
    for (uint32_t i = 0; i < cluster.node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster.nodes[i];
        bool wanted =
            (uint32_t)bench_servers_find(servers, node->name.text, node->name.bytes) != without;
        if (!wanted) continue;
        well = well && node->state == 1 && node->report.known && !node->report.logs_below_min;
        *out_lacking += node->report.logs_under_replicated + node->report.segments_under_replicated;
        logs += node->report.logs;
    }
    return well && logs > 0;
}

static bool well_wait(struct bench_servers *servers, uint32_t without, bool whole, int ms)
{
    uint64_t deadline = leat_shared_now_us(NULL) + (uint64_t)ms * 1000;
    while (leat_shared_now_us(NULL) < deadline && !cli_interrupted()) {
        bool well = false;
        uint64_t lacking = 0;
        if (ask(servers, without)) {
            well = is_well(servers, without, &lacking) && (!whole || lacking == 0);
            cli_answer_fini(&cluster_answer);
        }
        if (well) return true;
        (void)poll(NULL, 0, whole ? 10 * POLL_MS : POLL_MS);
    }
    return false;
}

/* Waits until lost copies are made again. The time from the first to the last new copy is a measuring window of its
 * own. */
static bool copies_wait(struct bench_servers *servers, uint32_t without, struct bench_light *light)
{
    uint64_t deadline = leat_shared_now_us(NULL) + REPLICATED_MS * UINT64_C(1000), most = 0;
    while (leat_shared_now_us(NULL) < deadline && !cli_interrupted()) {
        bool well = false;
        uint64_t lacking = 0;
        if (ask(servers, without)) {
            well = is_well(servers, without, &lacking);
            cli_answer_fini(&cluster_answer);
        }
        if (well && lacking == 0) return true;
        if (lacking > most) most = lacking;
        if (well && lacking < most) atomic_store(&light->window, WINDOW_COPYING);
        (void)poll(NULL, 0, 10 * POLL_MS);
    }
    return false;
}

/* The owner of the log, and the leader: indices of servers, -1: unknown. */
static void roles(struct bench_servers *servers, int *out_owner, int *out_leader)
{
    *out_owner = *out_leader = -1;
    if (!ask(servers, UINT32_MAX)) return;
    for (uint32_t i = 0; i < cluster.node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster.nodes[i];
        int server = bench_servers_find(servers, node->name.text, node->name.bytes);
        if (node->streamlets) *out_owner = server;
        if (node->node_address.bytes &&
            node->node_address.bytes == cluster.head.leader_address.bytes &&
            memcmp(node->node_address.text, cluster.head.leader_address.text,
                   node->node_address.bytes) == 0)
            *out_leader = server;
    }
    cli_answer_fini(&cluster_answer);
}

static int move_to(const struct bench_server *server)
{
    uint8_t bytes[256];
    struct leat_msg_writer body;
    struct cli_answer answer;
    struct leat_msg_streamlet_move move = {
        {STREAM, sizeof STREAM - 1}, 0, {server->name, (uint32_t)strlen(server->name)}};
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_streamlet_move_write(&body, &move);
    if (cli_call(LEAT_KIND_STREAMLET_MOVE, &body, &answer)) return cli_refused(&answer);
    cli_answer_fini(&answer);
    return CLI_OK;
}

/* ---- node logs ---- */

/* "2026-01-02T03:04:05.678Z level text": milliseconds since 1970. */
static bool line_time(const char *line, int64_t *out_ms)
{
    struct tm tm = {0};
    const char *dot = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!dot || *dot != '.') return false;
    *out_ms = (int64_t)timegm(&tm) * 1000 + strtol(dot + 1, NULL, 10);
    return true;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static double number_after(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    return at ? strtod(at + strlen(words), NULL) / 1000 : -1;
}

/* Where that victim's crash is dealt with; times in ms. The first attempt that gives owners counts. */
struct reading {
    int64_t kill_ms, declared_ms, committed_ms, served_ms;
    double fence, collect, prepare, seal;
    char crashed[40];
};

static void line_read(struct reading *it, const char *line)
{
    int64_t at = 0;
    if (!line_time(line, &at) || at < it->kill_ms) return;
    if (strstr(line, "declared crashed:") && strstr(line, it->crashed) && !it->declared_ms)
        it->declared_ms = at;
    double fence = number_after(line, "incarnations in ");
    if (strstr(line, ": fenced ") && fence > it->fence) it->fence = fence;
    if (strstr(line, "nodes answered in ") && it->collect < 0)
        it->collect = number_after(line, "nodes answered in ");
    if (strstr(line, "copies were asked for, in ") && it->prepare < 0)
        it->prepare = number_after(line, "copies were asked for, in ");
    if (strstr(line, "have an owner again, committed in ") && it->seal < 0) {
        it->seal = number_after(line, "have an owner again, committed in ");
        it->committed_ms = at;
    }
    if (strstr(line, "is served here under epoch") && !it->served_ms) it->served_ms = at;
}

static void node_logs_read(const struct bench_servers *servers, uint32_t victim, struct reading *it)
{
    char line[1000];
    snprintf(it->crashed, sizeof it->crashed, "node %s ", servers->rows[victim].name);
    it->fence = it->collect = it->prepare = it->seal = -1;
    for (uint32_t i = 0; i < servers->count; i++) {
        FILE *node_log = i == victim ? NULL : fopen(servers->rows[i].node_log, "r");
        while (node_log && fgets(line, sizeof line, node_log))
            line_read(it, line);
        if (node_log) (void)fclose(node_log);
    }
}

/* ---- a trial ---- */

static struct bench_histogram seen_before[WINDOWS]; /* as the trial began */

static void latency_fill(struct bench_light *light, struct recovery_trial *trial)
{
    static struct bench_histogram seen; /* large */
    for (unsigned w = 0; w < WINDOWS; w++) {
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
            atomic_store(&seen.counts[i], atomic_load(&light->latency[w].counts[i]) -
                                              atomic_load(&seen_before[w].counts[i]));
        atomic_store(&seen.max, atomic_load(&light->latency[w].max));
        trial->latency[w] =
            (struct bench_latency){bench_percentile(&seen, 50), bench_percentile(&seen, 99)};
    }
}

static void latency_begin(struct bench_light *light)
{
    memset(seen_before, 0, sizeof seen_before);
    for (unsigned w = 0; w < WINDOWS; w++)
        bench_merge(&seen_before[w], &light->latency[w]);
}

static void phases_fill(const struct bench_servers *servers, uint32_t victim, int64_t kill_ms,
                        struct recovery_trial *trial)
{
    struct reading it = {.kill_ms = kill_ms};
    node_logs_read(servers, victim, &it);
    trial->ms[PHASE_DETECT] = it.declared_ms ? (double)(it.declared_ms - kill_ms) : -1;
    trial->ms[PHASE_FENCE] = it.fence;
    trial->ms[PHASE_COLLECT] = it.collect;
    trial->ms[PHASE_PREPARE] =
        it.seal >= 0 && it.prepare < 0 ? 0 : it.prepare; /* none was needed */
    trial->ms[PHASE_SEAL] = it.seal;
    bool adopted = it.served_ms && it.committed_ms;
    trial->ms[PHASE_ADOPT] = adopted ? (double)(it.served_ms - it.committed_ms) : -1;
}

static bool light_wait(const _Atomic uint64_t *what, int ms)
{
    uint64_t deadline = leat_shared_now_us(NULL) + (uint64_t)ms * 1000;
    while (!atomic_load(what) && leat_shared_now_us(NULL) < deadline && !cli_interrupted())
        (void)poll(NULL, 0, 1);
    return atomic_load(what) != 0;
}

static int victim_choose(struct bench_servers *servers, const struct recovery_options *o,
                         int *out_victim, bool *out_led)
{
    int owner, leader;
    roles(servers, &owner, &leader);
    if (owner >= 0 && leader >= 0 && owner != leader && strcmp(o->how, "leader") == 0) {
        int code = move_to(&servers->rows[leader]);
        if (code || !well_wait(servers, UINT32_MAX, false, WELL_MS)) return CLI_FAILED;
        roles(servers, &owner, &leader);
    }
    *out_victim = owner;
    *out_led = owner == leader;
    if (owner >= 0) return CLI_OK;
    if (!cli_interrupted()) cli_error("no node says that it serves the stream");
    return CLI_FAILED;
}

static int heal(struct bench_servers *servers, uint32_t victim, const struct recovery_options *o)
{
    if (strcmp(o->how, "stop") == 0) {
        bench_server_stop(&servers->rows[victim], false);
        return CLI_OK;
    }
    return bench_server_start(servers, victim);
}

static int trial_run(struct bench_servers *servers, const struct recovery_options *o,
                     struct bench_light *light, struct recovery_trial *trial)
{
    int victim = -1;
    for (unsigned i = 0; i < PHASES; i++)
        trial->ms[i] = -1;
    if (!well_wait(servers, UINT32_MAX, o->replicated, o->replicated ? REPLICATED_MS : WELL_MS)) {
        if (!cli_interrupted()) cli_error("the cluster does not come to rest");
        return CLI_FAILED;
    }
    latency_begin(light);
    atomic_store(&light->window, WINDOW_REST);
    (void)poll(NULL, 0, o->replicated ? QUIET_LONG_MS : QUIET_MS);
    int code = victim_choose(servers, o, &victim, &trial->led);
    if (code) return code;
    struct bench_server *server = &servers->rows[victim];
    memcpy(trial->victim, server->name, sizeof trial->victim);
    atomic_store(&light->acked_us, 0);
    atomic_store(&light->read_us, 0);
    int64_t kill_ms = wall_ms();
    uint64_t killed_us = leat_shared_now_us(NULL);
    atomic_store(&light->window, WINDOW_AFTER);
    atomic_store(&light->dead_us, UINT64_MAX);
    atomic_store(&light->killed_us, killed_us);
    if (strcmp(o->how, "stop") == 0) {
        bench_server_stop(server, true); /* returns when it stands still */
        atomic_store(&light->dead_us, leat_shared_now_us(NULL));
    } else {
        atomic_store(&light->dead_us, killed_us + DYING_US);
        bench_server_kill(server);
    }
    if (light_wait(&light->acked_us, WELL_MS))
        trial->ms[PHASE_ACK] = (double)(atomic_load(&light->acked_us) - killed_us) / 1000;
    if (light_wait(&light->read_us, WELL_MS))
        trial->ms[PHASE_READ] = (double)(atomic_load(&light->read_us) - killed_us) / 1000;
    if (o->replicated && copies_wait(servers, (uint32_t)victim, light))
        trial->ms[PHASE_WHOLE] = (double)(leat_shared_now_us(NULL) - killed_us) / 1000;
    else
        (void)well_wait(servers, (uint32_t)victim, false, WELL_MS);
    phases_fill(servers, (uint32_t)victim, kill_ms, trial);
    atomic_store(&light->window, WINDOW_BACK);
    latency_fill(light, trial);
    atomic_store(&light->killed_us, 0);
    if (cli_interrupted()) return CLI_FAILED;
    if (trial->ms[PHASE_ACK] < 0) {
        cli_error("nothing was acked for %d s after the kill", WELL_MS / 1000);
        return CLI_FAILED;
    }
    return heal(servers, (uint32_t)victim, o);
}

/* ---- all of it ---- */

static int disk_check(const struct recovery_options *o)
{
    struct statvfs disk;
    char need[32], have[32];
    if (statvfs(o->dir, &disk)) {
        cli_error("%s: %s", o->dir, strerror(errno));
        return CLI_FAILED;
    }
    /* New copies take space in addition to the copies that come back with their node. */
    double wanted = (double)o->stored * (double)(o->copies + o->replicated) + 2e9;
    double there = (double)disk.f_bavail * (double)disk.f_frsize;
    if (wanted <= there) return CLI_OK;
    cli_error("this takes %s in %s, where %s are free; store less, or name another place by --dir",
              cli_bytes_text(wanted, need), o->dir, cli_bytes_text(there, have));
    return CLI_FAILED;
}

static int run(const struct recovery_options *o)
{
    static struct bench_servers servers;
    static struct bench_light light;
    static char brokers[sizeof servers.brokers];
    struct recovery_trial *trials = calloc(o->trials, sizeof *trials);
    if (!trials) abort();
    servers.count = (uint32_t)o->nodes;
    servers.memory_bytes = o->memory;
    servers.leatd = o->leatd;
    servers.replication = o->replication;
    servers.keep = o->keep;
    cli_catch_signals();
    int code = bench_servers_start(&servers, o->dir);
    size_t done = 0;
    if (code == CLI_OK) {
        snprintf(brokers, sizeof brokers, "%s", bench_servers_brokers(&servers, UINT32_MAX));
        cli_brokers = brokers;
        code = store(o, brokers);
    }
    cli_disconnect();
    bool light_on = code == CLI_OK;
    if (light_on) code = bench_light_begin(&light, STREAM, brokers);
    while (code == CLI_OK && done < o->trials) {
        code = trial_run(&servers, o, &light, &trials[done]);
        if (code) break;
        done++;
        cli_progress("trial %zu of %" PRIu64 ": first ack after %.0f ms", done, o->trials,
                     trials[done - 1].ms[PHASE_ACK]);
    }
    cli_progress_end();
    cli_disconnect();
    if (light_on) bench_light_end(&light);
    bench_servers_end(&servers);
    if (done > 0) {
        int told = recovery_report(o, trials, done, &light);
        if (code == CLI_OK) code = told;
    }
    free(trials);
    return code;
}

int leat_bench_recovery(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    struct recovery_options o = {.stored = 100 << 20,
                                 .copies = 3,
                                 .nodes = 4,
                                 .trials = 5,
                                 .memory = 512 << 20,
                                 .how = "kill",
                                 .durability = "memory",
                                 .dir = "/var/tmp"};
    const struct cli_option options[] = {
        {"stored", 0, CLI_BYTES, &o.stored},
        {"copies", 0, CLI_U64, &o.copies},
        {"nodes", 0, CLI_U64, &o.nodes},
        {"trials", 0, CLI_U64, &o.trials},
        {"how", 0, CLI_TEXT, &o.how},
        {"replicated", 0, CLI_FLAG, &o.replicated},
        {"durability", 0, CLI_TEXT, &o.durability},
        {"replication", 0, CLI_TEXT, &o.replication},
        {"memory", 0, CLI_BYTES, &o.memory},
        {"dir", 0, CLI_TEXT, &o.dir},
        {"keep", 0, CLI_FLAG, &o.keep},
        {"leatd", 0, CLI_TEXT, &o.leatd},
        {"json", 0, CLI_TEXT, &o.json},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n != 0) {
        if (n > 0) cli_error("bench recovery takes no operands");
        return CLI_USAGE;
    }
    bool how =
        strcmp(o.how, "kill") == 0 || strcmp(o.how, "stop") == 0 || strcmp(o.how, "leader") == 0;
    if (!how) {
        cli_error("--how is kill, leader or stop, not '%s'", o.how);
        return CLI_USAGE;
    }
    if (o.replication && strcmp(o.replication, "auto") == 0) o.replication = NULL;
    if (!cli_in_range("trials", o.trials, 1, RECOVERY_TRIALS_MAX, "") ||
        !cli_in_range("nodes", o.nodes, 3, BENCH_SERVERS_MAX, "") ||
        !cli_in_range("copies", o.copies, 2, o.nodes, ", the nodes") ||
        !bench_replication_check(o.replication))
        return CLI_USAGE;
    int code = bench_json_check(o.json);
    if (code == CLI_OK) code = disk_check(&o);
    return code ? code : run(&o);
}
