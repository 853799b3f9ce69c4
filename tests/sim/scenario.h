/* SPDX-License-Identifier: Apache-2.0 */
/* One seed: a server on simulated ports, its clients, the faults, and the verdict. Private to the
 * simulator. */
#ifndef LEAT_TESTS_SIM_SCENARIO_H
#define LEAT_TESTS_SIM_SCENARIO_H

#include "base/bug.h"
#include "broker/node.h"
#include "consumer/engine.h"
#include "producer/engine.h"
#include "tests/sim/check.h"
#include "tests/sim/dice.h"
#include "tests/sim/life.h"
#include "tests/sim/sim.h"
#include "tests/sim/visits.h"

#define SIM_ADDRESS       "127.0.0.1:7700"
#define SIM_KAFKA_ADDRESS "127.0.0.1:9092"

enum {
    SIM_STREAMS = 4,
    SIM_CORES_MAX = 3,
    SIM_CLIENTS_MAX = 96,
    SIM_CLIENT_TIMERS = 32,
    SIM_REBOOTS_MAX = 400,
    SIM_SERVERS_MAX = 5,
    SIM_VOTERS_MAX = 3,
    SIM_CLUSTER_FAULTS = 29,
    SIM_ROTS_MAX = 256,
    SIM_CLOSED_LAST = 6,
    SIM_SCRUB_BYTES_PER_SECOND = 4 * 1024 * 1024, /* as leatd has it */
    SIM_BATCHES = 500,                            /* acked in a seed of one server, at least */
};

struct sim_stream {
    char name[24];
    struct leat_stream_settings settings;
    uint32_t id; /* the server's; 0 = not made yet */
    bool trims;
};

struct scenario;

/* What becomes of a machine's disk while it is down. */
enum sim_damage {
    SIM_DAMAGE_NONE,
    SIM_DAMAGE_FLIP,
    SIM_DAMAGE_TRUNCATE,
    SIM_DAMAGE_STALE,
    SIM_DAMAGE_EMPTY,
};

/* One machine and the node on it. */
struct sim_server {
    struct scenario *scenario;
    unsigned number;
    char name[12], address[32], node_address[32]; /* "node1", "node1:7700", "node1:7701" */
    char host[8];                                 /* "m0"; "": each node has a machine of its own */
    char kafka_address[32];                       /* "node1:9092" */
    struct leat_door *kafka;
    const char *voters[SIM_VOTERS_MAX];
    struct sim_disk *disk;
    struct sim_arena *arena;
    struct sim_rmem_host *rmem_host; /* NULL: alone */
    uint64_t powered_us;             /* when its power came back */
    int32_t clock_ppm;               /* its clock's rate: sim.h */
    uint64_t ready_us;               /* when it said so, by its own clock */
    struct sim_process *process;
    struct leat_node *node;
    struct leat_env core_envs[SIM_CORES_MAX];
    struct sim_actor *cores[SIM_CORES_MAX], *store, *coordinator;
    bool ready, stopping, down_wanted;
    unsigned boots, failed_boots;
    enum sim_damage damage; /* done before it starts again */
    bool corrupt;           /* bytes of its files are not what was written there */
    bool older;             /* its disk was put back to an earlier state: the node may be refused */
    bool forgot;            /* a voter with an empty disk: to be replaced */
    struct sim_disk_kept *kept;
    uint64_t away_us_max; /* how long the next death keeps it away, at most; 0: a short while */
    char last_failure[300];
};

/* Who looks at a server, or strikes it, when it starts or dies. */
struct sim_server_watch {
    void (*boots)(struct sim_server *server);   /* about to start */
    void (*created)(struct sim_server *server); /* its process and actors are there, no node yet */
    void (*started)(struct sim_server *server); /* its node is there */
    void (*ready)(struct sim_server *server);   /* the node has said so */
    void (*stops)(struct sim_server *server);   /* an orderly stop begins */
    void (*died)(struct sim_server *server, enum sim_death death);
};

struct sim_client;
struct sim_stage;

enum sim_client_kind {
    SIM_CLIENT_CONTROL, /* makes streams; the operator who accepts loss */
    SIM_CLIENT_PRODUCER,
    SIM_CLIENT_RAW,
    SIM_CLIENT_READER,         /* alone, from the beginning */
    SIM_CLIENT_MEMBER,         /* of an ordered group, commits */
    SIM_CLIENT_SHARER,         /* of a parallel group */
    SIM_CLIENT_VERIFIER,       /* the final pass */
    SIM_CLIENT_DEAF,           /* asks and never reads */
    SIM_CLIENT_KAFKA_PRODUCER, /* by Kafka's protocol: kafka_client.h */
    SIM_CLIENT_KAFKA_READER,
    SIM_CLIENT_KAFKA_MEMBER, /* of a classic group, commits */
    SIM_CLIENT_TRIMMER,      /* gives up what is in front of logs */
    SIM_CLIENT_DELETER,      /* makes streams and deletes them */
    SIM_CLIENT_ONLOOKER,     /* reads one of those */
    SIM_CLIENT_CUTTER,       /* begins frames and does not finish them */
    SIM_CLIENT_IMPOSTOR,     /* speaks as a node does, without the key */
};

/* A record that a consumer has read, and where its batch lies: address.c. */
struct sim_address {
    enum { SIM_ADDRESS_NONE, SIM_ADDRESS_ASKED, SIM_ADDRESS_KEPT } state;
    struct leat_log_ref log;
    uint64_t first, offset; /* of the batch's first record, and of the record */
    struct leat_position at;
    bool once;       /* the place is not kept */
    unsigned rounds; /* that were begun */
    unsigned waited; /* so many times, for aims_place.c */
};

struct sim_client {
    struct scenario *scenario;
    enum sim_client_kind kind;
    struct sim_process *process;
    struct sim_actor *actor;
    struct leat_timers timers;
    struct leat_client *client;
    uint32_t stream, index;
    uint32_t number;     /* of all that ever were, from 1 */
    uint32_t generation; /* of a member of one of Kafka's groups */
    struct sim_rng rng;
    bool slow;
    /* producers */
    struct leat_producer_engine *producer;
    uint32_t quota, sent[SIM_STREAMS];
    bool waits_for_room;
    /* consumers */
    struct leat_consumer_engine *consumer;
    struct check_reader reader;
    uint64_t committing[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    uint64_t processed[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    bool commit_under_way, given_up;
    struct sim_address address;
    char told[LEAT_ERROR_TEXT_BYTES]; /* last, of why it is not answered */
    /* control, raw, of Kafka: their own state */
    void *state;
};

/* Where an aim wants a streamlet to go, next; to NULL: nowhere. */
struct sim_wish {
    uint32_t stream, streamlet; /* stream: the scenario's; SIM_STREAMS: the stream of homes */
    struct sim_server *to;
};

/* A log whose loss a trap wants an operator to accept, next: LOG_RECOVER is sent to its owner. */
struct sim_loss_wish {
    bool wanted, answered;
    bool real;               /* records may be lost; and it is asked again after each answer OK */
    struct leat_log_ref log; /* stream: the scenario's */
    leat_err rc;             /* the answer's */
};

/* What the coordinators hold of a log: which of its marks count. */
struct sim_stamp {
    uint32_t epoch; /* of the owner */
    bool opened;
    uint32_t stamp_epoch, stamp_version;
};

/* A trap of many steps, in the place of the scheduled faults: trap.c. */
enum sim_trap {
    SIM_TRAP_NONE,
    SIM_TRAP_READER,  /* an owner is followed unheard: traps_reader.c */
    SIM_TRAP_FILL,    /* copies that are being made are struck: traps_fill.c */
    SIM_TRAP_LEAVE,   /* copies that leave are: traps_leave.c */
    SIM_TRAP_DELETES, /* streams are deleted unheard: traps_deleted.c */
    SIM_TRAP_HOME,    /* a group's home is followed unheard: traps_home.c */
    SIM_TRAP_MOVED,   /* streamlets move all the time: traps_moved.c */
    SIM_TRAP_UNASKED, /* who has whole what is damaged can't be asked: traps_unasked.c */
    SIM_TRAP_HANDED,  /* streamlets move while replicas become their logs': traps_handed.c */
    SIM_TRAP_FRONT,   /* retention looks before it is known where a log begins: traps_front.c */
    SIM_TRAP_LOSS,    /* a loss is accepted while older segments come: traps_loss.c */
    SIM_TRAP_SLOW,    /* lines carry a few kilobytes a second: traps_slow.c */
    SIM_TRAP_STAGE,   /* what the seed's stage does: stage.h */
    SIM_TRAPS,
};

struct scenario {
    unsigned boots_before; /* of server 0, when it was asked to stop */
    struct sim_world *world;
    struct check *check;
    struct sim_server servers[SIM_SERVERS_MAX];
    unsigned server_count;
    const struct sim_server_watch *watch; /* sim_server_watch */
    const struct sim_server *starting;    /* the one that was made last */
    char addresses[SIM_SERVERS_MAX * 32]; /* of all, for clients */
    struct leat_key key;                  /* the cluster's */
    struct sim_stream streams[SIM_STREAMS];
    struct sim_client *clients[SIM_CLIENTS_MAX];
    void (*client_create)(struct sim_client *client); /* its first turn; sim_client_create() */
    unsigned client_count;
    uint32_t cores;
    uint64_t memory_bytes, hibernate_after_us, flush_delay_us;
    uint64_t grace_us; /* until copies are made anew; 0: as usual */
    uint64_t raft_segment_bytes, raft_snapshot_bytes_min; /* 0: as a server has it */
    enum leat_rmem_kind transport;                        /* of a cluster; NONE: what each finds */
    unsigned rmem_kinds;                                  /* that its machines have, bits */
    uint32_t fault_weights[SIM_CLUSTER_FAULTS];           /* this seed's; see nodes_faults.c */
    uint32_t move_per_mille;  /* of an operator's looks a streamlet is moved */
    uint64_t fault_gap_us;    /* between two, at most */
    uint64_t unseen_until_us; /* a fault lasts that waits.c sees nowhere */
    bool budget;              /* what the nodes' heaps take changes */
    uint64_t heap_bytes;
    struct sim_rng heap;
    struct sim_server *power_domain; /* the power of no other machine goes; NULL: of any */
    bool streams_made, faults_over, power_cuts, calm, with_kafka, with_trims;
    bool loss_held;                  /* no operator accepts loss for the moment */
    struct sim_server *quiet_server; /* in trouble, and nobody else: quiet.c */
    bool
        groups_unasked; /* a full disk keeps a group's commits waiting; an allocation that fails, a home */
    bool slow_readers; /* at the end some ask for what lies in files, and read nothing */
    struct sim_rng kafka;
    struct sim_wish wish;
    struct sim_loss_wish loss_wish;
    /* When a streamlet was wished elsewhere; 0: never. */
    uint64_t move_us[SIM_STREAMS][CHECK_STREAMLETS_MAX];
    bool hurried; /* the operator looks much more often, so that what is wished is soon done */
    struct leat_log_ref trim_wish;   /* where a trap wants a log trimmed to its end, next */
    bool trim_wished, trims_on_wish; /* trims_on_wish: nothing else is trimmed before the end */
    struct sim_client *trimmer;      /* NULL: none in this seed */
    uint64_t trims;
    unsigned producers_running; /* that have records left to send */
    uint64_t acked_batches;     /* of the raw producer and of Kafka's */
    uint64_t acked_all;         /* when all was answered */
    uint64_t recoveries;
    bool brief;           /* less of everything: brief.c */
    bool few;             /* clients, as in brief ones */
    bool ends_anew;       /* behind everything else all nodes die once more */
    bool told_asked;      /* of a cluster: each node is asked at once how things are */
    uint64_t batches_min; /* until as many are acked producers go on */
    struct sim_stamp stamps[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    unsigned operator_rounds; /* that it has looked at every log */
    unsigned rounds_wanted;
    struct sim_rng look;
    uint64_t compared, marks; /* closed copies with their owner's; marks with what was acked */
    uint64_t pause_us_max;    /* of a producer, between two bursts */
    bool hard;                /* more of everything: see README */
    uint32_t value_bytes;     /* of most records, at most */
    struct sim_rng closed;
    bool closed_rot; /* ... and of that only closed segments, which it has to make good by itself */
    bool rows_rot;   /* of a cluster: rows of closed segments do, between others */
    bool deletes;    /* streams are made and deleted */
    enum sim_trap trap;
    const struct sim_stage *stage; /* NULL: none */
    bool scrubs;                   /* its nodes look for damage by themselves */
    uint64_t audit_us;   /* ... and owners ask as often for copies that are damaged; 0: as usual */
    bool repairs_struck; /* something goes wrong while one is made good */
    unsigned refused_late;
    struct sim_rng repair,
        lost;        /* lost: whether a file of the victim's loses its end, or is gone */
    struct sim_rot { /* the first byte of each, where it is, and what it was */
        struct sim_server *server;
        struct leat_log_ref log;
        uint64_t segment, offset;
        char path[32];
        uint8_t byte;
        bool row; /* the catalogue row of the segment rotted */
    } rots[SIM_ROTS_MAX];
    unsigned rot_count;
    uint64_t
        unequal; /* copies on that machine that are not like their owner's, when last looked at */
    struct sim_server *victim; /* the only one whose disk is damaged; NULL: none is */
    /* flipped bits (rot.c) */
    bool corrupt; /* one is flipped now */
    unsigned rot_first, rot_damaged;
    bool suspects[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    bool named[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    bool told[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX]; /* named, by a start itself */
    /* Does the last answer about the cluster name the log, as waiting or damaged, or count it among so many that not
     * all are named: told.c. */
    bool status_names[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    bool told_in_sum;      /* ... more logs than it names */
    const char *waits_for; /* whom the verdict names */
    char behind[CHECK_BEHIND_BYTES];
    struct sim_visited visited;
};

struct scenario_options {
    uint64_t seed;
    bool tracing;
    bool calm;        /* no scheduled faults */
    bool hard;        /* of a cluster: fault upon fault */
    bool deletes;     /* of a cluster: streams are deleted, whatever the seed's choice is */
    bool hasty;       /* of a cluster: nodes.c */
    uint32_t nodes;   /* 0, 1: a server alone */
    uint32_t records; /* of all producers together; 0: what a seed usually has */
    const struct sim_stage *stage;    /* NULL: none; stage.h */
    const struct sim_dice_plan *dice; /* NULL: the seed's own, to the end */
    const struct sim_life *life;      /* NULL: nobody asks about one log: life.h */
    /* The sweep: asked at every disk operation whether the power is to be cut there. It is given
     * the scenario, to choose which unflushed writes survive, or what else the disk does. */
    bool (*sweep)(struct scenario *scenario, uint64_t op, enum sim_cut_phase phase);
    void (*on_built)(struct scenario *scenario); /* before the first event; NULL: nobody asks */
    bool (*wait_for)(
        struct scenario *scenario); /* all is read only when this holds; NULL: nobody asks */
};
struct scenario_result {
    char failure[SIM_FAIL_TEXT_BYTES];
    uint64_t faults[SIM_FAULTS];
    uint64_t trace_hash, acked_records, acked_batches, batches_wanted, events, virtual_us, disk_ops;
    uint64_t compared, marks;
    struct sim_visited visited;
    bool bugs_met[LEAT_BUGS_END]; /* of leat-sim-bugs: base/bug.h */
};
void scenario_run(const struct scenario_options *options, struct scenario_result *out_result);
/* ---- progress.c ---- */
/** Run until a condition holds or the time is over. */
bool sim_run_until(struct scenario *scenario, bool (*holds)(struct scenario *), uint64_t limit_us);
void sim_stuck(struct scenario *scenario, const char *what);

/* ---- server.c, server_watch.c ---- */
extern const struct sim_server_watch sim_server_watch;
/** Machines with nothing on their disks: one that is alone, or a cluster of several. */
void sim_servers_init(struct scenario *scenario, unsigned count);
void sim_server_boot(struct sim_server *server);
/** Bring it up again after a while. */
void sim_server_boot_later(struct sim_server *server, uint64_t delay_us);
void sim_server_stop(struct sim_server *server);

/* ---- clients.c ---- */
struct sim_client *sim_client_start(struct scenario *scenario, enum sim_client_kind kind,
                                    uint32_t stream, uint32_t index);
/** How many batches were acked, to whomever. */
uint64_t sim_acked_batches(const struct scenario *scenario);
/** kill -9 of a client. */
void sim_client_kill(struct sim_client *client);
const struct sim_stream *sim_stream_of(const struct scenario *scenario, uint32_t id,
                                       uint32_t *out_index);
/** A process of one actor, which does what is posted to it. */
struct sim_actor *sim_idle_actor(struct sim_world *world, const char *name);

/* ---- clients_kinds.c ---- */
/** The client begins as its kind does: within a turn of it. */
void sim_client_create(struct sim_client *client);
/* ---- clients_produce.c ---- */
leat_err sim_producer_create(struct sim_client *client);

/* ---- pull.c ---- */
leat_err sim_consumer_create(struct sim_client *client);
/** What a fetch brought of one log is looked at, record by record. */
void sim_run_read(struct sim_client *client, const struct leat_fetched *fetched);
/* ---- address.c ---- */
/** A batch was read, which began at offset `first`: now and then its place is asked for, and later led back to. */
void sim_address_shown(struct sim_client *client, struct leat_log_ref log, uint64_t first,
                       uint32_t records);
/** A reader asks where a record lies, unless the reader asks already. In a turn of the reader. */
void sim_address_ask(struct sim_client *client, struct leat_log_ref log, uint64_t offset);
bool sim_consumer_done(const struct sim_client *client);
/** Has it read all that a stream with retention has left? */
bool sim_consumer_at_end(const struct sim_client *client);

/* ---- control.c, raw.c ---- */
void sim_control_start(struct sim_client *client);
void sim_raw_start(struct sim_client *client);
bool sim_raw_done(const struct sim_client *client);

/* ---- trim.c ---- */
void sim_trim_start(struct sim_client *client);
/** Nothing happens any more and it has no request without a good answer. */
bool sim_trim_done(const struct sim_client *client);
/** Once more, each log once. Done before. */
void sim_trim_all(struct sim_client *client);

/* ---- stall.c ---- */
void sim_deaf_start(struct sim_client *client);
/** From now on whoever is owed bytes for too long fails the seed. */
void sim_deaf_watch(struct scenario *scenario);
/** Is none of them owed anything any more? */
bool sim_deaf_all_done(struct scenario *scenario);

/* ---- impostor.c ---- */
void sim_impostor_start(struct sim_client *client);
/** All impostors have done all that they came for. */
bool sim_impostors_gone(struct scenario *scenario);

/* ---- cutter.c ---- */
void sim_cutter_start(struct sim_client *client);
/** They have gone, and no server has a connection of theirs any more. */
bool sim_cutter_all_gone(struct scenario *scenario);

/* ---- deletes.c, deletes_check.c ---- */
/** Where the seed has that, or it is wanted, streams are made and deleted from now on. */
void sim_deletes_start(struct scenario *scenario);
/** Whether the seed has that, or it is wanted; before streams are chosen. */
void sim_deletes_choose(struct scenario *scenario, bool wanted);
leat_err sim_deleter_start(struct sim_client *client);
leat_err sim_onlooker_start(struct sim_client *client);
/** Nothing happens any more, and whoever does that has no request without an answer. */
bool sim_deletes_done(const struct scenario *scenario);
/** All nodes start anew, and nobody deletes any more. */
void sim_deletes_start_anew(struct scenario *scenario);
/** No node serves any of the deleted streams, or has a segment of one. */
bool sim_deletes_nothing_left(struct scenario *scenario);

/* ---- nodes.c ---- */
/** Boot all machines, in any order; false: they are not all ready in time. */
bool sim_nodes_form(struct scenario *scenario, uint64_t limit_us);
/** All that run have applied the same. For sim_run_until(). */
bool sim_nodes_are_even(struct scenario *scenario);
/** Every node dies at once. */
void sim_nodes_die(struct scenario *scenario);
bool sim_nodes_ready(struct scenario *scenario, uint64_t limit_us);
/** How soon copies are made anew in this seed; and so at that node, which has just started. */
/* ---- choices.c ---- */
/** Behind everything else that is chosen. */
void sim_streams_choose(struct scenario *scenario);
/** Of a cluster, whose machines are there. */
void sim_cluster_choose(struct scenario *scenario);
/* Whether a cluster's seed is a brief one: behind everything else that is chosen. brief.c */
void sim_brief_choose(struct scenario *scenario, const struct scenario_options *options);

/* What the producers of a cluster's seed have to do, all together. Few: what matters are the faults. */
struct sim_work {
    uint32_t records;
    uint32_t batches; /* acked, at least */
};
struct sim_work sim_brief_work(const struct scenario *scenario);
void sim_nodes_grace_choose(struct scenario *scenario);
void sim_nodes_grace_set(const struct sim_server *server);
bool sim_nodes_are_ready(struct scenario *scenario);

/* ---- nodes_faults.c ---- */
void sim_nodes_faults_start(struct scenario *scenario);
/** Where those strike: one or two more within the next milliseconds, whatever the seed's weights. */
void sim_nodes_strike_soon(struct scenario *scenario);
/** Everything works again, on and between the machines. */
void sim_nodes_heal(struct scenario *scenario);

/* ---- traps.c ---- */
/** In a few seeds: what only several faults together bring about, now and then, from now on. */
void sim_traps_start(struct scenario *scenario);
/* ---- traps_fill.c ---- */
/** Has the seed this trap? Asked before the seed's machines are made, as the trap needs another machine. */
bool sim_trap_fill_choose(uint64_t seed);
/** Of a seed with this trap: the settings that the trap needs, in place of other choices. */
void sim_trap_fill_set(struct scenario *scenario);
void sim_trap_fill_start(struct scenario *scenario);
/** One fault more in some of these seeds: traps_piece.c. */
void sim_trap_piece_start(struct scenario *scenario);
/* ---- traps_home.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_home_choose(struct scenario *scenario);
/** A member asks a home that was followed, now and then, from now on. */
void sim_trap_home_start(struct scenario *scenario);
/* ---- trap.c ---- */
struct sim_trap_needs {
    uint32_t batches;                           /* times those of sim_brief_work() */
    uint32_t copies, copies_min;                /* of each stream; 0: any */
    bool few_logs, one_log, on_disk, in_memory; /* one_log: in each streamlet */
};
const struct sim_trap_needs *sim_trap_needs(const struct scenario *scenario);
/** Before machines are made: true: one more than the voters. */
bool sim_trap_choose_early(struct scenario *scenario, const struct scenario_options *options);
/** After all other choices, before streams are chosen. */
void sim_trap_choose(struct scenario *scenario);
void sim_trap_start(struct scenario *scenario);

/* ---- traps_handed.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_handed_choose(struct scenario *scenario);
/** Streamlets go on while replicas become their logs', from now on. */
void sim_trap_handed_start(struct scenario *scenario);
/* ---- traps_unasked.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_unasked_choose(struct scenario *scenario);
/** Of a seed that has it. */
void sim_trap_unasked_start(struct scenario *scenario);
/* ---- traps_front.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_front_choose(struct scenario *scenario);
/** Of a seed that has it. */
void sim_trap_front_start(struct scenario *scenario);
/* ---- traps_loss.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_loss_choose(struct scenario *scenario);
/** Of a seed that has it. */
void sim_trap_loss_start(struct scenario *scenario);
/* ---- traps_slow.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_slow_choose(struct scenario *scenario);
/** Of a seed that has it. */
void sim_trap_slow_start(struct scenario *scenario);
/** In some of the seeds without a trap: slow lines beside the scheduled faults, from now on. */
void sim_slow_lines_start(struct scenario *scenario);
/* ---- traps_torn.c ---- */
/** A torn copy beside a whole one is waited for, and its owner killed, in a few seeds, now and then, from now on. */
void sim_trap_torn_start(struct scenario *scenario);
/* ---- traps_moved.c ---- */
/** Has the seed that? After all other choices, before streams are chosen. */
bool sim_trap_moved_choose(struct scenario *scenario);
/** Streamlets move, and what is said of their copies comes late, from now on. */
void sim_trap_moved_start(struct scenario *scenario);
/* ---- traps_reader.c ---- */
/** Has the seed this trap? Asked before the seed's machines are made, as the trap needs another machine. */
bool sim_trap_reader_choose(uint64_t seed);
/** Of a seed that has it. */
void sim_trap_reader_start(struct scenario *scenario);

/* ---- traps_leave.c ---- */
/** Has the seed this trap? Asked before the seed's machines are made, as the trap needs another machine, and two
 * hosts. */
bool sim_trap_leave_choose(uint64_t seed);
/** Of a seed with this trap: the settings that the trap needs, in place of other choices. */
void sim_trap_leave_set(struct scenario *scenario);
void sim_trap_leave_start(struct scenario *scenario);

/* ---- damage.c ---- */
/** Whose disk may be damaged in this seed? */
void sim_damage_choose(struct scenario *scenario);
/** Closed segments of that machine rot, and nothing else of it is damaged. */
void sim_closed_choose(struct scenario *scenario, unsigned number);
/** The disk of the server is to be damaged now: the server dies, and finds the damage at its next start. */
void sim_damage_strike(struct sim_server *server);
/** It has died. */
void sim_damage_on_death(struct sim_server *server);
/** It is about to start. */
void sim_damage_apply(struct sim_server *server);
/** Something has named damage on that machine: somebody gives it an empty disk. */
void sim_damage_named(struct sim_server *server);
/** At a death: what was under way that is rarely met. */
void sim_amid_count(struct sim_server *server);

/* ---- closed.c ---- */
/** Where the seed has that, closed segments of the victim rot now and then, from now on. */
void sim_closed_start(struct scenario *scenario);
/** So many of them rot now, of which others have whole copies; that many or fewer. */
void sim_closed_strike(struct scenario *scenario, unsigned wanted);
/** Where the seed has that, a row of a closed segment rots now on each machine, between others: all are about to
 * die. */
void sim_rows_strike(struct scenario *scenario);
/** All was read: how many of these their owners have again. */
void sim_rows_judge(struct scenario *scenario);
/** Whether the seed has that. */
void sim_rows_choose(struct scenario *scenario);
/** All was read: how many of them are again as they were? Where nodes scrub, every copy is, in the end. */
void sim_closed_judge(struct scenario *scenario);

/* ---- places.c ---- */
/** Look where one-sided writes go, from now on. */
void sim_places_watch(struct scenario *scenario);
/** What is left of a closed segment in the memory of its machine is not there any more. */
void sim_closed_forget(const struct leat_store *store, const struct leat_segment *seg);
/** A segment that the victim owns, closed and in its file alone, where another machine has a whole copy. NULL: none. */
const struct leat_segment *sim_closed_find(struct scenario *scenario, struct leat_log_ref log,
                                           uint64_t segment);
/** A bit of such a segment flips. */
void sim_closed_flip(struct scenario *scenario, const struct leat_segment *seg, uint32_t at,
                     unsigned bit);

/* ---- copies.c ---- */
/** Check all copies now and then from now on. */
void sim_copies_watch(struct scenario *scenario);
void sim_copies_check(struct scenario *scenario);
/** Has each segment of each log as many copies as its stream asks for? */
bool sim_copies_are_whole(struct scenario *scenario);
/** A record of this log was acked: does every copy that counts have it? */
void sim_copies_acked(struct scenario *scenario, struct leat_log_ref log);
/** Does the server's node own the log, by its own coordinator's tables? */
bool sim_copies_owns(struct scenario *scenario, const struct sim_server *server,
                     struct leat_log_ref log);
/** Is that segment of a log, by the product's number of its stream, a copy there that another node wrote? */
bool sim_copies_written_elsewhere(const struct sim_server *server, struct leat_log_ref ref,
                                  uint64_t segment);
/** Does its node call that log's last segment damaged? */
bool sim_copies_damaged(struct scenario *scenario, const struct sim_server *server,
                        struct leat_log_ref log);
/** A machine has died, and what its node knew is not to be forgotten. */
void sim_copies_note(struct scenario *scenario, const struct sim_server *server);
/** The server dies in this moment: look at what its memory holds of logs that roll. */
void sim_copies_death(struct scenario *scenario, const struct sim_server *server);

/* ---- kept.c ---- */
/** Copies that are counted on are there. After sim_copies_check(), which notes who owns what. */
void sim_kept_check(struct scenario *scenario);
/** Fences, and nodes that were called dead, are looked at now and then from now on. */
void sim_kept_watch(struct scenario *scenario);

/* ---- takeovers.c ---- */
void sim_takeovers_start(void);
/** Does a takeover of this server, which lives, go on that is to end? Draws nothing. */
void sim_takeovers_look(struct scenario *scenario, const struct sim_server *server);
/* ---- conns.c ---- */
/** Look at what native clients know of nodes and keep of them, and at what their producers count. */
void sim_conns_check(struct scenario *scenario);
/* ---- ends.c ---- */
/** A turn of the server's coordinator is over: note where logs end by its tables, and compare with these ends what a
 * recovery would keep of the logs whose last epoch is lost. */
void sim_ends_see(const struct sim_server *server);
/** Nothing is noted yet. */
void sim_ends_start(void);
/* ---- attempts.c ---- */
/** The server has just started: compare its steps as a leader that recovers logs with what nodes have. */
void sim_attempts_watch(struct sim_server *server);

/* ---- waits.c ---- */
void sim_waits_start(void);
/** Do acks of a log wait that no fault concerns? */
void sim_waits_look(struct scenario *scenario);
/* ---- steps.c ---- */
/** A turn of this world that does not end fails the seed, from now on. */
void sim_steps_watch(struct sim_world *world);
/* ---- owners.c ---- */
/** After each turn of a node's coordinator; sim_owners_forget() when it starts. */
void sim_owners_see(const struct sim_server *server);
void sim_owners_forget(const struct sim_server *server);

/* ---- alloc_sweep.c ---- */
struct alloc_sweep_options {
    uint64_t seed, only; /* only: fail this allocation alone; 0: every step-th */
    unsigned jobs, step, seconds_per_run;
    bool tracing;
};
/** Let allocations of the server fail, each in a run of its own. Returns the exit code. */
int alloc_sweep_run(const struct alloc_sweep_options *options);

/* ---- cut_sweep.c ---- */
struct cut_sweep_options {
    uint64_t seed, only_op,
        only_subset; /* only: that alone; 0: every step-th operation, all subsets */
    unsigned jobs, step, subsets, seconds_per_run;
    bool
        errors; /* instead of a cut: each of enum sim_disk_fault, once; subset 1 is the first of them */
    bool tracing;
};
/** How it dies that way: where its power stays, by a kill. */
enum sim_death sim_death_of(const struct sim_server *server, enum sim_death death);
/** Let the power go at disk operations, or let them fail, each time in a run of its own. Returns the exit code. */
int cut_sweep_run(const struct cut_sweep_options *asked);

/* ---- heap.c ---- */
/** From now on what a process allocates by base/mem.h is its own. */
void sim_process_memory_watch(struct sim_world *world);
/** The process is dead, and nobody looks at its memory any more: the memory is another process's now. */
void sim_process_memory_drop(struct sim_process *process);
/** Can a process run several seeds? Not with a heap that is not ours: with sanitizers. */
bool sim_process_can_again(void);
/** Before a seed: whatever will be allocated lies at other addresses than else, even within a page, and
 * is not zeros where nobody asked for that. With sanitizers nothing: they see to that. */
void sim_process_elsewhere(uint64_t seed);
/** The process is as it should be before each seed. False: no memory. */
bool sim_process_keep(void);
/** It is as it was then: the heap, and every static variable. What a seed left is gone. Whoever calls
 * this has nothing but locals. */
void sim_process_again(void);

/* ---- rot.c ---- */
/** Flip bits, one after the other, and judge what is served. No client is at work any more. */
void sim_rot_run(struct scenario *scenario);
/** A store file is lost, and each of several starts judged. Nothing comes after it. */
void sim_lost_run(struct scenario *scenario);
/* ---- rot_named.c ---- */
/** The server said at its start what is damaged. */
void sim_rot_complaint(struct scenario *scenario, const char *line);
/** A reader was told. log.stream: the scenario's index. */
void sim_rot_named(struct scenario *scenario, struct leat_log_ref log, const char *what);

/* ---- faults.c ---- */
/* budget.c */
/** In some seeds what the heaps take changes from now on. */
void sim_budget_choose(struct scenario *scenario);
uint64_t sim_budget_bytes(void *ctx);
void sim_faults_start(struct scenario *scenario);
/** What the disk of a server alone does next: it refuses a write, or a flush (for good, until the server starts
 * anew; its operator sees to that), or has no space for a while, or the process may open no file for a while. */
enum sim_disk_fault {
    SIM_DISK_WRITE_FAILS,
    SIM_DISK_FLUSH_FAILS,
    SIM_DISK_IS_FULL,
    SIM_DISK_NO_FILES,
    SIM_DISK_FAULTS
};
void sim_faults_disk(struct scenario *scenario, enum sim_disk_fault fault);
/** Everything works again. */
void sim_faults_heal(struct scenario *scenario);

#endif
