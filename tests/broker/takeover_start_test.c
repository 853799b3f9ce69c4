/* SPDX-License-Identifier: Apache-2.0 */
/* The start entry of a segment that comes, which names the one before: read, read again where it is longer, and
 * damaged. takeover*.c alone. */
#include "tests/broker/takeover_rig.h"

static struct leat_takeover *reads(void)
{
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    it.seg.file_offset = 4096;
    it.seg.file = (void *)&it;
    adopted(LEAT_OK);
    said_enough();
    assert_ptr_equal(alone.io->file, &it);
    assert_true(takeover->busy);
    return takeover;
}

static void start_entry_is_read_whole(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = reads();
    it.start_end = 4097;
    alone_io_done(LEAT_OK, 4096);
    assert_said("where does the start of 1000 bytes end, by 4096?\n"
                "read 8192 bytes at 4096\n");
    it.start_end = 8192;
    alone_io_done(LEAT_OK, 8192);
    assert_said("where does the start of 1000 bytes end, by 8192?\n"
                "start entry in 8192 bytes\n"
                "mail to 1\n");
    assert_int_equal(takeover->first_retained, 2);
    alone.mail_count = 0;
    ends();
}

/* Goal: nothing that was read before counts where a read fails. */
static void start_entry_that_cant_be_read_is_none(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = reads();
    it.start_found = false;
    alone_io_done(LEAT_E_DISK, 4096);
    assert_said("where does the start of 1000 bytes end, by 0?\n"
                "start entry in 0 bytes\n"
                "take back segment 4, damaged\n"
                "node log warn: log 7/1/1\n");
    assert_null(takeover->seg);
    assert_pauses(takeover, TICK);
    it.start_found = true;
    later(TICK); /* another copy */
    assert_said("adopt 7/1/1 segment 4 1000:4 next 50, epoch 9\n");
    adopted(LEAT_OK);
    assert_said("read 4096 bytes at 4096\n");
    alone_io_done(LEAT_OK, 4096);
    alone.mail_count = 0;
    ends();
}

/* Goal: without memory to give it back it stays, and is read again. */
static void start_entry_damaged_without_memory_is_read_again(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = reads();
    it.start_found = false;
    it.take = LEAT_E_NO_MEMORY;
    alone_io_done(LEAT_OK, 4096);
    assert_said("where does the start of 1000 bytes end, by 4096?\n"
                "start entry in 4096 bytes\n"
                "take back segment 4, damaged\n");
    assert_ptr_equal(takeover->seg, &it.seg);
    later(TICK);
    assert_said("read 4096 bytes at 4096\n");
    it.take = LEAT_OK;
    alone_io_done(LEAT_OK, 4096);
    assert_null(takeover->seg);
    ends();
}

static void start_entry_waits_for_memory(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    leat_mem_fail_at(1);
    adopted(LEAT_OK);
    leat_mem_fail_at(0);
    assert_null(alone.io);
    assert_pauses(takeover, TICK);
    assert_ptr_equal(takeover->seg, &it.seg);
    later(TICK);
    assert_said("read 4096 bytes at 0\n");
    later(TICK);
    assert_said(""); /* it is being read */
    it.start_end = 5000;
    leat_mem_fail_at(1);
    alone_io_done(LEAT_OK, 4096);
    leat_mem_fail_at(0);
    assert_null(alone.io);
    assert_pauses(takeover, TICK);
    later(TICK);
    assert_said("read 4096 bytes at 0\n"); /* anew, from its first block */
    it.start_end = 0;
    alone_io_done(LEAT_OK, 4096);
    assert_int_equal(takeover->first_retained, 2);
    alone.mail_count = 0;
    ends();
}

/* Goal: an older one says nothing of where the log begins. */
static void older_start_entry_is_the_chain_alone(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 1000);
    it.seg.buffer = (uint8_t *)"";
    adopted(LEAT_OK);
    assert_int_equal(takeover->first_retained, 0);
    assert_int_equal(takeover->start.base_offset, 40);
    alone.mail_count = 0;
    ends();
}

/* Goal: a segment that can't be adopted after all is looked for. */
static void segment_that_cant_be_adopted_is_missing(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    adopted(LEAT_E_DAMAGED);
    assert_int_equal(takeover->nowhere, 1);
    assert_null(takeover->seg);
    assert_pauses(takeover, TICK);
    ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_entry_is_read_whole),
        cmocka_unit_test(start_entry_that_cant_be_read_is_none),
        cmocka_unit_test(start_entry_damaged_without_memory_is_read_again),
        cmocka_unit_test(start_entry_waits_for_memory),
        cmocka_unit_test(older_start_entry_is_the_chain_alone),
        cmocka_unit_test(segment_that_cant_be_adopted_is_missing),
    };
    return cmocka_run_group_tests_name("broker takeover_start", tests, NULL, NULL);
}
