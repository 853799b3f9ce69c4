/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that a voter takes of its tables, and snapshots that a voter receives, with libraft and a disk: when a
 * voter takes a snapshot, which entries stay in the log after a snapshot, in which order a received snapshot replaces
 * log and tables, and what a failure leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/fake.h"
#include "tests/coordinator/raft_heap.h"
#include "tests/trace.h"

enum { LEAST = 4096, BIG = LEAT_RAFT_TRAILING_BYTES / 8, TERM = 5, INSTALLED = 100 };

static struct fake_world world;
static struct leat_timers timers;
static struct leat_raft_drive drive;
static bool is_open;
static leat_err snapshot_rc, restore_rc, run_rc;
static size_t table_bytes, awaited; /* operations that a flush waited for */
static leat_err (*run_whole)(void *ctx, struct leat_disk_io *io);

/* ---- hooks ---- */

static leat_err on_apply(void *owner, uint64_t index, const uint8_t *bytes, size_t count)
{
    (void)owner;
    (void)bytes;
    (void)count;
    assert_int_equal(index, drive.applied);
    return LEAT_OK;
}
static leat_err on_snapshot(void *owner, uint8_t **out_bytes, size_t *out_count)
{
    (void)owner;
    trace("tables of %u\n", (unsigned)drive.applied);
    if (snapshot_rc != LEAT_OK) return snapshot_rc;
    *out_bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, table_bytes, 1);
    *out_count = table_bytes;
    assert_non_null(*out_bytes);
    memset(*out_bytes, 't', table_bytes);
    return LEAT_OK;
}
static leat_err on_restore(void *owner, const uint8_t *bytes, size_t count)
{
    char path[64];
    (void)owner;
    leat_raft_path(path, "snapshot", INSTALLED);
    trace("restore %.*s%s, log from %u\n", count > 4 ? 4 : (int)count, (const char *)bytes,
          fake_world_file(&world, path) ? ", stored" : "", (unsigned)drive.log.start_index);
    return restore_rc;
}
static void on_send(void *owner, const struct raft_message *message)
{
    (void)owner;
    if (message->type == RAFT_REQUEST_VOTE) {
        const struct raft_request_vote *vote = &message->request_vote;
        trace("asks for term %u, pre %d\n", (unsigned)vote->term, vote->pre_vote);
    }
    if (message->type == RAFT_REQUEST_VOTE_RESULT)
        trace("%u: granted %d in term %u\n", (unsigned)message->server_id,
              message->request_vote_result.vote_granted,
              (unsigned)message->request_vote_result.term);
    if (message->type != RAFT_APPEND_ENTRIES_RESULT) return;
    trace("has %u\n", (unsigned)message->append_entries_result.last_log_index);
}
static void on_state(void *owner)
{
    (void)owner;
}
static void on_failed(void *owner, leat_err rc, const char *why)
{
    (void)owner;
    trace("failed %d: %s\n", (int)(rc == LEAT_E_DISK ? 1 : rc == LEAT_E_CORRUPT ? 2 : 3), why);
}
static void world_wake(void *actor)
{
    (void)actor;
    leat_timers_run(&timers);
}
static void world_turn_end(void *actor)
{
    (void)actor;
    leat_raft_drive_turn_end(&drive);
}
static const struct leat_actor_ops ops = {.on_wake = world_wake, .on_turn_end = world_turn_end};

static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    awaited += io->kind == LEAT_DISK_SYNC && world.io_head && world.io_head->done_bytes == 0;
    return run_rc != LEAT_OK ? run_rc : run_whole(ctx, io);
}

/* ---- voter 1 of so many ---- */

static void configuration_make(struct raft_configuration *conf, unsigned voters)
{
    static const char *const addresses[] = {"1", "2", "3"};
    raft_configuration_init(conf);
    for (unsigned i = 0; i < voters; i++)
        assert_int_equal(raft_configuration_add(conf, i + 1, addresses[i], RAFT_VOTER), 0);
}

static void open_voter(unsigned voters, uint64_t least, uint64_t segment_bytes)
{
    const struct leat_raft_hooks hooks = {on_apply, on_snapshot, on_restore, on_send,
                                          on_state, on_failed,   NULL,       NULL};
    const struct leat_raft_drive_options options = {.id = 1,
                                                    .address = "1",
                                                    .election_ms = 200,
                                                    .heartbeat_ms = 50,
                                                    .segment_bytes = segment_bytes,
                                                    .snapshot_bytes_min = least};
    struct leat_error error = {0};
    bool is_new = false;
    assert_int_equal(
        leat_raft_drive_open(&drive, &world.env, &timers, &hooks, &options, &is_new, &error),
        LEAT_OK);
    is_open = true;
    if (!is_new) return;
    struct raft_configuration conf;
    configuration_make(&conf, voters);
    assert_int_equal(leat_raft_drive_form(&drive, &conf, "first", 5, &error), LEAT_OK);
    raft_configuration_close(&conf);
}

static void close_voter(void)
{
    leat_raft_drive_close(&drive);
    leat_raft_drive_close(&drive);
    assert_false(leat_timer_armed(&drive.raft_timer) || leat_timer_armed(&drive.mark_timer));
    world.ops_of_actor = NULL;
    is_open = false;
}

static void start_voter(void)
{
    struct leat_error error = {0};
    assert_int_equal(leat_raft_drive_start(&drive, &error), LEAT_OK);
    world.actor = &drive;
    world.ops_of_actor = &ops;
}

static int begin(void **state)
{
    (void)state;
    trace_begin();
    heap_begin();
    fake_world_init(&world, 1);
    run_whole = world.disk.run;
    world.disk.run = disk_run;
    assert_int_equal(leat_timers_init(&timers, &world.clock, LEAT_RAFT_TIMERS), LEAT_OK);
    snapshot_rc = restore_rc = run_rc = LEAT_OK;
    table_bytes = 100, awaited = 0;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    if (is_open) close_voter();
    leat_timers_fini(&timers);
    fake_world_fini(&world);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    assert_int_equal(blocks, 0);
    raft_heap_set_default();
    TRACE_IS("");
    return 0;
}

/* Alone, it leads. */
static void leader_make(uint64_t least, uint64_t segment_bytes)
{
    open_voter(1, least, segment_bytes);
    start_voter();
    for (unsigned ms = 0; ms < 2000 && !leat_raft_drive_leads(&drive); ms++)
        fake_world_elapse(&world, 1000);
    assert_true(leat_raft_drive_leads(&drive));
    fake_world_settle(&world);
}

static void submit(size_t bytes)
{
    static uint8_t data[BIG];
    const struct raft_buffer command = {.base = data, .len = bytes};
    uint64_t index;
    assert_int_equal(leat_raft_drive_submit(&drive, &command, 1, &index), LEAT_OK);
    leat_raft_drive_turn_end(&drive);
    fake_world_settle(&world);
    assert_int_equal(drive.applied, index);
}

/* The bytes that entries take in the log. */
static uint64_t weight(uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;
    for (uint64_t i = from; i <= to; i++)
        bytes += leat_raft_log_get(&drive.log, i)->bytes + LEAT_RAFT_FRAME_HEADER_BYTES;
    return bytes;
}

/* raft counts on what the log has, and no more. */
static void expect_log_from(uint64_t first)
{
    assert_int_equal(drive.log.start_index, first);
    assert_int_equal(drive.raft.trail.offset, first - 1);
    assert_int_equal(drive.raft.trail.snapshot.index, drive.log.snapshot.index);
}

/* ---- taken ---- */

static void one_is_taken_when_entries_outgrow_the_last(void **state)
{
    (void)state;
    leader_make(LEAST, 0);
    uint64_t last = 0;
    table_bytes = 10000;
    for (unsigned n = 0; n < 3; n++) {
        const uint64_t wanted = n == 0 ? LEAST : 20000;
        while (drive.log.snapshot.index == last)
            submit(100);
        const uint64_t now = drive.log.snapshot.index;
        assert_int_equal(now, drive.applied);
        assert_true(weight(last + 1, now) >= wanted && weight(last + 1, now - 1) < wanted);
        char all[64];
        snprintf(all, sizeof all, "tables of %u\n", (unsigned)now);
        TRACE_IS(all);
        expect_log_from(1); /* all trail: raft has them for voters that lag */
        last = now;
    }
    /* One that is smaller than the least does not hasten the next. */
    table_bytes = 1;
    while (drive.log.snapshot.index == last)
        submit(100);
    last = drive.log.snapshot.index;
    while (drive.log.snapshot.index == last)
        submit(100);
    assert_true(weight(last + 1, drive.log.snapshot.index) >= LEAST);
    trace_begin();
    /* It goes on from there. */
    last = drive.log.snapshot.index;
    close_voter();
    struct leat_error error = {0};
    open_voter(1, LEAST, 0);
    restore_rc = LEAT_E_CORRUPT;
    assert_int_equal(leat_raft_drive_start(&drive, &error), LEAT_E_CORRUPT);
    TRACE_IS("restore t, log from 1\n");
    close_voter();
    assert_int_equal(blocks, 0);
    restore_rc = LEAT_OK;
    open_voter(1, LEAST, 0);
    refuse = 1; /* nor without its configuration */
    assert_true(leat_raft_drive_start(&drive, &error) != LEAT_OK);
    assert_int_equal(refuse, 0);
    TRACE_IS("restore t, log from 1\n");
    close_voter();
    assert_int_equal(blocks, 0);
    open_voter(1, LEAST, 0);
    assert_int_equal(drive.applied, 0);
    start_voter();
    TRACE_IS("restore t, log from 1\n");
    assert_int_equal(drive.applied, last);
    expect_log_from(1);
}

static void entries_trail_behind_it_up_to_a_limit(void **state)
{
    (void)state;
    leader_make(16 * (BIG + LEAT_RAFT_FRAME_HEADER_BYTES), 2 * BIG);
    const uint64_t before = drive.applied;
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(drive.log.snapshot.index, 0);
        submit(BIG);
    }
    assert_int_equal(drive.log.snapshot.index, before + 16);
    expect_log_from(before + 16 + 1 - 8);
    trace_begin();
    for (unsigned i = 0; i < 3; i++)
        submit(BIG);
    expect_log_from(before + 16 + 1 - 8);
    TRACE_IS("");
}

static void one_that_fails_is_left_to_the_next(void **state)
{
    (void)state;
    leader_make(LEAST, 0);
    snapshot_rc = LEAT_E_NO_MEMORY;
    while (trace_used == 0)
        submit(100);
    trace_begin();
    const uint64_t tried = drive.applied;
    submit(100);
    TRACE_IS(""); /* not each turn */
    assert_int_equal(drive.log.snapshot.index, 0);
    snapshot_rc = LEAT_OK;
    while (drive.log.snapshot.index == 0)
        submit(100);
    assert_true(weight(tried + 1, drive.applied) >= LEAST);
    /* No room for the file. */
    const uint64_t first = drive.log.snapshot.index;
    trace_begin();
    world.full = true;
    while (trace_used == 0)
        submit(100);
    assert_int_equal(drive.log.snapshot.index, first);
    expect_log_from(1);
    world.full = false;
    /* No memory: neither raft's nor the log's. */
    for (unsigned n = 0; n < 3; n++) {
        static const unsigned nth[] = {0, 1, 3}; /* the second is the tables' */
        trace_begin();
        drive.bytes_since_snapshot = 10 * LEAST;
        refuse = n == 0;
        leat_mem_fail_at(nth[n]);
        leat_raft_drive_snapshot_maybe(&drive);
        leat_mem_fail_at(refuse = 0);
        assert_false(drive.log.saving);
        assert_int_equal(drive.bytes_since_snapshot, 0);
    }
    while (drive.log.snapshot.index == first)
        submit(100);
    assert_int_equal(drive.failed, LEAT_OK);
    /* Nor for raft to be told: it is stored, and the log is cut with the next. */
    submit(100);
    const uint64_t known = drive.raft.trail.snapshot.index, offset = drive.raft.trail.offset;
    drive.bytes_since_snapshot = 10 * LEAST;
    leat_raft_drive_snapshot_maybe(&drive);
    assert_true(drive.log.saving);
    refuse = 1;
    fake_world_settle(&world);
    assert_int_equal(refuse, 0);
    assert_int_equal(drive.failed, LEAT_OK);
    assert_int_equal(drive.log.snapshot.index, drive.applied);
    assert_int_equal(drive.raft.trail.snapshot.index, known);
    assert_int_equal(drive.raft.trail.offset, offset);
    trace_begin();
    leat_raft_drive_fail(&drive, LEAT_E_DISK, "it is over");
    drive.bytes_since_snapshot = 10 * LEAST;
    leat_raft_drive_snapshot_maybe(&drive);
    TRACE_IS("failed 1: it is over\n");
}

static void log_that_cannot_be_cut_stops_the_voter(void **state)
{
    (void)state;
    leader_make(16 * (BIG + LEAT_RAFT_FRAME_HEADER_BYTES), 2 * BIG);
    for (unsigned i = 0; i < 15; i++)
        submit(BIG);
    run_rc = LEAT_E_DISK;
    submit(BIG);
    assert_int_equal(drive.failed, LEAT_E_DISK);
    assert_non_null(strstr(trace_text, "\nfailed 1: raft's log can't be compacted\n"));
    trace_begin();
    run_rc = LEAT_OK;
}

/* ---- received ---- */

static void receive_entries(uint64_t first, unsigned count, size_t bytes, uint64_t commit)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES, .server_id = 2, .server_address = "2"};
    struct raft_append_entries *append = &message.append_entries;
    append->version = 1;
    append->term = TERM;
    append->prev_log_index = first - 1;
    append->prev_log_term = first == 3 ? 1 : TERM;
    append->leader_commit = commit;
    append->n_entries = count;
    append->entries = raft_malloc(count * sizeof *append->entries);
    uint8_t *batch = raft_malloc(count * bytes);
    assert_true(append->entries && batch);
    memset(batch, 'e', count * bytes);
    for (unsigned i = 0; i < count; i++)
        append->entries[i] = (struct raft_entry){
            .term = TERM, .type = RAFT_COMMAND, .buf = {batch + i * bytes, bytes}, .batch = batch};
    leat_raft_drive_receive(&drive, &message);
    leat_raft_drive_turn_end(&drive);
}

static void receive_snapshot(void)
{
    struct raft_message message = {
        .type = RAFT_INSTALL_SNAPSHOT, .server_id = 2, .server_address = "2"};
    struct raft_install_snapshot *install = &message.install_snapshot;
    install->version = 0;
    install->term = TERM;
    install->last_index = INSTALLED;
    install->last_term = TERM;
    install->conf_index = 1;
    configuration_make(&install->conf, 2);
    install->data.base = raft_malloc(4);
    install->data.len = 4;
    assert_non_null(install->data.base);
    memcpy(install->data.base, "full", 4);
    leat_raft_drive_receive(&drive, &message);
    leat_raft_drive_turn_end(&drive);
}

static void follower_make(uint64_t least, uint64_t segment_bytes)
{
    open_voter(2, least, segment_bytes);
    start_voter();
    receive_entries(3, 3, 1000, 5);
    fake_world_settle(&world);
    assert_int_equal(drive.applied, 5);
    trace_begin();
}

static void one_that_is_received_is_stored_then_takes_the_place_of_all(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    receive_entries(6, 2, 8, 5); /* on their way to the disk */
    receive_snapshot();
    TRACE_IS("");
    fake_world_settle(&world);
    TRACE_IS("restore full, stored, log from 101\nhas 100\n");
    assert_int_equal(drive.applied, INSTALLED);
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_NONE);
    expect_log_from(INSTALLED + 1);
    assert_int_equal(drive.log.snapshot.conf_index, 1);
    /* Nor do the entries before it hasten the next: 3,000 bytes of them. */
    receive_entries(INSTALLED + 1, 2, 1000, INSTALLED + 2);
    fake_world_settle(&world);
    TRACE_IS("has 102\n");
    receive_entries(INSTALLED + 3, 2, 1000, INSTALLED + 4);
    fake_world_settle(&world);
    TRACE_IS("tables of 104\nhas 104\n");
    close_voter();
    open_voter(2, LEAST, 0);
    start_voter();
    TRACE_IS("restore tttt, log from 101\n"); /* the one before is removed */
    assert_int_equal(drive.applied, INSTALLED + 4);
}

static void one_that_is_being_taken_goes_first(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    receive_entries(6, 2, 1000, 7);
    while (!drive.log.saving)
        assert_true(fake_world_turn(&world));
    receive_snapshot();
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_TAKES_FIRST);
    fake_world_settle(&world);
    TRACE_IS("tables of 7\nrestore full, stored, log from 101\nhas 100\n");
    assert_int_equal(drive.applied, INSTALLED);
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_NONE);
    assert_int_equal(drive.log.snapshot.data_bytes, 4);
}

static void nothing_is_installed_once_it_has_failed(void **state)
{
    (void)state;
    follower_make(16 * (uint64_t)BIG, 2 * BIG);
    for (unsigned i = 0; i < 16; i++) {
        receive_entries(6 + i, 1, BIG, 6 + i);
        while (i == 15 && !drive.log.saving)
            assert_true(fake_world_turn(&world));
        if (i < 15) fake_world_settle(&world);
    }
    receive_snapshot();
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_TAKES_FIRST);
    trace_begin();
    run_rc = LEAT_E_DISK; /* the log can't be cut behind the one that is taken */
    fake_world_settle(&world);
    TRACE_IS("failed 1: raft's log can't be compacted\n");
    char path[64];
    leat_raft_path(path, "snapshot", INSTALLED);
    assert_null(fake_world_file(&world, path));
    close_voter();
    run_rc = LEAT_OK;
}

static void one_that_cannot_be_installed_stops_the_voter(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        follower_make(LEAST, 0);
        if (c == 0) restore_rc = LEAT_E_CORRUPT;
        if (c == 1) world.full = true;
        receive_snapshot();
        if (c == 2) run_rc = LEAT_E_DISK;
        if (c == 3) leat_raft_drive_fail(&drive, LEAT_E_DISK, "it is over");
        fake_world_settle(&world);
        if (c == 0)
            TRACE_IS("restore full, stored, log from 101\n"
                     "failed 2: a received snapshot can't be installed\n");
        if (c == 1) TRACE_IS("failed 3: a received snapshot can't be stored\n");
        if (c == 2) TRACE_IS("failed 1: a received snapshot can't be installed\n");
        if (c == 3) TRACE_IS("failed 1: it is over\n");
        assert_int_equal(drive.applied, 5);
        if (c < 3) finish(NULL);
    }
}

/* Goal: a process that lacks memory for a received snapshot ends: half of it is never stored. */
static void one_without_memory_ends_the_process(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    for (int fails = 0, status = 0; fails < 3; fails++) {
        if (fork() == 0) {
            (void)signal(SIGABRT, SIG_DFL);
            leat_mem_fail_at((uint64_t)fails);
            receive_snapshot();
            _exit(0);
        }
        assert_true(wait(&status) > 0 && WIFSIGNALED(status) == (fails > 0));
    }
}

/* A snapshot that is being received is freed with the voter. */
static void voter_closes_amid_one(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    receive_snapshot();
    assert_true(leat_raft_drive_installs(&drive) && drive.log.saving && !drive.log.writing);
    close_voter();
    assert_int_equal(awaited, 1); /* what is on its way to the disk */
    fake_world_power_cut(&world);
    assert_int_equal(blocks, 0);
    open_voter(2, LEAST, 0);
    start_voter();
    assert_int_equal(drive.log.snapshot.index, 0); /* it had no name yet */
    assert_int_equal(leat_raft_log_last_index(&drive.log), 5);
}

/* ---- the start ---- */

static const struct leat_raft_hooks hooks = {.apply = on_apply};
static const struct leat_raft_drive_options options = {
    .id = 1, .address = "1", .election_ms = 200, .heartbeat_ms = 50};

static void start_without_memory_fails_and_can_be_had_again(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    close_voter();
    for (unsigned n = 1; n <= 2; n++) {
        struct leat_error error = {0};
        open_voter(2, LEAST, 0);
        refuse = n;
        assert_int_equal(leat_raft_drive_start(&drive, &error), LEAT_E_NO_MEMORY);
        assert_true(error.text[0] != '\0');
        refuse = 0;
        close_voter();
        assert_int_equal(blocks, 0);
    }
    open_voter(2, LEAST, 0);
    start_voter();
    assert_int_equal(raft_last_index(&drive.raft), 5);
    close_voter();
    /* Nor is anything left where libraft has none to begin with. */
    bool is_new;
    unsigned n = 0;
    for (leat_err rc = LEAT_E_NO_MEMORY; rc != LEAT_OK;) {
        struct leat_error error = {0};
        refuse = ++n;
        rc = leat_raft_drive_open(&drive, &world.env, &timers, &hooks, &options, &is_new, &error);
        refuse = 0;
        assert_true(rc == LEAT_OK || rc == LEAT_E_NO_MEMORY);
        if (rc == LEAT_OK) leat_raft_drive_close(&drive);
        assert_int_equal(blocks, 0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    }
    assert_true(n > 1);
}

static void forming_that_fails_is_told(void **state)
{
    (void)state;
    struct leat_error error = {0};
    struct raft_configuration conf;
    bool is_new = false;
    configuration_make(&conf, 2);
    assert_int_equal(
        leat_raft_drive_open(&drive, &world.env, &timers, &hooks, &options, &is_new, &error),
        LEAT_OK);
    assert_true(is_new);
    refuse = 1;
    assert_int_equal(leat_raft_drive_form(&drive, &conf, "first", 5, &error), LEAT_E_NO_MEMORY);
    assert_int_equal(refuse, 0);
    assert_true(error.text[0] != '\0');
    assert_int_equal(leat_raft_log_last_index(&drive.log), 0);
    assert_int_equal(leat_raft_drive_form(&drive, &conf, "first", 5, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_last_index(&drive.log), 2);
    leat_raft_drive_close(&drive);
    /* Nor where the disk fails. */
    fake_world_fini(&world);
    fake_world_init(&world, 2);
    world.disk.run = disk_run;
    assert_int_equal(
        leat_raft_drive_open(&drive, &world.env, &timers, &hooks, &options, &is_new, &error),
        LEAT_OK);
    run_rc = LEAT_E_DISK;
    assert_int_equal(leat_raft_drive_form(&drive, &conf, "first", 5, &error), LEAT_E_DISK);
    raft_configuration_close(&conf);
    leat_raft_drive_close(&drive);
    run_rc = LEAT_OK;
}

/* One entry, after a snapshot. */
static void log_of_one_entry_is_gone_on_from(void **state)
{
    (void)state;
    follower_make(LEAST, 0);
    receive_snapshot();
    fake_world_settle(&world);
    receive_entries(INSTALLED + 1, 1, 8, INSTALLED + 1);
    fake_world_settle(&world);
    close_voter();
    assert_int_equal(blocks, 0);
    open_voter(2, LEAST, 0);
    start_voter();
    assert_int_equal(raft_last_index(&drive.raft), INSTALLED + 1);
    assert_int_equal(drive.log.entry_count, 1);
    trace_begin();
}

static void receive_candidate(raft_id from)
{
    struct raft_message message = {
        .type = RAFT_REQUEST_VOTE, .server_id = from, .server_address = from == 2 ? "2" : "3"};
    struct raft_request_vote *vote = &message.request_vote;
    vote->version = 2;
    vote->term = TERM;
    vote->candidate_id = from;
    vote->last_log_index = 2;
    vote->last_log_term = 1;
    leat_raft_drive_receive(&drive, &message);
    leat_raft_drive_turn_end(&drive);
    fake_world_settle(&world);
}

/* One vote in a term, whatever happens in between: two votes would make two leaders. */
static void vote_outlives_the_process(void **state)
{
    (void)state;
    open_voter(3, LEAST, 0);
    start_voter();
    receive_candidate(2);
    receive_candidate(3);
    TRACE_IS("2: granted 1 in term 5\n3: granted 0 in term 5\n");
    close_voter();
    open_voter(3, LEAST, 0);
    start_voter();
    receive_candidate(3);
    receive_candidate(2);
    TRACE_IS("3: granted 0 in term 5\n2: granted 1 in term 5\n");
}

/* A voter that is cut off does not raise the term, which the other voters would have to follow. */
static void who_hears_nobody_asks_before_it_stands(void **state)
{
    (void)state;
    open_voter(2, LEAST, 0);
    start_voter();
    while (trace_used == 0)
        fake_world_elapse(&world, 1000);
    TRACE_IS("asks for term 2, pre 1\n");
    fake_world_elapse(&world, 3000000);
    assert_int_equal(drive.log.vote.term, 1);
    assert_int_equal(raft_current_term(&drive.raft), 1);
    trace_begin();
}

#define SNAPSHOT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(one_is_taken_when_entries_outgrow_the_last),
        SNAPSHOT_TEST(entries_trail_behind_it_up_to_a_limit),
        SNAPSHOT_TEST(one_that_fails_is_left_to_the_next),
        SNAPSHOT_TEST(log_that_cannot_be_cut_stops_the_voter),
        SNAPSHOT_TEST(one_that_is_received_is_stored_then_takes_the_place_of_all),
        SNAPSHOT_TEST(one_that_is_being_taken_goes_first),
        SNAPSHOT_TEST(nothing_is_installed_once_it_has_failed),
        SNAPSHOT_TEST(one_that_cannot_be_installed_stops_the_voter),
        SNAPSHOT_TEST(one_without_memory_ends_the_process),
        SNAPSHOT_TEST(voter_closes_amid_one),
        SNAPSHOT_TEST(start_without_memory_fails_and_can_be_had_again),
        SNAPSHOT_TEST(forming_that_fails_is_told),
        SNAPSHOT_TEST(log_of_one_entry_is_gone_on_from),
        SNAPSHOT_TEST(vote_outlives_the_process),
        SNAPSHOT_TEST(who_hears_nobody_asks_before_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
