/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in processes of their own: a world leaves memory of killed servers, and cannot be put back. The child's coverage
 * goes to libFuzzer as extra counters. For one source file of a target. */
#ifndef LEAT_TESTS_FUZZ_CHILD_H
#define LEAT_TESTS_FUZZ_CHILD_H

#include "fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* libFuzzer's own: one byte for each edge of the program's code. */
extern uint8_t counters_begin[] __asm__("__start___sancov_cntrs")
    __attribute__((weak, visibility("hidden")));
extern uint8_t counters_end[] __asm__("__stop___sancov_cntrs")
    __attribute__((weak, visibility("hidden")));

/* libFuzzer's own: while it is false its hooks for strcmp() and its like, which can't be wrapped, do nothing. */
extern bool child_hooks_run __asm__("_ZN6fuzzer19RunningUserCallbackE") __attribute__((weak));

/* libFuzzer counts these bytes as coverage besides its own: the child's counters are copied here. */
static uint8_t child_features[1 << 17] __attribute__((section("__libfuzzer_extra_counters"), used));
static uint8_t *child_covered; /* shared with children */

enum { CHILD_STUCK_SECONDS_MAX = 900 };

/* The results of compares stay in the process that compares, so a child's are lost with the child. libFuzzer's hooks, a
 * third of a run, are replaced by these: the linker wraps them (meson.build). */
#define CHILD_BARE __attribute__((used, no_sanitize("address", "undefined", "coverage")))
#define CHILD_HOOK(name, ...)                                                                      \
    void __wrap___sanitizer_##name(__VA_ARGS__);                                                   \
    CHILD_BARE void __wrap___sanitizer_##name(__VA_ARGS__)                                         \
    {                                                                                              \
    }
CHILD_HOOK(cov_trace_cmp1, uint8_t a, uint8_t b)
CHILD_HOOK(cov_trace_cmp2, uint16_t a, uint16_t b)
CHILD_HOOK(cov_trace_cmp4, uint32_t a, uint32_t b)
CHILD_HOOK(cov_trace_cmp8, uint64_t a, uint64_t b)
CHILD_HOOK(cov_trace_const_cmp1, uint8_t a, uint8_t b)
CHILD_HOOK(cov_trace_const_cmp2, uint16_t a, uint16_t b)
CHILD_HOOK(cov_trace_const_cmp4, uint32_t a, uint32_t b)
CHILD_HOOK(cov_trace_const_cmp8, uint64_t a, uint64_t b)
CHILD_HOOK(cov_trace_switch, uint64_t value, uint64_t *cases)

/* SUBTLE: no thread that looks at this process's memory: it may be in the allocator when a child is made, and the child
 * would wait for it for ever. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char no_thread[] = "-rss_limit_mb=0";
    char **more = calloc((size_t)*argc + 2, sizeof *more);
    LEAT_ASSERT(more != NULL);
    memcpy(more, *argv, (size_t)*argc * sizeof *more);
    more[(*argc)++] = no_thread;
    *argv = more;
    return 0;
}

/* Memory that children share with their parent. */
static inline uint8_t *child_shared(size_t bytes)
{
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    LEAT_ASSERT(at != MAP_FAILED);
    return at;
}

static inline size_t child_counters(void)
{
    return (size_t)(counters_end - counters_begin);
}

static inline void child_covered_make(void)
{
    if (!child_covered) child_covered = child_shared(child_counters());
}

static inline void child_signals(void)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGALRM, SIGPROF, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL); /* libFuzzer's handlers are the parent's business */
}

/* In the child: what is covered counts from here, and it has so many seconds of a processor. */
static inline void child_begin(unsigned seconds_max)
{
    const struct itimerval limit = {.it_value = {.tv_sec = seconds_max}};
    child_signals();
    if (&child_hooks_run) child_hooks_run = false;
    memset(counters_begin, 0, child_counters());
    (void)setitimer(ITIMER_PROF, &limit, NULL); /* others may have the processor */
    alarm(CHILD_STUCK_SECONDS_MAX);
}

static inline void child_end(void)
{
    memcpy(child_covered, counters_begin, child_counters());
    _exit(0);
}

/* In the parent, once it has ended: with exit status 0, or the input is one that breaks something. */
static inline void child_judge(int status)
{
    if (status != 0) {
        fprintf(stderr, "the run ended with status %#x\n", (unsigned)status);
        abort();
    }
    for (size_t i = 0; i < child_counters(); i++)
        if (child_covered[i]) child_features[i % sizeof child_features] = child_covered[i];
}

/* The run has to end with exit status 0, within so many seconds of a processor. */
static inline void fuzz_child(void (*run)(const uint8_t *data, size_t size), const uint8_t *data,
                              size_t size, unsigned seconds_max)
{
    int status = 0;
    child_covered_make();
    pid_t pid = fork();
    LEAT_ASSERT(pid >= 0);
    if (pid == 0) {
        child_begin(seconds_max);
        run(data, size);
        child_end();
    }
    while (waitpid(pid, &status, 0) < 0)
        continue;
    child_judge(status);
}

#endif
