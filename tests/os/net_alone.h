/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of one actor alone: the socket's calls and libuv's stand here (--wrap), each is a line of the trace,
 * and the test says what each gives. What real sockets do is tried in os_net_test.c and port_net_suite.c. For one test
 * program only. */
#ifndef LEAT_TESTS_OS_NET_ALONE_H
#define LEAT_TESTS_OS_NET_ALONE_H

#include "base/mem.h"
#include "os/net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "tests/trace.h"

enum { FD = 5, SAYS_MAX = 16, CLOSED_MAX = 32, HERE = 1, THERE = 2 };

/* ---- what the system says ---- */

static struct os_actor here, there;
static struct leat_os_world world;
static uint64_t now_ms;
static int unread; /* what FIONREAD tells; below zero: it fails */
static long reads[SAYS_MAX], takes[SAYS_MAX];
static unsigned read_count, read_next, take_count, take_next;
static uint64_t read_at; /* of all bytes that have come, how many were read */
static int sent_to = FD; /* the socket whose writes are expected */
static char sent[256];   /* what the socket has taken, as text, while there is room for it */
static size_t sent_bytes;
static int poll_init_rc;
static uv_poll_cb poll_cb;
static uv_timer_cb timer_cbs[3];
static bool timer_active[3];
static struct {
    uv_handle_t *handle;
    uv_close_cb cb;
} closed[CLOSED_MAX];
static unsigned closed_count;
static struct leat_mail *mails[4];
static unsigned mail_count;
static unsigned timers_closed;
static int lists;  /* of addresses that were looked up, and not freed */
static bool quiet; /* reads and writes are no lines of the trace */

/* What the next read of the socket gives: this many bytes; 0: the other side has closed; negative: this errno. Reads
 * after it find nothing. */
static inline void come(long value)
{
    assert_true(read_count < SAYS_MAX);
    reads[read_count++] = value;
}

/* The socket takes so many bytes of the next write; below zero that errno. All, where nothing is said. */
static inline void take(long value)
{
    assert_true(take_count < SAYS_MAX);
    takes[take_count++] = value;
}

static inline uint8_t byte_at(uint64_t at)
{
    return (uint8_t)(at * 7 + (at >> 8));
}

static inline ssize_t bytes_read(const struct iovec *iov, int count)
{
    size_t room = 0, done = 0;
    for (int i = 0; i < count; i++)
        room += iov[i].iov_len;
    long value = read_next < read_count ? reads[read_next] : -EAGAIN;
    if (value < 0 || (size_t)value <= room)
        read_next += read_next < read_count;
    else
        reads[read_next] -= (long)room;
    if (!quiet) trace("read %zu", iov[0].iov_len);
    if (!quiet && count > 1) trace("+%zu", iov[1].iov_len);
    if (!quiet) trace(": %ld\n", value < 0 ? value : value < (long)room ? value : (long)room);
    if (value < 0) {
        errno = (int)-value;
        return -1;
    }
    for (int i = 0; i < count; i++)
        for (size_t at = 0; at < iov[i].iov_len && done < (size_t)value; at++, done++)
            ((uint8_t *)iov[i].iov_base)[at] = byte_at(read_at++);
    return (ssize_t)done;
}

ssize_t __wrap_recv(int fd, void *to, size_t most, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t most, int flags)
{
    assert_int_equal(fd, FD);
    assert_int_equal(flags, 0);
    struct iovec iov = {to, most};
    return bytes_read(&iov, 1);
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int count);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int count)
{
    assert_int_equal(fd, FD);
    return bytes_read(iov, count);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    assert_int_equal(fd, sent_to);
    assert_int_equal(flags, MSG_NOSIGNAL |
                                MSG_DONTWAIT); /* else a signal ends us, or a peer holds us up */
    size_t total = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        total += message->msg_iov[i].iov_len;
    long value = take_next < take_count ? takes[take_next++] : (long)total;
    if (value > (long)total) value = (long)total;
    if (!quiet) trace("write %zu in %zu: %ld\n", total, (size_t)message->msg_iovlen, value);
    if (value < 0) {
        errno = (int)-value;
        return -1;
    }
    size_t left = (size_t)value;
    for (size_t i = 0; i < message->msg_iovlen && left; i++) {
        size_t part = message->msg_iov[i].iov_len < left ? message->msg_iov[i].iov_len : left;
        size_t kept = part < sizeof sent - sent_bytes ? part : sizeof sent - sent_bytes;
        memcpy(sent + sent_bytes, message->msg_iov[i].iov_base, kept);
        sent_bytes += kept;
        left -= part;
    }
    return (ssize_t)value;
}

int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...)
{
    va_list args;
    va_start(args, what);
    int *out = va_arg(args, int *);
    va_end(args);
    assert_int_equal(fd, FD);
    assert_int_equal(what, FIONREAD);
    if (unread >= 0) *out = unread;
    return unread < 0 ? -1 : 0;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    errno = EIO; /* which nobody asks for */
    return -1;
}

/* ---- what libuv does ---- */

static inline int timer_of(const void *handle)
{
    const struct os_net *net = &here.net;
    if (handle == &net->accept_timer) return 0;
    if (handle == &net->stall_timer) return 1;
    return handle == &net->end_timer ? 2 : -1;
}

uint64_t __wrap_uv_now(const uv_loop_t *loop);
uint64_t __wrap_uv_now(const uv_loop_t *loop)
{
    assert_true(loop == &here.loop || loop == &there.loop);
    return now_ms;
}

int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *timer);
int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    (void)timer;
    assert_true(loop == &here.loop || loop == &there.loop);
    return 0;
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t again_ms);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t again_ms)
{
    static const char *const names[] = {"accept", "stall", "end"};
    int i = timer_of(timer);
    assert_true(i >= 0);
    assert_ptr_equal(timer->data, &here);
    trace("timer %s %llu", names[i], (unsigned long long)ms);
    trace(again_ms ? " again\n" : "\n");
    timer_cbs[i] = cb;
    timer_active[i] = true;
    return 0;
}

int __wrap_uv_is_active(const uv_handle_t *handle);
int __wrap_uv_is_active(const uv_handle_t *handle)
{
    assert_true(timer_of(handle) >= 0);
    return timer_active[timer_of(handle)];
}

int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    (void)poll;
    trace("watch %d%s\n", fd, loop == &there.loop ? " there" : "");
    return poll_init_rc;
}

int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb);
int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
    (void)poll;
    trace("poll%s%s%s\n", events & UV_READABLE ? " read" : "", events & UV_WRITABLE ? " write" : "",
          events & UV_DISCONNECT ? " end" : "");
    poll_cb = cb;
    return 0;
}

int __wrap_uv_poll_stop(uv_poll_t *poll);
int __wrap_uv_poll_stop(uv_poll_t *poll)
{
    (void)poll;
    trace("poll nothing\n");
    return 0;
}

void __wrap_uv_close(uv_handle_t *handle, uv_close_cb cb);
void __wrap_uv_close(uv_handle_t *handle, uv_close_cb cb)
{
    assert_true(closed_count < CLOSED_MAX);
    timers_closed += !cb;
    closed[closed_count].handle = handle;
    closed[closed_count++].cb = cb;
    trace(cb ? "unwatch\n" : "timer over\n");
}

/* Handles that were closed are libuv's until its loop has come round. */
static inline void round_end(void)
{
    for (unsigned i = 0; i < closed_count; i++)
        if (closed[i].cb) closed[i].cb(closed[i].handle);
    closed_count = 0;
}

static inline void expire(int timer)
{
    uv_timer_t *const timers[] = {&here.net.accept_timer, &here.net.stall_timer,
                                  &here.net.end_timer};
    assert_true(timer_active[timer]);
    timer_active[timer] = false;
    timer_cbs[timer](timers[timer]);
}

/* ---- the handler ---- */

static const struct leat_net *net;
static size_t consumes,
    wants; /* of the next bytes that are shown; SIZE_MAX is wanted: nothing is said */
static uint64_t shown_at; /* of all bytes, where the next ones shown begin */
static void (*amid)(struct leat_conn *conn);

static inline void alone_open(void *user, struct leat_conn *conn)
{
    (void)conn;
    trace("%s: open\n", (const char *)user);
}

static inline size_t alone_bytes(void *user, struct leat_conn *conn, const uint8_t *data,
                                 size_t bytes, size_t *want_bytes)
{
    trace("%s: shown %zu\n", (const char *)user, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != byte_at(shown_at + i)) fail_msg("byte %zu of %zu is another", i, bytes);
    size_t used = consumes < bytes ? consumes : bytes;
    shown_at += used;
    if (wants < SIZE_MAX) *want_bytes = wants;
    if (amid) amid(conn);
    return used;
}

static inline void alone_closed(void *user, struct leat_conn *conn, leat_err why)
{
    assert_int_equal(net->queued_bytes(conn), 0);
    trace("%s: closed, %s\n", (const char *)user, leat_err_name(why));
}

static const struct leat_conn_handler alone_handler = {alone_open, alone_bytes, alone_closed};

/* ---- the actor ---- */

static inline uint64_t alone_random(void *ctx)
{
    (void)ctx;
    return 4;
}

static inline void alone_post(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    trace("mail to %u\n", to);
    mails[mail_count++] = mail;
}

static inline void alone_begin(void)
{
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    memset(timer_active, 0, sizeof timer_active);
    for (int i = 0; i < 2; i++) {
        struct os_actor *actor = i ? &there : &here;
        actor->world = &world;
        actor->number = i ? THERE : HERE;
        actor->random.next = alone_random;
        actor->post.send = alone_post;
        world.actors[actor->number] = actor;
        assert_int_equal(leat_os_net_init(actor), LEAT_OK);
    }
    net = &here.net_port;
    now_ms = 1000;
    unread = 0;
    read_count = read_next = take_count = take_next = 0;
    read_at = shown_at = 0;
    sent_bytes = 0;
    poll_init_rc = 0;
    mail_count = 0;
    consumes = SIZE_MAX;
    wants = 0;
    amid = NULL;
    quiet = false;
}

static inline struct leat_conn *alone_conn(const char *name, uint8_t address)
{
    uint8_t key[LEAT_NET_KEY_BYTES] = {address};
    struct leat_conn *conn = leat_os_conn_create(&here, FD, key, LEAT_NET_CLIENTS);
    assert_non_null(conn);
    conn->state = OS_CONN_OPEN;
    conn->handler = &alone_handler;
    conn->user = (void *)(uintptr_t)name;
    size_t before = trace_used;
    assert_int_equal(leat_os_conn_watch(conn), LEAT_OK);
    trace_text[trace_used = before] = '\0';
    return conn;
}

static inline void event(struct leat_conn *conn, int status, int events)
{
    poll_cb(&conn->poll->uv, status, events);
}

static inline void readable(struct leat_conn *conn)
{
    event(conn, 0, UV_READABLE);
}

/* So many come, and nothing of what came before is shown again. */
static inline void bytes_come(struct leat_conn *conn, long bytes)
{
    come(bytes);
    shown_at = read_at;
    readable(conn);
}

static inline void deliver(void)
{
    trace(leat_os_net_deliver(&here) ? "called\n" : "nothing to call\n");
}

static inline void kept_look(const struct leat_conn *conn)
{
    trace("kept %zu at %zu of %zu, wants %zu\n", conn->kept_bytes, conn->kept_at,
          conn->kept_capacity, conn->want_bytes);
}

static inline void queue_look(const struct leat_conn *conn)
{
    trace("queued %zu, taken %llu, copies %zu in %zu of %zu\n", net->queued_bytes(conn),
          (unsigned long long)net->taken_bytes(conn), conn->copy_bytes, net->copied_bytes(conn),
          net->copied_bytes_all(&here));
}

static inline void alone_end(void)
{
    size_t before = trace_used;
    here.net.buffers.ready_bytes_max = there.net.buffers.ready_bytes_max = 0;
    for (int i = 0; i < 2; i++) {
        struct os_actor *actor = i ? &there : &here;
        leat_os_net_fini(actor);
        leat_os_buffers_fini(&actor->net.buffers);
        leat_mem_free(actor->net.read_buffer);
    }
    round_end();
    assert_int_equal(timers_closed, 6);
    timers_closed = 0;
    assert_int_equal(lists, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    trace_text[trace_used = before] = '\0';
}

#endif
