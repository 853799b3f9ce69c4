/* SPDX-License-Identifier: Apache-2.0 */
/* Primary and backup together, on the world of world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/replication/world.h"

/* Goal: without failures everything is acked, every copy is the same, and a segment costs each
 * backup exactly two control requests. */
static void append_without_failures_takes_two_requests_per_segment_and_backup(void **state)
{
    (void)state;
    struct world *world = world_new(1, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world_append_all(world, 400, 3000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_run(world, 2 * 1000 * 1000);
    assert_true(world_is_whole(world));
    struct leat_primary_status status;
    leat_primary_status(world->primary, &status);
    assert_true(status.accounts.segments > 5);
    /* What is not closed yet has had one of the two. */
    unsigned open = 0;
    LEAT_LIST_EACH(&world->logs[0].rep->active, it)
    open++;
    assert_int_equal(status.accounts.control_rpcs, 2 * 2 * status.accounts.segments + 2 * open);
    assert_int_equal(status.accounts.replaced_copies, 0);
    assert_int_equal(status.accounts.lost_backups, 0);
    assert_true(world->marks_seen > 0);
    world_check_after_death(world);
    world_free(world);
}

/* Goal: a window of writes. What is sealed while a commit is under way leaves at once, up to four writes
 * for each copy, and is acked only when it is there. */
static void append_beside_a_commit_under_way_is_written_at_once(void **state)
{
    (void)state;
    struct world *world = world_new(2, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    struct world_log *log = &world->logs[0];
    world_append_all(world, 1, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    uint64_t acked = leat_log_acked_offset(log->log);
    for (unsigned i = 1; i < world->node_count; i++)
        world->nodes[i].slow = true;
    for (unsigned i = 1; i <= 6; i++) {
        assert_true(world_append(log, 200));
        world->care_us = 0;
        world_care(world); /* and the end of the turn */
        assert_int_equal(world->write_count, 2 * (i < 4 ? i : 4));
        assert_int_equal(leat_log_acked_offset(log->log), acked);
    }
    for (unsigned i = 1; i < world->node_count; i++)
        world->nodes[i].slow = false;
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_int_equal(log->failed, 0);
    assert_true(leat_log_acked_offset(log->log) > acked);
    world_check_after_death(world);
    world_free(world);
}

/* Goal: writes that travel as messages are small, so that they stay in a core's cache, and no fewer bytes are under way
 * for that. */
static void writes_by_messages_are_cut_and_as_many_bytes_as_whole_ones(void **state)
{
    (void)state;
    enum { WINDOW = 1 };
    world_segment_bytes = 8 * 1024 * 1024;
    struct world *world = world_new(3, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world_segment_bytes = 64 * 1024;
    world->primary->options.window = WINDOW;
    struct world_log *log = &world->logs[0];
    world_append_all(world, 200, 60000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    const struct rep_set *set = rep_set_find(log->rep, leat_log_head_segment(log->log));
    assert_int_equal(set->copy_count, 2);
    set->copies[0]->peer->target->kind = LEAT_RMEM_TCP;
    for (unsigned i = 1; i < world->node_count; i++)
        world->nodes[i].slow = true;
    for (unsigned turn = 0; turn < 6; turn++) {
        for (unsigned i = 0; i < 16 && world_append(log, 60000); i++) {
        }
        world->care_us = 0;
        world_care(world); /* seals what is there: a write for each copy, if it may go */
    }
    const struct rep_copy *cut = set->copies[0], *whole = set->copies[1];
    uint32_t most = WINDOW * LEAT_REP_WRITE_BYTES_MAX;
    assert_true(set->target - cut->done > most);
    assert_int_equal(whole->writes, WINDOW);
    assert_in_range(cut->sent - cut->done, most - LEAT_REP_MESSAGE_BYTES_MAX, most);
    assert_true(cut->writes >= most / LEAT_REP_MESSAGE_BYTES_MAX);
    LEAT_LIST_EACH(&cut->peer->writes, at)
    {
        const struct rep_write *write = LEAT_CONTAINER(at, struct rep_write, link);
        if (write->copy == cut) assert_in_range(write->bytes, 1, LEAT_REP_MESSAGE_BYTES_MAX);
    }
    for (unsigned i = 1; i < world->node_count; i++)
        world->nodes[i].slow = false;
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_int_equal(log->failed, 0);
    world_check_after_death(world);
    world_free(world);
}

static bool log_is_hibernated_now;
static void log_hibernated(void *arg, struct leat_log *log)
{
    (void)arg;
    (void)log;
    log_is_hibernated_now = true;
}

static struct leat_primary_status status_of(const struct world *world)
{
    struct leat_primary_status status;
    leat_primary_status(world->primary, &status);
    return status;
}

static unsigned backup_of_head(const struct world *world, unsigned which)
{
    const struct leat_primary_log *rep = world->logs[0].rep;
    struct rep_set *set = rep_set_find(rep, leat_log_head_segment(world->logs[0].log));
    assert_true(which < set->copy_count);
    return set->copies[which]->peer->node.number;
}

/* Goal: after a backup is lost nothing is acked before the coordinator has taken the version; then
 * the replacement is whole and acks go on (dissertation §4.5.3). */
static void lost_backup_acks_wait_for_the_coordinator(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct world *world = world_ready(2, 4, 3, (enum leat_durability)level);
        world->coordinator_down = true;
        world_node_kill(world, backup_of_head(world, 0), false);
        world_run(world, 100 * 1000);
        uint64_t acked = world->logs[0].acked;
        world_append_all(world, 5, 1000);
        world_run(world, 1000 * 1000);
        assert_int_equal(world->logs[0].acked, acked);
        assert_int_equal(status_of(world).logs_suspended, 1);
        world->coordinator_down = false;
        assert_true(world_settle(world, 10 * 1000 * 1000));
        assert_true(world->logs[0].acked > acked);
        assert_true(world->logs[0].version > 1);
        assert_int_equal(status_of(world).accounts.replaced_copies, 1);
        world_check_after_death(world);
        world_free(world);
    }
}

/* Goal: a copy whose backup answered late, with a generation below the coordinator's, does not count until the copy is
 * restamped; acks wait until then. */
static void copy_of_a_lower_version_has_acks_wait(void **state)
{
    (void)state;
    struct world *world = world_ready(2, 4, 3, LEAT_DURABILITY_MEMORY);
    struct world_log *log = &world->logs[0];
    world_node_kill(world, backup_of_head(world, 0), false);
    world_run(world, 100 * 1000);
    world_append_all(world, 5, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_int_equal(log->rep->known, 2);
    struct rep_set *set = rep_set_find(log->rep, leat_log_head_segment(log->log));
    struct rep_copy *copy = set->copies[0];
    assert_int_equal(copy->stamp, 2);
    uint64_t acked = log->acked;
    copy->stamp = 1;
    copy->batched = true; /* its RESTAMP is under way */
    world_append_all(world, 5, 1000);
    world_run(world, 500 * 1000);
    assert_int_equal(copy->done, set->target);
    assert_int_equal(log->acked, acked);
    copy->batched = false; /* it is answered, and is sent anew */
    rep_mark_dirty(log->rep);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_true(log->acked > acked);
    assert_int_equal(copy->stamp, 2);
    world_check_after_death(world);
    world_free(world);
}

static void on_log_gone(void *arg, struct leat_log *log)
{
    (void)log;
    *(bool *)arg = true;
}

/* Goal: a log whose stream was deleted before its first segment was committed goes, although its commits wait
 * for a version: that is never taken. */
static void log_whose_stream_is_deleted_as_it_opens_goes(void **state)
{
    (void)state;
    struct world *world = world_new(2, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    struct world_log *log = &world->logs[0];
    bool gone = false;
    world->stream_deleted = true;
    world_append_all(world, 5, 1000);
    while (!log->opening)
        world_step(world);
    unsigned lost = backup_of_head(world, 0);
    world->nodes[lost].slow = true; /* a commit is under way when it dies */
    world_append_all(world, 5, 1000);
    world_run(world, 10 * 1000);
    world_node_kill(world, lost, false);
    world_run(world, 1000 * 1000);
    world->nodes[lost].slow = false;
    assert_true(log->rep->need > log->rep->known);
    assert_int_equal(log->acked, 0);
    leat_log_delete(log->log, on_log_gone, &gone);
    world_run(world, 1000 * 1000);
    assert_true(gone);
    assert_int_equal(log->failed, 10);
    world_free(world);
}

struct idle {
    const struct rep_set *set;
    bool told, was_busy;
};

static void on_idle(void *arg)
{
    struct idle *idle = arg;
    idle->told = true;
    idle->was_busy = idle->set->stamp_busy;
}

/* Goal: a log that is given up while its own copy is being restamped waits for the store's answer. */
static void log_given_up_amid_a_restamp_waits_for_the_store(void **state)
{
    (void)state;
    struct world *world = world_ready(2, 4, 3, LEAT_DURABILITY_DISK);
    struct leat_primary_log *rep = world->logs[0].rep;
    struct idle idle = {.set = rep_set_find(rep, leat_log_head_segment(world->logs[0].log))};
    world_node_kill(world, backup_of_head(world, 0), false);
    for (unsigned i = 0; i < 200000 && !idle.set->stamp_busy; i++)
        world_step(world);
    assert_true(idle.set->stamp_busy);
    leat_primary_log_release(rep, on_idle, &idle);
    assert_false(idle.told);
    world_run(world, 1000 * 1000);
    assert_true(idle.told);
    assert_false(idle.was_busy);
    world_free(world);
}

/* Goal: the stale copy of a backup that returns never counts, and goes. */
static void lost_backup_returns_with_a_stale_copy_that_goes(void **state)
{
    (void)state;
    struct world *world = world_ready(3, 4, 2, LEAT_DURABILITY_DISK);
    unsigned node = backup_of_head(world, 0);
    world_node_kill(world, node, true);
    world_append_all(world, 20, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_node_start(world, node);
    struct leat_backup_status status;
    leat_backup_status(world->nodes[node].backup, &status);
    assert_int_equal(status.replicas_unsettled, 1);
    world_check(world); /* it is a mark, of a version that does not count any more */
    world_run(world, 3 * 1000 * 1000);
    leat_backup_status(world->nodes[node].backup, &status);
    assert_int_equal(status.replicas, 0);
    world_free(world);
}

/* Goal: with fewer nodes than copies appends go on while the minimum is there; below it they are
 * refused by name, and go on when a node returns. */
static void too_few_nodes_refuses_by_name_and_recovers(void **state)
{
    (void)state;
    struct world *world = world_ready(4, 3, 3, LEAT_DURABILITY_MEMORY);
    struct leat_store_port store_port = leat_primary_port(world->logs[0].rep);
    world_node_kill(world, 1, false);
    world_run(world, 50 * 1000);
    world_append_all(world, 5, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_int_equal(status_of(world).logs_under_replicated, 1);
    assert_int_equal(store_port.refusal(store_port.ctx), LEAT_OK);
    world_node_kill(world, 2, false);
    world_run(world, 200 * 1000);
    assert_int_equal(store_port.refusal(store_port.ctx), LEAT_E_TOO_FEW_COPIES);
    assert_false(world_append(&world->logs[0], 1000));
    assert_int_equal(status_of(world).logs_below_min, 1);
    world_node_start(world, 1);
    world_run(world, 500 * 1000);
    assert_true(world_append(&world->logs[0], 1000));
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_node_start(world, 2);
    world_run(world, 5 * 1000 * 1000);
    assert_true(world_is_whole(world));
    world_check_after_death(world);
    world_free(world);
}

/* Goal: only an open is refused; then another node is asked, and no state is left at the first. */
static void refused_open_asks_another_and_leaves_nothing(void **state)
{
    (void)state;
    struct world *world = world_new(5, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world->nodes[2].refuses = 100;
    world_append_all(world, 100, 3000);
    assert_true(world_settle(world, 20 * 1000 * 1000));
    struct leat_backup_status status;
    leat_backup_status(world->nodes[2].backup, &status);
    assert_int_equal(status.replicas, 0);
    assert_true(status_of(world).accounts.refused_opens > 0);
    assert_int_equal(status_of(world).accounts.lost_backups, 0);
    assert_int_equal(world->logs[0].version, 1);
    world_free(world);
}

/* Goal: a backup that takes no writes is left after the bound, and the others' acks go on; what it
 * still gets afterwards lands nowhere else. */
static void slow_backup_is_left_after_the_bound(void **state)
{
    (void)state;
    struct world *world = world_ready(6, 4, 3, LEAT_DURABILITY_MEMORY);
    unsigned node = backup_of_head(world, 0);
    world->nodes[node].slow = true;
    uint64_t from_us = world->now_us;
    world_append_all(world, 3, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_true(world->now_us - from_us < 500 * 1000);
    assert_int_equal(status_of(world).accounts.lost_backups, 1);
    world_append_all(world, 50, 3000);
    world->nodes[node].slow = false;
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_run(world, 3 * 1000 * 1000);
    assert_true(world_is_whole(world));
    world_check_after_death(world);
    world_free(world);
}

static void mute(struct world *world, unsigned node, bool is)
{
    world->nodes[node].slow = world->nodes[node].mute = is;
}

/* Goal: a backup that is silent while others answer is left long before the bound; nobody is while nobody
 * answers: it may be this core that is late. */
static void silent_backup_is_left_where_others_answer(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++) {
        struct world *world = world_ready(16 + all, 4, 3, LEAT_DURABILITY_MEMORY);
        world->primary->options.answer_us = 2 * 1000 * 1000;
        world->primary->options.quiet_us = 160 * 1000;
        unsigned node = backup_of_head(world, 0);
        for (unsigned i = 1; i < 4; i++)
            mute(world, i, all || i == node);
        world_append_all(world, 3, 1000);
        world_run(world, 100 * 1000);
        assert_int_equal(status_of(world).accounts.lost_backups, 0);
        world_run(world, 200 * 1000);
        assert_int_equal(status_of(world).accounts.lost_backups, !all);
        for (unsigned i = 1; i < 4; i++)
            mute(world, i, false);
        assert_true(world_settle(world, 10 * 1000 * 1000));
        assert_int_equal(status_of(world).accounts.lost_backups, !all);
        world_run(world, 3 * 1000 * 1000);
        assert_true(world_is_whole(world));
        world_check_after_death(world);
        world_free(world);
    }
}

/* Goal: a backup that has been slow to answer lately, or was given up for no reason, gets more time. */
static void slow_machine_makes_the_owner_patient(void **state)
{
    (void)state;
    struct world *world = world_ready(18, 4, 3, LEAT_DURABILITY_MEMORY);
    world->primary->options.answer_us = 2 * 1000 * 1000;
    world->primary->options.quiet_us = 160 * 1000;
    for (unsigned silence_ms = 140; silence_ms <= 380; silence_ms += 240) {
        unsigned node = backup_of_head(world, 0);
        mute(world, node, true);
        world_append_all(world, 3, 1000);
        world_run(world, silence_ms * 1000);
        mute(world, node, false);
        assert_true(world_settle(world, 10 * 1000 * 1000));
        world_run(world, 100 * 1000);
    }
    assert_int_equal(status_of(world).accounts.lost_backups, 0);
    world_free(world);
}

/* The world's owner is patient with slow backups, and quick with silent ones. */
static struct world *quick(uint64_t seed, unsigned copies, unsigned logs)
{
    struct world *world = world_new(seed, 4, copies, logs, LEAT_DURABILITY_MEMORY, 0);
    world_append_all(world, 5 * logs, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_run(world, 1000 * 1000);
    world->primary->options.answer_us = 2 * 1000 * 1000;
    world->primary->options.quiet_us = 160 * 1000;
    return world;
}

/* Goal: a backup that answers nothing is left, though its memory takes writes: they go another way. Method: one
 * log's head rolls, which asks; the other one is written to all the time. */
static void writes_that_end_are_no_answer(void **state)
{
    (void)state;
    struct world *world = quick(31, 4, 2);
    world->nodes[2].mute = true;
    for (unsigned i = 0; i < 40; i++)
        (void)world_append(&world->logs[1], 3000); /* until it needs another segment */
    uint64_t begun_us = world->now_us;
    while (world->now_us < begun_us + 300 * 1000) {
        (void)world_append(&world->logs[0], 100);
        world_run(world, 5 * 1000);
        if (world->now_us < begun_us + 150 * 1000)
            assert_int_equal(status_of(world).accounts.lost_backups, 0);
    }
    assert_int_equal(status_of(world).accounts.lost_backups, 1);
    world->nodes[2].mute = false;
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_check_after_death(world);
    world_free(world);
}

/* Goal: a backup falls silent while an answer of this backup is under way. This answer does not begin a new silence,
 * since the request that stays unanswered was sent before the answer came. */
static void answer_to_an_older_request_does_not_end_a_silence(void **state)
{
    (void)state;
    struct world *world = quick(32, 3, 1);
    unsigned node = backup_of_head(world, 0);
    mute(world, node, true);
    world_append_all(world, 3, 1000);
    struct rep_peer *peer = world->primary->peers[node];
    for (unsigned ms = 0; ms < 80 && !peer->asking; ms++)
        world_run(world, 1000);
    assert_true(peer->asking);
    world_run(world, 1000);
    rep_peer_heard(peer);
    world_run(world, 250 * 1000);
    assert_int_equal(status_of(world).accounts.lost_backups, 1);
    mute(world, node, false);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_free(world);
}

/* Goal: a backup that was left, and rightly, since it comes back as another incarnation, makes nobody patient. */
static void backup_that_died_makes_nobody_patient(void **state)
{
    (void)state;
    struct world *world = quick(33, 3, 1);
    for (unsigned round = 1; round <= 2; round++) {
        unsigned node = backup_of_head(world, 0);
        mute(world, node, true);
        world_append_all(world, 3, 1000);
        world_run(world, 250 * 1000);
        assert_int_equal(status_of(world).accounts.lost_backups, round);
        world_node_kill(world, node, false);
        mute(world, node, false);
        world_node_start(world, node);
        assert_true(world_settle(world, 10 * 1000 * 1000));
        world_run(world, 100 * 1000);
        if (round == 2) break;
        for (unsigned i = 0; i < 40; i++) { /* until the head lies on the same node again */
            world_append_all(world, 30, 3000);
            assert_true(world_settle(world, 10 * 1000 * 1000));
            if (backup_of_head(world, 0) == node) break;
        }
        assert_int_equal(backup_of_head(world, 0), node);
    }
    world_free(world);
}

/* Goal: a backup that answers questions is not silent, however long its writes take. */
static void late_writes_are_no_silence(void **state)
{
    (void)state;
    struct world *world = world_ready(19, 4, 3, LEAT_DURABILITY_MEMORY);
    world->primary->options.quiet_us = 30 * 1000;
    world->primary->options.answer_us = 2 * 1000 * 1000;
    unsigned node = backup_of_head(world, 0);
    world->nodes[node].slow = true;
    world_append_all(world, 3, 1000);
    world_run(world, 1000 * 1000);
    assert_int_equal(status_of(world).accounts.lost_backups, 0);
    world->nodes[node].slow = false;
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world_free(world);
}

/* Goal: a stop does not wait for ever for copies that do not come; what was acked stays. */
static void stop_without_the_others_ends_when_it_is_abandoned(void **state)
{
    (void)state;
    struct world *world = world_ready(20, 3, 3, LEAT_DURABILITY_MEMORY);
    struct world_log *log = &world->logs[0];
    for (unsigned i = 1; i < 3; i++)
        mute(world, i, true);
    assert_true(world_append(log, 1000));
    world_run(world, 10 * 1000); /* it is on its way */
    for (unsigned i = 1; i < 3; i++)
        world_node_kill(world, i, false);
    uint64_t acked = leat_log_acked_offset(log->log);
    log_is_hibernated_now = false;
    leat_log_stop(log->log, log_hibernated, world);
    world_run(world, 3 * 1000 * 1000);
    assert_false(log_is_hibernated_now);
    leat_primary_log_abandon(log->rep);
    leat_log_abandon(log->log);
    world_run(world, 1000 * 1000);
    assert_true(log_is_hibernated_now);
    assert_int_equal(leat_log_acked_offset(log->log), acked);
    assert_true(log->failed > 0);
    world_check_after_death(world);
    world_free(world);
}

/* Goal: a hibernated log holds no memory at its backups; if the log has lost a copy meanwhile, the log makes a new copy
 * before its next ack. */
static void hibernated_log_repairs_before_its_next_ack(void **state)
{
    (void)state;
    struct world *world = world_ready(7, 4, 3, LEAT_DURABILITY_MEMORY);
    unsigned node = backup_of_head(world, 0), other = backup_of_head(world, 1);
    leat_log_stop(world->logs[0].log, log_hibernated, world);
    world_run(world, 1000 * 1000);
    assert_true(log_is_hibernated_now);
    struct leat_backup_status status;
    leat_backup_status(world->nodes[other].backup, &status);
    assert_int_equal(status.replicas_hibernated, 1);
    assert_int_equal(status.arena_used_bytes, 0);
    world_node_kill(world, node, false);
    world_run(world, 500 * 1000);
    assert_int_equal(world->logs[0].version, 1); /* nobody acks: nothing to tell */
    world_check_after_death(world);
    world_free(world);
}

/* Goal: a hibernated log without further appends gets all its copies again, and is hibernated again: one copy after the
 * other may be lost, and an acked record is still there. The log is not resumed while no node can take a copy. */
static void hibernated_log_that_lost_a_copy_is_copied_again(void **state)
{
    (void)state;
    for (int disk = 0; disk < 2; disk++) {
        struct world *world =
            world_ready(9, 3, 3, disk ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY);
        struct world_log *log = &world->logs[0];
        const struct rep_set *set = rep_set_find(log->rep, leat_log_head_segment(log->log));
        uint64_t acked = leat_log_acked_offset(log->log);
        for (unsigned lost = 1; lost < 3; lost++) {
            leat_log_hibernate_after_set(log->log, 100 * 1000);
            world_run(world, 3 * 1000 * 1000);
            assert_true(set->state == REP_SET_HIBERNATED && set->copy_count == 2);
            uint64_t resumed = status_of(world).accounts.resume_rpcs;
            world_node_kill(world, lost, true);
            world_run(world, 3 * 1000 * 1000);
            assert_true(set->state == REP_SET_HIBERNATED && set->copy_count == 1);
            assert_int_equal(status_of(world).segments_under_replicated, 1);
            assert_int_equal(status_of(world).accounts.resume_rpcs, resumed);
            world_node_start(world, lost);
            world_run(world, 5 * 1000 * 1000);
            assert_true(set->state == REP_SET_HIBERNATED && set->copy_count == 2);
            assert_int_equal(status_of(world).segments_under_replicated, 0);
        }
        assert_int_equal(leat_log_acked_offset(log->log), acked);
        assert_int_equal(log->version, 3); /* who lost it may come back with it: twice */
        world_check_after_death(world);
        world_free(world);
    }
}

/* Goal: closed copies of a node that was away for less than the grace time count again; nothing is
 * copied. */
static void returned_nodes_closed_copies_count_again(void **state)
{
    (void)state;
    struct world *world = world_new(8, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world_append_all(world, 200, 3000);
    assert_true(world_settle(world, 20 * 1000 * 1000));
    world_run(world, 2 * 1000 * 1000);
    assert_true(world_is_whole(world));
    world_node_kill(world, 1, false);
    world_run(world, 30 * 1000);
    assert_true(status_of(world).segments_under_replicated > 3);
    world_node_start(world, 1);
    world_run(world, 4 * 1000 * 1000);
    assert_true(world_is_whole(world));
    assert_int_equal(status_of(world).accounts.recopied_bytes, 0);
    world_free(world);
}

static void node_told(struct world *world, unsigned node, bool crashed, bool gone)
{
    struct leat_rep_node seen = {.number = node, .crashed = crashed, .gone = gone};
    snprintf(seen.host, sizeof seen.host, "h%u", node);
    leat_primary_node_set(world->primary, &seen);
}

/* Goal: lost closed copies are made again on other nodes after a time that depends on the lost node: long for a node
 * that is not heard, shorter for a node that crashed, none for a node that is given up. */
static void lost_closed_copies_wait_for_who_may_bring_them_back(void **state)
{
    (void)state;
    struct world *world = world_new(12, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    struct leat_primary_options *options = &world->primary->options;
    options->grace_us = 60 * 1000 * 1000;
    world_append_all(world, 200, 3000);
    assert_true(world_settle(world, 20 * 1000 * 1000));
    world_run(world, 2 * 1000 * 1000);
    assert_true(world_is_whole(world));
    unsigned first = backup_of_head(world, 0), second = backup_of_head(world, 1);
    world_node_kill(world, first, false);
    node_told(world, first, false, false);
    world_run(world, 25 * 1000 * 1000);
    assert_true(status_of(world).segments_under_replicated > 3);
    assert_int_equal(status_of(world).accounts.recopied_bytes, 0);
    node_told(world, first, true, false);
    world_run(world, 5 * 1000 * 1000);
    assert_int_equal(status_of(world).segments_under_replicated, 0);
    uint64_t copied = status_of(world).accounts.recopied_bytes;
    assert_true(copied > 0);
    /* It comes back; then another one goes for good, and nobody waits for it. */
    world_node_start(world, first);
    world_run(world, 4 * 1000 * 1000);
    world_node_kill(world, second, false);
    node_told(world, second, true, true);
    world_run(world, 5 * 1000 * 1000);
    assert_int_equal(status_of(world).segments_under_replicated, 0);
    world_check_after_death(world);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_without_failures_takes_two_requests_per_segment_and_backup),
        cmocka_unit_test(append_beside_a_commit_under_way_is_written_at_once),
        cmocka_unit_test(writes_by_messages_are_cut_and_as_many_bytes_as_whole_ones),
        cmocka_unit_test(log_whose_stream_is_deleted_as_it_opens_goes),
        cmocka_unit_test(lost_backup_acks_wait_for_the_coordinator),
        cmocka_unit_test(copy_of_a_lower_version_has_acks_wait),
        cmocka_unit_test(log_given_up_amid_a_restamp_waits_for_the_store),
        cmocka_unit_test(lost_backup_returns_with_a_stale_copy_that_goes),
        cmocka_unit_test(too_few_nodes_refuses_by_name_and_recovers),
        cmocka_unit_test(refused_open_asks_another_and_leaves_nothing),
        cmocka_unit_test(slow_backup_is_left_after_the_bound),
        cmocka_unit_test(silent_backup_is_left_where_others_answer),
        cmocka_unit_test(slow_machine_makes_the_owner_patient),
        cmocka_unit_test(writes_that_end_are_no_answer),
        cmocka_unit_test(answer_to_an_older_request_does_not_end_a_silence),
        cmocka_unit_test(backup_that_died_makes_nobody_patient),
        cmocka_unit_test(late_writes_are_no_silence),
        cmocka_unit_test(stop_without_the_others_ends_when_it_is_abandoned),
        cmocka_unit_test(hibernated_log_repairs_before_its_next_ack),
        cmocka_unit_test(hibernated_log_that_lost_a_copy_is_copied_again),
        cmocka_unit_test(returned_nodes_closed_copies_count_again),
        cmocka_unit_test(lost_closed_copies_wait_for_who_may_bring_them_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
