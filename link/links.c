/* SPDX-License-Identifier: Apache-2.0 */
/* The links of one actor: making, ending, time. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/late.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "link/internal.h"

static void sweep(struct leat_timer *timer);

/* ---- life ---- */

leat_err leat_links_create(const struct leat_links_options *options, struct leat_links **out_links,
                           struct leat_error *error)
{
    struct leat_links *links = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *links);
    if (!links) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for links");
    links->env = options->env;
    links->actor = options->actor;
    links->timers = options->timers;
    links->hub = options->hub;
    LEAT_ASSERT(options->key != NULL);
    links->key = options->key;
    leat_list_init(&links->strangers);
    links->strangers_max = LEAT_LINK_STRANGERS_MAX;
    if (options->strangers_max != 0) links->strangers_max = options->strangers_max;
    LEAT_ASSERT_CMP(links->strangers_max, >=, (uint32_t)LEAT_LINK_STRANGERS_MIN);
    LEAT_ASSERT_CMP(links->strangers_max, <=, (uint32_t)LEAT_LINK_STRANGERS_MAX);
    links->identity = options->identity;
    memcpy(links->services, options->services, sizeof links->services);
    links->ping_us = options->ping_us ? options->ping_us : LINK_PING_US;
    links->silence_us = options->silence_us ? options->silence_us : LINK_SILENCE_US;
    links->retry_us_min = options->retry_us_min ? options->retry_us_min : LINK_RETRY_US_MIN;
    links->retry_us_max = options->retry_us_max ? options->retry_us_max : LINK_RETRY_US_MAX;
    links->queued_bytes_max =
        options->queued_bytes_max ? options->queued_bytes_max : LEAT_LINK_QUEUED_BYTES_MAX;
    LEAT_ASSERT_CMP(links->ping_us, <, links->silence_us);
    links->refused.what = "links were refused";
    links->timer = (struct leat_timer){.on_expired = sweep, .owner = links};
    links->next_us = UINT64_MAX;
    if (links->hub)
        atomic_store_explicit(&links->hub->by_actor[links->env->post->self], links,
                              memory_order_release); /* pairs with hello.c: connection_moved */
    *out_links = links;
    return LEAT_OK;
}

void leat_links_destroy(struct leat_links **links_at)
{
    struct leat_links *links = *links_at;
    *links_at = NULL;
    if (!links) return;
    LEAT_ASSERT_OWNER(links->actor);
    if (links->hub)
        atomic_store_explicit(&links->hub->by_actor[links->env->post->self], NULL,
                              memory_order_release);
    leat_timer_stop(links->timers, &links->timer);
    uint32_t capacity = links->table_capacity;
    links->count++; /* stays until the end of this function */
    links->closing = true;
    for (uint32_t i = 0; i < capacity; i++) {
        struct leat_link *link = links->table[i];
        if (link && !link->gone) leat_link_close(&link);
    }
    links->count--;
    leat_links_free_if_empty(links);
}

void leat_links_identity_set(struct leat_links *links, const struct leat_link_identity *identity)
{
    LEAT_ASSERT_OWNER(links->actor);
    static const uint8_t none[16];
    links->identity = *identity;
    if (memcmp(identity->cluster_id, none, sizeof none) == 0) return;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        struct leat_link *link = links->table[i];
        if (!link || link->state != LINK_UP) continue;
        if (memcmp(link->peer.cluster_id, none, sizeof none) == 0) continue;
        if (memcmp(link->peer.cluster_id, identity->cluster_id, sizeof none) == 0) continue;
        leat_link_cut(link, LEAT_E_WRONG_CLUSTER, "the peer is of another cluster");
    }
}

const struct leat_link_identity *leat_links_identity(const struct leat_links *links)
{
    LEAT_ASSERT_OWNER(links->actor);
    return &links->identity;
}

/* ---- one link ---- */

leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(links->actor);
    const char *port = strrchr(options->address, ':');
    if (!port || strlen(options->address) > LEAT_LINK_ADDRESS_BYTES_MAX)
        return leat_error_set(error, LEAT_E_INVALID, "\"%.100s\" is not HOST:PORT",
                              options->address);
    if (options->purpose == 0 || options->purpose >= LEAT_LINK_PURPOSES)
        return leat_error_set(error, LEAT_E_INVALID, "a link has no purpose %u", options->purpose);
    if (links->count - links->stranger_count >= LEAT_LINKS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "more than %d links", LEAT_LINKS_MAX);
    struct leat_link *link = leat_link_make(links);
    if (!link) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for a link");
    link->serial = ++links->opened;
    link->handler = options->handler;
    link->purpose = options->purpose;
    link->to_actor = options->to_actor;
    link->stranger = options->stranger;
    link->expect_incarnation = options->expect_incarnation;
    snprintf(link->address, sizeof link->address, "%s", options->address);
    if (options->expect_node) {
        link->expect_node = leat_mem_strdup(LEAT_MEM_NET, options->expect_node);
        if (!link->expect_node) {
            leat_link_free(link);
            return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for a link");
        }
    }
    link->try_at_us = leat_links_now(links); /* from the timer: no callback runs inside this call */
    leat_links_due(links, link->try_at_us);
    *out_link = link;
    return LEAT_OK;
}

void leat_link_close(struct leat_link **link_at)
{
    struct leat_link *link = *link_at;
    *link_at = NULL;
    if (!link) return;
    LEAT_ASSERT_OWNER(link->links->actor);
    LEAT_ASSERT(!link->gone);
    link->gone = true;
    if (link->net) {
        leat_link_stranger_end(link);
        leat_link_state_enter(link, LINK_CLOSING);
        link->links->env->net->close(link->net);
        return;
    }
    if (link->entered == 0) leat_link_free(link);
}

leat_err leat_link_readdress(struct leat_link *link, const char *address)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    if (!strrchr(address, ':') || strlen(address) > LEAT_LINK_ADDRESS_BYTES_MAX)
        return LEAT_E_INVALID;
    snprintf(link->address, sizeof link->address, "%s", address);
    return LEAT_OK;
}

void leat_link_retry(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    uint64_t now_us = leat_links_now(link->links);
    if (link->accepted || link->gone) return;
    link->attempts = 0;
    if (link->state == LINK_WAITING) {
        link->try_at_us = now_us;
        leat_links_due(link->links, now_us);
    } else if (link->state == LINK_CONNECTING && now_us > link->since_us + LINK_STALE_US) {
        leat_link_cut(link, LEAT_E_TIMEOUT, "it is tried anew: the peer has just come up");
    }
}

/* ---- time ---- */

/* From when the peer's silence counts. What the peer's user is told is when the peer was heard, and nothing else: the
 * coordinator takes that for the leader's word. */
static uint64_t silent_from(const struct leat_link *link)
{
    return link->heard_us + (link->late_of_us == link->heard_us ? link->late_us : 0);
}

static uint64_t link_up_sweep(struct leat_link *link, uint64_t now_us)
{
    struct leat_links *links = link->links;
    uint64_t next_us = UINT64_MAX;
    leat_link_calls_expire(link, now_us, &next_us);
    if (link->state != LINK_UP) return next_us;
    uint64_t silent_us = silent_from(link) + links->silence_us;
    if (now_us >= silent_us) {
        leat_link_cut(link, LEAT_E_TIMEOUT, "nothing was heard of the peer for too long");
        return next_us;
    }
    uint64_t asked_us = link->pinged_us > link->heard_us ? link->pinged_us : link->heard_us;
    if (now_us >= asked_us + links->ping_us) {
        link->pinged_us = asked_us = now_us;
        if (!leat_link_frame_send(link, LEAT_NODE_KIND_PING, 0, 0, "\x90", 1, NULL, NULL, false))
            LEAT_MAYBE(true); /* no memory now: asked again next time */
    }
    uint64_t ask_us = asked_us + links->ping_us;
    if (ask_us < next_us) next_us = ask_us;
    return silent_us < next_us ? silent_us : next_us;
}

static uint64_t link_sweep(struct leat_link *link, uint64_t now_us)
{
    struct leat_links *links = link->links;
    switch (link->state) {
    case LINK_WAITING:
        if (now_us < link->try_at_us) return link->try_at_us;
        leat_link_connect(link);
        return link->state == LINK_WAITING ? link->try_at_us : link->since_us + links->silence_us;
    case LINK_CONNECTING:
    case LINK_NONCE:
    case LINK_HELLO:
        if (now_us < link->since_us + links->silence_us) return link->since_us + links->silence_us;
        leat_link_cut(link, LEAT_E_TIMEOUT, "no hello within the time allowed");
        return UINT64_MAX;
    case LINK_UP:
        return link_up_sweep(link, now_us);
    case LINK_CLOSING: /* a refusal that the peer never reads */
        if (link->gone) return UINT64_MAX;
        if (now_us < link->since_us + links->silence_us) return link->since_us + links->silence_us;
        links->env->net->close(link->net);
        return UINT64_MAX;
    }
    return UINT64_MAX;
}

/* SUBTLE: when this actor itself ran late, bytes of the peers may lie unread in the sockets. Without this a stall of
 * two seconds here cut every link of the node, and ended all calls. The first sweep that ran late in a silence cuts no
 * link, and the first in a call's time does not end the call: the bytes are read before the next sweep. If no late
 * sweep ever cut a link, a dead peer's link would stay where all sweeps are late. */
static void link_excuse(struct leat_link *link, uint64_t late_us, uint64_t now_us)
{
    const struct leat_links *links = link->links;
    uint64_t next_us = now_us + links->ping_us;
    uint64_t from_us = leat_late_heard(silent_from(link), late_us, now_us);
    bool first = link->late_of_us != link->heard_us;
    if (first && next_us > from_us + links->silence_us) from_us = next_us - links->silence_us;
    leat_link_calls_excuse(link, next_us);
    link->late_of_us = link->heard_us;
    link->late_us = from_us - link->heard_us;
}

static void sweep(struct leat_timer *timer)
{
    struct leat_links *links = timer->owner;
    uint64_t now_us = leat_links_now(links);
    uint64_t late_us = leat_late_us(links->next_us, links->ping_us, now_us);
    leat_node_log_sum_tell(&links->refused, now_us);
    links->sweeping = true;
    links->next_us = UINT64_MAX;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        struct leat_link *link = links->table[i];
        if (!link || link->gone) continue;
        if (late_us != 0) link_excuse(link, late_us, now_us);
        leat_link_enter(link);
        uint64_t next_us = link_sweep(link, now_us);
        if (leat_link_leave(link)) leat_links_due(links, next_us);
    }
    links->sweeping = false;
    if (links->closing || links->next_us == UINT64_MAX) return;
    leat_timer_start(links->timers, &links->timer,
                     links->next_us > now_us ? links->next_us - now_us : 0);
}

/* ---- questions ---- */

bool leat_link_is_up(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->state == LINK_UP;
}
const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return &link->peer;
}
const char *leat_link_address(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->address;
}
struct leat_links *leat_link_links(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->links;
}
bool leat_link_accepted(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->accepted;
}
unsigned leat_link_purpose_of(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->purpose;
}
void leat_link_user_set(struct leat_link *link, void *user)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    link->user = user;
}
void *leat_link_user(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->user;
}
uint64_t leat_link_queued_bytes(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->queued_bytes;
}
uint64_t leat_link_heard_us(const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->heard_us;
}
