/* SPDX-License-Identifier: Apache-2.0 */
/* A small world for the coordinator's tests: a clock by hand, mail, and a disk that can lose power
 * at any operation.
 *
 * The disk's model: a write is volatile, sector by sector (512 B, never torn inside), until its
 * file is synced; creations, renames and removals are volatile, in order, until their directory is
 * synced. A power cut keeps any subset of volatile sectors and any prefix of volatile names. */
#ifndef LEAT_TESTS_COORDINATOR_FAKE_H
#define LEAT_TESTS_COORDINATOR_FAKE_H

#include "base/port.h"
#include "base/random.h"

enum { FAKE_FILES_MAX = 512, FAKE_NAMES_MAX = 512, FAKE_OPS_MAX = 512, FAKE_SECTOR = 512 };

struct fake_inode {
    uint8_t *now, *safe;
    size_t bytes, safe_bytes, capacity;
    size_t dirty_from, dirty_to; /* where now and safe may differ */
    bool used;
};
struct fake_name {
    char path[96];
    int inode; /* -1: no entry */
};
struct fake_name_op {
    int kind; /* 0 link, 1 unlink, 2 rename */
    char from[96], to[96];
    int inode;
};
struct fake_world {
    struct leat_clock clock;
    struct leat_random random;
    struct leat_post post;
    struct leat_disk disk;
    struct leat_env env;
    struct leat_xoshiro rng;
    uint64_t now_us, wake_us;
    struct leat_mail *mail_head, **mail_tail;
    struct leat_disk_io *io_head, **io_tail;
    struct fake_inode inodes[FAKE_FILES_MAX];
    struct fake_name names[FAKE_NAMES_MAX], safe_names[FAKE_NAMES_MAX];
    struct fake_name_op ops[FAKE_OPS_MAX];
    unsigned op_count;
    uint64_t disk_ops; /* counted */
    uint64_t cut_at;   /* power goes at this operation; 0: never */
    bool dead;
    bool full; /* nothing can be allocated */
    uint64_t syncs;
    void *actor;
    const struct leat_actor_ops *ops_of_actor;
};

void fake_world_init(struct fake_world *world, uint64_t seed);
void fake_world_fini(struct fake_world *world);
/** One batch: mail, completed disk operations, an expired wake-up; then on_turn_end. False: there
 * was nothing to do. Never moves time. */
bool fake_world_turn(struct fake_world *world);
/** Run until nothing is left to do now. */
void fake_world_settle(struct fake_world *world);
/** Move time on, running what falls due. */
void fake_world_elapse(struct fake_world *world, uint64_t us);
/** Power is back: what was volatile is kept or lost by the dice. Forgets mail and operations. */
void fake_world_power_cut(struct fake_world *world);
/** A file's bytes, for tests that damage them. */
struct fake_inode *fake_world_file(struct fake_world *world, const char *path);
void fake_world_remove(struct fake_world *world, const char *path);

#endif
