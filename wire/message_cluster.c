/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies about the cluster as a whole: see message_cluster.h. */
#include "wire/message_cluster.h"

#include <string.h>

#include "wire/row.h"

static const struct leat_msg_field cluster_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_cluster, cluster_id),
    LEAT_MSG_FIELD(struct leat_msg_cluster, node),
    LEAT_MSG_FIELD(struct leat_msg_cluster, role),
    LEAT_MSG_FIELD(struct leat_msg_cluster, why),
    LEAT_MSG_FIELD(struct leat_msg_cluster, term),
    LEAT_MSG_FIELD(struct leat_msg_cluster, applied_index),
    LEAT_MSG_FIELD(struct leat_msg_cluster, leader_address),
    LEAT_MSG_FIELD(struct leat_msg_cluster, streams),
    LEAT_MSG_FIELD(struct leat_msg_cluster, logs),
};
static const struct leat_msg_row cluster_row = LEAT_MSG_ROW(cluster_fields);

static const struct leat_msg_field recovery_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_recovery, known),
    LEAT_MSG_FIELD(struct leat_msg_recovery, phase),
    LEAT_MSG_FIELD(struct leat_msg_recovery, streamlets),
    LEAT_MSG_FIELD(struct leat_msg_recovery, logs),
    LEAT_MSG_FIELD(struct leat_msg_recovery, decided),
    LEAT_MSG_FIELD(struct leat_msg_recovery, nodes_asked),
    LEAT_MSG_FIELD(struct leat_msg_recovery, nodes_answered),
    LEAT_MSG_FIELD(struct leat_msg_recovery, copies),
    LEAT_MSG_FIELD(struct leat_msg_recovery, copies_open),
    LEAT_MSG_FIELD(struct leat_msg_recovery, age_us),
    LEAT_MSG_FIELD(struct leat_msg_recovery, ended),
    LEAT_MSG_FIELD(struct leat_msg_recovery, last_recovered),
    LEAT_MSG_FIELD(struct leat_msg_recovery, last_us),
    LEAT_MSG_FIELD(struct leat_msg_recovery, last_since_crash_us),
    LEAT_MSG_FIELD(struct leat_msg_recovery, waiting),
};
static const struct leat_msg_row recovery_row = LEAT_MSG_ROW(recovery_fields);

static const struct leat_msg_field waiting_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_recovery_row, stream_id),
    LEAT_MSG_FIELD(struct leat_msg_recovery_row, streamlet),
    LEAT_MSG_FIELD(struct leat_msg_recovery_row, log),
    LEAT_MSG_FIELD(struct leat_msg_recovery_row, stream),
    LEAT_MSG_FIELD(struct leat_msg_recovery_row, why),
};
static const struct leat_msg_row waiting_row = LEAT_MSG_ROW(waiting_fields);

static const struct leat_msg_field passed_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_passed, stream_id),
    LEAT_MSG_FIELD(struct leat_msg_passed, streamlet),
    LEAT_MSG_FIELD(struct leat_msg_passed, log),
    LEAT_MSG_FIELD(struct leat_msg_passed, stream),
    LEAT_MSG_FIELD(struct leat_msg_passed, bytes),
    LEAT_MSG_FIELD(struct leat_msg_passed, segments),
    LEAT_MSG_FIELD(struct leat_msg_passed, segment),
    LEAT_MSG_FIELD(struct leat_msg_passed, offset),
};
static const struct leat_msg_row passed_row = LEAT_MSG_ROW(passed_fields);

static const struct leat_msg_field voter_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_voter, address),
    LEAT_MSG_FIELD(struct leat_msg_voter, votes),
    LEAT_MSG_FIELD(struct leat_msg_voter, reachable),
    LEAT_MSG_FIELD(struct leat_msg_voter, last_index),
};
static const struct leat_msg_row voter_row = LEAT_MSG_ROW(voter_fields);

static const struct leat_msg_field node_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, name),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, incarnation),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, address),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, node_address),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, rack),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, cores),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, state),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, draining),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, memory_bytes),
    LEAT_MSG_FIELD(struct leat_msg_cluster_node, streamlets),
};
static const struct leat_msg_row node_row = LEAT_MSG_ROW(node_fields);

static const struct leat_msg_field report_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_node_report, known),
    LEAT_MSG_FIELD(struct leat_msg_node_report, why),
    LEAT_MSG_FIELD(struct leat_msg_node_report, pool_limit),
    LEAT_MSG_FIELD(struct leat_msg_node_report, pool_used),
    LEAT_MSG_FIELD(struct leat_msg_node_report, replicas_limit),
    LEAT_MSG_FIELD(struct leat_msg_node_report, replicas_used),
    LEAT_MSG_FIELD(struct leat_msg_node_report, replicas_unflushed),
    LEAT_MSG_FIELD(struct leat_msg_node_report, logs),
    LEAT_MSG_FIELD(struct leat_msg_node_report, logs_under_replicated),
    LEAT_MSG_FIELD(struct leat_msg_node_report, logs_below_min),
    LEAT_MSG_FIELD(struct leat_msg_node_report, logs_suspended),
    LEAT_MSG_FIELD(struct leat_msg_node_report, segments_under_replicated),
    LEAT_MSG_FIELD(struct leat_msg_node_report, segments_misplaced),
};
static const struct leat_msg_row report_row = LEAT_MSG_ROW(report_fields);

static const struct leat_msg_field peer_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_report_peer, node),
    LEAT_MSG_FIELD(struct leat_msg_report_peer, up),
    LEAT_MSG_FIELD(struct leat_msg_report_peer, transport),
    LEAT_MSG_FIELD(struct leat_msg_report_peer, replicas),
    LEAT_MSG_FIELD(struct leat_msg_report_peer, load_bytes),
};
static const struct leat_msg_row peer_row = LEAT_MSG_ROW(peer_fields);

static const struct leat_msg_field change_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_node_change, what),
    LEAT_MSG_FIELD(struct leat_msg_node_change, name),
};
static const struct leat_msg_row change_row = LEAT_MSG_ROW(change_fields);

static const struct leat_msg_field move_fields[] = {
    LEAT_MSG_FIELD(struct leat_msg_streamlet_move, stream),
    LEAT_MSG_FIELD(struct leat_msg_streamlet_move, streamlet),
    LEAT_MSG_FIELD(struct leat_msg_streamlet_move, node),
};
static const struct leat_msg_row move_row = LEAT_MSG_ROW(move_fields);

void leat_msg_cluster_write(struct leat_msg_writer *writer, const struct leat_msg_cluster *cluster)
{
    leat_msg_row_write(writer, &cluster_row, cluster, 3); /* voters, nodes, the recovery */
}

void leat_msg_cluster_read(struct leat_msg_reader *reader, struct leat_msg_cluster *out)
{
    memset(out, 0, sizeof *out);
    out->has_recovery = leat_msg_row_read(reader, &cluster_row, out, 2) > 0;
}

void leat_msg_recovery_write(struct leat_msg_writer *writer,
                             const struct leat_msg_recovery *recovery)
{
    leat_msg_row_write(writer, &recovery_row, recovery, 1);
    leat_msg_write_array(writer, recovery->row_count);
}

void leat_msg_recovery_read(struct leat_msg_reader *reader, struct leat_msg_recovery *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = leat_msg_row_read(reader, &recovery_row, out, 1);
    out->row_count = leat_msg_read_array(reader);
    out->rows = *reader;
    leat_msg_skip_n(reader, out->row_count);
    leat_msg_skip_n(reader, more);
}

void leat_msg_recovery_row_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_recovery_row *row)
{
    leat_msg_row_write(writer, &waiting_row, row, 0);
}

void leat_msg_recovery_row_read(struct leat_msg_reader *reader, struct leat_msg_recovery_row *out)
{
    memset(out, 0, sizeof *out);
    leat_msg_skip_n(reader, leat_msg_row_read(reader, &waiting_row, out, 0));
}

void leat_msg_voter_write(struct leat_msg_writer *writer, const struct leat_msg_voter *voter)
{
    leat_msg_row_write(writer, &voter_row, voter, 0);
}

void leat_msg_voter_read(struct leat_msg_reader *reader, struct leat_msg_voter *out)
{
    memset(out, 0, sizeof *out);
    leat_msg_skip_n(reader, leat_msg_row_read(reader, &voter_row, out, 0));
}

void leat_msg_cluster_node_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_cluster_node *node)
{
    leat_msg_row_write(writer, &node_row, node, 1); /* the report follows */
}

void leat_msg_cluster_node_read(struct leat_msg_reader *reader, struct leat_msg_cluster_node *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = leat_msg_row_read(reader, &node_row, out, 0);
    if (more > 0) {
        leat_msg_node_report_read(reader, &out->report);
        more--;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_node_report_write(struct leat_msg_writer *writer,
                                const struct leat_msg_node_report *report)
{
    leat_msg_row_write(
        writer, &report_row, report,
        6); /* peers, trouble, logs in trouble and with bytes passed over: how many, which */
    leat_msg_write_array(writer, report->peer_count);
}

void leat_msg_node_report_end_write(struct leat_msg_writer *writer,
                                    const struct leat_msg_node_report *report)
{
    leat_msg_write_string(writer, report->trouble.bytes ? report->trouble.text : "",
                          report->trouble.bytes);
    leat_msg_write_u64(writer, report->logs_troubled);
    leat_msg_write_array(writer, report->troubled_count);
}

void leat_msg_node_report_passed_write(struct leat_msg_writer *writer,
                                       const struct leat_msg_node_report *report)
{
    leat_msg_write_u64(writer, report->logs_passed);
    leat_msg_write_array(writer, report->passed_count);
}

void leat_msg_passed_write(struct leat_msg_writer *writer, const struct leat_msg_passed *row)
{
    leat_msg_row_write(writer, &passed_row, row, 0);
}

void leat_msg_passed_read(struct leat_msg_reader *reader, struct leat_msg_passed *out)
{
    memset(out, 0, sizeof *out);
    leat_msg_skip_n(reader, leat_msg_row_read(reader, &passed_row, out, 0));
}

void leat_msg_node_report_read(struct leat_msg_reader *reader, struct leat_msg_node_report *out)
{
    memset(out, 0, sizeof *out);
    uint32_t more = leat_msg_row_read(reader, &report_row, out, 1);
    out->peer_count = leat_msg_read_array(reader);
    out->peers = *reader;
    leat_msg_skip_n(reader, out->peer_count);
    if (more >= 3) {
        out->trouble = leat_msg_read_string(reader);
        out->logs_troubled = leat_msg_read_u64(reader);
        out->troubled_count = leat_msg_read_array(reader);
        out->troubled = *reader;
        leat_msg_skip_n(reader, out->troubled_count);
        more -= 3;
    }
    if (more >= 2) {
        out->logs_passed = leat_msg_read_u64(reader);
        out->passed_count = leat_msg_read_array(reader);
        out->passed = *reader;
        leat_msg_skip_n(reader, out->passed_count);
        more -= 2;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_report_peer_write(struct leat_msg_writer *writer,
                                const struct leat_msg_report_peer *peer)
{
    leat_msg_row_write(writer, &peer_row, peer, 0);
}

void leat_msg_report_peer_read(struct leat_msg_reader *reader, struct leat_msg_report_peer *out)
{
    memset(out, 0, sizeof *out);
    leat_msg_skip_n(reader, leat_msg_row_read(reader, &peer_row, out, 0));
}

void leat_msg_node_change_encode(struct leat_msg_writer *writer,
                                 const struct leat_msg_node_change *change)
{
    leat_msg_row_write(writer, &change_row, change, 0);
}

leat_err leat_msg_node_change_decode(const void *bytes, size_t count,
                                     struct leat_msg_node_change *out)
{
    memset(out, 0, sizeof *out);
    return leat_msg_row_decode(bytes, count, &change_row, out);
}

void leat_msg_streamlet_move_encode(struct leat_msg_writer *writer,
                                    const struct leat_msg_streamlet_move *move)
{
    leat_msg_row_write(writer, &move_row, move, 0);
}

leat_err leat_msg_streamlet_move_decode(const void *bytes, size_t count,
                                        struct leat_msg_streamlet_move *out)
{
    memset(out, 0, sizeof *out);
    return leat_msg_row_decode(bytes, count, &move_row, out);
}
