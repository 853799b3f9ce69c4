/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one home: sets, members, assignments, committed offsets; its bytes and its rules. */
#ifndef LEAT_SETS_TABLE_H
#define LEAT_SETS_TABLE_H

#include "sets/sets.h"
#include "wire/message.h"

struct leat_set_member {
    char id[LEAT_SETS_MEMBER_BYTES_MAX + 1];
    uint32_t serial; /* never reused within a set: owners are named by it */
    uint32_t session_ms;
    uint32_t streams[LEAT_SETS_STREAMS_MAX];
    uint32_t stream_count;
    /* Not stored: */
    uint64_t deadline_us;
    bool fresh; /* joined since the last generation */
    bool gone;  /* left or timed out; keeps its place until the next generation */
    struct leat_sets_request *join; /* held */
};
struct leat_set_group {
    uint64_t group, offset; /* LEAT_SETS_GROUP_DONE */
};
struct leat_set_log {
    struct leat_log_ref log;
    uint32_t owner; /* serial; ordered mode. 0: nobody */
    bool has_offset;
    uint64_t offset;               /* ordered: next to read. parallel: in first_group */
    uint64_t first_group;          /* parallel: the first unfinished */
    uint64_t from_group;           /* parallel: first_group when this generation began */
    struct leat_set_group *groups; /* parallel: begun or done above first_group, ascending */
    uint32_t group_count;
    /* Beside `offset`, of groups; see struct leat_sets_offset. */
    uint32_t leader_epoch_plus_1;
    uint32_t metadata_bytes;
    char *metadata;
};
struct leat_group; /* group_table.h */
enum leat_set_phase { LEAT_SET_STABLE, LEAT_SET_PREPARING };
struct leat_set {
    char name[LEAT_SETS_NAME_BYTES_MAX + 1];
    uint32_t generation, next_serial;
    enum leat_sets_mode mode;
    struct leat_set_member *members; /* in the order of their serials */
    uint32_t member_count;
    struct leat_set_log *logs; /* ascending */
    uint32_t log_count, log_room;
    struct leat_group *group; /* of a set of mode LEAT_SETS_GROUP, and of no other */
    size_t bytes;             /* at most this, encoded; of a group: without its members */
    uint64_t maker; /* address of who made it, for whom it counts; 0: made before that was stored */
    /* Not stored: */
    enum leat_set_phase phase;
    uint64_t settle_at_us, give_up_at_us;
    size_t memory_bytes;         /* what it takes, a group's members apart */
    struct leat_sets_room *room; /* that knows of memory_bytes; NULL: none does */
    uint64_t used_us; /* a member was there, or something was committed; 0: since the restart */
};

/** Tests: rows of logs and members that this thread looked at or moved. */
extern _Thread_local uint64_t leat_set_steps;

/** Ascending, each once; returns how many are left. */
size_t leat_log_refs_sort(struct leat_log_ref *refs, size_t count);
/** Somebody is in it, or on the way in. */
bool leat_set_peopled(const struct leat_set *set);
struct leat_set *leat_set_create(const char *name, enum leat_sets_mode mode);
void leat_set_destroy(struct leat_set **set);
struct leat_set_member *leat_set_member_find(struct leat_set *set, const char *id);
/** NULL: no memory. The array may move. */
struct leat_set_member *leat_set_member_add(struct leat_set *set);
/** Forget those that are gone. */
void leat_set_members_sweep(struct leat_set *set);
struct leat_set_log *leat_set_log_find(struct leat_set *set, struct leat_log_ref log);
/** Find or add. NULL: no memory. */
struct leat_set_log *leat_set_log_add(struct leat_set *set, struct leat_log_ref log);
/** The same for many, ascending: the table moves once. */
leat_err leat_set_logs_add(struct leat_set *set, const struct leat_log_ref *refs,
                           size_t count) LEAT_NODISCARD;
/** Forget the logs of which nothing is committed. For a set without members. */
void leat_set_logs_forget_unread(struct leat_set *set);
/** Forget the logs of a stream; returns how many there were. */
uint32_t leat_set_stream_drop(struct leat_set *set, uint32_t stream);
/** Share out all logs among the members, keeping what can be kept. Members: none gone. */
void leat_set_assign(struct leat_set *set);
/** Serial of who owns this unit in this generation; 0: nobody. */
uint32_t leat_set_owner(const struct leat_set *set, const struct leat_set_log *log, int64_t group);
/** What a member owns; given. */
leat_err leat_set_assigned(const struct leat_set *set, const struct leat_set_member *member,
                           struct leat_sets_assigned **out, size_t *out_count) LEAT_NODISCARD;
/* As the offset of a stored row: all groups below that one are gone, dropped by retention. */
#define LEAT_SET_GROUPS_GONE (LEAT_SETS_GROUP_DONE - 1)
/** Does a commit of this group of segments bring no row more? */
bool leat_set_group_known(const struct leat_set_log *log, uint64_t group);
/** Groups below `group` are gone: nobody waits for them. false: that was known. */
bool leat_set_skip(struct leat_set_log *log, uint64_t group);
/** Take one committed value; LEAT_SETS_GROUP_DONE of a whole log: there is none any more.
 * LEAT_E_AGAIN: too far ahead; LEAT_E_NO_MEMORY. */
leat_err leat_set_commit(struct leat_set *set, struct leat_set_log *log, int64_t group,
                         uint64_t offset, bool force) LEAT_NODISCARD;
/** What is kept beside a committed offset. LEAT_E_NO_MEMORY. */
leat_err leat_set_offset_note(struct leat_set_log *log, uint32_t leader_epoch_plus_1,
                              const char *metadata, uint32_t metadata_bytes) LEAT_NODISCARD;
/** It is no group any more. */
void leat_set_group_drop(struct leat_set *set);
/* Encoded, at most: of one group begun or done; of what stands beside an offset, without the metadata itself. */
enum { LEAT_SET_GROUP_BYTES = 18, LEAT_SET_NOTE_BYTES = 10 };
/** What one log of the set takes, encoded, without groups, epoch and metadata. */
size_t leat_set_log_bytes(const struct leat_set *set, struct leat_log_ref log);
/** Does it say nothing that anybody could miss: no members, nothing committed? */
bool leat_set_idle(const struct leat_set *set);
void leat_set_bytes_count(struct leat_set *set);
/** From now on a room knows what it takes. */
void leat_set_room_enter(struct leat_set *set, struct leat_sets_room *room);
/** A set that has no maker (an earlier version stored it) gets this address as its maker: what is added to the set has
 * to count for somebody. The maker is stored with the set's next record. */
void leat_set_maker_adopt(struct leat_set *set, uint64_t address);
/* In memory, at most: a set without logs, native members and its group's; and a log without metadata. */
size_t leat_set_memory_bytes_max(void);
size_t leat_set_log_memory_bytes(void);
/** with_members: those of a group, too. */
void leat_set_encode(struct leat_msg_writer *writer, const struct leat_set *set, bool with_members);
/** NULL and a failed reader: malformed, or no memory. */
struct leat_set *leat_set_decode(struct leat_msg_reader *reader);

#endif
