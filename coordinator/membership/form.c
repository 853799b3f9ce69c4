/* SPDX-License-Identifier: Apache-2.0 */
/* How a cluster of several voters is formed, once, and how a voter joins later.
 *
 * The voter with the lowest address, the founder, waits until all other voters are up and empty. The founder draws up
 * the cluster (cluster id; voters with their ids), and each voter keeps the cluster durably in raft/form: the voter
 * is prepared. When all voters are prepared, the founder writes raft's first entries and begins; a prepared voter
 * does the same as soon as it sees a voter that has begun. So no voter votes before every voter has a durable record
 * of the cluster, and a voter that is empty while another voter has begun has lost its data: it stays out until it is
 * replaced.
 *
 * A prepared voter may be prepared anew: no voter has voted yet, or this voter would see a voter that has begun in
 * the same cluster. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/voters.h"

/* FORM, and raft/form: [cluster id bin16, [[id, "address name"]...]]
 * JOIN: [cluster id bin16, id] */

/* ---- the body of FORM ---- */

struct form {
    uint8_t cluster_id[16];
    uint32_t count;
    uint64_t ids[LEAT_VOTERS_MAX];
    char addresses[LEAT_VOTERS_MAX][CO_VOTER_BYTES_MAX + 1]; /* and names */
};

static bool form_read(const uint8_t *bytes, size_t count, struct form *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    memset(out, 0, sizeof *out);
    struct co_form_said said;
    uint32_t left = co_form_said_read(&reader, &said);
    if (reader.failed || said.count == 0 || said.count > LEAT_VOTERS_MAX) return false;
    memcpy(out->cluster_id, said.cluster_id, sizeof out->cluster_id);
    out->count = said.count;
    for (uint32_t i = 0; i < out->count; i++) {
        struct co_form_voter voter;
        (void)co_form_voter_read(&reader, &voter);
        if (reader.failed || voter.voter_id == 0 || voter.address.bytes == 0 ||
            voter.address.bytes > CO_VOTER_BYTES_MAX)
            return false;
        out->ids[i] = voter.voter_id;
        memcpy(out->addresses[i], voter.address.text, voter.address.bytes);
    }
    return leat_msg_read_end(&reader, left);
}

/* Is this node in the form, under the id that it has reported? */
static bool form_names_me(const struct leat_coordinator *coordinator, const struct form *form)
{
    for (uint32_t i = 0; i < form->count; i++) {
        struct leat_machine_voter voter;
        co_voter_read(form->addresses[i], &voter);
        if (form->ids[i] == coordinator->voter_id &&
            strcmp(voter.address, coordinator->options.node_address) == 0 &&
            (!voter.name[0] || strcmp(voter.name, co_own_name(coordinator)) == 0))
            return true;
    }
    return false;
}

/* A failed write or flush is final: the next start looks at what is there. */
static void stop(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    coordinator->failed = rc;
    snprintf(coordinator->failed_why, sizeof coordinator->failed_why,
             "the coordinator has stopped: %.200s", why);
    leat_node_log_error("coordinator: %s", coordinator->failed_why);
    co_requests_fail(coordinator, rc, coordinator->failed_why);
    co_state_tell(coordinator, true);
}

static leat_err prepare(struct leat_coordinator *coordinator, const uint8_t cluster_id[16],
                        const uint8_t *body, size_t count)
{
    uint8_t *copy = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, 1);
    if (!copy) return LEAT_E_NO_MEMORY;
    leat_err rc = co_voter_save(coordinator, cluster_id);
    if (rc == LEAT_OK) rc = co_file_save(coordinator, "form", body, count);
    if (rc != LEAT_OK) {
        leat_mem_free(copy);
        if (leat_err_class(rc) == LEAT_CLASS_FATAL)
            stop(coordinator, rc, "raft/form can't be written");
        return rc;
    }
    memcpy(copy, body, count);
    leat_mem_free(coordinator->form_body);
    coordinator->form_body = copy;
    coordinator->form_bytes = count;
    coordinator->forming = LEAT_VOTER_PREPARED;
    co_state_tell(coordinator, true);
    return LEAT_OK;
}

/* All voters are prepared: raft's first entries, the same on all. */
static void form_complete(struct leat_coordinator *coordinator)
{
    struct form form;
    struct leat_error error = {.code = LEAT_OK};
    uint8_t bytes[64];
    bool valid = form_read(coordinator->form_body, coordinator->form_bytes, &form);
    LEAT_ASSERT(valid);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    co_form_command(&writer, form.cluster_id);
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; i < form.count && rc == LEAT_OK; i++)
        if (raft_configuration_add(&configuration, form.ids[i], form.addresses[i], RAFT_VOTER))
            rc = leat_error_set(&error, LEAT_E_INVALID, "two coordinators have the same address");
    leat_raft_drive_id_set(&coordinator->drive, coordinator->voter_id);
    memcpy(coordinator->cluster_id, form.cluster_id, sizeof form.cluster_id);
    if (rc == LEAT_OK)
        rc = leat_raft_drive_form(&coordinator->drive, &configuration, bytes, writer.used, &error);
    raft_configuration_close(&configuration);
    if (rc == LEAT_OK) rc = co_vote_start(coordinator, &error);
    if (rc != LEAT_OK) {
        stop(coordinator, rc, error.text);
        return;
    }
    co_peers_want(coordinator);
    co_identity_update(coordinator);
}

/* ---- the founder ---- */

static bool is_founder(const struct leat_coordinator *coordinator)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    for (uint32_t i = 0; i < options->voter_count; i++)
        if (strcmp(options->voters[i], options->node_address) < 0) return false;
    return true;
}

struct calling {
    struct leat_link_call call;
    struct leat_coordinator *coordinator;
    struct co_peer *peer;
    size_t count;
    uint8_t body[CO_FILE_BODY_BYTES_MAX];
};

static void form_answered(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct calling *calling = call->owner;
    struct leat_coordinator *coordinator = calling->coordinator;
    struct co_peer *peer = calling->peer;
    (void)answer;
    (void)error;
    leat_mem_free(calling);
    if (rc == LEAT_E_CANCELLED) return;
    coordinator->form_answers++;
    if (rc == LEAT_OK) coordinator->form_ok++;
    /* No answer to this attempt may arrive during the next. */
    if (rc == LEAT_E_TIMEOUT) leat_link_cut(peer->link, rc, "a voter did not answer");
    if (coordinator->form_answers < coordinator->form_wanted) return;
    coordinator->form_calling = false;
    if (coordinator->form_ok == coordinator->form_wanted && !coordinator->votes)
        form_complete(coordinator);
}

static void form_call(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    struct calling *calling = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *calling);
    leat_err rc = LEAT_E_NO_MEMORY;
    if (calling) {
        calling->coordinator = coordinator;
        calling->peer = peer;
        memcpy(calling->body, coordinator->form_body, coordinator->form_bytes);
        calling->call = (struct leat_link_call){.kind = CO_KIND_FORM,
                                                .control = calling->body,
                                                .control_bytes = (uint32_t)coordinator->form_bytes,
                                                .timeout_us = CO_CALL_US,
                                                .on_done = form_answered,
                                                .owner = calling};
        rc = leat_link_call(peer->link, &calling->call);
    }
    if (rc == LEAT_OK) return;
    leat_mem_free(calling);
    coordinator->form_answers++;
}

static bool voter_waits(const struct co_peer *peer)
{
    return peer &&
           (peer->state.role == LEAT_VOTER_EMPTY || peer->state.role == LEAT_VOTER_PREPARED);
}

static void form_begin(struct leat_coordinator *coordinator)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    const struct co_peer *peers[LEAT_VOTERS_MAX] = {NULL};
    uint8_t body[CO_FILE_BODY_BYTES_MAX], cluster_id[16];
    for (uint32_t i = 0; i < options->voter_count; i++) {
        if (strcmp(options->voters[i], options->node_address) == 0) continue;
        peers[i] = co_peer_reached(coordinator, options->voters[i]);
        if (!voter_waits(peers[i])) return;
    }
    for (int i = 0; i < 2; i++) {
        uint64_t half = coordinator->env->random->next(coordinator->env->random->ctx);
        memcpy(cluster_id + 8 * i, &half, sizeof half);
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    struct co_form_said said = {.count = options->voter_count};
    memcpy(said.cluster_id, cluster_id, sizeof said.cluster_id);
    co_form_said_write(&writer, &said);
    for (uint32_t i = 0; i < options->voter_count; i++) {
        uint64_t id = peers[i] ? peers[i]->state.voter_id : coordinator->voter_id;
        char voter[CO_VOTER_BYTES_MAX + 1];
        co_voter_write(voter, options->voters[i],
                       peers[i] ? leat_link_peer(peers[i]->link)->node : co_own_name(coordinator));
        co_form_voter_write(&writer, &(struct co_form_voter){id, {voter, (uint32_t)strlen(voter)}});
    }
    LEAT_ASSERT(!writer.overflow);
    leat_err rc = prepare(coordinator, cluster_id, body, writer.used);
    if (rc != LEAT_OK) {
        leat_node_log_warn("coordinator: raft/form can't be written: %s", leat_err_text(rc));
        return;
    }
    coordinator->form_calling = true;
    coordinator->form_answers = coordinator->form_ok = 0;
    coordinator->form_wanted = options->voter_count - 1;
    for (uint32_t i = 0; i < options->voter_count; i++)
        if (peers[i]) form_call(coordinator, (struct co_peer *)(uintptr_t)peers[i]);
    if (coordinator->form_answers == coordinator->form_wanted) {
        coordinator->form_calling = false;
        if (coordinator->form_ok == coordinator->form_wanted) form_complete(coordinator);
    }
}

/* ---- every voter-to-be ---- */

static bool peer_has_begun(const struct co_peer *peer)
{
    return peer->state.known &&
           (peer->state.role == LEAT_VOTER_FOLLOWER || peer->state.role == LEAT_VOTER_CANDIDATE ||
            peer->state.role == LEAT_VOTER_LEADER || peer->state.role == LEAT_VOTER_JOINING);
}

static void forgotten(struct leat_coordinator *coordinator)
{
    if (coordinator->forgot) return;
    coordinator->forgot = true;
    snprintf(coordinator->why, sizeof coordinator->why,
             "this coordinator has lost its data and does not vote: leat node replace %s",
             coordinator->options.node_name ? coordinator->options.node_name : "");
    leat_node_log_error("coordinator: %s", coordinator->why);
}

void co_form_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (coordinator->votes || coordinator->form_calling || coordinator->forgot) return;
    if (coordinator->forming != LEAT_VOTER_EMPTY && coordinator->forming != LEAT_VOTER_PREPARED)
        return;
    struct form form = {.count = 0};
    if (coordinator->form_body &&
        !form_read(coordinator->form_body, coordinator->form_bytes, &form))
        return;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer_has_begun(peer)) continue;
        if (coordinator->forming == LEAT_VOTER_PREPARED &&
            memcmp(peer->state.cluster_id, form.cluster_id, 16) == 0)
            form_complete(coordinator);
        else
            forgotten(coordinator);
        return;
    }
    if (is_founder(coordinator)) form_begin(coordinator);
}

void co_form_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct form form;
    leat_err rc = LEAT_OK;
    if (coordinator->votes || coordinator->forgot || coordinator->failed != LEAT_OK ||
        (coordinator->forming != LEAT_VOTER_EMPTY && coordinator->forming != LEAT_VOTER_PREPARED))
        rc = LEAT_E_EXISTS;
    else if (frame->control_bytes > CO_FILE_BODY_BYTES_MAX ||
             !form_read(frame->control, frame->control_bytes, &form) ||
             !form_names_me(coordinator, &form))
        rc = LEAT_E_INVALID;
    if (rc == LEAT_OK)
        rc = prepare(coordinator, form.cluster_id, frame->control, frame->control_bytes);
    if (rc == LEAT_OK)
        leat_link_answer(coordinator->links, ticket, "\x90", 1);
    else
        leat_link_answer_error(coordinator->links, ticket, rc,
                               "this voter can't be prepared for a new cluster");
}

leat_err co_form_open(struct leat_coordinator *coordinator, bool is_new, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct leat_coordinator_options *options = &coordinator->options;
    static const uint8_t none[16];
    bool to_vote = false;
    LEAT_ASSERT(is_new);
    for (uint32_t i = 0; i < options->voter_count; i++)
        if (strcmp(options->voters[i], options->node_address) == 0) to_vote = true;
    uint8_t body[CO_FILE_BODY_BYTES_MAX];
    size_t count = 0;
    leat_err rc = co_file_load(coordinator, "form", body, &count, error);
    if (rc != LEAT_OK) return rc;
    struct form form;
    if (to_vote && count && form_read(body, count, &form) && form_names_me(coordinator, &form)) {
        coordinator->form_body = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, 1);
        if (!coordinator->form_body) return LEAT_E_NO_MEMORY;
        memcpy(coordinator->form_body, body, count);
        coordinator->form_bytes = count;
        coordinator->forming = LEAT_VOTER_PREPARED;
        /* SUBTLE: raft/voter names a cluster that may never be.
         *  1. B is prepared for cluster X, and dies. The founder has had no answer.
         *  2. B is back, and is prepared anew, for cluster Y. A and C begin.
         *  3. If B still said X to A and C, they would take B for a node of another cluster. */
        memset(coordinator->cluster_id, 0, sizeof coordinator->cluster_id);
        return LEAT_OK;
    }
    /* A new id: the data of the old id is not here any more. */
    memset(coordinator->cluster_id, 0, sizeof coordinator->cluster_id);
    coordinator->voter_id = coordinator->env->random->next(coordinator->env->random->ctx) | 1024;
    coordinator->forming = to_vote ? LEAT_VOTER_EMPTY : LEAT_VOTER_LEARNER;
    if (to_vote && memcmp(options->cluster_id, none, sizeof none) != 0) forgotten(coordinator);
    return LEAT_OK;
}

/* ---- joining ---- */

void co_join_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_join_said said;
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = co_join_said_decode(frame->control, frame->control_bytes, &said);
    if (rc != LEAT_OK || said.voter_id != coordinator->voter_id || coordinator->failed != LEAT_OK)
        rc = LEAT_E_INVALID;
    else if (!coordinator->machine.formed ||
             memcmp(coordinator->machine.cluster_id, said.cluster_id, 16) != 0)
        rc = LEAT_E_STARTING;
    if (rc == LEAT_OK && !coordinator->votes) {
        rc = co_voter_save(coordinator, coordinator->machine.cluster_id);
        leat_raft_drive_id_set(&coordinator->drive, coordinator->voter_id);
        if (rc == LEAT_OK) rc = leat_raft_log_form(&coordinator->drive.log, NULL, 0, &error);
        if (rc == LEAT_OK) rc = co_vote_start(coordinator, &error);
        if (rc == LEAT_OK) {
            coordinator->forgot = false;
            coordinator->why[0] = 0;
            coordinator->feeder = NULL;
            co_state_tell(coordinator, true);
        } else if (leat_err_class(rc) == LEAT_CLASS_FATAL) {
            stop(coordinator, rc, "raft's first files can't be written");
        }
    }
    if (rc == LEAT_OK)
        leat_link_answer(coordinator->links, ticket, "\x90", 1);
    else
        leat_link_answer_error(coordinator->links, ticket, rc,
                               error.code ? error.text : leat_err_text(rc));
}
