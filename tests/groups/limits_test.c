/* SPDX-License-Identifier: Apache-2.0 */
/* The refusals of consumer groups: requests beyond the limits of a table, and requests without memory. */
#include "groups/table.h"
#include "rig.h"

enum { STEP_US = 1000, STEPS_MAX = 10000 };
/* Streams by id: how many logs (of one streamlet) they have. */
enum {
    STREAM_SMALL = 1,
    STREAM_FULL = 2,
    STREAM_HALF = 3,
    STREAM_TOO_BIG = 4,
    STREAM_UNKNOWN = 5,
    SMALL_LOGS = 2,
    HALF_LOGS = LEAT_GROUPS_LOGS_MAX / 2
};

struct call {
    struct leat_groups_request request;
    unsigned told; /* on_done runs */
};

static bool stream_size(void *ctx, uint32_t stream, uint32_t *out_streamlets, uint32_t *out_logs)
{
    static const uint32_t logs[] = {0, SMALL_LOGS, LEAT_GROUPS_LOGS_MAX, HALF_LOGS,
                                    LEAT_GROUPS_LOGS_MAX + 1};
    (void)ctx;
    if (stream == 0 || stream > STREAM_TOO_BIG) return false;
    *out_streamlets = 1;
    *out_logs = logs[stream];
    return true;
}

static struct home *limits_home(void)
{
    struct home *home = home_new(1, false);
    home->calm = true;
    home->stream_size = stream_size;
    home_restart(home);
    return home;
}

static void home_step(struct home *home)
{
    home_run(home, STEP_US);
}

static void done(struct leat_groups_request *request)
{
    ((struct call *)request->owner)->told++;
}

static bool call_begin(struct home *home, struct call *call, const char *group)
{
    snprintf(call->request.group, sizeof call->request.group, "%s", group);
    call->request.on_done = done;
    call->request.owner = call;
    call->told = 0;
    bool answered = leat_groups_do(home->groups, &call->request);
    assert_int_equal(call->told, 0); /* never inside */
    return answered;
}

static leat_err call_do(struct home *home, struct call *call, const char *group)
{
    if (call_begin(home, call, group)) return call->request.rc;
    for (int i = 0; i < STEPS_MAX && !call->told; i++)
        home_step(home);
    assert_int_equal(call->told, 1);
    return call->request.rc;
}

static struct call join_call(const uint32_t *stream, enum leat_groups_mode mode)
{
    return (struct call){.request = {.kind = LEAT_GROUPS_JOIN,
                                     .answer_bytes_max = SIZE_MAX,
                                     .mode = mode,
                                     .session_ms = 60000,
                                     .streams = stream,
                                     .stream_count = 1}};
}

static leat_err join(struct home *home, const char *group, uint32_t stream)
{
    struct call call = join_call(&stream, LEAT_GROUPS_ORDERED);
    leat_err rc = call_do(home, &call, group);
    leat_mem_free(call.request.assigned);
    return rc;
}

static struct leat_groups_info info(const struct home *home)
{
    struct leat_groups_info it;
    leat_groups_info(home->groups, &it);
    assert_true(it.table_bytes <= LEAT_GROUPS_TABLE_BYTES_MAX);
    return it;
}

/* Join `count` at the same time, the i-th to set i or all to one. */
static struct call *joins_held(struct home *home, unsigned count, const char *format,
                               const uint32_t *stream)
{
    struct call *calls = calloc(count, sizeof *calls);
    assert_non_null(calls);
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%u", format, format[0] == 's' ? i : 0);
        calls[i] = join_call(stream, LEAT_GROUPS_ORDERED);
        assert_false(call_begin(home, &calls[i], name));
    }
    return calls;
}

static void joins_end(struct home *home, struct call *calls, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        for (int s = 0; s < STEPS_MAX && !calls[i].told; s++)
            home_step(home);
        assert_int_equal(calls[i].told, 1);
        assert_int_equal(calls[i].request.rc, LEAT_OK);
        leat_mem_free(calls[i].request.assigned);
    }
}

static leat_err leave(struct home *home, const struct call *joined, const char *group)
{
    struct call call = {.request = {.kind = LEAT_GROUPS_LEAVE}};
    memcpy(call.request.member, joined->request.member, sizeof call.request.member);
    return call_do(home, &call, group);
}

/* ---- full tables ---- */

static void home_full_of_groups_refuses_the_next_until_one_is_deleted(void **state)
{
    (void)state;
    const uint32_t stream = STREAM_SMALL;
    struct home *home = limits_home();
    struct call *calls = joins_held(home, LEAT_GROUPS_PER_HOME_MAX, "s", &stream);
    joins_end(home, calls, LEAT_GROUPS_PER_HOME_MAX);
    assert_int_equal(join(home, "another", STREAM_SMALL), LEAT_E_TOO_MANY);
    assert_int_equal(info(home).groups, LEAT_GROUPS_PER_HOME_MAX);
    assert_int_equal(join(home, "s0", STREAM_UNKNOWN), LEAT_E_UNKNOWN_STREAM);
    struct call delete = {.request = {.kind = LEAT_GROUPS_DELETE}};
    assert_int_equal(call_do(home, &delete, "s7"), LEAT_E_EXISTS);
    assert_int_equal(leave(home, &calls[7], "s7"), LEAT_OK);
    home_step(home);
    home_step(home);
    assert_int_equal(call_do(home, &delete, "s7"), LEAT_OK);
    assert_int_equal(join(home, "another", STREAM_SMALL), LEAT_OK);
    free(calls);
    home_free(home);
}

static void group_full_of_members_refuses_the_next_until_one_leaves(void **state)
{
    (void)state;
    const uint32_t stream = STREAM_SMALL;
    struct home *home = limits_home();
    struct call *calls = joins_held(home, LEAT_GROUPS_MEMBERS_MAX, "one", &stream);
    joins_end(home, calls, LEAT_GROUPS_MEMBERS_MAX);
    assert_int_equal(join(home, "one0", STREAM_SMALL), LEAT_E_TOO_MANY);
    struct call again =
        join_call(&stream, LEAT_GROUPS_ORDERED); /* who is a member is no newcomer */
    memcpy(again.request.member, calls[3].request.member, sizeof again.request.member);
    assert_int_equal(call_do(home, &again, "one0"), LEAT_OK);
    leat_mem_free(again.request.assigned);
    assert_int_equal(info(home).members, LEAT_GROUPS_MEMBERS_MAX);
    assert_int_equal(join(home, "other", STREAM_SMALL), LEAT_OK);
    for (unsigned i = 0; i < LEAT_GROUPS_MEMBERS_MAX; i++)
        assert_int_equal(leave(home, &calls[i], "one0"), LEAT_OK);
    home_step(home);
    home_step(home);
    assert_int_equal(join(home, "one0", STREAM_SMALL), LEAT_OK);
    free(calls);
    home_free(home);
}

static void group_with_too_many_logs_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    struct home *home = limits_home();
    assert_int_equal(join(home, "big", STREAM_TOO_BIG), LEAT_E_TOO_MANY);
    assert_true(info(home).table_bytes < 1024);
    assert_int_equal(join(home, "small", STREAM_SMALL), LEAT_OK);
    assert_int_equal(join(home, "big", STREAM_FULL), LEAT_OK); /* just as many as it may */
    assert_null(leat_groups_broken(home->groups));
    home_free(home);
}

/* Goal: the largest group is of use. The only member, which has all logs, commits the largest possible offsets on all
 * logs twice, in one request each; a fetch returns the offsets, also after a restart. */
static void group_of_as_many_logs_as_may_be_commits_and_fetches_all_of_them(void **state)
{
    (void)state;
    const uint32_t stream = STREAM_FULL;
    struct home *home = limits_home();
    struct call *joined = joins_held(home, 1, "one", &stream);
    joins_end(home, joined, 1);
    assert_int_equal(joined->request.assigned_count, LEAT_GROUPS_LOGS_MAX);
    struct leat_groups_offset *rows = calloc(LEAT_GROUPS_LOGS_MAX, sizeof *rows);
    assert_non_null(rows);
    for (uint64_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < LEAT_GROUPS_LOGS_MAX; i++)
            rows[i] = (struct leat_groups_offset){.log = {stream, 0, i},
                                                  .group = LEAT_SEGMENT_GROUP_NONE,
                                                  .offset = UINT64_MAX - 2 + round};
        struct call commit = {.request = {.kind = LEAT_GROUPS_COMMIT,
                                          .generation = joined->request.generation,
                                          .commits = rows,
                                          .commit_count = LEAT_GROUPS_LOGS_MAX}};
        memcpy(commit.request.member, joined->request.member, sizeof commit.request.member);
        assert_int_equal(call_do(home, &commit, "one0"), LEAT_OK);
    }
    struct leat_log_app app = leat_groups_app(home->groups);
    assert_true(app.snapshot_bytes(app.ctx) <= (size_t)info(home).table_bytes);
    for (unsigned life = 0; life < 2; life++) {
        struct call fetch = {.request = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX}};
        assert_int_equal(call_do(home, &fetch, "one0"), LEAT_OK);
        assert_int_equal(fetch.request.offset_count, LEAT_GROUPS_LOGS_MAX);
        for (uint32_t i = 0; i < LEAT_GROUPS_LOGS_MAX; i++) {
            assert_int_equal(fetch.request.offsets[i].log.log, i);
            assert_true(fetch.request.offsets[i].offset == UINT64_MAX - 1);
        }
        leat_mem_free(fetch.request.offsets);
        home_close(home);
        assert_int_equal(home_open(home), LEAT_OK);
    }
    assert_null(leat_groups_broken(home->groups));
    free(rows);
    free(joined);
    home_free(home);
}

/* As a classic group of Kafka does, which no member of it has joined. */
static leat_err group_commits(struct home *home, const char *group, struct leat_groups_offset *rows,
                              uint32_t count)
{
    struct leat_classic_call classic = {.rebalance_ms = 0};
    struct call call = {.request = {.kind = LEAT_GROUPS_COMMIT,
                                    .classic = &classic,
                                    .generation = LEAT_CLASSIC_GENERATION_NONE,
                                    .commits = rows,
                                    .commit_count = count}};
    return call_do(home, &call, group);
}

/* A commit in descending order does not move the table for each row, and a fetch does not search all requested logs for
 * each log. */
static void commit_and_fetch_of_many_logs_take_a_few_steps_for_each(void **state)
{
    (void)state;
    enum { COUNT = LEAT_GROUPS_LOGS_MAX / 2 };
    struct home *home = limits_home();
    struct leat_groups_offset *rows = calloc(COUNT, sizeof *rows);
    struct leat_log_ref *asked = calloc(LEAT_GROUPS_LOGS_MAX, sizeof *asked);
    assert_non_null(rows);
    assert_non_null(asked);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct leat_groups_offset){
            .log = {STREAM_FULL, 0, COUNT - 1 - i}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = i};
    uint64_t steps = leat_group_steps;
    assert_int_equal(group_commits(home, "many", rows, COUNT), LEAT_OK);
    assert_true(leat_group_steps - steps <= 4 * (uint64_t)COUNT);
    /* Unsorted, each twice, every second of a log that the group does not have. */
    for (uint32_t i = 0; i < LEAT_GROUPS_LOGS_MAX; i++)
        asked[i] = (struct leat_log_ref){i % 2 ? STREAM_FULL : 99, 0, COUNT - i / 4};
    struct call fetch = {.request = {.kind = LEAT_GROUPS_FETCH,
                                     .answer_bytes_max = SIZE_MAX,
                                     .logs = asked,
                                     .log_count = LEAT_GROUPS_LOGS_MAX}};
    steps = leat_group_steps;
    assert_int_equal(call_do(home, &fetch, "many"), LEAT_OK);
    assert_true(leat_group_steps - steps <= 4 * (uint64_t)LEAT_GROUPS_LOGS_MAX);
    assert_int_equal(fetch.request.offset_count, LEAT_GROUPS_LOGS_MAX / 4 - 1); /* COUNT is none */
    for (uint32_t i = 0; i < fetch.request.offset_count; i++) {
        const struct leat_groups_offset *row = &fetch.request.offsets[i];
        assert_true(i == 0 || row[-1].log.log < row->log.log);
        assert_true(row->offset == COUNT - 1 - row->log.log);
    }
    leat_mem_free(fetch.request.offsets);
    free(rows);
    free(asked);
    home_free(home);
}

/* Goal: deleting a stream removes its logs from each group, and no other logs; a group without logs of the stream is
 * not walked through. */
static void stream_that_goes_costs_groups_without_it_one_look(void **state)
{
    (void)state;
    enum { COUNT = 1000, GROUPS = 10 };
    struct home *home = limits_home();
    struct leat_groups_offset *rows = calloc(COUNT + 2, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct leat_groups_offset){
            .log = {STREAM_FULL, 0, i}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = i};
    for (uint32_t i = 0; i < 2; i++) /* on both sides of the others */
        rows[COUNT + i] = (struct leat_groups_offset){
            .log = {STREAM_FULL - 1 + 2 * i, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 5};
    for (unsigned i = 0; i < GROUPS; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%u", i);
        assert_int_equal(group_commits(home, name, rows, COUNT + 2), LEAT_OK);
    }
    assert_in_range(leat_groups_on_stream_deleted(home->groups, 77), GROUPS, 2 * GROUPS);
    assert_in_range(leat_groups_on_stream_changed(home->groups, 77), GROUPS, GROUPS);
    assert_in_range(leat_groups_on_stream_deleted(home->groups, STREAM_FULL), GROUPS, 5 * GROUPS);
    struct call fetch = {.request = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX}};
    assert_int_equal(call_do(home, &fetch, "s3"), LEAT_OK);
    assert_int_equal(fetch.request.offset_count, 2);
    assert_int_equal(fetch.request.offsets[0].log.stream, STREAM_FULL - 1);
    assert_int_equal(fetch.request.offsets[1].log.stream, STREAM_FULL + 1);
    leat_mem_free(fetch.request.offsets);
    free(rows);
    home_free(home);
}

static void outsider_commits_no_log_that_is_not_there(void **state)
{
    (void)state;
    struct home *home = limits_home();
    struct leat_groups_offset row = {.log = {STREAM_SMALL, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE};
    assert_int_equal(group_commits(home, "group", &row, 1), LEAT_OK);
    const struct leat_log_ref none[] = {
        {99, 0, 0}, {STREAM_SMALL, 1, 0}, {STREAM_SMALL, 0, SMALL_LOGS}};
    for (unsigned i = 0; i < 3; i++) {
        row.log = none[i];
        struct call commit = {
            .request = {.kind = LEAT_GROUPS_COMMIT, .commits = &row, .commit_count = 1}};
        assert_int_equal(call_do(home, &commit, "group"), LEAT_E_UNKNOWN_LOG);
    }
    row.log = (struct leat_log_ref){STREAM_SMALL, 0, SMALL_LOGS - 1};
    struct call commit = {
        .request = {.kind = LEAT_GROUPS_COMMIT, .commits = &row, .commit_count = 1}};
    assert_int_equal(call_do(home, &commit, "group"), LEAT_OK);
    home_free(home);
}

/* Goal: a generation of many members over many logs stops no core. Members are answered in slices; the readers of a
 * stream are counted once for each member. */
static void many_members_of_many_logs_are_told_in_slices(void **state)
{
    (void)state;
    const enum leat_groups_mode modes[] = {LEAT_GROUPS_PARALLEL, LEAT_GROUPS_ORDERED};
    const uint64_t all = (uint64_t)HALF_LOGS * LEAT_GROUPS_MEMBERS_MAX;
    const uint32_t stream = STREAM_HALF;
    for (unsigned mode = 0; mode < 2; mode++) {
        struct home *home = limits_home();
        struct call *calls = calloc(LEAT_GROUPS_MEMBERS_MAX, sizeof *calls);
        assert_non_null(calls);
        for (unsigned i = 0; i < LEAT_GROUPS_MEMBERS_MAX; i++) {
            calls[i] = join_call(&stream, modes[mode]);
            assert_false(call_begin(home, &calls[i], "one"));
        }
        const uint64_t steps = leat_group_steps;
        unsigned told = 0, slices = 0;
        uint64_t logs = 0;
        for (int i = 0; i < 2 * STEPS_MAX && told < LEAT_GROUPS_MEMBERS_MAX; i++) {
            const uint64_t before = leat_group_steps;
            const unsigned earlier = told;
            home_step(home);
            while (told < LEAT_GROUPS_MEMBERS_MAX && calls[told].told) {
                assert_int_equal(calls[told].request.rc, LEAT_OK);
                logs += calls[told].request.assigned_count;
                leat_mem_free(calls[told++].request.assigned);
            }
            slices += told > earlier;
            /* Sharing out takes some for each log, too. */
            assert_true(leat_group_steps - before <= 40 * (uint64_t)HALF_LOGS);
        }
        assert_int_equal(told, LEAT_GROUPS_MEMBERS_MAX);
        assert_true(slices > 100);
        assert_true(leat_group_steps - steps <= 2 * all);
        assert_true(logs == (mode == 0 ? all : HALF_LOGS));
        free(calls);
        home_free(home);
    }
}

/* Both joins are held before either group has its logs: the second finds the table full only then. */
static void groups_that_fill_the_table_together_the_later_is_refused(void **state)
{
    (void)state;
    const uint32_t stream = STREAM_FULL;
    struct home *home = limits_home();
    struct call *calls = joins_held(home, 3, "s", &stream);
    unsigned refused = 0;
    for (unsigned i = 0; i < 3; i++) {
        for (int s = 0; s < STEPS_MAX && !calls[i].told; s++)
            home_step(home);
        assert_int_equal(calls[i].told, 1);
        refused += calls[i].request.rc == LEAT_E_TOO_MANY;
        leat_mem_free(calls[i].request.assigned);
    }
    assert_int_equal(refused, 2);
    struct leat_log_app app = leat_groups_app(home->groups);
    assert_true(app.snapshot_bytes(app.ctx) <= (size_t)info(home).table_bytes);
    assert_int_equal(join(home, "small", STREAM_SMALL), LEAT_OK);
    free(calls);
    home_free(home);
}

/* Requests of one address until one is refused; how many wait. */
static unsigned waiting_fill(struct home *home, uint64_t address, struct call *calls)
{
    for (unsigned i = 0; i < LEAT_GROUPS_WAITING_MAX; i++) {
        calls[i] =
            (struct call){.request = {.kind = LEAT_GROUPS_FETCH, .address = address}, .told = 0};
        if (!call_begin(home, &calls[i], "one")) continue;
        assert_int_equal(calls[i].request.rc, LEAT_E_AGAIN);
        return i;
    }
    fail();
    return 0;
}

/* An address that is connected to all cores and nodes sends requests to one home over all connections. The address gets
 * half of the waiting requests, and each later address half of the rest; requests without an address count as one
 * address. When the requests are answered, all of it is free again. */
static void address_with_its_share_of_waiting_requests_leaves_room_to_others(void **state)
{
    (void)state;
    const uint64_t first = 11, others[] = {12, 0, 13};
    struct home *home = limits_home();
    struct call *calls = calloc(LEAT_GROUPS_WAITING_MAX + 1, sizeof *calls);
    assert_non_null(calls);
    unsigned waiting = waiting_fill(home, first, calls), share = LEAT_GROUPS_WAITING_MAX / 2;
    assert_int_equal(waiting, share);
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        share /= 2;
        assert_int_equal(waiting_fill(home, others[i], calls + waiting), share);
        waiting += share;
    }
    struct call again = {.request = {.kind = LEAT_GROUPS_FETCH, .address = first}};
    assert_int_equal(call_do(home, &again, "one"), LEAT_E_AGAIN);
    assert_int_equal(info(home).waiting, waiting);
    home_step(home);
    for (unsigned i = 0; i < waiting; i++)
        assert_int_equal(calls[i].told, 1);
    assert_int_equal(info(home).waiting, 0);
    assert_int_equal(call_do(home, &again, "one"), LEAT_OK);
    free(calls);
    home_free(home);
}

/* Waiting requests take no places of requests that are answered at once: a member keeps its session. */
static void heartbeat_is_answered_while_its_address_has_its_share(void **state)
{
    (void)state;
    const uint32_t stream = STREAM_SMALL;
    struct home *home = limits_home();
    struct call member = join_call(&stream, LEAT_GROUPS_ORDERED), other = member;
    member.request.address = 11;
    assert_int_equal(call_do(home, &member, "mine"), LEAT_OK);
    assert_int_equal(call_do(home, &other, "two"), LEAT_OK);
    assert_int_equal(leave(home, &other, "two"), LEAT_OK);
    home_step(home);
    home_step(home);
    struct call delete = {.request = {.kind = LEAT_GROUPS_DELETE}};
    assert_false(call_begin(home, &delete, "two")); /* so that what comes next waits for an ack */
    struct call *calls = calloc(LEAT_GROUPS_WAITING_MAX, sizeof *calls);
    assert_non_null(calls);
    unsigned waiting = waiting_fill(home, 11, calls);
    struct call beat = {.request = {.kind = LEAT_GROUPS_HEARTBEAT,
                                    .address = 11,
                                    .generation = member.request.generation}};
    memcpy(beat.request.member, member.request.member, sizeof beat.request.member);
    assert_true(call_begin(home, &beat, "mine"));
    assert_int_equal(beat.request.rc, LEAT_OK);
    for (int s = 0; s < STEPS_MAX && info(home).waiting > 0; s++)
        home_step(home);
    for (unsigned i = 0; i < waiting; i++)
        assert_int_equal(calls[i].told, 1);
    leat_mem_free(member.request.assigned);
    leat_mem_free(other.request.assigned);
    free(calls);
    home_free(home);
}

/* ---- lack of memory ---- */

struct story {
    struct home *home;
    uint64_t committed; /* acked to the ordered group */
};

/* Until it works; a home that broke is opened again, as a broker does after a restart. */
static void until_done(struct home *home, struct call *call, const char *group)
{
    for (int tries = 0; tries < 3; tries++) {
        if (!home->groups || leat_groups_broken(home->groups)) {
            home_close(home);
            if (home_open(home) != LEAT_OK) continue;
        }
        leat_err rc = call_do(home, call, group);
        if (rc == LEAT_OK) return;
        /* A replay without memory names its table damaged: it can't tell the two apart. */
        assert_true(rc == LEAT_E_NO_MEMORY || rc == LEAT_E_DAMAGED);
    }
    fail_msg("one allocation failed, and a request did more than once");
}

/* Rows of the log that was committed to: its first unfinished segment group, and 1, 2, 3. */
static void parallel_is_there(struct home *home)
{
    struct leat_log_ref log = {STREAM_SMALL, 0, 1};
    struct call fetch = {
        .request = {
            .kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX, .logs = &log, .log_count = 1}};
    until_done(home, &fetch, "parallel");
    assert_int_equal(fetch.request.offset_count, 4);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(fetch.request.offsets[i].group, i);
        assert_int_equal(fetch.request.offsets[i].offset, i * 10);
    }
    leat_mem_free(fetch.request.offsets);
}

static void story_tell(struct story *story)
{
    struct home *home = story->home;
    const uint32_t stream = STREAM_SMALL;
    for (enum leat_groups_mode mode = LEAT_GROUPS_ORDERED; mode <= LEAT_GROUPS_PARALLEL; mode++) {
        const char *group = mode == LEAT_GROUPS_PARALLEL ? "parallel" : "ordered";
        struct call member = join_call(&stream, mode);
        until_done(home, &member, group);
        leat_mem_free(member.request.assigned);
        until_done(home, &member, group); /* again: its answer was lost */
        leat_mem_free(member.request.assigned);
        for (int i = 1; i <= 3; i++) {
            struct leat_groups_offset row = {
                .log = {STREAM_SMALL, 0, 1}, .group = mode ? i : -1, .offset = (uint64_t)i * 10};
            struct call commit = {.request = {.kind = LEAT_GROUPS_COMMIT,
                                              .generation = member.request.generation,
                                              .commits = &row,
                                              .commit_count = 1}};
            memcpy(commit.request.member, member.request.member, sizeof commit.request.member);
            until_done(home, &commit, group);
            if (!mode) story->committed = row.offset;
        }
    }
    struct call fetch = {.request = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX}};
    parallel_is_there(home); /* the table has what the log has */
    home_close(home);        /* and replay */
    until_done(home, &fetch, "ordered");
    assert_int_equal(fetch.request.offset_count, 1);
    assert_int_equal(fetch.request.offsets[0].offset, story->committed);
    leat_mem_free(fetch.request.offsets);
    parallel_is_there(home);
}

static void allocations_fail_one_by_one_no_commit_is_lost(void **state)
{
    (void)state;
    for (uint64_t at = 1;; at++) {
        size_t before = leat_mem_bytes(LEAT_MEM_BROKER);
        struct story story = {.home = limits_home()};
        home_close(story.home);
        leat_mem_fail_at(at);
        story_tell(&story);
        bool survived = leat_mem_calls() < at;
        leat_mem_fail_at(0);
        home_free(story.home);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), before);
        if (!survived) continue;
        assert_true(at > 30); /* or the story did not reach what allocates */
        break;
    }
}

static void join_without_memory_leaves_no_set(void **state)
{
    (void)state;
    struct home *home = limits_home();
    assert_int_equal(join(home, "first", STREAM_SMALL), LEAT_OK);
    for (uint64_t at = 1; at <= 2; at++) { /* the group, its member */
        leat_mem_fail_at(at);
        assert_int_equal(join(home, "second", STREAM_SMALL), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_int_equal(info(home).groups, 1);
    }
    assert_int_equal(join(home, "second", STREAM_SMALL), LEAT_OK);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_full_of_groups_refuses_the_next_until_one_is_deleted),
        cmocka_unit_test(group_full_of_members_refuses_the_next_until_one_leaves),
        cmocka_unit_test(group_with_too_many_logs_is_refused_and_leaves_nothing),
        cmocka_unit_test(group_of_as_many_logs_as_may_be_commits_and_fetches_all_of_them),
        cmocka_unit_test(commit_and_fetch_of_many_logs_take_a_few_steps_for_each),
        cmocka_unit_test(stream_that_goes_costs_groups_without_it_one_look),
        cmocka_unit_test(outsider_commits_no_log_that_is_not_there),
        cmocka_unit_test(many_members_of_many_logs_are_told_in_slices),
        cmocka_unit_test(groups_that_fill_the_table_together_the_later_is_refused),
        cmocka_unit_test(address_with_its_share_of_waiting_requests_leaves_room_to_others),
        cmocka_unit_test(heartbeat_is_answered_while_its_address_has_its_share),
        cmocka_unit_test(allocations_fail_one_by_one_no_commit_is_lost),
        cmocka_unit_test(join_without_memory_leaves_no_set),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
