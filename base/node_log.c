/* SPDX-License-Identifier: Apache-2.0 */
/* The node log: formats a line on the stack and hands it to the program's sink. */
#include "base/node_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NODE_LOG_LINE_BYTES = 1024 };

/* Written at start-up only, before other threads exist; read by all. */
static leat_node_log_fn sink;
static void *sink_ctx;
static enum leat_node_log_level sink_level = LEAT_NODE_LOG_INFO;

void leat_node_log_set(leat_node_log_fn fn, void *ctx, enum leat_node_log_level level)
{
    sink = fn;
    sink_ctx = ctx;
    sink_level = level;
}

static bool is_control(unsigned char byte)
{
    return byte < ' ' || byte == 0x7f;
}

/* SUBTLE: a line stays one line, whatever its content. Names and sentences come from clients and other nodes. With a
 * newline in a name they could forge log lines; with an escape sequence, control the operator's terminal. Of UTF-8,
 * U+0080 to U+009F are controls as well. */
void leat_node_log_clean(char *text, size_t bytes)
{
    unsigned char *end = (unsigned char *)text + bytes;
    for (unsigned char *at = (unsigned char *)text; at < end; at++) {
        bool is_c1 = at[0] == 0xc2 && at + 1 < end && at[1] >= 0x80 && at[1] < 0xa0;
        if (is_c1) at[1] = '?';
        if (is_c1 || is_control(*at)) *at = '?';
    }
}

static void line_write(enum leat_node_log_level level, const char *format, va_list args)
{
    char line[NODE_LOG_LINE_BYTES];
    if (vsnprintf(line, sizeof line, format, args) < 0) return;
    leat_node_log_clean(line, strlen(line));
    sink(sink_ctx, level, line);
}

void leat_node_log(enum leat_node_log_level level, const char *format, ...)
{
    if (!sink || level > sink_level) return;
    va_list args;
    va_start(args, format);
    line_write(level, format, args);
    va_end(args);
}

void leat_node_log_sum_tell(struct leat_node_log_sum *sum, uint64_t now_us)
{
    if (sum->since_us == 0 || now_us < sum->since_us + LEAT_NODE_LOG_SUM_US) return;
    if (sum->kept > 0)
        leat_node_log_info("... and %u more %s in %" PRIu64 " s", sum->kept, sum->what,
                           (now_us - sum->since_us) / 1000000);
    sum->since_us = 0;
    sum->lines = sum->kept = 0;
}

void leat_node_log_summed(struct leat_node_log_sum *sum, uint64_t now_us,
                          enum leat_node_log_level level, const char *format, ...)
{
    leat_node_log_sum_tell(sum, now_us);
    if (sum->since_us == 0) sum->since_us = now_us ? now_us : 1;
    if (sum->lines == LEAT_NODE_LOG_SUM_LINES) {
        sum->kept++;
        return;
    }
    sum->lines++;
    if (!sink || level > sink_level) return;
    va_list args;
    va_start(args, format);
    line_write(level, format, args);
    va_end(args);
}

void leat_node_log_name(char *out, size_t capacity, const char *text, size_t bytes)
{
    if (bytes >= capacity) bytes = capacity - 1;
    for (size_t i = 0; i < bytes; i++)
        out[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
    out[bytes] = '\0';
}

bool leat_node_log_is_text(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (is_control((unsigned char)text[i])) return false;
    return true;
}
