/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait, here or at the leader: the lists, and how each is answered. */
#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "coordinator/membership/requests.h"

void co_requests_init(struct leat_coordinator *coordinator)
{
    leat_list_init(&coordinator->queue);
    leat_shares_init(&coordinator->shares, coordinator->env->random, LEAT_COORDINATE_CLIENTS_MAX);
    leat_list_init(&coordinator->pending);
    coordinator->session =
        coordinator->env->random->next(coordinator->env->random->ctx) | 1; /* 0 means none */
}

static void answer_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_coordinate *request = LEAT_CONTAINER(mail, struct leat_coordinate, mail);
    request->on_done(request);
}

void co_request_answer(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (request->rc == LEAT_OK) request->error.code = LEAT_OK;
    if (request == coordinator->adopting) coordinator->adopting = NULL;
    leat_mem_free(request->bytes);
    request->bytes = NULL;
    if (request->from == LEAT_ACTOR_COORDINATOR) { /* its own */
        request->on_done(request);
        return;
    }
    request->mail.deliver = answer_deliver;
    const struct leat_post *post = coordinator->env->post;
    post->send(post->ctx, request->from, &request->mail);
}

void co_decisions_drop(struct leat_coordinate *request)
{
    leat_mem_free(request->decisions);
    request->decisions = NULL;
    request->decision_count = 0;
}

void co_request_refuse(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                       leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (request->kind == LEAT_COORDINATE_ADOPT) co_decisions_drop(request);
    /* The request's epoch must not look like an answer: the requester of a move would take it for the result. */
    if (request->epoch.v && !LEAT_BUG(REFUSED_EPOCH_ANSWERS)) request->epoch.v = 0;
    request->rc = leat_error_set(&request->error, rc, "%s", why);
    co_request_answer(coordinator, request);
}

void co_queue_put(struct leat_coordinator *coordinator, struct leat_coordinate *request, bool front)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (front)
        leat_list_push_front(&coordinator->queue, &request->link);
    else
        leat_list_push_back(&coordinator->queue, &request->link);
    coordinator->queue_count++;
    if (request->asker != 0) leat_shares_add(&coordinator->shares, request->asker);
}

void co_queue_remove(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    leat_list_remove(&request->link);
    coordinator->queue_count--;
    if (request->asker != 0) leat_shares_remove(&coordinator->shares, request->asker);
}

void co_requests_fail(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&coordinator->pending)))
        co_request_refuse(coordinator, LEAT_CONTAINER(link, struct leat_coordinate, link), rc, why);
    while (!leat_list_empty(&coordinator->queue)) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->queue.next, struct leat_coordinate, link);
        co_queue_remove(coordinator, request);
        co_request_refuse(coordinator, request, rc, why);
    }
}

void co_requests_again(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    while (!leat_list_empty(&coordinator->pending)) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->pending.prev, struct leat_coordinate, link);
        leat_list_remove(&request->link);
        co_queue_put(coordinator, request, true);
    }
}

void co_request_queue(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    leat_list_init(&request->link);
    request->since_us = co_now(coordinator);
    request->sent_us = 0;
    request->bytes = NULL;
    request->sequence = 0;
    request->takes_back = false;
    co_queue_put(coordinator, request, false);
}
