/* How a node comes up: what was found -> the coordinator decides where every log ends -> cut ->
 * logs are made -> listen. Runs on core 0, with visits to the store's thread and to each core.
 *
 * Nothing that was found is cut or dropped before the coordinator has committed its decision
 * (design §9, step 5): a crash at any point before may decide otherwise, after it nobody can.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diary.h"
#include "base/mem.h"
#include "broker/core.h"

static void up_deliver_join(void *actor, struct leat_mail *mail);
static void up_deliver_joined(void *actor, struct leat_mail *mail);
static void up_on_node_up(struct leat_coordinate *request);
static void up_on_adopted(struct leat_coordinate *request);
static void up_deliver_cut(void *actor, struct leat_mail *mail);
static void up_deliver_core(void *actor, struct leat_mail *mail);
static void up_deliver_logs_made(void *actor, struct leat_mail *mail);
static void up_deliver_found_done(void *actor, struct leat_mail *mail);
static void up_fail(struct leat_node *node, leat_err rc, const struct leat_error *error);
static leat_err up_cut(struct leat_node *node);
static const struct leat_log_decision *decision_find(const struct leat_node *node,
                                                     struct leat_log_ref ref);

/* ---- marks ---- */

static bool same_log(const struct leat_found *a, const struct leat_found *b)
{
    return leat_log_ref_equal(a->seg->log, b->seg->log);
}

static void marks_of_log(const struct leat_found *found, size_t count, struct leat_log_marks *marks)
{
    const struct leat_found *mark = NULL;
    memset(marks, 0, sizeof *marks);
    marks->log = found[0].seg->log;
    marks->highest_segment = found[count - 1].seg->id.v;
    for (size_t i = 0; i < count; i++) {
        const struct leat_segment *seg = found[i].seg;
        switch (found[i].kind) {
        case LEAT_FOUND_CLOSED:
            marks->has_closed = true;
            marks->closed_segment = seg->id.v;
            marks->closed_extent = seg->extent;
            marks->closed_next_offset = seg->next_offset;
            break;
        case LEAT_FOUND_MARK:
            if (mark == NULL) mark = &found[i];
            break;
        case LEAT_FOUND_LOST:
            marks->lost = true;
            if (marks->why[0] == '\0') memcpy(marks->why, found[i].why, sizeof marks->why);
            break;
        }
    }
    if (mark == NULL) return;
    marks->has_mark = true;
    marks->mark_segment = mark->seg->id.v;
    marks->mark_epoch = mark->seg->epoch;
    marks->mark_version = mark->seg->version;
    marks->mark_extent = (struct leat_extent){mark->scan.bytes, mark->scan.crc};
    marks->mark_next_offset = mark->scan.next_offset;
    marks->mark_only_start = leat_scan_only_start(&mark->scan);
    const struct leat_extent *named = &mark->scan.previous;
    marks->predecessor_matches = named->bytes == 0;
    for (size_t i = 0; i < count && named->bytes != 0; i++)
        if (found[i].kind == LEAT_FOUND_CLOSED && found[i].seg->id.v + 1 == mark->seg->id.v &&
            found[i].seg->extent.bytes == named->bytes && found[i].seg->extent.crc == named->crc)
            marks->predecessor_matches = true;
}

leat_err leat_node_find_marks(struct leat_node *node, struct leat_error *error)
{
    node->found = leat_store_found(node->store, &node->found_count);
    size_t logs = 0;
    for (size_t i = 0; i < node->found_count; i++)
        if (i == 0 || !same_log(&node->found[i - 1], &node->found[i])) logs++;
    node->marks = leat_mem_calloc(LEAT_MEM_BROKER, logs + 1, sizeof *node->marks);
    if (node->marks == NULL)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the marks of %zu logs", logs);
    for (size_t i = 0; i < node->found_count;) {
        size_t end = i + 1;
        while (end < node->found_count && same_log(&node->found[i], &node->found[end]))
            end++;
        marks_of_log(&node->found[i], end - i, &node->marks[node->mark_count++]);
        i = end;
    }
    return LEAT_OK;
}

/* ---- step by step ---- */

/* Before the other nodes hear of this one, so that they are told of an address that it really has;
 * nobody is let in until it is up. */
static leat_err up_open_door(struct leat_core *core, struct leat_error *error)
{
    struct leat_door *door = core->node->options.door;
    if (door == NULL || door->bound_address[0] != '\0') return LEAT_OK;
    leat_err rc = core->net->listen(core->net->ctx, door->address, door->on_accept, core,
                                    door->bound_address, error);
    if (rc == LEAT_OK) return LEAT_OK;
    door->bound_address[0] = '\0';
    door->not_bound = *error;
    return door->optional ? LEAT_OK : rc;
}

void leat_node_bring_up(struct leat_node *node)
{
    struct leat_core *core = &node->cores[0];
    uint8_t cluster_id[16];
    leat_coordinator_cluster_id(node->coordinator, cluster_id);
    if (node->joining) {
        leat_core_mail(core, LEAT_ACTOR_STORE, &node->mail, up_deliver_join);
        return;
    }
    if (memcmp(cluster_id, node->cluster_id, sizeof cluster_id) != 0) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_WRONG_CLUSTER,
                       "the coordinator's files in this data directory are another cluster's");
        up_fail(node, LEAT_E_WRONG_CLUSTER, &error);
        return;
    }
    struct leat_error error;
    leat_err rc = up_open_door(core, &error);
    if (rc != LEAT_OK) {
        up_fail(node, rc, &error);
        return;
    }
    struct leat_coordinate *request = &node->request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_NODE_UP;
    request->from = core->index;
    request->node_name = node->name;
    request->address = node->listen_address;
    request->cores = node->options.cores;
    request->node_address = node->options.cluster.node_address;
    request->rack = node->options.cluster.rack;
    request->host = node->options.cluster.host;
    request->memory_bytes = node->pool_bytes;
    const struct leat_door *door = node->options.door;
    if (door != NULL && door->bound_address[0] != '\0')
        request->kafka_address = door->advertise != NULL ? door->advertise : door->bound_address;
    if (node->options.cluster.node_address != NULL) leat_store_id(node->store, request->node_id);
    request->boot = node->boot;
    request->boot_before = node->boot_before;
    if (node->options.cluster.advertise != NULL) request->address = node->options.cluster.advertise;
    request->on_done = up_on_node_up;
    request->owner = node;
    leat_coordinate(core->env->post, request);
}

/* On the store's thread. */
static void up_deliver_join(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    uint8_t cluster_id[16];
    (void)actor;
    leat_coordinator_cluster_id(node->coordinator, cluster_id);
    node->rc = leat_node_identity_set(node, cluster_id, &node->error);
    mail->deliver = up_deliver_joined;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

static void up_deliver_joined(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    node->joining = false;
    if (node->rc != LEAT_OK)
        up_fail(node, node->rc, &node->error);
    else
        leat_node_bring_up(node);
}

static void up_on_name_timer(struct leat_timer *timer)
{
    leat_node_bring_up(timer->owner);
}

/* SUBTLE: a node that was killed, lost its disk and starts anew comes as a stranger under a name
 * whose last bearer nobody has missed yet. Its death shows within seconds; another bearer that
 * lives stays. So it is with a node that was given another name: its directory's last node. */
static bool up_wait_for_name(struct leat_node *node, leat_err rc)
{
    struct leat_core *core = &node->cores[0];
    if (rc != LEAT_E_EXISTS || node->name_tries == LEAT_NAME_TRIES_MAX || node->stopping)
        return false;
    if (node->name_tries++ == 0)
        leat_diary_warn("waiting whether the other one has just died: %s",
                        node->request.error.text);
    node->name_timer.on_expired = up_on_name_timer;
    node->name_timer.owner = node;
    leat_timer_start(&core->timers, &node->name_timer, LEAT_NAME_RETRY_US);
    return true;
}

static void up_adopt(struct leat_node *node)
{
    struct leat_coordinate *request = &node->request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_ADOPT;
    request->from = node->cores[0].index;
    request->incarnation = node->incarnation;
    request->marks = node->marks;
    request->mark_count = node->mark_count;
    request->on_done = up_on_adopted;
    request->owner = node;
    leat_coordinate(node->cores[0].env->post, request);
}

static void up_deliver_booted(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    if (node->rc != LEAT_OK)
        up_fail(node, node->rc, &node->error);
    else
        up_adopt(node);
}

/* On the store's thread. Before anything is adopted: from then on the directory holds what it may be asked
 * for. */
static void up_deliver_boot(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    (void)actor;
    node->rc = leat_node_boot_taken(node, &node->error);
    mail->deliver = up_deliver_booted;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

static void up_on_node_up(struct leat_coordinate *request)
{
    struct leat_node *node = request->owner;
    if (up_wait_for_name(node, request->rc)) return;
    if (request->rc != LEAT_OK) {
        up_fail(node, request->rc, &request->error);
        return;
    }
    node->incarnation = request->incarnation;
    atomic_store_explicit(&node->incarnation_told, node->incarnation, memory_order_relaxed);
    leat_core_mail(&node->cores[0], LEAT_ACTOR_STORE, &node->mail, up_deliver_boot);
}

/* It is known where the log ends, and the segment that ends it may be elsewhere: then it is taken
 * over like one that has just come to this node. */
static bool awaits_tail(const struct leat_node *node, const struct leat_stream *stream,
                        struct leat_log_ref ref)
{
    const struct leat_begun_log *row = leat_begun_find(stream->begun, ref);
    return node->options.cluster.node_address != NULL && row != NULL && !row->record.opened;
}

static void up_on_adopted(struct leat_coordinate *request)
{
    struct leat_node *node = request->owner;
    if (request->rc != LEAT_OK) {
        up_fail(node, request->rc, &request->error);
        return;
    }
    node->decisions = request->decisions;
    node->decision_count = request->decision_count;
    node->fates = leat_mem_calloc(LEAT_MEM_BROKER, node->found_count + 1, sizeof *node->fates);
    for (size_t i = 0; node->fates != NULL && i < node->found_count; i++) {
        struct leat_log_ref ref = node->found[i].seg->log;
        const struct leat_stream *stream = leat_stream_find(&node->cores[0], ref.stream);
        bool known = stream != NULL && !stream->deleted;
        node->fates[i].known = known;
        node->fates[i].tail_waits = known && awaits_tail(node, stream, ref);
    }
    leat_core_mail(&node->cores[0], LEAT_ACTOR_STORE, &node->mail, up_deliver_cut);
}

/* On the store's thread: blocks, nothing is served yet. */
static void up_deliver_cut(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    const struct leat_post *post = node->options.store_env->post;
    (void)actor;
    node->rc = up_cut(node);
    node->walk_core = 0;
    mail->deliver = up_deliver_core;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, mail);
}

/* On each core in turn, in the order in which streams come: all that are known are there. */
static void up_deliver_core(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    if (node->rc == LEAT_OK) node->rc = leat_members_open(core, &node->error);
    if (node->rc == LEAT_OK && core->index == 0) node->rc = leat_replicate_take_found(core);
    if (node->rc == LEAT_OK) node->rc = leat_node_adopt_on_core(node, core, &node->error);
    if (node->rc == LEAT_OK) leat_walk_on_adopted(core);
    node->walk_core++;
    bool last = node->walk_core == node->options.cores;
    leat_core_mail(core, last ? 0 : node->walk_core, mail,
                   last ? up_deliver_logs_made : up_deliver_core);
}

static void up_deliver_found_done(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    (void)actor;
    leat_store_found_done(node->store);
    node->found = NULL;
    node->found_count = 0;
}

static void up_deliver_logs_made(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, mail);
    if (node->rc != LEAT_OK) {
        up_fail(node, node->rc, &node->error);
        return;
    }
    leat_core_mail(core, LEAT_ACTOR_STORE, &node->mail, up_deliver_found_done);
    leat_mem_free(node->decisions);
    leat_mem_free(node->marks);
    leat_mem_free(node->fates);
    node->decisions = NULL;
    node->marks = NULL;
    node->fates = NULL;
    node->up = true;
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = core->net->listen(core->net->ctx, node->listen_address, leat_peer_accept, core,
                                    node->bound_address, &error);
    if (rc != LEAT_OK) {
        up_fail(node, rc, &error);
        return;
    }
    leat_timer_start(&core->timers, &core->tick, LEAT_TICK_US);
    node->options.on_ready(node->options.owner, LEAT_OK, NULL, node->bound_address);
}

static void up_fail(struct leat_node *node, leat_err rc, const struct leat_error *error)
{
    node->failed = true;
    node->options.on_ready(node->options.owner, rc, error, NULL);
}

/* ---- cut ---- */

static int decision_order(struct leat_log_ref a, struct leat_log_ref b)
{
    if (a.stream != b.stream) return a.stream < b.stream ? -1 : 1;
    if (a.streamlet != b.streamlet) return a.streamlet < b.streamlet ? -1 : 1;
    if (a.log != b.log) return a.log < b.log ? -1 : 1;
    return 0;
}

static const struct leat_log_decision *decision_find(const struct leat_node *node,
                                                     struct leat_log_ref ref)
{
    size_t low = 0, high = node->decision_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = decision_order(node->decisions[middle].log, ref);
        if (order == 0) return &node->decisions[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void sort_decisions(struct leat_node *node)
{
    /* Handed over per stream and in order as a rule; insertion sort then only looks. */
    for (size_t i = 1; i < node->decision_count; i++) {
        struct leat_log_decision moved = node->decisions[i];
        size_t at = i;
        for (; at > 0 && decision_order(node->decisions[at - 1].log, moved.log) > 0; at--)
            node->decisions[at] = node->decisions[at - 1];
        if (at != i) node->decisions[at] = moved;
    }
}

/* Another owner's, or one's that is not known yet: its word says what becomes of it. */
static leat_err cut_for_another(struct leat_node *node, const struct leat_found *found,
                                enum leat_fate *out_fate)
{
    *out_fate = LEAT_FATE_REPLICA;
    leat_store_role_set(node->store, found->seg, LEAT_SEGMENT_REPLICA, found->seg->writer);
    leat_store_found_park(node->store, found);
    return LEAT_OK;
}

/* Segments of a log that no stream has: dropped only where the coordinator is known to have
 * deleted the stream, i.e. where it has given out higher ids since. */
static leat_err cut_orphan(struct leat_node *node, const struct leat_found *found, bool known,
                           enum leat_fate *out_fate)
{
    uint32_t highest = atomic_load_explicit(&node->highest_stream, memory_order_relaxed);
    *out_fate = LEAT_FATE_KEPT;
    if (known) return cut_for_another(node, found, out_fate); /* went elsewhere meanwhile */
    if (found->seg->log.stream <= highest) {
        *out_fate = LEAT_FATE_GONE;
        return leat_store_forget(node->store, found->seg);
    }
    if (found == node->found || !same_log(found - 1, found))
        leat_node_complain(node,
                           "segments of stream %u are here, which the coordinator does not know: "
                           "kept, not served",
                           found->seg->log.stream);
    return LEAT_OK;
}

/* A log that waits: nothing is touched on disk. What is valid of a segment that lost its end can
 * be read all the same: for this run it counts as closed where it is valid. */
static leat_err cut_nothing(const struct leat_found *found, enum leat_fate *out_fate)
{
    struct leat_segment *seg = found->seg;
    bool readable = found->kind == LEAT_FOUND_CLOSED;
    if (!readable && found->scan.started && found->scan.next_offset > found->scan.base_offset &&
        seg->extent.bytes == found->scan.bytes && (seg->buffer != NULL || seg->file != NULL)) {
        seg->state = LEAT_SEGMENT_CLOSED;
        readable = true;
    }
    *out_fate = readable ? LEAT_FATE_SERVED : LEAT_FATE_KEPT;
    return LEAT_OK;
}

/* SUBTLE: another row of the same segment of the same log.
 *  1. The power goes before segment 4 is flushed. Here that is the first one that is missing, so it is fetched
 *     as an older one, into a row of its own.
 *  2. The next start finds both. A log has each of its segments once. */
static const struct leat_found *twin_of(const struct leat_node *node,
                                        const struct leat_found *found)
{
    const struct leat_found *end = node->found + node->found_count;
    for (int side = -1; side <= 1; side += 2) {
        const struct leat_found *other = found + side;
        bool there = other >= node->found && other < end && same_log(other, found);
        if (there && other->seg->id.v == found->seg->id.v) return other;
    }
    return NULL;
}

static leat_err cut_one(struct leat_node *node, const struct leat_found *found,
                        struct leat_found_fate *fate)
{
    struct leat_segment *seg = found->seg;
    const struct leat_log_decision *decision = decision_find(node, seg->log);
    if (decision == NULL) return cut_orphan(node, found, fate->known, &fate->fate);
    /* SUBTLE: what is left to recovery is not served here for reading meanwhile. (1) For that an open
     * segment counts as closed; (2) its streamlet gets an owner, so it is handed on as a replica, and
     * a closed one is no mark; (3) where it was the last mark of the newest version its log waits
     * for ever, with all its bytes here. */
    if (decision->kind == LEAT_DECIDED_WAIT && (decision->left || fate->tail_waits))
        return cut_for_another(node, found, &fate->fate);
    if (decision->kind == LEAT_DECIDED_WAIT) return cut_nothing(found, &fate->fate);
    const struct leat_tail_record *tail = &decision->tail;
    bool none = tail->segment == UINT64_MAX;
    fate->fate = LEAT_FATE_GONE;
    if (none || seg->id.v > tail->segment) return leat_store_forget(node->store, seg);
    fate->fate = LEAT_FATE_SERVED;
    if (found->kind == LEAT_FOUND_CLOSED) return LEAT_OK;
    const struct leat_found *twin = seg->unwritten ? twin_of(node, found) : NULL;
    fate->twin = twin != NULL;
    if (twin != NULL && twin->kind == LEAT_FOUND_CLOSED) {
        fate->fate = LEAT_FATE_GONE;
        return leat_store_forget(node->store, seg);
    }
    if (found->kind == LEAT_FOUND_MARK && seg->id.v == tail->segment && !tail->jumped)
        return leat_store_cut(node->store, seg, tail->extent, tail->next_offset,
                              found->scan.max_timestamp_ms);
    if (tail->jumped) {
        /* An operator gave up what is missing; what is valid of this segment stays readable. */
        struct leat_extent valid = {found->scan.bytes, found->scan.crc};
        if (found->scan.started && found->scan.next_offset > found->scan.base_offset &&
            leat_store_cut(node->store, seg, valid, found->scan.next_offset,
                           found->scan.max_timestamp_ms) == LEAT_OK)
            return LEAT_OK;
        fate->fate = LEAT_FATE_GONE;
        return leat_store_forget(node->store, seg);
    }
    /* Older and damaged: what is missing of it makes its own offsets unavailable, no more. */
    return cut_nothing(found, &fate->fate);
}

static leat_err up_cut(struct leat_node *node)
{
    leat_err rc = LEAT_OK;
    sort_decisions(node);
    if (node->fates == NULL) rc = LEAT_E_NO_MEMORY;
    for (size_t i = 0; rc == LEAT_OK && i < node->found_count; i++) {
        struct leat_found_fate *fate = &node->fates[i];
        fate->log = node->found[i].seg->log;
        fate->segment = node->found[i].seg->id.v;
        fate->next_offset = node->found[i].kind == LEAT_FOUND_CLOSED
                                ? node->found[i].seg->next_offset
                                : node->found[i].scan.next_offset;
        rc = cut_one(node, &node->found[i], fate);
    }
    if (rc == LEAT_OK) rc = leat_store_cut_done(node->store);
    if (rc != LEAT_OK)
        leat_error_set(&node->error, rc, "can't close the segments that were open at the end: %s",
                       leat_err_text(rc));
    return rc;
}

/* ---- logs ---- */

/* Closed, and its file has lost it, or never got it: other nodes have it, and the log has it mended. Of those
 * that the file never got the ones in front come as older ones do: an operator may give them up, and which of
 * them belong to the log is said by the one behind. */
static bool is_elsewhere(const struct leat_node *node, const struct leat_stream_desc *desc,
                         const struct leat_log_decision *decision, size_t at, bool in_front)
{
    const struct leat_segment *seg = node->found[at].seg;
    if (desc->settings.copies <= 1 || decision->kind != LEAT_DECIDED_TAIL || !seg->rotten)
        return false;
    if (!seg->unwritten) return true;
    return !in_front && seg->id.v < decision->tail.segment && !node->fates[at].twin;
}

static leat_err adopt_log(struct leat_node *node, struct leat_core *core,
                          struct leat_stream *stream, const struct leat_log_decision *decision,
                          size_t first, size_t end, struct leat_error *error)
{
    const struct leat_stream_desc *desc = stream->desc;
    if (decision->left) { /* recovery may have given it to this node by now */
        stream->logs_missing = core->logs_missing = true;
        return LEAT_OK;
    }
    if (decision->kind == LEAT_DECIDED_WAIT && awaits_tail(node, stream, decision->log)) {
        leat_takeover_ask(core, leat_begun_find(stream->begun, decision->log), desc->settings.logs);
        return LEAT_OK;
    }
    struct leat_segment **segs = NULL;
    size_t count = 0;
    uint64_t highest_segment = UINT64_MAX, highest_offset = 0;
    if (end > first) {
        segs = leat_mem_calloc(LEAT_MEM_BROKER, end - first, sizeof *segs);
        if (segs == NULL) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for a log");
    }
    for (size_t i = first; i < end; i++) {
        const struct leat_found_fate *fate = &node->fates[i];
        if (fate->fate == LEAT_FATE_GONE) continue;
        highest_segment = fate->segment;
        if (fate->next_offset > highest_offset) highest_offset = fate->next_offset;
        if (fate->fate == LEAT_FATE_SERVED || is_elsewhere(node, desc, decision, i, count == 0))
            segs[count++] = node->found[i].seg;
    }

    struct leat_log_tail tail = {0};
    if (decision->kind == LEAT_DECIDED_TAIL) {
        tail.next_segment = decision->tail.segment == UINT64_MAX ? 0 : decision->tail.segment + 1;
        tail.next_offset = decision->tail.next_offset;
        tail.jumped = decision->tail.jumped;
        if (!tail.jumped && tail.next_segment > 0) {
            /* An earlier version's cut added an entry: the chain goes on from what lies there. */
            const struct leat_segment *last = count > 0 ? segs[count - 1] : NULL;
            bool there = last != NULL && last->id.v == decision->tail.segment;
            tail.previous = there ? last->extent : decision->tail.extent;
        }
    } else {
        tail.stands_in = true;
        tail.next_segment = highest_segment == UINT64_MAX ? 0 : highest_segment + 1;
        tail.next_offset = count > 0 ? segs[count - 1]->next_offset : 0;
    }
    /* What is missing in front may not have come yet from where it was before. */
    tail.older_follow = node->options.cluster.node_address != NULL && count > 0 &&
                        segs[0]->id.v > 0 && decision->kind == LEAT_DECIDED_TAIL;
    struct leat_epoch epoch =
        decision->epoch.v != 0 ? decision->epoch : desc->streamlets[decision->log.streamlet].epoch;
    struct leat_hosted *hosted;
    leat_err rc =
        leat_hosted_create(core, stream, decision->log, epoch, segs, count, &tail, &hosted);
    if (rc != LEAT_OK) {
        leat_mem_free(segs);
        return leat_error_set(error, rc, "stream \"%.64s\", streamlet %u, log %u can't be opened",
                              desc->name, decision->log.streamlet, decision->log.log);
    }
    hosted->older_asked = tail.older_follow;
    hosted->older_ticks = LEAT_OLDER_TICKS - 1; /* with the first tick */
    hosted->highest_segment = highest_segment;
    hosted->highest_offset = highest_offset;
    if (decision->kind == LEAT_DECIDED_TAIL) {
        leat_mem_free(segs);
        return LEAT_OK;
    }
    hosted->segs = segs;
    hosted->seg_count = count;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "%s", decision->why);
    leat_log_set_state(hosted->log, LEAT_LOG_WAITING, why);
    leat_node_complain(node,
                       "stream \"%s\", streamlet %u, log %u waits: %s. Reads go on, appends are "
                       "refused; if the data can't come back: leat log recover %s --streamlet %u "
                       "--log %u --accept-loss",
                       desc->name, decision->log.streamlet, decision->log.log, why, desc->name,
                       decision->log.streamlet, decision->log.log);
    return LEAT_OK;
}

leat_err leat_node_adopt_on_core(struct leat_node *node, struct leat_core *core,
                                 struct leat_error *error)
{
    size_t at = 0;
    for (size_t i = 0; i < node->decision_count; i++) {
        const struct leat_log_decision *decision = &node->decisions[i];
        while (at < node->found_count && decision_order(node->fates[at].log, decision->log) < 0)
            at++;
        size_t first = at;
        while (at < node->found_count && decision_order(node->fates[at].log, decision->log) == 0)
            at++;
        struct leat_stream *stream = leat_stream_find(core, decision->log.stream);
        if (stream == NULL) continue; /* deleted between decision and here */
        if (leat_core_of_log(node, decision->log, stream->desc->settings.logs) != core->index)
            continue;
        leat_err rc = adopt_log(node, core, stream, decision, first, at, error);
        if (rc != LEAT_OK) return rc;
    }
    leat_walk_make_missing(core);
    return LEAT_OK;
}
