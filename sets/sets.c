/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer sets: their life, requests, acks and time. See sets.h for what is promised. */
#include "sets/sets.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "coordinator/coordinator.h"
#include "sets/internal.h"

enum { TOUCHED_BYTES_MAX = 64 * 1024 };

uint32_t leat_sets_home(const char *set, size_t bytes)
{
    return leat_crc32c(0, set, bytes) % LEAT_SETS_HOMES;
}

struct leat_stream_settings leat_sets_stream_settings(void)
{
    _Static_assert(LEAT_SETS_HOMES % LEAT_SETS_STREAMLETS == 0, "homes are shared out evenly");
    return (struct leat_stream_settings){.streamlets = LEAT_SETS_STREAMLETS,
                                         .logs = LEAT_SETS_HOMES / LEAT_SETS_STREAMLETS};
}

/* ---- time ---- */

/* SUBTLE: a set goes only when nobody waits for anything of it: requests wait for half a minute at most,
 * and each counts as use when it comes; the shortest retention is a minute. */
static void sets_expire(struct leat_sets *sets)
{
    uint64_t now = leat_sets_now_us(sets);
    if (!sets->options.retention_us || sets->life != LIFE_AWAKE || sets->broken) return;
    for (uint32_t i = sets->set_count; i-- > 0;) {
        struct leat_set *set = sets->sets[i];
        if (leat_set_peopled(set) || set->used_us == 0) set->used_us = now;
        if (now < set->used_us + sets->options.retention_us) continue;
        if (!leat_sets_record_fits(sets, RECORD_HEAD_BYTES)) return; /* with the next batch */
        leat_sets_set_forget(sets, set);
    }
}

/* ---- tables of other homes ---- */

static bool all_read(const struct leat_sets *sets)
{
    const struct leat_sets_room *room = sets->options.room;
    return !room || atomic_load_explicit(&room->unread, memory_order_relaxed) == 0;
}

/* Would the table grow by a set or a log? */
static bool brings_more(struct leat_sets *sets, const struct leat_sets_request *request)
{
    if (request->kind != LEAT_SETS_JOIN && request->kind != LEAT_SETS_GROUP_JOIN &&
        request->kind != LEAT_SETS_COMMIT)
        return false;
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (!set) return true;
    for (size_t i = 0; request->kind == LEAT_SETS_COMMIT && i < request->commit_count; i++)
        if (!leat_set_log_find(set, request->commits[i].log)) return true;
    return false;
}

/* Behind one of the same set that waits, so that they keep their order: a commit that was acked would be undone by an
 * earlier one, and who leaves behind his commit would have it refused. */
static bool waits_behind(const struct leat_sets *sets, const struct leat_sets_request *request)
{
    if (request->kind != LEAT_SETS_COMMIT && request->kind != LEAT_SETS_LEAVE &&
        request->kind != LEAT_SETS_GROUP_LEAVE && request->kind != LEAT_SETS_DELETE &&
        request->kind != LEAT_SETS_OFFSETS_DELETE)
        return false;
    for (const struct leat_list *link = sets->reading.next; link != &sets->reading;
         link = link->next)
        if (strcmp(LEAT_CONTAINER(link, struct leat_sets_request, link)->set, request->set) == 0)
            return true;
    return false;
}

/* SUBTLE: an address that has half of the memory for tables must not get the other half by a restart.
 *  1. An address has half of the node's memory for tables, in some homes. The server starts again.
 *  2. Homes read their tables one after the other. Those are not read yet; the address fills others.
 *  3. Then the other homes are read: the address has all of the memory.
 * So what is new waits until all homes have read theirs; what is there goes on. A home that can't be read holds up
 * nobody for longer than LEAT_SETS_READ_US_MAX. */
static bool waits_for_reading(struct leat_sets *sets, struct leat_sets_request *request)
{
    if (!waits_behind(sets, request) && (all_read(sets) || !brings_more(sets, request)))
        return false;
    leat_sets_wait_begin(sets, request, REQUEST_READ);
    return true;
}

static bool request_act(struct leat_sets *sets, struct leat_sets_request *request);

static void reading_go_on(struct leat_sets *sets)
{
    if (sets->unread && leat_sets_now_us(sets) >= sets->read_by_us) leat_sets_is_read(sets);
    while (!leat_list_empty(&sets->reading) && all_read(sets)) {
        struct leat_sets_request *request =
            LEAT_CONTAINER(sets->reading.next, struct leat_sets_request, link);
        leat_sets_wait_end(sets, request);
        if (request_act(sets, request)) request->on_done(request);
    }
}

static void acked_tell(struct leat_sets *sets)
{
    size_t rows = 0;
    sets->untold = false;
    LEAT_LIST_EACH(&sets->waiting, link)
    {
        struct leat_sets_request *request = LEAT_CONTAINER(link, struct leat_sets_request, link);
        bool soon = LEAT_BUG(COMMIT_BEFORE_ACK);
        if (request->state != REQUEST_ACK || request->ack_sequence >= sets->acked + soon) continue;
        if (request->kind == LEAT_SETS_JOIN) {
            sets->untold |= rows >= SLICE_ROWS;
            if (rows >= SLICE_ROWS) continue;
            rows += leat_sets_join_fill(sets, request);
        }
        leat_sets_tell(sets, request);
    }
}

static void timer_expired(struct leat_timer *timer)
{
    struct leat_sets *sets = timer->owner;
    uint64_t now = leat_sets_now_us(sets);
    if (sets->untold) acked_tell(sets);
    reading_go_on(sets);
    sets_expire(sets);
    leat_sets_append_try(sets);
    for (uint32_t i = 0; i < sets->set_count && sets->life == LIFE_AWAKE && !sets->broken; i++)
        leat_sets_set_step(sets, sets->sets[i]);
    LEAT_LIST_EACH(&sets->waiting, link)
    {
        struct leat_sets_request *request = LEAT_CONTAINER(link, struct leat_sets_request, link);
        if (request->state == REQUEST_JOIN || request->deadline_us > now) continue;
        leat_mem_free(request->assigned);
        request->assigned = NULL;
        request->assigned_count = 0;
        (void)leat_sets_answer(
            request, LEAT_E_TIMEOUT,
            "the consumer set's home log did not answer in time; whether this took effect "
            "is unknown");
        leat_sets_tell(sets, request);
    }
    leat_sets_timer_arm(sets);
}

/* ---- requests ---- */

static bool request_do(struct leat_sets *sets, struct leat_sets_request *request)
{
    if (sets->broken) return leat_sets_answer(request, sets->broken_rc, sets->why);
    return !waits_for_reading(sets, request) && request_act(sets, request);
}

static bool request_act(struct leat_sets *sets, struct leat_sets_request *request)
{
    switch (request->kind) {
    case LEAT_SETS_JOIN:
        return leat_sets_do_join(sets, request);
    case LEAT_SETS_HEARTBEAT:
        return leat_sets_do_heartbeat(sets, request);
    case LEAT_SETS_LEAVE:
        return leat_sets_do_leave(sets, request);
    case LEAT_SETS_COMMIT:
        return leat_sets_do_commit(sets, request);
    case LEAT_SETS_FETCH:
        return leat_sets_do_fetch(sets, request);
    case LEAT_SETS_DELETE:
        return leat_sets_do_delete(sets, request);
    case LEAT_SETS_OFFSETS_DELETE:
        return leat_sets_do_offsets_delete(sets, request);
    case LEAT_SETS_GROUP_JOIN:
        return leat_sets_do_group_join(sets, request);
    case LEAT_SETS_GROUP_SYNC:
        return leat_sets_do_group_sync(sets, request);
    case LEAT_SETS_GROUP_HEARTBEAT:
        return leat_sets_do_group_heartbeat(sets, request);
    case LEAT_SETS_GROUP_LEAVE:
        return leat_sets_do_group_leave(sets, request);
    case LEAT_SETS_DESCRIBE:
        return leat_sets_do_describe(sets, request);
    case LEAT_SETS_LIST:
        return leat_sets_do_list(sets, request);
    }
    return leat_sets_answer(request, LEAT_E_INVALID, "unknown request");
}

/* ---- acks ---- */

static void wake_up(struct leat_sets *sets)
{
    sets->life = LIFE_AWAKE;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        struct leat_set *set = sets->sets[i];
        if (set->group) leat_sets_group_wake(sets, set->group);
        for (uint32_t m = 0; m < set->member_count; m++)
            set->members[m].deadline_us =
                leat_sets_now_us(sets) + (uint64_t)set->members[m].session_ms * 1000;
    }
    /* Those that waited for this stand in front; what they wait for next stands behind them. The
     * list is not walked: one request may end another, a join the same member's earlier one. */
    while (!leat_list_empty(&sets->waiting)) {
        struct leat_sets_request *request =
            LEAT_CONTAINER(sets->waiting.next, struct leat_sets_request, link);
        if (request->state != REQUEST_WAKING) break;
        leat_sets_wait_end(sets, request);
        if (request_do(sets, request)) request->on_done(request);
    }
}

static void append_acked(struct leat_append *append, leat_err rc)
{
    struct leat_sets *sets = append->owner;
    sets->in_flight = false;
    if (rc != LEAT_OK) {
        leat_sets_break(sets, rc, leat_err_text(rc));
        return;
    }
    sets->acked = sets->gathering; /* the batch in flight was the last one sealed */
    if (sets->life == LIFE_WAKING) wake_up(sets);
    acked_tell(sets);
    leat_sets_append_try(sets);
    if (sets->touched_bytes > TOUCHED_BYTES_MAX && leat_sets_all_acked(sets))
        leat_sets_buffers_renew(sets);
    leat_sets_timer_arm(sets);
}

/* ---- from outside ---- */

/* Kafka's clients name groups as they like, "my group/2" too. */
static bool name_ok(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
    return name[0] != '\0';
}

/* Who only looks keeps nothing. */
static void set_note_use(struct leat_sets *sets, const struct leat_sets_request *request)
{
    bool looks = request->kind == LEAT_SETS_FETCH || request->kind == LEAT_SETS_DESCRIBE ||
                 request->kind == LEAT_SETS_LIST;
    if (looks || !sets->options.retention_us) return;
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (set) set->used_us = leat_sets_now_us(sets);
}

bool leat_sets_do(struct leat_sets *sets, struct leat_sets_request *request)
{
    request->state = REQUEST_FREE;
    request->assigned = NULL;
    request->assigned_count = 0;
    request->answer_bytes = 0;
    if (request->group) request->group->memory = NULL;
    if (request->kind != LEAT_SETS_LIST && !name_ok(request->set))
        return leat_sets_answer(request, LEAT_E_BAD_NAME,
                                "a set's name has 1 to 249 bytes, none of them control characters");
    if (sets->broken) return leat_sets_answer(request, sets->broken_rc, sets->why);
    /* An address that is connected to many cores and nodes comes to one home by all of them. Heartbeats don't wait:
     * refused with what does, they would cost members of large groups their sessions, and others theirs when many
     * addresses have all places. */
    bool beat = request->kind == LEAT_SETS_HEARTBEAT || request->kind == LEAT_SETS_GROUP_HEARTBEAT;
    bool may_wait = !beat || sets->life != LIFE_AWAKE;
    if (may_wait && !leat_shares_has(&sets->shares, request->address))
        return leat_sets_answer(request, LEAT_E_AGAIN,
                                "as many requests wait at this home as may, or of those of this "
                                "address");
    bool answered = false;
    if (sets->life == LIFE_AWAKE) {
        answered = request_do(sets, request);
        set_note_use(sets, request);
    } else {
        leat_sets_wait_begin(sets, request, REQUEST_WAKING);
        if (sets->life == LIFE_NEW) {
            sets->life = LIFE_WAKING;
            struct leat_msg_writer writer = leat_sets_record_begin(sets, RECORD_NOTHING, 0);
            leat_sets_record_add(sets, &writer);
        }
        leat_sets_append_try(sets);
    }
    if (!beat || !answered) leat_sets_timer_arm(sets);
    return answered;
}

void leat_sets_cancel(struct leat_sets *sets, struct leat_sets_request *request)
{
    /* A commit that asks about groups has questions under way that point at it. */
    if (request->state == REQUEST_FREE || request->state == REQUEST_QUERY) return;
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (set && set->group) leat_sets_group_cancel(sets, set, request);
    for (uint32_t i = 0; set && i < set->member_count; i++) {
        if (set->members[i].join != request) continue;
        set->members[i].join = NULL;
        /* Nobody knows its name yet: it can't come back. Others have their session to do so. */
        if (set->members[i].fresh) set->members[i].gone = true;
        set->members[i].deadline_us =
            leat_sets_now_us(sets) + (uint64_t)set->members[i].session_ms * 1000;
    }
    leat_mem_free(request->assigned);
    request->assigned = NULL;
    request->assigned_count = 0;
    (void)leat_sets_answer(request, LEAT_E_CANCELLED, "cancelled");
    leat_sets_tell(sets, request);
    leat_sets_timer_arm(sets);
}

void leat_sets_on_room(struct leat_sets *sets)
{
    leat_sets_append_try(sets);
    leat_sets_timer_arm(sets);
}

static bool set_reads(const struct leat_set *set, uint32_t stream)
{
    for (uint32_t m = 0; m < set->member_count; m++)
        for (uint32_t s = 0; s < set->members[m].stream_count; s++)
            if (set->members[m].streams[s] == stream) return true;
    return false;
}

uint32_t leat_sets_on_stream_changed(struct leat_sets *sets, uint32_t stream)
{
    uint32_t looked = sets->set_count;
    bool any = false;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        looked += sets->sets[i]->member_count;
        if (!set_reads(sets->sets[i], stream)) continue;
        leat_sets_prepare(sets, sets->sets[i]);
        any = true;
    }
    if (any) leat_sets_timer_arm(sets);
    return looked;
}

uint32_t leat_sets_on_stream_deleted(struct leat_sets *sets, uint32_t stream)
{
    uint32_t looked = sets->set_count;
    /* Not recorded: ids are never reused, and the next generation's record leaves the logs out. */
    for (uint32_t i = 0; i < sets->set_count; i++) {
        if (leat_set_stream_drop(sets->sets[i], stream) == 0) continue;
        looked += sets->sets[i]->log_count;
        leat_set_bytes_count(sets->sets[i]);
    }
    return looked + leat_sets_on_stream_changed(sets, stream);
}

const char *leat_sets_broken(const struct leat_sets *sets)
{
    return sets->broken ? sets->why : NULL;
}

void leat_sets_info(const struct leat_sets *sets, struct leat_sets_info *out_info)
{
    *out_info = (struct leat_sets_info){.sets = sets->set_count,
                                        .table_bytes = leat_sets_table_bytes(sets),
                                        .waiting = sets->shares.all};
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_set *set = sets->sets[i];
        out_info->members += set->member_count + (set->group ? set->group->member_count : 0);
    }
}

/* ---- life ---- */

leat_err leat_sets_create(const struct leat_sets_options *options, struct leat_sets **out_sets)
{
    struct leat_sets *sets = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *sets);
    if (!sets) return LEAT_E_NO_MEMORY;
    sets->options = *options;
    leat_shares_init(&sets->shares, options->env->random, LEAT_SETS_WAITING_MAX);
    if (sets->options.settle_us == 0) sets->options.settle_us = LEAT_SETS_SETTLE_US_DEFAULT;
    if (sets->options.group_bytes_max == 0)
        sets->options.group_bytes_max = LEAT_GROUP_MEMORY_BYTES_MAX;
    if (sets->options.group_settle_us == 0)
        sets->options.group_settle_us = LEAT_GROUP_SETTLE_US_DEFAULT;
    leat_list_init(&sets->waiting);
    leat_list_init(&sets->querying);
    leat_list_init(&sets->reading);
    sets->timer = (struct leat_timer){.on_expired = timer_expired, .owner = sets};
    sets->append = (struct leat_append){.on_acked = append_acked, .owner = sets};
    leat_sets_buffers_renew(sets);
    if (!sets->buffers) {
        leat_sets_destroy(&sets);
        return LEAT_E_NO_MEMORY;
    }
    if (options->room) atomic_fetch_add_explicit(&options->room->unread, 1, memory_order_relaxed);
    sets->unread = options->room != NULL;
    sets->read_by_us = leat_sets_now_us(sets) + LEAT_SETS_READ_US_MAX;
    leat_sets_timer_arm(sets);
    *out_sets = sets;
    return LEAT_OK;
}

void leat_sets_destroy(struct leat_sets **sets)
{
    struct leat_sets *it = *sets;
    if (!it) return;
    LEAT_ASSERT(!it->in_flight);
    leat_sets_is_read(it);
    leat_sets_queries_leave(it);
    leat_sets_joins_forget(it);
    leat_sets_wait_fail(it, &it->waiting, LEAT_E_TIMEOUT, leat_sets_gone_words);
    leat_sets_wait_fail(it, &it->reading, LEAT_E_TIMEOUT, leat_sets_gone_words);
    leat_timer_stop(it->options.timers, &it->timer);
    leat_sets_table_clear(it);
    leat_mem_free(it->buffers);
    leat_mem_free(it);
    *sets = NULL;
}
