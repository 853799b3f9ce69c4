/* SPDX-License-Identifier: Apache-2.0 */
/* What modules above broker/net keep of a core, for cores that a test makes itself. */
#ifndef LEAT_TESTS_BROKER_PARTS_H
#define LEAT_TESTS_BROKER_PARTS_H

#include "base/assert.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/places.h"
#include "broker/data/confirm.h"
#include "broker/data/core_data.h"
#include "broker/data/lend.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/node/walk.h"
#include "broker/ownership/handover.h"
#include "broker/ownership/move.h"

struct core_parts {
    struct leat_core_data data;
    struct leat_core_admin admin;
    struct leat_replicate replicate;
    struct leat_confirmer confirmer;
    struct leat_lender lender;
    struct leat_news_line news;
    struct leat_missing missing;
    struct leat_placer placer;
    struct leat_takeovers takeovers;
    struct leat_repairs repairs;
    struct leat_movers movers;
};

/** parts: zeroed, the test's, as long as the core. */
static inline void core_parts_set(struct leat_core *core, struct core_parts *parts)
{
    core->data = &parts->data;
    core->admin = &parts->admin;
    core->data->replicate = &parts->replicate;
    core->data->confirmer = &parts->confirmer;
    core->data->lender = &parts->lender;
    core->data->news = &parts->news;
    core->missing = &parts->missing;
    core->admin->placer = &parts->placer;
    core->takeovers = &parts->takeovers;
    core->repairs = &parts->repairs;
    core->movers = &parts->movers;
}

/* What is around one core: time, which the test lets pass, and mail, of which one at most is on its way. */
struct core_world {
    struct core_parts parts;
    struct leat_env env;
    struct leat_clock clock;
    struct leat_post post;
    uint64_t now_us;
    struct leat_mail *mail; /* to the core */
};

static inline uint64_t core_world_now(void *ctx)
{
    return ((const struct core_world *)ctx)->now_us;
}
static inline void core_world_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct core_world *world = ctx;
    LEAT_ASSERT(to == LEAT_ACTOR_CORE_0 && world->mail == NULL);
    world->mail = mail;
}

/** One second after the beginning of time. world: zeroed, the test's, as long as the core. */
static inline void core_world_set(struct leat_core *core, struct core_world *world,
                                  struct leat_node *node, const struct leat_net *net)
{
    world->now_us = 1000 * 1000;
    world->clock = (struct leat_clock){.ctx = world, .now_us = core_world_now};
    world->post = (struct leat_post){.ctx = world, .send = core_world_send};
    world->env = (struct leat_env){.clock = &world->clock, .post = &world->post};
    core->node = node;
    core->env = &world->env;
    core->net = net;
    core_parts_set(core, &world->parts);
}

#endif
