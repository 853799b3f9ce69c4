/* SPDX-License-Identifier: Apache-2.0 */
/* How a node comes up, step by step: found segments -> the coordinator decides where every log ends -> cut -> logs
 * are made -> listen. Runs on core 0, with visits to the store's thread and to each core.
 *
 * No found segment is cut or dropped before the coordinator has committed its decision. Until the commit, a start
 * after a crash may lead to another decision; after the commit it can't. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/replicate.h"
#include "broker/node/bringup.h"
#include "broker/node/native.h"
#include "broker/node/walk.h"

static void up_deliver_join(void *actor, struct leat_mail *mail);
static void up_deliver_joined(void *actor, struct leat_mail *mail);
static void up_on_node_up(struct leat_coordinate *request);
/* On a server alone. In a cluster a node may have taken over more than its share, and has to come back with that. */
static leat_err has_room(const struct leat_node *node, struct leat_error *error)
{
    enum { MIB = 1024 * 1024 };
    const struct leat_node_options *options = &node->options;
    if (options->cluster.node_address != NULL) return LEAT_OK;
    if (leat_heap_holds(options->memory_bytes, options->cores, node->decision_count,
                        node->found_count))
        return LEAT_OK;
    uint64_t least = leat_heap_least_memory(options->memory_bytes, options->cores,
                                            node->decision_count, node->found_count);
    return leat_error_set(error, LEAT_E_CONFIG,
                          "a memory budget of %llu MiB is too small for what is here: %zu logs and "
                          "%zu stored segments need at least %llu MiB (--memory)",
                          (unsigned long long)(options->memory_bytes / MIB), node->decision_count,
                          node->found_count, (unsigned long long)(least / MIB));
}

static void up_on_adopted(struct leat_coordinate *request);
static void up_deliver_cut(void *actor, struct leat_mail *mail);
static void up_deliver_core(void *actor, struct leat_mail *mail);
static void up_deliver_logs_made(void *actor, struct leat_mail *mail);
static void up_deliver_found_done(void *actor, struct leat_mail *mail);
static void up_fail(struct leat_node *node, leat_err rc, const struct leat_error *error);

/* The node listens before it announces its address, so the announced address is real. No client is let in until the
 * node is up. */
static leat_err up_open_door(struct leat_core *core, struct leat_error *error)
{
    struct leat_door *door = core->node->options.door;
    if (door == NULL || door->bound_address[0] != '\0') return LEAT_OK;
    leat_err rc = core->net->listen(core->net->ctx, door->address, door->on_accept, core,
                                    door->bound_address, error);
    if (rc == LEAT_OK) return LEAT_OK;
    door->bound_address[0] = '\0';
    door->not_bound = *error;
    return door->optional ? LEAT_OK : rc;
}

void leat_node_bring_up(struct leat_node *node)
{
    struct leat_core *core = &node->cores[0];
    uint8_t cluster_id[16];
    leat_coordinator_cluster_id(node->coordinator, cluster_id);
    if (node->joining) {
        leat_core_mail(core, LEAT_ACTOR_STORE, &node->mail, up_deliver_join);
        return;
    }
    if (memcmp(cluster_id, node->cluster_id, sizeof cluster_id) != 0) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_WRONG_CLUSTER,
                       "the coordinator's files in this data directory are another cluster's");
        up_fail(node, LEAT_E_WRONG_CLUSTER, &error);
        return;
    }
    struct leat_error error;
    leat_err rc = up_open_door(core, &error);
    if (rc != LEAT_OK) {
        up_fail(node, rc, &error);
        return;
    }
    struct leat_coordinate *request = &node->request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_NODE_UP;
    request->node_name = node->name;
    request->address = node->listen_address;
    request->cores = node->options.cores;
    request->node_address = node->options.cluster.node_address;
    request->rack = node->options.cluster.rack;
    request->host = node->options.cluster.host;
    request->memory_bytes = node->pool_bytes;
    request->logs_most = leat_node_logs_most(node);
    const struct leat_door *door = node->options.door;
    if (door != NULL && door->bound_address[0] != '\0')
        request->kafka_address = door->advertise != NULL ? door->advertise : door->bound_address;
    if (node->options.cluster.node_address != NULL) leat_store_id(node->store, request->node_id);
    request->boot = node->boot;
    request->boot_before = node->boot_before;
    if (node->options.cluster.advertise != NULL) request->address = node->options.cluster.advertise;
    request->on_done = up_on_node_up;
    request->owner = node;
    leat_coordinate(core->env->post, request);
}

/* On the store's thread. */
static void up_deliver_join(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    uint8_t cluster_id[16];
    (void)actor;
    leat_coordinator_cluster_id(node->coordinator, cluster_id);
    node->rc = leat_node_identity_set(node, cluster_id, &node->error);
    mail->deliver = up_deliver_joined;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

static void up_deliver_joined(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    node->joining = false;
    if (node->rc != LEAT_OK)
        up_fail(node, node->rc, &node->error);
    else
        leat_node_bring_up(node);
}

static void up_on_name_timer(struct leat_timer *timer)
{
    leat_node_bring_up(timer->owner);
}

/* SUBTLE: a node that was killed, lost its disk and starts anew is a new node, under a name whose last node does not
 * count as crashed yet. The death of the last node shows within seconds; a last node that lives keeps the name. A
 * node that was given another name has the same problem with the last node of its directory. */
static bool up_wait_for_name(struct leat_node *node, leat_err rc)
{
    struct leat_core *core = &node->cores[0];
    if (rc != LEAT_E_EXISTS || node->name_tries == LEAT_NAME_TRIES_MAX ||
        node->life == LEAT_LIFE_GIVES_UP)
        return false;
    if (node->name_tries++ == 0)
        leat_node_log_warn("%s. This node waits in case the other node has just died",
                           node->request.error.text);
    node->name_timer.on_expired = up_on_name_timer;
    node->name_timer.owner = node;
    leat_timer_start(&core->timers, &node->name_timer, LEAT_NAME_RETRY_US);
    return true;
}

static void up_adopt(struct leat_node *node)
{
    struct leat_coordinate *request = &node->request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_ADOPT;
    request->incarnation = node->incarnation;
    request->marks = node->marks;
    request->mark_count = node->mark_count;
    request->on_done = up_on_adopted;
    request->owner = node;
    leat_coordinate(node->cores[0].env->post, request);
}

static void up_deliver_booted(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    if (node->rc != LEAT_OK)
        up_fail(node, node->rc, &node->error);
    else
        up_adopt(node);
}

/* On the store's thread. Before any segment is adopted: from then on other nodes may ask for segments of the
 * directory. */
static void up_deliver_boot(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    (void)actor;
    node->rc = leat_node_boot_taken(node, &node->error);
    mail->deliver = up_deliver_booted;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

static void up_on_node_up(struct leat_coordinate *request)
{
    struct leat_node *node = request->owner;
    if (up_wait_for_name(node, request->rc)) return;
    if (request->rc != LEAT_OK) {
        up_fail(node, request->rc, &request->error);
        return;
    }
    node->incarnation = request->incarnation;
    atomic_store_explicit(&node->incarnation_told, node->incarnation, memory_order_relaxed);
    leat_core_mail(&node->cores[0], LEAT_ACTOR_STORE, &node->mail, up_deliver_boot);
}

static void up_on_adopted(struct leat_coordinate *request)
{
    struct leat_node *node = request->owner;
    if (request->rc != LEAT_OK) {
        up_fail(node, request->rc, &request->error);
        return;
    }
    node->decisions = request->decisions;
    node->decision_count = request->decision_count;
    struct leat_error error;
    leat_err rc = has_room(node, &error);
    if (rc != LEAT_OK) {
        up_fail(node, rc, &error);
        return;
    }
    leat_found_dispositions(node);
    leat_core_mail(&node->cores[0], LEAT_ACTOR_STORE, &node->mail, up_deliver_cut);
}

/* On the store's thread: blocks, nothing is served yet. */
static void up_deliver_cut(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    (void)actor;
    node->rc = leat_found_cut(node);
    mail->deliver = up_deliver_core;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

/* On each core in turn, in the order in which streams come: all that are known are there. */
static void up_deliver_core(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    if (node->rc == LEAT_OK) node->rc = leat_members_open(core, &node->error);
    if (node->rc == LEAT_OK && core->index == 0) node->rc = leat_replicate_take_found(core);
    if (node->rc == LEAT_OK) node->rc = leat_adopt_on_core(node, core, &node->error);
    if (node->rc == LEAT_OK) leat_walk_on_adopted(core);
    leat_core_mail_next(core, mail, up_deliver_core, 0, up_deliver_logs_made);
}

static void up_deliver_found_done(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    leat_store_found_done(node->store);
    node->found = NULL;
    node->found_count = 0;
}

static void up_deliver_logs_made(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    if (node->rc != LEAT_OK) {
        up_fail(node, node->rc, &node->error);
        return;
    }
    leat_core_mail(core, LEAT_ACTOR_STORE, &node->mail, up_deliver_found_done);
    leat_mem_free(node->decisions);
    leat_mem_free(node->marks);
    leat_mem_free(node->dispositions);
    node->decisions = NULL;
    node->marks = NULL;
    node->dispositions = NULL;
    if (node->life == LEAT_LIFE_COMES_UP) leat_node_enter(node, LEAT_LIFE_UP); /* not stopped yet */
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = core->net->listen(core->net->ctx, node->listen_address, leat_peer_accept, core,
                                    node->bound_address, &error);
    if (rc != LEAT_OK) {
        up_fail(node, rc, &error);
        return;
    }
    leat_administer_open(core);
    leat_timer_start(&core->timers, &core->tick, LEAT_TICK_US);
    node->options.on_ready(node->options.owner, LEAT_OK, NULL, node->bound_address);
}

static void up_fail(struct leat_node *node, leat_err rc, const struct leat_error *error)
{
    node->options.on_ready(node->options.owner, rc, error, NULL);
}
