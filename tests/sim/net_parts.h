/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the simulated network, for the bytes that go over it (net.c) and the faults that break it
 * (net_faults.c). */
#ifndef LEAT_TESTS_SIM_NET_PARTS_H
#define LEAT_TESTS_SIM_NET_PARTS_H

#include "tests/sim/sim.h"

enum conn_state { CONN_CONNECTING, CONN_OPEN, CONN_CLOSED };

struct leat_conn {
    struct leat_conn *next_in_world, *next_dirty, *peer;
    struct sim_actor *actor; /* NULL while it moves */
    const struct leat_conn_handler *handler;
    void *user;
    enum conn_state state;
    char peer_name[32];
    struct out *out_first, *out_last;
    size_t queued, under_way, window;
    unsigned sends_out; /* whose on_sent has not run */
    uint64_t last_arrival_us;
    uint64_t line_turn; /* of its next packet on a slow line */
    uint64_t taken;     /* by the network, in all */
    uint64_t taken_us;  /* when it last took some, or something came to wait */
    bool dirty, end_sent;
    bool silent; /* this end is gone; the other is told when it sends after silent_until_us */
    uint64_t silent_until_us;
    /* receiving */
    uint8_t *socket;
    size_t socket_bytes, socket_capacity;
    uint8_t *kept;
    size_t kept_bytes, kept_capacity, want_bytes;
    bool paused, read_posted, present_again, ended;
    struct leat_intake_member intake;
    bool joined; /* its actor's intake */
    uint8_t key[LEAT_NET_KEY_BYTES];
    void *(*on_moved)(void *, struct leat_conn *, void *, const struct leat_conn_handler **);
    void *baggage;
    bool moving;
    bool over; /* closed, told so, with nothing that it holds */
    uint64_t id;
};

/* An event whose `a` is a chunk: the bytes arrive. */
typedef void (*sim_chunk_arrived_fn)(struct sim_world *world, struct sim_event *event);

struct sim_chunk { /* bytes under way; bytes 0 = the end */
    struct leat_conn *to;
    sim_chunk_arrived_fn arrived;
    uint32_t bytes;
    uint8_t data[];
};

/** The connections of living processes, beginning with `from` (NULL: the first), which is looked at already. */
struct leat_conn *sim_conn_after(struct sim_world *world, struct leat_conn *from);
/** No more callbacks but on_sent(CLOSED)..., on_closed(why). */
void sim_conn_end(struct leat_conn *conn, leat_err why);
/** The other end hears of this one's end, behind all that was sent before. Once. */
void sim_conn_end_send(struct leat_conn *conn);
/** All that it holds: its process is dead. */
void sim_conn_drop(struct leat_conn *conn);
/** An event whose `a` is a connection: this end learns that it was reset. */
void sim_conn_reset_end(struct sim_world *world, struct sim_event *event);
/** Put the connection among those of its actor that may be read from (base/intake.h); take it out. */
void sim_conn_intake_join(struct leat_conn *conn);
void sim_conn_intake_leave(struct leat_conn *conn);
/** It is read soon, if there is anything and it may be. */
void sim_conn_read_post(struct leat_conn *conn);

/* ---- net_lines.c ---- */
/** Bytes leave a connection, and arrive later; 0: its end. */
void sim_chunk_send(struct leat_conn *from, const uint8_t *data, size_t bytes,
                    sim_chunk_arrived_fn arrived);
/** So many bytes may be on their way. */
size_t sim_conn_window(const struct leat_conn *conn);
/** The connection's machine loses its power: what waits for a slow line is gone. */
void sim_line_forget(struct leat_conn *from);

/* ---- net_connect.c ---- */
leat_err sim_net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                        char out_address[128], struct leat_error *error);
leat_err sim_net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                         void *user, struct leat_conn **out_conn);
void sim_net_listeners_destroy(struct sim_world *world);

#endif
