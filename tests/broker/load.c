/* Raw load on a running server: one thread per connection, frames of one batch each, a fixed number
 * in flight. No library code of the client is in the way: what it costs is the server's.
 *
 *   load HOST PORT STREAM CONNECTIONS SECONDS [BATCHES IN FLIGHT [RECORDS PER BATCH]]
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/message.h"

enum { RECORD_BYTES = 100, BUFFER_BYTES = 256 * 1024, RECORDS_MAX = 10000 };

struct target {
    uint32_t stream, epoch, logs;
    uint32_t lanes[256];
};
struct worker {
    pthread_t thread;
    struct sockaddr_in address;
    struct target target;
    uint32_t log;
    unsigned in_flight, records;
    double seconds;
    uint64_t batches, bytes;
    int64_t producer;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(int fd, const uint8_t *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n <= 0) die("write");
        at += n;
        bytes -= (size_t)n;
    }
}

static struct leat_frame read_frame(int fd, uint8_t *buffer, size_t *have, size_t *consumed)
{
    struct leat_frame frame;
    size_t want;
    memmove(buffer, buffer + *consumed, *have - *consumed);
    *have -= *consumed;
    while (leat_frame_decode(buffer, *have, &frame, &want) != LEAT_OK) {
        ssize_t n = read(fd, buffer + *have, BUFFER_BYTES - *have);
        if (n <= 0) die("read");
        *have += (size_t)n;
    }
    *consumed = frame.frame_bytes;
    return frame;
}

static int open_lane(const struct sockaddr_in *address, int64_t lane)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    uint8_t out[256];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    struct leat_msg_hello hello = {1, 1, {"load", 4}, lane};
    leat_msg_hello_encode(&writer, &hello);
    leat_frame_encode(out, LEAT_KIND_HELLO, 1, 0, 1, writer.used, 0);
    write_all(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
    uint8_t *buffer = malloc(BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_frame frame = read_frame(fd, buffer, &have, &consumed);
    if ((frame.flags & LEAT_FRAME_ERROR) != 0) die("hello refused");
    free(buffer);
    return fd;
}

/* A stream whose name begins with "mem" is made with durability memory; one that is there stays. */
static void create(int fd, const char *name)
{
    uint8_t out[512];
    uint8_t *buffer = malloc(BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_msg_writer writer;
    struct leat_stream_settings settings = {.durability = LEAT_DURABILITY_MEMORY};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_settings_write(&writer, &settings);
    leat_frame_encode(out, LEAT_KIND_STREAM_CREATE, 1, 0, 2, writer.used, 0);
    write_all(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
    (void)read_frame(fd, buffer, &have, &consumed);
    free(buffer);
}

static struct target look_up(int fd, const char *name)
{
    uint8_t out[512];
    uint8_t *buffer = malloc(BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_bool(&writer, true);
    leat_frame_encode(out, LEAT_KIND_METADATA, 1, 0, 2, writer.used, 0);
    write_all(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
    struct leat_frame frame = read_frame(fd, buffer, &have, &consumed);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame.control, frame.control_bytes);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_string(&reader);
    struct leat_msg_node node;
    for (uint32_t n = leat_msg_read_array(&reader); n > 0; n--)
        leat_msg_node_read(&reader, &node);
    (void)leat_msg_read_array(&reader);
    struct leat_msg_stream stream;
    leat_msg_stream_read(&reader, &stream);
    struct target target = {.stream = stream.id, .logs = stream.log_count};
    for (uint32_t i = 0; i < stream.log_count && i < 256; i++) {
        struct leat_msg_log log;
        leat_msg_log_read(&reader, &log);
        target.epoch = log.epoch;
        target.lanes[i] = log.lane;
    }
    if (reader.failed || stream.code != LEAT_OK) {
        fprintf(stderr, "no such stream: %d\n", stream.code);
        exit(1);
    }
    free(buffer);
    return target;
}

static size_t make_frame(uint8_t *out, struct worker *worker, uint32_t number)
{
    static const uint8_t value[RECORD_BYTES];
    struct leat_msg_writer writer;
    struct leat_msg_append append = {
        {worker->target.stream, 0, worker->log}, worker->target.epoch, 1};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, 64);
    leat_msg_append_encode(&writer, &append);
    uint8_t *payload = out + LEAT_FRAME_HEADER_BYTES + writer.used;
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, payload, 2 * 1024 * 1024);
    for (unsigned i = 0; i < worker->records; i++)
        if (leat_batch_builder_add(&builder, 1, NULL, 0, value, sizeof value, NULL, 0, 0) != 0)
            die("batch");
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_frame_encode(out, LEAT_KIND_APPEND, 1, 0, number, writer.used, bytes);
    return LEAT_FRAME_HEADER_BYTES + writer.used + bytes;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    int fd = open_lane(&worker->address, worker->target.lanes[worker->log]);
    uint8_t *out = malloc(4 * 1024 * 1024), *in = malloc(BUFFER_BYTES);
    size_t frame_bytes = make_frame(out, worker, 7);
    /* All that may be in flight, one after the other: sent by one write where it fits. */
    unsigned repeat = (unsigned)(3 * 1024 * 1024 / frame_bytes);
    if (repeat > worker->in_flight) repeat = worker->in_flight;
    for (unsigned i = 1; i < repeat; i++)
        memcpy(out + i * frame_bytes, out, frame_bytes);
    size_t have = 0, consumed = 0;
    unsigned flying = 0;
    double end = now() + worker->seconds;
    while (now() < end || flying > 0) {
        if (now() < end)
            while (flying < worker->in_flight) {
                unsigned n =
                    worker->in_flight - flying < repeat ? worker->in_flight - flying : repeat;
                write_all(fd, out, n * frame_bytes);
                flying += n;
            }
        /* Nothing may be flying: the time may have run out since the loop's condition. */
        while (flying > 0) {
            struct leat_frame frame = read_frame(fd, in, &have, &consumed);
            if ((frame.flags & LEAT_FRAME_ERROR) != 0 || frame.control[0] != 0x91) {
                fprintf(stderr, "append refused: %.*s\n", (int)frame.control_bytes,
                        (const char *)frame.control);
                exit(1);
            }
            flying--;
            worker->batches++;
            worker->bytes += frame_bytes;
            if (have == consumed) break;
        }
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 6) return fprintf(stderr, "load HOST PORT STREAM CONNECTIONS SECONDS ...\n"), 2;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(int)strtol(argv[2], NULL, 10))};
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    int fd = open_lane(&address, -1);
    if (strncmp(argv[3], "mem", 3) == 0) create(fd, argv[3]);
    struct target target = look_up(fd, argv[3]);
    unsigned count = (unsigned)(int)strtol(argv[4], NULL, 10);
    struct worker *workers = calloc(count, sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i].address = address;
        workers[i].target = target;
        workers[i].log = i % target.logs;
        workers[i].seconds = atof(argv[5]);
        workers[i].in_flight = argc > 6 ? (unsigned)(int)strtol(argv[6], NULL, 10) : 5;
        workers[i].records = argc > 7 ? (unsigned)(int)strtol(argv[7], NULL, 10) : 100;
        if (workers[i].records > RECORDS_MAX) return 2;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    double start = now();
    uint64_t batches = 0, bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        batches += workers[i].batches;
        bytes += workers[i].bytes;
    }
    double took = now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.2f M records/s, %.0f batches/s, %.2f GB/s, own CPU %.2f s\n",
           (double)batches * workers[0].records / took / 1e6, (double)batches / took,
           (double)bytes / took / 1e9,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
