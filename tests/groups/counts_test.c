/* SPDX-License-Identifier: Apache-2.0 */
/* What a home counts: bytes and memory of its groups at each moment, the table up to its last byte, waiting requests;
 * and what a home leaves as it is. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS, RETENTION = 60 * SECOND };

static const uint32_t STREAM = 7, OTHER = LARGE_STREAM + 3;

static struct leat_groups_info info(const struct home *home)
{
    struct leat_groups_info out;
    leat_groups_info(home->groups, &out);
    return out;
}

/* The counters of the group equal a new count. */
static void assert_counted(struct home *home, const char *name)
{
    struct leat_group *group = leat_groups_group_find(home->groups, name);
    assert_non_null(group);
    size_t bytes = group->bytes, memory = group->memory_bytes;
    leat_group_bytes_count(group);
    assert_int_equal(bytes, group->bytes);
    assert_int_equal(memory, group->memory_bytes);
}

/* Goal: a group counts a member from its join on, and the streams that a member names more from then on, not from the
 * sharing out on: other groups are asked meanwhile whether there is room for them. */
static void members_count_from_their_join_on(void **state)
{
    (void)state;
    struct home *home = calm_home();
    uint32_t many[LEAT_GROUPS_STREAMS_MAX];
    for (unsigned i = 0; i < LEAT_GROUPS_STREAMS_MAX; i++)
        many[i] = STREAM;
    struct leat_groups_request one = native_request(LEAT_GROUPS_JOIN, "one", &STREAM, 1), two = one;
    bool one_is, two_is;
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "noted"), LEAT_OK);
    size_t before = info(home).table_bytes;
    ask_begin(home, &one, &one_is);
    assert_counted(home, "one");
    size_t first = info(home).table_bytes - before;
    ask_begin(home, &two, &two_is);
    assert_false(one_is || two_is);
    assert_counted(home, "one");
    size_t second = info(home).table_bytes - before - first;
    assert_true(second > 24 && first > second);
    home_run(home, 10 * MS);
    assert_true(one_is && two_is);
    assert_counted(home, "one");
    leat_mem_free(one.assigned);
    leat_mem_free(two.assigned);
    before = info(home).table_bytes;
    one.streams = many;
    one.stream_count = LEAT_GROUPS_STREAMS_MAX;
    ask_begin(home, &one, &one_is);
    assert_int_equal(info(home).table_bytes - before, 5 * (LEAT_GROUPS_STREAMS_MAX - 1));
    assert_counted(home, "one");
    ask_begin(home, &two, &two_is);
    home_run(home, 10 * MS);
    assert_true(one_is && two_is);
    assert_counted(home, "one");
    leat_mem_free(one.assigned);
    leat_mem_free(two.assigned);
    /* A classic group that turns native. */
    struct leat_groups_request three = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    ask_begin(home, &three, &one_is);
    assert_counted(home, "readers");
    home_run(home, 10 * MS);
    assert_true(one_is);
    assert_counted(home, "readers");
    leat_mem_free(three.assigned);
    home_free(home);
}

/* Goal: a classic group's member, its protocols and their type count in the stored bytes from the join on: a log that
 * rolls before the group has its assignments asks whether the table has room for all of them. */
static void members_of_groups_count_from_their_join_on(void **state)
{
    (void)state;
    static char type[LEAT_CLASSIC_TEXT_BYTES_MAX + 1], note[2001];
    memset(type, 't', sizeof type - 1);
    memset(note, 'n', sizeof note - 1);
    struct home *home = calm_home();
    home->classic_settle_us = 50 * MS;
    home_restart(home);
    struct leat_groups_request wake = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    struct ask_group *joins[6];
    for (unsigned i = 0; i < 6; i++) {
        static uint8_t bytes[64 * 1024];
        struct leat_msg_writer writer;
        joins[i] = join_new("", i % 2 ? "" : (const char *[]){"a", "b", "c"}[i / 2], note);
        joins[i]->call.needs_id = i == 5;
        joins[i]->call.protocol_type = text(type);
        start(home, joins[i]);
        if (i == 5) {
            await(home, joins[i]);
            assert_int_equal(joins[i]->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
            struct ask_group *again = join_new(joins[i]->r.member, "", note);
            again->call.protocol_type = text(type);
            ask_free(joins[i]);
            joins[i] = again;
            start(home, again);
        }
        const struct leat_classic *group = leat_groups_group_find(home->groups, "readers")->classic;
        assert_int_equal(group->phase, LEAT_CLASSIC_PREPARING);
        assert_int_equal(leat_classic_members_joined(group), i + 1);
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_classic_encode(&writer, group, true);
        assert_in_range(writer.used, (i + 1) * (sizeof note - 1), group->stored_bytes);
    }
    for (unsigned i = 0; i < 6; i++) {
        await(home, joins[i]);
        ask_free(joins[i]);
    }
    home_free(home);
}

/* Goal: a log that rolls before a group is shared out has room for its table: members that a full table has no room for
 * are left out. */
static void full_table_is_stored_while_a_group_is_joined(void **state)
{
    (void)state;
    static char note[LEAT_CLASSIC_METADATA_BYTES_MAX + 1], said[48 * 1024];
    memset(note, 'n', sizeof note - 1);
    memset(said, 's', sizeof said - 1);
    struct home *home = calm_home();
    for (size_t bytes = sizeof note - 1; bytes > 64; bytes /= 2) {
        static uint32_t log;
        note[bytes] = '\0';
        while (commit(home, "", LEAT_CLASSIC_GENERATION_NONE, log, 5, note) == LEAT_OK)
            log++;
    }
    struct ask_group *join = join_new("", "", said);
    join->call.needs_id = false;
    start(home, join);
    assert_false(join->answered);
    home_roll(home); /* which looks at the table's size */
    await(home, join);
    assert_int_equal(join->r.rc, LEAT_OK);
    ask_free(join);
    home_free(home);
}

/* A member of `one` joins again for a second stream, where others' groups count so many bytes (0: what they do).
 * Returns how many its own group has then. */
static size_t joins_beside(size_t others, leat_err *out_rc)
{
    struct home *home = calm_home();
    const uint32_t both[] = {STREAM, OTHER};
    struct leat_groups_request one = native_request(LEAT_GROUPS_JOIN, "one", &OTHER, 1);
    bool answered;
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    ask_join(home, &one);
    one.streams = both;
    one.stream_count = 2;
    ask_begin(home, &one, &answered);
    struct leat_group *readers = leat_groups_group_find(home->groups, "readers");
    size_t truth = readers->bytes;
    if (others) readers->bytes = others;
    home_run(home, 10 * MS);
    assert_true(answered);
    *out_rc = one.rc;
    assert_int_equal(one.assigned_count, one.rc == LEAT_OK ? 2 * UNITS : 0);
    leat_mem_free(one.assigned);
    size_t table = info(home).table_bytes;
    size_t bytes = leat_groups_group_find(home->groups, "one")->bytes;
    assert_int_equal(table, leat_groups_table_bytes(home->groups));
    leat_groups_group_find(home->groups, "readers")->bytes = truth;
    home_free(home);
    return bytes;
}

/* Goal: logs come to a table up to its last byte, and not beyond; streams that bring none need no room. */
static void table_takes_logs_up_to_its_last_byte(void **state)
{
    (void)state;
    leat_err rc;
    size_t bytes = joins_beside(0, &rc), all = LEAT_GROUPS_TABLE_BYTES_MAX;
    assert_int_equal(rc, LEAT_OK);
    size_t others = all - bytes - 16; /* 16: what frames the table */
    assert_int_equal(joins_beside(others, &rc), bytes);
    assert_int_equal(rc, LEAT_OK);
    (void)joins_beside(others + 1, &rc);
    assert_int_equal(rc, LEAT_E_TOO_MANY);
}

/* Goal: commits come to a table up to its last byte, and not beyond: a log, a note, what a note is longer than before.
 * What is shorter, or there already, needs no room. */
static void table_takes_commits_up_to_its_last_byte(void **state)
{
    (void)state;
    enum { LOG_BYTES = 1 + 3 + 5 + 1 + 9 + 3, NOTE = LEAT_GROUP_NOTE_BYTES };
    static const struct {
        bool known;
        uint32_t before, before_epoch, bytes, epoch;
        size_t grows;
    } rows[] = {
        {false, 0, 0, 0, 0, LOG_BYTES},
        {false, 0, 0, 1, 0, LOG_BYTES + NOTE + 1},
        {false, 0, 0, 0, 1, LOG_BYTES + NOTE},
        {false, 0, 0, 7, 3, LOG_BYTES + NOTE + 7},
        {true, 0, 0, 0, 0, 0},
        {true, 0, 0, 5, 0, NOTE + 5},
        {true, 0, 2, 5, 0, 5},
        {true, 4, 0, 5, 1, 1},
        {true, 5, 0, 5, 9, 0},
        {true, 5, 0, 4, 0, 0},
        {true, 5, 7, 0, 0, 0},
    };
    static const char note[] = "nnnnnnn";
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned fits = 0; fits < 2; fits++) {
            if (rows[i].grows == 0 && !fits) continue; /* nothing to refuse */
            struct home *home = calm_home();
            struct leat_groups_offset row = {.log = {STREAM, 0, 0},
                                             .group = LEAT_SEGMENT_GROUP_NONE,
                                             .offset = 5,
                                             .metadata = note,
                                             .metadata_bytes = rows[i].before,
                                             .leader_epoch_plus_1 = rows[i].before_epoch};
            if (!rows[i].known) row.log.log = 1;
            for (unsigned second = 0; second < 2; second++) {
                struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
                size_t before = info(home).table_bytes, most = LEAT_GROUPS_TABLE_BYTES_MAX;
                struct leat_group *group = leat_groups_group_find(home->groups, "readers");
                if (second) group->bytes += most - before - rows[i].grows + !fits;
                assert_int_equal(answer_of(home, c), second && !fits ? LEAT_E_TOO_MANY : LEAT_OK);
                if (second) leat_group_bytes_count(group);
                if (second && fits && rows[i].grows)
                    assert_int_equal(info(home).table_bytes, before + rows[i].grows);
                row.log.log = 0;
                row.metadata_bytes = rows[i].bytes;
                row.leader_epoch_plus_1 = rows[i].epoch;
            }
            home_free(home);
        }
}

/* Goal: a broken home keeps its table as it was: groups do not expire, since no record of that can be written. */
static void broken_home_forgets_no_set(void **state)
{
    (void)state;
    struct home *home = home_new(1, false);
    home->calm = true;
    home->retention_us = RETENTION;
    home_restart(home);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    struct leat_groups_request one = native_request(LEAT_GROUPS_JOIN, "one", &STREAM, 1);
    ask_join(home, &one);
    uint64_t used = leat_groups_group_find(home->groups, "readers")->used_us;
    home->mute = true;
    while (home->now_us + 50 * MS < used + RETENTION)
        home_run(home, MS);
    assert_int_equal(info(home).groups, 2);
    struct leat_groups_request gone = {.kind = LEAT_GROUPS_LEAVE, .group = "one"};
    snprintf(gone.member, sizeof gone.member, "%s", one.member);
    (void)ask(home, &gone); /* recorded, and the log does not answer yet */
    home_run(home, MS);
    assert_non_null(home->append);
    struct leat_append *append = home->append;
    home->append = NULL;
    append->on_acked(append, LEAT_E_DISK);
    assert_non_null(leat_groups_broken(home->groups));
    home_run(home, 2 * (uint64_t)RETENTION);
    assert_int_equal(info(home).groups, 2);
    for (unsigned i = 0; i < home->batch_count; i++)
        free(home->batches[i].bytes);
    home->batch_count = 0;
    home_free(home);
}

/* Goal: offsets that are not there are deleted at once, and nothing is written. */
static void deletion_of_no_offset_writes_nothing(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    unsigned batches = home->batch_count;
    struct leat_log_ref logs[] = {{STREAM, 1, 0}, {STREAM, 2, 0}};
    struct leat_groups_request drop = {
        .kind = LEAT_GROUPS_OFFSETS_DELETE, .group = "readers", .logs = logs, .log_count = 2};
    bool answered;
    assert_true(ask_begin(home, &drop, &answered));
    assert_int_equal(drop.rc, LEAT_OK);
    assert_int_equal(home->batch_count, batches);
    assert_true(leat_groups_all_acked(home->groups));
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

/* Goal: members whose assignments have no memory get that error, each once, and wait no more. */
static void share_without_memory_is_told(void **state)
{
    (void)state;
    unsigned short_of = 0;
    for (unsigned fails = 1; fails < 12; fails++) {
        struct home *home = calm_home();
        struct ask_group *a = join_new("", "a", "m"), *b = join_new("", "b", "m");
        answer_both(home, a, b);
        home_run(home, 10 * MS);
        bool a_leads = a->call.member_count > 0;
        struct ask_group *leader = a_leads ? a : b, *other = a_leads ? b : a;
        struct ask_group *waits = sync_new(other->r.member, other->r.generation);
        struct ask_group *shares = sync_new(leader->r.member, leader->r.generation);
        start(home, waits);
        assert_false(waits->answered);
        share_out(shares, &leader->call);
        leat_mem_fail_at(fails);
        start(home, shares);
        leat_mem_fail_at(0);
        bool was_short = waits->answered && waits->r.rc == LEAT_E_NO_MEMORY;
        short_of += was_short;
        home_run(home, 10 * MS);
        if (was_short) {
            assert_true(shares->answered);
            assert_int_equal(shares->r.rc, LEAT_OK);
            assert_int_equal(info(home).waiting, 0);
            struct ask_group *again = sync_new(other->r.member, other->r.generation);
            start(home, again);
            await(home, again);
            assert_int_equal(again->r.rc, LEAT_OK);
            assert_int_equal(again->call.assignment.bytes, strlen(other->r.member));
            ask_free(again);
        }
        if (!waits->answered) leat_groups_cancel(home->groups, &waits->r);
        ask_free(waits);
        ask_free(shares);
        ask_free(a);
        ask_free(b);
        home_free(home);
    }
    assert_int_equal(short_of, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_count_from_their_join_on),
        cmocka_unit_test(members_of_groups_count_from_their_join_on),
        cmocka_unit_test(full_table_is_stored_while_a_group_is_joined),
        cmocka_unit_test(table_takes_logs_up_to_its_last_byte),
        cmocka_unit_test(table_takes_commits_up_to_its_last_byte),
        cmocka_unit_test(broken_home_forgets_no_set),
        cmocka_unit_test(deletion_of_no_offset_writes_nothing),
        cmocka_unit_test(share_without_memory_is_told),
    };
    return cmocka_run_group_tests_name("groups-counts", tests, NULL, nothing_left);
}
