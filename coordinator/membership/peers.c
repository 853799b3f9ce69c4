/* SPDX-License-Identifier: Apache-2.0 */
/* The other coordinators: links to these, their states, and their messages.
 *
 * Every node opens a link to each known voter; so a voter has a link from every node. STATE goes both ways whenever
 * it changes. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

enum {
    STATE_BYTES_MAX =
        (1 + LEAT_VOTERS_MAX) * (LEAT_NODE_NAME_BYTES_MAX + 4) + LEAT_ADDRESS_BYTES_MAX + 128
};

/* ---- what this node is ---- */

void co_identity_update(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    bool learnt = coordinator->machine.formed && !co_cluster_known(coordinator);
    if (learnt)
        memcpy(coordinator->cluster_id, coordinator->machine.cluster_id,
               sizeof coordinator->cluster_id);
    if (!coordinator->links) return;
    /* A voter has to know it at its next start, before anything is committed there. */
    if (learnt && coordinator->votes && co_voter_save(coordinator, coordinator->cluster_id))
        leat_node_log_warn("coordinator: raft/voter can't be written");
    struct leat_link_identity identity = *leat_links_identity(coordinator->links);
    if (co_cluster_known(coordinator))
        memcpy(identity.cluster_id, coordinator->cluster_id, sizeof identity.cluster_id);
    identity.incarnation = coordinator->incarnation;
    leat_links_identity_set(coordinator->links, &identity);
    co_state_tell(coordinator, true);
}

/* ---- STATE ---- */

static void state_write(struct leat_coordinator *coordinator, struct leat_msg_writer *writer)
{
    const struct leat_link_identity *identity = leat_links_identity(coordinator->links);
    const char *address = coordinator->options.node_address;
    raft_id leader = 0;
    const char *leader_address = NULL;
    struct leat_machine_voter voters[LEAT_VOTERS_MAX];
    if (coordinator->votes) raft_leader(&coordinator->drive.raft, &leader, &leader_address);
    struct co_state_said state = {
        .node = {identity->node, (uint32_t)strlen(identity->node)},
        .incarnation = coordinator->incarnation,
        .role = (uint32_t)co_role(coordinator),
        .voter_id = coordinator->voter_id,
        .term = coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0,
        .leader_id = leader,
        .applied = coordinator->applied,
        .address = {address, (uint32_t)strlen(address)},
        .name_count = co_introductions(coordinator, voters),
    };
    memcpy(state.cluster_id, identity->cluster_id, sizeof state.cluster_id);
    co_state_said_write(writer, &state);
    for (uint32_t i = 0; i < state.name_count; i++)
        leat_msg_write_string(writer, voters[i].name, strlen(voters[i].name));
    LEAT_ASSERT(!writer->overflow);
}

static bool state_decode(const struct leat_frame *frame, struct co_state_said *said,
                         struct co_state *out)
{
    memset(out, 0, sizeof *out);
    if (co_state_said_decode(frame->control, frame->control_bytes, said) != LEAT_OK ||
        said->node.bytes >= sizeof out->node || said->address.bytes >= sizeof out->address)
        return false;
    memcpy(out->cluster_id, said->cluster_id, sizeof out->cluster_id);
    memcpy(out->node, said->node.text, said->node.bytes);
    memcpy(out->address, said->address.text, said->address.bytes);
    out->incarnation = said->incarnation;
    out->role = said->role;
    out->voter_id = said->voter_id;
    out->term = said->term;
    out->leader_id = said->leader_id;
    out->applied = said->applied;
    out->known = true;
    return true;
}

static void state_tell_one(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    uint8_t bytes[STATE_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    state_write(coordinator, &writer);
    if (leat_link_tell(peer->link, CO_KIND_STATE, bytes, writer.used) != LEAT_OK)
        LEAT_MAYBE(true); /* down, or full: told when it is up, or by the next change */
}

void co_state_tell(struct leat_coordinator *coordinator, bool always)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!coordinator->links) return;
    uint32_t role = (uint32_t)co_role(coordinator);
    uint64_t term = coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0;
    uint64_t configuration = co_configuration_index(coordinator);
    if (!always && role == coordinator->state_told_role && term == coordinator->state_told_term &&
        configuration == coordinator->state_told_configuration)
        return;
    coordinator->state_told_configuration = configuration;
    coordinator->state_told_role = role;
    coordinator->state_told_term = term;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->link && leat_link_is_up(peer->link)) state_tell_one(coordinator, peer);
    }
}

/* The state names the node of the link, and a known incarnation in the state belongs to that node. */
static bool state_is_own(struct leat_coordinator *coordinator, const struct co_peer *peer,
                         const struct co_state *state)
{
    const char *name = leat_link_peer(peer->link)->node;
    const struct leat_machine_node *node =
        leat_machine_incarnation_find(&coordinator->machine, state->incarnation);
    return strcmp(name, state->node) == 0 &&
           (state->incarnation == 0 || !node || strcmp(node->info.name, name) == 0);
}

void co_state_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                   const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_state state;
    struct co_state_said said;
    const char *offence = NULL;
    if (!state_decode(frame, &said, &state))
        offence = "a malformed state";
    else if (!state_is_own(coordinator, peer, &state))
        offence = "a state of another node than its hello named";
    if (offence) {
        co_complain(coordinator, peer, offence);
        leat_link_cut(peer->link, LEAT_E_INVALID, offence);
        return;
    }
    peer->state = state;
    if (said.name_count > 0) co_introductions_take(coordinator, peer, said.name_count, &said.names);
    coordinator->peer_events->on_state(coordinator);
}

/* ---- links ---- */

static struct co_peer *peer_make(struct leat_coordinator *coordinator)
{
    if (coordinator->peer_count == CO_PEERS_MAX) return NULL;
    struct co_peer *peer = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *peer);
    if (!peer) return NULL;
    peer->coordinator = coordinator;
    leat_list_push_back(&coordinator->peers, &peer->list);
    coordinator->peer_count++;
    return peer;
}

/* Nothing under way for this peer goes on. */
static void peer_reset(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    coordinator->peer_events->on_reset(coordinator, peer);
    memset(&peer->state, 0, sizeof peer->state);
    memset(&peer->lost, 0, sizeof peer->lost);
}

static void peer_free(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    peer_reset(coordinator, peer);
    leat_list_remove(&peer->list);
    coordinator->peer_count--;
    leat_mem_free(peer);
}

static void on_up(void *owner, struct leat_link *link)
{
    struct leat_coordinator *coordinator = owner;
    struct co_peer *peer = leat_link_user(link);
    if (!peer) {
        peer = peer_make(coordinator);
        if (!peer) {
            leat_link_close(&link);
            return;
        }
        peer->link = link;
        leat_link_user_set(link, peer);
    }
    peer->why[0] = 0;
    peer->refused = false;
    state_tell_one(coordinator, peer);
}

static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    struct leat_coordinator *coordinator = owner;
    struct co_peer *peer = leat_link_user(link);
    if (!peer) return;
    if (!was_up) { /* what a refusal says is worth knowing */
        snprintf(peer->why, sizeof peer->why, "%s", error->text);
        peer->refused = error->code != LEAT_E_CLOSED && error->code != LEAT_E_TIMEOUT;
        return;
    }
    bool led = peer->state.role == LEAT_VOTER_LEADER;
    coordinator->peer_events->on_down(coordinator, peer);
    if (leat_link_accepted(link))
        peer_free(coordinator, peer);
    else
        peer_reset(coordinator, peer);
    if (led && !co_leads(coordinator)) co_requests_again(coordinator);
}

void co_address_want(struct leat_coordinator *coordinator, const char *address)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!strchr(address, ':') || strcmp(address, coordinator->options.node_address) == 0) return;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer->wanted || strcmp(leat_link_address(peer->link), address) != 0) continue;
        return;
    }
    struct co_peer *peer = peer_make(coordinator);
    if (!peer) return;
    struct leat_link_options options = {.address = address,
                                        .to_actor = LEAT_ACTOR_COORDINATOR,
                                        .purpose = LEAT_LINK_COORDINATE,
                                        .handler = &coordinator->handler,
                                        .stranger = true};
    struct leat_error error;
    if (leat_link_open(coordinator->links, &options, &peer->link, &error) != LEAT_OK) {
        leat_node_log_warn("coordinator: %s", error.text);
        peer_free(coordinator, peer);
        return;
    }
    peer->wanted = true;
    leat_link_user_set(peer->link, peer);
}

/* SUBTLE: (1) A voter was away, and is back; a node that does not vote tries to connect to it every second by now.
 * (2) That voter leads next. (3) The new leader hears nothing of the node within `suspect` + `confirm`, and declares
 * the node crashed. So a rarely tried address is tried at once when its node is up by the tables. */
void co_peer_retry(struct leat_coordinator *coordinator, const struct leat_node_info *node)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (node->state != LEAT_NODE_UP || node->crashed) return;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->wanted && strcmp(leat_link_address(peer->link), node->node_address) == 0)
            leat_link_retry(peer->link);
    }
}

void co_peers_want(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!coordinator->links) return;
    for (uint32_t i = 0; i < coordinator->options.voter_count; i++)
        co_address_want(coordinator, coordinator->options.voters[i]);
    for (uint32_t i = 0; i < coordinator->machine.voter_count; i++)
        co_address_want(coordinator, coordinator->machine.voters[i].address);
    if (!coordinator->votes) return;
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++) {
        struct leat_machine_voter voter;
        co_voter_read(configuration->servers[i].address, &voter);
        co_address_want(coordinator, voter.address);
    }
}

leat_err co_peers_init(struct leat_coordinator *coordinator, struct leat_error *error)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    coordinator->handler = (struct leat_link_handler){
        on_up, on_down, coordinator->peer_events->on_request, coordinator};
    struct leat_links_options links = {.env = coordinator->env,
                                       .actor = coordinator,
                                       .timers = &coordinator->timers,
                                       .hub = options->hub,
                                       .key = options->key,
                                       .strangers_max = options->strangers_max};
    memcpy(links.identity.cluster_id, options->cluster_id, sizeof links.identity.cluster_id);
    snprintf(links.identity.node, sizeof links.identity.node, "%s", co_own_name(coordinator));
    links.identity.cores = options->cores;
    links.services[LEAT_LINK_COORDINATE] =
        (struct leat_link_service){.handler = &coordinator->handler, .strangers = true};
    char bound[128];
    leat_err rc = leat_links_create(&links, &coordinator->links, error);
    if (rc != LEAT_OK) return rc;
    const char *address = options->listen_address ? options->listen_address : options->node_address;
    return coordinator->env->net->listen(coordinator->env->net->ctx, address, leat_link_accept,
                                         coordinator->links, bound, error);
}

void co_peers_fini(struct leat_coordinator *coordinator)
{
    leat_links_destroy(&coordinator->links);
    while (!leat_list_empty(&coordinator->peers))
        peer_free(coordinator, LEAT_CONTAINER(coordinator->peers.next, struct co_peer, list));
}
