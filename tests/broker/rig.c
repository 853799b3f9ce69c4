/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

enum {
    WAIT_MS = 20000,
    BUFFER_BYTES = 16 * 1024,
    BUFFER_BYTES_MAX = 10 * 1024 * 1024,
    ARGS_MAX = 32
};

/* ---- the process ---- */

const char *rig_leatd(void)
{
    const char *path = getenv("LEATD");
    if (path == NULL) fail_msg("LEATD names the program to test");
    return path;
}

void rig_dir(struct rig_server *server)
{
    memset(server, 0, sizeof *server);
    snprintf(server->dir, sizeof server->dir, "/tmp/leat-broker-test-XXXXXX");
    assert_non_null(mkdtemp(server->dir));
}

void rig_remove_dir(const struct rig_server *server)
{
    char command[320];
    snprintf(command, sizeof command, "rm -rf '%s'", server->dir);
    assert_int_equal(system(command), 0);
}

static void spawn(struct rig_server *server, const char *const *extra)
{
    const char *args[ARGS_MAX] = {rig_leatd(), "--data", server->dir};
    char listen[64];
    size_t count = 3;
    bool listens = false;
    for (; extra != NULL && *extra != NULL && count < ARGS_MAX - 3; extra++) {
        if (strcmp(*extra, "--listen") == 0) listens = true;
        args[count++] = *extra;
    }
    if (!listens) {
        snprintf(listen, sizeof listen, "127.0.0.1:%u", server->port);
        args[count++] = "--listen";
        args[count++] = listen;
    }
    args[count] = NULL;
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no server behind */
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(args[0], (char *const *)args);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    server->out = out[0];
    server->err = err[0];
    fcntl(server->err, F_SETPIPE_SZ, 1024 * 1024);
}

/* Reads until a newline or the end; false: ended without one. */
static bool read_line(int fd, char *line, size_t bytes)
{
    size_t used = 0;
    while (used + 1 < bytes) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, WAIT_MS) <= 0) fail_msg("the server says nothing");
        ssize_t n = read(fd, line + used, 1);
        if (n <= 0) break;
        if (line[used++] == '\n') {
            line[used - 1] = '\0';
            return true;
        }
    }
    line[used] = '\0';
    return false;
}

static void read_rest(int fd, char *text, size_t bytes)
{
    size_t used = 0;
    ssize_t n;
    while (used + 1 < bytes && (n = read(fd, text + used, bytes - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
}

void rig_start(struct rig_server *server, const char *const *extra)
{
    spawn(server, extra);
    if (!read_line(server->out, server->ready, sizeof server->ready)) {
        char text[4096];
        read_rest(server->err, text, sizeof text);
        fail_msg("leatd did not come up: %s", text);
    }
    const char *colon = strstr(server->ready, "127.0.0.1:");
    assert_non_null(colon);
    server->port = (unsigned)strtoul(colon + strlen("127.0.0.1:"), NULL, 10);
    assert_true(server->port > 0);
}

static int wait_for_end(struct rig_server *server)
{
    int status;
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    server->pid = 0;
    if (getenv("RIG_SHOW") != NULL) { /* what it said, for debugging */
        char text[16384];
        read_rest(server->err, text, sizeof text);
        fputs(text, stderr);
    }
    close(server->out);
    close(server->err);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int rig_start_refused(struct rig_server *server, const char *const *extra, char *text, size_t bytes)
{
    spawn(server, extra);
    read_rest(server->err, text, bytes);
    return wait_for_end(server);
}

int rig_end(struct rig_server *server, int sig)
{
    assert_int_equal(kill(server->pid, sig), 0);
    return wait_for_end(server);
}

/* ---- connections ---- */

void rig_connect(const struct rig_server *server, struct rig_conn *conn)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server->port)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(conn, 0, sizeof *conn);
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(conn->fd >= 0);
    assert_int_equal(connect(conn->fd, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    conn->capacity = BUFFER_BYTES;
    conn->in = malloc(conn->capacity);
    assert_non_null(conn->in);
    conn->number = 100;
}

void rig_close(struct rig_conn *conn)
{
    close(conn->fd);
    free(conn->in);
    conn->in = NULL;
}

void rig_send_raw(struct rig_conn *conn, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t n = send(conn->fd, at, count, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return; /* seen by the next read */
        assert_true(n > 0);
        at += n;
        count -= (size_t)n;
    }
}

uint32_t rig_send(struct rig_conn *conn, enum leat_kind kind, const void *control,
                  uint32_t control_bytes, const void *payload, uint32_t payload_bytes)
{
    uint8_t *out = malloc(LEAT_FRAME_HEADER_BYTES + (size_t)control_bytes + payload_bytes);
    assert_non_null(out);
    if (control_bytes > 0) memcpy(out + LEAT_FRAME_HEADER_BYTES, control, control_bytes);
    if (payload_bytes > 0)
        memcpy(out + LEAT_FRAME_HEADER_BYTES + control_bytes, payload, payload_bytes);
    leat_frame_encode(out, kind, 1, 0, ++conn->number, control_bytes, payload_bytes);
    rig_send_raw(conn, out, LEAT_FRAME_HEADER_BYTES + (size_t)control_bytes + payload_bytes);
    free(out);
    return conn->number;
}

bool rig_next(struct rig_conn *conn, struct leat_frame *out_frame)
{
    size_t want;
    memmove(conn->in, conn->in + conn->consumed, conn->have - conn->consumed);
    conn->have -= conn->consumed;
    conn->consumed = 0;
    for (;;) {
        leat_err rc = leat_frame_decode(conn->in, conn->have, out_frame, &want);
        if (rc == LEAT_OK) break;
        assert_int_equal(rc, LEAT_E_AGAIN);
        if (conn->have == conn->capacity) {
            assert_true(conn->capacity < BUFFER_BYTES_MAX);
            conn->capacity *= 4;
            conn->in = realloc(conn->in, conn->capacity);
            assert_non_null(conn->in);
        }
        ssize_t n = read(conn->fd, conn->in + conn->have, conn->capacity - conn->have);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) return false;
        if (n < 0) fail_msg("no answer within %d ms", WAIT_MS);
        conn->have += (size_t)n;
    }
    conn->consumed = out_frame->frame_bytes;
    return true;
}

struct leat_frame rig_answer(struct rig_conn *conn, uint32_t number)
{
    struct leat_frame frame;
    if (!rig_next(conn, &frame)) fail_msg("the server closed the connection");
    assert_int_equal(frame.request, number);
    assert_true((frame.flags & LEAT_FRAME_ANSWER) != 0);
    return frame;
}

void rig_expect_error(struct rig_conn *conn, uint32_t number, leat_err code, const char *text)
{
    struct leat_frame frame = rig_answer(conn, number);
    struct leat_msg_error error;
    char said[512];
    assert_true((frame.flags & LEAT_FRAME_ERROR) != 0);
    assert_int_equal(leat_msg_error_decode(frame.control, frame.control_bytes, &error), LEAT_OK);
    snprintf(said, sizeof said, "%.*s", (int)error.text.bytes, error.text.text);
    if (error.code != code || strstr(said, text) == NULL)
        fail_msg("expected %s with \"%s\", got %s: %s", leat_err_name(code), text,
                 leat_err_name(error.code), said);
}

static void start_control(struct leat_msg_writer *writer, uint8_t *bytes, size_t capacity)
{
    leat_msg_writer_init(writer, bytes, capacity);
}

void rig_hello(struct rig_conn *conn, int64_t lane)
{
    uint8_t bytes[128];
    struct leat_msg_writer writer;
    struct leat_msg_hello hello = {1, 1, {"test", 4}, lane};
    start_control(&writer, bytes, sizeof bytes);
    leat_msg_hello_write(&writer, &hello);
    struct leat_frame frame =
        rig_answer(conn, rig_send(conn, LEAT_KIND_HELLO, bytes, writer.used, NULL, 0));
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
    assert_int_equal(leat_msg_hello_ok_decode(frame.control, frame.control_bytes, &conn->hello),
                     LEAT_OK);
}

void rig_open(const struct rig_server *server, struct rig_conn *conn, int64_t lane)
{
    rig_connect(server, conn);
    rig_hello(conn, lane);
}

void rig_check_alive(const struct rig_server *server)
{
    struct rig_conn conn;
    const uint8_t empty = 0x90;
    rig_open(server, &conn, -1);
    struct leat_frame frame =
        rig_answer(&conn, rig_send(&conn, LEAT_KIND_PING, &empty, 1, NULL, 0));
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
    rig_close(&conn);
}

/* ---- streams ---- */

leat_err rig_metadata(struct rig_conn *conn, const char *name, bool may_create,
                      struct rig_stream *out_stream)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    start_control(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_bool(&writer, may_create);
    struct leat_frame frame =
        rig_answer(conn, rig_send(conn, LEAT_KIND_METADATA, bytes, writer.used, NULL, 0));
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
    struct leat_msg_reader reader;
    struct leat_msg_node node;
    struct leat_msg_stream stream;
    leat_msg_reader_init(&reader, frame.control, frame.control_bytes);
    assert_int_equal(leat_msg_read_array(&reader), 3);
    (void)leat_msg_read_string(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 1);
    leat_msg_node_read(&reader, &node);
    assert_int_equal(leat_msg_read_array(&reader), 1);
    leat_msg_stream_read(&reader, &stream);
    assert_false(reader.failed);
    if (stream.code != LEAT_OK) return stream.code;
    memset(out_stream, 0, sizeof *out_stream);
    out_stream->id = stream.id;
    out_stream->logs = stream.settings.logs;
    out_stream->streamlets = stream.settings.streamlets;
    for (uint32_t i = 0; i < stream.log_count; i++) {
        struct leat_msg_log log;
        leat_msg_log_read(&reader, &log);
        out_stream->epoch = log.epoch;
        if (log.streamlet == 0 && log.log < 64) out_stream->lanes[log.log] = log.lane;
    }
    assert_true(leat_msg_read_done(&reader));
    return LEAT_OK;
}

struct rig_stream rig_create(struct rig_conn *conn, const char *name,
                             enum leat_durability durability, uint32_t logs)
{
    struct leat_stream_settings settings = {.durability = durability, .logs = logs};
    return rig_create_with(conn, name, &settings);
}

struct rig_stream rig_create_with(struct rig_conn *conn, const char *name,
                                  const struct leat_stream_settings *settings)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    start_control(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_settings_write(&writer, settings);
    struct leat_frame frame =
        rig_answer(conn, rig_send(conn, LEAT_KIND_STREAM_CREATE, bytes, writer.used, NULL, 0));
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER);
    struct rig_stream stream;
    assert_int_equal(rig_metadata(conn, name, false, &stream), LEAT_OK);
    return stream;
}

/* ---- records ---- */

uint32_t rig_batch(uint8_t *out, size_t capacity, uint32_t count, const char *value,
                   int64_t producer, int16_t epoch, int32_t sequence)
{
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, capacity);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(
            leat_batch_builder_add(&builder, 1000 + i, NULL, 0, value, strlen(value), NULL, 0, 0),
            LEAT_OK);
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, producer, epoch, sequence);
}

uint32_t rig_send_append(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                         uint32_t count, const uint8_t *batches, uint32_t bytes)
{
    uint8_t control[64];
    struct leat_msg_writer writer;
    struct leat_msg_append append = {{stream->id, 0, log}, stream->epoch, count};
    start_control(&writer, control, sizeof control);
    leat_msg_append_write(&writer, &append);
    return rig_send(conn, LEAT_KIND_APPEND, control, writer.used, batches, bytes);
}

leat_err rig_append_result(const struct leat_frame *frame, uint64_t *out_first, char *out_text)
{
    struct leat_msg_reader reader;
    if ((frame->flags & LEAT_FRAME_ERROR) != 0) {
        struct leat_msg_error error;
        assert_int_equal(leat_msg_error_decode(frame->control, frame->control_bytes, &error),
                         LEAT_OK);
        if (out_text != NULL)
            snprintf(out_text, LEAT_ERROR_TEXT_BYTES, "%.*s", (int)error.text.bytes,
                     error.text.text);
        return error.code;
    }
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t count = leat_msg_read_array(&reader);
    assert_true(count >= 1);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    leat_err code = (leat_err)leat_msg_read_u64(&reader);
    uint64_t first = leat_msg_read_u64(&reader);
    if (out_first != NULL) *out_first = first;
    if (code != LEAT_OK && count == 2 && out_text != NULL) {
        struct leat_msg_string text = leat_msg_read_string(&reader);
        snprintf(out_text, LEAT_ERROR_TEXT_BYTES, "%.*s", (int)text.bytes, text.text);
    }
    assert_false(reader.failed);
    return code;
}

leat_err rig_append(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                    const uint8_t *batch, uint32_t bytes, uint64_t *out_first, char *out_text)
{
    struct leat_frame frame = rig_answer(conn, rig_send_append(conn, stream, log, 1, batch, bytes));
    return rig_append_result(&frame, out_first, out_text);
}

uint32_t rig_send_fetch(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                        uint64_t from, uint32_t min_bytes, uint32_t max_bytes, uint32_t wait_ms)
{
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct leat_msg_fetch fetch = {min_bytes, max_bytes, wait_ms, 1};
    struct leat_msg_fetch_log at = {
        .log = {stream->id, 0, log}, .epoch = stream->epoch, .offset = from};
    start_control(&writer, control, sizeof control);
    leat_msg_fetch_write(&writer, &fetch);
    leat_msg_fetch_log_write(&writer, &at);
    return rig_send(conn, LEAT_KIND_FETCH, control, writer.used, NULL, 0);
}

struct leat_msg_fetched rig_fetched(const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    struct leat_msg_fetched fetched;
    assert_int_equal(frame->flags, LEAT_FRAME_ANSWER);
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    assert_true(leat_msg_read_array(&reader) >= 1);
    leat_msg_fetched_read(&reader, &fetched);
    assert_false(reader.failed);
    return fetched;
}

uint64_t rig_read_all(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                      char *last_value, size_t last_bytes)
{
    uint64_t at = 0;
    for (;;) {
        struct leat_frame frame =
            rig_answer(conn, rig_send_fetch(conn, stream, log, at, 1, 1024 * 1024, 0));
        struct leat_msg_fetched fetched = rig_fetched(&frame);
        assert_int_equal(fetched.code, LEAT_OK);
        assert_int_equal(fetched.bytes, frame.payload_bytes);
        if (fetched.bytes == 0) {
            assert_int_equal(at, fetched.acked_offset);
            return at;
        }
        for (uint32_t used = 0; used < frame.payload_bytes;) {
            uint64_t bytes = leat_batch_bytes(frame.payload + used, frame.payload_bytes - used);
            struct leat_batch batch;
            assert_true(bytes > 0 && used + bytes <= frame.payload_bytes);
            assert_int_equal(leat_batch_check(frame.payload + used, bytes, &batch, NULL), LEAT_OK);
            assert_int_equal(batch.base_offset, at);
            at += batch.record_count;
            used += (uint32_t)bytes;
            struct leat_record_reader records;
            struct leat_record record = {0};
            leat_record_reader_init(&records, &batch, batch.bytes + LEAT_BATCH_HEADER_BYTES,
                                    batch.byte_count - LEAT_BATCH_HEADER_BYTES);
            while (leat_record_next(&records, &record) == LEAT_OK) {
            }
            if (last_value != NULL)
                snprintf(last_value, last_bytes, "%.*s", (int)record.value_bytes,
                         (const char *)record.value);
        }
    }
}
