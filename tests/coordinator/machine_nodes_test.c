/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine: nodes that come up, their data directories and addresses; ids of producers. */
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
#include "coordinator/metadata/private.h"
#include "tests/coordinator/machine_rig.h"

static leat_err ids_taken(struct leat_machine *m, struct command *command, uint64_t count)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_PRODUCER_IDS, 1);
    leat_msg_write_u64(&w, count);
    return entry_apply(m, command, &w);
}

/* A block that does not fit is refused, and stops no voter; a smaller one is given out. */
static void machine_producer_ids_used_up_are_refused(void **state)
{
    (void)state;
    struct machines it = waiting_make();
    it.m->next_producer_id = INT64_MAX - 10;
    assert_int_equal(ids_taken(it.m, it.command, 1000), LEAT_E_TOO_MANY);
    assert_int_equal(it.m->next_producer_id, INT64_MAX - 10);
    assert_int_equal(ids_taken(it.m, it.command, 10), LEAT_OK);
    assert_int_equal(ids_taken(it.m, it.command, 1), LEAT_E_TOO_MANY);
    waiting_free(&it);
}

/* Every node is at the same address. */
static leat_err node_up_at(struct leat_machine *m, struct command *command, const char *name,
                           const uint8_t id[16], const uint64_t boots[2], uint64_t logs_most)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "h:1", 3);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_bin(&w, id, 16);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_u64(&w, boots[0]);
    leat_msg_write_u64(&w, boots[1]);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_u64(&w, logs_most);
    return entry_apply(m, command, &w);
}

static leat_err boot(struct leat_machine *m, struct command *command, const char *name,
                     uint64_t now, uint64_t before)
{
    return node_up_at(m, command, name, (const uint8_t[16]){1}, (uint64_t[]){now, before}, 0);
}

static void crash_whoever(struct leat_machine *m, struct command *command, const char *name)
{
    const struct leat_machine_node *node = leat_machine_node_find(m, name, 1);
    assert_int_equal(crash(m, command, name, node->info.incarnation), LEAT_OK);
}

/* A directory that has been up knows the mark of the last start that came up, or was on its way then. */
static void machine_directory_of_an_older_state_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    assert_int_equal(boot(it.m, it.command, "a", 11, 0), LEAT_OK);
    assert_int_equal(boot(it.m, it.command, "a", 11, 0),
                     LEAT_OK); /* cut short before it was heard of */
    assert_int_equal(boot(it.m, it.command, "a", 12, 11), LEAT_OK); /* 12 came up */
    assert_int_equal(boot(it.m, it.command, "a", 13, 11),
                     LEAT_E_DAMAGED); /* a copy of when 11 was */
    assert_int_equal(boot(it.m, it.command, "a", 12, 11),
                     LEAT_OK); /* 12 came up, and was killed then */
    assert_int_equal(boot(it.m, it.command, "a", 14, 12), LEAT_OK);
    crash_whoever(it.m, it.command, "a");
    assert_int_equal(boot(it.m, it.command, "b", 15, 14), LEAT_OK); /* it has another name now */
    assert_int_equal(boot(it.m, it.command, "a", 16, 14),
                     LEAT_E_DAMAGED); /* a copy, under the old one */
    crash_whoever(it.m, it.command, "b");
    assert_int_equal(boot(it.m, it.command, "a", 16, 15), LEAT_OK); /* and its old one again */
    assert_int_equal(boot(it.m, it.command, "a", 17, 0), LEAT_OK);  /* an empty one */
    assert_int_equal(boot(it.m, it.command, "a", 18, 15), LEAT_E_DAMAGED);
    assert_int_equal(boot(it.m, it.command, "a", 19, 16), LEAT_E_DAMAGED);
    machines_free(&it);
}

/* A copy of a data directory (cp -a, a snapshot of its disk) is used under a name of its own while the original is in
 * use. */
static void machine_directory_that_another_node_is_up_with_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    assert_int_equal(boot(it.m, it.command, "a", 11, 0), LEAT_OK);
    assert_int_equal(boot(it.m, it.command, "b", 21, 11), LEAT_E_EXISTS); /* made while it was up */
    assert_int_equal(boot(it.m, it.command, "a", 12, 11), LEAT_OK);
    assert_int_equal(boot(it.m, it.command, "b", 21, 11),
                     LEAT_E_DAMAGED); /* made before it came up */
    crash_whoever(it.m, it.command, "a");
    assert_int_equal(boot(it.m, it.command, "b", 21, 11), LEAT_E_DAMAGED);
    assert_int_equal(it.m->node_count, 1);
    assert_int_equal(boot(it.m, it.command, "b", 21, 12), LEAT_OK); /* it has another name now */
    assert_int_equal(boot(it.m, it.command, "b", 22, 21), LEAT_OK);
    machines_free(&it);
}

static leat_err up_at_an_address(struct leat_machine *m, struct command *command, const char *name)
{
    return node_up_at(m, command, name, (const uint8_t[16]){0}, (uint64_t[2]){0}, 100);
}

static void machine_address_of_another_node_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    assert_int_equal(up_at_an_address(it.m, it.command, "a"), LEAT_OK);
    assert_int_equal(it.m->next_incarnation, 2);
    assert_int_equal(up_at_an_address(it.m, it.command, "b"), LEAT_E_EXISTS);
    assert_int_equal(it.m->next_incarnation, 2);
    crash_whoever(it.m, it.command, "a");
    assert_int_equal(up_at_an_address(it.m, it.command, "b"), LEAT_OK);
    machines_free(&it);
}

/* Goal: a node that does not vote gets no voter's address, also while the voter is down, and however short the voter's
 * name is: nodes that start know the voter by this address. A voter without a name does not hold its address. */
static void machine_address_of_a_voter_is_refused_to_others(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    m->voter_count = 2;
    m->voters[0] = (struct leat_machine_voter){.address = "h:2", .name = "b"};
    m->voters[1] = (struct leat_machine_voter){.address = "h:1", .name = "a"};
    assert_int_equal(up_at_an_address(m, command, "c"), LEAT_E_EXISTS);
    assert_int_equal(up_at_an_address(m, command, "b"), LEAT_OK); /* voters may swap addresses */
    crash_whoever(m, command, "b");
    m->voters[1].name[0] = 0;
    assert_int_equal(up_at_an_address(m, command, "c"), LEAT_OK);
    leat_machine_fini(m);
    free(m);
    free(command);
}

static leat_err up_on_a_host(struct leat_machine *m, struct command *command, const char *name,
                             const char *host, const char *node_address)
{
    static const uint8_t none[16];
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&w, name, strlen(name));
    leat_msg_write_string(&w, "c:9", 3);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, node_address, strlen(node_address));
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_bin(&w, none, sizeof none);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_string(&w, host, strlen(host));
    leat_msg_write_u64(&w, 0);
    return entry_apply(m, command, &w);
}

/* Goal: nodes are on one host if they say the same host, however short; those that say none, if their addresses are the
 * same up to the port: copies in memory are counted by hosts. */
static void machine_hosts_are_what_nodes_say(void **state)
{
    (void)state;
    static const struct {
        const char *host, *node_address;
        uint32_t hosts; /* with all nodes before */
    } rows[] = {{"x", "a:1", 1}, {"y", "a:2", 2}, {"x", "b:3", 2}, {"", "a:4", 3},
                {"", "a:5", 3},  {"", "", 4},     {"", "c:6", 4},  {"a", "d:7", 4}};
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char name[2] = {(char)('a' + i)};
        assert_int_equal(up_on_a_host(m, command, name, rows[i].host, rows[i].node_address),
                         LEAT_OK);
        if (leat_machine_hosts_up(m) != rows[i].hosts) fail_msg("row %u", i);
    }
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* Goal: a cluster has as many nodes as there are rows for, and one more is refused; nodes that are known come up. */
static void machine_nodes_are_limited(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    char name[8];
    for (unsigned i = 0; i <= LEAT_NODES_MAX; i++) {
        snprintf(name, sizeof name, "n%u", i);
        assert_int_equal(up_on_a_host(m, command, name, name, ""),
                         i < LEAT_NODES_MAX ? LEAT_OK : LEAT_E_TOO_MANY);
    }
    assert_int_equal(m->node_count, LEAT_NODES_MAX);
    assert_int_equal(up_on_a_host(m, command, "n0", "n0", ""), LEAT_OK);
    assert_int_equal(m->next_incarnation, LEAT_NODES_MAX + 2);
    /* Each look at the full table ends with the table: a sanitizer sees a look behind. */
    struct leat_machine_result result = {0};
    assert_int_equal(leat_machine_nodes_up(m), LEAT_NODES_MAX);
    assert_int_equal(leat_machine_hosts_up(m), LEAT_NODES_MAX);
    assert_true(leat_machine_has_room(m, 1, &result));
    assert_ptr_equal(leat_machine_owner_choose(m, 1), &m->nodes[0]);
    leat_machine_check(m);
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* Goal: a cluster is formed once: a second id would make its nodes strangers to one another. */
static void machine_is_formed_once(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_FORM, 1);
        leat_msg_write_bin(&w, i ? "fedcba9876543210" : "0123456789abcdef", 16);
        assert_int_equal(entry_apply(m, command, &w), i ? LEAT_E_EXISTS : LEAT_OK);
        assert_true(m->formed);
        assert_memory_equal(m->cluster_id, "0123456789abcdef", 16);
    }
    leat_machine_fini(m);
    free(m);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_producer_ids_used_up_are_refused),
        cmocka_unit_test(machine_directory_of_an_older_state_is_refused),
        cmocka_unit_test(machine_directory_that_another_node_is_up_with_is_refused),
        cmocka_unit_test(machine_address_of_another_node_is_refused),
        cmocka_unit_test(machine_address_of_a_voter_is_refused_to_others),
        cmocka_unit_test(machine_hosts_are_what_nodes_say),
        cmocka_unit_test(machine_nodes_are_limited),
        cmocka_unit_test(machine_is_formed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
