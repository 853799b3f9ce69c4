/* SPDX-License-Identifier: Apache-2.0 */
/* Rights: which peers may send a kind of message, or ask for a command. The sender's identity comes from the
 * handshake of the link, never from a message. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_RIGHTS_H
#define LEAT_COORDINATOR_MEMBERSHIP_RIGHTS_H

#include "coordinator/membership/state.h"

enum co_right {
    CO_RIGHT_NOBODY,
    CO_RIGHT_NODE,   /* any node, of itself or for its clients */
    CO_RIGHT_SELF,   /* commands: the node that they are about, by name or incarnation */
    CO_RIGHT_VOTER,  /* a voter of this cluster */
    CO_RIGHT_LEADER, /* the voter that leads in the current term */
    CO_RIGHT_FORMER, /* any node, until there is a cluster */
};

/** The right that a message between coordinators needs. An unknown kind: CO_RIGHT_NOBODY. */
enum co_right co_kind_right(unsigned kind);
/** The right that a requested command needs. */
enum co_right co_command_right(unsigned kind);

/** membership/voters.c: is the peer a voter, as far as this node can tell, by the name that it proved? */
bool co_peer_votes(const struct leat_coordinator *coordinator, const struct co_peer *peer);
/** Does the peer lead, by this node's Raft? Where Raft does not run: by the voter's STATE with the latest term? */
bool co_peer_leads(const struct leat_coordinator *coordinator, const struct co_peer *peer);
/** May the peer send a message of that kind now? Else out_why is why not, for people. */
bool co_peer_may(const struct leat_coordinator *coordinator, const struct co_peer *peer,
                 unsigned kind, const char **out_why);
/** May the peer have this record (a REQUEST of a known kind) proposed? LEAT_E_DENIED, LEAT_E_INVALID; LEAT_E_AGAIN:
 * these tables do not know that incarnation yet. */
leat_err co_peer_may_ask(struct leat_coordinator *coordinator, const struct co_peer *peer,
                         const uint8_t *record, size_t bytes) LEAT_NODISCARD;
/** Why no honest voter sends this message of raft's; NULL: one may. It was decoded, and is the peer's. */
const char *co_message_offence(const struct leat_coordinator *coordinator,
                               const struct raft_message *message);
/** One line in the node log about a peer that sends what it has no right to; at most one line a second. */
void co_complain(struct leat_coordinator *coordinator, const struct co_peer *peer,
                 const char *what);

#endif
