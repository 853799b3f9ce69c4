/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's steps of tail_walk.h, each of which may be its last. */
#include <string.h>

#include "tests/coordinator/tail_walk_parts.h"

/* ---- replicas ---- */

struct replica *walk_find(struct world *it, uint32_t node, int segment, uint32_t epoch)
{
    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *rep = &it->replicas[i];
        if (rep->used && rep->node == node && rep->segment == segment && rep->epoch == epoch)
            return rep;
    }
    return NULL;
}

/* A replica with the same key is replaced. */
static void put(struct world *it, struct replica rep)
{
    struct replica *at = walk_find(it, rep.node, rep.segment, rep.epoch);
    for (unsigned i = 0; i < REPLICAS && !at; i++)
        if (!it->replicas[i].used) at = &it->replicas[i];
    rep.used = true;
    if (at)
        *at = rep;
    else
        it->full = true;
}

static bool reaches(const struct world *it, uint32_t node, uint32_t epoch)
{
    return !it->down[node] && it->fenced[node] < epoch;
}

/* ---- the owner ---- */

static int next_segment(const struct owner *own)
{
    return (own->head < 0 ? own->tail_segment : own->head) + 1;
}

static struct content next_base(const struct owner *own)
{
    return own->head < 0 ? own->tail : joined(own->base, own->data);
}

static struct leat_prefix_id next_previous(const struct owner *own)
{
    return own->head < 0 ? own->tail_id : id_of(own->epoch, own->head, own->data, true);
}

void walk_owner_new(struct world *it, uint32_t node, uint32_t epoch, int segment,
                    struct content tail, struct leat_prefix_id id)
{
    it->owners[node] = (struct owner){.on = true,
                                      .epoch = epoch,
                                      .generation = 1,
                                      .head = -1,
                                      .tail_segment = segment,
                                      .tail = tail,
                                      .tail_id = id};
}

static void ack(struct world *it, struct content upto)
{
    if (begins(it->acked, upto)) return;
    if (!begins(upto, it->acked)) it->lost = true; /* another record where one was acked */
    it->acked = upto;
}

static void roll_begin(struct world *it, struct owner *own, uint32_t node)
{
    own->roll = ROLL_RESERVE;
    own->next = 1u << node;
    own->reserved = own->begun = own->closed = 0;
    while ((unsigned)__builtin_popcount(own->next) < it->copies)
        own->next |= 1u << chance(it, it->nodes);
}

static void head_becomes(struct world *it, struct owner *own, uint32_t node)
{
    struct content base = next_base(own);
    if (own->head >= 0 && it->rule != WALK_DATA_BEFORE_CLOSE) ack(it, base);
    own->head = next_segment(own);
    own->base = base;
    own->data = own->staged;
    own->staged = (struct content){0};
    own->copies = own->next;
    own->next = own->reserved = own->begun = own->closed = 0;
    memset(own->complete, 0, sizeof own->complete);
    own->complete[node] = own->data.count;
    own->acked = 0;
    own->roll = ROLL_NONE;
    struct replica *rep = walk_find(it, node, own->head, own->epoch);
    if (rep) rep->data = own->data;
    it->count->heads++;
}

static void copy_drop(struct world *it, struct owner *own, uint32_t node)
{
    unsigned but = ~(1u << node);
    own->copies &= but;
    own->complete[node] = 0;
    own->next &= but;
    own->reserved &= but;
    own->begun &= but;
    own->closed &= but;
    own->generation++;
    own->restamp_head = own->copies;
    own->restamp_next = it->rule == WALK_HEAD_ONLY ? 0 : own->next & own->reserved;
    own->replacements = chance(it, 2);
    uint32_t other = chance(it, it->nodes);
    if (own->roll == ROLL_RESERVE && chance(it, 2) && other != node) own->next |= 1u << other;
    own->suspended = it->rule != WALK_ACK_BEFORE_VERSION;
}

static void restamp(struct world *it, struct owner *own, uint32_t self, unsigned *left, int segment)
{
    uint32_t node = pick(it, *left);
    struct replica *rep = walk_find(it, node, segment, own->epoch);
    if (node != self && !reaches(it, node, own->epoch)) {
        if (chance(it, 3) == 0) copy_drop(it, own, node);
        return;
    }
    if (!rep) {
        copy_drop(it, own, node);
        return;
    }
    rep->generation = own->generation;
    *left &= ~(1u << node);
}

static void replace(struct world *it, struct owner *own)
{
    uint32_t node = chance(it, it->nodes);
    own->replacements--;
    if (((own->copies | own->next) >> node & 1) || !reaches(it, node, own->epoch) ||
        own->roll == ROLL_CLOSE)
        return;
    const struct replica *of = NULL; /* a reservation has no start entry to copy */
    for (uint32_t i = 0; i < it->nodes && !(of && of->started); i++)
        of = walk_find(it, i, own->head, own->epoch);
    if (!of || !of->started) return;
    struct replica rep = *of;
    rep.node = node;
    rep.started = rep.buffered = true;
    rep.closed = rep.close_entry = false;
    rep.hibernated = -1;
    rep.generation = own->generation;
    rep.base = own->base;
    rep.data = own->data;
    put(it, rep);
    own->copies |= 1u << node;
    own->complete[node] = own->data.count;
}

/* A copy was lost: stamps first, then the replacement, then the coordinator, then acks go on. */
static void repair(struct world *it, uint32_t node)
{
    struct owner *own = &it->owners[node];
    if (own->restamp_head && own->head >= 0) {
        restamp(it, own, node, &own->restamp_head, own->head);
        return;
    }
    if (own->restamp_next) {
        restamp(it, own, node, &own->restamp_next, next_segment(own));
        return;
    }
    if (own->replacements > 0 && own->head >= 0) {
        replace(it, own);
        return;
    }
    if (!own->opened) {
        own->suspended = false;
        return;
    }
    bool up = it->owner_up || it->rule == WALK_VERSION_AFTER_CRASH;
    if (it->owner != node || it->owner_epoch != own->epoch || !up ||
        it->record.stamp_epoch.v != own->epoch)
        return;
    if (own->generation > it->record.stamp_version) it->record.stamp_version = own->generation;
    it->count->versions++;
    if (chance(it, 4)) own->suspended = false;
}

static void reserve(struct world *it, struct owner *own, uint32_t self)
{
    unsigned left = own->next & ~own->reserved;
    if (!left) {
        own->roll = ROLL_START;
        return;
    }
    uint32_t node = pick(it, left);
    if (node != self && !reaches(it, node, own->epoch)) {
        if (chance(it, 4) == 0) own->next &= ~(1u << node);
        return;
    }
    put(it, (struct replica){.node = node,
                             .segment = next_segment(own),
                             .epoch = own->epoch,
                             .generation = own->generation,
                             .buffered = true,
                             .hibernated = -1,
                             .base = next_base(own)});
    if (node == self || chance(it, 4))
        own->reserved |= 1u << node;
    else
        own->next &= ~(1u << node); /* the reply is lost: the replica stays, and is no copy */
}

static void opened(struct world *it, struct owner *own, uint32_t self)
{
    if (own->pending) return;
    if (it->rule == WALK_OPENED_UNSAID || (it->rule == WALK_IDLE_CLOSES && own->opened)) {
        own->opened = true;
        head_becomes(it, own, self);
        return;
    }
    if (it->owner != self || it->owner_epoch != own->epoch || !it->owner_up) return;
    it->record.opened = true;
    it->record.stamp_epoch.v = own->epoch;
    it->record.stamp_version = own->generation;
    if (chance(it, 4) == 0) return; /* the reply is lost */
    own->opened = true;
    head_becomes(it, own, self);
}

static void start(struct world *it, struct owner *own, uint32_t self)
{
    unsigned left = own->next & ~own->begun;
    if (!left && own->head < 0) {
        opened(it, own, self);
        return;
    }
    if (!left) {
        own->roll = ROLL_CLOSE;
        return;
    }
    uint32_t node = pick(it, left);
    struct replica *rep = walk_find(it, node, next_segment(own), own->epoch);
    if (!rep || (node != self && !reaches(it, node, own->epoch))) return;
    rep->base = next_base(own);
    rep->previous = next_previous(own);
    rep->started = true;
    if (node == self || chance(it, 4)) own->begun |= 1u << node;
}

static void close_head(struct world *it, struct owner *own, uint32_t self)
{
    unsigned left = own->copies & ~own->closed;
    if (!left || it->rule == WALK_DATA_BEFORE_CLOSE) {
        head_becomes(it, own, self);
        return;
    }
    uint32_t node = pick(it, left);
    struct replica *rep = walk_find(it, node, own->head, own->epoch);
    if (!rep || (node != self && !reaches(it, node, own->epoch))) return;
    if (!rep->closed) {
        rep->data = own->data; /* a close entry follows all that is there */
        rep->closed = rep->close_entry = true;
    }
    if (node == self || chance(it, 4)) own->closed |= 1u << node;
}

/* Only what was committed is cut. */
static void cut(struct world *it, const struct owner *own, uint32_t self)
{
    uint32_t node = chance(it, it->nodes);
    if (it->owner != self || it->owner_epoch != own->epoch || !it->owner_up || own->pending ||
        (node != self && !reaches(it, node, own->epoch)))
        return;
    struct replica *rep = walk_find(it, node, own->tail_segment, it->tail_epoch);
    if (!rep || own->tail.count < rep->base.count || !begins(full_of(rep), own->tail)) return;
    rep->data.count = own->tail.count - rep->base.count;
    rep->data = first_of(rep->data, rep->data.count);
    rep->closed = true;
    rep->close_entry = false;
}

static void append(struct world *it, struct owner *own, uint32_t self)
{
    if (own->head < 0 || it->next_record > RECORDS || own->roll == ROLL_START) return;
    struct replica *rep;
    if (own->roll == ROLL_CLOSE) { /* into the next segment, without a trailer yet */
        rep = walk_find(it, self, next_segment(own), own->epoch);
        if (!own->opened || !rep) return;
        push(it, &own->staged);
        if (it->rule == WALK_SEALED_BEFORE_CLOSE) rep->data = own->staged;
        return;
    }
    push(it, &own->data);
    own->complete[self] = own->data.count;
    rep = walk_find(it, self, own->head, own->epoch);
    if (!rep) return;
    rep->data = own->data;
    rep->buffered = true;
    if (it->rule != WALK_RESUME_KEEPS) rep->hibernated = -1;
}

static void write_copy(struct world *it, struct owner *own, uint32_t self)
{
    if (own->head < 0 || !own->copies) return;
    uint32_t node = pick(it, own->copies), have, upto;
    struct replica *rep = walk_find(it, node, own->head, own->epoch);
    if (node == self || !rep || rep->closed || !reaches(it, node, own->epoch)) return;
    have = rep->data.count;
    if (!rep->buffered) { /* hibernated: it is resumed first */
        if (own->data.count <= have && chance(it, 4)) return;
        rep->buffered = true;
        if (it->rule != WALK_RESUME_KEEPS) rep->hibernated = -1;
        return;
    }
    if (own->data.count <= have) {
        if (chance(it, 2)) own->complete[node] = have;
        return;
    }
    upto = have + 1 + chance(it, own->data.count - have);
    rep->data = first_of(own->data, upto);
    if (chance(it, 4) && own->complete[node] < upto) own->complete[node] = upto;
}

static void acks(struct world *it, struct owner *own)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t node = 0; node < it->nodes; node++)
        if ((own->copies >> node & 1) && own->complete[node] < least) least = own->complete[node];
    if (own->head < 0 || !own->opened || least == UINT32_MAX || least <= own->acked) return;
    own->acked = least;
    ack(it, joined(own->base, first_of(own->data, least)));
}

static bool is_quiet(const struct owner *own)
{
    return own->roll == ROLL_NONE && own->head >= 0 && own->opened && own->acked == own->data.count;
}

static void hibernate(struct world *it, const struct owner *own, uint32_t self)
{
    if (!is_quiet(own) || own->acked == 0 || !own->copies) return;
    uint32_t node = pick(it, own->copies);
    struct replica *rep = walk_find(it, node, own->head, own->epoch);
    if (!rep || rep->closed || !rep->buffered || !same(rep->data, own->data)) return;
    if (node != self && !reaches(it, node, own->epoch)) return;
    rep->hibernated = (int)rep->data.count;
    rep->buffered = false;
}

static void idle_close(struct world *it, struct owner *own)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t node = 0; node < it->nodes; node++) {
            if (!(own->copies >> node & 1)) continue;
            struct replica *rep = walk_find(it, node, own->head, own->epoch);
            if (!rep || !reaches(it, node, own->epoch) || !same(rep->data, own->data)) return;
            if (pass == 1) rep->closed = rep->close_entry = true;
        }
    own->tail = joined(own->base, own->data);
    own->tail_id = id_of(own->epoch, own->head, own->data, true);
    own->tail_segment = own->head;
    own->tail_epoch = own->epoch;
    own->head = -1;
    own->data = (struct content){0};
    own->copies = own->acked = 0;
}

void walk_owner_step(struct world *it, uint32_t node)
{
    struct owner *own = &it->owners[node];
    if (own->suspended) {
        repair(it, node);
        return;
    }
    if (own->head < 0 && own->roll == ROLL_NONE) {
        roll_begin(it, own, node);
        return;
    }
    unsigned dice = chance(it, 13), others = (own->copies | own->next) & ~(1u << node);
    if (dice < 2)
        append(it, own, node);
    else if (dice < 5)
        write_copy(it, own, node);
    else if (dice < 7)
        acks(it, own);
    else if (dice == 7 && chance(it, 3) == 0 && others)
        copy_drop(it, own, pick(it, others));
    else if (dice == 8 && own->roll == ROLL_NONE && own->head < SEGMENTS - 1 && own->opened &&
             chance(it, 2))
        roll_begin(it, own, node);
    else if (dice == 8 && it->rule == WALK_IDLE_CLOSES && is_quiet(own) && chance(it, 2))
        idle_close(it, own);
    else if (dice == 9)
        hibernate(it, own, node);
    else if (dice == 10 && own->tail_segment >= 0)
        cut(it, own, node);
    else if (own->roll == ROLL_RESERVE)
        reserve(it, own, node);
    else if (own->roll == ROLL_START)
        start(it, own, node);
    else if (own->roll == ROLL_CLOSE)
        close_head(it, own, node);
}
