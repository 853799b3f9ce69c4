/* SPDX-License-Identifier: Apache-2.0 */
/* leat consume NAME */
#include "tools/leat/consume.h"
#include "tools/leat/commands.h"

#include "leat/consumer.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    OUT_BYTES = 1024 * 1024,
    WAIT_MS = 200,
    OPEN_MS = 30 * 1000,
    OPEN_LOOK_MS = 11 * 1000, /* by then it is known whether what has no owner is called missing */
    COMMIT_MS = 30 * 1000,
    COMMIT_EVERY_US = 1000 * 1000,
    PROGRESS_US = 200 * 1000,
    STANDS_US =
        10 * 1000 * 1000, /* nothing came for so long, and it is not the end: a log has no owner */
    LOOK_MS = 100,
};

static const char help[] =
    "Usage: leat consume NAME [OPTION...]\n"
    "\n"
    "Prints the value of each record and a newline (none for a record whose line had none).\n"
    "While records are written to a file, a terminal shows the progress.\n"
    "\n"
    "  -o, --from WHERE    earliest (default), latest, an OFFSET, @MILLISECONDS since 1970, a\n"
    "                      time such as 2026-11-20, 2026-11-20T12:30:00 (local), ...Z (UTC) or\n"
    "                      ...+01:00 (as date -Is prints it), or GROUP/SEGMENT/POSITION, the\n"
    "                      place of a batch in one log, as %a prints it; position 0 is the\n"
    "                      segment's first record. A consumer group begins there in logs of\n"
    "                      which it has committed nothing\n"
    "  -e, --until-end     stop at the end of the stored records (default: wait for more). Logs\n"
    "                      whose end is missing are named (exit code 4)\n"
    "  -c, --max-records N stop after N records\n"
    "  --streamlet N       read this streamlet only\n"
    "  --log N             read this log of each streamlet only\n"
    "  -G, --group NAME    share the stream with the other members of this consumer group;\n"
    "                      offsets of printed records are committed each second, and when\n"
    "                      there are no more records\n"
    "  --mode MODE         of the group: ordered (a member owns logs; default) or parallel\n"
    "                      (a member owns segment groups)\n"
    "  -f, --format FORMAT %t stream, %p partition, %o offset, %T time (ms), %k key, %s or %v\n"
    "                      value, %K and %S their lengths (-1: null), %h headers, %a the place\n"
    "                      of the record's batch (the server is asked for each batch), %% %;\n"
    "                      \\n \\t \\r \\0 \\xHH. A newline follows unless the format has one or\n"
    "                      a \\0\n"
    "  -b, --brokers HOST:PORT,...\n"
    "\n"
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no server answers; 4 the end of\n"
    "a log is missing: all records that can be read before the loss is accepted were printed.\n";

struct consume_run {
    leat_consumer *consumer;
    const char *stream;
    char *format;
    size_t format_bytes;
    bool newline;
    bool in_group;
    bool shows; /* how far it is */
    uint64_t records, bytes, shown_us, started_us;
    uint64_t committed, tried, tried_us; /* to commit: records, and when */
    char noted[256];                     /* what was told last */
    struct consume_ends *ends;           /* of --until-end, else NULL */
    /* Since when: no record has come; no server tells the ends. 0: not so. */
    uint64_t stands_us, unasked_us;
};

/* Where to begin, as far as it is not the consumer's own option. */
struct consume_from {
    bool is_address;
    leat_app_offset address;
};

/* ---- where to begin ---- */

/* "2026-11-20", "2026-11-20T12:30:00.250Z", "2026-11-20T12:30:00+01:00": ms since 1970. */
static bool time_parse(const char *text, int64_t *out_ms)
{
    struct tm tm = {.tm_isdst = -1};
    const char *end = strptime(text, "%Y-%m-%d", &tm);
    if (!end) return false;
    int ms = 0;
    if (*end == 'T' || *end == ' ') {
        const char *clock = strptime(end + 1, "%H:%M:%S", &tm);
        if (!clock) clock = strptime(end + 1, "%H:%M", &tm);
        if (!clock) return false;
        end = clock;
        if (*end == '.') {
            int scale = 100;
            for (end++; isdigit((unsigned char)*end); end++, scale /= 10)
                ms += (*end - '0') * scale;
        }
    }
    bool zoned = *end == 'Z' || *end == '+' || *end == '-';
    if (zoned) end = strptime(end, "%z", &tm);
    if (!end || *end) return false;
    long ahead = tm.tm_gmtoff; /* both of these change it */
    int day = tm.tm_mday;
    time_t seconds = zoned ? timegm(&tm) - ahead : mktime(&tm);
    if (tm.tm_mday != day) return false; /* the 30th of February */
    *out_ms = (int64_t)seconds * 1000 + ms;
    return true;
}

/* The next number of an address; the next character must be `end`. */
static bool address_number(const char **text, char end, uint64_t most, uint64_t *out)
{
    char *behind;
    errno = 0;
    *out = strtoull(*text, &behind, 10);
    if (!isdigit((unsigned char)**text) || errno || *behind != end || *out > most) return false;
    *text = behind + (end != '\0');
    return true;
}

/* "2/33/4096": neither an offset nor a time has a slash. */
static bool address_parse(const char *text, leat_app_offset *out)
{
    uint64_t position;
    if (!address_number(&text, '/', UINT64_MAX, &out->group) ||
        !address_number(&text, '/', UINT64_MAX, &out->segment) ||
        !address_number(&text, '\0', UINT32_MAX, &position))
        return false;
    out->position = (uint32_t)position;
    return true;
}

static int from_parse(const char *text, leat_consumer_options *options, struct consume_from *from)
{
    if (!text || strcmp(text, "earliest") == 0) return CLI_OK;
    if (strcmp(text, "latest") == 0) {
        options->from = LEAT_FROM_LATEST;
        return CLI_OK;
    }
    if (strchr(text, '/')) {
        options->from = LEAT_FROM_LATEST; /* until the records there are known */
        from->is_address = address_parse(text, &from->address);
        if (from->is_address) return CLI_OK;
        cli_error("--from '%s' is no GROUP/SEGMENT/POSITION, three numbers as in 2/33/4096", text);
        return CLI_USAGE;
    }
    char *end;
    errno = 0;
    if (*text == '@') {
        options->from = LEAT_FROM_TIME;
        options->from_value = strtoll(text + 1, &end, 10);
        if (text[1] && !*end && !errno) return CLI_OK;
    } else if (time_parse(text, &options->from_value)) {
        options->from = LEAT_FROM_TIME;
        return CLI_OK;
    } else {
        options->from = LEAT_FROM_OFFSET;
        options->from_value = strtoll(text, &end, 10);
        if (*text && !*end && !errno && options->from_value >= 0) return CLI_OK;
    }
    cli_error("--from is earliest, latest, an offset, @milliseconds, a time or "
              "group/segment/position, not '%s'",
              text);
    return CLI_USAGE;
}

/* ---- format ---- */

/* Escapes are resolved once. A literal percent sign written by an escape is doubled. */
static void format_prepare(struct consume_run *run, const char *text)
{
    run->format = malloc(strlen(text) * 2 + 1);
    if (!run->format) abort();
    run->newline = true;
    for (const char *at = text; *at;) {
        bool escaped = *at == '\\';
        char c = cli_unescaped(&at);
        if (c == '%' && escaped) run->format[run->format_bytes++] = '%';
        if (c == '\n' || c == '\0') run->newline = false; /* a NUL: for xargs -0 and its like */
        run->format[run->format_bytes++] = c;
    }
}

static bool varint(const uint8_t **at, const uint8_t *end, int64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *out = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
        return true;
    }
    return false;
}

/* Kafka's headers: each a key and a value, after their lengths. Returns false at the end. */
static bool header_next(const uint8_t **at, const uint8_t *end, const char **key, size_t *key_bytes,
                        const char **value, int64_t *value_bytes)
{
    int64_t length;
    if (!varint(at, end, &length) || length < 0 || length > end - *at) return false;
    *key = (const char *)*at;
    *key_bytes = (size_t)length;
    *at += length;
    if (!varint(at, end, value_bytes) || *value_bytes > end - *at) return false;
    *value = (const char *)*at;
    if (*value_bytes > 0) *at += *value_bytes;
    return true;
}

static bool line_has_newline(const leat_record_view *record)
{
    const uint8_t *at = record->headers, *end = at ? at + record->headers_bytes : NULL;
    const char *key, *value;
    size_t key_bytes;
    int64_t value_bytes;
    for (uint32_t i = 0; i < record->header_count; i++) {
        if (!header_next(&at, end, &key, &key_bytes, &value, &value_bytes)) break;
        if (key_bytes == 8 && memcmp(key, "leat.eol", 8) == 0)
            return !(value_bytes == 1 && *value == '0');
    }
    return true;
}

static void headers_print(const leat_record_view *record)
{
    const uint8_t *at = record->headers, *end = at ? at + record->headers_bytes : NULL;
    const char *key, *value;
    size_t key_bytes;
    int64_t value_bytes;
    for (uint32_t i = 0; i < record->header_count; i++) {
        if (!header_next(&at, end, &key, &key_bytes, &value, &value_bytes)) break;
        if (i) putchar_unlocked(',');
        fwrite_unlocked(key, 1, key_bytes, stdout);
        putchar_unlocked('=');
        if (value_bytes < 0)
            fputs("NULL", stdout);
        else
            fwrite_unlocked(value, 1, (size_t)value_bytes, stdout);
    }
}

/* A record that was dropped since the fetch has no address. */
static void address_print(const struct consume_run *run, const leat_record_view *record)
{
    leat_app_offset at;
    if (leat_consumer_app_offset(run->consumer, record, OPEN_MS, &at, NULL) == 0)
        printf("%" PRIu64 "/%" PRIu64 "/%" PRIu32, at.group, at.segment, at.position);
    else
        putchar_unlocked('-');
}

static void field_print(const struct consume_run *run, const leat_record_view *record, char field)
{
    switch (field) {
    case 'a':
        address_print(run, record);
        break;
    case 't':
        fputs(run->stream, stdout);
        break;
    case 'p':
        printf("%u", record->partition);
        break;
    case 'o':
        printf("%" PRIu64, record->offset);
        break;
    case 'T':
        printf("%" PRId64, record->timestamp_ms);
        break;
    case 'k':
        fwrite_unlocked(record->key, 1, record->key_bytes, stdout);
        break;
    case 's':
    case 'v':
        fwrite_unlocked(record->value, 1, record->value_bytes, stdout);
        break;
    case 'K':
        printf("%" PRId64, record->key_null ? -1 : (int64_t)record->key_bytes);
        break;
    case 'S':
        printf("%" PRId64, record->value_null ? -1 : (int64_t)record->value_bytes);
        break;
    case 'h':
        headers_print(record);
        break;
    case '%':
        putchar_unlocked('%');
        break;
    default:
        putchar_unlocked('%');
        putchar_unlocked(field);
    }
}

static void record_print(const struct consume_run *run, const leat_record_view *record)
{
    if (!run->format) {
        fwrite_unlocked(record->value, 1, record->value_bytes, stdout);
        if (line_has_newline(record)) putchar_unlocked('\n');
        return;
    }
    for (size_t i = 0; i < run->format_bytes; i++) {
        if (run->format[i] == '%' && i + 1 < run->format_bytes)
            field_print(run, record, run->format[++i]);
        else
            putchar_unlocked(run->format[i]);
    }
    if (run->newline) putchar_unlocked('\n');
}

static int format_check(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            continue;
        }
        if (*at != '%') continue;
        at++;
        if (*at && strchr("atpoTksvKSh%", *at)) continue;
        cli_error(
            "--format knows %%t %%p %%o %%a %%T %%k %%s %%v %%K %%S %%h and %%%%, not '%%%.1s'",
            at);
        return CLI_USAGE;
    }
    return cli_escapes_check("format", text);
}

/* ---- the loop ---- */

/* Only if the user sees no other output: a program that reads a pipe may write to the same terminal, as in "| grep". */
static bool may_show(void)
{
    struct stat out;
    return isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) && fstat(STDOUT_FILENO, &out) == 0 &&
           !S_ISFIFO(out.st_mode) && !S_ISSOCK(out.st_mode);
}

static void progress(struct consume_run *run)
{
    if (!run->shows) return;
    uint64_t now = leat_shared_now_us(NULL);
    if (now - run->shown_us < PROGRESS_US) return;
    run->shown_us = now;
    char text[CLI_TRAFFIC_BYTES];
    cli_progress("%s", cli_traffic_text(run->records, run->bytes, now - run->started_us, text));
}

/* As leat produce ends; but not for scripts, whose logs never had this line. */
static void summary(const struct consume_run *run)
{
    char text[CLI_TRAFFIC_BYTES];
    uint64_t took_us = leat_shared_now_us(NULL) - run->started_us;
    cli_progress_end();
    if (!run->shows) return;
    fprintf(stderr, "%s\n", cli_traffic_text(run->records, run->bytes, took_us, text));
}

/* What happened on the way and is no end: an offset out of range, a server out of reach. */
static void note(struct consume_run *run)
{
    leat_message message;
    while (leat_consumer_note_next(run->consumer, &message)) {
        if (strcmp(message.text, run->noted) == 0) continue;
        snprintf(run->noted, sizeof run->noted, "%s", message.text);
        cli_error("%s", run->noted);
    }
}

/* What is printed is out before anything waits, and committed after it is out. What could not be committed
 * is tried again with what comes next, or at the end. */
static int print_out(struct consume_run *run, bool last)
{
    leat_message message;
    if (fflush(stdout)) return (void)cli_output_failed(), CLI_FAILED;
    if (!run->in_group || run->records == (last ? run->committed : run->tried)) return CLI_OK;
    run->tried = run->records;
    leat_code code = leat_consumer_commit(run->consumer, COMMIT_MS, &message);
    run->tried_us = leat_shared_now_us(NULL);
    if (code == 0) run->committed = run->records;
    if (code) cli_error("offsets were not committed: %s", message.text);
    return code ? CLI_FAILED : CLI_OK;
}

/* A member that never catches up commits now and then: else its death would give all of it to another. */
static bool commit_due(const struct consume_run *run)
{
    return run->in_group && leat_shared_now_us(NULL) - run->tried_us > COMMIT_EVERY_US;
}

/* Nothing more is there, as it seems. Returns true when that is the end; *out_code says of what kind. */
static bool ended(struct consume_run *run, int *out_code)
{
    if (!run->ends) return false;
    uint64_t now = leat_shared_now_us(NULL);
    bool at_end = leat_consumer_at_end(run->consumer);
    if (!run->stands_us) run->stands_us = now;
    if (!at_end && now - run->stands_us < STANDS_US) return false;
    run->stands_us = now;
    enum consume_look look = consume_ends_look(run->ends, false);
    if (look != CONSUME_UNASKED)
        run->unasked_us = 0;
    else if (!run->unasked_us)
        run->unasked_us = now;
    if (look == CONSUME_MISSING) *out_code = CLI_INCOMPLETE;
    if (look == CONSUME_MISSING || (look == CONSUME_WHOLE && at_end)) return true;
    if (look == CONSUME_UNASKED && now - run->unasked_us > STANDS_US) {
        cli_error("no server tells whether that is the end");
        *out_code = CLI_NO_SERVER;
        return true;
    }
    (void)poll(NULL, 0, LOOK_MS); /* a signal ends it early */
    return false;
}

static void record_take(struct consume_run *run, const leat_record_view *record)
{
    record_print(run, record);
    run->records++;
    run->bytes += record->value_bytes + 1;
    if ((run->records & 1023) != 0) return;
    progress(run);
    if (commit_due(run)) (void)print_out(run, false);
}

/* The reader of the output pipe may end while there is no record to write: "| head". */
static bool output_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

static int consume(struct consume_run *run, uint64_t max_records)
{
    int code = CLI_OK;
    while (run->records < max_records && !cli_interrupted() && !cli_output_failed()) {
        leat_code rc = 0;
        const leat_record_view *record = leat_consumer_next(run->consumer, 0, &rc);
        if (!record && !rc) {
            (void)print_out(run, false); /* told */
            if (cli_output_failed()) return CLI_FAILED;
            progress(run);
            if (ended(run, &code)) break;
            record = leat_consumer_next(run->consumer, WAIT_MS, &rc);
        }
        if (rc) {
            leat_consumer_stats stats;
            note(run);
            leat_consumer_stats_get(run->consumer, &stats);
            cli_error("%s", stats.last_text[0] ? stats.last_text : leat_strerror(rc));
            code = CLI_FAILED;
            break;
        }
        if (record) {
            run->stands_us = 0;
            record_take(run, record);
        } else {
            note(run);
            if (ended(run, &code) || output_is_gone()) break;
        }
    }
    if (print_out(run, true)) code = CLI_FAILED;
    note(run);
    summary(run);
    return code;
}

/* What the arguments say; NULL: not said. */
struct consume_words {
    const char *from, *group, *mode, *format;
    uint64_t max_records, streamlet, log; /* CLI_NONE: all */
    bool until_end;
};

/* CLI_OK, or CLI_USAGE after a message. */
static int words_check(struct consume_words *words, leat_consumer_options *options,
                       struct consume_from *from)
{
    if (from_parse(words->from, options, from) || (words->format && format_check(words->format)))
        return CLI_USAGE;
    if (words->mode && strcmp(words->mode, "ordered") != 0 &&
        strcmp(words->mode, "parallel") != 0) {
        cli_error("--mode is ordered or parallel, not '%s'", words->mode);
        return CLI_USAGE;
    }
    if (words->mode && !words->group) {
        cli_error("--mode is of a group; name one with --group");
        return CLI_USAGE;
    }
    if (words->group && from->is_address) {
        cli_error("--from %s is of one log, and a group's members read those that they are given",
                  words->from);
        return CLI_USAGE;
    }
    if (!cli_number("streamlet", &words->streamlet, 0, LEAT_STREAMLETS_MAX - 1, CLI_NONE) ||
        !cli_number("log", &words->log, 0, LEAT_LOGS_MAX - 1, CLI_NONE))
        return CLI_USAGE;
    options->brokers = cli_brokers;
    options->client_name = "leat consume";
    options->group = words->group;
    options->group_mode =
        words->mode && *words->mode == 'p' ? LEAT_GROUP_PARALLEL : LEAT_GROUP_ORDERED;
    if (words->streamlet != CLI_NONE) options->streamlet = (int32_t)words->streamlet;
    if (words->log != CLI_NONE) options->log = (int32_t)words->log;
    return CLI_OK;
}

static leat_consumer *consumer_open(const char *stream, const leat_consumer_options *options,
                                    const struct consume_from *from, int timeout_ms,
                                    leat_message *message)
{
    leat_consumer *consumer = leat_consumer_open(stream, options, timeout_ms, message);
    if (!consumer || !from->is_address) return consumer;
    leat_code code = leat_consumer_seek_app_offset(consumer, -1, &from->address, OPEN_MS, message);
    if (code == 0) return consumer;
    leat_consumer_close(consumer);
    return NULL;
}

/* A consumer that reads to the end does not wait for the whole time if no node has the log. A member of a group does:
 * repeated joins would disturb the other members. */
static int run_open(struct consume_run *run, const leat_consumer_options *options,
                    const struct consume_from *from)
{
    leat_message message;
    int code = CLI_OK;
    for (int left_ms = OPEN_MS, step_ms; left_ms > 0; left_ms -= step_ms) {
        bool looks = run->ends && !run->in_group && left_ms > OPEN_LOOK_MS;
        step_ms = looks ? OPEN_LOOK_MS : left_ms;
        run->consumer = consumer_open(run->stream, options, from, step_ms, &message);
        if (run->consumer) return CLI_OK;
        code = message.code == LEAT_E_TIMEOUT ? CLI_NO_SERVER : CLI_FAILED;
        if (code == CLI_NO_SERVER && run->ends &&
            consume_ends_look(run->ends, false) == CONSUME_MISSING)
            code = CLI_INCOMPLETE;
        if (code != CLI_NO_SERVER) break;
    }
    cli_error("%s", message.text);
    return code;
}

int leat_consume_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    struct consume_words words = {.max_records = CLI_NONE, .streamlet = CLI_NONE, .log = CLI_NONE};
    const struct cli_option arguments[] = {
        CLI_COMMON,
        {"from", 'o', CLI_TEXT, &words.from},
        {"until-end", 'e', CLI_FLAG, &words.until_end},
        {"max-records", 'c', CLI_U64, &words.max_records},
        {"streamlet", 0, CLI_U64, &words.streamlet},
        {"log", 0, CLI_U64, &words.log},
        {"group", 'G', CLI_TEXT, &words.group},
        {"mode", 0, CLI_TEXT, &words.mode},
        {"format", 'f', CLI_TEXT, &words.format},
    };
    int n = cli_parse(argc, argv, arguments, sizeof arguments / sizeof arguments[0]);
    if (n < 0) return CLI_USAGE;
    if (n != 1) {
        cli_error("consume wants one stream's NAME");
        return CLI_USAGE;
    }
    leat_consumer_options options;
    struct consume_from from = {0};
    leat_consumer_options_init(&options);
    if (words_check(&words, &options, &from)) return CLI_USAGE;
    int code = cli_stream_ensure(argv[0], false);
    if (code) return code;
    cli_disconnect();
    uint64_t now = leat_shared_now_us(NULL);
    struct consume_run run = {.stream = argv[0],
                              .in_group = words.group != NULL,
                              .shows = may_show(),
                              .started_us = now,
                              .tried_us = now};
    if (words.format) format_prepare(&run, words.format);
    if (words.until_end) run.ends = consume_ends_begin(argv[0], words.streamlet, words.log);
    code = run_open(&run, &options, &from);
    if (code == CLI_OK) {
        static char out[OUT_BYTES];
        setvbuf(stdout, out, _IOFBF, sizeof out);
        cli_catch_signals();
        code = consume(&run, words.max_records);
        leat_consumer_close(run.consumer);
    }
    consume_ends_free(run.ends);
    free(run.format);
    return code;
}
