/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to groups on their way to their homes and back. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "kafka/handlers/group.h"

/* Of one request: an answer of a home may be of any size before its bytes are counted. */
enum { ASKS_AT_ONCE = 4 };

static void asks_on_done(struct leat_kafka_group_ask *ask);
static void ask_route(struct leat_kafka_group_ask *ask);
static void ask_deliver_home(void *actor, struct leat_mail *mail);
static void ask_deliver_back(void *actor, struct leat_mail *mail);

int16_t leat_kafka_group_error(leat_err rc)
{
    switch (rc) {
    case LEAT_OK:
        return LEAT_KAFKA_NONE;
    case LEAT_E_STARTING:
    case LEAT_E_AGAIN:
    case LEAT_E_NO_MEMORY:
        return LEAT_KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
    case LEAT_E_WRONG_GROUP_HOME:
    case LEAT_E_NOT_OWNER:
    case LEAT_E_STALE_EPOCH:
    case LEAT_E_UNKNOWN_LOG:
        return LEAT_KAFKA_NOT_COORDINATOR;
    case LEAT_E_BAD_NAME:
        return LEAT_KAFKA_INVALID_GROUP_ID;
    case LEAT_E_UNKNOWN_MEMBER:
        return LEAT_KAFKA_UNKNOWN_MEMBER_ID;
    case LEAT_E_STALE_GENERATION:
        return LEAT_KAFKA_ILLEGAL_GENERATION;
    case LEAT_E_REBALANCING:
        return LEAT_KAFKA_REBALANCE_IN_PROGRESS;
    case LEAT_E_MEMBER_ID_REQUIRED:
        return LEAT_KAFKA_MEMBER_ID_REQUIRED;
    case LEAT_E_MEMBER_FENCED:
        return LEAT_KAFKA_FENCED_INSTANCE_ID;
    case LEAT_E_OTHER_PROTOCOL:
        return LEAT_KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    case LEAT_E_TOO_MANY:
        return LEAT_KAFKA_GROUP_MAX_SIZE_REACHED;
    case LEAT_E_TOO_LARGE:
        return LEAT_KAFKA_INVALID_COMMIT_OFFSET_SIZE;
    case LEAT_E_EXISTS:
        return LEAT_KAFKA_NON_EMPTY_GROUP;
    case LEAT_E_NOT_FOUND:
        return LEAT_KAFKA_GROUP_ID_NOT_FOUND;
    case LEAT_E_INVALID:
        return LEAT_KAFKA_INVALID_REQUEST;
    default: /* lost on its way, or the home is out of order: ask where it is, and again */
        return LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
}

/* ---- asks of a request ---- */

static void request_on_freed(struct leat_kafka_request *request)
{
    for (struct leat_kafka_group_ask *ask = request->state; ask != NULL; ask = ask->next) {
        leat_mem_free(ask->call.memory);
        leat_mem_free(ask->home_request.offsets);
        LEAT_ASSERT_CMP(ask->waits_bytes, <=, leat_kafka_core(request->core)->held);
        LEAT_ASSERT_CMP(ask->waits_bytes, <=, leat_peer_share(request->conn->peer)->held);
        leat_kafka_core(request->core)->held -= ask->waits_bytes;
        leat_peer_share(request->conn->peer)->held -= ask->waits_bytes;
    }
}

static void ask_end(struct leat_kafka_group_ask *ask, leat_err rc)
{
    LEAT_ASSERT_OWNER(ask->request->core);
    LEAT_ASSERT(!ask->answered && !ask->cancelling);
    ask->home_request.rc = rc;
    ask->answered = true;
    ask->on_done(ask);
}

static void ask_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct leat_kafka_group_ask *ask = LEAT_CONTAINER(mail, struct leat_kafka_group_ask, cancel);
    LEAT_ASSERT(actor == ask->request->core && ask->cancelling);
    ask->cancelling = false;
    if (ask->answered) ask->on_done(ask);
}

/* Mail of one core to another keeps its order, so the ask has been here before. The ask has gone back, or it waits,
 * and then goes back inside the cancel. */
static void ask_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct leat_kafka_group_ask *ask = LEAT_CONTAINER(mail, struct leat_kafka_group_ask, cancel);
    LEAT_ASSERT(actor == ask->home_core && ask->cancelling);
    if (ask->waiting != NULL) leat_groups_cancel(ask->waiting, &ask->home_request);
    leat_front_mail(actor, leat_front_index(ask->request->core), mail, ask_deliver_cancelled);
}

static void request_on_abandoned(struct leat_kafka_request *request)
{
    LEAT_ASSERT_OWNER(request->core);
    for (struct leat_kafka_group_ask *ask = request->state; ask != NULL; ask = ask->next) {
        if (ask->home_core == NULL || ask->cancelling || ask->answered) continue;
        ask->cancelling = true;
        leat_front_mail(request->core, leat_front_index(ask->home_core), &ask->cancel,
                        ask_deliver_cancel);
    }
}

/* From here on the request can't come again. */
static void ask_leaves(struct leat_kafka_group_ask *ask)
{
    ask->request->on_freed = request_on_freed;
    ask->request->on_abandoned = request_on_abandoned;
}

/* SUBTLE: a join or sync is held until all members of its group have come, up to half an hour, and so is the memory
 * that it was read into. Held requests have half of the share, so all other requests go on. An address may hold as
 * much of this half as is left: however many addresses hold all they can, as much is left for the next address. */
static bool ask_may_wait(struct leat_kafka_group_ask *ask)
{
    if (ask->home_request.kind != LEAT_GROUPS_CLASSIC_JOIN &&
        ask->home_request.kind != LEAT_GROUPS_CLASSIC_SYNC)
        return true;
    struct leat_kafka_request *request = ask->request;
    struct leat_kafka_core *here = leat_kafka_core(request->core);
    struct leat_front_share *share = leat_peer_share(request->conn->peer);
    const size_t bytes = request->arena.bytes_allocated, most = here->share.bytes_max / 2;
    LEAT_ASSERT_CMP(ask->waits_bytes, ==, 0);
    LEAT_ASSERT_CMP(here->held, <=, most);
    if (here->held + bytes > most || share->held + bytes > most - here->held) return false;
    ask_leaves(ask);
    ask->waits_bytes = bytes;
    here->held += bytes;
    share->held += bytes;
    return true;
}

struct leat_kafka_group_ask *leat_kafka_group_ask_make(struct leat_kafka_request *request,
                                                       enum leat_groups_kind kind)
{
    struct leat_kafka_group_ask *ask = leat_kafka_take(request, 1, sizeof *ask);
    if (ask == NULL) return NULL;
    ask->request = request;
    ask->home_request.kind = kind;
    ask->home_request.answer_bytes_max = LEAT_GROUPS_ANSWER_BYTES;
    ask->home_request.classic = &ask->call;
    ask->home_request.address = leat_peer_address_number(request->conn->peer);
    ask->next = request->state;
    request->state = ask;
    return ask;
}

bool leat_kafka_group_member_set(struct leat_kafka_group_ask *ask, struct leat_kafka_string member)
{
    if (member.bytes > LEAT_GROUPS_MEMBER_BYTES_MAX) return false;
    if (member.bytes > 0 && memchr(member.text, 0, (size_t)member.bytes) != NULL) return false;
    if (member.bytes > 0) memcpy(ask->home_request.member, member.text, (size_t)member.bytes);
    return true;
}

/* ---- the way ---- */

static const struct leat_stream_desc *homes_find(const struct leat_core *core, bool *out_served)
{
    return leat_front_stream_heard(core, LEAT_GROUPS_STREAM_NAME, strlen(LEAT_GROUPS_STREAM_NAME),
                                   out_served);
}

static struct leat_log_ref home_log(const struct leat_stream_desc *stream, uint32_t home)
{
    return leat_groups_home_log(stream->id, stream->settings.logs, home);
}

static bool ask_brings_set(const struct leat_kafka_group_ask *ask)
{
    return ask->home_request.kind == LEAT_GROUPS_CLASSIC_JOIN ||
           ask->home_request.kind == LEAT_GROUPS_COMMIT;
}

static void ask_on_published(struct leat_stream_wait *wait)
{
    ask_route(wait->owner);
}

static void ask_on_made(struct leat_maker *maker)
{
    struct leat_kafka_group_ask *ask = maker->owner;
    leat_err rc = leat_groups_stream_made(maker);
    if (rc != LEAT_OK)
        ask_end(ask, rc);
    else
        ask_route(ask);
}

static void ask_begin(struct leat_kafka_group_ask *ask)
{
    struct leat_core *core = ask->request->core;
    ask->wait.on_ready = ask_on_published;
    ask->wait.owner = ask;
    if (homes_find(core, NULL) != NULL) {
        ask_route(ask);
        return;
    }
    if (!ask->makes_home && !ask_brings_set(ask)) {
        /* No member has ever joined or committed. */
        bool none = ask->home_request.kind == LEAT_GROUPS_LIST ||
                    ask->home_request.kind == LEAT_GROUPS_FETCH;
        bool outside = ask->home_request.kind == LEAT_GROUPS_DESCRIBE ||
                       ask->home_request.kind == LEAT_GROUPS_DELETE ||
                       ask->home_request.kind == LEAT_GROUPS_OFFSETS_DELETE;
        ask_end(ask, none ? LEAT_OK : outside ? LEAT_E_NOT_FOUND : LEAT_E_UNKNOWN_MEMBER);
        return;
    }
    struct leat_stream_settings settings = leat_groups_stream_settings();
    ask->maker = leat_kafka_take(ask->request, 1, sizeof *ask->maker);
    if (ask->maker == NULL) {
        ask_end(ask, LEAT_E_NO_MEMORY);
        return;
    }
    ask_leaves(ask);
    ask->maker->on_done = ask_on_made;
    ask->maker->address = leat_front_asks(ask->request->conn->peer);
    ask->maker->owner = ask;
    leat_maker_start(core, ask->maker, LEAT_GROUPS_STREAM_NAME, strlen(LEAT_GROUPS_STREAM_NAME),
                     &settings);
}

void leat_kafka_group_ask_start(struct leat_kafka_group_ask *ask, struct leat_kafka_string group)
{
    if (ask->home_request.kind != LEAT_GROUPS_LIST) {
        bool bad = group.bytes <= 0 || group.bytes > LEAT_GROUPS_NAME_BYTES_MAX ||
                   memchr(group.text, 0, (size_t)group.bytes) != NULL;
        if (bad) {
            ask_end(ask, LEAT_E_BAD_NAME);
            return;
        }
        if (!ask_may_wait(ask)) {
            ask_end(ask, LEAT_E_AGAIN);
            return;
        }
        memcpy(ask->home_request.group, group.text, (size_t)group.bytes);
        ask->home = leat_groups_home(ask->home_request.group, strlen(ask->home_request.group));
    }
    ask_begin(ask);
}

void leat_kafka_group_home_make(struct leat_kafka_group_ask *ask)
{
    ask->makes_home = true;
    ask_begin(ask);
}

uint64_t leat_kafka_group_home_owner(const struct leat_core *core, struct leat_kafka_string group)
{
    const struct leat_stream_desc *stream = homes_find(core, NULL);
    if (stream == NULL) return 0;
    uint32_t home = leat_groups_home(group.text, group.bytes > 0 ? (size_t)group.bytes : 0);
    return stream->streamlets[home_log(stream, home).streamlet].owner;
}

static void ask_on_done(struct leat_groups_request *home_request)
{
    struct leat_kafka_group_ask *ask = home_request->owner;
    LEAT_ASSERT_OWNER(ask->home_core);
    LEAT_ASSERT(ask->waiting != NULL);
    ask->waiting = NULL;
    leat_front_mail(ask->home_core, leat_front_index(ask->request->core), &ask->mail,
                    ask_deliver_back);
}

static void ask_route(struct leat_kafka_group_ask *ask)
{
    struct leat_core *core = ask->request->core;
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT(!ask->answered);
    bool served = false;
    const struct leat_stream_desc *stream = homes_find(core, &served);
    if (stream == NULL) { /* made by another request just now, and still on its way here */
        ask_end(ask, leat_kafka_abandoned(ask->request) ? LEAT_E_CANCELLED : LEAT_E_AGAIN);
        return;
    }
    if (!served) {
        ask_leaves(ask);
        leat_front_stream_wait(core, stream->id, &ask->wait);
        return;
    }
    if (ask->makes_home || leat_kafka_abandoned(ask->request)) {
        ask_end(ask, ask->makes_home ? LEAT_OK : LEAT_E_CANCELLED);
        return;
    }
    uint32_t home;
    if (!leat_front_log_home(core, stream, home_log(stream, ask->home), &home)) {
        ask_end(ask, LEAT_E_WRONG_GROUP_HOME);
        return;
    }
    ask_leaves(ask);
    ask->home_core = leat_front_core(core, home);
    ask->home_request.on_done = ask_on_done;
    ask->home_request.owner = ask;
    leat_front_mail(core, home, &ask->mail, ask_deliver_home);
}

static void ask_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_kafka_group_ask *ask = LEAT_CONTAINER(mail, struct leat_kafka_group_ask, mail);
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT(ask->home_core == core && ask->waiting == NULL);
    const struct leat_stream_desc *stream = homes_find(core, NULL);
    struct leat_groups *groups = NULL;
    if (stream != NULL) groups = leat_front_groups(core, home_log(stream, ask->home));
    bool answered = true;
    if (groups == NULL)
        ask->home_request.rc = LEAT_E_STARTING;
    else {
        /* Set before the call: an ask that waits may be on its way back already */
        ask->waiting = groups;
        answered = leat_groups_do(groups, &ask->home_request);
    }
    if (!answered) return;
    ask->waiting = NULL;
    leat_front_mail(core, leat_front_index(ask->request->core), mail, ask_deliver_back);
}

/* The answer belongs to the request until the request is freed, so it counts as memory of the request. */
static bool ask_hold(struct leat_kafka_group_ask *ask, size_t bytes)
{
    if (bytes <= ask->held) return true;
    if (!leat_kafka_arena_hold(&ask->request->arena, bytes - ask->held)) return false;
    ask->held = bytes;
    return true;
}

static void ask_pay(struct leat_kafka_group_ask *ask)
{
    struct leat_classic_call *call = &ask->call;
    if (call->memory == NULL && ask->home_request.offsets == NULL) return;
    if (ask_hold(ask, ask->home_request.answer_bytes)) return;
    leat_mem_free(call->memory);
    leat_mem_free(ask->home_request.offsets);
    call->memory = NULL;
    ask->home_request.offsets = NULL;
    ask->home_request.offset_count = 0;
    call->member_count = call->listed_count = 0;
    ask->home_request.rc = LEAT_E_NO_MEMORY;
}

/* The answer is larger than what needs no account. */
static bool ask_asks_again(struct leat_kafka_group_ask *ask)
{
    struct leat_groups_request *home_request = &ask->home_request;
    if (home_request->rc != LEAT_E_NO_MEMORY ||
        home_request->answer_bytes <= home_request->answer_bytes_max)
        return false;
    /* The answer may be larger when the ask comes again. */
    if (!ask_hold(ask, home_request->answer_bytes + home_request->answer_bytes / 8)) return false;
    home_request->answer_bytes_max = ask->held;
    ask_route(ask);
    return true;
}

static void ask_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_kafka_group_ask *ask = LEAT_CONTAINER(mail, struct leat_kafka_group_ask, mail);
    LEAT_ASSERT(actor == ask->request->core && !ask->answered);
    LEAT_ASSERT(ask->waiting == NULL);
    if (!ask->cancelling && ask_asks_again(ask)) return;
    ask_pay(ask);
    ask->answered = true;
    if (!ask->cancelling) ask->on_done(ask); /* else when that mail is back */
}

/* ---- several ---- */

struct leat_kafka_group_asks *leat_kafka_group_asks_make(struct leat_kafka_request *request,
                                                         enum leat_groups_kind kind, uint32_t count)
{
    struct leat_kafka_group_asks *asks = leat_kafka_take(request, 1, sizeof *asks);
    if (asks != NULL) asks->asks = leat_kafka_take(request, count + 1, sizeof(void *));
    if (asks == NULL || asks->asks == NULL) return NULL;
    asks->request = request;
    asks->count = count;
    for (uint32_t i = 0; i < count; i++) {
        asks->asks[i] = leat_kafka_group_ask_make(request, kind);
        if (asks->asks[i] == NULL) return NULL;
        asks->asks[i]->owner = asks;
        asks->asks[i]->on_done = asks_on_done;
    }
    return asks;
}

static int group_order(const void *a, const void *b)
{
    const struct leat_kafka_string *x = &(*(struct leat_kafka_group_ask *const *)a)->group;
    const struct leat_kafka_string *y = &(*(struct leat_kafka_group_ask *const *)b)->group;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->bytes > 0 ? memcmp(x->text, y->text, (size_t)x->bytes) : 0;
}

static bool duplicates_find(const struct leat_kafka_group_asks *asks)
{
    struct leat_kafka_group_ask **sorted =
        leat_kafka_take(asks->request, asks->count, sizeof(void *));
    if (sorted == NULL) return false;
    memcpy(sorted, asks->asks, asks->count * sizeof(void *));
    qsort(sorted, asks->count, sizeof(void *), group_order);
    for (uint32_t i = 1; i < asks->count; i++)
        if (group_order(&sorted[i - 1], &sorted[i]) == 0)
            sorted[i - 1]->duplicate = sorted[i]->duplicate = true;
    return true;
}

/* Asks may be answered as they are made: then the loop below goes on, not a call inside. */
static void asks_go(struct leat_kafka_group_asks *asks)
{
    if (asks->going) return;
    asks->going = true;
    LEAT_ASSERT(asks->answered <= asks->next && asks->next <= asks->count);
    while (asks->next < asks->count && asks->next - asks->answered < ASKS_AT_ONCE) {
        struct leat_kafka_group_ask *ask = asks->asks[asks->next++];
        if (ask->duplicate)
            ask_end(ask, LEAT_E_INVALID);
        else
            leat_kafka_group_ask_start(ask, ask->group);
    }
    asks->going = false;
    if (asks->answered == asks->count) asks->on_all(asks->request, asks);
}

static void asks_on_done(struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_group_asks *asks = ask->owner;
    LEAT_ASSERT_CMP(asks->answered, <, asks->next);
    asks->answered++;
    asks_go(asks);
}

void leat_kafka_group_asks_start(struct leat_kafka_group_asks *asks)
{
    if (asks->count > 1 && asks->asks[0]->home_request.kind != LEAT_GROUPS_LIST &&
        !duplicates_find(asks)) {
        leat_kafka_answer(asks->request, NULL);
        return;
    }
    asks_go(asks);
}
