/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait at a home, for how long, and what is left alone meanwhile: homes that take long to start, joins
 * that are held, answers of an earlier generation, groups that are full. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS, RETENTION = 60 * SECOND };

static const uint32_t STREAM = 7, OTHER = LARGE_STREAM + 3;

static struct leat_groups_request native(enum leat_groups_kind kind, uint32_t session_ms)
{
    struct leat_groups_request r = native_request(kind, "natives", &STREAM, 1);
    r.session_ms = session_ms;
    return r;
}

/* Goal: while a home waits for its log to take its first batch, members are neither silent nor groups unused, however
 * long that takes: nobody can be heard of. */
static void home_that_wakes_for_long_loses_nobody(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    struct leat_groups_request join = native(LEAT_GROUPS_JOIN, 30000);
    ask_join(home, &join);
    uint32_t generation = single(home, "", member);
    struct ask_group *c = ask_new(LEAT_GROUPS_COMMIT, "", LEAT_CLASSIC_GENERATION_NONE);
    struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = -1, .offset = 5};
    snprintf(c->r.group, sizeof c->r.group, "unused");
    c->r.commits = &row;
    c->r.commit_count = 1;
    assert_int_equal(answer_of(home, c), LEAT_OK);
    home->retention_us = RETENTION;
    home_restart(home);
    home->append_rc = LEAT_E_AGAIN;
    struct leat_groups_request beat = native(LEAT_GROUPS_HEARTBEAT, 0);
    memcpy(beat.member, join.member, sizeof beat.member);
    beat.generation = join.generation;
    bool answered;
    ask_begin(home, &beat, &answered);
    home_run(home, 3ull * RETENTION);
    assert_true(answered); /* the request does not wait as long */
    assert_int_equal(beat.rc, LEAT_E_TIMEOUT);
    home->append_rc = LEAT_OK;
    home_run(home, SECOND);
    assert_int_equal(ask(home, &beat), LEAT_OK);
    struct ask_group *g = ask_new(LEAT_GROUPS_CLASSIC_HEARTBEAT, member, generation);
    assert_int_equal(answer_of(home, g), LEAT_OK);
    assert_non_null(leat_groups_group_find(home->groups, "unused"));
    home_free(home);
}

/* Goal: a join is held as long as members of its group have to come, also beyond the time that other requests wait for
 * the log. */
static void join_is_held_until_a_session_has_ended(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request a = native(LEAT_GROUPS_JOIN, 60000), b = a;
    bool a_is, b_is;
    ask_begin(home, &a, &a_is);
    ask_begin(home, &b, &b_is);
    home_run(home, 10 * MS);
    assert_true(a_is && b_is);
    leat_mem_free(a.assigned);
    leat_mem_free(b.assigned);
    leat_groups_on_stream_changed(home->groups, STREAM);
    ask_begin(home, &a, &a_is);
    home_run(home, 40 * SECOND);
    assert_false(a_is);
    struct leat_groups_request other =
        native(LEAT_GROUPS_JOIN, 30000); /* the home looks at all that wait */
    snprintf(other.group, sizeof other.group, "others");
    ask_join(home, &other);
    assert_false(a_is);
    home_run(home, 19 * SECOND);
    assert_false(a_is);
    home_run(home, 2 * SECOND);
    assert_true(a_is);
    assert_int_equal(a.rc, LEAT_OK);
    assert_int_equal(a.generation, 2);
    assert_int_equal(a.assigned_count, UNITS);
    leat_mem_free(a.assigned);
    home_free(home);
}

/* Goal: a commit that comes while a batch is on its way to the log waits for its own batch, not for this one. */
static void commit_amid_an_append_waits_for_its_own_batch(void **state)
{
    (void)state;
    struct home *home = calm_home();
    come_and_go(home, "natives", LEAT_GROUPS_ORDERED);
    struct leat_groups_offset rows[] = {{.log = {STREAM, 0, 0}, .group = -1, .offset = 5},
                                        {.log = {STREAM, 0, 0}, .group = -1, .offset = 9}};
    struct leat_groups_request first = native(LEAT_GROUPS_COMMIT, 0), second = first;
    bool first_is, second_is;
    first.commits = &rows[0];
    second.commits = &rows[1];
    first.commit_count = second.commit_count = 1;
    home->mute = true;
    ask_begin(home, &first, &first_is);
    home_run(home, 10 * MS);
    ask_begin(home, &second, &second_is);
    home_run(home, 10 * MS);
    assert_false(first_is || second_is);
    struct leat_append *append = home->append; /* the batch of the first */
    assert_non_null(append);
    home->append = NULL;
    home->acked_count = home->batch_count;
    append->on_acked(append, LEAT_OK);
    home_run(home, 10 * MS);
    assert_true(first_is);
    assert_int_equal(first.rc, LEAT_OK);
    assert_false(second_is);
    home->mute = false;
    home_run(home, 10 * MS);
    assert_true(second_is);
    assert_int_equal(second.rc, LEAT_OK);
    home_free(home);
}

/* Goal: a join whose generation is over by the time it is durable does not get the assignment of the next
 * generation. */
static void answer_of_an_earlier_generation_is_none(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request first = native(LEAT_GROUPS_JOIN, 30000), second = first;
    bool first_is, second_is;
    home->mute = true;
    ask_begin(home, &first, &first_is);
    home_run(home, 10 * MS);
    const struct leat_group *group = leat_groups_group_find(home->groups, "natives");
    assert_int_equal(group->generation, 1);
    memcpy(second.member, group->members[0].id, sizeof second.member);
    second.streams = &OTHER;
    ask_begin(home, &second, &second_is);
    home_run(home, 10 * MS);
    assert_int_equal(group->generation, 2);
    assert_false(first_is || second_is);
    home->mute = false;
    home_run(home, 10 * MS);
    assert_true(first_is && second_is);
    assert_int_equal(first.rc, LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(second.rc, LEAT_OK);
    assert_int_equal(second.generation, 2);
    leat_mem_free(second.assigned);
    home_free(home);
}

/* Goal: a group that has neither members nor logs may change its mode; a group that has logs may not. */
static void group_without_logs_takes_another_mode(void **state)
{
    (void)state;
    struct home *home = home_new(1, true);
    home->calm = true;
    struct leat_groups_request join = native(LEAT_GROUPS_JOIN, 30000);
    come_and_go(home, "natives", LEAT_GROUPS_ORDERED);
    join.mode = LEAT_GROUPS_PARALLEL;
    assert_int_equal(ask(home, &join), LEAT_E_INVALID);
    leat_groups_on_stream_deleted(home->groups, STREAM);
    assert_int_equal(leat_groups_group_find(home->groups, "natives")->log_count, 0);
    assert_int_equal(ask(home, &join), LEAT_OK);
    assert_int_equal(leat_groups_group_find(home->groups, "natives")->mode, LEAT_GROUPS_PARALLEL);
    leat_mem_free(join.assigned);
    home_free(home);
}

/* Goal: a member without an instance id is not found by a join with its member id and an unknown instance id of one
 * byte. */
static void known_member_gets_no_instance(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    struct ask_group *again = join_new(member, "x", "m");
    assert_int_equal(answer_of(home, again), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(beat(home, member, "", generation), LEAT_OK);
    home_free(home);
}

/* Goal: a group takes LEAT_GROUPS_MEMBERS_MAX members and no more, including members that have got an id and have not
 * joined with the id yet. A description shows members that have joined, and none that has only got an id. */
static void group_that_is_full_refuses_the_next(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    char pending[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    struct ask_group *join;
    for (unsigned n = 0; n < LEAT_GROUPS_MEMBERS_MAX; n++) {
        join = join_new("", "", "m");
        join->r.session_ms = 1000 * 1000;
        start(home, join);
        await(home, join);
        if (n == 0) memcpy(pending, join->r.member, sizeof pending);
        assert_int_equal(rc_of(join), LEAT_E_MEMBER_ID_REQUIRED);
    }
    join = join_new("", "", "m");
    assert_int_equal(answer_of(home, join), LEAT_E_TOO_MANY);
    assert_int_equal(leave(home, pending, ""), LEAT_OK);
    join = join_new("", "", "m");
    join->call.needs_id = false;
    start(home, join);
    home_run(home, 10 * MS);
    struct leat_classic *group = leat_groups_group_find(home->groups, "readers")->classic;
    while (group->member_count > 2) /* the others take a session to go */
        leat_groups_classic_member_end(home->groups, group, group->members[0],
                                       LEAT_E_UNKNOWN_MEMBER);
    leat_groups_classic_heard(home->groups, group->members[0]);
    group->members[0]->deadline_us = home->now_us + SECOND;
    await(home, join);
    memcpy(member, join->r.member, sizeof member);
    assert_int_equal(join->r.rc, LEAT_OK);
    ask_free(join);
    join = join_new("", "", "m"); /* one more that is pending */
    assert_int_equal(answer_of(home, join), LEAT_E_MEMBER_ID_REQUIRED);
    struct ask_group *d = ask_new(LEAT_GROUPS_DESCRIBE, "", 0);
    start(home, d);
    await(home, d);
    assert_int_equal(d->r.rc, LEAT_OK);
    assert_int_equal(d->call.member_count, 1);
    assert_memory_equal(d->call.members[0].member.text, member, strlen(member));
    assert_int_equal(d->call.group_protocol_type.bytes, 8);
    assert_memory_equal(d->call.group_protocol_type.text, "consumer", 8);
    ask_free(d);
    home_free(home);
}

/* Goal: a generation that the batch has no room for begins once, when there is room: until then the group is as it was.
 */
static void generation_without_room_begins_later(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    batch_fill(home);
    struct ask_group *again = join_new(member, "", "m");
    start(home, again);
    for (unsigned i = 0; i < 10; i++) {
        home_run(home, 10 * MS);
        assert_false(again->answered);
        assert_int_equal(group->generation, generation);
        assert_int_equal(group->classic->phase, LEAT_CLASSIC_PREPARING);
    }
    home->mute = false;
    await(home, again);
    assert_int_equal(again->r.rc, LEAT_OK);
    assert_int_equal(again->r.generation, generation + 1);
    assert_int_equal(group->classic->phase, LEAT_CLASSIC_COMPLETING);
    ask_free(again);
    home_free(home);
}

/* Goal: a share that failed midway is forgotten when there is another: whom that does not name owns nothing. */
static void shares_of_an_attempt_before_are_forgotten(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "a", "m"), *b = join_new("", "b", "m");
    answer_both(home, a, b);
    home_run(home, 10 * MS);
    struct ask_group *leader = a->call.member_count > 0 ? a : b;
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        struct ask_group *shares = sync_new(leader->r.member, leader->r.generation);
        share_out(shares, &leader->call);
        assert_int_equal(shares->call.share_count, 2);
        if (attempt) shares->shares[0] = shares->shares[1], shares->call.share_count = 1;
        leat_mem_fail_at(attempt ? 0 : 2);
        start(home, shares);
        leat_mem_fail_at(0);
        await(home, shares);
        assert_int_equal(rc_of(shares), attempt ? LEAT_OK : LEAT_E_AGAIN);
    }
    const struct leat_classic *group = leat_groups_group_find(home->groups, "readers")->classic;
    struct leat_msg_string first = leader->call.members[0].member;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_classic_member *member = group->members[i];
        bool is_first = leat_classic_text_same(leat_classic_text(member->id), first);
        assert_int_equal(member->assignment_bytes, is_first ? 0 : strlen(member->id));
    }
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: all members that wait for their assignments get them, at whatever place in the group the leader stands. */
static void shares_are_told_to_all_that_wait(void **state)
{
    (void)state;
    for (unsigned leads = 0; leads < 3; leads++) {
        struct home *home = calm_home();
        struct ask_group *joins[3], *syncs[3];
        for (unsigned i = 0; i < 3; i++) {
            joins[i] = join_new("", (const char *[]){"a", "b", "c"}[i], "m");
            start(home, joins[i]);
        }
        for (unsigned i = 0; i < 3; i++)
            await(home, joins[i]);
        home_run(home, 10 * MS);
        struct leat_classic *group = leat_groups_group_find(home->groups, "readers")->classic;
        memcpy(group->leader, joins[leads]->r.member, sizeof group->leader);
        for (unsigned i = 0; i < 3; i++) {
            syncs[i] = sync_new(joins[i]->r.member, joins[i]->r.generation);
            if (i == leads) continue;
            start(home, syncs[i]);
            assert_false(syncs[i]->answered);
        }
        for (unsigned i = 0; i < 3; i++)
            syncs[leads]->shares[i] =
                (struct leat_classic_share){text(joins[i]->r.member), text(joins[i]->r.member)};
        syncs[leads]->call.shares = syncs[leads]->shares;
        syncs[leads]->call.share_count = 3;
        start(home, syncs[leads]);
        home_run(home, 10 * MS);
        for (unsigned i = 0; i < 3; i++) {
            assert_true(syncs[i]->answered);
            assert_int_equal(syncs[i]->r.rc, LEAT_OK);
            assert_int_equal(syncs[i]->call.assignment.bytes, strlen(joins[i]->r.member));
        }
        for (unsigned i = 0; i < 3; i++) {
            ask_free(syncs[i]);
            ask_free(joins[i]);
        }
        home_free(home);
    }
}

/* Goal: how far a member may be ahead is measured from the first unfinished segment group, of the group or of what its
 * log has kept; where the log can't be asked, from the group's. */
static void members_are_ahead_of_the_first_unfinished_group(void **state)
{
    (void)state;
    enum { FIRST = 5000, AHEAD = LEAT_GROUPS_AHEAD_MAX };
    static const struct {
        uint64_t retained, group;
        leat_err asked, rc;
    } rows[] = {{0, FIRST + AHEAD, LEAT_OK, LEAT_OK},
                {0, FIRST + AHEAD + 1, LEAT_OK, LEAT_E_AGAIN},
                {FIRST + 100, FIRST + 100 + AHEAD, LEAT_OK, LEAT_OK},
                {FIRST + 100, FIRST + 101 + AHEAD, LEAT_OK, LEAT_E_AGAIN},
                {FIRST + 100, FIRST + AHEAD, LEAT_E_UNKNOWN_LOG, LEAT_OK},
                {FIRST + 100, FIRST + AHEAD + 1, LEAT_E_UNKNOWN_LOG, LEAT_E_AGAIN}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct home *home = home_new(1, true);
        home->calm = true;
        struct leat_groups_request join = native(LEAT_GROUPS_JOIN, 30000), commits;
        join.mode = LEAT_GROUPS_PARALLEL;
        ask_join(home, &join);
        leat_groups_group_find(home->groups, "natives")->logs[0].first_group = FIRST;
        leat_group_bytes_count(leat_groups_group_find(home->groups, "natives"));
        struct leat_groups_offset row = {
            .log = {STREAM, 0, 0}, .group = (int64_t)rows[i].group, .offset = 5};
        commits = native(LEAT_GROUPS_COMMIT, 0);
        memcpy(commits.member, join.member, sizeof commits.member);
        commits.generation = join.generation;
        commits.commits = &row;
        commits.commit_count = 1;
        home->first_group = rows[i].retained;
        home->group_rc = rows[i].asked;
        assert_int_equal(ask(home, &commits), rows[i].rc);
        home->first_group = 0;
        home_free(home);
    }
}

/* Goal: a member that joins again with fewer streams than before starts a new generation, also where the missing
 * streams were its first. */
static void member_that_reads_less_is_shared_out_anew(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const uint32_t both[] = {STREAM, OTHER};
    struct leat_groups_request join = native(LEAT_GROUPS_JOIN, 30000);
    join.streams = both;
    for (uint32_t count = 2; count > 0; count--) {
        join.stream_count = count;
        assert_int_equal(ask(home, &join), LEAT_OK);
        assert_int_equal(join.generation, 3 - count);
        assert_int_equal(leat_groups_group_find(home->groups, "natives")->members[0].stream_count,
                         count);
        leat_mem_free(join.assigned);
    }
    home_free(home);
}

/* Goal: a commit of a log that is new waits until other tables are read; one of a log that is there does not. */
static void new_log_waits_for_other_tables(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    memset(&room, 0, sizeof room);
    room.bytes_max = UINT64_MAX;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    room.unread = 1; /* another home's */
    home->room = &room;
    home_restart(home);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 6, ""), LEAT_OK);
    commit_waits_for_tables(home, 1);
    home_free(home);
}

/* Goal: a member that has left is no member any more, also where the group has no other: a commit in its name is
 * refused. */
static void member_that_has_left_commits_nothing(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    assert_int_equal(commit(home, member, generation, 0, 5, ""), LEAT_OK);
    assert_int_equal(leave(home, member, ""), LEAT_OK);
    assert_int_equal(commit(home, member, generation, 0, 9, ""), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

/* Goal: which addresses share a bucket can't be known from outside: the number is drawn. */
static uint64_t draw(void *ctx)
{
    return *(uint64_t *)ctx;
}
static void room_draws_its_number(void **state)
{
    (void)state;
    uint64_t drawn = 0x1234567890;
    struct leat_groups_room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    const struct leat_random random = {.ctx = &drawn, .next = draw};
    leat_groups_room_init(room, &random, 77);
    assert_int_equal(room->number, drawn + 1);
    assert_int_equal(room->bytes_max, 77);
    free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_that_wakes_for_long_loses_nobody),
        cmocka_unit_test(join_is_held_until_a_session_has_ended),
        cmocka_unit_test(commit_amid_an_append_waits_for_its_own_batch),
        cmocka_unit_test(answer_of_an_earlier_generation_is_none),
        cmocka_unit_test(group_without_logs_takes_another_mode),
        cmocka_unit_test(known_member_gets_no_instance),
        cmocka_unit_test(group_that_is_full_refuses_the_next),
        cmocka_unit_test(generation_without_room_begins_later),
        cmocka_unit_test(shares_of_an_attempt_before_are_forgotten),
        cmocka_unit_test(shares_are_told_to_all_that_wait),
        cmocka_unit_test(members_are_ahead_of_the_first_unfinished_group),
        cmocka_unit_test(member_that_reads_less_is_shared_out_anew),
        cmocka_unit_test(new_log_waits_for_other_tables),
        cmocka_unit_test(member_that_has_left_commits_nothing),
        cmocka_unit_test(room_draws_its_number),
    };
    return cmocka_run_group_tests_name("groups-waits", tests, NULL, nothing_left);
}
