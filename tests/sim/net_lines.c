/* SPDX-License-Identifier: Apache-2.0 */
/* When bytes arrive: over a line between two machines that carries them as fast as they come, or so many in a second.
 *
 * A slow line has a queue of packets for each connection. Connections take turns by bytes, so a short message does not
 * wait for all that another connection has queued. A connection's queue holds LINE_WINDOW_BYTES; what is sent
 * beyond that stays with the sender, as in a real socket that would block. One-sided writes share the line's rate. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/net_parts.h"

enum {
    PACKET_BYTES = 1400,
    LINE_WINDOW_BYTES = 32 * 1024, /* of a connection, in the socket and on a slow line */
    HEADER_BYTES = 60,             /* of each packet */
    LATE_US = 300 * 1000,
};

struct sim_packet {
    struct sim_packet *next;
    struct leat_conn *from;
    struct sim_chunk *chunk;
    uint64_t turn; /* packets leave in this order */
};

struct sim_line {
    struct sim_packet *first; /* ascending by turn */
    uint64_t bytes_per_s;     /* 0: it is as fast as others */
    uint64_t until_us, turn;
    uint64_t writes_us; /* one-sided writes take it until then */
    unsigned times;     /* that it became slow, or fast */
    bool sending;       /* the first packet is under way */
    uint64_t queued;    /* bytes of its packets */
    bool late;          /* more was to be sent than it takes within LATE_US */
};

static uint64_t line_us(const struct sim_line *line, uint64_t bytes)
{
    return (bytes + HEADER_BYTES) * 1000000 / line->bytes_per_s;
}

/* ---- onto the way ---- */

static void chunk_leave(struct leat_conn *from, struct sim_chunk *chunk)
{
    struct sim_world *world = from->actor->world;
    uint64_t at_us = world->now_us + sim_rng_between(&world->net, 10, 120);
    if (sim_rng_chance(&world->net, 5)) at_us += sim_rng_below(&world->net, 20000);
    /* A partition delays: the bytes are retransmitted when it heals. */
    uint64_t cut_us = from->actor->process->cut_off_until_us;
    if (from->peer->actor && from->peer->actor->process->cut_off_until_us > cut_us)
        cut_us = from->peer->actor->process->cut_off_until_us;
    if (world->cuts && from->peer->actor) {
        const struct sim_cut *cut =
            sim_cut_between(from->actor->process, from->peer->actor->process);
        uint64_t pair_us = sim_cut_until_us(world, cut);
        if (pair_us > cut_us) cut_us = pair_us;
        if (cut) at_us += cut->delay_us;
    }
    if (cut_us > at_us) at_us = cut_us + sim_rng_below(&world->net, 5000);
    if (at_us < from->last_arrival_us) at_us = from->last_arrival_us;
    from->last_arrival_us = at_us;
    sim_world_at(world, at_us, chunk->arrived, chunk)->n = chunk->bytes;
}

static struct sim_line *slow_line(const struct leat_conn *from)
{
    if (!from->actor->world->cuts || !from->peer || !from->peer->actor) return NULL;
    const struct sim_cut *cut = sim_cut_between(from->actor->process, from->peer->actor->process);
    return cut && cut->line && cut->line->bytes_per_s ? cut->line : NULL;
}

static struct sim_packet *packet_take(struct sim_line *line)
{
    struct sim_packet *packet = line->first;
    line->first = packet->next;
    line->queued -= packet->chunk->bytes;
    return packet;
}

static void packet_leave(struct sim_packet *packet)
{
    chunk_leave(packet->from, packet->chunk);
    free(packet);
}

/* It is counted once for each time that the line becomes slow. */
static void late_look(struct sim_world *world, struct sim_line *line, uint64_t late_us)
{
    if (line->late || late_us < LATE_US) return;
    line->late = true;
    sim_fault_struck(world, SIM_FAULT_SLOW_LINE);
}

static void packet_drop(struct sim_packet *packet)
{
    free(packet->chunk);
    free(packet);
}

static void packet_sent(struct sim_world *world, struct sim_event *event);

static void line_go_on(struct sim_world *world, struct sim_line *line)
{
    /* Nobody takes the bytes of a connection that was reset: its packets leave the queue. */
    while (line->first && line->first->from->peer->state == CONN_CLOSED &&
           !line->first->from->peer->silent)
        packet_drop(packet_take(line));
    line->sending = line->first != NULL;
    if (!line->sending) return;
    line->turn = line->first->turn;
    sim_world_at(world, world->now_us + line_us(line, line->first->chunk->bytes), packet_sent, line)
        ->n = line->times;
}

static void packet_sent(struct sim_world *world, struct sim_event *event)
{
    struct sim_line *line = event->a;
    if (event->n != line->times) return;
    if (line->first) packet_leave(packet_take(line));
    line_go_on(world, line);
}

/* The packet under way stays the first. */
static void packet_put(struct sim_line *line, struct leat_conn *from, struct sim_chunk *chunk)
{
    struct sim_packet *packet = calloc(1, sizeof *packet);
    LEAT_ASSERT(packet != NULL);
    uint64_t turn = from->line_turn > line->turn ? from->line_turn : line->turn;
    *packet = (struct sim_packet){.from = from, .chunk = chunk, .turn = turn};
    from->line_turn = turn + chunk->bytes + HEADER_BYTES;
    struct sim_packet **at = line->sending ? &line->first->next : &line->first;
    while (*at && (*at)->turn <= turn)
        at = &(*at)->next;
    packet->next = *at;
    *at = packet;
    line->queued += chunk->bytes;
    late_look(from->actor->world, line, line_us(line, line->queued));
    if (!line->sending) line_go_on(from->actor->world, line);
}

void sim_chunk_send(struct leat_conn *from, const uint8_t *data, size_t bytes,
                    sim_chunk_arrived_fn arrived)
{
    struct sim_line *line = slow_line(from);
    size_t most = line ? PACKET_BYTES : bytes;
    do {
        size_t part = bytes < most ? bytes : most;
        struct sim_chunk *chunk = malloc(sizeof *chunk + part);
        LEAT_ASSERT(chunk != NULL);
        chunk->to = from->peer;
        chunk->arrived = arrived;
        chunk->bytes = (uint32_t)part;
        if (part) memcpy(chunk->data, data, part);
        from->under_way += part;
        if (line)
            packet_put(line, from, chunk);
        else
            chunk_leave(from, chunk);
        if (part) data += part;
        bytes -= part;
    } while (bytes);
}

size_t sim_conn_window(const struct leat_conn *conn)
{
    bool small = slow_line(conn) && conn->window > LINE_WINDOW_BYTES;
    return small ? LINE_WINDOW_BYTES : conn->window;
}

/* ---- slow, and fast again ---- */

static void line_fast(struct sim_line *line)
{
    line->bytes_per_s = line->until_us = line->writes_us = 0;
    line->times++;
    line->sending = line->late = false;
    while (line->first)
        packet_leave(packet_take(line));
}

static void line_over(struct sim_world *world, struct sim_event *event)
{
    struct sim_line *line = event->a;
    if (event->n == line->times) line_fast(line);
    (void)world;
}

void sim_line_rate(struct sim_world *world, struct sim_cut *cut, uint64_t bytes_per_s,
                   uint64_t until_us)
{
    if (!bytes_per_s && !cut->line) return;
    if (!cut->line) cut->line = calloc(1, sizeof *cut->line);
    LEAT_ASSERT(cut->line != NULL);
    struct sim_line *line = cut->line;
    if (line->bytes_per_s) line_fast(line);
    if (!bytes_per_s) return;
    line->times++;
    line->bytes_per_s = bytes_per_s;
    line->until_us = until_us;
    sim_world_at(world, until_us, line_over, line)->n = line->times;
}

bool sim_line_is_slow(const struct sim_cut *cut)
{
    return cut && cut->line && cut->line->bytes_per_s;
}

uint64_t sim_line_write_us(struct sim_world *world, const struct sim_cut *cut, uint64_t bytes)
{
    if (!sim_line_is_slow(cut)) return 0;
    struct sim_line *line = cut->line;
    uint64_t from_us = line->writes_us > world->now_us ? line->writes_us : world->now_us;
    line->writes_us = from_us + line_us(line, bytes);
    late_look(world, line, line->writes_us - world->now_us);
    return line->writes_us < line->until_us ? line->writes_us : line->until_us;
}

void sim_line_forget(struct leat_conn *from)
{
    struct sim_line *line = slow_line(from);
    if (!line) return;
    struct sim_packet **at = line->sending ? &line->first->next : &line->first;
    while (*at) {
        struct sim_packet *packet = *at;
        if (packet->from != from) {
            at = &packet->next;
            continue;
        }
        *at = packet->next;
        line->queued -= packet->chunk->bytes;
        packet_drop(packet);
    }
}

void sim_line_destroy(struct sim_line *line)
{
    while (line && line->first)
        packet_drop(packet_take(line));
    free(line);
}
