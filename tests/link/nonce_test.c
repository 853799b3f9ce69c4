/* SPDX-License-Identifier: Apache-2.0 */
/* link/prove.c alone: which nonces are taken, the input of the keys, the errors for anything else, and tags. This file
 * plays (--wrap) the functions of link/, the network and the tags that prove.c calls; each call of these is a line of
 * the trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/internal.h"
#include "tests/trace.h"

static struct {
    leat_err send_rc;
    bool no_hello, wrong_tag;
    unsigned no_mac; /* the how manieth cannot be made */
} played;
static struct leat_links links;
static struct leat_link link_;
static struct leat_env env;
static const struct leat_key cluster_key;
static char conn[] = "conn", mac_in[] = "in";

void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    trace("cut %d %s, state %d\n", rc, why, link->state);
}
void __wrap_leat_link_complain(struct leat_link *link, const char *text);
void __wrap_leat_link_complain(struct leat_link *link, const char *text)
{
    (void)link;
    trace("node log %s\n", text);
}
bool __wrap_leat_link_hello_send(struct leat_link *link);
bool __wrap_leat_link_hello_send(struct leat_link *link)
{
    trace("hello, state %d\n", link->state);
    return !played.no_hello;
}
leat_err __wrap_leat_mac_create(const struct leat_key *key, const void *said, size_t said_bytes,
                                const char *label, struct leat_mac **out);
leat_err __wrap_leat_mac_create(const struct leat_key *key, const void *said, size_t said_bytes,
                                const char *label, struct leat_mac **out)
{
    assert_true(key == &cluster_key && said == link_.said);
    bool in = out == &link_.mac_in;
    assert_true(in || out == &link_.mac_out);
    trace("key %s of %zu bytes: %s\n", in ? "in" : "out", said_bytes, label);
    return played.no_mac && --played.no_mac == 0 ? LEAT_E_NO_MEMORY : LEAT_OK;
}
void __wrap_leat_mac_destroy(struct leat_mac **mac);
void __wrap_leat_mac_destroy(struct leat_mac **mac)
{
    trace("destroy %s\n", mac == &link_.mac_in ? "in" : mac == &link_.mac_out ? "out" : "another");
}
bool __wrap_leat_mac_check(struct leat_mac *mac, const void *data, size_t count,
                           const uint8_t tag[LEAT_TAG_BYTES]);
bool __wrap_leat_mac_check(struct leat_mac *mac, const void *data, size_t count,
                           const uint8_t tag[LEAT_TAG_BYTES])
{
    assert_ptr_equal(mac, link_.mac_in);
    trace("check %zu bytes, tag at %td\n", count, tag - (const uint8_t *)data);
    return !played.wrong_tag;
}
static void random_secret(void *ctx, void *out, size_t count)
{
    assert_ptr_equal(ctx, &played);
    memset(out, 0x5e, count);
    trace("secret of %zu\n", count);
}
static leat_err net_send_copy(struct leat_conn *at, const void *data, size_t count)
{
    struct leat_frame frame;
    size_t want;
    assert_int_equal(leat_frame_decode(data, count, &frame, &want), LEAT_OK);
    assert_int_equal(frame.frame_bytes, count);
    assert_int_equal(frame.control_bytes, 3 + LEAT_NONCE_BYTES);
    for (unsigned i = 3; i < frame.control_bytes; i++)
        assert_int_equal(frame.control[i], 0x5e);
    trace("send %s %u v%u %u %u, %u of payload\n", (const char *)at, frame.kind, frame.version,
          frame.flags, frame.request, frame.payload_bytes);
    return played.send_rc;
}

static int begin(void **state)
{
    (void)state;
    static const struct leat_random random = {.ctx = &played, .secret = random_secret};
    static const struct leat_net net = {.send_copy = net_send_copy};
    memset(&played, 0, sizeof played);
    memset(&links, 0, sizeof links);
    memset(&link_, 0, sizeof link_);
    env = (struct leat_env){.random = &random, .net = &net};
    links.env = &env;
    links.key = &cluster_key;
    link_.links = &links;
    link_.net = (struct leat_conn *)conn;
    link_.mac_in = (struct leat_mac *)mac_in;
    link_.state = LINK_NONCE;
    snprintf(link_.address, sizeof link_.address, "host:1");
    trace_begin();
    return 0;
}
#define NONCE_TEST(name) cmocka_unit_test_setup(name, begin)

/* ---- what comes ---- */

static struct {
    uint32_t fields, more, nonce_bytes, payload_bytes;
    uint16_t kind;
    uint8_t version, flags;
    bool cut; /* its last byte is missing */
} says;
static uint8_t bytes[256];

static void says_its_nonce(bool accepted)
{
    memset(&link_.said, 0, sizeof link_.said);
    link_.accepted = accepted;
    link_.said_bytes = 0;
    link_.state = LINK_NONCE;
    memset(&says, 0, sizeof says);
    says.fields = 1;
    says.nonce_bytes = LEAT_NONCE_BYTES;
    says.kind = LEAT_NODE_KIND_NONCE;
    says.version = LEAT_NODE_VERSION_MAX;
    says.flags = accepted ? 0 : LEAT_FRAME_ANSWER;
}
static void comes(void)
{
    uint8_t nonce[64];
    struct leat_frame frame;
    size_t want;
    struct leat_msg_writer writer;
    memset(nonce, 0x77, sizeof nonce);
    leat_msg_writer_init(&writer, bytes + LEAT_FRAME_HEADER_BYTES,
                         sizeof bytes - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&writer, says.fields);
    if (says.nonce_bytes) leat_msg_write_bin(&writer, nonce, says.nonce_bytes);
    for (uint32_t i = 0; i < says.more; i++)
        leat_msg_write_u64(&writer, 1);
    leat_frame_encode(bytes, (enum leat_kind)says.kind, says.version, says.flags, 6,
                      (uint32_t)writer.used - says.cut, says.payload_bytes);
    assert_int_equal(leat_frame_decode(bytes, sizeof bytes, &frame, &want), LEAT_OK);
    leat_link_nonce_take(&link_, &frame, bytes);
    trace("state %d, %u said\n", link_.state, link_.said_bytes);
}

static void acceptor_takes_and_answers_a_nonce(void **state)
{
    (void)state;
    says_its_nonce(true);
    comes();
    TRACE_IS("secret of 32\n"
             "send conn 258 v3 1 6, 0 of payload\n"
             "key out of 118 bytes: leat node 3: acceptor to opener\n"
             "key in of 118 bytes: leat node 3: opener to acceptor\n"
             "state 3, 118 said\n");
    assert_memory_equal(link_.said, bytes, LEAT_FRAME_HEADER_BYTES + 3 + LEAT_NONCE_BYTES);
    says_its_nonce(true);
    played.send_rc = LEAT_E_AGAIN;
    comes();
    TRACE_IS("secret of 32\n"
             "send conn 258 v3 1 6, 0 of payload\n"
             "cut 3 no memory for hello, state 3\n"
             "state 3, 118 said\n");
    played.send_rc = LEAT_OK;
    says_its_nonce(true);
    played.no_mac = 1;
    comes();
    TRACE_IS("secret of 32\n"
             "send conn 258 v3 1 6, 0 of payload\n"
             "key out of 118 bytes: leat node 3: acceptor to opener\n"
             "cut 3 no memory for hello, state 3\n"
             "state 3, 118 said\n");
    says_its_nonce(true);
    played.no_mac = 2;
    comes();
    TRACE_IS("secret of 32\n"
             "send conn 258 v3 1 6, 0 of payload\n"
             "key out of 118 bytes: leat node 3: acceptor to opener\n"
             "key in of 118 bytes: leat node 3: opener to acceptor\n"
             "cut 3 no memory for hello, state 3\n"
             "state 3, 118 said\n");
}

static void opener_takes_a_nonce_and_says_hello(void **state)
{
    (void)state;
    says_its_nonce(false);
    assert_true(leat_link_nonce_send(&link_, 1));
    TRACE_IS("secret of 32\n"
             "send conn 258 v3 0 1, 0 of payload\n");
    comes();
    TRACE_IS("key out of 118 bytes: leat node 3: opener to acceptor\n"
             "key in of 118 bytes: leat node 3: acceptor to opener\n"
             "hello, state 3\n"
             "state 3, 118 said\n");
    assert_memory_equal(link_.said + link_.said_bytes / 2, bytes, link_.said_bytes / 2);
    assert_memory_not_equal(link_.said, bytes, link_.said_bytes / 2);
    says_its_nonce(false);
    played.no_hello = true;
    comes();
    TRACE_IS("key out of 59 bytes: leat node 3: opener to acceptor\n"
             "key in of 59 bytes: leat node 3: acceptor to opener\n"
             "hello, state 3\n"
             "cut 3 no memory for hello, state 3\n"
             "state 3, 59 said\n");
    played.send_rc = LEAT_E_NO_MEMORY;
    assert_false(leat_link_nonce_send(&link_, 1));
    trace_begin();
}

/* A body that is no nonce gets its error text; a nonce gives the link its keys. */
static void is_taken(bool taken)
{
    link_.state = LINK_NONCE;
    link_.said_bytes = 0;
    comes();
    assert_int_equal(strstr(trace_text, "key in") != NULL, taken);
    assert_int_equal(strstr(trace_text, "cut") == NULL, taken);
    trace_begin();
}
static void nonces_have_a_form(void **state)
{
    (void)state;
    for (unsigned accepted = 0; accepted < 2; accepted++) {
        says_its_nonce(accepted);
        says.fields = 1 + (says.more = 1); /* of a later version, says more */
        is_taken(true);
        says.cut = true;
        is_taken(false);
        says_its_nonce(accepted);
        says.more = 1; /* behind the array */
        is_taken(false);
        says_its_nonce(accepted);
        says.fields = 0;
        is_taken(false);
        says_its_nonce(accepted);
        says.nonce_bytes = LEAT_NONCE_BYTES - 1;
        is_taken(false);
        says_its_nonce(accepted);
        says.nonce_bytes = LEAT_NONCE_BYTES + 1;
        is_taken(false);
        says_its_nonce(accepted);
        says.payload_bytes = 1;
        is_taken(false);
        says_its_nonce(accepted);
        says.flags ^= LEAT_FRAME_ANSWER;
        is_taken(false);
        says_its_nonce(accepted);
        says.kind = LEAT_NODE_KIND_HELLO;
        is_taken(false);
        says_its_nonce(accepted);
        says.version = LEAT_NODE_VERSION_MIN;
        is_taken(true);
        says.version = LEAT_NODE_VERSION_MAX + 1;
        is_taken(true);
    }
    enum { MORE = LINK_NONCE_FRAME_BYTES_MAX - LEAT_FRAME_HEADER_BYTES - 3 - LEAT_NONCE_BYTES - 2 };
    says_its_nonce(true); /* an array of more than 15 has two more bytes in front */
    says.fields = 1 + (says.more = MORE);
    is_taken(true);
    says_its_nonce(true);
    says.fields = 1 + (says.more = MORE + 1);
    is_taken(false);
}

static void what_is_no_nonce_is_told_of(void **state)
{
    (void)state;
    says_its_nonce(true);
    says.version = LEAT_NODE_VERSION_MIN - 1;
    comes();
    TRACE_IS("node log it is a node of an older version: upgrade it\n"
             "cut 31 host:1: it is a node of an older version: upgrade it, state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(false);
    says.version = LEAT_NODE_VERSION_MIN - 1;
    comes();
    TRACE_IS("cut 31 host:1: it is a node of an older version: upgrade it, state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(true);
    says.kind = LEAT_NODE_KIND_HELLO;
    says.version = LEAT_NODE_VERSION_MIN - 1;
    comes();
    TRACE_IS("node log its first frame is not that of a node, or of one of an older version\n"
             "cut 20 host:1: its first frame is not that of a node, or of one of an older version, "
             "state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(false);
    says.kind = LEAT_NODE_KIND_HELLO;
    comes();
    TRACE_IS("cut 20 host:1: it does not answer as a Leat node of this version does: is this the "
             "address that its --node-listen says?, state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(true);
    says.kind = LEAT_KIND_HELLO; /* a client's */
    says.version = 1;
    comes();
    TRACE_IS("node log it speaks Leat's own protocol, whose port is that of --listen (7700)\n"
             "cut 20 host:1: it speaks Leat's own protocol, whose port is that of --listen (7700), "
             "state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(false);
    says.kind = LEAT_KIND_HELLO;
    says.version = 1;
    comes();
    TRACE_IS("cut 20 host:1: it does not answer as a Leat node of this version does: is this the "
             "address that its --node-listen says?, state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(false);
    says.flags |= LEAT_FRAME_ERROR;
    says.version = 1;
    comes();
    TRACE_IS("node log that is its port for clients (--listen, 7700): name the one for nodes, its "
             "--node-listen (7701)\n"
             "cut 20 host:1: that is its port for clients (--listen, 7700): name the one for "
             "nodes, its --node-listen (7701), state 2\n"
             "state 2, 0 said\n");
    says_its_nonce(true);
    says.flags = LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR;
    comes();
    TRACE_IS("node log its first frame is not that of a node, or of one of an older version\n"
             "cut 20 host:1: its first frame is not that of a node, or of one of an older version, "
             "state 2\n"
             "state 2, 0 said\n");
}

/* ---- tags ---- */

static bool checks(uint32_t payload_bytes)
{
    struct leat_frame frame = {.payload_bytes = payload_bytes, .frame_bytes = 40 + payload_bytes};
    bool right = leat_link_frame_check(&link_, &frame, bytes);
    trace("%u left\n", frame.payload_bytes);
    return right;
}
static void tags_are_taken_off(void **state)
{
    (void)state;
    link_.state = LINK_UP;
    assert_true(checks(LEAT_TAG_BYTES + 4));
    TRACE_IS("check 44 bytes, tag at 44\n"
             "4 left\n");
    assert_true(checks(LEAT_TAG_BYTES));
    TRACE_IS("check 40 bytes, tag at 40\n"
             "0 left\n");
    assert_false(checks(LEAT_TAG_BYTES - 1));
    TRACE_IS("cut 22 a frame was altered on its way, or is not the peer's, state 4\n"
             "15 left\n");
    played.wrong_tag = true;
    assert_false(checks(LEAT_TAG_BYTES));
    TRACE_IS("check 40 bytes, tag at 40\n"
             "cut 22 a frame was altered on its way, or is not the peer's, state 4\n"
             "0 left\n");
    link_.state = LINK_HELLO;
    assert_false(checks(LEAT_TAG_BYTES));
    TRACE_IS(
        "check 40 bytes, tag at 40\n"
        "node log its proof is wrong: it has another cluster key than this node. Give all nodes "
        "the same file by --cluster-key\n"
        "cut 43 its proof is wrong: it has another cluster key than this node. Give all nodes "
        "the same file by --cluster-key, state 3\n"
        "0 left\n");
    link_.said_bytes = 70;
    leat_link_keys_drop(&link_);
    TRACE_IS("destroy in\n"
             "destroy out\n");
    assert_int_equal(link_.said_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NONCE_TEST(acceptor_takes_and_answers_a_nonce),
        NONCE_TEST(opener_takes_a_nonce_and_says_hello),
        NONCE_TEST(nonces_have_a_form),
        NONCE_TEST(what_is_no_nonce_is_told_of),
        NONCE_TEST(tags_are_taken_off),
    };
    return cmocka_run_group_tests_name("link-nonce", tests, NULL, NULL);
}
