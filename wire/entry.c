/* SPDX-License-Identifier: Apache-2.0 */
/* Writing entries, and walking a prefix that is known to be valid. */
#include "wire/entry.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

void leat_entry_writer_init(struct leat_entry_writer *writer, uint8_t *bytes, uint32_t capacity)
{
    LEAT_ASSERT((uintptr_t)bytes % LEAT_ENTRY_ALIGN == 0);
    *writer = (struct leat_entry_writer){.bytes = bytes, .capacity = capacity};
}

bool leat_entry_fits(const struct leat_entry_writer *writer, uint32_t payload_bytes,
                     uint32_t keep_free)
{
    uint64_t need = LEAT_ENTRY_HEADER_BYTES +
                    LEAT_ALIGN_UP((uint64_t)payload_bytes, LEAT_ENTRY_ALIGN) +
                    LEAT_ENTRY_HEADER_BYTES + keep_free;
    return need <= writer->capacity - writer->used;
}

uint32_t leat_entry_append(struct leat_entry_writer *writer, enum leat_entry_type type,
                           uint64_t base_offset, uint32_t record_count, const void *payload,
                           uint32_t payload_bytes, uint32_t payload_crc)
{
    LEAT_ASSERT(type > LEAT_ENTRY_NONE && type <= LEAT_ENTRY_CLOSE && type != LEAT_ENTRY_TRAILER);
    /* The scanner stops at what is not so; better to fail here than to lose it there. */
    LEAT_ASSERT(type == LEAT_ENTRY_BATCH || (base_offset == 0 && record_count == 0));
    LEAT_ASSERT(leat_entry_fits(writer, payload_bytes, 0));
    uint32_t position = writer->used, total = leat_entry_bytes(payload_bytes);
    struct leat_entry header = {
        .type = (uint8_t)type,
        .payload_bytes = payload_bytes,
        .base_offset = base_offset,
        .record_count = record_count,
        .crc = payload_crc,
    };
    uint8_t *at = writer->bytes + position;
    memcpy(at, &header, sizeof header);
    if (payload_bytes > 0) memcpy(at + sizeof header, payload, payload_bytes);
    uint32_t end = (uint32_t)sizeof header + payload_bytes;
    memset(at + end, 0, total - end);
    writer->chain = leat_crc32c(writer->chain, &header, sizeof header);
    writer->used = position + total;
    return position;
}

uint32_t leat_entry_trailer_crc(uint32_t chain_before, const struct leat_entry *trailer)
{
    struct leat_entry header = *trailer;
    header.crc = 0;
    uint32_t crc = leat_crc32c(chain_before, &header, sizeof header);
    return crc == 0 ? 1 : crc;
}

struct leat_prefix_id leat_entry_seal(struct leat_entry_writer *writer, uint32_t acked_bytes)
{
    LEAT_ASSERT_CMP(writer->capacity - writer->used, >=, (uint32_t)LEAT_ENTRY_HEADER_BYTES);
    LEAT_ASSERT_CMP(acked_bytes, <=, writer->sealed_bytes);
    struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .base_offset = acked_bytes};
    trailer.crc = leat_entry_trailer_crc(writer->chain, &trailer);
    memcpy(writer->bytes + writer->used, &trailer, sizeof trailer);
    writer->used += LEAT_ENTRY_HEADER_BYTES;
    writer->sealed_bytes = writer->used;
    /* Recycled memory: the bytes after the trailer go into the file with the last block, and must not look like a
     * damaged write. */
    if (writer->capacity - writer->used >= (uint32_t)LEAT_ENTRY_HEADER_BYTES)
        memset(writer->bytes + writer->used, 0, LEAT_ENTRY_HEADER_BYTES);
    /* The next trailer continues from this value, so (length, CRC) is enough to continue a segment whose buffer was
     * given back. */
    writer->chain = trailer.crc;
    return (struct leat_prefix_id){.bytes = writer->used, .crc = trailer.crc};
}

const struct leat_entry *leat_entry_at(const uint8_t *segment, uint32_t valid_bytes,
                                       uint32_t position)
{
    if (position % LEAT_ENTRY_ALIGN != 0 || position > valid_bytes ||
        valid_bytes - position < LEAT_ENTRY_HEADER_BYTES)
        return NULL;
    const struct leat_entry *entry = (const void *)(segment + position);
    if (entry->type == LEAT_ENTRY_NONE || entry->type > LEAT_ENTRY_CLOSE) return NULL;
    uint32_t room = valid_bytes - position - LEAT_ENTRY_HEADER_BYTES;
    if (LEAT_ALIGN_UP((uint64_t)entry->payload_bytes, LEAT_ENTRY_ALIGN) > room) return NULL;
    return entry;
}
