/* SPDX-License-Identifier: Apache-2.0 */
/* replicate.c by itself: primary, backup, transports and the coordinators are the test's. */
#ifndef LEAT_TESTS_BROKER_REPLICATE_RIG_H
#define LEAT_TESTS_BROKER_REPLICATE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "replication/over_link.h"
#include "replication/transport/transport.h"
#include "tests/broker/alone.h"

struct replicate_rig {
    struct leat_primary_options primary;
    struct leat_backup_options backup;
    struct leat_transport_options transport;
    struct leat_transport_sink_options sink;
    bool fence_fails_once;
    leat_err primary_rc, backup_rc, transport_rc, sink_rc, link_rc, node_rc, link_node_rc, fence_rc,
        log_rc, found_rc;
    struct leat_member member, self;
    struct leat_partition partition;
    struct leat_found replicas[3];
    size_t replica_count;
    bool (*deleted)(void *arg, uint32_t stream);
    void *deleted_arg;
    struct leat_coordinate *request;
    struct leat_rep_accounts own, held;
    struct leat_transport_sink_status sunk;
    bool full;
    uint64_t full_left, full_bytes;
};
extern struct replicate_rig it;

void begin(void);
void end(void);
/** Core `index` has come up. */
leat_err comes_up(unsigned index);

#endif
