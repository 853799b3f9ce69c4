/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals, each at the edge of the accepted values. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000 };

static const uint32_t STREAM = 7;

/* ---- joins ---- */

static leat_err native_join(struct home *home, enum leat_groups_mode mode, uint32_t stream,
                            uint32_t streams, uint32_t session_ms, struct leat_groups_request *out)
{
    uint32_t list[LEAT_GROUPS_STREAMS_MAX + 1];
    for (unsigned i = 0; i <= LEAT_GROUPS_STREAMS_MAX; i++)
        list[i] = i + 1 < streams ? STREAM : stream;
    struct leat_groups_request r = {.kind = LEAT_GROUPS_JOIN,
                                    .answer_bytes_max = SIZE_MAX,
                                    .mode = mode,
                                    .session_ms = session_ms,
                                    .streams = list,
                                    .stream_count = streams};
    memcpy(r.group, out->group, sizeof r.group);
    leat_err rc = ask(home, &r);
    *out = r;
    return rc;
}

static void native_join_is_refused_beyond_its_limits(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const enum leat_groups_mode mode = LEAT_GROUPS_ORDERED;
    const struct {
        uint32_t stream, streams, session_ms;
        leat_err rc;
    } cases[] = {{7, 0, 2000, LEAT_E_INVALID},
                 {7, 17, 2000, LEAT_E_INVALID},
                 {7, 1, 99, LEAT_E_INVALID},
                 {7, 1, 30 * 60 * 1000 + 1, LEAT_E_INVALID},
                 {8, 1, 2000, LEAT_E_UNKNOWN_STREAM},
                 {8, 16, 2000, LEAT_E_UNKNOWN_STREAM},
                 {7, 16, 2000, LEAT_OK},
                 {7, 1, 30 * 60 * 1000, LEAT_OK},
                 {7, 1, 100, LEAT_OK},
                 {7, 1, 0, LEAT_OK}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leat_groups_request r = {0};
        leat_err rc =
            native_join(home, mode, cases[i].stream, cases[i].streams, cases[i].session_ms, &r);
        leat_mem_free(r.assigned);
        if (rc != cases[i].rc) fail_msg("case %u: %d", i, rc);
        struct leat_groups_info info;
        leat_groups_info(home->groups, &info);
        assert_int_equal(info.groups, rc == LEAT_OK); /* who is refused leaves nothing */
        if (rc != LEAT_OK) continue;
        r.kind = LEAT_GROUPS_LEAVE;
        assert_int_equal(ask(home, &r), LEAT_OK);
        r.kind = LEAT_GROUPS_DELETE;
        assert_int_equal(ask(home, &r), LEAT_OK);
    }
    home_free(home);
}

static leat_err group_join(struct home *home, struct ask_group *a)
{
    static unsigned groups;
    snprintf(a->r.group, sizeof a->r.group, "group-%u", groups++); /* each the first of its group */
    start(home, a);
    leat_err rc = a->answered ? a->r.rc : LEAT_OK;
    if (!a->answered) leat_groups_cancel(home->groups, &a->r);
    ask_free(a);
    return rc;
}

/* Where a join says a text of its own. */
static struct leat_msg_string *text_of(struct ask_group *a, unsigned which)
{
    struct leat_msg_string *const texts[] = {&a->call.protocol_type, &a->protocol.name,
                                             &a->call.instance, &a->call.client, &a->call.host};
    return texts[which];
}

static void group_join_is_refused_beyond_its_limits(void **state)
{
    (void)state;
    static const char spaces[] = "%0256u";
    char longest[260];
    snprintf(longest, sizeof longest, spaces, 1);
    struct home *home = calm_home();
    for (unsigned which = 0; which < 5; which++) {
        for (uint32_t bytes = 255; bytes <= 256; bytes++) {
            struct ask_group *a = join_new("", "", "m");
            *text_of(a, which) = (struct leat_msg_string){longest, bytes};
            leat_err taken = which == 2 ? LEAT_OK : LEAT_E_MEMBER_ID_REQUIRED;
            assert_int_equal(group_join(home, a), bytes == 255 ? taken : LEAT_E_INVALID);
        }
        if (which > 1) continue;
        struct ask_group *a = join_new("", "", "m");
        *text_of(a, which) = (struct leat_msg_string){"a\0b", 3};
        assert_int_equal(group_join(home, a), LEAT_E_INVALID);
        a = join_new("", "", "m");
        text_of(a, which)->bytes = 0;
        assert_int_equal(group_join(home, a), which ? LEAT_E_INVALID : LEAT_E_OTHER_PROTOCOL);
    }
    struct leat_classic_protocol many[LEAT_CLASSIC_PROTOCOLS_MAX + 1];
    for (unsigned i = 0; i <= LEAT_CLASSIC_PROTOCOLS_MAX; i++)
        many[i] = (struct leat_classic_protocol){text("range"), text("m")};
    const uint32_t counts[] = {0, 1, 16, 17};
    for (unsigned i = 0; i < 4; i++) {
        struct ask_group *a = join_new("", "", "m");
        a->call.protocols = many;
        a->call.protocol_count = counts[i];
        assert_int_equal(group_join(home, a),
                         i == 1 || i == 2 ? LEAT_E_MEMBER_ID_REQUIRED : LEAT_E_OTHER_PROTOCOL);
    }
    const uint32_t sessions[] = {99, 100, 30 * 60 * 1000, 30 * 60 * 1000 + 1};
    for (unsigned i = 0; i < 4; i++) {
        struct ask_group *a = join_new("", "", "m");
        a->r.session_ms = sessions[i];
        assert_int_equal(group_join(home, a),
                         i == 1 || i == 2 ? LEAT_E_MEMBER_ID_REQUIRED : LEAT_E_INVALID);
    }
    /* The last protocol is looked at as the first is. */
    struct ask_group *a = join_new("", "", "m");
    many[1].name.bytes = 0;
    a->call.protocols = many;
    a->call.protocol_count = 2;
    assert_int_equal(group_join(home, a), LEAT_E_INVALID);
    home_free(home);
}

static void names_of_groups_are_checked(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const struct {
        const char *name;
        leat_err rc;
    } names[] = {{"a b/c", LEAT_E_NOT_FOUND},
                 {"a\x1f", LEAT_E_BAD_NAME},
                 {"\x7f", LEAT_E_BAD_NAME},
                 {"\x80~", LEAT_E_NOT_FOUND},
                 {" ", LEAT_E_NOT_FOUND}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct leat_groups_request r = {.kind = LEAT_GROUPS_DELETE};
        snprintf(r.group, sizeof r.group, "%s", names[i].name);
        assert_int_equal(ask(home, &r), names[i].rc);
    }
    struct leat_groups_request r = {.kind = LEAT_GROUPS_DELETE};
    assert_true(leat_groups_do(home->groups, &r)); /* no name at all */
    assert_int_equal(r.rc, LEAT_E_BAD_NAME);
    home_free(home);
}

/* ---- commits ---- */

static leat_err commit_rows(struct home *home, const char *member, uint32_t generation,
                            const struct leat_groups_offset *rows, size_t count)
{
    struct leat_groups_request r = {.kind = LEAT_GROUPS_COMMIT,
                                    .generation = generation,
                                    .commits = rows,
                                    .commit_count = count};
    snprintf(r.member, sizeof r.member, "%s", member);
    return ask(home, &r);
}

static leat_err commit_one(struct home *home, const char *member, uint32_t streamlet, uint32_t log,
                           int64_t group, uint64_t offset)
{
    struct leat_groups_offset row = {
        .log = {STREAM, streamlet, log}, .group = group, .offset = offset};
    return commit_rows(home, member, 1, &row, 1);
}

static void commit_from_outside_is_of_logs_that_there_are(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit_one(home, "", 0, 0, -1, 5), LEAT_E_NOT_FOUND);
    struct leat_groups_request r = {0};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &r), LEAT_OK);
    leat_mem_free(r.assigned);
    assert_int_equal(commit_one(home, "", 0, 0, -1, 5), LEAT_E_UNKNOWN_MEMBER);
    r.kind = LEAT_GROUPS_DELETE;
    assert_int_equal(ask(home, &r), LEAT_E_EXISTS);
    r.kind = LEAT_GROUPS_OFFSETS_DELETE;
    assert_int_equal(ask(home, &r), LEAT_E_EXISTS);
    r.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &r), LEAT_OK);
    assert_int_equal(leat_groups_on_stream_deleted(home->groups, STREAM) > 0, true);
    assert_int_equal(commit_one(home, "", STREAMLETS, 0, -1, 5), LEAT_E_UNKNOWN_LOG);
    assert_int_equal(commit_one(home, "", 0, LOGS, -1, 5), LEAT_E_UNKNOWN_LOG);
    assert_int_equal(commit_one(home, "", STREAMLETS - 1, LOGS - 1, -1, 5), LEAT_OK);
    assert_int_equal(commit_one(home, "", 0, 0, -1, LEAT_SEGMENT_GROUP_DONE), LEAT_E_INVALID);
    assert_int_equal(commit_one(home, "", 0, 0, 0, 5), LEAT_E_INVALID);
    assert_int_equal(commit_rows(home, "", 0, NULL, 0), LEAT_OK);
    home_free(home);
}

static void commit_of_what_is_anothers_is_refused(void **state)
{
    (void)state;
    for (unsigned parallel = 0; parallel < 2; parallel++) {
        struct home *home = calm_home();
        const enum leat_groups_mode mode = parallel ? LEAT_GROUPS_PARALLEL : LEAT_GROUPS_ORDERED;
        struct leat_groups_request joins[2];
        bool answered[2] = {false, false};
        for (unsigned i = 0; i < 2; i++) {
            joins[i] = (struct leat_groups_request){.kind = LEAT_GROUPS_JOIN,
                                                    .answer_bytes_max = SIZE_MAX,
                                                    .mode = mode,
                                                    .session_ms = 2000,
                                                    .streams = &STREAM,
                                                    .stream_count = 1,
                                                    .group = "readers",
                                                    .on_done = home_done,
                                                    .owner = &answered[i]};
            assert_false(leat_groups_do(home->groups, &joins[i]));
        }
        home_run(home, 20 * MS);
        assert_true(answered[0] && answered[1]);
        struct leat_log_ref log = joins[1].assigned[0].log;
        int64_t group = parallel ? (int64_t)joins[1].assigned[0].first_group : -1;
        const char *mine = joins[1].member, *other = joins[0].member;
        assert_int_equal(commit_one(home, other, log.streamlet, log.log, group, 7),
                         LEAT_E_NOT_ASSIGNED);
        assert_int_equal(commit_one(home, mine, log.streamlet, log.log, group, 7), LEAT_OK);
        assert_int_equal(commit_one(home, mine, STREAMLETS, 0, group, 7), LEAT_E_NOT_ASSIGNED);
        if (parallel) {
            /* What is finished already nobody minds. */
            for (int64_t g = 0; g < 2; g++)
                assert_int_equal(commit_one(home, joins[(group + g) % 2 == 0].member, log.streamlet,
                                            log.log, g, LEAT_SEGMENT_GROUP_DONE),
                                 LEAT_OK);
            assert_int_equal(commit_one(home, mine, log.streamlet, log.log, 0, 7), LEAT_OK);
            assert_int_equal(commit_one(home, other, log.streamlet, log.log, 0, 7), LEAT_OK);
            assert_int_equal(commit_one(home, mine, log.streamlet, log.log, 2 + group, 7), LEAT_OK);
            assert_int_equal(commit_one(home, other, log.streamlet, log.log, 2 + group, 7),
                             LEAT_E_NOT_ASSIGNED);
        }
        /* All or nothing: one row that is refused refuses the others. */
        struct leat_groups_offset rows[2] = {
            {.log = joins[0].assigned[0].log, .group = group, .offset = 9},
            {.log = log, .group = group, .offset = 9}};
        if (!parallel) assert_int_equal(commit_rows(home, other, 1, rows, 2), LEAT_E_NOT_ASSIGNED);
        struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH,
                                        .answer_bytes_max = SIZE_MAX,
                                        .logs = &rows[0].log,
                                        .log_count = 1};
        assert_int_equal(ask(home, &f), LEAT_OK);
        if (!parallel) assert_int_equal(f.offset_count, 0);
        assert_int_equal(f.generation, 1);
        leat_mem_free(f.offsets);
        leat_mem_free(joins[0].assigned);
        leat_mem_free(joins[1].assigned);
        home_free(home);
    }
}

static void commit_of_too_many_rows_is_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_offset *rows = calloc(LEAT_GROUPS_COMMIT_ROWS_MAX + 1, sizeof *rows);
    assert_non_null(rows);
    struct leat_groups_request r = {0};
    assert_int_equal(native_join(home, LEAT_GROUPS_PARALLEL, STREAM, 1, 2000, &r), LEAT_OK);
    leat_mem_free(r.assigned);
    for (uint32_t i = 0; i <= LEAT_GROUPS_COMMIT_ROWS_MAX; i++)
        rows[i] = (struct leat_groups_offset){.log = {STREAM, 0, 0}, .group = 0, .offset = 5};
    assert_int_equal(commit_rows(home, r.member, 1, rows, LEAT_GROUPS_COMMIT_ROWS_MAX + 1),
                     LEAT_E_TOO_MANY);
    assert_int_equal(commit_rows(home, r.member, 1, rows, LEAT_GROUPS_COMMIT_ROWS_PARALLEL_MAX + 1),
                     LEAT_E_TOO_MANY);
    assert_int_equal(commit_rows(home, r.member, 1, rows, LEAT_GROUPS_COMMIT_ROWS_PARALLEL_MAX),
                     LEAT_OK);
    struct leat_groups_request ordered = {.group = "ordered"};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &ordered), LEAT_OK);
    leat_mem_free(ordered.assigned);
    for (uint32_t i = 0; i <= LEAT_GROUPS_COMMIT_ROWS_MAX; i++)
        rows[i].group = -1;
    ordered.kind = LEAT_GROUPS_COMMIT;
    ordered.commits = rows;
    ordered.commit_count = LEAT_GROUPS_COMMIT_ROWS_MAX + 1;
    assert_int_equal(ask(home, &ordered), LEAT_E_TOO_MANY);
    struct leat_log_ref log = {STREAM, 0, 0};
    r.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &r), LEAT_OK);
    home_run(home, 10 * MS);
    struct leat_groups_request d = {
        .kind = LEAT_GROUPS_OFFSETS_DELETE, .logs = &log, .log_count = 1};
    assert_int_equal(ask(home, &d), LEAT_E_OTHER_PROTOCOL);
    free(rows);
    home_free(home);
}

/* A generation that has no room beside what its batch has already comes with the next one. */
static void generation_without_room_in_its_batch_comes_with_the_next(void **state)
{
    (void)state;
    struct home *home = calm_home();
    const uint32_t stream = LARGE_STREAM;
    enum { ROWS = LARGE_STREAMLETS * LOGS, MOST = 40 };
    struct leat_groups_offset *rows = calloc(ROWS, sizeof *rows);
    struct leat_groups_request *r = calloc(MOST + 1, sizeof *r);
    bool answered[MOST + 1] = {false};
    assert_true(rows && r);
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = (struct leat_groups_offset){
            .log = {stream, i / LOGS, i % LOGS}, .group = -1, .offset = UINT64_MAX / 2};
    struct leat_groups_request other = {.group = "other"};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &other), LEAT_OK);
    leat_mem_free(other.assigned);
    other.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &other), LEAT_OK);
    home_run(home, 10 * MS);
    home->mute = true;
    unsigned count = 0;
    size_t some = 1; /* the first is on its way, all others gather behind it */
    for (; some > 0 && count < MOST; count++) {
        r[count] = (struct leat_groups_request){.kind = LEAT_GROUPS_COMMIT,
                                                .group = "other",
                                                .commits = rows,
                                                .commit_count = some,
                                                .on_done = home_done,
                                                .owner = &answered[count]};
        answered[count] = leat_groups_do(home->groups, &r[count]);
        if (answered[count]) assert_int_equal(r[count].rc, LEAT_E_AGAIN);
        some = count == 0 ? ROWS : answered[count] ? some / 2 : some;
    }
    r[MOST] = (struct leat_groups_request){.kind = LEAT_GROUPS_JOIN,
                                           .group = "readers",
                                           .answer_bytes_max = SIZE_MAX,
                                           .session_ms = 30000,
                                           .streams = &stream,
                                           .stream_count = 1,
                                           .on_done = home_done,
                                           .owner = &answered[MOST]};
    assert_false(leat_groups_do(home->groups, &r[MOST]));
    home_run(home, 50 * MS);
    home->mute = false;
    home_run(home, 200 * MS);
    for (unsigned i = 0; i <= MOST; i++)
        assert_true(answered[i] || (i >= count && i < MOST));
    assert_int_equal(r[MOST].rc, LEAT_OK);
    assert_int_equal(r[MOST].assigned_count, ROWS);
    leat_mem_free(r[MOST].assigned);
    free(rows);
    free(r);
    home_free(home);
}

/* The home log refuses for good: waiting requests end with its code, and so do later requests. */
static void home_log_that_fails_is_told_to_who_asks(void **state)
{
    (void)state;
    const enum leat_groups_kind kinds[] = {LEAT_GROUPS_COMMIT,         LEAT_GROUPS_DELETE,
                                           LEAT_GROUPS_OFFSETS_DELETE, LEAT_GROUPS_FETCH,
                                           LEAT_GROUPS_CLASSIC_JOIN,   LEAT_GROUPS_CLASSIC_SYNC};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct home *home = calm_home();
        home->followed = true;
        home_restart(home);
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1] = "";
        struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = -1, .offset = 5};
        struct ask_group *a = kinds[i] == LEAT_GROUPS_CLASSIC_JOIN
                                  ? join_new("", "cellar", "m")
                                  : ask_new(kinds[i], "", LEAT_CLASSIC_GENERATION_NONE);
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
        struct ask_group *leader = NULL;
        if (kinds[i] == LEAT_GROUPS_CLASSIC_JOIN) (void)single(home, "cellar", member);
        if (kinds[i] == LEAT_GROUPS_CLASSIC_SYNC) {
            leader = join_new("", "", "m");
            leader->call.needs_id = false;
            start(home, leader);
            await(home, leader);
            memcpy(a->r.member, leader->r.member, sizeof a->r.member);
            a->r.generation = leader->r.generation;
            share_out(a, &leader->call);
        }
        home_run(home, 10 * MS);
        a->r.commits = &row;
        a->r.commit_count = 1;
        a->r.logs = &row.log;
        a->r.log_count = 1;
        home->append_rc = LEAT_E_DISK;
        start(home, a);
        if (!a->answered) fail_msg("kind %u waits", i);
        assert_int_equal(a->r.rc, LEAT_E_DISK);
        assert_non_null(leat_groups_broken(home->groups));
        struct leat_groups_info info;
        leat_groups_info(home->groups, &info);
        assert_int_equal(info.waiting, 0);
        ask_free(a);
        if (leader) ask_free(leader);
        home->append_rc = LEAT_OK;
        home_free(home);
    }
}

/* ---- classic groups ---- */

static leat_err sync_of(struct home *home, const char *member, const char *type,
                        const char *protocol)
{
    struct ask_group *sync = sync_new(member, 1);
    sync->call.protocol_type = text(type);
    sync->call.protocol = text(protocol);
    return answer_of(home, sync);
}

static void group_sync_of_another_protocol_is_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    assert_int_equal(sync_of(home, member, "consumer", "range"), LEAT_OK);
    assert_int_equal(sync_of(home, member, "", ""), LEAT_OK);
    assert_int_equal(sync_of(home, member, "consumers", "range"), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(sync_of(home, member, "connect", "range"), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(sync_of(home, member, "consumer", "ranges"), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(sync_of(home, member, "", "sticky"), LEAT_E_OTHER_PROTOCOL);
    struct ask_group *again = join_new(member, "", "other");
    start(home, again);
    assert_int_equal(sync_of(home, member, "", ""), LEAT_E_REBALANCING);
    await(home, again);
    ask_free(again);
    home_free(home);
}

/* An instance id is one member's: whoever else says it is fenced, whoever says one that nobody has is unknown. */
static void group_instance_is_one_members(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char a[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "cellar", a);
    assert_int_equal(beat(home, a, "cellar", generation), LEAT_OK);
    assert_int_equal(beat(home, a, "", generation), LEAT_OK);
    assert_int_equal(beat(home, a, "attic", generation), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(beat(home, "other", "cellar", generation), LEAT_E_MEMBER_FENCED);
    assert_int_equal(beat(home, "other", "", generation), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(leave(home, "other", "cellar"), LEAT_E_MEMBER_FENCED);
    assert_int_equal(leave(home, a, "attic"), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(leave(home, "other", ""), LEAT_E_UNKNOWN_MEMBER);
    struct ask_group *join = join_new("other", "cellar", "m");
    assert_int_equal(answer_of(home, join), LEAT_E_MEMBER_FENCED);
    join = join_new(a, "attic", "m");
    assert_int_equal(answer_of(home, join), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(beat(home, a, "cellar", generation), LEAT_OK);
    assert_int_equal(leave(home, a, "cellar"), LEAT_OK);
    assert_int_equal(beat(home, a, "cellar", generation), LEAT_E_UNKNOWN_MEMBER);
    struct ask_group *many = ask_new(LEAT_GROUPS_CLASSIC_LEAVE, "", 0);
    many->call.leaver_count = LEAT_CLASSIC_LEAVERS_MAX + 1;
    assert_int_equal(answer_of(home, many), LEAT_E_TOO_MANY);
    home_free(home);
}

/* The earlier one's answer would be news of yesterday. */
static void group_sync_or_join_asked_again_ends_the_earlier_one(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *joins[2], *syncs[2], *again;
    for (unsigned i = 0; i < 2; i++) {
        joins[i] = join_new("", "", "m");
        joins[i]->call.needs_id = false;
        start(home, joins[i]);
    }
    await(home, joins[0]);
    unsigned follower = strcmp(joins[0]->call.leader, joins[0]->r.member) == 0;
    for (unsigned i = 0; i < 2; i++) {
        syncs[i] = sync_new(joins[follower]->r.member, 1);
        start(home, syncs[i]);
    }
    assert_true(syncs[0]->answered);
    assert_int_equal(rc_of(syncs[0]), LEAT_E_CANCELLED);
    assert_false(syncs[1]->answered);
    again = join_new(joins[follower]->r.member, "", "m"); /* its answer was lost */
    start(home, again);
    assert_true(syncs[1]->answered);
    assert_int_equal(rc_of(syncs[1]), LEAT_E_CANCELLED);
    await(home, again);
    assert_int_equal(again->r.generation, 1);
    assert_int_equal(rc_of(again), LEAT_OK);
    /* A new process of a static member fences the one before, that waits. */
    for (unsigned i = 0; i < 2; i++) {
        syncs[i] = join_new("", "cellar", "m");
        start(home, syncs[i]);
    }
    assert_true(syncs[0]->answered);
    assert_int_equal(rc_of(syncs[0]), LEAT_E_MEMBER_FENCED);
    leat_groups_cancel(home->groups, &syncs[1]->r);
    ask_free(syncs[1]);
    ask_free(joins[0]);
    ask_free(joins[1]);
    home_free(home);
}

/* ---- what is told of groups ---- */

static void phase_is(struct home *home, const char *group, enum leat_classic_phase phase,
                     enum leat_classic_phase listed)
{
    struct ask_group *d = ask_new(LEAT_GROUPS_DESCRIBE, "", 0);
    snprintf(d->r.group, sizeof d->r.group, "%s", group);
    start(home, d);
    await(home, d);
    assert_int_equal(d->r.rc, LEAT_OK);
    assert_int_equal(d->call.phase, phase);
    ask_free(d);
    struct ask_group *l = ask_new(LEAT_GROUPS_LIST, "", 0);
    start(home, l);
    await(home, l);
    bool found = false;
    for (uint32_t i = 0; i < l->call.listed_count; i++) {
        if (l->call.listed[i].name.bytes != strlen(group) ||
            memcmp(l->call.listed[i].name.text, group, strlen(group)) != 0)
            continue;
        found = true;
        assert_int_equal(l->call.listed[i].phase, listed);
    }
    assert_true(found);
    ask_free(l);
}

static void phases_of_native_and_classic_groups_are_told(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request r = {.group = "native"};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &r), LEAT_OK);
    leat_mem_free(r.assigned);
    phase_is(home, "native", LEAT_CLASSIC_STABLE, LEAT_CLASSIC_STABLE);
    (void)leat_groups_on_stream_changed(home->groups, STREAM);
    phase_is(home, "native", LEAT_CLASSIC_PREPARING, LEAT_CLASSIC_STABLE);
    r.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &r), LEAT_OK);
    phase_is(home, "native", LEAT_CLASSIC_EMPTY, LEAT_CLASSIC_EMPTY);
    char a[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", a);
    phase_is(home, "readers", LEAT_CLASSIC_STABLE, LEAT_CLASSIC_STABLE);
    struct ask_group *again = join_new(a, "", "other");
    start(home, again);
    phase_is(home, "readers", LEAT_CLASSIC_PREPARING, LEAT_CLASSIC_PREPARING);
    await(home, again);
    phase_is(home, "readers", LEAT_CLASSIC_COMPLETING, LEAT_CLASSIC_COMPLETING);
    ask_free(again);
    assert_int_equal(leave(home, a, ""), LEAT_OK);
    phase_is(home, "readers", LEAT_CLASSIC_EMPTY,
             LEAT_CLASSIC_EMPTY); /* before its generation is recorded, too */
    home_free(home);
}

/* ---- lack of memory ---- */

static leat_err without_memory(struct home *home, struct ask_group *a)
{
    leat_mem_fail_at(1);
    start(home, a);
    leat_mem_fail_at(0);
    assert_true(a->answered);
    assert_null(a->call.memory);
    return rc_of(a);
}

/* By name, and asked again it is there. */
static void answers_without_memory_are_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    home_run(home, 10 * MS);
    assert_int_equal(without_memory(home, sync_new(member, 1)), LEAT_E_NO_MEMORY);
    assert_int_equal(sync_of(home, member, "", ""), LEAT_OK);
    assert_int_equal(without_memory(home, ask_new(LEAT_GROUPS_DESCRIBE, "", 0)), LEAT_E_NO_MEMORY);
    assert_int_equal(without_memory(home, ask_new(LEAT_GROUPS_LIST, "", 0)), LEAT_E_NO_MEMORY);
    assert_int_equal(without_memory(home, ask_new(LEAT_GROUPS_FETCH, "", 0)), LEAT_E_NO_MEMORY);
    assert_int_equal(without_memory(home, join_new(member, "", "other")), LEAT_E_NO_MEMORY);
    assert_int_equal(without_memory(home, join_new("", "", "m")), LEAT_E_NO_MEMORY);
    assert_int_equal(beat(home, member, "", 1), LEAT_OK);
    /* A native group that can't become a classic group stays what it is. */
    struct leat_groups_request native = {.group = "native"};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &native), LEAT_OK);
    leat_mem_free(native.assigned);
    native.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &native), LEAT_OK);
    struct ask_group *join = join_new("", "", "m");
    snprintf(join->r.group, sizeof join->r.group, "native");
    assert_int_equal(without_memory(home, join), LEAT_E_NO_MEMORY);
    phase_is(home, "native", LEAT_CLASSIC_EMPTY, LEAT_CLASSIC_EMPTY);
    native = (struct leat_groups_request){.group = "native"};
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, STREAM, 1, 2000, &native), LEAT_OK);
    leat_mem_free(native.assigned);
    home_free(home);
}

/* ---- what is stored ---- */

static void empty_table_is_read_as_one(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    struct leat_log_app app = leat_groups_app(home->groups);
    app.on_restore(app.ctx, (const uint8_t *)"", 0); /* a start entry that carries nothing */
    assert_null(leat_groups_broken(home->groups));
    struct leat_groups_info info;
    leat_groups_info(home->groups, &info);
    assert_int_equal(info.groups, 0);
    app.on_restore(app.ctx, (const uint8_t *)"\x91\x00", 2);
    assert_non_null(leat_groups_broken(home->groups));
    struct leat_groups_request r = {.kind = LEAT_GROUPS_DELETE};
    assert_int_equal(ask(home, &r), LEAT_E_DAMAGED);
    for (unsigned i = 0; i < home->batch_count; i++) /* home_free() would read the table again */
        free(home->batches[i].bytes);
    leat_groups_destroy(&home->groups);
    leat_timers_fini(&home->timers);
    free(home->snapshot);
    free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_join_is_refused_beyond_its_limits),
        cmocka_unit_test(group_join_is_refused_beyond_its_limits),
        cmocka_unit_test(names_of_groups_are_checked),
        cmocka_unit_test(commit_from_outside_is_of_logs_that_there_are),
        cmocka_unit_test(commit_of_what_is_anothers_is_refused),
        cmocka_unit_test(commit_of_too_many_rows_is_refused),
        cmocka_unit_test(generation_without_room_in_its_batch_comes_with_the_next),
        cmocka_unit_test(home_log_that_fails_is_told_to_who_asks),
        cmocka_unit_test(group_sync_of_another_protocol_is_refused),
        cmocka_unit_test(group_instance_is_one_members),
        cmocka_unit_test(group_sync_or_join_asked_again_ends_the_earlier_one),
        cmocka_unit_test(answers_without_memory_are_refused),
        cmocka_unit_test(phases_of_native_and_classic_groups_are_told),
        cmocka_unit_test(empty_table_is_read_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
