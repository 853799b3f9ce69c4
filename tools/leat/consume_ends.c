/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what leat consume --until-end has read is all that there is.
 *
 * A log whose end is missing is read as far as there is something, and looks as if it ended there. So the owners are
 * asked before anything is read and at the end: a log that waited at either time, or got another epoch between the
 * two, may have had an end that was none. */
#include "tools/leat/consume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/leat/cluster.h"

enum {
    SETTLE_US = 1000 * 1000, /* longer than an earlier answer can be under way */
    UNKNOWN_US_MAX =
        10 * 1000 * 1000, /* an owner that can't be asked is followed by another in less */
    NAMED_MAX = 16,
};

struct consume_end {
    uint32_t streamlet, log, epoch;
    bool whole, unknown;
};
struct consume_ends {
    const char *stream;
    uint64_t streamlet, log; /* CLI_NONE: all */
    struct consume_end *ends;
    uint32_t count;
    const struct leat_cluster_told *cluster; /* while those without an end are named */
    bool known;
    uint64_t not_before_us, unknown_since_us;
};

struct consume_ends *consume_ends_begin(const char *stream, uint64_t streamlet, uint64_t log)
{
    struct consume_ends *ends = calloc(1, sizeof *ends);
    if (!ends) abort();
    *ends = (struct consume_ends){.stream = stream, .streamlet = streamlet, .log = log};
    (void)consume_ends_look(ends, true);
    ends->not_before_us = 0;
    return ends;
}

void consume_ends_free(struct consume_ends *ends)
{
    if (ends) free(ends->ends);
    free(ends);
}

/* The log's end is unknown: the log is not served yet, or its owner was not heard. A log with a full disk is served. */
static bool is_unknown(const struct leat_msg_log_info *info)
{
    enum leat_err_class class = leat_err_class(info->code);
    if (info->code == LEAT_E_DISK_FULL) return false;
    return info->state == 0 && (class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE ||
                                info->code == LEAT_E_UNKNOWN_LOG);
}

/* What the leading coordinator has found out of a log without an owner; NULL: nothing. */
static const struct leat_msg_recovery_row *why_waits(const struct consume_ends *ends,
                                                     const struct leat_msg_log_info *info,
                                                     struct leat_msg_recovery_row *row)
{
    struct leat_msg_reader reader = ends->cluster->recovery.rows;
    for (uint32_t i = 0; i < ends->cluster->recovery.row_count; i++) {
        leat_msg_recovery_row_read(&reader, row);
        if (reader.failed) break;
        if (row->streamlet == info->at.streamlet && row->log == info->at.log &&
            row->stream.bytes == strlen(ends->stream) &&
            memcmp(row->stream.text, ends->stream, row->stream.bytes) == 0)
            return row;
    }
    return NULL;
}

static void named(const struct consume_ends *ends, const struct leat_msg_log_info *info)
{
    char there[LEAT_STREAM_NAME_BYTES_MAX + 128] = "";
    if (!is_unknown(info) && info->acked_offset > info->first_offset)
        snprintf(there, sizeof there,
                 "offsets %" PRIu64 " to %" PRIu64 " are there, and then: ", info->first_offset,
                 info->acked_offset - 1);
    else if (!is_unknown(info))
        snprintf(there, sizeof there,
                 "nothing of it can be read now (what is left: leat log recover %s --streamlet %u "
                 "--log %u): ",
                 ends->stream, info->at.streamlet, info->at.log);
    struct leat_msg_recovery_row row;
    const struct leat_msg_recovery_row *waits = why_waits(ends, info, &row);
    const char *why = leat_err_text(info->code);
    struct leat_msg_string said = {why, (uint32_t)strlen(why)};
    if (info->text.bytes) said = info->text;
    cli_error("stream %s streamlet %u log %u could not be read to its end: %s%.*s%s%.*s",
              ends->stream, info->at.streamlet, info->at.log, there, (int)said.bytes, said.text,
              waits ? "; " : "", waits ? (int)waits->why.bytes : 0, waits ? waits->why.text : "");
}

/* Reads the ends of the consumed logs from the answer. `tell` names those without an end; returns how many these are,
 * or -1 when the answer can't be read. */
static int ends_read(const struct consume_ends *ends, const struct cli_answer *answer, bool tell,
                     struct consume_end **out, uint32_t *out_count)
{
    struct leat_stream_settings settings;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->bytes, answer->count);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_string(&reader);
    (void)leat_msg_read_u32(&reader);
    leat_msg_settings_read(&reader, &settings);
    uint32_t rows = leat_msg_read_array(&reader);
    if (reader.failed || rows > answer->count) return -1;
    int missing = 0;
    *out_count = 0;
    *out = calloc((size_t)rows + 1, sizeof **out);
    if (!*out) abort();
    for (uint32_t i = 0; i < rows && !reader.failed; i++) {
        struct leat_msg_log_info info;
        leat_msg_log_info_read(&reader, &info);
        if (reader.failed ||
            (ends->streamlet != CLI_NONE && info.at.streamlet != ends->streamlet) ||
            (ends->log != CLI_NONE && info.at.log != ends->log))
            continue;
        bool unknown = is_unknown(&info);
        (*out)[(*out_count)++] = (struct consume_end){.streamlet = info.at.streamlet,
                                                      .log = info.at.log,
                                                      .epoch = info.at.epoch,
                                                      .whole = info.state == 0 && !unknown,
                                                      .unknown = unknown};
        if (info.state == 0 && !unknown) continue;
        if (tell && missing < NAMED_MAX) named(ends, &info);
        missing++;
    }
    if (!reader.failed) return missing;
    free(*out);
    return -1;
}

/* Every log has had the same end all the time, under the same owner. */
static bool same(const struct consume_ends *before, const struct consume_end *now, uint32_t count)
{
    if (!before->known || before->count != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct consume_end *then = &before->ends[i];
        if (!now[i].whole || !then->whole || then->epoch != now[i].epoch ||
            then->streamlet != now[i].streamlet || then->log != now[i].log)
            return false;
    }
    return true;
}

static bool any_unknown(const struct consume_end *ends, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (ends[i].unknown) return true;
    return false;
}

static void missing_tell(struct consume_ends *ends, const struct cli_answer *answer)
{
    struct consume_end *rows;
    uint32_t count;
    struct leat_cluster_told *cluster = calloc(1, sizeof *cluster);
    if (!cluster) abort();
    struct cli_answer status;
    bool told = cli_cluster_get(cluster, &status, true) == CLI_OK;
    cli_disconnect();
    if (!told) cluster->recovery.row_count = 0;
    ends->cluster = cluster;
    int missing = ends_read(ends, answer, true, &rows, &count);
    ends->cluster = NULL;
    if (told) cli_answer_fini(&status);
    free(cluster);
    if (missing < 0) return;
    free(rows);
    if (missing > NAMED_MAX)
        cli_error("and %d logs more: leat stream describe %s", missing - NAMED_MAX, ends->stream);
}

enum consume_look consume_ends_look(struct consume_ends *ends, bool quiet)
{
    struct consume_end *rows = NULL;
    struct cli_answer answer;
    uint32_t count = 0;
    uint64_t now = leat_shared_now_us(NULL);
    if (now < ends->not_before_us) return CONSUME_AGAIN;
    int missing = -1;
    if (cli_name_call(LEAT_KIND_STREAM_DESCRIBE, ends->stream, &answer) == LEAT_OK)
        missing = ends_read(ends, &answer, false, &rows, &count);
    cli_disconnect();
    enum consume_look look = missing < 0               ? CONSUME_UNASKED
                             : same(ends, rows, count) ? CONSUME_WHOLE
                                                       : CONSUME_AGAIN;
    if (missing <= 0 || !any_unknown(rows, count))
        ends->unknown_since_us = 0;
    else if (ends->unknown_since_us == 0)
        ends->unknown_since_us = now;
    if (missing > 0 &&
        (ends->unknown_since_us == 0 || now - ends->unknown_since_us > UNKNOWN_US_MAX))
        look = CONSUME_MISSING;
    if (look == CONSUME_MISSING && !quiet) missing_tell(ends, &answer);
    cli_answer_fini(&answer);
    if (look != CONSUME_WHOLE) ends->not_before_us = now + SETTLE_US;
    if (missing < 0) return look;
    free(ends->ends);
    ends->ends = rows;
    ends->count = count;
    ends->known = true;
    return look;
}
