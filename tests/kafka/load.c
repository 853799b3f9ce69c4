/* SPDX-License-Identifier: Apache-2.0 */
/* Raw load by Kafka's protocol, to be held against tests/broker/load.c: the same batches, a fixed
 * number of requests in flight, one batch of one partition in each. A connection takes its
 * partitions in turn, as clients of Kafka do, which have one connection to a node.
 *
 *   load HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS [REQUESTS IN FLIGHT [RECORDS PER BATCH]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/broker/load_common.h"

struct worker {
    struct load_worker base;
    const char *topic;
    unsigned partitions;
};

/* Produce, version 7. *out_index: where the partition's number is. */
static size_t make_frame(uint8_t *out, const struct worker *worker, size_t *out_index)
{
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
    uint32_t bytes = load_batch(out + used + 12, worker->base.records);
    leat_put_be32(out + used + 8, bytes);
    used += 12 + bytes;
    leat_put_be32(out, (uint32_t)used - 4);
    return used;
}

/* Takes one answer from the front of the received bytes. Its error code comes after the topic's name. */
static void read_answer(int fd, const struct worker *worker, uint8_t *in, size_t *have)
{
    size_t bytes;
    while (*have < 4 || *have < (bytes = 4 + (size_t)leat_get_be32(in))) {
        ssize_t n = read(fd, in + *have, LOAD_BUFFER_BYTES - *have);
        if (n <= 0) load_die("read");
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
    int fd = load_connect(&worker->base.address);
    uint8_t *out = malloc(LOAD_FRAMES_BYTES), *in = malloc(LOAD_BUFFER_BYTES);
    size_t index_at, have = 0;
    size_t frame_bytes = make_frame(out, worker, &index_at);
    unsigned flying = 0, partition = 0;
    double end = load_now() + worker->base.seconds;
    while (load_now() < end || flying > 0) {
        while (load_now() < end && flying < worker->base.in_flight) {
            leat_put_be32(out + index_at, partition++ % worker->partitions);
            load_write(fd, out, frame_bytes);
            flying++;
        }
        while (flying > 0) {
            read_answer(fd, worker, in, &have);
            flying--;
            worker->base.batches++;
            worker->base.bytes += frame_bytes;
            if (have == 0) break;
        }
    }
    close(fd);
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return fprintf(stderr, "load HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS ...\n"), 2;
    unsigned count = load_number(argc, argv, 5, 1);
    struct worker *workers = calloc(count, sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.base = {.address = load_address(argv),
                                              .seconds = atof(argv[6]),
                                              .in_flight = load_number(argc, argv, 7, 5),
                                              .records = load_number(argc, argv, 8, 100)},
                                     .topic = argv[3],
                                     .partitions = load_number(argc, argv, 4, 1)};
        if (workers[i].base.records > LOAD_RECORDS_MAX || workers[i].partitions == 0) return 2;
    }
    load_run(workers, count, sizeof *workers, work);
    free(workers);
    return 0;
}
