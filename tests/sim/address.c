/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of its own that now and then asks for the place of a record that it has read, keeps the place, and later
 * goes back to it: the next record that the consumer sees is the first of that record's batch. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"
#include "tests/sim/told.h"

enum {
    ADDRESS_PER_MILLE = 80, /* of the batches */
    ADDRESS_ROUNDS_MAX = 20,
    ADDRESS_KEPT_US_MAX = 4 * 1000 * 1000,
    ADDRESS_WAIT_US = 100 * 1000,
    ADDRESS_ASK_US = 60 * 1000 * 1000,
};

static void address_ask(struct sim_client *client, uint32_t what, leat_consumer_asked_fn on_done);

static void address_drop(struct sim_client *client)
{
    client->address.state = SIM_ADDRESS_NONE;
}

/* Where bits flip and disks fail a record may be damaged. */
static void judge(struct sim_client *client, uint64_t first, leat_err rc,
                  const struct leat_msg_located *found)
{
    const struct sim_address *address = &client->address;
    if (rc == LEAT_E_DAMAGED && !sim_told_is_unharmed(client->scenario)) return;
    check_addressed(client->scenario->check, address->log, first, address->offset, rc,
                    found ? found->offset : 0);
}

/* What was given up or lost since, and what nobody could answer, is no address any more. */
static void on_led_back(void *arg, leat_err rc, const struct leat_msg_located *found,
                        const struct leat_error *error)
{
    struct sim_client *client = arg;
    const struct sim_address *address = &client->address;
    sim_trace(client->scenario->world, "place of offset %llu of %u/%u/%u leads to: %s %llu",
              (unsigned long long)address->offset, address->log.stream, address->log.streamlet,
              address->log.log, leat_err_name(rc), found ? (unsigned long long)found->offset : 0);
    (void)error;
    judge(client, address->first, rc, found);
    address_drop(client);
    if (rc != LEAT_OK) return;
    uint32_t q = leat_consumer_engine_q(client->consumer);
    int64_t partition = (int64_t)address->log.streamlet * q + address->log.log;
    leat_err sought = leat_consumer_engine_seek(client->consumer, partition, LEAT_ENGINE_OFFSET,
                                                (int64_t)found->offset);
    if (sought == LEAT_OK) check_reader_seek(&client->reader, address->log, found->offset);
}

static void lead_back(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    (void)world;
    if (!client->consumer) return;
    if (sim_aim_place_waits(client)) {
        sim_actor_post(client->actor, ADDRESS_WAIT_US, lead_back, client);
        return;
    }
    address_ask(client, LEAT_LOCATE_POSITION, on_led_back);
}

static void on_named(void *arg, leat_err rc, const struct leat_msg_located *found,
                     const struct leat_error *error)
{
    struct sim_client *client = arg;
    struct sim_address *address = &client->address;
    (void)error;
    /* Where a record was given up the next one is named. */
    if (rc != LEAT_OK || found->offset != address->offset || address->once) {
        judge(client, address->offset, rc, found);
        address_drop(client);
        return;
    }
    address->state = SIM_ADDRESS_KEPT;
    address->at = found->position;
    sim_actor_post(client->actor, sim_rng_below(&client->rng, ADDRESS_KEPT_US_MAX), lead_back,
                   client);
}

static void address_ask(struct sim_client *client, uint32_t what, leat_consumer_asked_fn on_done)
{
    const struct sim_address *address = &client->address;
    uint32_t q = leat_consumer_engine_q(client->consumer);
    struct leat_msg_locate question = {
        .what = what, .value = (int64_t)address->offset, .position = address->at};
    leat_err rc = leat_consumer_engine_ask(client->consumer,
                                           (int64_t)address->log.streamlet * q + address->log.log,
                                           &question, ADDRESS_ASK_US, on_done, client);
    if (rc != LEAT_OK) address_drop(client); /* the consumer has ended */
}

void sim_address_shown(struct sim_client *client, struct leat_log_ref log, uint64_t first,
                       uint32_t records)
{
    struct sim_address *address = &client->address;
    if (client->kind != SIM_CLIENT_READER || address->state != SIM_ADDRESS_NONE ||
        address->rounds == ADDRESS_ROUNDS_MAX || !sim_rng_chance(&client->rng, ADDRESS_PER_MILLE))
        return;
    address->state = SIM_ADDRESS_ASKED;
    address->once = false;
    address->rounds++;
    address->log = log;
    address->first = first;
    address->offset = first + sim_rng_below(&client->rng, records);
    address_ask(client, LEAT_LOCATE_OFFSET, on_named);
}

void sim_address_ask(struct sim_client *client, struct leat_log_ref log, uint64_t offset)
{
    struct sim_address *address = &client->address;
    if (address->state != SIM_ADDRESS_NONE || !client->consumer) return;
    address->state = SIM_ADDRESS_ASKED;
    address->once = true;
    address->log = log;
    address->first = address->offset = offset;
    address_ask(client, LEAT_LOCATE_OFFSET, on_named);
}
