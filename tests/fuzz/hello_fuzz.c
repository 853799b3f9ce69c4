/* SPDX-License-Identifier: Apache-2.0 */
/* The node port: NONCE, HELLO and its proof, and the frames after these.
 *
 * The first byte describes the peer. Bit 0: this node opens the connection, or accepts it. Bit 1: the peer has the
 * cluster's key, or sends bytes. A peer without the key learns a nonce at most and never gets in, and none of its
 * frames is taken. A peer with the key gets in only with a hello that says which node it is; its one-sided writes then
 * lie inside the memory that the host gave. A tag that is wrong ends the connection.
 *
 * Pieces follow (fuzz.h). From a peer without the key, a piece is the bytes that arrive at once. From a peer with the
 * key, a piece is a frame: two bytes of kind, a byte of flags, two bytes with the length of the control body, the
 * control body, the payload. Bit 0 of the piece's kind spoils the tag. */
#include "fuzz.h"

#include "base/mem.h"
#include "link/internal.h"
#include "replication/transport/data.h"

enum { OPENS = 1, HAS_KEY = 2, SPOILT = 1 };
enum {
    CORES = 2,
    ARENA_BYTES = 4096,
    SENDS_MAX = 4096,
    PIECE_HEAD_BYTES = 5,
    IN_BYTES_MAX = 256 * 1024,
};

/* ---- the world: one connection, two actors ---- */

struct leat_conn {
    const struct leat_conn_handler *handler;
    void *user;
    bool there, closed, told, paused, resumed;
    uint8_t in[IN_BYTES_MAX]; /* what the node has not taken yet */
    size_t in_bytes;
    struct leat_send *sends[SENDS_MAX];
    unsigned send_count;
    uint8_t out[1024]; /* the beginning of what the node said */
    size_t out_bytes;
    void *(*on_moved)(void *to, struct leat_conn *conn, void *baggage,
                      const struct leat_conn_handler **out_handler);
    void *baggage;
};
static struct leat_conn conn;
static uint64_t now_us;
static const struct leat_key cluster_key = {{"the cluster's key, of 32 bytes."}};
static unsigned ups, requests;
static struct leat_mail *mails;

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return 7;
}
/* The input decides the secret: a tag that the fuzzer learns in one input is no help with the next input. */
static uint32_t secret;
static void random_secret(void *ctx, void *out, size_t bytes)
{
    (void)ctx;
    for (size_t i = 0; i + 4 <= bytes; i += 4)
        leat_put_le32((uint8_t *)out + i, secret + (uint32_t)i);
}
static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    (void)to;
    mail->next = mails;
    mails = mail;
}

static void out_add(const void *bytes, size_t count)
{
    size_t room = sizeof conn.out - conn.out_bytes, part = count < room ? count : room;
    memcpy(conn.out + conn.out_bytes, bytes, part);
    conn.out_bytes += part;
}
static leat_err net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                            void *user, struct leat_conn **out_conn)
{
    (void)ctx;
    (void)address;
    if (conn.there) return LEAT_E_UNREACHABLE; /* once */
    conn.there = true;
    conn.handler = handler;
    conn.user = user;
    *out_conn = &conn;
    return LEAT_OK;
}
static void net_send(struct leat_conn *it, struct leat_send *send)
{
    LEAT_ASSERT(it->there && it->send_count < SENDS_MAX);
    for (unsigned i = 0; i < send->iov_count; i++)
        out_add(send->iovs[i].base, send->iovs[i].bytes);
    it->sends[it->send_count++] = send;
}
static leat_err net_send_copy(struct leat_conn *it, const void *bytes, size_t count)
{
    LEAT_ASSERT(it->there);
    out_add(bytes, count);
    return LEAT_OK;
}
static size_t net_zero(const struct leat_conn *it)
{
    (void)it;
    return 0;
}
static void net_pause(struct leat_conn *it)
{
    it->paused = true;
}
static void net_resume(struct leat_conn *it)
{
    it->paused = false;
    it->resumed = true;
}
static void net_close(struct leat_conn *it)
{
    it->closed = true;
}
static void net_move(struct leat_conn *it, unsigned to_actor,
                     void *(*on_moved)(void *to, struct leat_conn *conn, void *baggage,
                                       const struct leat_conn_handler **out_handler),
                     void *baggage)
{
    (void)to_actor;
    it->on_moved = on_moved;
    it->baggage = baggage;
}
static void net_account(struct leat_conn *it, enum leat_net_account account)
{
    (void)it;
    (void)account;
}
static const char *net_peer(const struct leat_conn *it)
{
    (void)it;
    return "203.0.113.7:51234";
}
static const uint8_t *net_key(const struct leat_conn *it)
{
    static const uint8_t key[LEAT_NET_KEY_BYTES] = {203, 0, 113, 7};
    (void)it;
    return key;
}

/* ---- the node: a core that listens, and one beside it ---- */

static const struct leat_clock clock_port = {NULL, clock_now, NULL, clock_wake};
static const struct leat_random random_port = {NULL, random_next, random_secret};
static const struct leat_net net_port = {.connect = net_connect,
                                         .send = net_send,
                                         .send_copy = net_send_copy,
                                         .queued_bytes = net_zero,
                                         .copied_bytes = net_zero,
                                         .pause = net_pause,
                                         .resume = net_resume,
                                         .close = net_close,
                                         .move = net_move,
                                         .account = net_account,
                                         .peer = net_peer,
                                         .key = net_key};
struct core {
    struct leat_post post;
    struct leat_env env;
    struct leat_timers timers;
    struct leat_links *links;
    struct leat_transport_sink *sink;
    struct leat_link_handler handler;
};
static struct core cores[CORES];
static struct leat_link_hub hub;
static uint8_t *arena; /* so that whoever leaves it is caught */

static leat_err host_enter(void *ctx, const struct leat_rmem_from *from,
                           const struct leat_rmem_address *address, uint64_t offset, uint64_t bytes,
                           uint8_t **out_at)
{
    (void)ctx;
    if (address->number != 1) return LEAT_E_NOT_FOUND;
    if (strcmp(from->node, "right") != 0) return LEAT_E_DENIED;
    if (offset > ARENA_BYTES || bytes > ARENA_BYTES - offset) return LEAT_E_OFFSET_OUT_OF_RANGE;
    *out_at = arena + offset;
    return LEAT_OK;
}
static leat_err host_leave(void *ctx, const struct leat_rmem_address *address)
{
    (void)ctx;
    return address->zero ? LEAT_E_CANCELLED : LEAT_OK;
}
static const struct leat_rmem_host host = {.enter = host_enter, .leave = host_leave};

static void on_up(void *owner, struct leat_link *link)
{
    const struct leat_link_identity *peer = leat_link_peer(link);
    (void)owner;
    ups++;
    size_t bytes = strnlen(peer->node, sizeof peer->node);
    LEAT_ASSERT(bytes > 0 && bytes < sizeof peer->node);
    for (size_t i = 0; i < bytes; i++)
        LEAT_ASSERT((uint8_t)peer->node[i] >= ' ' && peer->node[i] != 0x7f);
    LEAT_ASSERT(peer->cores >= 1 && peer->cores <= LEAT_CORES_MAX);
    LEAT_ASSERT(leat_link_purpose_of(link) < LEAT_LINK_PURPOSES);
}
static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    (void)owner;
    (void)link;
    LEAT_ASSERT(was_up ? ups > 0 : true);
    LEAT_ASSERT(error->code != LEAT_OK && error->text[0]);
}
static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    (void)owner;
    requests++;
    LEAT_ASSERT(ups > 0);
    leat_link_answer(leat_link_links(link), ticket, frame->control,
                     frame->control_bytes < 64 ? frame->control_bytes : 64);
}

static void core_open(unsigned i)
{
    struct core *core = &cores[i];
    memset(core, 0, sizeof *core);
    core->post = (struct leat_post){.send = post_send, .self = i};
    core->env = (struct leat_env){
        .clock = &clock_port, .random = &random_port, .post = &core->post, .net = &net_port};
    core->handler = (struct leat_link_handler){on_up, on_down, on_request, core};
    struct leat_transport_sink_options sink = {
        .env = &core->env, .host = &host, .baseline = &leat_transport_rpc};
    leat_err rc = leat_transport_sink_create(&sink, &core->sink);
    if (rc == LEAT_OK) rc = leat_timers_init(&core->timers, &clock_port, LEAT_LINKS_TIMERS);
    struct leat_links_options options = {
        .env = &core->env,
        .timers = &core->timers,
        .hub = &hub,
        .key = &cluster_key,
        .identity = {.node = "left", .incarnation = 11, .cores = CORES, .cluster_id = {7}}};
    options.services[LEAT_LINK_SERVE].handler = &core->handler;
    options.services[LEAT_LINK_COORDINATE].handler = &core->handler;
    options.services[LEAT_LINK_COORDINATE].strangers = true;
    options.services[LEAT_LINK_DATA].handler = leat_transport_sink_handler(core->sink);
    if (rc == LEAT_OK) rc = leat_links_create(&options, &core->links, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
}

/* ---- events ---- */

static void sends_end(leat_err rc)
{
    for (unsigned i = 0; i < conn.send_count; i++)
        conn.sends[i]->on_sent(conn.sends[i], rc);
    conn.send_count = 0;
}

static void settle(void)
{
    while (mails) {
        struct leat_mail *mail = mails;
        mails = mail->next;
        mail->deliver(NULL, mail);
    }
    sends_end(LEAT_OK);
    if (conn.closed && !conn.told) {
        conn.told = true;
        conn.handler->on_closed(conn.user, &conn, LEAT_OK);
    }
}

static void conn_moved(void)
{
    const struct leat_conn_handler *handler = NULL;
    LEAT_ASSERT(conn.send_count == 0);
    conn.user = conn.on_moved(NULL, &conn, conn.baggage, &handler);
    conn.on_moved = NULL;
    conn.handler = handler;
    if (!conn.user) conn.closed = conn.told = true; /* nobody is told */
}

static void bytes_show(void)
{
    for (bool again = true; again && !conn.closed && !conn.paused;) {
        size_t want = 0;
        conn.resumed = false;
        size_t used = conn.handler->on_bytes(conn.user, &conn, conn.in, conn.in_bytes, &want);
        LEAT_ASSERT(used <= conn.in_bytes);
        conn.in_bytes -= used;
        memmove(conn.in, conn.in + used, conn.in_bytes);
        again = conn.on_moved != NULL;
        if (again) conn_moved();
        settle();
        again = again || conn.resumed;
    }
}

static void bytes_arrive(const uint8_t *bytes, size_t count)
{
    if (conn.closed || count > sizeof conn.in - conn.in_bytes) return;
    if (count) memcpy(conn.in + conn.in_bytes, bytes, count);
    conn.in_bytes += count;
    bytes_show();
}

/* ---- who has the key ---- */

struct peer {
    struct leat_mac *out;
    uint32_t request;
};

static size_t nonce_make(uint8_t *frame, bool answer)
{
    static const uint8_t nonce[LEAT_NONCE_BYTES] = {1, 2, 3};
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, frame + LEAT_FRAME_HEADER_BYTES, 64);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_bin(&writer, nonce, sizeof nonce);
    leat_frame_encode(frame, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX,
                      answer ? LEAT_FRAME_ANSWER : 0, 1, writer.used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer.used;
}

/* Both nonces, in the order that they were said in. */
static bool peer_prove(struct peer *peer, bool opens)
{
    uint8_t said[2 * LINK_NONCE_FRAME_BYTES_MAX], *own;
    uint8_t frame[LINK_NONCE_FRAME_BYTES_MAX];
    size_t bytes = nonce_make(frame, opens);
    bytes_arrive(frame, bytes);
    if (conn.closed || conn.out_bytes < bytes) return false;
    own = opens ? said + bytes : said;
    memcpy(own, frame, bytes);
    memcpy(opens ? said : said + bytes, conn.out, bytes);
    leat_err rc = leat_mac_create(
        &cluster_key, said, 2 * bytes,
        opens ? "leat node 3: acceptor to opener" : "leat node 3: opener to acceptor", &peer->out);
    LEAT_ASSERT(rc == LEAT_OK);
    return true;
}

static void peer_say(struct peer *peer, const struct fuzz_piece *piece)
{
    static uint8_t frame[LEAT_FRAME_HEADER_BYTES + UINT16_MAX + LEAT_TAG_BYTES];
    if (piece->count < PIECE_HEAD_BYTES) return;
    size_t body = piece->count - PIECE_HEAD_BYTES, control = leat_get_le16(piece->bytes + 3);
    if (control > body) control = body;
    memcpy(frame + LEAT_FRAME_HEADER_BYTES, piece->bytes + PIECE_HEAD_BYTES, body);
    leat_frame_encode(frame, (enum leat_kind)leat_get_le16(piece->bytes), LEAT_NODE_VERSION_MAX,
                      piece->bytes[2], ++peer->request, (uint32_t)control,
                      (uint32_t)(body - control) + LEAT_TAG_BYTES);
    size_t tagged = LEAT_FRAME_HEADER_BYTES + body;
    leat_mac_tag(peer->out, &(struct leat_iov){frame, tagged}, 1, frame + tagged);
    bool spoilt = piece->kind & SPOILT, was_open = !conn.closed;
    if (spoilt) frame[tagged] ^= 1;
    unsigned before = ups + requests;
    bytes_arrive(frame, tagged + LEAT_TAG_BYTES);
    if (spoilt && was_open) LEAT_ASSERT(conn.closed && ups + requests == before);
}

/* ---- one connection ---- */

static void key_holder_talk(bool opens, struct fuzz_pieces *pieces)
{
    struct peer peer = {0};
    struct fuzz_piece piece;
    if (!peer_prove(&peer, opens)) return;
    while (fuzz_piece_next(pieces, &piece) && !conn.closed)
        peer_say(&peer, &piece);
    leat_mac_destroy(&peer.out);
}

static void stranger_talk(bool opens, struct fuzz_pieces *pieces)
{
    struct fuzz_piece piece;
    while (fuzz_piece_next(pieces, &piece) && !conn.closed)
        bytes_arrive(piece.bytes, piece.count);
    LEAT_ASSERT(ups == 0 && requests == 0);
    /* Whoever this node connects to is sent its hello, too, which no key but the cluster's makes. */
    if (!opens) LEAT_ASSERT_CMP(conn.out_bytes, <=, LINK_NONCE_FRAME_BYTES_MAX);
}

static void connection_begin(bool opens)
{
    if (!opens) {
        conn.there = true;
        conn.user = leat_link_accept(cores[0].links, &conn, &conn.handler);
        LEAT_ASSERT(conn.user);
        return;
    }
    struct leat_link_options options = {
        .address = "right:1", .purpose = LEAT_LINK_SERVE, .handler = &cores[0].handler};
    struct leat_link *link;
    leat_err rc = leat_link_open(cores[0].links, &options, &link, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    for (int i = 0; i < 10 && !conn.there; i++) {
        now_us += 1000000;
        leat_timers_run(&cores[0].timers);
    }
    LEAT_ASSERT(conn.there);
    conn.handler->on_open(conn.user, &conn);
    settle();
}

static void time_pass(void)
{
    for (int i = 0; i < 8; i++) {
        now_us += 500000;
        for (unsigned core = 0; core < CORES; core++)
            leat_timers_run(&cores[core].timers);
        settle();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    bool opens = data[0] & OPENS;
    struct fuzz_pieces pieces = {data + 1, data + size};
    memset(&conn, 0, offsetof(struct leat_conn, in));
    conn.in_bytes = conn.out_bytes = 0;
    conn.send_count = 0;
    conn.on_moved = NULL;
    now_us = 1000000;
    secret = leat_crc32c(0, data, size);
    ups = requests = 0;
    arena = malloc(ARENA_BYTES);
    for (unsigned i = 0; i < CORES; i++)
        core_open(i);
    connection_begin(opens);
    if (data[0] & HAS_KEY)
        key_holder_talk(opens, &pieces);
    else
        stranger_talk(opens, &pieces);
    if (!conn.closed) time_pass();
    settle(); /* the sink's mail names the links */
    for (unsigned i = 0; i < CORES; i++)
        leat_links_destroy(&cores[i].links);
    settle();
    for (unsigned i = 0; i < CORES; i++) {
        leat_transport_sink_destroy(&cores[i].sink);
        leat_timers_fini(&cores[i].timers);
    }
    free(arena);
    return 0;
}
