/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that membership/requests.c calls, except links: raft, the tables, the encoders of records, and the
 * requests that wait for an answer. */
#ifndef LEAT_TESTS_COORDINATOR_REQUESTS_RIG_H
#define LEAT_TESTS_COORDINATOR_REQUESTS_RIG_H

#include "base/bytes.h"
#include "tests/coordinator/solo_rig.h"

#include "coordinator/membership/forming.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/status.h"
#include "coordinator/recovery/attempt.h"

enum { REQUESTS = 6 };

static struct leat_coordinate requests[REQUESTS]; /* r0 to r5 */
static leat_err encode_rc, submit_rc, may_rc, tails_rc;
static size_t record_bytes; /* of a record's command; 0: its name, "r0" */
static bool leads, busy, unknown_command;
static const char *offence;
static struct co_peer *leader;
static void (*while_submitting)(void);
static struct leat_machine_result outcome; /* known to the tables, of that sequence */

static inline const char *request_name(const struct leat_coordinate *request)
{
    static const char *const names[] = {"r0", "r1", "r2", "r3", "r4", "r5"};
    if (request == &coordinator->ready_request) return "ready";
    return names[request - requests];
}

static leat_err record_make(const char *what, struct leat_coordinate *request)
{
    trace("%s %s\n", what, request_name(request));
    if (encode_rc != LEAT_OK) return leat_error_set(&request->error, encode_rc, "can't be made");
    const char *name = request_name(request);
    const size_t bytes = record_bytes ? record_bytes : strlen(name);
    request->bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 4 + bytes, 1);
    assert_non_null(request->bytes);
    leat_put_le32(request->bytes, (uint32_t)bytes);
    memcpy(request->bytes + 4, name, 2);
    request->byte_count = 4 + bytes;
    request->sequence = ++coordinator->next_sequence;
    return LEAT_OK;
}
leat_err co_request_encode(struct leat_coordinator *asked, struct leat_coordinate *request)
{
    assert_ptr_equal(asked, coordinator);
    return record_make("encode", request);
}
leat_err co_adopt_encode(struct leat_coordinator *asked, struct leat_coordinate *request)
{
    assert_ptr_equal(asked, coordinator);
    assert_null(request->decisions);
    request->decisions = leat_mem_calloc(LEAT_MEM_COORDINATOR, 3, sizeof *request->decisions);
    request->decision_count = 2;
    request->decisions[1].left = true;
    return record_make("adopt", request);
}
const char *co_request_offence(const struct leat_coordinate *request)
{
    (void)request;
    return offence;
}
leat_err co_drain_refuse(struct leat_coordinate *request)
{
    return leat_error_set(&request->error, LEAT_E_INVALID, "the last one");
}
leat_err co_tails_answer(struct leat_coordinator *asked, struct leat_coordinate *request)
{
    assert_ptr_equal(asked, coordinator);
    trace("tails of %s\n", request_name(request));
    return tails_rc;
}
void co_change_begin(struct leat_coordinator *asked, bool replace, const char *node,
                     struct leat_coordinate *request, const struct leat_link_ticket *from)
{
    assert_ptr_equal(asked, coordinator);
    assert_null(from);
    trace("change %d %s for %s\n", replace, node, request_name(request));
}
void co_identity_update(struct leat_coordinator *asked)
{
    trace("identity of %llu\n", (unsigned long long)asked->incarnation);
}
void co_state_tell(struct leat_coordinator *asked, bool always)
{
    assert_ptr_equal(asked, coordinator);
    trace("state told %d\n", always);
}
void co_leader_lacks_tell(struct leat_coordinator *asked, const char *before, char *out,
                          size_t bytes)
{
    assert_ptr_equal(asked, coordinator);
    snprintf(out, bytes, "%sno leader", before);
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return leader;
}
leat_err co_peer_may_ask(struct leat_coordinator *asked, const struct co_peer *peer,
                         const uint8_t *record, size_t bytes)
{
    assert_ptr_equal(asked, coordinator);
    trace("may %s", name_of(peer));
    bytes_trace(record, bytes);
    trace("\n");
    return may_rc;
}
bool leat_machine_command_known(const uint8_t *bytes, size_t count)
{
    (void)bytes;
    (void)count;
    return !unknown_command;
}
bool leat_machine_outcome(struct leat_machine *machine, uint64_t session, uint64_t sequence,
                          struct leat_machine_result *out_result)
{
    assert_ptr_equal(machine, &coordinator->machine);
    assert_int_equal(session, coordinator->session);
    *out_result = outcome;
    return outcome.sequence == sequence;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
bool leat_raft_drive_busy(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return busy;
}
leat_err leat_raft_drive_submit(struct leat_raft_drive *drive, const struct raft_buffer *commands,
                                unsigned count, uint64_t *out_first)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("submit %u:", count);
    for (unsigned i = 0; i < count && i < 8; i++)
        bytes_trace(commands[i].base, commands[i].len);
    trace("\n");
    *out_first = 1;
    if (while_submitting) while_submitting();
    return submit_rc;
}
void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    trace("kept %u\n", desc->id);
}

static inline void done(struct leat_coordinate *request)
{
    trace("done %s %s", request_name(request), leat_err_name(request->rc));
    if (request->rc != LEAT_OK) trace(": %s", request->error.text);
    assert_int_equal(request->error.code, request->rc);
    assert_null(request->bytes);
    if (request->epoch.v) trace(", epoch %u", request->epoch.v);
    trace("\n");
}

static inline int begin(void **state)
{
    solo_begin(state);
    memset(requests, 0, sizeof requests);
    memset(&outcome, 0, sizeof outcome);
    encode_rc = submit_rc = may_rc = tails_rc = LEAT_OK;
    record_bytes = 0;
    leads = busy = unknown_command = false;
    offence = NULL;
    leader = NULL;
    while_submitting = NULL;
    memset(&coordinator->queue, 0, sizeof coordinator->queue);
    memset(&coordinator->pending, 0, sizeof coordinator->pending);
    co_requests_init(coordinator);
    coordinator->votes = true;
    for (unsigned i = 0; i < REQUESTS; i++) {
        requests[i].kind = LEAT_COORDINATE_BARRIER;
        requests[i].on_done = done;
        requests[i].from = 7;
        requests[i].rc = LEAT_E_INTERNAL; /* of whatever was before */
    }
    coordinator->ready_request.on_done = done;
    return 0;
}
static inline int finish(void **state)
{
    while (call_count)
        call_ends(LEAT_E_CANCELLED);
    co_requests_fail(coordinator, LEAT_E_CLOSED, "end");
    assert_int_equal(coordinator->queue_count, 0);
    assert_int_equal(coordinator->shares.all, 0);
    return solo_finish(state);
}
#define REQUESTS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

/* "queue r0 r1, pending r2" */
static inline void where(void)
{
    trace("queue");
    size_t count = 0;
    LEAT_LIST_EACH(&coordinator->queue, link)
    {
        trace(" %s", request_name(LEAT_CONTAINER(link, struct leat_coordinate, link)));
        count++;
    }
    assert_int_equal(coordinator->queue_count, count);
    trace(", pending");
    LEAT_LIST_EACH(&coordinator->pending, link)
    trace(" %s", request_name(LEAT_CONTAINER(link, struct leat_coordinate, link)));
    trace("\n");
}

static inline void ask(unsigned i)
{
    leat_coordinate(&solo_post, &requests[i]);
}
/* All of r0 to so many are sent to raft here. */
static inline void sent_here(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        co_request_queue(coordinator, &requests[i]);
    leads = true;
    co_requests_advance(coordinator);
    trace_begin();
}
static inline void applied(uint64_t sequence, const struct leat_machine_result *result)
{
    struct leat_machine_result whole = *result;
    whole.session = coordinator->session;
    whole.sequence = sequence;
    co_requests_applied(coordinator, &whole);
}
#define RESULT(...)                                                                                \
    &(const struct leat_machine_result)                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#endif
