/* SPDX-License-Identifier: Apache-2.0 */
/* Frame headers of the native protocol. */
#include "wire/frame.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

enum { CRC_AT = 16, LENGTH_FIELD_BYTES = 4 };

/* The header with its CRC field zero, then the control body. */
static uint32_t frame_crc(const uint8_t *frame, uint32_t control_bytes)
{
    uint8_t header[LEAT_FRAME_HEADER_BYTES];
    memcpy(header, frame, sizeof header);
    leat_put_le32(header + CRC_AT, 0);
    uint32_t crc = leat_crc32c(0, header, sizeof header);
    return leat_crc32c(crc, frame + LEAT_FRAME_HEADER_BYTES, control_bytes);
}

leat_err leat_frame_decode(const uint8_t *data, size_t bytes, struct leat_frame *out_frame,
                           size_t *out_want)
{
    *out_frame = (struct leat_frame){0};
    *out_want = LEAT_FRAME_HEADER_BYTES;
    if (bytes < LENGTH_FIELD_BYTES) return LEAT_E_AGAIN;
    uint64_t frame_bytes = (uint64_t)leat_get_le32(data) + LENGTH_FIELD_BYTES;
    if (frame_bytes < LEAT_FRAME_HEADER_BYTES) return LEAT_E_INVALID;
    /* Before the rest has come: a peer that speaks something else is told so at once. */
    if (frame_bytes > LEAT_FRAME_BYTES_MAX && bytes < LEAT_FRAME_HEADER_BYTES)
        return LEAT_E_TOO_LARGE;
    if (bytes < LEAT_FRAME_HEADER_BYTES) return LEAT_E_AGAIN;

    out_frame->kind = leat_get_le16(data + 4);
    out_frame->version = data[6];
    out_frame->flags = data[7];
    out_frame->request = leat_get_le32(data + 8);
    uint32_t control_bytes = leat_get_le32(data + 12);
    if (frame_bytes > LEAT_FRAME_BYTES_MAX) return LEAT_E_TOO_LARGE;
    if (control_bytes > LEAT_CONTROL_BYTES_MAX) return LEAT_E_TOO_LARGE;
    if (control_bytes > frame_bytes - LEAT_FRAME_HEADER_BYTES) return LEAT_E_INVALID;
    if (leat_get_le32(data + 20) != 0) return LEAT_E_INVALID;
    if (out_frame->flags & ~(LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR)) return LEAT_E_INVALID;
    if (out_frame->flags == LEAT_FRAME_ERROR) return LEAT_E_INVALID;

    *out_want = (size_t)frame_bytes;
    if (bytes < LEAT_FRAME_HEADER_BYTES + (size_t)control_bytes) return LEAT_E_AGAIN;
    /* Checked as early as possible, so that no reader waits for the payload of a damaged length. */
    if (frame_crc(data, control_bytes) != leat_get_le32(data + CRC_AT)) return LEAT_E_CORRUPT;
    if (bytes < frame_bytes) return LEAT_E_AGAIN;

    out_frame->control = data + LEAT_FRAME_HEADER_BYTES;
    out_frame->control_bytes = control_bytes;
    out_frame->payload = out_frame->control + control_bytes;
    out_frame->payload_bytes = (uint32_t)frame_bytes - LEAT_FRAME_HEADER_BYTES - control_bytes;
    out_frame->frame_bytes = (uint32_t)frame_bytes;
    return LEAT_OK;
}

void leat_frame_encode(uint8_t *out, enum leat_kind kind, uint8_t version, uint8_t flags,
                       uint32_t request, uint32_t control_bytes, uint32_t payload_bytes)
{
    uint64_t frame_bytes = (uint64_t)LEAT_FRAME_HEADER_BYTES + control_bytes + payload_bytes;
    LEAT_ASSERT_CMP(control_bytes, <=, (uint32_t)LEAT_CONTROL_BYTES_MAX);
    LEAT_ASSERT_CMP(frame_bytes, <=, (uint64_t)LEAT_FRAME_BYTES_MAX);
    leat_put_le32(out, (uint32_t)frame_bytes - LENGTH_FIELD_BYTES);
    leat_put_le16(out + 4, (uint16_t)kind);
    out[6] = version;
    out[7] = flags;
    leat_put_le32(out + 8, request);
    leat_put_le32(out + 12, control_bytes);
    leat_put_le32(out + 20, 0);
    leat_put_le32(out + CRC_AT, 0);
    leat_put_le32(out + CRC_AT, frame_crc(out, control_bytes));
}
