/* SPDX-License-Identifier: Apache-2.0 */
/* One log in one condition: each case has a log of its own, of which the test changes any fields, makes one call, and
 * throws the log away. After cmocka.h. For one test program only. */
#ifndef LEAT_TESTS_MULTILOG_POKE_H
#define LEAT_TESTS_MULTILOG_POKE_H

#include "base/mem.h"
#include "watch.h"

static struct fake *fake;
static struct leat_log *it;

static inline void poke_begin(struct fake *made)
{
    fake = made;
    it = fake->log;
    it->dirty = fake->dirty = false;
}

/* The end of a log may look at the fields that the test has changed. */
static inline void poke_end(void)
{
    leat_index_destroy(&it->next_index);
    leat_index_destroy(&it->head.index);
    leat_index_destroy(&it->old.index);
    leat_producers_fini(&it->producers);
    leat_disk_read_free(&it->warm);
    leat_mem_free(it->slots);
    leat_mem_free(it->stream_name);
    leat_mem_free(it);
    for (unsigned i = 0; i < fake->held_count; i++) {
        free(fake->held[i].seg->buffer);
        free(fake->held[i].file);
        free(fake->held[i].seg);
    }
    leat_timers_fini(&fake->timers);
    free(fake);
}

/* begin makes the log, `change` is the case's difference, act makes the call and prints the outcome. */
#define CASE(begin, act, ...)                                                                      \
    do {                                                                                           \
        (begin)();                                                                                 \
        __VA_ARGS__;                                                                               \
        trace("%s: ", #__VA_ARGS__);                                                               \
        (act)();                                                                                   \
        poke_end();                                                                                \
    } while (0)

/* Nothing is different. */
#define CASE_AS_IT_IS(begin, act) CASE(begin, act, (void)0)

static inline void one_waits(uint64_t ack_position)
{
    struct sent *sent = &watch_sent[watch_count++ % 16];
    *sent = (struct sent){
        .append = {.ack_position = ack_position, .on_acked = watch_answer, .owner = sent}};
    leat_list_push_back(&it->waiting, &sent->append.waiting);
}

/* What was asked for is answered, and nothing follows from that yet. */
static inline void one_done(void)
{
    fake->ended = true;
    assert_true(fake_deliver(fake));
    fake->ended = false;
}

static inline struct log_slot *slot(uint32_t index)
{
    return log_slot_at(it, index);
}

/* That no entry says so yet is not what is looked at. */
static inline void poke_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    if (req->kind != LEAT_STORE_DROP) {
        watch_request(ctx, post, req);
        return;
    }
    trace("DROP s%llu\n", (unsigned long long)req->seg->id.v);
    fake_push(fake, (struct fake_event){.req = req});
}

/* Segments 0 to count - 1, closed, in memory and in their files, and a head. */
static inline void segments(unsigned count)
{
    struct fake *made = watch(LEAT_DURABILITY_MEMORY);
    size_t used = trace_used;
    made->open_at_once = true;
    made->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(made, NULL, 0, NULL);
    while (made->log->next_segment < count + 1)
        must_append(made, 50, 100);
    poke_begin(made);
    log_drop_next(it);
    while (fake->queued)
        one_done();
    trace_text[trace_used = used] = '\0';
    it->rolling_fast = it->dirty = false;
    it->store_port.request = poke_request;
    for (unsigned i = 0; i < count; i++)
        slot(i)->seg->flushed = true;
}

#endif
