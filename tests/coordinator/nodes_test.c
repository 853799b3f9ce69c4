/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes come up, under which name, at which address, from which directory; what a drain and a crash make of them;
 * and what a node adopts when it comes up. */
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
#include "wire/message.h"

enum { LOGS = 2 };

struct node {
    const char *name, *address, *rack, *host;
    size_t name_bytes; /* 0: the whole of it */
    uint32_t id;       /* of its directory; 0: none said */
    uint64_t boot, boot_before;
};

static leat_err up(struct node n)
{
    struct entry e;
    uint8_t id[16] = {(uint8_t)n.id};
    const char *rack = n.rack ? n.rack : "", *host = n.host ? n.host : "";
    entry_begin(&e, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&e.w, n.name, n.name_bytes ? n.name_bytes : strlen(n.name));
    leat_msg_write_string(&e.w, "client:1", 8);
    leat_msg_write_u64(&e.w, 1);
    leat_msg_write_string(&e.w, n.address, strlen(n.address));
    leat_msg_write_string(&e.w, rack, strlen(rack));
    leat_msg_write_bin(&e.w, id, n.id ? 16 : 0);
    leat_msg_write_u64(&e.w, 0);
    leat_msg_write_string(&e.w, "", 0);
    leat_msg_write_u64(&e.w, n.boot);
    leat_msg_write_u64(&e.w, n.boot_before);
    leat_msg_write_string(&e.w, host, strlen(host));
    leat_msg_write_u64(&e.w, 0);
    return applied(&e);
}

static const struct leat_node_info *info(const char *name)
{
    const struct leat_machine_node *node = leat_machine_node_find(machine, name, strlen(name));
    return node ? &node->info : NULL;
}

/* ---- up ---- */

static void node_of_a_name_or_address_that_cannot_be_is_refused(void **state)
{
    (void)state;
    char longest[LEAT_ADDRESS_BYTES_MAX + LEAT_NODE_NAME_BYTES_MAX + LEAT_RACK_BYTES_MAX + 3];
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *end = longest + sizeof longest - 1;
    const struct {
        struct node node;
        leat_err rc;
    } cases[] = {
        {{.name = "", .address = "h:1"}, LEAT_E_BAD_NAME},
        {{.name = end - LEAT_NODE_NAME_BYTES_MAX - 1, .address = "h:1"}, LEAT_E_BAD_NAME},
        {{.name = "a\x01", .address = "h:1"}, LEAT_E_BAD_NAME},
        {{.name = "a", .address = "h\x7f:1"}, LEAT_E_BAD_NAME},
        {{.name = "a", .address = "h :1"}, LEAT_E_BAD_NAME},
        {{.name = "a", .address = end - LEAT_ADDRESS_BYTES_MAX - 1}, LEAT_E_BAD_NAME},
        {{.name = "a", .address = "h:1", .rack = end - LEAT_RACK_BYTES_MAX - 1}, LEAT_E_BAD_NAME},
        {{.name = "a", .address = "h:1", .host = end - LEAT_RACK_BYTES_MAX - 1}, LEAT_E_BAD_NAME},
        {{.name = end - LEAT_NODE_NAME_BYTES_MAX, .address = end - LEAT_ADDRESS_BYTES_MAX},
         LEAT_OK},
        {{.name = "a b", .address = "h:1", .rack = end - LEAT_RACK_BYTES_MAX}, LEAT_OK}};
    uint32_t count = 0;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (up(cases[i].node) != cases[i].rc) fail_msg("case %u", i);
        count += cases[i].rc == LEAT_OK;
        assert_int_equal(machine->node_count, count);
        if (cases[i].rc == LEAT_OK) assert_int_equal(result.incarnation, count);
    }
}

/* An address belongs to one node that is up; the address of a node that is not up, or has crashed, is free for another
 * node. */
static void node_takes_no_address_of_one_that_is_up(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "b", .address = "h:1", .id = 2}), LEAT_E_EXISTS);
    assert_null(info("b"));
    assert_int_equal(up((struct node){.name = "b", .address = "h:2", .id = 2}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1}),
                     LEAT_OK); /* again */
    assert_int_equal(info("a")->incarnation, 3);
    /* Another directory under its name, while it is up. */
    assert_int_equal(up((struct node){.name = "a", .address = "h:3", .id = 9}), LEAT_E_EXISTS);
    assert_int_equal(state_of("a", 3, LEAT_NODE_DOWN), LEAT_OK);
    assert_int_equal(up((struct node){.name = "c", .address = "h:1", .id = 3}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1}), LEAT_E_EXISTS);
    assert_non_null(strstr(result.error.text, "node 'c' is up at h:1: choose another address"));
    assert_int_equal(up((struct node){.name = "a", .address = "h:3", .id = 9}), LEAT_OK);
    assert_int_equal(crash("b", 2), LEAT_OK);
    assert_int_equal(up((struct node){.name = "d", .address = "h:2", .id = 4}), LEAT_OK);
    /* A voter's address, up or not; of two nodes the node that is up is named. */
    machine->voter_count = 2;
    machine->voters[0] = (struct leat_machine_voter){.address = "h:7", .name = "v"};
    machine->voters[1] = (struct leat_machine_voter){.address = "h:2", .name = "w"};
    assert_int_equal(up((struct node){.name = "e", .address = "h:7", .id = 5}), LEAT_E_EXISTS);
    assert_non_null(strstr(result.error.text, "node 'v' votes at h:7: choose another address"));
    assert_int_equal(up((struct node){.name = "e", .address = "h:2", .id = 5}), LEAT_E_EXISTS);
    assert_non_null(strstr(result.error.text, "node 'd' is up at h:2: choose another address"));
}

/* A directory that was up with a newer state than it has, or whose copy is up. */
static void node_of_an_older_directory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1, .boot = 10}),
                     LEAT_OK);
    assert_int_equal(
        up((struct node){.name = "a", .address = "h:1", .id = 1, .boot = 11, .boot_before = 10}),
        LEAT_OK);
    /* An earlier start of the node, though a later start came up. */
    assert_int_equal(
        up((struct node){.name = "a", .address = "h:1", .id = 1, .boot = 12, .boot_before = 10}),
        LEAT_E_DAMAGED);
    assert_int_equal(
        up((struct node){.name = "z", .address = "h:9", .id = 1, .boot = 12, .boot_before = 10}),
        LEAT_E_DAMAGED);
    /* A copy of it, under another name, while it is up; and when it has crashed. */
    const struct node copy = {
        .name = "z", .address = "h:9", .id = 7, .boot = 12, .boot_before = 11};
    assert_int_equal(up(copy), LEAT_E_EXISTS);
    assert_int_equal(crash("a", 2), LEAT_OK);
    assert_int_equal(up(copy), LEAT_OK);
}

static void hosts_are_counted_once(void **state)
{
    (void)state;
    assert_int_equal(leat_machine_hosts_up(machine), 0);
    assert_int_equal(up((struct node){.name = "a", .address = "one:1"}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "b", .address = "one:2"}), LEAT_OK);
    assert_int_equal(leat_machine_hosts_up(machine), 1);
    assert_int_equal(up((struct node){.name = "c", .address = "two:1"}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "d", .address = "x:1", .host = "two"}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "e", .address = "y:1", .host = "three"}), LEAT_OK);
    assert_int_equal(leat_machine_hosts_up(machine), 3);
    assert_int_equal(leat_machine_nodes_up(machine), 5);
    assert_int_equal(drain("e", true), LEAT_OK);
    assert_int_equal(leat_machine_hosts_up(machine), 2);
    assert_int_equal(leat_machine_nodes_up(machine), 4);
}

/* ---- drained, down, crashed ---- */

static void drained_node_without_streamlets_is_gone_when_it_is_down(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1"}), LEAT_OK);
    assert_int_equal(stream_make("s", 2, LOGS), LEAT_OK); /* all a's */
    assert_int_equal(up((struct node){.name = "b", .address = "h:2"}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "c", .address = "h:3"}), LEAT_OK);
    assert_int_equal(drain("x", true), LEAT_E_NOT_FOUND);
    assert_false(leat_machine_drains_last(machine, "a", 1));
    /* Down first, then drained: it has nothing, and is gone at once. */
    assert_int_equal(state_of("b", 2, LEAT_NODE_DOWN), LEAT_OK);
    assert_int_equal(state_of("b", 1, LEAT_NODE_UP), LEAT_E_STALE_EPOCH); /* earlier */
    assert_int_equal(info("b")->state, LEAT_NODE_DOWN);
    assert_int_equal(drain("b", true), LEAT_OK);
    assert_false(result.drained_last);
    assert_int_equal(info("b")->state, LEAT_NODE_GONE);
    /* Drained first. */
    assert_int_equal(drain("c", true), LEAT_OK);
    assert_int_equal(info("c")->state, LEAT_NODE_UP);
    assert_true(leat_machine_drains_last(machine, "a", 1));
    assert_int_equal(state_of("c", 3, LEAT_NODE_DOWN), LEAT_OK);
    assert_int_equal(info("c")->state, LEAT_NODE_GONE);
    assert_true(leat_machine_drains_last(machine, "a", 1)); /* those that are gone don't count */
    /* With streamlets it is not gone. */
    assert_int_equal(drain("a", true), LEAT_OK);
    assert_true(result.drained_last);
    assert_int_equal(drain("a", true), LEAT_OK);
    assert_false(result.drained_last); /* it was before */
    assert_int_equal(state_of("a", 1, LEAT_NODE_DOWN), LEAT_OK);
    assert_int_equal(info("a")->state, LEAT_NODE_DOWN);
    assert_int_equal(drain("a", false), LEAT_OK);
    assert_int_equal(state_of("a", 1, LEAT_NODE_UP), LEAT_OK);
    assert_int_equal(info("a")->state, LEAT_NODE_UP);
    assert_int_equal(crash("a", 9), LEAT_E_STALE_EPOCH);
    assert_true(leat_machine_incarnation_lives(machine, 1));
    assert_int_equal(crash("a", 1), LEAT_OK);
    assert_int_equal(info("a")->state, LEAT_NODE_DOWN);
    assert_false(leat_machine_incarnation_lives(machine, 1));
    assert_int_equal(state_of("a", 1, LEAT_NODE_UP), LEAT_E_STALE_EPOCH); /* for good */
}

static void drained_node_that_crashes_is_gone_without_streamlets_alone(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1"}), LEAT_OK);
    assert_int_equal(stream_make("s", 1, LOGS), LEAT_OK);
    assert_int_equal(up((struct node){.name = "b", .address = "h:2"}), LEAT_OK);
    assert_int_equal(drain("a", true), LEAT_OK);
    assert_int_equal(drain("b", true), LEAT_OK);
    assert_int_equal(crash("a", 1), LEAT_OK);
    assert_int_equal(crash("b", 2), LEAT_OK);
    assert_int_equal(info("a")->state, LEAT_NODE_DOWN);
    assert_int_equal(info("b")->state, LEAT_NODE_GONE);
}

/* ---- streams that are made again ---- */

static void stream_made_again_under_its_name_is_told_as_such(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1"}), LEAT_OK);
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_int_equal(stream_make("s", 1, LOGS), LEAT_OK);
        struct leat_machine_stream *it = leat_machine_name_find(machine, "s", 1);
        assert_int_equal(it->desc->remade, turn > 0);
        uint32_t id = it->id;
        assert_int_equal(stream_make("s", 1, LOGS), LEAT_E_STREAM_EXISTS);
        struct entry e;
        entry_begin(&e, LEAT_COMMAND_STREAM_DELETE, 1);
        leat_msg_write_string(&e.w, "s", 1);
        assert_int_equal(applied(&e), LEAT_OK);
        assert_int_equal(result.stream_id, id);
        assert_null(leat_machine_name_find(machine, "s", 1));
        assert_null(leat_machine_stream_find(machine, id));
        assert_int_equal(applied(&e), LEAT_E_UNKNOWN_STREAM);
    }
    assert_int_equal(stream_make("other", 1, LOGS), LEAT_OK);
    assert_false(leat_machine_name_find(machine, "other", 5)->desc->remade);
}

/* ---- adoption ---- */

struct row {
    uint32_t streamlet, log;
    enum leat_decision decision;
};

static leat_err adopt(uint64_t incarnation, uint64_t seen, const struct row *rows, uint32_t count,
                      bool leaves)
{
    static uint64_t attempt;
    struct entry e;
    uint8_t bytes[4096];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes, sizeof bytes);
    for (uint32_t i = 0; i < count; i++) {
        leat_msg_write_array(&w, 8);
        leat_msg_write_u64(&w, machine->streams[0].id);
        leat_msg_write_u64(&w, rows[i].streamlet);
        leat_msg_write_u64(&w, rows[i].log);
        leat_msg_write_u64(&w, rows[i].decision);
        for (unsigned k = 0; k < 4; k++)
            leat_msg_write_u64(&w, 100 * (i + 1) + k);
    }
    entry_begin(&e, LEAT_COMMAND_ADOPT, 8);
    leat_msg_write_u64(&e.w, ++attempt);
    leat_msg_write_u64(&e.w, 0);
    leat_msg_write_bool(&e.w, true);
    leat_msg_write_u64(&e.w, incarnation);
    leat_msg_write_u64(&e.w, 0);
    leat_msg_write_bin(&e.w, bytes, w.used);
    leat_msg_write_u64(&e.w, seen);
    leat_msg_write_bool(&e.w, leaves);
    return applied(&e);
}

/* A node that starts again takes its own streamlets under one new epoch, with the ends that the node found; a streamlet
 * that the node leaves stays as it was. The whole entry is refused where any state changed meanwhile, or where a
 * streamlet belongs to another node. */
static void node_adopts_its_own_streamlets_and_leaves_some(void **state)
{
    (void)state;
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1}), LEAT_OK);
    assert_int_equal(stream_make("s", 3, LOGS), LEAT_OK);
    assert_int_equal(up((struct node){.name = "b", .address = "h:2", .id = 2}), LEAT_OK);
    assert_int_equal(up((struct node){.name = "a", .address = "h:1", .id = 1}), LEAT_OK); /* 3 */
    struct leat_machine_stream *it = &machine->streams[0];
    struct leat_machine_node *a = &machine->nodes[0], *b = &machine->nodes[1];
    const uint32_t epoch = it->desc->streamlets[0].epoch.v;
    const struct row rows[] = {{0, 0, LEAT_DECIDED_TAIL},
                               {0, 1, LEAT_DECIDED_TAIL},
                               {1, 0, LEAT_DECIDED_WAIT},
                               {2, 0, LEAT_DECIDED_TAIL},
                               {2, 1, LEAT_DECIDED_WAIT}};
    const uint64_t seen = leat_machine_seen(machine, a);
    assert_int_equal(adopt(3, seen + 1, rows, 2, false), LEAT_E_AGAIN);
    assert_int_equal(adopt(1, seen, rows, 2, false), LEAT_E_STALE_EPOCH); /* its last life */
    assert_int_equal(adopt(2, leat_machine_seen(machine, b), rows, 2, false), LEAT_E_NOT_OWNER);
    const struct row nowhere[] = {{0, 0, LEAT_DECIDED_TAIL}, {3, 0, LEAT_DECIDED_TAIL}};
    assert_int_not_equal(adopt(3, seen, nowhere, 2, false), LEAT_OK);
    assert_int_equal(it->desc->streamlets[0].epoch.v, epoch);
    assert_int_equal(it->desc->streamlets[0].owner, 1);
    struct leat_log_record before = it->logs[2].record;

    assert_int_equal(adopt(3, seen, rows, 5, true), LEAT_OK);
    uint32_t drawn = result.epoch.v;
    assert_true(drawn > epoch);
    assert_int_equal(result.incarnation, 3);
    assert_int_equal(it->desc->streamlets[0].owner, 3);
    assert_int_equal(it->desc->streamlets[0].epoch.v, drawn);
    for (unsigned q = 0; q < LOGS; q++) {
        assert_int_equal(it->logs[q].epoch.v, drawn);
        assert_int_equal(it->logs[q].record.tail.segment, 100 * (q + 1));
        assert_int_equal(it->logs[q].record.tail.next_offset, 100 * (q + 1) + 3);
    }
    /* Both that have a row that waits are left, with what is known of their ends. */
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(it->desc->streamlets[i].owner, 1);
        assert_int_equal(it->desc->streamlets[i].epoch.v, epoch);
        assert_int_equal(it->logs[i * LOGS].epoch.v, epoch);
    }
    assert_memory_equal(&it->logs[2].record, &before, sizeof before);
    assert_int_equal(adopt(3, seen, rows, 2, false), LEAT_E_AGAIN); /* a second time */
    /* Without the flag the node takes all its streamlets, also the streamlets with a log that waits. */
    assert_int_equal(adopt(3, leat_machine_seen(machine, a), rows, 5, false), LEAT_OK);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(it->desc->streamlets[i].owner, 3);
        assert_int_equal(it->desc->streamlets[i].epoch.v, result.epoch.v);
    }
    assert_memory_equal(&it->logs[2].record, &before, sizeof before);
    /* A decision that is none, the first behind the table of decisions, leaves a record, too. */
    const struct row none[] = {{0, 0, (enum leat_decision)(LEAT_DECIDED_WAIT + 1)}};
    before = it->logs[0].record;
    assert_int_equal(adopt(3, leat_machine_seen(machine, a), none, 1, false), LEAT_OK);
    assert_memory_equal(&it->logs[0].record, &before, sizeof before);
}

/* ---- what a voter may propose for somebody else ---- */

static void only_requests_of_known_kinds_are_proposed_for_others(void **state)
{
    (void)state;
    struct entry inner, e;
    for (unsigned i = 0; i < 6; i++) {
        entry_begin(&inner,
                    i == 1   ? 99
                    : i == 2 ? LEAT_COMMAND_REQUEST
                             : LEAT_COMMAND_PRODUCER_IDS,
                    1);
        leat_msg_write_u64(&inner.w, 5);
        entry_begin(&e, LEAT_COMMAND_REQUEST, 3);
        leat_msg_write_u64(&e.w, i == 3 ? 0 : 7);
        leat_msg_write_u64(&e.w, i == 4 ? 0 : 8);
        leat_msg_write_bin(&e.w, inner.bytes, i == 5 ? 0 : inner.w.used);
        assert_int_equal(leat_machine_command_known(e.bytes, e.w.used), i == 0);
    }
    assert_false(leat_machine_command_known(inner.bytes, inner.w.used)); /* no request */
    assert_false(leat_machine_command_known(e.bytes, e.w.used - 1));
    entry_begin(&inner, LEAT_COMMAND_PRODUCER_IDS, 1);
    leat_msg_write_u64(&inner.w, 0);
    (void)applied(&inner);
    assert_true(result.malformed); /* none are asked for */
}

int main(void)
{
#define NODES_TEST(name) cmocka_unit_test_setup_teardown(name, machine_begin, machine_end)
    const struct CMUnitTest tests[] = {
        NODES_TEST(node_of_a_name_or_address_that_cannot_be_is_refused),
        NODES_TEST(node_takes_no_address_of_one_that_is_up),
        NODES_TEST(node_of_an_older_directory_is_refused),
        NODES_TEST(hosts_are_counted_once),
        NODES_TEST(drained_node_without_streamlets_is_gone_when_it_is_down),
        NODES_TEST(drained_node_that_crashes_is_gone_without_streamlets_alone),
        NODES_TEST(stream_made_again_under_its_name_is_told_as_such),
        NODES_TEST(node_adopts_its_own_streamlets_and_leaves_some),
        NODES_TEST(only_requests_of_known_kinds_are_proposed_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
