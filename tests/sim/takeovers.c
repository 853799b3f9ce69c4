/* SPDX-License-Identifier: Apache-2.0 */
/* A takeover ends when it wants a segment of which its node has a replica that a later owner counts on. Otherwise the
 * next takeover of the same log waits behind it. */
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/scenario.h"

enum {
    TAKEOVER_US_MAX = 600 * 1000, /* it asks again sooner */
    TAKEOVERS_MAX = 64,           /* of a node; more are not looked at */
};

static struct {
    struct past { /* takeovers that are to end */
        struct leat_takeover_seen it;
        uint64_t since_us;
    } past[SIM_SERVERS_MAX][TAKEOVERS_MAX];
} watch; /* of the one scenario of a process */

void sim_takeovers_start(void)
{
    memset(&watch, 0, sizeof watch);
}

static bool is_past(const struct sim_server *server, const struct leat_takeover_seen *it)
{
    struct leat_replica_seen rep = {0};
    while (!it->waits && leat_backup_see_of(leat_node_backup(server->node), it->ref, &rep))
        if (rep.seg->id.v == it->segment && rep.owner_epoch.v > it->epoch.v && !rep.busy &&
            !rep.dropping && !rep.drop_wanted && !rep.damaged)
            return true;
    return false;
}

static uint64_t since(unsigned server, const struct leat_takeover_seen *it, uint64_t now_us)
{
    for (unsigned i = 0; i < TAKEOVERS_MAX; i++) {
        const struct past *past = &watch.past[server][i];
        if (past->it.at == it->at && past->it.epoch.v == it->epoch.v &&
            leat_log_ref_equal(past->it.ref, it->ref))
            return past->since_us;
    }
    return now_us;
}

static void takeovers_look(struct scenario *scenario, const struct sim_server *server)
{
    struct past past[TAKEOVERS_MAX] = {0};
    struct leat_takeover_seen it = {0};
    uint64_t now_us = scenario->world->now_us;
    bool stands_still = server->stopping || server->process->paused_until_us > now_us;
    unsigned count = 0;
    while (count < TAKEOVERS_MAX && leat_node_takeover_next(server->node, &it)) {
        if (!is_past(server, &it)) continue;
        uint64_t since_us = stands_still ? now_us : since(server->number, &it, now_us);
        past[count++] = (struct past){it, since_us};
        if (now_us > since_us + TAKEOVER_US_MAX)
            sim_fail(scenario->world,
                     "A10 stuck: %s takes log id %u/%u/%u over in epoch %u, and a later owner has "
                     "counted on segment %llu there for %llu ms",
                     server->name, it.ref.stream, it.ref.streamlet, it.ref.log, it.epoch.v,
                     (unsigned long long)it.segment,
                     (unsigned long long)(now_us - since_us) / 1000);
    }
    memcpy(watch.past[server->number], past, sizeof past);
}

void sim_takeovers_look(struct scenario *scenario, const struct sim_server *server)
{
    if (leat_node_taking_over(server->node))
        takeovers_look(scenario, server);
    else
        watch.past[server->number][0] = (struct past){0};
}
