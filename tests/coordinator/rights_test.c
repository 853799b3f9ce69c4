/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes vote, which node leads, and which node may send which command: tables of all kinds, and random worlds
 * that are compared with a second, plain implementation of the rules. This file plays links, and raft's answer who
 * leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"

enum { PEERS = 4, NAMES = 4 }; /* names of nodes have one character: the least */

static struct leat_coordinator *coordinator;
static struct leat_xoshiro dice;
static struct leat_clock clock_of_test;
static struct leat_env env;
static uint64_t now_us;

static uint64_t below(uint64_t bound)
{
    return leat_xoshiro_below(&dice, bound);
}

/* ---- in the place of links and raft ---- */

static struct link_of_test {
    struct co_peer peer;
    struct leat_link_identity identity;
    char address[32];
    bool up;
} links[PEERS];
static raft_id leader;
static uint64_t current_term;
static bool leads, learns, same_cluster;
static struct co_peer *latest;

static const struct link_of_test *link_of(const struct leat_link *link)
{
    return (const struct link_of_test *)(const void *)link;
}
bool leat_link_is_up(const struct leat_link *link)
{
    return link_of(link)->up;
}
const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    return &link_of(link)->identity;
}
const char *leat_link_address(const struct leat_link *link)
{
    return link_of(link)->address;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    *id = leader;
    *address = "";
}
raft_term raft_current_term(const struct raft *r)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    return current_term;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
bool co_learns(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return learns;
}
bool co_same_cluster(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    (void)asked;
    (void)peer;
    return same_cluster;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return latest;
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}

/* ---- worlds ---- */

static struct raft_server servers[4];
static char server_texts[4][64];
static char options_texts[2][32];
static const char *options_list[2] = {options_texts[0], options_texts[1]};

static void address_draw(char *out, size_t bytes)
{
    snprintf(out, bytes, "h%u:1", (unsigned)below(NAMES));
}

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
    leat_list_init(&coordinator->peers);
    leat_machine_init(&coordinator->machine, 1);
    memset(links, 0, sizeof links);
    leader = current_term = 0;
    leads = learns = false;
    same_cluster = true;
    latest = NULL;
    now_us = 5000000;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    leat_machine_fini(&coordinator->machine);
    free(coordinator);
    coordinator = NULL;
    return 0;
}

static void peers_draw(void)
{
    for (unsigned i = 0; i < PEERS; i++) {
        struct link_of_test *it = &links[i];
        snprintf(it->identity.node, sizeof it->identity.node, "%u", (unsigned)below(NAMES));
        address_draw(it->address, sizeof it->address);
        it->up = below(6) > 0;
        it->peer.link = below(20) ? (struct leat_link *)(void *)it : NULL;
        it->peer.coordinator = coordinator;
        it->peer.wanted = below(3) > 0;
        it->peer.state.known = below(6) > 0;
        it->peer.state.voter_id = below(5);
        it->peer.state.role = below(2) ? LEAT_VOTER_LEADER : LEAT_VOTER_EMPTY;
        it->peer.state.term = 5 + below(2);
        leat_list_init(&it->peer.list);
        if (it->peer.link) leat_list_push_back(&coordinator->peers, &it->peer.list);
    }
}

static void world_draw(uint64_t seed)
{
    begin(NULL);
    leat_xoshiro_seed(&dice, seed);
    coordinator->votes = below(3) > 0;
    coordinator->voter_id = 1;
    struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    configuration->servers = servers;
    configuration->n = (unsigned)below(4);
    for (unsigned i = 0; i < configuration->n; i++) {
        char address[32];
        address_draw(address, sizeof address);
        if (below(3))
            snprintf(server_texts[i], sizeof server_texts[i], "%s %u", address,
                     (unsigned)below(NAMES));
        else
            snprintf(server_texts[i], sizeof server_texts[i], "%s", address);
        servers[i] = (struct raft_server){
            .id = i + 1, .address = server_texts[i], .role = below(4) ? RAFT_VOTER : RAFT_SPARE};
    }
    coordinator->machine.voter_count = (uint32_t)below(3);
    for (uint32_t i = 0; i < coordinator->machine.voter_count; i++) {
        struct leat_machine_voter *voter = &coordinator->machine.voters[i];
        address_draw(voter->address, sizeof voter->address);
        if (below(2)) snprintf(voter->name, sizeof voter->name, "%u", (unsigned)below(NAMES));
    }
    coordinator->options.voters = options_list;
    coordinator->options.voter_count = (uint32_t)below(3);
    for (unsigned i = 0; i < 2; i++)
        address_draw(options_texts[i], sizeof options_texts[i]);
    if (below(3) == 0)
        snprintf(coordinator->introduced[below(CO_INTRODUCED_MAX)], 8, "%u",
                 (unsigned)below(NAMES));
    peers_draw();
    leader = below(2) ? 0 : 1 + below(4);
    learns = below(4) == 0;
    latest = below(4) ? &links[below(PEERS)].peer : NULL;
}

/* ---- who votes, told again ---- */

static const char *named_in(const char *text)
{
    const char *space = strchr(text, ' ');
    return space ? space + 1 : NULL;
}
static bool address_in(const char *text, const char *address)
{
    return strncmp(text, address, strlen(address)) == 0 &&
           (text[strlen(address)] == ' ' || !text[strlen(address)]);
}

/* Is whoever was reached at the address a voter for that? Where the address is known with a name, that counts. */
static bool tells(const char *address)
{
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    const struct leat_machine *machine = &coordinator->machine;
    if (coordinator->votes)
        for (unsigned i = 0; i < configuration->n; i++)
            if (address_in(servers[i].address, address))
                return named_in(servers[i].address) == NULL;
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (strcmp(machine->voters[i].address, address) == 0)
            return machine->voters[i].name[0] == '\0';
    for (uint32_t i = 0; i < coordinator->options.voter_count; i++)
        if (strcmp(options_texts[i], address) == 0) return true;
    return false;
}

static bool reached(const char *name)
{
    for (unsigned i = 0; i < PEERS; i++)
        if (links[i].peer.link && links[i].peer.wanted && links[i].up &&
            strcmp(links[i].identity.node, name) == 0 && tells(links[i].address))
            return true;
    return false;
}

static const struct link_of_test *at(const char *text)
{
    for (unsigned i = 0; i < PEERS; i++)
        if (links[i].peer.link && links[i].peer.wanted && links[i].up &&
            links[i].peer.state.known && address_in(text, links[i].address))
            return &links[i];
    return NULL;
}

static bool is_server(const struct raft_server *server, const char *name)
{
    const char *named = named_in(server->address);
    if (named) return strcmp(named, name) == 0;
    return at(server->address) && strcmp(at(server->address)->identity.node, name) == 0;
}

static bool introduced(const char *name)
{
    for (unsigned i = 0; i < CO_INTRODUCED_MAX; i++)
        if (strcmp(coordinator->introduced[i], name) == 0) return true;
    return false;
}

static bool votes_alone(const struct link_of_test *it) /* by nobody's word */
{
    const unsigned n = coordinator->drive.raft.configuration.n;
    const struct leat_machine *machine = &coordinator->machine;
    if (coordinator->votes && n) {
        uint64_t id = it->peer.state.voter_id;
        return id >= 1 && id <= n && is_server(&servers[id - 1], it->identity.node);
    }
    for (uint32_t i = 0; i < machine->voter_count; i++)
        if (strcmp(machine->voters[i].name, it->identity.node) == 0) return true;
    return reached(it->identity.node);
}

static bool votes(const struct link_of_test *it)
{
    const unsigned n = coordinator->drive.raft.configuration.n;
    const uint64_t id = it->peer.state.voter_id;
    if (!it->peer.link || !it->up || !it->peer.state.known) return false;
    if (votes_alone(it)) return true;
    if (!coordinator->votes || n == 0) return introduced(it->identity.node);
    if ((id >= 1 && id <= n) || (leader && leader != id)) return false;
    for (unsigned i = 0; i < n; i++)
        if (is_server(&servers[i], it->identity.node)) return true;
    return reached(it->identity.node) || introduced(it->identity.node);
}

static bool is_leader(const struct link_of_test *it)
{
    if (!votes(it)) return false;
    if (coordinator->votes && !learns)
        return leader && leader == it->peer.state.voter_id && leader != coordinator->voter_id;
    return latest && it->peer.state.role == LEAT_VOTER_LEADER &&
           it->peer.state.term == latest->state.term;
}

static void peers_vote_and_lead_as_the_rules_say(void **state)
{
    (void)state;
    unsigned yes = 0, no = 0, lead = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        world_draw(seed);
        for (unsigned i = 0; i < PEERS; i++) {
            const struct co_peer *peer = &links[i].peer;
            const char *why = NULL;
            bool expected = votes(&links[i]), leading = is_leader(&links[i]);
            if (co_peer_votes(coordinator, peer) != expected)
                fail_msg("seed %u peer %u", (unsigned)seed, i);
            if (co_peer_leads(coordinator, peer) != leading)
                fail_msg("seed %u peer %u leads", (unsigned)seed, i);
            yes += expected;
            no += !expected;
            lead += leading;
            assert_true(co_peer_may(coordinator, peer, CO_KIND_PING, &why));
            assert_null(why);
            assert_int_equal(co_peer_may(coordinator, peer, CO_KIND_RAFT, &why), expected);
            assert_int_equal(co_peer_may(coordinator, peer, CO_KIND_COLLECT, &why), leading);
            coordinator->machine.formed = seed % 2;
            assert_int_equal(co_peer_may(coordinator, peer, CO_KIND_FORM, &why),
                             !coordinator->votes && seed % 2 == 0);
            assert_false(co_peer_may(coordinator, peer, 4711, &why));
            assert_non_null(why);
        }
        for (unsigned i = 0; i < coordinator->drive.raft.configuration.n; i++)
            for (unsigned k = 0; k < NAMES; k++) {
                char name[8];
                snprintf(name, sizeof name, "%u", k);
                assert_int_equal(co_server_is(coordinator, &servers[i], name),
                                 is_server(&servers[i], name));
                const struct raft_server *found = co_server_of_node(coordinator, name);
                for (unsigned before = 0; found && &servers[before] != found; before++)
                    assert_false(is_server(&servers[before], name));
                assert_true(found ? is_server(found, name) : !is_server(&servers[i], name));
            }
        finish(NULL);
    }
    assert_true(yes > 10000 && no > 10000 && lead > 1000);
    begin(NULL);
}

/* ---- words of others on who votes ---- */

static void introductions_are_taken_from_who_votes_by_itself(void **state)
{
    (void)state;
    unsigned taken = 0;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        world_draw(seed);
        same_cluster = below(5) > 0;
        uint8_t bytes[256];
        struct leat_msg_writer w;
        struct leat_msg_reader reader;
        const struct link_of_test *from = &links[below(PEERS)];
        if (!from->peer.link) {
            finish(NULL);
            continue;
        }
        const bool counts = same_cluster && votes_alone(from), known = introduced("m1");
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        leat_msg_write_string(&w, "m1", 2);
        leat_msg_write_string(&w, "m1", 2);
        leat_msg_write_string(&w, "m2", 2);
        leat_msg_reader_init(&reader, bytes, w.used);
        co_introductions_take(coordinator, &from->peer, 3, &reader);
        assert_int_equal(introduced("m1"), counts || known);
        assert_int_equal(introduced("m2"), counts);
        assert_int_equal(coordinator->introduced_next, counts ? 2 : 0);
        taken += counts;
        finish(NULL);
    }
    assert_true(taken > 500);
    /* A ring; no more than there can be voters, and nothing of what is no name. */
    begin(NULL);
    struct link_of_test *it = &links[0];
    coordinator->machine.voter_count = 1;
    snprintf(coordinator->machine.voters[0].name, 8, "0");
    snprintf(it->identity.node, sizeof it->identity.node, "0");
    it->peer.link = (struct leat_link *)(void *)it;
    for (unsigned round = 0; round < 3; round++) {
        uint8_t bytes[512];
        struct leat_msg_writer w;
        struct leat_msg_reader reader;
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        for (unsigned i = 0; i <= LEAT_VOTERS_MAX; i++) {
            char name[16];
            int count = snprintf(name, sizeof name, "r%u-%u", round, i);
            leat_msg_write_string(&w, name, (size_t)count);
        }
        leat_msg_reader_init(&reader, bytes, w.used);
        co_introductions_take(coordinator, &it->peer, LEAT_VOTERS_MAX + 1, &reader);
        assert_int_equal(coordinator->introduced_next,
                         (round + 1) * LEAT_VOTERS_MAX % CO_INTRODUCED_MAX);
    }
    assert_true(introduced("r2-8") && introduced("r1-0") && !introduced("r0-0") &&
                !introduced("r2-9"));
    uint8_t bytes[512];
    const size_t lengths[] = {0, LEAT_NODE_NAME_BYTES_MAX, LEAT_NODE_NAME_BYTES_MAX + 1};
    for (unsigned c = 0; c < 3; c++) {
        char name[LEAT_NODE_NAME_BYTES_MAX + 2];
        struct leat_msg_writer w;
        struct leat_msg_reader reader;
        memset(name, 'x', sizeof name);
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        leat_msg_write_string(&w, name, lengths[c]);
        leat_msg_reader_init(&reader, bytes, w.used);
        uint32_t before = coordinator->introduced_next;
        co_introductions_take(coordinator, &it->peer, 1, &reader);
        assert_int_equal(coordinator->introduced_next != before, c == 1);
    }
}

static void voters_with_names_are_introduced(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        world_draw(seed);
        struct leat_machine_voter voters[LEAT_VOTERS_MAX], *said = voters;
        uint32_t count = co_introductions(coordinator, voters);
        for (unsigned i = 0; coordinator->votes && i < coordinator->drive.raft.configuration.n;
             i++) {
            if (servers[i].role != RAFT_VOTER || !named_in(servers[i].address)) continue;
            assert_string_equal((said++)->name, named_in(servers[i].address));
        }
        assert_int_equal(count, said - voters);
        struct raft *raft = &coordinator->drive.raft;
        raft->configuration_committed_index = 5;
        raft->configuration_uncommitted_index = seed % 2 ? 7 : 0;
        assert_int_equal(co_configuration_index(coordinator), !coordinator->votes ? 0
                                                              : seed % 2          ? 7
                                                                                  : 5);
        co_voters_applied(coordinator, &raft->configuration);
        assert_int_equal(coordinator->machine.voter_count, raft->configuration.n);
        for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++) {
            const struct leat_machine_voter *voter = &coordinator->machine.voters[i];
            const char *name = i < raft->configuration.n ? named_in(servers[i].address) : NULL;
            assert_string_equal(voter->name, name ? name : "");
            assert_int_equal(voter->address[0] != 0, i < raft->configuration.n);
        }
        finish(NULL);
    }
    begin(NULL);
}

/* Where a voter is now: as that node, reached from here, is up by the tables; no other voter's address. */
static void voter_is_put_right_where_its_node_is_up(void **state)
{
    (void)state;
    unsigned corrected = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        world_draw(seed);
        struct leat_machine *machine = &coordinator->machine;
        machine->node_count = NAMES;
        for (uint32_t i = 0; i < NAMES; i++) {
            struct leat_node_info *info = &machine->nodes[i].info;
            snprintf(info->name, sizeof info->name, "%u", i);
            if (below(8)) address_draw(info->node_address, sizeof info->node_address);
            info->state = below(5) ? LEAT_NODE_UP : LEAT_NODE_DOWN;
            info->crashed = below(9) == 0;
        }
        coordinator->options.node_name = below(2) ? "2" : NULL;
        coordinator->options.node_address = "3"; /* as a name */
        for (unsigned s = 0; s < coordinator->drive.raft.configuration.n; s++) {
            const char *name = named_in(servers[s].address);
            const bool named = name != NULL, own = servers[s].id == 1;
            if (!named && own) name = coordinator->options.node_name ? "2" : "3";
            if (!named && !own && at(servers[s].address))
                name = at(servers[s].address)->identity.node;
            const struct leat_node_info *info = name ? &machine->nodes[name[0] - '0'].info : NULL;
            bool right =
                info && info->state == LEAT_NODE_UP && !info->crashed && info->node_address[0];
            bool there = right && address_in(servers[s].address, info->node_address);
            if (right) right = named ? !there : own || there;
            for (uint32_t i = 0; right && i < machine->voter_count; i++)
                if (strcmp(machine->voters[i].address, info->node_address) == 0 && !there)
                    right = false;
            char out[CO_VOTER_BYTES_MAX + 1] = "", expected[512];
            if (co_voter_correct(coordinator, &servers[s], out) != right)
                fail_msg("seed %u server %u", (unsigned)seed, s);
            if (right) snprintf(expected, sizeof expected, "%s %s", info->node_address, name);
            if (right) assert_string_equal(out, expected);
            corrected += right;
        }
        finish(NULL);
    }
    assert_true(corrected > 1000);
    begin(NULL);
}

static void voters_text_is_an_address_and_a_name(void **state)
{
    (void)state;
    char longest[LEAT_ADDRESS_BYTES_MAX + 1 + LEAT_NODE_NAME_BYTES_MAX + 3];
    struct leat_machine_voter voter;
    co_voter_read("h:1 n 1", &voter);
    assert_string_equal(voter.address, "h:1");
    assert_string_equal(voter.name, "n 1");
    co_voter_read("h:1", &voter);
    assert_string_equal(voter.address, "h:1");
    assert_string_equal(voter.name, "");
    for (unsigned more = 0; more < 2; more++) {
        memset(longest, 'h', sizeof longest);
        longest[LEAT_ADDRESS_BYTES_MAX + more] = ' ';
        longest[LEAT_ADDRESS_BYTES_MAX + 2] = '\0';
        co_voter_read(longest, &voter);
        assert_int_equal(strlen(voter.address), more ? 0 : LEAT_ADDRESS_BYTES_MAX);
        memset(longest, 'n', sizeof longest);
        longest[1] = ' ';
        longest[2 + LEAT_NODE_NAME_BYTES_MAX + more] = '\0';
        co_voter_read(longest, &voter);
        assert_int_equal(strlen(voter.name), more ? 0 : LEAT_NODE_NAME_BYTES_MAX);
    }
    char out[CO_VOTER_BYTES_MAX + 1];
    co_voter_write(out, "h:1", "n");
    assert_string_equal(out, "h:1 n");
}

#define RIGHTS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIGHTS_TEST(peers_vote_and_lead_as_the_rules_say),
        RIGHTS_TEST(introductions_are_taken_from_who_votes_by_itself),
        RIGHTS_TEST(voters_with_names_are_introduced),
        RIGHTS_TEST(voter_is_put_right_where_its_node_is_up),
        RIGHTS_TEST(voters_text_is_an_address_and_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
