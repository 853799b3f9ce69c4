/* SPDX-License-Identifier: Apache-2.0 */
/* os/rmem_shm.c alone: the system's calls and what it calls of os/ are played here (--wrap), each is a line of the
 * trace, and a test may have the n-th of a kind refused. One core's port, with one arena at a time to reach. For one
 * test program only. */
#ifndef LEAT_TESTS_OS_SHM_ALONE_H
#define LEAT_TESTS_OS_SHM_ALONE_H

#include "os/rmem.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)
#define PATH "/dev/shm/leat-rmem-x"

enum call { OPEN, STAT, MAP, RESERVE, STEP_MAP, PROCESS, WATCH };
static struct {
    enum call call;
    int skip, error; /* the call after so many fails by that; 0: none */
} script;

static struct {
    union {
        struct rmem_header header;
        uint8_t bytes[RMEM_HEADER_BYTES];
    } page;
    struct stat st;
    bool ended;              /* nobody holds the file's lock */
    uint64_t started, space; /* of the process of that number */
    uint8_t *memory;         /* of the arena, of three steps */
    struct os_job *jobs[8];
    struct leat_mail *mails[8];
    unsigned job_count, mail_count, opened;
    int process; /* its descriptor */
    void (*on_ready)(void *user);
    void *on_ready_user;
} played __attribute__((aligned(4096)));

static void plan(enum call call, int skip, int error)
{
    script.call = call;
    script.skip = skip;
    script.error = error;
}

static bool fails(enum call call)
{
    if (script.error == 0 || script.call != call || script.skip-- != 0) return false;
    errno = script.error;
    script.error = 0;
    return true;
}

/* ---- the system ---- */
int __wrap_open64(const char *path, int how, ...);
int __wrap_open64(const char *path, int how, ...)
{
    trace("open %s%s\n", path, how == (O_RDWR | O_CLOEXEC | O_NOFOLLOW) ? "" : " otherwise");
    return fails(OPEN) ? -1 : (int)(10 + played.opened++);
}
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    return 0;
}
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out)
{
    trace("stat %d\n", fd);
    *out = played.st;
    return fails(STAT) ? -1 : 0;
}
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    if (how == LOCK_UN) {
        trace("unlock %d\n", fd);
        return 0;
    }
    trace("lock %d%s\n", fd, how == (LOCK_SH | LOCK_NB) ? "" : " otherwise");
    errno = EWOULDBLOCK;
    return played.ended ? 0 : -1;
}
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return 42;
}
pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return 4242;
}
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    pid_t pid = va_arg(args, pid_t);
    trace("process %d %d%s\n", (int)pid, va_arg(args, int),
          number == SYS_pidfd_open ? "" : " otherwise");
    va_end(args);
    return fails(PROCESS) ? -1 : played.process;
}
void *__real_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from)
{
    bool usual = !at && !from && what == PROT_READ && how == MAP_SHARED;
    trace("map %zu %d%s\n", bytes, fd, usual ? "" : " otherwise");
    return fails(MAP) ? MAP_FAILED : (void *)&played.page;
}
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    const char *what = at == &played.page ? "header" : at == played.memory ? "arena" : "otherwise";
    trace("unmap %s %zu\n", what, bytes);
    return 0;
}

/* ---- the others of os/ ---- */
static struct os_rmem rmem;
static struct os_actor actor;

uint8_t *__wrap_leat_os_addresses_reserve(uint64_t bytes);
uint8_t *__wrap_leat_os_addresses_reserve(uint64_t bytes)
{
    trace("reserve %llu\n", (unsigned long long)(bytes / STEP));
    return fails(RESERVE) ? NULL : played.memory;
}
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base);
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base)
{
    trace("step %d %llu%s\n", fd, (unsigned long long)step,
          base == played.memory ? "" : " otherwise");
    return fails(STEP_MAP) ? LEAT_E_NO_MEMORY : LEAT_OK;
}
void __wrap_leat_os_step_touch(uint8_t *at, bool fresh);
void __wrap_leat_os_step_touch(uint8_t *at, bool fresh)
{
    trace("touch %lld %d\n", (long long)(at - played.memory) / LEAT_ARENA_STEP_BYTES, fresh);
}
void __wrap_leat_os_process_identity(long pid, uint64_t *out_started, uint64_t *out_space);
void __wrap_leat_os_process_identity(long pid, uint64_t *out_started, uint64_t *out_space)
{
    trace("identity %ld\n", pid);
    *out_started = played.started;
    *out_space = played.space;
}
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job);
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job)
{
    assert_ptr_equal(at, &rmem);
    assert_ptr_equal(job->actor, &actor);
    trace("job\n");
    assert_true(played.job_count < 8);
    played.jobs[played.job_count++] = job;
}
struct os_watch *__wrap_leat_os_watch_open(struct os_actor *at, int fd, void (*on_ready)(void *),
                                           void *user);
struct os_watch *__wrap_leat_os_watch_open(struct os_actor *at, int fd, void (*on_ready)(void *),
                                           void *user)
{
    static int watch;
    assert_ptr_equal(at, &actor);
    trace("watch %d\n", fd);
    played.on_ready = on_ready;
    played.on_ready_user = user;
    return fails(WATCH) ? NULL : (struct os_watch *)&watch;
}
void __wrap_leat_os_watch_close(struct os_watch **watch);
void __wrap_leat_os_watch_close(struct os_watch **watch)
{
    if (*watch) trace("watch ends\n");
    *watch = NULL;
}
static void mail_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &actor);
    assert_int_equal(to, 3);
    trace("mail\n");
    assert_true(played.mail_count < 8);
    played.mails[played.mail_count++] = mail;
}

/* ---- the port ---- */
static const struct leat_rmem *port;
static struct leat_error error;
static struct leat_rmem_address address;
static struct rmem_shm_grant section;
static char path[300];
static size_t port_bytes; /* without targets */

static int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof played);
    memset(&rmem, 0, sizeof rmem);
    memset(&actor, 0, sizeof actor);
    memset(&error, 0, sizeof error);
    plan(OPEN, 0, 0);
    played.process = 7;
    played.memory = __real_mmap64(NULL, 3 * STEP, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return played.memory == MAP_FAILED;
}

/* An arena of three steps, of which two are there, and what a grant of it says. */
static void arena_lies(void)
{
    struct rmem_header *header = &played.page.header;
    address = (struct leat_rmem_address){.limit_bytes = 3 * STEP, .number = 1};
    for (unsigned i = 0; i < LEAT_RMEM_ID_BYTES; i++)
        address.id[i] = (uint8_t)(i + 1);
    memset(header, 0, sizeof *header);
    header->pool.magic = POOL_MAGIC;
    header->magic = RMEM_MAGIC;
    header->version = RMEM_VERSION;
    memcpy(header->pool.pool_id, address.id, LEAT_RMEM_ID_BYTES);
    header->limit_bytes = 3 * STEP;
    header->pool.steps = 2;
    header->control = RMEM_OPEN;
    played.st = (struct stat){.st_mode = S_IFREG | 0600, .st_uid = 42};
    played.st.st_size = (off_t)(POOL_DATA_OFFSET + 2 * STEP);
    played.started = 1000;
    played.space = 2000;
    section = (struct rmem_shm_grant){
        .process_started = 1000, .pid_space = 2000, .pid = 99, .path_bytes = strlen(PATH)};
    memset(rmem.boot_id, 'b', BOOT_ID_BYTES);
    memcpy(section.boot_id, rmem.boot_id, BOOT_ID_BYTES);
    snprintf(path, sizeof path, PATH);
}

static void port_opens(void)
{
    leat_list_init(&rmem.maps);
    actor.number = 3;
    actor.post = (struct leat_post){.ctx = &actor, .send = mail_send, .self = 3};
    assert_int_equal(leat_os_shm_open(&rmem, &actor), LEAT_OK);
    port = actor.env.rmems[0];
    port_bytes = leat_mem_bytes(LEAT_MEM_NET);
    arena_lies();
    trace_begin();
}

static void port_closes(void)
{
    leat_os_shm_close(&rmem, &actor);
    leat_os_shm_maps_close(&rmem);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
}

static int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    uint8_t *memory = played.memory;
    (void)__real_munmap(memory, 3 * STEP);
    return leat_mem_bytes(LEAT_MEM_NET) != 0;
}

#define SHM_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static void on_attached(void *user, struct leat_rmem_target *target)
{
    assert_true(target->attached && !target->failed);
    trace("%s attached\n", (const char *)user);
}

static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *why)
{
    assert_true(target->failed);
    trace("%s failed: %d %s\n", (const char *)user, why->code, why->text);
}

static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static leat_err attach(const char *user, struct leat_rmem_target **out_target)
{
    uint8_t body[RMEM_SECTION_BYTES];
    struct leat_rmem_grant grant = {0};
    size_t path_bytes = strlen(path);
    memcpy(body, &section, sizeof section);
    memcpy(body + sizeof section, path, path_bytes);
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_SHM, body, sizeof section + path_bytes));
    return port->attach(port->ctx, 5, &grant, &handler, (void *)(uintptr_t)user, out_target,
                        &error);
}

/* The helper's thread runs the oldest job. */
static struct os_job *job_runs(void)
{
    assert_true(played.job_count > 0);
    struct os_job *job = played.jobs[0];
    memmove(played.jobs, played.jobs + 1, --played.job_count * sizeof played.jobs[0]);
    job->run(job);
    return job;
}

/* ... and its mail comes. */
static void job_ends(void)
{
    struct os_job *job = job_runs();
    job->mail.deliver(NULL, &job->mail);
}

static void mail_comes(void)
{
    assert_true(played.mail_count > 0);
    struct leat_mail *mail = played.mails[0];
    memmove(played.mails, played.mails + 1, --played.mail_count * sizeof played.mails[0]);
    mail->deliver(NULL, mail);
}

#endif
