/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base: errors, memory, checksums, timers, node log, random. */
#include "base/address.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/copy.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "base/random.h"
#include "base/rmem.h"
#include "base/timer.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void error_known_code_has_name_class_and_text(void **state)
{
    assert_string_equal(leat_err_name(LEAT_E_SEQUENCE_GAP), "SEQUENCE_GAP");
    assert_int_equal(leat_err_class(LEAT_E_SEQUENCE_GAP), LEAT_CLASS_REJECT);
    assert_string_equal(leat_err_class_name(LEAT_E_NOT_OWNER), "reroute");
    assert_string_equal(leat_err_class_name(LEAT_OK), "ok");
    assert_string_equal(leat_err_class_name(LEAT_E_AGAIN), "retry");
    assert_string_equal(leat_err_text(LEAT_OK), "ok");
}

/* A number from a newer server must not crash an older client, nor look retryable. */
static void error_unknown_code_is_fatal_and_named(void **state)
{
    leat_err code = (leat_err)9999;
    assert_string_equal(leat_err_name(code), "UNKNOWN_ERROR");
    assert_int_equal(leat_err_class(code), LEAT_CLASS_FATAL);
    assert_true(strlen(leat_err_text(code)) > 0);
}

static void error_long_sentence_is_truncated(void **state)
{
    struct leat_error error;
    char text[1000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    assert_int_equal(leat_error_set(&error, LEAT_E_INVALID, "%s", text), LEAT_E_INVALID);
    assert_int_equal(strlen(error.text), LEAT_ERROR_TEXT_BYTES - 1);
    assert_int_equal(leat_error_set(NULL, LEAT_E_DISK, "%d", 1), LEAT_E_DISK);
    leat_error_set(&error, LEAT_E_DISK, "the disk");
    leat_error_set(&error, LEAT_E_AGAIN, "%s", error.text); /* told on as it is */
    assert_int_equal(error.code, LEAT_E_AGAIN);
    assert_string_equal(error.text, "the disk");
    leat_error_set(&error, LEAT_E_AGAIN, "log %u: %s", 1, error.text);
    assert_string_equal(error.text, "log 1: the disk");
}

static void crc_check_value_is_standard(void **state)
{
    assert_int_equal(leat_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(leat_crc32c(0, "", 0), 0);
    uint8_t zeros[32] = {0};
    assert_int_equal(leat_crc32c(0, zeros, 32), 0x8a9136aau); /* RFC 3720, B.4 */
}

static void block_of_any_size_and_place_is_copied_and_nothing_beside_it(void **state)
{
    enum { ROOM = 4 * LEAT_COPY_BLOCK_BYTES_MIN, MOST = LEAT_COPY_BLOCK_BYTES_MIN + 130 };
    static uint8_t from[ROOM], to[ROOM], expected[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t bytes = 0; bytes <= MOST; bytes += bytes < MOST - 200 ? 97 : 1) {
        size_t from_at = bytes % 67, to_at = 100 + bytes % 61;
        memset(to, 0xa5, sizeof to);
        memset(expected, 0xa5, sizeof expected);
        memcpy(expected + to_at, from + from_at, bytes);
        leat_copy_block(to + to_at, from + from_at, bytes);
        assert_memory_equal(to, expected, sizeof to);
    }
    leat_copy_block(NULL, NULL, 0);
}

static void crc_cut_anywhere_chains(void **state)
{
    uint8_t bytes[300];
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)leat_xoshiro_next(&random);
    uint32_t whole = leat_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint32_t part = leat_crc32c(0, bytes, cut);
        assert_int_equal(leat_crc32c(part, bytes + cut, sizeof bytes - cut), whole);
    }
}

/* Each bit of the length has a factor of its own: all lengths up to a few KiB by both ways of
 * multiplying, and the larger powers of two over zeros. */
static void crc_joined_is_crc_of_both(void **state)
{
    (void)state;
    enum { LENGTH_MAX = 3000, LARGEST = 1 << 24 };
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_TEST, LARGEST, 1);
    assert_non_null(bytes);
    uint32_t front = leat_crc32c(0, "a front of 21 bytes..", 21);
    for (size_t i = 0; i < LENGTH_MAX; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 13);
    for (size_t length = 0; length < LARGEST;
         length = length < LENGTH_MAX ? length + 1 : length * 2) {
        uint32_t rest = leat_crc32c(0, bytes, length), whole = leat_crc32c(front, bytes, length);
        assert_int_equal(leat_crc32c_join(front, rest, length), whole);
        assert_int_equal(leat_crc32c_join_plain(front, rest, (uint32_t)length), whole);
    }
    leat_mem_free(bytes);
}

static void zero_block_clears_its_bytes_and_no_others(void **state)
{
    (void)state;
    enum { ROOM = 1024, AROUND = 128 };
    _Alignas(64) uint8_t room[ROOM + 2 * AROUND];
    for (size_t at = 0; at < AROUND; at += at < 2 ? 1 : 31) {
        for (size_t bytes = 0; bytes <= ROOM; bytes += bytes % 64 ? 63 : 1) {
            memset(room, 0xa5, sizeof room);
            leat_zero_block(room + at, bytes);
            for (size_t i = 0; i < sizeof room; i++)
                assert_int_equal(room[i], i >= at && i < at + bytes ? 0 : 0xa5);
        }
    }
}

static void memory_copy_holds_the_bytes_and_is_counted(void **state)
{
    (void)state;
    size_t before = leat_mem_bytes(LEAT_MEM_TEST);
    char *copy = leat_mem_copy(LEAT_MEM_TEST, "stream", 7);
    assert_non_null(copy);
    assert_string_equal(copy, "stream");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before + 7);
    leat_mem_free(copy);
    void *empty = leat_mem_copy(LEAT_MEM_TEST, NULL, 0);
    assert_non_null(empty);
    leat_mem_free(empty);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before);
    leat_mem_fail_at(1);
    assert_null(leat_mem_copy(LEAT_MEM_TEST, "stream", 7));
    leat_mem_fail_at(0);
}

static void mem_counts_follow_blocks(void **state)
{
    size_t before = leat_mem_bytes(LEAT_MEM_TEST);
    uint8_t *block = leat_mem_calloc(LEAT_MEM_TEST, 10, 10);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before + 100);
    block[99] = 7;
    block = leat_mem_realloc(LEAT_MEM_TEST, block, 1, 1000);
    assert_int_equal(block[99], 7);
    for (int i = 100; i < 1000; i++)
        assert_int_equal(block[i], 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before + 1000);
    block = leat_mem_realloc(LEAT_MEM_TEST, block, 1, 50);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before + 50);
    leat_mem_free(block);
    leat_mem_free(NULL);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before);
    char *text = leat_mem_strdup(LEAT_MEM_TEST, "leat");
    assert_string_equal(text, "leat");
    leat_mem_free(text);
}

static void mem_overflowing_product_is_refused(void **state)
{
    size_t huge = SIZE_MAX / 2; /* hidden from the compiler's own check */
    assert_null(leat_mem_calloc(LEAT_MEM_TEST, huge, 3));
    assert_null(leat_mem_calloc(LEAT_MEM_TEST, SIZE_MAX, 1));
}

static void mem_requested_failure_hits_that_call_once(void **state)
{
    leat_mem_fail_at(2);
    void *first = leat_mem_calloc(LEAT_MEM_TEST, 1, 8);
    assert_non_null(first);
    assert_null(leat_mem_realloc(LEAT_MEM_TEST, first, 1, 16));
    void *third = leat_mem_realloc(LEAT_MEM_TEST, first, 1, 16);
    assert_non_null(third);
    assert_int_equal(leat_mem_calls(), 3);
    leat_mem_fail_at(0);
    leat_mem_free(third);
}

static void *mem_hammer(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        void *block = leat_mem_calloc(LEAT_MEM_TEST, 1, (size_t)(i % 64) + 1);
        leat_mem_free(block);
    }
    return NULL;
}

static void mem_two_threads_lose_no_count(void **state)
{
    size_t before = leat_mem_bytes(LEAT_MEM_TEST);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mem_hammer, NULL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), before);
}

/* Runs `body` in a child and returns the signal that ended it (0: none). */
static int child_signal(void (*body)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void free_damaged(void)
{
    char *volatile block = leat_mem_calloc(LEAT_MEM_TEST, 1, 8);
    uint32_t *volatile magic = (uint32_t *)(void *)(block - 4);
    *magic = 0; /* what an overrun of the block before does */
    leat_mem_free(block);
}
static void compare_wrong(void)
{
    volatile int one = 1;
    LEAT_ASSERT_CMP(one, ==, 2);
}

static void assert_failed_condition_aborts(void **state)
{
    assert_int_equal(child_signal(compare_wrong), SIGABRT);
}
static void *may_on_its_own_thread(void *actor)
{
    return leat_actor_may(actor) ? actor : NULL;
}
static void actor_that_runs_may_and_no_other(void **state)
{
    int one = 0, other = 0;
    pthread_t thread;
    void *there = NULL;
    assert_true(leat_actor_may(&one)); /* none runs yet */
    leat_actor_runs(&one);
    assert_true(leat_actor_may(&one));
    assert_false(leat_actor_may(&other));
    assert_int_equal(pthread_create(&thread, NULL, may_on_its_own_thread, &other), 0);
    assert_int_equal(pthread_join(thread, &there), 0);
    assert_ptr_equal(there, &other); /* said of this thread only */
    leat_actor_runs(NULL);
    assert_true(leat_actor_may(&other));
}
static void mem_damaged_header_aborts(void **state)
{
    assert_int_equal(child_signal(free_damaged), SIGABRT);
}

/* ---- timers, on a clock that the test moves ---- */
struct fake_clock {
    uint64_t now_us, wake_us;
    unsigned asked;
};
static uint64_t fake_now(void *ctx)
{
    return ((struct fake_clock *)ctx)->now_us;
}
static int64_t fake_wall(void *ctx)
{
    return 0;
}
static void fake_wake(void *ctx, uint64_t at_us)
{
    struct fake_clock *fake = ctx;
    fake->wake_us = at_us;
    fake->asked++;
}
struct timer_fixture {
    struct fake_clock fake;
    struct leat_clock clock;
    struct leat_timers timers;
    uint64_t expired[64];
    unsigned expired_count;
};
static void timer_fixture_init(struct timer_fixture *fixture, uint32_t capacity)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->fake.wake_us = UINT64_MAX;
    fixture->clock = (struct leat_clock){&fixture->fake, fake_now, fake_wall, fake_wake};
    assert_int_equal(leat_timers_init(&fixture->timers, &fixture->clock, capacity), LEAT_OK);
}
static void timer_note(struct leat_timer *timer)
{
    struct timer_fixture *fixture = timer->owner;
    fixture->expired[fixture->expired_count++ % 64] = timer->at_us;
}
static void timer_again(struct leat_timer *timer)
{
    struct timer_fixture *fixture = timer->owner;
    fixture->expired_count++;
    leat_timer_start(&fixture->timers, timer, 0);
}

static void timers_random_order_expire_sorted(void **state)
{
    struct timer_fixture fixture;
    struct leat_timer timer[64] = {0};
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 7);
    for (int round = 0; round < 200; round++) {
        timer_fixture_init(&fixture, 64);
        for (int i = 0; i < 64; i++) {
            timer[i] = (struct leat_timer){.on_expired = timer_note, .owner = &fixture};
            leat_timer_start(&fixture.timers, &timer[i], leat_xoshiro_below(&random, 1000));
        }
        unsigned stopped = 0;
        for (int i = 0; i < 64; i += 3, stopped++)
            leat_timer_stop(&fixture.timers, &timer[i]);
        for (int i = 1; i < 64; i += 7)
            if (leat_timer_armed(&timer[i]))
                leat_timer_start(&fixture.timers, &timer[i], leat_xoshiro_below(&random, 1000));
        while (fixture.fake.wake_us != UINT64_MAX) {
            fixture.fake.now_us = fixture.fake.wake_us;
            fixture.fake.wake_us = UINT64_MAX;
            leat_timers_run(&fixture.timers);
        }
        assert_int_equal(fixture.expired_count, 64 - stopped);
        for (unsigned i = 1; i < fixture.expired_count; i++)
            assert_true(fixture.expired[i - 1] <= fixture.expired[i]);
        assert_int_equal(fixture.timers.count, 0);
        leat_timers_fini(&fixture.timers);
    }
}

/* A request's timeout is armed and stopped each time: the clock must not be asked each time. */
static void timers_stopped_early_ask_clock_once(void **state)
{
    struct timer_fixture fixture;
    timer_fixture_init(&fixture, 4);
    struct leat_timer timer = {.on_expired = timer_note, .owner = &fixture};
    for (int i = 0; i < 100; i++) {
        fixture.fake.now_us += 10;
        leat_timer_start(&fixture.timers, &timer, 5000);
        leat_timer_stop(&fixture.timers, &timer);
    }
    assert_int_equal(fixture.fake.asked, 1);
    fixture.fake.now_us = fixture.fake.wake_us;
    fixture.fake.wake_us = UINT64_MAX;
    leat_timers_run(&fixture.timers);
    assert_int_equal(fixture.expired_count, 0);
    assert_true(fixture.fake.wake_us == UINT64_MAX);
    leat_timers_fini(&fixture.timers);
}

static void timers_rearmed_with_no_delay_let_the_actor_go(void **state)
{
    struct timer_fixture fixture;
    timer_fixture_init(&fixture, 4);
    struct leat_timer timer = {.on_expired = timer_again, .owner = &fixture};
    leat_timer_start(&fixture.timers, &timer, 0);
    leat_timers_run(&fixture.timers);
    assert_int_equal(fixture.expired_count, 1);
    assert_true(fixture.fake.wake_us <= fixture.fake.now_us);
    leat_timers_fini(&fixture.timers);
    assert_false(leat_timer_armed(&timer));
}

static void timers_no_memory_is_reported(void **state)
{
    struct timer_fixture fixture = {0};
    leat_mem_fail_at(1);
    assert_int_equal(leat_timers_init(&fixture.timers, &fixture.clock, 4), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
}

static void node_log_sink(void *ctx, enum leat_node_log_level level, const char *line)
{
    snprintf(ctx, 64, "%d:%s", level, line);
}

static void node_log_level_filters_lines(void **state)
{
    char got[64] = "";
    leat_node_log_set(node_log_sink, got, LEAT_NODE_LOG_WARN);
    leat_node_log_info("not %d", 1);
    assert_string_equal(got, "");
    leat_node_log_warn("yes %d", 2);
    assert_string_equal(got, "1:yes 2");
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_DEBUG);
    leat_node_log_error("nowhere");
    assert_string_equal(got, "1:yes 2");
}

static void random_same_seed_same_numbers(void **state)
{
    struct leat_xoshiro a, b;
    leat_xoshiro_seed(&a, 42);
    leat_xoshiro_seed(&b, 42);
    unsigned hits[8] = {0};
    for (int i = 0; i < 8000; i++) {
        assert_true(leat_xoshiro_next(&a) == leat_xoshiro_next(&b));
        hits[leat_xoshiro_below(&a, 8)]++;
        (void)leat_xoshiro_next(&b);
    }
    for (int i = 0; i < 8; i++)
        assert_in_range(hits[i], 800, 1200);
}

static void bytes_and_lists_round_trip(void **state)
{
    uint8_t at[9];
    leat_put_be32(at + 1, 0x01020304);
    assert_int_equal(at[1], 1);
    assert_int_equal(leat_get_be32(at + 1), 0x01020304);
    leat_put_le64(at + 1, 0x0102030405060708);
    assert_int_equal(at[1], 8);
    assert_int_equal(LEAT_ALIGN_UP(4097u, 4096u), 8192);
    struct leat_list head, element[3];
    leat_list_init(&head);
    for (int i = 0; i < 3; i++)
        leat_list_push_back(&head, &element[i]);
    LEAT_LIST_EACH(&head, it)
    if (it == &element[1]) leat_list_remove(it);
    assert_ptr_equal(leat_list_pop_front(&head), &element[0]);
    assert_ptr_equal(leat_list_pop_front(&head), &element[2]);
    assert_null(leat_list_pop_front(&head));
}

static struct leat_rmem_grant grant_of(uint64_t limit_bytes)
{
    struct leat_rmem_grant grant = {0};
    struct leat_rmem_address address = {.limit_bytes = limit_bytes, .number = 7};
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_VERBS, "key", 3));
    return grant;
}

static void grant_sections_are_found_again(void **state)
{
    struct leat_rmem_grant grant = grant_of(LEAT_ARENA_STEP_BYTES);
    struct leat_rmem_address address;
    assert_int_equal(leat_rmem_grant_address(&grant, &address), LEAT_OK);
    assert_int_equal(address.number, 7);
    size_t bytes = 0;
    const uint8_t *body = leat_rmem_grant_find(&grant, LEAT_RMEM_VERBS, &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(body, "key", 3);
    assert_null(leat_rmem_grant_find(&grant, LEAT_RMEM_SHM, &bytes));
    uint8_t large[255] = {0};
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_SHM, large, 255));
    assert_false(leat_rmem_grant_add(&grant, LEAT_RMEM_TCP, large, 255));
    assert_false(leat_rmem_grant_add(&grant, LEAT_RMEM_TCP, large, 256));
}

/* Grants come from outside: every cut is refused, and so is a limit that no arena has. */
/* What begins the port is the last colon, and of an IPv6 address only behind its bracket. */
static void address_is_split_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {{"a:1", "a", 1},
                {"broker.example:65535", "broker.example", 65535},
                {"[::1]:7700", "::1", 7700},
                {":7700", "", 7700},
                {"127.0.0.1:0", "127.0.0.1", 0}};
    static const char *const bad[] = {"",         ":",     "7700",   "a",     "a:",   "a:65536",
                                      "a:000001", "a:-1",  "a:1b",   "::1:7", "[]:7", "[::1]7",
                                      "[::1:7",   "a:b:7", "[a]b:7", "[a:7"};
    struct leat_address_parts parts;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(leat_address_split(good[i].text, strlen(good[i].text), &parts));
        assert_int_equal(parts.host_bytes, strlen(good[i].host));
        assert_memory_equal(parts.host, good[i].host, parts.host_bytes);
        assert_int_equal(parts.port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(leat_address_split(bad[i], strlen(bad[i]), &parts));
}

static void grant_nonsense_is_refused(void **state)
{
    struct leat_rmem_address address;
    size_t bytes = 0;
    struct leat_rmem_grant grant = grant_of(LEAT_ARENA_STEP_BYTES);
    for (uint32_t cut = 0; cut < 34; cut++) {
        struct leat_rmem_grant less = grant;
        less.bytes = cut;
        assert_int_equal(leat_rmem_grant_address(&less, &address), LEAT_E_INVALID);
        assert_null(leat_rmem_grant_find(&less, LEAT_RMEM_VERBS, &bytes));
    }
    grant.bytes = LEAT_RMEM_GRANT_BYTES_MAX + 1;
    assert_int_equal(leat_rmem_grant_address(&grant, &address), LEAT_E_INVALID);
    const uint64_t wrong[] = {0, LEAT_ARENA_STEP_BYTES + 1,
                              (LEAT_RMEM_STEPS_MAX + UINT64_C(1)) * LEAT_ARENA_STEP_BYTES};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        grant = grant_of(wrong[i]);
        assert_int_equal(leat_rmem_grant_address(&grant, &address), LEAT_E_INVALID);
    }
}

static void write_done(struct leat_rmem_write *write, leat_err rc)
{
    (void)write;
    (void)rc;
}

static void rmem_write_that_cannot_be_is_refused(void **state)
{
    uint8_t byte = 0;
    struct leat_iov iovs[LEAT_RMEM_IOVS_MAX + 1] = {{&byte, 1}};
    struct leat_rmem_target target = {.attached = true};
    struct leat_rmem_write write = {
        .iovs = iovs, .iov_count = 1, .offset = 99, .on_done = write_done};
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_OK);
    assert_int_equal(write.bytes, 1);
    write.offset = 100;
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_E_OFFSET_OUT_OF_RANGE);
    write.offset = UINT64_MAX;
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_E_OFFSET_OUT_OF_RANGE);
    write.offset = 0;
    iovs[0].bytes = 0;
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_E_INVALID);
    iovs[0].bytes = SIZE_MAX;
    assert_int_equal(leat_rmem_write_check(&target, &write, UINT64_MAX), LEAT_E_TOO_LARGE);
    iovs[0].bytes = iovs[1].bytes = LEAT_RMEM_WRITE_BYTES_MAX;
    write.iov_count = 2;
    assert_int_equal(leat_rmem_write_check(&target, &write, UINT64_MAX), LEAT_E_TOO_LARGE);
    write.iov_count = LEAT_RMEM_IOVS_MAX + 1;
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_E_INVALID);
    target.failed = true;
    assert_int_equal(leat_rmem_write_check(&target, &write, 100), LEAT_E_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_known_code_has_name_class_and_text),
        cmocka_unit_test(error_unknown_code_is_fatal_and_named),
        cmocka_unit_test(error_long_sentence_is_truncated),
        cmocka_unit_test(crc_check_value_is_standard),
        cmocka_unit_test(block_of_any_size_and_place_is_copied_and_nothing_beside_it),
        cmocka_unit_test(crc_cut_anywhere_chains),
        cmocka_unit_test(crc_joined_is_crc_of_both),
        cmocka_unit_test(mem_counts_follow_blocks),
        cmocka_unit_test(zero_block_clears_its_bytes_and_no_others),
        cmocka_unit_test(memory_copy_holds_the_bytes_and_is_counted),
        cmocka_unit_test(mem_overflowing_product_is_refused),
        cmocka_unit_test(mem_requested_failure_hits_that_call_once),
        cmocka_unit_test(mem_two_threads_lose_no_count),
        cmocka_unit_test(mem_damaged_header_aborts),
        cmocka_unit_test(assert_failed_condition_aborts),
        cmocka_unit_test(actor_that_runs_may_and_no_other),
        cmocka_unit_test(timers_random_order_expire_sorted),
        cmocka_unit_test(timers_stopped_early_ask_clock_once),
        cmocka_unit_test(timers_rearmed_with_no_delay_let_the_actor_go),
        cmocka_unit_test(timers_no_memory_is_reported),
        cmocka_unit_test(node_log_level_filters_lines),
        cmocka_unit_test(random_same_seed_same_numbers),
        cmocka_unit_test(bytes_and_lists_round_trip),
        cmocka_unit_test(grant_sections_are_found_again),
        cmocka_unit_test(address_is_split_or_refused),
        cmocka_unit_test(grant_nonsense_is_refused),
        cmocka_unit_test(rmem_write_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
