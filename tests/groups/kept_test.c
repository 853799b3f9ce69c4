/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the table that the life of a group does not reach by itself: what is stored and how much it counts, to the
 * byte; stored bytes that are no group; what is left when a group's logs are deleted. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000 };

static const uint32_t STREAM = 7;

/* Goal: a generation that has more logs than there may be leaves none of them behind, but those of which something is
 * committed. */
static void refused_generation_leaves_no_logs(void **state)
{
    (void)state;
    static const uint32_t streams[] = {7, LARGE_STREAM, LARGE_STREAM + 1, LARGE_STREAM + 2};
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "n"), LEAT_OK);
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 1, 5, "n"), LEAT_OK);
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    join.streams = streams;
    join.stream_count = 4;
    assert_int_equal(ask(home, &join), LEAT_E_TOO_MANY);
    for (unsigned life = 0; life < 2; life++) {
        const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
        assert_int_equal(group->member_count, 0);
        assert_int_equal(group->log_count, 2);
        assert_int_equal(group->logs[0].offset, 5);
        assert_int_equal(group->logs[1].log.streamlet, 1);
        home_run(home, 10 * MS);
        home_restart(home);
    }
    home_free(home);
}

static bool stream_size_huge(void *ctx, uint32_t stream, uint32_t *out_streamlets,
                             uint32_t *out_logs)
{
    (void)ctx;
    *out_streamlets = LEAT_GROUPS_LOGS_MAX / 2 + 1;
    *out_logs = 2;
    return stream == STREAM;
}

/* Goal: a stream with more logs than a group may have is refused before memory is taken for all of them. */
static void stream_that_is_too_large_takes_no_memory(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->groups->options.broker.stream_size = stream_size_huge;
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    bool answered = false;
    join.on_done = home_done;
    join.owner = &answered;
    assert_false(leat_groups_do(home->groups, &join));
    leat_mem_fail_at(0);
    home_run(home, 10 * MS);
    assert_int_equal(leat_mem_calls(), 1); /* the streams of its members */
    assert_true(answered);
    assert_int_equal(join.rc, LEAT_E_TOO_MANY);
    home_free(home);
}

/* Goal: deleting a stream deletes all state that groups keep of the stream's logs (nothing_left() looks). */
static void stream_that_goes_takes_all_of_its_logs(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 1, 5, "note"), LEAT_OK);
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    static const uint32_t both[] = {7, LARGE_STREAM + 3};
    join.streams = both;
    join.stream_count = 2;
    ask_join(home, &join);
    /* It tells how much it looked at: groups, twice, logs that stay, members. */
    assert_int_equal(leat_groups_on_stream_deleted(home->groups, STREAM), 2 + 2 + UNITS + 1);
    assert_int_equal(leat_groups_group_find(home->groups, "readers")->log_count, 0);
    assert_int_equal(leat_groups_group_find(home->groups, "natives")->log_count, UNITS);
    home_free(home);
}

/* Goal: a stored classic group is five fields, with texts that have room and a phase that there is. What is cut short
 * is none. */
static void stored_classic_group_is_whole(void **state)
{
    (void)state;
    static uint8_t bytes[2048];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    static char type[LEAT_CLASSIC_TEXT_BYTES_MAX + 2];
    memset(type, 't', sizeof type);
    for (unsigned row = 0; row < 9; row++) {
        const uint32_t longs[] = {row == 1 ? 256 : 255, row == 2 ? 256 : 255, row == 3 ? 64 : 63};
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_write_array(&writer, row == 4 ? 4 : row == 5 ? 6 : 5);
        for (unsigned t = 0; t < 3; t++) {
            if (row == t + 6) break; /* others follow, and would read */
            leat_msg_write_bin(&writer, type, longs[t]);
        }
        leat_msg_write_u64(&writer, row == 0 ? LEAT_CLASSIC_STABLE + 1 : LEAT_CLASSIC_STABLE);
        leat_msg_write_array(&writer, 0);
        leat_msg_reader_init(&reader, bytes, writer.used);
        assert_null(leat_classic_decode(&reader));
        assert_true(reader.failed);
    }
    /* A head that is wrong, and behind it at once members, none of which there are. */
    static const char *const heads[] = {"\x94\x90", "\x96\x90", "\x90\x90"};
    for (unsigned i = 0; i < 3; i++) {
        leat_msg_reader_init(&reader, (const uint8_t *)heads[i], 2);
        assert_null(leat_classic_decode(&reader));
    }
    for (unsigned t = 0; t < 3; t++) { /* a text that is too long, then the same */
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_write_array(&writer, 5);
        for (unsigned i = 0; i <= t; i++)
            leat_msg_write_bin(&writer, type, i == t ? 256 : 5);
        leat_msg_write_array(&writer, 0);
        leat_msg_reader_init(&reader, bytes, writer.used);
        assert_null(leat_classic_decode(&reader));
    }
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 5);
    for (unsigned t = 0; t < 3; t++)
        leat_msg_write_bin(&writer, type, t == 2 ? 63 : 255);
    leat_msg_write_u64(&writer, LEAT_CLASSIC_STABLE);
    leat_msg_write_array(&writer, 0);
    for (size_t used = 0; used <= writer.used; used++) {
        leat_msg_reader_init(&reader, bytes, used);
        struct leat_classic *classic = leat_classic_decode(&reader);
        assert_int_equal(classic != NULL, used == writer.used);
        assert_int_equal(reader.failed, used < writer.used);
        leat_classic_destroy(&classic);
    }
}

/* Goal: a classic group's stored bytes count only members that have joined, its memory counts all members. */
static void member_that_has_not_joined_is_not_stored(void **state)
{
    (void)state;
    struct leat_classic_protocol protocol = {text("range"), text("mmm")};
    const struct leat_classic_call call = {.instance = text("i"),
                                           .client = text("cc"),
                                           .host = text("hhh"),
                                           .protocols = &protocol,
                                           .protocol_count = 1};
    const size_t facts = sizeof protocol + 1 + 2 + 3 + 5 + 3;
    for (unsigned pending = 0; pending < 2; pending++) {
        struct leat_classic *classic = leat_classic_create();
        for (unsigned i = 0; i < 3; i++) {
            struct leat_classic_member *member = leat_classic_member_add(classic);
            assert_non_null(member);
            memcpy(member->id, "abcd", 5);
            member->pending = pending && i == 1;
            assert_int_equal(leat_classic_facts_set(classic, member, &call), LEAT_OK);
            assert_int_equal(classic->memory_bytes,
                             (i + 1) * (sizeof *member + facts) + i * 2); /* at once */
            assert_int_equal(leat_classic_assignment_set(classic, member, text("as")), LEAT_OK);
        }
        leat_classic_type_set(classic, text("consumer"));
        assert_int_equal(classic->stored_bytes,
                         32 + 8 + (pending ? 2 : 3) * (73 + 4 + facts + 12 + 2));
        assert_int_equal(classic->memory_bytes,
                         3 * (sizeof(struct leat_classic_member) + facts + 2));
        leat_classic_destroy(&classic);
    }
}

/* Goal: a group that is not parallel and has segment groups counts the bytes of their numbers and of the array around
 * them. */
static void groups_of_segments_count_in_other_modes(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
    const size_t parallel[] = {0, 18, 36}, ordered[] = {0, 18 + 2, 36 + 2};
    for (unsigned m = 0; m < 2; m++) {
        group->mode = m ? LEAT_GROUPS_ORDERED : LEAT_GROUPS_PARALLEL;
        log->group_count = 0;
        leat_group_bytes_count(group);
        size_t before = group->bytes;
        for (unsigned count = 0; count < 3; count++) {
            log->group_count = count;
            leat_group_bytes_count(group);
            assert_int_equal(group->bytes - before, m ? ordered[count] : parallel[count]);
        }
    }
    log->group_count = 0;
    leat_group_destroy(&group);
}

/* Goal: a stored group that memory has no room for is not read in part, as members would lose what they own. */
static void stored_group_without_memory_is_none(void **state)
{
    (void)state;
    static uint8_t bytes[2048];
    struct leat_msg_writer writer;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    assert_true(leat_group_member_add(group) && leat_group_member_add(group)); /* of no streams */
    assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, 0, 0}));
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group, false);
    assert_false(writer.overflow);
    leat_group_destroy(&group);
    for (uint64_t at = 1; at <= 5; at++) { /* the group, its members, its log; all is there */
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, bytes, writer.used);
        leat_mem_fail_at(at);
        group = leat_group_decode(&reader);
        leat_mem_fail_at(0);
        assert_int_equal(group != NULL, at == 5);
        assert_int_equal(reader.failed, at < 5);
        if (group) assert_true(group->member_count == 2 && group->log_count == 1);
        leat_group_destroy(&group);
    }
}

/* Goal: a record that is gathered is not acked, also while no append is under way. */
static void gathered_record_is_not_acked(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_true(leat_groups_all_acked(home->groups));
    home->groups->builder.record_count = 1;
    assert_false(leat_groups_all_acked(home->groups));
    home->groups->builder.record_count = 0;
    home_free(home);
}

/* Goal: a home has room for groups, bytes and memory up to the last of each, and says which of them lacks. */
static void room_is_there_up_to_the_last_of_each(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    memset(&room, 0, sizeof room);
    room.bytes_max = 1000;
    struct home *home = calm_home();
    home->groups->options.room = &room;
    const size_t bytes = LEAT_GROUPS_TABLE_BYTES_MAX - leat_groups_table_bytes(home->groups);
    const struct {
        uint32_t groups;
        size_t bytes, memory;
        const char *lacks;
    } rows[] = {
        {0, 0, 0, NULL},
        {LEAT_GROUPS_PER_HOME_MAX, bytes, 1000, NULL},
        {LEAT_GROUPS_PER_HOME_MAX + 1, 0, 0, "this home"},
        {0, bytes + 1, 0, "the table"},
        {0, 0, 1001, "the memory"},
        {LEAT_GROUPS_PER_HOME_MAX, 0, 0, NULL},
        {0, bytes, 0, NULL},
        {0, 0, 1000, NULL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why =
            leat_groups_lacks(home->groups, 0, rows[i].groups, rows[i].bytes, rows[i].memory);
        assert_int_equal(why != NULL, rows[i].lacks != NULL);
        if (why) assert_memory_equal(why, rows[i].lacks, strlen(rows[i].lacks));
    }
    room.bytes = 2000; /* a restart may find more than there may be: only memory is refused then */
    assert_null(leat_groups_lacks(home->groups, 0, 1, 1, 0));
    assert_non_null(leat_groups_lacks(home->groups, 0, 0, 0, 1));
    room.bytes = 0;
    /* An address has no more than what is left beside it. */
    assert_null(leat_groups_lacks(home->groups, 9, 0, 0, 500));
    assert_non_null(leat_groups_lacks(home->groups, 9, 0, 0, 501));
    home->groups->options.room = NULL;
    home_free(home);
}

/* Goal: a commit of a lower offset, which is not taken, is recorded as the offset that stands, with that offset's epoch
 * and metadata. */
static void lower_commit_is_stored_as_what_stands(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    ask_join(home, &join);
    const struct leat_groups_offset rows[] = {{{7, 0, 0}, -1, 50, 4, 5, "fifty"},
                                              {{7, 0, 0}, -1, 40, 9, 2, "no"},
                                              {{7, 0, 0}, -1, 30, 0, 0, ""}};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "natives", &STREAM, 1);
        memcpy(c.member, join.member, sizeof c.member);
        c.generation = join.generation;
        c.commits = &rows[i];
        c.commit_count = 1;
        assert_int_equal(ask(home, &c), LEAT_OK);
        home_restart(home); /* reads the records */
        struct leat_group *group = leat_groups_group_find(home->groups, "natives");
        const struct leat_group_log *log = leat_group_log_find(group, rows[0].log);
        assert_int_equal(log->offset, 50);
        assert_int_equal(log->leader_epoch_plus_1, 4);
        assert_int_equal(log->metadata_bytes, 5);
        assert_memory_equal(log->metadata, "fifty", 5);
    }
    home_free(home);
}

/* Goal: a commit has as many bytes as its batch has room for beside the group's own record. */
static void commit_is_not_larger_than_its_batch(void **state)
{
    (void)state;
    static char note[LEAT_GROUPS_BATCH_BYTES_MAX];
    const size_t log_bytes = 1 + 3 + 5 + 1 + 9 + 3;
    const size_t most = LEAT_GROUPS_BATCH_BYTES_MAX - 2 * 4096 - RECORD_HEAD_BYTES - log_bytes -
                        LEAT_GROUP_NOTE_BYTES;
    for (unsigned more = 0; more < 2; more++) {
        struct home *home = calm_home();
        const struct leat_groups_offset row = {.log = {STREAM, 0, 0},
                                               .group = -1,
                                               .offset = 5,
                                               .metadata = note,
                                               .metadata_bytes = (uint32_t)(most + more)};
        struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
        start(home, c);
        await(home, c);
        if (more) assert_int_equal(c->r.rc, LEAT_E_TOO_LARGE);
        if (!more) assert_int_not_equal(c->r.rc, LEAT_E_TOO_LARGE);
        ask_free(c);
        home_free(home);
    }
}

/* Goal: a commit from outside of a log that the group has is not refused, though the stream is no longer known; for a
 * log that is new to the group the stream has to be known. */
static void outsider_commits_what_the_group_has(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_group *group = leat_group_create("natives", LEAT_GROUPS_ORDERED);
    assert_non_null(group);
    assert_non_null(leat_group_log_add(group, (struct leat_log_ref){9, 0, 0}));
    leat_group_bytes_count(group);
    leat_groups_group_add(home->groups, group);
    for (uint32_t log = 0; log < 2; log++) {
        const struct leat_groups_offset row = {.log = {9, 0, log}, .group = -1, .offset = 5};
        struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "natives", &STREAM, 1);
        c.commits = &row;
        c.commit_count = 1;
        assert_int_equal(ask(home, &c), log ? LEAT_E_UNKNOWN_LOG : LEAT_OK);
    }
    /* Who adds nothing is not who made the group. */
    group->maker = 0;
    for (uint32_t log = 0; log < 2; log++) {
        const struct leat_groups_offset row = {
            .log = {log ? STREAM : 9, 0, 0}, .group = -1, .offset = 6};
        struct leat_groups_request c = native_request(LEAT_GROUPS_COMMIT, "natives", &STREAM, 1);
        c.address = 9;
        c.commits = &row;
        c.commit_count = 1;
        assert_int_equal(ask(home, &c), LEAT_OK);
        assert_int_equal(group->maker, log ? 9 : 0);
    }
    leat_groups_group_remove(home->groups, "natives");
    home_free(home);
}

/* Goal: each address, however small its number, has no more memory of a node than is left beside it. */
static void memory_of_each_address_counts(void **state)
{
    (void)state;
    static struct leat_groups_room room;
    for (uint64_t address = 1; address < 4; address++) {
        memset(&room, 0, sizeof room);
        room.bytes_max = 1000;
        room.number = 1;
        leat_groups_room_count(&room, address, 0, 400);
        for (uint64_t more = 0; more < 601; more++)
            assert_int_equal(leat_groups_room_has(&room, address, more),
                             leat_share_has(400, 400, 1000, more));
        assert_true(leat_groups_room_has(&room, 0, 600));
        assert_false(leat_groups_room_has(&room, 0, 601));
    }
}

/* Goal: a group that changes between the two protocols has the same mode, generation and offsets after a start that
 * reads its records. */
static void group_that_changes_its_protocol_is_the_same_after_a_start(void **state)
{
    (void)state;
    struct home *home = calm_home();
    for (uint32_t round = 0; round < 3; round++) {
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
        come_and_go(home, "readers", LEAT_GROUPS_ORDERED);
        home_restart(home);
        const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
        assert_int_equal(group->mode, LEAT_GROUPS_ORDERED);
        assert_null(group->classic);
        uint32_t before = group->generation;
        uint32_t generation = single(home, "", member);
        assert_int_equal(generation, before + 1);
        assert_int_equal(commit(home, member, generation, round, 5, "n"), LEAT_OK);
        home_restart(home);
        group = leat_groups_group_find(home->groups, "readers");
        assert_int_equal(group->mode, LEAT_GROUPS_CLASSIC);
        assert_int_equal(group->member_count, 0);
        assert_non_null(group->classic);
        assert_int_equal(group->generation, generation);
        assert_int_equal(beat(home, member, "", generation), LEAT_OK);
        assert_int_equal(leave(home, member, ""), LEAT_OK);
        home_run(home, 10 * MS);
        for (uint32_t log = 0; log <= round; log++)
            assert_int_equal(fetched(home, log, "n"), 5);
    }
    home_free(home);
}

/* Goal: a stored member has as many protocols, with names as long, as a member may say. */
static void stored_protocols_are_those_of_a_join(void **state)
{
    (void)state;
    static uint8_t bytes[16 * 1024];
    static char name[LEAT_CLASSIC_TEXT_BYTES_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    static const struct {
        uint32_t count, bytes;
        bool reads;
    } rows[] = {{1, 255, true}, {16, 255, true}, {1, 256, false},
                {17, 5, false}, {2, 256, false}, {0, 0, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct leat_classic_protocol protocols[17];
        const struct leat_classic_call call = {.protocols = protocols,
                                               .protocol_count = rows[i].count};
        for (unsigned p = 0; p < rows[i].count; p++)
            protocols[p] = (struct leat_classic_protocol){{name, rows[i].bytes}, text("m")};
        struct leat_classic *classic = leat_classic_create();
        struct leat_classic_member *member = leat_classic_member_add(classic);
        assert_non_null(member);
        memcpy(member->id, "one", 4);
        assert_int_equal(leat_classic_facts_set(classic, member, &call), LEAT_OK);
        struct leat_msg_writer writer;
        struct leat_msg_reader reader;
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_classic_encode(&writer, classic, true);
        leat_classic_destroy(&classic);
        leat_msg_reader_init(&reader, bytes, writer.used);
        classic = leat_classic_decode(&reader);
        assert_int_equal(classic != NULL, rows[i].reads);
        leat_classic_destroy(&classic);
    }
}

/* The open batch has room for so many bytes, and waits while an earlier append is under way. */
static void batch_leave(struct home *home, size_t bytes)
{
    static const uint8_t zeros[LEAT_GROUPS_BATCH_BYTES_MAX / 2];
    struct leat_groups *groups = home->groups;
    home->mute = true;
    for (unsigned i = 0; i < 2; i++) {
        leat_groups_nothing_add(groups);
        if (i == 0) leat_groups_append_try(groups);
    }
    for (size_t step = sizeof zeros; step > 0; step /= 2)
        while (leat_groups_record_fits(groups, bytes + step + 64)) {
            nothing_of(groups, zeros, (uint32_t)step);
        }
    assert_true(leat_groups_record_fits(groups, bytes));
}

/* Goal: a commit needs room in the batch for the record of its group only where the group may be new: a classic one. */
static void commit_has_room_for_its_group(void **state)
{
    (void)state;
    for (unsigned classic = 0; classic < 2; classic++) {
        struct home *home = calm_home();
        const struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .group = -1, .offset = 5};
        come_and_go(home, "readers", LEAT_GROUPS_ORDERED);
        batch_leave(home, 2000);
        struct ask_group *c = ask_new(LEAT_GROUPS_COMMIT, "", LEAT_CLASSIC_GENERATION_NONE);
        if (!classic) c->r.classic = NULL;
        c->r.commits = &row;
        c->r.commit_count = 1;
        start(home, c);
        assert_int_equal(c->answered, classic);
        home->mute = false;
        await(home, c);
        assert_int_equal(rc_of(c), classic ? LEAT_E_AGAIN : LEAT_OK);
        home_free(home);
    }
}

/* Goal: the deletion of offsets needs room for each of its rows. */
static void deletion_of_offsets_has_room_for_its_rows(void **state)
{
    (void)state;
    const size_t takes = RECORD_HEAD_BYTES + 3 * (1 + 3 + 5 + 1 + 9 + 3);
    for (unsigned fits = 0; fits < 2; fits++) {
        struct home *home = calm_home();
        struct leat_log_ref logs[3];
        for (uint32_t i = 0; i < 3; i++) {
            logs[i] = (struct leat_log_ref){STREAM, i, 0};
            assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, i, 5, ""), LEAT_OK);
        }
        batch_leave(home, takes);
        struct leat_groups_request drop =
            native_request(LEAT_GROUPS_OFFSETS_DELETE, "readers", &STREAM, 1);
        drop.logs = logs;
        drop.log_count = 3;
        const struct leat_groups *groups = home->groups;
        while (!fits && leat_groups_record_fits(groups, takes)) {
            leat_groups_nothing_add(home->groups);
        }
        if (fits) home->mute = false;
        assert_int_equal(ask(home, &drop), fits ? LEAT_OK : LEAT_E_AGAIN);
        home->mute = false;
        home_free(home);
    }
}

static struct leat_group *group_put(struct home *home, const char *name, uint64_t maker)
{
    struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
    assert_non_null(group);
    group->maker = maker;
    leat_groups_group_add(home->groups, group);
    return group;
}

/* Goal: an address gets no more of a home's groups and of the home's table than its share of the free part, counted
 * from the address's first group and first byte on. */
static void groups_and_bytes_of_an_address_count(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_groups *groups = home->groups;
    const size_t most = LEAT_GROUPS_TABLE_BYTES_MAX;
    uint64_t own[2] = {0}, own_bytes[2] = {0}, all_bytes = 16;
    for (uint32_t i = 0; i < LEAT_GROUPS_PER_HOME_MAX; i++) {
        for (uint32_t a = 0; a < 2; a++) {
            assert_int_equal(
                leat_groups_lacks(groups, 1 + a, 1, 0, 0) == NULL,
                leat_share_has(own[a], groups->group_count, LEAT_GROUPS_PER_HOME_MAX, 1));
            uint64_t free_bytes = most - all_bytes; /* where it ends to have so many */
            uint64_t half = own_bytes[a] < free_bytes ? (free_bytes - own_bytes[a]) / 2 : 0;
            for (uint64_t more = half > 2 ? half - 2 : 1; more < half + 3; more++)
                assert_int_equal(leat_groups_lacks(groups, 1 + a, 0, more, 0) == NULL,
                                 leat_share_has(own_bytes[a], all_bytes, most, more));
        }
        uint32_t a = i % 3 == 2;
        char name[16];
        snprintf(name, sizeof name, "g%u", i);
        struct leat_group *group = group_put(home, name, 1 + a);
        group->bytes = most / 1100;
        own[a]++;
        own_bytes[a] += group->bytes;
        all_bytes += group->bytes;
    }
    groups->groups[0]->bytes =
        most; /* who needs none of it is not refused by a table that is too full */
    assert_null(leat_groups_lacks(groups, 0, 0, 0, 1));
    assert_non_null(leat_groups_lacks(groups, 0, 0, 1, 0));
    leat_groups_table_clear(groups);
    home_free(home);
}

/* Goal: idle groups of other addresses are evicted for an address that has no group, and only for such an address. */
static void idle_groups_of_others_stay_for_who_has_one(void **state)
{
    (void)state;
    for (unsigned has = 0; has < 2; has++) {
        struct home *home = calm_home();
        for (uint32_t i = 0; i < LEAT_GROUPS_PER_HOME_MAX; i++) {
            char name[16];
            snprintf(name, sizeof name, "g%u", i);
            struct leat_group *group = group_put(home, name, i == 0 && has ? 9 : 5);
            if (i > 0) continue;
            struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
            log->has_offset = true;
            leat_group_bytes_count(group);
        }
        struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "new", &STREAM, 1);
        join.address = 9;
        assert_int_equal(ask(home, &join), has ? LEAT_E_TOO_MANY : LEAT_OK);
        leat_mem_free(join.assigned);
        if (has) assert_int_equal(home->groups->group_count, LEAT_GROUPS_PER_HOME_MAX);
        leat_groups_table_clear(home->groups);
        home_free(home);
    }
}

/* Goal: the assignments of a group count for its maker while the group rebalances, and for no other address. */
static void assignments_count_for_the_maker_alone(void **state)
{
    (void)state;
    struct home *home = calm_home();
    struct leat_group *group = group_put(home, "shared", 1);
    group->mode = LEAT_GROUPS_CLASSIC;
    group->classic = leat_classic_create();
    group->classic->assigned_bytes = 4000;
    home->groups->options.group_bytes_max = 10000;
    /* Of 6,000 bytes that are free an unknown address may have all, another address half. The maker, which has 4,000
     * bytes, may have 1,000 more: as many as are free afterwards. */
    static const size_t most[] = {6000, 1000, 3000};
    for (uint64_t address = 0; address < 3; address++)
        for (size_t more = 0; more <= 12000; more += 100)
            assert_int_equal(leat_groups_members_have_room(home->groups, address, NULL, more),
                             more <= most[address]);
    leat_groups_table_clear(home->groups);
    home_free(home);
}

/* Goal: a group takes the same memory after it was stored and read, and what is destroyed is pointed at by nobody. */
static void stored_group_takes_the_same_memory(void **state)
{
    (void)state;
    static uint8_t bytes[2048];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL), *read;
    for (uint32_t log = 0; log < 4; log++) {
        struct leat_group_log *it = leat_group_log_add(group, (struct leat_log_ref){7, 0, log});
        for (uint64_t g = 1; g <= log; g++)
            assert_int_equal(leat_group_commit(group, it, (int64_t)g, 5, false), LEAT_OK);
        if (log == 2) assert_int_equal(leat_group_offset_note(it, 0, "note", 4), LEAT_OK);
    }
    leat_group_bytes_count(group);
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group, true);
    leat_msg_reader_init(&reader, bytes, writer.used);
    read = leat_group_decode(&reader);
    assert_non_null(read);
    assert_int_equal(read->bytes, group->bytes);
    assert_int_equal(read->memory_bytes, group->memory_bytes);
    leat_group_destroy(&group);
    leat_group_destroy(&read);
    assert_true(!group && !read);
    struct leat_classic *classic = leat_classic_create();
    leat_classic_destroy(&classic);
    assert_null(classic);
}

/* Goal: numbers of groups of segments are stored in pairs. */
static void stored_groups_of_segments_come_in_pairs(void **state)
{
    (void)state;
    uint8_t bytes[256];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
    assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, 0, 0}));
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group, true);
    leat_group_destroy(&group);
    for (uint8_t numbers = 0; numbers < 4; numbers++) { /* they come last */
        bytes[writer.used - 1] = (uint8_t)(0x90 + numbers);
        memcpy(bytes + writer.used, "\x05\x06\x07", 3);
        leat_msg_reader_init(&reader, bytes, writer.used + numbers);
        group = leat_group_decode(&reader);
        assert_int_equal(group != NULL, numbers % 2 == 0);
        leat_group_destroy(&group);
    }
}

/* Goal: the answer to LIST counts the memory of its rows and of their texts. */
static void list_takes_what_it_tells(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    (void)group_put(home, "natives", 0);
    (void)single(home, "", member);
    struct ask_group *list = ask_new(LEAT_GROUPS_LIST, "", 0);
    start(home, list);
    await(home, list);
    assert_int_equal(list->call.listed_count, 2);
    assert_int_equal(list->r.answer_bytes, 1 + 2 * sizeof(struct leat_classic_listed) +
                                               strlen("natives") + strlen("readers") +
                                               strlen("consumer"));
    ask_free(list);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_generation_leaves_no_logs),
        cmocka_unit_test(stream_that_is_too_large_takes_no_memory),
        cmocka_unit_test(stream_that_goes_takes_all_of_its_logs),
        cmocka_unit_test(stored_classic_group_is_whole),
        cmocka_unit_test(member_that_has_not_joined_is_not_stored),
        cmocka_unit_test(groups_of_segments_count_in_other_modes),
        cmocka_unit_test(stored_group_without_memory_is_none),
        cmocka_unit_test(gathered_record_is_not_acked),
        cmocka_unit_test(room_is_there_up_to_the_last_of_each),
        cmocka_unit_test(lower_commit_is_stored_as_what_stands),
        cmocka_unit_test(commit_is_not_larger_than_its_batch),
        cmocka_unit_test(outsider_commits_what_the_group_has),
        cmocka_unit_test(memory_of_each_address_counts),
        cmocka_unit_test(group_that_changes_its_protocol_is_the_same_after_a_start),
        cmocka_unit_test(stored_protocols_are_those_of_a_join),
        cmocka_unit_test(commit_has_room_for_its_group),
        cmocka_unit_test(deletion_of_offsets_has_room_for_its_rows),
        cmocka_unit_test(groups_and_bytes_of_an_address_count),
        cmocka_unit_test(idle_groups_of_others_stay_for_who_has_one),
        cmocka_unit_test(assignments_count_for_the_maker_alone),
        cmocka_unit_test(stored_group_takes_the_same_memory),
        cmocka_unit_test(stored_groups_of_segments_come_in_pairs),
        cmocka_unit_test(list_takes_what_it_tells),
    };
    return cmocka_run_group_tests_name("groups-kept", tests, NULL, nothing_left);
}
