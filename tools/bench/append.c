/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench append: its options and its report. */
#include "tools/bench/append.h"
#include "tools/bench/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PRODUCERS_MAX = 1024,
};

static const char help[] =
    "Usage: leat bench append [OPTION...]\n"
    "\n"
    "Appends records to a stream by many producers, and prints throughput and latency.\n"
    "\n"
    "  --producers N       (default 8)\n"
    "  --record-bytes N    value of each record (default 100)\n"
    "  --batch-records N   records per batch (default 100)\n"
    "  --seconds TIME      how long (default 5s), or\n"
    "  --records N         how many in all\n"
    "  --rate N            records per second in all; the latency is counted from the time at\n"
    "                      which a batch was due, so a stalled server cannot hide\n"
    "  --in-flight N       a producer waits when so many of its batches have no ack (1: the\n"
    "                      latency of a single append; default: as many as its memory holds)\n"
    "  --threads N         threads for all producers (default: one for each; with --in-flight\n"
    "                      and without --rate at most one per two processors)\n"
    "  --linger TIME       (default 1ms)\n"
    "  --compression C     none, lz4, zstd\n"
    "  --stream NAME       (default bench) a missing stream is created with the options below.\n"
    "                      If the stream exists and differs from a given option, the command is\n"
    "                      refused if --stream is given; else it uses a stream whose name has\n"
    "                      the options. If it exists and no option differs, it is used as it is\n"
    "  --streamlets M      (default 1)\n"
    "  --logs Q            logs per streamlet (default: the server's cores)\n"
    "  --copies N          copies of each segment, the owner's included (default 1)\n"
    "  --durability LEVEL  memory (default) or disk\n"
    "  --replication KIND  refuse to report unless all nodes use this transport: shm, verbs,\n"
    "                      tcp or rpc; leatd --replication chooses the transport\n"
    "  --fresh             delete the stream first\n"
    "  --json FILE         write the figures as JSON ('-': stdout)\n"
    "  -b, --brokers HOST:PORT,...\n";

static int report(struct append_source *sources, const struct append_options *o,
                  struct append_watch *watch, const struct bench_nodes *nodes, double seconds,
                  double client_cpu)
{
    struct bench_histogram *all = calloc(1, sizeof *all);
    if (!all) abort();
    struct bench_report r = {.what = "append",
                             .stream = o->stream,
                             .stream_settings = &o->has,
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
        r.records += stats.records_acked - o->has.streamlets;
        r.warming += o->has.streamlets;
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
    int code = append_stream_prepare(o);
    if (code) return code;
    struct append_source *sources = calloc(o->producers, sizeof *sources);
    struct append_watch watch = {.sources = sources, .options = o};
    watch.seconds = calloc(APPEND_SECONDS_MAX, sizeof *watch.seconds);
    if (!sources || !watch.seconds) abort();
    for (uint64_t i = 0; i < o->producers; i++)
        sources[i].options = o;
    code = append_sources_open(sources, o);
    if (code == CLI_OK) code = append_sources_warm(sources, o);
    static struct bench_nodes nodes;
    if (code == CLI_OK) code = bench_nodes_find(&nodes);
    if (code == CLI_OK) code = bench_nodes_begin(&nodes);
    if (code == CLI_OK) {
        cli_catch_signals();
        double client = bench_cpu_seconds();
        uint64_t start = leat_shared_now_us(NULL);
        append_sources_run(sources, o, &watch);
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
    /* A producer that waits for room, or for its next time, holds up all producers of its thread. */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!o.threads && o.in_flight && !o.rate)
        o.threads = processors > 3 ? (uint64_t)processors / 2 : 1;
    if (!o.threads || o.threads > o.producers) o.threads = o.producers;
    return run(&o);
}
