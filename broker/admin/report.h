/* SPDX-License-Identifier: Apache-2.0 */
/* A node's report about itself for CLUSTER_STATUS: memory, copies of the node's logs, and the transport to each other
 * node. Private to broker/. */
#ifndef LEAT_BROKER_ADMIN_REPORT_H
#define LEAT_BROKER_ADMIN_REPORT_H

#include "broker/net/core.h"
#include "wire/message_cluster.h"

enum {
    LEAT_REPORT_WHY_BYTES = 256,
    LEAT_REPORT_LOGS_MAX = 16,         /* logs that are named */
    LEAT_REPORT_BYTES_MAX = 32 * 1024, /* of one node: a longer report is refused */
    LEAT_REPORT_BESIDE_BYTES =
        64 * 1024 /* of the answer about a cluster, kept for what is no other node's report */
};

/* Caller's storage until on_done. */
struct leat_report {
    struct leat_core *core; /* the core that asks */
    void (*on_done)(struct leat_report *report);
    void *owner;
    struct leat_msg_node_report sums; /* texts and peers are not used */
    struct {
        bool known, up, says_gone;
        const char *transport; /* a constant; "" when none */
        uint64_t replicas, load_bytes;
    } peers[LEAT_NODES_MAX]; /* by a member's number, which is the same on every core */
    struct {
        struct leat_log_ref log;
        char stream[LEAT_STREAM_NAME_BYTES_MAX + 1], why[LEAT_REPORT_WHY_BYTES];
    } troubled[LEAT_REPORT_LOGS_MAX]; /* sums.troubled_count of them */
    struct {
        struct leat_log_ref log;
        char stream[LEAT_STREAM_NAME_BYTES_MAX + 1];
        struct leat_log_passed passed;
    } passed[LEAT_REPORT_LOGS_MAX];             /* sums.passed_count of them */
    char waits[LEAT_STREAM_NAME_BYTES_MAX + 1]; /* a stream whose logs wait for memory; "": none */
    bool others_wait;
    char trouble[LEAT_REPORT_WHY_BYTES]; /* of the node as a whole */
    bool disk_lacks;                     /* no place for a segment, when one was asked for last */
    struct leat_mail mail;
};
/** core, on_done and owner are set, the rest is zeros. Visits every core. Thread: core, as on_done. */
void leat_report_start(struct leat_report *report);
/** There is no place on the disk for a segment of so many bytes; 0: there is. Thread: the store's; blocks. */
uint64_t leat_report_disk_lacks(const struct leat_node *node);
/** How many logs of this core take no appends, or lack records. Thread: core. */
uint64_t leat_report_logs_troubled(const struct leat_core *core);
/** with_peers: also how each other node is reached. */
void leat_report_write(struct leat_msg_writer *writer, const struct leat_report *report,
                       bool with_peers);
/** Write the report of another node, or (NULL) why it did not report; nodes_left counts the reports that are still to
 * be written, this report included. A report that takes more than its share of the answer is replaced with a
 * sentence that says so, and so leaves room for the other reports. */
void leat_report_write_other(struct leat_msg_writer *writer, const uint8_t *report, uint32_t bytes,
                             const char *why, uint32_t nodes_left);

#endif
