/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a cluster and changes of its nodes, by cluster_calls.c alone: who is asked, each field of the answer,
 * and what is said to the coordinators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/report.h"
#include "tests/broker/alone_calls.h"

enum { ASKS = LEAT_NODES_MAX };

static struct {
    struct leat_coordinator_ask *status;
    struct leat_report *report;
    struct leat_ask *asks[ASKS];
    unsigned ask_count;
    struct leat_coordinate *request;
    uint8_t bytes[128 * 1024];
} it;

/* ---- what it calls ---- */

void leat_coordinator_status_ask(const struct leat_post *post, struct leat_coordinator_ask *ask)
{
    assert_ptr_equal(post, &alone.post);
    said("status");
    it.status = ask;
}
void leat_report_start(struct leat_report *report)
{
    assert_ptr_equal(report->core, &alone.cores[1]);
    said("own report");
    it.report = report;
}
void leat_report_write(struct leat_msg_writer *writer, const struct leat_report *report,
                       bool with_peers)
{
    assert_ptr_equal(report, it.report);
    said("own%s", with_peers ? " with peers" : "");
    leat_msg_write_u64(writer, 1000);
}
void leat_report_write_other(struct leat_msg_writer *writer, const uint8_t *report, uint32_t bytes,
                             const char *why, uint32_t nodes_left)
{
    if (report != NULL)
        said("report of %u bytes, %u left", bytes, nodes_left);
    else
        said("no report, %u left: %s", nodes_left, why);
    if (report != NULL) assert_memory_equal(report, it.bytes, bytes);
    assert_true(report != NULL || bytes == 0);
    leat_msg_write_u64(writer, 2000);
}
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    assert_ptr_equal(core, &alone.cores[1]);
    assert_int_equal(kind, LEAT_KIND_NODE_REPORT);
    assert_int_equal(control_bytes, 2);
    assert_int_equal(control[0], 0x91);
    assert_int_equal(ask->timeout_us, 0);
    said("ask %llu%s", (unsigned long long)incarnation, control[1] == 0xc3 ? " with peers" : "");
    if (incarnation == 9) return leat_error_set(error, LEAT_E_AGAIN, "it is silent");
    it.asks[it.ask_count++] = ask;
    return LEAT_OK;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    said("coordinate %d: %s for %llu%s", request->kind, request->target,
         (unsigned long long)request->asker, request->draining ? ", draining" : "");
    it.request = request;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    calls.peer.address_number = 99;
    snprintf(alone.node.bound_address, sizeof alone.node.bound_address, "l:1");
}

static void end(void)
{
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    said_enough();
    alone_end();
}

static void asks(void)
{
    uint8_t body[] = {0x90};
    const struct leat_msg_writer writer = {.bytes = body, .used = 1, .capacity = 1};
    alone_call(leat_call_cluster_status, &writer);
}

static struct leat_msg_string text(const char *words)
{
    return (struct leat_msg_string){words, (uint32_t)strlen(words)};
}

/* Node `at` of the cluster, of incarnation 5 + at; this node is 100. */
static void node_is(uint32_t at, uint64_t incarnation, enum leat_node_state state)
{
    struct leat_node_info *info = &it.status->status->nodes[at];
    info->incarnation = incarnation;
    info->state = state;
    info->cores = 3 + at;
    info->memory_bytes = 1000 + at;
    info->streamlets = 50 + at;
    info->draining = at == 1;
    snprintf(info->name, sizeof info->name, "n%u", at);
    snprintf(info->address, sizeof info->address, "a%u", at);
    snprintf(info->node_address, sizeof info->node_address, "na%u", at);
    snprintf(info->rack, sizeof info->rack, "r%u", at);
    it.status->status->node_count = at + 1;
}

/* What a node answers, in so many bytes. */
static struct leat_frame report_of(uint32_t bytes)
{
    static char why[LEAT_REPORT_BYTES_MAX + 64];
    struct leat_msg_writer writer;
    memset(why, 'w', sizeof why);
    for (uint32_t words = bytes > 100 ? bytes - 100 : 0;; words++) {
        struct leat_msg_node_report report = {.known = true, .trouble = {why, words}};
        leat_msg_writer_init(&writer, it.bytes, sizeof it.bytes);
        leat_msg_node_report_write(&writer, &report);
        leat_msg_node_report_end_write(&writer, &report);
        leat_msg_node_report_passed_write(&writer, &report);
        if (writer.used >= bytes) break;
    }
    return (struct leat_frame){.control = it.bytes, .control_bytes = (uint32_t)writer.used};
}

static void answered(unsigned at, leat_err rc, const struct leat_frame *answer, const char *why)
{
    it.asks[at]->on_done(it.asks[at], rc, answer, why);
}

static void assert_answer(const struct leat_coordinator_status *status, const char *role,
                          const char *own_address)
{
    static uint8_t bytes[64 * 1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    struct leat_msg_cluster head = {{0},
                                    text("n1"),
                                    text(role),
                                    text(status->why),
                                    text(status->leader_address),
                                    status->term,
                                    status->applied_index,
                                    status->stream_count,
                                    status->log_count,
                                    false};
    memcpy(head.cluster_id, status->cluster_id, 16);
    leat_msg_cluster_write(&writer, &head);
    leat_msg_write_array(&writer, status->voter_count);
    for (uint32_t i = 0; i < status->voter_count; i++) {
        const struct leat_voter_status *voter = &status->voters[i];
        leat_msg_voter_write(&writer,
                             &(struct leat_msg_voter){text(voter->address), voter->votes,
                                                      voter->reachable, voter->last_index});
    }
    leat_msg_write_array(&writer, status->node_count);
    for (uint32_t i = 0; i < status->node_count; i++) {
        const struct leat_node_info *info = &status->nodes[i];
        bool own = info->incarnation == ALONE_SELF;
        struct leat_msg_cluster_node row = {
            .name = text(info->name),
            .address = text(own ? own_address : info->address),
            .node_address = text(info->node_address),
            .rack = text(info->rack),
            .incarnation = info->incarnation,
            .cores = info->cores,
            .state = (uint64_t)info->state,
            .memory_bytes = info->memory_bytes,
            .streamlets = info->streamlets,
            .draining = info->draining,
        };
        leat_msg_cluster_node_write(&writer, &row);
        leat_msg_write_u64(&writer, own ? 1000 : 2000);
    }
    const struct leat_recovery_report *report = &status->recovery;
    struct leat_msg_recovery recovery = {.known = report->known,
                                         .phase = 2,
                                         .streamlets = 11,
                                         .logs = 12,
                                         .decided = 13,
                                         .nodes_asked = 14,
                                         .nodes_answered = 15,
                                         .copies = 16,
                                         .copies_open = 17,
                                         .age_us = 18,
                                         .ended = 19,
                                         .last_recovered = 20,
                                         .last_us = 21,
                                         .last_since_crash_us = 22,
                                         .waiting = 23,
                                         .row_count = report->waiting_rows};
    leat_msg_recovery_write(&writer, &recovery);
    for (uint32_t i = 0; i < report->waiting_rows; i++) {
        struct leat_msg_recovery_row row = {7, 1, i, text("orders"), text("why")};
        leat_msg_recovery_row_write(&writer, &row);
    }
    assert_false(writer.overflow);
    assert_int_equal(calls.answer_bytes, writer.used);
    assert_memory_equal(calls.answer, bytes, writer.used);
}

static void status_fill(void)
{
    struct leat_coordinator_status *status = it.status->status;
    status->role = LEAT_VOTER_LEADER;
    snprintf(status->why, sizeof status->why, "slow");
    snprintf(status->leader_address, sizeof status->leader_address, "la");
    memcpy(status->cluster_id, "0123456789abcdef", 16);
    status->term = 31, status->applied_index = 32;
    status->stream_count = 33, status->log_count = 34;
    status->voter_count = 2;
    status->voters[0] = (struct leat_voter_status){1, "v0", true, false, 41};
    status->voters[1] = (struct leat_voter_status){2, "v1", false, true, 42};
    struct leat_recovery_report *report = &status->recovery;
    report->known = true;
    report->now = (struct leat_recovery_status){.phase = LEAT_RECOVERY_PREPARE,
                                                .streamlets = 11,
                                                .logs = 12,
                                                .decided = 13,
                                                .nodes_asked = 14,
                                                .nodes_answered = 15,
                                                .pulls = 16,
                                                .pulls_open = 17,
                                                .age_us = 18};
    report->ended = 19;
    report->last = (struct leat_recovery_status){
        .recovered = 20, .age_us = 21, .crash_to_commit_us = 22, .streamlets = 99};
    report->waiting_count = 23, report->waiting_rows = 2;
    for (uint32_t i = 0; i < 2; i++) {
        report->waiting[i].log = (struct leat_log_ref){7, 1, i};
        snprintf(report->waiting[i].stream, sizeof report->waiting[i].stream, "orders");
        snprintf(report->waiting[i].why, sizeof report->waiting[i].why, "why");
    }
}

/* ---- status ---- */

static void every_node_that_is_up_is_asked(void **state)
{
    (void)state;
    static struct leat_coordinator_status kept;
    begin();
    asks();
    assert_said("status\n");
    status_fill();
    static const uint64_t incarnations[] = {6, ALONE_SELF, 7, 8, 9, 10, 11};
    for (uint32_t i = 0; i < 7; i++)
        node_is(i, incarnations[i], i == 3 ? LEAT_NODE_DOWN : LEAT_NODE_UP);
    node_is(7, 12, LEAT_NODE_UP); /* is none of them */
    it.status->status->node_count = 7;
    kept = *it.status->status;
    it.status->on_done(it.status);
    assert_said("own report\n");
    it.report->on_done(it.report);
    assert_said("ask 6 with peers\nask 7 with peers\nask 9 with peers\nask 10 with peers\n"
                "ask 11 with peers\n");
    struct leat_frame good = report_of(60), bad = good;
    answered(1, LEAT_OK, &good, "");
    answered(0, LEAT_E_TIMEOUT, NULL, "it took too long");
    bad.control_bytes--;
    answered(3, LEAT_OK, &bad, "");
    leat_mem_fail_at(1);
    assert_said("");
    answered(2, LEAT_OK, &good, "");
    leat_mem_fail_at(0);
    char expected[512];
    snprintf(expected, sizeof expected,
             "no report, 7 left: it took too long\nown with peers\nreport of %u bytes, 5 left\n"
             "no report, 4 left: it is not up\nno report, 3 left: it is silent\n"
             "no report, 2 left: its answer can't be read\n"
             "no report, 1 left: its answer can't be read\nanswer\n",
             good.control_bytes);
    assert_said(expected);
    assert_answer(&kept, "leader", "l:1");
    end();
}

static void report_has_so_many_bytes_at_most(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        begin();
        asks();
        node_is(0, 6, LEAT_NODE_UP);
        it.status->on_done(it.status);
        it.report->on_done(it.report);
        said_enough();
        struct leat_frame frame = report_of(LEAT_REPORT_BYTES_MAX + more);
        assert_int_equal(frame.control_bytes, LEAT_REPORT_BYTES_MAX + more);
        answered(0, LEAT_OK, &frame, "");
        assert_said(more == 0 ? "report of 32768 bytes, 1 left\nanswer\n"
                              : "no report, 1 left: its answer can't be read\nanswer\n");
        end();
    }
}

static void large_clusters_leave_out_how_nodes_reach_each_other(void **state)
{
    (void)state;
    for (uint32_t nodes = 64; nodes <= 65; nodes++) {
        begin();
        asks();
        said_enough();
        for (uint32_t i = 0; i < nodes; i++)
            node_is(i,
                    i == 0   ? 6
                    : i == 1 ? ALONE_SELF
                             : 1000 + i,
                    i < 2 ? LEAT_NODE_UP : LEAT_NODE_DOWN);
        it.status->on_done(it.status);
        it.report->on_done(it.report);
        assert_said(nodes == 64 ? "own report\nask 6 with peers\n" : "own report\nask 6\n");
        answered(0, LEAT_E_TIMEOUT, NULL, "late");
        assert_true(
            said_one(nodes == 64 ? "no report, 64 left: late\n" : "no report, 65 left: late\n"));
        assert_true(said_one(nodes == 64 ? "own with peers\n" : "own\n"));
        end();
    }
}

static void roles_have_names(void **state)
{
    (void)state;
    static const char *const roles[] = {"learner", "empty",  "forming", "follower", "candidate",
                                        "leader",  "failed", "joining", "unknown"};
    static struct leat_coordinator_status kept;
    for (unsigned i = 0; i < 9; i++) {
        begin();
        asks();
        status_fill();
        it.status->status->role = (enum leat_voter_role)i;
        node_is(0, ALONE_SELF, LEAT_NODE_UP);
        alone.node.options.cluster.advertise = i == 0 ? "x" : NULL; /* as it was committed */
        if (i == 1) alone.node.bound_address[0] = '\0';
        kept = *it.status->status;
        it.status->on_done(it.status);
        it.report->on_done(it.report);
        assert_said("status\nown report\nown with peers\nanswer\n");
        assert_answer(&kept, roles[i], i < 2 ? "a0" : "l:1");
        end();
    }
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    begin();
    calls.none = true;
    asks();
    assert_said("");
    calls.none = false;
    leat_mem_fail_at(1);
    asks();
    leat_mem_fail_at(0);
    assert_said("refuse AGAIN\n");
    for (unsigned i = 1; i <= 2; i++) { /* for the reports, and for those that are asked */
        asks();
        node_is(0, 6, LEAT_NODE_UP);
        leat_mem_fail_at(i);
        it.status->on_done(it.status);
        leat_mem_fail_at(0);
        assert_said("status\nrefuse AGAIN\n");
    }
    asks(); /* no node is known */
    it.status->on_done(it.status);
    it.report->on_done(it.report);
    assert_said("status\nown report\nanswer\n");
    end();
}

/* ---- changes ---- */

static void change(uint32_t what, const char *name, uint32_t bytes)
{
    uint8_t body[512];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_node_change_write(&writer, &(struct leat_msg_node_change){what, {name, bytes}});
    alone_call(leat_call_node_change, &writer);
    memset(body, 0x5a, sizeof body);
}

static void assert_coordinates(enum leat_coordinate_kind kind, const char *more)
{
    char expected[96];
    snprintf(expected, sizeof expected, "coordinate %d: b for 99%s\n", kind, more);
    assert_said(expected);
    assert_string_equal(it.request->target, "b");
}

static void coordinated(leat_err rc)
{
    it.request->rc = rc == LEAT_OK ? LEAT_OK : leat_error_set(&it.request->error, rc, "not so");
    it.request->on_done(it.request);
}

static void node_is_changed(void **state)
{
    (void)state;
    begin();
    for (uint32_t what = 1; what <= 4; what++)
        for (unsigned i = 0; i < 3; i++) { /* it is done, and refused, and before it was asked */
            const char *more = what == LEAT_NODE_CHANGE_DRAIN ? ", draining" : "";
            if (what > 2 && i == 2) continue;
            change(what, "b", 1);
            if (what <= 2) {
                assert_coordinates(LEAT_COORDINATE_BARRIER, more);
                coordinated(i == 2 ? LEAT_E_TIMEOUT : LEAT_OK);
                if (i < 2) assert_coordinates(LEAT_COORDINATE_NODE_DRAIN, more);
            } else {
                assert_coordinates(what == LEAT_NODE_CHANGE_ADD_VOTER
                                       ? LEAT_COORDINATE_ADD_VOTER
                                       : LEAT_COORDINATE_NODE_REPLACE,
                                   "");
            }
            if (i < 2) coordinated(i == 0 ? LEAT_OK : LEAT_E_NOT_FOUND);
            assert_said(i == 0   ? "answer\n"
                        : i == 1 ? "refuse NOT_FOUND: not so\n"
                                 : "refuse TIMEOUT: not so\n");
            if (i == 0) assert_int_equal(calls.answer_bytes, 1);
            if (i == 0) assert_int_equal(calls.answer[0], 0x90);
        }
    end();
}

static void change_is_checked(void **state)
{
    (void)state;
    static const char *const expected =
        "refuse INVALID: the control body of node change is not [1 to 4, node name]\n";
    char name[LEAT_NODE_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof name);
    begin();
    change(0, "b", 1);
    assert_said(expected);
    change(5, "b", 1);
    assert_said(expected);
    change(1, "", 0);
    assert_said(expected);
    change(1, name, sizeof name);
    assert_said(expected);
    uint8_t body[] = {0x90};
    const struct leat_msg_writer writer = {.bytes = body, .used = 1, .capacity = 1};
    alone_call(leat_call_node_change, &writer);
    assert_said(expected);
    change(3, name, sizeof name - 1);
    assert_int_equal(strlen(it.request->target), LEAT_NODE_NAME_BYTES_MAX);
    coordinated(LEAT_OK);
    said_enough();
    uint8_t more[] = {0x92, 0x03, 0xa1, 'b',
                      0x00}; /* a byte too many, right after a body like it */
    struct leat_msg_writer longer = {.bytes = more, .used = 4, .capacity = 5};
    for (unsigned i = 0; i < 2; i++, longer.used++)
        alone_call(leat_call_node_change, &longer);
    assert_true(said_one("coordinate "));
    assert_said(expected);
    coordinated(LEAT_OK);
    said_enough();
    calls.none = true;
    change(1, "b", 1);
    assert_said("");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_that_is_up_is_asked),
        cmocka_unit_test(report_has_so_many_bytes_at_most),
        cmocka_unit_test(large_clusters_leave_out_how_nodes_reach_each_other),
        cmocka_unit_test(roles_have_names),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(node_is_changed),
        cmocka_unit_test(change_is_checked),
    };
    return cmocka_run_group_tests_name("broker cluster_calls", tests, NULL, NULL);
}
