/* SPDX-License-Identifier: Apache-2.0 */
/* A yardstick: a bare TCP echo over loopback, blocking, one message in flight. What a single append
 * is compared with.
 *
 *   leat-echo BYTES COUNT [RATE [SERVER_CPU CLIENT_CPU]]
 *
 * prints {"bytes":…,"count":…,"p50_us":…,"p99_us":…,"max_us":…}. The request carries BYTES, the
 * answer 64. RATE (a second; 0: back to back): messages are meant to be sent at fixed times, and
 * latency counts from then, as leat bench append --rate counts it. Between them the CPUs fall asleep,
 * and waking one costs more than the message. The CPUs are those that the server and its client are
 * pinned to.
 */
#include "yardstick.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 64, WARMUP = 1000 };

static void read_all(int fd, char *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(fd, at, bytes);
        if (got <= 0) exit(got == 0 ? 0 : 1); /* the peer is done */
        at += got;
        bytes -= (size_t)got;
    }
}

static void write_all(int fd, const char *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t put = write(fd, at, bytes);
        if (put <= 0) fail("write");
        at += put;
        bytes -= (size_t)put;
    }
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void pin(const char *cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(strtoul(cpu, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
}

static void sleep_until_us(double at)
{
    struct timespec until = {.tv_sec = (time_t)(at / 1e6)};
    until.tv_nsec = (long)((at - (double)until.tv_sec * 1e6) * 1e3);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
}

static void serve(int listener, size_t bytes, char *buffer)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) fail("accept");
    no_delay(fd);
    for (;;) {
        read_all(fd, buffer, bytes);
        write_all(fd, buffer, ANSWER_BYTES);
    }
}

int main(int argc, char **argv)
{
    bool usable = argc == 3 || argc == 4 || argc == 6;
    size_t bytes = usable ? strtoul(argv[1], NULL, 10) : 0;
    size_t count = usable ? strtoul(argv[2], NULL, 10) : 0;
    double rate = usable && argc > 3 ? strtod(argv[3], NULL) : 0;
    if (bytes < ANSWER_BYTES || bytes > 1 << 24 || count == 0 || count > 10000000) {
        fprintf(stderr,
                "usage: leat-echo BYTES COUNT [RATE [SERVER_CPU CLIENT_CPU]]   (BYTES from %d)\n",
                ANSWER_BYTES);
        return 2;
    }
    char *buffer = calloc(1, bytes);
    double *took = calloc(count, sizeof *took);
    if (!buffer || !took) fail("calloc");

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t address_bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) ||
        listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &address_bytes))
        fail("listen");
    pid_t server = fork();
    if (server < 0) fail("fork");
    if (argc == 6) pin(argv[server == 0 ? 4 : 5]);
    if (server == 0) serve(listener, bytes, buffer);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); /* else sleeps end up to 50 us late */

    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    no_delay(fd);
    double begin = 0;
    for (size_t i = 0; i < WARMUP + count; i++) {
        double from = now_us();
        if (i == WARMUP) begin = from;
        if (rate > 0 && i >= WARMUP) {
            double due = begin + (double)(i - WARMUP) * 1e6 / rate;
            if (due > from) sleep_until_us(due);
            from = due;
        }
        write_all(fd, buffer, bytes);
        read_all(fd, buffer, ANSWER_BYTES);
        if (i >= WARMUP) took[i - WARMUP] = now_us() - from;
    }
    close(fd);
    waitpid(server, NULL, 0);
    qsort(took, count, sizeof *took, ascending);
    printf(
        "{\"bytes\": %zu, \"count\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
        bytes, count, took[count / 2], took[count * 99 / 100], took[count - 1]);
    free(took);
    free(buffer);
    return 0;
}
