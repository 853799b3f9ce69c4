/* SPDX-License-Identifier: Apache-2.0 */
/* Values of msgpack, written and read one after the other: what all control bodies are made of.
 *
 * Encoding is msgpack-c's packer into caller's memory. Decoding is a small cursor: msgpack-c's unpacker allocates,
 * and sizes what it allocates by unchecked counts; here every count is bounded by the bytes that remain, nothing is
 * allocated and strings are views.
 */
#ifndef LEAT_WIRE_MSG_H
#define LEAT_WIRE_MSG_H

#include "base/error.h"
#include "base/types.h"

struct leat_msg_reader {
    const uint8_t *at, *end;
    bool failed; /* sticky: every later read returns a zero value */
};
struct leat_msg_string {
    const char *text; /* view, not terminated */
    uint32_t bytes;
};
struct leat_msg_bin {
    const void *data; /* view */
    uint32_t bytes;
};
void leat_msg_reader_init(struct leat_msg_reader *reader, const void *bytes, size_t count);
/** Array header; fails when the count exceeds the bytes left. */
uint32_t leat_msg_read_array(struct leat_msg_reader *reader);
uint32_t leat_msg_read_map(struct leat_msg_reader *reader);
uint64_t leat_msg_read_u64(struct leat_msg_reader *reader);
uint32_t leat_msg_read_u32(struct leat_msg_reader *reader); /* fails above UINT32_MAX */
int64_t leat_msg_read_i64(struct leat_msg_reader *reader);
bool leat_msg_read_bool(struct leat_msg_reader *reader);
struct leat_log_ref leat_msg_read_log(struct leat_msg_reader *reader); /* stream, streamlet, log */
struct leat_msg_string leat_msg_read_string(struct leat_msg_reader *reader); /* str or bin */
/** Skip one value of any kind; nesting deeper than 8 fails. */
void leat_msg_skip(struct leat_msg_reader *reader);
void leat_msg_skip_n(struct leat_msg_reader *reader, uint32_t count);
/** Of all strings in a body, which is the caller's own: control characters become '?'. */
void leat_msg_texts_clean(uint8_t *body, size_t bytes);
/** True when nothing failed and everything was consumed. */
bool leat_msg_read_done(const struct leat_msg_reader *reader);
/** A body ends: `left` fields are skipped, and no bytes may follow. */
bool leat_msg_read_end(struct leat_msg_reader *reader, uint32_t left);

struct leat_msg_writer {
    uint8_t *bytes;
    uint32_t used, capacity;
    bool overflow; /* sticky */
};
void leat_msg_writer_init(struct leat_msg_writer *writer, void *bytes, size_t capacity);
void leat_msg_write_array(struct leat_msg_writer *writer, uint32_t count);
void leat_msg_write_u64(struct leat_msg_writer *writer, uint64_t value);
void leat_msg_write_i64(struct leat_msg_writer *writer, int64_t value);
void leat_msg_write_bool(struct leat_msg_writer *writer, bool value);
void leat_msg_write_log(struct leat_msg_writer *writer, struct leat_log_ref log);
void leat_msg_write_string(struct leat_msg_writer *writer, const char *text, size_t bytes);
void leat_msg_write_bin(struct leat_msg_writer *writer, const void *data, size_t bytes);
/** A value that is encoded already. */
void leat_msg_write_raw(struct leat_msg_writer *writer, const void *encoded, size_t bytes);

#endif
