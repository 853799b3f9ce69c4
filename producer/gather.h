/* SPDX-License-Identifier: Apache-2.0 */
/* Where records gather: the pool of batches, the open batch of each streamlet, and the list of what
 * is ready to go. No threads, no time, no network of its own: the simulator calls it from the
 * engine's actor, libleat from the callers' threads and the engine's, under one short lock. */
#ifndef LEAT_PRODUCER_GATHER_H
#define LEAT_PRODUCER_GATHER_H

#include "base/list.h"
#include "engine.h"

#include "leat/producer.h"

enum {
    LEAT_GATHER_STREAMS_MAX = 256,
    LEAT_GATHER_BATCHES_MIN = 2,
    /* Up to this linger a record without a time gets its batch's time, taken when the batch was
     * opened; beyond it, and in a batch that is held, the clock is asked for each record. */
    LEAT_GATHER_STAMP_ONCE_US = 5000,
};

/* A record's callback, noted only for records with a callback. */
struct leat_gather_call {
    uint32_t record;
    void (*fn)(void);
    void *arg;
};

struct leat_producer_batch {
    struct leat_list link;
    struct leat_gather_stream *stream;
    int32_t streamlet; /* -1: the engine chooses */
    struct leat_batch_builder builder;
    uint8_t *bytes;
    uint32_t capacity;
    bool big;  /* holds one record larger than a pool buffer; on the heap */
    bool held; /* due, and open all the same */
    uint64_t opened_us;
    int64_t opened_wall_ms;
    struct leat_gather_call *calls;
    uint32_t call_count, call_capacity;
    /* the engine's: */
    struct leat_list open_link;
    uint32_t byte_count; /* once finished */
    int32_t sequence;    /* -1: none yet */
    bool finished, in_flight, acked, reported, maybe_appended;
    leat_err code;
    uint64_t offset;
};

struct leat_gather_stream {
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    uint32_t name_bytes;
    uint32_t index;
    uint32_t streamlets;      /* 0: not known yet */
    uint32_t batch_bytes_max; /* that its server takes; 0: not known */
    leat_err refused;         /* lookups said so */
    char refused_text[LEAT_ERROR_TEXT_BYTES];
    struct leat_producer_batch *open_any;
    struct leat_producer_batch **open; /* [streamlets] */
};

struct leat_gather_clock {
    void *ctx;
    uint64_t (*now_us)(void *ctx);
    int64_t (*wall_ms)(void *ctx);
};

struct leat_gather {
    struct leat_gather_clock clock;
    uint32_t batch_bytes, batch_records, linger_us;
    uint8_t *memory;
    struct leat_producer_batch *batches;
    uint32_t batch_count, free_count;
    struct leat_list free, ready, opened; /* opened: oldest first */
    struct leat_list held; /* open as well, and due: they fill up until their log takes more */
    uint64_t big_bytes;    /* of big batches now */
    struct leat_gather_stream *streams[LEAT_GATHER_STREAMS_MAX];
    uint32_t stream_count;
    struct leat_gather_stream *last;     /* of the last add */
    struct leat_producer_batch *filling; /* a caller copies into it, without the lock */
    bool close_wanted;                   /* ... and its time was over meanwhile */
    uint64_t open_records;               /* added, fate not yet reported */
    bool notify_wanted;                  /* the engine sleeps: tell it */
    bool room_wanted;                    /* a caller waits for room or for a stream */
};

struct leat_gather_options {
    uint32_t batch_bytes, batch_records, linger_us;
    uint64_t buffer_bytes;
};

leat_err leat_gather_init(struct leat_gather *gather, const struct leat_gather_options *options,
                          struct leat_gather_clock clock) LEAT_NODISCARD;
void leat_gather_fini(struct leat_gather *gather);

struct leat_gather_record {
    const char *stream;
    int32_t streamlet; /* -1: by key, else any */
    int64_t timestamp_ms;
    const void *key, *value, *headers;
    size_t key_bytes, value_bytes, headers_bytes;
    uint32_t header_count;
    void (*fn)(void);
    void *arg;
};
/**
 * Copy one record into its open batch.
 *
 * out_notify  Set when the engine should be told.
 * Errors: LEAT_E_AGAIN (no free batch, or the stream's streamlets are not known yet and the record
 * has a key or a streamlet: room_wanted is set, the engine will say when), what a lookup was
 * refused with, LEAT_E_TOO_LARGE, LEAT_E_BAD_NAME, LEAT_E_TOO_MANY, LEAT_E_UNKNOWN_LOG.
 * Hot: one copy of the record.  Allocates: only for a new stream, a record beyond the batch size,
 * and growing a batch's list of callbacks, which it keeps.
 */
leat_err leat_gather_add(struct leat_gather *gather, const struct leat_gather_record *record,
                         bool *out_notify) LEAT_NODISCARD;
/**
 * A run: plain records are copied into their open batch without the lock. Plain: same stream as the last add, no
 * explicit streamlet, no callback.
 *
 * begin  Under the lock. Marks the batch as being filled: until end no other caller may add or close all, and the
 *        engine leaves the batch alone. NULL: no batch is open for such records, so leat_gather_add() must be called.
 * fill   Without the lock. Returns how many were taken: fewer than `count` where the batch ends or a
 *        record is not plain, which is leat_gather_add()'s work too.
 * end    Under the lock. Sets *out_notify when the engine should be told.
 *
 * Hot: one copy of each record, and no other work per record that can be done per run.  Allocates: nothing.
 */
struct leat_producer_batch *leat_gather_run_begin(struct leat_gather *gather, const char *stream);
size_t leat_gather_run_fill(const struct leat_gather *gather, struct leat_producer_batch *batch,
                            const struct leat_produce_record *records, size_t count);
void leat_gather_run_end(struct leat_gather *gather, size_t added, bool *out_notify);
/** Make every open batch ready. Not while a run is being filled. */
void leat_gather_close_all(struct leat_gather *gather);
/** Make ready what was opened at or before `before_us`, and move everything ready to `to`. A batch that is being
 * filled is made ready by leat_gather_run_end(), which then tells the engine. A due batch stays open if hold() (may
 * be NULL) says that its log has enough to send; hold() is called again with each call. */
typedef bool (*leat_gather_hold_fn)(void *arg, const struct leat_producer_batch *batch);
void leat_gather_take(struct leat_gather *gather, uint64_t before_us, leat_gather_hold_fn hold,
                      void *arg, struct leat_list *to);
/** Give a batch back. Returns true when callers that wait for room should be woken. */
bool leat_gather_give(struct leat_gather *gather, struct leat_producer_batch *batch);
/** Streams are known now (streamlets > 0) or refused. LEAT_E_NO_MEMORY. */
leat_err leat_gather_stream_known(struct leat_gather_stream *stream,
                                  uint32_t streamlets) LEAT_NODISCARD;

/** The streamlet of a key: MurmurHash2 with seed 0x9747b28c, its sign bit cleared, modulo the
 * streamlets: what Kafka's default partitioner does, so that keys stay where they are when a
 * stream is fed by both kinds of clients. Thread: any. */
uint32_t leat_gather_streamlet_of_key(const void *key, size_t bytes, uint32_t streamlets);

#endif
