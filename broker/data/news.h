/* SPDX-License-Identifier: Apache-2.0 */
/* Events of streams as a core gets them: in order, and in pieces, since a stream may have 32,768 logs. The rest of
 * the first event goes on in the next turn of the core's loop, and all later events wait for it. Private to broker/.
 * Thread: the core's. */
#ifndef LEAT_BROKER_DATA_NEWS_H
#define LEAT_BROKER_DATA_NEWS_H

#include "broker/front_logs.h"

struct leat_core;

enum {
    LEAT_NEWS_WORK = 1024,      /* of one turn: so many logs are looked at, */
    LEAT_NEWS_LOG_COST = 16,    /* each that is made or deleted counting as so many, */
    LEAT_NEWS_STREAM_COST = 16, /* and each stream that comes, changes or goes; other news: 1 */
    LEAT_NEWS_SET_ROWS = 16, /* so many rows of homes' tables that are looked at count as a log */
};

struct leat_news_line {
    struct leat_list items;
    struct leat_mail mail;
    bool mailed, inside;
    int32_t left; /* of LEAT_NEWS_WORK, in this turn */
};

void leat_news_init(struct leat_core *core);
/** An event has come. Caller's storage until step() returns true. */
void leat_news_take(struct leat_core *core, struct leat_news *news,
                    bool (*step)(struct leat_news *news, struct leat_core *core, int32_t *left));
void leat_news_turn_end(struct leat_core *core);

#endif
