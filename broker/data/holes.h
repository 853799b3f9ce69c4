/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that a log lacks between the segments that are here. */
#ifndef LEAT_BROKER_DATA_HOLES_H
#define LEAT_BROKER_DATA_HOLES_H

#include "multilog/log.h"

struct leat_partition;

/** Ids are missing between these. */
bool leat_takeover_has_holes(struct leat_segment *const *segs, size_t count) LEAT_NODISCARD;
/** Of which segments a log that is made with these can't say whether they are its own. Thread: its core. */
struct leat_segment_range leat_takeover_unsure(const struct leat_partition *partition,
                                               struct leat_segment *const *segs, size_t count,
                                               const struct leat_log_tail *tail) LEAT_NODISCARD;

#endif
