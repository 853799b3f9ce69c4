/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and reading: compared with a list of all records, from memory and from files, for logs made by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reopen.h"

enum { BATCHES_MAX = 400, RECORDS_MAX = 6 };

struct known {
    uint64_t base;
    uint32_t count, bytes;
    uint64_t segment;
    uint32_t epoch;
    int64_t times[RECORDS_MAX], highest;
};

struct scene {
    struct fake *fake;
    struct leat_xoshiro random;
    struct known batches[BATCHES_MAX];
    unsigned count;
    void *buffer;
};

/* Times go up and down, records within a batch too. */
static void batch_add(struct scene *scene)
{
    struct fake *fake = scene->fake;
    struct known *known = &scene->batches[scene->count];
    static uint8_t value[4000];
    struct leat_batch_builder builder;
    struct leat_batch batch;
    struct sent sent;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    known->count = 1 + (uint32_t)leat_xoshiro_below(&scene->random, RECORDS_MAX);
    known->highest = INT64_MIN;
    size_t value_bytes = leat_xoshiro_below(&scene->random, 2000);
    for (uint32_t i = 0; i < known->count; i++) {
        known->times[i] =
            1000 + (int64_t)leat_xoshiro_below(&scene->random, 10 * (scene->count + 3));
        if (known->times[i] > known->highest) known->highest = known->times[i];
        leat_err rc = leat_batch_builder_add(&builder, known->times[i], NULL, 0, value, value_bytes,
                                             NULL, 0, 0);
        assert_int_equal(rc, LEAT_OK);
    }
    known->bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    assert_int_equal(leat_batch_check(bytes, known->bytes, &batch, NULL), LEAT_OK);
    for (;;) {
        sent = (struct sent){.append = {.on_acked = on_answer, .owner = &sent}};
        leat_err rc = leat_log_append(fake->log, &batch, &sent.append, NULL);
        if (rc == LEAT_OK) break;
        assert_int_equal(rc, LEAT_E_AGAIN);
        fake_settle(fake);
    }
    known->base = sent.append.first_offset;
    known->segment = fake->log->head.seg->id.v;
    known->epoch = fake->options.epoch.v;
    scene->count++;
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
}

static struct scene scene_make(uint64_t seed, bool files)
{
    struct scene scene = {.fake = fake_create(seed, LEAT_DURABILITY_MEMORY)};
    leat_xoshiro_seed(&scene.random, seed);
    scene.fake->options.settings.segment_bytes_max = 16384;
    scene.buffer = aligned_alloc(4096, BUFFER_BYTES);
    fake_open(scene.fake, NULL, 0, NULL);
    for (unsigned owner = 0; owner < 3; owner++) {
        if (owner) reopen(scene.fake, 0, 0, files);
        while (scene.count < 40 * (owner + 1))
            batch_add(&scene);
    }
    if (files) evict_all(scene.fake);
    fake_settle(scene.fake);
    return scene;
}

static void scene_end(struct scene *scene)
{
    free(scene->buffer);
    fake_destroy(scene->fake);
}

static struct leat_locate_op found(struct scene *scene, uint32_t what, int64_t value)
{
    struct leat_locate_op op = {.what = what, .value = value};
    assert_int_equal(locate(scene->fake, &op, scene->buffer), LEAT_OK);
    return op;
}

static const struct known *batch_of(const struct scene *scene, uint64_t offset)
{
    for (unsigned i = 0; i < scene->count; i++)
        if (offset < scene->batches[i].base + scene->batches[i].count) return &scene->batches[i];
    return NULL;
}

/* Goal: a time leads to the first record that is not older, in the first batch that has one. */
static void times_are_found(struct scene *scene)
{
    const struct known *last = &scene->batches[scene->count - 1];
    for (int64_t time = 990; time < 1000 + 10 * (int64_t)(scene->count + 3); time += 7) {
        uint64_t offset = last->base + last->count;
        int64_t its = -1;
        for (unsigned i = 0; i < scene->count && its < 0; i++)
            for (uint32_t k = 0; k < scene->batches[i].count && its < 0; k++)
                if (scene->batches[i].times[k] >= time) {
                    offset = scene->batches[i].base + k;
                    its = scene->batches[i].times[k];
                }
        struct leat_locate_op op = found(scene, LEAT_LOCATE_TIME, time);
        assert_int_equal(op.offset.v, offset);
        assert_int_equal(op.timestamp_ms, its);
    }
    int64_t newest = 0;
    for (unsigned i = 0; i < scene->count; i++)
        if (scene->batches[i].highest > newest) newest = scene->batches[i].highest;
    struct leat_locate_op op = found(scene, LEAT_LOCATE_NEWEST, 0);
    assert_int_equal(op.timestamp_ms, newest);
}

/* Goal: an offset leads to the place of its batch, and the place back to its first record. */
static void offsets_and_places_are_found(struct scene *scene)
{
    const struct known *last = &scene->batches[scene->count - 1];
    uint64_t end = last->base + last->count;
    for (uint64_t offset = 0; offset < end; offset++) {
        const struct known *known = batch_of(scene, offset);
        struct leat_locate_op op = found(scene, LEAT_LOCATE_OFFSET, (int64_t)offset);
        assert_int_equal(op.offset.v, offset);
        assert_int_equal(op.position.segment, known->segment);
        assert_int_equal(op.position.group, known->segment / LEAT_SEGMENTS_PER_GROUP);
        struct leat_locate_op back = {.what = LEAT_LOCATE_POSITION, .from = op.position};
        assert_int_equal(locate(scene->fake, &back, scene->buffer), LEAT_OK);
        assert_int_equal(back.offset.v, known->base);
    }
    struct leat_locate_op latest = found(scene, LEAT_LOCATE_LATEST, 0);
    assert_int_equal(latest.offset.v, end);
    assert_int_equal(found(scene, LEAT_LOCATE_EARLIEST, 0).offset.v, 0);
    assert_int_equal(found(scene, LEAT_LOCATE_OFFSET, (int64_t)end).offset.v, end);
    struct leat_locate_op op = {.what = LEAT_LOCATE_OFFSET, .value = (int64_t)end + 1};
    assert_int_equal(locate(scene->fake, &op, scene->buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(op.offset.v, end); /* the nearest */
    op = (struct leat_locate_op){.what = LEAT_LOCATE_POSITION, .from = latest.position};
    op.from.position++;
    assert_int_equal(locate(scene->fake, &op, scene->buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(op.end_position.position, latest.position.position);
    assert_int_equal(op.end_position.segment, latest.position.segment);
    assert_int_equal(op.first_position.segment, 0);
    op = (struct leat_locate_op){.what = 99};
    assert_int_equal(locate(scene->fake, &op, scene->buffer), LEAT_E_INVALID);
}

/* Goal: an owner's records end where the next one's begin. */
static void epochs_are_found(struct scene *scene)
{
    for (int64_t epoch = 5; epoch < 12; epoch++) {
        const struct known *last = &scene->batches[scene->count - 1];
        uint64_t offset = last->base + last->count;
        uint32_t before = 0;
        for (unsigned i = scene->count; i-- > 0;)
            if (scene->batches[i].epoch > epoch) offset = scene->batches[i].base;
        for (unsigned i = 0; i < scene->count; i++)
            if (scene->batches[i].epoch <= epoch) before = scene->batches[i].epoch;
        struct leat_locate_op op = found(scene, LEAT_LOCATE_EPOCH, epoch);
        assert_int_equal(op.offset.v, offset);
        assert_int_equal(op.epoch.v, before);
    }
}

/* Goal: a read begins with the batch of its offset, and has as many whole ones behind it as fit, one at least. */
static void reads_have_as_many_batches_as_fit(struct scene *scene)
{
    static const uint32_t most[] = {1, 1500, 4000, 12000, 64 * 1024};
    const struct known *last = &scene->batches[scene->count - 1];
    for (uint64_t offset = 0; offset < last->base + last->count; offset += 3)
        for (unsigned m = 0; m < sizeof most / sizeof *most; m++) {
            bool done = false;
            struct leat_read read = {.from = {offset},
                                     .max_bytes = most[m],
                                     .disk_buffer = scene->buffer,
                                     .disk_buffer_bytes = BUFFER_BYTES,
                                     .on_done = on_read,
                                     .owner = &done};
            leat_err rc = leat_log_read(scene->fake->log, &read);
            while (rc == LEAT_E_AGAIN && !done)
                assert_true(fake_deliver(scene->fake));
            assert_int_equal(read.rc, LEAT_OK);
            const struct known *known = batch_of(scene, offset), *first = known;
            uint64_t sum = 0;
            assert_int_equal(read.first.v, known->base);
            uint64_t left = 0;
            for (unsigned i = 0; i < read.iov_count; i++) {
                const uint8_t *at = read.iovs[i].base;
                for (left = read.iovs[i].bytes; left > 0; known++) {
                    struct leat_batch batch;
                    assert_true(known->bytes <= left && known->segment == first->segment);
                    assert_int_equal(leat_batch_check(at, known->bytes, &batch, NULL), LEAT_OK);
                    assert_int_equal(batch.base_offset, known->base);
                    assert_int_equal(batch.leader_epoch, known->epoch);
                    sum += known->bytes;
                    at += known->bytes;
                    left -= known->bytes;
                }
            }
            assert_true(known > first && (sum <= most[m] || known == first + 1));
            assert_int_equal(read.next.v, known[-1].base + known[-1].count);
            bool more = known <= last && known->segment == first->segment;
            if (more && read.iov_count < LEAT_READ_IOVS_MAX)
                assert_true(sum + known->bytes > most[m]);
            if (read.pinned) leat_segment_unpin(read.pinned, &scene->fake->post);
        }
}

static void found_and_read(void **state)
{
    bool files = *state != NULL;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct scene scene = scene_make(seed, files);
        times_are_found(&scene);
        offsets_and_places_are_found(&scene);
        epochs_are_found(&scene);
        reads_have_as_many_batches_as_fit(&scene);
        scene_end(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(found_and_read, NULL),
        cmocka_unit_test_prestate(found_and_read, (void *)1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
