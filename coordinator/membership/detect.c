/* SPDX-License-Identifier: Apache-2.0 */
/* Failure detection: suspicion, proof; and the replacement of a leader that died. Pings: membership/standing.c.
 *
 * The leader pings every node each round. A node that has not heard the leader pings the leader, and after a while
 * all connected nodes. A broken connection is tried again at once: a refused address proves that the node is dead.
 * Otherwise silence decides, by this node's own clock; a round in which this process itself ran late does not count
 * as silence. docs/recovery.md has the numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/late.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

/* LOST [term, leader's voter id, own last index, its term] */

enum {
    PING_US = 25 * 1000,
    SUSPECT_US = 100 * 1000,
    CONFIRM_US = 60 * 1000,
    ROUND_US_PER_NODE = 1000, /* a round of many nodes takes longer */
    SUSPECT_US_MAX = 3 * 1000 * 1000,
    GAP_DECAY = 256, /* rounds until a long earlier silence is mostly forgotten */
    LOST_WORD_US = 1000 * 1000,
    LOST_TELL_US = 1000 * 1000, /* until the node log says it again */
};

static uint64_t option_us(unsigned ms, uint64_t otherwise_us)
{
    return ms ? (uint64_t)ms * 1000 : otherwise_us;
}
uint64_t co_suspect_us(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    return option_us(coordinator->options.suspect_ms, SUSPECT_US);
}
uint64_t co_confirm_us(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    return option_us(coordinator->options.confirm_ms, CONFIRM_US);
}
static uint64_t round_us(const struct leat_coordinator *coordinator)
{
    uint64_t us = option_us(coordinator->options.ping_ms, PING_US);
    uint64_t least_us = (uint64_t)coordinator->machine.node_count * ROUND_US_PER_NODE;
    return us > least_us ? us : least_us;
}

bool co_peer_heard_of(const struct co_peer *peer)
{
    return leat_link_is_up(peer->link) && peer->state.known;
}

/* ---- crashes ---- */

static void crash_done(struct leat_coordinate *request)
{
    ((struct leat_coordinator *)request->owner)->watching = false;
}

static bool crash_propose(struct leat_coordinator *coordinator, uint32_t i, const char *why)
{
    const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
    if (coordinator->watching) return false;
    leat_node_log_warn("coordinator: node %s (incarnation %" PRIu64
                       ") is declared crashed: %s; last heard %" PRIu64 " us ago",
                       node->name, node->incarnation, why,
                       co_now(coordinator) - coordinator->watch[i].said_us);
    coordinator->watching = true;
    coordinator->watch_request = (struct leat_coordinate){.kind = LEAT_COORDINATE_CRASH,
                                                          .from = LEAT_ACTOR_COORDINATOR,
                                                          .target = node->name,
                                                          .incarnation = node->incarnation,
                                                          .on_done = crash_done,
                                                          .owner = coordinator};
    co_request_queue(coordinator, &coordinator->watch_request);
    return true;
}

/* Another node, or a new incarnation. gap_us stays: it says how long silences on that machine last. */
static void watch_begin(struct co_watch *watch, uint64_t incarnation, uint64_t now_us)
{
    *watch = (struct co_watch){
        .incarnation = incarnation, .said_us = now_us, .heard_us = now_us, .gap_us = watch->gap_us};
}

/* The counterpart in the node log to the line about a node's crash. */
static void return_tell(const struct leat_coordinator *coordinator,
                        const struct leat_node_info *node, const struct co_watch *before,
                        uint64_t now_us)
{
    if (!co_leads(coordinator) || !co_ready(coordinator) || node->crashed ||
        node->state != LEAT_NODE_UP || node->incarnation == coordinator->incarnation)
        return;
    if (before->heard)
        leat_node_log_info(
            "coordinator: node %s (incarnation %" PRIu64 ") is up; the one before it (%" PRIu64
            ") was last heard %" PRIu64 " us ago",
            node->name, node->incarnation, before->incarnation, now_us - before->said_us);
    else
        leat_node_log_info("coordinator: node %s (incarnation %" PRIu64 ") is up", node->name,
                           node->incarnation);
}

static void watch_update(struct leat_coordinator *coordinator, uint32_t i, uint64_t now_us)
{
    const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
    struct co_watch *watch = &coordinator->watch[i];
    if (watch->incarnation != node->incarnation) {
        return_tell(coordinator, node, watch, now_us);
        watch_begin(watch, node->incarnation, now_us);
        return;
    }
    const struct co_peer *peer = co_peer_of_incarnation(coordinator, node->incarnation);
    /* SUBTLE: only answers of a node prove that the node is up. Where this node's messages are lost and the peer's
     * arrive, the peer keeps pinging this node: if its pings counted, it would count as up until its connection
     * is given up. */
    uint64_t heard_us = peer ? peer->pong_us : 0;
    if (watch->gap_us) watch->gap_us -= (watch->gap_us + GAP_DECAY - 1) / GAP_DECAY;
    if (heard_us <= watch->heard_us) return;
    uint64_t gap_us = heard_us - watch->heard_us;
    if (gap_us > watch->gap_us && watch->heard && !node->crashed) watch->gap_us = gap_us;
    watch->said_us = watch->heard_us = heard_us;
    watch->heard = true; /* the time until the first answer is no gap */
    watch->dead = watch->lost = false;
}

/* This process stood still for `late_us`: no node was silent during this time, and no node was heard. */
static void watch_stand_still(struct co_watch *watch, uint64_t late_us, uint64_t now_us)
{
    if (watch->heard_us == 0) return;
    watch->heard_us = leat_late_heard(watch->heard_us, late_us, now_us);
    if (late_us > watch->gap_us) watch->gap_us = late_us; /* others may be as late */
}

static void stood_still(struct leat_coordinator *coordinator, uint64_t late_us, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++)
        watch_stand_still(&coordinator->watch[i], late_us, now_us);
    watch_stand_still(&it->leader_watch, late_us, now_us);
    it->heard_us = leat_late_heard(it->heard_us, late_us, now_us);
}

/* The leader waits longer for a node that was silent for long before and came back: a busy machine. */
static uint64_t patience_us(const struct leat_coordinator *coordinator,
                            const struct co_watch *watch)
{
    uint64_t us = co_suspect_us(coordinator);
    if (2 * watch->gap_us > us) us = 2 * watch->gap_us;
    if (us > SUSPECT_US_MAX) us = SUSPECT_US_MAX;
    return us + co_confirm_us(coordinator);
}

static const struct co_watch *watch_of_peer(const struct leat_coordinator *coordinator,
                                            const struct co_peer *peer)
{
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++)
        if (coordinator->watch[i].incarnation == peer->state.incarnation)
            return &coordinator->watch[i];
    return NULL;
}

/* Has a majority of the voters, this one included, answered lately: each within its own patience, or, if `recently`,
 * within `suspect`?
 *
 * SUBTLE: an answer counts on any connection. A voter that was just started anew connects to this node at once; this
 * node tries the voter's address again up to a second later, since the address refused for a while. If only
 * connections that this node opened counted, a leader that hears this voter well would take itself for deaf when
 * another voter dies, and would declare no node crashed meanwhile. */
static bool majority_answers(struct leat_coordinator *coordinator, uint64_t now_us, bool recently)
{
    const struct raft_configuration *voters = &coordinator->drive.raft.configuration;
    unsigned heard = 1;
    for (unsigned i = 0; i < voters->n; i++) {
        const struct raft_server *voter = &voters->servers[i];
        if (voter->role != RAFT_VOTER || voter->id == coordinator->voter_id) continue;
        const struct co_peer *peer = co_peer_of_voter(coordinator, voter->id);
        if (!peer) continue;
        const struct co_watch *watch = watch_of_peer(coordinator, peer);
        uint64_t limit_us = co_suspect_us(coordinator);
        if (watch && !recently) limit_us = patience_us(coordinator, watch);
        if (!watch || now_us <= watch->heard_us + limit_us) heard++;
    }
    return heard > co_voters_count(coordinator) / 2;
}

/* SUBTLE: the silence of a node that was declared crashed counts up to the declaration, and only half of it.
 *  1. A cable is cut for a minute and repaired. The node that was declared crashed answers, hears this, and starts
 *     anew.
 *  2. If the whole minute counted as a silence that this node may have, its patience would be 3 s for a while: if the
 *     node dies then, its streamlets stand still for 3 s.
 *  3. If nothing counted, a node that stands still for 200 ms now and then would be declared crashed each time.
 * So with each declaration the node's patience grows by `confirm`. */
static void silence_declare(struct leat_coordinator *coordinator, uint32_t i, uint64_t silent_us)
{
    struct co_watch *watch = &coordinator->watch[i];
    if (!crash_propose(coordinator, i, "it does not answer")) return;
    if (silent_us / 2 > watch->gap_us) watch->gap_us = silent_us / 2;
}

/* SUBTLE: a leader that hears no majority must not declare a node crashed for silence. Its messages may still arrive:
 * then the entry is in the logs of other voters, and the next leader commits it. */
static void nodes_watch(struct leat_coordinator *coordinator)
{
    const uint64_t now_us = co_now(coordinator), judged_us = coordinator->detect.judged_us;
    bool hears = co_leads(coordinator) && majority_answers(coordinator, judged_us, true);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
        struct co_watch *watch = &coordinator->watch[i];
        if (!node->node_address[0]) continue; /* an embedded node of an earlier version */
        watch_update(coordinator, i, now_us);
        if (!co_leads(coordinator) || !co_ready(coordinator) || node->crashed ||
            node->state == LEAT_NODE_GONE || node->incarnation == coordinator->incarnation)
            continue;
        if (watch->dead)
            crash_propose(coordinator, i, "nobody listens at its address");
        else if (watch->lost)
            crash_propose(coordinator, i, "it led, and a majority does not hear it");
        else if (hears && judged_us > watch->heard_us + patience_us(coordinator, watch))
            silence_declare(coordinator, i, judged_us - watch->heard_us);
    }
}

/* ---- the leader is lost ---- */

/* The voter's statement about the leader's loss, on any connection; NULL: none that counts now. */
static const struct co_lost *lost_word(const struct leat_coordinator *coordinator, raft_id voter,
                                       uint64_t now_us)
{
    const struct co_detect *it = &coordinator->detect;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        const struct co_lost *word = &peer->lost;
        if (co_peer_heard_of(peer) && peer->state.voter_id == voter &&
            word->term == it->lost_term && word->leader == it->lost_leader &&
            now_us <= word->since_us + LOST_WORD_US)
            return word;
    }
    return NULL;
}

/* Once a majority of voters says that the leader is lost, the voter with the longest log among these takes over. */
static void lead_maybe(struct leat_coordinator *coordinator, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    const struct raft_configuration *voters = &coordinator->drive.raft.configuration;
    raft_id leader = 0;
    const char *address = NULL;
    if (!it->lost || !coordinator->votes || co_learns(coordinator)) return;
    raft_leader(&coordinator->drive.raft, &leader, &address);
    if (leader != it->lost_leader || raft_current_term(&coordinator->drive.raft) != it->lost_term)
        return;
    uint64_t index = 0, term = 0;
    leat_raft_drive_last(&coordinator->drive, &index, &term);
    unsigned agree = 1;
    for (unsigned i = 0; i < voters->n; i++) {
        const struct raft_server *voter = &voters->servers[i];
        if (voter->role != RAFT_VOTER || voter->id == coordinator->voter_id) continue;
        const struct co_lost *word = lost_word(coordinator, voter->id, now_us);
        if (!word) continue;
        agree++;
        bool longer = word->last_term > term ||
                      (word->last_term == term &&
                       (word->last_index > index ||
                        (word->last_index == index && voter->id < coordinator->voter_id)));
        if (longer) return; /* the other voter takes over */
    }
    if (agree <= co_voters_count(coordinator) / 2) return;
    leat_node_log_warn("coordinator: the leader is lost: this voter takes over");
    it->lost = false;
    leat_raft_drive_take_over(&coordinator->drive);
}

static void lost_tell(struct leat_coordinator *coordinator)
{
    const struct co_detect *it = &coordinator->detect;
    const struct raft_configuration *voters = &coordinator->drive.raft.configuration;
    uint8_t bytes[48];
    struct co_lost word = {.term = it->lost_term, .leader = it->lost_leader};
    struct leat_msg_writer writer;
    leat_raft_drive_last(&coordinator->drive, &word.last_index, &word.last_term);
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    co_lost_said_write(&writer, &word);
    for (unsigned i = 0; i < voters->n; i++) {
        struct co_peer *peer = co_peer_of_voter(coordinator, voters->servers[i].id);
        if (!peer || !co_peer_heard_of(peer)) continue;
        if (leat_link_tell(peer->link, CO_KIND_LOST, bytes, writer.used) != LEAT_OK)
            LEAT_MAYBE(true); /* it is told again, each round */
    }
}

static void leader_lost(struct leat_coordinator *coordinator, uint64_t now_us, const char *why)
{
    struct co_detect *it = &coordinator->detect;
    raft_id leader = 0;
    const char *address = NULL;
    if (!coordinator->votes || co_learns(coordinator) || co_leads(coordinator)) return;
    raft_leader(&coordinator->drive.raft, &leader, &address);
    if (leader == 0 || leader == coordinator->voter_id) return;
    /* The leader may be lost and heard again in each round: one line a second. */
    bool told = it->lost || (it->lost_leader == leader && now_us < it->lost_told_us + LOST_TELL_US);
    if (!told) it->lost_told_us = now_us;
    if (!told)
        leat_node_log_warn("coordinator: the leader (%s) is not heard: %s, for %" PRIu64
                           " us; the other voters are told",
                           address ? address : "?", why, now_us - it->leader_watch.said_us);
    it->lost = true;
    it->lost_leader = leader;
    it->lost_term = raft_current_term(&coordinator->drive.raft);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++)
        if (address && strcmp(coordinator->machine.nodes[i].info.node_address, address) == 0)
            coordinator->watch[i].lost = true; /* used if this voter leads next */
    lost_tell(coordinator);
    lead_maybe(coordinator, now_us);
}

void co_detect_deaf(struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (peer->state.voter_id != 0 && peer->state.voter_id == coordinator->detect.leader &&
        co_peer_votes(coordinator, peer))
        leader_lost(coordinator, co_now(coordinator), "it hears no majority");
}

void co_lost_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_lost word;
    if (co_lost_said_decode(frame->control, frame->control_bytes, &word) != LEAT_OK) {
        leat_link_cut(peer->link, LEAT_E_INVALID, "a malformed LOST");
        return;
    }
    word.since_us = co_now(coordinator);
    if (!co_same_cluster(coordinator, peer)) return;
    peer->lost = word;
    lead_maybe(coordinator, word.since_us);
}

static void leader_watch(struct leat_coordinator *coordinator, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    raft_id leader = 0;
    const char *address = NULL;
    struct co_peer *peer = NULL;
    if (coordinator->votes && !co_learns(coordinator)) {
        raft_leader(&coordinator->drive.raft, &leader, &address);
        if (leader) peer = co_peer_of_voter(coordinator, leader);
    } else {
        peer = co_peer_leader(coordinator);
        if (peer) leader = peer->state.voter_id;
    }
    uint64_t term = coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0;
    if (leader != it->leader || term != it->leader_term) {
        it->leader = leader;
        it->leader_term = term;
        watch_begin(&it->leader_watch, 0, now_us);
        it->lost = false;
    }
    struct co_watch *watch = &it->leader_watch;
    if (watch->gap_us) watch->gap_us -= (watch->gap_us + GAP_DECAY - 1) / GAP_DECAY;
    if (leader == 0 || leader == coordinator->voter_id) return;
    uint64_t heard_us = peer ? leat_link_heard_us(peer->link) : 0;
    if (heard_us > watch->heard_us) {
        if (heard_us - watch->heard_us > watch->gap_us) watch->gap_us = heard_us - watch->heard_us;
        watch->said_us = watch->heard_us = heard_us;
        it->lost = false;
    }
    if (peer && now_us > watch->heard_us + round_us(coordinator)) co_ping_send(coordinator, peer);
    if (it->lost || it->judged_us > watch->heard_us + patience_us(coordinator, watch))
        leader_lost(coordinator, now_us, "it does not answer");
}

void co_detect_refused(struct leat_coordinator *coordinator, uint64_t incarnation,
                       uint64_t voter_id)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint64_t now_us = co_now(coordinator);
    for (uint32_t i = 0; i < coordinator->machine.node_count && incarnation; i++)
        if (coordinator->machine.nodes[i].info.incarnation == incarnation &&
            coordinator->watch[i].incarnation == incarnation &&
            !co_peer_of_incarnation(coordinator, incarnation)) {
            coordinator->watch[i].dead = true;
            if (co_leads(coordinator) && co_ready(coordinator)) nodes_watch(coordinator);
        }
    if (voter_id != 0 && voter_id == coordinator->detect.leader &&
        !co_peer_of_voter(coordinator, voter_id))
        leader_lost(coordinator, now_us, "nobody listens at its address");
}

void co_detect_peer_down(struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!peer->state.known) return;
    bool led = coordinator->detect.leader != 0 &&
               peer->state.voter_id == coordinator->detect.leader && !co_leads(coordinator);
    if (!led && !co_leads(coordinator)) return;
    co_probe_start(coordinator, peer->state.address, peer->state.incarnation,
                   led ? peer->state.voter_id : 0);
}

/* This node leads now: each node's silence begins now, and nodes without a connection are probed at once. */
void co_detect_leads(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint64_t now_us = co_now(coordinator);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
        struct co_watch *watch = &coordinator->watch[i];
        if (node->crashed || node->state == LEAT_NODE_GONE || !node->node_address[0] ||
            node->incarnation == coordinator->incarnation)
            continue;
        bool lost = watch->incarnation == node->incarnation && watch->lost;
        watch_begin(watch, node->incarnation, now_us);
        watch->gap_us =
            coordinator->detect.leader_watch.gap_us; /* no gaps of other nodes were recorded here */
        watch->lost = lost;
        if (!co_peer_of_incarnation(coordinator, node->incarnation))
            co_probe_start(coordinator, node->node_address, node->incarnation, 0);
    }
}

/* ---- rounds ---- */

/* SUBTLE: without a leader no node pings another, and a node that hears no node serves nothing. (1) Two of three
 * voters die. (2) The remaining nodes hold all copies of some logs, and could serve these logs as long as nothing
 * changes. (3) They fall silent, because they heard only the leader. So while the leader is silent, every node pings
 * the nodes that it is connected to. A node that is isolated does the same. */
static bool asks_all(const struct leat_coordinator *coordinator, uint64_t now_us)
{
    const struct co_detect *it = &coordinator->detect;
    if (co_leads(coordinator) || it->standing == LEAT_STANDING_ALONE) return true;
    return it->leader == 0 || now_us > it->leader_watch.heard_us + co_suspect_us(coordinator) / 2;
}

static void round_expired(struct leat_timer *timer)
{
    struct leat_coordinator *coordinator = timer->owner;
    struct co_detect *it = &coordinator->detect;
    uint64_t now_us = co_now(coordinator), round = round_us(coordinator);
    it->judged_us = now_us;
    /* Messages that came meanwhile are unread: this process was late, not its peers. But a node that was silent until
     * the round before, and has not been heard since, was silent: all messages that had come by then have been read
     * since. */
    uint64_t late_us = it->expected_us ? leat_late_us(it->expected_us, round, now_us) : 0;
    if (late_us != 0) {
        stood_still(coordinator, late_us, now_us);
        it->judged_us = now_us - round;
        if (late_us > co_suspect_us(coordinator) && coordinator->incarnation != 0 &&
            co_others_expected(coordinator))
            co_standing_set(coordinator, LEAT_STANDING_ALONE);
    }
    it->expected_us = now_us + round;
    it->number++;
    leat_timer_start(&coordinator->timers, timer, round);
    if (coordinator->failed != LEAT_OK) return;
    if (asks_all(coordinator, now_us)) {
        LEAT_LIST_EACH(&coordinator->peers, at)
        {
            struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
            if (co_peer_heard_of(peer)) co_ping_send(coordinator, peer);
        }
    }
    nodes_watch(coordinator);
    /* SUBTLE: a leader that hears no voter, but is heard by all, prevents an election: the voters wait for a silence
     * that does not come, until raft's own clock ends this. So the leader itself says that it is deaf; but not just
     * after its election: while a cluster forms, a new leader may not know the names of all voters yet. */
    uint64_t elected_us = LEAT_BUG(ELECTED_WITHOUT_MAJORITY) ? 0 : co_suspect_us(coordinator);
    it->deaf = co_leads(coordinator) && co_ready(coordinator) &&
               now_us > coordinator->leads_since_us + elected_us &&
               !majority_answers(coordinator, it->judged_us, false);
    leader_watch(coordinator, now_us);
    lead_maybe(coordinator, now_us);
    co_standing_advance(coordinator);
    co_probes_expire(coordinator, now_us);
}

void co_detect_init(struct leat_coordinator *coordinator)
{
    struct co_detect *it = &coordinator->detect;
    co_probes_init(coordinator);
    it->standing = LEAT_STANDING_CONFIRMED;
    it->timer = (struct leat_timer){.on_expired = round_expired, .owner = coordinator};
}

void co_detect_start(struct leat_coordinator *coordinator)
{
    leat_timer_start(&coordinator->timers, &coordinator->detect.timer, round_us(coordinator));
}

void co_detect_fini(struct leat_coordinator *coordinator)
{
    co_probes_fini(coordinator);
}
