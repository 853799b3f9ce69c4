/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of a table, value by value: each value comes back; impossible or damaged values are refused; and the
 * form is the form of earlier versions. */
#include "groups/stored.h"
#include "groups/table.h"
#include "rig.h"

static struct leat_xoshiro rng;

static uint64_t below(uint64_t n)
{
    return leat_xoshiro_below(&rng, n);
}

enum { BYTES = 64 * 1024 };
static uint8_t bytes[BYTES], again[BYTES];

static uint32_t encode(const struct leat_group *group, uint8_t *out)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, BYTES);
    leat_group_encode(&writer, group, true);
    assert_false(writer.overflow);
    return writer.used;
}

static struct leat_group *decode(const uint8_t *from, size_t count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, from, count);
    struct leat_group *group = leat_group_decode(&reader);
    assert_int_equal(group == NULL, reader.failed);
    return group;
}

/* Values at the ends of what they may be, as often as not. */
static uint64_t number(uint64_t most)
{
    return below(2) ? most : below(3) ? most / 2 : 0;
}

static struct leat_msg_string words(uint64_t most)
{
    static const char text[LEAT_CLASSIC_TEXT_BYTES_MAX + 1] = "a text of some length";
    return (struct leat_msg_string){text, (uint32_t)(below(2) ? most : below(most + 1))};
}

static void fill_group(struct leat_group *group)
{
    struct leat_classic *classic = leat_classic_create();
    group->classic = classic;
    snprintf(classic->protocol_type, sizeof classic->protocol_type, "%0255u", 1);
    snprintf(classic->protocol, sizeof classic->protocol, "%0255u", 2);
    snprintf(classic->leader, sizeof classic->leader, "%063u", 3);
    leat_classic_assignments_drop(classic); /* counts its bytes */
    for (uint64_t i = below(4); i > 0; i--) {
        struct leat_classic_protocol protocols[LEAT_CLASSIC_PROTOCOLS_MAX];
        struct leat_classic_call call = {.protocols = protocols,
                                         .protocol_count =
                                             (uint32_t)number(LEAT_CLASSIC_PROTOCOLS_MAX),
                                         .instance = words(LEAT_CLASSIC_TEXT_BYTES_MAX),
                                         .client = words(LEAT_CLASSIC_TEXT_BYTES_MAX),
                                         .host = words(LEAT_CLASSIC_TEXT_BYTES_MAX)};
        for (uint32_t p = 0; p < call.protocol_count; p++)
            protocols[p] =
                (struct leat_classic_protocol){words(LEAT_CLASSIC_TEXT_BYTES_MAX), words(99)};
        struct leat_classic_member *member = leat_classic_member_add(classic);
        snprintf(member->id, sizeof member->id, "%063u", (unsigned)i);
        member->session_ms = (uint32_t)number(UINT32_MAX);
        member->rebalance_ms = (uint32_t)number(UINT32_MAX);
        member->address = number(UINT64_MAX);
        assert_int_equal(leat_classic_facts_set(classic, member, &call), LEAT_OK);
        assert_int_equal(leat_classic_assignment_set(classic, member, words(200)), LEAT_OK);
        classic->phase = (enum leat_classic_phase)below(LEAT_CLASSIC_STABLE + 1);
    }
}

static struct leat_group *any_set(enum leat_groups_mode mode)
{
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%0249u", 1);
    struct leat_group *group = leat_group_create(below(2) ? name : "r", mode);
    group->generation = (uint32_t)number(LEAT_GROUP_GENERATION_MAX);
    group->maker = number(UINT64_MAX);
    for (uint64_t i = mode == LEAT_GROUPS_CLASSIC ? 0 : below(4); i > 0; i--) {
        struct leat_group_member *member = leat_group_member_add(group);
        snprintf(member->id, sizeof member->id, "%063u", (unsigned)i);
        member->session_ms = (uint32_t)number(UINT32_MAX);
        member->stream_count = (uint32_t)number(LEAT_GROUPS_STREAMS_MAX);
        for (uint32_t s = 0; s < member->stream_count; s++)
            member->streams[s] = (uint32_t)number(UINT32_MAX);
    }
    for (uint64_t i = below(6); i > 0; i--) {
        struct leat_group_log *log = leat_group_log_add(
            group, (struct leat_log_ref){(uint32_t)number(UINT32_MAX), (uint32_t)below(70000), 0});
        log->owner = (uint32_t)number(UINT32_MAX);
        uint64_t first = number(UINT64_MAX / 2);
        if (below(3) == 0) (void)leat_group_skip(log, first);
        log->from_group = log->first_group;
        if (mode == LEAT_GROUPS_PARALLEL) {
            for (uint64_t g = below(4); g > 0; g--)
                assert_int_equal(leat_group_commit(group, log, (int64_t)(log->first_group + g),
                                                   number(UINT64_MAX), false),
                                 LEAT_OK);
            continue;
        }
        log->has_offset = below(2);
        log->offset = number(UINT64_MAX - 1);
        if (below(2))
            assert_int_equal(leat_group_offset_note(log, (uint32_t)number(UINT32_MAX), "metadata",
                                                    (uint32_t)number(8)),
                             LEAT_OK);
    }
    if (mode == LEAT_GROUPS_CLASSIC) fill_group(group);
    leat_group_bytes_count(group);
    return group;
}

static bool same_text(struct leat_msg_string a, struct leat_msg_string b)
{
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

static void compare_groups(const struct leat_classic *a, const struct leat_classic *b)
{
    assert_string_equal(a->protocol_type, b->protocol_type);
    assert_string_equal(a->protocol, b->protocol);
    assert_string_equal(a->leader, b->leader);
    assert_int_equal(b->phase, a->member_count ? a->phase : LEAT_CLASSIC_EMPTY);
    assert_int_equal(a->member_count, b->member_count);
    assert_int_equal(a->stored_bytes, b->stored_bytes);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    assert_int_equal(b->assigned_bytes, leat_classic_assigned_bytes(a));
    for (uint32_t i = 0; i < a->member_count; i++) {
        const struct leat_classic_member *x = a->members[i], *y = b->members[i];
        assert_string_equal(x->id, y->id);
        assert_int_equal(x->session_ms, y->session_ms);
        assert_int_equal(x->rebalance_ms, y->rebalance_ms);
        assert_int_equal(x->address, y->address);
        assert_true(same_text(x->instance, y->instance));
        assert_true(same_text(x->client, y->client));
        assert_true(same_text(x->host, y->host));
        assert_int_equal(x->protocol_count, y->protocol_count);
        for (uint32_t p = 0; p < x->protocol_count; p++) {
            assert_true(same_text(x->protocols[p].name, y->protocols[p].name));
            assert_true(same_text(x->protocols[p].metadata, y->protocols[p].metadata));
        }
        assert_int_equal(x->assignment_bytes, y->assignment_bytes);
        if (x->assignment_bytes)
            assert_memory_equal(x->assignment, y->assignment, x->assignment_bytes);
    }
}

static void compare(const struct leat_group *a, const struct leat_group *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->next_serial, b->next_serial);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->maker, b->maker);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->member_count, b->member_count);
    for (uint32_t i = 0; i < a->member_count; i++) {
        assert_string_equal(a->members[i].id, b->members[i].id);
        assert_int_equal(a->members[i].serial, b->members[i].serial);
        assert_int_equal(a->members[i].session_ms, b->members[i].session_ms);
        assert_int_equal(a->members[i].stream_count, b->members[i].stream_count);
        assert_memory_equal(a->members[i].streams, b->members[i].streams,
                            sizeof a->members[i].streams);
    }
    assert_int_equal(a->log_count, b->log_count);
    for (uint32_t i = 0; i < a->log_count; i++) {
        const struct leat_group_log *x = &a->logs[i], *y = &b->logs[i];
        assert_true(leat_log_ref_equal(x->log, y->log));
        assert_int_equal(x->owner, y->owner);
        assert_int_equal(x->has_offset, y->has_offset);
        assert_int_equal(x->offset, y->offset);
        assert_int_equal(x->first_group, y->first_group);
        assert_int_equal(x->from_group, y->from_group);
        assert_int_equal(x->group_count, y->group_count);
        for (uint32_t g = 0; g < x->group_count; g++) {
            assert_int_equal(x->groups[g].group, y->groups[g].group);
            assert_int_equal(x->groups[g].offset, y->groups[g].offset);
        }
        assert_int_equal(x->leader_epoch_plus_1, y->leader_epoch_plus_1);
        assert_int_equal(x->metadata_bytes, y->metadata_bytes);
        if (x->metadata_bytes) assert_memory_equal(x->metadata, y->metadata, x->metadata_bytes);
    }
    assert_int_equal(a->classic != NULL, b->classic != NULL);
    if (a->classic) compare_groups(a->classic, b->classic);
}

/* Every value comes back; it takes no more than was reckoned; and half of it is nothing. */
static void table_every_stored_value_comes_back(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 600; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct leat_group *group = any_set((enum leat_groups_mode)(walk % 3));
        uint32_t used = encode(group, bytes);
        assert_true(used <= group->bytes + (group->classic ? group->classic->stored_bytes : 0));
        struct leat_group *back = decode(bytes, used);
        assert_non_null(back);
        compare(group, back);
        assert_int_equal(encode(back, again), used);
        assert_memory_equal(bytes, again, used);
        leat_group_destroy(&back);
        for (uint32_t cut = 0; walk % 20 < 3 && cut < used; cut++)
            assert_null(decode(bytes, cut));
        leat_group_destroy(&group);
    }
}

/* Bytes of anybody's: whatever is taken is a table that can be stored again. */
static void table_spoilt_bytes_are_refused_or_stored_again(void **state)
{
    (void)state;
    unsigned taken = 0;
    for (unsigned walk = 0; walk < 300; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct leat_group *group = any_set((enum leat_groups_mode)(walk % 3));
        uint32_t used = encode(group, bytes);
        leat_group_destroy(&group);
        for (unsigned turn = 0; turn < 60; turn++) {
            uint64_t at = below(2) ? below(used) : below(used < 40 ? used : 40);
            uint8_t before = bytes[at];
            bytes[at] = (uint8_t)below(256);
            group = decode(bytes, used);
            bytes[at] = before;
            if (!group) continue;
            taken++;
            uint32_t reckoned =
                (uint32_t)(group->bytes + (group->classic ? group->classic->stored_bytes : 0));
            assert_true(encode(group, again) <= reckoned);
            leat_group_destroy(&group);
        }
    }
    assert_true(taken > 1000);
}

/* ---- stored values that cannot be ---- */

/* A classic group of one member, and its stored values. */
struct stored_classic {
    uint32_t group_fields, phase, member_fields, texts, name_bytes;
};

static bool classic_reads(struct stored_classic stored)
{
    static const char text[512] = "t";
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    leat_msg_writer_init(&writer, bytes, BYTES);
    leat_msg_write_array(&writer, stored.group_fields);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_bin(&writer, "x", 1);
    leat_msg_write_u64(&writer, stored.phase);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, stored.member_fields);
    leat_msg_write_bin(&writer, "member", 6);
    leat_msg_write_u64(&writer, 1000);
    leat_msg_write_u64(&writer, 2000);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_bin(&writer, "x", 1);
    leat_msg_write_array(&writer, stored.texts);
    for (uint32_t i = 0; i < stored.texts; i++)
        leat_msg_write_bin(&writer, text, stored.name_bytes);
    leat_msg_write_bin(&writer, "assigned", 8);
    if (stored.member_fields != 8) leat_msg_write_u64(&writer, 9);
    assert_false(writer.overflow);
    leat_msg_reader_init(&reader, bytes, writer.used);
    struct leat_classic *classic = leat_classic_decode(&reader);
    assert_int_equal(classic == NULL, reader.failed);
    bool whole = classic && leat_msg_read_done(&reader);
    leat_classic_destroy(&classic);
    return whole;
}

/* So many members, each with a name and nothing else. */
static bool crowd_reads(uint32_t members)
{
    static uint8_t crowd[64 * 1024];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    leat_msg_writer_init(&writer, crowd, sizeof crowd);
    leat_msg_write_array(&writer, 5);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_bin(&writer, "x", 1);
    leat_msg_write_u64(&writer, LEAT_CLASSIC_STABLE);
    leat_msg_write_array(&writer, members);
    for (uint32_t m = 0; m < members; m++) {
        leat_msg_write_array(&writer, 8);
        leat_msg_write_bin(&writer, "member", 6);
        leat_msg_write_u64(&writer, 1000);
        leat_msg_write_u64(&writer, 2000);
        for (unsigned i = 0; i < 3; i++)
            leat_msg_write_bin(&writer, "", 0);
        leat_msg_write_array(&writer, 0);
        leat_msg_write_bin(&writer, "", 0);
    }
    assert_false(writer.overflow);
    leat_msg_reader_init(&reader, crowd, writer.used);
    struct leat_classic *classic = leat_classic_decode(&reader);
    bool whole = classic && classic->member_count == members && leat_msg_read_done(&reader);
    leat_classic_destroy(&classic);
    return whole;
}

static void table_stored_group_that_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_true(crowd_reads(LEAT_GROUPS_MEMBERS_MAX));
    assert_false(crowd_reads(LEAT_GROUPS_MEMBERS_MAX + 1));
    const struct stored_classic fine[] = {{5, 3, 8, 2, 5},
                                          {5, 0, 9, 0, 5},
                                          {5, 3, 9, 2, 0},
                                          {5, 3, 9, 32, 5},
                                          {5, 1, 9, 2, 255}},
                                wrong[] = {{4, 3, 8, 2, 5}, {6, 3, 8, 2, 5},  {5, 4, 8, 2, 5},
                                           {5, 3, 7, 2, 5}, {5, 3, 10, 2, 5}, {5, 3, 9, 3, 5},
                                           {5, 3, 9, 1, 5}, {5, 3, 9, 34, 5}, {5, 3, 9, 2, 256}};
    for (unsigned i = 0; i < sizeof fine / sizeof *fine; i++)
        if (!classic_reads(fine[i])) fail_msg("fine %u does not read", i);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (classic_reads(wrong[i]) || leat_mem_bytes(LEAT_MEM_BROKER))
            fail_msg("wrong %u reads", i);
}

/* A group of one member and one log, and its stored values. */
struct stored_group {
    uint32_t fields, mode, name_bytes, id_bytes, streams, log_fields, numbers, next_serial, more;
};

static bool group_reads(struct stored_group stored)
{
    static const char text[512] = "t";
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, BYTES);
    leat_msg_write_array(&writer, stored.fields);
    leat_msg_write_string(&writer, text, stored.name_bytes);
    leat_msg_write_u64(&writer, 3);
    leat_msg_write_u64(&writer, stored.next_serial);
    leat_msg_write_u64(&writer, stored.mode);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 4 + stored.more);
    leat_msg_write_string(&writer, text, stored.id_bytes);
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_u64(&writer, 1000);
    leat_msg_write_array(&writer, stored.streams);
    for (uint32_t i = 0; i < stored.streams; i++)
        leat_msg_write_u64(&writer, i);
    if (stored.more) leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, stored.log_fields);
    for (unsigned i = 0; i < 4; i++)
        leat_msg_write_u64(&writer, 1);
    leat_msg_write_bool(&writer, true);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_u64(&writer, 1);
    leat_msg_write_array(&writer, stored.numbers);
    for (uint32_t i = 0; i < stored.numbers; i++)
        leat_msg_write_u64(&writer, 2 + i);
    if (stored.log_fields > 9) leat_msg_write_u64(&writer, 5);
    if (stored.log_fields > 9) leat_msg_write_bin(&writer, "note", 4);
    if (stored.mode == LEAT_GROUPS_CLASSIC) {
        leat_msg_write_array(&writer, 5);
        for (unsigned i = 0; i < 3; i++)
            leat_msg_write_bin(&writer, "x", 1);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, 0);
    }
    if (stored.fields > 6 + (stored.mode == LEAT_GROUPS_CLASSIC)) leat_msg_write_u64(&writer, 77);
    assert_false(writer.overflow);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, writer.used);
    struct leat_group *group = leat_group_decode(&reader);
    bool whole = group && leat_msg_read_done(&reader);
    leat_group_destroy(&group);
    return whole;
}

static void table_stored_set_that_cannot_be_is_refused(void **state)
{
    (void)state;
    enum { MOST = 2 * (LEAT_GROUPS_AHEAD_MAX + 1) };
    const struct stored_group fine[] = {{6, 0, 5, 5, 1, 9, 0, 2, 0},
                                        {7, 1, 249, 63, 16, 9, MOST, 2, 0},
                                        {7, 0, 5, 5, 0, 11, 0, 2, 0},
                                        {7, 2, 5, 5, 1, 9, 0, 2, 0},
                                        {8, 2, 5, 5, 1, 11, 2, 2, 0}},
                              wrong[] = {
                                  {5, 0, 5, 5, 1, 9, 0, 2, 0},        {8, 0, 5, 5, 1, 9, 0, 2, 0},
                                  {6, 2, 5, 5, 1, 9, 0, 2, 0},        {9, 2, 5, 5, 1, 9, 0, 2, 0},
                                  {6, 3, 5, 5, 1, 9, 0, 2, 0},        {6, 0, 250, 5, 1, 9, 0, 2, 0},
                                  {6, 0, 5, 64, 1, 9, 0, 2, 0},       {6, 0, 5, 5, 17, 9, 0, 2, 0},
                                  {6, 0, 5, 5, 1, 8, 0, 2, 0},        {6, 0, 5, 5, 1, 10, 0, 2, 0},
                                  {6, 0, 5, 5, 1, 12, 0, 2, 0},       {6, 0, 5, 5, 1, 9, 3, 2, 0},
                                  {6, 0, 5, 5, 1, 9, MOST + 2, 2, 0}, {6, 0, 5, 5, 1, 9, 0, 1, 0},
                                  {6, 0, 5, 5, 1, 9, 0, 2, 1}};
    for (unsigned i = 0; i < sizeof fine / sizeof *fine; i++)
        if (!group_reads(fine[i])) fail_msg("fine %u does not read", i);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (group_reads(wrong[i])) fail_msg("wrong %u reads", i);
}

static bool group_comes_back(const struct leat_group *group)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, encode(group, bytes));
    struct leat_group *back = leat_group_decode(&reader);
    assert_true(back ? leat_msg_read_done(&reader) : reader.failed);
    bool reads = back != NULL;
    leat_group_destroy(&back);
    return reads;
}

static void limits_stored_set_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
    assert_non_null(group);
    assert_non_null(leat_group_member_add(group));
    assert_non_null(leat_group_member_add(group));
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){1, 0, 0});
    assert_non_null(log);
    for (int64_t classic = 2; classic <= 4; classic += 2)
        assert_int_equal(leat_group_commit(group, log, classic, 7, false), LEAT_OK);
    assert_non_null(leat_group_log_add(group, (struct leat_log_ref){1, 0, 1}));
    assert_true(group_comes_back(group));

    group->generation = LEAT_GROUP_GENERATION_MAX;
    assert_true(group_comes_back(group));
    group->generation++;
    assert_false(group_comes_back(group));
    group->generation = 1;
    group->logs[1].log.log = 0; /* a log twice */
    assert_false(group_comes_back(group));
    group->logs[1].log.log = 1;
    const uint64_t groups[][2] = {{4, 4}, {4, 2}, {0, 4}}; /* twice, descending, finished */
    for (unsigned i = 0; i < 3; i++) {
        group->logs[0].groups[0].group = groups[i][0];
        group->logs[0].groups[1].group = groups[i][1];
        assert_false(group_comes_back(group));
    }
    group->logs[0].groups[0].group = 2;
    group->logs[0].groups[1].group = 4;
    assert_true(group_comes_back(group));
    const uint32_t serials[][2] = {{1, 1}, {2, 1}, {0, 1}, {1, 3}}; /* the next is 3 */
    for (unsigned i = 0; i < 4; i++) {
        group->members[0].serial = serials[i][0];
        group->members[1].serial = serials[i][1];
        assert_false(group_comes_back(group));
    }
    group->members[0].serial = 1;
    group->members[1].serial = 2;
    assert_true(group_comes_back(group));
    group->member_count = 0;
    assert_true(group_comes_back(group));
    group->next_serial = 0; /* nobody's */
    assert_false(group_comes_back(group));
    leat_group_destroy(&group);
}

/* The stored form is what earlier versions wrote and later ones read: byte for byte. */
static void table_stored_form_is_what_it_was(void **state)
{
    (void)state;
    static const uint8_t expected[] =
        "\x97\xa1r\x05\x02\x00\x91\x94\xa1m\x01\xcd\x03\xe8\x91\x07\x92"
        "\x99\x07\x00\x01\x01\xc3\x2a\x00\x00\x90"
        "\x9b\x07\x01\x00\x01\xc3\x2b\x00\x00\x90\x06\xc4\x01n\x09";
    struct leat_group *group = leat_group_create("r", LEAT_GROUPS_ORDERED);
    struct leat_group_member *member = leat_group_member_add(group);
    *member = (struct leat_group_member){
        .id = "m", .serial = 1, .session_ms = 1000, .streams = {7}, .stream_count = 1};
    for (uint32_t i = 0; i < 2; i++) {
        struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, i, 1 - i});
        assert_int_equal(leat_group_commit(group, log, -1, 42 + i, false), LEAT_OK);
        if (i) assert_int_equal(leat_group_offset_note(log, 6, "n", 1), LEAT_OK);
    }
    group->generation = 5;
    group->maker = 9;
    leat_group_assign(group);
    assert_int_equal(encode(group, bytes), sizeof expected - 1);
    assert_memory_equal(bytes, expected, sizeof expected - 1);
    leat_group_destroy(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_every_stored_value_comes_back),
        cmocka_unit_test(table_spoilt_bytes_are_refused_or_stored_again),
        cmocka_unit_test(table_stored_group_that_cannot_be_is_refused),
        cmocka_unit_test(table_stored_set_that_cannot_be_is_refused),
        cmocka_unit_test(limits_stored_set_that_cannot_be_is_refused),
        cmocka_unit_test(table_stored_form_is_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
