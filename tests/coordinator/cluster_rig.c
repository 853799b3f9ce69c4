/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/coordinator/cluster_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/membership/state.h"

static const struct leat_key cluster_key = {{"of the cluster"}};

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    struct rig_node *node = owner;
    node->streams_told++;
    if (node->rig->broker && node->rig->broker->on_stream) node->rig->broker->on_stream(node, desc);
}
static void on_stream_deleted(void *owner, uint32_t id)
{
    (void)id;
    ((struct rig_node *)owner)->deleted_told++;
}
static void on_node(void *owner, const struct leat_node_info *info)
{
    struct rig_node *node = owner;
    node->nodes_told++;
    node->last_node = *info;
    if (node->rig->broker && node->rig->broker->on_node) node->rig->broker->on_node(node, info);
}
static void on_ready(void *owner)
{
    ((struct rig_node *)owner)->ready = true;
}

static void on_collect(void *owner, struct leat_collect *collect)
{
    struct rig_node *node = owner;
    if (node->rig->broker && node->rig->broker->on_collect) {
        node->rig->broker->on_collect(node, collect);
        return;
    }
    collect->rc = LEAT_E_UNSUPPORTED;
    leat_collected(node->actor->env.post, collect);
}
static void on_pull(void *owner, struct leat_pull *pull)
{
    struct rig_node *node = owner;
    if (node->rig->broker && node->rig->broker->on_pull) {
        node->rig->broker->on_pull(node, pull);
        return;
    }
    pull->rc = LEAT_E_UNREACHABLE;
    leat_pulled(node->actor->env.post, pull);
}

struct rig *rig_create(uint64_t seed, unsigned nodes, uint32_t voters)
{
    struct rig *rig = calloc(1, sizeof *rig);
    LEAT_ASSERT(rig != NULL && nodes <= RIG_NODES_MAX);
    rig->requests = calloc(RIG_REQUESTS_MAX, sizeof *rig->requests);
    LEAT_ASSERT(rig->requests != NULL);
    rig->world = sim_world_create(seed, getenv("RIG_TRACE") != NULL);
    rig->node_count = nodes;
    rig->voter_count = voters;
    for (unsigned i = 0; i < nodes; i++) {
        struct rig_node *node = &rig->nodes[i];
        node->rig = rig;
        node->node_id = (uint8_t)(i + 1);
        snprintf(node->name, sizeof node->name, "n%u", i);
        snprintf(node->address, sizeof node->address, "n%u:7701", i);
        node->disk = sim_disk_create(rig->world);
        if (i >= voters) continue;
        snprintf(rig->voter_list[i], sizeof rig->voter_list[i], "n%u:7701", i);
        rig->voters[i] = rig->voter_list[i];
    }
    return rig;
}

void rig_destroy(struct rig *rig)
{
    for (unsigned i = 0; i < rig->node_count; i++)
        if (rig->nodes[i].up) rig_kill(rig, i, SIM_DEATH_KILL);
    for (unsigned i = 0; i < rig->node_count; i++)
        sim_disk_destroy(&rig->nodes[i].disk);
    sim_world_destroy(&rig->world);
    free(rig->requests);
    free(rig);
}

static void open_now(void *arg)
{
    struct rig_node *node = arg;
    node->coordinator = NULL;
    leat_err rc = leat_coordinator_open(&node->actor->env, &node->options, &node->coordinator,
                                        &node->open_error);
    if (rc != LEAT_OK) node->coordinator = NULL;
}

static void client_wake(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops client_ops = {.on_wake = client_wake};

static void on_death(struct sim_process *process, enum sim_death death)
{
    struct rig_node *node = process->owner;
    node->up = node->ready = false;
    if (node->rig->broker && node->rig->broker->on_death) node->rig->broker->on_death(node, death);
    node->coordinator = NULL; /* what a killed process had allocated is nobody's */
    struct rig *rig = node->rig;
    for (unsigned r = 0; r < RIG_REQUESTS_MAX; r++) {
        struct rig_request *it = &rig->requests[r];
        if (!it->in_use || it->node != node || it->done) continue;
        it->done = true; /* nobody will answer */
        it->request.rc = LEAT_E_CANCELLED;
        it->request.decisions = NULL;
        it->request.ends = NULL;
    }
}

void rig_boot(struct rig *rig, unsigned i)
{
    struct rig_node *node = &rig->nodes[i];
    char name[24];
    LEAT_ASSERT(!node->up);
    snprintf(name, sizeof name, "%s.%u", node->name, ++node->boots);
    node->process = sim_process_create(rig->world, name);
    node->process->disk = node->disk;
    snprintf(node->process->host, sizeof node->process->host, "%s", node->name);
    node->process->owner = node;
    node->process->on_death = on_death;
    node->client = sim_actor_create(node->process, 0);
    node->actor = sim_actor_create(node->process, LEAT_ACTOR_COORDINATOR);
    memset(&node->hub, 0, sizeof node->hub);
    memset(&node->open_error, 0, sizeof node->open_error);
    node->incarnation = 0;
    node->streams_told = node->deleted_told = node->nodes_told = 0;
    bool alone = rig->voter_count == 0 && i == 0;
    node->options = (struct leat_coordinator_options){
        .cores = 2,
        .on_stream = on_stream,
        .on_stream_deleted = on_stream_deleted,
        .on_node = on_node,
        .on_ready = on_ready,
        .on_collect = on_collect,
        .on_pull = on_pull,
        .owner = node,
        .node_name = node->name,
        .node_address = node->address,
        .voters = rig->voters,
        .voter_count = rig->voter_count,
        .hub = &node->hub,
        .key = &cluster_key,
        .snapshot_bytes_min = rig->snapshot_bytes_min,
        .raft_segment_bytes = rig->raft_segment_bytes,
    };
    if (rig->broker) node->options.on_standing = rig->broker->on_standing;
    if (!alone && rig->voter_count == 0) { /* the others know the one who began alone */
        snprintf(rig->voter_list[0], sizeof rig->voter_list[0], "n0:7701");
        rig->voters[0] = rig->voter_list[0];
        node->options.voter_count = 1;
    }
    node->up = true;
    if (!sim_process_enter(node->process, open_now, node)) return;
    if (!node->coordinator) {
        sim_process_die(node->process, SIM_DEATH_KILL);
        return;
    }
    sim_actor_register(node->client, node, &client_ops);
    sim_actor_register(node->actor, node->coordinator, &leat_coordinator_actor);
}

void rig_kill(struct rig *rig, unsigned i, enum sim_death death)
{
    struct rig_node *node = &rig->nodes[i];
    LEAT_ASSERT(node->up);
    sim_process_die(node->process, death);
}

void rig_wipe(struct rig *rig, unsigned i)
{
    LEAT_ASSERT(!rig->nodes[i].up);
    sim_disk_destroy(&rig->nodes[i].disk);
    rig->nodes[i].disk = sim_disk_create(rig->world);
}

void rig_run(struct rig *rig, uint64_t us)
{
    sim_world_run(rig->world, rig->world->now_us + us, NULL);
    if (rig->world->failure[0]) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)rig->world->seed,
                rig->world->failure);
        abort();
    }
}

void rig_dump(struct rig *rig)
{
    static struct leat_coordinator_status status;
    for (unsigned i = 0; i < rig->node_count; i++) {
        const struct rig_node *node = &rig->nodes[i];
        fprintf(stderr, "%s %s %s", node->name, node->up ? "up" : "down", node->open_error.text);
        if (node->up) {
            rig_status(rig, i, &status);
            fprintf(stderr, "role %d ready %d term %llu leader %s id %llx applied %llu %s |",
                    (int)status.role, status.ready, (unsigned long long)status.term,
                    status.leader_address, (unsigned long long)status.voter_id,
                    (unsigned long long)status.applied_index, status.why);
            for (unsigned v = 0; v < status.voter_count; v++)
                fprintf(stderr, " %s%s%s=%llx", status.voters[v].address,
                        status.voters[v].votes ? "" : "(spare)",
                        status.voters[v].reachable ? "" : "(away)",
                        (unsigned long long)status.voters[v].id);
        }
        fprintf(stderr, "\n");
    }
}

bool rig_until(struct rig *rig, uint64_t us, bool (*is)(struct rig *rig))
{
    uint64_t end = rig->world->now_us + us;
    while (!is(rig)) {
        if (rig->world->now_us >= end) {
            fprintf(stderr, "seed %llu\n", (unsigned long long)rig->world->seed);
            rig_dump(rig);
            return false;
        }
        rig_run(rig, 10000);
    }
    return true;
}

/* ---- requests ---- */

static void request_done(struct leat_coordinate *request)
{
    struct rig_request *it = request->owner;
    LEAT_ASSERT(!it->done);
    it->done = true;
    it->done_us = it->node->rig->world->now_us;
    if (request->kind == LEAT_COORDINATE_NODE_UP && request->rc == LEAT_OK)
        it->node->incarnation = request->incarnation;
}

struct rig_request *rig_request(struct rig *rig, unsigned node, enum leat_coordinate_kind kind)
{
    for (unsigned i = 0; i < RIG_REQUESTS_MAX; i++) {
        struct rig_request *it = &rig->requests[i];
        if (it->in_use) continue;
        memset(it, 0, sizeof *it);
        it->in_use = true;
        it->node = &rig->nodes[node];
        it->request.kind = kind;
        it->request.on_done = request_done;
        it->request.owner = it;
        return it;
    }
    return NULL;
}

static void ask_now(void *arg)
{
    struct rig_request *it = arg;
    leat_coordinate(&it->node->client->post, &it->request);
}

void rig_ask(struct rig_request *it)
{
    it->asked_us = it->node->rig->world->now_us;
    (void)sim_process_enter(it->node->process, ask_now, it); /* it may die of it */
}

void rig_forget(struct rig_request *it)
{
    if (it->request.kind == LEAT_COORDINATE_STREAM_CREATE && it->done && it->request.rc == LEAT_OK)
        leat_stream_desc_unref(it->request.desc);
    leat_mem_free(it->request.decisions);
    leat_mem_free(it->request.ends);
    it->in_use = false;
}

leat_err rig_wait(struct rig *rig, struct rig_request *it, uint64_t us)
{
    uint64_t end = rig->world->now_us + us;
    rig_ask(it);
    while (it->in_use && !it->done && rig->world->now_us < end)
        rig_run(rig, 1000);
    return it->done ? it->request.rc : LEAT_E_AGAIN;
}

struct rig_request *rig_create_stream(struct rig *rig, unsigned node, const char *name)
{
    struct rig_request *it = rig_request(rig, node, LEAT_COORDINATE_STREAM_CREATE);
    LEAT_ASSERT(it != NULL);
    snprintf(it->request.name, sizeof it->request.name, "%s", name);
    return it;
}

leat_err rig_node_up(struct rig *rig, unsigned i)
{
    struct rig_node *node = &rig->nodes[i];
    struct rig_request *it = rig_request(rig, i, LEAT_COORDINATE_NODE_UP);
    LEAT_ASSERT(it != NULL);
    it->request.node_name = node->name;
    it->request.address = "127.0.0.1:7700";
    it->request.node_address = node->address;
    it->request.cores = 2;
    it->request.node_id[0] = node->node_id;
    leat_err rc = rig_wait(rig, it, 60 * RIG_SECOND);
    rig_forget(it);
    return rc;
}

/* ---- looking ---- */

void rig_status(struct rig *rig, unsigned i, struct leat_coordinator_status *out)
{
    (void)rig;
    leat_coordinator_status(rig->nodes[i].coordinator, out);
}

int rig_leader(struct rig *rig)
{
    int leader = -1;
    uint64_t term = 0;
    for (unsigned i = 0; i < rig->node_count; i++) {
        const struct rig_node *node = &rig->nodes[i];
        if (!node->up || !co_leads(node->coordinator)) continue;
        uint64_t its = raft_current_term(&node->coordinator->drive.raft);
        LEAT_ASSERT(its != term); /* one leader per term */
        if (its < term) continue;
        leader = (int)i;
        term = its;
    }
    return leader;
}

bool rig_all_ready(struct rig *rig)
{
    for (unsigned i = 0; i < rig->node_count; i++)
        if (rig->nodes[i].up && !rig->nodes[i].ready) return false;
    return true;
}

bool rig_all_equal(struct rig *rig)
{
    uint8_t *first = NULL;
    size_t first_count = 0;
    uint64_t applied = 0;
    bool equal = true;
    for (unsigned i = 0; i < rig->node_count && equal; i++) {
        const struct rig_node *node = &rig->nodes[i];
        if (!node->up) continue;
        uint8_t *bytes;
        size_t count;
        leat_err rc = leat_machine_snapshot(&node->coordinator->machine, &bytes, &count);
        LEAT_ASSERT(rc == LEAT_OK);
        leat_machine_check(&node->coordinator->machine);
        if (!first) {
            first = bytes;
            first_count = count;
            applied = node->coordinator->applied;
            continue;
        }
        bool same = count == first_count && memcmp(bytes, first, count) == 0;
        /* Other tables after the same entries are never right. */
        if (applied == node->coordinator->applied) LEAT_ASSERT(same);
        equal = same && applied == node->coordinator->applied;
        leat_mem_free(bytes);
    }
    leat_mem_free(first);
    return equal;
}

leat_err rig_create_one(struct rig *rig, unsigned node, const char *name)
{
    struct rig_request *request = rig_create_stream(rig, node, name);
    leat_err rc = rig_wait(rig, request, 40 * RIG_SECOND);
    rig_forget(request);
    return rc;
}

bool rig_is_settled(struct rig *rig)
{
    return rig_all_ready(rig) && rig_all_equal(rig);
}
