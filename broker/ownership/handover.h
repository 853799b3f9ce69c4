/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come to this node and leave it while the node runs. Private to broker/.
 *
 * Leaving: the coordinator says that another node owns a streamlet, so this node gives up each of the streamlet's
 * logs: the log's segments become replicas, which this node keeps until the new owner has said whether it counts on
 * them.
 *
 * Coming: the coordinator says that this node owns a streamlet that another node owned, and where each log ends (a
 * tail record). Core 0, which has the replicas, makes the log's last segment this node's own. Core 0 fetches the
 * segment first if it is not here. With this segment the log's core makes the log, which serves from then on. The
 * older segments follow, one after the other, from the newest back: each start entry names the (length, CRC) of the
 * segment before it. */
#ifndef LEAT_BROKER_OWNERSHIP_HANDOVER_H
#define LEAT_BROKER_OWNERSHIP_HANDOVER_H

#include "broker/data/begun.h"
#include "coordinator/coordinator.h"
#include "multilog/log.h"
#include "replication/backup/backup.h"

struct leat_core;
struct leat_partition;
struct leat_stream;

enum {
    LEAT_TAKEOVER_TICK_US = 20 * 1000,
    LEAT_TAKEOVER_OLDER_MAX = 8, /* logs whose older segments come at one time */
    /* An older segment that no node has: a search for it ends after so long. */
    LEAT_TAKEOVER_MISSING_US = 3 * 1000 * 1000,
    /* A last segment that no node has: the log is made without it after so long. First while a node is down, then
     * while all nodes are up: the node with the segment may not have heard of the change of owner yet, or its disk is
     * full. */
    LEAT_TAKEOVER_AWAY_US = 30 * 1000 * 1000,
    LEAT_TAKEOVER_NOWHERE_US = 15 * 1000 * 1000,
};

/* The takeovers that core 0 has under way. */
struct leat_takeovers {
    struct leat_list all; /* struct leat_takeover, in order of asking, or of their last pauses */
    unsigned older_count; /* of these, searches for older segments */
    struct leat_timer timer;
    bool kicked;
    struct leat_mail kick;
};
void leat_takeovers_init(struct leat_core *core);
void leat_takeovers_fini(struct leat_core *core);
/** Asserts what is true of the takeovers between two turns. */
void leat_takeovers_check(const struct leat_core *core);
/** Begin to make the row's log on this core; a second call for the same log does no harm. Thread: the log's core. */
void leat_takeover_ask(struct leat_core *core, const struct leat_begun_log *row, uint32_t logs);
/** The coordinators' record of a log of this core has changed: if the log was made without its end, and waits, the end
 * may be known now. Thread: the log's core. */
void leat_takeover_look(struct leat_partition *partition, const struct leat_begun_log *row,
                        uint32_t logs);
/** The log serves, and lacks segments before its first or between others: search for these again. Thread: its core. */
void leat_takeover_older(struct leat_partition *partition);
/** A search of leat_takeover_older() has ended. true: the pass has another hole to search. false: the pass is over. */
bool leat_takeover_goes_on(const struct leat_partition *partition) LEAT_NODISCARD;
/** The pass has searched all holes: no node that is up has the segments that are still missing. front: none is missing
 * before the log's first segment. Returns whether no segment is missing any more. */
bool leat_takeover_pass_over(struct leat_partition *partition, bool front);
/** Is the log, or a segment of the log, on its way to a core of this node? Thread: core 0. */
bool leat_takeover_is_under_way(const struct leat_core *core, struct leat_log_ref ref);
/* Closed segments whose bytes in this node's file are corrupt: the bytes of another node's copy are written over
 * them, one segment at a time. */
struct leat_repair;
struct leat_repairs {
    struct leat_list all;      /* struct leat_repair, in order of asking, or of their last turns */
    struct leat_repair *going; /* NULL: no segment is fetched or written */
    uint64_t next_us;          /* not before: segments are fetched at a bounded rate */
    struct leat_timer timer;
};
enum {
    LEAT_REPAIR_BYTES_PER_SECOND = 64 * 1024 * 1024,
    LEAT_REPAIR_AGAIN_US = 100 * 1000,
    LEAT_REPAIR_AWAY_US = 2 * 1000 * 1000,    /* while a node is down that may have the segment */
    LEAT_REPAIR_REFUSED_US = 5 * 1000 * 1000, /* after the disk refused a write */
};
void leat_repairs_init(struct leat_core *core);
void leat_repairs_fini(struct leat_core *core);
/** LEAT_OK: other nodes are asked; LEAT_E_NO_MEMORY: not now. See leat_log_events.on_damaged. Thread: the log's core.
 */
leat_err leat_repair_ask(const struct leat_partition *partition,
                         const struct leat_segment *seg) LEAT_NODISCARD;
/** Make all other nodes that are up the sources of `pull`. Thread: core 0, as for the next function. */
void leat_pull_from_all(const struct leat_core *core, struct leat_backup_pull *pull);
/** Another node owns the streamlet now, or this node under another epoch: the log goes. Thread: its core. */
void leat_partition_give_up(struct leat_partition *partition);
/** Once, after leat_partition_give_up() found leat_partition_loss_stops(): the log has stopped. copies_idle: no
 * request of its copies is under way either. */
void leat_partition_give_up_go_on(struct leat_partition *partition, bool copies_idle);

#endif
