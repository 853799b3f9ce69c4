/* SPDX-License-Identifier: Apache-2.0 */
/* Random worlds for an attempt of recovery: nodes, streams, logs and the nodes' reports. After cmocka.h. For one test
 * program only. */
#ifndef LEAT_TESTS_COORDINATOR_PREPARE_RIG_H
#define LEAT_TESTS_COORDINATOR_PREPARE_RIG_H

#include "base/bytes.h"
#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/decide_rows.h"

enum {
    ROWS_MAX = 512,
    LOGS_MAX = 64,
    STREAMLETS_MAX = 24,
    TASKS_MAX = 2048,
    WAITS_MAX = 256,
    NOW_US = 100000000
};

static struct leat_coordinator *coordinator;
static struct co_recovery *it;
static struct leat_machine *machine;
static struct leat_xoshiro dice;

static inline uint64_t below(uint64_t bound)
{
    return leat_xoshiro_below(&dice, bound);
}
static inline bool once_in(uint64_t times)
{
    return below(times) == 0;
}

/* ---- what recovery/recovery.c does with a log that waits, written down ---- */

static struct {
    uint32_t log;
    char why[320];
} waited[WAITS_MAX];
static unsigned waited_count;

void co_recovery_wait(struct leat_coordinator *asker, struct co_recover_log *log, const char *why)
{
    assert_ptr_equal(asker, coordinator);
    assert_true(waited_count < WAITS_MAX);
    waited[waited_count].log = (uint32_t)(log - it->logs);
    snprintf(waited[waited_count++].why, sizeof waited[0].why, "%s", why);
    log->decision = LEAT_RECOVER_WAITS;
}

/* ---- worlds ---- */

static inline void nodes_make(void)
{
    machine->node_count = 1 + (uint32_t)below(5);
    const bool healthy = once_in(3);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        struct leat_machine_node *node = &machine->nodes[i];
        snprintf(node->info.name, sizeof node->info.name, "n%u", i);
        node->info.incarnation = 10 + i;
        node->info.state = healthy || !once_in(3)
                               ? LEAT_NODE_UP
                               : LEAT_NODE_DOWN + (enum leat_node_state)once_in(4);
        node->info.crashed = node->info.state != LEAT_NODE_UP && once_in(2);
        node->info.draining = once_in(6);
        node->info.streamlets = below(4);
        node->info.logs_most = once_in(2) ? 0 : 1 + below(9);
        node->logs = below(6);
        bool heard = node->info.state == LEAT_NODE_UP ? healthy || !once_in(5)
                                                      : once_in(6); /* it died since it answered */
        it->nodes[i] = heard ? CO_NODE_HEARD : CO_NODE_MUTE;
        it->seen[i].incarnation = node->info.incarnation - once_in(20);
        const uint64_t ages[] = {0, CO_ALL_HEARD_US - 1, CO_ALL_HEARD_US, CO_ALL_HEARD_US + 1,
                                 10 * CO_ALL_HEARD_US};
        it->seen[i].since_us = NOW_US - ages[healthy && !once_in(9) ? 2 + below(3) : below(5)];
    }
    machine->next_incarnation = 20;
    it->now_us = NOW_US;
}

static inline void streams_make(void)
{
    for (uint32_t s = 0; s < 3; s++) {
        struct leat_stream_settings settings = {.streamlets = 1 + (uint32_t)below(3),
                                                .logs = 1 + (uint32_t)below(2),
                                                .copies = 1 + (uint32_t)below(3),
                                                .durability = once_in(2) ? LEAT_DURABILITY_DISK
                                                                         : LEAT_DURABILITY_MEMORY};
        settings.min_copies = 1 + (uint32_t)below(settings.copies);
        struct leat_stream_desc *desc = leat_machine_desc_create(s + 1, &"abc"[s], 1, &settings);
        struct leat_machine_log *logs;
        assert_non_null(desc);
        assert_int_equal(leat_machine_stream_add(machine, desc, &logs), LEAT_OK);
        for (uint32_t i = 0; i < settings.streamlets; i++) {
            uint16_t owner = once_in(6) ? LEAT_OWNER_NONE : (uint16_t)below(machine->node_count);
            machine->streams[s].owners[i] = owner;
            desc->streamlets[i].owner =
                owner == LEAT_OWNER_NONE ? 0 : machine->nodes[owner].info.incarnation;
            desc->streamlets[i].epoch.v = 3;
        }
    }
}

static inline struct leat_log_record record_make(void)
{
    struct leat_log_record record = {.opened = !once_in(3)};
    if (record.opened) {
        record.stamp_epoch.v = 2 + once_in(3);
        record.stamp_version = 1 + (uint32_t)below(2);
        record.heard = once_in(3) ? 19 + below(2) : 0;
        if (once_in(2))
            record.began = (struct leat_tail_record){.segment = 4 + below(2),
                                                     .prefix_id = {96, 6},
                                                     .next_offset = 47,
                                                     .jumped = once_in(3)};
        if (once_in(9)) record.began.segment = UINT64_MAX;
        if (once_in(9)) record.began = (struct leat_tail_record){.segment = 4, .jumped = true};
    } else {
        record.tail = (struct leat_tail_record){
            .segment = 5, .prefix_id = {100, 7}, .next_offset = 50, .jumped = once_in(6)};
        if (once_in(5)) record.tail = (struct leat_tail_record){.segment = UINT64_MAX};
    }
    return record;
}

/* A replica that a node may report of the log: mostly where the log ends, or the segment before. */
static inline struct leat_replica_row row_make(const struct co_recover_log *log)
{
    const uint32_t bytes = 96 + 4 * (uint32_t)below(2);
    struct leat_replica_row row = {.log = log->ref,
                                   .segment = 4 + below(2),
                                   .kind = once_in(3)    ? LEAT_REPLICA_CLOSED
                                           : once_in(12) ? LEAT_REPLICA_LOST
                                                         : LEAT_REPLICA_MARK,
                                   .epoch = log->seen.opened ? log->seen.stamp_epoch
                                                             : (struct leat_epoch){2},
                                   .version = log->seen.stamp_version,
                                   .prefix_id = {bytes, bytes == 100 ? 7 : 6},
                                   .previous = {100, 7},
                                   .base_offset = 50,
                                   .next_offset = bytes / 2,
                                   .only_start = once_in(3),
                                   .torn = once_in(8),
                                   .durable = once_in(2),
                                   .holds_tail = once_in(9),
                                   .provisional = once_in(8)};
    if (once_in(20)) row.prefix_id.crc = 8; /* as many bytes, and others */
    if (once_in(9)) row.epoch.v++;
    if (once_in(20)) row.prefix_id = (struct leat_prefix_id){0, 0};
    return row;
}

static inline void logs_make(void)
{
    for (uint32_t s = 0; s < machine->stream_count; s++)
        for (uint32_t i = 0; i < machine->streams[s].desc->streamlet_count; i++) {
            const struct leat_stream_desc *desc = machine->streams[s].desc;
            struct co_recover_streamlet *streamlet = &it->streamlets[it->streamlet_count++];
            *streamlet = (struct co_recover_streamlet){.ref = {desc->id, i},
                                                       .seen_owner = desc->streamlets[i].owner,
                                                       .seen_epoch = desc->streamlets[i].epoch,
                                                       .first = it->log_count,
                                                       .logs = desc->settings.logs,
                                                       .takes = !once_in(3)};
            for (uint32_t q = 0; q < desc->settings.logs; q++) {
                struct co_recover_log *log = &it->logs[it->log_count++];
                *log = (struct co_recover_log){
                    .ref = {desc->id, i, q}, .seen = record_make(), .seen_epoch = {3}};
                for (uint32_t n = 0; n < machine->node_count; n++)
                    for (uint64_t rows = below(3); rows > 0 && it->row_count < ROWS_MAX; rows--)
                        it->rows[it->row_count++] = (struct co_row){
                            .row = row_make(log), .node = n, .holds = true, .before = true};
            }
        }
    for (size_t i = 0; i + 1 < it->row_count; i++) { /* as they come */
        size_t with = i + below(it->row_count - i);
        struct co_row row = it->rows[i];
        it->rows[i] = it->rows[with];
        it->rows[with] = row;
    }
}

/* Before pages without rights: who takes no node for one, LEAT_OWNER_NONE, dies of it. */
static inline void *recovery_make(void)
{
    enum { REACH = 1 << 20 };
    static uint8_t *pages;
    const size_t bytes = LEAT_ALIGN_UP(sizeof *it, 4096);
    if (!pages) {
        pages =
            mmap(NULL, bytes + REACH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages != MAP_FAILED);
        assert_int_equal(mprotect(pages + bytes, REACH, PROT_NONE), 0);
    }
    return memset(pages, 0, sizeof *it);
}

static inline void world_make(uint64_t seed)
{
    leat_xoshiro_seed(&dice, seed);
    coordinator = calloc(1, sizeof *coordinator);
    it = recovery_make();
    assert_non_null(coordinator);
    coordinator->recovery = it;
    machine = &coordinator->machine;
    leat_machine_init(machine, 1);
    it->streamlets = calloc(STREAMLETS_MAX, sizeof *it->streamlets);
    it->logs = calloc(LOGS_MAX, sizeof *it->logs);
    it->rows = calloc(ROWS_MAX, sizeof *it->rows);
    assert_true(it->streamlets && it->logs && it->rows);
    it->attempt = seed;
    waited_count = 0;
    nodes_make();
    streams_make();
    logs_make();
    /* After the last log: a row that would be reported if it counted. */
    it->logs[it->log_count] = (struct co_recover_log){
        .undecided = true, .seen.opened = true, .decision = LEAT_RECOVER_WAITS};
}

static inline void world_end(void)
{
    assert_false(it->logs[it->log_count].tells);
    leat_machine_fini(machine);
    leat_mem_free(it->tasks);
    leat_mem_free(it->command);
    free(it->streamlets);
    free(it->logs);
    free(it->rows);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR) + leat_mem_bytes(LEAT_MEM_ROWS), 0);
}

#endif
