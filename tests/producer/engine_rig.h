/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's engine, its server, and the report of each record. */
#ifndef LEAT_TESTS_PRODUCER_ENGINE_RIG_H
#define LEAT_TESTS_PRODUCER_ENGINE_RIG_H

#include "producer/engine.h"
#include "tests/client/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RECORDS_MAX = 4000 };

struct rig {
    struct fake_world world;
    struct leat_client *client;
    struct leat_producer_engine *engine;
    uint32_t added, ended, acked, wanted;
    struct rig_record {
        struct rig *rig;
        uint32_t number;
        bool ended;
        leat_err rc;
        bool told_unknown;
        uint64_t offset;
        struct leat_log_ref log;
    } records[RECORDS_MAX];
    bool adding, may_be_refused; /* at once: the stream is gone */
    uint32_t under_way_max;      /* batches of one log, ever */
};

void on_produced(void *arg, const struct leat_produced *produced);
void add_some(struct rig *rig);
bool all_ended(void *owner);
struct rig *rig_make(uint64_t seed, uint64_t timeout_us, uint32_t wanted);
void rig_end(struct rig *rig);
/* Each number that lies in the logs, how often, and in which order. */
void logs_check(struct rig *rig);

#endif
