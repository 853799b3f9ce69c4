/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator as an actor, without recovery: open and close, raft's hooks, turns and ticks, and the calls that
 * report changes of the tables. */
#include "coordinator/membership/actor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/applied.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"

/* ---- raft's hooks ---- */

static leat_err hook_apply(void *owner, uint64_t index, const uint8_t *bytes, size_t count)
{
    struct leat_coordinator *coordinator = owner;
    if (index <= coordinator->applied) return LEAT_OK; /* known since it was a learner */
    coordinator->applied = index;
    return co_apply(coordinator, bytes, count);
}

static leat_err hook_snapshot(void *owner, uint8_t **out_bytes, size_t *out_count)
{
    struct leat_coordinator *coordinator = owner;
    /* SUBTLE: a learner that has become a voter has tables ahead of raft's log for a while. As a
     * snapshot of an earlier index they would have entries applied to them a second time. */
    if (coordinator->drive.applied < coordinator->applied) return LEAT_E_AGAIN;
    return leat_machine_snapshot(&coordinator->machine, out_bytes, out_count);
}

static leat_err hook_restore(void *owner, const uint8_t *bytes, size_t count)
{
    struct leat_coordinator *coordinator = owner;
    const struct leat_raft_drive *drive = &coordinator->drive;
    uint64_t index =
        leat_raft_drive_installs(drive) ? drive->install_meta.index : drive->log.snapshot.index;
    if (index <= coordinator->applied) return LEAT_OK; /* known since it was a learner */
    leat_err rc = co_restore(coordinator, bytes, count);
    if (rc == LEAT_OK) coordinator->applied = index;
    return rc;
}

static void hook_send(void *owner, const struct raft_message *message)
{
    struct leat_coordinator *coordinator = owner;
    if (coordinator->links)
        co_raft_send(coordinator, message);
    else
        leat_node_log_warn("coordinator: no connection to voter %llu (%s): a message is dropped",
                           message->server_id, message->server_address);
}

static void hook_state(void *owner)
{
    struct leat_coordinator *coordinator = owner;
    coordinator->leads_since_us = co_now(coordinator);
    if (coordinator->clustered)
        leat_node_log_info("coordinator: this voter leads %s; the term is %llu now",
                           co_leads(coordinator) ? "from here on" : "no longer",
                           (unsigned long long)raft_current_term(&coordinator->drive.raft));
    if (coordinator->clustered && co_leads(coordinator)) co_detect_leads(coordinator);
    /* Proposed entries may still be committed or not: they are proposed again, and take effect once. */
    co_requests_again(coordinator);
    if (!co_leads(coordinator))
        co_change_end(coordinator, LEAT_E_NOT_LEADER,
                      "the coordinator's leader has changed: ask again");
}

static void hook_failed(void *owner, leat_err rc, const char *why)
{
    struct leat_coordinator *coordinator = owner;
    coordinator->failed = rc;
    snprintf(coordinator->failed_why, sizeof coordinator->failed_why,
             "the coordinator has stopped: %s", why);
    co_change_end(coordinator, rc, coordinator->failed_why);
    co_requests_fail(coordinator, rc, coordinator->failed_why);
}

static void hook_configuration(void *owner, uint64_t index,
                               const struct raft_configuration *configuration)
{
    struct leat_coordinator *coordinator = owner;
    if (index > coordinator->applied) { /* else known since it was a learner */
        coordinator->applied = index;
        co_voters_applied(coordinator, configuration);
    }
    co_peers_want(coordinator);
}

/* ---- the actor ---- */

static void node_applied(void *owner, const struct leat_node_info *node)
{
    struct leat_coordinator *coordinator = owner;
    co_detect_node(coordinator, node);
    co_peer_retry(coordinator, node);
    if (coordinator->options.on_node)
        coordinator->options.on_node(coordinator->options.owner, node);
}

static void stream_applied(void *owner, struct leat_stream_desc *desc)
{
    struct leat_coordinator *coordinator = owner;
    if (coordinator->options.on_stream)
        coordinator->options.on_stream(coordinator->options.owner, desc);
}

static void stream_deleted_applied(void *owner, uint32_t stream_id)
{
    struct leat_coordinator *coordinator = owner;
    if (coordinator->options.on_stream_deleted)
        coordinator->options.on_stream_deleted(coordinator->options.owner, stream_id);
}

/* What was found at open is told on the actor, before anything else. */
static void coordinator_begin(struct leat_coordinator *coordinator)
{
    if (coordinator->start != CO_START_OPENED) return;
    co_start_enter(coordinator, CO_START_TOLD);
    struct leat_machine *machine = &coordinator->machine;
    machine->on_stream = stream_applied;
    machine->on_stream_deleted = stream_deleted_applied;
    machine->on_node = node_applied;
    machine->owner = coordinator;
    co_tables_tell(coordinator);
}

void co_wake(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    coordinator_begin(coordinator);
    leat_timers_run(&coordinator->timers);
}

static void ready_done(struct leat_coordinate *request)
{
    struct leat_coordinator *coordinator = request->owner;
    bool ready = request->rc == LEAT_OK;
    co_start_enter(coordinator, ready ? CO_START_READY : CO_START_TOLD);
    if (ready && coordinator->options.on_ready)
        coordinator->options.on_ready(coordinator->options.owner);
}

/* Ready is when something that was proposed after the start is applied here: then everything
 * committed before it is, too. */
static void ready_ask(struct leat_coordinator *coordinator)
{
    if (coordinator->start != CO_START_TOLD || coordinator->failed != LEAT_OK) return;
    co_start_enter(coordinator, CO_START_ASKS);
    coordinator->ready_request = (struct leat_coordinate){.kind = LEAT_COORDINATE_BARRIER,
                                                          .from = LEAT_ACTOR_COORDINATOR,
                                                          .on_done = ready_done,
                                                          .owner = coordinator};
    co_request_queue(coordinator, &coordinator->ready_request);
}

bool co_turn_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    coordinator_begin(coordinator);
    if (coordinator->failed != LEAT_OK) return false;
    ready_ask(coordinator);
    co_requests_advance(coordinator);
    if (coordinator->votes) leat_raft_drive_turn_end(&coordinator->drive);
    if (!coordinator->links || coordinator->failed != LEAT_OK) return false;
    co_change_advance(coordinator);
    co_feed_advance(coordinator);
    return true;
}

void co_turn_tell(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    co_state_tell(coordinator, false);
}

void co_check(const struct leat_coordinator *coordinator)
{
    leat_machine_check(&coordinator->machine);
    if (coordinator->links) leat_links_check(coordinator->links);
}

static void begin_expired(struct leat_timer *timer)
{
    (void)timer; /* the wake-up itself is the point */
}

static void tick_expired(struct leat_timer *timer)
{
    struct leat_coordinator *coordinator = timer->owner;
    uint64_t now_us = co_now(coordinator);
    leat_timer_start(&coordinator->timers, timer, CO_TICK_US);
    if (coordinator->failed != LEAT_OK) return;
    co_form_advance(coordinator);
    co_wait_tell(coordinator, now_us);
    co_feed_tick(coordinator);
    co_requests_tick(coordinator, now_us);
}

/* ---- life ---- */

static leat_err form_alone(struct leat_coordinator *coordinator, struct leat_error *error)
{
    uint8_t cluster_id[16], bytes[64];
    static const uint8_t none[16];
    memcpy(cluster_id, coordinator->options.cluster_id, sizeof cluster_id);
    for (int i = 0; i < 2 && memcmp(coordinator->options.cluster_id, none, 16) == 0; i++) {
        uint64_t half = coordinator->env->random->next(coordinator->env->random->ctx);
        memcpy(cluster_id + 8 * i, &half, sizeof half);
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    co_form_command(&writer, cluster_id);
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    leat_err rc = LEAT_E_NO_MEMORY;
    char address[CO_VOTER_BYTES_MAX + 1] = "1";
    if (coordinator->clustered)
        co_voter_write(address, coordinator->options.node_address, co_own_name(coordinator));
    if (raft_configuration_add(&configuration, coordinator->voter_id, address, RAFT_VOTER) == 0)
        rc = leat_raft_drive_form(&coordinator->drive, &configuration, bytes, writer.used, error);
    raft_configuration_close(&configuration);
    return rc;
}

static leat_err drive_open(struct leat_coordinator *coordinator, bool *out_new,
                           struct leat_error *error)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    bool alone = options->voter_count == 0;
    struct leat_raft_hooks hooks = {.apply = hook_apply,
                                    .snapshot = hook_snapshot,
                                    .restore = hook_restore,
                                    .send = hook_send,
                                    .on_state = hook_state,
                                    .on_failed = hook_failed,
                                    .on_configuration = hook_configuration,
                                    .owner = coordinator};
    struct leat_raft_drive_options drive_options = {
        .address = coordinator->clustered ? options->node_address : "1",
        .election_ms = alone && !coordinator->clustered ? LEAT_RAFT_ELECTION_MS : CO_ELECTION_MS,
        .heartbeat_ms = alone && !coordinator->clustered ? LEAT_RAFT_HEARTBEAT_MS : CO_HEARTBEAT_MS,
        .snapshot_bytes_min = options->snapshot_bytes_min ? options->snapshot_bytes_min
                                                          : LEAT_RAFT_SNAPSHOT_BYTES_MIN,
        .segment_bytes = options->raft_segment_bytes};
    if (options->election_ms) drive_options.election_ms = options->election_ms;
    if (options->heartbeat_ms) drive_options.heartbeat_ms = options->heartbeat_ms;
    leat_err rc = co_voter_load(coordinator, error);
    if (rc != LEAT_OK) return rc;
    drive_options.id = coordinator->voter_id;
    return leat_raft_drive_open(&coordinator->drive, coordinator->env, &coordinator->timers, &hooks,
                                &drive_options, out_new, error);
}

/* Is any voter of this data directory's own log in the list that the operator gave? If none is, log and list belong
 * to two clusters. */
static leat_err check_voters(const struct leat_coordinator *coordinator, struct leat_error *error)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    const struct raft_configuration *known = &coordinator->drive.raft.configuration;
    if (known->n == 0) return LEAT_OK; /* joined, and nothing has come yet */
    struct leat_machine_voter first, voter;
    co_voter_read(known->servers[0].address, &first);
    for (unsigned i = 0; i < known->n; i++) {
        /* A server that was alone until now is at the address it has been given since. */
        co_voter_read(known->servers[i].address, &voter);
        const char *address = strchr(voter.address, ':') ? voter.address : options->node_address;
        for (uint32_t v = 0; v < options->voter_count; v++)
            if (strcmp(address, options->voters[v]) == 0) return LEAT_OK;
    }
    if (known->n == 1 && strchr(first.address, ':') == NULL)
        return leat_error_set(error, LEAT_E_WRONG_CLUSTER,
                              "this data directory is of a server alone: name its own address, %s, "
                              "in --coordinators, or choose another directory",
                              options->node_address);
    return leat_error_set(
        error, LEAT_E_WRONG_CLUSTER,
        "this data directory is of another cluster, whose coordinators (%s%s) are "
        "not in --coordinators: correct the list, or choose another directory",
        first.address, known->n > 1 ? ", ..." : "");
}

/* The other nodes know a voter by its name: under another name they would ignore this voter. */
static leat_err check_name(const struct leat_coordinator *coordinator, struct leat_error *error)
{
    const struct raft_server *own = co_server_of_id(coordinator, coordinator->voter_id);
    struct leat_machine_voter voter = {.name = ""};
    if (own) co_voter_read(own->address, &voter);
    if (!voter.name[0] || strcmp(voter.name, co_own_name(coordinator)) == 0) return LEAT_OK;
    return leat_error_set(
        error, LEAT_E_CONFIG,
        "this data directory has the vote of node '%.100s', and a voter keeps its "
        "name: start it with --node '%.100s'",
        voter.name, voter.name);
}

leat_err co_open(struct leat_coordinator *coordinator, struct leat_error *error)
{
    const struct leat_coordinator_options *options = &coordinator->options;
    bool is_new = false;
    leat_err rc = leat_timers_init(&coordinator->timers, coordinator->env->clock,
                                   LEAT_RAFT_TIMERS + 4 + LEAT_LINKS_TIMERS);
    if (rc == LEAT_OK) rc = drive_open(coordinator, &is_new, error);
    if (rc == LEAT_OK && coordinator->clustered) rc = co_peers_init(coordinator, error);
    if (rc != LEAT_OK) return rc;
    if (is_new && options->voter_count > 0) {
        rc = co_form_open(coordinator, is_new, error);
    } else {
        if (is_new) rc = form_alone(coordinator, error);
        if (rc == LEAT_OK) rc = co_vote_start(coordinator, error);
        if (rc == LEAT_OK && options->voter_count > 0) rc = check_voters(coordinator, error);
        if (rc == LEAT_OK && coordinator->clustered) rc = check_name(coordinator, error);
    }
    if (rc != LEAT_OK) return rc;
    if (coordinator->clustered) {
        co_identity_update(coordinator);
        co_peers_want(coordinator);
        leat_timer_start(&coordinator->timers, &coordinator->tick_timer, CO_TICK_US);
        co_detect_start(coordinator);
    }
    leat_timer_start(&coordinator->timers, &coordinator->begin_timer, 0);
    return LEAT_OK;
}

leat_err co_create(const struct leat_env *env, const struct leat_coordinator_options *options,
                   co_recovery_request_fn *on_recovery, struct leat_coordinator **out_coordinator,
                   struct leat_error *error)
{
    if (options->voter_count > LEAT_VOTERS_MAX || (options->voter_count && !options->node_address))
        return leat_error_set(error, LEAT_E_CONFIG,
                              "a cluster has 1 to %d coordinators, and each node an address of its "
                              "own",
                              LEAT_VOTERS_MAX);
    struct leat_coordinator *coordinator =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *coordinator);
    if (!coordinator)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the coordinator");
    coordinator->env = env;
    coordinator->options = *options;
    coordinator->clustered = options->node_address != NULL;
    LEAT_ASSERT(!coordinator->clustered || (options->on_collect && options->on_pull));
    leat_list_init(&coordinator->peers);
    coordinator->peer_events = &co_serve_events;
    coordinator->on_recovery = on_recovery;
    co_requests_init(coordinator);
    co_detect_init(coordinator);
    leat_machine_init(&coordinator->machine, options->cores);
    coordinator->begin_timer = (struct leat_timer){.on_expired = begin_expired};
    coordinator->tick_timer = (struct leat_timer){.on_expired = tick_expired, .owner = coordinator};
    *out_coordinator = coordinator;
    return LEAT_OK;
}

void co_close(struct leat_coordinator *coordinator)
{
    co_detect_fini(coordinator);
    co_peers_fini(coordinator);
    leat_raft_drive_close(&coordinator->drive);
    co_install_fini(coordinator);
}

void co_destroy(struct leat_coordinator **coordinator)
{
    struct leat_coordinator *it = *coordinator;
    leat_machine_fini(&it->machine);
    leat_timers_fini(&it->timers);
    leat_mem_free(it->form_body);
    leat_mem_free(it->feed_in);
    leat_mem_free(it);
    *coordinator = NULL;
}

const struct leat_env *co_env(const struct leat_coordinator *coordinator)
{
    return coordinator->env;
}
