/* SPDX-License-Identifier: Apache-2.0 */
/* How connections break: with a process, by a reset, unheard by one end, with bytes that come late. */
#include "tests/sim/net_parts.h"

/* Bytes taken by the kernel of a killed process still leave; bytes of a machine without power do not, and nobody says
 * that the machine is gone until it answers again. */
void sim_net_process_died(struct sim_process *process, enum sim_death death)
{
    struct sim_world *world = process->world;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != process) continue;
        if (conn->state != CONN_CLOSED && conn->peer) {
            conn->silent =
                death == SIM_DEATH_POWER && world->silent_power && sim_rng_chance(&world->net, 500);
            conn->silent_until_us = world->now_us + sim_rng_below(&world->net, 8000000);
            if (death == SIM_DEATH_POWER) sim_line_forget(conn);
            if (conn->silent)
                conn->end_sent = true;
            else if (death == SIM_DEATH_POWER)
                conn->last_arrival_us = world->now_us + sim_rng_below(&world->net, 400000);
            sim_conn_end_send(conn);
        }
        conn->state = CONN_CLOSED;
        conn->dirty = false;
        sim_conn_drop(conn);
        conn->over = true;
    }
}

/* Both ends learn of it at different times; what is under way arrives or not. */
void sim_conn_reset_end(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (conn->actor && conn->actor->process->alive && conn->state != CONN_CLOSED && conn->handler)
        sim_conn_end(conn, LEAT_E_CLOSED);
    (void)world;
}

static void both_ends_reset(struct sim_world *world, struct leat_conn *conn)
{
    sim_world_at(world, world->now_us + sim_rng_below(&world->net, 300), sim_conn_reset_end, conn);
    sim_world_at(world, world->now_us + sim_rng_below(&world->net, 300), sim_conn_reset_end,
                 conn->peer);
    sim_fault_struck(world, SIM_FAULT_RESET);
}

unsigned sim_net_reset(struct sim_process *process, uint32_t per_mille)
{
    struct sim_world *world = process->world;
    unsigned count = 0;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != process || conn->state != CONN_OPEN) continue;
        if (!conn->peer || !sim_rng_chance(&world->net, per_mille)) continue;
        both_ends_reset(world, conn);
        count++;
    }
    return count;
}

void sim_net_reset_between(struct sim_process *one, struct sim_process *other)
{
    struct sim_world *world = one->world;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != one || conn->state != CONN_OPEN) continue;
        if (conn->peer && conn->peer->actor && conn->peer->actor->process == other)
            both_ends_reset(world, conn);
    }
}

unsigned sim_net_half_open(struct sim_process *process, uint32_t per_mille, uint64_t until_us)
{
    struct sim_world *world = process->world;
    unsigned count = 0;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != process || conn->state != CONN_OPEN) continue;
        if (!conn->peer || conn->moving || !sim_rng_chance(&world->net, per_mille)) continue;
        conn->silent = conn->end_sent = true;
        conn->silent_until_us = until_us;
        sim_conn_end(conn, LEAT_E_CLOSED);
        count++;
    }
    if (count) sim_fault_struck(world, SIM_FAULT_HALF_OPEN);
    return count;
}

/* Both ends are open, or one end has been told that the other end is gone. */
static void late_end(struct sim_world *world, struct sim_event *event)
{
    struct leat_conn *conn = event->a;
    if (!conn->actor || !conn->actor->process->alive || conn->state != CONN_OPEN || conn->moving)
        return;
    if (conn->under_way) sim_fault_struck(world, SIM_FAULT_LATE_BYTES);
    sim_conn_end_send(conn);
    conn->silent = true;
    conn->silent_until_us = event->n;
    sim_conn_end(conn, LEAT_E_CLOSED);
}

void sim_net_late(struct sim_process *process, uint32_t per_mille, uint64_t until_us)
{
    struct sim_world *world = process->world;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != process || conn->state != CONN_OPEN) continue;
        if (!conn->peer || conn->moving || !sim_rng_chance(&world->net, per_mille)) continue;
        if (conn->last_arrival_us < until_us) conn->last_arrival_us = until_us;
        uint64_t end_us = world->now_us + sim_rng_below(&world->net, until_us - world->now_us);
        sim_world_at(world, end_us, late_end, conn)->n = until_us;
    }
}

/* An orderly end of the process: every connection is closed, and told so. */
void sim_net_close_all(struct sim_process *process)
{
    struct sim_world *world = process->world;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != process || conn->state == CONN_CLOSED) continue;
        if (conn->state == CONN_OPEN) sim_conn_end_send(conn);
        sim_conn_end(conn, LEAT_E_CLOSED);
    }
}

struct sim_owed sim_net_owed(const struct sim_process *from, const struct sim_process *to)
{
    struct sim_world *world = from->world;
    struct sim_owed owed = {.since_us = world->now_us};
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (conn->state != CONN_OPEN || !conn->actor || conn->actor->process != from) continue;
        if (!conn->peer || !conn->peer->actor) continue;
        if (to && conn->peer->actor->process != to) continue;
        owed.open++;
        owed.waiting_bytes += conn->queued;
        if (!conn->queued || conn->taken_us >= owed.since_us) continue;
        owed.since_us = conn->taken_us;
        owed.longest = conn->peer->actor->process;
    }
    return owed;
}
