/* SPDX-License-Identifier: Apache-2.0 */
/* A random model of one log, to see whether metadata/tail.h loses acked records. For tests. */
#ifndef LEAT_TESTS_COORDINATOR_TAIL_WALK_H
#define LEAT_TESTS_COORDINATOR_TAIL_WALK_H

#include <stdbool.h>
#include <stdint.h>

/* One broken rule of the log. */
enum walk_rule {
    WALK_NONE,
    WALK_IDLE_CLOSES,     /* an idle log closes its head, and has nothing open */
    WALK_RESERVED_COUNTS, /* a replica that was reserved and never started counts as open */
    WALK_EPOCHS,          /* two attempts get one epoch, and epochs at least as high count */
    WALK_VERSION_AFTER_CRASH, /* the coordinator takes a generation from an owner that it declared crashed */
    WALK_OPENED_UNSAID, /* an owner appends before the coordinator has committed its first segment as opened */
    WALK_REBOOT_KEEPS,      /* after a reboot a replica that lost its end keeps its generation */
    WALK_CUT_BEFORE_COMMIT, /* an attempt cuts and closes replicas before its decision is committed */
    WALK_DATA_BEFORE_CLOSE, /* data in segment N+1 is acked before N is closed on all its copies */
    WALK_ACK_BEFORE_VERSION, /* acks go on before the coordinator has the generation without a lost copy */
    WALK_FENCE_LATE,         /* replicas are looked at before their writer is fenced */
    WALK_RESUME_KEEPS, /* a hibernated replica that is resumed keeps the record of what was hibernated */
    WALK_OLD_GENERATION,   /* an open replica of a generation that was left behind counts */
    WALK_PREVIOUS_UNASKED, /* a segment that has just begun needs none before it */
    /* Rules that the model does not see: tests/sim/rules.md says why. */
    WALK_OTHERS_EPOCH,        /* an open replica of a higher epoch counts */
    WALK_HEAD_ONLY,           /* a raised generation is not written on replicas of N+1 */
    WALK_HIGHEST,             /* the highest open segment ends the log */
    WALK_SEALED_BEFORE_CLOSE, /* records in N+1 have a trailer before N is closed on all its copies */
    WALK_RULES_END,
};

struct walk_count {
    uint64_t walks, lost, commits, heads, versions, waits, first_lost;
    uint64_t reasons[16]; /* of decisions: enum leat_tail_reason */
};

const char *walk_rule_name(enum walk_rule rule);
/** One walk of so many steps. true: no acked record is lost or has another record at its offset. */
bool walk_once(enum walk_rule rule, uint64_t seed, unsigned steps, struct walk_count *count);

#endif
