/* SPDX-License-Identifier: Apache-2.0 */
/* A light load that goes on through all faults: see the header. */
#include "tools/bench/light.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LIGHT_RECORD_BYTES = 100,
    LIGHT_EVERY_US = 1000,
    OPEN_MAX = 1 << 16, /* records that have no answer yet */
};

struct bench_mark {
    struct bench_light *light;
    uint64_t at_us;
    enum bench_window window;
    _Atomic bool open;
};

static void on_light_result(void *arg, const leat_result *result)
{
    struct bench_mark *mark = arg;
    struct bench_light *light = mark->light;
    uint64_t now = leat_shared_now_us(NULL), killed_us = atomic_load(&light->killed_us);
    if (result->code) {
        atomic_fetch_add(&light->failed, 1);
    } else {
        atomic_fetch_add(&light->acked, 1);
        if (killed_us && mark->at_us > atomic_load(&light->dead_us) &&
            !atomic_load(&light->acked_us))
            atomic_store(&light->acked_us, now);
        /* The latencies of records produced during the outage would count the pause twice. */
        uint64_t first = atomic_load(&light->acked_us);
        if (mark->window != WINDOW_AFTER || (first && mark->at_us > first))
            bench_note(&light->latency[mark->window], now - mark->at_us);
    }
    atomic_store(&mark->open, false);
}

static void *light_write(void *arg)
{
    struct bench_light *light = arg;
    char value[LIGHT_RECORD_BYTES + 1];
    leat_produce_record record = {
        .value = value, .value_bytes = LIGHT_RECORD_BYTES, .streamlet = -1};
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (uint64_t number = 0; !atomic_load(&light->over); number++) {
        due.tv_nsec += LIGHT_EVERY_US * 1000;
        if (due.tv_nsec >= 1000000000) due.tv_sec++, due.tv_nsec -= 1000000000;
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        struct bench_mark *mark = &light->marks[number % OPEN_MAX];
        if (atomic_load(&mark->open)) continue; /* a long pause: what waits is enough */
        *mark = (struct bench_mark){.light = light,
                                    .at_us = leat_shared_now_us(NULL),
                                    .window = (enum bench_window)atomic_load(&light->window)};
        atomic_store(&mark->open, true);
        memset(value, ' ', sizeof value);
        snprintf(value, sizeof value, "light %" PRIu64, mark->at_us);
        if (leat_produce(light->producer, light->stream, &record, on_light_result, mark)) {
            atomic_fetch_add(&light->failed, 1);
            atomic_store(&mark->open, false);
        }
    }
    return NULL;
}

static void *light_read(void *arg)
{
    struct bench_light *light = arg;
    while (!atomic_load(&light->over)) {
        leat_code code = 0;
        const leat_record_view *record = leat_consumer_next(light->consumer, 100, &code);
        if (code) break;
        uint64_t at = 0, killed_us = atomic_load(&light->killed_us);
        if (!record || record->value_bytes < 6 || memcmp(record->value, "light ", 6) != 0) continue;
        char text[LIGHT_RECORD_BYTES + 1] = "";
        memcpy(text, record->value,
               record->value_bytes < sizeof text - 1 ? record->value_bytes : sizeof text - 1);
        at = strtoull(text + 6, NULL, 10);
        if (killed_us && at > atomic_load(&light->dead_us) && !atomic_load(&light->read_us))
            atomic_store(&light->read_us, leat_shared_now_us(NULL));
    }
    return NULL;
}

int bench_light_begin(struct bench_light *light, const char *stream, const char *brokers)
{
    leat_message message;
    leat_producer_options producer;
    leat_consumer_options consumer;
    light->stream = stream;
    leat_producer_options_init(&producer);
    producer.brokers = brokers;
    producer.linger_us = 0;
    leat_consumer_options_init(&consumer);
    consumer.brokers = brokers;
    consumer.from = LEAT_FROM_LATEST;
    light->marks = calloc(OPEN_MAX, sizeof *light->marks);
    if (!light->marks) abort();
    light->producer = leat_producer_open(&producer, &message);
    if (light->producer) light->consumer = leat_consumer_open(stream, &consumer, 30000, &message);
    if (!light->consumer) {
        cli_error("%s", message.text);
        return CLI_FAILED;
    }
    if (pthread_create(&light->writer, NULL, light_write, light)) abort();
    if (pthread_create(&light->reader, NULL, light_read, light)) abort();
    return CLI_OK;
}

void bench_light_end(struct bench_light *light)
{
    atomic_store(&light->over, true);
    if (light->consumer) {
        pthread_join(light->writer, NULL);
        pthread_join(light->reader, NULL);
    }
    leat_consumer_close(light->consumer);
    leat_producer_close(light->producer);
    free(light->marks);
}
