/* SPDX-License-Identifier: Apache-2.0 */
/* Three voters with the pump in one thread: they elect, replicate, and survive a death, a restart with lost unsynced
 * writes, and a voter so far behind that it needs a snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/drive.h"
#include "tests/coordinator/fake.h"

enum { VOTERS = 3, COMMANDS_MAX = 20000, MESSAGES_MAX = 4096 };

/* The state machine: a list of numbers. */
struct numbers {
    uint32_t count;
    uint32_t values[COMMANDS_MAX];
};
struct voter {
    struct fake_world world;
    struct leat_timers timers;
    struct leat_raft_drive drive;
    struct numbers numbers;
    bool up;
    uint64_t id;
    struct cluster *cluster;
};
struct sent {
    uint64_t to;
    struct raft_message message;
};
struct cluster {
    struct voter voters[VOTERS];
    struct sent in_flight[MESSAGES_MAX];
    unsigned in_flight_count;
    struct leat_xoshiro random;
    unsigned drop_percent;
    unsigned snapshots_sent;
    bool cut[VOTERS]; /* from the others */
};

static const char *const ADDRESSES[VOTERS] = {"1", "2", "3"};

static void entries_copy(struct raft_append_entries *append)
{
    const struct raft_entry *from = append->entries;
    size_t bytes = 1;
    if (append->n_entries == 0) return;
    for (unsigned i = 0; i < append->n_entries; i++)
        bytes += from[i].buf.len;
    struct raft_entry *entries = raft_malloc(append->n_entries * sizeof *entries);
    uint8_t *batch = raft_malloc(bytes), *at = batch;
    assert_true(entries && batch);
    for (unsigned i = 0; i < append->n_entries; i++) {
        entries[i] = from[i];
        entries[i].batch = batch;
        entries[i].buf.base = at;
        memcpy(at, from[i].buf.base, from[i].buf.len);
        at += from[i].buf.len;
    }
    append->entries = entries;
}

static void snapshot_copy(struct raft_install_snapshot *install)
{
    struct raft_configuration from = install->conf;
    raft_configuration_init(&install->conf);
    for (unsigned i = 0; i < from.n; i++)
        assert_int_equal(raft_configuration_add(&install->conf, from.servers[i].id,
                                                from.servers[i].address, from.servers[i].role),
                         0);
    void *data = raft_malloc(install->data.len);
    assert_non_null(data);
    memcpy(data, install->data.base, install->data.len);
    install->data.base = data;
}

static void hook_send(void *owner, const struct raft_message *message)
{
    struct voter *voter = owner;
    struct cluster *cluster = voter->cluster;
    if (cluster->in_flight_count == MESSAGES_MAX) return; /* lost */
    struct sent *sent = &cluster->in_flight[cluster->in_flight_count++];
    sent->to = message->server_id;
    sent->message = *message;
    sent->message.server_id = voter->id;
    sent->message.server_address = ADDRESSES[voter->id - 1]; /* outlives the voter */
    if (message->type == RAFT_APPEND_ENTRIES) entries_copy(&sent->message.append_entries);
    if (message->type == RAFT_INSTALL_SNAPSHOT) {
        snapshot_copy(&sent->message.install_snapshot);
        cluster->snapshots_sent++;
    }
}

static leat_err hook_apply(void *owner, uint64_t index, const uint8_t *bytes, size_t count)
{
    struct voter *voter = owner;
    (void)index;
    uint32_t value;
    assert_true(count >= sizeof value);
    memcpy(&value, bytes, sizeof value);
    assert_true(voter->numbers.count < COMMANDS_MAX);
    voter->numbers.values[voter->numbers.count++] = value;
    return LEAT_OK;
}

static leat_err hook_snapshot(void *owner, uint8_t **out_bytes, size_t *out_count)
{
    struct voter *voter = owner;
    size_t count = sizeof(uint32_t) * (voter->numbers.count + 1);
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_TEST, count, 1);
    assert_non_null(bytes);
    memcpy(bytes, &voter->numbers, count);
    *out_bytes = bytes;
    *out_count = count;
    return LEAT_OK;
}

static leat_err hook_restore(void *owner, const uint8_t *bytes, size_t count)
{
    struct voter *voter = owner;
    memset(&voter->numbers, 0, sizeof voter->numbers);
    memcpy(&voter->numbers, bytes, count);
    return LEAT_OK;
}

static void hook_state(void *owner)
{
    (void)owner;
}
static void hook_failed(void *owner, leat_err rc, const char *why)
{
    (void)owner;
    (void)rc;
    fail_msg("a voter stopped: %s", why);
}

static void world_wake(void *actor)
{
    leat_timers_run(&((struct voter *)actor)->timers);
}
static void world_turn_end(void *actor)
{
    leat_raft_drive_turn_end(&((struct voter *)actor)->drive);
}
static const struct leat_actor_ops voter_ops = {.on_wake = world_wake,
                                                .on_turn_end = world_turn_end};

static void voter_open(struct voter *voter)
{
    struct leat_raft_hooks hooks = {hook_apply, hook_snapshot, hook_restore, hook_send,
                                    hook_state, hook_failed,   NULL,         voter};
    struct leat_raft_drive_options options = {.id = voter->id,
                                              .address = ADDRESSES[voter->id - 1],
                                              .election_ms = 200,
                                              .heartbeat_ms = 50,
                                              .snapshot_bytes_min = 64 * 1024};
    struct leat_error error = {0};
    bool is_new = false;
    memset(&voter->numbers, 0, sizeof voter->numbers);
    assert_int_equal(leat_timers_init(&voter->timers, &voter->world.clock, LEAT_RAFT_TIMERS),
                     LEAT_OK);
    if (leat_raft_drive_open(&voter->drive, &voter->world.env, &voter->timers, &hooks, &options,
                             &is_new, &error) != LEAT_OK)
        fail_msg("%s", error.text);
    if (is_new) {
        struct raft_configuration conf;
        uint32_t first = 0;
        raft_configuration_init(&conf);
        for (unsigned i = 0; i < VOTERS; i++)
            assert_int_equal(raft_configuration_add(&conf, i + 1, ADDRESSES[i], RAFT_VOTER), 0);
        assert_int_equal(leat_raft_drive_form(&voter->drive, &conf, &first, sizeof first, &error),
                         LEAT_OK);
        raft_configuration_close(&conf);
    }
    assert_int_equal(voter->drive.raft.heartbeat_timeout, options.heartbeat_ms);
    assert_int_equal(leat_raft_drive_start(&voter->drive, &error), LEAT_OK);
    voter->world.actor = voter;
    voter->world.ops_of_actor = &voter_ops;
    voter->up = true;
}

static void voter_close(struct voter *voter)
{
    leat_raft_drive_close(&voter->drive);
    leat_timers_fini(&voter->timers);
    voter->world.ops_of_actor = NULL;
    voter->up = false;
}

/* kill -9 and a power cut together: what was not synced is at the mercy of the dice. */
static void voter_kill(struct voter *voter)
{
    voter->world.dead = true;
    voter_close(voter);
    fake_world_power_cut(&voter->world);
}

static void in_flight_deliver(struct cluster *cluster)
{
    unsigned count = cluster->in_flight_count;
    for (unsigned i = 0; i < count; i++) {
        struct sent sent = cluster->in_flight[i];
        struct voter *to = &cluster->voters[sent.to - 1];
        bool lost = !to->up || cluster->cut[sent.to - 1] ||
                    cluster->cut[sent.message.server_id - 1] ||
                    leat_xoshiro_below(&cluster->random, 100) < cluster->drop_percent;
        if (lost) {
            leat_raft_message_drop(&sent.message);
            continue;
        }
        leat_raft_drive_receive(&to->drive, &sent.message);
        leat_raft_drive_turn_end(&to->drive);
    }
    memmove(cluster->in_flight, cluster->in_flight + count,
            (cluster->in_flight_count - count) * sizeof cluster->in_flight[0]);
    cluster->in_flight_count -= count;
}

static void cluster_run(struct cluster *cluster, unsigned ms)
{
    for (unsigned t = 0; t < ms; t++) {
        in_flight_deliver(cluster);
        for (unsigned i = 0; i < VOTERS; i++) {
            if (cluster->voters[i].up)
                fake_world_elapse(&cluster->voters[i].world, 1000);
            else
                cluster->voters[i].world.now_us += 1000;
        }
    }
}

static struct voter *cluster_leader(struct cluster *cluster)
{
    struct voter *leader = NULL;
    for (unsigned i = 0; i < VOTERS; i++) {
        struct voter *voter = &cluster->voters[i];
        if (!voter->up || cluster->cut[i] || !leat_raft_drive_leads(&voter->drive)) continue;
        if (!leader ||
            raft_current_term(&voter->drive.raft) > raft_current_term(&leader->drive.raft))
            leader = voter;
    }
    return leader;
}

static struct voter *cluster_leader_wait(struct cluster *cluster)
{
    for (int i = 0; i < 100; i++) {
        struct voter *leader = cluster_leader(cluster);
        if (leader) return leader;
        cluster_run(cluster, 50);
    }
    fail_msg("nobody leads");
    return NULL;
}

static struct cluster *cluster_new(uint64_t seed)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    leat_xoshiro_seed(&cluster->random, seed);
    for (unsigned i = 0; i < VOTERS; i++) {
        struct voter *voter = &cluster->voters[i];
        fake_world_init(&voter->world, seed * 10 + i);
        voter->id = i + 1;
        voter->cluster = cluster;
        voter_open(voter);
    }
    return cluster;
}

static void cluster_free(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->in_flight_count; i++)
        leat_raft_message_drop(&cluster->in_flight[i].message);
    for (unsigned i = 0; i < VOTERS; i++) {
        if (cluster->voters[i].up) voter_close(&cluster->voters[i]);
        fake_world_fini(&cluster->voters[i].world);
    }
    free(cluster);
}

static bool submit(struct voter *leader, uint32_t value, size_t bytes)
{
    uint8_t data[4096] = {0};
    memcpy(data, &value, sizeof value);
    struct raft_buffer command = {.base = data, .len = bytes};
    uint64_t index;
    return leat_raft_drive_submit(&leader->drive, &command, 1, &index) == LEAT_OK;
}

/* All that are up have applied the same, and a prefix of the longest. */
static void cluster_check(struct cluster *cluster)
{
    const struct numbers *longest = &cluster->voters[0].numbers;
    for (unsigned i = 1; i < VOTERS; i++)
        if (cluster->voters[i].numbers.count > longest->count)
            longest = &cluster->voters[i].numbers;
    for (unsigned i = 0; i < VOTERS; i++) {
        const struct numbers *numbers = &cluster->voters[i].numbers;
        if (numbers->count == 0) continue;
        assert_memory_equal(numbers->values, longest->values,
                            numbers->count * sizeof numbers->values[0]);
    }
}

static bool numbers_hold(const struct numbers *numbers, uint32_t value)
{
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->values[i] == value) return true;
    return false;
}

static void raft_three_voters_elect_and_replicate(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(1);
    struct voter *leader = cluster_leader_wait(cluster);
    for (uint32_t i = 1; i <= 100; i++)
        assert_true(submit(leader, i, 8));
    cluster_run(cluster, 500);
    for (unsigned i = 0; i < VOTERS; i++)
        assert_int_equal(cluster->voters[i].numbers.count, 101);
    cluster_check(cluster);
    cluster_free(cluster);
}

/* Goal: a voter whose disk is slower than the majority's applies committed entries as soon as the voter has them, not
 * up to a heartbeat later. Method: the voter's clock, and with it the voter's disk, stands still while the other voters
 * commit. */
static void raft_slower_voter_hears_of_commits_at_once(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(4);
    struct voter *leader = cluster_leader_wait(cluster);
    struct voter *slower = &cluster->voters[leader->id % VOTERS];
    cluster_run(cluster, 500);
    for (uint32_t round = 1; round <= 8; round++) {
        assert_true(submit(leader, round, 8));
        for (unsigned ms = 0; ms < 3; ms++) {
            in_flight_deliver(cluster);
            for (unsigned i = 0; i < VOTERS; i++)
                if (&cluster->voters[i] != slower)
                    fake_world_elapse(&cluster->voters[i].world, 1000);
        }
        assert_int_equal(leader->numbers.count, round + 1);
        cluster_run(cluster, 4);
        assert_int_equal(slower->numbers.count, leader->numbers.count);
        cluster_run(cluster, 7 * round);
    }
    cluster_check(cluster);
    cluster_free(cluster);
}

/* Goal: a voter was started on an older state of its disk, was refused, and is back with its newest state: the leader
 * sends the entries that the voter lacks. Method: the test sends the messages of the older state to the leader. */
static void raft_voter_back_from_an_older_state_is_sent_what_it_lacks(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(5);
    struct voter *leader = cluster_leader_wait(cluster);
    struct voter *away = &cluster->voters[leader->id % VOTERS];
    for (uint32_t i = 1; i <= 20; i++)
        assert_true(submit(leader, i, 8));
    cluster_run(cluster, 300);
    raft_index match = 0;
    assert_int_equal(raft_match_index(&leader->drive.raft, away->id, &match), 0);
    assert_true(match > 20);
    voter_kill(away);
    for (uint32_t i = 21; i <= 30; i++)
        assert_true(submit(leader, i, 8));
    cluster_run(cluster, 20);
    for (uint64_t rejected = match + 1; rejected >= match; rejected--) {
        struct raft_message message = {.type = RAFT_APPEND_ENTRIES_RESULT,
                                       .server_id = away->id,
                                       .server_address = ADDRESSES[away->id - 1]};
        message.append_entries_result.term = raft_current_term(&leader->drive.raft);
        message.append_entries_result.rejected = rejected;
        message.append_entries_result.last_log_index = 5;
        message.append_entries_result.capacity = UINT16_MAX;
        leat_raft_drive_receive(&leader->drive, &message);
    }
    cluster_run(cluster, 20); /* what the leader sent to that is lost */
    voter_open(away);
    cluster_run(cluster, 2000);
    assert_int_equal(away->numbers.count, leader->numbers.count);
    assert_true(leat_raft_drive_leads(&leader->drive));
    cluster_check(cluster);
    cluster_free(cluster);
}

static void raft_leader_dies_and_nothing_committed_is_lost(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(2);
    struct voter *leader = cluster_leader_wait(cluster);
    for (uint32_t i = 1; i <= 50; i++)
        assert_true(submit(leader, i, 8));
    cluster_run(cluster, 300);
    uint32_t committed = leader->numbers.count;
    assert_int_equal(committed, 51);
    voter_kill(leader);
    struct voter *next = cluster_leader_wait(cluster);
    assert_ptr_not_equal(next, leader);
    assert_true(submit(next, 1000, 8));
    cluster_run(cluster, 300);
    assert_int_equal(next->numbers.count, 52);
    voter_open(leader);
    cluster_run(cluster, 1000);
    assert_int_equal(leader->numbers.count, 52);
    cluster_check(cluster);
    cluster_free(cluster);
}

/* A voter that missed more entries than the log keeps gets a snapshot, stores it, and goes on from it, also after a
 * restart. */
static void raft_voter_far_behind_installs_a_snapshot(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(3);
    struct voter *leader = cluster_leader_wait(cluster);
    struct voter *behind = &cluster->voters[leader->id % VOTERS];
    voter_kill(behind);
    for (uint32_t i = 1; i <= 1500; i++) {
        assert_true(submit(leader, i, 4000));
        if (i % 10 == 0) cluster_run(cluster, 5);
    }
    cluster_run(cluster, 500);
    assert_true(leader->drive.log.snapshot.index > 0);
    assert_true(leader->drive.log.start_index > 1);
    voter_open(behind);
    cluster_run(cluster, 3000);
    assert_true(cluster->snapshots_sent > 0);
    assert_int_equal(behind->numbers.count, leader->numbers.count);
    cluster_check(cluster);
    voter_kill(behind);
    voter_open(behind);
    cluster_run(cluster, 1000);
    assert_int_equal(behind->numbers.count, leader->numbers.count);
    cluster_free(cluster);
}

/* What the voter answers to entries that begin at `from`: are the entries refused, and up to which index does the voter
 * say that its log is the leader's? */
static bool append_refused(struct cluster *cluster, struct voter *voter, const struct voter *leader,
                           uint64_t from, unsigned count, uint64_t *out_last)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES,
        .server_id = leader->id,
        .server_address = ADDRESSES[leader->id - 1],
    };
    struct raft_append_entries *append = &message.append_entries;
    append->term = raft_current_term(&leader->drive.raft);
    append->prev_log_index = from - 1;
    append->prev_log_term = from == 1 ? 0 : 1;
    append->leader_commit = raft_commit_index(&leader->drive.raft);
    static char text[] = "abcd";
    struct raft_entry entries[8] = {0};
    for (unsigned i = 0; i < count; i++)
        entries[i] = (struct raft_entry){
            .term = append->term, .type = RAFT_COMMAND, .buf = {.base = text, .len = 4}};
    append->entries = entries;
    append->n_entries = count;
    entries_copy(append);
    while (cluster->in_flight_count > 0)
        leat_raft_message_drop(&cluster->in_flight[--cluster->in_flight_count].message);
    leat_raft_drive_receive(&voter->drive, &message);
    leat_raft_drive_turn_end(&voter->drive);
    fake_world_settle(&voter->world);
    assert_int_equal(cluster->in_flight_count, 1);
    const struct raft_append_entries_result *result =
        &cluster->in_flight[--cluster->in_flight_count].message.append_entries_result;
    *out_last = result->last_log_index;
    return result->rejected != 0;
}

/* Goal: a leader that sends entries from before a voter's own snapshot brings the voter up to date. Method: entries
 * that begin inside the snapshot, end in it, or go past its end. */
static void raft_entries_from_inside_a_snapshot_are_taken_behind_it(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(5);
    struct voter *leader = cluster_leader_wait(cluster);
    struct voter *behind = &cluster->voters[leader->id % VOTERS];
    voter_kill(behind);
    for (uint32_t i = 1; i <= 1500; i++) {
        assert_true(submit(leader, i, 4000));
        if (i % 10 == 0) cluster_run(cluster, 5);
    }
    voter_open(behind);
    for (unsigned i = 0; behind->drive.log.snapshot.index == 0; i++) {
        assert_true(i < 3000);
        cluster_run(cluster, 1);
    }
    cluster_run(cluster, 3000);
    uint64_t end = behind->drive.raft.trail.snapshot.index, stored, last;
    assert_true(end > 10 && behind->drive.raft.trail.offset == end);
    stored = leat_raft_log_last_index(&behind->drive.log);
    assert_false(append_refused(cluster, behind, leader, 1, 0, &last));
    assert_true(last >= end);
    assert_false(append_refused(cluster, behind, leader, end - 5, 0, &last));
    assert_true(last >= end);
    assert_false(append_refused(cluster, behind, leader, 1, 3, &last));
    assert_true(last >= end);
    assert_int_equal(leat_raft_log_last_index(&behind->drive.log), stored);
    if (stored == end) { /* the last of these is new */
        assert_false(append_refused(cluster, behind, leader, end - 1, 3, &last));
        assert_int_equal(last, end + 1);
    }
    cluster_free(cluster);
}

/* Walks: submit, kill with power cut, restart, cut off, lose messages. Whatever a leader applied
 * stays applied everywhere, in one order. */
/* The answer to a pre-vote names a term that nobody has. When it comes the voter may follow a leader, know
 * of none, or lead. */
static void raft_answers_to_a_pre_vote_that_is_over_change_no_term(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(6);
    const struct voter *leader = cluster_leader_wait(cluster);
    for (uint64_t to = 1; to <= VOTERS; to++) {
        struct voter *voter = &cluster->voters[to - 1];
        if (voter->id == leader->id % VOTERS + 1) { /* a follower that has heard of no leader yet */
            voter_kill(voter);
            voter_open(voter);
        }
        raft_term term = raft_current_term(&voter->drive.raft);
        unsigned short was = (unsigned short)raft_state(&voter->drive.raft);
        uint64_t from = to % VOTERS + 1;
        struct raft_message message = {.type = RAFT_REQUEST_VOTE_RESULT,
                                       .server_id = from,
                                       .server_address = ADDRESSES[from - 1]};
        message.request_vote_result = (struct raft_request_vote_result){
            .version = 2, .term = term + 1, .vote_granted = true, .pre_vote = true};
        assert_int_not_equal(was, RAFT_CANDIDATE);
        leat_raft_drive_receive(&voter->drive, &message);
        assert_int_equal(raft_current_term(&voter->drive.raft), term);
        assert_int_equal(raft_state(&voter->drive.raft), was);
    }
    cluster_run(cluster, 500);
    assert_ptr_equal(cluster_leader(cluster), leader);
    cluster_free(cluster);
}

static void raft_random_walks_lose_nothing_that_was_applied(void **state)
{
    (void)state;
    unsigned kills = 0, applied = 0;
    for (uint64_t seed = 100; seed < 140; seed++) {
        struct cluster *cluster = cluster_new(seed);
        uint32_t next = 1;
        bool *kept = calloc(COMMANDS_MAX, sizeof *kept);
        assert_non_null(kept);
        cluster->drop_percent = (unsigned)(seed % 3) * 10;
        for (int step = 0; step < 120; step++) {
            unsigned dice = (unsigned)leat_xoshiro_below(&cluster->random, 20);
            struct voter *voter = &cluster->voters[leat_xoshiro_below(&cluster->random, VOTERS)];
            struct voter *leader = cluster_leader(cluster);
            unsigned up = 0;
            for (unsigned i = 0; i < VOTERS; i++)
                up += cluster->voters[i].up;
            if (dice < 12 && leader && next + 8 < COMMANDS_MAX)
                for (unsigned i = 0; i < 8; i++)
                    (void)submit(leader, next++, 600);
            else if (dice == 12 && voter->up && up == VOTERS) {
                voter_kill(voter);
                kills++;
            } else if (dice < 16 && !voter->up)
                voter_open(voter);
            else if (dice == 16)
                cluster->cut[voter->id - 1] = !cluster->cut[voter->id - 1];
            cluster_run(cluster, 1 + (unsigned)leat_xoshiro_below(&cluster->random, 60));
            cluster_check(cluster);
            for (unsigned i = 0; i < VOTERS; i++)
                for (uint32_t k = 0; k < cluster->voters[i].numbers.count; k++)
                    kept[cluster->voters[i].numbers.values[k]] = true;
        }
        cluster->drop_percent = 0;
        for (unsigned i = 0; i < VOTERS; i++) {
            cluster->cut[i] = false;
            if (!cluster->voters[i].up) voter_open(&cluster->voters[i]);
        }
        cluster_run(cluster, 2000);
        assert_true(submit(cluster_leader_wait(cluster), next, 8));
        cluster_run(cluster, 2000);
        for (unsigned i = 0; i < VOTERS; i++) {
            assert_true(numbers_hold(&cluster->voters[i].numbers, next));
            for (uint32_t v = 1; v < next; v++)
                if (kept[v]) assert_true(numbers_hold(&cluster->voters[i].numbers, v));
        }
        applied += cluster->voters[0].numbers.count;
        cluster_check(cluster);
        free(kept);
        cluster_free(cluster);
    }
    assert_true(kills > 40);
    assert_true(applied > 5000);
}

static leat_err (*run_whole)(void *ctx, struct leat_disk_io *io);
static unsigned awaited; /* operations that a flush waited for */

static leat_err run_counting(void *ctx, struct leat_disk_io *io)
{
    const struct fake_world *world = ctx;
    awaited += io->kind == LEAT_DISK_SYNC && world->io_head && world->io_head->done_bytes == 0;
    return run_whole(ctx, io);
}

/* Goal: a voter that closes while a round of entries is written waits for the disk, which has the round's memory. */
static void raft_voter_that_closes_waits_for_its_round(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_new(5);
    struct voter *leader = cluster_leader_wait(cluster);
    cluster_run(cluster, 500);
    run_whole = leader->world.disk.run;
    leader->world.disk.run = run_counting;
    assert_true(submit(leader, 1, 8));
    leat_raft_drive_turn_end(&leader->drive);
    assert_true(leader->drive.log.writing && !leader->drive.log.saving);
    awaited = 0;
    voter_kill(leader);
    assert_int_equal(awaited, 1);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raft_three_voters_elect_and_replicate),
        cmocka_unit_test(raft_slower_voter_hears_of_commits_at_once),
        cmocka_unit_test(raft_voter_back_from_an_older_state_is_sent_what_it_lacks),
        cmocka_unit_test(raft_leader_dies_and_nothing_committed_is_lost),
        cmocka_unit_test(raft_voter_far_behind_installs_a_snapshot),
        cmocka_unit_test(raft_entries_from_inside_a_snapshot_are_taken_behind_it),
        cmocka_unit_test(raft_answers_to_a_pre_vote_that_is_over_change_no_term),
        cmocka_unit_test(raft_voter_that_closes_waits_for_its_round),
        cmocka_unit_test(raft_random_walks_lose_nothing_that_was_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
