/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer's engine, whose client has a server that is played (tests/client/fake_server.h). What the engine brings is
 * held against what the server has: each record once, in order. */
#ifndef LEAT_TESTS_CONSUMER_ENGINE_RIG_H
#define LEAT_TESTS_CONSUMER_ENGINE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "consumer/engine.h"
#include "tests/client/fake_server.h"

enum { LOGS = 4 };

struct rig {
    struct fake_world world;
    struct leat_client *client;
    struct leat_consumer_engine *engine;
    bool ready;
    leat_err ready_rc, error_rc;
    char text[LEAT_ERROR_TEXT_BYTES];
    uint32_t errors, notes;
    uint64_t next[LOGS], read, wanted;
    uint64_t skipped;
    bool holding; /* nobody takes what was fetched */
    bool looked_up;
};

/** A server with four logs, without records. */
struct rig *rig_begin(uint64_t seed);
/** The engine, of the rig's client. */
leat_err rig_engine(struct rig *rig, enum leat_engine_from from, int64_t value);
/** All of it. */
struct rig *rig_make(uint64_t seed, enum leat_engine_from from, int64_t value);
void rig_end(struct rig *rig);
/** Batches of 1 to 20 records into each log, straight into the server. */
void fill(struct rig *rig, uint32_t batches);
/* For fake_run(). */
bool all_read(void *owner);
bool at_end(void *owner);
bool failed(void *owner);

#endif
