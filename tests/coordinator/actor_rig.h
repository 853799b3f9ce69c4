/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator as an actor, by itself: this file plays tables, raft, timers and all other parts of the coordinator,
 * and writes their calls to the trace. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_ACTOR_RIG_H
#define LEAT_TESTS_COORDINATOR_ACTOR_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/status.h"
#include "coordinator/membership/voters.h"
#include "coordinator/recovery/attempt.h"
#include "tests/trace.h"

static struct leat_coordinator *coordinator;
static struct leat_coordinator_options options;
static uint64_t now_us;

/* ---- whoever is told that something is to be done ---- */

#define IS_TOLD(name)                                                                              \
    void name(struct leat_coordinator *asked)                                                      \
    {                                                                                              \
        assert_true(!coordinator || asked == coordinator);                                         \
        trace(#name "\n");                                                                         \
    }
#define IS_TOLD_WHEN(name)                                                                         \
    void name(struct leat_coordinator *asked, uint64_t at_us)                                      \
    {                                                                                              \
        assert_ptr_equal(asked, coordinator);                                                      \
        assert_int_equal(at_us, now_us);                                                           \
        trace(#name "\n");                                                                         \
    }
IS_TOLD(co_identity_update)
IS_TOLD(co_peers_want)
IS_TOLD(co_requests_restored)
IS_TOLD(co_detect_leads)
IS_TOLD(co_requests_again)
IS_TOLD(co_requests_advance)
IS_TOLD(co_change_advance)
IS_TOLD(co_feed_advance)
IS_TOLD(co_recovery_advance)
IS_TOLD(co_report_tell)
IS_TOLD(co_collect_advance)
IS_TOLD(co_form_advance)
IS_TOLD(co_feed_tick)
IS_TOLD(co_requests_init)
IS_TOLD(co_detect_init)
IS_TOLD(co_detect_start)
IS_TOLD(co_detect_fini)
IS_TOLD(co_peers_fini)
IS_TOLD(co_install_fini)
IS_TOLD(co_collect_fini)
IS_TOLD(co_recovery_fini)
IS_TOLD_WHEN(co_wait_tell)
IS_TOLD_WHEN(co_requests_tick)

void co_state_tell(struct leat_coordinator *asked, bool always)
{
    assert_ptr_equal(asked, coordinator);
    trace("co_state_tell %d\n", always);
}
void co_requests_fail(struct leat_coordinator *asked, leat_err rc, const char *why)
{
    assert_ptr_equal(asked, coordinator);
    trace("requests fail: %s (%s)\n", why, leat_err_text(rc));
}
void co_change_end(struct leat_coordinator *asked, leat_err rc, const char *why)
{
    assert_ptr_equal(asked, coordinator);
    trace("change ends: %s (%s)\n", why, leat_err_text(rc));
}
void co_requests_applied(struct leat_coordinator *asked, const struct leat_machine_result *result)
{
    assert_ptr_equal(asked, coordinator);
    trace("result %u\n", (unsigned)result->sequence);
}
void co_raft_send(struct leat_coordinator *asked, const struct raft_message *message)
{
    assert_ptr_equal(asked, coordinator);
    trace("send to %u\n", (unsigned)message->server_id);
}
void co_voters_applied(struct leat_coordinator *asked,
                       const struct raft_configuration *configuration)
{
    assert_ptr_equal(asked, coordinator);
    assert_int_equal(asked->applied, 43);
    trace("voters %u\n", configuration->n);
}
void co_detect_node(struct leat_coordinator *asked, const struct leat_node_info *node)
{
    assert_ptr_equal(asked, coordinator);
    trace("detect %s\n", node->name);
}
void co_peer_retry(struct leat_coordinator *asked, const struct leat_node_info *node)
{
    assert_ptr_equal(asked, coordinator);
    trace("retry %s\n", node->name);
}
static bool done_at_once;
void co_request_queue(struct leat_coordinator *asked, struct leat_coordinate *request)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(request, &coordinator->ready_request);
    trace("request %d\n", (int)request->kind);
    if (done_at_once) request->on_done(request);
}

/* ---- steps of opening: what each says ---- */

static struct leat_raft_hooks hooks;
static leat_err recovery_rc, voter_rc, open_rc, peers_rc, form_open_rc, form_rc, start_rc,
    timers_rc;
static bool is_new;
static uint64_t voter_id;
static struct raft_server servers[3]; /* by the log here */
static unsigned server_count;

leat_err co_recovery_init(struct leat_coordinator *asked)
{
    trace("recovery %d %d\n", asked->clustered, (int)asked->options.cores);
    return recovery_rc;
}
leat_err co_voter_load(struct leat_coordinator *asked, struct leat_error *error)
{
    trace("voter?\n");
    asked->voter_id = voter_id;
    return voter_rc ? leat_error_set(error, voter_rc, "no voter") : LEAT_OK;
}
leat_err leat_raft_drive_open(struct leat_raft_drive *drive, const struct leat_env *env,
                              struct leat_timers *timers, const struct leat_raft_hooks *with,
                              const struct leat_raft_drive_options *as, bool *out_new,
                              struct leat_error *error)
{
    struct leat_coordinator *owner = with->owner;
    assert_true(drive == &owner->drive && env == owner->env && timers == &owner->timers);
    hooks = *with;
    trace("drive %u at %s, %u %u ms, snapshot %u, segment %u\n", (unsigned)as->id, as->address,
          as->election_ms, as->heartbeat_ms, (unsigned)as->snapshot_bytes_min,
          (unsigned)as->segment_bytes);
    *out_new = is_new;
    drive->raft.configuration.servers = servers;
    drive->raft.configuration.n = server_count;
    return open_rc; /* says nothing itself */
    (void)error;
}
leat_err co_peers_init(struct leat_coordinator *asked, struct leat_error *error)
{
    (void)error;
    trace("peers\n");
    return peers_rc;
}
leat_err co_form_open(struct leat_coordinator *asked, bool new_one, struct leat_error *error)
{
    (void)asked;
    (void)error;
    trace("form open %d\n", new_one);
    return form_open_rc;
}
leat_err leat_raft_drive_form(struct leat_raft_drive *drive,
                              const struct raft_configuration *configuration, const void *command,
                              size_t count, struct leat_error *error)
{
    (void)drive;
    (void)error;
    trace("form");
    for (unsigned i = 0; i < configuration->n; i++)
        trace(" %u=%s/%d", (unsigned)configuration->servers[i].id,
              configuration->servers[i].address, (int)configuration->servers[i].role);
    trace(":");
    for (size_t i = 0; i < count; i++)
        trace(" %02x", ((const uint8_t *)command)[i]);
    trace("\n");
    return form_rc;
}
leat_err leat_raft_drive_start(struct leat_raft_drive *drive, struct leat_error *error)
{
    (void)error;
    trace("start %d\n", LEAT_CONTAINER(drive, struct leat_coordinator, drive)->votes);
    return start_rc;
}
void leat_raft_drive_close(struct leat_raft_drive *drive)
{
    (void)drive;
    trace("drive ends\n");
}
static bool leads;
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
static leat_err turn_fails;
void leat_raft_drive_turn_end(struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("drive's turn ends\n");
    coordinator->failed = turn_fails;
}
void co_form_command(struct leat_msg_writer *writer, const uint8_t cluster_id[16])
{
    leat_msg_write_bin(writer, cluster_id, 16);
}
void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name)
{
    snprintf(out, CO_VOTER_BYTES_MAX + 1, "%s %s", address, name);
}
void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    size_t bytes = strcspn(text, " ");
    memset(out, 0, sizeof *out);
    memcpy(out->address, text, bytes);
    if (text[bytes]) snprintf(out->name, sizeof out->name, "%.100s", text + bytes + 1);
}
const char *co_own_name(const struct leat_coordinator *asked)
{
    return asked->options.node_name;
}
const struct raft_server *co_server_of_id(const struct leat_coordinator *asked, uint64_t id)
{
    for (unsigned i = 0; i < asked->drive.raft.configuration.n; i++)
        if (servers[i].id == id) return &servers[i];
    return NULL;
}

/* ---- tables ---- */

static leat_err apply_rc, restore_rc, snapshot_rc;
static bool applies_formed, malformed;
static uint32_t restored_count; /* streams that are left: ids 3, 6, 9 ... */

void leat_machine_init(struct leat_machine *machine, uint32_t cores)
{
    trace("tables %u\n", cores);
    machine->cores = cores;
}
void leat_machine_fini(struct leat_machine *machine)
{
    trace("tables end\n");
    machine->streams = NULL;
}
leat_err leat_machine_apply(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                            struct leat_machine_result *out_result)
{
    trace("apply %.*s at %u\n", (int)count, (const char *)bytes, (unsigned)coordinator->applied);
    if (apply_rc != LEAT_OK) return apply_rc;
    *out_result = (struct leat_machine_result){.sequence = 31, .malformed = malformed};
    machine->formed = applies_formed;
    return LEAT_OK;
}
leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count)
{
    assert_ptr_equal(machine, &coordinator->machine);
    *out_bytes = (uint8_t *)&now_us;
    *out_count = 7;
    return snapshot_rc;
}
leat_err leat_machine_restore(struct leat_machine *machine, const uint8_t *bytes, size_t count)
{
    trace("restore %.*s\n", (int)count, (const char *)bytes);
    machine->stream_count = restored_count;
    return restore_rc;
}
struct leat_machine_stream *leat_machine_stream_find(const struct leat_machine *machine,
                                                     uint32_t id)
{
    for (uint32_t i = 0; i < machine->stream_count; i++)
        if (machine->streams[i].id == id) return &machine->streams[i];
    return NULL;
}

/* ---- timers ---- */

leat_err leat_timers_init(struct leat_timers *timers, const struct leat_clock *clock,
                          uint32_t capacity)
{
    (void)timers;
    assert_non_null(clock);
    trace("timers %u\n", capacity);
    return timers_rc;
}
void leat_timers_fini(struct leat_timers *timers)
{
    (void)timers;
    trace("timers end\n");
}
void leat_timers_run(struct leat_timers *timers)
{
    assert_ptr_equal(timers, &coordinator->timers);
    trace("timers run\n");
}
static struct leat_timer *tick;
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    struct leat_coordinator *of = LEAT_CONTAINER(timers, struct leat_coordinator, timers);
    bool is_tick = timer == &of->tick_timer;
    assert_true(is_tick || timer == &of->begin_timer);
    trace("%s in %u us\n", is_tick ? "tick" : "begin", (unsigned)delay_us);
    if (is_tick) tick = timer;
}
void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    (void)timers;
    (void)timer;
    fail();
}

/* ---- the world ---- */

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    static uint64_t drawn;
    trace("random\n");
    return drawn++ % 2 == 0 ? 0x1111111111111111 : 0x2222222222222222;
}
static const struct leat_clock clock_of_test = {.now_us = clock_now};
static const struct leat_random random_of_test = {.next = random_next};
static const struct leat_env env = {.clock = &clock_of_test, .random = &random_of_test};

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    assert_ptr_equal(owner, &options);
    trace("stream %u\n", desc->id);
}
static void on_stream_deleted(void *owner, uint32_t stream_id)
{
    assert_ptr_equal(owner, &options);
    trace("no stream %u\n", stream_id);
}
static void on_streams_given(void *owner, uint32_t highest)
{
    assert_ptr_equal(owner, &options);
    trace("streams to %u\n", highest);
}
static void on_node(void *owner, const struct leat_node_info *node)
{
    assert_ptr_equal(owner, &options);
    trace("node %s\n", node->name);
}
static void on_ready(void *owner)
{
    assert_ptr_equal(owner, &options);
    trace("ready\n");
}
static void on_collect(void *owner, struct leat_collect *collect)
{
    (void)owner;
    (void)collect;
}
static void on_pull(void *owner, struct leat_pull *pull)
{
    (void)owner;
    (void)pull;
}
static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d: %s\n", (int)level, line);
}

static struct leat_error error;
static inline leat_err opens(void)
{
    struct leat_coordinator *made = NULL;
    memset(&error, 0, sizeof error);
    leat_err rc = leat_coordinator_open(&env, &options, &made, &error);
    coordinator = made;
    return rc;
}
static inline void closes(void)
{
    leat_coordinator_close(&coordinator);
    assert_null(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
}
static inline int begin(void **state)
{
    (void)state;
    trace_begin();
    coordinator = NULL;
    now_us = 1000000;
    options = (struct leat_coordinator_options){.cores = 3,
                                                .node_name = "own",
                                                .on_stream = on_stream,
                                                .on_stream_deleted = on_stream_deleted,
                                                .on_streams_given = on_streams_given,
                                                .on_node = on_node,
                                                .on_ready = on_ready,
                                                .on_collect = on_collect,
                                                .on_pull = on_pull,
                                                .owner = &options};
    recovery_rc = voter_rc = open_rc = peers_rc = form_open_rc = form_rc = start_rc = timers_rc =
        LEAT_OK;
    apply_rc = restore_rc = snapshot_rc = turn_fails = LEAT_OK;
    is_new = applies_formed = malformed = leads = done_at_once = false;
    voter_id = 1;
    server_count = 0;
    memset(servers, 0, sizeof servers);
    leat_node_log_set(on_node_log, NULL, LEAT_NODE_LOG_INFO);
    return 0;
}
static inline void server(unsigned id, const char *text)
{
    servers[server_count++] =
        (struct raft_server){.id = id, .address = (char *)(uintptr_t)text, .role = RAFT_VOTER};
}
#define ACTOR_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
static inline int finish(void **state)
{
    (void)state;
    TRACE_IS("");
    if (coordinator) closes();
    trace_begin();
    return 0;
}

#endif
