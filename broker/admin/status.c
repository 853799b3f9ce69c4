/* SPDX-License-Identifier: Apache-2.0 */
/* Producer ids, ping, and the state of the whole server. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/report.h"
#include "broker/data/replicate.h"
#include "broker/net/call.h"

/* ---- PRODUCER_ID [id or -1, epoch or -1] ---- */

enum { PRODUCER_IDS_US_MAX = 2 * 1000 * 1000 };

/* SUBTLE: a client that knows a producer's id can fence this producer by the next epoch. So a client must not be able
 * to guess an id from another id: the upper 31 bits are random. The lower 32 bits are from the number that the
 * coordinator gives out once, so no id comes twice before 2^32 ids were given out, and then by chance only. */
static int64_t producer_id_make(struct leat_core *core, int64_t number)
{
    const struct leat_random *random = core->env->random;
    uint32_t chance;
    random->secret(random->ctx, &chance, sizeof chance);
    return (int64_t)((uint64_t)(chance & INT32_MAX) << 32 | (uint32_t)number);
}

static void producer_serve(struct leat_core *core)
{
    struct leat_list *link;
    while (core->admin->producer_left > 0 &&
           (link = leat_list_pop_front(&core->admin->producer_waits)) != NULL) {
        struct leat_producer_wait *wait = LEAT_CONTAINER(link, struct leat_producer_wait, link);
        core->admin->producer_left--;
        wait->rc = LEAT_OK;
        wait->id = producer_id_make(core, core->admin->producer_next++);
        wait->on_done(wait);
    }
}

static void producer_ask(struct leat_core *core);

static void producer_on_block(struct leat_coordinate *request)
{
    struct leat_core *core = request->owner;
    core->admin->producer_asked = false;
    if (request->rc != LEAT_OK) {
        struct leat_list *link;
        while ((link = leat_list_pop_front(&core->admin->producer_waits)) != NULL) {
            struct leat_producer_wait *wait = LEAT_CONTAINER(link, struct leat_producer_wait, link);
            wait->rc = request->rc;
            wait->error = request->error;
            wait->on_done(wait);
        }
        return;
    }
    core->admin->producer_next = request->first_id;
    core->admin->producer_left = request->id_count;
    producer_serve(core);
    if (!leat_list_empty(&core->admin->producer_waits)) producer_ask(core);
}

static void producer_ask(struct leat_core *core)
{
    if (core->admin->producer_asked) return;
    core->admin->producer_asked = true;
    struct leat_coordinate *request = &core->admin->producer_request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_PRODUCER_IDS;
    /* Shorter than a producer's patience, so that the producer hears the reason and asks again. */
    request->wait_us_max = PRODUCER_IDS_US_MAX;
    request->on_done = producer_on_block;
    request->owner = core;
    leat_coordinate(core->env->post, request);
}

void leat_producer_id(struct leat_core *core, struct leat_producer_wait *wait)
{
    LEAT_ASSERT_OWNER(core);
    leat_list_push_back(&core->admin->producer_waits, &wait->link);
    producer_serve(core);
    if (!leat_list_empty(&core->admin->producer_waits)) producer_ask(core);
}

struct producer_call {
    struct leat_call call;
    struct leat_producer_wait wait;
};

static void producer_answer(struct leat_call *call, int64_t id, int64_t epoch)
{
    struct leat_msg_writer writer;
    leat_call_writer(call->core, &writer);
    leat_msg_producer_id_write(&writer, &(struct leat_msg_producer_id){id, epoch});
    leat_call_answer(call, &writer);
}

static void producer_on_id(struct leat_producer_wait *wait)
{
    struct producer_call *producer = wait->owner;
    if (wait->rc != LEAT_OK)
        leat_call_refuse(&producer->call, wait->rc, wait->error.text);
    else
        producer_answer(&producer->call, wait->id, 0);
}

void leat_call_producer_id(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct producer_call *producer = leat_call_create(peer, frame, sizeof *producer);
    if (producer == NULL) return;
    struct leat_msg_producer_id ask;
    if (leat_msg_producer_ask_decode(frame->control, frame->control_bytes, &ask) != LEAT_OK ||
        ask.epoch > INT16_MAX) {
        leat_call_refuse(&producer->call, LEAT_E_INVALID,
                         "a producer id is asked for as [id or -1, epoch or -1]");
        return;
    }
    /* Without a registry: producer state is per log, and there the higher epoch wins. A client that asks again,
     * because the first answer was lost, gets the same epoch on any node; an id that was never given out is not
     * refused. The last epoch of an id is not followed by its first: such a producer gets a new id. */
    if (ask.id >= 0 && ask.epoch >= 0 && ask.epoch < INT16_MAX) {
        producer_answer(&producer->call, ask.id, ask.epoch + 1);
        return;
    }
    producer->wait.on_done = producer_on_id;
    producer->wait.owner = producer;
    leat_producer_id(peer->core, &producer->wait);
}

void leat_producer_ids_fini(struct leat_core *core)
{
    if (core->admin->producer_waits.next == NULL) return; /* never initialised */
    while (!leat_list_empty(&core->admin->producer_waits))
        (void)leat_list_pop_front(&core->admin->producer_waits);
}

/* ---- PING [] ---- */

void leat_call_ping(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_call *call = leat_call_create(peer, frame, sizeof *call);
    if (call == NULL) return;
    const struct leat_clock *clock = peer->core->env->clock;
    struct leat_msg_writer writer;
    leat_call_writer(call->core, &writer);
    leat_msg_pong_write(&writer, &(struct leat_msg_pong){clock->wall_ms(clock->ctx)});
    leat_call_answer(call, &writer);
}

/* ---- STATUS [] ---- */

struct status_call {
    struct leat_call call;
    uint64_t disk_free, store_cpu_ns;
    struct leat_msg_accounts accounts;
};

static void status_answer(struct status_call *status)
{
    const struct leat_core *core = status->call.core;
    const struct leat_node *node = core->node;
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    struct leat_msg_status out = {
        .version = {node->version, (uint32_t)strlen(node->version)},
        .uptime_ms = (leat_core_now(core) - node->started_us) / 1000,
        .cpu_us = node->options.cpu_us != NULL ? node->options.cpu_us(node->options.cpu_ctx) : 0,
        .memory_budget = node->options.memory_bytes,
        .memory_used = node->options.memory_bytes - node->pool_bytes + usage.memory_used +
                       leat_node_heap_over(node),
        .disk_free = status->disk_free,
        .cores = node->options.cores,
        .accounts = status->accounts,
    };
    /* The store's thread writes, flushes, and zeroes segments that come back. */
    out.accounts.cpu_zeroing_ns = usage.cpu_zeroing_ns;
    out.accounts.own_buffer_bytes = usage.memory_used;
    out.accounts.copy_buffer_bytes = usage.arenas_used;
    out.accounts.pool_in_file = node->options.pool_in_file;
    if (status->store_cpu_ns > usage.cpu_zeroing_ns)
        out.accounts.cpu_flush_ns = status->store_cpu_ns - usage.cpu_zeroing_ns;
    for (uint32_t i = 0; i < node->options.cores; i++) {
        const struct leat_counters *own = &node->cores[i].counters;
        out.appended_records += atomic_load_explicit(&own->appended_records, memory_order_relaxed);
        out.appended_bytes += atomic_load_explicit(&own->appended_bytes, memory_order_relaxed);
        out.fetched_records += atomic_load_explicit(&own->fetched_records, memory_order_relaxed);
        out.fetched_bytes += atomic_load_explicit(&own->fetched_bytes, memory_order_relaxed);
        out.connections += atomic_load_explicit(&own->connections, memory_order_relaxed);
    }
    struct leat_msg_writer writer;
    leat_call_writer(status->call.core, &writer);
    leat_msg_status_write(&writer, &out);
    leat_call_answer(&status->call, &writer);
}

static void status_deliver_back(void *actor, struct leat_mail *mail)
{
    (void)actor;
    status_answer(LEAT_CONTAINER(mail, struct status_call, call.mail));
}

/* On each core in turn: what only its own thread may look at. */
static void status_deliver_core(void *actor, struct leat_mail *mail)
{
    struct status_call *status = LEAT_CONTAINER(mail, struct status_call, call.mail);
    struct leat_core *core = actor;
    leat_replicate_accounts(core, &status->accounts);
    status->accounts.logs_troubled += leat_report_logs_troubled(core);
    leat_core_mail_next(core, mail, status_deliver_core, status->call.core->index,
                        status_deliver_back);
}

/* On the store's thread: asking a file system for its space may block. */
static void status_deliver_store(void *actor, struct leat_mail *mail)
{
    struct status_call *status = LEAT_CONTAINER(mail, struct status_call, call.mail);
    (void)actor;
    const struct leat_node *node = status->call.core->node;
    const struct leat_env *env = node->options.store_env;
    if (node->options.cluster.thread_cpu_ns != NULL)
        status->store_cpu_ns = node->options.cluster.thread_cpu_ns(NULL);
    if (env->disk->space(env->disk->ctx, &status->disk_free) != LEAT_OK) status->disk_free = 0;
    mail->deliver = status_deliver_core;
    env->post->send(env->post->ctx, LEAT_ACTOR_CORE_0, mail);
}

void leat_call_status(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct status_call *status = leat_call_create(peer, frame, sizeof *status);
    if (status == NULL) return;
    leat_core_mail(peer->core, LEAT_ACTOR_STORE, &status->call.mail, status_deliver_store);
}
