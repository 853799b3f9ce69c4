/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the sets: one home's state, and what its rooms do for each other. Thread: home core.
 *
 * home.c: the sets of a home, answers, requests that wait. home_log.c: batches and acks. places.c: room for
 * sets. sets.c: life, requests, time. members.c: joins and sharing out. groups.c, group_members.c,
 * group_share.c: the same of groups. offsets.c: commits, fetches, deletion. state.c: snapshot and replay.
 * table.c, group_table.c: the data. Nothing calls what calls it. */
#ifndef LEAT_SETS_INTERNAL_H
#define LEAT_SETS_INTERNAL_H

#include "base/shares.h"
#include "sets/group_table.h"
#include "sets/groups.h"
#include "sets/sets.h"
#include "sets/table.h"

/* Records of the home log: [kind, ...]. Values are absolute: replay may repeat them. */
enum record_kind {
    RECORD_NOTHING = 0, /* [0] the first append of this life; is this the home still? */
    RECORD_SET = 1,     /* [1, set] */
    /* [2, set name, [[stream, streamlet, log, group or -1, offset]...]]; in groups a row may go on:
     * leader epoch plus 1, metadata. Group -1, offset LEAT_SETS_GROUP_DONE: the log's is forgotten */
    RECORD_COMMIT = 2,
    RECORD_DELETE = 3, /* [3, set name] */
    /* [4, set name, generation, group]; its offsets stay. Its maker may follow, for a set that is new by that */
    RECORD_GROUP = 4,
};
/* Rows that are looked at for answers of joins before others have their turn. */
enum { SLICE_ROWS = 128 * 1024 };
enum { RETRY_US = 100 * 1000, READ_POLL_US = 5 * 1000, RECORD_HEAD_BYTES = 512 };
enum life { LIFE_NEW, LIFE_WAKING, LIFE_AWAKE };
enum request_state {
    REQUEST_FREE,
    REQUEST_WAKING,
    REQUEST_ACK,
    REQUEST_JOIN,
    REQUEST_QUERY,
    REQUEST_READ
};

struct leat_sets {
    struct leat_sets_options options;
    struct leat_set *sets[LEAT_SETS_PER_HOME_MAX];
    uint32_t set_count;
    enum life life;
    bool broken;
    leat_err broken_rc;
    char why[LEAT_ERROR_TEXT_BYTES];
    struct leat_timer timer;
    /* Records gather in one buffer; the other holds the batch that waits for the log's room. */
    struct leat_batch_builder builder;
    uint8_t *buffers; /* one block: what a home without sets does not touch costs nothing */
    uint8_t *gather, *sealed, *scratch; /* in it */
    uint32_t sealed_bytes,
        touched_bytes;  /* touched: of the buffers, at most; the largest batch since they are new */
    uint64_t gathering; /* number of the batch that gathers; those below `acked` are acked */
    uint64_t acked;
    bool in_flight;
    struct leat_append append;
    struct leat_list waiting; /* for acks, for the first append; in order of arrival */
    struct leat_list querying;
    struct leat_list reading;  /* until all homes of the node have read their tables */
    bool unread;               /* counted as such in options.room */
    uint64_t read_by_us;       /* longer nobody waits for that */
    struct leat_shares shares; /* of LEAT_SETS_WAITING_MAX requests in these lists */
    bool untold;               /* joins that are acked wait for the next slice */
};

static inline uint64_t leat_sets_now_us(const struct leat_sets *sets)
{
    return sets->options.env->clock->now_us(sets->options.env->clock->ctx);
}

/* ---- home.c ---- */

/** To requests that the home's end leaves behind, with LEAT_E_TIMEOUT: whoever asked asks again. */
extern const char leat_sets_gone_words[];
struct leat_set *leat_sets_set_find(struct leat_sets *sets, const char *name);
/** Forget a set and all it holds; an unknown name is fine. */
void leat_sets_set_remove(struct leat_sets *sets, const char *name);
/** It is one of this home's from now on. */
void leat_sets_set_add(struct leat_sets *sets, struct leat_set *set);
/** NULL: there is room for so much more of an address; else why not. bytes: encoded. */
const char *leat_sets_lacks(const struct leat_sets *sets, uint64_t address, uint32_t more_sets,
                            size_t more_bytes, size_t more_memory);
/** Forget all sets. */
void leat_sets_table_clear(struct leat_sets *sets);
/** At most so many bytes, encoded. */
size_t leat_sets_table_bytes(const struct leat_sets *sets);
/** Fill in the answer; does not tell it. Always true: what leat_sets_do() returns for it. */
bool leat_sets_answer(struct leat_sets_request *request, leat_err rc, const char *why);
/** May the answer take so many bytes? false: it is answered by how many. */
bool leat_sets_answer_fits(struct leat_sets_request *request, size_t bytes);
void leat_sets_wait_begin(struct leat_sets *sets, struct leat_sets_request *request,
                          enum request_state state);
void leat_sets_wait_end(struct leat_sets *sets, struct leat_sets_request *request);
/** End the wait and run on_done: the request may be freed inside. */
void leat_sets_tell(struct leat_sets *sets, struct leat_sets_request *request);
/** All of a list are answered by `rc`. */
void leat_sets_wait_fail(struct leat_sets *sets, struct leat_list *list, leat_err rc,
                         const char *why);
/** No member and no group refers to a request any more. */
void leat_sets_joins_forget(struct leat_sets *sets);
/** Out of order for good: all that waits is answered by `rc`, as are all later requests. `why` is
 * copied. */
void leat_sets_break(struct leat_sets *sets, leat_err rc, const char *why);

/* ---- home_log.c ---- */

/** Whether the batch that gathers has room for a record of so many bytes. */
bool leat_sets_record_fits(const struct leat_sets *sets, size_t bytes);
/** Begin a record in the scratch buffer: one at a time; `fields` follow the kind. */
struct leat_msg_writer leat_sets_record_begin(struct leat_sets *sets, enum record_kind kind,
                                              uint32_t fields);
/** Put the record into the batch that gathers; leat_sets_record_fits() was asked. */
void leat_sets_record_add(struct leat_sets *sets, const struct leat_msg_writer *writer);
/** New buffers; nothing is in those that are there. Without memory these stay. */
void leat_sets_buffers_renew(struct leat_sets *sets);
/** Send what gathered, unless a batch is on its way or the log has no room. May break the home. */
void leat_sets_append_try(struct leat_sets *sets);
/** Answer OK once all that was added until now is acked. */
void leat_sets_wait_ack(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_all_acked(const struct leat_sets *sets);
/** Before what the table says of offsets is told. false: it may be told now; true: once an append that begins now is
 * acked, which leat_sets_wait_ack() waits for. May break the home. */
bool leat_sets_must_append(struct leat_sets *sets);

/* ---- places.c ---- */

/** May there be one set more? false: the request is answered. */
bool leat_sets_set_room(struct leat_sets *sets, struct leat_sets_request *request);
/** Forget a set, by a record; leat_sets_record_fits() RECORD_HEAD_BYTES was asked. */
void leat_sets_set_forget(struct leat_sets *sets, const struct leat_set *set);

/* ---- time.c ---- */

void leat_sets_timer_arm(struct leat_sets *sets);

/* ---- members.c ---- */

/** A sharing out is due; nothing if one is already. */
void leat_sets_prepare(struct leat_sets *sets, struct leat_set *set);
/** What time alone brings: silent members go, a generation begins. */
void leat_sets_set_step(struct leat_sets *sets, struct leat_set *set);
/** When leat_sets_set_step() has something to do; UINT64_MAX: never. */
uint64_t leat_sets_set_next_us(const struct leat_set *set);
/** The member of the request, in its generation; NULL: answered with why not. */
struct leat_set_member *leat_sets_member_check(struct leat_set *set,
                                               struct leat_sets_request *request);
/** What its member owns, into the answer of a join that is acked; returns how many rows it looked at. */
size_t leat_sets_join_fill(struct leat_sets *sets, struct leat_sets_request *join);
/* As leat_sets_do(). */
bool leat_sets_do_join(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_heartbeat(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_leave(struct leat_sets *sets, struct leat_sets_request *request);

/* ---- offsets.c; as leat_sets_do() ---- */

bool leat_sets_do_commit(struct leat_sets *sets, struct leat_sets_request *request);
/** Commits that ask about groups outlive the sets: they are answered when their questions are. */
void leat_sets_queries_leave(struct leat_sets *sets);
bool leat_sets_do_fetch(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_delete(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_offsets_delete(struct leat_sets *sets, struct leat_sets_request *request);

/* ---- group_members.c ---- */

/** As leat_sets_member_check(). */
struct leat_group_member *leat_sets_group_member_check(struct leat_set *set,
                                                       struct leat_sets_request *request);
/** Of what all members may take: is there so much for an address, where `except` (may be NULL) is not there? */
bool leat_sets_members_have_room(const struct leat_sets *sets, uint64_t address,
                                 const struct leat_group_member *except, size_t bytes);
/** Its session begins anew. */
void leat_sets_group_heard(struct leat_sets *sets, struct leat_group_member *member);
/** Forget a member; what it waits for is answered by `rc`. */
void leat_sets_group_member_end(struct leat_sets *sets, struct leat_group *group,
                                struct leat_group_member *member, leat_err rc);
/** What it holds, a member's join or sync, is answered by `rc`: its answer would be news of yesterday. */
void leat_sets_group_held_end(struct leat_sets *sets, struct leat_sets_request **held, leat_err rc);

/* ---- groups.c; do_ as leat_sets_do() ---- */

/** The set of the request, as a group; made or turned into one if need be. false: answered. */
bool leat_sets_group_ensure(struct leat_sets *sets, struct leat_sets_request *request,
                            struct leat_set **out_set);
/** The group does not hold the request any more. It is not answered. */
void leat_sets_group_cancel(struct leat_sets *sets, struct leat_set *set,
                            struct leat_sets_request *request);
bool leat_sets_do_group_join(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_group_heartbeat(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_group_leave(struct leat_sets *sets, struct leat_sets_request *request);

/* ---- group_share.c; do_ as leat_sets_do() ---- */

/** Put the group as it is into the batch that gathers. false: no room before the next ack. */
bool leat_sets_group_record(struct leat_sets *sets, struct leat_set *set);
void leat_sets_group_prepare(struct leat_sets *sets, struct leat_set *set);
/** A group that was empty waits some time for more members. */
void leat_sets_group_settle(struct leat_sets *sets, struct leat_group *group);
void leat_sets_group_step(struct leat_sets *sets, struct leat_set *set);
uint64_t leat_sets_group_next_us(const struct leat_group *group);
/** After a restart: all members have a session to be heard of. */
void leat_sets_group_wake(struct leat_sets *sets, struct leat_group *group);
/** Fill in what a member learns of its generation. leader: says who leads, in place of the truth, or
 * NULL. */
leat_err leat_sets_group_join_answer(struct leat_set *set, struct leat_group_member *member,
                                     struct leat_sets_request *join, const char *leader);
/** May the answer hold all that is known of the members? As leat_sets_answer_fits(). */
bool leat_sets_group_answer_fits(const struct leat_group *group, struct leat_sets_request *request);
/** leat_sets_group_join_answer() of a join that changes nothing. As leat_sets_do(). */
bool leat_sets_group_join_now(struct leat_sets *sets, struct leat_set *set,
                              struct leat_group_member *member, struct leat_sets_request *request,
                              const char *leader);
bool leat_sets_do_group_sync(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_describe(struct leat_sets *sets, struct leat_sets_request *request);
bool leat_sets_do_list(struct leat_sets *sets, struct leat_sets_request *request);

#endif
