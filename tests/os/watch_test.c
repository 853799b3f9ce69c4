/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors on an actor's loop (os/rmem_base.c): which watcher is told that something can be read, and whose memory
 * the watcher is. */
#include "os/rmem.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static struct os_actor actor;

static void on_ready(void *user)
{
    ++*(unsigned *)user;
}

/* Goal: the watcher of a descriptor hears of it each time the loop comes round, as long as the descriptor can be read
 * and is watched; then nothing of it is left. */
static void watch_tells_who_asked(void **state)
{
    (void)state;
    unsigned told[2] = {0, 0};
    uint64_t number = 1;
    int fds[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
    assert_int_equal(uv_loop_init(&actor.loop), 0);
    struct os_watch *first = leat_os_watch_open(&actor, fds[0], on_ready, &told[0]);
    struct os_watch *second = leat_os_watch_open(&actor, fds[1], on_ready, &told[1]);
    assert_true(first && second);
    (void)uv_run(&actor.loop, UV_RUN_NOWAIT);
    assert_int_equal(told[0] + told[1], 0);
    assert_int_equal(write(fds[1], &number, sizeof number), sizeof number);
    for (unsigned i = 1; i <= 2; i++) {
        (void)uv_run(&actor.loop, UV_RUN_NOWAIT);
        assert_int_equal(told[0], 0);
        assert_int_equal(told[1], i);
    }
    leat_os_watch_close(&second);
    assert_null(second);
    leat_os_watch_close(&second);                                 /* there is none any more */
    assert_int_equal(uv_run(&actor.loop, UV_RUN_NOWAIT) != 0, 1); /* the other is left */
    assert_int_equal(told[1], 2);
    leat_os_watch_close(&first);
    assert_int_equal(uv_run(&actor.loop, UV_RUN_NOWAIT), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    assert_int_equal(uv_loop_close(&actor.loop), 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* Goal: a descriptor that can't be watched is refused, and leaves nothing. */
static void watch_that_is_refused_leaves_nothing(void **state)
{
    (void)state;
    unsigned told = 0;
    int fd = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(uv_loop_init(&actor.loop), 0);
    leat_mem_fail_at(1);
    assert_null(leat_os_watch_open(&actor, fd, on_ready, &told));
    leat_mem_fail_at(0);
    assert_null(leat_os_watch_open(&actor, -1, on_ready, &told));
    assert_int_equal(uv_run(&actor.loop, UV_RUN_NOWAIT), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    assert_int_equal(uv_loop_close(&actor.loop), 0);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_tells_who_asked),
        cmocka_unit_test(watch_that_is_refused_leaves_nothing),
    };
    return cmocka_run_group_tests_name("os watch", tests, NULL, NULL);
}
