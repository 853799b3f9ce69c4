/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions that stay on in production. */
#ifndef LEAT_BASE_ASSERT_H
#define LEAT_BASE_ASSERT_H

#include <assert.h>
#include <stdbool.h>

/** Print the failed condition and stop the process. Never returns. */
_Noreturn void leat_assert_failed(const char *file, int line, const char *condition);
_Noreturn void leat_assert_cmp_failed(const char *file, int line, const char *condition,
                                      unsigned long long a, unsigned long long b);

#define LEAT_ASSERT(condition)                                                                     \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) leat_assert_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* LEAT_ASSERT_CMP(a, <=, b): prints both operands. Unsigned or non-negative operands only. */
#define LEAT_ASSERT_CMP(a, op, b)                                                                  \
    do {                                                                                           \
        if (__builtin_expect(!((a)op(b)), 0))                                                      \
            leat_assert_cmp_failed(__FILE__, __LINE__, #a " " #op " " #b, (unsigned long long)(a), \
                                   (unsigned long long)(b));                                       \
    } while (0)

#ifdef LEAT_SLOW_CHECKS
#define LEAT_ASSERT_SLOW(condition) LEAT_ASSERT(condition)
#else
#define LEAT_ASSERT_SLOW(condition) ((void)0)
#endif

/** Called by the runner of actors (os: a thread for each; the simulator: one thread, in turns), with the actor's
 * registered pointer. NULL: no actor runs, as before a start and after an end; then any code of the node may act for
 * each actor. Thread: the actor's. */
void leat_actor_runs(const void *actor);
/** Does this actor run, or none? Thread: any. */
bool leat_actor_may(const void *actor);

/* At the head of functions that only the owner's thread may call: of a core's structs the core (struct leat_core *). */
#define LEAT_ASSERT_OWNER(actor) LEAT_ASSERT_SLOW(leat_actor_may(actor))

/* Both outcomes are legal here; a reader need not wonder. */
#define LEAT_MAYBE(condition) ((void)(condition))

#endif
