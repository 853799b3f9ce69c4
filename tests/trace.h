/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a test, a line for each, compared as a whole with the expected lines: an event that is missing, happens
 * twice, comes in another order or has another field shows. After cmocka.h. For one test program only. */
#ifndef LEAT_TESTS_TRACE_H
#define LEAT_TESTS_TRACE_H

#include <stdio.h>
#include <string.h>

static char trace_text[64 * 1024];
static size_t trace_used;

static inline void trace_begin(void)
{
    trace_text[trace_used = 0] = '\0';
}

/* Runs before each test: the trace has no lines of the test before. */
static inline int trace_setup(void **state)
{
    (void)state;
    trace_begin();
    return 0;
}

#define TRACE_TEST(name) cmocka_unit_test_setup(name, trace_setup)

/* A line, or the beginning of one: it ends with "\n" then. */
__attribute__((format(printf, 1, 2))) static inline void trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof trace_text - trace_used;
    int more = vsnprintf(trace_text + trace_used, room, format, args);
    va_end(args);
    assert_true(more >= 0 && (size_t)more < room);
    trace_used += (size_t)more;
}

/* Since the last time. */
static inline void trace_must_be(const char *expected, const char *file, int line)
{
    bool same = strcmp(trace_text, expected) == 0;
    if (!same)
        fprintf(stderr, "%s:%d: happened:\n%s--- and not:\n%s---\n", file, line, trace_text,
                expected);
    trace_begin();
    if (!same) _fail(file, line);
}

#define TRACE_IS(expected) trace_must_be((expected), __FILE__, __LINE__)

#endif
