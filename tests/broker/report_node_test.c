/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself, by report.c alone: the sums over its cores, which logs are named, how others are reached,
 * and what is wrong with the node as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin/calls.h"
#include "broker/admin/report.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "tests/broker/alone_calls.h"

enum { LOGS = 20 };

static struct {
    struct leat_partition logs[ALONE_CORES][LOGS];
    struct leat_partition *buckets[ALONE_CORES][2];
    struct leat_stream *streams[ALONE_CORES][2];
    leat_err trouble[ALONE_CORES][LOGS];
    struct leat_log_passed passed[ALONE_CORES][LOGS];
    enum leat_log_state log_states[ALONE_CORES][LOGS];
    struct leat_primary_status status;
    struct leat_rep_peer_status peers[ALONE_CORES][3];
    size_t peer_count;
    struct leat_store_usage usage;
    uint64_t space;
    unsigned space_asked;
    leat_err space_rc;
    bool refuses;
    struct leat_env store_env;
    struct leat_mail *to_store;
    struct leat_member rows[3];
    struct leat_report report;
    bool done;
} it;

/* ---- what it calls ---- */

static size_t log_at(const struct leat_log *log)
{
    size_t at = (size_t)((const struct leat_partition *)(const void *)log - &it.logs[0][0]);
    assert_in_range(at, 0, ALONE_CORES * LOGS - 1);
    return at;
}
leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes)
{
    leat_err rc = (&it.trouble[0][0])[log_at(log)];
    if (rc != LEAT_OK) snprintf(out, bytes, "%s", leat_err_name(rc));
    return rc;
}
void leat_log_passed_over(struct leat_log *log, struct leat_log_passed *out)
{
    *out = (&it.passed[0][0])[log_at(log)];
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out)
{
    memset(out, 0, sizeof *out);
    out->state = (&it.log_states[0][0])[log_at(log)];
}
static unsigned core_of(const struct leat_primary *primary)
{
    size_t at = (size_t)((const struct leat_rep_peer_status(*)[3])(const void *)primary - it.peers);
    assert_in_range(at, 0, ALONE_CORES - 1);
    return (unsigned)at;
}
size_t leat_primary_peers(const struct leat_primary *primary, struct leat_rep_peer_status *out,
                          size_t count_max)
{
    assert_int_equal(count_max, LEAT_NODES_MAX);
    memcpy(out, it.peers[core_of(primary)], sizeof it.peers[0]);
    return it.peer_count;
}
void leat_primary_status(const struct leat_primary *primary, struct leat_primary_status *out)
{
    (void)core_of(primary);
    *out = it.status;
}
void leat_store_usage(const struct leat_store *store, struct leat_store_usage *out_usage)
{
    assert_ptr_equal(store, &it);
    *out_usage = it.usage;
}
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(now_us, alone.now_us);
    return it.refuses;
}
static leat_err space(void *ctx, uint64_t *out_free_bytes)
{
    assert_ptr_equal(ctx, &alone);
    *out_free_bytes = it.space;
    it.space_asked++;
    return it.space_rc;
}
static void send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &alone);
    if (to == LEAT_ACTOR_STORE) {
        it.to_store = mail;
        return;
    }
    alone.to[alone.mail_count] = to;
    alone.mails[alone.mail_count++] = mail;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    alone.post.send = send;
    alone.disk.space = space;
    it.store_env = alone.env;
    alone.node.options.store_env = &it.store_env;
    alone.node.store = (void *)&it;
    alone.node.copies_bytes = 500;
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        struct leat_core *core = &alone.cores[q];
        core->data->partitions = it.buckets[q];
        core->data->partition_mask = 1;
        core->data->streams_by_id = it.streams[q];
        core->data->stream_mask = 1;
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(it.rows[i].info.name, sizeof it.rows[i].info.name, "n%u", i + 1);
            core->members.rows[i] = &it.rows[i];
        }
        core->members.count = 3;
    }
}

static struct leat_partition *hosts(uint32_t q, uint32_t at)
{
    struct leat_partition *partition = &it.logs[q][at];
    *partition = (struct leat_partition){.ref = {ALONE_STREAM, at, q},
                                         .core = &alone.cores[q],
                                         .log = (void *)partition,
                                         .stream = &alone.stream};
    partition->hash_next = it.buckets[q][at % 2];
    it.buckets[q][at % 2] = partition;
    alone.cores[q].data->partition_count++;
    return partition;
}

static void on_done(struct leat_report *report)
{
    assert_ptr_equal(report->owner, &it);
    assert_false(it.done);
    it.done = true;
}

static const struct leat_report *reported(void)
{
    memset(&it.report, 0, sizeof it.report);
    it.report.core = &alone.cores[1];
    it.report.on_done = on_done;
    it.report.owner = &it;
    it.done = false;
    leat_report_start(&it.report);
    alone_deliver_all();
    if (it.to_store != NULL) {
        struct leat_mail *mail = it.to_store;
        it.to_store = NULL;
        assert_false(it.done);
        mail->deliver(&it, mail);
        alone_deliver_all();
    }
    assert_true(it.done);
    return &it.report;
}

/* ---- sums ---- */

static void sums_are_of_all_cores(void **state)
{
    (void)state;
    begin();
    alone.cores[0].data->partition_count = 3, alone.cores[1].data->partition_count = 4;
    it.status = (struct leat_primary_status){1, 2, 3, 4, 5, 6, {0}};
    alone.cores[0].data->replicate->primary = (void *)&it.peers[0];
    alone.cores[1].data->replicate->primary = (void *)&it.peers[1];
    it.usage = (struct leat_store_usage){.memory_limit = 10,
                                         .memory_used = 11,
                                         .arenas_limit = 499,
                                         .arenas_used = 12,
                                         .arenas_dirty = 13};
    const struct leat_report *report = reported();
    assert_true(report->sums.known);
    assert_int_equal(report->sums.logs, 7);
    assert_int_equal(report->sums.logs_under_replicated, 4);
    assert_int_equal(report->sums.logs_below_min, 6);
    assert_int_equal(report->sums.logs_suspended, 8);
    assert_int_equal(report->sums.segments_under_replicated, 10);
    assert_int_equal(report->sums.segments_misplaced, 12);
    assert_int_equal(report->sums.pool_limit, 10);
    assert_int_equal(report->sums.pool_used, 11);
    assert_int_equal(report->sums.replicas_limit, 499);
    assert_int_equal(report->sums.replicas_used, 12);
    assert_int_equal(report->sums.replicas_unflushed, 13);
    assert_string_equal(report->trouble, "");
    assert_false(report->disk_lacks);
    it.usage.arenas_limit = 501; /* they share it */
    assert_int_equal(reported()->sums.replicas_limit, 500);
    alone_end();
}

static void logs_in_trouble_are_named(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i < 4; i++) {
        hosts(0, i);
        it.trouble[0][i] = LEAT_E_DAMAGED;
    }
    it.logs[0][0].log = NULL;
    it.logs[0][1].state = LEAT_PARTITION_GOES;
    it.trouble[0][3] = LEAT_OK;
    struct leat_partition *home = hosts(1, 0);
    it.trouble[1][0] = LEAT_E_LOG_INCOMPLETE;
    home->groups = (void *)&it;
    it.log_states[1][0] = LEAT_LOG_WAITING;
    struct leat_partition *serving = hosts(1, 2); /* its appends are taken, and reads are not */
    it.trouble[1][2] = LEAT_E_DAMAGED;
    serving->groups = (void *)&it;
    it.log_states[1][2] = LEAT_LOG_SERVING;
    const struct leat_report *report = reported();
    assert_int_equal(report->sums.logs_troubled, 3);
    assert_int_equal(report->sums.troubled_count, 3);
    assert_int_equal(report->troubled[0].log.streamlet, 2);
    assert_string_equal(report->troubled[0].stream, "orders");
    assert_string_equal(report->troubled[0].why, leat_err_name(LEAT_E_DAMAGED));
    for (unsigned i = 1; i < 3; i++) {
        const bool home_waits = report->troubled[i].log.streamlet == 0;
        const char *why = home_waits ? "a home of consumer groups, which are neither served nor "
                                       "listed: LOG_INCOMPLETE"
                                     : leat_err_name(LEAT_E_DAMAGED);
        assert_int_equal(report->troubled[i].log.log, 1);
        assert_string_equal(report->troubled[i].why, why);
    }
    assert_int_equal(leat_report_logs_troubled(&alone.cores[0]), 1);
    it.log_states[1][0] = LEAT_LOG_SERVING;
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(reported()->troubled[i].why[0] == 'a', 0);
    alone_end();
    begin();
    for (uint32_t i = 0; i < LOGS; i++) {
        hosts(0, i);
        it.trouble[0][i] = LEAT_E_DAMAGED;
        it.passed[0][i] = (struct leat_log_passed){i, 2, 3, 4}; /* nothing of the first */
    }
    report = reported();
    assert_int_equal(report->sums.logs_troubled, LOGS);
    assert_int_equal(report->sums.troubled_count, LEAT_REPORT_LOGS_MAX);
    assert_int_equal(report->sums.logs_passed, LOGS - 1);
    assert_int_equal(report->sums.passed_count, LEAT_REPORT_LOGS_MAX);
    for (uint32_t i = 0; i < LEAT_REPORT_LOGS_MAX; i++) {
        assert_int_equal(report->passed[i].passed.bytes, report->passed[i].log.streamlet);
        assert_string_equal(report->passed[i].stream, "orders");
    }
    it.logs[0][5].state = LEAT_PARTITION_GOES;
    it.logs[0][6].log = NULL;
    assert_int_equal(reported()->sums.logs_passed, LOGS - 3);
    alone_end();
}

/* ---- how others are reached ---- */

static void others_are_as_all_cores_reach_them(void **state)
{
    (void)state;
    begin();
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        alone.cores[q].data->replicate->primary = (void *)&it.peers[q];
        it.peers[q][0] = (struct leat_rep_peer_status){
            .node = 1, .up = q == 1, .transport = q == 0 ? "shm" : "", .load_bytes = 9 - q};
        it.peers[q][1] = (struct leat_rep_peer_status){
            .node = 2, .up = q == 0, .transport = "tcp", .load_bytes = 5 + q};
        it.peers[q][0].replicas = 3 + q, it.peers[q][1].replicas = 10;
        it.peers[q][2] = (struct leat_rep_peer_status){.node = LEAT_NODES_MAX, .transport = "x"};
    }
    it.peer_count = 3;
    const struct leat_report *report = reported();
    static const struct leat_report none;
    assert_memory_equal(report->troubled, none.troubled, sizeof none.troubled);
    assert_false(report->peers[0].known);
    assert_true(report->peers[1].known && report->peers[1].up && !report->peers[1].says_gone);
    assert_true(report->peers[2].known && report->peers[2].up);
    assert_string_equal(report->peers[1].transport, ""); /* one core has not met it */
    assert_string_equal(report->peers[2].transport, "tcp");
    assert_int_equal(report->peers[1].replicas, 7);
    assert_int_equal(report->peers[2].replicas, 20);
    assert_int_equal(report->peers[1].load_bytes, 9);
    assert_int_equal(report->peers[2].load_bytes, 6);
    assert_string_equal(report->trouble, "");
    it.peers[0][1].says_gone = true;
    report = reported();
    assert_true(report->peers[2].says_gone);
    assert_true(strncmp(report->trouble, "node n3 refuses copies from it: ", 32) == 0);
    assert_non_null(strstr(report->trouble, "(incarnation 100) dead"));
    it.peers[1][0].says_gone = true;
    assert_true(strncmp(reported()->trouble, "node n2 and 1 more refuse copies", 32) == 0);
    it.peer_count = 0;
    assert_false(reported()->peers[1].known);
    /* A node without a name is not told of: no core has heard of it yet. */
    it.peers[0][0] = (struct leat_rep_peer_status){.node = 3, .says_gone = true, .transport = ""};
    it.peer_count = 1;
    alone.cores[1].data->replicate->primary = NULL;
    report = reported();
    assert_string_equal(report->trouble, "");
    uint8_t bytes[1024];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    struct leat_msg_node_report body;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_report_write(&writer, report, true);
    leat_msg_reader_init(&reader, bytes, writer.used);
    leat_msg_node_report_read(&reader, &body);
    assert_true(leat_msg_read_done(&reader));
    assert_int_equal(body.peer_count, 0);
    alone_end();
}

/* ---- what is wrong with it as a whole ---- */

static void full_disk_is_told(void **state)
{
    (void)state;
    static const char *const full =
        "its disk is full: there is no space for another segment (2 KiB)";
    begin();
    it.usage.disk_lacks_bytes = 2048;
    it.space = 4095;
    const struct leat_report *report = reported();
    assert_true(report->disk_lacks);
    assert_true(strncmp(report->trouble, full, strlen(full)) == 0);
    assert_int_equal(leat_report_disk_lacks(&alone.node), 2048);
    it.space = 4096; /* there is space again */
    assert_string_equal(reported()->trouble, "");
    assert_int_equal(leat_report_disk_lacks(&alone.node), 0);
    it.space_rc = LEAT_E_DISK;
    assert_true(strncmp(reported()->trouble, full, strlen(full)) == 0);
    alone.cores[0].data->replicate->primary = (void *)&it.peers[0];
    it.peers[0][0] = (struct leat_rep_peer_status){.node = 0, .says_gone = true, .transport = ""};
    it.peer_count = 1;
    assert_true(strncmp(reported()->trouble, "node n1 refuses", 15) == 0); /* that comes first */
    it.usage.disk_lacks_bytes = 1;
    assert_int_equal(leat_report_disk_lacks(&alone.node), 1);
    it.peer_count = 0;
    assert_true(reported()->disk_lacks); /* a byte is enough */
    assert_true(strncmp(it.report.trouble, full, 10) == 0);
    it.usage.disk_lacks_bytes = 0;
    it.space_asked = 0; /* which may block */
    assert_int_equal(leat_report_disk_lacks(&alone.node), 0);
    assert_int_equal(it.space_asked, 0);
    alone_end();
}

static void logs_that_wait_for_memory_are_told(void **state)
{
    (void)state;
    static const char *const words =
        "its memory budget has no room for logs of stream \"orders\"%s";
    struct leat_stream_desc other = {.name = "b"};
    struct leat_stream second = {.desc = &other, .logs_missing = true};
    char expected[96];
    begin();
    alone.cores[1].data->logs_missing = true;
    alone.stream.logs_missing = true;
    it.streams[1][1] = &alone.stream;
    assert_string_equal(reported()->trouble, ""); /* they may still be made */
    it.refuses = true;
    alone.stream.logs_missing = false;
    assert_string_equal(reported()->trouble, "");
    alone.stream.logs_missing = true;
    snprintf(expected, sizeof expected, words, ": they wait");
    assert_true(strncmp(reported()->trouble, expected, strlen(expected)) == 0);
    it.streams[0][0] = &alone.stream; /* on another core, too */
    alone.cores[0].data->logs_missing = true;
    assert_true(strncmp(reported()->trouble, expected, strlen(expected)) == 0);
    alone.stream.by_id_next = &second;
    snprintf(expected, sizeof expected, words, " and others: they wait");
    assert_true(strncmp(reported()->trouble, expected, strlen(expected)) == 0);
    alone.cores[0].data->replicate->primary = (void *)&it.peers[0]; /* that comes first */
    it.peers[0][0] = (struct leat_rep_peer_status){.node = 0, .says_gone = true, .transport = ""};
    it.peer_count = 1;
    assert_true(strncmp(reported()->trouble, "node n1 refuses", 15) == 0);
    it.peer_count = 0;
    alone.cores[0].data->logs_missing = alone.cores[1].data->logs_missing = false;
    assert_string_equal(reported()->trouble, "");
    alone_end();
}

/* ---- the answer ---- */

static void ask(uint32_t fields, bool with_peers)
{
    uint8_t body[8];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, fields);
    if (fields >= 1) leat_msg_write_bool(&writer, with_peers);
    alone_call(leat_call_node_report, &writer);
    alone_deliver_all();
    assert_int_equal(calls.open, 0);
}

static void assert_text(struct leat_msg_string text, const char *expected)
{
    assert_int_equal(text.bytes, strlen(expected));
    assert_memory_equal(text.text, expected, text.bytes);
}

static void report_is_answered(void **state)
{
    (void)state;
    begin();
    hosts(0, 3), hosts(1, 4);
    it.trouble[0][3] = LEAT_E_DAMAGED;
    it.passed[1][4] = (struct leat_log_passed){11, 12, 13, 14};
    alone.cores[0].data->replicate->primary = (void *)&it.peers[0];
    it.peers[0][0] = (struct leat_rep_peer_status){.node = 0,
                                                   .up = true,
                                                   .says_gone = true,
                                                   .transport = "shm",
                                                   .load_bytes = 8,
                                                   .replicas = 9};
    it.peer_count = 1;
    for (uint32_t fields = 0; fields < 3; fields++) { /* without, with, and without peers */
        struct leat_msg_reader reader;
        struct leat_msg_node_report report;
        ask(fields == 2 ? 1 : fields, fields == 1);
        assert_said("answer\n");
        alone_answer(&reader);
        leat_msg_node_report_read(&reader, &report);
        assert_true(leat_msg_read_done(&reader));
        assert_int_equal(report.logs, 2);
        assert_in_range(report.trouble.bytes, 100, 300);
        assert_memory_equal(report.trouble.text, "node n1 refuses copies", 22);
        assert_int_equal(report.peer_count, fields == 1);
        if (fields == 1) {
            struct leat_msg_report_peer peer;
            leat_msg_report_peer_read(&report.peers, &peer);
            assert_text(peer.node, "n1"), assert_text(peer.transport, "shm");
            assert_true(peer.up && peer.load_bytes == 8 && peer.replicas == 9);
        }
        assert_int_equal(report.troubled_count, 1);
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&report.troubled, &row);
        assert_true(row.stream_id == ALONE_STREAM && row.streamlet == 3 && row.log == 0);
        assert_text(row.stream, "orders"), assert_text(row.why, leat_err_name(LEAT_E_DAMAGED));
        assert_int_equal(report.passed_count, 1);
        struct leat_msg_passed passed;
        leat_msg_passed_read(&report.passed, &passed);
        assert_true(passed.stream_id == ALONE_STREAM && passed.streamlet == 4 && passed.log == 1);
        assert_text(passed.stream, "orders");
        assert_true(passed.bytes == 11 && passed.segments == 12 && passed.segment == 13 &&
                    passed.offset == 14);
    }
    uint8_t body[] = {0x91, 0x07};
    const struct leat_msg_writer writer = {.bytes = body, .used = 2, .capacity = 2};
    alone_call(leat_call_node_report, &writer);
    assert_said("refuse INVALID: a node's report is asked for as [peers]\n");
    calls.none = true;
    ask(1, true);
    assert_said("");
    alone_end();
}

static void report_of_another_has_its_share_of_the_answer(void **state)
{
    (void)state;
    static uint8_t bytes[LEAT_REPORT_BESIDE_BYTES + 4096];
    static const uint8_t other[100] = {0x5b};
    for (uint32_t row = 0; row < 5;
         row++) { /* 300 bytes for three; 299; nothing; none came; nothing for a byte */
        struct leat_msg_writer writer;
        uint32_t room = row == 0 ? 300 : row == 1 ? 299 : row % 2 == 0 ? 0 : 300;
        leat_msg_writer_init(&writer, bytes, LEAT_REPORT_BESIDE_BYTES + room);
        leat_report_write_other(&writer, row != 3 ? other : NULL, row == 4 ? 1 : sizeof other,
                                "late", 3);
        assert_false(writer.overflow);
        if (row == 0) {
            assert_int_equal(writer.used, 100);
            assert_memory_equal(bytes, other, 100);
            continue;
        }
        struct leat_msg_reader reader;
        struct leat_msg_node_report report;
        leat_msg_reader_init(&reader, bytes, writer.used);
        leat_msg_node_report_read(&reader, &report);
        assert_true(leat_msg_read_done(&reader));
        assert_false(report.known);
        assert_text(report.why, row == 3 ? "late"
                                         : "its report takes more than its share of this answer: "
                                           "ask it itself");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_of_all_cores),
        cmocka_unit_test(logs_in_trouble_are_named),
        cmocka_unit_test(others_are_as_all_cores_reach_them),
        cmocka_unit_test(full_disk_is_told),
        cmocka_unit_test(logs_that_wait_for_memory_are_told),
        cmocka_unit_test(report_is_answered),
        cmocka_unit_test(report_of_another_has_its_share_of_the_answer),
    };
    return cmocka_run_group_tests_name("broker report_node", tests, NULL, NULL);
}
