/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that are tried. The network is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/timer.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"

enum { MS = 1000, OWN = 10 };

static struct leat_coordinator *coordinator;
static struct leat_clock clock_of_test;
static struct leat_net net;
static struct leat_env env;
static uint64_t now_us;
static bool leads, incarnation_known, voter_known;

/* ---- the network, and in the place of the others ---- */

static struct attempt {
    const struct leat_conn_handler *handler;
    void *user;
    char address[64];
} attempts[128];
static unsigned attempt_count, closed, refused;
static leat_err connect_rc;
static uint64_t refused_incarnation, refused_voter;

static leat_err net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                            void *user, struct leat_conn **out_conn)
{
    (void)ctx;
    if (connect_rc != LEAT_OK) return connect_rc;
    struct attempt *it = &attempts[attempt_count++];
    snprintf(it->address, sizeof it->address, "%s", address);
    it->handler = handler;
    it->user = user;
    *out_conn = (struct leat_conn *)(void *)it;
    return LEAT_OK;
}
static void net_close(struct leat_conn *conn)
{
    assert_non_null(conn);
    closed++;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    (void)drive;
    return leads;
}
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *asked, uint64_t incarnation)
{
    static struct co_peer peer;
    (void)asked;
    return incarnation_known ? &peer : NULL;
}
struct co_peer *co_peer_of_voter(struct leat_coordinator *asked, uint64_t id)
{
    static struct co_peer peer;
    (void)asked;
    (void)id;
    return voter_known ? &peer : NULL;
}
void co_detect_refused(struct leat_coordinator *asked, uint64_t incarnation, uint64_t voter_id)
{
    assert_ptr_equal(asked, coordinator);
    refused++;
    refused_incarnation = incarnation;
    refused_voter = voter_id;
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}

static int begin(void **state)
{
    (void)state;
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    clock_of_test = (struct leat_clock){.now_us = clock_now, .wake_at = clock_wake};
    net = (struct leat_net){.connect = net_connect, .close = net_close};
    env = (struct leat_env){.clock = &clock_of_test, .net = &net};
    coordinator->env = &env;
    coordinator->clustered = coordinator->votes = true;
    coordinator->incarnation = OWN;
    assert_int_equal(leat_timers_init(&coordinator->timers, &clock_of_test, 4), LEAT_OK);
    leat_machine_init(&coordinator->machine, 1);
    co_probes_init(coordinator);
    attempt_count = closed = refused = 0;
    connect_rc = LEAT_OK;
    now_us = 100000000;
    leads = true;
    incarnation_known = voter_known = false;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    leat_timers_fini(&coordinator->timers);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}

static void opens(struct attempt *it)
{
    it->handler->on_open(it->user, (struct leat_conn *)(void *)it);
}
static void closes(struct attempt *it, leat_err why)
{
    it->handler->on_closed(it->user, (struct leat_conn *)(void *)it, why);
}
static void run_at(uint64_t at_us)
{
    now_us = at_us;
    leat_timers_run(&coordinator->timers);
}

/* ---- probes ---- */

/* No process listens at the address: the probe reports that. A connection that this node closed, or a machine without
 * resources, reports nothing. */
static void address_that_refuses_is_told(void **state)
{
    (void)state;
    static const struct {
        leat_err why;
        unsigned told;
    } cases[] = {{LEAT_E_CLOSED, 1}, {LEAT_OK, 0}, {LEAT_E_NO_MEMORY, 0}};
    for (unsigned c = 0; c < 3; c++) {
        co_probe_start(coordinator, "h:1", 7, 8);
        assert_string_equal(attempts[attempt_count - 1].address, "h:1");
        assert_int_equal(coordinator->detect.probe_count, 1);
        refused = 0;
        closes(&attempts[attempt_count - 1], cases[c].why);
        assert_int_equal(refused, cases[c].told);
        assert_int_equal(coordinator->detect.probe_count, 0);
        assert_true(leat_list_empty(&coordinator->detect.probes));
    }
    assert_true(refused_incarnation == 7 && refused_voter == 8);
    co_probe_start(coordinator, "no port", 7, 8);
    connect_rc = LEAT_E_NO_MEMORY;
    co_probe_start(coordinator, "h:1", 7, 8);
    connect_rc = LEAT_OK;
    leat_mem_fail_at(1);
    co_probe_start(coordinator, "h:1", 7, 8);
    leat_mem_fail_at(0);
    assert_int_equal(attempt_count, 3);
    assert_int_equal(coordinator->detect.probe_count, 0);
}

static void probes_are_limited(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= CO_PROBES_MAX; i++)
        co_probe_start(coordinator, "h:1", 7, 8);
    assert_int_equal(attempt_count, CO_PROBES_MAX);
    assert_int_equal(coordinator->detect.probe_count, CO_PROBES_MAX);
    for (unsigned i = 0; i < CO_PROBES_MAX; i++)
        closes(&attempts[i], LEAT_OK);
    assert_int_equal(coordinator->detect.probe_count, 0);
}

/* Somebody took the connection: it is tried again, later and later, ten times, while nothing is heard of who was
 * meant. */
static void address_that_takes_is_tried_again(void **state)
{
    (void)state;
    static const uint64_t pauses[] = {2, 4, 8, 16, 20, 20, 20, 20, 20, 20};
    co_probe_start(coordinator, "h:1", 7, 0);
    for (unsigned i = 0; i < 10; i++) {
        size_t want;
        opens(&attempts[i]);
        assert_int_equal(closed, i + 1);
        assert_int_equal(attempts[i].handler->on_bytes(attempts[i].user, NULL, NULL, 5, &want), 5);
        assert_int_equal(want, 0);
        closes(&attempts[i], LEAT_OK);
        assert_int_equal(coordinator->detect.probe_count, 1);
        const uint64_t at_us = now_us + pauses[i] * MS;
        run_at(at_us - 1);
        assert_int_equal(attempt_count, i + 1);
        run_at(at_us);
        assert_int_equal(attempt_count, i + 2);
    }
    opens(&attempts[10]);
    closes(&attempts[10], LEAT_OK);
    assert_int_equal(coordinator->detect.probe_count, 0);
    assert_int_equal(refused, 0);
}

/* The probe of a node matters while this node leads and does not hear that node; the probe of the leader matters while
 * that voter leads and is not heard. */
static void probe_that_does_not_matter_ends(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 9; c++)
        for (unsigned later = 0; later < 2; later++) {
            const uint64_t incarnation = c < 4 && c != 3 ? 7 : 0, voter = c >= 4 && c != 7 ? 8 : 0;
            leads = true;
            incarnation_known = voter_known = false;
            coordinator->detect.leader = 8;
            const unsigned before = attempt_count;
            co_probe_start(coordinator, "h:1", incarnation, voter);
            opens(&attempts[before]);
            if (later) closes(&attempts[before], LEAT_OK); /* it rests, if it mattered then */
            if (c == 1) leads = false;
            if (c == 2) incarnation_known = true;
            if (c == 5) coordinator->detect.leader = 9;
            if (c == 6) voter_known = true;
            if (c == 8) leads = false;
            const bool matters = c == 0 || c == 4 || c == 8;
            if (!later) closes(&attempts[before], LEAT_OK);
            run_at(now_us + 2 * MS);
            assert_int_equal(attempt_count, before + 1 + matters);
            assert_int_equal(coordinator->detect.probe_count, matters);
            if (!matters) continue;
            closes(&attempts[before + 1], LEAT_OK);
            assert_int_equal(coordinator->detect.probe_count, 0);
        }
}

/* Several rest: each is tried at its own time. */
static void probes_that_rest_each_have_their_time(void **state)
{
    (void)state;
    const uint64_t begun = now_us;
    co_probe_start(coordinator, "a:1", 7, 0);
    opens(&attempts[0]);
    closes(&attempts[0], LEAT_OK); /* until begun + 2 ms */
    now_us = begun + 1 * MS;
    co_probe_start(coordinator, "b:1", 7, 0);
    opens(&attempts[1]);
    closes(&attempts[1], LEAT_OK); /* until begun + 3 ms */
    run_at(begun + 2 * MS);
    assert_int_equal(attempt_count, 3);
    assert_string_equal(attempts[2].address, "a:1");
    assert_int_equal(coordinator->detect.again.at_us, begun + 3 * MS);
    run_at(begun + 3 * MS);
    assert_int_equal(attempt_count, 4);
    assert_string_equal(attempts[3].address, "b:1");
    closes(&attempts[2], LEAT_OK);
    closes(&attempts[3], LEAT_OK);
}

static void probe_without_an_answer_is_given_up_once(void **state)
{
    (void)state;
    co_probe_start(coordinator, "h:1", 7, 0);
    co_probes_expire(coordinator, now_us + 1000 * MS);
    assert_int_equal(closed, 0);
    co_probes_expire(coordinator, now_us + 1000 * MS + 1);
    co_probes_expire(coordinator, now_us + 9000 * MS);
    assert_int_equal(closed, 1);
    closes(&attempts[0], LEAT_OK);
}

/* When the coordinator ends, the network frees the probes with a connection under way; all other probes are freed at
 * once. */
static void probes_end_with_their_coordinator(void **state)
{
    (void)state;
    co_probe_start(coordinator, "a:1", 7, 0);
    opens(&attempts[0]);
    closes(&attempts[0], LEAT_OK); /* rests */
    co_probe_start(coordinator, "b:1", 7, 0);
    closed = 0;
    co_probes_fini(coordinator);
    assert_int_equal(closed, 1);
    opens(&attempts[1]); /* it had come already */
    assert_int_equal(closed, 1);
    closes(&attempts[1], LEAT_E_CLOSED);
    assert_int_equal(refused, 0);
}

#define PROBE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROBE_TEST(address_that_refuses_is_told),
        PROBE_TEST(probes_are_limited),
        PROBE_TEST(address_that_takes_is_tried_again),
        PROBE_TEST(probe_that_does_not_matter_ends),
        PROBE_TEST(probes_that_rest_each_have_their_time),
        PROBE_TEST(probe_without_an_answer_is_given_up_once),
        PROBE_TEST(probes_end_with_their_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
