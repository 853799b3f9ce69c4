/* SPDX-License-Identifier: Apache-2.0 */
/* link/hello.c alone: what a hello says, which hellos and answers are taken at each of their bounds, refusals, and the
 * move to another actor. What it calls of link/, of the network and of the tags is played here (--wrap), each is a line
 * of the trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "link/bodies.h"
#include "link/internal.h"
#include "tests/trace.h"
#include "wire/message.h"

enum { SELF = LEAT_ACTOR_CORE_0 + 1, OTHER = LEAT_ACTOR_CORE_0 + 2, NODE_CORES = 3 };

static struct {
    uint8_t control[1024]; /* of the last frame that was sent */
    uint32_t control_bytes;
    bool no_memory, fenced, no_take;
    void *baggage;
    void *(*moved)(void *actor, struct leat_conn *conn, void *baggage,
                   const struct leat_conn_handler **out_handler);
    struct leat_link taken;
} played;
static struct leat_links links;
static struct leat_link link_;
static struct leat_env env;
static struct leat_error error;

bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after);
bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after)
{
    assert_ptr_equal(link, &link_);
    assert_true(!call && !answer && bytes <= sizeof played.control);
    memcpy(played.control, control, played.control_bytes = bytes);
    trace("send %u %u %u%s\n", kind, flags, number, close_after ? ", then close" : "");
    return !played.no_memory;
}
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    (void)link;
    trace("cut %d %s\n", rc, why);
}
void __wrap_leat_link_complain(struct leat_link *link, const char *text);
void __wrap_leat_link_complain(struct leat_link *link, const char *text)
{
    (void)link;
    trace("node log %s\n", text);
}
bool __wrap_leat_links_fenced(const struct leat_links *at, const struct leat_link_identity *peer);
bool __wrap_leat_links_fenced(const struct leat_links *at, const struct leat_link_identity *peer)
{
    assert_ptr_equal(at, &links);
    (void)peer;
    return played.fenced;
}
bool __wrap_leat_link_leave(struct leat_link *link);
bool __wrap_leat_link_leave(struct leat_link *link)
{
    trace("leave%s\n", link->gone ? ", gone" : "");
    return false;
}
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us);
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us)
{
    assert_ptr_equal(at, &links);
    trace("due %llu\n", (unsigned long long)at_us);
}
struct leat_link *__wrap_leat_link_take(struct leat_links *at, struct leat_conn *conn,
                                        const struct leat_conn_handler **out_handler);
struct leat_link *__wrap_leat_link_take(struct leat_links *at, struct leat_conn *conn,
                                        const struct leat_conn_handler **out_handler)
{
    static const struct leat_conn_handler handler;
    assert_ptr_equal(at, &links);
    trace("take %s\n", (const char *)conn);
    if (played.no_take) return NULL;
    *out_handler = &handler;
    played.taken.state = LINK_NONCE;
    return &played.taken;
}
void __wrap_leat_mac_again(struct leat_mac *mac);
void __wrap_leat_mac_again(struct leat_mac *mac)
{
    trace("again %s\n", (const char *)mac);
}
void __wrap_leat_mac_destroy(struct leat_mac **mac);
void __wrap_leat_mac_destroy(struct leat_mac **mac)
{
    trace("destroy %s\n", (const char *)*mac);
    *mac = NULL;
}
static uint64_t now_us(void *ctx)
{
    (void)ctx;
    return 5000;
}
static void net_close(struct leat_conn *conn)
{
    trace("close %s\n", (const char *)conn);
}
static void net_move(struct leat_conn *conn, unsigned to,
                     void *(*moved)(void *actor, struct leat_conn *conn, void *baggage,
                                    const struct leat_conn_handler **out_handler),
                     void *baggage)
{
    trace("move %s %u\n", (const char *)conn, to);
    played.moved = moved;
    played.baggage = baggage;
}

/* ---- both ends ---- */

static const struct leat_link_handler handler;
static char conn[] = "conn", mac_in[] = "in", mac_out[] = "out";

static int begin(void **state)
{
    (void)state;
    static const struct leat_clock clock = {.now_us = now_us};
    static const struct leat_post post = {.self = SELF};
    static const struct leat_net net = {.close = net_close, .move = net_move};
    memset(&played, 0, sizeof played);
    memset(&links, 0, sizeof links);
    memset(&link_, 0, sizeof link_);
    memset(&error, 0, sizeof error);
    env = (struct leat_env){.clock = &clock, .post = &post, .net = &net};
    links.env = &env;
    links.silence_us = 200;
    memset(links.identity.cluster_id, 7, 16);
    snprintf(links.identity.node, sizeof links.identity.node, "own");
    links.identity.incarnation = 11;
    links.identity.cores = NODE_CORES;
    links.services[LEAT_LINK_REPLICATE].handler = &handler;
    link_.links = &links;
    link_.net = (struct leat_conn *)conn;
    link_.mac_in = (struct leat_mac *)mac_in;
    link_.mac_out = (struct leat_mac *)mac_out;
    link_.state = LINK_HELLO;
    link_.next_number = 8;
    snprintf(link_.address, sizeof link_.address, "host:1");
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    return leat_mem_bytes(LEAT_MEM_NET) != 0;
}

#define HELLO_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* The body of a peer, as a hello or as the answer to a hello. */
static struct said {
    uint32_t fields, more, version_min, version_max, id_bytes, node_bytes, cores, purpose;
    uint8_t id[20];
    char node[1000];
    uint64_t incarnation;
    int64_t to;
    bool answer, cut; /* its last byte is missing */
    struct leat_frame frame;
} said;

static void says(bool answer)
{
    memset(&said, 0, sizeof said);
    said.answer = answer;
    said.fields = answer ? 5 : 8;
    said.version_min = LEAT_NODE_VERSION_MIN;
    said.version_max = LEAT_NODE_VERSION_MAX;
    said.id_bytes = 16;
    memset(said.id, 7, sizeof said.id);
    memset(said.node, 'p', sizeof said.node);
    said.node_bytes = 4;
    said.cores = 2;
    said.purpose = LEAT_LINK_REPLICATE;
    said.incarnation = 22;
    said.to = 1;
    said.frame = (struct leat_frame){.kind = LEAT_NODE_KIND_HELLO,
                                     .flags = answer ? LEAT_FRAME_ANSWER : 0,
                                     .request = answer ? 9 : 3};
}

static const struct leat_frame *frame(void)
{
    static uint8_t bytes[1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, said.fields);
    leat_msg_write_u64(&writer, said.version_min);
    if (!said.answer) leat_msg_write_u64(&writer, said.version_max);
    leat_msg_write_bin(&writer, said.id, said.id_bytes);
    leat_msg_write_string(&writer, said.node, said.node_bytes);
    leat_msg_write_u64(&writer, said.incarnation);
    leat_msg_write_u64(&writer, said.cores);
    if (!said.answer) {
        leat_msg_write_u64(&writer, said.purpose);
        leat_msg_write_i64(&writer, said.to);
    }
    for (uint32_t i = 0; i < said.more; i++)
        leat_msg_write_u64(&writer, 1);
    said.frame.control = bytes;
    said.frame.control_bytes = (uint32_t)writer.used - said.cut;
    return &said.frame;
}

/* What was sent last is an array of these. */
static void sent_is(bool hello, uint64_t purpose, int64_t to, uint64_t connection)
{
    uint8_t bytes[1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, hello ? 10 : 5);
    leat_msg_write_u64(&writer, LEAT_NODE_VERSION_MIN);
    if (hello) leat_msg_write_u64(&writer, LEAT_NODE_VERSION_MAX);
    leat_msg_write_bin(&writer, links.identity.cluster_id, 16);
    leat_msg_write_string(&writer, links.identity.node, strlen(links.identity.node));
    leat_msg_write_u64(&writer, links.identity.incarnation);
    leat_msg_write_u64(&writer, links.identity.cores);
    if (hello) leat_msg_write_u64(&writer, purpose);
    if (hello) leat_msg_write_i64(&writer, to);
    if (hello) leat_msg_write_u64(&writer, (uint64_t)SELF << 32 | 6);
    if (hello) leat_msg_write_u64(&writer, connection);
    assert_int_equal(played.control_bytes, writer.used);
    assert_memory_equal(played.control, bytes, writer.used);
}

static void sent_is_refusal(leat_err rc, const char *text)
{
    struct leat_msg_error refused;
    assert_int_equal(leat_msg_error_decode(played.control, played.control_bytes, &refused),
                     LEAT_OK);
    assert_int_equal(refused.code, rc);
    assert_int_equal(refused.text.bytes, strlen(text));
    assert_memory_equal(refused.text.text, text, strlen(text));
}

#define REFUSAL "due 5200\nsend 256 3 3, then close\n" /* answer and error */

/* ---- saying ---- */

/* Goal: a hello names its node in full, and the node and actor that it is for, and which connection
 * of which link it begins, under a number of its own. */
static void hello_says_who_and_for_whom(void **state)
{
    (void)state;
    link_.purpose = LEAT_LINK_SERVE;
    link_.to_actor = LEAT_ACTOR_CORE_0;
    link_.serial = 6;
    assert_true(leat_link_hello_send(&link_));
    TRACE_IS("send 256 0 9\n");
    sent_is(true, LEAT_LINK_SERVE, LEAT_ACTOR_CORE_0, 1);
    assert_int_equal(link_.hello_number, 9);
    assert_int_equal(link_.next_number, 9);
    link_.to_actor = LEAT_ACTOR_COORDINATOR;
    memset(links.identity.node, 'n', LEAT_LINK_NODE_NAME_BYTES_MAX); /* the longest */
    links.identity.incarnation = UINT64_MAX;
    assert_true(leat_link_hello_send(&link_));
    TRACE_IS("send 256 0 10\n");
    sent_is(true, LEAT_LINK_SERVE, -1, 2);
    played.no_memory = true;
    assert_false(leat_link_hello_send(&link_));
}

/* ---- taking ---- */

static void taken_is(bool good, const char *file, int line)
{
    char expected[400];
    trace_begin();
    enum leat_link_greeted greeted = leat_link_hello_take(&link_, frame());
    snprintf(expected, sizeof expected, "%s",
             good ? "send 256 1 3\n" : "node log its first frame with a tag is no hello\n" REFUSAL);
    trace_must_be(expected, file, line);
    assert_int_equal(greeted, good ? LINK_GREETED : LINK_REFUSED);
    if (good) return;
    sent_is_refusal(LEAT_E_INVALID, "the first frame with a tag has to be a node's hello");
    assert_int_equal(link_.why.code, LEAT_E_INVALID);
}
#define TAKEN_IS(good) taken_is((good), __FILE__, __LINE__)

/* What a right hello says lies, again and again, where the next calls have their variables. */
__attribute__((noinline)) static void stack_fill(const struct link_hello_said *right, size_t from)
{
    volatile uint8_t bytes[64 * sizeof *right];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = ((const uint8_t *)right)[(from + i) % sizeof *right];
}

/* Goal: nothing is taken from a hello that does not decode, not even where memory happens to hold a right hello. */
static void hello_that_does_not_decode_says_nothing(void **state)
{
    (void)state;
    const struct link_hello_said right = {
        .version_min = LEAT_NODE_VERSION_MIN,
        .version_max = LEAT_NODE_VERSION_MAX,
        .cluster_id = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7},
        .node = {"pppp", 4},
        .incarnation = 22,
        .cores = 2,
        .purpose = LEAT_LINK_REPLICATE,
        .to = 1};
    says(false);
    said.cut = true;
    const struct leat_frame *cut = frame();
    for (size_t from = 0; from < sizeof right; from += sizeof(uint64_t)) {
        stack_fill(&right, from);
        enum leat_link_greeted greeted = leat_link_hello_take(&link_, cut);
        assert_int_equal(greeted, LINK_REFUSED);
    }
    trace_begin();
}

/* Goal: a hello is taken at each of its bounds, and none past one. */
static void hello_is_taken_within_its_bounds(void **state)
{
    (void)state;
    for (unsigned i = 0;; i++) {
        bool good = false;
        says(false);
        if (i == 0) good = true;
        if (i == 1) said.frame.kind = LEAT_NODE_KIND_NONCE;
        if (i == 2) said.frame.flags = LEAT_FRAME_ANSWER;
        if (i == 3) said.frame.flags = LEAT_FRAME_ERROR;
        if (i == 4) said.fields = 7;
        if (i == 5) said.fields = 10, said.more = 2, good = true; /* of a newer version */
        if (i == 6) said.fields = 10, said.more = 1;
        if (i == 7) said.more = 1;
        if (i == 8) said.cut = true;
        if (i == 9) said.id_bytes = 15;
        if (i == 10) said.id_bytes = 17;
        if (i == 11) said.node_bytes = 0;
        if (i == 12) said.node_bytes = 1, good = true;
        if (i == 13) said.node_bytes = LEAT_LINK_NODE_NAME_BYTES_MAX, good = true;
        if (i == 14) said.node_bytes = LEAT_LINK_NODE_NAME_BYTES_MAX + 1;
        if (i == 15) said.cores = 0;
        if (i == 16) said.cores = 1, good = true;
        if (i == 17) said.cores = LEAT_CORES_MAX, good = true;
        if (i == 18) said.cores = LEAT_CORES_MAX + 1;
        if (i == 19) said.node[0] = ' ' - 1;
        if (i == 20) said.node[0] = ' ', good = true;
        if (i == 21) said.node[3] = 0x7f;
        if (i == 22) said.node[3] = 0x7e, good = true;
        if (i == 23) said.node[3] = (char)0xff, good = true;
        if (i == 24) said.node[4] = 0x7f, good = true; /* not of the name */
        if (i == 25) said.to = -2;
        if (i == 26) said.to = INT64_MIN;
        if (i == 27) said.to = 1 + 3 * NODE_CORES, good = true;
        if (i == 28) said.node_bytes = 900;
        if (i == 29) break;
        TAKEN_IS(good);
        if (!good) continue;
        sent_is(false, 0, 0, 0);
        assert_memory_equal(link_.peer.node, said.node, said.node_bytes);
        assert_int_equal(link_.peer.node[said.node_bytes], 0);
        assert_memory_equal(link_.peer.cluster_id, said.id, 16);
        assert_int_equal(link_.peer.incarnation, 22);
        assert_int_equal(link_.peer.cores, said.cores);
        assert_int_equal(link_.purpose, LEAT_LINK_REPLICATE);
        assert_ptr_equal(link_.handler, &handler);
        assert_int_equal(link_.version, LEAT_NODE_VERSION_MAX);
    }
    says(false);
    played.no_memory = true;
    trace_begin();
    assert_int_equal(leat_link_hello_take(&link_, frame()), LINK_REFUSED);
    char expected[200];
    snprintf(expected, sizeof expected, "send 256 1 3\ncut %d no memory to answer hello\n",
             LEAT_E_NO_MEMORY);
    TRACE_IS(expected);
}

static void refused_is(leat_err rc, const char *text, const char *file, int line)
{
    char expected[600];
    trace_begin();
    link_.state = LINK_HELLO;
    assert_int_equal(leat_link_hello_take(&link_, frame()),
                     rc == LEAT_OK ? LINK_GREETED : LINK_REFUSED);
    snprintf(expected, sizeof expected, "node log %s\n" REFUSAL, text);
    trace_must_be(rc == LEAT_OK ? "send 256 1 3\n" : expected, file, line);
    if (rc == LEAT_OK) return;
    sent_is_refusal(rc, text);
    assert_int_equal(link_.state, LINK_CLOSING);
    assert_int_equal(link_.since_us, 5000);
    assert_int_equal(link_.why.code, rc);
    assert_string_equal(link_.why.text, text);
}
#define REFUSED_IS(rc, text) refused_is((rc), (text), __FILE__, __LINE__)

/* Goal: a hello that comes when a later connection of its link is up is refused. */
static void hello_of_an_earlier_connection_is_refused(void **state)
{
    (void)state;
    static const struct {
        enum leat_link_state state;
        struct leat_link_opener opener;
        bool refused;
    } rows[] = {
        {LINK_UP, {1, 2}, true},
        {LINK_UP, {1, 1}, false},
        {LINK_UP, {2, 2}, false},
        {LINK_CLOSING, {1, 2}, false},
    };
    struct leat_link other = {.links = &links, .peer = {.node = "pppp", .incarnation = 22}};
    struct leat_link *table[2] = {0};
    links.table = table;
    links.table_capacity = 2;
    for (unsigned k = 0; k < 2 * sizeof rows / sizeof *rows; k++) {
        unsigned i = k / 2;
        table[k % 2] = &other;
        table[1 - k % 2] = NULL;
        says(false);
        said.fields += said.more = 2; /* connection 1 of link 1 */
        other.state = rows[i].state;
        other.opener = rows[i].opener;
        trace_begin();
        link_.state = LINK_HELLO;
        assert_int_equal(leat_link_hello_take(&link_, frame()),
                         rows[i].refused ? LINK_REFUSED : LINK_GREETED);
        TRACE_IS(rows[i].refused ? REFUSAL : "send 256 1 3\n");
        if (rows[i].refused) sent_is_refusal(LEAT_E_CLOSED, "this link has a later connection");
    }
}

/* Goal: a peer is refused with the reason if it has another version, wants something that is not served, is of another
 * cluster, is not up yet, or is gone. */
static void hello_is_refused_by_name(void **state)
{
    (void)state;
    char text[300];
    says(false);
    said.version_min = said.version_max = LEAT_NODE_VERSION_MAX + 1;
    snprintf(text, sizeof text,
             "node pppp speaks formats %d to %d between nodes, this node %d to %d: upgrade the "
             "older one",
             LEAT_NODE_VERSION_MAX + 1, LEAT_NODE_VERSION_MAX + 1, LEAT_NODE_VERSION_MIN,
             LEAT_NODE_VERSION_MAX);
    REFUSED_IS(LEAT_E_UNSUPPORTED, text);
    said.version_min = 1;
    said.version_max = LEAT_NODE_VERSION_MIN - 1;
    snprintf(text, sizeof text,
             "node pppp speaks formats 1 to %d between nodes, this node %d to %d: upgrade the "
             "older one",
             LEAT_NODE_VERSION_MIN - 1, LEAT_NODE_VERSION_MIN, LEAT_NODE_VERSION_MAX);
    REFUSED_IS(LEAT_E_UNSUPPORTED, text);
    said.version_max = LEAT_NODE_VERSION_MAX + 1;
    REFUSED_IS(LEAT_OK, "");
    assert_int_equal(link_.version, LEAT_NODE_VERSION_MAX);
    says(false);
    links.ping_us = 100; /* what lies behind the services is none */
    for (unsigned i = 0; i < 3; i++) {
        static const uint32_t purposes[] = {LEAT_LINK_PURPOSES, 0, LEAT_LINK_DATA};
        said.purpose = purposes[i];
        snprintf(text, sizeof text, "this node takes no connections of purpose %u here",
                 said.purpose);
        REFUSED_IS(LEAT_E_UNSUPPORTED, text);
    }
    static const char other[] = "node pppp is of another cluster than node own: check the "
                                "addresses given to both";
    for (unsigned strangers = 0; strangers < 2; strangers++) {
        links.services[LEAT_LINK_REPLICATE].strangers = strangers;
        says(false);
        said.id[15]++;
        REFUSED_IS(LEAT_E_WRONG_CLUSTER, other);
        memset(said.id, 0, 16);
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node pppp has joined no cluster yet");
        memset(links.identity.cluster_id, 0, 16);
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node own has joined no cluster yet");
        memset(said.id, 7, 16);
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node own has joined no cluster yet");
        memset(links.identity.cluster_id, 7, 16);
        said.incarnation = 0;
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node pppp is not up yet");
        links.identity.incarnation = 0;
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node own is not up yet");
        said.incarnation = 22;
        REFUSED_IS(strangers ? LEAT_OK : LEAT_E_STARTING, "node own is not up yet");
        links.identity.incarnation = 11;
        played.fenced = true;
        REFUSED_IS(LEAT_E_STALE_EPOCH, "incarnation 22 of node pppp was declared gone");
        played.fenced = false;
    }
    said.id[0]++;
    played.no_memory = true; /* not even to say so */
    trace_begin();
    assert_int_equal(leat_link_hello_take(&link_, frame()), LINK_REFUSED);
    snprintf(text, sizeof text, "node log %s\n" REFUSAL "close conn\n", other);
    TRACE_IS(text);
}

/* ---- moving ---- */

/* Goal: a connection for another actor goes to that actor with its tags, unread; where there is no such actor, the peer
 * gets the reason. */
static void hello_for_another_actor_moves(void **state)
{
    (void)state;
    struct leat_link_hub hub = {{NULL}};
    static const char later[] = "that part of the node is not up yet";
    says(false);
    said.to = 2 + 2 * NODE_CORES;
    for (unsigned i = 0; i < 3; i++) {
        links.hub = i == 0 ? NULL : &hub;
        atomic_store(&hub.by_actor[OTHER], i == 2 ? &links : NULL);
        leat_mem_fail_at(i == 2);
        trace_begin();
        assert_int_equal(leat_link_hello_take(&link_, frame()), LINK_REFUSED);
        TRACE_IS(REFUSAL);
        sent_is_refusal(LEAT_E_STARTING, later);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
        assert_false(link_.gone);
    }
    for (unsigned i = 0; i < 3; i++) {
        const struct leat_conn_handler *out = NULL;
        (void)begin(NULL);
        links.hub = &hub;
        atomic_store(&hub.by_actor[OTHER], &links);
        assert_int_equal(leat_link_hello_take(&link_, frame()), LINK_MOVED);
        char expected[100];
        snprintf(expected, sizeof expected, "again in\nmove conn %d\nleave, gone\n", OTHER);
        TRACE_IS(expected);
        assert_true(link_.gone && !link_.net && !link_.mac_in && !link_.mac_out);
        played.no_take = i == 1;
        if (i == 2) atomic_store(&hub.by_actor[OTHER], NULL); /* gone meanwhile */
        void *link = played.moved(NULL, (struct leat_conn *)conn, played.baggage, &out);
        TRACE_IS(i == 0   ? "take conn\n"
                 : i == 1 ? "take conn\ndestroy in\ndestroy out\n"
                          : "destroy in\ndestroy out\n");
        assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
        assert_ptr_equal(link, i == 0 ? &played.taken : NULL);
        if (i > 0) continue;
        assert_non_null(out);
        assert_int_equal(played.taken.state, LINK_HELLO);
        assert_ptr_equal(played.taken.mac_in, mac_in);
        assert_ptr_equal(played.taken.mac_out, mac_out);
    }
    (void)begin(NULL);
    links.hub = &hub;
    atomic_store(&hub.by_actor[LEAT_ACTOR_COORDINATOR], &links);
    said.to = -1;
    assert_int_equal(leat_link_hello_take(&link_, frame()), LINK_MOVED);
    char expected[100];
    snprintf(expected, sizeof expected, "again in\nmove conn %d\nleave, gone\n",
             LEAT_ACTOR_COORDINATOR);
    TRACE_IS(expected);
    leat_mem_free(played.baggage);
}

/* ---- answers ---- */

static void answer_is(leat_err rc, const char *text, const char *file, int line)
{
    link_.hello_number = 9;
    memset(&link_.peer, 0, sizeof link_.peer);
    leat_err got = leat_link_hello_answered(&link_, frame(), &error);
    if (got != rc || (rc && strcmp(error.text, text) != 0))
        fprintf(stderr, "%s:%d: %d %s\n", file, line, got, error.text);
    assert_int_equal(got, rc);
    if (rc) assert_int_equal(error.code, rc);
    if (rc) assert_string_equal(error.text, text);
    assert_int_equal(link_.peer.incarnation, rc ? 0 : said.incarnation);
}
#define ANSWER_IS(rc, text) answer_is((rc), (text), __FILE__, __LINE__)

/* Goal: an answer is taken at each of its bounds, and none past one. */
static void answer_is_taken_within_its_bounds(void **state)
{
    (void)state;
    for (unsigned i = 0;; i++) {
        const char *text = "host:1 answers hello with something else";
        says(true);
        if (i == 0) text = NULL;
        if (i == 1) said.fields = 4;
        if (i == 2) said.fields = 7, said.more = 2, text = NULL;
        if (i == 3) said.fields = 7, said.more = 1;
        if (i == 4) said.more = 1;
        if (i == 5) said.cut = true;
        if (i == 6) said.frame.request = 8;
        if (i == 7) said.frame.request = 10;
        if (i == 8) said.version_min = LEAT_NODE_VERSION_MIN - 1;
        if (i == 9) said.version_min = LEAT_NODE_VERSION_MAX + 1;
        if (i == 10) said.node_bytes = LEAT_LINK_NODE_NAME_BYTES_MAX, text = NULL;
        if (i == 11) said.node_bytes = LEAT_LINK_NODE_NAME_BYTES_MAX + 1;
        if (i == 12) said.frame.kind++, text = "host:1 does not answer as a Leat node does";
        if (i == 13) said.frame.flags = 0, text = "host:1 does not answer as a Leat node does";
        if (i == 14) break;
        ANSWER_IS(text ? LEAT_E_INVALID : LEAT_OK, text ? text : "");
        if (!text) assert_memory_equal(link_.peer.node, said.node, said.node_bytes);
        if (!text) assert_int_equal(link_.version, LEAT_NODE_VERSION_MAX);
    }
    TRACE_IS("");
}

/* Goal: a refusal is passed on by its code and its words, as far as there is room; one without is none. */
static void answer_that_refuses_is_passed_on(void **state)
{
    (void)state;
    uint8_t bytes[600];
    char text[256] = {0}, expected[400];
    struct leat_msg_writer writer;
    memset(text, 't', 201);
    for (unsigned i = 0; i < 4; i++) {
        says(true);
        text[200] = i == 0 ? 0 : 't';
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_error_encode(&writer, i == 2 ? LEAT_OK : LEAT_E_STALE_EPOCH, text);
        said.frame.flags = LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR;
        said.frame.control = bytes;
        said.frame.control_bytes = (uint32_t)writer.used - (i == 3);
        leat_err rc = leat_link_hello_answered(&link_, &said.frame, &error);
        snprintf(expected, sizeof expected, "host:1 refuses: %.200s", text);
        assert_int_equal(rc, i < 2 ? LEAT_E_STALE_EPOCH : LEAT_E_INVALID);
        assert_string_equal(error.text, i < 2 ? expected : "host:1 refuses without a reason");
    }
}

/* Goal: the peer that answers must be the node that the link looks for, of this cluster, up, and not gone. */
static void answer_must_be_of_who_is_looked_for(void **state)
{
    (void)state;
    char name[] = "pppp", longer[] = "ppppp";
    says(true);
    link_.expect_node = name;
    link_.expect_incarnation = 22;
    ANSWER_IS(LEAT_OK, "");
    link_.expect_node = longer;
    ANSWER_IS(LEAT_E_NOT_FOUND, "host:1 is node pppp, not ppppp");
    link_.expect_node = NULL;
    link_.expect_incarnation = 21;
    ANSWER_IS(LEAT_E_NOT_FOUND, "node pppp is incarnation 22, not 21");
    link_.expect_incarnation = 23;
    ANSWER_IS(LEAT_E_NOT_FOUND, "node pppp is incarnation 22, not 23");
    link_.expect_incarnation = 0;
    ANSWER_IS(LEAT_OK, "");
    played.fenced = true;
    ANSWER_IS(LEAT_E_NOT_FOUND, "incarnation 22 of node pppp was declared gone");
    played.fenced = false;
    said.incarnation = 0;
    ANSWER_IS(LEAT_E_STARTING, "node pppp is not up yet");
    link_.stranger = true;
    ANSWER_IS(LEAT_OK, "");
    said.id[0]++;
    ANSWER_IS(LEAT_E_WRONG_CLUSTER,
              "node pppp is of another cluster than node own: check the addresses given to both");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HELLO_TEST(hello_says_who_and_for_whom),
        HELLO_TEST(hello_is_taken_within_its_bounds),
        HELLO_TEST(hello_that_does_not_decode_says_nothing),
        HELLO_TEST(hello_is_refused_by_name),
        HELLO_TEST(hello_of_an_earlier_connection_is_refused),
        HELLO_TEST(hello_for_another_actor_moves),
        HELLO_TEST(answer_is_taken_within_its_bounds),
        HELLO_TEST(answer_that_refuses_is_passed_on),
        HELLO_TEST(answer_must_be_of_who_is_looked_for),
    };
    return cmocka_run_group_tests_name("link-hello", tests, NULL, NULL);
}
