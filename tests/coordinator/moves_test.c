/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a streamlet: an owner's entries (opened, generation raised, moved), and requests that come twice. A
 * refused entry changes nothing: the whole state is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/one_machine.h"

enum { LOGS = 2, A = 1, B = 2, C = 3 /* incarnations: c drains */, D = 4 /* is down */ };

static unsigned told;
static uint32_t told_ids[8];

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    (void)owner;
    told_ids[told++ % 8] = desc->id;
}

static struct leat_machine_stream *stream(const char *name)
{
    return leat_machine_name_find(machine, name, 1);
}

/* Streams s and t of two streamlets, all a's. */
static int begin(void **state)
{
    (void)machine_begin(state);
    node_up("a", A);
    assert_int_equal(stream_make("s", 2, LOGS), LEAT_OK);
    assert_int_equal(stream_make("t", 2, LOGS), LEAT_OK);
    node_up("b", B);
    node_up("c", C);
    node_up("d", D);
    assert_int_equal(drain("c", true), LEAT_OK);
    assert_int_equal(state_of("d", D, LEAT_NODE_DOWN), LEAT_OK);
    machine->on_stream = on_stream;
    told = 0;
    return 0;
}

static uint8_t *before;
static size_t before_bytes;
static int finish(void **state)
{
    leat_mem_free(before);
    before = NULL;
    return machine_end(state);
}

static void keep(void)
{
    leat_mem_free(before);
    assert_int_equal(leat_machine_snapshot(machine, &before, &before_bytes), LEAT_OK);
}
static void expect_unchanged(void)
{
    uint8_t *now;
    size_t bytes;
    assert_int_equal(leat_machine_snapshot(machine, &now, &bytes), LEAT_OK);
    assert_int_equal(bytes, before_bytes);
    assert_memory_equal(now, before, bytes);
    leat_mem_free(now);
    leat_mem_free(before);
    before = NULL;
    assert_int_equal(told, 0);
}

/* ---- moving ---- */

struct row {
    const char *stream; /* "x": there is none */
    uint32_t streamlet, log;
};

static leat_err move(uint64_t incarnation, uint32_t epoch, const char *target,
                     const struct row *rows, uint32_t count)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_MOVE, 4);
    leat_msg_write_u64(&e.w, incarnation);
    leat_msg_write_u64(&e.w, epoch);
    leat_msg_write_string(&e.w, target, 1);
    leat_msg_write_array(&e.w, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_machine_stream *it = stream(rows[i].stream);
        leat_msg_write_array(&e.w, 7);
        leat_msg_write_u64(&e.w, it ? it->id : 999);
        leat_msg_write_u64(&e.w, rows[i].streamlet);
        leat_msg_write_u64(&e.w, rows[i].log);
        for (unsigned k = 0; k < 4; k++)
            leat_msg_write_u64(&e.w, 100 * (i + 1) + k);
    }
    return applied(&e);
}

static uint32_t epoch_of(const char *name, uint32_t streamlet)
{
    return stream(name)->desc->streamlets[streamlet].epoch.v;
}

static void expect_moved(const char *name, uint32_t streamlet, uint64_t owner, uint32_t epoch,
                         uint32_t first_row)
{
    const struct leat_machine_stream *it = stream(name);
    assert_int_equal(it->desc->streamlets[streamlet].owner, owner);
    assert_int_equal(it->desc->streamlets[streamlet].epoch.v, epoch);
    assert_int_equal(machine->nodes[it->owners[streamlet]].info.incarnation, owner);
    for (uint32_t q = 0; q < LOGS; q++) {
        const struct leat_machine_log *log = &it->logs[streamlet * LOGS + q];
        uint32_t row = 100 * (first_row + q + 1);
        assert_int_equal(log->epoch.v, epoch);
        assert_false(log->record.opened);
        assert_int_equal(log->record.tail.segment, row);
        assert_int_equal(log->record.tail.prefix_id.bytes, row + 1);
        assert_int_equal(log->record.tail.prefix_id.crc, row + 2);
        assert_int_equal(log->record.tail.next_offset, row + 3);
    }
}

static const struct row all[] = {{"s", 0, 0}, {"s", 0, 1}, {"s", 1, 0},
                                 {"s", 1, 1}, {"t", 1, 0}, {"t", 1, 1}};

/* All streamlets of one owner under one epoch go together; other streamlets stay. */
static void move_gives_whole_streamlets_to_another_node(void **state)
{
    (void)state;
    uint32_t epoch = epoch_of("s", 0);
    uint64_t changes = machine->changes;
    uint64_t seen_a = leat_machine_seen(machine, &machine->nodes[0]),
             seen_b = leat_machine_seen(machine, &machine->nodes[1]),
             seen_c = leat_machine_seen(machine, &machine->nodes[2]);
    assert_int_equal(move(A, epoch, "b", all, 2), LEAT_OK);
    uint32_t drawn = result.epoch.v;
    assert_true(drawn > epoch && drawn > epoch_of("t", 1));
    assert_int_equal(result.incarnation, B);
    expect_moved("s", 0, B, drawn, 0);
    assert_int_equal(stream("s")->desc->streamlets[1].owner, A);
    assert_int_equal(told, 1);
    assert_int_equal(told_ids[0], stream("s")->id);
    assert_true(machine->changes > changes);
    /* Who gives and who gets look again, nobody else. */
    assert_true(leat_machine_seen(machine, &machine->nodes[0]) != seen_a);
    assert_true(leat_machine_seen(machine, &machine->nodes[1]) != seen_b);
    assert_true(leat_machine_seen(machine, &machine->nodes[2]) == seen_c);
    /* The new owner gives it on; the old one has no say. */
    assert_int_equal(move(A, drawn, "b", all, 2), LEAT_E_STALE_EPOCH);
    assert_int_equal(move(B, epoch, "a", all, 2), LEAT_E_STALE_EPOCH);
    assert_int_equal(move(B, drawn, "a", all, 2), LEAT_OK);
    expect_moved("s", 0, A, result.epoch.v, 0);
    assert_true(result.epoch.v > drawn);
}

static void move_of_several_streams_tells_of_each(void **state)
{
    (void)state;
    /* Under one epoch first: a gets all of them back, as the target can't take them. */
    for (unsigned i = 0; i < 3; i++)
        (void)move(A, epoch_of(all[2 * i].stream, all[2 * i].streamlet), "x", all + 2 * i, 2);
    uint32_t epochs[3] = {epoch_of("s", 0), epoch_of("s", 1), epoch_of("t", 1)};
    assert_true(epochs[0] < epochs[1] && epochs[1] < epochs[2]); /* each has its own */
    told = 0;
    keep();
    assert_int_equal(move(A, epochs[0], "b", all, 4), LEAT_E_STALE_EPOCH); /* s:1 has another */
    expect_unchanged();
}

/* The node can't take the streamlets: the owner has ended its epoch by asking, and gets the streamlets back under a new
 * epoch. */
static void move_to_who_cannot_take_it_gives_the_owner_a_new_epoch(void **state)
{
    (void)state;
    const char *const targets[] = {"x", "a", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        uint32_t epoch = epoch_of("s", 1);
        told = 0;
        assert_int_equal(move(A, epoch, targets[i], all + 2, 2), LEAT_E_NOT_FOUND);
        assert_true(result.epoch.v > epoch);
        assert_int_equal(result.incarnation, A);
        expect_moved("s", 1, A, result.epoch.v, 0);
        assert_int_equal(told, 1);
    }
}

static void move_that_is_not_of_whole_streamlets_in_order_changes_nothing(void **state)
{
    (void)state;
    static const struct row wrong[][4] = {{{"s", 0, 0}},
                                          {{"s", 0, 1}},
                                          {{"s", 0, 1}, {"s", 0, 0}},
                                          {{"s", 0, 0}, {"s", 0, 0}},
                                          {{"s", 0, 0}, {"s", 1, 1}},
                                          {{"s", 0, 0}, {"s", 1, 0}},
                                          {{"s", 0, 0}, {"s", 0, 1}, {"s", 1, 0}},
                                          {{"s", 0, 0}, {"s", 0, 1}, {"s", 0, 0}, {"s", 0, 1}},
                                          {{"s", 1, 0}, {"s", 1, 1}, {"s", 0, 0}, {"s", 0, 1}},
                                          {{"t", 0, 0}, {"t", 0, 1}, {"s", 0, 0}, {"s", 0, 1}},
                                          {{"x", 0, 0}, {"x", 0, 1}},
                                          {{"s", 2, 0}, {"s", 2, 1}},
                                          {{"s", 0, 0}, {"s", 0, 2}}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t count = 0;
        while (count < 4 && wrong[i][count].stream)
            count++;
        keep();
        if (move(A, epoch_of("s", 0), "b", wrong[i], count) == LEAT_OK) fail_msg("case %u", i);
        assert_int_equal(result.epoch.v, 0);
        expect_unchanged();
    }
    keep();
    (void)move(A, epoch_of("s", 0), "b", all, 0);
    assert_true(result.malformed);
    assert_int_not_equal(move(9, epoch_of("s", 0), "b", all, 2),
                         LEAT_OK); /* nobody's incarnation */
    assert_int_not_equal(move(0, epoch_of("s", 0), "b", all, 2), LEAT_OK);
    assert_int_not_equal(move(A, epoch_of("s", 0) + 1, "b", all, 2), LEAT_OK);
    expect_unchanged();
    assert_int_equal(crash("a", A), LEAT_OK);
    told = 0;
    keep();
    assert_int_not_equal(move(A, epoch_of("s", 0), "b", all, 2),
                         LEAT_OK); /* in a dead one's name */
    expect_unchanged();
}

/* ---- opened, and versions ---- */

static leat_err says(unsigned kind, uint64_t incarnation, uint32_t epoch, uint32_t version,
                     const struct row *rows, uint32_t count)
{
    struct entry e;
    entry_begin(&e, kind, kind == LEAT_COMMAND_OPENED ? 5 : 4);
    if (kind == LEAT_COMMAND_VERSION_RAISE) leat_msg_write_u64(&e.w, incarnation);
    leat_msg_write_u64(&e.w, epoch);
    if (kind == LEAT_COMMAND_VERSION_RAISE) leat_msg_write_u64(&e.w, version);
    leat_msg_write_array(&e.w, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_machine_stream *it = stream(rows[i].stream);
        leat_msg_write_array(&e.w, 3);
        leat_msg_write_u64(&e.w, it ? it->id : 999);
        leat_msg_write_u64(&e.w, rows[i].streamlet);
        leat_msg_write_u64(&e.w, rows[i].log);
    }
    if (kind == LEAT_COMMAND_OPENED) opened_end(&e.w, incarnation, version);
    return applied(&e);
}

static void version_is_raised_of_all_logs_or_none(void **state)
{
    (void)state;
    const unsigned raise = LEAT_COMMAND_VERSION_RAISE, open = LEAT_COMMAND_OPENED;
    const uint32_t epoch = epoch_of("s", 0);
    struct leat_machine_log *logs = stream("s")->logs;
    keep();
    assert_int_equal(says(raise, A, epoch, 2, all, 2), LEAT_E_INVALID); /* none is opened */
    assert_int_equal(says(open, A, epoch + 9, 2, all, 2), LEAT_E_STALE_EPOCH);
    assert_int_equal(says(open, B, epoch, 2, all, 2), LEAT_E_STALE_EPOCH);
    expect_unchanged();
    assert_int_equal(says(open, A, epoch, 3, all, 1), LEAT_OK);
    assert_int_equal(result.epoch.v, epoch);
    assert_true(logs[0].record.opened);
    assert_false(logs[1].record.opened);
    assert_int_equal(logs[0].record.stamp_epoch.v, epoch);
    assert_int_equal(logs[0].record.stamp_version, 3);
    keep();
    assert_int_equal(says(raise, A, epoch, 4, all, 2), LEAT_E_INVALID); /* the second is not */
    assert_int_equal(says(raise, A, epoch, 2, all, 1), LEAT_E_INVALID); /* back */
    assert_int_equal(says(raise, B, epoch, 4, all, 1), LEAT_E_STALE_EPOCH);
    assert_int_equal(says(raise, A, epoch + 9, 4, all, 1), LEAT_E_STALE_EPOCH);
    assert_int_not_equal(says(raise, A, epoch, 4, (const struct row[]){{"x", 0, 0}}, 1), LEAT_OK);
    (void)says(raise, 0, epoch, 4, all, 1);
    assert_true(result.malformed); /* in nobody's name */
    expect_unchanged();
    assert_int_equal(says(open, A, epoch, 3, all + 1, 1), LEAT_OK);
    assert_int_equal(says(raise, A, epoch, 3, all, 2), LEAT_OK); /* the same again */
    uint64_t seen = leat_machine_seen(machine, &machine->nodes[0]);
    assert_int_equal(says(raise, A, epoch, 4, all, 2), LEAT_OK);
    assert_int_equal(result.epoch.v, epoch);
    assert_true(leat_machine_seen(machine, &machine->nodes[0]) != seen);
    for (unsigned q = 0; q < LOGS; q++)
        assert_int_equal(logs[q].record.stamp_version, 4);
    assert_int_equal(crash("a", A), LEAT_OK);
    told = 0;
    keep();
    assert_int_not_equal(says(raise, A, epoch, 5, all, 1), LEAT_OK);
    assert_int_not_equal(says(open, A, epoch, 5, all, 1), LEAT_OK);
    expect_unchanged();
}

/* ---- requests that come twice ---- */

static leat_err request(uint64_t session, uint64_t sequence, const struct entry *inner)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_REQUEST, 3);
    leat_msg_write_u64(&e.w, session);
    leat_msg_write_u64(&e.w, sequence);
    leat_msg_write_bin(&e.w, inner->bytes, inner->w.used);
    return applied(&e);
}

static int64_t ids(uint64_t session, uint64_t sequence)
{
    struct entry inner;
    entry_begin(&inner, LEAT_COMMAND_PRODUCER_IDS, 1);
    leat_msg_write_u64(&inner.w, 10);
    assert_int_equal(request(session, sequence, &inner), LEAT_OK);
    assert_int_equal(result.session, session);
    assert_int_equal(result.sequence, sequence);
    assert_int_equal(result.id_count, 10);
    return result.first_id;
}

static void request_that_comes_twice_takes_effect_once(void **state)
{
    (void)state;
    int64_t first = ids(5, 1), second = ids(5, 2);
    assert_int_equal(second, first + 10);
    assert_int_equal(ids(5, 1), first);
    assert_int_equal(ids(5, 2), second);
    assert_int_equal(ids(6, 1), second + 10); /* another's */
    /* Its outcome is known to a voter that began from a snapshot, too. */
    struct leat_machine *copy = calloc(1, sizeof *copy), *original = machine;
    assert_non_null(copy);
    leat_machine_init(copy, 1);
    keep();
    assert_int_equal(leat_machine_restore(copy, before, before_bytes), LEAT_OK);
    machine = copy;
    assert_int_equal(ids(5, 2), second);
    assert_int_equal(ids(6, 1), second + 10);
    struct leat_machine_result found;
    assert_true(leat_machine_outcome(copy, 5, 1, &found));
    assert_int_equal(found.rc, LEAT_OK);
    assert_int_equal(found.first_id, first);
    assert_int_equal(found.session, 5);
    assert_int_equal(found.sequence, 1);
    assert_false(leat_machine_outcome(copy, 5, 3, &found));
    assert_false(leat_machine_outcome(copy, 6, 2, &found));
    machine = original;
    leat_machine_fini(copy);
    free(copy);
    /* One that was overtaken has never been applied: it takes effect when it comes. */
    assert_int_equal(ids(5, 9), second + 20);
    assert_int_equal(ids(5, 8), second + 30);
    assert_int_equal(ids(5, 8), second + 30);
    /* All that it came to is told again: a stream, its owner's move, a refusal. */
    struct leat_stream_settings settings = {.streamlets = 1, .logs = LOGS};
    struct entry inner;
    entry_begin(&inner, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&inner.w, "u", 1);
    leat_msg_settings_write(&inner.w, &settings);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(request(7, 1, &inner), LEAT_OK);
        assert_ptr_equal(result.desc, stream("u")->desc);
        assert_int_equal(result.stream_id, stream("u")->id);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(request(7, 2, &inner), LEAT_E_STREAM_EXISTS);
    uint32_t owner_epoch = epoch_of("s", 0), drawn = 0;
    entry_begin(&inner, LEAT_COMMAND_MOVE, 4);
    leat_msg_write_u64(&inner.w, A);
    leat_msg_write_u64(&inner.w, owner_epoch);
    leat_msg_write_string(&inner.w, "b", 1);
    leat_msg_write_array(&inner.w, 2);
    for (uint64_t q = 0; q < LOGS; q++) {
        const uint64_t numbers[] = {stream("s")->id, 0, q, 1, 2, 3, 4};
        leat_msg_write_array(&inner.w, 7);
        for (unsigned k = 0; k < 7; k++)
            leat_msg_write_u64(&inner.w, numbers[k]);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(request(7, 3, &inner), LEAT_OK);
        assert_int_equal(result.incarnation, B);
        if (i) assert_int_equal(result.epoch.v, drawn);
        drawn = result.epoch.v;
    }
    (void)request(0, 1, &inner);
    assert_true(result.malformed);
    (void)request(7, 0, &inner);
    assert_true(result.malformed);
}

/* As many outcomes are kept as are kept, and sessions: those unused for longest are forgotten. */
static void requests_are_remembered_up_to_a_limit(void **state)
{
    (void)state;
    int64_t first = ids(5, 1);
    for (uint64_t i = 1; i < LEAT_OUTCOMES_MAX; i++)
        (void)ids(6, i);
    assert_int_equal(ids(5, 1), first); /* the oldest that there is */
    struct leat_machine_result found;
    (void)ids(6, LEAT_OUTCOMES_MAX);
    assert_false(leat_machine_outcome(machine, 5, 1, &found));
    assert_true(leat_machine_outcome(machine, 6, 1, &found));
    for (uint64_t s = 0; s < LEAT_SESSIONS_MAX + 3; s++)
        (void)ids(1000 + s, 1);
    assert_int_equal(machine->session_count, LEAT_SESSIONS_MAX);
    assert_int_equal(machine->sessions[0].session, 1000 + LEAT_SESSIONS_MAX + 2);
    assert_int_equal(machine->sessions[LEAT_SESSIONS_MAX - 1].session, 1003);
    (void)ids(1500, 2);
    assert_int_equal(machine->sessions[0].session, 1500);
    assert_int_equal(machine->sessions[0].sequence, 2);
    assert_int_equal(machine->session_count, LEAT_SESSIONS_MAX);
}

int main(void)
{
#define MOVES_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        MOVES_TEST(move_gives_whole_streamlets_to_another_node),
        MOVES_TEST(move_of_several_streams_tells_of_each),
        MOVES_TEST(move_to_who_cannot_take_it_gives_the_owner_a_new_epoch),
        MOVES_TEST(move_that_is_not_of_whole_streamlets_in_order_changes_nothing),
        MOVES_TEST(version_is_raised_of_all_logs_or_none),
        MOVES_TEST(request_that_comes_twice_takes_effect_once),
        MOVES_TEST(requests_are_remembered_up_to_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
