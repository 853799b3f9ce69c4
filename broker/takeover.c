/* Logs that come: see handover.h. All of it on core 0, where the replicas are, but for the moment in
 * which a segment is given to a log on the log's own core. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/diary.h"
#include "base/mem.h"
#include "broker/below.h"
#include "broker/core.h"
#include "broker/handover.h"

enum { BLOCK_BYTES = 4096 };

enum phase {
    PHASE_TAIL,  /* the last segment, with which the log is made */
    PHASE_OLDER, /* the one before the last that came */
    PHASE_ENDED, /* telling the log that no more come */
};

struct leat_takeover {
    struct leat_list link;
    struct leat_mail mail;
    struct leat_node *node;
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint32_t home;
    struct leat_tail_record tail;
    enum phase phase;
    bool busy;      /* something is under way that comes back by itself */
    bool complete;  /* ENDED: nothing is missing */
    bool absent;    /* TAIL: on its way to say that the last segment is nowhere */
    bool away;      /* ENDED: a node was down when the last one was looked for */
    bool again;     /* it was looked for before: whoever has it had time to say so */
    bool all_asked; /* the last time no node was down */
    bool none_left; /* ENDED: what was in front went with what an operator gave up */
    bool behind;    /* another one of the same log has not ended yet */
    bool over;      /* a later epoch's is behind this one */
    /* The segment that is wanted now; extent {0, 0}: nothing names it, the newest up to there. */
    uint64_t segment, next_offset;
    struct leat_extent extent;
    uint64_t first_retained;
    struct leat_segment *seg; /* adopted, on its way to the log */
    struct leat_start start;  /* its */
    uint64_t again_us, since_us, missing_us;
    unsigned failures, nowhere; /* in a row; of these, that no node had it */
    leat_err rc;                /* of giving it to the log */
    union {
        struct leat_backup_pull pull;
        struct leat_below below;
    };
    struct leat_disk_io io; /* of the start entry, into block_raw */
    uint8_t *block_raw;
    uint32_t block_bytes, start_of; /* of the segment that is read: all its bytes */
};

static void takeovers_step(struct leat_core *core);
static void start_read(struct leat_takeover *takeover);

static struct leat_core *core_0(const struct leat_takeover *takeover)
{
    return &takeover->node->cores[0];
}

/* ---- driving ---- */

static void kick_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->takeovers.kicked = false;
    takeovers_step(core);
}

static void kick(struct leat_core *core)
{
    if (core->takeovers.kicked) return;
    core->takeovers.kicked = true;
    leat_core_mail(core, 0, &core->takeovers.kick, kick_deliver);
}

static void on_timer(struct leat_timer *timer)
{
    takeovers_step(timer->owner);
}

/* Not now: somewhat later. */
static void pause_for(struct leat_takeover *takeover, uint64_t us)
{
    takeover->again_us = leat_core_now(core_0(takeover)) + us;
    takeover->busy = false;
}

static void takeover_free(struct leat_takeover *takeover)
{
    LEAT_LIST_EACH(&core_0(takeover)->takeovers.all, it)
    {
        struct leat_takeover *next = LEAT_CONTAINER(it, struct leat_takeover, link);
        if (next == takeover || !leat_log_ref_equal(next->ref, takeover->ref)) continue;
        next->behind = false; /* of several the first, since they stand in order */
        break;
    }
    leat_list_remove(&takeover->link);
    leat_mem_free(takeover->block_raw);
    leat_mem_free(takeover);
}

/* ---- giving a segment to its log ---- */

static void home_deliver(void *actor, struct leat_mail *mail);
static void back_deliver(void *actor, struct leat_mail *mail);

static void to_home(struct leat_takeover *takeover)
{
    takeover->busy = true;
    leat_core_mail(core_0(takeover), takeover->home, &takeover->mail, home_deliver);
}

static leat_err may_make(struct leat_core *core, struct leat_takeover *takeover,
                         struct leat_stream **out_stream)
{
    struct leat_stream *stream = leat_stream_find(core, takeover->ref.stream);
    if (core->stopping) return LEAT_E_STARTING;
    if (stream == NULL || !leat_core_owns(core, stream->desc, takeover->ref.streamlet))
        return LEAT_E_NOT_OWNER;
    const struct leat_begun_log *row = leat_begun_find(stream->begun, takeover->ref);
    if (row == NULL || row->epoch.v != takeover->epoch.v) return LEAT_E_NOT_OWNER;
    *out_stream = stream;
    return LEAT_OK;
}

/* Where it ends is nowhere: the log is made without any segment, as one that waits, so that it is told
 * of and an operator can give up what is missing. It is looked for all the same. known: the best that
 * there is. */
static leat_err stand_in(struct leat_core *core, struct leat_stream *stream,
                         struct leat_log_ref ref, struct leat_epoch epoch,
                         const struct leat_tail_record *known, const char *why)
{
    bool none = known->segment == UINT64_MAX;
    struct leat_log_tail tail = {.next_segment = none ? 0 : known->segment + 1,
                                 .next_offset = known->next_offset,
                                 .previous = known->extent,
                                 .stands_in = true};
    struct leat_hosted *hosted;
    leat_err rc = leat_hosted_create(core, stream, ref, epoch, NULL, 0, &tail, &hosted);
    if (rc != LEAT_OK) return rc;
    hosted->tail_away = true;
    hosted->highest_segment = known->segment;
    hosted->highest_offset = known->next_offset;
    hosted->highest_extent = known->extent;
    leat_log_set_state(hosted->log, LEAT_LOG_WAITING, why);
    const char *name = stream->desc->name;
    leat_diary_error(
        "stream \"%s\", streamlet %u, log %u waits: %s; if it can't come back: leat log "
        "recover %s --streamlet %u --log %u --accept-loss",
        name, ref.streamlet, ref.log, why, name, ref.streamlet, ref.log);
    return LEAT_OK;
}

static leat_err make_waiting(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_stream *stream;
    leat_err rc = may_make(core, takeover, &stream);
    if (rc != LEAT_OK) return rc;
    if (leat_hosted_find(core, takeover->ref) != NULL) return LEAT_E_AGAIN;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "its last segment %llu is on no node that is up",
             (unsigned long long)takeover->tail.segment);
    return stand_in(core, stream, takeover->ref, takeover->epoch, &takeover->tail, why);
}

/* Recovery has given the streamlet here, not decided where this log of it ends, and heard all nodes.
 * Before that clients are told to try again: a node that is down may come back with it. */
static void stand_in_undecided(struct leat_core *core, const struct leat_begun_log *row)
{
    struct leat_stream *stream = leat_stream_find(core, row->ref.stream);
    const struct leat_log_record *record = &row->record;
    if (record->heard == 0 || record->stamp_epoch.v == row->epoch.v || stream == NULL ||
        core->stopping)
        return;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why,
             "its end, of epoch %u and version %u, is on no node that is up (leat cluster status)",
             record->stamp_epoch.v, record->stamp_version);
    if (stand_in(core, stream, row->ref, row->epoch, &record->tail, why) != LEAT_OK)
        stream->logs_missing = core->logs_missing = true; /* the next tick tries again */
}

static leat_err make_log(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_stream *stream;
    leat_err may = may_make(core, takeover, &stream);
    if (may != LEAT_OK) return may;
    struct leat_hosted *there = leat_hosted_find(core, takeover->ref);
    if (there != NULL && there->epoch.v == takeover->epoch.v && !there->tail_away)
        return LEAT_E_NOT_OWNER; /* it is made: asked for twice */
    if (there != NULL && there->tail_away && !there->going) leat_hosted_give_up(there);
    if (there != NULL) return LEAT_E_AGAIN;
    struct leat_log_tail tail = {
        .next_segment = takeover->tail.segment == UINT64_MAX ? 0 : takeover->tail.segment + 1,
        .next_offset = takeover->tail.next_offset,
        .jumped = takeover->tail.jumped,
        .older_follow = takeover->seg != NULL && takeover->seg->id.v > 0,
    };
    if (takeover->seg != NULL && !tail.jumped) tail.previous = takeover->seg->extent;
    struct leat_hosted *hosted;
    return leat_hosted_create(core, stream, takeover->ref, takeover->epoch, &takeover->seg,
                              takeover->seg != NULL ? 1 : 0, &tail, &hosted);
}

static leat_err add_older(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_hosted *hosted = leat_hosted_find(core, takeover->ref);
    if (core->stopping) return LEAT_E_STARTING;
    if (hosted == NULL || hosted->give_up != NULL || hosted->epoch.v != takeover->epoch.v)
        return LEAT_E_NOT_OWNER;
    leat_err rc = leat_log_segment_add(hosted->log, takeover->seg);
    if (rc != LEAT_OK) return rc;
    if (hosted->copies != NULL) rc = leat_primary_log_add(hosted->copies, takeover->seg);
    /* Without memory for that its copies are not looked after until the next start. */
    if (rc != LEAT_OK) leat_diary_warn("no memory to look after copies of a segment");
    uint64_t first = leat_log_first_retained(hosted->log);
    if (first > takeover->first_retained) takeover->first_retained = first;
    return LEAT_OK;
}

static leat_err tell_ended(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_hosted *hosted = leat_hosted_find(core, takeover->ref);
    if (core->stopping) return LEAT_E_STARTING;
    if (hosted == NULL || hosted->give_up != NULL || hosted->epoch.v != takeover->epoch.v)
        return LEAT_E_NOT_OWNER;
    if (takeover->none_left && !leat_log_front_known(hosted->log)) return LEAT_E_AGAIN;
    if (takeover->none_left || (!takeover->complete && !takeover->away))
        leat_log_front_give_up(hosted->log, takeover->none_left);
    leat_log_older_done(hosted->log);
    hosted->older_asked = !takeover->complete;
    hosted->older_away = hosted->older_asked && takeover->away;
    if (takeover->complete && hosted->copies != NULL) leat_primary_log_whole(hosted->copies);
    return LEAT_OK;
}

static void home_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    switch (takeover->phase) {
    case PHASE_TAIL:
        takeover->rc = takeover->absent ? make_waiting(core, takeover) : make_log(core, takeover);
        break;
    case PHASE_OLDER:
        takeover->rc = add_older(core, takeover);
        break;
    case PHASE_ENDED:
        takeover->rc = tell_ended(core, takeover);
        break;
    }
    leat_core_mail(core, 0, mail, back_deliver);
}

/* The segment before the one that was given away now. */
static void older_want(struct leat_takeover *takeover)
{
    uint64_t first = takeover->first_retained;
    takeover->phase = PHASE_OLDER;
    takeover->failures = 0;
    if (takeover->segment == 0 || takeover->segment <= first) {
        takeover->phase = PHASE_ENDED;
        takeover->complete = true;
        return;
    }
    takeover->segment--;
    takeover->extent = takeover->start.previous;
    takeover->next_offset = takeover->start.base_offset;
}

/* The log could not take it: it goes back to where it came from. false: no memory. */
static bool seg_given_back(struct leat_takeover *takeover)
{
    struct leat_backup *backup = core_0(takeover)->replicate.backup;
    if (takeover->seg == NULL) return true;
    if (leat_backup_take_own(backup, takeover->seg, takeover->node->incarnation)) return false;
    takeover->seg = NULL;
    return true;
}

static void seg_return(struct leat_takeover *takeover)
{
    bool given_back = seg_given_back(takeover);
    LEAT_ASSERT(given_back); /* as for those that are given up */
}

static void back_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    bool gone = takeover->rc == LEAT_E_NOT_OWNER || takeover->rc == LEAT_E_STARTING;
    bool absent = takeover->absent;
    takeover->busy = takeover->absent = false;
    kick(core);
    if (absent && !gone) {
        pause_for(takeover, 10 * LEAT_TAKEOVER_TICK_US);
        return;
    }
    if (takeover->rc == LEAT_E_EXISTS) takeover->rc = LEAT_OK, seg_return(takeover);
    if (gone) {
        seg_return(takeover);
        takeover_free(takeover);
    } else if (takeover->rc != LEAT_OK) {
        pause_for(takeover,
                  LEAT_TAKEOVER_TICK_US); /* no memory, or its predecessor is still here */
    } else if (takeover->phase == PHASE_ENDED) {
        if (takeover->complete)
            leat_backup_drop_log(core->replicate.backup, takeover->ref, takeover->epoch);
        takeover_free(takeover);
    } else {
        if (takeover->phase == PHASE_TAIL)
            leat_diary_info(
                "log %u/%u/%u is served here under epoch %u, %llu ms after that was told",
                takeover->ref.stream, takeover->ref.streamlet, takeover->ref.log, takeover->epoch.v,
                (unsigned long long)(leat_core_now(core) - takeover->since_us) / 1000);
        bool none = takeover->seg == NULL && takeover->phase == PHASE_TAIL;
        takeover->seg = NULL;
        if (none)
            takeover_free(takeover);
        else
            older_want(takeover);
    }
}

/* ---- getting a segment ---- */

/* Which nodes may have it: all that are up. */
static void sources_fill(struct leat_core *core, struct leat_backup_pull *pull)
{
    pull->node_count = 0;
    for (uint32_t i = 0; i < core->members.count; i++) {
        const struct leat_member *member = core->members.rows[i];
        if (member->self || member->info.state != LEAT_NODE_UP) continue;
        pull->nodes[pull->node_count++] = member->number;
    }
}

static bool all_up(const struct leat_core *core)
{
    for (uint32_t i = 0; i < core->members.count; i++)
        if (core->members.rows[i]->info.state == LEAT_NODE_DOWN &&
            !core->members.rows[i]->info.draining) /* then nobody expects it back */
            return false;
    return true;
}

/* Nobody has any more of it, and nobody is to come back who might. */
static void none_left(struct leat_takeover *takeover)
{
    if (takeover->phase == PHASE_OLDER) {
        takeover->phase = PHASE_ENDED;
        takeover->complete = takeover->none_left = true;
    }
    to_home(takeover);
}

/* The newest segment that was left when the rest was given up has gone, too: older ones may be there. */
static void lost_left(struct leat_takeover *takeover)
{
    takeover->nowhere = 0;
    takeover->extent = (struct leat_extent){0, 0};
    if (takeover->segment == 0) {
        none_left(takeover);
        return;
    }
    takeover->segment--;
    pause_for(takeover, LEAT_TAKEOVER_TICK_US);
}

static void missing(struct leat_takeover *takeover, leat_err rc)
{
    takeover->failures++;
    /* Who has it damaged has not got it. */
    bool nowhere = rc == LEAT_E_NOT_FOUND || rc == LEAT_E_DAMAGED;
    takeover->nowhere = nowhere ? takeover->nowhere + 1 : 0;
    if (takeover->phase == PHASE_TAIL) {
        const struct leat_core *core = core_0(takeover);
        uint64_t now_us = leat_core_now(core_0(takeover));
        if (takeover->nowhere == 1) takeover->missing_us = now_us;
        if (takeover->tail.jumped && takeover->nowhere && takeover->all_asked &&
            now_us >= takeover->missing_us + LEAT_TAKEOVER_MISSING_US) {
            lost_left(takeover);
            return;
        }
        uint64_t patience_us = all_up(core) ? LEAT_TAKEOVER_NOWHERE_US : LEAT_TAKEOVER_AWAY_US;
        takeover->absent = takeover->nowhere && now_us >= takeover->missing_us + patience_us;
        if (takeover->absent)
            to_home(takeover);
        else
            pause_for(takeover,
                      takeover->failures < 10 ? LEAT_TAKEOVER_TICK_US : 10 * LEAT_TAKEOVER_TICK_US);
        return;
    }
    /* Its last owner may still be giving it up. Reads wait for so long. */
    uint64_t now_us = leat_core_now(core_0(takeover));
    if (takeover->failures == 1) takeover->missing_us = now_us;
    if (now_us < takeover->missing_us + LEAT_TAKEOVER_MISSING_US &&
        !(takeover->again && rc == LEAT_E_NOT_FOUND)) {
        pause_for(takeover, LEAT_TAKEOVER_TICK_US);
        return;
    }
    takeover->phase = PHASE_ENDED; /* a later look begins anew: leat_takeover_older() */
    takeover->complete = false;
    takeover->away = !all_up(core_0(takeover));
    takeover->busy = false;
    kick(core_0(takeover));
}

static void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    struct leat_takeover *takeover = pull->owner;
    takeover->busy = false;
    if (rc == LEAT_OK)
        kick(core_0(takeover));
    else if (leat_err_class(rc) == LEAT_CLASS_RETRY)
        pause_for(takeover, 5 * LEAT_TAKEOVER_TICK_US);
    else
        missing(takeover, rc);
}

static void pull_start(struct leat_core *core, struct leat_takeover *takeover)
{
    takeover->pull = (struct leat_backup_pull){.log = takeover->ref,
                                               .segment = {takeover->segment},
                                               .extent = takeover->extent,
                                               .next_offset = takeover->next_offset,
                                               .on_done = on_pulled,
                                               .owner = takeover};
    sources_fill(core, &takeover->pull);
    takeover->all_asked = all_up(core);
    takeover->busy = true;
    leat_err rc = leat_backup_pull(core->replicate.backup, &takeover->pull);
    if (rc == LEAT_E_AGAIN)
        pause_for(takeover, LEAT_TAKEOVER_TICK_US);
    else if (rc != LEAT_OK)
        missing(takeover, rc);
}

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    struct leat_takeover *takeover = arg;
    if (rc != LEAT_OK) {
        missing(takeover, rc);
        return;
    }
    takeover->seg = seg;
    start_read(takeover);
}

/* ---- nothing names it: offsets jumped behind it ---- */

/* A node that is down may have it, but for those that nobody expects back. */
static void on_below(struct leat_below *below, leat_err rc)
{
    struct leat_takeover *takeover = below->owner;
    takeover->busy = false;
    if (rc != LEAT_OK && rc != LEAT_E_UNKNOWN_STREAM) {
        pause_for(takeover, 5 * LEAT_TAKEOVER_TICK_US);
    } else if (below->found.count > 0) {
        takeover->extent = leat_below_best(&below->found);
        takeover->segment = below->found.segment;
        takeover->next_offset = 0;
        kick(core_0(takeover));
    } else if (takeover->all_asked) {
        none_left(takeover);
    } else {
        missing(takeover, LEAT_E_NOT_FOUND);
    }
}

static void below_start(struct leat_core *core, struct leat_takeover *takeover)
{
    takeover->below = (struct leat_below){.core = core,
                                          .ref = takeover->ref,
                                          .segment = takeover->segment,
                                          .on_done = on_below,
                                          .owner = takeover};
    takeover->all_asked = all_up(core);
    takeover->busy = true;
    leat_below_start(&takeover->below);
}

/* SUBTLE: a takeover whose segment a later owner counts on has ended, though its log's core may not have heard
 * of that yet. Were it to wait:
 *  1. The log is this node's in epoch 32, and an older segment is pulled. It moves to Y in epoch 33, which
 *     counts on the copy that was pulled here, and on it for as long as both live.
 *  2. It comes back here in epoch 36. That takeover stands behind the first one, and the log is never made. */
static void get_step(struct leat_core *core, struct leat_takeover *takeover)
{
    if (takeover->phase == PHASE_TAIL && takeover->tail.segment == UINT64_MAX) {
        to_home(takeover); /* it has no segments */
        return;
    }
    if (takeover->extent.bytes == 0) {
        below_start(core, takeover);
        return;
    }
    takeover->busy = true;
    leat_err rc =
        leat_backup_adopt(core->replicate.backup, takeover->ref, takeover->epoch,
                          (struct leat_segment_id){takeover->segment}, takeover->extent,
                          takeover->next_offset, INT64_MIN, takeover->home, on_adopted, takeover);
    if (rc == LEAT_E_NOT_FOUND)
        pull_start(core, takeover);
    else if (rc == LEAT_E_STALE_EPOCH)
        takeover_free(takeover); /* SUBTLE, above */
    else if (rc != LEAT_OK)
        pause_for(takeover, LEAT_TAKEOVER_TICK_US);
}

/* ---- its start entry, which names the one before ---- */

/* One block of it, as a rule. With many producers it is longer, and believed only with its checksum:
 * it is read again. */
static bool block_reserve(struct leat_takeover *takeover, uint32_t bytes)
{
    if (takeover->block_bytes >= bytes) return true;
    leat_mem_free(takeover->block_raw);
    takeover->block_raw = leat_mem_calloc(LEAT_MEM_BROKER, 1, (size_t)bytes + BLOCK_BYTES);
    takeover->block_bytes = takeover->block_raw != NULL ? bytes : 0;
    return takeover->block_raw != NULL;
}

static void start_submit(struct leat_takeover *takeover, const struct leat_disk *disk,
                         const struct leat_segment *seg, void (*on_done)(struct leat_disk_io *io))
{
    takeover->io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = seg->file,
        .offset = seg->file_offset,
        .buffer = (void *)LEAT_ALIGN_UP((uintptr_t)takeover->block_raw, (uintptr_t)BLOCK_BYTES),
        .bytes = takeover->block_bytes,
        .on_done = on_done,
        .owner = takeover,
    };
    takeover->start_of = seg->extent.bytes;
    disk->submit(disk->ctx, &takeover->io);
}

/* How much of it has to be read again; 0: all of the start entry is there. */
static uint32_t start_longer(const struct leat_takeover *takeover)
{
    uint32_t count = takeover->io.rc == LEAT_OK ? (uint32_t)takeover->io.done_bytes : 0;
    uint32_t end = leat_log_start_end(takeover->io.buffer, count, takeover->start_of);
    return end > takeover->block_bytes ? LEAT_ALIGN_UP(end, (uint32_t)BLOCK_BYTES) : 0;
}

/* SUBTLE: this copy counts for nothing then, and another one is pulled.
 *  1. One bit of the start entry of segment 5 flips on the new owner's disk: what its catalogue says of
 *     the segment still is right, and its start names no predecessor.
 *  2. It is taken for the first one, and all have come.
 *  3. Whoever holds segments 0 to 4 asks whether they are needed, is told that the log has none of them, and
 *     they go on every node. */
static void start_damaged(struct leat_takeover *takeover)
{
    struct leat_segment *seg = takeover->seg;
    struct leat_backup *backup = core_0(takeover)->replicate.backup;
    seg->damaged = true;
    leat_err rc = leat_backup_take_own(backup, seg, takeover->node->incarnation);
    if (rc == LEAT_OK) { /* else there is no memory: takeovers_step() comes here again */
        takeover->seg = NULL;
        leat_diary_warn(
            "log %u/%u/%u: the start of segment %llu can't be read here: it is looked for "
            "on other nodes",
            takeover->ref.stream, takeover->ref.streamlet, takeover->ref.log,
            (unsigned long long)takeover->segment);
    }
    pause_for(takeover, LEAT_TAKEOVER_TICK_US);
}

static void start_known(struct leat_takeover *takeover, const uint8_t *bytes, uint32_t count)
{
    if (!leat_log_start_find(bytes, count, &takeover->start)) {
        start_damaged(takeover);
        return;
    }
    if (takeover->phase == PHASE_TAIL) takeover->first_retained = takeover->start.first_segment;
    to_home(takeover);
}

static void on_start_read(struct leat_disk_io *io)
{
    struct leat_takeover *takeover = io->owner;
    uint32_t longer = start_longer(takeover);
    if (longer == 0)
        start_known(takeover, io->buffer, io->rc == LEAT_OK ? (uint32_t)io->done_bytes : 0);
    else if (block_reserve(takeover, longer))
        start_submit(takeover, core_0(takeover)->env->disk, takeover->seg, on_start_read);
    else
        pause_for(takeover, LEAT_TAKEOVER_TICK_US); /* no memory: takeovers_step() reads it anew */
}

static void start_read(struct leat_takeover *takeover)
{
    const struct leat_segment *seg = takeover->seg;
    if (seg->buffer != NULL) {
        start_known(takeover, seg->buffer, seg->extent.bytes);
        return;
    }
    if (!block_reserve(takeover, BLOCK_BYTES)) {
        pause_for(takeover, LEAT_TAKEOVER_TICK_US);
        return;
    }
    takeover->busy = true;
    start_submit(takeover, core_0(takeover)->env->disk, seg, on_start_read);
}

/* ---- who is next ---- */

/* SUBTLE: one whose epoch is over ends at once. Were it to look on for what it wants:
 *  1. The log comes here in epoch 5, and its last segment is on a node that dies at that moment.
 *  2. It moves away and back, in epoch 7, which wants another segment, and that is here.
 *  3. Appends wait until the first one gives up, after LEAT_TAKEOVER_AWAY_US. */
static void takeovers_step(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    unsigned older = 0;
    LEAT_LIST_EACH(&core->takeovers.all, it)
    {
        struct leat_takeover *takeover = LEAT_CONTAINER(it, struct leat_takeover, link);
        bool ready = !takeover->busy && !core->stopping && core->replicate.backup != NULL;
        if (takeover->over && ready && !takeover->behind && seg_given_back(takeover)) {
            takeover_free(takeover);
            continue;
        }
        if (takeover->phase == PHASE_OLDER && ++older > LEAT_TAKEOVER_OLDER_MAX) continue;
        if (!ready || takeover->over || takeover->behind || now_us < takeover->again_us) continue;
        if (takeover->seg != NULL) /* the log had no memory for it, or there was none to read it */
            start_read(takeover);
        else if (takeover->phase == PHASE_ENDED)
            to_home(takeover);
        else
            get_step(core, takeover);
    }
    if (!leat_list_empty(&core->takeovers.all))
        leat_timer_start(&core->timers, &core->takeovers.timer, LEAT_TAKEOVER_TICK_US);
}

/* ---- asking ---- */

static void ask_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    LEAT_LIST_EACH(&core->takeovers.all, it)
    {
        struct leat_takeover *other = LEAT_CONTAINER(it, struct leat_takeover, link);
        if (!leat_log_ref_equal(other->ref, takeover->ref)) continue;
        takeover->behind = true;
        other->over = other->over || other->epoch.v < takeover->epoch.v;
        if (other->epoch.v != takeover->epoch.v) continue;
        leat_mem_free(takeover->block_raw);
        leat_mem_free(takeover);
        return;
    }
    takeover->since_us = leat_core_now(core);
    leat_list_push_back(&core->takeovers.all, &takeover->link);
    kick(core);
}

static struct leat_takeover *takeover_create(struct leat_core *core, struct leat_log_ref ref,
                                             struct leat_epoch epoch)
{
    struct leat_takeover *takeover = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *takeover);
    if (takeover == NULL) return NULL;
    takeover->node = core->node;
    takeover->ref = ref;
    takeover->epoch = epoch;
    takeover->home = core->index;
    leat_list_init(&takeover->link);
    return takeover;
}

void leat_takeover_ask(struct leat_core *core, const struct leat_begun_log *row, uint32_t logs)
{
    LEAT_ASSERT_CMP(leat_core_of_log(core->node, row->ref, logs), ==, core->index);
    if (row->record.opened) { /* its marks say where it ends, and nobody has them */
        if (leat_hosted_find(core, row->ref) == NULL) stand_in_undecided(core, row);
        return;
    }
    struct leat_takeover *takeover = takeover_create(core, row->ref, row->epoch);
    const bool committed_is_applied = takeover != NULL;
    LEAT_ASSERT(committed_is_applied);
    takeover->tail = row->record.tail;
    takeover->phase = PHASE_TAIL;
    takeover->segment = takeover->tail.segment;
    takeover->extent = takeover->tail.extent;
    takeover->next_offset = takeover->tail.jumped ? 0 : takeover->tail.next_offset;
    leat_core_mail(core, 0, &takeover->mail, ask_deliver);
}

void leat_takeover_look(struct leat_hosted *hosted, const struct leat_begun_log *row, uint32_t logs)
{
    if (!hosted->tail_away || hosted->going) return; /* on its way out it asks by itself */
    if (!row->record.opened) {
        if (row->epoch.v > hosted->epoch.v) leat_takeover_ask(hosted->core, row, logs);
        return;
    }
    hosted->highest_segment = row->record.tail.segment;
    hosted->highest_offset = row->record.tail.next_offset;
    hosted->highest_extent = row->record.tail.extent;
}

/* On the log's core, before it goes to core 0: where the chain goes on. */
static void older_begin(struct leat_takeover *takeover, const uint8_t *bytes, uint32_t count)
{
    struct leat_core *core = &takeover->node->cores[takeover->home];
    struct leat_hosted *hosted = leat_hosted_find(core, takeover->ref);
    if (!leat_log_start_find(bytes, count, &takeover->start)) {
        if (hosted != NULL) hosted->older_asked = true; /* asked again with the next tick */
        if (hosted != NULL) leat_log_older_done(hosted->log);
        leat_mem_free(takeover->block_raw);
        leat_mem_free(takeover);
        return;
    }
    takeover->extent = takeover->start.previous;
    leat_core_mail(core, 0, &takeover->mail, ask_deliver);
}

static void on_older_read(struct leat_disk_io *io)
{
    struct leat_takeover *takeover = io->owner;
    const struct leat_core *core = &takeover->node->cores[takeover->home];
    const struct leat_hosted *hosted = leat_hosted_find(core, takeover->ref);
    const struct leat_segment *first = hosted != NULL ? leat_log_first_held(hosted->log) : NULL;
    /* It may have gone to another node meanwhile, or its front may have been trimmed. */
    bool same = first != NULL && first->file == io->file && first->file_offset == io->offset;
    uint32_t longer = start_longer(takeover);
    if (same && longer > 0 && block_reserve(takeover, longer))
        start_submit(takeover, core->env->disk, first, on_older_read);
    else
        older_begin(takeover, io->buffer, io->rc == LEAT_OK ? (uint32_t)io->done_bytes : 0);
}

void leat_takeover_older(struct leat_hosted *hosted)
{
    struct leat_core *core = hosted->core;
    const struct leat_segment *first = leat_log_first_held(hosted->log);
    uint64_t retained = leat_log_first_retained(hosted->log);
    if (first != NULL && retained == 0 && first->id.v > 0 && !leat_log_front_known(hosted->log)) {
        hosted->older_ticks--; /* being looked up: asked again with the next tick */
        return;
    }
    if (first == NULL || first->id.v <= retained) {
        hosted->older_asked = false;
        leat_log_older_done(hosted->log);
        if (hosted->copies != NULL) leat_primary_log_whole(hosted->copies);
        return;
    }
    struct leat_takeover *takeover = takeover_create(core, hosted->ref, hosted->epoch);
    if (takeover == NULL || !block_reserve(takeover, BLOCK_BYTES)) {
        leat_mem_free(takeover);
        return; /* the next tick tries again */
    }
    hosted->older_asked = false;
    takeover->again = true;
    takeover->phase = PHASE_OLDER;
    takeover->first_retained = retained;
    takeover->segment = first->id.v - 1;
    takeover->next_offset = first->base_offset;
    if (first->buffer != NULL) {
        older_begin(takeover, first->buffer, first->extent.bytes);
        return;
    }
    start_submit(takeover, core->env->disk, first, on_older_read);
}

bool leat_takeover_is_under_way(const struct leat_core *core, struct leat_log_ref ref)
{
    const struct leat_list *all = &core->takeovers.all;
    for (const struct leat_list *it = all->next; it != all; it = it->next)
        if (leat_log_ref_equal(LEAT_CONTAINER(it, const struct leat_takeover, link)->ref, ref))
            return true;
    return false;
}

void leat_takeovers_init(struct leat_core *core)
{
    leat_list_init(&core->takeovers.all);
    core->takeovers.timer = (struct leat_timer){.on_expired = on_timer, .owner = core};
}

void leat_takeovers_fini(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->takeovers.all, it)
    takeover_free(LEAT_CONTAINER(it, struct leat_takeover, link));
}
