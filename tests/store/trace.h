/* SPDX-License-Identifier: Apache-2.0 */
/* A store's disk operations, one by one, as they are submitted. For one test program only: the trace has static
 * state. */
#ifndef LEAT_TESTS_STORE_TRACE_H
#define LEAT_TESTS_STORE_TRACE_H

#include "tests/store/store_bench.h"

enum { OPS = 2048 };

static struct op {
    struct leat_disk_io io;
    const struct leat_disk_io *at;
    char file[40];
    uint64_t us; /* when */
} ops[OPS];
static unsigned op_count;
static void (*trace_submit)(void *ctx, struct leat_disk_io *io);

static inline void trace_on_submit(void *ctx, struct leat_disk_io *io)
{
    for (const struct leat_disk_io *it = io; it; it = it->beside ? it->then : NULL) {
        assert_true(op_count < OPS);
        struct op *op = &ops[op_count++];
        *op = (struct op){.io = *it, .at = it, .us = ((struct fake_world *)ctx)->now_us};
        snprintf(op->file, sizeof op->file, "%s", it->file->name);
    }
    trace_submit(ctx, io);
}

static inline struct bench *trace_begin(struct bench *bench)
{
    trace_submit = bench->world.disk.submit;
    bench->world.disk.submit = trace_on_submit;
    op_count = 0;
    return bench;
}

/* The n-th one was this write of a segment's bytes. */
static inline void wrote(unsigned n, const struct leat_segment *seg, uint32_t from, uint32_t to,
                         bool beside)
{
    assert_true(n < op_count);
    const struct leat_disk_io *io = &ops[n].io;
    assert_int_equal(io->kind, LEAT_DISK_WRITE);
    assert_ptr_equal(io->file, seg->file);
    assert_int_equal(io->offset, seg->file_offset + from);
    assert_int_equal(io->bytes, to - from);
    assert_ptr_equal(io->buffer, seg->buffer + from);
    assert_int_equal(io->beside, beside);
    assert_int_equal(io->together, !beside);
}

static inline void synced(unsigned n, const char *file, bool beside)
{
    assert_true(n < op_count);
    assert_int_equal(ops[n].io.kind, LEAT_DISK_SYNC);
    assert_string_equal(ops[n].file, file);
    assert_int_equal(ops[n].io.beside, beside);
}

#endif
