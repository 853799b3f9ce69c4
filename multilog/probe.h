/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a log beyond leat_log_info(): its segments, its head, its
 * producers. Only tests call this; no program of the product links it.
 *
 * Thread: the log's core, or any while its actor does not run. */
#ifndef LEAT_MULTILOG_PROBE_H
#define LEAT_MULTILOG_PROBE_H

#include "multilog/log.h"

struct leat_log_seen {
    enum leat_log_state state;
    bool opened;         /* the coordinator has committed the owner's first segment */
    bool opening_paused; /* the coordinator could not commit that segment: it is asked again */
    bool front_unknown;  /* read from the disk again, but not yet where the log begins */
    bool
        older_come; /* older segments come from other nodes, or these are asked for the first time */
    bool damage_look;  /* leat_log_damage_find() may find something */
    bool refused;      /* the disk does not take a segment from another node */
    leat_err place_rc; /* the answer to the last request for a segment */
    uint32_t segment_count;
    const struct leat_segment *head; /* NULL: none */
    const struct leat_segment
        *old; /* the segment before the head, until its close is safe; NULL: none */
    uint64_t head_records;
    bool head_acked;      /* all bytes of the head are */
    uint64_t safe_offset; /* records below it are safe; of `old` as long as it is there */
    bool appends_wait;    /* batches of it are not acked yet */
    uint64_t acked_offset, next_offset;
    uint64_t trim_segment; /* retention gives up the segments before it */
};
void leat_log_see(const struct leat_log *log, struct leat_log_seen *out_seen);

struct leat_log_segment_seen {
    const struct leat_segment *seg; /* NULL: the log has no such segment */
    bool closed;                    /* its close entry is safe */
    bool dropping;
};
/** The segments by id, ascending; index: below segment_count. */
struct leat_log_segment_seen leat_log_see_segment(const struct leat_log *log, uint32_t index);
/** The segment of this id. */
struct leat_log_segment_seen leat_log_see_id(const struct leat_log *log, uint64_t segment);

/** The next producer that the log knows; *at is 0 before the first one. false: no more, or states were given up to
 * make room. */
bool leat_log_see_producer(const struct leat_log *log, uint32_t *at, int64_t *out_id,
                           int32_t *out_first_sequence);

/* ---- faults ---- */

/** From now on the first segment's records are damaged, and no node has them, as far as the log knows. */
void leat_log_first_lose(struct leat_log *log);
/** From now on the log takes no appends, as if its last segment were damaged, and no node had its bytes. */
void leat_log_last_lose(struct leat_log *log);
/** A start passed over so many bytes behind the end of the first segment, as far as the log knows. */
void leat_log_first_pass(struct leat_log *log, uint32_t bytes);

#endif
