/* SPDX-License-Identifier: Apache-2.0 */
/* Frame decoder: never reads past the bytes, consumes exactly, and encoding gives them back. */
#include "fuzz.h"

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_frame frame;
    size_t want;
    leat_err rc = leat_frame_decode(data, size, &frame, &want);
    if (rc == LEAT_E_AGAIN) LEAT_ASSERT(want > size && want <= LEAT_FRAME_BYTES_MAX);
    if (rc != LEAT_OK) return 0;
    LEAT_ASSERT(frame.frame_bytes <= size);
    LEAT_ASSERT(frame.payload + frame.payload_bytes == data + frame.frame_bytes);
    uint8_t *again = malloc(frame.frame_bytes);
    memcpy(again, data, frame.frame_bytes);
    memset(again, 0xee, LEAT_FRAME_HEADER_BYTES);
    leat_frame_encode(again, frame.kind, frame.version, frame.flags, frame.request,
                      frame.control_bytes, frame.payload_bytes);
    LEAT_ASSERT(memcmp(again, data, frame.frame_bytes) == 0);
    free(again);
    return 0;
}

/* Repair length, zero field and CRC, mostly: else nothing gets past them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < LEAT_FRAME_HEADER_BYTES || seed % 8 == 0) return size;
    leat_put_le32(data, (uint32_t)size - 4);
    uint32_t control = leat_get_le32(data + 12);
    if (control > size - LEAT_FRAME_HEADER_BYTES) {
        control = (uint32_t)(control % (size - LEAT_FRAME_HEADER_BYTES + 1));
        leat_put_le32(data + 12, control);
    }
    leat_put_le32(data + 20, 0);
    leat_put_le32(data + 16, 0);
    leat_put_le32(data + 16, leat_crc32c(0, data, LEAT_FRAME_HEADER_BYTES + control));
    return size;
}
