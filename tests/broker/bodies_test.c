/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of every request, with a byte behind them, to a real leatd. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/broker/rig.h"
#include "tests/rows.h"
#include "wire/message_cluster.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_data.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "tests/rows_list.h"
};

/* A body without empty lists and texts: these would be refused as well. */
static uint32_t body_make(const struct leat_msg_row *row, uint8_t *bytes, size_t capacity)
{
    for (uint64_t seed = 1; seed < 1000; seed++) {
        uint64_t random = seed;
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, bytes, capacity);
        rows_make(&writer, row, &random);
        assert_false(writer.overflow);
        if (!memchr(bytes, 0x90, writer.used) && !memchr(bytes, 0xa0, writer.used))
            return writer.used;
    }
    fail_msg("%s: no such body", row->name);
    return 0;
}

/* The names of streams that a member gives are looked up before the body ends. */
static uint32_t join_make(uint8_t *bytes, size_t capacity)
{
    struct leat_msg_writer writer;
    struct leat_msg_group_join join = {.group = {"readers", 7}, .stream_count = 1};
    leat_msg_writer_init(&writer, bytes, capacity);
    leat_msg_group_join_write(&writer, &join);
    leat_msg_write_string(&writer, "rooms", 5);
    return writer.used;
}

/* Goal: bytes behind a body are refused, whatever the request, and the connection goes on. */
static void bodies_with_bytes_behind_them_are_refused(void **state)
{
    static const char *const small[] = {"--memory", "256M", NULL};
    struct rig_server server = {0};
    struct rig_conn conn;
    struct rig_stream stream;
    uint8_t bytes[1024];
    unsigned seen = 0;
    (void)state;
    rig_dir(&server);
    rig_start(&server, small);
    rig_open(&server, &conn, 0);
    assert_int_equal(rig_metadata(&conn, "rooms", true, &stream), LEAT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned kind;
        char name[40], answer[8];
        if (sscanf(rows[i]()->place, "%u %39s %7s", &kind, name, answer) != 2) continue;
        if (kind == LEAT_KIND_HELLO) continue;
        uint32_t count = kind == LEAT_KIND_GROUP_JOIN
                             ? join_make(bytes, sizeof bytes - 1)
                             : body_make(rows[i](), bytes, sizeof bytes - 1);
        bytes[count] = 1;
        print_message("%s\n", name);
        uint32_t number = rig_send(&conn, (enum leat_kind)kind, bytes, count + 1, NULL, 0);
        rig_expect_error(&conn, number, LEAT_E_INVALID, "");
        seen++;
    }
    assert_int_equal(seen, 22);
    const uint8_t empty = 0x90;
    struct leat_frame frame =
        rig_answer(&conn, rig_send(&conn, LEAT_KIND_PING, &empty, 1, NULL, 0));
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
    rig_close(&conn);
    (void)rig_end(&server, SIGTERM);
    rig_remove_dir(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_with_bytes_behind_them_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
