/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/link/rig.h"

struct sim_world *world;

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
static void end_check(const void *actor)
{
    const struct end *end = actor;
    if (end->links) leat_links_check(end->links);
}

static const struct leat_actor_ops end_ops = {.on_wake = end_wake, .check = end_check};

const struct leat_key cluster_key = {{"the cluster's key, of 32 bytes."}};

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
            .actor = end,
            .timers = &end->timers,
            .hub = &node->hub,
            .key = setup->key ? setup->key : &cluster_key,
            .queued_bytes_max = setup->queued_bytes_max,
            .strangers_max = setup->strangers_max,
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

struct node *node_make(struct setup setup)
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
void open_with(struct node *node, unsigned core, struct leat_link_options options)
{
    struct opening opening = {.end = &node->ends[core], .options = options};
    opening.options.handler = &opening.end->handler;
    if (!opening.options.purpose) opening.options.purpose = LEAT_LINK_SERVE;
    assert_true(sim_process_enter(node->process, open_now, &opening));
    assert_int_equal(opening.rc, LEAT_OK);
}

void run(uint64_t us)
{
    sim_world_run(world, world->now_us + us, NULL);
    assert_string_equal(world->failure, "");
}

/* ---- calls ---- */

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
void call_start(struct node *node, unsigned core, struct caller *caller)
{
    caller->end = &node->ends[core];
    assert_true(sim_process_enter(node->process, call_now, caller));
}

struct node *left, *right;

int setup_world(void **state)
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
int teardown_world(void **state)
{
    (void)state;
    sim_world_destroy(&world);
    return 0;
}

/* ---- strangers on the port ---- */
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
    assert_int_equal(stranger->actor->env.net->connect(stranger->actor->env.net->ctx,
                                                       stranger->address, &stranger_handler,
                                                       stranger, &conn),
                     LEAT_OK);
}
static void stranger_no_wake(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops stranger_ops = {.on_wake = stranger_no_wake};

struct stranger *stranger_make(const void *bytes, size_t count)
{
    return stranger_from("stranger", "right:1", bytes, count);
}

struct stranger *stranger_from(const char *from, const char *address, const void *bytes,
                               size_t count)
{
    struct stranger *stranger = calloc(1, sizeof *stranger);
    struct sim_process *process = sim_process_create(world, from);
    assert_non_null(stranger);
    stranger->actor = sim_actor_create(process, 0);
    stranger->address = address;
    stranger->bytes = bytes;
    stranger->count = count;
    assert_true(sim_process_enter(process, stranger_start, stranger));
    sim_actor_register(stranger->actor, stranger, &stranger_ops);
    return stranger;
}
