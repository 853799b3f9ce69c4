/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the voters: adding a voter, replacing a voter that has lost its data. On the leader, one change at a
 * time.
 *
 * Each step is a call, or a committed configuration that differs by one server. Each step first checks whether it is
 * done already: after a change of leader the request is simply made again.
 *
 *   replace only: the node's old id leaves
 *   JOIN: the node makes an empty raft log under its new id
 *   the new id is added as joining, which does not vote
 *   the node catches up
 *   the node votes
 *
 * SUBTLE: leaving and coming are two configurations. In a single configuration, with as many servers as before, raft
 * would take the newcomer for the voter that left and count entries that the newcomer never had. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"

enum { CHANGE_US_MAX = 60 * 1000 * 1000 };

/* ADMIN [replace, node] */

struct calling {
    struct leat_link_call call;
    struct leat_coordinator *coordinator;
    struct leat_coordinate *request; /* of ADMIN */
    uint64_t number;                 /* of JOIN */
    uint8_t control[LEAT_NODE_NAME_BYTES_MAX + 32];
};

void co_change_end(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_change change = coordinator->change;
    if (!change.running) return;
    memset(&coordinator->change, 0, sizeof coordinator->change);
    if (change.request && rc == LEAT_OK) {
        change.request->rc = LEAT_OK;
        co_request_answer(coordinator, change.request);
    } else if (change.request) {
        co_request_refuse(coordinator, change.request, rc, why);
    }
    if (!change.has_ticket) return;
    if (rc == LEAT_OK)
        leat_link_answer(coordinator->links, &change.ticket, "\x90", 1);
    else
        leat_link_answer_error(coordinator->links, &change.ticket, rc, why);
}

/* ---- steps ---- */

/* The server with this address in the configuration; NULL: none. */
static const struct raft_server *server_of_address(const struct leat_coordinator *coordinator,
                                                   const char *address)
{
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++) {
        struct leat_machine_voter voter;
        co_voter_read(configuration->servers[i].address, &voter);
        if (strcmp(voter.address, address) == 0) return &configuration->servers[i];
    }
    return NULL;
}

struct edit {
    uint64_t without;    /* this id leaves; 0: none */
    uint64_t id;         /* this id is added, or gets another address or role; 0: none */
    const char *address; /* of `id`, with its name: co_voter_write() */
    int role;
};

/* The same servers in the same order, but for one. */
static leat_err configuration_propose(struct leat_coordinator *coordinator, const struct edit *edit)
{
    const struct raft_configuration *now = &coordinator->drive.raft.configuration;
    struct raft_configuration next;
    bool found = false;
    int rv = 0;
    raft_configuration_init(&next);
    for (unsigned i = 0; i < now->n && rv == 0; i++) {
        const struct raft_server *server = &now->servers[i];
        if (edit->without && server->id == edit->without) continue;
        bool this_one = edit->id && server->id == edit->id;
        if (this_one) found = true;
        rv = raft_configuration_add(&next, server->id, this_one ? edit->address : server->address,
                                    this_one ? edit->role : server->role);
    }
    if (rv == 0 && edit->id && !found)
        rv = raft_configuration_add(&next, edit->id, edit->address, edit->role);
    leat_err rc = rv == 0 ? leat_raft_drive_change(&coordinator->drive, &next) : LEAT_E_INVALID;
    raft_configuration_close(&next);
    return rc;
}

static void join_answered(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct calling *calling = call->owner;
    struct leat_coordinator *coordinator = calling->coordinator;
    uint64_t number = calling->number;
    (void)answer;
    leat_mem_free(calling);
    if (rc == LEAT_E_CANCELLED) return;
    struct co_change *change = &coordinator->change;
    if (!change->running || !change->calling || change->call_number != number) return;
    change->calling = false;
    change->confirmed = rc == LEAT_OK;
    if (rc != LEAT_OK) co_change_end(coordinator, rc, error->text);
}

static void join_call(struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    struct calling *calling = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *calling);
    if (!calling) return;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, calling->control, sizeof calling->control);
    struct co_join_said said = {.voter_id = peer->state.voter_id};
    memcpy(said.cluster_id, coordinator->machine.cluster_id, sizeof said.cluster_id);
    co_join_said_write(&writer, &said);
    calling->coordinator = coordinator;
    calling->number = ++coordinator->join_count;
    calling->call = (struct leat_link_call){.kind = CO_KIND_JOIN,
                                            .control = calling->control,
                                            .control_bytes = writer.used,
                                            .timeout_us = CO_CALL_US,
                                            .on_done = join_answered,
                                            .owner = calling};
    if (leat_link_call(peer->link, &calling->call) == LEAT_OK) {
        coordinator->change.calling = true;
        coordinator->change.call_number = calling->number;
        coordinator->change.calling_until_us = co_now(coordinator) + 2 * CO_CALL_US;
    } else {
        leat_mem_free(calling);
    }
}

static bool peer_runs_raft(const struct co_peer *peer)
{
    return peer->state.role == LEAT_VOTER_FOLLOWER || peer->state.role == LEAT_VOTER_CANDIDATE ||
           peer->state.role == LEAT_VOTER_LEADER || peer->state.role == LEAT_VOTER_JOINING;
}

/* Catching up ended, well or not, and raft still has the id of the server. */
static void catch_up_forget(struct leat_coordinator *coordinator)
{
    struct raft *raft = &coordinator->drive.raft;
    if (raft_state(raft) == RAFT_LEADER) raft->leader_state.promotee_id = 0;
}

static leat_err joining_advance(struct leat_coordinator *coordinator,
                                const struct raft_server *server)
{
    struct co_change *change = &coordinator->change;
    switch (leat_raft_drive_catch_up_status(&coordinator->drive, server->id)) {
    case RAFT_CATCH_UP_RUNNING:
        return LEAT_OK;
    case RAFT_CATCH_UP_FINISHED: {
        char address[CO_VOTER_BYTES_MAX + 1];
        snprintf(address, sizeof address, "%s", server->address);
        struct edit edit = {.id = server->id, .address = address, .role = RAFT_VOTER};
        catch_up_forget(coordinator);
        return configuration_propose(coordinator, &edit);
    }
    default:
        if (change->tries++ == CO_CATCH_UP_TRIES) {
            co_change_end(coordinator, LEAT_E_TIMEOUT,
                          "the node does not catch up with the coordinator's log");
            return LEAT_OK;
        }
        catch_up_forget(coordinator);
        leat_raft_drive_catch_up(&coordinator->drive, server->id);
        return LEAT_OK;
    }
}

/* The node votes. A replacement without anything to do is refused: the operator may have named the wrong node. */
static void change_is_done(struct leat_coordinator *coordinator)
{
    const struct co_change *change = &coordinator->change;
    if (change->replace && !change->lacked)
        co_change_end(coordinator, LEAT_E_EXISTS, "the node votes: there is nothing to replace");
    else
        co_change_end(coordinator, LEAT_OK, "");
}

/* Compares the wanted with the present state: the next difference is the next step. */
static leat_err step(struct leat_coordinator *coordinator)
{
    struct co_change *change = &coordinator->change;
    const struct co_peer *peer = co_peer_of_node(coordinator, change->node);
    const struct raft_server *self = co_server_of_id(coordinator, coordinator->voter_id);
    char address[CO_VOTER_BYTES_MAX + 1];
    co_voter_write(address, coordinator->options.node_address, co_own_name(coordinator));
    if (self && strcmp(self->address, address) != 0) {
        /* A voter that began alone has an unreachable address. */
        struct edit edit = {.id = self->id, .address = address, .role = self->role};
        return configuration_propose(coordinator, &edit);
    }
    /* The node is this leader: it has become a voter since the request was first made. */
    if (strcmp(change->node, leat_links_identity(coordinator->links)->node) == 0) {
        change_is_done(coordinator);
        return LEAT_OK;
    }
    if (!peer) return LEAT_OK; /* waited for */
    const struct raft_server *server = co_server_of_id(coordinator, peer->state.voter_id);
    if (server && server->role == RAFT_VOTER && peer_runs_raft(peer)) {
        /* The peer's state may be from before the loss of its data, on a connection that has ended unnoticed: the
         * peer is asked once more. A voter has nothing to do for JOIN. */
        if (change->confirmed)
            change_is_done(coordinator);
        else
            join_call(coordinator, peer);
        return LEAT_OK;
    }
    /* PREPARED: the cluster is formed, and this node has not heard yet that the peer votes. */
    if (!server || server->role != RAFT_VOTER || peer->state.role != LEAT_VOTER_PREPARED)
        change->lacked = true;
    const struct leat_machine_node *node =
        leat_machine_node_find(&coordinator->machine, change->node, strlen(change->node));
    if (!node || !strchr(node->info.node_address, ':')) return LEAT_OK; /* waited for */
    const struct raft_server *old = co_server_of_node(coordinator, change->node);
    const struct raft_server *there = server_of_address(coordinator, node->info.node_address);
    if (there && !co_server_is(coordinator, there, change->node)) {
        co_change_end(coordinator, LEAT_E_EXISTS,
                      "another node votes at that node's address: give it an address of its own");
        return LEAT_OK;
    }
    if (old && old->id != peer->state.voter_id) {
        if (!change->replace) {
            co_change_end(coordinator, LEAT_E_EXISTS,
                          "the node votes under another id; has it lost its data? Then it is "
                          "leat node replace");
            return LEAT_OK;
        }
        struct edit edit = {.without = old->id};
        change->left = true;
        return configuration_propose(coordinator, &edit);
    }
    /* The operator may have named the wrong node: a learner must not become a voter by mistake. */
    if (change->replace && !change->left && !server && peer->state.role == LEAT_VOTER_LEARNER) {
        co_change_end(coordinator, LEAT_E_NOT_FOUND,
                      "the node has no vote that could be replaced; if it shall have one: leat "
                      "node add-voter");
        return LEAT_OK;
    }
    if (!peer_runs_raft(peer)) {
        join_call(coordinator, peer);
        return LEAT_OK;
    }
    if (!server) {
        if (coordinator->drive.raft.configuration.n >= LEAT_VOTERS_MAX) {
            co_change_end(coordinator, LEAT_E_TOO_MANY,
                          "the cluster has as many voters as it can have");
            return LEAT_OK;
        }
        co_voter_write(address, node->info.node_address, change->node);
        struct edit edit = {.id = peer->state.voter_id, .address = address, .role = RAFT_SPARE};
        return configuration_propose(coordinator, &edit);
    }
    return joining_advance(coordinator, server);
}

/* One at a time, and only while no voter is added or replaced. */
static void voters_correct(struct leat_coordinator *coordinator)
{
    const struct raft_configuration *now = &coordinator->drive.raft.configuration;
    char address[CO_VOTER_BYTES_MAX + 1];
    if (leat_raft_drive_changing(&coordinator->drive)) return;
    for (unsigned i = 0; i < now->n; i++) {
        const struct raft_server *server = &now->servers[i];
        if (!co_voter_correct(coordinator, server, address)) continue;
        struct edit edit = {.id = server->id, .address = address, .role = server->role};
        leat_err rc = configuration_propose(coordinator, &edit);
        if (rc != LEAT_OK) LEAT_MAYBE(true); /* tried again with the next tick */
        return;
    }
}

void co_change_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_change *change = &coordinator->change;
    if (!co_leads(coordinator)) return;
    if (!change->running) {
        if (coordinator->clustered) voters_correct(coordinator);
        return;
    }
    /* When this node closes a link, the link's calls end without an answer. */
    if (change->calling && co_now(coordinator) < change->calling_until_us) return;
    change->calling = false;
    if (co_now(coordinator) > change->since_us + CHANGE_US_MAX) {
        co_change_end(coordinator, LEAT_E_TIMEOUT,
                      "the node has not connected, or too few voters are up; ask again");
        return;
    }
    if (leat_raft_drive_changing(&coordinator->drive)) return;
    leat_err rc = step(coordinator);
    if (rc != LEAT_OK && rc != LEAT_E_AGAIN)
        co_change_end(coordinator, rc, "the voters can't be changed now");
}

/* ---- beginning ---- */

static void admin_answered(struct leat_link_call *call, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct calling *calling = call->owner;
    struct leat_coordinator *coordinator = calling->coordinator;
    struct leat_coordinate *request = calling->request;
    (void)answer;
    leat_mem_free(calling);
    if (rc == LEAT_E_CANCELLED) return;
    if (rc == LEAT_OK) {
        request->rc = LEAT_OK;
        co_request_answer(coordinator, request);
        return;
    }
    co_request_refuse(coordinator, request, rc, error->text);
}

static void admin_forward(struct leat_coordinator *coordinator, bool replace, const char *node,
                          struct leat_coordinate *request)
{
    struct co_peer *leader = coordinator->links ? co_peer_leader(coordinator) : NULL;
    struct calling *calling =
        leader ? leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *calling) : NULL;
    leat_err rc = LEAT_E_NOT_LEADER;
    if (calling) {
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, calling->control, sizeof calling->control);
        co_admin_said_write(&writer,
                            &(struct co_admin_said){replace, {node, (uint32_t)strlen(node)}});
        LEAT_ASSERT(!writer.overflow);
        calling->coordinator = coordinator;
        calling->request = request;
        calling->call = (struct leat_link_call){.kind = CO_KIND_ADMIN,
                                                .control = calling->control,
                                                .control_bytes = writer.used,
                                                .timeout_us = CHANGE_US_MAX + CO_CALL_US,
                                                .on_done = admin_answered,
                                                .owner = calling};
        rc = leat_link_call(leader->link, &calling->call);
    }
    if (rc == LEAT_OK) return;
    leat_mem_free(calling);
    char words[LEAT_ERROR_TEXT_BYTES];
    co_leader_lacks_tell(coordinator, "", words, sizeof words);
    co_request_refuse(coordinator, request, rc, words);
}

void co_change_begin(struct leat_coordinator *coordinator, bool replace, const char *node,
                     struct leat_coordinate *request, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    leat_err rc = LEAT_OK;
    const char *why = "";
    char unknown[LEAT_NODE_NAME_BYTES_MAX + 96];
    if (!coordinator->clustered) {
        rc = LEAT_E_CONFIG;
        why = "this server is alone: start it with --coordinators for that";
    } else if (!co_leads(coordinator)) {
        if (request) {
            admin_forward(coordinator, replace, node, request);
            return;
        }
        rc = LEAT_E_NOT_LEADER;
        why = leat_err_text(rc);
    } else if (coordinator->change.running) {
        rc = LEAT_E_AGAIN;
        why = "the voters are being changed already";
    } else if (!leat_machine_node_find(&coordinator->machine, node, strlen(node))) {
        rc = LEAT_E_NOT_FOUND;
        snprintf(unknown, sizeof unknown,
                 "no node \"%s\" has come up: leat cluster status names those that have", node);
        why = unknown;
    }
    if (rc == LEAT_OK) {
        struct co_change *change = &coordinator->change;
        change->running = true;
        change->replace = replace;
        change->since_us = co_now(coordinator);
        change->request = request;
        change->has_ticket = ticket != NULL;
        if (ticket) change->ticket = *ticket;
        snprintf(change->node, sizeof change->node, "%s", node);
    } else if (request) {
        co_request_refuse(coordinator, request, rc, why);
    } else {
        leat_link_answer_error(coordinator->links, ticket, rc, why);
    }
}
