/* SPDX-License-Identifier: Apache-2.0 */
/* Replication, seen from the broker: see replicate.h. */
#include "broker/data/replicate.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"

static void on_versions(void *owner, struct leat_primary *primary,
                        const struct leat_rep_version *rows, size_t count);
static void on_room(void *owner, struct leat_primary_log *rep);
static void on_damaged(void *owner, struct leat_primary_log *rep, struct leat_segment *seg);
static void versions_send(struct leat_core *core);
static void on_fenced(void *arg);

enum leat_durability leat_replicate_durability(const struct leat_stream_settings *settings)
{
    if (settings->durability != LEAT_DURABILITY_DEFAULT) return settings->durability;
    return settings->copies >= 3 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK;
}

/* ---- life ---- */

/* "host:port" -> "host" */
static void host_of(const char *address, char out[LEAT_REP_HOST_BYTES_MAX + 1])
{
    const char *colon = strrchr(address, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - address) : strlen(address);
    _Static_assert((int)LEAT_ADDRESS_BYTES_MAX <= (int)LEAT_REP_HOST_BYTES_MAX, "it fits");
    memcpy(out, address, bytes);
    out[bytes] = '\0';
}

static struct leat_rep_node rep_node(const struct leat_member *member)
{
    const struct leat_node_info *info = &member->info;
    struct leat_rep_node node = {
        .number = member->number,
        .incarnation = info->state == LEAT_NODE_UP ? info->incarnation : 0,
        .draining = info->draining,
        .crashed = info->state == LEAT_NODE_DOWN && info->crashed,
        .gone = info->state == LEAT_NODE_GONE || (info->state == LEAT_NODE_DOWN && info->draining),
    };
    snprintf(node.name, sizeof node.name, "%s", info->name);
    if (info->host[0] != '\0')
        snprintf(node.host, sizeof node.host, "%s", info->host);
    else
        host_of(info->node_address, node.host);
    snprintf(node.rack, sizeof node.rack, "%s", info->rack);
    return node;
}

/* As for this node's own segments (cut_orphan() in found.c): only ids that were given out count. SUBTLE: a stream
 * that is being deleted counts, too. Else (1) the deletion comes as this node starts, and reaches core 0, which has
 * no replicas yet; (2) core 0 takes the replicas; (3) the stream goes from core 0, and no later step drops
 * them. */
bool leat_replicate_stream_is_deleted(const struct leat_core *core, uint32_t stream)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream *known = leat_stream_find(core, stream);
    return stream <= core->data->stream_seen && (known == NULL || known->deleted);
}

static bool stream_is_deleted(void *arg, uint32_t stream)
{
    return leat_replicate_stream_is_deleted(arg, stream);
}

/* SUBTLE: a refused owner asks other nodes, if its own memory is not full. But an open segment here may also be the
 * way to free memory: its log is to let its oldest segments go. So replicas are taken for longer than appends to this
 * node's own logs, and refused before the memory runs out that freeing needs. */
static bool heap_is_full(void *arg)
{
    const struct leat_core *core = arg;
    return leat_node_heap_is_full(core->node, LEAT_HEAP_SPARE_BYTES / 2, LEAT_SEGMENT_HEAP_BYTES);
}

/* SUBTLE: the name in a peer's hello does not make the peer a writer; the coordinators have to have committed this
 * incarnation. Else (1) a peer that has the cluster's key says that it is "ghost7", then "ghost8". (2) Each name gets
 * its first 64 MiB of shared memory. (3) The machine has no memory left. */
static bool is_node(void *arg, const char *name, uint64_t incarnation)
{
    const struct leat_member *member = leat_member_find(arg, incarnation);
    return member != NULL && !member->self && !member->info.crashed &&
           member->info.state != LEAT_NODE_GONE && strcmp(member->info.name, name) == 0;
}

static leat_err open_backup(struct leat_core *core, const struct leat_rep_net *net)
{
    struct leat_node *node = core->node;
    struct leat_backup_options options = {
        .env = core->env,
        .owner = core,
        .timers = &core->timers,
        .store = node->store,
        .net = *net,
        .rmem = core->env->rmem_host,
        .stream_deleted = stream_is_deleted,
        .is_full = heap_is_full,
        .arg = core,
        .cpu = {node->options.cluster.thread_cpu_ns, NULL},
        .writer_bytes_max = node->writer_bytes_max,
        .writers_bytes_max = node->copies_bytes,
        .first_bytes_max = node->copies_first_bytes,
        .less_bytes = leat_node_copies_less,
        .is_node = is_node,
    };
    memcpy(options.cluster_id, node->cluster_id, sizeof options.cluster_id);
    return leat_backup_create(&options, &core->data->replicate->backup);
}

leat_err leat_replicate_prepare(struct leat_core *core, struct leat_links_options *links)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_node *node = core->node;
    struct leat_replicate *replicate = core->data->replicate;
    struct leat_transport_sink_options options = {
        .env = core->env,
        .host = node->cores[0].env->rmem_host,
        .baseline = node->options.cluster.baseline,
        .cpu_ns = node->options.cluster.thread_cpu_ns,
    };
    leat_err rc = leat_transport_sink_create(&options, &replicate->sink);
    if (rc == LEAT_OK) rc = leat_rep_link_create(&replicate->rep_link);
    if (rc != LEAT_OK) return rc;
    links->services[LEAT_LINK_REPLICATE].handler = leat_rep_link_handler(replicate->rep_link);
    links->services[LEAT_LINK_DATA].handler = leat_transport_sink_handler(replicate->sink);
    return LEAT_OK;
}

/* As long as it takes the leader to declare a node crashed that is silent to all. */
static uint64_t quiet_us(const struct leat_node_cluster *cluster)
{
    uint64_t suspect_ms = cluster->suspect_ms ? cluster->suspect_ms : 100;
    uint64_t confirm_ms = cluster->confirm_ms ? cluster->confirm_ms : 60;
    return (suspect_ms + confirm_ms) * 1000;
}

leat_err leat_replicate_open(struct leat_core *core, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_node *node = core->node;
    struct leat_replicate *replicate = core->data->replicate;
    const struct leat_member *self = leat_member_find(core, node->incarnation);
    LEAT_ASSERT(self != NULL); /* the entry that this node is up was applied before */
    struct leat_transport_options transport = {
        .env = core->env,
        .links = core->members.links,
        .baseline = node->options.cluster.baseline,
        .only = node->options.cluster.replication,
        .no_verbs = node->options.cluster.no_verbs,
    };
    leat_err rc = leat_transport_create(&transport, &replicate->transport, error);
    if (rc != LEAT_OK) return rc;
    struct leat_rep_net net = leat_rep_link_net(replicate->rep_link);
    struct leat_primary_options options = {
        .env = core->env,
        .timers = &core->timers,
        .store = node->store_port,
        .net = net,
        .rmem = leat_transport_writer(replicate->transport),
        .cpu = {node->options.cluster.thread_cpu_ns, NULL},
        .self = rep_node(self),
        .events = {on_versions, on_room, on_damaged},
        .owner = core,
        .quiet_us = quiet_us(&node->options.cluster),
        .audit_us = node->options.audit_us,
    };
    rc = leat_primary_create(&options, &replicate->primary);
    if (rc == LEAT_OK && core->index == 0) rc = open_backup(core, &net);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "no memory for replication");
    leat_rep_link_start(replicate->rep_link, core->members.links, replicate->primary,
                        replicate->backup);
    for (uint32_t i = 0; i < core->members.count; i++)
        leat_replicate_on_member(core, core->members.rows[i], 0);
    return LEAT_OK;
}

void leat_replicate_fini(struct leat_core *core)
{
    struct leat_replicate *replicate = core->data->replicate;
    if (replicate->rep_link != NULL) leat_rep_link_destroy(&replicate->rep_link);
    if (replicate->primary != NULL) leat_primary_destroy(&replicate->primary);
    if (replicate->backup != NULL) leat_backup_destroy(&replicate->backup);
    if (replicate->transport != NULL) leat_transport_destroy(&replicate->transport);
    leat_mem_free(replicate->versions.sent);
    replicate->versions.sent = NULL;
}

void leat_replicate_sink_fini(struct leat_core *core)
{
    if (core->data->replicate->sink != NULL)
        leat_transport_sink_destroy(&core->data->replicate->sink);
}

/* SUBTLE: segments of a log of this node's own, where the stream is deleted between the decision and here.
 *  1. The coordinator knows the stream, and says where its log ends: the log's segments are kept, as the log's.
 *  2. The deletion is applied. No core has a log of the stream yet, so the deletion finds no log and no replica.
 *  3. The logs are made, but this log is not, as its stream is gone: its segments would stay until the next start.
 * So these segments are taken as segments of a log that was given up, and go as the replicas of a deleted stream do.
 * A stream that is still being deleted is in the table: its log is made, and goes at once (leat_partition_create()). */
static bool is_gone_since(struct leat_core *core, size_t at)
{
    const struct leat_found_disposition *disposition = &core->node->dispositions[at];
    if (disposition->disposition != LEAT_DISPOSITION_SERVED &&
        disposition->disposition != LEAT_DISPOSITION_KEPT)
        return false;
    return leat_stream_find(core, disposition->log.stream) == NULL &&
           leat_replicate_stream_is_deleted(core, disposition->log.stream) &&
           !LEAT_BUG(GONE_SINCE_STAYS);
}

leat_err leat_replicate_take_found(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    size_t count;
    const struct leat_node *node = core->node;
    const struct leat_found *found = leat_store_found_replicas(node->store, &count);
    leat_err rc = LEAT_OK;
    if (core->data->replicate->backup == NULL) return LEAT_OK;
    for (size_t i = 0; rc == LEAT_OK && i < count; i++)
        rc = leat_backup_take_found(core->data->replicate->backup, &found[i]);
    for (size_t i = 0; rc == LEAT_OK && i < node->found_count; i++)
        if (node->dispositions[i].disposition == LEAT_DISPOSITION_REPLICA)
            rc = leat_backup_take_found(core->data->replicate->backup, &node->found[i]);
        else if (is_gone_since(core, i))
            rc = leat_backup_take_own(core->data->replicate->backup, node->found[i].seg,
                                      node->incarnation, false);
    if (rc == LEAT_OK && !LEAT_BUG(DELETED_STAYS))
        leat_backup_drop_deleted(core->data->replicate->backup, stream_is_deleted, core);
    return rc;
}

void leat_replicate_on_member(struct leat_core *core, const struct leat_member *member,
                              uint64_t before)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_replicate *replicate = core->data->replicate;
    struct leat_error error = {LEAT_OK, ""};
    if (replicate->primary == NULL || member->self) return;
    struct leat_rep_node node = rep_node(member);
    /* An older incarnation of this member writes here no more: it is fenced before the new incarnation is heard. */
    leat_err rc = LEAT_OK;
    if (replicate->backup != NULL && before != 0 && before < member->info.incarnation)
        rc = leat_backup_fence(replicate->backup, member->info.name, before, on_fenced, NULL);
    if (replicate->backup != NULL && member->info.state == LEAT_NODE_GONE)
        leat_backup_release(replicate->backup, member->info.name, member->info.incarnation);
    if (rc == LEAT_OK && replicate->backup != NULL && member->info.crashed &&
        !LEAT_BUG(FENCE_AFTER_LOOK))
        rc = leat_backup_fence(replicate->backup, member->info.name, member->info.incarnation,
                               on_fenced, NULL);
    LEAT_ASSERT(rc == LEAT_OK); /* no memory, and a dead writer must not go on: end here */
    rc = leat_transport_node_set(replicate->transport, member->number, member->info.name,
                                 member->info.node_address, node.incarnation);
    if (rc == LEAT_OK)
        rc = leat_rep_link_node_set(replicate->rep_link, &node, member->info.node_address, &error);
    if (rc != LEAT_OK)
        leat_node_log_error("no way to the backup of node %s: %s", member->info.name,
                            error.code != LEAT_OK ? error.text : leat_err_text(rc));
}

void leat_replicate_accounts(const struct leat_core *core, struct leat_msg_accounts *accounts)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_replicate *replicate = core->data->replicate;
    uint64_t (*cpu_ns)(void *ctx) = core->node->options.cluster.thread_cpu_ns;
    if (cpu_ns != NULL) accounts->cpu_cores_ns += cpu_ns(NULL);
    if (replicate->backup != NULL)
        accounts->cpu_control_ns += leat_backup_accounts(replicate->backup)->cpu_backup_control;
    if (replicate->sink != NULL) {
        struct leat_transport_sink_status sink;
        leat_transport_sink_status(replicate->sink, &sink);
        accounts->cpu_data_path_ns += sink.cpu_ns - sink.cpu_emulation_ns;
        accounts->cpu_emulation_ns += sink.cpu_emulation_ns;
    }
    if (replicate->primary == NULL) return;
    const struct leat_rep_accounts *own = leat_primary_accounts(replicate->primary);
    accounts->transports |= leat_primary_transports(replicate->primary);
    accounts->cpu_replicate_ns += own->cpu_append;
    accounts->replicated_bytes += own->replicated_bytes;
    accounts->writes += own->writes;
    accounts->segments += own->segments;
    accounts->control_rpcs += own->control_rpcs;
    accounts->open_rpcs += own->open_rpcs;
    accounts->hibernate_rpcs += own->hibernate_rpcs;
    accounts->resume_rpcs += own->resume_rpcs;
    accounts->flush_rpcs += own->flush_rpcs;
    accounts->other_rpcs += own->other_rpcs;
    accounts->lost_backups += own->lost_backups;
    accounts->replaced_copies += own->replaced_copies;
}

static void on_fenced(void *arg)
{
    /* Requests of the fenced node are refused from the call on; no request waits for the rest */
    (void)arg;
}

/* ---- logs ---- */

leat_err leat_replicate_attach(struct leat_partition *partition, struct leat_segment *const *segs,
                               size_t seg_count, const struct leat_log_tail *tail,
                               struct leat_store_port *out_store_port)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    const struct leat_stream_settings *settings = &partition->stream->desc->settings;
    *out_store_port = core->node->store_port;
    if (core->data->replicate->primary == NULL || settings->copies <= 1) return LEAT_OK;
    struct leat_primary_log_options options = {
        .ref = partition->ref,
        .epoch = partition->epoch,
        .copies = settings->copies,
        .min_copies = settings->min_copies,
        .durability = leat_replicate_durability(settings),
        .version = 1,
        /* Also for a log that stands in: no node may drop older segments that are not known here. */
        .backfill_follows = tail->backfill_follows || tail->stands_in,
        .unsure = partition->unsure,
        .owner = partition,
    };
    leat_err rc = leat_primary_log_create(core->data->replicate->primary, &options, segs, seg_count,
                                          &partition->copies);
    if (rc == LEAT_OK) *out_store_port = leat_primary_port(partition->copies);
    return rc;
}

void leat_replicate_detach(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    if (partition->copies != NULL) leat_primary_log_destroy(&partition->copies);
}

static void on_damaged(void *owner, struct leat_primary_log *rep, struct leat_segment *seg)
{
    const struct leat_partition *partition = leat_primary_log_owner(rep);
    (void)owner;
    (void)leat_log_on_damaged(partition->log, seg, false);
}

static void on_room(void *owner, struct leat_primary_log *rep)
{
    (void)owner;
    leat_partition_wake(leat_primary_log_owner(rep));
}

/* ---- versions: one request for each (epoch, version), one after the other ---- */

static void on_versions(void *owner, struct leat_primary *primary,
                        const struct leat_rep_version *rows, size_t count)
{
    struct leat_core *core = owner;
    struct leat_versions *versions = &core->data->replicate->versions;
    (void)primary;
    LEAT_ASSERT(versions->sent == NULL); /* one at a time */
    versions->rows = rows;
    versions->count = count;
    versions->rc = LEAT_OK;
    versions->sent = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *versions->sent);
    LEAT_ASSERT(versions->sent != NULL); /* a few bytes, and no ack goes out before this is done */
    versions_send(core);
}

static void versions_on_done(struct leat_coordinate *request)
{
    struct leat_core *core = request->owner;
    struct leat_versions *versions = &core->data->replicate->versions;
    if (request->rc != LEAT_OK) {
        const struct leat_log_ref *first = &request->logs[0];
        char others[48] = "";
        if (request->log_count > 1)
            snprintf(others, sizeof others, " and %zu more", request->log_count - 1);
        leat_node_log_error("the coordinator did not commit version %u of log %u/%u/%u%s: %s",
                            request->version, first->stream, first->streamlet, first->log, others,
                            request->error.text);
        versions->rc = request->rc;
    }
    versions_send(core);
}

static void versions_send(struct leat_core *core)
{
    struct leat_versions *versions = &core->data->replicate->versions;
    struct leat_coordinate *request = &versions->request;
    size_t count = 0;
    const struct leat_rep_version *first = NULL;
    for (size_t i = 0; i < versions->count && count < LEAT_VERSION_ROWS_MAX; i++) {
        const struct leat_rep_version *row = &versions->rows[i];
        if (versions->sent[i]) continue;
        if (first == NULL) first = row;
        if (row->epoch.v != first->epoch.v || row->version != first->version) continue;
        versions->sent[i] = true;
        versions->refs[count++] = row->log;
    }
    if (first == NULL || versions->rc != LEAT_OK) {
        leat_mem_free(versions->sent);
        versions->sent = NULL;
        leat_primary_versions_done(core->data->replicate->primary, versions->rc);
        return;
    }
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_VERSION;
    request->logs = versions->refs;
    request->log_count = count;
    request->incarnation = core->node->incarnation;
    request->epoch = first->epoch;
    request->version = first->version;
    request->on_done = versions_on_done;
    request->owner = core;
    leat_coordinate(core->env->post, request);
}
