/* SPDX-License-Identifier: Apache-2.0 */
/* A request that names many of something: it is done piece by piece, as many in a turn of the core's loop as fit its
 * time, and with few of them under way at a time. Thread: the request's core. */
#ifndef LEAT_KAFKA_FRONT_PIECES_H
#define LEAT_KAFKA_FRONT_PIECES_H

#include "base/free_list.h"
#include "kafka/front/request.h"

enum {
    LEAT_KAFKA_PIECES_AT_ONCE = 256, /* of one request, under way elsewhere */
    /* Pieces of all requests on a node: half of the requests that may wait for the coordinator. Each core has an
     * equal part, and an address half of a core's part. A request without a place there has one piece under way. */
    LEAT_KAFKA_PIECES_BEGUN_MAX = LEAT_COORDINATE_QUEUE_MAX / 2,
    LEAT_KAFKA_PIECES_TURN_MAX = 256, /* in one turn, whatever its time */
};

enum leat_kafka_piece { LEAT_KAFKA_PIECE_DONE, LEAT_KAFKA_PIECE_NONE, LEAT_KAFKA_PIECE_FAILED };

struct leat_kafka_pieces {
    struct leat_kafka_request *request;
    void *response;
    /** The next piece. NONE: there was none; FAILED: there is no memory, and no answer. */
    enum leat_kafka_piece (*next)(struct leat_kafka_pieces *pieces);
    /** When all pieces are done. NULL: the response is sent then; otherwise on_done runs instead. */
    void (*on_done)(struct leat_kafka_pieces *pieces);
    /* its own */
    struct leat_pace_step step;
    uint32_t waiting;
    struct leat_free_list free; /* memory of pieces that have ended */
    bool inside, queued, ended, failed;
};

/** Zeroed memory of a struct that begins with its struct leat_kafka_pieces, for as long as the request lives; the
 * fields down to `next` are set. NULL: there is no memory, or no response. */
void *leat_kafka_pieces_take(struct leat_kafka_request *request, size_t bytes, void *response,
                             enum leat_kafka_piece (*next)(struct leat_kafka_pieces *pieces));
/** Of leat_kafka_pieces_take(). */
void leat_kafka_pieces_start(struct leat_kafka_pieces *pieces);
/** From within next(): memory of so many bytes, zeroed, for something that goes on elsewhere; all of a request want as
 * many. leat_kafka_pieces_end() follows, and the memory is the next one's. NULL: there is none, nothing has begun. */
void *leat_kafka_pieces_begin(struct leat_kafka_pieces *pieces, size_t bytes);
void leat_kafka_pieces_end(struct leat_kafka_pieces *pieces, void *memory);

#endif
