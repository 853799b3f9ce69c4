/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of a fetch: a run of batches of one log at a time, on the log's own core. */
#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lend.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/net/hooks.h"

static void fetch_begin_read(struct leat_fetch_read *read);
static void fetch_read_here(struct leat_fetch_read *read);
static void fetch_on_read(struct leat_read *read);
static void fetch_read_back(struct leat_fetch_read *read);
static bool fetch_take_result(struct leat_fetch_read *read);

/* A peer that stops taking its answers keeps their structs until its connection is closed. So the answers of one peer
 * may hold no more structs than are left in the pool: one such connection gets half of the structs, two get a third
 * each, and some structs are always left (Choudhury and Hahne, Dynamic Queue Length Thresholds for Shared-Memory
 * Packet Switches, ToN 6(2), 1998). At the limit a peer waits until its own answers have been sent.
 *
 * SUBTLE: only answers that the network has been given count, because the end of such an answer depends on no other
 * answer. An answer that waits for an earlier answer of its connection might be waiting for this very fetch. */
bool leat_fetch_peer_holds_enough(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->borrowed.rest_bytes > 0 ||
           (peer->reads > 0 && peer->reads >= peer->core->read_pool.left);
}

/* A fetch that gets no struct or no memory for its next read is answered at once where it has bytes, however few: its
 * other bytes begin the next request. false: it has none, and waits. */
static bool fetch_goes_now(struct leat_fetch *fetch)
{
    if (fetch->bytes == 0) return false;
    fetch->full = true;
    return true;
}

/* NULL: the fetch waits in line for a struct.
 *
 * SUBTLE: a request that has some bytes is answered with these, and waits for no struct. The request still looks at
 * the ends of the logs that it has not come to. Without this look the answer said nothing of these logs: the reader
 * took that for "nothing to read", and a reader until the end left these logs out. */
static struct leat_fetch_read *read_take(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    bool enough = fetch->peer != NULL && leat_fetch_peer_holds_enough(fetch->peer);
    bool my_turn = fetch->called || leat_list_empty(&core->data->starved_reads);
    struct leat_fetch_read *read =
        my_turn && !enough ? leat_stock_take(&core->read_pool, NULL) : NULL;
    if (read != NULL) return read;
    fetch->called = false;
    /* This fetch waits, so another fetch gets the buffer meanwhile. */
    if (fetch->buffer != NULL) leat_buffer_give(core, fetch->buffer);
    fetch->buffer = NULL;
    if (fetch_goes_now(fetch)) return &fetch->ends;
    leat_list_push_back(enough ? &fetch->peer->limited : &core->data->starved_reads, &fetch->link);
    return NULL;
}

/* Take one step at fetch->at; false: it is under way elsewhere. */
bool leat_fetch_read_at(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    struct leat_fetch_item *item = fetch->at;
    if (item->refused != LEAT_OK) {
        item->result.code = item->refused;
        fetch->refused = true;
        fetch->at = item->next;
        return true;
    }
    struct leat_fetch_read *read = read_take(fetch);
    if (read == NULL) return false;
    read->fetch = fetch;
    read->item = item;
    read->next = NULL;
    read->home = &core->node->cores[item->home];
    read->read.by_position = item->want.by_position;
    read->read.from.v = item->result.bytes == 0 ? item->want.offset : item->watch_from;
    /* SUBTLE: a further run of a reader by position is read by position, too. By offset a read passes over a segment
     * without records, and so came to the next segment group, whose records another member reads. */
    read->read.position = item->result.next;
    /* Nothing but the two ends of the log once there is enough: its next request brings the rest */
    read->read.max_bytes = fetch->bytes_max > fetch->bytes ? fetch->bytes_max - fetch->bytes : 0;
    uint32_t item_left =
        item->max_bytes > item->result.bytes ? item->max_bytes - item->result.bytes : 0;
    if (read->read.max_bytes > item_left) read->read.max_bytes = item_left;
    if (read == &fetch->ends) read->read.max_bytes = 0;
    /* An answer may exceed its limit only by the first batch, which it must have. */
    read->read.strict = fetch->bytes > 0;
    read->read.full = false;
    read->read.disk_buffer = fetch->buffer;
    read->read.disk_buffer_bytes = fetch->buffer != NULL ? LEAT_DISK_BUFFER_BYTES : 0;
    fetch->buffer = NULL;
    read->read.pinned = NULL;
    read->read.bytes = 0;
    read->read.iov_count = 0;
    read->read.phase = 0;
    leat_list_init(&read->read.link);
    if (item->home == core->index) {
        fetch_read_here(read);
        if (read->rc == LEAT_E_AGAIN) return false;
        return fetch_take_result(read);
    }
    fetch_begin_read(read);
    return false;
}

static void fetch_deliver_read(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_read *read = LEAT_CONTAINER(mail, struct leat_fetch_read, mail);
    LEAT_ASSERT(actor == read->home);
    fetch_read_here(read);
    if (read->rc != LEAT_E_AGAIN) fetch_read_back(read);
}

/* Mail it to the log's core. */
static void fetch_begin_read(struct leat_fetch_read *read)
{
    leat_core_mail(read->fetch->core, read->home->index, &read->mail, fetch_deliver_read);
}

static void fetch_note_ends(struct leat_fetch_read *read, const struct leat_log *log)
{
    struct leat_log_info info;
    leat_log_info(log, &info);
    read->first_offset = info.first_offset;
    read->acked_offset = info.acked_offset;
    read->log_waits = info.state == LEAT_LOG_WAITING;
}

/* A segment that had not come when it was looked for last: it is looked for now, and the read
 * waits for that. true: it does. */
static bool fetch_look_older(struct leat_fetch_read *read, struct leat_partition *partition)
{
    uint64_t now_us = leat_core_now(partition->core);
    if (partition->backfill != LEAT_BACKFILL_DUE || !leat_partition_lacks(partition, &read->read))
        return false;
    if (now_us < partition->backfill_looked_us + LEAT_OLDER_READ_US) return false;
    partition->backfill_looked_us = now_us;
    leat_log_older_again(partition->log);
    partition->core->node->hooks->older(partition);
    if (partition->backfill == LEAT_BACKFILL_DUE)
        leat_log_older_done(partition->log, partition->backfill_node_down); /* not now */
    return leat_log_read(partition->log, &read->read) == LEAT_E_AGAIN;
}

/* On the log's core. read->rc AGAIN: the disk is asked. */
static void fetch_read_here(struct leat_fetch_read *read)
{
    struct leat_core *home = read->home;
    struct leat_partition *partition = leat_partition_find(home, read->item->want.log);
    if (partition == NULL || leat_partition_goes(partition)) {
        /* going: stopped, deleted, or being made anew after accepted loss */
        read->rc = leat_partition_absent(home, read->item->want.log);
        return;
    }
    fetch_note_ends(read, partition->log);
    read->rc = LEAT_OK;
    read->read.rc = LEAT_OK;
    read->read.on_done = fetch_on_read;
    read->read.owner = read;
    bool ends = read->read.max_bytes == 0;
    if (ends && leat_log_front_known(partition->log)) return;
    leat_err rc = ends ? leat_log_front_await(partition->log, &read->read)
                       : leat_log_read(partition->log, &read->read);
    if (rc == LEAT_E_AGAIN || fetch_look_older(read, partition)) {
        read->rc = LEAT_E_AGAIN;
        if (leat_log_reads_wait(partition->log)) leat_partition_watch(partition); /* not for ever */
    } else {
        read->read.rc = leat_partition_hope(partition, &read->read);
    }
}

static void fetch_on_read(struct leat_read *done)
{
    struct leat_fetch_read *read = done->owner;
    /* The read may have found out meanwhile which first segments are missing. */
    fetch_note_ends(read, done->log);
    const struct leat_partition *partition = leat_partition_find(read->home, read->item->want.log);
    if (partition != NULL && partition->log == done->log)
        done->rc = leat_partition_hope(partition, done);
    read->rc = LEAT_OK;
    fetch_read_back(read);
}

static void fetch_goes_on(struct leat_fetch_read *read)
{
    struct leat_fetch *fetch = read->fetch;
    if (!fetch_take_result(read)) return;
    while (fetch->at != NULL)
        if (!leat_fetch_read_at(fetch)) return;
    leat_fetch_finish(fetch);
}

static void fetch_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_read *read = LEAT_CONTAINER(mail, struct leat_fetch_read, mail);
    LEAT_ASSERT(actor == read->fetch->core);
    fetch_goes_on(read);
}

/* A read that did not end at once has ended, on the log's core. */
static void fetch_read_back(struct leat_fetch_read *read)
{
    struct leat_core *core = read->fetch->core;
    if (read->home == core)
        fetch_goes_on(read);
    else
        leat_core_mail(read->home, core->index, &read->mail, fetch_deliver_back);
}

void leat_fetch_on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    struct leat_fetch *fetch = wait->owner;
    fetch->buffer = buffer;
    leat_list_push_back(&fetch->core->data->ready_fetches, &fetch->link);
}

/* The bytes have left memory: the read is repeated with a buffer. While the fetch waits for a buffer, it holds
 * nothing that reads from memory need. false: the fetch waits. */
static bool fetch_again_with_buffer(struct leat_fetch_read *read)
{
    struct leat_fetch *fetch = read->fetch;
    leat_fetch_release_read(read);
    if (fetch->peer == NULL) {
        fetch->at = NULL; /* its connection is gone */
        return true;
    }
    fetch->buffer = leat_buffer_try(fetch->core);
    if (fetch->buffer == NULL) leat_buffer_wait(fetch->core, fetch->peer, &fetch->buffer_wait);
    return fetch->buffer != NULL;
}

/* On the request's core: enter what a read brought. false: it waits for a buffer, to be made again. */
static bool fetch_take_result(struct leat_fetch_read *read)
{
    struct leat_fetch *fetch = read->fetch;
    struct leat_fetch_item *item = read->item;
    leat_err code = read->rc != LEAT_OK ? read->rc : read->read.rc;
    if (code == LEAT_E_NO_MEMORY && read->read.disk_buffer == NULL && read->rc == LEAT_OK) {
        if (!fetch_goes_now(fetch)) return fetch_again_with_buffer(read);
        code = LEAT_OK;
        read->read.bytes = 0;
        read->read.max_bytes = 0;
    }
    if (read->rc == LEAT_OK) {
        item->result.first_offset = read->first_offset;
        item->result.acked_offset = read->acked_offset;
    }
    if (code != LEAT_OK && item->result.bytes == 0) {
        item->result.code = code;
        item->result.resume = code == LEAT_E_DAMAGED ? read->read.next.v : 0;
        fetch->refused = true;
    }
    uint32_t bytes = code == LEAT_OK ? read->read.bytes : 0;
    /* Of a reader by position the read says where it looked: records may follow that it had no room for, or that are of
     * another group. */
    uint64_t looked = item->want.by_position ? read->read.next.v : item->want.offset;
    bool any_room = read->read.max_bytes > 0 || !item->want.by_position;
    item->end_missing = code == LEAT_OK && bytes == 0 && read->log_waits && any_room &&
                        looked >= read->acked_offset;
    fetch->at = item->next;
    if (code == LEAT_OK && read->read.full) {
        fetch->full = true;
        leat_fetch_release_read(read);
        return true;
    }
    if (bytes == 0) {
        /* Where nothing is left of a group, or offsets jump, the place moves on all the same. */
        if (code == LEAT_OK && read->read.max_bytes > 0 && item->result.bytes == 0)
            item->result.next = read->read.next_position;
        /* The records at this offset were given up, and no record has come after them yet. */
        if (code == LEAT_OK && read->read.max_bytes > 0 && item->result.bytes == 0 &&
            !item->want.by_position && read->read.next.v > item->want.offset)
            item->result.resume = item->watch_from = read->read.next.v;
        leat_fetch_release_read(read);
        return true;
    }
    item->result.bytes += bytes;
    item->result.next = read->read.next_position;
    item->watch_from = read->read.next.v;
    fetch->bytes += bytes;
    fetch->records += read->read.record_count;
    if (fetch->reads_last != NULL)
        fetch->reads_last->next = read;
    else
        fetch->reads = read;
    fetch->reads_last = read;
    if (read->read.pinned != NULL && read->read.disk_buffer != NULL) {
        leat_buffer_give(fetch->core, read->read.disk_buffer);
        read->read.disk_buffer = NULL;
    }
    /* The next segment of the same log, while there is room and the segment is in memory. A reader by position may
     * own only this group (parallel mode), so its read ends at the group's end. */
    bool group_left =
        item->want.by_position && read->read.next_position.group != item->want.position.group;
    if (fetch->bytes < fetch->bytes_max && item->result.bytes < item->max_bytes &&
        read->read.next.v < read->acked_offset && read->read.disk_buffer == NULL && !group_left)
        fetch->at = item;
    return true;
}

/* ---- given back ---- */

void leat_fetch_drop_reads(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_fetch_read *read = fetch->reads;
    fetch->reads = fetch->reads_last = NULL;
    while (read != NULL) {
        struct leat_fetch_read *next = read->next;
        leat_fetch_release_read(read);
        read = next;
    }
}

void leat_fetch_release_read(struct leat_fetch_read *read)
{
    LEAT_ASSERT_OWNER(read->fetch->core);
    struct leat_core *core = read->fetch->core;
    if (read->read.pinned != NULL) leat_segment_unpin(read->read.pinned, core->env->post);
    if (read->read.disk_buffer != NULL) leat_buffer_give(core, read->read.disk_buffer);
    if (read == &read->fetch->ends) return;
    /* A fetch that waits for a struct goes on at the end of this turn. */
    leat_stock_give(&core->read_pool, read, NULL, NULL);
}
