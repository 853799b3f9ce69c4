/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself to operators (report.c), on a core whose copies are those of tests/replication's world. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin/report.h"
#include "broker/data/core_data.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "tests/broker/parts.h"
#include "tests/replication/world.h"

enum { MAILS_MAX = 4, NODES = 3, SELF = 100 };

struct desk {
    struct world *world;
    struct leat_node node;
    struct leat_core core;
    struct core_parts parts;
    struct leat_env env;
    struct leat_post post;
    struct leat_member members[NODES];
    struct leat_partition *partition[1];
    struct leat_mail *mails[MAILS_MAX];
    unsigned mail_count;
};

static void desk_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct desk *desk = ctx;
    assert_int_equal(to, LEAT_ACTOR_CORE_0);
    assert_in_range(desk->mail_count, 0, MAILS_MAX - 1);
    desk->mails[desk->mail_count++] = mail;
}

static struct desk *desk_new(uint64_t seed)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->world = world_new(seed, NODES, NODES, 1, LEAT_DURABILITY_MEMORY, 0);
    desk->post = (struct leat_post){.ctx = desk, .send = desk_send};
    desk->env.post = &desk->post;
    desk->node.store = desk->world->nodes[0].store;
    desk->node.incarnation = SELF;
    desk->node.options.cores = 1;
    desk->core.node = &desk->node;
    core_parts_set(&desk->core, &desk->parts);
    desk->core.env = &desk->env;
    desk->core.data->partitions = desk->partition;
    desk->core.data->replicate->primary = desk->world->primary;
    for (unsigned i = 0; i < NODES; i++) {
        desk->members[i] = (struct leat_member){.core = &desk->core, .number = i, .self = i == 0};
        snprintf(desk->members[i].info.name, sizeof desk->members[i].info.name, "n%u", i);
        desk->core.members.rows[desk->core.members.count++] = &desk->members[i];
    }
    world_append_all(desk->world, 3, 1000);
    assert_true(world_settle(desk->world, 10 * 1000 * 1000));
    return desk;
}

static void desk_free(struct desk *desk)
{
    world_free(desk->world);
    free(desk);
}

static void on_done(struct leat_report *report)
{
    report->owner = NULL;
}

/* What is wrong with the node as a whole. */
static const char *trouble(struct desk *desk)
{
    static struct leat_report report;
    memset(&report, 0, sizeof report);
    report.core = &desk->core;
    report.on_done = on_done;
    report.owner = desk;
    leat_report_start(&report);
    while (desk->mail_count > 0) {
        struct leat_mail *mail = desk->mails[--desk->mail_count];
        mail->deliver(&desk->core, mail);
    }
    assert_null(report.owner);
    return report.trouble;
}

static void on_fenced(void *arg)
{
    (void)arg;
}

/* Goal: a node that the others' tables have as dead, and its own have not, says so, and what to do. */
static void report_names_nodes_that_refuse_this_one_as_dead(void **state)
{
    (void)state;
    struct desk *desk = desk_new(81);
    struct world *world = desk->world;
    assert_string_equal(trouble(desk), "");
    for (unsigned n = 1; n < NODES; n++)
        assert_int_equal(leat_backup_fence(world->nodes[n].backup, "n0", SELF, on_fenced, NULL),
                         LEAT_OK);
    world_append_all(world, 1, 1000);
    world_run(world, 3 * 1000 * 1000);
    const char *said = trouble(desk);
    assert_non_null(strstr(said, "node n1 and 1 more refuse copies from it"));
    assert_non_null(strstr(said, "(incarnation 100) dead"));
    assert_non_null(strstr(said, "Restart it"));
    /* Nodes that have not heard of the refusal take copies: here the nodes that were started anew. */
    for (unsigned n = 1; n < NODES; n++) {
        world_node_kill(world, n, false);
        world_node_start(world, n);
    }
    world_run(world, 3 * 1000 * 1000);
    assert_string_equal(trouble(desk), "");
    desk_free(desk);
}

/* Goal: the report also names a node that refuses the links of this node. Other refusals of a link are not named. */
static void report_names_nodes_that_let_no_link_of_this_one_in(void **state)
{
    (void)state;
    struct desk *desk = desk_new(82);
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STALE_EPOCH);
    assert_string_equal(trouble(desk), ""); /* it takes copies */
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_OK);
    world_node_kill(desk->world, 1, false);
    world_run(desk->world, 1000 * 1000);
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STARTING);
    assert_string_equal(trouble(desk), "");
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STALE_EPOCH);
    assert_non_null(strstr(trouble(desk), "node n1 refuses copies from it"));
    const struct leat_rep_node next = {.number = 1, .incarnation = 999};
    leat_primary_node_set(desk->world->primary, &next);
    assert_string_equal(trouble(desk), ""); /* the next one has not said so */
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STALE_EPOCH);
    world_node_start(desk->world, 1);
    world_run(desk->world, 3 * 1000 * 1000);
    assert_string_equal(trouble(desk), "");
    desk_free(desk);
}

static uint64_t desk_now(void *ctx)
{
    return ((struct desk *)ctx)->world->now_us;
}

/* Goal: logs that were not made are named too, once they are refused for want of memory, and no longer than that. */
static void report_names_streams_whose_logs_wait_for_memory(void **state)
{
    (void)state;
    struct desk *desk = desk_new(83);
    struct leat_clock clock = {.ctx = desk, .now_us = desk_now};
    struct leat_stream_desc descs[2] = {{.id = 1, .name = "one"}, {.id = 2, .name = "two"}};
    struct leat_stream streams[2] = {{.desc = &descs[0], .by_id_next = &streams[1]},
                                     {.desc = &descs[1]}};
    struct leat_stream *by_id[1] = {&streams[0]};
    struct leat_heap_wait *wait = &desk->node.heap_wait;
    desk->env.clock = &clock;
    desk->core.data->streams_by_id = by_id;
    streams[1].logs_missing = desk->core.data->logs_missing = true;
    assert_false(leat_heap_waited(wait, 1, desk->world->now_us));
    assert_string_equal(trouble(desk), ""); /* it may come by itself */
    while (!leat_heap_waited(wait, 1, desk->world->now_us))
        world_run(desk->world, 500 * 1000);
    assert_non_null(strstr(trouble(desk), "no room for logs of stream \"two\": they wait"));
    streams[0].logs_missing = true;
    assert_non_null(strstr(trouble(desk), "\"one\" and others: they wait"));
    world_node_kill(desk->world, 1, false); /* what a restart repairs comes first */
    world_run(desk->world, 1000 * 1000);
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STALE_EPOCH);
    assert_non_null(strstr(trouble(desk), "node n1 refuses copies from it"));
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_OK);
    streams[0].logs_missing = streams[1].logs_missing = desk->core.data->logs_missing = false;
    assert_string_equal(trouble(desk), "");
    desk_free(desk);
}

/* Goal: reports that do not all fit the answer about a cluster leave out some of them, and name their nodes. */
static void large_reports_do_not_hide_the_others(void **state)
{
    (void)state;
    enum { CLUSTER = LEAT_NODES_MAX, ROW_BYTES = 400, SMALL = 7 };
    static uint8_t answer[LEAT_CONTROL_BYTES_MAX], large[LEAT_REPORT_BYTES_MAX], small[1024];
    static struct leat_report report;
    struct leat_msg_writer writer, out;
    struct leat_core core = {0};
    report.core = &core;
    leat_msg_writer_init(&writer, small, sizeof small);
    leat_report_write(&writer, &report, false);
    const uint32_t small_bytes = writer.used;
    report.sums.logs_troubled = report.sums.troubled_count = LEAT_REPORT_LOGS_MAX;
    for (unsigned i = 0; i < LEAT_REPORT_LOGS_MAX; i++) {
        memset(report.troubled[i].stream, 's', LEAT_STREAM_NAME_BYTES_MAX);
        memset(report.troubled[i].why, 'w', LEAT_REPORT_WHY_BYTES - 1);
    }
    leat_msg_writer_init(&writer, large, sizeof large);
    leat_report_write(&writer, &report, false);
    assert_false(writer.overflow);
    const uint32_t large_bytes = writer.used;
    for (uint32_t nodes = 2; nodes <= CLUSTER; nodes += CLUSTER - 2) {
        leat_msg_writer_init(&out, answer, sizeof answer);
        uint32_t at[CLUSTER];
        for (uint32_t i = 0; i < nodes; i++) {
            out.used += ROW_BYTES; /* its name, its addresses */
            at[i] = out.used;
            bool is_small = i % SMALL == 1;
            leat_report_write_other(&out, is_small ? small : large,
                                    is_small ? small_bytes : large_bytes, "", nodes - i);
        }
        assert_false(out.overflow);
        assert_in_range(out.capacity - out.used, LEAT_REPORT_BESIDE_BYTES / 2, out.capacity);
        for (uint32_t i = 0; i < nodes; i++) {
            struct leat_msg_reader reader;
            struct leat_msg_node_report told;
            leat_msg_reader_init(&reader, answer + at[i], out.used - at[i]);
            leat_msg_node_report_read(&reader, &told);
            assert_false(reader.failed);
            bool whole = told.troubled_count == LEAT_REPORT_LOGS_MAX;
            if (i % SMALL == 1)
                assert_int_equal(told.why.bytes, 0);
            else if (nodes == 2)
                assert_true(whole);
            else
                assert_true(whole || told.why.bytes > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_names_nodes_that_refuse_this_one_as_dead),
        cmocka_unit_test(report_names_nodes_that_let_no_link_of_this_one_in),
        cmocka_unit_test(report_names_streams_whose_logs_wait_for_memory),
        cmocka_unit_test(large_reports_do_not_hide_the_others),
    };
    return cmocka_run_group_tests_name("broker report", tests, NULL, NULL);
}
