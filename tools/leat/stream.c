/* SPDX-License-Identifier: Apache-2.0 */
/* leat stream: which verb; create and delete. list and describe: stream_show.c */
#include "tools/leat/cli.h"
#include "tools/leat/commands.h"

#include "base/nearest.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "Usage: leat stream create NAME [OPTION...]\n"
    "       leat stream list [--json]\n"
    "       leat stream describe NAME [--json] [--segments]\n"
    "       leat stream delete NAME...\n"
    "       leat stream trim NAME --streamlet S --log Q --before OFFSET|end\n"
    "       leat stream rebalance NAME\n"
    "\n"
    "Each command prints its own help: leat stream create --help.\n";

static const char create_help[] =
    "Usage: leat stream create NAME [OPTION...]\n"
    "\n"
    "  --streamlets M          streamlets, the units of placement (default 1)\n"
    "  --logs Q                logs per streamlet; never changes (default: the server's cores)\n"
    "  --copies N              copies of each segment, the owner's included (default 1)\n"
    "  --min-copies N          appends are refused while fewer nodes can take copies (default:\n"
    "                          more than half of the copies)\n"
    "  --durability LEVEL      memory: acked when in memory, flushed later; disk: acked when\n"
    "                          flushed (default: memory with 3 copies or more if nodes of 3\n"
    "                          hosts or more are up, else disk)\n"
    "  --retention-time TIME   delete segments older than this: 12h, 7d (default: never)\n"
    "  --retention-bytes SIZE  keep at least so much of each log: 512M, 10G (default: all)\n"
    "  --segment-bytes SIZE    largest segment, a power of two from 16K to 8M (default 8M)\n"
    "  --max-batch-bytes SIZE  refuse larger batches, 128 to 2M (default 2M)\n"
    "  --append-time           give records the time of their append (default: the time that\n"
    "                          the producer gave)\n"
    "  --validate WHAT         check of compressed batches: full, each record (default); crc,\n"
    "                          the checksum only\n"
    "  --json                  print JSON\n"
    "  -b, --brokers HOST:PORT,...\n";

static const char list_help[] = "Usage: leat stream list [--json]\n"
                                "\n"
                                "  --json  print JSON\n"
                                "  -b, --brokers HOST:PORT,...\n";

static const char describe_help[] =
    "Usage: leat stream describe NAME [--json] [--segments]\n"
    "\n"
    "Prints the settings of a stream, and the owner, state, offsets, bytes, segments and\n"
    "groups of each log.\n"
    "\n"
    "  --segments  print where the copies of each segment are (default: if the stream has\n"
    "              several copies and at most 64 logs)\n"
    "  --json      print JSON\n"
    "  -b, --brokers HOST:PORT,...\n";

static const char delete_help[] =
    "Usage: leat stream delete NAME...\n"
    "\n"
    "Deletes streams with all their records, at once and without a question.\n"
    "\n"
    "  -b, --brokers HOST:PORT,...\n";

static const char trim_help[] =
    "Usage: leat stream trim NAME --streamlet S --log Q --before OFFSET|end\n"
    "\n"
    "Deletes the records of a log before an offset: the log then begins there. The server\n"
    "frees whole segments.\n"
    "\n"
    "  --streamlet S, --log Q   the log\n"
    "  --before OFFSET|end      the first offset that stays; end: delete all acked records\n"
    "  -b, --brokers HOST:PORT,...\n";

static const char rebalance_help[] =
    "Usage: leat stream rebalance NAME\n"
    "\n"
    "Moves streamlets of a stream, one after the other, until all nodes that are up have the\n"
    "same number of them. Producers and consumers go on.\n"
    "\n"
    "  -b, --brokers HOST:PORT,...\n";

/* The settings of the created stream. */
static void created_say(const char *name, const struct cli_answer *answer, bool json)
{
    char text[CLI_SETTINGS_BYTES];
    struct leat_stream_settings settings;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->bytes, answer->count);
    (void)leat_msg_read_array(&reader);
    uint32_t id = leat_msg_read_u32(&reader);
    leat_msg_settings_read(&reader, &settings);
    if (json)
        printf("{\"name\":\"%s\",\"id\":%u,\"streamlets\":%u,\"logs\":%u,\"copies\":%u,"
               "\"min_copies\":%u,\"durability\":\"%s\"}\n",
               name, id, settings.streamlets, settings.logs, settings.copies, settings.min_copies,
               cli_durability_name(settings.durability));
    else
        printf("stream %s: %s\n", name, cli_settings_text(&settings, text));
}

static int create(int argc, char **argv)
{
    uint64_t copies = CLI_NONE, min_copies = CLI_NONE, streamlets = CLI_NONE, logs = CLI_NONE;
    uint64_t retention_ms = CLI_NONE, retention_bytes = CLI_NONE, segment_bytes = CLI_NONE;
    uint64_t batch_bytes = CLI_NONE;
    const char *durability = NULL, *validate = "full";
    bool json = false, append_time = false;
    const struct cli_option options[] = {
        CLI_COMMON,
        {"streamlets", 0, CLI_U64, &streamlets},
        {"logs", 0, CLI_U64, &logs},
        {"copies", 0, CLI_U64, &copies},
        {"min-copies", 0, CLI_U64, &min_copies},
        {"durability", 0, CLI_TEXT, &durability},
        {"retention-time", 0, CLI_SPAN, &retention_ms},
        {"retention-bytes", 0, CLI_BYTES, &retention_bytes},
        {"segment-bytes", 0, CLI_BYTES, &segment_bytes},
        {"max-batch-bytes", 0, CLI_BYTES, &batch_bytes},
        {"append-time", 0, CLI_FLAG, &append_time},
        {"validate", 0, CLI_TEXT, &validate},
        {"json", 0, CLI_FLAG, &json},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n < 0) return CLI_USAGE;
    if (n != 1) {
        cli_error("stream create wants one NAME");
        return CLI_USAGE;
    }
    /* The server checks these values itself. */
    if (!cli_number("streamlets", &streamlets, 1, LEAT_STREAMLETS_MAX, 0) ||
        !cli_number("logs", &logs, 1, LEAT_LOGS_MAX, 0) ||
        !cli_number("copies", &copies, 1, LEAT_COPIES_MAX, 0) ||
        !cli_number("min-copies", &min_copies, 1, LEAT_COPIES_MAX, 0) ||
        !cli_number("segment-bytes", &segment_bytes, LEAT_SEGMENT_BYTES_MIN, LEAT_SEGMENT_BYTES_MAX,
                    0) ||
        !cli_number("max-batch-bytes", &batch_bytes, LEAT_BATCH_BYTES_LIMIT_MIN,
                    LEAT_BATCH_BYTES_MAX, 0))
        return CLI_USAGE;
    if (retention_ms == 0 || retention_bytes == 0) {
        cli_error("--retention-%s 0 would keep nothing; without it everything is kept",
                  retention_ms == 0 ? "time" : "bytes");
        return CLI_USAGE;
    }
    if (retention_ms == CLI_NONE) retention_ms = 0;
    if (retention_bytes == CLI_NONE) retention_bytes = 0;
    struct leat_stream_settings settings = {
        .streamlets = (uint32_t)streamlets,
        .logs = (uint32_t)logs,
        .copies = (uint32_t)copies,
        .min_copies = (uint32_t)min_copies,
        .segment_bytes_max = (uint32_t)segment_bytes,
        .retention_ms = (int64_t)retention_ms,
        .retention_bytes = (int64_t)retention_bytes,
        .batch_bytes_max = (uint32_t)batch_bytes,
        .append_time = append_time,
    };
    if (cli_durability_parse(durability, &settings.durability)) return CLI_USAGE;
    if (strcmp(validate, "crc") == 0) {
        settings.validate = LEAT_VALIDATE_CRC;
    } else if (strcmp(validate, "full") != 0) {
        cli_error("--validate is full or crc, not '%.40s'", validate);
        return CLI_USAGE;
    }
    struct cli_answer answer;
    if (cli_stream_create(argv[0], &settings, &answer)) return cli_refused(&answer);
    created_say(argv[0], &answer, json);
    cli_answer_fini(&answer);
    return CLI_OK;
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
        if (cli_name_call(LEAT_KIND_STREAM_DELETE, argv[i], &answer)) {
            int refused = cli_refused(&answer);
            if (refused > code) code = refused;
        } else {
            printf("stream %s is deleted\n", argv[i]);
        }
        cli_answer_fini(&answer);
    }
    return code;
}

int leat_stream_main(int argc, char **argv)
{
    static const struct {
        const char *name, *help;
        int (*run)(int argc, char **argv);
    } verbs[] = {
        {"create", create_help, create},
        {"list", list_help, leat_stream_list},
        {"describe", describe_help, leat_stream_describe},
        {"delete", delete_help, delete_stream},
        {"rebalance", rebalance_help, leat_stream_rebalance},
        {"trim", trim_help, leat_stream_trim},
    };
    enum { VERBS = sizeof verbs / sizeof *verbs };
    const char *names[VERBS];
    for (size_t i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
        if (argc < 1 || strcmp(argv[0], names[i]) != 0) continue;
        return cli_wants_help(argc, argv, verbs[i].help) ? CLI_OK
                                                         : verbs[i].run(argc - 1, argv + 1);
    }
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    if (argc < 1 || argv[0][0] == '-') {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    const char *nearest = leat_nearest_word(argv[0], names, VERBS);
    if (nearest)
        cli_error("no 'stream %s'; did you mean 'stream %s'?", argv[0], nearest);
    else
        cli_error("no 'stream %s'; see leat stream --help", argv[0]);
    return CLI_USAGE;
}
