/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of one core: their table, their events to the core, and their regular care. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/net/hooks.h"

static void partition_on_dirty(void *owner, struct leat_log *log);
static void partition_on_acked(void *owner, struct leat_log *log);
static void partition_on_room(void *owner, struct leat_log *log);
static void partition_on_opening(void *owner, struct leat_log *log);
static bool partition_on_last_damaged(void *owner, struct leat_log *log, struct leat_segment *seg);
static leat_err partition_on_damaged(void *owner, const struct leat_segment *seg);

enum {
    CARE_IDLE_TICKS = 60, /* hibernated logs are looked at about once a minute, spread evenly */
    PRODUCER_EXPIRY_MS = 24 * 60 * 60 * 1000,
};

/* ---- logs by reference ---- */

static void partition_grow(struct leat_core *core)
{
    uint32_t mask = core->data->partition_mask * 2 + 1;
    struct leat_partition **grown = leat_mem_calloc(LEAT_MEM_ROWS, (size_t)mask + 1, sizeof *grown);
    if (grown == NULL) return; /* longer chains, still right */
    for (uint32_t i = 0; i <= core->data->partition_mask; i++) {
        struct leat_partition *partition = core->data->partitions[i];
        while (partition != NULL) {
            struct leat_partition *next = partition->hash_next;
            uint32_t at = leat_partition_hash(partition->ref) & mask;
            partition->hash_next = grown[at];
            grown[at] = partition;
            partition = next;
        }
    }
    leat_mem_free(core->data->partitions);
    core->data->partitions = grown;
    core->data->partition_mask = mask;
}

/* SUBTLE: a log of a stream that is being deleted goes as soon as it is made.
 *  1. A stream is deleted, and this core deletes the stream's logs in pieces (walk.c).
 *  2. Between two pieces a takeover, or a start, makes a log that the deletion has passed already.
 *  3. The deletion would never come back to this log, and the next report would read the stream's name from freed
 *     memory. */
leat_err leat_partition_create(struct leat_core *core, struct leat_stream *stream,
                               struct leat_log_ref ref, struct leat_epoch epoch,
                               struct leat_segment *const *segs, size_t seg_count,
                               const struct leat_log_tail *tail,
                               struct leat_partition **out_partition)
{
    LEAT_ASSERT_OWNER(core);
    if (core->data->partition_count >= LEAT_CORE_LOGS_MAX) return LEAT_E_TOO_MANY;
    struct leat_partition *partition = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *partition);
    if (partition == NULL) return LEAT_E_NO_MEMORY;
    partition->ref = ref;
    partition->core = core;
    partition->stream = stream;
    partition->epoch = epoch;
    leat_list_init(&partition->dirty);
    leat_list_init(&partition->care);
    leat_list_init(&partition->opening);
    leat_list_init(&partition->home);
    leat_list_init(&partition->waiters);
    leat_list_init(&partition->blocked);
    leat_err rc = leat_partition_open(partition, segs, seg_count, tail);
    if (rc != LEAT_OK) {
        leat_mem_free(partition);
        return rc;
    }
    if (core->data->partition_count > core->data->partition_mask) partition_grow(core);
    uint32_t at = leat_partition_hash(ref) & core->data->partition_mask;
    partition->hash_next = core->data->partitions[at];
    core->data->partitions[at] = partition;
    core->data->partition_count++;
    atomic_fetch_add_explicit(&core->node->partition_count, 1, memory_order_relaxed);
    leat_list_push_back(&core->data->care_logs, &partition->care);
    if (stream->deleted) leat_partition_delete(core, partition);
    *out_partition = partition;
    return LEAT_OK;
}

/* An append has waited for room for so long that room will not come by itself. Shorter waits are normal for a log
 * that opens or rolls its head.
 *
 * SUBTLE: a long wait on any core counts, since all cores share one pool. (1) The logs of core 1 have 3,700 heads of
 * the 4,096 that there is room for, and are idle. (2) The logs of core 2 want heads: core 2's own idle heads are
 * hibernated each second, and go to core 2's next logs. (3) No append waits on core 1, so its heads stay for a
 * minute. */
static bool room_is_short(const struct leat_core *core)
{
    struct leat_node *node = core->node;
    const uint64_t now_us = leat_core_now(core);
    if (!leat_list_empty(&core->data->room_waits)) {
        const struct leat_room_wait *oldest =
            LEAT_CONTAINER(core->data->room_waits.next, const struct leat_room_wait, by_time);
        uint64_t since_us = oldest->deadline_us - LEAT_APPEND_ROOM_US;
        if (now_us >= since_us + LEAT_NODE_PRESSED_US)
            atomic_store_explicit(&node->room_short_us, now_us, memory_order_relaxed);
    }
    uint64_t short_us = atomic_load_explicit(&node->room_short_us, memory_order_relaxed);
    return short_us != 0 && now_us < short_us + LEAT_NODE_SHORT_US;
}

static bool partition_memory_is_full(void *owner, bool spare, uint64_t bytes)
{
    const struct leat_partition *partition = owner;
    return leat_node_heap_is_full(partition->core->node, spare ? 0 : LEAT_HEAP_SPARE_BYTES, bytes);
}

/* Ten thousand open, idle heads leave no room for the head of an active log. */
static uint64_t hibernate_after_us(const struct leat_core *core)
{
    uint64_t wanted = core->node->options.hibernate_after_us;
    if (wanted == 0) wanted = LEAT_NODE_HIBERNATE_AFTER_US;
    bool pressed = room_is_short(core) || leat_node_pool_pressed(core->node, leat_core_now(core));
    return pressed && wanted > LEAT_NODE_HIBERNATE_PRESSED_US ? LEAT_NODE_HIBERNATE_PRESSED_US
                                                              : wanted;
}

leat_err leat_partition_open(struct leat_partition *partition, struct leat_segment *const *segs,
                             size_t seg_count, const struct leat_log_tail *tail)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    const struct leat_node *node = core->node;
    const struct leat_stream_desc *desc = partition->stream->desc;
    struct leat_log_options options = {
        .ref = partition->ref,
        .epoch = partition->epoch,
        .stream_name = desc->name,
        .settings = desc->settings,
        .incarnation = node->incarnation,
        .durability = leat_replicate_durability(&desc->settings),
        .hibernate_after_us = hibernate_after_us(partition->core),
        .producer_expiry_ms = PRODUCER_EXPIRY_MS,
        .remade = desc->remade,
        .restore_budget = &core->data->restore_budget,
        .events = {partition_on_dirty, partition_on_acked, partition_on_room, partition_on_opening,
                   partition_on_last_damaged, partition_on_damaged},
        .memory_is_full = partition_memory_is_full,
        .owner = partition,
        .actor = core,
    };
    memcpy(options.cluster_id, node->cluster_id, sizeof options.cluster_id);
    struct leat_store_port store_port;
    partition->holes = tail->holes;
    partition->unsure = leat_takeover_unsure(partition, segs, seg_count, tail);
    partition->hole_below = UINT64_MAX;
    partition->backfill = tail->backfill_follows ? LEAT_BACKFILL_UNDER_WAY : LEAT_BACKFILL_NONE;
    /* For a log that is made anew: a node that was down may have the missing segments. */
    partition->backfill_node_down &= tail->backfill_follows;
    partition->backfill_pass_node_down = false;
    leat_err rc = leat_replicate_attach(partition, segs, seg_count, tail, &store_port);
    if (rc == LEAT_OK && partition->stream->has_groups)
        rc = core->node->hooks->groups_attach(partition, &options);
    if (rc == LEAT_OK)
        rc = leat_log_create(core->env, &store_port, &core->timers, &options, segs, seg_count, tail,
                             &partition->log);
    if (rc == LEAT_OK && partition->groups != NULL) core->node->hooks->groups_made(partition);
    if (rc != LEAT_OK) {
        leat_list_remove(&partition->home);
        leat_groups_destroy(&partition->groups);
        leat_replicate_detach(partition);
    }
    return rc;
}

void leat_partition_destroy(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    struct leat_partition **at =
        &core->data->partitions[leat_partition_hash(partition->ref) & core->data->partition_mask];
    while (*at != partition)
        at = &(*at)->hash_next;
    *at = partition->hash_next;
    core->data->partition_count--;
    atomic_fetch_sub_explicit(&core->node->partition_count, 1, memory_order_relaxed);
    leat_list_remove(&partition->dirty);
    leat_list_remove(&partition->care);
    leat_list_remove(&partition->opening);
    leat_list_remove(&partition->home);
    leat_partition_wake(partition);
    LEAT_ASSERT(leat_list_empty(&partition->blocked));
    leat_groups_destroy(&partition->groups);
    leat_log_destroy(&partition->log);
    leat_replicate_detach(partition);
    if (partition->moving != NULL) core->node->hooks->part_gone(partition->moving);
    leat_mem_free(partition->segs);
    leat_mem_free(partition);
}

void leat_partition_wake(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    const struct leat_core_hooks *hooks = partition->core->node->hooks;
    hooks->room(partition);
    hooks->acked(partition);
}

/* ---- events of a log ---- */

bool leat_partition_lacks(const struct leat_partition *partition, const struct leat_read *read)
{
    LEAT_ASSERT_OWNER(partition->core);
    const struct leat_segment *first = leat_log_first_held(partition->log);
    if (read->rc != LEAT_E_DAMAGED || first == NULL) return false;
    if (read->next.v <= first->base_offset) return true;
    return partition->holes && leat_log_held(partition->log, read->next_position.segment) == NULL;
}

leat_err leat_partition_hope(const struct leat_partition *partition, const struct leat_read *read)
{
    LEAT_ASSERT_OWNER(partition->core);
    bool away = partition->backfill_node_down && leat_partition_lacks(partition, read);
    return away && !LEAT_BUG(AWAY_IS_LOST) ? LEAT_E_STARTING : read->rc;
}

void leat_partition_watch(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    if (partition->care_index == 0) return;
    partition->care_index = 0;
    leat_list_remove(&partition->care);
    leat_list_push_back(&partition->core->data->care_logs, &partition->care);
}

static void partition_on_dirty(void *owner, struct leat_log *log)
{
    struct leat_partition *partition = owner;
    struct leat_core *core = partition->core;
    (void)log;
    if (!leat_list_empty(&partition->dirty)) return;
    leat_list_push_back(&core->data->dirty_logs, &partition->dirty);
    leat_partition_watch(partition); /* the log was hibernated */
}

static void partition_on_acked(void *owner, struct leat_log *log)
{
    struct leat_partition *partition = owner;
    (void)log;
    if (!leat_list_empty(&partition->waiters)) partition->core->node->hooks->acked(partition);
}

static void partition_on_room(void *owner, struct leat_log *log)
{
    struct leat_partition *partition = owner;
    (void)log;
    partition->core->node->hooks->room(partition);
    if (partition->groups != NULL) leat_groups_on_room(partition->groups);
}

static void partition_on_opening(void *owner, struct leat_log *log)
{
    struct leat_partition *partition = owner;
    (void)log;
    if (leat_list_empty(&partition->opening))
        leat_list_push_back(&partition->core->data->opening_logs, &partition->opening);
}

/* This node became the owner by its catalogue, which a start does not compare with the segment's bytes. The end of the
 * log is committed, so any replica with exactly this end will do. So the log is given up as if another node owned it,
 * the damaged segment counts for nothing, and the takeover that follows fetches a good replica. */
static bool partition_on_last_damaged(void *owner, struct leat_log *log, struct leat_segment *seg)
{
    struct leat_partition *partition = owner;
    (void)log;
    if (partition->copies == NULL || leat_partition_goes(partition) || partition->core->stopping)
        return false;
    const struct leat_begun_log *row = leat_begun_find(partition->stream->begun, partition->ref);
    if (row == NULL || row->epoch.v != partition->epoch.v || row->record.opened ||
        row->record.tail.segment != seg->id.v || LEAT_BUG(LAST_DAMAGED_STAYS))
        return false;
    partition->last_damaged = seg;
    leat_node_log_warn(
        "stream %u, streamlet %u, log %u: its last segment is damaged here, and is looked "
        "for on other nodes",
        partition->ref.stream, partition->ref.streamlet, partition->ref.log);
    return true;
}

static leat_err partition_on_damaged(void *owner, const struct leat_segment *seg)
{
    const struct leat_partition *partition = owner;
    return partition->core->stopping ? LEAT_E_STARTING
                                     : partition->core->node->hooks->damaged(partition, seg);
}

/* ---- "opened" commits, many logs in one ---- */

/* SUBTLE: an entry is refused as a whole. (1) One entry has the first segments of two logs. (2) The stream of the
 * first log is deleted before the entry is applied, or its streamlet goes to another node. (3) The second log is
 * refused with the first, and would take no more appends until the next start. So after a refusal each log gets a
 * commit of its own. */
static bool opener_again(struct leat_opener *opener, leat_err rc)
{
    struct leat_core *core = opener->core;
    if (rc == LEAT_OK || opener->count == 1 || core->stopping) return false;
    /* no log of this entry is the cause */
    if (leat_err_class(rc) == LEAT_CLASS_RETRY || LEAT_BUG(OPENED_TOGETHER)) return false;
    for (uint32_t i = 0; i < opener->count; i++) {
        struct leat_partition *partition = leat_partition_find(core, opener->refs[i]);
        if (partition == NULL || partition->log == NULL) continue;
        partition->opens_alone = true;
        if (leat_list_empty(&partition->opening))
            leat_list_push_back(&core->data->opening_logs, &partition->opening);
    }
    return true;
}

static void opener_on_done(struct leat_coordinate *request)
{
    struct leat_opener *opener = request->owner;
    struct leat_core *core = opener->core;
    core->data->openers_busy &= ~(1u << (uint32_t)(opener - core->data->openers));
    if (opener_again(opener, request->rc)) {
        leat_partition_send_openings(core);
        return;
    }
    /* UNKNOWN_STREAM: the stream was deleted before the first append; the deletion is on its way to this core. */
    if (request->rc != LEAT_OK && request->rc != LEAT_E_UNKNOWN_STREAM)
        leat_node_log_error("the coordinator did not commit the first segments of %u logs: %s",
                            opener->count, request->error.text);
    for (uint32_t i = 0; i < opener->count; i++) {
        struct leat_partition *partition = leat_partition_find(core, opener->refs[i]);
        if (partition == NULL || partition->log == NULL) continue;
        partition->opens_alone = false;
        if (partition->copies != NULL) leat_primary_opened(partition->copies, request->rc);
        leat_log_opened(partition->log, request->rc);
    }
    if (!leat_list_empty(&core->data->opening_logs)) leat_partition_send_openings(core);
}

void leat_partition_send_openings(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    for (uint32_t i = 0; i < LEAT_OPENERS_MAX && !leat_list_empty(&core->data->opening_logs); i++) {
        if ((core->data->openers_busy & 1u << i) != 0) continue;
        struct leat_opener *opener = &core->data->openers[i];
        struct leat_epoch epoch =
            LEAT_CONTAINER(core->data->opening_logs.next, struct leat_partition, opening)->epoch;
        opener->core = core;
        opener->count = 0;
        opener->version = 0;
        LEAT_LIST_EACH(&core->data->opening_logs, link)
        {
            struct leat_partition *partition = LEAT_CONTAINER(link, struct leat_partition, opening);
            if (opener->count == LEAT_OPENER_LOGS_MAX) break;
            if (partition->epoch.v != epoch.v) continue;
            if (partition->opens_alone && opener->count > 0) continue;
            uint32_t version =
                partition->copies != NULL ? leat_primary_opening(partition->copies) : 1;
            if (opener->version == 0) opener->version = version;
            if (version != opener->version) continue;
            leat_list_remove(&partition->opening);
            opener->refs[opener->count++] = partition->ref;
            if (partition->opens_alone) break;
        }
        memset(&opener->request, 0, sizeof opener->request);
        opener->request.kind = LEAT_COORDINATE_OPENED;
        opener->request.logs = opener->refs;
        opener->request.log_count = opener->count;
        opener->request.epoch = epoch;
        opener->request.version = opener->version;
        opener->request.incarnation = core->node->incarnation;
        opener->request.on_done = opener_on_done;
        opener->request.owner = opener;
        core->data->openers_busy |= 1u << i;
        leat_coordinate(core->env->post, &opener->request);
    }
}

/* ---- care ---- */

/* SUBTLE: a log that stops may wait for what only other nodes can give: its first segment is to be committed as
 * opened, or what came in place of a lost copy. (1) Two of three nodes are gone. (2) This one is to stop. (3)
 * Nothing is committed any more, and it would never end. So after a while it ends as in a crash, which loses
 * nothing that was acknowledged: what lies in memory stays there for the next start. */
static void care_while_stopping(struct leat_core *core)
{
    bool abandon = ++core->data->stop_ticks == LEAT_STOP_TICKS && core->members.links != NULL &&
                   !LEAT_BUG(STOP_UNTOLD);
    if (core->stopped) return;
    if (abandon)
        leat_node_complain(core->node,
                           "%u logs of core %u wait for other nodes, and are left as they are: the "
                           "next start treats them as after a crash",
                           core->data->logs_to_stop, core->index);
    LEAT_LIST_EACH(&core->data->care_logs, link)
    {
        struct leat_partition *partition = LEAT_CONTAINER(link, struct leat_partition, care);
        if (!leat_partition_goes(partition) || partition->state == LEAT_PARTITION_DRAINED ||
            partition->give_up != NULL)
            continue;
        leat_log_care(partition->log);
        if (!abandon) continue;
        if (partition->copies != NULL) leat_primary_log_abandon(partition->copies);
        leat_log_abandon(partition->log);
    }
}

/* A log that has stopped meanwhile reports nothing here: its refusals give the reason why it stopped. */
static void front_damage_tell(struct leat_core *core, struct leat_partition *partition)
{
    struct leat_log_info info;
    if (!partition->damage_untold) return;
    leat_log_info(partition->log, &info);
    if (info.state == LEAT_LOG_SERVING)
        core->node->hooks->front_known(core, partition);
    else
        partition->damage_untold = false;
}

void leat_partition_care(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (core->stopping) {
        care_while_stopping(core);
        return;
    }
    struct leat_log_info info;
    uint64_t hibernate_us = hibernate_after_us(core);
    LEAT_LIST_EACH(&core->data->care_logs, link)
    {
        struct leat_partition *partition = LEAT_CONTAINER(link, struct leat_partition, care);
        /* SUBTLE: a log that stops for a move still gets its care. (1) The coordinators refuse its first segment for
         * now, as they have no room. (2) The log is to go to another node, and is stopped. (3) The stop waits for the
         * commit, and without care the log would not ask for the commit again: the streamlet would stand still for
         * ever. */
        if (partition->moving != NULL) leat_log_care(partition->log);
        if (leat_partition_goes(partition)) continue;
        leat_log_hibernate_after_set(partition->log, hibernate_us);
        leat_log_care(partition->log);
        front_damage_tell(core, partition);
        bool due = partition->backfill == LEAT_BACKFILL_DUE;
        if (due && ++partition->backfill_ticks % LEAT_OLDER_TICKS == 0)
            core->node->hooks->older(partition);
        leat_log_info(partition->log, &info);
        bool reads = leat_log_reads_wait(partition->log);
        partition->reads_ticks = reads ? partition->reads_ticks + 1 : 0;
        if (partition->reads_ticks > LEAT_OLDER_READ_TICKS) {
            partition->reads_ticks = 0;
            leat_log_reads_expire(partition->log);
        }
        if (info.memory_bytes != 0 || partition->backfill == LEAT_BACKFILL_DUE || reads) continue;
        partition->care_index = 1;
        leat_list_remove(&partition->care);
        leat_list_push_back(&core->data->idle_logs, &partition->care);
    }
    /* A slice of the idle logs: taken at the head of their list, put back at its tail. */
    uint32_t slice = core->data->partition_count / CARE_IDLE_TICKS + 1;
    for (uint32_t i = 0; i < slice && !leat_list_empty(&core->data->idle_logs); i++) {
        struct leat_partition *partition = LEAT_CONTAINER(
            leat_list_pop_front(&core->data->idle_logs), struct leat_partition, care);
        leat_list_push_back(&core->data->idle_logs, &partition->care);
        if (leat_partition_goes(partition)) continue;
        leat_log_care(partition->log);
        front_damage_tell(core, partition);
    }
}
