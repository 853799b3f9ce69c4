/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: from the queue to the leader, on this node or another; a request is answered when its entry is applied on
 * this node.
 *
 * A request has records: entries with this coordinator's session and a sequence. However often records are proposed,
 * they take effect once. So in every doubt (a lost leader, a call without an answer, an ended leadership) all
 * unanswered requests are sent again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/status.h"

enum { ADOPT_TRIES_MAX = 64 };

/* ---- answers ---- */

static void request_succeed(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                            const struct leat_machine_result *result)
{
    request->stream_id = result->stream_id;
    request->first_id = result->first_id;
    request->id_count = result->id_count;
    request->epoch = result->epoch;
    switch (request->kind) {
    case LEAT_COORDINATE_ACCEPT_LOSS:
        request->next_offset = (uint64_t)result->first_id;
        break;
    case LEAT_COORDINATE_STREAM_CREATE:
    case LEAT_COORDINATE_STREAM_CHANGE:
        request->desc = result->desc;
        if (request->desc) leat_stream_desc_ref(request->desc);
        break;
    case LEAT_COORDINATE_NODE_UP:
        request->incarnation = coordinator->incarnation = result->incarnation;
        memcpy(request->cluster_id, coordinator->machine.cluster_id, sizeof request->cluster_id);
        co_identity_update(coordinator);
        co_state_tell(coordinator, true);
        break;
    case LEAT_COORDINATE_ADOPT:
        request->incarnation = result->incarnation;
        for (size_t i = 0; i < request->decision_count; i++)
            if (!request->decisions[i].left) request->decisions[i].epoch = result->epoch;
        break;
    default:
        break;
    }
    request->rc = LEAT_OK;
    co_request_answer(coordinator, request);
}

/* SUBTLE: the drain of the last node is undone by its requester, not refused when it is applied: voters of versions
 * without this rule would apply the drain (leat_machine_apply_node_drain()).
 *  1. a and b are the last two nodes. a's drain is requested at one node, b's at another. By the tables of each, the
 *     other node is in use.
 *  2. Both drains are committed, a's first. When b's is applied no node is left.
 *  3. The reverse of b's drain is proposed. When this is applied, the requester is refused.
 * If the requester's coordinator ends before 3, both nodes stay drained, until an operator takes a drain back. false:
 * not such a drain. */
static bool drain_take_back(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                            const struct leat_machine_result *result)
{
    if (request->kind != LEAT_COORDINATE_NODE_DRAIN) return false;
    if (request->takes_back) {
        request->rc = co_drain_refuse(request);
        co_request_answer(coordinator, request);
        return true;
    }
    if (!result->drained_last) return false;
    request->takes_back = true;
    leat_mem_free(request->bytes);
    request->bytes = NULL;
    co_queue_put(coordinator, request, true);
    return true;
}

static void request_applied(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                            const struct leat_machine_result *result)
{
    if (result->rc == LEAT_OK && drain_take_back(coordinator, request, result)) return;
    if (result->rc == LEAT_OK && !((request->kind == LEAT_COORDINATE_STREAM_CREATE ||
                                    request->kind == LEAT_COORDINATE_STREAM_CHANGE) &&
                                   !result->desc)) {
        request_succeed(coordinator, request, result);
        return;
    }
    if (request->kind == LEAT_COORDINATE_ADOPT) {
        co_decisions_drop(request);
        if (result->rc == LEAT_E_AGAIN && ++coordinator->adopt_tries < ADOPT_TRIES_MAX) {
            /* Decided on tables that have changed since: decide again. */
            coordinator->adopting = NULL;
            leat_mem_free(request->bytes);
            request->bytes = NULL;
            co_queue_put(coordinator, request, true);
            return;
        }
    }
    /* LEAT_OK without a stream: it was made, and deleted again before this node applied that. */
    request->rc = result->rc != LEAT_OK ? result->rc : LEAT_E_UNKNOWN_STREAM;
    request->error = result->error;
    if (request->error.code == LEAT_OK)
        (void)leat_error_set(&request->error, request->rc, "%s", leat_err_text(request->rc));
    request->epoch = result->epoch;
    co_request_answer(coordinator, request);
}

static struct leat_coordinate *request_find(struct leat_list *list, uint64_t sequence)
{
    LEAT_LIST_EACH(list, at)
    {
        struct leat_coordinate *request = LEAT_CONTAINER(at, struct leat_coordinate, link);
        if (request->bytes && request->sequence == sequence) return request;
    }
    return NULL;
}

void co_requests_applied(struct leat_coordinator *coordinator,
                         const struct leat_machine_result *result)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (result->session != coordinator->session) return;
    struct leat_coordinate *request = request_find(&coordinator->pending, result->sequence);
    if (request)
        leat_list_remove(&request->link);
    else if ((request = request_find(&coordinator->queue, result->sequence)))
        co_queue_remove(coordinator, request);
    if (request) request_applied(coordinator, request, result);
}

void co_requests_restored(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    co_requests_again(coordinator);
    LEAT_LIST_EACH(&coordinator->queue, link)
    {
        struct leat_coordinate *request = LEAT_CONTAINER(link, struct leat_coordinate, link);
        struct leat_machine_result result;
        if (!request->bytes || !leat_machine_outcome(&coordinator->machine, coordinator->session,
                                                     request->sequence, &result))
            continue;
        co_queue_remove(coordinator, request);
        request_applied(coordinator, request, &result);
    }
}

/* ---- sending ---- */

/* The next requests that may go together; they are taken off the queue. 0 bytes: none. */
static size_t batch_take(struct leat_coordinator *coordinator, struct leat_list *batch,
                         size_t bytes_max)
{
    size_t bytes = 0, count = 0;
    while (!leat_list_empty(&coordinator->queue)) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->queue.next, struct leat_coordinate, link);
        bool adopt = request->kind == LEAT_COORDINATE_ADOPT;
        /* ADOPT goes alone, and is decided when all earlier requests are applied. */
        if (adopt && (count > 0 || !leat_list_empty(&coordinator->pending))) break;
        if (count >= CO_SUBMIT_COMMANDS_MAX || bytes > bytes_max) break;
        leat_err rc = LEAT_OK;
        if (!request->bytes)
            rc = adopt ? co_adopt_encode(coordinator, request)
                       : co_request_encode(coordinator, request);
        co_queue_remove(coordinator, request);
        if (rc != LEAT_OK) {
            if (adopt) co_decisions_drop(request);
            if (request->epoch.v && !LEAT_BUG(REFUSED_EPOCH_ANSWERS)) request->epoch.v = 0;
            request->rc = rc;
            co_request_answer(coordinator, request);
            continue;
        }
        leat_list_push_back(batch, &request->link);
        bytes += request->byte_count;
        count++;
        if (!adopt) continue;
        coordinator->adopting = request;
        break;
    }
    return bytes;
}

static void batch_back(struct leat_coordinator *coordinator, struct leat_list *batch)
{
    while (!leat_list_empty(batch)) {
        struct leat_coordinate *request = LEAT_CONTAINER(batch->prev, struct leat_coordinate, link);
        leat_list_remove(&request->link);
        co_queue_put(coordinator, request, true);
    }
}

static void batch_sent(struct leat_coordinator *coordinator, struct leat_list *batch)
{
    struct leat_list *link;
    uint64_t now_us = co_now(coordinator);
    while ((link = leat_list_pop_front(batch))) {
        LEAT_CONTAINER(link, struct leat_coordinate, link)->sent_us = now_us;
        leat_list_push_back(&coordinator->pending, link);
    }
}

static uint8_t *batch_copy(const struct leat_list *batch, size_t bytes)
{
    uint8_t *copy = leat_mem_calloc(LEAT_MEM_COORDINATOR, bytes, 1), *at = copy;
    if (!copy) return NULL;
    LEAT_LIST_EACH(batch, link)
    {
        const struct leat_coordinate *request = LEAT_CONTAINER(link, struct leat_coordinate, link);
        memcpy(at, request->bytes, request->byte_count);
        at += request->byte_count;
    }
    LEAT_ASSERT(at == copy + bytes);
    return copy;
}

leat_err co_records_submit(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           const uint8_t *bytes, size_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    const uint8_t *at = bytes, *end = bytes + count;
    unsigned commands = 0;
    while (at < end) {
        if (end - at < CO_RECORD_HEADER_BYTES) return LEAT_E_INVALID;
        uint32_t length = leat_get_le32(at);
        at += CO_RECORD_HEADER_BYTES;
        if (length > (size_t)(end - at) || length > LEAT_RAFT_ENTRY_BYTES_MAX ||
            commands == CO_SUBMIT_COMMANDS_MAX || !leat_machine_command_known(at, length))
            return LEAT_E_INVALID;
        leat_err rc = peer ? co_peer_may_ask(coordinator, peer, at, length) : LEAT_OK;
        if (rc != LEAT_OK) return rc;
        coordinator->commands[commands++] =
            (struct raft_buffer){.base = (void *)(uintptr_t)at, .len = length};
        at += length;
    }
    if (commands == 0) return LEAT_E_INVALID;
    uint64_t first;
    return leat_raft_drive_submit(&coordinator->drive, coordinator->commands, commands, &first);
}

static void refuse_full(struct leat_coordinator *coordinator)
{
    LEAT_LIST_EACH(&coordinator->queue, link)
    {
        struct leat_coordinate *request = LEAT_CONTAINER(link, struct leat_coordinate, link);
        if (request->sent_us != 0) continue; /* its outcome is not known yet */
        co_queue_remove(coordinator, request);
        co_request_refuse(coordinator, request, LEAT_E_DISK_FULL,
                          "the disk has no room for the coordinator's log");
    }
}

static void advance_here(struct leat_coordinator *coordinator)
{
    if (coordinator->drive.log.full) refuse_full(coordinator);
    /* One round at a time: what comes meanwhile goes together into the next. */
    if (leat_raft_drive_busy(&coordinator->drive)) return;
    struct leat_list batch;
    leat_list_init(&batch);
    size_t bytes = batch_take(coordinator, &batch, CO_SUBMIT_BYTES_MAX);
    if (bytes == 0) return;
    uint8_t *copy = batch_copy(&batch, bytes);
    if (!copy) {
        batch_back(coordinator, &batch);
        return;
    }
    /* Counted as sent first: entries may be applied before co_records_submit() returns. */
    batch_sent(coordinator, &batch);
    leat_err rc = co_records_submit(coordinator, NULL, copy, bytes);
    leat_mem_free(copy);
    if (rc != LEAT_OK && coordinator->failed == LEAT_OK) co_requests_again(coordinator);
}

/* One batch under way to a leader elsewhere. */
struct submit {
    struct leat_link_call call;
    struct leat_coordinator *coordinator;
    struct leat_iov iov;
    uint8_t *bytes;
    uint64_t number;
};

static void pending_refuse(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&coordinator->pending)))
        co_request_refuse(coordinator, LEAT_CONTAINER(link, struct leat_coordinate, link), rc, why);
}

static void submit_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct submit *submit = call->owner;
    struct leat_coordinator *coordinator = submit->coordinator;
    uint64_t number = submit->number;
    (void)answer;
    leat_mem_free(submit->bytes);
    leat_mem_free(submit);
    if (rc == LEAT_E_CANCELLED) return; /* the coordinator closes */
    if (number != coordinator->submit_number) return;
    coordinator->submitting_to = NULL;
    if (leat_err_class(rc) == LEAT_CLASS_REJECT)
        pending_refuse(coordinator, rc, error->text); /* it would be refused each time */
    else if (rc != LEAT_OK && coordinator->failed == LEAT_OK)
        co_requests_again(coordinator);
}

static void advance_there(struct leat_coordinator *coordinator)
{
    struct co_peer *leader = coordinator->links ? co_peer_leader(coordinator) : NULL;
    if (!leader || coordinator->submitting_to == leader || leat_list_empty(&coordinator->queue))
        return;
    if (!coordinator->votes && !coordinator->current) return; /* nothing would be applied here */
    struct leat_list batch;
    leat_list_init(&batch);
    size_t bytes = batch_take(coordinator, &batch, CO_SUBMIT_BYTES_MAX);
    if (bytes == 0) return;
    static const uint8_t control[] = {0x90};
    struct submit *submit = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *submit);
    uint8_t *copy = batch_copy(&batch, bytes);
    leat_err rc = LEAT_E_NO_MEMORY;
    if (submit && copy) {
        submit->coordinator = coordinator;
        submit->bytes = copy;
        submit->number = coordinator->submit_number + 1;
        submit->iov = (struct leat_iov){copy, bytes};
        submit->call = (struct leat_link_call){.kind = CO_KIND_SUBMIT,
                                               .control = control,
                                               .control_bytes = sizeof control,
                                               .payload = &submit->iov,
                                               .payload_count = 1,
                                               .timeout_us = CO_CALL_US,
                                               .on_done = submit_done,
                                               .owner = submit};
        rc = leat_link_call(leader->link, &submit->call);
    }
    if (rc != LEAT_OK) {
        leat_mem_free(submit);
        leat_mem_free(copy);
        batch_back(coordinator, &batch);
        return;
    }
    coordinator->submitting_to = leader;
    coordinator->pending_term = leader->state.term;
    coordinator->submit_number++;
    batch_sent(coordinator, &batch);
}

/* SUBTLE: a request to a leader that stands still, or is cut off, gets no answer and no error. (1) Owners that lose a
 * replica on the leader's node ask for a new version, and hold their acks until the version is applied. (2) Some 10 ms
 * later another voter leads. (3) The new leader has the request only when the timer sends it again (CO_RESEND_US). So
 * all unanswered requests go to the leader of a later term as soon as this leader is known. */
static void pending_follow(struct leat_coordinator *coordinator)
{
    if (leat_list_empty(&coordinator->pending) || co_leads(coordinator) || !coordinator->links)
        return;
    const struct co_peer *leader = co_peer_leader(coordinator);
    if (leader && leader->state.term > coordinator->pending_term) co_requests_again(coordinator);
}

void co_requests_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (coordinator->failed == LEAT_OK) pending_follow(coordinator);
    if (coordinator->failed != LEAT_OK || leat_list_empty(&coordinator->queue)) return;
    if (coordinator->adopting && !leat_list_empty(&coordinator->pending)) return;
    if (co_leads(coordinator))
        advance_here(coordinator);
    else
        advance_there(coordinator);
}

/* ---- time ---- */

static bool request_waits_for_ever(const struct leat_coordinator *coordinator,
                                   const struct leat_coordinate *request)
{
    return request->kind == LEAT_COORDINATE_NODE_UP || request->kind == LEAT_COORDINATE_ADOPT ||
           request == &coordinator->ready_request;
}

/* A producer id whose answer was lost does no harm: its block was not given to another requester. */
static bool outcome_matters(const struct leat_coordinate *request)
{
    return request->sent_us != 0 && request->kind != LEAT_COORDINATE_PRODUCER_IDS;
}

static void request_expire(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    char words[LEAT_ERROR_TEXT_BYTES];
    co_leader_lacks_tell(coordinator,
                         outcome_matters(request) ? "whether it takes effect is unknown: " : "",
                         words, sizeof words);
    co_request_refuse(coordinator, request, LEAT_E_TIMEOUT, words);
}

static void list_expire(struct leat_coordinator *coordinator, struct leat_list *list, bool queue,
                        uint64_t now_us)
{
    LEAT_LIST_EACH(list, link)
    {
        struct leat_coordinate *request = LEAT_CONTAINER(link, struct leat_coordinate, link);
        uint64_t wait_us =
            request->wait_us_max ? request->wait_us_max : LEAT_COORDINATE_WAIT_US_MAX;
        if (now_us < request->since_us + wait_us || request_waits_for_ever(coordinator, request))
            continue;
        if (queue)
            co_queue_remove(coordinator, request);
        else
            leat_list_remove(&request->link);
        request_expire(coordinator, request);
    }
}

void co_requests_tick(struct leat_coordinator *coordinator, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(coordinator);
    list_expire(coordinator, &coordinator->queue, true, now_us);
    list_expire(coordinator, &coordinator->pending, false, now_us);
    if (leat_list_empty(&coordinator->pending)) return;
    const struct leat_coordinate *oldest =
        LEAT_CONTAINER(coordinator->pending.next, struct leat_coordinate, link);
    /* A leader need not send again: its proposals are in its log. */
    if (!co_leads(coordinator) && now_us > oldest->sent_us + CO_RESEND_US)
        co_requests_again(coordinator);
}

/* ---- in ---- */

/* Requests of clients take at most half of the queue: the node's own requests have the rest. */
static bool queue_has_room(struct leat_coordinator *coordinator,
                           const struct leat_coordinate *request)
{
    if (coordinator->queue_count >= LEAT_COORDINATE_QUEUE_MAX) return false;
    return request->asker == 0 || leat_shares_has(&coordinator->shares, request->asker);
}

static void request_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_coordinator *coordinator = actor;
    struct leat_coordinate *request = LEAT_CONTAINER(mail, struct leat_coordinate, mail);
    const char *offence = co_request_offence(request);
    request->bytes = NULL;
    if (coordinator->failed != LEAT_OK)
        co_request_refuse(coordinator, request, coordinator->failed, coordinator->failed_why);
    else if (offence)
        co_request_refuse(coordinator, request, LEAT_E_INVALID, offence);
    else if (!queue_has_room(coordinator, request))
        co_request_refuse(
            coordinator, request, LEAT_E_AGAIN,
            "too many requests wait for the coordinator, or too many of this address");
    else if (request->kind == LEAT_COORDINATE_TAILS) {
        request->rc = co_tails_answer(coordinator, request);
        co_request_answer(coordinator, request);
    } else if (request->kind == LEAT_COORDINATE_ADD_VOTER ||
               request->kind == LEAT_COORDINATE_NODE_REPLACE)
        co_change_begin(coordinator, request->kind == LEAT_COORDINATE_NODE_REPLACE, request->target,
                        request, NULL);
    else {
        if (request->kind == LEAT_COORDINATE_ADOPT) coordinator->adopt_tries = 0;
        co_request_queue(coordinator, request);
    }
}

void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    request->from = post->self;
    request->rc = LEAT_OK;
    request->mail.deliver = request_deliver;
    post->send(post->ctx, LEAT_ACTOR_COORDINATOR, &request->mail);
}
