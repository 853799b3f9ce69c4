/* SPDX-License-Identifier: Apache-2.0 */
/* The writes that are posted to copies, their cost, and the report when all copies are there again; each condition by
 * itself. */
#include "tests/replication/case_rig.h"

#include "base/node_log.h"

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    const char *text = strstr(line, "replication: ");
    if (text) trace("\"%s\" ", text);
}

/* ---- versions ---- */

static void raised(void)
{
    begun();
    owned->need = owned->version = 2;
    set->stamped = set->copies[0]->stamp = set->copies[1]->stamp = 2;
}

static void version(void)
{
    calm();
    rep_version_step(owned);
    trace("-> %s", leat_list_empty(&owned->version_link) ? "not told" : "in line");
    armed_trace();
}

static void version_stands_in_line_once_all_carry_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(raised, version);
    CASE(raised, version, owned->opened = false);
    CASE(raised, version, owned->known = 2);
    CASE(raised, version, owned->version_busy = true);
    CASE(raised, version, owned->fenced = true);
    CASE(raised, version, set->stamped = 1);
    CASE(raised, version, copy->stamp = 1);
    CASE(raised, version, leat_list_push_back(&rig->primary->versions, &owned->version_link));
    TRACE_IS("(void)0: -> in line\n"
             "owned->opened = false: -> not told\n"
             "owned->known = 2: -> not told\n"
             "owned->version_busy = true: -> not told\n"
             "owned->fenced = true: -> not told\n"
             "set->stamped = 1: -> not told, again in 20000 us\n"
             "copy->stamp = 1: -> not told, again in 20000 us\n"
             "leat_list_push_back(&rig->primary->versions, &owned->version_link): -> in line\n");
}

/* ---- writes ---- */

static unsigned free_writes(void)
{
    unsigned count = 0;
    for (const struct leat_list *it = rig->primary->writes_free.next;
         it != &rig->primary->writes_free; it = it->next)
        count++;
    return count;
}

static leat_err write_rc;

static void written(void)
{
    const struct leat_rep_accounts *accounts = &rig->primary->accounts;
    uint64_t had = accounts->replicated_bytes, writes = accounts->writes;
    struct rep_copy *same = copy;
    set->target = 192;
    rep_copy_write(copy);
    trace("   free %u of %u\n", free_writes(), rig->primary->writes_fresh);
    rig_wrote(rig, 1, write_rc);
    trace("-> sent %u done %u, %u under way of %u, free %u, %llu bytes in %llu writes\n",
          same->sent, same->done, same->writes, set->writes, free_writes(),
          (unsigned long long)(accounts->replicated_bytes - had),
          (unsigned long long)(accounts->writes - writes));
}

static void write_that_ended_is_used_again(void **state)
{
    (void)state;
    write_rc = LEAT_OK;
    CASE_AS_IT_IS(begun, written);
    CASE(begun, written, rig->primary->options.window = 1);
    write_rc = LEAT_E_CLOSED;
    CASE_AS_IT_IS(begun, written);
    TRACE_IS("(void)0: n1 write @4224+64 from s0+128\n"
             "   free 1 of 2\n"
             "-> sent 192 done 192, 0 under way of 0, free 2, 64 bytes in 1 writes\n"
             "rig->primary->options.window = 1: n1 write @4224+64 from s0+128\n"
             "   free 1 of 2\n"
             "-> sent 192 done 192, 0 under way of 0, free 2, 64 bytes in 1 writes\n"
             "(void)0: n1 write @4224+64 from s0+128\n"
             "   free 1 of 2\n"
             "-> sent 192 done 128, 0 under way of 0, free 2, 0 bytes in 0 writes\n");
}

/* ---- all have theirs again ---- */

static void recopied(uint64_t before, uint64_t after)
{
    rig->primary->lacks_since_us = rig->now_us - 5000;
    rig->primary->lacks_bytes = before;
    rig->primary->accounts.recopied_bytes = after;
    rig_peer(rig, 1)->audited_us = 9;
}

static void whole(void)
{
    calm();
    rep_recopy_step(rig->primary, rig->now_us);
    trace("-> lacks since %llu, audited %llu", (unsigned long long)rig->primary->lacks_since_us,
          (unsigned long long)rig_peer(rig, 1)->audited_us);
    armed_trace();
}

static void what_was_copied_is_said_once_nothing_is_missing(void **state)
{
    (void)state;
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_INFO);
    CASE(begun, whole, recopied(1024, 4096));
    CASE(begun, whole, recopied(1024, 1024));
    CASE(begun, whole, recopied(0, 1024));
    CASE(begun, whole, recopied(0, 1024), rig->primary->lacks_since_us = 0);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    TRACE_IS("recopied(1024, 4096): \"replication: every closed segment of this core's logs has "
             "its copies again: 3 KiB were copied, 5 ms after one was missing\" -> lacks since 0, "
             "audited 0, again in 20000 us\n"
             "recopied(1024, 1024): -> lacks since 0, audited 9\n"
             "recopied(0, 1024): \"replication: every closed segment of this core's logs has its "
             "copies again: 1 KiB were copied, 5 ms after one was missing\" -> lacks since 0, "
             "audited 0, again in 20000 us\n"
             "recopied(0, 1024), rig->primary->lacks_since_us = 0: -> lacks since 0, audited 9\n");
}

static unsigned lacking_sets;

static void lacks(void)
{
    struct leat_primary_log log = {.options = {.ref = {7, 2, 1}}};
    struct rep_set lacking[2] = {{.log = &log, .id = {5}}, {.log = &log, .id = {6}}};
    calm();
    for (unsigned i = 0; i < lacking_sets; i++)
        leat_list_push_back(&rig->primary->deficit, &lacking[i].deficit);
    rig->primary->recopy = &lacking[0]; /* another one is not chosen */
    rep_recopy_step(rig->primary, rig->now_us);
    rig->primary->recopy = NULL;
    for (unsigned i = 0; i < lacking_sets; i++)
        leat_list_remove(&lacking[i].deficit);
    trace("-> told %d\n", rig->primary->lacks_told);
}

static void lacks_for(uint64_t us, unsigned sets, bool told)
{
    rig->now_us += us;
    rig->primary->lacks_since_us = rig->now_us - us;
    rig->primary->lacks_told = told;
    lacking_sets = sets;
}

/* Goal: segments that lack copies for long are said once, and that they have them again is said then in any case. */
static void what_lacks_copies_for_long_is_said_once(void **state)
{
    (void)state;
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_INFO);
    CASE(begun, lacks, lacks_for(REP_LACKS_TELL_US - 1, 1, false));
    CASE(begun, lacks, lacks_for(REP_LACKS_TELL_US, 2, false));
    CASE(begun, lacks, lacks_for(REP_LACKS_TELL_US, 2, true));
    CASE(begun, whole, recopied(1024, 1024), rig->primary->lacks_told = true);
    assert_false(rig->primary->lacks_told);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    TRACE_IS("lacks_for(REP_LACKS_TELL_US - 1, 1, false): -> told 0\n"
             "lacks_for(REP_LACKS_TELL_US, 2, false): \"replication: closed segments of this "
             "core's logs have "
             "had too few copies for 10 s: 2 of them, the first is segment 5 of log 7/2/1; leat "
             "cluster status names the nodes\" -> told 1\n"
             "lacks_for(REP_LACKS_TELL_US, 2, true): -> told 1\n"
             "recopied(1024, 1024), rig->primary->lacks_told = true: \"replication: every closed "
             "segment of this core's logs has its copies again: 0 KiB were copied, 5 ms after one "
             "was missing\" -> lacks since 0, audited 0, again in 20000 us\n");
}

/* Goal: a primary that knows the node of the highest number looks at that node, and at none behind the table: the
 * sanitizer of undefined behaviour sees such a read. */
static void nodes_are_looked_at_up_to_the_highest_number(void **state)
{
    (void)state;
    struct leat_rep_node highest = rig_node(4);
    struct leat_rep_peer_status peers[4];
    struct leat_primary_log_status status;
    begun();
    rig->quiet = true;
    leat_primary_node_set(rig->primary, &highest);
    struct rep_peer *peer = rig_peer(rig, 4);
    assert_int_equal(rig->primary->peer_end, LEAT_REP_NODES_MAX);
    assert_int_equal(leat_primary_peers(rig->primary, peers, 4), 4);
    assert_int_equal(peers[3].node, LEAT_REP_NODES_MAX - 1);
    assert_int_equal(leat_primary_transports(rig->primary), 1u << LEAT_RMEM_SHM);
    peer->audit_all = false;
    leat_primary_log_whole(owned);
    assert_true(peer->audit_all);
    owned->options.min_copies = 5; /* with node 4, which may come, there are as many nodes */
    leat_primary_log_status(owned, &status);
    assert_true(status.below_min);
    rig_peer_up(rig, 4);
    leat_primary_log_status(owned, &status);
    assert_false(status.below_min);
    recopied(0, 1024);
    peer->audited_us = 9;
    rep_recopy_step(rig->primary, rig->now_us);
    assert_int_equal(peer->audited_us, 0);
    leat_list_push_back(&rig->primary->deficit, &set->deficit);
    set->retry_us = UINT64_MAX;
    rep_recopy_step(rig->primary, rig->now_us); /* asks how long nodes are waited for */
    assert_null(rig->primary->recopy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(what_lacks_copies_for_long_is_said_once),
        TRACE_TEST(version_stands_in_line_once_all_carry_it),
        TRACE_TEST(write_that_ended_is_used_again),
        TRACE_TEST(what_was_copied_is_said_once_nothing_is_missing),
        TRACE_TEST(nodes_are_looked_at_up_to_the_highest_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
