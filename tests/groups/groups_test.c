/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups against a home log of their own: it acks late, has no room now and then, rolls (and
 * takes the table into its start entry) and restarts. */
#include "rig.h"

enum { MEMBERS = 6 };

static leat_err commit(struct home *home, const char *member, uint32_t generation, uint32_t unit,
                       int64_t group, uint64_t offset)
{
    struct leat_groups_offset row = {
        .log = {7, unit / LOGS, unit % LOGS}, .group = group, .offset = offset};
    struct leat_groups_request r = {
        .kind = LEAT_GROUPS_COMMIT, .generation = generation, .commits = &row, .commit_count = 1};
    snprintf(r.member, sizeof r.member, "%s", member);
    return ask(home, &r);
}

static const uint32_t STREAM = 7;

static struct leat_groups_request join_request(const char *member, enum leat_groups_mode mode)
{
    struct leat_groups_request r = {.kind = LEAT_GROUPS_JOIN,
                                    .answer_bytes_max = SIZE_MAX,
                                    .mode = mode,
                                    .session_ms = 2000,
                                    .streams = &STREAM,
                                    .stream_count = 1};
    snprintf(r.member, sizeof r.member, "%s", member);
    return r;
}

/* ---- a member's whole life ---- */

static void groups_one_member_owns_all_and_its_commits_survive(void **state)
{
    (void)state;
    struct home *home = home_new(1, false);
    struct leat_groups_request r = join_request("", LEAT_GROUPS_ORDERED);
    assert_int_equal(ask(home, &r), LEAT_OK);
    assert_int_equal(r.generation, 1);
    assert_int_equal(r.assigned_count, UNITS);
    assert_int_equal(r.assigned[0].group_step, 1);
    leat_mem_free(r.assigned);
    assert_int_equal(commit(home, r.member, 1, 3, -1, 500), LEAT_OK);
    assert_int_equal(commit(home, r.member, 1, 3, -1, 400), LEAT_OK); /* never back */
    assert_int_equal(commit(home, r.member, 0, 3, -1, 600), LEAT_E_STALE_GENERATION);
    assert_int_equal(commit(home, "stranger", 1, 3, -1, 600), LEAT_E_UNKNOWN_MEMBER);
    home_restart(home);
    /* The member goes on in its generation after a restart of the server. */
    assert_int_equal(commit(home, r.member, 1, 4, -1, 7), LEAT_OK);
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &f), LEAT_OK);
    assert_int_equal(f.offset_count, 2);
    assert_int_equal(f.offsets[0].offset, 500);
    assert_int_equal(f.offsets[1].offset, 7);
    leat_mem_free(f.offsets);
    home_free(home);
}

/* A member that falls silent loses its logs; its late commit is refused by name. */
static void groups_silent_member_is_dropped_and_its_commit_refused(void **state)
{
    (void)state;
    struct home *home = home_new(2, false);
    struct leat_groups_request a = join_request("", LEAT_GROUPS_ORDERED);
    ask_join(home, &a);
    home_run(home, 10 * 1000000);
    assert_int_equal(commit(home, a.member, a.generation, 0, -1, 5), LEAT_E_UNKNOWN_MEMBER);
    struct leat_groups_request b = join_request("", LEAT_GROUPS_ORDERED);
    assert_int_equal(ask(home, &b), LEAT_OK);
    assert_true(b.generation > a.generation);
    assert_int_equal(b.assigned_count, UNITS);
    leat_mem_free(b.assigned);
    home_free(home);
}

/* A group that somebody was in. */
static void make_set(struct home *home, const char *group)
{
    struct leat_groups_request r = join_request("", LEAT_GROUPS_ORDERED);
    snprintf(r.group, sizeof r.group, "%s", group);
    ask_join(home, &r);
    r.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &r), LEAT_OK);
}

static size_t offsets_of(struct home *home, const char *group)
{
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    snprintf(f.group, sizeof f.group, "%s", group);
    assert_int_equal(ask(home, &f), LEAT_OK);
    leat_mem_free(f.offsets);
    return f.offset_count;
}

/* A group without members and commits is forgotten after the retention, also in the log. A member keeps a group, and so
 * does a commit from outside the group; a fetch does not. */
static void groups_unused_set_is_forgotten_with_its_offsets(void **state)
{
    (void)state;
    struct home *home = home_new(3, false);
    home->retention_us = 60 * 1000000;
    home_restart(home);
    struct leat_groups_offset row = {.log = {7, 0, 0}, .group = -1, .offset = 5};
    struct leat_groups_request outside = {
        .kind = LEAT_GROUPS_COMMIT, .commits = &row, .commit_count = 1, .group = "outside"};
    make_set(home, "outside");
    struct leat_groups_request r = join_request("", LEAT_GROUPS_ORDERED);
    ask_join(home, &r);
    assert_int_equal(commit(home, r.member, r.generation, 3, -1, 500), LEAT_OK);
    for (int i = 0; i < 600; i++) { /* heartbeats keep the one, commits the other */
        struct leat_groups_request beat = {.kind = LEAT_GROUPS_HEARTBEAT,
                                           .generation = r.generation};
        snprintf(beat.member, sizeof beat.member, "%s", r.member);
        assert_int_equal(ask(home, &beat), LEAT_OK);
        if (i % 100 == 0) assert_int_equal(ask(home, &outside), LEAT_OK);
        home_run(home, 250 * 1000);
    }
    assert_int_equal(offsets_of(home, "readers"), 1);
    assert_int_equal(offsets_of(home, "outside"), 1);
    for (int i = 0; i < 5; i++) { /* the member is silent; who fetches keeps nothing */
        home_run(home, 10 * 1000000);
        assert_int_equal(offsets_of(home, "readers"), 1);
    }
    home_run(home, 30 * 1000000);
    assert_int_equal(offsets_of(home, "readers"), 0);
    assert_int_equal(offsets_of(home, "outside"), 0);
    home->retention_us = 0;
    home_restart(home);
    assert_int_equal(offsets_of(home, "readers"), 0);
    /* Without a retention nothing is forgotten. */
    make_set(home, "outside");
    assert_int_equal(ask(home, &outside), LEAT_OK);
    home_run(home, 300 * 1000000ull);
    assert_int_equal(offsets_of(home, "outside"), 1);
    home_free(home);
}

/* A home goes to another node: a join that waits for the group to settle is told to ask again, never that the group is
 * over. */
static void groups_join_that_a_going_home_leaves_is_asked_again(void **state)
{
    (void)state;
    struct home *home = home_new(6, false);
    struct leat_groups_request first = join_request("", LEAT_GROUPS_ORDERED);
    ask_join(home, &first);

    bool answered = false;
    struct leat_groups_request join = join_request("", LEAT_GROUPS_ORDERED);
    snprintf(join.group, sizeof join.group, "readers");
    join.on_done = home_done;
    join.owner = &answered;
    assert_false(leat_groups_do(home->groups, &join));
    assert_null(home->append); /* else it would end with that */
    home_restart(home);
    assert_true(answered);
    assert_int_equal(join.rc, LEAT_E_TIMEOUT);
    home_free(home);
}

/* Goal: a home that had another owner meanwhile, and has not learned so yet, reports no offset that was committed here.
 * Method: three requests come while nothing is acked: a fetch, a fetch of a group that does not exist, and a join of a
 * known member; then the fence ends the append. A home that had no other owner answers the same requests. */
static void groups_home_that_was_followed_tells_no_offset(void **state)
{
    (void)state;
    struct home *home = home_new(7, false);
    home->followed = true;
    home_restart(home);
    struct leat_groups_request member = join_request("", LEAT_GROUPS_ORDERED);
    ask_join(home, &member);
    assert_int_equal(commit(home, member.member, member.generation, 3, -1, 500), LEAT_OK);

    bool answered[3] = {false, false, false};
    struct leat_groups_request asked[3] = {
        {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX},
        {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX},
        join_request(member.member, LEAT_GROUPS_ORDERED)};
    home->mute = true;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(asked[i].group, sizeof asked[i].group, "%s", i == 1 ? "nobody" : "readers");
        asked[i].on_done = home_done;
        asked[i].owner = &answered[i];
        assert_false(leat_groups_do(home->groups, &asked[i]));
    }
    home_run(home, 500 * 1000);
    struct leat_append *append = home->append;
    assert_non_null(append);
    home->append = NULL;
    home->batch_count--;
    free(home->batches[home->batch_count].bytes);
    append->on_acked(append, LEAT_E_CLOSED);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(answered[i]);
        assert_int_not_equal(asked[i].rc, LEAT_OK);
        leat_mem_free(asked[i].offsets);
        leat_mem_free(asked[i].assigned);
    }

    home->mute = false;
    home_restart(home);
    assert_int_equal(offsets_of(home, "readers"), 1);
    assert_int_equal(offsets_of(home, "nobody"), 0);
    member = join_request(member.member, LEAT_GROUPS_ORDERED);
    ask_join(home, &member);
    home_free(home);
}

/* Both joins wait until the home log takes appends again; then the second join ends the first, which waits after the
 * second by then. */
static void groups_member_that_joins_twice_while_its_home_wakes_is_answered_twice(void **state)
{
    (void)state;
    struct home *home = home_new(5, false);
    struct leat_groups_request first = join_request("", LEAT_GROUPS_ORDERED);
    ask_join(home, &first);
    home_restart(home);

    struct leat_groups_request joins[2];
    bool answered[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        joins[i] = join_request(first.member, LEAT_GROUPS_ORDERED);
        joins[i].session_ms = 3000; /* another one than before: the group is shared out anew */
        snprintf(joins[i].group, sizeof joins[i].group, "readers");
        joins[i].on_done = home_done;
        joins[i].owner = &answered[i];
        assert_false(leat_groups_do(home->groups, &joins[i]));
    }
    for (int i = 0; i < 1000 && !(answered[0] && answered[1]); i++)
        home_run(home, 2000);
    assert_true(answered[0] && answered[1]);
    assert_int_equal(joins[0].rc, LEAT_E_CANCELLED);
    assert_int_equal(joins[1].rc, LEAT_OK);
    assert_int_equal(joins[1].assigned_count, UNITS);
    leat_mem_free(joins[1].assigned);
    home_free(home);
}

static void groups_parallel_groups_are_finished_in_any_order(void **state)
{
    (void)state;
    struct home *home = home_new(3, true);
    struct leat_groups_request r = join_request("", LEAT_GROUPS_PARALLEL);
    ask_join(home, &r);
    assert_int_equal(commit(home, r.member, 1, 0, 1, LEAT_SEGMENT_GROUP_DONE), LEAT_OK);
    assert_int_equal(commit(home, r.member, 1, 0, 2, 250), LEAT_OK);
    assert_int_equal(commit(home, r.member, 1, 0, 0, 100), LEAT_OK); /* its end: done */
    assert_int_equal(commit(home, r.member, 1, 0, 900, 5), LEAT_E_AGAIN);
    assert_int_equal(commit(home, r.member, 1, 0, -1, 5), LEAT_E_INVALID);
    home_restart(home);
    struct leat_log_ref log = {7, 0, 0};
    struct leat_groups_request f = {
        .kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX, .logs = &log, .log_count = 1};
    assert_int_equal(ask(home, &f), LEAT_OK);
    assert_int_equal(f.offset_count, 1);
    assert_int_equal(f.offsets[0].group, 2);
    assert_int_equal(f.offsets[0].offset, 250);
    leat_mem_free(f.offsets);
    home_free(home);
}

/* Segment groups that nobody finished and retention dropped hold nobody back, also after a restart; and a
 * commit from outside that is too far ahead is refused, no more. */
static void groups_parallel_groups_dropped_by_retention_are_skipped(void **state)
{
    (void)state;
    struct home *home = home_new(4, true);
    struct leat_groups_request r = join_request("", LEAT_GROUPS_PARALLEL);
    ask_join(home, &r);
    assert_int_equal(commit(home, r.member, 1, 0, 3, 350), LEAT_OK);
    assert_int_equal(commit(home, r.member, 1, 0, 401, 40150), LEAT_E_AGAIN);
    home->first_group = 400;
    assert_int_equal(commit(home, r.member, 1, 0, 401, 40150), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        if (i) home_restart(home);
        struct leat_log_ref log = {7, 0, 0};
        struct leat_groups_request f = {
            .kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX, .logs = &log, .log_count = 1};
        assert_int_equal(ask(home, &f), LEAT_OK);
        assert_int_equal(f.offset_count, 2);
        assert_int_equal(f.offsets[0].group, 400);
        assert_int_equal(f.offsets[0].offset, 0);
        assert_int_equal(f.offsets[1].group, 401);
        assert_int_equal(f.offsets[1].offset, 40150);
        leat_mem_free(f.offsets);
    }
    home_run(home,
             (uint64_t)LEAT_GROUPS_SESSION_MS_DEFAULT * 3000); /* silent: the group is empty */
    home->first_group = 0;
    assert_int_equal(commit(home, "", 0, 1, 900, 5), LEAT_E_AGAIN);
    assert_null(leat_groups_broken(home->groups));
    home_free(home);
}

/* ---- walks ---- */

struct walker {
    struct leat_groups_request join, other;
    bool joining, joined, answered;
    char name[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation;
    struct leat_groups_assigned *assigned;
    size_t assigned_count;
    uint64_t silent_until;
};
struct owner_row {
    uint32_t generation;
    char name[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
};
struct walk {
    struct home *home;
    struct walker walkers[MEMBERS];
    struct owner_row owners[UNITS][64]; /* by unit and group (parallel), newest generation */
    uint64_t committed[UNITS];
    unsigned generations;
};

/* Never two owners of one unit in one generation, whatever crashed in between. */
static void owner_note(struct walk *walk, struct walker *walker, uint32_t unit, uint64_t group)
{
    if (group >= 64) return;
    struct owner_row *row = &walk->owners[unit][group];
    if (row->generation == walker->generation && strcmp(row->name, walker->name) != 0)
        fail_msg("unit %u group %u has two owners in generation %u", unit, (unsigned)group,
                 walker->generation);
    row->generation = walker->generation;
    memcpy(row->name, walker->name, sizeof row->name);
}

static void walker_joined(struct walk *walk, struct walker *walker)
{
    walker->joining = false;
    walker->joined = walker->join.rc == LEAT_OK;
    if (!walker->joined) {
        if (walker->join.rc == LEAT_E_UNKNOWN_MEMBER) walker->name[0] = 0;
        return;
    }
    memcpy(walker->name, walker->join.member, sizeof walker->name);
    walker->generation = walker->join.generation;
    leat_mem_free(walker->assigned);
    walker->assigned = walker->join.assigned;
    walker->assigned_count = walker->join.assigned_count;
    walk->generations++;
    for (size_t i = 0; i < walker->assigned_count; i++) {
        const struct leat_groups_assigned *a = &walker->assigned[i];
        uint32_t unit = a->log.streamlet * LOGS + a->log.log;
        if (!walk->home->parallel)
            owner_note(walk, walker, unit, 0);
        else
            for (uint64_t g = a->first_group; g < 64; g += a->group_step)
                owner_note(walk, walker, unit, g);
    }
}

static void walker_step(struct walk *walk, struct walker *walker)
{
    struct home *home = walk->home;
    if (walker->joining) {
        if (walker->answered) walker_joined(walk, walker);
        return;
    }
    if (home->now_us < walker->silent_until) return;
    uint64_t dice = leat_xoshiro_below(&home->rng, 40);
    if (!walker->joined) {
        walker->join =
            join_request(walker->name, home->parallel ? LEAT_GROUPS_PARALLEL : LEAT_GROUPS_ORDERED);
        snprintf(walker->join.group, sizeof walker->join.group, "readers");
        walker->join.on_done = home_done;
        walker->join.owner = &walker->answered;
        walker->answered = leat_groups_do(home->groups, &walker->join);
        walker->joining = true;
        return;
    }
    struct leat_groups_request r = {.kind = LEAT_GROUPS_HEARTBEAT,
                                    .generation = walker->generation};
    snprintf(r.member, sizeof r.member, "%s", walker->name);
    if (dice == 0) {
        r.kind = LEAT_GROUPS_LEAVE;
        (void)ask(home, &r);
        walker->name[0] = 0;
        walker->joined = false;
    } else if (dice == 1) {
        walker->silent_until = home->now_us + 5000000; /* stopped, and goes on later */
    } else if (dice < 12 && walker->assigned_count > 0 && !home->parallel) {
        const struct leat_groups_assigned *a =
            &walker->assigned[leat_xoshiro_below(&home->rng, walker->assigned_count)];
        uint32_t unit = a->log.streamlet * LOGS + a->log.log;
        uint64_t offset = walk->committed[unit] + leat_xoshiro_below(&home->rng, 100);
        if (commit(home, walker->name, walker->generation, unit, -1, offset) == LEAT_OK &&
            offset > walk->committed[unit])
            walk->committed[unit] = offset;
    } else {
        leat_err rc = ask(home, &r);
        if (rc != LEAT_OK) walker->joined = false;
        if (rc == LEAT_E_UNKNOWN_MEMBER) walker->name[0] = 0;
    }
}

static void offsets_check(struct walk *walk)
{
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(walk->home, &f), LEAT_OK);
    for (size_t i = 0; i < f.offset_count && !walk->home->parallel; i++) {
        uint32_t unit = f.offsets[i].log.streamlet * LOGS + f.offsets[i].log.log;
        assert_true(f.offsets[i].offset >= walk->committed[unit]);
    }
    leat_mem_free(f.offsets);
}

/* Every unit has an owner that is up once nothing happens any more. */
static void walk_settles(struct walk *walk)
{
    unsigned owned[UNITS] = {0};
    for (int i = 0; i < 400; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            struct walker *walker = &walk->walkers[m];
            walker->silent_until = 0;
            if (walker->joined && !walker->joining) {
                struct leat_groups_request r = {.kind = LEAT_GROUPS_HEARTBEAT,
                                                .generation = walker->generation};
                snprintf(r.member, sizeof r.member, "%s", walker->name);
                leat_err rc = ask(walk->home, &r);
                if (rc != LEAT_OK) walker->joined = false;
                if (rc == LEAT_E_UNKNOWN_MEMBER) walker->name[0] = 0;
            } else
                walker_step(walk, walker);
        }
        home_run(walk->home, 50000);
        leat_groups_check(walk->home->groups);
    }
    for (unsigned m = 0; m < MEMBERS; m++) {
        struct walker *walker = &walk->walkers[m];
        assert_true(walker->joined);
        assert_int_equal(walker->generation, walk->walkers[0].generation);
        for (size_t i = 0; i < walker->assigned_count; i++)
            owned[walker->assigned[i].log.streamlet * LOGS + walker->assigned[i].log.log]++;
    }
    for (unsigned u = 0; u < UNITS; u++)
        assert_int_equal(owned[u], walk->home->parallel ? MEMBERS : 1);
}

static void walk_run(uint64_t seed, bool parallel, unsigned *generations)
{
    struct walk *walk = calloc(1, sizeof *walk);
    assert_non_null(walk);
    walk->home = home_new(seed, parallel);
    walk->home->followed = seed % 3 == 0;
    home_restart(walk->home);
    for (int step = 0; step < 400; step++) {
        walker_step(walk, &walk->walkers[leat_xoshiro_below(&walk->home->rng, MEMBERS)]);
        home_run(walk->home, 1000 * leat_xoshiro_below(&walk->home->rng, 200));
        leat_groups_check(walk->home->groups);
        if (leat_xoshiro_below(&walk->home->rng, 60) == 0) {
            home_restart(walk->home);
            offsets_check(walk);
        }
    }
    offsets_check(walk);
    walk_settles(walk);
    *generations += walk->generations;
    for (unsigned m = 0; m < MEMBERS; m++) {
        if (walk->walkers[m].joining)
            leat_groups_cancel(walk->home->groups, &walk->walkers[m].join);
        leat_mem_free(walk->walkers[m].assigned);
    }
    home_free(walk->home);
    free(walk);
}

static void groups_random_members_never_share_a_unit(void **state)
{
    (void)state;
    unsigned generations = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        walk_run(seed, seed % 2 == 0, &generations);
    assert_true(generations > 500);
}

/* Streams of homes outlive the version that made them: one streamlet of 64 logs at first. */
static void groups_homes_lie_where_their_streams_shape_says(void **state)
{
    (void)state;
    struct leat_stream_settings now = leat_groups_stream_settings();
    const uint32_t shapes[] = {now.logs, 64, 1};
    assert_int_equal(now.streamlets * now.logs, LEAT_GROUPS_HOMES);
    assert_true(now.streamlets > 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t home = 0; home < LEAT_GROUPS_HOMES; home++) {
            struct leat_log_ref log = leat_groups_home_log(7, shapes[i], home);
            assert_int_equal(log.stream, 7);
            assert_true(log.streamlet < LEAT_GROUPS_HOMES / shapes[i] && log.log < shapes[i]);
            assert_int_equal(leat_groups_home_of(log, shapes[i]), home);
        }
    struct leat_log_ref old = leat_groups_home_log(7, LEAT_GROUPS_HOMES, 41);
    assert_int_equal(old.streamlet, 0);
    assert_int_equal(old.log, 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_homes_lie_where_their_streams_shape_says),
        cmocka_unit_test(groups_one_member_owns_all_and_its_commits_survive),
        cmocka_unit_test(groups_silent_member_is_dropped_and_its_commit_refused),
        cmocka_unit_test(groups_unused_set_is_forgotten_with_its_offsets),
        cmocka_unit_test(groups_join_that_a_going_home_leaves_is_asked_again),
        cmocka_unit_test(groups_home_that_was_followed_tells_no_offset),
        cmocka_unit_test(groups_member_that_joins_twice_while_its_home_wakes_is_answered_twice),
        cmocka_unit_test(groups_parallel_groups_are_finished_in_any_order),
        cmocka_unit_test(groups_parallel_groups_dropped_by_retention_are_skipped),
        cmocka_unit_test(groups_random_members_never_share_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
