/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeGroups, ListGroups, DeleteGroups: groups as tools see them. Native groups are among them, of
 * the protocol type "leat" and without members to show. */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/bug.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/group.h"

/* One ask for each group, or for each home. */
static void many_start(struct leat_kafka_request *request, enum leat_groups_kind kind,
                       const struct leat_kafka_string *names, uint32_t count,
                       void (*answer)(struct leat_kafka_request *,
                                      const struct leat_kafka_group_asks *))
{
    struct leat_kafka_group_asks *many = leat_kafka_group_asks_make(request, kind, count);
    if (many == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        many->asks[i]->home = i;
        if (names != NULL) many->asks[i]->group = names[i];
    }
    many->on_all = answer;
    leat_kafka_group_asks_start(many);
}

static const char *phase_name(enum leat_classic_phase phase)
{
    switch (phase) {
    case LEAT_CLASSIC_EMPTY:
        return "Empty";
    case LEAT_CLASSIC_PREPARING:
        return "PreparingRebalance";
    case LEAT_CLASSIC_COMPLETING:
        return "CompletingRebalance";
    case LEAT_CLASSIC_STABLE:
        return "Stable";
    }
    return "Unknown";
}

/* ---- DescribeGroups ---- */

static bool group_describe(struct leat_kafka_request *request,
                           const struct leat_kafka_group_ask *ask,
                           struct leat_kafka_describe_groups_response_group *out)
{
    const struct leat_classic_call *call = &ask->call;
    out->group_state = out->protocol_type = out->protocol_data = leat_kafka_text("");
    if (ask->home_request.rc == LEAT_E_NOT_FOUND) {
        out->group_state = leat_kafka_text("Dead"); /* and no error: so do Kafka's brokers */
        return true;
    }
    out->error_code = leat_kafka_group_error(ask->home_request.rc);
    if (ask->home_request.rc != LEAT_OK) return true;
    out->group_state = leat_kafka_text(phase_name(call->phase));
    out->protocol_type = call->mode == LEAT_GROUPS_CLASSIC
                             ? leat_kafka_group_string(call->group_protocol_type)
                             : leat_kafka_text("leat");
    out->protocol_data = leat_kafka_group_string(call->group_protocol);
    out->members.at = LEAT_KAFKA_MAKE(request, describe_groups_response_member, call->member_count);
    if (out->members.at == NULL) return false;
    out->members.count = (int32_t)call->member_count;
    if (LEAT_BUG(MEMBER_UNTOLD) && call->member_count > 1) out->members.count--;
    for (uint32_t i = 0; i < call->member_count; i++) {
        const struct leat_classic_row *row = &call->members[i];
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

static void describe_answer(struct leat_kafka_request *request,
                            const struct leat_kafka_group_asks *many)
{
    const struct leat_kafka_describe_groups_request *body = request->body;
    struct leat_kafka_describe_groups_response *response =
        LEAT_KAFKA_MAKE(request, describe_groups_response, 1);
    struct leat_kafka_describe_groups_response_group *groups =
        LEAT_KAFKA_MAKE(request, describe_groups_response_group, many->count);
    bool ok = response != NULL && groups != NULL;
    LEAT_ASSERT(many->count == 0 || (int32_t)many->count == body->groups.count);
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
    many_start(request, LEAT_GROUPS_DESCRIBE, body->groups.at,
               body->groups.count > 0 ? (uint32_t)body->groups.count : 0, describe_answer);
}

/* ---- ListGroups ---- */

/* All groups are of the classic protocol; a native group is of none of Kafka's. */
static const char *type_name(enum leat_groups_mode mode)
{
    return mode == LEAT_GROUPS_CLASSIC ? "classic" : "leat";
}

static bool word_same(struct leat_kafka_string text, const char *word)
{
    return (size_t)text.bytes == strlen(word) && strncasecmp(text.text, word, strlen(word)) == 0;
}

/* A bit for each phase, and one for each mode, that the filters let pass: they are read once, not for each group. An
 * empty filter lets all pass. */
static unsigned phases_wanted(const struct leat_kafka_list_groups_request *body)
{
    unsigned wanted = body->states_filter.count > 0 ? 0 : ~0U;
    for (int32_t i = 0; i < body->states_filter.count; i++)
        for (unsigned phase = 0; phase <= LEAT_CLASSIC_STABLE; phase++)
            if (word_same(body->states_filter.at[i], phase_name((enum leat_classic_phase)phase)))
                wanted |= 1U << phase;
    return wanted;
}

static unsigned modes_wanted(const struct leat_kafka_list_groups_request *body)
{
    unsigned wanted = body->types_filter.count > 0 ? 0 : ~0U;
    for (int32_t i = 0; i < body->types_filter.count; i++)
        for (unsigned mode = 0; mode <= LEAT_GROUPS_CLASSIC; mode++)
            if (word_same(body->types_filter.at[i], type_name((enum leat_groups_mode)mode)))
                wanted |= 1U << mode;
    return wanted;
}

/* SUBTLE: groups of a home whose log is out of order are left out, and the answer has no error for them.
 *  1. The answer has one code, for all that the node lists. Kafka's client for Java takes nothing from an answer with
 *     one; COORDINATOR_NOT_AVAILABLE it asks again until its time is over.
 *  2. One damaged home of 64 would so hide the groups of all homes of its node, until an operator comes.
 *  3. A home that starts is ready in a moment: that is told by the code, and the client asks again.
 * Operators see such a home by name in leat cluster status; a client that asks for one of its groups is refused. */
static int16_t list_error(leat_err rc)
{
    /* Homes of other nodes are listed there: clients ask every node. */
    bool left_out = rc == LEAT_E_WRONG_GROUP_HOME || leat_err_class(rc) == LEAT_CLASS_FATAL;
    return left_out ? LEAT_KAFKA_NONE : leat_kafka_group_error(rc);
}

static void list_answer(struct leat_kafka_request *request,
                        const struct leat_kafka_group_asks *many)
{
    const struct leat_kafka_list_groups_request *body = request->body;
    const unsigned phases = phases_wanted(body), modes = modes_wanted(body);
    size_t most = 0;
    int32_t count = 0;
    int16_t error = LEAT_KAFKA_NONE;
    for (uint32_t i = 0; i < many->count; i++) {
        most += many->asks[i]->call.listed_count;
        int16_t own = list_error(many->asks[i]->home_request.rc);
        if (own != LEAT_KAFKA_NONE) error = own;
    }
    struct leat_kafka_list_groups_response *response =
        LEAT_KAFKA_MAKE(request, list_groups_response, 1);
    struct leat_kafka_list_groups_response_group *groups =
        LEAT_KAFKA_MAKE(request, list_groups_response_group, most);
    for (uint32_t i = 0; i < many->count && groups != NULL; i++) {
        const struct leat_classic_call *call = &many->asks[i]->call;
        for (uint32_t g = 0; g < call->listed_count && many->asks[i]->home_request.rc == LEAT_OK;
             g++) {
            const struct leat_classic_listed *listed = &call->listed[g];
            if ((phases >> (unsigned)listed->phase & modes >> (unsigned)listed->mode & 1U) == 0)
                continue;
            LEAT_ASSERT_CMP((size_t)count, <, most);
            groups[count].group_id = leat_kafka_group_string(listed->name);
            groups[count].protocol_type = listed->mode == LEAT_GROUPS_CLASSIC
                                              ? leat_kafka_group_string(listed->protocol_type)
                                              : leat_kafka_text("leat");
            groups[count].group_type = leat_kafka_text(type_name(listed->mode));
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
    many_start(request, LEAT_GROUPS_LIST, NULL, LEAT_GROUPS_HOMES, list_answer);
}

/* ---- DeleteGroups ---- */

static void delete_answer(struct leat_kafka_request *request,
                          const struct leat_kafka_group_asks *many)
{
    const struct leat_kafka_delete_groups_request *body = request->body;
    struct leat_kafka_delete_groups_response *response =
        LEAT_KAFKA_MAKE(request, delete_groups_response, 1);
    struct leat_kafka_delete_groups_response_result *results =
        LEAT_KAFKA_MAKE(request, delete_groups_response_result, many->count);
    LEAT_ASSERT(many->count == 0 || (int32_t)many->count == body->groups_names.count);
    for (uint32_t i = 0; i < many->count && results != NULL; i++) {
        results[i].group_id = body->groups_names.at[i];
        results[i].error_code = leat_kafka_group_error(many->asks[i]->home_request.rc);
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
    many_start(request, LEAT_GROUPS_DELETE, body->groups_names.at,
               body->groups_names.count > 0 ? (uint32_t)body->groups_names.count : 0,
               delete_answer);
}
