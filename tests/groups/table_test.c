/* SPDX-License-Identifier: Apache-2.0 */
/* The table's rules by themselves: what a log has read against a model of it, and sharing out against a plain reckoning
 * of the same rule. */
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

/* One log: how far each segment group is read. */
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

/* Goal: when serials begin again each log keeps its member, the first log too. Method: the first member has serial 2,
 * which is the second member's from then on. */
static void first_log_keeps_its_member_when_serials_begin_again(void **state)
{
    (void)state;
    enum { ROWS_OF_FIRST = 2, ROWS = 3 };
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_group_member *member = leat_group_member_add(group);
        snprintf(member->id, sizeof member->id, "member %u", i);
        member->stream_count = 1;
        member->streams[0] = 7;
    }
    for (unsigned i = 0; i < 2; i++)
        group->members[i].serial = 2 + i * LEAT_GROUP_SERIALS_KEPT;
    for (unsigned i = 0; i < ROWS; i++) {
        assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, i, 0}));
        group->logs[i].owner = group->members[i >= ROWS_OF_FIRST].serial;
    }
    group->next_serial = LEAT_GROUP_SERIALS_KEPT + 3u;
    leat_group_assign(group);
    for (unsigned i = 0; i < ROWS; i++)
        assert_int_equal(group->logs[i].owner, 1 + (i >= ROWS_OF_FIRST));
    leat_group_destroy(&group);
}

/* Goal: members that join and leave without end use up no serials, and members that stay keep their logs. */
static void serials_begin_again(void **state)
{
    (void)state;
    enum { ROWS = 16, FIRST = LEAT_GROUP_SERIALS_KEPT - 3 };
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    group->next_serial = FIRST;
    for (unsigned i = 0; i < 4; i++) {
        if (i == 3) {
            leat_group_assign(group);
            assert_int_equal(group->members[0].serial, FIRST);
            group->members[0].gone = true;
            leat_group_members_sweep(group);
        }
        struct leat_group_member *member = leat_group_member_add(group);
        snprintf(member->id, sizeof member->id, "member %u", i);
        member->stream_count = 1;
        member->streams[0] = 7;
        for (unsigned l = 0; i == 0 && l < ROWS; l++)
            assert_non_null(leat_group_log_add(group, (struct leat_log_ref){7, l, 0}));
    }
    uint32_t before[ROWS];
    assert_int_equal(group->log_room,
                     ROWS); /* full: a sanitizer sees a write behind the last row */
    for (unsigned l = 0; l < ROWS; l++)
        before[l] = group->logs[l].owner;
    leat_group_assign(group);
    unsigned kept = 0;
    assert_int_equal(group->next_serial, 4);
    for (uint32_t m = 0; m < 3; m++)
        assert_int_equal(group->members[m].serial, m + 1);
    for (unsigned l = 0; l < ROWS; l++) {
        assert_in_range(group->logs[l].owner, 1, 3);
        kept += group->logs[l].owner == before[l] - FIRST; /* its owner stays: serial 1 or 2 now */
    }
    assert_true(kept >= ROWS / 3);
    leat_group_destroy(&group);
}

/* Goal: a group's generation never grows to a number that the next start of its home refuses. */
static void generation_after_the_last_is_the_first(void **state)
{
    (void)state;
    struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
    leat_group_generation_next(group);
    assert_int_equal(group->generation, 1);
    group->generation = LEAT_GROUP_GENERATION_MAX - 1;
    leat_group_generation_next(group);
    assert_int_equal(group->generation, LEAT_GROUP_GENERATION_MAX);
    leat_group_generation_next(group);
    assert_int_equal(group->generation, 1);
    leat_group_destroy(&group);
}

/* In parallel mode each segment group of a log that somebody reads has one owner, and its member learns of it. */
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

/* Goal: each of as many protocols as a member may have is a candidate, and the last one can win. A sanitizer sees a
 * look behind the last. */
static void group_counts_the_votes_for_as_many_protocols_as_there_may_be(void **state)
{
    (void)state;
    enum { ALL = LEAT_CLASSIC_PROTOCOLS_MAX };
    struct leat_classic *classic = leat_classic_create();
    for (unsigned m = 0; m <= ALL; m++) {
        unsigned first = m < ALL ? m : ALL - 1; /* the last protocol has two votes */
        char protocols[ALL + 1] = {0};
        for (unsigned i = 0; i < ALL; i++)
            protocols[i] = (char)('a' + (first + i) % ALL);
        member_of(classic, protocols);
        if (m == 0) continue;
        leat_classic_protocol_pick(classic);
        assert_int_equal(classic->protocol[0], m < ALL ? 'a' : 'a' + ALL - 1);
    }
    leat_classic_destroy(&classic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_commits_of_groups_are_those_of_the_model),
        cmocka_unit_test(table_offset_of_a_log_goes_back_by_force_only),
        cmocka_unit_test(table_holds_each_log_once_and_ascending),
        cmocka_unit_test(table_forgets_logs_that_say_nothing_and_no_others),
        cmocka_unit_test(table_shares_logs_out_by_the_rule),
        cmocka_unit_test(serials_begin_again),
        cmocka_unit_test(first_log_keeps_its_member_when_serials_begin_again),
        cmocka_unit_test(generation_after_the_last_is_the_first),
        cmocka_unit_test(table_shares_groups_out_to_one_reader_each),
        cmocka_unit_test(group_shares_out_by_the_protocol_that_most_prefer),
        cmocka_unit_test(group_counts_the_votes_for_as_many_protocols_as_there_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
