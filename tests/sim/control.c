/* SPDX-License-Identifier: Apache-2.0 */
/* The operator: makes the streams, watches the logs, and accepts loss where a log of level memory
 * says after a power cut that its end is missing. */
#include "tests/sim/aims.h"
#include "tests/sim/stage.h"
#include "tests/sim/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "groups/groups.h"
#include "wire/message_cluster.h"

/* Between two looks at everything. */
enum { ROUND_US = 60000, CLUSTER_ROUND_US = 150000, HURRIED_ROUND_US = 5000 };

struct control {
    struct sim_client *client;
    struct leat_request request;
    struct leat_client_lookup lookup;
    uint8_t control[512];
    uint32_t stream;    /* the one that is made or watched now */
    uint32_t streamlet; /* of a cluster: whose owner is asked now */
    bool refresh;
    bool replace_unheard; /* a replacement was asked for, and whether it was done is unknown */
    bool made;
    uint64_t trimmed_to[CHECK_STREAMLETS_MAX]
                       [CHECK_LOGS_MAX]; /* of the stream, when it was asked */
    struct leat_log_ref log;             /* that is being recovered */
    bool for_trap;       /* as a trap wants it: unless it is real it excuses nothing */
    uint64_t end_at_cut; /* of it */
    uint64_t refused_us; /* since when a stream is refused; 0: it is not */
    struct {
        struct leat_log_ref log; /* its loss is refused, as the log has a later epoch */
        uint64_t since_us, last_us;
    } stale;
};

static void control_next(struct sim_world *world, struct sim_event *event);

static void later(struct control *control, uint64_t delay_us)
{
    sim_actor_post(control->client->actor, delay_us, control_next, control);
}

static void on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error);

/* log: whose owner is asked; NULL: anybody. */
static void send(struct control *control, enum leat_kind kind, struct leat_msg_writer *writer,
                 const struct leat_log_ref *log)
{
    LEAT_ASSERT(!writer->overflow);
    control->request = (struct leat_request){
        .kind = kind,
        .control = control->control,
        .control_bytes = writer->used,
        .on_done = on_done,
        .owner = control,
    };
    if (log) control->request.log = *log;
    leat_err rc = leat_client_send(control->client->client, &control->request);
    control->refresh = rc != LEAT_OK;
    if (rc != LEAT_OK) later(control, control->made ? 30000 : 5000);
}

static bool in_cluster(const struct control *control)
{
    return control->client->scenario->server_count > 1;
}

/* A server alone knows at once of all that was given up. (In a cluster an earlier owner may be asked, which has not
 * heard of the new owner.) */
static void trims_note(struct control *control)
{
    const struct scenario *scenario = control->client->scenario;
    for (uint32_t s = 0; s < CHECK_STREAMLETS_MAX; s++)
        for (uint32_t q = 0; q < CHECK_LOGS_MAX; q++)
            control->trimmed_to[s][q] =
                control->made && !in_cluster(control)
                    ? check_trimmed_to(scenario->check,
                                       (struct leat_log_ref){control->stream, s, q})
                    : 0;
}

static void describe_send(struct control *control, const struct leat_log_ref *log)
{
    struct leat_msg_writer writer;
    trims_note(control);
    const char *name = control->client->scenario->streams[control->stream].name;
    leat_msg_writer_init(&writer, control->control, sizeof control->control);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, name, strlen(name));
    send(control, LEAT_KIND_STREAM_DESCRIBE, &writer, log);
}

static void describe_streamlet(struct control *control)
{
    uint32_t id = control->client->scenario->streams[control->stream].id;
    struct leat_log_ref log = {id, control->streamlet, 0};
    describe_send(control, &log);
}

/* Records may be lost. Else a trap has only made the log look so. */
static bool is_real(const struct control *control)
{
    return !control->for_trap || control->client->scenario->loss_wish.real;
}

static void recover_send(struct control *control)
{
    struct leat_msg_writer writer;
    const char *name = control->client->scenario->streams[control->log.stream].name;
    leat_msg_writer_init(&writer, control->control, sizeof control->control);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_u64(&writer, control->log.streamlet);
    leat_msg_write_u64(&writer, control->log.log);
    leat_msg_write_bool(&writer, true);
    control->end_at_cut = check_end_at_cut(control->client->scenario->check, control->log);
    if (is_real(control)) check_giving_up(control->client->scenario->check, control->log, true);
    struct leat_log_ref log = control->log;
    log.stream = control->client->scenario->streams[control->log.stream].id;
    send(control, LEAT_KIND_LOG_RECOVER, &writer, in_cluster(control) ? &log : NULL);
    if (in_cluster(control)) sim_aim_loss_asked(control->client->scenario);
}

/* Only a log's owner knows how it is. */
static void looked_up(struct leat_client_lookup *lookup, leat_err rc,
                      const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct control *control = lookup->owner;
    (void)stream, (void)error;
    control->refresh = rc != LEAT_OK;
    if (rc != LEAT_OK)
        later(control, 20000);
    else if (control->for_trap)
        recover_send(control);
    else
        describe_streamlet(control);
}

static void look_up(struct control *control)
{
    control->lookup =
        (struct leat_client_lookup){.timeout_us = 2000000, .on_done = looked_up, .owner = control};
    memcpy(control->lookup.name, control->client->scenario->streams[control->stream].name,
           sizeof control->client->scenario->streams[0].name);
    leat_client_lookup(control->client->client, &control->lookup);
}

static void create_send(struct control *control)
{
    struct leat_msg_writer writer;
    const struct sim_stream *stream = &control->client->scenario->streams[control->stream];
    leat_msg_writer_init(&writer, control->control, sizeof control->control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, stream->name, strlen(stream->name));
    leat_msg_settings_write(&writer, &stream->settings);
    send(control, LEAT_KIND_STREAM_CREATE, &writer, NULL);
}

static void all_know(struct sim_world *world, struct sim_event *event)
{
    ((struct scenario *)event->a)->streams_made = true;
    (void)world;
}

static void made(struct control *control, uint32_t id)
{
    struct scenario *scenario = control->client->scenario;
    scenario->streams[control->stream].id = id;
    sim_trace_stream_is(control->stream, id);
    if (++control->stream < SIM_STREAMS) {
        later(control, 10);
        return;
    }
    control->stream = 0;
    control->made = true;
    /* Used at once, also by way of nodes that have not heard of it yet. */
    sim_world_at(scenario->world, scenario->world->now_us, all_know, scenario);
    later(control, 20000);
}

static bool all_ready(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!scenario->servers[i].ready) return false;
    return true;
}

/* As many copies as there are machines are refused while one of them is down, or has been declared crashed
 * and is about to hear of it; any stream while the heaps take all that the budget leaves them. */
static void refused(struct control *control, leat_err rc)
{
    enum { REFUSED_US_MAX = 5 * 1000 * 1000 };
    struct scenario *scenario = control->client->scenario;
    uint64_t now_us = scenario->world->now_us;
    bool full = rc == LEAT_E_TOO_MANY && scenario->heap_bytes > 0;
    if (leat_err_class(rc) != LEAT_CLASS_REJECT || !all_ready(scenario) || full)
        control->refused_us = 0;
    else if (control->refused_us == 0)
        control->refused_us = now_us;
    else if (now_us - control->refused_us > REFUSED_US_MAX)
        sim_fail(scenario->world, "A10 stuck: stream refused: %s", leat_err_name(rc));
}

static void create_done(struct control *control, leat_err rc, const struct leat_frame *answer)
{
    if (rc == LEAT_E_STREAM_EXISTS) { /* an earlier answer was lost */
        describe_send(control, NULL);
        return;
    }
    if (rc != LEAT_OK) {
        refused(control, rc);
        later(control, 5000);
        return;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_read_array(&reader);
    control->refused_us = 0;
    made(control, leat_msg_read_u32(&reader));
}

/* Somebody wants a streamlet elsewhere, while it is written to and read. */
static void move_send(struct control *control)
{
    struct scenario *scenario = control->client->scenario;
    struct sim_rng *rng = &control->client->rng;
    const struct sim_stream *stream = &scenario->streams[sim_rng_below(rng, SIM_STREAMS)];
    const struct sim_server *to = &scenario->servers[sim_rng_below(rng, scenario->server_count)];
    uint32_t streamlet = (uint32_t)sim_rng_below(rng, stream->settings.streamlets);
    bool homes = scenario->wish.to && scenario->wish.stream == SIM_STREAMS;
    if (scenario->wish.to) {
        if (!homes) stream = &scenario->streams[scenario->wish.stream];
        streamlet = scenario->wish.streamlet;
        to = scenario->wish.to;
        scenario->wish.to = NULL;
    }
    const char *name = homes ? LEAT_GROUPS_STREAM_NAME : stream->name;
    struct leat_msg_streamlet_move move = {
        .stream = {name, (uint32_t)strlen(name)},
        .streamlet = streamlet,
        .node = {to->name, (uint32_t)strlen(to->name)},
    };
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control->control, sizeof control->control);
    leat_msg_streamlet_move_write(&writer, &move);
    if (!homes) scenario->move_us[stream - scenario->streams][streamlet] = scenario->world->now_us;
    sim_trace(scenario->world, "%s streamlet %u goes to %s", name, move.streamlet, to->name);
    send(control, LEAT_KIND_STREAMLET_MOVE, &writer, NULL);
}

/* A voter with an empty disk votes again when an operator says that it has lost its data. */
static void replace_send(struct control *control, const struct sim_server *server)
{
    struct leat_msg_writer writer;
    struct leat_msg_node_change change = {LEAT_NODE_CHANGE_REPLACE,
                                          {server->name, (uint32_t)strlen(server->name)}};
    leat_msg_writer_init(&writer, control->control, sizeof control->control);
    leat_msg_node_change_write(&writer, &change);
    sim_trace(control->client->scenario->world, "%s is replaced", server->name);
    send(control, LEAT_KIND_NODE_CHANGE, &writer, NULL);
}

static void watch_next(struct control *control)
{
    const struct scenario *scenario = control->client->scenario;
    const struct sim_server *victim = scenario->victim;
    if (victim && victim->forgot && victim->ready) {
        replace_send(control, victim);
        return;
    }
    if (!scenario->faults_over &&
        (sim_rng_chance(&control->client->rng, scenario->move_per_mille) || scenario->wish.to)) {
        move_send(control);
        return;
    }
    if (scenario->loss_wish.wanted) {
        control->log = scenario->loss_wish.log;
        control->stream = control->log.stream;
        control->streamlet = control->log.streamlet;
        control->for_trap = true;
        if (is_real(control) && !control->refresh) /* a look-up may wait for the owner's core 0 */
            recover_send(control);
        else
            look_up(control);
        return;
    }
    uint32_t streamlets = scenario->streams[control->stream].settings.streamlets;
    if (in_cluster(control) && ++control->streamlet < streamlets) {
        later(control, 100);
        return;
    }
    control->streamlet = 0;
    control->stream = (control->stream + 1) % SIM_STREAMS;
    if (control->stream == 0) control->client->scenario->operator_rounds++;
    uint64_t round_us = in_cluster(control) ? CLUSTER_ROUND_US : ROUND_US;
    if (scenario->hurried) round_us = HURRIED_ROUND_US;
    later(control, control->stream ? 100 : round_us);
}

/* Nobody has answered for it yet: whoever was asked had no word of its owner. */
static bool is_unknown(const struct leat_msg_log_info *info)
{
    enum leat_err_class class = leat_err_class(info->code);
    return info->state == 0 && info->code != LEAT_OK &&
           (class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE);
}

/* [name, id, settings, [log...]] */
static void describe_done(struct control *control, leat_err rc, const struct leat_frame *answer)
{
    struct scenario *scenario = control->client->scenario;
    if (rc != LEAT_OK) {
        control->refresh = true;
        later(control, 20000);
        return;
    }
    struct leat_msg_reader reader;
    struct leat_stream_settings settings;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_string(&reader);
    uint32_t id = leat_msg_read_u32(&reader);
    if (!control->made) {
        made(control, id);
        return;
    }
    leat_msg_settings_read(&reader, &settings);
    uint32_t count = leat_msg_read_array(&reader);
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        struct leat_msg_log_info info;
        leat_msg_log_info_read(&reader, &info);
        struct leat_log_ref log = {control->stream, info.at.streamlet, info.at.log};
        if (reader.failed) break;
        if (in_cluster(control) && log.streamlet != control->streamlet) continue;
        if (in_cluster(control) && is_unknown(&info)) {
            control->refresh = true;
            later(control, 20000);
            return;
        }
        if (info.code == LEAT_OK)
            check_told_to_begin(scenario->check, log, info.first_offset,
                                control->trimmed_to[log.streamlet][log.log]);
        if (info.state == 0 || info.code == LEAT_E_UNKNOWN_LOG) continue;
        char why[120];
        snprintf(why, sizeof why, "state %u, %s: %.*s", info.state, leat_err_name(info.code),
                 (int)(info.text.bytes < 80 ? info.text.bytes : 80), info.text.text);
        sim_trace(scenario->world, "log %u/%u/%u: %s", log.stream, log.streamlet, log.log, why);
        if (scenario->loss_held) continue;
        if (info.state == 3) continue; /* stopped by a disk error: until the restart */
        if (scenario->victim && scenario->victim->corrupt) { /* others have it */
            sim_damage_named(scenario->victim);
            continue;
        }
        /* In a cluster a log also waits while nodes are down that may have where it ends; then its
         * loss is refused. */
        if (!in_cluster(control)) check_waiting(scenario->check, log, why);
        sim_node_log_loss_look(scenario, log);
        control->log = log;
        recover_send(control);
        return;
    }
    watch_next(control);
}

/* May the loss be accepted, though the operator was not told so? A refusal promises that nothing is given up. So does
 * AGAIN (nodes are to be heard first), unless it says that a part was accepted. A log that was excused after such an
 * answer could lose records that nobody gave up. */
static bool may_be_accepted(leat_err rc, const struct leat_error *error)
{
    if (rc == LEAT_E_AGAIN)
        return error && strstr(error->text, "not all of its loss could be accepted") != NULL;
    return leat_err_class(rc) != LEAT_CLASS_REJECT;
}

/* The owner refuses a loss for an earlier epoch when it has applied the request: so this node knows the later epoch,
 * and makes the log under that epoch. The scheduled faults may keep away the segment that the owner needs for this. */
static void stale_look(struct control *control, leat_err rc)
{
    enum { STALE_US_MAX = 5 * 1000 * 1000, GAP_US_MAX = 1000 * 1000 };
    const struct scenario *scenario = control->client->scenario;
    uint64_t now_us = scenario->world->now_us;
    bool quiet = scenario->faults_over || (scenario->stage && !scenario->stage->beside);
    bool same = leat_log_ref_equal(control->log, control->stale.log) &&
                now_us - control->stale.last_us < GAP_US_MAX;
    if (rc != LEAT_E_STALE_EPOCH || !quiet || !all_ready(scenario)) {
        if (same) control->stale.last_us = 0;
        return;
    }
    if (!same && now_us - control->stale.last_us < GAP_US_MAX) return; /* one log at a time */
    if (!same) control->stale.since_us = now_us;
    control->stale.log = control->log;
    control->stale.last_us = now_us;
    if (now_us - control->stale.since_us > STALE_US_MAX)
        sim_fail(scenario->world,
                 "A10 stuck: the owner of log %u/%u/%u does not take its later epoch",
                 control->log.stream, control->log.streamlet, control->log.log);
}

static void recover_done(struct control *control, leat_err rc, const struct leat_frame *answer,
                         const struct leat_error *error)
{
    struct scenario *scenario = control->client->scenario;
    sim_trace(scenario->world, "recover: %s %s", leat_err_name(rc), error ? error->text : "");
    stale_look(control, rc);
    const bool for_trap = control->for_trap, real = is_real(control);
    if (for_trap) {
        control->for_trap = false;
        scenario->loss_wish.wanted = real && rc == LEAT_OK;
        scenario->loss_wish.answered = true;
        scenario->loss_wish.rc = rc;
        control->refresh = !real || rc != LEAT_OK;
    }
    if (!real) {
        watch_next(control);
        return;
    }
    check_giving_up(scenario->check, control->log, false);
    if (rc == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        (void)leat_msg_read_array(&reader);
        if (in_cluster(control))
            check_waiting(scenario->check, control->log, "its loss is accepted");
        check_jumped(scenario->check, control->log, control->end_at_cut,
                     leat_msg_read_u64(&reader));
        scenario->recoveries++;
    } else if (in_cluster(control) && may_be_accepted(rc, error) &&
               check_at_risk(scenario->check, control->log)) {
        /* The answer was lost: it may have been accepted. */
        check_waiting(scenario->check, control->log, "its loss may have been accepted");
    }
    if (for_trap || (rc != LEAT_OK && in_cluster(control))) {
        watch_next(control); /* others may be able to go on */
        return;
    }
    later(control, 1000);
}

static void move_done(struct control *control, leat_err rc, const struct leat_error *error)
{
    struct sim_world *world = control->client->scenario->world;
    sim_trace(world, "move: %s %s", leat_err_name(rc), error ? error->text : "");
    if (rc == LEAT_OK) sim_fault_struck(world, SIM_FAULT_MOVE);
    control->refresh = true;
    watch_next(control);
}

static void replace_done(struct control *control, leat_err rc, const struct leat_error *error)
{
    struct scenario *scenario = control->client->scenario;
    sim_trace(scenario->world, "replace: %s %s", leat_err_name(rc), error ? error->text : "");
    /* The node votes: the request whose answer was lost has been carried out. A node that was not asked before must not
     * answer so. */
    bool votes = rc == LEAT_OK || (rc == LEAT_E_EXISTS && control->replace_unheard);
    if (votes) scenario->victim->forgot = false;
    if (votes || rc != LEAT_E_EXISTS) control->replace_unheard = !votes;
    later(control, 50000);
}

static void on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    struct control *control = request->owner;
    if (request->kind == LEAT_KIND_STREAM_CREATE)
        create_done(control, rc, answer);
    else if (request->kind == LEAT_KIND_STREAM_DESCRIBE)
        describe_done(control, rc, answer);
    else if (request->kind == LEAT_KIND_STREAMLET_MOVE)
        move_done(control, rc, error);
    else if (request->kind == LEAT_KIND_NODE_CHANGE)
        replace_done(control, rc, error);
    else
        recover_done(control, rc, answer, error);
}

static void control_next(struct sim_world *world, struct sim_event *event)
{
    struct control *control = event->a;
    if (control->made && in_cluster(control) && (control->streamlet == 0 || control->refresh))
        look_up(control);
    else if (control->made && in_cluster(control))
        describe_streamlet(control);
    else if (control->made)
        describe_send(control, NULL);
    else
        create_send(control);
    (void)world;
}

void sim_control_start(struct sim_client *client)
{
    struct control *control = calloc(1, sizeof *control);
    LEAT_ASSERT(control != NULL);
    control->client = client;
    client->state = control;
    later(control, 1000);
}
