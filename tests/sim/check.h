/* SPDX-License-Identifier: Apache-2.0 */
/* What the workload did and saw, and whether that is allowed. The checks are named after the
 * anomalies that other systems were caught with:
 *
 *   A1 lost-write            an acked record is not there although later ones are
 *   A2 unseen                an acked record is never read after everything healed
 *   A3 duplicate             one value at two offsets
 *   A4 inconsistent-offsets  two values at one offset
 *   A5 aborted-read          a value that was definitely refused, or never sent, is read
 *   A6 poll-skip             a consumer jumps over offsets
 *   A7 nonmonotonic-poll     a consumer, or a committed offset, goes back
 *   A8 nonmonotonic-send     one producer's records are reordered in a log
 *   A10 stuck                producers do not finish or consumers do not reach the end
 *   A11 assert               the server failed an assertion (the process dies) or refuses to start
 *   A13 told                 operators or clients are told something else than is true of a node or a log (told.c)
 *   two-readers              two members of a group read one log in one generation
 *   vanished                 a record was shown to a consumer and is gone later
 *   untrimmed                a record that was given up, and that was answered, is read, or told of
 */
#ifndef LEAT_TESTS_SIM_CHECK_H
#define LEAT_TESTS_SIM_CHECK_H

#include "base/error.h"

enum {
    CHECK_STREAMS_MAX = 8,
    CHECK_STREAMLETS_MAX = 3,
    CHECK_LOGS_MAX = 3,
    CHECK_PRODUCERS_MAX = 32,
    CHECK_GROUPS_MAX = 4,
    CHECK_BEHIND_BYTES = 96,
};

enum check_disposition { CHECK_NOT_SENT, CHECK_OPEN, CHECK_ACKED, CHECK_UNKNOWN, CHECK_REFUSED };

struct check;

/** fail(ctx, sentence) is called for each violation. */
struct check *check_create(void (*fail)(void *ctx, const char *text), void *ctx);
void check_destroy(struct check **check);

/** trims: retention may drop a prefix, but never what lies in the last `keeps_bytes` of stored
 * batches. 0: it may drop everything. */
void check_stream_add(struct check *check, uint32_t stream, uint32_t streamlets, uint32_t logs,
                      enum leat_durability durability, bool trims, uint64_t keeps_bytes);

/* A value is (producer, number), number ascending per producer and stream from 0. */
struct check_value {
    uint32_t producer, number;
};
void check_sent(struct check *check, uint32_t stream, struct check_value value);
void check_acked(struct check *check, struct leat_log_ref log, struct check_value value,
                 uint64_t offset);
/** definite: the answer promises that it is not there and never will be. */
void check_failed(struct check *check, uint32_t stream, struct check_value value, bool definite);
enum check_disposition check_disposition_of(const struct check *check, uint32_t stream,
                                            struct check_value value);

/* One consumer's view. Zeroed = nothing read yet. */
struct check_reader {
    bool started[CHECK_STREAMS_MAX][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    uint64_t next[CHECK_STREAMS_MAX][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    /* Of a group: what was committed. Of a verifier: what was given up, as it began. */
    uint64_t floor[CHECK_STREAMS_MAX][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    bool in_group;
    uint32_t group;
    bool unordered; /* segment groups of a parallel group come in any order */
    bool verifier;  /* the final pass: what it reads is what is there */
};
/** A consumer begins, or its positions were taken away: the next record of each log may be an earlier record again. A
 * member of a group does not begin before the offset that is committed now; a member that was given its logs before
 * others committed more may read on, late, from the offset that it was given. */
void check_reader_reset(const struct check *check, struct check_reader *reader);
void check_seen(struct check *check, struct check_reader *reader, struct leat_log_ref log,
                uint64_t offset, struct check_value value);
/** A member of a parallel group was handed the record as of that segment group. A record is in one group (A3). */
void check_shared(struct check *check, struct leat_log_ref log, uint64_t offset, uint64_t group);
/** The place that was named for the batch of a record, which begins at offset `first`, is said to be that of the
 * offset `found`; rc OFFSET_OUT_OF_RANGE: there is said to be nothing; DAMAGED: where nothing can be damaged. */
void check_addressed(struct check *check, struct leat_log_ref log, uint64_t first, uint64_t offset,
                     leat_err rc, uint64_t found);
/** A reader goes back, or on, to an offset: the next record that it sees is the record at this offset. */
void check_reader_seek(struct check_reader *reader, struct leat_log_ref log, uint64_t offset);
/** A batch was shown: how much of its log's retention it takes. */
void check_stored(struct check *check, struct leat_log_ref log, uint64_t base_offset,
                  uint32_t records, uint32_t bytes);
/** A member of a group reads the log, in a generation: no other member reads the log in it. */
void check_owned(struct check *check, uint32_t group, struct leat_log_ref log, uint32_t generation,
                 uint32_t member);
/** A group's commit of `offset` was answered with success. */
void check_committed(struct check *check, uint32_t group, struct leat_log_ref log, uint64_t offset);
/** The highest that was; 0: none. */
uint64_t check_committed_to(const struct check *check, uint32_t group, struct leat_log_ref log);

/** Somebody asks to give up what is before an offset; UINT64_MAX: all that is acked when the request
 * arrives. From now on the log may begin there. */
void check_trim_asked(struct check *check, struct leat_log_ref log, uint64_t before);
/** That was answered with success: the log begins at first_offset, and never earlier again. */
void check_trimmed(struct check *check, struct leat_log_ref log, uint64_t before,
                   uint64_t first_offset);
/** What is before it was given up, and that was answered, or seen by a verifier. */
uint64_t check_trimmed_to(const struct check *check, struct leat_log_ref log);
/** A log was told to begin there by its owner, who was asked when it had been given up to `trimmed_to`. */
void check_told_to_begin(struct check *check, struct leat_log_ref log, uint64_t first_offset,
                         uint64_t trimmed_to);
/** May what is at this offset have been given up? */
bool check_may_be_trimmed(const struct check *check, struct leat_log_ref log, uint64_t offset);
/** Has anybody asked for that in any log of the stream? */
bool check_stream_trims(const struct check *check, uint32_t stream);

/** Everything of level `memory` that was not flushed may be gone now, if the logs say so. */
void check_power_cut(struct check *check);
/** The log says that its end is missing. level `disk`, or no power cut: that is a violation. */
void check_waiting(struct check *check, struct leat_log_ref log, const char *why);
/** Data of the log may be missing for a cause of the test's own (an operator accepted loss). */
void check_jumped(struct check *check, struct leat_log_ref log, uint64_t end_at_cut,
                  uint64_t next_offset);
/** An operator has asked for a log's loss to be accepted, or has been answered. In between it may have been:
 * a reader can be told of the jump before the operator is. */
void check_giving_up(struct check *check, struct leat_log_ref log, bool asked);
/** An operator gives up the records at offsets [from, to), which the owner named: these may be missing from now on, and
 * no others. Once for each log. */
void check_given_up(struct check *check, struct leat_log_ref log, uint64_t from, uint64_t to);
/** One past the highest offset known when the power was last cut. Taken when the operator asks: the
 * answer may come after a later cut. */
uint64_t check_end_at_cut(struct check *check, struct leat_log_ref log);
/** Has a cut put the log at risk since it was last excused? */
bool check_at_risk(const struct check *check, struct leat_log_ref log);

/** Of any log. */
bool check_loss_accepted(const struct check *check);
/** May data of the stream be missing: was a log put at risk, or did one say so? */
bool check_stream_excused(const struct check *check, uint32_t stream);

/** After the final pass of a verifier over a stream: everything acked or seen is there, dense and
 * in order. */
void check_final(struct check *check, uint32_t stream);
/** The same question about one log; what is missing is told instead of being a violation. */
bool check_log_whole(const struct check *check, struct leat_log_ref log,
                     char out_missing[CHECK_BEHIND_BYTES]);
/** The same of all logs of a stream: check_final() would find nothing missing. */
bool check_stream_whole(const struct check *check, uint32_t stream);
/** One past the highest offset of the log that was acked. */
uint64_t check_acked_end(const struct check *check, struct leat_log_ref log);
uint64_t check_acked_count(const struct check *check);
uint64_t check_open_count(const struct check *check);
/** Has a verifier read every log of the stream as far as anything was acked? */
bool check_audit_done(const struct check *check, uint32_t stream,
                      char out_behind[CHECK_BEHIND_BYTES]);
/** Another final pass begins: forget what the last one found. */
void check_audit_begin(struct check *check);
/** Has this reader (for a group: have its members together) come as far as anything was acked? */
bool check_reader_done(const struct check *check, const struct check_reader *reader,
                       uint32_t stream, char out_behind[CHECK_BEHIND_BYTES]);

#endif
