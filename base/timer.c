/* SPDX-License-Identifier: Apache-2.0 */
/* Binary heap of timers over one wake-up of the clock port. */
#include "base/timer.h"

#include "base/assert.h"
#include "base/mem.h"

leat_err leat_timers_init(struct leat_timers *timers, const struct leat_clock *clock,
                          uint32_t capacity)
{
    LEAT_ASSERT_CMP(capacity, >, 0);
    *timers = (struct leat_timers){.clock = clock, .armed_at_us = UINT64_MAX};
    timers->heap = leat_mem_calloc(LEAT_MEM_BASE, capacity, sizeof(struct leat_timer *));
    if (!timers->heap) return LEAT_E_NO_MEMORY;
    timers->capacity = capacity;
    return LEAT_OK;
}

void leat_timers_fini(struct leat_timers *timers)
{
    /* Timers live in their owners' structs: leave none that claims to be armed. */
    for (uint32_t i = 0; i < timers->count; i++)
        timers->heap[i]->heap_index_plus_1 = 0;
    leat_mem_free(timers->heap);
    *timers = (struct leat_timers){.armed_at_us = UINT64_MAX};
}

static void heap_put(struct leat_timers *timers, uint32_t index, struct leat_timer *timer)
{
    timers->heap[index] = timer;
    timer->heap_index_plus_1 = index + 1;
}

static void heap_sift_up(struct leat_timers *timers, uint32_t index)
{
    struct leat_timer *timer = timers->heap[index];
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;
        if (timers->heap[parent]->at_us <= timer->at_us) break;
        heap_put(timers, index, timers->heap[parent]);
        index = parent;
    }
    heap_put(timers, index, timer);
}

static void heap_sift_down(struct leat_timers *timers, uint32_t index)
{
    struct leat_timer *timer = timers->heap[index];
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child >= timers->count) break;
        if (child + 1 < timers->count &&
            timers->heap[child + 1]->at_us < timers->heap[child]->at_us)
            child++;
        if (timer->at_us <= timers->heap[child]->at_us) break;
        heap_put(timers, index, timers->heap[child]);
        index = child;
    }
    heap_put(timers, index, timer);
}

static void heap_remove(struct leat_timers *timers, struct leat_timer *timer)
{
    uint32_t index = timer->heap_index_plus_1 - 1;
    LEAT_ASSERT_CMP(index, <, timers->count);
    LEAT_ASSERT(timers->heap[index] == timer);
    timer->heap_index_plus_1 = 0;
    struct leat_timer *last = timers->heap[--timers->count];
    if (last == timer) return;
    heap_put(timers, index, last);
    heap_sift_up(timers, index);
    heap_sift_down(timers, last->heap_index_plus_1 - 1);
}

static void clock_ask(struct leat_timers *timers, uint64_t at_us)
{
    timers->armed_at_us = at_us;
    timers->clock->wake_at(timers->clock->ctx, at_us);
}

void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    LEAT_ASSERT(timer->on_expired != NULL);
    uint64_t now_us = timers->clock->now_us(timers->clock->ctx);
    if (leat_timer_armed(timer)) heap_remove(timers, timer);
    LEAT_ASSERT_CMP(timers->count, <, timers->capacity);
    timer->at_us = delay_us > UINT64_MAX - 1 - now_us ? UINT64_MAX - 1 : now_us + delay_us;
    uint32_t index = timers->count++;
    heap_put(timers, index, timer);
    heap_sift_up(timers, index);
    if (timer->at_us < timers->armed_at_us) clock_ask(timers, timer->at_us);
}

void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    /* The clock keeps its request: a timeout is armed and stopped once per request, and one
     * needless wake-up costs less than asking again each time. */
    if (leat_timer_armed(timer)) heap_remove(timers, timer);
}

void leat_timers_run(struct leat_timers *timers)
{
    uint64_t now_us = timers->clock->now_us(timers->clock->ctx);
    /* What was asked for has come, so the clock holds no request any more. */
    if (now_us >= timers->armed_at_us) timers->armed_at_us = UINT64_MAX;
    /* At most as many as are armed now: a callback that re-arms itself with no delay must not hold
     * the actor here for ever. */
    for (uint32_t left = timers->count; left > 0 && timers->count > 0; left--) {
        struct leat_timer *timer = timers->heap[0];
        if (timer->at_us > now_us) break;
        heap_remove(timers, timer);
        timer->on_expired(timer);
    }
    uint64_t next_us = timers->count > 0 ? timers->heap[0]->at_us : UINT64_MAX;
    if (next_us != timers->armed_at_us) clock_ask(timers, next_us);
}
