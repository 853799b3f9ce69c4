/* SPDX-License-Identifier: Apache-2.0 */
/* The model broker: running, and its life. */
#include "coordinator/membership/state.h"
#include "tests/coordinator/recovery_parts.h"

/* ---- running ---- */

static void node_step(struct model *model, unsigned at)
{
    struct rig_node *node = &model->rig->nodes[at];
    struct model_node *it = &model->nodes[at];
    uint64_t now_us = model->rig->world->now_us;
    if (!node->up || node->process->paused_until_us > now_us) return;
    if (it->crashed || node->coordinator->failed != LEAT_OK) { /* it starts itself anew */
        rig_kill(model->rig, at, SIM_DEATH_KILL);
        it->restart_us = now_us + sim_rng_below(model_dice(model), 300000);
        return;
    }
    model_answers_give(model, at);
    if (node->up) model_come_up(model, at);
    if (!node->up || !it->came_up) return;
    model_tails_step(model, at);
    for (unsigned log = 0; log < MODEL_LOGS && node->up; log++) {
        struct own *own = &it->own[log];
        if (own->active && sim_rng_chance(model_dice(model), 60)) model_own_step(model, at, log);
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

/* ---- life ---- */

struct model *model_create(uint64_t seed, unsigned nodes, uint32_t voters, bool disk)
{
    struct model *model = calloc(1, sizeof *model);
    LEAT_ASSERT(model != NULL);
    model->rig = rig_create(seed, nodes, voters);
    model->rig->model = model;
    model->rig->broker = &model_broker;
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
        model_tables_check(model, &rig->nodes[0], it->request.desc);
        rig_forget(it);
    }
    rig_run(rig, 100000);
    for (unsigned at = 0; at < rig->node_count; at++)
        memset(model->nodes[at].take, 1, sizeof model->nodes[at].take);
}
