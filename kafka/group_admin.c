/* DescribeGroups, ListGroups, DeleteGroups: groups as tools see them. Native sets are among them, of
 * the protocol type "leat" and without members to show. */
#include <string.h>
#include <strings.h>

#include "kafka/cluster.h"
#include "kafka/group.h"

/* One ask for each group, or for each home. */
struct many {
    uint32_t left;
    uint32_t count;
    struct leat_kafka_group_ask **asks;
    void (*answer)(struct leat_kafka_request *request, const struct many *many);
};

static void many_on_done(struct leat_kafka_group_ask *ask)
{
    struct many *many = ask->owner;
    if (--many->left == 0) many->answer(ask->request, many);
}

static void many_start(struct leat_kafka_request *request, enum leat_sets_kind kind,
                       const struct leat_kafka_string *names, uint32_t count,
                       void (*answer)(struct leat_kafka_request *, const struct many *))
{
    struct many *many = leat_kafka_take(request, 1, sizeof *many);
    if (many != NULL) many->asks = leat_kafka_take(request, count + 1, sizeof(void *));
    if (many == NULL || many->asks == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        many->asks[i] = leat_kafka_group_ask_make(request, kind);
        if (many->asks[i] == NULL) {
            leat_kafka_answer(request, NULL);
            return;
        }
        many->asks[i]->owner = many;
        many->asks[i]->on_done = many_on_done;
        many->asks[i]->home = i;
    }
    many->answer = answer;
    many->count = count;
    many->left = count + 1; /* one more: asks may be answered as they are made */
    for (uint32_t i = 0; i < count; i++)
        leat_kafka_group_ask_start(many->asks[i],
                                   names != NULL ? names[i] : (struct leat_kafka_string){NULL, -1});
    if (--many->left == 0) answer(request, many);
}

static const char *phase_name(enum leat_group_phase phase)
{
    switch (phase) {
    case LEAT_GROUP_EMPTY:
        return "Empty";
    case LEAT_GROUP_PREPARING:
        return "PreparingRebalance";
    case LEAT_GROUP_COMPLETING:
        return "CompletingRebalance";
    case LEAT_GROUP_STABLE:
        return "Stable";
    }
    return "Unknown";
}

/* ---- DescribeGroups ---- */

static bool group_describe(struct leat_kafka_request *request,
                           const struct leat_kafka_group_ask *ask,
                           struct leat_kafka_describe_groups_response_group *out)
{
    const struct leat_group_call *call = &ask->call;
    out->group_state = out->protocol_type = out->protocol_data = leat_kafka_text("");
    if (ask->set.rc == LEAT_E_NOT_FOUND) {
        out->group_state = leat_kafka_text("Dead"); /* and no error: so do Kafka's brokers */
        return true;
    }
    out->error_code = leat_kafka_group_error(ask->set.rc);
    if (ask->set.rc != LEAT_OK) return true;
    out->group_state = leat_kafka_text(phase_name(call->phase));
    out->protocol_type = call->mode == LEAT_SETS_GROUP
                             ? leat_kafka_group_string(call->group_protocol_type)
                             : leat_kafka_text("leat");
    out->protocol_data = leat_kafka_group_string(call->group_protocol);
    out->members.at = LEAT_KAFKA_MAKE(request, describe_groups_response_member, call->member_count);
    if (out->members.at == NULL) return false;
    out->members.count = (int32_t)call->member_count;
    for (uint32_t i = 0; i < call->member_count; i++) {
        const struct leat_group_row *row = &call->members[i];
        struct leat_kafka_describe_groups_response_member *member = &out->members.at[i];
        member->member_id = leat_kafka_group_string(row->member);
        member->group_instance_id = leat_kafka_group_nullable(row->instance);
        member->client_id = leat_kafka_group_string(row->client);
        member->client_host = leat_kafka_group_string(row->host);
        member->member_metadata = leat_kafka_group_bytes(row->metadata);
        member->member_assignment = leat_kafka_group_bytes(row->assignment);
    }
    return true;
}

static void describe_answer(struct leat_kafka_request *request, const struct many *many)
{
    const struct leat_kafka_describe_groups_request *body = request->body;
    struct leat_kafka_describe_groups_response *response =
        LEAT_KAFKA_MAKE(request, describe_groups_response, 1);
    struct leat_kafka_describe_groups_response_group *groups =
        LEAT_KAFKA_MAKE(request, describe_groups_response_group, many->count);
    bool ok = response != NULL && groups != NULL;
    for (uint32_t i = 0; i < many->count && ok; i++) {
        groups[i].group_id = body->groups.at[i];
        if (body->include_authorized_operations)
            groups[i].authorized_operations = LEAT_KAFKA_MAY_GROUP;
        ok = group_describe(request, many->asks[i], &groups[i]);
    }
    if (ok) {
        response->groups.at = groups;
        response->groups.count = (int32_t)many->count;
    }
    leat_kafka_answer(request, ok ? response : NULL);
}

void leat_kafka_handle_describe_groups(struct leat_kafka_request *request)
{
    const struct leat_kafka_describe_groups_request *body = request->body;
    many_start(request, LEAT_SETS_DESCRIBE, body->groups.at,
               body->groups.count > 0 ? (uint32_t)body->groups.count : 0, describe_answer);
}

/* ---- ListGroups ---- */

/* An empty filter lets all pass. */
static bool is_wanted(const struct leat_kafka_string *filter, int32_t count, const char *word)
{
    size_t bytes = strlen(word);
    for (int32_t i = 0; i < count; i++)
        if ((size_t)filter[i].bytes == bytes && strncasecmp(filter[i].text, word, bytes) == 0)
            return true;
    return count <= 0;
}

/* All groups are of the classic protocol; a native set is of none of Kafka's. */
static const char *type_name(const struct leat_group_listed *listed)
{
    return listed->mode == LEAT_SETS_GROUP ? "classic" : "leat";
}

static void list_answer(struct leat_kafka_request *request, const struct many *many)
{
    const struct leat_kafka_list_groups_request *body = request->body;
    size_t most = 0;
    int32_t count = 0;
    int16_t error = LEAT_KAFKA_NONE;
    for (uint32_t i = 0; i < many->count; i++) {
        most += many->asks[i]->call.listed_count;
        /* Homes of other nodes are listed there: clients ask every node. */
        if (many->asks[i]->set.rc != LEAT_OK && many->asks[i]->set.rc != LEAT_E_WRONG_SET_HOME)
            error = leat_kafka_group_error(many->asks[i]->set.rc);
    }
    struct leat_kafka_list_groups_response *response =
        LEAT_KAFKA_MAKE(request, list_groups_response, 1);
    struct leat_kafka_list_groups_response_group *groups =
        LEAT_KAFKA_MAKE(request, list_groups_response_group, most);
    for (uint32_t i = 0; i < many->count && groups != NULL; i++) {
        const struct leat_group_call *call = &many->asks[i]->call;
        for (uint32_t g = 0; g < call->listed_count && many->asks[i]->set.rc == LEAT_OK; g++) {
            const struct leat_group_listed *listed = &call->listed[g];
            if (!is_wanted(body->states_filter.at, body->states_filter.count,
                           phase_name(listed->phase)) ||
                !is_wanted(body->types_filter.at, body->types_filter.count, type_name(listed)))
                continue;
            groups[count].group_id = leat_kafka_group_string(listed->name);
            groups[count].protocol_type = listed->mode == LEAT_SETS_GROUP
                                              ? leat_kafka_group_string(listed->protocol_type)
                                              : leat_kafka_text("leat");
            groups[count].group_type = leat_kafka_text(type_name(listed));
            groups[count++].group_state = leat_kafka_text(phase_name(listed->phase));
        }
    }
    if (response != NULL && groups != NULL) {
        response->error_code = error;
        response->groups.at = groups;
        response->groups.count = count;
    }
    leat_kafka_answer(request, groups != NULL ? response : NULL);
}

void leat_kafka_handle_list_groups(struct leat_kafka_request *request)
{
    many_start(request, LEAT_SETS_LIST, NULL, LEAT_SETS_HOMES, list_answer);
}

/* ---- DeleteGroups ---- */

static void delete_answer(struct leat_kafka_request *request, const struct many *many)
{
    const struct leat_kafka_delete_groups_request *body = request->body;
    struct leat_kafka_delete_groups_response *response =
        LEAT_KAFKA_MAKE(request, delete_groups_response, 1);
    struct leat_kafka_delete_groups_response_result *results =
        LEAT_KAFKA_MAKE(request, delete_groups_response_result, many->count);
    for (uint32_t i = 0; i < many->count && results != NULL; i++) {
        results[i].group_id = body->groups_names.at[i];
        results[i].error_code = leat_kafka_group_error(many->asks[i]->set.rc);
    }
    if (response != NULL && results != NULL) {
        response->results.at = results;
        response->results.count = (int32_t)many->count;
    }
    leat_kafka_answer(request, results != NULL ? response : NULL);
}

void leat_kafka_handle_delete_groups(struct leat_kafka_request *request)
{
    const struct leat_kafka_delete_groups_request *body = request->body;
    many_start(request, LEAT_SETS_DELETE, body->groups_names.at,
               body->groups_names.count > 0 ? (uint32_t)body->groups_names.count : 0,
               delete_answer);
}
