/* SPDX-License-Identifier: Apache-2.0 */
/* A yardstick: threads that write pieces and sync each one before the next. What a disk gives to whoever
 * has only so much under way and has to know it safe.
 *
 *   leat-sync DIR grow|used THREADS PIECE_BYTES TOTAL_BYTES
 *
 * Each thread has a file of its own in DIR and writes its part of TOTAL_BYTES (O_DIRECT, one piece after
 * the other, fdatasync behind each). "grow": the files grow by fallocate, 64 MiB at a time, as Leat's
 * store files do, and the pieces are the first writes to that space. "used": the files have been written
 * and synced before; that is not counted. The files are removed. Prints
 *   {"how":…,"threads":…,"piece_bytes":…,"bytes":…,"seconds":…,"bytes_per_second":…}
 */
#include "yardstick.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, BLOCK_BYTES = 4096, GROW_BYTES = 64 << 20, FILL_BYTES = 1 << 20 };
static const uint64_t PIECE_BYTES_MAX = 64 << 20, TOTAL_BYTES_MAX = UINT64_C(1) << 40;

struct load {
    const char *dir;
    bool used;
    unsigned threads;
    size_t piece_bytes;
    uint64_t thread_bytes; /* whole pieces */
};

struct worker {
    const struct load *load;
    pthread_t thread;
    pthread_barrier_t *begin;
    char *piece;
    int fd;
};

static void write_at(int fd, const char *from, size_t bytes, uint64_t at)
{
    while (bytes > 0) {
        ssize_t put = pwrite(fd, from, bytes, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) fail("pwrite");
        from += put;
        bytes -= (size_t)put;
        at += (size_t)put;
    }
}

/* The name is gone at once, so nothing stays behind however this ends. */
static int open_file(const char *dir, unsigned number)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/leat-sync.%d.%u", dir, getpid(), number);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        fail(dir);
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0 || unlink(path)) fail(path);
    return fd;
}

static void write_before(const struct worker *w, const char *filling)
{
    for (uint64_t at = 0; at < w->load->thread_bytes; at += FILL_BYTES)
        write_at(w->fd, filling, FILL_BYTES, at);
    if (fsync(w->fd)) fail("fsync");
}

static void *work(void *of)
{
    struct worker *w = of;
    const struct load *load = w->load;
    uint64_t allocated = load->used ? load->thread_bytes : 0;
    pthread_barrier_wait(w->begin);
    for (uint64_t at = 0; at < load->thread_bytes; at += load->piece_bytes) {
        while (allocated < at + load->piece_bytes) {
            if (fallocate(w->fd, 0, (off_t)allocated, GROW_BYTES)) fail("fallocate");
            allocated += GROW_BYTES;
        }
        write_at(w->fd, w->piece, load->piece_bytes, at);
        if (fdatasync(w->fd)) fail("fdatasync");
    }
    return NULL;
}

/* Memory that O_DIRECT takes; never given back. */
static char *buffer(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    memset(at, 0x5a, bytes);
    return at;
}

static double run(const struct load *load)
{
    static struct worker workers[THREADS_MAX];
    pthread_barrier_t begin;
    if (pthread_barrier_init(&begin, NULL, load->threads + 1)) fail("pthread_barrier_init");
    char *filling = buffer(FILL_BYTES);
    for (unsigned i = 0; i < load->threads; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.load = load, .begin = &begin, .piece = buffer(load->piece_bytes)};
        w->fd = open_file(load->dir, i);
        if (load->used) write_before(w, filling);
        errno = pthread_create(&w->thread, NULL, work, w);
        if (errno) fail("pthread_create");
    }
    pthread_barrier_wait(&begin);
    double since = now();
    for (unsigned i = 0; i < load->threads; i++)
        pthread_join(workers[i].thread, NULL);
    double seconds = now() - since;
    for (unsigned i = 0; i < load->threads; i++)
        close(workers[i].fd);
    pthread_barrier_destroy(&begin);
    return seconds;
}

static bool parse(struct load *load, int argc, char **argv)
{
    if (argc != 6) return false;
    char *threads_end, *piece_end, *total_end;
    load->dir = argv[1];
    load->used = strcmp(argv[2], "used") == 0;
    if (!load->used && strcmp(argv[2], "grow") != 0) return false;
    unsigned long threads = strtoul(argv[3], &threads_end, 10);
    uint64_t piece = strtoull(argv[4], &piece_end, 10), total = strtoull(argv[5], &total_end, 10);
    if (*threads_end || *piece_end || *total_end) return false;
    if (threads < 1 || threads > THREADS_MAX || piece < BLOCK_BYTES || piece > PIECE_BYTES_MAX ||
        piece % BLOCK_BYTES != 0 || total > TOTAL_BYTES_MAX || total / threads < piece)
        return false;
    load->threads = (unsigned)threads;
    load->piece_bytes = piece;
    load->thread_bytes = total / threads / piece * piece;
    return true;
}

int main(int argc, char **argv)
{
    struct load load = {0};
    if (!parse(&load, argc, argv)) {
        fprintf(stderr,
                "usage: leat-sync DIR grow|used THREADS PIECE_BYTES TOTAL_BYTES\n"
                "  THREADS      1 to %d\n"
                "  PIECE_BYTES  a multiple of %d, at most 64 MiB; TOTAL_BYTES has one for each "
                "thread\n",
                THREADS_MAX, BLOCK_BYTES);
        return 2;
    }
    double seconds = run(&load);
    uint64_t bytes = load.thread_bytes * load.threads;
    printf("{\"how\": \"%s\", \"threads\": %u, \"piece_bytes\": %zu, \"bytes\": %llu, "
           "\"seconds\": %.3f, \"bytes_per_second\": %.0f}\n",
           argv[2], load.threads, load.piece_bytes, (unsigned long long)bytes, seconds,
           (double)bytes / seconds);
    return 0;
}
