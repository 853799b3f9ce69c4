/* SPDX-License-Identifier: Apache-2.0 */
/* The failure detector, with a clock of the test's. This file plays links, raft, pings, probes and the queue of
 * requests, and writes their calls to the trace. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_DETECT_RIG_H
#define LEAT_TESTS_COORDINATOR_DETECT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/timer.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"

enum { NODES = 4, OWN = 10 /* of n0; n1 has 11 and so on; voter ids are 1 more than places */ };
enum { PING_US = 25000, SUSPECT_US = 100000, CONFIRM_US = 60000, MOST_US = 3000000, TERM = 5 };

static struct leat_coordinator *coordinator;
static struct co_detect *it;
static struct leat_clock clock_of_test;
static struct leat_env env;
static uint64_t now_us;

static struct peer_of_test {
    struct co_peer peer;
    bool up, gone, votes, other_cluster;
    uint64_t heard_us;
} peers[NODES];
static struct raft_server servers[NODES];
static char addresses[NODES][16];
static bool leads, learns, expected;
static raft_id leader, named; /* by raft; by peers, where it is another */
static uint64_t last_index, last_term;
static unsigned probes_expired, standings_advanced;

/* ---- in the place of the others: what is asked of them, in order ---- */

static char calls[1024];
static struct leat_coordinate *queued;

__attribute__((format(printf, 1, 2))) static void called(const char *format, ...)
{
    va_list args;
    size_t used = strlen(calls);
    if (used) used += (size_t)snprintf(calls + used, sizeof calls - used, ", ");
    va_start(args, format);
    vsnprintf(calls + used, sizeof calls - used, format, args);
    va_end(args);
}
#define expect_calls(all)                                                                          \
    do {                                                                                           \
        assert_string_equal(calls, all);                                                           \
        calls[0] = '\0';                                                                           \
    } while (0)

static inline struct peer_of_test *of(const void *peer)
{
    return (struct peer_of_test *)(uintptr_t)peer;
}
static inline unsigned place(const void *peer)
{
    return (unsigned)(of(peer) - peers);
}

bool leat_link_is_up(const struct leat_link *link)
{
    return of(link)->up;
}
uint64_t leat_link_heard_us(const struct leat_link *link)
{
    return of(link)->heard_us;
}
leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control, uint32_t bytes)
{
    struct leat_msg_reader reader;
    uint64_t values[4];
    assert_int_equal(kind, CO_KIND_LOST);
    leat_msg_reader_init(&reader, control, bytes);
    assert_int_equal(leat_msg_read_array(&reader), 4);
    for (unsigned i = 0; i < 4; i++)
        values[i] = leat_msg_read_u64(&reader);
    assert_true(leat_msg_read_done(&reader));
    called("lost %u.%u %u.%u to n%u", (unsigned)values[0], (unsigned)values[1], (unsigned)values[2],
           (unsigned)values[3], place(link));
    return LEAT_E_AGAIN; /* it is told again */
}
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    assert_non_null(why);
    assert_int_equal(rc, LEAT_E_INVALID);
    called("cut n%u", place(link));
}
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *asked, uint64_t incarnation)
{
    (void)asked;
    const uint64_t i = incarnation - OWN;
    return incarnation != coordinator->incarnation && i < NODES && !peers[i].gone ? &peers[i].peer
                                                                                  : NULL;
}
struct co_peer *co_peer_of_voter(struct leat_coordinator *asked, uint64_t id)
{
    (void)asked;
    return id != coordinator->voter_id && id >= 1 && id <= NODES && !peers[id - 1].gone
               ? &peers[id - 1].peer
               : NULL;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    const raft_id whom = named ? named : leader;
    return whom ? co_peer_of_voter(asked, whom) : NULL;
}
bool co_peer_votes(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    return of(peer)->votes;
}
bool co_same_cluster(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    return !of(peer)->other_cluster;
}
bool co_learns(const struct leat_coordinator *asked)
{
    (void)asked;
    return learns;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    (void)r;
    *id = leader;
    *address = leader ? addresses[leader - 1] : NULL;
}
raft_term raft_current_term(const struct raft *r)
{
    (void)r;
    return TERM;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    (void)drive;
    return leads;
}
void leat_raft_drive_last(struct leat_raft_drive *drive, uint64_t *out_index, uint64_t *out_term)
{
    (void)drive;
    *out_index = last_index;
    *out_term = last_term;
}
void leat_raft_drive_take_over(struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    called("take over");
}
void co_request_queue(struct leat_coordinator *asked, struct leat_coordinate *request)
{
    assert_ptr_equal(asked, coordinator);
    assert_int_equal(request->kind, LEAT_COORDINATE_CRASH);
    called("crash %s %u", request->target, (unsigned)request->incarnation);
    queued = request;
}
void co_standing_set(struct leat_coordinator *asked, enum leat_standing standing)
{
    assert_ptr_equal(asked, coordinator);
    called("stands %d", standing);
}
void co_standing_advance(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    standings_advanced++;
}
void co_ping_send(struct leat_coordinator *asked, struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    called("ping n%u", place(peer));
}
unsigned co_voters_count(const struct leat_coordinator *asked)
{
    return asked->drive.raft.configuration.n;
}
bool co_others_expected(const struct leat_coordinator *asked)
{
    (void)asked;
    return expected;
}
void co_probes_init(struct leat_coordinator *asked)
{
    (void)asked;
    called("probes");
}
void co_probes_fini(struct leat_coordinator *asked)
{
    (void)asked;
    called("no probes");
}
void co_probes_expire(struct leat_coordinator *asked, uint64_t at_us)
{
    (void)asked;
    assert_int_equal(at_us, now_us);
    probes_expired++;
}
void co_probe_start(struct leat_coordinator *asked, const char *address, uint64_t incarnation,
                    uint64_t voter_id)
{
    assert_ptr_equal(asked, coordinator);
    called("probe %s %u %u", address, (unsigned)incarnation, (unsigned)voter_id);
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
static void on_collect(void *owner, struct leat_collect *collect)
{
    (void)owner;
    (void)collect;
}

/* ---- a cluster: n0 is this node; n0 to n2 vote ---- */

static inline int begin(void **state)
{
    (void)state;
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    it = &coordinator->detect;
    clock_of_test = (struct leat_clock){.now_us = clock_now, .wake_at = clock_wake};
    env = (struct leat_env){.clock = &clock_of_test};
    coordinator->env = &env;
    assert_int_equal(leat_timers_init(&coordinator->timers, &clock_of_test, 8), LEAT_OK);
    coordinator->clustered = coordinator->votes = true;
    coordinator->start = CO_START_READY;
    coordinator->options.on_collect = on_collect;
    coordinator->incarnation = OWN;
    coordinator->voter_id = 1;
    coordinator->drive.raft.configuration.servers = servers;
    coordinator->drive.raft.configuration.n = 3;
    leat_list_init(&coordinator->peers);
    leat_machine_init(&coordinator->machine, 1);
    coordinator->machine.node_count = NODES;
    memset(peers, 0, sizeof peers);
    now_us = 100000000;
    for (unsigned i = 0; i < NODES; i++) {
        struct leat_node_info *info = &coordinator->machine.nodes[i].info;
        snprintf(info->name, sizeof info->name, "n%u", i);
        snprintf(info->node_address, sizeof info->node_address, "h%u:1", i);
        snprintf(addresses[i], sizeof addresses[i], "h%u:1", i);
        info->incarnation = OWN + i;
        info->state = LEAT_NODE_UP;
        servers[i] = (struct raft_server){.id = i + 1, .address = addresses[i], .role = RAFT_VOTER};
        struct peer_of_test *peer = &peers[i];
        peer->peer.link = (struct leat_link *)(void *)peer;
        peer->up = peer->votes = true;
        peer->peer.state.known = true;
        peer->peer.state.incarnation = OWN + i;
        peer->peer.state.voter_id = i < 3 ? i + 1 : 0;
        snprintf(peer->peer.state.address, sizeof peer->peer.state.address, "p%u:1", i);
        leat_list_init(&peer->peer.list);
        if (i) leat_list_push_back(&coordinator->peers, &peer->peer.list);
        coordinator->watch[i] =
            (struct co_watch){.incarnation = OWN + i, .said_us = now_us, .heard_us = now_us};
    }
    leads = true;
    learns = false;
    expected = true;
    leader = 1;
    named = 0;
    last_index = last_term = 5;
    calls[0] = '\0';
    queued = NULL;
    probes_expired = standings_advanced = 0;
    coordinator->leads_since_us = now_us;
    co_detect_init(coordinator);
    assert_int_equal(it->standing, LEAT_STANDING_CONFIRMED);
    expect_calls("probes");
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    co_detect_fini(coordinator);
    expect_calls("no probes");
    leat_timers_fini(&coordinator->timers);
    free(coordinator);
    return 0;
}

static inline void round_at(uint64_t at_us)
{
    now_us = at_us;
    it->timer.on_expired(&it->timer);
}
/* A round that is not late. */
static inline void round_in_time(uint64_t at_us)
{
    it->expected_us = at_us;
    round_at(at_us);
}
static inline void follow(raft_id whom)
{
    leads = false;
    leader = whom;
}
#define PINGS "ping n1, ping n2, ping n3"
static inline void answers(uint64_t at_us, unsigned but)
{
    for (unsigned i = 1; i < NODES; i++)
        if (i != but)
            peers[i].peer.pong_us = coordinator->watch[i].heard_us =
                at_us; /* and the round before read it */
}

/* This node is n2, voter 3, and n0 is one of the others. */
static inline void be_the_last_voter(void)
{
    coordinator->incarnation = OWN + 2;
    coordinator->voter_id = 3;
    leat_list_remove(&peers[2].peer.list);
    leat_list_push_front(&coordinator->peers, &peers[0].peer.list);
}

#define DETECT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
