/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that the kernel has under way at the same time: the requests to the kernel, and the outcome of each answer.
 * Method: the system's calls and the calls to the rest of the disk port stand here (--wrap); each is a line of the
 * trace. */
#include "os/internal.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

enum { WRITES = 16, CONTEXT = 4711 };

static struct os_disk_queue queue;
static struct leat_disk_io ios[WRITES], *several[WRITES];
static int fds[WRITES]; /* of each write's file; the address of the file names the write */
static struct {
    int setup_error;    /* 0: a context is made */
    long submits[4];    /* what each io_submit() gives; below zero that errno; 99: all */
    unsigned submitted; /* so many of these */
    struct {
        long count;     /* what io_getevents() gives; below zero that errno */
        unsigned at[4]; /* whose end each tells */
    } ends[4];
    unsigned ended;
} script;

int __wrap_leat_os_file_direct_fd(const struct leat_file *file);
int __wrap_leat_os_file_direct_fd(const struct leat_file *file)
{
    return *(const int *)(const void *)file;
}

static unsigned number_of(const struct leat_disk_io *io)
{
    return (unsigned)(io - ios);
}

void __wrap_leat_os_disk_io_run(struct leat_disk_io *io);
void __wrap_leat_os_disk_io_run(struct leat_disk_io *io)
{
    trace("run %u\n", number_of(io));
}

void __wrap_leat_os_disk_write_ended(struct leat_disk_io *io, int64_t result);
void __wrap_leat_os_disk_write_ended(struct leat_disk_io *io, int64_t result)
{
    trace("ended %u: %lld\n", number_of(io), (long long)result);
}

static long answer(long number)
{
    if (number >= 0) return number;
    errno = (int)-number;
    return -1;
}

static long submit(aio_context_t context, long count, struct iocb **blocks)
{
    assert_int_equal(context, CONTEXT);
    trace("submit");
    for (long i = 0; i < count; i++) {
        struct iocb want = {.aio_data = (uint64_t)i,
                            .aio_lio_opcode = IOCB_CMD_PWRITE,
                            .aio_fildes = (uint32_t)fds[i],
                            .aio_buf = (uintptr_t)ios[i].buffer,
                            .aio_nbytes = ios[i].bytes,
                            .aio_offset = (int64_t)ios[i].offset};
        assert_memory_equal(blocks[i], &want, sizeof want);
        trace(" %ld", i);
    }
    trace("\n");
    long taken = script.submits[script.submitted++];
    return answer(taken == 99 ? count : taken);
}

static long ends(aio_context_t context, long least, long most, struct io_event *events, void *until)
{
    assert_int_equal(context, CONTEXT);
    assert_null(until);
    trace("wait for %ld to %ld\n", least, most);
    unsigned turn = script.ended++;
    for (long i = 0; i < script.ends[turn].count; i++) {
        unsigned at = script.ends[turn].at[i];
        /* The first one is refused, the others are whole. */
        events[i] = (struct io_event){.data = at, .res = at ? (int64_t)ios[at].bytes : -EIO};
    }
    return answer(script.ends[turn].count);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    long result = 0;
    va_start(args, number);
    if (number == SYS_io_setup) {
        trace("setup %d\n", va_arg(args, int));
        aio_context_t *made = va_arg(args, aio_context_t *);
        assert_int_equal(*made, 0); /* the kernel refuses any other */
        if (script.setup_error == 0) *made = CONTEXT;
        result = answer(-script.setup_error);
    } else if (number == SYS_io_destroy) {
        assert_int_equal(va_arg(args, aio_context_t), CONTEXT);
        trace("destroy\n");
    } else if (number == SYS_io_submit) {
        aio_context_t context = va_arg(args, aio_context_t);
        long count = va_arg(args, long);
        result = submit(context, count, va_arg(args, struct iocb **));
    } else if (number == SYS_io_getevents) {
        aio_context_t context = va_arg(args, aio_context_t);
        long least = va_arg(args, long), most = va_arg(args, long);
        struct io_event *events = va_arg(args, struct io_event *);
        result = ends(context, least, most, events, va_arg(args, void *));
    } else { /* before main(), in a build of mutants, which notes what a test comes to */
        long a = va_arg(args, long), b = va_arg(args, long), c = va_arg(args, long);
        long d = va_arg(args, long), e = va_arg(args, long);
        result = __real_syscall(number, a, b, c, d, e, va_arg(args, long));
    }
    va_end(args);
    return result;
}

static int begin(void **state)
{
    (void)state;
    memset(&queue, 0, sizeof queue);
    memset(&script, 0, sizeof script);
    for (unsigned i = 0; i < WRITES; i++) {
        fds[i] = (int)i; /* 0 is one, too */
        several[i] = &ios[i];
        ios[i] = (struct leat_disk_io){.kind = LEAT_DISK_WRITE,
                                       .file = (struct leat_file *)(void *)&fds[i],
                                       .offset = 4096 * (UINT64_C(10) + i),
                                       .buffer = (void *)(uintptr_t)(0x100000 * (i + 1)),
                                       .bytes = 4096 * (size_t)(i + 1)};
    }
    trace_begin();
    return 0;
}

/* Goal: all writes are given to the kernel at once and waited for, in whichever parts and order they end; the context
 * is made once, and goes at the end. */
static void writes_are_given_at_once_and_waited_for(void **state)
{
    (void)state;
    script.submits[0] = script.submits[1] = 99;
    script.ends[0].count = -EINTR;
    script.ends[1].count = 2;
    script.ends[1].at[0] = 2;
    script.ends[2].count = 1;
    script.ends[2].at[0] = 1;
    leat_os_disk_together_run(&queue, several, 3);
    TRACE_IS(
        "setup 16\nsubmit 0 1 2\nwait for 3 to 3\nwait for 3 to 3\nended 2: 12288\nended 0: -5\n"
        "wait for 1 to 1\nended 1: 8192\n");
    script.ends[3].count = 2;
    script.ends[3].at[0] = 1;
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("submit 0 1\nwait for 2 to 2\nended 1: 8192\nended 0: -5\n");
    leat_os_disk_together_fini(&queue);
    TRACE_IS("destroy\n");
    leat_os_disk_together_fini(&queue); /* once */
    TRACE_IS("");
}

/* Goal: operations that the kernel does not take are run one after the other: the rest of them, or all. */
static void writes_that_are_not_taken_are_run(void **state)
{
    (void)state;
    script.submits[0] = -EINTR; /* which is no answer */
    script.submits[1] = 2;
    script.ends[0].count = 2;
    script.ends[0].at[1] = 1;
    leat_os_disk_together_run(&queue, several, 4);
    TRACE_IS("setup 16\nsubmit 0 1 2 3\nsubmit 0 1 2 3\nrun 2\nrun 3\nwait for 2 to 2\nended 0: "
             "-5\nended 1: 8192\n");
    errno = EINTR; /* left over from elsewhere */
    script.submits[2] = 1;
    script.ends[1].count = 1;
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("submit 0 1\nrun 1\nwait for 1 to 1\nended 0: -5\n");
    script.submits[3] = -EAGAIN;
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("submit 0 1\nrun 0\nrun 1\n");
    script.submitted = 0;
    script.submits[0] = 0;
    errno = EINTR;
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("submit 0 1\nrun 0\nrun 1\n");
}

/* Goal: where one of the files is not written directly, and where no context is to be had, all are run one after the
 * other; what was refused once is not asked for again. */
static void writes_are_run_where_the_kernel_gains_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        int fd = fds[i];
        fds[i] = -1;
        leat_os_disk_together_run(&queue, several, 3);
        TRACE_IS("run 0\nrun 1\nrun 2\n");
        fds[i] = fd;
    }
    script.setup_error = EAGAIN;
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("setup 16\nrun 0\nrun 1\n");
    leat_os_disk_together_run(&queue, several, 2);
    TRACE_IS("run 0\nrun 1\n");
    leat_os_disk_together_fini(&queue);
    TRACE_IS("");
}

/* What the kernel answers when it is asked what has ended, in a process of its own: how that ends. */
static int ends_by(long answer_, int left_over)
{
    int result = 0;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)freopen("/dev/null", "w", stderr);
        script.submits[0] = 99;
        script.ends[0].count = answer_;
        script.ends[1].count = 2;
        script.ends[1].at[1] = 1;
        errno = left_over;
        leat_os_disk_together_run(&queue, several, 2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFSIGNALED(result) ? WTERMSIG(result) : 0;
}

/* Goal: there is no going on without an answer: the kernel has the buffers. */
static void writes_of_unknown_end_are_the_end(void **state)
{
    (void)state;
    assert_int_equal(ends_by(-EINTR, 0), 0);
    assert_int_equal(ends_by(-EINVAL, 0), SIGABRT);
    assert_int_equal(ends_by(0, EINTR), SIGABRT);
}

/* Goal: there is room for as many as the queue brings. */
static void writes_may_be_as_many_as_there_is_room_for(void **state)
{
    (void)state;
    script.submits[0] = -EIO;
    leat_os_disk_together_run(&queue, several, WRITES);
    TRACE_IS("setup 16\nsubmit 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\nrun 0\nrun 1\nrun 2\nrun "
             "3\nrun 4\nrun 5\nrun 6\n"
             "run 7\nrun 8\nrun 9\nrun 10\nrun 11\nrun 12\nrun 13\nrun 14\nrun 15\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(writes_are_given_at_once_and_waited_for, begin),
        cmocka_unit_test_setup(writes_that_are_not_taken_are_run, begin),
        cmocka_unit_test_setup(writes_are_run_where_the_kernel_gains_nothing, begin),
        cmocka_unit_test_setup(writes_of_unknown_end_are_the_end, begin),
        cmocka_unit_test_setup(writes_may_be_as_many_as_there_is_room_for, begin),
    };
    return cmocka_run_group_tests_name("os disk together", tests, NULL, NULL);
}
