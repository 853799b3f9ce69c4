/* SPDX-License-Identifier: Apache-2.0 */
/* The transport suite. */
#include "tests/transport/suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    WRITES_MAX = 1024,
    STEP = LEAT_ARENA_STEP_BYTES,
    SOURCE_BYTES = 4 * 1024 * 1024,
};

/* A test's whole world: one arena, one target. */
struct bench {
    const struct transport_family *family;
    struct transport_rig *rig;
    struct leat_xoshiro random;
    /* host's actor */
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    bool grown;
    leat_err rc; /* of the last call */
    struct leat_error error;
    /* writer's actor */
    struct leat_rmem_target *target;
    bool attached, failed, in_call;
    struct leat_error failure;
    uint8_t *source;
    struct leat_rmem_write writes[WRITES_MAX];
    struct leat_iov iovs[WRITES_MAX][LEAT_RMEM_IOVS_MAX];
    leat_err rcs[WRITES_MAX];
    unsigned posted, ended, oks; /* in order, so counts say which */
    unsigned count;              /* writes that are acked when the fence is sent */
    /* a stream of equal writes that keeps itself going */
    struct leat_mail fence; /* from the writer's actor to the host's, in the middle of the stream */
    bool fence_sent, fenced;
    uint32_t stream_bytes;
    uint64_t streamed, stream_acked, stream_ended;
};

static void on_rig(struct bench *bench, unsigned actor, void (*fn)(void *arg))
{
    bench->rig->call(bench->rig->ctx, actor, fn, bench);
}
static void rig_wait(struct bench *bench, unsigned actor, bool (*done)(void *arg))
{
    bench->rig->wait(bench->rig->ctx, actor, done, bench);
}

/* ---- host ---- */

static void on_grown(struct leat_rmem_grow *grow)
{
    struct bench *bench = grow->owner;
    RIG_CHECK(!bench->in_call || bench->rig == NULL);
    bench->grown = true;
    bench->rig->notify(bench->rig->ctx);
}
static void host_grow(void *arg)
{
    struct bench *bench = arg;
    bench->grown = false;
    bench->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = bench};
    bench->rig->host->grow(bench->rig->host->ctx, bench->arena, &bench->grow);
    RIG_CHECK(!bench->grown);
}
static bool is_grown(void *arg)
{
    return ((struct bench *)arg)->grown;
}
static void host_open(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem_host *host = bench->rig->host;
    RIG_CHECK(host->open(host->ctx, "writer", 7, 2 * (uint64_t)STEP, &bench->arena,
                         &bench->error) == LEAT_OK);
    RIG_CHECK(bench->arena->grown_bytes == 0 && !bench->arena->revoked);
}
static void host_grant(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem_host *host = bench->rig->host;
    host->grant(host->ctx, bench->arena, &bench->grant);
}
static void host_revoke(void *arg)
{
    struct bench *bench = arg;
    bench->rig->host->revoke(bench->rig->host->ctx, bench->arena);
    RIG_CHECK(bench->arena->revoked);
}
static void host_retire(void *arg)
{
    struct bench *bench = arg;
    bench->rig->host->retire(bench->rig->host->ctx, bench->arena);
    bench->arena = NULL;
}
static void grow_and_grant(struct bench *bench)
{
    on_rig(bench, RIG_HOST, host_grow);
    rig_wait(bench, RIG_HOST, is_grown);
    RIG_CHECK(bench->grow.rc == LEAT_OK);
    on_rig(bench, RIG_HOST, host_grant);
}

/* ---- writer ---- */

static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct bench *bench = user;
    RIG_CHECK(!bench->in_call && target == bench->target && target->attached);
    bench->attached = true;
    bench->rig->notify(bench->rig->ctx);
}
static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct bench *bench = user;
    RIG_CHECK(!bench->in_call && target == bench->target && !bench->failed);
    RIG_CHECK(bench->ended == bench->posted && bench->stream_ended == bench->streamed);
    RIG_CHECK(error->code != LEAT_OK && error->text[0]);
    bench->failed = true;
    bench->failure = *error;
    bench->rig->notify(bench->rig->ctx);
}
static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static void writer_attach(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem *writer = bench->rig->writer;
    bench->attached = bench->failed = false;
    bench->in_call = true;
    bench->rc = writer->attach(writer->ctx, bench->rig->node, &bench->grant, &handler, bench,
                               &bench->target, &bench->error);
    bench->in_call = false;
}
static bool attach_ended(void *arg)
{
    struct bench *bench = arg;
    return bench->attached || bench->failed;
}
static bool is_failed(void *arg)
{
    return ((struct bench *)arg)->failed;
}
static void writer_detach(void *arg)
{
    struct bench *bench = arg;
    bench->in_call = true;
    leat_rmem_detach(bench->target);
    bench->in_call = false;
    bench->target = NULL;
}

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct bench *bench = write->owner;
    unsigned i = (unsigned)(write - bench->writes);
    RIG_CHECK(!bench->in_call);
    RIG_CHECK(i == bench->ended); /* in order, each once */
    bench->rcs[i] = rc;
    bench->ended++;
    if (rc == LEAT_OK) {
        RIG_CHECK(bench->oks == i); /* none succeeds after one has failed */
        bench->oks++;
    }
    bench->rig->notify(bench->rig->ctx);
}
static bool all_ended(void *arg)
{
    struct bench *bench = arg;
    return bench->ended == bench->posted;
}
static leat_err post(struct bench *bench, uint64_t offset, const void *bytes, size_t count)
{
    struct leat_rmem_write *write = &bench->writes[bench->posted];
    bench->iovs[bench->posted][0] = (struct leat_iov){bytes, count};
    *write = (struct leat_rmem_write){.iovs = bench->iovs[bench->posted],
                                      .iov_count = 1,
                                      .offset = offset,
                                      .on_done = on_done,
                                      .owner = bench};
    bench->in_call = true;
    leat_err rc = leat_rmem_write(bench->target, write);
    bench->in_call = false;
    if (rc == LEAT_OK) bench->posted++;
    return rc;
}

static struct bench *bench_make(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    RIG_CHECK(bench != NULL);
    bench->family = *state;
    bench->rig = bench->family->make();
    leat_xoshiro_seed(&bench->random, 11);
    on_rig(bench, RIG_HOST, host_open);
    grow_and_grant(bench);
    bench->source = bench->rig->memory(bench->rig->ctx, SOURCE_BYTES);
    for (size_t i = 0; i < SOURCE_BYTES; i++)
        bench->source[i] = (uint8_t)leat_xoshiro_next(&bench->random);
    return bench;
}
static struct bench *bench_attached(void **state)
{
    struct bench *bench = bench_make(state);
    on_rig(bench, RIG_WRITER, writer_attach);
    assert_int_equal(bench->rc, LEAT_OK);
    rig_wait(bench, RIG_WRITER, attach_ended);
    if (!bench->attached) print_message("attach: %s\n", bench->failure.text);
    assert_true(bench->attached);
    assert_int_equal(bench->target->kind, bench->family->kind);
    return bench;
}
static void bench_drop(struct bench *bench)
{
    if (bench->target) on_rig(bench, RIG_WRITER, writer_detach);
    if (bench->arena) on_rig(bench, RIG_HOST, host_retire);
    bench->family->drop(bench->rig);
    free(bench);
}

/* ---- tests ---- */

enum { GATHERED = 300 };

static void post_gathered(void *arg)
{
    struct bench *bench = arg;
    uint64_t offset = 0;
    for (unsigned i = 0; i < GATHERED; i++) {
        struct leat_rmem_write *write = &bench->writes[i];
        unsigned pieces = 1 + (unsigned)(leat_xoshiro_next(&bench->random) % LEAT_RMEM_IOVS_MAX);
        *write = (struct leat_rmem_write){.iovs = bench->iovs[i],
                                          .iov_count = pieces,
                                          .offset = offset,
                                          .on_done = on_done,
                                          .owner = bench};
        for (unsigned p = 0; p < pieces; p++) {
            size_t bytes = leat_xoshiro_next(&bench->random) % 20000 + 1;
            size_t at = leat_xoshiro_next(&bench->random) % (SOURCE_BYTES - bytes);
            bench->iovs[i][p] = (struct leat_iov){bench->source + at, bytes};
            offset += bytes;
        }
        bench->in_call = true;
        RIG_CHECK(leat_rmem_write(bench->target, write) == LEAT_OK);
        bench->in_call = false;
        bench->posted++;
    }
}

/* More writes than fit the window, of many pieces and odd lengths. */
static void writes_past_the_window_land_whole_and_complete_in_order(void **state)
{
    struct bench *bench = bench_attached(state);
    assert_true(GATHERED > 2 * LEAT_RMEM_WINDOW);
    on_rig(bench, RIG_WRITER, post_gathered);
    rig_wait(bench, RIG_WRITER, all_ended);
    assert_int_equal(bench->oks, GATHERED);
    on_rig(bench, RIG_HOST, host_revoke);
    const uint8_t *at = bench->arena->base;
    for (unsigned i = 0; i < GATHERED; i++)
        for (unsigned p = 0; p < bench->writes[i].iov_count; p++) {
            assert_memory_equal(at, bench->iovs[i][p].base, bench->iovs[i][p].bytes);
            at += bench->iovs[i][p].bytes;
        }
    for (unsigned i = 0; i < 4096; i++)
        assert_int_equal(at[i], 0); /* not a byte too many */
    bench_drop(bench);
}

static void post_across_steps(void *arg)
{
    struct bench *bench = arg;
    RIG_CHECK(post(bench, STEP - 100000, bench->source, 300000) == LEAT_OK);
    RIG_CHECK(post(bench, 2 * (uint64_t)STEP - 1, bench->source, 1) == LEAT_OK);
}

/* A step made after attaching needs no new grant, and a write may lie across both. */
static void write_across_a_step_made_later_lands(void **state)
{
    struct bench *bench = bench_attached(state);
    grow_and_grant(bench);
    on_rig(bench, RIG_WRITER, post_across_steps);
    rig_wait(bench, RIG_WRITER, all_ended);
    if (bench->failed) print_message("failed: %s\n", bench->failure.text);
    assert_int_equal(bench->oks, 2);
    assert_memory_equal(bench->arena->base + STEP - 100000, bench->source, 300000);
    assert_int_equal(bench->arena->base[2 * (uint64_t)STEP - 1], bench->source[0]);
    bench_drop(bench);
}

static void post_wrong(void *arg)
{
    struct bench *bench = arg;
    uint64_t limit = 2 * (uint64_t)STEP;
    RIG_CHECK(post(bench, limit, bench->source, 1) == LEAT_E_OFFSET_OUT_OF_RANGE);
    RIG_CHECK(post(bench, limit - 1, bench->source, 2) == LEAT_E_OFFSET_OUT_OF_RANGE);
    RIG_CHECK(post(bench, UINT64_MAX, bench->source, 2) == LEAT_E_OFFSET_OUT_OF_RANGE);
    RIG_CHECK(post(bench, 0, bench->source, 0) == LEAT_E_INVALID);
    RIG_CHECK(post(bench, 0, bench->source, LEAT_RMEM_WRITE_BYTES_MAX + 1) == LEAT_E_TOO_LARGE);
    RIG_CHECK(post(bench, 0, bench->source, 1) == LEAT_OK); /* none the worse */
}

static void wrong_offset_or_length_is_refused_and_harms_nothing(void **state)
{
    struct bench *bench = bench_attached(state);
    on_rig(bench, RIG_WRITER, post_wrong);
    rig_wait(bench, RIG_WRITER, all_ended);
    assert_int_equal(bench->oks, 1);
    bench_drop(bench);
}

static void post_past_grown(void *arg)
{
    struct bench *bench = arg;
    RIG_CHECK(post(bench, 0, bench->source, 1000) == LEAT_OK);
    RIG_CHECK(post(bench, STEP - 10, bench->source, 1000) == LEAT_OK);
    RIG_CHECK(post(bench, 0, bench->source, 1000) == LEAT_OK);
}
static void post_refused(void *arg)
{
    struct bench *bench = arg;
    RIG_CHECK(post(bench, 0, bench->source, 1) == LEAT_E_CLOSED);
}

/* The host has made one step of two: nothing may be stored where no memory is. */
static void write_past_what_is_grown_fails_the_target(void **state)
{
    struct bench *bench = bench_attached(state);
    on_rig(bench, RIG_WRITER, post_past_grown);
    rig_wait(bench, RIG_WRITER, is_failed);
    assert_int_equal(bench->ended, 3);
    assert_true(bench->oks <= 1);
    on_rig(bench, RIG_WRITER, post_refused);
    bench_drop(bench);
}

/* ---- a stream of writes, each with its number all over, end to end ---- */

/* Copy as a backup does, right after revoke(). */
static uint8_t *copy;
static void host_revoke_and_copy(void *actor, struct leat_mail *mail)
{
    struct bench *bench = LEAT_CONTAINER(mail, struct bench, fence);
    (void)actor;
    host_revoke(bench);
    memcpy(copy, bench->arena->base, STEP);
    bench->fenced = true;
    bench->rig->notify(bench->rig->ctx);
}

static void stream_post(struct bench *bench, struct leat_rmem_write *write);

static void fence_send(struct bench *bench)
{
    const struct leat_post *post_office = bench->rig->writer_env->post;
    if (bench->fence_sent) return;
    bench->fence_sent = true;
    bench->fence.deliver = host_revoke_and_copy;
    post_office->send(post_office->ctx, RIG_HOST, &bench->fence);
}

static void on_stream_done(struct leat_rmem_write *write, leat_err rc)
{
    struct bench *bench = write->owner;
    RIG_CHECK(!bench->in_call);
    bench->stream_ended++;
    if (rc == LEAT_OK) {
        RIG_CHECK(bench->stream_acked == bench->stream_ended - 1);
        bench->stream_acked++;
        if (bench->stream_acked >= bench->count) fence_send(bench);
        stream_post(bench, write);
    }
    bench->rig->notify(bench->rig->ctx);
}
static void stream_post(struct bench *bench, struct leat_rmem_write *write)
{
    uint64_t number = bench->streamed;
    size_t slot = (size_t)(write - bench->writes);
    if ((number + 1) * bench->stream_bytes > STEP) return;
    uint8_t *bytes = bench->source + slot * bench->stream_bytes;
    memset(bytes, (int)(number % 255 + 1), bench->stream_bytes);
    bench->iovs[slot][0] = (struct leat_iov){bytes, bench->stream_bytes};
    *write = (struct leat_rmem_write){.iovs = bench->iovs[slot],
                                      .iov_count = 1,
                                      .offset = number * bench->stream_bytes,
                                      .on_done = on_stream_done,
                                      .owner = bench};
    bench->in_call = true;
    if (leat_rmem_write(bench->target, write) == LEAT_OK) bench->streamed++;
    bench->in_call = false;
}
static void stream_start(void *arg)
{
    struct bench *bench = arg;
    for (unsigned i = 0; i < 8; i++)
        stream_post(bench, &bench->writes[i]);
}
static bool is_fenced(void *arg)
{
    return ((struct bench *)arg)->fenced;
}
static bool stream_ended(void *arg)
{
    struct bench *bench = arg;
    return bench->failed || bench->stream_ended == bench->streamed;
}

/* The one promise: what was acked is in the copy taken after the fence. */
static void fence_while_writes_arrive_never_loses_an_acked_byte(void **state)
{
    const struct transport_family *family = *state;
    unsigned cut_short = 0;
    copy = malloc(STEP);
    assert_non_null(copy);
    struct bench *bench = bench_attached(state);
    for (unsigned round = 0; round < family->fences; round++) {
        bench->stream_bytes = round % 2 ? 64 * 1024 : 256 * 1024;
        bench->streamed = bench->stream_acked = bench->stream_ended = 0;
        bench->count = (unsigned)(leat_xoshiro_next(&bench->random) % 64);
        bench->fence_sent = bench->fenced = false;
        on_rig(bench, RIG_WRITER, stream_start);
        rig_wait(bench, RIG_HOST, is_fenced);
        rig_wait(bench, RIG_WRITER, stream_ended);
        for (uint64_t i = 0; i < bench->stream_acked; i++) {
            const uint8_t *at = copy + i * bench->stream_bytes;
            RIG_CHECK(at[0] == (uint8_t)(i % 255 + 1));
            RIG_CHECK(memcmp(at, at + 1, bench->stream_bytes - 1) == 0); /* all the same */
        }
        if (bench->stream_acked < STEP / bench->stream_bytes) cut_short++;
        on_rig(bench, RIG_WRITER, writer_detach);
        on_rig(bench, RIG_HOST, host_retire);
        on_rig(bench, RIG_HOST, host_open);
        grow_and_grant(bench);
        on_rig(bench, RIG_WRITER, writer_attach);
        assert_int_equal(bench->rc, LEAT_OK);
        rig_wait(bench, RIG_WRITER, attach_ended);
        assert_true(bench->attached);
        bench->streamed = bench->stream_acked = bench->stream_ended = 0;
    }
    print_message("%s: %u of %u streams cut by the fence\n", family->name, cut_short,
                  family->fences);
    assert_true(cut_short > 0); /* else nothing was tested */
    bench_drop(bench);
    free(copy);
}

static void post_one(void *arg)
{
    struct bench *bench = arg;
    leat_err rc = post(bench, 4096, bench->source, 8192);
    RIG_CHECK(rc == LEAT_OK || rc == LEAT_E_CLOSED);
}

/* The target sat idle while its arena was revoked, retired and followed by another arena. */
static void idle_writer_of_a_retired_arena_fails_and_the_next_arena_stays_clean(void **state)
{
    struct bench *bench = bench_attached(state);
    on_rig(bench, RIG_HOST, host_retire);
    struct leat_rmem_target *old = bench->target;
    on_rig(bench, RIG_HOST, host_open);
    grow_and_grant(bench);
    assert_ptr_equal(bench->target, old);
    on_rig(bench, RIG_WRITER, post_one);
    rig_wait(bench, RIG_WRITER, is_failed);
    assert_int_equal(bench->oks, 0);
    on_rig(bench, RIG_HOST, host_revoke);
    for (unsigned i = 0; i < 65536; i++)
        assert_int_equal(bench->arena->base[i], 0);
    bench_drop(bench);
}

static void attach_fails(struct bench *bench)
{
    bench->failed = false;
    on_rig(bench, RIG_WRITER, writer_attach);
    if (bench->rc == LEAT_OK) {
        rig_wait(bench, RIG_WRITER, attach_ended);
        assert_true(bench->failed);
        assert_false(bench->attached);
        assert_true(bench->failure.text[0]);
        on_rig(bench, RIG_WRITER, writer_detach);
    } else {
        assert_true(bench->error.text[0]);
        bench->target = NULL;
    }
}

static void stale_or_foreign_grant_is_refused_by_name(void **state)
{
    struct bench *bench = bench_make(state);
    struct leat_rmem_grant good = bench->grant;
    bench->grant.data[2] ^= 1; /* the first byte of the arena's id */
    attach_fails(bench);
    bench->grant = (struct leat_rmem_grant){0};
    on_rig(bench, RIG_WRITER, writer_attach);
    assert_int_not_equal(bench->rc, LEAT_OK);
    bench->target = NULL;
    bench->grant = good;
    on_rig(bench, RIG_HOST, host_revoke);
    attach_fails(bench);
    on_rig(bench, RIG_HOST, host_retire);
    attach_fails(bench);
    bench_drop(bench);
}

static void post_many_and_detach(void *arg)
{
    struct bench *bench = arg;
    for (unsigned i = 0; i < 2 * LEAT_RMEM_WINDOW; i++)
        RIG_CHECK(post(bench, (uint64_t)i * 4096, bench->source, 4096) == LEAT_OK);
    writer_detach(bench);
}

static void detach_with_writes_under_way_ends_each_once(void **state)
{
    struct bench *bench = bench_attached(state);
    on_rig(bench, RIG_WRITER, post_many_and_detach);
    rig_wait(bench, RIG_WRITER, all_ended);
    assert_int_equal(bench->ended, 2 * LEAT_RMEM_WINDOW);
    assert_false(bench->failed);
    on_rig(bench, RIG_HOST, host_revoke);
    for (unsigned i = 0; i < bench->oks; i++)
        assert_memory_equal(bench->arena->base + (size_t)i * 4096, bench->source, 4096);
    bench_drop(bench);
}

static void attach_and_detach(void *arg)
{
    struct bench *bench = arg;
    writer_attach(bench);
    if (bench->rc == LEAT_OK) writer_detach(bench);
}

static void detach_while_attaching_is_quiet(void **state)
{
    struct bench *bench = bench_make(state);
    for (unsigned i = 0; i < 20; i++) {
        on_rig(bench, RIG_WRITER, attach_and_detach);
        assert_int_equal(bench->rc, LEAT_OK);
    }
    on_rig(bench, RIG_WRITER, writer_attach);
    rig_wait(bench, RIG_WRITER, attach_ended);
    assert_true(bench->attached);
    bench_drop(bench);
}

static void message_enter_and_leave(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem_host *host = bench->rig->host;
    struct leat_rmem_address address;
    uint8_t *at = NULL;
    RIG_CHECK(leat_rmem_grant_address(&bench->grant, &address) == LEAT_OK);
    const struct leat_rmem_from from = {bench->arena->writer, bench->arena->writer_incarnation};
    const struct leat_rmem_from later = {from.node, from.incarnation + 1};
    const struct leat_rmem_from stranger = {"stranger", from.incarnation};
    RIG_CHECK(host->enter(host->ctx, &later, &address, 0, 1, &at) == LEAT_E_DENIED);
    RIG_CHECK(host->enter(host->ctx, &stranger, &address, 0, 1, &at) == LEAT_E_DENIED);
    RIG_CHECK(host->enter(host->ctx, &from, &address, STEP, 1, &at) == LEAT_E_OFFSET_OUT_OF_RANGE);
    RIG_CHECK(host->enter(host->ctx, &from, &address, UINT64_MAX, 2, &at) ==
              LEAT_E_OFFSET_OUT_OF_RANGE);
    RIG_CHECK(host->enter(host->ctx, &from, &address, STEP - 1, 1, &at) == LEAT_OK);
    *at = 9;
    RIG_CHECK(host->leave(host->ctx, &address) == LEAT_OK);
    RIG_CHECK(bench->arena->base[STEP - 1] == 9);
    struct leat_rmem_address other = address;
    other.id[0] ^= 1;
    RIG_CHECK(host->enter(host->ctx, &from, &other, 0, 1, &at) == LEAT_E_NOT_FOUND);
    other = address;
    other.number++;
    RIG_CHECK(host->enter(host->ctx, &from, &other, 0, 1, &at) == LEAT_E_NOT_FOUND);
    host_revoke(bench);
    RIG_CHECK(host->enter(host->ctx, &from, &address, 0, 1, &at) == LEAT_E_CANCELLED);
    host_retire(bench);
    RIG_CHECK(host->enter(host->ctx, &from, &address, 0, 1, &at) == LEAT_E_NOT_FOUND);
}

static void message_into_a_revoked_or_unknown_arena_is_refused(void **state)
{
    struct bench *bench = bench_make(state);
    on_rig(bench, RIG_HOST, message_enter_and_leave);
    bench_drop(bench);
}

int transport_suite_run(const struct transport_family *family)
{
    void *state = (void *)(uintptr_t)family;
#define TEST(name) cmocka_unit_test_prestate(name, state)
    const struct CMUnitTest tests[] = {
        TEST(writes_past_the_window_land_whole_and_complete_in_order),
        TEST(write_across_a_step_made_later_lands),
        TEST(wrong_offset_or_length_is_refused_and_harms_nothing),
        TEST(write_past_what_is_grown_fails_the_target),
        TEST(fence_while_writes_arrive_never_loses_an_acked_byte),
        TEST(idle_writer_of_a_retired_arena_fails_and_the_next_arena_stays_clean),
        TEST(stale_or_foreign_grant_is_refused_by_name),
        TEST(detach_with_writes_under_way_ends_each_once),
        TEST(detach_while_attaching_is_quiet),
        TEST(message_into_a_revoked_or_unknown_arena_is_refused),
    };
    return cmocka_run_group_tests_name(family->name, tests, NULL, NULL);
}
