/* SPDX-License-Identifier: Apache-2.0 */
/* The backup: the table of replicas, and what the store and the node tell it. */
#include <string.h>

#include "base/bug.h"
#include "base/node_log.h"
#include "replication/backup/state.h"

/* ---- the table ----
 * handle = generation << 32 | slot + 1: a handle of a replica that has gone names no later replica in this slot. */
static leat_err slots_grow(struct leat_backup *backup)
{
    uint32_t count = backup->slot_count + BACKUP_SLOTS_PER_STEP;
    if (count > BACKUP_SLOTS_MAX) return LEAT_E_TOO_MANY;
    void *slots = leat_mem_realloc(LEAT_MEM_ROWS, backup->slots, count, sizeof *backup->slots);
    if (!slots) return LEAT_E_NO_MEMORY;
    backup->slots = slots;
    void *generations =
        leat_mem_realloc(LEAT_MEM_ROWS, backup->generations, count, sizeof *backup->generations);
    if (!generations) return LEAT_E_NO_MEMORY;
    backup->generations = generations;
    backup->slot_count = count; /* what is new in both is 0 */
    return LEAT_OK;
}

leat_err backup_replica_new(struct leat_backup *backup, struct replica **out_rep)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    uint32_t slot = backup->slot_free_hint;
    while (slot < backup->slot_count && backup->slots[slot])
        slot++;
    if (slot == backup->slot_count) {
        leat_err rc = slots_grow(backup);
        if (rc) return rc;
    }
    struct replica *rep = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *rep);
    if (!rep) return LEAT_E_NO_MEMORY;
    backup->slot_free_hint = slot + 1;
    backup->slots[slot] = rep;
    backup->generations[slot]++;
    rep->backup = backup;
    rep->handle = (uint64_t)backup->generations[slot] << 32 | (slot + 1);
    rep->opened_us = backup_now(backup);
    leat_list_init(&rep->by_log);
    leat_list_push_back(&backup->replicas, &rep->link);
    backup->replica_count++;
    *out_rep = rep;
    return LEAT_OK;
}

struct leat_list *backup_bucket(const struct leat_backup *backup, struct leat_log_ref log)
{
    uint64_t hash = ((uint64_t)log.stream << 32) ^ ((uint64_t)log.streamlet << 12) ^ log.log;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    struct leat_list *bucket = &backup->by_log[(hash >> 40) % BACKUP_LOG_BUCKETS];
    if (bucket->next == NULL) leat_list_init(bucket); /* most are never asked for, nor touched */
    return bucket;
}

void backup_replica_has(struct replica *rep, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    rep->seg = seg;
    seg->log_pointer = rep;
    leat_list_push_back(backup_bucket(rep->backup, seg->log), &rep->by_log);
}

bool backup_stream_is_gone(const struct leat_backup *backup, uint32_t stream)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_backup_options *options = &backup->options;
    return options->stream_deleted && options->stream_deleted(options->arg, stream);
}

void backup_replica_comes(struct replica *rep, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    backup_replica_has(rep, seg);
    rep->drop_wanted |= backup_stream_is_gone(rep->backup, seg->log.stream);
}

struct replica *backup_find(const struct leat_backup *backup, uint64_t handle)
{
    uint32_t slot = (uint32_t)handle - 1;
    if (slot >= backup->slot_count || !backup->slots[slot]) return NULL;
    return backup->slots[slot]->handle == handle ? backup->slots[slot] : NULL;
}

void backup_replica_free(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    struct leat_backup *backup = rep->backup;
    uint32_t slot = (uint32_t)rep->handle - 1;
    LEAT_ASSERT(backup->slots[slot] == rep);
    LEAT_ASSERT(!rep->move_wanted);    /* a fence waits for it */
    LEAT_ASSERT_CMP(rep->busy, ==, 0); /* a request under way still has it */
    backup->slots[slot] = NULL;
    if (slot < backup->slot_free_hint) backup->slot_free_hint = slot;
    leat_list_remove(&rep->link);
    leat_list_remove(&rep->by_log);
    backup->replica_count--;
    if (rep->writer) {
        rep->writer->replicas--;
        backup_writer_left(rep->writer);
    }
    leat_mem_free(rep);
}

/* ---- requests to the store ---- */
struct backup_request *backup_request_get(struct leat_backup *backup)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct backup_request *request = leat_free_list_take(&backup->requests_free);
    if (!request) request = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *request);
    if (request) *request = (struct backup_request){.backup = backup};
    return request;
}

void backup_request_put(struct backup_request *request)
{
    LEAT_ASSERT_OWNER(request->backup->options.owner);
    leat_free_list_give(&request->backup->requests_free, request);
}

void backup_store(struct backup_request *request, enum leat_store_req_kind kind,
                  void (*on_done)(struct leat_store_req *req))
{
    LEAT_ASSERT_OWNER(request->backup->options.owner);
    struct leat_backup *backup = request->backup;
    struct replica *rep = request->rep;
    request->req.kind = kind;
    request->req.seg = rep->seg;
    request->req.on_done = on_done;
    request->req.owner = request;
    rep->busy++;
    backup->store_port.request(backup->store_port.ctx, backup->options.env->post, &request->req);
}

/* SUBTLE: a close that the disk refused leaves bytes in memory alone. If the replica were called closed all the same,
 * it would equal any other: the log's end could be decided by this replica, a replica with its bytes on the disk
 * would be dropped, and the next restart would find neither. */
void backup_close(struct backup_request *request, void (*on_done)(struct leat_store_req *req))
{
    LEAT_ASSERT_OWNER(request->backup->options.owner);
    struct leat_segment *seg = request->rep->seg;
    const struct leat_clock *clock = request->rep->backup->options.env->clock;
    request->before = seg->state;
    seg->state = LEAT_SEGMENT_CLOSED;
    seg->written_ms = clock->wall_ms(clock->ctx);
    backup_store(request, LEAT_STORE_CLOSE, on_done);
}

void backup_closed(struct backup_request *request)
{
    LEAT_ASSERT_OWNER(request->backup->options.owner);
    struct replica *rep = request->rep;
    if (request->req.rc && request->cut) {
        rep->seg->prefix_id = request->uncut.prefix_id;
        rep->seg->next_offset = request->uncut.next_offset;
        rep->seg->max_timestamp_ms = request->uncut.max_timestamp_ms;
    }
    if (request->req.rc && !LEAT_BUG(REFUSED_CLOSE_COUNTS))
        rep->seg->state = request->before;
    else if (rep->seg->durability == LEAT_DURABILITY_DISK)
        rep->flushed = rep->seg->prefix_id.bytes; /* the store has seen to it */
}

/* ---- answers ---- */
uint64_t backup_load(const struct leat_backup *backup)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct leat_store_usage usage;
    leat_store_usage(backup->options.store, &usage);
    return usage.arenas_used + backup->opening_bytes;
}

void backup_answer(struct leat_backup *backup, const struct leat_link_ticket *ticket,
                   const struct replica *rep)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    uint8_t body[REP_BODY_BYTES_MAX];
    struct rep_answer answer = {.load_bytes = backup_load(backup)};
    if (rep) {
        answer.handle = rep->handle;
        if (rep->writer && rep->seg && rep->seg->buffer)
            answer.place = (uint64_t)(rep->seg->buffer - rep->writer->arena.base);
    }
    uint32_t bytes = rep_answer_encode(&answer, body);
    backup->options.net.answer(backup->options.net.ctx, ticket, body, bytes);
}

void backup_refuse(struct leat_backup *backup, const struct leat_link_ticket *ticket, leat_err rc,
                   const char *text)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    backup->options.net.refuse(backup->options.net.ctx, ticket, rc,
                               text ? text : leat_err_text(rc));
}

/* ---- dropping and evicting ---- */
static void on_dropped(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    leat_err rc = req->rc;
    backup_request_put(request);
    rep->busy--;
    rep->dropping = false;
    if (rc) { /* the disk refused: the replica stays in its file, and in this table */
        rep->damaged = true;
        return;
    }
    rep->seg = NULL;
    backup_replica_free(rep);
}

void backup_drop(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    rep->drop_wanted = true;
    if (rep->busy || !rep->seg) return;
    struct backup_request *request = backup_request_get(rep->backup);
    if (!request) return; /* the next audit asks again */
    request->rep = rep;
    request->req.leave = rep->leave;
    rep->dropping = true;
    backup_store(request, LEAT_STORE_DROP, on_dropped);
}

static void on_evicted(struct leat_store_req *req)
{
    struct replica *rep = req->owner;
    rep->evicting = false;
}

/* Replicas are not read from memory: as soon as the file has a replica, its buffer serves another segment. */
static void evict(struct replica *rep)
{
    struct leat_backup *backup = rep->backup;
    if (rep->dropping || rep->evicting || !rep->seg->buffer || !rep->seg->flushed) return;
    rep->evicting = true;
    rep->evict = (struct leat_store_req){
        .kind = LEAT_STORE_EVICT, .seg = rep->seg, .on_done = on_evicted, .owner = rep};
    backup->store_port.request(backup->store_port.ctx, backup->options.env->post, &rep->evict);
}

void backup_idle(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    LEAT_ASSERT_CMP(rep->busy, >, 0);
    rep->busy--;
    if (rep->busy) return;
    if (rep->move_wanted)
        backup_move(rep);
    else if (rep->drop_wanted)
        backup_drop(rep);
    else if (rep->seg->state == LEAT_SEGMENT_CLOSED)
        evict(rep);
}

void leat_backup_on_flushed(struct leat_backup *backup, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep = seg->log_pointer;
    (void)backup;
    seg->flushed = true;
    if (!rep->busy) evict(rep);
}

void leat_backup_on_evict_wanted(struct leat_backup *backup, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep = seg->log_pointer;
    (void)backup;
    if (!rep->busy) evict(rep);
}

void leat_backup_on_damaged(struct leat_backup *backup, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep = seg->log_pointer;
    (void)backup;
    if (leat_segment_is_damaged(seg) || seg->state != LEAT_SEGMENT_CLOSED) return;
    leat_segment_damage_found(seg);
    rep->settled = LEAT_BUG(CORRUPT_COUNTS) && rep->settled;
    leat_node_log_warn(
        "log %u/%u/%u: the copy of segment %llu here is damaged: its owner is to make "
        "another",
        seg->log.stream, seg->log.streamlet, seg->log.log, (unsigned long long)seg->id.v);
}

/* SUBTLE: a new owner of the log does not know which writes to this replica are under way.
 *  1. X writes segment 4 to a new replica on B. The writes are slow, and nothing waits for them.
 *  2. The log moves to B, which has another, complete replica of segment 4: B drops this replica.
 *  3. X's next segment, of another log, gets the place of the replica, and an earlier write of X lands there.
 * So the place comes back with X's arena only. */
void backup_drop_for_another(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    rep->leave |= backup_is_written(rep) && !LEAT_BUG(FOREIGN_WORD_FREES);
    backup_drop(rep);
}

void leat_backup_drop_log(struct leat_backup *backup, struct leat_log_ref log,
                          struct leat_epoch epoch, const struct leat_segment_range *unsure)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    LEAT_LIST_EACH(backup_bucket(backup, log), it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, by_log);
        if (!rep->seg || !leat_log_ref_equal(rep->seg->log, log)) continue;
        if (leat_segment_range_has(unsure, rep->seg->id.v)) continue;
        if (rep->owner_epoch.v <= epoch.v) backup_drop_for_another(rep);
    }
}

bool backup_is_written(const struct replica *rep)
{
    if (!rep->writer || rep->writer->fenced) return false;
    enum leat_segment_state state = rep->seg->state;
    return state < LEAT_SEGMENT_HIBERNATED ||
           (state == LEAT_SEGMENT_HIBERNATED && rep->busy); /* RESUME */
}

/* SUBTLE: a deletion does not prove that the writer has stopped writing.
 *  1. A owns segment 4 of a stream, and another log; B has copies of both. The stream is deleted. B hears of the
 *     deletion before A does, drops its copy of 4, and the buffer serves the other log's next segment.
 *  2. A still takes appends to segment 4, and its writes land in the old buffer.
 *  3. B's copy of the other log does not have the acked bytes. A dies.
 * So the copy stays until A drops it. If A never does, an audit drops the copy (request.c, is_over()). */
void leat_backup_stream_deleted(struct leat_backup *backup, uint32_t stream)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (!rep->seg || rep->seg->log.stream != stream) continue;
        rep->gone_us = backup_now(backup);
        if (!backup_is_written(rep) || LEAT_BUG(DELETED_FREES)) backup_drop(rep);
    }
}

void leat_backup_drop_deleted(struct leat_backup *backup,
                              bool (*deleted)(void *arg, uint32_t stream), void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->seg && deleted(arg, rep->seg->log.stream)) backup_drop(rep);
    }
}

/* ---- life ---- */
leat_err leat_backup_create(const struct leat_backup_options *options,
                            struct leat_backup **out_backup)
{
    struct leat_backup *backup = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *backup);
    if (!backup) return LEAT_E_NO_MEMORY;
    backup->options = *options;
    if (!backup->options.unflushed_seconds) backup->options.unflushed_seconds = 10;
    backup->store_port = leat_store_port(options->store);
    leat_list_init(&backup->writers);
    leat_list_init(&backup->replicas);
    leat_list_init(&backup->fences);
    backup->fenced = leat_mem_calloc(LEAT_MEM_STORE, BACKUP_FENCED_MAX, sizeof *backup->fenced);
    backup->by_log = leat_mem_calloc(LEAT_MEM_STORE, BACKUP_LOG_BUCKETS, sizeof *backup->by_log);
    backup->answer = leat_mem_calloc(LEAT_MEM_STORE, BACKUP_ROWS_MAX, REP_ROW_BYTES_MAX + 1);
    if (!backup->answer || !backup->fenced || !backup->by_log) {
        leat_backup_destroy(&backup);
        return LEAT_E_NO_MEMORY;
    }
    *out_backup = backup;
    return LEAT_OK;
}

void leat_backup_destroy(struct leat_backup **pointer)
{
    struct leat_backup *backup = *pointer;
    struct leat_list *link;
    if (!backup) return;
    while ((link = leat_list_pop_front(&backup->replicas)) != NULL)
        leat_mem_free(LEAT_CONTAINER(link, struct replica, link));
    leat_free_list_fini(&backup->requests_free);
    backup_writers_fini(backup);
    leat_mem_free(backup->slots);
    leat_mem_free(backup->generations);
    leat_mem_free(backup->answer);
    leat_mem_free(backup->fenced);
    leat_mem_free(backup->by_log);
    leat_mem_free(backup);
    *pointer = NULL;
}

leat_err leat_backup_take_found(struct leat_backup *backup, const struct leat_found *found)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep;
    leat_err rc = backup_replica_new(backup, &rep);
    if (rc) return rc;
    backup_replica_has(rep, found->seg);
    rep->seg->owner_actor = backup->options.env->post->self;
    rep->seg->post = backup->options.env->post;
    rep->damaged = found->kind == LEAT_FOUND_LOST;
    rep->flushed = found->seg->prefix_id.bytes;
    return LEAT_OK;
}

uint64_t backup_unflushed_max(const struct leat_backup *backup,
                              const struct leat_store_usage *usage)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    uint64_t most = usage->flush_bytes_per_second * backup->options.unflushed_seconds;
    return most > BACKUP_UNFLUSHED_BYTES_MIN ? most : BACKUP_UNFLUSHED_BYTES_MIN;
}

static void on_confirmed(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    backup_request_put(request);
    backup_idle(rep);
}

/* SUBTLE: an owner counts the replica, so it is no longer provisional, and its row says so.
 *  1. A recovery attempt finds X's mark of segment 0, 74 records, and has B make a copy. X dies again, so the attempt
 *     is never committed.
 *  2. The next attempt finds C's mark only, 32 records: all acked records. New records get the offsets from 32 on.
 *  3. All nodes lose power, and only B's disk survives; the loss is accepted. B's 74 records would be what is left.
 * The owner also sets passed_bytes, and that an operator has seen the torn tail: the next owner of the log uses this
 * row. */
void backup_confirm(struct replica *rep, uint32_t passed)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    struct leat_segment *seg = rep->seg;
    uint32_t bytes = passed ? backup_passed_bounded(seg, passed - 1) : seg->passed_bytes;
    bool other = seg->state == LEAT_SEGMENT_CLOSED && bytes != seg->passed_bytes;
    rep->settled = true;
    if (!seg->provisional && !other) return;
    bool able = !rep->busy && !rep->evicting && !rep->drop_wanted;
    struct backup_request *request = able ? backup_request_get(rep->backup) : NULL;
    rep->settled = request != NULL; /* else the next audit asks again */
    if (!request) return;
    if (other) seg->passed_bytes = bytes;
    request->rep = rep;
    request->req = (struct leat_store_req){
        .version = rep->seg->version, .role = LEAT_SEGMENT_REPLICA, .writer = rep->seg->writer};
    backup_store(request, LEAT_STORE_STAMP, on_confirmed);
}
