/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that a core knows. Thread: the core's. */
#ifndef LEAT_BROKER_DATA_STREAM_H
#define LEAT_BROKER_DATA_STREAM_H

#include "broker/front_logs.h"

struct leat_begun;
struct leat_core;
struct leat_known_places;

struct leat_stream {
    struct leat_stream *by_id_next, *by_name_next;
    struct leat_stream_desc *desc;    /* a reference */
    uint64_t logs;                    /* as counted in logs_known */
    struct leat_begun *begun;         /* a reference: the stream's logs here that have begun */
    struct leat_known_places *places; /* where its copies are; NULL: no request asked lately */
    bool has_groups;                  /* LEAT_GROUPS_STREAM_NAME: its logs are homes of groups */
    bool published;                   /* every core has its logs: clients may learn of the stream */
    bool deleted;                     /* its deletion is committed, and on its way over the cores */
    bool logs_missing;                /* some could not be made here: the tick tries again */
    struct leat_list waiters;         /* struct leat_stream_wait */
};

leat_err leat_stream_put(struct leat_core *core, struct leat_stream_desc *desc,
                         struct leat_stream **out_stream) LEAT_NODISCARD;
void leat_stream_remove(struct leat_core *core, struct leat_stream *stream);
void leat_stream_publish(struct leat_stream *stream);

#endif
