/* SPDX-License-Identifier: Apache-2.0 */
/* A private cluster for a benchmark: servers on this machine, their data in a folder that is removed with the
 * servers. Thread: one. */
#ifndef LEAT_TOOLS_BENCH_SERVERS_H
#define LEAT_TOOLS_BENCH_SERVERS_H

#include "tools/leat/cli.h"

#include <sys/types.h>

enum { BENCH_SERVERS_MAX = 16, BENCH_VOTERS = 3 };

struct bench_server {
    char name[8], client[32], node[32], data[300], node_log[300], pool[128];
    pid_t pid; /* 0: it does not run */
    bool stopped;
};
struct bench_servers {
    const char *leatd;       /* NULL: beside this program */
    const char *replication; /* NULL: the server's default */
    uint64_t memory_bytes;   /* of each */
    char home[256];          /* "": not made */
    bool keep;
    uint32_t count;
    struct bench_server rows[BENCH_SERVERS_MAX];
    char brokers[BENCH_SERVERS_MAX * 32];
};

/** Make the folder below dir, start them, wait until all are ready. Says what is wrong. */
int bench_servers_start(struct bench_servers *servers, const char *dir);
/** Start a killed server again. */
int bench_server_start(struct bench_servers *servers, uint32_t i);
void bench_server_kill(struct bench_server *server);
/** SIGSTOP, or SIGCONT. */
void bench_server_stop(struct bench_server *server, bool stop);
/** Kill running servers, remove the folder and the files in shared memory. A second call is harmless. */
void bench_servers_end(struct bench_servers *servers);
/** The addresses of all but one (of all: UINT32_MAX). A view until the next call. */
const char *bench_servers_brokers(struct bench_servers *servers, uint32_t without);
int bench_servers_find(const struct bench_servers *servers, const char *name, size_t bytes);

#endif
