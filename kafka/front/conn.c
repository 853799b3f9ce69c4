/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that speak Kafka's protocol: frames in, answers out in order. What all connections
 * share (pauses, slow and unfinished ones, closing) is the broker's. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/front_logs.h"
#include "kafka/front/request.h"
#include "wire/speaker.h"

static const struct leat_kafka_table *table_of(const struct leat_core *core)
{
    return leat_kafka_core(core)->door->table;
}

static bool header_is_served(const struct leat_core *core, const uint8_t *frame)
{
    const struct leat_kafka_api *api = table_of(core)->find((int16_t)leat_get_be16(frame));
    int16_t version = (int16_t)leat_get_be16(frame + 2);
    return api != NULL && version >= api->first && version <= api->last;
}

static enum leat_handled conn_take(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                   size_t *out_taken, size_t *out_want);
static enum leat_handled conn_begin(struct leat_kafka_conn *conn, const uint8_t *frame,
                                    uint32_t count, size_t bytes, size_t *out_taken);
static void conn_on_closed(struct leat_peer *peer);
static void conn_answer(struct leat_peer *peer);
static enum leat_handled conn_handle(struct leat_kafka_request *request);
static leat_err request_parse(struct leat_kafka_request *request, const uint8_t *frame,
                              size_t bytes, const char **out_wrong);

static const struct leat_protocol protocol = {conn_take, conn_on_closed, conn_answer,
                                              LEAT_KAFKA_IDLE_US, NULL};

enum {
    FIRST_KNOWN_BYTES = LEAT_KAFKA_FRAME_HEAD_BYTES + 4, /* API and version */
    GATHER_BYTES = 16 * 1024, /* answers gathered before they are copied to the connection */
    WHY_BYTES = 240,
    MEMORY_UNIT_BYTES = 4096,
};
#define ANSWER_WAITS UINT32_MAX

static struct leat_kafka_conn *conn_of(struct leat_peer *peer)
{
    return leat_peer_own(peer);
}

void *leat_kafka_accept(void *acceptor, struct leat_conn *conn,
                        const struct leat_conn_handler **out_handler)
{
    _Static_assert(sizeof(struct leat_kafka_conn) <= LEAT_FRONT_CONN_BYTES,
                   "it lies beside its peer");
    LEAT_ASSERT_OWNER(acceptor);
    if (!leat_front_node(acceptor).up) return NULL;
    struct leat_peer *peer =
        leat_peer_accepted(acceptor, conn, &protocol, sizeof(struct leat_kafka_conn), out_handler);
    if (peer != NULL) conn_of(peer)->peer = peer;
    return peer;
}

/* ---- frames ---- */

static enum leat_handled conn_refuse(struct leat_peer *peer, const char *why, size_t bytes,
                                     size_t *out_taken)
{
    leat_peer_close(peer, why);
    *out_taken = bytes;
    return LEAT_LEFT;
}

/* The connection's first bytes are not Kafka's protocol. A client of Leat's own protocol is told so in a form that it
 * reads. */
static enum leat_handled conn_speaks_else(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                          size_t *out_taken)
{
    enum { REQUEST_AT = 8 };
    enum leat_speaker speaker = leat_speaker_of(data, bytes);
    const char *text = leat_speaker_text(speaker);
    if (speaker == LEAT_SPEAKER_CLIENT && bytes >= REQUEST_AT + 4) {
        leat_peer_refuse_and_close(peer, LEAT_KIND_HELLO, leat_get_le32(data + REQUEST_AT),
                                   LEAT_E_INVALID,
                                   "this port is for clients of Kafka; that of Leat's own protocol "
                                   "is the one of --listen (7700)");
        *out_taken = bytes;
        return LEAT_LEFT;
    }
    return conn_refuse(
        peer,
        text != NULL ? text : "its frame's length is none of Kafka's protocol, or above 8 MiB",
        bytes, out_taken);
}

/* Kafka's clients know of nodes, not of cores. Connections are spread at first, and move once more
 * when they say what they are for: to the core of the first partition that they produce to or fetch
 * from. Most have only one, or few; what lives elsewhere goes there by mail. */
static bool conn_spread(struct leat_kafka_conn *conn)
{
    struct leat_core *core = leat_peer_core(conn->peer);
    struct leat_kafka_core *here = leat_kafka_core(core);
    /* The connection's first request has not begun */
    LEAT_ASSERT(conn->first == NULL && !conn->placed);
    uint32_t to = here->next_core++ % leat_front_cores(core);
    conn->spread = true;
    if (to == leat_front_index(core)) return false;
    leat_peer_move(conn->peer, to);
    return true;
}

/* In units of memory, which are counted rather than bytes. */
static void memory_count(struct leat_kafka_core *here)
{
    const struct leat_kafka_arena_share *share = &here->share;
    LEAT_ASSERT_CMP(share->bytes_used, <=, share->bytes_max);
    size_t most = leat_kafka_arena_share_most(share);
    size_t left = share->bytes_used < most ? most - share->bytes_used : 0;
    leat_front_stock_left(here->memory, (uint32_t)(left / MEMORY_UNIT_BYTES));
}

static void memory_wait(struct leat_kafka_conn *conn, bool only, size_t bytes)
{
    struct leat_kafka_core *here = leat_kafka_core(leat_peer_core(conn->peer));
    memory_count(here);
    leat_stock_wait(here->memory, conn->peer, only,
                    (uint32_t)((bytes + MEMORY_UNIT_BYTES - 1) / MEMORY_UNIT_BYTES));
}

static struct leat_kafka_request *request_create(struct leat_kafka_conn *conn)
{
    struct leat_core *core = leat_peer_core(conn->peer);
    struct leat_kafka_core *here = leat_kafka_core(core);
    const bool only = leat_peer_requests(conn->peer) == 0;
    LEAT_ASSERT(conn->held == NULL); /* a held request's frame comes first */
    LEAT_ASSERT((conn->first == NULL) == (conn->last == NULL));
    /* One half of the memory is for connections with one request at a time. */
    if (!only && here->share.bytes_used > here->share.bytes_max / 2) {
        memory_wait(conn, false, here->share.bytes_max / 2);
        return NULL;
    }
    struct leat_kafka_request *request = leat_stock_take_for(here->requests, conn->peer, only);
    if (request == NULL) return NULL;
    memset(request, 0, offsetof(struct leat_kafka_request, arena));
    leat_kafka_arena_init(&request->arena, &here->share, LEAT_KAFKA_ARENA_BYTES_MAX);
    if (only) request->arena.own_bytes_max = LEAT_KAFKA_ARENA_OWN_BYTES;
    request->conn = conn;
    request->core = core;
    if (conn->last != NULL)
        conn->last->next = request;
    else
        conn->first = request;
    conn->last = request;
    leat_peer_begin(conn->peer);
    return request;
}

static void request_free(struct leat_kafka_request *request)
{
    struct leat_kafka_core *here = leat_kafka_core(request->core);
    struct leat_peer *peer = request->conn->peer;
    LEAT_ASSERT(request->conn->first != request && request->conn->held != request);
    if (request->on_freed != NULL) request->on_freed(request);
    leat_kafka_arena_fini(&request->arena);
    memory_count(here);
    leat_stock_give(here->requests, request, peer, leat_peer_sharer(peer));
    leat_peer_end(peer);
}

/* true: it has moved, and the request with it will be read anew there. */
static bool conn_place(struct leat_kafka_request *request)
{
    struct leat_kafka_conn *conn = request->conn;
    struct leat_core *core = request->core;
    uint32_t home;
    /* Only what has nothing under way can move; the next request may find it so. */
    if (conn->first != request || leat_peer_requests(conn->peer) != 1 ||
        leat_peer_unsent(conn->peer) > 0)
        return false;
    LEAT_ASSERT(conn->last == request);
    if (!table_of(core)->home(request, &home)) return false;
    LEAT_ASSERT_CMP(home, <, leat_front_cores(core));
    conn->placed = true;
    if (home == leat_front_index(core)) return false;
    conn->first = conn->last = NULL;
    request_free(request);
    leat_peer_move(conn->peer, home);
    return true;
}

/* Why the connection's request can't be read, and what its user can do about it. */
static void why_text(const struct leat_kafka_request *request, const uint8_t *frame,
                     const char *wrong, char why[WHY_BYTES])
{
    const struct leat_kafka_api *api = request->api;
    if (api == NULL)
        snprintf(why, WHY_BYTES, "a request (API key %d, version %d) can't be read: %s",
                 (int16_t)leat_get_be16(frame), request->version, wrong);
    else if (request->version < api->first)
        snprintf(
            why, WHY_BYTES,
            "a request (%s, version %d) can't be read: versions %d to %d of it are served: set "
            "the version of Kafka that this client is for to 0.11 or higher",
            api->name, request->version, api->first, api->last);
    else
        snprintf(why, WHY_BYTES, "a request (%s, version %d) can't be read: %s", api->name,
                 request->version, wrong);
}

/* Records go in and out as many as there are: their own limits hold for them. */
static bool is_paced(int16_t key)
{
    return key != LEAT_KAFKA_PRODUCE && key != LEAT_KAFKA_FETCH;
}

/* Other requests have the memory that this request needs: the request is read anew when there is enough. false: there
 * never will be enough. */
static bool conn_yields(struct leat_kafka_request *request)
{
    struct leat_kafka_conn *conn = request->conn;
    struct leat_kafka_core *here = leat_kafka_core(request->core);
    struct leat_kafka_request **last = &conn->first;
    const size_t missed = request->arena.bytes_missed;
    LEAT_ASSERT(!request->done && request->on_freed == NULL); /* nothing has begun */
    LEAT_ASSERT(conn->last == request);
    leat_kafka_arena_fini(&request->arena);
    if (missed == 0 || missed > leat_kafka_arena_share_most(&here->share)) return false;
    conn->last = NULL;
    while (*last != request) {
        conn->last = *last;
        last = &(*last)->next;
        LEAT_ASSERT(*last != NULL);
    }
    *last = NULL;
    /* No connection is called here: two connections that both find no room would call each other for ever. */
    leat_stock_give(here->requests, request, conn->peer, leat_peer_sharer(conn->peer));
    leat_peer_end(conn->peer);
    memory_wait(conn, leat_peer_requests(conn->peer) == 0, missed);
    return true;
}

/* The first request under way begins now if it waited for its turn. */
static void conn_turn(struct leat_kafka_conn *conn)
{
    struct leat_kafka_request *request = conn->first;
    if (request == NULL || request->on_turn == NULL || request->done ||
        !leat_peer_is_there(conn->peer))
        return;
    void (*on_turn)(struct leat_kafka_request *) = request->on_turn;
    request->on_turn = NULL;
    on_turn(request);
}

static enum leat_handled conn_take(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                   size_t *out_taken, size_t *out_want)
{
    struct leat_kafka_conn *conn = conn_of(peer);
    LEAT_ASSERT_OWNER(leat_peer_core(peer));
    conn_turn(conn);
    if (leat_peer_is_paused(peer)) return LEAT_HELD;
    if (bytes < LEAT_KAFKA_FRAME_HEAD_BYTES) {
        *out_want = LEAT_KAFKA_FRAME_HEAD_BYTES;
        return LEAT_SHORT;
    }
    uint32_t count = leat_get_be32(data);
    if (count < LEAT_KAFKA_FRAME_BYTES_MIN || count > LEAT_KAFKA_FRAME_BYTES_MAX)
        return conn_speaks_else(peer, data, bytes, out_taken);
    if (!leat_peer_is_known(peer) && count > LEAT_FIRST_FRAME_BYTES_MAX) {
        if (bytes < FIRST_KNOWN_BYTES) {
            *out_want = FIRST_KNOWN_BYTES;
            return LEAT_SHORT;
        }
        /* SUBTLE: clients that are told which versions to use send a large Produce as the first request of a
         * connection to a partition's leader. A header that is served identifies the client as well as a small
         * request would. */
        if (!header_is_served(leat_peer_core(peer), data + LEAT_KAFKA_FRAME_HEAD_BYTES))
            return conn_refuse(peer,
                               "its first request is larger than 64 KiB, and none that is served",
                               bytes, out_taken);
        leat_peer_known(peer);
    }
    if (bytes - LEAT_KAFKA_FRAME_HEAD_BYTES < count) {
        *out_want = LEAT_KAFKA_FRAME_HEAD_BYTES + (size_t)count;
        return LEAT_SHORT;
    }
    if (!conn->spread && conn_spread(conn)) return LEAT_LEFT;
    const uint8_t *frame = data + LEAT_KAFKA_FRAME_HEAD_BYTES;
    *out_taken = LEAT_KAFKA_FRAME_HEAD_BYTES + (size_t)count;
    struct leat_kafka_request *request = conn->held;
    if (request != NULL) {
        LEAT_ASSERT(request == conn->last); /* no later request begins */
        request->frame = frame;
        return conn_handle(request);
    }
    const bool paced = is_paced((int16_t)leat_get_be16(frame));
    if (paced && !leat_pace_begin(peer)) return LEAT_HELD;
    enum leat_handled handled = conn_begin(conn, frame, count, bytes, out_taken);
    if (paced) leat_pace_end(peer);
    return handled;
}

static enum leat_handled conn_begin(struct leat_kafka_conn *conn, const uint8_t *frame,
                                    uint32_t count, size_t bytes, size_t *out_taken)
{
    struct leat_kafka_request *request = request_create(conn);
    if (request == NULL) return LEAT_HELD;
    request->frame = request->frame_first = frame;
    const char *wrong = NULL;
    leat_err rc = request_parse(request, frame, count, &wrong);
    if (rc == LEAT_E_NO_MEMORY && conn_yields(request)) return LEAT_HELD;
    if (rc != LEAT_OK) {
        char why[WHY_BYTES];
        why_text(request, frame, wrong, why);
        leat_kafka_give_up(request, why);
        *out_taken = bytes;
        return LEAT_LEFT;
    }
    if (!leat_peer_is_known(conn->peer)) leat_peer_known(conn->peer);
    if (!conn->placed && conn_place(request)) {
        *out_taken = 0; /* the frame goes along */
        return LEAT_LEFT;
    }
    return conn_handle(request);
}

static enum leat_handled conn_handle(struct leat_kafka_request *request)
{
    struct leat_kafka_conn *conn = request->conn;
    LEAT_ASSERT(!request->done && !request->handling);
    LEAT_ASSERT(conn->first != NULL && conn->last == request);
    request->hold = false;
    request->handling = true;
    request->api->handle(request);
    request->handling = false;
    LEAT_ASSERT(!request->hold || (request->api->flags & LEAT_KAFKA_IN_PLACE) != 0);
    LEAT_ASSERT(!request->hold || (!request->done && !request->starved));
    if (request->starved) {
        if (conn_yields(request)) return LEAT_HELD;
        leat_kafka_answer(request, NULL);
    }
    conn->held = request->hold ? request : NULL;
    if (request->hold) return LEAT_HELD;
    return leat_peer_is_closing(conn->peer) ? LEAT_LEFT : LEAT_HANDLED;
}

/* ---- a request's bytes ---- */

static void name_note(struct leat_kafka_request *request)
{
    const struct leat_kafka_string *id = &request->client_id;
    if (id->bytes > 0) leat_peer_name_note(request->conn->peer, id->text, (size_t)id->bytes);
}

/* The rest of a request of an unknown version can't be read. By ApiVersions clients find out which versions are
 * known, so ApiVersions alone is answered then: in version 0, which every client reads (KIP-511). */
static leat_err version_check(struct leat_kafka_request *request, const char **out_wrong)
{
    const struct leat_kafka_api *api = request->api;
    if (api == NULL) {
        *out_wrong = "no such API is served here";
        return LEAT_E_UNSUPPORTED;
    }
    if (request->version >= api->first && request->version <= api->last) return LEAT_OK;
    if (api->key == LEAT_KAFKA_API_VERSIONS) return LEAT_OK;
    *out_wrong = "this version of it is not served here";
    return LEAT_E_UNSUPPORTED;
}

static leat_err request_parse(struct leat_kafka_request *request, const uint8_t *frame,
                              size_t bytes, const char **out_wrong)
{
    struct leat_kafka_reader reader = {.at = frame, .end = frame + bytes, .arena = &request->arena};
    LEAT_ASSERT_CMP(bytes, >=, LEAT_KAFKA_FRAME_BYTES_MIN);
    int16_t key = leat_kafka_read_i16(&reader);
    request->version = leat_kafka_read_i16(&reader);
    request->correlation = leat_kafka_read_i32(&reader);
    request->api = table_of(request->core)->find(key);
    LEAT_ASSERT(reader.wrong == NULL); /* any frame has so many bytes */
    const struct leat_kafka_reader behind_numbers = reader;
    request->client_id = leat_kafka_read_string(&reader, true); /* the same in all headers */
    name_note(request);
    reader = behind_numbers;
    leat_err rc = version_check(request, out_wrong);
    if (rc != LEAT_OK) return rc;
    const struct leat_kafka_api *api = request->api;
    if (request->version > api->last || request->version < api->first) return LEAT_OK;
    if ((api->flags & LEAT_KAFKA_IN_PLACE) == 0) {
        uint8_t *copy = leat_kafka_take(request, bytes, 1);
        *out_wrong = "there is no memory for it";
        if (copy == NULL) return LEAT_E_NO_MEMORY;
        memcpy(copy, frame, bytes);
        reader.at = copy + (reader.at - frame);
        reader.end = copy + bytes;
    }
    const bool flexible = request->version >= api->flexible;
    request->client_id = leat_kafka_read_string(&reader, true);
    if (flexible) leat_kafka_skip_tags(&reader);
    if ((api->flags & LEAT_KAFKA_IN_PLACE) != 0) request->client_id.text = NULL;
    reader.version = request->version;
    reader.flexible = flexible;
    const struct leat_kafka_type *type = api->request();
    void *body = leat_kafka_take(request, 1, type->bytes);
    *out_wrong = "there is no memory for it";
    if (body == NULL) return LEAT_E_NO_MEMORY;
    if (reader.wrong == NULL) rc = leat_kafka_decode(&reader, type, body);
    /* Bytes after the last field are skipped, as Kafka does: librdkafka 2.16 asks for the metadata of all topics
     * (version 13) with a null array of four bytes instead of one, which reads as a request with three bytes too
     * many. */
    *out_wrong = reader.wrong;
    request->body = body;
    if (reader.wrong != NULL && rc == LEAT_OK) rc = LEAT_E_INVALID;
    return rc;
}

/* ---- answers ---- */

/* The answer does not fit the core's buffer: it gets a buffer of its own. */
static void answer_large(struct leat_kafka_request *request, size_t bytes)
{
    struct leat_peer *peer = request->conn->peer;
    uint8_t *buffer = NULL;
    if (bytes <= LEAT_KAFKA_ANSWER_BYTES_MAX) buffer = leat_mem_calloc(LEAT_MEM_BROKER, bytes, 1);
    if (buffer == NULL) {
        leat_peer_close(peer, "there is no memory for an answer");
        return;
    }
    size_t again =
        leat_kafka_answer_encode(request, request->response, buffer, bytes, NULL, 0, NULL);
    LEAT_ASSERT_CMP(again, ==, bytes); /* the response is as it was when it was measured */
    leat_peer_send_large(peer, buffer, bytes);
}

/* Append one answer to `used` bytes of the core's buffer; returns the new number of bytes. ANSWER_WAITS: the gathered
 * answers are sent, and this answer has to wait for room. */
static uint32_t answer_one(struct leat_kafka_request *request, uint32_t used)
{
    struct leat_peer *peer = request->conn->peer;
    uint8_t *scratch = leat_front_scratch(request->core);
    LEAT_ASSERT(request->done);
    LEAT_ASSERT_CMP(used, <=, LEAT_CORE_SCRATCH_BYTES);
    if (used > 0 && (used >= GATHER_BYTES || request->send != NULL)) {
        leat_peer_send_bytes(peer, scratch, used);
        used = 0;
    }
    if (request->send != NULL) {
        request->send(request);
        return 0;
    }
    size_t room = LEAT_CORE_SCRATCH_BYTES - used;
    size_t bytes =
        leat_kafka_answer_encode(request, request->response, scratch + used, room, NULL, 0, NULL);
    bool fits = leat_output_fits(peer, bytes);
    if (fits && bytes <= room) return used + (uint32_t)bytes;
    if (used > 0) leat_peer_send_bytes(peer, scratch, used);
    if (!fits) {
        leat_output_wait(peer, bytes, false);
        return ANSWER_WAITS;
    }
    if (bytes > LEAT_CORE_SCRATCH_BYTES) {
        answer_large(request, bytes);
        return 0;
    }
    return (uint32_t)leat_kafka_answer_encode(request, request->response, scratch,
                                              LEAT_CORE_SCRATCH_BYTES, NULL, 0, NULL);
}

/* Answer what is done at the front, in order, gathered into one piece. */
static void conn_answer(struct leat_peer *peer)
{
    struct leat_kafka_conn *conn = conn_of(peer);
    uint32_t used = 0;
    struct leat_kafka_request *request;
    LEAT_ASSERT_OWNER(leat_peer_core(peer));
    if (leat_peer_waits_for_room(peer)) return; /* for room: it comes back here then */
    leat_peer_begin(peer); /* the last request's end must not end the peer under our hands */
    if (!leat_peer_waits_for_structs(peer)) conn_turn(conn);
    while ((request = conn->first) != NULL && request->done && request != conn->held) {
        bool told = leat_peer_is_there(peer) && !leat_peer_is_closing(peer) && !request->silent;
        /* A client that takes no answers gets the next answers when it takes them: slow_peers.c drains it. */
        if (told && used == 0 && leat_peer_unsent(peer) > 0 && leat_peer_is_slow(peer)) break;
        const bool paced = told && is_paced(request->api != NULL ? request->api->key : -1);
        if (paced && !leat_pace_answer(peer)) break;
        if (told) used = answer_one(request, used);
        if (paced) leat_pace_end(peer);
        if (used == ANSWER_WAITS) {
            used = 0;
            break;
        }
        LEAT_ASSERT((request->next == NULL) == (conn->last == request));
        conn->first = request->next;
        if (request->next == NULL) conn->last = NULL;
        request_free(request);
        conn_turn(conn);
    }
    if (used > 0) leat_peer_send_bytes(peer, leat_front_scratch(leat_peer_core(peer)), used);
    if (conn->held != NULL && conn->held == conn->first)
        leat_peer_hurry(peer); /* all other requests wait for the held request */
    leat_peer_end(peer);
}

static void conn_on_closed(struct leat_peer *peer)
{
    struct leat_kafka_conn *conn = conn_of(peer);
    LEAT_ASSERT_OWNER(leat_peer_core(peer));
    leat_append_peer_closed(peer);
    leat_fetch_peer_closed(peer);
    conn->held = NULL;
    for (struct leat_kafka_request *request = conn->first; request != NULL;
         request = request->next) {
        void (*on_abandoned)(struct leat_kafka_request *) = request->on_abandoned;
        request->on_abandoned = NULL;
        if (!request->done && on_abandoned != NULL) on_abandoned(request);
    }
    /* A request that is done is freed after all earlier requests are done. */
    if (conn->first != NULL && conn->first->done) leat_peer_answer_later(peer);
}
