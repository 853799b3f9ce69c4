/* Raw load by Kafka's protocol, to be held against tests/broker/load.c: the same batches, a fixed
 * number of requests in flight, one batch of one partition in each. A connection takes its
 * partitions in turn, as clients of Kafka do, which have one connection to a node.
 *
 *   load HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS [REQUESTS IN FLIGHT [RECORDS PER BATCH]]
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/batch.h"

enum { RECORD_BYTES = 100, BUFFER_BYTES = 256 * 1024, RECORDS_MAX = 10000 };

struct worker {
    pthread_t thread;
    struct sockaddr_in address;
    const char *topic;
    unsigned partitions, in_flight, records;
    double seconds;
    uint64_t batches, bytes;
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

/* Produce, version 7. *out_index: where the partition's number is. */
static size_t make_frame(uint8_t *out, const struct worker *worker, size_t *out_index)
{
    static const uint8_t value[RECORD_BYTES];
    const uint8_t head[] = {0,   0,   0,   0,    0,    0,    0,    7, 0, 0, 0, 1, 0, 4, 'l',
                            'o', 'a', 'd', 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 1};
    size_t used = sizeof head, name_bytes = strlen(worker->topic);
    memcpy(out, head, sizeof head);
    leat_put_be16(out + used, (uint16_t)name_bytes);
    memcpy(out + used + 2, worker->topic, name_bytes);
    used += 2 + name_bytes;
    leat_put_be32(out + used, 1);
    *out_index = used + 4;
    leat_put_be32(out + used + 4, 0);
    uint8_t *batch = out + used + 12;
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, batch, 2 * 1024 * 1024);
    for (unsigned i = 0; i < worker->records; i++)
        if (leat_batch_builder_add(&builder, 1, NULL, 0, value, sizeof value, NULL, 0, 0) != 0)
            die("batch");
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_put_be32(out + used + 8, bytes);
    used += 12 + bytes;
    leat_put_be32(out, (uint32_t)used - 4);
    return used;
}

/* One answer off the front of what has come. Its error code lies behind the topic's name. */
static void read_answer(int fd, const struct worker *worker, uint8_t *in, size_t *have)
{
    size_t bytes;
    while (*have < 4 || *have < (bytes = 4 + (size_t)leat_get_be32(in))) {
        ssize_t n = read(fd, in + *have, BUFFER_BYTES - *have);
        if (n <= 0) die("read");
        *have += (size_t)n;
    }
    size_t code_at = 4 + 4 + 4 + 2 + strlen(worker->topic) + 4 + 4;
    if (code_at + 2 > bytes || leat_get_be16(in + code_at) != 0) {
        fprintf(stderr, "produce refused\n");
        exit(1);
    }
    *have -= bytes;
    memmove(in, in + bytes, *have);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&worker->address, sizeof worker->address) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    uint8_t *out = malloc(4 * 1024 * 1024), *in = malloc(BUFFER_BYTES);
    size_t index_at, have = 0;
    size_t frame_bytes = make_frame(out, worker, &index_at);
    unsigned flying = 0, partition = 0;
    double end = now() + worker->seconds;
    while (now() < end || flying > 0) {
        while (now() < end && flying < worker->in_flight) {
            leat_put_be32(out + index_at, partition++ % worker->partitions);
            write_all(fd, out, frame_bytes);
            flying++;
        }
        while (flying > 0) {
            read_answer(fd, worker, in, &have);
            flying--;
            worker->batches++;
            worker->bytes += frame_bytes;
            if (have == 0) break;
        }
    }
    close(fd);
    free(out);
    free(in);
    return NULL;
}

static unsigned number(int argc, char **argv, int at, unsigned otherwise)
{
    return argc > at ? (unsigned)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return fprintf(stderr, "load HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS ...\n"), 2;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)number(argc, argv, 2, 0))};
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    unsigned count = number(argc, argv, 5, 1);
    struct worker *workers = calloc(count, sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i].address = address;
        workers[i].topic = argv[3];
        workers[i].partitions = number(argc, argv, 4, 1);
        workers[i].seconds = atof(argv[6]);
        workers[i].in_flight = number(argc, argv, 7, 5);
        workers[i].records = number(argc, argv, 8, 100);
        if (workers[i].records > RECORDS_MAX || workers[i].partitions == 0) return 2;
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
    printf("%.2f M records/s, %.0f batches/s, %.2f GB/s, %llu batches\n",
           (double)batches * workers[0].records / took / 1e6, (double)batches / took,
           (double)bytes / took / 1e9, (unsigned long long)batches);
    free(workers);
    return 0;
}
