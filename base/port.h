/* SPDX-License-Identifier: Apache-2.0 */
/* The ports: the whole interface between core logic and the operating system.
 *
 * Core logic (every library but `os`) is event-driven state machines. Each runs as part of one *actor*: a core, the
 * store, the coordinator, or a client. An actor is single-threaded: its callbacks never run concurrently. An actor
 * uses the operating system only through the structs below, which have two implementations: the real ports (`os`, on
 * libuv, files and threads) and the simulated ports (`tests/sim`: one thread, one seed, virtual time, faults).
 *
 * One rule for all: a completion never runs inside the call that started it. If starting fails (the call returns an
 * error), the completion never runs; otherwise the completion runs exactly once, on the actor of the call.
 *
 * After every batch of callbacks to an actor `on_turn_end` runs once, for work that is cheaper per batch than per
 * event (a trailer, a commit, a write to each socket).
 */
#ifndef LEAT_BASE_PORT_H
#define LEAT_BASE_PORT_H

#include "error.h"

/* ---- clock ---- */
struct leat_clock {
    void *ctx;
    /** Monotonic microseconds; constant within one callback batch is allowed. Never goes back. */
    uint64_t (*now_us)(void *ctx);
    /** Wall clock, milliseconds since 1970. May jump. */
    int64_t (*wall_ms)(void *ctx);
    /** Ask for the actor's on_wake at or after this monotonic time; replaces the previous request;
     * UINT64_MAX: none. */
    void (*wake_at)(void *ctx, uint64_t at_us);
};

/* ---- random ---- */
struct leat_random {
    void *ctx;
    /** For ids, jitter and the like. In a server, earlier numbers do not reveal later numbers; in a client they may. */
    uint64_t (*next)(void *ctx);
    /** Secret random bytes: keys and nonces. NULL in a client, which makes none. */
    void (*secret)(void *ctx, void *out, size_t bytes);
};

/* ---- mail: between the actors of one process ---- */
enum {
    LEAT_ACTOR_CORE_0 = 0, /* cores are 0 .. LEAT_CORES_MAX - 1 */
    LEAT_ACTOR_STORE = LEAT_CORES_MAX,
    LEAT_ACTOR_COORDINATOR,
    LEAT_ACTORS,
};

/* Lies inside the sender's struct, which stays untouched by the sender from send until delivery. Between two actors
 * the order is kept. Never fails, never allocates; the owner of the structs bounds how many are under way. */
struct leat_mail {
    struct leat_mail *next;
    /* Runs on the receiving actor; `actor` is the pointer that this actor registered. */
    void (*deliver)(void *actor, struct leat_mail *mail);
};
struct leat_post {
    void *ctx;
    /** Thread: any actor's. A mail to oneself is allowed (it arrives in a later callback). */
    void (*send)(void *ctx, unsigned to, struct leat_mail *mail);
    unsigned self; /* this actor's own number */
};

/* ---- net: byte streams between processes ---- */
struct leat_conn; /* made by the port; valid until on_closed has returned */

struct leat_iov {
    const void *base;
    size_t bytes;
};
enum { LEAT_SEND_IOVS_MAX = 256 };

/* A gathered write. The struct, its iovs and the bytes are borrowed from send() until on_sent,
 * which runs exactly once, also when the connection closes first (rc = LEAT_E_CLOSED). */
struct leat_send {
    struct leat_send *next; /* the port's */
    const struct leat_iov *iovs;
    unsigned iov_count; /* at most LEAT_SEND_IOVS_MAX */
    size_t sent_bytes;  /* the port's */
    void (*on_sent)(struct leat_send *send, leat_err rc);
    void *owner;
};

/* Bytes of cut frames have limits, in accounts: base/intake.h. An accepted connection counts as a client's until
 * account() is called; a connection made by connect() is a node's. */
enum { LEAT_NET_KEY_BYTES = 16 };
enum leat_net_account {
    LEAT_NET_STRANGERS, /* have no identity yet: the handler takes no large frames from these */
    LEAT_NET_CLIENTS,   /* one address has half of the account at most */
    LEAT_NET_NODES,
    LEAT_NET_ACCOUNTS,
};

struct leat_conn_handler {
    /** connect() succeeded. Not called for accepted or moved connections. May be NULL for those. */
    void (*on_open)(void *user, struct leat_conn *conn);
    /**
     * Bytes arrived. `data` is contiguous: the unconsumed bytes, then the new bytes; a view until return. Returns how
     * many were consumed. The port keeps the rest and calls again when more have come; it calls only when at least
     * *want_bytes are there (0 = any; at most LEAT_WANT_BYTES_MAX), so a large frame is not parsed again for each
     * packet. The reserved memory grows with the bytes that have come, whatever is wanted. If the account is full the
     * connection waits, and connections that send nothing or little meanwhile are closed (TIMEOUT). May call close(),
     * pause() or move(); after close() or move() the returned count still counts.
     */
    size_t (*on_bytes)(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes);
    /** The last callback. The conn is gone after it. why: LEAT_OK when closed by close() here, else
     * the cause. */
    void (*on_closed)(void *user, struct leat_conn *conn, leat_err why);
};

/* The origin of an accepted connection, as far as the kernel proves it. */
enum leat_origin {
    LEAT_ORIGIN_NETWORK, /* another machine, or unknown */
    LEAT_ORIGIN_MACHINE, /* this machine, any account: a loopback address, or the address of this end */
    LEAT_ORIGIN_OWNER, /* a Unix socket: the account of this process, or root */
};

/* Called for each accepted connection, on the actor that listens; returns the handler's user
 * pointer, or NULL to refuse. */
typedef void *(*leat_accept_fn)(void *acceptor, struct leat_conn *conn,
                                const struct leat_conn_handler **out_handler);

struct leat_net {
    void *ctx;
    /** Listen on "HOST:PORT" ("[::1]:7700" too; port 0 = any), or on "unix:NAME": a socket of that name in
     * the data directory, for this process's account and root alone. out_address receives what was
     * bound. Until shutdown. */
    leat_err (*listen)(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                       char out_address[128], struct leat_error *error);
    /** Resolve and connect to "HOST:PORT" or "unix:PATH". on_open or on_closed follows; on failure of
     * the call itself neither.
     * on_closed without on_open: LEAT_E_CLOSED says that no process listens there, by the host's own answer; any
     * other code (LEAT_E_UNREACHABLE, LEAT_E_NO_MEMORY, LEAT_E_DENIED) does not tell whether a server runs at that
     * address. */
    leat_err (*connect)(void *ctx, const char *address, const struct leat_conn_handler *handler,
                        void *user, struct leat_conn **out_conn);
    /** Queue a gathered write. Written at the end of the turn, together with others. */
    void (*send)(struct leat_conn *conn, struct leat_send *send);
    /** Copy a small message into the connection's own output buffer; written at the end of the
     * turn, in order with send(). LEAT_E_AGAIN when more than LEAT_CONN_COPY_BYTES_MAX wait
     * already. */
    leat_err (*send_copy)(struct leat_conn *conn, const void *bytes, size_t count);
    /** Bytes of this send that the network has not taken yet; 0: its on_sent follows by itself. */
    size_t (*unsent_bytes)(const struct leat_conn *conn, const struct leat_send *send);
    /** Give back the memory that `send` borrows, of which unsent_bytes() are left: these bytes are copied to the
     * single iov of `by`, which has this length, and `by` is sent instead. `send` is the caller's again, and its
     * on_sent does not run. */
    void (*replace)(struct leat_conn *conn, struct leat_send *send, struct leat_send *by);
    /** Bytes given to send() and send_copy() and not yet taken by the network. */
    size_t (*queued_bytes)(const struct leat_conn *conn);
    /** Bytes of all sends so far that the network has taken. */
    uint64_t (*taken_bytes)(const struct leat_conn *conn);
    /** Memory of copies (send_copy) that the network has not taken: of this connection; of all connections of its
     * address (key()); of all connections of the actor. */
    size_t (*copied_bytes)(const struct leat_conn *conn);
    size_t (*copied_bytes_near)(const struct leat_conn *conn);
    size_t (*copied_bytes_all)(void *ctx);
    /** Stop / go on reading. After resume, kept bytes are presented again even if nothing new came. The end of a
     * paused or waiting connection is noticed at once if the connection was reset, or has no unread bytes; otherwise
     * its unread bytes can still be read within a second. */
    void (*pause)(struct leat_conn *conn);
    void (*resume)(struct leat_conn *conn);
    /** Close; sends not yet written end with LEAT_E_CLOSED. on_closed follows (never inside).
     * Idempotent. */
    void (*close)(struct leat_conn *conn);
    /**
     * Hand the connection, with bytes not consumed, to another actor of this process: on_moved runs
     * there and returns the new handler and user pointer (NULL user: close). Nothing may be queued
     * on it. No more callbacks here.
     */
    void (*move)(struct leat_conn *conn, unsigned to_actor,
                 void *(*on_moved)(void *to_actor_pointer, struct leat_conn *conn, void *baggage,
                                   const struct leat_conn_handler **out_handler),
                 void *baggage);
    /** Count the connection in another account. A move keeps the account. */
    void (*account)(struct leat_conn *conn, enum leat_net_account account);
    /** What all connections of an account may have kept on this actor. Thread: startup, or the actor's. */
    void (*limit)(void *ctx, enum leat_net_account account, size_t bytes);
    /** "203.0.113.7:51234", for messages. Valid as long as the conn. */
    const char *(*peer)(const struct leat_conn *conn);
    /** LEAT_NET_KEY_BYTES: what limits count as one address. An IPv6 key is a /56, since the holder of one address of
     * such a network can use all. Likewise. */
    const uint8_t *(*key)(const struct leat_conn *conn);
    /** The origin of an accepted connection; LEAT_ORIGIN_NETWORK for a connection made by connect(). */
    enum leat_origin (*origin)(const struct leat_conn *conn);
};
enum {
    LEAT_CONN_COPY_BYTES_MAX = 4 * 1024 * 1024,
    LEAT_WANT_BYTES_MAX = 9 * 1024 * 1024, /* largest frame that on_bytes may want whole */
};

/* ---- disk ---- */
struct leat_file; /* made by the port */
enum leat_open_flags {
    LEAT_OPEN_CREATE = 1,
    LEAT_OPEN_DIRECT =
        2, /* asks for O_DIRECT; buffers, offsets and lengths are then multiples of 4 KiB, aligned;
            * the port falls back to buffered I/O where the file system refuses */
    LEAT_OPEN_EXCLUSIVE = 4,
    LEAT_OPEN_READ = 8, /* read only */
};
enum leat_disk_kind {
    LEAT_DISK_READ,
    LEAT_DISK_WRITE,
    LEAT_DISK_SYNC,
    /* Write zeros over space that is allocated and not read or written meanwhile. For faster later writes there: the
     * first write to space that was only allocated changes the file's metadata, and a SYNC then waits for the file
     * system's journal. */
    LEAT_DISK_ZERO,
};

/* One operation; caller's storage, borrowed until on_done. */
struct leat_disk_io {
    struct leat_disk_io *next; /* the port's */
    enum leat_disk_kind kind;
    struct leat_file *file;
    uint64_t offset;
    void *buffer; /* READ: filled; WRITE: borrowed; else not used */
    size_t bytes;
    size_t
        done_bytes; /* READ: may be short at the end of the file; WRITE: all of it, or an error */
    leat_err rc;    /* LEAT_E_DISK_FULL, LEAT_E_DISK */
    void (*on_done)(struct leat_disk_io *io);
    void *owner;
    /* WRITE, SYNC: concurrent with all other operations, without order, so that the disk can have several under way.
     * `then` (NULL: none) runs after this operation, whatever its result, is concurrent with all others as well, and
     * is not submitted by itself. */
    bool beside;
    struct leat_disk_io *then;
    /* WRITE, not beside: may be under way at the same time as the next submitted operation, a WRITE of other bytes. A
     * hint. */
    bool together;
};

/*
 * submit() is asynchronous; operations submitted by one actor to this port run in the order given (so WRITE, WRITE,
 * SYNC submitted together need no waiting in between), except READs, which may overtake, and ZEROs and `beside`
 * operations, which are concurrent with all others. A SYNC makes durable the WRITEs of this file that had ended when
 * it began. After a SYNC has failed the file refuses every operation: a failed flush is final.
 *
 * The other calls block. They are for start-up, and for the store's and the coordinator's own
 * threads.
 */
struct leat_disk {
    void *ctx;
    void (*submit)(void *ctx, struct leat_disk_io *io);
    /** Blocking form of submit(), for start-up: runs this operation now, after all earlier submitted operations that
     * are not `beside`, and returns its rc (also in io->rc, io->done_bytes). on_done is not called and may be NULL. */
    leat_err (*run)(void *ctx, struct leat_disk_io *io);
    leat_err (*open)(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                     struct leat_error *error);
    void (*close)(void *ctx, struct leat_file *file);
    leat_err (*size)(void *ctx, struct leat_file *file, uint64_t *out_bytes);
    /** Make sure that [0, bytes) has disk space; the file's size becomes at least that; new bytes
     * read as zero. */
    leat_err (*allocate)(void *ctx, struct leat_file *file, uint64_t bytes);
    leat_err (*truncate)(void *ctx, struct leat_file *file, uint64_t bytes);
    leat_err (*remove)(void *ctx, const char *path);
    leat_err (*rename)(void *ctx, const char *from, const char *to);
    leat_err (*make_dir)(void *ctx, const char *path); /* LEAT_OK when it exists */
    /** Make creations, renames and removals in this directory durable. */
    leat_err (*sync_dir)(void *ctx, const char *path);
    /** Calls each(arg, name) for the plain names in a directory, "." and ".." left out, sorted. */
    leat_err (*list)(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                     void *arg);
    leat_err (*space)(void *ctx, uint64_t *out_free_bytes);
};
/* Paths are relative to the data directory. */

/* ---- arena: named shared memory that outlives a killed process ---- */
enum { LEAT_ARENA_STEP_BYTES = 64 * 1024 * 1024 };

struct leat_arena_grow {
    /* rc LEAT_OK, LEAT_E_NO_MEMORY; of a shrink LEAT_E_DISK */
    void (*on_grown)(struct leat_arena_grow *grow);
    leat_err rc;
    void *owner;
};
struct leat_arena {
    void *ctx;
    uint8_t *base; /* reserved address range; byte i of the arena is base[i] once grown past it */
    uint64_t limit_bytes; /* never more than this is backed by memory; multiple of the step */
    uint64_t grown_bytes; /* backed, zeroed at first, touched; multiple of the step */
    uint64_t
        inherited_bytes; /* how much of the pool has bytes of an earlier process; 0 = a new pool */
    uint8_t pool_id[16]; /* random, made with the pool: a lost pool has another */
    /** One step more, allocated and touched off the actors' threads. One at a time. */
    void (*grow)(void *ctx, struct leat_arena_grow *grow);
    /** The last step, of which nothing is used, goes back to the kernel; grown_bytes is lower when
     * on_grown runs, or the step stays (rc). Not while a grow is under way, nor the other way round.
     * NULL: it never does. */
    void (*shrink)(void *ctx, struct leat_arena_grow *grow);
};

/* ---- one-sided writes into other nodes' memory: base/rmem.h ---- */
struct leat_rmem;
struct leat_rmem_host;
enum { LEAT_ENV_RMEMS = 2 };

/* ---- everything one actor has ---- */
struct leat_env {
    const struct leat_clock *clock;
    const struct leat_random *random;
    const struct leat_post *post;
    const struct leat_net *net;   /* cores, clients; the coordinator later */
    const struct leat_disk *disk; /* store, coordinator; cores: submit(READ) only */
    struct leat_arena *arena;     /* store */
    /* Writers of the world's own transports (shm, verbs), best first; NULL: none. Cores. */
    const struct leat_rmem *rmems[LEAT_ENV_RMEMS];
    const struct leat_rmem_host *rmem_host; /* the core that the backup lives on */
};

/* How a program (real or simulated) drives an actor. */
struct leat_actor_ops {
    void (*on_wake)(void *actor);     /* the time asked for by wake_at has come */
    void (*on_turn_end)(void *actor); /* see above; may be NULL */
    /* Asserts what is true of the actor between two turns; may be NULL. The simulator calls it after each turn, and
     * programs do so in a build with -Dslow_checks=true. */
    void (*check)(const void *actor);
};

#endif
