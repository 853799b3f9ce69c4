/* What the coordinator's parts share: the files that are named below. */
#ifndef LEAT_COORDINATOR_PRIVATE_H
#define LEAT_COORDINATOR_PRIVATE_H

#include "base/shares.h"
#include "coordinator/coordinator.h"
#include "coordinator/metadata/machine.h"
#include "coordinator/raft/drive.h"
#include "link/link.h"

/* Kinds of frames between coordinators: docs/cluster-protocol.md. Who may send one: rights.c. */
enum co_kind {
    CO_KIND_STATE = LEAT_NODE_KIND_COORDINATOR, /* 272 */
    CO_KIND_RAFT = 273,
    CO_KIND_INSTALL = 274,
    CO_KIND_FORM = 275,
    CO_KIND_SUBMIT = 276,
    CO_KIND_FEED = 277,
    CO_KIND_ENTRIES = 278,
    CO_KIND_SNAPSHOT = 279,
    CO_KIND_JOIN = 280,
    CO_KIND_ADMIN = 281,
    CO_KIND_PING = 282,
    CO_KIND_COLLECT = 283,
    CO_KIND_PULL = 284,
    CO_KIND_LOST = 285,
    CO_KIND_PONG = 286,
    CO_KIND_RECOVERY = 287,
};
enum {
    CO_TICK_US = 100 * 1000,                  /* of a clustered coordinator */
    CO_WAIT_TELL_US = 3 * 1000 * 1000,        /* others awaited for so long at a start: said */
    CO_WAIT_TELL_AGAIN_US = 60 * 1000 * 1000, /* and said again */
    CO_RESEND_US = 500 * 1000, /* a request that was not applied by then is sent again */
    CO_CALL_US = 5 * 1000 * 1000,
    CO_DOWN_AFTER_US = 3 * 1000 * 1000, /* a node that the leader has not heard of */
    CO_FORGOTTEN_APPENDS =
        250, /* heartbeats of a leader that sends nothing that is lacking: 20 s */
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
    uint64_t said_us;  /* when it was heard */
    uint64_t heard_us; /* and how long this process stood still since: from here on it is silent */
    uint64_t gap_us;   /* longest silence of late */
    bool heard;
    bool dead; /* nobody listens at its address */
    bool lost; /* it led, and a majority had lost it */
};
struct co_detect {
    struct leat_timer timer;
    uint64_t expected_us; /* when the next round is due */
    uint64_t judged_us;   /* until when silence says something: this round, or the last one */
    uint64_t heard_us;    /* anybody, and for how long this process stood still since */
    enum leat_standing standing;
    bool deaf;           /* leads, and has lost a majority */
    uint64_t number;     /* of this round, in pings */
    uint64_t alone_from; /* answers to pings from this number on count */
    uint64_t leader, leader_term;
    struct co_watch leader_watch;
    uint64_t behind; /* what was applied when the leader had applied more; 0: it had not */
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
    bool wanted; /* opened: its address is one of a voter */
    /* The last attempt to reach it failed; "" = none did, or it was met since. Refused: somebody is there. */
    char why[LEAT_ERROR_TEXT_BYTES];
    bool refused;
    struct co_state state;
    struct co_lost lost;
    uint64_t pong_number, pong_term, pong_us; /* its last answer to a ping, and when that came */
    /* What it is being fed, when it is a learner that asked. */
    bool feeding, feed_busy;
    uint64_t feed_next; /* index of the next entry for it */
    uint8_t *feed_snapshot;
    size_t feed_bytes, feed_offset;
    uint64_t feed_index;
};

/* A snapshot of raft's that is being sent to a voter, or received from one. */
struct co_install {
    uint64_t id;                 /* of the other; 0: free */
    uint64_t connection_of_link; /* sending: which peer */
    struct co_peer *peer;
    uint8_t *bytes;
    size_t total, offset;
    struct raft_install_snapshot meta; /* conf: encoded below */
    uint8_t *conf;
    size_t conf_bytes;
};

struct co_change { /* of the voters, on the leader */
    bool running;
    bool replace, left; /* left: the old id of its address has gone */
    bool confirmed;     /* the node itself has said so, after it was asked for */
    bool lacked;        /* its vote was missing when this change looked */
    char node[LEAT_NODE_NAME_BYTES_MAX + 1];
    uint64_t voter_id, since_us;
    unsigned tries;
    bool calling;
    uint64_t calling_until_us, call_number; /* answers to earlier calls mean nothing */
    struct leat_coordinate *request;        /* of this node; or */
    struct leat_link_ticket ticket;
    bool has_ticket;
};

/* What becomes of a peer and what it asks for, for the parts that stand above peers.c. */
struct co_peer_events {
    void (*on_request)(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket);
    void (*on_state)(struct leat_coordinator *coordinator); /* a peer has said how it is */
    /* A connection that was up has ended; what its peer had said is still there. */
    void (*on_down)(struct leat_coordinator *coordinator, const struct co_peer *peer);
    /* Nothing under way for this peer goes on. */
    void (*on_reset)(struct leat_coordinator *coordinator, struct co_peer *peer);
};

struct leat_coordinator {
    const struct leat_env *env;
    struct leat_coordinator_options options;
    struct leat_timers timers;
    struct leat_raft_drive drive;
    struct leat_machine machine;
    struct leat_timer begin_timer, tick_timer;
    bool clustered; /* has a node address */
    bool votes;     /* raft runs here */
    bool begun;     /* streams were told */
    bool ready;
    uint64_t wait_tell_us; /* when to say next for whom a start waits; 0: not begun */
    bool current;          /* a learner: its tables are whole */
    uint64_t applied;
    uint64_t incarnation; /* own, since NODE_UP */
    leat_err failed;
    char failed_why[LEAT_ERROR_TEXT_BYTES], why[LEAT_ERROR_TEXT_BYTES];
    char address[128]; /* where it listens */
    /* Requests. */
    uint64_t session, next_sequence;
    struct leat_list queue; /* to be sent */
    size_t queue_count;
    struct leat_shares shares; /* of those in the queue that clients asked for */
    struct leat_list pending;  /* sent, not applied */
    struct leat_coordinate *adopting;
    unsigned adopt_tries;
    struct leat_coordinate ready_request, watch_request;
    bool ready_asked, watching;
    /* A SUBMIT is under way to this leader; a call to an earlier one, if its answer still comes,
     * means nothing any more. */
    struct co_peer *submitting_to;
    uint64_t submit_number;
    uint64_t pending_term; /* of the leader that has what is pending */
    struct raft_buffer commands[CO_SUBMIT_COMMANDS_MAX];
    /* Peers. */
    struct leat_links *links;
    struct leat_link_handler handler;
    const struct co_peer_events *peer_events; /* what other parts do about them */
    char introduced[CO_INTRODUCED_MAX]
                   [LEAT_NODE_NAME_BYTES_MAX + 1]; /* voters, by a voter's word */
    uint32_t introduced_next;
    struct leat_list peers;
    uint32_t peer_count;
    uint64_t state_told_term, state_told_configuration;
    uint32_t state_told_role;
    uint64_t leads_since_us;
    struct {
        uint64_t last, term, appends; /* empty, by a leader that has committed more */
    } forgotten;
    struct co_watch watch[LEAT_NODES_MAX];
    struct co_detect detect;
    /* Forming, voters. */
    enum leat_voter_role forming; /* EMPTY, PREPARED; LEARNER: nothing to do */
    uint64_t voter_id;
    uint8_t cluster_id[16]; /* known before the entry that says it is committed; zeros: none */
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
    /* What the leader has asked of this node for recovery, in the broker's hands or waiting. */
    struct leat_list collects, pullings;
    unsigned collecting_count, pulling_count;
    uint64_t complaints, complained_us; /* about peers that say what they may not */
    struct co_recovery *recovery;       /* NULL: this node does not recover */
};

static inline uint64_t co_now(const struct leat_coordinator *coordinator)
{
    return coordinator->env->clock->now_us(coordinator->env->clock->ctx);
}
static inline bool co_leads(const struct leat_coordinator *coordinator)
{
    return coordinator->votes && leat_raft_drive_leads(&coordinator->drive);
}

/* Crashes are declared, and streamlets recovered, where the broker can do its part. */
static inline bool co_recovers(const struct leat_coordinator *coordinator)
{
    return coordinator->clustered && coordinator->options.on_collect != NULL;
}

/* applied.c */
leat_err co_apply(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Replace the tables, then tell what is different. */
leat_err co_restore(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Tell of all nodes and streams. */
void co_tables_tell(struct leat_coordinator *coordinator);

/* queue.c */
void co_requests_init(struct leat_coordinator *coordinator);
/** What was sent is sent again: its leader is lost. */
void co_requests_again(struct leat_coordinator *coordinator);
void co_requests_fail(struct leat_coordinator *coordinator, leat_err rc, const char *why);
/** A request of the coordinator's own. */
void co_request_queue(struct leat_coordinator *coordinator, struct leat_coordinate *request);
void co_request_answer(struct leat_coordinator *coordinator, struct leat_coordinate *request);
void co_request_refuse(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                       leat_err rc, const char *why);
void co_queue_put(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                  bool front);
void co_queue_remove(struct leat_coordinator *coordinator, struct leat_coordinate *request);
/** Of a refused ADOPT. */
void co_decisions_drop(struct leat_coordinate *request);

/* requests.c */
void co_requests_advance(struct leat_coordinator *coordinator);
void co_requests_tick(struct leat_coordinator *coordinator, uint64_t now_us);
/** The tables were replaced: answer what they know the outcome of, send the rest again. */
void co_requests_restored(struct leat_coordinator *coordinator);
void co_requests_applied(struct leat_coordinator *coordinator,
                         const struct leat_machine_result *result);
/** Propose records: this node's own, or those that a peer asks for and may. Leader only. */
leat_err co_records_submit(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           const uint8_t *bytes, size_t count) LEAT_NODISCARD;

/* commands.c */
const char *co_request_offence(const struct leat_coordinate *request);
/** The sentence for a drain of the last node that is not drained. */
leat_err co_drain_refuse(struct leat_coordinate *request);
/** Fill request->bytes with records; sets request->sequence. */
leat_err co_request_encode(struct leat_coordinator *coordinator,
                           struct leat_coordinate *request) LEAT_NODISCARD;
leat_err co_adopt_encode(struct leat_coordinator *coordinator,
                         struct leat_coordinate *request) LEAT_NODISCARD;
void co_form_command(struct leat_msg_writer *writer, const uint8_t cluster_id[16]);

/* codec.c */
/** Control body of a message (not of a snapshot), and how many payload bytes follow. */
void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message);
size_t co_message_payload_bytes(const struct raft_message *message);
void co_message_payload(const struct raft_message *message, uint8_t *out);
/** Checked and bounded. On success entries are raft's memory. *out_to: for whom it is. */
leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to) LEAT_NODISCARD;

/* peers.c */
leat_err co_peers_init(struct leat_coordinator *coordinator, struct leat_error *error);
void co_peers_fini(struct leat_coordinator *coordinator);
/** What links and peers are told of this node follows what is known by now. */
void co_identity_update(struct leat_coordinator *coordinator);
/** Open links to all voters that are known. */
void co_peers_want(struct leat_coordinator *coordinator);
void co_peer_retry(struct leat_coordinator *coordinator, const struct leat_node_info *node);
void co_address_want(struct leat_coordinator *coordinator, const char *address);
/** Tell all peers, when something of it has changed (or at any rate). */
void co_state_tell(struct leat_coordinator *coordinator, bool always);
/** What a peer says of itself; where that is malformed or another node's, its link is cut. */
void co_state_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                   const struct leat_frame *frame);

/* serve.c */
extern const struct co_peer_events co_serve_events;

/* who.c */
struct co_peer *co_peer_of_voter(struct leat_coordinator *coordinator, uint64_t id);
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *coordinator, uint64_t incarnation);
struct co_peer *co_peer_of_node(struct leat_coordinator *coordinator, const char *name);
struct co_peer *co_peer_of_address(struct leat_coordinator *coordinator, const char *address);
/** Who leads, as far as peers say; NULL: nobody, or this one. */
struct co_peer *co_peer_leader(struct leat_coordinator *coordinator);
enum leat_voter_role co_role(const struct leat_coordinator *coordinator);

/* letters.c */
void co_raft_send(struct leat_coordinator *coordinator, const struct raft_message *message);
void co_raft_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* self.c */
const char *co_own_name(const struct leat_coordinator *coordinator);
bool co_cluster_known(const struct leat_coordinator *coordinator);
bool co_same_cluster(const struct leat_coordinator *coordinator, const struct co_peer *peer);
/** Gets its tables from a voter: who does not vote, or not yet. */
bool co_learns(const struct leat_coordinator *coordinator);
/** Raft begins to run here, after forming or joining. */
leat_err co_vote_start(struct leat_coordinator *coordinator, struct leat_error *error);

/* voters.c: a server's `address` in raft's configuration is "host:port name" */
enum { CO_VOTER_BYTES_MAX = LEAT_ADDRESS_BYTES_MAX + 1 + LEAT_NODE_NAME_BYTES_MAX };
void co_voter_read(const char *text, struct leat_machine_voter *out);
void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name);
/** Whoever this node itself has connected to at the address of a voter, and has said its state; NULL. */
const struct co_peer *co_peer_reached(const struct leat_coordinator *coordinator,
                                      const char *address);
const struct raft_server *co_server_of_id(const struct leat_coordinator *coordinator, uint64_t id);
const struct raft_server *co_server_of_node(const struct leat_coordinator *coordinator,
                                            const char *name);
/** Is that server the node of this name? */
bool co_server_is(const struct leat_coordinator *coordinator, const struct raft_server *server,
                  const char *name);
/** This configuration is committed, after all entries that are applied. */
void co_voters_applied(struct leat_coordinator *coordinator,
                       const struct raft_configuration *configuration);
/** Of the entry with the configuration that this voter goes by; 0: none. */
uint64_t co_configuration_index(const struct leat_coordinator *coordinator);
/** The names of this voter's configuration, for STATE; and taken from the STATE of a peer, if that is a voter. */
void co_introductions_write(const struct leat_coordinator *coordinator,
                            struct leat_msg_writer *writer);
void co_introductions_take(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           struct leat_msg_reader *reader);
/** Is the server's address or name to be put right, and how? Leader only. */
bool co_voter_correct(const struct leat_coordinator *coordinator, const struct raft_server *server,
                      char out[CO_VOTER_BYTES_MAX + 1]);

/* down.c */
void co_down_tick(struct leat_coordinator *coordinator, uint64_t now_us);

/* standing.c */
void co_standing_set(struct leat_coordinator *coordinator, enum leat_standing standing);
void co_standing_advance(struct leat_coordinator *coordinator);
bool co_others_expected(const struct leat_coordinator *coordinator);
unsigned co_voters_count(const struct leat_coordinator *coordinator);
void co_detect_node(struct leat_coordinator *coordinator, const struct leat_node_info *node);
void co_ping_send(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_ping_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);
void co_pong_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* probe.c */
void co_probes_init(struct leat_coordinator *coordinator);
void co_probes_fini(struct leat_coordinator *coordinator);
/** Whoever listens at the address is let alone; when nobody does: co_detect_refused(). */
void co_probe_start(struct leat_coordinator *coordinator, const char *address, uint64_t incarnation,
                    uint64_t voter_id);
void co_probes_expire(struct leat_coordinator *coordinator, uint64_t now_us);

/* detect.c */
void co_detect_init(struct leat_coordinator *coordinator);
void co_detect_start(struct leat_coordinator *coordinator);
void co_detect_fini(struct leat_coordinator *coordinator);
uint64_t co_suspect_us(const struct leat_coordinator *coordinator);
uint64_t co_confirm_us(const struct leat_coordinator *coordinator);
bool co_peer_heard_of(const struct co_peer *peer);
/** Nobody listens at the address of this incarnation, and of this voter when it was to lead (else 0). */
void co_detect_refused(struct leat_coordinator *coordinator, uint64_t incarnation,
                       uint64_t voter_id);
/** The leader, if this is one, says that it hears no majority. */
void co_detect_deaf(struct leat_coordinator *coordinator, const struct co_peer *peer);
void co_detect_leads(struct leat_coordinator *coordinator);
/** A connection that was up has ended; what its peer had said is still there. */
void co_detect_peer_down(struct leat_coordinator *coordinator, const struct co_peer *peer);
void co_lost_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* install.c */
void co_install_send(struct leat_coordinator *coordinator, const struct raft_message *message);
/** The next chunk behind *have bytes of `total` that were announced: room grows with what has come. */
leat_err co_chunk_add(uint8_t **bytes, size_t *have, size_t total,
                      const struct leat_frame *frame) LEAT_NODISCARD;
void co_install_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket);
void co_install_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_install_fini(struct leat_coordinator *coordinator);

/* feed.c */
void co_feed_wanted(struct leat_coordinator *coordinator, struct co_peer *peer, uint64_t from);
void co_feed_advance(struct leat_coordinator *coordinator);
void co_feed_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_feed_tick(struct leat_coordinator *coordinator);
void co_feed_behind(struct leat_coordinator *coordinator, struct co_peer *leader, uint64_t index);
void co_feed_entries(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket);
void co_feed_snapshot(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket);

/* form.c */
leat_err co_form_open(struct leat_coordinator *coordinator, bool is_new, struct leat_error *error);
void co_form_advance(struct leat_coordinator *coordinator);
void co_form_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket);
void co_join_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket);

/* tails.c */
leat_err co_tails_answer(struct leat_coordinator *coordinator,
                         struct leat_coordinate *request) LEAT_NODISCARD;

/* status.c */
/** All but what recovery says. */
void co_status_fill(struct leat_coordinator *coordinator, struct leat_coordinator_status *out);
void co_wait_tell(struct leat_coordinator *coordinator, uint64_t now_us);
/** Why what waits for the leader gets no answer, and what helps: for whoever asked. before: goes in front. */
void co_leader_lacks_tell(struct leat_coordinator *coordinator, const char *before, char *out,
                          size_t bytes);

/* voter_file.c */
enum { CO_FILE_BODY_BYTES_MAX = 4096 /* nine voters of the longest names and addresses */ };
leat_err co_file_save(struct leat_coordinator *coordinator, const char *name, const uint8_t *body,
                      size_t count) LEAT_NODISCARD;
/** *out_count 0: there is no such file. */
leat_err co_file_load(struct leat_coordinator *coordinator, const char *name, uint8_t *out,
                      size_t *out_count, struct leat_error *error) LEAT_NODISCARD;
leat_err co_voter_save(struct leat_coordinator *coordinator,
                       const uint8_t cluster_id[16]) LEAT_NODISCARD;
/** Who this voter is: voter_id, cluster_id; 1 and none when nothing is written down. */
leat_err co_voter_load(struct leat_coordinator *coordinator,
                       struct leat_error *error) LEAT_NODISCARD;

/* members.c */
/** Begin; the answer goes to the request or the ticket. */
void co_change_begin(struct leat_coordinator *coordinator, bool replace, const char *node,
                     struct leat_coordinate *request, const struct leat_link_ticket *ticket);
void co_change_advance(struct leat_coordinator *coordinator);
void co_change_end(struct leat_coordinator *coordinator, leat_err rc, const char *why);

#endif
