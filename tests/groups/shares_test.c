/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the groups one address may have: groups, members, offsets, memory. An address that takes its whole share
 * leaves as much to other addresses, also after a restart. */
#include "shares_rig.h"

enum { LONG_SESSION_MS = 30 * 60 * 1000 };

/* One join, without waiting for a generation: a new member id is enough. instance "": none. */
static leat_err join_as(struct home *home, uint64_t address, const char *group, char *member,
                        const char *metadata, const char *instance)
{
    struct leat_classic_protocol protocol = {text("range"), text(metadata)};
    struct leat_classic_call call = {.client = text("tester"),
                                     .instance = text(instance),
                                     .host = text("/127.0.0.1"),
                                     .rebalance_ms = 4000,
                                     .needs_id = true,
                                     .protocols = &protocol,
                                     .protocol_count = 1,
                                     .protocol_type = text("consumer")};
    struct leat_groups_request request = {.kind = LEAT_GROUPS_CLASSIC_JOIN,
                                          .address = address,
                                          .session_ms = LONG_SESSION_MS,
                                          .answer_bytes_max = SIZE_MAX,
                                          .classic = &call};
    snprintf(request.group, sizeof request.group, "%s", group);
    memcpy(request.member, member, sizeof request.member);
    leat_err rc = ask(home, &request);
    leat_mem_free(call.memory);
    if (rc == LEAT_OK || rc == LEAT_E_MEMBER_ID_REQUIRED)
        memcpy(member, request.member, sizeof request.member);
    return rc;
}

static leat_err join(struct home *home, uint64_t address, const char *group, char *member,
                     const char *metadata)
{
    return join_as(home, address, group, member, metadata, "");
}

/* As a client does: the id, then the group. */
static leat_err join_whole(struct home *home, uint64_t address, const char *group, char *member,
                           const char *metadata)
{
    leat_err rc = join(home, address, group, member, metadata);
    return rc == LEAT_E_MEMBER_ID_REQUIRED ? join(home, address, group, member, metadata) : rc;
}

static struct leat_groups_info info(const struct home *home)
{
    struct leat_groups_info it;
    leat_groups_info(home->groups, &it);
    return it;
}

/* Invented groups until one is refused; how many were taken. */
static unsigned joins_until_refused(struct home *home, uint64_t address, const char *word)
{
    for (unsigned n = 0; n < GROUPS_MAX; n++) {
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
        leat_err rc = join(home, address, name(word, n), member, "metadata");
        if (rc == LEAT_E_TOO_MANY) return n;
        assert_int_equal(rc, LEAT_E_MEMBER_ID_REQUIRED);
    }
    fail();
    return 0;
}

/* Goal: members of invented groups take half of the members' memory, and others join, join again and come back after a
 * restart. */
static void members_of_one_address_leave_memory_to_others(void **state)
{
    (void)state;
    struct home *home = home_new(1, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
    unsigned half = joins_until_refused(home, HOSTILE, "hostile");
    assert_in_range(half, 100, 400);
    assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
    char other[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HONEST, "another", other, "metadata"), LEAT_OK);
    assert_in_range(joins_until_refused(home, 3, "third"), half / 3, 2 * half / 3);
    assert_in_range(joins_until_refused(home, 4, "fourth"), half / 6, half / 3);
    assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
    home_restart(home);
    assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
    home_free(home);
}

/* Goal: a member joins again with no more metadata than before, although its address has used its whole share. */
static void member_of_a_full_address_joins_again(void **state)
{
    (void)state;
    struct home *home = home_new(2, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HOSTILE, "mine", member, "metadata"), LEAT_OK);
    (void)joins_until_refused(home, HOSTILE, "hostile");
    assert_int_equal(join_whole(home, HOSTILE, "mine", member, "metadata"), LEAT_OK);
    static char longer[80 * 1024];
    memset(longer, 'm', sizeof longer - 1);
    assert_int_equal(join(home, HOSTILE, "mine", member, longer), LEAT_E_TOO_MANY);
    home_restart(home); /* its members were stored, and count for it */
    assert_int_equal(join_whole(home, HOSTILE, "mine", member, "metadata"), LEAT_OK);
    assert_int_equal(join(home, HOSTILE, "mine", member, longer), LEAT_E_TOO_MANY);
    home_free(home);
}

static leat_err share_out_as(struct home *home, uint64_t address, const char *group,
                             const char *member, uint32_t generation, uint32_t bytes)
{
    static char large[32 * 1024];
    struct leat_classic_share share = {text(member), {large, bytes}};
    struct leat_classic_call call = {.shares = &share, .share_count = 1};
    struct leat_groups_request sync = {.kind = LEAT_GROUPS_CLASSIC_SYNC,
                                       .address = address,
                                       .generation = generation,
                                       .answer_bytes_max = SIZE_MAX,
                                       .classic = &call};
    snprintf(sync.group, sizeof sync.group, "%s", group);
    snprintf(sync.member, sizeof sync.member, "%s", member);
    leat_err rc = ask(home, &sync);
    leat_mem_free(call.memory);
    return rc;
}

/* Goal: a classic group that rebalances has room for as much as the group had before, although other addresses took
 * their whole share meanwhile; no address is given that room as well. */
static void group_of_a_full_home_is_shared_out_anew(void **state)
{
    (void)state;
    enum { SHARE_BYTES = 28 * 1024 };
    struct home *home = home_new(14, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
    assert_int_equal(share_out_as(home, HONEST, "honest", member, 1, SHARE_BYTES), LEAT_OK);
    for (uint32_t generation = 2; generation < 5; generation++) {
        if (generation == 4) home_restart(home);
        for (uint64_t address = 2; address < 8; address++)
            (void)joins_until_refused(home, address, generation < 4 ? "before" : "behind");
        assert_int_equal(join_whole(home, HONEST, "honest", member, "metadata"), LEAT_OK);
        assert_in_range(joins_until_refused(home, 100, "late"), 0, 4);
        assert_int_equal(
            share_out_as(home, HONEST, "honest", member, generation, SHARE_BYTES + 4 * 1024),
            LEAT_E_TOO_MANY);
        assert_int_equal(share_out_as(home, HONEST, "honest", member, generation, SHARE_BYTES),
                         LEAT_OK);
    }
    home_free(home);
}

/* Goal: a member joins again from another address though there is no room left, and counts for the one that it came
 * from first: two addresses do not get all by handing members to each other. */
static void member_of_a_full_home_joins_again_from_elsewhere(void **state)
{
    (void)state;
    enum { ELSEWHERE = 50, KEPT = 3 };
    static char words[4 * 1024];
    memset(words, 'm', sizeof words - 1);
    struct home *home = home_new(17, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char members[KEPT][LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = {{0}};
    for (unsigned n = 0; n < KEPT; n++)
        assert_int_equal(join_whole(home, HONEST, name("honest", n), members[n], words), LEAT_OK);
    for (uint64_t address = 1; address < 9; address++)
        (void)joins_until_refused(home, address, "hostile");
    uint64_t all = info(home).members;
    for (unsigned n = 0; n < KEPT; n++)
        assert_int_equal(join_whole(home, ELSEWHERE, name("honest", n), members[n], words),
                         LEAT_OK);
    assert_int_equal(joins_until_refused(home, HONEST, "more"), 0);
    assert_int_equal(info(home).members, all);
    home_free(home);
}

static void leave_group(struct home *home, const char *group, const char *member)
{
    struct leat_classic_leaver leaver = {.member = text(member)};
    struct leat_classic_call call = {.leavers = &leaver, .leaver_count = 1};
    struct leat_groups_request request = {.kind = LEAT_GROUPS_CLASSIC_LEAVE, .classic = &call};
    snprintf(request.group, sizeof request.group, "%s", group);
    assert_int_equal(ask(home, &request), LEAT_OK);
    assert_int_equal(leaver.rc, LEAT_OK);
}

/* Goal: the assignments that a classic group keeps while it rebalances count for its maker, until all members have
 * left. */
static void assignments_count_for_their_maker_until_all_have_left(void **state)
{
    (void)state;
    enum { SHARE_BYTES = 32 * 1024 };
    struct home *home = home_new(18, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "",
                                               other[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HONEST, "one", member, "m"), LEAT_OK);
    assert_int_equal(share_out_as(home, HONEST, "one", member, 1, SHARE_BYTES), LEAT_OK);
    assert_int_equal(join_whole(home, HONEST, "one", member, "m"), LEAT_OK);
    assert_int_equal(join_whole(home, HONEST, "two", other, "m"), LEAT_OK);
    assert_int_equal(share_out_as(home, HONEST, "two", other, 1, SHARE_BYTES), LEAT_E_TOO_MANY);
    assert_int_equal(share_out_as(home, HONEST, "one", member, 2, SHARE_BYTES), LEAT_OK);
    leave_group(home, "one", member);
    home_run(home, 1000000);
    assert_int_equal(share_out_as(home, HONEST, "two", other, 1, SHARE_BYTES), LEAT_OK);
    home_free(home);
}

/* Goal: a member that joins again with other metadata counts once, and so does its assignment. */
static void member_that_says_more_counts_once(void **state)
{
    (void)state;
    static char words[3][41 * 1024];
    static const size_t bytes[3] = {28 * 1024, 36 * 1024, 40 * 1024};
    for (int i = 0; i < 3; i++)
        memset(words[i], 'm', bytes[i]);
    struct home *home = home_new(19, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join_whole(home, HONEST, "group", member, words[0]), LEAT_OK);
    assert_int_equal(join_whole(home, HONEST, "group", member, words[1]), LEAT_OK);
    assert_int_equal(share_out_as(home, HONEST, "group", member, 2, 24 * 1024), LEAT_OK);
    assert_int_equal(join(home, HONEST, "group", member, words[2]), LEAT_E_TOO_MANY);
    home_free(home);
}

/* Goal: members that are stored count for their address after a restart. */
static void stored_members_count_for_their_address(void **state)
{
    (void)state;
    static char words[14 * 1024];
    memset(words, 'm', sizeof words - 1);
    struct home *home = home_new(20, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    for (unsigned n = 0; n < 4; n++) {
        memset(member, 0, sizeof member);
        assert_int_equal(join_whole(home, HOSTILE, name("stored", n), member, words), LEAT_OK);
    }
    for (int restart = 0; restart < 2; restart++) {
        if (restart == 1) home_roll(home);
        home_restart(home);
        memset(member, 0, sizeof member);
        assert_int_equal(join(home, HOSTILE, "more", member, words), LEAT_E_TOO_MANY);
    }
    assert_int_equal(join(home, HONEST, "more", member, words), LEAT_E_MEMBER_ID_REQUIRED);
    home_free(home);
}

/* Goal: two addresses that hand their members to each other do not get all, static members or not; but who has moved
 * to another address counts there. */
static void members_handed_on_count_where_they_are(void **state)
{
    (void)state;
    enum { ELSEWHERE = 50, MOST = 40 };
    static char words[4 * 1024];
    memset(words, 'm', sizeof words - 1);
    for (int is_static = 0; is_static < 2; is_static++) {
        struct home *home = home_new(21, false);
        home->group_bytes_max = 128 * 1024;
        home_restart(home);
        static char members[MOST][LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
        memset(members, 0, sizeof members);
        unsigned taken[4], count = 0;
        for (int round = 0; round < 4; round++) {
            const unsigned before = count;
            for (; count < MOST; count++) {
                const char *group = name("group", count);
                leat_err rc = is_static ? join_as(home, HONEST, group, members[count], words, "me")
                                        : join_whole(home, HONEST, group, members[count], words);
                if (rc == LEAT_E_TOO_MANY) break;
                assert_int_equal(rc, LEAT_OK);
                assert_int_equal(share_out_as(home, HONEST, group, members[count], 1, 1), LEAT_OK);
            }
            taken[round] = count - before;
            for (unsigned n = 0; n < count; n++) {
                if (is_static) /* a process that starts anew knows no id */
                    memset(members[n], 0, sizeof members[n]);
                assert_int_equal(join_as(home, ELSEWHERE, name("group", n), members[n], words,
                                         is_static ? "me" : ""),
                                 LEAT_OK);
            }
        }
        assert_in_range(taken[0], 12, 16);
        assert_in_range(taken[1], 4, 8);
        assert_in_range(taken[2] + taken[3], 0, 1);
        char third[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
        assert_int_equal(join_whole(home, 3, "third", third, words), LEAT_OK);
        home_free(home);
    }
}

/* Goal: assignments of all groups count, not those of one classic group alone. */
static void assignments_of_many_groups_stay_within_memory(void **state)
{
    (void)state;
    struct home *home = home_new(3, false);
    home->group_bytes_max = 128 * 1024;
    home_restart(home);
    unsigned taken = 0;
    for (unsigned n = 0; n < 16; n++) {
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
        if (join_whole(home, HOSTILE, name("group", n), member, "m") == LEAT_E_TOO_MANY) break;
        leat_err rc = share_out_as(home, HOSTILE, name("group", n), member, 1, 16 * 1024);
        assert_true(rc == LEAT_OK || rc == LEAT_E_TOO_MANY);
        taken += rc == LEAT_OK;
    }
    assert_in_range(taken, 2, 3); /* in half of the memory */
    home_free(home);
}

/* Goal: one address fills half of a home's table with invented groups; first commits of other addresses succeed, the
 * address's own groups go on, and both stay so over restarts. */
static void offsets_of_one_address_leave_a_table_to_others(void **state)
{
    (void)state;
    struct home *home = home_new(4, false);
    assert_int_equal(commits_until_refused(home, HOSTILE, "hostile", 0),
                     LEAT_GROUPS_PER_HOME_MAX / 2);
    assert_int_equal(commit_as(home, HOSTILE, "hostile-0", 0, 0), LEAT_OK);
    assert_int_equal(commit_as(home, HONEST, "honest", 0, 4096), LEAT_OK);
    for (int restart = 0; restart < 4; restart++) {
        if (restart % 2) home_roll(home);
        home_restart(home);
        assert_int_equal(commit_as(home, HOSTILE, "hostile-new", 0, 0), LEAT_E_TOO_MANY);
        assert_int_equal(commit_as(home, HOSTILE, "hostile-0", 0, 0), LEAT_OK);
        assert_int_equal(commit_as(home, HONEST, name("honest", (unsigned)restart), 0, 4096),
                         LEAT_OK);
        assert_true(committed(home, "honest", 0));
        assert_true(committed(home, "hostile-511", 0));
    }
    home_free(home);
    home = home_new(5, false);
    unsigned half = commits_until_refused(home, HOSTILE, "large", LEAT_CLASSIC_METADATA_BYTES_MAX);
    assert_in_range(info(home).table_bytes, LEAT_GROUPS_TABLE_BYTES_MAX / 2 - 8192,
                    LEAT_GROUPS_TABLE_BYTES_MAX / 2);
    assert_int_equal(commit_as(home, HOSTILE, "large-0", 0, LEAT_CLASSIC_METADATA_BYTES_MAX),
                     LEAT_OK);
    assert_int_equal(commit_as(home, HOSTILE, "large-0", 1, LEAT_CLASSIC_METADATA_BYTES_MAX),
                     LEAT_E_TOO_MANY);
    assert_in_range(commits_until_refused(home, HONEST, "honest", LEAT_CLASSIC_METADATA_BYTES_MAX),
                    half / 3, half);
    home_free(home);
}

/* Goal: a classic group that an earlier version stored, without a maker, counts for the first address that adds to
 * it. */
static void group_without_a_maker_counts_for_who_adds_to_it(void **state)
{
    (void)state;
    struct home *home = home_new(11, false);
    for (unsigned n = 0; n < 120; n++)
        assert_int_equal(commit_as(home, 0, name("old", n), 0, LEAT_CLASSIC_METADATA_BYTES_MAX),
                         LEAT_OK);
    home_roll(home);
    home_restart(home);
    assert_int_equal(commit_as(home, HONEST, "old-0", 1, LEAT_CLASSIC_METADATA_BYTES_MAX), LEAT_OK);
    leat_err rc = LEAT_OK;
    unsigned taken = 0;
    for (; taken < 120 && rc == LEAT_OK; taken++)
        rc = commit_as(home, HOSTILE, name("old", taken), 2, LEAT_CLASSIC_METADATA_BYTES_MAX);
    assert_int_equal(rc, LEAT_E_TOO_MANY);
    assert_in_range(taken, 30, 90);
    assert_int_equal(commit_as(home, HONEST, "new", 0, LEAT_CLASSIC_METADATA_BYTES_MAX), LEAT_OK);
    home_free(home);
}

/* Goal: in a full home idle groups are evicted for an address that has no group, for no other address. */
static void idle_groups_of_others_make_way_for_who_has_none(void **state)
{
    (void)state;
    struct home *home = home_new(24, false);
    for (unsigned n = 0; n < 2; n++) {
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
        assert_int_equal(join(home, 7, name("idle", n), member, "m"), LEAT_E_MEMBER_ID_REQUIRED);
        leave_group(home, name("idle", n), member);
    }
    assert_int_equal(commit_as(home, HOSTILE, "hostile", 0, 0), LEAT_OK);
    for (unsigned n = info(home).groups; n < LEAT_GROUPS_PER_HOME_MAX; n++)
        assert_int_equal(commit_as(home, 0, name("old", n), 0, 0), LEAT_OK);
    assert_int_equal(commit_as(home, HOSTILE, "more", 0, 0), LEAT_E_TOO_MANY);
    assert_int_equal(info(home).groups, LEAT_GROUPS_PER_HOME_MAX);
    assert_int_equal(commit_as(home, 3, "third", 0, 0), LEAT_OK);
    assert_int_equal(commit_as(home, 4, "fourth", 0, 0), LEAT_E_TOO_MANY); /* none is idle now */
    assert_true(committed(home, "hostile", 0));
    home_free(home);
}

static leat_err join_native(struct home *home, uint64_t address, const char *group, uint32_t count)
{
    static const uint32_t streams[2] = {LARGE_STREAM, LARGE_STREAM + 1};
    struct leat_groups_request request = {
        .kind = LEAT_GROUPS_JOIN, .address = address, .streams = streams, .stream_count = count};
    snprintf(request.group, sizeof request.group, "%s", group);
    leat_err rc = ask(home, &request);
    leat_mem_free(request.assigned);
    return rc;
}

/* Goal: the logs of a native group's streams count, all streams together. */
static void logs_of_native_streams_count_together(void **state)
{
    (void)state;
    struct home *home = home_new(25, false);
    assert_int_equal(join_native(home, HOSTILE, "native", 2), LEAT_E_TOO_MANY);
    assert_int_equal(join_native(home, HOSTILE, "native", 1), LEAT_OK);
    assert_int_equal(join_native(home, HOSTILE, "second", 1), LEAT_E_TOO_MANY);
    home_free(home);
}

/* Goal: native members count for the address that made the group. In a group without such an address they count for the
 * address of the member that joins. */
static void native_members_count_for_who_made_the_set(void **state)
{
    (void)state;
    struct home *home = home_new(23, false);
    assert_int_equal(join_native(home, 0, "old", 1), LEAT_OK);
    assert_int_equal(join_native(home, HOSTILE, "old", 1), LEAT_OK);
    assert_int_equal(join_native(home, HOSTILE, "second", 1), LEAT_E_TOO_MANY);
    assert_int_equal(join_native(home, HONEST, "honest", 1), LEAT_OK);
    (void)commits_until_refused(home, HOSTILE, "fill", LEAT_CLASSIC_METADATA_BYTES_MAX);
    (void)commits_until_refused(home, HOSTILE, "fuller", 0);
    assert_int_equal(join_native(home, HOSTILE, "honest", 1), LEAT_OK);
    assert_int_equal(commit_as(home, HONEST, "more", 0, 0), LEAT_OK);
    home_free(home);
}

/* Goal: groups without members and commits are evicted for new groups of their own address, but not for groups of
 * another address that has groups. */
static void idle_groups_make_way_for_their_own_address(void **state)
{
    (void)state;
    struct home *home = home_new(6, false);
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
    assert_int_equal(join(home, HONEST, "idle", member, "m"), LEAT_E_MEMBER_ID_REQUIRED);
    struct leat_classic_call call = {0};
    struct leat_classic_leaver leaver = {.member = text(member)};
    call.leavers = &leaver;
    call.leaver_count = 1;
    struct leat_groups_request leave = {
        .kind = LEAT_GROUPS_CLASSIC_LEAVE, .group = "idle", .classic = &call};
    assert_int_equal(ask(home, &leave), LEAT_OK);
    assert_int_equal(leaver.rc, LEAT_OK);
    for (unsigned n = 0; n < LEAT_GROUPS_PER_HOME_MAX / 2 - 1; n++) {
        memset(member, 0, sizeof member);
        assert_int_equal(join(home, HOSTILE, name("joined", n), member, "m"),
                         LEAT_E_MEMBER_ID_REQUIRED);
    }
    memset(member, 0, sizeof member);
    assert_int_equal(join(home, HOSTILE, "more", member, "m"), LEAT_E_TOO_MANY);
    home_run(home, (uint64_t)LONG_SESSION_MS * 1000 + 1000000);
    assert_int_equal(info(home).members, 0);
    uint32_t groups = info(home).groups;
    assert_int_equal(commit_as(home, HOSTILE, "more", 0, 0), LEAT_OK);
    assert_int_equal(info(home).groups, groups);
    struct leat_groups_request describe = {.kind = LEAT_GROUPS_DESCRIBE,
                                           .group = "idle",
                                           .answer_bytes_max = SIZE_MAX,
                                           .classic = &call};
    assert_int_equal(ask(home, &describe), LEAT_OK);
    leat_mem_free(call.memory);
    home_free(home);
}

/* Goal: native members that come at once count before their generation begins. */
static void native_members_of_one_moment_stay_within_the_share(void **state)
{
    (void)state;
    enum { COMMITS = 70, JOINS = 4000 };
    static struct leat_groups_request joins[JOINS];
    static bool answered[JOINS];
    static const uint32_t stream = 7;
    struct home *home = home_new(12, false);
    for (unsigned n = 0; n < COMMITS; n++)
        assert_int_equal(
            commit_as(home, HOSTILE, name("fill", n), 0, LEAT_CLASSIC_METADATA_BYTES_MAX), LEAT_OK);
    unsigned refused = 0;
    for (unsigned n = 0; n < JOINS; n++) {
        joins[n] = (struct leat_groups_request){.kind = LEAT_GROUPS_JOIN,
                                                .address = HOSTILE,
                                                .streams = &stream,
                                                .stream_count = 1,
                                                .on_done = home_done,
                                                .owner = &answered[n]};
        snprintf(joins[n].group, sizeof joins[n].group, "native-%u", n / 1000);
        answered[n] = leat_groups_do(home->groups, &joins[n]);
        refused += answered[n] && joins[n].rc == LEAT_E_TOO_MANY;
    }
    assert_in_range(refused, JOINS / 4, JOINS - 1000);
    home_run(home, 1000000);
    assert_in_range(info(home).table_bytes, LEAT_GROUPS_TABLE_BYTES_MAX / 2 - 8192,
                    LEAT_GROUPS_TABLE_BYTES_MAX / 2 +
                        1024); /* logs of four groups come with them */
    for (unsigned n = 0; n < JOINS; n++) {
        assert_true(answered[n]);
        leat_mem_free(joins[n].assigned);
    }
    home_free(home);
}

/* Goal: a native member joins again where a home's table is full to the last bytes, which many addresses took. */
static void native_member_of_a_full_table_joins_again(void **state)
{
    (void)state;
    enum { ADDRESSES = 20 };
    static const uint32_t streams[1] = {7};
    struct home *home = home_new(18, false);
    struct leat_groups_request join = {.kind = LEAT_GROUPS_JOIN,
                                       .group = "native",
                                       .address = HONEST,
                                       .answer_bytes_max = SIZE_MAX,
                                       .streams = streams,
                                       .stream_count = 1,
                                       .session_ms = LONG_SESSION_MS};
    ask_join(home, &join);
    for (uint32_t address = 2; address < ADDRESSES; address++)
        assert_int_equal(commit_as(home, address, name("fill", address), 0, 0), LEAT_OK);
    for (uint32_t address = 2; address < ADDRESSES; address++) {
        uint32_t log = 1;
        for (uint32_t bytes = LEAT_CLASSIC_METADATA_BYTES_MAX; bytes > 0; bytes /= 2)
            while (commit_as(home, address, name("fill", address), log, bytes) == LEAT_OK)
                log++;
    }
    assert_in_range(LEAT_GROUPS_TABLE_BYTES_MAX - info(home).table_bytes, 0, 1024);
    ask_join(home, &join);
    home_free(home);
}

static leat_err group_commit(struct home *home, const char *member, uint32_t generation,
                             int64_t classic, uint64_t offset)
{
    struct leat_groups_offset row = {.log = {7, 0, 0}, .group = classic, .offset = offset};
    struct leat_groups_request request = {.kind = LEAT_GROUPS_COMMIT,
                                          .address = HOSTILE,
                                          .generation = generation,
                                          .commits = &row,
                                          .commit_count = 1};
    snprintf(request.group, sizeof request.group, "parallel");
    snprintf(request.member, sizeof request.member, "%s", member);
    return ask(home, &request);
}

/* Goal: a parallel group whose address has used its whole share goes on in the segment groups in which it has begun. */
static void parallel_set_of_a_full_address_goes_on(void **state)
{
    (void)state;
    static const uint32_t stream = 7;
    struct home *home = home_new(13, true);
    struct leat_groups_request join = {.kind = LEAT_GROUPS_JOIN,
                                       .group = "parallel",
                                       .mode = LEAT_GROUPS_PARALLEL,
                                       .address = HOSTILE,
                                       .streams = &stream,
                                       .stream_count = 1,
                                       .session_ms = LONG_SESSION_MS};
    ask_join(home, &join);
    assert_int_equal(group_commit(home, join.member, join.generation, 0, 5), LEAT_OK);
    assert_int_equal(group_commit(home, join.member, join.generation, 2, 250), LEAT_OK);
    (void)commits_until_refused(home, HOSTILE, "fill", LEAT_CLASSIC_METADATA_BYTES_MAX);
    for (uint32_t log = 1; log < STREAMLETS; log++) /* to the last byte */
        for (uint32_t bytes = LEAT_CLASSIC_METADATA_BYTES_MAX; bytes > 0; bytes--)
            if (commit_as(home, HOSTILE, "fill-0", log, bytes) == LEAT_OK) break;
    assert_int_equal(group_commit(home, join.member, join.generation, 3, 350), LEAT_E_TOO_MANY);
    for (uint64_t offset = 6; offset < 100; offset += 40)
        assert_int_equal(group_commit(home, join.member, join.generation, 0, offset), LEAT_OK);
    assert_int_equal(group_commit(home, join.member, join.generation, 0, 100), LEAT_OK);
    assert_int_equal(group_commit(home, join.member, join.generation, 2, 299), LEAT_OK);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_one_address_leave_memory_to_others),
        cmocka_unit_test(member_of_a_full_address_joins_again),
        cmocka_unit_test(group_of_a_full_home_is_shared_out_anew),
        cmocka_unit_test(member_of_a_full_home_joins_again_from_elsewhere),
        cmocka_unit_test(assignments_of_many_groups_stay_within_memory),
        cmocka_unit_test(offsets_of_one_address_leave_a_table_to_others),
        cmocka_unit_test(group_without_a_maker_counts_for_who_adds_to_it),
        cmocka_unit_test(idle_groups_make_way_for_their_own_address),
        cmocka_unit_test(native_members_of_one_moment_stay_within_the_share),
        cmocka_unit_test(native_member_of_a_full_table_joins_again),
        cmocka_unit_test(parallel_set_of_a_full_address_goes_on),
        cmocka_unit_test(assignments_count_for_their_maker_until_all_have_left),
        cmocka_unit_test(member_that_says_more_counts_once),
        cmocka_unit_test(stored_members_count_for_their_address),
        cmocka_unit_test(members_handed_on_count_where_they_are),
        cmocka_unit_test(native_members_count_for_who_made_the_set),
        cmocka_unit_test(idle_groups_of_others_make_way_for_who_has_none),
        cmocka_unit_test(logs_of_native_streams_count_together),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
