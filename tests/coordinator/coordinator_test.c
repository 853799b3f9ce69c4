/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator as its users see it: requests, restarts, power cuts, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/fake.h"

struct fixture {
    struct fake_world world;
    struct leat_coordinator *coordinator;
    unsigned ready, streams, deleted;
    uint32_t given; /* stream ids, as last told */
};

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    (void)desc;
    ((struct fixture *)owner)->streams++;
}
static void on_deleted(void *owner, uint32_t stream_id)
{
    (void)stream_id;
    ((struct fixture *)owner)->deleted++;
}
static void on_given(void *owner, uint32_t highest)
{
    ((struct fixture *)owner)->given = highest;
}
static void on_ready(void *owner)
{
    ((struct fixture *)owner)->ready++;
}

static leat_err fixture_open(struct fixture *f, struct leat_error *error)
{
    struct leat_coordinator_options options = {.cores = 2,
                                               .on_stream = on_stream,
                                               .on_stream_deleted = on_deleted,
                                               .on_streams_given = on_given,
                                               .on_ready = on_ready,
                                               .owner = f};
    f->ready = f->streams = f->deleted = f->given = 0;
    leat_err rc = leat_coordinator_open(&f->world.env, &options, &f->coordinator, error);
    if (rc != LEAT_OK) return rc;
    f->world.actor = f->coordinator;
    f->world.ops_of_actor = &leat_coordinator_actor;
    fake_world_settle(&f->world);
    return LEAT_OK;
}

static void fixture_close(struct fixture *f)
{
    leat_coordinator_close(&f->coordinator);
    f->world.ops_of_actor = NULL;
}

static struct fixture *fixture_new(uint64_t seed)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    fake_world_init(&f->world, seed);
    return f;
}

static void fixture_free(struct fixture *f)
{
    fixture_close(f);
    fake_world_fini(&f->world);
    free(f);
}

static void done(struct leat_coordinate *request)
{
    (*(unsigned *)request->owner)++;
}

/* Do one request to its end. False: the request was never answered (power is gone). */
static bool ask(struct fixture *f, struct leat_coordinate *request)
{
    unsigned answered = 0;
    request->on_done = done;
    request->owner = &answered;
    leat_coordinate(&f->world.post, request);
    fake_world_settle(&f->world);
    return answered == 1;
}

static leat_err create(struct fixture *f, const char *name, struct leat_coordinate *request)
{
    *request = (struct leat_coordinate){.kind = LEAT_COORDINATE_STREAM_CREATE};
    snprintf(request->name, sizeof request->name, "%s", name);
    if (!ask(f, request)) return LEAT_E_CLOSED;
    if (request->rc == LEAT_OK) leat_stream_desc_unref(request->desc);
    return request->rc;
}

static uint64_t node_up(struct fixture *f)
{
    struct leat_coordinate request = {
        .kind = LEAT_COORDINATE_NODE_UP, .node_name = "a", .address = "127.0.0.1:7700", .cores = 2};
    assert_true(ask(f, &request));
    assert_int_equal(request.rc, LEAT_OK);
    return request.incarnation;
}

/* ---- requests ---- */

static void coordinator_new_directory_forms_and_is_ready(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(1);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    assert_int_equal(f->ready, 1);
    uint8_t id[16], again[16], zero[16] = {0};
    leat_coordinator_cluster_id(f->coordinator, id);
    assert_memory_not_equal(id, zero, 16);
    fixture_close(f);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    leat_coordinator_cluster_id(f->coordinator, again);
    assert_memory_equal(id, again, 16);
    fixture_free(f);
}

static void coordinator_streams_survive_restart_and_ids_are_never_reused(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(2);
    struct leat_coordinate r;
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    assert_int_equal(node_up(f), 1);
    assert_int_equal(create(f, "one", &r), LEAT_OK);
    assert_int_equal(r.stream_id, 1);
    assert_int_equal(create(f, "one", &r), LEAT_E_STREAM_EXISTS);
    assert_int_equal(create(f, "bad/name", &r), LEAT_E_BAD_NAME);
    assert_int_equal(create(f, "two", &r), LEAT_OK);
    assert_int_equal(r.stream_id, 2);
    r = (struct leat_coordinate){.kind = LEAT_COORDINATE_STREAM_DELETE, .name = "two"};
    assert_true(ask(f, &r));
    assert_int_equal(r.rc, LEAT_OK);
    assert_int_equal(r.stream_id, 2);
    assert_int_equal(f->deleted, 1);
    fixture_close(f);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    assert_int_equal(f->streams, 1);
    assert_int_equal(f->given, 2); /* so what is here of the second was deleted */
    assert_int_equal(node_up(f), 2);
    assert_int_equal(create(f, "two", &r), LEAT_OK);
    assert_int_equal(r.stream_id, 3);
    fixture_free(f);
}

static void coordinator_internal_stream_is_not_deleted(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(3);
    struct leat_coordinate r;
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    assert_int_equal(create(f, "leat.sets", &r), LEAT_OK);
    r = (struct leat_coordinate){.kind = LEAT_COORDINATE_STREAM_DELETE, .name = "leat.sets"};
    assert_true(ask(f, &r));
    assert_int_equal(r.rc, LEAT_E_BAD_NAME);
    fixture_free(f);
}

static void coordinator_producer_ids_come_in_blocks(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(4);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    int64_t next = -1;
    for (int i = 0; i < 3; i++) {
        struct leat_coordinate r = {.kind = LEAT_COORDINATE_PRODUCER_IDS};
        assert_true(ask(f, &r));
        assert_int_equal(r.rc, LEAT_OK);
        assert_int_equal(r.id_count, LEAT_PRODUCER_ID_BLOCK);
        if (next >= 0) assert_int_equal(r.first_id, next);
        next = r.first_id + r.id_count;
        fixture_close(f);
        assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    }
    fixture_free(f);
}

/* Many requests that wait together go through few rounds: 10,000 creates are fast. */
static void coordinator_many_requests_share_rounds(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct fixture *f = fixture_new(5);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    struct leat_coordinate *r = calloc(COUNT, sizeof *r);
    assert_non_null(r);
    unsigned answered = 0;
    uint64_t syncs = f->world.syncs;
    for (int i = 0; i < COUNT; i++) {
        r[i].kind = LEAT_COORDINATE_STREAM_CREATE;
        snprintf(r[i].name, sizeof r[i].name, "s%d", i);
        r[i].on_done = done;
        r[i].owner = &answered;
        leat_coordinate(&f->world.post, &r[i]);
    }
    fake_world_settle(&f->world);
    assert_int_equal(answered, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(r[i].rc, LEAT_OK);
        assert_int_equal(r[i].stream_id, i + 1);
        leat_stream_desc_unref(r[i].desc);
    }
    assert_true(f->world.syncs - syncs < 20);
    free(r);
    fixture_free(f);
}

struct flood {
    struct leat_coordinate *requests;
    uint64_t address;
    int from, count, refused;
};

static void flood_begin(struct fixture *f, struct flood *flood, unsigned *answered)
{
    for (int i = flood->from; i < flood->from + flood->count; i++) {
        struct leat_coordinate *request = &flood->requests[i];
        *request = (struct leat_coordinate){.kind = LEAT_COORDINATE_BARRIER,
                                            .asker = flood->address,
                                            .on_done = done,
                                            .owner = answered};
        leat_coordinate(&f->world.post, request);
    }
}

/* Requests beyond the queue's limit are refused at once, and none is lost. The clients of an address get half of the
 * free part of the queue, and the node's own requests have their own half. */
static void coordinator_queue_is_bounded_by_address(void **state)
{
    (void)state;
    enum { CLIENTS = LEAT_COORDINATE_CLIENTS_MAX, ALL = 2 * LEAT_COORDINATE_QUEUE_MAX };
    struct fixture *f = fixture_new(6);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    struct leat_coordinate *r = calloc(ALL, sizeof *r);
    assert_non_null(r);
    const int own = LEAT_COORDINATE_QUEUE_MAX - CLIENTS / 2 - CLIENTS / 4;
    struct flood floods[] = {{r, 11, 0, CLIENTS / 2 + 100, 100},
                             {r, 12, CLIENTS / 2 + 100, CLIENTS / 4 + 1, 1},
                             {r, 0, CLIENTS, own + 100, 100}};
    for (int round = 0; round < 2; round++) {
        unsigned answered = 0;
        int count = 0;
        for (int i = 0; i < 3; i++) {
            flood_begin(f, &floods[i], &answered);
            count += floods[i].count;
        }
        fake_world_settle(&f->world);
        assert_int_equal(answered, count);
        for (int i = 0; i < 3; i++) {
            int refused = 0;
            for (int n = 0; n < floods[i].count; n++)
                refused += r[floods[i].from + n].rc == LEAT_E_AGAIN;
            assert_int_equal(refused, floods[i].refused);
        }
    }
    free(r);
    fixture_free(f);
}

static void coordinator_full_disk_refuses_by_name_and_recovers(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(7);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    struct leat_coordinate *r = calloc(1, sizeof *r);
    assert_non_null(r);
    /* Fill the segment until a new one is needed and can't be had. */
    static struct leat_log_ref logs[LEAT_OPENED_LOGS_MAX];
    for (int i = 0; i < LEAT_OPENED_LOGS_MAX; i++)
        logs[i] = (struct leat_log_ref){0x10000000u, 0x1000000u, 0x1000000u};
    f->world.full = true;
    bool waits = false;
    unsigned answered = 0;
    for (int i = 0; i < 200 && !waits; i++) {
        *r = (struct leat_coordinate){.kind = LEAT_COORDINATE_OPENED,
                                      .logs = logs,
                                      .log_count = LEAT_OPENED_LOGS_MAX,
                                      .epoch = {1},
                                      .on_done = done,
                                      .owner = &answered};
        answered = 0;
        leat_coordinate(&f->world.post, r);
        fake_world_settle(&f->world);
        waits = answered == 0;
        if (!waits) assert_int_equal(r->rc, LEAT_E_UNKNOWN_STREAM);
    }
    assert_true(waits);
    struct leat_coordinate other;
    assert_int_equal(create(f, "x", &other), LEAT_E_DISK_FULL);
    f->world.full = false;
    fake_world_elapse(&f->world, 2000000);
    assert_int_equal(answered, 1);
    assert_int_equal(create(f, "x", &other), LEAT_OK);
    free(r);
    fixture_free(f);
}

/* ---- ownership ---- */

static leat_err opened(struct fixture *f, struct leat_log_ref log, uint32_t epoch)
{
    struct leat_coordinate r = {
        .kind = LEAT_COORDINATE_OPENED, .logs = &log, .log_count = 1, .epoch = {epoch}};
    assert_true(ask(f, &r));
    return r.rc;
}

static void adopt(struct fixture *f, const struct leat_log_marks *marks, size_t count,
                  struct leat_coordinate *r)
{
    *r = (struct leat_coordinate){
        .kind = LEAT_COORDINATE_ADOPT, .marks = marks, .mark_count = count};
    assert_true(ask(f, r));
}

/* A whole life of a log: created, opened, adopted by its mark, adopted again by its record. */
static void coordinator_log_life_follows_the_rules(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(8);
    struct leat_coordinate r;
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    (void)node_up(f);
    assert_int_equal(create(f, "s", &r), LEAT_OK); /* two logs */
    uint32_t first_epoch = 1;
    struct leat_log_ref log = {1, 0, 0}, gone = {9, 0, 0};
    assert_int_equal(opened(f, log, first_epoch + 1), LEAT_E_STALE_EPOCH);
    assert_int_equal(opened(f, log, first_epoch), LEAT_OK);
    assert_int_equal(opened(f, log, first_epoch), LEAT_OK); /* again: the same */
    assert_int_equal(opened(f, gone, first_epoch), LEAT_E_UNKNOWN_STREAM);

    (void)node_up(f);
    adopt(f, NULL, 0, &r); /* nothing found: the opened log waits, the other is known empty */
    assert_int_equal(r.rc, LEAT_OK);
    assert_int_equal(r.decision_count, 2);
    assert_int_equal(r.decisions[0].kind, LEAT_DECIDED_WAIT);
    assert_int_equal(r.decisions[1].kind, LEAT_DECIDED_TAIL);
    uint32_t second = r.decisions[1].epoch.v;
    assert_true(second > first_epoch);
    leat_mem_free(r.decisions);

    struct leat_log_marks marks = {.log = log,
                                   .has_mark = true,
                                   .mark_segment = 0,
                                   .mark_epoch = {first_epoch},
                                   .mark_prefix_id = {4096, 0xabc},
                                   .mark_next_offset = 10};
    adopt(f, &marks, 1, &r); /* it has come back: its stamp was kept */
    assert_int_equal(r.rc, LEAT_OK);
    assert_int_equal(r.decisions[0].kind, LEAT_DECIDED_TAIL);
    assert_int_equal(r.decisions[0].tail.next_offset, 10);
    uint32_t third = r.decisions[0].epoch.v;
    assert_true(third > second);
    leat_mem_free(r.decisions);
    assert_int_equal(opened(f, log, second), LEAT_E_STALE_EPOCH); /* late, of an earlier attempt */

    /* Now the record stands, whatever a mark says; and its bytes must be there. */
    fixture_close(f);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    marks.mark_prefix_id.bytes = 5000;
    marks.mark_next_offset = 12;
    adopt(f, &marks, 1, &r);
    assert_int_equal(r.decisions[0].kind, LEAT_DECIDED_WAIT);
    leat_mem_free(r.decisions);
    marks.has_closed = true;
    marks.closed_segment = 0;
    marks.closed_prefix_id = (struct leat_prefix_id){4096, 0xabc};
    adopt(f, &marks, 1, &r);
    assert_int_equal(r.decisions[0].kind, LEAT_DECIDED_TAIL);
    assert_int_equal(r.decisions[0].tail.next_offset, 10);
    leat_mem_free(r.decisions);
    fixture_free(f);
}

/* Given-up data: offsets go ahead, never back; the epoch is fresh, and only the log's. */
static void coordinator_accepted_loss_jumps_ahead(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(9);
    struct leat_coordinate r;
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    (void)node_up(f);
    assert_int_equal(create(f, "s", &r), LEAT_OK);
    struct leat_log_ref log = {1, 0, 0};
    assert_int_equal(opened(f, log, 1), LEAT_OK);
    r = (struct leat_coordinate){.kind = LEAT_COORDINATE_ACCEPT_LOSS,
                                 .logs = &log,
                                 .log_count = 1,
                                 .epoch = {1},
                                 .segment = 4,
                                 .next_offset = 1000};
    assert_true(ask(f, &r));
    assert_int_equal(r.rc, LEAT_OK);
    assert_true(r.epoch.v > 1);
    assert_true(r.next_offset > 1000);
    assert_int_equal(opened(f, log, 1), LEAT_E_STALE_EPOCH);
    /* Decided on what was before. */
    struct leat_coordinate back = {.kind = LEAT_COORDINATE_ACCEPT_LOSS,
                                   .logs = &log,
                                   .log_count = 1,
                                   .epoch = {1},
                                   .segment = 4,
                                   .next_offset = 1000};
    assert_true(ask(f, &back));
    assert_int_equal(back.rc, LEAT_E_STALE_EPOCH);
    /* Everything after the jump is lost, too, and nobody knows any more how far it went. */
    assert_int_equal(opened(f, log, r.epoch.v), LEAT_OK);
    back.epoch = r.epoch;
    back.next_offset = 0;
    assert_true(ask(f, &back));
    assert_int_equal(back.rc, LEAT_OK);
    assert_true(back.next_offset >= r.next_offset + (1ull << 40));
    assert_int_equal(opened(f, log, back.epoch.v), LEAT_OK);
    fixture_free(f);
}

/* Data that knows more than its coordinator is kept, and service refused by name (docs/stories.md 13). */
static void coordinator_that_forgot_refuses_adoption(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(10);
    struct leat_coordinate r;
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    (void)node_up(f);
    assert_int_equal(create(f, "s", &r), LEAT_OK);
    struct leat_log_marks marks = {.log = {5, 0, 0}};
    adopt(f, &marks, 1, &r);
    assert_int_equal(r.rc, LEAT_E_WRONG_CLUSTER);
    marks = (struct leat_log_marks){.log = {1, 0, 0}, .has_mark = true, .mark_epoch = {77}};
    adopt(f, &marks, 1, &r);
    assert_int_equal(r.rc, LEAT_E_WRONG_CLUSTER);
    assert_null(r.decisions);
    fixture_free(f);
}

/* 100,000 opened logs: an adoption of many entries, all or nothing. */
static void coordinator_adopts_a_hundred_thousand_logs(void **state)
{
    (void)state;
    enum { LOGS = 100000 };
    struct fixture *f = fixture_new(11);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    (void)node_up(f);
    struct leat_coordinate r = {.kind = LEAT_COORDINATE_STREAM_CREATE, .name = "big"};
    r.settings.streamlets = LOGS / 2;
    r.settings.logs = 2;
    assert_true(ask(f, &r));
    assert_int_equal(r.rc, LEAT_OK);
    leat_stream_desc_unref(r.desc);
    struct leat_log_ref *logs = calloc(LOGS, sizeof *logs);
    struct leat_log_marks *marks = calloc(LOGS, sizeof *marks);
    assert_true(logs && marks);
    for (uint32_t i = 0; i < LOGS; i++) {
        logs[i] = (struct leat_log_ref){1, i / 2, i % 2};
        marks[i] = (struct leat_log_marks){.log = logs[i],
                                           .has_mark = true,
                                           .mark_segment = i,
                                           .mark_epoch = {1},
                                           .mark_prefix_id = {i + 1, i},
                                           .mark_next_offset = 3 * (uint64_t)i};
    }
    for (size_t at = 0; at < LOGS; at += 10000) {
        struct leat_coordinate open = {
            .kind = LEAT_COORDINATE_OPENED, .logs = logs + at, .log_count = 10000, .epoch = {1}};
        assert_true(ask(f, &open));
        assert_int_equal(open.rc, LEAT_OK);
    }
    for (int round = 0; round < 2; round++) {
        struct leat_coordinate got;
        adopt(f, marks, LOGS, &got);
        assert_int_equal(got.rc, LEAT_OK);
        assert_int_equal(got.decision_count, LOGS);
        for (uint32_t i = 0; i < LOGS; i++) {
            assert_int_equal(got.decisions[i].kind, LEAT_DECIDED_TAIL);
            assert_int_equal(got.decisions[i].tail.next_offset, 3 * (uint64_t)i);
        }
        leat_mem_free(got.decisions);
        fixture_close(f);
        assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    }
    free(logs);
    free(marks);
    fixture_free(f);
}

/* ---- power cuts ---- */

/* Cut the power at the n-th disk operation of a short life, for every n and several dice. What was
 * answered is there after the restart; what was not may be; ids never repeat. */
static bool power_cut_trial(uint64_t cut_at, uint64_t seed)
{
    struct fixture *f = fixture_new(seed);
    struct leat_coordinate r;
    struct leat_error error = {0};
    uint32_t acked = 0, highest = 0;
    f->world.cut_at = cut_at;
    if (fixture_open(f, &error) == LEAT_OK) {
        for (int i = 0; i < 6; i++) {
            char name[16];
            snprintf(name, sizeof name, "s%d", i);
            if (create(f, name, &r) != LEAT_OK) break;
            acked = (uint32_t)i + 1;
            highest = r.stream_id;
            if (i == 3) fake_world_elapse(&f->world, 500000); /* the durable mark */
        }
    }
    bool finished = !f->world.dead;
    if (f->coordinator) fixture_close(f);
    finished = finished && !f->world.dead;
    fake_world_power_cut(&f->world);
    leat_err rc = fixture_open(f, &error);
    if (rc != LEAT_OK)
        fail_msg("cut at %u, seed %u: %s", (unsigned)cut_at, (unsigned)seed, error.text);
    assert_int_equal(f->ready, 1);
    assert_true(f->streams >= acked && f->streams <= acked + 1);
    assert_int_equal(create(f, "new", &r), LEAT_OK);
    assert_true(r.stream_id > highest);
    fixture_free(f);
    return finished;
}

static void coordinator_power_cut_at_every_operation_keeps_what_was_answered(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        uint64_t cut_at = 1;
        while (!power_cut_trial(cut_at, seed))
            cut_at++;
        assert_true(cut_at > 20);
    }
}

/* ---- damage ---- */

static void streams_made(struct fixture *f, int count)
{
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    for (int i = 0; i < count; i++) {
        char name[16];
        struct leat_coordinate r;
        snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(create(f, name, &r), LEAT_OK);
    }
}

static void damage(struct fake_inode *inode, size_t at)
{
    inode->now[at] ^= 0x40;
    inode->safe[at] ^= 0x40;
}

#define FIRST_SEGMENT "raft/log-00000000000000000001"

/* Any flipped bit of what was made durable is named and refused, never shortened away. */
static void coordinator_damaged_log_is_named_and_refused(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(20);
    streams_made(f, 5);
    fixture_close(f);
    struct fake_inode *segment = fake_world_file(&f->world, FIRST_SEGMENT);
    assert_non_null(segment);
    size_t end = segment->bytes;
    while (end > 0 && segment->now[end - 1] == 0)
        end--;
    for (size_t at = 0; at < end; at++) {
        damage(segment, at);
        struct leat_error error = {0};
        struct fake_inode before = *segment;
        if (fixture_open(f, &error) == LEAT_OK)
            fail_msg("a flipped bit at byte %u was not noticed", (unsigned)at);
        assert_int_equal(error.code, LEAT_E_DAMAGED);
        assert_non_null(strstr(error.text, "log-"));
        assert_int_equal(before.bytes, segment->bytes);
        damage(segment, at);
    }
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    assert_int_equal(f->streams, 5);
    fixture_free(f);
}

/* The same without the durable mark of a clean end: the last round alone can't be told from a torn
 * one, everything before can. */
static void coordinator_damage_before_the_last_round_is_refused_after_a_kill(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(21);
    streams_made(f, 5);
    f->world.dead = true; /* kill: nothing is noted on the way out */
    fixture_close(f);
    f->world.dead = false;
    struct fake_inode *segment = fake_world_file(&f->world, FIRST_SEGMENT);
    damage(segment, 200);
    struct leat_error error = {0};
    assert_int_equal(fixture_open(f, &error), LEAT_E_DAMAGED);
    assert_non_null(strstr(error.text, "log-"));
    damage(segment, 200);
    assert_int_equal(fixture_open(f, NULL), LEAT_OK);
    fixture_free(f);
}

static void coordinator_missing_files_are_named(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(22);
    struct leat_error error = {0};
    streams_made(f, 2);
    fixture_close(f);
    fake_world_remove(&f->world, FIRST_SEGMENT);
    assert_int_equal(fixture_open(f, &error), LEAT_E_DAMAGED);
    assert_non_null(strstr(error.text, "missing"));
    fixture_free(f);

    f = fixture_new(23);
    streams_made(f, 2);
    fixture_close(f);
    fake_world_remove(&f->world, "raft/vote");
    assert_int_equal(fixture_open(f, &error), LEAT_E_DAMAGED);
    assert_non_null(strstr(error.text, "raft/vote is missing"));
    fixture_free(f);
}

/* One corrupt block of term and vote loses nothing; two corrupt blocks are refused. */
static void coordinator_vote_survives_one_damaged_block(void **state)
{
    (void)state;
    for (int block = 0; block < 2; block++) {
        struct fixture *f = fixture_new(24);
        struct leat_error error = {0};
        streams_made(f, 2);
        fixture_close(f);
        struct fake_inode *vote = fake_world_file(&f->world, "raft/vote");
        damage(vote, (size_t)block * 4096 + 20);
        assert_int_equal(fixture_open(f, NULL), LEAT_OK);
        assert_int_equal(f->streams, 2);
        f->world.dead = true;
        fixture_close(f);
        f->world.dead = false;
        damage(vote, 30);
        damage(vote, 4096 + 30);
        assert_int_equal(fixture_open(f, &error), LEAT_E_DAMAGED);
        assert_non_null(strstr(error.text, "raft/vote"));
        fixture_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinator_new_directory_forms_and_is_ready),
        cmocka_unit_test(coordinator_streams_survive_restart_and_ids_are_never_reused),
        cmocka_unit_test(coordinator_internal_stream_is_not_deleted),
        cmocka_unit_test(coordinator_producer_ids_come_in_blocks),
        cmocka_unit_test(coordinator_many_requests_share_rounds),
        cmocka_unit_test(coordinator_queue_is_bounded_by_address),
        cmocka_unit_test(coordinator_full_disk_refuses_by_name_and_recovers),
        cmocka_unit_test(coordinator_log_life_follows_the_rules),
        cmocka_unit_test(coordinator_accepted_loss_jumps_ahead),
        cmocka_unit_test(coordinator_that_forgot_refuses_adoption),
        cmocka_unit_test(coordinator_adopts_a_hundred_thousand_logs),
        cmocka_unit_test(coordinator_power_cut_at_every_operation_keeps_what_was_answered),
        cmocka_unit_test(coordinator_damaged_log_is_named_and_refused),
        cmocka_unit_test(coordinator_damage_before_the_last_round_is_refused_after_a_kill),
        cmocka_unit_test(coordinator_missing_files_are_named),
        cmocka_unit_test(coordinator_vote_survives_one_damaged_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
