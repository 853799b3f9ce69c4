/* SPDX-License-Identifier: Apache-2.0 */
/* Background work: audits (which replicas has no owner confirmed, dissertation §4.6), and copying closed segments
 * that have lost copies, at a bounded rate (§4.5.1). */
#include <string.h>

#include "base/bug.h"
#include "base/node_log.h"
#include "replication/primary/state.h"

/* ---- audits ---- */
enum verdict { VERDICT_LATER, VERDICT_KEEP, VERDICT_DROP };

static struct rep_copy *copy_at(const struct rep_set *set, const struct rep_peer *peer)
{
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->peer == peer) return set->copies[i];
    return NULL;
}

/* Copies that were given up and still have something under way. */
static bool is_busy_elsewhere(const struct rep_peer *peer, uint64_t handle)
{
    for (const struct leat_list *it = peer->copies.next; it != &peer->copies; it = it->next) {
        const struct rep_copy *copy = LEAT_CONTAINER(it, const struct rep_copy, by_peer);
        if (!copy->set && copy->handle == handle) return true;
    }
    return false;
}

static bool is_adequate(const struct rep_set *set)
{
    if (set->copy_count < rep_wanted(set->log) || rep_is_held(set->log)) return false;
    if (set->seg && leat_segment_is_damaged(set->seg))
        return false; /* a copy on another node may be the only whole one */
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state == REP_COPY_OPENING || copy->incomplete || copy->found) return false;
        if (rep_copy_leaves(copy) && !LEAT_BUG(LEAVING_COUNTS)) return false;
        if (rep_set_is_closed(set) && copy->state != REP_COPY_CLOSED) return false;
    }
    return true;
}

/* A copy that came back with its node counts again if it is the same. The primary drops no other copy in its favour
 * before the backup knows that this copy counts (request.c, settle_one()). */
static enum verdict adopt(struct rep_set *set, struct rep_peer *peer, const struct rep_row *row)
{
    struct rep_copy *copy = rep_copy_new(set, peer);
    if (!copy) return VERDICT_LATER;
    copy->handle = row->handle;
    rep_copy_enter(copy, REP_COPY_CLOSED);
    copy->counted = copy->found = true;
    copy->sent = copy->done = copy->flushed = row->prefix_id.bytes;
    rep_place_judge(set);
    rep_set_settle(set);
    return VERDICT_KEEP;
}

void rep_audit_enter(struct rep_peer *peer, enum rep_audit_state to)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    static const unsigned follow[] = {
        [REP_AUDIT_IDLE] = 1u << REP_AUDIT_ASKED | 1u << REP_AUDIT_SETTLING,
        [REP_AUDIT_ASKED] = 1u << REP_AUDIT_IDLE,
        [REP_AUDIT_SETTLING] = 1u << REP_AUDIT_IDLE,
    };
    LEAT_ASSERT(follow[peer->audit_state] & 1u << to);
    peer->audit_state = to;
}

void rep_audit_all(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    peer->audited_us = peer->audit_from = 0;
    peer->audit_all = true;
    peer->audit_anew = peer->audit_state == REP_AUDIT_ASKED;
    rep_arm(peer->primary, REP_TICK_US);
}

static void on_sealed(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                      const struct leat_error *error)
{
    struct rep_peer *peer = call->owner;
    (void)answer;
    (void)error;
    peer->seal_busy = false;
    peer->primary->accounts.other_rpcs++;
    if (rc) return;      /* told again by a later audit */
    rep_audit_all(peer); /* a replica counts now; there may be more */
}

/* A replica of an old epoch that was still open when its writer was cut off. It may end after the decided end, or
 * exactly there: then it is as good as a new copy. */
static void seal_ask(struct rep_set *set, struct rep_peer *peer, const struct rep_row *row)
{
    const struct leat_rep_net *net = &peer->primary->options.net;
    const struct leat_segment *seg = set->seg;
    if (peer->seal_busy) return;
    struct rep_body body = {.handle = row->handle,
                            .log = row->log,
                            .segment = row->segment,
                            .epoch = row->epoch,
                            .version = row->version,
                            .capacity = set->capacity,
                            .durability = (uint32_t)set->log->options.durability,
                            .prefix_id = seg->prefix_id,
                            .next_offset = seg->next_offset,
                            .max_timestamp_ms = seg->max_timestamp_ms,
                            .owner = set->log->options.epoch};
    peer->seal =
        (struct leat_link_call){.kind = LEAT_REP_SEAL,
                                .control = peer->seal_control,
                                .control_bytes = rep_body_encode(&body, peer->seal_control),
                                .timeout_us = peer->primary->options.flush_us,
                                .on_done = on_sealed,
                                .owner = peer};
    peer->seal_busy = net->call(net->ctx, peer->node.number, &peer->seal) == LEAT_OK;
}

/* The backup has found the copy corrupt. The copy is dropped when there are enough others. */
static void damaged_there(struct rep_copy *copy)
{
    const struct rep_set *set = copy->set;
    leat_node_log_warn(
        "log %u/%u/%u: the copy of segment %llu on node number %u is damaged there: another "
        "is made",
        set->log->options.ref.stream, set->log->options.ref.streamlet, set->log->options.ref.log,
        (unsigned long long)set->id.v, copy->peer->node.number);
    rep_copy_lost(copy);
}

static enum verdict judge(struct rep_peer *peer, const struct rep_row *row)
{
    struct leat_primary_log *log = rep_log_find(peer->primary, row->log);
    if (!log || row->epoch.v > log->options.epoch.v) return VERDICT_LATER;
    if (log->silent || log->releasing) return VERDICT_LATER;
    struct rep_set *set = rep_set_find(log, row->segment.v);
    if (!set && log->options.backfill_follows && !LEAT_BUG(DROP_UNKNOWN)) return VERDICT_LATER;
    if (!set && leat_segment_range_has(&log->options.unsure, row->segment.v)) return VERDICT_LATER;
    if (!set) return VERDICT_DROP; /* trimmed, or never became part of the log */
    if (set->dropping || (is_busy_elsewhere(peer, row->handle) && !LEAT_BUG(PLACE_AMID_WRITES)))
        return VERDICT_LATER;
    struct rep_copy *copy = copy_at(set, peer);
    if (copy && copy->state == REP_COPY_OPENING) return VERDICT_LATER;
    if (copy && copy->handle == row->handle && copy->state == REP_COPY_CLOSED &&
        row->state == LEAT_SEGMENT_RESERVED) {
        damaged_there(copy);
        return VERDICT_LATER;
    }
    if (copy && copy->handle == row->handle) return VERDICT_KEEP;
    bool same = rep_set_is_closed(set) && !set->close && row->state == LEAT_SEGMENT_CLOSED &&
                (leat_prefix_id_equal(row->prefix_id, set->seg->prefix_id) || LEAT_BUG(ANY_CLOSED));
    if (same && !copy && set->copy_count < rep_wanted(log)) return adopt(set, peer, row);
    if (is_adequate(set) || LEAT_BUG(DROP_NEEDED)) return VERDICT_DROP;
    bool old =
        rep_set_is_closed(set) && !set->close && set->seg->epoch.v == row->epoch.v &&
        row->epoch.v < log->options.epoch.v &&
        (row->state != LEAT_SEGMENT_CLOSED || row->prefix_id.bytes > set->seg->prefix_id.bytes);
    if (old && !copy && set->copy_count < rep_wanted(log)) seal_ask(set, peer, row);
    return VERDICT_LATER;
}

static bool is_refused(const struct rep_pair *refused, uint32_t count, uint64_t handle)
{
    for (uint32_t i = 0; i < count; i++)
        if (refused[i].handle == handle) return true;
    return false;
}

static bool was_kept(const struct rep_peer *peer, uint64_t handle)
{
    for (uint32_t i = 0; i < peer->settle_sent; i++)
        if (peer->settle_pairs[i].handle == handle)
            return peer->settle_pairs[i].value % REP_SETTLE_WORDS == REP_SETTLE_KEEP;
    return false;
}

/* The backup knows by now which of its replicas count, or has dropped them. */
static void copies_confirm(struct rep_peer *peer, const struct rep_pair *refused, uint32_t count)
{
    LEAT_LIST_EACH(&peer->copies, it)
    {
        struct rep_copy *copy = LEAT_CONTAINER(it, struct rep_copy, by_peer);
        if (!copy->set || copy->state != REP_COPY_CLOSED || (!copy->found && count == 0)) continue;
        if (!was_kept(peer, copy->handle)) continue;
        if (is_refused(refused, count, copy->handle))
            rep_copy_lost(copy);
        else
            copy->found = false;
    }
}

static void on_settled(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct rep_peer *peer = call->owner;
    struct rep_pair refused[LEAT_REP_BATCH_MAX];
    uint32_t count = 0;
    (void)error;
    rep_audit_enter(peer, REP_AUDIT_IDLE);
    peer->primary->accounts.other_rpcs++;
    if (!rc) rc = rep_pairs_decode(answer->control, answer->control_bytes, refused, &count);
    if (!rc)
        copies_confirm(peer, refused, count);
    else if (peer->state == REP_PEER_ATTACHED)
        rep_audit_all(peer); /* what was not settled is told again */
    peer->settle_sent = 0;
}

static void settle_send(struct rep_peer *peer)
{
    const struct leat_rep_net *net = &peer->primary->options.net;
    size_t room = (size_t)LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8;
    if (!peer->settle_count) return;
    peer->settle = (struct leat_link_call){
        .kind = LEAT_REP_SETTLE,
        .control = peer->settle_control,
        .control_bytes =
            rep_pairs_encode(peer->settle_pairs, peer->settle_count, peer->settle_control, room),
        .timeout_us = peer->primary->options.flush_us,
        .on_done = on_settled,
        .owner = peer};
    peer->settle_sent = peer->settle_count;
    peer->settle_count = 0;
    if (net->call(net->ctx, peer->node.number, &peer->settle) == LEAT_OK)
        rep_audit_enter(peer, REP_AUDIT_SETTLING);
    else
        rep_audit_all(peer); /* else what was found would stay unconfirmed */
}

static void rows_judge(struct rep_peer *peer, uint32_t count, struct leat_msg_reader *reader)
{
    if (count > LEAT_REP_BATCH_MAX) return;
    for (uint32_t i = 0; i < count; i++) {
        struct rep_row row;
        rep_row_read(reader, &row);
        if (reader->failed) return;
        enum verdict verdict = judge(peer, &row);
        if (verdict == VERDICT_LATER) continue;
        /* Only what was closed or hibernated is known to have no writes on their way. */
        bool may_land =
            peer->cut && row.state < LEAT_SEGMENT_HIBERNATED && !LEAT_BUG(PLACE_AMID_WRITES);
        unsigned word = verdict == VERDICT_KEEP ? REP_SETTLE_KEEP
                        : may_land              ? REP_SETTLE_LEAVE
                                                : REP_SETTLE_DROP;
        const struct leat_primary_log *log = rep_log_find(peer->primary, row.log);
        const struct rep_set *set = rep_set_find(log, row.segment.v);
        bool closed = verdict == VERDICT_KEEP && rep_set_is_closed(set) && set->seg;
        peer->settle_pairs[peer->settle_count++] =
            (struct rep_pair){row.handle, word + REP_SETTLE_WORDS * (uint64_t)log->options.epoch.v,
                              closed ? 1 + set->seg->passed_bytes : 0};
    }
}

static void on_audited(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct rep_peer *peer = call->owner;
    (void)error;
    rep_audit_enter(peer, REP_AUDIT_IDLE);
    peer->primary->accounts.other_rpcs++;
    if (rc || peer->state != REP_PEER_ATTACHED) return;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    struct rep_audited body;
    (void)rep_audited_read(&reader, &body);
    if (reader.failed) return;
    peer->audit_from = body.next;
    rows_judge(peer, body.count, &reader);
    if (peer->audit_anew) {
        rep_audit_all(peer); /* what was asked for meanwhile */
    } else if (peer->audit_from) {
        peer->audited_us = 0; /* there are more */
        rep_arm(peer->primary, REP_TICK_US);
    } else {
        peer->audit_all = false;
    }
    settle_send(peer); /* last: where it can't leave, all is to be asked for again */
}

void rep_audit_step(struct rep_peer *peer, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    const struct leat_primary_options *options = &peer->primary->options;
    if (peer->state != REP_PEER_ATTACHED || peer->audit_state != REP_AUDIT_IDLE) return;
    if (peer->audited_us && now_us < peer->audited_us + options->audit_us) return;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, peer->small, sizeof peer->small);
    rep_audit_write(&writer, &(struct rep_audit){peer->audit_from, peer->audit_all});
    peer->audit = (struct leat_link_call){.kind = LEAT_REP_AUDIT,
                                          .control = peer->small,
                                          .control_bytes = writer.used,
                                          .timeout_us = options->flush_us,
                                          .on_done = on_audited,
                                          .owner = peer};
    peer->audited_us = now_us;
    if (options->net.call(options->net.ctx, peer->node.number, &peer->audit) == LEAT_OK) {
        rep_audit_enter(peer, REP_AUDIT_ASKED);
        return;
    }
    peer->audited_us = 0; /* no room, or the end of the link is on its way */
    rep_arm(peer->primary, REP_TICK_US);
}

static void piece_write(struct leat_primary *primary, uint32_t bytes)
{
    struct rep_copy *copy = primary->recopy_copy;
    if (!rep_copy_lives(copy) || !rep_copy_write_from(copy, primary->staging, bytes)) return;
    primary->accounts.recopied_bytes += bytes;
    primary->recopy_bytes -= bytes < primary->recopy_bytes ? bytes : primary->recopy_bytes;
}

/* SUBTLE: (1) A piece is read for a copy, and the copy is lost meanwhile. (2) Another node is chosen for the same
 * set. (3) This node has not reported the place of its replica yet: the piece would land at the beginning of the
 * arena, in another replica. So a piece is for one copy, not for one set. */
static void on_read(struct leat_disk_io *io)
{
    struct leat_primary *primary = io->owner;
    struct rep_set *set = primary->read_set;
    struct rep_copy *copy = primary->read_copy;
    primary->reading = false;
    primary->read_set = NULL;
    primary->read_copy = NULL;
    if (!set) return;
    set->writes--;
    rep_mark_dirty(set->log);
    if (!copy && LEAT_BUG(PIECE_FOR_ANY)) copy = primary->recopy_copy;
    if (!copy) return; /* it has gone */
    uint32_t left = set->seg->prefix_id.bytes - copy->done;
    uint32_t bytes = left < REP_STAGING_BYTES ? left : REP_STAGING_BYTES;
    if (!set->dropping && (io->rc || io->done_bytes < bytes)) rep_own_damaged(set);
    if (io->rc || io->done_bytes < bytes || set->dropping) {
        rep_copy_lost(copy); /* tried again, from the start, some time */
        return;
    }
    piece_write(primary, bytes);
}

/* The next piece: out of memory, or out of the file. */
static void piece_start(struct leat_primary *primary)
{
    struct rep_set *set = primary->recopy;
    struct rep_copy *copy = primary->recopy_copy;
    uint32_t left = set->seg->prefix_id.bytes - copy->done;
    uint32_t bytes = left < REP_STAGING_BYTES ? left : REP_STAGING_BYTES;
    if (primary->recopy_bytes < bytes) return;
    if (set->seg->buffer) {
        memcpy(primary->staging, set->seg->buffer + copy->done, bytes);
        piece_write(primary, bytes);
        return;
    }
    const struct leat_disk *disk = primary->options.env->disk;
    primary->reading = true;
    primary->read_set = set;
    primary->read_copy = copy;
    set->writes++; /* its place in the file must stay */
    primary->read = (struct leat_disk_io){.kind = LEAT_DISK_READ,
                                          .file = set->seg->file,
                                          .offset = set->seg->file_offset + copy->done,
                                          .buffer = primary->staging,
                                          .bytes = LEAT_ALIGN_UP((size_t)bytes, (size_t)4096),
                                          .on_done = on_read,
                                          .owner = primary};
    disk->submit(disk->ctx, &primary->read);
}

/* How long a segment lacks a copy before a new copy is made: the node with the old copy may come back, and then the
 * new copy is useless. A process that crashed is started again within seconds by its supervisor, or its host is lost.
 * When no node is away that could come back, there is nothing to wait for. */
static uint64_t grace(const struct leat_primary *primary)
{
    const struct leat_primary_options *options = &primary->options;
    uint64_t us = options->grace_none_us;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        uint64_t wait_us = 0;
        if (!peer || peer->node.gone) continue;
        if (peer->node.incarnation == 0)
            wait_us = peer->node.crashed ? options->grace_crashed_us : options->grace_us;
        else if (peer->state != REP_PEER_ATTACHED || peer->audit_all)
            wait_us = options->grace_us; /* up, and has not reported its replicas yet */
        if (wait_us > us) us = wait_us;
    }
    return us < options->grace_us ? us : options->grace_us;
}

/* Its bytes are fetched from another node first. */
static bool is_unreadable(const struct rep_set *set)
{
    return leat_segment_is_damaged(set->seg) && !set->seg->buffer;
}

/* Logs are cared for once a second, all together: a second's worth at once, and no more than that. */
static bool wake_take(struct leat_primary *primary, uint32_t bytes)
{
    uint64_t now_us = rep_now(primary), bytes_us = 0;
    bytes_us = (uint64_t)bytes * 1000 * 1000 / primary->options.recopy_bytes_per_second;
    if (primary->wakes_at_us < now_us) primary->wakes_at_us = now_us;
    if (primary->wakes_at_us >= now_us + REP_WAKES_AHEAD_US) return false;
    primary->wakes_at_us += bytes_us > REP_WAKE_US ? bytes_us : REP_WAKE_US;
    return true;
}

bool rep_head_copy_wanted(struct leat_primary_log *log, const struct leat_segment *head)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    struct rep_set *set = head->copies_pointer;
    struct leat_primary *primary = log->primary;
    if (!set || !rep_set_is_started(set) || rep_set_is_closed(set) || set->dropping ||
        log->releasing || log->fenced)
        return false;
    /* SUBTLE: (1) A slow backup is left amid a write. (2) The head is to be hibernated: it may not before the write has
     * ended, which takes seconds. (3) Appends to a head that hibernates wait until it has. */
    if (set->writes && !rep_set_is_hibernated(set)) return true;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state == REP_COPY_OPENING || copy->incomplete) return true;
    }
    if (set->copy_count >= rep_wanted(log)) return false;
    if (!rep_set_is_hibernated(set)) return rep_place_choose(set) != NULL;
    if (LEAT_BUG(HIBERNATED_UNCOPIED)) return false;
    /* Asked seldom: a node that refused may have room now. */
    memset(set->refused, 0, sizeof set->refused);
    return rep_now(primary) >= set->lost_us + grace(primary) && rep_place_choose(set) &&
           wake_take(primary, set->target);
}

/* SUBTLE: the chosen segment goes behind all others.
 *  1. D dies. Half of the segments lack a copy that only B can take, as A and C have theirs; the others lack one that
 *     only C can take.
 *  2. B's disk is full, and B refuses. Each refused segment is due again after 2 s; 500 of them take as long.
 *  3. If the first came first each time, copies would never be made at C. */
static void recopy_choose(struct leat_primary *primary, uint64_t now_us)
{
    if (leat_list_empty(&primary->deficit)) return;
    uint64_t grace_us = grace(primary);
    LEAT_LIST_EACH(&primary->deficit, it)
    {
        struct rep_set *set = LEAT_CONTAINER(it, struct rep_set, deficit);
        bool due = now_us >= set->lost_us + grace_us && now_us >= set->retry_us;
        if (!due || set->dropping || set->close || is_unreadable(set)) continue;
        struct rep_peer *peer = rep_place_choose(set);
        if (!peer) {
            memset(set->refused, 0, sizeof set->refused);
            set->retry_us = now_us + 10 * REP_RETRY_US;
            continue;
        }
        leat_list_remove(&set->deficit);
        leat_list_push_back(&primary->deficit, &set->deficit);
        struct rep_copy *copy = rep_copy_new(set, peer);
        if (!copy || !rep_copy_open(copy, true)) return;
        primary->recopy = set;
        primary->recopy_copy = copy;
        rep_set_settle(set);
        return;
    }
}

static void better_choose(struct leat_primary *primary, uint64_t now_us)
{
    struct rep_copy *copy = rep_better_begin(primary, now_us);
    if (!copy) return;
    primary->recopy = copy->set;
    primary->recopy_copy = copy;
    rep_set_settle(copy->set);
}

static void lacks_tell(struct leat_primary *primary, uint64_t now_us)
{
    unsigned count = 0;
    if (primary->lacks_told || now_us < primary->lacks_since_us + REP_LACKS_TELL_US) return;
    LEAT_LIST_EACH(&primary->deficit, it)
    count++;
    const struct rep_set *first = LEAT_CONTAINER(primary->deficit.next, struct rep_set, deficit);
    const struct leat_log_ref log = first->log->options.ref;
    primary->lacks_told = true;
    leat_node_log_warn(
        "replication: closed segments of this core's logs have had too few copies for %d s: %u of "
        "them, the first is segment %llu of log %u/%u/%u; leat cluster status names the nodes",
        REP_LACKS_TELL_US / 1000 / 1000, count, (unsigned long long)first->id.v, log.stream,
        log.streamlet, log.log);
}

/* The last step of a recovery: the end is reported in the node log, since no caller waits for it. Copies that came
 * back with their node are not included. */
static void whole_tell(struct leat_primary *primary, uint64_t now_us)
{
    const uint64_t recopied_bytes = primary->accounts.recopied_bytes;
    if (!leat_list_empty(&primary->deficit)) {
        if (primary->lacks_since_us) {
            lacks_tell(primary, now_us);
            return;
        }
        primary->lacks_since_us = now_us;
        primary->lacks_bytes = recopied_bytes;
        return;
    }
    if (!primary->lacks_since_us) return;
    const uint64_t copied = recopied_bytes - primary->lacks_bytes;
    const uint64_t ms = (now_us - primary->lacks_since_us) / 1000;
    const bool told = primary->lacks_told;
    primary->lacks_since_us = 0;
    primary->lacks_told = false;
    if (copied == 0 && !told) return;
    leat_node_log_info(
        "replication: every closed segment of this core's logs has its copies again: %llu KiB "
        "were copied, %llu ms after one was missing",
        (unsigned long long)(copied >> 10), (unsigned long long)ms);
    /* A corrupt copy, or a copy of a node that came back late, was kept while segments lacked copies: now each audit
     * drops such copies. */
    for (unsigned i = 0; i < primary->peer_end; i++)
        if (primary->peers[i]) primary->peers[i]->audited_us = 0;
    rep_arm(primary, REP_TICK_US);
}

void rep_recopy_step(struct leat_primary *primary, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    whole_tell(primary, now_us);
    uint64_t rate = primary->options.recopy_bytes_per_second;
    uint64_t earned = (now_us - primary->recopy_us) * (rate / 1000) / 1000;
    if (now_us - primary->recopy_us > 1000 * 1000) earned = rate;
    primary->recopy_us = now_us;
    primary->recopy_bytes += earned;
    uint64_t most = rate / 10 > REP_STAGING_BYTES ? rate / 10 : REP_STAGING_BYTES;
    if (primary->recopy_bytes > most) primary->recopy_bytes = most;
    if (!primary->recopy) recopy_choose(primary, now_us);
    if (!primary->recopy) better_choose(primary, now_us);
    struct rep_copy *copy = primary->recopy_copy;
    if (!copy || primary->reading) return;
    if (copy->state == REP_COPY_CLOSED) {
        rep_recopy_forget(primary->recopy);
        return;
    }
    if (copy->state != REP_COPY_OPEN || copy->writes || !rep_copy_lives(copy)) return;
    if (primary->recopy->dropping) return;
    if (copy->done < primary->recopy->seg->prefix_id.bytes) piece_start(primary);
}
