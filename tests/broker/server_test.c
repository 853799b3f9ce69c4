/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd, spoken to in raw frames: good requests, bad ones, restarts, kills. Each test has
 * its own server and directory. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/broker/rig.h"

static const char *const small[] = {"--memory",    "256M", "--cores", "2",
                                    "--log-level", "warn", NULL};
static uint8_t batch[4 * 1024 * 1024];

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int setup(void **state)
{
    struct rig_server *server = calloc(1, sizeof *server);
    rig_dir(server);
    rig_start(server, small);
    *state = server;
    return 0;
}

static int teardown(void **state)
{
    struct rig_server *server = *state;
    if (server->pid != 0) {
        /* Asked, not killed: a killed server's pool stays in /dev/shm for its next life. */
        (void)rig_end(server, SIGTERM);
    }
    rig_remove_dir(server);
    free(server);
    return 0;
}

/* ---- the ordinary way ---- */

static void append_then_fetch_returns_the_same_records(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    char last[64];
    rig_open(server, &conn, -1);
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct rig_stream stream = rig_create(&conn, level == LEAT_DURABILITY_DISK ? "d" : "m",
                                              (enum leat_durability)level, 2);
        for (uint32_t log = 0; log < 2; log++) {
            uint64_t first;
            for (unsigned i = 0; i < 50; i++) {
                char value[32];
                snprintf(value, sizeof value, "value %u", i);
                uint32_t bytes = rig_batch(batch, sizeof batch, 7, value, -1, -1, -1);
                assert_int_equal(rig_append(&conn, &stream, log, batch, bytes, &first, NULL),
                                 LEAT_OK);
                assert_int_equal(first, i * 7);
            }
            assert_int_equal(rig_read_all(&conn, &stream, log, last, sizeof last), 350);
            assert_string_equal(last, "value 49");
        }
    }
    rig_close(&conn);
    assert_int_equal(rig_end(server, SIGTERM), 0);
}

/* Of two logs, on a core each. */
static uint32_t send_fetch_of_both(struct rig_conn *conn, const struct rig_stream *stream,
                                   uint32_t min_bytes, uint32_t max_bytes)
{
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct leat_msg_fetch fetch = {min_bytes, max_bytes, 15000, 2};
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_fetch_write(&writer, &fetch);
    for (uint32_t log = 0; log < 2; log++) {
        struct leat_msg_fetch_log at = {.log = {stream->id, 0, log}, .epoch = stream->epoch};
        leat_msg_fetch_log_write(&writer, &at);
    }
    return rig_send(conn, LEAT_KIND_FETCH, control, writer.used, NULL, 0);
}

/* "At least one batch" is said of the answer, not of each log: a client may have room for no more than it
 * asked for, and for the one batch. */
static void fetch_exceeds_its_limit_by_no_batch_of_a_later_log(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_MEMORY, 2);
    assert_int_not_equal(stream.lanes[0], stream.lanes[1]);
    uint32_t bytes = rig_batch(batch, sizeof batch, 50, "some value", -1, -1, -1);
    for (uint32_t log = 0; log < 2; log++)
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(rig_append(&conn, &stream, log, batch, bytes, NULL, NULL), LEAT_OK);
    const struct {
        uint32_t max_bytes, batches;
    } wanted[] = {{1, 1},         {bytes, 1},         {2 * bytes - 1, 1},
                  {4 * bytes, 4}, {5 * bytes - 1, 4}, {6 * bytes, 6}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        uint32_t max_bytes = wanted[i].max_bytes;
        /* It does not wait for more bytes than would fit, either. */
        struct leat_frame frame =
            rig_answer(&conn, send_fetch_of_both(&conn, &stream, max_bytes, max_bytes));
        assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
        assert_int_equal(frame.payload_bytes, wanted[i].batches * bytes);
    }
    rig_close(&conn);
}

/* Nor of each segment: a read that goes on in the next one has the limit of its answer. */
static void fetch_exceeds_its_limit_by_no_batch_of_a_further_segment(void **state)
{
    enum { BATCHES = 40, TAKEN = 3 }; /* an answer's; some lie on both sides of a segment's end */
    struct rig_server *server = *state;
    struct rig_conn conn;
    struct leat_stream_settings little = {.durability = LEAT_DURABILITY_MEMORY,
                                          .logs = 1,
                                          .segment_bytes_max = LEAT_SEGMENT_BYTES_MIN};
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create_with(&conn, "s", &little);
    uint32_t bytes =
        rig_batch(batch, sizeof batch, 50, "a value of thirty bytes or so.", -1, -1, -1);
    assert_true(BATCHES * bytes > 4 * LEAT_SEGMENT_BYTES_MIN);
    for (unsigned i = 0; i < BATCHES; i++)
        assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    for (unsigned from = 0; from + TAKEN <= BATCHES; from++) {
        const uint32_t limits[] = {1, 2 * bytes - 1, (TAKEN + 1) * bytes - 1};
        const uint32_t taken[] = {1, 1, TAKEN};
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            /* Of the last ones it does not wait for more than there is. */
            uint32_t left = (BATCHES - from) * bytes, least = limits[i] < left ? limits[i] : left;
            struct leat_frame frame = rig_answer(
                &conn, rig_send_fetch(&conn, &stream, 0, from * 50, least, limits[i], 15000));
            assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
            assert_int_equal(frame.payload_bytes, taken[i] * bytes);
        }
    }
    rig_close(&conn);
}

/* Half of the connections name the lane that the log does not live on. */
static void append_on_the_wrong_lane_works(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conns[2];
    for (int lane = 0; lane < 2; lane++) {
        rig_open(server, &conns[lane], lane);
        assert_int_equal(conns[lane].hello.lane, lane);
        assert_int_equal(conns[lane].hello.lanes, 2);
    }
    struct rig_stream stream = rig_create(&conns[0], "s", LEAT_DURABILITY_MEMORY, 2);
    assert_int_not_equal(stream.lanes[0], stream.lanes[1]);
    for (unsigned i = 0; i < 40; i++) {
        uint64_t first;
        uint32_t bytes = rig_batch(batch, sizeof batch, 3, "x", -1, -1, -1);
        assert_int_equal(rig_append(&conns[i % 2], &stream, 0, batch, bytes, &first, NULL),
                         LEAT_OK);
        assert_int_equal(first, i * 3);
    }
    for (int lane = 0; lane < 2; lane++)
        assert_int_equal(rig_read_all(&conns[lane], &stream, 0, NULL, 0), 120);
    /* Many in flight over a wrong lane stay in order. */
    uint32_t wrong = stream.lanes[1] == 0 ? 1 : 0;
    uint32_t numbers[50];
    uint32_t bytes = rig_batch(batch, sizeof batch, 1, "y", -1, -1, -1);
    for (unsigned i = 0; i < 50; i++)
        numbers[i] = rig_send_append(&conns[wrong], &stream, 1, 1, batch, bytes);
    for (unsigned i = 0; i < 50; i++) {
        uint64_t first;
        struct leat_frame frame = rig_answer(&conns[wrong], numbers[i]);
        assert_int_equal(rig_append_result(&frame, &first, NULL), LEAT_OK);
        assert_int_equal(first, i);
    }
    rig_close(&conns[0]);
    rig_close(&conns[1]);
}

static void fetch_waits_and_is_woken_by_an_append(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn reader, far_reader, writer;
    rig_open(server, &writer, 0);
    struct rig_stream stream = rig_create(&writer, "s", LEAT_DURABILITY_MEMORY, 2);
    rig_open(server, &reader, stream.lanes[0]);
    rig_open(server, &far_reader, 1 - stream.lanes[0]);
    for (unsigned round = 0; round < 20; round++) {
        uint32_t near = rig_send_fetch(&reader, &stream, 0, round, 1, 1000, 15000);
        uint32_t far = rig_send_fetch(&far_reader, &stream, 0, round, 1, 1000, 15000);
        uint32_t bytes = rig_batch(batch, sizeof batch, 1, "woken", -1, -1, -1);
        assert_int_equal(rig_append(&writer, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
        struct leat_frame frame = rig_answer(&reader, near);
        assert_int_equal(rig_fetched(&frame).bytes, bytes);
        frame = rig_answer(&far_reader, far);
        assert_int_equal(rig_fetched(&frame).bytes, bytes);
    }
    /* And nothing comes when nothing is appended: the answer is empty, at its time. */
    struct leat_frame frame =
        rig_answer(&far_reader, rig_send_fetch(&far_reader, &stream, 0, 20, 1, 1000, 30));
    assert_int_equal(rig_fetched(&frame).bytes, 0);
    assert_int_equal(rig_fetched(&frame).acked_offset, 20);
    rig_close(&reader);
    rig_close(&far_reader);
    rig_close(&writer);
}

static void waiting_fetches_of_a_closed_connection_leave_nothing(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_MEMORY, 2);
    for (unsigned i = 0; i < 200; i++) {
        struct rig_conn waiting;
        rig_open(server, &waiting, i % 2);
        for (unsigned n = 0; n < 4; n++)
            (void)rig_send_fetch(&waiting, &stream, n % 2, 0, 1, 1000, 60000);
        rig_close(&waiting);
    }
    uint32_t bytes = rig_batch(batch, sizeof batch, 1, "x", -1, -1, -1);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    assert_int_equal(rig_append(&conn, &stream, 1, batch, bytes, NULL, NULL), LEAT_OK);
    rig_close(&conn);
    rig_check_alive(server);
    assert_int_equal(rig_end(server, SIGTERM), 0);
}

/* ---- exactly once ---- */

static void duplicates_are_answered_with_their_first_offset(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    uint64_t first;
    char text[LEAT_ERROR_TEXT_BYTES];
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_DISK, 1);
    for (int i = 0; i < 8; i++) {
        uint32_t bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 0, i * 10);
        assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, NULL), LEAT_OK);
        assert_int_equal(first, i * 10);
    }
    for (int i = 3; i < 8; i++) {
        uint32_t bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 0, i * 10);
        assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, NULL), LEAT_OK);
        assert_int_equal(first, i * 10);
    }
    uint32_t bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 0, 0);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, text),
                     LEAT_E_ALREADY_APPENDED);
    bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 0, 100);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, text),
                     LEAT_E_SEQUENCE_GAP);
    bytes = rig_batch(batch, sizeof batch, 10, "x", 78, 0, 5);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, text),
                     LEAT_E_SEQUENCE_GAP);
    bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 1, 0);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, text), LEAT_OK);
    bytes = rig_batch(batch, sizeof batch, 10, "x", 77, 0, 80);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, &first, text),
                     LEAT_E_PRODUCER_FENCED);
    assert_int_equal(rig_read_all(&conn, &stream, 0, NULL, 0), 90);
    rig_close(&conn);
}

/* The batch after a refused one is refused too; the one before it is in. */
static void append_of_several_batches_ends_at_the_first_refused(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_MEMORY, 1);
    uint32_t one = rig_batch(batch, sizeof batch, 2, "good", -1, -1, -1);
    uint32_t two = rig_batch(batch + one, sizeof batch - one, 2, "bad", -1, -1, -1);
    batch[one + two - 1] ^= 1;
    uint32_t three = rig_batch(batch + one + two, sizeof batch - one - two, 2, "late", -1, -1, -1);
    struct leat_frame frame =
        rig_answer(&conn, rig_send_append(&conn, &stream, 0, 3, batch, one + two + three));
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame.control, frame.control_bytes);
    assert_int_equal(leat_msg_read_array(&reader), 4);
    const leat_err expected[] = {LEAT_OK, LEAT_E_CORRUPT, LEAT_E_CANCELLED};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(leat_msg_read_array(&reader), 2);
        assert_int_equal(leat_msg_read_u64(&reader), expected[i]);
        (void)leat_msg_read_u64(&reader);
    }
    assert_true(leat_msg_read_string(&reader).bytes > 0);
    assert_true(leat_msg_read_done(&reader));
    assert_int_equal(rig_read_all(&conn, &stream, 0, NULL, 0), 2);
    rig_close(&conn);
}

/* ---- refusals by name ---- */

static void requests_for_what_is_not_there_are_refused_by_name(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    struct rig_stream stream, other;
    char text[LEAT_ERROR_TEXT_BYTES];
    rig_open(server, &conn, 0);
    assert_int_equal(rig_metadata(&conn, "nothing", false, &stream), LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(rig_metadata(&conn, "a/b", true, &stream), LEAT_E_BAD_NAME);
    assert_int_equal(rig_metadata(&conn, "leat.own", true, &stream), LEAT_E_BAD_NAME);
    assert_int_equal(rig_metadata(&conn, "made", true, &stream), LEAT_OK);
    uint32_t bytes = rig_batch(batch, sizeof batch, 1, "x", -1, -1, -1);
    other = stream;
    other.id = 4711;
    assert_int_equal(rig_append(&conn, &other, 0, batch, bytes, NULL, text), LEAT_E_UNKNOWN_STREAM);
    assert_non_null(strstr(text, "4711"));
    assert_int_equal(rig_append(&conn, &stream, 99, batch, bytes, NULL, text), LEAT_E_UNKNOWN_LOG);
    other = stream;
    other.epoch--;
    assert_int_equal(rig_append(&conn, &other, 0, batch, bytes, NULL, text), LEAT_E_STALE_EPOCH);
    other.epoch += 2;
    assert_int_equal(rig_append(&conn, &other, 0, batch, bytes, NULL, text), LEAT_E_NOT_OWNER);
    assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, NULL, text), LEAT_OK);
    struct leat_frame frame =
        rig_answer(&conn, rig_send_fetch(&conn, &stream, 0, 500, 1, 1000, 10000));
    struct leat_msg_fetched fetched = rig_fetched(&frame);
    assert_int_equal(fetched.code, LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(fetched.first_offset, 0);
    assert_int_equal(fetched.acked_offset, 1);
    const uint8_t empty = 0x90;
    uint32_t number = rig_send(&conn, (enum leat_kind)99, &empty, 1, NULL, 0);
    rig_expect_error(&conn, number, LEAT_E_UNSUPPORTED, "99");
    number = rig_send(&conn, LEAT_KIND_APPEND, &empty, 1, NULL, 0);
    rig_expect_error(&conn, number, LEAT_E_INVALID, "append");
    number = rig_send(&conn, LEAT_KIND_FETCH, &empty, 1, NULL, 0);
    rig_expect_error(&conn, number, LEAT_E_INVALID, "fetch");
    rig_close(&conn);
}

/* After each, the connection ends with a sentence, and the server serves others. */
static void bytes_that_are_no_frame_close_the_connection_only(void **state)
{
    struct rig_server *server = *state;
    const uint8_t empty = 0x90;
    uint8_t header[64];
    for (unsigned kind = 0; kind < 5; kind++) {
        struct rig_conn conn;
        struct leat_frame frame;
        rig_connect(server, &conn);
        if (kind != 3) rig_hello(&conn, kind % 2);
        header[LEAT_FRAME_HEADER_BYTES] = empty;
        leat_frame_encode(header, LEAT_KIND_PING, 1, 0, 5, 1, 0);
        switch (kind) {
        case 0: /* larger than the limit */
            leat_put_le32(header, LEAT_FRAME_BYTES_MAX + 1000);
            break;
        case 1: /* a control body longer than the frame */
            leat_put_le32(header + 12, 500);
            break;
        case 2: /* wrong CRC */
            header[16] ^= 0x40;
            break;
        case 3: /* not hello: a good frame, too early */
            break;
        default:
            memset(header, 'G', sizeof header);
            break;
        }
        rig_send_raw(&conn, header, kind == 4 ? sizeof header : LEAT_FRAME_HEADER_BYTES + 1);
        assert_true(rig_next(&conn, &frame));
        assert_int_equal(frame.flags, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR);
        assert_false(rig_next(&conn, &frame));
        rig_close(&conn);
        rig_check_alive(server);
    }
}

static void truncated_connections_leave_nothing(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn, other;
    rig_open(server, &other, 0);
    struct rig_stream stream = rig_create(&other, "s", LEAT_DURABILITY_MEMORY, 2);
    uint32_t bytes = rig_batch(batch, sizeof batch, 1000, "truncated", -1, -1, -1);
    for (size_t cut = 1; cut < 400; cut += 13) {
        uint8_t frame[256];
        struct leat_msg_writer writer;
        struct leat_msg_append append = {{stream.id, 0, 0}, stream.epoch, 1};
        rig_open(server, &conn, (int64_t)(cut % 2));
        leat_msg_writer_init(&writer, frame + LEAT_FRAME_HEADER_BYTES, 64);
        leat_msg_append_write(&writer, &append);
        leat_frame_encode(frame, LEAT_KIND_APPEND, 1, 0, 9, writer.used, bytes);
        size_t head = LEAT_FRAME_HEADER_BYTES + writer.used;
        rig_send_raw(&conn, frame, cut < head ? cut : head);
        if (cut > head) rig_send_raw(&conn, batch, cut - head);
        rig_close(&conn);
    }
    assert_int_equal(rig_read_all(&other, &stream, 0, NULL, 0), 0);
    rig_close(&other);
    rig_check_alive(server);
}

static void versions_that_do_not_meet_are_refused_by_name(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn conn;
    uint8_t bytes[64];
    struct leat_frame frame;
    struct leat_msg_writer writer;
    struct leat_msg_hello hello = {7, 9, {"new", 3}, -1};
    rig_connect(server, &conn);
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_hello_write(&writer, &hello);
    uint32_t number = rig_send(&conn, LEAT_KIND_HELLO, bytes, writer.used, NULL, 0);
    rig_expect_error(&conn, number, LEAT_E_UNSUPPORTED, "7 to 9");
    assert_false(rig_next(&conn, &frame));
    rig_close(&conn);
}

/* ---- crowds ---- */

static void idle_connections_cost_little_and_hurt_nobody(void **state)
{
    enum { CROWD = 1500 };
    struct rig_server *server = *state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rig_conn *crowd = calloc(CROWD, sizeof *crowd);
    for (unsigned i = 0; i < CROWD; i++) {
        rig_connect(server, &crowd[i]);
        if (i % 3 != 0) rig_hello(&crowd[i], i % 2);
    }
    struct rig_conn conn;
    rig_open(server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_MEMORY, 1);
    uint32_t bytes = rig_batch(batch, sizeof batch, 1, "x", -1, -1, -1);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(rig_append(&conn, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    rig_close(&conn);
    for (unsigned i = 0; i < CROWD; i++)
        rig_close(&crowd[i]);
    free(crowd);
    rig_check_alive(server);
}

/* A reader asks for much and takes nothing; another goes on undisturbed, and so do appends. */
static void slow_reader_hurts_nobody(void **state)
{
    struct rig_server *server = *state;
    struct rig_conn slow, good;
    int little = 4096;
    rig_open(server, &good, 0);
    struct rig_stream stream = rig_create(&good, "s", LEAT_DURABILITY_MEMORY, 1);
    char *value = malloc(100001);
    memset(value, 'v', 100000);
    value[100000] = '\0';
    uint32_t bytes = rig_batch(batch, sizeof batch, 10, value, -1, -1, -1);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rig_append(&good, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    rig_connect(server, &slow);
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    rig_hello(&slow, stream.lanes[0]);
    uint32_t numbers[40];
    uint64_t since = now_ms();
    for (unsigned i = 0; i < 40; i++)
        numbers[i] = rig_send_fetch(&slow, &stream, 0, 0, 1, 4 * 1024 * 1024, 0);
    /* 400 MB through a pool of less than 256 MiB, while the other's answers wait. */
    for (unsigned i = 0; i < 400; i++)
        assert_int_equal(rig_append(&good, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    struct leat_frame frame =
        rig_answer(&good, rig_send_fetch(&good, &stream, 0, 4100, 1, 1000, 0));
    assert_int_equal(rig_fetched(&frame).code, LEAT_OK);
    /* And what it was promised is still right when it takes it after all, faster now, unless it was closed
     * for taking nothing for ten seconds. */
    int much = 4 * 1024 * 1024;
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &much, sizeof much);
    setsockopt(slow.fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &much, sizeof much);
    for (unsigned i = 0; i < 40; i++) {
        if (!rig_next(&slow, &frame)) {
            assert_true(now_ms() - since > 9000);
            break;
        }
        unsigned asked = 0; /* fetches are answered in any order, each once */
        while (asked < 40 && numbers[asked] != frame.request)
            asked++;
        assert_int_not_equal(asked, 40);
        numbers[asked] = 0;
        struct leat_msg_fetched fetched = rig_fetched(&frame);
        assert_int_equal(fetched.code, LEAT_OK);
        struct leat_batch first;
        assert_int_equal(leat_batch_check(frame.payload,
                                          leat_batch_bytes(frame.payload, frame.payload_bytes),
                                          &first, NULL),
                         LEAT_OK);
        assert_int_equal(first.base_offset, 0);
    }
    free(value);
    rig_close(&slow);
    rig_close(&good);
}

/* ---- lives ---- */

static void restarts_and_kills_keep_everything(void **state)
{
    struct rig_server *server = *state;
    char last[64];
    uint64_t expected[2] = {0, 0};
    for (unsigned life = 0; life < 6; life++) {
        struct rig_conn conn;
        rig_open(server, &conn, life % 2);
        struct rig_stream streams[2];
        for (int s = 0; s < 2; s++) {
            if (life == 0)
                streams[s] = rig_create(&conn, s == 0 ? "disk" : "memory",
                                        s == 0 ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY, 2);
            else
                assert_int_equal(
                    rig_metadata(&conn, s == 0 ? "disk" : "memory", false, &streams[s]), LEAT_OK);
            assert_int_equal(rig_read_all(&conn, &streams[s], 1, last, sizeof last), expected[s]);
            for (int i = 0; i < 30; i++) {
                char value[64];
                uint64_t first;
                snprintf(value, sizeof value, "life %u, batch %d", life, i);
                uint32_t bytes =
                    rig_batch(batch, sizeof batch, 5, value, 9, 0, (int32_t)expected[s]);
                assert_int_equal(rig_append(&conn, &streams[s], 1, batch, bytes, &first, last),
                                 LEAT_OK);
                assert_int_equal(first, expected[s]);
                expected[s] += 5;
            }
        }
        /* A retry of the last batch in the next life is a duplicate: that is what the sequence
         * above, going on, checks; here the end by signal. */
        rig_close(&conn);
        if (life % 2 == 0)
            assert_int_equal(rig_end(server, SIGKILL), -SIGKILL);
        else
            assert_int_equal(rig_end(server, SIGTERM), 0);
        rig_start(server, small);
    }
}

static void second_server_is_refused_by_name(void **state)
{
    struct rig_server *server = *state, second = *server;
    char text[4096];
    second.port = 0;
    assert_int_equal(rig_start_refused(&second, small, text, sizeof text), 3);
    assert_non_null(strstr(text, server->dir));
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)server->pid);
    assert_non_null(strstr(text, pid));
    rig_check_alive(server);
}

static void busy_port_is_refused_by_name(void **state)
{
    struct rig_server *server = *state, second;
    char text[4096], listen[64];
    rig_dir(&second);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", server->port);
    const char *const args[] = {"--listen", listen, "--memory", "256M", NULL};
    assert_int_equal(rig_start_refused(&second, args, text, sizeof text), 4);
    assert_non_null(strstr(text, listen));
    rig_remove_dir(&second);
}

static void wrong_flags_are_refused_by_name(void **state)
{
    struct rig_server *server = *state, other;
    char text[4096], path[300];
    (void)server;
    rig_dir(&other);
    const char *const unknown[] = {"--lsten", "127.0.0.1:0", NULL};
    assert_int_equal(rig_start_refused(&other, unknown, text, sizeof text), 2);
    assert_non_null(strstr(text, "did you mean --listen"));
    const char *const number[] = {"--memory", "much", NULL};
    assert_int_equal(rig_start_refused(&other, number, text, sizeof text), 2);
    assert_non_null(strstr(text, "--memory"));
    const char *const little[] = {"--memory", "20M", NULL};
    assert_int_equal(rig_start_refused(&other, little, text, sizeof text), 2);
    assert_non_null(strstr(text, "too small"));
    snprintf(path, sizeof path, "%s/conf", other.dir);
    FILE *file = fopen(path, "w");
    fputs("memory = 256M\n# a comment\ncorse = 2\n", file);
    fclose(file);
    const char *const config[] = {"--config", path, NULL};
    assert_int_equal(rig_start_refused(&other, config, text, sizeof text), 2);
    assert_non_null(strstr(text, "line 3"));
    assert_non_null(strstr(text, "cores"));
    rig_remove_dir(&other);
}

/* ---- disk full ---- */

/* On a small tmpfs of its own: appends are refused by name, reads go on, and with space made the
 * appends do too. Needs root to mount. */
static void full_disk_refuses_appends_and_recovers(void **state)
{
    (void)state;
    struct rig_server server;
    rig_dir(&server);
    if (mount("none", server.dir, "tmpfs", 0, "size=200m") != 0) {
        int why = errno;
        rig_remove_dir(&server);
        /* Only what the kernel refuses to whoever runs this is no failure. */
        print_message("a tmpfs can't be mounted here: %s\n", strerror(why));
        assert_true(why == EPERM || why == EACCES);
        skip();
    }
    char filler[300];
    snprintf(filler, sizeof filler, "%s/filler", server.dir);
    rig_start(&server, small);
    struct rig_conn conn;
    rig_open(&server, &conn, 0);
    struct rig_stream stream = rig_create(&conn, "s", LEAT_DURABILITY_DISK, 1);
    char *value = malloc(100001);
    char text[LEAT_ERROR_TEXT_BYTES] = "";
    memset(value, 'v', 100000);
    value[100000] = '\0';
    uint32_t bytes = rig_batch(batch, sizeof batch, 10, value, -1, -1, -1);
    uint64_t acked = 0;
    leat_err rc = LEAT_OK;
    FILE *file = fopen(filler, "w");
    assert_non_null(file);
    char *zeros = calloc(1, 1 << 20);
    for (unsigned i = 0; i < 60; i++)
        (void)!fwrite(zeros, 1 << 20, 1, file);
    fflush(file);
    for (unsigned i = 0; i < 1000 && rc == LEAT_OK; i++) {
        rc = rig_append(&conn, &stream, 0, batch, bytes, NULL, text);
        if (rc == LEAT_OK) acked += 10;
    }
    assert_int_equal(rc, LEAT_E_DISK_FULL);
    assert_int_equal(rig_read_all(&conn, &stream, 0, NULL, 0), acked);
    fclose(file);
    assert_int_equal(unlink(filler), 0);
    /* The server finds the space by itself, soon. */
    uint64_t until = now_ms() + 15000;
    do {
        rc = rig_append(&conn, &stream, 0, batch, bytes, NULL, text);
    } while (rc == LEAT_E_DISK_FULL && now_ms() < until);
    if (rc != LEAT_OK) fail_msg("still refused: %s", text);
    acked += 10;
    assert_int_equal(rig_read_all(&conn, &stream, 0, NULL, 0), acked);
    free(zeros);
    free(value);
    rig_close(&conn);
    assert_int_equal(rig_end(&server, SIGTERM), 0);
    assert_int_equal(umount(server.dir), 0);
    rig_remove_dir(&server);
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(append_then_fetch_returns_the_same_records),
        SERVER_TEST(fetch_exceeds_its_limit_by_no_batch_of_a_later_log),
        SERVER_TEST(fetch_exceeds_its_limit_by_no_batch_of_a_further_segment),
        SERVER_TEST(append_on_the_wrong_lane_works),
        SERVER_TEST(fetch_waits_and_is_woken_by_an_append),
        SERVER_TEST(waiting_fetches_of_a_closed_connection_leave_nothing),
        SERVER_TEST(duplicates_are_answered_with_their_first_offset),
        SERVER_TEST(append_of_several_batches_ends_at_the_first_refused),
        SERVER_TEST(requests_for_what_is_not_there_are_refused_by_name),
        SERVER_TEST(bytes_that_are_no_frame_close_the_connection_only),
        SERVER_TEST(truncated_connections_leave_nothing),
        SERVER_TEST(versions_that_do_not_meet_are_refused_by_name),
        SERVER_TEST(idle_connections_cost_little_and_hurt_nobody),
        SERVER_TEST(slow_reader_hurts_nobody),
        SERVER_TEST(restarts_and_kills_keep_everything),
        SERVER_TEST(second_server_is_refused_by_name),
        SERVER_TEST(busy_port_is_refused_by_name),
        SERVER_TEST(wrong_flags_are_refused_by_name),
        cmocka_unit_test(full_disk_refuses_appends_and_recovers),
    };
    /* One of them alone, for debugging: a pattern with * and ?. */
    if (getenv("ONLY") != NULL) cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
