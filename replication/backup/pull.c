/* SPDX-License-Identifier: Apache-2.0 */
/* Whole segments from one backup to another: a replica that is closed or fenced is read in pieces.
 *
 * The serving side checks little: it sends the bytes of a replica with this prefix id in its row. The pulling side
 * trusts nothing: the bytes that have arrived are scanned before the replica is closed, and until then the replica is
 * flagged incomplete, so that after a crash a part does not pass for the whole. */
#include <string.h>

#include "base/bug.h"
#include "replication/backup/state.h"

enum {
    PIECE_BYTES = 512 * 1024,
    BLOCK_BYTES = 4096,
    ANSWER_HEAD_BYTES = 16,      /* before the piece */
    ANSWER_TAIL_BYTES = 5,       /* after it */
    PIECE_US = 5 * 1000 * 1000,  /* longest wait for one */
    PIECE_SOON_US = 1000 * 1000, /* ... while another node is left that may have it */
    /* at which a source must bring the rest, while another node is left */
    RATE_BYTES_PER_SECOND = 1 << 20,
};

/* ---- serving ---- */

/* A piece on its way out. */
struct backup_serve {
    struct leat_disk_io io;
    struct leat_backup *backup;
    struct replica *rep;
    struct leat_link_ticket ticket;
    uint32_t count, skip;  /* skip: what was read before the piece, for the sake of alignment */
    uint32_t passed_bytes; /* leat_segment.passed_bytes */
    uint8_t *piece;        /* aligned, within the struct's own block; ANSWER_HEAD_BYTES before it */
};

/* Does the replica, by its row, have exactly this prefix id, or begin with it? */
static bool may_serve(const struct replica *rep, struct leat_prefix_id prefix_id, bool whole)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_entry trailer;
    if (LEAT_BUG(REPAIR_UNCHECKED) && !prefix_id.crc) return seg->file && !rep->dropping;
    if (rep->damaged || rep->drop_wanted || rep->dropping || seg->incomplete ||
        leat_segment_is_damaged(seg))
        return false;
    if (rep->adopting && !LEAT_BUG(SERVED_AMID_ADOPTION)) return false;
    if (prefix_id.bytes < sizeof trailer || prefix_id.bytes > seg->capacity) return false;
    if (seg->state >= LEAT_SEGMENT_HIBERNATED && leat_prefix_id_equal(seg->prefix_id, prefix_id))
        return true;
    if (!whole && backup_begins(rep, prefix_id)) return true;
    if (!seg->buffer || rep->move_wanted) return false;
    memcpy(&trailer, seg->buffer + prefix_id.bytes - sizeof trailer, sizeof trailer);
    return trailer.type == LEAT_ENTRY_TRAILER && trailer.crc == prefix_id.crc;
}

/* Does an open replica have the bytes that its row claims? Closed replicas were checked when they were closed. */
static bool holds(const struct replica *rep, struct leat_prefix_id prefix_id)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    if (seg->state >= LEAT_SEGMENT_HIBERNATED && leat_prefix_id_equal(seg->prefix_id, prefix_id))
        return true;
    if (backup_begins(rep, prefix_id)) return true;
    if (LEAT_BUG(REPAIR_UNCHECKED) && !prefix_id.crc) return true;
    leat_scan_segment(seg->buffer, prefix_id.bytes, &scan);
    return leat_scan_is(&scan, prefix_id);
}

/* SUBTLE: if the rows of several replicas match, the bytes decide which replica is served.
 *  1. A write to this node's replica arrives in part, its last entry among it, and fails.
 *  2. The owner makes another replica, here too, which gets complete. The owner dies before the first is dropped.
 *  3. Recovery lists the second. If the first were served, the puller would find it damaged, each time.
 * A single matching replica is not checked here: the puller checks, and a check for each piece would be a scan each. */
static struct replica *replica_with(const struct leat_backup *backup, struct leat_log_ref log,
                                    struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                                    bool whole)
{
    const struct leat_list *head = backup_bucket(backup, log);
    struct replica *first = NULL;
    for (struct leat_list *it = head->next; it != head; it = it->next) {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, by_log);
        if (!rep->seg || rep->seg->id.v != segment.v) continue;
        if (!leat_log_ref_equal(rep->seg->log, log) || !may_serve(rep, prefix_id, whole)) continue;
        if (LEAT_BUG(TORN_HIDES) || (first && holds(first, prefix_id))) return first ? first : rep;
        if (first && holds(rep, prefix_id)) return rep;
        first = rep;
    }
    return first;
}

static void serve_end(struct backup_serve *serve, leat_err rc)
{
    struct leat_backup *backup = serve->backup;
    const struct leat_rep_net *net = &backup->options.net;
    uint8_t head[ANSWER_HEAD_BYTES];
    if (rc) {
        backup_refuse(backup, &serve->ticket, rc, NULL);
    } else {
        uint8_t *from = serve->piece + serve->skip;
        uint8_t *tail = from + serve->count;
        head[0] = 0x92; /* an array of two: bin 32, uint 32 */
        head[1] = 0xc6;
        tail[0] = 0xce;
        for (unsigned i = 0; i < 4; i++) {
            head[2 + i] = (uint8_t)(serve->count >> (24 - 8 * i));
            tail[1 + i] = (uint8_t)(serve->passed_bytes >> (24 - 8 * i));
        }
        memcpy(from - 6, head, 6);
        net->answer(net->ctx, &serve->ticket, from - 6, serve->count + 6 + ANSWER_TAIL_BYTES);
    }
    backup->serves--;
    backup_idle(serve->rep);
    leat_mem_free(serve);
}

static void on_serve_read(struct leat_disk_io *io)
{
    struct backup_serve *serve = io->owner;
    bool whole = io->done_bytes >= (size_t)serve->skip + serve->count;
    serve_end(serve, io->rc ? io->rc : whole ? LEAT_OK : LEAT_E_DAMAGED);
}

static leat_err serve_start(struct leat_backup *backup, struct replica *rep,
                            const struct rep_pull *pull, const struct leat_link_ticket *ticket)
{
    const struct leat_segment *seg = rep->seg;
    if (backup->serves == BACKUP_SERVES_MAX) return LEAT_E_AGAIN;
    size_t bytes = sizeof(struct backup_serve) + ANSWER_HEAD_BYTES + PIECE_BYTES + 3 * BLOCK_BYTES;
    struct backup_serve *serve = leat_mem_calloc(LEAT_MEM_STORE, 1, bytes);
    if (!serve) return LEAT_E_NO_MEMORY;
    serve->backup = backup;
    serve->rep = rep;
    serve->ticket = *ticket;
    serve->count = pull->count;
    /* passed_bytes is only for the whole replica: a longer replica that is cut here has valid bytes after the cut. */
    if (seg->state >= LEAT_SEGMENT_HIBERNATED &&
        leat_prefix_id_equal(seg->prefix_id, pull->prefix_id))
        serve->passed_bytes = seg->passed_bytes;
    serve->piece = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)(serve + 1) + ANSWER_HEAD_BYTES,
                                            (uintptr_t)BLOCK_BYTES);
    backup->serves++;
    rep->busy++; /* its place must stay */
    if (seg->buffer) {
        memcpy(serve->piece, seg->buffer + pull->from, pull->count);
        serve_end(serve, LEAT_OK);
        return LEAT_OK;
    }
    serve->skip = pull->from % BLOCK_BYTES;
    serve->io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = seg->file,
        .offset = seg->file_offset + pull->from - serve->skip,
        .buffer = serve->piece,
        .bytes = LEAT_ALIGN_UP((size_t)serve->skip + pull->count, (size_t)BLOCK_BYTES),
        .on_done = on_serve_read,
        .owner = serve,
    };
    const struct leat_disk *disk = backup->options.env->disk;
    disk->submit(disk->ctx, &serve->io);
    return LEAT_OK;
}

/* A PULL that waits until a longer replica has been looked at. */
struct serve_later {
    struct leat_backup *backup;
    struct rep_pull pull;
    struct leat_link_ticket ticket;
};

static void serve(struct leat_backup *backup, const struct rep_pull *pull,
                  const struct leat_link_ticket *ticket);

static void on_looked(void *arg, bool begins)
{
    struct serve_later *later = arg;
    (void)begins; /* if it does not, another replica may be looked at next */
    serve(later->backup, &later->pull, &later->ticket);
    leat_mem_free(later);
}

static leat_err serve_later(struct leat_backup *backup, const struct rep_pull *pull,
                            const struct leat_link_ticket *ticket)
{
    struct serve_later *later = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *later);
    if (!later) return LEAT_E_NO_MEMORY;
    *later = (struct serve_later){backup, *pull, *ticket};
    leat_err rc = backup_look(backup, pull->log, pull->segment, pull->prefix_id, on_looked, later);
    if (rc) leat_mem_free(later);
    return rc;
}

static void serve(struct leat_backup *backup, const struct rep_pull *pull,
                  const struct leat_link_ticket *ticket)
{
    struct replica *rep =
        replica_with(backup, pull->log, pull->segment, pull->prefix_id, pull->whole);
    leat_err rc = LEAT_E_NOT_FOUND;
    if (rep)
        rc = serve_start(backup, rep, pull, ticket);
    else if (!pull->whole)
        rc = serve_later(backup, pull, ticket);
    if (rc) backup_refuse(backup, ticket, rc, NULL);
}

void backup_pull_serve(struct leat_backup *backup, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct rep_pull pull;
    leat_err rc = rep_pull_decode(frame->control, frame->control_bytes, &pull);
    if (!rc && (pull.count == 0 || pull.count > PIECE_BYTES || pull.from > pull.prefix_id.bytes ||
                pull.count > pull.prefix_id.bytes - pull.from))
        rc = LEAT_E_INVALID;
    if (rc)
        backup_refuse(backup, ticket, rc, NULL);
    else
        serve(backup, &pull, ticket);
}

/* ---- pulling ---- */

static void pull_ask(struct leat_backup_pull *pull);

/* Drops the bytes that have arrived. */
static void pull_drop(struct leat_backup_pull *pull)
{
    struct replica *rep = pull->rep;
    pull->rep = NULL;
    if (!rep) return;
    rep->damaged = true; /* the replica counts for nothing while it is dropped */
    rep->drop_wanted = true;
    backup_idle(rep);
}

static void pull_end(struct leat_backup_pull *pull, leat_err rc)
{
    struct leat_backup *backup = pull->backup;
    if (rc) pull_drop(pull);
    backup->pulls--;
    pull->on_done(pull, rc);
}

/* SUBTLE: a node that answers pings may still not serve bytes.
 *  1. X's disk stands still, or its process is busy. X answers pings all the time.
 *  2. Recovery decides that Y must get a segment that X and B have. X is asked first, and each piece may take
 *     PIECE_US.
 *  3. Before B is asked the attempt is over (CO_PULL_US_MAX), and the next attempt asks X first, too.
 * So each source has a time limit of its own, which grows with the bytes that have arrived. Where all sources are too
 * slow they are asked once more, each with the patience for an only source. */
static uint64_t piece_us(struct leat_backup_pull *pull)
{
    bool last = pull->node_at + 1 == pull->node_count && !pull->slow;
    uint64_t now_us = backup_now(pull->backup);
    if (pull->at == 0) pull->since_us = now_us;
    pull->hurried = !pull->patient && !last;
    if (!pull->hurried) return PIECE_US;
    uint64_t end_us =
        pull->since_us + PIECE_SOON_US + (uint64_t)pull->at * 1000 * 1000 / RATE_BYTES_PER_SECOND;
    uint64_t left_us = end_us > now_us ? end_us - now_us : 1;
    return left_us < PIECE_SOON_US ? left_us : PIECE_SOON_US;
}

/* SUBTLE: a node that could not be asked may have a good replica, whatever the other nodes answered.
 *  1. X's copy of segment 4 is corrupt. B, which has a good copy, is just starting.
 *  2. Y asks both: X answers "damaged", B has no connection.
 *  3. If the first reason were reported, Y would say that no node that is up has the segment, and consumers would
 *     take it for lost. */
static int hope(leat_err rc)
{
    return rc == LEAT_E_NOT_FOUND ? 0 : leat_err_class(rc) == LEAT_CLASS_RETRY ? 2 : 1;
}

static void reason_note(struct leat_backup_pull *pull, leat_err rc)
{
    bool more = hope(rc) > hope(pull->rc) && !LEAT_BUG(FIRST_REASON);
    if (!pull->rc || pull->rc == LEAT_E_NOT_FOUND || more) pull->rc = rc;
}

/* Asks the next node that may have the segment; after the last node, the most hopeful reason is reported. */
static void pull_next_node(struct leat_backup_pull *pull, leat_err rc)
{
    reason_note(pull, rc);
    pull_drop(pull);
    pull->node_at++;
    pull->at = 0;
    pull_ask(pull);
}

static void on_pull_whole(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct leat_backup_pull *pull = request->pull;
    leat_err rc = req->rc;
    struct replica *rep = request->rep;
    backup_request_put(request);
    rep->busy--;
    if (!rc) {
        pull->rep = NULL;
        backup_idle(rep); /* pulling itself kept it busy */
    }
    pull_end(pull, rc);
}

static void on_pull_closed(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct leat_backup_pull *pull = request->pull;
    struct replica *rep = request->rep;
    backup_closed(request);
    rep->busy--;
    if (req->rc) {
        leat_err rc = req->rc;
        backup_request_put(request);
        pull_end(pull, rc);
        return;
    }
    request->req = (struct leat_store_req){.version = rep->seg->version,
                                           .role = LEAT_SEGMENT_REPLICA,
                                           .writer = rep->seg->writer,
                                           .provisional = pull->provisional};
    backup_store(request, LEAT_STORE_STAMP, on_pull_whole);
}

/* All bytes are here. The replica is closed first, and its row says "complete" after that: a start in between drops
 * the replica. */
static void pull_close(struct leat_backup_pull *pull)
{
    struct leat_backup *backup = pull->backup;
    struct leat_segment *seg = pull->into ? NULL : pull->rep->seg;
    struct leat_scan scan;
    leat_scan_segment(pull->into ? pull->into : seg->buffer, pull->prefix_id.bytes, &scan);
    bool right = leat_scan_is(&scan, pull->prefix_id) && scan.header.segment == pull->segment.v;
    if (!right && LEAT_BUG(PULL_UNCHECKED)) right = true;
    if (pull->into && (right || LEAT_BUG(REPAIR_UNCHECKED))) {
        pull_end(pull, LEAT_OK);
        return;
    }
    struct backup_request *request = right ? backup_request_get(backup) : NULL;
    if (!request) {
        pull_next_node(pull, right ? LEAT_E_NO_MEMORY : LEAT_E_DAMAGED);
        return;
    }
    seg->prefix_id = pull->prefix_id;
    seg->base_offset = scan.base_offset;
    seg->next_offset = pull->next_offset ? pull->next_offset : scan.next_offset;
    seg->max_timestamp_ms = scan.max_timestamp_ms;
    seg->passed_bytes = backup_passed_bounded(seg, pull->passed_bytes);
    request->rep = pull->rep;
    request->pull = pull;
    backup_close(request, on_pull_closed);
}

static void piece_take(struct leat_backup_pull *pull, const struct leat_msg_bin *piece)
{
    uint8_t *to = pull->into ? pull->into : pull->rep->seg->buffer;
    memcpy(to + pull->at, piece->data, piece->bytes);
    pull->at += piece->bytes;
    if (pull->at < pull->prefix_id.bytes)
        pull_ask(pull);
    else
        pull_close(pull);
}

static void on_pull_reserved(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct leat_backup_pull *pull = request->pull;
    struct replica *rep = request->rep;
    uint8_t *first = pull->first; /* the pull is its owner's again when it ends */
    struct leat_msg_bin piece = {first, pull->first_bytes};
    leat_err rc = req->rc;
    pull->first = NULL;
    backup_request_put(request);
    if (rc) {
        rep->busy--;
        backup_replica_free(rep);
        pull_end(pull, rc);
    } else {
        backup_replica_comes(rep, req->seg); /* busy until the replica is complete */
        pull->rep = rep;
        piece_take(pull, &piece);
    }
    leat_mem_free(first);
}

/* The header has the size of the buffer. */
static leat_err first_piece(struct leat_backup_pull *pull, const struct leat_msg_bin *piece)
{
    struct leat_backup *backup = pull->backup;
    struct leat_scan scan;
    leat_scan_segment(piece->data, piece->bytes, &scan);
    const struct leat_segment_header *header = &scan.header;
    struct leat_log_ref log = {header->stream, header->streamlet, header->log};
    bool right = scan.has_header && leat_log_ref_equal(log, pull->log) &&
                 header->segment == pull->segment.v && header->capacity >= pull->prefix_id.bytes &&
                 (header->capacity & (header->capacity - 1)) == 0;
    if (!right) return LEAT_E_DAMAGED;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    pull->first = leat_mem_calloc(LEAT_MEM_STORE, 1, piece->bytes);
    struct replica *rep = NULL;
    leat_err rc = pull->first ? backup_replica_new(backup, &rep) : LEAT_E_NO_MEMORY;
    if (rc) {
        leat_mem_free(pull->first);
        pull->first = NULL;
        backup_request_put(request);
        return rc;
    }
    memcpy(pull->first, piece->data, piece->bytes);
    pull->first_bytes = piece->bytes;
    request->rep = rep;
    request->pull = pull;
    request->req = (struct leat_store_req){.log = log,
                                           .id = pull->segment,
                                           .epoch = {header->epoch},
                                           .durability = (enum leat_durability)header->durability,
                                           .capacity = header->capacity,
                                           .version = pull->version ? pull->version : 1,
                                           .role = LEAT_SEGMENT_REPLICA,
                                           .writer = header->owner_incarnation,
                                           .incomplete = true};
    backup_store(request, LEAT_STORE_RESERVE, on_pull_reserved);
    return LEAT_OK;
}

static void on_piece(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                     const struct leat_error *error)
{
    struct leat_backup_pull *pull = call->owner;
    struct rep_piece body = {0};
    (void)error;
    if (!rc) rc = rep_piece_decode(answer->control, answer->control_bytes, &body);
    if (!rc && body.piece.bytes != pull->asked) rc = LEAT_E_INVALID;
    if (!rc) pull->passed_bytes = body.passed_bytes;
    if (!rc && (pull->rep || pull->into))
        piece_take(pull, &body.piece);
    else if (!rc)
        rc = first_piece(pull, &body.piece);
    if (rc == LEAT_E_TIMEOUT && pull->hurried) pull->slow = true;
    if (rc) pull_next_node(pull, rc);
}

static void pull_ask(struct leat_backup_pull *pull)
{
    const struct leat_rep_net *net = &pull->backup->options.net;
    uint32_t left = pull->prefix_id.bytes - pull->at;
    pull->asked = left < PIECE_BYTES ? left : PIECE_BYTES;
    struct rep_pull body = {.log = pull->log,
                            .segment = pull->segment,
                            .prefix_id = pull->prefix_id,
                            .from = pull->at,
                            .count = pull->asked,
                            .whole = pull->whole};
    for (; pull->node_at < pull->node_count; pull->node_at++) {
        pull->call = (struct leat_link_call){.kind = LEAT_REP_PULL,
                                             .control = pull->control,
                                             .control_bytes = rep_pull_encode(&body, pull->control),
                                             .timeout_us = piece_us(pull),
                                             .on_done = on_piece,
                                             .owner = pull};
        leat_err rc = net->call(net->ctx, pull->nodes[pull->node_at], &pull->call);
        if (!rc) return;
        reason_note(pull, rc);
        if (pull->at) { /* pieces of this node are here: the next node is asked from the beginning */
            pull_next_node(pull, rc);
            return;
        }
    }
    if (pull->slow && !pull->patient) {
        pull->patient = true;
        pull->node_at = 0;
        pull_ask(pull);
        return;
    }
    pull_end(pull, pull->rc ? pull->rc : LEAT_E_NOT_FOUND);
}

static void pull_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_backup_pull *pull = LEAT_CONTAINER(mail, struct leat_backup_pull, mail);
    (void)actor;
    pull_ask(pull);
}

bool leat_backup_holds(const struct leat_backup *backup, struct leat_log_ref log,
                       struct leat_segment_id segment, struct leat_prefix_id prefix_id)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_list *head = backup_bucket(backup, log);
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, by_log);
        const struct leat_segment *seg = rep->seg;
        if (!seg || seg->id.v != segment.v || !leat_log_ref_equal(seg->log, log)) continue;
        bool whole =
            !rep->damaged && !rep->drop_wanted && !seg->incomplete && !leat_segment_is_damaged(seg);
        if (whole && seg->state >= LEAT_SEGMENT_HIBERNATED &&
            leat_prefix_id_equal(seg->prefix_id, prefix_id))
            return true;
    }
    return false;
}

leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_post *post = backup->options.env->post;
    if (backup->pulls == LEAT_BACKUP_PULLS_MAX) return LEAT_E_AGAIN;
    if (pull->prefix_id.bytes < LEAT_ENTRY_HEADER_BYTES ||
        pull->prefix_id.bytes > LEAT_SEGMENT_BYTES_MAX)
        return LEAT_E_INVALID;
    backup->pulls++;
    pull->backup = backup;
    pull->rep = NULL;
    pull->first = NULL;
    pull->at = 0;
    pull->node_at = 0;
    pull->slow = pull->patient = false;
    pull->rc = LEAT_OK;
    pull->mail = (struct leat_mail){.deliver = pull_deliver};
    post->send(post->ctx, post->self, &pull->mail);
    return LEAT_OK;
}

/* ---- bytes that are here, durably ---- */

static void on_flushed(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    void (*on_done)(void *arg, leat_err rc) = request->on_flushed;
    void *arg = request->adopted_arg;
    leat_err rc = req->rc;
    if (!rc && req->to_bytes > rep->flushed) rep->flushed = req->to_bytes;
    backup_request_put(request);
    backup_idle(rep);
    on_done(arg, rc);
}

leat_err leat_backup_flush(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                           void (*on_done)(void *arg, leat_err rc), void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep = replica_with(backup, log, segment, prefix_id, false);
    if (!rep) return leat_backup_look_any(backup, log, segment, prefix_id);
    if (rep->busy || rep->evicting || rep->move_wanted) return LEAT_E_AGAIN;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    const struct leat_segment *seg = rep->seg;
    bool open = seg->state < LEAT_SEGMENT_HIBERNATED && seg->durability == LEAT_DURABILITY_DISK;
    request->rep = rep;
    request->on_flushed = on_done;
    request->adopted_arg = arg;
    if (open && rep->flushed < prefix_id.bytes) {
        request->req.from_bytes = rep->flushed;
        request->req.to_bytes = prefix_id.bytes;
        backup_store(request, LEAT_STORE_COMMIT, on_flushed);
        return LEAT_OK;
    }
    /* Nothing to do: writing the unchanged row makes the answer come later. */
    request->req = (struct leat_store_req){.version = seg->version,
                                           .role = LEAT_SEGMENT_REPLICA,
                                           .writer = seg->writer,
                                           .provisional = seg->provisional};
    backup_store(request, LEAT_STORE_STAMP, on_flushed);
    return LEAT_OK;
}
