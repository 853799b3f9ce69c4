/* SPDX-License-Identifier: Apache-2.0 */
/* A client that makes streams, writes to them, moves and trims them, and deletes them amid all that goes on; also
 * streams of an earlier name. In a small part of the cluster seeds, by a generator of its own.
 *
 * A request whose outcome is unknown may be done later: after such a request its name is not used again, and no rule
 * says what the request has done. */
#include "tests/sim/deletes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/message.h"
#include "wire/message_cluster.h"

enum {
    DELETES_PER_MILLE = 35, /* of the cluster seeds */
    LIFE_US_MAX = 2500 * 1000,
    AWAY_US_MAX = 6000 * 1000,
    RECORD_TIMEOUT_US = 4 * 1000 * 1000,
    HASTY_PER_MILLE = 150, /* of these seeds */
    HASTY_US_LEAST = 100 * 1000,
    HASTY_US_MAX = 1000 * 1000,
    HASTY_LIFE_US_MAX = 200 * 1000,
    CUT_US_LEAST = 3000 * 1000,
    CUT_US_MAX = 6000 * 1000,
    ID_LOOK_US = 50,
    READS_PER_MILLE = 700, /* of streams, but for the first where there is a trap */
    STALL_US_LEAST = 100 * 1000,
    STALL_US_MAX = 300 * 1000,
    STALL_LOOK_US = 1000,
    STALL_LEFT_US = 50 * 1000, /* for the deletion */
};

enum step { CREATE, ASK_ID, WORK, TRAP, READS, DELETE, AFTER, LAST_WORD, OVER };

struct thrower {
    struct sim_deletes *deletes;
    struct sim_client *client;
    enum step step;
    struct leat_request request, beside; /* beside: a move or a trim, at any time */
    uint8_t control[512], control_beside[512];
    bool beside_busy;
    unsigned tries; /* of this request */
    uint64_t until_us;
    uint32_t last_record;
    bool hasty; /* its records time out before most requests do */
    struct sim_rng haste, stalls;
    bool reads; /* copies of the newest are to go while they are read */
};

static struct sim_deletes *of_seed; /* one per process: leat-sim forks for each seed */

static void step_next(struct sim_world *world, struct sim_event *event);

struct sim_deletes *sim_deletes_of(const struct scenario *scenario)
{
    return of_seed && of_seed->scenario == scenario ? of_seed : NULL;
}

static struct sim_world *world_of(const struct thrower *thrower)
{
    return thrower->client->scenario->world;
}

static struct sim_rng *dice(struct thrower *thrower)
{
    return &thrower->client->rng;
}

/* The one that lives, or lived last. */
static struct sim_thrown *newest(struct thrower *thrower)
{
    return thrower->deletes->count ? &thrower->deletes->thrown[thrower->deletes->count - 1] : NULL;
}

static const char *name_of(const struct thrower *thrower)
{
    return thrower->deletes->names[thrower->deletes->name];
}

static void later(struct thrower *thrower, uint64_t delay_us)
{
    sim_actor_post(thrower->client->actor, delay_us, step_next, thrower);
}

static void step_on(struct thrower *thrower, enum step step, uint64_t delay_us)
{
    thrower->step = step;
    thrower->tries = 0;
    later(thrower, delay_us);
}

/* ---- records ---- */

static void on_produced(void *arg, const struct leat_produced *produced)
{
    uint32_t number = (uint32_t)(uintptr_t)arg;
    struct sim_thrown_record *record = &of_seed->records[number];
    record->ended = true;
    record->rc = produced->rc;
    sim_trace(of_seed->scenario->world, "thrown record %u: %s in stream %u at %lld", number,
              leat_err_name(produced->rc), produced->log.stream, (long long)produced->offset);
    if (produced->rc == LEAT_OK)
        sim_deletes_acked(of_seed, number, produced->log, produced->offset);
}

static void produce(struct thrower *thrower, unsigned count)
{
    struct sim_deletes *deletes = thrower->deletes;
    uint8_t value[12 + 600];
    while (count-- > 0 && deletes->record_count < SIM_THROWN_RECORDS_MAX) {
        uint32_t number = deletes->record_count;
        uint32_t words[3] = {number, deletes->name, SIM_THROWN_MAGIC};
        size_t bytes = sizeof words + (size_t)sim_rng_below(dice(thrower), 600);
        memcpy(value, words, sizeof words);
        memset(value + sizeof words, (int)number, bytes - sizeof words);
        leat_err rc =
            leat_producer_engine_add(thrower->client->producer, name_of(thrower), -1, 0, NULL, 0,
                                     value, bytes, on_produced, (void *)(uintptr_t)number);
        if (rc != LEAT_OK) return;
        deletes->records[number].added_us = world_of(thrower)->now_us;
        deletes->records[deletes->record_count++].name = deletes->name;
    }
}

static void produce_more(struct sim_client *client)
{
    produce(client->state, 2);
}

static leat_err producer_create(struct sim_client *client)
{
    struct thrower *thrower = client->state;
    struct leat_producer_engine_options options = {
        .batch_bytes = (uint32_t)sim_rng_between(&client->rng, 256, 2000),
        .linger_us = (uint32_t)sim_rng_between(&client->rng, 0, 2000),
        .codec = LEAT_CODEC_NONE,
        .buffer_bytes = 256 * 1024,
        .timeout_us = thrower->hasty
                          ? sim_rng_between(&thrower->haste, HASTY_US_LEAST, HASTY_US_MAX)
                          : RECORD_TIMEOUT_US,
        .actor = client,
    };
    return leat_producer_engine_create(&client->actor->env, &client->timers, client->client,
                                       &options, &client->producer);
}

/* ---- requests ---- */

static void send(struct thrower *thrower, enum leat_kind kind, struct leat_msg_writer *writer,
                 void (*on_done)(struct leat_request *, leat_err, const struct leat_frame *,
                                 const struct leat_error *))
{
    LEAT_ASSERT(!writer->overflow);
    thrower->tries++;
    thrower->request = (struct leat_request){
        .kind = kind,
        .control = thrower->control,
        .control_bytes = writer->used,
        .on_done = on_done,
        .owner = thrower,
    };
    if (leat_client_send(thrower->client->client, &thrower->request) != LEAT_OK)
        later(thrower, 20000);
}

/* Sent again while an earlier one may still be done. */
static void unsure(struct thrower *thrower, leat_err rc)
{
    if (leat_err_class(rc) != LEAT_CLASS_REJECT) thrower->deletes->sure = false;
}

static void beside_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct thrower *thrower = request->owner;
    thrower->beside_busy = false;
    sim_trace(world_of(thrower), "thrown: %s: %s %s",
              request->kind == LEAT_KIND_STREAMLET_MOVE ? "move" : "trim", leat_err_name(rc),
              error ? error->text : "");
    (void)answer;
}

static void beside_send(struct thrower *thrower, enum leat_kind kind,
                        const struct leat_msg_writer *writer, const struct leat_log_ref *log)
{
    LEAT_ASSERT(!writer->overflow);
    thrower->beside = (struct leat_request){
        .kind = kind,
        .control = thrower->control_beside,
        .control_bytes = writer->used,
        .on_done = beside_done,
        .owner = thrower,
    };
    if (log) thrower->beside.log = *log;
    thrower->beside_busy = leat_client_send(thrower->client->client, &thrower->beside) == LEAT_OK;
}

static void move(struct thrower *thrower)
{
    const struct scenario *scenario = thrower->client->scenario;
    const struct sim_thrown *thrown = newest(thrower);
    const struct sim_server *to =
        &scenario->servers[sim_rng_below(dice(thrower), scenario->server_count)];
    struct leat_msg_streamlet_move message = {
        .stream = {thrown->name, (uint32_t)strlen(thrown->name)},
        .streamlet = (uint32_t)sim_rng_below(dice(thrower), thrown->settings.streamlets),
        .node = {to->name, (uint32_t)strlen(to->name)},
    };
    struct leat_msg_writer writer;
    if (thrower->beside_busy) return;
    leat_msg_writer_init(&writer, thrower->control_beside, sizeof thrower->control_beside);
    leat_msg_streamlet_move_write(&writer, &message);
    beside_send(thrower, LEAT_KIND_STREAMLET_MOVE, &writer, NULL);
}

static void trim(struct thrower *thrower)
{
    struct sim_thrown *thrown = newest(thrower);
    struct leat_log_ref log = {thrown->id,
                               (uint32_t)sim_rng_below(dice(thrower), thrown->settings.streamlets),
                               (uint32_t)sim_rng_below(dice(thrower), thrown->settings.logs)};
    struct leat_msg_trim message = {
        .stream = {thrown->name, (uint32_t)strlen(thrown->name)},
        .streamlet = log.streamlet,
        .log = log.log,
        .before = UINT64_MAX,
    };
    struct leat_msg_writer writer;
    if (thrower->beside_busy) return;
    thrown->trims = true;
    leat_msg_writer_init(&writer, thrower->control_beside, sizeof thrower->control_beside);
    leat_msg_trim_write(&writer, &message);
    beside_send(thrower, LEAT_KIND_STREAM_TRIM, &writer, &log);
}

/* ---- nobody hears it ---- */

/* SUBTLE: a refusal of a producer's request for an id may come when no record needs the id any more.
 *  1. The producer asks for an id, and nobody hears it from then on.
 *  2. The producer gets no more records: the stream is to be deleted.
 *  3. All records time out. Then the request does. */
static void hasty_look(struct sim_world *world, struct sim_event *event)
{
    struct thrower *thrower = event->a;
    struct sim_process *process = thrower->client->process;
    if (thrower->client->scenario->faults_over || thrower->step != WORK) return;
    if (leat_producer_engine_stats(thrower->client->producer)->ids_asked == 0) {
        sim_world_at(world, world->now_us + ID_LOOK_US, hasty_look, thrower);
        return;
    }
    process->cut_off_until_us =
        world->now_us + sim_rng_between(&thrower->haste, CUT_US_LEAST, CUT_US_MAX);
    thrower->until_us = world->now_us + sim_rng_below(&thrower->haste, HASTY_LIFE_US_MAX);
    sim_fault_struck(world, SIM_FAULT_PARTITION);
    sim_trace(world, "%s asks for a producer's id and is cut off", process->name);
}

/* ---- making one ---- */

static void made(struct thrower *thrower, uint32_t id)
{
    struct sim_deletes *deletes = thrower->deletes;
    const struct sim_thrown *before = newest(thrower);
    if (before && id <= before->id) {
        sim_fail(world_of(thrower), "resurrected: the new stream %s has id %u, stream %u is older",
                 name_of(thrower), id, before->id);
        return;
    }
    struct sim_thrown *thrown = &deletes->thrown[deletes->count++];
    thrown->id = id;
    thrown->name = name_of(thrower);
    sim_trace(world_of(thrower), "thrown stream %s is %u", thrown->name, id);
    thrown->onlooker = sim_client_start(thrower->client->scenario, SIM_CLIENT_ONLOOKER,
                                        SIM_STREAMS + deletes->name, deletes->count);
    thrower->until_us = world_of(thrower)->now_us + sim_rng_below(dice(thrower), LIFE_US_MAX);
    thrower->reads =
        sim_trap_deleted_reads(deletes) && sim_rng_chance(&thrower->stalls, READS_PER_MILLE);
    step_on(thrower, WORK, 10);
    if (thrower->hasty && deletes->count == 1)
        sim_world_at(world_of(thrower), world_of(thrower)->now_us, hasty_look, thrower);
}

static void settings_read(struct thrower *thrower, struct leat_msg_reader *reader)
{
    struct sim_thrown *thrown = newest(thrower);
    if (thrown && thrower->step == WORK) leat_msg_settings_read(reader, &thrown->settings);
    LEAT_ASSERT(!reader->failed);
}

/* It may be there: whoever sent it was not answered. */
static void id_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    struct thrower *thrower = request->owner;
    (void)error;
    if (rc != LEAT_OK) {
        thrower->step = rc == LEAT_E_UNKNOWN_STREAM ? CREATE : ASK_ID;
        later(thrower, 20000);
        return;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_string(&reader);
    made(thrower, leat_msg_read_u32(&reader));
    settings_read(thrower, &reader);
}

static void create_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct thrower *thrower = request->owner;
    thrower->deletes->making = false;
    sim_trace(world_of(thrower), "thrown: create: %s %s", leat_err_name(rc),
              error ? error->text : "");
    if (rc == LEAT_E_STREAM_EXISTS && thrower->deletes->sure && thrower->tries == 1) {
        sim_fail(world_of(thrower), "resurrected: %s exists, and was deleted", name_of(thrower));
    } else if (rc == LEAT_E_STREAM_EXISTS) {
        step_on(thrower, ASK_ID, 1000);
    } else if (rc != LEAT_OK) { /* as many copies as machines are refused while one is down */
        unsure(thrower, rc);
        later(thrower, 30000);
    } else {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        (void)leat_msg_read_array(&reader);
        made(thrower, leat_msg_read_u32(&reader));
        settings_read(thrower, &reader);
    }
}

static void create_send(struct thrower *thrower)
{
    struct sim_rng *rng = dice(thrower);
    const struct scenario *scenario = thrower->client->scenario;
    bool memory = sim_rng_chance(rng, 500);
    bool two = scenario->victim || scenario->trap == SIM_TRAP_DELETES;
    struct leat_stream_settings settings = {
        .streamlets = (uint32_t)sim_rng_between(rng, 1, CHECK_STREAMLETS_MAX),
        .logs = (uint32_t)sim_rng_between(rng, 1, CHECK_LOGS_MAX),
        .copies = (uint32_t)sim_rng_between(rng, two ? 2 : 1, 3),
        .durability = memory ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK,
        .segment_bytes_max = 16 * 1024,
        .retention_ms = -1,
        .retention_bytes = -1,
    };
    struct leat_msg_writer writer;
    sim_trap_deleted_settings(scenario, &settings);
    leat_msg_writer_init(&writer, thrower->control, sizeof thrower->control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name_of(thrower), strlen(name_of(thrower)));
    leat_msg_settings_write(&writer, &settings);
    thrower->deletes->making = true;
    send(thrower, LEAT_KIND_STREAM_CREATE, &writer, create_done);
}

static void name_send(struct thrower *thrower, enum leat_kind kind,
                      void (*on_done)(struct leat_request *, leat_err, const struct leat_frame *,
                                      const struct leat_error *))
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, thrower->control, sizeof thrower->control);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, name_of(thrower), strlen(name_of(thrower)));
    send(thrower, kind, &writer, on_done);
}

/* ---- deleting it ---- */

static void node_dies(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over || !server->process->alive) return;
    enum sim_death death = sim_death_of(server, event->n ? SIM_DEATH_POWER : SIM_DEATH_KILL);
    sim_fault_struck(world, death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    sim_process_die(server->process, death);
}

/* Something goes wrong with a node around that time. */
static void node_strike(struct thrower *thrower, uint64_t most_us, uint64_t away_us_max)
{
    struct scenario *scenario = thrower->client->scenario;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(dice(thrower), scenario->server_count)];
    if (scenario->calm || scenario->faults_over) return;
    server->away_us_max = away_us_max;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(dice(thrower), most_us),
                 node_dies, server)
        ->n = sim_rng_chance(dice(thrower), 400);
}

/* How long before the deletion is sent. */
static uint64_t misfortune(struct thrower *thrower)
{
    switch (sim_rng_below(dice(thrower), 6)) {
    case 0: /* a move: it waits for what is under way, and for the coordinators */
        move(thrower);
        return sim_rng_below(dice(thrower), 8000);
    case 1: /* another takes over from the one that dies */
        node_strike(thrower, 1000, AWAY_US_MAX);
        return sim_rng_between(dice(thrower), 1000, 700000);
    case 2: /* a node is away for long: the deletion is among the news when the node is back */
        node_strike(thrower, 1000, AWAY_US_MAX);
        return sim_rng_between(dice(thrower), 500000, 2000000);
    case 3: /* the node goes amid the deletion */
        node_strike(thrower, 20000, AWAY_US_MAX);
        return 10;
    case 4:
        node_strike(thrower, 1000, AWAY_US_MAX);
        move(thrower);
        return sim_rng_below(dice(thrower), 400000);
    default:
        return 10;
    }
}

static void deleted(struct thrower *thrower)
{
    struct sim_thrown *thrown = newest(thrower);
    thrown->answered = true;
    if (thrower->deletes->hurry) thrower->deletes->hurry--;
    if (thrown->onlooker && sim_rng_chance(dice(thrower), 500)) {
        sim_client_kill(thrown->onlooker);
        thrown->onlooker = NULL;
    }
    thrower->until_us =
        world_of(thrower)->now_us + sim_rng_between(dice(thrower), 1000, LIFE_US_MAX);
    step_on(thrower, AFTER, sim_rng_below(dice(thrower), 20000));
}

static void delete_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct thrower *thrower = request->owner;
    (void)answer;
    sim_trace(world_of(thrower), "thrown: delete: %s %s", leat_err_name(rc),
              error ? error->text : "");
    if (rc == LEAT_OK || (rc == LEAT_E_UNKNOWN_STREAM && thrower->tries > 1)) {
        deleted(thrower);
        return;
    }
    if (rc == LEAT_E_UNKNOWN_STREAM && thrower->deletes->sure) {
        sim_fail(world_of(thrower), "A1 lost-write: stream %s is not known, and nobody deleted it",
                 name_of(thrower));
        return;
    }
    unsure(thrower, rc);
    later(thrower, sim_rng_between(dice(thrower), 1000, 50000));
}

/* ---- after that ---- */

/* [cluster id, [node...], [stream...]] */
static void list_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                      const struct leat_error *error)
{
    struct thrower *thrower = request->owner;
    (void)error;
    if (rc == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        (void)leat_msg_read_array(&reader);
        (void)leat_msg_read_string(&reader);
        for (uint32_t count = leat_msg_read_array(&reader); count > 0 && !reader.failed; count--) {
            struct leat_msg_node node;
            leat_msg_node_read(&reader, &node);
        }
        for (uint32_t count = leat_msg_read_array(&reader); count > 0 && !reader.failed; count--) {
            struct leat_msg_stream stream;
            leat_msg_stream_read(&reader, &stream);
            const struct sim_thrown *thrown = sim_thrown_find(thrower->deletes, stream.id);
            for (uint32_t i = 0; i < stream.log_count && !reader.failed; i++) {
                struct leat_msg_log log;
                leat_msg_log_read(&reader, &log);
            }
            if (thrown && thrown->known_us && request->sent_us >= thrown->known_us)
                sim_fail(world_of(thrower), "resurrected: stream %u is listed, and was deleted",
                         stream.id);
        }
        if (reader.failed) sim_fail(world_of(thrower), "A5 aborted-read: no list of streams");
    }
    later(thrower, sim_rng_between(dice(thrower), 5000, 60000));
}

static void list_send(struct thrower *thrower)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, thrower->control, sizeof thrower->control);
    leat_msg_write_array(&writer, 3);
    leat_msg_write_array(&writer, 0);
    leat_msg_write_bool(&writer, false);
    leat_msg_write_bool(&writer, false);
    send(thrower, LEAT_KIND_METADATA, &writer, list_done);
}

/* Another one, of the same name where nothing can come of what was asked before. False: no more. */
static bool another(struct thrower *thrower)
{
    struct sim_deletes *deletes = thrower->deletes;
    if (deletes->count == SIM_THROWN_MAX || thrower->client->scenario->faults_over) return false;
    if (!deletes->sure || sim_rng_chance(dice(thrower), 150)) {
        if (deletes->name + 1 == SIM_THROWN_NAMES) return false;
        deletes->name++;
        deletes->sure = true;
    }
    step_on(thrower, CREATE, sim_rng_below(dice(thrower), 3000));
    return true;
}

static void after(struct thrower *thrower)
{
    produce(thrower, (unsigned)sim_rng_below(dice(thrower), 3));
    if (world_of(thrower)->now_us < thrower->until_us && !thrower->deletes->hurry) {
        list_send(thrower);
        return;
    }
    if (another(thrower)) return;
    struct scenario *scenario = thrower->client->scenario;
    /* A node that is away when all is healed comes back seconds later. */
    if (!scenario->faults_over || !sim_nodes_are_ready(scenario) || !newest(thrower)->known_us) {
        list_send(thrower);
        return;
    }
    /* Everything works: a producer that writes to the stream is told that the stream is deleted. */
    thrower->last_record = thrower->deletes->record_count;
    produce(thrower, 1);
    step_on(thrower, LAST_WORD, 5000);
}

static void last_word(struct thrower *thrower)
{
    const struct sim_deletes *deletes = thrower->deletes;
    const struct sim_thrown_record *record = &deletes->records[thrower->last_record];
    if (thrower->last_record < deletes->record_count && !record->ended) {
        later(thrower, 5000);
        return;
    }
    /* Another record is sent, until one is answered in time. */
    if (record->ended && thrower->hasty && record->rc == LEAT_E_TIMEOUT) {
        thrower->last_record = deletes->record_count;
        produce(thrower, 1);
        later(thrower, 5000);
        return;
    }
    if (record->ended && deletes->sure && record->rc != LEAT_E_UNKNOWN_STREAM)
        sim_fail(world_of(thrower), "resurrected: a record for %s, which was deleted, ends as %s",
                 name_of(thrower), leat_err_name(record->rc));
    thrower->step = OVER;
}

/* Disks read nothing. The stream moves, and its new owners fetch segments, until a copy of a segment is read that way:
 * the copy is to go before the read has ended. */
static void reads(struct thrower *thrower)
{
    struct scenario *scenario = thrower->client->scenario;
    uint64_t now_us = scenario->world->now_us;
    if (thrower->step != READS) {
        thrower->until_us =
            now_us + sim_rng_between(&thrower->stalls, STALL_US_LEAST, STALL_US_MAX);
        for (unsigned i = 0; i < scenario->server_count; i++)
            sim_disk_stall_reads(scenario->servers[i].disk, thrower->until_us);
        sim_fault_struck(scenario->world, SIM_FAULT_STALL);
        sim_trace(scenario->world, "disks read nothing while a stream moves and is deleted");
        step_on(thrower, READS, 0);
    } else if (now_us + STALL_LEFT_US < thrower->until_us && !scenario->faults_over &&
               !sim_thrown_is_read(scenario, newest(thrower)->id)) {
        move(thrower);
        later(thrower, STALL_LOOK_US);
    } else {
        step_on(thrower, DELETE, 0);
    }
}

/* Its head stays open until the moment of the trap has come, or is not waited for any more. */
static void trapped(struct thrower *thrower)
{
    if (thrower->step != TRAP) {
        step_on(thrower, TRAP, 0);
    } else if (!sim_thrown_is_warm(thrower->deletes, newest(thrower)->id)) {
        produce(thrower, 1);
        later(thrower, 10000);
    } else if (thrower->reads) {
        reads(thrower);
    } else if (sim_trap_deleted_waits(thrower->client, newest(thrower)->id, produce_more)) {
        produce(thrower, !thrower->client->scenario->stage && sim_rng_chance(dice(thrower), 2));
        later(thrower, 150);
    } else {
        step_on(thrower, DELETE, 0);
    }
}

static void work(struct thrower *thrower)
{
    const struct scenario *scenario = thrower->client->scenario;
    const bool trap = sim_trap_deleted_is(scenario);
    produce(thrower, (unsigned)sim_rng_between(dice(thrower), 0, trap ? 1 : 12));
    if (trap)
        thrower->until_us = 0;
    else if (sim_rng_chance(dice(thrower), 60))
        move(thrower);
    if (sim_rng_chance(dice(thrower), 40)) trim(thrower);
    bool lives_on = world_of(thrower)->now_us < thrower->until_us && !thrower->deletes->hurry;
    if (lives_on && !scenario->faults_over)
        later(thrower, sim_rng_between(dice(thrower), 1000, 60000));
    else if (trap && !scenario->faults_over)
        trapped(thrower);
    else if (thrower->reads && !thrower->deletes->hurry && !scenario->faults_over)
        reads(thrower);
    else
        step_on(thrower, DELETE, thrower->deletes->hurry ? 10 : misfortune(thrower));
}

static void step_next(struct sim_world *world, struct sim_event *event)
{
    struct thrower *thrower = event->a;
    (void)world;
    switch (thrower->step) {
    case CREATE:
        if (!thrower->client->scenario->streams_made)
            later(thrower, 20000);
        else if (thrower->client->scenario->faults_over && thrower->deletes->sure)
            thrower->step = OVER;
        else
            create_send(thrower);
        break;
    case ASK_ID:
        name_send(thrower, LEAT_KIND_STREAM_DESCRIBE, id_done);
        break;
    case WORK:
        work(thrower);
        break;
    case TRAP:
        trapped(thrower);
        break;
    case READS:
        reads(thrower);
        break;
    case DELETE:
        newest(thrower)->asked = true;
        name_send(thrower, LEAT_KIND_STREAM_DELETE, delete_done);
        break;
    case AFTER:
        after(thrower);
        break;
    case LAST_WORD:
        last_word(thrower);
        break;
    case OVER:
        break;
    }
}

leat_err sim_deleter_start(struct sim_client *client)
{
    struct thrower *thrower = calloc(1, sizeof *thrower);
    LEAT_ASSERT(thrower != NULL);
    *thrower = (struct thrower){.deletes = of_seed, .client = client, .step = CREATE};
    client->state = thrower;
    sim_rng_init(&thrower->stalls, client->scenario->world->seed, "thrown reads");
    sim_rng_init(&thrower->haste, client->scenario->world->seed, "hasty thrower");
    thrower->hasty = client->scenario->trap != SIM_TRAP_DELETES &&
                     sim_rng_chance(&thrower->haste, HASTY_PER_MILLE);
    later(thrower, sim_rng_below(&client->rng, 1500000));
    return producer_create(client);
}

bool sim_deletes_done(const struct scenario *scenario)
{
    const struct sim_deletes *deletes = sim_deletes_of(scenario);
    if (!deletes) return true;
    const struct thrower *thrower = deletes->client->state;
    return thrower && thrower->step == OVER &&
           leat_producer_engine_open_records(deletes->client->producer) == 0;
}

/* ---- a seed that has it ---- */

void sim_deletes_choose(struct scenario *scenario, bool wanted)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "deletes");
    scenario->deletes = sim_rng_chance(&rng, DELETES_PER_MILLE) || wanted;
    if (scenario->deletes) sim_trap_deleted_choose(scenario);
}

void sim_deletes_start(struct scenario *scenario)
{
    static struct sim_deletes deletes; /* of the one scenario of a process */
    if (!scenario->deletes) return;
    memset(&deletes, 0, sizeof deletes);
    deletes.scenario = scenario;
    deletes.sure = true;
    for (unsigned i = 0; i < SIM_THROWN_NAMES; i++)
        snprintf(deletes.names[i], sizeof deletes.names[i], "thrown-%u", i);
    of_seed = &deletes;
    deletes.client = sim_client_start(scenario, SIM_CLIENT_DELETER, 0, 0);
    sim_deletes_watch(&deletes);
}
