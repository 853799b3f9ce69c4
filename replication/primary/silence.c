/* SPDX-License-Identifier: Apache-2.0 */
/* Which backup is silent while other backups answer.
 *
 * Why the failure detector (coordinator/membership) does not decide this: if messages are lost in one direction between
 * this node and one backup, no other node notices, since the leader hears both. Acks would wait as long as a slow
 * backup may take (answer_us). So a backup that owes an answer is asked, together with all other backups, in rounds;
 * the backup is left when the others have answered several rounds meanwhile. A core that is late itself asks, and
 * counts, later by as much; a slow machine has shown so before, and is given longer. */
#include "base/node_log.h"
#include "replication/primary/state.h"

enum {
    DOUBT_US = 10 * 1000, /* an answer is due for so long: ask */
    ROUNDS = 4,           /* that other backups have answered, and this backup has not */
    TOOK_FACTOR = 3,      /* longer than recent answers took */
    TOOK_HALF_US = 3000 * 1000,
    RETURN_US = 500 * 1000, /* a backup whose session is back so soon was never away */
};

/* When the first request was sent that has no answer yet; UINT64_MAX: there is none. */
static uint64_t asked_since(const struct rep_peer *peer)
{
    uint64_t since_us = UINT64_MAX;
    if (peer->ops && peer->ops_us < since_us) since_us = peer->ops_us;
    if (peer->restamp.busy && peer->restamp.sent_us < since_us) since_us = peer->restamp.sent_us;
    if (peer->flush.busy && peer->flush.sent_us < since_us) since_us = peer->flush.sent_us;
    if (peer->asking && peer->asked_us < since_us) since_us = peer->asked_us;
    return since_us;
}

/* The same of writes. SUBTLE: (1) A backup takes a write slowly, and is left. (2) Its next session begins before that
 * write ends. (3) If the old write counted, this session would end at once, and each one after it. So only writes of
 * the present session count. */
static uint64_t written_since(const struct rep_peer *peer)
{
    LEAT_LIST_EACH(&peer->writes, link)
    {
        const struct rep_write *write = LEAT_CONTAINER(link, const struct rep_write, link);
        if (rep_copy_lives(write->copy)) return write->posted_us;
    }
    return UINT64_MAX;
}

static uint64_t owed_since(const struct rep_peer *peer)
{
    uint64_t asked_us = asked_since(peer), written_us = written_since(peer);
    return asked_us < written_us ? asked_us : written_us;
}

static uint64_t since(uint64_t owed_us, uint64_t heard_us, uint64_t now_us)
{
    if (owed_us < heard_us) owed_us = heard_us;
    return now_us > owed_us ? now_us - owed_us : 0; /* also where nothing is owed: UINT64_MAX */
}

/* SUBTLE: one-sided writes and requests go different ways. (1) No message of this node arrives at a backup, or no
 * answer comes back; the backup's memory still takes writes. (2) Acks of level `disk`, and heads that roll, wait for
 * a request's answer. (3) If each completed write proved that the backup answers, they would wait as long as a slow
 * backup may take. So writes prove nothing about requests. But an answer counts for writes: a backup that answers may
 * take writes slowly. */
static uint64_t silent_us(const struct rep_peer *peer, uint64_t now_us)
{
    if (peer->state != REP_PEER_ATTACHED) return 0;
    uint64_t wrote_us = peer->wrote_us > peer->heard_us ? peer->wrote_us : peer->heard_us;
    uint64_t asked = since(asked_since(peer), peer->heard_us, now_us);
    uint64_t written = since(written_since(peer), wrote_us, now_us);
    return asked > written ? asked : written;
}

static uint64_t took_us(const struct rep_peer *peer, uint64_t now_us)
{
    uint64_t halvings = (now_us - peer->took_at_us) / TOOK_HALF_US;
    return halvings < 64 ? peer->took_us >> halvings : 0;
}

static void took_note(struct rep_peer *peer, uint64_t us, uint64_t now_us)
{
    if (us < took_us(peer, now_us)) return;
    peer->took_us = us;
    peer->took_at_us = now_us;
}

void rep_peer_heard(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    uint64_t now_us = rep_now(peer->primary);
    took_note(peer, silent_us(peer, now_us), now_us);
    peer->heard_us = now_us;
    peer->missed = 0;
}

void rep_peer_wrote(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    uint64_t now_us = rep_now(peer->primary);
    uint64_t heard_us = peer->wrote_us > peer->heard_us ? peer->wrote_us : peer->heard_us;
    if (peer->state == REP_PEER_ATTACHED)
        took_note(peer, since(written_since(peer), heard_us, now_us), now_us);
    peer->wrote_us = now_us;
}

void rep_peer_came(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    uint64_t now_us = rep_now(peer->primary);
    if (peer->left_us && now_us < peer->left_us + RETURN_US)
        took_note(peer, peer->left_after_us, now_us);
    peer->left_us = 0;
    peer->heard_us = now_us;
    peer->missed = 0;
}

/* ---- rounds ---- */
static void on_answered(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct rep_peer *peer = call->owner;
    struct leat_primary *primary = peer->primary;
    (void)answer;
    (void)error;
    peer->asking = false;
    /* A refusal is an answer, too: a node of an earlier version does not know the question. */
    if (rc == LEAT_E_TIMEOUT || rc == LEAT_E_CLOSED || rc == LEAT_E_CANCELLED) return;
    rep_peer_heard(peer);
    for (unsigned i = 0; i < primary->peer_end; i++) {
        struct rep_peer *other = primary->peers[i];
        if (!other || other == peer || !other->asking || other->asked_us > peer->asked_us) continue;
        /* SUBTLE: an answer of `other` that came after its own question may belong to an older request, from before
         * `other` was cut off; and its question is not asked again. So `other` counts as heard only if an answer came
         * after the question that `peer` has answered now. */
        if (other->heard_us > peer->asked_us || other->round == peer->round) continue;
        /* counts once for each round, however many peers have answered */
        other->round = peer->round;
        other->missed++;
    }
}

static void peer_ask(struct rep_peer *peer, uint64_t now_us)
{
    static const uint8_t nothing = 0x90;
    struct leat_primary *primary = peer->primary;
    const struct leat_rep_net *net = &primary->options.net;
    if (peer->asking || peer->state != REP_PEER_ATTACHED) return;
    peer->ask = (struct leat_link_call){.kind = LEAT_REP_ASK,
                                        .control = &nothing,
                                        .control_bytes = sizeof nothing,
                                        .timeout_us = primary->options.answer_us,
                                        .on_done = on_answered,
                                        .owner = peer};
    peer->asking = net->call(net->ctx, peer->node.number, &peer->ask) == LEAT_OK;
    peer->asked_us = now_us;
    peer->round = primary->round;
}

bool rep_silence_look(struct leat_primary *primary, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    bool doubt = false, owed = false;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (!peer || peer->state != REP_PEER_ATTACHED) continue;
        owed = owed || owed_since(peer) != UINT64_MAX;
        doubt = doubt || silent_us(peer, now_us) >= DOUBT_US;
    }
    if (!primary->options.quiet_us || !doubt) return owed;
    primary->round++;
    for (unsigned i = 0; i < primary->peer_end; i++)
        if (primary->peers[i]) peer_ask(primary->peers[i], now_us);
    return true;
}

/* ---- leaving a backup ---- */
static bool is_silent(const struct rep_peer *peer, uint64_t now_us)
{
    uint64_t wait_us = peer->primary->options.quiet_us, took = TOOK_FACTOR * took_us(peer, now_us);
    if (!wait_us || peer->missed < ROUNDS) return false;
    return silent_us(peer, now_us) >= (took > wait_us ? took : wait_us);
}

static bool is_slow(const struct rep_peer *peer, uint64_t now_us)
{
    uint64_t written_us = written_since(peer);
    return written_us != UINT64_MAX && now_us >= written_us + peer->primary->options.answer_us;
}

/* One at a time: a slow core must not shed all its backups because everything looks late to it. */
struct rep_peer *rep_silence_shed(struct leat_primary *primary, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    struct rep_peer *worst = NULL;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        struct rep_peer *peer = primary->peers[i];
        if (!peer || (!is_silent(peer, now_us) && !is_slow(peer, now_us))) continue;
        if (!worst || owed_since(peer) < owed_since(worst)) worst = peer;
    }
    if (!worst) return NULL;
    worst->left_us = now_us;
    worst->left_after_us = silent_us(worst, now_us);
    if (is_silent(worst, now_us))
        leat_node_log_warn(
            "replication: node %s has not answered for %llu ms, in which others have: "
            "it is left",
            worst->node.name, (unsigned long long)(worst->left_after_us / 1000));
    else
        leat_node_log_warn("replication: node %s has not taken a write for %llu ms: it is left",
                           worst->node.name,
                           (unsigned long long)((now_us - owed_since(worst)) / 1000));
    primary->options.net.cut(primary->options.net.ctx, worst->node.number);
    return worst;
}
