/* SPDX-License-Identifier: Apache-2.0 */
/* "identity" and "boots", by identity.c, boots.c and node_file.c alone: the contents of the two files, which of them
 * are believed, and the order of the writes. The disk is the test's: two files of a block each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "broker/node/bringup.h"
#include "tests/broker/alone.h"

enum { BLOCK = LEAT_NODE_FILE_BYTES };

struct leat_file {
    const char *name;
    uint8_t bytes[BLOCK];
    size_t size;
};

static struct {
    struct leat_file identity, boots;
    struct leat_disk disk;
    struct leat_random random;
    struct leat_env env;
    uint64_t next;        /* of the random numbers */
    const char *there;    /* what else the directory has */
    leat_err open, store; /* what fails */
    leat_err read, write, sync, dir;
    unsigned open_count;
    struct leat_error error;
    size_t memory_bytes;
} it;

/* ---- the disk ---- */

static leat_err disk_open(void *ctx, const char *name, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    assert_ptr_equal(ctx, &it);
    assert_int_equal(flags, LEAT_OPEN_CREATE);
    said("open %s", name);
    if (it.open != LEAT_OK) return leat_error_set(error, it.open, "not opened");
    *out_file = strcmp(name, "boots") == 0 ? &it.boots : &it.identity;
    (*out_file)->name = name;
    it.open_count++;
    return LEAT_OK;
}
static void disk_close(void *ctx, struct leat_file *file)
{
    assert_ptr_equal(ctx, &it);
    said("close %s", file->name);
    it.open_count--;
}
static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    assert_ptr_equal(ctx, &it);
    if (io->kind == LEAT_DISK_SYNC) {
        said("sync %s", io->file->name);
        return it.sync;
    }
    assert_int_equal(io->offset, 0);
    assert_int_equal(io->bytes, BLOCK);
    if (io->kind == LEAT_DISK_READ) {
        said("read %s", io->file->name);
        memcpy(io->buffer, io->file->bytes, io->file->size);
        io->done_bytes = io->file->size;
        return it.read;
    }
    assert_int_equal(io->kind, LEAT_DISK_WRITE);
    said("write %s", io->file->name);
    if (it.write != LEAT_OK) return it.write;
    memcpy(io->file->bytes, io->buffer, BLOCK);
    io->file->size = BLOCK;
    return LEAT_OK;
}
static leat_err disk_sync_dir(void *ctx, const char *name)
{
    assert_ptr_equal(ctx, &it);
    said("sync directory %s", name);
    return it.dir;
}
static leat_err disk_list(void *ctx, const char *directory,
                          void (*each)(void *arg, const char *name), void *arg)
{
    assert_ptr_equal(ctx, &it);
    assert_string_equal(directory, ".");
    each(arg, "identity");
    if (it.there != NULL) each(arg, it.there);
    each(arg, "lost+found");
    return LEAT_OK;
}
static uint64_t random_next(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return it.next++;
}
leat_err leat_store_join(struct leat_store *store, const uint8_t cluster_id[16],
                         struct leat_error *error)
{
    assert_ptr_equal(store, &it.boots);
    said("the store joins %.16s", (const char *)cluster_id);
    return it.store == LEAT_OK ? LEAT_OK : leat_error_set(error, it.store, "the store refuses");
}

/* ---- the rig ---- */

static struct leat_node *begin(bool in_cluster)
{
    struct leat_node *node = &alone.node;
    alone_begin();
    memset(&it, 0, sizeof it);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    it.disk = (struct leat_disk){.ctx = &it,
                                 .open = disk_open,
                                 .close = disk_close,
                                 .run = disk_run,
                                 .sync_dir = disk_sync_dir,
                                 .list = disk_list};
    it.random = (struct leat_random){.ctx = &it, .next = random_next};
    it.next = 0x3130393837363534; /* "45678901" */
    it.env = alone.env;
    it.env.disk = &it.disk;
    it.env.random = &it.random;
    node->options.store_env = &it.env;
    node->store = (void *)&it.boots;
    if (in_cluster) node->options.cluster.node_address = "here:1";
    return node;
}

static void end(void)
{
    assert_int_equal(it.open_count, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    alone_end();
}

/* A file of a magic word, version, checksum and content, as the docs have it. */
static void file_is(struct leat_file *file, const char *magic, uint32_t version,
                    const void *content, size_t bytes)
{
    memset(file->bytes, 0, BLOCK);
    memcpy(file->bytes, magic, 8);
    memcpy(file->bytes + 8, &version, 4);
    memcpy(file->bytes + 16, content, bytes);
    leat_put_le32(file->bytes + 12, leat_crc32c(0, file->bytes, 16 + bytes));
    file->size = BLOCK;
}
static void assert_file(const struct leat_file *file, const char *magic, const void *content,
                        size_t bytes)
{
    struct leat_file expected;
    file_is(&expected, magic, 1, content, bytes);
    assert_int_equal(file->size, BLOCK);
    assert_memory_equal(file->bytes, expected.bytes, BLOCK);
}

#define WRITES(name) "write " name "\nsync " name "\nsync directory .\n"

/* ---- identity ---- */

static void server_alone_makes_up_its_cluster(void **state)
{
    (void)state;
    struct leat_node *node = begin(false);
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_said("open identity\nread identity\n" WRITES("identity") "close identity\n");
    assert_memory_equal(node->cluster_id, "4567890155678901", 16);
    assert_file(&it.identity, "LEATIDNT", "4567890155678901", 16);
    assert_false(node->joining);
    /* The next start has it from there, and writes it once more. */
    memset(node->cluster_id, 0, 16);
    it.there = "catalogue";
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_said("open identity\nread identity\n" WRITES("identity") "close identity\n");
    assert_memory_equal(node->cluster_id, "4567890155678901", 16);
    assert_file(&it.identity, "LEATIDNT", "4567890155678901", 16);
    /* A start that was cut short before its write was durable left zeros. */
    memset(it.identity.bytes, 0, BLOCK);
    it.there = "notes";
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_memory_equal(node->cluster_id, "6567890175678901", 16);
    end();
}

/* Goal: data is never taken for that of another cluster. */
static void directory_without_identity_has_no_data(void **state)
{
    (void)state;
    static const char *const names[] = {"catalogue", "raft"};
    for (unsigned i = 0; i < 2; i++) {
        struct leat_node *node = begin(false);
        it.there = names[i];
        assert_int_equal(leat_node_identity(node, &it.error), LEAT_E_DAMAGED);
        assert_string_equal(it.error.text,
                            "the data directory holds data, but its file \"identity\" is missing "
                            "or empty: restore it from a copy, or choose another directory");
        assert_said("open identity\nread identity\nclose identity\n");
        assert_int_equal(it.identity.size, 0);
        end();
    }
}

static void node_of_a_cluster_learns_its_cluster(void **state)
{
    (void)state;
    struct leat_node *node = begin(true);
    it.there = "raft"; /* as the coordinator has begun */
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_said("open identity\nread identity\nclose identity\n");
    assert_true(node->joining);
    assert_int_equal(leat_node_identity_set(node, (const uint8_t *)"abcdefghijklmnop", &it.error),
                     LEAT_OK);
    assert_said("open identity\n" WRITES("identity") "close identity\n"
                                                     "the store joins abcdefghijklmnop\n");
    assert_file(&it.identity, "LEATIDNT", "abcdefghijklmnop", 16);
    assert_memory_equal(node->cluster_id, "abcdefghijklmnop", 16);
    it.store = LEAT_E_DISK;
    assert_int_equal(leat_node_identity_set(node, (const uint8_t *)"abcdefghijklmnop", &it.error),
                     LEAT_E_DISK);
    assert_string_equal(it.error.text, "the store refuses");
    node->joining = false;
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_false(node->joining);
    end();
}

static void identity_is_not_learnt_where_it_is_not_kept(void **state)
{
    (void)state;
    struct leat_node *node = begin(true);
    const uint8_t *id = (const uint8_t *)"abcdefghijklmnop";
    leat_mem_fail_at(1);
    assert_int_equal(leat_node_identity_set(node, id, &it.error), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(it.error.text, "no memory to write \"identity\"");
    assert_said("");
    it.open = LEAT_E_DISK;
    assert_int_equal(leat_node_identity_set(node, id, &it.error), LEAT_E_DISK);
    assert_said("open identity\n");
    it.open = LEAT_OK;
    leat_err *const fails[] = {&it.write, &it.sync, &it.dir};
    static const char *const expected[] = {
        "open identity\nwrite identity\nclose identity\n",
        "open identity\nwrite identity\nsync identity\nclose identity\n",
        "open identity\n" WRITES("identity") "close identity\n"};
    for (unsigned i = 0; i < 3; i++) {
        *fails[i] = LEAT_E_DISK;
        assert_int_equal(leat_node_identity_set(node, id, &it.error), LEAT_E_DISK);
        assert_int_equal(it.error.code, LEAT_E_DISK);
        assert_non_null(strstr(it.error.text, "can't write \"identity\" in the data directory: "));
        assert_said(expected[i]);
        *fails[i] = LEAT_OK;
    }
    static const uint8_t none[16];
    assert_memory_equal(node->cluster_id, none, 16);
    end();
}

static void identity_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct leat_node *node = begin(false);
    const struct {
        leat_err rc;
        const char *text;
    } damaged = {LEAT_E_DAMAGED, "the file \"identity\" in the data directory is damaged: restore "
                                 "it from a copy"},
      unknown = {LEAT_E_UNSUPPORTED, "the data directory has format 2, this program knows 1"};
    for (unsigned i = 0; i < 6; i++) {
        file_is(&it.identity, i == 3 ? "LEATBOOT" : "LEATIDNT", i == 4 ? 2 : 1, "abcdefghijklmnop",
                16);
        if (i == 0) { /* what is not there is not zeros */
            file_is(&it.identity, "LEATIDNT", 1, "abcdefghijklmno", 16);
            it.identity.size = 31;
        }
        if (i == 1) it.identity.bytes[31] ^= 1;
        if (i == 2) it.identity.bytes[7] ^= 1;
        if (i == 5) it.identity.size = 1; /* it was something */
        assert_int_equal(leat_node_identity(node, &it.error), i != 4 ? damaged.rc : unknown.rc);
        assert_string_equal(it.error.text, i != 4 ? damaged.text : unknown.text);
        assert_said("open identity\nread identity\nclose identity\n");
    }
    file_is(&it.identity, "LEATIDNT", 1, "abcdefghijklmnop", 16);
    it.identity.size = 32; /* all that counts of it */
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_OK);
    assert_said("open identity\nread identity\n" WRITES("identity") "close identity\n");
    it.sync = LEAT_E_DISK;
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_E_DISK);
    it.read = LEAT_E_DISK;
    said_enough();
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_E_DISK);
    assert_int_equal(it.error.code, LEAT_E_DISK);
    assert_non_null(strstr(it.error.text, "can't read \"identity\" in the data directory: "));
    assert_said("open identity\nread identity\nclose identity\n");
    leat_mem_fail_at(1);
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(it.error.text, "no memory to read \"identity\"");
    assert_said("open identity\nclose identity\n");
    it.open = LEAT_E_DISK;
    assert_int_equal(leat_node_identity(node, &it.error), LEAT_E_DISK);
    assert_said("open identity\n");
    end();
}

/* ---- boots ---- */

static void assert_boots(uint64_t before, uint64_t now)
{
    const uint64_t marks[2] = {before, now};
    assert_file(&it.boots, "LEATBOOT", marks, sizeof marks);
    assert_int_equal(alone.node.boot_before, before);
    assert_int_equal(alone.node.boot, now);
}

static void each_start_has_a_mark(void **state)
{
    (void)state;
    struct leat_node *node = begin(true);
    it.next = 0; /* which is none */
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_said(
        "open boots\nread boots\nclose boots\nopen boots\n" WRITES("boots") "close boots\n");
    assert_boots(0, 1);
    /* Cut short before it was heard of: it goes on under the same mark. */
    node->boot = node->boot_before = 0;
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_said("open boots\nread boots\nclose boots\n");
    assert_boots(0, 1);
    assert_int_equal(leat_node_boot_taken(node, &it.error), LEAT_OK);
    assert_said("open boots\n" WRITES("boots") "close boots\n");
    assert_boots(1, 0);
    node->boot = node->boot_before = 0;
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_boots(1, 2);
    end();
}

static void server_alone_has_no_marks(void **state)
{
    (void)state;
    struct leat_node *node = begin(false);
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_int_equal(leat_node_boot_taken(node, &it.error), LEAT_OK);
    assert_said("");
    end();
}

static void boots_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct leat_node *node = begin(true);
    const uint64_t marks[2] = {5, 6};
    for (unsigned i = 0; i < 3; i++) {
        file_is(&it.boots, i == 0 ? "LEATIDNT" : "LEATBOOT", i == 1 ? 2 : 1, marks, sizeof marks);
        if (i == 2) it.boots.bytes[31] ^= 1;
        assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_DAMAGED);
        assert_string_equal(it.error.text,
                            "the file \"boots\" in the data directory is damaged: restore it from "
                            "a copy, or start with an empty directory");
        assert_said("open boots\nread boots\nclose boots\n");
    }
    assert_int_equal(node->boot, 0);
    file_is(&it.boots, "LEATBOOT", 1, marks, sizeof marks);
    it.boots.bytes[0] = 0; /* not all of the first word */
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_DAMAGED);
    memset(it.boots.bytes, 0, 8); /* new, whatever is behind it */
    said_enough();
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_boots(0, 0x3130393837363534);
    node->boot = 0;
    file_is(&it.boots, "LEATBOOT", 1, marks, sizeof marks);
    it.boots.size = BLOCK - 1; /* it was never flushed */
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_OK);
    assert_boots(0, 0x3130393837363535);
    end();
}

static void start_fails_where_its_mark_is_not_kept(void **state)
{
    (void)state;
    struct leat_node *node = begin(true);
    it.read = LEAT_E_DISK;
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_DISK);
    assert_non_null(strstr(it.error.text, "can't read \"boots\" in the data directory: "));
    it.read = LEAT_OK;
    it.write = LEAT_E_DISK;
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_DISK);
    assert_non_null(strstr(it.error.text, "can't write \"boots\" in the data directory: "));
    assert_int_equal(leat_node_boot_taken(node, &it.error), LEAT_E_DISK);
    it.open = LEAT_E_DISK;
    said_enough();
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_DISK);
    assert_said("open boots\n");
    leat_mem_fail_at(1);
    assert_int_equal(leat_node_boot_begin(node, &it.error), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(it.error.text, "no memory for the file \"boots\"");
    assert_said("");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_alone_makes_up_its_cluster),
        cmocka_unit_test(directory_without_identity_has_no_data),
        cmocka_unit_test(node_of_a_cluster_learns_its_cluster),
        cmocka_unit_test(identity_is_not_learnt_where_it_is_not_kept),
        cmocka_unit_test(identity_that_makes_no_sense_is_refused),
        cmocka_unit_test(each_start_has_a_mark),
        cmocka_unit_test(server_alone_has_no_marks),
        cmocka_unit_test(boots_that_make_no_sense_are_refused),
        cmocka_unit_test(start_fails_where_its_mark_is_not_kept),
    };
    return cmocka_run_group_tests_name("broker node_files", tests, NULL, NULL);
}
