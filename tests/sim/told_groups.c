/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of groups is checked like data (A13). In a quiet period told_round.c chooses whom to ask: each node that
 * serves, or the home of one group. A client asks by Kafka's protocol which groups there are, what members they have,
 * what they have committed and where logs end; and by the native protocol (told_groups_native.c). What lags is the
 * difference of the last two, so both have to be right: what is told lies between what was acked before the question
 * and what home and log have at the answer. Where nothing moves these are the same. After a wrong answer the client
 * asks again, for up to TOLD_US_MAX. */
#include "tests/sim/told_groups.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "groups/classic_table.h"
#include "tests/sim/asks.h"
#include "tests/sim/stranger.h"
#include "tests/sim/truth.h"

enum {
    TOLD_US_MAX = 20 * 1000 * 1000,
    AGAIN_US = 50 * 1000, /* doubled so often at most: */
    TRIES_SLOWER = 5,
    LIST_PER_MILLE = 250,    /* of the looks: a list wakes all homes of a node */
    LIST_PER_MILLE_ONE = 60, /* of the looks at one node */
};

enum stage { STAGE_LIST, STAGE_DESCRIBE, STAGE_OFFSETS, STAGE_ENDS, STAGES };

struct groups;
/* A client that asks a node its questions in turn. */
struct asker {
    struct groups *groups;
    const struct sim_server *server;
    enum stage stage;
    unsigned tries;
    bool right;
    struct sim_wrong wrong;
    struct sim_groups_seen before;
};
struct groups {
    struct scenario *scenario;
    struct sim_client client; /* what kafka_client.c asks for: scenario, actor, rng */
    struct sim_kafka kafka;
    struct asker askers[SIM_SERVERS_MAX];
    unsigned count;
    bool asking;
};
static struct groups *groups_of_look;

const char *sim_group_name(enum sim_group group)
{
    static const char *const names[SIM_GROUPS] = {"members", "kafka-group", "sharers", "clerk-kept",
                                                  "clerk-gone"};
    return names[group];
}

void sim_wrong(struct sim_wrong *wrong, const char *format, ...)
{
    va_list args;
    if (wrong->text[0]) return;
    va_start(args, format);
    (void)vsnprintf(wrong->text, sizeof wrong->text, format, args);
    va_end(args);
}

/* ---- the truth ---- */

static uint64_t members_digest(struct scenario *scenario)
{
    const struct leat_group *stored = truth_group_find(scenario, sim_group_name(SIM_GROUP_KAFKA));
    if (!stored || !stored->classic) return 0;
    uint64_t digest = ((uint64_t)stored->generation << 8 | stored->classic->phase) + 1;
    for (uint32_t i = 0; i < stored->classic->member_count; i++) {
        const struct leat_classic_member *member = stored->classic->members[i];
        digest =
            digest * 31 + (member->pending ? 7 : leat_crc32c(0, member->id, strlen(member->id)));
    }
    return digest;
}

/* Loss puts a consumer back to where its log begins, and it commits that. */
static bool may_go_back(const struct scenario *scenario, uint32_t stream)
{
    return scenario->streams[stream].settings.durability == LEAT_DURABILITY_MEMORY;
}

static int64_t committed_before(const struct scenario *scenario, enum sim_group group,
                                uint32_t stream, uint32_t partition)
{
    struct leat_log_ref log = sim_kafka_log(scenario, stream, partition);
    if (group == SIM_GROUP_KEPT) return sim_clerk_committed(stream, partition);
    if (group != SIM_GROUP_MEMBERS && group != SIM_GROUP_KAFKA) return SIM_GROUP_NOTHING;
    if (group == SIM_GROUP_KAFKA && may_go_back(scenario, stream)) return SIM_GROUP_NOTHING;
    uint64_t acked = check_committed_to(scenario->check, group == SIM_GROUP_KAFKA, log);
    return acked ? (int64_t)acked : SIM_GROUP_NOTHING;
}

void sim_groups_see(struct scenario *scenario, struct sim_groups_seen *out)
{
    memset(out, 0, sizeof *out);
    out->members = members_digest(scenario);
    out->shares = sim_groups_shares_digest(scenario);
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_KAFKA_MEMBER && client->process->alive &&
            sim_kafka_member(client))
            out->readers[out->reader_count++] = client;
    }
    for (unsigned g = 0; g < SIM_GROUPS; g++) {
        out->there[g] = truth_group_find(scenario, sim_group_name(g)) != NULL;
        for (uint32_t i = 0; i < SIM_STREAMS; i++)
            for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++)
                out->committed[g][i][p] = committed_before(scenario, g, i, p);
    }
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++) {
            struct truth_log log;
            struct leat_log_ref ref = sim_kafka_log(scenario, i, p);
            ref.stream = scenario->streams[i].id;
            if (truth_find(scenario, ref, &log) && log.served) out->ends[i][p] = log.end;
        }
}

/* A home whose log waits or is damaged answers what it can, and need not. */
static bool is_ill_home(struct scenario *scenario, const struct sim_server *server,
                        enum sim_group group)
{
    struct truth_home home;
    truth_home_find(scenario, sim_group_name(group), &home);
    return !home.groups && home.owner == server;
}

static bool is_home(struct scenario *scenario, const struct sim_server *server,
                    enum sim_group group)
{
    struct truth_home home;
    truth_home_find(scenario, sim_group_name(group), &home);
    return home.groups && home.owner == server;
}

/* Does the group have to be there: by what was acked to its members, and to the clerk? */
static bool must_be_there(const struct scenario *scenario, const struct sim_groups_seen *before,
                          enum sim_group group)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++)
            if (before->committed[group][i][p] >= 0) return true;
    return sim_clerk_has(group);
}

void sim_groups_committed_judge(struct scenario *scenario, const struct sim_groups_seen *before,
                                enum sim_group group, uint32_t stream, uint32_t partition,
                                int64_t told, struct sim_wrong *wrong)
{
    struct leat_log_ref ref = sim_kafka_log(scenario, stream, partition);
    int64_t low = before->committed[group][stream][partition], high = low;
    struct leat_group *stored = truth_group_find(scenario, sim_group_name(group));
    ref.stream = scenario->streams[stream].id;
    const struct leat_group_log *log = stored ? leat_group_log_find(stored, ref) : NULL;
    if (group != SIM_GROUP_KEPT && group != SIM_GROUP_GONE)
        high = log && log->has_offset ? (int64_t)log->offset : SIM_GROUP_NOTHING;
    if (told < low || told > high)
        sim_wrong(wrong,
                  "group %s has committed %lld in log %u/%u of %s, and it is %lld (acked %lld)",
                  sim_group_name(group), (long long)told, ref.streamlet, ref.log,
                  scenario->streams[stream].name, (long long)high, (long long)low);
}

void sim_groups_end_judge(struct scenario *scenario, const struct sim_server *server,
                          const struct sim_groups_seen *before, uint32_t stream, uint32_t partition,
                          bool refused, uint64_t told, struct sim_wrong *wrong)
{
    struct truth_log log;
    struct leat_log_ref ref = sim_kafka_log(scenario, stream, partition);
    ref.stream = scenario->streams[stream].id;
    if (!truth_find(scenario, ref, &log)) return;
    bool serves = log.served && log.owner == server;
    if (!serves && !refused)
        sim_wrong(wrong, "log %u/%u of %s is told to end at %llu by who does not have it",
                  ref.streamlet, ref.log, log.stream, (unsigned long long)told);
    if (!serves || log.state != LEAT_LOG_SERVING || log.damaged) return;
    if (refused || told < before->ends[stream][partition] || told > log.end)
        sim_wrong(wrong, "log %u/%u of %s is told to end at %lld, and it is %llu", ref.streamlet,
                  ref.log, log.stream, refused ? -1 : (long long)told, (unsigned long long)log.end);
}

/* ---- answers ---- */

static bool text_is(struct leat_kafka_string text, const char *word)
{
    return text.bytes >= 0 && (size_t)text.bytes == strlen(word) &&
           memcmp(text.text, word, (size_t)text.bytes) == 0;
}

static void list_judge(struct asker *asker, const struct leat_kafka_list_groups_response *answer)
{
    struct scenario *scenario = asker->groups->scenario;
    if (answer->error_code != LEAT_KAFKA_NONE)
        sim_wrong(&asker->wrong, "groups are not listed: error %d", answer->error_code);
    for (unsigned g = 0; g < SIM_GROUPS && !asker->wrong.text[0]; g++) {
        if (is_ill_home(scenario, asker->server, g)) continue;
        bool home = is_home(scenario, asker->server, g);
        bool there = asker->before.there[g] && truth_group_find(scenario, sim_group_name(g));
        bool may = asker->before.there[g] || truth_group_find(scenario, sim_group_name(g));
        unsigned listed = 0;
        for (int32_t i = 0; i < answer->groups.count; i++)
            listed += text_is(answer->groups.at[i].group_id, sim_group_name(g));
        if (g == SIM_GROUP_GONE) may = there = false;
        there |= must_be_there(scenario, &asker->before, g);
        if (home && there ? listed != 1 : listed > (home && may))
            sim_wrong(&asker->wrong, "group %s is listed %u times, and %s", sim_group_name(g),
                      listed,
                      !home   ? "lies elsewhere"
                      : there ? "is there"
                              : "does not exist");
    }
}

static void members_judge(struct asker *asker,
                          const struct leat_kafka_describe_groups_response_group *told)
{
    struct scenario *scenario = asker->groups->scenario;
    const struct leat_group *stored = truth_group_find(scenario, sim_group_name(SIM_GROUP_KAFKA));
    static const char *const phases[] = {"Empty", "PreparingRebalance", "CompletingRebalance",
                                         "Stable"};
    for (unsigned r = 0; r < asker->before.reader_count; r++) {
        const struct sim_client *reader = asker->before.readers[r];
        const char *id = reader->process->alive ? sim_kafka_member(reader) : NULL;
        bool named = false;
        for (int32_t i = 0; i < told->members.count; i++)
            named |= id && text_is(told->members.at[i].member_id, id);
        if (id && !named)
            sim_wrong(&asker->wrong, "%s, which reads, is told to be no member of its group",
                      reader->process->name);
    }
    if (!stored || !stored->classic || members_digest(scenario) != asker->before.members) return;
    if (told->members.count != (int32_t)leat_classic_members_joined(stored->classic))
        sim_wrong(&asker->wrong, "a group is told to have %d members, and has %u",
                  told->members.count, leat_classic_members_joined(stored->classic));
    if (!text_is(told->group_state, phases[stored->classic->phase]))
        sim_wrong(&asker->wrong, "a group is told to be %.*s, and is %s",
                  (int)told->group_state.bytes, told->group_state.text,
                  phases[stored->classic->phase]);
}

static void describe_judge(struct asker *asker,
                           const struct leat_kafka_describe_groups_response *answer)
{
    struct scenario *scenario = asker->groups->scenario;
    if (answer->groups.count != SIM_GROUPS)
        sim_wrong(&asker->wrong, "%d groups are described", answer->groups.count);
    for (unsigned g = 0; g < SIM_GROUPS && !asker->wrong.text[0]; g++) {
        const struct leat_kafka_describe_groups_response_group *told = &answer->groups.at[g];
        bool dead = told->error_code == LEAT_KAFKA_NONE && text_is(told->group_state, "Dead");
        bool there = truth_group_find(scenario, sim_group_name(g)) && asker->before.there[g];
        there |= must_be_there(scenario, &asker->before, g);
        if (is_ill_home(scenario, asker->server, g)) continue;
        if (!is_home(scenario, asker->server, g)) {
            if (told->error_code == LEAT_KAFKA_NONE && !dead)
                sim_wrong(&asker->wrong, "group %s is described by who is not its home",
                          sim_group_name(g));
            continue;
        }
        if (told->error_code != LEAT_KAFKA_NONE || (there && dead) ||
            (g == SIM_GROUP_GONE && !dead))
            sim_wrong(&asker->wrong, "group %s is told to be '%.*s' (error %d), and %s",
                      sim_group_name(g), (int)told->group_state.bytes, told->group_state.text,
                      told->error_code, there ? "is there" : "does not exist");
        else if (g == SIM_GROUP_KAFKA && !dead)
            members_judge(asker, told);
    }
}

static int64_t offset_told(const struct leat_kafka_offset_fetch_response_group *told,
                           const char *topic, uint32_t partition)
{
    for (int32_t t = 0; t < told->topics.count; t++)
        for (int32_t p = 0; p < told->topics.at[t].partitions.count; p++)
            if (text_is(told->topics.at[t].name, topic) &&
                told->topics.at[t].partitions.at[p].partition_index == (int32_t)partition)
                return told->topics.at[t].partitions.at[p].committed_offset;
    return SIM_GROUP_NOTHING;
}

static void offsets_judge(struct asker *asker,
                          const struct leat_kafka_offset_fetch_response *answer)
{
    struct scenario *scenario = asker->groups->scenario;
    if (answer->groups.count != SIM_GROUPS)
        sim_wrong(&asker->wrong, "offsets of %d groups are told", answer->groups.count);
    for (unsigned g = 0; g < SIM_GROUPS && !asker->wrong.text[0]; g++) {
        const struct leat_kafka_offset_fetch_response_group *told = &answer->groups.at[g];
        if (is_ill_home(scenario, asker->server, g)) continue;
        bool home = is_home(scenario, asker->server, g);
        if (home && told->error_code != LEAT_KAFKA_NONE)
            sim_wrong(&asker->wrong, "offsets of group %s are not told: error %d",
                      sim_group_name(g), told->error_code);
        if (!home && told->topics.count > 0)
            sim_wrong(&asker->wrong, "offsets of group %s are told by who is not its home",
                      sim_group_name(g));
        for (uint32_t i = 0; home && i < SIM_STREAMS; i++)
            for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++)
                sim_groups_committed_judge(scenario, &asker->before, g, i, p,
                                           offset_told(told, scenario->streams[i].name, p),
                                           &asker->wrong);
    }
}

static void ends_judge(struct asker *asker, const struct leat_kafka_list_offsets_response *answer)
{
    struct scenario *scenario = asker->groups->scenario;
    if (answer->topics.count != SIM_STREAMS)
        sim_wrong(&asker->wrong, "ends of %d topics are told", answer->topics.count);
    for (uint32_t i = 0; i < SIM_STREAMS && !asker->wrong.text[0]; i++)
        for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++) {
            if (answer->topics.at[i].partitions.count <= (int32_t)p) {
                sim_wrong(&asker->wrong, "ends of %d logs are told",
                          answer->topics.at[i].partitions.count);
                break;
            }
            const struct leat_kafka_list_offsets_response_partition *row =
                &answer->topics.at[i].partitions.at[p];
            sim_groups_end_judge(scenario, asker->server, &asker->before, i, p,
                                 row->error_code != LEAT_KAFKA_NONE, (uint64_t)row->offset,
                                 &asker->wrong);
        }
}

/* ---- questions ---- */

static void ask_again(struct sim_world *world, struct sim_event *event);

static void answered(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct asker *asker = owner;
    if (asker->groups != groups_of_look) return;
    if (!answer)
        sim_wrong(&asker->wrong, "it does not answer");
    else if (n == STAGE_LIST)
        list_judge(asker, answer);
    else if (n == STAGE_DESCRIBE)
        describe_judge(asker, answer);
    else if (n == STAGE_OFFSETS)
        offsets_judge(asker, answer);
    else
        ends_judge(asker, answer);
    bool wrong = asker->wrong.text[0] != '\0';
    if (wrong)
        sim_trace(client->scenario->world, "told wrong of groups, by %s: %s", asker->server->name,
                  asker->wrong.text);
    else
        asker->stage++;
    asker->right = asker->stage == STAGES;
    uint64_t again_us = wrong ? (uint64_t)AGAIN_US << asker->tries : 1;
    if (wrong && asker->tries < TRIES_SLOWER) asker->tries++;
    if (!asker->right) sim_actor_post(client->actor, again_us, ask_again, asker);
}

static bool send(struct asker *asker, enum leat_kafka_key key, int16_t low, const void *body)
{
    struct groups *groups = asker->groups;
    int32_t number = (int32_t)asker->server->number;
    return sim_kafka_send(&groups->kafka, number, key,
                          sim_kafka_version(&groups->client, key, low, 127), body, answered, asker,
                          asker->stage);
}

static bool ends_ask(struct asker *asker)
{
    struct scenario *scenario = asker->groups->scenario;
    struct leat_kafka_list_offsets_request_partition rows[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_list_offsets_request_topic topics[SIM_STREAMS];
    struct leat_kafka_list_offsets_request body = {.replica_id = -1,
                                                   .topics = {topics, SIM_STREAMS}};
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        uint32_t count = sim_kafka_partitions(scenario, i);
        topics[i].name = sim_kafka_topic_name(scenario, i);
        topics[i].partitions.at = rows[i];
        topics[i].partitions.count = (int32_t)count;
        for (uint32_t p = 0; p < count; p++)
            rows[i][p] = (struct leat_kafka_list_offsets_request_partition){(int32_t)p, -1, -1};
    }
    return send(asker, LEAT_KAFKA_LIST_OFFSETS, 1, &body);
}

static bool offsets_ask(struct asker *asker, const struct leat_kafka_string *names)
{
    struct leat_kafka_offset_fetch_request_group groups[SIM_GROUPS];
    for (unsigned g = 0; g < SIM_GROUPS; g++)
        groups[g] = (struct leat_kafka_offset_fetch_request_group){.group_id = names[g],
                                                                   .member_id = {NULL, -1},
                                                                   .member_epoch = -1,
                                                                   .topics = {NULL, -1}};
    struct leat_kafka_offset_fetch_request body = {.groups = {groups, SIM_GROUPS}};
    return send(asker, LEAT_KAFKA_OFFSET_FETCH, 8, &body);
}

static bool ask(struct asker *asker)
{
    struct leat_kafka_string names[SIM_GROUPS];
    for (unsigned g = 0; g < SIM_GROUPS; g++)
        names[g] = leat_kafka_text(sim_group_name(g));
    switch (asker->stage) {
    case STAGE_LIST: {
        struct leat_kafka_list_groups_request body = {.states_filter = {NULL, 0}};
        return send(asker, LEAT_KAFKA_LIST_GROUPS, 0, &body);
    }
    case STAGE_DESCRIBE: {
        struct leat_kafka_describe_groups_request body = {.groups = {names, SIM_GROUPS}};
        return send(asker, LEAT_KAFKA_DESCRIBE_GROUPS, 0, &body);
    }
    case STAGE_OFFSETS:
        return offsets_ask(asker, names);
    default:
        return ends_ask(asker);
    }
}

static void ask_again(struct sim_world *world, struct sim_event *event)
{
    struct asker *asker = event->a;
    (void)world;
    if (asker->groups != groups_of_look) return; /* nobody waits for it any more */
    asker->wrong.text[0] = '\0';
    sim_groups_see(asker->groups->scenario, &asker->before);
    if (ask(asker)) return;
    sim_wrong(&asker->wrong, "it can't be reached");
    sim_actor_post(asker->groups->client.actor, AGAIN_US, ask_again, asker);
}

/* ---- a look ---- */

static bool all_right(struct scenario *scenario)
{
    struct groups *groups = groups_of_look;
    if (!sim_clerk_done()) return false;
    for (unsigned i = 0; i < groups->count && !groups->asking; i++)
        sim_actor_post(groups->client.actor, 1, ask_again, &groups->askers[i]);
    groups->asking = true;
    for (unsigned i = 0; i < groups->count; i++)
        if (!groups->askers[i].right) return false;
    (void)scenario;
    return true;
}

/* Where a disk has no space a home can't confirm by an append that it is the home still. */
static bool homes_can_answer(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (sim_disk_is_full(scenario->servers[i].disk)) return false;
    return true;
}

void sim_groups_look(struct scenario *scenario, const char *when, enum sim_group group)
{
    struct truth_home home;
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed + scenario->world->now_us, "told of groups");
    if (scenario->world->failure[0] || scenario->groups_unasked || !homes_can_answer(scenario))
        return;
    struct groups *groups = calloc(1, sizeof *groups);
    LEAT_ASSERT(groups != NULL);
    groups->scenario = groups->client.scenario = scenario;
    groups->client.actor = sim_idle_actor(scenario->world, "told of groups");
    groups->client.rng = rng;
    sim_kafka_init(&groups->kafka, &groups->client);
    /* Nodes are asked by the order of their addresses, whatever their numbers are. */
    for (unsigned i = 0; i < scenario->server_count; i++)
        groups->kafka.links[i].node = (int32_t)i;
    groups_of_look = groups;
    bool only = group != SIM_GROUPS;
    if (only) truth_home_find(scenario, sim_group_name(group), &home);
    bool lists = sim_rng_chance(&groups->client.rng, only ? LIST_PER_MILLE_ONE : LIST_PER_MILLE);
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (sim_serves(&scenario->servers[i]) && (!only || home.owner == &scenario->servers[i]))
            groups->askers[groups->count++] =
                (struct asker){.groups = groups,
                               .server = &scenario->servers[i],
                               .stage = lists ? STAGE_LIST : STAGE_DESCRIBE};
    /* What the clerk does is half of a look's cost. */
    bool clerks = !only || group == SIM_GROUP_KEPT || group == SIM_GROUP_GONE;
    sim_clerk_start(scenario, &groups->kafka, clerks);
    bool right = sim_run_until(scenario, all_right, TOLD_US_MAX);
    if (!right && !sim_clerk_done())
        sim_fail(scenario->world, "A10 stuck: %s, a group's commit or deletion: %s", when,
                 sim_clerk_why());
    for (unsigned i = 0; !right && i < groups->count; i++)
        if (!groups->askers[i].right)
            sim_fail(scenario->world, "A13 told: %s, by %s: %s", when,
                     groups->askers[i].server->name, groups->askers[i].wrong.text);
    for (unsigned g = 0; g < SIM_GROUPS; g++)
        scenario->world->faults[SIM_FAULT_TOLD_GROUPS] +=
            truth_group_find(scenario, sim_group_name(g)) != NULL;
    groups_of_look = NULL;
    sim_process_die(groups->client.actor->process, SIM_DEATH_KILL);
}
