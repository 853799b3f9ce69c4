/* SPDX-License-Identifier: Apache-2.0 */
/* What modules above broker/net keep of a core, for cores that a test makes itself. */
#ifndef LEAT_TESTS_BROKER_PARTS_H
#define LEAT_TESTS_BROKER_PARTS_H

#include "broker/admin/places.h"
#include "broker/data/confirm.h"
#include "broker/data/hosted.h"
#include "broker/data/lend.h"
#include "broker/data/news.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/node/walk.h"
#include "broker/ownership/handover.h"
#include "broker/ownership/move.h"

struct core_parts {
    struct leat_replicate replicate;
    struct leat_confirmer confirmer;
    struct leat_lender lender;
    struct leat_news_line news;
    struct leat_missing missing;
    struct leat_placer placer;
    struct leat_takeovers takeovers;
    struct leat_mends mends;
    struct leat_movers movers;
};

/** parts: zeroed, the test's, as long as the core. */
static inline void core_parts_set(struct leat_core *core, struct core_parts *parts)
{
    core->replicate = &parts->replicate;
    core->confirmer = &parts->confirmer;
    core->lender = &parts->lender;
    core->news = &parts->news;
    core->missing = &parts->missing;
    core->placer = &parts->placer;
    core->takeovers = &parts->takeovers;
    core->mends = &parts->mends;
    core->movers = &parts->movers;
}

#endif
