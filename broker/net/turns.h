/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which members get scarce work, whose cost is known only afterwards: the member that has had less comes
 * first.
 *
 * Deficit round robin, charged afterwards (Shreedhar and Varghese, Efficient Fair Queuing Using Deficit Round-Robin,
 * ToN 4(3), 1996): a member that has used much is passed over until all other waiting members have had as much. A
 * member that has asked for nothing for long has a credit of one costly piece of work, and no more: so a member that
 * asks for little does not wait for members that ask for much, however many these are. Private to broker/. Thread:
 * owner's. */
#ifndef LEAT_BROKER_NET_TURNS_H
#define LEAT_BROKER_NET_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

enum {
    LEAT_TURNS_ROUND_COST = 1024 * 1024, /* each waiting member may use so much in one round */
    LEAT_TURNS_ROUNDS = 64,              /* credit and debt are less than these together */
    LEAT_TURNS_CREDIT = 16 * 1024 * 1024,
};

/* A member that waits now and then. Zero, with an empty link: it has used nothing. */
struct leat_turn {
    struct leat_list link;
    uint64_t used; /* on the clock of its leat_turns */
};
struct leat_turns {
    uint64_t now; /* work that a member which always waits has used */
    /* Members that wait, by the round of their `used` */
    struct leat_list rounds[LEAT_TURNS_ROUNDS];
    uint32_t count; /* members that wait */
};

/* Turns of addresses, and of each address's connections: a client with many connections waits for its own
 * connections. */
struct leat_address_turns {
    struct leat_turn turn; /* among addresses */
    struct leat_turns members;
};

void leat_turns_init(struct leat_turns *turns);
void leat_turn_init(struct leat_turn *turn);
/** The member waits; nothing if it does already. */
void leat_turns_wait(struct leat_turns *turns, struct leat_turn *turn);
/** The member waits no more; nothing if it does not wait. */
void leat_turns_leave(struct leat_turns *turns, struct leat_turn *turn);
/** The member whose turn it is; it goes on waiting. NULL: no member waits. */
struct leat_turn *leat_turns_next(struct leat_turns *turns);
/** The member has used so much, whether it waited for its turn or not. */
void leat_turns_charge(struct leat_turns *turns, struct leat_turn *turn, uint64_t cost);

/** The turns of an address's connections, made at the first call; leat_mem_free() frees them. NULL: no memory. */
struct leat_address_turns *leat_address_turns_of(struct leat_address_turns **slot);
/** As the functions for one level. own: the member's address. */
void leat_address_turns_wait(struct leat_turns *addresses, struct leat_address_turns *own,
                             struct leat_turn *member);
void leat_address_turns_leave(struct leat_turns *addresses, struct leat_address_turns *own,
                              struct leat_turn *member);
struct leat_turn *leat_address_turns_next(struct leat_turns *addresses);
void leat_address_turns_charge(struct leat_turns *addresses, struct leat_address_turns *own,
                               struct leat_turn *member, uint64_t cost);

#endif
