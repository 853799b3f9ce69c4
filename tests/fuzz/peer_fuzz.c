/* SPDX-License-Identifier: Apache-2.0 */
/* A node that has the cluster's key and sends a coordinator the messages of the input: every kind of body between
 * coordinators, in a cluster of three voters and a further node. No assertion, no sanitizer's report, whichever node it
 * plays. As an unknown node it is believed nothing: no coordinator stops, no node is declared crashed or fenced, terms
 * stay, and the cluster makes streams as before. As a voter, in the place of a voter that was just killed, it may be
 * obeyed; raft decides what such a voter can do, and no coordinator dies of it.
 *
 * The first byte: bit 0: the node is the voter; bits 1, 2: the coordinator that gets the messages. Then pieces
 * (fuzz.h), one message each: bits 0 to 3 of the kind say which message, bit 4 that an answer is awaited, bit 5 that
 * time passes first; two bytes with the length of the control body, the control body, the payload. In a message of
 * raft's that decodes, the sender becomes the voter, the receiver the coordinator, and the term counts from the
 * cluster's, so that the fuzzer gets past ids. */
#include "child.h"

#include "coordinator/membership/messages.h"
#include "tests/coordinator/cluster_rig.h"

enum {
    SECONDS_MAX = 60,
    NODES = 4,
    VOTERS = 3,
    AS_VOTER = 1,
    ASKS = 16,
    LATER = 32,
    KINDS = 16,
    CALLS_MAX = 64,
    CONTROL_BYTES = 4096,
};

struct said {
    struct leat_link_call call;
    struct leat_iov iov;
    uint8_t control[CONTROL_BYTES];
    uint8_t payload[UINT16_MAX];
};
static struct rig *rig;
static unsigned verdicts, collects, leader;
static struct sim_process *process;
static struct sim_actor *actor;
static struct leat_timers timers;
static struct leat_links *links;
static struct leat_link *the_link;
static struct said saids[CALLS_MAX];
static unsigned said_count;
static const char *own_name, *own_address;
static uint64_t own_id; /* 0: no voter */
static unsigned to;

/* ---- the cluster ---- */

static void broker_collect(void *node, struct leat_collect *collect)
{
    struct rig_node *rig_node = node;
    collects++;
    collect->rc = LEAT_OK;
    leat_collected(rig_node->actor->env.post, collect);
}
static void broker_standing(void *node, enum leat_standing standing)
{
    (void)node;
    if (standing == LEAT_STANDING_CRASHED) verdicts++;
}
static const struct rig_broker broker = {.on_collect = broker_collect,
                                         .on_standing = broker_standing};

static void cluster_make(void)
{
    rig = rig_create(71, NODES, VOTERS);
    rig->broker = &broker;
    for (unsigned i = 0; i < NODES; i++)
        rig_boot(rig, i);
    LEAT_ASSERT(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    for (unsigned i = 0; i < NODES; i++)
        LEAT_ASSERT(rig_node_up(rig, i) == LEAT_OK);
    struct rig_request *request = rig_create_stream(rig, 3, "rooms");
    LEAT_ASSERT(rig_wait(rig, request, 5 * RIG_SECOND) == LEAT_OK);
    rig_forget(request);
    rig_run(rig, RIG_SECOND);
    LEAT_ASSERT(rig_leader(rig) >= 0);
    leader = (unsigned)rig_leader(rig);
}

/* ---- who speaks ---- */

static void on_up(void *owner, struct leat_link *link)
{
    (void)owner;
    (void)link;
}
static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    (void)owner;
    (void)link;
    (void)was_up;
    (void)error;
}
static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    (void)owner;
    (void)frame;
    leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED, "it only talks");
}
static const struct leat_link_handler handler = {on_up, on_down, on_request, NULL};

static void on_wake(void *owner)
{
    (void)owner;
    leat_timers_run(&timers);
}
static const struct leat_actor_ops actor_ops = {.on_wake = on_wake};

static void speaker_start(void *arg)
{
    (void)arg;
    struct leat_links_options options = {
        .env = &actor->env, .actor = actor, .timers = &timers, .key = rig->nodes[0].options.key};
    memcpy(options.identity.cluster_id, rig->nodes[to].coordinator->cluster_id, 16);
    (void)snprintf(options.identity.node, sizeof options.identity.node, "%s", own_name);
    options.identity.cores = 1;
    leat_err rc = leat_timers_init(&timers, actor->env.clock, LEAT_LINKS_TIMERS + 4);
    if (rc == LEAT_OK) rc = leat_links_create(&options, &links, NULL);
    struct leat_link_options link = {.address = rig->nodes[to].address,
                                     .to_actor = LEAT_ACTOR_COORDINATOR,
                                     .purpose = LEAT_LINK_COORDINATE,
                                     .handler = &handler,
                                     .stranger = true};
    if (rc == LEAT_OK) rc = leat_link_open(links, &link, &the_link, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
}

static void on_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    (void)call;
    (void)rc;
    (void)answer;
    (void)error;
}

/* Makes a message of raft's a message of the voter whose place this node has. */
static void raft_own(struct said *said, size_t *control_bytes)
{
    struct leat_frame frame = {.control = said->control, .control_bytes = (uint32_t)*control_bytes};
    struct raft_message message;
    uint64_t ignored;
    frame.payload = said->payload;
    frame.payload_bytes = (uint32_t)said->iov.bytes;
    if (co_message_decode(&frame, &message, &ignored) != LEAT_OK) return;
    const struct leat_coordinator *at = rig->nodes[to].coordinator;
    raft_term now = raft_current_term((struct raft *)(uintptr_t)&at->drive.raft);
    raft_term *term = message.type == RAFT_APPEND_ENTRIES ? &message.append_entries.term
                      : message.type == RAFT_APPEND_ENTRIES_RESULT
                          ? &message.append_entries_result.term
                      : message.type == RAFT_REQUEST_VOTE        ? &message.request_vote.term
                      : message.type == RAFT_REQUEST_VOTE_RESULT ? &message.request_vote_result.term
                                                                 : &message.timeout_now.term;
    if (*term < 256) *term += now;
    if (message.type == RAFT_REQUEST_VOTE) message.request_vote.candidate_id = own_id;
    message.server_id = at->voter_id;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, said->control, sizeof said->control);
    co_message_encode(&writer, own_id, &message);
    *control_bytes = writer.used;
    leat_raft_message_drop(&message);
}

static void say_now(void *arg)
{
    struct said *said = arg;
    if (leat_link_is_up(the_link) && leat_link_call(the_link, &said->call) == LEAT_OK) said_count++;
}

static void say_one(const struct fuzz_piece *piece)
{
    if (piece->count < 2 || said_count == CALLS_MAX) return;
    struct said *said = &saids[said_count];
    size_t body = piece->count - 2, control = leat_get_le16(piece->bytes);
    if (control > body) control = body;
    if (control > sizeof said->control) return;
    if (control) memcpy(said->control, piece->bytes + 2, control);
    said->iov = (struct leat_iov){said->payload, body - control};
    if (body > control) memcpy(said->payload, piece->bytes + 2 + control, body - control);
    uint16_t kind = (uint16_t)(CO_KIND_STATE + piece->kind % KINDS);
    if (kind == CO_KIND_RAFT) raft_own(said, &control);
    said->call = (struct leat_link_call){.kind = kind,
                                         .one_way = (piece->kind & ASKS) == 0,
                                         .control = said->control,
                                         .control_bytes = (uint32_t)control,
                                         .payload = &said->iov,
                                         .payload_count = said->iov.bytes ? 1 : 0,
                                         .timeout_us = RIG_SECOND,
                                         .on_done = on_done};
    (void)sim_process_enter(process, say_now, said);
    rig_run(rig, piece->kind & LATER ? RIG_SECOND / 2 : 1000);
}

/* Sends a true STATE of this node: without it hardly any message is read. */
static void state_say(void)
{
    const struct leat_coordinator *at = rig->nodes[to].coordinator;
    uint8_t bytes[512];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes + 2, sizeof bytes - 2);
    leat_msg_write_array(&w, 9);
    leat_msg_write_bin(&w, at->cluster_id, 16);
    leat_msg_write_string(&w, own_name, strlen(own_name));
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, own_id ? LEAT_VOTER_FOLLOWER : LEAT_VOTER_LEARNER);
    leat_msg_write_u64(&w, own_id);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_string(&w, own_address, strlen(own_address));
    leat_put_le16(bytes, (uint16_t)w.used);
    say_one(&(struct fuzz_piece){.bytes = bytes, .count = 2 + w.used});
}

static void say(const struct fuzz_piece *piece)
{
    say_one(piece);
    if (leat_link_is_up(the_link)) return;
    for (int i = 0; i < 20 && !leat_link_is_up(the_link); i++)
        rig_run(rig, RIG_SECOND / 10);
    state_say(); /* it was cut, and is believed nothing of before */
}

static void speaker_make(bool as_voter)
{
    unsigned victim = leader == 2 ? 1 : 2; /* who leads stays */
    own_name = as_voter ? rig->nodes[victim].name : "liar";
    own_address = as_voter ? rig->nodes[victim].address : "liar:7701";
    own_id = as_voter ? rig->nodes[victim].coordinator->voter_id : 0;
    if (as_voter) rig_kill(rig, victim, SIM_DEATH_KILL);
    if (!rig->nodes[to].up) to = leader;
    process = sim_process_create(rig->world, own_name);
    (void)snprintf(process->host, sizeof process->host, "%s", own_name);
    actor = sim_actor_create(process, LEAT_ACTOR_COORDINATOR);
    LEAT_ASSERT(sim_process_enter(process, speaker_start, NULL));
    sim_actor_register(actor, actor, &actor_ops);
    rig_run(rig, RIG_SECOND / 5);
    LEAT_ASSERT(leat_link_is_up(the_link));
    state_say();
}

/* ---- what came of it ---- */

static void believed_nothing(const uint64_t *terms)
{
    struct rig_request *request = rig_create_stream(rig, 3, "as_before");
    LEAT_ASSERT(rig_wait(rig, request, 5 * RIG_SECOND) == LEAT_OK);
    rig_forget(request);
    bool own_crashed = false;
    for (unsigned i = 0; i < NODES; i++) {
        const struct leat_coordinator *at = rig->nodes[i].coordinator;
        LEAT_ASSERT(rig->nodes[i].up && at->failed == LEAT_OK);
        for (unsigned n = 0; n < at->machine.node_count; n++) {
            const struct leat_node_info *info = &at->machine.nodes[n].info;
            if (strcmp(info->name, own_name) == 0)
                own_crashed = own_crashed || info->crashed; /* up by its own word, and silent */
            else
                LEAT_ASSERT(!info->crashed);
        }
        if (i < VOTERS)
            LEAT_ASSERT(raft_current_term((struct raft *)(uintptr_t)&at->drive.raft) == terms[i]);
    }
    LEAT_ASSERT(verdicts == 0 && (collects == 0 || own_crashed));
}

static void cluster_run(const uint8_t *data, size_t size)
{
    uint64_t terms[VOTERS];
    struct fuzz_pieces pieces = {data + 1, data + size};
    struct fuzz_piece piece;
    bool as_voter = data[0] & AS_VOTER;
    for (unsigned i = 0; i < VOTERS; i++)
        terms[i] = raft_current_term(&rig->nodes[i].coordinator->drive.raft);
    to = data[0] / 2 % NODES;
    speaker_make(as_voter);
    while (fuzz_piece_next(&pieces, &piece) && rig->nodes[to].up)
        say(&piece);
    rig_run(rig, RIG_SECOND);
    if (!as_voter) believed_nothing(terms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!rig) cluster_make();
    if (size > 0) fuzz_child(cluster_run, data, size, SECONDS_MAX);
    return 0;
}
