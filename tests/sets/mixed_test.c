/* Native sets and groups of Kafka clients under one name: what each is told where the name is the other's; and what a
 * log of a set counts as. */
#include "group_rig.h"
#include "sets/internal.h"
#include "wire/message.h"

static const uint32_t STREAM = 7;

static struct home *calm_home(void)
{
    struct home *home = home_new(1, true);
    home->calm = true;
    struct leat_sets_request wake = {.kind = LEAT_SETS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    return home;
}

/* A native member of "readers"; its id, where it is taken. */
static leat_err native_join(struct home *home, enum leat_sets_mode mode, char *out_member)
{
    struct leat_sets_request r = {.kind = LEAT_SETS_JOIN,
                                  .answer_bytes_max = SIZE_MAX,
                                  .mode = mode,
                                  .session_ms = 2000,
                                  .streams = &STREAM,
                                  .stream_count = 1};
    leat_err rc = ask(home, &r);
    leat_mem_free(r.assigned);
    snprintf(out_member, LEAT_SETS_MEMBER_BYTES_MAX + 1, "%s", r.member);
    return rc;
}

static leat_err native_leave(struct home *home, const char *member)
{
    struct leat_sets_request r = {.kind = LEAT_SETS_LEAVE};
    snprintf(r.member, sizeof r.member, "%s", member);
    return ask(home, &r);
}

static leat_err done(struct home *home, struct ask_group *a)
{
    start(home, a);
    await(home, a);
    return rc_of(a);
}

/* Goal: whatever a client of groups asks of a native set with members is refused by name, with and without an instance
 * id or a member id; what it commits changes nothing. */
static void client_of_groups_is_refused_by_a_native_set(void **state)
{
    (void)state;
    static const enum leat_sets_mode modes[] = {LEAT_SETS_ORDERED, LEAT_SETS_PARALLEL};
    for (unsigned m = 0; m < 2; m++) {
        struct home *home = calm_home();
        char member[LEAT_SETS_MEMBER_BYTES_MAX + 1];
        assert_int_equal(native_join(home, modes[m], member), LEAT_OK);
        const char *names[] = {"", "somebody", member};
        for (unsigned n = 0; n < 3; n++)
            for (unsigned instance = 0; instance < 2; instance++) {
                const char *its = instance ? "an instance" : "";
                assert_int_equal(done(home, join_new(names[n], its, "m")), LEAT_E_OTHER_PROTOCOL);
                assert_int_not_equal(beat(home, names[n], its, 1), LEAT_OK);
                assert_int_not_equal(leave(home, names[n], its), LEAT_OK);
                assert_int_not_equal(done(home, sync_new(names[n], 1)), LEAT_OK);
            }
        assert_int_equal(commit(home, "", LEAT_GROUP_GENERATION_NONE, 0, 5, "note"),
                         LEAT_E_OTHER_PROTOCOL);
        assert_int_equal(commit(home, member, 1, 0, 5, "note"), LEAT_E_OTHER_PROTOCOL);
        struct leat_sets_request beats = {.kind = LEAT_SETS_HEARTBEAT, .generation = 1};
        memcpy(beats.member, member, sizeof member);
        assert_int_equal(ask(home, &beats), LEAT_OK); /* it is a member still */
        home_free(home);
    }
}

/* Goal: a group with members takes no native member; one without takes those that read in order, whose set it is
 * then. */
static void native_member_is_refused_by_a_group(void **state)
{
    (void)state;
    struct home *home = calm_home();
    char member[LEAT_SETS_MEMBER_BYTES_MAX + 1], native[LEAT_SETS_MEMBER_BYTES_MAX + 1];
    uint32_t generation = lone(home, "", member);
    assert_int_equal(commit(home, member, generation, 0, 5, ""), LEAT_OK);
    assert_int_equal(native_join(home, LEAT_SETS_ORDERED, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(native_join(home, LEAT_SETS_PARALLEL, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(beat(home, member, "", generation), LEAT_OK);
    assert_int_equal(leave(home, member, ""), LEAT_OK);
    assert_int_equal(native_join(home, LEAT_SETS_PARALLEL, native), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(fetched(home, 0, NULL), 5);
    assert_int_equal(native_join(home, LEAT_SETS_ORDERED, native), LEAT_OK);
    assert_int_equal(fetched(home, 0, NULL), 5); /* it goes on where the group was */
    assert_int_equal(done(home, join_new("", "", "m")), LEAT_E_OTHER_PROTOCOL);
    assert_int_equal(native_leave(home, native), LEAT_OK);
    home_run(home, 10 * 1000);
    (void)lone(home, "", member); /* and back */
    assert_int_equal(fetched(home, 0, NULL), 5);
    home_free(home);
}

/* Goal: a log counts as much as it takes in a record at most, whatever its numbers are. */
static void log_counts_what_its_numbers_take(void **state)
{
    (void)state;
    static const uint32_t values[] = {0,         127, 128, 255, 256, 65535, 65536, UINT32_MAX - 1,
                                      UINT32_MAX};
    static const enum leat_sets_mode modes[] = {LEAT_SETS_ORDERED, LEAT_SETS_PARALLEL,
                                                LEAT_SETS_GROUP};
    for (unsigned m = 0; m < 3; m++) {
        struct leat_set *set = leat_set_create("readers", modes[m]);
        assert_non_null(set);
        size_t least = leat_set_log_bytes(set, (struct leat_log_ref){0, 0, 0});
        assert_int_equal(least, 1 + 3 + 5 + 1 + 9 + (modes[m] == LEAT_SETS_PARALLEL ? 21 : 3));
        for (unsigned v = 0; v < sizeof values / sizeof *values; v++) {
            uint8_t bytes[16];
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, bytes, sizeof bytes);
            leat_msg_write_u64(&writer, values[v]);
            size_t takes = writer.used - 1;
            struct leat_log_ref refs[] = {{values[v], 0, 0}, {0, values[v], 0}, {0, 0, values[v]}};
            for (unsigned r = 0; r < 3; r++)
                assert_int_equal(leat_set_log_bytes(set, refs[r]), least + takes);
        }
        leat_set_destroy(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_of_groups_is_refused_by_a_native_set),
        cmocka_unit_test(native_member_is_refused_by_a_group),
        cmocka_unit_test(log_counts_what_its_numbers_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
