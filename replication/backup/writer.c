/* SPDX-License-Identifier: Apache-2.0 */
/* Writers: nodes with the right to write here, each incarnation into an arena of its own.
 *
 * An arena is granted whole and revoked whole. After a fence the arena is never trusted or used again: needed
 * replicas move to the node's own pool, as they were after the revocation. Either the writer sees the revocation, or
 * these copies have its bytes (base/rmem.h). */
#include <stdio.h>
#include <string.h>

#include "base/node_log.h"
#include "replication/backup/state.h"

/* ---- growth: asked on the store's thread, done on this one ---- */
static void grown_deliver(void *actor, struct leat_mail *mail)
{
    struct backup_writer *writer = LEAT_CONTAINER(mail, struct backup_writer, grown_mail);
    struct leat_arena_grow *grow = writer->growing;
    (void)actor;
    writer->growing = NULL;
    grow->rc = writer->grow.rc;
    if (!grow->rc) writer->arena.grown_bytes += LEAT_ARENA_STEP_BYTES;
    grow->on_grown(grow);
}

static void attaches_answer(struct backup_writer *writer, leat_err rc, const char *text);

static void tell_store(struct backup_writer *writer, leat_err rc)
{
    const struct leat_post *post = writer->backup->options.env->post;
    writer->grow.rc = rc;
    writer->grown_mail = (struct leat_mail){.deliver = grown_deliver};
    post->send(post->ctx, LEAT_ACTOR_STORE, &writer->grown_mail);
}

static void on_grown(struct leat_rmem_grow *grow)
{
    struct backup_writer *writer = grow->owner;
    grow->on_grown = NULL;
    if (!grow->rc) writer->ready = true;
    writer->starved = !writer->ready;
    if (grow->rc)
        leat_node_log_warn("replication: no more memory for replicas of %s: %s", writer->node,
                           grow->error.text);
    if (writer->ready)
        attaches_answer(writer, LEAT_OK, NULL);
    else
        attaches_answer(writer, grow->rc, grow->error.text);
    tell_store(writer, grow->rc);
}

/* All writers share the memory for replicas; a writer that came earlier keeps its memory. The first step of each
 * writer comes from the same memory, however much of it own logs use. Replicas that are leaving the arena of a fenced
 * writer do not stop the next incarnation from copying. */
static bool may_grow(const struct backup_writer *writer)
{
    const struct leat_backup *backup = writer->backup;
    uint64_t most = backup->options.writers_bytes_max, first = backup->options.first_bytes_max;
    uint64_t grown = 0, live_grown = 0;
    unsigned live = 0, writers = BACKUP_WRITERS_MIN;
    if (!most) return true;
    for (const struct leat_list *it = backup->writers.next; it != &backup->writers; it = it->next) {
        const struct backup_writer *other = LEAT_CONTAINER(it, const struct backup_writer, link);
        if (!other->rmem) continue;
        uint64_t has = other->rmem->grown_bytes;
        if (other->grow.on_grown) has += LEAT_ARENA_STEP_BYTES; /* under way */
        grown += has;
        if (other->fenced) continue;
        live++;
        live_grown += has;
    }
    uint64_t own = writer->rmem->grown_bytes;
    if (!own) return live_grown + LEAT_ARENA_STEP_BYTES <= (first > most ? first : most);
    uint64_t less =
        backup->options.less_bytes ? backup->options.less_bytes(backup->options.arg) : 0;
    most = less < most ? most - less : 0;
    if (live > writers) writers = live;
    return own + LEAT_ARENA_STEP_BYTES <= most / writers && grown + LEAT_ARENA_STEP_BYTES <= most;
}

/* A node that has no memory here at all is told what helps; it asks again after a while. */
static void no_step(const struct leat_backup *backup, struct leat_error *error)
{
    const struct leat_backup_options *options = &backup->options;
    uint64_t most = options->first_bytes_max;
    if (most < options->writers_bytes_max) most = options->writers_bytes_max;
    (void)leat_error_set(
        error, LEAT_E_NO_MEMORY,
        "the %llu MiB for replicas of other nodes are taken, %d MiB or more by each: that node "
        "needs a larger --memory",
        (unsigned long long)(most >> 20), LEAT_ARENA_STEP_BYTES >> 20);
}

static void refuse_first(struct backup_writer *writer)
{
    struct leat_error error;
    if (writer->ready || writer->fenced) return;
    no_step(writer->backup, &error);
    writer->starved = true;
    attaches_answer(writer, LEAT_E_NO_MEMORY, error.text);
}

static void grow_deliver(void *actor, struct leat_mail *mail)
{
    struct backup_writer *writer = LEAT_CONTAINER(mail, struct backup_writer, grow_mail);
    const struct leat_rmem_host *host = writer->backup->options.rmem;
    (void)actor;
    if (writer->fenced || !may_grow(writer)) {
        refuse_first(writer);
        tell_store(writer, LEAT_E_NO_MEMORY);
        return;
    }
    writer->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = writer};
    host->grow(host->ctx, writer->rmem, &writer->grow);
}

/* Store's thread. */
static void arena_grow(void *ctx, struct leat_arena_grow *grow)
{
    struct backup_writer *writer = ctx;
    const struct leat_post *post = writer->backup->options.env->post;
    writer->growing = grow;
    writer->grow_mail = (struct leat_mail){.deliver = grow_deliver};
    post->send(post->ctx, post->self, &writer->grow_mail);
}

/* ---- attaching ---- */
static void attaches_answer(struct backup_writer *writer, leat_err rc, const char *text)
{
    struct leat_backup *backup = writer->backup;
    const struct leat_rmem_host *host = backup->options.rmem;
    uint8_t body[REP_ATTACHED_BYTES_MAX];
    struct rep_attached attached = {.load_bytes = backup_load(backup)};
    if (!writer->attach_count) return;
    if (!rc) host->grant(host->ctx, writer->rmem, &attached.grant);
    uint32_t bytes = rep_attached_encode(&attached, body);
    for (unsigned i = 0; i < writer->attach_count; i++) {
        if (rc)
            backup_refuse(backup, &writer->attaches[i], rc, text);
        else
            backup->options.net.answer(backup->options.net.ctx, &writer->attaches[i], body, bytes);
    }
    writer->attach_count = 0;
}

static void on_added(struct leat_store_arena_op *op)
{
    struct backup_writer *writer = op->owner;
    if (op->rc) {
        writer->failed = true;
        attaches_answer(writer, op->rc, NULL);
    } else {
        writer->at_store =
            op->added; /* the store makes the arena grow; then on_grown() grants it */
    }
    backup_writer_left(writer);
}

struct backup_writer *backup_writer_find(const struct leat_backup *backup, const char *node,
                                         uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    for (struct leat_list *it = backup->writers.next; it != &backup->writers; it = it->next) {
        struct backup_writer *writer = LEAT_CONTAINER(it, struct backup_writer, link);
        if (writer->incarnation == incarnation && strcmp(writer->node, node) == 0) return writer;
    }
    return NULL;
}

static leat_err writer_new(struct leat_backup *backup, const struct leat_link_identity *who,
                           struct backup_writer **out_writer, struct leat_error *error)
{
    const struct leat_rmem_host *host = backup->options.rmem;
    if (backup->writer_count == BACKUP_WRITERS_MAX) return LEAT_E_TOO_MANY;
    struct backup_writer *writer = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *writer);
    if (!writer) return LEAT_E_NO_MEMORY;
    leat_err rc = host->open(host->ctx, who->node, who->incarnation,
                             backup->options.writer_bytes_max, &writer->rmem, error);
    if (rc) {
        leat_mem_free(writer);
        return rc;
    }
    writer->backup = backup;
    writer->incarnation = who->incarnation;
    snprintf(writer->node, sizeof writer->node, "%s", who->node);
    writer->arena = (struct leat_arena){.ctx = writer,
                                        .base = writer->rmem->base,
                                        .limit_bytes = writer->rmem->limit_bytes,
                                        .grow = arena_grow};
    memcpy(writer->arena.pool_id, writer->rmem->id, sizeof writer->arena.pool_id);
    leat_list_push_back(&backup->writers, &writer->link);
    backup->writer_count++;
    writer->add = (struct leat_store_arena_op){.arena = &writer->arena,
                                               .limit_bytes = writer->arena.limit_bytes,
                                               .on_done = on_added,
                                               .owner = writer};
    leat_store_arena_add(backup->options.store, backup->options.env->post, &writer->add);
    *out_writer = writer;
    return LEAT_OK;
}

void backup_attach(struct leat_backup *backup, const struct leat_link_identity *who,
                   const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct backup_writer *writer = backup_writer_find(backup, who->node, who->incarnation);
    struct leat_error error = {0};
    leat_err rc = LEAT_OK;
    if (backup_is_fenced(backup, who->node, who->incarnation)) rc = LEAT_E_STALE_EPOCH;
    if (!rc && !writer && backup->options.is_node &&
        !backup->options.is_node(backup->options.arg, who->node, who->incarnation))
        rc = leat_error_set(&error, LEAT_E_STARTING,
                            "the coordinators have not told this node of \"%.64s\" in incarnation "
                            "%llu, so it has no memory here",
                            who->node, (unsigned long long)who->incarnation);
    if (!rc && !writer) rc = writer_new(backup, who, &writer, &error);
    if (!rc && writer->fenced) rc = LEAT_E_AGAIN; /* released, and its memory is on its way back */
    if (!rc && (writer->failed || writer->starved)) rc = LEAT_E_NO_MEMORY;
    if (rc == LEAT_E_NO_MEMORY && writer && writer->starved && !may_grow(writer))
        no_step(backup, &error);
    if (!rc && writer->attach_count == BACKUP_ATTACHES_MAX) rc = LEAT_E_AGAIN;
    if (rc) {
        backup_refuse(backup, ticket, rc, error.text[0] ? error.text : NULL);
        return;
    }
    writer->attaches[writer->attach_count++] = *ticket;
    if (writer->ready) attaches_answer(writer, LEAT_OK, NULL);
}

/* ---- fencing ---- */
bool backup_is_fenced(const struct leat_backup *backup, const char *node, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    for (unsigned i = 0; i < backup->fenced_count; i++)
        if (strcmp(backup->fenced[i].node, node) == 0)
            return incarnation <= backup->fenced[i].incarnation;
    return false;
}

static void fenced_note(struct leat_backup *backup, const char *node, uint64_t incarnation)
{
    unsigned i = 0;
    while (i < backup->fenced_count && strcmp(backup->fenced[i].node, node) != 0)
        i++;
    if (i == BACKUP_FENCED_MAX) return; /* as many nodes as a cluster has; links remember too */
    if (i == backup->fenced_count) backup->fenced_count++;
    snprintf(backup->fenced[i].node, sizeof backup->fenced[i].node, "%s", node);
    if (incarnation > backup->fenced[i].incarnation) backup->fenced[i].incarnation = incarnation;
}

static void fences_done(struct leat_backup *backup)
{
    struct leat_list *link;
    if (backup->moves) return;
    while ((link = leat_list_pop_front(&backup->fences)) != NULL) {
        struct backup_fence *fence = LEAT_CONTAINER(link, struct backup_fence, link);
        fence->on_done(fence->arg);
        leat_mem_free(fence);
    }
}

static void memory_end(struct backup_writer *writer)
{
    const struct leat_rmem_host *host = writer->backup->options.rmem;
    if (!LEAT_BUG(NO_FENCE)) host->retire(host->ctx, writer->rmem);
    writer->rmem = NULL;
}

static void on_retired(struct leat_store_arena_op *op)
{
    struct backup_writer *writer = op->owner;
    memory_end(writer);
    writer->at_store = NULL;
    backup_writer_left(writer);
}

/* A fenced writer's arena is retired when all replicas have left it. The writer is freed when its replicas have gone,
 * too. */
void backup_writer_left(struct backup_writer *writer)
{
    LEAT_ASSERT_OWNER(writer->backup->options.owner);
    struct leat_backup *backup = writer->backup;
    if (!writer->fenced) return;
    if (writer->at_store && !writer->retiring && !writer->moves) {
        writer->retiring = true;
        writer->retire = (struct leat_store_arena_op){
            .added = writer->at_store, .on_done = on_retired, .owner = writer};
        leat_store_arena_retire(backup->options.store, backup->options.env->post, &writer->retire);
    }
    if (writer->failed && writer->rmem) memory_end(writer); /* the store never had this arena */
    if (writer->rmem || writer->replicas || writer->growing) return;
    leat_list_remove(&writer->link);
    backup->writer_count--;
    leat_mem_free(writer);
}

void backup_move_over(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    struct backup_writer *writer = rep->writer;
    struct leat_backup *backup = rep->backup;
    LEAT_ASSERT_CMP(writer->moves, >, 0);
    rep->move_wanted = false;
    writer->moves--;
    backup->moves--;
    fences_done(backup);
    backup_writer_left(writer);
}

static void on_moved(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    if (req->rc) rep->damaged = true; /* its bytes are unknown */
    backup_request_put(request);
    backup_move_over(rep);
    backup_idle(rep);
}

/* One at a time for a replica: what is under way writes from, or reads into, the old place. */
void backup_move(struct replica *rep)
{
    LEAT_ASSERT_OWNER(rep->backup->options.owner);
    const struct leat_segment *seg = rep->seg;
    rep->move_wanted = false;
    bool there = seg->buffer && seg->state != LEAT_SEGMENT_CLOSED && !rep->drop_wanted;
    struct backup_request *request = there ? backup_request_get(rep->backup) : NULL;
    if (!request) {
        if (there) rep->damaged = true;
        backup_move_over(rep);
        if (rep->drop_wanted) backup_drop(rep);
        return;
    }
    request->rep = rep;
    backup_store(request, LEAT_STORE_MOVE, on_moved);
}

static void moves_start(struct backup_writer *writer)
{
    struct leat_backup *backup = writer->backup;
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->writer != writer || !rep->seg) continue;
        rep->settled = false;
        if (rep->dropping) continue;
        /* The replica waited for its writer's DROP, which does not come any more. */
        rep->drop_wanted |= backup_stream_is_gone(backup, rep->seg->log.stream);
        rep->move_wanted = true;
        writer->moves++;
        backup->moves++;
    }
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->writer == writer && rep->move_wanted && !rep->busy) backup_move(rep);
    }
}

static void fence_deliver(void *actor, struct leat_mail *mail)
{
    struct backup_fence *fence = LEAT_CONTAINER(mail, struct backup_fence, mail);
    (void)actor;
    leat_list_push_back(&fence->backup->fences, &fence->link);
    fences_done(fence->backup);
}

static void writers_end(struct leat_backup *backup, const char *node, uint64_t incarnation)
{
    const struct leat_rmem_host *host = backup->options.rmem;
    LEAT_LIST_EACH(&backup->writers, it)
    {
        struct backup_writer *writer = LEAT_CONTAINER(it, struct backup_writer, link);
        if (writer->incarnation > incarnation || strcmp(writer->node, node) != 0) continue;
        if (writer->rmem && !LEAT_BUG(NO_FENCE)) host->revoke(host->ctx, writer->rmem);
        if (writer->fenced) continue;
        writer->fenced = true;
        attaches_answer(writer, LEAT_E_STALE_EPOCH, NULL);
        writer->moves++; /* so that the writer is not freed while its replicas are walked */
        moves_start(writer);
        writer->moves--;
        backup_writer_left(writer);
    }
}

void leat_backup_release(struct leat_backup *backup, const char *node, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    writers_end(backup, node, incarnation);
}

leat_err leat_backup_fence(struct leat_backup *backup, const char *node, uint64_t incarnation,
                           void (*on_done)(void *arg), void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_post *post = backup->options.env->post;
    struct backup_fence *fence = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *fence);
    if (!fence) return LEAT_E_NO_MEMORY;
    fenced_note(backup, node, incarnation);
    writers_end(backup, node, incarnation);
    *fence = (struct backup_fence){
        .backup = backup, .on_done = on_done, .arg = arg, .mail = {.deliver = fence_deliver}};
    leat_list_init(&fence->link);
    post->send(post->ctx, post->self, &fence->mail);
    return LEAT_OK;
}

void backup_writers_fini(struct leat_backup *backup)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&backup->writers)) != NULL)
        leat_mem_free(LEAT_CONTAINER(link, struct backup_writer, link));
    while ((link = leat_list_pop_front(&backup->fences)) != NULL)
        leat_mem_free(LEAT_CONTAINER(link, struct backup_fence, link));
}
