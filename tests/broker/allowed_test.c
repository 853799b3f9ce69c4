/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams may be made, changed and moved, by streams.c alone: names, how many logs there may be and memory has
 * room for, and at which rate. */
#include "broker/data/core_data.h"
#include "tests/broker/made_rig.h"

static struct leat_error error;

static leat_err create_of(uint32_t streamlets, uint32_t logs)
{
    const struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    return leat_stream_create_allowed(core, (struct leat_msg_string){"orders", 6}, &settings,
                                      &error);
}

static leat_err enlarge_to(uint32_t streamlets, uint32_t logs)
{
    const struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    return leat_stream_enlarge_allowed(core, alone.desc, &settings, &error);
}

/* ---- names and sizes ---- */

static leat_err name_of(const char *name)
{
    return leat_stream_name_allowed((struct leat_msg_string){name, (uint32_t)strlen(name)}, &error);
}

static void names_of_the_server_are_its_own(void **state)
{
    (void)state;
    begin();
    assert_int_equal(name_of("leat.sets"), LEAT_E_BAD_NAME);
    assert_string_equal(error.text, "names that begin with \"leat.\" are the server's own");
    assert_int_equal(name_of("leat."), LEAT_E_BAD_NAME);
    assert_int_equal(name_of("leat"), LEAT_OK);
    assert_int_equal(name_of("leatx"), LEAT_OK);
    assert_int_equal(name_of("xleat."), LEAT_OK);
    assert_int_equal(leat_stream_name_allowed((struct leat_msg_string){"leat.sets", 4}, &error),
                     LEAT_OK);
    it.name = LEAT_E_INVALID;
    assert_int_equal(name_of("leat.sets"), LEAT_E_INVALID);
    end();
}

static void stream_has_so_many_logs_at_most(void **state)
{
    (void)state;
    enum { MOST = LEAT_BROKER_STREAM_LOGS_MAX };
    begin();
    assert_int_equal(create_of(MOST, 1), LEAT_OK);
    assert_int_equal(create_of(1, MOST), LEAT_OK);
    assert_int_equal(create_of(MOST + 1, 1), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "32769 streamlets of 1 logs each are more than the 32768 logs "
                                    "that one stream may have");
    assert_int_equal(create_of(MOST / 2, 0), LEAT_OK); /* as many as cores */
    assert_int_equal(create_of(MOST / 2 + 1, 0), LEAT_E_TOO_MANY);
    assert_int_equal(create_of(0, MOST), LEAT_OK);
    assert_int_equal(create_of(0, MOST + 1), LEAT_E_TOO_MANY);
    core->data->partition_count = LEAT_CORE_LOGS_MAX - 8;
    assert_int_equal(create_of(4, 2), LEAT_OK);
    assert_int_equal(create_of(3, 3), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "this server holds 131064 logs per core already");
    assert_int_equal(enlarge_to(4, 2), LEAT_OK);
    assert_int_equal(enlarge_to(3, 3), LEAT_E_TOO_MANY);
    end();
}

/* ---- memory ---- */

static void logs_fit_into_memory(void **state)
{
    (void)state;
    for (uint32_t up = 2; up <= 3; up++) { /* of three one is away: each has half */
        uint64_t logs = up == 2 ? 1 : 2;
        begin_counted(up, 10 * logs, 1000);
        it.room = 14 * HEAP + 1000;
        assert_int_equal(create_of((uint32_t)logs, 4), LEAT_OK);
        it.room--;
        assert_int_equal(create_of((uint32_t)logs, 4), LEAT_E_TOO_MANY);
        end();
    }
    begin_counted(2, 1000, 3 << 20);
    it.room = 8 << 20;
    assert_int_equal(create_of(1, 10), LEAT_E_TOO_MANY);
    assert_string_equal(error.text,
                        "with 10 logs more a node's logs take up to 6 MiB, and its memory budget "
                        "of 64 MiB leaves 5 MiB for them: fewer streamlets or logs, delete "
                        "streams, or a larger --memory on every node");
    it.room = 2 << 20; /* less than what else there is */
    assert_int_equal(create_of(1, 10), LEAT_E_TOO_MANY);
    assert_non_null(strstr(error.text, "leaves 0 MiB"));
    it.named = true; /* the maker of the stream says that it exists */
    assert_int_equal(create_of(1, 10), LEAT_OK);
    assert_int_equal(create_of(LEAT_BROKER_STREAM_LOGS_MAX + 1, 1), LEAT_E_TOO_MANY);
    it.named = false;
    it.heap = 999 * HEAP; /* less than reckoned: nothing else */
    it.room = 1010 * HEAP;
    assert_int_equal(create_of(1, 10), LEAT_OK);
    it.room--;
    assert_int_equal(create_of(1, 10), LEAT_E_TOO_MANY);
    alone.node.options.heap_bytes = NULL;
    assert_int_equal(create_of(1, 10), LEAT_OK);
    end();
}

static void logs_that_are_being_made_count(void **state)
{
    (void)state;
    begin_counted(2, 10, 1000);
    atomic_store(&alone.node.logs_making, 3);
    it.room = 17 * HEAP + 1000;
    assert_int_equal(create_of(1, 4), LEAT_OK);
    it.room--;
    assert_int_equal(create_of(1, 4), LEAT_E_AGAIN);
    assert_string_equal(error.text, "3 logs that are being made may take what is left of a memory "
                                    "budget of 64 MiB: try again");
    it.room = 14 * HEAP + 1000;
    assert_int_equal(create_of(1, 4), LEAT_E_AGAIN);
    it.room--;
    assert_int_equal(create_of(1, 4), LEAT_E_TOO_MANY);
    atomic_store(&alone.node.logs_making, 0);
    end();
}

static void stream_is_enlarged_by_what_it_has_more(void **state)
{
    (void)state;
    begin_counted(2, 4, 1000); /* 2 x 2 are there */
    it.room = 0;
    assert_int_equal(enlarge_to(2, 2), LEAT_OK);
    assert_int_equal(enlarge_to(1, 2), LEAT_OK);
    it.room = 6 * HEAP + 1000;
    assert_int_equal(enlarge_to(3, 2), LEAT_OK);
    it.room--;
    assert_int_equal(enlarge_to(3, 2), LEAT_E_TOO_MANY);
    assert_true(strncmp(error.text, "with 2 logs more", 16) == 0);
    end();
}

static void streamlet_moves_to_where_there_is_memory(void **state)
{
    (void)state;
    struct leat_node_info target = {.name = "b", .incarnation = 55};
    struct leat_stream second = {.desc = NULL}, gone = {.desc = alone.desc, .deleted = true};
    begin_counted(2, 3, 1000);
    second.desc = gone.desc = calloc(1, sizeof *alone.desc + 2 * sizeof alone.desc->streamlets[0]);
    assert_non_null(second.desc);
    second.desc->streamlet_count = 2;
    second.desc->settings.logs = 3;
    second.desc->streamlets[0].owner = second.desc->streamlets[1].owner = 55;
    alone.desc->streamlets[1].owner = 55;
    it.buckets[0] = &alone.stream;
    it.buckets[1] = &second;
    second.by_id_next = &gone;
    /* It has one streamlet of two logs here, and two of three there. */
    it.room = 10 * HEAP + 1000;
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_OK);
    it.room--;
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_E_TOO_MANY);
    assert_string_equal(error.text,
                        "node \"b\" has 8 logs: with 2 more they take up to 0 MiB, and a memory "
                        "budget of 64 MiB leaves 0 MiB for them: another node, or a larger "
                        "--memory");
    it.room = 999;
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_E_TOO_MANY);
    core->logs_known = 10; /* its share: so many come to it anyway */
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_OK);
    core->logs_known = 9;
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_E_TOO_MANY);
    alone.node.options.heap_bytes = NULL;
    assert_int_equal(leat_stream_move_allowed(core, alone.desc, &target, &error), LEAT_OK);
    free(second.desc);
    end();
}

/* ---- rates ---- */

static void streams_that_are_named_have_a_rate(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "has 1 of own asked: 100, 5\ntake 1 of all asked: 200, 10\ntake 1 of own asked: 100, 5\n",
        "has 1 of own asked: 100, 5\n",
        "has 1 of own asked: 100, 5\ntake 1 of all asked: 200, 10\n",
        "has 1 of own asked: 100, 5\ntake 1 of all asked: 200, 10\ntake 1 of own asked: 100, 5\n"};
    for (unsigned i = 0; i < 4; i++) {
        begin();
        it.full_own = i == 1, it.full_all = i == 2, it.full_half = i == 3;
        assert_int_equal(leat_stream_rate_allowed(core, &it.sharer, &error),
                         i == 0 ? LEAT_OK : LEAT_E_STARTING);
        assert_said(expected[i]);
        end();
    }
}

static uint32_t work_of(uint32_t streamlets, uint32_t logs, bool change)
{
    const struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    uint32_t count = 0;
    assert_int_equal(
        leat_stream_work_allowed(core, NULL, change ? alone.desc : NULL, &settings, &error),
        LEAT_OK);
    for (uint32_t i = 1; count == 0; i = i < 64 ? i + 1 : i * 2) {
        char line[64];
        snprintf(line, sizeof line, "take %u of all: 65536, 4000\n", i);
        if (said_one(line)) count = i;
        assert_in_range(i, 0, 1 << 20);
    }
    assert_said("");
    return count;
}

static void work_is_counted_in_logs(void **state)
{
    (void)state;
    begin();
    assert_int_equal(work_of(3, 4, false), 12);
    assert_int_equal(work_of(0, 0, false), 2);
    assert_int_equal(work_of(LEAT_BROKER_STREAM_LOGS_MAX, 1, false), LEAT_CREATES_BURST / 2);
    assert_int_equal(work_of(LEAT_BROKER_STREAM_LOGS_MAX, 3, false), LEAT_CREATES_BURST / 2);
    const struct leat_stream_settings most = {.streamlets = 32767, .logs = 1};
    assert_int_equal(leat_stream_work_allowed(core, NULL, NULL, &most, &error), LEAT_OK);
    assert_said("take 32767 of all: 65536, 4000\n");
    assert_int_equal(work_of(2, 2, true), 1); /* 4 are there: they are looked at */
    assert_int_equal(work_of(3, 2, true), 3);
    assert_int_equal(work_of(1, 2, true), 1);
    alone.desc->settings.logs = 16; /* 32 */
    assert_int_equal(work_of(2, 16, true), 3);
    it.full_all = true;
    const struct leat_stream_settings settings = {.streamlets = 3, .logs = 4};
    assert_int_equal(leat_stream_work_allowed(core, &it.sharer, NULL, &settings, &error),
                     LEAT_E_AGAIN);
    assert_said("has 12 of own: 32768, 2000\ntake 12 of all: 65536, 4000\n");
    assert_string_equal(error.text,
                        "logs of streams are made at 4000 a second, 65536 at once, and half of "
                        "them for one address; this takes as long as 12: try again");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_server_are_its_own),
        cmocka_unit_test(stream_has_so_many_logs_at_most),
        cmocka_unit_test(logs_fit_into_memory),
        cmocka_unit_test(logs_that_are_being_made_count),
        cmocka_unit_test(stream_is_enlarged_by_what_it_has_more),
        cmocka_unit_test(streamlet_moves_to_where_there_is_memory),
        cmocka_unit_test(streams_that_are_named_have_a_rate),
        cmocka_unit_test(work_is_counted_in_logs),
    };
    return cmocka_run_group_tests_name("broker allowed", tests, NULL, NULL);
}
