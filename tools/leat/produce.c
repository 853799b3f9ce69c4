/* SPDX-License-Identifier: Apache-2.0 */
/* leat produce NAME [FILE...]: a line is a record. */
#include "tools/leat/cli.h"
#include "tools/leat/commands.h"

#include "leat/producer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 1024 * 1024,
    LINE_BYTES_MAX = LEAT_BATCH_BYTES_MAX, /* the server's own limit says the rest */
    PROGRESS_US = 200 * 1000,
    STALL_LOOK_US = 500 * 1000,
    TOLD_US = 500 * 1000,       /* what takes longer after an interrupt is told */
    STALL_US = 5 * 1000 * 1000, /* so long without an ack is told, once until the next one */
    NOT_ENDED = 0,              /* the event's count, which begins so */
    SEPARATOR_BYTES_MAX = 64,
    BATCH_BYTES_MIN = 1024, /* as producer.h has them */
    BATCH_BYTES_MAX = 1024 * 1024,
};

static const char help[] =
    "Usage: leat produce NAME [FILE...]\n"
    "\n"
    "Appends each line of the files (or of stdin) as one record, without its newline. A last\n"
    "line without a newline is also a record, with the header leat.eol=0, so that 'leat\n"
    "consume' writes the same bytes again. A missing stream is created (unless the server\n"
    "forbids it).\n"
    "\n"
    "  -K, --key-separator S  the part of a line before the first S is the record's key;\n"
    "                       \\t \\0 \\xHH are understood\n"
    "  --batch-bytes SIZE   send a batch when it has this size (default 64K)\n"
    "  --linger TIME        or when its first record has waited this long (default 1ms; a\n"
    "                       bare number is microseconds)\n"
    "  -z, --compression C  none, lz4 or zstd (default none)\n"
    "  --streamlet N        append to this streamlet only (default: by key; records without a\n"
    "                       key go to the streamlets in turn, batch by batch)\n"
    "  --timeout TIME       give up a record that is not acked for this long (default 120s; a\n"
    "                       bare number is milliseconds)\n"
    "  --acks               print \"STREAMLET LOG OFFSET LINE\" for each acked record, LINE from\n"
    "                       1; OFFSET -1: it was appended before, its offset is not known\n"
    "  -q, --quiet          print no summary\n"
    "  -b, --brokers HOST:PORT,...\n"
    "\n"
    "Exit codes: 0 all records are acked; 1 some records were refused, or whether they were\n"
    "appended is not known; 2 wrong usage; 3 no server answers.\n";

/* The header of a last line without its newline, as Kafka encodes one: key and value, each after its zigzag length. */
static const char no_eol_header[] = "\x10leat.eol\x02"
                                    "0";

struct produce_run {
    leat_producer *producer;
    const char *stream, *separator;
    size_t separator_bytes;
    int32_t streamlet;
    _Atomic uint64_t records; /* the main thread's */
    uint64_t bytes, started_us, shown_us, linger_us;
    _Atomic uint64_t failed;
    struct leat_event ended;
    bool acks;
    leat_code refused;
};

/* With --acks: which record it was. */
struct produce_line {
    struct produce_run *run;
    uint64_t number;
};

static void on_result(void *arg, const leat_result *result)
{
    struct produce_run *run = arg;
    if (result->code == 0) return;
    if (atomic_fetch_add(&run->failed, 1) == 0)
        cli_error("a record was not acked: %s (%s)", result->text, leat_code_name(result->code));
}

/* On one background thread, as all of a producer's results. */
static void on_line_result(void *arg, const leat_result *result)
{
    struct produce_line *line = arg;
    if (result->code == 0)
        printf("%u %u %" PRId64 " %" PRIu64 "\n", result->streamlet, result->log,
               (int64_t)result->offset, line->number);
    on_result(line->run, result);
    free(line);
}

static bool line_send(struct produce_run *run, const char *line, size_t bytes, bool no_eol)
{
    leat_produce_record record = {.value = line, .value_bytes = bytes, .streamlet = run->streamlet};
    if (run->separator) {
        const char *at = memmem(line, bytes, run->separator, run->separator_bytes);
        if (at) {
            record.key = line;
            record.key_bytes = (size_t)(at - line);
            record.value = at + run->separator_bytes;
            record.value_bytes = bytes - record.key_bytes - run->separator_bytes;
        }
    }
    if (no_eol) {
        record.headers = no_eol_header;
        record.headers_bytes = sizeof no_eol_header - 1;
        record.header_count = 1;
    }
    struct produce_line *own = run->acks ? malloc(sizeof *own) : NULL;
    if (run->acks && !own) abort();
    if (own) *own = (struct produce_line){run, run->records + 1};
    leat_code code = leat_produce(run->producer, run->stream, &record,
                                  own ? on_line_result : on_result, own ? (void *)own : run);
    if (code) {
        free(own);
        if (code == LEAT_E_TIMEOUT)
            cli_error("record %" PRIu64 " and later records were not sent: earlier records fill "
                      "the memory for records under way, and were not acked in time",
                      run->records + 1);
        else
            cli_error(
                "record %" PRIu64 " (%zu byte%s) was refused: %s%s; nothing from it on was sent",
                run->records + 1, bytes, cli_s(bytes), leat_strerror(code),
                code == LEAT_E_TOO_LARGE ? " of a batch: 2 MiB, or the stream's --max-batch-bytes"
                : code == LEAT_E_UNKNOWN_LOG ? "; see 'leat stream describe'"
                                             : "");
        run->refused = code;
        return false;
    }
    run->records++;
    run->bytes += bytes + !no_eol;
    return true;
}

static void progress(struct produce_run *run)
{
    if (run->acks && isatty(STDOUT_FILENO)) return; /* the lines of --acks are there to see */
    uint64_t now = leat_shared_now_us(NULL);
    if (now - run->shown_us < PROGRESS_US) return;
    run->shown_us = now;
    char text[CLI_TRAFFIC_BYTES];
    cli_progress("%s", cli_traffic_text(run->records, run->bytes, now - run->started_us, text));
}

/* Lines of one file. What is cut at the end of a read moves to the front. */
static int file_send(struct produce_run *run, int fd, const char *name)
{
    size_t capacity = READ_BYTES, have = 0;
    uint64_t before = run->records;
    char *buffer = malloc(capacity);
    if (!buffer) abort();
    int code = CLI_OK;
    for (;;) {
        if (have == capacity) {
            if (capacity > LINE_BYTES_MAX) {
                cli_error("%s: line %" PRIu64
                          " is longer than a batch may be, 2 MiB; nothing from it "
                          "on was sent",
                          name, run->records - before + 1);
                code = CLI_FAILED;
                break;
            }
            buffer = realloc(buffer, capacity *= 2);
            if (!buffer) abort();
        }
        if (!cli_readable_wait(fd)) break;
        ssize_t n = read(fd, buffer + have, capacity - have);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) {
            cli_error("%s: %s", name, strerror(errno));
            code = CLI_FAILED;
            break;
        }
        if (n == 0) {
            if (have && !line_send(run, buffer, have, true)) code = CLI_FAILED;
            break;
        }
        size_t from = 0, end = have + (size_t)n;
        char *newline;
        while (code == CLI_OK && (newline = memchr(buffer + from, '\n', end - from))) {
            size_t bytes = (size_t)(newline - buffer) - from;
            if (!line_send(run, buffer + from, bytes, false)) code = CLI_FAILED;
            from += bytes + 1;
        }
        if (code || cli_interrupted()) break;
        have = end - from;
        memmove(buffer, buffer + from, have);
        progress(run);
    }
    free(buffer);
    return code;
}

/* Before a stream is made for them. */
static bool files_are_there(int count, char **names)
{
    for (int i = 0; i < count; i++) {
        struct stat file = {0};
        if (strcmp(names[i], "-") == 0) continue;
        bool readable = access(names[i], R_OK) == 0 && stat(names[i], &file) == 0;
        if (readable && !S_ISDIR(file.st_mode)) continue;
        cli_error("%s: %s", names[i], strerror(readable ? EISDIR : errno));
        return false;
    }
    return true;
}

static int files_send(struct produce_run *run, int count, char **names)
{
    if (count == 0) return file_send(run, STDIN_FILENO, "stdin");
    int code = CLI_OK;
    for (int i = 0; i < count && code == CLI_OK && !cli_interrupted(); i++) {
        if (strcmp(names[i], "-") == 0) {
            code = file_send(run, STDIN_FILENO, "stdin");
            continue;
        }
        int fd = open(names[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            cli_error("%s: %s", names[i], strerror(errno));
            return CLI_FAILED;
        }
        code = file_send(run, fd, names[i]);
        close(fd);
    }
    return code;
}

/* Its own thread, since the main thread may wait in leat_produce() or leat_producer_flush(), and an interrupt ends
 * neither wait. */
static void *stall_watch(void *arg)
{
    struct produce_run *run = arg;
    uint64_t ended = 0, since_us = leat_shared_now_us(NULL), now = since_us, interrupted_us = 0;
    bool told = false, interrupt_told = false;
    /* SUBTLE: not looked at here. A short run may have been ended before this thread's first step. */
    while (!leat_event_wait(&run->ended, NOT_ENDED, now + STALL_LOOK_US)) {
        leat_producer_stats stats;
        uint64_t records = atomic_load(&run->records);
        leat_producer_stats_get(run->producer, &stats);
        const char *why = stats.last_text[0] ? stats.last_text : "no answer yet";
        now = leat_shared_now_us(NULL);
        if (cli_interrupted() && !interrupted_us) interrupted_us = now;
        if (stats.records_acked + stats.records_failed != ended || records <= ended) {
            ended = stats.records_acked + stats.records_failed;
            since_us = now;
            told = false;
        } else if (!told && !interrupted_us && now - since_us > STALL_US + run->linger_us) {
            told = true; /* within the linger time nothing needs to be sent */
            cli_error("no ack for %" PRIu64 " s: %" PRIu64 " record%s under way (%s); still trying",
                      (now - since_us) / 1000000, records - ended, cli_s(records - ended), why);
        }
        if (interrupt_told || !interrupted_us || now - interrupted_us < TOLD_US || records <= ended)
            continue;
        interrupt_told = true;
        cli_error("waiting for the acks of %" PRIu64 " record%s (%s); interrupt again to give up",
                  records - ended, cli_s(records - ended), why);
    }
    return NULL;
}

/* A server that refuses is there: its disk is full, say, and the producer tries again until its time is over. */
static bool is_answered(const leat_producer_stats *stats)
{
    return stats->records_acked > 0 ||
           (stats->last_error != LEAT_OK && stats->last_error != LEAT_E_CLOSED &&
            stats->last_error != LEAT_E_TIMEOUT);
}

static int finish(struct produce_run *run, int code, uint64_t timeout_ms, bool quiet)
{
    uint64_t open = leat_producer_flush(run->producer, (int)timeout_ms);
    leat_producer_stats stats;
    leat_producer_stats_get(run->producer, &stats);
    uint64_t failed = atomic_load(&run->failed);
    if (open > run->records - failed) open = run->records - failed; /* given up just now */
    const char *reason = stats.last_text[0] ? stats.last_text : "no answer in time";
    if (open) {
        cli_error("%" PRIu64 " record%s not acked: %s", open, open == 1 ? " is" : "s are", reason);
        code = is_answered(&stats) ? CLI_FAILED : CLI_NO_SERVER;
    }
    if (failed) {
        cli_error("%" PRIu64 " record%s failed; the last reason: %s", failed, cli_s(failed),
                  reason);
        code = CLI_FAILED;
    }
    uint64_t took_us = leat_shared_now_us(NULL) - run->started_us;
    char text[CLI_TRAFFIC_BYTES];
    cli_progress_end();
    uint64_t acked = run->records - failed - open;
    if (quiet) return code;
    if (acked < run->records) /* how many bytes were theirs is not known */
        fprintf(stderr, "%" PRIu64 " record%s, %" PRIu64 " not acked, %.2f s\n", acked,
                cli_s(acked), run->records - acked, (double)took_us / 1e6);
    else
        fprintf(stderr, "%s\n", cli_traffic_text(acked, run->bytes, took_us, text));
    return code;
}

int leat_produce_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    const char *separator = NULL, *compression = NULL;
    uint64_t batch_bytes = CLI_NONE, linger_us = 1000, streamlet = CLI_NONE, timeout_ms = 120000;
    bool quiet = false, acks = false;
    const struct cli_option options[] = {
        CLI_COMMON,
        {"key-separator", 'K', CLI_TEXT, &separator},
        {"batch-bytes", 0, CLI_BYTES, &batch_bytes},
        {"linger", 0, CLI_US, &linger_us},
        {"compression", 'z', CLI_TEXT, &compression},
        {"streamlet", 0, CLI_U64, &streamlet},
        {"timeout", 0, CLI_MS, &timeout_ms},
        {"acks", 0, CLI_FLAG, &acks},
        {"quiet", 'q', CLI_FLAG, &quiet},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n < 0) return CLI_USAGE;
    leat_producer_options producer;
    leat_producer_options_init(&producer);
    if (n < 1 || cli_compression_parse(compression, &producer.compression)) {
        if (n < 1) cli_error("produce wants a stream's NAME");
        return CLI_USAGE;
    }
    char delimiter[SEPARATOR_BYTES_MAX];
    size_t delimiter_bytes = 0;
    if (separator && (!*separator || strlen(separator) > sizeof delimiter)) {
        cli_error("--key-separator has 1 to %d bytes", SEPARATOR_BYTES_MAX);
        return CLI_USAGE;
    }
    if (separator && cli_escapes_check("key-separator", separator)) return CLI_USAGE;
    for (const char *at = separator; at && *at;)
        delimiter[delimiter_bytes++] = cli_unescaped(&at);
    if (!cli_number("streamlet", &streamlet, 0, LEAT_STREAMLETS_MAX - 1, CLI_NONE) ||
        !cli_in_range("timeout", timeout_ms, 1, INT32_MAX, " ms") ||
        !cli_in_range("linger", linger_us, 0, UINT32_MAX, " us") ||
        !cli_number("batch-bytes", &batch_bytes, BATCH_BYTES_MIN, BATCH_BYTES_MAX, 0))
        return CLI_USAGE;
    if (!files_are_there(n - 1, argv + 1)) return CLI_FAILED;
    /* Asked first, so that a missing server or a wrong name is told at once. */
    cli_patience_us = timeout_ms * 1000;
    int code = cli_stream_ensure(argv[0], true);
    cli_patience_us = UINT64_MAX;
    if (code) return code;
    cli_disconnect();
    producer.brokers = cli_brokers;
    producer.client_name = "leat produce";
    if (batch_bytes) producer.batch_bytes = (uint32_t)batch_bytes;
    producer.linger_us = (uint32_t)linger_us;
    producer.timeout_ms = (uint32_t)timeout_ms;
    leat_message message;
    struct produce_run run = {
        .stream = argv[0],
        .separator = separator ? delimiter : NULL,
        .separator_bytes = delimiter_bytes,
        .streamlet = streamlet == CLI_NONE ? -1 : (int32_t)streamlet,
        .acks = acks,
        .linger_us = linger_us,
        .started_us = leat_shared_now_us(NULL),
    };
    run.producer = leat_producer_open(&producer, &message);
    if (!run.producer) {
        cli_error("%s", message.text);
        return CLI_USAGE;
    }
    cli_catch_signals();
    if (acks) (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, stall_watch, &run)) abort();
    code = files_send(&run, n - 1, argv + 1);
    code = finish(&run, code, timeout_ms, quiet);
    leat_event_tell(&run.ended);
    pthread_join(watcher, NULL);
    leat_producer_close(run.producer);
    return code;
}
