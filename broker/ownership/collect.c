/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the recovery leader: this node reports its replicas of logs without a living owner, and fetches the
 * replicas where these logs end. All on core 0, where the replicas are.
 *
 * First the fence, then the look: leat_backup_fence() revokes the memory that the dead owner could still write into,
 * whatever the transport, and has open replicas moved into private copies. So the replicas that are reported here
 * hold every byte that the dead owner ever acked or will ever ack. */
#include "broker/ownership/collect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/disk_read.h"
#include "base/log_rows.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/ownership/filter.h"

enum { ROWS_FIRST = 64, LOOK_TRIES = 100, LOOK_AGAIN_US = 10 * 1000, FENCE_LATE_US = 20 * 1000 };

/* ---- collecting ---- */

struct collecting {
    struct leat_node *node;
    struct leat_collect *collect;
    unsigned fences; /* under way; one more until all are started */
    struct leat_replica_row *rows;
    struct leat_segment_place {
        struct leat_file *file;
        uint64_t offset;
        /* Handle of the row's replica, if the replica's bytes have to be compared with the log's decided end;
         * otherwise 0. */
        uint64_t look;
    } * places; /* [room], one for each row. file NULL: the row's start entry need not be read */
    size_t count, room, reading; /* reading: the row that is looked at or read */
    struct leat_timer timer;
    unsigned tries; /* to begin the comparison of this row's replica */
    uint64_t begun_us, fenced_us;
    leat_err rc;
    struct leat_disk_read read;
};

static const struct leat_collect_log *log_find(const struct collecting *it, struct leat_log_ref ref)
{
    const struct leat_collect *collect = it->collect;
    size_t at = LEAT_LOG_ROWS_FROM(collect->logs, collect->log_count, log, ref);
    bool found = at < collect->log_count && leat_log_ref_equal(collect->logs[at].log, ref);
    return found ? &collect->logs[at] : NULL;
}

/* Was the last answer to the same question, with the same number of replicas? While a log waits, the leader asks again
 * and again, and the node log shall have one line. */
static bool told_before(struct collecting *it)
{
    const struct leat_collect *collect = it->collect;
    uint64_t counts[] = {collect->crashed_count, collect->log_count, it->count, (uint64_t)it->rc};
    uint32_t crc = leat_crc32c(0, counts, sizeof counts);
    for (size_t i = 0; i < collect->crashed_count; i++)
        crc = leat_crc32c(crc, &collect->crashed[i].incarnation,
                          sizeof collect->crashed[i].incarnation);
    uint64_t told = (uint64_t)crc | 1ull << 32; /* 0: nothing was told yet */
    bool before = it->node->collect_told == told;
    it->node->collect_told = told;
    return before;
}

static void collect_end(struct collecting *it)
{
    struct leat_collect *collect = it->collect;
    const struct leat_post *post = it->node->cores[0].env->post;
    leat_node_log(told_before(it) ? LEAT_NODE_LOG_DEBUG : LEAT_NODE_LOG_INFO,
                  "recovery %08" PRIx32 ": fenced %zu incarnations in %" PRIu64
                  " us here, found %zu replicas of %zu logs in %" PRIu64 " us%s%s",
                  (uint32_t)collect->attempt, collect->crashed_count, it->fenced_us - it->begun_us,
                  it->count, collect->log_count, leat_core_now(&it->node->cores[0]) - it->fenced_us,
                  it->rc == LEAT_OK ? "" : ": ", it->rc == LEAT_OK ? "" : leat_err_text(it->rc));
    collect->rc = it->rc;
    if (it->rc == LEAT_OK) {
        collect->rows = it->rows;
        collect->row_count = it->count;
    } else {
        leat_mem_free(it->rows);
    }
    leat_mem_free(it->places);
    leat_disk_read_free(&it->read);
    leat_mem_free(it);
    leat_collected(post, collect);
}

static bool collect_wanted(void *arg, struct leat_log_ref log)
{
    return log_find(arg, log) != NULL;
}

/* Room for one row more. leat_mem_realloc() fills new places with zeros. */
static bool row_room(struct collecting *it)
{
    if (it->count < it->room) return true;
    size_t room = it->room == 0 ? ROWS_FIRST : 2 * it->room;
    void *rows = leat_mem_realloc(LEAT_MEM_BROKER, it->rows, room, sizeof *it->rows);
    if (rows != NULL) it->rows = rows;
    void *places = leat_mem_realloc(LEAT_MEM_BROKER, it->places, room, sizeof *it->places);
    if (places != NULL) it->places = places;
    if (rows == NULL || places == NULL) return false;
    it->room = room;
    return true;
}

static bool begins_with(const struct leat_replica_info *info, struct leat_prefix_id prefix_id)
{
    const struct leat_segment *seg = info->seg;
    struct leat_scan scan;
    if (leat_prefix_id_equal(info->prefix_id, prefix_id)) return true;
    for (unsigned i = 0; i < LEAT_BEGINS_MAX; i++)
        if (leat_prefix_id_equal(info->begins[i], prefix_id)) return true;
    if (seg->buffer == NULL || info->prefix_id.bytes < prefix_id.bytes) return false;
    leat_scan_segment(seg->buffer, prefix_id.bytes, &scan);
    return leat_scan_is(&scan, prefix_id);
}

/* The prefix id that a replica must begin with, if its segment has the decided end of its log. Replicas that an
 * opened log's own epoch wrote begin after this end. */
static struct leat_prefix_id end_wanted(const struct leat_log_record *record, uint64_t segment,
                                        struct leat_epoch epoch)
{
    const struct leat_tail_record *end = leat_log_decided(record);
    bool own = record->opened && epoch.v == record->stamp_epoch.v;
    return end == NULL || own || end->segment != segment ? (struct leat_prefix_id){0, 0}
                                                         : end->prefix_id;
}

static void collect_see(void *arg, const struct leat_replica_info *info)
{
    struct collecting *it = arg;
    const struct leat_log_record *record = &log_find(it, info->log)->record;
    if (info->incomplete) return;
    if (!info->damaged && !info->mark && info->state != LEAT_SEGMENT_CLOSED) return;
    if (!row_room(it)) {
        it->rc = LEAT_E_NO_MEMORY;
        return;
    }
    if (info->damaged) {
        it->rows[it->count++] = (struct leat_replica_row){.log = info->log,
                                                          .segment = info->segment.v,
                                                          .kind = LEAT_REPLICA_LOST,
                                                          .epoch = info->epoch,
                                                          .version = info->version};
        return;
    }
    struct leat_prefix_id end = end_wanted(record, info->segment.v, info->epoch);
    if (info->state == LEAT_SEGMENT_HIBERNATED && info->only_start)
        it->places[it->count] =
            (struct leat_segment_place){info->seg->file, info->seg->file_offset, 0};
    bool holds = end.bytes != 0 && begins_with(info, end);
    if (end.bytes != 0 && !holds) it->places[it->count].look = info->handle;
    it->rows[it->count++] = (struct leat_replica_row){
        .log = info->log,
        .segment = info->segment.v,
        .kind = info->mark ? LEAT_REPLICA_MARK : LEAT_REPLICA_CLOSED,
        .epoch = info->epoch,
        .version = info->version,
        .prefix_id = info->prefix_id,
        .previous = info->previous,
        .base_offset = info->base_offset,
        .next_offset = info->next_offset,
        .max_timestamp_ms = info->max_timestamp_ms,
        .only_start = info->mark && info->only_start,
        .torn = info->mark && info->torn,
        .durable = info->durable,
        .holds_tail = holds,
        .provisional = info->provisional,
    };
}

static int row_order(const void *left, const void *right)
{
    const struct leat_replica_row *a = left, *b = right;
    int order = leat_log_ref_order(a->log, b->log);
    if (order != 0) return order;
    return a->segment < b->segment ? -1 : a->segment > b->segment;
}

static void rows_filter(struct collecting *it)
{
    size_t kept = 0;
    if (it->count > 0) qsort(it->rows, it->count, sizeof *it->rows, row_order);
    for (size_t first = 0, end; first < it->count; first = end) {
        for (end = first;
             end < it->count && leat_log_ref_order(it->rows[end].log, it->rows[first].log) == 0;)
            end++;
        const struct leat_log_record *record = &log_find(it, it->rows[first].log)->record;
        size_t told = leat_rows_filter(&it->rows[first], end - first, record);
        memmove(&it->rows[kept], &it->rows[first], told * sizeof *it->rows);
        kept += told;
    }
    it->count = kept;
}

/* ---- hibernated without a batch: the file says which segment precedes it ---- */

static void starts_read(struct collecting *it);

static void on_start_read(struct leat_disk_io *io)
{
    struct collecting *it = io->owner;
    struct leat_replica_row *row = &it->rows[it->reading];
    struct leat_scan scan = {0};
    if (leat_disk_read_count(&it->read) >= row->prefix_id.bytes)
        leat_scan_segment(it->read.bytes, row->prefix_id.bytes, &scan);
    if (leat_scan_is(&scan, row->prefix_id)) {
        row->previous = scan.previous;
        row->base_offset = scan.base_offset;
        row->only_start = leat_scan_only_start(&scan);
    } else {
        /* Without its start entry the replica does not say which segment precedes it, so it is no open replica. A
         * closed replica without a prefix id counts for nothing (metadata/tail.c). */
        row->kind = LEAT_REPLICA_CLOSED;
        row->prefix_id = (struct leat_prefix_id){0, 0};
    }
    it->reading++;
    starts_read(it);
}

static void on_looked(void *arg, bool begins)
{
    struct collecting *it = arg;
    it->rows[it->reading].holds_tail = begins;
    starts_read(it);
}

static void on_look_timer(struct leat_timer *timer)
{
    starts_read(timer->owner);
}

/* SUBTLE: the node reports nothing rather than some of its replicas. Else (1) the only replica with the end of a log
 * is longer than the end, and is in use now, so this node can't look at it; (2) every node has answered, and none has
 * reported the end: the log waits, and an operator accepts a loss. */
static bool look_start(struct collecting *it)
{
    struct leat_core *core = &it->node->cores[0];
    struct leat_segment_place *place = &it->places[it->reading];
    const struct leat_replica_row *row = &it->rows[it->reading];
    struct leat_prefix_id end =
        end_wanted(&log_find(it, row->log)->record, row->segment, row->epoch);
    leat_err rc = leat_backup_look(core->data->replicate->backup, place->look, end, on_looked, it);
    bool again = rc == LEAT_E_AGAIN || rc == LEAT_E_NO_MEMORY;
    if (again && ++it->tries < LOOK_TRIES && !core->stopping) {
        it->timer = (struct leat_timer){.on_expired = on_look_timer, .owner = it};
        leat_timer_start(&core->timers, &it->timer, LOOK_AGAIN_US);
        return true;
    }
    place->look = 0;
    it->tries = 0; /* counted for each replica */
    if (again) it->rc = rc;
    return rc == LEAT_OK;
}

static void starts_read(struct collecting *it)
{
    for (; it->rc == LEAT_OK && it->reading < it->count; it->reading++) {
        if (it->places[it->reading].look != 0 && look_start(it)) return;
        if (it->places[it->reading].file != NULL) break;
    }
    if (it->reading == it->count || it->rc != LEAT_OK) {
        if (it->rc == LEAT_OK) rows_filter(it);
        collect_end(it);
        return;
    }
    /* Nearly always one block. A start entry with the state of many producers is longer. */
    uint32_t bytes = it->rows[it->reading].prefix_id.bytes;
    if (!leat_disk_read_reserve(&it->read, LEAT_MEM_BROKER, bytes)) {
        it->rc = LEAT_E_NO_MEMORY;
        collect_end(it);
        return;
    }
    const struct leat_segment_place *place = &it->places[it->reading];
    leat_disk_read_start(&it->read, it->node->cores[0].env->disk, place->file, place->offset, bytes,
                         on_start_read, it);
}

static void look(struct collecting *it)
{
    leat_backup_collect(it->node->cores[0].data->replicate->backup, collect_wanted, collect_see,
                        it);
}

static void on_fenced(void *arg)
{
    struct collecting *it = arg;
    if (--it->fences > 0) return;
    it->fenced_us = leat_core_now(&it->node->cores[0]);
    if (it->rc == LEAT_OK && !LEAT_BUG(FENCE_AFTER_LOOK)) look(it);
    starts_read(it);
}

static void fences_start(struct collecting *it)
{
    const struct leat_collect *collect = it->collect;
    struct leat_core *core = &it->node->cores[0];
    it->fences = 1;
    for (size_t i = 0; i < collect->crashed_count; i++) {
        const struct leat_crashed_node *crashed = &collect->crashed[i];
        if (strcmp(crashed->name, core->node->name) == 0) continue;
        leat_err rc = leat_backup_fence(core->data->replicate->backup, crashed->name,
                                        crashed->incarnation, on_fenced, it);
        if (rc == LEAT_OK)
            it->fences++;
        else
            it->rc = rc;
    }
    on_fenced(it);
}

static void on_fence_timer(struct leat_timer *timer)
{
    fences_start(timer->owner);
}

static void collect_begin(struct leat_core *core, struct leat_collect *collect)
{
    struct collecting *it = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *it);
    if (it == NULL) {
        collect->rc = LEAT_E_NO_MEMORY;
        leat_collected(core->env->post, collect);
        return;
    }
    it->node = core->node;
    it->collect = collect;
    it->begun_us = leat_core_now(core);
    if (LEAT_BUG(FENCE_AFTER_LOOK)) {
        look(it);
        it->timer = (struct leat_timer){.on_expired = on_fence_timer, .owner = it};
        leat_timer_start(&core->timers, &it->timer, FENCE_LATE_US);
        return;
    }
    fences_start(it);
}

static struct leat_node *node_of(void *actor)
{
    return ((struct leat_core *)actor)->node;
}

static void collect_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_collect *collect = LEAT_CONTAINER(mail, struct leat_collect, mail);
    if (leat_node_is_up(node_of(actor)) && core->data->replicate->backup != NULL &&
        !core->stopping) {
        collect_begin(core, collect);
        return;
    }
    collect->rc = LEAT_E_STARTING; /* it does not know all its replicas yet, or stops */
    leat_collected(core->env->post, collect);
}

void leat_node_on_collect(void *owner, struct leat_collect *collect)
{
    struct leat_node *node = owner;
    const struct leat_post *post = node->options.coordinator_env->post;
    collect->mail.deliver = collect_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &collect->mail);
}

/* ---- pulling ---- */

struct pulling {
    struct leat_core *core;
    struct leat_pull *pull;
    struct leat_backup_pull backup_pull;
    struct leat_timer timer;
    unsigned tries, closed; /* closed: how often a source's connection broke */
};
enum { PULL_TRIES = 100, PULL_CLOSED_TRIES = 5, PULL_AGAIN_US = 10 * 1000 };

static void pulling_step(struct pulling *it);

static void pulling_end(struct pulling *it, leat_err rc)
{
    struct leat_pull *pull = it->pull;
    const struct leat_post *post = it->core->env->post;
    pull->rc = rc;
    if (rc != LEAT_OK)
        leat_error_set(&pull->error, rc, "segment %llu can't be had: %s",
                       (unsigned long long)pull->segment, leat_err_text(rc));
    leat_mem_free(it);
    leat_pulled(post, pull);
}

static void pulling_on_timer(struct leat_timer *timer)
{
    pulling_step(timer->owner);
}

static void pulling_later(struct pulling *it, leat_err rc)
{
    if (++it->tries == PULL_TRIES || it->core->stopping)
        pulling_end(it, rc);
    else
        leat_timer_start(&it->core->timers, &it->timer, PULL_AGAIN_US);
}

static void pulling_on_flushed(void *arg, leat_err rc)
{
    pulling_end(arg, rc);
}

/* A busy source is asked again for as long as a busy backup here is. A source whose connection broke is asked again,
 * too: the link is made anew at once, and otherwise the log would wait half a second for the next attempt of its
 * recovery. But only PULL_CLOSED_TRIES times: a source that stays away is dead, and all other logs of the attempt
 * wait for this pull. */
static void pulling_on_pulled(struct leat_backup_pull *backup_pull, leat_err rc)
{
    struct pulling *it = backup_pull->owner;
    bool broke = rc == LEAT_E_CLOSED && ++it->closed < PULL_CLOSED_TRIES;
    if (rc == LEAT_E_AGAIN || broke)
        pulling_later(it, rc);
    else
        pulling_end(it, rc);
}

static void sources_fill(struct pulling *it)
{
    struct leat_backup_pull *to = &it->backup_pull;
    to->node_count = 0;
    for (uint32_t s = 0; s < it->pull->source_count; s++) {
        const struct leat_member *member = leat_member_named(it->core, it->pull->sources[s].node);
        if (member != NULL && !member->self) to->nodes[to->node_count++] = member->number;
    }
}

static void pulling_step(struct pulling *it)
{
    struct leat_backup *backup = it->core->data->replicate->backup;
    const struct leat_pull *pull = it->pull;
    const struct leat_segment_id segment = {pull->segment};
    bool own = false;
    for (uint32_t s = 0; s < pull->source_count; s++)
        own |= strcmp(pull->sources[s].node, it->core->node->name) == 0;
    if (leat_backup_holds(backup, pull->log, segment, pull->prefix_id) || own) {
        leat_err rc =
            leat_backup_flush(backup, pull->log, segment, pull->prefix_id, pulling_on_flushed, it);
        if (rc == LEAT_E_AGAIN || rc == LEAT_E_NO_MEMORY) pulling_later(it, rc);
        if (rc == LEAT_OK || rc == LEAT_E_AGAIN || rc == LEAT_E_NO_MEMORY) return;
    }
    it->backup_pull = (struct leat_backup_pull){.log = pull->log,
                                                .segment = segment,
                                                .prefix_id = pull->prefix_id,
                                                .next_offset = pull->next_offset,
                                                .version = pull->version,
                                                .provisional = !LEAT_BUG(PROVISIONAL_COUNTS),
                                                .on_done = pulling_on_pulled,
                                                .owner = it};
    sources_fill(it);
    leat_err rc = leat_backup_pull(backup, &it->backup_pull);
    if (rc == LEAT_E_AGAIN)
        pulling_later(it, rc);
    else if (rc != LEAT_OK)
        pulling_end(it, rc);
}

static void pull_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_pull *pull = LEAT_CONTAINER(mail, struct leat_pull, mail);
    struct pulling *it = NULL;
    bool able =
        leat_node_is_up(node_of(actor)) && core->data->replicate->backup != NULL && !core->stopping;
    if (able) it = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *it);
    if (it == NULL) {
        pull->rc = able ? LEAT_E_NO_MEMORY : LEAT_E_STARTING;
        leat_error_set(&pull->error, pull->rc, "%s", leat_err_text(pull->rc));
        leat_pulled(core->env->post, pull);
        return;
    }
    it->core = core;
    it->pull = pull;
    it->timer = (struct leat_timer){.on_expired = pulling_on_timer, .owner = it};
    pulling_step(it);
}

void leat_node_on_pull(void *owner, struct leat_pull *pull)
{
    struct leat_node *node = owner;
    const struct leat_post *post = node->options.coordinator_env->post;
    pull->mail.deliver = pull_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &pull->mail);
}

/* ---- how this node stands ---- */

static void crashed_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_node *node = core->node;
    (void)mail;
    /* Also while the node stops: an orderly stop would wait for copies that other nodes refuse now. */
    if (core->stopping && LEAT_BUG(STOP_UNTOLD)) return;
    if (node->options.on_crashed != NULL) node->options.on_crashed(node->options.owner);
}

void leat_node_on_standing(void *owner, enum leat_standing standing)
{
    struct leat_node *node = owner;
    const struct leat_post *post = node->options.coordinator_env->post;
    /* The coordinator's actor alone writes the standing. No actor may read another standing after CRASHED. */
    unsigned before = atomic_load_explicit(&node->standing, memory_order_relaxed);
    if (before == LEAT_STANDING_CRASHED) return;
    atomic_store_explicit(&node->standing, standing, memory_order_relaxed);
    if (standing == LEAT_STANDING_ALONE)
        leat_node_log_warn(
            "no other node is heard, this process was stopped for a while, or another "
            "node says that "
            "this one was declared crashed: nothing is served before the cluster has "
            "confirmed that "
            "this node is up");
    if (standing == LEAT_STANDING_CONFIRMED && before == LEAT_STANDING_ALONE)
        leat_node_log_info("the cluster confirms that this node is up");
    if (standing != LEAT_STANDING_CRASHED) return;
    leat_node_log_error("this node was declared crashed: other nodes have its streamlets by now");
    node->crashed_mail.deliver = crashed_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &node->crashed_mail);
}
