/* SPDX-License-Identifier: Apache-2.0 */
/* What engine.c, fetch.c, lane.c, ask.c and group.c share. */
#ifndef LEAT_CONSUMER_INTERNAL_H
#define LEAT_CONSUMER_INTERNAL_H

#include "base/assert.h"
#include "base/free_list.h"
#include "engine.h"

enum {
    CONSUMER_LANES_MAX = 1024,
    CONSUMER_LOCATE_LOGS_MAX = 64, /* of one request */
    CONSUMER_FETCH_LOGS_MAX = 1024,
    CONSUMER_FETCH_LOG_BYTES = 64, /* encoded, at most */
    CONSUMER_GROUP_CONTROL_BYTES = 1024,
    CONSUMER_COMMIT_ROW_BYTES = 48,
    CONSUMER_FINISHED_MAX = 256, /* groups finished and not yet committed */
    CONSUMER_GARBLED_TRIES = 20, /* of a fetch whose answers are damaged on their way */
    CONSUMER_MOVE_TRIES = 3,     /* of a fetch from a moving log, without a report */
    CONSUMER_POLL_END_US = 1000, /* a fetch whose wait is over so soon is not ended */
};
#define CONSUMER_GROUP_DONE UINT64_MAX /* as a committed offset: the group is finished */
#define CONSUMER_LOG_MOVED  UINT32_MAX /* in place of a log that has left the fetch under way */

/* README.md, "States". */
enum leat_consumer_log_state {
    CLOG_LOCATE,   /* where to begin must be asked */
    CLOG_LOCATING, /* being asked */
    CLOG_READY,    /* `next` is where to fetch from */
    CLOG_FETCHING, /* a fetch is under way */
};

/* A member of a group (README.md, "States"). */
enum leat_consumer_member_state {
    GROUP_NONE,
    GROUP_JOINING,
    GROUP_FETCHING, /* the committed offsets are asked */
    GROUP_IN,
};

struct leat_consumer_log {
    struct leat_log_ref ref;
    enum leat_consumer_log_state state; /* leat_consumer_log_enter() */
    uint32_t locate_what;
    int64_t locate_value;
    uint64_t next;  /* next offset to fetch */
    uint64_t begun; /* and the first one of all: from there until something was handed over */
    uint64_t first, acked;
    bool acked_known;
    uint64_t jump_from,
        jump_to; /* the last answer's offsets jumped there: taken if the next answer's do */
    uint64_t retry_at_us;
    uint32_t attempts;
    leat_err noted;     /* why, as it was last told */
    uint64_t processed; /* below it everything has been handed over; what commit() stores */
    uint64_t processed_group;
    bool processed_known, processed_changed;
    bool committing; /* of the commit under way: changed again if that fails */
    /* Parallel mode: the group read now; the series it belongs to. */
    bool by_position;
    uint64_t group, group_step;
    struct leat_position position;
    uint64_t skip_below; /* of the group: committed before */
    /* Where the log began when it was last asked whether the group has been trimmed. */
    uint64_t asked_first;
};

/** The step from one state to the next. A seek, or a server that names logs in any order, leads from each to LOCATE and
 * READY. */
static inline void leat_consumer_log_enter(struct leat_consumer_log *log,
                                           enum leat_consumer_log_state to)
{
    static const unsigned follow[] = {
        [CLOG_LOCATE] = 1u << CLOG_LOCATE | 1u << CLOG_LOCATING | 1u << CLOG_READY,
        [CLOG_LOCATING] = 1u << CLOG_LOCATE | 1u << CLOG_READY,
        [CLOG_READY] = 1u << CLOG_LOCATE | 1u << CLOG_READY | 1u << CLOG_FETCHING,
        [CLOG_FETCHING] = 1u << CLOG_LOCATE | 1u << CLOG_READY,
    };
    LEAT_ASSERT(follow[log->state] & 1u << to);
    log->state = to;
}

/* Answers and requests of one connection. */
struct leat_consumer_lane {
    struct leat_consumer_engine *engine;
    uint64_t owner;
    uint32_t lane;
    bool fetching, locating;
    uint32_t answers;  /* not given back yet */
    uint64_t usual_us; /* that a fetch took of late */
    struct leat_request fetch, locate;
    uint32_t fetch_count, locate_count;
    uint32_t fetch_from;   /* index of the log that the next fetch begins with: each has its turn */
    uint32_t ready_count;  /* logs that could be in the fetch, whether there is room or not */
    uint32_t behind_count; /* logs that are ready while a fetch is under way */
    uint64_t ends_us;      /* when the owner has waited long enough with the fetch under way */
    uint64_t retry_at_us;  /* of the lane's logs, the next one that is to be asked again */
    uint32_t *fetch_logs, *locate_logs; /* indices into engine->logs; or CONSUMER_LOG_MOVED */
    uint32_t *before_logs;              /* of logs before fetch_from, while a turn gathers */
    uint32_t before_count;
    uint8_t *fetch_control, *locate_control;
};

/* The payload of one answer, shared by its runs. */
struct leat_consumer_answer {
    struct leat_consumer_lane *lane; /* while it is in use */
    uint8_t *bytes;
    size_t capacity;
    struct leat_consumer_run *runs;
    uint32_t run_count, run_capacity, refs;
};
struct leat_consumer_run {
    struct leat_fetched fetched; /* first */
    struct leat_consumer_answer *answer;
    uint32_t generation;
};

/* A caller's question about a log: see leat_consumer_engine_ask(). */
struct leat_consumer_ask {
    bool open, sent; /* not answered yet; a request is under way */
    uint64_t deadline_us, retry_at_us;
    uint32_t attempts;
    struct leat_msg_locate question;
    struct leat_error last; /* why it has to be asked again */
    struct leat_request request;
    uint8_t control[2 * CONSUMER_FETCH_LOG_BYTES];
    leat_consumer_asked_fn on_done;
    void *arg;
};

struct leat_consumer_engine {
    const struct leat_env *env;
    struct leat_timers *timers;
    struct leat_client *client;
    struct leat_consumer_engine_options options;
    struct leat_consumer_engine_events events;
    char stream_name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    char group_name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    bool in_group;
    uint32_t generation; /* positions change: answers of earlier ones are void */
    bool failed, ready_told, looking, known;
    bool wants_refresh;
    uint64_t lookup_at_us;
    uint32_t lookup_attempts;
    struct leat_client_lookup lookup;
    uint32_t stream_id, streamlets, q;
    struct leat_consumer_log *logs;
    uint32_t log_count;
    struct leat_consumer_lane *lanes[CONSUMER_LANES_MAX];
    uint32_t lane_count;
    struct leat_list ready;             /* runs to take */
    uint32_t runs_out;                  /* taken, not given back */
    struct leat_free_list free_answers; /* struct leat_consumer_answer */
    struct leat_timer look;
    uint64_t look_at_us;
    struct leat_consumer_ask ask;
    struct leat_error failure; /* once it has failed */
    /* group */
    char member[64];
    uint32_t group_generation;
    enum leat_consumer_member_state group_state; /* leat_consumer_member_enter() */
    uint64_t group_retry_at_us, heartbeat_at_us;
    uint32_t group_attempts;
    bool group_busy, heartbeat_busy, commit_busy, left;
    struct leat_request group_request, heartbeat_request, commit_request;
    uint8_t group_control[CONSUMER_GROUP_CONTROL_BYTES],
        heartbeat_control[CONSUMER_GROUP_CONTROL_BYTES];
    uint8_t *commit_control;
    void (*commit_done)(void *arg, leat_err rc, const struct leat_error *error);
    void *commit_arg;
    /* parallel mode: groups committed as done or begun, as GROUP_FETCH told */
    struct leat_consumer_row {
        struct leat_log_ref log;
        int64_t group;
        uint64_t offset;
    } * rows;
    uint32_t row_count;
    /* Groups whose records have all been handed over, to be committed as done. */
    struct leat_consumer_row finished[CONSUMER_FINISHED_MAX];
    uint32_t finished_count, finished_committing; /* the first ones: of the commit under way */
};

/** The step from one state to the next. */
static inline void leat_consumer_member_enter(struct leat_consumer_engine *engine,
                                              enum leat_consumer_member_state to)
{
    static const unsigned follow[] = {
        [GROUP_NONE] = 1u << GROUP_JOINING,
        [GROUP_JOINING] = 1u << GROUP_FETCHING | 1u << GROUP_NONE,
        [GROUP_FETCHING] = 1u << GROUP_IN | 1u << GROUP_NONE,
        [GROUP_IN] = 1u << GROUP_NONE,
    };
    LEAT_ASSERT(follow[engine->group_state] & 1u << to);
    engine->group_state = to;
}

/* engine.c */
uint64_t leat_consumer_now(const struct leat_consumer_engine *engine);
void leat_consumer_fail(struct leat_consumer_engine *engine, leat_err rc, const char *text);
/** Ask for the owners again, at `at_us` at the latest. */
void leat_consumer_refresh_at(struct leat_consumer_engine *engine, uint64_t at_us);
void leat_consumer_note(struct leat_consumer_engine *engine, leat_err rc, const char *text);
void leat_consumer_wake_at(struct leat_consumer_engine *engine, uint64_t at_us);
/** Forget all positions and logs; what is under way is void. */
void leat_consumer_logs_clear(struct leat_consumer_engine *engine);
leat_err leat_consumer_logs_make(struct leat_consumer_engine *engine,
                                 uint32_t count) LEAT_NODISCARD;
void leat_consumer_log_begin(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                             enum leat_engine_from from, int64_t value);
/* fetch.c */
void leat_consumer_fetch_turn(struct leat_consumer_engine *engine);
/* lane.c */
/** NULL: no memory, or all are in use. */
struct leat_consumer_lane *leat_consumer_lane_of(struct leat_consumer_engine *engine,
                                                 uint64_t owner, uint32_t number);
/** With room for so many bytes and runs, and a reference of the filler. NULL: no memory. */
struct leat_consumer_answer *leat_consumer_answer_take(struct leat_consumer_engine *engine,
                                                       struct leat_consumer_lane *lane,
                                                       size_t bytes, uint32_t runs);
void leat_consumer_answer_unref(struct leat_consumer_engine *engine,
                                struct leat_consumer_answer *answer);
void leat_consumer_answers_free(struct leat_consumer_engine *engine);
/** What is under way is void: its answers are not waited for. */
void leat_consumer_lanes_cancel(struct leat_consumer_engine *engine);
void leat_consumer_lanes_free(struct leat_consumer_engine *engine);
/* ask.c */
void leat_consumer_ask_turn(struct leat_consumer_engine *engine, uint64_t now);
/* group.c */
void leat_consumer_group_turn(struct leat_consumer_engine *engine);
void leat_consumer_group_enter(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                               uint64_t group);
/** The group's records have all been handed over, or are gone: the next commit says that it is
 * done. */
void leat_consumer_group_finish(struct leat_consumer_engine *engine, struct leat_log_ref log,
                                uint64_t group);
void leat_consumer_group_leave(struct leat_consumer_engine *engine);

#endif
