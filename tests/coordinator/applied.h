/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of all kinds, drawn by dice that look at the tables: most of them sensible, some refused, some no command. */
#ifndef LEAT_TESTS_COORDINATOR_APPLIED_H
#define LEAT_TESTS_COORDINATOR_APPLIED_H

#include "base/random.h"
#include "coordinator/metadata/machine.h"

struct applied_dice {
    struct leat_xoshiro random;
    unsigned streams, nodes; /* of how many names */
    unsigned wrapped;        /* per cent that are requests */
    uint64_t sessions;       /* of so many sessions */
    uint64_t boots;          /* marks of directories given out */
    uint64_t adopting;       /* the incarnation that is in the middle of an adoption; 0: none */
};
struct applied_entry {
    uint8_t bytes[32768];
    size_t count;
};

void applied_dice_init(struct applied_dice *dice, uint64_t seed);
void applied_draw(struct applied_dice *dice, struct leat_machine *machine,
                  struct applied_entry *out);
uint64_t applied_below(struct applied_dice *dice, uint64_t bound);

#endif
