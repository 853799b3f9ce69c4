/* SPDX-License-Identifier: Apache-2.0 */
/* A backup alone, on node 1 of a world (world.h) in which no other node sends requests to the backup: all its answers,
 * and all its requests to the store, go into the trace, and the store answers by hand. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_BACKUP_RIG_H
#define LEAT_TESTS_REPLICATION_BACKUP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "tests/replication/world.h"
#include "tests/trace.h"
#include "wire/batch.h"

enum {
    RIG_WAITING_MAX = 32,
    RIG_SEGMENTS_MAX = 300,
    RIG_CAPACITY = 64 * 1024,
    RIG_EPOCH = 5,
    RIG_ENDS = 4, /* only the start entry; a batch; another; closed */
};

static const struct leat_log_ref rig_log = {1, 2, 3};
static const struct leat_link_identity rig_w1 = {.node = "w1", .incarnation = 11, .cores = 1};
static const struct leat_link_identity rig_w2 = {.node = "w2", .incarnation = 12, .cores = 1};

struct rig {
    struct world *world;
    struct leat_backup *backup;
    struct leat_store_req *reqs[RIG_WAITING_MAX];
    unsigned req_count;
    struct leat_segment segs[RIG_SEGMENTS_MAX];
    unsigned seg_count;
    _Alignas(8) uint8_t image[RIG_CAPACITY + 8]; /* also what is more than it can be */
    struct leat_prefix_id ends[RIG_ENDS];        /* of the image */
    bool acked; /* each entry says that the entries before were acked; a segment precedes */
    uint64_t offsets[RIG_ENDS]; /* that come after each */
    int64_t times[RIG_ENDS];
};

/* ---- what it says ---- */
static inline void rig_handle_trace(uint64_t handle)
{
    trace(" h%u", (unsigned)handle);
    if (handle >> 32 > 1) trace("/%u", (unsigned)(handle >> 32));
}

static inline void rig_rows_trace(struct leat_msg_reader *reader)
{
    trace(" next %llu:", (unsigned long long)leat_msg_read_u64(reader));
    uint32_t count = leat_msg_read_array(reader);
    for (uint32_t i = 0; i < count; i++) {
        struct rep_row row;
        rep_row_read(reader, &row);
        if (count > 8 && i > 0 && i + 1 < count) continue;
        rig_handle_trace(row.handle);
        trace("=%u/%u/%u s%llu e%u v%u state%u %u:%u", row.log.stream, row.log.streamlet,
              row.log.log, (unsigned long long)row.segment.v, row.epoch.v, row.version, row.state,
              row.prefix_id.bytes, row.prefix_id.crc != 0);
    }
    if (count > 8) trace(" (%u)", count);
    assert_true(leat_msg_read_done(reader));
}

static inline void rig_answer(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                              uint32_t bytes)
{
    static struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    struct leat_msg_reader reader;
    struct rep_answer answer;
    uint32_t count;
    (void)ctx;
    trace("%u: answer", ticket->request);
    leat_msg_reader_init(&reader, control, bytes);
    switch (ticket->kind) {
    case LEAT_REP_ATTACH:
    case LEAT_REP_ASK:
        break;
    case LEAT_REP_AUDIT:
        assert_int_equal(leat_msg_read_array(&reader), 2);
        rig_rows_trace(&reader);
        break;
    case LEAT_REP_RESTAMP:
    case LEAT_REP_FLUSH:
    case LEAT_REP_SETTLE:
        assert_int_equal(rep_pairs_decode(control, bytes, pairs, &count), LEAT_OK);
        for (uint32_t i = 0; i < count; i++) {
            rig_handle_trace(pairs[i].handle);
            trace("=%s", leat_err_name((leat_err)pairs[i].value));
        }
        break;
    case LEAT_REP_PULL: {
        assert_int_equal(leat_msg_read_array(&reader), 2);
        struct leat_msg_string piece = leat_msg_read_string(&reader);
        trace(" piece %u, begins %02x%02x, passed %u", piece.bytes, (uint8_t)piece.text[0],
              (uint8_t)piece.text[1], leat_msg_read_u32(&reader));
        break;
    }
    default:
        assert_int_equal(rep_answer_decode(control, bytes, &answer), LEAT_OK);
        if (answer.handle) rig_handle_trace(answer.handle);
        if (answer.place) trace(" @%llu", (unsigned long long)answer.place);
        if (answer.load_bytes) trace(" load %llu", (unsigned long long)answer.load_bytes);
        break;
    }
    trace("\n");
}

static inline void rig_refuse(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                              const char *text)
{
    (void)ctx;
    assert_true(text && text[0]);
    trace("%u: %s%s\n", ticket->request, leat_err_name(rc),
          strstr(text, "more bytes wait for the disk") ? ", as bytes wait" : "");
}

static inline void rig_req_trace(const struct leat_store_req *req)
{
    static const char *const names[] = {
        [LEAT_STORE_RESERVE] = "RESERVE", [LEAT_STORE_COMMIT] = "COMMIT",
        [LEAT_STORE_CLOSE] = "CLOSE",     [LEAT_STORE_HIBERNATE] = "HIBERNATE",
        [LEAT_STORE_RESUME] = "RESUME",   [LEAT_STORE_DROP] = "DROP",
        [LEAT_STORE_EVICT] = "EVICT",     [LEAT_STORE_STAMP] = "STAMP",
        [LEAT_STORE_MOVE] = "MOVE"};
    const struct leat_segment *seg = req->seg;
    trace("store %s s%llu", names[req->kind], (unsigned long long)(seg ? seg->id : req->id).v);
    if (req->kind == LEAT_STORE_RESERVE)
        trace(" %u/%u/%u e%u cap %u d%u", req->log.stream, req->log.streamlet, req->log.log,
              req->epoch.v, req->capacity, (unsigned)req->durability);
    if (req->kind == LEAT_STORE_RESERVE || req->kind == LEAT_STORE_STAMP)
        trace(" v%u role %u writer %llu%s%s", req->version, (unsigned)req->role,
              (unsigned long long)req->writer, req->incomplete ? " part" : "",
              req->provisional ? " provisional" : "");
    if (req->kind == LEAT_STORE_RESERVE || req->kind == LEAT_STORE_RESUME)
        trace("%s", req->arena ? " there" : " here");
    if (req->kind == LEAT_STORE_RESUME) trace(" cap %u v%u", req->capacity, seg->version);
    if (req->kind == LEAT_STORE_COMMIT) trace(" %u..%u", req->from_bytes, req->to_bytes);
    if (req->kind == LEAT_STORE_CLOSE || req->kind == LEAT_STORE_HIBERNATE)
        trace(" %u:%u", seg->prefix_id.bytes, seg->prefix_id.crc != 0);
    if (req->kind == LEAT_STORE_CLOSE)
        trace(" from %llu to %llu/%lld passed %u state %u", (unsigned long long)seg->base_offset,
              (unsigned long long)seg->next_offset, (long long)seg->max_timestamp_ms,
              seg->passed_bytes, (unsigned)seg->state);
    if (req->kind == LEAT_STORE_DROP && req->leave) trace(" leave");
    trace("\n");
}

static inline void rig_store(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    struct rig *rig = ctx;
    (void)post;
    rig_req_trace(req);
    assert_true(rig->req_count < RIG_WAITING_MAX);
    rig->reqs[rig->req_count++] = req;
}

/* ---- segments ---- */
static inline void rig_batch_add(struct rig *rig, struct leat_entry_writer *writer, unsigned end)
{
    uint8_t bytes[512], value[64] = {0};
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    int64_t time_ms = 5000 + (int64_t)end;
    leat_err rc =
        leat_batch_builder_add(&builder, time_ms, NULL, 0, value, sizeof value, NULL, 0, 0);
    assert_int_equal(rc, LEAT_OK);
    uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    uint64_t offset = 100 + end - 1;
    leat_batch_stamp(bytes, offset, RIG_EPOCH);
    (void)leat_entry_append(writer, LEAT_ENTRY_BATCH, offset, 1, bytes, count,
                            leat_crc32c(0, bytes, count));
    rig->ends[end] = leat_entry_seal(writer, rig->acked ? writer->sealed_bytes : 0);
    rig->offsets[end] = offset + 1;
    rig->times[end] = time_ms;
}

/* Segment `id` of the log: its records begin at 100. */
static inline void rig_image_of(struct rig *rig, uint64_t id, uint32_t capacity)
{
    struct leat_entry_writer writer;
    memset(rig->image, 0, sizeof rig->image);
    leat_entry_writer_init(&writer, rig->image, RIG_CAPACITY);
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .stream = rig_log.stream,
                                         .streamlet = rig_log.streamlet,
                                         .log = rig_log.log,
                                         .epoch = RIG_EPOCH,
                                         .segment = id,
                                         .owner_incarnation = rig_w1.incarnation,
                                         .capacity = capacity,
                                         .durability = LEAT_DURABILITY_MEMORY};
    struct leat_start start = {.base_offset = 100, .first_segment = id, .first_offset = 100};
    if (rig->acked) start.previous = (struct leat_prefix_id){44, 4};
    struct leat_close close = {.next_offset = 102, .record_count = 2, .max_timestamp_ms = 5002};
    (void)leat_entry_append(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header,
                            leat_crc32c(0, &header, sizeof header));
    (void)leat_entry_append(&writer, LEAT_ENTRY_START, 0, 0, &start, sizeof start,
                            leat_crc32c(0, &start, sizeof start));
    rig->ends[0] = leat_entry_seal(&writer, 0);
    rig->offsets[0] = 100;
    rig->times[0] = -1;
    rig_batch_add(rig, &writer, 1);
    rig_batch_add(rig, &writer, 2);
    close.bytes = writer.used;
    (void)leat_entry_append(&writer, LEAT_ENTRY_CLOSE, 0, 0, &close, sizeof close,
                            leat_crc32c(0, &close, sizeof close));
    rig->ends[3] = leat_entry_seal(&writer, 0);
    rig->offsets[3] = rig->offsets[2];
    rig->times[3] = rig->times[2];
}

static inline void rig_image(struct rig *rig, uint64_t id)
{
    rig_image_of(rig, id, RIG_CAPACITY);
}

static inline struct leat_segment *rig_segment(struct rig *rig, uint64_t id)
{
    assert_true(rig->seg_count < RIG_SEGMENTS_MAX);
    struct leat_segment *seg = &rig->segs[rig->seg_count++];
    *seg = (struct leat_segment){.log = rig_log,
                                 .id = {id},
                                 .epoch = {RIG_EPOCH},
                                 .version = 1,
                                 .role = LEAT_SEGMENT_REPLICA,
                                 .writer = rig_w1.incarnation,
                                 .durability = LEAT_DURABILITY_MEMORY,
                                 .capacity = RIG_CAPACITY,
                                 .file_offset = 4096,
                                 .state = LEAT_SEGMENT_RESERVED};
    return seg;
}

/* The store's answer to the oldest request of that kind, and what it has done for it. */
static inline void rig_stored(struct rig *rig, enum leat_store_req_kind kind, leat_err rc)
{
    unsigned i = 0;
    while (i < rig->req_count && rig->reqs[i]->kind != kind)
        i++;
    assert_true(i < rig->req_count);
    struct leat_store_req *req = rig->reqs[i];
    struct leat_segment *seg = req->seg;
    rig->req_count--;
    memmove(&rig->reqs[i], &rig->reqs[i + 1], (rig->req_count - i) * sizeof rig->reqs[0]);
    req->rc = rc;
    if (!rc && kind == LEAT_STORE_RESERVE) {
        seg = req->seg = rig_segment(rig, req->id.v);
        seg->log = req->log;
        seg->epoch = req->epoch;
        seg->version = req->version;
        seg->writer = req->writer;
        seg->durability = req->durability;
        seg->capacity = req->capacity;
        seg->incomplete = req->incomplete;
        const struct backup_writer *writer = backup_writer_find(rig->backup, "w1", 11);
        seg->buffer = writer->arena.base + (size_t)RIG_CAPACITY * rig->seg_count;
        memset(seg->buffer, 0, RIG_CAPACITY);
    }
    if (!rc && kind == LEAT_STORE_STAMP) {
        seg->version = req->version;
        seg->role = req->role;
        seg->writer = req->writer;
        seg->incomplete = req->incomplete;
        seg->provisional = req->provisional;
    }
    if (!rc && kind == LEAT_STORE_HIBERNATE) {
        struct leat_scan scan;
        leat_scan_segment(seg->buffer, seg->prefix_id.bytes, &scan);
        seg->state = LEAT_SEGMENT_HIBERNATED;
        seg->base_offset = scan.base_offset;
        seg->next_offset = scan.next_offset;
        seg->max_timestamp_ms = scan.max_timestamp_ms;
    }
    if (!rc && (kind == LEAT_STORE_HIBERNATE || kind == LEAT_STORE_EVICT)) seg->buffer = NULL;
    if (!rc && kind == LEAT_STORE_RESUME) {
        seg->state = LEAT_SEGMENT_OPEN;
        seg->buffer = backup_writer_find(rig->backup, "w1", 11)->arena.base;
    }
    req->on_done(req);
}

/* ---- what it is asked ---- */
static inline void rig_hear(struct rig *rig, const struct leat_link_identity *who, unsigned kind,
                            const uint8_t *control, uint32_t bytes)
{
    static uint32_t requests;
    if (trace_used == 0) requests = 0;
    struct leat_frame frame = {.kind = (uint16_t)kind, .control = control, .control_bytes = bytes};
    struct leat_link_ticket ticket = {
        .connection = UINT64_MAX, .request = ++requests, .kind = frame.kind};
    leat_backup_request(rig->backup, who, &frame, &ticket);
}

static inline void rig_ask(struct rig *rig, const struct leat_link_identity *who, unsigned kind,
                           const struct rep_body *body)
{
    uint8_t control[REP_BODY_BYTES_MAX];
    rig_hear(rig, who, kind, control, rep_body_encode(body, control));
}

static inline void rig_ask_rows(struct rig *rig, const struct leat_link_identity *who,
                                unsigned kind, const struct rep_pair *pairs, uint32_t count)
{
    static uint8_t control[LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8];
    rig_hear(rig, who, kind, control, rep_pairs_encode(pairs, count, control, sizeof control));
}

static inline void rig_audit(struct rig *rig, uint64_t from, bool all)
{
    uint8_t control[16];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, from);
    leat_msg_write_bool(&writer, all);
    rig_hear(rig, &rig_w1, LEAT_REP_AUDIT, control, writer.used);
}

/* The body that w1 would send for segment `id`, up to that end. */
static inline struct rep_body rig_body(const struct rig *rig, uint64_t handle, uint64_t id,
                                       unsigned end)
{
    return (struct rep_body){.handle = handle,
                             .log = rig_log,
                             .segment = {id},
                             .epoch = {RIG_EPOCH},
                             .version = 1,
                             .capacity = RIG_CAPACITY,
                             .durability = LEAT_DURABILITY_MEMORY,
                             .prefix_id = rig->ends[end],
                             .next_offset = rig->offsets[end],
                             .max_timestamp_ms = rig->times[end],
                             .owner = {RIG_EPOCH}};
}

/* The one that came last. */
static inline struct replica *rig_replica(const struct rig *rig, uint64_t id)
{
    struct replica *found = NULL;
    LEAT_LIST_EACH(&rig->backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->seg && rep->seg->id.v == id) found = rep;
    }
    return found;
}

/* Opened by w1, and all bytes of the image written into it. */
static inline struct replica *rig_open(struct rig *rig, uint64_t id, uint32_t durability,
                                       bool incomplete)
{
    struct rep_body body = rig_body(rig, 0, id, 0);
    size_t used = trace_used;
    body.durability = durability;
    body.incomplete = incomplete;
    body.prefix_id = (struct leat_prefix_id){0};
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    struct replica *rep = rig_replica(rig, id);
    rig_image(rig, id);
    memcpy(rep->seg->buffer, rig->image, RIG_CAPACITY);
    trace_text[trace_used = used] = '\0'; /* how is not what is looked at */
    return rep;
}

/* Found at a start: closed, up to the image's end. */
static inline struct replica *rig_found(struct rig *rig, uint64_t id, enum leat_segment_state state,
                                        unsigned end)
{
    struct leat_segment *seg = rig_segment(rig, id);
    rig_image(rig, id);
    seg->state = state;
    seg->prefix_id = rig->ends[end];
    seg->base_offset = 100;
    seg->next_offset = rig->offsets[end];
    seg->max_timestamp_ms = rig->times[end];
    struct leat_found found = {.kind = LEAT_FOUND_CLOSED, .seg = seg};
    assert_int_equal(leat_backup_take_found(rig->backup, &found), LEAT_OK);
    return LEAT_CONTAINER(rig->backup->replicas.prev, struct replica, link);
}

static inline unsigned free_requests(const struct rig *rig)
{
    unsigned count = 0;
    for (const void *it = rig->backup->requests_free.first; it; memcpy(&it, it, sizeof it))
        count++;
    return count;
}

/* None is at hand: the next one takes memory. */
static inline void requests_forget(struct rig *rig)
{
    leat_free_list_fini(&rig->backup->requests_free);
}

static inline void rig_attach(struct rig *rig, const struct leat_link_identity *who)
{
    rig_hear(rig, who, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    world_run(rig->world, 300 * 1000);
    assert_non_null(backup_writer_find(rig->backup, who->node, who->incarnation));
}

static inline struct rig *rig_new(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig->world = world_new(1, 2, 2, 1, LEAT_DURABILITY_MEMORY, 0);
    rig->world->nodes[1].link_at_us = UINT64_MAX; /* the owner of that world never comes */
    rig->backup = rig->world->nodes[1].backup;
    rig->backup->options.net.answer = rig_answer;
    rig->backup->options.net.refuse = rig_refuse;
    size_t used = trace_used;
    rig_attach(rig, &rig_w1);
    rig_attach(rig, &rig_w2);
    rig->backup->store_port.ctx = rig;
    rig->backup->store_port.request = rig_store;
    rig_image(rig, 0);
    trace_text[trace_used = used] = '\0';
    return rig;
}

static inline void rig_free(struct rig *rig)
{
    world_free(rig->world);
    free(rig);
}

#endif
