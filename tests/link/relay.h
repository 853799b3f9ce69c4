/* SPDX-License-Identifier: Apache-2.0 */
/* A relay between two nodes, which can read and change all their bytes. */
#ifndef LEAT_TESTS_LINK_RELAY_H
#define LEAT_TESTS_LINK_RELAY_H

#include "tests/link/rig.h"

#include "base/bytes.h"
#include "base/crc32c.h"

enum {
    NONCE_FRAME_BYTES = LEAT_FRAME_HEADER_BYTES + 1 + 2 + LEAT_NONCE_BYTES,
    FRAMES_MAX = 64,
    FRAME_BYTES_MAX = 512,
};

enum tampering { HONEST, FLIP, SKIP, TWICE, SWAP, OLDER };
struct relay {
    struct sim_actor *actor;
    enum tampering tampering;
    unsigned frame, at; /* which one of the opener's, and which byte of it */
    unsigned seen;      /* frames of the opener but pings, in this connection */
    bool done;
    size_t kept_bytes, recorded_bytes;
    uint8_t kept[FRAME_BYTES_MAX], recorded[FRAMES_MAX * FRAME_BYTES_MAX];
};
struct half {
    struct relay *relay;
    struct leat_conn *conn;
    struct half *other;
    bool opener, open;
};

/* The checksum of the header and the control body: anybody can make it. */
static void checksum_again(uint8_t *frame)
{
    leat_put_le32(frame + 16, 0);
    uint32_t crc = leat_crc32c(0, frame, LEAT_FRAME_HEADER_BYTES);
    leat_put_le32(frame + 16,
                  leat_crc32c(crc, frame + LEAT_FRAME_HEADER_BYTES, leat_get_le32(frame + 12)));
}

static void forward(struct half *to, const uint8_t *bytes, size_t count)
{
    if (to->conn)
        assert_int_equal(to->relay->actor->env.net->send_copy(to->conn, bytes, count), LEAT_OK);
}

static void opener_frame(struct half *half, const uint8_t *bytes, size_t count)
{
    struct relay *relay = half->relay;
    uint8_t frame[FRAME_BYTES_MAX];
    assert_true(count <= sizeof frame);
    memcpy(frame, bytes, count);
    bool ping = leat_get_le16(bytes + 4) == LEAT_NODE_KIND_PING; /* whenever they come */
    bool this = !ping && relay->seen++ == relay->frame && !relay->done;
    if (this) relay->done = true;
    if (relay->recorded_bytes + count <= sizeof relay->recorded) {
        memcpy(relay->recorded + relay->recorded_bytes, frame, count);
        relay->recorded_bytes += count;
    }
    if (this && relay->tampering == FLIP) {
        size_t at = 4 + relay->at % (count - 4); /* not the length: that would only lose the rest */
        frame[at >= 16 && at < 20 ? 15 : at] ^=
            1; /* nor the checksum, which is right again below */
        if (leat_get_le32(frame + 12) <= count - LEAT_FRAME_HEADER_BYTES) checksum_again(frame);
    }
    if (this && relay->tampering == SKIP) return;
    if (this && relay->tampering == SWAP) {
        memcpy(relay->kept, frame, count);
        relay->kept_bytes = count;
        return;
    }
    forward(half->other, frame, count);
    if (this && relay->tampering == TWICE) forward(half->other, frame, count);
    if (relay->kept_bytes) forward(half->other, relay->kept, relay->kept_bytes);
    relay->kept_bytes = 0;
}

static void half_on_open(void *user, struct leat_conn *conn)
{
    struct half *half = user;
    (void)conn;
    half->open = true;
    if (half->other->conn) half->relay->actor->env.net->resume(half->other->conn);
}

static size_t half_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want)
{
    struct half *half = user;
    size_t used = 0;
    (void)want;
    if (!half->other->open) {
        half->relay->actor->env.net->pause(conn);
        return 0;
    }
    if (!half->opener && half->relay->tampering == OLDER) {
        uint8_t nonce[NONCE_FRAME_BYTES];
        assert_int_equal(bytes, sizeof nonce);
        memcpy(nonce, data, sizeof nonce);
        nonce[6] = LEAT_NODE_VERSION_MIN - 1;
        checksum_again(nonce);
        forward(half->other, nonce, bytes);
        return bytes;
    }
    if (!half->opener) {
        forward(half->other, data, bytes);
        return bytes;
    }
    while (bytes - used >= 4 && bytes - used >= 4 + (size_t)leat_get_le32(data + used)) {
        size_t count = 4 + (size_t)leat_get_le32(data + used);
        opener_frame(half, data + used, count);
        used += count;
    }
    return used;
}

static void half_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct half *half = user;
    (void)conn;
    (void)why;
    half->conn = NULL;
    if (half->other->conn) half->relay->actor->env.net->close(half->other->conn);
    half->relay->kept_bytes = 0;
}
static const struct leat_conn_handler half_handler = {half_on_open, half_on_bytes, half_on_closed};

static void *relay_accept(void *acceptor, struct leat_conn *conn,
                          const struct leat_conn_handler **out_handler)
{
    struct relay *relay = acceptor;
    relay->seen = 0;
    struct half *halves = calloc(2, sizeof *halves);
    assert_non_null(halves);
    halves[0] = (struct half){relay, conn, &halves[1], true, true};
    halves[1] = (struct half){relay, NULL, &halves[0], false, false};
    const struct leat_net *net = relay->actor->env.net;
    assert_int_equal(net->connect(net->ctx, "right:1", &half_handler, &halves[1], &halves[1].conn),
                     LEAT_OK);
    *out_handler = &half_handler;
    return &halves[0];
}

static void relay_listen(void *arg)
{
    struct relay *relay = arg;
    char bound[128];
    const struct leat_net *net = relay->actor->env.net;
    assert_int_equal(net->listen(net->ctx, "relay:1", relay_accept, relay, bound, NULL), LEAT_OK);
}

static void nobody_wakes(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops relay_ops = {.on_wake = nobody_wakes};

static struct relay *relay_make(enum tampering tampering, unsigned frame, unsigned at)
{
    struct relay *relay = calloc(1, sizeof *relay);
    struct sim_process *process = sim_process_create(world, "relay");
    assert_non_null(relay);
    *relay = (struct relay){.tampering = tampering, .frame = frame, .at = at};
    relay->actor = sim_actor_create(process, 0);
    assert_true(sim_process_enter(process, relay_listen, relay));
    sim_actor_register(relay->actor, relay, &relay_ops);
    return relay;
}

#endif
