/* Who is alive: pings, suspicion, proof; and the replacement of a leader that died.
 *
 * The leader asks every node each round, and every node that has not heard the leader asks it, and
 * after a while whomever it has a connection to. A
 * connection that breaks is tried again at once: where nobody listens any more nobody lives. Else
 * it is silence that counts, on the own clock, and never that of a round in which this process
 * itself ran late. docs/recovery.md has the numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diary.h"
#include "base/mem.h"
#include "coordinator/private.h"

/* PING [leads, term, incarnation of the asked that is the newest here, whether it is crashed, applied]
 * PONG []
 * LOST [term, leader's voter id, own last index, its term] */

enum {
    PING_US = 25 * 1000,
    SUSPECT_US = 100 * 1000,
    CONFIRM_US = 60 * 1000,
    ROUND_US_PER_NODE = 1000, /* a round of many nodes takes longer */
    SUSPECT_US_MAX = 3 * 1000 * 1000,
    GAP_DECAY = 256, /* rounds until a long silence of before is mostly forgotten */
    LOST_WORD_US = 1000 * 1000,
};

static uint64_t option_us(unsigned ms, uint64_t otherwise_us)
{
    return ms ? (uint64_t)ms * 1000 : otherwise_us;
}
static uint64_t suspect_us(const struct leat_coordinator *coordinator)
{
    return option_us(coordinator->options.suspect_ms, SUSPECT_US);
}
static uint64_t confirm_us(const struct leat_coordinator *coordinator)
{
    return option_us(coordinator->options.confirm_ms, CONFIRM_US);
}
static uint64_t round_us(const struct leat_coordinator *coordinator)
{
    uint64_t us = option_us(coordinator->options.ping_ms, PING_US);
    uint64_t least_us = (uint64_t)coordinator->machine.node_count * ROUND_US_PER_NODE;
    return us > least_us ? us : least_us;
}

static bool peer_heard_of(const struct co_peer *peer)
{
    return peer->link && leat_link_is_up(peer->link) && peer->state.known;
}

/* ---- standing ---- */

static void standing_set(struct leat_coordinator *coordinator, enum leat_standing standing)
{
    struct co_detect *it = &coordinator->detect;
    if (it->standing == standing || it->standing == LEAT_STANDING_CRASHED) return;
    it->standing = standing;
    static const char *const names[] = {[LEAT_STANDING_CONFIRMED] = "is confirmed as up",
                                        [LEAT_STANDING_ALONE] = "hears nobody, or was stopped",
                                        [LEAT_STANDING_CRASHED] = "was declared crashed"};
    leat_diary_warn("coordinator: this node %s", names[standing]);
    if (coordinator->options.on_standing)
        coordinator->options.on_standing(coordinator->options.owner, standing);
}

void co_detect_node(struct leat_coordinator *coordinator, const struct leat_node_info *node)
{
    if (coordinator->incarnation == 0 || !coordinator->links ||
        strcmp(node->name, leat_links_identity(coordinator->links)->node) != 0)
        return;
    if (node->incarnation > coordinator->incarnation ||
        (node->incarnation == coordinator->incarnation && node->crashed))
        standing_set(coordinator, LEAT_STANDING_CRASHED);
}

static unsigned voters_count(const struct leat_coordinator *coordinator)
{
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    unsigned count = 0;
    for (unsigned i = 0; coordinator->votes && i < configuration->n; i++)
        if (configuration->servers[i].role == RAFT_VOTER) count++;
    return count;
}

/* Heard since: how many others, and how many of those vote. */
static unsigned heard_since(struct leat_coordinator *coordinator, uint64_t us, unsigned *out_voters)
{
    unsigned count = 0;
    *out_voters = 0;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer_heard_of(peer) || leat_link_heard_us(peer->link) <= us) continue;
        count++;
        /* Two connections may lead to one voter, the one that we opened is counted. */
        if (peer->wanted && peer->state.voter_id != 0) (*out_voters)++;
    }
    return count;
}

static bool others_expected(const struct leat_coordinator *coordinator)
{
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *info = &coordinator->machine.nodes[i].info;
        if (info->state == LEAT_NODE_UP && info->node_address[0] &&
            info->incarnation != coordinator->incarnation)
            return true;
    }
    return false;
}

static void standing_advance(struct leat_coordinator *coordinator, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    unsigned voters;
    if (coordinator->incarnation == 0) return;
    if (!others_expected(coordinator)) {
        standing_set(coordinator, LEAT_STANDING_CONFIRMED);
        return;
    }
    uint64_t alone_us = suspect_us(coordinator) + confirm_us(coordinator);
    if (now_us > it->floor_us + alone_us &&
        heard_since(coordinator, now_us - alone_us, &voters) == 0)
        standing_set(coordinator, LEAT_STANDING_ALONE);
    if (it->standing != LEAT_STANDING_ALONE || !co_leads(coordinator)) return;
    /* Nobody is above a leader: a majority that answers says that it still is one. */
    if (heard_since(coordinator, it->floor_us, &voters) > 0 &&
        voters + 1 > voters_count(coordinator) / 2)
        standing_set(coordinator, LEAT_STANDING_CONFIRMED);
}

/* ---- pings ---- */

static void ping_send(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    uint8_t bytes[48];
    struct leat_msg_writer writer;
    const struct leat_machine_node *node =
        leat_machine_node_find(&coordinator->machine, peer->state.node, strlen(peer->state.node));
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 5);
    leat_msg_write_bool(&writer, co_leads(coordinator));
    leat_msg_write_u64(&writer,
                       coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0);
    leat_msg_write_u64(&writer, node ? node->info.incarnation : 0);
    leat_msg_write_bool(&writer, node && node->info.crashed);
    leat_msg_write_u64(&writer, coordinator->applied);
    if (leat_link_tell(peer->link, CO_KIND_PING, bytes, writer.used) != LEAT_OK)
        LEAT_MAYBE(true); /* it is full, or down: silence will tell */
}

void co_ping_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    bool leads = leat_msg_read_bool(&reader);
    uint64_t term = leat_msg_read_u64(&reader);
    uint64_t incarnation = leat_msg_read_u64(&reader);
    bool crashed = leat_msg_read_bool(&reader);
    uint64_t applied = leat_msg_read_u64(&reader);
    if (fields < 5 || reader.failed) {
        leat_link_cut(peer->link, LEAT_E_INVALID, "a malformed ping");
        return;
    }
    static const uint8_t pong[] = {0x90};
    if (leat_link_tell(peer->link, CO_KIND_PONG, pong, sizeof pong) != LEAT_OK)
        LEAT_MAYBE(true); /* as above */
    if (coordinator->incarnation == 0 || !co_same_cluster(coordinator, peer)) return;
    /* Told twice, and nothing came in between: not just on its way. */
    if (leads && applied > coordinator->applied &&
        coordinator->detect.behind == coordinator->applied)
        co_feed_behind(coordinator, peer, applied);
    if (leads)
        coordinator->detect.behind = applied > coordinator->applied ? coordinator->applied : 0;
    if (incarnation > coordinator->incarnation ||
        (incarnation == coordinator->incarnation && crashed)) {
        standing_set(coordinator, LEAT_STANDING_CRASHED);
    } else if (leads && incarnation == coordinator->incarnation &&
               (!coordinator->votes || term >= raft_current_term(&coordinator->drive.raft))) {
        standing_set(coordinator, LEAT_STANDING_CONFIRMED);
    }
}

/* ---- crashes ---- */

static void crash_done(struct leat_coordinate *request)
{
    ((struct leat_coordinator *)request->owner)->watching = false;
}

static bool crash_propose(struct leat_coordinator *coordinator, uint32_t i, const char *why)
{
    const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
    if (coordinator->watching) return false;
    leat_diary_warn("coordinator: node %s (incarnation %" PRIu64
                    ") is declared crashed: %s; last heard %" PRIu64 " us ago",
                    node->name, node->incarnation, why,
                    co_now(coordinator) - coordinator->watch[i].heard_us);
    coordinator->watching = true;
    coordinator->watch_request = (struct leat_coordinate){.kind = LEAT_COORDINATE_CRASH,
                                                          .target = node->name,
                                                          .incarnation = node->incarnation,
                                                          .on_done = crash_done,
                                                          .owner = coordinator};
    co_request_queue(coordinator, &coordinator->watch_request);
    return true;
}

static void watch_update(struct leat_coordinator *coordinator, uint32_t i, uint64_t now_us)
{
    const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
    struct co_watch *watch = &coordinator->watch[i];
    if (watch->incarnation != node->incarnation) {
        *watch = (struct co_watch){.incarnation = node->incarnation, .heard_us = now_us};
        return;
    }
    const struct co_peer *peer = co_peer_of_incarnation(coordinator, node->incarnation);
    uint64_t heard_us = peer ? leat_link_heard_us(peer->link) : 0;
    if (heard_us < coordinator->detect.floor_us) heard_us = coordinator->detect.floor_us;
    if (watch->gap_us) watch->gap_us -= (watch->gap_us + GAP_DECAY - 1) / GAP_DECAY;
    if (heard_us <= watch->heard_us) return;
    uint64_t gap_us = heard_us - watch->heard_us;
    if (gap_us > watch->gap_us && watch->heard) watch->gap_us = gap_us;
    watch->heard_us = heard_us;
    watch->heard = true; /* how long it took to come is another matter */
    if (peer && leat_link_heard_us(peer->link) == heard_us) watch->dead = watch->lost = false;
}

/* Whoever was silent for long before and came back is waited for longer: a busy machine. */
static uint64_t patience_us(const struct leat_coordinator *coordinator,
                            const struct co_watch *watch)
{
    uint64_t us = suspect_us(coordinator);
    if (2 * watch->gap_us > us) us = 2 * watch->gap_us;
    if (us > SUSPECT_US_MAX) us = SUSPECT_US_MAX;
    return us + confirm_us(coordinator);
}

static void nodes_watch(struct leat_coordinator *coordinator, uint64_t now_us)
{
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
        struct co_watch *watch = &coordinator->watch[i];
        if (!node->node_address[0]) continue; /* an embedded node of before */
        watch_update(coordinator, i, now_us);
        if (!co_leads(coordinator) || !coordinator->ready || node->crashed ||
            node->state == LEAT_NODE_GONE || node->incarnation == coordinator->incarnation)
            continue;
        if (watch->dead)
            crash_propose(coordinator, i, "nobody listens at its address");
        else if (watch->lost)
            crash_propose(coordinator, i, "it led, and a majority does not hear it");
        else if (now_us > watch->heard_us + patience_us(coordinator, watch))
            crash_propose(coordinator, i, "it does not answer");
    }
}

/* ---- the leader is lost ---- */

/* The voter with the longest log of those who say so takes over, once they are a majority. */
static void lead_maybe(struct leat_coordinator *coordinator, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    raft_id leader = 0;
    const char *address = NULL;
    if (!it->lost || !coordinator->votes || co_learns(coordinator)) return;
    raft_leader(&coordinator->drive.raft, &leader, &address);
    if (leader != it->lost_leader || raft_current_term(&coordinator->drive.raft) != it->lost_term)
        return;
    uint64_t index = 0, term = 0;
    leat_raft_drive_last(&coordinator->drive, &index, &term);
    unsigned agree = 1;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        const struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        const struct co_lost *word = &peer->lost;
        if (!peer_heard_of(peer) || word->term != it->lost_term ||
            word->leader != it->lost_leader || now_us > word->since_us + LOST_WORD_US)
            continue;
        agree++;
        bool longer =
            word->last_term > term ||
            (word->last_term == term &&
             (word->last_index > index ||
              (word->last_index == index && peer->state.voter_id < coordinator->voter_id)));
        if (longer) return; /* it will */
    }
    if (agree <= voters_count(coordinator) / 2) return;
    leat_diary_warn("coordinator: the leader is lost: this voter takes over");
    it->lost = false;
    leat_raft_drive_take_over(&coordinator->drive);
}

static void lost_tell(struct leat_coordinator *coordinator)
{
    const struct co_detect *it = &coordinator->detect;
    uint8_t bytes[48];
    uint64_t index = 0, term = 0;
    struct leat_msg_writer writer;
    leat_raft_drive_last(&coordinator->drive, &index, &term);
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_u64(&writer, it->lost_term);
    leat_msg_write_u64(&writer, it->lost_leader);
    leat_msg_write_u64(&writer, index);
    leat_msg_write_u64(&writer, term);
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        /* One connection of the two that there may be. */
        if (!peer->wanted || !peer_heard_of(peer)) continue;
        if (leat_link_tell(peer->link, CO_KIND_LOST, bytes, writer.used) != LEAT_OK)
            LEAT_MAYBE(true); /* it is told again, each round */
    }
}

static void leader_lost(struct leat_coordinator *coordinator, uint64_t now_us, const char *why)
{
    struct co_detect *it = &coordinator->detect;
    raft_id leader = 0;
    const char *address = NULL;
    if (!coordinator->votes || co_learns(coordinator) || co_leads(coordinator)) return;
    raft_leader(&coordinator->drive.raft, &leader, &address);
    if (leader == 0 || leader == coordinator->voter_id) return;
    if (!it->lost)
        leat_diary_warn("coordinator: the leader (%s) is not heard: %s, for %" PRIu64
                        " us; the other voters are told",
                        address ? address : "?", why, now_us - it->leader_watch.heard_us);
    it->lost = true;
    it->lost_leader = leader;
    it->lost_term = raft_current_term(&coordinator->drive.raft);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++)
        if (address && strcmp(coordinator->machine.nodes[i].info.node_address, address) == 0)
            coordinator->watch[i].lost = true; /* should this one lead next */
    lost_tell(coordinator);
    lead_maybe(coordinator, now_us);
}

void co_lost_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    struct co_lost word = {.since_us = co_now(coordinator)};
    word.term = leat_msg_read_u64(&reader);
    word.leader = leat_msg_read_u64(&reader);
    word.last_index = leat_msg_read_u64(&reader);
    word.last_term = leat_msg_read_u64(&reader);
    if (fields < 4 || reader.failed) {
        leat_link_cut(peer->link, LEAT_E_INVALID, "a malformed word on the leader");
        return;
    }
    if (!co_same_cluster(coordinator, peer)) return;
    peer->lost = word;
    lead_maybe(coordinator, word.since_us);
}

static void leader_watch(struct leat_coordinator *coordinator, uint64_t now_us)
{
    struct co_detect *it = &coordinator->detect;
    raft_id leader = 0;
    const char *address = NULL;
    struct co_peer *peer = NULL;
    if (coordinator->votes && !co_learns(coordinator)) {
        raft_leader(&coordinator->drive.raft, &leader, &address);
        if (leader) peer = co_peer_of_voter(coordinator, leader);
    } else {
        peer = co_peer_leader(coordinator);
        if (peer) leader = peer->state.voter_id;
    }
    uint64_t term = coordinator->votes ? raft_current_term(&coordinator->drive.raft) : 0;
    if (leader != it->leader || term != it->leader_term) {
        it->leader = leader;
        it->leader_term = term;
        it->leader_watch = (struct co_watch){.heard_us = now_us};
        it->lost = false;
    }
    if (leader == 0 || leader == coordinator->voter_id) return;
    struct co_watch *watch = &it->leader_watch;
    uint64_t said_us = peer ? leat_link_heard_us(peer->link) : 0, heard_us = said_us;
    if (heard_us < it->floor_us) heard_us = it->floor_us;
    if (watch->gap_us) watch->gap_us -= (watch->gap_us + GAP_DECAY - 1) / GAP_DECAY;
    /* Nobody listens at its address: that we ran late ourselves meanwhile is no word of its. */
    if (said_us > watch->heard_us) it->lost = false;
    if (heard_us > watch->heard_us) {
        if (heard_us - watch->heard_us > watch->gap_us) watch->gap_us = heard_us - watch->heard_us;
        watch->heard_us = heard_us;
    }
    if (peer && now_us > watch->heard_us + round_us(coordinator)) ping_send(coordinator, peer);
    if (it->lost || now_us > watch->heard_us + patience_us(coordinator, watch))
        leader_lost(coordinator, now_us, "it does not answer");
}

/* ---- trying an address ----
 *
 * SUBTLE: one try is not enough. A process that is being killed closes its sockets one after the other, and
 * the one that listens may be the last:
 *  1. The connection to it breaks. We try its address.
 *  2. Its listening socket still takes us, and says nothing of what is coming.
 *  3. It is gone a millisecond later, and only silence would tell, 160 ms later.
 * So a probe that was taken is tried again a few times, as long as nothing is heard of who was meant. */

enum { PROBE_TRIES = 10, PROBE_AGAIN_US = 2 * 1000, PROBE_AGAIN_US_MAX = 20 * 1000 };

struct probe {
    struct leat_list list;
    struct leat_coordinator *coordinator; /* NULL: it has closed */
    struct leat_conn *conn;               /* NULL: it rests */
    uint64_t incarnation, voter_id, since_us, again_us;
    unsigned tries;
    bool opened;
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
};

static void probe_on_open(void *user, struct leat_conn *conn)
{
    struct probe *probe = user;
    probe->opened = true;
    if (probe->coordinator) probe->coordinator->env->net->close(conn);
}

static size_t probe_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                             size_t *want_bytes)
{
    (void)user;
    (void)conn;
    (void)data;
    *want_bytes = 0;
    return bytes;
}

static void probe_refused(struct leat_coordinator *coordinator, const struct probe *probe)
{
    uint64_t now_us = co_now(coordinator);
    for (uint32_t i = 0; i < coordinator->machine.node_count && probe->incarnation; i++)
        if (coordinator->machine.nodes[i].info.incarnation == probe->incarnation &&
            coordinator->watch[i].incarnation == probe->incarnation &&
            !co_peer_of_incarnation(coordinator, probe->incarnation)) {
            coordinator->watch[i].dead = true;
            if (co_leads(coordinator) && coordinator->ready) nodes_watch(coordinator, now_us);
        }
    if (probe->voter_id != 0 && probe->voter_id == coordinator->detect.leader &&
        !co_peer_of_voter(coordinator, probe->voter_id))
        leader_lost(coordinator, now_us, "nobody listens at its address");
}

static void probe_end(struct probe *probe)
{
    leat_list_remove(&probe->list);
    probe->coordinator->detect.probe_count--;
    leat_mem_free(probe);
}

/* Nothing is heard yet of who was meant. */
static bool probe_matters(struct leat_coordinator *coordinator, const struct probe *probe)
{
    if (probe->voter_id != 0 && probe->voter_id == coordinator->detect.leader &&
        !co_peer_of_voter(coordinator, probe->voter_id))
        return true;
    return probe->incarnation != 0 && co_leads(coordinator) &&
           !co_peer_of_incarnation(coordinator, probe->incarnation);
}

static void probe_rest(struct probe *probe)
{
    struct leat_coordinator *coordinator = probe->coordinator;
    struct leat_timer *timer = &coordinator->detect.again;
    uint64_t pause_us = (uint64_t)PROBE_AGAIN_US << probe->tries++;
    if (pause_us > PROBE_AGAIN_US_MAX) pause_us = PROBE_AGAIN_US_MAX;
    probe->conn = NULL;
    probe->again_us = co_now(coordinator) + pause_us;
    if (!leat_timer_armed(timer) || timer->at_us > probe->again_us)
        leat_timer_start(&coordinator->timers, timer, pause_us);
}

static void probe_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct probe *probe = user;
    struct leat_coordinator *coordinator = probe->coordinator;
    (void)conn;
    if (!coordinator) {
        leat_mem_free(probe);
        return;
    }
    /* Closed by ourselves (LEAT_OK) says nothing, nor does a machine that is out of something. */
    if (!probe->opened && why == LEAT_E_CLOSED) {
        struct probe said = *probe;
        probe_end(probe);
        probe_refused(coordinator, &said);
    } else if (probe->opened && probe->tries < PROBE_TRIES && probe_matters(coordinator, probe)) {
        probe_rest(probe);
    } else {
        probe_end(probe);
    }
}

static const struct leat_conn_handler probe_handler = {probe_on_open, probe_on_bytes,
                                                       probe_on_closed};

static void probe_connect(struct probe *probe)
{
    struct leat_coordinator *coordinator = probe->coordinator;
    const struct leat_net *net = coordinator->env->net;
    probe->since_us = co_now(coordinator);
    probe->opened = false;
    if (net->connect(net->ctx, probe->address, &probe_handler, probe, &probe->conn) != LEAT_OK)
        probe_end(probe);
}

static void probe_start(struct leat_coordinator *coordinator, const char *address,
                        uint64_t incarnation, uint64_t voter_id)
{
    struct co_detect *it = &coordinator->detect;
    if (!strchr(address, ':') || it->probe_count == CO_PROBES_MAX) return;
    struct probe *probe = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *probe);
    if (!probe) return;
    probe->coordinator = coordinator;
    probe->incarnation = incarnation;
    probe->voter_id = voter_id;
    snprintf(probe->address, sizeof probe->address, "%s", address);
    it->probe_count++;
    leat_list_push_back(&it->probes, &probe->list);
    probe_connect(probe);
}

static void probes_again(struct leat_timer *timer)
{
    struct leat_coordinator *coordinator = timer->owner;
    uint64_t now_us = co_now(coordinator), next_us = UINT64_MAX;
    LEAT_LIST_EACH(&coordinator->detect.probes, at)
    {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        if (probe->conn) continue;
        if (probe->again_us > now_us) {
            if (probe->again_us < next_us) next_us = probe->again_us;
        } else if (probe_matters(coordinator, probe)) {
            probe_connect(probe);
        } else {
            probe_end(probe);
        }
    }
    if (next_us != UINT64_MAX) leat_timer_start(&coordinator->timers, timer, next_us - now_us);
}

static void probes_expire(struct leat_coordinator *coordinator, uint64_t now_us)
{
    LEAT_LIST_EACH(&coordinator->detect.probes, at)
    {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        if (probe->conn && now_us > probe->since_us + LOST_WORD_US) {
            probe->since_us = UINT64_MAX - LOST_WORD_US; /* once */
            coordinator->env->net->close(probe->conn);
        }
    }
}

void co_detect_peer_down(struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    if (!co_recovers(coordinator) || !peer->state.known) return;
    bool led = coordinator->detect.leader != 0 &&
               peer->state.voter_id == coordinator->detect.leader && !co_leads(coordinator);
    if (!led && !co_leads(coordinator)) return;
    probe_start(coordinator, peer->state.address, peer->state.incarnation,
                led ? peer->state.voter_id : 0);
}

/* Leads now: what was silent stays so, and whom it does not hear is tried at once. */
void co_detect_leads(struct leat_coordinator *coordinator)
{
    if (!co_recovers(coordinator)) return;
    uint64_t now_us = co_now(coordinator);
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
        struct co_watch *watch = &coordinator->watch[i];
        if (node->crashed || node->state == LEAT_NODE_GONE || !node->node_address[0] ||
            node->incarnation == coordinator->incarnation)
            continue;
        bool lost = watch->incarnation == node->incarnation && watch->lost;
        *watch =
            (struct co_watch){.incarnation = node->incarnation, .heard_us = now_us, .lost = lost};
        if (!co_peer_of_incarnation(coordinator, node->incarnation))
            probe_start(coordinator, node->node_address, node->incarnation, 0);
    }
}

/* ---- rounds ---- */

/* SUBTLE: without a leader nobody asks anybody, and a node that hears nobody serves nothing. (1) Two of
 * three voters die. (2) The nodes that are left hold all copies of some logs, and could go on with them
 * for as long as nothing changes. (3) They fall silent, because what they heard was the leader. So while
 * it is silent everybody asks those that it is connected to. */
static bool asks_all(const struct leat_coordinator *coordinator, uint64_t now_us)
{
    const struct co_detect *it = &coordinator->detect;
    if (co_leads(coordinator)) return true;
    return it->leader == 0 || now_us > it->leader_watch.heard_us + suspect_us(coordinator) / 2;
}

static void round_expired(struct leat_timer *timer)
{
    struct leat_coordinator *coordinator = timer->owner;
    struct co_detect *it = &coordinator->detect;
    uint64_t now_us = co_now(coordinator), round = round_us(coordinator);
    /* What others sent meanwhile lies unread: this process was late, not they. */
    if (it->expected_us && now_us > it->expected_us + round) {
        it->floor_us = now_us;
        if (now_us > it->expected_us + suspect_us(coordinator) && coordinator->incarnation != 0 &&
            others_expected(coordinator))
            standing_set(coordinator, LEAT_STANDING_ALONE);
    }
    it->expected_us = now_us + round;
    leat_timer_start(&coordinator->timers, timer, round);
    if (coordinator->failed != LEAT_OK) return;
    if (asks_all(coordinator, now_us)) {
        LEAT_LIST_EACH(&coordinator->peers, at)
        {
            struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
            if (peer_heard_of(peer)) ping_send(coordinator, peer);
        }
    }
    nodes_watch(coordinator, now_us);
    leader_watch(coordinator, now_us);
    lead_maybe(coordinator, now_us);
    standing_advance(coordinator, now_us);
    probes_expire(coordinator, now_us);
}

void co_detect_init(struct leat_coordinator *coordinator)
{
    struct co_detect *it = &coordinator->detect;
    leat_list_init(&it->probes);
    it->standing = LEAT_STANDING_CONFIRMED;
    it->timer = (struct leat_timer){.on_expired = round_expired, .owner = coordinator};
    it->again = (struct leat_timer){.on_expired = probes_again, .owner = coordinator};
}

void co_detect_start(struct leat_coordinator *coordinator)
{
    if (co_recovers(coordinator))
        leat_timer_start(&coordinator->timers, &coordinator->detect.timer, round_us(coordinator));
}

void co_detect_fini(struct leat_coordinator *coordinator)
{
    struct leat_list *at;
    while ((at = leat_list_pop_front(&coordinator->detect.probes))) {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        probe->coordinator = NULL;
        if (probe->conn)
            coordinator->env->net->close(probe->conn); /* frees it, later */
        else
            leat_mem_free(probe);
    }
}
