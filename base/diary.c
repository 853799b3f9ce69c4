/* The diary: formats a line on the stack and hands it to the program's sink. */
#include "base/diary.h"

#include <stdarg.h>
#include <stdio.h>

enum { DIARY_LINE_BYTES = 1024 };

/* Written at start-up only, before other threads exist; read by all. */
static leat_diary_fn sink;
static void *sink_ctx;
static enum leat_diary_level sink_level = LEAT_DIARY_INFO;

void leat_diary_set(leat_diary_fn fn, void *ctx, enum leat_diary_level level)
{
    sink = fn;
    sink_ctx = ctx;
    sink_level = level;
}

void leat_diary(enum leat_diary_level level, const char *format, ...)
{
    if (!sink || level > sink_level) return;
    char line[DIARY_LINE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0) return;
    sink(sink_ctx, level, line);
}
