/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a home that lacks something: places for groups, memory of the node, bytes of its table, of its members or
 * of its batch, room for requests that wait; and stored tables that say too much. */
#include "classic_rig.h"
#include "groups/internal.h"

enum { MS = 1000, SECOND = 1000 * MS, OTHER = 5, MINE = 6 };

static const uint32_t STREAM = 7;
static struct leat_groups_room room;

static struct home *home_with_room(void)
{
    struct home *home = calm_home();
    memset(&room, 0, sizeof room);
    leat_groups_room_init(&room, &home->random, UINT64_MAX / 2);
    home->room = &room;
    home_restart(home);
    struct leat_groups_request wake = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    return home;
}

/* Idle groups of that maker, until there are so many. */
static void idle_add(struct home *home, uint64_t maker, uint32_t count)
{
    for (unsigned n = home->groups->group_count; home->groups->group_count < count; n++) {
        char name[32];
        snprintf(name, sizeof name, "idle-%u", n);
        struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
        assert_non_null(group);
        group->maker = maker;
        leat_groups_group_add(home->groups, group);
    }
}

static leat_err join_of(struct home *home, uint64_t address)
{
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool answered;
    join.address = address;
    if (ask_begin(home, &join, &answered)) return join.rc;
    leat_groups_cancel(home->groups, &join);
    assert_int_equal(join.rc, LEAT_E_CANCELLED);
    return LEAT_OK;
}

/* Goal: an idle group goes only if its end has room in the batch: else a start would find a group too many. */
static void idle_group_stays_while_its_end_has_no_room(void **state)
{
    (void)state;
    struct home *home = calm_home();
    idle_add(home, 0, LEAT_GROUPS_PER_HOME_MAX);
    batch_fill(home);
    assert_int_equal(join_of(home, 0), LEAT_E_TOO_MANY);
    assert_int_equal(home->groups->group_count, LEAT_GROUPS_PER_HOME_MAX);
    assert_null(leat_groups_group_find(home->groups, "readers"));
    home->mute = false;
    home_run(home, 10 * MS);
    assert_int_equal(join_of(home, 0), LEAT_OK);
    home_free(home);
}

/* Goal: what a new group takes of the node's memory is enough, to the byte, once an idle group has gone for it. */
static void place_of_an_idle_group_is_taken_to_the_last_byte(void **state)
{
    (void)state;
    struct home *home = home_with_room();
    idle_add(home, 0, LEAT_GROUPS_PER_HOME_MAX);
    uint64_t free_bytes = home->groups->groups[0]->memory_bytes;
    room.bytes_max = room.bytes - free_bytes + leat_group_memory_bytes_max() - 1;
    assert_int_equal(join_of(home, 0), LEAT_E_TOO_MANY);
    home_free(home);
    home = home_with_room();
    idle_add(home, 0, LEAT_GROUPS_PER_HOME_MAX);
    room.bytes_max = room.bytes - free_bytes + leat_group_memory_bytes_max();
    assert_int_equal(join_of(home, 0), LEAT_OK);
    room.bytes_max = UINT64_MAX / 2;
    home_free(home);
}

/* Goal: an idle group of another address does not go for memory, where two places are free. */
static void idle_group_of_others_does_not_go_for_memory(void **state)
{
    (void)state;
    struct home *home = home_with_room();
    idle_add(home, OTHER, LEAT_GROUPS_PER_HOME_MAX - 2);
    room.bytes_max = room.bytes;
    assert_int_equal(join_of(home, MINE), LEAT_E_TOO_MANY);
    assert_int_equal(home->groups->group_count, LEAT_GROUPS_PER_HOME_MAX - 2);
    room.bytes_max = UINT64_MAX / 2;
    home_free(home);
}

static bool size_of_one(void *ctx, uint32_t stream, uint32_t *out_streamlets, uint32_t *out_logs)
{
    (void)ctx;
    *out_streamlets = *out_logs = 1;
    return stream == STREAM;
}

/* Goal: the single log of a stream needs memory as well. */
static void single_log_needs_memory(void **state)
{
    (void)state;
    struct home *home = home_with_room();
    home->stream_size = size_of_one;
    home_restart(home);
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool answered;
    if (ask_begin(home, &join, &answered)) fail();
    for (int i = 0; i < 100 && !leat_groups_group_find(home->groups, "readers"); i++)
        home_run(home, MS);
    room.bytes_max = room.bytes; /* others have taken all meanwhile */
    for (int i = 0; i < 100 && !answered; i++)
        home_run(home, MS);
    assert_true(answered);
    assert_int_equal(join.rc, LEAT_E_TOO_MANY);
    room.bytes_max = UINT64_MAX / 2;
    home_free(home);
}

/* Goal: the logs of a large stream have longer numbers than its first log: a table that they do not fit is refused. */
static void logs_of_long_numbers_do_not_fit_a_full_table(void **state)
{
    (void)state;
    static const uint32_t large = LARGE_STREAM;
    struct home *home = calm_home();
    struct leat_group *filler = leat_group_create("filler", LEAT_GROUPS_ORDERED);
    assert_non_null(filler);
    leat_groups_group_add(home->groups, filler);
    struct leat_group_log *log = leat_group_log_add(filler, (struct leat_log_ref){STREAM, 0, 0});
    assert_non_null(log);
    size_t one = leat_group_log_bytes(filler, (struct leat_log_ref){large, 0, 0});
    size_t logs = (size_t)LARGE_STREAMLETS * LOGS * one + 2000;
    size_t note = LEAT_GROUPS_TABLE_BYTES_MAX - leat_groups_table_bytes(home->groups) - logs;
    char *bytes = calloc(1, note);
    assert_non_null(bytes);
    assert_int_equal(leat_group_offset_note(log, 1, bytes, (uint32_t)note), LEAT_OK);
    free(bytes);
    leat_group_bytes_count(filler);
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &large, 1);
    assert_int_equal(ask(home, &join), LEAT_E_TOO_MANY);
    assert_in_range(leat_groups_table_bytes(home->groups), 1, LEAT_GROUPS_TABLE_BYTES_MAX);
    leat_groups_group_remove(home->groups, "filler");
    home_free(home);
}

/* Goal: a member that joins again counts for a new address only where that has room for what was assigned, too. */
static void member_moves_with_what_was_assigned(void **state)
{
    (void)state;
    enum { ASSIGNED = 10000 };
    static char much[ASSIGNED];
    for (unsigned fits = 0; fits < 2; fits++) {
        struct home *home = calm_home();
        struct ask_group *join = join_new("", "", "m");
        join->call.needs_id = false;
        join->r.address = OTHER;
        start(home, join);
        await(home, join);
        struct ask_group *sync = sync_new(join->r.member, join->r.generation);
        sync->shares[0] = (struct leat_classic_share){text(join->r.member), {much, sizeof much}};
        sync->call.shares = sync->shares;
        sync->call.share_count = 1;
        assert_int_equal(answer_of(home, sync), LEAT_OK);
        struct leat_classic_member *member =
            leat_groups_group_find(home->groups, "readers")->classic->members[0];
        home->groups->options.group_bytes_max =
            2 * (leat_classic_member_bytes(member) + ASSIGNED) - !fits;
        struct ask_group *again = join_new(join->r.member, "", "m");
        again->r.address = MINE;
        start(home, again);
        assert_int_equal(member->address, fits ? MINE : OTHER);
        await(home, again);
        ask_free(again);
        ask_free(join);
        home_free(home);
    }
}

/* Goal: an address that has its share of waiting requests is refused what waits, and no heartbeat. */
static void heartbeats_do_not_count_as_waiting(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = single(home, "", member), taken = 0;
    struct leat_groups_request native = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    ask_join(home, &native);
    for (; leat_shares_has(&home->groups->shares, OTHER); taken++)
        leat_shares_add(&home->groups->shares, OTHER);
    struct ask_group *b = ask_new(LEAT_GROUPS_CLASSIC_HEARTBEAT, member, generation);
    b->r.address = OTHER;
    start(home, b);
    assert_true(b->answered);
    assert_int_equal(rc_of(b), LEAT_OK);
    native.kind = LEAT_GROUPS_HEARTBEAT;
    native.address = OTHER;
    bool answered;
    assert_true(ask_begin(home, &native, &answered));
    assert_int_equal(native.rc, LEAT_OK);
    native.kind = LEAT_GROUPS_LEAVE;
    assert_true(ask_begin(home, &native, &answered));
    assert_int_equal(native.rc, LEAT_E_AGAIN);
    for (; taken > 0; taken--)
        leat_shares_remove(&home->groups->shares, OTHER);
    home_free(home);
}

/* Goal: what is due before other tables are looked at again comes in time. */
static void what_is_due_does_not_wait_for_other_tables(void **state)
{
    (void)state;
    struct home *home = home_with_room();
    room.unread = 1;
    struct leat_groups_request join = native_request(LEAT_GROUPS_JOIN, "readers", &STREAM, 1);
    bool answered;
    assert_false(ask_begin(home, &join, &answered));
    assert_int_equal(home->groups->timer.at_us, home->now_us + READ_POLL_US);
    home->groups->untold = true;
    leat_groups_timer_arm(home->groups);
    assert_int_equal(home->groups->timer.at_us, home->now_us);
    home->groups->untold = false;
    room.unread = 0;
    leat_groups_cancel(home->groups, &join);
    home_free(home);
}

/* Goal: a new group whose only member has gone has its generation with the next turn of its home. */
static void new_group_that_all_have_left_is_at_rest(void **state)
{
    (void)state;
    struct home *home = calm_home();
    home->settle_us = 20 * MS;
    home->classic_settle_us = SECOND;
    home_restart(home);
    struct ask_group *a = join_new("", "", "m");
    a->call.needs_id = false;
    start(home, a);
    home_run(home, 10 * MS);
    struct leat_groups_request native = native_request(LEAT_GROUPS_JOIN, "natives", &STREAM, 1);
    bool answered;
    ask_begin(home, &native, &answered);
    leat_groups_cancel(home->groups, &a->r);
    home_run(home, 60 * MS);
    assert_true(answered);
    const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    assert_int_equal(group->classic->phase, LEAT_CLASSIC_EMPTY);
    assert_int_equal(group->generation, 1);
    leat_mem_free(native.assigned);
    ask_free(a);
    home_free(home);
}

/* Goal: an offset of a log may be any number but the one that says that nothing is committed. */
static void offset_of_a_log_may_be_any_number(void **state)
{
    (void)state;
    struct home *home = calm_home();
    assert_int_equal(commit(home, "", LEAT_CLASSIC_GENERATION_NONE, 0, LEAT_GROUP_GROUPS_GONE, ""),
                     LEAT_OK);
    assert_int_equal(fetched(home, 0, NULL), LEAT_GROUP_GROUPS_GONE);
    home_free(home);
}

/* ---- what is stored ---- */

/* Goal: a stored table with a group too many breaks its home, also if its last group is a known one. */
static void stored_group_too_many_breaks_its_home_whatever_follows(void **state)
{
    (void)state;
    enum { BYTES = LEAT_GROUPS_PER_HOME_MAX * 128, MORE = 2 };
    struct home *home = calm_home();
    uint8_t *bytes = malloc(BYTES);
    assert_non_null(bytes);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, BYTES);
    leat_msg_write_array(&writer, LEAT_GROUPS_PER_HOME_MAX + MORE);
    for (uint32_t i = 0; i < LEAT_GROUPS_PER_HOME_MAX + MORE; i++) {
        char name[32];
        snprintf(name, sizeof name, "group-%u", i % (LEAT_GROUPS_PER_HOME_MAX + 1));
        struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
        assert_non_null(group);
        leat_group_encode(&writer, group, false);
        leat_group_destroy(&group);
    }
    assert_false(writer.overflow);
    struct leat_log_app app = leat_groups_app(home->groups);
    app.on_restore(app.ctx, bytes, writer.used);
    assert_non_null(leat_groups_broken(home->groups));
    free(bytes);
    home_free(home);
}

/* Goal: a stored change with a native group that does not read breaks its home. */
static void stored_native_group_that_does_not_read_breaks_its_home(void **state)
{
    (void)state;
    for (unsigned cut = 0; cut < 2; cut++) {
        struct home *home = calm_home();
        uint8_t value[512], bytes[1024];
        struct leat_msg_writer writer;
        struct leat_batch_builder builder;
        struct leat_batch batch;
        struct leat_group *group = leat_group_create("readers", LEAT_GROUPS_ORDERED);
        assert_non_null(group);
        leat_msg_writer_init(&writer, value, sizeof value);
        leat_record_native_write(&writer, &(struct leat_stored_record){0});
        leat_group_encode(&writer, group, false);
        leat_group_destroy(&group);
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        assert_int_equal(
            leat_batch_builder_add(&builder, 1000, NULL, 0, value, writer.used - cut, NULL, 0, 0),
            LEAT_OK);
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
        struct leat_log_app app = leat_groups_app(home->groups);
        app.on_replay(app.ctx, &batch);
        assert_int_equal(leat_groups_broken(home->groups) != NULL, cut);
        home_free(home);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_group_stays_while_its_end_has_no_room),
        cmocka_unit_test(place_of_an_idle_group_is_taken_to_the_last_byte),
        cmocka_unit_test(idle_group_of_others_does_not_go_for_memory),
        cmocka_unit_test(single_log_needs_memory),
        cmocka_unit_test(logs_of_long_numbers_do_not_fit_a_full_table),
        cmocka_unit_test(member_moves_with_what_was_assigned),
        cmocka_unit_test(heartbeats_do_not_count_as_waiting),
        cmocka_unit_test(what_is_due_does_not_wait_for_other_tables),
        cmocka_unit_test(new_group_that_all_have_left_is_at_rest),
        cmocka_unit_test(offset_of_a_log_may_be_any_number),
        cmocka_unit_test(stored_group_too_many_breaks_its_home_whatever_follows),
        cmocka_unit_test(stored_native_group_that_does_not_read_breaks_its_home),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
