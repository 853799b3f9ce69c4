/* SPDX-License-Identifier: Apache-2.0 */
/* Segment scanner: whatever it calls valid can be walked, cut there, and scans the same again. */
#include "entries.h"

#include "wire/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > LEAT_SEGMENT_BYTES_MAX) return 0;
    uint8_t *segment = aligned_alloc(8, LEAT_ALIGN_UP(size + 8, (size_t)8));
    memcpy(segment, data, size);
    struct leat_scan scan, again;
    leat_scan_segment(segment, (uint32_t)size, &scan);
    LEAT_ASSERT(scan.bytes <= size);
    LEAT_ASSERT(scan.damaged == (scan.bytes < scan.acked_bytes));
    LEAT_ASSERT(scan.started == (scan.bytes > 0));
    LEAT_ASSERT(!scan.closed || scan.started);
    uint32_t at = 0;
    uint8_t last = LEAT_ENTRY_NONE;
    while (at < scan.bytes) {
        const struct leat_entry *entry = leat_entry_at(segment, scan.bytes, at);
        LEAT_ASSERT(entry != NULL);
        last = entry->type;
        struct leat_batch batch;
        if (last == LEAT_ENTRY_BATCH)
            LEAT_ASSERT(leat_batch_view((const uint8_t *)(entry + 1), entry->payload_bytes,
                                        &batch) == LEAT_OK);
        at += leat_entry_bytes(entry->payload_bytes);
    }
    LEAT_ASSERT(at == scan.bytes && (at == 0 || last == LEAT_ENTRY_TRAILER));
    leat_scan_segment(segment, scan.bytes, &again);
    LEAT_ASSERT(again.bytes == scan.bytes && again.crc == scan.crc && !again.damaged);
    LEAT_ASSERT(again.next_offset == scan.next_offset && again.closed == scan.closed);
    free(segment);
    return 0;
}

/* So that mutations go deep. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 != 0) fuzz_entries_seal(data, size, seed % 16 == 1);
    return size;
}
