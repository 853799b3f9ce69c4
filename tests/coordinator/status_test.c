/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator's report of the cluster for operators: its voters, its leader, its faults, the node for which a start
 * waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"
#include "coordinator/recovery/attempt.h"
#include "tests/trace.h"

enum { PEERS = 3, TERM = 7, LAST_INDEX = 29 };

struct leat_link {
    unsigned number;
    bool up;
    char address[16];
};
static struct leat_link links[PEERS];
static struct co_peer peers[PEERS]; /* voters 2 to 4 */
static bool reached[PEERS];
static struct leat_coordinator *coordinator;
static struct leat_coordinator_status *status;
static struct raft_server servers[LEAT_VOTERS_MAX + 1];
static char addresses[LEAT_VOTERS_MAX + 1][16];
static bool leads;
static raft_id raft_leads;
static const char *raft_leads_at;
static struct co_peer *leader;
static unsigned posted_to;
static struct leat_mail *posted;

bool leat_link_is_up(const struct leat_link *link)
{
    return link->up;
}
const char *leat_link_address(const struct leat_link *link)
{
    return link->address;
}
struct co_peer *co_peer_of_voter(struct leat_coordinator *asked, uint64_t id)
{
    assert_ptr_equal(asked, coordinator);
    return id >= 2 && id < 2 + PEERS && reached[id - 2] ? &peers[id - 2] : NULL;
}
struct co_peer *co_peer_of_address(struct leat_coordinator *asked, const char *address)
{
    assert_ptr_equal(asked, coordinator);
    for (unsigned i = 0; i < PEERS; i++)
        if (reached[i] && strcmp(address, links[i].address) == 0) return &peers[i];
    return NULL;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return leader;
}
enum leat_voter_role co_role(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return LEAT_VOTER_CANDIDATE;
}
void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->address, sizeof out->address, "%.*s", (int)strcspn(text, " "), text);
}
void co_report_fill(struct leat_coordinator *asked, struct leat_recovery_report *out)
{
    assert_ptr_equal(asked, coordinator);
    out->ended = 99;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
raft_term raft_current_term(const struct raft *r)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    return TERM;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    *id = raft_leads;
    *address = raft_leads_at;
}
int raft_match_index(const struct raft *r, raft_id id, raft_index *index)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    *index = 10 + id;
    return id == 4 ? RAFT_BADID : 0;
}
static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d: %s\n", (int)level, line);
}
static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &posted);
    posted_to = to;
    posted = mail;
}
static const struct leat_post post = {.ctx = &posted, .send = post_send, .self = 12};
static const struct leat_env env = {.post = &post};

/* ---- voter 1 of 4 at h1:1 to h4:1; all are met; voter 3 leads ---- */

static int begin(void **state)
{
    (void)state;
    trace_begin();
    coordinator = calloc(1, sizeof *coordinator);
    status = calloc(1, sizeof *status);
    assert_true(coordinator && status);
    coordinator->env = &env;
    leat_list_init(&coordinator->peers);
    coordinator->links = (struct leat_links *)(void *)&env;
    coordinator->votes = true;
    coordinator->voter_id = 1;
    coordinator->applied = 42;
    coordinator->drive.log.start_index = 20;
    coordinator->drive.log.entry_count = LAST_INDEX - 19;
    for (unsigned i = 0; i <= LEAT_VOTERS_MAX; i++) {
        snprintf(addresses[i], sizeof addresses[i], "h%u:1 n%u", i + 1, i + 1);
        servers[i] = (struct raft_server){i + 1, addresses[i], RAFT_VOTER};
    }
    coordinator->drive.raft.configuration.servers = servers;
    coordinator->drive.raft.configuration.n = 4;
    for (unsigned i = 0; i < PEERS; i++) {
        links[i] = (struct leat_link){.number = i, .up = true};
        snprintf(links[i].address, sizeof links[i].address, "h%u:1", i + 2);
        peers[i] = (struct co_peer){.link = &links[i], .wanted = true};
        peers[i].state.voter_id = 2 + i;
        peers[i].state.known = true;
        peers[i].state.term = 5;
        snprintf(peers[i].state.address, sizeof peers[i].state.address, "h%u:1", i + 2);
        leat_list_push_back(&coordinator->peers, &peers[i].list);
        reached[i] = true;
    }
    leads = false;
    raft_leads = 3;
    raft_leads_at = "h3:1 n3";
    leader = NULL;
    leat_node_log_set(on_node_log, NULL, LEAT_NODE_LOG_INFO);
    return 0;
}
static int finish(void **state)
{
    (void)state;
    TRACE_IS("");
    free(status);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}
static void say(void)
{
    memset(status, 0x5a, sizeof *status);
    leat_coordinator_status(coordinator, status);
    trace("term %u leader %u '%s' why '%s'\n", (unsigned)status->term, (unsigned)status->leader_id,
          status->leader_address, status->why);
    for (uint32_t i = 0; i < status->voter_count; i++) {
        const struct leat_voter_status *voter = &status->voters[i];
        trace("%u %s votes %d reachable %d last %u\n", (unsigned)voter->id, voter->address,
              voter->votes, voter->reachable, (unsigned)voter->last_index);
    }
}

/* ---- voters ---- */

static void a_voter_names_all_voters(void **state)
{
    (void)state;
    say();
    TRACE_IS("term 7 leader 3 'h3:1' why ''\n1 h1:1 votes 1 reachable 1 last 29\n"
             "2 h2:1 votes 1 reachable 1 last 0\n3 h3:1 votes 1 reachable 1 last 0\n"
             "4 h4:1 votes 1 reachable 1 last 0\n");
    leads = true;
    servers[1].role = RAFT_STANDBY;
    servers[2].role = RAFT_SPARE;
    reached[1] = false;
    raft_leads = 0;
    raft_leads_at = NULL;
    say();
    TRACE_IS("term 7 leader 0 '' why ''\n1 h1:1 votes 1 reachable 1 last 29\n"
             "2 h2:1 votes 0 reachable 1 last 12\n3 h3:1 votes 0 reachable 0 last 13\n"
             "4 h4:1 votes 1 reachable 1 last 0\n");
    coordinator->drive.raft.configuration.n = LEAT_VOTERS_MAX + 1;
    leat_coordinator_status(coordinator, status);
    assert_int_equal(status->voter_count, LEAT_VOTERS_MAX);
    assert_string_equal(status->voters[LEAT_VOTERS_MAX - 1].address, "h9:1");
}

static const char *const listed[] = {"h1:1", "h3:1", "h4:1", "h5:1"};
static void learn(void)
{
    coordinator->votes = false;
    coordinator->options.voters = listed;
    coordinator->options.voter_count = 3;
}

static void a_learner_names_whom_it_was_told_to_ask(void **state)
{
    (void)state;
    learn();
    say();
    TRACE_IS("term 0 leader 0 '' why ''\n0 h1:1 votes 1 reachable 0 last 0\n"
             "3 h3:1 votes 1 reachable 1 last 0\n4 h4:1 votes 1 reachable 1 last 0\n");
    leader = &peers[2];
    say();
    TRACE_IS("term 5 leader 4 'h4:1' why ''\n0 h1:1 votes 1 reachable 0 last 0\n"
             "3 h3:1 votes 1 reachable 1 last 0\n4 h4:1 votes 1 reachable 1 last 0\n");
}

/* ---- what is wrong ---- */

#define NONE(a, b)                                                                                 \
    "no majority: " #a " of " #b " voters can be reached. Logs whose nodes are all up go on; "     \
    "whatever changes streams, nodes or owners waits"

static void why_is(const char *leads_at, const char *expected)
{
    leat_coordinator_status(coordinator, status);
    assert_string_equal(status->why, expected);
    assert_string_equal(status->leader_address, leads_at);
}

static void without_a_majority_nobody_leads(void **state)
{
    (void)state;
    why_is("h3:1", "");
    reached[0] = false;
    why_is("h3:1", "");
    reached[2] = false;
    why_is("h3:1", NONE(2, 4));
    servers[3].role = RAFT_STANDBY; /* 2 of 3 */
    why_is("h3:1", "");
    reached[2] = true;  /* which does not count */
    reached[1] = false; /* who led is not heard any more */
    why_is("", NONE(1, 3));
    coordinator->drive.raft.configuration.n = 1;
    why_is("h3:1", "");
    servers[0].role = RAFT_SPARE; /* nobody votes that it knows of */
    why_is("h3:1", "");
}

static void what_is_known_to_be_wrong_goes_first(void **state)
{
    (void)state;
    memset(reached, 0, sizeof reached);
    snprintf(coordinator->failed_why, sizeof coordinator->failed_why, "it failed");
    why_is("", NONE(1, 4));
    snprintf(peers[1].why, sizeof peers[1].why, "refused: another key");
    why_is("", NONE(1, 4));
    links[1].up = false;
    why_is("", NONE(1, 4));
    peers[1].refused = true;
    why_is("", "refused: another key");
    peers[1].wanted = false;
    why_is("", NONE(1, 4));
    peers[1].wanted = true;
    links[1].up = true; /* it was met since */
    why_is("", NONE(1, 4));
    links[1].up = false;
    links[2].up = false;
    peers[2].refused = true;
    snprintf(peers[2].why, sizeof peers[2].why, "another");
    why_is("", "refused: another key");
    snprintf(coordinator->why, sizeof coordinator->why, "?");
    why_is("", "?");
    snprintf(coordinator->why, sizeof coordinator->why, "it forgot");
    why_is("", "it forgot");
    coordinator->failed = LEAT_E_DISK;
    why_is("", "it failed");
}

/* ---- everything else ---- */

static void stream(uint32_t i, uint32_t logs, bool internal)
{
    struct leat_machine *machine = &coordinator->machine;
    static struct leat_machine_stream streams[4];
    static struct leat_stream_desc *descs[4];
    if (!descs[i]) descs[i] = calloc(1, sizeof *descs[i]);
    assert_non_null(descs[i]);
    descs[i]->internal = internal;
    streams[i] = (struct leat_machine_stream){.desc = descs[i], .log_count = logs};
    machine->streams = streams;
    machine->stream_count = i + 1;
}

static void what_the_tables_have(void **state)
{
    (void)state;
    struct leat_machine *machine = &coordinator->machine;
    memset(machine->cluster_id, 0xc1, 16);
    machine->node_count = 2;
    for (unsigned i = 0; i < 3; i++)
        machine->nodes[i].info.incarnation = 50 + i;
    stream(0, 8, false);
    stream(1, 16, true);
    stream(2, 4, false);
    leads = true;
    coordinator->start = CO_START_READY;
    memset(status, 0x5a, sizeof *status);
    leat_coordinator_status(coordinator, status);
    assert_int_equal(status->role, LEAT_VOTER_CANDIDATE);
    assert_true(status->applied_index == 42 && status->voter_id == 1);
    assert_true(status->ready && status->leads);
    assert_memory_equal(status->cluster_id, machine->cluster_id, 16);
    assert_int_equal(status->node_count, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(status->nodes[i].incarnation, 50 + i);
    assert_int_equal(status->nodes[2].incarnation,
                     0x5a5a5a5a5a5a5a5a); /* not counted: not written */
    assert_int_equal(status->stream_count, 2);
    assert_int_equal(status->log_count, 12);
    assert_int_equal(status->recovery.ended, 99);
    leads = false;
    coordinator->start = CO_START_ASKS;
    machine->stream_count = 0;
    leat_coordinator_status(coordinator, status);
    assert_true(!status->ready && !status->leads && status->stream_count == 0);
}

static struct leat_coordinator_ask *answered;
static void on_done(struct leat_coordinator_ask *ask)
{
    answered = ask;
}

static void another_actor_asks(void **state)
{
    (void)state;
    static const struct leat_post asker = {.ctx = &posted, .send = post_send, .self = 5};
    struct leat_coordinator_ask ask = {.status = status, .on_done = on_done};
    leat_coordinator_status_ask(&asker, &ask);
    assert_ptr_equal(posted, &ask.mail);
    assert_int_equal(posted_to, LEAT_ACTOR_COORDINATOR);
    posted = NULL;
    ask.mail.deliver(coordinator, &ask.mail);
    assert_ptr_equal(posted, &ask.mail);
    assert_int_equal(posted_to, 5);
    assert_int_equal(status->applied_index, 42);
    assert_null(answered);
    posted = NULL;
    ask.mail.deliver(NULL, &ask.mail);
    assert_ptr_equal(answered, &ask);
    assert_null(posted);
}

/* ---- why the leader does not answer ---- */

static void lacks(size_t bytes, const char *expected)
{
    char text[512];
    memset(text, 0x5a, sizeof text);
    co_leader_lacks_tell(coordinator, "No: ", text, bytes);
    assert_string_equal(text, expected);
    for (size_t i = bytes; i < sizeof text; i++)
        assert_int_equal(text[i], 0x5a);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
}

static void what_the_leader_lacks(void **state)
{
    (void)state;
    const size_t most = 500;
    lacks(most, "No: the cluster's leader, h3:1, does not answer");
    snprintf(coordinator->why, sizeof coordinator->why, "it forgot");
    lacks(most, "No: the cluster's leader, h3:1, does not answer: it forgot");
    coordinator->why[0] = 0;
    raft_leads = 0;
    raft_leads_at = NULL;
    lacks(most, "No: the cluster has no leader");
    reached[0] = false;
    lacks(most, "No: the cluster has no leader");
    reached[1] = false;
    raft_leads = 4;
    raft_leads_at = "h4:1";
    const char *all =
        "No: the cluster has no leader: 2 of 4 voters answer, and it needs 3; start h2:1 h3:1";
    lacks(most, all);
    servers[2].role = RAFT_SPARE; /* nobody needs it; and 3 more are enough */
    coordinator->drive.raft.configuration.n = 5;
    lacks(most, "No: the cluster has no leader: 2 of 4 voters answer, and it needs 3; "
                "start h2:1 h5:1");
    coordinator->drive.raft.configuration.n = 4;
    lacks(most, "No: the cluster's leader, h4:1, does not answer"); /* 2 of 3 */
    servers[3].role = RAFT_STANDBY; /* it is reached, and does not count */
    lacks(most, "No: the cluster has no leader: 1 of 2 voters answer, and it needs 2; start h2:1");
    leat_mem_fail_at(1);
    lacks(most, "No: the cluster has no leader");
    leat_mem_fail_at(0);
    coordinator->drive.raft.configuration.n = 0;
    raft_leads = 0;
    raft_leads_at = NULL;
    lacks(most, "No: the cluster has no leader");
}

static void what_a_learner_lacks(void **state)
{
    (void)state;
    learn();
    reached[1] = false;
    lacks(500, "No: the cluster has no leader: 1 of 3 voters answer, and it needs 2; "
               "start h1:1 h3:1");
}

static void what_it_lacks_fits(void **state)
{
    (void)state;
    memset(reached, 0, sizeof reached);
    const char *all = "No: the cluster has no leader: 1 of 4 voters answer, and it needs 3; "
                      "start h2:1 h3:1 h4:1";
    char cut[256];
    for (size_t bytes = 1; bytes <= strlen(all) + 1; bytes++) {
        snprintf(cut, sizeof cut, "%.*s", (int)bytes - 1, all);
        lacks(bytes, cut);
    }
}

/* ---- for whom a start waits ---- */

#define WAITS     "node log 1: coordinator: this node is not ready: it waits for "
#define MORE_THAN WAITS "more than half of the voters"
#define ALL_OTHER WAITS "all other voters, which have to be there for a cluster to form"
#define RIGHT     ". Is each named right in --coordinators?\n"

static void tells(const char *expected)
{
    coordinator->wait_tell_us = 1;
    co_wait_tell(coordinator, 1000);
    trace_must_be(expected, __FILE__, __LINE__);
}

static void it_is_said_after_a_while_and_again(void **state)
{
    (void)state;
    co_wait_tell(coordinator, 1000);
    TRACE_IS("");
    assert_int_equal(coordinator->wait_tell_us, 3001000);
    co_wait_tell(coordinator, 3000999);
    TRACE_IS("");
    co_wait_tell(coordinator, 3001000);
    TRACE_IS(MORE_THAN "\n");
    assert_int_equal(coordinator->wait_tell_us, 63001000);
    co_wait_tell(coordinator, 63000999);
    TRACE_IS("");
    co_wait_tell(coordinator, 63001001);
    TRACE_IS(MORE_THAN "\n");
    assert_int_equal(coordinator->wait_tell_us, 123001001);
    for (unsigned i = 0; i < 3; i++) {
        coordinator->start = i == 0 ? CO_START_READY : CO_START_TOLD;
        coordinator->forgot = i == 1;
        coordinator->links = i == 2 ? NULL : (struct leat_links *)(void *)&env;
        tells("");
    }
}

static void who_is_awaited(void **state)
{
    (void)state;
    links[0].up = false;
    tells(MORE_THAN "; not met: h2:1 (no answer yet)\n");
    snprintf(peers[0].why, sizeof peers[0].why, "h2:1: refused");
    snprintf(coordinator->why, sizeof coordinator->why, "it forgot");
    tells(MORE_THAN "; not met: h2:1: refused; it forgot\n");
    snprintf(peers[2].state.address, sizeof peers[2].state.address, "x4:1");
    links[1].up = false;
    coordinator->why[0] = 0;
    tells(MORE_THAN "; not met: h2:1: refused, h3:1 (no answer yet), h4:1 (it calls itself x4:1: "
                    "--coordinators and its --node-listen have to say the same)\n");
    peers[2].state.known = false;
    peers[1].wanted = false;
    tells(MORE_THAN "; not met: h2:1: refused\n");
    coordinator->forming = LEAT_VOTER_FOLLOWER;
    tells(MORE_THAN "; not met: h2:1: refused\n");
    coordinator->votes = false;
    coordinator->forming = LEAT_VOTER_LEARNER;
    tells(MORE_THAN "; not met: h2:1: refused\n");
    coordinator->forming = LEAT_VOTER_EMPTY;
    tells(ALL_OTHER "; not met: h2:1: refused" RIGHT);
    links[0].up = true;
    tells(ALL_OTHER "\n");
    snprintf(coordinator->why, sizeof coordinator->why, "it forgot");
    tells(ALL_OTHER "; it forgot\n");
}

static void as_many_are_said_as_fit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PEERS; i++) {
        links[i].up = false;
        memset(peers[i].why, 'a' + (int)i, sizeof peers[i].why - 1);
    }
    static struct co_peer more[PEERS];
    for (unsigned i = 0; i < PEERS; i++) {
        more[i] = peers[2];
        leat_list_push_back(&coordinator->peers, &more[i].list);
    }
    coordinator->wait_tell_us = 1;
    co_wait_tell(coordinator, 1000);
    assert_non_null(strstr(trace_text, "; not met: aaa"));
    assert_non_null(strstr(trace_text, "aaa, bbb"));
    assert_null(strstr(trace_text, "ccc"));
    trace_begin();
}

#define STATUS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
int main(void)
{
    const struct CMUnitTest tests[] = {
        STATUS_TEST(a_voter_names_all_voters),
        STATUS_TEST(a_learner_names_whom_it_was_told_to_ask),
        STATUS_TEST(without_a_majority_nobody_leads),
        STATUS_TEST(what_is_known_to_be_wrong_goes_first),
        STATUS_TEST(what_the_tables_have),
        STATUS_TEST(another_actor_asks),
        STATUS_TEST(what_the_leader_lacks),
        STATUS_TEST(what_a_learner_lacks),
        STATUS_TEST(what_it_lacks_fits),
        STATUS_TEST(it_is_said_after_a_while_and_again),
        STATUS_TEST(who_is_awaited),
        STATUS_TEST(as_many_are_said_as_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
