/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided writes into the memory of other nodes: two ports.
 *
 * The *host* port is the backup's: arenas of named memory, one for each (this node, incarnation of a primary), which
 * this primary may write into without asking, until the arena is revoked. The *writer* port is the primary's: targets
 * (an arena of another node, reached by one transport) and writes into targets. A *grant* connects both: bytes that
 * the backup sends to the primary.
 *
 *     backup                                        primary (each of its cores)
 *     open -> grow -> grant  ------ grant ------>   attach -> on_attached
 *                                                   write, write, ... -> on_done, on_done, ...
 *     revoke: from here on no write completes
 *     private copy, scan, retire                    on_failed -> detach
 *
 * Transports (enum leat_rmem_kind): `shm` and `verbs` are in os/, `tcp` and `rpc` use link/
 * (replication/transport/transport.h). replication/transport also offers all transports as a single writer port. The
 * simulator has transports of its own.
 *
 * As everywhere: a completion never runs inside the call that started it, and all calls and callbacks of a port are
 * on the port's actor, except enter() and leave().
 */
#ifndef LEAT_BASE_RMEM_H
#define LEAT_BASE_RMEM_H

#include <string.h>

#include "list.h"
#include "port.h"

enum leat_rmem_kind {
    LEAT_RMEM_NONE = 0,
    LEAT_RMEM_RPC = 1,   /* a request that the backup handles like any other: the baseline */
    LEAT_RMEM_TCP = 2,   /* put in place by the core that the bytes arrive at */
    LEAT_RMEM_SHM = 3,   /* stores into a mapped file of the backup's: same host and boot */
    LEAT_RMEM_VERBS = 4, /* RDMA writes */
    LEAT_RMEM_KINDS = 5,
};
enum {
    LEAT_RMEM_STEPS_MAX = 512,                   /* of one arena: 32 GiB */
    LEAT_RMEM_ARENAS_MAX = 1024,                 /* of one host, retired ones not counted */
    LEAT_RMEM_IOVS_MAX = 8,                      /* pieces of one write */
    LEAT_RMEM_WRITE_BYTES_MAX = 4 * 1024 * 1024, /* of one write */
    LEAT_RMEM_WINDOW = 128, /* writes of one target that the transport has under way; more wait in
                               the port, in order */
    LEAT_RMEM_TARGETS_MAX = 1024, /* of one writer port */
    LEAT_RMEM_NAME_BYTES_MAX = 255,
    LEAT_RMEM_ID_BYTES = 16,
    LEAT_RMEM_GRANT_BYTES_MAX = 512,
};

/* ---- grants ---- */

/* How to reach one arena, by each transport that the host offers. Sections of {kind u8, bytes u8, body}; the first is
 * always LEAT_RMEM_NONE with a struct leat_rmem_address as body. Comes from outside: nothing in it is trusted. */
struct leat_rmem_grant {
    uint32_t bytes;
    uint8_t data[LEAT_RMEM_GRANT_BYTES_MAX];
};
struct leat_rmem_address {
    uint8_t id[LEAT_RMEM_ID_BYTES];
    uint64_t limit_bytes; /* little-endian, as all of it; no byte past it will ever exist */
    uint32_t number;      /* of the arena at its host */
    uint32_t zero;
};
_Static_assert(sizeof(struct leat_rmem_address) == 32, "address layout");

/** Append a section. False: no room. Thread: any. */
bool leat_rmem_grant_add(struct leat_rmem_grant *grant, enum leat_rmem_kind kind, const void *body,
                         size_t body_bytes) LEAT_NODISCARD;
/** The body of the first section of that kind: a view, unaligned; NULL: none, or nonsense. Thread:
 * any. */
const uint8_t *leat_rmem_grant_find(const struct leat_rmem_grant *grant, enum leat_rmem_kind kind,
                                    size_t *out_body_bytes);
/** LEAT_E_INVALID: not a grant. Thread: any. */
leat_err leat_rmem_grant_address(const struct leat_rmem_grant *grant,
                                 struct leat_rmem_address *out_address) LEAT_NODISCARD;

/* ---- the host: memory that other nodes write into ---- */

/* One writer's memory at this node. Made by the port, valid until retire(). All fields but `owner`
 * are the port's. */
struct leat_rmem_arena {
    uint8_t *base;                  /* reserved addresses; byte i is base[i] once grown past it */
    uint64_t limit_bytes;           /* multiple of LEAT_ARENA_STEP_BYTES */
    uint64_t grown_bytes;           /* backed and touched; fresh steps are zero */
    uint8_t id[LEAT_RMEM_ID_BYTES]; /* random: names the arena in its file and in grants */
    uint32_t number;                /* from 1, not used again by this host */
    bool revoked;
    bool inherited; /* an earlier process of this node made it, in this boot; revoked already */
    uint64_t writer_incarnation;
    char writer[LEAT_RMEM_NAME_BYTES_MAX + 1]; /* node name */
    void *owner;                               /* the user's */
};

struct leat_rmem_grow {
    /** rc: LEAT_OK, LEAT_E_NO_MEMORY (full, or at its limit). The step is zeroed and writable by
     * grants that were given before as well. Not called when the arena was retired meanwhile. */
    void (*on_grown)(struct leat_rmem_grow *grow);
    leat_err rc;
    struct leat_error error; /* its sentence */
    void *owner;
};

/* One incarnation of a node. */
struct leat_rmem_from {
    const char *node;
    uint64_t incarnation;
};

/** Is `from` the writer of this arena? Thread: any. */
static inline bool leat_rmem_is_writer(const struct leat_rmem_arena *arena,
                                       const struct leat_rmem_from *from)
{
    return arena->writer_incarnation == from->incarnation && strcmp(arena->writer, from->node) == 0;
}

struct leat_rmem_host {
    void *ctx;
    /** Kinds that grants of this host offer, as bits 1 << kind. */
    unsigned kinds;
    /**
     * A new arena for one incarnation of a writer, without memory yet: grow() it. limit_bytes:
     * multiple of LEAT_ARENA_STEP_BYTES, at most LEAT_RMEM_STEPS_MAX of them.
     * Blocks: never. Errors: LEAT_E_TOO_MANY, LEAT_E_NO_MEMORY.
     */
    leat_err (*open)(void *ctx, const char *writer, uint64_t writer_incarnation,
                     uint64_t limit_bytes, struct leat_rmem_arena **out_arena,
                     struct leat_error *error);
    /** One step more, off the actors' threads. One at a time for each arena. Not of a revoked one.
     * The struct is borrowed until on_grown. */
    void (*grow)(void *ctx, struct leat_rmem_arena *arena, struct leat_rmem_grow *grow);
    /** What the writer needs. After the first on_grown; later steps need no new grant. */
    void (*grant)(void *ctx, const struct leat_rmem_arena *arena,
                  struct leat_rmem_grant *out_grant);
    /**
     * Fence. When it returns: a write whose bytes are not all in the arena by now never completes
     * with LEAT_OK, at any writer. So what is copied out of the arena *after* it contains every
     * byte that was or will ever be acked. A stopped writer may still store into the memory later,
     * hence: copy first, then look only at the copy. For good: a revoked arena is never written to
     * or recycled again, only retired. Idempotent. Blocks: a few milliseconds.
     */
    void (*revoke)(void *ctx, struct leat_rmem_arena *arena);
    /** Nothing here uses the memory any more: revokes the arena, removes its name, frees the memory (not on the
     * actors' threads; a writer keeps its own mapping). The struct is gone. */
    void (*retire)(void *ctx, struct leat_rmem_arena *arena);
    /** The arenas of an earlier process of this boot (revoked), once, at start. Arenas of another boot, or half made,
     * are removed silently. */
    void (*each_inherited)(void *ctx, void (*each)(void *arg, struct leat_rmem_arena *arena),
                           void *arg);

    /* For transports whose bytes arrive as messages. Thread: any actor of this process. */
    /**
     * Where to put [offset, offset + bytes) of an arena; it stays mapped until leave(), which follows soon, on the
     * same thread, without anything waited for in between. `from` is the writer, as its link knows the peer. Errors:
     * LEAT_E_NOT_FOUND (no such arena: a stale grant), LEAT_E_DENIED (another's arena), LEAT_E_CANCELLED (revoked),
     * LEAT_E_OFFSET_OUT_OF_RANGE.
     */
    leat_err (*enter)(void *ctx, const struct leat_rmem_from *from,
                      const struct leat_rmem_address *address, uint64_t offset, uint64_t bytes,
                      uint8_t **out_at);
    /** LEAT_OK: the bytes stored since enter() are in the arena, which was not revoked before: they may be acked.
     * LEAT_E_CANCELLED: revoked. */
    leat_err (*leave)(void *ctx, const struct leat_rmem_address *address);
};

/* ---- the writer ---- */

struct leat_rmem;

/* An arena of another node, reached by one transport, from one actor. Ports begin their own struct with this struct.
 * Read only for users. */
struct leat_rmem_target {
    const struct leat_rmem *port; /* whose write() and detach() to call */
    enum leat_rmem_kind kind;
    bool attached, failed;
};

struct leat_rmem_target_handler {
    /** Writes may be posted. */
    void (*on_attached)(void *user, struct leat_rmem_target *target);
    /**
     * It could not be attached, a write failed, the arena was revoked, or the peer is gone; error
     * says which and names the fix. Once; all writes have ended before it (on_done), none is taken
     * any more. detach() it, here or later. Death of a peer is told as soon as the transport sees
     * it, which may be only at the next write: keep a link to the node besides.
     *
     * What was under way may still land, late: until the arena is revoked nothing else may be put
     * where these writes aimed at. So a writer that loses a target goes on with a new arena.
     */
    void (*on_failed)(void *user, struct leat_rmem_target *target, const struct leat_error *error);
};

/* One write, into [offset, offset + all bytes). The struct, its iovs and the bytes are borrowed from write() until
 * on_done. Past LEAT_RMEM_WINDOW of a target writes wait in the port: the owner of the structs bounds how many. */
struct leat_rmem_write {
    struct leat_list list; /* the port's */
    const struct leat_iov *iovs;
    unsigned iov_count; /* 1 .. LEAT_RMEM_IOVS_MAX */
    uint64_t offset;    /* in the arena */
    /**
     * Exactly once, never inside write(), in the order of the writes. LEAT_OK: these bytes and those
     * of all earlier writes of the target are in the memory of the backup, and the arena was not
     * revoked before they were. Else the bytes may be there, in part, or not; all later writes of
     * the target fail too.
     */
    void (*on_done)(struct leat_rmem_write *write, leat_err rc);
    void *owner;
    uint32_t bytes; /* the port's: of all iovs */
    leat_err rc;    /* the port's */
};

struct leat_rmem {
    void *ctx;
    enum leat_rmem_kind kind;
    /**
     * Reach an arena. node: its number in the coordinator's table (transports on links need it).
     * grant: copied. on_attached or on_failed follows. Errors (neither follows):
     * LEAT_E_UNSUPPORTED: the grant does not offer this transport, or it can't work from here;
     * LEAT_E_INVALID, LEAT_E_TOO_MANY, LEAT_E_NO_MEMORY. error (may be NULL) has the sentence.
     */
    leat_err (*attach)(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                       const struct leat_rmem_target_handler *handler, void *user,
                       struct leat_rmem_target **out_target, struct leat_error *error);
    /**
     * Errors (on_done never follows, the target is none the worse): LEAT_E_CLOSED: not attached, or
     * failed; LEAT_E_OFFSET_OUT_OF_RANGE: past the arena's limit; LEAT_E_INVALID: no bytes, too
     * many pieces; LEAT_E_TOO_LARGE. A write past what the arena has grown to fails the target.
     * Allocates: never.
     */
    leat_err (*write)(struct leat_rmem_target *target, struct leat_rmem_write *write);
    /** No more callbacks of the handler. Writes under way end as soon as the transport has let go of
     * their bytes (LEAT_E_CANCELLED, or what became of them), never inside this call. The target is
     * gone for the caller. */
    void (*detach)(struct leat_rmem_target *target);
    /** Writes will come from this memory, which stays mapped as long as the port (the pool of the
     * store and the host's arenas are known). NULL: any memory will do. May take long: start-up. */
    leat_err (*source)(void *ctx, void *base, size_t bytes, struct leat_error *error);
};

static inline leat_err leat_rmem_write(struct leat_rmem_target *target,
                                       struct leat_rmem_write *write)
{
    return target->port->write(target, write);
}
static inline void leat_rmem_detach(struct leat_rmem_target *target)
{
    target->port->detach(target);
}

/** What every port's write() checks first; fills write->bytes. Thread: owner. */
leat_err leat_rmem_write_check(const struct leat_rmem_target *target, struct leat_rmem_write *write,
                               uint64_t limit_bytes) LEAT_NODISCARD;
/** "rpc", "tcp", "shm", "verbs"; "none". Thread: any. */
const char *leat_rmem_kind_name(enum leat_rmem_kind kind);

#endif
