/* What a node says of itself to operators (report.c), on a core whose copies are those of tests/replication's world. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/report.h"
#include "tests/replication/world.h"

enum { MAILS_MAX = 4, NODES = 3, SELF = 100 };

struct desk {
    struct world *world;
    struct leat_node node;
    struct leat_core core;
    struct leat_env env;
    struct leat_post post;
    struct leat_member members[NODES];
    struct leat_hosted *hosted[1];
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
    desk->core.env = &desk->env;
    desk->core.hosted = desk->hosted;
    desk->core.replicate.primary = desk->world->primary;
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
    /* Nodes that have not heard of that take it: here those that were started anew. */
    for (unsigned n = 1; n < NODES; n++) {
        world_node_kill(world, n, false);
        world_node_start(world, n);
    }
    world_run(world, 3 * 1000 * 1000);
    assert_string_equal(trouble(desk), "");
    desk_free(desk);
}

/* Goal: so does one whose links are not let in. What else a link may be refused for is not that. */
static void report_names_nodes_that_let_no_link_of_this_one_in(void **state)
{
    (void)state;
    struct desk *desk = desk_new(82);
    world_node_kill(desk->world, 1, false);
    world_run(desk->world, 1000 * 1000);
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STARTING);
    assert_string_equal(trouble(desk), "");
    leat_primary_peer_refused(desk->world->primary, 1, LEAT_E_STALE_EPOCH);
    assert_non_null(strstr(trouble(desk), "node n1 refuses copies from it"));
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
    desk->core.streams_by_id = by_id;
    streams[1].logs_missing = desk->core.logs_missing = true;
    assert_false(leat_heap_waited(wait, 1, desk->world->now_us));
    assert_string_equal(trouble(desk), ""); /* it may come by itself */
    while (!leat_heap_waited(wait, 1, desk->world->now_us))
        world_run(desk->world, 500 * 1000);
    assert_non_null(strstr(trouble(desk), "no room for logs of stream \"two\": they wait"));
    streams[0].logs_missing = true;
    assert_non_null(strstr(trouble(desk), "\"one\" and others: they wait"));
    streams[0].logs_missing = streams[1].logs_missing = desk->core.logs_missing = false;
    assert_string_equal(trouble(desk), "");
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_names_nodes_that_refuse_this_one_as_dead),
        cmocka_unit_test(report_names_nodes_that_let_no_link_of_this_one_in),
        cmocka_unit_test(report_names_streams_whose_logs_wait_for_memory),
    };
    return cmocka_run_group_tests_name("broker report", tests, NULL, NULL);
}
