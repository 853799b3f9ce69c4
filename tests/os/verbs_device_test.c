/* SPDX-License-Identifier: Apache-2.0 */
/* The device of the verbs transport: which is found, what is made with it, and what goes when one step fails. */
#include "tests/os/verbs_alone.h"

#define FOUND  "access /dev/infiniband/rdma_cm\nchannel\nunblock 101\nnames of host\n"
#define TRIED  "id of 101\nbind 1 10.0.0.1:0\n"
#define HEARD  TRIED "listen 1 64\nnames end\n"
#define CLOSED "id 1 ends\nchannel 101 ends\n"

static void opens_fails(const char *text)
{
    memset(&error, 0, sizeof error);
    leat_os_verbs_open(&rmem, "host", &error);
    assert_null(rmem.verbs);
    assert_int_equal(error.code, LEAT_E_UNSUPPORTED);
    assert_string_equal(error.text, text);
    nothing_is_left();
    memset(played.made, 0, sizeof played.made);
    played.watch_count = 0;
}

/* Says how writers reach this host. */
static void grant_is(uint16_t family, const char *address, uint32_t scope)
{
    static struct os_verbs_arena registered;
    struct os_rmem_arena arena = {.rmem = &rmem, .verbs = &registered};
    uint8_t out[RMEM_SECTION_BYTES], bytes[16] = {0};
    struct verbs_grant grant;
    assert_int_equal(leat_os_verbs_grant(&arena, out), sizeof grant);
    memcpy(&grant, out, sizeof grant);
    assert_int_equal(grant.family, family);
    assert_int_equal(grant.port[0] << 8 | grant.port[1], 4791);
    assert_int_equal(grant.scope, scope);
    assert_int_equal(inet_pton(family, address, bytes), 1);
    assert_memory_equal(grant.address, bytes, sizeof bytes);
}

/* Goal: the host's own address is listened on, at a port that is free; what was opened is closed in an order that the
 * device allows. */
static void verbs_opens_on_an_address_of_the_host(void **state)
{
    (void)state;
    played.own = "10.0.0.1";
    named("10.0.0.1");
    named("10.0.0.1");
    faced("10.0.0.1");
    played.flags = 0;
    leat_os_verbs_open(&rmem, "host", &error);
    assert_non_null(rmem.verbs);
    assert_int_equal(error.code, LEAT_OK);
    TRACE_IS(FOUND HEARD "pd\ncq of 16\nwatch 101\n");
    grant_is(AF_INET, "10.0.0.1", 0);
    leat_os_verbs_actor_close(&rmem, &store); /* another's */
    TRACE_IS("");
    static struct {
        struct os_verbs verbs;
        const void *after;
    } longer;
    struct os_verbs *verbs = rmem.verbs;
    longer.after = &longer; /* what follows the ports of cores is none */
    rmem.verbs = &longer.verbs;
    store.number = LEAT_CORES_MAX;
    leat_os_verbs_actor_close(&rmem, &store);
    assert_ptr_equal(longer.after, &longer);
    rmem.verbs = verbs;
    leat_os_verbs_actor_close(&rmem, &actor);
    TRACE_IS("watch 101 ends\n");
    rmem.verbs->writers[0] =
        (struct os_verbs_writer *)&store; /* what follows the pool's table is no region */
    leat_os_verbs_close(&rmem);
    TRACE_IS("cq 1 ends\npd ends\n" CLOSED);
    leat_os_verbs_close(&rmem); /* there is none */
    leat_os_verbs_actor_close(&rmem, &actor);
    TRACE_IS("");
    nothing_is_left();
}

static void verbs_opens_on_an_ipv6_address(void **state)
{
    (void)state;
    played.own = "fe80::1:2:3:4";
    named(played.own);
    leat_os_verbs_open(&rmem, "host", &error);
    TRACE_IS(FOUND "id of 101\nbind 1 [fe80::1:2:3:4%9]:0\nlisten 1 64\nnames end\n"
                   "pd\ncq of 16\nwatch 101\n");
    grant_is(AF_INET6, "fe80::1:2:3:4", 9);
    assert_null(rmem.verbs->sources[0].base); /* what follows the grant */
    device_closes();
}

/* Goal: an address that no RDMA device has is passed over, then those of all interfaces are tried. */
static void verbs_looks_for_an_address_that_a_device_has(void **state)
{
    (void)state;
    static const char passed[] =
        "id of 101\nbind 1 10.0.0.2:0\nid 1 ends\n"
        "id of 101\nbind 2 [fe80::2%9]:0\nid 2 ends\nnames end\ninterfaces\n"
        "id of 101\nbind 3 10.0.0.3:0\nid 3 ends\n";
    char expected[1000];
    named("no address");
    named("10.0.0.2");
    named("fe80::2");
    faced(NULL);
    faced("10.0.0.3");
    faced("no address");
    faced("10.0.0.4");
    faced("10.0.0.4");
    opens_fails("no address of this machine belongs to an RDMA device (see rdma link)");
    snprintf(expected, sizeof expected,
             FOUND
             "%sid of 101\nbind 4 10.0.0.4:0\nid 4 ends\nid of 101\nbind 5 10.0.0.4:0\nid 5 ends\n"
             "interfaces end\nchannel 101 ends\n",
             passed);
    TRACE_IS(expected);
    played.own = "10.0.0.4";
    leat_os_verbs_open(&rmem, "host", &error);
    snprintf(expected, sizeof expected,
             FOUND "%sid of 101\nbind 4 10.0.0.4:0\nlisten 4 64\ninterfaces end\n"
                   "pd\ncq of 16\nwatch 101\n",
             passed);
    TRACE_IS(expected);
    device_closes();
    played.watch_count = 0;
    memset(played.made, 0, sizeof played.made);
    plan(NAMES, 0, EIO); /* a name of nothing */
    leat_os_verbs_open(&rmem, "host", &error);
    TRACE_IS(FOUND "interfaces\nid of 101\nbind 1 10.0.0.3:0\nid 1 ends\n"
                   "id of 101\nbind 2 10.0.0.4:0\nlisten 2 64\ninterfaces end\n"
                   "pd\ncq of 16\nwatch 101\n");
    device_closes();
}

/* Goal: a call that fails costs that address alone. */
static void verbs_tries_the_next_address_after_a_failure(void **state)
{
    (void)state;
    static const struct {
        enum call call;
        const char *trace;
    } rows[] = {
        {ID, "id of 101\nid of 101\nbind 1 10.0.0.1:0\nlisten 1 64\n"},
        {BIND, TRIED "id 1 ends\nid of 101\nbind 2 10.0.0.1:0\nlisten 2 64\n"},
        {LISTEN, TRIED "listen 1 64\nid 1 ends\nid of 101\nbind 2 10.0.0.1:0\nlisten 2 64\n"}};
    played.own = "10.0.0.1";
    named("10.0.0.1");
    named("10.0.0.1");
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[1000];
        plan(rows[i].call, 0, EIO);
        leat_os_verbs_open(&rmem, "host", &error);
        assert_non_null(rmem.verbs);
        snprintf(expected, sizeof expected, FOUND "%snames end\npd\ncq of 16\nwatch 101\n",
                 rows[i].trace);
        TRACE_IS(expected);
        device_closes();
        played.watch_count = 0;
        memset(played.made, 0, sizeof played.made);
    }
    plan(FACES, 0, EIO);
    played.own = NULL;
    opens_fails("no address of this machine belongs to an RDMA device (see rdma link)");
}

/* Goal: without a device that works there is no transport, the sentence names the cause, and nothing is left open. */
static void verbs_is_off_and_says_why(void **state)
{
    (void)state;
    static const char usable[] = "the RDMA device played is not usable: Input/output error",
                      none[] = "no RDMA: Input/output error";
    static const struct {
        enum call call;
        const char *text, *trace;
    } rows[] = {
        {ACCESS, "no RDMA device (/dev/infiniband/rdma_cm: Input/output error)",
         "access /dev/infiniband/rdma_cm\n"},
        {CHANNEL, none, "access /dev/infiniband/rdma_cm\nchannel\n"},
        {FLAGS, none, "access /dev/infiniband/rdma_cm\nchannel\nchannel 101 ends\n"},
        {UNBLOCK, none, "access /dev/infiniband/rdma_cm\nchannel\nunblock 101\nchannel 101 ends\n"},
        {PD, usable, FOUND HEARD "pd\n" CLOSED},
        {CQ, usable, FOUND HEARD "pd\ncq of 16\npd ends\n" CLOSED},
        {WATCH, usable, FOUND HEARD "pd\ncq of 16\nwatch 101\ncq 1 ends\npd ends\n" CLOSED}};
    played.own = "10.0.0.1";
    named(played.own);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plan(rows[i].call, 0, EIO);
        opens_fails(rows[i].text);
        TRACE_IS(rows[i].trace);
    }
    rmem.in_memory = false;
    opens_fails("RDMA needs memory files in /dev/shm: run leatd as a system account");
    TRACE_IS(FOUND HEARD "pd\ncq of 16\nwatch 101\nwatch 101 ends\ncq 1 ends\npd ends\n" CLOSED);
    leat_mem_fail_at(1);
    leat_os_verbs_open(&rmem, "host", &error);
    assert_null(rmem.verbs);
    assert_int_equal(error.code, LEAT_E_NO_MEMORY);
    assert_string_equal(error.text, "no memory for RDMA");
    TRACE_IS("");
}

static void verbs_says_why_memory_is_not_registered(void **state)
{
    (void)state;
    leat_os_verbs_why(ENOMEM, &error);
    assert_int_equal(error.code, LEAT_E_NO_MEMORY);
    assert_string_equal(error.text,
                        "the limit of locked memory is too low to register 64 MiB for RDMA: raise "
                        "it (ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit file)");
    leat_os_verbs_why(EIO, &error);
    assert_int_equal(error.code, LEAT_E_UNSUPPORTED);
    assert_string_equal(error.text, "memory can't be registered for RDMA: Input/output error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERBS_TEST(verbs_opens_on_an_address_of_the_host),
        VERBS_TEST(verbs_opens_on_an_ipv6_address),
        VERBS_TEST(verbs_looks_for_an_address_that_a_device_has),
        VERBS_TEST(verbs_tries_the_next_address_after_a_failure),
        VERBS_TEST(verbs_is_off_and_says_why),
        VERBS_TEST(verbs_says_why_memory_is_not_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
