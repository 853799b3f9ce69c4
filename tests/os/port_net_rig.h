/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the port suite: RIGHT listens and LEFT connects, and DISK is there too. */
#ifndef LEAT_TESTS_OS_PORT_NET_RIG_H
#define LEAT_TESTS_OS_PORT_NET_RIG_H

#include "base/random.h"
#include "tests/os/port_suite.h"

#include <stdatomic.h>

enum { HEADER = 8, SENDS = 64, BODY_MAX = 3 * 1024 * 1024, ROUND_FRAMES = 400 };

/* What a test varies. */
struct net_case {
    bool want;     /* the reader names the bytes it needs */
    bool pauses;   /* the reader pauses now and then and resumes by a mail to itself */
    bool moves;    /* the connection moves to DISK after the first frame, with bytes not consumed */
    bool replaces; /* the writer has some sends back before their bytes are taken */
    bool one_by_one;    /* the reader takes one frame per callback */
    unsigned size_bits; /* bodies below 1 << size_bits, sometimes BODY_MAX */
};

struct net_side {
    struct net_test *test;
    const struct leat_env *env;
    struct leat_conn *conn;
    bool in_call, closed, opened;
    leat_err why;
};

struct net_test {
    struct port_rig *rig;
    struct net_case how;
    struct net_side reader, writer, third; /* on RIGHT, LEFT, DISK */
    char address[128];
    /* Writer. */
    struct leat_xoshiro write_seed;
    unsigned written, sent;
    struct frame_out {
        struct leat_send send;
        struct leat_iov iov[5];
        uint8_t header[HEADER];
        bool busy;
        struct leat_send by; /* sends the rest, from bytes of its own */
        struct leat_iov by_iov;
        void *by_bytes;
    } out[SENDS];
    unsigned replaced;
    uint8_t *body;
    /* Reader. */
    struct leat_xoshiro read_seed;
    unsigned read;
    struct leat_mail start_mail, resume_mail;
    bool resuming, moved;
    _Atomic bool went_on; /* the slow reader; the writer looks */
    uint64_t received_bytes;
    void (*on_start_left)(struct net_test *test);
};

/** RIGHT listens with `on_accept`, then LEFT runs `on_start_left`. */
struct net_test *net_test_make(const struct port_family *family, leat_accept_fn on_accept,
                               void (*on_start_left)(struct net_test *test));
void net_test_drop(const struct port_family *family, struct net_test *test);
/** on_start of RIGHT, for a test that attaches RIGHT with other callbacks. */
void net_right_listen(void *actor);
/** on_bytes of a side that is never sent any. */
size_t net_no_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                    size_t *want_bytes);

#endif
