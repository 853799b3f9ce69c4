/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of a home between two turns, whatever was asked of it in the turn before. */
#include "groups/internal.h"

/* Of groups with more logs the bytes are counted in slow builds only. */
#ifdef LEAT_SLOW_CHECKS
enum { LOGS_LOOKED_AT = LEAT_GROUPS_LOGS_MAX };
#else
enum { LOGS_LOOKED_AT = 16 };
#endif

/* A member has a request that waits for the group. Returns how many. */
static uint32_t held_check(const struct leat_groups_request *request)
{
    if (request == NULL) return 0;
    LEAT_ASSERT_CMP(request->state, ==, REQUEST_JOIN);
    return 1;
}

static uint32_t native_check(const struct leat_group *group)
{
    uint32_t held = 0, serial = 0;
    LEAT_ASSERT_CMP(group->member_count, <=, (uint32_t)LEAT_GROUPS_MEMBERS_MAX);
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = &group->members[i];
        /* Owners of logs are named by it. */
        LEAT_ASSERT_CMP(member->serial, >, serial);
        LEAT_ASSERT_CMP(member->serial, <, group->next_serial);
        LEAT_ASSERT(!member->gone || member->join == NULL);
        /* Members come and go with a generation. */
        LEAT_ASSERT(group->phase == LEAT_GROUP_PREPARING ||
                    (!member->fresh && !member->gone && member->join == NULL));
        serial = member->serial;
        held += held_check(member->join);
    }
    return held;
}

static uint32_t classic_check(const struct leat_classic *classic)
{
    enum leat_classic_phase phase = classic->phase;
    uint32_t held = 0, leaders = 0;
    size_t bytes = 0;
    LEAT_ASSERT_CMP(classic->member_count, <=, (uint32_t)LEAT_GROUPS_MEMBERS_MAX);
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        LEAT_ASSERT(phase == LEAT_CLASSIC_PREPARING || member->join == NULL);
        LEAT_ASSERT(phase == LEAT_CLASSIC_COMPLETING || member->sync == NULL);
        LEAT_ASSERT(phase != LEAT_CLASSIC_EMPTY || member->pending);
        LEAT_ASSERT(!member->pending || (member->join == NULL && member->sync == NULL));
        LEAT_ASSERT(!member->nameless || member->join != NULL); /* else it would never be heard */
        bytes += leat_classic_member_bytes(member) + member->assignment_bytes;
        leaders += strcmp(member->id, classic->leader) == 0;
        held += held_check(member->join) + held_check(member->sync);
    }
    LEAT_ASSERT_CMP(bytes, ==, classic->memory_bytes);
    /* The leader makes the assignment. */
    LEAT_ASSERT(leaders == 1 || (phase != LEAT_CLASSIC_COMPLETING && phase != LEAT_CLASSIC_STABLE));
    return held;
}

/* The table must fit a start entry: what a group takes may not be more than is counted. */
static void bytes_check(const struct leat_group *group)
{
    if (group->log_count > LOGS_LOOKED_AT) return;
    struct leat_group counted = *group;
    counted.room = NULL;
    leat_group_bytes_count(&counted);
    LEAT_ASSERT_CMP(counted.bytes, ==, group->bytes);
    LEAT_ASSERT_CMP(counted.memory_bytes, ==, group->memory_bytes);
}

/* Requests of a list. Returns how many are held by members. */
static uint32_t waits_check(const struct leat_groups *groups, const struct leat_list *list,
                            uint32_t *count)
{
    uint32_t held = 0;
    for (const struct leat_list *it = list->next; it != list; it = it->next) {
        const struct leat_groups_request *request =
            LEAT_CONTAINER(it, const struct leat_groups_request, link);
        LEAT_ASSERT((request->state == REQUEST_READ) == (list == &groups->reading));
        LEAT_ASSERT((request->state == REQUEST_QUERY) == (list == &groups->querying));
        LEAT_ASSERT(request->state != REQUEST_FREE);
        LEAT_ASSERT(request->state != REQUEST_WAKING || groups->life == LIFE_WAKING);
        /* Its ack is to come, or the join's turn is with the next slice. */
        LEAT_ASSERT(request->state != REQUEST_ACK || request->ack_sequence >= groups->acked ||
                    (groups->untold && request->kind == LEAT_GROUPS_JOIN));
        LEAT_ASSERT(request->state != REQUEST_ACK ||
                    request->ack_sequence < groups->gathering + (groups->builder.record_count > 0));
        held += request->state == REQUEST_JOIN;
        ++*count;
    }
    return held;
}

static void batches_check(const struct leat_groups *groups)
{
    bool leaves = groups->in_flight || groups->sealed_bytes > 0;
    LEAT_ASSERT(!groups->in_flight || groups->sealed_bytes == 0);
    LEAT_ASSERT_CMP(groups->sealed_bytes, <=, (uint32_t)LEAT_GROUPS_BATCH_BYTES_MAX);
    LEAT_ASSERT_CMP(groups->builder.used, <=, (uint32_t)LEAT_GROUPS_BATCH_BYTES_MAX);
    LEAT_ASSERT(groups->broken || groups->gathering - groups->acked == leaves);
}

/* Else what time has to bring would never come. */
static void timer_check(const struct leat_groups *groups)
{
    bool due = groups->unread || groups->untold || !leat_list_empty(&groups->reading) ||
               !leat_groups_all_acked(groups);
    for (uint32_t i = 0; i < groups->group_count && groups->life == LIFE_AWAKE && !due; i++)
        due = leat_groups_group_next_us(groups->groups[i]) != UINT64_MAX;
    LEAT_ASSERT(!due || leat_timer_armed(&groups->timer));
}

void leat_groups_check(const struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint32_t waiting = 0, held = 0;
    uint32_t joins = waits_check(groups, &groups->waiting, &waiting);
    LEAT_ASSERT(!groups->broken || waiting == 0);
    (void)waits_check(groups, &groups->reading, &waiting);
    LEAT_ASSERT(!groups->broken || (waiting == 0 && !groups->unread));
    (void)waits_check(groups, &groups->querying, &waiting);
    LEAT_ASSERT_CMP(waiting, ==, groups->shares.all);
    LEAT_ASSERT_CMP(groups->group_count, <=, (uint32_t)LEAT_GROUPS_PER_HOME_MAX);
    batches_check(groups);
    if (groups->broken) return; /* a table that was not read to its end, or is given up */
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        LEAT_ASSERT((group->classic != NULL) == (group->mode == LEAT_GROUPS_CLASSIC));
        LEAT_ASSERT(group->classic == NULL || group->member_count == 0);
        LEAT_ASSERT(group->room == groups->options.room);
        LEAT_ASSERT_CMP(group->log_count, <=, group->log_room);
        held += group->classic ? classic_check(group->classic) : native_check(group);
        bytes_check(group);
    }
    LEAT_ASSERT_CMP(held, ==, joins);
    timer_check(groups);
}
