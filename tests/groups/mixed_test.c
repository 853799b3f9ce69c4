/* SPDX-License-Identifier: Apache-2.0 */
/* Native groups and groups of Kafka clients under one name: the answers to a client of the other protocol, and how a
 * group's log counts. */
#include "classic_rig.h"
#include "groups/internal.h"
#include "wire/message.h"

static const uint32_t STREAM = 7;

/* A native member of "readers"; its id, where it is taken. */
static leat_err native_join(struct home *home, enum leat_groups_mode mode, char *out_member)
{
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    r.mode = mode;
    r.session_ms = 2000;
    leat_err rc = ask(home, &r);
    leat_mem_free(r.assigned);
    snprintf(out_member, LEAT_GROUPS_MEMBER_BYTES_MAX + 1, "%s", r.member);
    return rc;
}

static leat_err native_leave(struct home *home, const char *member)
{
    struct leat_groups_request r = {.kind = LEAT_GROUPS_LEAVE};
    snprintf(r.member, sizeof r.member, "%s", member);
    return ask(home, &r);
}

/* Goal: each request of a Kafka client to a native group with members is refused by name, with and without an instance
 * id or a member id; a commit of the client changes nothing. */
static void client_of_groups_is_refused_by_a_native_set(void **state)
{
    (void)state;
    static const enum leat_groups_mode modes[] = {LEAT_GROUPS_ORDERED, LEAT_GROUPS_PARALLEL};
    for (unsigned m = 0; m < 2; m++) {
        struct home *home = calm_home();
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
        assert_int_equal(native_join(home, modes[m], member), LEAT_OK);
        const char *names[] = {"", "somebody", member};
        for (unsigned n = 0; n < 3; n++)
            for (unsigned instance = 0; instance < 2; instance++) {
                const char *its = instance ? "an instance" : "";
                assert_int_equal(answer_of(home, join_new(names[n], its, "m")),
                                 LEAT_E_OTHER_PROTOCOL);
                assert_int_not_equal(beat(home, names[n], its, 1), LEAT_OK);
                assert_int_not_equal(leave(home, names[n], its), LEAT_OK);
                assert_int_not_equal(answer_of(home, sync_new(names[n], 1)), LEAT_OK);
            }
        assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, 5, "note"),
                         LEAT_E_OTHER_PROTOCOL);
        assert_int_equal(commit(home, member, 1, 0, 5, "note"), LEAT_E_OTHER_PROTOCOL);
        struct leat_groups_request beats = {.kind = LEAT_GROUPS_HEARTBEAT, .generation = 1};
        memcpy(beats.member, member, sizeof member);
        assert_int_equal(ask(home, &beats), LEAT_OK); /* it is a member still */
        home_free(home);
    }
}

/* Goal: a classic group with members takes no native member. A classic group without members takes native members that
 * read in order, and becomes a native group. */
static void native_member_is_refused_by_a_group(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1], native[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    assert_int_equal(commit(home, member, generation, 0, 5, ""), LEAT_OK);
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(native_join(home, LEAT_GROUPS_PARALLEL, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(beat(home, member, "", generation), LEAT_OK);
    assert_int_equal(leave(home, member, ""), LEAT_OK);
    assert_int_equal(native_join(home, LEAT_GROUPS_PARALLEL, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(fetched(home, 0, NULL), 5);
    assert_int_equal(native_join(home, LEAT_GROUPS_ORDERED, native), LEAT_OK);
    assert_int_equal(fetched(home, 0, NULL), 5); /* it goes on where the group was */
    assert_int_equal(answer_of(home, join_new("", "", "m")), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(native_leave(home, native), LEAT_OK);
    home_run(home, 10 * 1000);
    (void)single(home, "", member); /* and back */
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

/* Goal: a log counts as much as it takes in a record at most, whatever its numbers are. */
static void log_counts_what_its_numbers_take(void **state)
{
    (void)state;
    static const uint32_t values[] = {0,         127, 128, 255, 256, 65535, 65536, UINT32_MAX - 1,
                                      UINT32_MAX};
    static const enum leat_groups_mode modes[] = {LEAT_GROUPS_ORDERED, LEAT_GROUPS_PARALLEL,
                                                  LEAT_GROUPS_CLASSIC};
    for (unsigned m = 0; m < 3; m++) {
        struct leat_group *group = leat_group_create("readers", modes[m]);
        assert_non_null(group);
        size_t least = leat_group_log_bytes(group, (struct leat_log_ref){0, 0, 0});
        assert_int_equal(least, 1 + 3 + 5 + 1 + 9 + (modes[m] == LEAT_GROUPS_PARALLEL ? 21 : 3));
        for (unsigned v = 0; v < sizeof values / sizeof *values; v++) {
            uint8_t bytes[16];
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, bytes, sizeof bytes);
            leat_msg_write_u64(&writer, values[v]);
            size_t takes = writer.used - 1;
            struct leat_log_ref refs[] = {{values[v], 0, 0}, {0, values[v], 0}, {0, 0, values[v]}};
            for (unsigned r = 0; r < 3; r++)
                assert_int_equal(leat_group_log_bytes(group, refs[r]), least + takes);
        }
        leat_group_destroy(&group);
    }
}

/* Goal: a segment group is finished where the log's core says that the committed offset is the segment group's end.
 * Where the core can't be asked, the offset stands as it came, and the records after it are read. */
static void group_whose_log_can_not_be_asked_is_not_finished(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        uint64_t offset, stands;
        bool finished;
    } cases[] = {{LEAT_OK, 99, 99, false},
                 {LEAT_OK, 100, 0, true},
                 {LEAT_E_NOT_FOUND, 99, 99, false},
                 {LEAT_E_TIMEOUT, 100, 100, false},
                 {LEAT_E_NOT_OWNER, LEAT_SEGMENT_GROUP_DONE, 0, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct home *home = calm_home();
        char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
        assert_int_equal(native_join(home, LEAT_GROUPS_PARALLEL, member), LEAT_OK);
        struct leat_groups_offset row = {.log = {STREAM, 0, 0}, .offset = cases[c].offset};
        struct leat_groups_request r = {
            .kind = LEAT_GROUPS_COMMIT, .generation = 1, .commits = &row, .commit_count = 1};
        memcpy(r.member, member, sizeof member);
        home->group_rc = cases[c].rc;
        assert_int_equal(ask(home, &r), LEAT_OK);
        struct leat_groups_request f = {.kind = LEAT_GROUPS_FETCH,
                                        .answer_bytes_max = SIZE_MAX,
                                        .logs = &row.log,
                                        .log_count = 1};
        assert_int_equal(ask(home, &f), LEAT_OK);
        assert_int_equal(f.offset_count, 1);
        assert_int_equal(f.offsets[0].group, cases[c].finished);
        assert_int_equal(f.offsets[0].offset, cases[c].stands);
        leat_mem_free(f.offsets);
        home_free(home);
    }
}

/* Goal: a sync that names another protocol is refused, however short the names are. */
static void sync_of_another_protocol_is_refused_by_its_first_byte(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member);
    static const char *const names[][2] = {{"", ""}, {"consumer", "range"}, {"c", ""}, {"", "r"}};
    for (unsigned n = 0; n < 4; n++) {
        struct ask_group *sync = sync_new(member, generation);
        sync->call.protocol_type = text(names[n][0]);
        sync->call.protocol = text(names[n][1]);
        assert_int_equal(answer_of(home, sync), n < 2 ? LEAT_OK : LEAT_E_OTHER_PROTOCOL);
    }
    home_free(home);
}

/* Goal: a group counts the memory of all that it has room for. */
static void group_counts_the_memory_of_its_logs(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    leat_group_bytes_count(group);
    size_t before = group->memory_bytes;
    for (uint32_t i = 0; i < 100; i++) {
        assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, i, 0}));
        leat_group_bytes_count(group);
        size_t least = group->log_room * sizeof *group->logs;
        assert_in_range(group->memory_bytes - before, least + 1, least + 64); /* and its block */
    }
    leat_group_destroy(&group);
}

static struct leat_group *decoded(const uint8_t *from, size_t count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, from, count);
    struct leat_group *group = leat_group_decode(&reader);
    assert_int_equal(group == NULL, reader.failed);
    return group;
}

/* Goal: a stored group whose members or logs have another number of fields is refused, and so is a stored group for
 * which memory is short at any place: half of a group would be taken for the whole. */
static void stored_set_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    static uint8_t bytes[4096];
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
    for (int64_t segment_group = 1; segment_group < 5; segment_group++)
        assert_int_equal(leat_group_commit(group, log, segment_group, 10, true), LEAT_OK);
    struct leat_group_member *member = leat_group_member_add(group);
    assert_non_null(member);
    memcpy(member->id, "m", 2);
    member->session_ms = 100;
    member->stream_count = 1;
    member->streams[0] = 7;
    leat_group_bytes_count(group);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group, true);
    leat_group_destroy(&group);
    leat_mem_fail_at(0);
    group = decoded(bytes, writer.used);
    uint64_t allocations = leat_mem_calls();
    assert_non_null(group);
    assert_int_equal(group->logs[0].group_count, 4);
    leat_group_destroy(&group);
    assert_true(allocations > 3);
    for (uint64_t n = 1; n <= allocations; n++) {
        leat_mem_fail_at(n);
        assert_null(decoded(bytes, writer.used));
        leat_mem_fail_at(0);
    }
    unsigned heads = 0;
    for (uint32_t at = 0; at < writer.used; at++) {
        const uint8_t head = bytes[at];
        bool of_member = head == 0x94 && bytes[at + 1] == 0xa1, of_log = head == 0x99;
        for (int by = -1; (of_member || of_log) && by <= 1; by += 2) {
            bytes[at] = (uint8_t)(head + by);
            assert_null(decoded(bytes, writer.used));
        }
        bytes[at] = head;
        heads += of_member || of_log;
    }
    assert_int_equal(heads, 2);
}

/* Does a home go on that reads such a stored change? */
static bool change_reads(const char *value, uint32_t value_bytes)
{
    struct home *home = calm_home();
    home_replay(home, value, value_bytes);
    bool reads = leat_groups_broken(home->groups) == NULL;
    home_drop(home);
    return reads;
}

/* Goal: a stored change that can't be read, or is of no kind that there is, leaves no table that goes on as if there
 * had been none. */
static void stored_change_that_does_not_read_breaks_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint32_t bytes;
        bool reads;
    } changes[] = {{"\x92\x03\xa1s", 4, true}, /* no group of that name: nothing changes */
                   {"\x93\x02\xa1s\x91\x95\x01\x01\x01\x01\x01", 11, true},
                   {"\x93\x02\xa1s\x91\x96\x01\x01\x01\x01\x01\x01", 12, false},
                   /* A classic group; its maker, where there is one more field. */
                   {"\x94\x04\xa1s\x01\x95\xa0\xa0\xa0\x00\x90", 11, true},
                   {"\x95\x04\xa1s\x01\x95\xa0\xa0\xa0\x00\x90\x09", 12, true},
                   {"\x95\x04\xa1s\x01\x95\xa0\xa0\xa0\x00\x90", 11, false},
                   {"", 0, false},
                   {"\xc1", 1, false},
                   {"\x92", 1, false},
                   {"\x92\xa1s", 3, false},
                   {"\x92\x05", 2, false},
                   {"\x92\x03", 2, false}};
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++)
        assert_int_equal(change_reads(changes[c].value, changes[c].bytes), changes[c].reads);
}

/* Goal: a stored change of a group names it by 249 bytes at most, of whatever kind it is: what is longer is none. */
static void stored_change_of_a_name_too_long_breaks_the_table(void **state)
{
    (void)state;
    static char name[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof name);
    for (uint32_t kind = RECORD_COMMIT; kind <= RECORD_DELETE; kind++)
        for (uint32_t bytes = LEAT_GROUPS_NAME_BYTES_MAX; bytes <= sizeof name; bytes++) {
            uint8_t value[512];
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, value, sizeof value);
            leat_msg_write_array(&writer, kind == RECORD_COMMIT ? 3 : 2);
            leat_msg_write_u64(&writer, kind);
            leat_msg_write_string(&writer, name, bytes);
            if (kind == RECORD_COMMIT) leat_msg_write_array(&writer, 0);
            assert_int_equal(change_reads((const char *)value, (uint32_t)writer.used),
                             bytes <= LEAT_GROUPS_NAME_BYTES_MAX);
        }
    for (uint32_t bytes = LEAT_GROUPS_NAME_BYTES_MAX; bytes <= sizeof name; bytes++) {
        uint8_t value[1024];
        struct leat_msg_writer writer;
        struct leat_classic *classic = leat_classic_create();
        assert_non_null(classic);
        leat_msg_writer_init(&writer, value, sizeof value);
        leat_msg_write_array(&writer, 4);
        leat_msg_write_u64(&writer, RECORD_CLASSIC_GROUP);
        leat_msg_write_string(&writer, name, bytes);
        leat_msg_write_u64(&writer, 1);
        leat_classic_encode(&writer, classic, true);
        leat_classic_destroy(&classic);
        assert_int_equal(change_reads((const char *)value, (uint32_t)writer.used),
                         bytes <= LEAT_GROUPS_NAME_BYTES_MAX);
    }
}

/* Goal: a member that has not joined votes for no protocol; the metadata of a protocol that the member does not have is
 * empty. */
static void member_that_has_not_joined_has_no_vote(void **state)
{
    (void)state;
    struct leat_classic_protocol range = {text("range"), text("m")};
    const struct leat_classic_call call = {.protocols = &range, .protocol_count = 1};
    struct leat_classic *classic = leat_classic_create();
    for (unsigned i = 0; i < 2; i++) {
        struct leat_classic_member *member = leat_classic_member_add(classic);
        assert_non_null(member);
        member->pending = i == 0;
        if (i) assert_int_equal(leat_classic_facts_set(classic, member, &call), LEAT_OK);
    }
    leat_classic_protocol_pick(classic);
    assert_string_equal(classic->protocol, "range");
    struct leat_msg_string none = leat_classic_metadata(classic, classic->members[0]);
    assert_int_equal(none.bytes, 0);
    leat_classic_destroy(&classic);
}

/* Goal: an offset without metadata holds no memory for it. */
static void offset_without_metadata_takes_no_memory(void **state)
{
    (void)state;
    struct leat_group_log log = {0};
    assert_int_equal(leat_group_offset_note(&log, 3, "note", 4), LEAT_OK);
    assert_memory_equal(log.metadata, "note", 4);
    assert_int_equal(leat_group_offset_note(&log, 2, NULL, 0), LEAT_OK);
    assert_null(log.metadata);
    assert_int_equal(log.metadata_bytes, 0);
    assert_int_equal(log.leader_epoch_plus_1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_of_groups_is_refused_by_a_native_set),
        cmocka_unit_test(native_member_is_refused_by_a_group),
        cmocka_unit_test(group_whose_log_can_not_be_asked_is_not_finished),
        cmocka_unit_test(sync_of_another_protocol_is_refused_by_its_first_byte),
        cmocka_unit_test(group_counts_the_memory_of_its_logs),
        cmocka_unit_test(stored_set_is_taken_whole_or_not_at_all),
        cmocka_unit_test(stored_change_that_does_not_read_breaks_the_table),
        cmocka_unit_test(stored_change_of_a_name_too_long_breaks_the_table),
        cmocka_unit_test(log_counts_what_its_numbers_take),
        cmocka_unit_test(member_that_has_not_joined_has_no_vote),
        cmocka_unit_test(offset_without_metadata_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
