/* SPDX-License-Identifier: Apache-2.0 */
/* How a coordinator identifies the other coordinators, what the coordinator reports of itself, and what it believes of
 * the rest. */
#include "coordinator/membership/peers.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/peers_rig.h"

/* ---- who is who ---- */

static void voters_are_found_by_their_id(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PEERS; i++)
        assert_ptr_equal(co_peer_of_voter(coordinator, 2 + i), peer(i));
    assert_null(co_peer_of_voter(coordinator, 1));
    assert_null(co_peer_of_voter(coordinator, 6));
    votes[2] = false;
    assert_null(co_peer_of_voter(coordinator, 4));
    peer(3)->state.voter_id = 4; /* and that one does vote */
    assert_ptr_equal(co_peer_of_voter(coordinator, 4), peer(3));
    peer(1)->link->up = false;
    assert_ptr_equal(co_peer_of_voter(coordinator, 3), peer(1));
}

static void nodes_are_found_when_they_are_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PEERS; i++) {
        char name[8], address[8];
        snprintf(name, sizeof name, "n%u", i);
        snprintf(address, sizeof address, "a%u:1", i);
        assert_ptr_equal(co_peer_of_node(coordinator, name), peer(i));
        assert_ptr_equal(co_peer_of_address(coordinator, address), peer(i));
        assert_ptr_equal(co_peer_of_incarnation(coordinator, 20 + i), peer(i));
        struct leat_link *link = peer(i)->link;
        for (unsigned how = 0; how < 3; how++) {
            link->up = how != 0;
            peer(i)->state.known = how != 1;
            struct co_peer *it = peer(i);
            if (how == 2) it->link = NULL;
            assert_null(co_peer_of_node(coordinator, name));
            assert_null(co_peer_of_address(coordinator, address));
            assert_null(co_peer_of_incarnation(coordinator, 20 + i));
            it->link = link;
        }
    }
    assert_null(co_peer_of_node(coordinator, "n9"));
    assert_null(co_peer_of_address(coordinator, "h1:1"));
    assert_null(co_peer_of_incarnation(coordinator, 29));
}

static void machine_node(unsigned i, const char *name, uint64_t incarnation)
{
    struct leat_node_info *info = &coordinator->machine.nodes[i].info;
    snprintf(info->name, sizeof info->name, "%s", name);
    info->incarnation = incarnation;
    coordinator->machine.node_count = i + 1;
}

static void an_incarnation_is_its_own_nodes(void **state)
{
    (void)state;
    machine_node(0, "n1", 21);
    machine_node(1, "n3", 22);
    assert_ptr_equal(co_peer_of_incarnation(coordinator, 21), peer(1));
    assert_null(co_peer_of_incarnation(coordinator, 22));
    peer(3)->state.incarnation = 22; /* behind one that only says so */
    assert_ptr_equal(co_peer_of_incarnation(coordinator, 22), peer(3));
}

static void clusters_are_told_apart(void **state)
{
    (void)state;
    assert_true(co_same_cluster(coordinator, peer(0)));
    peer(0)->state.cluster_id[15] = 0xc2;
    assert_false(co_same_cluster(coordinator, peer(0)));
    peer(0)->state.cluster_id[15] = 0xc1;
    peer(0)->state.cluster_id[0] = 1;
    assert_false(co_same_cluster(coordinator, peer(0)));
    memset(peer(0)->state.cluster_id, 0, 16);
    memset(coordinator->cluster_id, 0, 16);
    assert_false(co_same_cluster(coordinator, peer(0)));
}

static void the_leader_is_of_the_highest_term(void **state)
{
    (void)state;
    assert_null(co_peer_leader(coordinator));
    for (unsigned i = 0; i < PEERS; i++)
        peer(i)->state.role = LEAT_VOTER_LEADER;
    assert_ptr_equal(co_peer_leader(coordinator), peer(0));
    peer(2)->state.term = 4;
    assert_ptr_equal(co_peer_leader(coordinator), peer(2));
    peer(3)->state.term = 4;
    assert_ptr_equal(co_peer_leader(coordinator), peer(2));
    peer(2)->state.cluster_id[15] = 0xc2;
    assert_ptr_equal(co_peer_leader(coordinator), peer(3));
    votes[3] = false;
    assert_ptr_equal(co_peer_leader(coordinator), peer(0));
    peer(0)->state.role = LEAT_VOTER_FAILED;
    assert_ptr_equal(co_peer_leader(coordinator), peer(1));
    peer(1)->state.role = LEAT_VOTER_CANDIDATE;
    assert_null(co_peer_leader(coordinator));
    memset(coordinator->cluster_id, 0, 16); /* any cluster's */
    assert_ptr_equal(co_peer_leader(coordinator), peer(2));
}

static void the_own_role(void **state)
{
    (void)state;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_FOLLOWER);
    raft_is = RAFT_CANDIDATE;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_CANDIDATE);
    raft_is = RAFT_LEADER;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_LEADER);
    raft_is = RAFT_UNAVAILABLE;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_FOLLOWER);
    learns = true;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_JOINING);
    coordinator->votes = false;
    for (int i = LEAT_VOTER_LEARNER; i <= LEAT_VOTER_PREPARED; i++) {
        coordinator->forming = (enum leat_voter_role)i;
        assert_int_equal(co_role(coordinator), i);
    }
    coordinator->failed = LEAT_E_DISK;
    assert_int_equal(co_role(coordinator), LEAT_VOTER_FAILED);
}

/* ---- who this node says it is ---- */

#define IDENTITY "identity own of c1, 10, 3 cores\n"

static void the_identity_is_said_again(void **state)
{
    (void)state;
    co_identity_update(coordinator);
    TRACE_IS(IDENTITY "tell 0 10 [00c1 own 10 3 1 5 3 42 own:1 v1 v2]\n"
                      "tell 1 10 [00c1 own 10 3 1 5 3 42 own:1 v1 v2]\n"
                      "tell 2 10 [00c1 own 10 3 1 5 3 42 own:1 v1 v2]\n"
                      "tell 3 10 [00c1 own 10 3 1 5 3 42 own:1 v1 v2]\n");
    memset(coordinator->cluster_id, 0, 16);
    all_links.identity.cluster_id[15] = 0xc3; /* the operator's word stays */
    coordinator->incarnation = 11;
    peer(0)->link->up = peer(1)->link->up = peer(2)->link->up = peer(3)->link->up = false;
    co_identity_update(coordinator);
    TRACE_IS("identity own of c3, 11, 3 cores\n");
}

static void a_cluster_that_is_learnt_is_written_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PEERS; i++)
        peer(i)->link->up = false;
    coordinator->machine.cluster_id[15] = 0xc7;
    coordinator->machine.formed = true;
    co_identity_update(coordinator);
    TRACE_IS(IDENTITY); /* it knew one */
    memset(coordinator->cluster_id, 0, 16);
    coordinator->machine.formed = false;
    co_identity_update(coordinator);
    TRACE_IS(IDENTITY);
    assert_int_equal(coordinator->cluster_id[15], 0);
    coordinator->machine.formed = true;
    co_identity_update(coordinator);
    TRACE_IS("save c7\nidentity own of c7, 10, 3 cores\n");
    assert_int_equal(coordinator->cluster_id[15], 0xc7);
    memset(coordinator->cluster_id, 0, 16);
    save_rc = LEAT_E_DISK;
    co_identity_update(coordinator);
    TRACE_IS("save c7\nnode log 1: coordinator: raft/voter can't be written\n"
             "identity own of c7, 10, 3 cores\n");
    memset(coordinator->cluster_id, 0, 16);
    coordinator->votes = false;
    co_identity_update(coordinator);
    TRACE_IS("identity own of c7, 10, 3 cores\n");
    memset(coordinator->cluster_id, 0, 16);
    coordinator->votes = true;
    coordinator->links = NULL;
    co_identity_update(coordinator);
    TRACE_IS("");
    assert_int_equal(coordinator->cluster_id[15], 0xc7);
}

/* ---- STATE that is told ---- */

static void the_state_is_told_when_it_changes(void **state)
{
    (void)state;
    co_state_tell(coordinator, false);
    TRACE_IS(TOLD_ALL);
    co_state_tell(coordinator, false);
    TRACE_IS("");
    co_state_tell(coordinator, true);
    TRACE_IS(TOLD_ALL);
    peer(0)->link->up = peer(3)->link->up = false;
    struct leat_link *link = peer(1)->link;
    struct co_peer *without = peer(1);
    without->link = NULL;
    tell_rc = LEAT_E_AGAIN;
    raft_is = RAFT_CANDIDATE;
    co_state_tell(coordinator, false);
    TRACE_IS("tell 2 10 [c0c1 own 10 4 1 5 3 42 own:1 v1 v2]\n");
    raft_term_now = 6;
    co_state_tell(coordinator, false);
    TRACE_IS("tell 2 10 [c0c1 own 10 4 1 6 3 42 own:1 v1 v2]\n");
    configuration = 10;
    co_state_tell(coordinator, false);
    TRACE_IS("tell 2 10 [c0c1 own 10 4 1 6 3 42 own:1 v1 v2]\n");
    raft_leads = 0; /* nothing of this is told by itself */
    coordinator->applied = 43;
    co_state_tell(coordinator, false);
    TRACE_IS("");
    coordinator->votes = false;
    raft_leads = 3;
    coordinator->forming = LEAT_VOTER_LEARNER;
    co_state_tell(coordinator, false);
    TRACE_IS("tell 2 10 [c0c1 own 10 0 1 0 0 43 own:1 v1 v2]\n");
    assert_int_equal(coordinator->state_told_term, 0);
    coordinator->links = NULL;
    co_state_tell(coordinator, true);
    TRACE_IS("");
    without->link = link;
}

/* ---- STATE that comes ---- */

struct said {
    uint32_t fields;
    size_t id_bytes, node_bytes, address_bytes;
    char node[LEAT_NODE_NAME_BYTES_MAX + 2];
    uint64_t incarnation, role;
    bool no_list;
};
static struct said plain(unsigned i)
{
    struct said said = {.fields = 10,
                        .id_bytes = 16,
                        .node_bytes = 2,
                        .address_bytes = 3,
                        .incarnation = 50,
                        .role = LEAT_VOTER_LEADER};
    snprintf(said.node, sizeof said.node, "n%u", i);
    return said;
}
static void says(unsigned from, const struct said *said)
{
    static const char address[] =
        "x:1yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
    uint8_t id[17] = {[0] = 0xd0, [15] = 0xd1};
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, said->fields);
    leat_msg_write_bin(&writer, id, said->id_bytes);
    leat_msg_write_string(&writer, said->node, said->node_bytes);
    leat_msg_write_u64(&writer, said->incarnation);
    leat_msg_write_u64(&writer, said->role);
    for (unsigned i = 0; i < 4; i++)
        leat_msg_write_u64(&writer, 60 + i);
    leat_msg_write_string(&writer, address, said->address_bytes);
    if (said->fields > 9 && !said->no_list) leat_msg_write_array(&writer, 1);
    if (said->fields > 9) leat_msg_write_string(&writer, "v1", 2);
    assert_false(writer.overflow);
    comes(from, CO_KIND_STATE, writer.used);
}
static void expect_state(const struct co_state *it, const char *node, size_t address_bytes)
{
    assert_true(it->known && it->incarnation == 50 && it->role == LEAT_VOTER_LEADER);
    assert_true(it->voter_id == 60 && it->term == 61 && it->leader_id == 62 && it->applied == 63);
    assert_true(it->cluster_id[0] == 0xd0 && it->cluster_id[15] == 0xd1);
    assert_string_equal(it->node, node);
    assert_int_equal(strlen(it->address), address_bytes);
    assert_memory_equal(it->address, "x:1y", address_bytes < 4 ? address_bytes : 4);
}
#define CUT(link, why)                                                                             \
    "complaint of " #link "\n  " why "\ncut " #link ": " why " (malformed request)\n"
#define MALFORMED CUT(1, "a malformed state")

static void a_state_is_believed(void **state)
{
    (void)state;
    struct said said = plain(1);
    says(1, &said);
    TRACE_IS("introduced of 1\nforming goes on\n");
    expect_state(&peer(1)->state, "n1", 3);
    said = plain(2);
    said.fields = 9;
    said.address_bytes = LEAT_ADDRESS_BYTES_MAX;
    says(2, &said);
    TRACE_IS("forming goes on\n");
    expect_state(&peer(2)->state, "n2", LEAT_ADDRESS_BYTES_MAX);
    assert_int_equal(peer(0)->state.incarnation, 20);
    struct leat_link_identity *longest = &links_of_test[3].peer;
    said = plain(3);
    memset(said.node, 'w', LEAT_NODE_NAME_BYTES_MAX);
    memset(longest->node, 'w', LEAT_NODE_NAME_BYTES_MAX);
    said.node_bytes = LEAT_NODE_NAME_BYTES_MAX;
    says(3, &said);
    TRACE_IS("introduced of 3\nforming goes on\n");
    expect_state(&peer(3)->state, longest->node, 3);
}

static void a_malformed_state_cuts_the_link(void **state)
{
    (void)state;
    struct said said;
    for (unsigned i = 0; i < 7; i++) {
        said = plain(1);
        memset(said.node + 2, 'w', sizeof said.node - 2);
        if (i == 0) said.id_bytes = 15;
        if (i == 1) said.id_bytes = 17;
        if (i == 2) said.node_bytes = LEAT_NODE_NAME_BYTES_MAX + 1;
        if (i == 3) said.address_bytes = LEAT_ADDRESS_BYTES_MAX + 1;
        if (i == 4) said.fields = 8;
        if (i == 5) said.role = 1ull << 32;
        if (i == 6) said.no_list = true;
        says(1, &said);
        TRACE_IS(MALFORMED);
        assert_int_equal(peer(1)->state.incarnation, 21);
    }
    said = plain(1);
    says(1, &said);
    trace_begin();
    for (uint32_t count = 0; count < 32; count++) { /* cut short */
        comes(1, CO_KIND_STATE, count);
        TRACE_IS(MALFORMED);
    }
}

static void a_state_of_another_node_cuts_the_link(void **state)
{
    (void)state;
#define OTHER "a state of another node than its hello named"
    struct said said = plain(2);
    says(1, &said);
    TRACE_IS(CUT(1, OTHER));
    machine_node(0, "n2", 50);
    said = plain(1);
    says(1, &said);
    TRACE_IS(CUT(1, OTHER));
    assert_int_equal(peer(1)->state.incarnation, 21);
    said = plain(2);
    says(2, &said);
    TRACE_IS("introduced of 2\nforming goes on\n");
    machine_node(0, "n2", 0); /* not up yet: nobody's */
    said = plain(1);
    said.incarnation = 0;
    says(1, &said);
    TRACE_IS("introduced of 1\nforming goes on\n");
    said.incarnation = 51; /* not known yet */
    says(1, &said);
    TRACE_IS("introduced of 1\nforming goes on\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEERS_TEST(voters_are_found_by_their_id),
        PEERS_TEST(nodes_are_found_when_they_are_up),
        PEERS_TEST(an_incarnation_is_its_own_nodes),
        PEERS_TEST(clusters_are_told_apart),
        PEERS_TEST(the_leader_is_of_the_highest_term),
        PEERS_TEST(the_own_role),
        PEERS_TEST(the_identity_is_said_again),
        PEERS_TEST(a_cluster_that_is_learnt_is_written_down),
        PEERS_TEST(the_state_is_told_when_it_changes),
        HANDLED_TEST(a_state_is_believed),
        HANDLED_TEST(a_malformed_state_cuts_the_link),
        HANDLED_TEST(a_state_of_another_node_cuts_the_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
