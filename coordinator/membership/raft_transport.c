/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages to and from other voters. Snapshots: membership/install.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

enum { MESSAGE_BYTES_MAX = 160 }; /* of the control body */

struct raft_send {
    struct leat_link_call call;
    struct leat_iov iov;
    uint8_t control[MESSAGE_BYTES_MAX];
    uint8_t payload[];
};

static void raft_send_done(struct leat_link_call *call, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    (void)rc; /* raft's messages may be lost */
    (void)answer;
    (void)error;
    leat_mem_free(call->owner);
}

void co_raft_send(struct leat_coordinator *coordinator, const struct raft_message *message)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_peer *peer = co_peer_of_voter(coordinator, message->server_id);
    if (!peer || !co_same_cluster(coordinator, peer)) return; /* lost */
    if (message->type == RAFT_INSTALL_SNAPSHOT) {
        co_install_send(coordinator, message);
        return;
    }
    size_t payload_bytes = co_message_payload_bytes(message);
    struct raft_send *send = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *send + payload_bytes);
    if (!send) return;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, send->control, sizeof send->control);
    co_message_encode(&writer, coordinator->voter_id, message);
    /* A copy: raft's log may drop these entries before the network has taken them. */
    if (payload_bytes) co_message_payload(message, send->payload);
    send->iov = (struct leat_iov){send->payload, payload_bytes};
    send->call = (struct leat_link_call){.kind = CO_KIND_RAFT,
                                         .one_way = true,
                                         .control = send->control,
                                         .control_bytes = writer.used,
                                         .payload = &send->iov,
                                         .payload_count = payload_bytes ? 1 : 0,
                                         .on_done = raft_send_done,
                                         .owner = send};
    if (leat_link_call(peer->link, &send->call) != LEAT_OK) leat_mem_free(send);
}

/* SUBTLE: a voter whose directory was put back to an older state has forgotten what it acknowledged. (1) The leader
 * knows that the voter has entry 40. (2) The voter's log ends at 12, and the voter says so. (3) The leader takes this
 * for a late answer, because acknowledged entries cannot be gone, and never sends the later entries. A voter that
 * only lags gets the missing entries at once. Two kinds of messages prove nothing: entries after an index beyond this
 * log's end (the leader tries such an index, too), and entries after an index below this log's last index (the leader
 * does not know yet that the log is longer). */
static void forgotten_watch(struct leat_coordinator *coordinator,
                            const struct raft_message *message)
{
    const struct raft_append_entries *append = &message->append_entries;
    if (message->type != RAFT_APPEND_ENTRIES) return;
    uint64_t last = leat_raft_log_last_index(&coordinator->drive.log);
    if (append->prev_log_index > last) return;
    bool lacks =
        append->n_entries == 0 && append->leader_commit > last && append->prev_log_index == last;
    /* With a full disk, or while a snapshot comes, it may stand still for other reasons. */
    bool waits = leat_raft_drive_installs(&coordinator->drive) || coordinator->receive.id != 0 ||
                 coordinator->drive.log.full;
    if (!lacks || waits || coordinator->forgotten.last != last ||
        coordinator->forgotten.term != append->term)
        coordinator->forgotten.appends = 0;
    coordinator->forgotten.last = last;
    coordinator->forgotten.term = append->term;
    if (!lacks || waits || coordinator->failed != LEAT_OK ||
        ++coordinator->forgotten.appends < CO_FORGOTTEN_APPENDS)
        return;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why,
             "its log ends at entry %" PRIu64
             ", and by the leader's word it had acknowledged more: "
             "its data directory is an older state of itself. It takes no part: restore the "
             "newest state, or empty the directory, start, and run: leat node replace",
             last);
    leat_node_log_error("coordinator: %s", why);
    leat_raft_drive_fail(&coordinator->drive, LEAT_E_DAMAGED, why);
    co_state_tell(coordinator, true);
}

/* SUBTLE: libraft 0.22.1 commits its log up to the leader's commit index; Raft commits only entries that the
 * message has shown to be the leader's. (1) A follower has entries of an earlier leader after the entry that a
 * heartbeat names. (2) The heartbeat says that later entries are committed: the leader has other entries at these
 * indices. (3) The follower applies its own entries. */
static void commit_bound(struct raft_message *message)
{
    struct raft_append_entries *append = &message->append_entries;
    if (message->type != RAFT_APPEND_ENTRIES) return;
    uint64_t shown = append->prev_log_index + append->n_entries;
    if (append->leader_commit > shown) append->leader_commit = shown;
}

void co_raft_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct raft_message message;
    uint64_t to;
    if (co_message_decode(frame, &message, &to) != LEAT_OK) {
        leat_link_cut(peer->link, LEAT_E_INVALID, "a malformed message of raft's");
        return;
    }
    if (!coordinator->votes || to != coordinator->voter_id || !co_same_cluster(coordinator, peer) ||
        message.server_id != peer->state.voter_id) {
        leat_raft_message_drop(&message);
        return;
    }
    const char *offence = co_message_offence(coordinator, &message);
    if (offence) {
        co_complain(coordinator, peer, offence);
        leat_raft_message_drop(&message);
        leat_link_cut(peer->link, LEAT_E_INVALID, offence);
        return;
    }
    forgotten_watch(coordinator, &message);
    commit_bound(&message);
    message.server_address = peer->state.address; /* raft keeps a copy of a leader's */
    leat_raft_drive_receive(&coordinator->drive, &message);
}
