/* SPDX-License-Identifier: Apache-2.0 */
/* What a classic group holds beside its struct leat_group: members, their protocols and assignments, and the bytes of
 * all that. Private to the groups. */
#ifndef LEAT_GROUPS_CLASSIC_TABLE_H
#define LEAT_GROUPS_CLASSIC_TABLE_H

#include "base/assert.h"
#include "groups/classic.h"
#include "groups/table.h"

#include <string.h>

struct leat_classic_member {
    char id[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t session_ms, rebalance_ms;
    /* to whose share its memory counts; 0: stored by a version without this field */
    uint64_t address;
    /* Its JOIN, in one block of memory: strings and protocols are one after the other in `facts`. */
    void *facts;
    size_t facts_bytes;
    struct leat_msg_string instance, client, host;
    struct leat_classic_protocol *protocols;
    uint32_t protocol_count;
    char *assignment; /* NULL: none yet, or empty */
    uint32_t assignment_bytes;
    /* Not stored: */
    bool pending;  /* was told an id and has not joined under it yet */
    bool nameless; /* has joined, and was never told its id: it can't come back */
    uint64_t deadline_us;
    struct leat_groups_request *join, *sync; /* held */
};

struct leat_classic {
    enum leat_classic_phase phase;                       /* leat_classic_enter() */
    char protocol_type[LEAT_CLASSIC_TEXT_BYTES_MAX + 1]; /* "": no member has said one */
    char protocol[LEAT_CLASSIC_TEXT_BYTES_MAX + 1];
    char leader[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    struct leat_classic_member **members; /* in the order of their joining; pending ones too */
    uint32_t member_count;
    size_t stored_bytes; /* of members and texts, encoded: at most this */
    size_t memory_bytes; /* of members */
    /* Not stored: */
    uint64_t settle_at_us, give_up_at_us, sync_by_us;
    bool first; /* PREPARING, and was empty before: waits for others to come */
    /* Memory of the last assignments, until the next assignment or until no member is left. */
    size_t assigned_bytes;
};

/** The step from one phase to the next (README.md, "States"). A step for whose record there was no room is undone. */
static inline void leat_classic_enter(struct leat_classic *classic, enum leat_classic_phase to)
{
    static const unsigned follow[] = {
        [LEAT_CLASSIC_EMPTY] = 1u << LEAT_CLASSIC_PREPARING,
        [LEAT_CLASSIC_PREPARING] = 1u << LEAT_CLASSIC_COMPLETING | 1u << LEAT_CLASSIC_EMPTY,
        [LEAT_CLASSIC_COMPLETING] = 1u << LEAT_CLASSIC_STABLE | 1u << LEAT_CLASSIC_PREPARING,
        [LEAT_CLASSIC_STABLE] = 1u << LEAT_CLASSIC_PREPARING | 1u << LEAT_CLASSIC_COMPLETING,
    };
    LEAT_ASSERT(follow[classic->phase] & 1u << to);
    classic->phase = to;
}

struct leat_classic *leat_classic_create(void);
void leat_classic_destroy(struct leat_classic **classic);
/** Exact name; NULL: none. Pending members too. */
struct leat_classic_member *leat_classic_member_find(const struct leat_classic *classic,
                                                     struct leat_msg_string id);
struct leat_classic_member *leat_classic_instance_find(const struct leat_classic *classic,
                                                       struct leat_msg_string instance);
/** At the end of the members; NULL: no memory. */
struct leat_classic_member *leat_classic_member_add(struct leat_classic *classic);
/** Remove the member. No request of the member may be held. */
void leat_classic_member_remove(struct leat_classic *classic, struct leat_classic_member *member);
/** The memory of a member without its assignment: of a present member, or of the member that a join would add. */
size_t leat_classic_member_bytes(const struct leat_classic_member *member);
size_t leat_classic_join_bytes(const struct leat_classic_call *call);
/** The memory of the members' present assignments. */
size_t leat_classic_assigned_bytes(const struct leat_classic *classic);
/** The number of members that have joined, now or earlier. */
uint32_t leat_classic_members_joined(const struct leat_classic *classic);
/** The protocol type of the members. type: at most LEAT_CLASSIC_TEXT_BYTES_MAX bytes. */
void leat_classic_type_set(struct leat_classic *classic, struct leat_msg_string type);
/** Take the content of a join. Old facts stay on failure (NO_MEMORY). */
leat_err leat_classic_facts_set(struct leat_classic *classic, struct leat_classic_member *member,
                                const struct leat_classic_call *call) LEAT_NODISCARD;
/** Does the join say what the member has said before? */
bool leat_classic_facts_same(const struct leat_classic_member *member,
                             const struct leat_classic_call *call);
leat_err leat_classic_assignment_set(struct leat_classic *classic,
                                     struct leat_classic_member *member,
                                     struct leat_msg_string assignment) LEAT_NODISCARD;
void leat_classic_assignments_drop(struct leat_classic *classic);
/** Does every member but `except` (may be NULL) know one of these protocols in common? */
bool leat_classic_protocols_fit(const struct leat_classic *classic,
                                const struct leat_classic_member *except,
                                const struct leat_classic_call *call);
/** Pick the protocol that all know and most prefer. Members: at least one. */
void leat_classic_protocol_pick(struct leat_classic *classic);
/** Its metadata under the group's protocol. */
struct leat_msg_string leat_classic_metadata(const struct leat_classic *classic,
                                             const struct leat_classic_member *member);

/** One value. with_members false: as if it had none. */
void leat_classic_encode(struct leat_msg_writer *writer, const struct leat_classic *classic,
                         bool with_members);
/** NULL and a failed reader: malformed, or no memory. */
struct leat_classic *leat_classic_decode(struct leat_msg_reader *reader);

static inline struct leat_msg_string leat_classic_text(const char *text)
{
    return (struct leat_msg_string){text, (uint32_t)strlen(text)};
}
static inline bool leat_classic_text_same(struct leat_msg_string a, struct leat_msg_string b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.text, b.text, a.bytes) == 0);
}

#endif
