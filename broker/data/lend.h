/* SPDX-License-Identifier: Apache-2.0 */
/* What a core lends to readers, and how the core gets it back from readers that are slow. Private to broker/.
 *
 * An answer is sent from where its batches lie: a segment's memory, which the read pins, or one of the core's few
 * buffers for bytes that have left memory. A connection that takes its answers slowly would keep this memory, and the
 * structs of the answer, from all other connections. So the memory is lent. Where another fetch waits for memory, a
 * connection has LEAT_LEND_US to take an answer: the bytes that are left are then copied into memory of their own (a
 * rest), and the lent memory is free again. A connection with a rest gets no further answer until it has taken the
 * rest, and its next answers are short. All rests of a core together have a limit. At the limit, the core takes the
 * address with the most bytes of rests, and closes the connection of this address with the oldest rest. */
#ifndef LEAT_BROKER_DATA_LEND_H
#define LEAT_BROKER_DATA_LEND_H

#include "base/list.h"
#include "base/port.h"
#include "base/timer.h"
#include "broker/front_logs.h"

struct leat_core;
struct leat_peer;
struct leat_fetch_read;

enum {
    LEAT_LEND_US = 10 * 1000,      /* an answer's time to be taken where it lies */
    LEAT_LEND_LOOK_US = 20 * 1000, /* looks at what is lent, while anything is */
    LEAT_PEER_SLOW_ANSWER_BYTES =
        64 * 1024, /* of the next answer after a rest; then twice as many, and so on */
};

/* A core's. */
struct leat_lender {
    struct leat_list buffers, segments; /* lent with reads that are being sent, the oldest first */
    struct leat_list
        line; /* connections that wait for a buffer, each once: one wait of each in turn */
    struct leat_list rests; /* connections that have some */
    uint64_t rest_bytes, rest_bytes_max;
    struct leat_timer timer;
    uint8_t *block; /* of all buffers */
    void **free;
    uint32_t count, free_count;
};

leat_err leat_lender_init(struct leat_core *core, uint32_t buffer_count) LEAT_NODISCARD;
void leat_lender_fini(struct leat_core *core);
/** A buffer of LEAT_DISK_BUFFER_BYTES, or NULL: other fetches wait, or no buffer is free. Thread: core, as for all of
 * these functions. */
void *leat_buffer_try(struct leat_core *core);
/** Wait in line; each connection has one of its waits served in turn. wait: borrowed until on_buffer, or the end. */
void leat_buffer_wait(struct leat_core *core, struct leat_peer *peer,
                      struct leat_buffer_wait *wait);
/** The wait leaves the line; nothing if it is in no line. */
void leat_buffer_wait_end(struct leat_peer *peer, struct leat_buffer_wait *wait);
void leat_buffer_give(struct leat_core *core, void *buffer);

/** A read is being sent: its buffer, or pin, and itself are lent until leat_lend_end(). */
void leat_lend(struct leat_fetch_read *read);
void leat_lend_end(struct leat_fetch_read *read);
/** At the end of a turn: take back memory that waiting fetches need. */
void leat_lend_turn_end(struct leat_core *core);
/** A connection that had been slow has taken an answer where it lay. */
void leat_lend_taken(struct leat_peer *peer);

#endif
