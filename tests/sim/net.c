/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated byte streams between actors. Each direction of a connection is: the sender's queue (given to send(), not
 * yet taken by the network) -> chunks under way, in order -> the receiver's socket buffer -> what its handler has not
 * consumed. The network takes bytes at the end of a turn, as far as the window allows, cuts them into chunks of random
 * size and delivers each after a random time. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/net_parts.h"

enum { LOOK_US = LEAT_INTAKE_LOOK_MS * 1000, END_US = 1000 * 1000 };
enum { READ_BYTES_MAX = 256 * 1024 };

struct out { /* one queued piece */
    struct out *next;
    struct leat_send *send; /* or a copy: */
    uint8_t *copy;
    size_t bytes, taken;
};

static void conn_read(struct sim_world *world, struct sim_event *event);
static void chunk_arrived(struct sim_world *world, struct sim_event *event);

/* The connections of living processes, beginning with `from`, which is looked at already. Those that
 * have ended and hold nothing any more leave the list: thousands end in a seed. */
struct leat_conn *sim_conn_after(struct sim_world *world, struct leat_conn *from)
{
    struct leat_conn **at = from ? &from->next_in_world : &world->conns;
    while (*at && (*at)->over) {
        struct leat_conn *conn = *at;
        *at = conn->next_in_world;
        conn->next_in_world = world->conns_over;
        world->conns_over = conn;
    }
    return *at;
}

static void buffer_append(uint8_t **at, size_t *used, size_t *capacity, const uint8_t *data,
                          size_t bytes)
{
    if (*used + bytes > *capacity) {
        *capacity = (*used + bytes) * 2;
        *at = realloc(*at, *capacity);
        LEAT_ASSERT(*at != NULL);
    }
    if (bytes) memcpy(*at + *used, data, bytes);
    *used += bytes;
}

/* ---- the end of a connection ---- */

static void send_ended(struct sim_world *world, struct sim_event *event)
{
    struct leat_send *send = event->a;
    ((struct leat_conn *)event->b)->sends_out--;
    send->on_sent(send, (leat_err)event->n);
    (void)world;
}

static void send_end(struct leat_conn *conn, struct leat_send *send, leat_err rc)
{
    struct sim_event *event = sim_actor_post(conn->actor, 0, send_ended, send);
    event->b = conn;
    event->n = rc;
}

static void kept_drop(struct leat_conn *conn)
{
    free(conn->kept);
    conn->kept = NULL;
    conn->kept_bytes = conn->kept_capacity = 0;
}

/* ---- who may be read from: base/intake.h ---- */

void sim_conn_intake_join(struct leat_conn *conn)
{
    if (conn->peer && conn->peer->actor)
        memcpy(conn->key, conn->peer->actor->process->name, sizeof conn->key);
    leat_intake_join(&conn->actor->intake, &conn->intake, conn->key, conn->intake.account);
    leat_intake_heard(&conn->intake, 0, conn->actor->world->now_us / 1000);
    leat_intake_hold(&conn->actor->intake, &conn->intake, conn->kept_bytes);
    conn->joined = true;
}

static void intake_go_on(struct sim_actor *actor)
{
    struct leat_intake_member *member;
    while ((member = leat_intake_next(&actor->intake)) != NULL) {
        leat_intake_heard(member, 0, actor->world->now_us / 1000);
        sim_conn_read_post(LEAT_CONTAINER(member, struct leat_conn, intake));
    }
}

void sim_conn_intake_leave(struct leat_conn *conn)
{
    if (!conn->joined) return;
    conn->joined = false;
    leat_intake_leave(&conn->actor->intake, &conn->intake);
    intake_go_on(conn->actor);
}

static void intake_hold(struct leat_conn *conn)
{
    struct leat_intake *intake = &conn->actor->intake;
    struct leat_intake_member *member;
    leat_intake_hold(intake, &conn->intake, conn->kept_bytes);
    while ((member = leat_intake_surplus(intake, conn->intake.account)) != NULL) {
        struct leat_conn *oldest = LEAT_CONTAINER(member, struct leat_conn, intake);
        leat_intake_hold(intake, member, 0);
        sim_conn_end_send(oldest);
        sim_conn_end(oldest, LEAT_E_TOO_MANY);
    }
    const struct leat_intake_account *account = &intake->accounts[conn->intake.account];
    if (account->bytes >
        account->bytes_max + LEAT_WANT_BYTES_MAX + READ_BYTES_MAX + LEAT_INTAKE_SMALLS_BYTES)
        sim_fail(conn->actor->world, "A11 assert: connections keep %llu bytes, may keep %llu",
                 (unsigned long long)account->bytes, (unsigned long long)account->bytes_max);
    intake_go_on(conn->actor);
}

static bool is_idle(const struct leat_intake_member *member)
{
    const struct leat_conn *conn = LEAT_CONTAINER(member, struct leat_conn, intake);
    return conn->state == CONN_OPEN && !conn->moving && !conn->paused && !conn->socket_bytes;
}

static void place_lost(struct leat_intake_member *member)
{
    struct leat_conn *conn = LEAT_CONTAINER(member, struct leat_conn, intake);
    sim_conn_end_send(conn);
    sim_conn_end(conn, LEAT_E_TIMEOUT);
}

static void stall_look(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->a;
    actor->stall_watched =
        leat_intake_watch(&actor->intake, world->now_us / 1000, is_idle, place_lost);
    if (actor->stall_watched) sim_actor_post(actor, LOOK_US, stall_look, actor);
}

/* How many of so many bytes may be read now. */
static size_t intake_room(struct leat_conn *conn, size_t bytes)
{
    struct leat_intake *intake = &conn->actor->intake;
    size_t kept = conn->kept_bytes;
    if (kept < LEAT_INTAKE_SMALL_BYTES) {
        size_t most = LEAT_INTAKE_SMALL_BYTES - kept;
        bool little = conn->intake.account == LEAT_NET_STRANGERS;
        return bytes > most && (little || leat_intake_full(intake, &conn->intake)) ? most : bytes;
    }
    if (leat_intake_grow(intake, &conn->intake, kept + bytes)) return bytes;
    if (conn->actor->stall_watched) return 0;
    conn->actor->stall_watched = true;
    leat_intake_watch_begin(intake, conn->actor->world->now_us / 1000);
    sim_actor_post(conn->actor, LOOK_US, stall_look, conn->actor);
    return 0;
}

static void closed(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (conn->sends_out) { /* the last callback: what was sent meanwhile ends before */
        sim_actor_post(conn->actor, 1, closed, conn)->n = event->n;
        return;
    }
    conn->over = true;
    sim_conn_intake_leave(conn);
    kept_drop(conn);
    /* Who connected died before the listener had seen it: nobody is there to be told. */
    if (conn->handler) conn->handler->on_closed(conn->user, conn, (leat_err)event->n);
    (void)world;
}

static void out_free(struct leat_conn *conn, struct out *out)
{
    if (out->copy && conn->actor) conn->actor->copied_bytes -= out->bytes;
    if (out->copy) leat_intake_copied(&conn->intake, 0, out->bytes);
    free(out->copy);
    free(out);
}

static void queue_drop(struct leat_conn *conn, bool tell)
{
    for (struct out *out = conn->out_first, *next; out; out = next) {
        next = out->next;
        if (out->send && tell) send_end(conn, out->send, LEAT_E_CLOSED);
        out_free(conn, out);
    }
    conn->out_first = conn->out_last = NULL;
    conn->queued = 0;
}

static void receive_drop(struct leat_conn *conn)
{
    free(conn->socket);
    conn->socket = NULL;
    conn->socket_bytes = conn->socket_capacity = 0;
}

void sim_conn_drop(struct leat_conn *conn)
{
    queue_drop(conn, false);
    receive_drop(conn);
    kept_drop(conn);
}

/* No more callbacks but on_sent(CLOSED)..., on_closed(why). */
void sim_conn_end(struct leat_conn *conn, leat_err why)
{
    if (conn->state == CONN_CLOSED) return;
    if (why == LEAT_E_CLOSED && conn->joined && !conn->paused)
        leat_intake_ended(&conn->actor->intake, &conn->intake, conn->actor->world->now_us / 1000);
    conn->state = CONN_CLOSED;
    queue_drop(conn, true);
    receive_drop(conn);
    if (conn->moving) return; /* on_moved ends it */
    sim_actor_post(conn->actor, 1, closed, conn)->n = why;
}

void sim_conn_end_send(struct leat_conn *conn)
{
    if (conn->end_sent || !conn->peer) return;
    conn->end_sent = true;
    sim_chunk_send(conn, NULL, 0, chunk_arrived);
}

/* ---- sending ---- */

static size_t out_copy(const struct out *out, uint8_t *to, size_t limit)
{
    if (out->copy) {
        memcpy(to, out->copy + out->taken, limit);
        return limit;
    }
    size_t skip = out->taken, got = 0;
    for (unsigned i = 0; i < out->send->iov_count && got < limit; i++) {
        const struct leat_iov *iov = &out->send->iovs[i];
        if (skip >= iov->bytes) {
            skip -= iov->bytes;
            continue;
        }
        size_t take = iov->bytes - skip < limit - got ? iov->bytes - skip : limit - got;
        memcpy(to + got, (const uint8_t *)iov->base + skip, take);
        got += take;
        skip = 0;
    }
    return got;
}

static void conn_flush(struct leat_conn *conn)
{
    static uint8_t piece[64 * 1024];
    if (conn->state != CONN_OPEN || !conn->peer) return;
    struct sim_world *world = conn->actor->world;
    size_t window = sim_conn_window(conn);
    while (conn->out_first && conn->under_way < window) {
        size_t limit = sim_rng_chance(&world->net, 50)
                           ? sim_rng_between(&world->net, 1, 100)
                           : sim_rng_between(&world->net, 1000, sizeof piece);
        if (limit > window - conn->under_way) limit = window - conn->under_way;
        size_t filled = 0;
        while (conn->out_first && filled < limit) {
            struct out *out = conn->out_first;
            size_t take = out->bytes - out->taken;
            if (take > limit - filled) take = limit - filled;
            filled += out_copy(out, piece + filled, take);
            out->taken += take;
            conn->queued -= take;
            conn->taken += take;
            if (out->taken < out->bytes) continue;
            conn->out_first = out->next;
            if (!conn->out_first) conn->out_last = NULL;
            if (out->send) send_end(conn, out->send, LEAT_OK);
            out_free(conn, out);
        }
        if (!filled) continue;
        conn->taken_us = world->now_us;
        sim_chunk_send(conn, piece, filled, chunk_arrived);
    }
}

void sim_net_actor_flush(struct sim_actor *actor)
{
    while (actor->dirty_conns) {
        struct leat_conn *conn = actor->dirty_conns;
        actor->dirty_conns = conn->next_dirty;
        conn->dirty = false;
        if (conn->actor == actor) conn_flush(conn);
    }
}

static void conn_dirty(struct leat_conn *conn)
{
    if (conn->dirty) return;
    conn->dirty = true;
    conn->next_dirty = conn->actor->dirty_conns;
    conn->actor->dirty_conns = conn;
}

static void writable(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (conn->actor == event->actor) conn_flush(conn);
    (void)world;
}

static void out_put(struct leat_conn *conn, struct leat_send *send, const void *copy, size_t bytes)
{
    struct out *out = calloc(1, sizeof *out);
    LEAT_ASSERT(out != NULL);
    out->send = send;
    out->bytes = bytes;
    if (!send) {
        out->copy = malloc(bytes ? bytes : 1);
        LEAT_ASSERT(out->copy != NULL);
        memcpy(out->copy, copy, bytes);
        conn->actor->copied_bytes += bytes;
        leat_intake_copied(&conn->intake, bytes, 0);
    }
    if (conn->out_last)
        conn->out_last->next = out;
    else
        conn->out_first = out;
    conn->out_last = out;
    if (!conn->queued) conn->taken_us = conn->actor->world->now_us;
    conn->queued += bytes;
    if (conn->peer && conn->peer->actor)
        conn->actor->work_us += bytes * conn->peer->actor->process->answer_us_of_byte;
    conn_dirty(conn);
}

static void net_send(struct leat_conn *conn, struct leat_send *send)
{
    sim_port_called(conn->actor);
    LEAT_ASSERT(send->iov_count <= LEAT_SEND_IOVS_MAX);
    conn->sends_out++;
    if (conn->state == CONN_CLOSED) {
        send_end(conn, send, LEAT_E_CLOSED);
        return;
    }
    size_t bytes = 0;
    for (unsigned i = 0; i < send->iov_count; i++)
        bytes += send->iovs[i].bytes;
    out_put(conn, send, NULL, bytes);
}

static leat_err net_send_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    sim_port_called(conn->actor);
    if (conn->state == CONN_CLOSED) return LEAT_E_CLOSED;
    size_t waiting = 0;
    for (const struct out *out = conn->out_first; out; out = out->next)
        if (out->copy) waiting += out->bytes - out->taken;
    if (waiting + count > LEAT_CONN_COPY_BYTES_MAX) return LEAT_E_AGAIN;
    out_put(conn, NULL, bytes, count);
    return LEAT_OK;
}

static struct out *out_find(const struct leat_conn *conn, const struct leat_send *send)
{
    struct out *out = conn->out_first;
    while (out && out->send != send)
        out = out->next;
    return out;
}

static size_t net_unsent_bytes(const struct leat_conn *conn, const struct leat_send *send)
{
    const struct out *out = out_find(conn, send);
    return out ? out->bytes - out->taken : 0;
}

static void net_replace(struct leat_conn *conn, struct leat_send *send, struct leat_send *by)
{
    struct out *out = out_find(conn, send);
    LEAT_ASSERT(out != NULL && by->iov_count == 1);
    size_t rest = out->bytes - out->taken;
    LEAT_ASSERT(by->iovs[0].bytes == rest);
    (void)out_copy(out, (uint8_t *)(uintptr_t)by->iovs[0].base, rest);
    out->send = by;
    out->bytes = rest;
    out->taken = 0;
}

static size_t net_queued_bytes(const struct leat_conn *conn)
{
    return conn->queued;
}

static uint64_t net_taken_bytes(const struct leat_conn *conn)
{
    return conn->taken;
}

static size_t net_copied_bytes(const struct leat_conn *conn)
{
    return conn->intake.copied;
}

static size_t net_copied_bytes_near(const struct leat_conn *conn)
{
    return leat_intake_copied_near(&conn->intake);
}

static size_t net_copied_bytes_all(void *ctx)
{
    return ((const struct sim_actor *)ctx)->copied_bytes;
}

/* ---- receiving ---- */

/* Something came for an end that is not there any more. */
static void silence_broken(struct sim_world *world, const struct leat_conn *conn)
{
    uint64_t at_us = conn->silent_until_us > world->now_us ? conn->silent_until_us : world->now_us;
    if (conn->peer)
        sim_world_at(world, at_us + sim_rng_between(&world->net, 10, 5000), sim_conn_reset_end,
                     conn->peer);
}

void sim_conn_read_post(struct leat_conn *conn)
{
    if (conn->read_posted || conn->paused || conn->moving || conn->state != CONN_OPEN) return;
    if (!conn->socket_bytes && !conn->present_again && !conn->ended) return;
    if (leat_intake_waits(&conn->intake) && !conn->present_again) return;
    conn->read_posted = true;
    sim_actor_post(conn->actor, 0, conn_read, conn);
}

/* Nobody reads from it. Nothing lies unread before its end, or is not read within a second. */
static void end_look(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    bool whole = conn->kept_bytes && conn->kept_bytes >= conn->want_bytes;
    bool late = event->n && (conn->paused || leat_intake_waits(&conn->intake));
    if (conn->actor != event->actor || conn->moving || conn->state != CONN_OPEN) return;
    if (late || (!conn->socket_bytes && !whole))
        sim_conn_end(conn, LEAT_E_CLOSED);
    else
        sim_actor_post(conn->actor, END_US, end_look, conn)->n = true;
    (void)world;
}

static void chunk_arrived(struct sim_world *world, struct sim_event *event)
{
    struct sim_chunk *chunk = event->a;
    struct leat_conn *conn = chunk->to;
    if (conn->state == CONN_CONNECTING && !chunk->bytes) {
        sim_conn_end(conn, LEAT_E_CLOSED); /* the listener died before it answered */
    } else if (conn->silent) {
        silence_broken(world, conn);
    } else if (conn->state != CONN_CLOSED) {
        if (chunk->bytes)
            buffer_append(&conn->socket, &conn->socket_bytes, &conn->socket_capacity, chunk->data,
                          chunk->bytes);
        else
            conn->ended = true;
        sim_conn_read_post(conn);
        if (conn->ended) sim_actor_post(conn->actor, 0, end_look, conn);
    }
    free(chunk);
}

static void conn_read(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (conn->actor != event->actor || conn->moving) return;
    conn->read_posted = false;
    if (conn->state != CONN_OPEN || conn->paused) return;
    size_t most = conn->actor->read_bytes_max ? conn->actor->read_bytes_max : READ_BYTES_MAX;
    size_t take = conn->socket_bytes < most ? conn->socket_bytes : most;
    if (take) take = intake_room(conn, take); /* what is there already may be presented */
    bool fresh = take != 0;
    if (fresh) leat_intake_heard(&conn->intake, take, world->now_us / 1000);
    buffer_append(&conn->kept, &conn->kept_bytes, &conn->kept_capacity, conn->socket, take);
    if (fresh) memmove(conn->socket, conn->socket + take, conn->socket_bytes - take);
    conn->socket_bytes -= take;
    struct leat_conn *peer = conn->peer;
    if (fresh && peer) {
        LEAT_ASSERT(peer->under_way >= take);
        peer->under_way -= take;
        if (peer->out_first && peer->actor) sim_actor_post(peer->actor, 20, writable, peer);
    }
    bool again = conn->present_again;
    conn->present_again = false;
    if (conn->kept_bytes && (fresh || again) && conn->kept_bytes >= conn->want_bytes) {
        size_t want = 0;
        size_t used =
            conn->handler->on_bytes(conn->user, conn, conn->kept, conn->kept_bytes, &want);
        LEAT_ASSERT_CMP(used, <=, conn->kept_bytes);
        LEAT_ASSERT_CMP(want, <=, (size_t)LEAT_WANT_BYTES_MAX);
        memmove(conn->kept, conn->kept + used, conn->kept_bytes - used);
        conn->kept_bytes -= used;
        conn->want_bytes = want;
        if (conn->moving || conn->state != CONN_OPEN) return;
    }
    intake_hold(conn);
    if (conn->state != CONN_OPEN) return;
    if (conn->kept_bytes > LEAT_WANT_BYTES_MAX + READ_BYTES_MAX)
        sim_fail(world, "A11 assert: a handler keeps %zu bytes unread", conn->kept_bytes);
    if (conn->ended && !conn->socket_bytes && !conn->paused) {
        sim_conn_end(conn, LEAT_E_CLOSED);
        return;
    }
    sim_conn_read_post(conn);
}

static void net_pause(struct leat_conn *conn)
{
    sim_port_called(conn->actor);
    conn->paused = true;
}

static void net_resume(struct leat_conn *conn)
{
    sim_port_called(conn->actor);
    if (!conn->paused) return;
    conn->paused = false;
    leat_intake_heard(&conn->intake, 0, conn->actor->world->now_us / 1000);
    conn->present_again = conn->kept_bytes != 0;
    sim_conn_read_post(conn);
}

/* ---- closing, moving ---- */

static void net_close(struct leat_conn *conn)
{
    sim_port_called(conn->actor);
    if (conn->state == CONN_CLOSED || conn->moving) return;
    /* Whether what was queued in this turn still leaves is not promised. */
    if (sim_rng_chance(&conn->actor->world->net, 500)) conn_flush(conn);
    if (conn->state == CONN_OPEN) sim_conn_end_send(conn);
    sim_conn_end(conn, LEAT_OK);
}

static void moved(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    conn->moving = false;
    sim_conn_intake_join(conn);
    conn->user = conn->on_moved(event->actor->self, conn, conn->baggage, &conn->handler);
    if (!conn->user) {
        sim_conn_end_send(conn);
        conn->state = CONN_CLOSED;
        sim_conn_intake_leave(conn);
        receive_drop(conn);
    } else if (conn->state == CONN_CLOSED) {
        sim_actor_post(conn->actor, 1, closed, conn)->n = LEAT_E_CLOSED;
    } else {
        conn->want_bytes = 0;
        conn->present_again = conn->kept_bytes != 0;
        sim_conn_read_post(conn);
        if (conn->ended) sim_actor_post(conn->actor, 0, end_look, conn);
    }
    (void)world;
}

static void net_move(struct leat_conn *conn, unsigned to_actor,
                     void *(*on_moved)(void *, struct leat_conn *, void *,
                                       const struct leat_conn_handler **),
                     void *baggage)
{
    sim_port_called(conn->actor);
    struct sim_actor *to = conn->actor->process->actors;
    while (to && to->number != to_actor)
        to = to->next;
    LEAT_ASSERT(to != NULL);
    LEAT_ASSERT(conn->queued == 0 && !conn->moving);
    sim_conn_intake_leave(conn);
    conn->moving = true;
    conn->actor = to;
    conn->on_moved = on_moved;
    conn->baggage = baggage;
    conn->read_posted = conn->paused = false;
    sim_actor_post(to, sim_rng_between(&to->world->net, 5, 200), moved, conn);
}

static const char *net_peer(const struct leat_conn *conn)
{
    return conn->peer_name;
}

static const uint8_t *net_key(const struct leat_conn *conn)
{
    return conn->key;
}

static enum leat_origin net_origin(const struct leat_conn *conn)
{
    (void)conn; /* whoever asks for changes here is an operator */
    return LEAT_ORIGIN_MACHINE;
}

static void net_account(struct leat_conn *conn, enum leat_net_account account)
{
    sim_port_called(conn->actor);
    leat_intake_account_set(&conn->actor->intake, &conn->intake, account);
}

static void net_limit(void *ctx, enum leat_net_account account, size_t bytes)
{
    struct sim_actor *actor = ctx;
    actor->intake.accounts[account].bytes_max =
        bytes / (actor->world->room_divisor ? actor->world->room_divisor : 1);
}

/* ---- the end of the world ---- */

static void conns_destroy(struct leat_conn *conn)
{
    for (struct leat_conn *next; conn; conn = next) {
        next = conn->next_in_world;
        queue_drop(conn, false);
        free(conn->socket);
        free(conn->kept);
        free(conn);
    }
}

void sim_net_fini(struct sim_world *world)
{
    conns_destroy(world->conns);
    conns_destroy(world->conns_over);
    sim_net_listeners_destroy(world);
    for (struct sim_cut *cut = world->cuts, *next; cut; cut = next) {
        next = cut->next;
        sim_line_destroy(cut->line);
        free(cut);
    }
    world->cuts = NULL;
    world->conns = world->conns_over = NULL;
}

const struct leat_net sim_net_ops = {
    .listen = sim_net_listen,
    .connect = sim_net_connect,
    .send = net_send,
    .send_copy = net_send_copy,
    .unsent_bytes = net_unsent_bytes,
    .replace = net_replace,
    .queued_bytes = net_queued_bytes,
    .taken_bytes = net_taken_bytes,
    .copied_bytes = net_copied_bytes,
    .copied_bytes_near = net_copied_bytes_near,
    .copied_bytes_all = net_copied_bytes_all,
    .pause = net_pause,
    .resume = net_resume,
    .close = net_close,
    .move = net_move,
    .account = net_account,
    .limit = net_limit,
    .peer = net_peer,
    .key = net_key,
    .origin = net_origin,
};
