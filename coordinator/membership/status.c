/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state, for operators. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"

static void voters_fill(struct leat_coordinator *coordinator, struct leat_coordinator_status *out)
{
    const struct raft *raft = &coordinator->drive.raft;
    for (unsigned i = 0; i < raft->configuration.n && i < LEAT_VOTERS_MAX; i++) {
        const struct raft_server *server = &raft->configuration.servers[i];
        struct leat_voter_status *voter = &out->voters[out->voter_count++];
        voter->id = server->id;
        struct leat_machine_voter said;
        co_voter_read(server->address, &said);
        snprintf(voter->address, sizeof voter->address, "%s", said.address);
        voter->votes = server->role == RAFT_VOTER;
        voter->reachable = server->id == coordinator->voter_id ||
                           co_peer_of_voter(coordinator, server->id) != NULL;
        raft_index index = 0;
        if (co_leads(coordinator) && raft_match_index(raft, server->id, &index) == 0)
            voter->last_index = index;
        if (server->id == coordinator->voter_id)
            voter->last_index = leat_raft_log_last_index(&coordinator->drive.log);
    }
}

/* A learner names the voters from its options. */
static void addresses_fill(struct leat_coordinator *coordinator,
                           struct leat_coordinator_status *out)
{
    for (uint32_t i = 0; i < coordinator->options.voter_count; i++) {
        struct leat_voter_status *voter = &out->voters[out->voter_count++];
        snprintf(voter->address, sizeof voter->address, "%s", coordinator->options.voters[i]);
        const struct co_peer *peer = co_peer_of_address(coordinator, voter->address);
        voter->votes = true;
        voter->reachable = peer != NULL;
        if (peer) voter->id = peer->state.voter_id;
    }
}

/* A former leader that is not heard any more leads no node; and without a majority no node can lead. */
static void majority_tell(struct leat_coordinator_status *out)
{
    uint32_t votes = 0, reachable = 0;
    for (uint32_t i = 0; i < out->voter_count; i++) {
        const struct leat_voter_status *voter = &out->voters[i];
        if (voter->id == out->leader_id && !voter->reachable) out->leader_address[0] = 0;
        votes += voter->votes;
        reachable += voter->votes && voter->reachable;
    }
    if (votes == 0 || reachable > votes / 2 || out->why[0]) return;
    snprintf(out->why, sizeof out->why,
             "no majority: %" PRIu32 " of %" PRIu32
             " voters can be reached. Logs whose nodes are all up go on; whatever changes streams, "
             "nodes or owners waits",
             reachable, votes);
}

void co_leader_lacks_tell(struct leat_coordinator *coordinator, const char *before, char *out,
                          size_t bytes)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_coordinator_status *status =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *status);
    uint32_t votes = 0, reachable = 0;
    if (status) co_status_fill(coordinator, status);
    for (uint32_t i = 0; status && i < status->voter_count; i++) {
        votes += status->voters[i].votes;
        reachable += status->voters[i].votes && status->voters[i].reachable;
    }
    bool majority = votes == 0 || reachable > votes / 2;
    const char *why = status && majority ? status->why : "";
    const char *leader = status && majority ? status->leader_address : "";
    size_t used = (size_t)snprintf(out, bytes, "%sthe cluster%s%s%s%s%s", before,
                                   leader[0] ? "'s leader, " : " has no leader", leader,
                                   leader[0] ? ", does not answer" : "", why[0] ? ": " : "", why);
    if (!majority && used < bytes)
        used += (size_t)snprintf(out + used, bytes - used,
                                 ": %" PRIu32 " of %" PRIu32 " voters answer, and it needs %" PRIu32
                                 "; start",
                                 reachable, votes, votes / 2 + 1);
    for (uint32_t i = 0; !majority && i < status->voter_count && used < bytes; i++)
        if (status->voters[i].votes && !status->voters[i].reachable)
            used += (size_t)snprintf(out + used, bytes - used, " %s", status->voters[i].address);
    leat_mem_free(status);
}

/* Each voter that this start waits for, and why it was not met. */
static void awaited_list(struct leat_coordinator *coordinator, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = 0;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer->wanted || used >= bytes) continue;
        const char *address = leat_link_address(peer->link);
        const char *comma = used ? ", " : "";
        if (!leat_link_is_up(peer->link))
            used += (size_t)snprintf(out + used, bytes - used, "%s%s%s", comma,
                                     peer->why[0] ? peer->why : address,
                                     peer->why[0] ? "" : " (no answer yet)");
        else if (peer->state.known && strcmp(peer->state.address, address) != 0)
            used += (size_t)snprintf(out + used, bytes - used,
                                     "%s%s (it calls itself %s: --coordinators and its "
                                     "--node-listen have to say the same)",
                                     comma, address, peer->state.address);
    }
}

/* A mistyped address looks like a node that is not there yet, and until enough voters have connected no request to
 * this node gets an answer. */
void co_wait_tell(struct leat_coordinator *coordinator, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (co_ready(coordinator) || coordinator->forgot || !coordinator->links) return;
    bool first = coordinator->wait_tell_us == 0;
    if (!first && now_us < coordinator->wait_tell_us) return;
    coordinator->wait_tell_us = now_us + (first ? CO_WAIT_TELL_US : CO_WAIT_TELL_AGAIN_US);
    if (first) return;
    char list[2 * LEAT_ERROR_TEXT_BYTES];
    awaited_list(coordinator, list, sizeof list);
    const char *why = coordinator->why;
    bool new_one = !coordinator->votes && coordinator->forming != LEAT_VOTER_LEARNER;
    leat_node_log_warn("coordinator: this node is not ready: it waits for %s%s%s%s%s%s",
                       new_one ? "all other voters, which have to be there for a cluster to form"
                               : "more than half of the voters",
                       list[0] ? "; not met: " : "", list, why[0] ? "; " : "", why,
                       new_one && list[0] ? ". Is each named right in --coordinators?" : "");
}

/* SUBTLE: a failed attempt to reach a voter is kept with the voter, and removed when the voter is reached.
 *  1. A voter is down, and something else listens at its address for a moment: no node, or one with another key.
 *  2. The voter is back, and reached.
 *  3. If (1) were kept with the coordinator, status would show (1) until a restart. */
static const char *trouble(const struct leat_coordinator *coordinator)
{
    if (coordinator->failed) return coordinator->failed_why;
    if (coordinator->why[0]) return coordinator->why;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, const struct co_peer, list);
        if (peer->wanted && peer->refused && !leat_link_is_up(peer->link)) return peer->why;
    }
    return "";
}

void co_status_fill(struct leat_coordinator *coordinator, struct leat_coordinator_status *out)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct leat_machine *machine = &coordinator->machine;
    memset(out, 0, offsetof(struct leat_coordinator_status, nodes)); /* what follows is large */
    out->role = co_role(coordinator);
    snprintf(out->why, sizeof out->why, "%s", trouble(coordinator));
    out->applied_index = coordinator->applied;
    out->voter_id = coordinator->voter_id;
    out->ready = co_ready(coordinator);
    memcpy(out->cluster_id, machine->cluster_id, sizeof out->cluster_id);
    if (coordinator->votes) {
        raft_id leader = 0;
        const char *address = NULL;
        out->term = raft_current_term(&coordinator->drive.raft);
        raft_leader(&coordinator->drive.raft, &leader, &address);
        out->leader_id = leader;
        struct leat_machine_voter said;
        co_voter_read(address ? address : "", &said);
        if (address) snprintf(out->leader_address, sizeof out->leader_address, "%s", said.address);
        voters_fill(coordinator, out);
    } else {
        const struct co_peer *leader = co_peer_leader(coordinator);
        if (leader) {
            out->term = leader->state.term;
            out->leader_id = leader->state.voter_id;
            snprintf(out->leader_address, sizeof out->leader_address, "%s", leader->state.address);
        }
        addresses_fill(coordinator, out);
    }
    majority_tell(out);
    out->node_count = machine->node_count;
    for (uint32_t i = 0; i < machine->node_count; i++)
        out->nodes[i] = machine->nodes[i].info;
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        if (machine->streams[i].desc->internal) continue;
        out->stream_count++;
        out->log_count += machine->streams[i].log_count;
    }
    out->leads = co_leads(coordinator);
}
