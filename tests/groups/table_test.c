/* SPDX-License-Identifier: Apache-2.0 */
/* The table's rules by themselves: what a log has read against a model of it, sharing out against a plain reckoning of
 * the same rule, and what is stored, value by value. */
#include "groups/classic_table.h"
#include "groups/table.h"
#include "rig.h"

static struct leat_xoshiro rng;

static uint64_t below(uint64_t n)
{
    return leat_xoshiro_below(&rng, n);
}

/* ---- commits of groups of segments ---- */

enum { MODEL_GROUPS = 40 };

/* One log: how far each group is read. */
struct model {
    bool known[MODEL_GROUPS]; /* somebody has committed there */
    uint64_t offset[MODEL_GROUPS];
    uint64_t first;
};

static void model_advance(struct model *model)
{
    while (model->first < MODEL_GROUPS && model->known[model->first] &&
           model->offset[model->first] == LEAT_SEGMENT_GROUP_DONE)
        model->first++;
}

static void model_commit(struct model *model, uint64_t segment_group, uint64_t offset, bool force)
{
    if (segment_group < model->first) return;
    if (!model->known[segment_group] || force || offset > model->offset[segment_group])
        model->offset[segment_group] = offset;
    model->known[segment_group] = true;
    model_advance(model);
}

static void model_skip(struct model *model, uint64_t segment_group)
{
    if (segment_group <= model->first) return;
    model->first = segment_group;
    model_advance(model);
}

static void model_compare(const struct model *model, const struct leat_group_log *log)
{
    assert_int_equal(log->first_group, model->first);
    assert_int_equal(log->has_offset, model->first < MODEL_GROUPS && model->known[model->first]);
    assert_int_equal(log->offset, log->has_offset ? model->offset[model->first] : 0);
    uint32_t row = 0;
    for (uint64_t segment_group = model->first + 1; segment_group < MODEL_GROUPS; segment_group++) {
        assert_int_equal(leat_group_segment_group_known(log, segment_group),
                         model->known[segment_group]);
        if (!model->known[segment_group]) continue;
        assert_true(row < log->group_count);
        assert_int_equal(log->groups[row].group, segment_group);
        assert_int_equal(log->groups[row++].offset, model->offset[segment_group]);
    }
    assert_int_equal(row, log->group_count);
    for (uint64_t segment_group = 0; segment_group <= model->first; segment_group++)
        assert_true(leat_group_segment_group_known(log, segment_group)); /* brings no row */
}

static void table_commits_of_groups_are_those_of_the_model(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 300; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct model model = {0};
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
        struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
        for (unsigned step = 0; step < 60; step++) {
            uint64_t most = model.first + 6 < MODEL_GROUPS ? model.first + 6 : MODEL_GROUPS;
            uint64_t segment_group = below(most),
                     offset = below(3) ? below(5) : LEAT_SEGMENT_GROUP_DONE;
            if (below(20) == 0) {
                assert_int_equal(leat_group_skip(log, segment_group), segment_group > model.first);
                model_skip(&model, segment_group);
            } else if (below(20) == 0) {
                assert_int_equal(leat_group_commit(group, log, (int64_t)segment_group,
                                                   LEAT_GROUP_GROUPS_GONE, false),
                                 LEAT_OK);
                model_skip(&model, segment_group);
            } else {
                bool force = below(4) == 0;
                assert_int_equal(
                    leat_group_commit(group, log, (int64_t)segment_group, offset, force), LEAT_OK);
                model_commit(&model, segment_group, offset, force);
            }
            model_compare(&model, log);
        }
        int64_t far = (int64_t)log->first_group + LEAT_GROUPS_AHEAD_MAX;
        assert_int_equal(leat_group_commit(group, log, far + 1, 1, true), LEAT_E_AGAIN);
        assert_int_equal(leat_group_commit(group, log, far, 1, true), LEAT_OK);
        leat_group_destroy(&group);
    }
}

static void table_offset_of_a_log_goes_back_by_force_only(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){7, 0, 0});
    const struct {
        uint64_t offset;
        bool force;
        uint64_t stands;
    } steps[] = {{0, false, 0}, {5, false, 5}, {4, false, 5}, {5, false, 5},
                 {4, true, 4},  {6, true, 6},  {0, true, 0},  {1, false, 1}};
    assert_false(log->has_offset);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(leat_group_commit(group, log, -1, steps[i].offset, steps[i].force),
                         LEAT_OK);
        assert_true(log->has_offset);
        assert_int_equal(log->offset, steps[i].stands);
    }
    assert_int_equal(leat_group_offset_note(log, 5, "note", 4), LEAT_OK);
    assert_int_equal(leat_group_commit(group, log, -1, LEAT_SEGMENT_GROUP_DONE, false), LEAT_OK);
    assert_false(log->has_offset);
    assert_int_equal(log->offset, 0);
    assert_int_equal(log->leader_epoch_plus_1, 0);
    assert_int_equal(log->metadata_bytes, 0);
    leat_group_destroy(&group);
}

/* ---- the logs of a group ---- */

static void table_holds_each_log_once_and_ascending(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 200; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
        bool there[3][3][3] = {0};
        for (unsigned step = 0; step < 20; step++) {
            struct leat_log_ref refs[8];
            size_t count = 1 + below(8);
            for (size_t i = 0; i < count; i++)
                refs[i] = (struct leat_log_ref){(uint32_t)below(3), (uint32_t)below(3),
                                                (uint32_t)below(3)};
            if (below(5) == 0) {
                uint32_t dropped = 0;
                for (unsigned i = 0; i < 9; i++) {
                    dropped += there[refs[0].stream][i / 3][i % 3];
                    there[refs[0].stream][i / 3][i % 3] = false;
                }
                assert_int_equal(leat_group_stream_drop(group, refs[0].stream), dropped);
            } else if (below(2)) {
                size_t sorted = leat_log_refs_sort(refs, count);
                for (size_t i = 1; i < sorted; i++)
                    assert_true(leat_log_ref_order(refs[i - 1], refs[i]) < 0);
                assert_int_equal(leat_group_logs_add(group, refs, sorted), LEAT_OK);
                for (size_t i = 0; i < sorted; i++)
                    there[refs[i].stream][refs[i].streamlet][refs[i].log] = true;
            } else {
                struct leat_group_log *log = leat_group_log_add(group, refs[0]);
                log->has_offset = true; /* moves along */
                log->offset = refs[0].stream * 100 + refs[0].streamlet * 10 + refs[0].log;
                there[refs[0].stream][refs[0].streamlet][refs[0].log] = true;
            }
            uint32_t at = 0;
            for (uint32_t i = 0; i < 27; i++) {
                struct leat_log_ref ref = {i / 9, i / 3 % 3, i % 3};
                const struct leat_group_log *log = leat_group_log_find(group, ref);
                assert_int_equal(log != NULL, there[ref.stream][ref.streamlet][ref.log]);
                if (!log) continue;
                assert_ptr_equal(log, &group->logs[at++]);
                if (log->has_offset)
                    assert_int_equal(log->offset, ref.stream * 100 + ref.streamlet * 10 + ref.log);
            }
            assert_int_equal(at, group->log_count);
            assert_true(group->log_room >= group->log_count);
        }
        leat_group_destroy(&group);
    }
}

/* Each way in which a log can say something, by itself: it is not forgotten, and its group is not idle. */
static void table_forgets_logs_that_say_nothing_and_no_others(void **state)
{
    (void)state;
    for (unsigned says = 0; says < 4; says++) {
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
        for (uint32_t i = 0; i < 3; i++)
            assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, i, 0}));
        assert_true(leat_group_idle(group));
        struct leat_group_log *log = &group->logs[1];
        if (says == 1) assert_int_equal(leat_group_commit(group, log, 0, 0, false), LEAT_OK);
        if (says == 2) assert_true(leat_group_skip(log, 1));
        if (says == 3) assert_int_equal(leat_group_commit(group, log, 1, 0, false), LEAT_OK);
        assert_int_equal(leat_group_idle(group), says == 0);
        leat_group_logs_forget_unread(group);
        assert_int_equal(group->log_count, says == 0 ? 0 : 1);
        if (says) assert_int_equal(group->logs[0].log.streamlet, 1);
        leat_group_destroy(&group);
    }
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_CLASSIC);
    assert_false(leat_group_peopled(group));
    group->classic = leat_classic_create();
    assert_true(leat_group_idle(group));
    assert_false(leat_group_peopled(group));
    assert_non_null(leat_classic_member_add(group->classic));
    assert_false(leat_group_idle(group));
    assert_true(leat_group_peopled(group));
    leat_group_classic_drop(group);
    assert_non_null(leat_group_member_add(group));
    assert_false(leat_group_idle(group));
    assert_true(leat_group_peopled(group));
    leat_group_destroy(&group);
}

/* ---- who reads what ---- */

enum { READERS = 7 };

static bool reads(const struct leat_group_member *member, uint32_t stream)
{
    for (uint32_t i = 0; i < member->stream_count; i++)
        if (member->streams[i] == stream) return true;
    return false;
}

/* Log by log: whoever reads the stream and has fewest, of equals the oldest, gets it from nobody, or from who has two
 * more. */
static void reckon(const struct leat_group *group, uint32_t *owners)
{
    uint32_t counts[READERS] = {0};
    for (uint32_t l = 0; l < group->log_count; l++) {
        owners[l] = 0;
        for (uint32_t m = 0; m < group->member_count; m++)
            if (group->members[m].serial == group->logs[l].owner &&
                reads(&group->members[m], group->logs[l].log.stream)) {
                owners[l] = group->logs[l].owner;
                counts[m]++;
            }
    }
    for (uint32_t l = 0; l < group->log_count; l++) {
        uint32_t least = READERS, owner = READERS;
        for (uint32_t m = 0; m < group->member_count; m++) {
            if (group->members[m].serial == owners[l]) owner = m;
            if (reads(&group->members[m], group->logs[l].log.stream) &&
                (least == READERS || counts[m] < counts[least]))
                least = m;
        }
        if (least == READERS || (owner < READERS && counts[owner] < counts[least] + 2)) continue;
        if (owner < READERS) counts[owner]--;
        counts[least]++;
        owners[l] = group->members[least].serial;
    }
}

static void members_change(struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        group->members[i].gone = below(4) == 0;
    leat_group_members_sweep(group);
    for (uint32_t i = 0; i < group->member_count; i++)
        assert_false(group->members[i].gone);
    for (uint64_t more = below(3); more > 0 && group->member_count < READERS; more--) {
        struct leat_group_member *member = leat_group_member_add(group);
        snprintf(member->id, sizeof member->id, "m%u", member->serial);
        for (uint32_t stream = 0; stream < 3; stream++)
            if (below(3)) member->streams[member->stream_count++] = stream;
    }
}

static void table_shares_logs_out_by_the_rule(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 200; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
        for (unsigned turn = 0; turn < 8; turn++) {
            members_change(group);
            for (uint64_t more = below(8); more > 0; more--)
                assert_non_null(leat_group_log_add(
                    group, (struct leat_log_ref){(uint32_t)below(3), (uint32_t)below(6), 0}));
            uint32_t owners[32];
            reckon(group, owners);
            leat_group_assign(group);
            size_t owned = 0, told = 0;
            for (uint32_t l = 0; l < group->log_count; l++) {
                assert_int_equal(group->logs[l].owner, owners[l]);
                assert_int_equal(leat_group_owner(group, &group->logs[l], -1), owners[l]);
                owned += owners[l] != 0;
            }
            for (uint32_t m = 0; m < group->member_count; m++) {
                struct leat_groups_assigned *rows;
                size_t count;
                assert_int_equal(leat_group_assigned(group, &group->members[m], &rows, &count),
                                 LEAT_OK);
                for (size_t i = 0; i < count; i++) {
                    const struct leat_group_log *log = leat_group_log_find(group, rows[i].log);
                    assert_int_equal(log->owner, group->members[m].serial);
                    assert_int_equal(rows[i].first_group, 0);
                    assert_int_equal(rows[i].group_step, 1);
                }
                told += count;
                leat_mem_free(rows);
            }
            assert_int_equal(told, owned);
        }
        leat_group_destroy(&group);
    }
}

/* In parallel mode each segment group of a log that somebody reads has one owner, and its member is told of it. */
static void table_shares_groups_out_to_one_reader_each(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 100; walk++) {
        leat_xoshiro_seed(&rng, walk + 1);
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_PARALLEL);
        members_change(group);
        members_change(group);
        for (unsigned i = 0; i < 12; i++) {
            struct leat_group_log *log = leat_group_log_add(
                group,
                (struct leat_log_ref){(uint32_t)below(3), (uint32_t)below(6), (uint32_t)below(2)});
            (void)leat_group_skip(log, below(4));
        }
        if (group->member_count > 1) group->members[below(group->member_count)].fresh = true;
        leat_group_assign(group);
        for (uint32_t l = 0; l < group->log_count; l++) {
            const struct leat_group_log *log = &group->logs[l];
            assert_int_equal(log->from_group, log->first_group);
            uint32_t owners[24] = {0}, readers = 0;
            for (uint32_t m = 0; m < group->member_count; m++) {
                struct leat_groups_assigned *rows;
                size_t count;
                readers += !group->members[m].fresh && reads(&group->members[m], log->log.stream);
                assert_int_equal(leat_group_assigned(group, &group->members[m], &rows, &count),
                                 LEAT_OK);
                for (size_t i = 0; i < count; i++) {
                    if (!leat_log_ref_equal(rows[i].log, log->log)) continue;
                    for (uint64_t g = rows[i].first_group; g < 24; g += rows[i].group_step) {
                        assert_int_equal(owners[g], 0);
                        owners[g] = group->members[m].serial;
                    }
                }
                leat_mem_free(rows);
            }
            for (uint32_t g = 0; g < 24; g++) {
                assert_int_equal(leat_group_owner(group, log, g), owners[g]);
                assert_int_equal(owners[g] != 0, readers > 0 && g >= log->from_group);
            }
            assert_int_equal(leat_group_owner(group, log, -1), 0);
            /* Each of them reads one of as many groups as there are readers. */
            for (uint32_t g = (uint32_t)log->from_group; readers > 0 && g + readers < 24; g++) {
                assert_int_equal(owners[g], owners[g + readers]);
                for (uint32_t h = 1; h < readers; h++)
                    assert_int_not_equal(owners[g], owners[g + h]);
            }
        }
        leat_group_destroy(&group);
    }
}

/* ---- what is stored ---- */

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
    group->generation = (uint32_t)number(UINT32_MAX);
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

/* A classic group of one member, and what is written of it. */
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

/* A group of one member and one log, and what is written of it. */
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

/* ---- what a classic group shares out by ---- */

static void member_of(struct leat_classic *classic, const char *protocols)
{
    struct leat_classic_protocol list[LEAT_CLASSIC_PROTOCOLS_MAX];
    struct leat_classic_call call = {.protocols = list};
    for (; protocols[call.protocol_count]; call.protocol_count++)
        list[call.protocol_count] = (struct leat_classic_protocol){
            {protocols + call.protocol_count, 1}, {protocols + call.protocol_count, 1}};
    struct leat_classic_member *member = leat_classic_member_add(classic);
    assert_int_equal(leat_classic_facts_set(classic, member, &call), LEAT_OK);
    assert_true(leat_classic_facts_same(member, &call));
    if (call.protocol_count < 2) return;
    struct leat_classic_protocol first = list[0];
    list[0] = list[1];
    assert_false(leat_classic_facts_same(member, &call));
    list[0] = first;
    call.protocol_count--;
    assert_false(leat_classic_facts_same(member, &call));
}

/* Each member votes for the first of its own that all know, and the first of the most voted wins. Those that have not
 * joined have no vote and no veto. */
static void group_shares_out_by_the_protocol_that_most_prefer(void **state)
{
    (void)state;
    const struct {
        const char *members[4];
        char picked;
        uint32_t pending; /* which, plus 1 */
    } cases[] = {{{"ab", "ab", "ba"}, 'a', 0},  {{"ab", "ba", "ba"}, 'b', 0},
                 {{"abc", "ca", "ca"}, 'c', 0}, {{"abc", "cb", "bc"}, 'b', 0},
                 {{"ab", "ba"}, 'a', 0},        {{"ab", "c"}, 'a', 2},
                 {{"ba", "ab", "ab"}, 'b', 3},  {{"xa", "ya", "za"}, 'a', 0}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leat_classic *classic = leat_classic_create();
        for (unsigned m = 0; m < 4 && cases[i].members[m]; m++) {
            member_of(classic, cases[i].members[m]);
            classic->members[m]->pending = m + 1 == cases[i].pending;
        }
        leat_classic_protocol_pick(classic);
        if (classic->protocol[0] != cases[i].picked || classic->protocol[1])
            fail_msg("case %u: %s", i, classic->protocol);
        for (uint32_t m = 0; m < classic->member_count; m++) {
            struct leat_msg_string said = leat_classic_metadata(classic, classic->members[m]);
            bool knows = strchr(cases[i].members[m], cases[i].picked) != NULL;
            assert_int_equal(said.bytes, knows);
            if (knows) assert_int_equal(said.text[0], cases[i].picked);
        }
        leat_classic_destroy(&classic);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_commits_of_groups_are_those_of_the_model),
        cmocka_unit_test(table_offset_of_a_log_goes_back_by_force_only),
        cmocka_unit_test(table_holds_each_log_once_and_ascending),
        cmocka_unit_test(table_forgets_logs_that_say_nothing_and_no_others),
        cmocka_unit_test(table_shares_logs_out_by_the_rule),
        cmocka_unit_test(table_shares_groups_out_to_one_reader_each),
        cmocka_unit_test(table_every_stored_value_comes_back),
        cmocka_unit_test(table_spoilt_bytes_are_refused_or_stored_again),
        cmocka_unit_test(table_stored_group_that_cannot_be_is_refused),
        cmocka_unit_test(table_stored_set_that_cannot_be_is_refused),
        cmocka_unit_test(table_stored_form_is_what_it_was),
        cmocka_unit_test(group_shares_out_by_the_protocol_that_most_prefer),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
