/* SPDX-License-Identifier: Apache-2.0 */
/* A log of fake.h whose every request, event and answer goes into the trace, with what is told of the log after it.
 * After cmocka.h. For one test program only. */
#ifndef LEAT_TESTS_MULTILOG_WATCH_H
#define LEAT_TESTS_MULTILOG_WATCH_H

#include "reopen.h"
#include "tests/trace.h"

static struct {
    bool roll_wanted, copy_wanted, in_the_way; /* what the store port says when it is asked */
    leat_err refusal;
    bool full; /* no memory for a segment more */
} watched;

static struct sent watch_sent[16];
static unsigned watch_count;

static inline void watch_request(void *ctx, const struct leat_post *post,
                                 struct leat_store_req *req)
{
    static const char *const names[] = {
        [LEAT_STORE_RESERVE] = "RESERVE", [LEAT_STORE_COMMIT] = "COMMIT",
        [LEAT_STORE_CLOSE] = "CLOSE",     [LEAT_STORE_HIBERNATE] = "HIBERNATE",
        [LEAT_STORE_RESUME] = "RESUME",   [LEAT_STORE_DROP] = "DROP",
        [LEAT_STORE_EVICT] = "EVICT",     [LEAT_STORE_GIVE_UP] = "GIVE_UP"};
    const struct leat_segment *seg = req->seg;
    trace("%s s%llu", names[req->kind], (unsigned long long)(seg ? seg->id : req->id).v);
    if (req->kind == LEAT_STORE_RESERVE)
        trace(" %u/%u/%u e%u cap %u d%u", req->log.stream, req->log.streamlet, req->log.log,
              req->epoch.v, req->capacity, (unsigned)req->durability);
    if (req->kind == LEAT_STORE_COMMIT)
        trace(" %u..%u%s", req->from_bytes, req->to_bytes, req->follow ? " and on" : "");
    if (req->kind == LEAT_STORE_CLOSE || req->kind == LEAT_STORE_HIBERNATE)
        trace(" %u from %llu to %llu", seg->prefix_id.bytes, (unsigned long long)seg->base_offset,
              (unsigned long long)seg->next_offset);
    if (req->kind == LEAT_STORE_CLOSE)
        trace(" max %lld written %lld state %u", (long long)seg->max_timestamp_ms,
              (long long)seg->written_ms, (unsigned)seg->state);
    if (req->kind == LEAT_STORE_RESUME) trace(" cap %u", req->capacity);
    if (req->kind == LEAT_STORE_GIVE_UP)
        trace("%s%s passed %u", req->given_up ? " it" : "", req->front_given_up ? " its front" : "",
              seg->passed_bytes);
    trace("\n");
    fake_request(ctx, post, req);
}

static inline void watch_acked(void *owner, struct leat_log *log)
{
    trace("acked %llu\n", (unsigned long long)leat_log_acked_offset(log));
    fake_on_acked(owner, log);
}

static inline void watch_room(void *owner, struct leat_log *log)
{
    trace("room\n");
    fake_on_room(owner, log);
}

static inline void watch_opening(void *owner, struct leat_log *log)
{
    trace("opening s%llu\n", (unsigned long long)leat_log_head_segment(log));
    fake_on_opening(owner, log);
}

static inline bool watch_roll_wanted(void *ctx, const struct leat_segment *head)
{
    (void)ctx;
    trace("roll s%llu?\n", (unsigned long long)head->id.v);
    return watched.roll_wanted;
}

static inline bool watch_copy_wanted(void *ctx, const struct leat_segment *head)
{
    (void)ctx;
    trace("copy s%llu?\n", (unsigned long long)head->id.v);
    return watched.copy_wanted;
}

static inline bool watch_in_the_way(void *ctx, const struct leat_segment *head)
{
    (void)ctx;
    trace("in the way s%llu?\n", (unsigned long long)head->id.v);
    return watched.in_the_way;
}

static inline leat_err watch_refusal(void *ctx)
{
    (void)ctx;
    return watched.refusal;
}

static inline bool watch_full(void *owner, bool spare, uint64_t more)
{
    (void)owner;
    if (watched.full) trace("full?%s %llu\n", spare ? " spare" : "", (unsigned long long)more);
    return watched.full;
}

static inline void watch_ahead(void *ctx, struct leat_segment *seg, uint32_t upto)
{
    (void)ctx;
    trace("ahead s%llu %u\n", (unsigned long long)seg->id.v, upto);
}

/* From here on. Before the log is opened. */
static inline struct fake *watch(enum leat_durability durability)
{
    struct fake *fake = fake_create(5, durability);
    memset(&watched, 0, sizeof watched);
    watch_count = 0;
    fake->store_port.request = watch_request;
    fake->store_port.refusal = watch_refusal;
    fake->options.events.on_acked = watch_acked;
    fake->options.events.on_room = watch_room;
    fake->options.events.on_opening = watch_opening;
    fake->options.memory_is_full = watch_full;
    fake->open_at_once = false;
    return fake;
}

/* How it goes is not what is looked at. */
static inline void watch_end(struct fake *fake)
{
    size_t used = trace_used;
    fake_destroy(fake);
    trace_text[trace_used = used] = '\0';
}

/* The reported state of the log, and what the log waits for. */
static inline void state_trace(const struct fake *fake)
{
    const struct leat_log *log = fake->log;
    struct leat_log_info i = info_of(fake);
    trace("  state %u %llu..%llu acked %llu, s%llu..%llu %llu held, groups %llu+%llu, %llu bytes "
          "%llu memory, "
          "%llu records%s%s%s%s\n",
          (unsigned)i.state, (unsigned long long)i.first_offset, (unsigned long long)i.next_offset,
          (unsigned long long)i.acked_offset, (unsigned long long)i.first_segment,
          (unsigned long long)i.end_segment, (unsigned long long)i.segment_count,
          (unsigned long long)i.first_group, (unsigned long long)i.group_count,
          (unsigned long long)i.bytes, (unsigned long long)i.memory_bytes,
          (unsigned long long)i.appended_records, i.unloaded ? " cold" : "",
          log_is_hibernated(log) ? " hibernated" : "", log_is_quiet(log) ? "" : " busy",
          log->room_wanted ? " wants room" : "");
}

/* One thing that is under way is done; then the turn's end. */
static inline void deliver(struct fake *fake)
{
    if (!fake_deliver(fake)) trace("nothing\n");
    state_trace(fake);
}

static inline void watch_answer(struct leat_append *append, leat_err rc)
{
    trace("append %d: %s at %llu%s\n", (int)((struct sent *)append->owner - watch_sent),
          leat_err_name(rc), (unsigned long long)append->first_offset,
          append->duplicate ? " again" : "");
}

/* One batch, and the turn's end. */
static inline leat_err put_as(struct fake *fake, uint32_t count, uint32_t value, int64_t producer,
                              int32_t sequence)
{
    struct leat_batch batch;
    struct leat_error error = {0};
    unsigned at = watch_count++ % 16;
    struct sent *sent = &watch_sent[at];
    uint32_t total = fake_batch(bytes, sizeof bytes, count, value, 7000, producer,
                                producer < 0 ? -1 : 0, sequence);
    assert_int_equal(leat_batch_check(bytes, total, &batch, &error), LEAT_OK);
    *sent = (struct sent){.append = {.on_acked = watch_answer, .owner = sent}};
    leat_err rc = leat_log_append(fake->log, &batch, &sent->append, &error);
    if (rc) trace("append %u: %s\n", at, leat_err_name(rc));
    if (rc && rc != LEAT_E_AGAIN) assert_true(error.text[0] != '\0');
    fake_turn_end(fake);
    return rc;
}

static inline leat_err put(struct fake *fake, uint32_t count, uint32_t value)
{
    return put_as(fake, count, value, -1, -1);
}

/* Opened, with one acked batch in its head. */
static inline struct fake *watch_begun(enum leat_durability durability)
{
    struct fake *fake = watch(durability);
    size_t used = trace_used;
    fake->open_at_once = true;
    fake_open(fake, NULL, 0, NULL);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    assert_int_equal(leat_log_acked_offset(fake->log), 1);
    trace_text[trace_used = used] = '\0';
    return fake;
}

#endif
