/* SPDX-License-Identifier: Apache-2.0 */
/* What a group has read: commits (parallel ones ask the logs' cores first), fetches, and the deletion
 * of a group with its offsets. */
#include "groups/internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

/* For the record of a group that is new, and what frames a batch. */
enum { COMMIT_ROOM_BYTES = 4096 };

/* ---- commit ---- */

static bool log_exists(const struct leat_groups *groups, struct leat_log_ref log)
{
    uint32_t streamlets = 0, logs = 0;
    return groups->options.broker.stream_size(groups->options.ctx, log.stream, &streamlets,
                                              &logs) &&
           log.streamlet < streamlets && log.log < logs;
}

static bool commit_row_refused(struct leat_groups *groups, struct leat_group *group,
                               const struct leat_group_member *member, size_t index,
                               struct leat_groups_request *request)
{
    const struct leat_groups_offset *row = &request->commits[index];
    const struct leat_segment_group_query *queries = request->scratch;
    bool grouped = row->group >= 0;
    if (grouped != (group->mode == LEAT_GROUPS_PARALLEL))
        return leat_groups_answer(
            request, LEAT_E_INVALID,
            "ordered groups commit logs, parallel groups commit segment groups");
    if (!grouped && row->offset == LEAT_SEGMENT_GROUP_DONE)
        return leat_groups_answer(request, LEAT_E_INVALID, "that is no offset of a log");
    struct leat_group_log *log = leat_group_log_find(group, row->log);
    /* Otherwise any client could fill the table with logs that are never dropped. Logs of classic groups were looked
     * up by topic. */
    if (!member && !request->classic && !log && !log_exists(groups, row->log))
        return leat_groups_answer(request, LEAT_E_UNKNOWN_LOG, "there is no such log");
    if (member && (!log || leat_group_owner(group, log, row->group) != member->serial) &&
        !(log && grouped && (uint64_t)row->group < log->first_group))
        return leat_groups_answer(
            request, LEAT_E_NOT_ASSIGNED,
            "a log or segment group of the commit is not assigned to this member");
    /* Known only once the log was asked: segment groups that retention dropped are not waited for. */
    if (!queries) return false;
    uint64_t first = log ? log->first_group : 0;
    if (queries[index].rc == LEAT_OK && queries[index].first_group > first)
        first = queries[index].first_group;
    if ((uint64_t)row->group > first + LEAT_GROUPS_AHEAD_MAX)
        return leat_groups_answer(request, LEAT_E_AGAIN,
                                  "a member holds back the log's first unfinished segment group");
    return false;
}

static bool group_inhabited(const struct leat_group *group)
{
    return group->member_count > 0 ||
           (group->classic && leat_classic_members_joined(group->classic) > 0);
}

static bool native_member_refused(struct leat_group *group, struct leat_groups_request *request,
                                  const struct leat_group_member **out_member)
{
    if (request->member[0]) {
        *out_member = leat_groups_member_check(group, request);
        return *out_member == NULL;
    }
    if (!group) return leat_groups_answer(request, LEAT_E_NOT_FOUND, "no such consumer group");
    if (!group_inhabited(group)) return false;
    return leat_groups_answer(
        request, LEAT_E_UNKNOWN_MEMBER,
        "the group has members: only they may commit, or wait until they are gone");
}

/* Kafka's rules. A commit by a client that is no member makes the group if there is none. */
static bool group_member_refused(struct leat_groups *groups, struct leat_group *group,
                                 struct leat_groups_request *request)
{
    bool stranger = request->generation == LEAT_CLASSIC_GENERATION_NONE;
    if (!group || (stranger && !group_inhabited(group) && group->mode != LEAT_GROUPS_PARALLEL)) {
        if (stranger) return !leat_groups_classic_ensure(groups, request, &group);
        return leat_groups_answer(request, LEAT_E_STALE_GENERATION, "no such group: join anew");
    }
    if (!group->classic)
        return leat_groups_answer(
            request, LEAT_E_OTHER_PROTOCOL,
            "a native consumer group of this name has members, or reads segment "
            "groups: use another name");
    struct leat_classic_member *member = leat_groups_classic_member_check(group, request);
    if (!member) return true;
    leat_groups_classic_heard(groups, member);
    if (group->classic->phase == LEAT_CLASSIC_COMPLETING)
        return leat_groups_answer(request, LEAT_E_REBALANCING,
                                  "the group is being shared out anew");
    return false;
}

static size_t note_bytes(uint32_t leader_epoch_plus_1, uint32_t metadata_bytes)
{
    return leader_epoch_plus_1 > 0 || metadata_bytes > 0 ? LEAT_GROUP_NOTE_BYTES + metadata_bytes
                                                         : 0;
}

/* Upper bounds: bytes of the rows in a record, growth of the stored table, and growth of its memory. A commit of
 * known logs and segment groups, with metadata of the same size, needs no more. */
static void commit_measure(struct leat_group *group, const struct leat_groups_request *request,
                           size_t *out_record, size_t *out_growth, size_t *out_memory)
{
    bool parallel = group->mode == LEAT_GROUPS_PARALLEL;
    *out_record = RECORD_HEAD_BYTES;
    *out_growth = *out_memory = 0;
    for (size_t i = 0; i < request->commit_count; i++) {
        const struct leat_groups_offset *row = &request->commits[i];
        /* A row has an array, the log's numbers, a group and an offset: all that a log in the table has, and less. */
        size_t log_bytes = leat_group_log_bytes(group, row->log);
        size_t note = note_bytes(row->leader_epoch_plus_1, row->metadata_bytes), noted = 0;
        const struct leat_group_log *log = leat_group_log_find(group, row->log);
        if (log) noted = note_bytes(log->leader_epoch_plus_1, log->metadata_bytes);
        /* Each may bring a second one: segment groups that retention has dropped. */
        *out_record += (parallel ? 2 : 1) * log_bytes + note;
        size_t more = note > noted ? note - noted : 0;
        bool grows =
            parallel && (!log || !leat_group_segment_group_known(log, (uint64_t)row->group));
        *out_growth +=
            more + (log ? 0 : log_bytes) + (grows ? 2 * LEAT_GROUP_SEGMENT_GROUP_BYTES : 0);
        *out_memory += more + (log ? 0 : leat_group_log_memory_bytes());
    }
}

static bool commit_refused(struct leat_groups *groups, struct leat_groups_request *request)
{
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    const struct leat_group_member *member = NULL;
    if (request->classic ? group_member_refused(groups, group, request)
                         : native_member_refused(group, request, &member))
        return true;
    if (request->classic)
        group = leat_groups_group_find(groups, request->group); /* it may be new */
    for (size_t i = 0; i < request->commit_count; i++)
        if (commit_row_refused(groups, group, member, i, request)) return true;
    size_t skips = group->mode == LEAT_GROUPS_PARALLEL ? request->commit_count : 0;
    if (skips > LEAT_GROUPS_COMMIT_ROWS_PARALLEL_MAX)
        return leat_groups_answer(request, LEAT_E_TOO_MANY,
                                  "too many rows in one commit of segment groups");
    size_t bytes, growth, memory;
    commit_measure(group, request, &bytes, &growth, &memory);
    if (bytes > LEAT_GROUPS_BATCH_BYTES_MAX - 2 * COMMIT_ROOM_BYTES)
        return leat_groups_answer(request, LEAT_E_TOO_LARGE,
                                  "offsets and metadata of one commit do not fit one batch");
    /* A group that is new is recorded before its first offsets. */
    if (group->classic) bytes += COMMIT_ROOM_BYTES;
    if (!leat_groups_record_fits(groups, bytes))
        return leat_groups_answer(request, LEAT_E_AGAIN,
                                  "the home log has as much to take as it may");
    if (growth > 0) leat_group_maker_adopt(group, request->address);
    const char *why = leat_groups_lacks(groups, group->maker, 0, growth, memory);
    return why ? leat_groups_answer(request, LEAT_E_TOO_MANY, why) : false;
}

/* What the logs' cores said of their first retained segment groups. Returns how many logs go on later. */
static uint32_t commit_skip(struct leat_group *group, const struct leat_groups_request *request)
{
    struct leat_segment_group_query *queries = request->scratch;
    uint32_t skips = 0;
    for (size_t i = 0; queries && i < request->commit_count; i++) {
        struct leat_group_log *log = leat_group_log_find(group, request->commits[i].log);
        queries[i].skips =
            log && queries[i].rc == LEAT_OK && leat_group_skip(log, queries[i].first_group);
        skips += queries[i].skips;
    }
    return skips;
}

static void row_write(struct leat_msg_writer *writer, const struct leat_groups_offset *row)
{
    enum { OFFSET = 5, NOTED = 7 };
    bool noted = row->leader_epoch_plus_1 > 0 || row->metadata_bytes > 0;
    const struct leat_stored_offset stored = {
        .log = row->log,
        .group = row->group,
        .offset = row->offset,
        .leader_epoch_plus_1 = row->leader_epoch_plus_1,
        .metadata = {row->metadata, row->metadata_bytes},
        .fields = noted ? NOTED : OFFSET,
    };
    leat_stored_offset_write(writer, &stored);
}

/* The rows follow. */
static struct leat_msg_writer commit_begin(struct leat_groups *groups,
                                           const struct leat_group *group, uint32_t rows)
{
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    struct leat_stored_record record = {.offset_count = rows};
    memcpy(record.name, group->name, sizeof record.name);
    leat_record_commit_write(&writer, &record);
    return writer;
}

/* One value of a commit: into the table and the record. */
static leat_err row_apply(struct leat_group *group, const struct leat_groups_request *request,
                          size_t i, struct leat_msg_writer *writer)
{
    const struct leat_segment_group_query *queries = request->scratch;
    struct leat_groups_offset row = request->commits[i];
    if (queries && queries[i].rc == LEAT_OK && row.offset >= queries[i].end_offset)
        row.offset = LEAT_SEGMENT_GROUP_DONE;
    if (queries && row.offset == LEAT_GROUP_GROUPS_GONE) row.offset = LEAT_SEGMENT_GROUP_DONE;
    struct leat_group_log *log = leat_group_log_find(group, row.log);
    bool force = request->force || request->classic;
    if (!log || leat_group_commit(group, log, row.group, row.offset, force) != LEAT_OK)
        return LEAT_E_NO_MEMORY;
    if (group->mode != LEAT_GROUPS_PARALLEL) {
        /* The present value, so that a replay can't bring back a lower value. */
        bool stands = log->offset == row.offset;
        row.offset = log->offset;
        if (stands && leat_group_offset_note(log, row.leader_epoch_plus_1, row.metadata,
                                             row.metadata_bytes) != LEAT_OK)
            return LEAT_E_NO_MEMORY;
        row.leader_epoch_plus_1 = log->leader_epoch_plus_1;
        row.metadata = log->metadata;
        row.metadata_bytes = log->metadata_bytes;
    }
    row_write(writer, &row);
    return LEAT_OK;
}

static leat_err commit_logs_add(struct leat_group *group, const struct leat_groups_request *request)
{
    struct leat_log_ref *refs =
        leat_mem_calloc(LEAT_MEM_BROKER, request->commit_count, sizeof *refs);
    if (!refs) return LEAT_E_NO_MEMORY;
    for (size_t i = 0; i < request->commit_count; i++)
        refs[i] = request->commits[i].log;
    leat_err rc = leat_group_logs_add(group, refs, leat_log_refs_sort(refs, request->commit_count));
    leat_mem_free(refs);
    return rc;
}

static void commit_apply(struct leat_groups *groups, struct leat_groups_request *request)
{
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_segment_group_query *queries = request->scratch;
    if (commit_logs_add(group, request) != LEAT_OK) {
        leat_groups_break(groups, LEAT_E_NO_MEMORY, "no memory for a commit");
        return;
    }
    /* This commit made the group, or the group has no record yet: a replay needs the group before its offsets. */
    if (group->classic && group->generation == 0) (void)leat_groups_classic_record(groups, group);
    uint32_t skips = commit_skip(group, request);
    struct leat_msg_writer writer =
        commit_begin(groups, group, (uint32_t)request->commit_count + skips);
    for (size_t i = 0; i < request->commit_count; i++)
        if (queries && queries[i].skips) {
            struct leat_groups_offset gone = {.log = request->commits[i].log,
                                              .group = (int64_t)queries[i].first_group,
                                              .offset = LEAT_GROUP_GROUPS_GONE};
            row_write(&writer, &gone);
        }
    for (size_t i = 0; i < request->commit_count; i++) {
        if (row_apply(group, request, i, &writer) == LEAT_OK) continue;
        leat_groups_break(groups, LEAT_E_NO_MEMORY, "no memory for a commit");
        return;
    }
    leat_group_bytes_count(group);
    leat_groups_record_add(groups, &writer);
    leat_groups_append_try(groups);
}

static void commit_go_on(struct leat_groups *groups, struct leat_groups_request *request)
{
    commit_apply(groups, request);
    leat_mem_free(request->scratch);
    request->scratch = NULL;
    if (!groups->broken) leat_groups_wait_ack(groups, request);
}

static void query_done(struct leat_segment_group_query *query)
{
    struct leat_groups_request *request = query->owner;
    if (--request->queries_left > 0) return;
    struct leat_groups *groups = query->home;
    if (!groups) { /* its home has gone meanwhile: leat_groups_queries_leave() */
        request->state = REQUEST_FREE;
        leat_mem_free(request->scratch);
        request->scratch = NULL;
        (void)leat_groups_answer(request, LEAT_E_TIMEOUT, leat_groups_gone_words);
        request->on_done(request);
        return;
    }
    leat_groups_wait_end(groups, request);
    if (groups->broken || commit_refused(groups, request)) {
        if (groups->broken) (void)leat_groups_answer(request, groups->broken_rc, groups->why);
        leat_mem_free(request->scratch);
        request->scratch = NULL;
        request->on_done(request);
        return;
    }
    commit_go_on(groups, request);
    if (groups->broken) {
        (void)leat_groups_answer(request, groups->broken_rc, groups->why);
        request->on_done(request);
    }
    leat_groups_timer_arm(groups);
}

void leat_groups_queries_leave(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&groups->querying)) != NULL) {
        struct leat_groups_request *request =
            LEAT_CONTAINER(link, struct leat_groups_request, link);
        struct leat_segment_group_query *queries = request->scratch;
        for (size_t i = 0; i < request->commit_count; i++)
            queries[i].home = NULL;
    }
}

static bool commit_ask(struct leat_groups *groups, struct leat_groups_request *request)
{
    struct leat_segment_group_query *queries =
        leat_mem_calloc(LEAT_MEM_BROKER, request->commit_count, sizeof *queries);
    if (!queries) return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a commit");
    request->scratch = queries;
    request->queries_left = request->commit_count;
    leat_groups_wait_begin(groups, request, REQUEST_QUERY);
    for (size_t i = 0; i < request->commit_count; i++) {
        queries[i] = (struct leat_segment_group_query){.log = request->commits[i].log,
                                                       .group = (uint64_t)request->commits[i].group,
                                                       .on_done = query_done,
                                                       .owner = request,
                                                       .home = groups};
        groups->options.broker.group(groups->options.ctx, &queries[i]);
    }
    return false;
}

bool leat_groups_do_commit(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    request->scratch = NULL;
    if (request->commit_count > LEAT_GROUPS_COMMIT_ROWS_MAX)
        return leat_groups_answer(request, LEAT_E_TOO_MANY, "too many rows in one commit");
    if (commit_refused(groups, request)) return true;
    if (request->commit_count == 0) return leat_groups_answer(request, LEAT_OK, NULL);
    if (leat_groups_group_find(groups, request->group)->mode == LEAT_GROUPS_PARALLEL)
        return commit_ask(groups, request);
    commit_go_on(groups, request);
    return groups->broken ? leat_groups_answer(request, groups->broken_rc, groups->why) : false;
}

/* ---- fetch, delete ---- */

static size_t log_rows(const struct leat_group *group, const struct leat_group_log *log,
                       struct leat_groups_offset *out, char **at)
{
    size_t count = 0;
    if (group->mode != LEAT_GROUPS_PARALLEL) {
        if (!log->has_offset) return 0;
        out[count++] = (struct leat_groups_offset){.log = log->log,
                                                   .group = LEAT_SEGMENT_GROUP_NONE,
                                                   .offset = log->offset,
                                                   .leader_epoch_plus_1 = log->leader_epoch_plus_1,
                                                   .metadata_bytes = log->metadata_bytes};
        if (log->metadata_bytes > 0) memcpy(*at, log->metadata, log->metadata_bytes);
        out[0].metadata = *at;
        *at += log->metadata_bytes;
        return count;
    }
    out[count++] = (struct leat_groups_offset){
        .log = log->log, .group = (int64_t)log->first_group, .offset = log->offset};
    for (uint32_t g = 0; g < log->group_count; g++)
        out[count++] = (struct leat_groups_offset){.log = log->log,
                                                   .group = (int64_t)log->groups[g].group,
                                                   .offset = log->groups[g].offset};
    return count;
}

static bool fetch_answer(struct leat_groups *groups, struct leat_groups_request *request,
                         bool waits)
{
    if (!waits) return leat_groups_answer(request, LEAT_OK, NULL);
    leat_groups_wait_ack(groups, request);
    return false;
}

/* The group's logs that are asked for, ascending: all of them, or those of `refs`. */
struct wanted {
    struct leat_group *group;
    struct leat_log_ref *refs; /* given; NULL: all */
    size_t count;
};

static leat_err wanted_init(struct wanted *wanted, struct leat_group *group,
                            const struct leat_groups_request *request)
{
    *wanted = (struct wanted){.group = group, .count = group ? group->log_count : 0};
    if (!group || request->log_count == 0) return LEAT_OK;
    wanted->refs =
        leat_mem_copy(LEAT_MEM_BROKER, request->logs, request->log_count * sizeof *request->logs);
    if (!wanted->refs) return LEAT_E_NO_MEMORY;
    wanted->count = leat_log_refs_sort(wanted->refs, request->log_count);
    return LEAT_OK;
}

/* NULL: the group has nothing of that log. */
static const struct leat_group_log *wanted_at(const struct wanted *wanted, size_t i)
{
    leat_group_steps++;
    return wanted->refs ? leat_group_log_find(wanted->group, wanted->refs[i])
                        : &wanted->group->logs[i];
}

static bool fetch_give(struct leat_groups_request *request, const struct wanted *wanted, bool *fits)
{
    size_t most = 1, texts = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct leat_group_log *log = wanted_at(wanted, i);
        if (!log) continue;
        most += 1 + log->group_count;
        texts += log->metadata_bytes;
    }
    size_t bytes = most * sizeof *request->offsets + texts;
    *fits = leat_groups_answer_fits(request, bytes);
    if (!*fits) return true;
    request->offsets = leat_mem_calloc(LEAT_MEM_BROKER, 1, bytes);
    if (!request->offsets) return false;
    char *at = (char *)(request->offsets + most);
    for (size_t i = 0; i < wanted->count; i++) {
        const struct leat_group_log *log = wanted_at(wanted, i);
        if (log)
            request->offset_count +=
                log_rows(wanted->group, log, request->offsets + request->offset_count, &at);
    }
    return true;
}

bool leat_groups_do_fetch(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct wanted wanted;
    bool fits = true;
    request->offsets = NULL;
    request->offset_count = 0;
    request->generation = group ? group->generation : 0;
    /* Without a group nothing is committed yet. */
    bool given = wanted_init(&wanted, group, request) == LEAT_OK &&
                 (!group || fetch_give(request, &wanted, &fits));
    leat_mem_free(wanted.refs);
    if (!given) return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for offsets");
    if (!fits) return true;
    bool waits = leat_groups_must_append(groups);
    if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    return fetch_answer(groups, request, waits);
}

bool leat_groups_do_delete(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    const struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (!group) return leat_groups_answer(request, LEAT_E_NOT_FOUND, "no such consumer group");
    if (group_inhabited(group))
        return leat_groups_answer(request, LEAT_E_EXISTS, "the consumer group has members");
    if (!leat_groups_record_fits(groups, RECORD_HEAD_BYTES))
        return leat_groups_answer(request, LEAT_E_AGAIN,
                                  "the home log has as much to take as it may");
    if (LEAT_BUG(DELETION_UNWRITTEN)) {
        leat_groups_group_remove(groups, request->group);
        return leat_groups_answer(request, LEAT_OK, NULL);
    }
    leat_groups_group_forget(groups, group);
    leat_groups_append_try(groups);
    if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    leat_groups_wait_ack(groups, request);
    return false;
}

/* A row that says so, as a commit: a home of an earlier version tells such an offset as -1, which means the same. */
bool leat_groups_do_offsets_delete(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (!group) return leat_groups_answer(request, LEAT_E_NOT_FOUND, "no such consumer group");
    if (group_inhabited(group))
        return leat_groups_answer(request, LEAT_E_EXISTS, "the consumer group has members");
    if (group->mode == LEAT_GROUPS_PARALLEL)
        return leat_groups_answer(request, LEAT_E_OTHER_PROTOCOL,
                                  "a group in parallel mode commits segment groups");
    uint32_t count = 0;
    size_t bytes = RECORD_HEAD_BYTES;
    for (size_t i = 0; i < request->log_count; i++) {
        const struct leat_group_log *log = leat_group_log_find(group, request->logs[i]);
        if (!log || !log->has_offset) continue;
        bytes += leat_group_log_bytes(group, request->logs[i]);
        count++;
    }
    if (count == 0) return leat_groups_answer(request, LEAT_OK, NULL);
    if (!leat_groups_record_fits(groups, bytes))
        return leat_groups_answer(request, LEAT_E_AGAIN,
                                  "the home log has as much to take as it may");
    struct leat_msg_writer writer = commit_begin(groups, group, count);
    for (size_t i = 0; i < request->log_count; i++) {
        struct leat_group_log *log = leat_group_log_find(group, request->logs[i]);
        if (!log || !log->has_offset) continue;
        struct leat_groups_offset row = {
            .log = log->log, .group = LEAT_SEGMENT_GROUP_NONE, .offset = LEAT_SEGMENT_GROUP_DONE};
        row_write(&writer, &row);
        count--;
        if (LEAT_BUG(FORGOTTEN_TOLD)) continue;
        leat_err rc = leat_group_commit(group, log, row.group, row.offset, true);
        LEAT_ASSERT(rc == LEAT_OK); /* it gives memory back */
    }
    for (; count > 0; count--) /* a log that is named twice */
        row_write(&writer, &(struct leat_groups_offset){.log = request->logs[0],
                                                        .group = LEAT_SEGMENT_GROUP_NONE,
                                                        .offset = LEAT_SEGMENT_GROUP_DONE});
    leat_group_bytes_count(group);
    leat_groups_record_add(groups, &writer);
    leat_groups_append_try(groups);
    if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    leat_groups_wait_ack(groups, request);
    return false;
}
