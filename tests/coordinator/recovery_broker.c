/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's reports and requests to the model broker: streams, deaths, marks, bytes. */
#include "tests/coordinator/recovery_parts.h"

/* ---- taking over ---- */

/* A tail that has only begun: the segment before it is on two disks by now, exactly as it is named. */
static void before_check(struct model *model, unsigned log, const struct truth *tail)
{
    const struct truth *before = tail->previous;
    if (!before || !model->disk || model->forgot) return;
    struct leat_prefix_id named =
        truth_prefix_id(before, tail->previous_count, tail->previous_closed);
    unsigned nodes = 0;
    for (unsigned i = 0; i < model->rig->node_count; i++) {
        bool has = false;
        for (unsigned c = 0; c < model->nodes[i].copy_count; c++) {
            const struct copy *copy = &model->nodes[i].copies[c];
            has |= copy->truth == before &&
                   prefix_id_same(truth_prefix_id(before, copy->count, copy->closed), named);
        }
        nodes += has;
    }
    if (nodes < 2) model_wrong(model, "the segment before a tail is on one node", log);
}

static void ends_take(struct model *model, unsigned at, struct rig_request *request)
{
    struct rig_node *node = &model->rig->nodes[at];
    if (request->request.rc != LEAT_OK || request->request.incarnation != node->incarnation) return;
    for (size_t i = 0; i < request->request.end_count; i++) {
        const struct leat_log_end *end = &request->request.ends[i];
        unsigned log = (unsigned)model_log_of(model, end->log);
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
            if (!own->tail) model_wrong(model, "owned with a tail that nobody wrote", log);
            bool found = false;
            for (unsigned i2 = 0; i2 < model->rig->node_count; i2++)
                for (unsigned c = 0; c < model->nodes[i2].copy_count; c++)
                    if (model->nodes[i2].copies[c].truth == own->tail &&
                        model->nodes[i2].copies[c].count >= own->tail_count)
                        found = true;
            /* Of an owner of the past, that stood still when it was told, nothing has to be left. */
            bool past = end->epoch.v < model->logs[log].sealed_epoch;
            if (!found && !past && model->disk && !model->forgot)
                model_wrong(model, "nobody has the bytes of a tail", log);
            if (own->tail_count == 0) before_check(model, log, own->tail);
        }
        own->active = true;
        own->epoch = end->epoch.v;
    }
}

static void model_on_stream(struct rig_node *node, struct leat_stream_desc *desc)
{
    struct model *model = model_of(node);
    int k = model_stream_slot(model, desc->id);
    if (k < 0) return;
    if (node->coordinator) model_tables_check(model, node, desc);
    for (uint32_t s = 0; s < MODEL_STREAMLETS; s++) {
        bool own_it = node->incarnation && desc->streamlets[s].owner == node->incarnation;
        for (uint32_t q = 0; q < MODEL_Q; q++) {
            struct own *own = &model_mine(node)->own[(unsigned)k * 8 + s * MODEL_Q + q];
            if (own->active && !own_it) own->active = false;
        }
        if (own_it) model_mine(node)->take[k][s] = true;
    }
}

static void model_on_node(struct rig_node *node, const struct leat_node_info *info)
{
    struct model *model = model_of(node);
    for (unsigned i = 0; i < model->rig->node_count; i++) {
        if (strcmp(model->rig->nodes[i].name, info->name) != 0) continue;
        uint64_t gone = info->crashed ? info->incarnation : info->incarnation - 1;
        if (gone > model_mine(node)->fenced[i]) model_mine(node)->fenced[i] = gone;
    }
}

static void model_on_standing(void *of, enum leat_standing standing)
{
    struct rig_node *node = of;
    struct model *model = model_of(node);
    model_mine(node)->standing = standing;
    if (standing == LEAT_STANDING_CRASHED) model_mine(node)->crashed = true;
    if (standing != LEAT_STANDING_CONFIRMED) return;
    for (unsigned i = 0; i < model->rig->node_count; i++)
        if (model->nodes[i].fenced[model_index_of(node)] >= node->incarnation)
            model_mine(node)->confirmed_late++;
}

static void model_on_death(struct rig_node *node, enum sim_death death)
{
    struct model *model = model_of(node);
    struct model_node *it = model_mine(node);
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
    struct model_node *it = model_mine(of);
    struct model *model = model_of(of);
    for (unsigned i = 0; i < 32; i++) {
        if (it->collects[i]) continue;
        it->collects[i] = collect;
        uint64_t wait_us = sim_rng_chance(model_dice(model), 100)
                               ? sim_rng_below(model_dice(model), 3 * RIG_SECOND)
                               : sim_rng_below(model_dice(model), 20000);
        it->collect_at[i] = model->slow ? model->rig->world->now_us + wait_us : 0;
        return;
    }
    LEAT_ASSERT(false);
}

static void model_on_pull(void *of, struct leat_pull *pull)
{
    struct model_node *it = model_mine(of);
    LEAT_ASSERT(it->pull_count < 1024);
    LEAT_ASSERT_CMP(pull->source_count, >, 0u);
    it->pulls[it->pull_count++] = pull;
}

static bool begins_with(const struct copy *copy, const struct leat_tail_record *tail)
{
    for (uint32_t c = 0; c <= copy->count; c++)
        if (prefix_id_same(truth_prefix_id(copy->truth, c, false), tail->prefix_id)) return true;
    return copy->closed &&
           prefix_id_same(truth_prefix_id(copy->truth, copy->count, true), tail->prefix_id);
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
        .prefix_id = truth_prefix_id(truth, copy->count, copy->closed),
        .base_offset = truth->base,
        .next_offset = truth->base + copy->count,
        .only_start = copy->count == 0,
        .durable = !model->disk || copy->durable == copy->count,
    };
    if (truth->previous)
        row.previous =
            truth_prefix_id(truth->previous, truth->previous_count, truth->previous_closed);
    const struct leat_tail_record *end = leat_log_decided(&log->record);
    row.holds_tail = end && truth->segment == end->segment && begins_with(copy, end);
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
        int log = model_log_of(model, collect->logs[l].log);
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
    struct leat_tail_record tail = {.segment = pull->segment, .prefix_id = pull->prefix_id};
    unsigned log = (unsigned)model_log_of(model, pull->log);
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
            if (i != answer->at && !model_reaches(model, i, answer->at)) continue;
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
        struct copy *copy =
            model_copy_make(&model->nodes[answer->at], (struct truth *)(uintptr_t)truth);
        copy->pulled = true;
        copy->closed = closed;
        copy->count = copy->durable = count;
    }
    leat_pulled(&model->rig->nodes[answer->at].client->post, pull);
}

void model_answers_give(struct model *model, unsigned at)
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
        row->log = model_ref_of(model, log);
        if (closed) {
            row->has_closed = true;
            row->closed_segment = closed->truth->segment;
            row->closed_prefix_id = truth_prefix_id(closed->truth, closed->count, closed->closed);
            row->closed_next_offset = closed->truth->base + closed->count;
        }
        if (!mark) continue;
        row->has_mark = true;
        row->mark_segment = mark->truth->segment;
        row->mark_epoch.v = mark->truth->epoch;
        row->mark_version = mark->version;
        row->mark_prefix_id = truth_prefix_id(mark->truth, mark->count, false);
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

void model_come_up(struct model *model, unsigned at)
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
        it->up->request.logs_most = it->logs_most;
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

void model_tails_step(struct model *model, unsigned at)
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

const struct rig_broker model_broker = {.on_stream = model_on_stream,
                                        .on_node = model_on_node,
                                        .on_collect = model_on_collect,
                                        .on_pull = model_on_pull,
                                        .on_standing = model_on_standing,
                                        .on_death = model_on_death};
