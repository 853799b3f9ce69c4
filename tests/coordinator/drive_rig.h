/* SPDX-License-Identifier: Apache-2.0 */
/* The pump by itself: libraft's core, the log, snapshots and timers are stood in for, and what is asked of them is
 * written down. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_DRIVE_RIG_H
#define LEAT_TESTS_COORDINATOR_DRIVE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/raft_heap.h"
#include "tests/trace.h"

enum { ENTRIES = 16, TERM = 5, START_US = 7000900, OWN = 2 };

static struct leat_raft_drive drive;
static struct leat_env env;
static struct leat_clock clock_of_test;
static uint64_t now_us;
static struct leat_timers *const timers = (struct leat_timers *)(void *)&now_us; /* passed on */

/* ---- libraft's core ---- */

static struct {
    enum raft_state state;
    uint64_t timeout_ms, commit;
    raft_id leader;
    raft_index match[9]; /* by id; 0: not known */
    int catch_up, catch_up_rc;
    int rc; /* of the next step, and what that asks for */
    struct raft_update update;
    unsigned then; /* flags of the step after that */
} core;
static struct raft_entry given[8]; /* with the last step */
static unsigned given_count;

static inline void say_text(const void *bytes, size_t count)
{
    trace(" '%.*s'", (int)count, (const char *)bytes);
}
static inline void say_configuration(const struct raft_configuration *conf)
{
    for (unsigned i = 0; i < conf->n; i++)
        trace(" %u=%s/%d", (unsigned)conf->servers[i].id, conf->servers[i].address,
              (int)conf->servers[i].role);
}
static inline void say_entries(const struct raft_entry *entries, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        trace(" [%u/%d", (unsigned)entries[i].term, (int)entries[i].type);
        if (entries[i].type == RAFT_CHANGE)
            trace(" conf %u", (unsigned)entries[i].buf.len);
        else
            say_text(entries[i].buf.base, entries[i].buf.len);
        trace("]");
    }
}
static inline void say_message(const struct raft_message *m)
{
    trace("%d of %u(%s)", (int)m->type, (unsigned)m->server_id,
          m->server_address ? m->server_address : "-");
    if (m->type == RAFT_APPEND_ENTRIES) {
        const struct raft_append_entries *a = &m->append_entries;
        trace(" v%d term %u behind %u/%u commit %u", a->version, (unsigned)a->term,
              (unsigned)a->prev_log_index, (unsigned)a->prev_log_term, (unsigned)a->leader_commit);
        assert_int_equal(a->entries != NULL, a->n_entries > 0);
        say_entries(a->entries, a->n_entries);
    } else if (m->type == RAFT_APPEND_ENTRIES_RESULT) {
        const struct raft_append_entries_result *a = &m->append_entries_result;
        trace(" rejected %u last %u", (unsigned)a->rejected, (unsigned)a->last_log_index);
    } else if (m->type == RAFT_REQUEST_VOTE_RESULT) {
        const struct raft_request_vote_result *a = &m->request_vote_result;
        trace(" term %u granted %d pre %d", (unsigned)a->term, a->vote_granted, a->pre_vote);
    } else if (m->type == RAFT_INSTALL_SNAPSHOT) {
        const struct raft_install_snapshot *a = &m->install_snapshot;
        trace(" last %u/%u conf %u:", (unsigned)a->last_index, (unsigned)a->last_term,
              (unsigned)a->conf_index);
        say_configuration(&a->conf);
        say_text(a->data.base, a->data.len);
    } else if (m->type == RAFT_TIMEOUT_NOW) {
        const struct raft_timeout_now *a = &m->timeout_now;
        trace(" term %u last %u/%u", (unsigned)a->term, (unsigned)a->last_log_index,
              (unsigned)a->last_log_term);
    }
    trace("\n");
}

int raft_step(struct raft *r, struct raft_event *event, struct raft_update *update)
{
    assert_ptr_equal(r, &drive.raft);
    trace("step %d at %u, room %u:", (int)event->type, (unsigned)event->time,
          (unsigned)event->capacity);
    given_count = 0;
    if (event->type == RAFT_SUBMIT) {
        given_count = event->submit.n;
        memcpy(given, event->submit.entries, given_count * sizeof *given);
        say_entries(given, given_count);
        for (unsigned i = 1; i < given_count; i++)
            assert_ptr_equal(given[i].batch, given[0].batch);
        assert_ptr_equal(given[0].batch, given[0].buf.base);
    } else if (event->type == RAFT_PERSISTED_ENTRIES) {
        trace(" to %u", (unsigned)event->persisted_entries.index);
    } else if (event->type == RAFT_CATCH_UP) {
        trace(" %u", (unsigned)event->catch_up.server_id);
    } else if (event->type == RAFT_CONFIGURATION) {
        trace(" %u", (unsigned)event->configuration.index);
        say_configuration(&event->configuration.conf);
        raft_configuration_close(&event->configuration.conf);
    } else if (event->type == RAFT_RECEIVE) {
        trace(" ");
        say_message(event->receive.message);
        trace("  ");
    }
    trace("\n");
    struct raft_update none = {0};
    assert_memory_equal(update, &none, sizeof none);
    int rc = core.rc;
    *update = core.update;
    core.update = none;
    core.update.flags = core.then;
    core.then = 0;
    core.rc = 0;
    return rc;
}
raft_term raft_current_term(const struct raft *r)
{
    assert_ptr_equal(r, &drive.raft);
    return TERM;
}
raft_id raft_voted_for(const struct raft *r)
{
    assert_ptr_equal(r, &drive.raft);
    return 3;
}
raft_index raft_commit_index(const struct raft *r)
{
    assert_ptr_equal(r, &drive.raft);
    return core.commit;
}
raft_time raft_timeout(const struct raft *r)
{
    assert_ptr_equal(r, &drive.raft);
    return core.timeout_ms;
}
int raft_match_index(const struct raft *r, raft_id id, raft_index *index)
{
    assert_ptr_equal(r, &drive.raft);
    *index = core.match[id] ? core.match[id] : 99;
    return core.match[id] ? 0 : RAFT_BADID;
}
int raft_catch_up(const struct raft *r, raft_id id, int *status)
{
    assert_ptr_equal(r, &drive.raft);
    assert_int_equal(id, 4);
    *status = core.catch_up;
    return core.catch_up_rc;
}
enum raft_state raft_state(struct raft *r)
{
    assert_ptr_equal(r, &drive.raft);
    return core.state;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    assert_ptr_equal(r, &drive.raft);
    *id = core.leader;
    *address = core.leader ? "leads" : NULL;
}

/* ---- the log ---- */

static struct leat_raft_entry entries[ENTRIES]; /* by index; type 0: not there */
static leat_err append_rc, vote_rc, mark_rc;
static bool mark_wanted, flush_finds_room;

const struct leat_raft_entry *leat_raft_log_get(const struct leat_raft_log *log, uint64_t index)
{
    assert_ptr_equal(log, &drive.log);
    return index < ENTRIES && entries[index].type ? &entries[index] : NULL;
}
leat_err leat_raft_log_append(struct leat_raft_log *log, uint64_t index, uint64_t term,
                              uint32_t type, const void *data, size_t bytes)
{
    assert_ptr_equal(log, &drive.log);
    trace("append %u: %u/%u %u bytes\n", (unsigned)index, (unsigned)term, type, (unsigned)bytes);
    assert_true(bytes == 0 || data);
    return append_rc;
}
leat_err leat_raft_log_vote(struct leat_raft_log *log, uint64_t term, uint64_t voted_for)
{
    assert_ptr_equal(log, &drive.log);
    trace("vote %u for %u\n", (unsigned)term, (unsigned)voted_for);
    return vote_rc;
}
void leat_raft_log_flush(struct leat_raft_log *log)
{
    assert_ptr_equal(log, &drive.log);
    trace("flush\n");
    if (flush_finds_room) log->full = false;
}
bool leat_raft_log_mark_wanted(const struct leat_raft_log *log)
{
    assert_ptr_equal(log, &drive.log);
    return mark_wanted;
}
leat_err leat_raft_log_mark(struct leat_raft_log *log)
{
    assert_ptr_equal(log, &drive.log);
    trace("mark\n");
    return mark_rc;
}

/* ---- snapshots ---- */

static bool no_meta;

bool leat_raft_drive_snapshot_meta(const struct leat_raft_drive *of,
                                   struct raft_snapshot_metadata *out_meta)
{
    assert_ptr_equal(of, &drive);
    if (no_meta) return false;
    *out_meta = (struct raft_snapshot_metadata){.index = 61, .term = 4, .configuration_index = 59};
    raft_configuration_init(&out_meta->configuration);
    assert_int_equal(raft_configuration_add(&out_meta->configuration, 8, "h8", RAFT_VOTER), 0);
    return true;
}
void leat_raft_drive_snapshot_maybe(struct leat_raft_drive *of)
{
    assert_ptr_equal(of, &drive);
    trace("snapshot? %u bytes, applying %d\n", (unsigned)of->bytes_since_snapshot, of->applying);
}
void leat_raft_drive_snapshot_saved(void *owner, leat_err rc)
{
    (void)owner;
    (void)rc;
}
void leat_raft_drive_install_take(struct leat_raft_drive *of, const struct raft_update *update)
{
    assert_ptr_equal(of, &drive);
    trace("install %u\n", (unsigned)update->snapshot.metadata.index);
}
void leat_raft_drive_install_finish(struct leat_raft_drive *of)
{
    assert_ptr_equal(of, &drive);
    trace("install finish\n");
}

/* ---- timers, hooks, the node log ---- */

static const char *timer_name(const struct leat_timer *timer)
{
    assert_true(timer == &drive.raft_timer || timer == &drive.mark_timer);
    return timer == &drive.raft_timer ? "raft" : "mark";
}
void leat_timer_start(struct leat_timers *of, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(of, timers);
    trace("%s timer in %u us\n", timer_name(timer), (unsigned)delay_us);
}
void leat_timer_stop(struct leat_timers *of, struct leat_timer *timer)
{
    assert_ptr_equal(of, timers);
    trace("%s timer off\n", timer_name(timer));
}
static uint64_t clock_now(void *ctx)
{
    assert_ptr_equal(ctx, &now_us);
    return now_us;
}
static leat_err apply_rc;
static uint64_t commit_then; /* applying this index commits more, and a step comes in between */
static leat_err on_apply(void *owner, uint64_t index, const uint8_t *bytes, size_t count)
{
    assert_ptr_equal(owner, &env);
    assert_int_equal(drive.applied, index);
    trace("apply %u", (unsigned)index);
    say_text(bytes, count);
    trace("\n");
    if (index == commit_then) {
        commit_then = 0;
        core.commit++;
        core.update.flags = RAFT_UPDATE_COMMIT_INDEX;
        struct raft_event event = {.type = RAFT_TIMEOUT};
        assert_int_equal(leat_raft_drive_step(&drive, &event), LEAT_OK);
    }
    return apply_rc;
}
static void on_send(void *owner, const struct raft_message *message)
{
    assert_ptr_equal(owner, &env);
    trace("send ");
    say_message(message);
}
static void on_state(void *owner)
{
    assert_ptr_equal(owner, &env);
    trace("leads %d\n", leat_raft_drive_leads(&drive));
}
static void on_failed(void *owner, leat_err rc, const char *why)
{
    assert_ptr_equal(owner, &env);
    assert_int_equal(drive.failed, rc);
    trace("failed %s: %s\n", leat_err_text(rc), why);
}
static void on_configuration(void *owner, uint64_t index, const struct raft_configuration *conf)
{
    assert_ptr_equal(owner, &env);
    trace("configuration %u", (unsigned)index);
    say_configuration(conf);
    trace("\n");
}
static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d: %s\n", (int)level, line);
}
static jmp_buf dead;
_Noreturn void leat_assert_failed(const char *file, int line, const char *condition)
{
    (void)file;
    (void)line;
    trace("stops: %s\n", condition);
    longjmp(dead, 1);
}
_Noreturn void leat_assert_cmp_failed(const char *file, int line, const char *condition,
                                      unsigned long long a, unsigned long long b)
{
    (void)a;
    (void)b;
    leat_assert_failed(file, line, condition);
}

/* ---- voter 2, a follower of three, whose log ends at 10 ---- */

static struct raft_server servers[4];
static char address[4][8];
static const char *const texts[ENTRIES] = {"", "", "", "", "", "", "six", "seven", "eight!", "ni"};

static inline int begin(void **state)
{
    (void)state;
    trace_begin();
    heap_begin();
    now_us = START_US;
    clock_of_test = (struct leat_clock){.ctx = &now_us, .now_us = clock_now};
    env = (struct leat_env){.clock = &clock_of_test};
    memset(&core, 0, sizeof core);
    core.state = RAFT_FOLLOWER;
    core.timeout_ms = START_US / 1000 + 50;
    memset(&drive, 0, sizeof drive);
    drive.env = &env;
    drive.timers = timers;
    drive.raft_open = true;
    drive.hooks = (struct leat_raft_hooks){.apply = on_apply,
                                           .send = on_send,
                                           .on_state = on_state,
                                           .on_failed = on_failed,
                                           .on_configuration = on_configuration,
                                           .owner = &env};
    leat_raft_drive_events_set(&drive);
    drive.raft.id = OWN;
    drive.log.start_index = 6;
    drive.log.entry_count = 4;
    drive.log.written_index = 9;
    memset(entries, 0, sizeof entries);
    for (unsigned i = 6; i < 10; i++)
        entries[i] = (struct leat_raft_entry){.term = i < 9 ? 4 : 5,
                                              .type = RAFT_COMMAND,
                                              .bytes = (uint32_t)strlen(texts[i]),
                                              .data = (uint8_t *)(uintptr_t)texts[i]};
    for (unsigned i = 0; i < 4; i++) {
        snprintf(address[i], sizeof address[i], "h%u", i + 1);
        servers[i] = (struct raft_server){
            .id = i + 1, .address = address[i], .role = i < 3 ? RAFT_VOTER : RAFT_STANDBY};
    }
    drive.raft.configuration.servers = servers;
    drive.raft.configuration.n = 3;
    drive.applied = 5;
    append_rc = vote_rc = mark_rc = apply_rc = LEAT_OK;
    mark_wanted = flush_finds_room = no_meta = false;
    commit_then = 0;
    leat_node_log_set(on_node_log, NULL, LEAT_NODE_LOG_INFO);
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    TRACE_IS("");
    leat_mem_free(drive.fill);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    raft_configuration_close(&drive.raft.configuration_committed);
    assert_int_equal(blocks, 0);
    raft_heap_set_default();
    return 0;
}

static inline void lead(void)
{
    core.state = RAFT_LEADER;
    drive.led = true;
}
/* The next step asks for what `flags` say. */
static inline leat_err step(unsigned flags)
{
    struct raft_event event = {.type = RAFT_TIMEOUT};
    core.update.flags = flags;
    return leat_raft_drive_step(&drive, &event);
}
static inline char *raft_text(const char *text)
{
    char *copy = raft_malloc(strlen(text) + 1);
    assert_non_null(copy);
    memcpy(copy, text, strlen(text) + 1);
    return copy;
}
#define STEP       "step 7 at 7000, room 65535:\n"
#define STOPPED(a) "node log 0: coordinator: stopped: " a "\nraft timer off\nmark timer off\n"

#define DRIVE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
