/* SPDX-License-Identifier: Apache-2.0 */
/* Pull records from a stream.
 *
 * A consumer prefetches on a background thread; leat_consumer_next() and leat_consumer_next_many()
 * hand over records where they lie in the fetched bytes, without copying them. Alone it reads the
 * logs it was told; with a group name it shares the stream's logs (ordered) or segment groups (parallel) with
 * the other members of the group and commits offsets durably.
 */
#ifndef LEAT_CONSUMER_H
#define LEAT_CONSUMER_H

#include "leat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leat_consumer leat_consumer;

enum leat_from {
    LEAT_FROM_EARLIEST,
    LEAT_FROM_LATEST,
    LEAT_FROM_OFFSET,
    LEAT_FROM_TIME,
    LEAT_FROM_COMMITTED
};
enum leat_group_mode { LEAT_GROUP_ORDERED, LEAT_GROUP_PARALLEL };

typedef struct leat_consumer_options {
    size_t struct_bytes;
    const char *brokers;
    const char *client_name;
    const char *group; /* NULL: alone */
    enum leat_group_mode group_mode;
    enum leat_from from;  /* with a group: where to begin when nothing is committed */
    int64_t from_value;   /* offset (of every log), or ms since 1970 */
    int32_t streamlet;    /* -1: all */
    int32_t log;          /* -1: all */
    uint32_t fetch_bytes; /* most bytes of one answer; default 1 MiB, at most 4 MiB */
    uint32_t min_bytes;   /* an answer waits for so many, at most wait_ms; default 1 */
    uint32_t wait_ms;     /* long poll; default 500 */
    uint32_t session_ms;  /* group membership; default 10000 */
    uint32_t prefetch;    /* answers kept ready per connection; default 2 */
} leat_consumer_options;

typedef struct leat_record_view {
    const void *key, *value;
    size_t key_bytes, value_bytes;
    bool key_null, value_null;
    int64_t timestamp_ms;
    uint64_t offset;
    uint32_t streamlet, log, partition; /* partition = streamlet * Q + log */
    const void *headers;                /* raw, as in the stored record; header_count of them */
    size_t headers_bytes;
    uint32_t header_count;
} leat_record_view;

/* KerA's application offset (thesis §5.2.1): where in the storage of one log a batch lies. Acked bytes never
 * move, so it names the same records for as long as they are kept. Its usual form in text is
 * GROUP/SEGMENT/POSITION. Plain value. */
typedef struct leat_app_offset {
    uint64_t group;    /* of 16 segments each: segment / 16 */
    uint64_t segment;  /* of the log, counted from its first one ever, not from the group's */
    uint32_t position; /* bytes from the segment's beginning to the batch; 0: its first record that
                        * is still there */
} leat_app_offset;

LEAT_API void leat_consumer_options_init(leat_consumer_options *options);
/** Connect, find the stream, take positions. Waits at most timeout_ms. NULL and *message on
 * refusal. */
LEAT_API leat_consumer *leat_consumer_open(const char *stream, const leat_consumer_options *options,
                                           int timeout_ms, leat_message *message);
/** The next record, or NULL: *out_code 0 (nothing within timeout_ms) or an error. The view is valid
 * until the next call on this consumer. One thread at a time. Hot. */
LEAT_API const leat_record_view *leat_consumer_next(leat_consumer *consumer, int timeout_ms,
                                                    leat_code *out_code);
/** As leat_consumer_next() for up to `count` records at once, which costs less per record. Waits for
 * the first only, and gives at most what is left of its batch. Returns how many of views[] were
 * filled; 0: as NULL there. All are valid until the next call on this consumer. Hot. */
LEAT_API size_t leat_consumer_next_many(leat_consumer *consumer, leat_record_view *views,
                                        size_t count, int timeout_ms, leat_code *out_code);
/** Asynchronous: a file descriptor that is readable when leat_consumer_next(…, 0) would give
 * something. */
LEAT_API int leat_consumer_fd(leat_consumer *consumer);
/** True when every log that this consumer reads has been read to the acked end that its owner told
 * last. False while an owner does not answer, or waits for a missing end. */
LEAT_API bool leat_consumer_at_end(leat_consumer *consumer);
/** Begin again at an offset or a time, on one partition (-1: all). Refused for a partition that this consumer
 * does not read, for a negative offset, and in a group of mode parallel, whose segment groups are handed out. */
LEAT_API leat_code leat_consumer_seek(leat_consumer *consumer, int64_t partition,
                                      enum leat_from from, int64_t value);
/**
 * Begin again at an application offset: with the first record of the batch that lies there, on one partition; -1: on
 * the only one that this consumer reads. What lies there is asked first; refused, nothing has changed.
 *
 * to          Borrowed.
 * timeout_ms  To learn what lies there, while servers are away too; negative: no limit.
 * message     May be NULL. The sentence of a refusal; of OFFSET_OUT_OF_RANGE with where the log begins and ends.
 *
 * Views of records are void then, as by leat_consumer_next(). Thread: the consumer's.  Blocks: yes.
 * Errors: OFFSET_OUT_OF_RANGE (dropped or given up, behind the end, no batch begins there, or the segment is of
 * another segment group), UNKNOWN_LOG, NOT_ASSIGNED (in a consumer group), INVALID (-1 of several partitions),
 * UNSUPPORTED (a group of mode parallel), LOG_INCOMPLETE, DAMAGED, TIMEOUT; what ended this consumer.
 * Paper: KerA thesis §5.2.1, §5.2.3. Differs: the position is a batch's, which begins with its first record.
 */
LEAT_API leat_code leat_consumer_seek_app_offset(leat_consumer *consumer, int64_t partition,
                                                 const leat_app_offset *to, int timeout_ms,
                                                 leat_message *message);
/**
 * Where the batch of a record lies that this consumer has handed over.
 *
 * The server is asked once for a batch of which several are asked in a row; who never asks pays nothing.
 *
 * record      Borrowed. Only partition and offset are looked at, which may have been kept. Views stay valid.
 * timeout_ms  As of leat_consumer_seek_app_offset().
 * out         Written on success only.
 * message     May be NULL.
 *
 * Thread: the consumer's.  Blocks: when the server has to be asked.
 * Errors: OFFSET_OUT_OF_RANGE (no longer there), UNKNOWN_LOG, LOG_INCOMPLETE, DAMAGED, TIMEOUT; what ended this
 * consumer.
 * Paper: KerA thesis §5.2.1.
 */
LEAT_API leat_code leat_consumer_app_offset(leat_consumer *consumer, const leat_record_view *record,
                                            int timeout_ms, leat_app_offset *out,
                                            leat_message *message);
/** Commit the positions after the last record handed over, durably. Needs a group. While the node that
 * keeps them is out of reach, or followed by another, it is tried again for timeout_ms. */
LEAT_API leat_code leat_consumer_commit(leat_consumer *consumer, int timeout_ms,
                                        leat_message *message);
typedef struct leat_consumer_stats {
    uint64_t records, bytes;
    char last_text[256];
    leat_code last_error;
} leat_consumer_stats;
LEAT_API void leat_consumer_stats_get(leat_consumer *consumer, leat_consumer_stats *out_stats);
/**
 * What happened on the way and ended nothing: an offset out of range, a server out of reach. The oldest that was not
 * told yet; 32 are kept, of more only how many.
 *
 * out  Written when there is one; its code is of class retry or reroute.
 *
 * Thread: the consumer's.  Blocks: never.
 */
LEAT_API bool leat_consumer_note_next(leat_consumer *consumer, leat_message *out);
LEAT_API void leat_consumer_close(leat_consumer *consumer);

#ifdef __cplusplus
}
#endif
#endif
