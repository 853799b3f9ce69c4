/* SPDX-License-Identifier: Apache-2.0 */
/* Grants of shared memory that a backup should not have sent, and an arena's file that somebody has cut. */
#include "tests/transport/os_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/rmem.h"

struct bench {
    struct os_rig *rig;
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    struct leat_rmem_target *target;
    bool grown, attached, failed;
    leat_err rc;
    struct leat_error error;
};

static void on_grown(struct leat_rmem_grow *grow)
{
    struct bench *bench = grow->owner;
    bench->grown = true;
    bench->rig->rig.notify(bench->rig);
}

static void arena_open(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem_host *host = bench->rig->rig.host;
    bench->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = bench};
    RIG_CHECK(host->open(host->ctx, "writer", 7, LEAT_ARENA_STEP_BYTES, &bench->arena,
                         &bench->error) == LEAT_OK);
    host->grow(host->ctx, bench->arena, &bench->grow);
}

static bool is_grown(void *arg)
{
    return ((struct bench *)arg)->grown;
}

static void grant_get(void *arg)
{
    struct bench *bench = arg;
    const struct leat_rmem_host *host = bench->rig->rig.host;
    host->grant(host->ctx, bench->arena, &bench->grant);
}

static void retire(void *arg)
{
    struct bench *bench = arg;
    bench->rig->rig.host->retire(bench->rig->rig.host->ctx, bench->arena);
}

static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct bench *bench = user;
    (void)target;
    bench->attached = true;
    bench->rig->rig.notify(bench->rig);
}

static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct bench *bench = user;
    (void)target;
    bench->error = *error;
    bench->failed = true;
    bench->rig->rig.notify(bench->rig);
}

static void attach(void *arg)
{
    static const struct leat_rmem_target_handler handler = {on_attached, on_failed};
    struct bench *bench = arg;
    const struct leat_rmem *port = bench->rig->rig.writer;
    bench->rc =
        port->attach(port->ctx, 0, &bench->grant, &handler, bench, &bench->target, &bench->error);
}

static bool is_over(void *arg)
{
    const struct bench *bench = arg;
    return bench->attached || bench->failed;
}

static void detach(void *arg)
{
    leat_rmem_detach(((struct bench *)arg)->target);
}

static int setup(void **state)
{
    static struct bench bench;
    bench = (struct bench){.rig = os_rig_make(NULL, NULL)};
    bench.rig->rig.writer = os_rig_writer(bench.rig, LEAT_RMEM_SHM);
    os_rig_start(bench.rig);
    bench.rig->rig.call(bench.rig, RIG_HOST, arena_open, &bench);
    bench.rig->rig.wait(bench.rig, RIG_HOST, is_grown, &bench);
    bench.rig->rig.call(bench.rig, RIG_HOST, grant_get, &bench);
    *state = &bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    bench->rig->rig.call(bench->rig, RIG_HOST, retire, bench);
    os_rig_stop(bench->rig);
    os_rig_drop(bench->rig);
    return 0;
}

/* The same grant, except for the path and the path's stated length. */
static void path_set(struct bench *bench, const char *path, uint32_t said_bytes)
{
    struct leat_rmem_address address;
    struct rmem_shm_grant head;
    uint8_t body[RMEM_SECTION_BYTES];
    size_t bytes = 0;
    RIG_CHECK(leat_rmem_grant_address(&bench->grant, &address) == LEAT_OK);
    const uint8_t *section = leat_rmem_grant_find(&bench->grant, LEAT_RMEM_SHM, &bytes);
    RIG_CHECK(section != NULL);
    memcpy(&head, section, sizeof head);
    const size_t path_bytes = strlen(path);
    head.path_bytes = said_bytes;
    memcpy(body, &head, sizeof head);
    memcpy(body + sizeof head, path, path_bytes);
    bench->grant.bytes = 0;
    RIG_CHECK(leat_rmem_grant_add(&bench->grant, LEAT_RMEM_NONE, &address, sizeof address));
    RIG_CHECK(leat_rmem_grant_add(&bench->grant, LEAT_RMEM_SHM, body, sizeof head + path_bytes));
}

/* Opening a device for writing is an act of its own: no peer has this process do it. */
static void grant_names_another_file_and_is_refused_unopened(void **state)
{
    static const char *const paths[] = {
        "/dev/null",      "/dev/watchdog",        "",
        "leat-rmem-here", "/dev/shm/leat-pool-1", "/dev/shm/leat-rmem-1/other"};
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        path_set(bench, paths[i], (uint32_t)strlen(paths[i]));
        bench->rig->rig.call(bench->rig, RIG_WRITER, attach, bench);
        assert_int_equal(bench->rc, LEAT_E_INVALID);
        assert_string_equal(bench->error.text, "the grant names no arena's file");
    }
}

/* A peer that has the key says what it likes: nothing is read that it has not sent. */
static void grant_that_lies_about_its_path_is_refused(void **state)
{
    static const char path[] = "/dev/shm/leat-rmem-1-2";
    static const uint32_t said[] = {0,    sizeof path - 2, sizeof path, RMEM_SHM_PATH_BYTES_MAX,
                                    4096, UINT32_MAX - 64, UINT32_MAX};
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        path_set(bench, path, said[i]);
        bench->rig->rig.call(bench->rig, RIG_WRITER, attach, bench);
        assert_int_equal(bench->rc, LEAT_E_INVALID);
        assert_string_equal(bench->error.text, "the grant can't be read");
    }
}

/* An account that may write to the directory of arenas, and is not this account: its file is not mapped. */
static void arena_file_of_another_account_is_refused(void **state)
{
    struct bench *bench = *state;
    const char *path = LEAT_CONTAINER(bench->arena, struct os_rmem_arena, port)->path;
    if (geteuid() != 0) skip();
    assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
    bench->rig->rig.call(bench->rig, RIG_WRITER, attach, bench);
    assert_int_equal(bench->rc, LEAT_OK);
    bench->rig->rig.wait(bench->rig, RIG_WRITER, is_over, bench);
    assert_int_equal(chown(path, geteuid(), (gid_t)-1), 0);
    assert_true(bench->failed);
    assert_non_null(strstr(bench->error.text, "belongs to another account"));
    bench->rig->rig.call(bench->rig, RIG_WRITER, detach, bench);
}

static void arena_file_is_cut_and_its_target_fails(void **state)
{
    struct bench *bench = *state;
    const char *path = LEAT_CONTAINER(bench->arena, struct os_rmem_arena, port)->path;
    assert_int_equal(truncate(path, POOL_DATA_OFFSET + LEAT_ARENA_STEP_BYTES / 2), 0);
    bench->rig->rig.call(bench->rig, RIG_WRITER, attach, bench);
    assert_int_equal(bench->rc, LEAT_OK);
    bench->rig->rig.wait(bench->rig, RIG_WRITER, is_over, bench);
    assert_true(bench->failed);
    assert_int_equal(bench->error.code, LEAT_E_DAMAGED);
    assert_non_null(strstr(bench->error.text, "the file has been cut"));
    bench->rig->rig.call(bench->rig, RIG_WRITER, detach, bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grant_names_another_file_and_is_refused_unopened, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(grant_that_lies_about_its_path_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(arena_file_of_another_account_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(arena_file_is_cut_and_its_target_fails, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
