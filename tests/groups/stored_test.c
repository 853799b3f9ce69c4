/* SPDX-License-Identifier: Apache-2.0 */
/* A home reads back what it stored: committed offsets with their metadata, and no record that can't be read. Requests
 * before that: of unknown members, at homes that still start. A group's home, and joins that wait. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000 };

static const uint32_t STREAM = 7;

struct kept {
    bool there;
    uint64_t offset;
    uint32_t epoch_plus_1, bytes;
    char note[16];
};

static void kept_is(struct home *home, const struct kept *kept)
{
    struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    size_t count = 0;
    assert_int_equal(ask(home, &f), LEAT_OK);
    for (uint32_t at = 0; at < UNITS; at++) {
        if (!kept[at].there) continue;
        assert_true(count < f.offset_count);
        const struct leat_groups_offset *row = &f.offsets[count++];
        assert_true(leat_log_ref_equal(row->log, (struct leat_log_ref){STREAM, at / 2, at % 2}));
        assert_int_equal(row->offset, kept[at].offset);
        assert_int_equal(row->leader_epoch_plus_1, kept[at].epoch_plus_1);
        assert_int_equal(row->metadata_bytes, kept[at].bytes);
        assert_memory_equal(row->metadata, kept[at].note, kept[at].bytes);
    }
    assert_int_equal(f.offset_count, count);
    leat_mem_free(f.offsets);
}

/* Goal: a committed offset, its leader's epoch and its metadata are the same after a start, whether that reads single
 * changes or the whole table; of several commits the last one counts, and one without an epoch or metadata has none. */
static void commits_are_the_same_after_a_start(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct kept kept[UNITS] = {0};
    struct leat_xoshiro dice;
    leat_xoshiro_seed(&dice, 3);
    for (unsigned step = 0; step < 400; step++) {
        uint32_t at = (uint32_t)leat_xoshiro_below(&dice, UNITS);
        struct leat_log_ref log = {STREAM, at / 2, at % 2};
        if (kept[at].there && leat_xoshiro_below(&dice, 6) == 0) {
            struct leat_groups_request drop = {
                .kind = LEAT_GROUPS_OFFSETS_DELETE, .logs = &log, .log_count = 1};
            assert_int_equal(ask(home, &drop), LEAT_OK);
            kept[at] = (struct kept){0};
        } else {
            kept[at] = (struct kept){.there = true, .offset = leat_xoshiro_below(&dice, 1000)};
            if (leat_xoshiro_below(&dice, 2))
                kept[at].epoch_plus_1 = (uint32_t)leat_xoshiro_below(&dice, 4);
            if (leat_xoshiro_below(&dice, 2))
                kept[at].bytes = (uint32_t)leat_xoshiro_below(&dice, sizeof kept->note);
            memset(kept[at].note, 'a' + (int)at, kept[at].bytes);
            struct leat_groups_offset row = {.log = log,
                                             .group = LEAT_SEGMENT_GROUP_NONE,
                                             .offset = kept[at].offset,
                                             .leader_epoch_plus_1 = kept[at].epoch_plus_1,
                                             .metadata = kept[at].note,
                                             .metadata_bytes = kept[at].bytes};
            struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
            assert_int_equal(answer_of(home, c), LEAT_OK);
        }
        if (leat_xoshiro_below(&dice, 20) == 0) home_roll(home);
        if (leat_xoshiro_below(&dice, 4) == 0) home_restart(home);
        kept_is(home, kept);
    }
    home_free(home);
}

/* Does a home go on that reads this stored record of a group? */
static bool group_record_reads(const char *name, uint32_t group_fields, uint32_t generation)
{
    struct home *home = calm_home();
    uint8_t value[512];
    struct leat_msg_writer writer;
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    leat_msg_writer_init(&writer, value, sizeof value);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_u64(&writer, RECORD_CLASSIC_GROUP);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_u64(&writer, generation);
    classic_head_write(&writer, group_fields, 0);
    home_replay(home, value, writer.used);
    bool reads = leat_groups_broken(home->groups) == NULL;
    struct leat_group *group = leat_groups_group_find(home->groups, name);
    assert_int_equal(group != NULL && group->generation == generation, reads);
    home_free(home);
    return reads;
}

/* Goal: a stored record of a kind that this version does not know, or without a kind, breaks the table: what the record
 * changed would be missing. */
static void stored_record_of_an_unknown_kind_breaks_the_table(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        bool reads;
    } rows[] = {{RECORD_NOTHING, true}, {99, false}, {UINT32_MAX, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct home *home = calm_home();
        uint8_t value[64], bytes[256];
        struct leat_msg_writer writer;
        struct leat_batch_builder builder;
        struct leat_batch batch;
        leat_msg_writer_init(&writer, value, sizeof value);
        leat_msg_write_array(&writer, 1);
        if (rows[i].kind == UINT32_MAX)
            leat_msg_write_string(&writer, "no number", 9);
        else
            leat_msg_write_u64(&writer, rows[i].kind);
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        assert_int_equal(
            leat_batch_builder_add(&builder, 1000, NULL, 0, value, writer.used, NULL, 0, 0),
            LEAT_OK);
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
        struct leat_log_app app = leat_groups_app(home->groups);
        app.on_replay(app.ctx, &batch);
        assert_int_equal(leat_groups_broken(home->groups) == NULL, rows[i].reads);
        home_free(home);
    }
}

/* Goal: a group's home is the same in all versions: in another home nobody would find the group's offsets. */
static void home_of_a_group_never_changes(void **state)
{
    (void)state;
    assert_int_equal(leat_groups_home("readers", 7), 39);
    assert_int_equal(leat_groups_home("a", 1), 48);
    assert_int_equal(leat_groups_home("console-consumer-1", 18), 36);
    assert_int_equal(leat_groups_home("", 0), 0);
}

/* Goal: a member that leaves while its join waits gets an answer to the join: its client would wait for ever. */
static void join_that_waits_is_answered_when_its_member_leaves(void **state)
{
    (void)state;
    struct home *home = home_new(1, false);
    home->calm = true;
    home->settle_us = 1000 * MS;
    home_restart(home);
    struct leat_groups_request first = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    ask_join(home, &first);
    struct leat_groups_request again = first, leave = first;
    bool answered = false;
    again.kind = LEAT_GROUPS_JOIN;
    again.streams = &STREAM;
    struct leat_groups_request second = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool second_answered = false;
    assert_false(ask_begin(home, &second, &second_answered)); /* it waits for the first */
    assert_false(ask_begin(home, &again, &answered));         /* until the group settles */
    leave.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &leave), LEAT_OK);
    assert_true(answered);
    assert_int_equal(again.rc, LEAT_E_CANCELLED);
    home_run(home, 60 * 1000 * MS);
    assert_true(second_answered);
    assert_int_equal(second.rc, LEAT_OK);
    assert_int_equal(second.assigned_count, UNITS);
    leat_mem_free(second.assigned);
    home_free(home);
}

/* Goal: a group whose members have no logs any more keeps its mode while it has members. */
static void mode_stays_while_there_are_members(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    ask_join(home, &join);
    (void)leat_groups_on_stream_deleted(home->groups, STREAM);
    const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    assert_int_equal(group->log_count, 0);
    assert_int_equal(group->member_count, 1);
    struct leat_groups_request other = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    other.mode = LEAT_GROUPS_PARALLEL;
    assert_int_equal(ask(home, &other), LEAT_E_INVALID);
    assert_non_null(strstr(other.error.text, "the group is of mode ordered"));
    assert_int_equal(group->mode, LEAT_GROUPS_ORDERED);
    struct leat_groups_request third = native_request(LEAT_GROUPS_JOIN, "sharers", &STREAM, 1);
    third.mode = LEAT_GROUPS_PARALLEL;
    ask_join(home, &third);
    other = native_request(LEAT_GROUPS_JOIN, "sharers", &STREAM, 1);
    assert_int_equal(ask(home, &other), LEAT_E_INVALID);
    assert_non_null(strstr(other.error.text, "the group is of mode parallel"));
    home_free(home);
}

/* Goal: a member that leaves while its SYNC waits for the leader gets an answer to the SYNC: its client would wait for
 * ever. */
static void sync_that_waits_is_answered_when_its_member_leaves(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct ask_group *joins[2];
    for (unsigned i = 0; i < 2; i++) {
        joins[i] = join_new("", "", "m");
        joins[i]->call.needs_id = false;
        start(home, joins[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        await(home, joins[i]);
    const char *leader = leat_groups_group_find(home->groups, "readers")->classic->leader;
    const unsigned other = strcmp(joins[0]->r.member, leader) == 0 ? 1 : 0;
    struct ask_group *sync = sync_new(joins[other]->r.member, joins[other]->r.generation);
    start(home, sync);
    assert_false(sync->answered);
    assert_int_equal(leave(home, joins[other]->r.member, ""), LEAT_OK);
    await(home, sync);
    assert_int_equal(rc_of(sync), LEAT_E_UNKNOWN_MEMBER);
    for (unsigned i = 0; i < 2; i++)
        ask_free(joins[i]);
    home_free(home);
}

/* Goal: a segment group is committed by the member that has it, from the first unfinished one on: nobody finishes what
 * another member is reading. */
static void segment_group_is_committed_by_its_member(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->settle_us = 1000 * MS;
    home_restart(home);
    struct leat_groups_request joins[2];
    bool answered[2] = {false, false};
    for (unsigned i = 0; i < 2; i++) {
        joins[i] = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
        joins[i].mode = LEAT_GROUPS_PARALLEL;
        assert_false(ask_begin(home, &joins[i], &answered[i]));
    }
    home_run(home, 10 * 1000 * MS);
    assert_true(answered[0] && answered[1]);
    struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    const struct leat_log_ref ref = {STREAM, 0, 0};
    for (int64_t at = 0; at < 4; at++)
        for (unsigned turn = 0; turn < 2; turn++) { /* first by the other member */
            const struct leat_group_log *log = leat_group_log_find(group, ref);
            assert_int_equal(log->first_group, at);
            const uint32_t owner = leat_group_owner(group, log, at);
            unsigned m = leat_group_member_find(group, joins[0].member)->serial == owner ? 0 : 1;
            if (turn == 0) m = 1 - m;
            struct leat_groups_offset row = {
                .log = ref, .group = at, .offset = LEAT_SEGMENT_GROUP_DONE};
            struct leat_groups_request c = {.kind = LEAT_GROUPS_COMMIT,
                                            .generation = joins[m].generation,
                                            .commits = &row,
                                            .commit_count = 1};
            snprintf(c.member, sizeof c.member, "%s", joins[m].member);
            assert_int_equal(ask(home, &c), turn == 0 ? LEAT_E_NOT_ASSIGNED : LEAT_OK);
        }
    for (unsigned i = 0; i < 2; i++)
        leat_mem_free(joins[i].assigned);
    home_free(home);
}

/* Goal: a commit whose log answers after its home has gone is answered, and is no commit. */
static void commit_that_outlives_its_home_is_answered(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    join.mode = LEAT_GROUPS_PARALLEL;
    ask_join(home, &join);
    struct leat_groups_offset row = {
        .log = {STREAM, 0, 0}, .group = 0, .offset = LEAT_SEGMENT_GROUP_DONE};
    struct leat_groups_request c = {.kind = LEAT_GROUPS_COMMIT,
                                    .group = "readers",
                                    .generation = join.generation,
                                    .commits = &row,
                                    .commit_count = 1};
    snprintf(c.member, sizeof c.member, "%s", join.member);
    bool answered = false;
    assert_false(ask_begin(home, &c, &answered));
    struct leat_segment_group_query *query = home->query;
    assert_non_null(query);
    home->query = NULL;
    home_close(home);
    assert_false(answered);
    query->rc = LEAT_OK;
    query->on_done(query);
    assert_true(answered);
    assert_int_equal(c.rc, LEAT_E_TIMEOUT);
    assert_int_equal(home_open(home), LEAT_OK);
    home_free(home);
}

/* Goal: a stored commit that memory is short for breaks the table: it is not left out. */
static void stored_commit_without_memory_breaks_the_table(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 3; fails++) {
        struct home *home = calm_home();
        struct leat_batch batch;
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "noted"), LEAT_OK);
        const struct stored *last = &home->batches[home->batch_count - 1];
        assert_int_equal(leat_batch_check(last->bytes, last->count, &batch, NULL), LEAT_OK);
        struct leat_group *group = leat_groups_group_find(home->groups, "readers");
        leat_group_stream_drop(group, STREAM);
        leat_mem_free(group->logs);
        group->logs = NULL;
        group->log_room = 0;
        group->generation = 0;
        struct leat_log_app app = leat_groups_app(home->groups);
        leat_mem_fail_at(fails == 0 ? 0 : fails + 1); /* the group's record comes first */
        app.on_replay(app.ctx, &batch);
        leat_mem_fail_at(0);
        assert_int_equal(leat_groups_broken(home->groups) == NULL, fails == 0);
        home_free(home);
    }
}

/* Goal: a stored group that does not read breaks its table, whether its group is known or not. */
static void stored_group_that_does_not_read_breaks_the_table(void **state)
{
    (void)state;
    assert_true(group_record_reads("readers", 5, 9));
    assert_true(group_record_reads("others", 5, 9));
    assert_false(group_record_reads("readers", 4, 9));
    assert_false(group_record_reads("others", 4, 9));
    assert_true(group_record_reads("others", 5, LEAT_GROUP_GENERATION_MAX));
    assert_false(group_record_reads("others", 5, LEAT_GROUP_GENERATION_MAX + 1));
}

/* Goal: a stored group, or classic group, for which a full home has no place breaks its table; one that is there is
 * replaced. */
static void stored_set_beyond_a_full_home_breaks_the_table(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++)
        for (unsigned known = 0; known < 2; known++) {
            struct home *home = calm_home();
            uint8_t value[1024];
            struct leat_msg_writer writer;
            char name[32];
            home_fill(home);
            snprintf(name, sizeof name, "group-%u", known ? 7 : LEAT_GROUPS_PER_HOME_MAX);
            struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
            struct leat_classic *classic = leat_classic_create();
            assert_true(group && classic);
            group->generation = 9;
            leat_msg_writer_init(&writer, value, sizeof value);
            leat_msg_write_array(&writer, kind ? 4 : 2);
            leat_msg_write_u64(&writer, kind ? RECORD_CLASSIC_GROUP : RECORD_NATIVE_GROUP);
            if (kind) {
                leat_msg_write_string(&writer, name, strlen(name));
                leat_msg_write_u64(&writer, 9);
                leat_classic_encode(&writer, classic, true);
            } else {
                leat_group_encode(&writer, group, false);
            }
            leat_group_destroy(&group);
            leat_classic_destroy(&classic);
            home_replay(home, value, writer.used);
            assert_int_equal(leat_groups_broken(home->groups) == NULL, known);
            assert_int_equal(home->groups->group_count, LEAT_GROUPS_PER_HOME_MAX);
            if (known) assert_int_equal(leat_groups_group_find(home->groups, name)->generation, 9);
            home_free(home);
        }
}

/* Goal: a stored table with more groups than a home may have breaks the home: those left out would have lost their
 * offsets. */
static void stored_table_of_too_many_groups_breaks_the_home(void **state)
{
    (void)state;
    enum { BYTES = LEAT_GROUPS_PER_HOME_MAX * 128 };
    for (uint32_t more = 0; more < 2; more++) {
        struct home *home = calm_home();
        uint8_t *bytes = malloc(BYTES);
        assert_non_null(bytes);
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, bytes, BYTES);
        leat_msg_write_array(&writer, LEAT_GROUPS_PER_HOME_MAX + more);
        for (uint32_t i = 0; i < LEAT_GROUPS_PER_HOME_MAX + more; i++) {
            char name[32];
            snprintf(name, sizeof name, "group-%u", i);
            struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
            assert_non_null(group);
            leat_group_encode(&writer, group, false);
            leat_group_destroy(&group);
        }
        assert_false(writer.overflow);
        struct leat_log_app app = leat_groups_app(home->groups);
        app.on_restore(app.ctx, bytes, writer.used);
        assert_int_equal(leat_groups_broken(home->groups) != NULL, more);
        if (!more) assert_int_equal(home->groups->group_count, LEAT_GROUPS_PER_HOME_MAX);
        free(bytes);
        home_free(home);
    }
}

/* Goal: names and metadata of protocols come in pairs; a single text is not taken for the assignment after the
 * pairs. */
static void stored_protocols_come_in_pairs(void **state)
{
    (void)state;
    for (uint32_t texts = 0; texts < 4; texts++) {
        uint8_t bytes[512];
        struct leat_msg_writer writer;
        struct leat_msg_reader reader;
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        classic_head_write(&writer, 5, 1);
        leat_msg_write_array(&writer, 8);
        leat_msg_write_bin(&writer, "id", 2);
        leat_msg_write_u64(&writer, 1000);
        leat_msg_write_u64(&writer, 1000);
        for (unsigned i = 0; i < 3; i++)
            leat_msg_write_bin(&writer, "c", 1);
        leat_msg_write_array(&writer, texts);
        for (uint32_t i = 0; i < texts / 2 * 2; i++)
            leat_msg_write_bin(&writer, "p", 1);
        leat_msg_write_bin(&writer, "share", 5);
        leat_msg_reader_init(&reader, bytes, writer.used);
        struct leat_classic *classic = leat_classic_decode(&reader);
        assert_int_equal(classic != NULL, texts % 2 == 0);
        leat_classic_destroy(&classic);
    }
}

/* Goal: a stored member without fields is none. */
static void stored_member_has_fields(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    classic_head_write(&writer, 5, 1);
    leat_msg_write_array(&writer, 0);
    leat_msg_reader_init(&reader, bytes, writer.used);
    assert_null(leat_classic_decode(&reader));
}

/* Goal: commit metadata that grows by one byte counts for the address that commits it, where no address counts as the
 * group's maker yet. */
static void note_that_grows_by_a_byte_counts_for_its_address(void **state)
{
    (void)state;
    enum { ADDRESS = 77 };
    struct home *home = calm_home();
    for (unsigned bytes = 1; bytes < 3; bytes++) {
        struct leat_groups_offset row = {.log = {STREAM, 0, 0},
                                         .group = LEAT_SEGMENT_GROUP_NONE,
                                         .offset = 5,
                                         .metadata = "nn",
                                         .metadata_bytes = bytes};
        struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
        if (bytes == 2) c->r.address = ADDRESS;
        assert_int_equal(answer_of(home, c), LEAT_OK);
        assert_int_equal(leat_groups_group_find(home->groups, "readers")->maker,
                         bytes == 2 ? ADDRESS : 0);
    }
    home_free(home);
}

/* Goal: a group counts all its memory: its own struct, a classic group, members, logs, commit metadata and segment
 * groups. */
static void group_counts_all_of_its_memory(void **state)
{
    (void)state;
    enum { BLOCK = 40 };
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    size_t memory = sizeof *group + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    assert_non_null(leat_group_member_add(group));
    assert_non_null(leat_group_member_add(group));
    leat_group_bytes_count(group);
    memory += 2 * sizeof *group->members + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    group->classic = leat_classic_create();
    leat_group_bytes_count(group);
    memory += sizeof *group->classic + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){STREAM, 0, 0});
    leat_group_bytes_count(group);
    memory += group->log_room * sizeof *group->logs + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    assert_int_equal(leat_group_offset_note(log, 3, "noted", 5), LEAT_OK);
    leat_group_bytes_count(group);
    memory += 5 + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    leat_group_classic_drop(group);
    memory -= sizeof *group->classic + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    group->mode = LEAT_GROUPS_PARALLEL;
    assert_int_equal(leat_group_commit(group, log, 3, 300, false), LEAT_OK);
    assert_int_equal(leat_group_commit(group, log, 5, 500, false), LEAT_OK);
    leat_group_bytes_count(group);
    memory += 2 * sizeof *log->groups + BLOCK;
    assert_int_equal(group->memory_bytes, memory);
    leat_group_destroy(&group);
}

/* Goal: a join with a member id that the group does not know is refused, and makes no member; the group stays as it
 * is. */
static void member_that_nobody_knows_joins_anew(void **state)
{
    (void)state;
    struct home *home = calm_home();
    for (unsigned known = 0; known < 2; known++) {
        struct leat_groups_request r = {.kind = LEAT_GROUPS_JOIN,
                                        .member = "m-0000000000000001-7",
                                        .answer_bytes_max = SIZE_MAX,
                                        .session_ms = 2000,
                                        .streams = &STREAM,
                                        .stream_count = 1};
        assert_int_equal(ask(home, &r), LEAT_E_UNKNOWN_MEMBER);
        const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
        assert_int_equal(group != NULL, known);
        if (known) {
            assert_int_equal(group->member_count, 1);
            assert_int_equal(group->phase, LEAT_GROUP_STABLE);
            assert_int_equal(group->generation, 1);
            continue;
        }
        r.member[0] = '\0';
        ask_join(home, &r);
    }
    home_free(home);
}

/* Goal: a commit under a member id of one byte is a member's, and not one from outside. */
static void commit_under_an_unknown_id_is_refused(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, ""), LEAT_OK);
    struct leat_groups_offset row = {
        .log = {STREAM, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = 9};
    for (unsigned named = 0; named < 2; named++) {
        struct leat_groups_request c = {
            .kind = LEAT_GROUPS_COMMIT, .commits = &row, .commit_count = 1, .force = true};
        if (named) c.member[0] = 'x';
        row.offset = named ? 11 : 9;
        assert_int_equal(ask(home, &c), named ? LEAT_E_UNKNOWN_MEMBER : LEAT_OK);
        assert_int_equal(fetched(home, 0, NULL), 9);
    }
    home_free(home);
}

/* Goal: a heartbeat that wakes its home is answered, also where the log takes nothing at first. */
static void heartbeat_that_wakes_its_home_is_answered(void **state)
{
    (void)state;
    struct home *home = home_new(1, false);
    home->calm = true;
    home->append_rc = LEAT_E_AGAIN;
    struct leat_groups_request beat = {
        .kind = LEAT_GROUPS_HEARTBEAT, .group = "readers", .member = "m-0000000000000001-7"};
    bool answered = false;
    beat.on_done = home_done;
    beat.owner = &answered;
    assert_false(leat_groups_do(home->groups, &beat));
    home_run(home, 10 * MS);
    assert_false(answered);
    home->append_rc = LEAT_OK;
    home_run(home, 200 * MS);
    assert_true(answered);
    assert_int_equal(beat.rc, LEAT_E_UNKNOWN_MEMBER);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_are_the_same_after_a_start),
        cmocka_unit_test(stored_record_of_an_unknown_kind_breaks_the_table),
        cmocka_unit_test(home_of_a_group_never_changes),
        cmocka_unit_test(join_that_waits_is_answered_when_its_member_leaves),
        cmocka_unit_test(mode_stays_while_there_are_members),
        cmocka_unit_test(sync_that_waits_is_answered_when_its_member_leaves),
        cmocka_unit_test(segment_group_is_committed_by_its_member),
        cmocka_unit_test(commit_that_outlives_its_home_is_answered),
        cmocka_unit_test(stored_commit_without_memory_breaks_the_table),
        cmocka_unit_test(stored_group_that_does_not_read_breaks_the_table),
        cmocka_unit_test(stored_set_beyond_a_full_home_breaks_the_table),
        cmocka_unit_test(stored_table_of_too_many_groups_breaks_the_home),
        cmocka_unit_test(stored_protocols_come_in_pairs),
        cmocka_unit_test(stored_member_has_fields),
        cmocka_unit_test(note_that_grows_by_a_byte_counts_for_its_address),
        cmocka_unit_test(group_counts_all_of_its_memory),
        cmocka_unit_test(member_that_nobody_knows_joins_anew),
        cmocka_unit_test(commit_under_an_unknown_id_is_refused),
        cmocka_unit_test(heartbeat_that_wakes_its_home_is_answered),
    };
    return cmocka_run_group_tests_name("groups-stored", tests, NULL, nothing_left);
}
