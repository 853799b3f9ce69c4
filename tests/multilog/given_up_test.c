/* SPDX-License-Identifier: Apache-2.0 */
/* What was given up of a log: what is whole is read, and nothing else, and nothing of it is named any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reopen.h"

enum { RECORDS = 100, BATCHES_MAX = 64 };

/* A closed segment in its file alone, and where its batches lie. */
struct scene {
    struct fake *fake;
    struct fake_held *held;
    struct {
        uint32_t at;
        uint64_t base;
    } batches[BATCHES_MAX];
    unsigned count;
    void *buffer;
};

static struct scene scene_make(uint32_t record_bytes)
{
    struct scene scene = {.fake = fake_create(11, LEAT_DURABILITY_MEMORY)};
    struct fake *fake = scene.fake;
    fake->options.settings.segment_bytes_max = record_bytes * 4096; /* forty batches, about */
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 160; i++)
        must_append(fake, RECORDS, record_bytes);
    evict_all(fake);
    scene.buffer = aligned_alloc(4096, BUFFER_BYTES);
    for (unsigned i = 0; i < fake->held_count; i++) /* the largest */
        if (fake->held[i].closed_row &&
            (!scene.held || fake->held[i].seg->prefix_id.bytes > scene.held->seg->prefix_id.bytes))
            scene.held = &fake->held[i];
    assert_true(scene.held->closed_row && scene.held->seg->buffer == NULL);
    const struct leat_entry *entry;
    uint32_t end = scene.held->seg->prefix_id.bytes;
    for (uint32_t at = 0; (entry = leat_entry_at(scene.held->file, end, at)) != NULL;
         at += leat_entry_bytes(entry->payload_bytes)) {
        if (entry->type != LEAT_ENTRY_BATCH) continue;
        assert_true(scene.count < BATCHES_MAX);
        scene.batches[scene.count].at = at;
        scene.batches[scene.count++].base = entry->base_offset;
    }
    assert_true(scene.count > 10);
    log_slot_find(fake->log, scene.held->seg->id.v)->given_up = true;
    return scene;
}

static void scene_end(struct scene *scene)
{
    free(scene->buffer);
    fake_destroy(scene->fake);
}

/* A bit of those batches' records, each. Their headers are whole. */
static void damage(const struct scene *scene, uint64_t batches)
{
    for (unsigned i = 0; i < scene->count; i++)
        if (batches >> i & 1)
            scene->held->file[scene->batches[i].at + LEAT_ENTRY_HEADER_BYTES + 200] ^= 4;
}

/* The batches of the segment that a reader gets, from this offset to the segment's end. */
static uint64_t batches_read(const struct scene *scene, uint64_t from)
{
    uint64_t got = 0, next = from;
    for (unsigned reads = 0; next < scene->held->seg->next_offset; reads++) {
        assert_true(reads < 2 * BATCHES_MAX);
        struct leat_read read = {.from = {next}};
        assert_int_equal(read_once(scene->fake, &read, scene->buffer), LEAT_OK);
        uint64_t expected = 0;
        for (unsigned i = 0; i < read.iov_count; i++) {
            struct leat_batch batch;
            assert_int_equal(leat_batch_check(read.iovs[i].base, read.iovs[i].bytes, &batch, NULL),
                             LEAT_OK);
            assert_true(i == 0 || batch.base_offset == expected); /* no gap within an answer */
            assert_true(batch.base_offset + batch.record_count > next);
            expected = batch.base_offset + batch.record_count;
            for (unsigned b = 0; b < scene->count; b++)
                if (scene->batches[b].base == batch.base_offset) got |= UINT64_C(1) << b;
        }
        if (read.iov_count) assert_int_equal(read.next.v, expected);
        assert_true(read.next.v > next);
        next = read.next.v;
    }
    return got;
}

static void whole_is_read(uint32_t record_bytes)
{
    struct scene scene = scene_make(record_bytes);
    const uint64_t all = (UINT64_C(1) << scene.count) - 1, last = UINT64_C(1) << (scene.count - 1);
    const uint64_t damaged[] = {
        1, 2, 4 | 8, 1 | 16, 32, last, last | 1, last | last >> 1, all & 0x5a5a5a, all - 4, all};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        damage(&scene, damaged[i]);
        for (unsigned b = 0; b < scene.count; b++)
            for (unsigned into = 0; into < RECORDS; into += RECORDS - 1) {
                uint64_t from_here = all & ~((UINT64_C(1) << b) - 1);
                assert_int_equal(batches_read(&scene, scene.batches[b].base + into),
                                 from_here & ~damaged[i]);
            }
        damage(&scene, damaged[i]);
    }
    scene_end(&scene);
}

/* Goal: whichever batches of a segment are damaged, the first, the last, a single one or several in a row, a reader
 * gets all whole batches, and goes on behind the segment. The reader may begin anywhere, also amid a damaged batch. The
 * segment is read at once, or in several reads. */
static void what_is_whole_of_it_is_read(void **state)
{
    (void)state;
    whole_is_read(64);
    whole_is_read(1024);
}

/* Goal: damage that was not given up is named, and nothing of it is passed over. */
static void what_was_not_given_up_is_named(void **state)
{
    (void)state;
    struct scene scene = scene_make(64);
    log_slot_find(scene.fake->log, scene.held->seg->id.v)->given_up = false;
    damage(&scene, 4);
    struct leat_read read = {.from = {scene.batches[2].base + 1}};
    assert_int_equal(read_once(scene.fake, &read, scene.buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next_position.position, scene.batches[2].at);
    scene_end(&scene);
}

/* Goal: a damaged batch whose header leads elsewhere is not believed: what comes next
 * has to follow it, where both are read at once. */
static void header_that_leads_elsewhere_passes_over_nothing(void **state)
{
    (void)state;
    struct scene scene = scene_make(64);
    struct leat_entry *entry =
        (struct leat_entry *)(void *)(scene.held->file + scene.batches[2].at);
    static const uint32_t counts[] = {1, RECORDS - 1, RECORDS + 1, 2 * RECORDS};
    damage(&scene, 4);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t was = entry->record_count;
        entry->record_count = counts[i];
        struct leat_read read = {.from = {scene.batches[2].base}};
        leat_err rc = read_once(scene.fake, &read, scene.buffer);
        /* Nothing of the segment is shown as if it followed: the reader goes on behind all of it. */
        assert_int_equal(rc, LEAT_OK);
        assert_true(read.iov_count == 0 || read.first.v >= scene.held->seg->next_offset);
        entry->record_count = was;
    }
    scene_end(&scene);
}

static void on_skipped(void *arg, struct leat_log *log)
{
    (void)log;
    ++*(unsigned *)arg;
}

static unsigned places_damaged(const struct fake *fake)
{
    struct leat_log_damage damage;
    uint64_t at = 0;
    unsigned count = 0;
    while (leat_log_damage_find(fake->log, &at, &damage))
        count++;
    return count;
}

/* Goal: an operator gives up all damaged and missing segments at once, between other segments and at the end. Each is
 * noted, the log names none any more, and a reader goes over all of them, after the next start too. Where a note is
 * refused, its segment is still named. */
static void all_damage_is_given_up_at_once(void **state)
{
    (void)state;
    uint64_t bases[SEGMENTS_MAX];
    unsigned told = 0;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(9);
    bases_of(fake, bases);
    fake->holes = true;
    reopen(fake, 1 << 3 | 1 << 6, 0, true); /* two are missing, each between others */
    fake_settle(fake);
    assert_int_equal(places_damaged(fake), 2);
    struct leat_read read = {.from = {bases[3]}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    fake->fail_request_at = fake->requests + 1;
    fake->fail_kinds = 1u << LEAT_STORE_GIVE_UP;
    fake->fail_rc = LEAT_E_DISK;
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_int_equal(places_damaged(fake), 2);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 2);
    for (int start = 0; start < 2; start++) {
        assert_int_equal(places_damaged(fake), 0);
        for (unsigned gone = 3; gone <= 6; gone += 3) {
            read = (struct leat_read){.from = {bases[gone]}};
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
            assert_true(read.iov_count > 0);
            assert_int_equal(read.first.v, bases[gone + 1]);
        }
        reopen(fake, 0, 0, true);
        fake_settle(fake);
    }
    free(buffer);
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_of_it_is_read),
        cmocka_unit_test(what_was_not_given_up_is_named),
        cmocka_unit_test(all_damage_is_given_up_at_once),
        cmocka_unit_test(header_that_leads_elsewhere_passes_over_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
