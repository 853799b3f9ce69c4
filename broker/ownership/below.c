/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of LOG_BELOW: see below.h. */
#include "broker/ownership/below.h"

#include <string.h>

#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "broker/ownership/handover.h"
#include "coordinator/metadata/tail.h"

/* ---- replicas that were found ---- */

void leat_below_add(struct leat_below_found *found, uint64_t segment, uint32_t epoch,
                    struct leat_prefix_id prefix_id)
{
    if (prefix_id.bytes < LEAT_ENTRY_HEADER_BYTES || prefix_id.bytes > LEAT_SEGMENT_BYTES_MAX)
        return;
    /* SUBTLE: the latest owner's copies count, however few they are.
     *  1. X's segment 5 is given up while X and B are away.
     *  2. The next owner Y writes its own segment 5 after the gap; Y's segment 6 is lost and given up, too.
     *  3. X and B return: X's 5 is on two nodes, Y's on one. By number of copies, what Y acked would be dropped. */
    const struct leat_tail_row row = {.segment = segment, .epoch = {epoch}},
                               have = {.segment = found->segment, .epoch = {found->epoch}};
    int order = leat_tail_order(&row, &have);
    if (order < 0) return;
    if (order > 0) found->count = 0;
    found->segment = segment;
    found->epoch = epoch;
    for (uint32_t i = 0; i < found->count; i++) {
        struct leat_below_candidate *candidate = &found->candidates[i];
        if (!leat_prefix_id_equal(candidate->prefix_id, prefix_id)) continue;
        candidate->nodes++;
        return;
    }
    if (found->count == LEAT_BELOW_CANDIDATES_MAX) return;
    found->candidates[found->count++] = (struct leat_below_candidate){prefix_id, 1};
}

/* Which closed replica of one owner's segment before an offset gap counts. metadata/tail.h does not answer this:
 *  1. leat_tail_decide() says where a log ends by its record. Here the end is decided; it lies after the gap, and no
 *     record or start entry names the prefix id of a segment before the gap.
 *  2. leat_tail_left() looks for an end where no owner went on. Readers were shown nothing beyond the shortest
 *     replica that a recovery cut, so leat_tail_left() takes the shortest. Here the owner went on after the gap, and
 *     readers were shown the owner's replica: the shortest replica may lack some of these records.
 * One owner wrote all replicas, so a longer replica begins with the bytes of a shorter replica. The owner made as
 * many copies of its own replica as its stream wants, and dropped the replicas of failed recovery attempts that it
 * heard of: so the replica on most nodes counts. Of two replicas on as many nodes the longer counts: no record that a
 * reader was shown is to be missing. leat_below_add() orders by segment and epoch as all other rules do
 * (leat_tail_order()). */
static uint32_t best(const struct leat_below_found *found)
{
    uint32_t at = 0;
    LEAT_ASSERT_CMP(found->count, >, 0);
    for (uint32_t i = 1; i < found->count; i++) {
        const struct leat_below_candidate *it = &found->candidates[i],
                                          *that = &found->candidates[at];
        if (it->nodes > that->nodes ||
            (it->nodes == that->nodes && it->prefix_id.bytes > that->prefix_id.bytes))
            at = i;
    }
    return at;
}

struct leat_prefix_id leat_below_best(const struct leat_below_found *found)
{
    return found->candidates[best(found)].prefix_id;
}

bool leat_below_pass(struct leat_below_found *found)
{
    if (found->count < 2) return false;
    found->candidates[best(found)] = found->candidates[found->count - 1];
    found->count--;
    return true;
}

struct look {
    uint64_t segment;
    struct leat_below_found *found;
};

static void look_see(void *arg, const struct leat_replica_info *info)
{
    const struct look *look = arg;
    if (info->state != LEAT_SEGMENT_CLOSED || info->incomplete || info->damaged) return;
    if (info->provisional) return; /* the log may never have ended there */
    if (info->segment.v <= look->segment)
        leat_below_add(look->found, info->segment.v, info->epoch.v, info->prefix_id);
}

/* Among this node's replicas. Thread: core 0. */
static void look_here(struct leat_core *core, struct leat_log_ref ref, uint64_t segment,
                      struct leat_below_found *found)
{
    struct look look = {segment, found};
    leat_backup_each(core->data->replicate->backup, &ref, false, look_see, &look);
}

/* ---- asking ---- */

static void ask_next(struct leat_below *below);

static void answer_read(struct leat_below *below, const struct leat_frame *answer)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    uint32_t count = leat_msg_below_all_read(&reader);
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        struct leat_msg_below row;
        leat_msg_below_read(&reader, &row);
        if (!reader.failed && row.segment <= below->segment)
            leat_below_add(&below->found, row.segment, row.epoch,
                           (struct leat_prefix_id){row.bytes, row.crc});
    }
}

static void on_answer(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                      const char *why)
{
    struct leat_below *below = ask->owner;
    (void)why; /* the caller asks all nodes again */
    if (rc != LEAT_OK) {
        below->on_done(below, rc);
        return;
    }
    answer_read(below, answer);
    ask_next(below);
}

static void ask_next(struct leat_below *below)
{
    struct leat_core *core = below->core;
    struct leat_error error;
    struct leat_msg_writer writer;
    leat_err rc = LEAT_OK;
    while (below->at < core->members.count) {
        const struct leat_member *member = core->members.rows[below->at++];
        below->missed |= leat_member_is_missed(member);
        if (member->self || member->info.state != LEAT_NODE_UP) continue;
        leat_msg_writer_init(&writer, below->control, sizeof below->control);
        leat_msg_below_ask_write(&writer, &(struct leat_msg_below_ask){below->ref, below->segment});
        LEAT_ASSERT(!writer.overflow);
        rc = leat_ask_start(core, &below->ask, member->info.incarnation, LEAT_KIND_LOG_BELOW,
                            below->control, writer.used, &error);
        if (rc == LEAT_OK) return;
        break;
    }
    below->on_done(below, rc);
}

static void start_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    ask_next(LEAT_CONTAINER(mail, struct leat_below, mail));
}

void leat_below_start(struct leat_below *below)
{
    LEAT_ASSERT_OWNER(below->core);
    struct leat_core *core = below->core;
    LEAT_ASSERT_CMP(core->index, ==, 0);
    below->at = 0;
    below->missed = false;
    below->found = (struct leat_below_found){0};
    below->ask = (struct leat_ask){.on_done = on_answer, .owner = below};
    look_here(core, below->ref, below->segment, &below->found);
    leat_core_mail(core, 0, &below->mail, start_deliver);
}

/* ---- LOG_BELOW [[stream, streamlet, log], segment], of another node ----
 *
 * SUBTLE: an earlier owner may still have the segment as its own: it has not become a replica yet. (1) X has
 * segments 0 to 5, B has 0 to 4, and an offset gap follows 5. (2) The log moves to Y, which hears of that before X
 * does, and asks X. (3) If X said "nothing", segment 4 would be the newest: Y would continue from 4, and 5 would be
 * dropped as not needed. So the request visits the log's core first. If the log has gone from this core, the core sent
 * the log's segments to core 0 before, and core 0 gets the request after these segments. */

struct below_call {
    struct leat_call call;
    struct leat_log_ref ref;
    uint64_t segment;
    struct leat_below_found found;
    leat_err rc;
};

static void call_deliver_back(void *actor, struct leat_mail *mail)
{
    struct below_call *below = LEAT_CONTAINER(mail, struct below_call, call.mail);
    const struct leat_below_found *found = &below->found;
    (void)actor;
    if (below->rc != LEAT_OK) {
        leat_call_refuse(&below->call, below->rc, NULL);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(below->call.core, &writer);
    leat_msg_below_all_write(&writer, found->count);
    for (uint32_t i = 0; i < found->count; i++) {
        const struct leat_prefix_id *prefix_id = &found->candidates[i].prefix_id;
        struct leat_msg_below row = {found->segment, prefix_id->bytes, prefix_id->crc,
                                     found->epoch};
        leat_msg_below_write(&writer, &row);
    }
    leat_call_answer(&below->call, &writer);
}

static void call_deliver_replicas(void *actor, struct leat_mail *mail)
{
    struct below_call *below = LEAT_CONTAINER(mail, struct below_call, call.mail);
    struct leat_core *core = actor;
    if (!leat_node_is_up(core->node) || core->stopping || core->data->replicate->backup == NULL)
        below->rc = LEAT_E_STARTING;
    else if (leat_takeover_is_under_way(core, below->ref))
        below->rc = LEAT_E_AGAIN;
    if (below->rc == LEAT_OK) look_here(core, below->ref, below->segment, &below->found);
    leat_core_mail(core, below->call.core->index, mail, call_deliver_back);
}

static void call_deliver_home(void *actor, struct leat_mail *mail)
{
    struct below_call *below = LEAT_CONTAINER(mail, struct below_call, call.mail);
    struct leat_core *home = actor;
    if (leat_partition_find(home, below->ref) != NULL) below->rc = LEAT_E_AGAIN;
    leat_core_mail(home, 0, mail, call_deliver_replicas);
}

void leat_call_below(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct below_call *below = leat_call_create(peer, frame, sizeof *below);
    if (below == NULL) return;
    struct leat_core *core = peer->core;
    struct leat_msg_below_ask body;
    if (leat_msg_below_ask_decode(frame->control, frame->control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(
            &below->call, LEAT_E_INVALID,
            "the control body of log below is not [[stream, streamlet, log], segment]");
        return;
    }
    below->ref = body.log;
    below->segment = body.segment;
    const struct leat_stream *stream = leat_stream_find(core, below->ref.stream);
    if (stream == NULL) {
        bool gone = below->ref.stream <= core->data->stream_seen;
        leat_call_refuse(&below->call, gone ? LEAT_E_UNKNOWN_STREAM : LEAT_E_STARTING, NULL);
        return;
    }
    if (below->ref.streamlet >= stream->desc->streamlet_count ||
        below->ref.log >= stream->desc->settings.logs) {
        leat_call_refuse(&below->call, LEAT_E_UNKNOWN_LOG, NULL);
        return;
    }
    uint32_t home = leat_core_of_log(core->node, below->ref, stream->desc->settings.logs);
    leat_core_mail(core, home, &below->call.mail, call_deliver_home);
}
