#include "tests/coordinator/recovery_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "coordinator/recovery.h"

static const struct rig_broker broker;

static _Noreturn void wrong(struct model *model, const char *what, unsigned log)
{
    fprintf(stderr, "seed %llu: log %u: %s\n", (unsigned long long)model->rig->world->seed, log,
            what);
    model_dump(model);
    abort();
}

static struct model *model_of(struct rig_node *node)
{
    return node->rig->model;
}
static unsigned index_of(struct rig_node *node)
{
    return (unsigned)(node - node->rig->nodes);
}
static struct model_node *mine(struct rig_node *node)
{
    return &model_of(node)->nodes[index_of(node)];
}
static struct sim_rng *dice(struct model *model)
{
    return &model->rig->world->work;
}

/* ---- logs and bytes ---- */

static int stream_slot(struct model *model, uint32_t id)
{
    for (int k = 0; k < MODEL_STREAMS; k++)
        if (model->stream_ids[k] == id) return k;
    return -1;
}
static struct leat_log_ref ref_of(struct model *model, unsigned log)
{
    return (struct leat_log_ref){model->stream_ids[log / (MODEL_STREAMLETS * MODEL_Q)],
                                 log / MODEL_Q % MODEL_STREAMLETS, log % MODEL_Q};
}
static int log_of(struct model *model, struct leat_log_ref ref)
{
    int k = stream_slot(model, ref.stream);
    return k < 0 ? -1 : k * MODEL_STREAMLETS * MODEL_Q + (int)(ref.streamlet * MODEL_Q + ref.log);
}

static struct leat_extent extent_of(const struct truth *truth, uint32_t count, bool closed)
{
    struct {
        uint64_t log, segment, base, epoch, count, closed;
    } head = {truth->log, truth->segment, truth->base, truth->epoch, count, closed};
    uint32_t crc = leat_crc32c(0, &head, sizeof head);
    crc = leat_crc32c(crc, truth->records, count * sizeof truth->records[0]);
    return (struct leat_extent){64 + 16 * count + (closed ? 32 : 0), crc};
}
static bool same(struct leat_extent a, struct leat_extent b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

static struct truth *truth_make(struct model *model, unsigned log, uint64_t segment, uint64_t base,
                                uint32_t epoch)
{
    struct truth *truth = calloc(1, sizeof *truth);
    LEAT_ASSERT(truth && model->truth_count < MODEL_TRUTHS_MAX);
    model->truths[model->truth_count++] = truth;
    truth->log = log;
    truth->segment = segment;
    truth->base = base;
    truth->epoch = epoch;
    return truth;
}

/* Which bytes a tail names; NULL: nobody ever wrote such. */
static const struct truth *truth_of_tail(struct model *model, unsigned log,
                                         const struct leat_tail_record *tail, uint32_t *out_count,
                                         bool *out_closed)
{
    for (unsigned i = 0; i < model->truth_count; i++) {
        const struct truth *truth = model->truths[i];
        if (truth->log != log || truth->segment != tail->segment) continue;
        for (uint32_t c = 0; c <= truth->count; c++)
            for (int closed = 0; closed < 2; closed++)
                if (same(extent_of(truth, c, closed != 0), tail->extent)) {
                    *out_count = c;
                    *out_closed = closed != 0;
                    return truth;
                }
    }
    return NULL;
}

/* ---- checks ---- */

static void tail_check(struct model *model, unsigned log, const struct leat_tail_record *tail)
{
    struct model_log *it = &model->logs[log];
    uint32_t count = 0;
    bool closed;
    if (tail->segment == UINT64_MAX) {
        if (it->acked_count != 0) wrong(model, "an empty tail, and records were acked", log);
        return;
    }
    const struct truth *truth = truth_of_tail(model, log, tail, &count, &closed);
    if (!truth) wrong(model, "a tail of bytes that nobody wrote", log);
    if (truth->base + count != tail->next_offset) wrong(model, "a tail with another offset", log);
    if (tail->next_offset < it->acked_count)
        fprintf(stderr, "tail: segment %llu of epoch %u, %u records, next offset %llu; acked %u\n",
                (unsigned long long)tail->segment, truth->epoch, count,
                (unsigned long long)tail->next_offset, it->acked_count);
    if (tail->next_offset < it->acked_count) wrong(model, "the tail lacks acked records", log);
    /* From the end to the beginning, along the chain. */
    while (truth) {
        for (uint32_t i = 0; i < count; i++)
            if (truth->base + i < it->acked_count &&
                it->acked[truth->base + i] != truth->records[i])
                wrong(model, "the tail has another record where one was acked", log);
        if (truth->base != 0 && !truth->previous) wrong(model, "the chain ends early", log);
        if (truth->previous && truth->previous->base + truth->previous_count != truth->base)
            wrong(model, "the chain has a gap", log);
        count = truth->previous_count;
        truth = truth->previous;
    }
}

/* Every node applies the same, some earlier. */
static void tables_check(struct model *model, struct rig_node *node, struct leat_stream_desc *desc)
{
    int k = stream_slot(model, desc->id);
    struct leat_machine_stream *stream =
        leat_machine_stream_find(&node->coordinator->machine, desc->id);
    if (k < 0 || !stream) return;
    for (uint32_t s = 0; s < MODEL_STREAMLETS; s++) {
        uint32_t epoch = desc->streamlets[s].epoch.v;
        LEAT_ASSERT(epoch < MODEL_EPOCHS_MAX);
        uint64_t *owner = &model->owners[k][s][epoch].owner;
        if (*owner != 0 && *owner != desc->streamlets[s].owner)
            wrong(model, "two owners in one epoch", (unsigned)k * 8 + s * 2);
        *owner = desc->streamlets[s].owner;
        for (uint32_t q = 0; q < MODEL_Q; q++) {
            unsigned log = (unsigned)k * MODEL_STREAMLETS * MODEL_Q + s * MODEL_Q + q;
            const struct leat_machine_log *row = &stream->logs[s * MODEL_Q + q];
            struct model_log *it = &model->logs[log];
            if (row->epoch.v < it->sealed_epoch) continue; /* an old state, told again */
            it->sealed_epoch = row->epoch.v;
            if (row->record.opened) continue; /* one that waits: its marks go on saying it */
            it->tail_epoch = row->epoch.v;
            if (it->checked &&
                memcmp(&it->checked_tail.extent, &row->record.tail.extent,
                       sizeof it->checked_tail.extent) == 0 &&
                it->checked_tail.segment == row->record.tail.segment)
                continue;
            tail_check(model, log, &row->record.tail);
            it->checked = true;
            it->checked_tail = row->record.tail;
        }
    }
}

/* ---- copies ---- */

static struct copy *copy_find(struct model_node *node, const struct truth *truth)
{
    for (unsigned i = 0; i < node->copy_count; i++)
        if (node->copies[i].truth == truth && !node->copies[i].pulled) return &node->copies[i];
    return NULL;
}
static struct copy *copy_make(struct model_node *node, struct truth *truth)
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

static bool reaches(struct model *model, unsigned from, unsigned to)
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

/* The writer's way to a copy: its own memory, or another's that has neither fenced it nor started
 * anew since. NULL: it is lost. */
static struct copy *copy_reach(struct model *model, unsigned from, unsigned to,
                               const struct truth *truth)
{
    struct copy *copy = copy_find(&model->nodes[to], truth);
    if (!copy || !reaches(model, from, to)) return NULL;
    if (from != to && copy->boot != model->rig->nodes[to].boots) return NULL;
    return copy;
}

static struct copy *copy_open(struct model *model, unsigned from, unsigned to, struct truth *truth,
                              uint32_t version, uint32_t count)
{
    if (!reaches(model, from, to)) return NULL;
    struct copy *copy = copy_find(&model->nodes[to], truth);
    if (!copy) copy = copy_make(&model->nodes[to], truth);
    copy->boot = model->rig->nodes[to].boots;
    copy->version = version;
    copy->count = copy->durable = count;
    copy->closed = false;
    return copy;
}

/* What no decision can look at any more. Open copies of this epoch stay: they are old marks. */
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
    refs[at][log] = ref_of(model, log);
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

/* The copies at some nodes are lost: others are restamped, a replacement is made whole, and the
 * coordinator is told before anything more is acked. */
static void own_lose(struct model *model, unsigned at, unsigned log, unsigned lost)
{
    struct own *own = &model->nodes[at].own[log];
    struct copy *whole = copy_find(&model->nodes[at], own->head);
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
    unsigned lost = 0, first = (unsigned)sim_rng_below(dice(model), model->rig->node_count);
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
        } else if (!copy_find(&model->nodes[i], own->next)) {
            if (!copy_open(model, at, i, own->next, own->version, 0)) lost |= 1u << i;
            part = sim_rng_chance(dice(model), 200);
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
        if (sim_rng_chance(dice(model), 200)) return;
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
    unsigned lost = 0, first = (unsigned)sim_rng_below(dice(model), model->rig->node_count);
    struct copy *whole = copy_find(&model->nodes[at], own->head);
    if (!whole) return; /* one that was taken over long ago, and its bytes are forgotten */
    uint32_t to = whole->count;
    if (to == MODEL_RECORDS_MAX || sim_rng_chance(dice(model), 100)) {
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
        if (sim_rng_chance(dice(model), 30)) return; /* in flight: it may die here */
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
        if (own->mask & (1u << i)) copy_find(&model->nodes[i], own->head)->durable = to;
    if (it->tail_epoch > own->epoch) wrong(model, "acked under an epoch that has ended", log);
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

static void own_step(struct model *model, unsigned at, unsigned log)
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

/* ---- taking over ---- */

static void ends_take(struct model *model, unsigned at, struct rig_request *request)
{
    struct rig_node *node = &model->rig->nodes[at];
    if (request->request.rc != LEAT_OK || request->request.incarnation != node->incarnation) return;
    for (size_t i = 0; i < request->request.end_count; i++) {
        const struct leat_log_end *end = &request->request.ends[i];
        unsigned log = (unsigned)log_of(model, end->log);
        struct own *own = &model->nodes[at].own[log];
        if (end->waits || (own->active && own->epoch == end->epoch.v) || end->record.opened)
            continue;
        if (own->request && !own->request->done) continue; /* asked again when it is answered */
        if (own->request) rig_forget(own->request);
        memset(own, 0, sizeof *own);
        own->tail_segment = end->record.tail.segment;
        own->tail_next = end->record.tail.next_offset;
        if (own->tail_segment != UINT64_MAX) {
            own->tail =
                truth_of_tail(model, log, &end->record.tail, &own->tail_count, &own->tail_closed);
            if (!own->tail) wrong(model, "owned with a tail that nobody wrote", log);
            bool found = false;
            for (unsigned i2 = 0; i2 < model->rig->node_count; i2++)
                for (unsigned c = 0; c < model->nodes[i2].copy_count; c++)
                    if (model->nodes[i2].copies[c].truth == own->tail &&
                        model->nodes[i2].copies[c].count >= own->tail_count)
                        found = true;
            if (!found && model->disk && !model->forgot)
                wrong(model, "nobody has the bytes of a tail", log);
        }
        own->active = true;
        own->epoch = end->epoch.v;
    }
}

static void model_on_stream(struct rig_node *node, struct leat_stream_desc *desc)
{
    struct model *model = model_of(node);
    int k = stream_slot(model, desc->id);
    if (k < 0) return;
    if (node->coordinator) tables_check(model, node, desc);
    for (uint32_t s = 0; s < MODEL_STREAMLETS; s++) {
        bool own_it = node->incarnation && desc->streamlets[s].owner == node->incarnation;
        for (uint32_t q = 0; q < MODEL_Q; q++) {
            struct own *own = &mine(node)->own[(unsigned)k * 8 + s * MODEL_Q + q];
            if (own->active && !own_it) own->active = false;
        }
        if (own_it) mine(node)->take[k][s] = true;
    }
}

static void model_on_node(struct rig_node *node, const struct leat_node_info *info)
{
    struct model *model = model_of(node);
    for (unsigned i = 0; i < model->rig->node_count; i++) {
        if (strcmp(model->rig->nodes[i].name, info->name) != 0) continue;
        uint64_t gone = info->crashed ? info->incarnation : info->incarnation - 1;
        if (gone > mine(node)->fenced[i]) mine(node)->fenced[i] = gone;
    }
}

static void model_on_standing(void *of, enum leat_standing standing)
{
    if (standing == LEAT_STANDING_CRASHED) mine(of)->crashed = true;
}

static void model_on_death(struct rig_node *node, enum sim_death death)
{
    struct model *model = model_of(node);
    struct model_node *it = mine(node);
    memset(it->own, 0, sizeof it->own);
    memset(it->take, 0, sizeof it->take);
    memset(it->tails, 0, sizeof it->tails);
    memset(it->collects, 0, sizeof it->collects);
    memset(it->fenced, 0, sizeof it->fenced);
    it->pull_count = 0;
    it->crashed = it->came_up = it->adopting = false;
    it->adopt = it->up = NULL;
    if (death != SIM_DEATH_POWER) return;
    for (unsigned i = 0; i < it->copy_count; i++) {
        struct copy *copy = &it->copies[i];
        if (!model->disk)
            copy->truth = NULL;
        else
            copy->count = copy->durable;
    }
}

void model_wipe(struct model *model, unsigned at)
{
    struct model_node *it = &model->nodes[at];
    for (unsigned i = 0; i < it->copy_count; i++)
        it->copies[i].truth = NULL;
    rig_wipe(model->rig, at);
    model->rig->nodes[at].node_id ^= 0x80; /* another data directory */
    model->forgot = true;
}

/* ---- answers to the coordinator ---- */

static void model_on_collect(void *of, struct leat_collect *collect)
{
    struct model_node *it = mine(of);
    struct model *model = model_of(of);
    for (unsigned i = 0; i < 32; i++) {
        if (it->collects[i]) continue;
        it->collects[i] = collect;
        uint64_t wait_us = sim_rng_chance(dice(model), 100)
                               ? sim_rng_below(dice(model), 3 * RIG_SECOND)
                               : sim_rng_below(dice(model), 20000);
        it->collect_at[i] = model->slow ? model->rig->world->now_us + wait_us : 0;
        return;
    }
    LEAT_ASSERT(false);
}

static void model_on_pull(void *of, struct leat_pull *pull)
{
    struct model_node *it = mine(of);
    LEAT_ASSERT(it->pull_count < 1024);
    it->pulls[it->pull_count++] = pull;
}

static bool begins_with(const struct copy *copy, const struct leat_tail_record *tail)
{
    for (uint32_t c = 0; c <= copy->count; c++)
        if (same(extent_of(copy->truth, c, false), tail->extent)) return true;
    return copy->closed && same(extent_of(copy->truth, copy->count, true), tail->extent);
}

static struct leat_replica_row row_of(struct model *model, const struct copy *copy,
                                      const struct leat_collect_log *log)
{
    const struct truth *truth = copy->truth;
    struct leat_replica_row row = {
        .log = log->log,
        .segment = truth->segment,
        .kind = copy->closed || copy->pulled ? LEAT_REPLICA_CLOSED : LEAT_REPLICA_MARK,
        .epoch.v = copy->pulled ? 0 : truth->epoch,
        .version = copy->version,
        .extent = extent_of(truth, copy->count, copy->closed),
        .base_offset = truth->base,
        .next_offset = truth->base + copy->count,
        .only_start = copy->count == 0,
        .durable = !model->disk || copy->durable == copy->count,
    };
    if (truth->previous)
        row.previous = extent_of(truth->previous, truth->previous_count, truth->previous_closed);
    row.holds_tail = !log->record.opened && truth->segment == log->record.tail.segment &&
                     begins_with(copy, &log->record.tail);
    return row;
}

struct answer {
    struct model *model;
    unsigned at;
    struct leat_collect *collect;
    struct leat_pull *pull;
};

static void collect_answer(void *arg)
{
    struct answer *answer = arg;
    struct model *model = answer->model;
    struct model_node *it = &model->nodes[answer->at];
    struct leat_collect *collect = answer->collect;
    for (size_t c = 0; c < collect->crashed_count; c++)
        for (unsigned i = 0; i < model->rig->node_count; i++)
            if (strcmp(model->rig->nodes[i].name, collect->crashed[c].name) == 0 &&
                collect->crashed[c].incarnation > it->fenced[i])
                it->fenced[i] = collect->crashed[c].incarnation;
    collect->rows =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, it->copy_count + 1, sizeof *collect->rows);
    LEAT_ASSERT(collect->rows);
    for (size_t l = 0; l < collect->log_count; l++) {
        int log = log_of(model, collect->logs[l].log);
        for (unsigned i = 0; i < it->copy_count && log >= 0; i++)
            if (it->copies[i].truth && it->copies[i].truth->log == (unsigned)log)
                collect->rows[collect->row_count++] =
                    row_of(model, &it->copies[i], &collect->logs[l]);
    }
    collect->rc = LEAT_OK;
    leat_collected(&model->rig->nodes[answer->at].client->post, collect);
}

static void pull_answer(void *arg)
{
    struct answer *answer = arg;
    struct model *model = answer->model;
    struct leat_pull *pull = answer->pull;
    struct leat_tail_record tail = {.segment = pull->segment, .extent = pull->extent};
    unsigned log = (unsigned)log_of(model, pull->log);
    uint32_t count = 0;
    bool closed = false;
    const struct truth *truth = truth_of_tail(model, log, &tail, &count, &closed);
    LEAT_ASSERT(truth != NULL);
    bool had = false;
    pull->rc = leat_error_set(&pull->error, LEAT_E_NOT_FOUND, "no source has it");
    for (uint32_t s = 0; s < pull->source_count; s++)
        for (unsigned i = 0; i < model->rig->node_count; i++) {
            if (strcmp(model->rig->nodes[i].name, pull->sources[s].node) != 0) continue;
            struct model_node *from = &model->nodes[i];
            if (i != answer->at && !reaches(model, i, answer->at)) continue;
            for (unsigned c = 0; c < from->copy_count; c++) {
                struct copy *copy = &from->copies[c];
                if (copy->truth != truth || copy->count < count || (closed && !copy->closed))
                    continue;
                pull->rc = LEAT_OK;
                if (i != answer->at) continue;
                had = true;
                if (copy->durable < count) copy->durable = count;
            }
        }
    if (pull->rc == LEAT_OK && !had) {
        struct copy *copy = copy_make(&model->nodes[answer->at], (struct truth *)(uintptr_t)truth);
        copy->pulled = true;
        copy->closed = closed;
        copy->count = copy->durable = count;
    }
    leat_pulled(&model->rig->nodes[answer->at].client->post, pull);
}

static void answers_give(struct model *model, unsigned at)
{
    struct model_node *it = &model->nodes[at];
    struct rig_node *node = &model->rig->nodes[at];
    struct answer answer = {.model = model, .at = at};
    for (unsigned i = 0; i < 32 && node->up; i++) {
        if (!it->collects[i] || model->rig->world->now_us < it->collect_at[i]) continue;
        answer.collect = it->collects[i];
        it->collects[i] = NULL;
        (void)sim_process_enter(node->process, collect_answer, &answer);
    }
    while (node->up && it->pull_count > 0) {
        answer.pull = it->pulls[--it->pull_count];
        (void)sim_process_enter(node->process, pull_answer, &answer);
    }
}

/* ---- coming up ---- */

static struct leat_log_marks *marks_make(struct model *model, unsigned at, size_t *out_count)
{
    struct model_node *it = &model->nodes[at];
    static struct leat_log_marks all[RIG_NODES_MAX][MODEL_LOGS];
    struct leat_log_marks *marks = all[at];
    *out_count = 0;
    for (unsigned log = 0; log < MODEL_LOGS; log++) {
        const struct copy *mark = NULL, *closed = NULL;
        for (unsigned i = 0; i < it->copy_count; i++) {
            const struct copy *copy = &it->copies[i];
            if (!copy->truth || copy->truth->log != log) continue;
            if (copy->closed || copy->pulled) {
                if (!closed || copy->truth->segment > closed->truth->segment) closed = copy;
            } else if (!mark || copy->truth->segment < mark->truth->segment ||
                       (copy->truth->segment == mark->truth->segment &&
                        copy->truth->epoch > mark->truth->epoch)) {
                mark = copy;
            }
        }
        if (!mark && !closed) continue;
        struct leat_log_marks *row = &marks[(*out_count)++];
        memset(row, 0, sizeof *row);
        row->log = ref_of(model, log);
        if (closed) {
            row->has_closed = true;
            row->closed_segment = closed->truth->segment;
            row->closed_extent = extent_of(closed->truth, closed->count, closed->closed);
            row->closed_next_offset = closed->truth->base + closed->count;
        }
        if (!mark) continue;
        row->has_mark = true;
        row->mark_segment = mark->truth->segment;
        row->mark_epoch.v = mark->truth->epoch;
        row->mark_version = mark->version;
        row->mark_extent = extent_of(mark->truth, mark->count, false);
        row->mark_next_offset = mark->truth->base + mark->count;
        row->mark_only_start = mark->count == 0;
        row->predecessor_matches = mark->truth->previous == NULL;
        for (unsigned i = 0; i < it->copy_count && mark->truth->previous; i++)
            if (it->copies[i].truth == mark->truth->previous &&
                it->copies[i].count == mark->truth->previous_count &&
                it->copies[i].closed == mark->truth->previous_closed)
                row->predecessor_matches = true;
    }
    return marks;
}

static void come_up(struct model *model, unsigned at)
{
    struct rig_node *node = &model->rig->nodes[at];
    struct model_node *it = &model->nodes[at];
    if (it->came_up) return;
    if (!it->up && node->ready && node->incarnation == 0) {
        it->up = rig_request(model->rig, at, LEAT_COORDINATE_NODE_UP);
        if (!it->up) return;
        it->up->request.node_name = node->name;
        it->up->request.address = "127.0.0.1:7700";
        it->up->request.node_address = node->address;
        it->up->request.cores = 2;
        it->up->request.node_id[0] = node->node_id;
        rig_ask(it->up);
        return;
    }
    if (it->up && it->up->done) {
        leat_err rc = it->up->request.rc;
        rig_forget(it->up);
        it->up = NULL;
        if (rc != LEAT_OK) return; /* again */
        it->adopt = rig_request(model->rig, at, LEAT_COORDINATE_ADOPT);
        LEAT_ASSERT(it->adopt);
        it->adopt->request.incarnation = node->incarnation;
        it->adopt->request.marks = marks_make(model, at, &it->adopt->request.mark_count);
        rig_ask(it->adopt);
        return;
    }
    if (!it->adopt || !it->adopt->done) return;
    if (it->adopt->request.rc == LEAT_E_STALE_EPOCH) it->crashed = true;
    rig_forget(it->adopt);
    it->adopt = NULL;
    it->came_up = true;
    memset(it->take, 1, sizeof it->take); /* whatever it got is asked for */
}

static void tails_step(struct model *model, unsigned at)
{
    struct model_node *it = &model->nodes[at];
    for (unsigned k = 0; k < MODEL_STREAMS; k++)
        for (unsigned s = 0; s < MODEL_STREAMLETS; s++) {
            struct rig_request *request = it->tails[k][s];
            if (request && request->done) {
                ends_take(model, at, request);
                rig_forget(request);
                it->tails[k][s] = NULL;
            } else if (!request && it->take[k][s]) {
                request = rig_request(model->rig, at, LEAT_COORDINATE_TAILS);
                if (!request) return;
                request->request.stream_id = model->stream_ids[k];
                request->request.streamlet = s;
                it->take[k][s] = false;
                it->tails[k][s] = request;
                rig_ask(request);
            }
        }
}

/* ---- running ---- */

static void node_step(struct model *model, unsigned at)
{
    struct rig_node *node = &model->rig->nodes[at];
    struct model_node *it = &model->nodes[at];
    uint64_t now_us = model->rig->world->now_us;
    if (!node->up || node->process->paused_until_us > now_us) return;
    if (it->crashed || node->coordinator->failed != LEAT_OK) { /* it starts itself anew */
        rig_kill(model->rig, at, SIM_DEATH_KILL);
        it->restart_us = now_us + sim_rng_below(dice(model), 300000);
        return;
    }
    answers_give(model, at);
    if (node->up) come_up(model, at);
    if (!node->up || !it->came_up) return;
    tails_step(model, at);
    for (unsigned log = 0; log < MODEL_LOGS && node->up; log++) {
        struct own *own = &it->own[log];
        if (own->active && sim_rng_chance(dice(model), 60)) own_step(model, at, log);
        if (!own->active && own->request && own->request->done) {
            rig_forget(own->request);
            memset(own, 0, sizeof *own);
            it->take[log / 8][log / MODEL_Q % MODEL_STREAMLETS] = true;
        }
    }
}

void model_run(struct model *model, uint64_t us)
{
    uint64_t end = model->rig->world->now_us + us;
    while (model->rig->world->now_us < end) {
        rig_run(model->rig, 1000);
        for (unsigned at = 0; at < model->rig->node_count; at++) {
            struct rig_node *node = &model->rig->nodes[at];
            node_step(model, at);
            if (!node->up && model->nodes[at].restart_us &&
                model->rig->world->now_us >= model->nodes[at].restart_us) {
                model->nodes[at].restart_us = 0;
                sim_disk_no_errors(node->disk);
                rig_boot(model->rig, at);
            }
        }
    }
}

static bool acts(struct model *model, unsigned at)
{
    const struct rig_node *node = &model->rig->nodes[at];
    uint64_t now_us = model->rig->world->now_us;
    return node->up && node->process->paused_until_us <= now_us &&
           node->process->cut_off_until_us <= now_us;
}

static bool model_owned(struct model *model)
{
    int leader = -1;
    for (unsigned at = 0; at < model->rig->node_count; at++)
        if (acts(model, at) && co_leads(model->rig->nodes[at].coordinator)) leader = (int)at;
    if (leader < 0) return false;
    struct leat_machine *machine = &model->rig->nodes[leader].coordinator->machine;
    for (uint32_t s = 0; s < machine->stream_count; s++)
        for (uint32_t i = 0; i < machine->streams[s].desc->streamlet_count; i++) {
            bool owned = false;
            for (unsigned at = 0; at < model->rig->node_count; at++)
                if (acts(model, at) && model->rig->nodes[at].incarnation ==
                                           machine->streams[s].desc->streamlets[i].owner)
                    owned = true;
            if (!owned) return false;
        }
    return true;
}

bool model_until_owned(struct model *model, uint64_t us)
{
    uint64_t end = model->rig->world->now_us + us;
    while (!model_owned(model)) {
        if (model->rig->world->now_us >= end) return false;
        model_run(model, 1000);
    }
    return true;
}

bool model_served(struct model *model)
{
    for (unsigned log = 0; log < MODEL_LOGS; log++) {
        bool served = false;
        for (unsigned at = 0; at < model->rig->node_count; at++) {
            const struct own *own = &model->nodes[at].own[log];
            if (!acts(model, at)) continue;
            if (own->active && own->opened && !own->busy &&
                own->epoch >= model->logs[log].sealed_epoch)
                served = true;
        }
        if (!served) return false;
    }
    return true;
}

bool model_until_served(struct model *model, uint64_t us)
{
    uint64_t end = model->rig->world->now_us + us;
    while (!model_served(model)) {
        if (model->rig->world->now_us >= end) return false;
        model_run(model, 1000);
    }
    return true;
}

void model_dump(struct model *model)
{
    if (!model->rig->world->entered) rig_dump(model->rig);
    for (unsigned at = 0; at < model->rig->node_count; at++) {
        const struct rig_node *node = &model->rig->nodes[at];
        if (!node->up || !node->coordinator || !co_leads(node->coordinator)) continue;
        const struct co_recovery *it = node->coordinator->recovery;
        fprintf(stderr, "n%u leads, phase %d, %u wait\n", at, (int)it->phase, it->waiting_count);
        for (uint32_t i = 0; i < it->waiting_count && i < LEAT_RECOVERY_WAITING_MAX; i++)
            fprintf(stderr, "log %d waits: %s\n", log_of(model, it->waiting[i].log),
                    it->waiting[i].why);
        for (unsigned log = 0; log < MODEL_LOGS; log++) {
            struct leat_machine_stream *stream;
            const struct leat_machine_log *row =
                leat_machine_log_find(&node->coordinator->machine, ref_of(model, log), &stream);
            if (row && row->record.opened)
                fprintf(stderr, "log %u: epoch %u, opened by %u, version %u\n", log, row->epoch.v,
                        row->record.stamp_epoch.v, row->record.stamp_version);
            else if (row)
                fprintf(stderr, "log %u: epoch %u, tail %lld, %u bytes, next %llu\n", log,
                        row->epoch.v, (long long)row->record.tail.segment,
                        row->record.tail.extent.bytes,
                        (unsigned long long)row->record.tail.next_offset);
        }
    }
    for (unsigned log = 0; log < MODEL_LOGS; log++) {
        fprintf(stderr, "log %u: acked %u, epoch %u |", log, model->logs[log].acked_count,
                model->logs[log].sealed_epoch);
        for (unsigned at = 0; at < model->rig->node_count; at++) {
            const struct own *own = &model->nodes[at].own[log];
            if (own->active)
                fprintf(stderr, " owner n%u epoch %u opened %d busy %d mask %x version %u", at,
                        own->epoch, own->opened, own->busy, own->mask, own->version);
            for (unsigned i = 0; i < model->nodes[at].copy_count; i++) {
                const struct copy *copy = &model->nodes[at].copies[i];
                if (!copy->truth || copy->truth->log != log) continue;
                if (copy->closed && copy->truth->base + copy->count < model->logs[log].acked_count)
                    continue;
                fprintf(stderr, " n%u:%llu/e%u.v%u=%u%s%s", at,
                        (unsigned long long)copy->truth->segment, copy->truth->epoch, copy->version,
                        copy->count, copy->closed ? "c" : "", copy->pulled ? "p" : "");
            }
        }
        fprintf(stderr, "\n");
    }
}

static const struct rig_broker broker = {.on_stream = model_on_stream,
                                         .on_node = model_on_node,
                                         .on_collect = model_on_collect,
                                         .on_pull = model_on_pull,
                                         .on_standing = model_on_standing,
                                         .on_death = model_on_death};

struct model *model_create(uint64_t seed, unsigned nodes, uint32_t voters, bool disk)
{
    struct model *model = calloc(1, sizeof *model);
    LEAT_ASSERT(model != NULL);
    model->rig = rig_create(seed, nodes, voters);
    model->rig->model = model;
    model->rig->broker = &broker;
    model->disk = disk;
    return model;
}

void model_destroy(struct model *model)
{
    rig_destroy(model->rig);
    for (unsigned i = 0; i < model->truth_count; i++)
        free(model->truths[i]);
    free(model);
}

void model_begin(struct model *model)
{
    struct rig *rig = model->rig;
    for (unsigned i = 0; i < rig->node_count; i++)
        rig_boot(rig, i);
    LEAT_ASSERT(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    model_run(model, RIG_SECOND);
    for (unsigned k = 0; k < MODEL_STREAMS; k++) {
        char name[8];
        snprintf(name, sizeof name, "s%u", k);
        struct rig_request *it = rig_create_stream(rig, 0, name);
        it->request.settings.streamlets = MODEL_STREAMLETS;
        it->request.settings.logs = MODEL_Q;
        it->request.settings.copies = 3;
        it->request.settings.min_copies = 2;
        it->request.settings.durability =
            model->disk ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY;
        LEAT_ASSERT(rig_wait(rig, it, 10 * RIG_SECOND) == LEAT_OK);
        model->stream_ids[k] = it->request.stream_id;
        tables_check(model, &rig->nodes[0], it->request.desc);
        rig_forget(it);
    }
    rig_run(rig, 100000);
    for (unsigned at = 0; at < rig->node_count; at++)
        memset(model->nodes[at].take, 1, sizeof model->nodes[at].take);
}
