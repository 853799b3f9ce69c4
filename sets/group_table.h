/* SPDX-License-Identifier: Apache-2.0 */
/* What a group holds beside its set: members, their protocols and assignments, and the bytes of all
 * that. Private to the sets. */
#ifndef LEAT_SETS_GROUP_TABLE_H
#define LEAT_SETS_GROUP_TABLE_H

#include "sets/groups.h"
#include "sets/table.h"

#include <string.h>

struct leat_group_member {
    char id[LEAT_SETS_MEMBER_BYTES_MAX + 1];
    uint32_t session_ms, rebalance_ms;
    uint64_t address; /* for whom its memory counts; 0: stored before that was */
    /* What it said when it joined, in one block of memory: strings and protocols lie behind each
     * other in `facts`. */
    void *facts;
    size_t facts_bytes;
    struct leat_msg_string instance, client, host;
    struct leat_group_protocol *protocols;
    uint32_t protocol_count;
    char *assignment; /* NULL: none yet, or empty */
    uint32_t assignment_bytes;
    /* Not stored: */
    bool pending;  /* was told an id and has not joined under it yet */
    bool nameless; /* has joined, and was never told its id: it can't come back */
    uint64_t deadline_us;
    struct leat_sets_request *join, *sync; /* held */
};

struct leat_group {
    enum leat_group_phase phase;
    char protocol_type[LEAT_GROUP_TEXT_BYTES_MAX + 1]; /* "": no member has said one */
    char protocol[LEAT_GROUP_TEXT_BYTES_MAX + 1];
    char leader[LEAT_SETS_MEMBER_BYTES_MAX + 1];
    struct leat_group_member **members; /* in the order of their joining; pending ones too */
    uint32_t member_count;
    size_t stored_bytes; /* of members and texts, encoded: at most this */
    size_t memory_bytes; /* of members */
    /* Not stored: */
    uint64_t settle_at_us, give_up_at_us, sync_by_us;
    bool first; /* PREPARING, and was empty before: waits for others to come */
    /* What was shared out last takes so much, until it is shared out anew or nobody is left. */
    size_t assigned_bytes;
};

struct leat_group *leat_group_create(void);
void leat_group_destroy(struct leat_group **group);
/** Exact name; NULL: none. Pending members too. */
struct leat_group_member *leat_group_member_find(const struct leat_group *group,
                                                 struct leat_msg_string id);
struct leat_group_member *leat_group_instance_find(const struct leat_group *group,
                                                   struct leat_msg_string instance);
/** At the end of the members; NULL: no memory. */
struct leat_group_member *leat_group_member_add(struct leat_group *group);
/** Forget it. Nothing of it may be held. */
void leat_group_member_remove(struct leat_group *group, struct leat_group_member *member);
/** What a member takes beside its assignment: one that is there, or one that a join would bring. */
size_t leat_group_member_bytes(const struct leat_group_member *member);
size_t leat_group_join_bytes(const struct leat_group_call *call);
/** What the assignments take that members have now. */
size_t leat_group_assigned_bytes(const struct leat_group *group);
/** Those that have joined, now or earlier. */
uint32_t leat_group_members_joined(const struct leat_group *group);
/** What protocols its members share out by. type: at most LEAT_GROUP_TEXT_BYTES_MAX bytes. */
void leat_group_type_set(struct leat_group *group, struct leat_msg_string type);
/** Take what a join says. Old facts stay on failure (NO_MEMORY). */
leat_err leat_group_facts_set(struct leat_group *group, struct leat_group_member *member,
                              const struct leat_group_call *call) LEAT_NODISCARD;
/** Does the join say what the member has said before? */
bool leat_group_facts_same(const struct leat_group_member *member,
                           const struct leat_group_call *call);
leat_err leat_group_assignment_set(struct leat_group *group, struct leat_group_member *member,
                                   struct leat_msg_string assignment) LEAT_NODISCARD;
void leat_group_assignments_drop(struct leat_group *group);
/** Does every member but `except` (may be NULL) know one of these protocols in common? */
bool leat_group_protocols_fit(const struct leat_group *group,
                              const struct leat_group_member *except,
                              const struct leat_group_call *call);
/** Pick the protocol that all know and most prefer. Members: at least one. */
void leat_group_protocol_pick(struct leat_group *group);
/** Its metadata under the group's protocol. */
struct leat_msg_string leat_group_metadata(const struct leat_group *group,
                                           const struct leat_group_member *member);

/** One value. with_members false: as if it had none. */
void leat_group_encode(struct leat_msg_writer *writer, const struct leat_group *group,
                       bool with_members);
/** NULL and a failed reader: malformed, or no memory. */
struct leat_group *leat_group_decode(struct leat_msg_reader *reader);

static inline struct leat_msg_string leat_group_text(const char *text)
{
    return (struct leat_msg_string){text, (uint32_t)strlen(text)};
}
static inline bool leat_group_text_same(struct leat_msg_string a, struct leat_msg_string b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.text, b.text, a.bytes) == 0);
}

#endif
