/* Control bodies about the cluster as a whole: see message_cluster.h. */
#include "wire/message_cluster.h"

#include <string.h>

enum {
    CLUSTER_FIELDS = 11, /* and the recovery */
    RECOVERY_FIELDS = 16,
    WAITING_FIELDS = 5,
    VOTER_FIELDS = 4,
    NODE_FIELDS = 10,
    REPORT_FIELDS = 14,
    PEER_FIELDS = 5
};

static void write_text(struct leat_msg_writer *writer, struct leat_msg_string text)
{
    leat_msg_write_string(writer, text.text, text.bytes);
}

/* Fields that a later version has added are skipped; missing ones are an error. */
static uint32_t read_head(struct leat_msg_reader *reader, uint32_t fields)
{
    uint32_t count = leat_msg_read_array(reader);
    if (count < fields) reader->failed = true;
    return reader->failed ? 0 : count - fields;
}

void leat_msg_cluster_write(struct leat_msg_writer *writer, const struct leat_msg_cluster *cluster)
{
    leat_msg_write_array(writer, CLUSTER_FIELDS + 1);
    leat_msg_write_bin(writer, cluster->cluster_id, sizeof cluster->cluster_id);
    write_text(writer, cluster->node);
    write_text(writer, cluster->role);
    write_text(writer, cluster->why);
    leat_msg_write_u64(writer, cluster->term);
    leat_msg_write_u64(writer, cluster->applied_index);
    write_text(writer, cluster->leader_address);
    leat_msg_write_u64(writer, cluster->streams);
    leat_msg_write_u64(writer, cluster->logs);
}

void leat_msg_cluster_read(struct leat_msg_reader *reader, struct leat_msg_cluster *out)
{
    memset(out, 0, sizeof *out);
    out->has_recovery = read_head(reader, CLUSTER_FIELDS) > 0;
    struct leat_msg_string id = leat_msg_read_string(reader);
    if (id.bytes != sizeof out->cluster_id) reader->failed = true;
    if (!reader->failed) memcpy(out->cluster_id, id.text, sizeof out->cluster_id);
    out->node = leat_msg_read_string(reader);
    out->role = leat_msg_read_string(reader);
    out->why = leat_msg_read_string(reader);
    out->term = leat_msg_read_u64(reader);
    out->applied_index = leat_msg_read_u64(reader);
    out->leader_address = leat_msg_read_string(reader);
    out->streams = leat_msg_read_u64(reader);
    out->logs = leat_msg_read_u64(reader);
}

void leat_msg_recovery_write(struct leat_msg_writer *writer,
                             const struct leat_msg_recovery *recovery)
{
    leat_msg_write_array(writer, RECOVERY_FIELDS);
    leat_msg_write_bool(writer, recovery->known);
    leat_msg_write_u64(writer, recovery->phase);
    leat_msg_write_u64(writer, recovery->streamlets);
    leat_msg_write_u64(writer, recovery->logs);
    leat_msg_write_u64(writer, recovery->decided);
    leat_msg_write_u64(writer, recovery->nodes_asked);
    leat_msg_write_u64(writer, recovery->nodes_answered);
    leat_msg_write_u64(writer, recovery->copies);
    leat_msg_write_u64(writer, recovery->copies_open);
    leat_msg_write_u64(writer, recovery->age_us);
    leat_msg_write_u64(writer, recovery->ended);
    leat_msg_write_u64(writer, recovery->last_recovered);
    leat_msg_write_u64(writer, recovery->last_us);
    leat_msg_write_u64(writer, recovery->last_since_crash_us);
    leat_msg_write_u64(writer, recovery->waiting);
    leat_msg_write_array(writer, recovery->row_count);
}

void leat_msg_recovery_read(struct leat_msg_reader *reader, struct leat_msg_recovery *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, RECOVERY_FIELDS);
    out->known = leat_msg_read_bool(reader);
    out->phase = leat_msg_read_u64(reader);
    out->streamlets = leat_msg_read_u64(reader);
    out->logs = leat_msg_read_u64(reader);
    out->decided = leat_msg_read_u64(reader);
    out->nodes_asked = leat_msg_read_u64(reader);
    out->nodes_answered = leat_msg_read_u64(reader);
    out->copies = leat_msg_read_u64(reader);
    out->copies_open = leat_msg_read_u64(reader);
    out->age_us = leat_msg_read_u64(reader);
    out->ended = leat_msg_read_u64(reader);
    out->last_recovered = leat_msg_read_u64(reader);
    out->last_us = leat_msg_read_u64(reader);
    out->last_since_crash_us = leat_msg_read_u64(reader);
    out->waiting = leat_msg_read_u64(reader);
    out->row_count = leat_msg_read_array(reader);
    out->rows = *reader;
    leat_msg_skip_n(reader, out->row_count);
    leat_msg_skip_n(reader, more);
}

void leat_msg_recovery_row_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_recovery_row *row)
{
    leat_msg_write_array(writer, WAITING_FIELDS);
    leat_msg_write_u64(writer, row->stream_id);
    leat_msg_write_u64(writer, row->streamlet);
    leat_msg_write_u64(writer, row->log);
    write_text(writer, row->stream);
    write_text(writer, row->why);
}

void leat_msg_recovery_row_read(struct leat_msg_reader *reader, struct leat_msg_recovery_row *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, WAITING_FIELDS);
    out->stream_id = leat_msg_read_u64(reader);
    out->streamlet = leat_msg_read_u64(reader);
    out->log = leat_msg_read_u64(reader);
    out->stream = leat_msg_read_string(reader);
    out->why = leat_msg_read_string(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_voter_write(struct leat_msg_writer *writer, const struct leat_msg_voter *voter)
{
    leat_msg_write_array(writer, VOTER_FIELDS);
    write_text(writer, voter->address);
    leat_msg_write_bool(writer, voter->votes);
    leat_msg_write_bool(writer, voter->reachable);
    leat_msg_write_u64(writer, voter->last_index);
}

void leat_msg_voter_read(struct leat_msg_reader *reader, struct leat_msg_voter *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, VOTER_FIELDS);
    out->address = leat_msg_read_string(reader);
    out->votes = leat_msg_read_bool(reader);
    out->reachable = leat_msg_read_bool(reader);
    out->last_index = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_cluster_node_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_cluster_node *node)
{
    leat_msg_write_array(writer, NODE_FIELDS + 1); /* the report follows */
    write_text(writer, node->name);
    leat_msg_write_u64(writer, node->incarnation);
    write_text(writer, node->address);
    write_text(writer, node->node_address);
    write_text(writer, node->rack);
    leat_msg_write_u64(writer, node->cores);
    leat_msg_write_u64(writer, node->state);
    leat_msg_write_bool(writer, node->draining);
    leat_msg_write_u64(writer, node->memory_bytes);
    leat_msg_write_u64(writer, node->streamlets);
}

void leat_msg_cluster_node_read(struct leat_msg_reader *reader, struct leat_msg_cluster_node *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, NODE_FIELDS);
    out->name = leat_msg_read_string(reader);
    out->incarnation = leat_msg_read_u64(reader);
    out->address = leat_msg_read_string(reader);
    out->node_address = leat_msg_read_string(reader);
    out->rack = leat_msg_read_string(reader);
    out->cores = leat_msg_read_u64(reader);
    out->state = leat_msg_read_u64(reader);
    out->draining = leat_msg_read_bool(reader);
    out->memory_bytes = leat_msg_read_u64(reader);
    out->streamlets = leat_msg_read_u64(reader);
    if (more > 0) {
        leat_msg_node_report_read(reader, &out->report);
        more--;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_node_report_write(struct leat_msg_writer *writer,
                                const struct leat_msg_node_report *report)
{
    leat_msg_write_array(writer, REPORT_FIELDS);
    leat_msg_write_bool(writer, report->known);
    write_text(writer, report->why);
    leat_msg_write_u64(writer, report->pool_limit);
    leat_msg_write_u64(writer, report->pool_used);
    leat_msg_write_u64(writer, report->replicas_limit);
    leat_msg_write_u64(writer, report->replicas_used);
    leat_msg_write_u64(writer, report->replicas_unflushed);
    leat_msg_write_u64(writer, report->logs);
    leat_msg_write_u64(writer, report->logs_under_replicated);
    leat_msg_write_u64(writer, report->logs_below_min);
    leat_msg_write_u64(writer, report->logs_suspended);
    leat_msg_write_u64(writer, report->segments_under_replicated);
    leat_msg_write_u64(writer, report->segments_misplaced);
    leat_msg_write_array(writer, report->peer_count);
}

void leat_msg_node_report_read(struct leat_msg_reader *reader, struct leat_msg_node_report *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, REPORT_FIELDS);
    out->known = leat_msg_read_bool(reader);
    out->why = leat_msg_read_string(reader);
    out->pool_limit = leat_msg_read_u64(reader);
    out->pool_used = leat_msg_read_u64(reader);
    out->replicas_limit = leat_msg_read_u64(reader);
    out->replicas_used = leat_msg_read_u64(reader);
    out->replicas_unflushed = leat_msg_read_u64(reader);
    out->logs = leat_msg_read_u64(reader);
    out->logs_under_replicated = leat_msg_read_u64(reader);
    out->logs_below_min = leat_msg_read_u64(reader);
    out->logs_suspended = leat_msg_read_u64(reader);
    out->segments_under_replicated = leat_msg_read_u64(reader);
    out->segments_misplaced = leat_msg_read_u64(reader);
    out->peer_count = leat_msg_read_array(reader);
    out->peers = *reader;
    leat_msg_skip_n(reader, out->peer_count);
    leat_msg_skip_n(reader, more);
}

void leat_msg_report_peer_write(struct leat_msg_writer *writer,
                                const struct leat_msg_report_peer *peer)
{
    leat_msg_write_array(writer, PEER_FIELDS);
    write_text(writer, peer->node);
    leat_msg_write_bool(writer, peer->up);
    write_text(writer, peer->transport);
    leat_msg_write_u64(writer, peer->replicas);
    leat_msg_write_u64(writer, peer->load_bytes);
}

void leat_msg_report_peer_read(struct leat_msg_reader *reader, struct leat_msg_report_peer *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(reader, PEER_FIELDS);
    out->node = leat_msg_read_string(reader);
    out->up = leat_msg_read_bool(reader);
    out->transport = leat_msg_read_string(reader);
    out->replicas = leat_msg_read_u64(reader);
    out->load_bytes = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_node_change_encode(struct leat_msg_writer *writer,
                                 const struct leat_msg_node_change *change)
{
    leat_msg_write_array(writer, 2);
    leat_msg_write_u64(writer, change->what);
    write_text(writer, change->name);
}

leat_err leat_msg_node_change_decode(const void *bytes, size_t count,
                                     struct leat_msg_node_change *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(&reader, 2);
    out->what = leat_msg_read_u32(&reader);
    out->name = leat_msg_read_string(&reader);
    leat_msg_skip_n(&reader, more);
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

void leat_msg_streamlet_move_encode(struct leat_msg_writer *writer,
                                    const struct leat_msg_streamlet_move *move)
{
    leat_msg_write_array(writer, 3);
    write_text(writer, move->stream);
    leat_msg_write_u64(writer, move->streamlet);
    write_text(writer, move->node);
}

leat_err leat_msg_streamlet_move_decode(const void *bytes, size_t count,
                                        struct leat_msg_streamlet_move *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    memset(out, 0, sizeof *out);
    uint32_t more = read_head(&reader, 3);
    out->stream = leat_msg_read_string(&reader);
    out->streamlet = leat_msg_read_u32(&reader);
    out->node = leat_msg_read_string(&reader);
    leat_msg_skip_n(&reader, more);
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}
