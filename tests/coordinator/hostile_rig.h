/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of a node that lies. After cmocka.h. */
#ifndef LEAT_TESTS_COORDINATOR_HOSTILE_RIG_H
#define LEAT_TESTS_COORDINATOR_HOSTILE_RIG_H

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

static inline void broker_collect(void *node, struct leat_collect *collect)
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

/* ---- the liar ---- */

static inline void liar_up(void *owner, struct leat_link *link)
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

static inline void liar_start(void *arg)
{
    struct liar *liar = arg;
    liar->handler = (struct leat_link_handler){liar_up, liar_down, liar_asked, liar};
    assert_int_equal(leat_timers_init(&liar->timers, liar->actor->env.clock, LEAT_LINKS_TIMERS + 4),
                     LEAT_OK);
    struct leat_links_options options = {.env = &liar->actor->env,
                                         .actor = liar,
                                         .timers = &liar->timers,
                                         .key = liar->rig->nodes[0].options.key};
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

static inline struct liar *liar_create(struct rig *rig, unsigned to)
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

static inline void liar_destroy(struct liar *liar)
{
    sim_process_die(liar->process, SIM_DEATH_KILL);
    rig_run(liar->rig, RIG_SECOND / 10);
    free(liar);
}

static inline void call_done(struct leat_link_call *call, leat_err rc,
                             const struct leat_frame *answer, const struct leat_error *error)
{
    struct liar *liar = call->owner;
    (void)answer;
    (void)error;
    liar->rc = rc;
    liar->done = true;
}

static inline void say_now(void *arg)
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

/* The result: the refusal, or OK when the message was sent. */
static inline leat_err say(struct liar *liar, uint16_t kind, bool asks,
                           const struct leat_msg_writer *body)
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

static inline struct leat_msg_writer body_begin(struct liar *liar, uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, liar->control, sizeof liar->control);
    leat_msg_write_array(&w, fields);
    return w;
}

static inline void numbers(struct leat_msg_writer *w, unsigned count, const uint64_t *values)
{
    for (unsigned i = 0; i < count; i++)
        leat_msg_write_u64(w, values[i]);
}
#define NUMBERS(w, ...)                                                                            \
    numbers(w, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static inline leat_err submit(struct liar *liar, const struct leat_msg_writer *command)
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

/* STATE, as the voter of that id. */
static inline void claim_voter(struct liar *liar, const char *name, uint64_t voter_id,
                               uint64_t term)
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

static inline struct rig *served(uint64_t seed)
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
static inline void goes_on(struct rig *rig, const char *name)
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

#endif
