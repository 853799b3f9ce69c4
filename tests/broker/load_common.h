/* SPDX-License-Identifier: Apache-2.0 */
/* What the raw loads by both protocols share: a connection a thread, the batch that each sends over and
 * over, and the figures at the end. Threads: each worker's own. */
#ifndef LEAT_TESTS_BROKER_LOAD_COMMON_H
#define LEAT_TESTS_BROKER_LOAD_COMMON_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/batch.h"

enum {
    LOAD_RECORD_BYTES = 100,
    LOAD_RECORDS_MAX = 10000,
    LOAD_BUFFER_BYTES = 256 * 1024,      /* of answers */
    LOAD_FRAMES_BYTES = 4 * 1024 * 1024, /* of requests: holds more than the largest batch */
    LOAD_BATCH_BYTES_MAX = 2 * 1024 * 1024,
};

/** The first member of what a load keeps for each of its threads. */
struct load_worker {
    pthread_t thread;
    struct sockaddr_in address;
    unsigned in_flight, records;
    double seconds;
    uint64_t batches, bytes; /* the thread's results */
};

static inline double load_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

_Noreturn static inline void load_die(const char *what)
{
    perror(what);
    exit(1);
}

static inline void load_write(int fd, const uint8_t *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n <= 0) load_die("write");
        at += n;
        bytes -= (size_t)n;
    }
}

/** Argument `at`, where there is one. */
static inline unsigned load_number(int argc, char **argv, int at, unsigned otherwise)
{
    return argc > at ? (unsigned)strtoul(argv[at], NULL, 10) : otherwise;
}

/** HOST PORT, arguments 1 and 2. */
static inline struct sockaddr_in load_address(char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10))};
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    return address;
}

static inline int load_connect(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) load_die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/** A batch of so many records at `out`; returns its bytes. */
static inline uint32_t load_batch(uint8_t *out, unsigned records)
{
    static const uint8_t value[LOAD_RECORD_BYTES];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, LOAD_BATCH_BYTES_MAX);
    for (unsigned i = 0; i < records; i++)
        if (leat_batch_builder_add(&builder, 1, NULL, 0, value, sizeof value, NULL, 0, 0) != 0)
            load_die("batch");
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
}

/** Start work() on each of `count` workers of `stride` bytes, wait for their ends, print what they did together. */
static inline void load_run(void *workers, unsigned count, size_t stride, void *(*work)(void *))
{
    for (unsigned i = 0; i < count; i++) {
        struct load_worker *worker = (void *)((char *)workers + i * stride);
        pthread_create(&worker->thread, NULL, work, worker);
    }
    double start = load_now();
    uint64_t batches = 0, bytes = 0, records = 0;
    for (unsigned i = 0; i < count; i++) {
        struct load_worker *worker = (void *)((char *)workers + i * stride);
        pthread_join(worker->thread, NULL);
        batches += worker->batches;
        bytes += worker->bytes;
        records += worker->batches * worker->records;
    }
    double took = load_now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.2f M records/s, %.0f batches/s, %.2f GB/s, %llu batches, own CPU %.2f s\n",
           (double)records / took / 1e6, (double)batches / took, (double)bytes / took / 1e9,
           (unsigned long long)batches,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

#endif
