/* SPDX-License-Identifier: Apache-2.0 */
/* An owner that writes records on several nodes, loses copies and rolls. */
#include "tests/coordinator/recovery_parts.h"

/* ---- copies ---- */

struct copy *model_copy_find(struct model_node *node, const struct truth *truth)
{
    for (unsigned i = 0; i < node->copy_count; i++)
        if (node->copies[i].truth == truth && !node->copies[i].pulled) return &node->copies[i];
    return NULL;
}
struct copy *model_copy_make(struct model_node *node, struct truth *truth)
{
    for (unsigned i = 0; i < node->copy_count; i++)
        if (!node->copies[i].truth) {
            node->copies[i] = (struct copy){.truth = truth};
            return &node->copies[i];
        }
    LEAT_ASSERT(node->copy_count < MODEL_COPIES_MAX);
    node->copies[node->copy_count] = (struct copy){.truth = truth};
    return &node->copies[node->copy_count++];
}

bool model_reaches(struct model *model, unsigned from, unsigned to)
{
    struct rig_node *a = &model->rig->nodes[from], *b = &model->rig->nodes[to];
    uint64_t now_us = model->rig->world->now_us;
    if (from == to) return true;
    if (!a->up || !b->up || model->nodes[to].fenced[from] >= a->incarnation ||
        a->incarnation == 0 || b->incarnation == 0)
        return false;
    bool a_cut = a->process->cut_off_until_us > now_us && !model->nodes[from].zombie_writes;
    bool b_cut = b->process->cut_off_until_us > now_us && !model->nodes[from].zombie_writes;
    return !a_cut && !b_cut; /* one that is stopped takes one-sided writes all the same */
}

/* The copy that a writer can write to: a copy on its own node, or a copy on a node that has neither fenced the writer
 * nor restarted since. NULL: the copy is lost. */
static struct copy *copy_reach(struct model *model, unsigned from, unsigned to,
                               const struct truth *truth)
{
    struct copy *copy = model_copy_find(&model->nodes[to], truth);
    if (!copy || !model_reaches(model, from, to)) return NULL;
    if (from != to && copy->boot != model->rig->nodes[to].boots) return NULL;
    return copy;
}

static struct copy *copy_open(struct model *model, unsigned from, unsigned to, struct truth *truth,
                              uint32_t version, uint32_t count)
{
    if (!model_reaches(model, from, to)) return NULL;
    struct copy *copy = model_copy_find(&model->nodes[to], truth);
    if (!copy) copy = model_copy_make(&model->nodes[to], truth);
    copy->boot = model->rig->nodes[to].boots;
    copy->version = version;
    copy->count = copy->durable = count;
    copy->closed = false;
    return copy;
}

/* Deletes copies that no decision can use any more. Open copies of this epoch stay, as old open replicas. */
static void copies_forget(struct model *model, unsigned log, uint64_t head)
{
    for (unsigned at = 0; at < model->rig->node_count; at++)
        for (unsigned i = 0; i < model->nodes[at].copy_count; i++) {
            struct copy *copy = &model->nodes[at].copies[i];
            if (!copy->truth || copy->truth->log != log || copy->truth->segment + 2 >= head)
                continue;
            if (copy->closed || copy->pulled || copy->truth->epoch < model->logs[log].sealed_epoch)
                copy->truth = NULL;
        }
}

/* ---- an owner ---- */

static unsigned mask_count(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static void own_request(struct model *model, unsigned at, unsigned log,
                        enum leat_coordinate_kind kind)
{
    struct own *own = &model->nodes[at].own[log];
    static struct leat_log_ref refs[RIG_NODES_MAX][MODEL_LOGS];
    refs[at][log] = model_ref_of(model, log);
    struct rig_request *request = rig_request(model->rig, at, kind);
    if (!request) return;
    request->request.logs = &refs[at][log];
    request->request.log_count = 1;
    request->request.incarnation = model->rig->nodes[at].incarnation;
    request->request.epoch.v = own->epoch;
    request->request.version = own->version;
    own->request = request;
    own->busy = true;
    rig_ask(request);
}

/* The copies at some nodes are lost: the other copies are restamped, a replacement is made whole, and the coordinator
 * has the new generation before any further ack. */
static void own_lose(struct model *model, unsigned at, unsigned log, unsigned lost)
{
    struct own *own = &model->nodes[at].own[log];
    struct copy *whole = model_copy_find(&model->nodes[at], own->head);
    if (!whole) return; /* one that was taken over long ago, and its bytes are forgotten */
    for (;;) {
        own->mask &= ~lost;
        own->version++;
        lost = 0;
        for (unsigned i = 0; i < model->rig->node_count; i++) {
            if (!(own->mask & (1u << i))) continue;
            struct copy *copy = copy_reach(model, at, i, own->head);
            if (copy) copy->version = own->version;
            if (!copy) lost |= 1u << i;
            struct copy *next = own->rolling ? copy_reach(model, at, i, own->next) : NULL;
            if (next) next->version = own->version;
            if (i == at) lost &= ~(1u << i);
        }
        if (!lost) break;
    }
    for (unsigned n = 1; n < model->rig->node_count && mask_count(own->mask) < 3; n++) {
        unsigned i = (at + n) % model->rig->node_count;
        if ((own->mask & (1u << i)) || (own->rolling && whole->closed)) continue;
        if (!copy_open(model, at, i, own->head, own->version, whole->count)) continue;
        own->mask |= 1u << i;
    }
    if (own->opened) own_request(model, at, log, LEAT_COORDINATE_VERSION);
}

static void own_start(struct model *model, unsigned at, unsigned log)
{
    struct own *own = &model->nodes[at].own[log];
    uint64_t segment = own->tail_segment == UINT64_MAX ? 0 : own->tail_segment + 1;
    own->head = truth_make(model, log, segment, own->tail_next, own->epoch);
    own->head->previous = own->tail;
    own->head->previous_count = own->tail_count;
    own->head->previous_closed = own->tail_closed;
    own->version = 1;
    own->mask = 0;
    for (unsigned n = 0; n < model->rig->node_count && mask_count(own->mask) < 3; n++) {
        unsigned i = (at + n) % model->rig->node_count;
        if (copy_open(model, at, i, own->head, 1, 0)) own->mask |= 1u << i;
    }
    own_request(model, at, log, LEAT_COORDINATE_OPENED);
}

static void own_roll(struct model *model, unsigned at, unsigned log)
{
    struct own *own = &model->nodes[at].own[log];
    unsigned lost = 0, first = (unsigned)sim_rng_below(model_dice(model), model->rig->node_count);
    bool part = false;
    if (!own->rolling) {
        own->rolling = true;
        own->next = truth_make(model, log, own->head->segment + 1,
                               own->head->base + own->head->count, own->epoch);
        own->next->previous = own->head;
        own->next->previous_count = own->head->count;
        own->next->previous_closed = true;
    }
    for (unsigned n = 0; n < model->rig->node_count; n++) {
        unsigned i = (first + n) % model->rig->node_count;
        if (!(own->mask & (1u << i))) continue;
        if (!copy_reach(model, at, i, own->head)) {
            lost |= 1u << i;
        } else if (!model_copy_find(&model->nodes[i], own->next)) {
            if (!copy_open(model, at, i, own->next, own->version, 0)) lost |= 1u << i;
            part = sim_rng_chance(model_dice(model), 200);
            if (part) break; /* it may die here */
        }
    }
    if (lost) own_lose(model, at, log, lost);
    if (lost || part) return;
    for (unsigned n = 0; n < model->rig->node_count; n++) {
        unsigned i = (first + n) % model->rig->node_count;
        if (!(own->mask & (1u << i))) continue;
        struct copy *copy = copy_reach(model, at, i, own->head);
        if (!copy) {
            lost |= 1u << i;
            continue;
        }
        if (copy->closed) continue;
        copy->closed = true;
        copy->count = copy->durable = own->head->count;
        if (sim_rng_chance(model_dice(model), 200)) return;
    }
    if (lost) {
        own_lose(model, at, log, lost);
        return;
    }
    own->head = own->next;
    own->next = NULL;
    own->rolling = false;
    copies_forget(model, log, own->head->segment);
}

static void own_append(struct model *model, unsigned at, unsigned log)
{
    struct own *own = &model->nodes[at].own[log];
    struct model_log *it = &model->logs[log];
    unsigned lost = 0, first = (unsigned)sim_rng_below(model_dice(model), model->rig->node_count);
    struct copy *whole = model_copy_find(&model->nodes[at], own->head);
    if (!whole) return; /* one that was taken over long ago, and its bytes are forgotten */
    uint32_t to = whole->count;
    if (to == MODEL_RECORDS_MAX || sim_rng_chance(model_dice(model), 100)) {
        own_roll(model, at, log);
        return;
    }
    if (own->head->count == to) own->head->records[own->head->count++] = ++model->next_record;
    to = own->head->count;
    for (unsigned n = 0; n < model->rig->node_count; n++) {
        unsigned i = (first + n) % model->rig->node_count;
        if (!(own->mask & (1u << i))) continue;
        struct copy *copy = copy_reach(model, at, i, own->head);
        if (!copy) {
            lost |= 1u << i;
            continue;
        }
        copy->count = to;
        if (sim_rng_chance(model_dice(model), 30)) return; /* in flight: it may die here */
    }
    if (lost) {
        own_lose(model, at, log, lost);
        return;
    }
    if (mask_count(own->mask) < 2) { /* fewer than min-copies: not acked */
        own_lose(model, at, log, 0);
        return;
    }
    for (unsigned i = 0; i < model->rig->node_count && model->disk; i++)
        if (own->mask & (1u << i)) model_copy_find(&model->nodes[i], own->head)->durable = to;
    if (it->tail_epoch > own->epoch) model_wrong(model, "acked under an epoch that has ended", log);
    while (it->acked_count < own->head->base + to) {
        LEAT_ASSERT(it->acked_count < MODEL_ACKED_MAX);
        uint64_t offset = it->acked_count;
        const struct truth *truth = own->head;
        /* A recovered, unacked tail counts from here on: it is in every copy's past. */
        while (truth->base > offset)
            truth = truth->previous;
        it->acked[it->acked_count++] = truth->records[offset - truth->base];
    }
    model->acks++;
}

void model_own_step(struct model *model, unsigned at, unsigned log)
{
    struct own *own = &model->nodes[at].own[log];
    if (own->busy) {
        if (!own->request->done) return;
        leat_err rc = own->request->request.rc;
        bool opened = own->request->request.kind == LEAT_COORDINATE_OPENED;
        if (getenv("RIG_LOG") && log == (unsigned)strtoul(getenv("RIG_LOG"), NULL, 10))
            fprintf(stderr, "%llu n%u log %u %s version %u epoch %u: %d %s\n",
                    (unsigned long long)model->rig->world->now_us, at, log,
                    opened ? "OPENED" : "VERSION", own->request->request.version, own->epoch,
                    (int)rc, own->request->request.error.text);
        rig_forget(own->request);
        own->request = NULL;
        own->busy = false;
        if (rc == LEAT_OK && opened) own->opened = true;
        if (rc == LEAT_OK) return;
        if (rc == LEAT_E_TIMEOUT || rc == LEAT_E_AGAIN || rc == LEAT_E_CANCELLED)
            own_request(model, at, log, opened ? LEAT_COORDINATE_OPENED : LEAT_COORDINATE_VERSION);
        else
            memset(own, 0, sizeof *own); /* it is not ours any more */
        return;
    }
    if (!own->head)
        own_start(model, at, log);
    else if (!own->opened)
        own_request(model, at, log, LEAT_COORDINATE_OPENED);
    else if (own->rolling)
        own_roll(model, at, log);
    else
        own_append(model, at, log);
}
