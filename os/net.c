/* SPDX-License-Identifier: Apache-2.0 */
/* The life of connections: events, closing, moving, and what waits for a later callback.
 *
 * Sockets are watched with uv_poll and read and written directly: so an actor has one read buffer, bytes are read
 * directly after kept bytes, and 1024 pieces are written at once without allocation.
 */
#include "os/net.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- watching ---- */

static void poll_freed(uv_handle_t *handle)
{
    leat_mem_free(handle->data);
}

static bool reading_wanted(const struct leat_conn *conn)
{
    if (conn->state != OS_CONN_OPEN || conn->paused || conn->moving) return false;
    return !leat_intake_waits(&conn->intake);
}

/* SUBTLE: bytes before an end are read, but not for ever. (1) A client sends more requests than may be under way,
 * which wait for up to a minute, and closes. (2) Its connection is not read before half of these are answered. (3)
 * Until then the connection would keep the memory of requests, without a client for the answers. A client that sends
 * appends without waiting for acks and closes is read within that second, unless a disk or a backup stands still:
 * then its unacked appends may be lost. */
static void on_end_look(uv_timer_t *timer)
{
    struct os_actor *actor = timer->data;
    struct os_net *net = &actor->net;
    uint64_t now_ms = uv_now(&actor->loop);
    LEAT_LIST_EACH(&net->ended, link)
    {
        struct leat_conn *conn = LEAT_CONTAINER(link, struct leat_conn, ended);
        if (now_ms < conn->ended_ms + LEAT_NET_END_MS) break;
        if (!reading_wanted(conn)) leat_os_conn_fail(conn, LEAT_E_CLOSED);
    }
    if (!leat_list_empty(&net->ended))
        (void)uv_timer_start(&net->end_timer, on_end_look, LEAT_NET_END_LOOK_MS, 0);
}

/* The connection is not read from (paused, or waiting for room), and its peer has closed. Unread bytes may still be
 * read. */
static void end_look(struct leat_conn *conn)
{
    struct os_net *net = &conn->actor->net;
    int unread = 0;
    bool whole = conn->kept_bytes > 0 && conn->kept_bytes >= conn->want_bytes;
    if (!whole && ioctl(conn->fd, FIONREAD, &unread) == 0 && unread == 0) {
        leat_os_conn_fail(conn, LEAT_E_CLOSED);
        return;
    }
    if (!leat_list_empty(&conn->ended)) return;
    conn->ended_ms = uv_now(&conn->actor->loop);
    leat_list_push_back(&net->ended, &conn->ended);
    if (!uv_is_active((uv_handle_t *)&net->end_timer))
        (void)uv_timer_start(&net->end_timer, on_end_look, LEAT_NET_END_LOOK_MS, 0);
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
    struct os_poll *poll = uv->data;
    struct leat_conn *conn = poll->conn;
    LEAT_ASSERT(conn != NULL);
    /* On an error libuv has stopped the handle already; the socket itself tells the cause. */
    if (status < 0) {
        conn->events = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (conn->state == OS_CONN_CONNECTING) {
        leat_os_conn_connected(conn);
        return;
    }
    if ((events & UV_WRITABLE) && conn->state == OS_CONN_OPEN && conn->blocked) {
        conn->blocked = false;
        leat_os_conn_flush(conn);
    }
    if ((events & UV_DISCONNECT) && conn->state == OS_CONN_OPEN) end_look(conn);
    if ((events & UV_READABLE) && conn->state == OS_CONN_OPEN) {
        if (status < 0 && !reading_wanted(conn))
            leat_os_conn_fail(conn, LEAT_E_CLOSED);
        else
            leat_os_conn_read(conn);
    }
    if (poll->conn) leat_os_conn_events(conn); /* not moved away, not gone */
}

leat_err leat_os_conn_watch(struct leat_conn *conn)
{
    struct os_poll *poll = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *poll);
    if (!poll) return LEAT_E_NO_MEMORY;
    if (uv_poll_init(&conn->actor->loop, &poll->uv, conn->fd)) {
        leat_mem_free(poll);
        return LEAT_E_CLOSED;
    }
    poll->uv.data = poll;
    poll->conn = conn;
    conn->poll = poll;
    conn->events = 0;
    leat_os_conn_events(conn);
    return LEAT_OK;
}

/* After this the old loop never reports the socket again: uv_poll_stop also takes out events that
 * epoll has returned already. Must come before the socket is closed. */
void leat_os_conn_unwatch(struct leat_conn *conn)
{
    struct os_poll *poll = conn->poll;
    if (!poll) return;
    conn->poll = NULL;
    conn->events = 0;
    poll->conn = NULL;
    (void)uv_poll_stop(&poll->uv);
    uv_close((uv_handle_t *)&poll->uv, poll_freed);
}

/* A paused connection keeps bytes because of its handler, and a connection with unread bytes has sent something. */
static bool is_idle(const struct leat_intake_member *member)
{
    const struct leat_conn *conn = LEAT_CONTAINER(member, struct leat_conn, intake);
    int unread = 0;
    return reading_wanted(conn) && ioctl(conn->fd, FIONREAD, &unread) == 0 && unread == 0;
}

static void place_lost(struct leat_intake_member *member)
{
    struct leat_conn *conn = LEAT_CONTAINER(member, struct leat_conn, intake);
    leat_os_conn_kept_drop(conn);
    leat_os_conn_fail(conn, LEAT_E_TIMEOUT);
}

static void on_stall(uv_timer_t *timer)
{
    struct os_actor *actor = timer->data;
    if (leat_intake_watch(&actor->net.intake, uv_now(&actor->loop), is_idle, place_lost))
        (void)uv_timer_start(timer, on_stall, LEAT_INTAKE_LOOK_MS, 0);
}

bool leat_os_conn_has_room(struct leat_conn *conn, size_t capacity)
{
    struct os_net *net = &conn->actor->net;
    uint64_t now_ms = uv_now(&conn->actor->loop);
    bool has = leat_intake_grow(&net->intake, &conn->intake, capacity);
    if (has || uv_is_active((uv_handle_t *)&net->stall_timer)) return has;
    leat_intake_watch_begin(&net->intake, now_ms);
    (void)uv_timer_start(&net->stall_timer, on_stall, LEAT_INTAKE_LOOK_MS, 0);
    return false;
}

void leat_os_conn_events(struct leat_conn *conn)
{
    if (!conn->poll) return;
    bool end_seen = !leat_list_empty(&conn->ended);
    int events = reading_wanted(conn)                       ? UV_READABLE
                 : conn->state == OS_CONN_OPEN && !end_seen ? UV_DISCONNECT
                                                            : 0;
    if (conn->state == OS_CONN_CONNECTING || conn->blocked) events |= UV_WRITABLE;
    if (conn->state == OS_CONN_CLOSING) events = 0;
    if (events == conn->events) return;
    conn->events = events;
    if (events)
        (void)uv_poll_start(&conn->poll->uv, events, on_poll);
    else
        (void)uv_poll_stop(&conn->poll->uv);
}

/* ---- life ---- */

/* An actor without connections needs no buffer. */
static leat_err read_buffer_make(struct os_net *net)
{
    if (net->read_buffer) return LEAT_OK;
    net->read_buffer = leat_mem_calloc(LEAT_MEM_NET, 1, LEAT_NET_FRONT_BYTES + LEAT_NET_READ_BYTES);
    return net->read_buffer ? LEAT_OK : LEAT_E_NO_MEMORY;
}

struct leat_conn *leat_os_conn_create(struct os_actor *actor, int fd,
                                      const uint8_t key[LEAT_NET_KEY_BYTES],
                                      enum leat_net_account account)
{
    struct os_net *net = &actor->net;
    if (read_buffer_make(net)) return NULL;
    struct leat_conn *conn = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *conn);
    if (!conn) return NULL;
    conn->actor = actor;
    conn->fd = fd;
    conn->last = &conn->first;
    leat_list_init(&conn->ready);
    leat_list_init(&conn->dirty);
    leat_list_init(&conn->ended);
    memcpy(conn->key, key, sizeof conn->key);
    leat_intake_join(&net->intake, &conn->intake, key, account);
    leat_list_push_back(&net->conns, &conn->all);
    return conn;
}

static void conn_unlink(struct leat_conn *conn)
{
    leat_list_remove(&conn->all);
    leat_list_remove(&conn->ready);
    leat_list_remove(&conn->dirty);
    leat_list_remove(&conn->ended);
    leat_intake_leave(&conn->actor->net.intake, &conn->intake);
}

static void conn_link(struct leat_conn *conn)
{
    struct os_net *net = &conn->actor->net;
    leat_list_push_back(&net->conns, &conn->all);
    leat_intake_join(&net->intake, &conn->intake, conn->key, conn->intake.account);
    leat_intake_heard(&conn->intake, 0, uv_now(&conn->actor->loop));
    /* A whole frame may wait here for its log: if all such connections were let in, memory would have no limit. */
    if (!leat_intake_admits(&net->intake, &conn->intake, conn->kept_capacity,
                            uv_now(&conn->actor->loop), is_idle, place_lost))
        conn->move_failed = LEAT_E_TOO_MANY;
    leat_intake_hold(&net->intake, &conn->intake, conn->kept_capacity);
}

void leat_os_conn_free(struct leat_conn *conn)
{
    conn_unlink(conn);
    leat_os_conn_lookup_drop(conn);
    leat_os_conn_unwatch(conn);
    leat_os_conn_kept_drop(conn);
    if (conn->fd >= 0) (void)close(conn->fd); /* nothing to learn from a socket's close */
    leat_mem_free(conn);
}

void leat_os_conn_ready(struct leat_conn *conn)
{
    if (leat_list_empty(&conn->ready)) leat_list_push_back(&conn->actor->net.ready, &conn->ready);
}

void leat_os_conn_fail(struct leat_conn *conn, leat_err why)
{
    if (conn->state == OS_CONN_CLOSING) return;
    /* SUBTLE: (1) A handler moves its connection to another core, and forgets it here. (2) There is no room for the
     * bytes that it did not consume. (3) If the end were reported here, the handler would end the connection a second
     * time, on a core that does not own it. So the connection moves, and ends on the other core. */
    if (conn->moving) {
        conn->move_failed = why;
        return;
    }
    if (why == LEAT_E_CLOSED && !conn->paused)
        leat_intake_ended(&conn->actor->net.intake, &conn->intake, uv_now(&conn->actor->loop));
    conn->state = OS_CONN_CLOSING;
    conn->why = why;
    leat_os_conn_events(conn);
    leat_os_conn_ready(conn);
}

static bool conn_finish(struct leat_conn *conn)
{
    struct os_net *net = &conn->actor->net;
    leat_os_conn_unwatch(conn);
    leat_os_conn_sends_fail(conn);
    for (struct leat_send *send = net->lost; send; send = net->lost) {
        net->lost = send->next;
        if (!net->lost) net->lost_last = &net->lost;
        send->on_sent(send, LEAT_E_CLOSED);
    }
    bool told = conn->handler != NULL;
    if (told) conn->handler->on_closed(conn->user, conn, conn->why);
    leat_os_conn_free(conn);
    return told;
}

static void net_close(struct leat_conn *conn)
{
    LEAT_ASSERT(!conn->moving);
    leat_os_conn_fail(conn, LEAT_OK);
}

static void net_pause(struct leat_conn *conn)
{
    conn->paused = true; /* epoll is told when it next reports: most pauses are short */
}

static void net_resume(struct leat_conn *conn)
{
    if (!conn->paused) return;
    conn->paused = false;
    leat_intake_heard(&conn->intake, 0, uv_now(&conn->actor->loop));
    if (conn->state != OS_CONN_OPEN) return;
    /* Inside on_bytes what will be kept is not known yet; it is looked at when its turn comes. */
    if (conn->in_bytes || (conn->kept_bytes > 0 && conn->kept_bytes >= conn->want_bytes)) {
        conn->present = true;
        leat_os_conn_ready(conn);
    }
    leat_os_conn_events(conn);
}

static size_t net_queued_bytes(const struct leat_conn *conn)
{
    return conn->queued_bytes;
}

static uint64_t net_taken_bytes(const struct leat_conn *conn)
{
    return conn->taken_bytes;
}

static void net_account(struct leat_conn *conn, enum leat_net_account account)
{
    leat_intake_account_set(&conn->actor->net.intake, &conn->intake, account);
}

static void net_limit(void *ctx, enum leat_net_account account, size_t bytes)
{
    struct os_actor *actor = ctx;
    actor->net.intake.accounts[account].bytes_max = bytes;
}

static size_t net_copied_bytes(const struct leat_conn *conn)
{
    return conn->copy_capacity;
}

static size_t net_copied_bytes_near(const struct leat_conn *conn)
{
    return leat_intake_copied_near(&conn->intake);
}

static size_t net_copied_bytes_all(void *ctx)
{
    return ((const struct os_actor *)ctx)->net.copy_capacity;
}

static const char *net_peer(const struct leat_conn *conn)
{
    return conn->peer;
}

static const uint8_t *net_key(const struct leat_conn *conn)
{
    return conn->key;
}

static enum leat_origin net_origin(const struct leat_conn *conn)
{
    return conn->origin;
}

/* ---- moving ---- */

static void conn_arrive(void *actor_pointer, struct leat_mail *mail)
{
    struct leat_conn *conn = LEAT_CONTAINER(mail, struct leat_conn, move_mail);
    struct os_actor *actor = conn->actor;
    conn_link(conn);
    const struct leat_conn_handler *handler = NULL;
    conn->user = conn->on_moved(actor_pointer, conn, conn->baggage, &handler);
    if (!conn->user) {
        leat_os_conn_sends_fail(conn);
        leat_os_conn_free(conn);
        return;
    }
    conn->handler = handler;
    leat_err rc = actor->stopping ? LEAT_E_CANCELLED : conn->move_failed;
    if (!rc) rc = read_buffer_make(&actor->net);
    if (!rc) rc = leat_os_conn_watch(conn);
    if (rc) leat_os_conn_fail(conn, rc);
    if (conn->kept_bytes > 0) {
        conn->present = true;
        leat_os_conn_ready(conn);
    }
}

void leat_os_conn_hand_over(struct leat_conn *conn)
{
    struct os_actor *from = conn->actor;
    leat_os_conn_unwatch(conn);
    conn_unlink(conn);
    conn->actor = from->world->actors[conn->move_to];
    LEAT_ASSERT(conn->actor != NULL);
    conn->moving = conn->present = conn->paused = conn->blocked = false;
    conn->want_bytes = 0; /* the new handler has not set its want */
    conn->handler = NULL;
    conn->move_mail.deliver = conn_arrive;
    from->post.send(from->post.ctx, conn->move_to, &conn->move_mail);
}

static void net_move(struct leat_conn *conn, unsigned to_actor,
                     void *(*on_moved)(void *to_actor_pointer, struct leat_conn *conn,
                                       void *baggage, const struct leat_conn_handler **out_handler),
                     void *baggage)
{
    LEAT_ASSERT_CMP(to_actor, <, LEAT_ACTORS);
    LEAT_ASSERT_CMP(conn->queued_bytes, ==, 0);
    LEAT_ASSERT_CMP(conn->state, ==, OS_CONN_OPEN);
    LEAT_ASSERT(conn->handler != NULL && !conn->moving); /* not from within on_accept, on_moved */
    conn->moving = true;
    conn->move_failed = LEAT_OK;
    conn->move_to = to_actor;
    conn->on_moved = on_moved;
    conn->baggage = baggage;
    /* Inside on_bytes the count of consumed bytes is still to come. */
    if (!conn->in_bytes) leat_os_conn_hand_over(conn);
}

void leat_os_net_drop_mail(struct leat_mail *mail)
{
    if (mail->deliver != conn_arrive) return;
    struct leat_conn *conn = LEAT_CONTAINER(mail, struct leat_conn, move_mail);
    conn_link(conn);
    leat_os_conn_free(conn);
}

/* ---- turns ---- */

static bool sends_deliver(struct os_net *net)
{
    struct leat_send *send = net->done;
    bool any = send != NULL;
    net->done = NULL;
    net->done_last = &net->done;
    while (send) {
        struct leat_send *next = send->next; /* on_sent may use the struct again */
        send->on_sent(send, LEAT_OK);
        send = next;
    }
    send = net->lost;
    any = any || send != NULL;
    net->lost = NULL;
    net->lost_last = &net->lost;
    while (send) {
        struct leat_send *next = send->next;
        send->on_sent(send, LEAT_E_CLOSED);
        send = next;
    }
    return any;
}

bool leat_os_net_deliver(struct os_actor *actor)
{
    struct os_net *net = &actor->net;
    bool any = sends_deliver(net);
    struct leat_intake_member *member;
    while ((member = leat_intake_next(&net->intake)) != NULL) {
        leat_intake_heard(member, 0, uv_now(&actor->loop));
        leat_os_conn_events(LEAT_CONTAINER(member, struct leat_conn, intake));
    }
    /* Only what is there now: what these callbacks make ready belongs to a later callback. */
    struct leat_list now;
    leat_list_init(&now);
    if (!leat_list_empty(&net->ready)) {
        now = net->ready;
        now.next->prev = now.prev->next = &now;
        leat_list_init(&net->ready);
    }
    struct leat_list *link;
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_conn *conn = LEAT_CONTAINER(link, struct leat_conn, ready);
        if (conn->state == OS_CONN_CLOSING) {
            any = conn_finish(conn) || any;
        } else if (conn->present) {
            conn->present = false;
            any = leat_os_conn_present_kept(conn) || any;
        }
    }
    return any;
}

void leat_os_net_flush(struct os_actor *actor)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&actor->net.dirty)) != NULL) {
        struct leat_conn *conn = LEAT_CONTAINER(link, struct leat_conn, dirty);
        /* A connection closed in this turn still gets its last words, if the socket takes them. */
        bool writable = conn->state == OS_CONN_OPEN ||
                        (conn->state == OS_CONN_CLOSING && conn->why == LEAT_OK && conn->fd >= 0);
        if (writable && !conn->blocked) leat_os_conn_flush(conn);
        leat_os_conn_events(conn);
    }
}

bool leat_os_net_waiting(const struct os_actor *actor)
{
    const struct os_net *net = &actor->net;
    return net->done || net->lost || !leat_list_empty(&net->ready) || !leat_list_empty(&net->dirty);
}

void leat_os_net_stop(struct os_actor *actor)
{
    LEAT_LIST_EACH(&actor->net.listeners, link)
    leat_os_listener_close(LEAT_CONTAINER(link, struct os_listener, link));
    LEAT_LIST_EACH(&actor->net.conns, link)
    leat_os_conn_fail(LEAT_CONTAINER(link, struct leat_conn, all), LEAT_E_CANCELLED);
}

bool leat_os_net_stopped(const struct os_actor *actor)
{
    return leat_list_empty(&actor->net.conns);
}

leat_err leat_os_net_init(struct os_actor *actor)
{
    struct os_net *net = &actor->net;
    leat_list_init(&net->conns);
    leat_list_init(&net->ready);
    leat_list_init(&net->dirty);
    leat_list_init(&net->ended);
    leat_intake_init(&net->intake, &actor->random);
    leat_list_init(&net->listeners);
    net->done_last = &net->done;
    net->lost_last = &net->lost;
    (void)uv_timer_init(&actor->loop, &net->accept_timer);
    (void)uv_timer_init(&actor->loop, &net->stall_timer);
    (void)uv_timer_init(&actor->loop, &net->end_timer);
    net->accept_timer.data = net->stall_timer.data = net->end_timer.data = actor;
    actor->net_port = (struct leat_net){
        .ctx = actor,
        .listen = leat_os_net_listen,
        .connect = leat_os_net_connect,
        .send = leat_os_net_send,
        .send_copy = leat_os_net_send_copy,
        .unsent_bytes = leat_os_net_unsent_bytes,
        .replace = leat_os_net_replace,
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
    return LEAT_OK;
}

void leat_os_net_fini(struct os_actor *actor)
{
    struct os_net *net = &actor->net;
    /* An actor that was never started may have listened or connected. */
    LEAT_LIST_EACH(&net->listeners, link)
    leat_os_listener_close(LEAT_CONTAINER(link, struct os_listener, link));
    LEAT_LIST_EACH(&net->conns, link)
    {
        struct leat_conn *conn = LEAT_CONTAINER(link, struct leat_conn, all);
        leat_os_conn_sends_fail(conn);
        leat_os_conn_free(conn);
    }
    leat_intake_fini(&net->intake);
    uv_close((uv_handle_t *)&net->accept_timer, NULL);
    uv_close((uv_handle_t *)&net->stall_timer, NULL);
    uv_close((uv_handle_t *)&net->end_timer, NULL);
}
