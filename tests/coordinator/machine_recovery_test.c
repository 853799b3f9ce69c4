/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine: entries that give logs other owners, or give up a log's lost records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/adopt.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/machine_rig.h"

static leat_err recovered(struct leat_machine *m, struct command *command,
                          const struct leat_machine_log *seen, uint64_t owner)
{
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    struct leat_msg_writer w = recover_begin(command, stream, 0, owner);
    recover_log(&w, &seen[0], LEAT_RECOVER_TAIL, 3);
    recover_log(&w, &seen[1], LEAT_RECOVER_STANDS, 0);
    return entry_apply(m, command, &w);
}

/* A row for the first of its logs alone. */
static leat_err recovered_in_part(struct leat_machine *m, struct command *command,
                                  const struct leat_machine_log *seen, uint64_t owner)
{
    const struct leat_stream_desc *desc = leat_machine_name_find(m, "s", 1)->desc;
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(&w, 99);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 6);
    leat_msg_write_u64(&w, desc->id);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, desc->streamlets[0].owner);
    leat_msg_write_u64(&w, desc->streamlets[0].epoch.v);
    leat_msg_write_u64(&w, owner);
    leat_msg_write_array(&w, 1);
    recover_log(&w, &seen[0], LEAT_RECOVER_TAIL, 3);
    return entry_apply(m, command, &w);
}

/* From a node's CRASH entry on, no entry in the node's name counts. The node's streamlet goes to another node once,
 * never away from a live node, and never when the streamlet's state has changed since the recovery read it. */
static void machine_recovery_takes_only_what_it_saw(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    node_up(it.m, it.command, "a"); /* incarnation 1 */
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2};
    assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
                     LEAT_OK);
    node_up(it.m, it.command, "b"); /* 2 */
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    uint32_t epoch = stream->desc->streamlets[0].epoch.v;
    assert_int_equal(opened(it.m, it.command, epoch, 1, 1), LEAT_OK);
    struct leat_machine_log seen[2] = {stream->logs[0], stream->logs[1]};

    assert_int_equal(recovered(it.m, it.command, seen, 2), LEAT_E_AGAIN); /* it lives */
    assert_int_equal(opened(it.m, it.command, epoch, 1, 2), LEAT_OK); /* another version since */
    assert_int_equal(crash(it.m, it.command, "a", 7), LEAT_E_STALE_EPOCH);
    assert_int_equal(crash(it.m, it.command, "a", 1), LEAT_OK);
    assert_int_equal(crash(it.m, it.command, "a", 1), LEAT_OK);
    assert_true(it.m->nodes[0].info.crashed);
    assert_int_equal(it.m->nodes[0].info.state, LEAT_NODE_DOWN);
    assert_int_equal(opened(it.m, it.command, epoch, 1, 3), LEAT_E_STALE_EPOCH);
    assert_int_equal(recovered(it.m, it.command, seen, 2),
                     LEAT_E_AGAIN); /* of the version before */
    seen[0] = stream->logs[0];
    assert_int_equal(recovered(it.m, it.command, seen, 1), LEAT_E_AGAIN); /* to one who is gone */
    assert_int_equal(recovered_in_part(it.m, it.command, seen, 2),
                     LEAT_E_AGAIN); /* of one log of two */
    machine_restore_copy(it.m, it.copy);
    machines_compare(it.m, it.copy);
    uint32_t next_epoch = it.m->next_epoch;
    assert_int_equal(recovered(it.m, it.command, seen, 2), LEAT_OK);
    stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(stream->desc->streamlets[0].owner, 2);
    assert_int_equal(stream->desc->streamlets[0].epoch.v, next_epoch);
    assert_int_equal(stream->logs[0].record.tail.segment, 3);
    assert_true(stream->logs[1].record.tail.segment == UINT64_MAX);
    assert_int_equal(it.m->nodes[0].info.streamlets, 0);
    assert_int_equal(it.m->nodes[1].info.streamlets, 1);
    leat_machine_check(it.m);
    assert_int_equal(recovered(it.m, it.command, seen, 2), LEAT_E_AGAIN); /* a second time */
    /* The copy made from a snapshot comes to the same. */
    assert_int_equal(recovered(it.copy, it.command, seen, 2), LEAT_OK);
    assert_int_equal(recovered(it.copy, it.command, seen, 2), LEAT_E_AGAIN);
    machines_compare(it.m, it.copy);
    machines_free(&it);
}

/* Goal: a recovery with fewer streamlets than its head says is no entry: it changes nothing, also of the streamlets
 * whose rows are there. */
static void machine_recovery_that_lacks_streamlets_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m), *copy = calloc(1, sizeof *copy);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && copy && command);
    leat_machine_init(m, 1);
    leat_machine_init(copy, 1);
    node_up(m, command, "a");
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2};
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings), LEAT_OK);
    node_up(m, command, "b");
    assert_int_equal(crash(m, command, "a", 1), LEAT_OK);
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    struct leat_machine_log seen[2] = {stream->logs[0], stream->logs[1]};
    machine_restore_copy(m, copy);
    for (uint32_t said = 2; said >= 1; said--) {
        machines_compare(m, copy); /* nothing has changed so far */
        struct leat_msg_writer w = recover_begin(command, stream, 0, 2);
        struct leat_msg_writer head = command_begin(command, LEAT_COMMAND_RECOVER, 2);
        leat_msg_write_u64(&head, 99);
        leat_msg_write_array(&head, said);
        recover_log(&w, &seen[0], LEAT_RECOVER_STANDS, 0);
        recover_log(&w, &seen[1], LEAT_RECOVER_STANDS, 0);
        assert_int_equal(entry_apply(m, command, &w), said == 1 ? LEAT_OK : LEAT_E_CORRUPT);
    }
    assert_int_equal(stream->desc->streamlets[0].owner, 2);
    leat_machine_fini(m);
    leat_machine_fini(copy);
    free(m);
    free(copy);
    free(command);
}

/* All nodes were heard when incarnation `heard` was the next: the best they have is segment 7. */
static leat_err waits(struct leat_machine *m, struct command *command,
                      const struct leat_machine_log *seen, uint64_t owner, uint64_t heard)
{
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    struct leat_msg_writer w = recover_begin(command, stream, 0, owner);
    leat_msg_write_array(&w, 9);
    leat_msg_write_u64(&w, seen[0].epoch.v);
    leat_msg_write_u64(&w, seen[0].record.stamp_epoch.v);
    leat_msg_write_u64(&w, seen[0].record.stamp_version);
    leat_msg_write_u64(&w, LEAT_RECOVER_WAITS);
    leat_msg_write_u64(&w, 7);
    leat_msg_write_u64(&w, 512);
    leat_msg_write_u64(&w, 0x1234);
    leat_msg_write_u64(&w, 100);
    leat_msg_write_u64(&w, heard);
    recover_log(&w, &seen[1], LEAT_RECOVER_WAITS, 0);
    return entry_apply(m, command, &w);
}

static struct leat_machine_result lost(struct leat_machine *m, struct command *command,
                                       uint64_t incarnation, uint32_t epoch, bool stands_in)
{
    struct leat_machine_result result;
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_ACCEPT_LOSS, 10);
    for (int k = 0; k < 3; k++)
        leat_msg_write_u64(&w, k == 0); /* log 1/0/0 */
    leat_msg_write_u64(&w, 7);
    leat_msg_write_u64(&w, 100);
    leat_msg_write_u64(&w, incarnation);
    leat_msg_write_u64(&w, epoch);
    leat_msg_write_u64(&w, 512);
    leat_msg_write_u64(&w, 0x1234);
    leat_msg_write_bool(&w, stands_in);
    command_end(command, &w);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result;
}

static leat_err drained(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_DRAIN, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_bool(&w, true);
    return entry_apply(m, command, &w);
}

static leat_err undrained(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_DRAIN, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_bool(&w, false);
    return entry_apply(m, command, &w);
}

/* No end of the streamlet's logs is decided: only the last owner may own the streamlet again, and its log still waits
 * for the open replicas of the log's previous epoch. */
static void machine_streamlet_without_a_decision_goes_to_its_last_node_alone(void **state)
{
    (void)state;
    struct machines it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(waits(it.m, it.command, it.seen, 2, 3), LEAT_E_AGAIN); /* b never had it */
    assert_int_equal(waits(it.m, it.command, it.seen, 1, 3), LEAT_E_AGAIN); /* that one is gone */
    node_up(it.m, it.command, "a");                                         /* 3 */
    assert_int_equal(waits(it.m, it.command, it.seen, 3, 4), LEAT_OK);
    assert_int_equal(stream->desc->streamlets[0].owner, 3);
    assert_true(leat_machine_log_waits(&stream->logs[0]));
    assert_int_equal(stream->logs[0].record.stamp_epoch.v, it.seen[0].record.stamp_epoch.v);
    assert_int_equal(stream->logs[0].record.tail.segment, 7);
    assert_int_equal(stream->logs[0].record.heard, 4);
    assert_false(leat_machine_log_waits(&stream->logs[1]));
    assert_int_equal(waits(it.m, it.command, it.seen, 3, 4), LEAT_E_AGAIN); /* a second time */
    waiting_free(&it);
}

/* If all nodes were drained no stream could be made, so the last node is recognized. A node that is down counts, since
 * it may come back. The entry itself is applied all the same: voters of a version without this rule apply it. */
static void machine_tells_the_last_node_and_takes_its_drain(void **state)
{
    (void)state;
    struct machines it = waiting_make(); /* a and b; a is down */
    assert_false(leat_machine_drains_last(it.m, "b", 1));
    assert_false(leat_machine_drains_last(it.m, "x", 1));
    assert_int_equal(drained(it.m, it.command, "b"), LEAT_OK);
    assert_false(leat_machine_drains_last(it.m, "b", 1)); /* it is */
    assert_true(leat_machine_drains_last(it.m, "a", 1));
    assert_int_equal(undrained(it.m, it.command, "b"), LEAT_OK);
    assert_int_equal(drained(it.m, it.command, "a"), LEAT_OK);
    assert_true(leat_machine_drains_last(it.m, "b", 1));
    node_up(it.m, it.command, "c");
    assert_false(leat_machine_drains_last(it.m, "b", 1));
    assert_int_equal(drained(it.m, it.command, "b"), LEAT_OK);
    assert_true(leat_machine_drains_last(it.m, "c", 1));
    assert_int_equal(drained(it.m, it.command, "c"), LEAT_OK);
    machine_restore_copy(it.m, it.copy);
    machines_compare(it.m, it.copy);
    waiting_free(&it);
}

/* Missing records are given up only by the present owner, and only when every node that may come back has been heard.
 * Offsets go on after every earlier offset gap, whatever is known of the gap. */
static void machine_loss_is_accepted_once_all_were_heard(void **state)
{
    (void)state;
    struct machines it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    /* An operator says that a does not come back: b may answer for it. */
    assert_int_equal(drained(it.m, it.command, "a"), LEAT_OK);
    assert_int_equal(waits(it.m, it.command, it.seen, 2, 3), LEAT_OK);
    uint32_t epoch = stream->logs[0].epoch.v;
    assert_int_equal(lost(it.m, it.command, 1, epoch, true).rc, LEAT_E_STALE_EPOCH);
    assert_int_equal(lost(it.m, it.command, 2, epoch - 1, true).rc, LEAT_E_STALE_EPOCH);
    node_up(it.m, it.command, "c"); /* nobody has asked it yet */
    assert_int_equal(lost(it.m, it.command, 2, epoch, true).rc, LEAT_E_AGAIN);
    struct leat_machine_log now[2] = {stream->logs[0], stream->logs[1]};
    assert_int_equal(waits(it.m, it.command, now, 2, it.m->next_incarnation), LEAT_OK);
    assert_int_equal(stream->logs[0].epoch.v, epoch); /* nothing but what is known has changed */
    struct leat_machine_result result = lost(it.m, it.command, 2, epoch, true);
    assert_int_equal(result.rc, LEAT_OK);
    assert_true(stream->logs[0].record.tail.jumped);
    assert_int_equal(stream->logs[0].record.tail.prefix_id.bytes, 512);
    assert_true(stream->logs[0].record.tail.next_offset == (uint64_t)result.first_id);
    int64_t first = result.first_id;
    assert_int_equal(first, 1ll << 40);
    assert_int_equal(opened(it.m, it.command, result.epoch.v, 2, 1), LEAT_OK);
    machine_restore_copy(it.m, it.copy);
    /* All that was written after that is lost as well, and forgotten. */
    result = lost(it.m, it.command, 2, result.epoch.v, false);
    assert_int_equal(result.rc, LEAT_OK);
    assert_int_equal(result.first_id, 2 * first);
    assert_int_equal(lost(it.copy, it.command, 2, stream->logs[0].epoch.v - 1, false).first_id,
                     2 * first);
    machines_compare(it.m, it.copy);
    waiting_free(&it);
}

/* A node that has the end that an operator left adopts the log. A node without this end adopts the log only where no
 * other node can have the end: else recovery asks the other nodes. */
static void adopt_leaves_to_recovery_what_was_left_elsewhere(void **state)
{
    (void)state;
    for (uint32_t copies = 1; copies <= 2; copies++) {
        struct machines it = machines_make(1);
        struct leat_stream_settings settings = {.streamlets = 1, .logs = 1, .copies = copies};
        node_up(it.m, it.command, "a");
        node_up(it.m, it.command, "b");
        assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
                         LEAT_OK);
        const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
        uint32_t epoch = stream->desc->streamlets[0].epoch.v;
        uint64_t owner = stream->desc->streamlets[0].owner;
        assert_int_equal(lost(it.m, it.command, owner, epoch, false).rc, LEAT_OK);
        struct leat_log_marks marks = {.log = {1, 0, 0},
                                       .has_closed = true,
                                       .closed_segment = 7,
                                       .closed_prefix_id = {512, 0x1234}};
        for (unsigned here = 0; here < 2; here++) {
            struct leat_coordinate request = {
                .incarnation = owner, .marks = &marks, .mark_count = here};
            struct leat_error error;
            assert_int_equal(leat_adopt_decide(it.m, &request, true, &error), LEAT_OK);
            assert_int_equal(request.decision_count, 1);
            bool left = copies > 1 && !here;
            assert_int_equal(request.decisions[0].left, left);
            assert_int_equal(request.decisions[0].kind,
                             left ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL);
            leat_mem_free(request.decisions);
        }
        machines_free(&it);
    }
}

/* A node that is down and not given up is named. */
static void machine_loss_names_the_node_that_may_have_it(void **state)
{
    (void)state;
    struct machines it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(recovered(it.m, it.command, it.seen, 2), LEAT_OK); /* a tail, and it is away */
    struct leat_machine_result result = lost(it.m, it.command, 2, stream->logs[0].epoch.v, true);
    assert_int_equal(result.rc, LEAT_E_AGAIN);
    assert_non_null(strstr(result.error.text, "'a'"));
    node_up(it.m, it.command, "a");
    assert_int_equal(lost(it.m, it.command, 2, stream->logs[0].epoch.v, true).rc, LEAT_OK);
    waiting_free(&it);
}

/* An attempt whose chunks are interrupted by another one changes nothing (docs/stories.md 5c). */
static void machine_adoption_is_all_or_nothing(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    node_up(it.m, it.command, "a");
    const struct {
        uint64_t attempt, number;
        bool last;
        leat_err rc;
    } steps[] = {
        {11, 0, false, LEAT_OK},     {12, 0, false, LEAT_OK}, {11, 1, true, LEAT_E_AGAIN},
        {12, 2, true, LEAT_E_AGAIN}, {12, 1, true, LEAT_OK},  {12, 2, true, LEAT_E_AGAIN},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct leat_msg_writer w = command_begin(it.command, LEAT_COMMAND_ADOPT, 8);
        leat_msg_write_u64(&w, steps[i].attempt);
        leat_msg_write_u64(&w, steps[i].number);
        leat_msg_write_bool(&w, steps[i].last);
        leat_msg_write_u64(&w, 1);
        leat_msg_write_u64(&w, it.m->changes);
        leat_msg_write_bin(&w, "", 0);
        adopt_end(&w, leat_machine_seen(it.m, &it.m->nodes[0]));
        assert_int_equal(entry_apply(it.m, it.command, &w), steps[i].rc);
    }
    assert_int_equal(it.m->next_epoch, 2); /* one attempt took effect, and drew one epoch */
    machines_free(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_recovery_takes_only_what_it_saw),
        cmocka_unit_test(machine_recovery_that_lacks_streamlets_is_refused),
        cmocka_unit_test(machine_streamlet_without_a_decision_goes_to_its_last_node_alone),
        cmocka_unit_test(machine_tells_the_last_node_and_takes_its_drain),
        cmocka_unit_test(machine_loss_is_accepted_once_all_were_heard),
        cmocka_unit_test(adopt_leaves_to_recovery_what_was_left_elsewhere),
        cmocka_unit_test(machine_loss_names_the_node_that_may_have_it),
        cmocka_unit_test(machine_adoption_is_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
