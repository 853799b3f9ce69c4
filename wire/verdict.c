/* SPDX-License-Identifier: Apache-2.0 */
/* How well things are, by what was answered: see verdict.h. */
#include "wire/verdict.h"

#include <string.h>

enum { STATE_UP = 1, STATE_DOWN = 2 };

bool leat_cluster_told_read(struct leat_msg_reader *reader, struct leat_cluster_told *out)
{
    leat_msg_cluster_read(reader, &out->head);
    out->voter_count = leat_msg_read_array(reader);
    if (out->voter_count > LEAT_TOLD_VOTERS_MAX) reader->failed = true;
    for (uint32_t i = 0; !reader->failed && i < out->voter_count; i++)
        leat_msg_voter_read(reader, &out->voters[i]);
    out->node_count = leat_msg_read_array(reader);
    if (out->node_count > LEAT_TOLD_NODES_MAX) reader->failed = true;
    for (uint32_t i = 0; !reader->failed && i < out->node_count; i++)
        leat_msg_cluster_node_read(reader, &out->nodes[i]);
    memset(&out->recovery, 0, sizeof out->recovery);
    if (out->head.has_recovery) leat_msg_recovery_read(reader, &out->recovery);
    return !reader->failed;
}

bool leat_cluster_told_alone(const struct leat_cluster_told *told)
{
    return told->node_count == 1 && told->nodes[0].node_address.bytes == 0;
}

bool leat_node_told_unheard(const struct leat_msg_cluster_node *node)
{
    return node->state == STATE_UP && !node->report.known;
}

bool leat_cluster_told_well(const struct leat_cluster_told *told)
{
    bool well = told->head.why.bytes == 0 && told->head.leader_address.bytes != 0;
    bool troubled = false;
    for (uint32_t i = 0; i < told->node_count; i++) {
        const struct leat_msg_node_report *report = &told->nodes[i].report;
        if (told->nodes[i].state == STATE_DOWN || leat_node_told_unheard(&told->nodes[i]))
            well = false;
        if (report->logs_under_replicated > 0 || report->logs_below_min > 0) well = false;
        troubled = troubled || report->logs_troubled > 0 || report->logs_passed > 0 ||
                   report->trouble.bytes > 0;
    }
    for (uint32_t i = 0; i < told->voter_count; i++)
        if (!told->voters[i].reachable) well = false;
    if (told->recovery.waiting > 0 || told->recovery.phase != 0) well = false;
    return (well || leat_cluster_told_alone(told)) && !troubled;
}

const char *leat_log_told_state(const struct leat_msg_log_info *log)
{
    static const char *const states[] = {"ok", "waiting", "damaged", "stopped"};
    if (log->state == 0 && log->code == LEAT_E_DISK_FULL) return "full";  /* its node's disk */
    if (log->state == 0 && log->code == LEAT_E_DAMAGED) return "damaged"; /* and takes appends */
    /* It is not served yet, or its owner was not heard, or is new and has not opened it (UNKNOWN_LOG). */
    if (log->state == 0 && log->code != LEAT_OK) return "unknown";
    return states[log->state > 3 ? 3 : log->state];
}

bool leat_log_told_takes_appends(const struct leat_msg_log_info *log)
{
    return log->state == 0 && !log->below_min &&
           (log->code == LEAT_OK || log->code == LEAT_E_DAMAGED);
}
