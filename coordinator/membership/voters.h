/* SPDX-License-Identifier: Apache-2.0 */
/* The voters, and this coordinator's identity. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_VOTERS_H
#define LEAT_COORDINATOR_MEMBERSHIP_VOTERS_H

#include "coordinator/membership/state.h"

/* self.c */
const char *co_own_name(const struct leat_coordinator *coordinator);
bool co_cluster_known(const struct leat_coordinator *coordinator);
/** Whether this node gets its tables from a voter: it does not vote, or not yet. */
bool co_learns(const struct leat_coordinator *coordinator);
/** Raft begins to run here, after forming or joining. */
leat_err co_vote_start(struct leat_coordinator *coordinator, struct leat_error *error);

/* voters.c: a server's `address` in raft's configuration is "host:port name" */
enum { CO_VOTER_BYTES_MAX = LEAT_ADDRESS_BYTES_MAX + 1 + LEAT_NODE_NAME_BYTES_MAX };
void co_voter_read(const char *text, struct leat_machine_voter *out);
void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name);
/** The peer that this node has connected to at the address of a voter, and that has sent its state; NULL: none. */
const struct co_peer *co_peer_reached(const struct leat_coordinator *coordinator,
                                      const char *address);
const struct raft_server *co_server_of_id(const struct leat_coordinator *coordinator, uint64_t id);
const struct raft_server *co_server_of_node(const struct leat_coordinator *coordinator,
                                            const char *name);
/** Is that server the node of this name? */
bool co_server_is(const struct leat_coordinator *coordinator, const struct raft_server *server,
                  const char *name);
/** This configuration is committed, after all entries that are applied. */
void co_voters_applied(struct leat_coordinator *coordinator,
                       const struct raft_configuration *configuration);
/** The index of the entry with the configuration that this voter uses; 0: none. */
uint64_t co_configuration_index(const struct leat_coordinator *coordinator);
/** The voters with a name in this voter's configuration, for STATE; returns how many. */
uint32_t co_introductions(const struct leat_coordinator *coordinator,
                          struct leat_machine_voter out_voters[LEAT_VOTERS_MAX]);
/** Takes the names of `count` voters from a peer's STATE, if the peer is a voter. */
void co_introductions_take(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           uint32_t count, struct leat_msg_reader *names);
/** Does the configuration lack the server's name, or have an old address? Then `out` has both as they are now. Leader
 * only. */
bool co_voter_correct(const struct leat_coordinator *coordinator, const struct raft_server *server,
                      char out[CO_VOTER_BYTES_MAX + 1]);

/* voter_file.c */
enum { CO_FILE_BODY_BYTES_MAX = 4096 /* nine voters of the longest names and addresses */ };
leat_err co_file_save(struct leat_coordinator *coordinator, const char *name, const uint8_t *body,
                      size_t count) LEAT_NODISCARD;
/** *out_count 0: there is no such file. */
leat_err co_file_load(struct leat_coordinator *coordinator, const char *name, uint8_t *out,
                      size_t *out_count, struct leat_error *error) LEAT_NODISCARD;
leat_err co_voter_save(struct leat_coordinator *coordinator,
                       const uint8_t cluster_id[16]) LEAT_NODISCARD;
/** This voter's identity: voter_id, cluster_id; 1 and none when nothing is stored. */
leat_err co_voter_load(struct leat_coordinator *coordinator,
                       struct leat_error *error) LEAT_NODISCARD;

#endif
