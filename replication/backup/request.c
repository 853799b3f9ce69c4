/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of writers to the backup. Only OPEN may be refused for want of room, and a refused OPEN leaves nothing
 * allocated (dissertation §4.5.4): memory, disk space and row are there before its answer. */
#include <string.h>

#include "base/bug.h"
#include "replication/backup/state.h"

/* ---- open ---- */
static void on_reserved(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct leat_backup *backup = request->backup;
    struct replica *rep = request->rep;
    leat_err rc = req->rc;
    backup->opening_bytes -= request->body.capacity;
    rep->busy--;
    if (rc) {
        backup_refuse(backup, &request->ticket, rc, NULL);
        backup_request_put(request);
        backup_replica_free(rep);
        return;
    }
    backup_replica_has(rep, req->seg);
    backup->accounts.control_rpcs++;
    if (rep->writer->fenced) {
        backup_refuse(backup, &request->ticket, LEAT_E_STALE_EPOCH, NULL);
        backup_drop(rep);
    } else {
        backup_answer(backup, &request->ticket, rep);
    }
    backup_request_put(request);
}

/* Bytes that are not in files yet must reach the files within seconds, in case the power or the memory ends. */
static bool takes_more(const struct leat_backup *backup, uint32_t capacity)
{
    struct leat_store_usage usage;
    leat_store_usage(backup->options.store, &usage);
    return usage.arenas_used + backup->opening_bytes + capacity <=
           backup_unflushed_max(backup, &usage);
}

static bool is_capacity(uint32_t capacity)
{
    return capacity >= LEAT_SEGMENT_BYTES_MIN && capacity <= LEAT_SEGMENT_BYTES_MAX &&
           (capacity & (capacity - 1)) == 0;
}

static void open_replica(struct leat_backup *backup, struct backup_writer *writer,
                         const struct rep_body *body, const struct leat_link_ticket *ticket)
{
    struct replica *rep = NULL;
    struct backup_request *request = NULL;
    const struct leat_backup_options *options = &backup->options;
    leat_err rc = LEAT_OK;
    if (!is_capacity(body->capacity) || body->durability < LEAT_DURABILITY_MEMORY ||
        body->durability > LEAT_DURABILITY_DISK)
        rc = LEAT_E_INVALID;
    else if (!writer->at_store)
        rc = LEAT_E_AGAIN;
    else if (!takes_more(backup, body->capacity))
        rc = LEAT_E_AGAIN;
    else if (options->is_full && options->is_full(options->arg))
        rc = LEAT_E_NO_MEMORY;
    if (!rc) request = backup_request_get(backup);
    if (!rc && !request) rc = LEAT_E_NO_MEMORY;
    if (!rc) rc = backup_replica_new(backup, &rep);
    if (rc) {
        if (request) backup_request_put(request);
        backup->accounts.refused_opens++;
        backup_refuse(backup, ticket, rc,
                      rc == LEAT_E_AGAIN ? "more bytes wait for the disk than it takes in the time "
                                           "allowed; ask another backup"
                                         : NULL);
        return;
    }
    rep->writer = writer;
    rep->owner_epoch = body->owner;
    writer->replicas++;
    request->rep = rep;
    request->body = *body;
    request->ticket = *ticket;
    request->req = (struct leat_store_req){.log = body->log,
                                           .id = body->segment,
                                           .epoch = body->epoch,
                                           .durability = (enum leat_durability)body->durability,
                                           .capacity = body->capacity,
                                           .arena = writer->at_store,
                                           .version = body->version,
                                           .role = LEAT_SEGMENT_REPLICA,
                                           .writer = writer->incarnation,
                                           .incomplete = body->incomplete};
    backup->opening_bytes += body->capacity;
    backup_store(request, LEAT_STORE_RESERVE, on_reserved);
}

/* ---- about one replica ---- */
static void on_done(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct leat_backup *backup = request->backup;
    struct replica *rep = request->rep;
    if (req->kind == LEAT_STORE_CLOSE) backup_closed(request);
    /* SUBTLE: (1) COMPLETE is asked of a copy, and the disk refuses the row. (2) The owner takes the copy for lost,
     * and finds it in the next audit: if the audit called the copy complete, the owner would count it, and drop
     * another copy. (3) The next start finds a row with the flag incomplete, and drops the copy. */
    if (req->kind == LEAT_STORE_STAMP && req->rc) rep->seg->incomplete = true;
    if (req->rc)
        backup_refuse(backup, &request->ticket, req->rc, NULL);
    else
        backup_answer(backup, &request->ticket, rep);
    if (request->kind == LEAT_REP_CLOSE && !req->rc) backup->accounts.segments++;
    backup_request_put(request);
    backup_idle(rep);
}

/* The offset of the first record: from now on in the row, for a later owner. */
static bool base_offset_of(const struct leat_segment *seg, uint64_t *out_base_offset)
{
    struct leat_entry entry;
    struct leat_start start;
    memcpy(&entry, seg->buffer, sizeof entry);
    uint64_t at = (uint64_t)leat_entry_bytes(entry.payload_bytes);
    if (entry.type != LEAT_ENTRY_SEGMENT || at + sizeof entry + sizeof start > seg->capacity)
        return false;
    memcpy(&entry, seg->buffer + at, sizeof entry);
    if (entry.type != LEAT_ENTRY_START) return false;
    memcpy(&start, seg->buffer + at + sizeof entry, sizeof start);
    *out_base_offset = start.base_offset;
    return true;
}

static void close_now(struct backup_request *request, void (*then)(struct leat_store_req *req))
{
    struct leat_segment *seg = request->rep->seg;
    seg->prefix_id = request->body.prefix_id;
    seg->next_offset = request->body.next_offset;
    seg->max_timestamp_ms = request->body.max_timestamp_ms;
    seg->passed_bytes = backup_passed_bounded(seg, request->body.passed_bytes);
    backup_close(request, then);
}

static void stamp(struct backup_request *request, uint32_t version, bool incomplete,
                  void (*then)(struct leat_store_req *req))
{
    const struct leat_segment *seg = request->rep->seg;
    request->req.version = version;
    request->req.incomplete = incomplete;
    request->req.role = LEAT_SEGMENT_REPLICA;
    request->req.writer = seg->writer;
    backup_store(request, LEAT_STORE_STAMP, then);
}

/* SUBTLE: the copy of a segment that was closed already is closed first, and complete after that: a start in between
 * drops the copy. In the other order:
 *  1. The row says open and complete. The bytes are being written to the disk.
 *  2. The power goes. The valid prefix, started and not closed, is a mark of the current generation, of a segment
 *     before the head: the log would end where this prefix is torn. */
static void on_closed_before_whole(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    if (req->rc) {
        on_done(req);
        return;
    }
    backup_closed(request);
    request->backup->accounts.control_rpcs++;
    request->rep->busy--;
    request->req = (struct leat_store_req){0};
    stamp(request, request->body.version, false, on_done);
}

static void on_whole_before_closed(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    if (req->rc) {
        on_done(req);
        return;
    }
    request->rep->busy--;
    close_now(request, on_done);
}

/* The trailer that ends the prefix, and this segment's own header before it. */
static bool ends_with(const struct leat_segment *seg, struct leat_prefix_id prefix_id)
{
    struct leat_entry trailer;
    if (!seg->buffer || prefix_id.bytes < sizeof trailer || prefix_id.bytes > seg->capacity)
        return false;
    memcpy(&trailer, seg->buffer + prefix_id.bytes - sizeof trailer, sizeof trailer);
    return trailer.type == LEAT_ENTRY_TRAILER && trailer.crc == prefix_id.crc;
}

static bool scans_as(const struct leat_segment *seg, struct leat_prefix_id prefix_id,
                     struct leat_scan *out_scan)
{
    if (!seg->buffer || prefix_id.bytes > seg->capacity) return false;
    leat_scan_segment(seg->buffer, prefix_id.bytes, out_scan);
    return out_scan->started && out_scan->bytes == prefix_id.bytes &&
           out_scan->crc == prefix_id.crc && out_scan->header.stream == seg->log.stream &&
           out_scan->header.segment == seg->id.v && out_scan->header.epoch == seg->epoch.v;
}

static leat_err start_close(struct backup_request *request)
{
    struct leat_segment *seg = request->rep->seg;
    struct leat_scan scan;
    if (seg->state != LEAT_SEGMENT_RESERVED && seg->state != LEAT_SEGMENT_OPEN)
        return LEAT_E_INVALID;
    if (!ends_with(seg, request->body.prefix_id) || !base_offset_of(seg, &seg->base_offset))
        return LEAT_E_DAMAGED;
    if (!seg->incomplete) {
        request->backup->accounts.control_rpcs++;
        close_now(request, on_done);
        return LEAT_OK;
    }
    if (!scans_as(seg, request->body.prefix_id, &scan)) return LEAT_E_DAMAGED;
    if (LEAT_BUG(WHOLE_BEFORE_CLOSED))
        stamp(request, request->body.version, false, on_whole_before_closed);
    else
        close_now(request, on_closed_before_whole);
    return LEAT_OK;
}

static leat_err start_request(struct backup_request *request)
{
    struct replica *rep = request->rep;
    struct leat_segment *seg = rep->seg;
    struct rep_body *body = &request->body;
    struct leat_scan scan;
    bool open = seg->state == LEAT_SEGMENT_RESERVED || seg->state == LEAT_SEGMENT_OPEN;
    switch (request->kind) {
    case LEAT_REP_CLOSE:
        return start_close(request);
    case LEAT_REP_HIBERNATE:
        if (!open || seg->incomplete) return LEAT_E_INVALID;
        if (!ends_with(seg, body->prefix_id)) return LEAT_E_DAMAGED;
        seg->prefix_id = body->prefix_id;
        backup_store(request, LEAT_STORE_HIBERNATE, on_done); /* which scans it */
        return LEAT_OK;
    case LEAT_REP_RESUME:
        if (seg->state != LEAT_SEGMENT_HIBERNATED || !rep->writer || !rep->writer->at_store)
            return LEAT_E_INVALID;
        seg->version = body->version; /* goes along with the row that erases the record */
        request->req.arena = rep->writer->at_store;
        request->req.capacity = seg->capacity;
        backup_store(request, LEAT_STORE_RESUME, on_done);
        return LEAT_OK;
    case LEAT_REP_COMPLETE:
        if (!open) return LEAT_E_INVALID;
        if (!scans_as(seg, body->prefix_id, &scan)) return LEAT_E_DAMAGED;
        stamp(request, body->version, false, on_done);
        return LEAT_OK;
    default:
        return LEAT_E_UNSUPPORTED;
    }
}

static void drop_for(struct replica *rep, const struct backup_writer *writer)
{
    if (rep->writer == writer)
        backup_drop(rep);
    else
        backup_drop_for_another(rep);
}

static void drop_request(struct leat_backup *backup, struct replica *rep,
                         const struct backup_writer *writer, const struct leat_link_ticket *ticket)
{
    /* Answered at once: the requester needs nothing more of the replica, and a lost answer costs nothing. */
    drop_for(rep, writer);
    backup_answer(backup, ticket, NULL);
}

static void about_one(struct leat_backup *backup, struct backup_writer *writer, unsigned kind,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct rep_body body;
    leat_err rc = rep_body_decode(frame->control, frame->control_bytes, &body);
    struct replica *rep = NULL;
    struct backup_request *request = NULL;
    if (!rc && kind == LEAT_REP_OPEN) {
        open_replica(backup, writer, &body, ticket);
        return;
    }
    if (!rc) rep = backup_find(backup, body.handle);
    if (!rc && (!rep || !rep->seg)) rc = LEAT_E_NOT_FOUND;
    /* The request must name the replica's log and segment, and come from the log's latest owner. */
    if (!rc && (!leat_log_ref_equal(rep->seg->log, body.log) || rep->seg->id.v != body.segment.v))
        rc = LEAT_E_NOT_FOUND;
    if (!rc && rep->seg->epoch.v != body.epoch.v) rc = LEAT_E_STALE_EPOCH;
    if (!rc && body.owner.v && body.owner.v < rep->owner_epoch.v) rc = LEAT_E_STALE_EPOCH;
    if (!rc && kind != LEAT_REP_DROP && (rep->writer != writer || body.version < rep->seg->version))
        rc = LEAT_E_STALE_EPOCH;
    if (!rc && kind == LEAT_REP_DROP) {
        drop_request(backup, rep, writer, ticket);
        return;
    }
    if (!rc && (rep->busy || rep->drop_wanted)) rc = LEAT_E_AGAIN;
    if (!rc) request = backup_request_get(backup);
    if (!rc && !request) rc = LEAT_E_NO_MEMORY;
    if (rc) {
        backup_refuse(backup, ticket, rc, NULL);
        return;
    }
    request->rep = rep;
    request->kind = kind;
    request->ticket = *ticket;
    request->body = body;
    rep->settled = true;
    rc = start_request(request);
    if (!rc) return;
    backup_refuse(backup, ticket, rc, NULL);
    backup_request_put(request);
}

/* ---- rows ---- */
static void rows_finish(struct backup_rows *rows)
{
    struct leat_backup *backup = rows->backup;
    uint8_t body[LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8];
    if (--rows->left) return;
    uint32_t bytes = rep_pairs_encode(rows->pairs, rows->count, body, sizeof body);
    backup->options.net.answer(backup->options.net.ctx, &rows->ticket, body, bytes);
    leat_mem_free(rows);
}

static void on_row_done(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    struct backup_rows *rows = request->rows;
    rows->pairs[request->row].value = (uint64_t)req->rc;
    if (req->kind == LEAT_STORE_COMMIT && !req->rc) rep->flushed = req->to_bytes;
    backup_request_put(request);
    rows_finish(rows);
    backup_idle(rep);
}

static leat_err row_start(struct backup_rows *rows, uint32_t at, unsigned kind,
                          const struct backup_writer *writer)
{
    struct leat_backup *backup = rows->backup;
    struct replica *rep = backup_find(backup, rows->pairs[at].handle);
    uint64_t value = rows->pairs[at].value;
    if (!rep || !rep->seg) return LEAT_E_NOT_FOUND;
    if (rep->writer != writer) return LEAT_E_STALE_EPOCH;
    if (rep->busy || rep->drop_wanted) return LEAT_E_AGAIN;
    if (value > UINT32_MAX) return LEAT_E_INVALID;
    bool flush = kind == LEAT_REP_FLUSH;
    if (flush && (!rep->seg->buffer || value > rep->seg->capacity || value < rep->flushed))
        return LEAT_E_INVALID;
    if (!flush && value < rep->seg->version) return LEAT_E_STALE_EPOCH;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    request->rep = rep;
    request->rows = rows;
    request->row = at;
    rep->settled = true;
    if (flush) {
        request->req.from_bytes = rep->flushed;
        request->req.to_bytes = (uint32_t)value;
        backup_store(request, LEAT_STORE_COMMIT, on_row_done);
    } else {
        stamp(request, (uint32_t)value, rep->seg->incomplete, on_row_done);
    }
    return LEAT_OK;
}

static void about_many(struct leat_backup *backup, struct backup_writer *writer, unsigned kind,
                       const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    struct backup_rows *rows = NULL;
    uint32_t count = 0;
    leat_err rc = rep_pairs_decode(frame->control, frame->control_bytes, pairs, &count);
    if (!rc) rows = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *rows + count * sizeof *pairs);
    if (!rows) {
        backup_refuse(backup, ticket, rc ? rc : LEAT_E_NO_MEMORY, NULL);
        return;
    }
    memcpy(rows->pairs, pairs, count * sizeof *pairs);
    rows->count = count;
    rows->backup = backup;
    rows->ticket = *ticket;
    rows->left = 1;
    for (uint32_t i = 0; i < rows->count; i++) {
        leat_err row_rc = row_start(rows, i, kind, writer);
        if (row_rc)
            rows->pairs[i].value = (uint64_t)row_rc;
        else
            rows->left++;
    }
    if (kind == LEAT_REP_FLUSH) backup->accounts.flush_rpcs++;
    rows_finish(rows);
}

/* ---- audits ---- */
/* SUBTLE: without this check such a replica would stay for ever. (1) An owner that has not heard of its stream's
 * deletion opens a segment. (2) This backup knows of the deletion, or hears of it during the reservation, when there
 * is no replica yet to drop. (3) The owner hears of the deletion before OPEN is answered, and never drops the
 * replica. The OPEN is not refused: the owner would ask all other nodes in turn, and its log could not end. */
static bool is_over(const struct replica *rep, uint64_t now_us)
{
    uint64_t since_us = rep->gone_us > rep->opened_us ? rep->gone_us : rep->opened_us;
    return rep->seg && !rep->busy && !rep->drop_wanted && !rep->adopting &&
           !LEAT_BUG(DELETED_STAYS) && now_us >= since_us + BACKUP_GONE_US &&
           backup_stream_is_gone(rep->backup, rep->seg->log.stream);
}

static bool is_asked_about(const struct replica *rep, bool all, uint64_t now_us)
{
    if (!rep->seg || rep->busy || rep->drop_wanted) return false;
    if (all || leat_segment_is_damaged(rep->seg)) return true;
    bool young = rep->writer && now_us < rep->opened_us + BACKUP_YOUNG_US;
    return !rep->settled && !young;
}

static void audit(struct leat_backup *backup, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket)
{
    struct leat_msg_writer writer, body;
    struct rep_audit asked;
    if (rep_audit_decode(frame->control, frame->control_bytes, &asked) != LEAT_OK) {
        backup_refuse(backup, ticket, LEAT_E_INVALID, NULL);
        return;
    }
    static const size_t head_bytes = 32;
    uint64_t now_us = backup_now(backup);
    uint32_t count = 0;
    uint32_t at = asked.from < backup->slot_count ? (uint32_t)asked.from : backup->slot_count;
    leat_msg_writer_init(&body, backup->answer + head_bytes, BACKUP_ROWS_MAX * REP_ROW_BYTES_MAX);
    for (; at < backup->slot_count && count < BACKUP_ROWS_MAX; at++) {
        struct replica *rep = backup->slots[at];
        if (rep && rep->drop_wanted)
            backup_drop(rep); /* there was no memory for the drop, or the disk refused it */
        else if (rep && is_over(rep, now_us))
            backup_drop_for_another(
                rep); /* an owner that has not heard of the deletion may still write */
        if (!rep || !is_asked_about(rep, asked.all, now_us)) continue;
        const struct leat_segment *seg = rep->seg;
        struct rep_row row = {.handle = rep->handle,
                              .log = seg->log,
                              .segment = seg->id,
                              .epoch = seg->epoch,
                              .version = seg->version,
                              .state = seg->incomplete ? LEAT_SEGMENT_RESERVED : seg->state,
                              .prefix_id = seg->prefix_id};
        if (rep->damaged || (leat_segment_is_damaged(seg) && !LEAT_BUG(CORRUPT_COUNTS)))
            row.state = LEAT_SEGMENT_RESERVED; /* nothing that counts */
        rep_row_write(&body, &row);
        count++;
    }
    uint8_t head[32];
    leat_msg_writer_init(&writer, head, sizeof head);
    rep_audited_write(&writer, &(struct rep_audited){at < backup->slot_count ? at : 0, count});
    LEAT_ASSERT(!writer.overflow && !body.overflow);
    uint8_t *out = backup->answer + head_bytes - writer.used;
    memcpy(out, head, writer.used);
    backup->options.net.answer(backup->options.net.ctx, ticket, out, writer.used + body.used);
}

/* SUBTLE: what an earlier owner says is refused once a later owner counts the replica.
 *  1. X has a closed segment, and copies of it on B and C; two are wanted. Its log goes to Y, which has
 *     the segment as well, and counts B's copy: there are two. So C is told to drop it.
 *  2. X hears of the move later than the others. In its tables B's copy is one too many.
 *  3. B drops it. Y has the segment alone, and does not know; its disk is lost.
 * If X's DROP comes first, Y's KEEP is answered with LEAT_E_NOT_FOUND. */
static leat_err settle_one(struct leat_backup *backup, const struct backup_writer *writer,
                           const struct rep_pair *pair)
{
    struct replica *rep = backup_find(backup, pair->handle);
    unsigned word = pair->value % REP_SETTLE_WORDS;
    uint64_t owner = pair->value / REP_SETTLE_WORDS;
    if (!rep || !rep->seg || rep->drop_wanted || rep->dropping)
        return word == REP_SETTLE_KEEP ? LEAT_E_NOT_FOUND : LEAT_OK;
    if (owner < rep->owner_epoch.v && !LEAT_BUG(PAST_OWNER_DROPS)) return LEAT_E_STALE_EPOCH;
    if (rep->adopting && !LEAT_BUG(ADOPTED_FOR_THE_PAST))
        return LEAT_E_AGAIN; /* it becomes this node's own segment: leat_backup_adopt() */
    rep->leave |= word == REP_SETTLE_LEAVE;
    if (word != REP_SETTLE_KEEP) {
        drop_for(rep, writer);
        return LEAT_OK;
    }
    rep->owner_epoch.v = (uint32_t)owner;
    backup_confirm(rep, pair->passed);
    return LEAT_OK;
}

/* SETTLE: an owner's answer about replicas that an audit has listed. */
static void settle(struct leat_backup *backup, const struct backup_writer *writer,
                   const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    uint8_t body[LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8];
    uint32_t count, refused = 0;
    leat_err rc = rep_pairs_decode(frame->control, frame->control_bytes, pairs, &count);
    if (rc) {
        backup_refuse(backup, ticket, rc, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        leat_err code = settle_one(backup, writer, &pairs[i]);
        if (code) pairs[refused++] = (struct rep_pair){pairs[i].handle, (uint64_t)code, 0};
    }
    uint32_t bytes = rep_pairs_encode(pairs, refused, body, sizeof body);
    backup->options.net.answer(backup->options.net.ctx, ticket, body, bytes);
}

static void handle(struct leat_backup *backup, const struct leat_link_identity *who,
                   const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct backup_writer *writer = backup_writer_find(backup, who->node, who->incarnation);
    if (backup_is_fenced(backup, who->node, who->incarnation)) {
        backup_refuse(backup, ticket, LEAT_E_STALE_EPOCH, "this incarnation was declared gone");
        return;
    }
    if (frame->kind == LEAT_REP_ASK) {
        backup->options.net.answer(backup->options.net.ctx, ticket, "\x90", 1);
        return;
    }
    if (frame->kind == LEAT_REP_PULL) { /* also of nodes that write nothing here */
        backup_pull_serve(backup, frame, ticket);
        return;
    }
    if (frame->kind == LEAT_REP_SEAL) {
        backup_seal(backup, frame, ticket);
        return;
    }
    if (frame->kind == LEAT_REP_ATTACH) {
        backup_attach(backup, who, ticket);
        return;
    }
    if (!writer) {
        backup_refuse(backup, ticket, LEAT_E_CLOSED, "attach first");
        return;
    }
    switch (frame->kind) {
    case LEAT_REP_RESTAMP:
    case LEAT_REP_FLUSH:
        about_many(backup, writer, frame->kind, frame, ticket);
        break;
    case LEAT_REP_AUDIT:
        audit(backup, frame, ticket);
        break;
    case LEAT_REP_SETTLE:
        settle(backup, writer, frame, ticket);
        break;
    default:
        about_one(backup, writer, frame->kind, frame, ticket);
        break;
    }
}

void leat_backup_request(struct leat_backup *backup, const struct leat_link_identity *who,
                         const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_cpu *cpu = &backup->options.cpu;
    uint64_t from_ns = cpu->ns ? cpu->ns(cpu->ctx) : 0;
    handle(backup, who, frame, ticket);
    if (cpu->ns) backup->accounts.cpu_backup_control += cpu->ns(cpu->ctx) - from_ns;
}
