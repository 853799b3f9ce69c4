/* SPDX-License-Identifier: Apache-2.0 */
/* The hex of docs/protocol.md is what the codec makes, and its arrays are those of the tables. Argument: that
 * page's path. Blocks start with "```hex NAME"; on a line, what follows a ';' is a remark. (Kinds and limits:
 * protocol_page.py.) */
#include "wire_fixture.h"

#include "tests/rows_page.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/message_cluster.h"

#include <ctype.h>

enum { EXAMPLE_BYTES_MAX = 1024 };
static const char *page_path;

/* The bytes of one block. */
static size_t block_read(const char *name, uint8_t *out)
{
    FILE *page = fopen(page_path, "r");
    assert_non_null(page);
    char line[512], opening[80];
    (void)snprintf(opening, sizeof opening, "```hex %s\n", name);
    bool inside = false;
    size_t count = 0;
    while (fgets(line, sizeof line, page) != NULL) {
        if (!inside) {
            inside = strcmp(line, opening) == 0;
            continue;
        }
        if (strncmp(line, "```", 3) == 0) break;
        for (char *at = line; *at != '\0' && *at != ';';) {
            if (isspace((unsigned char)*at)) {
                at++;
                continue;
            }
            char digits[3] = {at[0], at[1], '\0'}, *end;
            assert_true(count < EXAMPLE_BYTES_MAX);
            out[count++] = (uint8_t)strtoul(digits, &end, 16);
            assert_ptr_equal(end, digits + 2);
            at += 2;
        }
    }
    (void)fclose(page);
    return count;
}

static void block_expect(const char *name, const uint8_t *bytes, size_t count)
{
    uint8_t block[EXAMPLE_BYTES_MAX];
    size_t got = block_read(name, block);
    if (got != count || memcmp(block, bytes, count) != 0) {
        print_error("the block %s should be:", name);
        for (size_t i = 0; i < count; i++)
            print_error("%s%02x", i % 8 == 0 ? (i % 16 == 0 ? "\n" : "  ") : " ", bytes[i]);
        print_error("\n");
    }
    assert_int_equal(got, count);
    assert_memory_equal(block, bytes, count);
    struct leat_frame frame;
    size_t want;
    assert_int_equal(leat_frame_decode(block, count, &frame, &want), LEAT_OK);
    assert_int_equal(frame.frame_bytes, count);
}

/* A frame around what the writer has put behind the header's place. */
static void frame_expect(const char *name, uint8_t *bytes, enum leat_kind kind, uint8_t flags,
                         uint32_t request, uint32_t control_bytes, const uint8_t *payload,
                         uint32_t payload_bytes)
{
    memcpy(bytes + LEAT_FRAME_HEADER_BYTES + control_bytes, payload, payload_bytes);
    leat_frame_encode(bytes, kind, 1, flags, request, control_bytes, payload_bytes);
    block_expect(name, bytes, LEAT_FRAME_HEADER_BYTES + control_bytes + payload_bytes);
}

static struct leat_msg_writer control_writer(uint8_t *bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes + LEAT_FRAME_HEADER_BYTES, 512);
    return writer;
}

static uint32_t example_batch(uint8_t *out)
{
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, 256);
    assert_int_equal(
        leat_batch_builder_add(&builder, 1700000000000, "k1", 2, "21.5", 4, NULL, 0, 0), LEAT_OK);
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 42, 0, 0);
}

static void protocol_hello_example_is_what_codec_makes(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer = control_writer(bytes);
    leat_msg_hello_write(&writer, &(struct leat_msg_hello){1, 1, {"probe", 5}, -1});
    frame_expect("hello", bytes, LEAT_KIND_HELLO, 0, 1, writer.used, bytes, 0);
    writer = control_writer(bytes);
    struct leat_msg_hello_ok ok = {
        .version = 1, .incarnation = 7, .node = {"n1", 2}, .lanes = 2, .lane = 0};
    for (uint8_t i = 0; i < 16; i++)
        ok.cluster_id[i] = i;
    leat_msg_hello_ok_write(&writer, &ok);
    frame_expect("hello-answer", bytes, LEAT_KIND_HELLO, LEAT_FRAME_ANSWER, 1, writer.used, bytes,
                 0);
}

static void protocol_append_example_is_what_codec_makes(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX], batch[256];
    uint32_t batch_bytes = example_batch(batch);
    struct leat_msg_writer writer = control_writer(bytes);
    leat_msg_append_write(&writer, &(struct leat_msg_append){{5, 0, 0}, 9, 1});
    frame_expect("append", bytes, LEAT_KIND_APPEND, 0, 2, writer.used, batch, batch_bytes);
    writer = control_writer(bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, LEAT_OK);
    leat_msg_write_u64(&writer, 1000);
    frame_expect("append-answer", bytes, LEAT_KIND_APPEND, LEAT_FRAME_ANSWER, 2, writer.used, batch,
                 0);
    writer = control_writer(bytes);
    leat_msg_error_encode(&writer, LEAT_E_NOT_OWNER, "ask n2");
    frame_expect("error-answer", bytes, LEAT_KIND_APPEND, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, 2,
                 writer.used, batch, 0);
}

static void protocol_fetch_example_is_what_codec_makes(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX], batch[256];
    uint32_t batch_bytes = example_batch(batch);
    leat_batch_stamp(batch, 1000, 9);
    struct leat_msg_writer writer = control_writer(bytes);
    leat_msg_fetch_write(&writer, &(struct leat_msg_fetch){1, 1048576, 500, 1});
    struct leat_msg_fetch_log log = {.log = {5, 0, 0}, .epoch = 9, .offset = 1000};
    leat_msg_fetch_log_write(&writer, &log);
    frame_expect("fetch", bytes, LEAT_KIND_FETCH, 0, 3, writer.used, batch, 0);
    writer = control_writer(bytes);
    leat_msg_write_array(&writer, 1);
    struct leat_msg_fetched fetched = {.acked_offset = 1001, .bytes = batch_bytes};
    leat_msg_fetched_write(&writer, &fetched);
    frame_expect("fetch-answer", bytes, LEAT_KIND_FETCH, LEAT_FRAME_ANSWER, 3, writer.used, batch,
                 batch_bytes);
}

static void protocol_locate_example_is_what_codec_makes(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer = control_writer(bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 1);
    struct leat_msg_locate locate = {{5, 0, 0}, LEAT_LOCATE_TIME, 1700000000000, {0}};
    leat_msg_locate_write(&writer, &locate);
    frame_expect("locate", bytes, LEAT_KIND_LOCATE, 0, 4, writer.used, bytes, 0);
    writer = control_writer(bytes);
    leat_msg_write_array(&writer, 1);
    struct leat_msg_located located = {
        .offset = 1000, .timestamp_ms = 1700000000000, .position = {1, 17, 4096}};
    leat_msg_located_write(&writer, &located);
    frame_expect("locate-answer", bytes, LEAT_KIND_LOCATE, LEAT_FRAME_ANSWER, 4, writer.used, bytes,
                 0);
}

/* ---- the arrays of the page ---- */

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_data.def"
#include "tests/rows_list.h"
};

static void protocol_arrays_are_those_of_the_tables(void **state)
{
    rows_page_expect(page_path, rows, sizeof rows / sizeof rows[0]);
}

/* Goal: a request that is in no table is found. */
static void protocol_messages_are_all_in_the_tables(void **state)
{
    rows_cells_expect(page_path, "## Messages", rows, sizeof rows / sizeof rows[0]);
}

/* Every code of the table in the page, and no other: "| 10 | NOT_OWNER | reroute | ...". */
static void protocol_error_table_is_complete(void **state)
{
    FILE *page = fopen(page_path, "r");
    assert_non_null(page);
    char line[512];
    uint32_t seen = 0, known = 0;
    while (fgets(line, sizeof line, page) != NULL) {
        unsigned code;
        char name[40], class_name[20];
        if (sscanf(line, "| %u | %39s | %19s |", &code, name, class_name) != 3) continue;
        if (!isupper((unsigned char)name[0])) continue;
        assert_string_equal(leat_err_name((leat_err)code), name);
        assert_string_equal(leat_err_class_name((leat_err)code), class_name);
        seen++;
    }
    (void)fclose(page);
    for (int code = 1; code < 100; code++)
        known += strcmp(leat_err_name((leat_err)code), "UNKNOWN_ERROR") != 0;
    assert_int_equal(seen, known);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    page_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protocol_hello_example_is_what_codec_makes),
        cmocka_unit_test(protocol_append_example_is_what_codec_makes),
        cmocka_unit_test(protocol_fetch_example_is_what_codec_makes),
        cmocka_unit_test(protocol_locate_example_is_what_codec_makes),
        cmocka_unit_test(protocol_arrays_are_those_of_the_tables),
        cmocka_unit_test(protocol_messages_are_all_in_the_tables),
        cmocka_unit_test(protocol_error_table_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
