/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come, one step after the other: which log goes on next, and what it asks for. See takeover.h. */
#include "broker/ownership/takeover.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"

static void takeovers_step(struct leat_core *core);

/* ---- driving ---- */

static void kick_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->takeovers->kicked = false;
    takeovers_step(core);
}

void takeover_kick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (core->takeovers->kicked) return;
    core->takeovers->kicked = true;
    leat_core_mail(core, 0, &core->takeovers->kick, kick_deliver);
}

static void on_timer(struct leat_timer *timer)
{
    takeovers_step(timer->owner);
}

/* SUBTLE: if more than LEAT_TAKEOVER_OLDER_MAX logs look for older segments, a log that pauses goes to the end of the
 * list.
 *  1. Forty logs look for older segments on a node that has just started. The node answers "ask again", and each log
 *     pauses for 100 ms. Eight logs ask at a time.
 *  2. When the last eight logs have asked, the pauses of the first eight are over.
 *  3. If the first logs stayed at the head of the list, the same logs would ask each time, and logs whose segments are
 *     on this node would never have a turn. */
void takeover_pause(struct leat_takeover *takeover, uint64_t us)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    struct leat_takeovers *takeovers = takeover_core(takeover)->takeovers;
    if (takeovers->older_count > LEAT_TAKEOVER_OLDER_MAX) {
        leat_list_remove(&takeover->link);
        leat_list_push_back(&takeovers->all, &takeover->link);
    }
    takeover->again_us = leat_core_now(takeover_core(takeover)) + us;
    takeover->busy = false;
}

void takeover_free(struct leat_takeover *takeover)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    LEAT_LIST_EACH(&takeover_core(takeover)->takeovers->all, it)
    {
        struct leat_takeover *next = LEAT_CONTAINER(it, struct leat_takeover, link);
        if (next == takeover || !leat_log_ref_equal(next->ref, takeover->ref)) continue;
        next->queued =
            false; /* only the first: takeovers of one log begin in the order of the list */
        break;
    }
    leat_list_remove(&takeover->link);
    takeover_core(takeover)->takeovers->older_count -= takeover->state == TAKEOVER_OLDER;
    leat_disk_read_free(&takeover->read);
    leat_mem_free(takeover);
}

/* ---- which log goes on next ---- */

/* An older segment is on its way, or here: such takeovers count against LEAT_TAKEOVER_OLDER_MAX. A takeover that pauses
 * does not count, because no node may have its segment, and it looks for the segment for LEAT_TAKEOVER_MISSING_US. */
static bool gets_older(const struct leat_takeover *takeover)
{
    return takeover->state == TAKEOVER_OLDER && (takeover->busy || takeover->seg != NULL);
}

static unsigned places_held(const struct leat_takeovers *takeovers)
{
    unsigned count = 0;
    for (const struct leat_list *it = takeovers->all.next; it != &takeovers->all; it = it->next)
        count += gets_older(LEAT_CONTAINER(it, const struct leat_takeover, link));
    return count;
}

/* SUBTLE: a takeover whose epoch is over ends at once. If it went on looking for segments:
 *  1. The log comes here in epoch 5 and is served; a node that has an older segment dies at this moment.
 *  2. The log moves away and back, in epoch 7.
 *  3. Appends wait until the first takeover gives up, after LEAT_TAKEOVER_MISSING_US.
 * A takeover ends when this node hears that the log is another node's. If it went on:
 *  1. X owns the log in epoch 5, and asks Y for the newest segment before an offset gap.
 *  2. The log moves to Y in epoch 6, and Y asks X. X answers "ask again", as segments are on their way to X. Y
 *     answers the same, as Y has the log.
 *  3. Both ask for as long as they live, and the segments before the gap can't be read.
 * X's backup also refuses a replica that Y counts on (LEAT_E_STALE_EPOCH), for as long as both nodes live.
 * A takeover whose stream was deleted ends at once, too. If it went on:
 *  1. A streamlet moves here, and the stream is deleted before the last segment has been fetched.
 *  2. The segment comes, and goes at once, as its stream is gone. The takeover has no segment, and fetches the
 *     segment again, without end. */
static bool is_over(const struct leat_core *core, const struct leat_takeover *takeover)
{
    const struct leat_stream *stream = leat_stream_find(core, takeover->ref.stream);
    if (takeover->replaced || leat_replicate_stream_is_deleted(core, takeover->ref.stream))
        return true;
    bool stays = LEAT_BUG(STALE_TAKEOVER_STAYS) || LEAT_BUG(ADOPTED_FOR_THE_PAST);
    return stream != NULL && !stays &&
           !leat_core_still_owns(core, stream->desc, takeover->ref.streamlet, takeover->epoch);
}

static void takeovers_step(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    unsigned held = places_held(core->takeovers);
    LEAT_LIST_EACH(&core->takeovers->all, it)
    {
        struct leat_takeover *takeover = LEAT_CONTAINER(it, struct leat_takeover, link);
        bool over = is_over(core, takeover);
        bool ready = !takeover->busy && !core->stopping && core->data->replicate->backup != NULL;
        if (over && ready && !takeover->queued && takeover_seg_back(takeover)) {
            takeover_free(takeover);
            continue;
        }
        if (!ready || over || takeover->queued || now_us < takeover->again_us) continue;
        if (takeover->state == TAKEOVER_OLDER && !gets_older(takeover) &&
            ++held > LEAT_TAKEOVER_OLDER_MAX)
            continue;
        /* again, as there was no memory: for the segment in its log, or for reading its start entry */
        if (takeover->seg != NULL)
            takeover_start_read(takeover);
        else if (takeover_has_ended(takeover))
            takeover_to_home(takeover);
        else
            takeover_get(core, takeover);
    }
    if (!leat_list_empty(&core->takeovers->all))
        leat_timer_start(&core->timers, &core->takeovers->timer, LEAT_TAKEOVER_TICK_US);
}

/* ---- asking ---- */

/* SUBTLE: a takeover in TAIL replaces a takeover of the same epoch that has made the log already.
 *  1. The first takeover has made the log, and fetches its older segments.
 *  2. The log's last segment is found to be damaged. The log is given up, and a second takeover is to make it again.
 *  3. If the second takeover was dropped as a duplicate, the first takeover would end, as its log is gone, and no
 *     takeover would make the log. */
static void ask_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    LEAT_LIST_EACH(&core->takeovers->all, it)
    {
        struct leat_takeover *other = LEAT_CONTAINER(it, struct leat_takeover, link);
        if (!leat_log_ref_equal(other->ref, takeover->ref)) continue;
        takeover->queued = true;
        other->replaced = other->replaced || other->epoch.v < takeover->epoch.v;
        if (other->epoch.v != takeover->epoch.v) continue;
        if (takeover_wants_tail(takeover) && !takeover_wants_tail(other)) {
            other->replaced = true;
            continue;
        }
        leat_disk_read_free(&takeover->read);
        leat_mem_free(takeover);
        return;
    }
    takeover->since_us = leat_core_now(core);
    leat_list_push_back(&core->takeovers->all, &takeover->link);
    core->takeovers->older_count += takeover->state == TAKEOVER_OLDER;
    takeover_kick(core);
}

struct leat_takeover *takeover_create(struct leat_core *core, struct leat_log_ref ref,
                                      struct leat_epoch epoch)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_takeover *takeover = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *takeover);
    if (takeover == NULL) return NULL;
    takeover->node = core->node;
    takeover->ref = ref;
    takeover->epoch = epoch;
    takeover->home = core->index;
    leat_list_init(&takeover->link);
    return takeover;
}

void takeover_send(struct leat_takeover *takeover)
{
    struct leat_core *home = &takeover->node->cores[takeover->home];
    LEAT_ASSERT_OWNER(home);
    leat_core_mail(home, 0, &takeover->mail, ask_deliver);
}

void leat_takeover_ask(struct leat_core *core, const struct leat_begun_log *row, uint32_t logs)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(leat_core_of_log(core->node, row->ref, logs), ==, core->index);
    if (row->record.opened) { /* no node has the open replicas that would say where the log ends */
        if (leat_partition_find(core, row->ref) == NULL) takeover_stand_in(core, row);
        return;
    }
    struct leat_takeover *takeover = takeover_create(core, row->ref, row->epoch);
    const bool committed_is_applied = takeover != NULL;
    LEAT_ASSERT(committed_is_applied);
    takeover->tail = row->record.tail;
    takeover->state = TAKEOVER_TAIL;
    takeover->segment = takeover->tail.segment;
    takeover->prefix_id = takeover->tail.prefix_id;
    takeover->next_offset = takeover->tail.jumped ? 0 : takeover->tail.next_offset;
    takeover_send(takeover);
}

void leat_takeover_look(struct leat_partition *partition, const struct leat_begun_log *row,
                        uint32_t logs)
{
    LEAT_ASSERT_OWNER(partition->core);
    if (!partition->tail_missing || leat_partition_goes(partition))
        return; /* asked when the log has gone (released()), or stays (recover_stay()) */
    if (!row->record.opened) {
        if (row->epoch.v > partition->epoch.v) leat_takeover_ask(partition->core, row, logs);
        return;
    }
    partition->highest_segment = row->record.tail.segment;
    partition->highest_offset = row->record.tail.next_offset;
    partition->highest_prefix_id = row->record.tail.prefix_id;
}

void leat_takeovers_init(struct leat_core *core)
{
    leat_list_init(&core->takeovers->all);
    core->takeovers->timer = (struct leat_timer){.on_expired = on_timer, .owner = core};
}

void leat_takeovers_fini(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->takeovers->all, it)
    takeover_free(LEAT_CONTAINER(it, struct leat_takeover, link));
}
