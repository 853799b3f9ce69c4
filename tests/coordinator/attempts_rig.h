/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery's attempts by a clock of the test's. Links, the queue of requests and raft are stood in for, and what
 * is asked of them is written down: so this is for one test's program. */
#ifndef LEAT_TESTS_COORDINATOR_ATTEMPTS_RIG_H
#define LEAT_TESTS_COORDINATOR_ATTEMPTS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"

enum { NODES = 4, OWN = 11 /* incarnations: n0 has 10, and so on */, ATTEMPT = 77 };

static struct leat_coordinator *coordinator;
static struct leat_machine *machine;
static struct co_recovery *it;
static struct leat_clock clock_of_test;
static struct leat_random random_of_test;
static struct leat_env env;
static uint64_t now_us;
static bool leads;
static bool away[NODES]; /* has no link */
static char calls[512];  /* since the last look at them */
static struct leat_coordinate *queued;

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return ATTEMPT & ~(uint64_t)1; /* an attempt's number is made odd */
}

/* ---- in the place of what recovery/recovery.c calls ---- */

static inline void called(const char *what, unsigned node)
{
    size_t used = strlen(calls);
    snprintf(calls + used, sizeof calls - used, "%s%s n%u", used ? ", " : "", what, node);
}

bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *asker, uint64_t incarnation)
{
    static struct co_peer peer;
    assert_ptr_equal(asker, coordinator);
    return incarnation != OWN && incarnation - 10 < NODES && !away[incarnation - 10] ? &peer : NULL;
}
void co_recovery_ask(struct leat_coordinator *asker, uint32_t node)
{
    assert_ptr_equal(asker, coordinator);
    called("ask", node);
}
void co_recovery_pull(struct leat_coordinator *asker, uint32_t node)
{
    assert_ptr_equal(asker, coordinator);
    if (it->pulls[node].next == it->pulls[node].end) return;
    called("pull", node);
    it->pulls[node].in_flight = it->pulls[node].end - it->pulls[node].next;
}
void co_request_queue(struct leat_coordinator *asker, struct leat_coordinate *request)
{
    assert_ptr_equal(asker, coordinator);
    assert_null(queued);
    queued = request;
}

#define expect_calls(expected)                                                                     \
    do {                                                                                           \
        assert_string_equal(calls, expected);                                                      \
        calls[0] = '\0';                                                                           \
    } while (0)

/* ---- a cluster ---- */

static inline void on_collect(void *owner, struct leat_collect *collect)
{
    (void)owner;
    (void)collect;
}

static inline int begin(void **state)
{
    (void)state;
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    clock_of_test = (struct leat_clock){.now_us = clock_now};
    random_of_test = (struct leat_random){.next = random_next};
    env = (struct leat_env){.clock = &clock_of_test, .random = &random_of_test};
    coordinator->env = &env;
    coordinator->clustered = coordinator->votes = true;
    coordinator->start = CO_START_READY;
    coordinator->options.on_collect = on_collect;
    coordinator->incarnation = OWN;
    coordinator->applied = 42;
    machine = &coordinator->machine;
    leat_machine_init(machine, 1);
    machine->node_count = NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        struct leat_node_info *info = &machine->nodes[i].info;
        snprintf(info->name, sizeof info->name, "n%u", i);
        snprintf(info->node_address, sizeof info->node_address, "h%u:1", i);
        info->incarnation = 10 + i;
        info->state = LEAT_NODE_UP;
    }
    assert_int_equal(co_recovery_init(coordinator), LEAT_OK);
    it = coordinator->recovery;
    assert_non_null(it);
    assert_true(leat_list_empty(&it->collects) && leat_list_empty(&it->pullings));
    now_us = 1000000000;
    leads = true;
    memset(away, 0, sizeof away);
    calls[0] = '\0';
    queued = NULL;
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    co_recovery_fini(coordinator);
    assert_null(coordinator->recovery);
    leat_machine_fini(machine);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR) + leat_mem_bytes(LEAT_MEM_ROWS), 0);
    free(coordinator);
    return 0;
}

/* All owned by n0, opened under epoch 3, of two copies in memory. */
static inline struct leat_machine_stream *stream_make(uint32_t streamlets, uint32_t logs)
{
    static const char names[] = "abcdefgh";
    struct leat_stream_settings settings = {.streamlets = streamlets,
                                            .logs = logs,
                                            .copies = 2,
                                            .min_copies = 2,
                                            .durability = LEAT_DURABILITY_MEMORY};
    struct leat_machine_log *rows;
    uint32_t id = machine->stream_count + 1;
    struct leat_stream_desc *desc = leat_machine_desc_create(id, &names[id - 1], 1, &settings);
    assert_non_null(desc);
    assert_int_equal(leat_machine_stream_add(machine, desc, &rows), LEAT_OK);
    struct leat_machine_stream *stream = &machine->streams[id - 1];
    for (uint32_t i = 0; i < streamlets; i++) {
        stream->owners[i] = 0;
        desc->streamlets[i].owner = 10;
        desc->streamlets[i].epoch.v = 3;
    }
    for (uint32_t i = 0; i < streamlets * logs; i++)
        rows[i] = (struct leat_machine_log){
            .epoch = {3}, .record = {.opened = true, .stamp_epoch = {3}, .stamp_version = 1}};
    return stream;
}

static inline void crash(uint32_t node)
{
    machine->nodes[node].info.state = LEAT_NODE_DOWN;
    machine->nodes[node].info.crashed = true;
    machine->node_changes++;
}

static inline void advance(uint64_t us)
{
    now_us += us;
    co_recovery_advance(coordinator);
}

/* A node's report of log 0 of streamlet i of stream 1: an open replica of `bytes` bytes. */
static inline void answer(uint32_t node, uint32_t streamlets, uint32_t bytes, leat_err rc)
{
    struct leat_replica_row rows[8] = {0};
    for (uint32_t i = 0; i < streamlets; i++)
        rows[i] = (struct leat_replica_row){.log = {1, i, 0},
                                            .segment = 5,
                                            .kind = LEAT_REPLICA_MARK,
                                            .epoch = {3},
                                            .version = 1,
                                            .prefix_id = {bytes, bytes},
                                            .next_offset = 50,
                                            .durable = true};
    struct leat_collect collect = {
        .attempt = it->attempt, .rows = rows, .row_count = streamlets, .rc = rc};
    co_recovery_rows(coordinator, 10 + node, &collect);
}

static inline void commit_done(leat_err rc, uint32_t count)
{
    assert_non_null(queued);
    struct leat_coordinate *request = queued;
    queued = NULL;
    request->rc = rc;
    request->id_count = count;
    request->on_done(request);
}

#define ATTEMPT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
