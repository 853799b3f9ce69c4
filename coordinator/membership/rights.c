/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of peers. See membership/rights.h, and docs/cluster-protocol.md for the table. */
#include "coordinator/membership/rights.h"

#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/voters.h"
#include "coordinator/metadata/assign.h"

enum {
    COMPLAIN_US = 1000 * 1000,
    /* Terms that a voter may have missed: an election each 400 ms, none of them won, for 77 days. No cluster gets
     * back from the last possible term, and a peer that may add this many needs 2^40 messages. */
    TERM_LEAP_MAX = 1 << 24,
};
/* Entries that a voter may have missed: a million in each second, for twelve days. */
static const uint64_t index_leap_max = (uint64_t)1 << 40;

/* ---- the tables: a kind without a row does not compile ---- */

enum co_right co_kind_right(unsigned kind)
{
    switch ((enum co_kind)kind) {
    case CO_KIND_STATE:
    case CO_KIND_SUBMIT: /* its commands have rights of their own */
    case CO_KIND_FEED:
    case CO_KIND_ADMIN:
    case CO_KIND_PING: /* only the leader's pings may say that a node crashed */
    case CO_KIND_PONG:
        return CO_RIGHT_NODE;
    case CO_KIND_FORM:
        return CO_RIGHT_FORMER;
    case CO_KIND_RAFT:
    case CO_KIND_INSTALL:
    case CO_KIND_LOST:
    case CO_KIND_ENTRIES: /* from the voter that was asked for entries */
    case CO_KIND_SNAPSHOT:
        return CO_RIGHT_VOTER;
    case CO_KIND_JOIN:
    case CO_KIND_COLLECT:
    case CO_KIND_PULL:
    case CO_KIND_RECOVERY:
        return CO_RIGHT_LEADER;
    }
    return CO_RIGHT_NOBODY;
}

enum co_right co_command_right(unsigned kind)
{
    switch ((enum leat_command_kind)kind) {
    case LEAT_COMMAND_FORM: /* is the first entry of all, and never requested */
    case LEAT_COMMAND_REQUEST:
    case LEAT_COMMAND_NODE_STATE: /* only stored logs of earlier versions have it and those below */
    case LEAT_COMMAND_ADOPT:
    case LEAT_COMMAND_ACCEPT_LOSS:
    case LEAT_COMMAND_MOVE:
    case LEAT_COMMAND_RECOVER:
        return CO_RIGHT_NOBODY;
    case LEAT_COMMAND_STREAM_CREATE:
    case LEAT_COMMAND_STREAM_DELETE:
    case LEAT_COMMAND_STREAM_CHANGE:
    case LEAT_COMMAND_PRODUCER_IDS:
    case LEAT_COMMAND_BARRIER:
    case LEAT_COMMAND_NODE_DRAIN:
        return CO_RIGHT_NODE;
    case LEAT_COMMAND_OPENED:
    case LEAT_COMMAND_NODE_UP:
    case LEAT_COMMAND_VERSION_RAISE:
    case LEAT_COMMAND_ASSIGN: /* of a recovery: a voter, see co_peer_may_ask() */
        return CO_RIGHT_SELF;
    case LEAT_COMMAND_CRASH: /* from a former leader, forwarded to the next leader */
        return CO_RIGHT_VOTER;
    }
    return CO_RIGHT_NOBODY;
}

/* ---- identity ---- */

/* By this node's raft; 0: unknown. */
static raft_id leader_of(const struct leat_coordinator *coordinator)
{
    raft_id leader = 0;
    const char *address = NULL;
    raft_leader((struct raft *)(uintptr_t)&coordinator->drive.raft, &leader, &address);
    return leader;
}

static const char *name_of(const struct co_peer *peer)
{
    return leat_link_peer(peer->link)->node;
}

bool co_peer_leads(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!co_peer_votes(coordinator, peer)) return false;
    if (coordinator->votes && !co_learns(coordinator)) {
        raft_id leader = leader_of(coordinator);
        return leader != 0 && leader == peer->state.voter_id && leader != coordinator->voter_id;
    }
    const struct co_peer *latest =
        co_peer_leader((struct leat_coordinator *)(uintptr_t)coordinator);
    return latest && peer->state.role == LEAT_VOTER_LEADER &&
           peer->state.term == latest->state.term;
}

bool co_peer_may(const struct leat_coordinator *coordinator, const struct co_peer *peer,
                 unsigned kind, const char **out_why)
{
    LEAT_ASSERT_OWNER(coordinator);
    switch (co_kind_right(kind)) {
    case CO_RIGHT_NODE:
        return true;
    case CO_RIGHT_FORMER:
        *out_why = "there is a cluster already";
        return !coordinator->votes && !coordinator->machine.formed;
    case CO_RIGHT_VOTER:
        *out_why = "only a voter may say that";
        return co_peer_votes(coordinator, peer);
    case CO_RIGHT_LEADER:
        *out_why = "only the leader of the current term may say that";
        return co_peer_leads(coordinator, peer);
    case CO_RIGHT_SELF:
    case CO_RIGHT_NOBODY:
        break;
    }
    *out_why = "coordinators have no request of that kind";
    return false;
}

/* ---- commands ---- */

/* The incarnation in whose name a command speaks; 0: it does not say. */
static uint64_t incarnation_of(enum leat_command_kind kind, struct leat_msg_reader *reader)
{
    struct leat_entry_opened opened;
    struct leat_assign_entry assign;
    struct leat_entry_version raise;
    if (kind == LEAT_COMMAND_OPENED)
        return leat_entry_opened_read(reader, &opened), opened.incarnation;
    if (kind == LEAT_COMMAND_ASSIGN)
        return leat_assign_entry_read(reader, &assign), assign.incarnation;
    return leat_entry_version_read(reader, &raise), raise.incarnation;
}

/* Other nodes show these texts on terminals and in answers. Addresses are checked when the entry is applied. */
static leat_err node_up_check(const char *name, struct leat_msg_reader *reader)
{
    struct leat_entry_node_up up;
    (void)leat_entry_node_up_read(reader, &up);
    if (reader->failed) return LEAT_E_INVALID;
    if (!leat_machine_text_equal(name, up.name.text, up.name.bytes)) return LEAT_E_DENIED;
    return leat_node_log_is_text(up.rack.text, up.rack.bytes) &&
                   leat_node_log_is_text(up.kafka_address.text, up.kafka_address.bytes) &&
                   leat_node_log_is_text(up.host.text, up.host.bytes)
               ? LEAT_OK
               : LEAT_E_INVALID;
}

static leat_err self_check(struct leat_coordinator *coordinator, const char *name,
                           enum leat_command_kind kind, struct leat_msg_reader *reader)
{
    struct leat_machine *machine = &coordinator->machine;
    if (kind == LEAT_COMMAND_NODE_UP) return node_up_check(name, reader);
    uint64_t incarnation = incarnation_of(kind, reader);
    if (reader->failed || incarnation == 0) return LEAT_E_INVALID;
    if (incarnation >= machine->next_incarnation) return LEAT_E_AGAIN; /* not applied here yet */
    const struct leat_machine_node *node = leat_machine_incarnation_find(machine, incarnation);
    /* A command of an ended incarnation has no effect, whatever the requester. */
    return !node || strcmp(node->info.name, name) == 0 ? LEAT_OK : LEAT_E_DENIED;
}

leat_err co_peer_may_ask(struct leat_coordinator *coordinator, const struct co_peer *peer,
                         const uint8_t *record, size_t bytes)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_msg_reader reader, ahead;
    struct leat_entry_request request;
    struct leat_entry_head head;
    struct leat_assign_entry assign;
    leat_msg_reader_init(&reader, record, bytes);
    (void)leat_entry_request_read(&reader, &request);
    if (reader.failed) return LEAT_E_INVALID;
    leat_msg_reader_init(&reader, request.command.data, request.command.bytes);
    ahead = reader;
    (void)leat_entry_head_read(&ahead, &head);
    if (ahead.failed) return LEAT_E_INVALID;
    const uint32_t kind = head.kind;
    enum co_right right = co_command_right(kind);
    ahead = reader;
    if (kind == LEAT_COMMAND_ASSIGN) {
        (void)leat_assign_entry_read(&ahead, &assign);
        if (assign.reason == LEAT_ASSIGN_RECOVERY) right = CO_RIGHT_VOTER;
    }
    switch (right) {
    case CO_RIGHT_NODE:
        return LEAT_OK;
    case CO_RIGHT_SELF:
        return self_check(coordinator, name_of(peer), (enum leat_command_kind)kind, &reader);
    case CO_RIGHT_VOTER:
        return co_peer_votes(coordinator, peer) ? LEAT_OK : LEAT_E_DENIED;
    default:
        return LEAT_E_DENIED;
    }
}

/* ---- raft's messages ---- */

static bool entries_allowed(const struct raft_append_entries *append)
{
    uint64_t term = append->prev_log_term;
    for (unsigned i = 0; i < append->n_entries; i++) {
        const struct raft_entry *entry = &append->entries[i];
        if (entry->term < term || entry->term > append->term) return false;
        term = entry->term;
        if (entry->type == RAFT_CHANGE &&
            !leat_raft_configuration_valid(entry->buf.base, entry->buf.len))
            return false;
    }
    return true;
}

/* There is one leader in a term. A follower may still know the leader of an earlier term. */
static bool leads_itself(const struct leat_coordinator *coordinator, uint64_t term)
{
    return co_leads(coordinator) && term == raft_current_term(&coordinator->drive.raft);
}

static bool index_leaps(const struct leat_coordinator *coordinator, uint64_t index)
{
    uint64_t last = leat_raft_log_last_index(&coordinator->drive.log);
    return index > last && index - last > index_leap_max;
}

static bool term_leaps(const struct leat_coordinator *coordinator, uint64_t term)
{
    uint64_t current = raft_current_term(&coordinator->drive.raft);
    return term > current && term - current > TERM_LEAP_MAX;
}

struct said { /* by any message */
    uint64_t term, index, index_term;
    bool leader;
};

static struct said said_by(const struct raft_message *message)
{
    switch (message->type) {
    case RAFT_APPEND_ENTRIES: {
        const struct raft_append_entries *it = &message->append_entries;
        return (struct said){it->term, it->prev_log_index, it->prev_log_term, true};
    }
    case RAFT_APPEND_ENTRIES_RESULT: {
        const struct raft_append_entries_result *it = &message->append_entries_result;
        uint64_t index = it->rejected > it->last_log_index ? it->rejected : it->last_log_index;
        return (struct said){it->term, index, 0, false};
    }
    case RAFT_REQUEST_VOTE: {
        const struct raft_request_vote *it = &message->request_vote;
        return (struct said){it->term, it->last_log_index, it->last_log_term, false};
    }
    case RAFT_REQUEST_VOTE_RESULT:
        return (struct said){message->request_vote_result.term, 0, 0, false};
    case RAFT_INSTALL_SNAPSHOT: {
        const struct raft_install_snapshot *it = &message->install_snapshot;
        return (struct said){it->term, it->last_index, it->last_term, true};
    }
    case RAFT_TIMEOUT_NOW: {
        const struct raft_timeout_now *it = &message->timeout_now;
        return (struct said){it->term, it->last_log_index, it->last_log_term, true};
    }
    }
    return (struct said){.term = UINT64_MAX};
}

const char *co_message_offence(const struct leat_coordinator *coordinator,
                               const struct raft_message *message)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct said said = said_by(message);
    /* SUBTLE: only the leader of the answer's term reads the index of such an answer, and the library leaves the
     * index uninitialised where the answer refuses an older term. If such answers were refused, a leader would never
     * hear of a later term: a voter that had been alone for long would stay out for good. */
    if (message->type == RAFT_APPEND_ENTRIES_RESULT && !leads_itself(coordinator, said.term))
        said.index = 0;
    if (term_leaps(coordinator, said.term))
        return "its term is further ahead than elections can have brought it";
    if (index_leaps(coordinator, said.index)) return "its entry is further ahead than a log can be";
    if (said.index_term > said.term) return "its log has a later term than the message";
    if (said.leader && leads_itself(coordinator, said.term))
        return "it leads in a term in which this node leads";
    if (message->type == RAFT_REQUEST_VOTE &&
        message->request_vote.candidate_id != message->server_id)
        return "it asks for votes for another node";
    if (message->type == RAFT_APPEND_ENTRIES) {
        const struct raft_append_entries *append = &message->append_entries;
        if (append->n_entries > 0 && !entries_allowed(append))
            return "its entries are of impossible terms, or a configuration does not decode";
        if (index_leaps(coordinator, append->leader_commit))
            return "it has committed further ahead than a log can be";
    }
    if (message->type == RAFT_INSTALL_SNAPSHOT &&
        message->install_snapshot.conf_index > message->install_snapshot.last_index)
        return "its snapshot has a configuration that is later than its end";
    return NULL;
}

/* ---- the node log ---- */

void co_complain(struct leat_coordinator *coordinator, const struct co_peer *peer, const char *what)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint64_t now_us = co_now(coordinator);
    coordinator->complaints++;
    if (coordinator->complained_us && now_us < coordinator->complained_us + COMPLAIN_US) return;
    coordinator->complained_us = now_us;
    leat_node_log_warn(
        "coordinator: refused what node %.100s (%.100s) says: %.200s (%llu refused so far)",
        name_of(peer), leat_link_address(peer->link), what,
        (unsigned long long)coordinator->complaints);
}
