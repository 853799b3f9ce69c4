/* SPDX-License-Identifier: Apache-2.0 */
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
#include "tests/coordinator/entries.h"
#include "tests/coordinator/machine_rig.h"

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

static const struct leat_machine_node *newest(const struct leat_machine *machine)
{
    const struct leat_machine_node *node = &machine->nodes[0];
    for (uint32_t i = 1; i < machine->node_count; i++)
        if (machine->nodes[i].info.incarnation > node->info.incarnation) node = &machine->nodes[i];
    return node;
}

static struct leat_msg_writer adopt_random(struct command *command, struct leat_xoshiro *random,
                                           const struct leat_machine *machine)
{
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_ADOPT, 8);
    leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, 2));
    leat_msg_write_u64(&writer, leat_xoshiro_below(random, 3) ? machine->staged_next : 0);
    leat_msg_write_bool(&writer, leat_xoshiro_below(random, 2) != 0);
    leat_msg_write_u64(&writer, machine->next_incarnation - 1);
    leat_msg_write_u64(&writer, machine->changes);
    rows_write(&writer, random);
    adopt_end(&writer, machine->node_count ? leat_machine_seen(machine, newest(machine)) : 0);
    return writer;
}

static struct leat_msg_writer loss_random(struct command *command, struct leat_xoshiro *random,
                                          const struct leat_machine *machine)
{
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_ACCEPT_LOSS, 10);
    log_write(&writer, random);
    leat_msg_write_u64(&writer, leat_xoshiro_below(random, 10));
    leat_msg_write_u64(&writer, leat_xoshiro_below(random, 1000));
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, machine->next_epoch));
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_bool(&writer, false);
    return writer;
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
        writer = command_begin(command, LEAT_COMMAND_OPENED, 5);
        leat_msg_write_u64(&writer, 1 + leat_xoshiro_below(random, machine->next_epoch));
        leat_msg_write_array(&writer, 1);
        leat_msg_write_array(&writer, 3);
        log_write(&writer, random);
        opened_end(&writer, 0, 1);
        break;
    case 5:
        writer = command_begin(command, LEAT_COMMAND_NODE_UP, 12);
        leat_msg_write_string(&writer, name, strlen(name) % 3);
        leat_msg_write_string(&writer, "host:1", 6);
        leat_msg_write_u64(&writer, 4);
        node_up_end(&writer);
        break;
    case 6:
    case 7:
        writer = adopt_random(command, random, machine);
        break;
    default:
        writer = loss_random(command, random, machine);
        break;
    }
    command_end(command, &writer);
}

/* Goal: voters never differ. Method: a walk of commands on two machines, one of which is replaced
 * by its own snapshot now and then; different default cores must not matter once settings are in
 * the entry. */
static void machine_same_entries_give_the_same_snapshot(void **state)
{
    (void)state;
    unsigned refused = 0, done = 0, adopted = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct leat_xoshiro random;
        leat_xoshiro_seed(&random, seed);
        struct machines it = machines_make(2);
        for (int i = 0; i < 400; i++) {
            command_random(it.command, &random, it.m);
            struct leat_machine_result ra, rb;
            assert_int_equal(leat_machine_apply(it.m, it.command->bytes, it.command->count, &ra),
                             LEAT_OK);
            assert_int_equal(leat_machine_apply(it.copy, it.command->bytes, it.command->count, &rb),
                             LEAT_OK);
            assert_int_equal(ra.rc, rb.rc);
            assert_string_equal(ra.error.text, rb.error.text);
            refused += ra.rc != LEAT_OK;
            done += ra.rc == LEAT_OK;
            adopted += ra.rc == LEAT_OK && ra.epoch.v && ra.incarnation;
            if (i % 50 == 49) machine_restore_copy(it.m, it.copy);
            if (i % 40 == 39) machines_compare(it.m, it.copy);
        }
        machines_free(&it);
    }
    assert_true(refused > 100 && done > 1000 && adopted > 20);
}

static void machine_truncated_snapshot_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(2);
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 5);
    for (int i = 0; i < 30; i++) {
        struct leat_machine_result r;
        command_random(it.command, &random, it.m);
        assert_int_equal(leat_machine_apply(it.m, it.command->bytes, it.command->count, &r),
                         LEAT_OK);
    }
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(it.m, &bytes, &count), LEAT_OK);
    for (size_t n = 0; n < count; n++)
        assert_int_equal(leat_machine_restore(it.copy, bytes, n), LEAT_E_CORRUPT);
    uint8_t *longer = leat_mem_calloc(LEAT_MEM_COORDINATOR, count + 1, 1);
    assert_non_null(longer);
    memcpy(longer, bytes, count);
    assert_int_equal(leat_machine_restore(it.copy, longer, count + 1), LEAT_E_CORRUPT);
    leat_mem_free(longer);
    leat_mem_free(bytes);
    machines_free(&it);
}

/* Streamlets are added behind those that are there, which keep owner and epoch; fewer are refused,
 * and what a change does not name stays. */
static void machine_stream_change_adds_streamlets_and_keeps_the_rest(void **state)
{
    (void)state;
    struct machines it = machines_make(2);
    node_up(it.m, it.command, "n");
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2, .retention_ms = 7};
    assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
                     LEAT_OK);
    uint32_t epoch = leat_machine_name_find(it.m, "s", 1)->desc->streamlets[0].epoch.v;

    settings = (struct leat_stream_settings){.streamlets = 3, .retention_bytes = 9};
    assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CHANGE,
                                  LEAT_CHANGE_STREAMLETS | LEAT_CHANGE_RETENTION_BYTES, &settings),
                     LEAT_OK);
    const struct leat_machine_stream *stream = leat_machine_name_find(it.m, "s", 1);
    assert_int_equal(stream->desc->streamlet_count, 3);
    assert_int_equal(stream->desc->settings.retention_ms, 7);
    assert_int_equal(stream->desc->settings.retention_bytes, 9);
    assert_int_equal(stream->desc->settings.logs, 2);
    assert_int_equal(stream->log_count, 6);
    assert_int_equal(it.m->log_count, 6);
    assert_int_equal(it.m->nodes[0].info.streamlets, 3);
    assert_int_equal(stream->desc->streamlets[0].epoch.v, epoch);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(stream->desc->streamlets[i].owner, it.m->nodes[0].info.incarnation);
    assert_true(stream->desc->streamlets[2].epoch.v > epoch);
    assert_int_equal(stream->logs[5].epoch.v, stream->desc->streamlets[2].epoch.v);
    assert_true(stream->logs[5].record.tail.segment == UINT64_MAX);
    machine_restore_copy(it.m, it.copy);
    machines_compare(it.m, it.copy);

    settings.streamlets = 2;
    assert_int_equal(stream_entry(it.m, it.command, LEAT_COMMAND_STREAM_CHANGE,
                                  LEAT_CHANGE_STREAMLETS, &settings),
                     LEAT_E_INVALID);
    machines_compare(it.m, it.copy);
    machines_free(&it);
}

/* An entry of a newer program stops this voter instead of being skipped. */
static void machine_unknown_entry_stops_the_voter(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    struct leat_machine_result r;
    const uint8_t newer[] = {0x92, 0x02, 0x09};
    assert_int_equal(leat_machine_apply(it.m, newer, sizeof newer, &r), LEAT_E_CORRUPT);
    assert_non_null(strstr(r.error.text, "older than its data"));
    /* From the first kind behind the table on: a sanitizer sees a look at the table. */
    for (uint8_t kind = LEAT_COMMAND_STREAM_CHANGE + 1; kind < 100; kind++) {
        const uint8_t unknown[] = {0x92, 0x01, kind};
        assert_int_equal(leat_machine_apply(it.m, unknown, sizeof unknown, &r), LEAT_E_CORRUPT);
        struct leat_msg_writer writer = command_begin(it.command, LEAT_COMMAND_REQUEST, 3);
        leat_msg_write_u64(&writer, 7);
        leat_msg_write_u64(&writer, 1);
        leat_msg_write_bin(&writer, unknown, sizeof unknown);
        command_end(it.command, &writer);
        assert_false(leat_machine_command_known(it.command->bytes, it.command->count));
    }
    machines_free(&it);
}

/* The entry is on all voters, and is applied again at each of their starts: if one start stopped at the entry, all
 * would. */
static void machine_entry_that_is_no_command_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    struct command *form = it.command, *wrapped = calloc(1, sizeof *wrapped);
    assert_non_null(wrapped);
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
    assert_int_equal(leat_machine_apply(it.m, wrapped->bytes, wrapped->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_CORRUPT);
    assert_false(it.m->formed);
    assert_int_equal(leat_machine_apply(it.m, form->bytes, form->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_OK);
    assert_int_equal(leat_machine_apply(it.m, form->bytes, form->count, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_EXISTS);
    const uint8_t junk[] = {0xc1};
    assert_int_equal(leat_machine_apply(it.m, junk, sizeof junk, &r), LEAT_OK);
    assert_int_equal(r.rc, LEAT_E_CORRUPT);
    free(wrapped);
    machines_free(&it);
}

/* Of two streams with one name only one could be found, and the table of names would lose the other stream. */
static void machine_snapshot_with_two_streams_of_a_name_is_refused(void **state)
{
    (void)state;
    struct machines it = machines_make(1);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
        struct leat_machine_result r;
        struct leat_msg_writer writer = command_begin(it.command, LEAT_COMMAND_STREAM_CREATE, 2);
        leat_msg_write_string(&writer, i ? "name-two" : "name-one", 8);
        leat_msg_settings_write(&writer, &settings);
        command_end(it.command, &writer);
        assert_int_equal(leat_machine_apply(it.m, it.command->bytes, it.command->count, &r),
                         LEAT_OK);
        assert_int_equal(r.rc, LEAT_OK);
    }
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(it.m, &bytes, &count), LEAT_OK);
    uint8_t *at = memmem(bytes, count, "name-two", 8);
    assert_non_null(at);
    memcpy(at, "name-one", 8);
    assert_int_equal(leat_machine_restore(it.m, bytes, count), LEAT_E_CORRUPT);
    assert_int_equal(it.m->stream_count, 0);
    leat_mem_free(bytes);
    machines_free(&it);
}

/* A jump to nowhere, which no version writes so: what is made of it is the same after one start and after two. */
static void machine_snapshot_reads_the_same_again(void **state)
{
    (void)state;
    static const uint8_t tail[] = {0x97, 3, 4, 5, 6, 100, 0xc3, 101}; /* epoch to jumped to */
    struct machines it = machines_make(1);
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
    struct leat_machine_result r;
    struct leat_msg_writer writer = command_begin(it.command, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&writer, "rooms", 5);
    leat_msg_settings_write(&writer, &settings);
    command_end(it.command, &writer);
    assert_int_equal(leat_machine_apply(it.m, it.command->bytes, it.command->count, &r), LEAT_OK);
    it.m->streams[0].logs[0] = (struct leat_machine_log){
        .epoch = {3}, .record.tail = {4, {5, 6}, 100, true}, .jumped_to = 101};
    uint8_t *bytes, *again;
    size_t count, count_again;
    assert_int_equal(leat_machine_snapshot(it.m, &bytes, &count), LEAT_OK);
    uint8_t *at = memmem(bytes, count, tail, sizeof tail);
    assert_non_null(at);
    at[sizeof tail - 1] = 0;
    assert_int_equal(leat_machine_restore(it.m, bytes, count), LEAT_OK);
    assert_int_equal(it.m->streams[0].logs[0].jumped_to, 0);
    leat_mem_free(bytes);
    assert_int_equal(leat_machine_snapshot(it.m, &bytes, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(it.m, bytes, count), LEAT_OK);
    assert_int_equal(leat_machine_snapshot(it.m, &again, &count_again), LEAT_OK);
    assert_true(count == count_again && memcmp(bytes, again, count) == 0);
    leat_mem_free(bytes);
    leat_mem_free(again);
    machines_free(&it);
}

/* Goal: voters of all versions decide alike, whichever number of fields the entry's head says it has. */
static void entry_is_all_its_fields_whatever_its_head_says(void **state)
{
    (void)state;
    static struct leat_machine machine;
    struct leat_machine_result result;
    uint8_t entry[] = {0x93, LEAT_COMMAND_VERSION, LEAT_COMMAND_STREAM_DELETE, 0xa2, 'a', 'b', 0};
    leat_machine_init(&machine, 1);
    for (uint8_t fields = 0; fields <= 15; fields++) {
        entry[0] = (uint8_t)(0x90 | fields);
        assert_int_equal(leat_machine_apply(&machine, entry, 6, &result), LEAT_OK);
        assert_int_equal(result.malformed, fields < 2 || fields > 5); /* so many bytes are there */
        assert_int_equal(result.rc, result.malformed ? LEAT_E_CORRUPT : LEAT_E_UNKNOWN_STREAM);
        for (size_t count = 0; count <= 7; count++) {
            assert_int_equal(leat_machine_apply(&machine, entry, count, &result), LEAT_OK);
            assert_true(count == 6 || result.malformed);
        }
    }
    leat_machine_fini(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_is_all_its_fields_whatever_its_head_says),
        cmocka_unit_test(machine_same_entries_give_the_same_snapshot),
        cmocka_unit_test(machine_truncated_snapshot_is_refused),
        cmocka_unit_test(machine_unknown_entry_stops_the_voter),
        cmocka_unit_test(machine_entry_that_is_no_command_is_refused),
        cmocka_unit_test(machine_snapshot_with_two_streams_of_a_name_is_refused),
        cmocka_unit_test(machine_snapshot_reads_the_same_again),
        cmocka_unit_test(machine_stream_change_adds_streamlets_and_keeps_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
