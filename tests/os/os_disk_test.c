/* SPDX-License-Identifier: Apache-2.0 */
/* The disk port: the outcome of each kind of operation, and operations that the system refuses. */
#include "tests/os/real_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/internal.h"

enum { BLOCK = 4096 };

static void nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops nothing_ops = {.on_wake = nothing, .on_turn_end = nothing};

/* ---- the queue ---- */

enum { OPERATIONS = 700, ROUNDS = 3, SYNC_EACH = 50 };

static struct queue_test {
    struct real_rig *real;
    const struct leat_disk *disk;
    struct leat_file *file;
    struct leat_disk_io io[OPERATIONS];
    uint8_t *blocks; /* one for each */
    unsigned told, round, flags;
} queue_test;

static uint8_t value_of(unsigned round, unsigned i)
{
    return (uint8_t)(1 + (round * 31 + i) % 255);
}

static void round_start(struct queue_test *test);

static void round_check(struct queue_test *test)
{
    static uint8_t block[BLOCK] __attribute__((aligned(BLOCK)));
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (i % SYNC_EACH == 0) continue;
        struct leat_disk_io read = {.kind = LEAT_DISK_READ,
                                    .file = test->file,
                                    .offset = (uint64_t)i * BLOCK,
                                    .buffer = block,
                                    .bytes = BLOCK};
        PORT_CHECK(test->disk->run(test->disk->ctx, &read) == LEAT_OK && read.done_bytes == BLOCK);
        PORT_CHECK(block[0] == value_of(test->round, i) && block[BLOCK - 1] == block[0]);
    }
}

static void operation_done(struct leat_disk_io *io)
{
    struct queue_test *test = io->owner;
    PORT_CHECK(io == &test->io[test->told]); /* once, in its turn */
    PORT_CHECK(io->rc == LEAT_OK);
    PORT_CHECK(io->kind == LEAT_DISK_SYNC || io->done_bytes == BLOCK);
    if (++test->told < OPERATIONS) return;
    round_check(test);
    if (++test->round < ROUNDS) {
        round_start(test);
        return;
    }
    test->disk->close(test->disk->ctx, test->file);
    test->real->rig.finish(test->real->rig.ctx);
}

static void round_start(struct queue_test *test)
{
    test->told = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        uint8_t *block = test->blocks + (size_t)i * BLOCK;
        memset(block, value_of(test->round, i), BLOCK);
        bool sync = i % SYNC_EACH == 0;
        test->io[i] = (struct leat_disk_io){.kind = sync ? LEAT_DISK_SYNC : LEAT_DISK_WRITE,
                                            .file = test->file,
                                            .offset = (uint64_t)i * BLOCK,
                                            .buffer = block,
                                            .bytes = sync ? 0 : BLOCK,
                                            .on_done = operation_done,
                                            .owner = test,
                                            /* groups of any length, from one up to more than fit */
                                            .together = !sync && i % 29 > test->round * 9};
    }
    for (unsigned i = 0; i < OPERATIONS; i++)
        test->disk->submit(test->disk->ctx, &test->io[i]);
}

static void queue_start(void *actor)
{
    struct queue_test *test = actor;
    test->disk = test->real->envs[PORT_DISK]->disk;
    PORT_CHECK(test->disk->open(test->disk->ctx, "q", LEAT_OPEN_CREATE | test->flags, &test->file,
                                NULL) == LEAT_OK);
    round_start(test);
}

/* Goal: each write and sync is told of once, in the order in which they were submitted, and is done then; of more
 * than one turn takes, round after round, whether the file is written directly or not. */
static void operations_are_told_once_and_in_order(void **state)
{
    (void)state;
    for (unsigned direct = 0; direct < 2; direct++) {
        struct port_rig *rig = real_rig_make();
        queue_test = (struct queue_test){.real = rig->ctx, .flags = direct ? LEAT_OPEN_DIRECT : 0};
        queue_test.blocks = aligned_alloc(BLOCK, (size_t)OPERATIONS * BLOCK);
        rig->attach(rig->ctx, PORT_DISK, &queue_test, &nothing_ops, queue_start);
        rig->run(rig->ctx);
        assert_int_equal(queue_test.round, ROUNDS);
        free(queue_test.blocks);
        real_rig_drop(rig);
    }
}

/* ---- refusals ---- */

struct refusals {
    struct real_rig *real;
    const struct leat_disk *disk;
};

static struct leat_file *file_of(const struct refusals *test, const char *path, unsigned flags)
{
    struct leat_file *file = NULL;
    PORT_CHECK(test->disk->open(test->disk->ctx, path, flags, &file, NULL) == LEAT_OK);
    return file;
}

static struct leat_disk_io op_of(enum leat_disk_kind kind, struct leat_file *file, uint64_t offset,
                                 size_t bytes)
{
    static uint8_t buffer[4 * BLOCK] __attribute__((aligned(BLOCK)));
    PORT_CHECK(bytes <= sizeof buffer);
    memset(buffer, 0x5a, sizeof buffer);
    return (struct leat_disk_io){
        .kind = kind, .file = file, .offset = offset, .buffer = buffer, .bytes = bytes};
}

static void paths_are_refused(const struct refusals *test)
{
    const struct leat_disk *disk = test->disk;
    struct leat_file *file = NULL;
    struct leat_error error;
    PORT_CHECK(disk->open(disk->ctx, "none", 0, &file, &error) == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->open(disk->ctx, "none", LEAT_OPEN_DIRECT, &file, &error) == LEAT_E_NOT_FOUND);
    PORT_CHECK(strstr(error.text, "can't open none: ") == error.text);
    disk->close(disk->ctx, file_of(test, "one", LEAT_OPEN_CREATE | LEAT_OPEN_EXCLUSIVE));
    for (unsigned direct = 0; direct < 2; direct++)
        PORT_CHECK(
            disk->open(disk->ctx, "one",
                       LEAT_OPEN_CREATE | LEAT_OPEN_EXCLUSIVE | (direct ? LEAT_OPEN_DIRECT : 0),
                       &file, &error) == LEAT_E_EXISTS);
    PORT_CHECK(disk->rename(disk->ctx, "none", "two") == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->remove(disk->ctx, "none") == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->sync_dir(disk->ctx, "none") == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->sync_dir(disk->ctx, "one") != LEAT_OK); /* no directory */
    PORT_CHECK(disk->list(disk->ctx, "none", NULL, NULL) == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->list(disk->ctx, "one", NULL, NULL) != LEAT_OK);
    PORT_CHECK(disk->make_dir(disk->ctx, "none/inner") == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->make_dir(disk->ctx, "inner") == LEAT_OK);
    PORT_CHECK(disk->make_dir(disk->ctx, "inner") == LEAT_OK); /* it is there */
    PORT_CHECK(disk->sync_dir(disk->ctx, "inner") == LEAT_OK &&
               disk->sync_dir(disk->ctx, "") == LEAT_OK);
    disk->close(disk->ctx, file_of(test, "inner/three", LEAT_OPEN_CREATE));
    PORT_CHECK(disk->remove(disk->ctx, "inner") != LEAT_OK); /* not empty */
    PORT_CHECK(disk->rename(disk->ctx, "inner/three", "one") == LEAT_OK);
    PORT_CHECK(disk->remove(disk->ctx, "inner") == LEAT_OK);
    PORT_CHECK(disk->remove(disk->ctx, "one") == LEAT_OK);
    PORT_CHECK(disk->open(disk->ctx, "one", 0, &file, NULL) == LEAT_E_NOT_FOUND);
}

static void changes_are_refused(const struct refusals *test)
{
    const struct leat_disk *disk = test->disk;
    struct leat_file *file = file_of(test, "kept", LEAT_OPEN_CREATE);
    struct leat_disk_io write = op_of(LEAT_DISK_WRITE, file, 0, BLOCK + 904);
    uint64_t size = 0;
    PORT_CHECK(disk->run(disk->ctx, &write) == LEAT_OK);
    disk->close(disk->ctx, file);
    file = file_of(test, "kept", LEAT_OPEN_READ);
    static const enum leat_disk_kind kinds[] = {LEAT_DISK_WRITE, LEAT_DISK_ZERO};
    for (unsigned i = 0; i < 2; i++) {
        struct leat_disk_io io = op_of(kinds[i], file, 0, BLOCK);
        PORT_CHECK(disk->run(disk->ctx, &io) == LEAT_E_DISK && io.rc == LEAT_E_DISK);
        PORT_CHECK(io.done_bytes == 0);
    }
    PORT_CHECK(disk->allocate(disk->ctx, file, UINT64_C(4) * BLOCK) != LEAT_OK);
    PORT_CHECK(disk->truncate(disk->ctx, file, 0) != LEAT_OK);
    disk->close(disk->ctx, file);
    file = file_of(test, "kept", 0);
    PORT_CHECK(disk->allocate(disk->ctx, file, UINT64_C(1) << 62) != LEAT_OK);
    PORT_CHECK(disk->size(disk->ctx, file, &size) == LEAT_OK && size == BLOCK + 904);
    PORT_CHECK(disk->allocate(disk->ctx, file, BLOCK) == LEAT_OK); /* it has that */
    PORT_CHECK(disk->size(disk->ctx, file, &size) == LEAT_OK && size == BLOCK + 904);
    disk->close(disk->ctx, file);
}

/* A read over the end of a file gets what there is, and says how much. */
static void reads_end_with_the_file(const struct refusals *test)
{
    const struct leat_disk *disk = test->disk;
    for (unsigned direct = 0; direct < 2; direct++) {
        struct leat_file *file = file_of(test, "kept", direct ? LEAT_OPEN_DIRECT : LEAT_OPEN_READ);
        static const uint64_t at[] = {0, BLOCK, UINT64_C(2) * BLOCK, UINT64_C(9) * BLOCK};
        static const size_t there[] = {BLOCK + 904, 904, 0, 0};
        for (unsigned i = 0; i < 4; i++) {
            struct leat_disk_io read = op_of(LEAT_DISK_READ, file, at[i], (size_t)4 * BLOCK);
            PORT_CHECK(disk->run(disk->ctx, &read) == LEAT_OK);
            PORT_CHECK(read.done_bytes == there[i]);
        }
        disk->close(disk->ctx, file);
    }
}

/* What the kernel has written of a piece, or has not: the rest goes where it belongs, and an error is one. */
static void rest_of_a_write_is_written(const struct refusals *test)
{
    static const int64_t results[] = {0, -EINTR, -EAGAIN, BLOCK, 904, (int64_t)2 * BLOCK};
    const struct leat_disk *disk = test->disk;
    uint8_t bytes[3 * BLOCK];
    for (unsigned i = 0; i < sizeof results / sizeof *results; i++) {
        struct leat_file *file = file_of(test, "rest", LEAT_OPEN_CREATE);
        struct leat_disk_io io = op_of(LEAT_DISK_WRITE, file, BLOCK, (size_t)2 * BLOCK);
        leat_os_disk_write_ended(&io, results[i]);
        PORT_CHECK(io.rc == LEAT_OK && io.done_bytes == (size_t)2 * BLOCK);
        const size_t took = results[i] > 0 ? (size_t)results[i] : 0;
        struct leat_disk_io read = {
            .kind = LEAT_DISK_READ, .file = file, .buffer = bytes, .bytes = sizeof bytes};
        PORT_CHECK(disk->run(disk->ctx, &read) == LEAT_OK);
        PORT_CHECK(read.done_bytes == (took < (size_t)2 * BLOCK ? sizeof bytes : 0));
        for (size_t b = 0; b < read.done_bytes;
             b++) /* what the kernel said it wrote, nobody did here */
            PORT_CHECK(bytes[b] == (b < BLOCK + took ? 0 : 0x5a));
        disk->close(disk->ctx, file);
        PORT_CHECK(disk->remove(disk->ctx, "rest") == LEAT_OK);
    }
    struct leat_file *file = file_of(test, "rest", LEAT_OPEN_CREATE);
    struct leat_disk_io io = op_of(LEAT_DISK_WRITE, file, 0, BLOCK);
    leat_os_disk_write_ended(&io, -EIO);
    PORT_CHECK(io.rc == LEAT_E_DISK && io.done_bytes == 0);
    leat_os_disk_write_ended(&io, -ENOSPC);
    PORT_CHECK(io.rc == LEAT_E_DISK_FULL);
    disk->close(disk->ctx, file);
}

static void name_count(void *arg, const char *name)
{
    static const char *const names[] = {"inner", "kept", "last"};
    unsigned *count = arg;
    PORT_CHECK(*count < 3 && strcmp(name, names[*count]) == 0);
    ++*count;
}

static void refusals_start(void *actor)
{
    struct refusals *test = actor;
    unsigned count = 0;
    test->disk = test->real->envs[PORT_DISK]->disk;
    paths_are_refused(test);
    changes_are_refused(test);
    reads_end_with_the_file(test);
    rest_of_a_write_is_written(test);
    PORT_CHECK(test->disk->make_dir(test->disk->ctx, "d") == LEAT_OK);
    static const char *const made[] = {"d/last", "d/inner", "d/kept"};
    for (unsigned i = 0; i < 3; i++)
        test->disk->close(test->disk->ctx, file_of(test, made[i], LEAT_OPEN_CREATE));
    PORT_CHECK(test->disk->list(test->disk->ctx, "d", name_count, &count) == LEAT_OK && count == 3);
    test->real->rig.finish(test->real->rig.ctx);
}

/* Goal: a call that the system refuses is refused by name, and has changed nothing; a call that the system does in part
 * is done. */
static void refusals_are_told(void **state)
{
    (void)state;
    struct port_rig *rig = real_rig_make();
    struct refusals test = {.real = rig->ctx};
    rig->attach(rig->ctx, PORT_DISK, &test, &nothing_ops, refusals_start);
    rig->run(rig->ctx);
    real_rig_drop(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_told_once_and_in_order),
        cmocka_unit_test(refusals_are_told),
    };
    return cmocka_run_group_tests_name("os disk", tests, NULL, NULL);
}
