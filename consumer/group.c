/* SPDX-License-Identifier: Apache-2.0 */
/* Membership of a group: join, heartbeat, commit, leave; what the member reads.
 *
 * Join -> assignments and a generation -> committed positions -> read. A heartbeat that is answered
 * STALE_GENERATION means that the group is being shared out anew: everything read and not committed
 * is void (another member may own it next) and the member joins again. */
#include "internal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { GROUP_PATIENCE_US = 1000 * 1000 };

/* An isolated node refuses all requests of members so, and names itself as down in metadata: then the client leaves the
 * node, and the next request of the member goes to another node. */
static void reroute(struct leat_consumer_engine *engine, leat_err rc)
{
    if (leat_err_class(rc) == LEAT_CLASS_REROUTE)
        leat_consumer_refresh_at(engine, leat_consumer_now(engine));
}

static void group_again(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    enum leat_err_class class = leat_err_class(rc);
    bool rejoin = rc == LEAT_E_UNKNOWN_MEMBER || rc == LEAT_E_STALE_GENERATION;
    reroute(engine, rc);
    if (rc == LEAT_E_UNKNOWN_MEMBER) engine->member[0] = 0;
    /* Fatal is said by a home whose disk failed: the group is served again after a restart, and what
     * was committed is there. Only a request that can never be right ends the member. */
    if (!rejoin && class == LEAT_CLASS_REJECT) {
        leat_consumer_fail(engine, rc, text);
        return;
    }
    if (engine->group_state == GROUP_IN && engine->events.on_revoked)
        engine->events.on_revoked(engine->events.owner);
    leat_consumer_logs_clear(engine);
    leat_consumer_member_enter(engine, GROUP_NONE);
    engine->group_retry_at_us = leat_consumer_now(engine);
    if (!rejoin) {
        engine->group_retry_at_us += leat_client_pause_us(engine->client, engine->group_attempts++);
        leat_consumer_note(engine, rc, text);
    }
}

/* ---- positions ---- */

/* Rows ascend by log and group. */
static int row_compare(const struct leat_consumer_row *row, struct leat_log_ref ref, int64_t group)
{
    int order = leat_log_ref_order(row->log, ref);
    if (order != 0) return order;
    return row->group < group ? -1 : row->group > group;
}

/* The first row of the log that is not below the group; row_count: there is none. */
static uint32_t row_index(const struct leat_consumer_engine *engine, struct leat_log_ref ref,
                          int64_t group)
{
    uint32_t low = 0, high = engine->row_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row_compare(&engine->rows[middle], ref, group) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < engine->row_count && leat_log_ref_equal(engine->rows[low].log, ref)
               ? low
               : engine->row_count;
}

static const struct leat_consumer_row *row_find(const struct leat_consumer_engine *engine,
                                                struct leat_log_ref ref, int64_t group)
{
    uint32_t i = row_index(engine, ref, group);
    return i < engine->row_count && engine->rows[i].group == group ? &engine->rows[i] : NULL;
}

/* The first row of a log names its first unfinished group: all groups below it are done. */
static bool group_is_done(const struct leat_consumer_engine *engine, struct leat_log_ref ref,
                          uint64_t group)
{
    uint32_t lowest = row_index(engine, ref, 0);
    if (lowest < engine->row_count && (int64_t)group < engine->rows[lowest].group) return true;
    const struct leat_consumer_row *own = row_find(engine, ref, (int64_t)group);
    return own && own->offset == CONSUMER_GROUP_DONE;
}

/* Begin a group of the member's series, or, if this group is done, the next group of the series that is not. */
void leat_consumer_group_enter(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                               uint64_t group)
{
    LEAT_ASSERT(log->group_step > 0);
    while (group_is_done(engine, log->ref, group))
        group += log->group_step;
    const struct leat_consumer_row *row = row_find(engine, log->ref, (int64_t)group);
    log->by_position = true;
    log->group = group;
    log->position = (struct leat_position){group, group * LEAT_SEGMENTS_PER_GROUP, 0};
    log->asked_first = UINT64_MAX;
    log->skip_below = row ? row->offset : 0;
    leat_consumer_log_enter(log, CLOG_READY);
    log->next = log->skip_below;
    if (log->skip_below) {
        leat_consumer_log_enter(log, CLOG_LOCATE);
        log->locate_what = LEAT_LOCATE_OFFSET;
        log->locate_value = (int64_t)log->skip_below;
    }
}

void leat_consumer_group_finish(struct leat_consumer_engine *engine, struct leat_log_ref log,
                                uint64_t group)
{
    if (engine->finished_count == CONSUMER_FINISHED_MAX) {
        memmove(&engine->finished[0], &engine->finished[1],
                sizeof engine->finished[0] * (CONSUMER_FINISHED_MAX - 1));
        engine->finished_count--; /* the group will be read again by its next member */
        if (engine->finished_committing) engine->finished_committing--;
    }
    engine->finished[engine->finished_count++] =
        (struct leat_consumer_row){log, (int64_t)group, CONSUMER_GROUP_DONE};
}

static struct leat_msg_string text(const char *string)
{
    return (struct leat_msg_string){string, (uint32_t)strlen(string)};
}

static leat_err assignments_read(struct leat_consumer_engine *engine,
                                 const struct leat_frame *answer)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    struct leat_msg_group_joined joined;
    leat_msg_group_joined_read(&reader, &joined);
    struct leat_msg_string member = joined.member;
    uint32_t count = joined.share_count;
    engine->group_generation = joined.generation;
    if (reader.failed || member.bytes == 0 || member.bytes >= sizeof engine->member)
        return LEAT_E_INVALID;
    memcpy(engine->member, member.text, member.bytes);
    engine->member[member.bytes] = 0;
    leat_err rc = leat_consumer_logs_make(engine, count);
    for (uint32_t i = 0; i < count && rc == LEAT_OK; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        struct leat_msg_group_share share;
        leat_msg_group_share_read(&reader, &share);
        log->ref = share.log;
        log->group = share.first_group;
        log->group_step = share.group_step;
        if (reader.failed || log->group_step == 0) rc = LEAT_E_INVALID;
    }
    return rc;
}

static leat_err rows_read(struct leat_consumer_engine *engine, const struct leat_frame *answer)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    struct leat_msg_group_fetched fetched;
    leat_msg_group_fetched_read(&reader, &fetched);
    uint32_t count = fetched.offset_count;
    if (reader.failed) return LEAT_E_INVALID;
    leat_mem_free(engine->rows);
    engine->row_count = 0;
    engine->rows = leat_mem_calloc(LEAT_MEM_CLIENT, count ? count : 1, sizeof *engine->rows);
    if (!engine->rows) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_consumer_row *row = &engine->rows[i];
        struct leat_msg_group_offset one;
        leat_msg_group_offset_read(&reader, &one);
        if (reader.failed) return LEAT_E_INVALID;
        row->log = one.log;
        row->group = one.group;
        row->offset = one.offset;
        if (i > 0 && row_compare(row - 1, row->log, row->group) >= 0) return LEAT_E_INVALID;
        engine->row_count++;
    }
    return LEAT_OK;
}

static void positions_take(struct leat_consumer_engine *engine)
{
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (engine->options.parallel) {
            leat_consumer_group_enter(engine, log, log->group);
            continue;
        }
        const struct leat_consumer_row *row = row_find(engine, log->ref, -1);
        if (row)
            leat_consumer_log_begin(engine, log, LEAT_ENGINE_OFFSET, (int64_t)row->offset);
        else
            leat_consumer_log_begin(engine, log, engine->options.from, engine->options.from_value);
    }
}

/* ---- requests ---- */

static leat_err group_send(struct leat_consumer_engine *engine, struct leat_request *request,
                           enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                           uint64_t timeout_us,
                           void (*on_done)(struct leat_request *, leat_err,
                                           const struct leat_frame *, const struct leat_error *))
{
    *request = (struct leat_request){
        .kind = kind,
        .control = control,
        .control_bytes = control_bytes,
        .timeout_us = timeout_us,
        /* A join is held until the group has settled; what is asked of the group's home is asked by way
         * of another node, whose own patience counts. */
        .patience_us = GROUP_PATIENCE_US,
        .on_done = on_done,
        .owner = engine,
    };
    return leat_client_send(engine->client, request);
}

static void fetch_on_done(struct leat_request *request, leat_err rc,
                          const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_consumer_engine *engine = request->owner;
    engine->group_busy = false;
    if (rc == LEAT_E_CANCELLED || engine->failed || engine->group_state != GROUP_FETCHING) return;
    if (rc == LEAT_OK) rc = rows_read(engine, answer);
    if (rc) {
        group_again(engine, rc, error->text);
        return;
    }
    positions_take(engine);
    engine->group_attempts = 0;
    leat_consumer_member_enter(engine, GROUP_IN);
    engine->heartbeat_at_us =
        leat_consumer_now(engine) + (uint64_t)engine->options.session_ms * 1000u / 3;
}

static void fetch_committed(struct leat_consumer_engine *engine)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->group_control, sizeof engine->group_control);
    leat_msg_group_fetch_write(&writer,
                               &(struct leat_msg_group_fetch){.group = text(engine->group_name)});
    leat_consumer_member_enter(engine, GROUP_FETCHING);
    engine->group_busy = true;
    leat_err rc = group_send(engine, &engine->group_request, LEAT_KIND_GROUP_FETCH,
                             engine->group_control, writer.used, 0, fetch_on_done);
    LEAT_ASSERT(rc == LEAT_OK);
}

static void join_on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                         const struct leat_error *error)
{
    struct leat_consumer_engine *engine = request->owner;
    engine->group_busy = false;
    if (rc == LEAT_E_CANCELLED || engine->failed || engine->left) return;
    if (rc == LEAT_OK) rc = assignments_read(engine, answer);
    if (rc) {
        group_again(engine, rc, error->text);
        return;
    }
    fetch_committed(engine);
}

static void join(struct leat_consumer_engine *engine)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->group_control, sizeof engine->group_control);
    struct leat_msg_group_join body = {
        .group = text(engine->group_name),
        .member = text(engine->member),
        .mode = engine->options.parallel ? 1 : 0,
        .session_ms = engine->options.session_ms,
        .stream_count = 1,
    };
    leat_msg_group_join_write(&writer, &body);
    leat_msg_write_string(&writer, engine->stream_name, strlen(engine->stream_name));
    LEAT_ASSERT(!writer.overflow);
    leat_consumer_member_enter(engine, GROUP_JOINING);
    engine->group_busy = true;
    /* Held by the server until the group has settled: at most about one session. */
    uint64_t timeout = (uint64_t)engine->options.session_ms * 3000u;
    leat_err rc = group_send(engine, &engine->group_request, LEAT_KIND_GROUP_JOIN,
                             engine->group_control, writer.used, timeout, join_on_done);
    LEAT_ASSERT(rc == LEAT_OK);
}

static void heartbeat_on_done(struct leat_request *request, leat_err rc,
                              const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_consumer_engine *engine = request->owner;
    (void)answer;
    engine->heartbeat_busy = false;
    if (rc == LEAT_E_CANCELLED || engine->failed || engine->group_state != GROUP_IN) return;
    if (rc == LEAT_E_UNKNOWN_MEMBER || rc == LEAT_E_STALE_GENERATION ||
        leat_err_class(rc) == LEAT_CLASS_FATAL)
        group_again(engine, rc, error->text);
    else
        reroute(engine, rc); /* the next heartbeat tries again; the session is three of them long */
}

static void heartbeat(struct leat_consumer_engine *engine, uint64_t now)
{
    if (engine->heartbeat_busy) return;
    if (now < engine->heartbeat_at_us) {
        leat_consumer_wake_at(engine, engine->heartbeat_at_us);
        return;
    }
    uint64_t period = (uint64_t)engine->options.session_ms * 1000u / 3;
    engine->heartbeat_at_us = now + period;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->heartbeat_control, sizeof engine->heartbeat_control);
    struct leat_msg_group_heartbeat body = {text(engine->group_name), text(engine->member),
                                            engine->group_generation};
    leat_msg_group_heartbeat_write(&writer, &body);
    engine->heartbeat_busy = true;
    leat_err rc = group_send(engine, &engine->heartbeat_request, LEAT_KIND_GROUP_HEARTBEAT,
                             engine->heartbeat_control, writer.used, period, heartbeat_on_done);
    LEAT_ASSERT(rc == LEAT_OK);
    leat_consumer_wake_at(engine, engine->heartbeat_at_us);
}

void leat_consumer_group_turn(struct leat_consumer_engine *engine)
{
    uint64_t now = leat_consumer_now(engine);
    if (engine->left) return;
    if (engine->group_state == GROUP_IN) {
        heartbeat(engine, now);
        return;
    }
    if (engine->group_state != GROUP_NONE || engine->group_busy) return;
    if (now < engine->group_retry_at_us) {
        leat_consumer_wake_at(engine, engine->group_retry_at_us);
        return;
    }
    join(engine);
}

void leat_consumer_group_leave(struct leat_consumer_engine *engine)
{
    if (!engine->in_group || engine->left || !engine->member[0] || engine->heartbeat_busy) return;
    engine->left = true;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->heartbeat_control, sizeof engine->heartbeat_control);
    struct leat_msg_group_leave body = {text(engine->group_name), text(engine->member)};
    leat_msg_group_leave_write(&writer, &body);
    engine->heartbeat_busy = true;
    leat_err rc = group_send(engine, &engine->heartbeat_request, LEAT_KIND_GROUP_LEAVE,
                             engine->heartbeat_control, writer.used, 0, heartbeat_on_done);
    LEAT_ASSERT(rc == LEAT_OK);
}

/* ---- commit ---- */

/* The next commit also stores the offsets of a failed commit: an application that commits again and is told "done"
 * must not find older positions after a restart. */
static void commit_settle(struct leat_consumer_engine *engine, bool stored)
{
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (log->committing && !stored) log->processed_changed = true;
        log->committing = false;
    }
    if (stored) {
        engine->finished_count -= engine->finished_committing;
        memmove(&engine->finished[0], &engine->finished[engine->finished_committing],
                sizeof engine->finished[0] * engine->finished_count);
    }
    engine->finished_committing = 0;
}

static void commit_on_done(struct leat_request *request, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_consumer_engine *engine = request->owner;
    (void)answer;
    engine->commit_busy = false;
    leat_mem_free(engine->commit_control);
    engine->commit_control = NULL;
    commit_settle(engine, rc == LEAT_OK);
    engine->commit_done(engine->commit_arg, rc, error);
    if (rc == LEAT_E_CANCELLED || engine->failed || engine->group_state != GROUP_IN) return;
    if (rc == LEAT_E_UNKNOWN_MEMBER || rc == LEAT_E_STALE_GENERATION ||
        leat_err_class(rc) == LEAT_CLASS_FATAL)
        group_again(engine, rc, error->text);
    else
        reroute(engine, rc);
}

static uint32_t commit_count(const struct leat_consumer_engine *engine)
{
    uint32_t count = engine->finished_count;
    for (uint32_t i = 0; i < engine->log_count; i++)
        count += engine->logs[i].processed_changed;
    return count;
}

static void commit_rows(struct leat_consumer_engine *engine, struct leat_msg_writer *writer)
{
    for (uint32_t i = 0; i < engine->finished_count; i++) {
        const struct leat_consumer_row *row = &engine->finished[i];
        leat_msg_group_offset_write(
            writer, &(struct leat_msg_group_offset){row->log, row->group, row->offset});
    }
    engine->finished_committing = engine->finished_count;
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (!log->processed_changed) continue;
        log->processed_changed = false;
        log->committing = true;
        int64_t group = engine->options.parallel ? (int64_t)log->processed_group : -1;
        leat_msg_group_offset_write(
            writer, &(struct leat_msg_group_offset){log->ref, group, log->processed});
    }
}

static void commit_refuse(void (*on_done)(void *arg, leat_err rc, const struct leat_error *error),
                          void *arg, leat_err rc, const char *text)
{
    struct leat_error error;
    (void)leat_error_set(&error, rc, "%s", text);
    on_done(arg, rc, &error);
}

void leat_consumer_engine_commit(struct leat_consumer_engine *engine,
                                 void (*on_done)(void *arg, leat_err rc,
                                                 const struct leat_error *error),
                                 void *arg)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (!engine->in_group || engine->group_state != GROUP_IN || engine->commit_busy) {
        if (!engine->in_group)
            commit_refuse(on_done, arg, LEAT_E_INVALID, "only a consumer with a group can commit");
        else
            commit_refuse(on_done, arg, LEAT_E_STALE_GENERATION,
                          "the group is being shared out anew, or a commit is under way");
        return;
    }
    uint32_t rows = commit_count(engine);
    if (rows == 0) {
        commit_refuse(on_done, arg, LEAT_OK, "");
        return;
    }
    size_t bytes = CONSUMER_GROUP_CONTROL_BYTES + (size_t)rows * CONSUMER_COMMIT_ROW_BYTES;
    engine->commit_control = leat_mem_calloc(LEAT_MEM_CLIENT, 1, bytes);
    if (!engine->commit_control) {
        commit_refuse(on_done, arg, LEAT_E_NO_MEMORY, "out of memory");
        return;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->commit_control, bytes);
    struct leat_msg_group_commit body = {text(engine->group_name), text(engine->member),
                                         engine->group_generation, rows};
    leat_msg_group_commit_write(&writer, &body);
    commit_rows(engine, &writer);
    LEAT_ASSERT(!writer.overflow);
    engine->commit_done = on_done;
    engine->commit_arg = arg;
    engine->commit_busy = true;
    leat_err rc = group_send(engine, &engine->commit_request, LEAT_KIND_GROUP_COMMIT,
                             engine->commit_control, writer.used, 0, commit_on_done);
    LEAT_ASSERT(rc == LEAT_OK);
}
