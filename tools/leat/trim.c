/* SPDX-License-Identifier: Apache-2.0 */
/* leat stream trim: records before an offset are given up. */
#include "tools/leat/cli.h"
#include "tools/leat/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A number alone, or "end". */
static bool before_parse(const char *text, uint64_t *out)
{
    char *end = NULL;
    if (strcmp(text, "end") == 0) {
        *out = UINT64_MAX;
        return true;
    }
    if (text[0] < '0' || text[0] > '9') return false;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out != UINT64_MAX;
}

int leat_stream_trim(int argc, char **argv)
{
    uint64_t streamlet = CLI_NONE, log = CLI_NONE;
    const char *before = NULL;
    const struct cli_option options[] = {
        CLI_COMMON,
        {"streamlet", 0, CLI_U64, &streamlet},
        {"log", 0, CLI_U64, &log},
        {"before", 0, CLI_TEXT, &before},
    };
    struct leat_msg_trim trim = {0};
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n < 0) return CLI_USAGE;
    if (n != 1 || streamlet == CLI_NONE || log == CLI_NONE || !before) {
        cli_error("stream trim wants one NAME, --streamlet S, --log Q, and --before OFFSET or end");
        return CLI_USAGE;
    }
    if (!cli_in_range("streamlet", streamlet, 0, LEAT_STREAMLETS_MAX - 1, "") ||
        !cli_in_range("log", log, 0, LEAT_LOGS_MAX - 1, ""))
        return CLI_USAGE;
    if (!before_parse(before, &trim.before)) {
        cli_error("--before wants an offset or end, not '%s'", before);
        return CLI_USAGE;
    }
    trim.stream = (struct leat_msg_string){argv[0], (uint32_t)strnlen(argv[0], 400)};
    trim.streamlet = (uint32_t)streamlet;
    trim.log = (uint32_t)log;
    uint8_t bytes[512];
    struct leat_msg_writer body;
    struct cli_answer answer;
    struct leat_msg_reader reader;
    struct leat_msg_trimmed trimmed;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_trim_write(&body, &trim);
    if (cli_call_patiently(LEAT_KIND_STREAM_TRIM, &body, &answer)) return cli_refused(&answer);
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    leat_msg_trimmed_read(&reader, &trimmed);
    cli_answer_fini(&answer);
    printf("stream %s streamlet %" PRIu64 " log %" PRIu64 " begins at offset %" PRIu64 "\n",
           argv[0], streamlet, log, trimmed.first_offset);
    return CLI_OK;
}
