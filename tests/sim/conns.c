/* SPDX-License-Identifier: Apache-2.0 */
/* What native clients know of nodes, and keep of them.
 * - To one lane of one incarnation a client has no more than two open connections. If each request that meets a node's
 *   new incarnation left a connection, no connection could be made any more in the end.
 * - A client that was told of an owner does not go back to an earlier owner: that node is not the owner any more, and
 *   may not know it yet.
 * - A consumer that is to become a member of its group waits for an answer to a join, or for the time of its next join.
 * - A look-up is asked again when one node has owed the answer for the time limit of a request.
 * - A producer counts as under way to a log the batches that wait there with a sequence, and nothing else. */
#include <string.h>

#include "client/probe.h"
#include "consumer/probe.h"
#include "producer/probe.h"
#include "tests/sim/scenario.h"

/* A connection that was made for the lane, and a connection that asked the first node of all, whichever lane that would
 * be. */
enum { CONNS_ALIKE_MAX = 2, LOOKUP_US_MAX = 300 * 1000 };
enum { LOGS_MAX = CHECK_STREAMLETS_MAX * CHECK_LOGS_MAX };

/* The latest owners that a client was told of, of the streams of the scenario. */
static struct {
    const struct leat_client *client;
    uint32_t stream; /* its id: deleted and made anew, a stream is another one */
    uint32_t epochs[LOGS_MAX];
} told[SIM_CLIENTS_MAX][SIM_STREAMS];

static void stream_check(struct scenario *scenario, unsigned at, unsigned stream)
{
    const struct leat_client *client = scenario->clients[at]->client;
    const struct leat_client_stream *as =
        leat_client_stream(client, scenario->streams[stream].name);
    if (!as) return;
    if (told[at][stream].client != client || told[at][stream].stream != as->id)
        memset(&told[at][stream], 0, sizeof told[at][stream]);
    told[at][stream].client = client;
    told[at][stream].stream = as->id;
    for (uint32_t i = 0; i < as->log_count && i < LOGS_MAX; i++) {
        uint32_t *epoch = &told[at][stream].epochs[i], now = as->logs[i].epoch.v;
        if (now < *epoch)
            sim_fail(scenario->world,
                     "A7 nonmonotonic-poll: client %u goes back to the owner of epoch %u of log id "
                     "%u/%u/%u, and was told of epoch %u",
                     scenario->clients[at]->number, now, as->id, as->logs[i].ref.streamlet,
                     as->logs[i].ref.log, *epoch);
        *epoch = now;
    }
}

static void client_check(const struct sim_client *client)
{
    int64_t lane;
    if (leat_client_conns_alike(client->client, &lane) > CONNS_ALIKE_MAX)
        sim_fail(client->scenario->world,
                 "A10 stuck: client %u has more than %d connections to lane %lld of one node",
                 client->number, CONNS_ALIKE_MAX, (long long)lane);
    uint64_t now_us = client->scenario->world->now_us;
    bool stands_still = client->process->paused_until_us + LOOKUP_US_MAX > now_us;
    uint64_t late_us = leat_client_lookup_late_us(client->client, now_us);
    if (!stands_still && late_us > LOOKUP_US_MAX)
        sim_fail(client->scenario->world,
                 "A10 stuck: client %u waits for a node's answer to a look-up for %llu ms longer "
                 "than a request may take",
                 client->number, (unsigned long long)late_us / 1000);
    if (client->consumer && leat_consumer_stands_still(client->consumer))
        sim_fail(client->scenario->world,
                 "A10 stuck: client %u waits to become a member of its group, and has not asked",
                 client->number);
}

void sim_conns_check(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (!client->client || !client->process->alive) continue;
        client_check(client);
        if (client->producer && !leat_producer_under_way_is_right(client->producer))
            sim_fail(scenario->world,
                     "A11 assert: client %u counts other batches as under way to a log than those "
                     "that wait there with a sequence",
                     client->number);
        for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
            stream_check(scenario, i, stream);
    }
}
