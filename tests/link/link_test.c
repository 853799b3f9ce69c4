/* Links between simulated processes: hello and its refusals, calls, losses, limits, silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/link.h"
#include "tests/sim/sim.h"

enum { KIND_ECHO = 400, KIND_HOLD = 401, KIND_COUNT = 402, CORES = 3, HELD_MAX = 8192 };
#define SECOND ((uint64_t)1000000)

/* One actor of a node with its links, and what happened to it. */
struct end {
    struct node *node;
    struct sim_actor *actor;
    struct leat_timers timers;
    struct leat_links *links;
    struct leat_link_handler handler;
    struct leat_link *link;     /* that it opened */
    struct leat_link *accepted; /* the last */
    unsigned ups, downs, downs_unborn, requests;
    struct leat_error last_down;
    struct leat_link_ticket held[HELD_MAX];
    unsigned held_count;
    uint64_t counted;
    bool out_of_order;
    uint8_t first_byte;
};
struct node {
    struct sim_process *process;
    struct leat_link_hub hub;
    struct end ends[CORES];
};

static struct sim_world *world;

static void on_up(void *owner, struct leat_link *link)
{
    struct end *end = owner;
    end->ups++;
    if (leat_link_accepted(link)) end->accepted = link;
}

static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    struct end *end = owner;
    if (link == end->accepted) end->accepted = NULL;
    if (was_up)
        end->downs++;
    else
        end->downs_unborn++;
    end->last_down = *error;
}

static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    struct end *end = owner;
    end->requests++;
    switch (frame->kind) {
    case KIND_ECHO:
        if (frame->payload_bytes) end->first_byte = frame->payload[0];
        leat_link_answer(leat_link_links(link), ticket, frame->control, frame->control_bytes);
        break;
    case KIND_HOLD:
        assert_true(end->held_count < HELD_MAX);
        end->held[end->held_count++] = *ticket;
        break;
    case KIND_COUNT: {
        uint64_t number;
        memcpy(&number, frame->control, sizeof number);
        if (number != end->counted) end->out_of_order = true;
        end->counted = number + 1;
        break;
    }
    default:
        leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED, "what?");
    }
}

static void end_wake(void *actor)
{
    leat_timers_run(&((struct end *)actor)->timers);
}
static const struct leat_actor_ops end_ops = {.on_wake = end_wake};

struct setup {
    struct node *node;
    const char *name, *address;
    uint8_t cluster;
    uint64_t incarnation, queued_bytes_max;
    bool strangers;
};

static void node_start(void *arg)
{
    const struct setup *setup = arg;
    struct node *node = setup->node;
    for (unsigned i = 0; i < CORES; i++) {
        struct end *end = &node->ends[i];
        end->node = node;
        end->handler = (struct leat_link_handler){on_up, on_down, on_request, end};
        assert_int_equal(
            leat_timers_init(&end->timers, end->actor->env.clock, LEAT_LINKS_TIMERS + 4), LEAT_OK);
        struct leat_links_options options = {
            .env = &end->actor->env,
            .timers = &end->timers,
            .hub = &node->hub,
            .queued_bytes_max = setup->queued_bytes_max,
        };
        memset(options.identity.cluster_id, setup->cluster, 16);
        snprintf(options.identity.node, sizeof options.identity.node, "%s", setup->name);
        options.identity.incarnation = setup->incarnation;
        options.identity.cores = CORES;
        options.services[LEAT_LINK_SERVE].handler = &end->handler;
        options.services[LEAT_LINK_SERVE].strangers = setup->strangers;
        assert_int_equal(leat_links_create(&options, &end->links, NULL), LEAT_OK);
    }
    char bound[128];
    assert_int_equal(node->ends[0].actor->env.net->listen(node->ends[0].actor->env.net->ctx,
                                                          setup->address, leat_link_accept,
                                                          node->ends[0].links, bound, NULL),
                     LEAT_OK);
}

static struct node *node_make(struct setup setup)
{
    struct node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    setup.node = node;
    node->process = sim_process_create(world, setup.name);
    for (unsigned i = 0; i < CORES; i++)
        node->ends[i].actor = sim_actor_create(node->process, i);
    assert_true(sim_process_enter(node->process, node_start, &setup));
    for (unsigned i = 0; i < CORES; i++)
        sim_actor_register(node->ends[i].actor, &node->ends[i], &end_ops);
    return node;
}

struct opening {
    struct end *end;
    struct leat_link_options options;
    leat_err rc;
};
static void open_now(void *arg)
{
    struct opening *opening = arg;
    opening->rc = leat_link_open(opening->end->links, &opening->options, &opening->end->link, NULL);
}
static void open_with(struct node *node, unsigned core, struct leat_link_options options)
{
    struct opening opening = {.end = &node->ends[core], .options = options};
    opening.options.handler = &opening.end->handler;
    if (!opening.options.purpose) opening.options.purpose = LEAT_LINK_SERVE;
    assert_true(sim_process_enter(node->process, open_now, &opening));
    assert_int_equal(opening.rc, LEAT_OK);
}

static void run(uint64_t us)
{
    sim_world_run(world, world->now_us + us, NULL);
    assert_string_equal(world->failure, "");
}

/* ---- calls ---- */
struct caller {
    struct leat_link_call call;
    struct leat_iov iov[2];
    struct end *end;
    unsigned done;
    leat_err rc, started;
    bool matched;
};
static void call_on_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                         const struct leat_error *error)
{
    struct caller *caller = call->owner;
    caller->done++;
    caller->rc = rc;
    assert_true(rc == error->code || rc == LEAT_OK);
    caller->matched = rc == LEAT_OK && answer && answer->control_bytes == call->control_bytes &&
                      memcmp(answer->control, call->control, call->control_bytes) == 0;
}
static void call_now(void *arg)
{
    struct caller *caller = arg;
    struct leat_link *link = caller->end->link ? caller->end->link : caller->end->accepted;
    caller->call.on_done = call_on_done;
    caller->call.owner = caller;
    caller->started = leat_link_call(link, &caller->call);
    assert_int_equal(caller->done, 0);
}
static void call_start(struct node *node, unsigned core, struct caller *caller)
{
    caller->end = &node->ends[core];
    assert_true(sim_process_enter(node->process, call_now, caller));
}

static struct node *left, *right;
static const uint8_t words[] = {0x93, 1, 2, 3};

static int setup_world(void **state)
{
    (void)state;
    static uint64_t seed = 1;
    world = sim_world_create(seed++, false);
    left = node_make(
        (struct setup){.name = "left", .address = "left:1", .cluster = 7, .incarnation = 11});
    right = node_make(
        (struct setup){.name = "right", .address = "right:1", .cluster = 7, .incarnation = 12});
    return 0;
}
static int teardown_world(void **state)
{
    (void)state;
    sim_world_destroy(&world);
    return 0;
}

/* ---- tests ---- */

/* A connection lands on the core that hello names, modulo the peer's cores, and both sides know
 * each other; a call is answered; the accepting side may call too. */
static void link_up_calls_both_ways(void **state)
{
    (void)state;
    open_with(left, 1, (struct leat_link_options){.address = "right:1", .to_actor = 5});
    run(SECOND);
    struct end *near = &left->ends[1], *far = &right->ends[5 % CORES];
    assert_int_equal(near->ups, 1);
    assert_int_equal(far->ups, 1);
    assert_non_null(far->accepted);
    assert_string_equal(leat_link_peer(near->link)->node, "right");
    assert_int_equal(leat_link_peer(near->link)->incarnation, 12);
    assert_string_equal(leat_link_peer(far->accepted)->node, "left");
    uint8_t data[2][1000];
    memset(data, 0x5a, sizeof data);
    struct caller there = {.call = {.kind = KIND_ECHO,
                                    .control = words,
                                    .control_bytes = sizeof words,
                                    .payload = there.iov,
                                    .payload_count = 2}};
    there.iov[0] = (struct leat_iov){data[0], 1000};
    there.iov[1] = (struct leat_iov){data[1], 1000};
    struct caller back = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 1, &there);
    call_start(right, 2, &back);
    run(SECOND);
    assert_int_equal(there.done, 1);
    assert_true(there.matched);
    assert_int_equal(far->first_byte, 0x5a);
    assert_int_equal(back.done, 1);
    assert_true(back.matched);
}

/* Whoever has another cluster id, an unknown purpose or another name than expected is refused by
 * name, and the opener goes on trying. */
static void link_refused_says_why(void **state)
{
    (void)state;
    static const struct {
        uint8_t cluster;
        unsigned purpose;
        const char *expect;
        uint64_t expect_incarnation;
        leat_err rc;
    } rows[] = {
        {8, LEAT_LINK_SERVE, NULL, 0, LEAT_E_WRONG_CLUSTER},
        {7, LEAT_LINK_DATA, NULL, 0, LEAT_E_UNSUPPORTED},
        {7, LEAT_LINK_SERVE, "other", 0, LEAT_E_NOT_FOUND},
        {7, LEAT_LINK_SERVE, "right", 99, LEAT_E_NOT_FOUND},
        {0, LEAT_LINK_SERVE, NULL, 0, LEAT_E_STARTING},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16], address[16];
        snprintf(name, sizeof name, "third%u", i);
        snprintf(address, sizeof address, "third%u:1", i);
        struct node *third = node_make((struct setup){
            .name = name, .address = address, .cluster = rows[i].cluster, .incarnation = 13});
        open_with(third, 0,
                  (struct leat_link_options){.address = "right:1",
                                             .purpose = rows[i].purpose,
                                             .expect_node = rows[i].expect,
                                             .expect_incarnation = rows[i].expect_incarnation});
        run(10 * SECOND);
        assert_int_equal(third->ends[0].ups, 0);
        assert_int_equal(third->ends[0].last_down.code, rows[i].rc);
        assert_in_range(third->ends[0].downs_unborn, 8, 60); /* the pause grows to a second */
        sim_process_die(third->process, SIM_DEATH_KILL);
        run(SECOND);
    }
    assert_int_equal(right->ends[0].requests, 0);
}

/* Nodes without a cluster meet where the service lets strangers in, and only there. */
static void link_strangers_meet_where_allowed(void **state)
{
    (void)state;
    struct node *open =
        node_make((struct setup){.name = "open", .address = "open:1", .strangers = true});
    struct node *other =
        node_make((struct setup){.name = "other", .address = "other:1", .strangers = true});
    open_with(other, 0, (struct leat_link_options){.address = "open:1", .stranger = true});
    open_with(open, 1, (struct leat_link_options){.address = "other:1", .to_actor = 2});
    run(5 * SECOND);
    assert_int_equal(other->ends[0].ups, 1);
    assert_int_equal(open->ends[1].ups, 0);
    assert_int_equal(open->ends[1].last_down.code, LEAT_E_STARTING);
}

struct fencing {
    struct end *end;
    const char *name;
    uint64_t incarnation;
};
static void fence_now(void *arg)
{
    struct fencing *fencing = arg;
    assert_int_equal(leat_links_fence(fencing->end->links, fencing->name, fencing->incarnation),
                     LEAT_OK);
}

/* A fenced incarnation is cut off at once and stays out; its successor is welcome. */
static void link_fenced_incarnation_is_cut_and_stays_out(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    struct fencing fencing = {&right->ends[0], "left", 11};
    assert_true(sim_process_enter(right->process, fence_now, &fencing));
    run(3 * SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_STALE_EPOCH);
    assert_null(right->ends[0].accepted);
    sim_process_die(left->process, SIM_DEATH_KILL);
    struct node *again = node_make(
        (struct setup){.name = "left", .address = "left:1", .cluster = 7, .incarnation = 14});
    open_with(again, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(again->ends[0].ups, 1);
}

/* ---- strangers on the port ---- */
struct stranger {
    struct sim_actor *actor;
    const void *bytes;
    size_t count;
    bool closed;
    size_t got;
    uint8_t answer[1024];
};
static void stranger_on_open(void *user, struct leat_conn *conn)
{
    struct stranger *stranger = user;
    if (stranger->count)
        assert_int_equal(
            stranger->actor->env.net->send_copy(conn, stranger->bytes, stranger->count), LEAT_OK);
}
static size_t stranger_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data,
                                size_t bytes, size_t *want)
{
    struct stranger *stranger = user;
    (void)conn;
    (void)want;
    for (size_t i = 0; i < bytes && stranger->got < sizeof stranger->answer; i++)
        stranger->answer[stranger->got++] = data[i];
    return bytes;
}
static void stranger_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    (void)conn;
    (void)why;
    ((struct stranger *)user)->closed = true;
}
static const struct leat_conn_handler stranger_handler = {stranger_on_open, stranger_on_bytes,
                                                          stranger_on_closed};
static void stranger_start(void *arg)
{
    struct stranger *stranger = arg;
    struct leat_conn *conn;
    assert_int_equal(stranger->actor->env.net->connect(stranger->actor->env.net->ctx, "right:1",
                                                       &stranger_handler, stranger, &conn),
                     LEAT_OK);
}
static void stranger_no_wake(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops stranger_ops = {.on_wake = stranger_no_wake};

static struct stranger *stranger_make(const void *bytes, size_t count)
{
    struct stranger *stranger = calloc(1, sizeof *stranger);
    struct sim_process *process = sim_process_create(world, "stranger");
    assert_non_null(stranger);
    stranger->actor = sim_actor_create(process, 0);
    stranger->bytes = bytes;
    stranger->count = count;
    assert_true(sim_process_enter(process, stranger_start, stranger));
    sim_actor_register(stranger->actor, stranger, &stranger_ops);
    return stranger;
}

/* Garbage, a client's hello, a request before hello and silence: each ends, the first three with a
 * sentence, and the node goes on. */
static void link_stranger_is_told_and_cut(void **state)
{
    (void)state;
    static const char http[] = "GET / HTTP/1.1\r\nHost: right\r\n\r\n";
    uint8_t client[LEAT_FRAME_HEADER_BYTES + 8], early[LEAT_FRAME_HEADER_BYTES + 8];
    client[LEAT_FRAME_HEADER_BYTES] = early[LEAT_FRAME_HEADER_BYTES] = 0x90;
    leat_frame_encode(client, LEAT_KIND_HELLO, 1, 0, 5, 1, 0);
    leat_frame_encode(early, (enum leat_kind)KIND_ECHO, 1, 0, 5, 1, 0);
    struct stranger *strangers[] = {
        stranger_make(http, sizeof http - 1),
        stranger_make(client, LEAT_FRAME_HEADER_BYTES + 1),
        stranger_make(early, LEAT_FRAME_HEADER_BYTES + 1),
        stranger_make(NULL, 0),
    };
    run(10 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(strangers[i]->closed);
        if (i == 3) continue;
        struct leat_frame frame;
        size_t want;
        assert_int_equal(leat_frame_decode(strangers[i]->answer, strangers[i]->got, &frame, &want),
                         LEAT_OK);
        assert_true(frame.flags & LEAT_FRAME_ERROR);
        struct leat_msg_error error;
        assert_int_equal(leat_msg_error_decode(frame.control, frame.control_bytes, &error),
                         LEAT_OK);
        assert_true(error.text.bytes > 10);
    }
    for (unsigned i = 0; i < 4; i++)
        free(strangers[i]);
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
}

/* A node of a format that this one does not know is told so, with what either speaks. */
static void link_peer_of_another_format_is_told_and_cut(void **state)
{
    (void)state;
    uint8_t bytes[256];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes + LEAT_FRAME_HEADER_BYTES,
                         sizeof bytes - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&body, 8);
    leat_msg_write_u64(&body, LEAT_NODE_VERSION_MAX + 1);
    leat_msg_write_u64(&body, LEAT_NODE_VERSION_MAX + 3);
    static const uint8_t cluster[16] = {7};
    leat_msg_write_bin(&body, cluster, sizeof cluster);
    leat_msg_write_string(&body, "newer", 5);
    leat_msg_write_u64(&body, 12); /* incarnation */
    leat_msg_write_u64(&body, 1);  /* cores */
    leat_msg_write_u64(&body, 0);  /* purpose */
    leat_msg_write_i64(&body, 0);
    leat_frame_encode(bytes, (enum leat_kind)LEAT_NODE_KIND_HELLO, LEAT_NODE_VERSION_MAX, 0, 5,
                      (uint32_t)body.used, 0);
    struct stranger *newer = stranger_make(bytes, LEAT_FRAME_HEADER_BYTES + body.used);
    run(10 * SECOND);
    assert_true(newer->closed);
    struct leat_frame frame;
    struct leat_msg_error error;
    size_t want;
    assert_int_equal(leat_frame_decode(newer->answer, newer->got, &frame, &want), LEAT_OK);
    assert_int_equal(leat_msg_error_decode(frame.control, frame.control_bytes, &error), LEAT_OK);
    assert_int_equal(error.code, LEAT_E_UNSUPPORTED);
    assert_non_null(memmem(error.text.text, error.text.bytes, "upgrade the older one", 21));
    free(newer);
}

/* Strangers that say nothing fill their own named limit only for as long as they are allowed to. */
static void link_many_silent_strangers_do_not_lock_nodes_out(void **state)
{
    (void)state;
    struct stranger *strangers[100];
    for (unsigned i = 0; i < 100; i++)
        strangers[i] = stranger_make(NULL, 0);
    run(SECOND / 10);
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(10 * SECOND);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(strangers[i]->closed);
        free(strangers[i]);
    }
    assert_int_equal(left->ends[0].ups, 1);
}

/* A peer that dies: calls end with CLOSED exactly once; when it is back so is the link. */
static void link_lost_fails_calls_and_comes_back(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    struct caller held = {
        .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &held);
    run(SECOND);
    assert_int_equal(held.done, 0);
    assert_int_equal(right->ends[0].held_count, 1);
    sim_process_die(right->process, SIM_DEATH_KILL);
    run(2 * SECOND);
    assert_int_equal(held.done, 1);
    assert_int_equal(held.rc, LEAT_E_CLOSED);
    assert_int_equal(left->ends[0].downs, 1);
    assert_true(left->ends[0].downs_unborn > 2);
    struct caller refused = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &refused);
    assert_int_equal(refused.started, LEAT_E_CLOSED);
    struct node *again = node_make(
        (struct setup){.name = "right", .address = "right:1", .cluster = 7, .incarnation = 15});
    run(3 * SECOND);
    assert_int_equal(left->ends[0].ups, 2);
    assert_int_equal(leat_link_peer(left->ends[0].link)->incarnation, 15);
    assert_int_equal(held.done, 1);
    (void)again;
}

/* A machine without power says nothing: silence ends the link within its bound, and a call's own
 * time limit ends the call before. */
static void link_silent_peer_is_cut(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    struct caller limited = {.call = {.kind = KIND_HOLD,
                                      .control = words,
                                      .control_bytes = sizeof words,
                                      .timeout_us = 300 * 1000}};
    struct caller unlimited = {
        .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
    right->process->cut_off_until_us = world->now_us + 60 * SECOND;
    call_start(left, 0, &limited);
    call_start(left, 0, &unlimited);
    run(SECOND);
    assert_int_equal(limited.done, 1);
    assert_int_equal(limited.rc, LEAT_E_TIMEOUT);
    assert_int_equal(unlimited.done, 0);
    assert_int_equal(left->ends[0].downs, 0);
    run(2 * SECOND);
    assert_int_equal(unlimited.done, 1);
    assert_int_equal(unlimited.rc, LEAT_E_CLOSED);
    assert_int_equal(left->ends[0].downs, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_TIMEOUT);
    assert_int_equal(right->ends[0].downs, 1); /* the other side noticed too */
}

/* Idle links stay up by pings alone. */
static void link_idle_stays_up(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(120 * SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs, 0);
    assert_int_equal(right->ends[0].downs, 0);
}

/* Answers may come in any order and long after; a late one after its call's time is no harm. */
static void link_answers_late_and_reversed_find_their_calls(void **state)
{
    (void)state;
    enum { CALLS = 200 };
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    static struct caller callers[CALLS];
    static uint8_t bodies[CALLS][4];
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i < CALLS; i++) {
        memcpy(bodies[i], &i, sizeof i);
        callers[i].call = (struct leat_link_call){.kind = KIND_HOLD,
                                                  .control = bodies[i],
                                                  .control_bytes = 4,
                                                  .timeout_us = i % 10 == 3 ? 1000 : 0};
        call_start(left, 0, &callers[i]);
    }
    run(SECOND);
    struct end *far = &right->ends[0];
    assert_int_equal(far->held_count, CALLS);
    for (unsigned i = CALLS; i-- > 0;) {
        uint8_t body[4];
        memcpy(body, &i, sizeof i);
        /* No events run in between, so entering for each is the same as a turn. */
        right->process->world->entered = right->process;
        leat_link_answer(far->links, &far->held[i], body, 4);
        right->process->world->entered = NULL;
    }
    run(SECOND);
    struct caller last = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &last);
    struct caller back = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(right, 0, &back); /* its turn's end sends what was answered above */
    run(SECOND);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(callers[i].done, 1);
        assert_int_equal(callers[i].rc, i % 10 == 3 ? LEAT_E_TIMEOUT : LEAT_OK);
        if (i % 10 != 3) assert_true(callers[i].matched);
    }
    assert_true(last.matched);
    assert_int_equal(left->ends[0].downs, 0);
}

/* Too many calls, too many bytes, too large: refused by name, nothing else harmed. */
static void link_limits_refuse_by_name(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    static struct caller callers[LEAT_LINK_CALLS_MAX + 1];
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i <= LEAT_LINK_CALLS_MAX; i++) {
        callers[i].call = (struct leat_link_call){
            .kind = KIND_HOLD, .control = words, .control_bytes = sizeof words};
        call_start(left, 0, &callers[i]);
        assert_int_equal(callers[i].started, i < LEAT_LINK_CALLS_MAX ? LEAT_OK : LEAT_E_AGAIN);
    }
    static uint8_t large[LEAT_FRAME_BYTES_MAX];
    static struct caller heavy[16];
    memset(heavy, 0, sizeof heavy);
    struct leat_link_options accepted = {.address = "right:1", .to_actor = 1};
    open_with(left, 1, accepted);
    run(SECOND);
    unsigned again = 0;
    for (unsigned i = 0; i < 16; i++) {
        heavy[i].iov[0] = (struct leat_iov){large, i == 0 ? sizeof large : sizeof large / 2};
        heavy[i].call = (struct leat_link_call){.kind = KIND_ECHO,
                                                .control = words,
                                                .control_bytes = sizeof words,
                                                .payload = heavy[i].iov,
                                                .payload_count = 1};
        call_start(left, 1, &heavy[i]);
        if (i == 0) assert_int_equal(heavy[i].started, LEAT_E_TOO_LARGE);
        if (heavy[i].started == LEAT_E_AGAIN) again++;
    }
    assert_int_equal(again, 0); /* 60 of 64 MiB */
    for (unsigned i = 0; i < 2; i++) {
        static struct caller more[2];
        more[i] = (struct caller){.call = heavy[1].call};
        call_start(left, 1, &more[i]);
        assert_int_equal(more[i].started, i == 0 ? LEAT_E_AGAIN : LEAT_E_AGAIN);
    }
    run(30 * SECOND);
    for (unsigned i = 1; i < 16; i++)
        assert_true(heavy[i].matched);
    assert_int_equal(left->ends[1].downs, 0);
}

struct closing {
    struct end *end;
};
static void close_now(void *arg)
{
    leat_link_close(&((struct closing *)arg)->end->link);
}
static void destroy_now(void *arg)
{
    struct end *end = arg;
    end->link = NULL;
    leat_links_destroy(&end->links);
}

/* Closing a link, or all of them, ends calls with CANCELLED and tells nobody else anything. */
static void link_closed_cancels_calls(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_with(left, i, (struct leat_link_options){.address = "right:1"});
        run(SECOND);
        struct caller held = {
            .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
        call_start(left, i, &held);
        run(SECOND);
        struct closing closing = {&left->ends[i]};
        if (i == 0)
            assert_true(sim_process_enter(left->process, close_now, &closing));
        else
            assert_true(sim_process_enter(left->process, destroy_now, &left->ends[i]));
        run(SECOND);
        assert_int_equal(held.done, 1);
        assert_int_equal(held.rc, LEAT_E_CANCELLED);
        assert_int_equal(left->ends[i].downs, 0);
        assert_null(right->ends[0].accepted);
        /* The answer comes too late for anybody. */
        right->process->world->entered = right->process;
        leat_link_answer(right->ends[0].links, &right->ends[0].held[i], words, sizeof words);
        right->process->world->entered = NULL;
        run(SECOND);
    }
}

/* Under resets, partitions and restarts for many seeds: messages of one connection keep their
 * order, every call that started ends exactly once, and in the end the link works. */
static void link_under_faults_keeps_order_and_ends_calls(void **state)
{
    (void)state;
    enum { ROUNDS = 40, CALLS = 20, SEEDS = 60 };
    static struct caller callers[ROUNDS][CALLS];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        teardown_world(NULL);
        world = sim_world_create(1000 + seed, false);
        left = node_make(
            (struct setup){.name = "left", .address = "left:1", .cluster = 7, .incarnation = 11});
        right = node_make(
            (struct setup){.name = "right", .address = "right:1", .cluster = 7, .incarnation = 12});
        memset(callers, 0, sizeof callers);
        open_with(left, 0, (struct leat_link_options){.address = "right:1"});
        for (unsigned i = 0; i < ROUNDS; i++) {
            for (unsigned c = 0; c < CALLS; c++) {
                struct caller *caller = &callers[i][c];
                bool hold = sim_rng_chance(&world->work, 200);
                caller->call = (struct leat_link_call){
                    .kind = hold ? KIND_HOLD : KIND_ECHO,
                    .control = words,
                    .control_bytes = sizeof words,
                    .timeout_us = sim_rng_chance(&world->work, 500) ? 20000 : 0};
                call_start(left, 0, caller);
            }
            switch (sim_rng_below(&world->fault, 6)) {
            case 0:
                sim_net_reset(right->process, 700);
                break;
            case 1:
                right->process->cut_off_until_us =
                    world->now_us + sim_rng_below(&world->fault, 4 * SECOND);
                break;
            case 2:
                right->process->paused_until_us =
                    world->now_us + sim_rng_below(&world->fault, 3 * SECOND);
                break;
            default:
                break;
            }
            run(sim_rng_below(&world->fault, SECOND / 2));
        }
        run(20 * SECOND);
        assert_true(leat_link_is_up(left->ends[0].link));
        sim_net_reset(right->process, 1000);
        run(10 * SECOND); /* what was held ends with its connection */
        for (unsigned i = 0; i < ROUNDS; i++)
            for (unsigned c = 0; c < CALLS; c++)
                assert_int_equal(callers[i][c].done, callers[i][c].started == LEAT_OK);
        struct caller last = {
            .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
        call_start(left, 0, &last);
        assert_int_equal(last.started, LEAT_OK);
        run(SECOND);
        assert_true(last.matched);
    }
}

struct telling {
    struct end *end;
    uint64_t number;
    leat_err rc;
};
static void tell_now(void *arg)
{
    struct telling *telling = arg;
    telling->rc =
        leat_link_tell(telling->end->link, KIND_COUNT, &telling->number, sizeof telling->number);
}

/* One-way messages arrive once each, in order. */
static void link_tells_arrive_in_order(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    for (uint64_t i = 0; i < 5000; i++) {
        struct telling telling = {&left->ends[0], i, LEAT_OK};
        assert_true(sim_process_enter(left->process, tell_now, &telling));
        assert_int_equal(telling.rc, LEAT_OK);
        if (i % 100 == 0) run(100);
    }
    run(5 * SECOND);
    assert_int_equal(right->ends[0].counted, 5000);
    assert_false(right->ends[0].out_of_order);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_world, teardown_world)
    const struct CMUnitTest tests[] = {
        T(link_up_calls_both_ways),
        T(link_refused_says_why),
        T(link_strangers_meet_where_allowed),
        T(link_fenced_incarnation_is_cut_and_stays_out),
        T(link_stranger_is_told_and_cut),
        T(link_peer_of_another_format_is_told_and_cut),
        T(link_many_silent_strangers_do_not_lock_nodes_out),
        T(link_lost_fails_calls_and_comes_back),
        T(link_silent_peer_is_cut),
        T(link_idle_stays_up),
        T(link_answers_late_and_reversed_find_their_calls),
        T(link_limits_refuse_by_name),
        T(link_closed_cancels_calls),
        T(link_under_faults_keeps_order_and_ends_calls),
        T(link_tells_arrive_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
