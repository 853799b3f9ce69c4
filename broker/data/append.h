/* SPDX-License-Identifier: Apache-2.0 */
/* Append requests under way. Private to broker/; what front ends call is in broker/front_logs.h. */
#ifndef LEAT_BROKER_DATA_APPEND_H
#define LEAT_BROKER_DATA_APPEND_H

#include "broker/data/confirm.h"
#include "broker/data/serve.h"
#include "broker/net/core.h"

struct leat_partition;

/* A batch of a request. */
struct leat_append_part {
    struct leat_append append;
    struct leat_append_request *request;
    struct leat_append_part *next;
    leat_err rc;
    uint32_t record_count, bytes;
    /* The result of a compressed batch's check; AGAIN: none yet. Then the highest time of its records. */
    leat_err unpacked;
    int64_t max_timestamp_ms;
};

/* An append request. It belongs to its connection's core, except between a mail to the log's core and the mail back:
 * then the whole request, parts included, belongs to that core (`home`). */
struct leat_append_request {
    struct leat_append_request *next; /* of the same connection, in order of arrival */
    struct leat_core *core, *home;
    struct leat_peer *peer;
    /* Of a front end; NULL: append.c answers. */
    void (*on_done)(struct leat_append_request *request);
    void *owner;
    struct leat_log_ref ref;
    uint32_t number;      /* of the frame */
    uint32_t batch_count; /* 0: refused whole */
    uint32_t begun;       /* batches given to the log, or refused */
    uint32_t waiting;     /* of these batches, not yet acked */
    uint32_t taken_bytes; /* of the payload */
    bool done, refused;
    leat_err rc;   /* of the whole (batch_count 0), or of the first refused batch */
    char *text;    /* sentence for rc, or NULL: the general sentence. leat_mem_free() */
    uint8_t *copy; /* payload, when forwarded */
    uint32_t copy_bytes;
    struct leat_append_part *last; /* of the chain that begins with `first` */
    struct leat_append_part first;
    union {
        struct leat_room_wait room; /* forwarded, at home, until all batches are begun or refused */
        struct {
            struct leat_confirm confirm;
            uint32_t epoch; /* of the streamlet, as the batch was refused */
        } owner_of;         /* from then on: the coordinators are asked who owns the log */
    };
    struct leat_mail mail;
};

#endif
