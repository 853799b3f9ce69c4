/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on a home between two turns: each rule is broken once, in structs that the test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "groups/internal.h"
#include "tests/broken.h"

enum { MEMBERS = 2, REQUESTS = 5 };

static struct leat_clock clock_;
static struct leat_env env;
static struct leat_groups groups;
static struct leat_group native, classic_group;
static struct leat_group_member members[MEMBERS];
static struct leat_classic classic;
static struct leat_classic_member clients[MEMBERS], *client_rows[MEMBERS];
static struct leat_groups_room other_room;
/* A join of a native member, a join of a client, a request that waits for an ack, a question, a request that waits
 * for other homes. */
static struct leat_groups_request requests[REQUESTS];
static struct leat_groups_request *join = &requests[0], *client_join = &requests[1],
                                  *ack = &requests[2], *query = &requests[3], *read_ = &requests[4];

static uint64_t now_us(void *ctx)
{
    (void)ctx;
    return 1000;
}

static void requests_make(void)
{
    static const enum request_state states[REQUESTS] = {REQUEST_JOIN, REQUEST_JOIN, REQUEST_ACK,
                                                        REQUEST_QUERY, REQUEST_READ};
    leat_list_init(&groups.waiting);
    leat_list_init(&groups.querying);
    leat_list_init(&groups.reading);
    for (unsigned i = 0; i < REQUESTS; i++) {
        requests[i] = (struct leat_groups_request){.state = states[i], .ack_sequence = 6};
        leat_list_push_back(i < 3    ? &groups.waiting
                            : i == 3 ? &groups.querying
                                     : &groups.reading,
                            &requests[i].link);
    }
    groups.shares.all = REQUESTS;
}

static void groups_make(void)
{
    native = (struct leat_group){.name = "native",
                                 .next_serial = 3,
                                 .members = members,
                                 .member_count = MEMBERS,
                                 .phase = LEAT_GROUP_PREPARING};
    classic = (struct leat_classic){.phase = LEAT_CLASSIC_PREPARING,
                                    .leader = "leads",
                                    .members = client_rows,
                                    .member_count = MEMBERS};
    classic_group = (struct leat_group){
        .name = "classic", .mode = LEAT_GROUPS_CLASSIC, .classic = &classic, .next_serial = 1};
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = (struct leat_group_member){.serial = i + 1, .join = i ? NULL : join};
        clients[i] =
            (struct leat_classic_member){.join = i ? NULL : client_join, .assignment_bytes = 10};
        snprintf(clients[i].id, sizeof clients[i].id, "%s", i ? "follows" : "leads");
        client_rows[i] = &clients[i];
        classic.memory_bytes += leat_classic_member_bytes(&clients[i]) + 10;
    }
    leat_group_bytes_count(&native);
    leat_group_bytes_count(&classic_group);
}

/* A home with a native and a classic group, a batch on its way and another that gathers. */
static void sound(void)
{
    clock_ = (struct leat_clock){.now_us = now_us};
    env = (struct leat_env){.clock = &clock_};
    groups = (struct leat_groups){.options = {.env = &env},
                                  .groups = {&native, &classic_group},
                                  .group_count = 2,
                                  .life = LIFE_AWAKE,
                                  .gathering = 6,
                                  .acked = 5,
                                  .in_flight = true};
    groups.builder.record_count = 1;
    groups.timer.heap_index_plus_1 = 1;
    requests_make();
    groups_make();
}

/* The second client's join is over, as is the first one's; both wait for nothing. */
static void classic_is(enum leat_classic_phase phase)
{
    clients[0].join = NULL;
    leat_list_remove(&client_join->link);
    groups.shares.all--;
    classic.phase = phase;
}

static void requests_end(void)
{
    requests_make();
    for (unsigned i = 0; i < REQUESTS; i++)
        leat_list_remove(&requests[i].link);
    groups.shares.all = 0;
    members[0].join = clients[0].join = NULL;
}

/* `rule` is broken by the statements; NULL: no rule is. */
#define BROKEN(rule, ...)                                                                          \
    do {                                                                                           \
        sound();                                                                                   \
        assert_broken(NULL, leat_groups_check(&groups));                                           \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_groups_check(&groups));                                           \
    } while (0)

static void requests_are_checked(void **state)
{
    (void)state;
    static const char reading[] = "(request->state == REQUEST_READ) == (list == &groups->reading)";
    static const char querying[] =
        "(request->state == REQUEST_QUERY) == (list == &groups->querying)";
    static const char acked[] = "request->state != REQUEST_ACK || request->ack_sequence >= "
                                "groups->acked || (groups->untold && request->kind == "
                                "LEAT_GROUPS_JOIN)";
    static const char waking[] = "request->state != REQUEST_WAKING || groups->life == LIFE_WAKING";
    BROKEN(reading, read_->state = REQUEST_ACK);
    BROKEN(reading, ack->state = REQUEST_READ);
    BROKEN(querying, query->state = REQUEST_ACK);
    BROKEN(querying, ack->state = REQUEST_QUERY);
    BROKEN("request->state != REQUEST_FREE", ack->state = REQUEST_FREE);
    BROKEN(waking, ack->state = REQUEST_WAKING);
    BROKEN(NULL, ack->state = REQUEST_WAKING, groups.life = LIFE_WAKING);
    BROKEN(acked, ack->ack_sequence = 4);
    BROKEN(acked, ack->ack_sequence = 4, ack->kind = LEAT_GROUPS_JOIN);
    BROKEN(acked, ack->ack_sequence = 4, ack->kind = LEAT_GROUPS_FETCH, groups.untold = true);
    BROKEN(NULL, ack->ack_sequence = 4, ack->kind = LEAT_GROUPS_JOIN, groups.untold = true);
    BROKEN("request->state != REQUEST_ACK || request->ack_sequence < groups->gathering + "
           "(groups->builder.record_count > 0)",
           groups.builder.record_count = 0);
    BROKEN("waiting == groups->shares.all", groups.shares.all++);
    BROKEN("waiting == groups->shares.all", leat_list_remove(&query->link));
    BROKEN("held == joins", members[0].join = NULL);
    BROKEN("held == joins", leat_list_remove(&join->link), groups.shares.all--);
    BROKEN("request->state == REQUEST_JOIN", members[1].join = ack);
    BROKEN("request->state == REQUEST_JOIN", clients[1].join = ack);
}

static void batches_are_checked(void **state)
{
    (void)state;
    static const char leaving[] = "groups->broken || groups->gathering - groups->acked == leaves";
    BROKEN("!groups->in_flight || groups->sealed_bytes == 0", groups.sealed_bytes = 1);
    BROKEN(NULL, groups.sealed_bytes = 1, groups.in_flight = false);
    BROKEN("groups->sealed_bytes <= (uint32_t)LEAT_GROUPS_BATCH_BYTES_MAX",
           groups.sealed_bytes = LEAT_GROUPS_BATCH_BYTES_MAX + 1, groups.in_flight = false);
    BROKEN("groups->builder.used <= (uint32_t)LEAT_GROUPS_BATCH_BYTES_MAX",
           groups.builder.used = LEAT_GROUPS_BATCH_BYTES_MAX + 1);
    BROKEN(leaving, groups.in_flight = false);
    BROKEN(leaving, groups.acked = 4);
}

/* Goal: a home that is out of order has answered all requests, and is not asked for its table. */
static void broken_home_is_checked(void **state)
{
    (void)state;
    BROKEN("!groups->broken || waiting == 0", groups.broken = true);
    BROKEN("!groups->broken || (waiting == 0 && !groups->unread)", requests_end(),
           groups.broken = groups.unread = true);
    BROKEN("!groups->broken || (waiting == 0 && !groups->unread)", requests_end(),
           groups.broken = true, leat_list_push_back(&groups.reading, &read_->link));
    BROKEN(NULL, requests_end(), groups.broken = true, groups.in_flight = false,
           groups.timer.heap_index_plus_1 = 0, native.bytes = 0);
}

static void timer_is_checked(void **state)
{
    (void)state;
    static const char armed[] = "!due || leat_timer_armed(&groups->timer)";
    BROKEN(armed, groups.timer.heap_index_plus_1 = 0);
    for (unsigned due = 0; due < 7; due++) {
        sound();
        requests_end();
        groups.timer.heap_index_plus_1 = 0;
        groups.in_flight = due == 1;
        groups.acked = due == 1 ? 5 : 6;
        groups.builder.record_count = 0;
        groups.untold = due == 2;
        groups.unread = due == 3;
        if (due == 4) leat_list_push_back(&groups.reading, &read_->link);
        groups.shares.all = due == 4;
        if (due < 5) groups.group_count = 0;
        if (due == 5) groups.group_count = 1; /* a session may end */
        if (due == 6) {                       /* and nothing is due in the group after this one */
            classic.phase = LEAT_CLASSIC_EMPTY;
            classic.member_count = 0;
            classic.memory_bytes = 0;
        }
        assert_broken(due ? armed : NULL, leat_groups_check(&groups));
        groups.life = LIFE_WAKING; /* no session ends before the table is read */
        assert_broken(due && due < 5 ? armed : NULL, leat_groups_check(&groups));
    }
}

static void group_is_checked(void **state)
{
    (void)state;
    static const char kind[] = "(group->classic != NULL) == (group->mode == LEAT_GROUPS_CLASSIC)";
    BROKEN("groups->group_count <= (uint32_t)LEAT_GROUPS_PER_HOME_MAX",
           groups.group_count = LEAT_GROUPS_PER_HOME_MAX + 1);
    BROKEN(kind, native.mode = LEAT_GROUPS_CLASSIC);
    BROKEN(kind, classic_group.mode = LEAT_GROUPS_ORDERED);
    BROKEN("group->classic == NULL || group->member_count == 0", classic_group.member_count = 1);
    BROKEN("group->room == groups->options.room", native.room = &other_room);
    BROKEN("group->log_count <= group->log_room", native.log_count = 1);
    BROKEN("counted.bytes == group->bytes", native.bytes--);
    BROKEN("counted.bytes == group->bytes", members[0].stream_count++);
    BROKEN("counted.memory_bytes == group->memory_bytes", native.memory_bytes++);
}

/* Goal: the bytes of a group with more than 16 logs are counted in slow builds only. */
static void bytes_of_few_logs_are_counted(void **state)
{
    (void)state;
    enum { COUNTED = 16, MANY };
    static const char counted[] = "counted.bytes == group->bytes";
    static struct leat_group_log logs[MANY];
    for (uint32_t count = COUNTED; count <= MANY; count++) {
        sound();
        native.logs = logs;
        native.log_room = MANY;
        native.log_count = count;
        leat_group_bytes_count(&native);
        assert_broken(NULL, leat_groups_check(&groups));
        native.bytes++;
#ifdef LEAT_SLOW_CHECKS
        assert_broken(counted, leat_groups_check(&groups));
#else
        assert_broken(count <= COUNTED ? counted : NULL, leat_groups_check(&groups));
#endif
    }
}

static void native_members_are_checked(void **state)
{
    (void)state;
    static const char stable[] = "group->phase == LEAT_GROUP_PREPARING || (!member->fresh && "
                                 "!member->gone && member->join == NULL)";
    BROKEN("group->member_count <= (uint32_t)LEAT_GROUPS_MEMBERS_MAX",
           native.member_count = LEAT_GROUPS_MEMBERS_MAX + 1);
    BROKEN("member->serial > serial", members[1].serial = 1);
    BROKEN("member->serial > serial", members[0].serial = 0);
    BROKEN("member->serial < group->next_serial", native.next_serial = 2);
    BROKEN("!member->gone || member->join == NULL", members[0].gone = true);
    BROKEN(NULL, members[1].gone = true);
    BROKEN(stable, native.phase = LEAT_GROUP_STABLE);
    for (unsigned i = 0; i < 3; i++) {
        sound();
        requests_end();
        native.phase = LEAT_GROUP_STABLE;
        members[1].gone = i == 1;
        members[1].fresh = i == 2;
        assert_broken(i ? stable : NULL, leat_groups_check(&groups));
    }
}

static void classic_members_are_checked(void **state)
{
    (void)state;
    static const char syncing[] = "phase == LEAT_CLASSIC_COMPLETING || member->sync == NULL";
    static const char pending[] =
        "!member->pending || (member->join == NULL && member->sync == NULL)";
    static const char leads[] =
        "leaders == 1 || (phase != LEAT_CLASSIC_COMPLETING && phase != LEAT_CLASSIC_STABLE)";
    static const char empty[] = "phase != LEAT_CLASSIC_EMPTY || member->pending";
    BROKEN("classic->member_count <= (uint32_t)LEAT_GROUPS_MEMBERS_MAX",
           classic.member_count = LEAT_GROUPS_MEMBERS_MAX + 1);
    BROKEN("phase == LEAT_CLASSIC_PREPARING || member->join == NULL",
           classic.phase = LEAT_CLASSIC_COMPLETING);
    BROKEN(syncing, clients[0].join = NULL, clients[0].sync = client_join);
    BROKEN(NULL, classic.phase = LEAT_CLASSIC_COMPLETING, clients[0].join = NULL,
           clients[0].sync = client_join);
    BROKEN(pending, clients[0].pending = true);
    BROKEN(NULL, clients[1].pending = true);
    BROKEN("!member->nameless || member->join != NULL", clients[1].nameless = true);
    BROKEN(NULL, clients[0].nameless = true);
    BROKEN("bytes == classic->memory_bytes", clients[0].assignment_bytes++);
    BROKEN(NULL, classic_is(LEAT_CLASSIC_STABLE));
    BROKEN(leads, classic_is(LEAT_CLASSIC_STABLE), classic.leader[0] = '\0');
    BROKEN(leads, classic_is(LEAT_CLASSIC_COMPLETING), clients[0].id[0] = 'x');
    BROKEN(empty, classic_is(LEAT_CLASSIC_EMPTY));
    BROKEN(NULL, classic_is(LEAT_CLASSIC_EMPTY), clients[0].pending = clients[1].pending = true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_checked),
        cmocka_unit_test(batches_are_checked),
        cmocka_unit_test(broken_home_is_checked),
        cmocka_unit_test(timer_is_checked),
        cmocka_unit_test(group_is_checked),
        cmocka_unit_test(bytes_of_few_logs_are_counted),
        cmocka_unit_test(native_members_are_checked),
        cmocka_unit_test(classic_members_are_checked),
    };
    return cmocka_run_group_tests_name("groups check", tests, NULL, NULL);
}
