/* SPDX-License-Identifier: Apache-2.0 */
/* A small cluster in one thread: one owner node with logs on the real multilog and primary, and
 * nodes with the real store and backup. Virtual time, one seed. Links lose and delay; one-sided
 * writes arrive late, in any order of their parts, and torn when they fail; nodes die and return.
 *
 * The checker knows one rule, which is all of safety: whatever mark a recovery could find, alone, on
 * any node, with the epoch and at least the version that the coordinator holds, contains everything
 * that was acked. */
#ifndef LEAT_TESTS_REPLICATION_WORLD_H
#define LEAT_TESTS_REPLICATION_WORLD_H

#include "base/random.h"
#include "multilog/log.h"
#include "replication/backup/state.h"
#include "replication/primary/state.h"
#include "tests/store/fake_world.h"

enum {
    WORLD_NODES_MAX = 6,
    WORLD_LOGS_MAX = 4,
    WORLD_ARENAS_MAX = 64,
    WORLD_MESSAGES_MAX = 8192,
    WORLD_CALLS_MAX = 4096,
    WORLD_WRITES_MAX = 4096,
    WORLD_GHOSTS_MAX = 64,
    WORLD_BATCHES_MAX = 64, /* of one log, waiting */
    WORLD_ARENA_BYTES = 128 * 1024 * 1024,
    WORLD_STORE_BYTES = 128 * 1024 * 1024,
    WORLD_EPOCH = 5,
};
extern const uint8_t world_cluster[16];

struct world;

struct world_arena {
    struct leat_rmem_arena arena; /* first */
    uint8_t *pages;               /* WORLD_ARENA_BYTES */
    unsigned node;
    bool used, closed;
    struct leat_arena left; /* as the next process of the node finds it */
};

struct world_target {
    struct leat_rmem_target target; /* first */
    struct world *world;
    struct world_arena *arena;
    const struct leat_rmem_target_handler *handler;
    void *user;
    unsigned node;
    uint64_t last_us;               /* writes complete in order */
    bool attaching, detached, held; /* held: its callbacks are running */
};

struct world_write {
    struct leat_rmem_write *write;
    struct world_target *target;
    uint64_t at_us;
};

/* Bytes of a target that was detached: its write has ended, and they still land. */
struct world_ghost {
    struct world_arena *arena;
    uint64_t offset;
    uint32_t bytes;
    uint8_t *copy;
};

struct world_call {
    struct leat_link_call *call;
    unsigned from, to;
    uint64_t deadline_us, id;
};

struct world_message {
    uint64_t at_us, id;
    unsigned from, to;
    uint16_t kind;
    bool answer;
    leat_err rc;
    uint8_t *control;
    uint32_t bytes;
    uint64_t link; /* dropped when the link has another number by then */
};

struct world_node {
    struct world *world;
    unsigned number;
    bool alive;
    uint64_t incarnation;
    uint32_t deleted;       /* the stream that it knows to be deleted; 0: none */
    struct fake_world disk; /* its store, disk and mail */
    struct leat_store *store;
    struct leat_store_port store_port;
    struct leat_backup *backup;
    struct leat_env env; /* of core 0 */
    struct leat_clock clock;
    struct leat_timers timers;
    uint64_t wake_us;
    struct leat_rmem_host host;
    struct leat_rmem_grow *growing;
    struct world_arena *grow_arena;
    uint64_t grown_us;
    bool link_up; /* with the owner */
    uint64_t link, link_at_us, link_last_us[2];
    bool slow;        /* does not take writes */
    bool mute;        /* nor anything else: messages wait */
    unsigned refuses; /* opens that it refuses, in 100 */
    bool heap_full;   /* what another replica takes beside its bytes is not there */
};

struct world_batch {
    struct leat_append append;
    struct world_log *log;
    bool used;
};

struct world_log {
    struct world *world;
    struct leat_log *log;
    struct leat_primary_log *rep;
    struct leat_log_ref ref;
    bool dirty, opening, opened;
    uint64_t opening_at_us;
    uint32_t opening_version;
    uint32_t version; /* the coordinator's */
    uint64_t acked, failed;
    uint64_t next_value;
    struct world_batch batches[WORLD_BATCHES_MAX];
};

struct world {
    struct leat_xoshiro random;
    uint64_t now_us;
    unsigned node_count, log_count, copies, min_copies;
    unsigned hosts;          /* the nodes are on so many, in turn; 0: each on its own */
    int64_t retention_bytes; /* of logs that are opened from now on */
    enum leat_durability durability;
    struct world_node nodes[WORLD_NODES_MAX]; /* 0 is the owner */
    struct world_log logs[WORLD_LOGS_MAX];
    struct leat_primary *primary;
    struct leat_rmem rmem;
    struct world_arena arenas[WORLD_ARENAS_MAX];
    struct world_message messages[WORLD_MESSAGES_MAX];
    unsigned message_count;
    struct world_call calls[WORLD_CALLS_MAX];
    unsigned call_count;
    struct world_write writes[WORLD_WRITES_MAX];
    unsigned write_count;
    struct world_ghost ghosts[WORLD_GHOSTS_MAX];
    unsigned ghost_count;
    uint64_t ghosts_landed;
    uint64_t ids;
    bool versions_asked;
    uint64_t versions_at_us;
    struct leat_rep_version version_rows[64];
    size_t version_count;
    uint64_t message_us_max, write_us_max, care_us;
    uint64_t torn, checks, marks_seen, segment_bytes_max, hibernate_after_us;
    bool coordinator_down;
    bool stream_deleted; /* the coordinator knows of it no more */
};

extern uint64_t world_segment_bytes; /* of worlds to come */
struct world *world_new(uint64_t seed, unsigned nodes, unsigned copies, unsigned logs,
                        enum leat_durability durability, int64_t retention_bytes);
void world_free(struct world *world);
static inline uint64_t world_below(struct world *world, uint64_t limit)
{
    return limit ? leat_xoshiro_below(&world->random, limit) : 0;
}
/** One event, or time passes. */
void world_step(struct world *world);
/** A core's periodic work for its logs. */
void world_care(struct world *world);
/** Until `us` have passed. */
void world_run(struct world *world, uint64_t us);
/** false: the log does not take it now. */
bool world_append(struct world_log *log, uint32_t bytes);
bool world_is_idle(const struct world_log *log);
/** Append so many batches of so many bytes, one log after the other, as soon as each takes one. */
void world_append_all(struct world *world, unsigned batches, uint32_t bytes);
/** Run until all logs are idle, for `us` of virtual time at most. Returns whether they are. */
bool world_settle(struct world *world, uint64_t us);
/** A world with its log's head open on all copies, and all sessions there. */
struct world *world_ready(uint64_t seed, unsigned nodes, unsigned copies,
                          enum leat_durability durability);
void world_node_kill(struct world *world, unsigned node, bool power);
void world_node_start(struct world *world, unsigned node);
/** The same, and what its store found is nobody's yet: whoever calls says when that is over. */
void world_node_open(struct world *world, unsigned node);
void world_link_cut(struct world *world, unsigned node);
/** The way of the owner's writes to that node breaks; what was under way arrives in part. */
void world_targets_fail(struct world *world, unsigned node);
/** The coordinator is about to count only marks of that version: every copy that is a part of the
 * log must have it, or a crash now would leave no mark. */
void world_check_stamps(struct world *world, const struct world_log *log, uint32_t version);
/** The rule, over all nodes that live (but the owner's own copies). */
void world_check(struct world *world);
/** All closed copies are the same bytes; every log is on as many nodes as wanted. */
bool world_is_whole(struct world *world);
/** Everybody dies, the memory survives: the marks that all nodes find then. */
void world_check_after_death(struct world *world);
/** All of it, to stderr. */
void world_dump(struct world *world);

struct world_log *world_log_of(struct world *world, struct leat_log_ref ref);
void world_drop_store(struct world_node *node);

#endif
