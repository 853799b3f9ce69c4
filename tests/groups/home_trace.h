/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state of a home, as text: each group with its members, logs and times, the waiting requests, the records.
 * The text shows whether a request changes more than it should. For one test program only. */
#ifndef LEAT_TESTS_GROUPS_HOME_TRACE_H
#define LEAT_TESTS_GROUPS_HOME_TRACE_H

#include "base/crc32c.h"
#include "classic_rig.h"
#include "groups/internal.h"
#include "tests/trace.h"

enum { MS = 1000, ASKED_MAX = 64 };

static struct home *home;
static unsigned batches_seen;
static struct asked {
    struct ask_group a;
    const char *name;
    struct leat_groups_offset rows[8];
    uint32_t streams[4];
    struct leat_classic_protocol protocols[4];
} * asked[ASKED_MAX]; /* all that were asked, until the end */
static unsigned asked_count;

/* In milliseconds from now, and what is left of one. */
static void trace_time(const char *what, uint64_t at_us)
{
    int64_t us = (int64_t)(at_us - home->now_us);
    if (at_us == 0 || at_us == UINT64_MAX)
        trace(" %s -", what);
    else if (us % MS)
        trace(" %s %+.3f", what, (double)us / MS);
    else
        trace(" %s %+d", what, (int)(us / MS));
}

/* Ids are drawn: the end of one tells them apart. */
static const char *id_of(const char *id)
{
    size_t bytes = strlen(id);
    return bytes > 4 ? id + bytes - 4 : id;
}

static void trace_native(const struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *m = &group->members[i];
        trace("  %u%s%s%s session %u", m->serial, m->fresh ? " fresh" : "", m->gone ? " gone" : "",
              m->join ? " joins" : "", m->session_ms);
        trace_time("until", m->deadline_us);
        trace(" of");
        for (uint32_t s = 0; s < m->stream_count; s++)
            trace(" %u", m->streams[s]);
        trace("\n");
    }
}

static void trace_group(const struct leat_classic *classic)
{
    static const char *const phases[] = {"empty", "preparing", "completing", "stable"};
    trace("  %s%s '%s' '%s' leader %s", phases[classic->phase], classic->first ? " first" : "",
          classic->protocol_type, classic->protocol, id_of(classic->leader));
    trace_time("settle", classic->settle_at_us);
    trace_time("give up", classic->give_up_at_us);
    trace_time("sync by", classic->sync_by_us);
    trace("; %zu stored, %zu of members, %zu shared out\n", classic->stored_bytes,
          classic->memory_bytes - classic->member_count * sizeof(struct leat_classic_member),
          classic->assigned_bytes);
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *m = classic->members[i];
        trace("  %s%s%s%s%s of %llu session %u rebalance %u", id_of(m->id),
              m->pending ? " pending" : "", m->nameless ? " nameless" : "", m->join ? " joins" : "",
              m->sync ? " syncs" : "", (unsigned long long)m->address, m->session_ms,
              m->rebalance_ms);
        trace_time("until", m->deadline_us);
        trace(" '%.*s' '%.*s' '%.*s'", (int)m->instance.bytes, m->instance.text,
              (int)m->client.bytes, m->client.text, (int)m->host.bytes, m->host.text);
        for (uint32_t p = 0; p < m->protocol_count; p++)
            trace(" %.*s=%.*s", (int)m->protocols[p].name.bytes, m->protocols[p].name.text,
                  (int)m->protocols[p].metadata.bytes, m->protocols[p].metadata.text);
        trace(" has '%.*s'\n", (int)m->assignment_bytes, m->assignment ? m->assignment : "");
    }
}

/* Logs of a stream stand in one line; `last` is the one before, NULL: none. */
static void trace_place(const char *what, const struct leat_log_ref *last, struct leat_log_ref log)
{
    if (last && last->stream == log.stream)
        trace("; %u/%u", log.streamlet, log.log);
    else
        trace("%s  %s%u: %u/%u", last ? "\n" : "", what, log.stream, log.streamlet, log.log);
}

/* Its owner, and what was committed. */
static void trace_log(const struct leat_group_log *log)
{
    trace("=%u", log->owner);
    if (log->has_offset) trace(" at %llu", (unsigned long long)log->offset);
    if (!log->has_offset && log->offset) trace(" not at %llu", (unsigned long long)log->offset);
    if (log->first_group || log->from_group)
        trace(" groups from %llu, this generation %llu", (unsigned long long)log->first_group,
              (unsigned long long)log->from_group);
    for (uint32_t g = 0; g < log->group_count; g++)
        trace(" %llu:%lld", (unsigned long long)log->groups[g].group,
              (long long)log->groups[g].offset);
    if (log->leader_epoch_plus_1 || log->metadata_bytes)
        trace(" epoch %u '%.*s'", log->leader_epoch_plus_1, (int)log->metadata_bytes,
              log->metadata ? log->metadata : "");
}

/* The records that came into the home log since the last look: kind, bytes and a sum of each record. */
static void trace_records(void)
{
    for (; batches_seen < home->batch_count; batches_seen++) {
        struct leat_batch batch;
        struct leat_record_reader records;
        struct leat_record record;
        const struct stored *stored = &home->batches[batches_seen];
        assert_int_equal(leat_batch_check(stored->bytes, stored->count, &batch, NULL), LEAT_OK);
        leat_record_reader_init(&records, &batch, batch.bytes + LEAT_BATCH_HEADER_BYTES,
                                batch.byte_count - LEAT_BATCH_HEADER_BYTES);
        trace(" batch");
        while (leat_record_next(&records, &record) == LEAT_OK)
            trace(" %u:%u:%08x", ((const uint8_t *)record.value)[1], record.value_bytes,
                  leat_crc32c(0, record.value, record.value_bytes));
        trace("\n");
    }
}

static unsigned length(const struct leat_list *list)
{
    unsigned count = 0;
    for (const struct leat_list *it = list->next; it != list; it = it->next)
        count++;
    return count;
}

/* The home as it is. */
static void show(void)
{
    const struct leat_groups *groups = home->groups;
    trace_records();
    trace(" home");
    trace_time("timer", groups->timer.heap_index_plus_1 ? groups->timer.at_us : UINT64_MAX);
    trace(" waiting %u querying %u reading %u of %u; gathers %u%s, %llu of %llu acked%s\n",
          length(&groups->waiting), length(&groups->querying), length(&groups->reading),
          groups->shares.all, groups->builder.record_count, groups->in_flight ? " in flight" : "",
          (unsigned long long)groups->acked, (unsigned long long)groups->gathering,
          groups->untold ? " untold" : "");
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        trace(" %s mode %d generation %u next %u of %llu, %zu bytes%s", group->name, group->mode,
              group->generation, group->next_serial, (unsigned long long)group->maker, group->bytes,
              group->phase == LEAT_GROUP_PREPARING ? " prepares" : "");
        if (group->phase == LEAT_GROUP_PREPARING) trace_time("settle", group->settle_at_us);
        if (group->phase == LEAT_GROUP_PREPARING) trace_time("give up", group->give_up_at_us);
        if (group->used_us) trace_time("used", group->used_us);
        trace("\n");
        trace_native(group);
        if (group->classic) trace_group(group->classic);
        for (uint32_t l = 0; l < group->log_count; l++) {
            trace_place("", l ? &group->logs[l - 1].log : NULL, group->logs[l].log);
            trace_log(&group->logs[l]);
        }
        if (group->log_count) trace("\n");
    }
}

/* ---- requests ---- */

static void trace_answer(struct asked *it)
{
    struct leat_groups_request *r = &it->a.r;
    const struct leat_classic_call *call = &it->a.call;
    trace(" %s: %d %s", it->name, r->rc, r->rc ? r->error.text : "");
    if (r->generation) trace(" generation %u", r->generation);
    if (r->member[0]) trace(" member %s", id_of(r->member));
    if (r->answer_bytes) trace(" %zu bytes", r->answer_bytes);
    trace("\n");
    for (size_t i = 0; i < r->assigned_count; i++) { /* from its first group, so many further */
        trace_place("owns ", i ? &r->assigned[i - 1].log : NULL, r->assigned[i].log);
        trace(" %llu+%u", (unsigned long long)r->assigned[i].first_group,
              r->assigned[i].group_step);
    }
    if (r->assigned_count) trace("\n");
    for (size_t i = 0; i < r->offset_count; i++)
        trace("  offset %u/%u/%u %lld %lld epoch %u '%.*s'\n", r->offsets[i].log.stream,
              r->offsets[i].log.streamlet, r->offsets[i].log.log, (long long)r->offsets[i].group,
              (long long)r->offsets[i].offset, r->offsets[i].leader_epoch_plus_1,
              (int)r->offsets[i].metadata_bytes,
              r->offsets[i].metadata ? r->offsets[i].metadata : "");
    if (!r->classic || r->rc) return;
    if (call->leader[0])
        trace("  leader %s%s\n", id_of(call->leader), call->skip_assignment ? " skips" : "");
    if (call->group_protocol_type.bytes || call->group_protocol.bytes)
        trace("  '%.*s' '%.*s'\n", (int)call->group_protocol_type.bytes,
              call->group_protocol_type.text, (int)call->group_protocol.bytes,
              call->group_protocol.text);
    if (call->assignment.bytes)
        trace("  assigned %.*s\n", (int)call->assignment.bytes, call->assignment.text);
    for (uint32_t i = 0; i < call->member_count; i++) {
        const struct leat_classic_row *row = &call->members[i];
        trace("  row %.4s '%.*s' '%.*s' '%.*s' '%.*s' '%.*s'\n",
              row->member.text + (row->member.bytes > 4 ? row->member.bytes - 4 : 0),
              (int)row->instance.bytes, row->instance.text, (int)row->client.bytes,
              row->client.text, (int)row->host.bytes, row->host.text, (int)row->metadata.bytes,
              row->metadata.text, (int)row->assignment.bytes, row->assignment.text);
    }
    for (uint32_t i = 0; i < call->listed_count; i++)
        trace("  group '%.*s' '%.*s' phase %d mode %d\n", (int)call->listed[i].name.bytes,
              call->listed[i].name.text, (int)call->listed[i].protocol_type.bytes,
              call->listed[i].protocol_type.text, call->listed[i].phase, call->listed[i].mode);
    for (uint32_t i = 0; i < call->leaver_count; i++)
        trace("  leaver %d\n", call->leavers[i].rc);
    if (r->kind == LEAT_GROUPS_DESCRIBE) trace("  phase %d mode %d\n", call->phase, call->mode);
}

static void on_answer(struct leat_groups_request *request)
{
    struct asked *it = request->owner;
    assert_false(it->a.answered);
    it->a.answered = true;
    trace_answer(it);
}

static struct asked *asks(const char *name, enum leat_groups_kind kind, const char *group)
{
    struct asked *it = calloc(1, sizeof *it);
    assert_true(it && asked_count < ASKED_MAX);
    asked[asked_count++] = it;
    it->name = name;
    it->a.r = (struct leat_groups_request){
        .kind = kind, .answer_bytes_max = SIZE_MAX, .on_done = on_answer, .owner = it};
    snprintf(it->a.r.group, sizeof it->a.r.group, "%s", group);
    return it;
}
/* Sends the request; the trace says whether it was answered at once. */
static struct asked *comes(struct asked *it)
{
    if (leat_groups_do(home->groups, &it->a.r)) on_answer(&it->a.r);
    return it;
}
static void passes(unsigned ms)
{
    home_run(home, ms * MS);
    leat_groups_check(home->groups);
}

static int home_begin(void **state)
{
    (void)state;
    trace_begin();
    asked_count = batches_seen = 0;
    home = home_new(1, true);
    home->calm = true;
    home->settle_us = 10 * MS;
    home->classic_settle_us = 30 * MS;
    home->retention_us = 60000ull * MS;
    home_restart(home);
    return 0;
}
static int home_end(void **state)
{
    (void)state;
    home_free(home);
    for (unsigned i = 0; i < asked_count; i++) {
        leat_mem_free(asked[i]->a.r.assigned);
        leat_mem_free(asked[i]->a.r.offsets);
        leat_mem_free(asked[i]->a.call.memory);
        free(asked[i]);
    }
    return 0;
}
#define HOME_TEST(name) cmocka_unit_test_setup_teardown(name, home_begin, home_end)

#endif
