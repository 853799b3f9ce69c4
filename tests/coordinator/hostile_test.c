/* SPDX-License-Identifier: Apache-2.0 */
/* A node that lies, in the simulated world: the node speaks the protocol, has the cluster's key and a name of its own,
 * and sends what it may not send: other nodes' commands, raft's messages, verdicts, fences. No node believes the liar,
 * no node stops, and the cluster goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/cluster_rig.h"
#include "tests/coordinator/hostile_rig.h"

/* A voter is known by its name; its address may change. */
static void hostile_voter_comes_back_at_another_address(void **state)
{
    (void)state;
    for (unsigned voter = 0; voter < 3; voter++) {
        struct rig *rig = served(79 + voter);
        rig_kill(rig, voter, SIM_DEATH_KILL);
        rig_run(rig, 5 * RIG_SECOND);
        snprintf(rig->nodes[voter].address, sizeof rig->nodes[voter].address, "n%u:7777", voter);
        rig_boot(rig, voter);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        assert_int_equal(rig_node_up(rig, voter), LEAT_OK);
        rig_run(rig, RIG_SECOND);
        unsigned other = (voter + 1) % 3, last = (voter + 2) % 3;
        rig_kill(rig, other, SIM_DEATH_KILL); /* its vote is needed from here on */
        rig_run(rig, 5 * RIG_SECOND);
        struct rig_request *request = rig_create_stream(rig, last, "moved");
        assert_int_equal(rig_wait(rig, request, 10 * RIG_SECOND), LEAT_OK);
        rig_forget(request);
        rig_boot(rig, other); /* knows the new address by now, or hears of it */
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        static struct leat_coordinator_status status;
        rig_run(rig, RIG_SECOND);
        rig_status(rig, last, &status);
        unsigned moved = 0;
        for (unsigned i = 0; i < status.voter_count; i++)
            moved += strcmp(status.voters[i].address, rig->nodes[voter].address) == 0;
        assert_int_equal(moved, 1);
        rig_destroy(rig);
    }
}

/* A term from which no voter could come back; votes and entries of a node that is no voter. */
static void hostile_terms_change_nothing(void **state)
{
    (void)state;
    struct rig *rig = served(73);
    unsigned leader = (unsigned)rig_leader(rig);
    uint64_t before = raft_current_term(&rig->nodes[leader].coordinator->drive.raft);
    const uint64_t terms[] = {UINT64_MAX, (uint64_t)1 << 40, before + 1};
    for (unsigned to = 0; to < 3; to++) {
        for (unsigned i = 0; i < 3; i++) {
            struct liar *liar = liar_create(rig, to);
            uint64_t other = rig->nodes[(to + 1) % 3].coordinator->voter_id;
            uint64_t own = rig->nodes[to].coordinator->voter_id;
            for (unsigned as = 0; as < 3; as++) { /* another voter; under its name; a new id */
                claim_voter(liar, as == 1 ? rig->nodes[(to + 1) % 3].name : "liar",
                            as == 2 ? 4711 : other, terms[i]);
                struct leat_msg_writer w = body_begin(liar, 10);
                NUMBERS(&w, 1, RAFT_APPEND_ENTRIES, as == 2 ? 4711 : other, own, 0, terms[i], 0, 0,
                        0, 0);
                (void)say(liar, CO_KIND_RAFT, false, &w);
                w = body_begin(liar, 4);
                NUMBERS(&w, before, rig->nodes[leader].coordinator->voter_id, UINT64_MAX, before);
                (void)say(liar, CO_KIND_LOST, false, &w);
            }
            liar_destroy(liar);
        }
    }
    goes_on(rig, "terms");
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(raft_current_term(&rig->nodes[i].coordinator->drive.raft), before);
    rig_destroy(rig);
}

/* A voter that sends nonsense in its own name: no term leaps. */
static void hostile_voter_does_not_leap(void **state)
{
    (void)state;
    struct rig *rig = served(74);
    unsigned leader = (unsigned)rig_leader(rig);
    struct leat_coordinator *at = rig->nodes[leader].coordinator;
    uint64_t term = raft_current_term(&at->drive.raft);
    struct raft_message message = {.type = RAFT_REQUEST_VOTE, .server_id = 7};
    message.request_vote = (struct raft_request_vote){
        .term = term + ((uint64_t)1 << 32), .candidate_id = 7, .last_log_index = 1};
    assert_non_null(co_message_offence(at, &message));
    message.request_vote.term = term + 5;
    assert_null(co_message_offence(at, &message));
    message.request_vote.last_log_index = UINT64_MAX;
    assert_non_null(co_message_offence(at, &message));
    message.request_vote.last_log_index = 1;
    message.request_vote.candidate_id = 8;
    assert_non_null(co_message_offence(at, &message));
    message = (struct raft_message){.type = RAFT_APPEND_ENTRIES, .server_id = 7};
    message.append_entries.term = term; /* a second leader of the term */
    assert_non_null(co_message_offence(at, &message));
    rig_destroy(rig);
}

/* Entries, a commit and a snapshot that no voter can have. */
static void hostile_voter_sends_nothing_impossible(void **state)
{
    (void)state;
    struct rig *rig = served(76);
    const struct leat_coordinator *at = rig->nodes[rig_leader(rig)].coordinator;
    uint64_t term = raft_current_term(&at->drive.raft) + 2;
    uint8_t garbage[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct raft_entry entries[2] = {{.term = term - 1, .type = RAFT_COMMAND},
                                    {.term = term, .type = RAFT_COMMAND}};
    struct raft_message message = {.type = RAFT_APPEND_ENTRIES, .server_id = 7};
    struct raft_append_entries *append = &message.append_entries;
    *append = (struct raft_append_entries){
        .term = term, .prev_log_term = term - 1, .entries = entries, .n_entries = 2};
    assert_null(co_message_offence(at, &message));
    append->prev_log_term = term; /* the first entry is of an earlier one */
    assert_non_null(co_message_offence(at, &message));
    append->n_entries = 0;
    assert_null(co_message_offence(at, &message));
    append->prev_log_term = term + 1;
    assert_non_null(co_message_offence(at, &message));
    append->prev_log_term = term - 1;
    append->n_entries = 2;
    entries[1].term = term + 1; /* than the message's */
    assert_non_null(co_message_offence(at, &message));
    entries[1] = (struct raft_entry){
        .term = term, .type = RAFT_CHANGE, .buf = {.base = garbage, .len = sizeof garbage}};
    assert_non_null(co_message_offence(at, &message));
    entries[1].type = RAFT_COMMAND;
    append->leader_commit = UINT64_MAX;
    assert_non_null(co_message_offence(at, &message));
    message = (struct raft_message){.type = RAFT_INSTALL_SNAPSHOT, .server_id = 7};
    message.install_snapshot.term = term;
    message.install_snapshot.last_index = message.install_snapshot.conf_index = 5;
    assert_null(co_message_offence(at, &message));
    message.install_snapshot.conf_index = 6;
    assert_non_null(co_message_offence(at, &message));
    rig_destroy(rig);
}

/* A voter's snapshot, of one chunk. */
struct chunk {
    struct leat_coordinator *at;
    struct co_peer *peer;
    uint64_t from, total, offset;
    uint32_t bytes;
};

static void chunk_now(void *arg)
{
    static uint8_t control[4096], payload[64];
    const struct chunk *chunk = arg;
    const struct leat_link_ticket nobody = {.slot = UINT32_MAX};
    struct raft_buffer conf;
    assert_int_equal(raft_configuration_encode(&chunk->at->drive.raft.configuration, &conf), 0);
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, control, sizeof control);
    leat_msg_write_array(&w, 10);
    uint64_t term = raft_current_term(&chunk->at->drive.raft);
    NUMBERS(&w, chunk->from, chunk->at->voter_id, 0, term, 1000, term, 1);
    leat_msg_write_bin(&w, conf.base, conf.len);
    NUMBERS(&w, chunk->total, chunk->offset);
    assert_false(w.overflow);
    raft_free(conf.base);
    assert_true(chunk->bytes <= sizeof payload);
    struct leat_frame frame = {.kind = CO_KIND_INSTALL,
                               .control = control,
                               .control_bytes = w.used,
                               .payload = payload,
                               .payload_bytes = chunk->bytes};
    co_install_take(chunk->at, chunk->peer, &frame, &nobody);
}

/* Chunks in another's name, of impossible sizes, and behind another's are not kept; a snapshot that does not decode
 * stays out of raft, and of the disk. */
static void hostile_snapshots_are_refused(void **state)
{
    (void)state;
    struct rig *rig = served(77);
    unsigned leader = (unsigned)rig_leader(rig), to = leader == 0 ? 1 : 0;
    struct leat_coordinator *at = rig->nodes[to].coordinator;
    const struct co_install *receive = &at->receive;
    uint64_t from = rig->nodes[leader].coordinator->voter_id;
    struct co_peer *peer = co_peer_of_voter(at, from), other = *peer;
    struct chunk wrong[] = {{at, peer, from + 1, 60, 0, 30},
                            {at, peer, from, (uint64_t)CO_SNAPSHOT_BYTES_MAX + 1, 0, 30},
                            {at, peer, from, 60, 0, 61},
                            {at, peer, from, 60, 60, 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(sim_process_enter(rig->nodes[to].process, chunk_now, &wrong[i]));
        assert_int_equal(receive->id, 0);
    }
    struct chunk chunk = {at, peer, from, 60, 0, 30};
    assert_true(sim_process_enter(rig->nodes[to].process, chunk_now, &chunk));
    assert_int_equal(receive->offset, 30);
    chunk.offset = 30;
    chunk.peer = &other; /* another link, which says the same of itself */
    assert_true(sim_process_enter(rig->nodes[to].process, chunk_now, &chunk));
    assert_int_equal(receive->offset, 30);
    uint64_t complaints = at->complaints;
    chunk.peer = peer;
    assert_true(sim_process_enter(rig->nodes[to].process, chunk_now, &chunk));
    assert_int_equal(receive->id, 0);
    assert_int_equal(at->complaints, complaints + 1);
    goes_on(rig, "snapshots");
    rig_destroy(rig);
}

/* Only the leader reports crashes and fences, from committed entries. */
static void hostile_verdicts_and_fences_are_not_believed(void **state)
{
    (void)state;
    struct rig *rig = served(75);
    for (unsigned to = 0; to < 4; to++) {
        struct liar *liar = liar_create(rig, to);
        for (unsigned i = 0; i < 2; i++) {
            claim_voter(liar, "liar", i ? rig->nodes[0].coordinator->voter_id : 0, 1000);
            struct leat_msg_writer w = body_begin(liar, 7);
            leat_msg_write_bool(&w, true);
            NUMBERS(&w, 1000, rig->nodes[to].incarnation);
            leat_msg_write_bool(&w, true);
            NUMBERS(&w, 0, 1);
            leat_msg_write_bool(&w, false);
            (void)say(liar, CO_KIND_PING, false, &w);
            (void)say(liar, CO_KIND_PONG, false, &w);
            w = body_begin(liar, 2);
            NUMBERS(&w, 99, 1);
            struct leat_msg_writer asked;
            leat_msg_writer_init(&asked, liar->payload, sizeof liar->payload);
            leat_msg_write_array(&asked, 2);
            leat_msg_write_array(&asked, 1);
            leat_msg_write_array(&asked, 2);
            leat_msg_write_string(&asked, "n3", 2);
            leat_msg_write_u64(&asked, rig->nodes[3].incarnation);
            leat_msg_write_array(&asked, 0);
            liar->payload_bytes = asked.used;
            assert_int_equal(say(liar, CO_KIND_COLLECT, true, &w), LEAT_E_DENIED);
        }
        liar_destroy(liar);
    }
    goes_on(rig, "verdicts");
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_voter_comes_back_at_another_address),
        cmocka_unit_test(hostile_terms_change_nothing),
        cmocka_unit_test(hostile_voter_does_not_leap),
        cmocka_unit_test(hostile_voter_sends_nothing_impossible),
        cmocka_unit_test(hostile_snapshots_are_refused),
        cmocka_unit_test(hostile_verdicts_and_fences_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
