/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of requests that the life of a group does not reach by itself: stored records of earlier versions, records that
 * have no room in a batch, the order of waiting requests, members that join again. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS, RETENTION = 60 * SECOND };

static const uint32_t STREAM = 7;

/* Output fields, and fields of the groups' own, as an earlier request in the same storage leaves them. */
static void spoil(struct ask_group *a)
{
    void *somewhere = (void *)(uintptr_t)16;
    a->r.assigned = somewhere;
    a->r.assigned_count = 9;
    a->r.offsets = somewhere;
    a->r.offset_count = 9;
    a->r.answer_bytes = 9;
    a->r.scratch = somewhere;
    a->r.state = REQUEST_JOIN;
    a->call.memory = somewhere;
}

/* Goal: the storage of a request may hold anything of an earlier one. */
static void storage_of_a_request_may_have_held_another(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = -1, .offset = 5};
    struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
    spoil(c);
    start(home, c);
    await(home, c);
    assert_int_equal(c->r.rc, LEAT_OK);
    assert_null(c->r.assigned);
    c->r.offsets = NULL; /* no fetch */
    ask_free(c);
    static const enum leat_groups_kind kinds[] = {LEAT_GROUPS_FETCH, LEAT_GROUPS_CLASSIC_HEARTBEAT,
                                                  LEAT_GROUPS_CLASSIC_LEAVE};
    for (unsigned i = 0; i < 3; i++) {
        struct ask_group *a = ask_new(kinds[i], "nobody", 1);
        snprintf(a->r.group, sizeof a->r.group, "unknown");
        spoil(a);
        start(home, a);
        assert_true(a->answered);
        a->answered = false;
        leat_groups_cancel(home->groups, &a->r); /* nothing is left to cancel */
        assert_false(a->answered);
        assert_null(a->r.assigned);
        assert_int_equal(a->r.assigned_count, 0);
        assert_int_equal(a->r.answer_bytes, kinds[i] == LEAT_GROUPS_FETCH ? a->r.answer_bytes : 0);
        assert_null(a->call.memory);
        if (kinds[i] == LEAT_GROUPS_FETCH) assert_int_equal(a->r.offset_count, 0);
        if (kinds[i] == LEAT_GROUPS_FETCH) assert_null(a->r.offsets);
        a->r.offsets = NULL;
        ask_free(a);
    }
    home_free(home);
}

/* Goal: a commit with requests to other cores under way is not cancelled: these requests point at it. */
static void commit_that_asks_is_not_cancelled(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    const struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = 0, .offset = 5};
    bool answered;
    join.mode = LEAT_GROUPS_PARALLEL;
    ask_join(home, &join);
    struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "natives", &STREAM, 1);
    memcpy(c.member, join.member, sizeof c.member);
    c.generation = join.generation;
    c.commits = &row;
    c.commit_count = 1;
    assert_false(ask_begin(home, &c, &answered));
    leat_groups_cancel(home->groups, &c);
    assert_false(answered);
    home_run(home, 10 * MS);
    assert_true(answered);
    assert_int_equal(c.rc, LEAT_OK);
    home_free(home);
}

/* Goal: a commit that waits for its ack can be cancelled, also in a group without members. The offset stands. */
static void commit_that_waits_is_cancelled(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = -1, .offset = 5};
    struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
    start(home, c);
    assert_false(c->answered);
    leat_groups_cancel(home->groups, &c->r);
    assert_true(c->answered);
    assert_int_equal(rc_of(c), LEAT_E_CANCELLED);
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_restart(home);
    assert_int_equal(leat_groups_group_find(home->groups, "readers")->maker, 0);
    home_free(home);
}

/* Goal: no client finishes groups of segments that it does not name, also while their log can't be asked: the number
 * by which a stored row says that earlier ones are gone is an offset like others. */
static void commit_finishes_no_other_group(void **state)
{
    (void)state;
    static const leat_err rcs[] = {LEAT_OK, LEAT_E_UNKNOWN_LOG};
    for (unsigned i = 0; i < 2; i++) {
        struct home *home = calm_home();
        struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
        const struct leat_groups_offset row = {
            .log = {STREAM, 0, 0}, .group = 5, .offset = LEAT_GROUP_GROUPS_GONE};
        join.mode = LEAT_GROUPS_PARALLEL;
        ask_join(home, &join);
        home->group_rc = rcs[i];
        struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "natives", &STREAM, 1);
        memcpy(c.member, join.member, sizeof c.member);
        c.generation = join.generation;
        c.commits = &row;
        c.commit_count = 1;
        assert_int_equal(ask(home, &c), LEAT_OK);
        for (unsigned life = 0; life < 2; life++) {
            struct leat_group *group = leat_groups_group_find(home->groups, "natives");
            const struct leat_group_log *log = leat_group_log_find(group, row.log);
            assert_int_equal(log->first_group, 0);
            assert_int_equal(log->group_count, 1);
            assert_int_equal(log->groups[0].group, 5);
            assert_true(log->groups[0].offset == LEAT_SEGMENT_GROUP_DONE);
            home_restart(home);
        }
        home_free(home);
    }
}

/* Goal: a record that has no room in the open batch is refused or goes into the next batch: a deletion, the deletion of
 * offsets, the end of an unused group. A home that waits for room does not keep its core busy. */
static void what_has_no_room_comes_with_the_next_batch(void **state)
{
    (void)state;
    static const struct leat_log_ref log = {7, 0, 0};
    struct home *home = calm_home();
    home->retention_us = RETENTION;
    home_restart(home);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    batch_fill(home);
    struct leat_groups_request drop = native_request(LEAT_GROUPS_DELETE, "readers", &STREAM, 1);
    assert_int_equal(ask(home, &drop), LEAT_E_AGAIN);
    struct leat_groups_request forget =
        native_request(LEAT_GROUPS_OFFSETS_DELETE, "readers", &STREAM, 1);
    forget.logs = &log;
    forget.log_count = 1;
    assert_int_equal(ask(home, &forget), LEAT_E_AGAIN);
    home_run(home, RETENTION + SECOND); /* which sees that its timer waits */
    const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    assert_non_null(group);
    assert_true(group->logs[0].has_offset);
    home->mute = false;
    home_run(home, SECOND);
    assert_null(leat_groups_group_find(home->groups, "readers"));
    home_restart(home);
    assert_null(leat_groups_group_find(home->groups, "readers"));
    home_free(home);
}

/* Goal: a request that changes a group stays behind a commit of the same group that waits until other tables are read.
 * Requests that change nothing go on, and so do requests of other groups. */
static void what_changes_a_group_waits_behind_its_commit(void **state)
{
    (void)state;
    static const struct {
        enum leat_groups_kind kind;
        bool waits;
    } rows[] = {
        {LEAT_GROUPS_COMMIT, true},         {LEAT_GROUPS_LEAVE, true},
        {LEAT_GROUPS_CLASSIC_LEAVE, true},  {LEAT_GROUPS_DELETE, true},
        {LEAT_GROUPS_OFFSETS_DELETE, true}, {LEAT_GROUPS_HEARTBEAT, false},
        {LEAT_GROUPS_FETCH, false},         {LEAT_GROUPS_CLASSIC_HEARTBEAT, false},
        {LEAT_GROUPS_DESCRIBE, false},      {LEAT_GROUPS_LIST, false},
    };
    static struct leat_groups_room room;
    memset(&room, 0, sizeof room);
    room.bytes_max = UINT64_MAX;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned other = 0; other < 2; other++) {
            struct home *home = calm_home();
            home->room = &room;
            home_restart(home);
            assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
            room.unread++; /* a table of another home */
            const struct leat_groups_offset row = {.log = {STREAM, 1, 0}, .group = -1, .offset = 6};
            struct ask_group *first = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
            start(home, first);
            home_run(home, 20 * MS);
            assert_false(first->answered);
            struct ask_group *next = ask_new(rows[i].kind, "x", LEAT_CLASSIC_GENERATION_NONE);
            const struct leat_groups_offset known = {
                .log = {STREAM, 0, 0}, .group = -1, .offset = 7};
            next->r.commits = &known;
            next->r.commit_count = rows[i].kind == LEAT_GROUPS_COMMIT;
            if (rows[i].kind == LEAT_GROUPS_COMMIT) next->r.member[0] = '\0';
            next->r.logs = &known.log;
            next->r.log_count = 1;
            if (other) snprintf(next->r.group, sizeof next->r.group, "others");
            start(home, next);
            home_run(home, 20 * MS);
            /* A commit makes the other group, which waits for the tables itself. */
            bool waits = rows[i].waits && (!other || rows[i].kind == LEAT_GROUPS_COMMIT);
            assert_int_equal(next->answered, !waits);
            room.unread--;
            await(home, first);
            await(home, next);
            assert_int_equal(first->r.rc, LEAT_OK);
            ask_free(first);
            ask_free(next);
            home_free(home);
        }
}

/* Goal: a member's id tells its client in characters that can be read, and no more of it than there is room for. */
static void member_id_can_be_read(void **state)
{
    (void)state;
    static const struct {
        const char *client, *id;
    } rows[] = {
        {"", "member-"},
        {"a", "a-"},
        {"\x1f \x21~\x7f\x80\xff", "__!~___-"},
        {"abcdefghijklmnopqrstuvwxy", "abcdefghijklmnopqrstuvwxy-"},
        {"abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz-"},
        {"abcdefghijklmnopqrstuvwxyzA", "abcdefghijklmnopqrstuvwxyz-"},
    };
    struct home *home = calm_home();
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ask_group *join = join_new("", "", "m");
        join->call.client = text(rows[i].client);
        start(home, join);
        assert_int_equal(join->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
        assert_int_equal(strlen(join->r.member), strlen(rows[i].id) + 36);
        assert_memory_equal(join->r.member, rows[i].id, strlen(rows[i].id));
        ask_free(join);
    }
    home_free(home);
}

/* Goal: a member that joins again has the times and protocols of its last join only; earlier joins bind neither the
 * group nor the member. */
static void member_that_joins_again_is_what_it_says_now(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_classic_protocol both[] = {{text("range"), text("m")}, {text("sticky"), text("s")}};
    struct ask_group *a = join_new("", "", "m"), *b = join_new("", "", "m");
    a->call.needs_id = b->call.needs_id = false;
    b->call.protocols = both;
    b->call.protocol_count = 2;
    answer_both(home, a, b);
    const struct leat_classic *classic = leat_groups_group_find(home->groups, "readers")->classic;
    assert_string_equal(classic->protocol, "range");
    struct ask_group *again = join_new(a->r.member, "", "z");
    again->protocol.name = text("sticky");
    again->r.session_ms = 3000;
    again->call.rebalance_ms = 5000;
    struct ask_group *b_again = join_new(b->r.member, "", "m");
    b_again->call.protocols = both;
    b_again->call.protocol_count = 2;
    b_again->r.session_ms = 700;
    b_again->call.rebalance_ms = 900;
    start(home, again);
    start(home, b_again);
    await(home, again);
    await(home, b_again);
    assert_int_equal(again->r.rc, LEAT_OK);
    assert_int_equal(b_again->r.rc, LEAT_OK);
    assert_string_equal(classic->protocol, "sticky");
    assert_int_equal(classic->member_count, 2);
    static const uint32_t sessions[] = {3000, 700}, rebalances[] = {5000, 900};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(classic->members[i]->session_ms, sessions[i]);
        assert_int_equal(classic->members[i]->rebalance_ms, rebalances[i]);
    }
    ask_free(a);
    ask_free(b);
    ask_free(again);
    ask_free(b_again);
    home_free(home);
}

/* Goal: a static member that joins again under its instance id learns the group's leader. A former leader that may skip
 * the assignment is told to skip it; a former leader that may not is told that its old member id leads; any other
 * member is told the true leader. */
static void static_member_that_comes_again_learns_who_leads(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        const bool led = row & 1, can_skip = row & 2;
        struct home *home = calm_home();
        struct ask_group *a = join_new("", "cellar", "m"), *b = join_new("", "attic", "m");
        answer_both(home, a, b);
        struct ask_group *sync = sync_new(a->r.member, 1);
        sync->call.instance = text("cellar");
        share_out(sync, &a->call);
        assert_int_equal(answer_of(home, sync), LEAT_OK);
        struct ask_group *next = join_new("", led ? "cellar" : "attic", "m");
        next->call.can_skip = can_skip;
        start(home, next);
        await(home, next);
        assert_int_equal(next->r.rc, LEAT_OK);
        assert_int_equal(next->r.generation, 1);
        assert_int_equal(next->call.skip_assignment, led && can_skip);
        assert_string_equal(next->call.leader, led && can_skip ? next->r.member : a->r.member);
        assert_int_equal(next->call.member_count, led && can_skip ? 2 : 0);
        ask_free(a);
        ask_free(b);
        ask_free(next);
        home_free(home);
    }
}

/* Goal: a member that leaves with another member's instance id does not end the other member, however short the ids
 * are. */
static void leaver_of_anothers_instance_is_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "cellar", member);
    assert_int_equal(leave(home, "x", "cellar"), LEAT_E_MEMBER_FENCED);
    assert_int_equal(leave(home, member, "attic"), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(beat(home, member, "cellar", generation), LEAT_OK);
    assert_int_equal(leave(home, "", "cellar"), LEAT_OK);
    assert_int_equal(beat(home, member, "cellar", generation), LEAT_E_UNKNOWN_MEMBER);
    generation = single(home, "c", member); /* nor is an instance id too short for that */
    assert_int_equal(leave(home, "x", "c"), LEAT_E_MEMBER_FENCED);
    assert_int_equal(beat(home, "x", "c", generation), LEAT_E_MEMBER_FENCED);
    assert_int_equal(beat(home, member, "c", generation), LEAT_OK);
    home_free(home);
}

/* Goal: a native member that joins again with too little room learns how much room its answer takes, as any member
 * does. */
static void member_that_joins_again_is_told_what_its_answer_takes(void **state)
{
    (void)state;
    const size_t all = UNITS * sizeof(struct leat_groups_assigned);
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    ask_join(home, &join);
    for (unsigned fits = 0; fits < 2; fits++) {
        struct leat_groups_request again = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
        memcpy(again.member, join.member, sizeof again.member);
        again.answer_bytes_max = all - 1 + fits;
        assert_int_equal(ask(home, &again), fits ? LEAT_OK : LEAT_E_NO_MEMORY);
        assert_int_equal(again.answer_bytes, all);
        assert_int_equal(again.assigned_count, fits ? UNITS : 0);
        leat_mem_free(again.assigned);
        assert_null(leat_groups_group_find(home->groups, "natives")->members[0].join);
    }
    home_free(home);
}

/* Goal: once a home is out of order no member of any group holds a request, as their clients may have freed them; the
 * first reason stays, and nothing more is written. */
static void broken_home_holds_no_request(void **state)
{
    (void)state;
    for (unsigned classic_first = 0; classic_first < 2; classic_first++) {
        struct home *home = calm_home();
        struct leat_groups_request natives[4];
        struct ask_group *joins[3];
        bool answered[4];
        for (unsigned step = 0; step < 2; step++)
            for (unsigned i = 0; i < 4; i++) {
                if (step == classic_first) {
                    natives[i] =
                        native_request(LEAT_GROUPS_JOIN, i < 2 ? "one" : "two", &STREAM, 1);
                    assert_false(ask_begin(home, &natives[i], &answered[i]));
                } else if (i < 3) {
                    joins[i] = join_new("", "", "m");
                    joins[i]->call.needs_id = false;
                    start(home, joins[i]);
                    assert_false(joins[i]->answered);
                }
            }
        /* One has its rows already, and waits for its write. */
        size_t bytes = leat_mem_bytes(LEAT_MEM_BROKER);
        natives[0].assigned_count = 65536; /* more bytes than all else that may be given back */
        natives[0].assigned = leat_mem_calloc(LEAT_MEM_BROKER, natives[0].assigned_count,
                                              sizeof *natives[0].assigned);
        assert_non_null(natives[0].assigned);
        leat_groups_break(home->groups, LEAT_E_DAMAGED, "a test");
        leat_groups_break(home->groups, LEAT_E_CLOSED, "another");
        assert_true(!natives[0].assigned && natives[0].assigned_count == 0);
        assert_true(leat_mem_bytes(LEAT_MEM_BROKER) <= bytes);
        assert_non_null(strstr(leat_groups_broken(home->groups), "a test"));
        leat_groups_nothing_add(home->groups);
        unsigned written = home->batch_count;
        leat_groups_on_room(home->groups);
        assert_int_equal(home->batch_count, written);
        for (unsigned i = 0; i < home->groups->group_count; i++) {
            const struct leat_group *group = home->groups->groups[i];
            assert_int_equal(group->member_count, group->classic ? 0 : 2);
            for (unsigned m = 0; m < group->member_count; m++)
                assert_null(group->members[m].join);
            for (unsigned m = 0; group->classic && m < 3; m++)
                assert_true(!group->classic->members[m]->join && !group->classic->members[m]->sync);
        }
        for (unsigned i = 0; i < 4; i++)
            assert_true(answered[i] && natives[i].rc == LEAT_E_DAMAGED);
        for (unsigned i = 0; i < 3; i++) {
            assert_true(joins[i]->answered);
            assert_int_equal(rc_of(joins[i]), LEAT_E_DAMAGED);
        }
        home_free(home);
    }
}

/* Goal: a member that joins again brings nothing: it is not refused where memory is full, and a group that has no maker
 * gets none by it. A new member makes its address the maker, and needs room. */
static void member_that_joins_again_brings_nothing(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    memset(&room, 0, sizeof room);
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    ask_join(home, &join);
    home->groups->options.room = &room; /* which is full */
    const struct leat_group *group = leat_groups_group_find(home->groups, "natives");
    for (unsigned again = 2; again-- > 0;) {
        struct leat_groups_request next = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
        next.address = 9;
        if (again) memcpy(next.member, join.member, sizeof next.member);
        assert_int_equal(ask(home, &next), again ? LEAT_OK : LEAT_E_TOO_MANY);
        leat_mem_free(next.assigned);
        assert_int_equal(group->maker, again ? 0 : 9);
    }
    home->groups->options.room = NULL;
    home_free(home);
}

/* Goal: a member that reads fewer streams than before has nothing to do with the others any more. */
static void member_that_reads_less_is_not_disturbed_by_the_rest(void **state)
{
    (void)state;
    static const uint32_t both[] = {7, LARGE_STREAM + 3};
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1),
                               less = join;
    join.streams = both;
    join.stream_count = 2;
    ask_join(home, &join);
    memcpy(less.member, join.member, sizeof less.member);
    ask_join(home, &less);
    const struct leat_group *group = leat_groups_group_find(home->groups, "natives");
    (void)leat_groups_on_stream_changed(home->groups, both[1]);
    assert_int_equal(group->phase, LEAT_GROUP_STABLE);
    (void)leat_groups_on_stream_changed(home->groups, both[0]);
    assert_int_equal(group->phase, LEAT_GROUP_PREPARING);
    home_free(home);
}

/* Goal: a home that has answered all joins is at rest. The home replaces its buffers after a batch that took more than
 * 64 KiB of them, not after a smaller batch. A request of an unknown kind is refused. */
static void home_that_has_told_all_is_at_rest(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->groups->untold = true;
    leat_groups_on_room(home->groups);
    home_run(home, 2 * MS);
    assert_false(home->groups->untold);
    assert_false(leat_timer_armed(&home->groups->timer));
    for (uint32_t more = 0; more < 2; more++) {
        home->groups->touched_bytes = 64 * 1024 + more;
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
        assert_int_equal(home->groups->touched_bytes, more ? 0 : 64 * 1024);
    }
    struct leat_groups_request r =
        native_request((enum leat_groups_kind)(LEAT_GROUPS_LIST + 1), "natives", &STREAM, 1);
    assert_int_equal(ask(home, &r), LEAT_E_INVALID);
    home_free(home);
}

/* Goal: of several joins of one member the last join is held, and each earlier join is answered at once. */
static void join_asked_again_ends_the_earlier_one(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    struct ask_group *other = join_new("", "", "m"); /* which the group waits for */
    other->call.needs_id = false;
    struct ask_group *joins[3];
    for (unsigned i = 0; i < 3; i++) {
        joins[i] = join_new(member, "", i == 2 ? "more" : "m");
        start(home, joins[i]);
        assert_false(joins[i]->answered);
        for (unsigned earlier = 0; earlier < i; earlier++) {
            assert_true(joins[earlier]->answered);
            assert_int_equal(joins[earlier]->r.rc, LEAT_E_CANCELLED);
        }
    }
    start(home, other);
    await(home, joins[2]);
    await(home, other);
    assert_int_equal(joins[2]->r.rc, LEAT_OK);
    for (unsigned i = 0; i < 3; i++)
        ask_free(joins[i]);
    ask_free(other);
    home_free(home);
}

/* Goal: while a home wakes heartbeats wait, too, and no more of them than of other requests. */
static void heartbeats_of_a_home_that_wakes_are_counted(void **state)
{
    (void)state;
    struct home *home = home_new(1, true);
    home->calm = home->mute = true;
    struct ask_group *beats[LEAT_GROUPS_WAITING_MAX + 1];
    uint32_t count = 0;
    do {
        assert_true(count <= LEAT_GROUPS_WAITING_MAX);
        beats[count] = ask_new(LEAT_GROUPS_CLASSIC_HEARTBEAT, "nobody", 1);
        start(home, beats[count]);
    } while (!beats[count++]->answered);
    assert_int_equal(beats[count - 1]->r.rc, LEAT_E_AGAIN);
    assert_int_equal(home->groups->shares.all, count - 1);
    home->mute = false;
    home_run(home, 10 * MS);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(beats[i]->answered);
        ask_free(beats[i]);
    }
    home_free(home);
}

/* Goal: a leader that joins again before it has sent assignments has lost the answer: the generation stays. A leader
 * that joins again later wants to assign again. Any other member gets its generation each time. */
static void leader_that_joins_again_shares_out_anew_once_it_has(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *members[2];
    for (unsigned i = 0; i < 2; i++) {
        members[i] = join_new("", "", "m");
        members[i]->call.needs_id = false;
        start(home, members[i]);
    }
    await(home, members[0]);
    await(home, members[1]);
    const struct leat_classic *classic = leat_groups_group_find(home->groups, "readers")->classic;
    for (unsigned shared = 0; shared < 2; shared++) {
        for (unsigned i = 2; i-- > 0;) { /* the leader last */
            bool anew = shared && i == 0;
            struct ask_group *again = join_new(members[i]->r.member, "", "m");
            start(home, again);
            home_run(home, 5 * MS);
            assert_int_equal(again->answered, !anew);
            if (!anew) assert_int_equal(again->r.generation, 1);
            if (!anew) assert_int_equal(again->call.member_count, i == 0 ? 2 : 0);
            assert_int_equal(classic->phase, anew     ? LEAT_CLASSIC_PREPARING
                                             : shared ? LEAT_CLASSIC_STABLE
                                                      : LEAT_CLASSIC_COMPLETING);
            if (anew) await(home, again);
            ask_free(again);
        }
        if (shared) break;
        struct ask_group *sync = sync_new(members[0]->r.member, 1);
        share_out(sync, &members[0]->call);
        assert_int_equal(answer_of(home, sync), LEAT_OK);
    }
    ask_free(members[0]);
    ask_free(members[1]);
    home_free(home);
}

/* Goal: a leader shares out to members that have joined, and to nobody else. */
static void share_of_who_has_not_joined_is_left_out(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "", "m"), *id = join_new("", "", "m");
    a->call.needs_id = false;
    start(home, a);
    await(home, a);
    start(home, id);
    assert_int_equal(id->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
    struct ask_group *sync = sync_new(a->r.member, 1);
    const char *const names[] = {id->r.member, a->r.member, "nobody"};
    for (unsigned i = 0; i < 3; i++)
        sync->shares[i] = (struct leat_classic_share){text(names[i]), text(names[i])};
    sync->call.shares = sync->shares;
    sync->call.share_count = 3;
    start(home, sync);
    await(home, sync);
    assert_int_equal(sync->r.rc, LEAT_OK);
    assert_int_equal(sync->call.assignment.bytes, strlen(a->r.member));
    const struct leat_classic *classic = leat_groups_group_find(home->groups, "readers")->classic;
    assert_int_equal(classic->member_count, 2);
    assert_true(classic->members[1]->pending);
    assert_int_equal(classic->members[1]->assignment_bytes, 0);
    assert_int_equal(classic->assigned_bytes, strlen(a->r.member));
    struct ask_group *again = sync_new(a->r.member, 1); /* the answer takes as much each time */
    again->r.answer_bytes_max = sync->r.answer_bytes;
    start(home, again);
    await(home, again);
    assert_int_equal(again->r.rc, LEAT_OK);
    assert_int_equal(again->r.answer_bytes, sync->r.answer_bytes);
    ask_free(again);
    ask_free(sync);
    ask_free(a);
    ask_free(id);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage_of_a_request_may_have_held_another),
        cmocka_unit_test(commit_that_asks_is_not_cancelled),
        cmocka_unit_test(commit_that_waits_is_cancelled),
        cmocka_unit_test(commit_finishes_no_other_group),
        cmocka_unit_test(what_has_no_room_comes_with_the_next_batch),
        cmocka_unit_test(what_changes_a_group_waits_behind_its_commit),
        cmocka_unit_test(member_id_can_be_read),
        cmocka_unit_test(member_that_joins_again_is_what_it_says_now),
        cmocka_unit_test(static_member_that_comes_again_learns_who_leads),
        cmocka_unit_test(leaver_of_anothers_instance_is_refused),
        cmocka_unit_test(member_that_joins_again_is_told_what_its_answer_takes),
        cmocka_unit_test(broken_home_holds_no_request),
        cmocka_unit_test(member_that_joins_again_brings_nothing),
        cmocka_unit_test(member_that_reads_less_is_not_disturbed_by_the_rest),
        cmocka_unit_test(home_that_has_told_all_is_at_rest),
        cmocka_unit_test(join_asked_again_ends_the_earlier_one),
        cmocka_unit_test(heartbeats_of_a_home_that_wakes_are_counted),
        cmocka_unit_test(leader_that_joins_again_shares_out_anew_once_it_has),
        cmocka_unit_test(share_of_who_has_not_joined_is_left_out),
    };
    return cmocka_run_group_tests_name("groups-rules", tests, NULL, nothing_left);
}
