/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are looked for by name and made when they are missing: streams.c on one core; and what a core does with
 * streams that come: walk.c. The test plays the coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/streams.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/net/core.h"
#include "broker/node/hooks.h"
#include "broker/node/walk.h"
#include "groups/internal.h"
#include "store/private.h"
#include "tests/broker/parts.h"

enum { NAMES = 3, SHARERS = 8, NEWS = 32 }; /* names: a mask of the tables as well */

struct desk {
    struct leat_node node;
    struct leat_core core;
    struct core_parts parts;
    struct leat_env env;
    struct leat_post post;
    struct leat_clock clock;
    struct leat_partition *partition[1];
    struct leat_mail *mail;       /* to the coordinator */
    struct leat_mail *news[NEWS]; /* to the core, in order */
    unsigned news_count;
    bool done;
    uint64_t now_us, heap_bytes;
    uint32_t last_id;
    struct leat_sharer sharers[SHARERS];
    unsigned next_sharer;
};

static void desk_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct desk *desk = ctx;
    if (to == LEAT_ACTOR_CORE_0) {
        assert_in_range(desk->news_count, 0, NEWS - 1);
        for (unsigned i = 0; i < desk->news_count; i++)
            assert_ptr_not_equal(desk->news[i], mail); /* under way already */
        desk->news[desk->news_count++] = mail;
        return;
    }
    assert_int_equal(to, LEAT_ACTOR_COORDINATOR);
    assert_null(desk->mail);
    desk->mail = mail;
}

/* The core gets its next mail; false: there is none. */
static bool mail_deliver(struct desk *desk)
{
    if (desk->news_count == 0) return false;
    struct leat_mail *mail = desk->news[0];
    memmove(&desk->news[0], &desk->news[1], --desk->news_count * sizeof desk->news[0]);
    mail->deliver(&desk->core, mail);
    return true;
}

/* In a turn of its own. */
static bool news_deliver(struct desk *desk)
{
    bool any = mail_deliver(desk);
    leat_news_turn_end(&desk->core);
    return any;
}

static uint64_t desk_now(void *ctx)
{
    return ((const struct desk *)ctx)->now_us;
}

static uint64_t desk_heap(void *ctx)
{
    return ((const struct desk *)ctx)->heap_bytes;
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->post = (struct leat_post){.ctx = desk, .send = desk_send, .self = LEAT_ACTOR_CORE_0};
    desk->clock = (struct leat_clock){.ctx = desk, .now_us = desk_now};
    desk->now_us = 1;
    desk->env.post = &desk->post;
    desk->env.clock = &desk->clock;
    desk->node.options.cores = 1;
    desk->node.options.coordinator_env = &desk->env;
    core_parts_set(&desk->core, &desk->parts);
    desk->core.data->partitions = desk->partition;
    leat_list_init(&desk->core.data->home_logs);
    desk->node.hooks = &leat_core_hooks;
    desk->core.node = &desk->node;
    desk->core.env = &desk->env;
    desk->core.data->stream_mask = NAMES;
    desk->core.data->streams_by_id =
        leat_mem_calloc(LEAT_MEM_BROKER, NAMES + 1, sizeof *desk->core.data->streams_by_id);
    desk->core.data->streams_by_name =
        leat_mem_calloc(LEAT_MEM_BROKER, NAMES + 1, sizeof *desk->core.data->streams_by_name);
    assert_non_null(desk->core.data->streams_by_id);
    assert_non_null(desk->core.data->streams_by_name);
    leat_list_init(&desk->core.admin->stream_awaits);
    leat_news_init(&desk->core);
    return desk;
}

static void desk_free(struct desk *desk)
{
    for (uint32_t i = 0; i <= desk->core.data->stream_mask; i++) /* the table grows */
        while (desk->core.data->streams_by_id[i] != NULL)
            leat_stream_remove(&desk->core, desk->core.data->streams_by_id[i]);
    leat_mem_free(desk->core.data->streams_by_id);
    leat_mem_free(desk->core.data->streams_by_name);
    free(desk);
}

static struct leat_stream_desc *desc_of(uint32_t id, const char *name, uint32_t streamlets)
{
    struct leat_stream_desc *desc = leat_mem_calloc(
        LEAT_MEM_COORDINATOR, 1, sizeof *desc + streamlets * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    desc->refs = 1;
    desc->id = id;
    desc->settings.logs = 1;
    snprintf(desc->name, sizeof desc->name, "%.9s", name);
    return desc;
}

/* With room for one streamlet. */
static struct leat_stream_desc *desc_new(uint32_t id, const char *name)
{
    return desc_of(id, name, 1);
}

/* A stream of that name comes by. */
static void comes(struct desk *desk, uint32_t id, const char *name)
{
    struct leat_stream_desc *desc = desc_new(id, name);
    struct leat_stream *stream;
    assert_int_equal(leat_stream_put(&desk->core, desc, &stream), LEAT_OK);
    leat_stream_desc_unref(desc);
    leat_stream_publish(stream);
}

static void on_sought(struct leat_seeker *seeker)
{
    ((struct desk *)seeker->owner)->done = true;
}

/* Goal: each name that another makes at the same time is looked for once more, not the first one alone. */
static void seeker_names_that_others_make_meanwhile_are_all_found(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    char names[NAMES][LEAT_STREAM_NAME_BYTES_MAX + 1] = {"a", "b", "c"};
    struct leat_error errors[NAMES] = {{.code = LEAT_OK}};
    struct leat_seeker seeker = {.core = &desk->core,
                                 .sharer = &desk->sharers[desk->next_sharer++ % SHARERS],
                                 .may_create = true,
                                 .count = NAMES,
                                 .names = names,
                                 .errors = errors,
                                 .on_done = on_sought,
                                 .owner = desk};
    leat_seeker_start(&seeker);
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_false(desk->done);
        assert_non_null(desk->mail);
        struct leat_coordinate *request = LEAT_CONTAINER(desk->mail, struct leat_coordinate, mail);
        desk->mail = NULL;
        assert_string_equal(request->name, names[i]);
        comes(desk, i + 1, names[i]);
        request->rc = leat_error_set(&request->error, LEAT_E_STREAM_EXISTS, "it exists");
        request->on_done(request);
    }
    assert_true(desk->done);
    for (uint32_t i = 0; i < NAMES; i++)
        assert_int_equal(errors[i].code, LEAT_OK);
    desk_free(desk);
}

/* Goal: a name that exists, and is nowhere to be found, ends all the same, with the error that was said of it. */
static void seeker_name_that_is_never_found_ends_with_why(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    char names[1][LEAT_STREAM_NAME_BYTES_MAX + 1] = {"a"};
    struct leat_error errors[1] = {{.code = LEAT_OK}};
    struct leat_seeker seeker = {.core = &desk->core,
                                 .sharer = &desk->sharers[desk->next_sharer++ % SHARERS],
                                 .may_create = true,
                                 .count = 1,
                                 .names = names,
                                 .errors = errors,
                                 .on_done = on_sought,
                                 .owner = desk};
    leat_seeker_start(&seeker);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(desk->done);
        struct leat_coordinate *request = LEAT_CONTAINER(desk->mail, struct leat_coordinate, mail);
        desk->mail = NULL;
        request->rc = leat_error_set(&request->error, LEAT_E_STREAM_EXISTS, "it exists");
        request->on_done(request);
    }
    assert_true(desk->done);
    assert_int_equal(errors[0].code, LEAT_E_STREAM_EXISTS);
    desk_free(desk);
}

/* A place among the requests that wait for the coordinators is what the request lacked: not a leader. */
static void stream_that_the_coordinators_can_not_be_asked_for_is_refused_with_why(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_stream *stream;
    struct leat_error error;
    struct leat_stream_seek seek = {.caught_up = true, .rc = LEAT_E_AGAIN};
    leat_error_set(&seek.catch_up.request.error, LEAT_E_AGAIN, "its address has its share");
    assert_int_equal(leat_stream_seek(&desk->core, &seek, "one", 3, &stream, &error),
                     LEAT_E_TIMEOUT);
    assert_non_null(strstr(error.text, "its address has its share"));
    assert_null(strstr(error.text, "no leader"));
    desk_free(desk);
}

/* Somebody names a stream, and may make it. The coordinator makes what it is asked to; made: it was asked. */
static leat_err seek(struct desk *desk, const char *name, bool *out_made)
{
    char names[1][LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_error errors[1] = {{.code = LEAT_OK}};
    struct leat_seeker seeker = {.core = &desk->core,
                                 .sharer = &desk->sharers[desk->next_sharer++ % SHARERS],
                                 .may_create = true,
                                 .count = 1,
                                 .names = names,
                                 .errors = errors,
                                 .on_done = on_sought,
                                 .owner = desk};
    snprintf(names[0], sizeof names[0], "%s", name);
    desk->done = false;
    leat_seeker_start(&seeker);
    *out_made = desk->mail != NULL;
    if (desk->mail != NULL) {
        struct leat_coordinate *request = LEAT_CONTAINER(desk->mail, struct leat_coordinate, mail);
        desk->mail = NULL;
        assert_string_equal(request->name, name);
        request->desc = desc_new(++desk->last_id, name);
        struct leat_stream *stream;
        assert_int_equal(leat_stream_put(&desk->core, request->desc, &stream), LEAT_OK);
        leat_stream_publish(stream);
        request->rc = LEAT_OK;
        request->on_done(request);
    }
    assert_true(desk->done);
    return errors[0].code;
}

/* Goal: of new names a limited number is made at once. The next name has to be asked for again, and is made when it is
 * asked for after its time has come. Names that exist are found meanwhile. */
static void name_beyond_the_rate_is_made_at_a_later_asking(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const uint64_t each_us = 1000 * 1000 / LEAT_CREATES_ASKED_PER_SECOND;
    char name[16];
    bool made;
    for (unsigned i = 0; i < LEAT_CREATES_ASKED_BURST; i++) {
        snprintf(name, sizeof name, "n%u", i);
        assert_int_equal(seek(desk, name, &made), LEAT_OK);
        assert_true(made);
    }
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "later%u", i);
        for (unsigned asked = 0; asked < 5; asked++) {
            assert_int_equal(seek(desk, name, &made), LEAT_E_STARTING);
            assert_false(made);
        }
        assert_int_equal(seek(desk, "n7", &made), LEAT_OK);
        assert_false(made);
        desk->now_us += each_us;
        assert_int_equal(seek(desk, name, &made), LEAT_OK);
        assert_true(made);
        assert_int_equal(seek(desk, name, &made), LEAT_OK);
        assert_false(made);
    }
    desk_free(desk);
}

/* Goal: streams that are made or changed on purpose have a rate of their own, by the logs that this makes or looks at;
 * one address has half of it, in which there is room for the largest stream. */
static void logs_made_on_purpose_beyond_their_rate_are_to_be_asked_for_again(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_core *core = &desk->core;
    struct leat_error error;
    const uint32_t most = LEAT_BROKER_STREAM_LOGS_MAX;
    const struct leat_stream_settings large = {.streamlets = most, .logs = 1};
    const struct leat_stream_settings small = {.streamlets = 1, .logs = 1};
    struct leat_stream_desc *desc = desc_new(1, "large");
    desc->streamlet_count = most - 1;
    assert_int_equal(leat_stream_work_allowed(core, &desk->sharers[0], NULL, &large, &error),
                     LEAT_OK);
    assert_int_equal(leat_stream_work_allowed(core, &desk->sharers[0], NULL, &small, &error),
                     LEAT_E_AGAIN);
    assert_non_null(strstr(error.text, "try again"));
    assert_int_equal(leat_stream_rate_allowed(core, &desk->sharers[0], &error), LEAT_OK);
    for (uint32_t i = 0; i < most; i++)
        assert_int_equal(leat_stream_work_allowed(core, &desk->sharers[1], NULL, &small, &error),
                         LEAT_OK);
    assert_int_equal(leat_stream_work_allowed(core, &desk->sharers[2], NULL, &small, &error),
                     LEAT_E_AGAIN);
    assert_int_equal(leat_stream_work_allowed(core, NULL, NULL, &small, &error), LEAT_E_AGAIN);
    desk->now_us += 1000 * 1000;
    unsigned changes = 0;
    while (leat_stream_work_allowed(core, &desk->sharers[0], desc, &large, &error) == LEAT_OK)
        changes++;
    assert_int_equal(error.code, LEAT_E_AGAIN);
    assert_in_range(changes, 0, LEAT_CREATES_PER_SECOND / 2 * LEAT_CHANGES_LOGS / most);
    desk->now_us += 1000 * 1000;
    assert_int_equal(leat_stream_work_allowed(core, &desk->sharers[0], desc, &large, &error),
                     LEAT_OK);
    leat_stream_desc_unref(desc);
    desk_free(desk);
}

/* Goal: one address has half of the streams that are made by naming them, so another address has as many. */
static void streams_that_one_address_names_leave_half_of_the_rate_to_others(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_error error;
    for (unsigned address = 0; address < 2; address++) {
        for (unsigned i = 0; i < LEAT_CREATES_ASKED_BURST / 2; i++)
            assert_int_equal(leat_stream_rate_allowed(&desk->core, &desk->sharers[address], &error),
                             LEAT_OK);
        assert_int_equal(leat_stream_rate_allowed(&desk->core, &desk->sharers[address], &error),
                         LEAT_E_STARTING);
    }
    assert_int_equal(leat_stream_rate_allowed(&desk->core, &desk->sharers[2], &error),
                     LEAT_E_STARTING);
    desk_free(desk);
}

/* The coordinator tells the node of a stream whose one log is this node's. Did the core try to make the log? The core
 * has no room, so a log that it tried to make is missing. */
static bool tries_to_make(struct desk *desk, uint32_t id, const char *name)
{
    struct leat_stream_desc *desc = desc_new(id, name);
    desc->streamlet_count = 1;
    desc->streamlets[0].owner = desk->node.incarnation;
    leat_node_on_stream(&desk->node, desc);
    leat_stream_desc_unref(desc);
    while (news_deliver(desk))
        continue;
    const struct leat_stream *stream = leat_stream_find(&desk->core, id);
    assert_non_null(stream);
    assert_true(stream->published);
    return stream->logs_missing;
}

/* Goal: a core that stops has counted its logs, so the core makes no further log. When the stream of such a log is
 * deleted, the log would be counted off in place of a log that has not stopped yet. */
static void stream_that_comes_while_its_core_stops_gets_no_log_there(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->node.incarnation = 7;
    desk->core.adopted = true;
    desk->core.data->partition_count = LEAT_CORE_LOGS_MAX;
    assert_true(tries_to_make(desk, 1, "a"));
    desk->core.stopping = true;
    desk->core.data->logs_to_stop = 1;
    assert_false(tries_to_make(desk, 2, "b"));
    struct leat_stream_desc *large = desc_of(3, "large", 4 * LEAT_NEWS_WORK);
    large->streamlet_count = 4 * LEAT_NEWS_WORK;
    leat_node_on_stream(&desk->node, large);
    leat_stream_desc_unref(large);
    for (unsigned round = 0; round < 2; round++) /* each in one piece */
        assert_true(news_deliver(desk));
    assert_false(news_deliver(desk));
    assert_true(leat_stream_find(&desk->core, 3)->published);
    desk_free(desk);
}

struct step {
    struct leat_news news;
    struct step *takes; /* amid its own step */
    bool done;
};

static bool step_do(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    struct step *step = LEAT_CONTAINER(news, struct step, news);
    (void)left;
    if (step->takes != NULL) {
        leat_news_take(core, &step->takes->news, step_do);
        assert_false(step->takes->done);
    }
    step->done = true;
    return true;
}

/* Goal: news that comes amid the step of other news waits for the end of the step. */
static void news_amid_a_step_waits_for_its_end(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct step second = {.takes = NULL}, first = {.takes = &second};
    leat_news_take(&desk->core, &first.news, step_do);
    assert_true(first.done && second.done);
    desk_free(desk);
}

/* Goal: a stream that is deleted before it was told of is told of to nobody. */
static void stream_that_goes_before_it_is_told_of_stays_untold(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_stream_desc *desc = desc_new(1, "a");
    desc->streamlet_count = 1;
    leat_node_on_stream(&desk->node, desc);
    leat_node_on_stream_deleted(&desk->node, 1);
    leat_stream_desc_unref(desc);
    while (news_deliver(desk)) {
        const struct leat_stream *stream = leat_stream_find(&desk->core, 1);
        assert_true(stream == NULL || !stream->published);
    }
    assert_null(leat_stream_find(&desk->core, 1));
    desk_free(desk);
}

/* Goal: a stream of many logs is made, changed and deleted in pieces, between which other work has its turns. News that
 * comes after the stream waits for it, and so does a caller that asks for all that is committed. Method: the core has
 * as many logs as it may, so each log that it tries to make is missing. */
static void stream_of_many_logs_comes_and_goes_in_pieces(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const uint32_t logs = LEAT_BROKER_STREAM_LOGS_MAX;
    struct leat_stream_desc *large = desc_of(1, "large", logs), *small = desc_new(2, "small");
    desk->node.incarnation = 7;
    desk->core.adopted = true;
    desk->core.data->partition_count = LEAT_CORE_LOGS_MAX;
    large->streamlet_count = logs;
    small->streamlet_count = 1;
    for (uint32_t i = 0; i < logs; i++)
        large->streamlets[i].owner = 7;
    for (unsigned change = 0; change < 2; change++) {
        unsigned pieces = 0;
        leat_node_on_stream(&desk->node, large);
        leat_node_on_stream(&desk->node, small);
        while (leat_stream_find(&desk->core, 2) == NULL ||
               !leat_stream_find(&desk->core, 2)->published) {
            assert_true(news_deliver(desk));
            pieces++;
            const struct leat_stream *first = leat_stream_find(&desk->core, 1);
            assert_non_null(first);
            if (pieces < logs / LEAT_NEWS_WORK) assert_null(leat_stream_find(&desk->core, 2));
        }
        assert_in_range(pieces, logs / LEAT_NEWS_WORK, 2 * logs / LEAT_NEWS_WORK);
        assert_true(leat_stream_find(&desk->core, 1)->published);
        assert_true(leat_stream_find(&desk->core, 1)->logs_missing);
        leat_node_on_stream_deleted(&desk->node, 2);
        while (news_deliver(desk))
            continue;
        assert_null(leat_stream_find(&desk->core, 2));
    }
    unsigned pieces = 0;
    leat_walk_make_missing(&desk->core);
    leat_walk_make_missing(&desk->core);
    while (news_deliver(desk))
        pieces++;
    assert_in_range(pieces, logs / LEAT_NEWS_WORK, 2 * logs / LEAT_NEWS_WORK);
    assert_true(desk->core.data->logs_missing && leat_stream_find(&desk->core, 1)->logs_missing);
    leat_walk_make_missing(&desk->core);
    pieces = 0;
    leat_node_on_stream_deleted(&desk->node, 1);
    for (; news_deliver(desk); pieces++)
        if (pieces < 2 * logs / LEAT_NEWS_WORK) assert_non_null(leat_stream_find(&desk->core, 1));
    assert_in_range(pieces, 2 * logs / LEAT_NEWS_WORK, 4 * logs / LEAT_NEWS_WORK);
    assert_null(leat_stream_find(&desk->core, 1));
    leat_stream_desc_unref(large);
    leat_stream_desc_unref(small);
    desk_free(desk);
}

/* Goal: streams whose news come in one turn share what a turn has for news. */
static void streams_that_come_at_once_are_made_over_many_turns(void **state)
{
    (void)state;
    enum { STREAMS = 16, LOGS = LEAT_NEWS_WORK / 4 };
    struct desk *desk = desk_new();
    desk->node.incarnation = 7;
    desk->core.adopted = true;
    desk->core.data->partition_count = LEAT_CORE_LOGS_MAX;
    for (uint32_t id = 1; id <= STREAMS; id++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", id);
        struct leat_stream_desc *desc = desc_of(id, name, LOGS);
        desc->streamlet_count = LOGS;
        for (uint32_t i = 0; i < LOGS; i++)
            desc->streamlets[i].owner = 7;
        leat_node_on_stream(&desk->node, desc);
        leat_stream_desc_unref(desc);
    }
    for (uint32_t id = 1; id <= STREAMS; id++)
        assert_true(mail_deliver(desk));
    assert_in_range(desk->core.data->stream_count, 3, 4);
    unsigned turns = 0;
    for (bool any = true; any; turns++) {
        any = false;
        for (uint32_t most = desk->news_count; most > 0; most--)
            any |= mail_deliver(desk);
        leat_news_turn_end(&desk->core);
    }
    assert_in_range(turns, STREAMS / 4, STREAMS);
    for (uint32_t id = 1; id <= STREAMS; id++)
        assert_true(leat_stream_find(&desk->core, id)->published);
    desk_free(desk);
}

static uint64_t number_next(void *ctx)
{
    (void)ctx;
    return 1;
}

/* As many groups as they may have. */
static void homes_fill(struct desk *desk, struct leat_partition *homes, unsigned count)
{
    static const struct leat_random random = {.next = number_next};
    desk->env.random = &random;
    const struct leat_groups_options options = {.env = &desk->env, .timers = &desk->core.timers};
    for (unsigned i = 0; i < count; i++) {
        homes[i].ref.stream = 99;
        assert_int_equal(leat_groups_create(&options, &homes[i].groups), LEAT_OK);
        for (unsigned k = 0; k < LEAT_GROUPS_PER_HOME_MAX; k++) {
            struct leat_group *set = leat_group_create("set", LEAT_GROUPS_ORDERED);
            assert_non_null(set);
            leat_groups_group_add(homes[i].groups, set);
        }
        leat_list_push_back(&desk->core.data->home_logs, &homes[i].home);
    }
}

static unsigned published(const struct desk *desk, uint32_t ids)
{
    unsigned count = 0;
    for (uint32_t id = 1; id <= ids; id++) {
        const struct leat_stream *stream = leat_stream_find(&desk->core, id);
        count += stream != NULL && stream->published;
    }
    return count;
}

/* What has come by its beginning. */
static void turn(struct desk *desk)
{
    for (unsigned left = desk->news_count; left > 0; left--)
        (void)mail_deliver(desk);
    leat_news_turn_end(&desk->core);
}

/* Goal: where homes have many groups each deletion looks at all groups. Streams that are deleted together then go in as
 * many turns, between which other work has its turns; without groups they go in one turn. */
static void deletions_that_look_at_many_groups_have_turns_of_their_own(void **state)
{
    (void)state;
    enum {
        HOMES = 2 * LEAT_NEWS_WORK * LEAT_NEWS_SET_ROWS / LEAT_GROUPS_PER_HOME_MAX,
        STREAMS = 2
    };
    struct leat_partition *homes = calloc(HOMES, sizeof *homes);
    assert_non_null(homes);
    struct desk *desk = desk_new();
    for (unsigned full = 0; full < 2; full++) {
        for (uint32_t id = 1; id <= STREAMS; id++) {
            struct leat_stream_desc *desc = desc_new(id, id == 1 ? "a" : "b");
            desc->streamlet_count = 1;
            leat_node_on_stream(&desk->node, desc);
            leat_stream_desc_unref(desc);
            while (news_deliver(desk))
                continue;
        }
        assert_int_equal(published(desk, STREAMS), STREAMS);
        if (full) homes_fill(desk, homes, HOMES);
        for (uint32_t id = 1; id <= STREAMS; id++)
            leat_node_on_stream_deleted(&desk->node, id);
        turn(desk);
        assert_int_equal(published(desk, STREAMS), full ? STREAMS - 1 : 0);
        turn(desk);
        assert_int_equal(published(desk, STREAMS), full ? STREAMS - 2 : 0);
        while (news_deliver(desk))
            continue;
        assert_null(leat_stream_find(&desk->core, 1));
    }
    for (unsigned i = 0; i < HOMES; i++)
        leat_groups_destroy(&homes[i].groups);
    desk_free(desk);
    free(homes);
}

/* Goal: a new log for which the memory budget has no room is not made, however long that lasts. A client that asks for
 * the log is told so by name after a while; the log is made when there is room. Method: the core has as many logs as it
 * may, so only the answer tells an attempt from none. */
static void log_that_the_budget_has_no_room_for_is_refused_by_name(void **state)
{
    (void)state;
    const struct leat_log_ref ref = {1, 0, 0};
    struct desk *desk = desk_new();
    struct leat_store *store = calloc(1, sizeof *store);
    assert_non_null(store);
    atomic_store(&store->usage_grown, 2 * (uint64_t)LEAT_ARENA_STEP_BYTES);
    desk->node.store = store;
    desk->node.pool_bytes = 2 * (uint64_t)LEAT_ARENA_STEP_BYTES;
    desk->node.options.heap_bytes = desk_heap;
    desk->node.options.heap_ctx = desk;
    desk->node.incarnation = 7;
    desk->core.adopted = true;
    desk->core.data->partition_count = LEAT_CORE_LOGS_MAX;
    desk->heap_bytes = 1; /* beyond its room, which is none */
    assert_true(tries_to_make(desk, ref.stream, "a"));
    for (unsigned s = 0; s < 40; s++) {
        leat_err rc = leat_partition_absent(&desk->core, ref);
        bool waited = s * (uint64_t)1000 * 1000 >= LEAT_HEAP_WAIT_US;
        assert_int_equal(rc, waited ? LEAT_E_NO_MEMORY : LEAT_E_STARTING);
        if (waited) assert_non_null(strstr(leat_partition_absent_words(rc), "--memory"));
        desk->now_us += 1000 * 1000;
        leat_walk_make_missing(&desk->core);
    }
    atomic_store(&store->usage_grown, (uint64_t)LEAT_ARENA_STEP_BYTES); /* a step was given back */
    desk->now_us += LEAT_HEAP_WANTED_US;
    leat_walk_make_missing(&desk->core);
    assert_int_equal(leat_partition_absent(&desk->core, ref), LEAT_E_STARTING);
    desk_free(desk);
    free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeker_names_that_others_make_meanwhile_are_all_found),
        cmocka_unit_test(seeker_name_that_is_never_found_ends_with_why),
        cmocka_unit_test(stream_that_the_coordinators_can_not_be_asked_for_is_refused_with_why),
        cmocka_unit_test(name_beyond_the_rate_is_made_at_a_later_asking),
        cmocka_unit_test(logs_made_on_purpose_beyond_their_rate_are_to_be_asked_for_again),
        cmocka_unit_test(streams_that_one_address_names_leave_half_of_the_rate_to_others),
        cmocka_unit_test(stream_that_comes_while_its_core_stops_gets_no_log_there),
        cmocka_unit_test(news_amid_a_step_waits_for_its_end),
        cmocka_unit_test(stream_that_goes_before_it_is_told_of_stays_untold),
        cmocka_unit_test(stream_of_many_logs_comes_and_goes_in_pieces),
        cmocka_unit_test(streams_that_come_at_once_are_made_over_many_turns),
        cmocka_unit_test(deletions_that_look_at_many_groups_have_turns_of_their_own),
        cmocka_unit_test(log_that_the_budget_has_no_room_for_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
