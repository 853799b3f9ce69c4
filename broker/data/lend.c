/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for bytes that have left memory, and rests of answers: see lend.h. */
#include "broker/data/lend.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"

/* The bytes of one run of batches that a connection has not taken. */
struct rest {
    struct leat_send send;
    struct leat_iov iov;
    struct leat_peer *peer;
    uint8_t bytes[];
};

static void lend_on_timer(struct leat_timer *timer);

/* ---- life ---- */

leat_err leat_lender_init(struct leat_core *core, uint32_t buffer_count)
{
    struct leat_lender *lender = core->data->lender;
    const struct leat_node_options *options = &core->node->options;
    struct leat_list *lists[] = {&lender->buffers, &lender->segments, &lender->line,
                                 &lender->rests};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    lender->timer = (struct leat_timer){.on_expired = lend_on_timer, .owner = core};
    lender->rest_bytes_max = leat_node_rest_bytes(options->memory_bytes, options->cores);
    /* One alignment step more than needed: calloc promises 16 bytes, direct reads want 4 KiB. */
    lender->block =
        leat_mem_calloc(LEAT_MEM_BROKER, (size_t)buffer_count * LEAT_DISK_BUFFER_BYTES + 4096, 1);
    lender->free = leat_mem_calloc(LEAT_MEM_BROKER, buffer_count, sizeof *lender->free);
    if (lender->block == NULL || lender->free == NULL) return LEAT_E_NO_MEMORY;
    uint8_t *first = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)lender->block, (uintptr_t)4096);
    for (uint32_t i = 0; i < buffer_count; i++)
        lender->free[i] = first + (size_t)i * LEAT_DISK_BUFFER_BYTES;
    lender->count = lender->free_count = buffer_count;
    return LEAT_OK;
}

void leat_lender_fini(struct leat_core *core)
{
    leat_mem_free(core->data->lender->block);
    leat_mem_free(core->data->lender->free);
}

/* ---- buffers ---- */

void *leat_buffer_try(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_lender *lender = core->data->lender;
    if (lender->free_count == 0 || !leat_list_empty(&lender->line)) return NULL;
    return lender->free[--lender->free_count];
}

void leat_buffer_wait(struct leat_core *core, struct leat_peer *peer, struct leat_buffer_wait *wait)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_borrower *borrower = &peer->borrowed;
    leat_list_push_back(&borrower->waits, &wait->link);
    if (leat_list_empty(&borrower->line))
        leat_list_push_back(&core->data->lender->line, &borrower->line);
}

void leat_buffer_wait_end(struct leat_peer *peer, struct leat_buffer_wait *wait)
{
    LEAT_ASSERT_OWNER(peer->core);
    leat_list_remove(&wait->link);
    if (leat_list_empty(&peer->borrowed.waits)) leat_list_remove(&peer->borrowed.line);
}

void leat_buffer_give(struct leat_core *core, void *buffer)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_lender *lender = core->data->lender;
    LEAT_ASSERT(buffer != NULL);
    struct leat_list *link = leat_list_pop_front(&lender->line);
    if (link == NULL) {
        LEAT_ASSERT_CMP(lender->free_count, <, lender->count);
        lender->free[lender->free_count++] = buffer;
        return;
    }
    struct leat_borrower *borrower = LEAT_CONTAINER(link, struct leat_borrower, line);
    struct leat_buffer_wait *wait =
        LEAT_CONTAINER(leat_list_pop_front(&borrower->waits), struct leat_buffer_wait, link);
    if (!leat_list_empty(&borrower->waits)) leat_list_push_back(&lender->line, &borrower->line);
    wait->on_buffer(wait, buffer);
}

/* ---- rests ---- */

static void rests_less(struct leat_peer *peer, uint64_t bytes)
{
    peer->borrowed.rest_bytes -= bytes;
    peer->sharer->rest_bytes -= bytes;
    peer->core->data->lender->rest_bytes -= bytes;
    if (peer->borrowed.rest_bytes == 0) leat_list_remove(&peer->borrowed.rests);
}

/* The connection with the oldest rest, of the address whose rests are largest together. Age decides and not size: a
 * connection that takes its answers has a rest for a moment only, however large the answer was. NULL: the connection
 * itself. */
static struct leat_peer *rests_victim(const struct leat_peer *peer, size_t bytes)
{
    const struct leat_list *rests = &peer->core->data->lender->rests;
    const struct leat_sharer *most = peer->sharer;
    uint64_t most_bytes = most->rest_bytes + bytes;
    LEAT_LIST_EACH(rests, link)
    {
        const struct leat_sharer *other =
            LEAT_CONTAINER(link, struct leat_peer, borrowed.rests)->sharer;
        if (other->rest_bytes <= most_bytes) continue;
        most = other;
        most_bytes = other->rest_bytes;
    }
    LEAT_LIST_EACH(rests, link)
    {
        struct leat_peer *oldest = LEAT_CONTAINER(link, struct leat_peer, borrowed.rests);
        if (oldest->sharer == most) return oldest;
    }
    return NULL;
}

/* false: the connection itself is closed. The rests of closed connections are freed in this turn or the next, and
 * count no more. A connection that alone has rests keeps them, and gets more: answers that are not taken have a limit
 * of their own (LEAT_PEER_QUEUED_BYTES_MAX), which in a small server is more than all rests may take. */
static bool rest_admit(struct leat_peer *peer, size_t bytes)
{
    struct leat_lender *lender = peer->core->data->lender;
    while (lender->rest_bytes + bytes > lender->rest_bytes_max &&
           lender->rest_bytes > peer->borrowed.rest_bytes) {
        struct leat_peer *victim = rests_victim(peer, bytes);
        if (victim == NULL) victim = peer;
        if (victim->borrowed.rest_bytes > 0) rests_less(victim, victim->borrowed.rest_bytes);
        leat_peer_close(victim, "it takes its answers too slowly, and others need the memory");
        if (victim == peer) return false;
    }
    return true;
}

static void rest_on_sent(struct leat_send *send, leat_err rc)
{
    struct rest *rest = send->owner;
    struct leat_peer *peer = rest->peer;
    (void)rc; /* the peer learns of its end by on_closed */
    /* Otherwise the connection is closed */
    if (peer->borrowed.rest_bytes > 0) rests_less(peer, rest->iov.bytes);
    leat_mem_free(rest);
    leat_fetch_call_limited(peer);
    leat_peer_drained(peer);
    leat_peer_end(peer);
}

/* Have back what was lent with this read. What has left it already comes back by itself. */
static void lend_recall(struct leat_fetch_read *read)
{
    struct leat_peer *peer = read->fetch->peer;
    struct leat_core *core = read->fetch->core;
    leat_list_remove(&read->lent);
    if (peer == NULL || peer->conn == NULL || peer->closing) return;
    size_t bytes = core->net->unsent_bytes(peer->conn, &read->send);
    if (bytes == 0 || !rest_admit(peer, bytes)) return;
    struct rest *rest = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *rest + bytes);
    if (rest == NULL) {
        leat_peer_close(peer, "it takes its answers too slowly, and there is no memory for them");
        return;
    }
    rest->peer = peer;
    rest->iov = (struct leat_iov){rest->bytes, bytes};
    rest->send = (struct leat_send){
        .iovs = &rest->iov, .iov_count = 1, .on_sent = rest_on_sent, .owner = rest};
    core->net->replace(peer->conn, &read->send, &rest->send);
    leat_peer_begin(peer);
    if (peer->borrowed.rest_bytes == 0)
        leat_list_push_back(&core->data->lender->rests, &peer->borrowed.rests);
    peer->borrowed.rest_bytes += bytes;
    peer->sharer->rest_bytes += bytes;
    core->data->lender->rest_bytes += bytes;
    peer->borrowed.answer_bytes_max = LEAT_PEER_SLOW_ANSWER_BYTES;
    leat_fetch_read_sent(read);
}

void leat_lend_taken(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    uint32_t *max = &peer->borrowed.answer_bytes_max;
    *max = *max < LEAT_FETCH_BYTES_MAX ? 2 * *max : 0; /* of no limit twice is none */
}

/* ---- lending ---- */

void leat_lend(struct leat_fetch_read *read)
{
    LEAT_ASSERT_OWNER(read->fetch->core);
    struct leat_core *core = read->fetch->core;
    struct leat_lender *lender = core->data->lender;
    read->lent_us = leat_core_now(core);
    leat_list_push_back(read->read.disk_buffer != NULL ? &lender->buffers : &lender->segments,
                        &read->lent);
}

void leat_lend_end(struct leat_fetch_read *read)
{
    leat_list_remove(&read->lent);
}

static struct leat_fetch_read *oldest(const struct leat_list *lent)
{
    return leat_list_empty(lent) ? NULL : LEAT_CONTAINER(lent->next, struct leat_fetch_read, lent);
}

/* The peer's time to take the answer is over. */
static bool is_due(const struct leat_fetch_read *read, uint64_t now_us)
{
    return read != NULL && now_us >= read->lent_us + LEAT_LEND_US;
}

/* The store wants the memory of these segments for what is appended. */
static void recall_segments(struct leat_core *core, uint64_t now_us)
{
    LEAT_LIST_EACH(&core->data->lender->segments, link)
    {
        struct leat_fetch_read *read = LEAT_CONTAINER(link, struct leat_fetch_read, lent);
        if (!is_due(read, now_us)) return;
        if (read->read.pinned != NULL && leat_segment_is_wanted_back(read->read.pinned))
            lend_recall(read);
    }
}

static void lend_on_timer(struct leat_timer *timer)
{
    struct leat_core *core = timer->owner;
    recall_segments(core, leat_core_now(core)); /* the end of this turn does the rest */
}

/* Structs to read with are lent with either. */
static bool recall_struct(struct leat_core *core, uint64_t now_us)
{
    struct leat_fetch_read *with_buffer = oldest(&core->data->lender->buffers);
    struct leat_fetch_read *other = oldest(&core->data->lender->segments);
    if (other == NULL || (with_buffer != NULL && with_buffer->lent_us < other->lent_us))
        other = with_buffer;
    if (!is_due(other, now_us)) return false;
    lend_recall(other);
    return true;
}

/* Nothing of what is awaited is due any more: what has become due has been had back. */
static void sooner(uint64_t *at_us, const struct leat_fetch_read *read)
{
    if (read != NULL && read->lent_us + LEAT_LEND_US < *at_us)
        *at_us = read->lent_us + LEAT_LEND_US;
}

void leat_lend_turn_end(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_lender *lender = core->data->lender;
    if (LEAT_BUG(LENT_STAYS)) return;
    if (leat_list_empty(&lender->buffers) && leat_list_empty(&lender->segments)) return;
    uint64_t now_us = leat_core_now(core), at_us = now_us + LEAT_LEND_LOOK_US;
    while (!leat_list_empty(&lender->line) && is_due(oldest(&lender->buffers), now_us))
        lend_recall(oldest(&lender->buffers));
    while (!leat_list_empty(&core->data->starved_reads) && core->read_pool.left == 0 &&
           recall_struct(core, now_us))
        ;
    bool structs_awaited =
        !leat_list_empty(&core->data->starved_reads) && core->read_pool.left == 0;
    if (!leat_list_empty(&lender->line) || structs_awaited)
        sooner(&at_us, oldest(&lender->buffers));
    if (structs_awaited) sooner(&at_us, oldest(&lender->segments));
    if (leat_timer_armed(&lender->timer) && lender->timer.at_us <= at_us) return;
    leat_timer_start(&core->timers, &lender->timer, at_us - now_us);
}
