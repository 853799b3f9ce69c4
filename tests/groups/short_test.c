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
    (void)lone(home, "", member); /* it goes on */
    home_free(home);
}

/* Goal: a join whose answer has no memory gets that error, and no generation. */
static void join_without_memory_for_its_answer_tells_nothing(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = lone(home, "", member);
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
        uint32_t generation = lone(home, "cellar", member);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_stay_where_there_are_no_new_ones),
        cmocka_unit_test(join_without_memory_for_its_answer_tells_nothing),
        cmocka_unit_test(static_member_without_memory_stays),
        cmocka_unit_test(shares_are_taken_all_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
