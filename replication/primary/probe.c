/* SPDX-License-Identifier: Apache-2.0 */
#include "replication/primary/probe.h"

#include "replication/primary/state.h"

_Static_assert((int)LEAT_COPY_OPENING == (int)REP_COPY_OPENING, "states of a copy");
_Static_assert((int)LEAT_COPY_OPEN == (int)REP_COPY_OPEN, "states of a copy");
_Static_assert((int)LEAT_COPY_HIBERNATED == (int)REP_COPY_HIBERNATED, "states of a copy");
_Static_assert((int)LEAT_COPY_CLOSED == (int)REP_COPY_CLOSED, "states of a copy");

/* ---- logs ---- */

struct leat_primary_log_seen leat_primary_log_see(const struct leat_primary_log *log)
{
    return (struct leat_primary_log_seen){
        .primary = log->primary,
        .ref = log->options.ref,
        .epoch = log->options.epoch,
        .copies = log->options.copies,
        .min_copies = log->options.min_copies,
        .held = rep_is_held(log),
        .fenced = log->fenced,
        .silent = log->silent,
        .releasing = log->releasing,
    };
}

const struct leat_primary_log *leat_primary_log_next(const struct leat_primary *primary,
                                                     const struct leat_primary_log *before)
{
    if (!primary) return NULL;
    const struct leat_list *next = before ? before->link.next : primary->logs.next;
    if (next == &primary->logs) return NULL;
    return LEAT_CONTAINER(next, const struct leat_primary_log, link);
}

const struct leat_primary_log *leat_primary_log_at(const struct leat_primary *primary,
                                                   struct leat_log_ref ref)
{
    return primary ? rep_log_find(primary, ref) : NULL;
}

/* ---- sets ---- */

static bool set_see(const struct rep_set *set, struct leat_set_seen *out_set)
{
    if (!set) return false;
    *out_set = (struct leat_set_seen){
        .at = set,
        .log = set->log,
        .seg = set->seg,
        .id = set->id,
        .capacity = set->capacity,
        .target = set->target,
        .reserved = set->state != REP_SET_RESERVING,
        .started = rep_set_is_started(set),
        .closed = rep_set_is_closed(set),
        .hibernated = set->state == REP_SET_HIBERNATED || set->state == REP_SET_RESUMING,
        .want_hibernated = rep_set_is_hibernated(set),
        .dropping = set->dropping,
        .starts = set->commit && set->commit->from_bytes == 0,
        .closes = set->close != NULL,
        .hibernates = set->hibernate != NULL,
        .resumes = set->resume != NULL,
        .copy_count = set->copy_count,
    };
    return true;
}

bool leat_set_see_next(const struct leat_primary_log *log, bool settled, struct leat_set_seen *seen)
{
    const struct leat_list *sets = settled ? &log->settled : &log->active;
    const struct rep_set *before = seen->at;
    const struct leat_list *next = before ? before->link.next : sets->next;
    return next != sets && set_see(LEAT_CONTAINER(next, const struct rep_set, link), seen);
}

bool leat_set_see(const struct leat_primary_log *log, struct leat_segment_id id,
                  struct leat_set_seen *out_set)
{
    return log && set_see(rep_set_find(log, id.v), out_set);
}

bool leat_set_see_of(const struct leat_segment *seg, struct leat_set_seen *out_set)
{
    return set_see(seg->copies_pointer, out_set);
}

bool leat_set_see_before(const struct leat_set_seen *set, struct leat_set_seen *out_before)
{
    const struct rep_set *of = set->at;
    const struct leat_list *before = of->link.prev;
    return before != &of->log->active &&
           set_see(LEAT_CONTAINER(before, const struct rep_set, link), out_before);
}

/* ---- copies, and the nodes where they are ---- */

static bool copy_see(const struct rep_copy *copy, struct leat_copy_seen *out_copy)
{
    if (!copy) return false;
    *out_copy = (struct leat_copy_seen){
        .at = copy,
        .peer = copy->peer,
        .node = copy->peer->node.name,
        .incarnation = copy->peer->node.incarnation,
        .state = (enum leat_copy_state)copy->state,
        .incomplete = copy->incomplete,
        .found = copy->found,
        .lives = rep_copy_lives(copy),
        .leaves = rep_copy_leaves(copy),
        .handle = copy->handle,
        .place = copy->place,
        .sent = copy->sent,
        .done = copy->done,
        .writes = copy->writes,
    };
    return true;
}

struct leat_copy_seen leat_copy_see(const struct leat_set_seen *set, unsigned i)
{
    const struct rep_set *of = set->at;
    struct leat_copy_seen seen = {0};
    LEAT_ASSERT_CMP(i, <, of->copy_count);
    (void)copy_see(of->copies[i], &seen);
    return seen;
}

bool leat_peer_see_next(const struct leat_primary *primary, struct leat_peer_seen *seen)
{
    const struct rep_peer *before = seen->at;
    for (unsigned i = before ? before->node.number + 1 : 0; primary && i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (!peer) continue;
        LEAT_ASSERT_CMP(peer->node.number, ==, i);
        *seen = (struct leat_peer_seen){
            .at = peer,
            .node = peer->node.name,
            .incarnation = peer->node.incarnation,
            .attached = peer->state == REP_PEER_ATTACHED,
            .audits = peer->audit_state == REP_AUDIT_ASKED,
            .writes = !leat_list_empty(&peer->writes),
        };
        return true;
    }
    return false;
}

bool leat_peer_copy_next(const struct leat_peer_seen *peer, struct leat_copy_seen *seen,
                         struct leat_set_seen *out_set)
{
    const struct rep_peer *of = peer->at;
    const struct rep_copy *before = seen->at;
    const struct leat_list *next = before ? before->by_peer.next : of->copies.next;
    for (; next != &of->copies; next = next->next) {
        const struct rep_copy *copy = LEAT_CONTAINER(next, const struct rep_copy, by_peer);
        if (set_see(copy->set, out_set)) return copy_see(copy, seen);
    }
    return false;
}

/* ---- what is under way ---- */

static const struct rep_write *write_of(const struct leat_rmem_write *write)
{
    return (const struct rep_write *)(const void *)write;
}

uint64_t leat_write_handle(const struct leat_rmem_write *write)
{
    return write_of(write)->copy->handle;
}

bool leat_write_see(const struct leat_rmem_write *write, struct leat_copy_seen *out_copy,
                    struct leat_set_seen *out_set, uint64_t *out_end)
{
    const struct rep_copy *copy = write_of(write)->copy;
    if (!set_see(copy->set, out_set)) return false;
    *out_end = write->offset - copy->place + write_of(write)->bytes;
    return copy_see(copy, out_copy);
}

bool leat_recopy_see(const struct leat_primary *primary, struct leat_copy_seen *out_copy,
                     struct leat_set_seen *out_set)
{
    return copy_see(primary->recopy_copy, out_copy) && set_see(primary->recopy, out_set);
}

bool leat_recopy_see_read(const struct leat_primary *primary, struct leat_copy_seen *out_copy,
                          struct leat_set_seen *out_set)
{
    return primary->reading && copy_see(primary->read_copy, out_copy) &&
           set_see(primary->read_copy->set, out_set);
}

bool leat_recopy_reads(const struct leat_primary *primary)
{
    return primary->reading;
}

void leat_primary_grace_set(struct leat_primary *primary, uint64_t grace_us, uint64_t grace_none_us,
                            uint64_t grace_crashed_us)
{
    primary->options.grace_us = grace_us;
    primary->options.grace_none_us = grace_none_us;
    primary->options.grace_crashed_us = grace_crashed_us;
}
