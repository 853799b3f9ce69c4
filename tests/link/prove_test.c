/* SPDX-License-Identifier: Apache-2.0 */
/* A peer without the key learns nothing and changes nothing; a peer with the key comes in, whatever other connections
 * wait. */
#include "tests/link/relay.h"
#include "wire/message.h"

enum { TELLS = 20 };

/* ---- between two nodes ---- */

static void tell_now(void *arg)
{
    struct end *end = arg;
    for (uint64_t i = 0; i < TELLS; i++)
        if (leat_link_tell(end->link, KIND_COUNT, &i, sizeof i) != LEAT_OK) return;
}

/* Each of these on its own, in every place: nothing of it is taken, what came before is, the connection ends, and
 * the next one is as good as any. */
static void prove_what_was_tampered_with_is_noticed(void **state)
{
    static const unsigned frames[] = {0, 1, 2, 3, 9};
    for (unsigned row = 0; row < 5 * 8; row++) {
        enum tampering tampering = FLIP + row % 8 > SWAP ? FLIP : FLIP + row % 8;
        unsigned frame = frames[row / 8];
        teardown_world(state);
        setup_world(state);
        struct relay *relay = relay_make(tampering, frame, 3 + 37 * row);
        open_with(left, 0, (struct leat_link_options){.address = "relay:1"});
        for (unsigned i = 0; i < 40 && !left->ends[0].ups; i++)
            run(SECOND / 10);
        assert_int_equal(left->ends[0].ups, 1);
        struct end *end = &right->ends[0];
        assert_in_range(end->ups, 1, 2); /* 2: after a hello that came twice */
        assert_true(sim_process_enter(left->process, tell_now, &left->ends[0]));
        run(5 * SECOND);
        assert_false(end->out_of_order);
        if (frame < 2) {
            assert_int_equal(end->counted, TELLS);
        } else {
            assert_int_equal(end->counted, frame - 2 + (tampering == TWICE));
            if (tampering == FLIP) /* of a header's fields some are none */
                assert_int_equal(leat_err_class(end->last_down.code), LEAT_CLASS_REJECT);
            else
                assert_int_equal(end->last_down.code, LEAT_E_CORRUPT);
            assert_int_equal(left->ends[0].ups, 2);
            assert_true(leat_link_is_up(left->ends[0].link));
        }
        free(relay);
    }
}

/* All of an honest node's bytes, once more: they were for another nonce. */
static void prove_a_replayed_connection_is_told_nothing_and_cut(void **state)
{
    (void)state;
    struct relay *relay = relay_make(HONEST, 0, 0);
    open_with(left, 0, (struct leat_link_options){.address = "relay:1"});
    run(SECOND);
    assert_true(sim_process_enter(left->process, tell_now, &left->ends[0]));
    run(SECOND);
    assert_int_equal(right->ends[0].counted, TELLS);
    struct stranger *replay = stranger_make(relay->recorded, relay->recorded_bytes);
    run(5 * SECOND);
    assert_true(replay->closed);
    assert_true(replay->got <= NONCE_FRAME_BYTES);
    assert_int_equal(right->ends[0].ups, 1);
    assert_int_equal(right->ends[0].requests, TELLS);
    assert_true(leat_link_is_up(left->ends[0].link));
    free(replay);
    free(relay);
}

/* ---- strangers ---- */

static size_t nonce_frame(uint8_t out[NONCE_FRAME_BYTES], const uint8_t nonce[LEAT_NONCE_BYTES])
{
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, out + LEAT_FRAME_HEADER_BYTES,
                         NONCE_FRAME_BYTES - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&body, 1);
    leat_msg_write_bin(&body, nonce, LEAT_NONCE_BYTES);
    assert_false(body.overflow);
    leat_frame_encode(out, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX, 0, 1,
                      (uint32_t)body.used, 0);
    return NONCE_FRAME_BYTES;
}

/* One of so many bytes, and a field of so many that no version has. */
static void nonce_of(uint8_t *out, size_t bytes, size_t nonce_bytes, size_t more_bytes)
{
    static const uint8_t zeros[256];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, out + LEAT_FRAME_HEADER_BYTES, bytes - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&body, more_bytes ? 2 : 1);
    leat_msg_write_bin(&body, zeros, nonce_bytes);
    if (more_bytes) leat_msg_write_bin(&body, zeros, more_bytes);
    assert_false(body.overflow);
    assert_int_equal(body.used, bytes - LEAT_FRAME_HEADER_BYTES);
    leat_frame_encode(out, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX, 0, 1,
                      (uint32_t)body.used, 0);
}

static size_t hello_body(uint8_t *out, size_t capacity, uint64_t version)
{
    static const uint8_t cluster[16] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, out, capacity);
    leat_msg_write_array(&body, 8);
    leat_msg_write_u64(&body, version);
    leat_msg_write_u64(&body, version + 2);
    leat_msg_write_bin(&body, cluster, sizeof cluster);
    leat_msg_write_string(&body, "third", 5);
    leat_msg_write_u64(&body, 13); /* incarnation */
    leat_msg_write_u64(&body, 1);  /* cores */
    leat_msg_write_u64(&body, LEAT_LINK_SERVE);
    leat_msg_write_i64(&body, 0);
    return body.used;
}

/* Garbage, requests, hello without a proof, sizes that were never meant, halves of frames, silence: not one byte in
 * answer but a nonce to a nonce, and the end. */
static void prove_a_stranger_is_told_nothing_and_cut(void **state)
{
    (void)state;
    static const char http[] = "GET / HTTP/1.1\r\nHost: right\r\n\r\n";
    static const uint8_t zeros[LEAT_NONCE_BYTES];
    uint8_t client[256], early[256], hello[512], nonce[2 * NONCE_FRAME_BYTES], large[24], both[600];
    uint8_t older[NONCE_FRAME_BYTES];
    uint8_t shorter[NONCE_FRAME_BYTES - 1], longer[NONCE_FRAME_BYTES + 2 + 200];
    client[LEAT_FRAME_HEADER_BYTES] = early[LEAT_FRAME_HEADER_BYTES] = 0x90;
    leat_frame_encode(client, LEAT_KIND_HELLO, 1, 0, 5, 1, 0);
    leat_frame_encode(early, (enum leat_kind)KIND_ECHO, LEAT_NODE_VERSION_MAX, 0, 5, 1, 0);
    size_t body = hello_body(hello + LEAT_FRAME_HEADER_BYTES, 256, LEAT_NODE_VERSION_MAX);
    leat_frame_encode(hello, (enum leat_kind)LEAT_NODE_KIND_HELLO, LEAT_NODE_VERSION_MAX, 0, 5,
                      (uint32_t)body, LEAT_TAG_BYTES);
    size_t hello_bytes = LEAT_FRAME_HEADER_BYTES + body + LEAT_TAG_BYTES;
    memset(hello + hello_bytes - LEAT_TAG_BYTES, 0, LEAT_TAG_BYTES);
    nonce_frame(nonce, zeros);
    nonce_frame(nonce + NONCE_FRAME_BYTES, zeros);
    nonce_frame(older, zeros);
    older[6] = LEAT_NODE_VERSION_MIN - 1;
    checksum_again(older);
    memcpy(both, nonce, NONCE_FRAME_BYTES);
    memcpy(both + NONCE_FRAME_BYTES, hello, hello_bytes);
    leat_frame_encode(large, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX, 0, 1, 0,
                      LEAT_FRAME_BYTES_MAX - LEAT_FRAME_HEADER_BYTES);
    nonce_of(shorter, sizeof shorter, LEAT_NONCE_BYTES - 1, 0);
    nonce_of(longer, sizeof longer, LEAT_NONCE_BYTES, 200);
    const struct {
        const void *bytes;
        size_t count, told;
    } rows[] = {
        {http, sizeof http - 1, 0},
        {client, LEAT_FRAME_HEADER_BYTES + 1, 0},
        {early, LEAT_FRAME_HEADER_BYTES + 1, 0},
        {hello, hello_bytes, 0},
        {large, sizeof large, 0},
        {nonce, NONCE_FRAME_BYTES / 2, 0},
        {shorter, sizeof shorter, 0},
        {longer, sizeof longer, 0},
        {NULL, 0, 0},
        {older, NONCE_FRAME_BYTES, 0},
        {nonce, NONCE_FRAME_BYTES, NONCE_FRAME_BYTES},
        {nonce, 2 * NONCE_FRAME_BYTES, NONCE_FRAME_BYTES},
        {both, NONCE_FRAME_BYTES + hello_bytes, NONCE_FRAME_BYTES},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct stranger *strangers[ROWS];
    for (unsigned i = 0; i < ROWS; i++)
        strangers[i] = stranger_make(rows[i].bytes, rows[i].count);
    run(3 * SECOND);
    for (unsigned i = 0; i < ROWS; i++) {
        assert_true(strangers[i]->closed);
        /* What is answered in the turn that closes the connection may not leave. */
        assert_true(strangers[i]->got == rows[i].told || strangers[i]->got == 0);
        if (rows[i].count == NONCE_FRAME_BYTES) assert_int_equal(strangers[i]->got, rows[i].told);
        free(strangers[i]);
    }
    for (unsigned i = 0; i < CORES; i++) {
        assert_int_equal(right->ends[i].ups, 0);
        assert_int_equal(right->ends[i].requests, 0);
    }
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
}

/* A frame's size that no stranger needs ends it before a byte more has come. */
static void prove_a_large_frame_is_refused_by_its_header(void **state)
{
    (void)state;
    static const uint8_t zeros[LEAT_NONCE_BYTES];
    uint8_t header[LEAT_FRAME_HEADER_BYTES + 1] = {0}, later[NONCE_FRAME_BYTES + sizeof header];
    leat_frame_encode(header, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX, 0, 1, 1,
                      2000);
    nonce_frame(later, zeros); /* a nonce is no proof */
    memcpy(later + NONCE_FRAME_BYTES, header, sizeof header);
    struct stranger *strangers[] = {stranger_make(header, sizeof header),
                                    stranger_make(later, sizeof later)};
    run(SECOND / 10); /* much less than what is allowed for hello */
    for (unsigned i = 0; i < 2; i++) {
        assert_true(strangers[i]->closed);
        free(strangers[i]);
    }
}

static void prove_another_key_is_refused_on_both_sides(void **state)
{
    (void)state;
    static const struct leat_key other = {{"another cluster's"}};
    struct node *third = node_make((struct setup){
        .name = "third", .address = "third:1", .cluster = 7, .incarnation = 13, .key = &other});
    open_with(third, 0, (struct leat_link_options){.address = "right:1"});
    open_with(left, 0, (struct leat_link_options){.address = "third:1"});
    run(5 * SECOND);
    assert_int_equal(third->ends[0].ups, 0);
    assert_int_equal(left->ends[0].ups, 0);
    assert_int_equal(right->ends[0].ups, 0);
    assert_int_equal(third->ends[0].last_down.code, LEAT_E_WRONG_CLUSTER);
    assert_non_null(strstr(third->ends[0].last_down.text, "--cluster-key"));
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_WRONG_CLUSTER);
}

/* ---- a node of another version, or one that was taken over ---- */

/* This version does not know how an older version uses the nonces, so no proof is asked for or made: else both sides
 * would report that the keys differ. */
static void prove_an_older_node_is_named_and_not_said_to_have_another_key(void **state)
{
    (void)state;
    struct relay *relay = relay_make(OLDER, 0, 0);
    open_with(left, 0, (struct leat_link_options){.address = "relay:1"});
    run(5 * SECOND);
    assert_int_equal(left->ends[0].ups, 0);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_UNSUPPORTED);
    assert_non_null(strstr(left->ends[0].last_down.text, "older version"));
    free(relay);
}

struct newer {
    struct sim_actor *actor;
    const char *address;
    uint64_t version;
    struct leat_conn *conn;
    struct leat_mac *in, *out;
    uint8_t said[2 * NONCE_FRAME_BYTES];
    leat_err code;
    bool told, up, closed;
    uint16_t answer_kind; /* of requests to it; 0: they have no answer */
    unsigned refused;     /* requests of its own, by LEAT_E_AGAIN */
};
static void newer_on_open(void *user, struct leat_conn *conn)
{
    struct newer *newer = user;
    static const uint8_t nonce[LEAT_NONCE_BYTES] = {1};
    newer->conn = conn;
    size_t bytes = nonce_frame(newer->said, nonce);
    assert_int_equal(newer->actor->env.net->send_copy(conn, newer->said, bytes), LEAT_OK);
}
static leat_err newer_say(struct newer *newer, uint16_t kind, uint8_t flags, uint32_t number,
                          const void *control, size_t control_bytes)
{
    static uint8_t frame[16 * 1024];
    size_t tagged = LEAT_FRAME_HEADER_BYTES + control_bytes;
    assert_true(tagged + LEAT_TAG_BYTES <= sizeof frame);
    memcpy(frame + LEAT_FRAME_HEADER_BYTES, control, control_bytes);
    leat_frame_encode(frame, (enum leat_kind)kind, LEAT_NODE_VERSION_MAX, flags, number,
                      (uint32_t)control_bytes, LEAT_TAG_BYTES);
    leat_mac_tag(newer->out, &(struct leat_iov){frame, tagged}, 1, frame + tagged);
    return newer->actor->env.net->send_copy(newer->conn, frame, tagged + LEAT_TAG_BYTES);
}
static void newer_begin(struct newer *newer, const uint8_t *nonce)
{
    uint8_t hello[512];
    memcpy(newer->said + NONCE_FRAME_BYTES, nonce, NONCE_FRAME_BYTES);
    assert_int_equal(leat_mac_create(&cluster_key, newer->said, sizeof newer->said,
                                     "leat node 3: opener to acceptor", &newer->out),
                     LEAT_OK);
    assert_int_equal(leat_mac_create(&cluster_key, newer->said, sizeof newer->said,
                                     "leat node 3: acceptor to opener", &newer->in),
                     LEAT_OK);
    size_t body = hello_body(hello, sizeof hello, newer->version);
    assert_int_equal(newer_say(newer, LEAT_NODE_KIND_HELLO, 0, 5, hello, body), LEAT_OK);
}
static void newer_frame(struct newer *newer, const struct leat_frame *frame, const uint8_t *data)
{
    struct leat_msg_error error = {.code = LEAT_OK};
    size_t tagged = frame->frame_bytes - LEAT_TAG_BYTES;
    assert_true(leat_mac_check(newer->in, data, tagged, data + tagged));
    if (frame->flags & LEAT_FRAME_ERROR)
        assert_int_equal(leat_msg_error_decode(frame->control, frame->control_bytes, &error),
                         LEAT_OK);
    newer->refused += error.code == LEAT_E_AGAIN;
    if (frame->kind == LEAT_NODE_KIND_HELLO) {
        newer->up = error.code == LEAT_OK;
        newer->code = error.code;
        newer->told =
            !newer->up && memmem(error.text.text, error.text.bytes, "upgrade the older one", 21);
    } else if (newer->answer_kind != 0 && frame->kind > LEAT_NODE_KIND_PING) {
        assert_int_equal(newer_say(newer, newer->answer_kind, LEAT_FRAME_ANSWER, frame->request,
                                   frame->control, frame->control_bytes),
                         LEAT_OK);
    }
}
static size_t newer_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                             size_t *want)
{
    struct newer *newer = user;
    size_t used = 0;
    (void)conn;
    for (;;) {
        struct leat_frame frame;
        if (leat_frame_decode(data + used, bytes - used, &frame, want) != LEAT_OK) return used;
        if (newer->out)
            newer_frame(newer, &frame, data + used);
        else
            newer_begin(newer, data + used);
        used += frame.frame_bytes;
    }
}
static void newer_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    ((struct newer *)user)->closed = true;
    (void)conn;
    (void)why;
}
static const struct leat_conn_handler newer_handler = {newer_on_open, newer_on_bytes,
                                                       newer_on_closed};
static void newer_start(void *arg)
{
    struct newer *newer = arg;
    struct leat_conn *conn;
    const struct leat_net *net = newer->actor->env.net;
    assert_int_equal(net->connect(net->ctx, newer->address, &newer_handler, newer, &conn), LEAT_OK);
}
static void newer_make(struct newer *newer)
{
    struct sim_process *process = sim_process_create(world, "newer");
    newer->actor = sim_actor_create(process, 0);
    assert_true(sim_process_enter(process, newer_start, newer));
    sim_actor_register(newer->actor, newer, &relay_ops);
}
static void newer_fini(struct newer *newer)
{
    leat_mac_destroy(&newer->in);
    leat_mac_destroy(&newer->out);
}

/* A node of a format that this version does not know has the key, so it gets an answer with the versions of both sides.
 * Its bytes are made here as docs/cluster-protocol.md has them. */
static void prove_a_peer_of_another_format_is_told_and_cut(void **state)
{
    (void)state;
    struct newer newer = {.address = "right:1", .version = LEAT_NODE_VERSION_MAX + 1};
    newer_make(&newer);
    run(5 * SECOND);
    assert_true(newer.told);
    assert_int_equal(newer.code, LEAT_E_UNSUPPORTED);
    newer_fini(&newer);
}

static void newer_pause(void *arg)
{
    const struct newer *newer = arg;
    newer->actor->env.net->pause(newer->conn);
}
static void newer_resume(void *arg)
{
    const struct newer *newer = arg;
    newer->actor->env.net->resume(newer->conn);
}

struct saying {
    struct newer *newer;
    uint16_t kind;
    unsigned count;
    uint32_t number;
    size_t control_bytes;
};
static void say_now(void *arg)
{
    static const uint8_t control[8192] = {0x90};
    struct saying *saying = arg;
    for (unsigned i = 0; i < saying->count; i++)
        if (newer_say(saying->newer, saying->kind, 0, ++saying->number, control,
                      saying->control_bytes) != LEAT_OK)
            return; /* cut meanwhile */
}
static void say(struct saying *saying)
{
    struct sim_process *process = saying->newer->actor->process;
    if (!saying->newer->closed) assert_true(sim_process_enter(process, say_now, saying));
    run(SECOND / 100);
}

/* Requests that are not answered yet: so many, and the connection ends; the node does not keep more of them. */
static void prove_a_peer_has_so_many_requests_under_way(void **state)
{
    (void)state;
    struct newer newer = {.address = "right:1", .version = LEAT_NODE_VERSION_MAX};
    newer_make(&newer);
    run(SECOND / 10);
    assert_true(newer.up);
    struct saying saying = {&newer, KIND_HOLD, 512, 0, 1};
    for (unsigned i = 0; i < LEAT_LINK_REQUESTS_MAX / 512; i++)
        say(&saying);
    assert_false(newer.closed);
    assert_int_equal(right->ends[0].held_count, LEAT_LINK_REQUESTS_MAX);
    saying.count = 1;
    say(&saying);
    run(SECOND / 10);
    assert_true(newer.closed);
    assert_int_equal(right->ends[0].last_down.code, LEAT_E_TOO_MANY);
    newer_fini(&newer);
}

/* Answers that the peer does not take: from so many bytes on its requests are not looked at. */
static void prove_a_peer_that_takes_no_answers_is_refused(void **state)
{
    (void)state;
    struct node *third = node_make((struct setup){.name = "third",
                                                  .address = "third:1",
                                                  .cluster = 7,
                                                  .incarnation = 14,
                                                  .queued_bytes_max = 64 * 1024});
    struct newer newer = {.address = "third:1", .version = LEAT_NODE_VERSION_MAX};
    newer_make(&newer);
    run(SECOND / 10);
    assert_true(newer.up);
    assert_true(sim_process_enter(newer.actor->process, newer_pause, &newer));
    struct saying saying = {&newer, KIND_ECHO, 10, 0, 8192};
    for (unsigned i = 0; i < 30; i++)
        say(&saying);
    assert_true(sim_process_enter(newer.actor->process, newer_resume, &newer));
    run(SECOND / 2);
    assert_true(newer.refused > 0);
    assert_int_equal(third->ends[0].requests + newer.refused, saying.number);
    newer_fini(&newer);
}

/* Requests that nodes do not send each other, and answers of another kind than the request, from a peer that has the
 * key. */
static void prove_a_peer_that_speaks_otherwise_is_cut_or_not_believed(void **state)
{
    (void)state;
    static const uint16_t kinds[] = {LEAT_KIND_APPEND, LEAT_NODE_KIND_HELLO};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct newer newer = {.address = "right:1", .version = LEAT_NODE_VERSION_MAX};
        newer_make(&newer);
        run(SECOND / 10);
        assert_true(newer.up);
        say(&(struct saying){&newer, kinds[i], 1, 0, 1});
        run(SECOND / 10);
        assert_true(newer.closed);
        assert_int_equal(right->ends[0].last_down.code, LEAT_E_INVALID);
        newer_fini(&newer);
    }
    assert_int_equal(right->ends[0].requests, 0);
    struct newer newer = {
        .address = "right:1", .version = LEAT_NODE_VERSION_MAX, .answer_kind = KIND_HOLD};
    newer_make(&newer);
    run(SECOND / 10);
    assert_true(newer.up);
    static const uint8_t control[] = {0x90};
    struct caller caller = {
        .call = {.kind = KIND_ECHO, .control = control, .control_bytes = sizeof control}};
    call_start(right, 0, &caller);
    run(SECOND / 10);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.rc, LEAT_E_INVALID);
    newer_fini(&newer);
}

/* ---- many ---- */

/* More than all places, of one address and of many, and more of them all the time: a node comes in at once. */
static void prove_strangers_do_not_lock_nodes_out(void **state)
{
    (void)state;
    enum { AT_ONCE = LEAT_LINK_STRANGERS_MAX + 100, LATER = 20, ROUNDS = 20 };
    static struct stranger *strangers[AT_ONCE + LATER * ROUNDS];
    unsigned count = 0;
    while (count < AT_ONCE)
        strangers[count++] = stranger_make(NULL, 0);
    run(SECOND / 10);
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LATER; i++)
            strangers[count++] = stranger_make(NULL, 0);
        run(SECOND / 100);
    }
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs_unborn, 0); /* at its first try */
    unsigned open = 0;
    for (unsigned i = 0; i < count; i++)
        open += !strangers[i]->closed;
    assert_true(open <= LEAT_LINK_STRANGERS_OF_ADDRESS_MAX);
    run(10 * SECOND);
    for (unsigned i = 0; i < count; i++) {
        assert_true(strangers[i]->closed);
        free(strangers[i]);
    }
    assert_true(leat_link_is_up(left->ends[0].link));
}

/* A connection over the limit evicts the oldest connection of the address with the most connections, whichever address
 * came first; an address with few connections keeps them. Their bytes are counted apart from the bytes of nodes and
 * clients. */
static void prove_the_address_with_most_strangers_makes_room(void **state)
{
    (void)state;
    enum { PLACES = 8 };
    static const char *const from[PLACES + 1] = {"few",   "many",  "other", "many",    "fourth",
                                                 "third", "third", "many",  "newcomer"};
    struct stranger *strangers[PLACES + 1];
    struct node *third = node_make((struct setup){.name = "third",
                                                  .address = "third:1",
                                                  .cluster = 7,
                                                  .incarnation = 14,
                                                  .strangers_max = PLACES});
    for (unsigned i = 0; i <= PLACES; i++) {
        strangers[i] = stranger_from(from[i], "third:1", "\x40\0\0", 3);
        run(SECOND / 100);
        if (i + 1 == PLACES) {
            const struct leat_intake *intake = &third->ends[0].actor->intake;
            assert_true(intake->accounts[LEAT_NET_STRANGERS].bytes > 0);
            assert_int_equal(intake->accounts[LEAT_NET_CLIENTS].bytes, 0);
        }
    }
    for (unsigned i = 0; i <= PLACES; i++)
        assert_int_equal(strangers[i]->closed, i == 1);
    run(3 * SECOND);
    for (unsigned i = 0; i <= PLACES; i++) {
        assert_true(strangers[i]->closed);
        free(strangers[i]);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_world, teardown_world)
    const struct CMUnitTest tests[] = {
        T(prove_what_was_tampered_with_is_noticed),
        T(prove_a_replayed_connection_is_told_nothing_and_cut),
        T(prove_a_stranger_is_told_nothing_and_cut),
        T(prove_a_large_frame_is_refused_by_its_header),
        T(prove_another_key_is_refused_on_both_sides),
        T(prove_an_older_node_is_named_and_not_said_to_have_another_key),
        T(prove_a_peer_of_another_format_is_told_and_cut),
        T(prove_a_peer_has_so_many_requests_under_way),
        T(prove_a_peer_that_takes_no_answers_is_refused),
        T(prove_a_peer_that_speaks_otherwise_is_cut_or_not_believed),
        T(prove_strangers_do_not_lock_nodes_out),
        T(prove_the_address_with_most_strangers_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
