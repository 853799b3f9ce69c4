/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a home that show only beside something else: a member that is away or waits for long, a second group, a
 * request of several members, a batch that is open, an array that goes on behind what counts. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS };

static const uint32_t STREAM = 7;

static struct leat_group *group_of(struct home *home)
{
    return leat_groups_group_find(home->groups, "readers");
}

/* A member that needs no id first: it is started, and not waited for. */
static struct ask_group *member_start(struct home *home, const char *instance)
{
    struct ask_group *a = join_new("", instance, "m");
    a->call.needs_id = false;
    start(home, a);
    return a;
}

static struct ask_group *again_start(struct home *home, const char *member, const char *instance)
{
    struct ask_group *a = join_new(member, instance, "m");
    start(home, a);
    return a;
}

static void shared_out(struct home *home, const struct ask_group *leader)
{
    struct ask_group *sync = sync_new(leader->r.member, leader->r.generation);
    share_out(sync, &leader->call);
    assert_int_equal(answer_of(home, sync), LEAT_OK);
}

/* ---- native groups ---- */

/* Goal: a member that reads another stream from now on loses the logs of the stream that it read. */
static void member_that_reads_another_stream_loses_its_logs(void **state)
{
    (void)state;
    static const uint32_t both[] = {7, LARGE_STREAM + 3}, small = LARGE_STREAM + 3;
    struct home *home = calm_home();
    struct leat_groups_request a = native_request(LEAT_GROUPS_JOIN, "readers", both, 2);
    ask_join(home, &a);
    assert_int_equal(a.assigned_count, 2 * UNITS);
    struct leat_groups_request b = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool a_is, b_is;
    a.streams = &small;
    a.stream_count = 1;
    ask_begin(home, &b, &b_is);
    ask_begin(home, &a, &a_is);
    for (int i = 0; i < 100 && !(a_is && b_is); i++)
        home_run(home, 2 * MS);
    assert_true(a_is && b_is);
    assert_int_equal(a.assigned_count, UNITS);
    assert_int_equal(b.assigned_count, UNITS);
    for (unsigned i = 0; i < UNITS; i++) {
        assert_int_equal(a.assigned[i].log.stream, small);
        assert_int_equal(b.assigned[i].log.stream, STREAM);
    }
    leat_mem_free(a.assigned);
    leat_mem_free(b.assigned);
    home_free(home);
}

static unsigned sizes_asked;

static bool size_counted(void *ctx, uint32_t stream, uint32_t *out_streamlets, uint32_t *out_logs)
{
    (void)ctx;
    sizes_asked++;
    *out_streamlets = *out_logs = 1;
    return stream == 1 || stream == 2;
}

/* Goal: a generation asks for each stream once, however many members read the stream, in any order. */
static void generation_asks_for_each_stream_once(void **state)
{
    (void)state;
    static const uint32_t streams[3][2] = {{1, 2}, {2, 1}, {1, 2}};
    struct home *home = calm_home();
    home->stream_size = size_counted;
    home_restart(home);
    struct leat_groups_request joins[3];
    bool answered[3];
    for (unsigned i = 0; i < 3; i++) {
        joins[i] = native_request(LEAT_GROUPS_JOIN, "readers", streams[i], 2);
        ask_begin(home, &joins[i], &answered[i]);
    }
    for (int i = 0; i < 100 && group_of(home) == NULL; i++)
        home_run(home, MS / 2);
    sizes_asked = 0;
    home_run(home, 20 * MS);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(answered[i]);
        leat_mem_free(joins[i].assigned);
    }
    assert_int_equal(sizes_asked, 2);
    home_free(home);
}

/* Goal: an outsider of a parallel group may commit a log that no member has read. */
static void outsider_commits_a_log_that_its_group_has_not(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    join.mode = LEAT_GROUPS_PARALLEL;
    ask_join(home, &join);
    join.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &join), LEAT_OK);
    home_run(home, 10 * MS);
    const struct leat_groups_offset row = {
        .log = {LARGE_STREAM + 3, 1, 0}, .group = LEAT_GROUPS_AHEAD_MAX, .offset = 7};
    struct leat_groups_offset ahead = row;
    ahead.group++;
    struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "readers", &STREAM, 1);
    c.commits = &ahead;
    c.commit_count = 1;
    assert_int_equal(ask(home, &c), LEAT_E_AGAIN);
    assert_null(leat_groups_broken(home->groups));
    c.commits = &row;
    assert_int_equal(ask(home, &c), LEAT_OK);
    home_free(home);
}

/* Goal: the list of groups needs no name of a group. */
static void list_needs_no_name(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *list = ask_new(LEAT_GROUPS_LIST, "", 0);
    list->r.group[0] = '\0';
    assert_int_equal(answer_of(home, list), LEAT_OK);
    home_free(home);
}

/* Goal: a group of an earlier version, without a maker, counts for the first address that adds to it: the lowest
 * address, too. */
static void lowest_address_makes_a_group(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    ask_join(home, &join);
    assert_int_equal(group_of(home)->maker, 0);
    struct leat_groups_request other = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool answered;
    other.address = 1;
    ask_begin(home, &other, &answered);
    assert_int_equal(group_of(home)->maker, 1);
    leat_groups_cancel(home->groups, &other);
    home_free(home);
}

/* ---- Kafka's groups: several members ---- */

/* Goal: what some members of a request leave is shared out anew, also when the last of them is unknown. */
static void members_that_leave_together_are_shared_out(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, ""), *b = member_start(home, "");
    await(home, a);
    await(home, b);
    shared_out(home, a->call.member_count ? a : b);
    struct leat_classic_leaver *leavers = calloc(LEAT_CLASSIC_LEAVERS_MAX + 1, sizeof *leavers);
    assert_non_null(leavers);
    for (unsigned i = 0; i <= LEAT_CLASSIC_LEAVERS_MAX; i++)
        leavers[i].member = text("unknown");
    leavers[0].member = text(a->r.member);
    struct ask_group *l = ask_new(LEAT_GROUPS_CLASSIC_LEAVE, "", 0);
    l->call.leavers = leavers;
    l->call.leaver_count = LEAT_CLASSIC_LEAVERS_MAX + 1;
    start(home, l);
    assert_int_equal(l->r.rc, LEAT_E_TOO_MANY);
    assert_int_equal(group_of(home)->classic->member_count, 2);
    l->call.leaver_count = LEAT_CLASSIC_LEAVERS_MAX;
    start(home, l);
    assert_int_equal(l->r.rc, LEAT_OK);
    assert_int_equal(leavers[0].rc, LEAT_OK);
    assert_int_equal(leavers[1].rc, LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(group_of(home)->classic->phase, LEAT_CLASSIC_PREPARING);
    /* Of a group that there is not. */
    snprintf(l->r.group, sizeof l->r.group, "nothing");
    leavers[0].rc = LEAT_OK;
    start(home, l);
    assert_int_equal(l->r.rc, LEAT_OK);
    assert_int_equal(leavers[0].rc, LEAT_E_UNKNOWN_MEMBER);
    ask_free(l);
    free(leavers);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: who has not joined again is removed when the wait is over, also the first member. */
static void first_member_that_is_absent_is_removed(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, ""), *b = member_start(home, "");
    await(home, a);
    await(home, b);
    shared_out(home, a->call.member_count ? a : b);
    const char *first = group_of(home)->classic->members[0]->id;
    struct ask_group *other = strcmp(first, a->r.member) == 0 ? b : a, *absent = other == a ? b : a;
    struct ask_group *c = member_start(home, "");
    struct ask_group *again = again_start(home, other->r.member, "");
    for (unsigned i = 0; i < 10 && !again->answered; i++) { /* it lives, and says so */
        (void)beat(home, absent->r.member, "", absent->r.generation);
        home_run(home, SECOND);
    }
    assert_true(again->answered && c->answered);
    assert_int_equal(again->r.rc, LEAT_OK);
    assert_int_equal(group_of(home)->classic->member_count, 2);
    assert_int_equal(beat(home, absent->r.member, "", again->r.generation), LEAT_E_UNKNOWN_MEMBER);
    ask_free(again);
    ask_free(a);
    ask_free(b);
    ask_free(c);
    home_free(home);
}

/* Goal: a leader stays leader as long as it joins again, also behind a static member that was away. */
static void leader_stays_leader_behind_a_member_that_was_away(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, "a"), *b = member_start(home, "b");
    a->call.rebalance_ms = b->call.rebalance_ms = 100;
    await(home, a);
    await(home, b);
    struct leat_classic *classic = group_of(home)->classic;
    struct ask_group *leader = a->call.member_count ? a : b, *other = leader == a ? b : a;
    const char *others = other == a ? "a" : "b", *leaders = other == a ? "b" : "a";
    assert_string_equal(classic->members[0]->id, leader->r.member);
    shared_out(home, leader);
    /* The first member is away while the second joins again, and leads then. */
    for (unsigned m = 0; m < 2; m++) {
        classic->members[m]->session_ms = 60 * 1000;
        classic->members[m]->rebalance_ms = 100;
    }
    leat_groups_classic_heard(home->groups, classic->members[0]);
    other->call.rebalance_ms = 100;
    struct ask_group *again = join_new(other->r.member, others, "changed");
    again->call.rebalance_ms = 100;
    start(home, again);
    await(home, again);
    assert_int_equal(again->r.rc, LEAT_OK);
    assert_string_equal(classic->leader, other->r.member);
    shared_out(home, again);
    /* Both join again. */
    struct ask_group *first = join_new(leader->r.member, leaders, "changed");
    struct ask_group *second = join_new(other->r.member, others, "changed");
    start(home, first);
    start(home, second);
    await(home, first);
    await(home, second);
    assert_true(first->r.rc == LEAT_OK && second->r.rc == LEAT_OK);
    assert_string_equal(classic->members[0]->id, leader->r.member);
    assert_string_equal(classic->leader, other->r.member);
    ask_free(first);
    ask_free(second);
    ask_free(again);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: a new process of a static member waits with the others while its group is shared out anew. */
static void instance_that_comes_again_amid_a_rebalance_waits(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "cellar", member);
    struct ask_group *b =
        member_start(home, ""); /* the group prepares, and waits for the first member */
    home_run(home, 10 * MS);
    assert_int_equal(group_of(home)->classic->phase, LEAT_CLASSIC_PREPARING);
    struct ask_group *again = again_start(home, "", "cellar");
    assert_false(again->answered);
    await(home, again);
    await(home, b);
    assert_true(again->r.rc == LEAT_OK && b->r.rc == LEAT_OK);
    assert_int_equal(again->r.generation, generation + 1);
    assert_int_equal(b->r.generation, generation + 1);
    ask_free(again);
    ask_free(b);
    home_free(home);
}

/* Goal: a member that joins again with a protocol of another name is shared out anew. */
static void member_of_another_protocol_is_shared_out_anew(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, ""), *b = member_start(home, "");
    await(home, a);
    await(home, b);
    struct ask_group *leader = a->call.member_count ? a : b, *other = leader == a ? b : a;
    shared_out(home, leader);
    static const struct leat_classic_protocol names[2][2] = {
        {{{"range", 5}, {"m", 1}}, {{"wide", 4}, {"m", 1}}},
        {{{"range", 5}, {"m", 1}}, {{"deep", 4}, {"m", 1}}}};
    uint32_t generation = leader->r.generation;
    for (unsigned i = 0; i < 2; i++) {
        struct ask_group *again = join_new(other->r.member, "", "m");
        again->call.protocols = names[i];
        again->call.protocol_count = 2;
        start(home, again);
        assert_false(again->answered);
        struct ask_group *leads = again_start(home, leader->r.member, "");
        await(home, again);
        await(home, leads);
        assert_int_equal(again->r.generation, generation + 1 + i);
        shared_out(home, leads);
        ask_free(leads);
        ask_free(again);
    }
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: protocols that a request does not count are none of it, whatever lies behind it. */
static void protocols_that_do_not_count_are_none(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    static const struct leat_classic_protocol two[] = {{{"deep", 4}, {"m", 1}},
                                                       {{"range", 5}, {"m", 1}}};
    struct ask_group *b = join_new("", "", "m");
    b->call.protocols = two;
    assert_int_equal(answer_of(home, b), LEAT_E_OTHER_PROTOCOL);
    home_free(home);
}

/* Goal: a name of one byte that is zero is none, of a protocol and of its type. */
static void name_of_one_zero_is_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "", "m");
    a->protocol.name = (struct leat_msg_string){"", 1};
    assert_int_equal(answer_of(home, a), LEAT_E_INVALID);
    a = join_new("", "", "m");
    a->call.protocol_type = (struct leat_msg_string){"", 1};
    assert_int_equal(answer_of(home, a), LEAT_E_INVALID);
    home_free(home);
}

/* Goal: who has an id that nobody joined under may join under it with an instance. */
static void id_that_nobody_joined_under_takes_an_instance(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "", "m");
    start(home, a);
    assert_int_equal(a->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
    struct ask_group *b = again_start(home, a->r.member, "cellar");
    await(home, b);
    assert_int_equal(b->r.rc, LEAT_OK);
    assert_string_equal(b->r.member, a->r.member);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* ---- Kafka's groups: time ---- */

/* Goal: a member that waited longer than its session for its share, or for the others, has a whole session after that.
 * Meanwhile its home has nothing to do for it. */
static void session_begins_anew_after_a_long_wait(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, ""), *b = member_start(home, "");
    await(home, a);
    await(home, b);
    struct ask_group *leader = a->call.member_count ? a : b, *other = leader == a ? b : a;
    struct ask_group *sync = sync_new(other->r.member, other->r.generation);
    start(home, sync);
    for (unsigned i = 0; i < 3; i++) { /* the leader takes its time */
        home_run(home, SECOND);
        assert_int_equal(beat(home, leader->r.member, "", leader->r.generation), LEAT_OK);
    }
    assert_false(sync->answered);
    shared_out(home, leader);
    await(home, sync);
    assert_int_equal(rc_of(sync), LEAT_OK);
    home_run(home, 1900 * MS);
    assert_int_equal(group_of(home)->classic->member_count, 2);
    /* A join that is cancelled after a long wait. */
    assert_int_equal(beat(home, leader->r.member, "", leader->r.generation), LEAT_OK);
    struct ask_group *again = join_new(other->r.member, "", "changed");
    start(home, again);
    for (unsigned i = 0; i < 3; i++) {
        home_run(home, SECOND);
        (void)beat(home, leader->r.member, "", leader->r.generation);
    }
    assert_false(again->answered);
    leat_groups_cancel(home->groups, &again->r);
    assert_int_equal(rc_of(again), LEAT_E_CANCELLED);
    home_run(home, 10 * MS);
    assert_int_equal(group_of(home)->classic->member_count, 2);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: the session of a member whose join was cancelled ends in time, when nothing else is due in its home. */
static void session_of_a_cancelled_join_ends_in_time(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "a", "m"), *b = join_new("", "b", "m");
    a->r.session_ms = b->r.session_ms = 20 * 1000;
    a->call.rebalance_ms = b->call.rebalance_ms = 20 * 1000;
    start(home, a);
    start(home, b);
    await(home, a);
    await(home, b);
    struct ask_group *leader = a->call.member_count ? a : b, *other = leader == a ? b : a;
    shared_out(home, leader);
    struct ask_group *again = join_new(other->r.member, other == a ? "a" : "b", "changed");
    again->r.session_ms = 500;
    start(home, again);
    home_run(home, 10 * MS);
    leat_groups_cancel(home->groups, &again->r);
    home_run(home, 499 * MS);
    assert_int_equal(group_of(home)->classic->member_count, 2);
    home_run(home, MS);
    assert_int_equal(group_of(home)->classic->member_count, 1);
    ask_free(again);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: a new group settles as long as it does, whatever other group of its home is due meanwhile. */
static void new_group_settles_beside_others(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->settle_us = 20 * MS;
    home->classic_settle_us = 100 * MS;
    home_restart(home);
    struct ask_group *a = member_start(home, "");
    struct leat_groups_request native = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    bool answered;
    ask_begin(home, &native, &answered);
    home_run(home, 60 * MS);
    assert_true(answered);
    assert_false(a->answered);
    home_run(home, 50 * MS);
    assert_true(a->answered);
    assert_int_equal(a->r.rc, LEAT_OK);
    leat_mem_free(native.assigned);
    ask_free(a);
    home_free(home);
}

/* Goal: a classic group whose members are not stored is empty after a start: it settles before its generation. */
static void group_that_lost_its_members_settles(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    static uint8_t bytes[4096];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group_of(home), false);
    leat_msg_reader_init(&reader, bytes, writer.used);
    struct leat_group *group = leat_group_decode(&reader);
    assert_non_null(group);
    assert_int_equal(group_of(home)->classic->phase, LEAT_CLASSIC_STABLE);
    assert_int_equal(group->classic->phase, LEAT_CLASSIC_EMPTY);
    leat_group_destroy(&group);
    home_free(home);
}

/* ---- the home log ---- */

/* Goal: a share that has room in the batch goes with what the batch has already. */
static void share_goes_with_an_open_batch(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *join = member_start(home, "cellar");
    await(home, join);
    home_run(home, 10 * MS);
    home->mute = true;
    leat_groups_nothing_add(home->groups); /* under way, and one more behind it */
    leat_groups_append_try(home->groups);
    leat_groups_nothing_add(home->groups);
    struct ask_group *sync = sync_new(join->r.member, join->r.generation);
    share_out(sync, &join->call);
    start(home, sync);
    assert_int_equal(group_of(home)->classic->phase, LEAT_CLASSIC_STABLE);
    home->mute = false;
    await(home, sync);
    assert_int_equal(rc_of(sync), LEAT_OK);
    ask_free(join);
    home_free(home);
}

/* Goal: a record that has no room beside a single record waits for the next batch: it is not cut. */
static void share_without_room_beside_one_record_is_asked_for_again(void **state)
{
    (void)state;
    static const uint8_t much[LEAT_GROUPS_BATCH_BYTES_MAX];
    struct home *home = calm_home();
    struct ask_group *join = member_start(home, "cellar");
    await(home, join);
    home_run(home, 10 * MS);
    home->mute = true;
    leat_groups_nothing_add(home->groups);
    leat_groups_append_try(home->groups);
    nothing_of(home->groups, much, sizeof much - 600);
    struct ask_group *sync = sync_new(join->r.member, join->r.generation);
    share_out(sync, &join->call);
    start(home, sync);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_E_AGAIN);
    home->mute = false;
    ask_free(join);
    home_free(home);
}

/* Goal: an answer without memory is told as such, to a member that joins again. */
static void join_again_without_memory_is_told(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = member_start(home, ""), *b = member_start(home, "");
    await(home, a);
    await(home, b);
    struct ask_group *leader = a->call.member_count ? a : b, *other = leader == a ? b : a;
    shared_out(home, leader);
    struct ask_group *again = join_new(other->r.member, "", "m");
    leat_mem_fail_at(1);
    start(home, again);
    leat_mem_fail_at(0);
    assert_true(again->answered);
    assert_int_equal(rc_of(again), LEAT_E_NO_MEMORY);
    assert_int_equal(answer_of(home, join_new(other->r.member, "", "m")), LEAT_OK);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* ---- counts ---- */

/* Goal: nothing sorted is nothing; a new group takes no more memory than what was asked for it. */
static void counts_of_nothing_and_of_one(void **state)
{
    (void)state;
    struct leat_log_ref refs[] = {{7, 1, 0}, {7, 0, 1}, {7, 1, 0}};
    assert_int_equal(leat_log_refs_sort(refs, 0), 0);
    assert_int_equal(leat_log_refs_sort(refs, 3), 2);
    assert_int_equal(refs[0].log, 1);
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_CLASSIC);
    assert_non_null(group);
    group->classic = leat_classic_create();
    assert_non_null(group->classic);
    leat_group_bytes_count(group);
    assert_in_range(group->memory_bytes, 1, leat_group_memory_bytes_max());
    leat_group_destroy(&group);
}

/* Goal: members of many groups are stored only while there is room for all that is stored: the rest joins anew. */
static void stored_members_of_many_groups_have_room(void **state)
{
    (void)state;
    enum { GROUPS = 20, METADATA = 100 * 1000 };
    char *metadata = malloc(METADATA);
    assert_non_null(metadata);
    struct home *home = calm_home();
    home->group_bytes_max = 2 * GROUPS * METADATA;
    home_restart(home);
    memset(metadata, 'm', METADATA);
    for (unsigned i = 0; i < GROUPS; i++) {
        struct ask_group *a = join_new("", "", "m");
        a->call.needs_id = false;
        a->protocol.metadata = (struct leat_msg_string){metadata, METADATA};
        a->r.session_ms = 60 * 1000;
        snprintf(a->r.group, sizeof a->r.group, "group %u", i);
        assert_int_equal(answer_of(home, a), LEAT_OK);
    }
    home_roll(home);
    assert_in_range(home->snapshot_count, LEAT_GROUPS_TABLE_BYTES_MAX - 2 * METADATA,
                    LEAT_GROUPS_TABLE_BYTES_MAX);
    home_restart(home);
    struct leat_groups_info info;
    leat_groups_info(home->groups, &info);
    assert_int_equal(info.groups, GROUPS);
    assert_in_range(info.members, 1, GROUPS - 1);
    free(metadata);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(member_that_reads_another_stream_loses_its_logs),
        cmocka_unit_test(generation_asks_for_each_stream_once),
        cmocka_unit_test(outsider_commits_a_log_that_its_group_has_not),
        cmocka_unit_test(list_needs_no_name),
        cmocka_unit_test(lowest_address_makes_a_group),
        cmocka_unit_test(members_that_leave_together_are_shared_out),
        cmocka_unit_test(first_member_that_is_absent_is_removed),
        cmocka_unit_test(leader_stays_leader_behind_a_member_that_was_away),
        cmocka_unit_test(instance_that_comes_again_amid_a_rebalance_waits),
        cmocka_unit_test(member_of_another_protocol_is_shared_out_anew),
        cmocka_unit_test(protocols_that_do_not_count_are_none),
        cmocka_unit_test(name_of_one_zero_is_refused),
        cmocka_unit_test(id_that_nobody_joined_under_takes_an_instance),
        cmocka_unit_test(session_begins_anew_after_a_long_wait),
        cmocka_unit_test(session_of_a_cancelled_join_ends_in_time),
        cmocka_unit_test(new_group_settles_beside_others),
        cmocka_unit_test(group_that_lost_its_members_settles),
        cmocka_unit_test(share_goes_with_an_open_batch),
        cmocka_unit_test(share_without_room_beside_one_record_is_asked_for_again),
        cmocka_unit_test(join_again_without_memory_is_told),
        cmocka_unit_test(counts_of_nothing_and_of_one),
        cmocka_unit_test(stored_members_of_many_groups_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
