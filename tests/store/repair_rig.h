/* SPDX-License-Identifier: Apache-2.0 */
/* Bits that flip in files, and the repair of segments. */
#ifndef LEAT_TESTS_STORE_REPAIR_RIG_H
#define LEAT_TESTS_STORE_REPAIR_RIG_H

#include "tests/store/store_bench.h"

static inline void count_line(void *arg, const char *line)
{
    (void)line;
    ++*(unsigned *)arg;
}

static inline unsigned complaint_count(const struct leat_store *store)
{
    unsigned count = 0;
    leat_store_complaints(store, count_line, &count);
    return count;
}

/* The file's bytes move when it grows, as a start may have it do. */
static inline void bit_flip(struct bench *bench, uint64_t at, unsigned bit)
{
    fake_file(&bench->world, "store/0")->now[at] ^= (uint8_t)(1u << bit);
}

static inline void repair_ask(struct bench *bench, struct mine *mine, uint8_t *bytes)
{
    mine->busy = true;
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_REPAIR,
                                        .seg = mine->seg,
                                        .bytes = bytes,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
}

static inline leat_err repaired(struct bench *bench, struct mine *mine, uint8_t *bytes)
{
    repair_ask(bench, mine, bytes);
    fake_settle(&bench->world);
    assert_false(mine->busy);
    return mine->rc;
}

static inline void found_again(struct bench *bench, struct mine *mine)
{
    const struct leat_found *found = found_of(bench, mine);
    assert_non_null(found);
    assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
    assert_null(found->seg->buffer); /* the start has not looked at it */
    mine->seg = found->seg;
    mine->busy = false;
    leat_store_found_done(bench->store);
}

static inline const uint8_t *in_file(struct bench *bench, const struct mine *mine)
{
    return fake_file(&bench->world, "store/0")->now + mine->seg->file_offset;
}

#endif
