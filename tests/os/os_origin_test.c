/* SPDX-License-Identifier: Apache-2.0 */
/* Whose connection it is: of this machine, or of another one; and what is one address to limits. */
#include "tests/os/real_rig.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops nothing_ops = {.on_wake = nothing, .on_turn_end = nothing};

static size_t nothing_read(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                           size_t *want_bytes)
{
    return bytes;
}
static void nothing_more(void *user, struct leat_conn *conn, leat_err why)
{
    (void)user;
    (void)conn;
    (void)why;
}
static const struct leat_conn_handler nothing_handler = {NULL, nothing_read, nothing_more};

/* A listener, and one connection to it. */
struct origin_row {
    struct origin_test *test;
    const char *listen_at, *from, *to; /* from: NULL: any */
    enum leat_origin wanted, origin;
    uint8_t key[LEAT_NET_KEY_BYTES];
    int fd;
    bool accepted;
};
struct origin_test {
    struct real_rig *real;
    struct origin_row *rows;
    unsigned count, accepted;
};

static void *origin_accept(void *acceptor, struct leat_conn *conn,
                           const struct leat_conn_handler **out_handler)
{
    struct origin_row *row = acceptor;
    struct origin_test *test = row->test;
    const struct leat_net *net = test->real->envs[PORT_RIGHT]->net;
    row->origin = net->origin(conn);
    row->accepted = true;
    memcpy(row->key, net->key(conn), sizeof row->key);
    *out_handler = &nothing_handler;
    if (++test->accepted == test->count) test->real->rig.finish(test->real);
    return row;
}

static struct addrinfo *origin_address(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    PORT_CHECK(getaddrinfo(host, port, &hints, &found) == 0);
    return found;
}

static void origin_connect(struct origin_row *row, const char *port)
{
    struct addrinfo *to = origin_address(row->to, port);
    row->fd = socket(to->ai_family, SOCK_STREAM, 0);
    if (row->from) {
        struct addrinfo *from = origin_address(row->from, "0");
        PORT_CHECK(bind(row->fd, from->ai_addr, from->ai_addrlen) == 0);
        freeaddrinfo(from);
    }
    PORT_CHECK(connect(row->fd, to->ai_addr, to->ai_addrlen) == 0);
    freeaddrinfo(to);
}

static void origin_listen(void *actor)
{
    struct origin_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_RIGHT]->net;
    for (unsigned i = 0; i < test->count; i++) {
        struct origin_row *row = &test->rows[i];
        char address[128];
        row->test = test;
        PORT_CHECK(net->listen(net->ctx, row->listen_at, origin_accept, row, address, NULL) ==
                   LEAT_OK);
        origin_connect(row, strrchr(address, ':') + 1);
    }
}

/* An address of this machine that others reach, as a number; false: there is none. */
static bool own_address(int family, char out[INET6_ADDRSTRLEN])
{
    struct ifaddrs *all, *at;
    if (getifaddrs(&all) != 0) return false;
    *out = 0;
    for (at = all; at && !*out; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != family || at->ifa_flags & IFF_LOOPBACK ||
            !(at->ifa_flags & IFF_UP))
            continue;
        const struct sockaddr_in6 *six = (const void *)at->ifa_addr;
        if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) continue;
        (void)getnameinfo(at->ifa_addr,
                          family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *six, out,
                          INET6_ADDRSTRLEN, NULL, 0, NI_NUMERICHOST);
    }
    freeifaddrs(all);
    return *out != 0;
}

/* Requests that change the cluster are taken from this machine only: from a peer that comes by a loopback address, or
 * by the very address to which it connects. For limits an IPv6 network is one address, and an IPv4 address that is
 * mapped to IPv6 is IPv4. */
static void net_tells_connections_of_this_machine_from_others(void **state)
{
    static char four[INET6_ADDRSTRLEN], six[INET6_ADDRSTRLEN];
    const enum leat_origin machine = LEAT_ORIGIN_MACHINE, network = LEAT_ORIGIN_NETWORK;
    struct origin_row rows[8];
    struct origin_test test = {.real = real_rig_make()->ctx, .rows = rows};
#define ROW(listen, from, to, origin)                                                              \
    rows[test.count++] = (struct origin_row)                                                       \
    {                                                                                              \
        NULL, listen, from, to, origin, network, {0}, -1, false                                    \
    }
    bool has_six = own_address(AF_INET6, six);
    ROW("127.0.0.1:0", NULL, "127.0.0.1", machine);
    if (own_address(AF_INET, four)) {
        ROW("127.0.0.1:0", four, "127.0.0.1", network);
        ROW("0.0.0.0:0", four, four, machine);
    }
    if (has_six) {
        ROW("[::]:0", "127.0.0.1", "127.0.0.1", machine);
        ROW("[::1]:0", NULL, "::1", machine);
        ROW("[::1]:0", six, "::1", network);
        ROW("[::]:0", six, six, machine);
        if (*four) ROW("[::]:0", four, "127.0.0.1", network);
    }
    struct port_rig *rig = &test.real->rig;
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, origin_listen);
    rig->run(rig->ctx);
    real_rig_drop(rig);
    static const uint8_t zeros[LEAT_NET_KEY_BYTES];
    for (unsigned i = 0; i < test.count; i++) {
        const struct origin_row *row = &rows[i];
        assert_true(row->accepted);
        assert_int_equal(row->origin, row->wanted);
        const char *from = row->from ? row->from : row->to;
        bool is_six = strchr(from, ':') != NULL;
        assert_memory_equal(row->key + (is_six ? 7 : 0), zeros, is_six ? 9 : 8); /* a /56 */
        struct in_addr in;
        if (inet_pton(AF_INET, from, &in) == 1) assert_memory_equal(row->key + 8, &in, sizeof in);
        close(row->fd);
    }
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof value;
    PORT_CHECK(getsockopt(fd, level, name, &value, &bytes) == 0);
    return value;
}

/* The accepted end of a connection to this process, by the port of the end that connected. */
static int accepted_end(int client)
{
    struct sockaddr_in own = {0}, peer;
    socklen_t bytes = sizeof own;
    PORT_CHECK(getsockname(client, (struct sockaddr *)&own, &bytes) == 0);
    for (int fd = 0; fd < 1024; fd++) {
        bytes = sizeof peer;
        peer = (struct sockaddr_in){0};
        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == own.sin_port)
            return fd;
    }
    return -1;
}

struct silent_test {
    struct real_rig *real;
    int client, keepalive, idle_s, pause_s, probes, user_timeout_ms;
};

static void *silent_accept(void *acceptor, struct leat_conn *conn,
                           const struct leat_conn_handler **out_handler)
{
    struct silent_test *test = acceptor;
    (void)conn;
    int fd = accepted_end(test->client);
    PORT_CHECK(fd >= 0);
    test->keepalive = option_of(fd, SOL_SOCKET, SO_KEEPALIVE);
    test->idle_s = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    test->pause_s = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    test->probes = option_of(fd, IPPROTO_TCP, TCP_KEEPCNT);
    test->user_timeout_ms = option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    *out_handler = &nothing_handler;
    test->real->rig.finish(test->real);
    return test;
}

static void silent_listen(void *actor)
{
    struct silent_test *test = actor;
    const struct leat_net *net = test->real->envs[PORT_RIGHT]->net;
    struct origin_row row = {.to = "127.0.0.1"};
    char address[128];
    PORT_CHECK(net->listen(net->ctx, "127.0.0.1:0", silent_accept, test, address, NULL) == LEAT_OK);
    origin_connect(&row, strrchr(address, ':') + 1);
    test->client = row.fd;
}

/* Goal: a connection that is silent because its machine is gone does not keep its place; a connection that reads slowly
 * keeps its place. */
static void net_silent_connection_is_asked_by_the_kernel(void **state)
{
    (void)state;
    struct silent_test test = {.real = real_rig_make()->ctx};
    struct port_rig *rig = &test.real->rig;
    rig->attach(rig->ctx, PORT_LEFT, &test, &nothing_ops, NULL);
    rig->attach(rig->ctx, PORT_RIGHT, &test, &nothing_ops, silent_listen);
    rig->run(rig->ctx);
    real_rig_drop(rig);
    close(test.client);
    assert_int_equal(test.keepalive, 1);
    assert_int_equal(test.idle_s, 60);
    assert_int_equal(test.pause_s, 10);
    assert_int_equal(test.probes, 6);
    assert_int_equal(test.user_timeout_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_tells_connections_of_this_machine_from_others),
        cmocka_unit_test(net_silent_connection_is_asked_by_the_kernel),
    };
    return cmocka_run_group_tests_name("os-origin", tests, NULL, NULL);
}
