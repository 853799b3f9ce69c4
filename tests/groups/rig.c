/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"
#include "groups/internal.h"
#include "wire/message.h"

static uint64_t clock_now(void *ctx)
{
    return ((struct home *)ctx)->now_us;
}
static int64_t clock_wall(void *ctx)
{
    return (int64_t)(((struct home *)ctx)->now_us / 1000);
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}
static uint64_t random_next(void *ctx)
{
    return leat_xoshiro_next(&((struct home *)ctx)->rng);
}

static uint32_t length(const struct leat_list *list)
{
    uint32_t count = 0;
    for (const struct leat_list *link = list->next; link != list; link = link->next)
        count++;
    return count;
}

/* What holds whenever nothing is under way: the counters equal a new count, and no group's encoding takes more bytes
 * than the group counts, with and without the members of a classic group. Large tables would take too long. */
static void home_check(const struct home *home)
{
    enum { TABLE_BYTES = 32 * 1024 };
    static uint8_t encoded[LEAT_GROUPS_BATCH_BYTES_MAX];
    const struct leat_groups *groups = home->groups;
    if (groups == NULL || groups->broken) return;
    assert_int_equal(groups->shares.all, length(&groups->waiting) + length(&groups->querying) +
                                             length(&groups->reading));
    if (leat_groups_table_bytes(groups) > TABLE_BYTES) return;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        struct leat_group *group = groups->groups[i];
        struct leat_msg_writer writer;
        size_t bytes = group->bytes, memory = group->memory_bytes;
        leat_group_bytes_count(group);
        assert_int_equal(bytes, group->bytes);
        assert_int_equal(memory, group->memory_bytes);
        leat_msg_writer_init(&writer, encoded, sizeof encoded);
        leat_group_encode(&writer, group, false);
        assert_in_range(writer.used, 1, group->bytes);
        if (!group->classic) continue;
        leat_msg_writer_init(&writer, encoded, sizeof encoded);
        leat_classic_encode(&writer, group->classic, true);
        assert_in_range(writer.used, 1, group->classic->stored_bytes);
    }
}

void home_roll(struct home *home)
{
    struct leat_log_app app = leat_groups_app(home->groups);
    free(home->snapshot);
    home->snapshot_count = app.snapshot_bytes(app.ctx);
    assert_true(home->snapshot_count <= LEAT_START_BYTES_MAX / 2);
    home->snapshot = malloc(home->snapshot_count + 1);
    assert_non_null(home->snapshot);
    app.snapshot_write(app.ctx, home->snapshot);
    for (unsigned i = 0; i < home->batch_count; i++)
        free(home->batches[i].bytes);
    home->batch_count = home->acked_count = 0;
}

/* No producer's, and each record one value that reads whole. */
static void batch_check(const struct leat_batch *batch)
{
    struct leat_record_reader records;
    struct leat_record record;
    assert_int_equal(batch->producer_id, -1);
    assert_int_equal(batch->producer_epoch, -1);
    assert_int_equal(batch->base_sequence, -1);
    leat_record_reader_init(&records, batch, batch->bytes + LEAT_BATCH_HEADER_BYTES,
                            batch->byte_count - LEAT_BATCH_HEADER_BYTES);
    while (leat_record_next(&records, &record) == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, record.value, record.value_bytes);
        leat_msg_skip_n(&reader, leat_msg_read_array(&reader));
        assert_true(leat_msg_read_done(&reader));
    }
}

static leat_err home_append(void *ctx, const struct leat_batch *batch, struct leat_append *append)
{
    struct home *home = ctx;
    assert_null(home->append);
    batch_check(batch);
    if (home->append_rc != LEAT_OK) return home->append_rc;
    if (!home->calm && leat_xoshiro_below(&home->rng, 8) == 0) {
        home->refusals++;
        return LEAT_E_AGAIN;
    }
    if (home->batch_count == BATCHES_MAX ||
        (!home->calm && leat_xoshiro_below(&home->rng, 10) == 0))
        home_roll(home);
    struct stored *stored = &home->batches[home->batch_count++];
    stored->count = batch->byte_count;
    stored->bytes = malloc(batch->byte_count);
    assert_non_null(stored->bytes);
    memcpy(stored->bytes, batch->bytes, batch->byte_count);
    home->append = append;
    return LEAT_OK;
}

static bool home_stream_size(void *ctx, uint32_t stream, uint32_t *out_streamlets,
                             uint32_t *out_logs)
{
    (void)ctx;
    bool large = stream >= LARGE_STREAM && stream < LARGE_STREAM + 3;
    *out_streamlets = large ? LARGE_STREAMLETS : STREAMLETS;
    *out_logs = LOGS;
    return stream == 7 || large || stream == LARGE_STREAM + 3;
}

static void home_group(void *ctx, struct leat_segment_group_query *query)
{
    struct home *home = ctx;
    query->broker = home->query; /* a stack of questions */
    home->query = query;
}

leat_err home_open(struct home *home)
{
    struct leat_groups_options options = {
        .env = &home->env,
        .timers = &home->timers,
        .settle_us = home->settle_us ? home->settle_us : 1000,
        .classic_settle_us = home->classic_settle_us ? home->classic_settle_us : 3000,
        .retention_us = home->retention_us,
        .followed = home->followed,
        .room = home->room,
        .group_bytes_max = home->group_bytes_max,
        .broker = {home_append, home->stream_size ? home->stream_size : home_stream_size,
                   home_group},
        .ctx = home,
    };
    leat_err rc = leat_groups_create(&options, &home->groups);
    if (rc != LEAT_OK) return rc;
    struct leat_log_app app = leat_groups_app(home->groups);
    if (home->snapshot) app.on_restore(app.ctx, home->snapshot, home->snapshot_count);
    for (unsigned i = 0; i < home->batch_count; i++) {
        struct leat_batch batch;
        assert_int_equal(
            leat_batch_check(home->batches[i].bytes, home->batches[i].count, &batch, NULL),
            LEAT_OK);
        app.on_replay(app.ctx, &batch);
    }
    if (!home->unread) app.on_read(app.ctx);
    home_check(home);
    return LEAT_OK;
}

static void home_open_whole(struct home *home)
{
    assert_int_equal(home_open(home), LEAT_OK);
    assert_null(leat_groups_broken(home->groups));
}

void home_close(struct home *home)
{
    while (home->append || home->query)
        home_run(home, 1000);
    leat_groups_destroy(&home->groups);
}

struct home *home_new(uint64_t seed, bool parallel)
{
    struct home *home = calloc(1, sizeof *home);
    assert_non_null(home);
    leat_xoshiro_seed(&home->rng, seed);
    home->now_us = 1000000;
    home->parallel = parallel;
    home->clock = (struct leat_clock){home, clock_now, clock_wall, clock_wake};
    home->random = (struct leat_random){.ctx = home, .next = random_next};
    home->env = (struct leat_env){.clock = &home->clock, .random = &home->random};
    assert_int_equal(leat_timers_init(&home->timers, &home->clock, 4), LEAT_OK);
    home_open_whole(home);
    return home;
}

void home_run(struct home *home, uint64_t us)
{
    for (uint64_t until = home->now_us + us; home->now_us < until;) {
        home->now_us += 1000;
        leat_timers_run(&home->timers);
        /* What it waits for lies ahead, but for answers that come in slices. */
        const struct leat_groups *groups = home->groups;
        if (groups != NULL && leat_timer_armed(&groups->timer) && !groups->untold)
            assert_true(groups->timer.at_us > home->now_us);
        while (home->query) {
            struct leat_segment_group_query *query = home->query;
            home->query = query->broker;
            query->rc = home->group_rc;
            if (query->rc == LEAT_OK) {
                query->end_offset = (query->group + 1) * 100;
                query->first_group = home->first_group;
            }
            query->on_done(query);
        }
        if (home->append && !home->mute && (home->calm || leat_xoshiro_below(&home->rng, 2))) {
            struct leat_append *append = home->append;
            home->append = NULL;
            home->acked_count = home->batch_count;
            append->on_acked(append, LEAT_OK);
        }
    }
}

void home_restart(struct home *home)
{
    home_check(home);
    while (home->query)
        home_run(home, 1000);
    if (home->append) {
        struct leat_append *append = home->append;
        home->append = NULL;
        if (home->batch_count > home->acked_count && leat_xoshiro_below(&home->rng, 2))
            free(home->batches[--home->batch_count].bytes);
        append->on_acked(append, LEAT_E_CLOSED);
    }
    home->acked_count = home->batch_count;
    leat_groups_destroy(&home->groups);
    home_open_whole(home);
}

void home_drop(struct home *home)
{
    leat_groups_destroy(&home->groups);
    leat_timers_fini(&home->timers);
    for (unsigned i = 0; i < home->batch_count; i++)
        free(home->batches[i].bytes);
    free(home->snapshot);
    free(home);
}

void home_free(struct home *home)
{
    home_restart(home);
    home_drop(home);
}

void home_replay(struct home *home, const void *value, size_t bytes)
{
    static uint8_t room[4096];
    struct leat_batch_builder builder;
    struct leat_batch batch;
    leat_batch_builder_init(&builder, room, sizeof room);
    assert_int_equal(leat_batch_builder_add(&builder, 1000, NULL, 0, value, bytes, NULL, 0, 0),
                     LEAT_OK);
    uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    assert_int_equal(leat_batch_check(room, total, &batch, NULL), LEAT_OK);
    struct leat_log_app app = leat_groups_app(home->groups);
    app.on_replay(app.ctx, &batch);
}

void home_fill(struct home *home)
{
    for (unsigned n = 0; home->groups->group_count < LEAT_GROUPS_PER_HOME_MAX; n++) {
        char name[32];
        snprintf(name, sizeof name, "group-%u", n);
        struct leat_group *group = leat_group_create(name, LEAT_GROUPS_ORDERED);
        assert_non_null(group);
        leat_groups_group_add(home->groups, group);
    }
}

struct home *roomy_home(struct leat_groups_room *room)
{
    struct home *home = home_new(1, true);
    memset(room, 0, sizeof *room);
    room->bytes_max = UINT64_MAX;
    home->room = room;
    home->calm = true;
    return home;
}

void home_done(struct leat_groups_request *request)
{
    if (request->rc != LEAT_OK) assert_true(!request->assigned && request->assigned_count == 0);
    *(bool *)request->owner = true;
}

struct leat_groups_request native_request(enum leat_groups_kind kind, const char *group,
                                          const uint32_t *streams, uint32_t stream_count)
{
    struct leat_groups_request r = {.kind = kind,
                                    .answer_bytes_max = SIZE_MAX,
                                    .session_ms = 30000,
                                    .streams = streams,
                                    .stream_count = stream_count};
    snprintf(r.group, sizeof r.group, "%s", group);
    return r;
}

bool ask_begin(struct home *home, struct leat_groups_request *request, bool *answered)
{
    request->on_done = home_done;
    request->owner = answered;
    return *answered = leat_groups_do(home->groups, request);
}

leat_err ask(struct home *home, struct leat_groups_request *request)
{
    bool answered = false;
    if (!request->group[0]) snprintf(request->group, sizeof request->group, "readers");
    request->on_done = home_done;
    request->owner = &answered;
    if (leat_groups_do(home->groups, request)) answered = true;
    for (int i = 0; i < 20000 && !answered; i++)
        home_run(home, 2000);
    assert_true(answered);
    home_check(home);
    if (request->rc != LEAT_OK) { /* by name */
        assert_int_equal(request->error.code, request->rc);
        assert_true(request->error.text[0] != '\0');
    }
    return request->rc;
}

void ask_join(struct home *home, struct leat_groups_request *join)
{
    assert_int_equal(ask(home, join), LEAT_OK);
    leat_mem_free(join->assigned);
}

void come_and_go(struct home *home, const char *group, enum leat_groups_mode mode)
{
    static const uint32_t stream = 7;
    struct leat_groups_request r = native_request(LEAT_GROUPS_JOIN, group, &stream, 1);
    r.mode = mode;
    ask_join(home, &r);
    r.kind = LEAT_GROUPS_LEAVE;
    assert_int_equal(ask(home, &r), LEAT_OK);
    home_run(home, 10000);
}

struct home *calm_home(void)
{
    struct home *home = home_new(1, true);
    home->calm = true;
    struct leat_groups_request wake = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    assert_int_equal(wake.generation, 0); /* no such group */
    return home;
}
