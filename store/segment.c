/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's integrity, and readers' pins. */
#include "store/segment.h"

#include "base/assert.h"
#include "base/bug.h"

void leat_segment_integrity_enter(struct leat_segment *seg, enum leat_segment_integrity to)
{
    static const unsigned follow[] = {
        [LEAT_INTEGRITY_OK] =
            1u << LEAT_INTEGRITY_TORN | 1u << LEAT_INTEGRITY_CORRUPT | 1u << LEAT_INTEGRITY_MISSING,
        [LEAT_INTEGRITY_TORN] = 1u << LEAT_INTEGRITY_OK | 1u << LEAT_INTEGRITY_CORRUPT,
        [LEAT_INTEGRITY_CORRUPT] = 1u << LEAT_INTEGRITY_OK,
        [LEAT_INTEGRITY_MISSING] = 1u << LEAT_INTEGRITY_OK,
    };
    if (seg->integrity == to) return;
    LEAT_ASSERT(follow[seg->integrity] & 1u << to);
    seg->integrity = to;
}

#define PINS_WANTED_BACK (UINT32_C(1) << 31)

void leat_segment_pin(struct leat_segment *seg)
{
    LEAT_ASSERT(seg->buffer != NULL);
    /* Relaxed: the owner tests the count later in the same thread, and other threads get the bytes through the
     * message or queue of the read. */
    uint32_t before = atomic_fetch_add_explicit(&seg->pins, 1, memory_order_relaxed);
    LEAT_ASSERT_CMP(before & ~PINS_WANTED_BACK, <, PINS_WANTED_BACK - 1);
}

/* SUBTLE: the thread that takes the count to zero while bit 31 is set sends the message, and clears the bit in the
 * same exchange as the count.
 *  1. The owner sets the bit while two readers hold pins.
 *  2. Reader A gives back (2 -> 1), reader B gives back (1 -> 0) on another thread.
 *  3. If the bit were tested afterwards, A could run its test late, see zero too, and send the same message a second
 *     time while it is still in the queue: the queue would be corrupt.
 * With a single exchange only one reader sees "one pin and the bit". The bit is gone then, so a pin that is taken and
 * given back before the owner reads the message sends no second message either. */
void leat_segment_unpin(struct leat_segment *seg, const struct leat_post *post)
{
    uint32_t now = atomic_load_explicit(&seg->pins, memory_order_relaxed);
    uint32_t after;
    do {
        LEAT_ASSERT_CMP(now & ~PINS_WANTED_BACK, >, 0);
        after = now - 1;
        if (after == PINS_WANTED_BACK) after = 0;
        /* Release: the reader's loads of the bytes are over before the owner may recycle them. */
    } while (!atomic_compare_exchange_weak_explicit(&seg->pins, &now, after, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (now == (PINS_WANTED_BACK | 1)) post->send(post->ctx, seg->owner_actor, &seg->unpinned);
}

bool leat_segment_want_back(struct leat_segment *seg)
{
    uint32_t now = atomic_load_explicit(&seg->pins, memory_order_acquire);
    if (LEAT_BUG(PIN_IGNORED)) return true;
    while (now != 0 && !(now & PINS_WANTED_BACK)) {
        if (atomic_compare_exchange_weak_explicit(&seg->pins, &now, now | PINS_WANTED_BACK,
                                                  memory_order_acq_rel, memory_order_acquire))
            return false;
    }
    return now == 0;
}

bool leat_segment_is_wanted_back(const struct leat_segment *seg)
{
    return (atomic_load_explicit(&seg->pins, memory_order_relaxed) & PINS_WANTED_BACK) != 0;
}
