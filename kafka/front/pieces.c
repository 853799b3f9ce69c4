/* SPDX-License-Identifier: Apache-2.0 */
/* SUBTLE: why few pieces at a time. (1) A DeleteTopics of 1 MB names 100,000 topics. (2) Each topic is a request to
 * the coordinator, of which 65,536 may wait on a node. (3) All other clients that make, change or delete a topic are
 * refused, and so is the node itself, which has logs to open. */
#include "kafka/front/pieces.h"

#include <string.h>

#include "base/assert.h"

static void pieces_go_on(struct leat_kafka_pieces *pieces);

static void pieces_on_step(struct leat_pace_step *step)
{
    struct leat_kafka_pieces *pieces = LEAT_CONTAINER(step, struct leat_kafka_pieces, step);
    LEAT_ASSERT(pieces->queued);
    pieces->queued = false;
    pieces_go_on(pieces);
}

static struct leat_peer *peer_of(const struct leat_kafka_pieces *pieces)
{
    return pieces->request->conn->peer;
}

static bool may_begin(const struct leat_kafka_pieces *pieces)
{
    const struct leat_core *core = pieces->request->core;
    const uint32_t most = LEAT_KAFKA_PIECES_BEGUN_MAX / leat_front_cores(core);
    LEAT_ASSERT_CMP(pieces->waiting, <=, LEAT_KAFKA_PIECES_AT_ONCE);
    if (pieces->waiting == 0) return true;
    return pieces->waiting < LEAT_KAFKA_PIECES_AT_ONCE && leat_kafka_core(core)->begun < most &&
           leat_peer_share(peer_of(pieces))->begun < most / 2;
}

/* true: the rest is done in a later turn. */
static bool rest_later(struct leat_kafka_pieces *pieces, uint32_t done, uint64_t since_us)
{
    enum { LOOK_AT_CLOCK = 8 };
    const struct leat_core *core = pieces->request->core;
    bool much = done == LEAT_KAFKA_PIECES_TURN_MAX;
    if (!much && done % LOOK_AT_CLOCK == LOOK_AT_CLOCK - 1)
        much = leat_front_now(core) >= since_us + LEAT_PACE_TURN_US;
    if (much) pieces->queued = leat_pace_again(peer_of(pieces), &pieces->step, pieces_on_step);
    return pieces->queued;
}

static void pieces_go_on(struct leat_kafka_pieces *pieces)
{
    LEAT_ASSERT_OWNER(pieces->request->core);
    LEAT_ASSERT(!pieces->inside && !pieces->queued);
    LEAT_ASSERT(!pieces->request->done);
    const uint64_t since_us = leat_front_now(pieces->request->core);
    pieces->inside = true;
    for (uint32_t done = 0; !pieces->ended && may_begin(pieces); done++) {
        if (done > 0 && rest_later(pieces, done, since_us)) break;
        enum leat_kafka_piece piece = LEAT_KAFKA_PIECE_FAILED;
        if (!leat_kafka_abandoned(pieces->request)) piece = pieces->next(pieces);
        pieces->failed = piece == LEAT_KAFKA_PIECE_FAILED;
        pieces->ended = piece != LEAT_KAFKA_PIECE_DONE;
    }
    pieces->inside = false;
    if (!pieces->ended || pieces->waiting > 0) return;
    if (!pieces->failed && pieces->on_done != NULL)
        pieces->on_done(pieces);
    else
        leat_kafka_answer(pieces->request, pieces->failed ? NULL : pieces->response);
}

void *leat_kafka_pieces_take(struct leat_kafka_request *request, size_t bytes, void *response,
                             enum leat_kafka_piece (*next)(struct leat_kafka_pieces *pieces))
{
    LEAT_ASSERT_CMP(bytes, >=, sizeof(struct leat_kafka_pieces));
    struct leat_kafka_pieces *pieces = response != NULL ? leat_kafka_take(request, 1, bytes) : NULL;
    if (pieces != NULL)
        *pieces =
            (struct leat_kafka_pieces){.request = request, .response = response, .next = next};
    return pieces;
}

void leat_kafka_pieces_start(struct leat_kafka_pieces *pieces)
{
    LEAT_ASSERT(pieces->next != NULL && pieces->waiting == 0 && !pieces->ended);
    pieces_go_on(pieces);
}

void *leat_kafka_pieces_begin(struct leat_kafka_pieces *pieces, size_t bytes)
{
    LEAT_ASSERT(pieces->inside && !pieces->ended);
    LEAT_ASSERT_CMP(bytes, >=, sizeof(void *));
    void *memory = leat_free_list_take(&pieces->free);
    if (memory != NULL) {
        memset(memory, 0, bytes);
    } else if ((memory = leat_kafka_take(pieces->request, 1, bytes)) == NULL) {
        return NULL;
    }
    pieces->waiting++;
    leat_kafka_core(pieces->request->core)->begun++;
    leat_peer_share(peer_of(pieces))->begun++;
    return memory;
}

void leat_kafka_pieces_end(struct leat_kafka_pieces *pieces, void *memory)
{
    struct leat_peer *peer = peer_of(pieces);
    LEAT_ASSERT_OWNER(pieces->request->core);
    LEAT_ASSERT_CMP(pieces->waiting, >, 0);
    LEAT_ASSERT_CMP(leat_kafka_core(pieces->request->core)->begun, >, 0);
    LEAT_ASSERT_CMP(leat_peer_share(peer)->begun, >, 0);
    leat_free_list_give(&pieces->free, memory);
    pieces->waiting--;
    leat_kafka_core(pieces->request->core)->begun--;
    leat_peer_share(peer)->begun--;
    if (pieces->inside || pieces->queued) return;
    pieces->queued = true;
    leat_pace_run(peer, &pieces->step, pieces_on_step);
}
