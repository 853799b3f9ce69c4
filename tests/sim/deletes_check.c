/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that was deleted stays so, and leaves nothing behind: what nodes know and hold is looked at from
 * outside, and what clients were told is held against it. */
#include "tests/sim/deletes.h"

#include <stdio.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/backup/probe.h"
#include "store/probe.h"

struct sim_thrown *sim_thrown_find(struct sim_deletes *deletes, uint32_t id)
{
    for (unsigned i = 0; i < deletes->count; i++)
        if (deletes->thrown[i].id == id) return &deletes->thrown[i];
    return NULL;
}

bool sim_thrown_is_warm(const struct sim_deletes *deletes, uint32_t stream)
{
    unsigned acked = 0;
    for (uint32_t i = 0; i < deletes->record_count; i++)
        acked += deletes->records[i].acked_in == stream;
    return acked >= 6;
}

bool sim_thrown_is_read(const struct scenario *scenario, uint32_t stream)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        struct leat_replica_seen rep = {0};
        if (!server->ready || !server->process->alive) continue;
        const struct leat_backup *backup = leat_node_backup(server->node);
        if (!backup || leat_backup_serving(backup) == 0) continue;
        while (leat_backup_see_next(backup, &rep))
            if (rep.seg && rep.busy && rep.seg->log.stream == stream) return true;
    }
    return false;
}

enum { LOOK_EVERY_US = 3000 };

enum word {
    WORD_NONE,   /* the node is dead: when it starts it hears of all that was committed before */
    WORD_BEHIND, /* the node may serve the stream, or may yet hear that it was made */
    WORD_HAS,
    WORD_GONE, /* the node has heard that the stream was deleted */
};

static enum word word_of(const struct sim_server *server, uint32_t id)
{
    struct leat_node *node = server->node;
    if (!server->process || !server->process->alive) return WORD_NONE;
    if (!node || !leat_node_coordinator(node) || !leat_node_has_cores(node)) return WORD_BEHIND;
    struct leat_machine *machine = leat_coordinator_tables(leat_node_coordinator(node));
    if (leat_machine_stream_find(machine, id) || leat_node_has_stream(node, id)) return WORD_HAS;
    return machine->next_stream_id > id ? WORD_GONE : WORD_BEHIND;
}

/* ---- what a deletion meets ---- */

static bool moves(const struct leat_node *node, uint32_t id)
{
    struct leat_partition_seen at = {0};
    while (leat_node_partition_next(node, &at))
        if (at.ref.stream == id && at.moves) return true;
    return false;
}

/* Somebody else is looked for, for one of its streamlets. */
static bool is_taken_over(struct leat_machine *machine, uint32_t id)
{
    const struct leat_machine_stream *stream = leat_machine_stream_find(machine, id);
    for (uint32_t s = 0; stream && s < stream->desc->settings.streamlets; s++)
        if (stream->owners[s] == LEAT_OWNER_NONE) return true;
    return false;
}

static void meets_note(struct sim_deletes *deletes, struct sim_thrown *thrown)
{
    const struct scenario *scenario = deletes->scenario;
    thrown->move = thrown->takeover = thrown->away = false;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        thrown->away |= !server->ready;
        if (!server->ready || !leat_node_has_cores(server->node)) continue;
        thrown->move |= moves(server->node, thrown->id);
        thrown->takeover |=
            is_taken_over(leat_coordinator_tables(leat_node_coordinator(server->node)), thrown->id);
    }
}

static void meets_count(struct sim_deletes *deletes, const struct sim_thrown *thrown)
{
    struct sim_world *world = deletes->scenario->world;
    sim_trace(world, "stream %u is deleted%s%s%s", thrown->id, thrown->move ? ", amid a move" : "",
              thrown->takeover ? ", amid a takeover" : "",
              thrown->away ? ", while a node is away" : "");
    sim_fault_struck(world, SIM_FAULT_DELETED);
    if (thrown->move) sim_fault_struck(world, SIM_FAULT_DELETED_MOVE);
    if (thrown->away) sim_fault_struck(world, SIM_FAULT_DELETED_AWAY);
}

/* ---- what nodes know ---- */

/* SUBTLE: the answer says that the asked node serves the stream no more. Another node may serve the stream as long as
 * the node has not heard of the deletion; once every node that runs has heard, none ever may again. */
static void thrown_look(struct sim_deletes *deletes, struct sim_thrown *thrown)
{
    struct scenario *scenario = deletes->scenario;
    bool all = true, committed = thrown->committed;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        enum word word = word_of(server, thrown->id);
        committed |= word == WORD_GONE;
        all &= word == WORD_GONE || word == WORD_NONE;
        if (word == WORD_HAS && server->ready && thrown->known_us)
            sim_fail(scenario->world, "resurrected: %s has stream %u, which was deleted",
                     server->name, thrown->id);
    }
    if (!committed) {
        if (thrown->asked) meets_note(deletes, thrown);
        return;
    }
    if (!thrown->committed) meets_count(deletes, thrown);
    thrown->committed = true;
    if (!thrown->asked)
        sim_fail(scenario->world, "A1 lost-write: stream %u is gone, and nobody deleted it",
                 thrown->id);
    if (all && thrown->answered && !thrown->known_us) {
        thrown->known_us = scenario->world->now_us;
        sim_trace(scenario->world, "no node has stream %u any more", thrown->id);
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_deletes *deletes = event->a;
    for (unsigned i = 0; i < deletes->count; i++)
        thrown_look(deletes, &deletes->thrown[i]);
    sim_world_at(world, world->now_us + LOOK_EVERY_US, look, deletes);
}

void sim_deletes_watch(struct sim_deletes *deletes)
{
    struct sim_world *world = deletes->scenario->world;
    sim_world_at(world, world->now_us + LOOK_EVERY_US, look, deletes);
}

/* ---- what clients were told ---- */

void sim_deletes_acked(struct sim_deletes *deletes, uint32_t number, struct leat_log_ref log,
                       uint64_t offset)
{
    struct sim_world *world = deletes->scenario->world;
    struct sim_thrown_record *record = &deletes->records[number];
    const struct sim_thrown *thrown = sim_thrown_find(deletes, log.stream);
    record->acked_in = log.stream;
    deletes->acked++;
    if (!thrown) {
        /* A producer makes the stream again that it appends to, while the next one is made under another name, or
         * before that. The ack may come after both. */
        bool earlier = record->name < deletes->name;
        if (deletes->making || !deletes->sure) deletes->remade = log.stream;
        if (deletes->sure && !deletes->making && !earlier && deletes->remade != log.stream)
            sim_fail(world, "A5 aborted-read: an ack of stream %u, which nobody made", log.stream);
        return;
    }
    if (thrown->known_us && record->added_us >= thrown->known_us)
        sim_fail(world, "resurrected: record %u was acked by stream %u, which was deleted", number,
                 log.stream);
    /* A stream that is made anew begins at 0: records that went to other streams take no offset of it. */
    uint64_t elsewhere = 0;
    for (uint32_t i = 0; i < deletes->record_count; i++)
        elsewhere += deletes->records[i].acked_in && deletes->records[i].acked_in != log.stream;
    if (offset != UINT64_MAX && offset >= deletes->record_count - elsewhere)
        sim_fail(world,
                 "A4 inconsistent-offsets: record %u is at offset %llu of %u/%u/%u, to which %llu "
                 "records went at most",
                 number, (unsigned long long)offset, log.stream, log.streamlet, log.log,
                 (unsigned long long)(deletes->record_count - elsewhere));
}

void sim_deletes_seen(struct sim_deletes *deletes, uint32_t number, struct leat_log_ref log,
                      uint64_t offset)
{
    const struct scenario *scenario = deletes->scenario;
    struct sim_world *world = scenario->world;
    struct sim_thrown *thrown = sim_thrown_find(deletes, log.stream);
    if (number >= deletes->record_count) {
        sim_fail(world, "A5 aborted-read: record %u was never sent", number);
        return;
    }
    /* One without an answer may have been sent to both: then it is the later one's that is acked. */
    uint32_t acked_in = deletes->records[number].acked_in;
    if (acked_in && acked_in < log.stream)
        sim_fail(world, "resurrected: record %u was acked by stream %u, and %u/%u/%u shows it",
                 number, acked_in, log.stream, log.streamlet, log.log);
    if (!thrown) return;
    uint64_t *first = &thrown->first[log.streamlet][log.log];
    if (*first) return;
    *first = offset + 1;
    /* The power, or a disk, may have taken what was in front. */
    bool excused = thrown->settings.durability == LEAT_DURABILITY_MEMORY || scenario->victim ||
                   world->faults[SIM_FAULT_IO_ERROR];
    if (offset != 0 && !thrown->trims && !excused)
        sim_fail(world, "A4 inconsistent-offsets: %u/%u/%u begins at %llu", log.stream,
                 log.streamlet, log.log, (unsigned long long)offset);
}

/* ---- what is left ---- */

static bool is_left(struct sim_deletes *deletes, const struct sim_server *server,
                    struct leat_log_ref log, uint64_t segment, const char *what)
{
    const struct sim_thrown *thrown = sim_thrown_find(deletes, log.stream);
    if (!thrown || !thrown->committed) return false;
    snprintf(deletes->left, sizeof deletes->left, "%s: %s: %u/%u/%u segment %llu", server->name,
             what, log.stream, log.streamlet, log.log, (unsigned long long)segment);
    return true;
}

/* What its memory or file has lost of a log that waits is no part of the log, and goes with the next start. */
static bool lies_unused(const struct sim_deletes *deletes, const struct leat_segment *seg)
{
    bool lost = !seg->buffer && !seg->flushed && seg->state != LEAT_SEGMENT_HIBERNATED;
    return !deletes->started_anew && seg->role == LEAT_SEGMENT_OWN && lost;
}

static bool server_has(struct sim_deletes *deletes, const struct sim_server *server)
{
    struct leat_node *node = server->node;
    struct leat_partition_seen at = {0};
    while (leat_node_partition_next(node, &at))
        if (is_left(deletes, server, at.ref, 0, "a log")) return true;
    struct leat_store_seen row = {0};
    while (leat_store_see_next(leat_node_store(node), &row)) {
        const struct leat_segment *seg = row.seg;
        char what[80];
        if (!seg) continue;
        struct leat_replica_seen rep;
        bool kept = leat_backup_see_segment(seg, &rep);
        snprintf(what, sizeof what, "%s in state %d%s", kept ? "a replica" : "a segment",
                 (int)seg->state,
                 !kept             ? ""
                 : rep.dropping    ? ", that goes"
                 : rep.drop_wanted ? ", that is to go"
                 : rep.busy        ? ", in use"
                 : rep.writer.at   ? ", that is written"
                                   : "");
        if (!lies_unused(deletes, seg) && is_left(deletes, server, seg->log, seg->id.v, what))
            return true;
    }
    return false;
}

void sim_deletes_start_anew(struct scenario *scenario)
{
    struct sim_deletes *deletes = sim_deletes_of(scenario);
    if (deletes) deletes->started_anew = true;
}

bool sim_deletes_nothing_left(struct scenario *scenario)
{
    struct sim_deletes *deletes = sim_deletes_of(scenario);
    if (!deletes) return true;
    for (unsigned i = 0; i < deletes->count; i++)
        if (deletes->thrown[i].answered && !deletes->thrown[i].known_us) {
            snprintf(scenario->behind, sizeof scenario->behind, "stream %u is still served",
                     deletes->thrown[i].id);
            return false;
        }
    for (unsigned i = 0; i < scenario->server_count; i++) {
        if (!scenario->servers[i].ready || server_has(deletes, &scenario->servers[i])) {
            snprintf(scenario->behind, sizeof scenario->behind, "%.90s", deletes->left);
            return false;
        }
    }
    return true;
}
