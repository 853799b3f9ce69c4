/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas that an earlier process left, and files whose header is not as it was written. */
#include "tests/transport/os_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/rmem.h"
#include "tests/os/real_rig.h"

enum { STEP = LEAT_ARENA_STEP_BYTES, LIMIT_STEPS = 2 };

struct scene {
    struct os_rig *rig;
    char dir[64], path[LEAT_OS_PATH_BYTES];
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    struct leat_rmem_target *target;
    bool grown, attached, failed;
    leat_err rc;
    struct leat_error error;
    unsigned inherited;
};

static struct rmem_header *header_of(const struct scene *scene)
{
    return LEAT_CONTAINER(scene->arena, struct os_rmem_arena, port)->header;
}

static void on_grown(struct leat_rmem_grow *grow)
{
    struct scene *scene = grow->owner;
    RIG_CHECK(grow->rc == LEAT_OK);
    scene->grown = true;
    scene->rig->rig.notify(scene->rig);
}

static void arena_open(void *arg)
{
    struct scene *scene = arg;
    const struct leat_rmem_host *host = scene->rig->rig.host;
    scene->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = scene};
    RIG_CHECK(host->open(host->ctx, "writer", 7, (uint64_t)LIMIT_STEPS * STEP, &scene->arena,
                         &scene->error) == LEAT_OK);
    host->grow(host->ctx, scene->arena, &scene->grow);
}

static bool is_grown(void *arg)
{
    return ((struct scene *)arg)->grown;
}

static void inherited_take(void *arg, struct leat_rmem_arena *arena)
{
    struct scene *scene = arg;
    scene->arena = arena;
    scene->inherited++;
}

static void inherited_look(void *arg)
{
    struct scene *scene = arg;
    const struct leat_rmem_host *host = scene->rig->rig.host;
    scene->inherited = 0;
    host->each_inherited(host->ctx, inherited_take, scene);
}

static void retire(void *arg)
{
    struct scene *scene = arg;
    scene->rig->rig.host->retire(scene->rig->rig.host->ctx, scene->arena);
}

static void process_begins(struct scene *scene)
{
    scene->rig = os_rig_make(scene->dir, NULL);
    os_rig_start(scene->rig);
}

static void process_ends(struct scene *scene)
{
    os_rig_stop(scene->rig);
    os_rig_drop(scene->rig);
}

/* A process has made an arena, of one step, and has ended. */
static void arena_left(struct scene *scene)
{
    scene->grown = false;
    process_begins(scene);
    scene->rig->rig.call(scene->rig, RIG_HOST, arena_open, scene);
    scene->rig->rig.wait(scene->rig, RIG_HOST, is_grown, scene);
    memset(scene->arena->base, 0x5a, 4096);
    scene->arena->base[STEP - 1] = 0x77;
    snprintf(scene->path, sizeof scene->path, "%s",
             LEAT_CONTAINER(scene->arena, struct os_rmem_arena, port)->path);
    process_ends(scene);
    assert_int_equal(access(scene->path, F_OK), 0);
}

/* The change of the arena's header; NONE: no change. */
enum change {
    NONE,
    OTHER_POOL_MAGIC,
    OTHER_POOL_VERSION,
    OTHER_BOOT,
    OTHER_MAGIC,
    OTHER_VERSION,
    NO_LIMIT,
    PART_OF_A_STEP,
    TOO_MANY_STEPS,
    NO_STEPS,
    STEPS_PAST_THE_LIMIT,
    STEPS_PAST_THE_FILE,
    FILE_CUT,
    FILE_OF_A_HEADER,
    WRITER_WITHOUT_END,
    CHANGES
};

static void header_change(struct rmem_header *header, int fd, enum change change)
{
    if (change == OTHER_POOL_MAGIC) header->pool.magic ^= 1;
    if (change == OTHER_POOL_VERSION) header->pool.version++;
    if (change == OTHER_BOOT) header->pool.boot_id[0] ^= 1;
    if (change == OTHER_MAGIC) header->magic ^= 1;
    if (change == OTHER_VERSION) header->version++;
    if (change == NO_LIMIT) header->limit_bytes = 0;
    if (change == PART_OF_A_STEP) header->limit_bytes += 4096;
    if (change == TOO_MANY_STEPS) header->limit_bytes = ((uint64_t)LEAT_RMEM_STEPS_MAX + 1) * STEP;
    if (change == NO_STEPS) header->pool.steps = 0;
    if (change == STEPS_PAST_THE_LIMIT) {
        header->pool.steps = LIMIT_STEPS + 1;
        RIG_CHECK(ftruncate(fd, POOL_DATA_OFFSET + (off_t)(LIMIT_STEPS + 1) * STEP) == 0);
    }
    if (change == STEPS_PAST_THE_FILE) header->pool.steps = 2;
    if (change == FILE_CUT) RIG_CHECK(ftruncate(fd, POOL_DATA_OFFSET + STEP - 4096) == 0);
    if (change == FILE_OF_A_HEADER) RIG_CHECK(ftruncate(fd, RMEM_HEADER_BYTES) == 0);
    if (change == WRITER_WITHOUT_END) memset(header->writer, 'w', sizeof header->writer);
}

static void file_change(const struct scene *scene, enum change change)
{
    int fd = open(scene->path, O_RDWR);
    RIG_CHECK(fd >= 0);
    void *at = mmap(NULL, RMEM_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RIG_CHECK(at != MAP_FAILED);
    header_change(at, fd, change);
    (void)munmap(at, RMEM_HEADER_BYTES);
    (void)close(fd);
}

/* Goal: the next process has what an earlier one left, as it was, and nobody writes there any more; what is not such an
 * arena, of this boot, whole, is removed and never mapped. */
static void arena_that_was_left_is_inherited_whole_or_not_at_all(void **state)
{
    (void)state;
    for (enum change change = NONE; change < CHANGES; change++) {
        struct scene scene = {.dir = "/var/tmp/leat-arena-XXXXXX"};
        assert_non_null(mkdtemp(scene.dir));
        arena_left(&scene);
        file_change(&scene, change);
        process_begins(&scene);
        scene.rig->rig.call(scene.rig, RIG_HOST, inherited_look, &scene);
        assert_int_equal(scene.inherited, change == NONE);
        assert_int_equal(access(scene.path, F_OK), change == NONE ? 0 : -1);
        if (change == NONE) {
            const struct leat_rmem_arena *arena = scene.arena;
            assert_true(arena->inherited && arena->revoked);
            assert_int_equal(atomic_load(&header_of(&scene)->control), RMEM_REVOKED);
            assert_int_equal(arena->grown_bytes, STEP);
            assert_int_equal(arena->limit_bytes, (uint64_t)LIMIT_STEPS * STEP);
            assert_string_equal(arena->writer, "writer");
            assert_int_equal(arena->writer_incarnation, 7);
            assert_memory_equal(arena->id, header_of(&scene)->pool.pool_id, LEAT_RMEM_ID_BYTES);
            assert_true(arena->base[0] == 0x5a && arena->base[4095] == 0x5a);
            assert_true(arena->base[4096] == 0 && arena->base[STEP - 1] == 0x77);
            scene.rig->rig.call(scene.rig, RIG_HOST, retire, &scene);
        }
        process_ends(&scene);
        assert_int_equal(access(scene.path, F_OK), -1);
        real_rig_remove_dir(scene.dir);
    }
}

/* ---- the writer's side ---- */

static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct scene *scene = user;
    (void)target;
    scene->attached = true;
    scene->rig->rig.notify(scene->rig);
}

static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct scene *scene = user;
    (void)target;
    scene->error = *error;
    scene->failed = true;
    scene->rig->rig.notify(scene->rig);
}

static void grant_get(void *arg)
{
    struct scene *scene = arg;
    const struct leat_rmem_host *host = scene->rig->rig.host;
    host->grant(host->ctx, scene->arena, &scene->grant);
}

static void attach(void *arg)
{
    static const struct leat_rmem_target_handler handler = {on_attached, on_failed};
    struct scene *scene = arg;
    const struct leat_rmem *port = scene->rig->rig.writer;
    scene->attached = scene->failed = false;
    scene->rc =
        port->attach(port->ctx, 0, &scene->grant, &handler, scene, &scene->target, &scene->error);
}

static bool is_over(void *arg)
{
    const struct scene *scene = arg;
    return scene->attached || scene->failed;
}

static void detach(void *arg)
{
    leat_rmem_detach(((struct scene *)arg)->target);
}

static void attach_and_detach(struct scene *scene)
{
    scene->rig->rig.call(scene->rig, RIG_WRITER, attach, scene);
    assert_int_equal(scene->rc, LEAT_OK);
    scene->rig->rig.wait(scene->rig, RIG_WRITER, is_over, scene);
    scene->rig->rig.call(scene->rig, RIG_WRITER, detach, scene);
}

/* Goal: a writer attaches only to the arena that it was granted, while that arena is open and in the writer's format.
 * The writer attaches to no other memory of the same name. */
static void writer_attaches_to_what_it_was_granted_alone(void **state)
{
    (void)state;
    struct scene scene = {.dir = "/var/tmp/leat-arena-XXXXXX"};
    assert_non_null(mkdtemp(scene.dir));
    scene.rig = os_rig_make(scene.dir, NULL);
    scene.rig->rig.writer = os_rig_writer(scene.rig, LEAT_RMEM_SHM);
    os_rig_start(scene.rig);
    scene.rig->rig.call(scene.rig, RIG_HOST, arena_open, &scene);
    scene.rig->rig.wait(scene.rig, RIG_HOST, is_grown, &scene);
    scene.rig->rig.call(scene.rig, RIG_HOST, grant_get, &scene);
    struct rmem_header *header = header_of(&scene);
    const leat_err codes[] = {LEAT_E_NOT_FOUND, LEAT_E_NOT_FOUND, LEAT_E_UNSUPPORTED,
                              LEAT_E_NOT_FOUND, LEAT_E_NOT_FOUND, LEAT_E_CANCELLED};
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
        for (unsigned back = 0; back < 2; back++) { /* it is as it was: then it attaches */
            if (i == 0) header->pool.magic ^= 1;
            if (i == 1) header->magic ^= 1;
            if (i == 2) header->version ^= 64;
            if (i == 3) header->pool.pool_id[15] ^= 1;
            if (i == 4) header->limit_bytes ^= STEP;
            if (i == 5) atomic_store(&header->control, back ? RMEM_OPEN : RMEM_REVOKED);
            attach_and_detach(&scene);
            assert_int_equal(scene.failed, !back);
            if (!back) assert_int_equal(scene.error.code, codes[i]);
        }
    scene.rig->rig.call(scene.rig, RIG_HOST, retire, &scene);
    process_ends(&scene);
    real_rig_remove_dir(scene.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_that_was_left_is_inherited_whole_or_not_at_all),
        cmocka_unit_test(writer_attaches_to_what_it_was_granted_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
