/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the native protocol. Header 24 bytes, little-endian:
 *
 *    0 u32 bytes after this field           4 u16 kind   6 u8 version   7 u8 flags
 *    8 u32 request                         12 u32 control bytes
 *   16 u32 CRC-32C of the header with this field zero, then of the control body
 *   20 u32 zero
 *
 * then the control body (msgpack, one array), then the payload: raw record batches.
 */
#ifndef LEAT_WIRE_FRAME_H
#define LEAT_WIRE_FRAME_H

#include "base/error.h"
#include "base/types.h"

enum {
    LEAT_FRAME_HEADER_BYTES = 24,
    LEAT_CONTROL_BYTES_MAX = 1024 * 1024,
    LEAT_FRAME_BYTES_MAX = 8 * 1024 * 1024, /* whole frame */
    LEAT_PROTOCOL_VERSION_MIN = 1,
    LEAT_PROTOCOL_VERSION_MAX = 1,
};
enum leat_frame_flags {
    LEAT_FRAME_ANSWER = 1,
    LEAT_FRAME_ERROR = 2, /* an answer whose control body is [code, class, text] */
};
enum leat_kind {
    LEAT_KIND_HELLO = 1,
    LEAT_KIND_PING = 2,
    LEAT_KIND_METADATA = 3,
    LEAT_KIND_STREAM_CREATE = 4,
    LEAT_KIND_STREAM_DELETE = 5,
    LEAT_KIND_STREAM_DESCRIBE = 6,
    LEAT_KIND_PRODUCER_ID = 7,
    LEAT_KIND_APPEND = 8,
    LEAT_KIND_FETCH = 9,
    LEAT_KIND_LOCATE = 10,
    LEAT_KIND_GROUP_JOIN = 11,
    LEAT_KIND_GROUP_HEARTBEAT = 12,
    LEAT_KIND_GROUP_LEAVE = 13,
    LEAT_KIND_GROUP_COMMIT = 14,
    LEAT_KIND_GROUP_FETCH = 15,
    LEAT_KIND_LOG_RECOVER = 16,
    LEAT_KIND_STATUS = 17,
    LEAT_KIND_CLUSTER_STATUS = 18,
    LEAT_KIND_NODE_CHANGE = 19,
    LEAT_KIND_SEGMENTS = 20,
    LEAT_KIND_NODE_REPORT = 21,
    LEAT_KIND_SEGMENT_GROUP = 22,
    LEAT_KIND_STREAMLET_MOVE = 23,
    LEAT_KIND_STREAM_TRIM = 24,
    LEAT_KIND_PLACES = 25,
    LEAT_KIND_LOG_BELOW = 26,
};

struct leat_frame {
    uint16_t kind;
    uint8_t version, flags;
    uint32_t request;
    const uint8_t *control; /* view */
    uint32_t control_bytes;
    const uint8_t *payload; /* view */
    uint32_t payload_bytes;
    uint32_t frame_bytes; /* all of it */
};
/**
 * Decode the frame at the beginning of data.
 * LEAT_E_AGAIN: more bytes are needed, *out_want of them in all. LEAT_E_TOO_LARGE, LEAT_E_CORRUPT, LEAT_E_INVALID:
 * the connection can't be parsed any more (the header fields are still filled, as far as they had come). Thread: any.
 * Allocates: never.
 */
leat_err leat_frame_decode(const uint8_t *data, size_t bytes, struct leat_frame *out_frame,
                           size_t *out_want) LEAT_NODISCARD;
/** Write the header before a control body at out + LEAT_FRAME_HEADER_BYTES; payload_bytes follow elsewhere. */
void leat_frame_encode(uint8_t *out, enum leat_kind kind, uint8_t version, uint8_t flags,
                       uint32_t request, uint32_t control_bytes, uint32_t payload_bytes);

#endif
