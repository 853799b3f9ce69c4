/* SPDX-License-Identifier: Apache-2.0 */
/* A small world for the store alone: one thread, virtual time, a disk that forgets what was not
 * synced, named memory that survives a kill and not a power cut. */
#ifndef LEAT_TESTS_STORE_FAKE_WORLD_H
#define LEAT_TESTS_STORE_FAKE_WORLD_H

#include "store/store.h"

enum {
    FAKE_BESIDES_MAX = 64,
    FAKE_FILES_MAX = 16,
    FAKE_EVENTS_MAX = 4096,
    FAKE_SECTOR_BYTES = 512
};

struct leat_file {
    struct fake_world *world;
    char name[40];
    bool used, name_durable, sync_failed, direct;
    uint8_t *now, *durable; /* what a reader sees; what a power cut leaves for sure */
    uint64_t bytes, durable_bytes, room;
    uint8_t *touched; /* a byte per sector: now differs from durable */
};

struct fake_event {
    unsigned to;
    struct leat_mail *mail;
    struct leat_disk_io *io;
    struct leat_arena_grow *grow;
    bool shrink;
};

struct fake_world {
    uint64_t seed, now_us, wake_at_us;
    struct leat_file files[FAKE_FILES_MAX];
    struct leat_disk_io *disk_first, **disk_last;   /* submitted, not yet run */
    struct leat_disk_io *besides[FAKE_BESIDES_MAX]; /* what comes next of each chain */
    int beside_count;
    struct fake_event events[FAKE_EVENTS_MAX];
    unsigned event_first, event_count;
    void *core; /* the actor pointer of core 0 */
    struct leat_store *store;
    bool turn;       /* the store was called since its last turn end */
    bool turn_stays; /* its turn goes on: what comes is of the same one */
    bool poked;      /* the test has said what is not so: turns are not checked */

    uint64_t op_count, fail_at; /* disk operations; this one fails (0: none) */
    bool fail_zero;             /* the next ZERO fails */
    unsigned zeros_failed;
    uint64_t space_bytes;   /* allocations beyond that are refused */
    bool no_opens, no_dirs; /* no file can be opened; no directory, for its sync */

    struct leat_clock clock;
    struct leat_random random;
    struct leat_post core_post, store_post;
    struct leat_disk disk;
    struct leat_arena arena;
    unsigned shrinks;
    struct leat_env env;
};

void fake_world_init(struct fake_world *world, uint64_t seed, uint64_t memory_bytes);
void fake_world_fini(struct fake_world *world);
uint64_t fake_random(struct fake_world *world);
uint64_t fake_below(struct fake_world *world, uint64_t limit);
/** Is there something to do? */
bool fake_is_busy(const struct fake_world *world);
/** Let one thing happen: a disk operation, a completion, a mail. false: nothing to do. */
bool fake_step(struct fake_world *world);
/** The same, of events only: the disk does nothing. */
bool fake_event_step(struct fake_world *world);
/** Until nothing happens any more without time passing. */
void fake_settle(struct fake_world *world);
/** Let time pass; the store wakes when it asked to. */
void fake_pass(struct fake_world *world, uint64_t us);
/** The process dies: what was submitted runs in part, nothing is delivered. The caller drops the
 * store's memory, and leaks nothing. */
void fake_kill(struct fake_world *world);
/** A kill, and every unsynced sector is kept or lost by chance; the arena is another one. */
void fake_power_cut(struct fake_world *world);
struct leat_file *fake_file(struct fake_world *world, const char *name);

#endif
