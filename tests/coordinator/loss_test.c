/* SPDX-License-Identifier: Apache-2.0 */
/* Loss that an operator accepts: when it may be, and where the log goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/machine.h"
#include "tests/coordinator/one_machine.h"

enum { BAND_BITS = 40 };
#define OFFSET_MOST ((uint64_t)INT64_MAX >> 1)

/* Nodes a (1), b (2) and c (3); a's stream 1 has a streamlet of two logs. */
static int begin(void **state)
{
    (void)machine_begin(state);
    node_up("a", 1);
    assert_int_equal(stream_make("s", 1, 2), LEAT_OK);
    node_up("b", 2);
    node_up("c", 3);
    return 0;
}

static struct leat_machine_log *log_of(uint32_t q)
{
    return &machine->streams[0].logs[q];
}

static leat_err lose(uint32_t q, uint64_t next_offset, bool stands_in)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_ACCEPT_LOSS, 10);
    const uint64_t values[] = {1, 0, q, 7, next_offset, 1, log_of(q)->epoch.v, 512, 0x1234};
    for (unsigned i = 0; i < 9; i++)
        leat_msg_write_u64(&e.w, values[i]);
    leat_msg_write_bool(&e.w, stands_in);
    return applied(&e);
}

/* Whoever does not stand in has what is left, and needs nobody. Who does may give up only what nobody may have who
 * is expected back: what was heard of a log that waits counts while no incarnation was given out since. */
static void loss_waits_for_whoever_may_have_it(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 2 * 2 * 2 * 3 * 2; c++) {
        const bool opened = c & 1, stands_in = c & 2, down = c & 4, draining = c >= 24;
        const uint64_t next = machine->next_incarnation, heard[] = {next - 1, next, next + 1};
        const bool is_heard = (c >> 3) % 3 == 1, may_have = down && !draining;
        log_of(1)->record = (struct leat_log_record){
            .opened = opened, .stamp_epoch = {1}, .stamp_version = 1, .heard = heard[(c >> 3) % 3]};
        machine->nodes[2].info.state = down ? LEAT_NODE_DOWN : LEAT_NODE_UP;
        machine->nodes[2].info.draining = draining;
        const struct leat_machine_log before = *log_of(1);
        const uint64_t changes = machine->changes;
        const uint32_t epoch = machine->next_epoch;
        bool allowed = !stands_in || (opened ? is_heard : !may_have);
        leat_err rc = lose(1, 0, stands_in);
        if (rc != (allowed ? LEAT_OK : LEAT_E_AGAIN)) fail_msg("case %u: %d", c, rc);
        assert_int_equal(machine->changes, changes + allowed);
        assert_int_equal(machine->next_epoch, epoch + allowed);
        if (allowed) continue;
        assert_memory_equal(log_of(1), &before, sizeof before);
        assert_int_equal(strstr(result.error.text, "node 'c' is down") != NULL, may_have);
        assert_int_equal(result.epoch.v, 0);
    }
    assert_int_equal(log_of(0)->epoch.v, machine->streams[0].desc->streamlets[0].epoch.v);
}

/* Of several nodes that are down the first is named, and a node that is gone is not waited for. */
static void loss_names_the_first_that_is_down(void **state)
{
    (void)state;
    machine->nodes[0].info.state = LEAT_NODE_DOWN;
    machine->nodes[2].info.state = LEAT_NODE_DOWN;
    assert_int_equal(lose(0, 0, true), LEAT_E_AGAIN);
    assert_non_null(strstr(result.error.text, "node 'a' is down"));
    machine->nodes[0].info.state = LEAT_NODE_GONE;
    machine->nodes[2].info.state = LEAT_NODE_GONE;
    assert_int_equal(lose(0, 0, true), LEAT_OK);
}

/* The offset gap after the highest offset that any node reports. */
static void log_goes_on_beyond_all_offsets_it_had(void **state)
{
    (void)state;
    const uint64_t band = (uint64_t)1 << BAND_BITS;
    const struct {
        uint64_t asked, jumped, tail;
        bool opened;
        uint64_t goes_on; /* 0: refused */
    } cases[] = {
        {0, 0, 0, false, band},
        {5, 3, 4, false, band},
        {band - 1, 0, 0, true, band},
        {band, 0, 0, true, 2 * band},
        {0, band, 0, true, 2 * band},
        {0, 0, band, false, 2 * band},
        {0, 0, band, true, band}, /* of a log that waits, it is not where it ends */
        {3 * band, band, 2 * band, false, 4 * band},
        {band, 3 * band, 2 * band, false, 4 * band},
        {2 * band, band, 3 * band, false, 4 * band},
        {OFFSET_MOST - 1, 0, 0, true, ((OFFSET_MOST >> BAND_BITS) + 1) << BAND_BITS},
        {OFFSET_MOST, 0, 0, true, 0},
        {0, OFFSET_MOST, 0, true, 0},
        {0, 0, OFFSET_MOST, false, 0},
        {UINT64_MAX, 0, 0, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        *log_of(1) = (struct leat_machine_log){
            .record = {.opened = cases[i].opened, .tail.next_offset = cases[i].tail},
            .epoch = log_of(1)->epoch,
            .jumped_to = cases[i].jumped};
        const uint32_t epoch = machine->next_epoch;
        leat_err rc = lose(1, cases[i].asked, false);
        assert_int_equal(rc, cases[i].goes_on ? LEAT_OK : LEAT_E_INVALID);
        if (!cases[i].goes_on) continue;
        assert_int_equal(result.first_id, cases[i].goes_on);
        assert_int_equal(result.epoch.v, epoch);
        const struct leat_machine_log *log = log_of(1);
        assert_int_equal(log->epoch.v, epoch);
        assert_int_equal(log->jumped_to, cases[i].goes_on);
        assert_false(log->record.opened);
        assert_int_equal(log->record.heard, 0);
        assert_int_equal(log->record.tail.segment, 7);
        assert_int_equal(log->record.tail.prefix_id.bytes, 512);
        assert_int_equal(log->record.tail.prefix_id.crc, 0x1234);
        assert_int_equal(log->record.tail.next_offset, cases[i].goes_on);
        assert_true(log->record.tail.jumped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loss_waits_for_whoever_may_have_it, begin, machine_end),
        cmocka_unit_test_setup_teardown(loss_names_the_first_that_is_down, begin, machine_end),
        cmocka_unit_test_setup_teardown(log_goes_on_beyond_all_offsets_it_had, begin, machine_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
