/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in and out of connections: each is touched once where that is possible. */
#include "os/net.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Buffers are kept ready as long as those in use leave room: so they add nothing to what these take at most. */
static void buffer_put(struct os_net *net, uint8_t *bytes, size_t capacity)
{
    uint64_t used = net->copy_capacity;
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++)
        used += net->intake.accounts[i].bytes;
    leat_os_buffer_put(&net->buffers, bytes, capacity, used);
}

/* ---- kept bytes ---- */

void leat_os_conn_kept_drop(struct leat_conn *conn)
{
    if (!conn->kept) return;
    struct os_net *net = &conn->actor->net;
    leat_intake_hold(&net->intake, &conn->intake, 0);
    buffer_put(net, conn->kept, conn->kept_capacity);
    conn->kept = NULL;
    conn->kept_at = conn->kept_bytes = conn->kept_capacity = 0;
}

/* Make room for `bytes` from the kept bytes' start on. */
static leat_err kept_reserve(struct leat_conn *conn, size_t bytes)
{
    struct os_net *net = &conn->actor->net;
    if (conn->kept_at + bytes <= conn->kept_capacity) return LEAT_OK;
    if (bytes <= conn->kept_capacity) {
        memmove(conn->kept, conn->kept + conn->kept_at, conn->kept_bytes);
        conn->kept_at = 0;
        return LEAT_OK;
    }
    size_t capacity, count = conn->kept_bytes;
    uint8_t *kept = leat_os_buffer_get(&net->buffers, bytes, &capacity);
    if (!kept) return LEAT_E_NO_MEMORY;
    if (conn->kept) {
        memcpy(kept, conn->kept + conn->kept_at, count);
        buffer_put(net, conn->kept, conn->kept_capacity);
    }
    conn->kept = kept;
    conn->kept_at = 0;
    conn->kept_capacity = capacity;
    leat_intake_hold(&net->intake, &conn->intake, capacity);
    return LEAT_OK;
}

/* How many bytes to have room for, of which so many have come. */
static size_t room_of(const struct leat_conn *conn, size_t come)
{
    if (conn->want_bytes <= come) return come;
    size_t room = come * LEAT_NET_KEPT_GROWTH;
    return room < conn->want_bytes ? room : conn->want_bytes;
}

static void smalls_shed(struct os_net *net, enum leat_net_account account)
{
    struct leat_intake_member *member;
    while ((member = leat_intake_surplus(&net->intake, account)) != NULL) {
        struct leat_conn *conn = LEAT_CONTAINER(member, struct leat_conn, intake);
        leat_os_conn_kept_drop(conn);
        leat_os_conn_fail(conn, LEAT_E_TOO_MANY);
    }
}

static void kept_append(struct leat_conn *conn, const uint8_t *data, size_t bytes)
{
    if (bytes == 0 || conn->state == OS_CONN_CLOSING) return;
    size_t total = conn->kept_bytes + bytes;
    if (total > 2u * LEAT_WANT_BYTES_MAX) {
        leat_os_conn_fail(conn, LEAT_E_TOO_LARGE); /* more than any handler may want */
        return;
    }
    /* Room for more than the bytes so far: then some of the rest is read directly after these. */
    size_t room = room_of(conn, total);
    if (!leat_intake_fits(&conn->actor->net.intake, &conn->intake, leat_os_buffer_capacity(room)))
        room = total;
    leat_err rc = kept_reserve(conn, room);
    if (rc) {
        leat_os_conn_fail(conn, rc);
        return;
    }
    memcpy(conn->kept + conn->kept_at + conn->kept_bytes, data, bytes);
    conn->kept_bytes = total;
    smalls_shed(&conn->actor->net, conn->intake.account);
}

static void kept_consume(struct leat_conn *conn, size_t used)
{
    conn->kept_at += used;
    conn->kept_bytes -= used;
    if (conn->kept_bytes == 0) leat_os_conn_kept_drop(conn);
}

/* ---- reading ---- */

static size_t present(struct leat_conn *conn, const uint8_t *data, size_t bytes)
{
    size_t want = 0;
    conn->in_bytes = true;
    conn->actor->called = true;
    size_t used = conn->handler->on_bytes(conn->user, conn, data, bytes, &want);
    conn->in_bytes = false;
    LEAT_ASSERT_CMP(used, <=, bytes);
    LEAT_ASSERT_CMP(want, <=, LEAT_WANT_BYTES_MAX);
    conn->want_bytes = want;
    return used;
}

static bool presentable(const struct leat_conn *conn)
{
    return conn->state == OS_CONN_OPEN && !conn->paused && !conn->moving;
}

/* What follows a callback: a moved connection leaves only now, with its rest. */
static bool conn_left(struct leat_conn *conn)
{
    if (!conn->moving) return conn->state != OS_CONN_OPEN;
    leat_os_conn_hand_over(conn);
    return true;
}

bool leat_os_conn_present_kept(struct leat_conn *conn)
{
    if (!presentable(conn) || conn->kept_bytes == 0 || conn->kept_bytes < conn->want_bytes)
        return false;
    kept_consume(conn, present(conn, conn->kept + conn->kept_at, conn->kept_bytes));
    if (!conn_left(conn)) leat_os_conn_events(conn);
    return true;
}

/* Little or nothing is kept: the kept bytes are copied before the new bytes. */
static ssize_t read_fresh(struct leat_conn *conn, uint8_t *fresh, size_t most)
{
    ssize_t n = recv(conn->fd, fresh, most, 0);
    if (n <= 0) return n;
    size_t kept = conn->kept_bytes, total = kept + (size_t)n;
    if (total < conn->want_bytes) {
        kept_append(conn, fresh, (size_t)n);
        return n;
    }
    uint8_t *data = fresh - kept;
    if (kept > 0) {
        memcpy(data, conn->kept + conn->kept_at, kept);
        leat_os_conn_kept_drop(conn);
    }
    size_t used = present(conn, data, total);
    kept_append(conn, data + used, total - used);
    return n;
}

/* Make the kept buffer hold *out_target bytes in all, the kept ones included. false: its account has no room now and
 * the connection waits for some, or the connection has failed. */
static bool behind_reserve(struct leat_conn *conn, size_t *out_target)
{
    size_t kept = conn->kept_bytes, room = conn->kept_capacity - conn->kept_at;
    if (conn->want_bytes > kept && room > kept) { /* what is there is filled first */
        *out_target = room < conn->want_bytes ? room : conn->want_bytes;
        return true;
    }
    *out_target = conn->want_bytes > kept ? room_of(conn, kept) : kept + LEAT_NET_READ_BYTES;
    if (*out_target > conn->kept_capacity &&
        !leat_os_conn_has_room(conn, leat_os_buffer_capacity(*out_target)))
        return false;
    leat_err rc = kept_reserve(conn, *out_target);
    if (rc) leat_os_conn_fail(conn, rc);
    return rc == LEAT_OK;
}

/* A large frame is cut: its rest is read directly after the kept bytes, and by the same call the bytes after the
 * frame, `past` at most, into the shared buffer. */
static ssize_t read_behind(struct leat_conn *conn, uint8_t *fresh, size_t past)
{
    size_t kept = conn->kept_bytes, target;
    if (!behind_reserve(conn, &target)) {
        errno = EAGAIN;
        return -1;
    }
    bool known = target == conn->want_bytes;
    struct iovec iov[2] = {
        {.iov_base = conn->kept + conn->kept_at + kept, .iov_len = target - kept},
        {.iov_base = fresh, .iov_len = past},
    };
    ssize_t n = readv(conn->fd, iov, known ? 2 : 1);
    if (n <= 0) return n;
    size_t behind = (size_t)n < target - kept ? (size_t)n : target - kept;
    size_t rest = (size_t)n - behind;
    conn->kept_bytes += behind;
    if (conn->kept_bytes < conn->want_bytes) return n;
    kept_consume(conn, present(conn, conn->kept + conn->kept_at, conn->kept_bytes));
    if (rest == 0) return n;
    if (conn->kept_bytes == 0 && presentable(conn) && rest >= conn->want_bytes) {
        size_t used = present(conn, fresh, rest);
        kept_append(conn, fresh + used, rest - used);
        return n;
    }
    kept_append(conn, fresh, rest);
    if (presentable(conn) && conn->kept_bytes >= conn->want_bytes) {
        conn->present = true; /* more has come, so the handler is asked again */
        leat_os_conn_ready(conn);
    }
    return n;
}

static bool read_room(struct leat_conn *conn)
{
    /* What waits to be presented again comes first: were the end of the stream read now, whole
     * frames would be lost with it. */
    if (!presentable(conn) || conn->present) return false;
    if (conn->kept_bytes == 0) return true;
    if (conn->kept_bytes < LEAT_WANT_BYTES_MAX || conn->kept_bytes < conn->want_bytes) return true;
    /* The largest frame lies there whole and is not taken: it never will be. */
    leat_os_conn_fail(conn, LEAT_E_TOO_LARGE);
    return false;
}

/* SUBTLE: bytes of a stranger after its first request are not read together with the request. (1) A thousand
 * connections send hello and the beginning of a large frame at once. (2) No account is full when they are read. (3)
 * The hellos make these connections clients, and the rest of each read, 256 KiB, is kept as clients' bytes, whether
 * there is room or not. */
static size_t read_bytes(const struct leat_conn *conn)
{
    return conn->intake.account == LEAT_NET_STRANGERS ? LEAT_INTAKE_SMALL_BYTES
                                                      : LEAT_NET_READ_BYTES;
}

void leat_os_conn_read(struct leat_conn *conn)
{
    uint8_t *fresh = conn->actor->net.read_buffer + LEAT_NET_FRONT_BYTES;
    for (int i = 0; i < LEAT_NET_READS_PER_EVENT && read_room(conn); i++) {
        size_t kept = conn->kept_bytes, want = conn->want_bytes, most = read_bytes(conn);
        bool full = leat_intake_full(&conn->actor->net.intake, &conn->intake);
        /* Without room: enough for most requests, but not for the most of a large request. */
        size_t little = full ? LEAT_INTAKE_SMALL_BYTES : most;
        /* A connection with more kept bytes must wait for room like all others. */
        bool behind =
            kept > 0 && (kept > LEAT_NET_FRONT_BYTES || want > kept + (size_t)LEAT_NET_READ_BYTES ||
                         (full && kept >= little));
        if (full && !behind) most = little - kept;
        ssize_t n = behind ? read_behind(conn, fresh, little) : read_fresh(conn, fresh, most);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0) {
            leat_os_conn_fail(conn, LEAT_E_CLOSED);
            break;
        }
        leat_intake_heard(&conn->intake, (size_t)n, uv_now(&conn->actor->loop));
        if (conn_left(conn)) break;
        /* A read that did not fill the buffer has emptied the socket; epoll tells of more. */
        if ((size_t)n < most) break;
    }
}

/* ---- sending ---- */

/* Consecutive copies of small messages; for the queue a send like any other. */
struct os_copy {
    struct leat_send send;
    struct leat_iov iov;
    size_t capacity; /* of the whole buffer, this header included */
    uint8_t bytes[];
};

static void copies_count(struct leat_conn *conn, size_t more, size_t less)
{
    conn->copy_capacity += more - less;
    leat_intake_copied(&conn->intake, more, less);
    conn->actor->net.copy_capacity += more - less;
}

static void copy_sent(struct leat_send *send, leat_err rc)
{
    (void)rc;
    struct os_copy *copy = send->owner;
    LEAT_ASSERT(copy != NULL); /* never called: pieces are taken back in send_finish() */
}

static size_t send_total(const struct leat_send *send)
{
    size_t total = 0;
    for (unsigned i = 0; i < send->iov_count; i++)
        total += send->iovs[i].bytes;
    return total;
}

static void list_add(struct leat_send ***last, struct leat_send *send)
{
    send->next = NULL;
    **last = send;
    *last = &send->next;
}

static void conn_dirty(struct leat_conn *conn)
{
    if (leat_list_empty(&conn->dirty)) leat_list_push_back(&conn->actor->net.dirty, &conn->dirty);
}

static void send_queue(struct leat_conn *conn, struct leat_send *send)
{
    list_add(&conn->last, send);
    conn_dirty(conn);
}

void leat_os_net_send(struct leat_conn *conn, struct leat_send *send)
{
    LEAT_ASSERT_CMP(send->iov_count, <=, LEAT_SEND_IOVS_MAX);
    LEAT_ASSERT(send->on_sent != NULL);
    LEAT_ASSERT(!conn->moving);
    send->sent_bytes = 0;
    if (conn->state == OS_CONN_CLOSING) {
        list_add(&conn->actor->net.lost_last, send);
        return;
    }
    conn->queued_bytes += send_total(send);
    conn->copy = NULL;
    send_queue(conn, send);
}

leat_err leat_os_net_send_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    LEAT_ASSERT(!conn->moving);
    if (conn->state == OS_CONN_CLOSING) return LEAT_E_CLOSED;
    if (conn->copy_bytes + count > LEAT_CONN_COPY_BYTES_MAX) return LEAT_E_AGAIN;
    struct os_copy *copy = conn->copy;
    if (!copy || sizeof *copy + copy->iov.bytes + count > copy->capacity) {
        size_t capacity, wanted = sizeof *copy + count;
        /* Most answers of a turn are one piece, and thousands of connections may not have taken theirs. */
        if (conn->copy_bytes > 0 && wanted < LEAT_NET_COPY_CHUNK_BYTES)
            wanted = LEAT_NET_COPY_CHUNK_BYTES;
        copy = (struct os_copy *)(void *)leat_os_buffer_get(&conn->actor->net.buffers, wanted,
                                                            &capacity);
        if (!copy) return LEAT_E_NO_MEMORY;
        copy->capacity = capacity;
        copies_count(conn, capacity, 0);
        copy->iov = (struct leat_iov){copy->bytes, 0};
        copy->send = (struct leat_send){
            .iovs = &copy->iov, .iov_count = 1, .on_sent = copy_sent, .owner = copy};
        send_queue(conn, &copy->send);
        conn->copy = copy;
    }
    memcpy(copy->bytes + copy->iov.bytes, bytes, count);
    copy->iov.bytes += count;
    conn->queued_bytes += count;
    conn->copy_bytes += count;
    conn_dirty(conn);
    return LEAT_OK;
}

size_t leat_os_net_unsent_bytes(const struct leat_conn *conn, const struct leat_send *send)
{
    for (const struct leat_send *queued = conn->first; queued; queued = queued->next)
        if (queued == send) return send_total(send) - send->sent_bytes;
    return 0;
}

void leat_os_net_replace(struct leat_conn *conn, struct leat_send *send, struct leat_send *by)
{
    LEAT_ASSERT_CMP(by->iov_count, ==, 1);
    uint8_t *to = (uint8_t *)(uintptr_t)by->iovs[0].base;
    size_t skip = send->sent_bytes, got = 0;
    for (unsigned i = 0; i < send->iov_count; i++) {
        const struct leat_iov *piece = &send->iovs[i];
        size_t from = skip < piece->bytes ? skip : piece->bytes;
        memcpy(to + got, (const uint8_t *)piece->base + from, piece->bytes - from);
        got += piece->bytes - from;
        skip -= from;
    }
    LEAT_ASSERT_CMP(got, ==, by->iovs[0].bytes);
    struct leat_send **at = &conn->first;
    while (*at != send)
        at = &(*at)->next;
    by->sent_bytes = 0;
    by->next = send->next;
    *at = by;
    if (conn->last == &send->next) conn->last = &by->next;
}

/* A send left the queue's front. */
static void send_finish(struct leat_conn *conn, struct leat_send *send, size_t total, leat_err rc)
{
    struct os_net *net = &conn->actor->net;
    conn->first = send->next;
    if (!conn->first) conn->last = &conn->first;
    if (send->on_sent == copy_sent) {
        struct os_copy *copy = send->owner;
        if (conn->copy == copy) conn->copy = NULL;
        conn->copy_bytes -= total;
        copies_count(conn, 0, copy->capacity);
        buffer_put(net, (uint8_t *)copy, copy->capacity);
        return;
    }
    list_add(rc ? &net->lost_last : &net->done_last, send);
}

void leat_os_conn_sends_fail(struct leat_conn *conn)
{
    while (conn->first)
        send_finish(conn, conn->first, send_total(conn->first), LEAT_E_CLOSED);
    conn->queued_bytes = 0;
}

static unsigned iovs_gather(const struct leat_conn *conn, struct iovec *iov, size_t *out_bytes)
{
    unsigned count = 0;
    for (const struct leat_send *send = conn->first; send; send = send->next) {
        size_t skip = send->sent_bytes;
        for (unsigned i = 0; i < send->iov_count; i++) {
            const struct leat_iov *piece = &send->iovs[i];
            if (skip >= piece->bytes) {
                skip -= piece->bytes;
                continue;
            }
            if (count == LEAT_NET_IOVS) return count;
            iov[count++] =
                (struct iovec){(char *)(uintptr_t)piece->base + skip, piece->bytes - skip};
            *out_bytes += piece->bytes - skip;
            skip = 0;
        }
    }
    return count;
}

static void sends_advance(struct leat_conn *conn, size_t n)
{
    conn->queued_bytes -= n;
    conn->taken_bytes += n;
    while (conn->first) {
        struct leat_send *send = conn->first;
        size_t total = send_total(send), left = total - send->sent_bytes;
        if (n < left) {
            send->sent_bytes += n;
            return;
        }
        n -= left;
        send->sent_bytes = total;
        send_finish(conn, send, total, LEAT_OK); /* also an empty send at the very end */
    }
    LEAT_ASSERT_CMP(n, ==, 0);
}

void leat_os_conn_flush(struct leat_conn *conn)
{
    struct iovec iov[LEAT_NET_IOVS];
    for (int i = 0; conn->first; i++) {
        if (i == LEAT_NET_WRITES_PER_TURN) {
            conn->blocked = true; /* the rest when epoll says so, after others had their turn */
            return;
        }
        size_t bytes = 0;
        struct msghdr message = {.msg_iov = iov};
        message.msg_iovlen = iovs_gather(conn, iov, &bytes);
        ssize_t n = bytes > 0 ? sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            leat_os_conn_fail(conn, LEAT_E_CLOSED);
            return;
        }
        if (n >= 0) sends_advance(conn, (size_t)n);
        if (n < 0 || (size_t)n < bytes) {
            conn->blocked = true;
            return;
        }
    }
}
