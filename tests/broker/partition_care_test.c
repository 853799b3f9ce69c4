/* SPDX-License-Identifier: Apache-2.0 */
/* "Opened" commits of a core's logs, and their regular care, by partition.c alone. */
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "tests/broker/partition_rig.h"

/* ---- "opened", many logs in one ---- */

static void opens(struct leat_partition *partition)
{
    partition->log->options.events.on_opening(partition, partition->log);
}

static void coordinators_say(unsigned at, leat_err rc)
{
    struct leat_coordinate *request = it.requests[at];
    assert_non_null(request);
    it.requests[at] = NULL;
    request->rc = leat_error_set(&request->error, rc, "as they say");
    said_enough();
    request->on_done(request);
}

static void one_version(void)
{
    it.no_copies = true; /* each is of version 1 */
}

/* Goal: many logs are in one commit; each hears of it. */
static void logs_are_opened_together(void **state)
{
    (void)state;
    begin();
    one_version();
    struct leat_partition *first = make(0), *second = make(1);
    opens(first), opens(first), opens(second);
    said_enough();
    leat_partition_send_openings(core_of_all());
    assert_said("coordinate opened, epoch 9, version 1, of 2: 7/1/0\n");
    assert_true(leat_list_empty(&core_of_all()->data->opening_logs));
    assert_int_equal(core_of_all()->data->openers_busy, 1);
    coordinators_say(0, LEAT_OK);
    assert_said("7/1/0 opened OK\n"
                "7/1/1 opened OK\n");
    assert_int_equal(core_of_all()->data->openers_busy, 0);
    leat_partition_send_openings(core_of_all());
    assert_said("");
    end();
}

static void log_that_goes_while_it_is_opened_hears_nothing(void **state)
{
    (void)state;
    begin();
    one_version();
    struct leat_partition *first = make(0), *second = make(1), *third = make(2);
    opens(first), opens(second), opens(third);
    leat_partition_send_openings(core_of_all());
    said_enough();
    leat_partition_destroy(second);
    said_enough();
    coordinators_say(0, LEAT_OK);
    assert_said("7/1/0 opened OK\n"
                "7/1/2 opened OK\n");
    end();
}

/* Goal: a commit is of one epoch and one generation; a log that comes meanwhile goes with the next commit. */
static void logs_of_other_epochs_or_versions_are_opened_apart(void **state)
{
    (void)state;
    begin();
    it.version = 3; /* and one more of each */
    struct leat_partition *a = make(0), *b = make(1), *c = make(2);
    c->epoch.v = 10;
    opens(a), opens(b), opens(c);
    said_enough();
    leat_partition_send_openings(core_of_all());
    assert_said("coordinate opened, epoch 9, version 3, of 1: 7/1/0\n"
                "coordinate opened, epoch 9, version 5, of 1: 7/1/1\n"
                "coordinate opened, epoch 10, version 6, of 1: 7/1/2\n");
    assert_int_equal(core_of_all()->data->openers_busy, 7);
    coordinators_say(1, LEAT_OK);
    assert_said("copies opened OK\n"
                "7/1/1 opened OK\n");
    assert_int_equal(core_of_all()->data->openers_busy, 5);
    coordinators_say(0, LEAT_OK), coordinators_say(2, LEAT_OK);
    assert_int_equal(core_of_all()->data->openers_busy, 0);
    end();
}

/* Goal: a limited number of commits is under way; the rest waits for a commit to end. */
static void few_commits_are_under_way(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i <= LEAT_OPENERS_MAX; i++) {
        struct leat_partition *partition = make(i);
        partition->epoch.v = 20 + i;
        opens(partition);
    }
    leat_partition_send_openings(core_of_all());
    assert_int_equal(it.request_count, LEAT_OPENERS_MAX);
    assert_false(leat_list_empty(&core_of_all()->data->opening_logs));
    coordinators_say(3, LEAT_OK);
    assert_int_equal(it.request_count, LEAT_OPENERS_MAX + 1);
    assert_true(leat_list_empty(&core_of_all()->data->opening_logs));
    assert_int_equal(it.requests[LEAT_OPENERS_MAX]->epoch.v, 20 + LEAT_OPENERS_MAX);
    assert_ptr_equal(it.requests[LEAT_OPENERS_MAX], &core_of_all()->data->openers[3].request);
    end();
}

static void so_many_logs_are_in_one_commit(void **state)
{
    (void)state;
    begin();
    one_version();
    for (uint32_t i = 0; i < LEAT_OPENER_LOGS_MAX + 1; i++)
        opens(make(i));
    leat_partition_send_openings(core_of_all());
    assert_int_equal(it.request_count, 2);
    assert_int_equal(it.requests[0]->log_count, LEAT_OPENER_LOGS_MAX);
    assert_int_equal(it.requests[1]->log_count, 1);
    assert_ptr_equal(it.requests[0]->logs, core_of_all()->data->openers[0].refs);
    end();
}

/* Goal: when a request is refused for one of its logs, each log is asked for alone, and then hears its own answer. */
static void logs_refused_together_are_opened_alone(void **state)
{
    (void)state;
    begin();
    one_version();
    struct leat_partition *first = make(0), *second = make(1), *third = make(2);
    opens(first), opens(second), opens(third);
    leat_partition_send_openings(core_of_all());
    leat_partition_destroy(third); /* it has gone meanwhile */
    coordinators_say(0, LEAT_E_UNKNOWN_STREAM);
    assert_said("coordinate opened, epoch 9, version 1, of 1: 7/1/0\n"
                "coordinate opened, epoch 9, version 1, of 1: 7/1/1\n");
    assert_true(first->opens_alone && second->opens_alone);
    coordinators_say(2, LEAT_E_UNKNOWN_STREAM);
    assert_said("7/1/1 opened UNKNOWN_STREAM\n");
    assert_false(second->opens_alone);
    coordinators_say(1, LEAT_E_NOT_OWNER);
    assert_said("node log error: the coordinator did not commit the first segments of 1 logs\n"
                "7/1/0 opened NOT_OWNER\n");
    end();
}

/* Goal: a log that must be opened alone is in no request with other logs, earlier or later ones. */
static void log_opened_alone_is_with_no_other(void **state)
{
    (void)state;
    for (unsigned alone_at = 0; alone_at < 2; alone_at++) {
        begin();
        one_version();
        struct leat_partition *a = make(0), *b = make(1), *c = make(2);
        (alone_at == 0 ? a : b)->opens_alone = true;
        opens(a), opens(b), opens(c);
        leat_partition_send_openings(core_of_all());
        assert_int_equal(it.request_count, 2);
        assert_int_equal(it.requests[0]->log_count, alone_at == 0 ? 1 : 2);
        assert_int_equal(it.requests[1]->log_count, alone_at == 0 ? 2 : 1);
        assert_int_equal(it.requests[alone_at]->logs[0].log, alone_at); /* it */
        end();
    }
}

/* Goal: a commit is reported to the logs of its own request, not to those of the request before. A partition without a
 * log, as it is while it is made anew, is not told. */
static void commit_is_of_its_own_logs(void **state)
{
    (void)state;
    begin();
    one_version();
    struct leat_partition *logs[3];
    for (uint32_t i = 0; i < 3; i++)
        opens(logs[i] = make(i));
    leat_partition_send_openings(core_of_all());
    coordinators_say(0, LEAT_OK);
    opens(logs[0]), opens(logs[1]);
    leat_partition_send_openings(core_of_all());
    struct leat_log *log = logs[1]->log;
    logs[1]->log = NULL;
    coordinators_say(1, LEAT_E_NOT_OWNER);
    assert_said("coordinate opened, epoch 9, version 1, of 1: 7/1/0\n");
    assert_false(logs[1]->opens_alone || logs[2]->opens_alone);
    logs[1]->log = log;
    opens(logs[1]);
    leat_partition_send_openings(core_of_all());
    logs[1]->log = NULL;
    coordinators_say(3, LEAT_OK);
    assert_said("");
    logs[1]->log = log;
    end();
}

/* Goal: a refusal that no log has caused, a refusal of a single log, and a refusal while the core stops are reported as
 * they are. */
static void refusal_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_partition *first = make(0), *second = i == 2 ? NULL : make(1);
        first->copies = NULL;
        if (second != NULL) it.version = 1;
        opens(first);
        if (second != NULL) opens(second);
        leat_partition_send_openings(core_of_all());
        assert_int_equal(it.request_count, 1);
        if (i == 1) core_of_all()->stopping = true;
        coordinators_say(0, i == 0 ? LEAT_E_AGAIN : i == 3 ? LEAT_E_AGAIN : LEAT_E_NOT_OWNER);
        const char *code = i == 0 || i == 3 ? "AGAIN" : "NOT_OWNER";
        char expected[512];
        snprintf(expected, sizeof expected,
                 "node log error: the coordinator did not commit the first segments of %d logs\n"
                 "7/1/0 opened %s\n%s%s%s",
                 second != NULL ? 2 : 1, code, second != NULL ? "copies opened " : "",
                 second != NULL ? code : "", second != NULL ? "\n" : "");
        assert_said_first(expected);
        end();
    }
}

/* ---- care ---- */

static void care(void)
{
    said_enough();
    leat_partition_care(core_of_all());
}

/* Goal: logs with memory are looked at each second; the others now and then, in turn. */
static void idle_logs_are_cared_for_in_turn(void **state)
{
    (void)state;
    begin();
    struct leat_partition *busy = make(0), *idle = make(1), *third = make(2);
    idle->log->info.memory_bytes = third->log->info.memory_bytes = 0;
    care();
    assert_said("care for 7/1/0\n"
                "care for 7/1/1\n"
                "care for 7/1/2\n"
                "care for 7/1/1\n"); /* and one of the logs that have become idle, once more */
    assert_int_equal(idle->care_index, 1);
    assert_int_equal(busy->care_index, 0);
    care();
    assert_said("care for 7/1/0\ncare for 7/1/2\n");
    care();
    assert_said("care for 7/1/0\ncare for 7/1/1\n");
    idle->state = LEAT_PARTITION_GOES;
    third->state = LEAT_PARTITION_GOES;
    care();
    assert_said("care for 7/1/0\n");
    leat_partition_watch(idle);
    assert_int_equal(idle->care_index, 0);
    assert_ptr_equal(core_of_all()->data->care_logs.prev, &idle->care);
    leat_partition_watch(busy); /* it is: its place stays */
    assert_ptr_equal(core_of_all()->data->care_logs.next, &busy->care);
    end();
}

/* Goal: a slice of the idle ones that comes round once a minute. */
static void idle_logs_come_round_in_a_minute(void **state)
{
    (void)state;
    static const uint32_t rows[][2] = {{1, 1}, {59, 1}, {60, 2}, {119, 2}, {120, 3}};
    for (unsigned i = 0; i < 5; i++) {
        begin();
        for (uint32_t k = 0; k < rows[i][0]; k++)
            make(k)->log->info.memory_bytes = 0;
        care();
        care();
        unsigned lines = 0;
        while (said_one("care for 7/1/"))
            lines++;
        assert_int_equal(lines, rows[i][1]);
        end();
    }
}

/* Goal: a log that is being moved is cared for; nothing else is done for a log that goes. */
static void log_that_goes_is_left_but_for_a_move(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_partition *partition = make(0);
        partition->state = i & 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        partition->moving = i & 2 ? (void *)&it : NULL;
        partition->backfill = LEAT_BACKFILL_DUE;
        partition->backfill_ticks = LEAT_OLDER_TICKS - 1;
        care();
        char expected[256];
        snprintf(expected, sizeof expected, "%s%s", i & 2 ? "care for 7/1/0\n" : "",
                 i & 1 ? "" : "care for 7/1/0\nolder of 7/1/0\n");
        assert_said(expected);
        end();
    }
}

/* Goal: older segments are looked for every so many ticks, and reads that wait for them not for ever. */
static void older_segments_are_looked_for_now_and_then(void **state)
{
    (void)state;
    begin();
    struct leat_partition *partition = make(0);
    partition->log->info.memory_bytes = 0;
    partition->backfill = LEAT_BACKFILL_DUE;
    for (unsigned tick = 1; tick <= 2 * LEAT_OLDER_TICKS; tick++) {
        care();
        assert_said(tick % LEAT_OLDER_TICKS == 0 ? "care for 7/1/0\nolder of 7/1/0\n"
                                                 : "care for 7/1/0\n");
        assert_int_equal(partition->care_index, 0); /* it is not idle */
    }
    partition->backfill = LEAT_BACKFILL_NONE;
    partition->log->reads_wait = true;
    for (unsigned tick = 1; tick <= 2 * (LEAT_OLDER_READ_TICKS + 1); tick++) {
        care();
        assert_said(tick % (LEAT_OLDER_READ_TICKS + 1) == 0
                        ? "care for 7/1/0\nreads of 7/1/0 expire\n"
                        : "care for 7/1/0\n");
        assert_int_equal(partition->care_index, 0);
    }
    care();
    partition->log->reads_wait = false;
    care();
    assert_int_equal(partition->reads_ticks, 0);
    assert_int_equal(partition->care_index, 1);
    end();
}

/* Goal: damage at the front that was not known at the start is reported once it is known; damage of a stopped log is
 * not reported: the log has reported why it stopped. */
static void damage_in_front_is_told_later(void **state)
{
    (void)state;
    for (unsigned idle = 0; idle < 2; idle++) {
        begin();
        struct leat_partition *partition = make(0);
        if (idle) partition->log->info.memory_bytes = 0;
        care();
        if (idle) care();
        assert_said(idle ? "care for 7/1/0\n" : "care for 7/1/0\n");
        partition->damage_untold = true;
        care();
        assert_said("care for 7/1/0\ntell the damage of 7/1/0\n");
        assert_true(partition->damage_untold); /* that says whether it is known */
        partition->log->info.state = LEAT_LOG_STOPPED;
        care();
        assert_said("care for 7/1/0\n");
        assert_false(partition->damage_untold);
        end();
    }
}

/* Goal: heads that are idle go sooner where somebody has no room, on any core, or the pool is to give memory back. */
static void heads_are_hibernated_sooner_where_room_is_short(void **state)
{
    (void)state;
    static struct leat_room_wait room;
    for (unsigned i = 0; i < 8; i++) {
        begin();
        uint64_t usual = i == 6 ? 500 * 1000 : LEAT_NODE_HIBERNATE_AFTER_US;
        if (i == 6) alone.node.options.hibernate_after_us = usual; /* sooner than that anyway */
        alone.now_us = 100 * 1000 * 1000;
        leat_list_init(&room.by_time);
        room.deadline_us = alone.now_us + LEAT_APPEND_ROOM_US - LEAT_NODE_PRESSED_US;
        if (i == 1 || i == 6) leat_list_push_back(&core_of_all()->data->room_waits, &room.by_time);
        if (i == 2)
            leat_list_push_back(&core_of_all()->data->room_waits, &room.by_time),
                room.deadline_us++;
        if (i == 3) it.pressed = true;
        if (i == 4) atomic_store(&alone.node.room_short_us, alone.now_us - LEAT_NODE_SHORT_US + 1);
        if (i == 5) atomic_store(&alone.node.room_short_us, alone.now_us - LEAT_NODE_SHORT_US);
        if (i == 7) alone.node.options.hibernate_after_us = usual = 90 * 1000 * 1000;
        (void)make(0);
        bool soon = i == 1 || i == 3 || i == 4;
        assert_true(it.hibernate_us == (soon ? LEAT_NODE_HIBERNATE_PRESSED_US : usual));
        it.hibernate_us = 0;
        care();
        assert_true(it.hibernate_us == (soon ? LEAT_NODE_HIBERNATE_PRESSED_US : usual));
        assert_true(atomic_load(&alone.node.room_short_us) ==
                    (i == 1 || i == 6 ? alone.now_us
                     : i == 4         ? alone.now_us - LEAT_NODE_SHORT_US + 1
                     : i == 5         ? alone.now_us - LEAT_NODE_SHORT_US
                                      : 0));
        leat_list_remove(&room.by_time);
        end();
    }
}

static void room_is_not_short_as_the_machine_begins(void **state)
{
    (void)state;
    begin();
    alone.now_us = 1000; /* since it runs */
    (void)make(0);
    assert_true(it.hibernate_us == LEAT_NODE_HIBERNATE_AFTER_US);
    end();
}

/* ---- while the core stops ---- */

/* Goal: logs that stop are cared for; in a cluster they are left as they are after a limited number of ticks. */
static void core_that_stops_does_not_wait_for_ever(void **state)
{
    (void)state;
    for (unsigned links = 0; links < 2; links++) {
        begin();
        struct leat_core *core = core_of_all();
        struct leat_partition *a = make(0), *b = make(1), *c = make(2), *d = make(3), *e = make(4);
        a->state = c->state = e->state = LEAT_PARTITION_GOES;
        b->state = LEAT_PARTITION_DRAINED;
        c->give_up = (void *)&it;
        (void)d;
        e->copies = NULL;
        core->stopping = true;
        core->data->logs_to_stop = 2;
        core->members.links = links ? (void *)&it : NULL;
        for (unsigned tick = 1; tick < LEAT_STOP_TICKS; tick++) {
            care();
            assert_said("care for 7/1/0\ncare for 7/1/4\n");
        }
        care();
        assert_said(
            links ? "complain: 2 logs of core 3 wait for other nodes, and are left as they are: "
                    "the next start treats them as after a crash\n"
                    "care for 7/1/0\nabandon its copies\nabandon 7/1/0\n"
                    "care for 7/1/4\nabandon 7/1/4\n"
                  : "care for 7/1/0\ncare for 7/1/4\n");
        care();
        assert_said("care for 7/1/0\ncare for 7/1/4\n");
        core->stopped = true;
        core->data->stop_ticks = LEAT_STOP_TICKS - 1;
        care();
        assert_said("");
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_are_opened_together),
        cmocka_unit_test(log_that_goes_while_it_is_opened_hears_nothing),
        cmocka_unit_test(logs_of_other_epochs_or_versions_are_opened_apart),
        cmocka_unit_test(few_commits_are_under_way),
        cmocka_unit_test(so_many_logs_are_in_one_commit),
        cmocka_unit_test(logs_refused_together_are_opened_alone),
        cmocka_unit_test(log_opened_alone_is_with_no_other),
        cmocka_unit_test(commit_is_of_its_own_logs),
        cmocka_unit_test(refusal_is_told),
        cmocka_unit_test(idle_logs_are_cared_for_in_turn),
        cmocka_unit_test(idle_logs_come_round_in_a_minute),
        cmocka_unit_test(log_that_goes_is_left_but_for_a_move),
        cmocka_unit_test(older_segments_are_looked_for_now_and_then),
        cmocka_unit_test(damage_in_front_is_told_later),
        cmocka_unit_test(heads_are_hibernated_sooner_where_room_is_short),
        cmocka_unit_test(room_is_not_short_as_the_machine_begins),
        cmocka_unit_test(core_that_stops_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests_name("broker partition_care", tests, NULL, NULL);
}
