/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `os` share: a world, its actors, their turn. */
#ifndef LEAT_OS_INTERNAL_H
#define LEAT_OS_INTERNAL_H

#include "base/intake.h"
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

enum {
    LEAT_OS_NAME_BYTES = 16, /* a thread's name, as the kernel limits it */
    LEAT_OS_PATH_BYTES = 4096,
    LEAT_OS_READERS_MAX = 16,
    LEAT_OS_WRITERS =
        4, /* two rounds of a store file, one of the catalogue, a piece of the flush */
    LEAT_OS_BUFFER_CLASSES = 16,
    OS_RANDOM_WORDS = 32, /* asked for together */
    OS_TOGETHER_MAX = 16, /* writes under way at the same time from one thread */
};

/* Buffers for kept bytes and copied sends: powers of two from 1 KiB to 32 MiB, so that a
 * connection grows without copying often. A few lie ready per actor. */
struct os_buffers {
    struct os_buffer *ready[LEAT_OS_BUFFER_CLASSES];
    size_t ready_bytes, ready_bytes_max; /* more is given back */
};

/* One actor's half of the net port. Guarded by: the actor's thread. */
struct os_net {
    uint8_t *read_buffer; /* made with the first connection */
    struct os_buffers buffers;
    struct leat_intake intake; /* of the capacity of all buffers that hold unconsumed bytes */
    struct leat_list conns;    /* all of this actor */
    struct leat_list ended;    /* of those not read from; the first seen comes first */
    struct leat_list ready;    /* something to deliver in a later callback */
    struct leat_list dirty;    /* something to write at the end of the turn */
    size_t copy_capacity;      /* of all buffers of copied sends */
    struct leat_list listeners;
    struct leat_send *done, **done_last; /* taken by the network, on_sent still to run */
    struct leat_send *lost, **lost_last; /* given to a connection that was gone already */
    uv_timer_t accept_timer;             /* runs only after accept() was refused resources */
    uv_timer_t stall_timer;              /* runs only while a connection waits for room */
    uv_timer_t end_timer;                /* runs only while some have ended */
};

/* Threads that run disk operations beside the actors': reads and zeros are many and long, and commits must not wait
 * for these. */
enum os_crew_kind { OS_READERS, OS_WRITERS, OS_CREWS };
struct os_crew {
    struct leat_os_world *world;
    enum os_crew_kind kind;
    pthread_cond_t wake;
    struct leat_list work; /* struct os_beside, taken in turn */
    unsigned count;
    pthread_t threads[LEAT_OS_READERS_MAX];
};

/* One actor's half of the disk port. */
struct os_disk_queue {
    struct leat_disk_io *first, **last; /* DISK: to run after this turn. Guarded by: its thread */
    struct leat_disk_io *done, **done_last;
    struct os_beside { /* for each crew. Guarded by: world->lock */
        struct leat_disk_io *first, **last;
        struct leat_list link; /* in the crew's work while it is not empty */
        struct os_actor *actor;
    } beside[OS_CREWS];
    unsigned long aio; /* made when first used; 0: none. Guarded by: its thread */
    bool aio_refused;
    unsigned beside_out; /* submitted and not yet delivered. Guarded by: its thread */
};

enum os_actor_state { OS_SLEEPING, OS_AWAKE };

struct os_actor {
    struct leat_os_world *world;
    unsigned number;
    enum leat_os_actor_kind kind;
    struct leat_env env;
    struct leat_clock clock;
    struct leat_random random;
    struct leat_post post;
    struct leat_net net_port;
    struct leat_disk disk_port;
    struct os_arena *arena;

    void *actor; /* as registered at start */
    struct leat_actor_ops ops;
    void (*on_start)(void *actor);
    char name[LEAT_OS_NAME_BYTES];
    int cpu;
    pthread_t thread;
    bool started, joined;

    uv_loop_t loop;
    uv_async_t async;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t wake_timer;
    uint64_t wake_at_us, timer_at_us;       /* wanted; what wake_timer is set to */
    uint64_t random_words[OS_RANDOM_WORDS]; /* the first random_left were not given out yet */
    unsigned random_left;

    /* Everything below the two stacks is touched by the actor's thread only. */
    _Atomic(struct leat_mail *) inbox; /* stack; pairs: mail_push / mail_take */
    _Atomic(struct leat_disk_io *)
        beside_done;   /* stack; pairs: leat_os_beside_done / beside_deliver */
    _Atomic int state; /* enum os_actor_state; see mail.c, SUBTLE */
    _Atomic bool stop;
    bool stopping, called;             /* called: a callback ran since the last on_turn_end */
    struct leat_mail *own, **own_last; /* mails to itself */
    struct os_net net;
    struct os_disk_queue disk;
};

struct leat_os_world {
    struct os_actor *actors[LEAT_ACTORS];
    struct os_rmem *rmem; /* NULL: no one-sided writes */
    char data_dir[LEAT_OS_PATH_BYTES];
    int data_fd; /* -1: no disk port */
    size_t ready_bytes_max;
    pthread_mutex_t lock; /* leaf: nothing is called while it is held */
    struct os_crew crews[OS_CREWS];
    bool crews_stop;
};

/* mail.c; any thread */
void leat_os_mail_push(struct os_actor *to, struct leat_mail *mail);
void leat_os_beside_done(struct os_actor *to, struct leat_disk_io *io);

/* errno.c */
leat_err leat_os_errno(int error); /* a failed file call as leat_err */
/* Why a file of the data directory can't be opened. Valid until the thread's next call. */
const char *leat_os_open_cause(int error);

/* actor.c */
void leat_os_actor_fini(struct os_actor *actor);

/* buffers.c */
struct os_buffer; /* header of a ready buffer */
/** How large a buffer for so many bytes is. */
size_t leat_os_buffer_capacity(size_t bytes);
uint8_t *leat_os_buffer_get(struct os_buffers *buffers, size_t bytes, size_t *out_capacity);
/** used: bytes of the buffers in use. The buffer is kept ready if these, the ready buffers and this buffer are
 * ready_bytes_max at most; otherwise it is freed. */
void leat_os_buffer_put(struct os_buffers *buffers, uint8_t *buffer, size_t capacity,
                        uint64_t used);
void leat_os_buffers_fini(struct os_buffers *buffers);

/* net.c */
leat_err leat_os_net_init(struct os_actor *actor);
/** Run what waits for a later callback. Returns whether any callback ran. */
bool leat_os_net_deliver(struct os_actor *actor);
void leat_os_net_flush(struct os_actor *actor);
bool leat_os_net_waiting(const struct os_actor *actor);
void leat_os_net_stop(struct os_actor *actor); /* begin closing all */
bool leat_os_net_stopped(const struct os_actor *actor);
void leat_os_net_fini(struct os_actor *actor);
void leat_os_net_drop_mail(struct leat_mail *mail);

/* disk_port.c */
void leat_os_disk_ports_init(struct os_actor *actor);

/* disk.c, disk_queue.c */
/** The calls of the port that block; the rest is NULL. */
struct leat_disk leat_os_disk_calls(struct os_actor *actor);
void leat_os_disk_queue_init(struct os_actor *actor);
void leat_os_disk_submit(void *ctx, struct leat_disk_io *io);
void leat_os_disk_io_run(struct leat_disk_io *io);
/** A write of which the kernel took `result` bytes, or, below zero, that failed with that errno. The rest is written
 * now. */
void leat_os_disk_write_ended(struct leat_disk_io *io, int64_t result);
/** Of a file that is written directly; else -1. */
int leat_os_file_direct_fd(const struct leat_file *file);
void leat_os_disk_run(struct os_actor *actor); /* what was submitted, on this thread */
bool leat_os_disk_deliver(struct os_actor *actor);
bool leat_os_disk_waiting(const struct os_actor *actor);
void leat_os_crews_init(struct leat_os_world *world);
leat_err leat_os_crew_start(struct leat_os_world *world, enum os_crew_kind kind, unsigned count);
void leat_os_crews_stop(struct leat_os_world *world);
void leat_os_crews_fini(struct leat_os_world *world);

/* disk_together.c */
/** Run these writes, several at a time where the kernel can; returns when all have ended. */
void leat_os_disk_together_run(struct os_disk_queue *queue, struct leat_disk_io *const *ios,
                               unsigned count);
void leat_os_disk_together_fini(struct os_disk_queue *queue);

/* rmem.c */
void leat_os_rmem_stop(struct os_rmem *rmem); /* joins the helper */
void leat_os_rmem_actor_fini(struct os_rmem *rmem, struct os_actor *actor);
void leat_os_rmem_close(struct os_rmem *rmem);

/* arena.c */
/* Join its thread: no grow request is touched after it. */
void leat_os_arena_stop(struct os_arena *arena);
void leat_os_arena_close(struct os_arena *arena);

/* Make every missing part of a path; option: the option that names the path. */
leat_err leat_os_directories_make(const char *path, const char *option,
                                  struct leat_error *error) LEAT_NODISCARD;

#endif
