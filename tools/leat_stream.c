/* leat stream create|list|describe|delete */
#include "tools/cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_BYTES = 1024, CELL_BYTES = 64, LIST_COLUMNS = 7, LOG_COLUMNS = 12 };

static const char help[] =
    "Usage: leat stream create NAME [OPTION...]\n"
    "       leat stream list [--json]\n"
    "       leat stream describe NAME [--json]\n"
    "       leat stream delete NAME\n"
    "\n"
    "  --streamlets M          units of placement (default 1)\n"
    "  --logs Q                logs per streamlet; never changes (default: the server's cores)\n"
    "  --copies N              of each segment, the owner's included (default 1)\n"
    "  --min-copies N          appends are refused while fewer nodes can take copies (default:\n"
    "                          more than half of the copies)\n"
    "  --durability LEVEL      memory: acked from memory, flushed behind; disk: acked once "
    "flushed\n"
    "                          (default: the server's choice, disk on one host)\n"
    "  --retention-time TIME   drop segments older than this: 12h, 7d (default: never)\n"
    "  --retention-bytes SIZE  at least so much of each log stays: 512M, 10G (default: all)\n"
    "  --segment-bytes SIZE    largest segment, a power of two from 16K to 8M (default 8M)\n"
    "  --json                  for programs\n"
    "  -b, --brokers HOST:PORT,...\n";

const char *cli_durability_name(enum leat_durability level)
{
    return level == LEAT_DURABILITY_MEMORY ? "memory"
           : level == LEAT_DURABILITY_DISK ? "disk"
                                           : "default";
}

int cli_durability_parse(const char *text, enum leat_durability *out)
{
    *out = LEAT_DURABILITY_DEFAULT;
    if (!text) return CLI_OK;
    if (strcmp(text, "memory") == 0)
        *out = LEAT_DURABILITY_MEMORY;
    else if (strcmp(text, "disk") == 0)
        *out = LEAT_DURABILITY_DISK;
    else {
        cli_error("--durability is memory or disk, not '%s'", text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_stream_create(const char *name, const struct leat_stream_settings *settings,
                      struct cli_answer *out_answer)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_string(&body, name, strlen(name));
    leat_msg_settings_write(&body, settings);
    if (body.overflow) {
        cli_error("the name is too long");
        return CLI_FAILED;
    }
    if (cli_call(LEAT_KIND_STREAM_CREATE, &body, out_answer)) return CLI_FAILED;
    return CLI_OK;
}

static int create(int argc, char **argv)
{
    uint64_t copies = 0, min_copies = 0;
    uint64_t streamlets = 0, logs = 0, retention_ms = 0, retention_bytes = 0, segment_bytes = 0;
    const char *durability = NULL;
    bool json = false;
    const struct cli_option options[] = {
        CLI_COMMON,
        {"streamlets", 0, CLI_U64, &streamlets},
        {"logs", 0, CLI_U64, &logs},
        {"copies", 0, CLI_U64, &copies},
        {"min-copies", 0, CLI_U64, &min_copies},
        {"durability", 0, CLI_TEXT, &durability},
        {"retention-time", 0, CLI_MS, &retention_ms},
        {"retention-bytes", 0, CLI_BYTES, &retention_bytes},
        {"segment-bytes", 0, CLI_BYTES, &segment_bytes},
        {"json", 0, CLI_FLAG, &json},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n < 0) return CLI_USAGE;
    if (n != 1) {
        cli_error("stream create wants one NAME");
        return CLI_USAGE;
    }
    if (streamlets > LEAT_STREAMLETS_MAX || logs > LEAT_LOGS_MAX || copies > LEAT_COPIES_MAX ||
        min_copies > LEAT_COPIES_MAX || segment_bytes > LEAT_SEGMENT_BYTES_MAX) {
        cli_error("at most %d streamlets, %d logs, %d copies, %d bytes a segment",
                  LEAT_STREAMLETS_MAX, LEAT_LOGS_MAX, LEAT_COPIES_MAX, LEAT_SEGMENT_BYTES_MAX);
        return CLI_USAGE;
    }
    struct leat_stream_settings settings = {
        .streamlets = (uint32_t)streamlets,
        .logs = (uint32_t)logs,
        .copies = (uint32_t)copies,
        .min_copies = (uint32_t)min_copies,
        .segment_bytes_max = (uint32_t)segment_bytes,
        .retention_ms = (int64_t)retention_ms,
        .retention_bytes = (int64_t)retention_bytes,
    };
    if (cli_durability_parse(durability, &settings.durability)) return CLI_USAGE;
    struct cli_answer answer;
    if (cli_stream_create(argv[0], &settings, &answer)) return cli_refused(&answer);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    (void)leat_msg_read_array(&reader);
    uint32_t id = leat_msg_read_u32(&reader);
    leat_msg_settings_read(&reader, &settings);
    if (json)
        printf("{\"name\":\"%s\",\"id\":%u,\"streamlets\":%u,\"logs\":%u,\"durability\":\"%s\"}\n",
               argv[0], id, settings.streamlets, settings.logs,
               cli_durability_name(settings.durability));
    else
        printf("stream %s: %u streamlet%s of %u log%s, durability %s\n", argv[0],
               settings.streamlets, cli_s(settings.streamlets), settings.logs, cli_s(settings.logs),
               cli_durability_name(settings.durability));
    cli_answer_fini(&answer);
    return CLI_OK;
}

static char *cell(const char *format, ...) LEAT_PRINTF(1, 2);
static char *cell(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) abort();
    va_end(arguments);
    return text;
}

static void cells_free(char **cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(cells[i]);
    free(cells);
}

static char *ms_text(int64_t ms)
{
    if (ms <= 0) return cell("-");
    if (ms % 86400000 == 0) return cell("%" PRId64 " d", ms / 86400000);
    if (ms % 3600000 == 0) return cell("%" PRId64 " h", ms / 3600000);
    return cell("%" PRId64 " ms", ms);
}

static void settings_json(const struct leat_stream_settings *s)
{
    printf("\"streamlets\":%u,\"logs\":%u,\"copies\":%u,\"durability\":\"%s\","
           "\"segment_bytes\":%u,\"retention_ms\":%" PRId64 ",\"retention_bytes\":%" PRId64,
           s->streamlets, s->logs, s->copies, cli_durability_name(s->durability),
           s->segment_bytes_max, s->retention_ms > 0 ? s->retention_ms : -1,
           s->retention_bytes > 0 ? s->retention_bytes : -1);
}

static int list_print(struct leat_msg_reader *reader, bool json)
{
    (void)leat_msg_read_array(reader);
    leat_msg_skip_n(reader, 2);
    uint32_t count = leat_msg_read_array(reader);
    char **cells = calloc((size_t)count * LIST_COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    size_t rows = 0;
    if (json) printf("[");
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        struct leat_msg_stream stream;
        leat_msg_stream_read(reader, &stream);
        if (reader->failed || stream.code) continue;
        for (uint32_t l = 0; l < stream.log_count; l++) {
            struct leat_msg_log log;
            leat_msg_log_read(reader, &log);
        }
        const struct leat_stream_settings *s = &stream.settings;
        if (json) {
            printf("%s{\"name\":", rows++ ? "," : "");
            cli_json_string(stdout, stream.name.text, stream.name.bytes);
            printf(",\"id\":%u,", stream.id);
            settings_json(s);
            printf("}");
            continue;
        }
        char **row = &cells[rows++ * LIST_COLUMNS];
        char text[32];
        row[0] = cell("%.*s", (int)stream.name.bytes, stream.name.text);
        row[1] = cell("%u", stream.id);
        row[2] = cell("%u", s->streamlets);
        row[3] = cell("%u", s->logs);
        row[4] = cell("%s", cli_durability_name(s->durability));
        row[5] = ms_text(s->retention_ms);
        row[6] = s->retention_bytes > 0
                     ? cell("%s", cli_bytes_text((double)s->retention_bytes, text))
                     : cell("-");
    }
    static const char *const head[LIST_COLUMNS] = {"STREAM",     "ID",       "STREAMLETS", "LOGS",
                                                   "DURABILITY", "KEEP FOR", "KEEP BYTES"};
    if (json)
        printf("]\n");
    else if (rows)
        cli_table(head, LIST_COLUMNS, cells, rows, "lrrrlrr");
    else
        printf("no streams; make one with: leat stream create NAME\n");
    cells_free(cells, json ? 0 : rows * LIST_COLUMNS);
    if (!reader->failed) return CLI_OK;
    cli_error("the server's answer could not be read");
    return CLI_FAILED;
}

static int list(int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {CLI_COMMON, {"json", 0, CLI_FLAG, &json}};
    int n = cli_parse(argc, argv, options, 2);
    if (n != 0) {
        if (n > 0) cli_error("stream list takes no operands");
        return CLI_USAGE;
    }
    uint8_t bytes[16];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_array(&body, 0);
    leat_msg_write_bool(&body, false);
    struct cli_answer answer;
    if (cli_call(LEAT_KIND_METADATA, &body, &answer)) return cli_refused(&answer);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    int code = list_print(&reader, json);
    cli_answer_fini(&answer);
    return code;
}

static leat_err name_call(enum leat_kind kind, const char *name, struct cli_answer *answer)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strnlen(name, BODY_BYTES / 2));
    return cli_call(kind, &body, answer);
}

static void log_json(const struct leat_msg_log_info *log, bool first)
{
    static const char *const states[] = {"ok", "waiting", "damaged"};
    printf("%s{\"streamlet\":%u,\"log\":%u,\"owner\":%" PRIu64 ",\"epoch\":%u,\"lane\":%u,"
           "\"state\":\"%s\",\"first_offset\":%" PRIu64 ",\"end_offset\":%" PRIu64
           ",\"bytes\":%" PRIu64 ",\"first_segment\":%" PRIu64 ",\"segments\":%" PRIu64
           ",\"first_group\":%" PRIu64 ",\"groups\":%" PRIu64 ",\"producers\":%" PRIu64
           ",\"memory_bytes\":%" PRIu64 ",\"code\":\"%s\",\"text\":",
           first ? "" : ",", log->at.streamlet, log->at.log, log->at.owner, log->at.epoch,
           log->at.lane, states[log->state > 2 ? 2 : log->state], log->first_offset,
           log->acked_offset, log->bytes, log->first_segment, log->segments, log->first_group,
           log->groups, log->producers, log->memory_bytes, leat_err_name(log->code));
    cli_json_string(stdout, log->text.text ? log->text.text : "", log->text.bytes);
    printf("}");
}

static void log_cells(const struct leat_msg_log_info *log, uint32_t q, char **row)
{
    static const char *const states[] = {"ok", "waiting", "damaged"};
    char text[32];
    row[0] = cell("%u", log->at.streamlet * q + log->at.log);
    row[1] = cell("%u", log->at.streamlet);
    row[2] = cell("%u", log->at.log);
    row[3] = cell("%s", states[log->state > 2 ? 2 : log->state]);
    row[4] = cell("%" PRIu64, log->first_offset);
    row[5] = cell("%" PRIu64, log->acked_offset);
    row[6] = cell("%" PRIu64, log->acked_offset - log->first_offset);
    row[7] = cell("%s", cli_bytes_text((double)log->bytes, text));
    row[8] = cell("%" PRIu64, log->segments);
    row[9] = cell("%" PRIu64, log->groups);
    row[10] = cell("%" PRIu64, log->producers);
    row[11] = cell("%s", cli_bytes_text((double)log->memory_bytes, text));
}

static int describe_print(struct leat_msg_reader *reader, bool json)
{
    struct leat_stream_settings settings;
    (void)leat_msg_read_array(reader);
    struct leat_msg_string name = leat_msg_read_string(reader);
    uint32_t id = leat_msg_read_u32(reader);
    leat_msg_settings_read(reader, &settings);
    uint32_t count = leat_msg_read_array(reader);
    if (json) {
        printf("{\"name\":");
        cli_json_string(stdout, name.text ? name.text : "", name.bytes);
        printf(",\"id\":%u,", id);
        settings_json(&settings);
        printf(",\"log_list\":[");
    }
    char **cells = calloc((size_t)count * LOG_COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    size_t rows = 0;
    uint64_t records = 0, bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_log_info log;
        leat_msg_log_info_read(reader, &log);
        if (reader->failed) break;
        records += log.acked_offset - log.first_offset;
        bytes += log.bytes;
        if (json)
            log_json(&log, i == 0);
        else
            log_cells(&log, settings.logs, &cells[rows++ * LOG_COLUMNS]);
        if (!json && log.code)
            cli_error("streamlet %u log %u: %.*s", log.at.streamlet, log.at.log,
                      (int)log.text.bytes, log.text.text);
    }
    static const char *const head[LOG_COLUMNS] = {
        "PARTITION", "STREAMLET", "LOG",      "STATE",  "FIRST",     "END",
        "RECORDS",   "BYTES",     "SEGMENTS", "GROUPS", "PRODUCERS", "IN MEMORY"};
    if (json) {
        printf("]}\n");
    } else {
        char text[32];
        printf("stream %.*s (id %u): %u streamlet%s of %u log%s, durability %s, %" PRIu64
               " record%s, %s\n\n",
               (int)name.bytes, name.text ? name.text : "", id, settings.streamlets,
               cli_s(settings.streamlets), settings.logs, cli_s(settings.logs),
               cli_durability_name(settings.durability), records, cli_s(records),
               cli_bytes_text((double)bytes, text));
        cli_table(head, LOG_COLUMNS, cells, rows, "rrrlrrrrrrrr");
    }
    cells_free(cells, rows * LOG_COLUMNS);
    if (!reader->failed) return CLI_OK;
    cli_error("the server's answer could not be read");
    return CLI_FAILED;
}

static int describe(int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {CLI_COMMON, {"json", 0, CLI_FLAG, &json}};
    int n = cli_parse(argc, argv, options, 2);
    if (n != 1) {
        if (n >= 0) cli_error("stream describe wants one NAME");
        return CLI_USAGE;
    }
    struct cli_answer answer;
    if (name_call(LEAT_KIND_STREAM_DESCRIBE, argv[0], &answer)) return cli_refused(&answer);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    int code = describe_print(&reader, json);
    cli_answer_fini(&answer);
    return code;
}

static int delete_stream(int argc, char **argv)
{
    const struct cli_option options[] = {CLI_COMMON};
    int n = cli_parse(argc, argv, options, 1);
    if (n < 1) {
        if (n == 0) cli_error("stream delete wants a NAME");
        return CLI_USAGE;
    }
    int code = CLI_OK;
    for (int i = 0; i < n; i++) {
        struct cli_answer answer;
        if (name_call(LEAT_KIND_STREAM_DELETE, argv[i], &answer)) {
            int refused = cli_refused(&answer);
            if (refused > code) code = refused;
        }
        cli_answer_fini(&answer);
    }
    return code;
}

int leat_stream_main(int argc, char **argv)
{
    static const char *const verbs[] = {"create", "list", "describe", "delete"};
    static int (*const runs[])(int, char **) = {create, list, describe, delete_stream};
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    if (argc < 1 || argv[0][0] == '-') {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    for (size_t i = 0; i < 4; i++)
        if (strcmp(argv[0], verbs[i]) == 0) return runs[i](argc - 1, argv + 1);
    const char *nearest = cli_nearest(argv[0], verbs, 4);
    if (nearest)
        cli_error("no 'stream %s'; did you mean 'stream %s'?", argv[0], nearest);
    else
        cli_error("no 'stream %s'; see leat stream --help", argv[0]);
    return CLI_USAGE;
}
