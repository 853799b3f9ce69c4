/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as they are written, and bytes that nobody writes: what is read, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/one_machine.h"
#include "wire/message.h"

enum {
    NAME_LONG = LEAT_NODE_NAME_BYTES_MAX,
    ADDRESS_LONG = LEAT_ADDRESS_BYTES_MAX,
    RACK_LONG = LEAT_RACK_BYTES_MAX
};

/* The contents that are written; a test changes one value. */
struct shape {
    uint32_t version, fields;
    uint32_t id_bytes, node_fields, nodes, node_id_bytes;
    uint64_t state;
    uint32_t crashed_up; /* a node that is up is declared crashed */
    uint64_t more;       /* streamlets of the first node than there are */
    size_t name_bytes, address_bytes, rack_bytes;
    uint32_t stream_fields, streamlet_fields, second_stream, streamlets, streamlet_rows, logs,
        log_rows;
    uint64_t owner; /* of the first streamlet: index + 1 */
    uint32_t opened_fields, tail_fields;
    const char *second_name;
    uint32_t sessions, session_fields, outcomes, outcome_fields, gone, voters, voter_fields;
    size_t voter_bytes;
};

static const struct shape as_written = {.version = LEAT_SNAPSHOT_VERSION,
                                        .fields = 18,
                                        .id_bytes = 16,
                                        .node_fields = 17,
                                        .nodes = 1,
                                        .node_id_bytes = 16,
                                        .state = LEAT_NODE_DOWN,
                                        .name_bytes = 1,
                                        .address_bytes = 2,
                                        .rack_bytes = 1,
                                        .stream_fields = 6,
                                        .streamlet_fields = 3,
                                        .second_stream = 9,
                                        .streamlets = 2,
                                        .streamlet_rows = 2,
                                        .logs = 2,
                                        .log_rows = 4,
                                        .owner = 1,
                                        .opened_fields = 14,
                                        .tail_fields = 7,
                                        .second_name = "two",
                                        .sessions = 2,
                                        .session_fields = 2,
                                        .outcomes = 2,
                                        .outcome_fields = 8,
                                        .gone = 2,
                                        .voters = 2,
                                        .voter_fields = 2,
                                        .voter_bytes = 1};

static struct leat_msg_writer w;

static void text(char c, size_t bytes)
{
    char all[512];
    memset(all, c, sizeof all);
    leat_msg_write_string(&w, all, bytes);
}

static void numbers(const uint64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        leat_msg_write_u64(&w, values[i]);
}

static void node_put(const struct shape *it, uint32_t i)
{
    static const uint8_t id[32] = {1, 2, 3, [15] = 16};
    leat_msg_write_array(&w, it->node_fields);
    text((char)('a' + i % 26), it->name_bytes + i / 26);
    text('A', it->address_bytes);
    const uint64_t owned = i == 0 && it->owner == 1 ? 2 : 0;
    numbers((uint64_t[]){11 + i, 4, owned + it->more}, 3); /* incarnation, cores, streamlets */
    text('N', it->address_bytes);
    text('R', it->rack_bytes);
    leat_msg_write_bin(&w, id, it->node_id_bytes);
    leat_msg_write_u64(&w, it->state);
    leat_msg_write_bool(&w, true);
    numbers((uint64_t[]){21, 22}, 2); /* memory, changes */
    leat_msg_write_bool(&w, it->state != LEAT_NODE_UP || it->crashed_up);
    text('K', it->address_bytes);
    leat_msg_write_u64(&w, 23);
    text('H', it->rack_bytes);
    if (it->node_fields >= 17) leat_msg_write_u64(&w, 24);
    if (it->node_fields >= 18) leat_msg_write_u64(&w, 25);
}

/* Log 1 of each streamlet is opened, the others have a tail. */
static void log_put(const struct shape *it, uint32_t i)
{
    const bool opened = i % 2 == 1;
    uint32_t fields = opened ? it->opened_fields : it->tail_fields;
    leat_msg_write_array(&w, fields);
    leat_msg_write_u64(&w, 31 + i);
    if (opened) {
        leat_msg_write_u64(&w, 41);
        if (fields >= 3) leat_msg_write_u64(&w, 42);
        if (fields <= 3) return;
    }
    numbers((uint64_t[]){51, 52, 53, 54}, 4); /* segment to next offset */
    if (opened)
        leat_msg_write_u64(&w, 61);
    else
        leat_msg_write_bool(&w, i == 0);
    if (fields >= 7) leat_msg_write_u64(&w, 71);
    if (fields >= 14) {
        numbers((uint64_t[]){55, 56, 57, 58}, 4); /* where it began */
        leat_msg_write_bool(&w, i == 1);
    }
    for (uint32_t k = !opened ? 7 : fields < 14 ? 9 : 14; k < fields; k++)
        leat_msg_write_u64(&w, 1);
}

static void stream_put(const struct shape *it, uint32_t id, const char *name)
{
    struct leat_stream_settings settings = {
        .streamlets = it->streamlets, .logs = it->logs, .copies = 1, .retention_ms = 77};
    leat_msg_write_array(&w, it->stream_fields);
    leat_msg_write_u64(&w, id);
    leat_msg_write_string(&w, name, strlen(name));
    leat_msg_settings_write(&w, &settings);
    leat_msg_write_array(&w, it->streamlet_rows);
    for (uint32_t i = 0; i < it->streamlet_rows; i++) {
        leat_msg_write_array(&w, it->streamlet_fields);
        numbers((uint64_t[]){i == 0 ? 11 : 0, 81 + i}, 2);
        if (it->streamlet_fields >= 3) leat_msg_write_u64(&w, i == 0 ? it->owner : 0);
        if (it->streamlet_fields >= 4) leat_msg_write_u64(&w, 1);
    }
    leat_msg_write_array(&w, it->log_rows);
    for (uint32_t i = 0; i < it->log_rows; i++)
        log_put(it, i);
    if (it->stream_fields >= 6) leat_msg_write_bool(&w, true);
    if (it->stream_fields >= 7) leat_msg_write_bool(&w, true);
}

static void requests_put(const struct shape *it)
{
    leat_msg_write_array(&w, it->sessions);
    for (uint32_t i = 0; i < it->sessions; i++) {
        leat_msg_write_array(&w, it->session_fields);
        for (uint32_t k = 0; k < it->session_fields; k++)
            leat_msg_write_u64(&w, 10 * (i + 1) + k);
    }
    leat_msg_write_array(&w, it->outcomes);
    for (uint32_t i = 0; i < it->outcomes; i++) {
        leat_msg_write_array(&w, it->outcome_fields);
        for (uint32_t k = 0; k < it->outcome_fields; k++)
            leat_msg_write_u64(&w, 10 * (i + 1) + k);
    }
    leat_msg_write_u64(&w, 91); /* unowned changes */
}

static void voters_put(const struct shape *it)
{
    leat_msg_write_array(&w, it->voters);
    for (uint32_t i = 0; i < it->voters; i++) {
        leat_msg_write_array(&w, it->voter_fields);
        text('V', it->voter_bytes);
        text((char)('v' + i), it->voter_bytes);
        if (it->voter_fields == 3) leat_msg_write_u64(&w, 1);
    }
}

static leat_err read_back(const struct shape *it)
{
    static uint8_t bytes[1 << 20];
    leat_msg_writer_init(&w, bytes, sizeof bytes);
    leat_msg_write_array(&w, it->fields);
    leat_msg_write_u64(&w, it->version);
    leat_msg_write_bool(&w, true);
    leat_msg_write_bin(&w, "0123456789abcdefg", it->id_bytes);
    numbers((uint64_t[]){101, 102, 103, 104, 105}, 5);
    leat_msg_write_array(&w, it->nodes);
    for (uint32_t i = 0; i < it->nodes; i++)
        node_put(it, i);
    leat_msg_write_array(&w, 2);
    stream_put(it, 8, "one");
    stream_put(it, it->second_stream, it->second_name);
    numbers((uint64_t[]){111, 112}, 2);
    leat_msg_write_bin(&w, "rows", 4);
    requests_put(it);
    leat_msg_write_array(&w, it->gone);
    for (uint32_t i = 0; i < it->gone; i++)
        leat_msg_write_u64(&w, UINT32_MAX - i);
    voters_put(it);
    assert_false(w.overflow);
    leat_err rc = leat_machine_restore(machine, bytes, w.used);
    if (rc == LEAT_OK) { /* it is written as it was read */
        uint8_t *again;
        size_t count;
        assert_int_equal(leat_machine_snapshot(machine, &again, &count), LEAT_OK);
        assert_int_equal(count, w.used);
        if (it->more == 0) assert_memory_equal(again, bytes, count);
        leat_mem_free(again);
        return rc;
    }
    /* Nothing of what is refused stays. */
    assert_int_equal(machine->stream_count + machine->node_count + machine->session_count +
                         machine->voter_count,
                     0);
    assert_false(machine->formed);
    assert_int_equal(machine->next_stream_id, 1);
    assert_null(leat_machine_name_find(machine, "one", 3));
    return rc;
}

/* ---- what is read ---- */

static void expect_node(void)
{
    const struct leat_machine_node *node = &machine->nodes[0];
    const struct leat_node_info *info = &node->info;
    assert_int_equal(machine->node_count, 1);
    assert_string_equal(info->name, "a");
    assert_string_equal(info->address, "AA");
    assert_int_equal(info->incarnation, 11);
    assert_int_equal(info->cores, 4);
    assert_int_equal(info->streamlets, 2);
    assert_int_equal(info->state, LEAT_NODE_DOWN);
    assert_string_equal(info->node_address, "NN");
    assert_string_equal(info->rack, "R");
    assert_int_equal(node->id[0], 1);
    assert_int_equal(node->id[15], 16);
    assert_true(info->draining);
    assert_int_equal(info->memory_bytes, 21);
    assert_int_equal(node->changes, 22);
    assert_true(info->crashed);
    assert_string_equal(info->kafka_address, "KK");
    assert_int_equal(node->boot, 23);
    assert_string_equal(info->host, "H");
    assert_int_equal(info->logs_most, 24);
    assert_int_equal(node->logs, 4); /* two streamlets of two logs each, of two streams */
}

static void expect_log(const struct shape *it, const struct leat_machine_log *log, uint32_t i)
{
    const struct leat_log_record *record = &log->record;
    const bool opened = i % 2 == 1, tail = !opened || it->opened_fields >= 9;
    const bool began = opened && it->opened_fields == 14;
    const uint64_t jumped = opened ? tail ? 71 : 0 : it->tail_fields == 7 ? 71 : 0;
    assert_int_equal(log->epoch.v, 31 + i);
    assert_int_equal(record->opened, opened);
    assert_int_equal(record->stamp_epoch.v, opened ? 41 : 0);
    assert_int_equal(record->stamp_version, opened ? 42 : 0);
    assert_int_equal(record->tail.segment, tail ? 51 : 0);
    assert_int_equal(record->tail.prefix_id.bytes, tail ? 52 : 0);
    assert_int_equal(record->tail.prefix_id.crc, tail ? 53 : 0);
    assert_int_equal(record->tail.next_offset, tail ? 54 : 0);
    assert_int_equal(record->tail.jumped, i == 0);
    assert_int_equal(record->heard, opened && tail ? 61 : 0);
    assert_int_equal(log->jumped_to, jumped);
    assert_int_equal(record->began.segment, began ? 55 : 0);
    assert_int_equal(record->began.prefix_id.bytes, began ? 56 : 0);
    assert_int_equal(record->began.prefix_id.crc, began ? 57 : 0);
    assert_int_equal(record->began.next_offset, began ? 58 : 0);
    assert_int_equal(record->began.jumped, began && i == 1);
}

static void expect_streams(const struct shape *it)
{
    assert_int_equal(machine->stream_count, 2);
    assert_int_equal(machine->log_count, 8);
    for (uint32_t s = 0; s < 2; s++) {
        const struct leat_machine_stream *stream = leat_machine_stream_find(machine, s ? 9 : 8);
        assert_non_null(stream);
        assert_ptr_equal(leat_machine_name_find(machine, s ? "two" : "one", 3), stream);
        assert_int_equal(stream->log_count, 4);
        assert_int_equal(stream->desc->settings.retention_ms, 77);
        assert_true(stream->desc->remade);
        assert_int_equal(stream->desc->streamlets[0].owner, 11);
        assert_int_equal(stream->desc->streamlets[1].owner, 0);
        assert_int_equal(stream->desc->streamlets[0].epoch.v, 81);
        assert_int_equal(stream->desc->streamlets[1].epoch.v, 82);
        assert_int_equal(stream->owners[0], 0);
        assert_int_equal(stream->owners[1], LEAT_OWNER_NONE);
        for (uint32_t i = 0; i < 4; i++)
            expect_log(it, &stream->logs[i], i);
    }
}

static void expect_rest(void)
{
    assert_true(machine->formed);
    assert_memory_equal(machine->cluster_id, "0123456789abcdef", 16);
    assert_int_equal(machine->next_stream_id, 101);
    assert_int_equal(machine->next_epoch, 102);
    assert_int_equal(machine->next_incarnation, 103);
    assert_int_equal(machine->next_producer_id, 104);
    assert_int_equal(machine->changes, 105);
    assert_int_equal(machine->staged_attempt, 111);
    assert_int_equal(machine->staged_next, 112);
    assert_int_equal(machine->staged_bytes, 4);
    assert_memory_equal(machine->staged, "rows", 4);
    assert_int_equal(machine->session_count, 2);
    assert_int_equal(machine->outcome_count, 2);
    assert_int_equal(machine->outcome_next, 2);
    for (uint32_t i = 0; i < machine->session_count; i++) {
        const struct leat_machine_outcome *o = &machine->outcomes[i];
        const uint64_t are[] = {o->session, o->sequence,  o->incarnation, (uint64_t)o->first_id,
                                o->rc,      o->stream_id, o->id_count,    o->epoch};
        assert_int_equal(machine->sessions[i].session, 10 * (i + 1));
        assert_int_equal(machine->sessions[i].sequence, 10 * (i + 1) + 1);
        for (uint32_t k = 0; k < 8; k++)
            assert_int_equal(are[k], 10 * (i + 1) + k);
    }
    assert_int_equal(machine->unowned_changes, 91);
    assert_int_equal(machine->gone_count, 2);
    assert_int_equal(machine->gone_next, 2);
    assert_int_equal(machine->gone_names[0], UINT32_MAX);
    assert_int_equal(machine->gone_names[1], UINT32_MAX - 1);
    assert_int_equal(machine->voter_count, 2);
    assert_string_equal(machine->voters[0].address, "V");
    assert_string_equal(machine->voters[0].name, "v");
    assert_string_equal(machine->voters[1].name, "w");
}

/* Logs with what is known of them, and with less: nothing jumped, nothing known of where the epoch began. */
static void snapshot_is_read(void **state)
{
    (void)state;
    static const uint32_t opened[] = {14, 9, 3}, tail[] = {7, 7, 6};
    for (unsigned i = 0; i < 3; i++) {
        struct shape it = as_written;
        it.opened_fields = opened[i];
        it.tail_fields = tail[i];
        assert_int_equal(read_back(&it), LEAT_OK);
        expect_node();
        expect_streams(&it);
        expect_rest();
    }
}

/* ---- what is refused, and what is just not ---- */

#define WITH(what, value)                                                                          \
    {                                                                                              \
#what, offsetof(struct shape, what), sizeof((struct shape *)0)->what, value                \
    }
struct change {
    const char *name;
    size_t at, bytes;
    uint64_t value;
};

static leat_err changed(const struct change *change)
{
    struct shape it = as_written;
    memcpy((char *)&it + change->at, &change->value, change->bytes); /* little-endian */
    return read_back(&it);
}

static void snapshot_of_another_shape_is_refused(void **state)
{
    (void)state;
    static const struct change wrong[] = {
        WITH(version, LEAT_SNAPSHOT_VERSION - 1),
        WITH(version, LEAT_SNAPSHOT_VERSION + 1),
        WITH(fields, 17),
        WITH(fields, 19),
        WITH(id_bytes, 15),
        WITH(id_bytes, 17),
        WITH(nodes, LEAT_NODES_MAX + 1),
        WITH(node_id_bytes, 15),
        WITH(node_id_bytes, 17),
        WITH(state, 0),
        WITH(state, LEAT_NODE_GONE + 1),
        WITH(name_bytes, NAME_LONG + 1),
        WITH(address_bytes, ADDRESS_LONG + 1),
        WITH(rack_bytes, RACK_LONG + 1),
        WITH(node_fields, 16),
        WITH(node_fields, 18),
        WITH(stream_fields, 5),
        WITH(stream_fields, 7),
        WITH(streamlet_fields, 2),
        WITH(streamlet_fields, 4),
        WITH(second_stream, 8),
        WITH(second_stream, 7),
        WITH(streamlets, 0),
        WITH(streamlets, 1),
        WITH(streamlet_rows, 1),
        WITH(streamlet_rows, 3),
        WITH(logs, 0),
        WITH(logs, 1),
        WITH(logs, LEAT_LOGS_MAX + 1),
        WITH(log_rows, 3),
        WITH(log_rows, 5),
        WITH(owner, 2),
        WITH(opened_fields, 2),
        WITH(opened_fields, 8),
        WITH(opened_fields, 10),
        WITH(opened_fields, 13),
        WITH(opened_fields, 15),
        WITH(tail_fields, 5),
        WITH(tail_fields, 8),
        WITH(sessions, LEAT_SESSIONS_MAX + 1),
        WITH(session_fields, 1),
        WITH(session_fields, 3),
        WITH(outcomes, LEAT_OUTCOMES_MAX + 1),
        WITH(outcome_fields, 7),
        WITH(outcome_fields, 9),
        WITH(gone, LEAT_GONE_NAMES_MAX + 1),
        WITH(voters, LEAT_VOTERS_MAX + 1),
        WITH(voter_fields, 3),
        WITH(voter_bytes, ADDRESS_LONG + 1),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (changed(&wrong[i]) != LEAT_E_CORRUPT)
            fail_msg("%s of %llu is taken", wrong[i].name, (unsigned long long)wrong[i].value);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = {"one", "", "a/b"};
        struct shape it = as_written;
        it.second_name = names[i];
        assert_int_equal(read_back(&it), LEAT_E_CORRUPT);
    }
    struct shape it = as_written;
    it.state = LEAT_NODE_UP;
    it.crashed_up = 1;
    assert_int_equal(read_back(&it), LEAT_E_CORRUPT);
    it.owner = 0; /* also of a node that nothing behind it names */
    assert_int_equal(read_back(&it), LEAT_E_CORRUPT);
    it.crashed_up = 0;
    it.state = 0;
    assert_int_equal(read_back(&it), LEAT_E_CORRUPT);
}

/* Goal: the number of streamlets that a node owns is counted from the streams, not read from the node's row: the number
 * falls when a stream is deleted. */
static void streamlets_of_nodes_are_counted_anew(void **state)
{
    (void)state;
    struct shape it = as_written;
    it.more = 5;
    assert_int_equal(read_back(&it), LEAT_OK);
    leat_machine_check(machine);
    expect_node();
}

static void snapshot_at_its_bounds_is_read(void **state)
{
    (void)state;
    static const struct change right[] = {
        WITH(nodes, LEAT_NODES_MAX),
        WITH(nodes, 1),
        WITH(state, LEAT_NODE_UP),
        WITH(state, LEAT_NODE_GONE),
        WITH(name_bytes, NAME_LONG),
        WITH(name_bytes, 0),
        WITH(address_bytes, ADDRESS_LONG),
        WITH(rack_bytes, RACK_LONG),
        WITH(address_bytes, 0),
        WITH(owner, 0),
        WITH(sessions, LEAT_SESSIONS_MAX),
        WITH(sessions, 0),
        WITH(outcomes, LEAT_OUTCOMES_MAX),
        WITH(outcomes, 0),
        WITH(gone, LEAT_GONE_NAMES_MAX),
        WITH(gone, 0),
        WITH(voters, LEAT_VOTERS_MAX),
        WITH(voters, 0),
        WITH(voter_bytes, ADDRESS_LONG),
        WITH(second_stream, UINT32_MAX),
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        if (changed(&right[i]) != LEAT_OK)
            fail_msg("%s of %llu is refused", right[i].name, (unsigned long long)right[i].value);
    struct shape it = as_written;
    it.outcomes = LEAT_OUTCOMES_MAX;
    it.gone = LEAT_GONE_NAMES_MAX;
    assert_int_equal(read_back(&it), LEAT_OK);
    assert_int_equal(machine->outcome_next, 0); /* rings that are full go on at their beginning */
    assert_int_equal(machine->gone_next, 0);
    it = as_written;
    it.gone = LEAT_GONE_NAMES_MAX;
    it.voters = LEAT_VOTERS_MAX;
    it.voter_bytes = ADDRESS_LONG;
    assert_int_equal(read_back(&it), LEAT_OK);
    it = as_written;
    it.logs = LEAT_LOGS_MAX;
    it.log_rows = 2 * LEAT_LOGS_MAX;
    assert_int_equal(read_back(&it), LEAT_OK);
    assert_int_equal(machine->nodes[0].logs, 2 * LEAT_LOGS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(snapshot_is_read, machine_begin, machine_end),
        cmocka_unit_test_setup_teardown(snapshot_of_another_shape_is_refused, machine_begin,
                                        machine_end),
        cmocka_unit_test_setup_teardown(streamlets_of_nodes_are_counted_anew, machine_begin,
                                        machine_end),
        cmocka_unit_test_setup_teardown(snapshot_at_its_bounds_is_read, machine_begin, machine_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
