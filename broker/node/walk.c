/* SPDX-License-Identifier: Apache-2.0 */
/* Streams come and go: one mail per event visits all cores twice.
 *
 * First round: each core makes (or gives up) its logs. Second round: clients may learn of the stream, and requests
 * that wait for the stream are woken. Why twice: a client learns a stream from one core and uses it at another core
 * at once, so by then the stream must exist on every core. The rounds visit the cores in one order, so events keep
 * their order: each core finishes an event, in pieces, before the next event (news.h). */
#include "broker/node/walk.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/ownership/handover.h"

struct walk {
    struct leat_mail mail;
    struct leat_news news;
    struct leat_node *node;
    struct leat_stream_desc *desc; /* a reference; NULL: deleted */
    struct leat_begun *begun;      /* a reference */
    uint32_t stream_id;
    uint32_t core;
    bool second_round;
    bool begun_here; /* on this core, in this round */
    bool told;       /* on this core: that some of its logs are missing */
    uint32_t at;     /* logs of the stream that are done on this core, in this round */
};

static void walk_deliver(void *actor, struct leat_mail *mail);
static bool walk_step(struct leat_news *news, struct leat_core *core, int32_t *left);
static void walk_next(struct walk *walk, struct leat_core *core);
static void walk_tell_awaits(struct walk *walk, struct leat_core *core);
static bool walk_install(struct walk *walk, struct leat_core *core, int32_t *left);
static bool walk_delete(struct walk *walk, struct leat_core *core, int32_t *left);

/* SUBTLE: this node may never be told of a stream that was deleted while the node was away: its tables never had the
 * stream, or had it before the coordinator reported them. (1) The newest stream is deleted. (2) This node starts with
 * the stream's segments, and with tables that end after the deletion. (3) The highest stream id in this node's tables
 * is lower than the deleted stream's id. A loss of the coordinator's state looks the same, so this node would keep the
 * segments. So the coordinator also gives the highest id that was ever used. */
struct given {
    struct leat_mail mail;
    struct leat_news news;
    uint32_t highest;
};

static void highest_raise(struct leat_node *node, uint32_t highest)
{
    if (highest > atomic_load_explicit(&node->highest_stream, memory_order_relaxed))
        atomic_store_explicit(&node->highest_stream, highest, memory_order_relaxed);
}

static bool given_step(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    struct given *given = LEAT_CONTAINER(news, struct given, news);
    (void)left;
    if (given->highest > core->data->stream_seen) core->data->stream_seen = given->highest;
    leat_mem_free(given);
    return true;
}

static void given_deliver(void *actor, struct leat_mail *mail)
{
    leat_news_take(actor, &LEAT_CONTAINER(mail, struct given, mail)->news, given_step);
}

void leat_node_on_streams_given(void *owner, uint32_t highest)
{
    struct leat_node *node = owner;
    LEAT_ASSERT_OWNER(node->coordinator);
    const struct leat_post *post = node->options.coordinator_env->post;
    highest_raise(node, highest);
    /* Core 0 hears of the highest id after all streams that were told. Without memory, core 0 takes unknown streams
     * for new ones. */
    struct given *given = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *given);
    if (given == NULL) return;
    given->highest = highest;
    given->mail.deliver = given_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &given->mail);
}

static void walk_start(struct leat_node *node, struct leat_stream_desc *desc, uint32_t stream_id)
{
    LEAT_ASSERT_OWNER(node->coordinator);
    struct walk *walk = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *walk);
    /* Committed and applied: there is no way back, and a node that misses a stream would lie. */
    const bool committed_is_applied = walk != NULL;
    LEAT_ASSERT(committed_is_applied);
    walk->node = node;
    walk->desc = desc;
    walk->stream_id = stream_id;
    if (desc != NULL) {
        leat_stream_desc_ref(desc);
        uint64_t incarnation = atomic_load_explicit(&node->incarnation_told, memory_order_relaxed);
        walk->begun = leat_begun_of(node->coordinator, desc, incarnation);
    }
    highest_raise(node, stream_id);
    const struct leat_post *post = node->options.coordinator_env->post;
    walk->mail.deliver = walk_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &walk->mail);
}

void leat_node_on_stream(void *owner, struct leat_stream_desc *desc)
{
    walk_start(owner, desc, desc->id);
}

void leat_node_on_stream_deleted(void *owner, uint32_t stream_id)
{
    walk_start(owner, NULL, stream_id);
}

static void walk_deliver(void *actor, struct leat_mail *mail)
{
    leat_news_take(actor, &LEAT_CONTAINER(mail, struct walk, mail)->news, walk_step);
}

/* The work of this core in this round. false: some of it is left. */
static bool walk_here(struct walk *walk, struct leat_core *core, int32_t *left)
{
    if (!walk->second_round)
        return walk->desc != NULL ? walk_install(walk, core, left) : walk_delete(walk, core, left);
    struct leat_stream *stream = leat_stream_find(core, walk->stream_id);
    if (walk->desc != NULL) {
        if (stream != NULL && !stream->deleted) leat_stream_publish(stream);
        walk_tell_awaits(walk, core);
        return true;
    }
    if (stream == NULL) return true;
    leat_places_forget(core, stream);
    leat_stream_remove(core, stream);
    return true;
}

static bool walk_step(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    struct walk *walk = LEAT_CONTAINER(news, struct walk, news);
    if (walk->at == 0) *left -= LEAT_NEWS_STREAM_COST;
    if (!walk_here(walk, core, left)) return false;
    walk->begun_here = false;
    walk->at = 0;
    walk_next(walk, core);
    return true;
}

static void walk_tell_awaits(struct walk *walk, struct leat_core *core)
{
    LEAT_LIST_EACH(&core->admin->stream_awaits, link)
    {
        struct leat_stream_wait *wait = LEAT_CONTAINER(link, struct leat_stream_wait, link);
        if (wait->id != walk->stream_id) continue;
        leat_list_remove(&wait->link);
        wait->on_ready(wait);
    }
}

static void walk_next(struct walk *walk, struct leat_core *core)
{
    walk->core++;
    if (walk->core == walk->node->options.cores) {
        walk->core = 0;
        if (walk->second_round) {
            if (walk->desc != NULL) leat_stream_desc_unref(walk->desc);
            leat_begun_unref(walk->begun);
            leat_mem_free(walk);
            return;
        }
        walk->second_round = true;
    }
    leat_core_mail(core, walk->core, &walk->mail, walk_deliver);
}

/* ---- a stream came, or changed ---- */

/* Give up a log that another node owns now, or this node under another epoch than the log's. */
static void log_give_up(const struct leat_core *core, const struct leat_stream *stream,
                        struct leat_partition *partition)
{
    if (partition == NULL || core->stopping) return;
    if (!leat_core_still_owns(core, stream->desc, partition->ref.streamlet, partition->epoch))
        leat_partition_give_up(partition);
}

/* Make a log that is not here yet. A log that can't be made now is made by a later tick. Returns the cost.
 *
 * SUBTLE: no log is made while the core stops. Else (1) a core has counted its logs, and waits for the last of them;
 * (2) a stream is made, with a log here; (3) the stream is deleted, and its log is subtracted from a count that never
 * had it: the count says that the core has stopped; (4) the log of (1) stops, and the count is zero already. The next
 * start makes the new logs. */
static int32_t log_make(struct leat_core *core, struct leat_stream *stream, struct leat_log_ref ref,
                        bool told)
{
    const struct leat_stream_desc *desc = stream->desc;
    const struct leat_log_tail empty = {0};
    if (core->stopping && !LEAT_BUG(STOPPING_MAKES)) return 1;
    if (!leat_core_owns(core, desc, ref.streamlet)) return 1;
    if (leat_core_of_log(core->node, ref, desc->settings.logs) != core->index) return 1;
    struct leat_partition *partition = leat_partition_find(core, ref);
    if (partition != NULL && partition->log != NULL && !leat_partition_goes(partition)) {
        leat_log_settings_set(partition->log, &desc->settings);
        if (partition->copies != NULL)
            leat_primary_log_min_copies_set(partition->copies, desc->settings.min_copies);
    }
    const struct leat_begun_log *begun = leat_begun_find(stream->begun, ref);
    if (partition != NULL && begun != NULL)
        leat_takeover_look(partition, begun, desc->settings.logs);
    if (partition != NULL) return 1;
    if (begun != NULL) { /* another node owned the log, or it is on its way here already */
        leat_takeover_ask(core, begun, desc->settings.logs);
        return LEAT_NEWS_LOG_COST;
    }
    /* Without logs of the groups' own stream no group could be read; these logs are few, and the heap has a spare. */
    const bool room = stream->has_groups || leat_node_heap_admits(core->node, leat_core_now(core));
    leat_err rc = LEAT_E_AGAIN;
    if (room)
        rc = leat_partition_create(core, stream, ref, desc->streamlets[ref.streamlet].epoch, NULL,
                                   0, &empty, &partition);
    if (rc == LEAT_OK) return LEAT_NEWS_LOG_COST;
    const bool first = !stream->logs_missing && !told;
    if (!room && first)
        leat_node_log_summed(&core->wait_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                             "logs of stream \"%s\" wait for memory that segments give back",
                             desc->name);
    stream->logs_missing = core->data->logs_missing = true;
    if (room && first)
        leat_node_log_error("stream \"%s\", streamlet %u, log %u can't be made: %s; it is "
                            "tried again every second",
                            desc->name, ref.streamlet, ref.log, leat_err_text(rc));
    return 1;
}

static uint32_t log_count(const struct leat_stream *stream)
{
    return stream->desc->streamlet_count * stream->desc->settings.logs;
}

static struct leat_log_ref log_at(const struct leat_stream *stream, uint32_t at)
{
    const struct leat_stream_desc *desc = stream->desc;
    return (struct leat_log_ref){desc->id, at / desc->settings.logs, at % desc->settings.logs};
}

static void logs_make(struct leat_core *core, struct leat_stream *stream)
{
    const bool told = stream->logs_missing;
    if (core->stopping && !LEAT_BUG(STOPPING_MAKES)) return;
    stream->logs_missing = false;
    for (uint32_t i = 0; i < log_count(stream); i++)
        (void)log_make(core, stream, log_at(stream, i), told);
}

/* Make the missing logs of one stream. false: some logs are left. */
static bool missing_make(struct leat_core *core, struct leat_stream *stream, int32_t *left)
{
    if (core->missing->at == 0) {
        const bool comes = stream->logs_missing && !stream->published; /* or goes */
        if (comes) core->data->logs_missing = true;
        if (comes || !stream->logs_missing) {
            *left -= 1;
            return true;
        }
        core->missing->told = true;
        stream->logs_missing = false;
    }
    for (; core->missing->at < log_count(stream); core->missing->at++) {
        if (*left <= 0) return false;
        *left -= log_make(core, stream, log_at(stream, core->missing->at), core->missing->told);
    }
    core->missing->at = 0;
    return true;
}

/* Other news wait meanwhile, so no stream comes, changes or goes. */
static bool missing_step(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    (void)news;
    while (core->missing->bucket <= core->data->stream_mask) {
        struct leat_stream *it = core->missing->stream;
        if (it == NULL) it = core->data->streams_by_id[core->missing->bucket];
        for (; it != NULL; it = it->by_id_next) {
            core->missing->stream = it;
            if (*left <= 0 || !missing_make(core, it, left)) return false;
        }
        core->missing->stream = NULL;
        core->missing->bucket++;
    }
    core->missing->under_way = false;
    return true;
}

void leat_walk_make_missing(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (!core->data->logs_missing || core->stopping || core->missing->under_way) return;
    core->data->logs_missing = false;
    core->missing->under_way = true;
    core->missing->bucket = 0;
    leat_news_take(core, &core->missing->news, missing_step);
}

/* SUBTLE: a streamlet that comes to this node while it comes up is in no decision. (1) The coordinators decide which
 * logs the node adopts. (2) A streamlet is moved here, or made here. (3) The event of its stream comes, and no log is
 * made, because the node's own logs are not there yet. (4) The node adopts its logs. So the missing logs are made
 * here. */
void leat_walk_on_adopted(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    core->adopted = true;
    if (LEAT_BUG(MADE_BEFORE_UP)) return;
    for (uint32_t i = 0; i <= core->data->stream_mask; i++) {
        for (struct leat_stream *it = core->data->streams_by_id[i]; it != NULL;
             it = it->by_id_next) {
            if (it->published)
                logs_make(core, it);
            else
                it->logs_missing = core->data->logs_missing = true; /* the tick asks again */
        }
    }
}

/* Give up the logs of streamlets that have another owner, or epoch, than before. */
static void logs_give_up(struct leat_core *core, const struct leat_stream *stream,
                         const struct leat_stream_desc *before)
{
    const struct leat_stream_desc *desc = stream->desc;
    for (uint32_t s = 0; s < desc->streamlet_count; s++) {
        if (s >= before->streamlet_count ||
            (desc->streamlets[s].owner == before->streamlets[s].owner &&
             desc->streamlets[s].epoch.v == before->streamlets[s].epoch.v))
            continue;
        for (uint32_t q = 0; q < desc->settings.logs; q++)
            log_give_up(core, stream,
                        leat_partition_find(core, (struct leat_log_ref){desc->id, s, q}));
    }
}

/* Refused moves, losses that an operator accepted elsewhere, and crashes bring it back. */
void leat_walk_log_released(struct leat_core *core, struct leat_log_ref ref)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find(core, ref.stream);
    if (stream == NULL || !leat_core_owns(core, stream->desc, ref.streamlet)) return;
    const struct leat_begun_log *row = leat_begun_find(stream->begun, ref);
    if (row != NULL)
        leat_takeover_ask(core, row, stream->desc->settings.logs);
    else if (!LEAT_BUG(UNBEGUN_FORGOTTEN))
        stream->logs_missing = core->data->logs_missing =
            true; /* no owner has begun the log: the tick makes it */
}

/* true: logs of the stream are to be made here. */
static bool install_begin(struct walk *walk, struct leat_core *core)
{
    struct leat_stream *stream = leat_stream_find(core, walk->stream_id);
    struct leat_stream_desc *before = stream != NULL ? stream->desc : walk->desc;
    leat_stream_desc_ref(before);
    leat_err rc = leat_stream_put(core, walk->desc, &stream);
    const bool committed_is_applied = rc == LEAT_OK; /* as above */
    LEAT_ASSERT(committed_is_applied);
    leat_begun_unref(stream->begun);
    stream->begun = leat_begun_ref(walk->begun);
    /* In one piece: once the new epoch is known a request under it must not find the log of the old epoch. */
    if (core->adopted) logs_give_up(core, stream, before);
    leat_stream_desc_unref(before);
    if (!core->adopted) return false; /* coming up: made when its own logs are there */
    walk->told = stream->logs_missing;
    if (!core->stopping) stream->logs_missing = false;
    return true;
}

static bool walk_install(struct walk *walk, struct leat_core *core, int32_t *left)
{
    if (!walk->begun_here && !install_begin(walk, core)) return true;
    walk->begun_here = true;
    struct leat_stream *stream = leat_stream_find(core, walk->stream_id);
    for (; walk->at < log_count(stream); walk->at++) {
        const struct leat_log_ref ref = log_at(stream, walk->at);
        if (*left <= 0) return false;
        if (leat_core_of_log(core->node, ref, stream->desc->settings.logs) == core->index)
            log_give_up(core, stream, leat_partition_find(core, ref));
        *left -= log_make(core, stream, ref, walk->told);
    }
    LEAT_LIST_EACH(&core->data->home_logs, link)
    {
        struct leat_partition *home = LEAT_CONTAINER(link, struct leat_partition, home);
        *left -= (int32_t)(leat_groups_on_stream_changed(home->groups, walk->stream_id) /
                           LEAT_NEWS_SET_ROWS);
    }
    return true;
}

/* ---- a stream went ---- */

/* false: some are left. */
static bool walk_delete_logs(struct walk *walk, struct leat_core *core,
                             const struct leat_stream *stream, int32_t *left)
{
    for (; walk->at < log_count(stream); walk->at++) {
        if (*left <= 0) return false;
        struct leat_partition *partition = leat_partition_find(core, log_at(stream, walk->at));
        *left -= partition != NULL ? LEAT_NEWS_LOG_COST : 1;
        if (partition != NULL) leat_partition_delete(core, partition);
    }
    return true;
}

static void delete_begin(const struct walk *walk, struct leat_core *core, int32_t *left)
{
    LEAT_LIST_EACH(&core->data->home_logs, link)
    {
        struct leat_partition *home = LEAT_CONTAINER(link, struct leat_partition, home);
        if (home->ref.stream != walk->stream_id)
            *left -= (int32_t)(leat_groups_on_stream_deleted(home->groups, walk->stream_id) /
                               LEAT_NEWS_SET_ROWS);
    }
    if (core->data->replicate->backup != NULL)
        leat_backup_stream_deleted(core->data->replicate->backup, walk->stream_id);
    struct leat_stream *stream = leat_stream_find(core, walk->stream_id);
    if (stream == NULL) return;
    /* Dropping many segments takes the store a while: it goes on behind the answer. No request
     * finds the logs any more. */
    stream->published = false;
    stream->deleted = true;
}

static bool walk_delete(struct walk *walk, struct leat_core *core, int32_t *left)
{
    if (!walk->begun_here) delete_begin(walk, core, left);
    walk->begun_here = true;
    const struct leat_stream *stream = leat_stream_find(core, walk->stream_id);
    return stream == NULL || walk_delete_logs(walk, core, stream, left);
}
