/* SPDX-License-Identifier: Apache-2.0 */
/* The transport suite over tcp, rpc, and the choice of a transport. */
#include "replication/transport/data.h"
#include "replication/transport/transport.h"
#include "tests/transport/os_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMERS = 16, NODE = 5 };

static const struct leat_key key = {{"of the cluster"}};

struct link_rig {
    struct os_rig *os;
    struct leat_timers timers[2];
    struct leat_links *links[2];
    struct leat_link_hub hub; /* of the host's side */
    struct leat_transport_sink *sink;
    struct leat_transport *transport;
    enum leat_rmem_kind only;
    char address[128];
};

static void woken(struct os_rig *os, unsigned actor)
{
    struct link_rig *rig = os->owner;
    leat_timers_run(&rig->timers[actor]);
}

static void host_build(void *arg)
{
    struct link_rig *rig = arg;
    struct leat_error error;
    const struct leat_env *env = rig->os->envs[RIG_HOST];
    struct leat_transport_sink_options sink = {
        .env = env, .host = env->rmem_host, .baseline = &leat_transport_rpc};
    RIG_CHECK(leat_transport_sink_create(&sink, &rig->sink) == LEAT_OK);
    struct leat_links_options options = {.env = env,
                                         .actor = os_rig_actor(RIG_HOST),
                                         .timers = &rig->timers[RIG_HOST],
                                         .hub = &rig->hub,
                                         .key = &key,
                                         .identity = {{1}, "backup", 3, 1}};
    options.services[LEAT_LINK_DATA].handler = leat_transport_sink_handler(rig->sink);
    RIG_CHECK(leat_links_create(&options, &rig->links[RIG_HOST], &error) == LEAT_OK);
    RIG_CHECK(env->net->listen(env->net->ctx, "127.0.0.1:0", leat_link_accept, rig->links[RIG_HOST],
                               rig->address, &error) == LEAT_OK);
}

static void writer_build(void *arg)
{
    struct link_rig *rig = arg;
    struct leat_error error;
    const struct leat_env *env = rig->os->envs[RIG_WRITER];
    struct leat_links_options options = {.env = env,
                                         .actor = os_rig_actor(RIG_WRITER),
                                         .timers = &rig->timers[RIG_WRITER],
                                         .key = &key,
                                         .identity = {{1}, "writer", 7, 2}};
    RIG_CHECK(leat_links_create(&options, &rig->links[RIG_WRITER], &error) == LEAT_OK);
    struct leat_transport_options transport = {.env = env,
                                               .links = rig->links[RIG_WRITER],
                                               .baseline = &leat_transport_rpc,
                                               .only = rig->only};
    RIG_CHECK(leat_transport_create(&transport, &rig->transport, &error) == LEAT_OK);
    RIG_CHECK(leat_transport_node_set(rig->transport, NODE, "backup", rig->address, 3) == LEAT_OK);
    rig->os->rig.writer = leat_transport_writer(rig->transport);
}

static struct transport_rig *make(enum leat_rmem_kind only)
{
    struct link_rig *rig = calloc(1, sizeof *rig);
    RIG_CHECK(rig != NULL);
    rig->only = only;
    rig->os = os_rig_make(NULL, NULL);
    rig->os->owner = rig;
    rig->os->woken = woken;
    rig->os->rig.node = NODE;
    for (unsigned i = 0; i < 2; i++)
        RIG_CHECK(leat_timers_init(&rig->timers[i], rig->os->envs[i]->clock, TIMERS) == LEAT_OK);
    os_rig_start(rig->os);
    rig->os->rig.call(rig->os, RIG_HOST, host_build, rig);
    rig->os->rig.call(rig->os, RIG_WRITER, writer_build, rig);
    return &rig->os->rig;
}
static struct transport_rig *make_tcp(void)
{
    return make(LEAT_RMEM_TCP);
}
static struct transport_rig *make_rpc(void)
{
    return make(LEAT_RMEM_RPC);
}
static struct transport_rig *make_auto(void)
{
    return make(LEAT_RMEM_NONE);
}

static void drop(struct transport_rig *transport_rig)
{
    struct os_rig *os = transport_rig->ctx;
    struct link_rig *rig = os->owner;
    os_rig_stop(os);
    leat_transport_destroy(&rig->transport);
    leat_links_destroy(&rig->links[RIG_WRITER]);
    leat_links_destroy(&rig->links[RIG_HOST]);
    os_rig_drop(os);
    leat_transport_sink_destroy(&rig->sink);
    for (unsigned i = 0; i < 2; i++)
        leat_timers_fini(&rig->timers[i]);
    free(rig);
}

/* ---- whose arena it is ---- */

/* Writes of one proved node into the arena of another, by hand: its own transport would not send them. */
struct by_hand {
    struct link_rig *rig;
    struct leat_rmem_arena *arena;
    const char *writer; /* of the arena */
    uint64_t incarnation;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    struct leat_error error;
    struct leat_link_handler handler;
    struct leat_link *link;
    struct leat_link_call call;
    struct leat_data_write write;
    struct leat_iov iov;
    bool grown, up, answered, told;
    leat_err rc;
    uint32_t done_rc;
};

static void notify(const struct by_hand *it)
{
    it->rig->os->rig.notify(it->rig->os);
}

static void hand_grown(struct leat_rmem_grow *grow)
{
    struct by_hand *it = grow->owner;
    it->grown = true;
    notify(it);
}

static void hand_open(void *arg)
{
    struct by_hand *it = arg;
    const struct leat_rmem_host *host = it->rig->os->rig.host;
    RIG_CHECK(host->open(host->ctx, it->writer, it->incarnation, LEAT_ARENA_STEP_BYTES, &it->arena,
                         &it->error) == LEAT_OK);
    it->grow = (struct leat_rmem_grow){.on_grown = hand_grown, .owner = it};
    host->grow(host->ctx, it->arena, &it->grow);
}

static void hand_grant(void *arg)
{
    struct by_hand *it = arg;
    const struct leat_rmem_host *host = it->rig->os->rig.host;
    host->grant(host->ctx, it->arena, &it->grant);
    RIG_CHECK(leat_rmem_grant_address(&it->grant, &it->write.address) == LEAT_OK);
}

static void hand_retire(void *arg)
{
    struct by_hand *it = arg;
    it->rig->os->rig.host->retire(it->rig->os->rig.host->ctx, it->arena);
}

static void hand_up(void *owner, struct leat_link *link)
{
    struct by_hand *it = owner;
    (void)link;
    it->up = true;
    notify(it);
}

static void hand_down(void *owner, struct leat_link *link, bool was_up,
                      const struct leat_error *error)
{
    (void)owner;
    (void)link;
    (void)was_up;
    (void)error;
}

static void hand_asked(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    struct by_hand *it = owner;
    struct leat_data_done done;
    (void)link;
    (void)ticket;
    RIG_CHECK(frame->kind == LEAT_DATA_DONE && frame->control_bytes == sizeof done);
    memcpy(&done, frame->control, sizeof done);
    it->done_rc = done.rc;
    it->told = true;
    notify(it);
}

static void hand_connect(void *arg)
{
    struct by_hand *it = arg;
    it->handler = (struct leat_link_handler){hand_up, hand_down, hand_asked, it};
    struct leat_link_options options = {.address = it->rig->address,
                                        .to_actor = RIG_HOST,
                                        .purpose = LEAT_LINK_DATA,
                                        .handler = &it->handler};
    RIG_CHECK(leat_link_open(it->rig->links[RIG_WRITER], &options, &it->link, &it->error) ==
              LEAT_OK);
}

static void hand_close(void *arg)
{
    leat_link_close(&((struct by_hand *)arg)->link);
}

static void hand_answered(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct by_hand *it = call->owner;
    (void)answer;
    (void)error;
    if (call->one_way) return;
    it->rc = rc;
    it->answered = true;
    notify(it);
}

static void hand_write(struct by_hand *it, bool one_way)
{
    it->write.number++;
    it->iov = (struct leat_iov){"written", 7};
    it->call = (struct leat_link_call){.kind = one_way ? LEAT_DATA_WRITE : LEAT_DATA_REQUEST,
                                       .one_way = one_way,
                                       .control = (const uint8_t *)&it->write,
                                       .control_bytes = sizeof it->write,
                                       .payload = &it->iov,
                                       .payload_count = 1,
                                       .timeout_us = 10 * 1000 * 1000,
                                       .on_done = hand_answered,
                                       .owner = it};
    RIG_CHECK(leat_link_call(it->link, &it->call) == LEAT_OK);
}
static void hand_request(void *arg)
{
    hand_write(arg, false);
}
static void hand_tell(void *arg)
{
    hand_write(arg, true);
}

static bool hand_is_grown(void *arg)
{
    return ((struct by_hand *)arg)->grown;
}
static bool hand_is_up(void *arg)
{
    return ((struct by_hand *)arg)->up;
}
static bool hand_is_answered(void *arg)
{
    return ((struct by_hand *)arg)->answered;
}
static bool hand_is_told(void *arg)
{
    return ((struct by_hand *)arg)->told;
}

/* Also of another incarnation of the same node: that one is gone, or not up yet. */
static void write_of_another_node_than_the_arenas_is_refused(void)
{
    static const struct {
        const char *writer;
        uint64_t incarnation;
        leat_err rc;
    } cases[] = {{"writer", 7, LEAT_OK}, {"other", 7, LEAT_E_DENIED}, {"writer", 8, LEAT_E_DENIED}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct transport_rig *at = make_tcp();
        struct os_rig *os = at->ctx;
        struct by_hand it = {.rig = os->owner,
                             .writer = cases[i].writer,
                             .incarnation = cases[i].incarnation,
                             .write.target = 1};
        at->call(os, RIG_HOST, hand_open, &it);
        at->wait(os, RIG_HOST, hand_is_grown, &it);
        RIG_CHECK(it.grow.rc == LEAT_OK);
        at->call(os, RIG_HOST, hand_grant, &it);
        at->call(os, RIG_WRITER, hand_connect, &it);
        at->wait(os, RIG_WRITER, hand_is_up, &it);
        at->call(os, RIG_WRITER, hand_request, &it);
        at->wait(os, RIG_WRITER, hand_is_answered, &it);
        RIG_CHECK(it.rc == cases[i].rc);
        it.write.offset = 100;
        at->call(os, RIG_WRITER, hand_tell, &it);
        at->wait(os, RIG_WRITER, hand_is_told, &it);
        RIG_CHECK(it.done_rc == (uint32_t)cases[i].rc);
        static const uint8_t nothing[7];
        const void *expected = cases[i].rc == LEAT_OK ? (const void *)"written" : nothing;
        RIG_CHECK(memcmp(it.arena->base, expected, 7) == 0);
        RIG_CHECK(memcmp(it.arena->base + 100, expected, 7) == 0);
        at->call(os, RIG_WRITER, hand_close, &it);
        at->call(os, RIG_HOST, hand_retire, &it);
        drop(at);
    }
}

int main(void)
{
    static const struct transport_family families[] = {
        {"tcp", LEAT_RMEM_TCP, make_tcp, drop, 20},
        {"rpc", LEAT_RMEM_RPC, make_rpc, drop, 20},
        {"auto on one host", LEAT_RMEM_SHM, make_auto, drop, 10},
    };
    int failed = 0;
    write_of_another_node_than_the_arenas_is_refused();
    for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++)
        failed += transport_suite_run(&families[i]);
    return failed;
}
