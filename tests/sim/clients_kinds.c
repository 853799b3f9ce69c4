/* SPDX-License-Identifier: Apache-2.0 */
/* How a client of each kind begins. This file alone calls the clients of all kinds. */
#include "tests/sim/kafka_client.h"

#include "base/assert.h"

/* The library waits for 10 ms to a second. Some here are hastier, and meet what is over after a millisecond. */
enum { RETRY_US_LEAST = 2000, RETRY_US_USUAL = 10 * 1000, RETRY_US_MAX = 100 * 1000 };

void sim_client_create(struct sim_client *client)
{
    struct leat_client_options options = {
        .name = client->process->name,
        .addresses = client->scenario->addresses,
        .request_timeout_us = sim_rng_between(&client->rng, 500000, 5000000),
        .retry_us_min = sim_rng_between(&client->rng, RETRY_US_LEAST, RETRY_US_USUAL),
        .retry_us_max = RETRY_US_MAX,
        .streams_max = SIM_STREAMS + 2,
        .actor = client,
    };
    struct leat_error error;
    leat_err rc = leat_timers_init(&client->timers, &client->actor->clock, SIM_CLIENT_TIMERS);
    LEAT_ASSERT(rc == LEAT_OK);
    switch (client->kind) {
    case SIM_CLIENT_KAFKA_PRODUCER:
        sim_kafka_producer_start(client);
        return;
    case SIM_CLIENT_KAFKA_READER:
    case SIM_CLIENT_KAFKA_MEMBER:
        sim_kafka_puller_start(client);
        return;
    case SIM_CLIENT_IMPOSTOR:
        sim_impostor_start(client);
        break;
    case SIM_CLIENT_CUTTER:
        sim_cutter_start(client);
        return;
    default:
        break;
    }
    rc =
        leat_client_create(&client->actor->env, &client->timers, &options, &client->client, &error);
    LEAT_ASSERT(rc == LEAT_OK);
    switch (client->kind) {
    case SIM_CLIENT_CONTROL:
        sim_control_start(client);
        break;
    case SIM_CLIENT_RAW:
        sim_raw_start(client);
        break;
    case SIM_CLIENT_DEAF:
        sim_deaf_start(client);
        break;
    case SIM_CLIENT_TRIMMER:
        sim_trim_start(client);
        break;
    case SIM_CLIENT_DELETER:
        rc = sim_deleter_start(client);
        break;
    case SIM_CLIENT_ONLOOKER:
        rc = sim_onlooker_start(client);
        break;
    case SIM_CLIENT_PRODUCER:
        rc = sim_producer_create(client);
        break;
    case SIM_CLIENT_READER:
    case SIM_CLIENT_MEMBER:
    case SIM_CLIENT_SHARER:
    case SIM_CLIENT_VERIFIER:
        rc = sim_consumer_create(client);
        break;
    default: /* those of Kafka's protocol */
        break;
    }
    LEAT_ASSERT(rc == LEAT_OK);
}
