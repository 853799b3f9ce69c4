/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: shared by net.c (life), net_open.c (listen, connect) and net_bytes.c (bytes). */
#ifndef LEAT_OS_NET_H
#define LEAT_OS_NET_H

#include "os/internal.h"

#include <netdb.h>

enum {
    /* From 128 KiB to 1 MiB no size stands out over loopback (tests/os/net_bench: 3.6 to 5.1 GB/s): larger leaves the
     * second-level cache, smaller leaves more cut frames to keep. The kernel's own receive queue stays: one capped at
     * 256 KiB (SO_RCVBUF) took a plain receiver from 0.14 to 0.33 s of CPU per GB. */
    LEAT_NET_READ_BYTES = 256 * 1024,
    /* Room before the read buffer: up to so many kept bytes are copied before new bytes, instead of new bytes after
     * kept bytes. */
    LEAT_NET_FRONT_BYTES = 16 * 1024,
    LEAT_NET_READS_PER_EVENT = 4, /* then others get their turn */
    LEAT_NET_WRITES_PER_TURN = 4,
    LEAT_NET_IOVS = 1024, /* the kernel's limit for one call */
    LEAT_NET_ACCEPTS_PER_EVENT = 64,
    /* Of the node port: strangers that are closed to make room keep their descriptors until the end of the turn; and
     * links that are up get their turn after so many handshakes. */
    LEAT_NET_NODE_ACCEPTS_PER_EVENT = 8,
    LEAT_NET_ACCEPT_PAUSE_MS = 100,
    /* An eighth of the descriptors of the process, and this at most, is for its own use: files of 4 TiB of segments,
     * files of the coordinator, and connections that the process opens itself. */
    LEAT_NET_FILES_KEPT_MAX = 4096 + 512,
    LEAT_NET_TELL_MS = 60 * 1000, /* refused connections go to the node log at most so often */
    LEAT_NET_BACKLOG = 1024,
    /* A machine that vanished (power, cable) is noticed after 60 s + 6 * 10 s of silence. */
    LEAT_NET_ALIVE_IDLE_S = 60,
    LEAT_NET_ALIVE_PAUSE_S = 10,
    LEAT_NET_ALIVE_PROBES = 6,
    /* Room for a cut frame is so many times what has come of it, at most, before it is rounded up to a power of two.
     * Fewer would be copied more often: a frame of 1 MiB whose first read brings an eighth of it is not copied. */
    LEAT_NET_KEPT_GROWTH = 8,
    /* A connection that is paused or waits for room, and whose peer has closed, has so long until its unread bytes are
     * dropped. */
    LEAT_NET_END_MS = 1000,
    LEAT_NET_END_LOOK_MS = 250,
    LEAT_NET_COPY_CHUNK_BYTES = 16 * 1024,
    LEAT_NET_HOST_BYTES = 256,
    LEAT_NET_PEER_BYTES = 64,
};

/* libuv's handle dies later than the connection, or the connection is on another loop by then. */
struct os_poll {
    uv_poll_t uv;
    struct leat_conn *conn; /* NULL: abandoned */
};

/* A name look-up under way; outlives a connection that is closed meanwhile. */
struct os_lookup {
    uv_getaddrinfo_t uv;
    struct leat_conn *conn;
};

enum os_conn_state {
    OS_CONN_CONNECTING, /* looking up, or waiting for the handshake */
    OS_CONN_OPEN,
    OS_CONN_CLOSING, /* on_closed will run */
};

struct leat_conn {
    struct os_actor *actor;
    struct os_poll *poll;
    int fd, events; /* events: what `poll` is started for */
    enum os_conn_state state;
    leat_err why;
    bool paused, present, in_bytes, blocked; /* blocked: the socket takes no more for now */
    const struct leat_conn_handler *handler;
    void *user;
    struct leat_list all, ready, dirty;
    struct leat_list ended; /* the other side has closed, which was not at its bytes' turn */
    uint64_t ended_ms;      /* seen then */
    struct leat_intake_member intake;

    /* Unconsumed bytes: kept[kept_at .. kept_at + kept_bytes). No buffer when there are none. */
    uint8_t *kept;
    size_t kept_at, kept_bytes, kept_capacity, want_bytes;

    struct leat_send *first, **last;
    struct os_copy *copy; /* newest copied piece, if it is the last in the queue */
    size_t queued_bytes, copy_bytes, copy_capacity; /* capacity: of the buffers of copies */
    uint64_t taken_bytes;                           /* by the socket, since it is open */

    struct os_lookup *lookup;
    struct addrinfo *addresses, *address; /* all; the next to try */
    leat_err refusal; /* CLOSED once an address has refused; else the error of the last address */
    bool addresses_by_uv;

    struct leat_mail move_mail;
    void *(*on_moved)(void *, struct leat_conn *, void *, const struct leat_conn_handler **);
    void *baggage;
    bool moving;
    leat_err move_failed; /* the reason for the end, on the core where it arrives */
    unsigned move_to;
    char peer[LEAT_NET_PEER_BYTES];
    enum leat_origin origin;
    uint8_t key[LEAT_NET_KEY_BYTES]; /* of its address */
};

struct os_listener {
    struct leat_list link;
    uv_poll_t uv;
    int fd;
    leat_accept_fn on_accept;
    void *acceptor;
    struct os_actor *actor;
    uint64_t told_ms; /* 0: never */
    bool loopback;    /* tuned for loopback, as are accepted sockets */
    char unix_address
        [LEAT_NET_PEER_BYTES]; /* of a Unix socket, which is removed with it; "": none */
};

/* net.c */
struct leat_conn *leat_os_conn_create(struct os_actor *actor, int fd,
                                      const uint8_t key[LEAT_NET_KEY_BYTES],
                                      enum leat_net_account account);
void leat_os_conn_free(struct leat_conn *conn); /* never delivered anything */
leat_err leat_os_conn_watch(struct leat_conn *conn);
void leat_os_conn_unwatch(struct leat_conn *conn);
void leat_os_conn_events(struct leat_conn *conn); /* make epoll want what the state wants */
/** May the connection replace its kept buffer by a buffer of this capacity? false: the connection waits. */
bool leat_os_conn_has_room(struct leat_conn *conn, size_t capacity);
void leat_os_conn_fail(struct leat_conn *conn, leat_err why);
void leat_os_conn_ready(struct leat_conn *conn);
void leat_os_conn_hand_over(struct leat_conn *conn);

/* net_open.c */
leat_err leat_os_net_listen(void *ctx, const char *address, leat_accept_fn on_accept,
                            void *acceptor, char out_address[128], struct leat_error *error);
leat_err leat_os_net_connect(void *ctx, const char *address,
                             const struct leat_conn_handler *handler, void *user,
                             struct leat_conn **out_conn);
void leat_os_conn_connected(struct leat_conn *conn); /* the handshake ended somehow */
void leat_os_conn_lookup_drop(struct leat_conn *conn);
void leat_os_listener_close(struct os_listener *listener);
void leat_os_accept_again(uv_timer_t *timer);

/* net_unix.c */
const char *leat_os_unix_path(const char *address); /* after "unix:"; NULL: not a Unix address */
leat_err leat_os_unix_listen(struct os_actor *actor, const char *address, int *out_fd,
                             struct leat_error *error);
void leat_os_unix_forget(struct os_actor *actor, const char *address);
bool leat_os_unix_admit(struct leat_conn *conn, int fd); /* names it, too */
int leat_os_unix_connect(const char *path);              /* -1: errno says why */

/* net_bytes.c */
void leat_os_conn_read(struct leat_conn *conn);
bool leat_os_conn_present_kept(struct leat_conn *conn);
void leat_os_conn_kept_drop(struct leat_conn *conn);
void leat_os_conn_flush(struct leat_conn *conn);
void leat_os_conn_sends_fail(struct leat_conn *conn);
void leat_os_net_send(struct leat_conn *conn, struct leat_send *send);
size_t leat_os_net_unsent_bytes(const struct leat_conn *conn, const struct leat_send *send);
void leat_os_net_replace(struct leat_conn *conn, struct leat_send *send, struct leat_send *by);
leat_err leat_os_net_send_copy(struct leat_conn *conn, const void *bytes, size_t count);

#endif
