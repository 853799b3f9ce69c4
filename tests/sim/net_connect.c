/* SPDX-License-Identifier: Apache-2.0 */
/* Listening and connecting on the simulated network. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/net_parts.h"

enum { WINDOW_BYTES_MIN = 4096, WINDOW_BYTES_MAX = 512 * 1024 };

struct sim_listener {
    struct sim_listener *next;
    struct sim_actor *actor;
    char address[128];
    leat_accept_fn on_accept;
    void *acceptor;
};

/* Those of processes that have ended leave the list: seventy servers end in a seed. */
static struct sim_listener *listener_find(struct sim_world *world, const char *address)
{
    struct sim_listener **at = &world->listeners;
    while (*at) {
        struct sim_listener *listener = *at;
        if (!listener->actor->process->alive) {
            *at = listener->next;
            listener->next = world->listeners_over;
            world->listeners_over = listener;
        } else if (strcmp(listener->address, address) == 0) {
            return listener;
        } else {
            at = &listener->next;
        }
    }
    return NULL;
}

static struct leat_conn *conn_new(struct sim_world *world, struct sim_actor *actor)
{
    struct leat_conn *conn = calloc(1, sizeof *conn);
    LEAT_ASSERT(conn != NULL);
    conn->actor = actor;
    conn->window = sim_rng_chance(&world->net, 100)
                       ? sim_rng_between(&world->net, WINDOW_BYTES_MIN, 32 * 1024)
                       : sim_rng_between(&world->net, 64 * 1024, WINDOW_BYTES_MAX);
    conn->next_in_world = world->conns;
    conn->id = ++world->conns_made;
    world->conns = conn;
    return conn;
}

leat_err sim_net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                        char out_address[128], struct leat_error *error)
{
    struct sim_actor *actor = ctx;
    struct sim_world *world = actor->world;
    sim_port_called(actor);
    if (listener_find(world, address))
        return leat_error_set(error, LEAT_E_EXISTS, "%s is in use", address);
    struct sim_listener *listener = calloc(1, sizeof *listener);
    LEAT_ASSERT(listener != NULL);
    listener->actor = actor;
    listener->on_accept = on_accept;
    listener->acceptor = acceptor;
    size_t bytes = strlen(address);
    if (bytes > 2 && strcmp(address + bytes - 2, ":0") == 0) /* any port */
        snprintf(listener->address, sizeof listener->address, "%.*s:%u", (int)bytes - 2, address,
                 40000 + (unsigned)(world->next_order % 20000));
    else
        snprintf(listener->address, sizeof listener->address, "%s", address);
    snprintf(out_address, 128, "%s", listener->address);
    listener->next = world->listeners;
    world->listeners = listener;
    return LEAT_OK;
}

static void opened(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (conn->state != CONN_CONNECTING) return;
    conn->state = CONN_OPEN;
    if (conn->handler->on_open) conn->handler->on_open(conn->user, conn);
    sim_conn_read_post(conn);
    (void)world;
}

static void refused(struct sim_world *world, struct sim_event *event)
{
    sim_conn_end(event->a, LEAT_E_CLOSED);
    (void)world;
}

static void accepted(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    struct sim_listener *listener = event->b;
    if (!conn->peer || conn->peer->state == CONN_CLOSED) { /* gone meanwhile */
        conn->state = CONN_CLOSED;
        return;
    }
    struct leat_conn *client = conn->peer;
    conn->state = CONN_OPEN;
    conn->intake.account = LEAT_NET_CLIENTS;
    sim_conn_intake_join(conn);
    conn->user = listener->on_accept(listener->acceptor, conn, &conn->handler);
    if (!conn->user) {
        conn->state = CONN_CLOSED;
        sim_conn_intake_leave(conn);
        if (client->actor->process->alive) sim_actor_post(client->actor, 50, refused, client);
        return;
    }
    if (client->actor->process->alive)
        sim_actor_post(client->actor, sim_rng_between(&world->net, 10, 100), opened, client);
    sim_conn_read_post(conn);
}

static void connecting(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    char *address = event->b;
    struct sim_process *process = conn->actor->process;
    struct sim_listener *listener = listener_find(world, address);
    if (!process->alive || conn->state != CONN_CONNECTING) {
        free(address);
        return;
    }
    if (process->cut_off_until_us > world->now_us) { /* the SYN is retransmitted */
        sim_world_at(world, process->cut_off_until_us + 1, connecting, conn)->b = address;
        return;
    }
    /* Both ways have to be open: the answer would be lost too. */
    uint64_t cut_us = 0;
    if (listener && world->cuts) {
        const struct sim_process *there = listener->actor->process;
        cut_us = sim_net_cut_until(process, there);
        if (sim_net_cut_until(there, process) > cut_us) cut_us = sim_net_cut_until(there, process);
    }
    if (cut_us) {
        sim_world_at(world, cut_us + 1, connecting, conn)->b = address;
        return;
    }
    free(address);
    if (!listener || world->refuse_until_us > world->now_us) {
        if (listener) sim_fault_struck(world, SIM_FAULT_REFUSE);
        sim_actor_post(conn->actor, 1, refused, conn);
        return;
    }
    struct leat_conn *far = conn_new(world, listener->actor);
    far->peer = conn;
    conn->peer = far;
    if (conn->actor->window_bytes) far->window = conn->actor->window_bytes;
    snprintf(far->peer_name, sizeof far->peer_name, "%s:%llu", process->name,
             (unsigned long long)conn->id);
    sim_actor_post(listener->actor, 1, accepted, far)->b = listener;
}

leat_err sim_net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                         void *user, struct leat_conn **out_conn)
{
    struct sim_actor *actor = ctx;
    sim_port_called(actor);
    const char *port = strrchr(address, ':');
    if (!port || !port[1] || port[1 + strspn(port + 1, "0123456789")]) return LEAT_E_INVALID;
    struct leat_conn *conn = conn_new(actor->world, actor);
    conn->handler = handler;
    conn->user = user;
    conn->intake.account = LEAT_NET_NODES;
    sim_conn_intake_join(conn);
    snprintf(conn->peer_name, sizeof conn->peer_name, "%s", address);
    char *copy = malloc(strlen(address) + 1);
    LEAT_ASSERT(copy != NULL);
    memcpy(copy, address, strlen(address) + 1);
    uint64_t delay_us = sim_rng_between(&actor->world->net, 20, 300);
    sim_world_at(actor->world, actor->world->now_us + delay_us, connecting, conn)->b = copy;
    *out_conn = conn;
    return LEAT_OK;
}

static void listeners_destroy(struct sim_listener *listener)
{
    for (struct sim_listener *next; listener; listener = next) {
        next = listener->next;
        free(listener);
    }
}

void sim_net_listeners_destroy(struct sim_world *world)
{
    listeners_destroy(world->listeners);
    listeners_destroy(world->listeners_over);
    world->listeners = world->listeners_over = NULL;
}
