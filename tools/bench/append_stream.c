/* SPDX-License-Identifier: Apache-2.0 */
/* The stream that leat bench append writes to: made if missing, with the requested settings. */
#include "tools/bench/append.h"

#include "base/assert.h"

#include <inttypes.h>

static int stream_delete(const char *name)
{
    struct cli_answer answer;
    leat_err rc = cli_name_call(LEAT_KIND_STREAM_DELETE, name, &answer);
    if (rc && rc != LEAT_E_UNKNOWN_STREAM) return cli_refused(&answer);
    cli_answer_fini(&answer);
    return CLI_OK;
}

/* Does the stream differ from the requested settings? The report must describe the measured stream. */
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
    o->existed = answer.rc == LEAT_E_STREAM_EXISTS;
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

int append_stream_prepare(struct append_options *o)
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
    if (code == CLI_OK && named && o->existed && !stream_differs(o, asked))
        cli_error("stream '%s' exists: what is measured is appended to what is there (--fresh "
                  "deletes that first)",
                  o->stream);
    if (code || !stream_differs(o, asked)) return code;
    char text[CLI_SETTINGS_BYTES];
    cli_error("stream '%s' exists with %s, which is not what was asked for; name another one, or "
              "let --fresh delete it first",
              o->stream, cli_settings_text(&o->has, text));
    return CLI_FAILED;
}
