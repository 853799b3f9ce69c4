/* SPDX-License-Identifier: Apache-2.0 */
/* The real net port and idle actors: names, crowds, silent peers, descriptors that run out. */
#include "base/mem.h"
#include "base/node_log.h"
#include "tests/os/real_rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops nothing_ops = {.on_wake = nothing, .on_turn_end = nothing};

struct crowd_test {
    struct real_rig *real;
    unsigned wanted, accepted, refused, warned;
    unsigned listener; /* the actor: PORT_RIGHT, or PORT_DISK, which listens for nodes */
    char address[128];
    const char *listen_at, *connect_host;
    struct leat_mail go;
    int filler[8];
};
static void crowd_closed(void *user, struct leat_conn *conn, leat_err why)
{
    PORT_CHECK(why == LEAT_E_CANCELLED || why == LEAT_E_CLOSED); /* the rig's end */
}
static size_t crowd_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                          size_t *want_bytes)
{
    return bytes;
}
static const struct leat_conn_handler crowd_handler = {NULL, crowd_bytes, crowd_closed};

static void *crowd_accept(void *acceptor, struct leat_conn *conn,
                          const struct leat_conn_handler **out_handler)
{
    struct crowd_test *test = acceptor;
    *out_handler = &crowd_handler;
    if (++test->accepted == test->wanted) test->real->rig.finish(test->real);
    return test;
}
static void crowd_connect(void *actor, struct leat_mail *mail)
{
    struct crowd_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    char to[160];
    snprintf(to, sizeof to, "%s%s", test->connect_host, strrchr(test->address, ':'));
    struct leat_conn *conn;
    for (unsigned i = 0; i < test->wanted; i++)
        PORT_CHECK(net->connect(net->ctx, to, &crowd_handler, test, &conn) == LEAT_OK);
}
static void crowd_listen(void *actor)
{
    struct crowd_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_RIGHT];
    struct leat_error error = {.text = ""};
    leat_err rc =
        env->net->listen(env->net->ctx, test->listen_at, crowd_accept, test, test->address, &error);
    if (rc) print_message("%s\n", error.text);
    PORT_CHECK(rc == LEAT_OK);
    test->go.deliver = crowd_connect;
    env->post->send(env->post->ctx, PORT_LEFT, &test->go);
}
static void crowd_run(struct crowd_test *test)
{
    struct port_rig *rig = &test->real->rig;
    rig->attach(rig->ctx, PORT_LEFT, test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, test, &nothing_ops, crowd_listen);
    rig->run(rig->ctx);
    assert_int_equal(test->accepted, test->wanted);
    real_rig_drop(rig);
}

static void net_name_is_looked_up(void **state)
{
    struct crowd_test test = {.real = real_rig_make()->ctx,
                              .wanted = 3,
                              .listen_at = "127.0.0.1:0",
                              .connect_host = "localhost"};
    crowd_run(&test);
}
static void net_ipv6_address_in_brackets_works(void **state)
{
    struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own)) {
        /* A host without IPv6, or without its loopback address; nothing else is a reason. */
        print_message("no IPv6 here: %s\n", strerror(errno));
        assert_true(errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
        if (fd >= 0) close(fd);
        skip();
    }
    close(fd);
    struct crowd_test test = {
        .real = real_rig_make()->ctx, .wanted = 1, .listen_at = "[::1]:0", .connect_host = "[::1]"};
    crowd_run(&test);
}

/* Ten thousand such must be cheap: no buffers while nothing is under way. */
static void net_idle_connections_take_little_memory(void **state)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    struct crowd_test test = {.real = real_rig_make()->ctx,
                              .wanted = (unsigned)files.rlim_cur / 4,
                              .listen_at = "127.0.0.1:0",
                              .connect_host = "127.0.0.1"};
    struct port_rig *rig = &test.real->rig;
    size_t before = leat_mem_bytes(LEAT_MEM_NET);
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, crowd_listen);
    rig->run(rig->ctx);
    assert_int_equal(test.accepted, test.wanted);
    /* Handles are freed with the world, so both ends are still counted here. */
    size_t used = leat_mem_bytes(LEAT_MEM_NET) - before;
    assert_true(used / (2 * test.wanted) < 2048);
    real_rig_drop(rig);
}

static void files_warned(void *ctx, enum leat_node_log_level level, const char *line)
{
    struct crowd_test *test = ctx;
    if (level != LEAT_NODE_LOG_WARN || ++test->warned > 1) return;
    for (int i = 0; i < 8; i++)
        close(test->filler[i]); /* the operator makes room */
}
/* All descriptors are taken, so accept() fails while a connection waits. It must pause (one
 * warning, not a spinning core) and go on when there is room. */
static void net_accept_without_descriptors_pauses_and_goes_on(void **state)
{
    struct crowd_test test = {.real = real_rig_make()->ctx,
                              .wanted = 1,
                              .listen_at = "127.0.0.1:0",
                              .connect_host = "127.0.0.1"};
    struct rlimit files, few;
    getrlimit(RLIMIT_NOFILE, &files);
    int used = dup(0);
    for (int i = 0; i < 8; i++)
        test.filler[i] = dup(0);
    close(used);
    /* Free below the limit: two, the listener's and the connecting side's. */
    few = files;
    few.rlim_cur = (rlim_t)test.filler[7] + 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    leat_node_log_set(files_warned, &test, LEAT_NODE_LOG_WARN);
    crowd_run(&test);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_WARN);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(test.warned, 1);
}

/* Of the last descriptors nobody who connects has one: they are refused, and told so once. */
static void eager_connect(struct crowd_test *test);
static void eager_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct crowd_test *test = user;
    if (why == LEAT_E_CANCELLED || test->accepted) return;
    test->refused++;
    eager_connect(test);
}
static const struct leat_conn_handler eager_handler = {NULL, crowd_bytes, eager_closed};
static void eager_connect(struct crowd_test *test)
{
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    struct leat_conn *conn;
    PORT_CHECK(net->connect(net->ctx, test->address, &eager_handler, test, &conn) == LEAT_OK);
    if (test->refused == 3) /* who had them leaves */
        for (int i = 0; i < 8; i++)
            close(test->filler[i]);
}
static void eager_go(void *actor, struct leat_mail *mail)
{
    eager_connect(actor);
}
static void eager_listen(void *actor)
{
    struct crowd_test *test = actor;
    const struct leat_env *env = test->real->envs[test->listener];
    struct leat_error error = {.text = ""};
    PORT_CHECK(env->net->listen(env->net->ctx, test->listen_at, crowd_accept, test, test->address,
                                &error) == LEAT_OK);
    if (strncmp(test->listen_at, "unix:", 5) == 0) /* its name is in the data directory */
        snprintf(test->address, sizeof test->address, "unix:%s/%s", test->real->dir,
                 test->listen_at + 5);
    test->go.deliver = eager_go;
    env->post->send(env->post->ctx, PORT_LEFT, &test->go);
}
static void refusal_counted(void *ctx, enum leat_node_log_level level, const char *line)
{
    struct crowd_test *test = ctx;
    test->warned += level == LEAT_NODE_LOG_WARN && strstr(line, "LimitNOFILE") != NULL;
}
static void last_descriptors_are_kept(unsigned listener, const char *listen_at, int most)
{
    enum { MOST = 256 };
    struct crowd_test test = {
        .real = real_rig_make()->ctx, .wanted = 1, .listener = listener, .listen_at = listen_at};
    struct port_rig *rig = &test.real->rig;
    struct rlimit files, few;
    getrlimit(RLIMIT_NOFILE, &files);
    few = files;
    few.rlim_cur = MOST;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, listener, &test, &nothing_ops, eager_listen);
    if (listener != PORT_RIGHT) rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, NULL);
    unsigned count = 0;
    int taken[MOST], fd;
    while ((fd = dup(0)) < most)
        taken[count++] = fd;
    close(fd);
    for (int i = 0; i < 8; i++)
        test.filler[i] = taken[--count];
    leat_node_log_set(refusal_counted, &test, LEAT_NODE_LOG_WARN);
    rig->run(rig->ctx);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_WARN);
    while (count)
        close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(test.accepted, 1);
    assert_true(test.refused >= 3);
    assert_int_equal(test.warned, 1);
    real_rig_drop(rig);
}
static void net_who_connects_has_none_of_the_last_descriptors(void **state)
{
    last_descriptors_are_kept(PORT_RIGHT, "127.0.0.1:0", 256 - 256 / 8);
    last_descriptors_are_kept(PORT_DISK, "127.0.0.1:0",
                              256 - 256 / 16); /* nodes may have half of these */
    last_descriptors_are_kept(PORT_RIGHT, "unix:door",
                              256 - 256 / 32); /* the operator, three quarters */
}

/* ---- silent peers that hold all the room for cut frames ---- */
/* A peer's buffer has the bytes that it sent at least, and eight times those of its first read at most: how many these
 * are, the kernel decides. Some have room in their address's half, one more may exceed it, and the last has to wait. */
enum {
    SILENT_FIT_AT_LEAST = 4,
    SILENT_FIT_AT_MOST = 8 * SILENT_FIT_AT_LEAST,
    SILENT = SILENT_FIT_AT_MOST + 2,
    SILENT_BYTES = 64 * 1024,
    SILENT_ROOM = 2 * SILENT_FIT_AT_MOST * SILENT_BYTES
};
static const uint8_t silent_begin[SILENT_BYTES];
struct silent_test {
    struct real_rig *real;
    unsigned accepted, waiting, timed_out;
    bool answered, late_sent;
    char address[128];
    struct leat_mail go, late;
    struct leat_conn *conns[SILENT + 1];
};
static void silent_done(struct silent_test *test)
{
    if (test->answered && test->timed_out > 0) test->real->rig.finish(test->real);
}
static void silent_late(void *actor, struct leat_mail *mail)
{
    struct silent_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    PORT_CHECK(net->connect(net->ctx, test->address, &crowd_handler, test, &test->conns[SILENT]) ==
               LEAT_OK);
    PORT_CHECK(net->send_copy(test->conns[SILENT], "whole", 6) == LEAT_OK);
}
static size_t silent_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                           size_t *want_bytes)
{
    struct silent_test *test = user;
    const struct leat_post *post = test->real->envs[PORT_RIGHT]->post;
    if (data[0] == 'w') {
        test->answered = true;
        silent_done(test);
        return bytes;
    }
    *want_bytes = LEAT_WANT_BYTES_MAX;
    test->waiting++;
    /* Once room may be gone, a peer comes with a whole frame. */
    if (test->waiting == SILENT_FIT_AT_LEAST && !test->late_sent) {
        test->late_sent = true;
        test->late.deliver = silent_late;
        post->send(post->ctx, PORT_LEFT, &test->late);
    }
    return 0;
}
static void silent_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct silent_test *test = user;
    test->timed_out += why == LEAT_E_TIMEOUT;
    silent_done(test);
}
static const struct leat_conn_handler silent_handler = {NULL, silent_bytes, silent_closed};
static void *silent_accept(void *acceptor, struct leat_conn *conn,
                           const struct leat_conn_handler **out_handler)
{
    *out_handler = &silent_handler;
    return acceptor;
}
static void silent_connect(void *actor, struct leat_mail *mail)
{
    struct silent_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    for (unsigned i = 0; i < SILENT; i++) {
        PORT_CHECK(net->connect(net->ctx, test->address, &crowd_handler, test, &test->conns[i]) ==
                   LEAT_OK);
        PORT_CHECK(net->send_copy(test->conns[i], silent_begin, SILENT_BYTES) == LEAT_OK);
    }
}
static void silent_listen(void *actor)
{
    struct silent_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_RIGHT];
    env->net->limit(env->net->ctx, LEAT_NET_CLIENTS, SILENT_ROOM);
    PORT_CHECK(env->net->listen(env->net->ctx, "127.0.0.1:0", silent_accept, test, test->address,
                                NULL) == LEAT_OK);
    test->go.deliver = silent_connect;
    env->post->send(env->post->ctx, PORT_LEFT, &test->go);
}
/* Peers that begin large frames and fall silent take all the room. A peer that sends whole frames must be served in the
 * end, and the silent peers are closed. */
static void net_silent_peers_make_room_for_others(void **state)
{
    struct silent_test test = {.real = real_rig_make()->ctx};
    struct port_rig *rig = &test.real->rig;
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, silent_listen);
    rig->run(rig->ctx);
    assert_true(test.answered);
    assert_true(test.timed_out > 0);
    real_rig_drop(rig);
}

/* ---- a connection that has to end while it moves ---- */
struct leaving_test {
    struct real_rig *real;
    bool moved, ended_there, ended_here;
    leat_err why;
    char address[128];
    struct leat_mail go;
    struct leat_conn *conn;
};
static void leaving_closed_there(void *user, struct leat_conn *conn, leat_err why)
{
    struct leaving_test *test = user;
    test->ended_there = true;
    test->why = why;
    test->real->rig.finish(test->real);
}
static size_t leaving_bytes_there(void *user, struct leat_conn *conn, const uint8_t *data,
                                  size_t bytes, size_t *want_bytes)
{
    return bytes;
}
static const struct leat_conn_handler there_handler = {NULL, leaving_bytes_there,
                                                       leaving_closed_there};
static void *leaving_moved(void *actor, struct leat_conn *conn, void *baggage,
                           const struct leat_conn_handler **out_handler)
{
    struct leaving_test *test = baggage;
    test->moved = true;
    *out_handler = &there_handler;
    return test;
}
static void leaving_closed_here(void *user, struct leat_conn *conn, leat_err why)
{
    struct leaving_test *test = user;
    test->ended_here = true;
    test->real->rig.finish(test->real);
}
static size_t leaving_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    struct leaving_test *test = user;
    const struct leat_net *net = test->real->envs[PORT_RIGHT]->net;
    net->account(conn, LEAT_NET_STRANGERS);
    net->move(conn, PORT_DISK, leaving_moved, test);
    return 0; /* and there is no room for them */
}
static const struct leat_conn_handler leaving_handler = {NULL, leaving_bytes, leaving_closed_here};
static void *leaving_accept(void *acceptor, struct leat_conn *conn,
                            const struct leat_conn_handler **out_handler)
{
    *out_handler = &leaving_handler;
    return acceptor;
}
static void leaving_connect(void *actor, struct leat_mail *mail)
{
    struct leaving_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    PORT_CHECK(net->connect(net->ctx, test->address, &crowd_handler, test, &test->conn) == LEAT_OK);
    PORT_CHECK(net->send_copy(test->conn, "rest", 5) == LEAT_OK);
}
static void leaving_listen(void *actor)
{
    struct leaving_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_RIGHT];
    env->net->limit(env->net->ctx, LEAT_NET_STRANGERS, 0);
    PORT_CHECK(env->net->listen(env->net->ctx, "127.0.0.1:0", leaving_accept, test, test->address,
                                NULL) == LEAT_OK);
    test->go.deliver = leaving_connect;
    env->post->send(env->post->ctx, PORT_LEFT, &test->go);
}
/* Whoever moved a connection away has forgotten it: its end is told where it arrives, and there only. */
static void net_connection_that_ends_while_it_moves_ends_there(void **state)
{
    struct leaving_test test = {.real = real_rig_make()->ctx};
    struct port_rig *rig = &test.real->rig;
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_DISK, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, leaving_listen);
    rig->run(rig->ctx);
    assert_false(test.ended_here);
    assert_true(test.moved && test.ended_there);
    assert_int_equal(test.why, LEAT_E_TOO_MANY);
    real_rig_drop(rig);
}

/* ---- failing allocations ---- */
struct sweep_test {
    struct real_rig *real;
    uint64_t fail_at;
    unsigned answered, ended;
    char address[128];
    struct leat_mail go;
};
static uint8_t sweep_frame[300 * 1024]; /* cut by the read buffer, so it is kept for a while */

static size_t sweep_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                          size_t *want_bytes)
{
    struct sweep_test *test = user;
    *want_bytes = sizeof sweep_frame;
    if (bytes < sizeof sweep_frame) return 0;
    test->answered++;
    test->real->rig.finish(test->real);
    return bytes;
}
static void sweep_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct sweep_test *test = user;
    test->real->rig.finish(test->real);
}
static const struct leat_conn_handler sweep_handler = {NULL, sweep_bytes, sweep_closed};
static void *sweep_accept(void *acceptor, struct leat_conn *conn,
                          const struct leat_conn_handler **out_handler)
{
    *out_handler = &sweep_handler;
    return acceptor;
}
static void sweep_connect(void *actor, struct leat_mail *mail)
{
    struct sweep_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    struct leat_conn *conn;
    char to[160];
    snprintf(to, sizeof to, "localhost%s", strrchr(test->address, ':'));
    leat_err rc = net->connect(net->ctx, to, &sweep_handler, test, &conn);
    if (!rc && net->send_copy(conn, sweep_frame, sizeof sweep_frame)) net->close(conn);
    if (rc) test->real->rig.finish(test->real);
}
static void sweep_listen(void *actor)
{
    struct sweep_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_RIGHT];
    leat_mem_fail_at(test->fail_at);
    if (env->net->listen(env->net->ctx, "127.0.0.1:0", sweep_accept, test, test->address, NULL)) {
        test->real->rig.finish(test->real);
        return;
    }
    test->go.deliver = sweep_connect;
    env->post->send(env->post->ctx, PORT_LEFT, &test->go);
}
/* Let the first, second, ... allocation fail from listening to the frame's arrival. Each time the
 * message arrives, or a call is refused, or the connection ends with on_closed; never silence. */
static void net_failed_allocations_are_never_silent(void **state)
{
    bool all_done = false;
    for (uint64_t n = 1; !all_done; n++) {
        struct sweep_test test = {.real = real_rig_make()->ctx, .fail_at = n};
        struct port_rig *rig = &test.real->rig;
        rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
        rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, sweep_listen);
        rig->run(rig->ctx);
        all_done = leat_mem_calls() < n;
        leat_mem_fail_at(0);
        assert_true(!all_done || test.answered == 1);
        real_rig_drop(rig);
    }
}

/* ---- idle ---- */
/* ---- why a connection could not be made ---- */

struct reach_test {
    struct real_rig *real;
    const char *to;
    bool without_files;
    leat_err why;
};
static void reach_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct reach_test *test = user;
    test->why = why;
    test->real->rig.finish(test->real);
}
static void reach_open(void *user, struct leat_conn *conn)
{
    PORT_CHECK(false);
}
static const struct leat_conn_handler reach_handler = {reach_open, crowd_bytes, reach_closed};
static void reach_begin(void *actor)
{
    struct reach_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_LEFT]->net;
    struct leat_conn *conn;
    struct rlimit files, none;
    getrlimit(RLIMIT_NOFILE, &files);
    none = files;
    if (test->without_files) none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    PORT_CHECK(net->connect(net->ctx, test->to, &reach_handler, test, &conn) == LEAT_OK);
    setrlimit(RLIMIT_NOFILE, &files);
}
static leat_err reach_fail(const char *to, bool without_files)
{
    struct reach_test test = {
        .real = real_rig_make()->ctx, .to = to, .without_files = without_files};
    struct port_rig *rig = &test.real->rig;
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, reach_begin);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, NULL);
    rig->run(rig->ctx);
    real_rig_drop(rig);
    return test.why;
}
/* A refusal proves that no process listens there; a node is called dead by it. Nothing else does. */
static void net_connection_that_can_not_be_tried_is_not_called_refused(void **state)
{
    assert_int_equal(reach_fail("127.0.0.1:1", false), LEAT_E_CLOSED);
    assert_int_equal(reach_fail("127.0.0.1:1", true), LEAT_E_NO_MEMORY);
    assert_int_equal(reach_fail("no-such-host.invalid:1", false), LEAT_E_UNREACHABLE);
}

struct idle_test {
    struct real_rig *real;
    unsigned turns, wakes;
    uint64_t cpu_us;
};
static void idle_turn(void *actor)
{
    ((struct idle_test *)actor)->turns++;
}
static void idle_over(void *actor)
{
    struct idle_test *test = actor;
    test->wakes++;
    test->cpu_us = leat_os_cpu_us() - test->cpu_us;
    test->real->rig.finish(test->real);
}
static void idle_start(void *actor)
{
    struct idle_test *test = actor;
    const struct leat_clock *clock = test->real->envs[PORT_LEFT]->clock;
    test->cpu_us = leat_os_cpu_us();
    clock->wake_at(clock->ctx, clock->now_us(clock->ctx) + 300000);
}
static void actors_without_work_have_no_turns(void **state)
{
    static const struct leat_actor_ops left_ops = {.on_wake = idle_over},
                                       right_ops = {.on_wake = nothing, .on_turn_end = idle_turn};
    struct port_rig *rig = real_rig_make();
    struct idle_test test = {.real = rig->ctx}, right = {.real = rig->ctx};
    rig->attach(rig->ctx, PORT_LEFT, &test, &left_ops, idle_start);
    rig->attach(rig->ctx, PORT_RIGHT, &right, &right_ops, NULL);
    rig->run(rig->ctx);
    assert_int_equal(test.wakes, 1);
    assert_int_equal(right.turns, 1); /* that of its start */
    assert_true(test.cpu_us < 30000); /* 10 % of one core, sanitizers included */
    real_rig_drop(rig);
}

/* An actor that always has work for itself, each piece longer than an actor does in one go. */
struct busy_test {
    struct real_rig *real;
    struct leat_mail mail;
    unsigned pieces, pieces_before;
    bool over;
};
static void busy_piece(void *actor, struct leat_mail *mail)
{
    struct busy_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_LEFT];
    const uint64_t until_us = env->clock->now_us(env->clock->ctx) + 5000;
    while (env->clock->now_us(env->clock->ctx) < until_us) {
    }
    test->pieces++;
    if (!test->over) env->post->send(env->post->ctx, PORT_LEFT, mail);
}
static void busy_woken(void *actor)
{
    struct busy_test *test = actor;
    test->over = true;
    test->pieces_before = test->pieces;
    test->real->rig.finish(test->real);
}
static void busy_start(void *actor)
{
    struct busy_test *test = actor;
    const struct leat_env *env = test->real->envs[PORT_LEFT];
    env->clock->wake_at(env->clock->ctx, env->clock->now_us(env->clock->ctx) + 1000);
    test->mail.deliver = busy_piece;
    env->post->send(env->post->ctx, PORT_LEFT, &test->mail);
}
/* Goal: timers and sockets are looked at between two pieces of work that take long. */
static void actor_that_is_busy_with_itself_is_woken_in_time(void **state)
{
    static const struct leat_actor_ops ops = {.on_wake = busy_woken};
    struct port_rig *rig = real_rig_make();
    struct busy_test test = {.real = rig->ctx};
    rig->attach(rig->ctx, PORT_LEFT, &test, &ops, busy_start);
    rig->run(rig->ctx);
    assert_in_range(test.pieces_before, 1, 4); /* 16 rounds of it would be too many */
    real_rig_drop(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_name_is_looked_up),
        cmocka_unit_test(net_ipv6_address_in_brackets_works),
        cmocka_unit_test(net_idle_connections_take_little_memory),
        cmocka_unit_test(net_accept_without_descriptors_pauses_and_goes_on),
        cmocka_unit_test(net_who_connects_has_none_of_the_last_descriptors),
        cmocka_unit_test(net_connection_that_can_not_be_tried_is_not_called_refused),
        cmocka_unit_test(net_silent_peers_make_room_for_others),
        cmocka_unit_test(net_connection_that_ends_while_it_moves_ends_there),
        cmocka_unit_test(net_failed_allocations_are_never_silent),
        cmocka_unit_test(actors_without_work_have_no_turns),
        cmocka_unit_test(actor_that_is_busy_with_itself_is_woken_in_time),
    };
    return cmocka_run_group_tests_name("os-net", tests, NULL, NULL);
}
