/* SPDX-License-Identifier: Apache-2.0 */
/* Listening and connecting alone: the calls that open a socket and name its peer stand here (--wrap), too. For one test
 * program only. */
#ifndef LEAT_TESTS_OS_NET_OPEN_ALONE_H
#define LEAT_TESTS_OS_NET_OPEN_ALONE_H

#include "tests/os/net_alone.h"

#include "base/node_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum call {
    SOCKET,
    BIND,
    LISTEN,
    ACCEPT,
    CONNECT,
    GET,
    NAME,
    STAT,
    REMOVE,
    MODE,
    LOOKUP,
    SET,
    CALLS
};
static struct {
    long says[80];
    unsigned count, next;
} script[CALLS];
static struct sockaddr_storage from, bound; /* whom accept() names; what getsockname() says */
static struct ucred peer_who;
static int socket_error; /* SO_ERROR */
static struct stat found;
static struct leat_os_files files;
static uv_getaddrinfo_t *looked_up;
static uv_getaddrinfo_cb looked_up_cb;

/* The next call of that kind gives this; below zero that errno. */
static inline void say(enum call call, long value)
{
    assert_true(script[call].count < 80);
    script[call].says[script[call].count++] = value;
}

static inline int said(enum call call, long usual)
{
    long value =
        script[call].next < script[call].count ? script[call].says[script[call].next++] : usual;
    if (value >= 0) return (int)value;
    errno = (int)-value;
    return -1;
}

static inline void address_trace(const struct sockaddr *address)
{
    char text[64] = "?";
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
    if (address->sa_family == AF_INET) inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    if (address->sa_family == AF_INET6) inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
    if (address->sa_family == AF_UNIX)
        trace(" %s", ((const struct sockaddr_un *)(const void *)address)->sun_path);
    else
        trace(" %s %u", text, ntohs(in->sin_port));
}

int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    assert_int_equal(type, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_int_equal(protocol, 0);
    int fd = said(SOCKET, FD);
    trace("socket %s: %d\n",
          family == AF_INET    ? "v4"
          : family == AF_INET6 ? "v6"
          : family == AF_UNIX  ? "unix"
                               : "?",
          fd);
    return fd;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)bytes;
    trace("bind %d", fd);
    address_trace(address);
    trace("\n");
    return said(BIND, 0);
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    assert_int_equal(backlog, LEAT_NET_BACKLOG);
    trace("listen %d\n", fd);
    return said(LISTEN, 0);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    assert_int_equal(fd, FD);
    assert_int_equal(flags, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_int_equal(*bytes, sizeof from);
    memcpy(address, &from, sizeof from);
    *bytes = from.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    return said(ACCEPT, -EAGAIN);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)bytes;
    trace("connect %d", fd);
    address_trace(address);
    trace("\n");
    return said(CONNECT, 0);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    (void)fd;
    assert_int_equal(level, SOL_SOCKET);
    if (option == SO_ERROR) memcpy(value, &socket_error, *bytes);
    if (option == SO_PEERCRED) memcpy(value, &peer_who, *bytes);
    return said(GET, 0);
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
    const char *name = level == SOL_SOCKET && option == SO_REUSEADDR   ? "reuse"
                       : level == SOL_SOCKET && option == SO_KEEPALIVE ? "alive"
                       : level != IPPROTO_TCP                          ? "?"
                       : option == TCP_NODELAY                         ? "nodelay"
                       : option == TCP_KEEPIDLE                        ? "idle"
                       : option == TCP_KEEPINTVL                       ? "pause"
                       : option == TCP_KEEPCNT                         ? "probes"
                                                                       : "congestion";
    if (level == IPPROTO_TCP && option == TCP_CONGESTION)
        trace("%d is %.*s\n", fd, (int)bytes, (const char *)value);
    else
        trace("%d has %s %d\n", fd, name, *(const int *)value);
    /* All of them, as they should be, are a line. */
    char usual[160];
    int length = snprintf(usual, sizeof usual,
                          "%d has nodelay 1\n%d has idle 60\n%d has pause 10\n%d has probes 6\n"
                          "%d has alive 1\n",
                          fd, fd, fd, fd, fd);
    size_t at = trace_used - (size_t)length;
    if (trace_used >= (size_t)length && strcmp(trace_text + at, usual) == 0) {
        trace_text[trace_used = at] = '\0';
        trace("%d is tuned\n", fd);
    }
    return said(SET, 0);
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *bytes);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *bytes)
{
    (void)fd;
    assert_int_equal(*bytes, sizeof bound);
    memcpy(address, &bound, sizeof bound);
    *bytes = bound.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    return said(NAME, 0);
}

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    struct addrinfo numeric = *hints;
    trace("look up %.40s %s%s%s\n", host ? host : "any", port,
          hints->ai_flags & AI_PASSIVE ? " passive" : "",
          hints->ai_flags & AI_NUMERICHOST ? " numeric" : "");
    numeric.ai_flags |= AI_NUMERICHOST;
    long rc = script[LOOKUP].next < script[LOOKUP].count
                  ? script[LOOKUP].says[script[LOOKUP].next++]
                  : __real_getaddrinfo(host, port, &numeric, out);
    lists += !rc;
    if (rc) *out = (struct addrinfo *)(uintptr_t)1; /* no manual says that *out stays then */
    return (int)rc;
}

void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list)
{
    lists--;
    __real_freeaddrinfo(list);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *uv, uv_getaddrinfo_cb cb,
                          const char *host, const char *port, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *uv, uv_getaddrinfo_cb cb,
                          const char *host, const char *port, const struct addrinfo *hints)
{
    assert_ptr_equal(loop, &here.loop);
    assert_int_equal(hints->ai_flags, AI_ADDRCONFIG);
    assert_int_equal(hints->ai_socktype, SOCK_STREAM);
    trace("ask for %s %s\n", host, port);
    looked_up = uv;
    looked_up_cb = cb;
    return said(LOOKUP, 0);
}

int __wrap_uv_cancel(uv_req_t *req);
int __wrap_uv_cancel(uv_req_t *req)
{
    assert_ptr_equal(req, looked_up);
    trace("ask no more\n");
    return 0;
}

void __wrap_uv_freeaddrinfo(struct addrinfo *list);
void __wrap_uv_freeaddrinfo(struct addrinfo *list)
{
    trace(list ? "answer freed\n" : "?\n");
}

int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags);
int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags)
{
    assert_int_equal(flags, AT_SYMLINK_NOFOLLOW);
    trace("stat %d %s\n", dir, name);
    *st = found;
    return said(STAT, 0);
}

int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
    trace("remove %d %s %d\n", dir, name, flags);
    return said(REMOVE, 0);
}

int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
    trace("mode %d %#o\n", fd, (unsigned)mode);
    return said(MODE, 0);
}

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return 1000;
}

void __wrap_leat_os_files(struct leat_os_files *out);
void __wrap_leat_os_files(struct leat_os_files *out)
{
    *out = files;
}

static inline void node_log_line(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx, (void)level;
    trace("node log: %s\n", line);
}

static inline struct sockaddr_storage address_of(const char *text, uint16_t port)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&out;
    if (strchr(text, ':')) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    } else {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
    }
    return out;
}

static inline void open_begin(void)
{
    alone_begin();
    memset(script, 0, sizeof script);
    from = address_of("192.0.2.7", 4000);
    bound = address_of("192.0.2.1", 7700);
    peer_who = (struct ucred){.pid = 77, .uid = 1000};
    socket_error = 0;
    found = (struct stat){.st_mode = S_IFSOCK};
    files = (struct leat_os_files){.clients = 100, .kept = 16};
    world.data_fd = 9;
    leat_node_log_set(node_log_line, NULL, LEAT_NODE_LOG_INFO);
}

/* ---- a listener ---- */

static struct leat_conn *accepted;
static bool refuses;

static inline void *on_accept(void *acceptor, struct leat_conn *conn,
                              const struct leat_conn_handler **out_handler)
{
    static const char *const origins[] = {"network", "machine", "owner"};
    const uint8_t *key = net->key(conn);
    trace("%s: %s from %s, key ", (const char *)acceptor, net->peer(conn),
          origins[net->origin(conn)]);
    for (unsigned i = 0; i < LEAT_NET_KEY_BYTES; i++)
        trace("%02x", key[i]);
    trace("\n");
    accepted = conn;
    *out_handler = &alone_handler;
    if (refuses) assert_int_equal(net->send_copy(conn, "no", 2), LEAT_OK); /* its last words */
    return refuses ? NULL : acceptor;
}

static char acceptor_name[] = "door";

static uv_poll_cb door_cb;

static inline leat_err listen_at(const char *address)
{
    char out[128] = "-";
    struct leat_error error = {.text = "-"};
    leat_err rc = net->listen(net->ctx, address, on_accept, acceptor_name, out, &error);
    if (rc == LEAT_OK) door_cb = poll_cb;
    trace("%s: %s, %s\n", leat_err_name(rc), out, rc ? error.text : "-");
    return rc;
}

static inline struct os_listener *listener(void)
{
    return LEAT_CONTAINER(here.net.listeners.prev, struct os_listener, link);
}

static inline void doorbell(int status)
{
    door_cb(&listener()->uv, status, UV_READABLE);
}

#endif
