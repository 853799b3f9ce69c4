/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one home: groups, members, assignments, committed offsets; its bytes and its rules. */
#ifndef LEAT_GROUPS_TABLE_H
#define LEAT_GROUPS_TABLE_H

#include "groups/groups.h"
#include "wire/msg.h"

struct leat_group_member {
    char id[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t serial; /* never reused within a generation: owners are named by it */
    uint32_t session_ms;
    uint32_t streams[LEAT_GROUPS_STREAMS_MAX];
    uint32_t stream_count;
    /* Not stored: */
    uint64_t deadline_us;
    bool fresh; /* joined since the last generation */
    bool gone;  /* left or timed out; keeps its place until the next generation */
    struct leat_groups_request *join; /* held */
};
struct leat_segment_group {
    uint64_t group, offset; /* LEAT_SEGMENT_GROUP_DONE */
};
struct leat_group_log {
    struct leat_log_ref log;
    uint32_t owner; /* serial; ordered mode. 0: nobody */
    bool has_offset;
    uint64_t offset;                   /* ordered: next to read. parallel: in first_group */
    uint64_t first_group;              /* parallel: the first unfinished */
    uint64_t from_group;               /* parallel: first_group when this generation began */
    struct leat_segment_group *groups; /* parallel: begun or done above first_group, ascending */
    uint32_t group_count;
    /* Beside `offset`, of classic groups; see struct leat_groups_offset. */
    uint32_t leader_epoch_plus_1;
    uint32_t metadata_bytes;
    char *metadata;
};
struct leat_classic; /* classic_table.h */
enum {
    /* Signed on Kafka's wire. A stored generation above this is refused, so no group gets there. */
    LEAT_GROUP_GENERATION_MAX = INT32_MAX / 2,
    /* Above this the members of the next generation get serials from 1 on. */
    LEAT_GROUP_SERIALS_KEPT = INT32_MAX,
};
enum leat_group_phase { LEAT_GROUP_STABLE, LEAT_GROUP_PREPARING };
struct leat_group {
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    uint32_t generation, next_serial;
    enum leat_groups_mode mode;
    struct leat_group_member *members; /* in the order of their serials */
    uint32_t member_count;
    struct leat_group_log *logs; /* ascending */
    uint32_t log_count, log_room;
    struct leat_classic *classic; /* of a group of mode LEAT_GROUPS_CLASSIC, and of no other */
    size_t bytes;                 /* at most this, encoded; of a classic one: without members */
    /* address that made the group: the group counts to its share; 0: made by a version without this field */
    uint64_t maker;
    /* Not stored: */
    enum leat_group_phase phase;
    uint64_t settle_at_us, give_up_at_us;
    size_t memory_bytes;           /* memory of the group, without a classic group's members */
    struct leat_groups_room *room; /* that counts memory_bytes; NULL: none */
    uint64_t used_us; /* a member was there, or something was committed; 0: since the restart */
};

/** Tests: rows of logs and members that this thread looked at or moved. */
extern _Thread_local uint64_t leat_group_steps;

/** Ascending, each once; returns how many are left. */
size_t leat_log_refs_sort(struct leat_log_ref *refs, size_t count);
/** The group has members, or members that are joining. */
bool leat_group_peopled(const struct leat_group *group);
struct leat_group *leat_group_create(const char *name, enum leat_groups_mode mode);
void leat_group_destroy(struct leat_group **group);
struct leat_group_member *leat_group_member_find(struct leat_group *group, const char *id);
/** NULL: no memory. The array may move. */
struct leat_group_member *leat_group_member_add(struct leat_group *group);
/** The group's next generation. After the last one comes 1 again: generations are compared for equality alone. */
static inline void leat_group_generation_next(struct leat_group *group)
{
    bool last = group->generation >= LEAT_GROUP_GENERATION_MAX;
    group->generation = last ? 1 : group->generation + 1;
}
/** Remove the members that are gone. */
void leat_group_members_sweep(struct leat_group *group);
struct leat_group_log *leat_group_log_find(struct leat_group *group, struct leat_log_ref log);
/** Find or add. NULL: no memory. */
struct leat_group_log *leat_group_log_add(struct leat_group *group, struct leat_log_ref log);
/** The same for many, ascending: the table moves once. */
leat_err leat_group_logs_add(struct leat_group *group, const struct leat_log_ref *refs,
                             size_t count) LEAT_NODISCARD;
/** Forget the logs of which nothing is committed. For a group without members. */
void leat_group_logs_forget_unread(struct leat_group *group);
/** Forget the logs of a stream; returns how many there were. */
uint32_t leat_group_stream_drop(struct leat_group *group, uint32_t stream);
/** Share out all logs among the members, keeping what can be kept. Members: none gone. */
void leat_group_assign(struct leat_group *group);
/** Serial of the unit's owner in this generation; 0: none. */
uint32_t leat_group_owner(const struct leat_group *group, const struct leat_group_log *log,
                          int64_t segment_group);
/** What a member owns; given. */
leat_err leat_group_assigned(const struct leat_group *group, const struct leat_group_member *member,
                             struct leat_groups_assigned **out, size_t *out_count) LEAT_NODISCARD;
/* As the offset of a stored row: retention dropped all segment groups below this. */
#define LEAT_GROUP_GROUPS_GONE (LEAT_SEGMENT_GROUP_DONE - 1)
/** Does a commit of this group of segments bring no row more? */
bool leat_group_segment_group_known(const struct leat_group_log *log, uint64_t segment_group);
/** Segment groups below `segment_group` are gone: they count as finished. false: this was known. */
bool leat_group_skip(struct leat_group_log *log, uint64_t segment_group);
/** Take one committed value; LEAT_SEGMENT_GROUP_DONE of a whole log: there is none any more.
 * LEAT_E_AGAIN: too far ahead; LEAT_E_NO_MEMORY. */
leat_err leat_group_commit(struct leat_group *group, struct leat_group_log *log,
                           int64_t segment_group, uint64_t offset, bool force) LEAT_NODISCARD;
/** What is kept beside a committed offset. LEAT_E_NO_MEMORY. */
leat_err leat_group_offset_note(struct leat_group_log *log, uint32_t leader_epoch_plus_1,
                                const char *metadata, uint32_t metadata_bytes) LEAT_NODISCARD;
/** It is no classic group any more. */
void leat_group_classic_drop(struct leat_group *group);
/* Encoded, at most: of one segment group begun or done; of what stands beside an offset, without the metadata. */
enum { LEAT_GROUP_SEGMENT_GROUP_BYTES = 18, LEAT_GROUP_NOTE_BYTES = 10 };
/** What one log of the group takes, encoded, without segment groups, epoch and metadata. */
size_t leat_group_log_bytes(const struct leat_group *group, struct leat_log_ref log);
/** Is the group idle: no members, nothing committed? */
bool leat_group_idle(const struct leat_group *group);
void leat_group_bytes_count(struct leat_group *group);
/** From now on `room` counts the group's memory. */
void leat_group_room_enter(struct leat_group *group, struct leat_groups_room *room);
/** A group without a maker (stored by an earlier version) gets this address as its maker: additions to the group must
 * count for an address. The maker is stored with the group's next record. */
void leat_group_maker_adopt(struct leat_group *group, uint64_t address);
/* In memory, at most: a group without logs, native members and its classic group; and a log without metadata. */
size_t leat_group_memory_bytes_max(void);
size_t leat_group_log_memory_bytes(void);
/** with_members: those of a classic group, too. */
void leat_group_encode(struct leat_msg_writer *writer, const struct leat_group *group,
                       bool with_members);
/** NULL and a failed reader: malformed, or no memory. */
struct leat_group *leat_group_decode(struct leat_msg_reader *reader);

#endif
