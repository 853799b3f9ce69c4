/* SPDX-License-Identifier: Apache-2.0 */
/* Logs are refused by what nodes said there is memory for, and rows of an adoption by what logs there are, when the
 * entry is applied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/entries.h"

struct rig {
    struct leat_machine machine, copy;
    uint8_t bytes[1024];
    struct leat_msg_writer writer;
    struct leat_machine_result result;
};

static struct leat_msg_writer *begin(struct rig *rig, unsigned kind, uint32_t fields)
{
    leat_msg_writer_init(&rig->writer, rig->bytes, sizeof rig->bytes);
    leat_msg_write_array(&rig->writer, 2 + fields);
    leat_msg_write_u64(&rig->writer, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&rig->writer, kind);
    return &rig->writer;
}

static leat_err end(struct rig *rig)
{
    assert_false(rig->writer.overflow);
    assert_int_equal(leat_machine_apply(&rig->machine, rig->bytes, rig->writer.used, &rig->result),
                     LEAT_OK);
    return rig->result.rc;
}

static void node_up(struct rig *rig, const char *name, uint64_t logs_most)
{
    static const uint8_t none[16];
    struct leat_msg_writer *w = begin(rig, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(w, name, strlen(name));
    leat_msg_write_string(w, "h", 1);
    leat_msg_write_u64(w, 1);
    leat_msg_write_string(w, "", 0);
    leat_msg_write_string(w, "", 0);
    leat_msg_write_bin(w, none, sizeof none);
    leat_msg_write_u64(w, 1);
    leat_msg_write_string(w, "", 0);
    leat_msg_write_u64(w, 0);
    leat_msg_write_u64(w, 0);
    leat_msg_write_string(w, name, strlen(name));
    leat_msg_write_u64(w, logs_most);
    assert_int_equal(end(rig), LEAT_OK);
}

static leat_err create(struct rig *rig, const char *name, uint32_t streamlets, uint32_t logs)
{
    struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    struct leat_msg_writer *w = begin(rig, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(w, name, strlen(name));
    leat_msg_settings_write(w, &settings);
    return end(rig);
}

static leat_err enlarge(struct rig *rig, const char *name, uint32_t streamlets)
{
    struct leat_stream_settings settings = {.streamlets = streamlets};
    struct leat_msg_writer *w = begin(rig, LEAT_COMMAND_STREAM_CHANGE, 3);
    leat_msg_write_string(w, name, strlen(name));
    leat_msg_write_u64(w, LEAT_CHANGE_STREAMLETS);
    leat_msg_settings_write(w, &settings);
    return end(rig);
}

static leat_err drop(struct rig *rig, const char *name)
{
    struct leat_msg_writer *w = begin(rig, LEAT_COMMAND_STREAM_DELETE, 1);
    leat_msg_write_string(w, name, strlen(name));
    return end(rig);
}

static struct rig *rig_begin(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    leat_machine_init(&rig->machine, 1);
    leat_machine_init(&rig->copy, 1);
    return rig;
}

static void rig_end(struct rig *rig)
{
    leat_machine_fini(&rig->machine);
    leat_machine_fini(&rig->copy);
    free(rig);
}

/* Three nodes, of which the two with less have to do. */
static void room_is_that_of_one_node_fewer(void **state)
{
    (void)state;
    struct rig *rig = rig_begin();
    node_up(rig, "a", 100);
    node_up(rig, "b", 60);
    node_up(rig, "c", 100);
    assert_int_equal(create(rig, "s", 100, 1), LEAT_OK);
    assert_int_equal(create(rig, "t", 30, 2), LEAT_OK);
    assert_int_equal(create(rig, "u", 1, 1), LEAT_E_TOO_MANY);
    assert_non_null(strstr(rig->result.error.text, "node 'b'"));
    assert_int_equal(enlarge(rig, "s", 101), LEAT_E_TOO_MANY);
    assert_int_equal(enlarge(rig, "s", 100), LEAT_OK); /* no more than before */
    assert_int_equal(rig->machine.log_count, 160);
    assert_int_equal(create(rig, "leat.sets", 65, 1), LEAT_E_TOO_MANY);
    assert_int_equal(create(rig, "leat.sets", 64, 1), LEAT_OK);
    assert_int_equal(create(rig, "leat.sett", 1, 1), LEAT_E_TOO_MANY);
    assert_int_equal(drop(rig, "t"), LEAT_OK);
    assert_int_equal(enlarge(rig, "s", 96), LEAT_E_INVALID);
    assert_int_equal(rig->machine.log_count, 164);
    assert_int_equal(drop(rig, "s"), LEAT_OK);
    assert_int_equal(create(rig, "u", 96, 1), LEAT_OK);
    assert_int_equal(enlarge(rig, "u", 97), LEAT_E_TOO_MANY);
    rig_end(rig);
}

static uint64_t logs_of(const struct rig *rig, const char *name)
{
    for (uint32_t i = 0; i < rig->machine.node_count; i++)
        if (strcmp(rig->machine.nodes[i].info.name, name) == 0) return rig->machine.nodes[i].logs;
    fail();
    return 0;
}

/* Goal: a node that announces next to no memory, or a false number, does not stop the creation of streams, and gets no
 * logs for which it has no memory. A node that announces an impossible amount does not make other nodes take such
 * logs. */
static void node_without_room_is_passed_over(void **state)
{
    (void)state;
    struct rig *rig = rig_begin();
    node_up(rig, "a", 500);
    node_up(rig, "b", 500);
    node_up(rig, "tiny", 1);
    assert_int_equal(create(rig, "s", 10, 4), LEAT_OK); /* none of it fits there */
    assert_int_equal(logs_of(rig, "tiny"), 0);
    assert_int_equal(create(rig, "t", 10, 1), LEAT_OK);
    assert_int_equal(logs_of(rig, "tiny"), 1);
    assert_int_equal(enlarge(rig, "s", 112), LEAT_OK);
    assert_int_equal(logs_of(rig, "tiny"), 1);
    assert_int_equal(logs_of(rig, "a") + logs_of(rig, "b"), 457);
    assert_int_equal(create(rig, "u", 43, 1), LEAT_OK); /* one of a and b, and what is tiny */
    assert_int_equal(create(rig, "v", 1, 1), LEAT_E_TOO_MANY);
    node_up(rig, "boast", UINT64_MAX);
    assert_int_equal(create(rig, "v", 500, 1), LEAT_OK);
    assert_int_equal(create(rig, "w", 1, 1), LEAT_E_TOO_MANY);
    assert_in_range(logs_of(rig, "a"), 250, 500);
    assert_in_range(logs_of(rig, "b"), 250, 500);
    assert_int_equal(logs_of(rig, "tiny"), 1);
    assert_int_equal(drop(rig, "s"), LEAT_OK);
    assert_int_equal(drop(rig, "t"), LEAT_OK);
    assert_int_equal(drop(rig, "u"), LEAT_OK);
    assert_int_equal(drop(rig, "v"), LEAT_OK);
    assert_int_equal(logs_of(rig, "a") + logs_of(rig, "b") + logs_of(rig, "tiny"), 0);
    rig_end(rig);
}

/* A number that a snapshot did not keep would differ between voters. */
static void room_is_kept_in_snapshots(void **state)
{
    (void)state;
    struct rig *rig = rig_begin();
    node_up(rig, "a", 7);
    assert_int_equal(create(rig, "s", 3, 2), LEAT_OK);
    uint8_t *bytes, *again;
    size_t count, count_again;
    assert_int_equal(leat_machine_snapshot(&rig->machine, &bytes, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(&rig->copy, bytes, count), LEAT_OK);
    assert_int_equal(rig->copy.nodes[0].info.logs_most, 7);
    assert_int_equal(rig->copy.nodes[0].logs, 6);
    assert_int_equal(leat_machine_snapshot(&rig->copy, &again, &count_again), LEAT_OK);
    assert_true(count == count_again && memcmp(bytes, again, count) == 0);
    leat_mem_free(bytes);
    leat_mem_free(again);
    rig_end(rig);
}

/* Entries from before there was a limit have the same effect as then. */
static void room_of_nodes_of_old_is_not_known(void **state)
{
    (void)state;
    struct rig *rig = rig_begin();
    node_up(rig, "a", 0);
    assert_int_equal(create(rig, "s", 1000, 1), LEAT_OK);
    node_up(rig, "a", 900); /* what is there stays */
    assert_int_equal(rig->machine.log_count, 1000);
    assert_int_equal(create(rig, "t", 1, 1), LEAT_E_TOO_MANY);
    node_up(rig, "b", UINT64_MAX); /* who boasts gives others no memory */
    node_up(rig, "c", 0);
    assert_int_equal(create(rig, "t", 800, 1), LEAT_OK);
    assert_int_equal(create(rig, "u", 1, 1), LEAT_E_TOO_MANY);
    node_up(rig, "d", UINT64_MAX); /* two of them are no less than one */
    assert_int_equal(create(rig, "u", 1, 1), LEAT_OK);
    rig_end(rig);
}

static leat_err adopt(struct rig *rig, uint64_t number, size_t bytes)
{
    static const uint8_t rows[2 * LEAT_ADOPT_ROW_BYTES_MAX];
    struct leat_msg_writer *w = begin(rig, LEAT_COMMAND_ADOPT, 8);
    leat_msg_write_u64(w, 13);
    leat_msg_write_u64(w, number);
    leat_msg_write_bool(w, false);
    leat_msg_write_u64(w, 1);
    leat_msg_write_u64(w, rig->machine.changes);
    assert_true(bytes <= sizeof rows);
    leat_msg_write_bin(w, rows, bytes);
    adopt_end(w, 0);
    return end(rig);
}

/* An adoption that never ends keeps at most one row of each log, and no row when another adoption begins. */
static void adoption_has_room_for_a_row_of_each_log(void **state)
{
    (void)state;
    struct rig *rig = rig_begin();
    const struct leat_machine *machine = &rig->machine;
    assert_int_equal(adopt(rig, 0, 1), LEAT_E_AGAIN);
    assert_int_equal(machine->staged_bytes, 0);
    assert_int_equal(create(rig, "s", 1, 2), LEAT_OK);
    const size_t row = LEAT_ADOPT_ROW_BYTES_MAX;
    assert_int_equal(adopt(rig, 0, row + 1), LEAT_OK);
    assert_int_equal(adopt(rig, 1, row), LEAT_E_AGAIN);
    assert_int_equal(adopt(rig, 1, row - 1), LEAT_OK);
    assert_int_equal(machine->staged_bytes, 2 * row);
    assert_int_equal(adopt(rig, 0, 0), LEAT_OK);
    assert_null(machine->staged);
    rig_end(rig);
}

/* Goal: the last epoch is given out, and after it whatever needs one is refused: an epoch that comes a second time
 * would let a fenced owner acknowledge appends. */
static void epochs_are_given_out_to_the_last_and_once(void **state)
{
    (void)state;
    for (unsigned grows = 0; grows < 2; grows++) {
        struct rig *rig = rig_begin();
        node_up(rig, "a", 100);
        assert_int_equal(create(rig, "s", 1, 1), LEAT_OK);
        rig->machine.next_epoch = LEAT_EPOCH_MAX;
        assert_int_equal(grows ? enlarge(rig, "s", 2) : create(rig, "t", 1, 1), LEAT_OK);
        assert_int_equal(rig->result.epoch.v, LEAT_EPOCH_MAX);
        assert_int_equal(enlarge(rig, "s", 3), LEAT_E_TOO_MANY);
        assert_int_equal(create(rig, "u", 1, 1), LEAT_E_TOO_MANY);
        assert_int_equal(rig->machine.log_count, 2);
        assert_int_equal(enlarge(rig, "s", grows ? 2 : 1), LEAT_OK); /* needs none */
        rig_end(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_that_of_one_node_fewer),
        cmocka_unit_test(node_without_room_is_passed_over),
        cmocka_unit_test(room_is_kept_in_snapshots),
        cmocka_unit_test(room_of_nodes_of_old_is_not_known),
        cmocka_unit_test(adoption_has_room_for_a_row_of_each_log),
        cmocka_unit_test(epochs_are_given_out_to_the_last_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
