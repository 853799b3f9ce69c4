/* SPDX-License-Identifier: Apache-2.0 */
/* SUBTLE: why a stream's logs are made in pieces. (1) One CreateTopics asks for 32,768 logs; each takes some 20 us,
 * most of it for memory. (2) Made in one piece, the logs keep their core busy for half a second, on every core. (3)
 * The core answers no other connection meanwhile. */
#include "broker/data/news.h"

#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/net/core.h"

void leat_news_init(struct leat_core *core)
{
    leat_list_init(&core->data->news->items);
    leat_news_turn_end(core);
}

void leat_news_turn_end(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    core->data->news->left = LEAT_NEWS_WORK;
}

static void news_go_on(struct leat_core *core);

static void news_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->data->news->mailed = false;
    news_go_on(core);
}

/* All events of one turn share the turn's budget: one CreateTopics brings events of 256 streams at once. */
static void news_go_on(struct leat_core *core)
{
    struct leat_news_line *line = core->data->news;
    struct leat_list *link;
    if (line->inside) return;
    /* A core that stops makes no more logs, and must not be kept from its end. */
    if (core->stopping) line->left = INT32_MAX;
    line->inside = true;
    while (line->left > 0 && (link = leat_list_pop_front(&line->items)) != NULL) {
        struct leat_news *news = LEAT_CONTAINER(link, struct leat_news, link);
        line->left--;
        if (!news->step(news, core, &line->left)) leat_list_push_front(&line->items, link);
    }
    line->inside = false;
    if (leat_list_empty(&line->items) || line->mailed) return;
    line->mailed = true;
    leat_core_mail(core, core->index, &line->mail, news_deliver);
}

void leat_news_take(struct leat_core *core, struct leat_news *news,
                    bool (*step)(struct leat_news *news, struct leat_core *core, int32_t *left))
{
    LEAT_ASSERT_OWNER(core);
    news->step = step;
    leat_list_push_back(&core->data->news->items, &news->link);
    news_go_on(core);
}
