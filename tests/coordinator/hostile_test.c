/* A node that lies, in the simulated world: it speaks the protocol, has the cluster's key and a name of its own, and
 * says what it may not: other nodes' commands, raft's messages, verdicts, fences. Nobody believes it, nobody stops,
 * and the cluster goes on. */
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

enum { LIAR_BYTES = 512 };

struct liar {
    struct rig *rig;
    struct sim_process *process;
    struct sim_actor *actor;
    struct leat_timers timers;
    struct leat_links *links;
    struct leat_link_handler handler;
    struct leat_link *link; /* to the node that it lies to */
    unsigned to;            /* that node */
    unsigned ups;
    /* What it says next. */
    uint16_t kind;
    bool asks;
    uint8_t control[LIAR_BYTES], payload[LIAR_BYTES];
    uint32_t control_bytes, payload_bytes;
    struct leat_iov iov;
    struct leat_link_call call;
    bool done;
    leat_err rc;
};

static unsigned verdicts, collects;

static void broker_collect(void *node, struct leat_collect *collect)
{
    struct rig_node *rig_node = node;
    collects++;
    collect->rc = LEAT_OK;
    leat_collected(rig_node->actor->env.post, collect);
}
static void broker_pull(void *node, struct leat_pull *pull)
{
    (void)node;
    (void)pull;
}
static void broker_standing(void *node, enum leat_standing standing)
{
    (void)node;
    if (standing == LEAT_STANDING_CRASHED) verdicts++;
}
static const struct rig_broker broker = {
    .on_collect = broker_collect, .on_pull = broker_pull, .on_standing = broker_standing};

/* ---- the liar ---- */

static void liar_up(void *owner, struct leat_link *link)
{
    (void)link;
    ((struct liar *)owner)->ups++;
}
static void liar_down(void *owner, struct leat_link *link, bool was_up,
                      const struct leat_error *error)
{
    (void)owner;
    (void)link;
    (void)was_up;
    (void)error;
}
static void liar_asked(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    (void)owner;
    (void)frame;
    leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED, "it only talks");
}
static void liar_wake(void *actor)
{
    leat_timers_run(&((struct liar *)actor)->timers);
}
static const struct leat_actor_ops liar_ops = {.on_wake = liar_wake};

static void liar_start(void *arg)
{
    struct liar *liar = arg;
    liar->handler = (struct leat_link_handler){liar_up, liar_down, liar_asked, liar};
    assert_int_equal(leat_timers_init(&liar->timers, liar->actor->env.clock, LEAT_LINKS_TIMERS + 4),
                     LEAT_OK);
    struct leat_links_options options = {
        .env = &liar->actor->env, .timers = &liar->timers, .key = liar->rig->nodes[0].options.key};
    memcpy(options.identity.cluster_id, liar->rig->nodes[0].coordinator->cluster_id, 16);
    snprintf(options.identity.node, sizeof options.identity.node, "liar");
    options.identity.cores = 1;
    assert_int_equal(leat_links_create(&options, &liar->links, NULL), LEAT_OK);
    struct leat_link_options link = {.address = liar->rig->nodes[liar->to].address,
                                     .to_actor = LEAT_ACTOR_COORDINATOR,
                                     .purpose = LEAT_LINK_COORDINATE,
                                     .handler = &liar->handler,
                                     .stranger = true};
    assert_int_equal(leat_link_open(liar->links, &link, &liar->link, NULL), LEAT_OK);
}

static struct liar *liar_create(struct rig *rig, unsigned to)
{
    struct liar *liar = calloc(1, sizeof *liar);
    assert_non_null(liar);
    liar->rig = rig;
    liar->to = to;
    liar->process = sim_process_create(rig->world, "liar");
    snprintf(liar->process->host, sizeof liar->process->host, "liar");
    liar->actor = sim_actor_create(liar->process, LEAT_ACTOR_COORDINATOR);
    assert_true(sim_process_enter(liar->process, liar_start, liar));
    sim_actor_register(liar->actor, liar, &liar_ops);
    rig_run(rig, RIG_SECOND);
    assert_int_equal(liar->ups, 1);
    return liar;
}

static void liar_destroy(struct liar *liar)
{
    sim_process_die(liar->process, SIM_DEATH_KILL);
    rig_run(liar->rig, RIG_SECOND / 10);
    free(liar);
}

static void call_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                      const struct leat_error *error)
{
    struct liar *liar = call->owner;
    (void)answer;
    (void)error;
    liar->rc = rc;
    liar->done = true;
}

static void say_now(void *arg)
{
    struct liar *liar = arg;
    liar->iov = (struct leat_iov){liar->payload, liar->payload_bytes};
    liar->call = (struct leat_link_call){.kind = liar->kind,
                                         .one_way = !liar->asks,
                                         .control = liar->control,
                                         .control_bytes = liar->control_bytes,
                                         .payload = &liar->iov,
                                         .payload_count = liar->payload_bytes ? 1 : 0,
                                         .timeout_us = RIG_SECOND,
                                         .on_done = call_done,
                                         .owner = liar};
    liar->rc = leat_link_call(liar->link, &liar->call);
    liar->done = liar->rc != LEAT_OK;
}

/* What came of it: the refusal, or that it was sent. */
static leat_err say(struct liar *liar, uint16_t kind, bool asks, const struct leat_msg_writer *body)
{
    liar->kind = kind;
    liar->asks = asks;
    liar->control_bytes = body ? body->used : 0;
    if (!body) liar->control[liar->control_bytes++] = 0x90;
    for (int i = 0; i < 50 && !leat_link_is_up(liar->link); i++)
        rig_run(liar->rig, RIG_SECOND / 10); /* it was cut, and is back */
    assert_true(sim_process_enter(liar->process, say_now, liar));
    for (int i = 0; i < 40 && !liar->done; i++)
        rig_run(liar->rig, RIG_SECOND / 20);
    assert_true(liar->done);
    liar->payload_bytes = 0;
    return liar->rc;
}

static struct leat_msg_writer body_begin(struct liar *liar, uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, liar->control, sizeof liar->control);
    leat_msg_write_array(&w, fields);
    return w;
}

static void numbers(struct leat_msg_writer *w, unsigned count, const uint64_t *values)
{
    for (unsigned i = 0; i < count; i++)
        leat_msg_write_u64(w, values[i]);
}
#define NUMBERS(w, ...)                                                                            \
    numbers(w, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static leat_err submit(struct liar *liar, const struct leat_msg_writer *command)
{
    static uint64_t sequence;
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, liar->payload + 4, sizeof liar->payload - 4);
    leat_msg_write_array(&w, 5);
    NUMBERS(&w, LEAT_COMMAND_VERSION, LEAT_COMMAND_REQUEST, 666, ++sequence);
    leat_msg_write_bin(&w, command->bytes, command->used);
    assert_false(w.overflow);
    leat_put_le32(liar->payload, w.used);
    liar->payload_bytes = 4 + w.used;
    return say(liar, CO_KIND_SUBMIT, true, NULL);
}

static struct leat_msg_writer command_begin(uint8_t bytes[LIAR_BYTES], enum leat_command_kind kind,
                                            uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes, LIAR_BYTES);
    leat_msg_write_array(&w, 2 + fields);
    NUMBERS(&w, LEAT_COMMAND_VERSION, (uint64_t)kind);
    return w;
}

/* STATE, as the voter of that id. */
static void claim_voter(struct liar *liar, const char *name, uint64_t voter_id, uint64_t term)
{
    struct leat_msg_writer w = body_begin(liar, 10);
    leat_msg_write_bin(&w, liar->rig->nodes[liar->to].coordinator->cluster_id, 16);
    leat_msg_write_string(&w, name, strlen(name));
    NUMBERS(&w, 0, LEAT_VOTER_LEADER, voter_id, term, voter_id, 0);
    leat_msg_write_string(&w, "liar:7701", 9);
    leat_msg_write_array(&w, 1); /* and introduces itself */
    leat_msg_write_string(&w, "liar", 4);
    (void)say(liar, CO_KIND_STATE, false, &w);
}

/* ---- the cluster ---- */

static struct rig *served(uint64_t seed)
{
    struct rig *rig = rig_create(seed, 4, 3);
    rig->broker = &broker;
    verdicts = collects = 0;
    for (unsigned i = 0; i < 4; i++)
        rig_boot(rig, i);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    rig_run(rig, RIG_SECOND);
    return rig;
}

/* All of them, and whoever is asked has a stream made. */
static void goes_on(struct rig *rig, const char *name)
{
    struct rig_request *request = rig_create_stream(rig, 3, name);
    assert_int_equal(rig_wait(rig, request, 5 * RIG_SECOND), LEAT_OK);
    rig_forget(request);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rig->nodes[i].coordinator->failed, LEAT_OK);
        assert_false(rig->nodes[i].coordinator->machine.nodes[i].info.crashed);
    }
    assert_int_equal(verdicts, 0);
    assert_int_equal(collects, 0);
}

/* A cluster that is formed twice would stop all voters, and again at each start. */
static void hostile_form_is_refused(void **state)
{
    (void)state;
    struct rig *rig = served(71);
    uint8_t bytes[LIAR_BYTES];
    for (unsigned to = 0; to < 4; to++) { /* the last of them does not vote */
        struct liar *liar = liar_create(rig, to);
        struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_FORM, 1);
        leat_msg_write_bin(&w, "0123456789abcdef", 16);
        assert_int_not_equal(submit(liar, &w), LEAT_OK);
        w = body_begin(liar, 2);
        leat_msg_write_bin(&w, "0123456789abcdef", 16);
        leat_msg_write_array(&w, 1);
        leat_msg_write_array(&w, 2);
        leat_msg_write_u64(&w, rig->nodes[to].coordinator->voter_id);
        leat_msg_write_string(&w, rig->nodes[to].address, strlen(rig->nodes[to].address));
        assert_int_equal(say(liar, CO_KIND_FORM, true, &w), LEAT_E_DENIED);
        liar_destroy(liar);
    }
    goes_on(rig, "formed");
    rig_destroy(rig);
}

/* What is said in a node's name is taken from that node's link only. */
static void hostile_commands_in_other_names_are_denied(void **state)
{
    (void)state;
    struct rig *rig = served(72);
    unsigned leader = (unsigned)rig_leader(rig);
    struct liar *liar = liar_create(rig, leader);
    uint8_t bytes[LIAR_BYTES];
    uint64_t victim = rig->nodes[3].incarnation;
    struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_CRASH, 2);
    leat_msg_write_string(&w, "n3", 2);
    leat_msg_write_u64(&w, victim);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_NODE_STATE, 3);
    leat_msg_write_string(&w, "n3", 2);
    NUMBERS(&w, victim, LEAT_NODE_DOWN);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_NODE_UP, 3);
    leat_msg_write_string(&w, "n3", 2);
    leat_msg_write_string(&w, "liar:7700", 9);
    leat_msg_write_u64(&w, 1);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_OPENED, 4);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 0);
    NUMBERS(&w, victim, 9);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_VERSION_RAISE, 4);
    NUMBERS(&w, victim, 1, 9);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_MOVE, 4);
    NUMBERS(&w, victim, 1);
    leat_msg_write_string(&w, "liar", 4);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_ADOPT, 6);
    NUMBERS(&w, 7, 0);
    leat_msg_write_bool(&w, true);
    NUMBERS(&w, victim, 0);
    leat_msg_write_bin(&w, "", 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_ACCEPT_LOSS, 7);
    NUMBERS(&w, 1, 0, 0, 0, 0, victim, 1);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    /* Of an incarnation that there is not yet nobody knows whose it will be. */
    w = command_begin(bytes, LEAT_COMMAND_VERSION_RAISE, 4);
    NUMBERS(&w, victim + 100, 1, 9);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_AGAIN);
    assert_int_equal(rig->nodes[3].incarnation, victim);
    goes_on(rig, "named");
    liar_destroy(liar);
    rig_destroy(rig);
}

/* What a node says of itself, beside its names and addresses. */
struct traits {
    const char *rack, *kafka_address, *host;
};

static leat_err up_submit_as(struct liar *liar, const char *address, uint32_t fields,
                             const struct traits *traits)
{
    uint8_t bytes[LIAR_BYTES];
    static const uint8_t id[16] = {0xbd};
    struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_NODE_UP, fields);
    leat_msg_write_string(&w, "liar", 4);
    leat_msg_write_string(&w, "liar:7700", 9);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, address, strlen(address));
    leat_msg_write_string(&w, traits->rack, strlen(traits->rack));
    leat_msg_write_bin(&w, id, sizeof id);
    leat_msg_write_u64(&w, 0);
    if (fields >= 11) {
        leat_msg_write_string(&w, traits->kafka_address, strlen(traits->kafka_address));
        NUMBERS(&w, 0, 0);
        leat_msg_write_string(&w, traits->host, strlen(traits->host));
    }
    if (fields >= 12) leat_msg_write_u64(&w, 0);
    leat_err rc = submit(liar, &w);
    rig_run(liar->rig, RIG_SECOND);
    return rc;
}

static leat_err up_submit(struct liar *liar, const char *address, uint32_t fields)
{
    static const struct traits none = {"", "", ""};
    return up_submit_as(liar, address, fields, &none);
}

static struct leat_machine_node *liar_node(struct rig *rig, unsigned at)
{
    return leat_machine_node_find(&rig->nodes[at].coordinator->machine, "liar", 4);
}

/* Whoever comes up at another node's address takes its mail, and keeps it out. Of a voter also while it is down. */
static void hostile_node_takes_nobodys_address(void **state)
{
    (void)state;
    struct rig *rig = served(76);
    unsigned leader = (unsigned)rig_leader(rig), voter = (leader + 1) % 3;
    struct liar *liar = liar_create(rig, leader);
    /* As versions of old wrote it, which took any address. */
    assert_int_equal(up_submit(liar, rig->nodes[3].address, 11), LEAT_E_INVALID);
    assert_int_equal(up_submit(liar, rig->nodes[3].address, 12),
                     LEAT_OK); /* proposed: refused in the tables */
    assert_int_equal(up_submit(liar, rig->nodes[voter].address, 12), LEAT_OK);
    assert_int_equal(up_submit(liar, "liar:1 n1", 12), LEAT_OK);
    assert_null(liar_node(rig, 3));
    rig_kill(rig, voter, SIM_DEATH_KILL);
    rig_kill(rig, 3, SIM_DEATH_KILL);
    rig_run(rig, 10 * RIG_SECOND); /* both are declared crashed */
    assert_int_equal(up_submit(liar, rig->nodes[voter].address, 12), LEAT_OK);
    assert_null(liar_node(rig, leader));
    assert_int_equal(up_submit(liar, rig->nodes[3].address, 12),
                     LEAT_OK); /* lent to another machine since */
    assert_non_null(liar_node(rig, leader));
    rig_boot(rig, voter);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, voter), LEAT_OK);
    liar_destroy(liar);
    rig_destroy(rig);
}

/* Whatever a node says of itself is shown by all others: it has no control characters. */
static void hostile_node_is_shown_as_text(void **state)
{
    (void)state;
    static const struct traits wrong[] = {{"r\33[31m", "", ""}, {"", "k\n:1", ""}, {"", "", "h\r"}};
    static const struct traits right = {"r", "k:1", "h\xc3\xa4"};
    struct rig *rig = served(79);
    unsigned leader = (unsigned)rig_leader(rig);
    struct liar *liar = liar_create(rig, leader);
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(up_submit_as(liar, "liar:1", 12, &wrong[i]), LEAT_E_INVALID);
    assert_null(liar_node(rig, leader));
    assert_int_equal(up_submit_as(liar, "liar:1", 12, &right), LEAT_OK);
    assert_non_null(liar_node(rig, leader));
    liar_destroy(liar);
    rig_destroy(rig);
}

/* Also where the tables have its address for a voter's, from before that was refused: a voter is who has its name. */
static void hostile_node_with_a_voters_address_does_not_vote(void **state)
{
    (void)state;
    struct rig *rig = served(77);
    unsigned leader = (unsigned)rig_leader(rig), voter = (leader + 1) % 3;
    uint64_t voter_id = rig->nodes[voter].coordinator->voter_id;
    struct liar *liar = liar_create(rig, leader);
    assert_int_equal(up_submit(liar, "liar:7701", 12), LEAT_OK);
    for (unsigned i = 0; i < 4; i++) {
        struct leat_machine_node *node = liar_node(rig, i);
        assert_non_null(node);
        snprintf(node->info.node_address, sizeof node->info.node_address, "%s",
                 rig->nodes[voter].address);
    }
    for (unsigned killed = 0; killed < 2; killed++) { /* the voter is there; it is not */
        uint8_t bytes[LIAR_BYTES];
        claim_voter(liar, "liar", voter_id, 1000);
        struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_CRASH, 2);
        leat_msg_write_string(&w, "n3", 2);
        leat_msg_write_u64(&w, rig->nodes[3].incarnation);
        assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
        w = body_begin(liar, 1);
        leat_msg_write_u64(&w, 0);
        assert_int_equal(say(liar, CO_KIND_INSTALL, true, &w), LEAT_E_DENIED);
        if (!killed) rig_kill(rig, voter, SIM_DEATH_KILL);
        rig_run(rig, 5 * RIG_SECOND);
    }
    rig_boot(rig, voter);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, voter), LEAT_OK);
    liar_destroy(liar);
    goes_on(rig, "voters");
    rig_destroy(rig);
}

/* A voter that has just started, or has lost its majority, follows whoever leads: of the voters. */
static void hostile_node_does_not_lead_who_follows_nobody(void **state)
{
    (void)state;
    struct rig *rig = served(78);
    rig_kill(rig, 1, SIM_DEATH_KILL);
    rig_kill(rig, 2, SIM_DEATH_KILL);
    rig_run(rig, 5 * RIG_SECOND);
    const struct leat_coordinator *left = rig->nodes[0].coordinator;
    struct liar *liar = liar_create(rig, 0);
    uint64_t own = left->voter_id, others[] = {1, 4711};
    raft_id leader = 0;
    const char *address = NULL;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t term = raft_current_term(&left->drive.raft) + 100;
        claim_voter(liar, "liar", others[i], term);
        struct leat_msg_writer w = body_begin(liar, 10);
        NUMBERS(&w, 1, RAFT_APPEND_ENTRIES, others[i], own, 0, term, 0, 0, 0, 0);
        (void)say(liar, CO_KIND_RAFT, false, &w);
        rig_run(rig, RIG_SECOND / 10);
        raft_leader((struct raft *)(uintptr_t)&left->drive.raft, &leader, &address);
        assert_int_equal(leader, 0);
        assert_true(raft_current_term(&left->drive.raft) < term);
    }
    liar_destroy(liar);
    rig_boot(rig, 1);
    rig_boot(rig, 2);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    rig_destroy(rig);
}

/* Its name is what it is known by, and where it is reached follows. */
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

/* A term that nobody gets back from; votes and entries of one who is no voter. */
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

/* A voter whose word is its own, and that has gone mad: no term leaps. */
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

/* That somebody crashed, and whom to fence, is the leader's word, of what is committed. */
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
        cmocka_unit_test(hostile_form_is_refused),
        cmocka_unit_test(hostile_commands_in_other_names_are_denied),
        cmocka_unit_test(hostile_node_takes_nobodys_address),
        cmocka_unit_test(hostile_node_is_shown_as_text),
        cmocka_unit_test(hostile_node_with_a_voters_address_does_not_vote),
        cmocka_unit_test(hostile_node_does_not_lead_who_follows_nobody),
        cmocka_unit_test(hostile_voter_comes_back_at_another_address),
        cmocka_unit_test(hostile_terms_change_nothing),
        cmocka_unit_test(hostile_voter_does_not_leap),
        cmocka_unit_test(hostile_voter_sends_nothing_impossible),
        cmocka_unit_test(hostile_snapshots_are_refused),
        cmocka_unit_test(hostile_verdicts_and_fences_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
