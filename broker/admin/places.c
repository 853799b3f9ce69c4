/* SPDX-License-Identifier: Apache-2.0 */
/* Where the copies of a stream's logs are: see places.h. */
#include "broker/admin/places.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/gather.h"
#include "replication/primary/primary.h"

/* One round of questions about a stream: to this node's own cores, and to the other owners. */
struct places {
    struct leat_core *core; /* the core that asks */
    struct leat_stream_desc *desc;
    struct leat_log_places *logs; /* [streamlets * logs]; `known`: the owner has answered */
    void (*on_done)(struct places *places);
    struct leat_mail mail;
    uint32_t parts_out;
    /* of a round whose answers are remembered: */
    struct leat_gather others;
    uint8_t control[16];
    struct leat_list link; /* core->placer->asks; alone: the core has ended */
    uint64_t serial;
};

/* A core's memory of a stream's places. */
struct leat_known_places {
    /* core->placer->known: the streams that were wanted last are at the end */
    struct leat_list link;
    struct leat_stream *stream;
    const struct leat_stream_desc *asked; /* as it was when it was asked about; only compared */
    bool asking;
    uint64_t asked_us;
    uint32_t count; /* logs; 0: nothing was heard yet */
    struct leat_log_places *logs;
};

/* ---- this node's own logs: each core looks at its own ---- */

static void look_here(const struct leat_core *core, const struct leat_stream_desc *desc,
                      struct leat_log_places *logs)
{
    uint32_t per_streamlet = desc->settings.logs;
    for (uint32_t i = 0; i < desc->streamlet_count * per_streamlet; i++) {
        struct leat_log_ref ref = {desc->id, i / per_streamlet, i % per_streamlet};
        if (leat_core_of_log(core->node, ref, per_streamlet) != core->index) continue;
        const struct leat_partition *partition = leat_partition_find(core, ref);
        if (partition == NULL || partition->log == NULL || leat_partition_goes(partition)) continue;
        logs[i].others = (struct leat_rep_places){0};
        logs[i].known = partition->copies == NULL ||
                        leat_primary_log_places(partition->copies, &logs[i].others);
    }
}

static void part_ended(struct places *places)
{
    if (--places->parts_out == 0) places->on_done(places);
}

static void places_deliver_back(void *actor, struct leat_mail *mail)
{
    (void)actor;
    part_ended(LEAT_CONTAINER(mail, struct places, mail));
}

static void places_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct places *places = LEAT_CONTAINER(mail, struct places, mail);
    look_here(core, places->desc, places->logs);
    leat_core_mail_next(core, mail, places_deliver, places->core->index, places_deliver_back);
}

/* ---- places of other nodes ---- */

/* [[number of whole copies, numbers of nodes...]...]; empty for logs of other owners, and for logs whose first
 * segment has not begun. */
static void owner_read(const struct places *places, uint64_t owner, const struct leat_frame *answer)
{
    const struct leat_stream_desc *desc = places->desc;
    uint32_t per_streamlet = desc->settings.logs;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    uint32_t count = leat_msg_places_all_read(&reader);
    for (uint32_t i = 0; i < count && i < desc->streamlet_count * per_streamlet; i++) {
        struct leat_msg_string row = leat_msg_read_string(&reader);
        struct leat_log_places *log = &places->logs[i];
        if (reader.failed) return;
        if (row.bytes == 0 || row.bytes > sizeof log->others.nodes + 1) continue;
        if (desc->streamlets[i / per_streamlet].owner != owner) continue;
        if ((uint8_t)row.text[0] > row.bytes - 1) continue;
        log->known = true;
        log->others.count = (uint8_t)(row.bytes - 1);
        log->others.whole = (uint8_t)row.text[0];
        memcpy(log->others.nodes, row.text + 1, row.bytes - 1);
    }
}

static bool core_has_ended(const struct places *places)
{
    return leat_list_empty(&places->link);
}

static void others_on_answer(struct leat_gather *gather, uint32_t at, leat_err rc,
                             const struct leat_frame *answer, const char *why)
{
    (void)why; /* the owner is asked again later */
    if (rc == LEAT_OK && !core_has_ended(gather->owner))
        owner_read(gather->owner, gather->parts[at].node, answer);
}

static void ask_free(struct places *places);

static void others_on_done(struct leat_gather *gather)
{
    if (core_has_ended(gather->owner))
        ask_free(gather->owner);
    else
        part_ended(gather->owner);
}

/* false: no memory. */
static bool others_init(struct places *places)
{
    struct leat_gather *others = &places->others;
    struct leat_msg_writer writer;
    uint64_t owners[LEAT_NODES_MAX];
    uint32_t count = leat_gather_owners(places->core, places->desc, owners);
    others->parts = leat_mem_calloc(LEAT_MEM_BROKER, count + 1, sizeof *others->parts);
    if (others->parts == NULL) return false;
    others->count = count;
    for (uint32_t i = 0; i < count; i++)
        others->parts[i].node = owners[i];
    leat_msg_writer_init(&writer, places->control, sizeof places->control);
    leat_msg_places_ask_write(&writer, &(struct leat_msg_places_ask){places->desc->id});
    others->core = places->core;
    others->kind = LEAT_KIND_PLACES;
    others->control = places->control;
    others->control_bytes = writer.used;
    others->timeout_us = LEAT_PLACES_ASK_US_MAX;
    others->on_answer = others_on_answer;
    others->on_done = others_on_done;
    others->owner = places;
    places->parts_out++;
    return true;
}

/* Zeros but on_done. false: no memory. */
static bool places_init(struct places *places, struct leat_core *core,
                        struct leat_stream_desc *desc)
{
    uint32_t count = desc->streamlet_count * desc->settings.logs;
    leat_list_init(&places->link);
    places->logs = leat_mem_calloc(LEAT_MEM_ROWS, count, sizeof *places->logs);
    if (places->logs == NULL) return false;
    places->core = core;
    places->desc = desc;
    leat_stream_desc_ref(desc);
    places->parts_out = 1; /* this node itself */
    return true;
}

/* ---- a core's memory ---- */

const struct leat_log_places *leat_places_of(const struct leat_stream *stream, uint32_t streamlet,
                                             uint32_t log)
{
    uint32_t at = streamlet * stream->desc->settings.logs + log;
    const struct leat_known_places *known = stream->places;
    return known != NULL && at < known->count && known->logs[at].known ? &known->logs[at] : NULL;
}

void leat_places_forget(struct leat_core *core, struct leat_stream *stream)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_known_places *known = stream->places;
    if (known == NULL) return;
    stream->places = NULL;
    core->admin->placer->logs -= known->count;
    leat_list_remove(&known->link);
    leat_mem_free(known->logs);
    leat_mem_free(known);
}

static void waits_look(struct leat_placer *placer)
{
    uint64_t until = UINT64_MAX; /* rounds are answered in any order */
    if (!leat_list_empty(&placer->asks))
        until = LEAT_CONTAINER(placer->asks.next, struct places, link)->serial;
    while (!leat_list_empty(&placer->waits)) {
        struct leat_places_wait *wait =
            LEAT_CONTAINER(placer->waits.next, struct leat_places_wait, link);
        if (wait->serial >= until) return;
        leat_list_remove(&wait->link);
        wait->on_done(wait);
    }
}

/* A log whose owner did not answer now keeps the places of its last answer. */
static void remember(struct leat_known_places *known, struct places *places, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < known->count; i++)
        if (!places->logs[i].known) places->logs[i] = known->logs[i];
    places->core->admin->placer->logs += count - known->count;
    leat_mem_free(known->logs);
    known->logs = places->logs;
    known->count = count;
    places->logs = NULL;
}

static void ask_free(struct places *places)
{
    leat_list_remove(&places->link);
    leat_mem_free(places->logs);
    if (places->desc != NULL) leat_stream_desc_unref(places->desc);
    leat_mem_free(places->others.parts);
    leat_mem_free(places);
}

static void ask_on_done(struct places *places)
{
    struct leat_core *core = places->core;
    struct leat_placer *placer = core->admin->placer;
    struct leat_stream *stream = leat_stream_find(core, places->desc->id);
    if (stream != NULL && stream->places != NULL) {
        stream->places->asking = false;
        remember(stream->places, places,
                 places->desc->streamlet_count * places->desc->settings.logs);
    }
    placer->ask_count--;
    ask_free(places);
    while (placer->logs > LEAT_PLACES_LOGS_MAX && !leat_list_empty(&placer->known)) {
        const struct leat_known_places *oldest =
            LEAT_CONTAINER(placer->known.next, const struct leat_known_places, link);
        leat_places_forget(core, oldest->stream);
    }
    waits_look(placer);
}

static bool ask_start(struct leat_core *core, struct leat_known_places *known)
{
    struct places *places = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *places);
    if (places == NULL) return false;
    if (!places_init(places, core, known->stream->desc) || !others_init(places)) {
        ask_free(places);
        return false;
    }
    places->on_done = ask_on_done;
    places->serial = ++core->admin->placer->serial;
    leat_list_push_back(&core->admin->placer->asks, &places->link);
    core->admin->placer->ask_count++;
    known->asking = true;
    known->asked = known->stream->desc;
    known->asked_us = leat_core_now(core);
    leat_gather_start(&places->others);
    leat_core_mail(core, 0, &places->mail, places_deliver);
    return true;
}

bool leat_places_want(struct leat_core *core, uint32_t id)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find(core, id);
    if (stream == NULL || stream->desc->settings.copies <= 1 || core->stopping) return false;
    struct leat_known_places *known = stream->places;
    if (known == NULL) {
        known = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *known);
        if (known == NULL) return false;
        known->stream = stream;
        leat_list_init(&known->link);
        stream->places = known;
    }
    leat_list_remove(&known->link);
    leat_list_push_back(&core->admin->placer->known, &known->link);
    bool fresh = known->count > 0 && known->asked == stream->desc &&
                 leat_core_now(core) < known->asked_us + LEAT_PLACES_FRESH_US;
    if (!known->asking && !fresh && core->admin->placer->ask_count < LEAT_PLACES_ASKS_MAX)
        (void)ask_start(core, known); /* without memory: with the next that want to know */
    return known->asking && known->count == 0;
}

void leat_places_wait(struct leat_core *core, struct leat_places_wait *wait)
{
    LEAT_ASSERT_OWNER(core);
    wait->serial = core->admin->placer->serial;
    leat_list_push_back(&core->admin->placer->waits, &wait->link);
}

void leat_places_init(struct leat_core *core)
{
    leat_list_init(&core->admin->placer->known);
    leat_list_init(&core->admin->placer->asks);
    leat_list_init(&core->admin->placer->waits);
}

void leat_places_fini(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->admin->placer->asks, it)
    {
        struct places *places = LEAT_CONTAINER(it, struct places, link);
        leat_list_remove(&places->link);
        if (places->others.out == 0) ask_free(places); /* else after the last answer */
    }
}

/* ---- PLACES [stream], of another node ---- */

struct places_call {
    struct leat_call call;
    struct places places;
};

static void call_on_done(struct places *places)
{
    struct places_call *call = LEAT_CONTAINER(places, struct places_call, places);
    const struct leat_stream_desc *desc = places->desc;
    uint32_t count = desc->streamlet_count * desc->settings.logs;
    struct leat_msg_writer writer;
    leat_call_writer(call->call.core, &writer);
    leat_msg_places_all_write(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_log_places *log = &places->logs[i];
        uint8_t row[LEAT_COPIES_MAX];
        row[0] = log->others.whole;
        memcpy(row + 1, log->others.nodes, log->others.count);
        leat_msg_write_bin(&writer, row, log->known ? 1u + log->others.count : 0);
    }
    leat_mem_free(places->logs);
    leat_stream_desc_unref(places->desc);
    leat_call_answer(&call->call, &writer);
}

void leat_call_places(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct places_call *call = leat_call_create(peer, frame, sizeof *call);
    if (call == NULL) return;
    struct leat_msg_places_ask body;
    leat_err rc = leat_msg_places_ask_decode(frame->control, frame->control_bytes, &body);
    const struct leat_stream *stream =
        rc != LEAT_OK ? NULL : leat_stream_find(peer->core, body.stream);
    if (stream == NULL || !places_init(&call->places, peer->core, stream->desc)) {
        leat_call_refuse(&call->call,
                         rc != LEAT_OK    ? rc
                         : stream == NULL ? LEAT_E_UNKNOWN_STREAM
                                          : LEAT_E_AGAIN,
                         NULL);
        return;
    }
    call->places.on_done = call_on_done;
    leat_core_mail(peer->core, 0, &call->places.mail, places_deliver);
}

const struct leat_log_places *leat_front_places(const struct leat_core *core, uint32_t id,
                                                uint32_t streamlet, uint32_t log)
{
    const struct leat_stream *stream = leat_stream_find(core, id);
    return stream != NULL ? leat_places_of(stream, streamlet, log) : NULL;
}
