/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, listening and connecting. */
#include "os/net.h"

#include "base/address.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An empty host is any. */
static bool address_split(const char *address, char host[LEAT_NET_HOST_BYTES], char port[8])
{
    struct leat_address_parts parts;
    if (!leat_address_split(address, strlen(address), &parts) ||
        parts.host_bytes >= LEAT_NET_HOST_BYTES)
        return false;
    memcpy(host, parts.host, parts.host_bytes);
    host[parts.host_bytes] = 0;
    snprintf(port, 8, "%u", parts.port);
    return true;
}

static void address_text(const struct sockaddr *address, socklen_t bytes, char *out, size_t size)
{
    char host[48], port[8]; /* numeric forms only */
    if (getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV)) {
        snprintf(out, size, "unknown");
        return;
    }
    bool v6 = address->sa_family == AF_INET6;
    snprintf(out, size, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

static void peer_set(struct leat_conn *conn, const struct sockaddr *address, socklen_t bytes)
{
    address_text(address, bytes, conn->peer, sizeof conn->peer);
}

/* The address for limits: for IPv6 a /56, since one subscriber has all addresses of such a network. */
static void address_key(const struct sockaddr *address, uint8_t out_key[LEAT_NET_KEY_BYTES])
{
    enum { NETWORK_BYTES = 7, IPV4_AT = 8 };
    memset(out_key, 0, LEAT_NET_KEY_BYTES);
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        memcpy(out_key + IPV4_AT, &in.sin_addr, sizeof in.sin_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
            memcpy(out_key + IPV4_AT, in6.sin6_addr.s6_addr + 12, 4);
        else
            memcpy(out_key, &in6.sin6_addr, NETWORK_BYTES);
    }
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family != AF_INET6) return false;
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof in6);
    return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) && in6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

/* An address of this machine reaches a socket of it from nowhere else: the kernel drops what comes by
 * another interface and claims to be from here. */
static bool is_own(int fd, const struct sockaddr *peer)
{
    struct sockaddr_storage here = {0};
    socklen_t bytes = sizeof here;
    if (is_loopback(peer)) return true;
    if (getsockname(fd, (struct sockaddr *)&here, &bytes) != 0 || here.ss_family != peer->sa_family)
        return false;
    if (peer->sa_family == AF_INET) {
        struct sockaddr_in from, to;
        memcpy(&from, peer, sizeof from);
        memcpy(&to, &here, sizeof to);
        return from.sin_addr.s_addr == to.sin_addr.s_addr;
    }
    if (peer->sa_family != AF_INET6) return false;
    struct sockaddr_in6 from, to;
    memcpy(&from, peer, sizeof from);
    memcpy(&to, &here, sizeof to);
    return memcmp(&from.sin6_addr, &to.sin6_addr, sizeof from.sin6_addr) == 0;
}

/* Within a machine there is no network to be fair to. A congestion control that paces (BBR, the default of many
 * systems) sends by timers there: measured, 1.6 GB/s with idle CPUs where Reno moved 2.3 to 6.2. Only a socket that
 * was never on BBR is free of pacing, so the setting must be made on the listener, and its connections inherit it. */
static void loopback_tune(int fd, const struct sockaddr *peer)
{
    static const char reno[] = "reno"; /* in every kernel, and allowed to everyone */
    if (is_loopback(peer)) (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof reno - 1);
}

/* A machine that lost its power closes nothing. Its idle connections would keep their places until this process ends:
 * nobody writes to them, so no write fails. So the kernel probes silent connections (keepalive).
 * SUBTLE: not TCP_USER_TIMEOUT. This option limits a closed window, too: a slow reader would be cut off though its
 * machine answers each probe of the window. For unacknowledged bytes the limit on retransmissions ends the
 * connection. */
static void silence_tune(int fd)
{
    static const int on = 1, idle_s = LEAT_NET_ALIVE_IDLE_S, pause_s = LEAT_NET_ALIVE_PAUSE_S,
                     probes = LEAT_NET_ALIVE_PROBES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* For a listening socket: accepted connections inherit all options, so that a connection costs few calls. */
static void socket_tune(int fd, const struct sockaddr *peer)
{
    /* A turn's writes go out together already; Nagle would only hold back their last packet. */
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    silence_tune(fd);
    loopback_tune(fd, peer);
}

/* ---- listening ---- */

/* Cores listen for clients, the coordinator for nodes. */
static bool is_of_nodes(const struct os_listener *listener)
{
    return listener->actor->kind == LEAT_OS_ACTOR_DISK;
}

/* SUBTLE: the last descriptors are not for clients. Otherwise (1) idle clients take all descriptors; (2) a log rolls,
 * and the store can't open the file for the next segment; (3) the earlier clients are not served any more either. A
 * new descriptor is the lowest free number, so this number shows how many are taken.
 * Other nodes may take half of the last descriptors, and connections to the Unix socket three quarters: otherwise
 * clients that fill their ports would keep out the operator, and the nodes, which would be declared crashed.
 * Strangers on the node port are few (link/strangers.c), and only the account of this process and root may use the
 * socket. */
static bool is_of_the_last(const struct os_listener *listener, int fd, uint64_t *out_most)
{
    struct leat_os_files files;
    leat_os_files(&files);
    uint64_t more = 0;
    if (listener->unix_address[0])
        more = files.kept - files.kept / 4;
    else if (is_of_nodes(listener))
        more = files.kept / 2;
    *out_most = files.clients + files.kept;
    return (uint64_t)fd >= files.clients + more;
}

static bool may_tell(struct os_listener *listener)
{
    uint64_t now_ms = uv_now(&listener->actor->loop) + 1;
    if (listener->told_ms && now_ms < listener->told_ms + LEAT_NET_TELL_MS) return false;
    listener->told_ms = now_ms;
    return true;
}

/* Sets the peer's address and origin, and the options of the socket. False: the connection is refused. */
static bool conn_admit(struct os_listener *listener, struct leat_conn *conn, int fd,
                       const struct sockaddr *from, socklen_t from_bytes)
{
    if (!listener->unix_address[0]) {
        if (!listener->loopback) loopback_tune(fd, from);
        peer_set(conn, from, from_bytes);
        conn->origin = is_own(fd, from) ? LEAT_ORIGIN_MACHINE : LEAT_ORIGIN_NETWORK;
        return true;
    }
    if (leat_os_unix_admit(conn, fd)) return true;
    if (may_tell(listener))
        leat_node_log_warn(
            "refused at %s: %s; only the account of this process and root may use it; "
            "said once a minute at most",
            listener->unix_address, conn->peer);
    return false;
}

/* Returns false when accept() must pause. */
static bool accept_one(struct os_listener *listener, bool *out_again)
{
    struct sockaddr_storage from;
    socklen_t from_bytes = sizeof from;
    *out_again = false;
    int fd =
        accept4(listener->fd, (struct sockaddr *)&from, &from_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
        *out_again = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
        return *out_again; /* other errors concern a single connection that is gone already */
    }
    *out_again = true;
    uint64_t most;
    if (is_of_the_last(listener, fd, &most)) {
        (void)close(fd);
        if (may_tell(listener))
            leat_node_log_warn("connections are refused: this process may have %" PRIu64
                               " files open "
                               "(ulimit -n, LimitNOFILE=), and the last of them are for its own; "
                               "said once a minute at most",
                               most);
        return true;
    }
    uint8_t key[LEAT_NET_KEY_BYTES];
    address_key((struct sockaddr *)&from, key);
    struct leat_conn *conn = leat_os_conn_create(listener->actor, fd, key, LEAT_NET_CLIENTS);
    if (!conn) {
        (void)close(fd);
        return false;
    }
    if (!conn_admit(listener, conn, fd, (struct sockaddr *)&from, from_bytes)) {
        leat_os_conn_free(conn);
        return true;
    }
    conn->state = OS_CONN_OPEN;
    const struct leat_conn_handler *handler = NULL;
    listener->actor->called = true;
    conn->user = listener->on_accept(listener->acceptor, conn, &handler);
    if (!conn->user) {
        leat_os_conn_sends_fail(conn);
        leat_os_conn_free(conn);
        return true;
    }
    conn->handler = handler;
    leat_err rc = leat_os_conn_watch(conn);
    if (rc) leat_os_conn_fail(conn, rc);
    return true;
}

static void on_listener(uv_poll_t *uv, int status, int events)
{
    struct os_listener *listener = uv->data;
    bool again = true;
    int most = is_of_nodes(listener) ? LEAT_NET_NODE_ACCEPTS_PER_EVENT : LEAT_NET_ACCEPTS_PER_EVENT;
    for (int i = 0; again && i < most; i++) {
        if (accept_one(listener, &again)) continue;
        /* The connection stays in the backlog, so epoll would report it at once and for ever. */
        int cause = errno;
        if (may_tell(listener))
            leat_node_log_warn("can't accept connections: %s; tried again every %d ms, said once a "
                               "minute at most",
                               strerror(cause), LEAT_NET_ACCEPT_PAUSE_MS);
        (void)uv_poll_stop(uv);
        (void)uv_timer_start(&listener->actor->net.accept_timer, leat_os_accept_again,
                             LEAT_NET_ACCEPT_PAUSE_MS, 0);
        return;
    }
    if (status < 0) (void)uv_poll_start(uv, UV_READABLE, on_listener);
}

void leat_os_accept_again(uv_timer_t *timer)
{
    struct os_actor *actor = timer->data;
    LEAT_LIST_EACH(&actor->net.listeners, link)
    {
        struct os_listener *listener = LEAT_CONTAINER(link, struct os_listener, link);
        (void)uv_poll_start(&listener->uv, UV_READABLE, on_listener);
    }
}

static void listener_freed(uv_handle_t *handle)
{
    leat_mem_free(handle->data);
}

void leat_os_listener_close(struct os_listener *listener)
{
    leat_list_remove(&listener->link);
    (void)uv_poll_stop(&listener->uv);
    (void)close(listener->fd);
    if (listener->unix_address[0]) leat_os_unix_forget(listener->actor, listener->unix_address);
    uv_close((uv_handle_t *)&listener->uv, listener_freed);
}

static int socket_listen(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socket_tune(fd, at->ai_addr);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, LEAT_NET_BACKLOG) == 0) return fd;
    int cause = errno;
    (void)close(fd);
    errno = cause;
    return -1;
}

static leat_err listen_open(const char *address, int *out_fd, struct leat_error *error)
{
    char host[LEAT_NET_HOST_BYTES], port[8];
    if (!address_split(address, host, port))
        return leat_error_set(error, LEAT_E_INVALID, "%.100s is not an address (HOST:PORT)",
                              address);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int failed = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
    if (failed)
        return leat_error_set(error, LEAT_E_CONFIG, "can't find the address %.100s: %s", address,
                              gai_strerror(failed));
    int fd = -1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = socket_listen(at);
    int cause = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return leat_error_set(error, cause == EADDRINUSE ? LEAT_E_EXISTS : LEAT_E_CONFIG,
                              "can't listen on %.100s: %s", address, strerror(cause));
    *out_fd = fd;
    return LEAT_OK;
}

leat_err leat_os_address_try(const char *address, struct leat_error *error)
{
    int fd;
    leat_err rc = listen_open(address, &fd, error);
    if (rc == LEAT_OK) (void)close(fd);
    return rc;
}

leat_err leat_os_net_listen(void *ctx, const char *address, leat_accept_fn on_accept,
                            void *acceptor, char out_address[128], struct leat_error *error)
{
    struct os_actor *actor = ctx;
    int fd = -1;
    bool local = leat_os_unix_path(address) != NULL;
    leat_err rc =
        local ? leat_os_unix_listen(actor, address, &fd, error) : listen_open(address, &fd, error);
    if (rc) return rc;
    struct os_listener *listener = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *listener);
    if (!listener || uv_poll_init(&actor->loop, &listener->uv, fd)) {
        leat_mem_free(listener);
        (void)close(fd);
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to listen on %.100s", address);
    }
    listener->uv.data = listener;
    listener->fd = fd;
    listener->actor = actor;
    listener->on_accept = on_accept;
    listener->acceptor = acceptor;
    if (local) snprintf(listener->unix_address, sizeof listener->unix_address, "%s", address);
    leat_list_push_back(&actor->net.listeners, &listener->link);
    (void)uv_poll_start(&listener->uv, UV_READABLE, on_listener);
    struct sockaddr_storage bound;
    socklen_t bound_bytes = sizeof bound;
    if (!local && getsockname(fd, (struct sockaddr *)&bound, &bound_bytes) == 0)
        listener->loopback = is_loopback((struct sockaddr *)&bound);
    if (out_address && local) {
        snprintf(out_address, 128, "%s", address);
    } else if (out_address) {
        address_text((struct sockaddr *)&bound, bound_bytes, out_address, 128);
    }
    return LEAT_OK;
}

/* ---- connecting ---- */

void leat_os_conn_lookup_drop(struct leat_conn *conn)
{
    if (conn->lookup) {
        conn->lookup->conn = NULL;
        (void)uv_cancel((uv_req_t *)&conn->lookup->uv); /* its callback frees it either way */
        conn->lookup = NULL;
    }
    if (conn->addresses) {
        if (conn->addresses_by_uv)
            uv_freeaddrinfo(conn->addresses);
        else
            freeaddrinfo(conn->addresses);
    }
    conn->addresses = conn->address = NULL;
}

/* SUBTLE: a caller may conclude from a refusal that no process listens there, and that a node is dead
 * (coordinator/membership/detect.c). So LEAT_E_CLOSED is for a refusal alone: not for a lack of descriptors or memory
 * here, an unknown host name, or an unreachable host. */
static void refusal_note(struct leat_conn *conn, int cause)
{
    bool lacks = cause == EMFILE || cause == ENFILE || cause == ENOBUFS || cause == ENOMEM ||
                 cause == EADDRNOTAVAIL || cause == EAGAIN;
    if (cause == ECONNREFUSED)
        conn->refusal = LEAT_E_CLOSED;
    else if (conn->refusal != LEAT_E_CLOSED)
        conn->refusal = lacks ? LEAT_E_NO_MEMORY : LEAT_E_UNREACHABLE;
}

/* Begin with the next address that lets itself be tried. */
static void connect_next(struct leat_conn *conn)
{
    while (conn->address) {
        const struct addrinfo *at = conn->address;
        conn->address = at->ai_next;
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            refusal_note(conn, errno);
            continue;
        }
        socket_tune(fd, at->ai_addr);
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS) {
            conn->fd = fd;
            peer_set(conn, at->ai_addr, at->ai_addrlen);
            if (leat_os_conn_watch(conn) == LEAT_OK) return;
            conn->fd = -1;
            errno = ENOMEM;
        }
        refusal_note(conn, errno);
        (void)close(fd);
    }
    leat_os_conn_lookup_drop(conn);
    leat_os_conn_fail(conn, conn->refusal ? conn->refusal : LEAT_E_UNREACHABLE);
}

void leat_os_conn_connected(struct leat_conn *conn)
{
    int cause = 0;
    socklen_t bytes = sizeof cause;
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &cause, &bytes)) cause = errno;
    if (cause) {
        refusal_note(conn, cause);
        leat_os_conn_unwatch(conn);
        (void)close(conn->fd);
        conn->fd = -1;
        connect_next(conn);
        return;
    }
    leat_os_conn_lookup_drop(conn);
    conn->state = OS_CONN_OPEN;
    conn->actor->called = true;
    if (conn->first && leat_list_empty(&conn->dirty))
        leat_list_push_back(&conn->actor->net.dirty, &conn->dirty);
    struct os_poll *poll = conn->poll; /* tells, unlike conn, whether on_open moved it away */
    if (conn->handler->on_open) conn->handler->on_open(conn->user, conn);
    if (poll->conn) leat_os_conn_events(conn);
}

static void on_lookup(uv_getaddrinfo_t *uv, int status, struct addrinfo *found)
{
    struct os_lookup *lookup = uv->data;
    struct leat_conn *conn = lookup->conn;
    leat_mem_free(lookup);
    if (!conn) {
        if (status == 0) uv_freeaddrinfo(found);
        return;
    }
    conn->lookup = NULL;
    if (conn->state == OS_CONN_CLOSING) {
        if (status == 0) uv_freeaddrinfo(found);
        return;
    }
    if (status == 0) {
        conn->addresses = conn->address = found;
        conn->addresses_by_uv = true;
    }
    connect_next(conn);
}

static leat_err local_connect(struct leat_conn *conn, const char *path)
{
    conn->fd = leat_os_unix_connect(path);
    if (conn->fd >= 0)
        return leat_os_conn_watch(conn); /* it is connected: told in a later callback */
    int cause = errno;
    refusal_note(conn, cause);
    if (cause == EACCES || cause == EPERM) conn->refusal = LEAT_E_DENIED;
    leat_os_conn_fail(conn, conn->refusal);
    return LEAT_OK;
}

static leat_err lookup_start(struct leat_conn *conn, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    if (getaddrinfo(host, port, &hints, &conn->addresses) == 0) {
        conn->address = conn->addresses; /* a numeric address: no look-up */
        connect_next(conn);
        return LEAT_OK;
    }
    conn->addresses = NULL;
    struct os_lookup *lookup = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *lookup);
    if (!lookup) return LEAT_E_NO_MEMORY;
    lookup->uv.data = lookup;
    lookup->conn = conn;
    hints.ai_flags = AI_ADDRCONFIG;
    if (uv_getaddrinfo(&conn->actor->loop, &lookup->uv, on_lookup, host, port, &hints)) {
        leat_mem_free(lookup);
        return LEAT_E_NO_MEMORY;
    }
    conn->lookup = lookup;
    return LEAT_OK;
}

leat_err leat_os_net_connect(void *ctx, const char *address,
                             const struct leat_conn_handler *handler, void *user,
                             struct leat_conn **out_conn)
{
    struct os_actor *actor = ctx;
    char host[LEAT_NET_HOST_BYTES], port[8];
    LEAT_ASSERT(handler != NULL);
    if (actor->stopping) return LEAT_E_CANCELLED;
    const char *path = leat_os_unix_path(address);
    if (!path && (!address_split(address, host, port) || !host[0])) return LEAT_E_INVALID;
    static const uint8_t no_key[LEAT_NET_KEY_BYTES];
    struct leat_conn *conn = leat_os_conn_create(actor, -1, no_key, LEAT_NET_NODES);
    if (!conn) return LEAT_E_NO_MEMORY;
    conn->handler = handler;
    conn->user = user;
    snprintf(conn->peer, sizeof conn->peer, "%.63s", address);
    leat_err rc = path ? local_connect(conn, path) : lookup_start(conn, host, port);
    if (rc) {
        leat_os_conn_free(conn);
        return rc;
    }
    *out_conn = conn;
    return LEAT_OK;
}
