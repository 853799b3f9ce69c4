/* SPDX-License-Identifier: Apache-2.0 */
/* Append records to streams.
 *
 * A producer has connections of its own and works on a background thread that the producers and
 * consumers of a process share (one thread per core). Records gather in batches per log (by
 * size and by linger) and are sent, several in flight; each record's fate is reported exactly once.
 * Retries are the producer's own work: they never duplicate and never reorder what one producer
 * sends to one log. All functions may be called from any thread.
 */
#ifndef LEAT_PRODUCER_H
#define LEAT_PRODUCER_H

#include "leat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leat_producer leat_producer;

typedef struct leat_producer_options {
    size_t struct_bytes; /* sizeof (leat_producer_options); set by leat_producer_options_init() */
    const char
        *brokers; /* "host:port,…" or "unix:path"; NULL: $LEAT_BROKERS, else 127.0.0.1:7700 */
    const char *client_name; /* NULL: the program's name */
    uint32_t batch_bytes; /* a batch is sent when it has this many bytes; default 64 KiB, at most 1
                             MiB */
    uint32_t linger_us;   /* or when its first record has waited this long; default 1000 */
    int compression;      /* 0 none, 3 lz4, 4 zstd */
    uint32_t
        buffer_bytes;    /* records not yet acked, of all streamlets together; leat_produce() waits
                            beyond it; default 32 MiB */
    uint32_t timeout_ms; /* a record that could not be acked for this long fails, outcome unknown;
                            default 120000 */
    bool create_streams; /* ask the server to create missing streams; default true */
    uint32_t batch_records; /* a batch is also sent when it has this many records; 0: no limit */
} leat_producer_options;

typedef struct leat_result {
    /* 0: acked. Of class LEAT_DO_REJECT: not in the log, now or ever. Any other code: it may be there, or
     * come to light; who produces it again may have it twice. */
    leat_code code;
    uint32_t streamlet, log;
    uint64_t offset;  /* of this record; UINT64_MAX: acked, where is no longer known */
    const char *text; /* sentence for people; valid during the call */
} leat_result;

/** A record's fate; runs on a background thread that others share, in order per log. It must not
 * wait: no leat_producer_close(), leat_producer_flush() or leat_produce_wait() of any producer.
 * leat_produce() is allowed, and does not wait there: while the buffer is full it returns AGAIN. */
typedef void (*leat_result_fn)(void *arg, const leat_result *result);

typedef struct leat_produce_record {
    const void *key; /* NULL: no key. Records with the same key go to the same streamlet */
    size_t key_bytes;
    const void *value; /* NULL: null value */
    size_t value_bytes;
    int64_t timestamp_ms; /* 0: now */
    int32_t streamlet;    /* -1: by key, else round-robin per batch */
    const void *headers;  /* as Kafka encodes them, without the count; NULL: none */
    size_t headers_bytes;
    uint32_t header_count;
} leat_produce_record;

/* Keys: the streamlet is MurmurHash2 (seed 0x9747b28c) of the key, its sign bit cleared, modulo the
 * number of streamlets, as Kafka's default partitioner has it. */

LEAT_API void leat_producer_options_init(leat_producer_options *options);
/** Start a producer. Does not wait for a server. NULL and *message on refusal. message may be NULL.
 */
LEAT_API leat_producer *leat_producer_open(const leat_producer_options *options,
                                           leat_message *message);
/** Queue one record (key and value are copied). Waits while the buffer is full, and at first until
 * the stream's streamlets are known, timeout_ms at most (then TIMEOUT: nothing was queued). on_result may be
 * NULL. Returns 0, or why it was refused at once; then on_result does not run. */
LEAT_API leat_code leat_produce(leat_producer *producer, const char *stream,
                                const leat_produce_record *record, leat_result_fn on_result,
                                void *arg);
/**
 * Queue many records with one call: the lock is taken once for a handful of them, which is most of
 * what a small record costs. on_result runs for each. Returns 0 when all were queued, else why
 * record number *out_queued (may be NULL) was refused; those before it are queued.
 */
LEAT_API leat_code leat_produce_many(leat_producer *producer, const char *stream,
                                     const leat_produce_record *records, size_t count,
                                     leat_result_fn on_result, void *arg, size_t *out_queued);
/** As leat_produce(), and wait for the ack. *out_result (may be NULL) is filled whatever is returned; its text is
 * the code's and stays valid. */
LEAT_API leat_code leat_produce_wait(leat_producer *producer, const char *stream,
                                     const leat_produce_record *record, leat_result *out_result);
/** Send what has gathered and wait until everything is acked or failed, at most timeout_ms (-1: no
 * limit). The number of records still open is returned. */
LEAT_API uint64_t leat_producer_flush(leat_producer *producer, int timeout_ms);
typedef struct leat_producer_stats {
    uint64_t records_acked, bytes_acked, records_failed, batches_acked, retries;
    leat_code last_error;
    char last_text[256];
} leat_producer_stats;
LEAT_API void leat_producer_stats_get(leat_producer *producer, leat_producer_stats *out_stats);
/** Flush (as long as timeout_ms of the options) and end. NULL is allowed. */
LEAT_API void leat_producer_close(leat_producer *producer);

#ifdef __cplusplus
}
#endif
#endif
