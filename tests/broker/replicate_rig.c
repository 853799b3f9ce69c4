/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/replicate_rig.h"
#include "broker/data/partition.h"

struct replicate_rig it;
static size_t bytes_before;
static struct leat_link_handler rep_handler, sink_handler;
static struct leat_rmem writer;

/* ---- what it calls ---- */

leat_err leat_transport_sink_create(const struct leat_transport_sink_options *options,
                                    struct leat_transport_sink **out_sink)
{
    said("create the sink");
    it.sink = *options;
    if (it.sink_rc == LEAT_OK) *out_sink = (void *)&it.sink;
    return it.sink_rc;
}
const struct leat_link_handler *leat_transport_sink_handler(struct leat_transport_sink *sink)
{
    assert_ptr_equal(sink, &it.sink);
    return &sink_handler;
}
void leat_transport_sink_destroy(struct leat_transport_sink **sink)
{
    said("destroy the sink");
    *sink = NULL;
}
void leat_transport_sink_status(const struct leat_transport_sink *sink,
                                struct leat_transport_sink_status *out)
{
    assert_ptr_equal(sink, &it.sink);
    *out = it.sunk;
}
leat_err leat_rep_link_create(struct leat_rep_link **out_rep_link)
{
    said("create the link");
    if (it.link_rc == LEAT_OK) *out_rep_link = (void *)&it.member;
    return it.link_rc;
}
const struct leat_link_handler *leat_rep_link_handler(struct leat_rep_link *rep_link)
{
    assert_ptr_equal(rep_link, &it.member);
    return &rep_handler;
}
struct leat_rep_net leat_rep_link_net(struct leat_rep_link *rep_link)
{
    assert_ptr_equal(rep_link, &it.member);
    return (struct leat_rep_net){.ctx = rep_link};
}
void leat_rep_link_start(struct leat_rep_link *rep_link, struct leat_links *links,
                         struct leat_primary *primary, struct leat_backup *backup)
{
    assert_ptr_equal(rep_link, &it.member);
    assert_ptr_equal(links, &it.self);
    assert_ptr_equal(primary, &it.primary);
    said("start the link%s", backup != NULL ? ", with a backup" : "");
}
leat_err leat_rep_link_node_set(struct leat_rep_link *rep_link, const struct leat_rep_node *node,
                                const char *address, struct leat_error *error)
{
    assert_ptr_equal(rep_link, &it.member);
    said("link to %u \"%s\" %llu at %s, host %s, rack %s%s%s%s", node->number, node->name,
         (unsigned long long)node->incarnation, address, node->host, node->rack,
         node->draining ? ", draining" : "", node->crashed ? ", crashed" : "",
         node->gone ? ", gone" : "");
    return it.link_node_rc == LEAT_OK ? LEAT_OK : leat_error_set(error, it.link_node_rc, "no way");
}
void leat_rep_link_destroy(struct leat_rep_link **rep_link)
{
    said("destroy the link");
    *rep_link = NULL;
}
leat_err leat_transport_create(const struct leat_transport_options *options,
                               struct leat_transport **out_transport, struct leat_error *error)
{
    said("create the transport");
    it.transport = *options;
    if (it.transport_rc != LEAT_OK) return leat_error_set(error, it.transport_rc, "no transport");
    *out_transport = (void *)&it.transport;
    return LEAT_OK;
}
const struct leat_rmem *leat_transport_writer(const struct leat_transport *transport)
{
    assert_ptr_equal(transport, &it.transport);
    return &writer;
}
leat_err leat_transport_node_set(struct leat_transport *transport, unsigned node, const char *name,
                                 const char *address, uint64_t incarnation)
{
    assert_ptr_equal(transport, &it.transport);
    said("transport to %u \"%s\" %llu at %s", node, name, (unsigned long long)incarnation, address);
    return it.node_rc;
}
void leat_transport_destroy(struct leat_transport **transport)
{
    said("destroy the transport");
    *transport = NULL;
}
leat_err leat_primary_create(const struct leat_primary_options *options,
                             struct leat_primary **out_primary)
{
    said("create the primary");
    it.primary = *options;
    if (it.primary_rc == LEAT_OK) *out_primary = (void *)&it.primary;
    return it.primary_rc;
}
void leat_primary_destroy(struct leat_primary **primary)
{
    said("destroy the primary");
    *primary = NULL;
}
leat_err leat_backup_create(const struct leat_backup_options *options,
                            struct leat_backup **out_backup)
{
    said("create the backup");
    it.backup = *options;
    if (it.backup_rc == LEAT_OK) *out_backup = (void *)&it.backup;
    return it.backup_rc;
}
void leat_backup_destroy(struct leat_backup **backup)
{
    said("destroy the backup");
    *backup = NULL;
}
leat_err leat_backup_fence(struct leat_backup *backup, const char *node, uint64_t incarnation,
                           void (*on_done)(void *arg), void *arg)
{
    assert_ptr_equal(backup, &it.backup);
    said("fence %s %llu", node, (unsigned long long)incarnation);
    on_done(arg);
    leat_err rc = it.fence_rc;
    if (it.fence_fails_once) it.fence_rc = LEAT_OK;
    return rc;
}
void leat_backup_release(struct leat_backup *backup, const char *node, uint64_t incarnation)
{
    assert_ptr_equal(backup, &it.backup);
    said("release %s %llu", node, (unsigned long long)incarnation);
}
const struct leat_found *leat_store_found_replicas(const struct leat_store *store,
                                                   size_t *out_count)
{
    assert_ptr_equal(store, &it);
    *out_count = it.replica_count;
    return it.replicas;
}
leat_err leat_backup_take_found(struct leat_backup *backup, const struct leat_found *found)
{
    assert_ptr_equal(backup, &it.backup);
    said("take found %llu", (unsigned long long)found->seg->id.v);
    return found->seg->id.v == 3 ? it.found_rc : LEAT_OK;
}
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless)
{
    assert_ptr_equal(backup, &it.backup);
    assert_int_equal(incarnation, ALONE_SELF);
    assert_false(useless);
    said("take own %llu", (unsigned long long)seg->id.v);
    return LEAT_OK;
}
void leat_backup_drop_deleted(struct leat_backup *backup,
                              bool (*deleted)(void *arg, uint32_t stream), void *arg)
{
    assert_ptr_equal(backup, &it.backup);
    said("drop those of deleted streams");
    it.deleted = deleted;
    it.deleted_arg = arg;
}
leat_err leat_primary_log_create(struct leat_primary *primary,
                                 const struct leat_primary_log_options *options,
                                 struct leat_segment *const *segs, size_t seg_count,
                                 struct leat_primary_log **out_rep)
{
    assert_ptr_equal(primary, &it.primary);
    assert_ptr_equal(segs, &it);
    assert_ptr_equal(options->owner, &it.partition);
    assert_false(options->opened);
    said(
        "copies of %s, epoch %u, %u of which %u at least, durability %d, version %u, %zu segments, "
        "unsure %llu to %llu%s",
        ref_text(options->ref), options->epoch.v, options->copies, options->min_copies,
        options->durability, options->version, seg_count, (unsigned long long)options->unsure.first,
        (unsigned long long)options->unsure.end, options->backfill_follows ? ", older follow" : "");
    if (it.log_rc == LEAT_OK) *out_rep = (void *)&it.partition;
    return it.log_rc;
}
struct leat_store_port leat_primary_port(struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &it.partition);
    return (struct leat_store_port){.ctx = rep};
}
void leat_primary_log_destroy(struct leat_primary_log **rep)
{
    said("destroy its copies");
    *rep = NULL;
}
void *leat_primary_log_owner(const struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &it.partition);
    return &it.partition;
}
void leat_primary_versions_done(struct leat_primary *primary, leat_err rc)
{
    assert_ptr_equal(primary, &it.primary);
    said("versions done %s", leat_err_name(rc));
}
const struct leat_rep_accounts *leat_primary_accounts(const struct leat_primary *primary)
{
    assert_ptr_equal(primary, &it.primary);
    return &it.own;
}
uint32_t leat_primary_transports(const struct leat_primary *primary)
{
    assert_ptr_equal(primary, &it.primary);
    return 4;
}
const struct leat_rep_accounts *leat_backup_accounts(const struct leat_backup *backup)
{
    assert_ptr_equal(backup, &it.backup);
    return &it.held;
}
bool leat_log_on_damaged(struct leat_log *log, const struct leat_segment *seg, bool told)
{
    assert_ptr_equal(log, &it.partition);
    assert_false(told);
    said("segment %llu is damaged", (unsigned long long)seg->id.v);
    return false;
}
void leat_partition_wake(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("wake");
}
bool leat_node_heap_is_full(const struct leat_node *node, uint64_t left_bytes, uint64_t bytes)
{
    assert_ptr_equal(node, &alone.node);
    it.full_left = left_bytes;
    it.full_bytes = bytes;
    return it.full;
}
uint64_t leat_node_copies_less(void *arg)
{
    (void)arg;
    return 0;
}
const struct leat_member *leat_member_find(const struct leat_core *core, uint64_t incarnation)
{
    for (uint32_t i = 0; i < core->members.count; i++)
        if (core->members.rows[i]->info.incarnation == incarnation) return core->members.rows[i];
    return NULL;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    char logs[128] = "";
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->kind, LEAT_COORDINATE_VERSION);
    assert_int_equal(request->incarnation, ALONE_SELF);
    for (size_t i = 0, used = 0; i < request->log_count && used < 100; i++)
        used +=
            (size_t)snprintf(logs + used, sizeof logs - used, " %s", ref_text(request->logs[i]));
    said("version %u of epoch %u, of %zu:%s", request->version, request->epoch.v,
         request->log_count, logs);
    it.request = request;
}

/* ---- the tests' own ---- */

static uint64_t cpu_ns(void *ctx)
{
    assert_null(ctx);
    return 1000;
}

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    alone.node.store = (void *)&it;
    alone.node.store_port = (struct leat_store_port){.ctx = &it};
    alone.node.options.cluster.thread_cpu_ns = cpu_ns;
    memset(alone.node.cluster_id, 7, 16);
    it.self.self = true;
    it.self.number = 1;
    it.self.info =
        (struct leat_node_info){.name = "n1", .incarnation = ALONE_SELF, .state = LEAT_NODE_UP};
    it.member.number = 12;
    it.member.info = (struct leat_node_info){.name = "n2",
                                             .incarnation = 200,
                                             .node_address = "10.0.0.2:7000",
                                             .rack = "r2",
                                             .state = LEAT_NODE_UP};
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        struct leat_members *members = &alone.cores[q].members;
        members->rows[members->count++] = &it.self;
        members->rows[members->count++] = &it.member;
        members->links = (void *)&it.self;
    }
    it.partition = (struct leat_partition){.ref = {ALONE_STREAM, 1, 0},
                                           .core = &alone.cores[0],
                                           .stream = &alone.stream,
                                           .log = (void *)&it.partition,
                                           .epoch = {9},
                                           .unsure = {2, 5}};
}

void end(void)
{
    said_enough();
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

leat_err comes_up(unsigned index)
{
    struct leat_error error;
    struct leat_links_options links = {0};
    leat_err rc = leat_replicate_prepare(&alone.cores[index], &links);
    if (rc != LEAT_OK) return rc;
    assert_ptr_equal(links.services[LEAT_LINK_REPLICATE].handler, &rep_handler);
    assert_ptr_equal(links.services[LEAT_LINK_DATA].handler, &sink_handler);
    rc = leat_replicate_open(&alone.cores[index], &error);
    if (rc != LEAT_OK) said("error: %s", error.text);
    return rc;
}
