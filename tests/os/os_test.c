/* SPDX-License-Identifier: Apache-2.0 */
/* What only the real ports have: full disks, killed processes, the host. */
#include "tests/os/real_rig.h"

#include "base/node_log.h"
#include "base/random.h"
#include "os/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEP = LEAT_ARENA_STEP_BYTES, BLOCK = 4096 };

static void nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops nothing_ops = {.on_wake = nothing, .on_turn_end = nothing};

/* A child that checks with PORT_CHECK; 0 when all held. */
static int child_run(void (*body)(const char *dir), const char *dir)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        body(dir);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- random ---- */

static uint64_t rotated(uint64_t word, unsigned right)
{
    return word >> right | word << (64 - right);
}

/* What a xoshiro256** would give after these four. Its output is the second word of its state, times 5, rotated, times
 * 9; four of these words are the whole state. */
static uint64_t xoshiro_fifth(const uint64_t outputs[4])
{
    const uint64_t one_5th = 0xcccccccccccccccd, one_9th = 0x8e38e38e38e38e39;
    uint64_t b[4];
    for (int i = 0; i < 4; i++)
        b[i] = rotated(outputs[i] * one_9th, 7) * one_5th;
    uint64_t ac = b[0] ^ b[1], ad = b[2] ^ b[1] ^ ac ^ (b[0] << 17) ^ b[0];
    struct leat_xoshiro state;
    state.s[0] = ad ^ b[0];
    state.s[1] = b[1];
    state.s[2] = ac ^ (b[0] << 17);
    state.s[3] = b[3] ^ b[2] ^ state.s[2] ^ (b[1] << 17) ^ b[1];
    for (int i = 1; i < 4; i++)
        (void)leat_xoshiro_next(&state);
    return leat_xoshiro_next(&state);
}

/* Goal: a client that was told some ids of a server does not know the next ids. */
static void random_numbers_do_not_tell_those_that_come(void **state)
{
    (void)state;
    struct leat_xoshiro weak;
    uint64_t told[4];
    leat_xoshiro_seed(&weak, 7);
    for (int i = 0; i < 4; i++)
        told[i] = leat_xoshiro_next(&weak);
    assert_true(xoshiro_fifth(told) == leat_xoshiro_next(&weak)); /* the method works */
    struct leat_os_world_options options = {0};
    struct leat_os_world *world = NULL;
    const struct leat_env *env = NULL;
    struct leat_error error;
    assert_int_equal(leat_os_world_create(&options, &world, &error), LEAT_OK);
    assert_int_equal(
        leat_os_actor_create(world, LEAT_ACTOR_CORE_0, LEAT_OS_ACTOR_CLIENT, &env, &error),
        LEAT_OK);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 4; i++)
            told[i] = env->random->next(env->random->ctx);
        assert_true(told[0] != told[1] && told[1] != told[2] && told[2] != told[3]);
        assert_false(xoshiro_fifth(told) == env->random->next(env->random->ctx));
    }
    leat_os_world_destroy(&world);
}

/* ---- disk ---- */
struct full_test {
    struct real_rig *real;
    struct leat_file *file;
    struct leat_disk_io io[64];
    unsigned ended, full;
};
static struct full_test full_test;
static uint8_t full_block[65536] __attribute__((aligned(BLOCK)));

static void full_done(struct leat_disk_io *io)
{
    struct full_test *test = &full_test;
    PORT_CHECK(io->rc == LEAT_OK || io->rc == LEAT_E_DISK_FULL);
    PORT_CHECK(io->rc != LEAT_OK || test->full == 0);
    test->full += io->rc == LEAT_E_DISK_FULL;
    if (++test->ended < 64) return;
    const struct leat_disk *disk = test->real->envs[PORT_DISK]->disk;
    PORT_CHECK(disk->allocate(disk->ctx, test->file, 64 * sizeof full_block) == LEAT_E_DISK_FULL);
    disk->close(disk->ctx, test->file);
    test->real->rig.finish(test->real->rig.ctx);
}
static void full_start(void *actor)
{
    struct full_test *test = actor;
    const struct leat_disk *disk = test->real->envs[PORT_DISK]->disk;
    PORT_CHECK(disk->open(disk->ctx, "f", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &test->file, NULL) ==
               LEAT_OK);
    for (unsigned i = 0; i < 64; i++) {
        test->io[i] = (struct leat_disk_io){
            .kind = LEAT_DISK_WRITE,
            .file = test->file,
            .offset = i * sizeof full_block,
            .buffer = full_block,
            .bytes = sizeof full_block,
            .on_done = full_done,
        };
        disk->submit(disk->ctx, &test->io[i]);
    }
}
static void full_body(const char *dir)
{
    /* A disk of 1 MiB where mounting is allowed, else files of at most 1 MiB. */
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", dir, "tmpfs", 0, "size=1m")) {
        struct rlimit limit = {1 << 20, 1 << 20};
        signal(SIGXFSZ, SIG_IGN);
        PORT_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    struct real_rig *real = real_rig_make_in(dir);
    full_test.real = real;
    real->rig.attach(real, PORT_DISK, &full_test, &nothing_ops, full_start);
    real->rig.run(real);
    PORT_CHECK(full_test.ended == 64 && full_test.full > 0 && full_test.full < 64);
    real_rig_drop(&real->rig);
}
static void disk_full_is_named_and_survived(void **state)
{
    char dir[64];
    temp_dir(dir);
    assert_int_equal(child_run(full_body, dir), 0);
    real_rig_remove_dir(dir);
}

struct sync_test {
    struct real_rig *real;
    struct leat_file *file;
    struct leat_disk_io before, sync, after;
    unsigned ended;
};
static void sync_done(struct leat_disk_io *io)
{
    struct sync_test *test = io->owner;
    PORT_CHECK(io == &test->before ? io->rc == LEAT_OK : io->rc == LEAT_E_DISK);
    test->ended++;
    const struct leat_disk *disk = test->real->envs[PORT_DISK]->disk;
    if (io != &test->after) { /* one after the other: a read may overtake */
        disk->submit(disk->ctx, io == &test->before ? &test->sync : &test->after);
        return;
    }
    disk->close(disk->ctx, test->file);
    test->real->rig.finish(test->real->rig.ctx);
}
/* /dev/zero reads well and refuses to be flushed. Its directory may be a link, a file may not. */
static void sync_start(void *actor)
{
    struct sync_test *test = actor;
    const struct leat_disk *disk = test->real->envs[PORT_DISK]->disk;
    struct leat_error error = {.text = ""};
    PORT_CHECK(disk->open(disk->ctx, "zero", 0, &test->file, &error) == LEAT_E_DISK);
    PORT_CHECK(strstr(error.text, "zero: it is a symbolic link") != NULL);
    PORT_CHECK(disk->open(disk->ctx, "pipe", LEAT_OPEN_READ, &test->file, &error) == LEAT_E_DISK);
    PORT_CHECK(strstr(error.text, "pipe: it is not a file") != NULL);
    PORT_CHECK(disk->open(disk->ctx, "pipe", LEAT_OPEN_DIRECT, &test->file, NULL) == LEAT_E_DISK);
    PORT_CHECK(disk->open(disk->ctx, "devices/zero", 0, &test->file, NULL) == LEAT_OK);
    struct leat_disk_io read = {.kind = LEAT_DISK_READ,
                                .file = test->file,
                                .buffer = full_block,
                                .bytes = BLOCK,
                                .on_done = sync_done,
                                .owner = test};
    test->before = test->sync = test->after = read;
    test->sync.kind = LEAT_DISK_SYNC;
    disk->submit(disk->ctx, &test->before);
}
static void disk_failed_sync_is_final(void **state)
{
    struct port_rig *rig = real_rig_make();
    struct sync_test test = {.real = rig->ctx};
    char path[128];
    snprintf(path, sizeof path, "%s/zero", test.real->dir);
    assert_int_equal(symlink("/dev/zero", path), 0);
    snprintf(path, sizeof path, "%s/devices", test.real->dir);
    assert_int_equal(symlink("/dev", path), 0);
    snprintf(path, sizeof path, "%s/pipe", test.real->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    rig->attach(rig->ctx, PORT_DISK, &test, &nothing_ops, sync_start);
    rig->run(rig->ctx);
    assert_int_equal(test.ended, 3);
    real_rig_drop(rig);
}

/* ---- arena ---- */
struct arena_test {
    struct real_rig *real;
    struct leat_arena_grow grow;
    unsigned steps_wanted;
    leat_err last_rc;
    int tell; /* pipe to the parent, or -1 */
    unsigned shrinks;
};
static struct leat_arena *arena_of(struct arena_test *test)
{
    return test->real->envs[PORT_DISK]->arena;
}
static void arena_grown(struct leat_arena_grow *grow)
{
    struct arena_test *test = grow->owner;
    struct leat_arena *arena = arena_of(test);
    test->last_rc = grow->rc;
    if (grow->rc == LEAT_OK) {
        uint8_t *step = arena->base + arena->grown_bytes - STEP;
        for (size_t i = 0; i < STEP; i += BLOCK)
            PORT_CHECK(step[i] == 0);
        memset(step, (int)(arena->grown_bytes / STEP), STEP);
    }
    if (grow->rc == LEAT_OK && arena->grown_bytes < (uint64_t)test->steps_wanted * STEP) {
        arena->grow(arena->ctx, grow);
        return;
    }
    if (test->tell >= 0) {
        PORT_CHECK(write(test->tell, arena->pool_id, 16) == 16);
        for (;;)
            pause(); /* until killed */
    }
    test->real->rig.finish(test->real->rig.ctx);
}
static void arena_start(void *actor)
{
    struct arena_test *test = actor;
    test->grow = (struct leat_arena_grow){.on_grown = arena_grown, .owner = test};
    arena_of(test)->grow(arena_of(test)->ctx, &test->grow);
}
static void arena_rig_start(struct arena_test *test, const char *dir, uint64_t limit,
                            void (*start)(void *actor))
{
    struct leat_error error = {.text = ""};
    test->real = real_rig_make_in(dir);
    leat_err rc = leat_os_arena_open(test->real->world, PORT_DISK, limit, &error);
    if (rc) print_message("%s\n", error.text);
    PORT_CHECK(rc == LEAT_OK);
    test->real->rig.attach(test->real, PORT_DISK, test, &nothing_ops, start);
}
static void arena_rig(struct arena_test *test, const char *dir, uint64_t limit)
{
    arena_rig_start(test, dir, limit, arena_start);
}

/* Two steps are written by a child that is then killed with -9; the parent must find them, under
 * the same pool id, even with a limit of one step, and grow on from there. */
static void arena_of_killed_process_is_inherited(void **state)
{
    char dir[64];
    temp_dir(dir);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct arena_test test = {.steps_wanted = 2, .tell = pipe_fds[1]};
        arena_rig(&test, dir, 3 * (uint64_t)STEP);
        test.real->rig.run(test.real);
        _exit(0);
    }
    uint8_t pool_id[16];
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], pool_id, 16), 16);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(pipe_fds[0]);

    struct arena_test small = {.tell = -1};
    arena_rig(&small, dir, STEP);
    struct leat_arena *arena = arena_of(&small);
    assert_int_equal(arena->inherited_bytes, 2 * (uint64_t)STEP);
    assert_int_equal(arena->grown_bytes, 2 * (uint64_t)STEP);
    assert_int_equal(arena->limit_bytes, 2 * (uint64_t)STEP);
    assert_memory_equal(arena->pool_id, pool_id, 16);
    /* A step that began elsewhere could not lie in huge pages. */
    assert_int_equal((uintptr_t)arena->base % (2 * 1024 * 1024), 0);
    for (uint64_t i = 0; i < 2 * (uint64_t)STEP; i += 997)
        assert_int_equal(arena->base[i], i / STEP + 1);
    small.real->rig.run(small.real); /* growing past the limit is refused, off the call */
    assert_int_equal(small.last_rc, LEAT_E_NO_MEMORY);
    real_rig_drop(&small.real->rig);

    struct arena_test more = {.steps_wanted = 3, .tell = -1};
    arena_rig(&more, dir, 4 * (uint64_t)STEP);
    assert_int_equal(arena_of(&more)->inherited_bytes, 2 * (uint64_t)STEP);
    more.real->rig.run(more.real);
    assert_int_equal(more.last_rc, LEAT_OK);
    assert_int_equal(arena_of(&more)->grown_bytes, 3 * (uint64_t)STEP);
    assert_int_equal(arena_of(&more)->inherited_bytes, 2 * (uint64_t)STEP);
    leat_os_arena_discard(more.real->world, PORT_DISK);
    real_rig_drop(&more.real->rig);

    struct arena_test fresh = {.tell = -1};
    arena_rig(&fresh, dir, STEP);
    assert_int_equal(arena_of(&fresh)->inherited_bytes, 0);
    assert_memory_not_equal(arena_of(&fresh)->pool_id, pool_id, 16);
    leat_os_arena_discard(fresh.real->world, PORT_DISK);
    real_rig_drop(&fresh.real->rig);
    real_rig_remove_dir(dir);
}

/* Written by a child, which gives the second of its two steps back and grows it anew: it must be zero (arena_grown
 * looks), as after a kill amid giving back, which leaves a file that is longer than its header says. */
static void arena_step_given_back(struct leat_arena_grow *grow)
{
    struct arena_test *test = grow->owner;
    struct leat_arena *arena = arena_of(test);
    PORT_CHECK(grow->rc == LEAT_OK && arena->grown_bytes == (uint64_t)STEP);
    test->grow.on_grown = arena_grown;
    if (test->shrinks == 1) {
        arena->grow(arena->ctx, &test->grow);
        return;
    }
    test->real->rig.finish(test->real->rig.ctx);
}
static void arena_shrink_start(void *actor)
{
    struct arena_test *test = actor;
    test->shrinks++;
    test->grow = (struct leat_arena_grow){.on_grown = arena_step_given_back, .owner = test};
    arena_of(test)->shrink(arena_of(test)->ctx, &test->grow);
}
static off_t pool_file_bytes(const char *dir, bool lengthen)
{
    char path[512];
    struct stat st = {0};
    snprintf(path, sizeof path, "%s/pool", dir);
    if (stat(path, &st) != 0) return -1;
    if (lengthen) {
        int fd = open(path, O_RDWR);
        PORT_CHECK(fd >= 0 && ftruncate(fd, st.st_size + STEP) == 0);
        PORT_CHECK(pwrite(fd, "dirty", 5, st.st_size) == 5);
        close(fd);
    }
    return st.st_size;
}
static void arena_step_given_back_is_zero_when_it_grows_again(void **state)
{
    (void)state;
    char dir[64];
    temp_dir(dir);
    /* In the data directory, where the file can be looked at. */
    char local[128];
    snprintf(local, sizeof local, "%s/pool", dir);
    int fd = open(local, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    struct arena_test first = {.steps_wanted = 2, .tell = -1};
    arena_rig(&first, dir, 2 * (uint64_t)STEP);
    first.real->rig.run(first.real);
    assert_int_equal(first.last_rc, LEAT_OK);
    real_rig_drop(&first.real->rig);
    off_t whole = pool_file_bytes(dir, false);

    struct arena_test again = {.steps_wanted = 2, .tell = -1};
    arena_rig_start(&again, dir, 2 * (uint64_t)STEP, arena_shrink_start);
    assert_int_equal(arena_of(&again)->inherited_bytes, 2 * (uint64_t)STEP);
    again.real->rig.run(again.real);
    assert_int_equal(again.last_rc, LEAT_OK);
    assert_int_equal(arena_of(&again)->grown_bytes, 2 * (uint64_t)STEP);
    assert_int_equal(arena_of(&again)->base[0], 1);
    real_rig_drop(&again.real->rig);
    assert_int_equal(pool_file_bytes(dir, false), whole);

    struct arena_test less = {.tell = -1, .shrinks = 1};
    arena_rig_start(&less, dir, 2 * (uint64_t)STEP, arena_shrink_start);
    less.real->rig.run(less.real);
    assert_int_equal(arena_of(&less)->grown_bytes, (uint64_t)STEP);
    real_rig_drop(&less.real->rig);
    assert_int_equal(pool_file_bytes(dir, true), whole - STEP);

    struct arena_test killed = {.steps_wanted = 2, .tell = -1};
    arena_rig(&killed, dir, 2 * (uint64_t)STEP);
    assert_int_equal(arena_of(&killed)->inherited_bytes, (uint64_t)STEP);
    assert_int_equal(pool_file_bytes(dir, false), whole - STEP);
    killed.real->rig.run(killed.real); /* arena_grown looks for zeros */
    assert_int_equal(killed.last_rc, LEAT_OK);
    leat_os_arena_discard(killed.real->world, PORT_DISK);
    real_rig_drop(&killed.real->rig);
    real_rig_remove_dir(dir);
}

/* Finds the pool file by its id and changes a byte of the boot id, which is text before it. */
static bool boot_id_change(const char *dir, const uint8_t pool_id[16])
{
    DIR *names = opendir(dir);
    bool changed = false;
    for (struct dirent *entry; !changed && (entry = readdir(names)) != NULL;) {
        if (!strstr(entry->d_name, "pool")) continue;
        char path[512];
        uint8_t header[72];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        int fd = open(path, O_RDWR);
        if (fd < 0) continue;
        if (pread(fd, header, sizeof header, 0) == (ssize_t)sizeof header &&
            memcmp(header + 56, pool_id, 16) == 0) {
            header[16] = header[16] == 'x' ? 'y' : 'x';
            changed = pwrite(fd, header + 16, 1, 16) == 1;
        }
        close(fd);
    }
    closedir(names);
    return changed;
}
static void arena_of_another_boot_is_made_anew(void **state)
{
    char dir[64];
    temp_dir(dir);
    struct arena_test first = {.steps_wanted = 1, .tell = -1};
    arena_rig(&first, dir, STEP);
    first.real->rig.run(first.real);
    uint8_t pool_id[16];
    memcpy(pool_id, arena_of(&first)->pool_id, 16);
    real_rig_drop(&first.real->rig);
    assert_true(boot_id_change("/dev/shm", pool_id) || boot_id_change(dir, pool_id));
    struct arena_test second = {.steps_wanted = 1, .tell = -1};
    arena_rig(&second, dir, STEP);
    assert_int_equal(arena_of(&second)->inherited_bytes, 0);
    assert_memory_not_equal(arena_of(&second)->pool_id, pool_id, 16);
    second.real->rig.run(second.real); /* and its memory is zero again: see arena_grown */
    assert_int_equal(second.last_rc, LEAT_OK);
    leat_os_arena_discard(second.real->world, PORT_DISK);
    real_rig_drop(&second.real->rig);
    real_rig_remove_dir(dir);
}

/* Where memory ends, growing says so; it must not end in SIGBUS. */
static void arena_full_body(const char *dir)
{
    struct rlimit limit = {STEP + 8 * 1024 * 1024, STEP + 8 * 1024 * 1024};
    signal(SIGXFSZ, SIG_IGN);
    PORT_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct arena_test test = {.steps_wanted = 2, .tell = -1};
    arena_rig(&test, dir, 2 * (uint64_t)STEP);
    test.real->rig.run(test.real);
    PORT_CHECK(test.last_rc == LEAT_E_NO_MEMORY);
    PORT_CHECK(arena_of(&test)->grown_bytes == STEP);
    leat_os_arena_discard(test.real->world, PORT_DISK);
    real_rig_drop(&test.real->rig);
}
static void arena_without_room_reports_it(void **state)
{
    char dir[64];
    temp_dir(dir);
    assert_int_equal(child_run(arena_full_body, dir), 0);
    real_rig_remove_dir(dir);
}

/* ---- host ---- */
static const char *const no_files[] = {NULL};

static void lock_taken_twice_names_the_holder(void **state)
{
    char dir[64], deep[128], pid[32];
    temp_dir(dir);
    snprintf(deep, sizeof deep, "%s/a/b", dir);
    struct leat_error error;
    assert_int_equal(leat_os_lock(deep, no_files, &error), LEAT_OK);
    assert_int_equal(leat_os_lock(deep, no_files, &error), LEAT_E_LOCKED);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(error.text, pid));
    real_rig_remove_dir(dir);
}

/* Goal: the successor of a killed server gets the lock, however long the kernel takes to free the memory of the dead
 * server. Method: the server dies with 256 MiB touched, and nobody waits for it. */
static void lock_of_killed_process_is_waited_for(void **state)
{
    enum { ROUNDS = 5, TOUCHED = 256 << 20 };
    char dir[64], told;
    temp_dir(dir);
    struct leat_error error;
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            char *memory = malloc(TOUCHED);
            PORT_CHECK(memory != NULL);
            for (size_t at = 0; at < TOUCHED; at += BLOCK)
                ((volatile char *)memory)[at] = 1;
            PORT_CHECK(leat_os_lock(dir, no_files, &error) == LEAT_OK);
            PORT_CHECK(write(ends[1], "x", 1) == 1);
            for (;;)
                pause();
        }
        assert_int_equal(read(ends[0], &told, 1), 1);
        assert_int_equal(leat_os_lock(dir, no_files, &error), LEAT_E_LOCKED);
        assert_int_equal(kill(pid, SIGKILL), 0);
        pid_t next = fork();
        assert_true(next >= 0);
        if (next == 0) _exit(leat_os_lock(dir, no_files, &error) == LEAT_OK ? 0 : 1);
        int status;
        assert_int_equal(waitpid(next, &status, 0), next);
        assert_int_equal(status, 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        close(ends[0]);
        close(ends[1]);
    }
    real_rig_remove_dir(dir);
}

static void notify_sends_one_datagram(void **state)
{
    char dir[64];
    temp_dir(dir);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/n", dir);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    setenv("NOTIFY_SOCKET", at.sun_path, 1);
    leat_os_notify("READY=1");
    char got[32] = "";
    assert_int_equal(recv(fd, got, sizeof got, MSG_DONTWAIT), 7);
    assert_string_equal(got, "READY=1");
    unsetenv("NOTIFY_SOCKET");
    leat_os_notify("READY=1");
    assert_int_equal(recv(fd, got, sizeof got, MSG_DONTWAIT), -1);
    close(fd);
    real_rig_remove_dir(dir);
}

static void host_facts_are_plausible(void **state)
{
    assert_in_range(leat_os_cores(), 1, LEAT_CORES_MAX);
    assert_true(leat_os_memory_bytes() >= 16u << 20);
    assert_true(leat_os_memory_bytes() <= (uint64_t)sysconf(_SC_PHYS_PAGES) * 4096u * 2u);
    char path[4096];
    struct leat_error error;
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_int_equal(leat_os_default_data_dir(path, &error), LEAT_OK);
    assert_string_equal(path, "/state/leat");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/x", 1);
    assert_int_equal(leat_os_default_data_dir(path, &error), LEAT_OK);
    assert_string_equal(path, "/home/x/.local/state/leat");
    unsetenv("HOME");
    assert_int_equal(leat_os_default_data_dir(path, &error), LEAT_E_CONFIG);
}

static void world_without_directory_is_refused_by_name(void **state)
{
    struct leat_os_world *world = NULL;
    struct leat_error error;
    struct leat_os_world_options options = {.data_dir = "/nonexistent/leat"};
    assert_int_equal(leat_os_world_create(&options, &world, &error), LEAT_E_CONFIG);
    assert_non_null(strstr(error.text, "/nonexistent/leat"));
    assert_null(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_do_not_tell_those_that_come),
        cmocka_unit_test(disk_full_is_named_and_survived),
        cmocka_unit_test(disk_failed_sync_is_final),
        cmocka_unit_test(arena_of_killed_process_is_inherited),
        cmocka_unit_test(arena_step_given_back_is_zero_when_it_grows_again),
        cmocka_unit_test(arena_of_another_boot_is_made_anew),
        cmocka_unit_test(arena_without_room_reports_it),
        cmocka_unit_test(lock_taken_twice_names_the_holder),
        cmocka_unit_test(lock_of_killed_process_is_waited_for),
        cmocka_unit_test(notify_sends_one_datagram),
        cmocka_unit_test(host_facts_are_plausible),
        cmocka_unit_test(world_without_directory_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
