/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and structs that the reads of a fetch hold, by fetch_read.c alone: which fetches wait for them, and when they
 * go back. */
#include "broker/data/core_data.h"
#include "tests/broker/fetch_read_rig.h"

/* ---- buffers ---- */

/* Goal: bytes that have left memory are read again with a buffer, which goes back once they lie in a segment. */
static void run_that_has_left_memory_is_read_with_a_buffer(void **state)
{
    (void)state;
    for (unsigned pins = 0; pins < 2; pins++) {
        begin(1, 0);
        it.rc = LEAT_E_NO_MEMORY;
        assert_true(leat_fetch_read_at(&it.fetch));
        assert_ptr_equal(it.fetch.at, &it.items[0]);
        assert_int_equal(it.reads, 0);
        it.rc = LEAT_OK;
        it.pins = pins;
        run();
        assert_said(
            pins ? "read 7/1/0 from 40, 600 bytes\nread 7/1/0 from 40, 600 bytes, with a buffer\n"
                   "give a buffer\n"
                 : "read 7/1/0 from 40, 600 bytes\nread 7/1/0 from 40, 600 bytes, with a "
                   "buffer\n");
        assert_null(it.fetch.buffer);
        assert_int_equal(it.items[0].result.bytes, 200);
        leat_fetch_drop_reads(&it.fetch);
        assert_said(pins ? "unpin\n" : "give a buffer\n");
        end();
    }
}

static void buffer_is_waited_for(void **state)
{
    (void)state;
    begin(1, 0);
    it.rc = LEAT_E_NO_MEMORY;
    it.no_buffer = true;
    assert_false(leat_fetch_read_at(&it.fetch));
    assert_said("read 7/1/0 from 40, 600 bytes\nwait for a buffer\n");
    it.no_buffer = false;
    struct leat_list other, *ready = &alone.cores[0].data->ready_fetches;
    leat_list_init(&other);
    leat_list_push_back(ready, &other);
    leat_fetch_on_buffer(&it.fetch.buffer_wait, leat_buffer_try(&alone.cores[0]));
    assert_ptr_equal(ready->next, &other); /* it comes behind others */
    assert_ptr_equal(other.next, &it.fetch.link);
    leat_list_remove(&other);
    it.rc = LEAT_OK;
    run();
    assert_said("read 7/1/0 from 40, 600 bytes, with a buffer\n");
    end();
}

/* Goal: so it does where that is found out later, on the disk's or another core's word. */
static void buffer_is_waited_for_later(void **state)
{
    (void)state;
    begin(2, 0);
    it.later = true;
    assert_false(leat_fetch_read_at(&it.fetch));
    it.rc = LEAT_E_NO_MEMORY;
    it.no_buffer = true;
    ends_later();
    assert_said("read 7/1/0 from 40, 600 bytes\nwait for a buffer\n");
    assert_ptr_equal(it.fetch.at, &it.items[0]);
    end();
}

/* Goal: without memory, a fetch that nobody wants any more ends, and a fetch that has bytes is answered with these
 * bytes, however many it asked for. A fetch that has a buffer already is refused: there is no more memory to be had. */
static void run_without_memory_is_left(void **state)
{
    (void)state;
    begin(2, 0);
    it.fetch.peer = NULL;
    it.rc = LEAT_E_NO_MEMORY;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_null(it.fetch.at);
    end();
    begin(1, 0);
    it.fetch.bytes = 10;
    it.rc = LEAT_E_NO_MEMORY;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_null(it.fetch.at);
    assert_false(it.fetch.refused);
    assert_true(it.fetch.full);
    assert_int_equal(it.items[0].result.code, LEAT_OK);
    assert_int_equal(it.items[0].result.bytes, 0);
    assert_int_equal(it.items[0].result.next.segment, 0);
    assert_int_equal(it.items[0].result.resume, 0);
    assert_int_equal(it.items[0].result.acked_offset, 60);
    end();
    begin(1, 0);
    it.fetch.buffer = leat_buffer_try(&alone.cores[0]);
    it.rc = LEAT_E_NO_MEMORY;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_int_equal(it.items[0].result.code, LEAT_E_NO_MEMORY);
    end();
    begin(1, 0); /* the log's own refusal, not its read's */
    it.gone = true;
    it.absent = LEAT_E_NO_MEMORY;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_int_equal(it.items[0].result.code, LEAT_E_NO_MEMORY);
    end();
}

/* ---- structs ---- */

static void fetch_without_a_struct_stands_in_line(void **state)
{
    (void)state;
    enum { NONE, OTHERS, CALLED, HOLDS, RESTS, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        struct leat_list other;
        leat_list_init(&other);
        begin(1, 0);
        struct leat_core *core = &alone.cores[0];
        it.fetch.buffer = leat_buffer_try(core);
        if (i == NONE) it.no_read = true;
        if (i == OTHERS || i == CALLED) leat_list_push_back(&core->data->starved_reads, &other);
        if (i == CALLED) it.fetch.called = true;
        if (i == HOLDS) it.peer.reads = core->read_pool.left = 3;
        if (i == RESTS) it.peer.borrowed.rest_bytes = 1;
        bool done = leat_fetch_read_at(&it.fetch);
        assert_int_equal(done, i == CALLED);
        if (i != CALLED) {
            assert_said("give a buffer\n");
            assert_null(it.fetch.buffer);
            const struct leat_list *line =
                i >= HOLDS ? &it.peer.limited : &core->data->starved_reads;
            assert_ptr_equal(line->prev, &it.fetch.link);
            if (i == OTHERS) assert_ptr_equal(other.next, &it.fetch.link);
            assert_int_equal(it.fetch.at == &it.items[0], 1);
        }
        leat_list_remove(&other);
        leat_list_remove(&it.fetch.link);
        it.fetch.at = NULL;
        end();
    }
}

/* Goal: a called fetch that finds no struct stands in line like the others. */
static void call_is_good_for_one_try(void **state)
{
    (void)state;
    begin(1, 0);
    it.fetch.called = it.no_read = true;
    assert_false(leat_fetch_read_at(&it.fetch));
    assert_false(it.fetch.called);
    leat_list_remove(&it.fetch.link);
    it.fetch.at = NULL;
    end();
}

static void connection_holds_no_more_than_are_left(void **state)
{
    (void)state;
    begin(1, 0);
    static const struct {
        uint32_t reads, left;
        uint64_t rest;
        bool enough;
    } rows[] = {{0, 0, 0, false}, {1, 0, 0, true}, {2, 3, 0, false},
                {3, 3, 0, true},  {4, 3, 0, true}, {0, 3, 1, true}};
    for (unsigned i = 0; i < 6; i++) {
        it.peer.reads = rows[i].reads;
        alone.cores[0].read_pool.left = rows[i].left;
        it.peer.borrowed.rest_bytes = rows[i].rest;
        assert_int_equal(leat_fetch_peer_holds_enough(&it.peer), rows[i].enough);
    }
    it.fetch.at = NULL;
    end();
}

/* Goal: a fetch that has bytes waits for no struct, nor for more bytes; the ends of the other logs are looked at all
 * the same. */
static void ends_are_looked_at_without_a_struct(void **state)
{
    (void)state;
    begin(1, 0);
    it.fetch.bytes = 1;
    it.no_read = true;
    run();
    assert_null(it.fetch.at);
    assert_said("");
    assert_int_equal(it.items[0].result.first_offset, 5);
    assert_int_equal(it.items[0].result.acked_offset, 60);
    assert_int_equal(it.items[0].result.bytes, 0);
    assert_true(leat_list_empty(&it.fetch.link));
    assert_true(it.fetch.full);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_that_has_left_memory_is_read_with_a_buffer),
        cmocka_unit_test(buffer_is_waited_for),
        cmocka_unit_test(buffer_is_waited_for_later),
        cmocka_unit_test(run_without_memory_is_left),
        cmocka_unit_test(fetch_without_a_struct_stands_in_line),
        cmocka_unit_test(call_is_good_for_one_try),
        cmocka_unit_test(connection_holds_no_more_than_are_left),
        cmocka_unit_test(ends_are_looked_at_without_a_struct),
    };
    return cmocka_run_group_tests_name("broker fetch_hold", tests, NULL, NULL);
}
