/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is at work that is scarce, and whose cost is known only when it is done: who has had less comes first.
 *
 * Deficit round robin, charged afterwards (Shreedhar and Varghese, Efficient Fair Queuing Using Deficit Round-Robin,
 * ToN 4(3), 1996): whoever has used much is passed over until all others that wait had as much. Who has waited for
 * nothing for long has a credit of one costly piece of work, and no more: so whoever asks for little does not wait for
 * those who ask for much, however many these are. Private to broker/. Thread: owner's. */
#ifndef LEAT_BROKER_NET_TURNS_H
#define LEAT_BROKER_NET_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

enum {
    LEAT_TURNS_ROUND_COST = 1024 * 1024, /* what all that wait may use in one round */
    LEAT_TURNS_ROUNDS = 64,              /* credit and debt are less than these together */
    LEAT_TURNS_CREDIT = 16 * 1024 * 1024,
};

/* One that waits now and then. Zero, with an empty link: it has used nothing. */
struct leat_turn {
    struct leat_list link;
    uint64_t used; /* on the clock of its leat_turns */
};
struct leat_turns {
    uint64_t now;                               /* what those that always wait have used */
    struct leat_list rounds[LEAT_TURNS_ROUNDS]; /* who waits, by the round that `used` is in */
    uint32_t count;                             /* that wait */
};

/* Turns of addresses, and of each its connections: whoever has many connections waits for itself. */
struct leat_address_turns {
    struct leat_turn turn; /* among addresses */
    struct leat_turns members;
};

void leat_turns_init(struct leat_turns *turns);
void leat_turn_init(struct leat_turn *turn);
/** It waits; nothing if it does already. */
void leat_turns_wait(struct leat_turns *turns, struct leat_turn *turn);
/** It waits no more; nothing if it does not. */
void leat_turns_leave(struct leat_turns *turns, struct leat_turn *turn);
/** Whose turn it is; it goes on waiting. NULL: nobody waits. */
struct leat_turn *leat_turns_next(struct leat_turns *turns);
/** It has used so much, whether its turn was waited for or not. */
void leat_turns_charge(struct leat_turns *turns, struct leat_turn *turn, uint64_t cost);

/** Those of an address, made when they are asked for first; leat_mem_free() frees them. NULL: no memory. */
struct leat_address_turns *leat_address_turns_of(struct leat_address_turns **slot);
/** As those of one level. own: the member's address. */
void leat_address_turns_wait(struct leat_turns *addresses, struct leat_address_turns *own,
                             struct leat_turn *member);
void leat_address_turns_leave(struct leat_turns *addresses, struct leat_address_turns *own,
                              struct leat_turn *member);
struct leat_turn *leat_address_turns_next(struct leat_turns *addresses);
void leat_address_turns_charge(struct leat_turns *addresses, struct leat_address_turns *own,
                               struct leat_turn *member, uint64_t cost);

#endif
