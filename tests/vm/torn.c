/* SPDX-License-Identifier: Apache-2.0 */
/* Torn writes on a real RDMA stack: one host writes segments into the memory of another and is killed,
 * or fenced, in the middle.
 *
 *   vm_torn host PORT WANTED SECONDS     the backup: ends when so many torn writes were seen
 *   vm_torn writers HOST PORT            starts a writer for each trial, kills it, says what was acked
 *   vm_torn writer FILE                  one writer; prints a dot for each acked run
 *
 * A writer fills STREAMS segments at once, each through a queue pair of its own, by runs of a
 * mebibyte, two under way. Both sides can make the same segments, so the host knows what was sent.
 * They are made once on each side: on an emulated processor that takes longer than a trial.
 * The promise: what a scan of the private copy accepts is exactly a prefix of what was sent, and
 * has every run that the writer saw acked. A run is torn when some but not all of its bytes are
 * there. */
#include "tests/transport/os_rig.h"

#include "base/crc32c.h"
#include "base/random.h"
#include "wire/batch.h"
#include "wire/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STREAMS = 8,
    SEGMENT_BYTES = LEAT_SEGMENT_BYTES_MAX / 2,
    RUNS = 4, /* the first has the header and the start entry alone */
    BATCHES = 15,
    VALUE_BYTES = 68 * 1024,
    UNDER_WAY = 2,
    CONNECT_TRIES = 200,
};

/* ---- segments ---- */

struct segment {
    _Alignas(4096) uint8_t bytes[SEGMENT_BYTES];
    uint32_t ends[RUNS]; /* of the runs */
};

static void entry_add(struct leat_entry_writer *writer, enum leat_entry_type type, uint64_t offset,
                      uint32_t records, const void *payload, uint32_t bytes)
{
    (void)leat_entry_append(writer, type, offset, records, payload, bytes,
                            leat_crc32c(0, payload, bytes));
}

static void segment_make(struct segment *seg, unsigned stream)
{
    static uint8_t value[VALUE_BYTES], batch[VALUE_BYTES + 4096];
    struct leat_xoshiro random;
    struct leat_entry_writer writer;
    leat_xoshiro_seed(&random, 100 + stream);
    leat_entry_writer_init(&writer, seg->bytes, SEGMENT_BYTES);
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .stream = stream + 1,
                                         .capacity = SEGMENT_BYTES};
    struct leat_start start = {.base_offset = 0};
    entry_add(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header);
    entry_add(&writer, LEAT_ENTRY_START, 0, 0, &start, sizeof start);
    seg->ends[0] = leat_entry_seal(&writer, 0).bytes;
    uint64_t offset = 0;
    for (unsigned run = 1; run < RUNS; run++) {
        for (unsigned i = 0; i < BATCHES; i++, offset++) {
            struct leat_batch_builder builder;
            for (size_t at = 0; at < VALUE_BYTES; at += 8) {
                uint64_t word = leat_xoshiro_next(&random) | UINT64_C(0x0101010101010101);
                memcpy(value + at, &word, 8);
            }
            leat_batch_builder_init(&builder, batch, sizeof batch);
            RIG_CHECK(leat_batch_builder_add(&builder, 1, NULL, 0, value, VALUE_BYTES, NULL, 0,
                                             0) == LEAT_OK);
            uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
            leat_batch_stamp(batch, offset, 1);
            entry_add(&writer, LEAT_ENTRY_BATCH, offset, 1, batch, bytes);
        }
        /* What is acked by the time that this run leaves: all but those under way. */
        uint32_t acked = run > UNDER_WAY ? seg->ends[run - UNDER_WAY] : 0;
        seg->ends[run] = leat_entry_seal(&writer, acked).bytes;
    }
}

/* ---- messages between the two hosts: one line each ---- */

static void line_send(FILE *peer, const char *text)
{
    RIG_CHECK(fprintf(peer, "%s\n", text) > 0 && fflush(peer) == 0);
}
static bool line_get(FILE *peer, char *text, size_t bytes)
{
    if (!fgets(text, (int)bytes, peer)) return false;
    text[strcspn(text, "\n")] = 0;
    return true;
}

/* ---- one writer ---- */

struct shared {
    struct leat_rmem_grant grant;
    _Atomic uint32_t acked[STREAMS]; /* runs */
    struct segment segs[STREAMS];
};

struct stream {
    struct writer *writer;
    struct segment *seg;
    struct leat_rmem_target *target;
    struct leat_rmem_write writes[UNDER_WAY];
    struct leat_iov iovs[UNDER_WAY];
    unsigned number, posted, acked;
    bool failed;
};
struct writer {
    struct os_rig *rig;
    struct shared *shared;
    struct stream streams[STREAMS];
};

static void run_post(struct stream *stream);

static void run_on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct stream *stream = write->owner;
    if (rc) return;
    stream->acked++;
    atomic_store(&stream->writer->shared->acked[stream->number], stream->acked);
    RIG_CHECK(putchar('.') == '.' && fflush(stdout) == 0);
    run_post(stream);
    if (stream->acked == RUNS) stream->writer->rig->rig.notify(stream->writer->rig);
}
static void run_post(struct stream *stream)
{
    while (stream->posted < RUNS && stream->posted < stream->acked + UNDER_WAY) {
        unsigned run = stream->posted, slot = run % UNDER_WAY;
        uint32_t from = run ? stream->seg->ends[run - 1] : 0;
        stream->iovs[slot] =
            (struct leat_iov){stream->seg->bytes + from, stream->seg->ends[run] - from};
        stream->writes[slot] =
            (struct leat_rmem_write){.iovs = &stream->iovs[slot],
                                     .iov_count = 1,
                                     .offset = (uint64_t)stream->number * SEGMENT_BYTES + from,
                                     .on_done = run_on_done,
                                     .owner = stream};
        if (leat_rmem_write(stream->target, &stream->writes[slot])) return;
        stream->posted++;
    }
}
static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct stream *stream = user;
    stream->target = target;
    run_post(stream);
}
static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct stream *stream = user;
    (void)target;
    if (getenv("LEAT_VM_VERBOSE"))
        fprintf(stderr, "stream %u, %u of %u acked: %s\n", stream->number, stream->acked,
                stream->posted, error->text);
    stream->failed = true;
    stream->writer->rig->rig.notify(stream->writer->rig);
}
static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static void writer_begin(void *arg)
{
    struct writer *writer = arg;
    const struct leat_rmem *port = writer->rig->rig.writer;
    struct leat_error error;
    leat_err rc = port->source(port->ctx, writer->shared, sizeof *writer->shared, &error);
    for (unsigned i = 0; i < STREAMS && !rc; i++) {
        struct stream *stream = &writer->streams[i];
        stream->writer = writer;
        stream->number = i;
        stream->seg = &writer->shared->segs[i];
        rc = port->attach(port->ctx, 0, &writer->shared->grant, &handler, stream, &stream->target,
                          &error);
    }
    if (rc) fprintf(stderr, "writer: %s\n", error.text);
    RIG_CHECK(!rc);
}
static bool writer_over(void *arg)
{
    struct writer *writer = arg;
    unsigned over = 0; /* two emulated machines lose packets: a stream may fail before its time */
    for (unsigned i = 0; i < STREAMS; i++)
        over += writer->streams[i].failed || writer->streams[i].acked == RUNS;
    return over == STREAMS;
}

static struct shared *shared_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    RIG_CHECK(fd >= 0 && ftruncate(fd, sizeof(struct shared)) == 0);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RIG_CHECK(shared != MAP_FAILED);
    close(fd);
    return shared;
}

static int writer_main(const char *path)
{
    static struct writer writer;
    writer.shared = shared_map(path);
    writer.rig = os_rig_make(NULL, "0.0.0.0");
    writer.rig->rig.writer = os_rig_writer(writer.rig, LEAT_RMEM_VERBS);
    RIG_CHECK(writer.rig->rig.writer != NULL);
    os_rig_start(writer.rig);
    writer.rig->rig.call(writer.rig, RIG_WRITER, writer_begin, &writer);
    writer.rig->rig.wait(writer.rig, RIG_WRITER, writer_over, &writer);
    os_rig_stop(writer.rig);
    os_rig_drop(writer.rig);
    return 0;
}

/* ---- all writers ---- */

static FILE *connect_to(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    RIG_CHECK(getaddrinfo(host, port, &hints, &found) == 0);
    for (int i = 0; i < CONNECT_TRIES; i++) {
        int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) return fdopen(fd, "r+");
        close(fd);
        /* The other guest is still starting: its kernel answers at once, or not for a second. */
        struct timespec pause = {0, 100000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return NULL;
}

static pid_t writer_start(const char *path, int *out_dots)
{
    int ends[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    RIG_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    char *const arguments[] = {(char *)"vm_torn", (char *)"writer", (char *)(uintptr_t)path, NULL};
    RIG_CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out_dots = ends[0];
    return pid;
}

static int writers_main(const char *host, const char *port)
{
    char path[] = "/dev/shm/torn-XXXXXX", text[2 * LEAT_RMEM_GRANT_BYTES_MAX + 64];
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 1);
    int fd = mkstemp(path);
    RIG_CHECK(fd >= 0 && close(fd) == 0);
    struct shared *shared = shared_map(path);
    for (unsigned i = 0; i < STREAMS; i++)
        segment_make(&shared->segs[i], i);
    FILE *peer = connect_to(host, port);
    RIG_CHECK(peer != NULL);
    /* "GRANT <hex>" -> a trial; anything else ends */
    for (unsigned trial = 0; line_get(peer, text, sizeof text); trial++) {
        if (strncmp(text, "GRANT ", 6) != 0) break;
        shared->grant.bytes = 0;
        for (const char *at = text + 6; at[0] && at[1]; at += 2) {
            unsigned byte;
            RIG_CHECK(sscanf(at, "%2x", &byte) == 1);
            shared->grant.data[shared->grant.bytes++] = (uint8_t)byte;
        }
        for (unsigned i = 0; i < STREAMS; i++)
            atomic_store(&shared->acked[i], 0);
        int dots, status;
        pid_t pid = writer_start(path, &dots);
        unsigned wanted = STREAMS + (unsigned)(leat_xoshiro_next(&random) % (STREAMS * 3 / 2));
        char dot;
        while (wanted > 0 && read(dots, &dot, 1) == 1)
            wanted--;
        bool fence = trial % 2;
        fseek(peer, 0, SEEK_CUR);
        if (fence)
            line_send(peer, "FENCE");
        else
            RIG_CHECK(kill(pid, SIGKILL) == 0);
        while (read(dots, &dot, 1) == 1)
            continue;
        close(dots);
        RIG_CHECK(waitpid(pid, &status, 0) == pid);
        int length = snprintf(text, sizeof text, "ACKED");
        for (unsigned i = 0; i < STREAMS; i++)
            length += snprintf(text + length, sizeof text - (size_t)length, " %u",
                               atomic_load(&shared->acked[i]));
        line_send(peer, text);
        fseek(peer, 0, SEEK_CUR);
    }
    unlink(path);
    return 0;
}

/* ---- the backup ---- */

struct host {
    struct os_rig *rig;
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    bool grown;
    uint8_t *copy;
    struct segment segs[STREAMS];
    unsigned trials, kills, fences, torn_by_kill, torn_by_fence, torn_of_trial, prefixes;
    uint64_t prefix_bytes;
};

static void on_grown(struct leat_rmem_grow *grow)
{
    struct host *host = grow->owner;
    RIG_CHECK(grow->rc == LEAT_OK);
    host->grown = true;
    host->rig->rig.notify(host->rig);
}
static void host_open(void *arg)
{
    struct host *host = arg;
    const struct leat_rmem_host *port = host->rig->rig.host;
    RIG_CHECK(port->open(port->ctx, "writer", 1, LEAT_ARENA_STEP_BYTES, &host->arena, NULL) ==
              LEAT_OK);
    host->grown = false;
    host->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = host};
    port->grow(port->ctx, host->arena, &host->grow);
}
static bool host_grown(void *arg)
{
    return ((struct host *)arg)->grown;
}
static void host_grant(void *arg)
{
    struct host *host = arg;
    host->rig->rig.host->grant(host->rig->rig.host->ctx, host->arena, &host->grant);
}
static void host_revoke_and_copy(void *arg)
{
    struct host *host = arg;
    host->rig->rig.host->revoke(host->rig->rig.host->ctx, host->arena);
    memcpy(host->copy, host->arena->base, (size_t)STREAMS * SEGMENT_BYTES);
}
/* Later, when the writer has ended: by verbs not a byte may have changed since the fence. */
static void host_compare_and_retire(void *arg)
{
    struct host *host = arg;
    RIG_CHECK(memcmp(host->copy, host->arena->base, (size_t)STREAMS * SEGMENT_BYTES) == 0);
    host->rig->rig.host->retire(host->rig->rig.host->ctx, host->arena);
}

static void stream_check(struct host *host, unsigned number, uint32_t acked_runs)
{
    const uint8_t *copy = host->copy + (size_t)number * SEGMENT_BYTES;
    const struct segment *seg = &host->segs[number];
    struct leat_scan scan;
    leat_scan_segment(copy, SEGMENT_BYTES, &scan);
    uint32_t acked_bytes = acked_runs ? seg->ends[acked_runs - 1] : 0;
    RIG_CHECK(!scan.damaged);
    RIG_CHECK(scan.bytes >= acked_bytes);
    RIG_CHECK(memcmp(copy, seg->bytes, scan.bytes) == 0);
    unsigned whole = 0;
    while (whole < RUNS && seg->ends[whole] <= scan.bytes)
        whole++;
    RIG_CHECK(scan.bytes == (whole ? seg->ends[whole - 1] : 0)); /* a run, never a part of one */
    host->prefixes++;
    host->prefix_bytes += scan.bytes;
    if (whole == RUNS) return;
    bool some = false;
    for (uint32_t at = scan.bytes; at < seg->ends[whole] && !some; at++)
        some = copy[at] != 0;
    if (some) host->torn_of_trial++;
}

static bool trial_run(struct host *host, FILE *peer)
{
    char text[2 * LEAT_RMEM_GRANT_BYTES_MAX + 64];
    host->rig->rig.call(host->rig, RIG_HOST, host_open, host);
    host->rig->rig.wait(host->rig, RIG_HOST, host_grown, host);
    host->rig->rig.call(host->rig, RIG_HOST, host_grant, host);
    int length = snprintf(text, sizeof text, "GRANT ");
    for (uint32_t i = 0; i < host->grant.bytes; i++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%02x", host->grant.data[i]);
    line_send(peer, text);
    fseek(peer, 0, SEEK_CUR);
    if (!line_get(peer, text, sizeof text)) return false;
    bool fence = strcmp(text, "FENCE") == 0;
    host->rig->rig.call(host->rig, RIG_HOST, host_revoke_and_copy, host);
    if (fence && !line_get(peer, text, sizeof text)) return false;
    fseek(peer, 0, SEEK_CUR);
    char *at = text + strlen("ACKED");
    RIG_CHECK(strncmp(text, "ACKED", strlen("ACKED")) == 0);
    host->torn_of_trial = 0;
    for (unsigned i = 0; i < STREAMS; i++)
        stream_check(host, i, (uint32_t)strtoul(at, &at, 10));
    host->rig->rig.call(host->rig, RIG_HOST, host_compare_and_retire, host);
    host->trials++;
    if (fence) {
        host->fences++;
        host->torn_by_fence += host->torn_of_trial;
    } else {
        host->kills++;
        host->torn_by_kill += host->torn_of_trial;
    }
    return true;
}

static int host_main(const char *port, unsigned wanted, unsigned seconds)
{
    static struct host host;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    RIG_CHECK(bind(listener, (struct sockaddr *)&any, sizeof any) == 0 && listen(listener, 4) == 0);
    host.rig = os_rig_make(NULL, "0.0.0.0");
    RIG_CHECK(os_rig_writer(host.rig, LEAT_RMEM_VERBS) != NULL);
    os_rig_start(host.rig);
    host.copy = malloc((size_t)STREAMS * SEGMENT_BYTES);
    RIG_CHECK(host.copy != NULL);
    for (unsigned i = 0; i < STREAMS; i++)
        segment_make(&host.segs[i], i);
    int fd = accept(listener, NULL, NULL);
    RIG_CHECK(fd >= 0);
    FILE *peer = fdopen(fd, "r+");
    time_t until = time(NULL) + (time_t)seconds;
    bool alive = true;
    while (alive && host.torn_by_kill + host.torn_by_fence < wanted && time(NULL) < until) {
        alive = trial_run(&host, peer);
        if (host.trials % 5 == 0)
            printf("%u trials, torn: %u by kill, %u by fence\n", host.trials, host.torn_by_kill,
                   host.torn_by_fence);
        fflush(stdout);
    }
    if (alive) line_send(peer, "END");
    printf("Soft-RoCE, two hosts: %u writers killed, %u fenced; %u writes torn (%u by kill, %u by "
           "fence)\n%u prefixes accepted, %.1f MB: each is a prefix of what was sent and has all "
           "that was acked\n",
           host.kills, host.fences, host.torn_by_kill + host.torn_by_fence, host.torn_by_kill,
           host.torn_by_fence, host.prefixes, (double)host.prefix_bytes / 1e6);
    fflush(stdout);
    os_rig_stop(host.rig);
    os_rig_drop(host.rig);
    return alive && host.torn_by_kill + host.torn_by_fence >= wanted ? 0 : 1;
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stderr, NULL, _IOLBF, 0);
    if (argc == 5 && strcmp(argv[1], "host") == 0)
        return host_main(argv[2], (unsigned)strtoul(argv[3], NULL, 10),
                         (unsigned)strtoul(argv[4], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "writers") == 0) return writers_main(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "writer") == 0) return writer_main(argv[2]);
    fprintf(stderr, "vm_torn: see the source for how to call it\n");
    return 2;
}
