/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cluster/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "leat/consumer.h"
#include "leat/producer.h"

extern char **environ;

enum {
    READY_MS = 30000,
    WAIT_SECONDS = 120,
    OPEN_MAX = 400, /* records of one producer under way: a death finds some unanswered */
    STREAMS_MAX = 2,
    PARTITIONS_MAX = 8,
    OFFSETS_MAX = LOAD_RECORDS_MAX,
};

/* ---- small things ---- */

void (*fail_cleanup)(void);

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("FAILED: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fflush(NULL);
    if (fail_cleanup) fail_cleanup();
    _exit(1);
}

uint64_t now_us(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000u + (uint64_t)at.tv_nsec / 1000u;
}

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* ---- server ---- */

void address_choose(char out[64])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) ||
        getsockname(fd, (struct sockaddr *)&at, &bytes))
        fail("no free port: %s", strerror(errno));
    snprintf(out, 64, "127.0.0.1:%u", ntohs(at.sin_port));
    close(fd);
}

void server_start(struct server *server)
{
    int ends[2];
    if (pipe(ends)) fail("pipe: %s", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    /* setpriv becomes leatd; a test that is killed leaves no server behind. */
    const char *const words[] = {
        "setpriv",    "--pdeathsig", "KILL",          "--",       server->leatd, "--data",
        server->data, "--listen",    server->address, "--memory", "512M",        "--cores",
        "2",          "--log-level", "error",         NULL};
    int rc = posix_spawnp(&server->pid, words[0], &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc) fail("%s: %s", words[0], strerror(rc));
    /* Its first line says ready. The pipe stays open as long as nobody else writes there. */
    struct pollfd wait = {ends[0], POLLIN, 0};
    char line[200];
    if (poll(&wait, 1, READY_MS) != 1) fail("leatd is not ready within %d ms", READY_MS);
    ssize_t got = read(ends[0], line, sizeof line - 1);
    if (got <= 0) fail("leatd ended before it was ready");
    line[got] = '\0';
    if (!strstr(line, "ready")) fail("leatd says: %s", line);
    close(ends[0]);
}

void server_kill(struct server *server)
{
    int status;
    if (kill(server->pid, SIGKILL)) fail("kill: %s", strerror(errno));
    while (waitpid(server->pid, &status, 0) < 0)
        if (errno != EINTR) fail("waitpid: %s", strerror(errno));
    /* Died before it was killed: a crash of its own. */
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail("leatd had ended by itself (status %#x)", (unsigned)status);
}

void server_freeze(struct server *server)
{
    int status;
    if (kill(server->pid, SIGSTOP)) fail("kill: %s", strerror(errno));
    while (waitpid(server->pid, &status, WUNTRACED) < 0)
        if (errno != EINTR) fail("waitpid: %s", strerror(errno));
    if (!WIFSTOPPED(status)) fail("leatd had ended by itself (status %#x)", (unsigned)status);
}

void server_stop(struct server *server)
{
    int status;
    kill(server->pid, SIGTERM);
    while (waitpid(server->pid, &status, 0) < 0)
        if (errno != EINTR) fail("waitpid: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail("leatd left with status %#x after SIGTERM", (unsigned)status);
}

void server_leat(const struct server *server, const char *const *words)
{
    const char *all[24] = {server->leat, "-b", server->address};
    unsigned count = 3;
    /* The words of the command come first: leat NOUN VERB ... -b ADDRESS. */
    const char *ordered[24] = {server->leat};
    unsigned used = 1;
    for (; *words && used < 20; words++)
        ordered[used++] = *words;
    for (unsigned i = 1; i < count; i++)
        ordered[used++] = all[i];
    ordered[used] = NULL;
    pid_t pid;
    int status;
    int rc = posix_spawn(&pid, server->leat, NULL, NULL, (char *const *)ordered, environ);
    if (rc) fail("%s: %s", server->leat, strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail("waitpid: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail("leat %s %s: status %#x", ordered[1], ordered[2], (unsigned)status);
}

/* ---- producers ---- */

struct record {
    bool acked;
    uint32_t partition;
    uint64_t offset;
};

struct sender {
    struct load *load;
    unsigned index, stream;
    leat_producer *producer;
    pthread_t thread;
    uint32_t sent;          /* its own thread */
    uint32_t answered;      /* under the lock */
    struct record *records; /* [sent]; acked under the lock */
};

struct load {
    const struct server *server;
    const char *streams[STREAMS_MAX];
    unsigned stream_count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t acked, open;
    bool finishing;
    struct sender senders[LOAD_PRODUCERS];
};

struct value {
    uint32_t sender, number;
    uint8_t pad[84];
};

static void on_result(void *arg, const leat_result *result)
{
    uintptr_t tag = (uintptr_t)arg;
    static struct load *load_of_tags; /* one load at a time: see load_start() */
    if (!result) {
        load_of_tags = arg;
        return;
    }
    struct load *load = load_of_tags;
    struct sender *sender = &load->senders[tag >> 32];
    if (result->code != 0)
        fail("producer %u record %u: %s", sender->index, (unsigned)(uint32_t)tag, result->text);
    pthread_mutex_lock(&load->lock);
    struct record *record = &sender->records[(uint32_t)tag];
    record->acked = true;
    record->partition = result->streamlet * 2 + result->log;
    record->offset = result->offset;
    sender->answered++;
    load->acked++;
    load->open--;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
}

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    struct load *load = sender->load;
    for (;;) {
        pthread_mutex_lock(&load->lock);
        while (!load->finishing && sender->sent - sender->answered >= OPEN_MAX)
            pthread_cond_wait(&load->changed, &load->lock);
        bool end = load->finishing || sender->sent == LOAD_RECORDS_MAX;
        if (!end) load->open++;
        pthread_mutex_unlock(&load->lock);
        if (end) return NULL;
        struct value value = {sender->index, sender->sent, {0}};
        memset(value.pad, (int)(sender->sent & 0xff), sizeof value.pad);
        leat_produce_record record = {
            .value = &value, .value_bytes = sizeof value, .streamlet = -1};
        uintptr_t tag = ((uintptr_t)sender->index << 32) | sender->sent;
        sender->sent++;
        leat_code rc = leat_produce(sender->producer, load->streams[sender->stream], &record,
                                    on_result, (void *)tag);
        if (rc) fail("leat_produce: %s", leat_strerror(rc));
    }
}

struct load *load_start(const struct server *server, const char *const *streams, unsigned count)
{
    struct load *load = calloc(1, sizeof *load);
    if (!load || count > STREAMS_MAX) fail("no memory");
    load->server = server;
    load->stream_count = count;
    memcpy(load->streams, streams, count * sizeof *streams);
    pthread_mutex_init(&load->lock, NULL);
    pthread_cond_init(&load->changed, NULL);
    on_result(load, NULL);
    for (unsigned i = 0; i < LOAD_PRODUCERS; i++) {
        struct sender *sender = &load->senders[i];
        leat_producer_options options;
        leat_message message;
        leat_producer_options_init(&options);
        options.brokers = server->address;
        options.batch_bytes = 4096;
        options.timeout_ms = WAIT_SECONDS * 1000;
        options.create_streams = false;
        sender->load = load;
        sender->index = i;
        sender->stream = i % count;
        sender->records = calloc(LOAD_RECORDS_MAX, sizeof *sender->records);
        sender->producer = leat_producer_open(&options, &message);
        if (!sender->producer || !sender->records) fail("producer: %s", message.text);
        if (pthread_create(&sender->thread, NULL, send_all, sender)) fail("no thread");
    }
    return load;
}

static void wait_for(struct load *load, uint64_t acked, bool empty)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    while (load->acked < acked || (empty && load->open)) {
        if (pthread_cond_timedwait(&load->changed, &load->lock, &until) == ETIMEDOUT)
            fail("A10 stuck: %llu records acked, %llu unanswered after %d s",
                 (unsigned long long)load->acked, (unsigned long long)load->open, WAIT_SECONDS);
    }
}

uint64_t load_wait(struct load *load, uint64_t more)
{
    pthread_mutex_lock(&load->lock);
    wait_for(load, load->acked + more, false);
    uint64_t open = load->open;
    pthread_mutex_unlock(&load->lock);
    return open;
}

uint64_t load_acked(const struct load *load)
{
    return load->acked;
}

void load_finish(struct load *load)
{
    pthread_mutex_lock(&load->lock);
    load->finishing = true;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
    for (unsigned i = 0; i < LOAD_PRODUCERS; i++)
        pthread_join(load->senders[i].thread, NULL);
    pthread_mutex_lock(&load->lock);
    wait_for(load, 0, true);
    pthread_mutex_unlock(&load->lock);
}

void load_destroy(struct load **load)
{
    for (unsigned i = 0; i < LOAD_PRODUCERS; i++) {
        leat_producer_close((*load)->senders[i].producer);
        free((*load)->senders[i].records);
    }
    free(*load);
    *load = NULL;
}

/* ---- reading back ---- */

struct reading {
    uint64_t next[PARTITIONS_MAX];
    int64_t last[PARTITIONS_MAX][LOAD_PRODUCERS];
    uint64_t seen_acked;
    uint8_t *seen[LOAD_PRODUCERS];
};

static void record_check(const struct load *load, struct reading *reading, unsigned stream,
                         const leat_record_view *view)
{
    struct value value;
    uint32_t partition = view->streamlet * 2 + view->log;
    if (view->value_bytes != sizeof value || partition >= PARTITIONS_MAX)
        fail("A5: a record of %zu bytes in partition %u", view->value_bytes, partition);
    memcpy(&value, view->value, sizeof value);
    if (value.sender >= LOAD_PRODUCERS || value.sender % load->stream_count != stream)
        fail("A5: a record of producer %u in stream %u", value.sender, stream);
    const struct sender *sender = &load->senders[value.sender];
    if (value.number >= sender->sent) fail("A5: %u:%u was never sent", value.sender, value.number);
    if (view->offset != reading->next[partition])
        fail("A6 poll-skip: partition %u offset %llu after %llu", partition,
             (unsigned long long)view->offset, (unsigned long long)reading->next[partition] - 1);
    reading->next[partition]++;
    if ((int64_t)value.number <= reading->last[partition][value.sender])
        fail("A8 nonmonotonic-send: %u:%u after %lld in partition %u", value.sender, value.number,
             (long long)reading->last[partition][value.sender], partition);
    reading->last[partition][value.sender] = value.number;
    if (reading->seen[value.sender][value.number]++)
        fail("A3 duplicate: %u:%u", value.sender, value.number);
    const struct record *record = &sender->records[value.number];
    if (!record->acked) return;
    reading->seen_acked++;
    if (record->partition != partition || record->offset != view->offset)
        fail("A4 inconsistent-offsets: %u:%u acked at %u/%llu, is at %u/%llu", value.sender,
             value.number, record->partition, (unsigned long long)record->offset, partition,
             (unsigned long long)view->offset);
}

static uint64_t stream_read(const struct load *load, struct reading *reading, unsigned stream)
{
    leat_consumer_options options;
    leat_message message;
    leat_consumer_options_init(&options);
    options.brokers = load->server->address;
    options.from = LEAT_FROM_EARLIEST;
    leat_consumer *consumer =
        leat_consumer_open(load->streams[stream], &options, READY_MS, &message);
    if (!consumer) fail("consumer: %s", message.text);
    memset(reading->next, 0, sizeof reading->next);
    memset(reading->last, 0xff, sizeof reading->last);
    uint64_t records = 0, wanted = 0, end_us = now_us() + WAIT_SECONDS * 1000000ull;
    reading->seen_acked = 0;
    for (unsigned i = stream; i < LOAD_PRODUCERS; i += load->stream_count)
        wanted += load->senders[i].answered;
    while (reading->seen_acked < wanted) {
        leat_code code = 0;
        const leat_record_view *view = leat_consumer_next(consumer, 200, &code);
        if (code) fail("consumer: %s", leat_strerror(code));
        if (view) {
            record_check(load, reading, stream, view);
            records++;
        } else if (now_us() > end_us) {
            fail("A1 lost-write or A2 unseen: stream %s shows %llu of %llu acked records",
                 load->streams[stream], (unsigned long long)reading->seen_acked,
                 (unsigned long long)wanted);
        }
    }
    leat_consumer_close(consumer);
    return records;
}

void load_verify(const struct load *load)
{
    struct reading reading;
    uint64_t records = 0;
    for (unsigned i = 0; i < LOAD_PRODUCERS; i++) {
        reading.seen[i] = calloc(LOAD_RECORDS_MAX, 1);
        if (!reading.seen[i]) fail("no memory");
    }
    for (unsigned i = 0; i < load->stream_count; i++)
        records += stream_read(load, &reading, i);
    for (unsigned i = 0; i < LOAD_PRODUCERS; i++)
        free(reading.seen[i]);
    printf("verified: %llu records, %llu acked, all there, once and in order\n",
           (unsigned long long)records, (unsigned long long)load->acked);
}
