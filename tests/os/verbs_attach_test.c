/* SPDX-License-Identifier: Apache-2.0 */
/* The writer port over verbs: a target attaches, or says why it cannot, and leaves nothing. */
#include "tests/os/verbs_writer_alone.h"

#define ENDED    "the RDMA connection to the backup ended: "
#define NO_QUEUE "no RDMA queue pair: the device refuses one more"

/* ---- the port ---- */

/* Goal: a port has a place among the actor's; one that could not be opened is closed with all that was made. */
static void verbs_port_opens(void **state)
{
    (void)state;
    struct leat_rmem other;
    device_opens();
    actor.env.rmems[0] = &other;
    leat_mem_fail_at(1);
    assert_int_equal(leat_os_verbs_writer_open(&rmem, &actor), LEAT_E_NO_MEMORY);
    assert_null(rmem.verbs->writers[3]);
    TRACE_IS("");
    assert_int_equal(leat_os_verbs_writer_open(&rmem, &actor), LEAT_OK);
    TRACE_IS("channel\ncompletions\nunblock 102\nunblock 200\nwatch 102\nwatch 200\n");
    assert_ptr_equal(actor.env.rmems[1], &rmem.verbs->writers[3]->port);
    assert_int_equal(actor.env.rmems[1]->kind, LEAT_RMEM_VERBS);
    leat_os_verbs_actor_close(&rmem, &actor);
    TRACE_IS("watch 101 ends\nwatch 102 ends\nwatch 200 ends\ncompletions end\nchannel 102 ends\n");
    assert_null(rmem.verbs->writers[3]);
    leat_os_verbs_actor_close(&rmem, &actor);
    TRACE_IS("");
    device_closes();
}

static void verbs_port_that_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        enum call call;
        int skip;
        const char *made, *back;
    } rows[] = {
        {CHANNEL, 1, "channel\ncompletions\n", "completions end\n"},
        {COMPLETIONS, 0, "channel\ncompletions\n", "channel 102 ends\n"},
        {UNBLOCK, 1, "channel\ncompletions\nunblock 102\n", "completions end\nchannel 102 ends\n"},
        {UNBLOCK, 2, "channel\ncompletions\nunblock 102\nunblock 200\n",
         "completions end\nchannel 102 ends\n"},
        {WATCH, 1, "channel\ncompletions\nunblock 102\nunblock 200\nwatch 102\nwatch 200\n",
         "watch 200 ends\ncompletions end\nchannel 102 ends\n"},
        {WATCH, 2, "channel\ncompletions\nunblock 102\nunblock 200\nwatch 102\nwatch 200\n",
         "watch 102 ends\ncompletions end\nchannel 102 ends\n"}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(played.made, 0, sizeof played.made);
        played.watch_count = played.named_count = 0;
        plan(rows[i].call, rows[i].skip, EMFILE);
        device_opens();
        assert_int_equal(leat_os_verbs_writer_open(&rmem, &actor), LEAT_E_NO_MEMORY);
        TRACE_IS(rows[i].made);
        assert_null(actor.env.rmems[0]);
        leat_os_watch_close(&rmem.verbs->watch);
        trace_begin();
        leat_os_verbs_actor_close(&rmem, &actor);
        TRACE_IS(rows[i].back);
        device_closes();
    }
}

/* Goal: a core's writers may name memory, each region with a key of its own, as many regions as there are places. */
static void verbs_takes_sources(void **state)
{
    (void)state;
    uint32_t key = 0;
    size_t bytes = 0;
    port_opens();
    plan(REGISTER, 0, EIO);
    assert_int_equal(port->source(port->ctx, source, 10, &error), LEAT_E_UNSUPPORTED);
    assert_string_equal(error.text, "memory can't be registered for RDMA: Input/output error");
    plan(REGISTER, 0, ENOMEM);
    assert_int_equal(port->source(port->ctx, source, 10, NULL), LEAT_E_NO_MEMORY);
    TRACE_IS("register source+0 10 write\nregister source+0 10 write\n");
    for (unsigned i = 1; i < VERBS_SOURCES_MAX; i++)
        assert_int_equal(port->source(port->ctx, (uint8_t *)(uintptr_t)(i * 64), 10, NULL),
                         LEAT_OK);
    trace_begin();
    assert_int_equal(port->source(port->ctx, source, 10, &error), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "64 regions are registered already");
    TRACE_IS("register source+0 10 write\nregion 65 ends\n");
    assert_int_equal(pthread_mutex_trylock(&rmem.lock), 0);
    (void)pthread_mutex_unlock(&rmem.lock);
    leat_os_verbs_pool_register(&rmem, &error); /* what follows the last source is none */
    const struct {
        const uint8_t *at;
        enum verbs_key is;
        uint32_t key;
        size_t bytes;
    } rows[] = {{source, VERBS_KEY_KNOWN, 1001, SOURCE_BYTES},
                {source + SOURCE_BYTES - 1, VERBS_KEY_KNOWN, 1001, 1},
                {source - 1, VERBS_KEY_NONE, 0, 0},
                {pool.base, VERBS_KEY_KNOWN, 1066, STEP},
                {pool.base + STEP, VERBS_KEY_LATER, 0, 0},
                {pool.base + 3 * STEP - 1, VERBS_KEY_LATER, 0, 0},
                {pool.base + 3 * STEP, VERBS_KEY_NONE, 0, 0},
                {(uint8_t *)64, VERBS_KEY_KNOWN, 1002, 10},
                {(uint8_t *)(63 * 64 + 9), VERBS_KEY_KNOWN, 1064, 1},
                {(uint8_t *)(63 * 64 + 10), VERBS_KEY_NONE, 0, 0}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(leat_os_verbs_local_key(&rmem, rows[i].at, &key, &bytes), rows[i].is);
        if (rows[i].is != VERBS_KEY_KNOWN) continue;
        assert_int_equal(key, rows[i].key);
        assert_int_equal(bytes, rows[i].bytes);
    }
    pool.limit_bytes =
        (LEAT_RMEM_STEPS_MAX + 1) * STEP; /* steps past the table are registered never */
    assert_int_equal(
        leat_os_verbs_local_key(&rmem, pool.base + LEAT_RMEM_STEPS_MAX * STEP, &key, &bytes),
        VERBS_KEY_NONE);
    assert_int_equal(
        leat_os_verbs_local_key(&rmem, pool.base + LEAT_RMEM_STEPS_MAX * STEP - 1, &key, &bytes),
        VERBS_KEY_LATER);
    struct os_verbs_arena registered = {.steps = {rmem.verbs->sources[1].mr}};
    struct os_rmem_arena arena = {.port.limit_bytes = STEP, .verbs = &registered};
    rmem.arenas[0] = &arena; /* one of this host's own, on either side of the pool */
    for (unsigned i = 0; i < 2; i++) {
        arena.port.base = i ? pool.base + pool.limit_bytes : (uint8_t *)STEP;
        assert_int_equal(leat_os_verbs_local_key(&rmem, arena.port.base + 3, &key, &bytes),
                         VERBS_KEY_KNOWN);
        assert_int_equal(key, 1002);
        assert_int_equal(bytes, STEP - 3);
    }
    rmem.arenas[0] = NULL;
    world.actors[LEAT_ACTOR_STORE] = NULL;
    assert_int_equal(leat_os_verbs_local_key(&rmem, pool.base, &key, &bytes), VERBS_KEY_NONE);
    world.actors[LEAT_ACTOR_STORE] = &store;
    store.env.arena = NULL;
    assert_int_equal(leat_os_verbs_local_key(&rmem, pool.base, &key, &bytes), VERBS_KEY_NONE);
    port_closes();
}

/* Goal: the steps that the pool has are registered once each, and those that come later, later; none past the table. */
static void verbs_registers_the_pool_as_far_as_it_has_grown(void **state)
{
    (void)state;
    uint32_t key = 0;
    size_t bytes = 0;
    port_opens();
    pool.grown_bytes = 3 * STEP;
    plan(REGISTER, 1, EIO);
    leat_os_verbs_pool_register(&rmem, &error);
    assert_int_equal(error.code, LEAT_E_UNSUPPORTED);
    TRACE_IS("register pool+0 67108864 write\nregister pool+67108864 67108864 write\n");
    error.code = LEAT_OK;
    pool.grown_bytes = 2 * STEP;
    leat_os_verbs_pool_register(&rmem, &error);
    assert_int_equal(error.code, LEAT_OK);
    TRACE_IS("register pool+67108864 67108864 write\n");
    assert_int_equal(leat_os_verbs_local_key(&rmem, pool.base + STEP + 9, &key, &bytes),
                     VERBS_KEY_KNOWN);
    assert_int_equal(key, 1003);
    assert_int_equal(bytes, STEP - 9);
    pool.grown_bytes = (LEAT_RMEM_STEPS_MAX + 1) * STEP;
    leat_os_verbs_pool_register(&rmem, &error);
    assert_int_equal(played.made[MRS], 1 + LEAT_RMEM_STEPS_MAX);
    port_closes();
}

/* ---- grants ---- */

static void refused(leat_err rc, const char *text, const char *calls)
{
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach("a", &target), rc);
    assert_null(target);
    assert_string_equal(error.text, text);
    TRACE_IS(calls);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    arena_lies();
}

/* Goal: a grant that does not offer RDMA, or that nobody can read, is refused by name. */
static void verbs_refuses_grants_by_name(void **state)
{
    (void)state;
    static const char unread[] = "the grant can't be read";
    struct leat_rmem_target *target = NULL;
    struct leat_rmem_grant grant = {0};
    port_opens();
#define ATTACH() port->attach(port->ctx, 0, &grant, &handler, NULL, &target, &error)
    assert_int_equal(ATTACH(), LEAT_E_INVALID);
    assert_string_equal(error.text, unread);
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_VERBS, &section, sizeof section));
    assert_int_equal(ATTACH(), LEAT_E_INVALID); /* no address */
    assert_string_equal(error.text, unread);
    memset(&grant, 0, sizeof grant);
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_int_equal(ATTACH(), LEAT_E_UNSUPPORTED);
    assert_string_equal(error.text, "the backup does not offer RDMA");
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_VERBS, &section, sizeof section - 1));
    assert_int_equal(ATTACH(), LEAT_E_INVALID);
    assert_string_equal(error.text, unread);
    TRACE_IS("");
    section.family = AF_UNIX;
    refused(LEAT_E_INVALID, unread, "");
    rmem.verbs->gone = true;
    refused(LEAT_E_UNSUPPORTED, "the RDMA device has disappeared", "");
    rmem.verbs->gone = false;
    leat_mem_fail_at(1);
    refused(LEAT_E_NO_MEMORY, "no memory to attach an arena", "");
    plan(ID, 0, EMFILE);
    refused(LEAT_E_UNSUPPORTED, "no RDMA path to the backup: Too many open files", "id of 102\n");
    plan(ADDRESS, 0, ENETUNREACH);
    refused(LEAT_E_UNSUPPORTED, "no RDMA path to the backup: Network is unreachable",
            RESOLVES(2) "id 2 ends\n");
    assert_true(leat_list_empty(&rmem.verbs->writers[3]->targets));
    section.family = AF_INET6;
    section.scope = 7;
    assert_int_equal(inet_pton(AF_INET6, "fe80::1:2:3:4", section.address), 1);
    assert_int_equal(attach("a", &target), LEAT_OK);
    TRACE_IS("id of 102\nresolve 3 [fe80::1:2:3:4%7]:4791 2000\n");
    leaves(target);
    port_closes();
}

static void verbs_has_bounds(void **state)
{
    (void)state;
    static struct leat_rmem_target *targets[LEAT_RMEM_TARGETS_MAX];
    port_opens();
    for (unsigned i = 0; i < LEAT_RMEM_TARGETS_MAX; i++) {
        assert_int_equal(attach("a", &targets[i]), LEAT_OK);
        assert_ptr_equal(targets[i]->port, port);
        assert_int_equal(targets[i]->kind, LEAT_RMEM_VERBS);
        trace_begin();
    }
    size_t full = leat_mem_bytes(LEAT_MEM_NET);
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach("a", &target), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "1024 targets are attached already");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), full);
    leat_rmem_detach(targets[7]); /* who has left has no place */
    mail_comes();
    assert_true(leat_mem_bytes(LEAT_MEM_NET) < full);
    assert_int_equal(attach("a", &target), LEAT_OK);
    trace_begin();
    port_closes();
}

/* ---- attaching ---- */

/* Goal: address, route, queue pair, connection, keys, in that order, and attached with the first keys. */
static void verbs_attaches(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    struct verbs_hello hello;
    port_opens();
    assert_int_equal(attach("a", &target), LEAT_OK);
    TRACE_IS(RESOLVES(2));
    resolved(target);
    TRACE_IS(ROUTES(2));
    routed(target);
    TRACE_IS(QUEUE(2, 2) CONNECTS(2));
    memcpy(&hello, played.told, sizeof hello);
    assert_int_equal(hello.magic, VERBS_MAGIC);
    assert_int_equal(hello.number, 5);
    assert_memory_equal(hello.id, address.id, sizeof hello.id);
    established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
    TRACE_IS(READS(1, 1002));
    established(target, VERBS_MAGIC, sizeof(struct verbs_welcome)); /* twice */
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL, 0);
    ready(CM);
    TRACE_IS("");
    assert_false(target->attached);
    keys_come(target, 1);
    TRACE_IS("a attached\nmail\n");
    mail_comes();
    TRACE_IS("");
    leat_rmem_detach(target);
    TRACE_IS("mail\n");
    mail_comes();
    TRACE_IS(CUT(2, 1, 2, 2));
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

/* The step before it went well; this one fails, and the target says so once, after all has gone. */
static void fails_is(struct leat_rmem_target *target, const char *calls, const char *back,
                     leat_err rc, const char *text)
{
    char expected[1500];
    assert_true(target->failed);
    snprintf(expected, sizeof expected, "%smail\n", calls);
    TRACE_IS(expected);
    mail_comes();
    snprintf(expected, sizeof expected, "%sa failed: %d %s\n", back, rc, text);
    TRACE_IS(expected);
    leaves(target);
    memset(played.made, 0, sizeof played.made);
    played.made[IDS] = played.made[CQS] = played.made[MRS] = 1; /* as before */
}

enum step { AT_ADDRESS, AT_ROUTE, AT_CONNECT, AT_KEYS };

static struct leat_rmem_target *comes_to(enum step step)
{
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach("a", &target), LEAT_OK);
    if (step > AT_ADDRESS) resolved(target);
    if (step > AT_ROUTE) routed(target);
    if (step > AT_CONNECT) established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
    trace_begin();
    return target;
}

/* Goal: each call that fails while a target attaches fails the target, and what was made before goes. */
static void verbs_says_what_failed_as_it_attached(void **state)
{
    (void)state;
    static const char table[] = "cq of 264 with events\nregister somewhere 2048 write\n",
                      pair[] = "qp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\n";
    static const struct {
        enum step step;
        enum call call;
        const char *calls, *back;
        leat_err rc;
        const char *text;
    } rows[] = {
        {AT_ADDRESS, TIMEOUT, "timeout 2 12\n", "id 2 ends\n", LEAT_E_UNSUPPORTED,
         "the RDMA device has no ACK timeout to set"},
        {AT_ADDRESS, ROUTE, ROUTES(2), "id 2 ends\n", LEAT_E_CLOSED, "no RDMA route to the backup"},
        {AT_ROUTE, CQ, "cq of 264 with events\n", "id 2 ends\n", LEAT_E_UNSUPPORTED, NO_QUEUE},
        {AT_ROUTE, NOTIFY, "cq of 264 with events\n", "cq 2 ends\nid 2 ends\n", LEAT_E_UNSUPPORTED,
         NO_QUEUE},
        {AT_ROUTE, REGISTER, table, "cq 2 ends\nid 2 ends\n", LEAT_E_UNSUPPORTED, NO_QUEUE},
        {AT_ROUTE, QP, QUEUE(2, 2), "cq 2 ends\nregion 2 ends\nid 2 ends\n", LEAT_E_UNSUPPORTED,
         NO_QUEUE},
        {AT_ROUTE, CONNECT, QUEUE(2, 2) CONNECTS(2), pair, LEAT_E_UNSUPPORTED, NO_QUEUE},
        {AT_CONNECT, POST, READS(1, 1002), CUT(2, 1, 2, 2), LEAT_E_CLOSED,
         "the RDMA queue takes no request"}};
    port_opens();
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_rmem_target *target = comes_to(rows[i].step);
        plan(rows[i].call, 0, EIO);
        if (rows[i].step == AT_ADDRESS) resolved(target);
        if (rows[i].step == AT_ROUTE) routed(target);
        if (rows[i].step == AT_CONNECT)
            established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
        fails_is(target, rows[i].calls, rows[i].back, rows[i].rc, rows[i].text);
    }
    struct leat_rmem_target *target = comes_to(AT_ADDRESS);
    verbs_of(target)->id->verbs = &played.other;
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
    ready(CM);
    fails_is(target, "", "id 2 ends\n", LEAT_E_UNSUPPORTED,
             "the backup is reached by another RDMA device");
    for (unsigned i = 0; i < 2; i++) {
        target = comes_to(AT_CONNECT);
        established(target, VERBS_MAGIC + !i, sizeof(struct verbs_welcome) - i);
        fails_is(target, "", CUT(2, 1, 2, 2), LEAT_E_INVALID,
                 "what answered by RDMA is no backup of Leat's");
    }
    target = comes_to(AT_KEYS);
    completes(verbs_of(target)->cq, NULL, IBV_WC_RETRY_EXC_ERR);
    ready(WCS);
    fails_is(target, "", CUT(2, 1, 2, 2), LEAT_E_CLOSED,
             "the RDMA write failed: retry exceeded (fenced, or the peer is gone)");
    target = comes_to(AT_KEYS);
    keys_come(target, 0);
    fails_is(target, "", CUT(2, 1, 2, 2), LEAT_E_UNSUPPORTED,
             "the backup has not registered its memory");
    port_closes();
}

/* Goal: a connection that is refused, ends or loses its device fails the target, at any step. */
static void verbs_fails_with_its_connection(void **state)
{
    (void)state;
    static const struct {
        enum rdma_cm_event_type type;
        leat_err rc;
        const char *text;
    } rows[] = {{RDMA_CM_EVENT_REJECTED, LEAT_E_NOT_FOUND,
                 "the backup has no such arena (any more) for RDMA"},
                {RDMA_CM_EVENT_DEVICE_REMOVAL, LEAT_E_CLOSED, "the RDMA device has disappeared"},
                {RDMA_CM_EVENT_DISCONNECTED, LEAT_E_CLOSED, ENDED "DISCONNECTED"},
                {RDMA_CM_EVENT_UNREACHABLE, LEAT_E_CLOSED, ENDED "another event"}};
    static const char *const back[] = {"id 2 ends\n", "id 2 ends\n",
                                       "qp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\n",
                                       CUT(2, 1, 2, 2)};
    port_opens();
    for (enum step step = AT_ADDRESS; step <= AT_KEYS; step++)
        for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct leat_rmem_target *target = comes_to(step);
            event_comes(verbs_of(target)->id, rows[i].type, NULL, 0);
            event_comes(verbs_of(target)->id, RDMA_CM_EVENT_ADDR_ERROR, NULL,
                        0); /* the first counts */
            event_comes(verbs_of(target)->id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
            ready(CM);
            fails_is(target, "", back[step], rows[i].rc, rows[i].text);
        }
    port_closes();
}

/* Goal: a target that is detached as it attaches makes no further call, and says nothing. */
static void verbs_detaches_at_any_step(void **state)
{
    (void)state;
    static const char *const back[] = {"id 2 ends\n", "id 2 ends\n",
                                       "qp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\n",
                                       CUT(2, 1, 2, 2)};
    port_opens();
    for (enum step step = AT_ADDRESS; step <= AT_KEYS; step++) {
        struct leat_rmem_target *target = comes_to(step);
        leat_rmem_detach(target);
        TRACE_IS("mail\n");
        if (step == AT_KEYS) keys_come(target, 1);
        if (step == AT_ADDRESS) resolved(target);
        if (step == AT_ROUTE) routed(target);
        event_comes(verbs_of(target)->id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
        ready(CM);
        TRACE_IS("");
        mail_comes();
        TRACE_IS(back[step]);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
        memset(played.made, 0, sizeof played.made);
        played.made[IDS] = played.made[CQS] = played.made[MRS] = 1;
    }
    struct leat_rmem_target *target = comes_to(AT_KEYS); /* failed, and not told before it leaves */
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    ready(CM);
    leat_rmem_detach(target);
    TRACE_IS("mail\n");
    mail_comes();
    TRACE_IS(CUT(2, 1, 2, 2));
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERBS_TEST(verbs_port_opens),
        VERBS_TEST(verbs_port_that_cannot_be_opened_leaves_nothing),
        VERBS_TEST(verbs_takes_sources),
        VERBS_TEST(verbs_registers_the_pool_as_far_as_it_has_grown),
        VERBS_TEST(verbs_refuses_grants_by_name),
        VERBS_TEST(verbs_has_bounds),
        VERBS_TEST(verbs_attaches),
        VERBS_TEST(verbs_says_what_failed_as_it_attached),
        VERBS_TEST(verbs_fails_with_its_connection),
        VERBS_TEST(verbs_detaches_at_any_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
