/* The transport suite over tcp, rpc, and the choice of a transport. */
#include "replication/transport.h"
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
    struct leat_transport_sink_options sink = {.env = env, .host = env->rmem_host};
    RIG_CHECK(leat_transport_sink_create(&sink, &rig->sink) == LEAT_OK);
    struct leat_links_options options = {.env = env,
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
                                         .timers = &rig->timers[RIG_WRITER],
                                         .key = &key,
                                         .identity = {{1}, "writer", 7, 2}};
    RIG_CHECK(leat_links_create(&options, &rig->links[RIG_WRITER], &error) == LEAT_OK);
    struct leat_transport_options transport = {
        .env = env, .links = rig->links[RIG_WRITER], .only = rig->only};
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

int main(void)
{
    static const struct transport_family families[] = {
        {"tcp", LEAT_RMEM_TCP, make_tcp, drop, 20},
        {"rpc", LEAT_RMEM_RPC, make_rpc, drop, 20},
        {"auto on one host", LEAT_RMEM_SHM, make_auto, drop, 10},
    };
    int failed = 0;
    for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++)
        failed += transport_suite_run(&families[i]);
    return failed;
}
