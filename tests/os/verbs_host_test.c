/* SPDX-License-Identifier: Apache-2.0 */
/* The host's half of the verbs transport: arenas are registered, writers are let in, a fence leaves no queue pair. */
#include "tests/os/verbs_alone.h"

#include <sys/mman.h>

#define CM           101 /* the listener's channel */
#define QP(id)       "qp of " #id ", cq 1 1, requests 1 1, pieces 1 1\n"
#define SAID(id)     "accept " #id ": 24 bytes, resources 1, depth 1, retries 0 1\n"
#define WENT(id, qp) "disconnect " #id "\nqp " #qp " ends\nid " #id " ends\n"
#define REFUSED(id)  "reject " #id "\nid " #id " ends\n"

enum { ARENAS = 2 };
static struct os_rmem_arena arenas[ARENAS];
static struct rmem_header headers[ARENAS];
static uint8_t *memory;

/* Two arenas of three steps each, without memory yet. */
static void arenas_lie(void)
{
    memory = mmap(NULL, 6 * STEP, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(arenas, 0, sizeof arenas);
    memset(headers, 0, sizeof headers);
    for (unsigned i = 0; i < ARENAS; i++) {
        struct os_rmem_arena *arena = &arenas[i];
        arena->rmem = &rmem;
        arena->header = &headers[i];
        arena->port.base = memory + i * 3 * STEP;
        arena->port.limit_bytes = 3 * STEP;
        arena->port.number = LEAT_RMEM_ARENAS_MAX + i + 1;
        memset(arena->port.id, (int)(i + 1), LEAT_RMEM_ID_BYTES);
        snprintf(arena->port.writer, sizeof arena->port.writer, "writer%u", i);
        rmem.arenas[i] = arena;
        place(i ? "two" : "one", arena->port.base, 3 * STEP);
        place(i ? "keys-two" : "keys-one", headers[i].keys, sizeof headers[i].keys);
    }
}

static void step_grows(struct os_rmem_arena *arena)
{
    leat_os_verbs_step(arena, arena->port.grown_bytes / STEP);
    arena->port.grown_bytes += STEP;
}

static void opens(void)
{
    device_opens();
    arenas_lie();
    step_grows(&arenas[0]);
    step_grows(&arenas[1]);
    trace_begin();
}

static void closes(void)
{
    for (unsigned i = 0; i < ARENAS; i++)
        leat_os_verbs_release(&arenas[i]);
    device_closes();
    (void)munmap(memory, 6 * STEP);
}

static size_t grant_bytes(const struct os_rmem_arena *arena)
{
    uint8_t out[RMEM_SECTION_BYTES];
    return leat_os_verbs_grant(arena, out);
}

/* ---- registering ---- */

/* Goal: writers may write into steps and read the table of their keys, and neither more nor less. */
static void verbs_registers_each_step_and_the_table_once(void **state)
{
    (void)state;
    device_opens();
    arenas_lie();
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    leat_os_verbs_step(&arenas[0], 1); /* as if the first had been refused */
    TRACE_IS("");
    step_grows(&arenas[0]);
    TRACE_IS("register keys-one+0 2048 write remote-read\n"
             "register one+0 67108864 write remote-write\n");
    assert_int_equal(headers[0].keys[0], 2002);
    step_grows(&arenas[0]);
    TRACE_IS("register one+67108864 67108864 write remote-write\n");
    assert_int_equal(headers[0].keys[1], 2003);
    assert_int_equal(headers[0].keys[2], 0);
    assert_int_equal(grant_bytes(&arenas[0]), sizeof(struct verbs_grant));
    leat_os_verbs_release(&arenas[1]); /* which has none */
    leat_os_verbs_release(&arenas[0]);
    TRACE_IS("region 1 ends\nregion 2 ends\nregion 3 ends\n");
    assert_null(arenas[0].verbs);
    arenas[0].verbs = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *arenas[0].verbs);
    assert_non_null(arenas[0].verbs);
    step_grows(&arenas[0]);
    for (unsigned step = 3; step < LEAT_RMEM_STEPS_MAX; step++)
        leat_os_verbs_step(&arenas[0], step); /* only their addresses are told */
    closes();
}

/* Goal: where memory can't be registered the arena is not offered, and the log says why. */
static void verbs_offers_no_arena_that_is_not_registered(void **state)
{
    (void)state;
    static const char said[] = "log 0 segments of node writer0 will not come by RDMA: memory can't "
                               "be registered for RDMA: Input/output error\n";
    char expected[1000];
    device_opens();
    arenas_lie();
    plan(REGISTER, 0, EIO);
    leat_os_verbs_step(&arenas[0], 0);
    snprintf(expected, sizeof expected, "register keys-one+0 2048 write remote-read\n%s", said);
    TRACE_IS(expected);
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    leat_os_verbs_release(&arenas[0]);
    plan(REGISTER, 1, EIO);
    leat_os_verbs_step(&arenas[0], 0);
    snprintf(expected, sizeof expected,
             "register keys-one+0 2048 write remote-read\n"
             "register one+0 67108864 write remote-write\n%s",
             said);
    TRACE_IS(expected);
    assert_int_equal(headers[0].keys[0], 0);
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    leat_os_verbs_release(&arenas[0]);
    TRACE_IS("region 1 ends\n");
    leat_mem_fail_at(1);
    leat_os_verbs_step(&arenas[0], 0);
    assert_null(arenas[0].verbs);
    TRACE_IS("");
    rmem.in_memory = false;
    leat_os_verbs_step(&arenas[0], 0);
    rmem.in_memory = true;
    rmem.verbs->gone = true;
    leat_os_verbs_step(&arenas[0], 0);
    assert_null(arenas[0].verbs);
    TRACE_IS("");
    rmem.verbs->gone = false;
    step_grows(&arenas[0]);
    assert_int_equal(grant_bytes(&arenas[0]), sizeof(struct verbs_grant));
    rmem.verbs->gone = true;
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    rmem.verbs->gone = false;
    struct os_verbs *verbs = rmem.verbs;
    rmem.verbs = NULL; /* no device */
    trace_begin();
    leat_os_verbs_step(&arenas[1], 0);
    leat_os_verbs_revoke(&arenas[1]);
    assert_null(arenas[1].verbs);
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    TRACE_IS("");
    rmem.verbs = verbs;
    closes();
}

/* Goal: writes may come from the arenas of this host, each step with its own key, and from nothing beside these. */
static void verbs_knows_the_keys_of_its_own_arenas(void **state)
{
    (void)state;
    uint32_t key = 0;
    size_t bytes = 0;
    opens();
    step_grows(&arenas[1]);
    rmem.arenas[LEAT_RMEM_ARENAS_MAX - 1] = rmem.arenas[1];
    rmem.arenas[1] = NULL;
    memset(rmem.generation, 0x55, sizeof rmem.generation); /* what follows the table is no arena */
    static const struct {
        uint64_t offset, bytes;
        uint32_t key;
    } rows[] = {{0, STEP, 1002},        {STEP - 1, 1, 1002},     {STEP, 0, 0},
                {3 * STEP - 1, 0, 0},   {3 * STEP, STEP, 1004},  {3 * STEP + 7, STEP - 7, 1004},
                {4 * STEP, STEP, 1005}, {5 * STEP - 1, 1, 1005}, {5 * STEP, 0, 0},
                {6 * STEP, 0, 0},       {6 * STEP + 1, 0, 0}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool found = leat_os_verbs_arena_key(&rmem, memory + rows[i].offset, &key, &bytes);
        assert_int_equal(found, rows[i].bytes > 0);
        if (found) assert_int_equal(key, rows[i].key);
        if (found) assert_int_equal(bytes, rows[i].bytes);
    }
    assert_false(leat_os_verbs_arena_key(&rmem, memory - 1, &key, &bytes));
    struct os_verbs_arena *registered = arenas[0].verbs;
    arenas[0].verbs = NULL;
    assert_false(leat_os_verbs_arena_key(&rmem, memory, &key, &bytes));
    arenas[0].verbs = registered;
    assert_int_equal(pthread_mutex_trylock(&rmem.lock), 0);
    (void)pthread_mutex_unlock(&rmem.lock);
    closes();
}

/* ---- connections ---- */

static struct rdma_cm_id *asks(const void *hello, size_t bytes)
{
    struct rdma_cm_id *id = id_make(rmem.verbs->listener->channel, rmem.verbs->listener->context);
    id->verbs = &played.context;
    event_comes(id, RDMA_CM_EVENT_CONNECT_REQUEST, hello, bytes);
    return id;
}

static struct verbs_hello hello_of(const struct os_rmem_arena *arena)
{
    struct verbs_hello hello = {.magic = VERBS_MAGIC, .number = arena->port.number};
    memcpy(hello.id, arena->port.id, sizeof hello.id);
    return hello;
}

static struct rdma_cm_id *connects(const struct os_rmem_arena *arena)
{
    struct verbs_hello hello = hello_of(arena);
    struct rdma_cm_id *id = asks(&hello, sizeof hello);
    ready(CM);
    assert_non_null(id->qp);
    event_comes(id, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    ready(CM);
    trace_begin();
    return id;
}

/* Goal: who asks for an arena by its number and its id learns where it lies; the connection stays until it ends. */
static void verbs_lets_a_writer_in(void **state)
{
    (void)state;
    struct verbs_welcome welcome;
    opens();
    struct verbs_hello hello = hello_of(&arenas[1]);
    uint8_t longer[PRIVATE_MAX] = {0}; /* a connection manager may say more bytes than were sent */
    memcpy(longer, &hello, sizeof hello);
    struct rdma_cm_id *id = asks(longer, sizeof longer);
    ready(CM);
    TRACE_IS(QP(2) SAID(2));
    memcpy(&welcome, played.told, sizeof welcome);
    assert_int_equal(welcome.base, (uintptr_t)arenas[1].port.base);
    assert_int_equal(welcome.table, (uintptr_t)headers[1].keys);
    assert_int_equal(welcome.table_key, 2003);
    assert_int_equal(welcome.magic, VERBS_MAGIC);
    event_comes(id, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    event_comes(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL, 0);
    event_comes(rmem.verbs->listener, RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
    ready(CM);
    TRACE_IS("");
    assert_non_null(id->qp);
    event_comes(id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    ready(CM);
    TRACE_IS(WENT(2, 1));
    assert_true(leat_list_empty(&rmem.verbs->conns));
    id = connects(&arenas[0]);
    event_comes(id, RDMA_CM_EVENT_CONNECT_ERROR, NULL, 0);
    ready(CM);
    TRACE_IS(WENT(3, 2));
    closes();
}

static void refuses(struct verbs_hello hello, size_t bytes, const char *expected)
{
    (void)asks(&hello, bytes);
    ready(CM);
    TRACE_IS(expected);
    assert_true(leat_list_empty(&rmem.verbs->conns));
}

/* Goal: a stranger, and a writer whose arena is gone, revoked or not registered, gets no queue pair. */
static void verbs_refuses_all_others(void **state)
{
    (void)state;
    opens();
    const struct verbs_hello good = hello_of(&arenas[0]);
    struct verbs_hello hello = good;
    hello.magic++;
    refuses(hello, sizeof hello, REFUSED(2));
    refuses(good, sizeof good - 1, REFUSED(3));
    hello = good;
    hello.number++;
    refuses(hello, sizeof hello, REFUSED(4));
    hello = good;
    hello.number = 0;
    refuses(hello, sizeof hello, REFUSED(5));
    hello = good;
    hello.id[LEAT_RMEM_ID_BYTES - 1]++;
    refuses(hello, sizeof hello, REFUSED(6));
    arenas[0].port.revoked = true;
    refuses(good, sizeof good, REFUSED(7));
    arenas[0].port.revoked = false;
    arenas[0].port.grown_bytes = 0;
    refuses(good, sizeof good, REFUSED(8));
    arenas[0].port.grown_bytes = STEP;
    arenas[0].verbs->bad = true;
    refuses(good, sizeof good, REFUSED(9));
    arenas[0].verbs->bad = false;
    struct os_verbs_arena *registered = arenas[0].verbs;
    arenas[0].verbs = NULL;
    refuses(good, sizeof good, REFUSED(10));
    arenas[0].verbs = registered;
    struct rdma_cm_id *id = asks(&good, sizeof good);
    id->verbs = &played.other; /* it came in by another device */
    ready(CM);
    TRACE_IS(REFUSED(11));
    arenas[0].port.grown_bytes = 1;
    plan(QP, 0, ENOMEM);
    refuses(good, sizeof good, QP(12) REFUSED(12));
    plan(ACCEPT, 0, EIO);
    refuses(good, sizeof good, QP(13) SAID(13) "qp 1 ends\n" REFUSED(13));
    leat_mem_fail_at(1);
    refuses(good, sizeof good, REFUSED(14));
    closes();
}

/* ---- fences ---- */

/* Goal: when a revoke returns, no connection to the arena is left, and each other arena's is. */
static void verbs_revoke_ends_all_connections_of_the_arena(void **state)
{
    (void)state;
    opens();
    (void)connects(&arenas[0]);
    struct rdma_cm_id *other = connects(&arenas[1]);
    (void)connects(&arenas[0]);
    leat_os_verbs_revoke(&arenas[0]);
    TRACE_IS(WENT(2, 1) WENT(4, 3));
    assert_non_null(other->qp);
    leat_os_verbs_revoke(&arenas[0]);
    TRACE_IS("");
    leat_os_verbs_revoke(&arenas[1]);
    TRACE_IS(WENT(3, 2));
    closes();
}

/* Goal: a device that disappears takes its connections along, and is offered no more. It is told once. */
static void verbs_ends_with_its_device(void **state)
{
    (void)state;
    opens();
    struct rdma_cm_id *one = connects(&arenas[0]);
    (void)connects(&arenas[1]);
    event_comes(one, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, 0);
    event_comes(rmem.verbs->listener, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, 0);
    ready(CM);
    TRACE_IS(
        "log 0 the RDMA device has disappeared: replication goes on by another transport\n" WENT(
            2, 1) WENT(3, 2));
    assert_true(rmem.verbs->gone);
    assert_int_equal(rmem.host.kinds, 1u << LEAT_RMEM_TCP);
    assert_int_equal(grant_bytes(&arenas[0]), 0);
    closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERBS_TEST(verbs_registers_each_step_and_the_table_once),
        VERBS_TEST(verbs_offers_no_arena_that_is_not_registered),
        VERBS_TEST(verbs_knows_the_keys_of_its_own_arenas),
        VERBS_TEST(verbs_lets_a_writer_in),
        VERBS_TEST(verbs_refuses_all_others),
        VERBS_TEST(verbs_revoke_ends_all_connections_of_the_arena),
        VERBS_TEST(verbs_ends_with_its_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
