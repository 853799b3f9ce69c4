/* SPDX-License-Identifier: Apache-2.0 */
/* One segment, as far as its owner came, and what a start finds of it. For one test program only. */
#ifndef LEAT_TESTS_STORE_SUBJECT_H
#define LEAT_TESTS_STORE_SUBJECT_H

#include "tests/store/store_bench.h"

#include "store/row.h"

enum made { RESERVED, COMMITTED, HIBERNATED, CLOSED, FLUSHED };
#define MEM  LEAT_DURABILITY_MEMORY
#define DISK LEAT_DURABILITY_DISK

enum { CAPACITY = 32768, NOTHING = 99, ALL = 98 };

struct subject {
    struct bench *bench;
    struct mine *mine;
    uint64_t file_at, pool_at;
    uint32_t row;
    uint32_t committed; /* bytes */
};

static inline struct leat_file *store_file(const struct subject *it)
{
    return fake_file(&it->bench->world, "store/0");
}
static inline uint8_t *in_file(const struct subject *it)
{
    return store_file(it)->now + it->file_at;
}
static inline uint8_t *in_memory(const struct subject *it)
{
    return it->bench->world.arena.base + it->pool_at;
}
static inline struct leat_row *row_in_file(const struct subject *it)
{
    return (void *)(fake_file(&it->bench->world, "catalogue")->now + LEAT_BLOCK_BYTES +
                    it->row * 128ull);
}

/* A segment with that header: begun, written to, and as far as `made` says. */
static inline struct subject make(uint64_t seed, enum leat_durability durability, enum made made,
                                  void (*change)(struct leat_segment_header *header))
{
    struct subject it = {.bench = bench_ready(seed)};
    struct bench *bench = it.bench;
    struct mine *mine = it.mine = reserve(bench, durability, 3, CAPACITY);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    struct leat_segment_header header = header_of(mine, CAPACITY);
    if (change) change(&header);
    leat_entry_writer_init(&mine->writer, mine->seg->buffer, CAPACITY);
    put(mine, LEAT_ENTRY_SEGMENT, &header, sizeof header);
    write_start(mine);
    assert_true(write_some(mine, 3));
    it.file_at = mine->seg->file_offset;
    it.pool_at = (uint64_t)(mine->seg->buffer - bench->world.arena.base);
    it.row = mine->seg->row;
    if (made >= COMMITTED && made != CLOSED && made != FLUSHED) {
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        it.committed = mine->committed_bytes;
        struct mine *other =
            reserve(bench, LEAT_DURABILITY_DISK, 4, 16384); /* its row takes ours along */
        fake_settle(&bench->world);
        assert_int_equal(other->rc, LEAT_OK);
    }
    if (made == HIBERNATED) assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    if (made == CLOSED || made == FLUSHED) {
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        if (made == FLUSHED) fake_pass(&bench->world, 100000);
    }
    return it;
}

static inline void start_again(struct subject *it, bool memory)
{
    fake_kill(&it->bench->world);
    if (!memory) it->bench->world.arena.inherited_bytes = 0;
    open_again(it->bench);
}

/* What was found; bytes: NOTHING: it is no part of any log; else the number of a sealed prefix, ALL: the last. */
static inline const struct leat_found *found_is(struct subject *it, enum leat_found_kind kind,
                                                enum leat_segment_state state, unsigned prefix,
                                                const char *why)
{
    const struct leat_found *found = found_of(it->bench, it->mine);
    if (prefix == NOTHING && !why) {
        assert_null(found);
        assert_int_equal(row_in_file(it)->state, LEAT_SEGMENT_FREE);
        return NULL;
    }
    assert_non_null(found);
    if (found->kind != kind) print_message("%s\n", found->why);
    assert_int_equal(found->kind, kind);
    assert_int_equal(found->seg->state, state);
    struct leat_prefix_id none = {0}, want = prefix == NOTHING ? none
                                             : prefix == ALL   ? last_prefix_id(it->mine)
                                                               : it->mine->prefix_ids[prefix];
    assert_int_equal(found->scan.bytes, want.bytes);
    assert_int_equal(found->scan.crc, want.crc);
    if (kind != LEAT_FOUND_LOST) {
        assert_int_equal(found->seg->prefix_id.bytes, want.bytes);
        assert_int_equal(found->seg->prefix_id.crc, want.crc);
        assert_int_equal(found->seg->base_offset, it->mine->id.v * 1000);
        assert_string_equal(found->why, "");
    } else {
        if (!strstr(found->why, why)) print_message("%s\n", found->why);
        assert_non_null(strstr(found->why, why));
        assert_true(it->bench->store->complaint_count > 0);
        if (state == LEAT_SEGMENT_OPEN) assert_int_equal(found->seg->prefix_id.bytes, want.bytes);
    }
    return found;
}

#endif
