/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of which a fuzzer has changed bytes. */
#ifndef LEAT_TESTS_FUZZ_ENTRIES_H
#define LEAT_TESTS_FUZZ_ENTRIES_H

#include "fuzz.h"

#include "wire/entry.h"

/* Repair payload CRCs and trailers along the entries. spoil: but for payloads in the second half. */
static inline void fuzz_entries_seal(uint8_t *data, size_t size, bool spoil)
{
    uint32_t chain = 0;
    size_t at = 0;
    while (size - at >= LEAT_ENTRY_HEADER_BYTES) {
        struct leat_entry entry;
        memcpy(&entry, data + at, sizeof entry);
        size_t room = size - at - sizeof entry;
        size_t payload = LEAT_ALIGN_UP((uint64_t)entry.payload_bytes, LEAT_ENTRY_ALIGN);
        if (payload > room) break;
        if (entry.type == LEAT_ENTRY_TRAILER) {
            entry.crc = leat_entry_trailer_crc(chain, &entry);
            chain = entry.crc;
        } else {
            if (!spoil || at <= size / 2)
                entry.crc = leat_crc32c(0, data + at + sizeof entry, entry.payload_bytes);
            chain = leat_crc32c(chain, &entry, sizeof entry);
        }
        memcpy(data + at, &entry, sizeof entry);
        at += sizeof entry + payload;
    }
}

#endif
