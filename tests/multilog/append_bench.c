/* SPDX-License-Identifier: Apache-2.0 */
/* How many records per CPU second one log takes: batches of 100 records of 100 bytes, checked and
 * appended at level memory, against a store port that recycles warm buffers. Not a test. */
#include <stdio.h>
#include <time.h>

#include "fake.h"

enum { BATCHES = 64, RECORDS = 100, TURN_BATCHES = 26, POOL = 8 };

static uint8_t *pool[POOL];
static unsigned pool_count;
static struct leat_segment *dropped;
static struct leat_store_req *waiting[16];
static unsigned waiting_count;
static bool dirty;
static uint64_t answers;
static bool check = true;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void on_acked(struct leat_append *append, leat_err rc)
{
    (void)append;
    LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
    answers++;
}
static void on_dirty(void *owner, struct leat_log *log)
{
    (void)owner;
    (void)log;
    dirty = true;
}
static void on_nothing(void *owner, struct leat_log *log)
{
    (void)owner;
    (void)log;
}
static void on_opening(void *owner, struct leat_log *log)
{
    *(bool *)owner = true;
    (void)log;
}
static void request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    (void)ctx;
    (void)post;
    waiting[waiting_count++] = req;
}
static bool safe(void *ctx, const struct leat_segment *seg)
{
    (void)ctx;
    (void)seg;
    return true;
}

/* RESERVE gives a recycled buffer; the zeroing is the store's work on its own thread, and is not
 * counted: buffers here are zeroed outside of the measured time where it matters. */
static void serve(struct leat_log *log, struct fake *fake)
{
    while (waiting_count) {
        struct leat_store_req *req = waiting[--waiting_count];
        struct leat_segment *seg = req->seg;
        req->rc = LEAT_OK;
        if (req->kind == LEAT_STORE_RESERVE) {
            seg = calloc(1, sizeof *seg);
            seg->id = req->id;
            seg->capacity = req->capacity;
            seg->state = LEAT_SEGMENT_RESERVED;
            seg->buffer = req->capacity == LEAT_SEGMENT_BYTES_MAX && pool_count
                              ? pool[--pool_count]
                              : fake_buffer(req->capacity);
            req->seg = seg;
        } else if (req->kind == LEAT_STORE_CLOSE) {
            seg->flushed = true;
            leat_log_on_evict_wanted(log, seg);
        } else if (req->kind == LEAT_STORE_EVICT) {
            if (seg->capacity == LEAT_SEGMENT_BYTES_MAX && pool_count < POOL)
                pool[pool_count++] = seg->buffer;
            else
                free(seg->buffer);
            seg->buffer = NULL;
        }
        req->on_done(req);
    }
    (void)fake;
}

static double run(uint64_t batch_total, bool with_producer)
{
    static uint8_t bytes[BATCHES][16384];
    static uint32_t sizes[BATCHES];
    static struct leat_append appends[BATCHES];
    struct fake *fake = fake_create(1, LEAT_DURABILITY_MEMORY);
    bool opening = false;
    fake->options.events =
        (struct leat_log_events){on_dirty, on_nothing, on_nothing, on_opening, NULL, NULL};
    fake->options.owner = &opening;
    fake->store_port =
        (struct leat_store_port){.ctx = fake, .request = request, .safe_in_memory = safe};
    fake_open(fake, NULL, 0, NULL);
    for (unsigned i = 0; i < BATCHES; i++)
        sizes[i] =
            fake_batch(bytes[i], sizeof bytes[i], RECORDS, 100, 1000000, with_producer ? 5 : -1,
                       with_producer ? 0 : -1, with_producer ? (int32_t)(i * RECORDS) : -1);
    double before = cpu_seconds();
    for (uint64_t done = 0; done < batch_total;) {
        for (unsigned i = 0; i < TURN_BATCHES && done < batch_total; i++) {
            struct leat_batch batch;
            unsigned at = (unsigned)(done % BATCHES);
            leat_err rc = check ? leat_batch_check(bytes[at], sizes[at], &batch, NULL)
                                : leat_batch_view(bytes[at], sizes[at], &batch);
            LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
            if (with_producer) batch.base_sequence = (int32_t)(done * RECORDS & 0x7fffffff);
            appends[at].on_acked = on_acked;
            rc = leat_log_append(fake->log, &batch, &appends[at], NULL);
            if (rc == LEAT_E_AGAIN) break;
            LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
            done++;
        }
        while (dirty || waiting_count) {
            if (dirty) {
                dirty = false;
                leat_log_turn_end(fake->log);
            }
            if (opening) {
                opening = false;
                leat_log_opened(fake->log, LEAT_OK);
            }
            serve(fake->log, fake);
        }
        fake->now_us += 100;
    }
    double seconds = cpu_seconds() - before;
    LEAT_ASSERT_CMP(answers, >=, batch_total);
    (void)dropped;
    return seconds;
}

int main(void)
{
    for (unsigned i = 0; i < POOL; i++)
        pool[pool_count++] = fake_buffer(LEAT_SEGMENT_BYTES_MAX);
    uint64_t batches = 500 * 1000;
    (void)run(batches / 10, false);
    for (int round = 0; round < 6; round++) {
        check = round < 4;
        bool with_producer = round & 1;
        double seconds = run(batches, with_producer);
        printf("%s, %s: %.1f M records per CPU second, %.0f ns a batch\n",
               check ? "checked" : "not checked", with_producer ? "idempotent" : "plain",
               (double)batches * RECORDS / seconds * 1e-6, seconds / (double)batches * 1e9);
    }
    return 0;
}
