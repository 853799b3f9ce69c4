/* SPDX-License-Identifier: Apache-2.0 */
/* The load of leat bench append: producers, their threads, and the count of acks. */
#include "tools/bench/append.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    WARM_MS_MAX = 300 * 1000,
    /* Batches of memory per producer and log: five under way, and enough gathered that the
     * producer's thread wakes its caller once for a dozen batches, not for each answer.
     * More would only be colder memory. */
    BATCHES_PER_LOG = 24,
    RECORD_OVERHEAD = 24,
    RECORDS_PER_CALL = 33,
    /* As many marks as batches of a producer can be open at once, reused in turn. */
    MARKS_MORE = 16,
};

/* Of the first record of each batch: the time it was produced, or meant to be, travels as the callback's argument.
 * The histogram belongs to the producer, and is found through it. */
struct append_mark {
    struct append_source *source;
    uint64_t at_us;
};

/* Drives every options->threads-th producer, from its own number on. With a thread for each producer, waiting for the
 * acks of sixteen producers would cost sixteen wake-ups, and the benchmark would measure its load generator. */
struct append_thread {
    pthread_t thread;
    struct append_source *sources;
    const struct append_options *options;
    uint64_t first;
    struct leat_event end;
    uint8_t *payload;
    leat_produce_record records[RECORDS_PER_CALL];
};

/* ---- a thread's work ---- */

static void on_result(void *arg, const leat_result *result)
{
    const struct append_mark *mark = arg;
    struct append_source *source = mark->source;
    if (!result->code) {
        bench_note(&source->latency, leat_shared_now_us(NULL) - mark->at_us);
        /* Written by this producer's thread alone. */
        uint64_t batches = atomic_load_explicit(&source->acked_batches, memory_order_relaxed);
        atomic_store_explicit(&source->acked_batches, batches + 1, memory_order_relaxed);
    }
    if (!source->options->in_flight) return;
    atomic_fetch_add(&source->ended, 1);
    leat_event_tell(source->end);
}

static void pace(uint64_t due_ns)
{
    struct timespec until = {.tv_sec = (time_t)(due_ns / 1000000000u),
                             .tv_nsec = (long)(due_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) && !cli_interrupted())
        ;
}

/* One batch. The first record carries the mark; the rest goes a handful at a time. */
static void batch_produce(struct append_thread *thread, struct append_source *source,
                          struct append_mark *mark)
{
    const struct append_options *options = source->options;
    /* The upper bits tell the runs of the benchmark apart: each counts from 0. */
    uint64_t run_bits = source->start_us << BENCH_NUMBER_BITS;
    uint64_t left = source->quota - source->produced;
    uint64_t count = left < options->batch_records ? left : options->batch_records;
    bool stamped = options->record_bytes >= 16;
    for (uint64_t i = 0; i < count;) {
        uint64_t some = i == 0 ? 1 : count - i;
        if (some > RECORDS_PER_CALL) some = RECORDS_PER_CALL;
        for (uint64_t k = 0; stamped && k < some; k++) {
            uint8_t *value = thread->payload + k * options->record_bytes;
            leat_put_le32(value, 0x6c656174u); /* "leat": --verify of pull knows by it */
            leat_put_le32(value + 4, source->index);
            leat_put_le64(value + 8, run_bits | (source->produced + i + k));
        }
        leat_code code =
            i == 0
                ? leat_produce(source->producer, options->stream, thread->records, on_result, mark)
                : leat_produce_many(source->producer, options->stream, thread->records,
                                    (size_t)some, NULL, NULL, NULL);
        if (__builtin_expect(code != 0, 0)) {
            source->refused = code;
            source->over = true;
            return;
        }
        i += some;
    }
    source->produced += count;
    source->batch++;
}

/* Its next batch, if one may go. false: nothing was done. */
static bool source_step(struct append_thread *thread, struct append_source *source)
{
    const struct append_options *options = source->options;
    if (source->over) return false;
    if (source->produced >= source->quota) {
        source->over = true;
        return false;
    }
    if (options->in_flight && source->batch - atomic_load(&source->ended) >= options->in_flight)
        return false;
    uint64_t now = leat_shared_now_us(NULL);
    struct append_mark *mark = &source->marks[source->batch % source->mark_count];
    mark->source = source;
    mark->at_us = now;
    if (source->interval_ns) {
        /* Not all producers at once: that would be bursts of as many batches, and one more of each than
         * the rate has. */
        uint64_t turn = source->interval_ns / options->producers * source->index;
        uint64_t due = source->start_us * 1000 + turn + source->batch * source->interval_ns;
        source->over = due / 1000 >= source->stop_us;
        if (source->over) return false;
        if (due > now * 1000) pace(due);
        mark->at_us = due / 1000;
    } else if (now >= source->stop_us) {
        source->over = true;
        return false;
    }
    batch_produce(thread, source, mark);
    return true;
}

static void thread_drive(struct append_thread *thread)
{
    const struct append_options *options = thread->options;
    while (!cli_interrupted()) {
        uint32_t seen = leat_event_look(&thread->end);
        bool any = false, all_over = true;
        for (uint64_t i = thread->first; i < options->producers; i += options->threads) {
            any |= source_step(thread, &thread->sources[i]);
            all_over &= thread->sources[i].over;
        }
        if (all_over) return;
        /* Each batch ends, in time. */
        if (!any) (void)leat_event_wait(&thread->end, seen, UINT64_MAX);
    }
}

static void *append_main(void *arg)
{
    struct append_thread *thread = arg;
    const struct append_options *options = thread->options;
    thread->payload = malloc((options->record_bytes + 16) * RECORDS_PER_CALL);
    if (!thread->payload) abort();
    for (size_t i = 0; i < options->record_bytes * RECORDS_PER_CALL; i++)
        thread->payload[i] = (uint8_t)("leat bench "[i % 11] + (i * 7 % 3));
    for (size_t i = 0; i < RECORDS_PER_CALL; i++)
        thread->records[i] =
            (leat_produce_record){.value = thread->payload + i * options->record_bytes,
                                  .value_bytes = options->record_bytes,
                                  .streamlet = -1};
    /* The kernel rounds sleeps up by 50 us: several times what is measured here. */
    if (options->rate) (void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    thread_drive(thread);
    /* To the end of the last batch's time: else the rate told would be higher than the one asked for. */
    if (options->rate && !options->records && !cli_interrupted())
        pace(thread->sources[thread->first].stop_us * 1000);
    /* Results name marks until the last one is told; each record ends, in time. */
    for (uint64_t i = thread->first; i < options->producers; i += options->threads)
        (void)leat_producer_flush(thread->sources[i].producer, -1);
    free(thread->payload);
    return NULL;
}

/* ---- producers ---- */

int append_sources_open(struct append_source *sources, const struct append_options *o)
{
    leat_producer_options options;
    leat_producer_options_init(&options);
    options.brokers = cli_brokers;
    options.client_name = "leat bench append";
    options.batch_records = (uint32_t)o->batch_records;
    options.linger_us = (uint32_t)o->linger_us;
    uint64_t bytes = 128 + o->batch_records * (o->record_bytes + RECORD_OVERHEAD);
    if (bytes < 1024) bytes = 1024;
    if (bytes > 1024 * 1024) {
        cli_error("a batch of %" PRIu64 " bytes; a producer's batches have at most 1 MiB", bytes);
        return CLI_USAGE;
    }
    options.batch_bytes = (uint32_t)bytes;
    uint64_t buffer = bytes * BATCHES_PER_LOG * o->has.streamlets;
    options.buffer_bytes = buffer > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)buffer;
    if (cli_compression_parse(o->compression, &options.compression)) return CLI_USAGE;
    for (uint64_t i = 0; i < o->producers; i++) {
        leat_message message;
        sources[i].producer = leat_producer_open(&options, &message);
        if (!sources[i].producer) {
            cli_error("%s", message.text);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static void on_warm(void *arg, const leat_result *result)
{
    struct append_source *source = arg;
    if (result->code) source->refused = result->code; /* read after the flush */
}

/* To all streamlets at once: a log's first segment takes a commit of the coordinator, and many logs
 * share one. */
int append_sources_warm(struct append_source *sources, const struct append_options *o)
{
    char value = 'w';
    for (uint64_t i = 0; i < o->producers; i++) {
        struct append_source *source = &sources[i];
        for (uint64_t s = 0; s < o->has.streamlets && !source->refused; s++) {
            leat_produce_record record = {
                .value = &value, .value_bytes = 1, .streamlet = (int32_t)s};
            leat_code code = leat_produce(source->producer, o->stream, &record, on_warm, source);
            if (code) source->refused = code;
        }
        uint64_t open = leat_producer_flush(source->producer, WARM_MS_MAX);
        if (!open && !source->refused) continue;
        cli_error("the first record was refused: %s",
                  source->refused ? leat_strerror(source->refused) : "no answer");
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* ---- what is acked ---- */

static uint64_t acked(const struct append_source *sources, const struct append_options *o)
{
    uint64_t batches = 0;
    for (uint64_t i = 0; i < o->producers; i++)
        batches += atomic_load_explicit(&sources[i].acked_batches, memory_order_relaxed);
    return batches * o->batch_records;
}

static void live(const struct append_source *sources, const struct append_options *o, double rate)
{
    struct bench_histogram *all = calloc(1, sizeof *all);
    if (!all) return;
    for (uint64_t i = 0; i < o->producers; i++)
        bench_merge(all, &sources[i].latency);
    bench_live("append", rate, rate * (double)o->record_bytes, all);
    free(all);
}

static void *watch_main(void *arg)
{
    struct append_watch *watch = arg;
    uint64_t before = 0, next = leat_shared_now_us(NULL), from = next;
    for (;;) {
        next += 1000000;
        uint32_t seen = leat_event_look(&watch->end);
        if (atomic_load(&watch->stop)) break;
        if (leat_event_wait(&watch->end, seen, next)) break;
        uint64_t now = leat_shared_now_us(NULL), records = acked(watch->sources, watch->options);
        double rate = (double)(records - before) * 1e6 / (double)(now - from);
        from = now;
        before = records;
        if (watch->count < APPEND_SECONDS_MAX) watch->seconds[watch->count++] = rate;
        if (isatty(STDERR_FILENO)) live(watch->sources, watch->options, rate);
    }
    return NULL;
}

void append_sources_run(struct append_source *sources, const struct append_options *o,
                        struct append_watch *watch)
{
    pthread_t watcher;
    uint64_t start = leat_shared_now_us(NULL);
    struct append_thread *threads = calloc(o->threads, sizeof *threads);
    if (!threads) abort();
    for (uint64_t i = 0; i < o->producers; i++) {
        struct append_source *source = &sources[i];
        source->index = (uint32_t)i;
        source->start_us = start;
        source->stop_us = o->records ? UINT64_MAX : start + o->seconds_ms * 1000;
        source->quota =
            o->records ? o->records / o->producers + (i < o->records % o->producers) : UINT64_MAX;
        source->interval_ns = o->rate ? (uint64_t)(1e9 * (double)o->producers *
                                                   (double)o->batch_records / (double)o->rate)
                                      : 0;
        source->mark_count = (size_t)BATCHES_PER_LOG * o->has.streamlets * 2 + MARKS_MORE;
        source->marks = calloc(source->mark_count, sizeof *source->marks);
        if (!source->marks) abort();
        source->end = &threads[i % o->threads].end;
    }
    if (pthread_create(&watcher, NULL, watch_main, watch)) abort();
    for (uint64_t i = 0; i < o->threads; i++) {
        struct append_thread *thread = &threads[i];
        thread->sources = sources;
        thread->options = o;
        thread->first = i;
        if (pthread_create(&thread->thread, NULL, append_main, thread)) abort();
    }
    for (uint64_t i = 0; i < o->threads; i++)
        pthread_join(threads[i].thread, NULL);
    atomic_store(&watch->stop, true);
    leat_event_tell(&watch->end);
    pthread_join(watcher, NULL);
    for (uint64_t i = 0; i < o->producers; i++)
        free(sources[i].marks);
    free(threads);
}
