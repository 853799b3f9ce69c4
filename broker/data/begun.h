/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of a stream that have begun, as the coordinator's tables say; shared by reference count, immutable. */
#ifndef LEAT_BROKER_DATA_BEGUN_H
#define LEAT_BROKER_DATA_BEGUN_H

#include "coordinator/coordinator.h"

struct leat_begun_log {
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    struct leat_log_record record;
};
struct leat_begun {
    _Atomic uint32_t refs;
    size_t count;
    struct leat_begun_log rows[]; /* ascending */
};
/** Of the streamlets that this incarnation owns; NULL: none has begun. Thread: coordinator. */
struct leat_begun *leat_begun_of(const struct leat_coordinator *coordinator,
                                 const struct leat_stream_desc *desc, uint64_t incarnation);
struct leat_begun *leat_begun_ref(struct leat_begun *begun);
void leat_begun_unref(struct leat_begun *begun);
const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref);

#endif
