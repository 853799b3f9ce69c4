/* SPDX-License-Identifier: Apache-2.0 */
/* A home log of its own for consumer groups: it acks late, has no room now and then, rolls (and takes
 * the table into its start entry) and restarts. */
#ifndef LEAT_TESTS_GROUPS_RIG_H
#define LEAT_TESTS_GROUPS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "groups/classic.h"
#include "groups/groups.h"
#include "left.h"

enum {
    BATCHES_MAX = 4096,
    STREAMLETS = 5,
    LOGS = 2,
    UNITS = STREAMLETS * LOGS,
    LARGE_STREAM = 800, /* and the next two; behind them there is one as small as 7 */
    LARGE_STREAMLETS = 6000,
};

struct stored {
    uint8_t *bytes;
    uint32_t count;
};
struct home {
    struct leat_clock clock;
    struct leat_random random;
    struct leat_env env;
    struct leat_timers timers;
    struct leat_xoshiro rng;
    uint64_t now_us;
    struct leat_groups *groups;
    struct stored batches[BATCHES_MAX];
    unsigned batch_count, acked_count;
    uint8_t *snapshot;
    size_t snapshot_count;
    struct leat_append *append;
    struct leat_segment_group_query *query;
    bool parallel;
    uint64_t first_group; /* retained, of every log */
    unsigned refusals;
    uint64_t retention_us;         /* from the next restart on */
    bool followed;                 /* the same */
    struct leat_groups_room *room; /* the same; NULL: none */
    uint64_t group_bytes_max;      /* the same; 0: the default */
    bool unread;                   /* the same: its table was not read yet when others are */
    bool mute;                     /* appends are taken, and not acked */
    bool calm;                     /* appends are taken and acked at once, nothing rolls */
    leat_err append_rc;            /* not LEAT_OK: what appends are refused by */
    leat_err group_rc;             /* what the cores of logs answer */
    uint64_t settle_us, classic_settle_us; /* from the next restart on; 0: 1 ms, 3 ms */
    /* The same: what streams there are; NULL: those above. */
    bool (*stream_size)(void *ctx, uint32_t stream, uint32_t *out_streamlets, uint32_t *out_logs);
};

struct home *home_new(uint64_t seed, bool parallel);
/** A calm home whose log has begun: the home has answered a request. */
struct home *calm_home(void);
/** A calm home whose next restart is in this room, which has no limit; the home has not begun. */
struct home *roomy_home(struct leat_groups_room *room);
/** Ends the home, and starts it once more before: its log reads. */
void home_free(struct home *home);
/** The same, without a last start that reads the log again. */
void home_drop(struct home *home);
void home_run(struct home *home, uint64_t us);
/** Read from the home log again; it may lack memory, or break for it. */
leat_err home_open(struct home *home);
/** All that is on its way is answered and acked first. */
void home_close(struct home *home);
/** The log rolls: its new segment begins with the table, older ones are not read any more. */
void home_roll(struct home *home);
/** Stop as kill -9 does: what was acked stays, what was on its way stays or not. */
void home_restart(struct home *home);
/** The home reads a record with this value from its log. */
void home_replay(struct home *home, const void *value, size_t bytes);
/** As many groups as a home may have: those that are there, "group-0", "group-1" and so on. */
void home_fill(struct home *home);
/** on_done of a request whose owner is a bool. */
void home_done(struct leat_groups_request *request);
/** A request to a native group, with a session of 30 s. */
struct leat_groups_request native_request(enum leat_groups_kind kind, const char *group,
                                          const uint32_t *streams, uint32_t stream_count);
/** Do one request; whether it was answered at once, as `answered` says. */
bool ask_begin(struct home *home, struct leat_groups_request *request, bool *answered);
/** Do one request of the group "readers" (or of the group that the request names), and wait for its answer. */
leat_err ask(struct home *home, struct leat_groups_request *request);
/** The same, of a join that is taken; what the member owns is given back. */
void ask_join(struct home *home, struct leat_groups_request *join);
/** A member joins a native group, to read stream 7, and leaves the group: the group stays, with its logs. */
void come_and_go(struct home *home, const char *group, enum leat_groups_mode mode);

#endif
