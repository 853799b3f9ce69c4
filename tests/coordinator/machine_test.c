/* The state machine: the same entries give the same bytes, and snapshots give the same machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/adopt.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/owners.h"

struct command {
    uint8_t bytes[8192];
    size_t count;
};

static struct leat_msg_writer command_begin(struct command *command, unsigned kind, uint32_t fields)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, command->bytes, sizeof command->bytes);
    leat_msg_write_array(&writer, 2 + fields);
    leat_msg_write_u64(&writer, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&writer, kind);
    return writer;
}

static void command_end(struct command *command, const struct leat_msg_writer *writer)
{
    assert_false(writer->overflow);
    command->count = writer->used;
}

static void log_write(struct leat_msg_writer *writer, struct leat_xoshiro *random)
{
    leat_msg_write_u64(writer, leat_xoshiro_below(random, 40));
    leat_msg_write_u64(writer, leat_xoshiro_below(random, 4));
    leat_msg_write_u64(writer, leat_xoshiro_below(random, 3));
}

static void rows_write(struct leat_msg_writer *writer, struct leat_xoshiro *random)
{
    uint8_t bytes[2048];
    struct leat_msg_writer rows;
    leat_msg_writer_init(&rows, bytes, sizeof bytes);
    for (uint64_t i = leat_xoshiro_below(random, 5); i > 0; i--) {
        leat_msg_write_array(&rows, 8);
        log_write(&rows, random);
        leat_msg_write_u64(&rows, leat_xoshiro_below(random, 2));
        for (int k = 0; k < 4; k++)
            leat_msg_write_u64(&rows, leat_xoshiro_below(random, 1000));
    }
    leat_msg_write_bin(writer, bytes, rows.used);
}

/* One streamlet; its logs follow. */
static struct leat_msg_writer recover_begin(struct command *command,
                                            const struct leat_machine_stream *stream,
                                            uint32_t streamlet, uint64_t owner)
{
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(&writer, 99);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 6);
    leat_msg_write_u64(&writer, stream->id);
    leat_msg_write_u64(&writer, streamlet);
    leat_msg_write_u64(&writer, stream->desc->streamlets[streamlet].owner);
    leat_msg_write_u64(&writer, stream->desc->streamlets[streamlet].epoch.v);
    leat_msg_write_u64(&writer, owner);
    leat_msg_write_array(&writer, stream->desc->settings.logs);
    return writer;
}

static void recover_log(struct leat_msg_writer *writer, const struct leat_machine_log *seen,
                        enum leat_recover_decision decision, uint64_t segment)
{
    leat_msg_write_array(writer, decision == LEAT_RECOVER_TAIL ? 8 : 4);
    leat_msg_write_u64(writer, seen->epoch.v);
    leat_msg_write_u64(writer, seen->record.opened ? seen->record.stamp_epoch.v : 0);
    leat_msg_write_u64(writer, seen->record.opened ? seen->record.stamp_version : 0);
    leat_msg_write_u64(writer, (uint64_t)decision);
    if (decision != LEAT_RECOVER_TAIL) return;
    leat_msg_write_u64(writer, segment);
    leat_msg_write_u64(writer, 512);
    leat_msg_write_u64(writer, 0x1234);
    leat_msg_write_u64(writer, 100);
}

/* Any command, most of them sensible, many refused. */
static void command_random(struct command *command, struct leat_xoshiro *random,
                           const struct leat_machine *machine)
{
    char name[32];
    snprintf(name, sizeof name, "%s%u", leat_xoshiro_below(random, 9) ? "s" : "leat.s",
             (unsigned)leat_xoshiro_below(random, 30));
    struct leat_stream_settings settings = {.streamlets =
                                                1 + (uint32_t)leat_xoshiro_below(random, 4),
                                            .logs = (uint32_t)leat_xoshiro_below(random, 3)};
    struct leat_msg_writer writer;
    uint64_t kind = leat_xoshiro_below(random, 12);
    const struct leat_machine_stream *any =
        machine->stream_count ? &machine->streams[leat_xoshiro_below(random, machine->stream_count)]
                              : NULL;
    if (kind == 10 && !any) kind = 11;
    switch (kind) {
    case 10:
        writer = recover_begin(command, any, 0, machine->next_incarnation - 1);
        for (uint32_t q = 0; q < any->desc->settings.logs; q++)
            recover_log(&writer, &any->logs[q],
                        any->logs[q].record.opened ? LEAT_RECOVER_TAIL : LEAT_RECOVER_STANDS, 7);
        break;
    case 11:
        writer = command_begin(command, LEAT_COMMAND_CRASH, 2);
        leat_msg_write_string(&writer, name, strlen(name) % 3);
        leat_msg_write_u64(&writer, machine->next_incarnation - 1 - leat_xoshiro_below(random, 2));
        break;
    case 9:
        settings.retention_ms = (int64_t)leat_xoshiro_below(random, 1000);
        writer = command_begin(command, LEAT_COMMAND_STREAM_CHANGE, 3);
        leat_msg_write_string(&writer, name, strlen(name));
        leat_msg_write_u64(&writer, leat_xoshiro_below(random, 16));
        leat_msg_settings_write(&writer, &settings);
        break;
    case 0:
    case 1:
        writer = command_begin(command, LEAT_COMMAND_STREAM_CREATE, 2);
        leat_msg_write_string(&writer, name, strlen(name));
        leat_msg_settings_write(&writer, &settings);
        break;
    case 2:
        writer = command_begin(command, LEAT_COMMAND_STREAM_DELETE, 1);
        leat_msg_write_string(&writer, name, strlen(name));
        break;
    case 3:
        writer = command_begin(command, LEAT_COMMAND_PRODUCER_IDS, 1);
        leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, 1000));
        break;
    case 4:
        writer = command_begin(command, LEAT_COMMAND_OPENED, 2);
        leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, machine->next_epoch));
        leat_msg_write_array(&writer, 1);
        leat_msg_write_array(&writer, 3);
        log_write(&writer, random);
        break;
    case 5:
        writer = command_begin(command, LEAT_COMMAND_NODE_UP, 3);
        leat_msg_write_string(&writer, name, strlen(name) % 3);
        leat_msg_write_string(&writer, "host:1", 6);
        leat_msg_write_u64(&writer, 4);
        break;
    case 6:
    case 7:
        writer = command_begin(command, LEAT_COMMAND_ADOPT, 6);
        leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, 2));
        leat_msg_write_u64(&writer, leat_xoshiro_below(random, 3) ? machine->staged_next : 0);
        leat_msg_write_bool(&writer, leat_xoshiro_below(random, 2) != 0);
        leat_msg_write_u64(&writer, machine->next_incarnation - 1);
        leat_msg_write_u64(&writer, machine->changes);
        rows_write(&writer, random);
        break;
    default:
        writer = command_begin(command, LEAT_COMMAND_ACCEPT_LOSS, 5);
        log_write(&writer, random);
        leat_msg_write_u64(&writer, leat_xoshiro_below(random, 10));
        leat_msg_write_u64(&writer, leat_xoshiro_below(random, 1000));
        break;
    }
    command_end(command, &writer);
}

static void machines_compare(const struct leat_machine *a, const struct leat_machine *b)
{
    uint8_t *bytes_a, *bytes_b;
    size_t count_a, count_b;
    assert_int_equal(leat_machine_snapshot(a, &bytes_a, &count_a), LEAT_OK);
    assert_int_equal(leat_machine_snapshot(b, &bytes_b, &count_b), LEAT_OK);
    assert_int_equal(count_a, count_b);
    assert_memory_equal(bytes_a, bytes_b, count_a);
    assert_true(owners_are_counted(a) && owners_are_counted(b));
    leat_mem_free(bytes_a);
    leat_mem_free(bytes_b);
}

static void machine_restore_copy(const struct leat_machine *from, struct leat_machine *to)
{
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(from, &bytes, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(to, bytes, count), LEAT_OK);
    leat_mem_free(bytes);
}

/* Goal: voters never differ. Method: a walk of commands on two machines, one of which is replaced
 * by its own snapshot now and then; different default cores must not matter once settings are in
 * the entry. */
static void machine_same_entries_give_the_same_snapshot(void **state)
{
    (void)state;
    struct leat_machine *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    struct command *command = calloc(1, sizeof *command);
    assert_true(a && b && command);
    unsigned refused = 0, done = 0, adopted = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct leat_xoshiro random;
        leat_xoshiro_seed(&random, seed);
        leat_machine_init(a, 2);
        leat_machine_init(b, 2);
        for (int i = 0; i < 400; i++) {
            command_random(command, &random, a);
            struct leat_machine_result ra, rb;
            assert_int_equal(leat_machine_apply(a, command->bytes, command->count, &ra), LEAT_OK);
            assert_int_equal(leat_machine_apply(b, command->bytes, command->count, &rb), LEAT_OK);
            assert_int_equal(ra.rc, rb.rc);
            assert_string_equal(ra.error.text, rb.error.text);
            refused += ra.rc != LEAT_OK;
            done += ra.rc == LEAT_OK;
            adopted += ra.rc == LEAT_OK && ra.epoch.v && ra.incarnation;
            if (i % 50 == 49) machine_restore_copy(a, b);
            if (i % 40 == 39) machines_compare(a, b);
        }
        leat_machine_fini(a);
        leat_machine_fini(b);
    }
    assert_true(refused > 100 && done > 1000 && adopted > 20);
    free(a);
    free(b);
    free(command);
}

static void machine_truncated_snapshot_is_refused(void **state)
{
    (void)state;
    struct leat_machine *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    struct command *command = calloc(1, sizeof *command);
    assert_true(a && b && command);
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 5);
    leat_machine_init(a, 2);
    leat_machine_init(b, 2);
    for (int i = 0; i < 30; i++) {
        struct leat_machine_result r;
        command_random(command, &random, a);
        assert_int_equal(leat_machine_apply(a, command->bytes, command->count, &r), LEAT_OK);
    }
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(a, &bytes, &count), LEAT_OK);
    for (size_t n = 0; n < count; n++)
        assert_int_equal(leat_machine_restore(b, bytes, n), LEAT_E_CORRUPT);
    uint8_t *longer = leat_mem_calloc(LEAT_MEM_COORDINATOR, count + 1, 1);
    assert_non_null(longer);
    memcpy(longer, bytes, count);
    assert_int_equal(leat_machine_restore(b, longer, count + 1), LEAT_E_CORRUPT);
    leat_mem_free(longer);
    leat_mem_free(bytes);
    leat_machine_fini(a);
    leat_machine_fini(b);
    free(a);
    free(b);
    free(command);
}

static leat_err stream_entry(struct leat_machine *m, struct command *command, unsigned kind,
                             uint32_t change, const struct leat_stream_settings *settings)
{
    const bool changes = kind == LEAT_COMMAND_STREAM_CHANGE;
    struct leat_msg_writer writer = command_begin(command, kind, changes ? 3 : 2);
    leat_msg_write_string(&writer, "s", 1);
    if (changes) leat_msg_write_u64(&writer, change);
    leat_msg_settings_write(&writer, settings);
    command_end(command, &writer);
    struct leat_machine_result result;
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result.rc;
}

/* Streamlets are added behind those that are there, which keep owner and epoch; fewer are refused,
 * and what a change does not name stays. */
static void machine_stream_change_adds_streamlets_and_keeps_the_rest(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m), *copy = calloc(1, sizeof *copy);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && copy && command);
    leat_machine_init(m, 2);
    leat_machine_init(copy, 2);
    struct leat_machine_result result;
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_NODE_UP, 3);
    leat_msg_write_string(&writer, "n", 1);
    leat_msg_write_string(&writer, "host:1", 6);
    leat_msg_write_u64(&writer, 2);
    command_end(command, &writer);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2, .retention_ms = 7};
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings), LEAT_OK);
    uint32_t epoch = leat_machine_name_find(m, "s", 1)->desc->streamlets[0].epoch.v;

    settings = (struct leat_stream_settings){.streamlets = 3, .retention_bytes = 9};
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CHANGE,
                                  LEAT_CHANGE_STREAMLETS | LEAT_CHANGE_RETENTION_BYTES, &settings),
                     LEAT_OK);
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    assert_int_equal(stream->desc->streamlet_count, 3);
    assert_int_equal(stream->desc->settings.retention_ms, 7);
    assert_int_equal(stream->desc->settings.retention_bytes, 9);
    assert_int_equal(stream->desc->settings.logs, 2);
    assert_int_equal(stream->log_count, 6);
    assert_int_equal(m->log_count, 6);
    assert_int_equal(m->nodes[0].info.streamlets, 3);
    assert_int_equal(stream->desc->streamlets[0].epoch.v, epoch);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(stream->desc->streamlets[i].owner, m->nodes[0].info.incarnation);
    assert_true(stream->desc->streamlets[2].epoch.v > epoch);
    assert_int_equal(stream->logs[5].epoch.v, stream->desc->streamlets[2].epoch.v);
    assert_true(stream->logs[5].record.tail.segment == UINT64_MAX);
    machine_restore_copy(m, copy);
    machines_compare(m, copy);

    settings.streamlets = 2;
    assert_int_equal(
        stream_entry(m, command, LEAT_COMMAND_STREAM_CHANGE, LEAT_CHANGE_STREAMLETS, &settings),
        LEAT_E_INVALID);
    machines_compare(m, copy);
    leat_machine_fini(m);
    leat_machine_fini(copy);
    free(m);
    free(copy);
    free(command);
}

static leat_err entry_apply(struct leat_machine *m, struct command *command,
                            const struct leat_msg_writer *writer)
{
    struct leat_machine_result result;
    command_end(command, writer);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result.rc;
}

static void node_up(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 3);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    assert_int_equal(entry_apply(m, command, &w), LEAT_OK);
}

static leat_err opened(struct leat_machine *m, struct command *command, uint32_t epoch,
                       uint64_t incarnation, uint32_t version)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_OPENED, 4);
    leat_msg_write_u64(&w, epoch);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 3);
    for (int k = 0; k < 3; k++)
        leat_msg_write_u64(&w, k == 0);
    leat_msg_write_u64(&w, incarnation);
    leat_msg_write_u64(&w, version);
    return entry_apply(m, command, &w);
}

static leat_err crash(struct leat_machine *m, struct command *command, const char *name,
                      uint64_t incarnation)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_CRASH, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_u64(&w, incarnation);
    return entry_apply(m, command, &w);
}

static leat_err recovered(struct leat_machine *m, struct command *command,
                          const struct leat_machine_log *seen, uint64_t owner)
{
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    struct leat_msg_writer w = recover_begin(command, stream, 0, owner);
    recover_log(&w, &seen[0], LEAT_RECOVER_TAIL, 3);
    recover_log(&w, &seen[1], LEAT_RECOVER_STANDS, 0);
    return entry_apply(m, command, &w);
}

/* From a crash on nothing in its name counts; its streamlet goes to another node once, never from
 * who lives, and never when anything of it is not as it was seen. */
static void machine_recovery_takes_only_what_it_saw(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m), *copy = calloc(1, sizeof *copy);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && copy && command);
    leat_machine_init(m, 1);
    leat_machine_init(copy, 1);
    node_up(m, command, "a"); /* incarnation 1 */
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2};
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings), LEAT_OK);
    node_up(m, command, "b"); /* 2 */
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    uint32_t epoch = stream->desc->streamlets[0].epoch.v;
    assert_int_equal(opened(m, command, epoch, 1, 1), LEAT_OK);
    struct leat_machine_log seen[2] = {stream->logs[0], stream->logs[1]};

    assert_int_equal(recovered(m, command, seen, 2), LEAT_E_AGAIN); /* it lives */
    assert_int_equal(opened(m, command, epoch, 1, 2), LEAT_OK);     /* another version since */
    assert_int_equal(crash(m, command, "a", 7), LEAT_E_STALE_EPOCH);
    assert_int_equal(crash(m, command, "a", 1), LEAT_OK);
    assert_int_equal(crash(m, command, "a", 1), LEAT_OK);
    assert_true(m->nodes[0].info.crashed);
    assert_int_equal(m->nodes[0].info.state, LEAT_NODE_DOWN);
    assert_int_equal(opened(m, command, epoch, 1, 3), LEAT_E_STALE_EPOCH);
    assert_int_equal(recovered(m, command, seen, 2), LEAT_E_AGAIN); /* of the version before */
    seen[0] = stream->logs[0];
    assert_int_equal(recovered(m, command, seen, 1), LEAT_E_AGAIN); /* to one who is gone */
    machine_restore_copy(m, copy);
    machines_compare(m, copy);
    uint32_t next_epoch = m->next_epoch;
    assert_int_equal(recovered(m, command, seen, 2), LEAT_OK);
    stream = leat_machine_name_find(m, "s", 1);
    assert_int_equal(stream->desc->streamlets[0].owner, 2);
    assert_int_equal(stream->desc->streamlets[0].epoch.v, next_epoch);
    assert_int_equal(stream->logs[0].record.tail.segment, 3);
    assert_true(stream->logs[1].record.tail.segment == UINT64_MAX);
    assert_int_equal(m->nodes[0].info.streamlets, 0);
    assert_int_equal(m->nodes[1].info.streamlets, 1);
    assert_true(owners_are_counted(m));
    assert_int_equal(recovered(m, command, seen, 2), LEAT_E_AGAIN); /* a second time */
    /* The copy made from a snapshot comes to the same. */
    assert_int_equal(recovered(copy, command, seen, 2), LEAT_OK);
    assert_int_equal(recovered(copy, command, seen, 2), LEAT_E_AGAIN);
    machines_compare(m, copy);
    leat_machine_fini(m);
    leat_machine_fini(copy);
    free(m);
    free(copy);
    free(command);
}

/* All nodes were heard when incarnation `heard` was the next: the best they have is segment 7. */
static leat_err waits(struct leat_machine *m, struct command *command,
                      const struct leat_machine_log *seen, uint64_t owner, uint64_t heard)
{
    const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
    struct leat_msg_writer w = recover_begin(command, stream, 0, owner);
    leat_msg_write_array(&w, 9);
    leat_msg_write_u64(&w, seen[0].epoch.v);
    leat_msg_write_u64(&w, seen[0].record.stamp_epoch.v);
    leat_msg_write_u64(&w, seen[0].record.stamp_version);
    leat_msg_write_u64(&w, LEAT_RECOVER_WAITS);
    leat_msg_write_u64(&w, 7);
    leat_msg_write_u64(&w, 512);
    leat_msg_write_u64(&w, 0x1234);
    leat_msg_write_u64(&w, 100);
    leat_msg_write_u64(&w, heard);
    recover_log(&w, &seen[1], LEAT_RECOVER_WAITS, 0);
    return entry_apply(m, command, &w);
}

static struct leat_machine_result lost(struct leat_machine *m, struct command *command,
                                       uint64_t incarnation, uint32_t epoch, bool stands_in)
{
    struct leat_machine_result result;
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_ACCEPT_LOSS, 10);
    for (int k = 0; k < 3; k++)
        leat_msg_write_u64(&w, k == 0); /* log 1/0/0 */
    leat_msg_write_u64(&w, 7);
    leat_msg_write_u64(&w, 100);
    leat_msg_write_u64(&w, incarnation);
    leat_msg_write_u64(&w, epoch);
    leat_msg_write_u64(&w, 512);
    leat_msg_write_u64(&w, 0x1234);
    leat_msg_write_bool(&w, stands_in);
    command_end(command, &w);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result;
}

static leat_err drained(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_DRAIN, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_bool(&w, true);
    return entry_apply(m, command, &w);
}

static leat_err undrained(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_DRAIN, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_bool(&w, false);
    return entry_apply(m, command, &w);
}

struct waiting {
    struct leat_machine *m, *copy;
    struct command *command;
    struct leat_machine_log seen[2];
};

/* Nodes a (1) and b (2); a owned a streamlet of two logs, opened the first, and crashed. */
static struct waiting waiting_make(void)
{
    struct waiting it = {.m = calloc(1, sizeof *it.m),
                         .copy = calloc(1, sizeof *it.copy),
                         .command = calloc(1, sizeof *it.command)};
    assert_true(it.m && it.copy && it.command);
    leat_machine_init(it.m, 1);
    leat_machine_init(it.copy, 1);
    node_up(it.m, it.command, "a");
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2};
    assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
                     LEAT_OK);
    node_up(it.m, it.command, "b");
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(opened(it.m, it.command, stream->desc->streamlets[0].epoch.v, 1, 1), LEAT_OK);
    assert_int_equal(crash(it.m, it.command, "a", 1), LEAT_OK);
    memcpy(it.seen, stream->logs, sizeof it.seen);
    return it;
}

static void waiting_free(struct waiting *it)
{
    machine_restore_copy(it->m, it->copy);
    machines_compare(it->m, it->copy);
    leat_machine_fini(it->m);
    leat_machine_fini(it->copy);
    free(it->m);
    free(it->copy);
    free(it->command);
}

/* Nothing of it is decided: the node that had it answers for it, and its log goes on waiting for the
 * marks of the epoch that it had. */
static void machine_streamlet_without_a_decision_goes_to_its_last_node_alone(void **state)
{
    (void)state;
    struct waiting it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(waits(it.m, it.command, it.seen, 2, 3), LEAT_E_AGAIN); /* b never had it */
    assert_int_equal(waits(it.m, it.command, it.seen, 1, 3), LEAT_E_AGAIN); /* that one is gone */
    node_up(it.m, it.command, "a");                                         /* 3 */
    assert_int_equal(waits(it.m, it.command, it.seen, 3, 4), LEAT_OK);
    assert_int_equal(stream->desc->streamlets[0].owner, 3);
    assert_true(leat_machine_log_waits(&stream->logs[0]));
    assert_int_equal(stream->logs[0].record.stamp_epoch.v, it.seen[0].record.stamp_epoch.v);
    assert_int_equal(stream->logs[0].record.tail.segment, 7);
    assert_int_equal(stream->logs[0].record.heard, 4);
    assert_false(leat_machine_log_waits(&stream->logs[1]));
    assert_int_equal(waits(it.m, it.command, it.seen, 3, 4), LEAT_E_AGAIN); /* a second time */
    waiting_free(&it);
}

static leat_err ids_taken(struct leat_machine *m, struct command *command, uint64_t count)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_PRODUCER_IDS, 1);
    leat_msg_write_u64(&w, count);
    return entry_apply(m, command, &w);
}

/* A block that does not fit is refused, and stops no voter; a smaller one is given out. */
static void machine_producer_ids_used_up_are_refused(void **state)
{
    (void)state;
    struct waiting it = waiting_make();
    it.m->next_producer_id = INT64_MAX - 10;
    assert_int_equal(ids_taken(it.m, it.command, 1000), LEAT_E_TOO_MANY);
    assert_int_equal(it.m->next_producer_id, INT64_MAX - 10);
    assert_int_equal(ids_taken(it.m, it.command, 10), LEAT_OK);
    assert_int_equal(ids_taken(it.m, it.command, 1), LEAT_E_TOO_MANY);
    waiting_free(&it);
}

/* Whoever drains them all can make no stream any more, and wonders why; so the last one is told from others.
 * One that is down counts: it may come back. An entry is taken all the same: voters of a version that knew no
 * last one do. */
static void machine_tells_the_last_node_and_takes_its_drain(void **state)
{
    (void)state;
    struct waiting it = waiting_make(); /* a and b; a is down */
    assert_false(leat_machine_drains_last(it.m, "b", 1));
    assert_false(leat_machine_drains_last(it.m, "x", 1));
    assert_int_equal(drained(it.m, it.command, "b"), LEAT_OK);
    assert_false(leat_machine_drains_last(it.m, "b", 1)); /* it is */
    assert_true(leat_machine_drains_last(it.m, "a", 1));
    assert_int_equal(undrained(it.m, it.command, "b"), LEAT_OK);
    assert_int_equal(drained(it.m, it.command, "a"), LEAT_OK);
    assert_true(leat_machine_drains_last(it.m, "b", 1));
    node_up(it.m, it.command, "c");
    assert_false(leat_machine_drains_last(it.m, "b", 1));
    assert_int_equal(drained(it.m, it.command, "b"), LEAT_OK);
    assert_true(leat_machine_drains_last(it.m, "c", 1));
    assert_int_equal(drained(it.m, it.command, "c"), LEAT_OK);
    machine_restore_copy(it.m, it.copy);
    machines_compare(it.m, it.copy);
    waiting_free(&it);
}

/* What is lost is given up only when every node was heard that may come back, by the owner of now;
 * and offsets go on behind every earlier jump, whatever is known of that. */
static void machine_loss_is_accepted_once_all_were_heard(void **state)
{
    (void)state;
    struct waiting it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    /* An operator says that a does not come back: b may answer for it. */
    assert_int_equal(drained(it.m, it.command, "a"), LEAT_OK);
    assert_int_equal(waits(it.m, it.command, it.seen, 2, 3), LEAT_OK);
    uint32_t epoch = stream->logs[0].epoch.v;
    assert_int_equal(lost(it.m, it.command, 1, epoch, true).rc, LEAT_E_STALE_EPOCH);
    assert_int_equal(lost(it.m, it.command, 2, epoch - 1, true).rc, LEAT_E_STALE_EPOCH);
    node_up(it.m, it.command, "c"); /* nobody has asked it yet */
    assert_int_equal(lost(it.m, it.command, 2, epoch, true).rc, LEAT_E_AGAIN);
    struct leat_machine_log now[2] = {stream->logs[0], stream->logs[1]};
    assert_int_equal(waits(it.m, it.command, now, 2, it.m->next_incarnation), LEAT_OK);
    assert_int_equal(stream->logs[0].epoch.v, epoch); /* nothing but what is known has changed */
    struct leat_machine_result result = lost(it.m, it.command, 2, epoch, true);
    assert_int_equal(result.rc, LEAT_OK);
    assert_true(stream->logs[0].record.tail.jumped);
    assert_int_equal(stream->logs[0].record.tail.extent.bytes, 512);
    assert_true(stream->logs[0].record.tail.next_offset == (uint64_t)result.first_id);
    int64_t first = result.first_id;
    assert_int_equal(first, 1ll << 40);
    assert_int_equal(opened(it.m, it.command, result.epoch.v, 2, 1), LEAT_OK);
    machine_restore_copy(it.m, it.copy);
    /* All that was written after that is lost as well, and forgotten. */
    result = lost(it.m, it.command, 2, result.epoch.v, false);
    assert_int_equal(result.rc, LEAT_OK);
    assert_int_equal(result.first_id, 2 * first);
    assert_int_equal(lost(it.copy, it.command, 2, stream->logs[0].epoch.v - 1, false).first_id,
                     2 * first);
    machines_compare(it.m, it.copy);
    waiting_free(&it);
}

/* What an operator left of a log is adopted by a node that has it. By one that has not, only where nobody else
 * can have it either: else recovery asks the others. */
static void adopt_leaves_to_recovery_what_was_left_elsewhere(void **state)
{
    (void)state;
    for (uint32_t copies = 1; copies <= 2; copies++) {
        struct leat_machine *m = calloc(1, sizeof *m);
        struct command *command = calloc(1, sizeof *command);
        struct leat_stream_settings settings = {.streamlets = 1, .logs = 1, .copies = copies};
        assert_true(m && command);
        leat_machine_init(m, 1);
        node_up(m, command, "a");
        node_up(m, command, "b");
        assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
                         LEAT_OK);
        const struct leat_machine_stream *stream = leat_machine_name_find(m, "s", 1);
        uint32_t epoch = stream->desc->streamlets[0].epoch.v;
        uint64_t owner = stream->desc->streamlets[0].owner;
        assert_int_equal(lost(m, command, owner, epoch, false).rc, LEAT_OK);
        struct leat_log_marks marks = {.log = {1, 0, 0},
                                       .has_closed = true,
                                       .closed_segment = 7,
                                       .closed_extent = {512, 0x1234}};
        for (unsigned here = 0; here < 2; here++) {
            struct leat_coordinate request = {
                .incarnation = owner, .marks = &marks, .mark_count = here};
            struct leat_error error;
            assert_int_equal(leat_adopt_decide(m, &request, true, &error), LEAT_OK);
            assert_int_equal(request.decision_count, 1);
            bool left = copies > 1 && !here;
            assert_int_equal(request.decisions[0].left, left);
            assert_int_equal(request.decisions[0].kind,
                             left ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL);
            leat_mem_free(request.decisions);
        }
        leat_machine_fini(m);
        free(m);
        free(command);
    }
}

/* A node that is down and not given up is named. */
static void machine_loss_names_the_node_that_may_have_it(void **state)
{
    (void)state;
    struct waiting it = waiting_make();
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(recovered(it.m, it.command, it.seen, 2), LEAT_OK); /* a tail, and it is away */
    struct leat_machine_result result = lost(it.m, it.command, 2, stream->logs[0].epoch.v, true);
    assert_int_equal(result.rc, LEAT_E_AGAIN);
    assert_non_null(strstr(result.error.text, "'a'"));
    node_up(it.m, it.command, "a");
    assert_int_equal(lost(it.m, it.command, 2, stream->logs[0].epoch.v, true).rc, LEAT_OK);
    waiting_free(&it);
}

/* An attempt whose chunks are interrupted by another one changes nothing (docs/stories.md 5c). */
static void machine_adoption_is_all_or_nothing(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    struct leat_machine_result r;
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 3);
    leat_msg_write_string(&w, "a", 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    command_end(command, &w);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &r), LEAT_OK);
    const struct {
        uint64_t attempt, number;
        bool last;
        leat_err rc;
    } steps[] = {
        {11, 0, false, LEAT_OK},     {12, 0, false, LEAT_OK}, {11, 1, true, LEAT_E_AGAIN},
        {12, 2, true, LEAT_E_AGAIN}, {12, 1, true, LEAT_OK},  {12, 2, true, LEAT_E_AGAIN},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        w = command_begin(command, LEAT_COMMAND_ADOPT, 6);
        leat_msg_write_u64(&w, steps[i].attempt);
        leat_msg_write_u64(&w, steps[i].number);
        leat_msg_write_bool(&w, steps[i].last);
        leat_msg_write_u64(&w, 1);
        leat_msg_write_u64(&w, m->changes);
        leat_msg_write_bin(&w, "", 0);
        command_end(command, &w);
        assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &r), LEAT_OK);
        assert_int_equal(r.rc, steps[i].rc);
    }
    assert_int_equal(m->next_epoch, 2); /* one attempt took effect, and drew one epoch */
    leat_machine_fini(m);
    free(m);
    free(command);
}

static leat_err boot(struct leat_machine *m, struct command *command, const char *name,
                     uint64_t now, uint64_t before)
{
    static const uint8_t id[16] = {1};
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 10);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "h:1", 3);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_bin(&w, id, sizeof id);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_u64(&w, now);
    leat_msg_write_u64(&w, before);
    return entry_apply(m, command, &w);
}

static void crash_whoever(struct leat_machine *m, struct command *command, const char *name)
{
    const struct leat_machine_node *node = leat_machine_node_find(m, name, 1);
    assert_int_equal(crash(m, command, name, node->info.incarnation), LEAT_OK);
}

/* A directory that has been up knows the mark of the last start that came up, or was on its way then. */
static void machine_directory_of_an_older_state_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    assert_int_equal(boot(m, command, "a", 11, 0), LEAT_OK);
    assert_int_equal(boot(m, command, "a", 11, 0), LEAT_OK);  /* cut short before it was heard of */
    assert_int_equal(boot(m, command, "a", 12, 11), LEAT_OK); /* 12 came up */
    assert_int_equal(boot(m, command, "a", 13, 11), LEAT_E_DAMAGED); /* a copy of when 11 was */
    assert_int_equal(boot(m, command, "a", 12, 11), LEAT_OK); /* 12 came up, and was killed then */
    assert_int_equal(boot(m, command, "a", 14, 12), LEAT_OK);
    crash_whoever(m, command, "a");
    assert_int_equal(boot(m, command, "b", 15, 14), LEAT_OK);        /* it has another name now */
    assert_int_equal(boot(m, command, "a", 16, 14), LEAT_E_DAMAGED); /* a copy, under the old one */
    crash_whoever(m, command, "b");
    assert_int_equal(boot(m, command, "a", 16, 15), LEAT_OK); /* and its old one again */
    assert_int_equal(boot(m, command, "a", 17, 0), LEAT_OK);  /* an empty one */
    assert_int_equal(boot(m, command, "a", 18, 15), LEAT_E_DAMAGED);
    assert_int_equal(boot(m, command, "a", 19, 16), LEAT_E_DAMAGED);
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* A copy of a data directory (cp -a, a snapshot of its disk) is used beside it under a name of its own. */
static void machine_directory_that_another_node_is_up_with_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    assert_int_equal(boot(m, command, "a", 11, 0), LEAT_OK);
    assert_int_equal(boot(m, command, "b", 21, 11), LEAT_E_EXISTS); /* made while it was up */
    assert_int_equal(boot(m, command, "a", 12, 11), LEAT_OK);
    assert_int_equal(boot(m, command, "b", 21, 11), LEAT_E_DAMAGED); /* made before it came up */
    crash_whoever(m, command, "a");
    assert_int_equal(boot(m, command, "b", 21, 11), LEAT_E_DAMAGED);
    assert_int_equal(m->node_count, 1);
    assert_int_equal(boot(m, command, "b", 21, 12), LEAT_OK); /* it has another name now */
    assert_int_equal(boot(m, command, "b", 22, 21), LEAT_OK);
    leat_machine_fini(m);
    free(m);
    free(command);
}

static leat_err up_at_an_address(struct leat_machine *m, struct command *command, const char *name,
                                 uint32_t fields)
{
    static const uint8_t none[16];
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, fields);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "h:1", 3);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_bin(&w, none, sizeof none);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, "", 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_string(&w, "", 0);
    if (fields >= 12) leat_msg_write_u64(&w, 100);
    return entry_apply(m, command, &w);
}

/* An entry of a version that knew no such rule is applied as that version applied it. */
static void machine_address_of_another_node_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    assert_int_equal(up_at_an_address(m, command, "a", 11), LEAT_OK);
    assert_int_equal(up_at_an_address(m, command, "b", 11), LEAT_OK); /* "a" was not down yet */
    assert_int_equal(m->next_incarnation, 3);
    assert_int_equal(up_at_an_address(m, command, "c", 12), LEAT_E_EXISTS);
    assert_int_equal(m->next_incarnation, 3);
    crash_whoever(m, command, "a");
    crash_whoever(m, command, "b");
    assert_int_equal(up_at_an_address(m, command, "c", 12), LEAT_OK);
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* An entry of a newer program stops this voter instead of being skipped. */
static void machine_unknown_entry_stops_the_voter(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    leat_machine_init(m, 1);
    struct leat_machine_result r;
    const uint8_t newer[] = {0x92, 0x02, 0x09}, unknown[] = {0x92, 0x01, 0x63};
    assert_int_equal(leat_machine_apply(m, newer, sizeof newer, &r), LEAT_E_CORRUPT);
    assert_non_null(strstr(r.error.text, "older than its data"));
    assert_int_equal(leat_machine_apply(m, unknown, sizeof unknown, &r), LEAT_E_CORRUPT);
    leat_machine_fini(m);
    free(m);
}

/* The entry is on all voters, and again at each of their starts: were it to stop one, no cluster. */
static void machine_entry_that_is_no_command_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *form = calloc(1, sizeof *form), *wrapped = calloc(1, sizeof *wrapped);
    assert_true(m && form && wrapped);
    leat_machine_init(m, 1);
    struct leat_machine_result r;
    struct leat_msg_writer writer = command_begin(form, LEAT_COMMAND_FORM, 1);
    leat_msg_write_bin(&writer, "0123456789abcdef", 16);
    command_end(form, &writer);
    writer = command_begin(wrapped, LEAT_COMMAND_REQUEST, 3);
    leat_msg_write_u64(&writer, 7);
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_bin(&writer, form->bytes, form->count);
    command_end(wrapped, &writer);
    assert_false(leat_machine_command_known(wrapped->bytes, wrapped->count));
    assert_int_equal(leat_machine_apply(m, wrapped->bytes, wrapped->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_CORRUPT);
    assert_false(m->formed);
    assert_int_equal(leat_machine_apply(m, form->bytes, form->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_OK);
    assert_int_equal(leat_machine_apply(m, form->bytes, form->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_EXISTS);
    const uint8_t junk[] = {0xc1};
    assert_int_equal(leat_machine_apply(m, junk, sizeof junk, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_CORRUPT);
    leat_machine_fini(m);
    free(m);
    free(form);
    free(wrapped);
}

/* One of the two could not be found, and the table of names would lose the other. */
static void machine_snapshot_with_two_streams_of_a_name_is_refused(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
        struct leat_machine_result r;
        struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_STREAM_CREATE, 2);
        leat_msg_write_string(&writer, i ? "name-two" : "name-one", 8);
        leat_msg_settings_write(&writer, &settings);
        command_end(command, &writer);
        assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &r), LEAT_OK);
        assert_int_equal(r.rc, LEAT_OK);
    }
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(m, &bytes, &count), LEAT_OK);
    uint8_t *at = memmem(bytes, count, "name-two", 8);
    assert_non_null(at);
    memcpy(at, "name-one", 8);
    assert_int_equal(leat_machine_restore(m, bytes, count), LEAT_E_CORRUPT);
    assert_int_equal(m->stream_count, 0);
    leat_mem_free(bytes);
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* A jump to nowhere, which no version writes so: what is made of it is the same after one start and after two. */
static void machine_snapshot_reads_the_same_again(void **state)
{
    (void)state;
    static const uint8_t tail[] = {0x97, 3, 4, 5, 6, 100, 0xc3, 101}; /* epoch to jumped to */
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
    struct leat_machine_result r;
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&writer, "rooms", 5);
    leat_msg_settings_write(&writer, &settings);
    command_end(command, &writer);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &r), LEAT_OK);
    m->streams[0].logs[0] = (struct leat_machine_log){
        .epoch = {3}, .record.tail = {4, {5, 6}, 100, true}, .jumped_to = 101};
    uint8_t *bytes, *again;
    size_t count, count_again;
    assert_int_equal(leat_machine_snapshot(m, &bytes, &count), LEAT_OK);
    uint8_t *at = memmem(bytes, count, tail, sizeof tail);
    assert_non_null(at);
    at[sizeof tail - 1] = 0;
    assert_int_equal(leat_machine_restore(m, bytes, count), LEAT_OK);
    assert_int_equal(m->streams[0].logs[0].jumped_to, 100);
    leat_mem_free(bytes);
    assert_int_equal(leat_machine_snapshot(m, &bytes, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(m, bytes, count), LEAT_OK);
    assert_int_equal(leat_machine_snapshot(m, &again, &count_again), LEAT_OK);
    assert_true(count == count_again && memcmp(bytes, again, count) == 0);
    leat_mem_free(bytes);
    leat_mem_free(again);
    leat_machine_fini(m);
    free(m);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_same_entries_give_the_same_snapshot),
        cmocka_unit_test(machine_truncated_snapshot_is_refused),
        cmocka_unit_test(machine_recovery_takes_only_what_it_saw),
        cmocka_unit_test(machine_streamlet_without_a_decision_goes_to_its_last_node_alone),
        cmocka_unit_test(machine_producer_ids_used_up_are_refused),
        cmocka_unit_test(machine_tells_the_last_node_and_takes_its_drain),
        cmocka_unit_test(machine_loss_is_accepted_once_all_were_heard),
        cmocka_unit_test(adopt_leaves_to_recovery_what_was_left_elsewhere),
        cmocka_unit_test(machine_loss_names_the_node_that_may_have_it),
        cmocka_unit_test(machine_adoption_is_all_or_nothing),
        cmocka_unit_test(machine_directory_of_an_older_state_is_refused),
        cmocka_unit_test(machine_directory_that_another_node_is_up_with_is_refused),
        cmocka_unit_test(machine_address_of_another_node_is_refused),
        cmocka_unit_test(machine_unknown_entry_stops_the_voter),
        cmocka_unit_test(machine_entry_that_is_no_command_is_refused),
        cmocka_unit_test(machine_snapshot_with_two_streams_of_a_name_is_refused),
        cmocka_unit_test(machine_snapshot_reads_the_same_again),
        cmocka_unit_test(machine_stream_change_adds_streamlets_and_keeps_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
