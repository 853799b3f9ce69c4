/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups: their life, requests, acks and time. See groups.h for what is promised. */
#include "groups/groups.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "coordinator/coordinator.h"
#include "groups/internal.h"

enum { TOUCHED_BYTES_MAX = 64 * 1024 };

uint32_t leat_groups_home(const char *group, size_t bytes)
{
    return leat_crc32c(0, group, bytes) % LEAT_GROUPS_HOMES;
}

struct leat_stream_settings leat_groups_stream_settings(void)
{
    _Static_assert(LEAT_GROUPS_HOMES % LEAT_GROUPS_STREAMLETS == 0, "homes are shared out evenly");
    return (struct leat_stream_settings){.streamlets = LEAT_GROUPS_STREAMLETS,
                                         .logs = LEAT_GROUPS_HOMES / LEAT_GROUPS_STREAMLETS};
}

/* ---- time ---- */

/* SUBTLE: a group is deleted only when no request for it waits: requests wait for half a minute at most, and each
 * counts as use when it comes; the shortest retention is a minute. */
static void groups_expire(struct leat_groups *groups)
{
    uint64_t now = leat_groups_now_us(groups);
    if (!groups->options.retention_us || groups->life != LIFE_AWAKE || groups->broken) return;
    for (uint32_t i = groups->group_count; i-- > 0;) {
        struct leat_group *group = groups->groups[i];
        if (leat_group_peopled(group) || group->used_us == 0) group->used_us = now;
        if (now < group->used_us + groups->options.retention_us) continue;
        if (!leat_groups_record_fits(groups, RECORD_HEAD_BYTES)) return; /* with the next batch */
        leat_groups_group_forget(groups, group);
    }
}

/* ---- tables of other homes ---- */

static bool all_read(const struct leat_groups *groups)
{
    const struct leat_groups_room *room = groups->options.room;
    return !room || atomic_load_explicit(&room->unread, memory_order_relaxed) == 0;
}

/* Would the table grow by a group or a log? */
static bool brings_more(struct leat_groups *groups, const struct leat_groups_request *request)
{
    if (request->kind != LEAT_GROUPS_JOIN && request->kind != LEAT_GROUPS_CLASSIC_JOIN &&
        request->kind != LEAT_GROUPS_COMMIT)
        return false;
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (!group) return true;
    for (size_t i = 0; request->kind == LEAT_GROUPS_COMMIT && i < request->commit_count; i++)
        if (!leat_group_log_find(group, request->commits[i].log)) return true;
    return false;
}

/* Does a request of the same group wait already? Then this request waits too, to keep the order: otherwise an earlier
 * commit would undo an acked later commit, and the commit of a member that leaves afterwards would be refused. */
static bool waits_behind(const struct leat_groups *groups,
                         const struct leat_groups_request *request)
{
    if (request->kind != LEAT_GROUPS_COMMIT && request->kind != LEAT_GROUPS_LEAVE &&
        request->kind != LEAT_GROUPS_CLASSIC_LEAVE && request->kind != LEAT_GROUPS_DELETE &&
        request->kind != LEAT_GROUPS_OFFSETS_DELETE)
        return false;
    for (const struct leat_list *link = groups->reading.next; link != &groups->reading;
         link = link->next)
        if (strcmp(LEAT_CONTAINER(link, struct leat_groups_request, link)->group, request->group) ==
            0)
            return true;
    return false;
}

/* SUBTLE: an address that has half of the memory for tables must not get the other half by a restart.
 *  1. An address has half of the node's memory for tables, in some homes. The server starts again.
 *  2. Homes read their tables in turn. Before the homes with its groups are read, the address fills other homes.
 *  3. Then the other homes are read: the address has all of the memory.
 * So requests that add something wait until all homes have read their tables; other requests go on. An unreadable
 * home holds up requests for at most LEAT_GROUPS_READ_US_MAX. */
static bool waits_for_reading(struct leat_groups *groups, struct leat_groups_request *request)
{
    if (!waits_behind(groups, request) && (all_read(groups) || !brings_more(groups, request)))
        return false;
    leat_groups_wait_begin(groups, request, REQUEST_READ);
    return true;
}

static bool request_act(struct leat_groups *groups, struct leat_groups_request *request);

static void reading_go_on(struct leat_groups *groups)
{
    if (groups->unread && leat_groups_now_us(groups) >= groups->read_by_us)
        leat_groups_is_read(groups);
    while (!leat_list_empty(&groups->reading) && all_read(groups)) {
        struct leat_groups_request *request =
            LEAT_CONTAINER(groups->reading.next, struct leat_groups_request, link);
        leat_groups_wait_end(groups, request);
        if (request_act(groups, request)) request->on_done(request);
    }
}

static void acked_tell(struct leat_groups *groups)
{
    size_t rows = 0;
    groups->untold = false;
    LEAT_LIST_EACH(&groups->waiting, link)
    {
        struct leat_groups_request *request =
            LEAT_CONTAINER(link, struct leat_groups_request, link);
        if (request->state != REQUEST_ACK || request->ack_sequence >= groups->acked) continue;
        if (request->kind == LEAT_GROUPS_JOIN) {
            groups->untold |= rows >= SLICE_ROWS;
            if (rows >= SLICE_ROWS) continue;
            rows += leat_groups_join_fill(groups, request);
        }
        leat_groups_tell(groups, request);
    }
}

static void timer_expired(struct leat_timer *timer)
{
    struct leat_groups *groups = timer->owner;
    uint64_t now = leat_groups_now_us(groups);
    if (groups->untold) acked_tell(groups);
    reading_go_on(groups);
    groups_expire(groups);
    leat_groups_append_try(groups);
    for (uint32_t i = 0; i < groups->group_count && groups->life == LIFE_AWAKE && !groups->broken;
         i++)
        leat_groups_group_step(groups, groups->groups[i]);
    LEAT_LIST_EACH(&groups->waiting, link)
    {
        struct leat_groups_request *request =
            LEAT_CONTAINER(link, struct leat_groups_request, link);
        if (request->state == REQUEST_JOIN || request->deadline_us > now) continue;
        leat_mem_free(request->assigned);
        request->assigned = NULL;
        request->assigned_count = 0;
        (void)leat_groups_answer(
            request, LEAT_E_TIMEOUT,
            "the consumer group's home log did not answer in time; whether this took effect "
            "is unknown");
        leat_groups_tell(groups, request);
    }
    leat_groups_timer_arm(groups);
}

/* ---- requests ---- */

static bool request_do(struct leat_groups *groups, struct leat_groups_request *request)
{
    return !waits_for_reading(groups, request) && request_act(groups, request);
}

static bool request_act(struct leat_groups *groups, struct leat_groups_request *request)
{
    switch (request->kind) {
    case LEAT_GROUPS_JOIN:
        return leat_groups_do_join(groups, request);
    case LEAT_GROUPS_HEARTBEAT:
        return leat_groups_do_heartbeat(groups, request);
    case LEAT_GROUPS_LEAVE:
        return leat_groups_do_leave(groups, request);
    case LEAT_GROUPS_COMMIT:
        return leat_groups_do_commit(groups, request);
    case LEAT_GROUPS_FETCH:
        return leat_groups_do_fetch(groups, request);
    case LEAT_GROUPS_DELETE:
        return leat_groups_do_delete(groups, request);
    case LEAT_GROUPS_OFFSETS_DELETE:
        return leat_groups_do_offsets_delete(groups, request);
    case LEAT_GROUPS_CLASSIC_JOIN:
        return leat_groups_do_classic_join(groups, request);
    case LEAT_GROUPS_CLASSIC_SYNC:
        return leat_groups_do_classic_sync(groups, request);
    case LEAT_GROUPS_CLASSIC_HEARTBEAT:
        return leat_groups_do_classic_heartbeat(groups, request);
    case LEAT_GROUPS_CLASSIC_LEAVE:
        return leat_groups_do_classic_leave(groups, request);
    case LEAT_GROUPS_DESCRIBE:
        return leat_groups_do_describe(groups, request);
    case LEAT_GROUPS_LIST:
        return leat_groups_do_list(groups, request);
    }
    return leat_groups_answer(request, LEAT_E_INVALID, "unknown request");
}

/* ---- acks ---- */

static void wake_up(struct leat_groups *groups)
{
    leat_groups_enter(groups, LIFE_AWAKE);
    for (uint32_t i = 0; i < groups->group_count; i++) {
        struct leat_group *group = groups->groups[i];
        if (group->classic) leat_groups_classic_wake(groups, group->classic);
        for (uint32_t m = 0; m < group->member_count; m++)
            group->members[m].deadline_us =
                leat_groups_now_us(groups) + (uint64_t)group->members[m].session_ms * 1000;
    }
    /* Requests that waited for this are first in the list; if they wait again, they are appended. The list is not
     * walked: a request may end another request, as a join ends an earlier join of the same member. */
    while (!leat_list_empty(&groups->waiting)) {
        struct leat_groups_request *request =
            LEAT_CONTAINER(groups->waiting.next, struct leat_groups_request, link);
        if (request->state != REQUEST_WAKING) break;
        leat_groups_wait_end(groups, request);
        if (request_do(groups, request)) request->on_done(request);
    }
}

static void append_acked(struct leat_append *append, leat_err rc)
{
    struct leat_groups *groups = append->owner;
    groups->in_flight = false;
    if (rc != LEAT_OK) {
        leat_groups_break(groups, rc, leat_err_text(rc));
        return;
    }
    groups->acked = groups->gathering; /* the batch in flight was the last one sealed */
    if (groups->life == LIFE_WAKING) wake_up(groups);
    acked_tell(groups);
    leat_groups_append_try(groups);
    if (groups->touched_bytes > TOUCHED_BYTES_MAX && leat_groups_all_acked(groups))
        leat_groups_buffers_renew(groups);
    leat_groups_timer_arm(groups);
}

/* ---- from outside ---- */

/* Kafka's clients name groups as they like, "my group/2" too. */
static bool name_ok(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
    return name[0] != '\0';
}

/* A request that only reads does not count as use. */
static void group_note_use(struct leat_groups *groups, const struct leat_groups_request *request)
{
    bool looks = request->kind == LEAT_GROUPS_FETCH || request->kind == LEAT_GROUPS_DESCRIBE ||
                 request->kind == LEAT_GROUPS_LIST;
    if (looks || !groups->options.retention_us) return;
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (group) group->used_us = leat_groups_now_us(groups);
}

bool leat_groups_do(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    request->state = REQUEST_FREE;
    request->assigned = NULL;
    request->assigned_count = 0;
    request->answer_bytes = 0;
    if (request->classic) request->classic->memory = NULL;
    if (request->kind != LEAT_GROUPS_LIST && !name_ok(request->group))
        return leat_groups_answer(
            request, LEAT_E_BAD_NAME,
            "a group's name has 1 to 249 bytes, none of them control characters");
    if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    /* An address may be connected to many cores and nodes, and reach a home through all of them. Heartbeats don't
     * wait: if this limit applied to heartbeats, members of large groups would lose their sessions, and so would
     * other members when many addresses have all places. */
    bool beat =
        request->kind == LEAT_GROUPS_HEARTBEAT || request->kind == LEAT_GROUPS_CLASSIC_HEARTBEAT;
    bool may_wait = !beat || groups->life != LIFE_AWAKE;
    if (may_wait && !leat_shares_has(&groups->shares, request->address))
        return leat_groups_answer(request, LEAT_E_AGAIN,
                                  "as many requests wait at this home as may, or of those of this "
                                  "address");
    bool answered = false;
    if (groups->life == LIFE_AWAKE) {
        answered = request_do(groups, request);
        group_note_use(groups, request);
    } else {
        leat_groups_wait_begin(groups, request, REQUEST_WAKING);
        if (groups->life == LIFE_NEW) {
            leat_groups_enter(groups, LIFE_WAKING);
            leat_groups_nothing_add(groups);
        }
        leat_groups_append_try(groups);
    }
    if (!beat || !answered) leat_groups_timer_arm(groups);
    return answered;
}

void leat_groups_cancel(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    /* A commit that asks about segment groups has queries under way that point to the request. */
    if (request->state == REQUEST_FREE || request->state == REQUEST_QUERY) return;
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (group && group->classic) leat_groups_classic_cancel(groups, group, request);
    for (uint32_t i = 0; group && i < group->member_count; i++) {
        if (group->members[i].join != request) continue;
        group->members[i].join = NULL;
        /* The member does not know its id yet, so can't come back. Any other member may come back within its
         * session. */
        if (group->members[i].fresh) group->members[i].gone = true;
        group->members[i].deadline_us =
            leat_groups_now_us(groups) + (uint64_t)group->members[i].session_ms * 1000;
    }
    leat_mem_free(request->assigned);
    request->assigned = NULL;
    request->assigned_count = 0;
    (void)leat_groups_answer(request, LEAT_E_CANCELLED, "cancelled");
    leat_groups_tell(groups, request);
    leat_groups_timer_arm(groups);
}

void leat_groups_on_room(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    leat_groups_append_try(groups);
    leat_groups_timer_arm(groups);
}

static bool group_reads(const struct leat_group *group, uint32_t stream)
{
    for (uint32_t m = 0; m < group->member_count; m++)
        for (uint32_t s = 0; s < group->members[m].stream_count; s++)
            if (group->members[m].streams[s] == stream) return true;
    return false;
}

uint32_t leat_groups_on_stream_changed(struct leat_groups *groups, uint32_t stream)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint32_t looked = groups->group_count;
    bool any = false;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        looked += groups->groups[i]->member_count;
        if (!group_reads(groups->groups[i], stream)) continue;
        leat_groups_prepare(groups, groups->groups[i]);
        any = true;
    }
    if (any) leat_groups_timer_arm(groups);
    return looked;
}

uint32_t leat_groups_on_stream_deleted(struct leat_groups *groups, uint32_t stream)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint32_t looked = groups->group_count;
    /* Not recorded: ids are never reused, and the next generation's record leaves the logs out. */
    for (uint32_t i = 0; i < groups->group_count; i++) {
        if (leat_group_stream_drop(groups->groups[i], stream) == 0) continue;
        looked += groups->groups[i]->log_count;
        leat_group_bytes_count(groups->groups[i]);
    }
    return looked + leat_groups_on_stream_changed(groups, stream);
}

const char *leat_groups_broken(const struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    return groups->broken ? groups->why : NULL;
}

void leat_groups_info(const struct leat_groups *groups, struct leat_groups_info *out_info)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    *out_info = (struct leat_groups_info){.groups = groups->group_count,
                                          .table_bytes = leat_groups_table_bytes(groups),
                                          .waiting = groups->shares.all};
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        out_info->members +=
            group->member_count + (group->classic ? group->classic->member_count : 0);
    }
}

/* ---- life ---- */

leat_err leat_groups_create(const struct leat_groups_options *options,
                            struct leat_groups **out_groups)
{
    struct leat_groups *groups = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *groups);
    if (!groups) return LEAT_E_NO_MEMORY;
    groups->options = *options;
    leat_shares_init(&groups->shares, options->env->random, LEAT_GROUPS_WAITING_MAX);
    if (groups->options.settle_us == 0) groups->options.settle_us = LEAT_GROUPS_SETTLE_US_DEFAULT;
    if (groups->options.group_bytes_max == 0)
        groups->options.group_bytes_max = LEAT_CLASSIC_MEMORY_BYTES_MAX;
    if (groups->options.classic_settle_us == 0)
        groups->options.classic_settle_us = LEAT_CLASSIC_SETTLE_US_DEFAULT;
    leat_list_init(&groups->waiting);
    leat_list_init(&groups->querying);
    leat_list_init(&groups->reading);
    groups->timer = (struct leat_timer){.on_expired = timer_expired, .owner = groups};
    groups->append = (struct leat_append){.on_acked = append_acked, .owner = groups};
    leat_groups_buffers_renew(groups);
    if (!groups->buffers) {
        leat_groups_destroy(&groups);
        return LEAT_E_NO_MEMORY;
    }
    if (options->room) atomic_fetch_add_explicit(&options->room->unread, 1, memory_order_relaxed);
    groups->unread = options->room != NULL;
    groups->read_by_us = leat_groups_now_us(groups) + LEAT_GROUPS_READ_US_MAX;
    leat_groups_timer_arm(groups);
    *out_groups = groups;
    return LEAT_OK;
}

void leat_groups_destroy(struct leat_groups **groups)
{
    struct leat_groups *it = *groups;
    if (!it) return;
    LEAT_ASSERT(!it->in_flight);
    leat_groups_is_read(it);
    if (!LEAT_BUG(ASKING_STAYS)) leat_groups_queries_leave(it);
    LEAT_ASSERT(leat_list_empty(&it->querying));
    leat_groups_joins_forget(it);
    leat_groups_wait_fail(it, &it->waiting, LEAT_E_TIMEOUT, leat_groups_gone_words);
    leat_groups_wait_fail(it, &it->reading, LEAT_E_TIMEOUT, leat_groups_gone_words);
    leat_timer_stop(it->options.timers, &it->timer);
    leat_groups_table_clear(it);
    leat_mem_free(it->buffers);
    leat_mem_free(it);
    *groups = NULL;
}
