/* SPDX-License-Identifier: Apache-2.0 */
/* Records given up before an offset, for requests of any front door. Private to broker/ and kafka/. */
#ifndef LEAT_BROKER_ADMIN_TRIM_H
#define LEAT_BROKER_ADMIN_TRIM_H

#include "broker/net/core.h"

/* One log that is to begin later. Caller's storage. */
struct leat_trimmer {
    struct leat_core *core;
    struct leat_log_ref log; /* owned by this node */
    uint32_t home;           /* the core it lives on */
    uint64_t before;         /* records below it go; UINT64_MAX: all that is acked */
    uint64_t first_offset;   /* out: where it begins */
    leat_err rc;             /* out; see leat_log_trim_before() */
    struct leat_error error;
    void (*on_done)(struct leat_trimmer *trimmer); /* never from within leat_trimmer_start() */
    void *owner;
    /* its own */
    struct leat_mail mail;
    struct leat_log_trim trim;
};
/** The caller has set core, log, home, before, on_done and owner. Thread: core, as on_done. */
void leat_trimmer_start(struct leat_trimmer *trimmer);

#endif
