/* SPDX-License-Identifier: Apache-2.0 */
/* What the transports of one-sided writes stand on: opened and closed in which order, and after each refusal; who a
 * process is; jobs for the helper. The system's calls, and those to the rest of os/, stand here (--wrap), each is
 * told in the trace. */
#include "os/rmem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "os/os.h"
#include "tests/trace.h"

enum { TMPFS = 0x01021994 };

static struct {
    uid_t user;
    const char *stat; /* text of /proc/PID/stat; NULL: there is none */
    ssize_t stat_bytes;
    bool read_fails, no_space, no_real_path, statfs_fails, no_thread, verbs;
    long file_system;
    int descriptor; /* of /proc/PID/stat */
    leat_err host_rc, shm_rc, writer_rc;
} os;

#define WRAP(type, name, ...)                                                                      \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

int __real_open64(const char *path, int flags, ...);
WRAP(int, open64, const char *path, int flags, ...)
{
    if (strncmp(path, "/proc/12/", 9) != 0) { /* what does not belong to the test */
        va_list more;
        va_start(more, flags);
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
        va_end(more);
        return __real_open64(path, flags, mode);
    }
    trace("open %s%s; ", path, flags == (O_RDONLY | O_CLOEXEC) ? "" : " otherwise");
    return os.stat ? os.descriptor : -1;
}

ssize_t __real_read(int fd, void *to, size_t bytes);
WRAP(ssize_t, read, int fd, void *to, size_t bytes)
{
    if (fd != os.descriptor) return __real_read(fd, to, bytes);
    trace("read %zu; ", bytes);
    if (os.read_fails) return -1;
    memset(to, '7', bytes); /* what lies behind is no part of it */
    memcpy(to, os.stat, (size_t)os.stat_bytes);
    return os.stat_bytes;
}

int __real_close(int fd);
WRAP(int, close, int fd)
{
    if (fd != os.descriptor) return __real_close(fd);
    trace("close; ");
    return 0;
}

WRAP(int, stat64, const char *path, struct stat *out)
{
    trace("stat %s; ", path);
    *out = (struct stat){.st_ino = 4026531836u};
    return os.no_space ? -1 : 0;
}

WRAP(char *, realpath, const char *path, char *out)
{
    trace("real %s; ", path);
    if (os.no_real_path) {
        errno = ENOENT;
        return NULL;
    }
    return memcpy(out, "/real", sizeof "/real");
}

WRAP(pid_t, getpid, void)
{
    return 12;
}

WRAP(uid_t, geteuid, void)
{
    return os.user;
}

WRAP(int, statfs64, const char *path, struct statfs *out)
{
    trace("file system of %s; ", path);
    *out = (struct statfs){.f_type = os.file_system};
    return os.statfs_fails ? -1 : 0;
}

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
     void *arg)
{
    assert_null(attributes);
    assert_non_null(run);
    assert_non_null(arg);
    trace("thread; ");
    *out = (pthread_t)1;
    return os.no_thread ? EAGAIN : 0;
}

WRAP(int, pthread_join, pthread_t thread, void **out)
{
    assert_int_equal(thread, (pthread_t)1);
    assert_null(out);
    trace("join; ");
    return 0;
}

WRAP(void, leat_os_boot_id, char out[BOOT_ID_BYTES])
{
    memset(out, 'b', BOOT_ID_BYTES);
}

WRAP(void, leat_os_verbs_open, struct os_rmem *rmem, const char *address, struct leat_error *error)
{
    trace("verbs at %s; ", address);
    if (os.verbs)
        rmem->verbs = (struct os_verbs *)(void *)rmem;
    else
        leat_error_set(error, LEAT_E_UNSUPPORTED, "no device");
}

WRAP(leat_err, leat_os_rmem_host_open, struct os_rmem *rmem, struct leat_error *error)
{
    trace("host, folder %s%s; ", rmem->folder, rmem->in_memory ? " in memory" : "");
    return os.host_rc ? leat_error_set(error, os.host_rc, "no host") : LEAT_OK;
}

static int core_of(const struct os_rmem *rmem, const struct os_actor *actor)
{
    for (int i = 0; i < LEAT_ACTORS; i++)
        if (rmem->world->actors[i] == actor) return i;
    return -1;
}

WRAP(leat_err, leat_os_shm_open, struct os_rmem *rmem, struct os_actor *actor)
{
    trace("shm of core %d; ", core_of(rmem, actor));
    return os.shm_rc;
}

WRAP(leat_err, leat_os_verbs_writer_open, struct os_rmem *rmem, struct os_actor *actor)
{
    trace("verbs of core %d; ", core_of(rmem, actor));
    return os.writer_rc;
}

WRAP(void, leat_os_verbs_actor_close, struct os_rmem *rmem, struct os_actor *actor)
{
    trace("no verbs of core %d; ", core_of(rmem, actor));
}

WRAP(void, leat_os_shm_close, struct os_rmem *rmem, struct os_actor *actor)
{
    trace("no shm of core %d; ", core_of(rmem, actor));
}

WRAP(void, leat_os_shm_maps_close, struct os_rmem *rmem)
{
    (void)rmem;
    trace("no maps; ");
}

WRAP(void, leat_os_rmem_host_close, struct os_rmem *rmem)
{
    (void)rmem;
    trace("no host; ");
}

WRAP(void, leat_os_verbs_close, struct os_rmem *rmem)
{
    (void)rmem;
    trace("no verbs; ");
}

/* ---- who a process is ---- */

static void identity(const char *text)
{
    uint64_t started = 99, space = 99;
    os.stat = text;
    os.stat_bytes = text ? (ssize_t)strlen(text) : 0;
    leat_os_process_identity(12, &started, &space);
    trace("-> %llu in %llu\n", (unsigned long long)started, (unsigned long long)space);
}

/* Goal: the start time of a process is the 22nd field, whatever the name of the process. The start time is 0 for a
 * process that is not there, or of which nothing can be read. It tells a process from a later process of the same
 * number. */
static void process_is_who_began_then(void **state)
{
    (void)state;
    memset(&os, 0, sizeof os);
    identity("12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23 24\n");
    identity("12 (a) b) 1 2 (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23 24\n");
    identity("12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4400");
    identity("12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21");
    identity("12 leat S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23");
    identity("");
    identity(NULL);
    os.descriptor = 900;
    identity("12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 6600");
    os.no_space = true;
    os.read_fails = true;
    identity("12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23 24\n");
    TRACE_IS("stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 2200 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 2200 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 4400 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 0 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 0 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 0 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; -> 0 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 6600 in 4026531836\n"
             "stat /proc/self/ns/pid; open /proc/12/stat; read 1023; close; -> 0 in 0\n");
}

/* ---- life ---- */

static struct leat_os_world world;

static void world_begin(void)
{
    static struct os_actor *actors[3];
    memset(&os, 0, sizeof os);
    memset(&world, 0, sizeof world);
    os.file_system = TMPFS;
    os.stat = "12 (leat) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23 24\n";
    os.stat_bytes = (ssize_t)strlen(os.stat);
    os.user = 1000;
    for (unsigned i = 0; i < 3; i++)
        world.actors[2 * i] = (struct os_actor *)(void *)&actors[i];      /* cores 0, 2, 4 */
    world.actors[LEAT_CORES_MAX] = (struct os_actor *)(void *)&actors[0]; /* which is none */
    snprintf(world.data_dir, sizeof world.data_dir, "data");
}

static void opened(const char *what, const struct leat_os_rmem_options *options)
{
    struct leat_error error = {0};
    trace("%s: ", what);
    leat_err rc = leat_os_rmem_open(&world, options, &error);
    trace("-> %s \"%s\"", leat_err_name(rc), rc ? error.text : "");
    if (world.rmem) {
        const struct os_rmem *rmem = world.rmem;
        const char *why = leat_os_rmem_no_verbs(&world);
        trace(", kinds %u, no verbs: %s, began %llu in %llu, boot %d, host %d%s", rmem->host.kinds,
              why ? why : "there are", (unsigned long long)rmem->process_started,
              (unsigned long long)rmem->pid_space, rmem->boot_id[0],
              core_of(rmem, rmem->host_actor), rmem->helper_started ? ", helped" : "");
    }
    trace("\n");
    if (!world.rmem) return;
    leat_os_rmem_stop(world.rmem);
    leat_os_rmem_actor_fini(world.rmem, world.actors[2]);
    leat_os_rmem_close(world.rmem);
    trace("\n");
    world.rmem = NULL;
}

static void transports_are_opened_in_order(void **state)
{
    (void)state;
    struct leat_os_rmem_options options = {.host = 2};
    world_begin();
    assert_string_equal(leat_os_rmem_no_verbs(&world), "one-sided writes are off");
    opened("an ordinary account", &options);
    os.user = 999;
    opened("a system account", &options);
    os.file_system = TMPFS + 1;
    opened("on a disk", &options);
    os.file_system = TMPFS;
    os.statfs_fails = true;
    opened("on who knows what", &options);
    os.statfs_fails = false;
    options.no_shm = true;
    opened("without shm", &options);
    options.verbs_host = "10.0.0.1";
    opened("with verbs and no device", &options);
    os.verbs = true;
    opened("with verbs alone", &options);
    options.no_shm = false;
    opened("with both", &options);
    TRACE_IS("an ordinary account: real data; file system of /real; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; host, folder /real in memory; shm of core 0; shm of "
             "core 2; shm of core 4; thread; -> OK \"\", kinds 8, no verbs: RDMA is not asked for, "
             "began 2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "a system account: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; host, folder /dev/shm in memory; shm of core 0; shm "
             "of core 2; shm of core 4; thread; -> OK \"\", kinds 8, no verbs: RDMA is not asked "
             "for, began 2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "on a disk: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; host, folder /dev/shm; shm of core 0; shm of core "
             "2; shm of core 4; thread; -> OK \"\", kinds 8, no verbs: RDMA is not asked for, "
             "began 2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "on who knows what: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; host, folder /dev/shm; shm of core 0; shm of core "
             "2; shm of core 4; thread; -> OK \"\", kinds 8, no verbs: RDMA is not asked for, "
             "began 2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "without shm: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; host, folder /dev/shm in memory; thread; -> OK "
             "\"\", kinds 0, no verbs: RDMA is not asked for, began 2200 in 4026531836, boot 98, "
             "host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "with verbs and no device: real data; file system of /dev/shm; stat "
             "/proc/self/ns/pid; open /proc/12/stat; read 1023; close; verbs at 10.0.0.1; host, "
             "folder /dev/shm in memory; thread; -> OK \"\", kinds 0, no verbs: no device, began "
             "2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "with verbs alone: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; verbs at 10.0.0.1; host, folder /dev/shm in memory; "
             "verbs of core 0; verbs of core 2; verbs of core 4; thread; -> OK \"\", kinds 16, no "
             "verbs: there are, began 2200 in 4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
             "with both: real data; file system of /dev/shm; stat /proc/self/ns/pid; open "
             "/proc/12/stat; read 1023; close; verbs at 10.0.0.1; host, folder /dev/shm in memory; "
             "shm of core 0; verbs of core 0; shm of core 2; verbs of core 2; shm of core 4; verbs "
             "of core 4; thread; -> OK \"\", kinds 24, no verbs: there are, began 2200 in "
             "4026531836, boot 98, host 2, helped\n"
             "join; no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n");
}

static void transports_that_do_not_open_say_why(void **state)
{
    (void)state;
    const struct leat_os_rmem_options options = {.host = 2, .verbs_host = "10.0.0.1"};
    world_begin();
    os.verbs = true;
    world.data_fd = -1;
    opened("no data directory", &options);
    world.data_fd = 0;
    os.no_real_path = true;
    opened("no real path", &options);
    os.no_real_path = false;
    os.host_rc = LEAT_E_LOCKED;
    opened("no host", &options);
    os.host_rc = LEAT_OK;
    os.shm_rc = LEAT_E_NO_MEMORY;
    opened("no shm", &options);
    os.shm_rc = LEAT_OK;
    os.writer_rc = LEAT_E_NO_MEMORY;
    opened("no verbs for a writer", &options);
    os.writer_rc = LEAT_OK;
    os.no_thread = true;
    opened("no thread", &options);
    os.no_thread = false;
    leat_mem_fail_at(1);
    opened("no memory", &options);
    leat_mem_fail_at(0);
    TRACE_IS(
        "no data directory: -> CONFIG \"memory for other nodes needs a data directory\"\n"
        "no real path: real data; -> CONFIG \"can't resolve the data directory: No such file or "
        "directory\", kinds 0, no verbs: , began 0 in 0, boot 0, host 2\n"
        "no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
        "no host: real data; file system of /real; stat /proc/self/ns/pid; open /proc/12/stat; "
        "read 1023; close; verbs at 10.0.0.1; host, folder /real in memory; -> LOCKED \"no host\", "
        "kinds 0, no verbs: there are, began 2200 in 4026531836, boot 98, host 2\n"
        "no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
        "no shm: real data; file system of /real; stat /proc/self/ns/pid; open /proc/12/stat; read "
        "1023; close; verbs at 10.0.0.1; host, folder /real in memory; shm of core 0; -> NO_MEMORY "
        "\"no memory for the transports\", kinds 24, no verbs: there are, began 2200 in "
        "4026531836, boot 98, host 2\n"
        "no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
        "no verbs for a writer: real data; file system of /real; stat /proc/self/ns/pid; open "
        "/proc/12/stat; read 1023; close; verbs at 10.0.0.1; host, folder /real in memory; shm of "
        "core 0; verbs of core 0; -> NO_MEMORY \"no memory for the transports\", kinds 24, no "
        "verbs: there are, began 2200 in 4026531836, boot 98, host 2\n"
        "no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
        "no thread: real data; file system of /real; stat /proc/self/ns/pid; open /proc/12/stat; "
        "read 1023; close; verbs at 10.0.0.1; host, folder /real in memory; shm of core 0; verbs "
        "of core 0; shm of core 2; verbs of core 2; shm of core 4; verbs of core 4; thread; -> "
        "NO_MEMORY \"can't start the transports' thread\", kinds 24, no verbs: there are, began "
        "2200 in 4026531836, boot 98, host 2\n"
        "no verbs of core 2; no shm of core 2; no maps; no host; no verbs; \n"
        "no memory: -> NO_MEMORY \"no memory for the transports\"\n");
}

/* ---- jobs ---- */

static void job_run(struct os_job *job)
{
    trace("job %d; ", (int)(intptr_t)job->mail.deliver);
}

/* Goal: jobs are taken in the order in which they came. At the end jobs without an owner are run, and jobs of an owner
 * are given up by the owner; the next job that comes is the first. */
static void jobs_go_in_their_order(void **state)
{
    (void)state;
    const struct leat_os_rmem_options options = {.host = 0};
    struct leat_error error;
    struct os_job jobs[4];
    world_begin();
    assert_int_equal(leat_os_rmem_open(&world, &options, &error), LEAT_OK);
    struct os_rmem *rmem = world.rmem;
    trace_begin();
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct os_job){.next = &jobs[0], .run = job_run};
        jobs[i].mail.deliver = (void (*)(void *, struct leat_mail *))(intptr_t)i;
        jobs[i].actor = i == 1 ? world.actors[0] : NULL;
        leat_os_job_start(rmem, &jobs[i]);
    }
    assert_ptr_equal(rmem->jobs, &jobs[0]);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(jobs[i].next, i < 3 ? &jobs[i + 1] : NULL);
    leat_os_rmem_stop(rmem);
    assert_true(rmem->stop);
    assert_null(rmem->jobs);
    leat_os_rmem_stop(rmem); /* again: nothing */
    leat_os_job_start(rmem, &jobs[2]);
    assert_ptr_equal(rmem->jobs, &jobs[2]);
    assert_null(jobs[2].next);
    leat_os_rmem_close(rmem);
    TRACE_IS("join; job 0; job 2; job 3; no maps; no host; no verbs; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(process_is_who_began_then),
        TRACE_TEST(transports_are_opened_in_order),
        TRACE_TEST(transports_that_do_not_open_say_why),
        TRACE_TEST(jobs_go_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
