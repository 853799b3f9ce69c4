/* SPDX-License-Identifier: Apache-2.0 */
/* Files of raft's storage of which every byte is set here, and a start that reads them. For one test's program. */
#ifndef LEAT_TESTS_COORDINATOR_STORAGE_RIG_H
#define LEAT_TESTS_COORDINATOR_STORAGE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <raft.h>

#include "base/mem.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/fake.h"
#include "tests/coordinator/journal.h"
#include "tests/coordinator/raft_bytes.h"

enum { SEGMENT = 2048 };
#define MOST (UINT64_C(1) << 62)

static struct fake_world *world;
static struct journal journal;
static struct leat_raft_log raft_log;
static struct leat_error error;
static bool is_new;

static inline int begin(void **state)
{
    (void)state;
    world = calloc(1, sizeof *world);
    assert_non_null(world);
    fake_world_init(world, 1);
    journal_init(&journal, &world->disk);
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    fake_world_fini(world);
    free(world);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}
static inline void again(void)
{
    finish(NULL);
    begin(NULL);
}

static inline void file_put(const char *path, const void *bytes, size_t count)
{
    struct leat_file *file;
    const struct leat_disk *disk = &world->disk;
    uint8_t copy[SEGMENT * 4];
    memcpy(copy, bytes, count);
    assert_int_equal(disk->open(disk->ctx, path, LEAT_OPEN_CREATE, &file, &error), LEAT_OK);
    assert_int_equal(disk->truncate(disk->ctx, file, 0), LEAT_OK);
    if (count)
        assert_int_equal(leat_raft_io(disk, LEAT_DISK_WRITE, file, 0, copy, count, NULL), LEAT_OK);
    assert_int_equal(leat_raft_io(disk, LEAT_DISK_SYNC, file, 0, NULL, 0, NULL), LEAT_OK);
    disk->close(disk->ctx, file);
}

static inline bool file_is(const char *kind, uint64_t number)
{
    char path[64];
    leat_raft_path(path, kind, number);
    return fake_world_file(world, path) != NULL;
}

static inline leat_err load(void)
{
    journal_clear(&journal);
    error.text[0] = '\0';
    leat_err rc = leat_raft_log_open(&raft_log, &journal.disk, SEGMENT, &is_new, &error);
    if (rc != LEAT_OK) assert_int_equal(journal.files_open, 0);
    return rc;
}
static inline void unload(void)
{
    leat_raft_log_close(&raft_log);
    assert_int_equal(journal.files_open, 0);
}

static inline void expect_damaged(const char *how)
{
    assert_int_equal(load(), LEAT_E_DAMAGED);
    if (!strstr(error.text, how)) fail_msg("\"%s\", not \"%s\"", error.text, how);
    assert_null(strstr(journal.text, "write")); /* nothing is noted on the way out */
}

static inline struct leat_raft_vote_state vote_of(uint64_t sequence)
{
    return (struct leat_raft_vote_state){.sequence = sequence,
                                         .term = 9,
                                         .voted_for = sequence,
                                         .first_segment = 1,
                                         .durable_segment = 1,
                                         .formed = 1};
}

static inline void vote_is(const struct leat_raft_vote_state *a,
                           const struct leat_raft_vote_state *b)
{
    uint8_t bytes[8192];
    vote_put(bytes, a);
    vote_put(bytes + 4096, b);
    file_put("raft/vote", bytes, sizeof bytes);
}
static inline void vote_is_plain(uint64_t first, uint64_t durable_segment, uint64_t durable_end)
{
    struct leat_raft_vote_state vote = vote_of(3);
    vote.first_segment = first;
    vote.durable_segment = durable_segment;
    vote.durable_end = durable_end;
    vote_is(&vote, &vote);
}

struct segment {
    uint64_t number;
    uint8_t bytes[SEGMENT * 2];
    uint8_t *at;
};

static inline struct segment segment_of(uint64_t number, uint64_t previous_end)
{
    struct segment it = {.number = number};
    segment_put(it.bytes, number, previous_end);
    return it;
}
static inline uint64_t segment_end(const struct segment *it)
{
    return it->at ? (uint64_t)(it->at - it->bytes) : 64;
}
static inline void segment_round(struct segment *it, uint64_t first, uint32_t count, uint64_t term)
{
    uint8_t *header = it->bytes + segment_end(it), *at = header + 48;
    for (uint32_t i = 0; i < count; i++) {
        char text[64];
        uint32_t bytes =
            (uint32_t)snprintf(text, sizeof text, "entry %llu.%llu",
                               (unsigned long long)(first + i), (unsigned long long)term);
        at = frame_put(at, first + i, term, RAFT_COMMAND, text, bytes);
    }
    round_seal(header, it->number, (uint64_t)(header - it->bytes), at, count, first);
    it->at = at;
}
static inline void segment_write(const struct segment *it, size_t bytes)
{
    char path[64];
    leat_raft_path(path, "log", it->number);
    file_put(path, it->bytes, bytes);
}

static inline void expect_entries(uint64_t first, uint64_t last, const char *last_text)
{
    assert_int_equal(raft_log.start_index, first);
    assert_int_equal(leat_raft_log_last_index(&raft_log), last);
    if (last < first) return;
    const struct leat_raft_entry *entry = leat_raft_log_get(&raft_log, last);
    assert_int_equal(entry->bytes, strlen(last_text));
    assert_memory_equal(entry->data, last_text, entry->bytes);
    assert_int_equal(entry->type, RAFT_COMMAND);
    assert_int_equal(raft_log.written_index, last);
}

#define LOAD_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
