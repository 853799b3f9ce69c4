/* SPDX-License-Identifier: Apache-2.0 */
/* A log on a real store: the two modules meet on the store's small world, with kills and power cuts
 * at random points and a recovery that knows only what leat_store_found() says and what a
 * coordinator would hold: the tail record, or that the first segment of an epoch was opened.
 *
 * LEAT_WALK_SEED=n repeats one walk, LEAT_WALKS=n sets how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "multilog/internal.h"
#include "store/private.h"
#include "tests/store/fake_world.h"

enum {
    MEMORY_BYTES = 64 * 1024 * 1024,
    BATCHES_MAX = 4096,
    SEGMENTS_MAX = 1024,
    READ_BUFFER_BYTES = LEAT_BATCH_BYTES_MAX + 64 * 1024,
};
static const uint8_t cluster[16] = "the cluster 0001";

struct batch_sent {
    struct leat_append append;
    uint64_t offset;
    uint32_t count, tag;
    bool used, answered, acked;
};

struct rig {
    struct fake_world world;
    struct leat_store *store;
    struct leat_store_port store_port;
    struct leat_env core_env;
    struct leat_timers timers;
    struct leat_log *log;
    struct leat_log_options options;
    enum leat_durability level;
    struct batch_sent sent[BATCHES_MAX];
    uint32_t sent_count, tag;
    bool dirty, opening;
    /* What a coordinator holds. */
    bool opened;
    struct leat_epoch epoch;
    struct leat_log_tail tail;
    uint64_t first_offset;
    uint8_t *batch, *read_buffer;
    unsigned lives, found_closed, hibernated, trimmed, rolled;
};

/* ---- what the core does ---- */
static void on_dirty(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct rig *)owner)->dirty = true;
}
static void on_nothing(void *owner, struct leat_log *log)
{
    (void)owner;
    (void)log;
}
static void on_opening(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct rig *)owner)->opening = true;
}
static void on_evict_wanted(void *core, struct leat_segment *seg)
{
    (void)core;
    if (seg->log_pointer) leat_log_on_evict_wanted(seg->log_pointer, seg);
}
static void on_flushed(void *core, struct leat_segment *seg)
{
    (void)core;
    if (seg->log_pointer) leat_log_on_flushed(seg->log_pointer, seg);
}

static void core_turn(struct rig *rig)
{
    while (rig->dirty) {
        rig->dirty = false;
        leat_log_turn_end(rig->log);
    }
    if (rig->opening && fake_below(&rig->world, 3) == 0) {
        rig->opening = false;
        rig->opened = true; /* committed */
        leat_log_opened(rig->log, LEAT_OK);
    }
}

static bool step(struct rig *rig)
{
    bool went = fake_step(&rig->world) || rig->dirty;
    core_turn(rig);
    return went || rig->dirty || rig->opening;
}

static void pass(struct rig *rig, uint64_t us)
{
    uint64_t until = rig->world.now_us + us;
    for (int i = 0; i < 1000; i++) {
        while (step(rig)) {
        }
        if (rig->world.wake_at_us > until) break;
        if (rig->world.wake_at_us > rig->world.now_us) rig->world.now_us = rig->world.wake_at_us;
        rig->world.wake_at_us = UINT64_MAX;
        leat_store_actor.on_wake(rig->store);
        leat_store_actor.on_turn_end(rig->store);
    }
    if (until > rig->world.now_us) rig->world.now_us = until;
}

/* ---- appending ---- */
static void on_acked(struct leat_append *append, leat_err rc)
{
    struct batch_sent *sent = append->owner;
    assert_false(sent->answered);
    sent->answered = true;
    sent->acked = rc == LEAT_OK;
    sent->offset = append->first_offset;
}

static void append(struct rig *rig)
{
    if (rig->sent_count == BATCHES_MAX) return;
    uint32_t count = 1 + (uint32_t)fake_below(&rig->world, 20);
    uint32_t bytes = 1 + (uint32_t)fake_below(&rig->world, fake_below(&rig->world, 8) ? 300 : 4000);
    static uint8_t value[4096];
    struct leat_batch_builder builder;
    uint32_t tag = ++rig->tag;
    leat_batch_builder_init(&builder, rig->batch, LEAT_BATCH_BYTES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        leat_put_le32(value, tag);
        leat_put_le32(value + 4, i);
        assert_int_equal(leat_batch_builder_add(&builder, (int64_t)(rig->world.now_us / 1000), NULL,
                                                0, value, bytes + 8, NULL, 0, 0),
                         LEAT_OK);
    }
    uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    struct leat_batch batch;
    struct leat_error error = {0};
    assert_int_equal(leat_batch_check(rig->batch, total, &batch, &error), LEAT_OK);
    struct batch_sent *sent = &rig->sent[rig->sent_count];
    *sent = (struct batch_sent){.count = count, .tag = tag, .used = true};
    sent->append = (struct leat_append){.on_acked = on_acked, .owner = sent};
    leat_err rc = leat_log_append(rig->log, &batch, &sent->append, &error);
    assert_true(rc == LEAT_OK || rc == LEAT_E_AGAIN);
    if (rc != LEAT_OK) return;
    sent->offset = sent->append.first_offset;
    rig->sent_count++;
}

/* ---- a start ---- */
static void store_open(struct rig *rig)
{
    struct leat_store_options options = {
        .memory_bytes = MEMORY_BYTES,
        .flush_delay_us = 500 * 1000,
        .events = {on_evict_wanted, on_flushed, NULL},
    };
    memcpy(options.cluster_id, cluster, sizeof cluster);
    struct leat_error error = {0};
    leat_err rc = leat_store_open(&rig->world.env, &options, &rig->store, &error);
    if (rc) print_error("%s\n", error.text);
    assert_int_equal(rc, LEAT_OK);
    rig->world.store = rig->store;
    rig->store_port = leat_store_port(rig->store);
}

/* The decision of a single node: the tail record stands, or the lowest open replica of the epoch that was opened. */
static const struct leat_found *decide(struct rig *rig, const struct leat_found *found,
                                       size_t count)
{
    if (!rig->opened) return NULL;
    for (size_t i = 0; i < count; i++)
        if (found[i].kind == LEAT_FOUND_MARK && found[i].seg->epoch.v == rig->epoch.v)
            return &found[i];
    return NULL;
}

/* false: the log's end is lost, as level `memory` may after a power cut. */
static bool recover(struct rig *rig, bool power)
{
    static struct leat_segment *segs[SEGMENTS_MAX];
    size_t count, kept = 0;
    const struct leat_found *found = leat_store_found(rig->store, &count);
    const struct leat_found *mark = decide(rig, found, count);
    if (rig->opened && !mark) {
        assert_true(power && rig->level == LEAT_DURABILITY_MEMORY);
        return false;
    }
    uint64_t end = rig->tail.next_segment; /* ids from here on are not part of the log */
    if (mark) {
        rig->tail.next_segment = end = mark->seg->id.v + 1;
        rig->tail.next_offset = mark->scan.next_offset;
        if (mark->seg->state == LEAT_SEGMENT_HIBERNATED) {
            rig->tail.next_offset = mark->seg->next_offset;
            rig->hibernated++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct leat_segment *seg = found[i].seg;
        if (seg->id.v >= end) {
            assert_int_equal(leat_store_forget(rig->store, seg), LEAT_OK);
            continue;
        }
        if (power && rig->level == LEAT_DURABILITY_MEMORY && found[i].kind == LEAT_FOUND_LOST)
            return false;
        if (&found[i] == mark)
            assert_int_equal(leat_store_cut(rig->store, seg, seg->prefix_id, rig->tail.next_offset,
                                            seg->max_timestamp_ms),
                             LEAT_OK);
        else
            assert_int_equal(found[i].kind, LEAT_FOUND_CLOSED);
        /* Nothing in the middle is ever missing. */
        if (kept) assert_int_equal(segs[kept - 1]->id.v + 1, seg->id.v);
        if (kept) assert_int_equal(segs[kept - 1]->next_offset, seg->base_offset);
        assert_true(kept < SEGMENTS_MAX);
        segs[kept++] = seg;
        rig->tail.previous = seg->prefix_id;
    }
    if (kept) assert_int_equal(segs[kept - 1]->id.v + 1, end);
    rig->found_closed += (unsigned)kept;
    assert_int_equal(leat_store_cut_done(rig->store), LEAT_OK);
    /* The decision is committed: a tail record again, in a new epoch. */
    rig->opened = false;
    rig->opening = rig->dirty = false;
    rig->epoch.v++;
    rig->options.epoch = rig->epoch;
    assert_int_equal(leat_log_create(&rig->core_env, &rig->store_port, &rig->timers, &rig->options,
                                     segs, kept, &rig->tail, &rig->log),
                     LEAT_OK);
    leat_store_found_done(rig->store);
    rig->lives++;
    return true;
}

/* Everything in flight is lost. */
static void crash(struct rig *rig, bool power)
{
    struct leat_log *log = rig->log;
    struct leat_log_info info;
    leat_log_info(log, &info);
    if (info.first_offset > rig->first_offset) rig->trimmed++;
    rig->first_offset = info.first_offset;
    rig->rolled += log->old.seg != NULL;
    if (power)
        fake_power_cut(&rig->world);
    else
        fake_kill(&rig->world);
    log->reserving = log->closing = false;
    log->hibernating = log_is_hibernated(log) ? LOG_HIBERNATED : LOG_AWAKE;
    log->commit_count = 0;
    log->warming = false;
    for (int i = 0; i < LOG_HELPERS; i++)
        log->helper_busy[i] = false;
    log->reads_in_flight = 0;
    leat_list_init(&log->waiting);
    leat_list_init(&log->stalled_reads);
    leat_log_destroy(&rig->log);
    rig->store->rows_running = false;
    rig->store->data_running = 0;
    rig->store->flush_in_flight = 0;
    rig->store->slots.zeroing = NULL;
    leat_store_close(&rig->store);
    for (uint32_t i = 0; i < rig->sent_count; i++)
        rig->sent[i].append = (struct leat_append){0};
    store_open(rig);
}

/* ---- reading ---- */
static void on_read(struct leat_read *read)
{
    *(bool *)read->owner = true;
}

static struct batch_sent *sent_at(struct rig *rig, uint64_t offset)
{
    for (uint32_t i = rig->sent_count; i-- > 0;)
        if (rig->sent[i].used && rig->sent[i].offset == offset) return &rig->sent[i];
    return NULL;
}

/* Every batch in the log is a batch that the test sent, at its offset, with its bytes. */
static void check_batch(struct rig *rig, const struct leat_iov *iov, uint64_t offset)
{
    struct leat_batch batch;
    assert_int_equal(leat_batch_check(iov->base, (uint32_t)iov->bytes, &batch, NULL), LEAT_OK);
    assert_int_equal(batch.base_offset, offset);
    struct batch_sent *sent = sent_at(rig, offset);
    assert_non_null(sent);
    assert_int_equal(sent->count, batch.record_count);
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, &batch, batch.bytes + LEAT_BATCH_HEADER_BYTES,
                            batch.byte_count - LEAT_BATCH_HEADER_BYTES);
    for (uint32_t i = 0; i < sent->count; i++) {
        assert_int_equal(leat_record_next(&reader, &record), LEAT_OK);
        assert_int_equal(leat_get_le32(record.value), sent->tag);
        assert_int_equal(leat_get_le32((const uint8_t *)record.value + 4), i);
    }
    sent->acked = true; /* seen: it must stay */
}

/* Read everything; then everything acked must have been there. */
static void check_all(struct rig *rig)
{
    static struct leat_read read;
    struct leat_log_info info;
    leat_log_info(rig->log, &info);
    uint64_t at = info.first_offset;
    for (;;) {
        bool done = false;
        read = (struct leat_read){.from = {at},
                                  .max_bytes = 64 * 1024,
                                  .disk_buffer = rig->read_buffer,
                                  .disk_buffer_bytes = READ_BUFFER_BYTES,
                                  .on_done = on_read,
                                  .owner = &done};
        if (leat_log_read(rig->log, &read) == LEAT_E_AGAIN)
            while (!done)
                assert_true(step(rig));
        leat_log_info(rig->log, &info);
        if (read.rc == LEAT_E_OFFSET_OUT_OF_RANGE && at < info.first_offset) {
            at = info.first_offset; /* trimmed meanwhile */
            continue;
        }
        assert_int_equal(read.rc, LEAT_OK);
        for (unsigned i = 0; i < read.iov_count; i++) {
            check_batch(rig, &read.iovs[i], at);
            at += sent_at(rig, at)->count;
        }
        if (read.pinned) leat_segment_unpin(read.pinned, &rig->world.core_post);
        if (read.iov_count == 0) break;
    }
    for (uint32_t i = 0; i < rig->sent_count; i++) {
        struct batch_sent *sent = &rig->sent[i];
        if (sent->used && sent->acked) assert_true(sent->offset + sent->count <= at);
    }
}

/* After a start nothing is in flight: what is not in the log has not happened. */
static void forget_lost(struct rig *rig)
{
    uint32_t kept = 0;
    uint64_t end = leat_log_acked_offset(rig->log);
    for (uint32_t i = 0; i < rig->sent_count; i++) {
        struct batch_sent sent = rig->sent[i];
        if (sent.offset + sent.count > end) {
            assert_false(sent.acked);
            continue;
        }
        rig->sent[kept++] = sent;
    }
    rig->sent_count = kept;
}

/* ---- walks ---- */
static struct rig *rig_create(uint64_t seed, enum leat_durability level)
{
    struct rig *rig = calloc(1, sizeof *rig);
    fake_world_init(&rig->world, seed, MEMORY_BYTES);
    rig->world.core = rig;
    rig->level = level;
    rig->core_env = rig->world.env;
    rig->core_env.post = &rig->world.core_post;
    rig->batch = malloc(LEAT_BATCH_BYTES_MAX);
    rig->read_buffer = aligned_alloc(4096, READ_BUFFER_BYTES);
    assert_int_equal(leat_timers_init(&rig->timers, &rig->world.clock, 4), LEAT_OK);
    rig->options = (struct leat_log_options){
        .ref = {1, 0, 0},
        .stream_name = "walked",
        .settings = {.streamlets = 1,
                     .logs = 1,
                     .copies = 1,
                     .segment_bytes_max = 64 * 1024,
                     .retention_bytes = 400 * 1024},
        .incarnation = 1,
        .durability = level,
        .hibernate_after_us = 3 * 1000 * 1000,
        .producer_expiry_ms = 24 * 3600 * 1000,
        .events = {on_dirty, on_nothing, on_nothing, on_opening, NULL, NULL},
        .owner = rig,
    };
    memcpy(rig->options.cluster_id, cluster, sizeof cluster);
    store_open(rig);
    assert_true(recover(rig, false));
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    if (rig->log) crash(rig, false);
    leat_store_close(&rig->store);
    leat_timers_fini(&rig->timers);
    fake_world_fini(&rig->world);
    free(rig->batch);
    free(rig->read_buffer);
    free(rig);
}

static void act(struct rig *rig)
{
    uint64_t what = fake_below(&rig->world, 40);
    if (what < 24) {
        append(rig);
        core_turn(rig);
    } else if (what < 36) {
        for (uint64_t i = fake_below(&rig->world, 12); i > 0; i--)
            (void)step(rig);
    } else if (what == 36) {
        leat_log_care(rig->log);
        core_turn(rig);
    } else if (what == 37) {
        pass(rig, fake_below(&rig->world, 1000 * 1000));
    } else if (what == 38 && fake_below(&rig->world, 4) == 0) {
        pass(rig, 4 * 1000 * 1000);
        leat_log_care(rig->log); /* hibernates */
        for (uint64_t i = fake_below(&rig->world, 30); i > 0; i--) {
            core_turn(rig);
            (void)step(rig);
        }
    } else if (what == 39 && fake_below(&rig->world, 6) == 0) {
        check_all(rig);
    }
}

struct tally {
    unsigned lives, closed, hibernated, trimmed, rolled;
};

static void walk(uint64_t seed, enum leat_durability level, struct tally *tally)
{
    struct rig *rig = rig_create(seed, level);
    for (int life = 0; life < 12; life++) {
        for (uint64_t i = 20 + fake_below(&rig->world, 300); i > 0; i--)
            act(rig);
        /* Level `memory` does not survive a power cut: only its closed and flushed segments. */
        bool power = level == LEAT_DURABILITY_DISK && fake_below(&rig->world, 2);
        crash(rig, power);
        assert_true(recover(rig, power));
        check_all(rig);
        forget_lost(rig);
    }
    tally->lives += rig->lives;
    tally->closed += rig->found_closed;
    tally->hibernated += rig->hibernated;
    tally->trimmed += rig->trimmed;
    tally->rolled += rig->rolled;
    rig_destroy(rig);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void walks(enum leat_durability level)
{
    struct tally tally = {0};
    uint64_t one = from_environment("LEAT_WALK_SEED", 0);
    if (one) {
        walk(one, level, &tally);
        return;
    }
    uint64_t count = from_environment("LEAT_WALKS", 60);
    for (uint64_t seed = 1; seed <= count; seed++) {
        fprintf(stderr, "\rwalk %llu ", (unsigned long long)seed);
        walk(seed, level, &tally);
    }
    fprintf(stderr, "\n");
    /* Worth something only if all of it came up. */
    assert_true(tally.closed && tally.hibernated && tally.trimmed);
    /* Level memory rolls within one turn. */
    assert_true(tally.rolled || level == LEAT_DURABILITY_MEMORY);
}

static void log_on_store_level_memory_survives_kills(void **state)
{
    (void)state;
    walks(LEAT_DURABILITY_MEMORY);
}

static void log_on_store_level_disk_survives_kills_and_power_cuts(void **state)
{
    (void)state;
    walks(LEAT_DURABILITY_DISK);
}

/* Level memory, power cut: segments that were closed and flushed are found whole; nothing claims that any other segment
 * is there. */
static void log_on_store_level_memory_power_cut_invents_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1030; seed++) {
        struct rig *rig = rig_create(seed, LEAT_DURABILITY_MEMORY);
        for (uint64_t i = 100 + fake_below(&rig->world, 400); i > 0; i--)
            act(rig);
        crash(rig, true);
        size_t count;
        const struct leat_found *found = leat_store_found(rig->store, &count);
        for (size_t i = 0; i < count; i++) {
            if (found[i].kind != LEAT_FOUND_MARK) continue;
            /* Hibernated is the one way for an open segment to be there. */
            assert_int_equal(found[i].seg->state, LEAT_SEGMENT_HIBERNATED);
        }
        if (recover(rig, true)) check_all(rig);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_on_store_level_memory_survives_kills),
        cmocka_unit_test(log_on_store_level_disk_survives_kills_and_power_cuts),
        cmocka_unit_test(log_on_store_level_memory_power_cut_invents_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
