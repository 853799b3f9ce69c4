/* SPDX-License-Identifier: Apache-2.0 */
/* A stream is made: for leat stream create and for the benchmarks. */
#include "tools/leat/cli.h"

#include <stdlib.h>
#include <string.h>

enum { BODY_BYTES = 1024 };

const char *cli_durability_name(enum leat_durability level)
{
    return level == LEAT_DURABILITY_MEMORY ? "memory"
           : level == LEAT_DURABILITY_DISK ? "disk"
                                           : "default";
}

const char *cli_settings_text(const struct leat_stream_settings *settings,
                              char text[CLI_SETTINGS_BYTES])
{
    snprintf(text, CLI_SETTINGS_BYTES, "%u streamlet%s of %u log%s, %u cop%s, durability %s",
             settings->streamlets, cli_s(settings->streamlets), settings->logs,
             cli_s(settings->logs), settings->copies, settings->copies == 1 ? "y" : "ies",
             cli_durability_name(settings->durability));
    return text;
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

/* The first asked node may have died meanwhile, so it is unknown whether the create took effect. A stream of this
 * name exists now: if it has the wanted settings, it counts as the requested stream. The answer is like a create's. */
static bool made_before(const char *name, const struct leat_stream_settings *wanted,
                        struct cli_answer *out_answer)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    struct leat_msg_reader reader;
    struct leat_msg_stream stream = {.code = LEAT_E_INVALID};
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strlen(name));
    leat_msg_write_bool(&body, false);
    if (cli_call_patiently(LEAT_KIND_METADATA, &body, out_answer)) return false;
    leat_msg_reader_init(&reader, out_answer->bytes, out_answer->count);
    (void)leat_msg_read_array(&reader);
    leat_msg_skip_n(&reader, 2);
    (void)leat_msg_read_array(&reader);
    leat_msg_stream_read(&reader, &stream);
    const struct leat_stream_settings *is = &stream.settings;
    bool same =
        !reader.failed && stream.code == LEAT_OK &&
        (!wanted->streamlets || wanted->streamlets == is->streamlets) &&
        (!wanted->logs || wanted->logs == is->logs) &&
        (!wanted->copies || wanted->copies == is->copies) &&
        (!wanted->min_copies || wanted->min_copies == is->min_copies) &&
        (!wanted->segment_bytes_max || wanted->segment_bytes_max == is->segment_bytes_max) &&
        (!wanted->batch_bytes_max || wanted->batch_bytes_max == is->batch_bytes_max) &&
        (wanted->durability == LEAT_DURABILITY_DEFAULT || wanted->durability == is->durability) &&
        (wanted->retention_ms <= 0 || wanted->retention_ms == is->retention_ms) &&
        (wanted->retention_bytes <= 0 || wanted->retention_bytes == is->retention_bytes) &&
        wanted->append_time == is->append_time && wanted->validate == is->validate;
    if (!same) {
        out_answer->rc =
            leat_error_set(&out_answer->error, LEAT_E_STREAM_EXISTS,
                           "a stream named '%.100s' exists, with other settings", name);
        return false;
    }
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_u64(&body, stream.id);
    leat_msg_settings_write(&body, is);
    cli_answer_fini(out_answer);
    out_answer->bytes = malloc(body.used);
    if (!out_answer->bytes || body.overflow) abort();
    memcpy(out_answer->bytes, bytes, body.used);
    out_answer->count = body.used;
    return true;
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
        memset(out_answer, 0, sizeof *out_answer);
        out_answer->rc = leat_error_set(&out_answer->error, LEAT_E_BAD_NAME,
                                        "'%.40s...' is too long for a stream's name", name);
        return CLI_FAILED;
    }
    if (cli_call_patiently(LEAT_KIND_STREAM_CREATE, &body, out_answer) == LEAT_OK) return CLI_OK;
    if (out_answer->rc != LEAT_E_STREAM_EXISTS || !out_answer->again) return CLI_FAILED;
    cli_answer_fini(out_answer);
    return made_before(name, settings, out_answer) ? CLI_OK : CLI_FAILED;
}
