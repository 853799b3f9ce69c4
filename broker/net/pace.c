/* SPDX-License-Identifier: Apache-2.0 */
/* A connection has one request in a turn, and a core begins no request after a millisecond of such requests: then
 * sockets are looked at, logs sealed and answers sent. Connections that wait are called in turn: addresses, and of
 * each address its connections, by the time that was spent on them.
 *
 * SUBTLE: why time, and one request. (1) A request of 20 bytes may have all topics listed: 10 ms where there are
 * thousands. (2) A connection has 256 such requests under way, and an address many connections. (3) Without a pause
 * they occupy the core for minutes, and a ping waits as long. Time alone would not do: a request's time is known only
 * when it is spent. */
#include "broker/net/pace.h"

#include "base/assert.h"
#include "base/bug.h"
#include "broker/net/core.h"

void leat_pace_init(struct leat_core *core)
{
    struct leat_pace *pace = &core->pace;
    leat_turns_init(&pace->addresses);
    pace->turn = 1; /* connections begin at turn 0 */
    pace->left_us = LEAT_PACE_TURN_US;
    pace->width = 1;
}

void leat_pace_turn_end(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_pace *pace = &core->pace;
    if (pace->left_us <= LEAT_PACE_TURN_US / 2)
        pace->width = 1;
    else if (pace->width < LEAT_PACE_CALLED_MAX)
        pace->width *= 2;
    pace->turn++;
    pace->left_us = LEAT_PACE_TURN_US;
}

void leat_pace_peer_init(struct leat_pace_peer *pace)
{
    *pace = (struct leat_pace_peer){0};
    leat_turn_init(&pace->turn);
    leat_list_init(&pace->steps);
}

static void line_leave(struct leat_peer *peer)
{
    if (peer->sharer->pace == NULL) return;
    leat_address_turns_leave(&peer->core->pace.addresses, peer->sharer->pace, &peer->pace.turn);
}

static void step_run(struct leat_list *link)
{
    struct leat_pace_step *step = LEAT_CONTAINER(link, struct leat_pace_step, link);
    step->run(step);
}

void leat_pace_forget(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_list *link;
    line_leave(peer);
    while ((link = leat_list_pop_front(&peer->pace.steps)) != NULL)
        step_run(link);
    leat_pace_peer_init(&peer->pace);
    leat_peer_resume(peer, LEAT_PAUSE_TURN);
}

/* ---- turns ---- */

static void pace_deliver(void *actor, struct leat_mail *mail);

static void mail_myself(struct leat_core *core)
{
    struct leat_pace *pace = &core->pace;
    if (pace->mailed) return;
    pace->mailed = true;
    leat_core_mail(core, core->index, &pace->mail, pace_deliver);
}

static void wait_in_line(struct leat_peer *peer)
{
    leat_address_turns_wait(&peer->core->pace.addresses, peer->sharer->pace, &peer->pace.turn);
    mail_myself(peer->core);
}

static struct leat_peer *next_peer(struct leat_pace *pace)
{
    struct leat_turn *turn = leat_address_turns_next(&pace->addresses);
    return turn != NULL ? LEAT_CONTAINER(turn, struct leat_peer, pace.turn) : NULL;
}

/* Without memory for its address it is not waited for, either. */
static bool can_wait(struct leat_peer *peer)
{
    return leat_address_turns_of(&peer->sharer->pace) != NULL;
}

static void begin(struct leat_pace *pace, const struct leat_core *core)
{
    pace->inside = true;
    pace->from_us = leat_core_now(core);
}

static void steps_call(struct leat_peer *peer)
{
    struct leat_list *link = leat_list_pop_front(&peer->pace.steps);
    if (link == NULL) return;
    begin(&peer->core->pace, peer->core);
    step_run(link);
    leat_pace_end(peer);
    if (!leat_list_empty(&peer->pace.steps)) wait_in_line(peer);
}

static void pace_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_pace *pace = &core->pace;
    struct leat_peer *peer;
    (void)mail;
    pace->mailed = false;
    for (uint32_t i = 0; i < pace->width && (peer = next_peer(pace)) != NULL; i++) {
        /* Steps of requests run in this loop, and have used the turn up */
        if (i > 0 && pace->left_us <= 0) break;
        line_leave(peer);
        if (peer->pace.answer_waits) {
            peer->pace.answer_waits = false;
            peer->pace.answer_due = true;
            if (leat_list_empty(&peer->answers))
                leat_list_push_back(&core->answer_peers, &peer->answers);
        }
        if ((peer->paused & LEAT_PAUSE_TURN) != 0) {
            peer->pace.frame_due = true;
            leat_peer_resume(peer, LEAT_PAUSE_TURN);
        }
        steps_call(peer);
    }
    if (pace->addresses.count > 0) mail_myself(core);
}

bool leat_pace_begin(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_pace *pace = &peer->core->pace;
    bool due = peer->pace.frame_due;
    peer->pace.frame_due = false;
    bool others_first =
        pace->addresses.count > 0 || pace->left_us <= 0 || peer->pace.begun_in == pace->turn;
    if (!due && can_wait(peer) && others_first && !LEAT_BUG(TURN_WHOLE)) {
        leat_peer_pause(peer, LEAT_PAUSE_TURN);
        wait_in_line(peer);
        return false;
    }
    peer->pace.begun_in = pace->turn;
    begin(pace, peer->core);
    return true;
}

void leat_pace_end(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_pace *pace = &peer->core->pace;
    uint64_t us = leat_core_now(peer->core) - pace->from_us;
    pace->inside = false;
    if (us < LEAT_PACE_COST_US_MIN) us = LEAT_PACE_COST_US_MIN;
    pace->left_us -= (int64_t)us;
    if (peer->sharer->pace == NULL) return;
    leat_address_turns_charge(&pace->addresses, peer->sharer->pace, &peer->pace.turn,
                              us * LEAT_PACE_COST_OF_US);
}

bool leat_pace_answer(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_pace *pace = &peer->core->pace;
    bool its_own = peer->pace.begun_in == pace->turn && peer->pace.answered_in != pace->turn;
    if (!peer->pace.answer_due && !its_own && pace->left_us <= 0 && can_wait(peer)) {
        peer->pace.answer_waits = true;
        wait_in_line(peer);
        return false;
    }
    peer->pace.answer_due = false;
    peer->pace.answered_in = pace->turn;
    begin(pace, peer->core);
    return true;
}

void leat_pace_run(struct leat_peer *peer, struct leat_pace_step *step,
                   void (*run)(struct leat_pace_step *step))
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_pace *pace = &peer->core->pace;
    step->run = run;
    leat_list_init(&step->link);
    if (peer->conn == NULL || pace->inside || !can_wait(peer)) {
        run(step);
        return;
    }
    leat_list_push_back(&peer->pace.steps, &step->link);
    if (pace->addresses.count == 0 && pace->left_us > 0)
        steps_call(peer);
    else
        wait_in_line(peer);
}

bool leat_pace_again(struct leat_peer *peer, struct leat_pace_step *step,
                     void (*run)(struct leat_pace_step *step))
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->conn == NULL || !can_wait(peer)) return false;
    step->run = run;
    leat_list_init(&step->link);
    leat_list_push_back(&peer->pace.steps, &step->link);
    wait_in_line(peer);
    return true;
}
