/* SPDX-License-Identifier: Apache-2.0 */
/* leatd: one server on the real ports. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/node.h"
#include "kafka/kafka.h"
#include "os/os.h"
#include "replication/transport/transport.h"
#include "tools/leatd/config.h"

#ifdef LEAT_RPC /* tests/bench makes such a leatd */
#define BASELINE (&leat_transport_rpc)
#else
#define BASELINE NULL
#endif

enum exit_code {
    EXIT_STOPPED = 0,
    EXIT_FAILED = 1,
    EXIT_CONFIG = 2,
    EXIT_DATA = 3,
    EXIT_LISTEN = 4,
    EXIT_MEMORY = 5,
};
enum {
    NODE_LOG_LINE_BYTES_MAX = 64 * 1024,
};

#define ADMIN_SOCKET "leatd.sock" /* `leat` looks for it: tools/leat/cli_call.c */

struct server {
    struct leatd_config config;
    struct leatd_key key_file;
    struct leat_key key;
    struct leat_os_world *world;
    struct leat_env core_envs[LEAT_CORES_MAX];
    const struct leat_env *store_env, *coordinator_env;
    struct leat_node *node;
    struct leat_door *kafka; /* NULL: off */
    struct leat_mail stop_mail;
    /* Core 0 writes, then rings the event; the main thread reads after it. */
    int event;
    leat_err rc;
    struct leat_error error;
    bool up, failed, stopped;
    char address[128];
    char admin_path[4096 + 16];
    bool crashed; /* atomic, as the others */
    char **argv;
};

static void node_log_line(void *ctx, enum leat_node_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warn ", "info ", "debug"};
    struct timespec now;
    struct tm utc;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    fprintf(stderr, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s %.*s\n", utc.tm_year + 1900,
            utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_nsec / 1000000,
            names[level], NODE_LOG_LINE_BYTES_MAX, line);
}

static int exit_code_of(leat_err rc)
{
    switch (rc) {
    case LEAT_E_CONFIG:
        return EXIT_CONFIG;
    case LEAT_E_NO_MEMORY:
        return EXIT_MEMORY;
    case LEAT_E_LOCKED:
    case LEAT_E_DAMAGED:
    case LEAT_E_WRONG_CLUSTER:
    case LEAT_E_DISK:
    case LEAT_E_DISK_FULL:
    case LEAT_E_UNSUPPORTED:
        return EXIT_DATA;
    default:
        return EXIT_FAILED;
    }
}

static int refuse(leat_err rc, const struct leat_error *error)
{
    const char *text =
        error->code != LEAT_OK && error->text[0] != '\0' ? error->text : leat_err_text(rc);
    bool advise = rc == LEAT_E_DISK_FULL && strstr(text, "--data") == NULL;
    fprintf(stderr, "leatd: %s%s\n", text,
            advise ? ": free space there, or name another by --data" : "");
    return exit_code_of(rc);
}

/* The flag of the address that can't be listened on; NULL: the refusal is of something else. */
static const char *listen_flag(const struct leatd_config *config, const struct leat_error *error)
{
    static const char refusal[] = "can't listen on ";
    const struct {
        const char *flag, *address;
    } flags[] = {{"--listen", config->listen},
                 {"--node-listen", config->node_listen},
                 {"--kafka", config->kafka}};
    if (strncmp(error->text, refusal, sizeof refusal - 1) != 0) return NULL;
    const char *rest = error->text + sizeof refusal - 1;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        size_t bytes = strlen(flags[i].address);
        if (bytes > 0 && strncmp(rest, flags[i].address, bytes) == 0 && rest[bytes] == ':')
            return flags[i].flag;
    }
    return NULL;
}

static int refuse_start(const struct leatd_config *config, leat_err rc,
                        const struct leat_error *error)
{
    const char *flag = listen_flag(config, error);
    if (flag == NULL) return refuse(rc, error);
    fprintf(stderr, "leatd: %s; name another address by %s\n", error->text, flag);
    return EXIT_LISTEN;
}

/* ---- callbacks on core 0 ---- */

static void ring(struct server *server)
{
    uint64_t one = 1;
    /* An event counter of two rings can't be full. */
    (void)!write(server->event, &one, sizeof one);
}

static void on_ready(void *owner, leat_err rc, const struct leat_error *error, const char *address)
{
    struct server *server = owner;
    server->rc = rc;
    if (error != NULL) server->error = *error;
    if (rc == LEAT_OK) {
        snprintf(server->address, sizeof server->address, "%s", address);
        __atomic_store_n(&server->up, true, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&server->failed, true, __ATOMIC_RELEASE);
    }
    ring(server);
}

static void on_stopped(void *owner, leat_err rc)
{
    struct server *server = owner;
    if (rc != LEAT_OK) server->rc = rc;
    __atomic_store_n(&server->stopped, true, __ATOMIC_RELEASE);
    ring(server);
}

static void on_crashed(void *owner)
{
    struct server *server = owner;
    __atomic_store_n(&server->crashed, true, __ATOMIC_RELEASE);
    ring(server);
}

static struct leat_node *starting_node; /* one server per process */
static void on_core_0_start(void *actor)
{
    (void)actor;
    leat_node_start(starting_node);
}

static void deliver_stop(void *actor, struct leat_mail *mail)
{
    (void)actor;
    (void)mail;
    leat_node_stop(starting_node);
}

static uint64_t thread_cpu_ns(void *ctx)
{
    struct timespec used;
    (void)ctx;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* With what malloc adds: 180.0 MB of RssAnon for 175.1 MB asked for in 150,000 blocks of 30,000 logs. */
static uint64_t heap_bytes(void *ctx)
{
    (void)ctx;
    uint64_t bytes = leat_mem_bytes(LEAT_MEM_LOG) + leat_mem_bytes(LEAT_MEM_ROWS);
    return bytes + bytes / 16;
}

/* Of the store's thread. What was freed inside the heap, by whomever, goes back when it is enough to matter. */
static void heap_trim(void *ctx)
{
    enum { TRIM_BYTES = 8 * 1024 * 1024 };
    static uint64_t most;
    uint64_t bytes = 0;
    (void)ctx;
    for (unsigned tag = 0; tag < LEAT_MEM_TAGS; tag++)
        bytes += leat_mem_bytes((enum leat_mem_tag)tag);
    if (bytes > most) most = bytes;
    if (bytes + TRIM_BYTES > most) return;
    (void)malloc_trim(0);
    most = bytes;
}

/* SUBTLE: malloc moves its limits by itself. (1) Answers of a MiB are mapped, each for itself. (2) The first that is
 * freed raises the limit, and the next thousands lie in heaps, between small blocks that stay. (3) They are freed, and
 * nothing goes back. Named limits stay as they are. And as many heaps as threads that allocate leave each with its own
 * holes. */
static void heap_init(uint32_t cores)
{
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    (void)mallopt(M_ARENA_MAX, (int)cores + 2);
}

static uint64_t cpu_us(void *ctx)
{
    (void)ctx;
    return leat_os_cpu_us();
}

/* ---- start ---- */

static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* what there was stays then */
}

/* Memory of this node that others write into, and this node's ways into theirs. */
static leat_err make_rmem(struct server *server, struct leat_error *error)
{
    const struct leatd_config *config = &server->config;
    char host[sizeof config->node_listen];
    memcpy(host, config->node_listen, sizeof host);
    char *colon = strrchr(host, ':');
    if (colon != NULL) *colon = '\0';
    bool wanted = config->replication == LEATD_REPLICATION_AUTO ||
                  config->replication == LEATD_REPLICATION_VERBS;
    struct leat_os_rmem_options options = {
        .host = LEAT_ACTOR_CORE_0,
        .verbs_host = wanted ? host : NULL,
        .no_shm = config->replication == LEATD_REPLICATION_VERBS ||
                  config->replication == LEATD_REPLICATION_TCP ||
                  config->replication == LEATD_REPLICATION_RPC,
    };
    return leat_os_rmem_open(server->world, &options, error);
}

static leat_err make_ports(struct server *server, struct leat_error *error)
{
    const struct leatd_config *config = &server->config;
    struct leat_os_world_options options = {
        .data_dir = config->data,
        .ready_bytes_max = leat_node_ready_bytes(config->memory_bytes, config->cores),
    };
    const struct leat_env *envs[LEAT_CORES_MAX];
    leat_err rc = leat_os_world_create(&options, &server->world, error);
    for (uint32_t i = 0; rc == LEAT_OK && i < server->config.cores; i++)
        rc = leat_os_actor_create(server->world, LEAT_ACTOR_CORE_0 + i, LEAT_OS_ACTOR_CORE,
                                  &envs[i], error);
    if (rc == LEAT_OK && server->config.voter_count > 0) rc = make_rmem(server, error);
    for (uint32_t i = 0; rc == LEAT_OK && i < server->config.cores; i++)
        server->core_envs[i] = *envs[i];
    if (rc == LEAT_OK)
        rc = leat_os_actor_create(server->world, LEAT_ACTOR_STORE, LEAT_OS_ACTOR_DISK,
                                  &server->store_env, error);
    if (rc == LEAT_OK)
        rc = leat_os_actor_create(server->world, LEAT_ACTOR_COORDINATOR, LEAT_OS_ACTOR_DISK,
                                  &server->coordinator_env, error);
    return rc;
}

/* An address may have at most half of the clients' descriptors, whatever the option says: other clients get in. */
static uint32_t connections_per_address(const struct leatd_config *config)
{
    struct leat_os_files files;
    leat_os_files(&files);
    uint64_t half = files.clients / 2 > 0 ? files.clients / 2 : 1;
    uint32_t wanted = config->connections_per_address != 0 ? config->connections_per_address
                                                           : LEAT_ADDRESS_CONNECTIONS;
    return half < wanted ? (uint32_t)half : wanted;
}

/* Of the half of the files for its own that the node port may come to have, half: the rest is for nodes. */
static uint32_t strangers_max(void)
{
    struct leat_os_files files;
    leat_os_files(&files);
    uint64_t quarter = files.kept / 4;
    if (quarter > LEAT_LINK_STRANGERS_MAX) return LEAT_LINK_STRANGERS_MAX;
    return quarter > LEAT_LINK_STRANGERS_MIN ? (uint32_t)quarter : LEAT_LINK_STRANGERS_MIN;
}

static struct leat_node_cluster cluster_of(const struct server *server)
{
    const struct leatd_config *config = &server->config;
    static const enum leat_rmem_kind kinds[] = {
        [LEATD_REPLICATION_AUTO] = LEAT_RMEM_NONE, [LEATD_REPLICATION_VERBS] = LEAT_RMEM_VERBS,
        [LEATD_REPLICATION_SHM] = LEAT_RMEM_SHM,   [LEATD_REPLICATION_TCP] = LEAT_RMEM_TCP,
        [LEATD_REPLICATION_RPC] = LEAT_RMEM_RPC,
    };
    if (config->voter_count == 0)
        return (struct leat_node_cluster){
            .advertise = config->advertise[0] != '\0' ? config->advertise : NULL,
            .thread_cpu_ns = thread_cpu_ns,
        };
    return (struct leat_node_cluster){
        .node_address = config->node_listen,
        .key = &server->key,
        .advertise = config->advertise,
        .coordinators = (const char *const *)config->voters,
        .coordinator_count = config->voter_count,
        .rack = config->rack,
        .host = config->host,
        .replication = kinds[config->replication],
        .no_verbs = leat_os_rmem_no_verbs(server->world),
        .baseline = BASELINE,
        .thread_cpu_ns = thread_cpu_ns,
        .ping_ms = config->ping_ms,
        .suspect_ms = config->suspect_ms,
        .confirm_ms = config->confirm_ms,
        .strangers_max = strangers_max(),
    };
}

static leat_err make_kafka(struct server *server, struct leat_error *error)
{
    const struct leatd_config *config = &server->config;
    if (strcmp(config->kafka, "off") == 0) return LEAT_OK;
    struct leat_kafka_options options = {
        .address = config->kafka,
        .advertise = config->kafka_advertise[0] != '\0' ? config->kafka_advertise : NULL,
        .optional = config->kafka_by_default,
        .partitions = config->num_partitions,
        .copies = config->default_replication_factor,
    };
    leat_err rc = leat_kafka_open(&options, &server->kafka);
    if (rc != LEAT_OK) leat_error_set(error, rc, "no memory for the clients of Kafka");
    return rc;
}

/* Where people find the socket; they may stand in another directory than this process. */
static const char *admin_path(struct server *server)
{
    char whole[4096];
    const char *data = realpath(server->config.data, whole);
    snprintf(server->admin_path, sizeof server->admin_path, "%s/" ADMIN_SOCKET,
             data != NULL ? data : server->config.data);
    return server->admin_path;
}

static leat_err make_node(struct server *server, struct leat_error *error)
{
    const struct leatd_config *config = &server->config;
    uint64_t pool = leat_node_own_pool_bytes(
        leat_node_pool_bytes(config->memory_bytes, config->cores), config->voter_count > 0);
    leat_err rc = LEAT_OK;
    /* Too small a budget is named by leat_node_create(). */
    if (pool > 0) rc = leat_os_arena_open(server->world, LEAT_ACTOR_STORE, pool, error);
    if (rc == LEAT_OK) rc = make_kafka(server, error);
    if (rc != LEAT_OK) return rc;
    struct leat_node_options options = {
        .cores = config->cores,
        .name = config->node,
        .listen_address = config->listen,
        .admin_address = "unix:" ADMIN_SOCKET,
        .admin_path = admin_path(server),
        .version = LEAT_VERSION,
        .memory_bytes = config->memory_bytes,
        .heap_bytes = heap_bytes,
        .heap_trim = heap_trim,
        .auto_create = config->auto_create,
        .hibernate_after_us = config->hibernate_after_us,
        .offsets_retention_us = config->offsets_retention_us,
        .connections_per_address = connections_per_address(config),
        .scrub_bytes_per_second = config->scrub_bytes_per_second,
        .door = server->kafka,
        .cluster = cluster_of(server),
        .core_envs = server->core_envs,
        .store_env = server->store_env,
        .pool_in_file = pool > 0 && !leat_os_arena_in_memory(server->world, LEAT_ACTOR_STORE),
        .coordinator_env = server->coordinator_env,
        .cpu_us = cpu_us,
        .on_ready = on_ready,
        .on_stopped = on_stopped,
        .on_crashed = on_crashed,
        .owner = server,
    };
    return leat_node_create(&options, &server->node, error);
}

static leat_err start_threads(struct server *server, struct leat_error *error)
{
    starting_node = server->node;
    leat_err rc =
        leat_os_actor_start(server->world, LEAT_ACTOR_STORE, leat_node_store(server->node),
                            &leat_store_actor, NULL, "leat-store", -1);
    if (rc == LEAT_OK)
        rc = leat_os_actor_start(server->world, LEAT_ACTOR_COORDINATOR,
                                 leat_node_coordinator(server->node), &leat_coordinator_actor, NULL,
                                 "leat-coord", -1);
    for (uint32_t i = server->config.cores; rc == LEAT_OK && i-- > 0;) {
        char name[24];
        snprintf(name, sizeof name, "leat-core-%u", i);
        rc = leat_os_actor_start(server->world, LEAT_ACTOR_CORE_0 + i,
                                 leat_node_core(server->node, i), &leat_core_actor,
                                 i == 0 ? on_core_0_start : NULL, name, -1);
    }
    if (rc != LEAT_OK) leat_error_set(error, rc, "can't start the server's threads");
    return rc;
}

/* ---- run ---- */

static void say_kafka(const struct server *server)
{
    const struct leat_door *kafka = server->kafka;
    if (kafka == NULL) return;
    if (kafka->bound_address[0] != '\0')
        leat_node_log_info("clients of Kafka: listening on %s", kafka->bound_address);
    else
        leat_node_log_warn(
            "clients of Kafka are not served: %s; name another address by --kafka, or "
            "say --kafka off",
            kafka->not_bound.text);
}

static void say_ready(const struct server *server)
{
    const struct leatd_config *config = &server->config;
    uint64_t pool = leat_node_pool_bytes(config->memory_bytes, config->cores);
    const bool in_memory = leat_os_arena_in_memory(server->world, LEAT_ACTOR_STORE);
    printf(
        "leatd %s ready: listening on %s, memory budget %llu MiB (%llu MiB of it for segments%s), "
        "data in %s, %u core%s\n",
        LEAT_VERSION, server->address, (unsigned long long)(config->memory_bytes >> 20),
        (unsigned long long)(pool >> 20), in_memory ? "" : ", in a file on disk", config->data,
        config->cores, config->cores == 1 ? "" : "s");
    fflush(stdout);
    say_kafka(server);
    leat_os_notify("READY=1");
}

/* SIGHUP, too: the terminal was closed. Under nohup it is ignored, and would come nevertheless if it were blocked. */
static void stop_signals(sigset_t *out)
{
    struct sigaction hangup;
    sigemptyset(out);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGINT);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(out, SIGHUP);
}

/* Wait until core 0 rings, or a signal asks to stop. Returns true for a signal. */
static bool wait_for_event(const struct server *server, int signals)
{
    struct pollfd polls[2] = {{.fd = server->event, .events = POLLIN},
                              {.fd = signals, .events = POLLIN}};
    while (poll(polls, 2, -1) < 0 && errno == EINTR) {
    }
    uint64_t rings;
    if ((polls[0].revents & POLLIN) != 0) (void)!read(server->event, &rings, sizeof rings);
    if ((polls[1].revents & POLLIN) == 0) return false;
    struct signalfd_siginfo info;
    (void)!read(signals, &info, sizeof info);
    return true;
}

/* Other nodes own this process's logs now. The process starts anew under the same process id, so that its supervisor
 * sees no change; its shared memory survives, and is read like after a kill. Nothing is shut down in order: no thread
 * of this process may do anything any more. */
static void start_anew(const struct server *server)
{
    leat_node_log_warn("starting anew, to join the cluster again");
    (void)execv("/proc/self/exe", server->argv);
    leat_node_log_error("can't start anew: %s", strerror(errno));
    _exit(EXIT_FAILED);
}

static void ask_to_stop(struct server *server)
{
    server->stop_mail.deliver = deliver_stop;
    leat_os_world_post(server->world, LEAT_ACTOR_CORE_0, &server->stop_mail);
}

/* SUBTLE: a start that is asked to stop ends as if killed.
 *  1. A server is killed. Of level memory, segments that were open then are in the shared memory alone.
 *  2. The server starts anew, and is asked to stop before its logs are there.
 *  3. If the stop was one in order, no log would hibernate these segments, all else would be flushed, and the shared
 *     memory would be given up, with acked records in it. */
static void end_before_ready(void)
{
    leat_node_log_info("asked to stop before it was ready: its memory stays for the next start");
    _exit(EXIT_STOPPED);
}

static int failed_code(const struct server *server)
{
    bool address =
        !server->up && server->error.code != LEAT_OK &&
        (strstr(server->error.text, server->config.listen) != NULL ||
         (server->kafka != NULL && strstr(server->error.text, server->config.kafka) != NULL));
    return address ? EXIT_LISTEN : exit_code_of(server->rc);
}

static int run(struct server *server, int signals)
{
    bool said = false, asked = false;
    while (!__atomic_load_n(&server->stopped, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&server->crashed, __ATOMIC_ACQUIRE)) {
            if (!asked) start_anew(server);
            leat_node_log_warn("declared crashed while it stopped: it ends at once, as if killed");
            _exit(EXIT_FAILED);
        }
        bool up = __atomic_load_n(&server->up, __ATOMIC_ACQUIRE);
        bool failed = __atomic_load_n(&server->failed, __ATOMIC_ACQUIRE);
        if (up && !said) {
            said = true;
            say_ready(server);
        }
        if (failed && !asked) {
            (void)refuse_start(&server->config, server->rc, &server->error);
            asked = true;
            ask_to_stop(server);
        }
        if (!wait_for_event(server, signals)) continue;
        /* The stop of a refused start may take long, or never end. The memory stays, as after a kill. */
        if (failed) _exit(failed_code(server));
        if (!asked) {
            asked = true;
            leat_os_notify("STOPPING=1");
            if (!__atomic_load_n(&server->up, __ATOMIC_ACQUIRE)) end_before_ready();
            leat_node_log_info("asked to stop: writing everything to disk");
            ask_to_stop(server);
        }
    }
    if (__atomic_load_n(&server->failed, __ATOMIC_ACQUIRE)) return failed_code(server);
    return server->rc == LEAT_OK ? EXIT_STOPPED : EXIT_FAILED;
}

static void end(struct server *server, bool clean)
{
    for (uint32_t i = 0; i < server->config.cores; i++)
        leat_os_actor_join(server->world, LEAT_ACTOR_CORE_0 + i);
    leat_os_actor_join(server->world, LEAT_ACTOR_STORE);
    leat_os_actor_join(server->world, LEAT_ACTOR_COORDINATOR);
    leat_os_world_settle(server->world);
    bool is_spent = clean && leat_node_pool_is_spent(server->node);
    leat_node_destroy(&server->node);
    leat_kafka_close(&server->kafka);
    if (is_spent) leat_os_arena_discard(server->world, LEAT_ACTOR_STORE);
    leat_os_world_destroy(&server->world);
}

/* More than there is may still be wanted (memory comes as it is needed), but rarely. */
static void say_memory(const struct leatd_config *config)
{
    uint64_t have = leat_os_memory_bytes();
    if (config->memory_bytes <= have) return;
    leat_node_log_warn(
        "--memory is %llu MiB, and this machine has %llu MiB: it runs out of memory before the "
        "budget is used",
        (unsigned long long)(config->memory_bytes >> 20), (unsigned long long)(have >> 20));
}

/* Each core has a part of the budget: by default not more cores than the budget has room for. */
static void fit_cores(struct leatd_config *config)
{
    uint32_t all = config->cores, most = leat_node_cores_most(config->memory_bytes, all);
    if (!config->cores_by_default || most == all) return;
    config->cores = most;
    if (leat_node_pool_bytes(config->memory_bytes, most) == 0) return; /* it will be refused */
    leat_node_log_warn(
        "%u core%s of %u: a memory budget of %llu MiB has room for no more, all of them "
        "need %llu MiB (--memory)",
        most, most == 1 ? "" : "s", all, (unsigned long long)(config->memory_bytes >> 20),
        (unsigned long long)(leat_node_least_memory(all) >> 20));
}

static leat_err key_take(struct server *server, struct leat_error *error)
{
    struct leatd_key *file = &server->key_file;
    if (server->config.voter_count == 0) return LEAT_OK; /* a server alone has no node port */
    leat_err rc = leatd_key_load(&server->config, file, error);
    if (rc != LEAT_OK) return rc;
    _Static_assert(sizeof server->key.bytes == sizeof file->bytes, "one kind of key");
    memcpy(server->key.bytes, file->bytes, sizeof server->key.bytes);
    if (file->of_account)
        leat_node_log_info(
            "cluster key: %s, this account's own%s: only nodes of this account on this "
            "machine join",
            file->path, file->made ? " (made now)" : "");
    else if (file->made)
        leat_node_log_info("cluster key: made %s. A new cluster's other nodes need a copy of it "
                           "before they start; to join a "
                           "cluster that exists, put that one's key there instead",
                           file->path);
    else
        leat_node_log_info("cluster key: %s", file->path);
    return LEAT_OK;
}

/* All required addresses; Kafka's only if it is an explicit option. */
static leat_err addresses_try(const struct leatd_config *config, struct leat_error *error)
{
    bool kafka = !config->kafka_by_default && strcmp(config->kafka, "off") != 0;
    leat_err rc = leat_os_address_try(config->listen, error);
    if (rc == LEAT_OK && config->voter_count > 0)
        rc = leat_os_address_try(config->node_listen, error);
    if (rc == LEAT_OK && kafka) rc = leat_os_address_try(config->kafka, error);
    return rc;
}

/* A start that fails for an address leaves neither a new data directory nor a pool. An existing data directory is
 * locked first: a process that is still ending there has the address, too, and is waited for. */
static leat_err directory_take(struct server *server, int *out_code, struct leat_error *error)
{
    const struct leatd_config *config = &server->config;
    const char *own_files[] = {config->cluster_key, config->file, NULL};
    bool is_new = access(config->data, F_OK) != 0;
    *out_code = EXIT_LISTEN;
    leat_err rc = is_new ? addresses_try(config, error) : LEAT_OK;
    if (rc != LEAT_OK) return rc;
    *out_code = EXIT_DATA;
    rc = leat_os_lock(config->data, own_files, error);
    if (rc != LEAT_OK || is_new) return rc;
    *out_code = EXIT_LISTEN;
    return addresses_try(config, error);
}

int main(int argc, char **argv)
{
    static struct server server;
    struct leat_error error = {LEAT_OK, ""};
    server.argv = argv;
    leat_err rc = leatd_config_parse(argc, argv, &server.config, &error);
    if (rc != LEAT_OK) return refuse(rc, &error);
    if (server.config.help) return fputs(leatd_help, stdout) < 0 ? EXIT_FAILED : EXIT_STOPPED;
    if (server.config.version) return printf("leatd %s\n", LEAT_VERSION) < 0;
    leat_node_log_set(node_log_line, NULL, server.config.log_level);
    rc = leatd_config_complete(&server.config, &error);
    if (rc != LEAT_OK) return refuse(rc, &error);
    say_memory(&server.config);
    fit_cores(&server.config);
    raise_open_files();
    heap_init(server.config.cores);
    int code;
    rc = directory_take(&server, &code, &error);
    if (rc != LEAT_OK) {
        (void)refuse_start(&server.config, rc, &error);
        return code;
    }

    /* Before any thread is made: all inherit the mask, and only the main thread hears signals. */
    sigset_t mask;
    stop_signals(&mask);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &mask, SFD_CLOEXEC);
    server.event = eventfd(0, EFD_CLOEXEC);
    if (signals < 0 || server.event < 0) {
        leat_error_set(&error, LEAT_E_INTERNAL, "can't watch for signals: %s", strerror(errno));
        return refuse(LEAT_E_INTERNAL, &error);
    }
    rc = key_take(&server, &error);
    if (rc == LEAT_OK) rc = make_ports(&server, &error);
    if (rc == LEAT_OK) rc = make_node(&server, &error);
    if (rc == LEAT_OK) rc = start_threads(&server, &error);
    if (rc != LEAT_OK)
        return refuse_start(&server.config, rc, &error); /* the process ends: so do its threads */
    code = run(&server, signals);
    end(&server, code == EXIT_STOPPED);
    return code;
}
