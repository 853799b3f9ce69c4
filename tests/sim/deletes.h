/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are made, used and deleted while everything else goes on: deletes.c makes them, deletes_check.c
 * looks at the nodes. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_DELETES_H
#define LEAT_TESTS_SIM_DELETES_H

#include "tests/sim/stage.h"

enum {
    SIM_THROWN_MAX = 6, /* streams in a seed */
    SIM_THROWN_NAMES = 2,
    SIM_THROWN_RECORDS_MAX = 8192,
    SIM_THROWN_MAGIC = 0x7468726f, /* third word of its records */
};

/* One of them: a name that is made again is another one. */
struct sim_thrown {
    uint32_t id;
    const char *name;
    struct leat_stream_settings settings;
    bool asked;                  /* its deletion is on its way */
    bool answered;               /* ... and was answered */
    bool committed;              /* a node has applied it */
    uint64_t known_us;           /* nobody can serve it from then on; 0: somebody may still */
    bool trims;                  /* somebody asked for that */
    bool move, takeover, away;   /* what there was when somebody looked last before the deletion */
    struct sim_client *onlooker; /* NULL: none any more */
    uint64_t first[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX]; /* offset that its onlooker saw, and 1 */
};

struct sim_thrown_record {
    uint64_t added_us;
    unsigned name;     /* the stream's, by its number */
    uint32_t acked_in; /* id of a stream; 0: none yet */
    bool ended;
    leat_err rc;
};

struct sim_deletes {
    struct scenario *scenario;
    struct sim_client *client;
    struct sim_thrown thrown[SIM_THROWN_MAX];
    unsigned count;
    char names[SIM_THROWN_NAMES][24];
    unsigned name;
    /* Each request about this name was sent once and was answered: no other may be done late. */
    bool sure;
    unsigned hurry; /* so many streams are to be deleted at once: aims_hold.c */
    bool
        making; /* one was asked for, and the answer is not here: the other client may see it before */
    uint32_t remade; /* by a producer, under the old name; 0: none */
    struct sim_thrown_record records[SIM_THROWN_RECORDS_MAX];
    uint32_t record_count, acked;
    char left[200];    /* what is still there */
    bool started_anew; /* all nodes have been, since everything was healed */
};

/** NULL: no streams are deleted in this seed. */
struct sim_deletes *sim_deletes_of(const struct scenario *scenario);
/** The one with that id; NULL: none. */
struct sim_thrown *sim_thrown_find(struct sim_deletes *deletes, uint32_t id);

/* ---- deletes_check.c ---- */
/** Is a copy of a segment of that stream read for another node? */
bool sim_thrown_is_read(const struct scenario *scenario, uint32_t stream);
/** A client that writes to the stream knows its logs, and has a producer's number: no node has to be asked for
 * these. */
bool sim_thrown_is_warm(const struct sim_deletes *deletes, uint32_t stream);
/** Look at all nodes, now and then from now on. */
void sim_deletes_watch(struct sim_deletes *deletes);
/** A record was acked, or shown, in that stream. */
void sim_deletes_acked(struct sim_deletes *deletes, uint32_t number, struct leat_log_ref log,
                       uint64_t offset);
void sim_deletes_seen(struct sim_deletes *deletes, uint32_t number, struct leat_log_ref log,
                      uint64_t offset);

/* ---- traps_deleted.c ---- */
/** In some of the seeds: few logs, larger records, each segment on two nodes at least. */
void sim_trap_deleted_choose(struct scenario *scenario);
/** Does the seed choose the moments of deletions: by this trap, or by its stage? */
bool sim_trap_deleted_is(const struct scenario *scenario);
/** A stream is about to be made, with these settings. */
void sim_trap_deleted_settings(const struct scenario *scenario,
                               struct leat_stream_settings *settings);
/** Are copies of the newest stream to be read while it is deleted, in some seeds? */
bool sim_trap_deleted_reads(const struct sim_deletes *deletes);
/** That stream's deletion is about to be sent. True: not yet, its moment is waited for. */
bool sim_trap_deleted_waits(struct sim_client *client, uint32_t stream,
                            void (*produce)(struct sim_client *client));

#endif
