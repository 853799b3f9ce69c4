/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a home of consumer groups: its table, as start entries have it, and records. A table or a record that is
 * not right breaks the home by name. A table that is loaded keeps the rules of groups/table.h, encodes to the same
 * bytes again, and can be used: whatever requests members then send, the records that the home writes can be read. The
 * input: pieces (fuzz.h). */
#include "fuzz.h"

#include <stdio.h>

#include "base/mem.h"
#include "groups/internal.h"
#include "tests/rows.h"

enum {
    PIECE_TABLE = 1, /* of a piece's kind: a table, not a record */
    GROUPS_ASKED_MAX = 4,
    ASKS_MAX = GROUPS_ASKED_MAX * 8,
    STEP_US = 50 * 1000,
    STREAMLETS = 4,
    LOGS = 2,
    ENCODED_BYTES_MAX = 4 * 1024 * 1024,
};

struct ask {
    struct leat_groups_request request;
    struct leat_classic_call call;
};

/* A home log that takes everything, and acks in the next step. What it takes is shown to `reader`. */
struct home {
    struct leat_clock clock;
    struct leat_random random;
    struct leat_env env;
    struct leat_timers timers;
    struct leat_groups *groups;
    struct leat_append *append;
    struct leat_segment_group_query *query;
    struct home *reader;
};
static uint64_t now_us, dice;

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static int64_t clock_wall(void *ctx)
{
    (void)ctx;
    return (int64_t)(now_us / 1000);
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return dice = dice * UINT64_C(6364136223846793005) + 1;
}

static void batch_show(struct home *home, const struct leat_batch *batch)
{
    struct leat_log_app app = leat_groups_app(home->groups);
    app.on_replay(app.ctx, batch);
}

static leat_err home_append(void *ctx, const struct leat_batch *batch, struct leat_append *append)
{
    struct home *home = ctx;
    struct leat_batch again;
    LEAT_ASSERT(!home->append);
    LEAT_ASSERT(leat_batch_check(batch->bytes, batch->byte_count, &again, NULL) == LEAT_OK);
    home->append = append;
    if (home->reader) batch_show(home->reader, &again);
    return LEAT_OK;
}

static bool home_stream_size(void *ctx, uint32_t stream, uint32_t *out_streamlets,
                             uint32_t *out_logs)
{
    (void)ctx;
    *out_streamlets = STREAMLETS;
    *out_logs = LOGS;
    return stream < 100;
}

static void home_group(void *ctx, struct leat_segment_group_query *query)
{
    struct home *home = ctx;
    query->broker = home->query; /* a stack of questions */
    home->query = query;
}

static void home_open(struct home *home, struct home *reader)
{
    memset(home, 0, sizeof *home);
    home->reader = reader;
    home->clock = (struct leat_clock){home, clock_now, clock_wall, clock_wake};
    home->random = (struct leat_random){.ctx = home, .next = random_next};
    home->env = (struct leat_env){.clock = &home->clock, .random = &home->random};
    leat_err rc = leat_timers_init(&home->timers, &home->clock, 4);
    struct leat_groups_options options = {.env = &home->env,
                                          .timers = &home->timers,
                                          .broker = {home_append, home_stream_size, home_group},
                                          .ctx = home};
    if (rc == LEAT_OK) rc = leat_groups_create(&options, &home->groups);
    LEAT_ASSERT(rc == LEAT_OK);
}

static void home_step(struct home *home, uint64_t us)
{
    now_us += us;
    leat_timers_run(&home->timers);
    while (home->query) {
        struct leat_segment_group_query *query = home->query;
        home->query = query->broker;
        query->rc = LEAT_OK;
        query->first_group = 1;
        query->end_offset = (query->group + 1) * 100;
        query->on_done(query);
    }
    if (!home->append) return;
    struct leat_append *append = home->append;
    home->append = NULL;
    append->on_acked(append, LEAT_OK);
}

static void home_close(struct home *home)
{
    for (int i = 0; i < 3 || home->query || home->append; i++)
        home_step(home, 0);
    leat_groups_destroy(&home->groups);
    leat_timers_fini(&home->timers);
}

/* ---- bytes ---- */

static void table_show(struct home *home, const uint8_t *bytes, size_t count)
{
    struct leat_log_app app = leat_groups_app(home->groups);
    app.on_restore(app.ctx, bytes, count);
}

static uint8_t *table_take(struct home *home, size_t *out_count)
{
    struct leat_log_app app = leat_groups_app(home->groups);
    *out_count = app.snapshot_bytes(app.ctx);
    uint8_t *bytes = malloc(*out_count + 1);
    LEAT_ASSERT(bytes);
    app.snapshot_write(app.ctx, bytes);
    return bytes;
}

static void record_show(struct home *home, const struct fuzz_piece *piece)
{
    size_t capacity = piece->count + 256;
    uint8_t *bytes = malloc(capacity);
    struct leat_batch_builder builder;
    struct leat_batch batch;
    leat_batch_builder_init(&builder, bytes, capacity);
    leat_err rc = leat_batch_builder_add(&builder, 1, NULL, 0, piece->bytes, (uint32_t)piece->count,
                                         NULL, 0, 0);
    LEAT_ASSERT(rc == LEAT_OK);
    uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    LEAT_ASSERT(leat_batch_check(bytes, count, &batch, NULL) == LEAT_OK);
    batch_show(home, &batch);
    free(bytes);
}

/* ---- the rules ---- */

static void log_check(const struct leat_group_log *log)
{
    uint64_t last = log->first_group;
    for (uint32_t i = 0; i < log->group_count; i++) {
        LEAT_ASSERT_CMP(log->groups[i].group, >, last);
        last = log->groups[i].group;
    }
}

static void group_check(const struct leat_group *group)
{
    static uint8_t bytes[ENCODED_BYTES_MAX];
    struct leat_msg_writer bare, whole;
    uint32_t last = 0;
    LEAT_ASSERT((group->mode == LEAT_GROUPS_CLASSIC) == (group->classic != NULL));
    LEAT_ASSERT_CMP(group->member_count, <=, LEAT_GROUPS_MEMBERS_MAX);
    for (uint32_t i = 0; i < group->member_count; i++) {
        LEAT_ASSERT_CMP(group->members[i].serial, >, last);
        last = group->members[i].serial;
    }
    LEAT_ASSERT_CMP(last, <, group->next_serial);
    for (uint32_t i = 0; i < group->log_count; i++) {
        log_check(&group->logs[i]);
        LEAT_ASSERT(i == 0 || leat_log_ref_order(group->logs[i - 1].log, group->logs[i].log) < 0);
    }
    leat_msg_writer_init(&bare, bytes, sizeof bytes);
    leat_group_encode(&bare, group, false);
    LEAT_ASSERT(!bare.overflow);
    LEAT_ASSERT_CMP(bare.used, <=, group->bytes);
    leat_msg_writer_init(&whole, bytes, sizeof bytes);
    leat_group_encode(&whole, group, true);
    LEAT_ASSERT(!whole.overflow);
    if (group->classic)
        LEAT_ASSERT_CMP(whole.used, <=, group->bytes + group->classic->stored_bytes);
}

static void home_check(struct home *home, struct home *again)
{
    for (uint32_t i = 0; i < home->groups->group_count; i++) {
        group_check(home->groups->groups[i]);
        LEAT_ASSERT(leat_groups_group_find(home->groups, home->groups->groups[i]->name) ==
                    home->groups->groups[i]);
    }
    size_t count, count_again;
    uint8_t *bytes = table_take(home, &count);
    table_show(again, bytes, count);
    LEAT_ASSERT(!leat_groups_broken(again->groups));
    uint8_t *bytes_again = table_take(again, &count_again);
    LEAT_ASSERT(count == count_again && memcmp(bytes, bytes_again, count) == 0);
    free(bytes);
    free(bytes_again);
}

/* ---- members ---- */

static void on_done(struct leat_groups_request *request)
{
    struct ask *ask = request->owner;
    leat_mem_free(request->assigned);
    leat_mem_free(request->offsets);
    leat_mem_free(ask->call.memory);
    memset(ask, 0, sizeof *ask);
}

static struct ask asks[ASKS_MAX];

static struct ask *ask_begin(enum leat_groups_kind kind, const struct leat_group *group)
{
    struct ask *ask = asks;
    while (ask->request.owner)
        if (++ask == asks + ASKS_MAX) abort(); /* there are as many as are asked at once */
    ask->request.kind = kind;
    ask->request.answer_bytes_max = SIZE_MAX;
    ask->request.on_done = on_done;
    ask->request.owner = ask;
    snprintf(ask->request.group, sizeof ask->request.group, "%s", group->name);
    return ask;
}

static void ask_send(struct home *home, struct ask *ask)
{
    if (leat_groups_do(home->groups, &ask->request)) on_done(&ask->request);
}

static void group_ask(struct home *home, enum leat_groups_kind kind, const struct leat_group *group)
{
    static const struct leat_classic_protocol protocol = {{"range", 5}, {"m", 1}};
    struct ask *ask = ask_begin(kind, group);
    ask->request.classic = &ask->call;
    ask->request.session_ms = LEAT_GROUPS_SESSION_MS_DEFAULT;
    ask->call.rebalance_ms = LEAT_GROUPS_SESSION_MS_DEFAULT;
    ask->call.client = (struct leat_msg_string){"probe", 5};
    ask->call.protocols = &protocol;
    ask->call.protocol_count = 1;
    if (group->classic) ask->call.protocol_type = leat_classic_text(group->classic->protocol_type);
    if (group->classic && group->classic->member_count > 0 && kind != LEAT_GROUPS_CLASSIC_JOIN)
        snprintf(ask->request.member, sizeof ask->request.member, "%s",
                 group->classic->members[0]->id);
    ask_send(home, ask);
}

static void native_ask(struct home *home, enum leat_groups_kind kind,
                       const struct leat_group *group)
{
    static const uint32_t streams[] = {1, 7};
    static const struct leat_groups_offset offset = {.log = {1, 0, 0}, .group = 3, .offset = 70};
    static const struct leat_groups_offset whole = {.log = {1, 0, 0}, .group = -1, .offset = 70};
    struct ask *ask = ask_begin(kind, group);
    ask->request.mode =
        group->mode == LEAT_GROUPS_PARALLEL ? LEAT_GROUPS_PARALLEL : LEAT_GROUPS_ORDERED;
    ask->request.streams = streams;
    ask->request.stream_count = 2;
    ask->request.commits = group->mode == LEAT_GROUPS_PARALLEL ? &offset : &whole;
    ask->request.commit_count = 1;
    ask->request.generation = group->generation;
    if (kind == LEAT_GROUPS_HEARTBEAT && group->member_count > 0)
        snprintf(ask->request.member, sizeof ask->request.member, "%s", group->members[0].id);
    ask_send(home, ask);
}

static void go_on(struct home *home)
{
    static const uint64_t pauses_us[] = {STEP_US, STEP_US,  STEP_US,    500000, 3000000,
                                         9000000, 30000000, 1800000000, STEP_US};
    uint32_t groups =
        home->groups->group_count < GROUPS_ASKED_MAX ? home->groups->group_count : GROUPS_ASKED_MAX;
    for (uint32_t i = 0; i < groups; i++) {
        const struct leat_group *group = home->groups->groups[i];
        group_ask(home, LEAT_GROUPS_DESCRIBE, group);
        group_ask(home, LEAT_GROUPS_CLASSIC_JOIN, group);
        group_ask(home, LEAT_GROUPS_CLASSIC_SYNC, group);
        group_ask(home, LEAT_GROUPS_CLASSIC_HEARTBEAT, group);
        native_ask(home, LEAT_GROUPS_HEARTBEAT, group);
        native_ask(home, LEAT_GROUPS_JOIN, group);
        native_ask(home, LEAT_GROUPS_COMMIT, group);
        native_ask(home, LEAT_GROUPS_FETCH, group);
    }
    for (size_t i = 0; i < sizeof pauses_us / sizeof *pauses_us; i++)
        for (unsigned step = 0; step < 4; step++)
            home_step(home, pauses_us[i]);
    leat_groups_on_stream_changed(home->groups, 1);
    leat_groups_on_stream_deleted(home->groups, 7);
    for (unsigned step = 0; step < 8; step++)
        home_step(home, STEP_US);
}

/* Now and then one record more, by its table; else any change. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static const leat_msg_row_fn records[] = {leat_record_native_row, leat_record_commit_row,
                                              leat_record_delete_row, leat_record_classic_row};
    struct leat_msg_writer writer;
    uint64_t random = seed;
    if (seed % 16 != 0 || size + FUZZ_PIECE_HEADER_BYTES >= max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *piece = data + size;
    leat_msg_writer_init(&writer, piece + FUZZ_PIECE_HEADER_BYTES,
                         max_size - size - FUZZ_PIECE_HEADER_BYTES);
    rows_make(&writer, records[rows_random(&random) % 4](), &random);
    if (writer.overflow || writer.used > UINT16_MAX) return LLVMFuzzerMutate(data, size, max_size);
    piece[0] = 0;
    leat_put_le16(piece + 1, (uint16_t)writer.used);
    return size + FUZZ_PIECE_HEADER_BYTES + writer.used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct home home, again;
    struct fuzz_pieces pieces = {data, data + size};
    struct fuzz_piece piece;
    now_us = 1000000;
    dice = 1;
    memset(asks, 0, sizeof asks);
    home_open(&again, NULL);
    home_open(&home, &again);
    while (fuzz_piece_next(&pieces, &piece) && !leat_groups_broken(home.groups)) {
        if (piece.kind & PIECE_TABLE)
            table_show(&home, piece.bytes, piece.count);
        else
            record_show(&home, &piece);
    }
    if (!leat_groups_broken(home.groups)) {
        home_check(&home, &again);
        go_on(&home);
        LEAT_ASSERT(!leat_groups_broken(again.groups));
        if (!leat_groups_broken(home.groups)) home_check(&home, &again);
    }
    home_close(&home);
    home_close(&again);
    return 0;
}
