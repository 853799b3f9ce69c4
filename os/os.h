/* SPDX-License-Identifier: Apache-2.0 */
/* The real ports: libuv loops, threads, files, named memory. Linked by programs and by libleat
 * only. */
#ifndef LEAT_OS_OS_H
#define LEAT_OS_OS_H

#include "base/port.h"

/* A set of actor threads that exchange mail: one per process, or per client. */
struct leat_os_world;
enum { LEAT_OS_READY_BYTES_MAX = 32 * 1024 * 1024 };
struct leat_os_world_options {
    const char *data_dir;    /* NULL: no disk port */
    unsigned reader_threads; /* for LEAT_DISK_READ and _ZERO; 0: default 2 */
    size_t ready_bytes_max;  /* of each actor's unused buffers; 0: LEAT_OS_READY_BYTES_MAX */
};
leat_err leat_os_world_create(const struct leat_os_world_options *options,
                              struct leat_os_world **out_world,
                              struct leat_error *error) LEAT_NODISCARD;
void leat_os_world_destroy(struct leat_os_world **world);
/** Mail from a thread that is no actor's (libleat's callers). leat_post's send() takes a mail to
 * the sender's own number for one from its own thread. Thread: any. */
void leat_os_world_post(struct leat_os_world *world, unsigned to, struct leat_mail *mail);

/* An actor's thread with its loop and its ports. kind says how disk operations run: on the actor's own thread between
 * turns (store and coordinator have threads of their own for this), or READs on the world's reader threads (cores). */
enum leat_os_actor_kind { LEAT_OS_ACTOR_CORE, LEAT_OS_ACTOR_DISK, LEAT_OS_ACTOR_CLIENT };
/** Make the ports of actor `number`. The env is valid until the world is destroyed. Thread:
 * startup. */
leat_err leat_os_actor_create(struct leat_os_world *world, unsigned number,
                              enum leat_os_actor_kind kind, const struct leat_env **out_env,
                              struct leat_error *error) LEAT_NODISCARD;
/** Start its thread: first `on_start(actor)` runs there, then events. cpu: pin to it, or -1.
 * Thread: startup. */
leat_err leat_os_actor_start(struct leat_os_world *world, unsigned number, void *actor,
                             const struct leat_actor_ops *ops, void (*on_start)(void *actor),
                             const char *thread_name, int cpu) LEAT_NODISCARD;
/** Ask a thread to end after closing its connections, and join it. Thread: not an actor's. */
void leat_os_actor_join(struct leat_os_world *world, unsigned number);
/** Nothing touches the actors' structs after it: arenas' threads are joined, and mail that joined
 * actors have not read is dropped. Call it after the last join and before freeing what requests and
 * mails lie in. Thread: not an actor's. */
void leat_os_world_settle(struct leat_os_world *world);

/** Attach an arena ("pool" in /dev/shm for a system account (uid < 1000), else in the data
 * directory) to an env; inherits what an earlier process of this boot left. */
leat_err leat_os_arena_open(struct leat_os_world *world, unsigned number, uint64_t limit_bytes,
                            struct leat_error *error) LEAT_NODISCARD;
/** Is it no file on a disk? Thread: startup. */
bool leat_os_arena_in_memory(const struct leat_os_world *world, unsigned number);
/** Give the pool's memory back when the world is destroyed: nothing in it is needed any more (a
 * clean stop wrote everything to disk). Thread: startup, or after the actor was joined. */
void leat_os_arena_discard(struct leat_os_world *world, unsigned number);
/* One-sided writes: fills env->rmems of all cores and env->rmem_host of one. */
struct leat_os_rmem_options {
    unsigned host; /* the core that the backup lives on */
    /* "HOST", the address of this node for other nodes. RDMA connections are accepted there, or, if no RDMA device
     * has this address, at the first address of a device. NULL: no verbs. */
    const char *verbs_host;
    bool no_shm;
};
/**
 * After all cores' leat_os_actor_create(), before their start. Arenas that an earlier process of
 * this data directory left are revoked and found by the host's each_inherited(). Machines without a
 * usable RDMA device just have no verbs; leat_os_rmem_no_verbs() tells why. Thread: startup.
 */
leat_err leat_os_rmem_open(struct leat_os_world *world, const struct leat_os_rmem_options *options,
                           struct leat_error *error) LEAT_NODISCARD;
/** Why there is no verbs transport; NULL: there is. Valid as long as the world. */
const char *leat_os_rmem_no_verbs(const struct leat_os_world *world);
/* The machine, as text: nodes in containers of one machine have the same, virtual machines do not.
 * "": not known. */
enum { LEAT_OS_MACHINE_ID_BYTES = 64 };
void leat_os_machine_id(char out[LEAT_OS_MACHINE_ID_BYTES]);

/** Lock the data directory; LEAT_E_LOCKED names the process that has the lock, at once if the process lives; the end
 * of a killed process (its memory not yet freed) is waited for, up to 30 s. Makes the directory if missing.
 * LEAT_E_CONFIG: the directory has files of another program. own_files (up to a NULL): files that this process reads;
 * they may be in the directory before its first start. Thread: startup; blocks. */
leat_err leat_os_lock(const char *data_dir, const char *const *own_files,
                      struct leat_error *error) LEAT_NODISCARD;
/** Could an actor listen there now? The error is the same as from listening. Thread: startup; blocks. */
leat_err leat_os_address_try(const char *address, struct leat_error *error) LEAT_NODISCARD;
/** sd_notify without a library: a datagram to $NOTIFY_SOCKET when set. */
void leat_os_notify(const char *state);
uint64_t leat_os_cpu_us(void);
uint64_t leat_os_memory_bytes(void); /* of the machine, or of the control group if that is less */
unsigned leat_os_cores(void);        /* that this process may use */
/* Of the files that this process may have open (ulimit -n): for connections of clients, and for what is its own. */
struct leat_os_files {
    uint64_t clients, kept;
};
void leat_os_files(struct leat_os_files *out);
enum { LEAT_OS_KEY_BYTES = 32 };
/**
 * The key in a file: one line of 64 hexadecimal digits, of this account or root, for no other account to read
 * (LEAT_E_CONFIG names the file and what is wrong). A missing file is made, with 32 random bytes, mode 0600, durable,
 * and *out_made says so; several processes at once get the same key. directories: missing directories of the path are
 * made, too. Thread: startup; blocks.
 */
leat_err leat_os_key_file(const char *path, bool directories, uint8_t out_key[LEAT_OS_KEY_BYTES],
                          bool *out_made, struct leat_error *error) LEAT_NODISCARD;
/** "$XDG_STATE_HOME/leat" or "~/.local/state/leat". */
leat_err leat_os_default_data_dir(char out_path[4096], struct leat_error *error) LEAT_NODISCARD;

#endif
