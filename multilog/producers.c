/* SPDX-License-Identifier: Apache-2.0 */
/* Producer state of one log: an open hash with linear probing and deletion by shifting back. */
#include "multilog/producers.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

enum { SLOTS_MIN = 8, ID_FREE = -1, SHED_BUCKETS = 256 };
/* Sequences are 31-bit and wrap to 0. Half of the range is "behind", the other half "ahead". */
#define SEQUENCE_MASK UINT32_C(0x7fffffff)
#define SEQUENCE_HALF (UINT32_C(1) << 30)

static uint32_t sequence_distance(int32_t from, int32_t to)
{
    return ((uint32_t)to - (uint32_t)from) & SEQUENCE_MASK;
}

static int32_t sequence_add(int32_t sequence, uint32_t count)
{
    return (int32_t)(((uint32_t)sequence + count) & SEQUENCE_MASK);
}

/* SUBTLE: why a random number of this table, and the upper bits of the product (Dietzfelbinger and others, A Reliable
 * Randomized Algorithm for the Closest-Pair Problem, J. Algorithms 25, 1997). (1) A client chooses its producer ids.
 * (2) Thousands of ids with one slot make each look-up go through all of them. (3) An append then costs its core
 * seven times as much, and a table that grows stops the core for as long as a thousand appends. */
static uint32_t slot_of(const struct leat_producers *producers, int64_t id)
{
    const uint32_t upper = (uint32_t)(((uint64_t)id * producers->number) >> 32);
    return upper >> __builtin_clz(producers->slot_mask);
}

/* The producer's slot, or the free slot where the producer would go. */
static struct leat_producer_state *slot_find(const struct leat_producers *producers, int64_t id)
{
    uint32_t at = slot_of(producers, id);
    /* Ends: at least a quarter of the slots is free. */
    while (producers->slots[at].producer_id != id && producers->slots[at].producer_id != ID_FREE)
        at = (at + 1) & producers->slot_mask;
    return &producers->slots[at];
}

static struct leat_producer_state *slots_create(uint32_t count)
{
    struct leat_producer_state *slots = leat_mem_calloc(LEAT_MEM_LOG, count, sizeof *slots);
    for (uint32_t i = 0; slots && i < count; i++)
        slots[i].producer_id = ID_FREE;
    return slots;
}

leat_err leat_producers_init(struct leat_producers *producers, uint32_t count_max, uint64_t number)
{
    *producers = (struct leat_producers){
        .count_max = count_max, .slot_mask = SLOTS_MIN - 1, .number = number | 1};
    producers->slots = slots_create(SLOTS_MIN);
    return producers->slots ? LEAT_OK : LEAT_E_NO_MEMORY;
}

void leat_producers_fini(struct leat_producers *producers)
{
    leat_mem_free(producers->slots);
    leat_mem_free(producers->holders);
    *producers = (struct leat_producers){0};
}

static size_t holders_bytes(const struct leat_producers *producers, uint32_t slot_count)
{
    if (slot_count < producers->count_max / 2) return 0; /* the table may not fill up */
    return sizeof *producers->holders + slot_count * sizeof producers->holders->of[0];
}

static bool is_crowded(const struct leat_producers *producers)
{
    return (uint64_t)(producers->count + 1) * 4 > ((uint64_t)producers->slot_mask + 1) * 3;
}

static enum leat_producer_verdict check_unknown(const struct leat_producers *producers,
                                                const struct leat_batch *batch,
                                                int64_t *out_expected)
{
    *out_expected = 0;
    /* The producer's earlier batches may still be on their way (docs/stories.md 18 d). Only a log that has forgotten
     * a producer must take a producer in the middle of its sequences. */
    if (batch->base_sequence != 0 && !producers->expired &&
        !(producers->lost && LEAT_BUG(BEGINS_IN_MIDDLE)))
        return producers->lost || LEAT_BUG(GAP_IS_UNKNOWN) ? LEAT_PRODUCER_UNKNOWN
                                                           : LEAT_PRODUCER_GAP;
    if (producers->count >= producers->count_max) return LEAT_PRODUCER_FULL;
    return is_crowded(producers) ? LEAT_PRODUCER_GROW : LEAT_PRODUCER_NEW;
}

enum leat_producer_verdict leat_producers_check(const struct leat_producers *producers,
                                                const struct leat_batch *batch,
                                                uint64_t *out_offset, int64_t *out_expected)
{
    if (batch->producer_id < 0) return LEAT_PRODUCER_NEW;
    const struct leat_producer_state *state = slot_find(producers, batch->producer_id);
    if (state->producer_id == ID_FREE) return check_unknown(producers, batch, out_expected);
    if (batch->producer_epoch < state->epoch) {
        *out_expected = state->epoch;
        return LEAT_PRODUCER_FENCED;
    }
    *out_expected = 0;
    if (batch->producer_epoch > state->epoch)
        return batch->base_sequence == 0 ? LEAT_PRODUCER_NEW : LEAT_PRODUCER_GAP;

    LEAT_ASSERT_CMP(state->batch_count, >, 0);
    int32_t next = sequence_add(state->batches[state->batch_count - 1].last_sequence, 1);
    *out_expected = next;
    if (batch->base_sequence == next) return LEAT_PRODUCER_NEW;
    int32_t last = sequence_add(batch->base_sequence, batch->record_count - 1);
    for (unsigned i = 0; i < state->batch_count; i++) {
        const struct leat_producer_batch *known = &state->batches[i];
        if (known->first_sequence != batch->base_sequence || known->last_sequence != last) continue;
        *out_offset = known->first_offset;
        return LEAT_PRODUCER_DUPLICATE;
    }
    /* Older means: all its sequences lie in [first accepted here, next). Anything else would call a
     * batch appended that never was (docs/stories.md 18 b). */
    uint32_t accepted = sequence_distance(state->first_sequence, next);
    uint32_t begin = sequence_distance(state->first_sequence, batch->base_sequence);
    if (begin < accepted && batch->record_count <= accepted - begin) {
        *out_offset = state->batches[state->batch_count - 1].first_offset;
        return LEAT_PRODUCER_OLDER;
    }
    return LEAT_PRODUCER_GAP;
}

void leat_producers_record(struct leat_producers *producers, const struct leat_batch *batch,
                           uint64_t first_offset, int64_t now_ms)
{
    if (batch->producer_id < 0) return;
    struct leat_producer_state *state = slot_find(producers, batch->producer_id);
    if (state->producer_id == ID_FREE) {
        LEAT_ASSERT(!is_crowded(producers));
        producers->count++;
        *state = (struct leat_producer_state){.producer_id = batch->producer_id,
                                              .epoch = batch->producer_epoch,
                                              .first_sequence = batch->base_sequence};
    } else if (state->epoch != batch->producer_epoch) {
        state->epoch = batch->producer_epoch;
        state->first_sequence = batch->base_sequence;
        state->batch_count = 0;
        memset(state->batches, 0, sizeof state->batches);
    }
    if (state->batch_count == LEAT_BATCHES_IN_FLIGHT_MAX)
        memmove(&state->batches[0], &state->batches[1],
                (LEAT_BATCHES_IN_FLIGHT_MAX - 1) * sizeof state->batches[0]);
    else
        state->batch_count++;
    int32_t last = sequence_add(batch->base_sequence, batch->record_count - 1);
    state->batches[state->batch_count - 1] =
        (struct leat_producer_batch){batch->base_sequence, last, first_offset};
    state->last_used_ms = now_ms;
    /* After 2^31 records the numbers come round: the range that counts as "accepted here" stays half a turn long, so
     * that ahead and behind can be told apart. */
    if (sequence_distance(state->first_sequence, sequence_add(last, 1)) > SEQUENCE_HALF)
        state->first_sequence = sequence_add(last, SEQUENCE_MASK + 2 - SEQUENCE_HALF);
}

bool leat_producers_crowded_by(const struct leat_producers *producers, int64_t id, uint32_t address)
{
    const struct leat_producer_holders *holders = producers->holders;
    if (id < 0 || address == 0 || !holders || producers->count < producers->count_max / 2)
        return false;
    return holders->counts[address % LEAT_PRODUCER_ADDRESSES] >= producers->count_max / 4 &&
           slot_find(producers, id)->producer_id == ID_FREE;
}

static void holder_set(struct leat_producer_holders *holders, uint32_t slot, uint32_t holder)
{
    if (holders->of[slot] != 0) holders->counts[holders->of[slot] - 1]--;
    if (holder != 0) holders->counts[holder - 1]++;
    holders->of[slot] = (uint16_t)holder;
}

void leat_producers_note(struct leat_producers *producers, int64_t id, uint32_t address)
{
    struct leat_producer_holders *holders = producers->holders;
    if (id < 0 || address == 0 || !holders) return;
    const struct leat_producer_state *state = slot_find(producers, id);
    LEAT_ASSERT(state->producer_id == id);
    holder_set(holders, (uint32_t)(state - producers->slots),
               address % LEAT_PRODUCER_ADDRESSES + 1);
}

bool leat_producers_wants_room(const struct leat_producers *producers)
{
    return producers->count < producers->count_max &&
           (uint64_t)(producers->count + 1) * 2 > (uint64_t)producers->slot_mask + 1;
}

static leat_err slots_resize(struct leat_producers *producers, uint32_t slot_count)
{
    struct leat_producers larger = *producers;
    size_t bytes = holders_bytes(producers, slot_count);
    larger.holders = bytes ? leat_mem_calloc(LEAT_MEM_LOG, 1, bytes) : NULL;
    larger.slots = slots_create(slot_count);
    larger.slot_mask = slot_count - 1;
    if (!larger.slots || (bytes && !larger.holders)) {
        leat_producers_fini(&larger);
        return LEAT_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i <= producers->slot_mask; i++) {
        if (producers->slots[i].producer_id == ID_FREE) continue;
        struct leat_producer_state *slot = slot_find(&larger, producers->slots[i].producer_id);
        *slot = producers->slots[i];
        if (producers->holders)
            holder_set(larger.holders, (uint32_t)(slot - larger.slots), producers->holders->of[i]);
    }
    leat_producers_fini(producers);
    *producers = larger;
    return LEAT_OK;
}

size_t leat_producers_prepare_bytes(const struct leat_producers *producers)
{
    uint32_t slot_count = (producers->slot_mask + 1) * 2;
    return slot_count * sizeof *producers->slots + holders_bytes(producers, slot_count);
}

leat_err leat_producers_prepare(struct leat_producers *producers)
{
    return slots_resize(producers, (producers->slot_mask + 1) * 2);
}

/* Free one slot. Producers that were pushed past this slot move back, so that probing never meets a hole. */
static void slot_remove(struct leat_producers *producers, uint32_t at)
{
    uint32_t mask = producers->slot_mask;
    struct leat_producer_holders *holders = producers->holders;
    if (holders) holder_set(holders, at, 0);
    for (uint32_t next = (at + 1) & mask; producers->slots[next].producer_id != ID_FREE;
         next = (next + 1) & mask) {
        uint32_t home = slot_of(producers, producers->slots[next].producer_id);
        if (((next - home) & mask) < ((next - at) & mask)) continue;
        producers->slots[at] = producers->slots[next];
        if (holders) {
            holders->of[at] = holders->of[next];
            holders->of[next] = 0;
        }
        at = next;
    }
    producers->slots[at] = (struct leat_producer_state){.producer_id = ID_FREE};
    producers->count--;
}

static bool can_go(const struct leat_producer_state *state, int64_t before_ms,
                   uint64_t acked_offset)
{
    return state->producer_id != ID_FREE && state->last_used_ms < before_ms &&
           state->batches[state->batch_count - 1].first_offset < acked_offset;
}

static uint32_t forget(struct leat_producers *producers, uint32_t count_max, int64_t before_ms,
                       uint64_t acked_offset)
{
    uint32_t removed = 0;
    for (uint32_t at = 0; at <= producers->slot_mask && removed < count_max;) {
        if (!can_go(&producers->slots[at], before_ms, acked_offset)) {
            at++;
            continue;
        }
        /* Another may have moved into this slot: look at it again. */
        slot_remove(producers, at);
        removed++;
    }
    if (removed) producers->expired = true;
    return removed;
}

uint32_t leat_producers_expire(struct leat_producers *producers, int64_t before_ms,
                               uint64_t acked_offset)
{
    return forget(producers, UINT32_MAX, before_ms, acked_offset);
}

/* Before newcomers of its address are refused, and down to less than that: they come between two calls of this, too. */
uint32_t leat_producers_shed_crowds(struct leat_producers *producers, int64_t before_ms,
                                    uint64_t acked_offset)
{
    const struct leat_producer_holders *holders = producers->holders;
    const uint32_t spare = producers->count_max / 16, keep_count = producers->count_max / 4 - spare;
    uint32_t removed = 0;
    if (!holders || producers->count < producers->count_max / 2 - spare) return 0;
    for (uint32_t at = 0; at <= producers->slot_mask;) {
        const uint32_t holder = holders->of[at];
        if (holder == 0 || holders->counts[holder - 1] <= keep_count ||
            !can_go(&producers->slots[at], before_ms, acked_offset)) {
            at++;
            continue;
        }
        slot_remove(producers, at);
        removed++;
    }
    if (removed) producers->expired = true;
    return removed;
}

/* Times come from stored bytes too: differences are taken without sign. */
static uint64_t time_distance(int64_t from, int64_t to)
{
    return (uint64_t)to - (uint64_t)from;
}

/* The time of the (rank + 1)-th oldest of the producers in [low, high) that can go; there are more than rank.
 * out_below: how many are older. Each round narrows the range 256-fold, so that no list of the table is ever sorted
 * or allocated. */
static int64_t time_of_rank(const struct leat_producers *producers, uint32_t rank, int64_t low,
                            int64_t high, uint64_t acked_offset, uint32_t *out_below)
{
    uint32_t below = 0;
    while (time_distance(low, high) > 1) {
        uint32_t counts[SHED_BUCKETS] = {0}, at = 0;
        uint64_t width = (time_distance(low, high) - 1) / SHED_BUCKETS + 1;
        for (uint32_t i = 0; i <= producers->slot_mask; i++) {
            const struct leat_producer_state *state = &producers->slots[i];
            if (can_go(state, high, acked_offset) && state->last_used_ms >= low)
                counts[time_distance(low, state->last_used_ms) / width]++;
        }
        while (below + counts[at] <= rank) {
            below += counts[at++];
            LEAT_ASSERT_CMP(at, <, SHED_BUCKETS);
        }
        low = (int64_t)((uint64_t)low + at * width);
        if (time_distance(low, high) > width) high = (int64_t)((uint64_t)low + width);
    }
    *out_below = below;
    return low;
}

uint32_t leat_producers_shed(struct leat_producers *producers, uint32_t keep_count,
                             int64_t before_ms, uint64_t acked_offset)
{
    if (producers->count <= keep_count) return 0;
    uint32_t excess = producers->count - keep_count, candidates = 0, below;
    int64_t oldest = before_ms;
    for (uint32_t i = 0; i <= producers->slot_mask; i++) {
        const struct leat_producer_state *state = &producers->slots[i];
        if (!can_go(state, before_ms, acked_offset)) continue;
        candidates++;
        if (state->last_used_ms < oldest) oldest = state->last_used_ms;
    }
    if (candidates <= excess)
        return candidates ? forget(producers, candidates, before_ms, acked_offset) : 0;
    int64_t last = time_of_rank(producers, excess, oldest, before_ms, acked_offset, &below);
    /* Of producers with exactly this time (a replay gives all the same time) only as many as must go. */
    uint32_t removed = below ? forget(producers, below, last, acked_offset) : 0;
    if (removed < excess) removed += forget(producers, excess - removed, last + 1, acked_offset);
    return removed;
}

size_t leat_producers_encoded_bytes(const struct leat_producers *producers)
{
    return (size_t)producers->count * sizeof(struct leat_producer_state);
}

void leat_producers_encode(const struct leat_producers *producers, uint8_t *out)
{
    for (uint32_t i = 0; i <= producers->slot_mask; i++) {
        if (producers->slots[i].producer_id == ID_FREE) continue;
        memcpy(out, &producers->slots[i], sizeof producers->slots[i]);
        out += sizeof producers->slots[i];
    }
}

static bool state_is_sane(const struct leat_producer_state *state)
{
    if (state->producer_id < 0 || state->epoch < 0 || state->first_sequence < 0) return false;
    if (state->batch_count == 0 || state->batch_count > LEAT_BATCHES_IN_FLIGHT_MAX) return false;
    for (unsigned i = 0; i < state->batch_count; i++)
        if (state->batches[i].first_sequence < 0 || state->batches[i].last_sequence < 0)
            return false;
    return true;
}

static leat_err slots_for(struct leat_producers *producers, uint32_t count)
{
    uint32_t slots = SLOTS_MIN;
    while (slots < (uint64_t)count * 2)
        slots *= 2;
    size_t bytes = holders_bytes(producers, slots);
    producers->holders = bytes ? leat_mem_calloc(LEAT_MEM_LOG, 1, bytes) : NULL;
    producers->slots = slots_create(slots);
    producers->slot_mask = slots - 1;
    return producers->slots && (!bytes || producers->holders) ? LEAT_OK : LEAT_E_NO_MEMORY;
}

leat_err leat_producers_decode(struct leat_producers *producers, const uint8_t *bytes,
                               size_t byte_count, uint32_t count, bool expired)
{
    struct leat_producer_state state;
    if (count > LEAT_START_BYTES_MAX / sizeof state) return LEAT_E_CORRUPT;
    if ((size_t)count * sizeof state > byte_count) return LEAT_E_CORRUPT;
    struct leat_producers fresh = {
        .count_max = producers->count_max, .number = producers->number, .expired = expired};
    leat_err rc = slots_for(&fresh, count);
    for (uint32_t i = 0; rc == LEAT_OK && i < count; i++) {
        memcpy(&state, bytes + (size_t)i * sizeof state, sizeof state);
        struct leat_producer_state *slot = slot_find(&fresh, state.producer_id);
        if (!state_is_sane(&state) || slot->producer_id != ID_FREE) {
            rc = LEAT_E_CORRUPT;
            break;
        }
        state.zero[0] = 0;
        *slot = state;
        fresh.count++;
    }
    if (rc != LEAT_OK) {
        leat_producers_fini(&fresh);
        return rc;
    }
    leat_producers_fini(producers);
    *producers = fresh;
    return LEAT_OK;
}

leat_err leat_producers_replay(struct leat_producers *producers, const struct leat_batch *batch,
                               uint64_t first_offset, int64_t now_ms)
{
    if (batch->producer_id < 0) return LEAT_OK;
    const struct leat_producer_state *slot = slot_find(producers, batch->producer_id);
    if (slot->producer_id == ID_FREE && is_crowded(producers)) {
        leat_err rc = leat_producers_prepare(producers);
        if (rc != LEAT_OK) return rc;
    }
    leat_producers_record(producers, batch, first_offset, now_ms);
    return LEAT_OK;
}
