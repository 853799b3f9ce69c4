/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of one actor: a binary heap over the clock port's single wake-up. */
#ifndef LEAT_BASE_TIMER_H
#define LEAT_BASE_TIMER_H

#include "error.h"
#include "port.h"

struct leat_timer;
typedef void (*leat_timer_fn)(struct leat_timer *timer);

/* Caller's storage; init to zero. `owner` is the caller's own. */
struct leat_timer {
    leat_timer_fn on_expired;
    void *owner;
    uint64_t at_us;
    uint32_t heap_index_plus_1; /* 0 = not armed */
};

struct leat_timers {
    const struct leat_clock *clock;
    struct leat_timer **heap;
    uint32_t count, capacity;
    uint64_t armed_at_us; /* what the clock was last asked for; UINT64_MAX = nothing */
};

/** capacity: most timers armed at once; a further timer stops the process (choose the size). Thread: owner. */
leat_err leat_timers_init(struct leat_timers *timers, const struct leat_clock *clock,
                          uint32_t capacity) LEAT_NODISCARD;
void leat_timers_fini(struct leat_timers *timers);
/** Arm or re-arm. The callback runs from leat_timers_run(), never from here. Thread: owner. */
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us);
void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer);
static inline bool leat_timer_armed(const struct leat_timer *timer)
{
    return timer->heap_index_plus_1 != 0;
}
/** Run what has expired, then ask the clock for the next wake-up. The actor calls it when woken.
 * Thread: owner. */
void leat_timers_run(struct leat_timers *timers);

#endif
