/* SPDX-License-Identifier: Apache-2.0 */
/* How a node stands: states drawn by dice, and words of others, against a plain second telling of the rules. Who
 * votes and leads, links and raft are stood in for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"

enum { PEERS = 4, OWN = 10, SUSPECT_US = 100000, CONFIRM_US = 60000, NOW_US = 50000000 };

static struct leat_coordinator *coordinator;
static struct leat_xoshiro dice;
static struct leat_clock clock_of_test;
static struct leat_env env;
static struct leat_link_identity identity = {.node = "me"};
static uint64_t term;
static bool leads, learns;

static struct peer_of_test {
    struct co_peer peer;
    uint64_t heard_us;
    bool heard_of, votes, leads, same_cluster;
} peers[PEERS];

static uint64_t below(uint64_t bound)
{
    return leat_xoshiro_below(&dice, bound);
}
static const struct peer_of_test *of(const struct co_peer *peer)
{
    return (const struct peer_of_test *)(const void *)peer;
}

/* ---- in the place of the others ---- */

static unsigned told, cut, behind, deaf;
static uint16_t told_kind;
static uint8_t told_bytes[64];
static size_t told_count;
static uint64_t behind_index;
static enum leat_standing said[8];
static unsigned said_count;

const struct leat_link_identity *leat_links_identity(const struct leat_links *links)
{
    (void)links;
    return &identity;
}
uint64_t leat_link_heard_us(const struct leat_link *link)
{
    return of((const struct co_peer *)(const void *)link)->heard_us;
}
leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control, uint32_t bytes)
{
    (void)link;
    told++;
    told_kind = kind;
    memcpy(told_bytes, control, bytes);
    told_count = bytes;
    return told % 2 ? LEAT_OK : LEAT_E_AGAIN; /* it does not matter */
}
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    (void)link;
    assert_int_equal(rc, LEAT_E_INVALID);
    assert_non_null(why);
    cut++;
}
uint64_t co_suspect_us(const struct leat_coordinator *asked)
{
    (void)asked;
    return SUSPECT_US;
}
uint64_t co_confirm_us(const struct leat_coordinator *asked)
{
    (void)asked;
    return CONFIRM_US;
}
bool co_peer_heard_of(const struct co_peer *peer)
{
    return of(peer)->heard_of;
}
bool co_peer_votes(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    return of(peer)->votes;
}
bool co_peer_leads(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    return of(peer)->leads;
}
bool co_learns(const struct leat_coordinator *asked)
{
    (void)asked;
    return learns;
}
bool co_same_cluster(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    return of(peer)->same_cluster;
}
void co_feed_behind(struct leat_coordinator *asked, struct co_peer *peer, uint64_t index)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(peer, &peers[0].peer);
    behind++;
    behind_index = index;
}
void co_detect_deaf(struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(peer, &peers[0].peer);
    deaf++;
}
raft_term raft_current_term(const struct raft *r)
{
    (void)r;
    return term;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    (void)drive;
    return leads;
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return NOW_US;
}
static void on_standing(void *owner, enum leat_standing standing)
{
    assert_ptr_equal(owner, &said);
    said[said_count++ % 8] = standing;
}

/* ---- worlds ---- */

static struct raft_server servers[4];

static int finish(void **state);
static int begin(void **state)
{
    (void)state;
    if (coordinator) finish(NULL);
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    clock_of_test = (struct leat_clock){.now_us = clock_now};
    env = (struct leat_env){.clock = &clock_of_test};
    coordinator->env = &env;
    coordinator->links = (struct leat_links *)(void *)&identity;
    coordinator->incarnation = OWN;
    coordinator->options.on_standing = on_standing;
    coordinator->options.owner = &said;
    coordinator->detect.standing = LEAT_STANDING_CONFIRMED;
    leat_list_init(&coordinator->peers);
    leat_machine_init(&coordinator->machine, 1);
    memset(peers, 0, sizeof peers);
    told = cut = behind = deaf = said_count = 0;
    leads = learns = false;
    term = 5;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    free(coordinator);
    coordinator = NULL;
    return 0;
}

static void node_add(const char *name, uint64_t incarnation, enum leat_node_state node_state,
                     bool crashed)
{
    struct leat_node_info *info =
        &coordinator->machine.nodes[coordinator->machine.node_count++].info;
    snprintf(info->name, sizeof info->name, "%s", name);
    snprintf(info->node_address, sizeof info->node_address, "h:1");
    info->incarnation = incarnation;
    info->state = node_state;
    info->crashed = crashed;
}

static void world_draw(uint64_t seed)
{
    begin(NULL);
    leat_xoshiro_seed(&dice, seed);
    struct co_detect *it = &coordinator->detect;
    coordinator->votes = below(4) > 0;
    leads = coordinator->votes && below(2);
    learns = below(4) == 0;
    coordinator->incarnation = below(8) ? OWN : 0;
    coordinator->applied = 20;
    it->standing = LEAT_STANDING_CONFIRMED + (enum leat_standing)(below(9) < 4    ? 1
                                                                  : below(9) == 0 ? 2
                                                                                  : 0);
    it->number = 30;
    it->alone_from = 28 + below(4);
    it->behind = below(2) ? 20 : 19 * below(2);
    it->deaf = below(2);
    it->judged_us = NOW_US;
    it->heard_us = NOW_US - SUSPECT_US - CONFIRM_US - 1 + below(3);
    struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    configuration->servers = servers;
    configuration->n = (unsigned)below(5);
    for (unsigned i = 0; i < configuration->n; i++)
        servers[i] = (struct raft_server){.id = i + 1, .role = below(4) ? RAFT_VOTER : RAFT_SPARE};
    node_add("me", OWN, LEAT_NODE_UP, false);
    if (below(5)) node_add("n1", 11, below(6) ? LEAT_NODE_UP : LEAT_NODE_DOWN, below(4) == 0);
    if (coordinator->machine.node_count > 1 && below(8) == 0)
        coordinator->machine.nodes[1].info.node_address[0] = '\0';
    node_add("behind", 99, LEAT_NODE_UP, false); /* behind the last: nobody's row */
    coordinator->machine.node_count--;
    for (unsigned i = 0; i < PEERS; i++) {
        struct peer_of_test *peer = &peers[i];
        peer->peer.link = (struct leat_link *)(void *)peer;
        peer->heard_of = below(3) > 0;
        peer->heard_us = NOW_US - SUSPECT_US - CONFIRM_US - 2 + below(4);
        peer->votes = below(3) > 0;
        peer->leads = below(2);
        peer->same_cluster = below(6) > 0;
        peer->peer.wanted = below(3) > 0;
        peer->peer.pong_number = 27 + below(4);
        peer->peer.pong_term = 3 + below(4);
        peer->peer.state.voter_id = below(4);
        peer->peer.state.term = 4 + below(3);
        snprintf(peer->peer.state.node, sizeof peer->peer.state.node, "n%u", (unsigned)below(3));
        leat_list_init(&peer->peer.list);
        leat_list_push_back(&coordinator->peers, &peer->peer.list);
    }
}

/* ---- the rules, told again ---- */

static unsigned voters(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < coordinator->drive.raft.configuration.n; i++)
        count += servers[i].role == RAFT_VOTER;
    return coordinator->votes ? count : 0;
}
static bool others(void)
{
    const struct leat_node_info *info = &coordinator->machine.nodes[1].info;
    if (coordinator->incarnation != OWN) return true; /* then its own row is another's */
    return coordinator->machine.node_count > 1 && info->state == LEAT_NODE_UP &&
           info->node_address[0];
}

/* A majority has said, since it is alone, that there is no later leader. */
static bool may_lead_on(void)
{
    unsigned agree = 1;
    for (unsigned i = 0; i < PEERS; i++) {
        const struct co_peer *peer = &peers[i].peer;
        if (!peers[i].votes || peer->pong_number < coordinator->detect.alone_from) continue;
        if (peer->pong_term > term) return false;
        agree += peer->wanted && peer->state.voter_id;
    }
    return leads && coordinator->votes && agree > voters() / 2;
}

static enum leat_standing after(enum leat_standing before, enum leat_standing next)
{
    return before == LEAT_STANDING_CRASHED ? before : next;
}

static void node_stands_by_who_is_heard(void **state)
{
    (void)state;
    unsigned seen[4] = {0};
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        world_draw(seed);
        struct co_detect *it = &coordinator->detect;
        const enum leat_standing before = it->standing;
        enum leat_standing expected = before;
        unsigned changes = 0;
        uint64_t heard_us = it->heard_us, alone_from = it->alone_from;
        for (unsigned i = 0; i < PEERS; i++)
            if (peers[i].heard_of && peers[i].heard_us > heard_us) heard_us = peers[i].heard_us;
        assert_int_equal(co_voters_count(coordinator), voters());
        assert_int_equal(co_others_expected(coordinator), others());
        if (coordinator->incarnation == 0) {
            /* as it is */
        } else if (!others()) {
            expected = after(before, LEAT_STANDING_CONFIRMED);
        } else {
            const bool silent = NOW_US - heard_us > SUSPECT_US + CONFIRM_US,
                       sole = leads && coordinator->votes && voters() == 1;
            if (silent && !sole) expected = after(before, LEAT_STANDING_ALONE);
            changes = expected != before;
            if (expected == LEAT_STANDING_ALONE && before != LEAT_STANDING_ALONE)
                coordinator->detect.alone_from = 31;
            if (expected == LEAT_STANDING_ALONE && may_lead_on())
                expected = LEAT_STANDING_CONFIRMED;
            coordinator->detect.alone_from = alone_from;
            if (changes && expected == before) changes = 2; /* there and back */
        }
        if (expected != before) changes = 1;
        co_standing_advance(coordinator);
        if (it->standing != expected)
            fail_msg("seed %u: %d, not %d", (unsigned)seed, it->standing, expected);
        if (said_count) assert_int_equal(said[said_count - 1], expected);
        assert_int_equal(said_count, changes);
        seen[expected]++;
        finish(NULL);
    }
    assert_true(seen[LEAT_STANDING_CONFIRMED] > 1000 && seen[LEAT_STANDING_ALONE] > 1000 &&
                seen[LEAT_STANDING_CRASHED] > 100);
    begin(NULL);
}

/* A crashed node stays crashed; each change is reported once, and isolation begins with the next ping. */
static void standing_is_told_once_and_crashed_is_for_good(void **state)
{
    (void)state;
    const enum leat_standing all[] = {LEAT_STANDING_CONFIRMED, LEAT_STANDING_ALONE,
                                      LEAT_STANDING_CRASHED};
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            for (unsigned silent = 0; silent < 2; silent++) {
                begin(NULL);
                coordinator->detect.standing = all[from];
                coordinator->detect.number = 7;
                if (silent) coordinator->options.on_standing = NULL;
                co_standing_set(coordinator, all[to]);
                const bool changes = from != to && from != 2;
                assert_int_equal(coordinator->detect.standing, changes ? all[to] : all[from]);
                assert_int_equal(said_count, changes && !silent);
                assert_int_equal(coordinator->detect.alone_from, changes && to == 1 ? 8 : 0);
                finish(NULL);
            }
    begin(NULL);
}

static void node_reads_of_its_crash_in_the_tables(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 32; c++) {
        begin(NULL);
        struct leat_node_info info = {.incarnation = OWN - 1 + c % 4 % 3, .crashed = c & 4};
        snprintf(info.name, sizeof info.name, "%s", c & 8 ? "me" : "you");
        if (c & 16) coordinator->incarnation = 0;
        co_detect_node(coordinator, &info);
        const bool over = info.incarnation > OWN || (info.incarnation == OWN && info.crashed);
        const bool crashed = !(c & 16) && (c & 8) && over;
        assert_int_equal(coordinator->detect.standing,
                         crashed ? LEAT_STANDING_CRASHED : LEAT_STANDING_CONFIRMED);
        finish(NULL);
    }
    begin(NULL);
    struct leat_node_info info = {.name = "me", .incarnation = OWN + 1};
    coordinator->links = NULL;
    co_detect_node(coordinator, &info);
    assert_int_equal(coordinator->detect.standing, LEAT_STANDING_CONFIRMED);
}

/* ---- words ---- */

static void expect_word(uint16_t kind, const struct co_peer *peer, uint64_t number,
                        enum leat_standing standing)
{
    struct leat_msg_reader reader;
    const struct leat_node_info *info = &coordinator->machine.nodes[1].info;
    const bool known = coordinator->machine.node_count > 1 && strcmp(peer->state.node, "n1") == 0,
               lead = leads && coordinator->votes;
    assert_int_equal(told_kind, kind);
    leat_msg_reader_init(&reader, told_bytes, told_count);
    assert_int_equal(leat_msg_read_array(&reader), 7);
    assert_int_equal(leat_msg_read_bool(&reader), lead && standing != LEAT_STANDING_ALONE);
    assert_int_equal(leat_msg_read_u64(&reader), coordinator->votes ? term : 0);
    assert_int_equal(leat_msg_read_u64(&reader), known ? info->incarnation : 0);
    assert_int_equal(leat_msg_read_bool(&reader), known && info->crashed);
    assert_int_equal(leat_msg_read_u64(&reader), coordinator->applied);
    assert_int_equal(leat_msg_read_u64(&reader), number);
    assert_int_equal(leat_msg_read_bool(&reader), coordinator->detect.deaf && lead);
    assert_true(leat_msg_read_done(&reader));
}

static struct word_of_test {
    bool leads, crashed, deaf;
    uint64_t term, incarnation, applied, number;
} word;

static struct leat_frame frame_draw(uint8_t bytes[64], uint32_t fields)
{
    struct leat_msg_writer w;
    word = (struct word_of_test){.leads = below(3) > 0,
                                 .crashed = below(3) == 0,
                                 .deaf = below(2),
                                 .term = 4 + below(3),
                                 .incarnation = OWN - 1 + below(3),
                                 .applied = 19 + below(3),
                                 .number = 27 + below(5)};
    leat_msg_writer_init(&w, bytes, 64);
    leat_msg_write_array(&w, fields);
    leat_msg_write_bool(&w, word.leads);
    leat_msg_write_u64(&w, word.term);
    leat_msg_write_u64(&w, word.incarnation);
    leat_msg_write_bool(&w, word.crashed);
    leat_msg_write_u64(&w, word.applied);
    leat_msg_write_u64(&w, word.number);
    leat_msg_write_bool(&w, word.deaf);
    return (struct leat_frame){.control = bytes, .control_bytes = (uint32_t)w.used};
}

/* The leader of the newest term that is known: by raft where it runs, else by what the peer said. */
static bool word_of_leader(const struct peer_of_test *from)
{
    const uint64_t least = coordinator->votes && !learns ? term : from->peer.state.term;
    return word.leads && word.term >= least && from->leads;
}

/* A report that this node has crashed: the leader's report is a verdict, that of any other node, voter or not, makes
 * this node ask again. */
static enum leat_standing after_word(const struct peer_of_test *from, enum leat_standing before)
{
    const bool over = word.incarnation > coordinator->incarnation ||
                      (word.incarnation == coordinator->incarnation && word.crashed);
    if (!over) return before;
    return word_of_leader(from) ? LEAT_STANDING_CRASHED : after(before, LEAT_STANDING_ALONE);
}

static void pings_are_answered_and_heeded(void **state)
{
    (void)state;
    unsigned behinds = 0, crashes = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        world_draw(seed);
        uint8_t bytes[64];
        const struct leat_frame frame = frame_draw(bytes, 7);
        struct peer_of_test *from = &peers[0];
        struct co_detect *it = &coordinator->detect;
        const enum leat_standing before = it->standing;
        const uint64_t was_behind = it->behind;
        co_ping_take(coordinator, &from->peer, &frame);
        assert_int_equal(told, 1);
        expect_word(CO_KIND_PONG, &from->peer, word.number, before);
        const bool counts = coordinator->incarnation != 0 && from->same_cluster,
                   lead = counts && word_of_leader(from);
        assert_int_equal(it->standing, counts ? after_word(from, before) : before);
        const bool lacks = lead && word.applied > coordinator->applied;
        assert_int_equal(behind, lacks && was_behind == coordinator->applied);
        if (behind) assert_int_equal(behind_index, word.applied);
        assert_int_equal(it->behind, lacks ? coordinator->applied : lead ? 0 : was_behind);
        assert_int_equal(deaf, counts && word.deaf);
        behinds += behind;
        crashes += it->standing == LEAT_STANDING_CRASHED;
        co_ping_send(coordinator, &from->peer);
        expect_word(CO_KIND_PING, &from->peer, 30, it->standing);
        finish(NULL);
    }
    assert_true(behinds > 500 && crashes > 500);
    begin(NULL);
}

/* Only what answers a ping of since then ends being alone: the leader's word of this incarnation, or a majority's. */
static void answers_to_pings_confirm(void **state)
{
    (void)state;
    unsigned confirmed = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        world_draw(seed);
        uint8_t bytes[64];
        const struct leat_frame frame = frame_draw(bytes, 7);
        struct peer_of_test *from = &peers[0];
        struct co_detect *it = &coordinator->detect;
        const enum leat_standing before = it->standing;
        const uint64_t number = from->peer.pong_number, alone_from = it->alone_from;
        from->peer.pong_us = 1;
        co_pong_take(coordinator, &from->peer, &frame);
        assert_int_equal(told + behind + deaf, 0);
        assert_int_equal(from->peer.pong_number, word.number);
        assert_int_equal(from->peer.pong_term, word.term);
        assert_int_equal(from->peer.pong_us, word.number > number ? NOW_US : 1);
        enum leat_standing expected = before;
        if (coordinator->incarnation != 0 && from->same_cluster) {
            expected = after_word(from, before);
            const uint64_t since =
                expected == LEAT_STANDING_ALONE && before != LEAT_STANDING_ALONE ? 31 : alone_from;
            it->alone_from = since;
            if (expected == LEAT_STANDING_ALONE && word.number >= since &&
                ((word_of_leader(from) && word.incarnation == coordinator->incarnation) ||
                 may_lead_on()))
                expected = LEAT_STANDING_CONFIRMED;
        }
        if (it->standing != expected)
            fail_msg("seed %u: %d, not %d", (unsigned)seed, it->standing, expected);
        confirmed += before == LEAT_STANDING_ALONE && expected == LEAT_STANDING_CONFIRMED;
        finish(NULL);
    }
    assert_true(confirmed > 500);
    begin(NULL);
}

static void words_that_are_malformed_end_the_connection(void **state)
{
    (void)state;
    uint8_t bytes[64];
    leat_xoshiro_seed(&dice, 1);
    struct leat_frame frame = frame_draw(bytes, 6);
    co_ping_take(coordinator, &peers[0].peer, &frame);
    co_pong_take(coordinator, &peers[0].peer, &frame);
    assert_int_equal(cut, 2);
    frame = frame_draw(bytes, 7);
    const uint32_t whole = frame.control_bytes;
    for (frame.control_bytes = 0; frame.control_bytes < whole; frame.control_bytes++) {
        co_ping_take(coordinator, &peers[0].peer, &frame);
        co_pong_take(coordinator, &peers[0].peer, &frame);
    }
    assert_int_equal(cut, 2 + 2 * whole);
    assert_int_equal(told + peers[0].peer.pong_number, 0);
}

#define STANDING_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STANDING_TEST(node_stands_by_who_is_heard),
        STANDING_TEST(standing_is_told_once_and_crashed_is_for_good),
        STANDING_TEST(node_reads_of_its_crash_in_the_tables),
        STANDING_TEST(pings_are_answered_and_heeded),
        STANDING_TEST(answers_to_pings_confirm),
        STANDING_TEST(words_that_are_malformed_end_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
