/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd as a child process, and raw frames over TCP. */
#ifndef LEAT_TESTS_BROKER_RIG_H
#define LEAT_TESTS_BROKER_RIG_H

#include <sys/types.h>

#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/message.h"

struct rig_server {
    pid_t pid;
    int out, err; /* its standard output and error, non-inherited */
    char dir[256];
    unsigned port;
    char ready[512];
};

/** A new directory under /tmp. */
void rig_dir(struct rig_server *server);
/** Start it and wait for the ready line; extra: more flags, NULL-terminated. Fails the test when it
 * does not come up. */
void rig_start(struct rig_server *server, const char *const *extra);
/** Start it and wait for its end: exit code; what it said on standard error in text. */
int rig_start_refused(struct rig_server *server, const char *const *extra, char *text,
                      size_t bytes);
/** Send a signal and wait for the end: exit code, or minus the signal that ended it. */
int rig_end(struct rig_server *server, int sig);
void rig_remove_dir(const struct rig_server *server);
/** Something listens and answers a ping on a new connection. */
void rig_check_alive(const struct rig_server *server);
const char *rig_leatd(void);

struct rig_conn {
    int fd;
    uint8_t *in;
    size_t have, consumed, capacity;
    uint32_t number;
    struct leat_msg_hello_ok hello;
};
void rig_connect(const struct rig_server *server, struct rig_conn *conn);
void rig_hello(struct rig_conn *conn, int64_t lane);
/** Connect and hello. */
void rig_open(const struct rig_server *server, struct rig_conn *conn, int64_t lane);
void rig_close(struct rig_conn *conn);
void rig_send_raw(struct rig_conn *conn, const void *bytes, size_t count);
/** Returns the request's number. */
uint32_t rig_send(struct rig_conn *conn, enum leat_kind kind, const void *control,
                  uint32_t control_bytes, const void *payload, uint32_t payload_bytes);
/** Next frame; view until the next call. false: closed by the server. Fails after 20 s. */
bool rig_next(struct rig_conn *conn, struct leat_frame *out_frame);
/** The answer to a request; fails when another comes, or the end. */
struct leat_frame rig_answer(struct rig_conn *conn, uint32_t number);
/** The answer is an ERROR frame of that code whose sentence contains text. */
void rig_expect_error(struct rig_conn *conn, uint32_t number, leat_err code, const char *text);

struct rig_stream {
    uint32_t id, logs, streamlets, epoch;
    uint32_t lanes[64]; /* of streamlet 0 */
};
struct rig_stream rig_create_with(struct rig_conn *conn, const char *name,
                                  const struct leat_stream_settings *settings);
struct rig_stream rig_create(struct rig_conn *conn, const char *name,
                             enum leat_durability durability, uint32_t logs);
/** code LEAT_OK: stream filled. */
leat_err rig_metadata(struct rig_conn *conn, const char *name, bool may_create,
                      struct rig_stream *out_stream);
/** One batch of count records, each `value`. Returns bytes. */
uint32_t rig_batch(uint8_t *out, size_t capacity, uint32_t count, const char *value,
                   int64_t producer, int16_t epoch, int32_t sequence);
/** Append one batch and return the code; out_first, out_text may be NULL. */
leat_err rig_append(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                    const uint8_t *batch, uint32_t bytes, uint64_t *out_first, char *out_text);
uint32_t rig_send_append(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                         uint32_t count, const uint8_t *batches, uint32_t bytes);
leat_err rig_append_result(const struct leat_frame *frame, uint64_t *out_first, char *out_text);
uint32_t rig_send_fetch(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                        uint64_t from, uint32_t min_bytes, uint32_t max_bytes, uint32_t wait_ms);
/** First log's result of a fetch answer. */
struct leat_msg_fetched rig_fetched(const struct leat_frame *frame);
/** Fetch all records from 0 on, check that they are dense, return how many. */
uint64_t rig_read_all(struct rig_conn *conn, const struct rig_stream *stream, uint32_t log,
                      char *last_value, size_t last_bytes);

#endif
