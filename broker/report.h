/* What a node says of itself for CLUSTER_STATUS: its memory, the copies of its logs, and how it
 * reaches the others. Private to broker/. */
#ifndef LEAT_BROKER_REPORT_H
#define LEAT_BROKER_REPORT_H

#include "broker/core.h"
#include "wire/message_cluster.h"

/* Caller's storage until on_done. */
struct leat_report {
    struct leat_core *core; /* who asks */
    void (*on_done)(struct leat_report *report);
    void *owner;
    struct leat_msg_node_report sums; /* texts and peers are not used */
    struct {
        bool known, up;
        const char *transport; /* a constant; "" when none */
        uint64_t replicas, load_bytes;
    } peers[LEAT_NODES_MAX]; /* by a member's number, which is the same on every core */
    uint32_t at;
    struct leat_mail mail;
};
/** core, on_done and owner are set, the rest is zeros. Visits every core. Thread: core, as on_done. */
void leat_report_start(struct leat_report *report);
/** with_peers: also how each other node is reached. */
void leat_report_write(struct leat_msg_writer *writer, const struct leat_report *report,
                       bool with_peers);

#endif
