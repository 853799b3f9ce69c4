/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated disk is made of. Private to disk*.c. */
#ifndef LEAT_TESTS_SIM_DISK_PARTS_H
#define LEAT_TESTS_SIM_DISK_PARTS_H

#include "tests/sim/sim.h"

enum {
    SIM_SECTOR = 512,
    SIM_CHUNK =
        8 *
        1024, /* most files are small: more would be zeros, which cost time to make and to copy */
    SIM_PIECE = 64 * 1024, /* of a file, as faults choose them */
    SIM_PATH_BYTES = 160,
};

struct sim_pending {
    struct sim_pending *next;
    uint64_t offset;
    size_t bytes;
    uint8_t data[];
};

struct sim_inode {
    struct sim_inode *next;
    struct sim_disk *disk;
    uint64_t size, durable_size, allocated;
    uint64_t low_size; /* smallest since the last flush: beyond it `durable` is void */
    uint8_t **now, **durable;
    size_t chunks; /* of both arrays */
    struct sim_pending *first, *last;
    bool failed; /* a flush failed: final */
    bool grown;  /* a store file: its end is allocated, and no flush has ended since */
};

struct leat_file {
    struct sim_inode *inode;
    bool direct, read_only;
};

/* A chain of operations beside its actor's queue, as `then` makes them. It stays until the world ends,
 * because the event of an operation outlives the process that began it. */
struct sim_beside {
    struct sim_beside *next; /* of the actor */
    struct sim_actor *actor;
    struct leat_disk_io *io, *first; /* under way; NULL: ended */
    uint8_t *stage;
    uint64_t op;
    bool started;
};

struct sim_name {
    char path[SIM_PATH_BYTES];
    struct sim_inode *inode; /* NULL: a directory */
};
struct sim_names {
    struct sim_name *at;
    size_t count, capacity;
};
struct sim_name_op {
    struct sim_name_op *next;
    char remove[SIM_PATH_BYTES], add[SIM_PATH_BYTES]; /* "" = nothing */
    struct sim_inode *inode;                          /* of add */
};

struct sim_disk {
    struct sim_world *world;
    struct sim_rng rng;
    struct sim_inode *inodes;
    struct sim_names now, durable;
    struct sim_name_op *first, *last;
    uint64_t stalled_us; /* until then some operations may wait */
    uint64_t ops, aim_at, stall_until_us, stall_reads_until_us, stall_writes_until_us;
    enum sim_cut_phase aim_phase;
    void (*on_cut)(void *);
    void *on_cut_arg;
    sim_sweep_fn sweep;
    void *sweep_arg;
    sim_amid_fn amid;
    void *amid_arg;
    bool full, no_files, fail_write, fail_sync, took_error, lost_flush;
    bool fail_grown;                   /* aims_grown.c */
    const struct leat_file *fail_file; /* stage_longer.c; NULL: none */
    uint64_t fail_from, fail_end;
    const char *kill_path; /* aims_identity.c; NULL: none */
    bool was_killed;
    bool crash_gives; /* sim_disk_crash_gives() */
};

/* ---- disk_file.c: the bytes of one file ---- */
/** Room in both images for [0, end). */
void sim_image_need(struct sim_inode *inode, uint64_t end);
/** Was anything but zeros written to the piece of this offset since the piece was cut off? */
bool sim_image_has(uint8_t *const *image, size_t chunks, uint64_t offset);
/** Of a piece that has something. */
void sim_image_flip(uint8_t **image, uint64_t offset, unsigned bit);
void sim_image_read(uint8_t *const *image, size_t chunks, uint64_t offset, uint8_t *to,
                    size_t bytes);
/** Empty, without a name; the disk owns it. */
struct sim_inode *sim_inode_create(struct sim_disk *disk);
void sim_inode_write(struct sim_inode *inode, uint64_t offset, const uint8_t *data, size_t bytes);
void sim_inode_sync(struct sim_inode *inode);
/** Writes not flushed beyond the new end are void: a later growth reads zeros there. */
void sim_inode_shrink(struct sim_inode *inode, uint64_t bytes);
/** The power goes: a random part of what was not flushed stays. */
void sim_inode_crash(struct sim_inode *inode);
void sim_inode_destroy(struct sim_inode *inode);

/* ---- disk_names.c: names of files and directories ---- */
/** "./a//b/" is "a/b"; the data directory itself is "". */
void sim_path_clean(const char *path, char out[SIM_PATH_BYTES]);
bool sim_path_in(const char *path, const char *dir);
struct sim_name *sim_name_find(struct sim_names *names, const char *path);
void sim_name_change(struct sim_disk *disk, const char *remove, const char *add,
                     struct sim_inode *inode);
/** Everything that touches the directory, and what it may depend on, becomes durable. */
void sim_names_sync(struct sim_disk *disk, const char *dir);
/** Does the file have segments of the store? */
bool sim_disk_is_store_file(const struct sim_disk *disk, const struct sim_inode *inode);
/** The power goes: a prefix of the changes stays. */
void sim_names_crash(struct sim_disk *disk);

/* ---- disk_faults.c ---- */
/** Is that write to fail? Asked once for each. */
bool sim_disk_refuses(struct sim_disk *disk, const struct leat_disk_io *io);
/** Is that the flush at which its process is to be killed? */
bool sim_disk_is_killed(struct sim_disk *disk, const struct leat_disk_io *io);
/** The bytes that a write leaves behind which was in flight when its process or machine died. */
void sim_disk_write_part(struct sim_disk *disk, struct sim_inode *inode, uint64_t offset,
                         const uint8_t *data, size_t bytes);

#endif
