/* SPDX-License-Identifier: Apache-2.0 */
/* ASSIGN: the one entry by which streamlets get an owner, and their logs an end. */
#ifndef LEAT_COORDINATOR_METADATA_ASSIGN_H
#define LEAT_COORDINATOR_METADATA_ASSIGN_H

#include "coordinator/metadata/entries.h"

/* Numbers are in stored logs. */
enum leat_assign_reason {
    /* a node came up: it takes its own streamlets, and streamlets without an owner */
    LEAT_ASSIGN_START = 1,
    LEAT_ASSIGN_RECOVERY = 2, /* a streamlet's owner crashed, or a log of it waits */
    LEAT_ASSIGN_MOVE = 3,     /* its owner gives it to another: also when that owner is drained */
    LEAT_ASSIGN_LOSS = 4,     /* an operator gives up what is missing of a log */
};
/* The row of a log in an assignment, with the fields of the log's streamlet. */
struct leat_assign_row {
    struct leat_log_ref log;
    uint64_t seen_owner, owner; /* incarnations: the owner when it was decided, and the new one */
    uint32_t seen_epoch;        /* the streamlet's */
    uint32_t rows;              /* of this streamlet; 0: not said */
    /* The log's, when it was decided. A stamp of 0: its record was a tail. */
    uint32_t seen_log_epoch, seen_stamp, seen_version;
    uint32_t decision; /* enum leat_recover_decision */
    struct leat_tail_record tail;
    uint64_t
        heard; /* WAITS: all nodes were heard, and tail is the best that they have. LEFT: nothing of it was found */
    uint32_t fields; /* as it is in an entry */
};
enum {
    LEAT_ASSIGN_HEAD_BYTES_MAX = 48, /* of the entry; of a streamlet */
    LEAT_ASSIGN_LOG_BYTES_MAX = 64,
    LEAT_ASSIGN_ROW_BYTES_MAX = LEAT_ASSIGN_HEAD_BYTES_MAX + LEAT_ASSIGN_LOG_BYTES_MAX,
};

struct leat_assign_entry {
    enum leat_assign_reason reason;
    uint64_t incarnation, attempt; /* attempt: START; RECOVERY: for people */
    uint32_t part;                 /* START: of the attempt, from 0; the last one has the rest */
    uint32_t streamlets;           /* that follow, the rest among them */
};
/** After leat_assign_streamlet_write(), row->rows times. */
void leat_assign_log_write(struct leat_msg_writer *writer, const struct leat_assign_row *row);
/** START: all other streamlets of this node, and those without an owner, get this owner; their logs end at their tail
 * records. seen: what leat_machine_seen() was. */
void leat_assign_rest_write(struct leat_msg_writer *writer, uint64_t owner, uint64_t seen);

#endif
