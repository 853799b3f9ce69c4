/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata: the nodes, and the owners of a stream's logs, from the answers to lookups. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "wire/row.h"

#include <stdio.h>
#include <string.h>

static void nodes_read(struct leat_client *client, struct leat_msg_reader *reader, uint32_t count)
{
    client->node_count = 0;
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        struct leat_msg_node node;
        leat_msg_node_read(reader, &node);
        if (reader->failed || client->node_count == LEAT_CLIENT_NODES_MAX ||
            node.address.bytes >= LEAT_CLIENT_ADDRESS_BYTES)
            continue;
        uint32_t at = client->node_count++;
        client->nodes[at].incarnation = node.incarnation;
        client->nodes[at].lanes = node.lanes;
        if (node.address.bytes) /* NULL may come with none */
            memcpy(client->nodes[at].address, node.address.text, node.address.bytes);
        client->nodes[at].address[node.address.bytes] = 0;
        size_t name_bytes = node.name.bytes < LEAT_CLIENT_NODE_NAME_BYTES
                                ? node.name.bytes
                                : LEAT_CLIENT_NODE_NAME_BYTES - 1;
        if (name_bytes) memcpy(client->nodes[at].name, node.name.text, name_bytes);
        client->nodes[at].name[name_bytes] = 0;
    }
}

bool leat_client_nodes_learn(struct leat_client *client, const struct leat_frame *answer)
{
    struct leat_msg_metadata_ok body;
    if (leat_msg_metadata_ok_decode(answer->control, answer->control_bytes, &body) != LEAT_OK)
        return false;
    nodes_read(client, &body.nodes, body.node_count);
    return !body.nodes.failed;
}

/* Room for another stream; the list grows, because most clients know a single stream. */
static bool stream_room(struct leat_client *client)
{
    enum { STREAMS_FIRST = 8 };
    if (client->stream_count < client->stream_capacity) return true;
    uint32_t capacity = client->stream_capacity ? client->stream_capacity * 2 : STREAMS_FIRST;
    struct leat_client_stream **streams =
        leat_mem_realloc(LEAT_MEM_CLIENT, client->streams, capacity, sizeof *streams);
    if (!streams) return false;
    client->streams = streams;
    client->stream_capacity = capacity;
    return true;
}

static leat_err stream_slot(struct leat_client *client, struct leat_msg_string name,
                            struct leat_client_stream **out_stream)
{
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (strlen(client->streams[i]->name) == name.bytes &&
            memcmp(client->streams[i]->name, name.text, name.bytes) == 0) {
            *out_stream = client->streams[i];
            return LEAT_OK;
        }
    if (client->stream_count == client->options.streams_max ||
        name.bytes > LEAT_STREAM_NAME_BYTES_MAX)
        return LEAT_E_TOO_MANY;
    if (!stream_room(client)) return LEAT_E_NO_MEMORY;
    struct leat_client_stream *stream = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *stream);
    if (!stream) return LEAT_E_NO_MEMORY;
    memcpy(stream->name, name.text, name.bytes);
    client->streams[client->stream_count++] = stream;
    *out_stream = stream;
    return LEAT_OK;
}

/* Read one stream element. The logs come in any order and are put where their numbers say. */
static leat_err stream_read(struct leat_client *client, struct leat_msg_reader *reader,
                            bool same_cluster, const struct leat_client_stream **out_stream,
                            struct leat_msg_string *out_why)
{
    struct leat_msg_stream head;
    leat_msg_stream_read(reader, &head);
    if (reader->failed) return LEAT_E_INVALID;
    *out_why = head.text;
    if (head.code) return head.code;
    uint64_t wanted = (uint64_t)head.settings.streamlets * head.settings.logs;
    if (wanted != head.log_count || head.id == 0 || head.settings.logs == 0) return LEAT_E_INVALID;
    struct leat_client_stream *stream;
    leat_err rc = stream_slot(client, head.name, &stream);
    if (rc) return rc;
    struct leat_client_log *logs = leat_mem_calloc(LEAT_MEM_CLIENT, head.log_count, sizeof *logs);
    if (!logs) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < head.log_count; i++) {
        struct leat_msg_log log;
        leat_msg_log_read(reader, &log);
        uint64_t at = (uint64_t)log.streamlet * head.settings.logs + log.log;
        if (reader->failed || log.log >= head.settings.logs || at >= head.log_count) {
            leat_mem_free(logs);
            return LEAT_E_INVALID;
        }
        logs[at] = (struct leat_client_log){
            .ref = {head.id, log.streamlet, log.log},
            .owner = log.owner,
            .epoch = {log.epoch},
            .lane = log.lane,
        };
        /* SUBTLE: the epoch of a streamlet only grows, so metadata with a smaller epoch is out of date.
         *  1. A node that was declared dead lives on, and names itself as the owner.
         *  2. A producer's first batches are acked by the next owner.
         *  3. The producer goes back to the old owner, which reports a sequence gap, or an unknown producer.
         * A consumer would be told that its offset is too high. */
        bool known = same_cluster && stream->id == head.id && at < stream->log_count;
        if (known && stream->logs[at].epoch.v > log.epoch && !LEAT_BUG(BACK_TO_OLD_OWNER))
            logs[at] = stream->logs[at];
    }
    leat_mem_free(stream->logs);
    stream->logs = logs;
    stream->log_count = head.log_count;
    stream->id = head.id;
    stream->settings = head.settings;
    *out_stream = stream;
    return LEAT_OK;
}

static leat_err metadata_read(struct leat_client *client, const struct leat_frame *answer,
                              const struct leat_client_stream **out_stream,
                              struct leat_msg_string *out_why)
{
    struct leat_msg_metadata_ok body;
    leat_err rc = leat_msg_metadata_ok_decode(answer->control, answer->control_bytes, &body);
    if (rc != LEAT_OK || body.stream_count < 1) return LEAT_E_INVALID;
    /* A cluster that was made anew at the same addresses counts from the beginning. */
    bool same = memcmp(body.cluster_id, client->cluster_id, sizeof client->cluster_id) == 0;
    memcpy(client->cluster_id, body.cluster_id, sizeof client->cluster_id);
    nodes_read(client, &body.nodes, body.node_count);
    if (body.nodes.failed) return LEAT_E_INVALID;
    return stream_read(client, &body.streams, same, out_stream, out_why);
}

static void lookup_end(struct leat_client_lookup *lookup, leat_err rc,
                       const struct leat_client_stream *stream, const struct leat_error *error)
{
    leat_list_remove(&lookup->link);
    lookup->on_done(lookup, rc, stream, error);
}

/* What a person reads when a stream can't be had: the server's sentence, where we have no better one. */
static void lookup_refused(const struct leat_client_lookup *lookup, leat_err rc,
                           struct leat_msg_string why, struct leat_error *out)
{
    if (rc == LEAT_E_UNKNOWN_STREAM)
        (void)leat_error_set(out, rc, "no such stream: '%s'; see 'leat stream create'",
                             lookup->name);
    else if (rc == LEAT_E_BAD_NAME)
        (void)leat_error_set(out, rc,
                             "'%s' is not allowed as a stream's name: letters, digits, '.', "
                             "'_' and '-', at most 249",
                             lookup->name);
    else if (rc == LEAT_E_TIMEOUT)
        (void)leat_error_set(out, rc,
                             "the stream '%s' is not known where it was asked for, and no "
                             "leader among the coordinators says whether there is one",
                             lookup->name);
    else
        (void)leat_error_set(
            out, rc, "the stream '%.60s' can't be used: %.*s", lookup->name,
            why.bytes > 0
                ? (int)(why.bytes < LEAT_ERROR_TEXT_BYTES ? why.bytes : LEAT_ERROR_TEXT_BYTES)
                : LEAT_ERROR_TEXT_BYTES,
            why.bytes > 0 ? why.text : leat_err_text(rc));
}

static void lookup_on_answer(struct leat_request *request, leat_err rc,
                             const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_client_lookup *lookup = LEAT_CONTAINER(request, struct leat_client_lookup, request);
    struct leat_client *client = request->owner;
    const struct leat_client_stream *stream = NULL;
    struct leat_error own = *error;
    if (rc == LEAT_OK) {
        struct leat_msg_string why = {"", 0};
        rc = metadata_read(client, answer, &stream, &why);
        if (rc) lookup_refused(lookup, rc, why, &own);
    }
    enum leat_err_class class = leat_err_class(rc);
    bool again = class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE;
    uint64_t now = leat_client_now(client);
    if (again && now < lookup->deadline_us && !client->options.fail_fast) {
        lookup->retry_at_us = now + leat_client_retry_pause_us(client, lookup->attempts++);
        client->dirty = true;
        return;
    }
    lookup_end(lookup, rc, stream, &own);
}

uint32_t leat_client_metadata_ask(void *out, size_t capacity, const char *name, bool may_create)
{
    struct leat_msg_metadata body = {
        .name_count = name ? 1 : 0, .may_create = may_create, .nodes_only = !name};
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, capacity);
    leat_msg_metadata_write(&writer, &body);
    if (name) leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_row_write_behind(&writer, leat_msg_metadata_row(), &body,
                              offsetof(struct leat_msg_metadata, name_count));
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

static void lookup_send(struct leat_client *client, struct leat_client_lookup *lookup)
{
    uint32_t bytes = leat_client_metadata_ask(lookup->control, sizeof lookup->control, lookup->name,
                                              lookup->may_create);
    uint64_t now = leat_client_now(client);
    uint64_t left_us = lookup->deadline_us > now ? lookup->deadline_us - now : 1;
    /* SUBTLE: the asked node may be gone without a sign (power cut, cable). If no other request is under way on the
     * connection, nothing shows this, and the lookup waited for its whole time limit. */
    if (!client->options.fail_fast && left_us > client->options.request_timeout_us &&
        !LEAT_BUG(SILENT_HOLDS))
        left_us = client->options.request_timeout_us;
    lookup->retry_at_us = 0;
    lookup->request = (struct leat_request){
        .kind = LEAT_KIND_METADATA,
        .control = lookup->control,
        .control_bytes = bytes,
        .timeout_us = left_us,
        .on_done = lookup_on_answer,
        .owner = client,
    };
    leat_err rc = leat_client_send(client, &lookup->request);
    LEAT_ASSERT(rc == LEAT_OK); /* to any node: it waits in the client when there is none */
}

void leat_client_lookups_retry(struct leat_client *client, uint64_t now, uint64_t *nearest)
{
    LEAT_LIST_EACH(&client->lookups, link)
    {
        struct leat_client_lookup *lookup = LEAT_CONTAINER(link, struct leat_client_lookup, link);
        if (!lookup->retry_at_us) continue;
        if (lookup->retry_at_us <= now)
            lookup_send(client, lookup);
        else if (lookup->retry_at_us < *nearest)
            *nearest = lookup->retry_at_us;
    }
}

void leat_client_lookup(struct leat_client *client, struct leat_client_lookup *lookup)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    LEAT_ASSERT(lookup->on_done);
    uint64_t timeout = lookup->timeout_us ? lookup->timeout_us : client->options.request_timeout_us;
    lookup->deadline_us = leat_client_now(client) + timeout;
    lookup->attempts = 0;
    leat_list_push_back(&client->lookups, &lookup->link);
    lookup_send(client, lookup);
}

void leat_client_lookup_cancel(struct leat_client *client, struct leat_client_lookup *lookup)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    leat_client_cancel(client, &lookup->request);
    leat_list_remove(&lookup->link);
}

const struct leat_client_stream *leat_client_stream(const struct leat_client *client,
                                                    const char *name)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (strcmp(client->streams[i]->name, name) == 0) return client->streams[i];
    return NULL;
}
