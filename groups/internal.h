/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the groups: the state of a home, and the functions between its files. Thread: home core.
 *
 * home.c: the groups of a home, answers, requests that wait. home_log.c: batches and acks. places.c: room for groups.
 * groups.c: life, requests, time. members.c: joins and sharing out. classic.c, classic_members.c, classic_share.c:
 * the same of classic groups. offsets.c: commits, fetches, deletion. state.c: snapshot and replay. table.c,
 * classic_table.c: the data. stored.c: the functions from bodies.def. check.c: what
 * is true between two turns. No two of these files call each other. */
#ifndef LEAT_GROUPS_INTERNAL_H
#define LEAT_GROUPS_INTERNAL_H

#include "base/assert.h"
#include "base/shares.h"
#include "groups/classic.h"
#include "groups/classic_table.h"
#include "groups/groups.h"
#include "groups/stored.h"
#include "groups/table.h"

/* Rows that are read for answers of joins before other requests have their turn. */
enum { SLICE_ROWS = 128 * 1024 };
enum { RETRY_US = 100 * 1000, READ_POLL_US = 5 * 1000, RECORD_HEAD_BYTES = 512 };
/* README.md, "States". */
enum life { LIFE_NEW, LIFE_WAKING, LIFE_AWAKE };
enum request_state {
    REQUEST_FREE,
    REQUEST_WAKING,
    REQUEST_ACK,
    REQUEST_JOIN,
    REQUEST_QUERY,
    REQUEST_READ
};

struct leat_groups {
    struct leat_groups_options options;
    struct leat_group *groups[LEAT_GROUPS_PER_HOME_MAX];
    uint32_t group_count;
    enum life life; /* leat_groups_enter() */
    bool broken;
    leat_err broken_rc;
    char why[LEAT_ERROR_TEXT_BYTES];
    struct leat_timer timer;
    /* Records gather in one buffer; the other holds the batch that waits for the log's room. */
    struct leat_batch_builder builder;
    uint8_t *buffers; /* one block: what a home without groups does not touch costs nothing */
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
    uint64_t read_by_us;       /* the end of the wait for reading */
    struct leat_shares shares; /* of LEAT_GROUPS_WAITING_MAX requests in these lists */
    bool untold;               /* joins that are acked wait for the next slice */
};

static inline uint64_t leat_groups_now_us(const struct leat_groups *groups)
{
    return groups->options.env->clock->now_us(groups->options.env->clock->ctx);
}

/** The step from one state to the next. */
static inline void leat_groups_enter(struct leat_groups *groups, enum life to)
{
    static const unsigned follow[] = {
        [LIFE_NEW] = 1u << LIFE_WAKING,
        [LIFE_WAKING] = 1u << LIFE_AWAKE,
        [LIFE_AWAKE] = 0,
    };
    LEAT_ASSERT(follow[groups->life] & 1u << to);
    groups->life = to;
}

/* ---- home.c ---- */

/** The text of LEAT_E_TIMEOUT for requests that still wait when the home ends; their clients send them again. */
extern const char leat_groups_gone_words[];
struct leat_group *leat_groups_group_find(struct leat_groups *groups, const char *name);
/** Forget a group and all it holds; an unknown name is fine. */
void leat_groups_group_remove(struct leat_groups *groups, const char *name);
/** Add the group to this home. */
void leat_groups_group_add(struct leat_groups *groups, struct leat_group *group);
/** NULL: there is room for so much more of an address; else why not. bytes: encoded. */
const char *leat_groups_lacks(const struct leat_groups *groups, uint64_t address,
                              uint32_t more_groups, size_t more_bytes, size_t more_memory);
/** Forget all groups. */
void leat_groups_table_clear(struct leat_groups *groups);
/** At most so many bytes, encoded. */
size_t leat_groups_table_bytes(const struct leat_groups *groups);
/** Fill in the answer, without on_done. Always true: the result of leat_groups_do(). */
bool leat_groups_answer(struct leat_groups_request *request, leat_err rc, const char *why);
/** May the answer take so many bytes? false: it is answered by how many. */
bool leat_groups_answer_fits(struct leat_groups_request *request, size_t bytes);
void leat_groups_wait_begin(struct leat_groups *groups, struct leat_groups_request *request,
                            enum request_state state);
void leat_groups_wait_end(struct leat_groups *groups, struct leat_groups_request *request);
/** End the wait and run on_done: the request may be freed inside. */
void leat_groups_tell(struct leat_groups *groups, struct leat_groups_request *request);
/** All of a list are answered by `rc`. */
void leat_groups_wait_fail(struct leat_groups *groups, struct leat_list *list, leat_err rc,
                           const char *why);
/** No member and no classic group refers to a request any more. */
void leat_groups_joins_forget(struct leat_groups *groups);
/** Out of order for good: all that waits is answered by `rc`, as are all later requests. `why` is
 * copied. */
void leat_groups_break(struct leat_groups *groups, leat_err rc, const char *why);

/* ---- home_log.c ---- */

/** Whether the batch that gathers has room for a record of so many bytes. */
bool leat_groups_record_fits(const struct leat_groups *groups, size_t bytes);
/** For a record in the scratch buffer: one at a time. */
struct leat_msg_writer leat_groups_record_begin(struct leat_groups *groups);
/** Put the record into the batch that gathers; leat_groups_record_fits() was asked. */
void leat_groups_record_add(struct leat_groups *groups, const struct leat_msg_writer *writer);
/** A record that changes nothing: its ack shows that this is the home still. */
void leat_groups_nothing_add(struct leat_groups *groups);
/** New buffers, while the present buffers are empty. Without memory these stay. */
void leat_groups_buffers_renew(struct leat_groups *groups);
/** Send what gathered, unless a batch is on its way or the log has no room. May break the home. */
void leat_groups_append_try(struct leat_groups *groups);
/** Answer OK once all that was added until now is acked. */
void leat_groups_wait_ack(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_all_acked(const struct leat_groups *groups);
/** Before what the table says of offsets is told. false: it may be told now; true: once an append that begins now is
 * acked, which leat_groups_wait_ack() waits for. May break the home. */
bool leat_groups_must_append(struct leat_groups *groups);

/* ---- places.c ---- */

/** May there be one group more? false: the request is answered. */
bool leat_groups_group_room(struct leat_groups *groups, struct leat_groups_request *request);
/** Forget a group, by a record; leat_groups_record_fits() RECORD_HEAD_BYTES was asked. */
void leat_groups_group_forget(struct leat_groups *groups, const struct leat_group *group);

/* ---- time.c ---- */

void leat_groups_timer_arm(struct leat_groups *groups);

/* ---- members.c ---- */

/** A sharing out is due; nothing if one is already. */
void leat_groups_prepare(struct leat_groups *groups, struct leat_group *group);
/** What time alone brings: silent members go, a generation begins. */
void leat_groups_group_step(struct leat_groups *groups, struct leat_group *group);
/** When leat_groups_group_step() has something to do; UINT64_MAX: never. */
uint64_t leat_groups_group_next_us(const struct leat_group *group);
/** The member of the request, in its generation; NULL: answered with why not. */
struct leat_group_member *leat_groups_member_check(struct leat_group *group,
                                                   struct leat_groups_request *request);
/** What its member owns, into the answer of a join that is acked; returns how many rows it looked at. */
size_t leat_groups_join_fill(struct leat_groups *groups, struct leat_groups_request *join);
/* As leat_groups_do(). */
bool leat_groups_do_join(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_heartbeat(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_leave(struct leat_groups *groups, struct leat_groups_request *request);

/* ---- offsets.c; as leat_groups_do() ---- */

bool leat_groups_do_commit(struct leat_groups *groups, struct leat_groups_request *request);
/** Commits that ask about segment groups outlive the home: they are answered when their questions are. */
void leat_groups_queries_leave(struct leat_groups *groups);
bool leat_groups_do_fetch(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_delete(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_offsets_delete(struct leat_groups *groups, struct leat_groups_request *request);

/* ---- classic_members.c ---- */

/** As leat_groups_member_check(). */
struct leat_classic_member *leat_groups_classic_member_check(struct leat_group *group,
                                                             struct leat_groups_request *request);
/** Of what all members may take: is there so much for an address, where `except` (may be NULL) is not there? */
bool leat_groups_members_have_room(const struct leat_groups *groups, uint64_t address,
                                   const struct leat_classic_member *except, size_t bytes);
/** Its session begins anew. */
void leat_groups_classic_heard(struct leat_groups *groups, struct leat_classic_member *member);
/** Remove a member; its held requests are answered by `rc`. */
void leat_groups_classic_member_end(struct leat_groups *groups, struct leat_classic *classic,
                                    struct leat_classic_member *member, leat_err rc);
/** A held join or sync of a member is answered by `rc`: a normal answer would be out of date. */
void leat_groups_classic_held_end(struct leat_groups *groups, struct leat_groups_request **held,
                                  leat_err rc);

/* ---- classic.c; do_ as leat_groups_do() ---- */

/** The group of the request, as a classic group; made or turned into one if need be. false: answered. */
bool leat_groups_classic_ensure(struct leat_groups *groups, struct leat_groups_request *request,
                                struct leat_group **out_group);
/** The classic group does not hold the request any more. It is not answered. */
void leat_groups_classic_cancel(struct leat_groups *groups, struct leat_group *group,
                                struct leat_groups_request *request);
bool leat_groups_do_classic_join(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_classic_heartbeat(struct leat_groups *groups,
                                      struct leat_groups_request *request);
bool leat_groups_do_classic_leave(struct leat_groups *groups, struct leat_groups_request *request);

/* ---- classic_share.c; do_ as leat_groups_do() ---- */

/** Put the classic group as it is into the batch that gathers. false: no room before the next ack. */
bool leat_groups_classic_record(struct leat_groups *groups, struct leat_group *group);
void leat_groups_classic_prepare(struct leat_groups *groups, struct leat_group *group);
/** A classic group that was empty waits some time for more members. */
void leat_groups_classic_settle(struct leat_groups *groups, struct leat_classic *classic);
void leat_groups_classic_step(struct leat_groups *groups, struct leat_group *group);
uint64_t leat_groups_classic_next_us(const struct leat_classic *classic);
/** After a restart: all members have a session to be heard of. */
void leat_groups_classic_wake(struct leat_groups *groups, struct leat_classic *classic);
/** Fill in the answer to a member's join. leader: the leader's id to show instead of the real id, or NULL. */
leat_err leat_groups_classic_join_answer(struct leat_group *group,
                                         struct leat_classic_member *member,
                                         struct leat_groups_request *join, const char *leader);
/** May the answer hold all that is known of the members? As leat_groups_answer_fits(). */
bool leat_groups_classic_answer_fits(const struct leat_classic *classic,
                                     struct leat_groups_request *request);
/** leat_groups_classic_join_answer() of a join that changes nothing. As leat_groups_do(). */
bool leat_groups_classic_join_now(struct leat_groups *groups, struct leat_group *group,
                                  struct leat_classic_member *member,
                                  struct leat_groups_request *request, const char *leader);
bool leat_groups_do_classic_sync(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_describe(struct leat_groups *groups, struct leat_groups_request *request);
bool leat_groups_do_list(struct leat_groups *groups, struct leat_groups_request *request);

#endif
