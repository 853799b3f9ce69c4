/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches that wait: for their logs to move, for structs to read with, for slow peers. */
#include "base/assert.h"
#include "base/bug.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"

static void fetch_unwatch(struct leat_fetch *fetch);

/* ---- long poll ---- */

/* On the log's core: is it past `watch_from` already? Else stand in line. */
static bool item_watch(struct leat_core *home, struct leat_fetch_item *item)
{
    struct leat_partition *partition = leat_partition_find(home, item->want.log);
    if (partition == NULL || leat_partition_goes(partition) || home->stopping) return false;
    if (leat_log_acked_offset(partition->log) > item->watch_from) return false;
    leat_list_push_back(&partition->waiters, &item->waiting);
    return true;
}

static void item_deliver_tell(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, tell);
    (void)actor;
    item->mails_out--;
    item->fetch->watches_out--;
    leat_fetch_wake(item->fetch);
}

static void item_deliver_ask(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, ask);
    if (!item_watch(home, item))
        leat_core_mail(home, item->fetch->core->index, &item->tell, item_deliver_tell);
}

static void item_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, cancel);
    (void)actor;
    item->mails_out--;
    if (item->watch_ended) {
        item->mails_out--;
        item->fetch->watches_out--;
    }
    item->fetch->watches_out--;
    leat_fetch_wake(item->fetch);
}

static void item_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    struct leat_fetch_item *item = LEAT_CONTAINER(mail, struct leat_fetch_item, cancel);
    item->watch_ended = !leat_list_empty(&item->waiting);
    leat_list_remove(&item->waiting);
    leat_core_mail(home, item->fetch->core->index, &item->cancel, item_deliver_cancelled);
}

void leat_fetch_wait(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    uint64_t now = leat_core_now(core);
    leat_fetch_enter(fetch, LEAT_FETCH_WAITING);
    if (now >= fetch->deadline_us) {
        fetch->over_deadline = true;
    } else if (!leat_timer_armed(&fetch->timer)) {
        leat_timer_start(&core->timers, &fetch->timer, fetch->deadline_us - now);
    }
    bool woken = fetch->over_deadline;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        /* From an application offset nothing tells what comes next: any move wakes. */
        if (item->want.by_position && item->watch_from == item->want.offset)
            item->watch_from = item->result.acked_offset;
        if (item->home != core->index) {
            item->mails_out++;
            fetch->watches_out++;
            leat_core_mail(core, item->home, &item->ask, item_deliver_ask);
        } else if (!item_watch(core, item)) {
            woken = true;
        }
    }
    if (woken) leat_fetch_wake(fetch);
}

/* Something moved, or time is up, or a watch came back. */
void leat_fetch_wake(struct leat_fetch *fetch)
{
    LEAT_ASSERT_OWNER(fetch->core);
    struct leat_core *core = fetch->core;
    if (fetch->state == LEAT_FETCH_WAITING) {
        leat_fetch_enter(fetch, LEAT_FETCH_UNWATCHING);
        fetch_unwatch(fetch);
    }
    if (fetch->state == LEAT_FETCH_UNWATCHING && fetch->watches_out == 0 &&
        leat_list_empty(&fetch->link))
        leat_list_push_back(&core->data->ready_fetches, &fetch->link);
}

static void fetch_unwatch(struct leat_fetch *fetch)
{
    struct leat_core *core = fetch->core;
    for (struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next) {
        if (item->home == core->index) {
            leat_list_remove(&item->waiting);
        } else if (item->mails_out > 0) {
            item->mails_out++;
            fetch->watches_out++;
            leat_core_mail(core, item->home, &item->cancel, item_deliver_cancel);
        }
    }
}

/* A log's acked end moved: on the log's core. */
void leat_fetch_on_acked(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    struct leat_list *link;
    if (LEAT_BUG(PULL_UNWOKEN)) return;
    while ((link = leat_list_pop_front(&partition->waiters)) != NULL) {
        struct leat_fetch_item *item = LEAT_CONTAINER(link, struct leat_fetch_item, waiting);
        if (item->fetch->core == core)
            leat_fetch_wake(item->fetch);
        else
            leat_core_mail(core, item->fetch->core->index, &item->tell, item_deliver_tell);
    }
}

void leat_fetch_on_timer(struct leat_timer *timer)
{
    struct leat_fetch *fetch = timer->owner;
    fetch->over_deadline = true;
    leat_fetch_wake(fetch);
}

/* The fetch waits until its connection takes earlier answers: no read of the fetch is under way. */
static bool waits_for_peer(const struct leat_fetch *fetch)
{
    const struct leat_peer *peer = fetch->peer;
    if (peer == NULL || peer->closing) return false;
    bool slow = !leat_list_empty(&peer->slow);
    if (fetch->state == LEAT_FETCH_READY) return slow;
    return (fetch->state == LEAT_FETCH_RUNNING || fetch->state == LEAT_FETCH_UNWATCHING) &&
           !leat_list_empty(&fetch->link) && (slow || leat_fetch_peer_holds_enough(peer));
}

/* SUBTLE: fetches that wait for their own connection give way, too, as do fetches that wait for data. (1) A hundred
 * connections fetch many logs each, and read no answer. (2) Each connection has more fetches after its first; these
 * begin when the peer has taken the answer. (3) These fetches hold all structs. (4) An honest fetch of many logs
 * finds no struct until the hundred connections are closed for taking nothing; then they connect again. */
void leat_fetch_give_way(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_wanted wanted;
    leat_stocks_wanted(core, &wanted);
    LEAT_LIST_EACH(&core->data->fetches, link)
    {
        if (wanted.of_all + wanted.of_own == 0) break;
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, by_core);
        bool waits = fetch->state == LEAT_FETCH_WAITING;
        if (!waits && !waits_for_peer(fetch)) continue;
        if (!leat_wanted_of(&wanted, fetch->sharer, fetch->item_count)) continue;
        if (waits) {
            fetch->over_deadline = true;
            leat_fetch_wake(fetch);
        } else {
            leat_fetch_refuse(fetch);
        }
    }
}

/* ---- at the end of a turn ---- */

/* Call as many starved fetches as there are structs. Counted anew each time, because a call can be in vain: its fetch
 * may be gone, or a new fetch was faster. Otherwise all structs could lie free while all fetches wait in line. */
static bool fetch_call_starved(struct leat_core *core)
{
    uint32_t count = 0;
    struct leat_list *link;
    while (count < core->read_pool.left &&
           (link = leat_list_pop_front(&core->data->starved_reads)) != NULL) {
        LEAT_CONTAINER(link, struct leat_fetch, link)->called = true;
        leat_list_push_back(&core->data->ready_fetches, link);
        count++;
    }
    return count > 0;
}

static void fetch_run_ready_once(struct leat_core *core)
{
    struct leat_list now;
    leat_list_init(&now);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&core->data->ready_fetches)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, link);
        if (fetch->state == LEAT_FETCH_RUNNING) {
            /* The fetch waited for a struct to read with. */
            while (fetch->at != NULL)
                if (!leat_fetch_read_at(fetch)) break;
            if (fetch->at == NULL) leat_fetch_finish(fetch);
        } else if (fetch->peer == NULL) {
            leat_fetch_free(fetch);
        } else if (leat_peer_is_slow(fetch->peer)) {
            leat_list_push_back(&core->data->deferred_fetches, &fetch->link);
        } else {
            leat_fetch_run(fetch);
        }
    }
}

/* SUBTLE: starved fetches are called only after the ready fetches have run. Else (1) all fetches that wait in line
 * are called, so the line is empty; (2) a new fetch takes the struct; (3) a called fetch finds no struct, and waits
 * at the end of the line again. */
void leat_fetch_run_ready(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    do {
        fetch_run_ready_once(core);
    } while (fetch_call_starved(core));
}

/* Slow readers have been looked at: a reader that takes bytes again is fetched for again. */
void leat_fetch_undefer(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_LIST_EACH(&core->data->deferred_fetches, link)
    {
        struct leat_fetch *fetch = LEAT_CONTAINER(link, struct leat_fetch, link);
        if (fetch->peer != NULL && !leat_list_empty(&fetch->peer->slow)) continue;
        leat_list_remove(&fetch->link);
        leat_fetch_enter(fetch, LEAT_FETCH_UNWATCHING);
        leat_list_push_back(&core->data->ready_fetches, &fetch->link);
    }
}
