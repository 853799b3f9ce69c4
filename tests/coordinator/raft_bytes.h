/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's files byte by byte, as docs and raft/log.h have them, and not as raft/log.c writes them. */
#ifndef LEAT_TESTS_COORDINATOR_RAFT_BYTES_H
#define LEAT_TESTS_COORDINATOR_RAFT_BYTES_H

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "coordinator/raft/log.h"

static inline void put32(uint8_t **at, uint32_t value)
{
    leat_put_le32(*at, value);
    *at += 4;
}
static inline void put64(uint8_t **at, uint64_t value)
{
    leat_put_le64(*at, value);
    *at += 8;
}
static inline void seal(uint8_t *header, size_t bytes)
{
    leat_put_le32(header + 4, leat_crc32c(0, header + 8, bytes - 8));
}

static inline uint8_t *segment_put(uint8_t *at, uint64_t number, uint64_t previous_end)
{
    uint8_t *header = at;
    memset(at, 0, 64);
    put32(&at, 0x4746524c);
    at += 4;
    put32(&at, 1);
    put32(&at, 0);
    put64(&at, number);
    put64(&at, previous_end);
    seal(header, 64);
    return header + 64;
}

static inline uint8_t *frame_put(uint8_t *at, uint64_t index, uint64_t term, uint32_t type,
                                 const void *data, uint32_t bytes)
{
    uint8_t *header = at;
    memset(at, 0, 32 + LEAT_ALIGN_UP((size_t)bytes, 8));
    put32(&at, bytes);
    at += 4;
    put64(&at, term);
    put64(&at, index);
    put32(&at, type);
    put32(&at, 0);
    if (bytes) memcpy(at, data, bytes);
    uint32_t crc = leat_crc32c(leat_crc32c(0, header, 4), header + 8, 24 + bytes);
    leat_put_le32(header + 4, crc);
    return at + LEAT_ALIGN_UP((size_t)bytes, 8);
}

static inline void round_seal(uint8_t *header, uint64_t segment, uint64_t place, const uint8_t *end,
                              uint32_t count, uint64_t first)
{
    uint8_t *at = header;
    memset(at, 0, 48);
    put32(&at, 0x4446524c);
    at += 4;
    put64(&at, segment);
    put64(&at, place);
    put32(&at, (uint32_t)(end - header - 48));
    put32(&at, count);
    put64(&at, first);
    seal(header, 48);
}

/* u8 1, u64 1 server: id 1, address "1", a voter. */
static const uint8_t one_voter[] = {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, '1', 0, 1};

static inline void vote_put(uint8_t out[4096], const struct leat_raft_vote_state *state)
{
    const uint64_t values[] = {
        state->sequence,        state->term,        state->voted_for, state->first_segment,
        state->durable_segment, state->durable_end, state->formed};
    uint8_t *at = out;
    memset(out, 0, 4096);
    put32(&at, 0x5646524c);
    at += 4;
    put32(&at, 1);
    put32(&at, 0);
    for (unsigned i = 0; i < 7; i++)
        put64(&at, values[i]);
    seal(out, 72);
}

static inline size_t snapshot_put(uint8_t *out, uint64_t index, uint64_t term, uint64_t conf_index,
                                  const void *data, size_t bytes)
{
    uint8_t *at = out;
    memset(out, 0, 56);
    put32(&at, 0x5346524c);
    at += 4;
    put32(&at, 1);
    put32(&at, leat_crc32c(leat_crc32c(0, one_voter, sizeof one_voter), data, bytes));
    const uint64_t values[] = {index, term, conf_index, sizeof one_voter, bytes};
    for (unsigned i = 0; i < 5; i++)
        put64(&at, values[i]);
    seal(out, 56);
    memcpy(at, one_voter, sizeof one_voter);
    memcpy(at + sizeof one_voter, data, bytes);
    return 56 + sizeof one_voter + bytes;
}

#endif
