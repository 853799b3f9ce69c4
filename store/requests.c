/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: taken in, to wait for a round, and answered. */
#include "store/private.h"

static void answer_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store_req *req = LEAT_CONTAINER(mail, struct leat_store_req, mail);
    (void)actor;
    req->on_done(req);
}

void leat_store_answer(struct leat_store *store, struct leat_store_req *req, leat_err rc)
{
    LEAT_ASSERT_OWNER(store);
    req->rc = rc;
    req->mail = (struct leat_mail){.deliver = answer_deliver};
    store->env->post->send(store->env->post->ctx, req->from, &req->mail);
}

/* ---- taking in ---- */
leat_err leat_round_data_state(const struct leat_held *held)
{
    return held->failed || held->slot.file->failed ? LEAT_E_DISK : LEAT_OK;
}

/* The hibernating record must be true: recovery uses it without reading the bytes. */
static leat_err hibernate_check(struct leat_segment *seg)
{
    struct leat_scan scan;
    leat_scan_segment(seg->buffer, seg->prefix_id.bytes, &scan);
    if (!leat_scan_is(&scan, seg->prefix_id)) return LEAT_E_DAMAGED;
    seg->base_offset = scan.base_offset;
    seg->next_offset = scan.next_offset;
    seg->max_timestamp_ms = scan.max_timestamp_ms;
    return LEAT_OK;
}

void leat_round_file_ready(struct leat_store *store, struct leat_store_file *file)
{
    if (leat_list_empty(&file->ready)) leat_list_push_back(&store->files_ready, &file->ready);
}

bool leat_round_data_wanted(const struct leat_store_req *req, uint32_t *out_from, uint32_t *out_to)
{
    const struct leat_segment *seg = req->seg;
    const struct leat_held *held = leat_held_of(req->seg);
    *out_from = req->from_bytes;
    *out_to = req->to_bytes;
    if (req->kind == LEAT_STORE_COMMIT) {
        /* The commit before may have written all these bytes. */
        if (req->follow && *out_from < held->in_file_bytes) *out_from = held->in_file_bytes;
        return *out_from < *out_to || !req->follow;
    }
    *out_from = held->in_file_bytes;
    *out_to = seg->prefix_id.bytes;
    if (*out_from >= *out_to) return false;
    /* A `disk` stream's segment goes whole into its file before its row says CLOSED: if the file ended earlier, such
     * a row would make a valid prefix look damaged after a power cut. */
    return req->kind == LEAT_STORE_HIBERNATE || (req->kind == LEAT_STORE_CLOSE && seg->buffer &&
                                                 seg->durability == LEAT_DURABILITY_DISK);
}

void leat_round_add(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(req->seg);
    req->rc = LEAT_OK;
    LEAT_ASSERT(req->kind != LEAT_STORE_EVICT); /* answered where it came in */
    if (req->kind == LEAT_STORE_COMMIT)
        LEAT_ASSERT(req->seg->buffer && req->from_bytes <= req->to_bytes &&
                    req->to_bytes <= req->seg->capacity);
    if (req->kind == LEAT_STORE_HIBERNATE) {
        req->rc = leat_round_data_state(held);
        if (!req->rc) req->rc = hibernate_check(req->seg);
        if (req->rc) {
            leat_store_answer(store, req, req->rc);
            return;
        }
    }
    uint32_t from, to;
    /* SUBTLE: a log's commits are answered in the order of asking, also those that have nothing to wait for.
     *  1. A round writes Z's bytes, and takes along those of A, which waits for the next round, and more.
     *  2. It ends, and Z is answered. In the same turn of this thread, before the next round is begun, its owner
     *     has asked for B: all of that is in the file.
     *  3. Were B answered now, it would be before A. */
    bool behind = req->kind == LEAT_STORE_COMMIT && held->data_reqs > 0;
    if (!behind && !leat_round_data_wanted(req, &from, &to)) {
        if (req->kind == LEAT_STORE_COMMIT) {
            leat_store_answer(store, req, leat_round_data_state(held));
            return;
        }
        leat_list_push_back(&store->todo, &req->waiting);
        return;
    }
    held->data_reqs++;
    store->data_waiting++;
    leat_list_push_back(&held->slot.file->todo, &req->waiting);
    leat_round_file_ready(store, held->slot.file);
}

bool leat_round_running(const struct leat_store *store)
{
    return store->rows_running || store->data_running != 0;
}

bool leat_round_busy(const struct leat_store *store)
{
    return leat_round_running(store) || !leat_list_empty(&store->todo) ||
           !leat_list_empty(&store->files_ready);
}

void leat_round_end_failed(struct leat_store *store, struct leat_store_req *req,
                           struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    if (req->kind == LEAT_STORE_RESERVE || req->kind == LEAT_STORE_RESUME) {
        /* SUBTLE: the row may have reached the disk, and it names this buffer. After a kill the next process would
         * look for a resumed segment's bytes there: they must stay, so the buffer is not given out again until a
         * restart. */
        held->seg.buffer = NULL;
        if (req->kind == LEAT_STORE_RESERVE) req->seg = NULL;
    } else if (req->kind == LEAT_STORE_CLOSE && held->where == LEAT_HELD_NOWHERE) {
        leat_held_move(held, LEAT_HELD_STUCK, &store->stuck);
    }
    leat_store_answer(store, req, req->rc);
}
