/* SPDX-License-Identifier: Apache-2.0 */
/* Entries for a state machine, as tests write and apply them. After cmocka.h. */
#ifndef LEAT_TESTS_COORDINATOR_MACHINE_RIG_H
#define LEAT_TESTS_COORDINATOR_MACHINE_RIG_H

#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/adopt.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/entries.h"

struct command {
    uint8_t bytes[8192];
    size_t count;
};

static inline struct leat_msg_writer command_begin(struct command *command, unsigned kind,
                                                   uint32_t fields)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, command->bytes, sizeof command->bytes);
    leat_msg_write_array(&writer, 2 + fields);
    leat_msg_write_u64(&writer, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&writer, kind);
    return writer;
}

static inline void command_end(struct command *command, const struct leat_msg_writer *writer)
{
    assert_false(writer->overflow);
    command->count = writer->used;
}

/* One streamlet; its logs follow. */
static inline struct leat_msg_writer recover_begin(struct command *command,
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

static inline void recover_log(struct leat_msg_writer *writer, const struct leat_machine_log *seen,
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

static inline void machines_compare(const struct leat_machine *a, const struct leat_machine *b)
{
    uint8_t *bytes_a, *bytes_b;
    size_t count_a, count_b;
    assert_int_equal(leat_machine_snapshot(a, &bytes_a, &count_a), LEAT_OK);
    assert_int_equal(leat_machine_snapshot(b, &bytes_b, &count_b), LEAT_OK);
    assert_int_equal(count_a, count_b);
    assert_memory_equal(bytes_a, bytes_b, count_a);
    leat_machine_check(a);
    leat_machine_check(b);
    leat_mem_free(bytes_a);
    leat_mem_free(bytes_b);
}

static inline void machine_restore_copy(const struct leat_machine *from, struct leat_machine *to)
{
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(from, &bytes, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(to, bytes, count), LEAT_OK);
    leat_mem_free(bytes);
}

static inline leat_err stream_entry(struct leat_machine *m, struct command *command, unsigned kind,
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

static inline leat_err entry_apply(struct leat_machine *m, struct command *command,
                                   const struct leat_msg_writer *writer)
{
    struct leat_machine_result result;
    command_end(command, writer);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result.rc;
}

static inline void node_up(struct leat_machine *m, struct command *command, const char *name)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_string(&w, "h", 1);
    leat_msg_write_u64(&w, 1);
    node_up_end(&w);
    assert_int_equal(entry_apply(m, command, &w), LEAT_OK);
}

static inline leat_err opened(struct leat_machine *m, struct command *command, uint32_t epoch,
                              uint64_t incarnation, uint32_t version)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_OPENED, 5);
    leat_msg_write_u64(&w, epoch);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 3);
    for (int k = 0; k < 3; k++)
        leat_msg_write_u64(&w, k == 0);
    opened_end(&w, incarnation, version);
    return entry_apply(m, command, &w);
}

static inline leat_err crash(struct leat_machine *m, struct command *command, const char *name,
                             uint64_t incarnation)
{
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_CRASH, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_write_u64(&w, incarnation);
    return entry_apply(m, command, &w);
}

/* A machine, another one to compare it with, and room for an entry. */
struct machines {
    struct leat_machine *m, *copy;
    struct command *command;
    struct leat_machine_log seen[2]; /* of waiting_make() */
};

static inline struct machines machines_make(uint32_t cores)
{
    struct machines it = {.m = calloc(1, sizeof *it.m),
                          .copy = calloc(1, sizeof *it.copy),
                          .command = calloc(1, sizeof *it.command)};
    assert_true(it.m && it.copy && it.command);
    leat_machine_init(it.m, cores);
    leat_machine_init(it.copy, cores);
    return it;
}

static inline void machines_free(struct machines *it)
{
    leat_machine_fini(it->m);
    leat_machine_fini(it->copy);
    free(it->m);
    free(it->copy);
    free(it->command);
}

/* Nodes a (1) and b (2); a owned a streamlet of two logs, opened the first, and crashed. */
static inline struct machines waiting_make(void)
{
    struct machines it = machines_make(1);
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

static inline void waiting_free(struct machines *it)
{
    machine_restore_copy(it->m, it->copy);
    machines_compare(it->m, it->copy);
    machines_free(it);
}

#endif
