/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: each thing that is somebody's work makes a cluster not well, and nothing else does; a log's word is that of its
 * state and code. */
#include "wire/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct leat_msg_string text_of(const char *text)
{
    return (struct leat_msg_string){text, (uint32_t)strlen(text)};
}

/* Three nodes, of which everything is well. */
static struct leat_cluster_told *good(void)
{
    static struct leat_cluster_told told;
    memset(&told, 0, sizeof told);
    told.head.leader_address = text_of("a:7701");
    told.node_count = told.voter_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        told.nodes[i].state = 1;
        told.nodes[i].node_address = text_of("a:7701");
        told.nodes[i].report.known = true;
        told.voters[i].reachable = true;
    }
    return &told;
}

static void cluster_with_one_thing_wrong_is_not_well(void **state)
{
    (void)state;
    assert_true(leat_cluster_told_well(good()));
    struct leat_cluster_told *told = good();
    struct leat_msg_node_report *report = &told->nodes[2].report;
    uint64_t *const numbers[] = {&report->logs_under_replicated, &report->logs_below_min,
                                 &report->logs_troubled,         &report->logs_passed,
                                 &told->recovery.waiting,        &told->recovery.phase};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = 1;
        assert_false(leat_cluster_told_well(told));
        *numbers[i] = 0;
        assert_true(leat_cluster_told_well(told));
    }
    report->trouble = text_of("its disk is full");
    assert_false(leat_cluster_told_well(told));
    told = good();
    told->head.why = text_of("no majority");
    assert_false(leat_cluster_told_well(told));
    told = good();
    told->head.leader_address = text_of("");
    assert_false(leat_cluster_told_well(told));
    told = good();
    told->voters[1].reachable = false;
    assert_false(leat_cluster_told_well(told));
    told = good();
    told->nodes[0].state = 2;
    assert_false(leat_cluster_told_well(told));
    told = good();
    told->nodes[0].report.known = false; /* up, and not heard */
    assert_false(leat_cluster_told_well(told));
    told->nodes[0].state = 3; /* nobody waits for one that is gone */
    assert_true(leat_cluster_told_well(told));
}

static void server_alone_is_well_without_a_leader_and_not_with_trouble(void **state)
{
    (void)state;
    struct leat_cluster_told *told = good();
    told->node_count = told->voter_count = 1;
    told->nodes[0].node_address = told->head.leader_address = text_of("");
    assert_true(leat_cluster_told_alone(told) && leat_cluster_told_well(told));
    told->nodes[0].report.logs_troubled = 1;
    assert_false(leat_cluster_told_well(told));
}

static void log_word_is_of_its_state_and_code(void **state)
{
    (void)state;
    static const struct {
        uint32_t state;
        leat_err code;
        bool below_min, takes;
        const char *word;
    } rows[] = {
        {0, LEAT_OK, false, true, "ok"},
        {0, LEAT_OK, true, false, "ok"},
        {0, LEAT_E_DAMAGED, false, true, "damaged"},
        {0, LEAT_E_DISK_FULL, false, false, "full"},
        {0, LEAT_E_AGAIN, false, false, "unknown"},
        {0, LEAT_E_NOT_OWNER, false, false, "unknown"},
        {0, LEAT_E_UNKNOWN_LOG, false, false, "unknown"},
        {1, LEAT_E_LOG_INCOMPLETE, false, false, "waiting"},
        {2, LEAT_E_DAMAGED, false, false, "damaged"},
        {3, LEAT_E_DISK, false, false, "stopped"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct leat_msg_log_info log = {
            .state = rows[i].state, .code = rows[i].code, .below_min = rows[i].below_min};
        assert_string_equal(leat_log_told_state(&log), rows[i].word);
        assert_int_equal(leat_log_told_takes_appends(&log), rows[i].takes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_with_one_thing_wrong_is_not_well),
        cmocka_unit_test(server_alone_is_well_without_a_leader_and_not_with_trouble),
        cmocka_unit_test(log_word_is_of_its_state_and_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
