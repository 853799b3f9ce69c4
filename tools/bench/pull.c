/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench pull */
#include "tools/bench/bench.h"
#include "tools/bench/report.h"

#include "leat/consumer.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONSUMERS_MAX = 1024,
    SECONDS_MAX = 100000,
    OPEN_MS = 30000,
    PRODUCERS_SEEN_MAX = 1024,
    VIEWS_PER_CALL = 128,
    FETCH_BYTES_MAX = 4 * 1024 * 1024,
    TELL_EVERY = 4096,  /* records: the live figures */
    LOOK_EVERY = 65536, /* records: the clock */
};

static const char help[] =
    "Usage: leat bench pull [OPTION...]\n"
    "\n"
    "Reads a stream from its beginning by many consumers; each reads its share of the logs and\n"
    "decodes every record. The latency is the time that a call waited for its next records,\n"
    "measured once in 4096 records.\n"
    "\n"
    "  --consumers N       (default: one per log of a streamlet)\n"
    "  --stream NAME       (default bench)\n"
    "  --records N         stop after so many in all (default: to the end)\n"
    "  --seconds TIME      begin again at the end until this time is over\n"
    "  --fetch-bytes SIZE  of one answer (default 1M)\n"
    "  --verify            check that offsets are dense, and the numbers that bench append put\n"
    "                      into the records: each producer's in order, none twice\n"
    "  --json FILE         write the figures as JSON ('-': stdout)\n"
    "  -b, --brokers HOST:PORT,...\n";

struct pull_options {
    uint64_t consumers, records, seconds_ms, fetch_bytes;
    const char *stream, *json;
    bool verify;
};

struct pull_thread {
    pthread_t thread;
    leat_consumer *consumer;
    const struct pull_options *options;
    uint64_t quota, stop_us;
    _Atomic uint64_t records, bytes, finished_us;
    struct bench_histogram latency;
    uint64_t wrong;
    leat_code failed;
    char text[256];
};

/* What --verify remembers per partition. */
struct pull_check {
    uint64_t next;
    bool any;
    uint64_t last[PRODUCERS_SEEN_MAX]; /* number + 1 of each producer's last record */
};

static void verify(struct pull_thread *thread, struct pull_check **checks, uint32_t *count,
                   const leat_record_view *record)
{
    if (record->partition >= *count) {
        uint32_t wanted = record->partition + 1;
        *checks = realloc(*checks, wanted * sizeof **checks);
        if (!*checks) abort();
        memset(*checks + *count, 0, (wanted - *count) * sizeof **checks);
        *count = wanted;
    }
    struct pull_check *check = &(*checks)[record->partition];
    if (check->any && record->offset != check->next) {
        if (thread->wrong++ == 0)
            snprintf(thread->text, sizeof thread->text,
                     "partition %u: offset %" PRIu64 " follows %" PRIu64, record->partition,
                     record->offset, check->next - 1);
    }
    check->any = true;
    check->next = record->offset + 1;
    if (record->value_bytes < 16 || leat_get_le32(record->value) != 0x6c656174u) return;
    uint32_t producer = leat_get_le32((const uint8_t *)record->value + 4);
    uint64_t number = leat_get_le64((const uint8_t *)record->value + 8) + 1;
    const uint64_t mask = (UINT64_C(1) << BENCH_NUMBER_BITS) - 1;
    if (producer >= PRODUCERS_SEEN_MAX) return;
    bool same_run = number >> BENCH_NUMBER_BITS == check->last[producer] >> BENCH_NUMBER_BITS;
    if (same_run && number <= check->last[producer]) {
        if (thread->wrong++ == 0)
            snprintf(thread->text, sizeof thread->text,
                     "partition %u offset %" PRIu64 ": record %" PRIu64
                     " of producer %u after %" PRIu64,
                     record->partition, record->offset, (number - 1) & mask, producer,
                     (check->last[producer] - 1) & mask);
    }
    check->last[producer] = number;
}

static void *pull_main(void *arg)
{
    struct pull_thread *thread = arg;
    const struct pull_options *o = thread->options;
    struct pull_check *checks = NULL;
    uint32_t check_count = 0;
    uint64_t records = 0, bytes = 0, told = 0, looked = 0;
    uint64_t asked_us = leat_shared_now_us(NULL); /* of a call whose wait is noted; 0: it is not */
    leat_record_view views[VIEWS_PER_CALL];
    while (records < thread->quota && !cli_interrupted()) {
        leat_code code = 0;
        uint64_t left = thread->quota - records;
        size_t n = leat_consumer_next_many(
            thread->consumer, views, left < VIEWS_PER_CALL ? left : VIEWS_PER_CALL, 100, &code);
        if (__builtin_expect(n > 0, 1)) {
            if (asked_us) bench_note(&thread->latency, leat_shared_now_us(NULL) - asked_us);
            asked_us = 0;
            for (size_t i = 0; i < n; i++)
                bytes += views[i].value_bytes;
            for (size_t i = 0; o->verify && i < n; i++)
                verify(thread, &checks, &check_count, &views[i]);
            records += n;
            if (records - told < TELL_EVERY) continue;
            told = records;
            atomic_store_explicit(&thread->records, records, memory_order_relaxed);
            atomic_store_explicit(&thread->bytes, bytes, memory_order_relaxed);
            asked_us = leat_shared_now_us(NULL);
            if (records - looked < LOOK_EVERY) continue;
            looked = records;
            if (asked_us >= thread->stop_us) break;
            continue;
        }
        if (code) {
            leat_consumer_stats stats;
            leat_consumer_stats_get(thread->consumer, &stats);
            thread->failed = code;
            snprintf(thread->text, sizeof thread->text, "%s", stats.last_text);
            break;
        }
        if (leat_shared_now_us(NULL) >= thread->stop_us) break;
        if (!leat_consumer_at_end(thread->consumer)) continue;
        if (!o->seconds_ms) break;
        if (check_count) memset(checks, 0, check_count * sizeof *checks);
        (void)leat_consumer_seek(thread->consumer, -1, LEAT_FROM_EARLIEST, 0);
    }
    atomic_store(&thread->records, records);
    atomic_store(&thread->bytes, bytes);
    atomic_store(&thread->finished_us, leat_shared_now_us(NULL));
    free(checks);
    return NULL;
}

static int stream_shape(const char *name, uint32_t *out_streamlets, uint32_t *out_logs)
{
    uint8_t bytes[512];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strnlen(name, 400));
    struct cli_answer answer;
    if (cli_call(LEAT_KIND_STREAM_DESCRIBE, &body, &answer)) return cli_refused(&answer);
    struct leat_msg_reader reader;
    struct leat_stream_settings settings;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    (void)leat_msg_read_array(&reader);
    leat_msg_skip_n(&reader, 2);
    leat_msg_settings_read(&reader, &settings);
    cli_answer_fini(&answer);
    *out_streamlets = settings.streamlets ? settings.streamlets : 1;
    *out_logs = settings.logs ? settings.logs : 1;
    return CLI_OK;
}

static int threads_open(struct pull_thread *threads, const struct pull_options *o,
                        uint32_t streamlets, uint32_t logs)
{
    for (uint64_t i = 0; i < o->consumers; i++) {
        leat_consumer_options options;
        leat_consumer_options_init(&options);
        options.brokers = cli_brokers;
        options.client_name = "leat bench pull";
        options.fetch_bytes = (uint32_t)o->fetch_bytes;
        /* One consumer reads all; several share the logs, then the streamlets. */
        if (o->consumers > 1) options.log = (int32_t)(i % logs);
        if (o->consumers > logs) options.streamlet = (int32_t)(i / logs % streamlets);
        leat_message message;
        threads[i].options = o;
        threads[i].consumer = leat_consumer_open(o->stream, &options, OPEN_MS, &message);
        if (threads[i].consumer) continue;
        cli_error("%s", message.text);
        return message.code == LEAT_E_TIMEOUT ? CLI_NO_SERVER : CLI_FAILED;
    }
    return CLI_OK;
}

struct pull_watch {
    struct pull_thread *threads;
    const struct pull_options *options;
    _Atomic bool stop;
    double *seconds;
    size_t count;
    struct leat_event end;
};

static void latency_of(const struct pull_watch *watch, struct bench_histogram *out_all)
{
    memset(out_all, 0, sizeof *out_all);
    for (uint64_t i = 0; i < watch->options->consumers; i++)
        bench_merge(out_all, &watch->threads[i].latency);
}

static void *watch_main(void *arg)
{
    struct pull_watch *watch = arg;
    struct bench_histogram all;
    uint64_t before = 0, bytes_before = 0, next = leat_shared_now_us(NULL), from = next;
    for (;;) {
        next += 1000000;
        uint32_t seen = leat_event_look(&watch->end);
        if (atomic_load(&watch->stop)) break;
        if (leat_event_wait(&watch->end, seen, next)) break;
        uint64_t records = 0, bytes = 0, now = leat_shared_now_us(NULL);
        for (uint64_t i = 0; i < watch->options->consumers; i++) {
            records += atomic_load_explicit(&watch->threads[i].records, memory_order_relaxed);
            bytes += atomic_load_explicit(&watch->threads[i].bytes, memory_order_relaxed);
        }
        double seconds = (double)(now - from) / 1e6;
        double rate = (double)(records - before) / seconds;
        if (watch->count < SECONDS_MAX) watch->seconds[watch->count++] = rate;
        latency_of(watch, &all);
        bench_live("pull", rate, (double)(bytes - bytes_before) / seconds, &all);
        from = now;
        before = records;
        bytes_before = bytes;
    }
    return NULL;
}

/* The end is when the last record came, not when its reader noticed that there was no more. */
static void threads_run(struct pull_thread *threads, const struct pull_options *o,
                        struct pull_watch *watch)
{
    pthread_t watcher;
    uint64_t start = leat_shared_now_us(NULL);
    if (pthread_create(&watcher, NULL, watch_main, watch)) abort();
    for (uint64_t i = 0; i < o->consumers; i++) {
        threads[i].quota =
            o->records ? o->records / o->consumers + (i < o->records % o->consumers) : UINT64_MAX;
        threads[i].stop_us = o->seconds_ms ? start + o->seconds_ms * 1000 : UINT64_MAX;
        if (pthread_create(&threads[i].thread, NULL, pull_main, &threads[i])) abort();
    }
    for (uint64_t i = 0; i < o->consumers; i++)
        pthread_join(threads[i].thread, NULL);
    atomic_store(&watch->stop, true);
    leat_event_tell(&watch->end);
    pthread_join(watcher, NULL);
}

static int report(struct pull_thread *threads, const struct pull_options *o,
                  struct pull_watch *watch, double seconds, double server_cpu, double client_cpu)
{
    int code = CLI_OK;
    struct bench_histogram all;
    latency_of(watch, &all);
    struct bench_report r = {.what = "pull",
                             .latency = &all,
                             .closed_loop = true,
                             .seconds = seconds,
                             .server_cpu_seconds = server_cpu,
                             .client_cpu_seconds = client_cpu,
                             .per_second = watch->seconds,
                             .second_count = watch->count};
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < o->consumers; i++) {
        r.records += threads[i].records;
        r.bytes += threads[i].bytes;
        wrong += threads[i].wrong;
        if (threads[i].failed || threads[i].wrong) {
            code = CLI_FAILED;
            cli_error("consumer %" PRIu64 ": %s", i, threads[i].text);
        }
    }
    char settings[512];
    snprintf(settings, sizeof settings,
             "\"consumers\":%" PRIu64 ",\"stream\":\"%s\",\"fetch_bytes\":%" PRIu64
             ",\"verify\":%s,\"wrong_records\":%" PRIu64,
             o->consumers, o->stream, o->fetch_bytes, o->verify ? "true" : "false", wrong);
    r.settings = settings;
    int printed = bench_print(&r, o->json);
    if (o->verify && !o->json)
        printf("  verified    %s\n", wrong ? "WRONG, see above" : "order and numbers are right");
    return code ? code : printed;
}

static int run(struct pull_options *o)
{
    uint32_t streamlets = 1, logs = 1;
    int code = stream_shape(o->stream, &streamlets, &logs);
    if (code) return code;
    if (!o->consumers) o->consumers = logs;
    if (o->consumers > (uint64_t)streamlets * logs) {
        cli_error("--consumers %" PRIu64 ", but the stream has %u log%s", o->consumers,
                  streamlets * logs, cli_s(streamlets * logs));
        return CLI_USAGE;
    }
    if (o->consumers > 1 && o->consumers % logs != 0 && o->consumers > logs) {
        cli_error("--consumers: 1, up to %u, or a multiple of it", logs);
        return CLI_USAGE;
    }
    struct pull_thread *threads = calloc(o->consumers, sizeof *threads);
    struct pull_watch watch = {.threads = threads, .options = o};
    watch.seconds = calloc(SECONDS_MAX, sizeof *watch.seconds);
    if (!threads || !watch.seconds) abort();
    struct cli_status before = {0}, after = {0};
    code = cli_status_get(&before);
    double client = bench_cpu_seconds();
    uint64_t start = leat_shared_now_us(NULL);
    if (code == CLI_OK) code = threads_open(threads, o, streamlets, logs);
    if (code == CLI_OK) {
        cli_catch_signals();
        threads_run(threads, o, &watch);
        uint64_t end = start + 1;
        for (uint64_t i = 0; i < o->consumers; i++)
            if (threads[i].finished_us > end) end = threads[i].finished_us;
        client = bench_cpu_seconds() - client;
        code = cli_status_get(&after);
        if (code == CLI_OK)
            code = report(threads, o, &watch, (double)(end - start) / 1e6,
                          (double)(after.cpu_us - before.cpu_us) / 1e6, client);
    }
    for (uint64_t i = 0; i < o->consumers; i++)
        leat_consumer_close(threads[i].consumer);
    free(watch.seconds);
    free(threads);
    return code;
}

int leat_bench_pull(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    struct pull_options o = {.stream = "bench",
                             .consumers = CLI_NONE,
                             .records = CLI_NONE,
                             .seconds_ms = CLI_NONE,
                             .fetch_bytes = 1024 * 1024};
    const struct cli_option options[] = {
        CLI_COMMON,
        {"consumers", 0, CLI_U64, &o.consumers},
        {"stream", 0, CLI_TEXT, &o.stream},
        {"records", 0, CLI_U64, &o.records},
        {"seconds", 0, CLI_S, &o.seconds_ms},
        {"fetch-bytes", 0, CLI_BYTES, &o.fetch_bytes},
        {"verify", 0, CLI_FLAG, &o.verify},
        {"json", 0, CLI_TEXT, &o.json},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n != 0) {
        if (n > 0) cli_error("bench pull takes no operands");
        return CLI_USAGE;
    }
    if (!cli_number("consumers", &o.consumers, 1, CONSUMERS_MAX, 0) ||
        !cli_number("records", &o.records, 1, INT64_MAX, 0) ||
        !cli_number("seconds", &o.seconds_ms, 1, INT64_MAX, 0) ||
        !cli_in_range("fetch-bytes", o.fetch_bytes, 1, FETCH_BYTES_MAX, ""))
        return CLI_USAGE;
    return bench_json_check(o.json) ? CLI_FAILED : run(&o);
}
