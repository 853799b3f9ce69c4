/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: taken in, to wait for a round, and answered. */
#include "store/private.h"

static void answer_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_keep *keep = LEAT_CONTAINER(mail, struct leat_keep, mail);
    (void)actor;
    keep->on_done(keep);
}

void leat_store_answer(struct leat_store *store, struct leat_keep *keep, leat_err rc)
{
    keep->rc = rc;
    keep->mail = (struct leat_mail){.deliver = answer_deliver};
    store->env->post->send(store->env->post->ctx, keep->from, &keep->mail);
}

/* ---- taking in ---- */
leat_err leat_round_data_state(const struct leat_held *held)
{
    return held->failed || held->slot.file->failed ? LEAT_E_DISK : LEAT_OK;
}

/* The record that parking leaves must be true: what it says is what recovery believes unread. */
static leat_err park_check(struct leat_segment *seg)
{
    struct leat_scan scan;
    leat_scan_segment(seg->buffer, seg->extent.bytes, &scan);
    if (!leat_scan_is(&scan, seg->extent)) return LEAT_E_DAMAGED;
    seg->base_offset = scan.base_offset;
    seg->next_offset = scan.next_offset;
    seg->max_timestamp_ms = scan.max_timestamp_ms;
    return LEAT_OK;
}

void leat_round_file_ready(struct leat_store *store, struct leat_store_file *file)
{
    if (leat_list_empty(&file->ready)) leat_list_push_back(&store->files_ready, &file->ready);
}

bool leat_round_data_wanted(const struct leat_keep *keep, uint32_t *out_from, uint32_t *out_to)
{
    const struct leat_segment *seg = keep->seg;
    const struct leat_held *held = leat_held_of(keep->seg);
    *out_from = keep->from_bytes;
    *out_to = keep->to_bytes;
    if (keep->kind == LEAT_KEEP_COMMIT) {
        /* The one before it may have taken all of it along. */
        if (keep->follow && *out_from < held->in_file_bytes) *out_from = held->in_file_bytes;
        return *out_from < *out_to || !keep->follow;
    }
    *out_from = held->in_file_bytes;
    *out_to = seg->extent.bytes;
    if (*out_from >= *out_to) return false;
    /* A `disk` stream's segment goes whole into its file before its row says CLOSED: where the file
     * ends earlier such a row would make a valid prefix look damaged after a power cut. */
    return keep->kind == LEAT_KEEP_PARK || (keep->kind == LEAT_KEEP_CLOSE && seg->buffer &&
                                            seg->durability == LEAT_DURABILITY_DISK);
}

void leat_round_add(struct leat_store *store, struct leat_keep *keep)
{
    struct leat_held *held = leat_held_of(keep->seg);
    keep->rc = LEAT_OK;
    LEAT_ASSERT(keep->kind != LEAT_KEEP_EVICT); /* answered where it came in */
    if (keep->kind == LEAT_KEEP_COMMIT)
        LEAT_ASSERT(keep->seg->buffer && keep->from_bytes <= keep->to_bytes &&
                    keep->to_bytes <= keep->seg->capacity);
    if (keep->kind == LEAT_KEEP_PARK) {
        keep->rc = leat_round_data_state(held);
        if (!keep->rc) keep->rc = park_check(keep->seg);
        if (keep->rc) {
            leat_store_answer(store, keep, keep->rc);
            return;
        }
    }
    uint32_t from, to;
    /* SUBTLE: a log's commits are answered in the order of asking, also those that have nothing to wait for.
     *  1. A round writes Z's bytes, and takes along those of A, which waits for the next round, and more.
     *  2. It ends, and Z is answered. In the same turn of this thread, before the next round is begun, its owner
     *     has asked for B: all of that is in the file.
     *  3. Were B answered now, it would be before A. */
    bool behind = keep->kind == LEAT_KEEP_COMMIT && held->data_keeps > 0;
    if (!behind && !leat_round_data_wanted(keep, &from, &to)) {
        if (keep->kind == LEAT_KEEP_COMMIT) {
            leat_store_answer(store, keep, leat_round_data_state(held));
            return;
        }
        leat_list_push_back(&store->todo, &keep->waiting);
        return;
    }
    held->data_keeps++;
    store->data_waiting++;
    leat_list_push_back(&held->slot.file->todo, &keep->waiting);
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

void leat_round_end_failed(struct leat_store *store, struct leat_keep *keep, struct leat_held *held)
{
    if (keep->kind == LEAT_KEEP_RESERVE || keep->kind == LEAT_KEEP_RESUME) {
        /* SUBTLE: the row may have reached the disk, and it names this buffer. A killed process's
         * successor would look for a resumed segment's bytes there: they must stay, so the buffer
         * serves nobody else until a restart. */
        held->seg.buffer = NULL;
        if (keep->kind == LEAT_KEEP_RESERVE) keep->seg = NULL;
    } else if (keep->kind == LEAT_KEEP_CLOSE && held->where == LEAT_HELD_NOWHERE) {
        leat_held_move(held, LEAT_HELD_STUCK, &store->stuck);
    }
    leat_store_answer(store, keep, keep->rc);
}
