/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a home where only their own edge shows them: a full batch, a full table, what was asked and is not answered
 * yet, names of one byte. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS };

static const uint32_t STREAM = 7;

static struct leat_classic *group_of(struct home *home)
{
    return leat_groups_group_find(home->groups, "readers")->classic;
}

/* Goal: a share that the batch has no room for is asked for again, and taken then: the group still waits for it. */
static void shares_without_room_in_the_batch_are_asked_for_again(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *join = join_new("", "cellar", "m");
    start(home, join);
    await(home, join);
    assert_int_equal(join->r.rc, LEAT_OK);
    home_run(home, 10 * MS);
    batch_fill(home);
    struct ask_group *sync = sync_new(join->r.member, join->r.generation);
    share_out(sync, &join->call);
    start(home, sync);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_E_AGAIN);
    assert_int_equal(group_of(home)->phase, LEAT_CLASSIC_COMPLETING);
    home->mute = false;
    home_run(home, 10 * MS);
    sync = sync_new(join->r.member, join->r.generation);
    share_out(sync, &join->call);
    sync->shares[1] = (struct leat_classic_share){text("nobody"), text("what it would read")};
    sync->call.share_count = 2; /* one of a member that has left says nothing */
    start(home, sync);
    await(home, sync);
    assert_int_equal(sync->r.rc, LEAT_OK);
    assert_int_equal(sync->call.assignment.bytes, strlen(join->r.member));
    ask_free(sync);
    ask_free(join);
    home_free(home);
}

/* Goal: a group settles as long as it does, whatever else happens in its home meanwhile. */
static void group_settles_whatever_else_its_home_does(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->settle_us = 100 * MS;
    home_restart(home);
    struct leat_groups_request one = native_request(LEAT_GROUPS_JOIN, "one", &STREAM, 1);
    struct leat_groups_request two = native_request(LEAT_GROUPS_JOIN, "two", &STREAM, 1);
    bool one_is, two_is;
    ask_begin(home, &one, &one_is);
    home_run(home, 60 * MS);
    ask_begin(home, &two, &two_is);
    home_run(home, 60 * MS);
    assert_true(one_is && !two_is);
    home_run(home, 30 * MS);
    assert_false(two_is);
    home_run(home, 30 * MS);
    assert_true(two_is);
    leat_mem_free(one.assigned);
    leat_mem_free(two.assigned);
    home_free(home);
}

/* Goal: a request is refused when one stream has too many logs, whatever streams follow in the request. */
static void stream_that_is_too_large_is_refused_before_others(void **state)
{
    (void)state;
    static const uint32_t streams[] = {LARGE_STREAM, LARGE_STREAM + 1, LARGE_STREAM + 2,
                                       LARGE_STREAM + 3};
    struct home *home = calm_home();
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "readers", streams, 4);
    assert_int_equal(ask(home, &r), LEAT_E_TOO_MANY);
    struct leat_groups_info info;
    leat_groups_info(home->groups, &info);
    assert_int_equal(info.members, 0);
    r = native_request(LEAT_GROUPS_JOIN, "readers", streams, 1);
    ask_join(home, &r);
    home_free(home);
}

/* Goal: a home that is full of groups has room for more members of those; one whose table is full for no more, but for
 * members that say less than before. */
static void full_home_serves_the_groups_that_it_has(void **state)
{
    (void)state;
    static const uint32_t streams[] = {7, LARGE_STREAM + 3};
    struct home *home = calm_home();
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "readers", streams, 2);
    ask_join(home, &r);
    struct leat_groups *groups = home->groups;
    home_fill(home);
    assert_non_null(leat_groups_lacks(groups, 0, 1, 0, 0));
    assert_null(leat_groups_lacks(groups, 0, 0, 1, 0));
    leat_groups_group_find(groups, "readers")->maker = 5;
    assert_null(leat_groups_lacks(groups, 5, 0, 1, 1));
    r.stream_count = 1; /* it joins again, for less */
    struct leat_group *group = leat_groups_group_find(groups, "readers");
    group->bytes = LEAT_GROUPS_TABLE_BYTES_MAX;
    assert_true(leat_groups_group_room(groups, &r));
    r.stream_count = 2;
    assert_true(leat_groups_group_room(groups, &r));
    static const uint32_t three[] = {7, LARGE_STREAM + 3, LARGE_STREAM};
    r.streams = three;
    r.stream_count = 3;
    assert_false(leat_groups_group_room(groups, &r));
    for (unsigned room = 4; room <= 5; room++) { /* what a stream takes in the table */
        group->bytes += LEAT_GROUPS_TABLE_BYTES_MAX - room - leat_groups_table_bytes(groups);
        assert_int_equal(leat_groups_group_room(groups, &r), room == 5);
    }
    leat_group_bytes_count(group);
    leat_groups_table_clear(groups); /* the snapshot of so many is another test's */
    home_free(home);
}

/* Goal: a commit of an offset that the group has already needs no room, where there is none. */
static void commit_of_what_is_there_needs_no_room(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    struct home *home = roomy_home(&room);
    home_restart(home);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "note"), LEAT_OK);
    room.bytes_max = room.bytes;
    leat_groups_group_find(home->groups, "readers")->bytes = LEAT_GROUPS_TABLE_BYTES_MAX;
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 6, "note"), LEAT_OK);
    assert_int_equal(fetched(home, 0, "note"), 6);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 1, 6, "note"), LEAT_E_TOO_MANY);
    home_free(home);
}

static void room_tells_what_lies_beyond_it(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    room.bytes_max = 100;
    room.bytes = 99;
    assert_int_equal(leat_groups_room_over(&room), 0);
    room.bytes = 100;
    assert_int_equal(leat_groups_room_over(&room), 0);
    room.bytes = 103;
    assert_int_equal(leat_groups_room_over(&room), 3);
}

/* Goal: an answer takes as much as its rows and texts, and one row. */
static void fetch_tells_what_its_answer_takes(void **state)
{
    (void)state;
    struct home *home = calm_home();
    for (uint32_t log = 0; log < 3; log++)
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, log, 5, "note"), LEAT_OK);
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &f), LEAT_OK);
    assert_int_equal(f.answer_bytes, 4 * sizeof *f.offsets + 12);
    assert_int_equal(f.offset_count, 3);
    leat_mem_free(f.offsets);
    home_free(home);
}

/* Goal: an unknown member id makes no new member, not even an id of one byte. A join with an unknown member id and the
 * instance id of a member is refused as fenced. */
static void member_id_of_one_byte_is_one(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    assert_int_equal(answer_of(home, join_new("x", "", "m")), LEAT_E_UNKNOWN_MEMBER);
    (void)single(home, "cellar", member);
    assert_int_equal(answer_of(home, join_new("x", "", "m")), LEAT_E_UNKNOWN_MEMBER);
    assert_int_equal(answer_of(home, join_new("x", "cellar", "m")), LEAT_E_MEMBER_FENCED);
    assert_int_equal(answer_of(home, join_new(member, "cellar", "m")), LEAT_OK);
    home_free(home);
}

/* Goal: a static member that waits for its assignment is told at once that another process has its instance id. */
static void instance_that_comes_again_fences_who_waits(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *a = join_new("", "a", "m"), *b = join_new("", "b", "m");
    answer_both(home, a, b);
    assert_true(a->r.rc == LEAT_OK && b->r.rc == LEAT_OK);
    struct ask_group *other = a->call.member_count ? b : a; /* who does not lead */
    const char *instance = other == b ? "b" : "a";
    struct ask_group *sync = sync_new(other->r.member, other->r.generation);
    sync->call.instance = text(instance);
    start(home, sync);
    assert_false(sync->answered);
    struct ask_group *again = join_new("", instance, "m");
    start(home, again);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_E_MEMBER_FENCED);
    if (!again->answered) leat_groups_cancel(home->groups, &again->r);
    ask_free(again);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* Goal: the largest batch since the buffers are new counts, not the last one. */
static void largest_batch_counts_for_its_buffers(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char note[2000];
    memset(note, 'n', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, note), LEAT_OK);
    uint32_t largest = home->groups->touched_bytes;
    assert_in_range(largest, 2000, 4000);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 6, ""), LEAT_OK);
    assert_int_equal(home->groups->touched_bytes, largest);
    home_free(home);
}

/* A member of the parallel group "readers", and the member's commit of these rows. */
static struct leat_groups_request
parallel_commit(struct home *home, const struct leat_groups_offset *rows, uint32_t count)
{
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    r.mode = LEAT_GROUPS_PARALLEL;
    ask_join(home, &r);
    home_run(home, 10 * MS);
    struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "readers", NULL, 0);
    c.generation = 1;
    c.commits = rows;
    c.commit_count = count;
    memcpy(c.member, r.member, sizeof c.member);
    return c;
}

/* Goal: a home that goes while logs are asked about segment groups leaves each question; the last answer ends the
 * commit. */
static void home_that_goes_leaves_its_questions(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_offset rows[] = {{.log = {STREAM, 0, 0}, .offset = 5},
                                        {.log = {STREAM, 1, 0}, .offset = 5}};
    struct leat_groups_request c = parallel_commit(home, rows, 2);
    bool answered;
    ask_begin(home, &c, &answered);
    assert_false(answered);
    assert_non_null(home->query);
    leat_groups_destroy(&home->groups);
    assert_false(answered);
    home_run(home, 2 * MS);
    assert_true(answered);
    assert_int_equal(c.rc, LEAT_E_TIMEOUT);
    home_free(home);
}

/* Goal: a commit of segment groups goes on when the last of its logs has answered, and not before: once. */
static void commit_waits_for_each_of_its_questions(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_offset rows[] = {{.log = {STREAM, 0, 0}, .offset = 5},
                                        {.log = {STREAM, 1, 0}, .offset = 5},
                                        {.log = {STREAM, 2, 0}, .offset = 5}};
    struct leat_groups_request c = parallel_commit(home, rows, 3);
    unsigned batches = home->batch_count;
    bool answered;
    ask_begin(home, &c, &answered);
    for (unsigned left = 3; left > 0; left--) {
        assert_false(leat_list_empty(&home->groups->querying));
        assert_int_equal(home->batch_count, batches);
        struct leat_segment_group_query *query = home->query;
        assert_non_null(query);
        home->query = query->broker;
        query->rc = LEAT_OK;
        query->end_offset = UINT64_MAX;
        query->on_done(query);
    }
    assert_null(home->query);
    assert_true(leat_list_empty(&home->groups->querying));
    assert_int_equal(home->batch_count, batches + 1);
    home_run(home, 2 * MS);
    assert_true(answered);
    assert_int_equal(c.rc, LEAT_OK);
    home_free(home);
}

/* Goal: a record that ends with the batch's last byte fits, and no longer record does. */
static void record_fits_up_to_the_last_byte(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_batch_builder *builder = &home->groups->builder;
    uint32_t used = builder->used;
    builder->used = LEAT_GROUPS_BATCH_BYTES_MAX - (uint32_t)leat_batch_record_bytes_max(0, 100, 0);
    assert_true(leat_groups_record_fits(home->groups, 100));
    assert_false(leat_groups_record_fits(home->groups, 101));
    builder->used = used;
    home_free(home);
}

/* Goal: a group that reads groups of segments is none of Kafka's, with members or without. */
static void parallel_set_takes_no_client_of_groups(void **state)
{
    (void)state;
    struct home *home = calm_home();
    come_and_go(home, "readers", LEAT_GROUPS_PARALLEL);
    assert_int_equal(leat_groups_group_find(home->groups, "readers")->member_count, 0);
    assert_int_equal(answer_of(home, join_new("", "", "m")), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""),
                     LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(leat_groups_group_find(home->groups, "readers")->mode, LEAT_GROUPS_PARALLEL);
    home_free(home);
}

/* Goal: in a group of any other mode, a log that was read by segment groups counts the bytes of their numbers. */
static void numbers_of_groups_count_in_other_modes(void **state)
{
    (void)state;
    static const enum leat_groups_mode modes[] = {LEAT_GROUPS_ORDERED, LEAT_GROUPS_CLASSIC};
    for (unsigned m = 0; m < 2; m++) {
        struct leat_group *group = leat_group_create("readers", modes[m]);
        struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
        leat_group_bytes_count(group);
        size_t before = group->bytes;
        log->first_group = 300;
        log->from_group = 200;
        leat_group_bytes_count(group);
        assert_int_equal(group->bytes - before, 3 + 2 - 2);
        log->first_group = 1ull << 32;
        leat_group_bytes_count(group);
        assert_int_equal(group->bytes - before, 9 + 2 - 2);
        leat_group_destroy(&group);
    }
}

/* Goal: a group that is full of bytes, and not of groups, takes none of others away. */
static void full_table_takes_no_idle_groups_of_others(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups *groups = home->groups;
    for (unsigned i = 0; i < 2; i++) {
        struct leat_group *group = leat_group_create(i ? "idle" : "large", LEAT_GROUPS_ORDERED);
        assert_non_null(group);
        group->maker = 5;
        leat_groups_group_add(groups, group);
        if (i == 0) group->bytes = LEAT_GROUPS_TABLE_BYTES_MAX - 1000;
        if (i == 0) group->used_us = 1;
        if (i == 0) assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, 0, 0}));
        if (i == 0) group->logs[0].has_offset = true;
    }
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "mine", &STREAM, 1);
    r.address = 6;
    assert_false(leat_groups_group_room(groups, &r));
    assert_non_null(leat_groups_group_find(groups, "idle"));
    leat_groups_table_clear(groups);
    home_free(home);
}

/* Goal: a member leaves while its join waits: the join and the leave are both answered accordingly. */
static void member_that_leaves_while_it_joins_is_told(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *join = join_new("", "cellar", "m");
    start(home, join);
    assert_false(join->answered);
    assert_int_equal(leave(home, "", "cellar"), LEAT_OK);
    assert_true(join->answered);
    assert_int_equal(rc_of(join), LEAT_E_UNKNOWN_MEMBER);
    home_run(home, 20 * MS);
    assert_int_equal(group_of(home)->phase, LEAT_CLASSIC_EMPTY);
    home_free(home);
}

/* Goal: the assignments of a group count for no address when all members have left. */
static void group_that_all_have_left_has_shared_out_nothing(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)single(home, "", member);
    assert_int_equal(group_of(home)->assigned_bytes, strlen(member));
    assert_int_equal(leave(home, member, ""), LEAT_OK);
    home_run(home, 20 * MS);
    assert_int_equal(group_of(home)->assigned_bytes, 0);
    home_free(home);
}

/* Goal: a group counts its bytes and memory from its creation on. */
static void new_set_counts_what_it_takes(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    size_t bytes = group->bytes, memory = group->memory_bytes;
    assert_true(bytes > strlen("readers") && memory > sizeof *group);
    leat_group_bytes_count(group);
    assert_int_equal(group->bytes, bytes);
    assert_int_equal(group->memory_bytes, memory);
    /* And the steps that logs take. */
    struct leat_log_ref refs[] = {{7, 0, 0}, {7, 1, 0}, {7, 2, 0}, {7, 3, 0}};
    leat_group_steps = 0;
    assert_int_equal(leat_group_logs_add(group, refs + 2, 1), LEAT_OK);
    assert_int_equal(leat_group_steps, 1);
    assert_int_equal(leat_group_logs_add(group, refs, 4), LEAT_OK);
    assert_int_equal(leat_group_steps, 1 + 5); /* three come, one moves, one is there */
    assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, 1, 1}));
    assert_int_equal(leat_group_steps, 1 + 5 + 2); /* before the last two */
    leat_group_destroy(&group);
}

/* Goal: each option that is not given has its default, and each option that is given is kept. */
static void home_has_defaults(void **state)
{
    (void)state;
    for (unsigned said = 0; said < 2; said++) {
        struct home *home = home_new(1, false);
        struct leat_groups_options options = home->groups->options;
        struct leat_groups *groups;
        options.settle_us = options.classic_settle_us = options.group_bytes_max = said;
        assert_int_equal(leat_groups_create(&options, &groups), LEAT_OK);
        assert_int_equal(groups->options.settle_us, said ? 1 : LEAT_GROUPS_SETTLE_US_DEFAULT);
        assert_int_equal(groups->options.classic_settle_us,
                         said ? 1 : LEAT_CLASSIC_SETTLE_US_DEFAULT);
        assert_int_equal(groups->options.group_bytes_max, said ? 1 : LEAT_CLASSIC_MEMORY_BYTES_MAX);
        leat_groups_destroy(&groups);
        home_free(home);
    }
}

/* Goal: each log has its own commit metadata, also in one answer. */
static void notes_of_several_logs_are_told_apart(void **state)
{
    (void)state;
    static const char *const notes[] = {"first", "2", "the third"};
    struct home *home = calm_home();
    for (uint32_t log = 0; log < 3; log++)
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, log, 5, notes[log]),
                         LEAT_OK);
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &f), LEAT_OK);
    for (uint32_t log = 0; log < 3; log++) {
        assert_int_equal(f.offsets[log].metadata_bytes, strlen(notes[log]));
        assert_memory_equal(f.offsets[log].metadata, notes[log], strlen(notes[log]));
    }
    leat_mem_free(f.offsets);
    home_free(home);
}

/* Goal: where nobody can be asked about groups of segments no group reads them. */
static void home_without_groups_serves_no_parallel_set(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->groups->options.broker.group = NULL;
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    r.mode = LEAT_GROUPS_PARALLEL;
    assert_int_equal(ask(home, &r), LEAT_E_UNSUPPORTED);
    assert_null(leat_groups_group_find(home->groups, "readers"));
    r = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    ask_join(home, &r);
    home_free(home);
}

/* Goal: a stored group has as many members as may be, and no more. */
static void stored_set_of_too_many_members_is_none(void **state)
{
    (void)state;
    static uint8_t bytes[LEAT_GROUPS_BATCH_BYTES_MAX];
    for (unsigned more = 0; more < 2; more++) {
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
        for (unsigned i = 0; i < LEAT_GROUPS_MEMBERS_MAX + more; i++) {
            struct leat_group_member *member = leat_group_member_add(group);
            assert_non_null(member);
            snprintf(member->id, sizeof member->id, "m-%u", i);
            member->session_ms = 1000;
        }
        struct leat_msg_writer writer;
        struct leat_msg_reader reader;
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_group_encode(&writer, group, true);
        assert_false(writer.overflow);
        leat_group_destroy(&group);
        leat_msg_reader_init(&reader, bytes, writer.used);
        group = leat_group_decode(&reader);
        assert_int_equal(group == NULL, more);
        if (group) leat_group_destroy(&group);
    }
}

/* Goal: a home that was not read is waited for as long as it may take, by a timer. */
static void home_that_is_not_read_is_waited_for_in_time(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    struct home *home = roomy_home(&room);
    home->unread = true;
    home_restart(home);
    uint64_t by_us = home->groups->read_by_us;
    assert_int_equal(by_us, home->now_us + LEAT_GROUPS_READ_US_MAX);
    assert_int_equal(home->groups->timer.at_us, by_us);
    home_run(home, LEAT_GROUPS_READ_US_MAX - MS);
    assert_int_equal(room.unread, 1);
    home_run(home, MS);
    assert_int_equal(room.unread, 0);
    /* Where something is due before that, the timer is for that. */
    home->groups->unread = true;
    home->groups->untold = true;
    home->groups->read_by_us = home->now_us + SECOND;
    leat_groups_timer_arm(home->groups);
    assert_int_equal(home->groups->timer.at_us, home->now_us);
    home->groups->unread = home->groups->untold = false;
    home_free(home);
}

/* ---- retention ---- */

enum { RETENTION = 60 * SECOND };

/* Goal: a group from before the start is kept for the whole retention from the first use of its home, and no longer. */
static void group_of_before_is_kept_for_one_retention(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    home->retention_us = RETENTION;
    home_restart(home);
    struct leat_groups_request wake = {
        .kind = LEAT_GROUPS_FETCH, .group = "others", .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    home_run(home, RETENTION - 10 * MS);
    assert_non_null(leat_groups_group_find(home->groups, "readers"));
    home_run(home, 20 * MS);
    assert_null(leat_groups_group_find(home->groups, "readers"));
    home_free(home);
}

/* Goal: a group that came while other tables were read is new, and not as old as the clock. */
static void group_that_waited_for_other_tables_is_new(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    struct home *home = roomy_home(&room);
    room.unread = 1; /* another home's */
    home->now_us = 10ull * RETENTION;
    home->retention_us = RETENTION;
    home_restart(home);
    struct leat_groups_request wake = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    commit_waits_for_tables(home, 0);
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_without_room_in_the_batch_are_asked_for_again),
        cmocka_unit_test(group_settles_whatever_else_its_home_does),
        cmocka_unit_test(stream_that_is_too_large_is_refused_before_others),
        cmocka_unit_test(full_home_serves_the_groups_that_it_has),
        cmocka_unit_test(commit_of_what_is_there_needs_no_room),
        cmocka_unit_test(room_tells_what_lies_beyond_it),
        cmocka_unit_test(fetch_tells_what_its_answer_takes),
        cmocka_unit_test(member_id_of_one_byte_is_one),
        cmocka_unit_test(instance_that_comes_again_fences_who_waits),
        cmocka_unit_test(largest_batch_counts_for_its_buffers),
        cmocka_unit_test(home_that_goes_leaves_its_questions),
        cmocka_unit_test(commit_waits_for_each_of_its_questions),
        cmocka_unit_test(record_fits_up_to_the_last_byte),
        cmocka_unit_test(parallel_set_takes_no_client_of_groups),
        cmocka_unit_test(numbers_of_groups_count_in_other_modes),
        cmocka_unit_test(full_table_takes_no_idle_groups_of_others),
        cmocka_unit_test(member_that_leaves_while_it_joins_is_told),
        cmocka_unit_test(group_that_all_have_left_has_shared_out_nothing),
        cmocka_unit_test(new_set_counts_what_it_takes),
        cmocka_unit_test(home_has_defaults),
        cmocka_unit_test(notes_of_several_logs_are_told_apart),
        cmocka_unit_test(home_without_groups_serves_no_parallel_set),
        cmocka_unit_test(stored_set_of_too_many_members_is_none),
        cmocka_unit_test(home_that_is_not_read_is_waited_for_in_time),
        cmocka_unit_test(group_of_before_is_kept_for_one_retention),
        cmocka_unit_test(group_that_waited_for_other_tables_is_new),
    };
    return cmocka_run_group_tests_name("groups-bounds", tests, NULL, nothing_left);
}
