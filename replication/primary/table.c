/* SPDX-License-Identifier: Apache-2.0 */
/* The base of all parts of the primary: tables of logs and segments, and which log is compared again, and when.
 *
 * Every event marks a log; a message to itself starts the comparison (primary.c), after all events of the same turn.
 * So no request is answered inside its own call, and the needs of several logs at one backup go in one message.
 * Nothing here calls another part. */
#include "replication/primary/state.h"

static void kick(struct leat_primary *primary)
{
    if (primary->kicked) return;
    const struct leat_post *post = primary->options.env->post;
    primary->kicked = true;
    primary->kick = (struct leat_mail){.deliver = primary->on_kick};
    post->send(post->ctx, post->self, &primary->kick);
}

void rep_mark_dirty(struct leat_primary_log *log)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    if (!leat_list_empty(&log->dirty_link)) return;
    leat_list_push_back(&log->primary->dirty, &log->dirty_link);
    kick(log->primary);
}

void rep_arm(struct leat_primary *primary, uint64_t delay_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    uint64_t at_us = rep_now(primary) + delay_us;
    if (leat_timer_armed(&primary->timer) && primary->timer.at_us <= at_us) return;
    leat_timer_start(primary->options.timers, &primary->timer, delay_us);
}

void rep_wait(struct leat_primary_log *log)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    if (leat_list_empty(&log->waits_link))
        leat_list_push_back(&log->primary->waits, &log->waits_link);
    rep_arm(log->primary, REP_TICK_US);
}

/* ---- logs ---- */
/* ---- look-ups ---- */
struct leat_primary_log **rep_log_bucket(const struct leat_primary *primary,
                                         struct leat_log_ref ref)
{
    uint64_t hash = ((uint64_t)ref.stream << 32) ^ ((uint64_t)ref.streamlet << 12) ^ ref.log;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return &primary->buckets[(uint32_t)(hash >> 40) % REP_LOG_BUCKETS];
}

struct leat_primary_log *rep_log_find(const struct leat_primary *primary, struct leat_log_ref ref)
{
    struct leat_primary_log *log = *rep_log_bucket(primary, ref);
    while (log && !leat_log_ref_equal(log->options.ref, ref))
        log = log->hash_next;
    return log;
}

static struct rep_set *find_in(const struct leat_list *head, uint64_t segment)
{
    for (struct leat_list *it = head->prev; it != head; it = it->prev) {
        struct rep_set *set = LEAT_CONTAINER(it, struct rep_set, link);
        if (set->id.v == segment) return set;
    }
    return NULL;
}

struct rep_set *rep_set_find(const struct leat_primary_log *log, uint64_t segment)
{
    struct rep_set *set = find_in(&log->active, segment);
    return set ? set : find_in(&log->settled, segment);
}

unsigned rep_nodes_up(const struct leat_primary *primary)
{
    return 1 + primary->attached_count;
}

/* ---- copying closed segments ---- */
/* ---- the segment that is copied again ---- */
void rep_recopy_forget(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    struct leat_primary *primary = set->log->primary;
    if (primary->read_set == set) primary->read_set = NULL;
    if (primary->recopy != set) return;
    primary->recopy = NULL;
    primary->recopy_copy = primary->read_copy = NULL;
}

void rep_recopy_copy_gone(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct leat_primary *primary = copy->peer->primary;
    if (primary->recopy_copy != copy) return;
    primary->recopy = NULL;
    primary->recopy_copy = primary->read_copy = NULL;
}

void rep_own_damaged(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    const struct leat_primary_options *options = &set->log->primary->options;
    if (set->seg->buffer || leat_segment_is_damaged(set->seg) || !options->events.on_damaged)
        return;
    options->events.on_damaged(options->owner, set->log, set->seg);
}
