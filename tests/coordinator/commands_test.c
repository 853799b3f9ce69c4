/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as entries: every kind, field by field as metadata/bodies.def has it, as text; and what is refused before
 * there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"

enum { SESSION = 77 };

static struct leat_coordinator *coordinator;
static struct leat_random random_of_test;
static struct leat_env env;

static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return 8; /* an attempt's number is made odd */
}

/* ---- msgpack as text ---- */

static char text[65536];
static size_t text_bytes;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_bytes += (size_t)vsnprintf(text + text_bytes, sizeof text - text_bytes, format, args);
    va_end(args);
    assert_true(text_bytes < sizeof text);
}

static uint64_t big_endian(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static const uint8_t *tell(const uint8_t *at, const uint8_t *end);

static const uint8_t *tell_array(const uint8_t *at, const uint8_t *end, uint64_t count)
{
    put("[");
    for (uint64_t i = 0; i < count; i++) {
        if (i) put(" ");
        at = tell(at, end);
    }
    put("]");
    return at;
}
static const uint8_t *tell_bytes(const uint8_t *at, const uint8_t *end, uint64_t count)
{
    assert_true(count <= (uint64_t)(end - at));
    put("'%.*s'", (int)count, (const char *)at);
    return at + count;
}

static const uint8_t *tell(const uint8_t *at, const uint8_t *end)
{
    assert_true(at < end);
    const uint8_t head = *at++;
    if (head < 0x80) put("%u", head);
    if (head < 0x80) return at;
    if (head >= 0x90 && head < 0xa0) return tell_array(at, end, head & 15);
    if (head >= 0xa0 && head < 0xc0) return tell_bytes(at, end, head & 31);
    if (head == 0xc2 || head == 0xc3) {
        put(head == 0xc3 ? "yes" : "no");
        return at;
    }
    const unsigned width = head == 0xc4 || head == 0xcc || head == 0xd9                   ? 1
                           : head == 0xc5 || head == 0xcd || head == 0xda || head == 0xdc ? 2
                           : head == 0xcf                                                 ? 8
                                                                                          : 4;
    const uint64_t value = big_endian(at, width);
    at += width;
    if (head == 0xdc || head == 0xdd) return tell_array(at, end, value);
    if ((head >= 0xc4 && head <= 0xc6) || (head >= 0xd9 && head <= 0xdb))
        return tell_bytes(at, end, value);
    if (head < 0xcc || head > 0xcf) fail_msg("a byte %02x", head);
    put("%llu", (unsigned long long)value);
    return at;
}

/* The command in a record at `at`: its wrapping is looked at, and where the next one begins is returned. */
static const uint8_t *record_tell(const uint8_t *at, const uint8_t *end, uint64_t sequence)
{
    const uint32_t bytes = leat_get_le32(at);
    struct leat_msg_reader reader;
    at += CO_RECORD_HEADER_BYTES;
    assert_true(bytes <= end - at);
    assert_true(leat_machine_command_known(at, bytes));
    leat_msg_reader_init(&reader, at, bytes);
    assert_int_equal(leat_msg_read_array(&reader), 5);
    assert_int_equal(leat_msg_read_u64(&reader), LEAT_COMMAND_VERSION);
    assert_int_equal(leat_msg_read_u64(&reader), LEAT_COMMAND_REQUEST);
    assert_int_equal(leat_msg_read_u64(&reader), SESSION);
    assert_int_equal(leat_msg_read_u64(&reader), sequence);
    struct leat_msg_string command = leat_msg_read_string(&reader);
    assert_true(leat_msg_read_done(&reader));
    text_bytes = 0;
    const uint8_t *told = (const uint8_t *)command.text, *told_end = told + command.bytes;
    assert_ptr_equal(tell(told, told_end), told_end);
    return at + bytes;
}

static int begin(void **state)
{
    (void)state;
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    random_of_test = (struct leat_random){.next = random_next};
    env = (struct leat_env){.random = &random_of_test};
    coordinator->env = &env;
    coordinator->session = SESSION;
    coordinator->options.cores = 4;
    leat_machine_init(&coordinator->machine, 1);
    return 0;
}
static int finish(void **state)
{
    (void)state;
    leat_machine_fini(&coordinator->machine);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR) + leat_mem_bytes(LEAT_MEM_ROWS), 0);
    return 0;
}

static void expect_entry(struct leat_coordinate *request, const char *expected)
{
    const uint64_t sequence = coordinator->next_sequence + 1;
    assert_int_equal(co_request_encode(coordinator, request), LEAT_OK);
    assert_int_equal(request->sequence, sequence);
    assert_ptr_equal(record_tell(request->bytes, request->bytes + request->byte_count, sequence),
                     request->bytes + request->byte_count);
    assert_string_equal(text, expected);
    leat_mem_free(request->bytes);
    request->bytes = NULL;
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        assert_int_equal(co_request_encode(coordinator, request), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_null(request->bytes);
    }
}

/* ---- entries ---- */

static const struct leat_log_ref logs[] = {{11, 12, 13}, {UINT32_MAX, 0, 255}};
static const struct leat_tail_record tails[] = {
    {.segment = 21, .prefix_id = {22, 23}, .next_offset = 24},
    {.segment = UINT64_MAX, .prefix_id = {UINT32_MAX, 1}, .next_offset = 2}};

static void requests_of_owners_are_entries(void **state)
{
    (void)state;
    struct leat_coordinate request = {.kind = LEAT_COORDINATE_OPENED,
                                      .logs = logs,
                                      .log_count = 2,
                                      .epoch = {31},
                                      .incarnation = 32,
                                      .version = 33};
    expect_entry(&request, "[1 5 31 [[11 12 13] [4294967295 0 255]] 32 33 yes]");
    request.version = 0; /* not said: the first */
    expect_entry(&request, "[1 5 31 [[11 12 13] [4294967295 0 255]] 32 1 yes]");
    request.kind = LEAT_COORDINATE_VERSION;
    request.version = 34;
    expect_entry(&request, "[1 11 32 31 34 [[11 12 13] [4294967295 0 255]]]");
    request.log_count = 0;
    expect_entry(&request, "[1 11 32 31 34 []]");
    request = (struct leat_coordinate){.kind = LEAT_COORDINATE_MOVE,
                                       .logs = logs,
                                       .log_count = 2,
                                       .tails = tails,
                                       .epoch = {31},
                                       .incarnation = 32,
                                       .target = "to"};
    expect_entry(&request,
                 "[1 17 3 32 0 0 [[11 12 32 31 0 [[13 31 0 0 1 21 22 23 24]]] [4294967295 0 32 31 "
                 "0 [[255 31 0 0 1 18446744073709551615 4294967295 1 2]]]]]");
    /* The incarnation that the target has, and a streamlet with all its logs. */
    const struct leat_log_ref of_two[] = {{11, 12, 0}, {11, 12, 1}};
    memcpy(coordinator->machine.nodes[0].info.name, "to", 3);
    coordinator->machine.nodes[0].info.incarnation = 9;
    coordinator->machine.node_count = 1;
    request.logs = of_two;
    expect_entry(&request, "[1 17 3 32 0 0 [[11 12 32 31 9 [[0 31 0 0 1 21 22 23 24] [1 31 0 0 1 "
                           "18446744073709551615 4294967295 1 2]]]]]");
    /* The same number of another stream, and the next of the same stream, are streamlets of their own. */
    for (unsigned same = 0; same < 2; same++) {
        const struct leat_log_ref apart[] = {{11, 12, 0}, {same ? 11 : 13, same ? 13 : 12, 0}};
        request.logs = apart;
        expect_entry(&request, same ? "[1 17 3 32 0 0 [[11 12 32 31 9 [[0 31 0 0 1 21 22 23 24]]] "
                                      "[11 13 32 31 9 [[0 31 0 0 1 18446744073709551615 "
                                      "4294967295 1 2]]]]]"
                                    : "[1 17 3 32 0 0 [[11 12 32 31 9 [[0 31 0 0 1 21 22 23 24]]] "
                                      "[13 12 32 31 9 [[0 31 0 0 1 18446744073709551615 "
                                      "4294967295 1 2]]]]]");
    }
    request = (struct leat_coordinate){.kind = LEAT_COORDINATE_ACCEPT_LOSS,
                                       .logs = logs,
                                       .log_count = 1,
                                       .segment = 41,
                                       .next_offset = 42,
                                       .epoch = {31},
                                       .incarnation = 32,
                                       .stands_in = true};
    expect_entry(&request, "[1 17 4 32 0 0 [[11 12 32 0 32 [[13 31 0 0 3 41 0 0 42 1]]]]]");
    request.tails = tails;
    request.stands_in = false;
    expect_entry(&request, "[1 17 4 32 0 0 [[11 12 32 0 32 [[13 31 0 0 3 21 22 23 42 0]]]]]");
}

static void requests_about_nodes_are_entries(void **state)
{
    (void)state;
    struct leat_coordinate request = {.kind = LEAT_COORDINATE_NODE_UP,
                                      .node_name = "n",
                                      .address = "a",
                                      .cores = 51,
                                      .node_address = "na",
                                      .rack = "r",
                                      .node_id = "0123456789abcde",
                                      .memory_bytes = 52,
                                      .kafka_address = "ka",
                                      .boot = 53,
                                      .boot_before = 54,
                                      .host = "h",
                                      .logs_most = 55};
    request.node_id[15] = 'f';
    expect_entry(&request, "[1 6 'n' 'a' 51 'na' 'r' '0123456789abcdef' 52 'ka' 53 54 'h' 55]");
    request.node_address = request.rack = request.host = request.kafka_address = NULL;
    expect_entry(&request, "[1 6 'n' 'a' 51 '' '' '0123456789abcdef' 52 '' 53 54 '' 55]");
    request =
        (struct leat_coordinate){.kind = LEAT_COORDINATE_CRASH, .target = "n", .incarnation = 61};
    expect_entry(&request, "[1 15 'n' 61]");
    request = (struct leat_coordinate){
        .kind = LEAT_COORDINATE_NODE_DRAIN, .target = "n", .draining = true};
    expect_entry(&request, "[1 13 'n' yes]");
    request.takes_back = true;
    expect_entry(&request, "[1 13 'n' no]");
    request.draining = request.takes_back = false;
    expect_entry(&request, "[1 13 'n' no]");
}

static leat_err comes_up_as(const char *name)
{
    struct leat_coordinate request = {
        .kind = LEAT_COORDINATE_NODE_UP, .node_name = name, .address = "a"};
    leat_err rc = co_request_encode(coordinator, &request);
    if (rc != LEAT_OK)
        assert_string_equal(request.error.text, "this data directory has the streams of node "
                                                "'old': start it with --node 'old'");
    leat_mem_free(request.bytes);
    return rc;
}

/* Goal: a server alone comes up under no other name than the name under which it owns its streams, also as the first
 * node of a cluster; a node that is new to a cluster comes up under any name. */
static void server_alone_keeps_its_name(void **state)
{
    (void)state;
    struct leat_machine_node *nodes = coordinator->machine.nodes;
    struct raft_configuration *now = &coordinator->drive.raft.configuration;
    coordinator->votes = true;
    now->n = 1;
    assert_int_equal(comes_up_as("new"), LEAT_OK); /* the directory is new */
    snprintf(nodes[0].info.name, sizeof nodes[0].info.name, "old");
    coordinator->machine.node_count = 1;
    assert_int_equal(comes_up_as("new"), LEAT_E_CONFIG);
    snprintf(nodes[0].info.name, sizeof nodes[0].info.name, "other");
    snprintf(nodes[0].info.node_address, sizeof nodes[0].info.node_address, "n");
    assert_int_equal(comes_up_as("new"), LEAT_OK); /* a cluster of one voter */
    snprintf(nodes[1].info.name, sizeof nodes[1].info.name, "old");
    coordinator->machine.node_count = 2;
    assert_int_equal(comes_up_as("new"), LEAT_E_CONFIG);
    assert_int_equal(comes_up_as("old"), LEAT_OK);
    now->n = 2;
    assert_int_equal(comes_up_as("new"), LEAT_OK);
    now->n = 1;
    coordinator->votes = false;
    assert_int_equal(comes_up_as("new"), LEAT_OK);
}

/* The last node that is not drained: refused where it is asked for, but what takes a drain back is not. */
static void drain_of_the_last_node_is_no_entry(void **state)
{
    (void)state;
    snprintf(coordinator->machine.nodes[0].info.name, 8, "n");
    coordinator->machine.nodes[0].info.state = LEAT_NODE_UP;
    coordinator->machine.node_count = 1;
    struct leat_coordinate request = {
        .kind = LEAT_COORDINATE_NODE_DRAIN, .target = "n", .draining = true};
    assert_int_equal(co_request_encode(coordinator, &request), LEAT_E_INVALID);
    assert_non_null(strstr(request.error.text, "node 'n' is the last"));
    assert_int_equal(coordinator->next_sequence, 0);
    request.takes_back = true;
    expect_entry(&request, "[1 13 'n' no]");
    request.draining = request.takes_back = false; /* it comes back into use */
    expect_entry(&request, "[1 13 'n' no]");
    request = (struct leat_coordinate){
        .kind = LEAT_COORDINATE_CRASH, .target = "n", .incarnation = 61, .draining = true};
    expect_entry(&request, "[1 15 'n' 61]");
}

static void other_requests_are_entries(void **state)
{
    (void)state;
    struct leat_coordinate request = {.kind = LEAT_COORDINATE_STREAM_DELETE, .name = "s"};
    char expected[64];
    expect_entry(&request, "[1 3 's']");
    request.kind = LEAT_COORDINATE_PRODUCER_IDS;
    snprintf(expected, sizeof expected, "[1 4 %d]", LEAT_PRODUCER_ID_BLOCK);
    expect_entry(&request, expected);
    static const enum leat_coordinate_kind barriers[] = {
        LEAT_COORDINATE_BARRIER, LEAT_COORDINATE_ADD_VOTER, LEAT_COORDINATE_NODE_REPLACE,
        LEAT_COORDINATE_TAILS};
    for (unsigned i = 0; i < 4; i++) {
        request.kind = barriers[i];
        expect_entry(&request, "[1 9]");
    }
    request = (struct leat_coordinate){.kind = LEAT_COORDINATE_STREAM_CHANGE,
                                       .name = "s",
                                       .change = 5,
                                       .settings = {.streamlets = 7, .retention_ms = 8}};
    expect_entry(&request, "[1 24 's' 5 [7 0 0 0 0 0 8 0 0 no 0 0 0]]");
    uint8_t bytes[64], id[17] = "0123456789abcdef";
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes, sizeof bytes);
    co_form_command(&w, id);
    text_bytes = 0;
    (void)tell(bytes, bytes + w.used);
    assert_string_equal(text, "[1 1 '0123456789abcdef']");
}

/* Defaults are this node's, and go into the entry: cores; memory where three machines have a copy each; of the
 * cluster's own streams, as many copies as there are nodes, up to three, on disk. */
static void stream_is_made_with_defaults_of_this_node(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t copies;
        enum leat_durability durability;
        uint32_t nodes, hosts, gone;
        uint32_t expect_copies;
        enum leat_durability expected;
    } cases[] = {
        {"s", 0, 0, 3, 3, 0, 1, LEAT_DURABILITY_DISK},
        {"s", 3, 0, 3, 3, 0, 3, LEAT_DURABILITY_MEMORY},
        {"s", 2, 0, 3, 3, 0, 2, LEAT_DURABILITY_DISK},
        {"s", 3, 0, 3, 2, 0, 3, LEAT_DURABILITY_DISK},
        {"s", 3, LEAT_DURABILITY_DISK, 3, 3, 0, 3, LEAT_DURABILITY_DISK},
        {"leat.x", 0, 0, 1, 1, 0, 1, LEAT_DURABILITY_DISK},
        {"leat.x", 0, 0, 2, 2, 0, 2, LEAT_DURABILITY_DISK},
        {"leat.x", 0, 0, 3, 3, 0, 3, LEAT_DURABILITY_DISK},
        {"leat.x", 0, 0, 4, 4, 0, 3, LEAT_DURABILITY_DISK},
        {"leat.x", 0, 0, 4, 4, 2, 2, LEAT_DURABILITY_DISK},
        {"leat.x", 1, 0, 3, 3, 0, 1, LEAT_DURABILITY_DISK},
        {"leat.x", 0, LEAT_DURABILITY_MEMORY, 3, 3, 0, 3, LEAT_DURABILITY_MEMORY},
        {"leatx", 0, 0, 3, 3, 0, 1, LEAT_DURABILITY_DISK},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        coordinator->machine.node_count = cases[c].nodes + 1; /* and an embedded one of before */
        for (uint32_t i = 0; i < cases[c].nodes; i++) {
            struct leat_node_info *info = &coordinator->machine.nodes[i].info;
            snprintf(info->node_address, sizeof info->node_address, "h%u:%u", i % cases[c].hosts,
                     i);
            info->state = i < cases[c].gone ? LEAT_NODE_GONE : LEAT_NODE_UP;
        }
        coordinator->machine.nodes[cases[c].nodes] =
            (struct leat_machine_node){.info = {.state = LEAT_NODE_DOWN}};
        struct leat_coordinate request = {
            .kind = LEAT_COORDINATE_STREAM_CREATE,
            .settings = {.copies = cases[c].copies, .durability = cases[c].durability}};
        snprintf(request.name, sizeof request.name, "%s", cases[c].name);
        char expected[160];
        snprintf(expected, sizeof expected, "[1 2 '%s' [1 4 %u %u %u %u 0 0 %u no 0 0 0]]",
                 cases[c].name, cases[c].expect_copies, cases[c].expect_copies / 2 + 1,
                 (unsigned)cases[c].expected, LEAT_SEGMENT_BYTES_MAX, LEAT_BATCH_BYTES_MAX);
        expect_entry(&request, expected);
    }
    struct leat_coordinate request = {
        .kind = LEAT_COORDINATE_STREAM_CREATE, .name = "s", .settings = {.logs = 9999}};
    assert_int_equal(co_request_encode(coordinator, &request),
                     LEAT_OK); /* it is refused when it is applied */
    leat_mem_free(request.bytes);
}

static void entry_of_recovery_is_what_that_made(void **state)
{
    (void)state;
    static const uint8_t made[] = {0x93, 1, 9, 7}; /* a barrier would be without the 7 */
    struct leat_coordinate request = {
        .kind = LEAT_COORDINATE_RECOVER, .command = made, .command_bytes = sizeof made};
    assert_int_equal(co_request_encode(coordinator, &request), LEAT_OK);
    assert_int_equal(request.sequence, 1);
    (void)record_tell(request.bytes, request.bytes + request.byte_count, 1);
    assert_string_equal(text, "[1 9 7]");
    leat_mem_free(request.bytes);
    leat_mem_fail_at(1);
    assert_int_equal(co_request_encode(coordinator, &request), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
}

/* As many logs as one request may have, all of the longest numbers, and so is what is around them. */
static void entry_of_many_logs_holds_them(void **state)
{
    (void)state;
    static struct leat_log_ref many[LEAT_OPENED_LOGS_MAX];
    static struct leat_tail_record ends[LEAT_OPENED_LOGS_MAX];
    memset(many, 0xff, sizeof many);
    memset(ends, 0xff, sizeof ends);
    coordinator->session = UINT64_MAX;
    coordinator->next_sequence = UINT64_MAX - 10;
    const enum leat_coordinate_kind kinds[] = {LEAT_COORDINATE_OPENED, LEAT_COORDINATE_VERSION,
                                               LEAT_COORDINATE_MOVE};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_coordinate request = {.kind = kinds[i],
                                          .logs = many,
                                          .tails = ends,
                                          .log_count = LEAT_OPENED_LOGS_MAX,
                                          .incarnation = UINT64_MAX,
                                          .epoch = {UINT32_MAX},
                                          .version = UINT32_MAX,
                                          .target = "to"};
        assert_null(co_request_offence(&request));
        assert_int_equal(co_request_encode(coordinator, &request), LEAT_OK);
        leat_mem_free(request.bytes);
    }
}

/* ---- what no entry could hold ---- */

static void request_that_no_entry_can_hold_is_refused(void **state)
{
    (void)state;
    char name[LEAT_NODE_NAME_BYTES_MAX + 2], address[LEAT_ADDRESS_BYTES_MAX + 2],
        rack[LEAT_RACK_BYTES_MAX + 2];
    for (unsigned more = 0; more < 2; more++) {
        memset(name, 'n', sizeof name);
        memset(address, 'a', sizeof address);
        memset(rack, 'r', sizeof rack);
        name[LEAT_NODE_NAME_BYTES_MAX + more] = address[LEAT_ADDRESS_BYTES_MAX + more] =
            rack[LEAT_RACK_BYTES_MAX + more] = '\0';
        const enum leat_coordinate_kind named[] = {
            LEAT_COORDINATE_NODE_DRAIN, LEAT_COORDINATE_CRASH, LEAT_COORDINATE_ADD_VOTER,
            LEAT_COORDINATE_NODE_REPLACE, LEAT_COORDINATE_MOVE};
        for (unsigned i = 0; i < 5; i++) {
            struct leat_coordinate request = {.kind = named[i], .target = name, .log_count = 1};
            assert_int_equal(co_request_offence(&request) != NULL, more);
            request.target = NULL;
            assert_non_null(co_request_offence(&request));
        }
        const enum leat_coordinate_kind many[] = {LEAT_COORDINATE_OPENED, LEAT_COORDINATE_VERSION,
                                                  LEAT_COORDINATE_MOVE};
        for (unsigned i = 0; i < 3; i++) {
            struct leat_coordinate request = {
                .kind = many[i], .target = "n", .log_count = LEAT_OPENED_LOGS_MAX + more};
            assert_int_equal(co_request_offence(&request) != NULL, more);
            request.log_count = 0;
            assert_int_equal(co_request_offence(&request) != NULL, i == 2);
        }
        for (unsigned i = 0; i < 8; i++) {
            struct leat_coordinate request = {.kind = LEAT_COORDINATE_NODE_UP,
                                              .node_name = i == 0 ? name : "n",
                                              .address = i == 1 ? address : "a",
                                              .node_address = i == 2 ? address : NULL,
                                              .kafka_address = i == 3 ? address : NULL,
                                              .rack = i == 4 ? rack : NULL,
                                              .host = i == 5 ? rack : NULL};
            if (i == 6) request.node_name = NULL;
            if (i == 7) request.address = NULL;
            assert_int_equal(co_request_offence(&request) != NULL, more || i >= 6);
        }
    }
    for (size_t count = 0; count < 3; count++) {
        struct leat_coordinate request = {.kind = LEAT_COORDINATE_ACCEPT_LOSS, .log_count = count};
        assert_int_equal(co_request_offence(&request) != NULL, count != 1);
    }
    struct leat_coordinate request = {.kind = LEAT_COORDINATE_BARRIER, .log_count = 1 << 30};
    assert_null(co_request_offence(&request));
}

/* ---- adoption ---- */

/* A streamlet of two logs, the second opened: one entry with the one row that changes. */
static void adoption_is_entries_of_what_changes(void **state)
{
    (void)state;
    struct leat_machine *machine = &coordinator->machine;
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 2, .copies = 1};
    struct leat_machine_log *rows;
    struct leat_stream_desc *desc = leat_machine_desc_create(1, "s", 1, &settings);
    assert_non_null(desc);
    assert_int_equal(leat_machine_stream_add(machine, desc, &rows), LEAT_OK);
    machine->next_stream_id = 2;
    machine->next_epoch = 9;
    machine->node_count = 1;
    machine->nodes[0].info.incarnation = 5;
    machine->nodes[0].changes = 4;
    machine->changes = 6;
    machine->unowned_changes = 1;
    rows[0] = (struct leat_machine_log){.record.tail.segment = UINT64_MAX, .epoch = {3}};
    rows[1] = (struct leat_machine_log){
        .record = {.opened = true, .stamp_epoch = {3}, .stamp_version = 1}, .epoch = {3}};
    const struct leat_log_marks marks = {.log = {1, 0, 1},
                                         .has_mark = true,
                                         .mark_segment = 71,
                                         .mark_epoch = {3},
                                         .mark_version = 1,
                                         .mark_prefix_id = {72, 73},
                                         .mark_next_offset = 74,
                                         .highest_segment = 71};
    for (unsigned n = 0; n < 4; n++) {
        struct leat_coordinate request = {
            .kind = LEAT_COORDINATE_ADOPT, .incarnation = 5, .marks = &marks, .mark_count = 1};
        leat_mem_fail_at(n);
        leat_err rc = co_adopt_encode(coordinator, &request);
        leat_mem_fail_at(0);
        assert_int_equal(rc, n ? LEAT_E_NO_MEMORY : LEAT_OK);
        if (n == 0) {
            const uint8_t *end = request.bytes + request.byte_count;
            assert_ptr_equal(record_tell(request.bytes, end, request.sequence), end);
            assert_int_equal(request.attempt, 9);
            assert_string_equal(
                text, "[1 17 1 5 9 0 [[1 0 0 0 5 [[1 3 3 1 1 71 72 73 74]]] [0 0 5 0 5 []]]]");
            assert_int_equal(request.decision_count, 2);
        }
        leat_mem_free(request.bytes);
        leat_mem_free(request.decisions);
    }
    struct leat_coordinate request = {.kind = LEAT_COORDINATE_ADOPT, .incarnation = 6};
    assert_int_equal(co_adopt_encode(coordinator, &request), LEAT_E_STALE_EPOCH);
    assert_null(request.bytes);
}

#define COMMANDS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COMMANDS_TEST(requests_of_owners_are_entries),
        COMMANDS_TEST(requests_about_nodes_are_entries),
        COMMANDS_TEST(server_alone_keeps_its_name),
        COMMANDS_TEST(drain_of_the_last_node_is_no_entry),
        COMMANDS_TEST(other_requests_are_entries),
        COMMANDS_TEST(stream_is_made_with_defaults_of_this_node),
        COMMANDS_TEST(entry_of_recovery_is_what_that_made),
        COMMANDS_TEST(entry_of_many_logs_holds_them),
        COMMANDS_TEST(request_that_no_entry_can_hold_is_refused),
        COMMANDS_TEST(adoption_is_entries_of_what_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
