/* SPDX-License-Identifier: Apache-2.0 */
/* A home whose memory runs short in the middle of a request: its state stays, and the request is answered. */
#include "classic_rig.h"
#include "groups/internal.h"

/* Goal: buffers for batches are changed for new ones only where there are new ones. */
static void buffers_stay_where_there_are_no_new_ones(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups *groups = home->groups;
    const uint8_t *before = groups->buffers, *gather = groups->gather;
    groups->touched_bytes = 5;
    leat_mem_fail_at(1);
    leat_groups_buffers_renew(groups);
    leat_mem_fail_at(0);
    assert_ptr_equal(groups->buffers, before);
    assert_ptr_equal(groups->gather, gather);
    assert_int_equal(groups->touched_bytes, 5);
    leat_groups_buffers_renew(groups);
    assert_int_equal(groups->touched_bytes, 0);
    assert_ptr_equal(groups->gather, groups->buffers);
    assert_ptr_equal(groups->sealed, groups->buffers + LEAT_GROUPS_BATCH_BYTES_MAX);
    assert_ptr_equal(groups->scratch, groups->sealed + LEAT_GROUPS_BATCH_BYTES_MAX);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member); /* it goes on */
    home_free(home);
}

/* Goal: a join whose answer has no memory gets that error, and no generation. */
static void join_without_memory_for_its_answer_tells_nothing(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    assert_non_null(group);
    for (unsigned fails = 0; fails < 2; fails++) {
        struct ask_group *join = join_new(member, "", "m");
        join->r.generation = 77;
        leat_mem_fail_at(fails);
        leat_err rc =
            leat_groups_classic_join_answer(group, group->classic->members[0], &join->r, NULL);
        leat_mem_fail_at(0);
        assert_int_equal(rc, fails ? LEAT_E_NO_MEMORY : LEAT_OK);
        assert_int_equal(join->r.generation, fails ? 77 : generation);
        assert_string_equal(join->call.leader, fails ? "" : member);
        ask_free(join);
    }
    home_free(home);
}

/* Goal: a static member for whose new name there is no memory keeps the old one. */
static void static_member_without_memory_stays(void **state)
{
    (void)state;
    for (uint64_t fails = 1; fails < 3; fails++) {
        struct home *home = calm_home();
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
        uint32_t generation = single(home, "cellar", member);
        struct ask_group *join = join_new("", "cellar", "m");
        leat_mem_fail_at(fails);
        start(home, join);
        leat_mem_fail_at(0);
        assert_true(join->answered);
        assert_int_equal(rc_of(join), LEAT_E_NO_MEMORY);
        assert_int_equal(beat(home, member, "cellar", generation), LEAT_OK);
        home_free(home);
    }
}

/* Goal: a leader's shares are taken all or none, where memory is short for any of them. */
static void shares_are_taken_all_or_none(void **state)
{
    (void)state;
    for (uint64_t fails = 1; fails < 4; fails++) {
        struct home *home = calm_home();
        struct ask_group *members[3];
        for (unsigned i = 0; i < 3; i++) {
            members[i] = join_new("", "", "m");
            members[i]->call.needs_id = false;
            start(home, members[i]);
        }
        for (unsigned i = 0; i < 3; i++)
            await(home, members[i]);
        for (unsigned again = 0; again < 2; again++) {
            struct ask_group *sync = sync_new(members[0]->r.member, 1);
            share_out(sync, &members[0]->call);
            if (!again) leat_mem_fail_at(fails);
            start(home, sync);
            leat_mem_fail_at(0);
            await(home, sync);
            assert_int_equal(rc_of(sync), again ? LEAT_OK : LEAT_E_AGAIN);
        }
        const struct leat_classic *classic =
            leat_groups_group_find(home->groups, "readers")->classic;
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(classic->members[i]->assignment_bytes, strlen(members[i]->r.member));
            ask_free(members[i]);
        }
        home_free(home);
    }
}

/* Goal: a commit during which memory runs short is never acknowledged unless its offset is there after a start; a later
 * commit is taken. */
static void commit_without_memory_is_not_acknowledged(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t fails = 1; fails <= 8; fails++) {
        struct home *home = calm_home();
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
        leat_mem_fail_at(fails);
        leat_err rc = commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 1, 9, "noted");
        leat_mem_fail_at(0);
        home_restart(home);
        assert_true(rc == LEAT_OK || rc == LEAT_E_NO_MEMORY);
        refused += rc != LEAT_OK;
        if (rc == LEAT_OK) assert_int_equal(fetched(home, 1, "noted"), 9);
        assert_int_equal(fetched(home, 0, ""), 5);
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 1, 11, "again"), LEAT_OK);
        assert_int_equal(fetched(home, 1, "again"), 11);
        home_free(home);
    }
    assert_in_range(refused, 2, 7);
}

/* Goal: the same of a commit of segment groups, whose logs are asked first. */
static void commit_of_segment_groups_without_memory_is_not_acknowledged(void **state)
{
    (void)state;
    static const uint32_t stream = 7;
    unsigned refused = 0;
    for (uint64_t fails = 1; fails <= 8; fails++) {
        struct home *home = calm_home();
        struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &stream, 1);
        join.mode = LEAT_GROUPS_PARALLEL;
        ask_join(home, &join);
        for (unsigned again = 0; again < 2;
             again++) { /* a group ahead of the first unfinished one */
            struct leat_groups_offset row = {
                .log = {7, 0, 0}, .group = 2 + again, .offset = LEAT_SEGMENT_GROUP_DONE};
            struct leat_groups_request c = {.kind = LEAT_GROUPS_COMMIT,
                                            .generation = join.generation,
                                            .commits = &row,
                                            .commit_count = 1};
            snprintf(c.member, sizeof c.member, "%s", join.member);
            if (!again) leat_mem_fail_at(fails);
            leat_err rc = ask(home, &c);
            leat_mem_fail_at(0);
            assert_true(rc == LEAT_OK || (rc == LEAT_E_NO_MEMORY && !again));
            refused += rc != LEAT_OK;
            for (unsigned restarts = 0; restarts < 2; restarts++) {
                struct leat_group *group = leat_groups_group_find(home->groups, "readers");
                const struct leat_group_log *log = leat_group_log_find(group, row.log);
                assert_true(rc != LEAT_OK || leat_group_segment_group_known(log, 2 + again));
                if (!restarts) home_restart(home);
            }
        }
        home_free(home);
    }
    assert_in_range(refused, 1, 7);
}

/* Goal: a join during which memory runs short makes no group and no member, and does not harm a group that is there. */
static void join_without_memory_leaves_nothing(void **state)
{
    (void)state;
    static const uint32_t streams[] = {7};
    unsigned refused = 0;
    for (uint64_t fails = 1; fails <= 10; fails++)
        for (unsigned known = 0; known < 2; known++) {
            struct home *home = calm_home();
            struct leat_groups_request first =
                native_request(LEAT_GROUPS_JOIN, "readers", streams, 1);
            if (known) ask_join(home, &first);
            struct leat_groups_request join =
                native_request(LEAT_GROUPS_JOIN, "readers", streams, 1);
            bool answered = false;
            leat_mem_fail_at(fails);
            if (!ask_begin(home, &join, &answered)) home_run(home, known ? 0 : 100000);
            leat_mem_fail_at(0);
            const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
            if (answered && join.rc != LEAT_OK) {
                refused++;
                assert_int_equal(join.rc, LEAT_E_NO_MEMORY);
                assert_int_equal(join.assigned_count, 0);
                if (!group) assert_false(known);
            }
            home_run(home, 60 * 1000000);
            if (!answered) home_run(home, 60 * 1000000);
            assert_true(answered);
            if (join.rc == LEAT_OK) {
                assert_in_range(join.assigned_count, 1, UNITS);
                leat_mem_free(join.assigned);
            }
            struct leat_groups_request last =
                native_request(LEAT_GROUPS_JOIN, "readers", streams, 1);
            ask_join(home, &last);
            assert_int_equal(last.assigned_count, UNITS);
            home_free(home);
        }
    assert_in_range(refused, 2, 18);
}

/* Goal: a join of Kafka's protocol that is refused for want of memory leaves no member: the others would wait for
 * the member. */
static void classic_join_without_memory_leaves_no_member(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t fails = 1; fails <= 8; fails++) {
        struct home *home = calm_home();
        struct ask_group *join = join_new("", "", "m");
        join->call.needs_id = false;
        leat_mem_fail_at(fails);
        start(home, join);
        leat_mem_fail_at(0);
        const bool at_once = join->answered;
        await(home, join);
        const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
        const leat_err rc = rc_of(join);
        if (at_once && rc == LEAT_E_NO_MEMORY) {
            refused++;
            assert_true(!group || !group->classic || group->classic->member_count == 0);
        } else {
            assert_int_equal(rc, LEAT_OK);
            assert_int_equal(group->classic->member_count, 1);
        }
        home_free(home);
    }
    assert_in_range(refused, 2, 7);
}

/* Goal: a fetch without memory for its offsets says so, and gives none; a home without memory does not begin. */
static void fetch_and_home_without_memory_say_so(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const struct leat_log_ref log = {7, 0, 0};
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "x"), LEAT_OK);
    for (unsigned all = 0; all < 2; all++)
        for (uint64_t fails = 0; fails < 3; fails++) {
            struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH,
                                            .answer_bytes_max = SIZE_MAX,
                                            .logs = all ? NULL : &log,
                                            .log_count = all ? 0 : 1};
            leat_mem_fail_at(fails);
            leat_err rc = ask(home, &f);
            leat_mem_fail_at(0);
            if (fails == 0) assert_int_equal(rc, LEAT_OK);
            if (fails == 1) assert_int_equal(rc, LEAT_E_NO_MEMORY);
            assert_int_equal(f.offset_count, rc == LEAT_OK ? 1 : 0);
            leat_mem_free(f.offsets);
        }
    home_close(home);
    for (uint64_t fails = 1; fails < 3; fails++) {
        leat_mem_fail_at(fails);
        assert_int_equal(home_open(home), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_null(home->groups);
    }
    assert_int_equal(home_open(home), LEAT_OK);
    assert_int_equal(fetched(home, 0, "x"), 5);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_stay_where_there_are_no_new_ones),
        cmocka_unit_test(join_without_memory_for_its_answer_tells_nothing),
        cmocka_unit_test(static_member_without_memory_stays),
        cmocka_unit_test(shares_are_taken_all_or_none),
        cmocka_unit_test(commit_without_memory_is_not_acknowledged),
        cmocka_unit_test(commit_of_segment_groups_without_memory_is_not_acknowledged),
        cmocka_unit_test(join_without_memory_leaves_nothing),
        cmocka_unit_test(classic_join_without_memory_leaves_no_member),
        cmocka_unit_test(fetch_and_home_without_memory_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
