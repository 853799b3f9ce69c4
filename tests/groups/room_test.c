/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a node, which its homes share: new groups wait until all homes are read. */
#include "shares_rig.h"

static struct leat_groups_room *room_new(uint64_t bytes_max)
{
    struct leat_xoshiro rng;
    leat_xoshiro_seed(&rng, 1);
    struct leat_groups_room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    room->bytes_max = bytes_max;
    room->number = leat_xoshiro_next(&rng) | 1;
    return room;
}

static struct home *home_in(struct leat_groups_room *room, uint64_t seed)
{
    struct home *home = home_new(seed, false);
    home->room = room;
    home_restart(home);
    return home;
}

/* Goal: homes share the node's memory for tables. An address that has half of this memory is refused in all homes,
 * while other addresses are served; a restart counts all stored state again, and deleted state is given back. */
static void memory_of_a_node_is_shared_by_its_homes(void **state)
{
    (void)state;
    struct leat_groups_room *room = room_new(256 * 1024);
    struct home *a = home_in(room, 7), *b = home_in(room, 8);
    unsigned half = commits_until_refused(a, HOSTILE, "hostile", 4096);
    assert_in_range(half, 16, 32);
    assert_int_equal(commit_as(b, HOSTILE, "hostile", 0, 4096), LEAT_E_TOO_MANY);
    assert_int_equal(commit_as(a, HOSTILE, "hostile-0", 0, 4096), LEAT_OK);
    assert_int_equal(commit_as(a, HONEST, "honest", 0, 4096), LEAT_OK);
    assert_int_equal(commit_as(b, HONEST, "honest", 0, 4096), LEAT_OK);
    assert_int_equal(commit_as(b, 0, "old", 0, 0), LEAT_OK); /* as an earlier version stored it */
    assert_int_equal(commit_as(b, HONEST, "old", 1, 0), LEAT_OK);
    uint64_t bytes = room->bytes;
    home_roll(a);
    home_restart(a);
    home_restart(b);
    assert_int_equal(room->unread, 0);
    assert_in_range(room->bytes, bytes - 16384, bytes + 16384); /* spare rows of logs */
    assert_int_equal(commit_as(b, HOSTILE, "hostile", 0, 4096), LEAT_E_TOO_MANY);
    assert_int_equal(commit_as(b, HONEST, "more", 0, 4096), LEAT_OK);
    for (unsigned n = 0; n < half; n++) {
        struct leat_groups_request gone = {.kind = LEAT_GROUPS_DELETE};
        snprintf(gone.group, sizeof gone.group, "%s", name("hostile", n));
        assert_int_equal(ask(a, &gone), LEAT_OK);
    }
    assert_int_equal(commit_as(b, HOSTILE, "hostile", 0, 4096), LEAT_OK);
    home_free(a);
    home_free(b);
    assert_int_equal(room->bytes, 0);
    for (unsigned i = 0; i < LEAT_GROUPS_ROOM_BUCKETS; i++)
        assert_int_equal(room->shares[i], 0);
    free(room);
}

/* Goal: a classic group that is there does not grow beyond the memory of its address, either. */
static void memory_counts_when_a_group_grows(void **state)
{
    (void)state;
    struct leat_groups_room *room = room_new(64 * 1024);
    struct home *home = home_in(room, 26);
    leat_err rc = LEAT_OK;
    unsigned taken = 0;
    for (; taken < UNITS && rc == LEAT_OK; taken++)
        rc = commit_as(home, HOSTILE, "one", taken, LEAT_CLASSIC_METADATA_BYTES_MAX);
    assert_int_equal(rc, LEAT_E_TOO_MANY);
    assert_in_range(taken, 5, 9);
    assert_int_equal(commit_as(home, HONEST, "honest", 0, LEAT_CLASSIC_METADATA_BYTES_MAX),
                     LEAT_OK);
    home_free(home);
    free(room);
}

struct wait {
    struct leat_groups_request request;
    struct leat_classic_call call;
    struct leat_groups_offset row;
    bool answered;
};

static void commit_start(struct home *home, struct wait *wait, const char *group)
{
    *wait = (struct wait){.row = {.log = {7, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 1}};
    wait->request = (struct leat_groups_request){.kind = LEAT_GROUPS_COMMIT,
                                                 .address = HOSTILE,
                                                 .generation = LEAT_CLASSIC_GENERATION_NONE,
                                                 .commits = &wait->row,
                                                 .commit_count = 1,
                                                 .classic = &wait->call,
                                                 .on_done = home_done,
                                                 .owner = &wait->answered};
    snprintf(wait->request.group, sizeof wait->request.group, "%s", group);
    assert_false(leat_groups_do(home->groups, &wait->request));
}

/* Goal: new groups wait until the other homes have read their tables, or for three seconds; existing groups go on; a
 * waiting request may be cancelled. */
static void new_groups_wait_until_all_homes_are_read(void **state)
{
    (void)state;
    struct leat_groups_room *room = room_new(256 * 1024);
    struct home *a = home_in(room, 9), *b = home_in(room, 10);
    struct wait wait, gone;
    assert_int_equal(commit_as(a, HOSTILE, "known", 0, 0), LEAT_OK);
    b->unread = true;
    home_restart(b);
    assert_int_equal(room->unread, 1);
    commit_start(a, &wait, "new");
    commit_start(a, &gone, "gone");
    home_run(a, 1000000);
    assert_false(wait.answered);
    assert_int_equal(commit_as(a, HOSTILE, "known", 0, 0), LEAT_OK);
    leat_groups_cancel(a->groups, &gone.request);
    assert_true(gone.answered);
    assert_int_equal(gone.request.rc, LEAT_E_CANCELLED);
    leat_groups_is_read(b->groups);
    home_run(a, 100000);
    assert_true(wait.answered);
    assert_int_equal(wait.request.rc, LEAT_OK);
    assert_false(committed(a, "gone", 0));

    home_restart(b);
    commit_start(a, &wait, "newer");
    home_run(b, LEAT_GROUPS_READ_US_MAX + 10000);
    assert_int_equal(room->unread, 0);
    home_run(a, 100000);
    assert_true(wait.answered);

    home_restart(b);
    commit_start(a, &wait, "newest");
    home_restart(a); /* its home goes to another node */
    assert_true(wait.answered);
    assert_int_equal(wait.request.rc, LEAT_E_TIMEOUT);
    home_free(a);
    home_free(b);
    assert_int_equal(room->unread, 0);
    free(room);
}

/* Goal: a commit waits until all homes of the node have been read, and no later commit overtakes the waiting commit:
 * the waiting commit would undo the later commit. */
static void commits_keep_their_order_behind_one_that_waits(void **state)
{
    (void)state;
    struct leat_groups_room *room = room_new(256 * 1024);
    struct home *a = home_in(room, 15), *b = home_in(room, 16);
    assert_int_equal(commit_as(a, HONEST, "group", 0, 0), LEAT_OK);
    b->unread = true;
    home_restart(b);
    struct leat_classic_call call = {0};
    struct leat_groups_offset rows[3] = {
        {.log = {7, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 10},
        {.log = {7, 1, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 10},
        {.log = {7, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 20}};
    struct leat_groups_request commits[2];
    bool answered[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        commits[i] = (struct leat_groups_request){.kind = LEAT_GROUPS_COMMIT,
                                                  .group = "group",
                                                  .address = HONEST,
                                                  .generation = LEAT_CLASSIC_GENERATION_NONE,
                                                  .commits = &rows[2 * i],
                                                  .commit_count = i == 0 ? 2 : 1,
                                                  .classic = &call,
                                                  .on_done = home_done,
                                                  .owner = &answered[i]};
        answered[i] = leat_groups_do(a->groups, &commits[i]);
    }
    home_run(a, 100000);
    assert_false(answered[0]); /* as its second log is new */
    leat_groups_is_read(b->groups);
    home_run(a, 100000);
    assert_true(answered[0] && answered[1]);
    assert_int_equal(commits[0].rc, LEAT_OK);
    assert_int_equal(commits[1].rc, LEAT_OK);
    struct leat_log_ref ref = {7, 0, 0};
    struct leat_groups_request fetch = {.kind = LEAT_GROUPS_FETCH,
                                        .group = "group",
                                        .logs = &ref,
                                        .log_count = 1,
                                        .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(a, &fetch), LEAT_OK);
    assert_int_equal(fetch.offset_count, 1);
    assert_int_equal(fetch.offsets[0].offset, 20);
    leat_mem_free(fetch.offsets);
    home_free(a);
    home_free(b);
    free(room);
}

/* Goal: a home that can't be read stops no other home, and requests that wait at the home are answered. */
static void broken_home_ends_what_waits(void **state)
{
    (void)state;
    static const uint8_t garbage[1] = {0xc1};
    struct leat_groups_room *room = room_new(256 * 1024);
    struct home *a = home_in(room, 27), *b = home_in(room, 28);
    b->unread = true;
    home_restart(b);
    struct wait wait;
    commit_start(b, &wait, "new");
    home_run(b, 1000000);
    assert_false(wait.answered);
    struct leat_log_app app = leat_groups_app(b->groups);
    app.on_restore(app.ctx, garbage, sizeof garbage);
    assert_true(wait.answered);
    assert_int_equal(wait.request.rc, LEAT_E_DAMAGED);
    assert_int_equal(room->unread, 0);
    assert_int_equal(commit_as(a, HONEST, "honest", 0, 0), LEAT_OK);
    home_free(a);
    home_free(b);
    free(room);
}

/* Goal: a delete of a classic group that comes after a commit that still waits deletes the group. */
static void deletion_stays_behind_a_commit_that_waits(void **state)
{
    (void)state;
    struct leat_groups_room *room = room_new(256 * 1024);
    struct home *a = home_in(room, 29), *b = home_in(room, 30);
    assert_int_equal(commit_as(a, HONEST, "other", 0, 0), LEAT_OK);
    b->unread = true;
    home_restart(b);
    struct wait wait;
    bool answered = false;
    commit_start(a, &wait, "group");
    struct leat_groups_request gone = {
        .kind = LEAT_GROUPS_DELETE, .group = "group", .on_done = home_done, .owner = &answered};
    assert_false(leat_groups_do(a->groups, &gone));
    struct leat_groups_request other = {.kind = LEAT_GROUPS_DELETE, .group = "other"};
    assert_int_equal(ask(a, &other), LEAT_OK);
    assert_false(answered);
    leat_groups_is_read(b->groups);
    home_run(a, 100000);
    assert_true(wait.answered && answered);
    assert_int_equal(wait.request.rc, LEAT_OK);
    assert_int_equal(gone.rc, LEAT_OK);
    assert_false(committed(a, "group", 0));
    home_free(a);
    home_free(b);
    free(room);
}

/* Only a request that adds state waits; a later request that would overtake it waits, too. */
static void requests_that_bring_nothing_do_not_wait_for_other_homes(void **state)
{
    (void)state;
    static const uint32_t stream = 7;
    struct home *home = calm_home();
    struct leat_groups_room room = {0};
    leat_groups_room_init(&room, &home->random, 1 << 20);
    home->room = &room;
    home_restart(home);
    struct leat_groups_offset row = {.log = {7, 0, 0}, .group = -1, .offset = 5};
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    assert_int_equal(commit(home, member, generation, 0, 5, ""), LEAT_OK);
    home_run(home, 10 * 1000);
    room.unread++; /* some other home is not */
    const struct {
        enum leat_groups_kind kind;
        bool waits, group;
    } kinds[] = {
        {LEAT_GROUPS_JOIN, true, false},         {LEAT_GROUPS_CLASSIC_JOIN, true, true},
        {LEAT_GROUPS_COMMIT, true, true},        {LEAT_GROUPS_HEARTBEAT, false, false},
        {LEAT_GROUPS_LEAVE, false, false},       {LEAT_GROUPS_FETCH, false, false},
        {LEAT_GROUPS_DELETE, false, false},      {LEAT_GROUPS_OFFSETS_DELETE, false, false},
        {LEAT_GROUPS_CLASSIC_SYNC, false, true}, {LEAT_GROUPS_CLASSIC_HEARTBEAT, false, true},
        {LEAT_GROUPS_DESCRIBE, false, true}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct ask_group *a = kinds[i].kind == LEAT_GROUPS_CLASSIC_JOIN
                                  ? join_new("", "", "m")
                                  : ask_new(kinds[i].kind, "", LEAT_CLASSIC_GENERATION_NONE);
        snprintf(a->r.group, sizeof a->r.group, "new-%u", i);
        if (!kinds[i].group) a->r.classic = NULL;
        a->r.streams = &stream;
        a->r.stream_count = 1;
        a->r.commits = &row;
        a->r.commit_count = 1;
        start(home, a);
        if (a->answered == kinds[i].waits) fail_msg("kind %u", i);
        if (!a->answered) {
            home_run(home, 50 * 1000);
            assert_false(a->answered); /* nor is its group begun */
            leat_groups_cancel(home->groups, &a->r);
        }
        struct leat_groups_info info;
        leat_groups_info(home->groups, &info);
        assert_int_equal(info.groups, 1);
        assert_int_equal(info.waiting, 0);
        ask_free(a);
    }
    /* A log that the group has brings nothing; a second one does. */
    assert_int_equal(commit(home, member, generation, 0, 6, ""), LEAT_OK);
    struct leat_groups_offset two[2] = {row, {.log = {7, 1, 0}, .group = -1, .offset = 5}};
    struct ask_group *more = commit_new(member, generation, two, 2);
    start(home, more);
    assert_false(more->answered);
    /* Behind it waits what it must not pass; a heartbeat does not. */
    struct ask_group *behind = commit_new(member, generation, &row, 1);
    start(home, behind);
    struct ask_group *out = ask_new(LEAT_GROUPS_CLASSIC_LEAVE, "", 0);
    out->leaver = (struct leat_classic_leaver){text(member), text(""), LEAT_OK};
    out->call.leavers = &out->leaver;
    out->call.leaver_count = 1;
    start(home, out);
    home_run(home, 50 * 1000);
    assert_false(behind->answered || out->answered);
    assert_int_equal(beat(home, member, "", generation), LEAT_OK);
    room.unread--;
    home_run(home, 50 * 1000);
    assert_int_equal(rc_of(more), LEAT_OK);
    assert_int_equal(rc_of(behind), LEAT_OK);
    assert_int_equal(rc_of(out), LEAT_OK);
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_a_node_is_shared_by_its_homes),
        cmocka_unit_test(new_groups_wait_until_all_homes_are_read),
        cmocka_unit_test(commits_keep_their_order_behind_one_that_waits),
        cmocka_unit_test(memory_counts_when_a_group_grows),
        cmocka_unit_test(broken_home_ends_what_waits),
        cmocka_unit_test(deletion_stays_behind_a_commit_that_waits),
        cmocka_unit_test(requests_that_bring_nothing_do_not_wait_for_other_homes),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
