/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that members.c calls, except links: raft, the tables, voters' names, and the requests that wait for an
 * answer. This node is "me", voter 1; n0 to n3 would have the ids 10 to 13. */
#ifndef LEAT_TESTS_COORDINATOR_MEMBERS_RIG_H
#define LEAT_TESTS_COORDINATOR_MEMBERS_RIG_H

#include "coordinator/membership/forming.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/solo_rig.h"

static struct raft_server servers[LEAT_VOTERS_MAX];
static char server_texts[LEAT_VOTERS_MAX][64];
static struct leat_machine_node nodes[PEERS];
static bool leads, changing, node_known[PEERS], peer_known[PEERS];
static leat_err change_rc;
static int catch_up_status;
static struct co_peer *leader;
static struct leat_coordinate request;
static uint64_t correct_id; /* whose address is to be put right */

void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    memset(out, 0, sizeof *out);
    assert_true(sscanf(text, "%127s %255s", out->address, out->name) >= 1);
}
void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name)
{
    snprintf(out, CO_VOTER_BYTES_MAX + 1, "%s %s", address, name);
}
const char *co_own_name(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return "me";
}
bool co_server_is(const struct leat_coordinator *asked, const struct raft_server *server,
                  const char *name)
{
    struct leat_machine_voter voter;
    assert_ptr_equal(asked, coordinator);
    co_voter_read(server->address, &voter);
    return strcmp(voter.name, name) == 0;
}
const struct raft_server *co_server_of_id(const struct leat_coordinator *asked, uint64_t id)
{
    for (unsigned i = 0; i < asked->drive.raft.configuration.n; i++)
        if (servers[i].id == id) return &servers[i];
    return NULL;
}
const struct raft_server *co_server_of_node(const struct leat_coordinator *asked, const char *name)
{
    for (unsigned i = 0; i < asked->drive.raft.configuration.n; i++)
        if (co_server_is(asked, &servers[i], name)) return &servers[i];
    return NULL;
}
bool co_voter_correct(const struct leat_coordinator *asked, const struct raft_server *server,
                      char out[CO_VOTER_BYTES_MAX + 1])
{
    assert_ptr_equal(asked, coordinator);
    co_voter_write(out, "right:1", "n9");
    return server->id == correct_id || correct_id == UINT64_MAX;
}
struct co_peer *co_peer_of_node(struct leat_coordinator *asked, const char *name)
{
    assert_ptr_equal(asked, coordinator);
    for (unsigned i = 0; i < PEERS; i++)
        if (peer_known[i] && strcmp(name, name_of(&peers[i])) == 0) return &peers[i].peer;
    return NULL;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return leader;
}
struct leat_machine_node *leat_machine_node_find(struct leat_machine *machine, const char *name,
                                                 size_t bytes)
{
    assert_ptr_equal(machine, &coordinator->machine);
    assert_int_equal(bytes, strlen(name));
    for (unsigned i = 0; i < PEERS; i++)
        if (node_known[i] && strcmp(name, nodes[i].info.name) == 0) return &nodes[i];
    return NULL;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
bool leat_raft_drive_changing(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return changing;
}
leat_err leat_raft_drive_change(struct leat_raft_drive *drive,
                                const struct raft_configuration *configuration)
{
    static const char *const roles[] = {"stands by", "votes", "spare"};
    assert_ptr_equal(drive, &coordinator->drive);
    trace("change:");
    for (unsigned i = 0; i < configuration->n; i++)
        trace("%s %llu %s %s", i ? "," : "", configuration->servers[i].id,
              configuration->servers[i].address, roles[configuration->servers[i].role]);
    trace("\n");
    return change_rc;
}
int leat_raft_drive_catch_up_status(const struct leat_raft_drive *drive, uint64_t id)
{
    assert_ptr_equal(drive, &coordinator->drive);
    assert_int_equal(id, 11);
    return catch_up_status;
}
void leat_raft_drive_catch_up(struct leat_raft_drive *drive, uint64_t id)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("catch up %llu\n", (unsigned long long)id);
}
enum raft_state raft_state(struct raft *raft)
{
    assert_ptr_equal(raft, &coordinator->drive.raft);
    return leads ? RAFT_LEADER : RAFT_FOLLOWER;
}
void co_leader_lacks_tell(struct leat_coordinator *asked, const char *before, char *out,
                          size_t bytes)
{
    assert_ptr_equal(asked, coordinator);
    snprintf(out, bytes, "%sno leader", before);
}
void co_request_answer(struct leat_coordinator *asked, struct leat_coordinate *answered)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(answered, &request);
    trace("done %s\n", leat_err_name(answered->rc));
}
void co_request_refuse(struct leat_coordinator *asked, struct leat_coordinate *refused, leat_err rc,
                       const char *why)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(refused, &request);
    trace("refused %s: %s\n", leat_err_name(rc), why);
}

static inline void server_add(uint64_t id, const char *text, int role)
{
    struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    const unsigned at = configuration->n++;
    snprintf(server_texts[at], sizeof server_texts[at], "%s", text);
    servers[at] = (struct raft_server){.id = id, .address = server_texts[at], .role = role};
}

static inline int begin(void **state)
{
    solo_begin(state);
    coordinator->votes = leads = true;
    changing = false;
    change_rc = LEAT_OK;
    catch_up_status = RAFT_CATCH_UP_NONE;
    leader = NULL;
    correct_id = 0;
    coordinator->options.node_address = "me:1";
    memset(servers, 0, sizeof servers);
    coordinator->drive.raft.configuration.servers = servers;
    server_add(1, "me:1 me", RAFT_VOTER);
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < PEERS; i++) {
        node_known[i] = peer_known[i] = true;
        snprintf(nodes[i].info.name, sizeof nodes[i].info.name, "n%u", i);
        snprintf(nodes[i].info.node_address, sizeof nodes[i].info.node_address, "h%u:1", i);
        peers[i].peer.state.role = LEAT_VOTER_LEARNER;
    }
    for (unsigned i = 0; i < 16; i++)
        coordinator->machine.cluster_id[i] = (uint8_t)i;
    request = (struct leat_coordinate){.rc = LEAT_E_DISK};
    return 0;
}
#define MEMBERS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, solo_finish)

#define JOIN "call n1 kind 280 within 5000000 [2 <000102030405060708090a0b0c0d0e0f> 11\n"

/* n1 shall vote, or its vote be replaced. */
static inline void wanted(bool replace)
{
    co_change_begin(coordinator, replace, "n1", &request, NULL);
    TRACE_IS("");
    assert_true(coordinator->change.running);
}
static inline void advance(void)
{
    co_change_advance(coordinator);
}

#endif
