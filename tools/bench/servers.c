/* SPDX-License-Identifier: Apache-2.0 */
/* See servers.h. */
#include "tools/bench/servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READY_MS = 120 * 1000,
    PORT_FIRST = 10240,
    PORT_LAST = 32000,
    WORDS_MAX = 40,
    DIR_BYTES_MAX = 200, /* of the folder, which begins the servers' paths */
};

/* Below the range that outgoing connections are given. */
static int port_free(const uint16_t *taken, uint32_t count)
{
    static unsigned seed;
    if (!seed) seed = (unsigned)getpid() ^ (unsigned)leat_shared_now_us(NULL);
    for (unsigned tries = 0; tries < 10000; tries++) {
        int port = PORT_FIRST + rand_r(&seed) % (PORT_LAST - PORT_FIRST);
        bool used = false;
        for (uint32_t i = 0; i < count; i++)
            used = used || taken[i] == port;
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = used ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
        if (fd < 0) continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        bool mine = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
        (void)close(fd);
        if (mine) return port;
    }
    return -1;
}

/* ---- one server ---- */

static void voters_write(const struct bench_servers *servers, char *out, size_t capacity)
{
    size_t used = 0;
    for (uint32_t i = 0; i < servers->count && i < BENCH_VOTERS; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", i ? "," : "",
                                 servers->rows[i].node);
}

static void child(const char **words, const char *node_log, int out)
{
    /* The servers end with the process that started them, however it ends. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(node_log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(127);
    (void)setpgid(0, 0); /* Ctrl-C is the benchmark's to deal with */
    (void)execv(words[0], (char *const *)words);
    _exit(127);
}

static int launch(struct bench_servers *servers, uint32_t i, int *out_pipe)
{
    struct bench_server *server = &servers->rows[i];
    char voters[BENCH_VOTERS * 40], memory[32];
    voters_write(servers, voters, sizeof voters);
    snprintf(memory, sizeof memory, "%" PRIu64, servers->memory_bytes);
    const char *words[WORDS_MAX] = {
        servers->leatd, "--data",        server->data, "--node",         server->name, "--listen",
        server->client, "--node-listen", server->node, "--coordinators", voters,       "--memory",
        memory,         "--cores",       "1",          "--kafka",        "off"};
    unsigned count = 17;
    if (servers->replication) {
        words[count++] = "--replication";
        words[count++] = servers->replication;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) {
        cli_error("pipe: %s", strerror(errno));
        return CLI_FAILED;
    }
    pid_t pid = fork();
    if (pid == 0) child(words, server->node_log, ends[1]);
    (void)close(ends[1]);
    if (pid < 0) {
        cli_error("fork: %s", strerror(errno));
        (void)close(ends[0]);
        return CLI_FAILED;
    }
    server->pid = pid;
    server->stopped = false;
    *out_pipe = ends[0];
    return CLI_OK;
}

/* Named in its map of memory: to be removed when it was killed. */
static void pool_note(struct bench_server *server)
{
    char path[64], line[600];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)server->pid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *at = strstr(line, "/dev/shm/leat-pool-");
        if (!at) continue;
        at[strcspn(at, " \n")] = '\0';
        snprintf(server->pool, sizeof server->pool, "%.100s", at);
        break;
    }
    if (maps) (void)fclose(maps);
}

static void shm_remove(struct bench_server *server)
{
    if (!server->pool[0]) return;
    char pattern[160];
    const char *id = strstr(server->pool, "leat-pool-") + strlen("leat-pool-");
    glob_t found;
    (void)unlink(server->pool);
    snprintf(pattern, sizeof pattern, "/dev/shm/leat-rmem-%s-*", id);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    server->pool[0] = '\0';
}

/* Why it ended, in its own words. The node log itself is removed with the rest. */
static void last_line(const char *node_log, char *out, size_t size)
{
    char line[400];
    FILE *file = fopen(node_log, "r");
    snprintf(out, size, "it said nothing");
    while (file && fgets(line, sizeof line, file))
        if (line[0] != '\n') snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (file) (void)fclose(file);
}

/* quiet: another one has said already why this comes to nothing. */
static int ready_wait(struct bench_server *server, int fd, bool quiet)
{
    char line[400] = "";
    size_t used = 0;
    uint64_t deadline = leat_shared_now_us(NULL) + (uint64_t)READY_MS * 1000;
    while (!strchr(line, '\n') && used < sizeof line - 1 && !cli_interrupted()) {
        struct pollfd poll_fd = {fd, POLLIN, 0};
        if (leat_shared_now_us(NULL) > deadline) break;
        if (poll(&poll_fd, 1, 200) <= 0) continue;
        ssize_t got = read(fd, line + used, sizeof line - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
        line[used] = '\0';
    }
    /* Stays open in the server only: nothing more is written there. */
    (void)close(fd);
    if (strstr(line, "listening on")) {
        pool_note(server);
        return CLI_OK;
    }
    char why[400];
    last_line(server->node_log, why, sizeof why);
    if (!quiet && !cli_interrupted()) cli_error("%s did not start: %s", server->name, why);
    return CLI_FAILED;
}

int bench_server_start(struct bench_servers *servers, uint32_t i)
{
    int fd = -1;
    char old[sizeof servers->rows[i].pool];
    memcpy(old, servers->rows[i].pool, sizeof old);
    int code = launch(servers, i, &fd);
    return code ? code : ready_wait(&servers->rows[i], fd, false);
}

void bench_server_kill(struct bench_server *server)
{
    int status;
    if (!server->pid) return;
    (void)kill(server->pid, SIGKILL);
    while (waitpid(server->pid, &status, 0) < 0 && errno == EINTR)
        ;
    server->pid = 0;
}

void bench_server_stop(struct bench_server *server, bool stop)
{
    int status;
    server->stopped = stop;
    if (!server->pid) return;
    (void)kill(server->pid, stop ? SIGSTOP : SIGCONT);
    while (stop && waitpid(server->pid, &status, WUNTRACED) < 0 && errno == EINTR)
        ;
}

/* ---- all ---- */

static int leatd_find(struct bench_servers *servers)
{
    static char path[4096];
    if (!servers->leatd) {
        ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 8);
        char *slash = bytes > 0 ? memrchr(path, '/', (size_t)bytes) : NULL;
        if (slash) memcpy(slash + 1, "leatd", sizeof "leatd");
        servers->leatd = path;
    }
    if (access(servers->leatd, X_OK) == 0) return CLI_OK;
    cli_error("no server to start at %s; --leatd PATH names one", servers->leatd);
    return CLI_FAILED;
}

static int rows_fill(struct bench_servers *servers)
{
    uint16_t ports[2 * BENCH_SERVERS_MAX];
    for (uint32_t i = 0; i < 2 * servers->count; i++) {
        int port = port_free(ports, i);
        if (port < 0) {
            cli_error("no free port between %d and %d", PORT_FIRST, PORT_LAST);
            return CLI_FAILED;
        }
        ports[i] = (uint16_t)port;
    }
    for (uint32_t i = 0; i < servers->count; i++) {
        struct bench_server *row = &servers->rows[i];
        *row = (struct bench_server){0};
        snprintf(row->name, sizeof row->name, "n%u", i % 100);
        snprintf(row->client, sizeof row->client, "127.0.0.1:%u", ports[2 * i]);
        snprintf(row->node, sizeof row->node, "127.0.0.1:%u", ports[2 * i + 1]);
        snprintf(row->data, sizeof row->data, "%s/n%u", servers->home, i % 100);
        snprintf(row->node_log, sizeof row->node_log, "%s/n%u.log", servers->home, i % 100);
    }
    return CLI_OK;
}

int bench_servers_start(struct bench_servers *servers, const char *dir)
{
    int code = leatd_find(servers), fds[BENCH_SERVERS_MAX];
    if (code) return code;
    if (strlen(dir) > DIR_BYTES_MAX) {
        cli_error("--dir wants a path of at most %d bytes", DIR_BYTES_MAX);
        return CLI_USAGE;
    }
    snprintf(servers->home, sizeof servers->home, "%.*s/leat-bench.XXXXXX", DIR_BYTES_MAX, dir);
    if (!mkdtemp(servers->home)) {
        cli_error("%s: %s", servers->home, strerror(errno));
        servers->home[0] = '\0';
        return CLI_FAILED;
    }
    code = rows_fill(servers);
    uint32_t launched = 0;
    /* All at once: a voter alone is not ready before it has met most of the others. */
    for (; code == CLI_OK && launched < servers->count; launched++)
        code = launch(servers, launched, &fds[launched]);
    for (uint32_t i = 0; i < launched; i++) {
        bool quiet = code != CLI_OK;
        int mine = servers->rows[i].pid ? ready_wait(&servers->rows[i], fds[i], quiet) : CLI_FAILED;
        if (code == CLI_OK) code = mine;
    }
    return code;
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

void bench_servers_end(struct bench_servers *servers)
{
    for (uint32_t i = 0; i < servers->count; i++) {
        struct bench_server *server = &servers->rows[i];
        if (server->pid && !server->pool[0]) pool_note(server); /* broken off before it was ready */
        bench_server_kill(server);
        shm_remove(server);
    }
    if (!servers->home[0]) return;
    if (servers->keep)
        fprintf(stderr, "kept: %s\n", servers->home);
    else
        (void)nftw(servers->home, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    servers->home[0] = '\0';
}

const char *bench_servers_brokers(struct bench_servers *servers, uint32_t without)
{
    size_t used = 0;
    servers->brokers[0] = '\0';
    for (uint32_t i = 0; i < servers->count; i++) {
        if (i == without) continue;
        used += (size_t)snprintf(servers->brokers + used, sizeof servers->brokers - used, "%s%s",
                                 used ? "," : "", servers->rows[i].client);
    }
    return servers->brokers;
}

int bench_servers_find(const struct bench_servers *servers, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < servers->count; i++)
        if (strlen(servers->rows[i].name) == bytes &&
            memcmp(servers->rows[i].name, name, bytes) == 0)
            return (int)i;
    return -1;
}
