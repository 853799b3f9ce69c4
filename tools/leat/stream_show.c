/* SPDX-License-Identifier: Apache-2.0 */
/* leat stream list, leat stream describe */
#include "tools/leat/cluster.h"
#include "tools/leat/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BODY_BYTES = 1024,
    LIST_COLUMNS = 8,
    NODES_MAX = 256,
    NODE_NAME_BYTES = 64,
    SEGMENTS_LOGS_MAX = 64 /* of a stream whose segments are shown without an option */
};

/* ---- list ---- */

static char *ms_text(int64_t ms)
{
    if (ms <= 0) return cli_cell("-");
    if (ms % 86400000 == 0) return cli_cell("%" PRId64 " d", ms / 86400000);
    if (ms % 3600000 == 0) return cli_cell("%" PRId64 " h", ms / 3600000);
    if (ms % 60000 == 0) return cli_cell("%" PRId64 " min", ms / 60000);
    if (ms % 1000 == 0) return cli_cell("%" PRId64 " s", ms / 1000);
    return cli_cell("%" PRId64 " ms", ms);
}

static void settings_json(const struct leat_stream_settings *s)
{
    printf("\"streamlets\":%u,\"logs\":%u,\"copies\":%u,\"min_copies\":%u,"
           "\"durability\":\"%s\",\"segment_bytes\":%u,\"retention_ms\":%" PRId64
           ",\"retention_bytes\":%" PRId64 ",\"max_batch_bytes\":%u,\"append_time\":%s"
           ",\"validate\":\"%s\"",
           s->streamlets, s->logs, s->copies, s->min_copies, cli_durability_name(s->durability),
           s->segment_bytes_max, s->retention_ms > 0 ? s->retention_ms : -1,
           s->retention_bytes > 0 ? s->retention_bytes : -1, s->batch_bytes_max,
           s->append_time ? "true" : "false", s->validate == LEAT_VALIDATE_CRC ? "crc" : "full");
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
        row[0] = cli_cell("%.*s", (int)stream.name.bytes, stream.name.text);
        row[1] = cli_cell("%u", stream.id);
        row[2] = cli_cell("%u", s->streamlets);
        row[3] = cli_cell("%u", s->logs);
        row[4] = cli_cell("%u", s->copies);
        row[5] = cli_cell("%s", cli_durability_name(s->durability));
        row[6] = ms_text(s->retention_ms);
        row[7] = s->retention_bytes > 0
                     ? cli_cell("%s", cli_bytes_text((double)s->retention_bytes, text))
                     : cli_cell("-");
    }
    static const char *const head[LIST_COLUMNS] = {
        "STREAM", "ID", "STREAMLETS", "LOGS", "COPIES", "DURABILITY", "KEEP FOR", "KEEP BYTES"};
    if (json)
        printf("]\n");
    else if (rows)
        cli_table(head, LIST_COLUMNS, cells, rows, "lrrrrlrr");
    else
        printf("no streams; make one with: leat stream create NAME\n");
    cli_cells_free(cells, json ? 0 : rows * LIST_COLUMNS);
    if (!reader->failed) return CLI_OK;
    cli_error("the server's answer could not be read");
    return CLI_FAILED;
}

int leat_stream_list(int argc, char **argv)
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

/* ---- owners ---- */

/* The owners' names, by incarnation. */
struct owners {
    uint64_t incarnations[NODES_MAX];
    char names[NODES_MAX][NODE_NAME_BYTES];
    uint32_t count;
};

static const char *owner_name(const struct owners *owners, uint64_t incarnation)
{
    for (uint32_t i = 0; i < owners->count; i++)
        if (owners->incarnations[i] == incarnation) return owners->names[i];
    return "?";
}

static void owners_read(struct owners *owners, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        uint32_t fields = leat_msg_read_array(reader);
        uint64_t incarnation = leat_msg_read_u64(reader);
        struct leat_msg_string name = leat_msg_read_string(reader);
        leat_msg_skip_n(reader, fields < 2 ? 0 : fields - 2);
        if (reader->failed || owners->count == NODES_MAX) break;
        owners->incarnations[owners->count] = incarnation;
        snprintf(owners->names[owners->count++], NODE_NAME_BYTES, "%.*s",
                 (int)(name.bytes < NODE_NAME_BYTES ? name.bytes : NODE_NAME_BYTES - 1),
                 name.bytes ? name.text : "");
    }
}

/* ---- where the copies lie ---- */

struct copies_print {
    bool json, first;
    const char *owner;
    /* People: a run of segments whose copies lie alike. */
    uint64_t from, to;
    char where[512];
    bool any;
};

static void run_flush(struct copies_print *print)
{
    if (!print->any) return;
    if (print->from == print->to)
        printf("    segment %" PRIu64 ": %s\n", print->from, print->where);
    else
        printf("    segments %" PRIu64 " to %" PRIu64 ": %s\n", print->from, print->to,
               print->where);
    print->any = false;
}

static void segment_words(struct copies_print *print, struct leat_msg_reader *reader,
                          const struct leat_msg_segment *segment)
{
    char where[sizeof print->where];
    size_t used = (size_t)snprintf(where, sizeof where, "%s", print->owner);
    for (uint32_t i = 0; i < segment->copy_count && !reader->failed; i++) {
        struct leat_msg_segment_copy copy;
        leat_msg_segment_copy_read(reader, &copy);
        if (reader->failed || used >= sizeof where) continue;
        used += (size_t)snprintf(where + used, sizeof where - used, ", %.*s%s",
                                 (int)copy.node.bytes, copy.node.bytes ? copy.node.text : "",
                                 copy.complete ? "" : " (not whole yet)");
    }
    if (segment->copy_count < segment->wanted && used < sizeof where)
        used += (size_t)snprintf(where + used, sizeof where - used, "; %u missing",
                                 segment->wanted - segment->copy_count);
    if (segment->misplaced && used < sizeof where)
        snprintf(where + used, sizeof where - used, "; two on one host or rack");
    if (print->any && print->to + 1 == segment->id && strcmp(where, print->where) == 0) {
        print->to = segment->id;
        return;
    }
    run_flush(print);
    print->any = true;
    print->from = print->to = segment->id;
    memcpy(print->where, where, sizeof where);
}

static void segment_json(struct copies_print *print, struct leat_msg_reader *reader,
                         const struct leat_msg_segment *segment)
{
    printf("%s{\"segment\":%" PRIu64 ",\"closed\":%s,\"misplaced\":%s,\"missing\":%u,\"copies\":[",
           print->first ? "" : ",", segment->id, segment->closed ? "true" : "false",
           segment->misplaced ? "true" : "false",
           segment->wanted > segment->copy_count ? segment->wanted - segment->copy_count : 0);
    print->first = false;
    for (uint32_t i = 0; i < segment->copy_count && !reader->failed; i++) {
        struct leat_msg_segment_copy copy;
        leat_msg_segment_copy_read(reader, &copy);
        if (reader->failed) break;
        printf("%s{\"node\":", i ? "," : "");
        cli_json_string(stdout, copy.node.bytes ? copy.node.text : "", copy.node.bytes);
        printf(",\"complete\":%s,\"closed\":%s,\"hibernated\":%s,\"bytes\":%u}",
               copy.complete ? "true" : "false", copy.closed ? "true" : "false",
               copy.hibernated ? "true" : "false", copy.bytes);
    }
    printf("]}");
}

/* One answer's worth; *from: where the next begins, UINT64_MAX: that was all. */
static leat_err segments_page(const char *name, const struct leat_msg_log_info *log, uint64_t *from,
                              struct copies_print *print, struct leat_error *error)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    struct cli_answer answer;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 4);
    leat_msg_write_string(&body, name, strnlen(name, BODY_BYTES / 2));
    leat_msg_write_u64(&body, log->at.streamlet);
    leat_msg_write_u64(&body, log->at.log);
    leat_msg_write_u64(&body, *from);
    leat_err rc = cli_call(LEAT_KIND_SEGMENTS, &body, &answer);
    *error = answer.error;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    (void)leat_msg_read_array(&reader);
    uint32_t count = rc ? 0 : leat_msg_read_array(&reader);
    *from = UINT64_MAX;
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        struct leat_msg_segment segment;
        leat_msg_segment_read(&reader, &segment);
        if (reader.failed) break;
        if (print->json)
            segment_json(print, &reader, &segment);
        else
            segment_words(print, &reader, &segment);
        *from = segment.id + 1;
    }
    if (rc || reader.failed || !leat_msg_read_bool(&reader)) *from = UINT64_MAX;
    cli_answer_fini(&answer);
    return rc;
}

static void segments_print(const char *name, const struct leat_msg_log_info *log,
                           const struct owners *owners, bool json)
{
    struct copies_print print = {
        .json = json, .first = true, .owner = owner_name(owners, log->at.owner)};
    struct leat_error error;
    uint64_t from = 0;
    if (!json)
        printf("  streamlet %u log %u: %u of %u copies%s\n", log->at.streamlet, log->at.log,
               log->copies_now, log->copies,
               log->below_min   ? ", fewer than appends need: they are refused"
               : log->suspended ? ", appends wait until a lost one is replaced"
                                : "");
    while (from != UINT64_MAX) {
        if (segments_page(name, log, &from, &print, &error) == LEAT_OK) continue;
        cli_error("streamlet %u log %u: %s", log->at.streamlet, log->at.log, error.text);
        break;
    }
    run_flush(&print);
}

/* ---- describe ---- */

static void log_json(const struct leat_msg_log_info *log, const struct owners *owners, bool first)
{
    printf("%s{\"streamlet\":%u,\"log\":%u,\"owner\":%" PRIu64 ",\"epoch\":%u,\"lane\":%u,"
           "\"state\":\"%s\",\"takes_appends\":%s,\"first_offset\":%" PRIu64
           ",\"end_offset\":%" PRIu64 ",\"offsets_lost\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"first_segment\":%" PRIu64 ",\"segments\":%" PRIu64 ",\"end_segment\":%" PRIu64
           ",\"first_group\":%" PRIu64 ",\"groups\":%" PRIu64 ",\"producers\":%" PRIu64
           ",\"memory_bytes\":%" PRIu64 ",\"code\":\"%s\",\"text\":",
           first ? "" : ",", log->at.streamlet, log->at.log, log->at.owner, log->at.epoch,
           log->at.lane, leat_log_told_state(log),
           leat_log_told_takes_appends(log) ? "true" : "false", log->first_offset,
           log->acked_offset, log->offsets_lost, log->bytes, log->first_segment, log->segments,
           log->end_segment, log->first_group, log->groups, log->producers, log->memory_bytes,
           leat_err_name(log->code));
    cli_json_string(stdout, log->text.text ? log->text.text : "", log->text.bytes);
    const char *owner = owner_name(owners, log->at.owner);
    printf(",\"node\":");
    cli_json_string(stdout, owner, strlen(owner));
    printf(
        ",\"copies\":%u,\"min_copies\":%u,\"copies_now\":%u,\"segments_under_replicated\":%" PRIu64
        ",\"suspended\":%s,\"below_min_copies\":%s,\"passed_over\":",
        log->copies, log->copies_min, log->copies_now, log->segments_lacking,
        log->suspended ? "true" : "false", log->below_min ? "true" : "false");
    if (log->passed_bytes > 0)
        printf("{\"bytes\":%" PRIu64 ",\"segments\":%" PRIu64 ",\"last_segment\":%" PRIu64
               ",\"end_offset\":%" PRIu64 "}",
               log->passed_bytes, log->passed_segments, log->passed_segment, log->passed_offset);
    else
        printf("null");
}

/* First and last, as they are typed in an address: "3" or "3-20". */
static char *span_text(uint64_t first, uint64_t end)
{
    if (end <= first) return cli_cell("-");
    if (end == first + 1) return cli_cell("%" PRIu64, first);
    return cli_cell("%" PRIu64 "-%" PRIu64, first, end - 1);
}

static uint64_t records_of(const struct leat_msg_log_info *log)
{
    uint64_t offsets = log->acked_offset - log->first_offset;
    return offsets > log->offsets_lost ? offsets - log->offsets_lost : 0;
}

/* Every log wants one copy at least, so its owner has told nothing when none is wanted. */
static bool is_told(const struct leat_msg_log_info *log)
{
    return log->copies > 0;
}

static void cells_not_told(char **row, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        row[i] = cli_cell("?");
}

enum { PLACE_COLUMNS = 9, STORE_COLUMNS = 7 };

/* The owner of a log, and its readable offsets. */
static void place_cells(const struct leat_msg_log_info *log, const struct owners *owners,
                        uint32_t q, char **row)
{
    row[0] = cli_cell("%u", log->at.streamlet * q + log->at.log);
    row[1] = cli_cell("%u", log->at.streamlet);
    row[2] = cli_cell("%u", log->at.log);
    row[3] = cli_cell("%s", owner_name(owners, log->at.owner));
    row[4] = cli_cell("%s", leat_log_told_state(log));
    if (!is_told(log)) {
        cells_not_told(row, 5, PLACE_COLUMNS);
        return;
    }
    row[5] = cli_cell("%u/%u", log->copies_now, log->copies);
    row[6] = cli_cell("%" PRIu64, log->first_offset);
    row[7] = cli_cell("%" PRIu64, log->acked_offset);
    row[8] = cli_cell("%" PRIu64, records_of(log));
}

/* How the log is stored. */
static void store_cells(const struct leat_msg_log_info *log, char **row)
{
    char text[32];
    row[0] = cli_cell("%u", log->at.streamlet);
    row[1] = cli_cell("%u", log->at.log);
    if (!is_told(log)) {
        cells_not_told(row, 2, STORE_COLUMNS);
        return;
    }
    row[2] = cli_cell("%s", cli_bytes_text((double)log->bytes, text));
    row[3] = span_text(log->first_segment, log->end_segment);
    row[4] = span_text(log->first_group, log->first_group + log->groups);
    row[5] = cli_cell("%" PRIu64, log->producers);
    row[6] = cli_cell("%s", cli_bytes_text((double)log->memory_bytes, text));
}

struct description {
    struct leat_msg_string name;
    uint32_t id, count;
    struct leat_stream_settings settings;
    struct leat_msg_log_info *logs; /* texts are views of the answer */
    struct owners owners;
};

static bool description_read(struct description *told, struct leat_msg_reader *reader)
{
    uint32_t fields = leat_msg_read_array(reader);
    told->name = leat_msg_read_string(reader);
    told->id = leat_msg_read_u32(reader);
    leat_msg_settings_read(reader, &told->settings);
    told->count = leat_msg_read_array(reader);
    if (reader->failed) return false;
    told->logs = calloc((size_t)told->count + 1, sizeof *told->logs);
    if (!told->logs) abort();
    for (uint32_t i = 0; i < told->count && !reader->failed; i++)
        leat_msg_log_info_read(reader, &told->logs[i]);
    if (fields >= 5) owners_read(&told->owners, reader);
    return !reader->failed;
}

static void describe_json(const struct description *told, const char *name, bool segments)
{
    printf("{\"name\":");
    cli_json_string(stdout, told->name.text ? told->name.text : "", told->name.bytes);
    printf(",\"id\":%u,", told->id);
    settings_json(&told->settings);
    printf(",\"log_list\":[");
    for (uint32_t i = 0; i < told->count; i++) {
        const struct leat_msg_log_info *log = &told->logs[i];
        log_json(log, &told->owners, i == 0);
        if (segments && log->copies > 1) {
            printf(",\"segment_list\":[");
            segments_print(name, log, &told->owners, true);
            printf("]");
        }
        printf("}");
    }
    printf("]}\n");
}

/* Two tables, for one would be wider than terminals are. */
static void logs_words(const struct description *told)
{
    static const char *const place[PLACE_COLUMNS] = {
        "PARTITION", "STREAMLET", "LOG", "NODE", "STATE", "COPIES", "FIRST", "END", "RECORDS"};
    static const char *const store[STORE_COLUMNS] = {
        "STREAMLET", "LOG", "BYTES", "SEGMENTS", "GROUPS", "PRODUCERS", "IN MEMORY"};
    char **cells = calloc((size_t)told->count * PLACE_COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    for (uint32_t i = 0; i < told->count; i++)
        place_cells(&told->logs[i], &told->owners, told->settings.logs,
                    &cells[(size_t)i * PLACE_COLUMNS]);
    cli_table(place, PLACE_COLUMNS, cells, told->count, "rrrllrrrr");
    cli_cells_free(cells, (size_t)told->count * PLACE_COLUMNS);
    putchar('\n');
    cells = calloc((size_t)told->count * STORE_COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    for (uint32_t i = 0; i < told->count; i++)
        store_cells(&told->logs[i], &cells[(size_t)i * STORE_COLUMNS]);
    cli_table(store, STORE_COLUMNS, cells, told->count, "rrrrrrr");
    cli_cells_free(cells, (size_t)told->count * STORE_COLUMNS);
}

/* The stream's present settings. */
static void settings_words(const struct leat_stream_settings *s)
{
    char segment[32], batch[32], bytes[32];
    printf("%u cop%s", s->copies, s->copies == 1 ? "y" : "ies");
    if (s->copies > 1) printf(" (appends need %u)", s->min_copies);
    printf(", segments of up to %s, batches of up to %s%s%s, ",
           cli_bytes_text((double)s->segment_bytes_max, segment),
           cli_bytes_text((double)s->batch_bytes_max, batch),
           s->append_time ? ", times of append" : "",
           s->validate == LEAT_VALIDATE_CRC
               ? ", validate=crc (of compressed batches only the checksum is checked)"
               : "");
    if (s->retention_ms <= 0 && s->retention_bytes <= 0) {
        printf("everything is kept\n\n");
        return;
    }
    char *span = ms_text(s->retention_ms);
    printf("kept: %s%s%s%s\n\n", s->retention_ms > 0 ? span : "",
           s->retention_ms > 0 && s->retention_bytes > 0 ? ", " : "",
           s->retention_bytes > 0 ? cli_bytes_text((double)s->retention_bytes, bytes) : "",
           s->retention_bytes > 0 ? " of each log" : "");
    free(span);
}

static void passed_words(const struct description *told)
{
    for (uint32_t i = 0; i < told->count; i++) {
        const struct leat_msg_log_info *log = &told->logs[i];
        struct leat_msg_passed passed = {.bytes = log->passed_bytes,
                                         .segments = log->passed_segments,
                                         .segment = log->passed_segment,
                                         .offset = log->passed_offset};
        if (passed.bytes == 0) continue;
        printf("note: streamlet %u log %u: ", log->at.streamlet, log->at.log);
        cli_passed_print(&passed);
    }
}

static void describe_words(const struct description *told, const char *name, bool segments)
{
    uint64_t records = 0, bytes = 0;
    bool replicated = false, all_told = true;
    for (uint32_t i = 0; i < told->count; i++) {
        const struct leat_msg_log_info *log = &told->logs[i];
        all_told = all_told && is_told(log);
        records += records_of(log);
        bytes += log->bytes;
        replicated = replicated || log->copies > 1;
        if (log->code)
            cli_error("streamlet %u log %u: %.*s", log->at.streamlet, log->at.log,
                      (int)log->text.bytes, log->text.bytes ? log->text.text : "");
    }
    char text[32];
    printf("stream %.*s (id %u): %u streamlet%s of %u log%s, durability %s, %s%" PRIu64
           " record%s, %s\n",
           (int)told->name.bytes, told->name.text ? told->name.text : "", told->id,
           told->settings.streamlets, cli_s(told->settings.streamlets), told->settings.logs,
           cli_s(told->settings.logs), cli_durability_name(told->settings.durability),
           all_told ? "" : "at least ", records, cli_s(records),
           cli_bytes_text((double)bytes, text));
    settings_words(&told->settings);
    logs_words(told);
    passed_words(told);
    if (!segments || !replicated) return;
    printf("\nwhere the copies lie, the owner's first:\n");
    for (uint32_t i = 0; i < told->count; i++)
        if (told->logs[i].copies > 1) segments_print(name, &told->logs[i], &told->owners, false);
}

int leat_stream_describe(int argc, char **argv)
{
    bool json = false, segments = false;
    const struct cli_option options[] = {
        CLI_COMMON, {"json", 0, CLI_FLAG, &json}, {"segments", 0, CLI_FLAG, &segments}};
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n != 1) {
        if (n >= 0) cli_error("stream describe wants one NAME");
        return CLI_USAGE;
    }
    struct cli_answer answer;
    if (cli_name_call(LEAT_KIND_STREAM_DESCRIBE, argv[0], &answer)) return cli_refused(&answer);
    static struct description told;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    bool whole = description_read(&told, &reader);
    if (!whole)
        cli_error("the server's answer could not be read");
    else if (json)
        describe_json(&told, argv[0], segments || told.count <= SEGMENTS_LOGS_MAX);
    else
        describe_words(&told, argv[0], segments || told.count <= SEGMENTS_LOGS_MAX);
    free(told.logs);
    cli_answer_fini(&answer);
    return whole ? CLI_OK : CLI_FAILED;
}
