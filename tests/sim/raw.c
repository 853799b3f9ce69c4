/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that misbehaves: it resends answered batches, leaves gaps, goes on under an epoch that it has
 * itself fenced, and sends compressed batches that nobody could read. Every step is repeated until its
 * answer is definite, and the answer must be the one that the protocol promises. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "wire/unpack.h"

enum { RAW_REMEMBERED = 8, RAW_BATCH_BYTES = 2048, RAW_STREAM = 0 };

enum step {
    STEP_LOOKUP,
    STEP_ID,
    STEP_NEXT,
    STEP_RESEND,
    STEP_GAP,
    STEP_EPOCH,
    STEP_OLD,
    STEP_POISON,
    STEP_BOMB,
    STEP_DONE
};

struct sent_batch {
    uint8_t bytes[RAW_BATCH_BYTES];
    uint32_t byte_count, record_count, first_number;
    int32_t sequence;
    uint64_t offset;
    bool unsure; /* what became of it when it was sent before, nobody knows */
};

struct raw {
    struct sim_client *client;
    struct leat_client_lookup lookup;
    struct leat_request request;
    struct leat_iov iov;
    uint8_t control[256];
    enum step step;
    struct leat_log_ref log; /* the server's ids */
    uint32_t log_epoch;
    int64_t id;
    int16_t epoch;
    int32_t next_sequence;
    uint32_t next_number, steps_left;
    struct sent_batch done[RAW_REMEMBERED]; /* [count % RAW_REMEMBERED] */
    uint32_t done_count;                    /* in this epoch */
    struct sent_batch now;
    /* The same batch once more, sent while nobody knows what became of the first. */
    struct {
        struct leat_request request;
        struct leat_iov iov;
        uint8_t control[256];
        struct sent_batch batch;
        bool busy;
    } duplicate;
};

static void raw_step(struct sim_world *world, struct sim_event *event);
static void append_send(struct raw *raw);

static void later(struct raw *raw, uint64_t delay_us)
{
    sim_actor_post(raw->client->actor, delay_us, raw_step, raw);
}

static void lookup_done(struct leat_client_lookup *lookup, leat_err rc,
                        const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct raw *raw = lookup->owner;
    if (rc != LEAT_OK) {
        later(raw, 20000);
        return;
    }
    const struct leat_client_log *log =
        &stream->logs[sim_rng_below(&raw->client->rng, stream->log_count)];
    if (raw->log.stream == 0) raw->log = log->ref;
    for (uint32_t i = 0; i < stream->log_count; i++)
        if (leat_log_ref_equal(stream->logs[i].ref, raw->log))
            raw->log_epoch = stream->logs[i].epoch.v;
    later(raw, raw->step == STEP_LOOKUP ? 10 : sim_rng_between(&raw->client->rng, 100, 10000));
    if (raw->step == STEP_LOOKUP) raw->step = STEP_ID;
    (void)error;
}

static void look_up(struct raw *raw)
{
    raw->lookup =
        (struct leat_client_lookup){.timeout_us = 2000000, .on_done = lookup_done, .owner = raw};
    memcpy(raw->lookup.name, raw->client->scenario->streams[RAW_STREAM].name,
           sizeof raw->client->scenario->streams[RAW_STREAM].name);
    leat_client_lookup(raw->client->client, &raw->lookup);
}

/* ---- producer ids ---- */

static void id_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    struct raw *raw = request->owner;
    if (rc != LEAT_OK) {
        later(raw, 10000);
        return;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_read_array(&reader);
    int64_t id = leat_msg_read_i64(&reader);
    int16_t epoch = (int16_t)leat_msg_read_i64(&reader);
    if (raw->id >= 0 && (id != raw->id || epoch <= raw->epoch))
        sim_fail(raw->client->scenario->world, "producer id %lld/%d after %lld/%d", (long long)id,
                 epoch, (long long)raw->id, raw->epoch);
    raw->id = id;
    raw->epoch = epoch;
    raw->next_sequence = 0;
    raw->done_count = 0;
    raw->step = STEP_NEXT;
    later(raw, 10);
    (void)error;
}

static void id_send(struct raw *raw)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, raw->control, sizeof raw->control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_i64(&writer, raw->id);
    leat_msg_write_i64(&writer, raw->id < 0 ? -1 : raw->epoch);
    raw->request = (struct leat_request){.kind = LEAT_KIND_PRODUCER_ID,
                                         .control = raw->control,
                                         .control_bytes = writer.used,
                                         .on_done = id_done,
                                         .owner = raw};
    if (leat_client_send(raw->client->client, &raw->request) != LEAT_OK) later(raw, 10000);
}

/* ---- batches ---- */

static void batch_build(struct raw *raw, int32_t sequence, int16_t epoch)
{
    struct scenario *scenario = raw->client->scenario;
    struct leat_batch_builder builder;
    struct sent_batch *batch = &raw->now;
    leat_batch_builder_init(&builder, batch->bytes, sizeof batch->bytes);
    batch->first_number = raw->next_number;
    batch->unsure = false;
    batch->record_count = (uint32_t)sim_rng_between(&raw->client->rng, 1, 4);
    batch->sequence = sequence;
    for (uint32_t i = 0; i < batch->record_count; i++) {
        uint32_t words[3] = {raw->client->index, raw->next_number++, RAW_STREAM};
        leat_err rc = leat_batch_builder_add(&builder, scenario->world->wall_base_ms, NULL, 0,
                                             words, sizeof words, NULL, 0, 0);
        LEAT_ASSERT(rc == LEAT_OK);
        check_sent(scenario->check, RAW_STREAM, (struct check_value){words[0], words[1]});
    }
    batch->byte_count =
        leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, raw->id, epoch, sequence);
}

/* The records are said to be compressed, and are not. */
static void batch_poison(struct raw *raw)
{
    struct sent_batch *batch = &raw->now;
    batch_build(raw, raw->next_sequence, raw->epoch);
    batch->bytes[LEAT_BATCH_CRC_FROM + 1] |=
        (uint8_t)sim_rng_between(&raw->client->rng, LEAT_CODEC_GZIP, LEAT_CODEC_ZSTD);
    leat_batch_set_producer(batch->bytes, batch->byte_count, raw->id, raw->epoch, batch->sequence);
}

/* A block of a frame of zstd: as it is, or one byte again and again (RFC 8878, 3.1.1.2). */
static uint8_t *zstd_block(uint8_t *at, unsigned kind, uint32_t bytes, bool last)
{
    uint32_t head = (uint32_t)last | kind << 1 | bytes << 3;
    for (unsigned i = 0; i < 3; i++)
        *at++ = (uint8_t)(head >> (8 * i));
    return at;
}

/* Some hundred bytes of zstd that make more zeros than a batch may; more, too, than is uncompressed in a turn, so
 * others wait. By hand: to compress 9 MiB takes as long as a tenth of a seed. One record, whose value goes on and
 * on. */
static uint32_t bomb_make(uint8_t *out)
{
    enum { RAW = 0, RLE = 1, BLOCK_BYTES = 128 * 1024, WINDOW_OF_128_KIB = 7 << 3 };
    static const uint8_t record[] = {0xf0, 0xff, 0xff, 0x26, 0, 0, 0, 1, 0xd0, 0xff, 0xff, 0x26};
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, WINDOW_OF_128_KIB};
    uint8_t *at = out;
    memcpy(at, frame, sizeof frame);
    at = zstd_block(at + sizeof frame, RAW, sizeof record, false);
    memcpy(at, record, sizeof record);
    at += sizeof record;
    for (uint32_t made = 0; made <= LEAT_UNPACKED_BYTES_MAX; made += BLOCK_BYTES) {
        at = zstd_block(at, RLE, BLOCK_BYTES, made + BLOCK_BYTES > LEAT_UNPACKED_BYTES_MAX);
        *at++ = 0;
    }
    return (uint32_t)(at - out);
}

static void batch_bomb(struct raw *raw)
{
    struct sent_batch *batch = &raw->now;
    batch_build(raw, raw->next_sequence, raw->epoch);
    batch->byte_count = LEAT_BATCH_HEADER_BYTES + bomb_make(batch->bytes + LEAT_BATCH_HEADER_BYTES);
    LEAT_ASSERT_CMP(batch->byte_count, <=, sizeof batch->bytes);
    batch->bytes[LEAT_BATCH_CRC_FROM + 1] |= LEAT_CODEC_ZSTD;
    leat_put_be32(batch->bytes + LEAT_BATCH_LENGTH_AT,
                  (uint32_t)batch->byte_count - LEAT_BATCH_LENGTH_AT - 4);
    leat_batch_set_producer(batch->bytes, batch->byte_count, raw->id, raw->epoch, batch->sequence);
}

static void batch_refused(struct raw *raw, leat_err rc, leat_err wanted)
{
    struct scenario *scenario = raw->client->scenario;
    sim_trace(scenario->world, "raw: values from %u refused by %s (sequence %d, epoch %d)",
              raw->now.first_number, leat_err_name(rc), (int)raw->now.sequence, (int)raw->epoch);
    /* A log that the restarted server has not read yet may not know the producer any more only if
     * it expired; that takes a day. */
    bool forgotten = raw->step == STEP_GAP && rc == LEAT_E_UNKNOWN_PRODUCER &&
                     check_loss_accepted(scenario->check);
    if (rc != wanted && !forgotten) {
        sim_fail(scenario->world, "A5 aborted-read: raw producer wanted %s, got %s (step %d)",
                 leat_err_name(wanted), leat_err_name(rc), (int)raw->step);
        return;
    }
    for (uint32_t i = 0; i < raw->now.record_count; i++)
        check_failed(scenario->check, RAW_STREAM,
                     (struct check_value){raw->client->index, raw->now.first_number + i}, true);
    /* SUBTLE: bytes of the first try may still be on their way, and come when what was a gap is the next sequence; in
     * another epoch nothing makes it the next. */
    raw->step = raw->step == STEP_GAP && raw->now.unsure ? STEP_EPOCH : STEP_NEXT;
    later(raw, sim_rng_between(&raw->client->rng, 100, 20000));
}

/* What the step has to be answered. */
static leat_err step_refusal(enum step step)
{
    switch (step) {
    case STEP_GAP:
        return LEAT_E_SEQUENCE_GAP;
    case STEP_OLD:
        return LEAT_E_PRODUCER_FENCED;
    case STEP_POISON:
        return LEAT_E_INVALID;
    case STEP_BOMB:
        return LEAT_E_TOO_LARGE;
    default:
        return LEAT_OK;
    }
}

static void batch_acked(struct raw *raw, uint64_t offset)
{
    struct scenario *scenario = raw->client->scenario;
    bool anew = raw->step == STEP_GAP && raw->done_count == 0 &&
                check_loss_accepted(scenario->check); /* a log that knows nobody may take anyone */
    if (anew) raw->next_sequence = raw->now.sequence;
    if (step_refusal(raw->step) != LEAT_OK && !anew) {
        sim_fail(scenario->world, "A5 aborted-read: raw producer's batch was appended (step %d)",
                 (int)raw->step);
        return;
    }
    struct leat_log_ref log = {RAW_STREAM, raw->log.streamlet, raw->log.log};
    sim_trace(scenario->world, "%u/%u/%u values from %u acked at %llu (sequence %d)", log.stream,
              log.streamlet, log.log, raw->now.first_number, (unsigned long long)offset,
              (int)raw->now.sequence);
    for (uint32_t i = 0; i < raw->now.record_count; i++)
        check_acked(scenario->check, log,
                    (struct check_value){raw->client->index, raw->now.first_number + i},
                    offset + i);
    if (raw->step != STEP_RESEND) scenario->acked_batches++;
    sim_copies_acked(scenario, log);
    if (raw->step == STEP_NEXT || anew) {
        raw->now.offset = offset;
        raw->done[raw->done_count++ % RAW_REMEMBERED] = raw->now;
        raw->next_sequence += (int32_t)raw->now.record_count;
    }
    raw->step = STEP_NEXT;
    later(raw, sim_rng_between(&raw->client->rng, 100, 20000));
}

static void append_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct raw *raw = request->owner;
    uint64_t offset = 0;
    (void)error;
    if (rc == LEAT_OK) { /* [[code, first offset]...] */
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        (void)leat_msg_read_array(&reader);
        (void)leat_msg_read_array(&reader);
        rc = (leat_err)leat_msg_read_u32(&reader);
        offset = leat_msg_read_u64(&reader);
        LEAT_ASSERT(!reader.failed);
    }
    if (rc == LEAT_OK) {
        batch_acked(raw, offset);
    } else if (rc == LEAT_E_ALREADY_APPENDED && raw->step == STEP_RESEND) {
        raw->step = STEP_NEXT; /* older than five: its offset is not remembered */
        later(raw, 1000);
    } else if (leat_err_class(rc) == LEAT_CLASS_REJECT) {
        batch_refused(raw, rc, step_refusal(raw->step));
    } else { /* unknown, or to be asked elsewhere: the same batch again */
        sim_fault_struck(raw->client->scenario->world, SIM_FAULT_RESEND);
        sim_trace(raw->client->scenario->world, "raw: %s, again", leat_err_name(rc));
        raw->now.byte_count |= 1u << 31;
        raw->now.unsure = true;
        if (leat_err_class(rc) == LEAT_CLASS_REROUTE)
            look_up(raw);
        else
            later(raw, sim_rng_between(&raw->client->rng, 100, 50000));
    }
}

/* Whatever it is answered, the batch is there once; success says that it is there to stay. */
static void duplicate_done(struct leat_request *request, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct raw *raw = request->owner;
    struct scenario *scenario = raw->client->scenario;
    (void)error;
    raw->duplicate.busy = false;
    if (rc != LEAT_OK) return;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_array(&reader);
    rc = (leat_err)leat_msg_read_u32(&reader);
    uint64_t offset = leat_msg_read_u64(&reader);
    LEAT_ASSERT(!reader.failed);
    if (rc != LEAT_OK) return;
    struct leat_log_ref log = {RAW_STREAM, raw->log.streamlet, raw->log.log};
    for (uint32_t i = 0; i < raw->duplicate.batch.record_count; i++)
        check_acked(scenario->check, log,
                    (struct check_value){raw->client->index, raw->duplicate.batch.first_number + i},
                    offset + i);
    sim_copies_acked(scenario, log);
}

static void duplicate_send(struct sim_world *world, struct sim_event *event)
{
    struct raw *raw = event->a;
    struct leat_msg_writer writer;
    if (raw->duplicate.busy || raw->step != STEP_NEXT || raw->now.sequence != (int32_t)event->n)
        return;
    struct leat_msg_append append = {raw->log, raw->log_epoch, 1};
    leat_msg_writer_init(&writer, raw->duplicate.control, sizeof raw->duplicate.control);
    leat_msg_append_write(&writer, &append);
    raw->duplicate.batch = raw->now;
    raw->duplicate.batch.byte_count &= ~(1u << 31);
    raw->duplicate.iov =
        (struct leat_iov){raw->duplicate.batch.bytes, raw->duplicate.batch.byte_count};
    raw->duplicate.request = (struct leat_request){.kind = LEAT_KIND_APPEND,
                                                   .log = raw->log,
                                                   .control = raw->duplicate.control,
                                                   .control_bytes = writer.used,
                                                   .payload = &raw->duplicate.iov,
                                                   .payload_count = 1,
                                                   .on_done = duplicate_done,
                                                   .owner = raw};
    raw->duplicate.busy = leat_client_send(raw->client->client, &raw->duplicate.request) == LEAT_OK;
    if (raw->duplicate.busy) sim_fault_struck(world, SIM_FAULT_RESEND);
}

static void append_send(struct raw *raw)
{
    struct leat_msg_writer writer;
    struct leat_msg_append append = {raw->log, raw->log_epoch, 1};
    leat_msg_writer_init(&writer, raw->control, sizeof raw->control);
    leat_msg_append_write(&writer, &append);
    raw->now.byte_count &= ~(1u << 31);
    raw->iov = (struct leat_iov){raw->now.bytes, raw->now.byte_count};
    raw->request = (struct leat_request){.kind = LEAT_KIND_APPEND,
                                         .log = raw->log,
                                         .control = raw->control,
                                         .control_bytes = writer.used,
                                         .payload = &raw->iov,
                                         .payload_count = 1,
                                         .on_done = append_done,
                                         .owner = raw};
    bool sent = leat_client_send(raw->client->client, &raw->request) == LEAT_OK;
    if (sent && raw->step == STEP_NEXT && sim_rng_chance(&raw->client->rng, 400))
        sim_actor_post(raw->client->actor, sim_rng_between(&raw->client->rng, 10, 20000),
                       duplicate_send, raw)
            ->n = (uint64_t)raw->now.sequence;
    if (sent) return;
    raw->now.byte_count |= 1u << 31;
    look_up(raw);
}

/* In one seed of thirty-two the first batch that a log gets from the producer follows a batch that may be on its
 * way. */
static bool begins_late(const struct raw *raw)
{
    return raw->steps_left == raw->client->quota && raw->client->scenario->world->seed % 32 == 9;
}

static void next_choose(struct raw *raw)
{
    struct sim_rng *rng = &raw->client->rng;
    struct sim_world *world = raw->client->scenario->world;
    if (raw->steps_left == 0) {
        raw->step = STEP_DONE;
        return;
    }
    uint64_t pick = raw->done_count ? sim_rng_below(rng, 10) : begins_late(raw) ? 3 : 9;
    raw->steps_left--;
    if (pick < 3) {
        uint32_t back = raw->done_count < RAW_REMEMBERED ? raw->done_count : RAW_REMEMBERED;
        raw->now = raw->done[(raw->done_count - 1 - sim_rng_below(rng, back)) % RAW_REMEMBERED];
        raw->step = STEP_RESEND;
        sim_fault_struck(world, SIM_FAULT_RESEND);
    } else if (pick == 3) {
        batch_build(raw, raw->next_sequence + (int32_t)sim_rng_between(rng, 1, 50), raw->epoch);
        raw->step = STEP_GAP;
        sim_fault_struck(world, SIM_FAULT_GAP);
    } else if (pick == 4 && raw->epoch > 0) {
        batch_build(raw, raw->next_sequence, (int16_t)(raw->epoch - 1));
        raw->step = STEP_OLD;
        sim_fault_struck(world, SIM_FAULT_OLD_EPOCH);
    } else if (pick == 6 && sim_rng_chance(rng, 500)) {
        bool bomb = sim_rng_chance(rng, 200);
        raw->step = bomb ? STEP_BOMB : STEP_POISON;
        if (bomb)
            batch_bomb(raw);
        else
            batch_poison(raw);
        sim_fault_struck(world, SIM_FAULT_POISON);
    } else if (pick == 5 && sim_rng_chance(rng, 300)) {
        raw->step = STEP_EPOCH;
        id_send(raw);
        return;
    } else {
        batch_build(raw, raw->next_sequence, raw->epoch);
        raw->step = STEP_NEXT;
    }
    append_send(raw);
}

static void raw_step(struct sim_world *world, struct sim_event *event)
{
    struct raw *raw = event->a;
    if (!raw->client->scenario->streams_made)
        later(raw, 5000);
    else if (raw->step == STEP_LOOKUP)
        look_up(raw);
    else if (raw->step == STEP_ID || raw->step == STEP_EPOCH)
        id_send(raw);
    else if (raw->now.byte_count & (1u << 31))
        append_send(raw);
    else if (raw->step == STEP_NEXT)
        next_choose(raw);
    (void)world;
}

void sim_raw_start(struct sim_client *client)
{
    struct raw *raw = calloc(1, sizeof *raw);
    LEAT_ASSERT(raw != NULL);
    raw->client = client;
    raw->id = -1;
    raw->steps_left = client->quota = 60;
    client->state = raw;
    later(raw, 1000);
}

bool sim_raw_done(const struct sim_client *client)
{
    return ((const struct raw *)client->state)->step == STEP_DONE;
}
