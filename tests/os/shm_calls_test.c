/* SPDX-License-Identifier: Apache-2.0 */
/* The writer port over shared memory: which grants it takes, mapping, and when a write is done. Every call to the
 * system and to the rest of os/ is compared, in order, and every callback. */
#include "tests/os/shm_alone.h"

#define LOOKED "process 99 0\nidentity 99\nopen " PATH "\nstat 10\nmap 8192 10\nreserve 3\n"
#define STEPS  "stat 10\nstep 10 0\ntouch 0 0\nstep 10 1\ntouch 1 0\n"
#define LEFT   "unmap arena 201326592\nunmap header 8192\nclose 10\nclose 7\n"

static struct leat_rmem_target *attached(const char *user)
{
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach(user, &target), LEAT_OK);
    assert_false(target->attached);
    job_ends();
    assert_true(target->attached);
    trace_begin();
    return target;
}

/* Until nothing of it is left. */
static void leaves(struct leat_rmem_target *target)
{
    leat_rmem_detach(target);
    while (played.mail_count > 0)
        mail_comes();
    while (played.job_count > 0)
        job_ends();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    trace_begin();
}

/* ---- grants ---- */

/* Goal: nothing in a grant is trusted, above all not its path; what is refused leaves nothing. */
static void shm_refuses_grants_by_name(void **state)
{
    (void)state;
    static const char unread[] = "the grant can't be read",
                      no_file[] = "the grant names no arena's file",
                      elsewhere[] = "shm reaches only backups on the same host: this one is on "
                                    "another, or was before a reboot";
    static const struct {
        const char *path;
        int said_more;
        leat_err rc;
        const char *text;
    } rows[] = {{PATH, 1, LEAT_E_INVALID, unread},
                {PATH, -1, LEAT_E_INVALID, unread},
                {"", 0, LEAT_E_INVALID, no_file},
                {"leat-rmem-x", 0, LEAT_E_INVALID, no_file},
                {"x/leat-rmem-x", 0, LEAT_E_INVALID, no_file},
                {"/dev/leat-rmem", 0, LEAT_E_INVALID, no_file},
                {"/dev/leat-rmemx", 0, LEAT_E_INVALID, no_file},
                {"/leat-rmem-x/watchdog", 0, LEAT_E_INVALID, no_file},
                {"/dev/xleat-rmem-", 0, LEAT_E_INVALID, no_file}};
    struct leat_rmem_target *target = NULL;
    port_opens();
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(path, sizeof path, "%s", rows[i].path);
        section.path_bytes = (uint32_t)((int)strlen(path) + rows[i].said_more);
        assert_int_equal(attach("a", &target), rows[i].rc);
        assert_string_equal(error.text, rows[i].text);
        assert_int_equal(played.job_count, 0);
    }
    arena_lies();
    for (unsigned i = 0; i < 3; i++) {
        memcpy(rmem.boot_id, section.boot_id, BOOT_ID_BYTES);
        if (i == 0) rmem.boot_id[0]++;
        if (i == 1) rmem.boot_id[BOOT_ID_BYTES - 1]++;
        if (i == 2) rmem.boot_id[0] = section.boot_id[0] = 0; /* it is not known which this is */
        assert_int_equal(attach("a", &target), LEAT_E_UNSUPPORTED);
        assert_string_equal(error.text, elsewhere);
    }
    arena_lies();
    struct leat_rmem_grant grant = {0};
#define ATTACH() port->attach(port->ctx, 0, &grant, &handler, NULL, &target, &error)
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_int_equal(ATTACH(), LEAT_E_UNSUPPORTED);
    assert_string_equal(error.text, "the backup does not offer shm");
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_SHM, &section, sizeof section - 1));
    assert_int_equal(ATTACH(), LEAT_E_INVALID);
    assert_string_equal(error.text, unread);
    memset(&grant, 0, sizeof grant);
    uint8_t body[sizeof section + sizeof PATH - 1];
    memcpy(body, &section, sizeof section);
    memcpy(body + sizeof section, PATH, sizeof PATH - 1);
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_SHM, body, sizeof body));
    assert_int_equal(ATTACH(), LEAT_E_INVALID); /* no address */
    assert_string_equal(error.text, unread);
    leat_mem_fail_at(1);
    assert_int_equal(attach("a", &target), LEAT_E_NO_MEMORY);
    assert_string_equal(error.text, "no memory to attach an arena");
    TRACE_IS("");
    assert_null(target);
    port_closes();
    TRACE_IS("");
}

/* Goal: a section that is too short is refused before any byte behind the grant is read. */
static void shm_reads_nothing_behind_a_grant(void **state)
{
    (void)state;
    enum { PAGE = 4096 };
    static _Alignas(PAGE) uint8_t pages[2 * PAGE];
    static const uint8_t filler[213];
    struct leat_rmem_grant *grant = (void *)(pages + PAGE - sizeof *grant);
    struct leat_rmem_target *target = NULL;
    port_opens();
    assert_true(leat_rmem_grant_add(grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_true(leat_rmem_grant_add(grant, LEAT_RMEM_RPC, pages, RMEM_SECTION_BYTES));
    assert_true(leat_rmem_grant_add(grant, LEAT_RMEM_TCP, filler, sizeof filler));
    assert_true(leat_rmem_grant_add(grant, LEAT_RMEM_SHM, &section, 4));
    assert_int_equal(grant->bytes, LEAT_RMEM_GRANT_BYTES_MAX);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    leat_err rc = port->attach(port->ctx, 0, grant, &handler, NULL, &target, &error);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(rc, LEAT_E_INVALID);
    assert_string_equal(error.text, "the grant can't be read");
    port_closes();
    TRACE_IS("");
}

/* Goal: a grant's path may be as long as there is room for, and is asked for by all of it. */
static void shm_takes_the_longest_path(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    port_opens();
    memset(path, 'x', RMEM_SHM_PATH_BYTES_MAX);
    memcpy(path, "/leat-rmem-", 11);
    path[RMEM_SHM_PATH_BYTES_MAX] = 0;
    section.path_bytes = RMEM_SHM_PATH_BYTES_MAX;
    assert_int_equal(attach("a", &target), LEAT_OK);
    plan(OPEN, 0, ENOENT);
    job_ends();
    char expected[1000];
    snprintf(expected, sizeof expected,
             "job\nprocess 99 0\nidentity 99\nopen %s\nmail\na failed: %d can't open %.120s: %s "
             "(another account, or another view of the files)\n",
             path, LEAT_E_NOT_FOUND, path, strerror(ENOENT));
    mail_comes();
    TRACE_IS(expected);
    leaves(target);
    struct os_rmem_arena *arena = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *arena);
    uint8_t out[RMEM_SECTION_BYTES] = {0};
    assert_non_null(arena);
    arena->rmem = &rmem;
    rmem.process_started = 11;
    rmem.pid_space = 22;
    memcpy(arena->path, path, RMEM_SHM_PATH_BYTES_MAX);
    assert_int_equal(leat_os_shm_grant(arena, out), RMEM_SECTION_BYTES);
    section.process_started = 11;
    section.pid_space = 22;
    section.pid = 4242;
    assert_memory_equal(out, &section, sizeof section);
    assert_memory_equal(out + sizeof section, path, RMEM_SHM_PATH_BYTES_MAX);
    arena->path[RMEM_SHM_PATH_BYTES_MAX] = 'x';
    assert_int_equal(leat_os_shm_grant(arena, out), 0);
    arena->path[3] = 0;
    assert_int_equal(leat_os_shm_grant(arena, out), sizeof section + 3);
    leat_mem_free(arena);
    port_closes();
}

/* Goal: a port has a place among the actor's, and so many targets as it may. */
static void shm_opens_and_has_bounds(void **state)
{
    (void)state;
    static struct leat_rmem_target *targets[LEAT_RMEM_TARGETS_MAX + 1];
    struct leat_rmem other;
    actor.env.rmems[0] = &other;
    leat_mem_fail_at(1);
    assert_int_equal(leat_os_shm_open(&rmem, &actor), LEAT_E_NO_MEMORY);
    assert_null(rmem.shm[0]);
    assert_int_equal(leat_os_shm_open(&rmem, &actor), LEAT_OK);
    assert_non_null(actor.env.rmems[1]);
    leat_os_shm_close(&rmem, &actor);
    assert_null(rmem.shm[0]);
    leat_os_shm_close(&rmem, &actor); /* there is none */
    static uint8_t no_port[4096];
    rmem.verbs = (struct os_verbs *)no_port; /* what lies behind the ports of cores is none */
    actor.number = LEAT_CORES_MAX;
    leat_os_shm_close(&rmem, &actor);
    rmem.verbs = NULL;
    actor.env.rmems[0] = NULL;
    port_opens();
    assert_int_equal(port->kind, LEAT_RMEM_SHM);
    assert_null(port->source);
    leaves(attached("a")); /* who has left has no place */
    for (unsigned i = 0; i < LEAT_RMEM_TARGETS_MAX; i++) {
        assert_int_equal(attach("a", &targets[i]), LEAT_OK);
        assert_ptr_equal(targets[i]->port, port);
        assert_int_equal(targets[i]->kind, LEAT_RMEM_SHM);
        played.job_count = 0;
    }
    trace_begin();
    assert_int_equal(attach("a", &targets[LEAT_RMEM_TARGETS_MAX]), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "1024 targets are attached already");
    TRACE_IS("");
    port_closes();
    TRACE_IS("");
}

/* ---- mapping ---- */

/* Goal: an arena is mapped as far as its host has grown it, once for all targets, and its process is watched. */
static void shm_maps_an_arena_once(void **state)
{
    (void)state;
    struct leat_rmem_target *one = NULL, *two = NULL, *three = NULL;
    port_opens();
    assert_int_equal(attach("one", &one), LEAT_OK);
    TRACE_IS("job\n");
    struct os_job *job = job_runs();
    TRACE_IS(LOOKED "lock 10\n" STEPS);
    assert_false(one->attached);
    job->mail.deliver(NULL, &job->mail);
    TRACE_IS("watch 7\none attached\n");
    assert_int_equal(attach("two", &two), LEAT_OK);
    job_ends();
    TRACE_IS("job\nprocess 99 0\nidentity 99\nlock 10\nstat 10\nwatch 7\ntwo attached\n");
    address.limit_bytes += STEP; /* another's is as long as another says */
    assert_int_equal(attach("three", &three), LEAT_OK);
    job_ends();
    TRACE_IS("job\nprocess 99 0\nidentity 99\nmail\n");
    mail_comes();
    char expected[200];
    snprintf(expected, sizeof expected, "three failed: %d the grant lies about the arena's size\n",
             LEAT_E_INVALID);
    TRACE_IS(expected);
    leat_rmem_detach(three);
    mail_comes();
    job_ends();
    TRACE_IS("mail\njob\nclose 7\n");
    leat_rmem_detach(one);
    mail_comes();
    TRACE_IS("mail\nwatch ends\njob\n");
    job_ends();
    TRACE_IS("close 7\n");
    leat_rmem_detach(two);
    mail_comes();
    job_ends();
    TRACE_IS("mail\nwatch ends\njob\n" LEFT);
    port_closes();
    TRACE_IS("");
}

/* Goal: an arena with another id is mapped by itself, whether the first or the last byte of its id differs. */
static void shm_maps_each_arena_by_itself(void **state)
{
    (void)state;
    port_opens();
    (void)attached("one");
    for (unsigned i = 0; i < 2; i++) {
        struct leat_rmem_target *other = NULL;
        address.id[i * (LEAT_RMEM_ID_BYTES - 1)] += 0x40;
        memcpy(played.page.header.pool.pool_id, address.id, LEAT_RMEM_ID_BYTES);
        assert_int_equal(attach("other", &other), LEAT_OK);
        trace_begin();
        job_ends();
        assert_non_null(strstr(trace_text, "open " PATH "\n"));
    }
    trace_begin();
    port_closes(); /* which lets go of all */
    TRACE_IS("watch ends\n" LEFT "watch ends\nunmap arena 201326592\nunmap header 8192\n"
             "close 11\nclose 7\nwatch ends\nunmap arena 201326592\nunmap header 8192\n"
             "close 12\nclose 7\n");
}

/* Attaches, which fails by that; what was mapped is given back when the target leaves. */
static void refused_is(const char *calls, const char *back, leat_err rc, const char *text)
{
    struct leat_rmem_target *target = NULL;
    char expected[1000];
    played.opened = 0;
    trace_begin();
    assert_int_equal(attach("a", &target), LEAT_OK);
    job_ends();
    snprintf(expected, sizeof expected, "job\nprocess 99 0\nidentity 99\nopen " PATH "\n%smail\n",
             calls);
    TRACE_IS(expected);
    assert_false(target->failed); /* told later */
    mail_comes();
    snprintf(expected, sizeof expected, "a failed: %d %s\n", rc, text);
    TRACE_IS(expected);
    leat_rmem_detach(target);
    mail_comes();
    job_ends();
    snprintf(expected, sizeof expected, "mail\njob\n%sclose 7\n", back);
    TRACE_IS(expected);
    assert_true(leat_list_empty(&rmem.maps));
    arena_lies();
}

/* Goal: a file that is no arena, or is another's, another one or a newer one, is not mapped, and told why. */
static void shm_maps_no_file_that_is_not_the_arena(void **state)
{
    (void)state;
    static const char other[] = PATH " belongs to another account", none[] = PATH " is no arena",
                      another[] = PATH " is another arena now", cant[] = "can't map the arena",
                      back[] = "unmap header 8192\nclose 10\n";
    char text[200];
    struct rmem_header *header = &played.page.header;
    port_opens();
    plan(STAT, 0, EIO);
    refused_is("stat 10\nclose 10\n", "", LEAT_E_NOT_FOUND, other);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 0) played.st.st_mode = S_IFIFO;
        if (i == 1) played.st.st_uid++;
        if (i == 2) played.st.st_size = POOL_DATA_OFFSET - 1;
        refused_is("stat 10\nclose 10\n", "", LEAT_E_NOT_FOUND, other);
    }
    plan(MAP, 0, ENOMEM);
    refused_is("stat 10\nmap 8192 10\nclose 10\n", "", LEAT_E_NO_MEMORY, cant);
    for (unsigned i = 0; i < 5; i++) {
        char calls[200];
        if (i == 0) header->pool.magic++;
        if (i == 1) header->magic++;
        if (i == 2) header->pool.pool_id[0]++;
        if (i == 3) header->pool.pool_id[LEAT_RMEM_ID_BYTES - 1]++;
        if (i == 4) header->limit_bytes += STEP;
        snprintf(calls, sizeof calls, "stat 10\nmap 8192 10\n%s", back);
        refused_is(calls, "", LEAT_E_NOT_FOUND, i < 2 ? none : another);
    }
    header->version++;
    snprintf(text, sizeof text, PATH " is of format %d, this is %d", RMEM_VERSION + 1,
             RMEM_VERSION);
    refused_is("stat 10\nmap 8192 10\nunmap header 8192\nclose 10\n", "", LEAT_E_UNSUPPORTED, text);
    plan(RESERVE, 0, ENOMEM);
    refused_is("stat 10\nmap 8192 10\nreserve 3\nunmap header 8192\nclose 10\n", "",
               LEAT_E_NO_MEMORY, cant);
    port_closes();
}

/* Goal: an arena whose host has ended, or has revoked it, or whose file was cut, takes no write. */
static void shm_attaches_to_no_arena_that_is_over(void **state)
{
    (void)state;
    static const char had[] = "stat 10\nmap 8192 10\nreserve 3\nlock 10\n",
                      back[] = "unmap arena 201326592\nunmap header 8192\nclose 10\n";
    char calls[300], text[200];
    port_opens();
    played.ended = true;
    snprintf(calls, sizeof calls, "%sunlock 10\n", had);
    refused_is(calls, back, LEAT_E_CLOSED, "the process that made " PATH " has ended");
    played.ended = false;
    played.page.header.control = RMEM_REVOKED;
    refused_is(had, back, LEAT_E_CANCELLED, "the backup has revoked the arena");
    for (unsigned i = 0; i < 3; i++) {
        if (i == 0) played.st.st_size--; /* of the second step */
        if (i == 1) played.st.st_size = POOL_DATA_OFFSET;
        if (i == 2) plan(STAT, 1, EIO);
        snprintf(calls, sizeof calls, "%sstat 10\n%s", had, i == 0 ? "step 10 0\ntouch 0 0\n" : "");
        snprintf(text, sizeof text, "can't map " PATH ": %s",
                 i < 2 ? "the file has been cut" : leat_err_text(LEAT_E_DISK));
        refused_is(calls, back, i < 2 ? LEAT_E_DAMAGED : LEAT_E_DISK, text);
    }
    plan(STEP_MAP, 1, ENOMEM);
    snprintf(calls, sizeof calls, "%sstat 10\nstep 10 0\ntouch 0 0\nstep 10 1\n", had);
    snprintf(text, sizeof text, "can't map " PATH ": %s", leat_err_text(LEAT_E_NO_MEMORY));
    refused_is(calls, back, LEAT_E_NO_MEMORY, text);
    port_closes();
}

/* Goal: no memory for a map is told; a host that claims more steps than it may is believed as far as it may. */
static void shm_maps_within_the_limit(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    char expected[300];
    port_opens();
    assert_int_equal(attach("a", &target), LEAT_OK);
    leat_mem_fail_at(1);
    job_ends();
    mail_comes();
    snprintf(expected, sizeof expected,
             "job\nprocess 99 0\nidentity 99\nmail\na failed: %d no memory to map an arena\n",
             LEAT_E_NO_MEMORY);
    TRACE_IS(expected);
    leaves(target);
    played.page.header.pool.steps = 9;
    played.st.st_size = (off_t)(POOL_DATA_OFFSET + 9 * STEP);
    assert_int_equal(attach("a", &target), LEAT_OK);
    trace_begin();
    job_ends();
    TRACE_IS(LOOKED "lock 10\n" STEPS "step 10 2\ntouch 2 0\nwatch 7\na attached\n");
    leaves(target);
    port_closes();
}

/* Goal: a process is watched only if it is the process of the grant. */
static void shm_watches_the_process_of_the_grant(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    port_opens();
    for (unsigned i = 0; i < 3; i++) {
        if (i == 0) plan(PROCESS, 0, ENOSYS);
        if (i == 1) played.started++;
        if (i == 2) played.space++;
        assert_int_equal(attach("a", &target), LEAT_OK);
        trace_begin();
        played.opened = 0;
        job_ends();
        assert_null(strstr(trace_text, "watch"));
        assert_int_equal(strstr(trace_text, "close 7\n") != NULL, i > 0);
        assert_int_equal(strstr(trace_text, "identity") != NULL, i > 0);
        leat_rmem_detach(target);
        mail_comes();
        trace_begin();
        job_ends();
        TRACE_IS("unmap arena 201326592\nunmap header 8192\nclose 10\n");
        arena_lies();
    }
    plan(WATCH, 0, ENOMEM); /* the links tell of its death then */
    leaves(attached("a"));
    port_closes();
}

/* Goal: the number 0 is a file's and a process's as others are. */
static void shm_takes_descriptor_0(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    port_opens();
    played.process = 0;
    played.opened = 0u - 10;
    assert_int_equal(attach("a", &target), LEAT_OK);
    job_ends();
    TRACE_IS("job\nprocess 99 0\nidentity 99\nopen " PATH "\nstat 0\nmap 8192 0\nreserve 3\n"
             "lock 0\nstat 0\nstep 0 0\ntouch 0 0\nstep 0 1\ntouch 1 0\nwatch 0\na attached\n");
    leat_rmem_detach(target);
    mail_comes();
    job_ends();
    TRACE_IS("mail\nwatch ends\njob\nunmap arena 201326592\nunmap header 8192\nclose 0\nclose 0\n");
    port_closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHM_TEST(shm_refuses_grants_by_name),
        SHM_TEST(shm_reads_nothing_behind_a_grant),
        SHM_TEST(shm_takes_the_longest_path),
        SHM_TEST(shm_opens_and_has_bounds),
        SHM_TEST(shm_maps_an_arena_once),
        SHM_TEST(shm_maps_each_arena_by_itself),
        SHM_TEST(shm_maps_no_file_that_is_not_the_arena),
        SHM_TEST(shm_attaches_to_no_arena_that_is_over),
        SHM_TEST(shm_maps_within_the_limit),
        SHM_TEST(shm_watches_the_process_of_the_grant),
        SHM_TEST(shm_takes_descriptor_0),
    };
    return cmocka_run_group_tests_name("os-shm-calls", tests, NULL, NULL);
}
