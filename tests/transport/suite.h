/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for every transport of one-sided writes, written against base/rmem.h alone.
 *
 * A family gives a rig: a host and a writer on two actors, and a way to run things on them. Tests
 * are straight lines on the caller's thread: call() runs a function on an actor, wait() runs the
 * world until something is so. */
#ifndef LEAT_TESTS_TRANSPORT_SUITE_H
#define LEAT_TESTS_TRANSPORT_SUITE_H

#include "base/assert.h"
#include "base/rmem.h"

#define RIG_CHECK(condition) LEAT_ASSERT(condition)

enum { RIG_HOST = LEAT_ACTOR_CORE_0, RIG_WRITER = 1 };

struct transport_rig {
    void *ctx;
    const struct leat_rmem_host *host; /* of RIG_HOST */
    const struct leat_rmem *writer;    /* of RIG_WRITER */
    const struct leat_env *writer_env;
    unsigned node; /* what attach() takes */
    /** Run fn on an actor; returns when it has. */
    void (*call)(void *ctx, unsigned actor, void (*fn)(void *arg), void *arg);
    /** Until done(arg), which runs on the actor, is true; stops the process after a minute. */
    void (*wait)(void *ctx, unsigned actor, bool (*done)(void *arg), void *arg);
    /** Thread: an actor's. Something happened that a wait() may be for. */
    void (*notify)(void *ctx);
    /** Zeroed memory that writes may come from; the rig frees it. */
    uint8_t *(*memory)(void *ctx, size_t bytes);
};

struct transport_family {
    const char *name;
    enum leat_rmem_kind kind;
    struct transport_rig *(*make)(void);
    void (*drop)(struct transport_rig *rig);
    unsigned fences; /* rounds of the test that fences while writes arrive */
};

/** Run the whole suite; returns the number of failed tests. */
int transport_suite_run(const struct transport_family *family);

#endif
