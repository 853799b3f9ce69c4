/* SPDX-License-Identifier: Apache-2.0 */
/* The hex of docs/protocol.md is what the codec makes, and its arrays have as many fields. Argument: that
 * page's path. Blocks start with "```hex NAME"; on a line, what follows a ';' is a remark. (Kinds and limits:
 * protocol_page.py.) */
#include "wire_fixture.h"

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
    leat_msg_hello_encode(&writer, &(struct leat_msg_hello){1, 1, {"probe", 5}, -1});
    frame_expect("hello", bytes, LEAT_KIND_HELLO, 0, 1, writer.used, bytes, 0);
    writer = control_writer(bytes);
    struct leat_msg_hello_ok ok = {
        .version = 1, .incarnation = 7, .node = {"n1", 2}, .lanes = 2, .lane = 0};
    for (uint8_t i = 0; i < 16; i++)
        ok.cluster_id[i] = i;
    leat_msg_hello_ok_encode(&writer, &ok);
    frame_expect("hello-answer", bytes, LEAT_KIND_HELLO, LEAT_FRAME_ANSWER, 1, writer.used, bytes,
                 0);
}

static void protocol_append_example_is_what_codec_makes(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX], batch[256];
    uint32_t batch_bytes = example_batch(batch);
    struct leat_msg_writer writer = control_writer(bytes);
    leat_msg_append_encode(&writer, &(struct leat_msg_append){{5, 0, 0}, 9, 1});
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

/* ---- how many fields the page gives an array ---- */

/* The page's array that begins at its first '[' behind `from`, and there in the array that is element
 * `path[0]`, and so on; -1 ends the path. */
static uint32_t page_fields(const char *from, const int *path)
{
    FILE *page = fopen(page_path, "r");
    assert_non_null(page);
    static char text[64 * 1024];
    size_t count = fread(text, 1, sizeof text - 1, page);
    assert_true(feof(page));
    (void)fclose(page);
    text[count] = '\0';
    const char *at = strstr(text, from);
    if (at == NULL) fail_msg("the page has no \"%s\"", from);
    at = strchr(at + strlen(from), '[');
    assert_non_null(at);
    for (; *path >= 0; path++) {
        int depth = 0, element = 0;
        for (at++; depth > 0 || element < *path || *at != '['; at++) {
            if (*at == '[') depth++;
            if (*at == ']') depth--;
            if (*at == ',' && depth == 0) element++;
            if (depth < 0 || *at == '`') fail_msg("no array %d behind \"%s\"", *path, from);
        }
    }
    uint32_t fields = at[1] != ']';
    int depth = 0;
    for (at++; depth > 0 || *at != ']'; at++) {
        assert_true(*at != '\0' && *at != '`');
        if (*at == '[') depth++;
        if (*at == ']') depth--;
        if (*at == ',' && depth == 0) fields++;
    }
    return fields;
}

/* What was written last is an array of as many fields as the page gives it. */
static void fields_expect(struct leat_msg_writer *writer, const char *from, int a, int b)
{
    /* The header alone: elements of lists are not written here, and a reader would miss them. */
    const uint8_t *at = writer->bytes;
    bool small = (at[0] & 0xf0) == 0x90;
    assert_true(small || at[0] == 0xdc);
    uint32_t fields = small ? at[0] & 0x0fu : (uint32_t)at[1] << 8 | at[2];
    uint32_t told = page_fields(from, (int[]){a, b, -1});
    if (told != fields) print_error("\"%s\": the page has %u, the codec %u\n", from, told, fields);
    assert_int_equal(told, fields);
    writer->used = 0;
}

static void protocol_arrays_of_streams_have_the_fields_shown(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    const struct leat_msg_string none = {"", 0};
    leat_msg_error_encode(&writer, LEAT_E_INVALID, "");
    fields_expect(&writer, "its control body is", -1, -1);
    leat_msg_hello_encode(&writer, &(struct leat_msg_hello){.name = none});
    fields_expect(&writer, "| 1 HELLO |", -1, -1);
    leat_msg_hello_ok_encode(&writer, &(struct leat_msg_hello_ok){.node = none});
    fields_expect(&writer, "or one that there is not: any |", -1, -1);
    leat_msg_settings_write(&writer, &(struct leat_stream_settings){0});
    fields_expect(&writer, "- settings:", -1, -1);
    leat_msg_node_write(&writer, &(struct leat_msg_node){.name = none, .address = none});
    fields_expect(&writer, "- node:", -1, -1);
    leat_msg_stream_write(&writer, &(struct leat_msg_stream){.name = none});
    fields_expect(&writer, "- stream:", -1, -1);
    leat_msg_stream_write(
        &writer, &(struct leat_msg_stream){.code = LEAT_E_INVALID, .name = none, .text = none});
    fields_expect(&writer, "settings, [log...]]`, or", -1, -1);
    leat_msg_log_write(&writer, &(struct leat_msg_log){0});
    fields_expect(&writer, "- log:", -1, -1);
    leat_msg_log_info_write(&writer, &(struct leat_msg_log_info){.text = none});
    fields_expect(&writer, "- log info:", -1, -1);
    leat_msg_segment_write(&writer, &(struct leat_msg_segment){0});
    fields_expect(&writer, "from segment]` |", 0, 0);
    leat_msg_segment_copy_write(&writer, &(struct leat_msg_segment_copy){.node = none});
    fields_expect(&writer, "other copies wanted,", 0, -1);
    leat_msg_recover_write(&writer, &(struct leat_msg_recover){.stream = none});
    fields_expect(&writer, "| 16 LOG_RECOVER |", -1, -1);
    leat_msg_trim_write(&writer, &(struct leat_msg_trim){.stream = none});
    fields_expect(&writer, "| 24 STREAM_TRIM |", -1, -1);
    leat_msg_log_ref_write(&writer, &(struct leat_log_ref){0});
    fields_expect(&writer, "| 26 LOG_BELOW |", 0, -1);
}

static void protocol_arrays_of_data_have_the_fields_shown(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_append_encode(&writer, &(struct leat_msg_append){{0}, 0, 1});
    fields_expect(&writer, "| 8 APPEND |", -1, -1);
    leat_msg_fetch_write(&writer, &(struct leat_msg_fetch){0});
    fields_expect(&writer, "| 9 FETCH |", -1, -1);
    leat_msg_fetch_log_write(&writer, &(struct leat_msg_fetch_log){0});
    fields_expect(&writer, "| 9 FETCH |", 3, 0);
    leat_msg_fetched_write(&writer, &(struct leat_msg_fetched){.code = LEAT_E_DAMAGED});
    fields_expect(&writer, "epoch, from]...]]` |", 0, -1);
    struct leat_msg_locate locate = {.what = LEAT_LOCATE_TIME};
    leat_msg_locate_write(&writer, &locate);
    fields_expect(&writer, "| 10 LOCATE |", 0, 0);
    locate.what = LEAT_LOCATE_POSITION;
    leat_msg_locate_write(&writer, &locate);
    fields_expect(&writer, "value signed; of what 6", -1, -1);
    leat_msg_located_write(&writer, &(struct leat_msg_located){.text = {"x", 1}});
    fields_expect(&writer, "6, group, segment, position]` |", 0, -1);
}

static void protocol_arrays_of_sets_have_the_fields_shown(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    const struct leat_msg_string none = {"", 0};
    leat_msg_set_join_write(&writer, &(struct leat_msg_set_join){.set = none, .member = none});
    fields_expect(&writer, "| 11 SET_JOIN |", -1, -1);
    leat_msg_set_joined_write(&writer, &(struct leat_msg_set_joined){.member = none});
    fields_expect(&writer, "session ms, [stream...]]` |", -1, -1);
    leat_msg_set_share_write(&writer, &(struct leat_msg_set_share){0});
    fields_expect(&writer, "session ms, [stream...]]` |", 2, 0);
    leat_msg_set_heartbeat_write(&writer,
                                 &(struct leat_msg_set_heartbeat){.set = none, .member = none});
    fields_expect(&writer, "| 12 SET_HEARTBEAT |", -1, -1);
    leat_msg_set_leave_write(&writer, &(struct leat_msg_set_leave){none, none});
    fields_expect(&writer, "| 13 SET_LEAVE |", -1, -1);
    leat_msg_set_commit_write(&writer, &(struct leat_msg_set_commit){.set = none, .member = none});
    fields_expect(&writer, "| 14 SET_COMMIT |", -1, -1);
    leat_msg_set_offset_write(&writer, &(struct leat_msg_set_offset){0});
    fields_expect(&writer, "| 14 SET_COMMIT |", 3, 0);
    leat_msg_set_fetch_write(&writer, &(struct leat_msg_set_fetch){.set = none});
    fields_expect(&writer, "| 15 SET_FETCH |", -1, -1);
    leat_msg_set_fetched_write(&writer, &(struct leat_msg_set_fetched){0});
    fields_expect(&writer, "none = all |", -1, -1);
}

static void protocol_arrays_of_the_cluster_have_the_fields_shown(void **state)
{
    uint8_t bytes[EXAMPLE_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    const struct leat_msg_string none = {"", 0};
    leat_msg_status_write(&writer, &(struct leat_msg_status){.version = none});
    fields_expect(&writer, "| 17 STATUS | `[]` |", -1, -1);
    struct leat_msg_cluster cluster = {
        .node = none, .role = none, .why = none, .leader_address = none};
    leat_msg_cluster_write(&writer, &cluster);
    fields_expect(&writer, "| 18 CLUSTER_STATUS | `[]` |", -1, -1);
    leat_msg_voter_write(&writer, &(struct leat_msg_voter){.address = none});
    fields_expect(&writer, "| 18 CLUSTER_STATUS | `[]` |", 9, 0);
    leat_msg_cluster_node_write(
        &writer, &(struct leat_msg_cluster_node){
                     .name = none, .address = none, .node_address = none, .rack = none});
    fields_expect(&writer, "| 18 CLUSTER_STATUS | `[]` |", 10, 0);
    leat_msg_recovery_write(&writer, &(struct leat_msg_recovery){0});
    fields_expect(&writer, "- recovery,", -1, -1);
    leat_msg_recovery_row_write(&writer,
                                &(struct leat_msg_recovery_row){.stream = none, .why = none});
    fields_expect(&writer, "crash us, waiting,", 0, -1);
    leat_msg_node_change_encode(&writer, &(struct leat_msg_node_change){1, none});
    fields_expect(&writer, "| 19 NODE_CHANGE |", -1, -1);
    leat_msg_node_report_write(&writer, &(struct leat_msg_node_report){.why = none});
    fields_expect(&writer, "`[with peers]` |", -1, -1);
    leat_msg_report_peer_write(&writer,
                               &(struct leat_msg_report_peer){.node = none, .transport = none});
    fields_expect(&writer, "`[with peers]` |", 13, 0);
    leat_msg_streamlet_move_encode(&writer, &(struct leat_msg_streamlet_move){none, 0, none});
    fields_expect(&writer, "| 23 STREAMLET_MOVE |", -1, -1);
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
        cmocka_unit_test(protocol_arrays_of_streams_have_the_fields_shown),
        cmocka_unit_test(protocol_arrays_of_data_have_the_fields_shown),
        cmocka_unit_test(protocol_arrays_of_sets_have_the_fields_shown),
        cmocka_unit_test(protocol_arrays_of_the_cluster_have_the_fields_shown),
        cmocka_unit_test(protocol_error_table_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
