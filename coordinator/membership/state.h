/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator as its parts share it: one actor's, on every node. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_STATE_H
#define LEAT_COORDINATOR_MEMBERSHIP_STATE_H

#include "base/assert.h"
#include "base/shares.h"
#include "coordinator/membership/actor.h"
#include "coordinator/membership/services.h"
#include "coordinator/metadata/machine.h"
#include "coordinator/raft/drive.h"
#include "link/link.h"

enum {
    CO_WAIT_TELL_US =
        3 * 1000 * 1000, /* a start that waits for voters logs this after so long ... */
    CO_WAIT_TELL_AGAIN_US = 60 * 1000 * 1000, /* ... and again after so long */
    CO_RESEND_US = 500 * 1000, /* a request that was not applied by then is sent again */
    CO_CALL_US = 5 * 1000 * 1000,
    CO_FORGOTTEN_APPENDS = 250, /* heartbeats of a leader that sends no missing entries: 20 s */
    CO_PEERS_MAX = 1024,
    CO_INTRODUCED_MAX = 2 * LEAT_VOTERS_MAX,
    CO_CHUNK_BYTES = 512 * 1024, /* of a snapshot on its way */
    CO_FEED_BYTES = 1024 * 1024, /* of entries in one message to a learner */
    CO_FEED_SNAPSHOTS_MAX = 4,   /* under way to learners at once */
    CO_SNAPSHOT_BYTES_MAX =
        512 * 1024 * 1024, /* that anyone may announce; memory is taken as it comes */
    CO_ELECTION_MS = 400,
    CO_HEARTBEAT_MS = 80,
    CO_RECORD_HEADER_BYTES = 4, /* u32 length before each entry of a SUBMIT */
    CO_SUBMIT_COMMANDS_MAX = 2048,
    CO_SUBMIT_BYTES_MAX = 1024 * 1024,
    CO_CATCH_UP_TRIES = 20,
    CO_PROBES_MAX = 64, /* addresses that are tried at once */
};

/* What a peer has said of itself. */
struct co_state {
    bool known;
    uint8_t cluster_id[16];
    uint64_t incarnation;
    uint32_t role; /* enum leat_voter_role */
    uint64_t voter_id, term, leader_id, applied;
    char node[LEAT_NODE_NAME_BYTES_MAX + 1];
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
};

/* A voter's word that it has lost the leader. */
struct co_lost {
    uint64_t term, leader, last_index, last_term, since_us;
};
/* A node, or the leader, as it is heard here. */
struct co_watch {
    uint64_t incarnation;
    uint64_t said_us; /* when it was last heard: for the node log */
    uint64_t
        heard_us; /* the same, later by the time that this process stood still since: silence is counted from here */
    uint64_t gap_us; /* its longest silence of late */
    bool heard;      /* at least once */
    bool dead;       /* no process listens at its address */
    bool lost;       /* it led, and a majority had lost it */
};
struct co_detect {
    struct leat_timer timer;
    uint64_t expected_us; /* when the next round is due */
    uint64_t
        judged_us; /* silence counts up to here: now, or the round before if this round is late */
    uint64_t heard_us; /* of any node, as in co_watch */
    enum leat_standing standing;
    bool deaf;           /* this node leads, and hears no majority */
    uint64_t number;     /* of this round, in pings */
    uint64_t alone_from; /* answers to pings from this number on count */
    uint64_t leader, leader_term;
    struct co_watch leader_watch;
    uint64_t
        behind; /* the last entry applied here, when the leader's last ping named a later one; otherwise 0 */
    bool lost;
    uint64_t lost_leader, lost_term, lost_told_us;
    struct leat_list probes;
    unsigned probe_count;
    struct leat_timer again; /* for probes that rest */
};

struct co_peer {
    struct leat_list list;
    struct leat_coordinator *coordinator;
    struct leat_link *link;
    bool wanted; /* this node opened the link, to the address of a voter */
    /* Why the last attempt to reach the peer failed; "": none failed, or the peer was reached since. refused: a process
     * listens there. */
    char why[LEAT_ERROR_TEXT_BYTES];
    bool refused;
    struct co_state state;
    struct co_lost lost;
    uint64_t pong_number, pong_term, pong_us; /* its last answer to a ping, and when that came */
    /* The entries on their way to this peer, if the peer is a learner that asked. */
    bool feeding, feed_busy;
    uint64_t feed_next; /* index of the next entry for it */
    uint8_t *feed_snapshot;
    size_t feed_bytes, feed_offset;
    uint64_t feed_index;
};

/* A snapshot of raft's that is being sent to a voter, or received from one. */
struct co_install {
    uint64_t id; /* of the other; 0: free */
    struct co_peer *peer;
    uint8_t *bytes;
    size_t total, offset;
    struct raft_install_snapshot meta; /* conf: encoded below */
    uint8_t *conf;
    size_t conf_bytes;
};

struct co_change { /* of the voters, on the leader */
    bool running;
    bool replace, left; /* left: this change removes the node's old id */
    bool confirmed;     /* the node has answered JOIN */
    bool lacked;        /* the node did not vote when this change looked */
    char node[LEAT_NODE_NAME_BYTES_MAX + 1];
    uint64_t voter_id, since_us;
    unsigned tries;
    bool calling;
    uint64_t calling_until_us, call_number; /* answers to earlier calls mean nothing */
    struct leat_coordinate *request;        /* of this node; or */
    struct leat_link_ticket ticket;
    bool has_ticket;
};

/* Events and requests of peers, for the parts that use membership/peers.c. */
struct co_peer_events {
    void (*on_request)(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket);
    void (*on_state)(struct leat_coordinator *coordinator); /* a peer has said how it is */
    /* A connection that was up has ended; what its peer had said is still there. */
    void (*on_down)(struct leat_coordinator *coordinator, const struct co_peer *peer);
    /* Nothing under way for this peer goes on. */
    void (*on_reset)(struct leat_coordinator *coordinator, struct co_peer *peer);
};

/* How far this coordinator has come since it was opened (README.md, "A start"). */
enum co_start {
    CO_START_OPENED, /* its tables are read */
    CO_START_TOLD,   /* on_stream was called for all streams of the tables */
    CO_START_ASKS,   /* ready_request is on its way to the leader */
    CO_START_READY,  /* everything that was committed before the start is applied here */
};

struct leat_coordinator {
    const struct leat_env *env;
    struct leat_coordinator_options options;
    struct leat_timers timers;
    struct leat_raft_drive drive;
    struct leat_machine machine;
    struct leat_timer begin_timer, tick_timer;
    bool clustered;        /* has a node address */
    bool votes;            /* raft runs here */
    enum co_start start;   /* co_start_enter() */
    uint64_t wait_tell_us; /* when to log next which voters a start waits for; 0: not begun */
    bool current;          /* a learner that has asked a voter for entries */
    uint64_t applied;
    uint64_t incarnation; /* own, since NODE_UP */
    leat_err failed;
    char failed_why[LEAT_ERROR_TEXT_BYTES], why[LEAT_ERROR_TEXT_BYTES];
    /* Requests. */
    uint64_t session, next_sequence;
    struct leat_list queue; /* to be sent */
    size_t queue_count;
    struct leat_shares shares; /* of queued requests of clients */
    struct leat_list pending;  /* sent, not applied */
    struct leat_coordinate *adopting;
    unsigned adopt_tries;
    struct leat_coordinate ready_request, watch_request;
    bool watching;
    /* A SUBMIT is under way to this leader; a call to an earlier one, if its answer still comes,
     * means nothing any more. */
    struct co_peer *submitting_to;
    uint64_t submit_number;
    uint64_t pending_term; /* of the leader that has the pending requests */
    struct raft_buffer commands[CO_SUBMIT_COMMANDS_MAX];
    /* Peers. */
    struct leat_links *links;
    struct leat_link_handler handler;
    const struct co_peer_events *peer_events; /* the handlers of other parts */
    uint32_t introduced_next;
    struct leat_list peers;
    uint32_t peer_count;
    uint64_t state_told_term, state_told_configuration;
    uint32_t state_told_role;
    uint64_t leads_since_us;
    struct {
        /* Appends in a row, without entries, of a leader that has committed more than this log has. */
        uint64_t last, term, appends;
    } forgotten;
    struct co_watch watch[LEAT_NODES_MAX];
    struct co_detect detect;
    /* Forming, voters. */
    enum leat_voter_role forming; /* EMPTY, PREPARED; LEARNER: nothing to do */
    uint64_t voter_id;
    uint8_t cluster_id[16]; /* known before its entry is committed; zeros: none */
    bool forgot;
    uint8_t *form_body; /* prepared */
    size_t form_bytes;
    bool form_calling;
    unsigned form_answers, form_wanted, form_ok;
    struct co_change change;
    uint64_t join_count; /* calls made */
    struct co_install sends[LEAT_VOTERS_MAX], receive;
    /* A learner's own side. */
    struct co_peer *feeder;
    uint8_t *feed_in;
    size_t feed_in_total, feed_in_offset;
    uint64_t feed_in_index, fed_us;
    uint64_t complaints, complained_us; /* about peers that send what they have no right to */
    struct co_recovery *recovery;       /* NULL: a server alone */
    co_recovery_request_fn *on_recovery;
    /* Names of voters that a voter sent. The last member: a read behind the names is a read behind the coordinator,
     * which the address sanitizer sees. */
    char introduced[CO_INTRODUCED_MAX][LEAT_NODE_NAME_BYTES_MAX + 1];
};

static inline void co_start_enter(struct leat_coordinator *coordinator, enum co_start to)
{
    static const unsigned follow[] = {
        [CO_START_OPENED] = 1u << CO_START_TOLD,
        [CO_START_TOLD] = 1u << CO_START_ASKS,
        [CO_START_ASKS] = 1u << CO_START_TOLD | 1u << CO_START_READY,
        [CO_START_READY] = 0,
    };
    LEAT_ASSERT(follow[coordinator->start] & 1u << to);
    coordinator->start = to;
}

#endif
