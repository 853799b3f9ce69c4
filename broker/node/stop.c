/* SPDX-License-Identifier: Apache-2.0 */
/* A node stops: first its cores, in order, and each core its logs; then the store flushes. */
#include "broker/node/stop.h"
#include "base/assert.h"
#include "base/bug.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/serve.h"
#include "broker/net/core.h"

static void stop_deliver_core(void *actor, struct leat_mail *mail);
static void stop_deliver_flush(void *actor, struct leat_mail *mail);
static void stop_deliver_ending(void *actor, struct leat_mail *mail);

static void stop_deliver_end(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, stop_mail);
    (void)actor;
    if (node->rc != LEAT_OK)
        leat_node_log_error("the last flush failed: %s", leat_err_text(node->rc));
    node->options.on_stopped(node->options.owner, node->rc);
}

/* SUBTLE: a log that has stopped still gives memory back. (1) All logs have stopped, and the store flushes
 * what there is. (2) Memory is short meanwhile, so it wants a segment evicted, and the log asks for that.
 * (3) The flush ends, the node with it, and the log is destroyed with its question still under way. */
void leat_core_ending(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    for (uint32_t i = 0; core->data->partitions != NULL && i <= core->data->partition_mask; i++)
        for (struct leat_partition *partition = core->data->partitions[i]; partition != NULL;
             partition = partition->hash_next)
            if (partition->log != NULL && !leat_log_rest(partition->log))
                return; /* the answer makes another turn */
    core->ending = false;
    leat_core_mail_next(core, &core->node->stop_mail, stop_deliver_ending, 0, stop_deliver_end);
}

static void stop_deliver_ending(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->ending = true; /* goes on at this turn's end */
}

static void stop_on_flushed(void *arg, leat_err rc)
{
    struct leat_node *node = arg;
    const struct leat_post *post = node->options.store_env->post;
    node->rc = rc;
    node->stop_mail.deliver = stop_deliver_ending;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &node->stop_mail);
}

static void stop_deliver_flush(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, stop_mail);
    (void)actor;
    leat_store_flush_all(node->store, stop_on_flushed, node);
}

static void logs_stopped(struct leat_core *core)
{
    LEAT_ASSERT(core->stopping && !core->stopped);
    core->stopped = true;
    leat_timer_stop(&core->timers, &core->tick);
    leat_peer_close_all(core);
    /* Cores stop one after the other; core 0, which accepts connections, first. */
    leat_core_mail_next(core, &core->node->stop_mail, stop_deliver_core, LEAT_ACTOR_STORE,
                        stop_deliver_flush);
}

static void stop_deliver_core(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->stopping = true;
    core->data->on_logs_stopped = logs_stopped;
    leat_fetch_stop(core);
    /* One more than the number of logs: no log may end the count while the count is still being made. */
    core->data->logs_to_stop = 1;
    for (uint32_t i = 0; i <= core->data->partition_mask; i++) {
        for (struct leat_partition *partition = core->data->partitions[i], *next; partition != NULL;
             partition = next) {
            next = partition->hash_next;
            bool moved = partition->state == LEAT_PARTITION_DRAINED && partition->give_up == NULL;
            if (moved && !LEAT_BUG(STOP_AWAITS_MOVED)) continue;
            core->data->logs_to_stop++;
            if (leat_partition_goes(partition))
                continue; /* being deleted or made anew: that tells when done */
            leat_core_log_stop(core, partition);
        }
    }
    leat_core_log_stopped(core);
}

void leat_node_stop(struct leat_node *node)
{
    struct leat_core *core = &node->cores[0];
    if (node->life == LEAT_LIFE_STOPS || node->life == LEAT_LIFE_GIVES_UP) return;
    bool up = node->life == LEAT_LIFE_UP;
    leat_node_enter(node, up ? LEAT_LIFE_STOPS : LEAT_LIFE_GIVES_UP);
    if (up) {
        leat_core_mail(core, 0, &node->stop_mail, stop_deliver_core);
        return;
    }
    /* Not up: no log was made, nothing is to be hibernated. */
    for (uint32_t i = 0; i < node->options.cores; i++)
        node->cores[i].stopped = true;
    leat_core_mail(core, LEAT_ACTOR_STORE, &node->stop_mail, stop_deliver_flush);
}

bool leat_node_pool_is_spent(const struct leat_node *node)
{
    if (node->life != LEAT_LIFE_STOPS || node->rc != LEAT_OK) return false;
    if (!leat_store_is_on_disk(node->store) && !LEAT_BUG(WOKEN_IS_SPENT)) return false;
    return atomic_load_explicit(&node->complaint_count, memory_order_relaxed) == 0;
}
