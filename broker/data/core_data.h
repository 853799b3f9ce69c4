/* SPDX-License-Identifier: Apache-2.0 */
/* A core's state for its logs: of this module, one per core. Private to broker/ (tests may include it). */
#ifndef LEAT_BROKER_DATA_CORE_DATA_H
#define LEAT_BROKER_DATA_CORE_DATA_H

#include "base/list.h"
#include "broker/net/core.h"
#include "multilog/log.h"

/* Named limits. */
enum {
    LEAT_APPEND_BATCHES_MAX = 1024,         /* in one request */
    LEAT_APPEND_ROOM_US = 15 * 1000 * 1000, /* longest wait for room in a log */
    LEAT_FETCH_LOGS_MAX = 1024,             /* in one request */
    LEAT_FETCH_BYTES_MAX = 4 * 1024 * 1024, /* of an answer */
    LEAT_FETCH_WAIT_MS_MAX = 60 * 1000,
    LEAT_LOCATE_LOGS_MAX = 1024,
    LEAT_CATCH_UP_US_MAX = 2 * 1000 * 1000, /* then what is known here is answered */
    LEAT_OPENERS_MAX = 8,                   /* "opened" commits under way */
    LEAT_OPENER_LOGS_MAX = 256,             /* logs of one commit */
    LEAT_STOP_TICKS = 5,                    /* so long a stopping node waits for other nodes */
};

struct leat_confirmer;
struct leat_lender;
struct leat_news_line;
struct leat_opener;
struct leat_partition;
struct leat_replicate;
struct leat_stream;

struct leat_core_data {
    struct leat_partition **partitions; /* buckets */
    uint32_t partition_count, partition_mask;
    struct leat_stream **streams_by_id, **streams_by_name;
    uint32_t stream_count, stream_mask, stream_seen; /* highest id that came by */
    struct leat_news_line *news;                     /* of streams */
    bool logs_missing;                               /* of some stream here */

    struct leat_list dirty_logs, opening_logs, care_logs, idle_logs, home_logs;
    struct leat_restore_budget restore_budget; /* shared by this core's waking logs */
    struct leat_replicate *replicate;
    struct leat_confirmer *confirmer;
    struct leat_opener *openers;
    uint32_t openers_busy; /* bit each */
    uint32_t logs_to_stop, stop_ticks;
    void (*on_logs_stopped)(struct leat_core *core); /* none of logs_to_stop is left */

    struct leat_list room_waits;               /* by deadline */
    uint64_t forward_bytes, forward_bytes_max; /* copied for other cores at one time */
    struct leat_list fetches, ready_fetches, deferred_fetches, starved_reads;
    struct leat_lender *lender;
    struct leat_list locates;  /* of logs here: each callback looks at one log */
    struct leat_list locating; /* locates whose batch is being uncompressed */
    struct leat_mail locate_mail;
    bool locate_mailed;
};

#endif
