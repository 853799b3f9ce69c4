/* Peers that hold things up: they do not take their answers, leave frames unfinished, or found no request
 * struct. Each has a limit, of bytes or of time. */
#include "base/assert.h"
#include "base/diary.h"
#include "broker/core.h"

bool leat_peer_is_slow(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    if (peer->conn == NULL) return false;
    size_t queued = core->net->queued_bytes(peer->conn);
    if (queued <= LEAT_PEER_QUEUED_BYTES_MAX) return false;
    if (leat_list_empty(&peer->slow)) leat_list_push_back(&core->slow_peers, &peer->slow);
    leat_peer_pause(peer, LEAT_PAUSE_SLOW);
    return true;
}

void leat_peer_drained(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    if (peer->conn == NULL || leat_list_empty(&peer->slow)) return;
    if (core->net->queued_bytes(peer->conn) > LEAT_PEER_QUEUED_BYTES_MAX / 2) return;
    leat_list_remove(&peer->slow);
    leat_peer_resume(peer, LEAT_PAUSE_SLOW);
    leat_fetch_undefer(core);
}

/* The network takes bytes without telling; so look again while there is somebody to look at. */
void leat_peer_slow_tick(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->slow_peers, link)
    leat_peer_drained(LEAT_CONTAINER(link, struct leat_peer, slow));
    leat_fetch_undefer(core);
}

void leat_peer_owes(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    if (!leat_list_empty(&peer->owing)) return;
    leat_list_push_back(&core->owing_peers, &peer->owing);
    peer->stalled_bytes = SIZE_MAX; /* the next tick begins to count */
}

/* Whoever takes none of its answers for long pins segments that others need, however few they are. */
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
        leat_diary_warn("%s (%s) has taken nothing for %d s with %zu bytes waiting; "
                        "connection closed",
                        core->net->peer(peer->conn), peer->name, LEAT_PEER_STALL_US / 1000000,
                        queued);
        leat_list_remove(&peer->owing);
        core->net->close(peer->conn);
    }
}

static bool frame_fits(const struct leat_peer *peer)
{
    const struct leat_core *core = peer->core;
    return core->frame_bytes_begun + peer->frame_bytes_wanted <= core->frame_bytes_max;
}

static void frame_admit(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    core->frame_bytes_begun += peer->frame_bytes_wanted;
    leat_list_push_back(&core->large_peers, &peer->large);
}

/* In the order in which they began, so that small ones do not overtake a large one for ever. */
static void frames_admit(struct leat_core *core)
{
    while (!leat_list_empty(&core->frame_waits)) {
        struct leat_peer *peer = LEAT_CONTAINER(core->frame_waits.next, struct leat_peer, large);
        if (!frame_fits(peer)) return;
        leat_list_remove(&peer->large);
        frame_admit(peer);
        leat_peer_resume(peer, LEAT_PAUSE_FRAMES);
    }
}

void leat_peer_expect(struct leat_peer *peer, size_t want_bytes)
{
    struct leat_core *core = peer->core;
    LEAT_ASSERT_CMP(want_bytes, <=, core->frame_bytes_max);
    if (peer->frame_since_us == 0) peer->frame_since_us = leat_core_now(core);
    peer->frame_bytes_wanted = (uint32_t)want_bytes;
    if (leat_list_empty(&core->frame_waits) && frame_fits(peer)) {
        frame_admit(peer);
        return;
    }
    leat_list_push_back(&core->frame_waits, &peer->large);
    leat_peer_pause(peer, LEAT_PAUSE_FRAMES);
}

/* SUBTLE: only admitted frames count. Were those that wait counted, too, they alone could exceed the limit: when
 * the last that is read ends, nobody would go on, and nobody's end would ever be noticed. */
void leat_peer_expect_nothing(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    if ((peer->paused & LEAT_PAUSE_FRAMES) == 0)
        core->frame_bytes_begun -= peer->frame_bytes_wanted;
    peer->frame_bytes_wanted = 0;
    leat_list_remove(&peer->large);
    frames_admit(core);
}

void leat_peer_feed_starved(struct leat_core *core)
{
    while (!leat_list_empty(&core->starved_peers)) {
        if (core->append_pool.left < LEAT_CORE_APPENDS_MAX / 8 ||
            core->fetch_pool.left < LEAT_CORE_FETCHES_MAX / 8 ||
            core->item_pool.left < LEAT_FETCH_LOGS_MAX)
            return;
        struct leat_list *link = leat_list_pop_front(&core->starved_peers);
        leat_peer_resume(LEAT_CONTAINER(link, struct leat_peer, starved), LEAT_PAUSE_STARVED);
    }
}

/* Its wait for others' frames counts: whoever is not read from might have gone long ago. */
static void frames_tick(struct leat_core *core, struct leat_list *peers, uint64_t now_us)
{
    LEAT_LIST_EACH(peers, link)
    {
        struct leat_peer *peer = LEAT_CONTAINER(link, struct leat_peer, large);
        if (now_us - peer->frame_since_us < LEAT_PEER_FRAME_US) continue;
        leat_diary_info("%s (%s) left a frame of %u bytes unfinished for %d s; connection closed",
                        core->net->peer(peer->conn), peer->name, peer->frame_bytes_wanted,
                        LEAT_PEER_FRAME_US / 1000000);
        core->net->close(peer->conn);
    }
}

void leat_peer_tick(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    LEAT_LIST_EACH(&core->owing_peers, owing)
    peer_owing_tick(LEAT_CONTAINER(owing, struct leat_peer, owing), now_us);
    frames_tick(core, &core->large_peers, now_us);
    frames_tick(core, &core->frame_waits, now_us);
}
