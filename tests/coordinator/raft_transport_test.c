/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages to other voters and from them, with the rest of the coordinator played by the test. */
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/solo_rig.h"

/* ---- in the place of the others ---- */

static bool same_cluster, decodes;
static const char *offence;
static struct raft_message decoded;
static uint64_t decoded_to;
static size_t payload_bytes;

struct co_peer *co_peer_of_voter(struct leat_coordinator *asked, uint64_t id)
{
    assert_ptr_equal(asked, coordinator);
    return id >= 10 && id < 10 + PEERS ? &peers[id - 10].peer : NULL;
}
bool co_same_cluster(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    assert_true(peer == &peers[1].peer);
    return same_cluster;
}
void co_install_send(struct leat_coordinator *asked, const struct raft_message *message)
{
    assert_ptr_equal(asked, coordinator);
    trace("install to %llu\n", message->server_id);
}
size_t co_message_payload_bytes(const struct raft_message *message)
{
    (void)message;
    return payload_bytes;
}
void co_message_payload(const struct raft_message *message, uint8_t *out)
{
    (void)message;
    for (size_t i = 0; i < payload_bytes; i++)
        out[i] = (uint8_t)(i + 1);
}
void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message)
{
    leat_msg_write_array(writer, 2);
    leat_msg_write_u64(writer, from);
    leat_msg_write_u64(writer, message->server_id);
}
leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to)
{
    (void)frame;
    *out = decoded;
    *out_to = decoded_to;
    return decodes ? LEAT_OK : LEAT_E_INVALID;
}
const char *co_message_offence(const struct leat_coordinator *asked,
                               const struct raft_message *message)
{
    assert_ptr_equal(asked, coordinator);
    assert_int_equal(message->server_id, 11);
    return offence;
}
void co_complain(struct leat_coordinator *asked, const struct co_peer *peer, const char *what)
{
    assert_ptr_equal(asked, coordinator);
    trace("complain of %s: %s\n", name_of(peer), what);
}
void co_state_tell(struct leat_coordinator *asked, bool always)
{
    assert_ptr_equal(asked, coordinator);
    trace("state told %d\n", always);
}
void leat_raft_message_drop(struct raft_message *message)
{
    trace("drop of %llu\n", message->server_id);
}
void leat_raft_drive_receive(struct leat_raft_drive *drive, struct raft_message *message)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("raft: type %d of %llu at %s", message->type, message->server_id,
          message->server_address);
    if (message->append_entries.leader_commit || message->type == RAFT_APPEND_ENTRIES)
        trace(" commit %llu", message->append_entries.leader_commit);
    trace("\n");
}
void leat_raft_drive_fail(struct leat_raft_drive *drive, leat_err rc, const char *why)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("fail %s: %s\n", leat_err_name(rc), why);
    coordinator->failed = rc;
}

static int begin(void **state)
{
    solo_begin(state);
    coordinator->votes = same_cluster = decodes = true;
    offence = NULL;
    payload_bytes = 0;
    decoded_to = 1;
    decoded = (struct raft_message){.type = RAFT_REQUEST_VOTE, .server_id = 11};
    return 0;
}
#define RAFT_TRANSPORT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, solo_finish)

/* ---- out ---- */

static void message_goes_to_the_voter_with_a_copy_of_its_entries(void **state)
{
    (void)state;
    struct raft_message message = {.type = RAFT_REQUEST_VOTE, .server_id = 11};
    co_raft_send(coordinator, &message);
    TRACE_IS("call n1 kind 273 one way [2 1 11\n");
    const size_t message_bytes = leat_mem_bytes(LEAT_MEM_COORDINATOR);
    payload_bytes = 5;
    message.type = RAFT_APPEND_ENTRIES;
    co_raft_send(coordinator, &message);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 2 * message_bytes + 5);
    TRACE_IS("call n1 kind 273 one way [2 1 11 +5:0102030405\n");
    /* What became of it is nobody's matter. */
    call_ends(LEAT_OK);
    call_ends(LEAT_E_CLOSED);
    TRACE_IS("");
    message.type = RAFT_INSTALL_SNAPSHOT;
    co_raft_send(coordinator, &message);
    TRACE_IS("install to 11\n");
    assert_int_equal(call_count, 0);
}

static void message_that_reaches_nobody_is_lost(void **state)
{
    (void)state;
    struct raft_message message = {.type = RAFT_REQUEST_VOTE, .server_id = 9};
    co_raft_send(coordinator, &message);
    TRACE_IS("");
    message.server_id = 11;
    same_cluster = false;
    co_raft_send(coordinator, &message);
    message.type = RAFT_INSTALL_SNAPSHOT;
    co_raft_send(coordinator, &message);
    TRACE_IS("");
    same_cluster = true;
    message.type = RAFT_REQUEST_VOTE;
    leat_mem_fail_at(1);
    co_raft_send(coordinator, &message);
    TRACE_IS("");
    link_rc = LEAT_E_AGAIN;
    co_raft_send(coordinator, &message);
    TRACE_IS("call n1 kind 273 one way [2 1 11 fails\n");
}

/* ---- in ---- */

static void take(void)
{
    const struct leat_frame frame = {.control_bytes = 0};
    co_raft_take(coordinator, &peers[1].peer, &frame);
}

static void message_for_this_voter_comes_to_raft(void **state)
{
    (void)state;
    take();
    TRACE_IS("raft: type 3 of 11 at h1:1\n");
}

static void message_of_or_for_another_is_dropped(void **state)
{
    (void)state;
    coordinator->votes = false;
    take();
    coordinator->votes = true;
    decoded_to = 2;
    take();
    decoded_to = 1;
    same_cluster = false;
    take();
    same_cluster = true;
    peers[1].peer.state.voter_id = 12;
    take();
    TRACE_IS("drop of 11\ndrop of 11\ndrop of 11\ndrop of 11\n");
}

static void message_that_no_voter_sends_cuts_its_link(void **state)
{
    (void)state;
    offence = "it lies";
    take();
    TRACE_IS("complain of n1: it lies\ndrop of 11\ncut n1: INVALID: it lies\n");
    decodes = false;
    take();
    TRACE_IS("cut n1: INVALID: a malformed message of raft's\n");
}

/* ---- what an append says ---- */

enum { LAST = 12, APPEND_TERM = 7 };

static void append(uint64_t prev, unsigned entries, uint64_t commit)
{
    coordinator->drive.log.start_index = 5;
    coordinator->drive.log.entry_count = LAST + 1 - 5;
    decoded = (struct raft_message){.type = RAFT_APPEND_ENTRIES, .server_id = 11};
    decoded.append_entries.term = APPEND_TERM;
    decoded.append_entries.prev_log_index = prev;
    decoded.append_entries.n_entries = entries;
    decoded.append_entries.leader_commit = commit;
    take();
}

static void nothing_is_committed_beyond_what_the_message_shows(void **state)
{
    (void)state;
    append(10, 3, 12);
    append(10, 3, 13);
    append(10, 3, 14);
    append(10, 0, 11);
    append(0, 0, 0);
    TRACE_IS("raft: type 1 of 11 at h1:1 commit 12\n"
             "raft: type 1 of 11 at h1:1 commit 13\n"
             "raft: type 1 of 11 at h1:1 commit 13\n"
             "raft: type 1 of 11 at h1:1 commit 10\n"
             "raft: type 1 of 11 at h1:1 commit 0\n");
    /* Of another kind nothing is looked at in that way, whatever lies in the same place. */
    decoded.type = RAFT_REQUEST_VOTE;
    decoded.append_entries.prev_log_index = 1;
    decoded.append_entries.leader_commit = 9;
    take();
    TRACE_IS("raft: type 3 of 11 at h1:1 commit 9\n");
}

/* Heartbeats that show that this voter's disk has an older state. */
static void lack(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        append(LAST, 0, LAST + 1);
}
#define FORGOT                                                                                     \
    "its log ends at entry 12, and by the leader's word it had acknowledged more: its data "       \
    "directory is an older state of itself. It takes no part: restore the newest state, or empty " \
    "the directory, start, and run: leat node replace\n"

static void voter_that_has_forgotten_what_it_acknowledged_stops(void **state)
{
    (void)state;
    lack(CO_FORGOTTEN_APPENDS - 1);
    assert_null(strstr(trace_text, "fail"));
    assert_int_equal(coordinator->forgotten.appends, CO_FORGOTTEN_APPENDS - 1);
    assert_int_equal(coordinator->forgotten.last, LAST);
    assert_int_equal(coordinator->forgotten.term, APPEND_TERM);
    trace_begin();
    lack(1);
    TRACE_IS("node log 0: coordinator: " FORGOT "fail DAMAGED: " FORGOT
             "state told 1\nraft: type 1 of 11 at h1:1 commit 12\n");
    /* Said once. */
    lack(3);
    TRACE_IS("raft: type 1 of 11 at h1:1 commit 12\nraft: type 1 of 11 at h1:1 commit 12\n"
             "raft: type 1 of 11 at h1:1 commit 12\n");
}

/* Messages that reset the count, and messages that leave the count as it is. */
static void only_heartbeats_at_the_same_end_count(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 10; c++) {
        memset(&coordinator->forgotten, 0, sizeof coordinator->forgotten);
        lack(5);
        assert_int_equal(coordinator->forgotten.appends, 5);
        unsigned then = 0;
        switch (c) {
        case 0:
            append(LAST, 1, LAST + 1);
            break; /* it is sent something */
        case 1:
            append(LAST, 0, LAST);
            break; /* nothing lacks */
        case 2:
            append(LAST - 1, 0, LAST + 1);
            break; /* of an older place */
        case 3:
            append(LAST + 1, 0, LAST + 2), then = 5;
            break; /* what is not here says nothing */
        case 4:
            coordinator->drive.snapshot_state = LEAT_RAFT_SNAPSHOT_TAKES_FIRST, lack(1);
            break;
        case 5:
            coordinator->receive.id = 11, lack(1);
            break;
        case 6:
            coordinator->drive.log.full = true, lack(1);
            break;
        case 7:
            coordinator->forgotten.term--, lack(1), then = 1;
            break;
        case 8:
            coordinator->forgotten.last--, lack(1), then = 1;
            break;
        default:
            lack(1), then = 6;
            break;
        }
        assert_int_equal(coordinator->forgotten.appends, then);
        coordinator->drive.snapshot_state = LEAT_RAFT_SNAPSHOT_NONE;
        coordinator->drive.log.full = false;
        coordinator->receive.id = 0;
    }
    /* Not of one that has failed already, nor of messages of another kind. */
    coordinator->forgotten.appends = 3;
    decoded.type = RAFT_REQUEST_VOTE;
    take();
    assert_int_equal(coordinator->forgotten.appends, 3);
    coordinator->failed = LEAT_E_DISK;
    lack(1);
    assert_int_equal(coordinator->forgotten.appends, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RAFT_TRANSPORT_TEST(message_goes_to_the_voter_with_a_copy_of_its_entries),
        RAFT_TRANSPORT_TEST(message_that_reaches_nobody_is_lost),
        RAFT_TRANSPORT_TEST(message_for_this_voter_comes_to_raft),
        RAFT_TRANSPORT_TEST(message_of_or_for_another_is_dropped),
        RAFT_TRANSPORT_TEST(message_that_no_voter_sends_cuts_its_link),
        RAFT_TRANSPORT_TEST(nothing_is_committed_beyond_what_the_message_shows),
        RAFT_TRANSPORT_TEST(voter_that_has_forgotten_what_it_acknowledged_stops),
        RAFT_TRANSPORT_TEST(only_heartbeats_at_the_same_end_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
