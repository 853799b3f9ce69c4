/* The coordinator as an actor: requests in, entries through raft, answers out. */
#include "coordinator/coordinator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diary.h"
#include "base/mem.h"
#include "coordinator/adopt.h"
#include "coordinator/machine.h"
#include "coordinator/raft_drive.h"

enum {
    SUBMIT_COMMANDS_MAX = 2048,
    SUBMIT_BYTES_MAX = 1024 * 1024,
    COMMAND_BYTES_MAX = 4096,      /* of all kinds but OPENED and ADOPT */
    OPENED_BYTES_PER_LOG_MAX = 16, /* array of three 32-bit numbers */
    ADOPT_TRIES_MAX = 8,
};

struct leat_coordinator {
    const struct leat_env *env;
    struct leat_coordinator_options options;
    struct leat_timers timers;
    struct leat_raft_drive drive;
    struct leat_machine machine;
    struct leat_timer begin_timer;
    bool begun;     /* streams were told */
    bool confirmed; /* an entry of this leadership is applied: all before it is, too */
    bool confirming;
    uint64_t confirm_index;
    leat_err failed;
    char failed_why[LEAT_ERROR_TEXT_BYTES];
    struct leat_list queue; /* requests that wait for a round */
    size_t queue_count;
    struct leat_list pending; /* proposed, ascending index */
    struct leat_coordinate *adopting;
    unsigned adopt_tries;
    uint8_t *scratch; /* commands of one submit */
    size_t scratch_capacity;
    struct raft_buffer commands[SUBMIT_COMMANDS_MAX];
};

/* ---- answers ---- */

static void answer_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_coordinate *request = LEAT_CONTAINER(mail, struct leat_coordinate, mail);
    request->on_done(request);
}

static void request_answer(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    if (request->rc == LEAT_OK) request->error.code = LEAT_OK;
    request->mail.deliver = answer_deliver;
    const struct leat_post *post = coordinator->env->post;
    post->send(post->ctx, request->from, &request->mail);
}

static void request_refuse(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                           leat_err rc, const char *why)
{
    request->rc = leat_error_set(&request->error, rc, "%s", why);
    request_answer(coordinator, request);
}

static void request_succeed(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                            const struct leat_machine_result *result)
{
    request->stream_id = result->stream_id;
    request->first_id = result->first_id;
    request->id_count = result->id_count;
    switch (request->kind) {
    case LEAT_COORDINATE_STREAM_CREATE:
        request->desc = result->desc;
        leat_stream_desc_ref(request->desc);
        break;
    case LEAT_COORDINATE_NODE_UP:
        request->incarnation = result->incarnation;
        memcpy(request->cluster_id, coordinator->machine.cluster_id, sizeof request->cluster_id);
        break;
    case LEAT_COORDINATE_ADOPT:
        request->incarnation = result->incarnation;
        request->epoch = result->epoch;
        for (size_t i = 0; i < request->decision_count; i++)
            request->decisions[i].epoch = result->epoch;
        break;
    case LEAT_COORDINATE_ACCEPT_LOSS:
        request->epoch = result->epoch;
        break;
    case LEAT_COORDINATE_STREAM_DELETE:
    case LEAT_COORDINATE_PRODUCER_IDS:
    case LEAT_COORDINATE_OPENED:
    case LEAT_COORDINATE_BARRIER:
        break;
    }
    request->rc = LEAT_OK;
    request_answer(coordinator, request);
}

static void decisions_drop(struct leat_coordinate *request)
{
    leat_mem_free(request->decisions);
    request->decisions = NULL;
    request->decision_count = 0;
}

static void request_applied(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                            const struct leat_machine_result *result)
{
    if (request == coordinator->adopting) coordinator->adopting = NULL;
    if (result->rc == LEAT_OK) {
        request_succeed(coordinator, request, result);
        return;
    }
    if (request->kind == LEAT_COORDINATE_ADOPT) {
        decisions_drop(request);
        if (result->rc == LEAT_E_AGAIN && ++coordinator->adopt_tries < ADOPT_TRIES_MAX) {
            /* Decided on tables that have changed since: decide again. */
            leat_list_push_front(&coordinator->queue, &request->link);
            coordinator->queue_count++;
            return;
        }
    }
    request->rc = result->rc;
    request->error = result->error;
    request_answer(coordinator, request);
}

/* Proposed, and nobody can say any more whether it will be committed. */
static void pending_lose(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&coordinator->pending))) {
        struct leat_coordinate *request = LEAT_CONTAINER(link, struct leat_coordinate, link);
        if (request->kind == LEAT_COORDINATE_ADOPT) decisions_drop(request);
        request_refuse(coordinator, request, rc, why);
    }
    coordinator->adopting = NULL;
}

static void queue_refuse(struct leat_coordinator *coordinator, leat_err rc, const char *why)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&coordinator->queue)))
        request_refuse(coordinator, LEAT_CONTAINER(link, struct leat_coordinate, link), rc, why);
    coordinator->queue_count = 0;
}

/* ---- raft's hooks ---- */

static leat_err hook_apply(void *owner, uint64_t index, const uint8_t *bytes, size_t count)
{
    struct leat_coordinator *coordinator = owner;
    struct leat_machine_result result;
    leat_err rc = leat_machine_apply(&coordinator->machine, bytes, count, &result);
    if (rc != LEAT_OK) return rc;
    if (coordinator->confirming && index == coordinator->confirm_index) {
        coordinator->confirming = false;
        coordinator->confirmed = true;
        if (coordinator->options.on_ready)
            coordinator->options.on_ready(coordinator->options.owner);
    }
    while (!leat_list_empty(&coordinator->pending)) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->pending.next, struct leat_coordinate, link);
        if (request->index > index) break;
        leat_list_remove(&request->link);
        request_applied(coordinator, request, &result);
    }
    return LEAT_OK;
}

static leat_err hook_snapshot(void *owner, uint8_t **out_bytes, size_t *out_count)
{
    struct leat_coordinator *coordinator = owner;
    return leat_machine_snapshot(&coordinator->machine, out_bytes, out_count);
}

static leat_err hook_restore(void *owner, const uint8_t *bytes, size_t count)
{
    struct leat_coordinator *coordinator = owner;
    return leat_machine_restore(&coordinator->machine, bytes, count);
}

/* Voters are peers on the net port; a configuration of one names none. */
static void hook_send(void *owner, const struct raft_message *message)
{
    (void)owner;
    leat_diary_warn("coordinator: no connection to voter %llu (%s): a message is dropped",
                    message->server_id, message->server_address);
}

static void hook_state(void *owner)
{
    struct leat_coordinator *coordinator = owner;
    coordinator->confirmed = coordinator->confirming = false;
    if (!leat_raft_drive_leads(&coordinator->drive))
        pending_lose(coordinator, LEAT_E_TIMEOUT,
                     "the coordinator lost its leadership; whether this took effect is unknown");
}

static void hook_failed(void *owner, leat_err rc, const char *why)
{
    struct leat_coordinator *coordinator = owner;
    coordinator->failed = rc;
    snprintf(coordinator->failed_why, sizeof coordinator->failed_why,
             "the coordinator has stopped: %s", why);
    coordinator->confirmed = coordinator->confirming = false;
    pending_lose(coordinator, rc, coordinator->failed_why);
    queue_refuse(coordinator, rc, coordinator->failed_why);
}

/* ---- requests to commands ---- */

static size_t command_bytes_max(const struct leat_coordinate *request)
{
    if (request->kind == LEAT_COORDINATE_OPENED)
        return 64 + request->log_count * OPENED_BYTES_PER_LOG_MAX;
    return COMMAND_BYTES_MAX;
}

static void log_ref_write(struct leat_msg_writer *writer, struct leat_log_ref log)
{
    leat_msg_write_u64(writer, log.stream);
    leat_msg_write_u64(writer, log.streamlet);
    leat_msg_write_u64(writer, log.log);
}

static void command_head(struct leat_msg_writer *writer, enum leat_command_kind kind,
                         uint32_t fields)
{
    leat_msg_write_array(writer, 2 + fields);
    leat_msg_write_u64(writer, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(writer, (uint64_t)kind);
}

static void opened_write(struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    command_head(writer, LEAT_COMMAND_OPENED, 2);
    leat_msg_write_u64(writer, request->epoch.v);
    leat_msg_write_array(writer, (uint32_t)request->log_count);
    for (size_t i = 0; i < request->log_count; i++) {
        leat_msg_write_array(writer, 3);
        log_ref_write(writer, request->logs[i]);
    }
}

static void command_write(const struct leat_coordinator *coordinator,
                          struct leat_msg_writer *writer, const struct leat_coordinate *request)
{
    /* Defaults of this node go into the entry: voters with other cores must apply the same. What
     * can't be completed is refused, with its sentence, when the entry is applied. */
    struct leat_stream_settings settings = request->settings;
    if (request->kind == LEAT_COORDINATE_STREAM_CREATE &&
        leat_stream_settings_complete(&settings, coordinator->options.cores, NULL) != LEAT_OK)
        LEAT_MAYBE(true);
    switch (request->kind) {
    case LEAT_COORDINATE_STREAM_CREATE:
        command_head(writer, LEAT_COMMAND_STREAM_CREATE, 2);
        leat_msg_write_string(writer, request->name, strlen(request->name));
        leat_msg_settings_write(writer, &settings);
        break;
    case LEAT_COORDINATE_STREAM_DELETE:
        command_head(writer, LEAT_COMMAND_STREAM_DELETE, 1);
        leat_msg_write_string(writer, request->name, strlen(request->name));
        break;
    case LEAT_COORDINATE_PRODUCER_IDS:
        command_head(writer, LEAT_COMMAND_PRODUCER_IDS, 1);
        leat_msg_write_u64(writer, LEAT_PRODUCER_ID_BLOCK);
        break;
    case LEAT_COORDINATE_OPENED:
        opened_write(writer, request);
        break;
    case LEAT_COORDINATE_NODE_UP:
        command_head(writer, LEAT_COMMAND_NODE_UP, 3);
        leat_msg_write_string(writer, request->node_name, strlen(request->node_name));
        leat_msg_write_string(writer, request->address, strlen(request->address));
        leat_msg_write_u64(writer, request->cores);
        break;
    case LEAT_COORDINATE_ACCEPT_LOSS:
        command_head(writer, LEAT_COMMAND_ACCEPT_LOSS, 5);
        log_ref_write(writer, request->logs[0]);
        leat_msg_write_u64(writer, request->segment);
        leat_msg_write_u64(writer, request->next_offset);
        break;
    case LEAT_COORDINATE_ADOPT: /* has its own way */
    case LEAT_COORDINATE_BARRIER:
        command_head(writer, LEAT_COMMAND_BARRIER, 0);
        break;
    }
}

/* What can be refused without asking the tables, because an entry could not even hold it. */
static const char *request_shape_offence(const struct leat_coordinate *request)
{
    if (request->kind == LEAT_COORDINATE_OPENED && request->log_count > LEAT_OPENED_LOGS_MAX)
        return "too many logs in one request";
    if (request->kind == LEAT_COORDINATE_ACCEPT_LOSS && request->log_count != 1)
        return "exactly one log is expected";
    if (request->kind == LEAT_COORDINATE_NODE_UP &&
        (!request->node_name || !request->address ||
         strlen(request->node_name) > LEAT_NODE_NAME_BYTES_MAX ||
         strlen(request->address) > LEAT_ADDRESS_BYTES_MAX))
        return "a node's name or address is missing or too long";
    return NULL;
}

/* ---- proposing ---- */

static leat_err scratch_reserve(struct leat_coordinator *coordinator, size_t bytes)
{
    if (bytes <= coordinator->scratch_capacity) return LEAT_OK;
    void *scratch = leat_mem_realloc(LEAT_MEM_COORDINATOR, coordinator->scratch, bytes, 1);
    if (!scratch) return LEAT_E_NO_MEMORY;
    coordinator->scratch = scratch;
    coordinator->scratch_capacity = bytes;
    return LEAT_OK;
}

static void confirm_leadership(struct leat_coordinator *coordinator)
{
    uint8_t bytes[16];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    command_head(&writer, LEAT_COMMAND_BARRIER, 0);
    struct raft_buffer command = {.base = bytes, .len = writer.used};
    /* Set first: nothing says that the entry is not applied inside. */
    coordinator->confirming = true;
    coordinator->confirm_index = leat_raft_log_last_index(&coordinator->drive.log) + 1;
    uint64_t index;
    if (leat_raft_drive_submit(&coordinator->drive, &command, 1, &index) != LEAT_OK)
        coordinator->confirming = false;
}

static void adopt_propose(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    uint8_t *bytes = NULL;
    unsigned count = 0;
    coordinator->adopting = request;
    uint64_t attempt =
        coordinator->env->random->next(coordinator->env->random->ctx) | 1; /* 0 means none */
    leat_err rc = leat_adopt_decide(&coordinator->machine, request, &request->error);
    if (rc == LEAT_OK)
        rc = leat_adopt_encode(&coordinator->machine, request, attempt, coordinator->commands,
                               SUBMIT_COMMANDS_MAX, &count, &bytes, &request->error);
    uint64_t first = 0;
    if (rc == LEAT_OK) {
        /* On the list before it is proposed: with the last chunk its answer is known. */
        request->index = leat_raft_log_last_index(&coordinator->drive.log) + count;
        leat_list_push_back(&coordinator->pending, &request->link);
        rc = leat_raft_drive_submit(&coordinator->drive, coordinator->commands, count, &first);
        leat_mem_free(bytes);
        if (rc == LEAT_OK || coordinator->failed != LEAT_OK) return;
        leat_list_remove(&request->link);
        (void)leat_error_set(&request->error, rc, "the adoption can't be proposed");
    }
    coordinator->adopting = NULL;
    decisions_drop(request);
    request->rc = rc;
    request_answer(coordinator, request);
}

/* Take as many waiting requests as one submit may carry. */
static unsigned queue_take(struct leat_coordinator *coordinator, struct leat_list *taken)
{
    size_t used = 0;
    unsigned count = 0;
    while (!leat_list_empty(&coordinator->queue) && count < SUBMIT_COMMANDS_MAX) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->queue.next, struct leat_coordinate, link);
        if (request->kind == LEAT_COORDINATE_ADOPT) break;
        size_t bytes = command_bytes_max(request);
        if (count > 0 && used + bytes > SUBMIT_BYTES_MAX) break;
        if (scratch_reserve(coordinator, SUBMIT_BYTES_MAX > bytes ? SUBMIT_BYTES_MAX : bytes) !=
            LEAT_OK)
            break;
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, coordinator->scratch + used, bytes);
        command_write(coordinator, &writer, request);
        LEAT_ASSERT(!writer.overflow);
        coordinator->commands[count++] =
            (struct raft_buffer){.base = coordinator->scratch + used, .len = writer.used};
        used += writer.used;
        leat_list_remove(&request->link);
        coordinator->queue_count--;
        leat_list_push_back(taken, &request->link);
    }
    return count;
}

static void queue_submit(struct leat_coordinator *coordinator)
{
    struct leat_list taken;
    leat_list_init(&taken);
    unsigned count = queue_take(coordinator, &taken);
    if (count == 0) return;
    uint64_t index = leat_raft_log_last_index(&coordinator->drive.log);
    struct leat_list *link, *last = coordinator->pending.prev;
    while ((link = leat_list_pop_front(&taken))) {
        LEAT_CONTAINER(link, struct leat_coordinate, link)->index = ++index;
        leat_list_push_back(&coordinator->pending, link);
    }
    uint64_t first;
    leat_err rc = leat_raft_drive_submit(&coordinator->drive, coordinator->commands, count, &first);
    if (rc == LEAT_OK || coordinator->failed != LEAT_OK) return;
    /* Nothing was proposed: definite. */
    while (coordinator->pending.prev != last) {
        struct leat_coordinate *request =
            LEAT_CONTAINER(coordinator->pending.prev, struct leat_coordinate, link);
        leat_list_remove(&request->link);
        request_refuse(coordinator, request, rc, leat_err_text(rc));
    }
}

static void queue_advance(struct leat_coordinator *coordinator)
{
    if (coordinator->drive.log.full && !leat_list_empty(&coordinator->queue))
        queue_refuse(coordinator, LEAT_E_DISK_FULL,
                     "the disk has no room for the coordinator's log");
    /* One round at a time: what comes meanwhile goes together into the next. */
    if (!coordinator->confirmed || leat_raft_drive_busy(&coordinator->drive) ||
        coordinator->adopting || leat_list_empty(&coordinator->queue))
        return;
    struct leat_coordinate *request =
        LEAT_CONTAINER(coordinator->queue.next, struct leat_coordinate, link);
    if (request->kind != LEAT_COORDINATE_ADOPT) {
        queue_submit(coordinator);
        return;
    }
    /* Alone, on tables in which everything proposed before is applied. */
    if (!leat_list_empty(&coordinator->pending)) return;
    leat_list_remove(&request->link);
    coordinator->queue_count--;
    adopt_propose(coordinator, request);
}

static void request_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_coordinator *coordinator = actor;
    struct leat_coordinate *request = LEAT_CONTAINER(mail, struct leat_coordinate, mail);
    leat_list_init(&request->link);
    const char *offence = request_shape_offence(request);
    if (coordinator->failed != LEAT_OK)
        request_refuse(coordinator, request, coordinator->failed, coordinator->failed_why);
    else if (offence)
        request_refuse(coordinator, request, LEAT_E_INVALID, offence);
    else if (coordinator->queue_count >= LEAT_COORDINATE_QUEUE_MAX)
        request_refuse(coordinator, request, LEAT_E_AGAIN,
                       "as many requests wait for the coordinator as may");
    else {
        if (request->kind == LEAT_COORDINATE_ADOPT) coordinator->adopt_tries = 0;
        leat_list_push_back(&coordinator->queue, &request->link);
        coordinator->queue_count++;
    }
}

void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    request->from = post->self;
    request->rc = LEAT_OK;
    request->mail.deliver = request_deliver;
    post->send(post->ctx, LEAT_ACTOR_COORDINATOR, &request->mail);
}

/* ---- the actor ---- */

/* What was found at open is told on the actor, before anything else. */
static void coordinator_begin(struct leat_coordinator *coordinator)
{
    if (coordinator->begun) return;
    coordinator->begun = true;
    struct leat_machine *machine = &coordinator->machine;
    machine->on_stream = coordinator->options.on_stream;
    machine->on_stream_deleted = coordinator->options.on_stream_deleted;
    machine->owner = coordinator->options.owner;
    for (uint32_t i = 0; i < machine->stream_count && machine->on_stream; i++)
        machine->on_stream(machine->owner, machine->streams[i].desc);
}

static void actor_wake(void *actor)
{
    struct leat_coordinator *coordinator = actor;
    coordinator_begin(coordinator);
    leat_timers_run(&coordinator->timers);
}

static void actor_turn_end(void *actor)
{
    struct leat_coordinator *coordinator = actor;
    coordinator_begin(coordinator);
    if (coordinator->failed != LEAT_OK) return;
    if (leat_raft_drive_leads(&coordinator->drive) && !coordinator->confirmed &&
        !coordinator->confirming)
        confirm_leadership(coordinator);
    if (!leat_raft_drive_leads(&coordinator->drive))
        queue_refuse(coordinator, LEAT_E_NOT_LEADER, "this node does not lead the coordinator");
    queue_advance(coordinator);
    leat_raft_drive_turn_end(&coordinator->drive);
}

const struct leat_actor_ops leat_coordinator_actor = {.on_wake = actor_wake,
                                                      .on_turn_end = actor_turn_end};

static void begin_expired(struct leat_timer *timer)
{
    (void)timer; /* the wake-up itself is the point */
}

/* ---- life ---- */

static leat_err form(struct leat_coordinator *coordinator, struct leat_error *error)
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
    command_head(&writer, LEAT_COMMAND_FORM, 1);
    leat_msg_write_bin(&writer, cluster_id, sizeof cluster_id);
    LEAT_ASSERT(!writer.overflow);
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    leat_err rc = LEAT_E_NO_MEMORY;
    if (raft_configuration_add(&configuration, 1, "1", RAFT_VOTER) == 0)
        rc = leat_raft_drive_form(&coordinator->drive, &configuration, bytes, writer.used, error);
    raft_configuration_close(&configuration);
    return rc;
}

leat_err leat_coordinator_open(const struct leat_env *env,
                               const struct leat_coordinator_options *options,
                               struct leat_coordinator **out_coordinator, struct leat_error *error)
{
    struct leat_coordinator *coordinator =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *coordinator);
    if (!coordinator)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the coordinator");
    coordinator->env = env;
    coordinator->options = *options;
    leat_list_init(&coordinator->queue);
    leat_list_init(&coordinator->pending);
    leat_machine_init(&coordinator->machine, options->cores);
    struct leat_raft_hooks hooks = {.apply = hook_apply,
                                    .snapshot = hook_snapshot,
                                    .restore = hook_restore,
                                    .send = hook_send,
                                    .on_state = hook_state,
                                    .on_failed = hook_failed,
                                    .owner = coordinator};
    struct leat_raft_drive_options drive_options = {.id = 1,
                                                    .address = "1",
                                                    .election_ms = LEAT_RAFT_ELECTION_MS,
                                                    .heartbeat_ms = LEAT_RAFT_HEARTBEAT_MS,
                                                    .snapshot_bytes_min =
                                                        LEAT_RAFT_SNAPSHOT_BYTES_MIN};
    bool is_new = false;
    leat_err rc = leat_timers_init(&coordinator->timers, env->clock, LEAT_RAFT_TIMERS + 1);
    if (rc == LEAT_OK)
        rc = leat_raft_drive_open(&coordinator->drive, env, &coordinator->timers, &hooks,
                                  &drive_options, &is_new, error);
    if (rc == LEAT_OK && is_new) rc = form(coordinator, error);
    if (rc == LEAT_OK) rc = leat_raft_drive_start(&coordinator->drive, error);
    if (rc != LEAT_OK) {
        if (error && error->code != rc) (void)leat_error_set(error, rc, "%s", leat_err_text(rc));
        leat_coordinator_close(&coordinator);
        return rc;
    }
    coordinator->begin_timer = (struct leat_timer){.on_expired = begin_expired};
    leat_timer_start(&coordinator->timers, &coordinator->begin_timer, 0);
    *out_coordinator = coordinator;
    return LEAT_OK;
}

void leat_coordinator_close(struct leat_coordinator **coordinator)
{
    struct leat_coordinator *it = *coordinator;
    if (!it) return;
    leat_raft_drive_close(&it->drive);
    leat_machine_fini(&it->machine);
    leat_timers_fini(&it->timers);
    leat_mem_free(it->scratch);
    leat_mem_free(it);
    *coordinator = NULL;
}

void leat_coordinator_cluster_id(const struct leat_coordinator *coordinator, uint8_t out_id[16])
{
    memcpy(out_id, coordinator->machine.cluster_id, 16);
}
