/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's requests about consumer groups that it invents: see stranger.h. */
#include "tests/sim/kafka_client.h"
#include "tests/sim/stranger.h"

#include <string.h>

#include "base/assert.h"
#include "groups/classic.h"

enum {
    NAMES_MAX = 128, /* of one request */
    NAME_BYTES = LEAT_GROUPS_NAME_BYTES_MAX + 1,
    SHORT_BYTES = 16,
    DIGITS = 8,
    TRIES_MAX = 64 * LEAT_GROUPS_HOMES,
    SESSION_MS = LEAT_GROUPS_SESSION_MS_MAX,
    REBALANCE_MS = 5 * 60 * 1000,
};

/* The next name; of the same home as an honest group, where that is wanted. */
static struct leat_kafka_string name_next(char *out, unsigned how, unsigned *serial)
{
    char honest[32];
    size_t bytes = how & SIM_CROWD_LONG ? LEAT_GROUPS_NAME_BYTES_MAX : SHORT_BYTES;
    unsigned from = how & SIM_CROWD_SAME ? 0 : *serial;
    sim_member_group(honest, sizeof honest, 0, how & SIM_CROWD_HOME);
    uint32_t home = leat_groups_home(honest, strlen(honest));
    memset(out, 'x', bytes);
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        from++;
        for (unsigned digit = 0; digit < DIGITS; digit++)
            out[digit] = (char)('a' + (from >> (4 * digit) & 15));
        if (how & SIM_CROWD_ANY || leat_groups_home(out, bytes) == home) break;
    }
    if (!(how & SIM_CROWD_SAME)) *serial = from;
    return (struct leat_kafka_string){out, (int32_t)bytes};
}

static size_t encode(uint8_t *out, enum leat_kafka_key key, int16_t version, uint32_t number,
                     const void *body)
{
    return sim_kafka_encode(leat_kafka_api_find((int16_t)key), version, (int32_t)number, body, out);
}

static size_t join(uint8_t *out, struct leat_kafka_string name, bool large, uint32_t number)
{
    static const uint8_t metadata[32 * 1024];
    struct leat_kafka_join_group_request_protocol protocol = {
        leat_kafka_text("range"), {metadata, large ? sizeof metadata : 1}};
    struct leat_kafka_join_group_request body = {
        .group_id = name,
        .session_timeout_ms = SESSION_MS,
        .rebalance_timeout_ms = REBALANCE_MS,
        .member_id = leat_kafka_text(""),
        .protocol_type = leat_kafka_text("consumer"),
        .protocols = {&protocol, 1},
    };
    return encode(out, LEAT_KAFKA_JOIN_GROUP, 1, number, &body);
}

/* As somebody who is no member: whoever asks makes a group by it. */
static size_t commit(uint8_t *out, struct leat_kafka_string name, bool large, uint32_t number)
{
    static char metadata[LEAT_CLASSIC_METADATA_BYTES_MAX];
    struct leat_kafka_offset_commit_request_partition row = {
        0, 1, -1, -1, {metadata, large ? sizeof metadata : 1}};
    struct leat_kafka_offset_commit_request_topic topic = {leat_kafka_text("stream-0"), {&row, 1}};
    struct leat_kafka_offset_commit_request body = {
        .group_id = name,
        .generation_id_or_member_epoch = -1,
        .member_id = leat_kafka_text(""),
        .retention_time_ms = -1,
        .topics = {&topic, 1},
    };
    memset(metadata, 'x', sizeof metadata);
    return encode(out, LEAT_KAFKA_OFFSET_COMMIT, 2, number, &body);
}

static size_t fetch(uint8_t *out, const struct leat_kafka_string *names, uint32_t number)
{
    struct leat_kafka_offset_fetch_request_group groups[NAMES_MAX];
    for (unsigned i = 0; i < NAMES_MAX; i++)
        groups[i] = (struct leat_kafka_offset_fetch_request_group){.group_id = names[i],
                                                                   .topics = {NULL, -1}};
    struct leat_kafka_offset_fetch_request body = {.groups = {groups, NAMES_MAX}};
    return encode(out, LEAT_KAFKA_OFFSET_FETCH, 8, number, &body);
}

size_t sim_crowd_ask(uint8_t *out, enum sim_crowd what, unsigned how, unsigned *serial,
                     uint32_t number)
{
    static char bytes[NAMES_MAX][NAME_BYTES];
    struct leat_kafka_string names[NAMES_MAX];
    bool one = what == SIM_CROWD_JOIN || what == SIM_CROWD_COMMIT, large = how & SIM_CROWD_LARGE;
    for (unsigned i = 0; what != SIM_CROWD_LIST && i < (one ? 1 : NAMES_MAX); i++)
        names[i] = name_next(bytes[i], how, serial);
    switch (what) {
    case SIM_CROWD_JOIN:
        return join(out, names[0], large, number);
    case SIM_CROWD_COMMIT:
        return commit(out, names[0], large, number);
    case SIM_CROWD_FETCH:
        return fetch(out, names, number);
    case SIM_CROWD_DESCRIBE: {
        struct leat_kafka_describe_groups_request body = {.groups = {names, NAMES_MAX}};
        return encode(out, LEAT_KAFKA_DESCRIBE_GROUPS, 0, number, &body);
    }
    case SIM_CROWD_FIND: {
        struct leat_kafka_find_coordinator_request body = {.coordinator_keys = {names, NAMES_MAX}};
        return encode(out, LEAT_KAFKA_FIND_COORDINATOR, 4, number, &body);
    }
    case SIM_CROWD_LIST:
    case SIM_CROWDS:
        break;
    }
    struct leat_kafka_list_groups_request body = {.states_filter = {NULL, 0}};
    return encode(out, LEAT_KAFKA_LIST_GROUPS, 0, number, &body);
}
