/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of a stream that have begun, as the coordinator's tables had them: see handover.h. */
#include <stdatomic.h>

#include "base/assert.h"
#include "base/log_rows.h"
#include "base/mem.h"
#include "broker/data/begun.h"
#include "broker/net/core.h"

static bool is_fresh(const struct leat_log_record *record)
{
    return !record->opened && record->tail.segment == UINT64_MAX && !record->tail.jumped &&
           record->tail.next_offset == 0;
}

struct leat_begun *leat_begun_of(const struct leat_coordinator *coordinator,
                                 const struct leat_stream_desc *desc, uint64_t incarnation)
{
    struct leat_begun *begun = NULL;
    uint32_t logs = desc->settings.logs;
    size_t room = 0;
    /* The coordinator is being opened: nothing is served yet */
    if (coordinator == NULL) return NULL;
    for (uint32_t s = 0; s < desc->streamlet_count; s++) {
        if (desc->streamlets[s].owner != incarnation) continue;
        for (uint32_t q = 0; q < logs; q++) {
            struct leat_begun_log row = {.ref = {desc->id, s, q}};
            if (!leat_coordinator_log(coordinator, row.ref, &row.record, &row.epoch)) continue;
            if (is_fresh(&row.record)) continue;
            if (begun == NULL || begun->count == room) {
                room = room == 0 ? 16 : 2 * room;
                struct leat_begun *grown = leat_mem_realloc(
                    LEAT_MEM_BROKER, begun, 1, sizeof *begun + room * sizeof begun->rows[0]);
                /* Committed and applied: there is no way back. */
                const bool committed_is_applied = grown != NULL;
                LEAT_ASSERT(committed_is_applied);
                begun = grown; /* zeroed, as far as it is new */
            }
            begun->rows[begun->count++] = row;
        }
    }
    if (begun != NULL) atomic_init(&begun->refs, 1);
    return begun;
}

struct leat_begun *leat_begun_ref(struct leat_begun *begun)
{
    if (begun != NULL) atomic_fetch_add_explicit(&begun->refs, 1, memory_order_relaxed);
    return begun;
}

void leat_begun_unref(struct leat_begun *begun)
{
    if (begun != NULL && atomic_fetch_sub_explicit(&begun->refs, 1, memory_order_acq_rel) == 1)
        leat_mem_free(begun);
}

const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref)
{
    if (begun == NULL) return NULL;
    size_t at = LEAT_LOG_ROWS_FROM(begun->rows, begun->count, ref, ref);
    return at < begun->count && leat_log_ref_equal(begun->rows[at].ref, ref) ? &begun->rows[at]
                                                                             : NULL;
}
