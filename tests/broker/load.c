/* SPDX-License-Identifier: Apache-2.0 */
/* Raw load on a running server: one thread per connection, frames of one batch each, a fixed number
 * in flight. No library code of the client is in the way: what it costs is the server's.
 *
 *   load HOST PORT STREAM CONNECTIONS SECONDS [BATCHES IN FLIGHT [RECORDS PER BATCH [LOGS [RATE]]]]
 *
 * LOGS: how many logs each connection takes in turn, 1 by default: then it is on that log's core.
 * RATE: records a second of each connection, 0: as fast as they are taken.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/broker/load_common.h"
#include "wire/frame.h"
#include "wire/message.h"

enum { LOGS_MAX = 256 };
struct target {
    uint32_t stream, count;
    struct leat_msg_log logs[LOGS_MAX];
};
struct worker {
    struct load_worker base;
    struct target target;
    uint32_t log; /* the first, an index of the target's */
    unsigned logs;
    double rate;
};

static struct leat_frame read_frame(int fd, uint8_t *buffer, size_t *have, size_t *consumed)
{
    struct leat_frame frame;
    size_t want;
    memmove(buffer, buffer + *consumed, *have - *consumed);
    *have -= *consumed;
    while (leat_frame_decode(buffer, *have, &frame, &want) != LEAT_OK) {
        ssize_t n = read(fd, buffer + *have, LOAD_BUFFER_BYTES - *have);
        if (n <= 0) load_die("read");
        *have += (size_t)n;
    }
    *consumed = frame.frame_bytes;
    return frame;
}

static int open_lane(const struct sockaddr_in *address, int64_t lane)
{
    int fd = load_connect(address);
    uint8_t out[256];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    struct leat_msg_hello hello = {1, 1, {"load", 4}, lane};
    leat_msg_hello_write(&writer, &hello);
    leat_frame_encode(out, LEAT_KIND_HELLO, 1, 0, 1, writer.used, 0);
    load_write(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
    uint8_t *buffer = malloc(LOAD_BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_frame frame = read_frame(fd, buffer, &have, &consumed);
    if ((frame.flags & LEAT_FRAME_ERROR) != 0) load_die("hello refused");
    free(buffer);
    return fd;
}

/* A stream whose name begins with "mem" is made with durability memory; one that is there stays. */
static void create(int fd, const char *name)
{
    uint8_t out[512];
    uint8_t *buffer = malloc(LOAD_BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_msg_writer writer;
    struct leat_stream_settings settings = {.durability = LEAT_DURABILITY_MEMORY};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_settings_write(&writer, &settings);
    leat_frame_encode(out, LEAT_KIND_STREAM_CREATE, 1, 0, 2, writer.used, 0);
    load_write(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
    (void)read_frame(fd, buffer, &have, &consumed);
    free(buffer);
}

static struct target look_up(int fd, const char *name)
{
    uint8_t out[512];
    uint8_t *buffer = malloc(LOAD_BUFFER_BYTES);
    size_t have = 0, consumed = 0;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, sizeof out - 24);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_bool(&writer, true);
    leat_frame_encode(out, LEAT_KIND_METADATA, 1, 0, 2, writer.used, 0);
    load_write(fd, out, LEAT_FRAME_HEADER_BYTES + writer.used);
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
    struct target target = {.stream = stream.id};
    while (target.count < stream.log_count && target.count < LOGS_MAX)
        leat_msg_log_read(&reader, &target.logs[target.count++]);
    if (reader.failed || stream.code != LEAT_OK) {
        fprintf(stderr, "no such stream: %d\n", stream.code);
        exit(1);
    }
    free(buffer);
    return target;
}

/* The batches of one round over the worker's logs, a frame for each. */
static size_t make_frame(uint8_t *out, const struct worker *worker, uint32_t number)
{
    const struct target *target = &worker->target;
    const struct leat_msg_log *log =
        &target->logs[(worker->log + number % worker->logs) % target->count];
    struct leat_msg_writer writer;
    struct leat_msg_append append = {{target->stream, log->streamlet, log->log}, log->epoch, 1};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, 64);
    leat_msg_append_write(&writer, &append);
    uint8_t *payload = out + LEAT_FRAME_HEADER_BYTES + writer.used;
    uint32_t bytes = load_batch(payload, worker->base.records);
    leat_frame_encode(out, LEAT_KIND_APPEND, 1, 0, number, writer.used, bytes);
    return LEAT_FRAME_HEADER_BYTES + writer.used + bytes;
}

/* What is sent over and over: as many frames as may be in flight, where they fit, and a whole number
 * of rounds. */
struct frames {
    uint8_t *bytes;
    size_t *ends; /* of the frames before each */
    unsigned count, at;
};

static struct frames make_frames(const struct worker *worker)
{
    uint8_t *one = malloc(LOAD_FRAMES_BYTES);
    size_t one_bytes = make_frame(one, worker, 0);
    struct frames frames = {0};
    frames.count = (unsigned)(3 * 1024 * 1024 / one_bytes);
    if (frames.count > worker->base.in_flight) frames.count = worker->base.in_flight;
    frames.count -= frames.count % worker->logs;
    if (frames.count < worker->logs) frames.count = worker->logs;
    frames.bytes = malloc(frames.count * (one_bytes + 16) + LOAD_FRAMES_BYTES);
    frames.ends = calloc(frames.count + 1, sizeof *frames.ends);
    for (unsigned i = 0; i < frames.count; i++)
        frames.ends[i + 1] = frames.ends[i] + make_frame(frames.bytes + frames.ends[i], worker, i);
    free(one);
    return frames;
}

/* Send up to `count` more; returns how many. */
static unsigned frames_send(int fd, struct frames *frames, unsigned count, uint64_t *bytes)
{
    if (count > frames->count - frames->at) count = frames->count - frames->at;
    size_t from = frames->ends[frames->at], to = frames->ends[frames->at + count];
    load_write(fd, frames->bytes + from, to - from);
    *bytes += to - from;
    frames->at = (frames->at + count) % frames->count;
    return count;
}

/* How many may be sent by now. */
static unsigned due(const struct worker *worker, double start, double at, unsigned flying,
                    uint64_t sent)
{
    unsigned room = worker->base.in_flight > flying ? worker->base.in_flight - flying : 0;
    if (worker->rate <= 0) return room;
    double allowed = (at - start) * worker->rate / worker->base.records - (double)sent;
    if (allowed < 1) return 0;
    return allowed < room ? (unsigned)allowed : room;
}

/* Until an answer has come, or a millisecond is over where more may be sent by then. */
static bool wait_for_answer(int fd, unsigned flying)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (flying == 0) {
        (void)poll(NULL, 0, 1);
        return false;
    }
    return poll(&wait, 1, 1) > 0;
}

static void take_answer(int fd, struct worker *worker, uint8_t *in, size_t *have, size_t *consumed)
{
    struct leat_frame frame = read_frame(fd, in, have, consumed);
    if ((frame.flags & LEAT_FRAME_ERROR) != 0 || frame.control[0] != 0x91) {
        fprintf(stderr, "append refused: %.*s\n", (int)frame.control_bytes,
                (const char *)frame.control);
        exit(1);
    }
    worker->base.batches++;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    int fd = open_lane(&worker->base.address, worker->target.logs[worker->log].lane);
    uint8_t *in = malloc(LOAD_BUFFER_BYTES);
    struct frames frames = make_frames(worker);
    size_t have = 0, consumed = 0;
    unsigned flying = 0;
    uint64_t sent = 0;
    double start = load_now(), end = start + worker->base.seconds, at;
    while ((at = load_now()) < end || flying > 0) {
        unsigned more = at < end ? due(worker, start, at, flying, sent) : 0;
        while (more > 0) {
            unsigned n = frames_send(fd, &frames, more, &worker->base.bytes);
            more -= n;
            flying += n;
            sent += n;
        }
        if (worker->rate > 0 && !wait_for_answer(fd, flying)) continue;
        /* Nothing may be flying: the time may have run out since the loop's condition. */
        while (flying > 0) {
            take_answer(fd, worker, in, &have, &consumed);
            flying--;
            if (have == consumed) break;
        }
    }
    close(fd);
    free(frames.bytes);
    free(frames.ends);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 6) return fprintf(stderr, "load HOST PORT STREAM CONNECTIONS SECONDS ...\n"), 2;
    struct sockaddr_in address = load_address(argv);
    int fd = open_lane(&address, -1);
    if (strncmp(argv[3], "mem", 3) == 0) create(fd, argv[3]);
    struct target target = look_up(fd, argv[3]);
    unsigned count = load_number(argc, argv, 4, 1);
    struct worker *workers = calloc(count, sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.base = {.address = address,
                                              .seconds = atof(argv[5]),
                                              .in_flight = load_number(argc, argv, 6, 5),
                                              .records = load_number(argc, argv, 7, 100)},
                                     .target = target,
                                     .log = i % target.count,
                                     .logs = load_number(argc, argv, 8, 1),
                                     .rate = load_number(argc, argv, 9, 0)};
        if (workers[i].base.records > LOAD_RECORDS_MAX || workers[i].logs == 0 ||
            workers[i].logs > LOGS_MAX)
            return 2;
    }
    load_run(workers, count, sizeof *workers, work);
    free(workers);
    return 0;
}
