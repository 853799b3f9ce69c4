/* SPDX-License-Identifier: Apache-2.0 */
/* A core's state for requests that are neither appends nor fetches: of this module, one per core. Private to broker/
 * (tests may include it). */
#ifndef LEAT_BROKER_ADMIN_CORE_ADMIN_H
#define LEAT_BROKER_ADMIN_CORE_ADMIN_H

#include "base/list.h"
#include "broker/net/core.h"
#include "coordinator/coordinator.h"

/* Named limits. */
enum {
    LEAT_BROKER_STREAM_LOGS_MAX = 32768,     /* M x Q: metadata has to fit one control body */
    LEAT_REFUSAL_TELL_US = 60 * 1000 * 1000, /* between two lines about streams that are not made */
    /* Logs that a core makes on request, and streams that a core makes because a request names them ("asked"): a
     * burst at once, then so many a second. An address gets half of the burst, which is the largest possible stream.
     * A change of a stream counts as one log, and as one more for each LEAT_CHANGES_LOGS logs of the stream, since
     * each core looks at all of them. */
    LEAT_CREATES_BURST = 2 * LEAT_BROKER_STREAM_LOGS_MAX,
    LEAT_CREATES_PER_SECOND = 4000,
    LEAT_CHANGES_LOGS = 16,
    LEAT_CREATES_ASKED_BURST = 200,
    LEAT_CREATES_ASKED_PER_SECOND = 10,
};

struct leat_placer;

struct leat_core_admin {
    struct leat_placer *placer;
    struct leat_list stream_awaits;
    struct leat_rate creates, creates_asked;
    /* When the node log last got a line about a named stream that is not made */
    uint64_t refusal_told_us;

    int64_t producer_next;
    uint32_t producer_left;
    bool producer_asked;
    struct leat_coordinate producer_request;
    struct leat_list producer_waits;
};

/** status.c: nobody waits for producer ids any more. */
void leat_producer_ids_fini(struct leat_core *core);

#endif
