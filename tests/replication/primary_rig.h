/* SPDX-License-Identifier: Apache-2.0 */
/* A primary alone: all that it does to the world goes into the trace, and nothing is answered but by hand. Nodes 1, 2,
 * ... are backups, each on a host of its own; logs are held by hand, as a log would. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_PRIMARY_RIG_H
#define LEAT_TESTS_REPLICATION_PRIMARY_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "replication/primary/state.h"
#include "tests/replication/primary_trace.h"

enum {
    RIG_WAITING_MAX = 64, /* of each kind of thing that is not answered yet */
    RIG_SEGMENTS_MAX = 16,
    RIG_SELF = 9, /* the primary's own number */
};

/* The numbers of nodes 1, 2, ...: among these numbers are the smallest and the largest that a node can have, and 64,
 * with which the second word of a bit set begins. */
static inline unsigned rig_number(unsigned node)
{
    return node == 4 ? LEAT_REP_NODES_MAX - 1 : node == 3 ? 64 : node - 1;
}

static inline unsigned rig_node_of(unsigned number)
{
    return number == LEAT_REP_NODES_MAX - 1 ? 4 : number == 64 ? 3 : number + 1;
}

struct rig_call {
    struct leat_link_call *call;
    unsigned node;
};

struct rig_target {
    struct leat_rmem_target target; /* first */
    const struct leat_rmem_target_handler *handler;
    void *user;
    unsigned node;
};

struct rig_write {
    struct leat_rmem_write *write;
    struct rig_target *target;
};

struct rig {
    uint64_t now_us, wake_us;
    uint64_t random, random_step; /* the next one, and how much more the one after it */
    struct leat_clock clock;
    struct leat_random random_port;
    struct leat_post post;
    struct leat_disk disk;
    struct leat_env env;
    struct leat_timers timers;
    struct leat_rmem rmem;
    enum leat_rmem_kind kind; /* of targets to come */
    struct leat_primary *primary;
    struct leat_primary_log *log;
    struct leat_store_port store_port; /* the log's */
    struct leat_mail *mails[RIG_WAITING_MAX];
    unsigned mail_count;
    struct rig_call calls[RIG_WAITING_MAX];
    unsigned call_count;
    struct rig_write writes[RIG_WAITING_MAX];
    unsigned write_count;
    struct leat_store_req *reqs[RIG_WAITING_MAX]; /* at the store */
    unsigned req_count;
    struct leat_disk_io *ios[RIG_WAITING_MAX];
    unsigned io_count;
    struct rig_target targets[RIG_WAITING_MAX];
    unsigned target_count;
    struct leat_segment segs[RIG_SEGMENTS_MAX];
    uint8_t *buffers[RIG_SEGMENTS_MAX];
    leat_err call_rc, attach_rc, write_rc; /* what the ports say at once */
    bool quiet;                            /* nothing goes into the trace */
};

#define RIG_TRACE(rig, ...)                                                                        \
    do {                                                                                           \
        if (!(rig)->quiet) trace(__VA_ARGS__);                                                     \
    } while (0)

/* ---- ports ---- */
static inline uint64_t rig_now(void *ctx)
{
    return ((struct rig *)ctx)->now_us;
}

static inline int64_t rig_wall(void *ctx)
{
    return (int64_t)(((struct rig *)ctx)->now_us / 1000);
}

static inline void rig_wake_at(void *ctx, uint64_t at_us)
{
    ((struct rig *)ctx)->wake_us = at_us;
}

static inline uint64_t rig_random(void *ctx)
{
    struct rig *rig = ctx;
    return (rig->random += rig->random_step) - rig->random_step;
}

static inline void rig_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct rig *rig = ctx;
    assert_int_equal(to, rig->post.self);
    assert_true(rig->mail_count < RIG_WAITING_MAX);
    rig->mails[rig->mail_count++] = mail;
}

static inline void rig_submit(void *ctx, struct leat_disk_io *io)
{
    struct rig *rig = ctx;
    RIG_TRACE(rig, "read %llu+%zu\n", (unsigned long long)io->offset, (size_t)io->bytes);
    assert_int_equal(io->kind, LEAT_DISK_READ);
    rig->ios[rig->io_count++] = io;
}

static inline leat_err rig_net_call(void *ctx, unsigned node, struct leat_link_call *call)
{
    struct rig *rig = ctx;
    node = rig_node_of(node);
    if (rig->call_rc) return rig->call_rc;
    if (!rig->quiet) rig_call_trace(node, call);
    assert_true(rig->call_count < RIG_WAITING_MAX);
    rig->calls[rig->call_count++] = (struct rig_call){call, node};
    return LEAT_OK;
}

static inline void rig_net_cut(void *ctx, unsigned node)
{
    struct rig *rig = ctx;
    RIG_TRACE(rig, "cut n%u\n", rig_node_of(node));
}

static inline void rig_store(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    struct rig *rig = ctx;
    assert_ptr_equal(post, &rig->post);
    if (!rig->quiet) {
        unsigned long long id = req->seg ? req->seg->id.v : req->id.v;
        trace("store %s s%llu", rig_req_name(req->kind), id);
        if (req->kind == LEAT_STORE_RESERVE)
            trace(" %u/%u/%u e%u v%u cap%u d%u", req->log.stream, req->log.streamlet, req->log.log,
                  req->epoch.v, req->version, req->capacity, (unsigned)req->durability);
        if (req->kind == LEAT_STORE_COMMIT) trace(" %u..%u", req->from_bytes, req->to_bytes);
        if (req->kind == LEAT_STORE_STAMP)
            trace(" v%u role%u writer%llu%s", req->version, (unsigned)req->role,
                  (unsigned long long)req->writer, req->incomplete ? " incomplete" : "");
        trace("\n");
    }
    assert_true(rig->req_count < RIG_WAITING_MAX);
    rig->reqs[rig->req_count++] = req;
}

static inline bool rig_safe(void *ctx, const struct leat_segment *seg)
{
    (void)ctx, (void)seg;
    return true;
}

static inline leat_err rig_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                                  const struct leat_rmem_target_handler *handler, void *user,
                                  struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct rig *rig = ctx;
    node = rig_node_of(node);
    RIG_TRACE(rig, "attach n%u grant%.*s\n", node, (int)grant->bytes, (const char *)grant->data);
    snprintf(error->text, sizeof error->text, "no");
    if (rig->attach_rc) return rig->attach_rc;
    assert_true(rig->target_count < RIG_WAITING_MAX);
    struct rig_target *target = &rig->targets[rig->target_count++];
    *target = (struct rig_target){.target = {.port = &rig->rmem, .kind = rig->kind},
                                  .handler = handler,
                                  .user = user,
                                  .node = node};
    *out_target = &target->target;
    return LEAT_OK;
}

static inline int rig_segment_of(const struct rig *rig, const void *at)
{
    for (int i = 0; i < RIG_SEGMENTS_MAX; i++)
        if (rig->buffers[i] && (const uint8_t *)at >= rig->buffers[i] &&
            (const uint8_t *)at < rig->buffers[i] + RIG_CAPACITY)
            return i;
    return -1;
}

static inline leat_err rig_write(struct leat_rmem_target *base, struct leat_rmem_write *write)
{
    struct rig_target *target = (struct rig_target *)(void *)base;
    struct rig *rig = base->port->ctx;
    if (rig->write_rc) return rig->write_rc;
    assert_int_equal(write->iov_count, 1);
    if (!rig->quiet) {
        int i = rig_segment_of(rig, write->iovs[0].base);
        trace("n%u write @%llu+%zu from ", target->node, (unsigned long long)write->offset,
              write->iovs[0].bytes);
        if (i >= 0)
            trace("s%d+%td\n", i, (const uint8_t *)write->iovs[0].base - rig->buffers[i]);
        else
            trace("staging\n");
    }
    assert_true(rig->write_count < RIG_WAITING_MAX);
    rig->writes[rig->write_count++] = (struct rig_write){write, target};
    return LEAT_OK;
}

static inline void rig_detach(struct leat_rmem_target *base)
{
    const struct rig_target *target = (const struct rig_target *)(const void *)base;
    RIG_TRACE((struct rig *)base->port->ctx, "detach n%u\n", target->node);
}

static inline void rig_on_versions(void *owner, struct leat_primary *primary,
                                   const struct leat_rep_version *rows, size_t count)
{
    struct rig *rig = owner;
    (void)primary;
    RIG_TRACE(rig, "versions");
    for (size_t i = 0; i < count; i++)
        RIG_TRACE(rig, " %u/%u/%u=e%uv%u", rows[i].log.stream, rows[i].log.streamlet,
                  rows[i].log.log, rows[i].epoch.v, rows[i].version);
    RIG_TRACE(rig, "\n");
}

static inline void rig_on_room(void *owner, struct leat_primary_log *rep)
{
    (void)rep;
    RIG_TRACE((struct rig *)owner, "room\n");
}

static inline void rig_on_damaged(void *owner, struct leat_primary_log *rep,
                                  struct leat_segment *seg)
{
    (void)rep;
    RIG_TRACE((struct rig *)owner, "damaged s%llu\n", (unsigned long long)seg->id.v);
}

/* ---- what happens to it ---- */
static inline void rig_mails(struct rig *rig)
{
    while (rig->mail_count) {
        struct leat_mail *mail = rig->mails[0];
        rig->mail_count--;
        memmove(&rig->mails[0], &rig->mails[1], rig->mail_count * sizeof rig->mails[0]);
        mail->deliver(rig, mail);
    }
}

static inline void rig_pass(struct rig *rig, uint64_t us)
{
    uint64_t end_us = rig->now_us + us;
    rig_mails(rig);
    while (rig->wake_us <= end_us) {
        if (rig->wake_us > rig->now_us) rig->now_us = rig->wake_us;
        rig->wake_us = UINT64_MAX;
        leat_timers_run(&rig->timers);
        rig_mails(rig);
    }
    rig->now_us = end_us;
}

static inline struct leat_link_call *rig_call_take(struct rig *rig, unsigned node, unsigned kind)
{
    for (unsigned i = 0; i < rig->call_count; i++) {
        struct leat_link_call *call = rig->calls[i].call;
        if (rig->calls[i].node != node || call->kind != kind) continue;
        rig->call_count--;
        memmove(&rig->calls[i], &rig->calls[i + 1], (rig->call_count - i) * sizeof rig->calls[0]);
        return call;
    }
    fail_msg("node %u was not asked: %s", node, rig_kind_name(kind));
    return NULL;
}

static inline void rig_answer_bytes(struct rig *rig, unsigned node, unsigned kind, leat_err rc,
                                    const uint8_t *control, uint32_t bytes)
{
    struct leat_link_call *call = rig_call_take(rig, node, kind);
    struct leat_frame frame = {.kind = (uint16_t)kind, .control = control, .control_bytes = bytes};
    struct leat_error error = {rc, ""};
    call->on_done(call, rc, rc ? NULL : &frame, rc ? &error : NULL);
    rig_mails(rig);
}

static inline void rig_refuse(struct rig *rig, unsigned node, unsigned kind, leat_err rc)
{
    rig_answer_bytes(rig, node, kind, rc, NULL, 0);
}

/* About one replica. */
static inline void rig_answer_at(struct rig *rig, unsigned node, unsigned kind, uint64_t handle,
                                 uint64_t place)
{
    uint8_t control[REP_BODY_BYTES_MAX];
    struct rep_answer answer = {.handle = handle, .place = place};
    rig_answer_bytes(rig, node, kind, LEAT_OK, control, rep_answer_encode(&answer, control));
}

static inline void rig_answer(struct rig *rig, unsigned node, unsigned kind)
{
    rig_answer_at(rig, node, kind, 0, 0);
}

/* With rows, as many as were asked for, all of that code. */
static inline void rig_answer_rows(struct rig *rig, unsigned node, unsigned kind, leat_err rc)
{
    static struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    static uint8_t control[LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8];
    uint32_t count = 0;
    for (unsigned i = 0; i < rig->call_count; i++) {
        const struct leat_link_call *call = rig->calls[i].call;
        if (rig->calls[i].node != node || call->kind != kind) continue;
        assert_int_equal(rep_pairs_decode(call->control, call->control_bytes, pairs, &count),
                         LEAT_OK);
        break;
    }
    for (uint32_t i = 0; i < count; i++)
        pairs[i].value = (uint64_t)rc;
    rig_answer_bytes(rig, node, kind, LEAT_OK, control,
                     rep_pairs_encode(pairs, count, control, sizeof control));
}

/* The oldest write to that node has ended. */
static inline void rig_wrote(struct rig *rig, unsigned node, leat_err rc)
{
    for (unsigned i = 0; i < rig->write_count; i++) {
        struct leat_rmem_write *write = rig->writes[i].write;
        if (rig->writes[i].target->node != node) continue;
        rig->write_count--;
        memmove(&rig->writes[i], &rig->writes[i + 1],
                (rig->write_count - i) * sizeof rig->writes[0]);
        write->on_done(write, rc);
        rig_mails(rig);
        return;
    }
    fail_msg("nothing is written to node %u", node);
}

static inline void rig_grant(struct rig *rig, unsigned node)
{
    uint8_t control[REP_ATTACHED_BYTES_MAX];
    struct rep_attached attached = {.grant = {.bytes = 1, .data = {(uint8_t)('0' + node)}}};
    rig_answer_bytes(rig, node, LEAT_REP_ATTACH, LEAT_OK, control,
                     rep_attached_encode(&attached, control));
}

static inline struct rig_target *rig_target_of(struct rig *rig, unsigned node)
{
    struct rig_target *found = NULL;
    for (unsigned i = 0; i < rig->target_count; i++)
        if (rig->targets[i].node == node) found = &rig->targets[i];
    assert_non_null(found);
    return found;
}

static inline void rig_attached(struct rig *rig, unsigned node)
{
    struct rig_target *target = rig_target_of(rig, node);
    target->target.attached = true;
    target->handler->on_attached(target->user, &target->target);
    rig_mails(rig);
}

static inline void rig_target_failed(struct rig *rig, unsigned node)
{
    struct rig_target *target = rig_target_of(rig, node);
    struct leat_error error = {LEAT_E_CLOSED, "gone"};
    target->handler->on_failed(target->user, &target->target, &error);
    rig_mails(rig);
}

static inline struct leat_rep_node rig_node(unsigned number)
{
    struct leat_rep_node node = {.number = rig_number(number), .incarnation = 100 + number};
    snprintf(node.name, sizeof node.name, "n%u", number);
    snprintf(node.host, sizeof node.host, "h%u", number);
    return node;
}

static inline struct rep_peer *rig_peer(const struct rig *rig, unsigned node)
{
    return rig->primary->peers[rig_number(node)];
}

static inline void rig_peer_up(struct rig *rig, unsigned node)
{
    leat_primary_peer_up(rig->primary, rig_number(node));
}

static inline void rig_peer_down(struct rig *rig, unsigned node)
{
    leat_primary_peer_down(rig->primary, rig_number(node));
    rig_mails(rig);
}

static inline void rig_node_up(struct rig *rig, unsigned number)
{
    struct leat_rep_node node = rig_node(number);
    leat_primary_node_set(rig->primary, &node);
    rig_peer_up(rig, number);
    rig_grant(rig, number);
    rig_attached(rig, number);
}

/* Each backup that is asked for its unconfirmed replicas answers that it has none. */
static inline void rig_audits_answer(struct rig *rig)
{
    static const uint8_t nothing[] = {0x92, 0x00, 0x90};
    for (unsigned i = 0; i < rig->call_count;) {
        if (rig->calls[i].call->kind != LEAT_REP_AUDIT) {
            i++;
            continue;
        }
        rig_answer_bytes(rig, rig->calls[i].node, LEAT_REP_AUDIT, LEAT_OK, nothing, sizeof nothing);
        i = 0;
    }
}

static inline struct rig *rig_new(unsigned nodes)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig->quiet = true;
    rig->now_us = 1000 * 1000;
    rig->wake_us = UINT64_MAX;
    rig->kind = LEAT_RMEM_SHM;
    rig->clock = (struct leat_clock){rig, rig_now, rig_wall, rig_wake_at};
    rig->random_port = (struct leat_random){.ctx = rig, .next = rig_random};
    rig->post = (struct leat_post){rig, rig_send, 0};
    rig->disk = (struct leat_disk){.ctx = rig, .submit = rig_submit};
    rig->env = (struct leat_env){
        .clock = &rig->clock, .random = &rig->random_port, .post = &rig->post, .disk = &rig->disk};
    rig->rmem = (struct leat_rmem){
        .ctx = rig, .attach = rig_attach, .write = rig_write, .detach = rig_detach};
    assert_int_equal(leat_timers_init(&rig->timers, &rig->clock, LEAT_PRIMARY_TIMERS), LEAT_OK);
    struct leat_primary_options options = {
        .env = &rig->env,
        .timers = &rig->timers,
        .store = {.ctx = rig, .request = rig_store, .safe_in_memory = rig_safe},
        .net = {.ctx = rig, .call = rig_net_call, .cut = rig_net_cut},
        .rmem = &rig->rmem,
        .self = {.number = RIG_SELF, .incarnation = 100, .name = "self", .host = "h0"},
        .events = {.on_versions = rig_on_versions,
                   .on_room = rig_on_room,
                   .on_damaged = rig_on_damaged},
        .owner = rig,
    };
    assert_int_equal(leat_primary_create(&options, &rig->primary), LEAT_OK);
    for (unsigned i = 1; i <= nodes; i++)
        rig_node_up(rig, i);
    rig_pass(rig, 1000);
    rig_audits_answer(rig);
    rig->quiet = false;
    return rig;
}

static inline struct leat_primary_log_options rig_log_options(enum leat_durability durability,
                                                              uint32_t copies)
{
    return (struct leat_primary_log_options){.ref = {1, 2, 3},
                                             .epoch = {RIG_EPOCH},
                                             .copies = copies,
                                             .min_copies = copies - 1,
                                             .durability = durability,
                                             .version = 1};
}

static inline void rig_log_new(struct rig *rig, enum leat_durability durability, uint32_t copies)
{
    struct leat_primary_log_options options = rig_log_options(durability, copies);
    assert_int_equal(leat_primary_log_create(rig->primary, &options, NULL, 0, &rig->log), LEAT_OK);
    rig->store_port = leat_primary_port(rig->log);
}

/* ---- the log ---- */
static inline void rig_on_req(struct leat_store_req *req)
{
    assert_true(req->kind != LEAT_STORE_DROP || req->rc || !req->seg); /* it has gone */
    trace("log %s s%llu: %s\n", rig_req_name(req->kind), (unsigned long long)req->id.v,
          leat_err_name(req->rc));
    free(req);
}

static inline void rig_on_here(struct leat_store_req *req)
{
    trace("log %s s%llu: here\n", rig_req_name(req->kind), (unsigned long long)req->id.v);
}

static inline void rig_ask(struct rig *rig, struct leat_store_req req)
{
    struct leat_store_req *asked = malloc(sizeof *asked);
    req.on_done = rig_on_req;
    req.on_here = rig_on_here;
    if (req.seg) req.id = req.seg->id;
    *asked = req;
    asked->from = RIG_SELF; /* what it was used for before */
    asked->rc = LEAT_E_DISK;
    rig->store_port.request(rig->store_port.ctx, &rig->post, asked);
    assert_int_equal(asked->from, rig->post.self);
    assert_int_equal(asked->rc, LEAT_OK);
    rig_mails(rig);
}

static inline void rig_reserve(struct rig *rig, uint64_t id)
{
    rig_ask(rig, (struct leat_store_req){
                     .kind = LEAT_STORE_RESERVE, .id = {id}, .capacity = RIG_CAPACITY});
}

/* The store's answer to the oldest request of that kind: it has what it needs then, as the store would give. */
static inline void rig_stored(struct rig *rig, enum leat_store_req_kind kind, leat_err rc)
{
    for (unsigned i = 0; i < rig->req_count; i++) {
        struct leat_store_req *req = rig->reqs[i];
        if (req->kind != kind) continue;
        rig->req_count--;
        memmove(&rig->reqs[i], &rig->reqs[i + 1], (rig->req_count - i) * sizeof rig->reqs[0]);
        req->rc = rc;
        if (!rc && kind == LEAT_STORE_RESERVE) {
            struct leat_segment *seg = req->seg = &rig->segs[req->id.v];
            rig->buffers[req->id.v] = calloc(1, RIG_CAPACITY);
            *seg = (struct leat_segment){.log = req->log,
                                         .id = req->id,
                                         .epoch = req->epoch,
                                         .version = req->version,
                                         .capacity = req->capacity,
                                         .writer = 100,
                                         .state = LEAT_SEGMENT_RESERVED,
                                         .buffer = rig->buffers[req->id.v],
                                         .file_offset = 65536 * (1 + req->id.v)};
        }
        if (!rc && kind == LEAT_STORE_STAMP) req->seg->version = req->version;
        if (!rc && kind == LEAT_STORE_HIBERNATE) req->seg->state = LEAT_SEGMENT_HIBERNATED;
        if (!rc && kind == LEAT_STORE_RESUME) req->seg->state = LEAT_SEGMENT_OPEN;
        if (!rc && (kind == LEAT_STORE_HIBERNATE || kind == LEAT_STORE_EVICT))
            req->seg->buffer = NULL;
        if (!rc && kind == LEAT_STORE_RESUME) req->seg->buffer = rig->buffers[req->seg->id.v];
        req->on_done(req);
        rig_mails(rig);
        return;
    }
    fail_msg("the store was not asked: %s", rig_req_name(kind));
}

/* As if batches and their trailer were there: its CRC is the length. */
static inline void rig_sealed(struct rig *rig, uint64_t id, uint32_t bytes)
{
    struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .crc = bytes};
    memcpy(rig->buffers[id] + bytes - sizeof trailer, &trailer, sizeof trailer);
}

static inline void rig_commit(struct rig *rig, uint64_t id, uint32_t from, uint32_t to)
{
    rig_sealed(rig, id, to);
    rig->segs[id].state = LEAT_SEGMENT_OPEN;
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                         .seg = &rig->segs[id],
                                         .from_bytes = from,
                                         .to_bytes = to});
}

/* CLOSE or HIBERNATE at that length. */
static inline void rig_end(struct rig *rig, enum leat_store_req_kind kind, uint64_t id,
                           uint32_t bytes)
{
    struct leat_segment *seg = &rig->segs[id];
    if (kind == LEAT_STORE_CLOSE) seg->state = LEAT_SEGMENT_CLOSED;
    seg->prefix_id = (struct leat_prefix_id){bytes, bytes};
    seg->next_offset = 1000 + id;
    seg->max_timestamp_ms = 2000 + (int64_t)id;
    rig_ask(rig, (struct leat_store_req){.kind = kind, .seg = seg});
}

static inline void rig_accounts(const struct rig *rig)
{
    const struct leat_rep_accounts *a = leat_primary_accounts(rig->primary);
    trace("%llu bytes in %llu writes, %llu segments; control %llu open %llu hibernate %llu resume "
          "%llu "
          "flush %llu "
          "other %llu; refused %llu lost %llu replaced %llu recopied %llu versions %llu\n",
          (unsigned long long)a->replicated_bytes, (unsigned long long)a->writes,
          (unsigned long long)a->segments, (unsigned long long)a->control_rpcs,
          (unsigned long long)a->open_rpcs, (unsigned long long)a->hibernate_rpcs,
          (unsigned long long)a->resume_rpcs, (unsigned long long)a->flush_rpcs,
          (unsigned long long)a->other_rpcs, (unsigned long long)a->refused_opens,
          (unsigned long long)a->lost_backups, (unsigned long long)a->replaced_copies,
          (unsigned long long)a->recopied_bytes, (unsigned long long)a->versions);
}

static inline void rig_free(struct rig *rig)
{
    rig->quiet = true;
    while (rig->req_count) /* the store works on nothing of it then */
        rig_stored(rig, rig->reqs[0]->kind, LEAT_OK);
    if (rig->log) leat_primary_log_destroy(&rig->log);
    leat_primary_destroy(&rig->primary);
    leat_timers_fini(&rig->timers);
    for (unsigned i = 0; i < RIG_SEGMENTS_MAX; i++)
        free(rig->buffers[i]);
    free(rig);
}

#endif
