/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of Kafka's groups to a home of rig.h. */
#ifndef LEAT_TESTS_GROUPS_CLASSIC_RIG_H
#define LEAT_TESTS_GROUPS_CLASSIC_RIG_H

#include "rig.h"

struct ask_group {
    struct leat_groups_request r;
    struct leat_classic_call call;
    struct leat_classic_protocol protocol;
    struct leat_classic_leaver leaver;
    struct leat_classic_share shares[128];
    bool answered;
};

struct leat_msg_string text(const char *chars);
struct ask_group *ask_new(enum leat_groups_kind kind, const char *member, uint32_t generation);
/** Session 2 s, rebalance 4 s, of the classic group "readers". */
struct ask_group *join_new(const char *member, const char *instance, const char *metadata);
struct ask_group *sync_new(const char *member, uint32_t generation);
struct ask_group *commit_new(const char *member, uint32_t generation,
                             const struct leat_groups_offset *rows, size_t count);
void ask_free(struct ask_group *a);
void start(struct home *home, struct ask_group *a);
void await(struct home *home, struct ask_group *a);
/** Start both, then await both. */
void answer_both(struct home *home, struct ask_group *a, struct ask_group *b);
/** Its answer; it is freed. */
leat_err rc_of(struct ask_group *a);
/** The same, from its start on. */
leat_err answer_of(struct home *home, struct ask_group *a);
leat_err beat(struct home *home, const char *member, const char *instance, uint32_t generation);
leat_err leave(struct home *home, const char *member, const char *instance);
leat_err commit(struct home *home, const char *member, uint32_t generation, uint32_t log,
                uint64_t offset, const char *metadata);
/** The committed offset of that log; UINT64_MAX: nothing is committed. */
uint64_t fetched(struct home *home, uint32_t log, const char *metadata);
/** A commit of offset 5 of that log is answered when the other tables of the home's room are read, and not before. */
void commit_waits_for_tables(struct home *home, uint32_t log);
/** A stored classic group of so many fields (5 are right), up to the head of its members. */
void classic_head_write(struct leat_msg_writer *writer, uint32_t fields, uint32_t members);
/** Everybody gets its own name as an assignment. */
void share_out(struct ask_group *sync, const struct leat_classic_call *joined);
/** A classic group of one member that owns all; the member's name and generation. */
uint32_t single(struct home *home, const char *instance, char *out_member);
/** A record that changes nothing and takes so many bytes more. */
void nothing_of(struct leat_groups *groups, const uint8_t *bytes, uint32_t count);
/** Fill the open batch, so that no record of a classic group fits, while an earlier append is under way: the home is
 * mute from then on. */
void batch_fill(struct home *home);

#endif
