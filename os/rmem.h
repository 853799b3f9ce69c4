/* SPDX-License-Identifier: Apache-2.0 */
/* Real one-sided writes: what the files of the host and of the writers share. Private to os/.
 *
 * An arena's file:
 *
 *   0                  struct rmem_header: as a pool's, then the writer and the control word
 *   RMEM_KEYS_OFFSET   remote keys of the steps, for verbs
 *   POOL_DATA_OFFSET   step 0, step 1, ... of LEAT_ARENA_STEP_BYTES each
 */
#ifndef LEAT_OS_RMEM_H
#define LEAT_OS_RMEM_H

#include "base/rmem.h"
#include "os/internal.h"
#include "os/pool.h"

#define LEAT_OS_RMEM_FILE "leat-rmem-"

enum {
    RMEM_HEADER_BYTES = 8192,
    RMEM_KEYS_OFFSET = 4096,
    RMEM_VERSION = 1,
};
#define RMEM_MAGIC UINT64_C(0x6d656d727461656c) /* "leatrmem" */

enum rmem_control { RMEM_OPEN = 1, RMEM_REVOKED = 2 };

struct rmem_header {
    struct pool_header pool; /* pool_id: the arena's id */
    uint64_t magic;
    uint64_t limit_bytes;
    uint64_t writer_incarnation;
    char writer[LEAT_RMEM_NAME_BYTES_MAX + 1];
    uint32_t version;
    uint32_t zero;
    _Alignas(64) _Atomic uint32_t control; /* enum rmem_control. Written by the host alone */
    _Alignas(RMEM_KEYS_OFFSET) uint32_t
        keys[LEAT_RMEM_STEPS_MAX]; /* 0: not registered. Written before pool.steps is raised */
};
static_assert(offsetof(struct rmem_header, keys) == RMEM_KEYS_OFFSET, "keys have a page");
static_assert(sizeof(struct rmem_header) <= RMEM_HEADER_BYTES, "the header is two pages");

/* Body of a grant's section LEAT_RMEM_SHM; the path follows, unterminated. */
struct rmem_shm_grant {
    char boot_id[BOOT_ID_BYTES];
    uint64_t process_started; /* of the host, in ticks since boot: tells process numbers apart */
    uint64_t pid_space;       /* inode of its process number space */
    uint32_t pid;
    uint32_t path_bytes;
};
static_assert(sizeof(struct rmem_shm_grant) == 64, "no padding");
enum { RMEM_SECTION_BYTES = 255, RMEM_SHM_PATH_BYTES_MAX = 191 };

/* Work off the actors' threads: mapping, allocating, touching, registering. In the owner's storage.
 * run: on the helper's thread; afterwards `mail` is delivered to `actor` (NULL: nothing is, and the
 * job may be freed by run itself). */
struct os_job {
    struct os_job *next;
    void (*run)(struct os_job *job);
    struct os_actor *actor;
    struct leat_mail mail;
};

struct os_rmem_arena {
    struct leat_rmem_arena port;
    struct os_rmem *rmem;
    int fd; /* -1: no file yet */
    struct rmem_header *header;
    struct leat_rmem_grow *growing;
    struct os_job job; /* grow, or the last unmapping */
    bool job_out;
    bool retired;
    unsigned pins;                /* guarded by: rmem->lock */
    struct os_verbs_arena *verbs; /* NULL: not offered by verbs */
    char path[LEAT_OS_PATH_BYTES];
};

/* Everything of one world. */
struct os_rmem {
    struct leat_os_world *world;
    struct os_actor *host_actor;
    struct leat_rmem_host host;
    char folder[LEAT_OS_PATH_BYTES];   /* where new arenas lie */
    char data_dir[LEAT_OS_PATH_BYTES]; /* its real path */
    char boot_id[BOOT_ID_BYTES];
    bool in_memory; /* folder is a tmpfs: RDMA may register */
    uint64_t process_started, pid_space;

    pthread_mutex_t lock; /* leaf: arenas' table and pins, jobs */
    pthread_cond_t unpinned, wake;
    struct os_rmem_arena *arenas[LEAT_RMEM_ARENAS_MAX]; /* by (number - 1) mod the length */
    uint32_t generation[LEAT_RMEM_ARENAS_MAX];
    struct os_job *jobs, **jobs_last;
    bool stop, helper_started;
    pthread_t helper;

    struct leat_list maps; /* struct os_shm_map. Owner: the helper's thread */
    struct os_shm *shm[LEAT_CORES_MAX];
    struct os_verbs *verbs;     /* NULL: no device */
    struct leat_error no_verbs; /* why */
};

/* rmem_base.c */
/** A descriptor on an actor's loop. */
struct os_watch;
struct os_watch *leat_os_watch_open(struct os_actor *actor, int fd, void (*on_ready)(void *user),
                                    void *user);
void leat_os_watch_close(
    struct os_watch **watch); /* on_ready never runs again; the fd stays open */
/** The helper's thread. rmem: its argument. */
void *leat_os_helper_main(void *rmem);
void leat_os_job_start(struct os_rmem *rmem, struct os_job *job);
/** Start time and process number space of this process. */
void leat_os_process_identity(long pid, uint64_t *out_started, uint64_t *out_space);

/** NULL: none. Under rmem->lock. */
struct os_rmem_arena *leat_os_rmem_arena_locked(struct os_rmem *rmem,
                                                const struct leat_rmem_address *address);
/** The same, by host's actor. */
struct os_rmem_arena *leat_os_rmem_arena_find(struct os_rmem *rmem,
                                              const struct leat_rmem_address *address);

/* rmem_host.c */
leat_err leat_os_rmem_host_open(struct os_rmem *rmem, struct leat_error *error) LEAT_NODISCARD;
void leat_os_rmem_host_close(struct os_rmem *rmem);

/* rmem_shm.c: a writer on each core. */
leat_err leat_os_shm_open(struct os_rmem *rmem, struct os_actor *actor) LEAT_NODISCARD;
void leat_os_shm_close(struct os_rmem *rmem, struct os_actor *actor);
void leat_os_shm_maps_close(struct os_rmem *rmem);
/** The section of a grant; 0: the path is too long. */
size_t leat_os_shm_grant(const struct os_rmem_arena *arena, uint8_t out[RMEM_SECTION_BYTES]);

/* rmem_verbs*.c, or what stands for them where the libraries are not (rmem_noverbs.c). */
/** Look for a device and listen on it. LEAT_OK without one, too: rmem->verbs stays NULL and *error
 * says why. */
void leat_os_verbs_open(struct os_rmem *rmem, const char *address, struct leat_error *error);
leat_err leat_os_verbs_writer_open(struct os_rmem *rmem, struct os_actor *actor) LEAT_NODISCARD;
void leat_os_verbs_actor_close(struct os_rmem *rmem, struct os_actor *actor);
void leat_os_verbs_close(struct os_rmem *rmem);
/** A step has been mapped: register it and put its key into the header. Helper's thread. A step that
 * cannot be registered takes the arena out of verbs, with a line in the node log. */
void leat_os_verbs_step(struct os_rmem_arena *arena, uint64_t step);
size_t leat_os_verbs_grant(const struct os_rmem_arena *arena, uint8_t out[RMEM_SECTION_BYTES]);
/** No byte arrives any more by verbs when it returns. Host's actor. */
void leat_os_verbs_revoke(struct os_rmem_arena *arena);
/** Registrations go; before the memory is unmapped. Helper's thread, or after it was joined. */
void leat_os_verbs_release(struct os_rmem_arena *arena);

#endif
