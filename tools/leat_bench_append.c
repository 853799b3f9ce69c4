/* leat bench append */
#include "tools/leat_bench.h"

#include "leat/producer.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PRODUCERS_MAX = 1024,
    SECONDS_MAX = 100000,
    WARM_MS_MAX = 300 * 1000,
    /* Batches of memory per producer and log: five under way, and enough gathered that the
     * producer's thread wakes its caller once for a dozen batches, not for each answer.
     * More would only be colder memory. */
    BATCHES_PER_LOG = 24,
    RECORD_OVERHEAD = 24,
    RECORDS_PER_CALL = 33,
};

static const char help[] =
    "Usage: leat bench append [OPTION...]\n"
    "\n"
    "  --producers N       (default 8)\n"
    "  --record-bytes N    value of each record (default 100)\n"
    "  --batch-records N   records per batch (default 100)\n"
    "  --seconds TIME      how long (default 5s), or\n"
    "  --records N         how many in all\n"
    "  --rate N            records per second in all; latency is then counted from the time each\n"
    "                      batch was meant to be sent, so a stalled server can't hide\n"
    "  --in-flight N       batches of a producer without an ack, then it waits (1: the latency of "
    "an\n"
    "                      append by itself; default: as many as its memory holds)\n"
    "  --threads N         that produce, each for its share of the producers (default: one for "
    "each;\n"
    "                      with --in-flight and without --rate at most one per two processors)\n"
    "  --linger TIME       (default 1ms)\n"
    "  --compression C     none, lz4, zstd\n"
    "  --stream NAME       (default bench) made with the options below when it is missing; one "
    "that\n"
    "                      was made with others is refused, or, where it was not named, another "
    "one\n"
    "                      is taken, named after them\n"
    "  --streamlets M      (default 1)   --logs Q      --durability memory|disk (default memory)\n"
    "  --copies N          of each segment, the owner's included (default 1)\n"
    "  --replication KIND  refuse to measure when nodes replicate by anything else: shm, verbs, "
    "tcp,\n"
    "                      rpc; which it is, leatd --replication says\n"
    "  --fresh             delete the stream first\n"
    "  --json FILE         figures for programs ('-': stdout)\n"
    "  -b, --brokers HOST:PORT,...\n";

struct append_options {
    /* streamlets, logs, copies, durability: as asked for, 0 or NULL where it does not matter */
    uint64_t producers, record_bytes, batch_records, records, seconds_ms, rate, linger_us,
        streamlets, logs, in_flight, copies, threads;
    const char *compression, *stream, *durability, *replication, *json;
    bool fresh;
    struct leat_stream_settings has; /* what the stream was made with */
};

enum {
    /* As many marks as batches of a producer can be open at once, reused in turn. */
    MARKS_MORE = 16,
};

/* A producer, driven by one thread. */
struct append_source {
    leat_producer *producer;
    const struct append_options *options;
    uint32_t index;
    uint64_t quota, interval_ns, stop_us, start_us;
    _Atomic uint64_t acked_batches, failed, ended; /* ended: batches, acked or not */
    struct leat_event *end; /* its thread's: told after `ended`, with --in-flight */
    uint64_t produced, batch;
    struct append_mark *marks;
    size_t mark_count;
    bool over; /* nothing more comes of it */
    struct bench_histogram latency;
    leat_code refused;
};

/* Of the first record of each batch: the time it was produced, or meant to be, travels as the
 * callback's argument. The histogram is the producer's; it is found through it. */
struct append_mark {
    struct append_source *source;
    uint64_t at_us;
};

/* Drives every options->threads-th producer, from its own number on. With one thread for each the
 * batches of sixteen producers that wait for their acks would cost sixteen wake-ups, which no load
 * generator should be measured by. */
struct append_thread {
    pthread_t thread;
    struct append_source *sources;
    const struct append_options *options;
    uint64_t first;
    struct leat_event end;
    uint8_t *payload;
    leat_produce_record records[RECORDS_PER_CALL];
};

static void on_result(void *arg, const leat_result *result)
{
    const struct append_mark *mark = arg;
    struct append_source *source = mark->source;
    if (result->code) {
        atomic_fetch_add(&source->failed, source->options->batch_records);
    } else {
        bench_note(&source->latency, leat_shared_now_us(NULL) - mark->at_us);
        atomic_store_explicit(&source->acked_batches,
                              atomic_load_explicit(&source->acked_batches, memory_order_relaxed) +
                                  1,
                              memory_order_relaxed);
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

static int stream_delete(const char *name)
{
    uint8_t bytes[512];
    struct leat_msg_writer body;
    struct cli_answer answer;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strnlen(name, 400));
    leat_err rc = cli_call(LEAT_KIND_STREAM_DELETE, &body, &answer);
    if (rc && rc != LEAT_E_UNKNOWN_STREAM) return cli_refused(&answer);
    cli_answer_fini(&answer);
    return CLI_OK;
}

/* Does the stream differ from what was asked for? What is measured has to be what is reported. */
static bool stream_differs(const struct append_options *o, enum leat_durability asked)
{
    const struct leat_stream_settings *has = &o->has;
    return (o->streamlets && o->streamlets != has->streamlets) ||
           (o->logs && o->logs != has->logs) || (o->copies && o->copies != has->copies) ||
           (asked && asked != has->durability);
}

static int stream_make(struct append_options *o, enum leat_durability asked)
{
    const struct leat_stream_settings settings = {
        .streamlets = o->streamlets ? (uint32_t)o->streamlets : 1,
        .logs = (uint32_t)o->logs,
        .copies = (uint32_t)o->copies,
        .durability = asked ? asked : LEAT_DURABILITY_MEMORY,
    };
    struct cli_answer answer;
    int code = o->fresh ? stream_delete(o->stream) : CLI_OK;
    if (code) return code;
    if (cli_stream_create(o->stream, &settings, &answer) && answer.rc != LEAT_E_STREAM_EXISTS)
        return cli_refused(&answer);
    cli_answer_fini(&answer);
    return cli_stream_settings(o->stream, &o->has);
}

/* "bench-disk-3-streamlets-2-logs": what was asked for. */
static void other_name(const struct append_options *o, char *out, size_t size)
{
    const struct {
        uint64_t count;
        const char *what;
    } parts[] = {{o->streamlets, "streamlets"}, {o->logs, "logs"}, {o->copies, "copies"}};
    int at = snprintf(out, size, "bench%s%s", o->durability ? "-" : "",
                      o->durability ? o->durability : "");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count)
            at += snprintf(out + at, size - (size_t)at, "-%" PRIu64 "-%s", parts[i].count,
                           parts[i].what);
    LEAT_ASSERT_CMP(at, <, (int)size); /* each of them is bounded */
}

static int stream_prepare(struct append_options *o)
{
    enum leat_durability asked = LEAT_DURABILITY_DEFAULT;
    if (cli_durability_parse(o->durability, &asked)) return CLI_USAGE;
    bool named = o->stream != NULL;
    if (!named) o->stream = "bench";
    int code = stream_make(o, asked);
    if (code == CLI_OK && !named && stream_differs(o, asked)) {
        static char other[96];
        other_name(o, other, sizeof other);
        fprintf(stderr, "stream bench was made with other settings; appending to %s\n", other);
        o->stream = other;
        code = stream_make(o, asked);
    }
    if (code || !stream_differs(o, asked)) return code;
    cli_error(
        "stream '%s' exists with %u streamlet%s of %u log%s, %u cop%s, durability %s, which is "
        "not what was asked for; name another one, or let --fresh delete it first",
        o->stream, o->has.streamlets, cli_s(o->has.streamlets), o->has.logs, cli_s(o->has.logs),
        o->has.copies, o->has.copies == 1 ? "y" : "ies", cli_durability_name(o->has.durability));
    return CLI_FAILED;
}

static int sources_open(struct append_source *sources, const struct append_options *o)
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

/* The first record of each producer is sent before the clock runs: connections, metadata and
 * producer ids are not what is measured. To all streamlets at once: a log's first segment takes
 * a commit of the coordinator, and many logs share one. */
static int sources_warm(struct append_source *sources, const struct append_options *o)
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

struct append_watch {
    struct append_source *sources;
    const struct append_options *options;
    _Atomic bool stop;
    double *seconds;
    size_t count;
    struct leat_event end;
};

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
        if (watch->count < SECONDS_MAX) watch->seconds[watch->count++] = rate;
        if (isatty(STDERR_FILENO)) live(watch->sources, watch->options, rate);
    }
    return NULL;
}

static void sources_run(struct append_source *sources, const struct append_options *o,
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

static int report(struct append_source *sources, const struct append_options *o,
                  struct append_watch *watch, const struct bench_nodes *nodes, double seconds,
                  double client_cpu)
{
    struct bench_histogram *all = calloc(1, sizeof *all);
    if (!all) abort();
    struct bench_report r = {.what = "append",
                             .seconds = seconds,
                             .server_cpu_seconds = bench_nodes_cpu_seconds(nodes),
                             .nodes = nodes,
                             .client_cpu_seconds = client_cpu,
                             .latency = all,
                             .closed_loop = o->rate == 0,
                             .per_second = watch->seconds,
                             .second_count = watch->count};
    int code = CLI_OK;
    for (uint64_t i = 0; i < o->producers; i++) {
        leat_producer_stats stats;
        leat_producer_stats_get(sources[i].producer, &stats);
        r.records += stats.records_acked - o->has.streamlets; /* without the warming ones */
        r.failed += stats.records_failed;
        bench_merge(all, &sources[i].latency);
        if (sources[i].refused || stats.records_failed) {
            code = CLI_FAILED;
            cli_error("producer %" PRIu64 ": %s", i,
                      sources[i].refused ? leat_strerror(sources[i].refused) : stats.last_text);
        }
    }
    r.bytes = r.records * o->record_bytes;
    char settings[1024];
    snprintf(settings, sizeof settings,
             "\"producers\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"record_bytes\":%" PRIu64
             ",\"batch_records\":%" PRIu64 ",\"stream\":\"%s\",\"streamlets\":%u,\"logs\":%u"
             ",\"durability\":\"%s\",\"compression\":\"%s\",\"rate\":%" PRIu64
             ",\"linger_us\":%" PRIu64 ",\"copies\":%u,\"replication\":\"%s\"",
             o->producers, o->threads, o->record_bytes, o->batch_records, o->stream,
             o->has.streamlets, o->has.logs, cli_durability_name(o->has.durability),
             o->compression ? o->compression : "none", o->rate, o->linger_us, o->has.copies,
             o->replication ? o->replication : "");
    r.settings = settings;
    if (code == CLI_OK && o->replication) code = bench_nodes_transport(nodes, o->replication);
    int printed = bench_print(&r, o->json);
    free(all);
    return code ? code : printed;
}

static int run(struct append_options *o)
{
    int code = stream_prepare(o);
    if (code) return code;
    struct append_source *sources = calloc(o->producers, sizeof *sources);
    struct append_watch watch = {.sources = sources, .options = o};
    watch.seconds = calloc(SECONDS_MAX, sizeof *watch.seconds);
    if (!sources || !watch.seconds) abort();
    for (uint64_t i = 0; i < o->producers; i++)
        sources[i].options = o;
    code = sources_open(sources, o);
    if (code == CLI_OK) code = sources_warm(sources, o);
    static struct bench_nodes nodes;
    if (code == CLI_OK) code = bench_nodes_find(&nodes);
    if (code == CLI_OK) code = bench_nodes_begin(&nodes);
    if (code == CLI_OK) {
        cli_catch_signals();
        double client = bench_cpu_seconds();
        uint64_t start = leat_shared_now_us(NULL);
        sources_run(sources, o, &watch);
        double seconds = (double)(leat_shared_now_us(NULL) - start) / 1e6;
        client = bench_cpu_seconds() - client;
        code = bench_nodes_end(&nodes);
        if (code == CLI_OK) code = report(sources, o, &watch, &nodes, seconds, client);
    }
    for (uint64_t i = 0; i < o->producers; i++)
        leat_producer_close(sources[i].producer);
    free(watch.seconds);
    free(sources);
    return code;
}

/* What was given lies in its range; what was not is as the help says (0: as none was given). */
static bool numbers_take(struct append_options *o)
{
    uint64_t seconds_ms = o->records == CLI_NONE ? 5000 : 0;
    return cli_number("producers", &o->producers, 1, PRODUCERS_MAX, 8) &&
           cli_number("record-bytes", &o->record_bytes, 0, 1000000, 100) &&
           cli_number("batch-records", &o->batch_records, 1, 1000000, 100) &&
           cli_number("records", &o->records, 1, INT64_MAX, 0) &&
           cli_number("seconds", &o->seconds_ms, 1, INT64_MAX, seconds_ms) &&
           cli_number("rate", &o->rate, 1, INT64_MAX, 0) &&
           cli_number("in-flight", &o->in_flight, 1, INT64_MAX, 0) &&
           cli_number("threads", &o->threads, 1, PRODUCERS_MAX, 0) &&
           cli_number("streamlets", &o->streamlets, 1, LEAT_STREAMLETS_MAX, 0) &&
           cli_number("logs", &o->logs, 1, LEAT_LOGS_MAX, 0) &&
           cli_number("copies", &o->copies, 1, LEAT_COPIES_MAX, 0) &&
           cli_in_range("linger", o->linger_us, 0, 1000000000, " us");
}

int leat_bench_append(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    struct append_options o = {
        .producers = CLI_NONE,
        .record_bytes = CLI_NONE,
        .batch_records = CLI_NONE,
        .seconds_ms = CLI_NONE,
        .records = CLI_NONE,
        .rate = CLI_NONE,
        .in_flight = CLI_NONE,
        .threads = CLI_NONE,
        .streamlets = CLI_NONE,
        .logs = CLI_NONE,
        .copies = CLI_NONE,
        .linger_us = 1000,
    };
    const struct cli_option options[] = {
        CLI_COMMON,
        {"producers", 0, CLI_U64, &o.producers},
        {"record-bytes", 0, CLI_BYTES, &o.record_bytes},
        {"batch-records", 0, CLI_U64, &o.batch_records},
        {"seconds", 0, CLI_S, &o.seconds_ms},
        {"records", 0, CLI_U64, &o.records},
        {"rate", 0, CLI_U64, &o.rate},
        {"in-flight", 0, CLI_U64, &o.in_flight},
        {"threads", 0, CLI_U64, &o.threads},
        {"linger", 0, CLI_US, &o.linger_us},
        {"compression", 0, CLI_TEXT, &o.compression},
        {"stream", 0, CLI_TEXT, &o.stream},
        {"streamlets", 0, CLI_U64, &o.streamlets},
        {"logs", 0, CLI_U64, &o.logs},
        {"durability", 0, CLI_TEXT, &o.durability},
        {"copies", 0, CLI_U64, &o.copies},
        {"replication", 0, CLI_TEXT, &o.replication},
        {"fresh", 0, CLI_FLAG, &o.fresh},
        {"json", 0, CLI_TEXT, &o.json},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n != 0) {
        if (n > 0) cli_error("bench append takes no operands");
        return CLI_USAGE;
    }
    if (o.seconds_ms != CLI_NONE && o.records != CLI_NONE) {
        cli_error("--seconds or --records, not both");
        return CLI_USAGE;
    }
    if (!numbers_take(&o) || !bench_replication_check(o.replication)) return CLI_USAGE;
    int codec;
    if (cli_compression_parse(o.compression, &codec)) return CLI_USAGE;
    if (bench_json_check(o.json)) return CLI_FAILED;
    /* Who waits for room, or for its time, holds up the other producers of its thread. */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!o.threads && o.in_flight && !o.rate)
        o.threads = processors > 3 ? (uint64_t)processors / 2 : 1;
    if (!o.threads || o.threads > o.producers) o.threads = o.producers;
    return run(&o);
}
