/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that hold things up: they do not take their answers, or leave frames unfinished. Each has a limit, of bytes
 * or of time. */
#include "base/assert.h"
#include "base/bug.h"
#include "base/node_log.h"
#include "broker/net/core.h"
#include "broker/net/hooks.h"

bool leat_peer_is_slow(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (peer->conn == NULL) return false;
    size_t queued = core->net->queued_bytes(peer->conn);
    if (queued <= LEAT_PEER_QUEUED_BYTES_MAX && !leat_output_is_over(peer)) return false;
    if (leat_list_empty(&peer->slow)) leat_list_push_back(&core->slow_peers, &peer->slow);
    leat_peer_pause(peer, LEAT_PAUSE_SLOW);
    return true;
}

void leat_peer_drained(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (peer->conn == NULL || leat_list_empty(&peer->slow)) return;
    if (core->net->queued_bytes(peer->conn) > LEAT_PEER_QUEUED_BYTES_MAX / 2 ||
        leat_output_is_over(peer))
        return;
    leat_list_remove(&peer->slow);
    leat_peer_resume(peer, LEAT_PAUSE_SLOW);
    /* Answers of a front end may have waited for that. */
    if (leat_list_empty(&peer->answers)) leat_list_push_back(&core->answer_peers, &peer->answers);
    core->node->hooks->drained(core);
}

/* The network takes bytes without an event, so look again while there is a slow peer. */
void leat_peer_slow_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_LIST_EACH(&core->slow_peers, link)
    leat_peer_drained(LEAT_CONTAINER(link, struct leat_peer, slow));
    core->node->hooks->drained(core);
}

void leat_peer_owes(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (!leat_list_empty(&peer->owing)) return;
    leat_list_push_back(&core->owing_peers, &peer->owing);
    peer->stalled_bytes = SIZE_MAX; /* the next tick begins to count */
    peer->output.owes_since_us = 0;
}

/* A connection that takes no answers for long pins segments that other connections need, even if its answers are few.
 */
static void peer_owing_tick(struct leat_peer *peer, uint64_t now_us)
{
    struct leat_core *core = peer->core;
    size_t queued = core->net->queued_bytes(peer->conn);
    if (queued == 0) {
        leat_list_remove(&peer->owing);
    } else if (queued != peer->stalled_bytes) {
        peer->stalled_bytes = queued;
        peer->stalled_since_us = now_us;
    } else if (now_us - peer->stalled_since_us >= LEAT_PEER_STALL_US) {
        leat_node_log_summed(&core->closed_sum, now_us, LEAT_NODE_LOG_WARN,
                             "%s (%s) has taken nothing for %d s with %zu bytes waiting; "
                             "connection closed",
                             core->net->peer(peer->conn), peer->name, LEAT_PEER_STALL_US / 1000000,
                             queued);
        leat_list_remove(&peer->owing);
        core->net->close(peer->conn);
    }
}

void leat_peer_expect(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->frame_since_us == 0) peer->frame_since_us = leat_core_now(peer->core);
    if (leat_list_empty(&peer->cut)) leat_list_push_back(&peer->core->cut_peers, &peer->cut);
}

void leat_peer_expect_nothing(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    peer->frame_since_us = 0;
    leat_list_remove(&peer->cut);
}

/* ---- quiet ones ---- */

void leat_peer_quiet_begin(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (peer->greeted && peer->protocol->idle_us_max == 0) return;
    peer->quiet_since_us = leat_core_now(core);
    peer->heard = false;
    leat_list_push_back(peer->greeted ? &core->idle_peers : &core->strangers, &peer->quiet);
    if (!peer->greeted) core->stranger_count++;
}

void leat_peer_quiet_end(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (!peer->greeted && !leat_list_empty(&peer->quiet)) peer->core->stranger_count--;
    leat_list_remove(&peer->quiet);
}

static void quiet_close(struct leat_peer *peer, const char *why)
{
    leat_peer_quiet_end(peer);
    leat_peer_close(peer, why);
}

void leat_peer_shed_strangers(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (core->stranger_count <= LEAT_CORE_STRANGERS_MAX) return;
    quiet_close(LEAT_CONTAINER(core->strangers.next, struct leat_peer, quiet),
                "too many connections have not said who they are, and it is the oldest of them");
}

static void strangers_tick(struct leat_core *core, uint64_t now_us)
{
    while (!leat_list_empty(&core->strangers)) {
        struct leat_peer *peer = LEAT_CONTAINER(core->strangers.next, struct leat_peer, quiet);
        if (now_us - peer->quiet_since_us < LEAT_PEER_HELLO_US) return;
        quiet_close(peer, "it has not said who it is for 10 s");
    }
}

/* A peer that was heard, or that waits for an answer, is looked at again after the same time. */
static void idle_tick(struct leat_core *core, uint64_t now_us)
{
    while (!leat_list_empty(&core->idle_peers)) {
        struct leat_peer *peer = LEAT_CONTAINER(core->idle_peers.next, struct leat_peer, quiet);
        if (now_us - peer->quiet_since_us < peer->protocol->idle_us_max) return;
        bool idle = !peer->heard && peer->requests == 0;
        leat_peer_quiet_end(peer);
        if (idle)
            leat_peer_close(peer, "it was idle for too long");
        else
            leat_peer_quiet_begin(peer);
    }
}

/* SUBTLE: backups refuse an isolated node that was declared crashed. So an append waits for its copies, and the answer
 * to a join for its append, until the node hears of its crash. Leat's clients notice the silence and ask another node
 * (client/watch.c); Kafka's clients do not. A closed connection leaves the outcome open, which is the truth, and has
 * Kafka's clients ask for metadata. */
static void isolated_tick(struct leat_core *core)
{
    bool begins = !core->isolated;
    core->isolated = leat_node_stands(core->node, NULL) != LEAT_OK && !LEAT_BUG(ISOLATED_WAITS);
    if (!core->isolated) return;
    LEAT_LIST_EACH(&core->idle_peers, link)
    {
        struct leat_peer *peer = LEAT_CONTAINER(link, struct leat_peer, quiet);
        if (peer->closing) continue;
        bool waits = !begins && peer->requests > 0;
        peer->isolated_ticks = waits ? (uint8_t)(peer->isolated_ticks + 1) : 0;
        if (peer->isolated_ticks == LEAT_PEER_ISOLATED_TICKS)
            leat_peer_close(peer, "this node does not know whether it is still up");
    }
}

/* The peer's wait for room counts: a peer that is not read from might have gone long ago. */
static void peer_cut_tick(struct leat_peer *peer, uint64_t now_us)
{
    struct leat_core *core = peer->core;
    if (now_us - peer->frame_since_us < LEAT_PEER_FRAME_US) return;
    leat_node_log_summed(&core->closed_sum, now_us, LEAT_NODE_LOG_INFO,
                         "%s (%s) left a frame unfinished for %d s; connection closed",
                         core->net->peer(peer->conn), peer->name, LEAT_PEER_FRAME_US / 1000000);
    core->net->close(peer->conn);
}

void leat_peer_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    uint64_t now_us = leat_core_now(core);
    LEAT_LIST_EACH(&core->owing_peers, owing)
    peer_owing_tick(LEAT_CONTAINER(owing, struct leat_peer, owing), now_us);
    LEAT_LIST_EACH(&core->cut_peers, cut)
    peer_cut_tick(LEAT_CONTAINER(cut, struct leat_peer, cut), now_us);
    strangers_tick(core, now_us);
    idle_tick(core, now_us);
    isolated_tick(core);
    leat_node_log_sum_tell(&core->closed_sum, now_us);
    leat_node_log_sum_tell(&core->wait_sum, now_us);
    leat_node_log_sum_tell(&core->damaged_sum, now_us);
}
