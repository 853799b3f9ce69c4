/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of entries, for tests of which only the beginning matters. */
#ifndef LEAT_TESTS_COORDINATOR_ENTRIES_H
#define LEAT_TESTS_COORDINATOR_ENTRIES_H

#include "wire/message.h"

/* A NODE_UP behind name, address and cores: of a server alone, which says no more of itself. */
static inline void node_up_end(struct leat_msg_writer *w)
{
    static const uint8_t none[16];
    leat_msg_write_string(w, "", 0); /* node address */
    leat_msg_write_string(w, "", 0); /* rack */
    leat_msg_write_bin(w, none, sizeof none);
    leat_msg_write_u64(w, 0);
    leat_msg_write_string(w, "", 0); /* Kafka's address */
    for (unsigned i = 0; i < 2; i++)
        leat_msg_write_u64(w, 0);    /* boots */
    leat_msg_write_string(w, "", 0); /* host */
    leat_msg_write_u64(w, 0);
}

/* An OPENED behind its logs. */
static inline void opened_end(struct leat_msg_writer *w, uint64_t incarnation, uint64_t version)
{
    leat_msg_write_u64(w, incarnation);
    leat_msg_write_u64(w, version);
    leat_msg_write_bool(w, true);
}

/* An ADOPT behind its rows. */
static inline void adopt_end(struct leat_msg_writer *w, uint64_t seen)
{
    leat_msg_write_u64(w, seen);
    leat_msg_write_bool(w, false);
}

#endif
