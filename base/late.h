/* SPDX-License-Identifier: Apache-2.0 */
/* The time in which an actor stood still itself, for detectors of silent peers: messages of the peers lay unread
 * meanwhile, so this time is no silence. */
#ifndef LEAT_BASE_LATE_H
#define LEAT_BASE_LATE_H

#include <stdint.h>

/** How late an actor's timer runs that was due at `due_us`. 0: no more than `spare_us`. */
static inline uint64_t leat_late_us(uint64_t due_us, uint64_t spare_us, uint64_t now_us)
{
    uint64_t late_us = now_us > due_us ? now_us - due_us : 0;
    return late_us > spare_us ? late_us : 0;
}

/** heard_us: when a peer was heard. Returns the same, later by the time in which this actor stood still.
 *
 * SUBTLE: silence goes on where it was; it does not begin anew.
 *  1. On a busy machine the leader runs late for some 100 ms, a few times a second. A node is stopped.
 *  2. If the leader's own lateness counted as an answer of that node, the node's silence would last only from one
 *     lateness to the next. The leader's patience comes from earlier gaps, and these were as long.
 *  3. So the node is never declared crashed: its streamlets stood still for 25 s in two of 30 such trials. */
static inline uint64_t leat_late_heard(uint64_t heard_us, uint64_t late_us, uint64_t now_us)
{
    return now_us - heard_us > late_us ? heard_us + late_us : now_us; /* now: heard since */
}

#endif
