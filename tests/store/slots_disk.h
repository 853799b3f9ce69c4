/* SPDX-License-Identifier: Apache-2.0 */
/* Store files on a disk that notes each call. For one test program only: it keeps state of its own. */
#ifndef LEAT_TESTS_STORE_SLOTS_DISK_H
#define LEAT_TESTS_STORE_SLOTS_DISK_H

#include "store/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FILES = 6, KIB = 1024, MIB = 1024 * 1024, UNIT = LEAT_SLOT_UNIT_BYTES, FILE_UNITS = 65536 };

struct leat_file {
    bool there, open;
    uint64_t bytes;
};
struct disk {
    struct leat_disk port;
    struct leat_file files[FILES];
    uint64_t space; /* for all files together; 0: any */
    leat_err open_rc, dir_rc, size_rc, allocate_rc, list_rc, make_rc;
    const char *names[12];     /* in the directory */
    struct leat_disk_io *zero; /* submitted */
    char did[4096];            /* what was called, since it was last looked at */
};
static struct disk disk;
static struct leat_slots slots;

/* ---- the disk ---- */

static void note(const char *format, unsigned long long a, unsigned long long b)
{
    size_t used = strlen(disk.did);
    assert_true(used + 64 < sizeof disk.did);
    snprintf(disk.did + used, sizeof disk.did - used, format, a, b);
}

/* And nothing else. */
static inline void did(const char *what)
{
    assert_string_equal(disk.did, what);
    disk.did[0] = 0;
}

static leat_err on_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                        struct leat_error *error)
{
    (void)ctx;
    unsigned number = 0;
    assert_int_equal(sscanf(path, "store/%u", &number), 1);
    assert_true(flags & LEAT_OPEN_DIRECT);
    note(flags & LEAT_OPEN_CREATE ? "create %llu;" : "open %llu;", number, 0);
    if (disk.open_rc) return leat_error_set(error, disk.open_rc, "can't be opened");
    struct leat_file *file = &disk.files[number % FILES];
    assert_true(file->there || flags & LEAT_OPEN_CREATE);
    file->there = file->open = true;
    *out_file = file;
    return LEAT_OK;
}
static void on_close(void *ctx, struct leat_file *file)
{
    (void)ctx;
    assert_true(file->open);
    file->open = false;
}
static leat_err on_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    (void)ctx;
    *out_bytes = file->bytes;
    return disk.size_rc;
}
static leat_err on_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    (void)ctx;
    uint64_t others = 0;
    for (unsigned i = 0; i < FILES; i++)
        if (&disk.files[i] != file) others += disk.files[i].bytes;
    note("%llu to %lluK;", (unsigned long long)(file - disk.files), bytes / KIB);
    if (disk.allocate_rc) return disk.allocate_rc;
    if (disk.space && others + bytes > disk.space) return LEAT_E_DISK_FULL;
    if (bytes > file->bytes) file->bytes = bytes;
    return LEAT_OK;
}
static leat_err on_make_dir(void *ctx, const char *path)
{
    (void)ctx;
    assert_string_equal(path, "store");
    return disk.make_rc;
}
static leat_err on_sync_dir(void *ctx, const char *path)
{
    (void)ctx;
    assert_string_equal(path, "store");
    note("dir;", 0, 0);
    return disk.dir_rc;
}
static leat_err on_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                        void *arg)
{
    (void)ctx;
    assert_string_equal(path, "store");
    if (disk.list_rc) return disk.list_rc;
    for (unsigned i = 0; disk.names[i]; i++)
        each(arg, disk.names[i]);
    return LEAT_OK;
}
static void on_submit(void *ctx, struct leat_disk_io *io)
{
    (void)ctx;
    assert_int_equal(io->kind, LEAT_DISK_ZERO);
    assert_null(disk.zero);
    disk.zero = io;
    note("zero %lluK at %lluK;", io->bytes / KIB, io->offset / KIB);
    assert_true(io->offset + io->bytes <= io->file->bytes);
}
static inline void zeroed(leat_err rc)
{
    struct leat_disk_io *io = disk.zero;
    assert_non_null(io);
    disk.zero = NULL;
    io->rc = rc;
    io->on_done(io);
}

static inline void begin(void)
{
    memset(&disk, 0, sizeof disk);
    disk.port = (struct leat_disk){.open = on_open,
                                   .close = on_close,
                                   .size = on_size,
                                   .allocate = on_allocate,
                                   .make_dir = on_make_dir,
                                   .sync_dir = on_sync_dir,
                                   .list = on_list,
                                   .submit = on_submit};
    assert_int_equal(leat_slots_init(&slots, &disk.port), LEAT_OK);
}

static inline void end(void)
{
    leat_slots_fini(&slots);
    for (unsigned i = 0; i < FILES; i++)
        assert_false(disk.files[i].open);
}

/* Open with these files there, of so many bytes. */
static inline void begin_with(uint64_t bytes0, uint64_t bytes1)
{
    begin();
    disk.files[0] = (struct leat_file){.there = true, .bytes = bytes0};
    disk.files[1] = (struct leat_file){.there = true, .bytes = bytes1};
    disk.names[0] = "0";
    disk.names[1] = bytes1 ? "1" : NULL;
    assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
    did(bytes1 ? "open 0;open 1;" : "open 0;");
    for (unsigned i = 0; i < slots.count; i++)
        leat_buddy_add(&slots.files[i]->buddy, 0, slots.files[i]->grown_units);
}

static inline struct leat_slot take(uint32_t capacity, enum leat_durability durability)
{
    struct leat_slot slot = {0};
    assert_int_equal(leat_slots_take(&slots, capacity, durability, &slot), LEAT_OK);
    assert_non_null(slot.file);
    assert_int_equal(slot.unit % (capacity / UNIT), 0);
    assert_true((slot.unit + capacity / UNIT) <= slot.file->here_units);
    assert_true(((uint64_t)slot.unit * UNIT + capacity) <= slot.file->file->bytes);
    return slot;
}

/* Files' sizes are counted; what is free is no more than what is there. */
static inline void counted(void)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < slots.count; i++)
        if (slots.files[i]) bytes += (uint64_t)slots.files[i]->here_units * UNIT;
    assert_int_equal(slots.disk_bytes, bytes);
}

#endif
