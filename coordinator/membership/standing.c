/* SPDX-License-Identifier: Apache-2.0 */
/* The standing of this node: is this node heard, and has it been declared crashed? And pings, which show this.
 *
 * SUBTLE: a message that is read now may have been sent long ago: only an answer to a question proves what held after
 * the question.
 *  1. A node stands still for longer than `suspect`. The leader's pings gather in its socket: they say that the node
 *     is up. Then the node is declared crashed, and another node serves its logs.
 *  2. The node goes on, suspects itself, reads these pings, and takes itself for confirmed: it serves stale reads
 *     until it hears of the crash.
 * A leader that was cut off would do the same with earlier messages of a majority. So every ping has a number, an
 * answer names this number, and only answers to pings sent since then count. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/node_log.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

/* PING [leads, term, newest incarnation of the asked node here, whether this is crashed, applied, number, deaf]
 * PONG the same, of the node that answers; number: the number of the ping
 * deaf: the sender leads, and no messages of a majority arrive at the sender */
void co_standing_set(struct leat_coordinator *coordinator, enum leat_standing standing)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_detect *it = &coordinator->detect;
    if (it->standing == standing || it->standing == LEAT_STANDING_CRASHED) return;
    it->standing = standing;
    if (standing == LEAT_STANDING_ALONE) it->alone_from = it->number + 1;
    static const char *const names[] = {[LEAT_STANDING_CONFIRMED] = "is confirmed as up",
                                        [LEAT_STANDING_ALONE] =
                                            "hears nobody, was stopped, or is said to have crashed",
                                        [LEAT_STANDING_CRASHED] = "was declared crashed"};
    leat_node_log_debug("coordinator: this node %s",
                        names[standing]); /* the receiver of on_standing reports the rest */
    if (coordinator->options.on_standing)
        coordinator->options.on_standing(coordinator->options.owner, standing);
}

void co_detect_node(struct leat_coordinator *coordinator, const struct leat_node_info *node)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (coordinator->incarnation == 0 || !coordinator->links ||
        strcmp(node->name, leat_links_identity(coordinator->links)->node) != 0)
        return;
    if (node->incarnation > coordinator->incarnation ||
        (node->incarnation == coordinator->incarnation && node->crashed))
        co_standing_set(coordinator, LEAT_STANDING_CRASHED);
}

unsigned co_voters_count(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    unsigned count = 0;
    for (unsigned i = 0; coordinator->votes && i < configuration->n; i++)
        if (configuration->servers[i].role == RAFT_VOTER) count++;
    return count;
}

bool co_others_expected(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *info = &coordinator->machine.nodes[i].info;
        if (info->state == LEAT_NODE_UP && info->node_address[0] &&
            info->incarnation != coordinator->incarnation)
            return true;
    }
    return false;
}

static void anybody_heard(struct leat_coordinator *coordinator)
{
    struct co_detect *it = &coordinator->detect;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!co_peer_heard_of(peer)) continue;
        uint64_t heard_us = leat_link_heard_us(peer->link);
        if (heard_us > it->heard_us) it->heard_us = heard_us;
    }
}

/* Since this node became isolated a majority of voters has answered, and knows no later term. A later leader would have
 * the votes of a majority, so at least one of these voters would have voted in its term. */
static bool still_leads(struct leat_coordinator *coordinator)
{
    uint64_t term = raft_current_term(&coordinator->drive.raft);
    unsigned agree = 1;
    if (!co_leads(coordinator)) return false;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (peer->pong_number < coordinator->detect.alone_from || !co_peer_votes(coordinator, peer))
            continue;
        if (peer->pong_term > term) return false;
        /* Two connections may lead to one voter: the connection that this node opened is counted. */
        if (peer->wanted && peer->state.voter_id != 0) agree++;
    }
    return agree > co_voters_count(coordinator) / 2;
}

void co_standing_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_detect *it = &coordinator->detect;
    if (coordinator->incarnation == 0) return;
    if (!co_others_expected(coordinator)) {
        co_standing_set(coordinator, LEAT_STANDING_CONFIRMED);
        return;
    }
    uint64_t alone_us = co_suspect_us(coordinator) + co_confirm_us(coordinator);
    /* no other node can lead */
    bool sole = co_leads(coordinator) && co_voters_count(coordinator) == 1;
    anybody_heard(coordinator);
    if (!sole && it->judged_us > it->heard_us + alone_us)
        co_standing_set(coordinator, LEAT_STANDING_ALONE);
    if (it->standing == LEAT_STANDING_ALONE && still_leads(coordinator))
        co_standing_set(coordinator, LEAT_STANDING_CONFIRMED);
}

/* ---- pings ---- */

static void ping_send(struct leat_coordinator *coordinator, struct co_peer *peer, uint16_t kind,
                      uint64_t number)
{
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    const struct leat_machine_node *node =
        leat_machine_node_find(&coordinator->machine, peer->state.node, strlen(peer->state.node));
    bool alone = coordinator->detect.standing == LEAT_STANDING_ALONE; /* it may have been deposed */
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    struct co_ping_said ping = {
        .leads = co_leads(coordinator) && !alone,
        .term = coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0,
        .incarnation = node ? node->info.incarnation : 0,
        .crashed = node && node->info.crashed,
        .applied = coordinator->applied,
        .number = number,
        .deaf = coordinator->detect.deaf && co_leads(coordinator),
    };
    co_ping_said_write(&writer, &ping);
    if (leat_link_tell(peer->link, kind, bytes, writer.used) != LEAT_OK)
        LEAT_MAYBE(true); /* it is full, or down: silence will tell */
}

void co_ping_send(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    ping_send(coordinator, peer, CO_KIND_PING, coordinator->detect.number);
}

static bool ping_read(struct co_peer *peer, const struct leat_frame *frame,
                      struct co_ping_said *out)
{
    if (co_ping_said_decode(frame->control, frame->control_bytes, out) == LEAT_OK) return true;
    leat_link_cut(peer->link, LEAT_E_INVALID, "a malformed ping");
    return false;
}

/* Does the ping come from the leader? On a voter Raft says which node leads, and in which term. A ping of an earlier
 * leader is not needed: the next leader and the tables say the same. */
static bool leader_says(const struct leat_coordinator *coordinator, const struct co_peer *peer,
                        const struct co_ping_said *ping)
{
    bool votes = coordinator->votes && !co_learns(coordinator);
    uint64_t term = votes ? raft_current_term(&coordinator->drive.raft) : peer->state.term;
    return ping->leads && ping->term >= term && co_peer_leads(coordinator, peer);
}

/* Crashed is crashed, whenever the leader said it.
 *
 * SUBTLE: if a node that does not lead says that this node has crashed, this node is isolated until the leader answers.
 * The other node need not vote: it has applied the committed entry.
 *  1. What the leader sends does not reach this node, while what other nodes send does: so the node is not ALONE.
 *  2. The leader does not hear this node either, and declares it crashed; another node serves its logs.
 *  3. This node serves reads of the past for as long as its cable is cut in that way.
 * So the node asks the leader anew, and serves no reads until the leader has answered. */
static void crash_take(struct leat_coordinator *coordinator, const struct co_peer *peer,
                       const struct co_ping_said *ping, bool leads)
{
    if (ping->incarnation < coordinator->incarnation ||
        (ping->incarnation == coordinator->incarnation && !ping->crashed))
        return;
    if (leads)
        co_standing_set(coordinator, LEAT_STANDING_CRASHED);
    else if (!LEAT_BUG(CRASH_UNHEEDED) &&
             (co_peer_votes(coordinator, peer) || !LEAT_BUG(END_UNCONFIRMED)))
        co_standing_set(coordinator, LEAT_STANDING_ALONE);
}

void co_ping_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_detect *it = &coordinator->detect;
    struct co_ping_said ping;
    if (!ping_read(peer, frame, &ping)) return;
    ping_send(coordinator, peer, CO_KIND_PONG, ping.number);
    if (coordinator->incarnation == 0 || !co_same_cluster(coordinator, peer)) return;
    bool leads = leader_says(coordinator, peer, &ping);
    /* Two pings in a row name entries that are not here, and none came meanwhile: they are not just on their way. */
    if (leads && ping.applied > coordinator->applied && it->behind == coordinator->applied)
        co_feed_behind(coordinator, peer, ping.applied);
    if (leads) it->behind = ping.applied > coordinator->applied ? coordinator->applied : 0;
    crash_take(coordinator, peer, &ping, leads);
    if (ping.deaf) co_detect_deaf(coordinator, peer);
}

void co_pong_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_detect *it = &coordinator->detect;
    struct co_ping_said ping;
    if (!ping_read(peer, frame, &ping)) return;
    if (ping.number > peer->pong_number) peer->pong_us = co_now(coordinator);
    peer->pong_number = ping.number;
    peer->pong_term = ping.term;
    if (coordinator->incarnation == 0 || !co_same_cluster(coordinator, peer)) return;
    bool leads = leader_says(coordinator, peer, &ping);
    crash_take(coordinator, peer, &ping, leads);
    if (it->standing != LEAT_STANDING_ALONE || ping.number < it->alone_from) return;
    if ((leads && ping.incarnation == coordinator->incarnation) || still_leads(coordinator))
        co_standing_set(coordinator, LEAT_STANDING_CONFIRMED);
}
