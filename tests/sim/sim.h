/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated world: one thread, one seed, virtual time. Private to tests/sim and leat-sim.
 *
 * A world has processes, a process has actors, an actor has the simulated ports of base/port.h.
 * Everything that happens is an event in one queue, ordered by (time, order of scheduling); every
 * choice comes from a generator seeded by (seed, purpose). So a seed replays exactly.
 */
#ifndef LEAT_TESTS_SIM_SIM_H
#define LEAT_TESTS_SIM_SIM_H

#include <setjmp.h>

#include "base/intake.h"
#include "base/port.h"
#include "base/rmem.h"
#include "tests/sim/trace.h"

struct sim_world;
struct sim_process;
struct sim_actor;
struct sim_disk;
struct sim_arena;
struct sim_rmem_host;

/* ---- generator ---- */
struct sim_rng {
    uint64_t state;
};
/** Two purposes never share a sequence: adding a fault does not move the workload. */
void sim_rng_init(struct sim_rng *rng, uint64_t seed, const char *purpose);
uint64_t sim_rng_next(struct sim_rng *rng);
/** All generators go on otherwise from now on; 0: as their seed has it. */
void sim_dice_throw(uint64_t value);
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t limit);                /* [0, limit) */
uint64_t sim_rng_between(struct sim_rng *rng, uint64_t low, uint64_t high); /* [low, high] */
bool sim_rng_chance(struct sim_rng *rng, uint32_t per_mille);

/* ---- what is counted over a run; a kind counted zero times fails it ---- */
enum sim_fault {
    SIM_FAULT_KILL,      /* kill -9 of the server with unanswered appends */
    SIM_FAULT_KILL_CALL, /* the same inside a callback, at a port call */
    SIM_FAULT_POWER,     /* power cut with unanswered appends */
    SIM_FAULT_POWER_OP,  /* the same aimed at a disk operation: before, inside or after it */
    SIM_FAULT_OVERLAP,   /* a death while several writes or flushes of one process were under way */
    SIM_FAULT_TORN,      /* a power cut kept some sectors of one write and lost others */
    SIM_FAULT_LOST,      /* a power cut lost an unflushed write */
    SIM_FAULT_RESET,     /* connections reset, bytes under way half delivered */
    SIM_FAULT_REFUSE,    /* a connect was refused while the server listened */
    SIM_FAULT_PARTITION, /* a client cut off for a while */
    SIM_FAULT_STALL,     /* the disk stood still */
    SIM_FAULT_FULL,      /* an allocation or write was refused for want of space */
    SIM_FAULT_NO_FILES,  /* an open was refused: the process has as many as it may */
    SIM_FAULT_IO_ERROR,  /* a write or flush failed; the server is restarted later */
    SIM_FAULT_SLOW,      /* a client that hardly runs */
    SIM_FAULT_CLOCK,     /* the wall clock jumped */
    SIM_FAULT_PAUSE,     /* the server stood still (SIGSTOP) */
    SIM_FAULT_RESTART,   /* orderly stop and start */
    SIM_FAULT_CUT_START, /* killed or cut while coming up */
    SIM_FAULT_RESEND,    /* the raw producer resent an answered or unanswered batch */
    SIM_FAULT_GAP,       /* the raw producer left a gap */
    SIM_FAULT_POISON, /* the raw producer sent a batch that nobody could read, or that uncompresses to too much */
    SIM_FAULT_OLD_EPOCH,  /* the raw producer used a fenced epoch */
    SIM_FAULT_DEAF,       /* a reader that asks and never reads was cut off */
    SIM_FAULT_CUT_FRAMES, /* strangers began more frames than a core has room for */
    SIM_FAULT_FLIP,       /* a bit of a stored byte was flipped */
    SIM_FAULT_LOST_FILE,  /* a store file is gone, or has lost its end */
    SIM_FAULT_TRIM,       /* no fault: a log begins later by request */
    SIM_FAULT_SWIFT,      /* no fault: a stream that nobody troubles was answered in time */
    SIM_FAULT_TORMENT,    /* a core was given much to do: torment.c */
    SIM_FAULTS_ONE_NODE,  /* from here on: of worlds with several nodes */
    SIM_FAULT_RMEM_TORN = SIM_FAULTS_ONE_NODE, /* a one-sided write arrived in part */
    SIM_FAULT_RMEM_ERROR,                      /* a one-sided write failed */
    SIM_FAULT_RMEM_MIXED,                      /* ... in another order than that of its bytes */
    SIM_FAULT_RMEM_LATE,                       /* ... after its writer had died */
    SIM_FAULT_RMEM_WRITER,                     /* its writer died amid a one-sided write */
    SIM_FAULT_RMEM_TARGET,                     /* its target died amid a one-sided write */
    SIM_FAULT_RMEM_SLOW,                       /* one was sent again and again for long */
    SIM_FAULT_RMEM_FULL,                       /* no memory for what others write */
    SIM_FAULT_NODE_CUT,                        /* one machine did not reach another, one way */
    SIM_FAULT_NODE_PARTED,                     /* two machines did not reach each other */
    SIM_FAULT_NODE_ALONE,                      /* one reached none of the others */
    SIM_FAULT_HALF_OPEN,                       /* one end of a connection went, unheard */
    SIM_FAULT_LATE_BYTES,    /* a connection's bytes came after its end was known */
    SIM_FAULT_DRIFT,         /* no fault: a machine's clock runs faster or slower */
    SIM_FAULT_DELAY,         /* bytes between two machines were slow */
    SIM_FAULT_SLOW_LINE,     /* ... or few, and more were to be sent than the line took */
    SIM_FAULT_LEADER,        /* the coordinators' leader was killed */
    SIM_FAULT_SEVERAL,       /* several machines died at once */
    SIM_FAULT_ROOM,          /* all of them did */
    SIM_FAULT_MOVE,          /* no fault: a streamlet was moved */
    SIM_FAULT_AWAY,          /* a machine was away for seconds */
    SIM_FAULT_TRUNCATED,     /* a file lost its end */
    SIM_FAULT_CLOSED_OWN,    /* a closed segment rotted on its owner's disk */
    SIM_FAULT_CLOSED_COPY,   /* ... on that of a node with a copy */
    SIM_FAULT_CLOSED_CUT,    /* ... as its file lost its end */
    SIM_FAULT_REPAIR_ERROR,  /* the disk refused a write or a flush of a repair */
    SIM_FAULT_REPAIR_POWER,  /* the power went amid a repair's write or flush */
    SIM_FAULT_REPAIR_KILL,   /* ... or its process was killed there */
    SIM_FAULT_ROW,           /* the row of a closed segment rotted, between others */
    SIM_FAULT_FILLED,        /* no fault: its owner has it again */
    SIM_FAULT_REPAIRED,      /* no fault: it was written anew */
    SIM_FAULT_TOLD_TROUBLE,  /* no fault: at a look of told.c a log waited or was damaged */
    SIM_FAULT_TOLD_LACKING,  /* ... of a log that lacks copies */
    SIM_FAULT_TOLD_AWAY,     /* ... of a node that is away */
    SIM_FAULT_TOLD_FULL,     /* ... of a full disk */
    SIM_FAULT_TOLD_ROUND,    /* no fault: a quiet period in which nodes were asked */
    SIM_FAULT_TOLD_GROUPS,   /* no fault: at a look of told_groups.c a group was there */
    SIM_FAULT_RUNNING_DISK,  /* a disk's bit flipped, or a file lost its end, while its node ran */
    SIM_FAULT_STALE_DISK,    /* a machine's disk was put back to what it was */
    SIM_FAULT_EMPTY_DISK,    /* a machine came back with an empty disk */
    SIM_FAULT_EMPTY_VOTER,   /* ... and is one of the coordinators */
    SIM_FAULT_AMID_OPEN,     /* a death while an answer to `open` was awaited */
    SIM_FAULT_AMID_RESUME,   /* ... while a hibernated segment was resumed */
    SIM_FAULT_AMID_VERSION,  /* ... while acks waited for a higher version */
    SIM_FAULT_AMID_MOVE,     /* ... while a streamlet was moved */
    SIM_FAULT_AMID_RECOVERY, /* ... of the leader, in an attempt of recovery */
    SIM_FAULT_LATE_WORD,     /* a leader was cut off with an entry of recovery on its way */
    SIM_FAULT_COMMIT_LOST,   /* the power went with a group's commits on their way, behind others */
    SIM_FAULT_DAMAGED_END,   /* bits of open segments flipped, the power gone and a machine away */
    SIM_FAULT_DELETED,       /* no fault: a stream was deleted */
    SIM_FAULT_DELETED_MOVE,  /* ... while a streamlet of it was moved */
    SIM_FAULT_DELETED_AWAY,  /* ... while a node was away */
    SIM_FAULT_DELETED_UNHEARD, /* ... and an owner of it did not hear of that at once */
    SIM_FAULT_OLD_HOME,        /* a home was followed unheard, and a member asked the old one */
    SIM_FAULT_AMID_FILL,     /* trims, moves and power while a copy of a closed segment was made */
    SIM_FAULT_AMID_LEAVE,    /* connections broke while a backup was being told to drop a copy */
    SIM_FAULT_AMID_DRAIN,    /* no fault: what one did struck while a streamlet moved */
    SIM_FAULT_AMID_ADOPTION, /* no fault: the disk stood still while a replica became a log's */
    SIM_FAULT_LATE_DROP, /* an owner's word that a copy is one too many was late, and its log went on */
    SIM_FAULT_HANDED_ON, /* a log went on while a replica was on its way to it */
    SIM_FAULT_OLD_OWNER, /* a reader by offset asked an owner of before, which others had followed unheard */
    SIM_FAULT_TORN_BESIDE, /* an owner was killed whose backup had a torn copy beside a whole one */
    SIM_FAULT_FRONT,       /* a disk answered no read before its node knew where a log begins */
    SIM_FAULT_LOSS_AMID, /* no fault: a loss was accepted while older segments came to the log's new owner */
    SIM_FAULT_UNASKED,  /* the node with the whole copy of a damaged segment was not asked */
    SIM_FAULT_IMPOSTOR, /* a stranger without the key was at a node's door */
    SIM_FAULT_STRANGER, /* no fault: a seed has a hostile client: stranger_seed.c */
    SIM_FAULT_HEAP,   /* no fault: what a node's heap takes grew or shrank, and its pool with it */
    SIM_FAULT_SHRUNK, /* ... a step of its memory went back to the kernel */
    SIM_FAULT_LOGS_WAIT, /* ... logs waited for one */
    SIM_FAULT_STAGE,     /* no fault: the moment of the seed's stage came: stage.h */
    SIM_FAULTS,
};
const char *sim_fault_name(enum sim_fault fault);
void sim_fault_struck(struct sim_world *world, enum sim_fault fault);

/* ---- events ---- */
struct sim_event { /* a cache line */
    _Alignas(64) uint64_t at_us;
    struct sim_actor *actor; /* NULL: the world's own, run as soon as its time comes */
    void (*run)(struct sim_world *world, struct sim_event *event);
    void *a, *b;
    uint64_t n;
    struct sim_event *next;
};
/* Events in the order of scheduling; see world.c. */
enum { SIM_BUCKETS = 65 };
struct sim_bucket {
    struct sim_event *first, *last;
    uint64_t first_us; /* the least time; of an empty bucket: undefined */
};
enum { SIM_FAIL_TEXT_BYTES = 512 };

/* A machine that is to be struck when a part of a one-sided write has arrived: see rmem.h. */
struct sim_rmem_aim {
    char host[24];
    bool at_target; /* the one that is written to; else the writer */
    uint64_t n;     /* how many such moments from now; 0: never */
    void (*strike)(void *arg);
    void *arg;
};

/* Where a one-sided write goes, when it is posted and when bytes of it arrive. */
struct sim_rmem_reach {
    const struct sim_process *from, *to;
    const struct leat_rmem_arena *arena;
    uint64_t offset;
    uint32_t bytes;
    uint64_t place; /* what rmem_place() said */
    bool posted;
};

struct sim_world {
    const struct sim_ports *ports;
    uint64_t seed, now_us;
    int64_t wall_base_ms;
    struct sim_rng schedule, net, disk, fault, work;
    struct sim_bucket buckets[SIM_BUCKETS];
    uint64_t buckets_from_us, buckets_used; /* bits: bucket 1 is bit 0 */
    uint64_t next_order, event_count;
    uint64_t dice_turn; /* on_dice is called when event_count comes to that; 0: not */
    void (*on_dice)(struct sim_world *world);
    struct sim_event *free_events;
    struct sim_event_block *event_blocks;
    uint64_t trace_hash;
    bool tracing;
    /* Looks at a process after each turn of it, and after its death; NULL: nobody does. Draws nothing, changes
     * nothing. */
    void (*watch)(void *arg, struct sim_process *process);
    void *watch_arg;
    /* The actor whose code runs now, and the way out of it when its process dies inside a call. */
    struct sim_actor *running;
    /* How long what was done since it was asked last keeps the actor busy that did it, beside; NULL: not at all. */
    uint64_t (*weigh)(void);
    struct sim_process *entered;
    struct sim_event *current;
    jmp_buf escape;
    struct sim_process *processes;
    struct leat_conn *conns, *conns_over;
    uint64_t conns_made;
    struct sim_listener *listeners, *listeners_over;
    uint64_t refuse_until_us;
    struct sim_cut *cuts;
    struct sim_rmem_host *rmem_hosts;
    struct sim_rmem_aim rmem_aim;
    struct {
        char from[24], to[24]; /* machines; "": none is to be torn */
        const uint8_t *at;     /* where one was */
    } rmem_tear;
    bool rmem_full;                /* arenas do not grow */
    uint64_t rmem_grow_us;         /* what a step of one takes; 0: some milliseconds at most */
    uint32_t rmem_error_per_mille; /* of one-sided writes fail */
    uint32_t rmem_slow_per_mille;  /* ... of those over a network take up to half a second */
    /* Who follows one-sided writes, NULL: nobody. Which place does its writer mean, and where does one go? */
    uint64_t (*rmem_place)(const struct leat_rmem_write *write);
    void (*on_rmem_reach)(const struct sim_rmem_reach *reach);
    /* How much longer than usual does this write take? Over a network only. NULL: as long as usual. */
    uint64_t (*rmem_hold_us)(const struct leat_rmem_write *write, enum leat_rmem_kind kind);
    uint64_t faults[SIM_FAULTS];
    /* The same, of those that struck while somebody waited for something; NULL: always. */
    uint64_t counted[SIM_FAULTS];
    uint32_t room_divisor; /* of the room for cut frames; 0, 1: as servers want it */
    bool silent_power;     /* whoever loses power may be missed only by its silence */
    bool (*somebody_waits)(void *arg);
    void *waits_arg;
    char failure[SIM_FAIL_TEXT_BYTES]; /* first failure; "" = none */
};

/** With all ports: ports.c. */
struct sim_world *sim_world_create(uint64_t seed, bool tracing);
struct sim_world *sim_world_with(const struct sim_ports *ports, uint64_t seed, bool tracing);
void sim_world_destroy(struct sim_world **world);
/** Run events until none is left before until_us, `stop` is true, or a failure was noted. */
void sim_world_run(struct sim_world *world, uint64_t until_us, const bool *stop);
/** Run fn later as the world itself. */
struct sim_event *sim_world_at(struct sim_world *world, uint64_t at_us,
                               void (*run)(struct sim_world *, struct sim_event *), void *a);
/** Note a failure; the first one stands. "A3 duplicate: …" */
void sim_fail(struct sim_world *world, const char *format, ...) LEAT_PRINTF(2, 3);
/** A line of the trace. The kind of the line follows from the source file that says it: trace.h. */
#define sim_trace(world, ...) sim_trace_line(world, __FILE__, __VA_ARGS__)
void sim_trace_line(struct sim_world *world, const char *file, const char *format, ...)
    LEAT_PRINTF(3, 4);
void sim_hash(struct sim_world *world, uint64_t value);

/* ---- processes and actors ---- */
enum sim_death { SIM_DEATH_KILL, SIM_DEATH_POWER, SIM_DEATH_EXIT };

/* What the world calls of the ports above it. */
struct sim_ports {
    void (*attach)(struct sim_actor *actor);     /* a new actor gets its ports */
    void (*turn_ended)(struct sim_actor *actor); /* what it has sent leaves */
    void (*process_died)(struct sim_process *process, enum sim_death death);
    void (*actor_fini)(struct sim_actor *actor);
    void (*world_fini)(struct sim_world *world);
};

struct sim_process {
    struct sim_world *world;
    struct sim_process *next;
    char name[24];
    char host[24]; /* the machine it runs on; "" = one of its own */
    bool alive, dying;
    enum sim_death death;
    uint64_t die_in_calls;   /* 0: no; else die at that port call from now */
    int64_t clock_offset_us; /* monotonic clock of this boot */
    int32_t clock_ppm;       /* how much faster than the world's it runs, in millionths */
    int64_t wall_jump_ms;
    uint64_t paused_until_us, cut_off_until_us;
    struct sim_disk *disk;
    struct sim_arena *arena;
    struct sim_rmem_host *rmem_host;
    uint64_t
        answer_us_of_byte; /* how long whoever sends to it is busy with a byte; 0: as with others */
    struct sim_actor *actors;
    void (*on_death)(struct sim_process *process, enum sim_death death);
    void *owner;
    struct leat_list memory; /* that it owns: heap.c */
};

struct sim_actor {
    struct sim_process *process;
    struct sim_world *world;
    struct sim_actor *next; /* of the process */
    unsigned number;
    void *self;
    const struct leat_actor_ops *ops;
    void (*after_turn)(struct sim_actor *actor); /* somebody who only looks; NULL: nobody */
    struct sim_event *inbox_first, *inbox_last;
    bool turn_scheduled;
    uint64_t turn;       /* number of the one that is scheduled */
    uint64_t free_at_us; /* busy until then */
    uint64_t work_us;    /* that this turn takes, beside */
    uint64_t wake_at_us, wake_scheduled_us;
    unsigned spins; /* turns in a row that the clock alone began and that asked for a past time */
    uint64_t mail_last_us[LEAT_ACTORS]; /* to each: keeps the order of a pair */
    struct sim_rng random;
    struct leat_disk_io *disk_first, *disk_last;
    bool disk_busy, disk_started;
    bool disk_drained; /* its event finds the operation done already */
    uint64_t disk_op;  /* number of the one that has started */
    uint8_t *disk_stage;
    struct sim_beside *besides; /* chains of operations beside the queue, under way */
    struct leat_conn *dirty_conns;
    struct leat_intake intake;
    bool stall_watched;
    size_t copied_bytes; /* by send_copy(), which the network has not taken */
    /* As a client: of a connection it reads so many bytes at a time, and so many are on their way to it, at most; 0: as
     * many as there are, and as the network draws. */
    size_t read_bytes_max, window_bytes;
    struct leat_clock clock;
    struct leat_random random_port;
    struct leat_post post;
    struct leat_net net;
    struct leat_disk disk;
    struct leat_env env;
};

struct sim_process *sim_process_create(struct sim_world *world, const char *name);
/** Make an actor with its ports. disk, arena: what the process has. */
struct sim_actor *sim_actor_create(struct sim_process *process, unsigned number);
/** Say what it is; from then on events are delivered. */
void sim_actor_register(struct sim_actor *actor, void *self, const struct leat_actor_ops *ops);
/** Post an event to an actor, delivered within a turn of it. */
struct sim_event *sim_actor_post(struct sim_actor *actor, uint64_t delay_us,
                                 void (*run)(struct sim_world *, struct sim_event *), void *a);
/** Run code as this process, outside a turn (start-up). False when the process died in it. */
bool sim_process_enter(struct sim_process *process, void (*run)(void *arg), void *arg);
/** The process stands still until then, or longer: a longer pause that has begun is not cut short. */
void sim_process_pause(struct sim_process *process, uint64_t until_us);
/** It stands still no longer. */
void sim_process_go_on(struct sim_process *process);
/** End it now. Does not return when called from the process's own code. */
void sim_process_die(struct sim_process *process, enum sim_death death);
/** Every port call comes through here: where a kill at a call strikes. */
void sim_port_called(struct sim_actor *actor);
uint64_t sim_process_now_us(const struct sim_process *process);

/* ---- net ---- */
extern const struct leat_net sim_net_ops;
void sim_net_actor_flush(struct sim_actor *actor);
void sim_net_process_died(struct sim_process *process, enum sim_death death);
/** Reset all connections between the process and others; returns how many. */
unsigned sim_net_reset(struct sim_process *process, uint32_t per_mille);
/** All between these two. */
void sim_net_reset_between(struct sim_process *one, struct sim_process *other);
/** Nothing goes from one machine to the other until then; the way back is a cut of its own. Bytes and
 * connects wait for it. 0: healed. */
void sim_net_cut(struct sim_world *world, const char *from_host, const char *to_host,
                 uint64_t until_us);
/** The time until which no byte from one process reaches the other; 0: bytes arrive. */
uint64_t sim_net_cut_until(const struct sim_process *from, const struct sim_process *to);
/** How long bytes take between two machines at least, from now on. */
void sim_net_delay(struct sim_world *world, const char *from_host, const char *to_host,
                   uint64_t delay_us);
/** So many bytes a second go from one machine to the other at most, until then; the way back is a line of its own. 0:
 * as many as come. */
void sim_net_rate(struct sim_world *world, const char *from_host, const char *to_host,
                  uint64_t bytes_per_s, uint64_t until_us);
bool sim_net_is_slow(const struct sim_process *from, const struct sim_process *to);
void sim_net_close_all(struct sim_process *process);
/** One end of some connections goes, and the other end learns of that only when it sends something after that time.
 * Returns how many connections. */
unsigned sim_net_half_open(struct sim_process *process, uint32_t per_mille, uint64_t until_us);
/** What goes over some connections of a process from now on arrives at that time, and its own end goes before: it may
 * have connected anew, and said the same again, when the other end hears of what was said first. */
void sim_net_late(struct sim_process *process, uint32_t per_mille, uint64_t until_us);
/** What one process has queued for another (NULL: for all), on connections open at its own end. */
struct sim_owed {
    unsigned open;
    size_t waiting_bytes;
    uint64_t since_us; /* the network took nothing of the one that waits longest since then */
    const struct sim_process *longest; /* who that is */
};
struct sim_owed sim_net_owed(const struct sim_process *from, const struct sim_process *to);
void sim_net_fini(struct sim_world *world);

/* ---- disk ---- */
/** Bytes as a process would read them. */
void sim_file_peek(const struct leat_file *file, uint64_t offset, void *to, size_t bytes);
/** Where they are, at most *bytes in one piece: fewer where a piece ends. NULL: they are zeros. View:
 * until the file changes. */
const uint8_t *sim_file_view(const struct leat_file *file, uint64_t offset, uint32_t *bytes);
extern const struct leat_disk sim_disk_ops;
enum sim_cut_phase { SIM_CUT_BEFORE, SIM_CUT_INSIDE, SIM_CUT_AFTER };
struct sim_disk *sim_disk_create(struct sim_world *world);
void sim_disk_destroy(struct sim_disk **disk);
/** Power cut at operation number n from now on (1 = the next); 0: none. */
void sim_disk_aim(struct sim_disk *disk, uint64_t n, enum sim_cut_phase phase,
                  void (*on_cut)(void *arg), void *arg);
/** Asked before, inside and after every operation; true: the power is cut there, and no more
 * questions are asked. */
typedef bool (*sim_sweep_fn)(void *arg, uint64_t op, enum sim_cut_phase phase);
void sim_disk_sweep(struct sim_disk *disk, sim_sweep_fn sweep, void *arg);
/** Asked in the middle of every write and flush that runs beside a queue: what becomes of it? */
enum sim_amid { SIM_AMID_NOTHING, SIM_AMID_ERROR, SIM_AMID_KILL, SIM_AMID_POWER };
typedef enum sim_amid (*sim_amid_fn)(void *arg, const struct leat_disk_io *io);
void sim_disk_amid(struct sim_disk *disk, sim_amid_fn amid, void *arg);
uint64_t sim_disk_ops_count(const struct sim_disk *disk);
void sim_disk_reseed(struct sim_disk *disk, uint64_t seed);
void sim_disk_set_full(struct sim_disk *disk, bool full);
bool sim_disk_is_full(const struct sim_disk *disk);
/** Nothing is opened, and no directory synced: the process has as many files open as it may. */
void sim_disk_set_no_files(struct sim_disk *disk, bool none);
void sim_disk_stall(struct sim_disk *disk, uint64_t until_us);
/** Reads alone, or writes and flushes alone. */
void sim_disk_stall_reads(struct sim_disk *disk, uint64_t until_us);
void sim_disk_stall_writes(struct sim_disk *disk, uint64_t until_us);
void sim_disk_fail_next(struct sim_disk *disk, enum leat_disk_kind kind);
/** The next write to this place of a file fails; file NULL: none. */
void sim_disk_fail_place(struct sim_disk *disk, const struct leat_file *file, uint64_t offset,
                         uint64_t bytes);
/** Errors that were asked for and have not struck yet are called off. */
void sim_disk_no_errors(struct sim_disk *disk);
/** The process is killed before the next flush of the file `path` takes effect; NULL: of none. True: that has happened
 * since the last call. */
bool sim_disk_kill_at_flush(struct sim_disk *disk, const char *path);
/** The next flush of a store file that has grown since its last flush fails. */
void sim_disk_fail_grown(struct sim_disk *disk, bool fails);
/** Has such a flush failed? */
bool sim_disk_failed_grown(const struct sim_disk *disk);
/** From now on the space of the end that a file loses is free: other disks keep this space for the file. */
void sim_disk_crash_gives(struct sim_disk *disk);
/** Did an injected error strike since the last call? */
bool sim_disk_took_error(struct sim_disk *disk);
/** Did a file go back to what was flushed at the last death, because a flush of it had failed? */
bool sim_disk_lost_flush(const struct sim_disk *disk);
void sim_disk_process_died(struct sim_process *process, enum sim_death death);
void sim_disk_actor_fini(struct sim_actor *actor);
/** Flip one bit of a file's byte, flushed and cached. False when there is no such byte. */
bool sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t offset, unsigned bit);
struct sim_disk_place {
    char path[160];
    uint64_t offset;
};
/** A byte of a file whose path begins with `prefix`, of a file with bytes, near a byte that is not
 * zero. False: this draw found none. */
bool sim_disk_pick(struct sim_disk *disk, struct sim_rng *rng, const char *prefix,
                   struct sim_disk_place *out_place);
/** What a reader would see there. False beyond the file's end. */
bool sim_disk_peek(struct sim_disk *disk, const char *path, uint64_t offset, void *to,
                   size_t bytes);
uint64_t sim_disk_file_bytes(struct sim_disk *disk, const char *path);
/** A file ends there, on the disk too. False when it is no longer than that. */
bool sim_disk_truncate(struct sim_disk *disk, const char *path, uint64_t bytes);
/** The same, but what was allocated behind it stays so. */
bool sim_disk_cut_end(struct sim_disk *disk, const char *path, uint64_t bytes);
/** A file of a folder is gone, on the disk too. */
bool sim_disk_lose(struct sim_disk *disk, const char *path);
/** Nothing is on it any more: another disk. No process may use it. */
void sim_disk_empty(struct sim_disk *disk);
/** The state of the disk now, as a reader sees it: it is the caller's, to be put back or never. */
struct sim_disk_kept *sim_disk_keep(struct sim_disk *disk);
/** Everything is as it was then. No process may use it. */
void sim_disk_put_back(struct sim_disk *disk, const struct sim_disk_kept *kept);

/* ---- one-sided writes: rmem.h ---- */
void sim_rmem_fini(struct sim_world *world);
void sim_rmem_power_cut(struct sim_rmem_host *host);

/* ---- map.c ---- */
/** Address space: zeros, of which only what is touched takes memory. */
void *sim_map(uint64_t bytes);
void sim_unmap(void *base);
/** Give all of it back. Nobody may use any of it after that. */
void sim_maps_drop(void);

/* ---- arena ---- */
struct sim_arena *sim_arena_create(struct sim_world *world, uint64_t limit_bytes);
void sim_arena_destroy(struct sim_arena **arena);
/** The port for a new process: inherits unless the power was cut since. */
struct leat_arena *sim_arena_attach(struct sim_arena *arena, struct sim_actor *actor);
/** After a power cut, or when what is in it has been given up. */
void sim_arena_empty(struct sim_arena *arena);

#endif
