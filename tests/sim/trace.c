/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a trace: what each is about, and which are shown. See trace.h. */
#include "tests/sim/trace.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { STREAMS_MAX = 16, KIND_BYTES = 32 };

static const struct sim_trace_filter *shown; /* NULL: all */
static uint32_t stream_ids[STREAMS_MAX];     /* by the simulator's numbers; 0: not made yet */

void sim_trace_filter_set(const struct sim_trace_filter *filter)
{
    shown = filter;
}

void sim_trace_stream_is(uint32_t index, uint32_t id)
{
    if (index < STREAMS_MAX) stream_ids[index] = id;
}

bool sim_trace_log_read(const char *text, struct leat_log_ref *out)
{
    int bytes = 0;
    return sscanf(text, "%u/%u/%u%n", &out->stream, &out->streamlet, &out->log, &bytes) == 3 &&
           text[bytes] == '\0';
}

/* ---- what a line is about ---- */

/* false: a stream that is none of the simulator's, an internal one for instance. */
static bool index_of_id(uint32_t id, uint32_t *out_index)
{
    for (uint32_t i = 0; i < STREAMS_MAX; i++)
        if (id != 0 && stream_ids[i] == id) {
            *out_index = i;
            return true;
        }
    return false;
}

/* "4/0/1", not a part of a longer run of numbers. */
static const char *slashes_find(const char *text, struct leat_log_ref *out)
{
    for (const char *at = text; *at; at++) {
        int bytes = 0;
        if (!isdigit((unsigned char)*at) ||
            (at > text && (isdigit((unsigned char)at[-1]) || at[-1] == '/')))
            continue;
        if (sscanf(at, "%u/%u/%u%n", &out->stream, &out->streamlet, &out->log, &bytes) == 3 &&
            bytes > 0 && at[bytes] != '/')
            return at;
    }
    return NULL;
}

/* "stream stream-4 streamlet 0 log 1", or with an id in place of the name. */
static bool words_find(const char *text, struct sim_trace_about *out)
{
    for (const char *at = strstr(text, "stream "); at; at = strstr(at + 1, "stream ")) {
        struct leat_log_ref *log = &out->log;
        if (sscanf(at, "stream stream-%u streamlet %u log %u", &log->stream, &log->streamlet,
                   &log->log) == 3)
            return true;
        if (sscanf(at, "stream %u streamlet %u log %u", &log->stream, &log->streamlet, &log->log) ==
            3)
            return index_of_id(log->stream, &log->stream);
    }
    return false;
}

static bool log_find(const char *kind, const char *text, struct sim_trace_about *out)
{
    static const char BY_ID[] = "log id ";
    const char *at = slashes_find(text, &out->log);
    if (!at) return words_find(text, out);
    bool by_id = strcmp(kind, "server") == 0 ||
                 (at - text >= (long)sizeof BY_ID - 1 &&
                  strncmp(at - (sizeof BY_ID - 1), BY_ID, sizeof BY_ID - 1) == 0);
    return !by_id || index_of_id(out->log.stream, &out->log.stream);
}

static bool segment_find(const char *text, uint64_t *out)
{
    unsigned long long segment;
    for (const char *at = strstr(text, "segment "); at; at = strstr(at + 1, "segment "))
        if (sscanf(at, "segment %llu", &segment) == 1) {
            *out = segment;
            return true;
        }
    return false;
}

void sim_trace_about(const char *kind, const char *text, struct sim_trace_about *out)
{
    *out = (struct sim_trace_about){.has_log = false};
    out->has_log = log_find(kind, text, out);
    out->has_segment = segment_find(text, &out->segment);
}

/* ---- which are shown ---- */

/* "traps" are also "traps_fill" and "traps_leave". */
static bool kind_is(const char *kind, const char *wanted)
{
    size_t bytes = strlen(wanted);
    return strncmp(kind, wanted, bytes) == 0 && (kind[bytes] == '\0' || kind[bytes] == '_');
}

/* The node ran, or is named as a whole word: "node1" is not in "node12", nor in "node1s". */
static bool names_node(const char *text, const char *node)
{
    size_t bytes = strlen(node);
    for (const char *at = strstr(text, node); at; at = strstr(at + 1, node))
        if (!isalnum((unsigned char)at[bytes]) && (at == text || !isalnum((unsigned char)at[-1])))
            return true;
    return false;
}

bool sim_trace_is_shown(const char *kind, const char *actor, const char *text,
                        const struct sim_trace_about *about)
{
    if (!shown) return true;
    const struct sim_trace_about *wanted = &shown->about;
    if (shown->kind && !kind_is(kind, shown->kind)) return false;
    if (shown->node && !names_node(actor, shown->node) && !names_node(text, shown->node))
        return false;
    if (wanted->has_log && !(about->has_log && leat_log_ref_equal(about->log, wanted->log)))
        return false;
    return !wanted->has_segment || (about->has_segment && about->segment == wanted->segment);
}

/* The file's name without its folder and suffix. */
static void kind_of(const char *file, char out[KIND_BYTES])
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    snprintf(out, KIND_BYTES, "%.*s", (int)strcspn(name, "."), name);
}

void sim_trace_print(uint64_t now_us, const char *file, const char *actor, const char *text)
{
    struct sim_trace_about about;
    char kind[KIND_BYTES], log[40] = "";
    kind_of(file, kind);
    sim_trace_about(kind, text, &about);
    if (!sim_trace_is_shown(kind, actor, text, &about)) return;
    if (about.has_log)
        snprintf(log, sizeof log, "%u/%u/%u", about.log.stream, about.log.streamlet, about.log.log);
    fprintf(stderr, "%10llu %-18s %-13s %-6s %s\n", (unsigned long long)now_us, actor, kind, log,
            text);
}
