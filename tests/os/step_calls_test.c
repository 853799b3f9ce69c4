/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of pool files: what is asked of the system for each, in which order, and each refusal; and names of a boot and
 * of a path. The system's calls stand here (--wrap), each is a line of the trace. */
#include "os/pool.h"

#include "base/node_log.h"
#include "base/port.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)
#define MIB  ((uint64_t)1 << 20)

enum call { MAP, POPULATE, ALLOCATE, CUT, OPEN };
static struct {
    enum call call;
    int skip, error; /* the call after so many fails by that; 0: none */
} script;
static uint8_t *base;
static uintptr_t reserved; /* where addresses are */
static struct {
    const char *text; /* of a file */
    ssize_t bytes;
} file;

static void plan(enum call call, int skip, int error)
{
    script.call = call;
    script.skip = skip;
    script.error = error;
    trace_begin();
}

static bool fails(enum call call)
{
    if (script.error == 0 || script.call != call || script.skip-- != 0) return false;
    errno = script.error;
    script.error = 0;
    return true;
}

static unsigned mib_of(const void *at)
{
    return (unsigned)(((uintptr_t)at - (uintptr_t)base) / MIB);
}

void *__real_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from)
{
    int nobody = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (what == (PROT_READ | PROT_WRITE) && how == (MAP_SHARED | MAP_FIXED))
        trace("map %u %zu of %d from %llu\n", mib_of(at), bytes, fd, (unsigned long long)from);
    else if (what == PROT_NONE && how == (nobody | MAP_FIXED))
        trace("no map %u %zu %d %llu\n", mib_of(at), bytes, fd, (unsigned long long)from);
    else if (what == PROT_NONE && how == nobody && !at)
        trace("reserve %zu %d %llu\n", bytes, fd, (unsigned long long)from);
    else
        trace("map otherwise\n");
    if (fails(MAP)) return MAP_FAILED;
    return at ? at : (void *)reserved;
}
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    trace("unmap %llu %zu\n", (unsigned long long)((uintptr_t)at - reserved), bytes);
    return 0;
}
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    trace("advise %u %zu %d\n", mib_of(at), bytes, advice);
    return advice != MADV_COLLAPSE && fails(POPULATE) ? -1 : 0;
}
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes)
{
    trace("allocate %d %d %llu %llu\n", fd, mode, (unsigned long long)from,
          (unsigned long long)bytes);
    return fails(ALLOCATE) ? -1 : 0;
}
int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes)
{
    trace("cut %d %llu\n", fd, (unsigned long long)bytes);
    return fails(CUT) ? -1 : 0;
}
int __wrap_open64(const char *path, int how, ...);
int __wrap_open64(const char *path, int how, ...)
{
    trace("open %s%s\n", path, how == (O_RDONLY | O_CLOEXEC) ? "" : " otherwise");
    return fails(OPEN) ? -1 : 0; /* the number 0 is a file's as others are */
}
ssize_t __wrap_read(int fd, void *out, size_t bytes);
ssize_t __wrap_read(int fd, void *out, size_t bytes)
{
    trace("read %d %zu\n", fd, bytes);
    memcpy(out, file.text, strlen(file.text));
    return file.bytes;
}
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    return 0;
}

static void is_told(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d %s\n", (int)level, line);
}

static int begin(void **state)
{
    (void)state;
    base = (uint8_t *)(uintptr_t)(1 << 30);
    memset(&script, 0, sizeof script);
    leat_node_log_set(is_told, NULL, LEAT_NODE_LOG_WARN);
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    return 0;
}

#define STEP_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* Goal: addresses begin on a huge page, wherever the system gives some, and what is around them goes back. */
static void step_addresses_begin_on_a_huge_page(void **state)
{
    (void)state;
    static const struct {
        uint64_t past; /* a huge page's boundary */
        const char *calls;
    } rows[] = {{0, "unmap 67108864 2097152\n"},
                {4096, "unmap 0 2093056\nunmap 69201920 4096\n"},
                {MIB, "unmap 0 1048576\nunmap 68157440 1048576\n"},
                {2 * MIB - 4096, "unmap 0 4096\nunmap 67112960 2093056\n"}};
    char expected[200];
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reserved = (uintptr_t)(64 * MIB + rows[i].past);
        uintptr_t at = (uintptr_t)leat_os_addresses_reserve(STEP);
        assert_int_equal(at, (rows[i].past ? 66 : 64) * MIB);
        snprintf(expected, sizeof expected, "reserve 69206016 -1 0\n%s", rows[i].calls);
        TRACE_IS(expected);
    }
    plan(MAP, 0, ENOMEM);
    assert_null(leat_os_addresses_reserve(STEP));
    TRACE_IS("reserve 69206016 -1 0\n");
}

/* Goal: a step's memory is allocated before anybody may store to it, then touched; each refusal ends that. */
static void step_grow_allocates_before_it_touches(void **state)
{
    (void)state;
    static const char map[] = "map 192 67108864 of 5 from 203423744\n",
                      allocate[] = "allocate 5 0 203423744 67108864\n",
                      touch[] = "advise 192 67108864 23\n";
    char expected[300];
    assert_int_equal(leat_os_step_map(5, 3, base), LEAT_OK);
    TRACE_IS(map);
    assert_int_equal(leat_os_step_grow(5, 3, base, false), LEAT_OK);
    snprintf(expected, sizeof expected, "%s%s%s", map, allocate, touch);
    TRACE_IS(expected);
    assert_int_equal(leat_os_step_grow(5, 0, base, false), LEAT_OK);
    TRACE_IS("map 0 67108864 of 5 from 2097152\nallocate 5 0 2097152 67108864\n"
             "advise 0 67108864 23\n");
    plan(MAP, 0, ENOMEM);
    assert_int_equal(leat_os_step_grow(5, 3, base, true), LEAT_E_NO_MEMORY);
    TRACE_IS(map);
    plan(ALLOCATE, 0, ENOSPC);
    assert_int_equal(leat_os_step_grow(5, 3, base, false), LEAT_E_NO_MEMORY);
    snprintf(expected, sizeof expected, "%s%s", map, allocate);
    TRACE_IS(expected);
    plan(ALLOCATE, 0, EINTR); /* no refusal */
    assert_int_equal(leat_os_step_grow(5, 3, base, false), LEAT_OK);
    snprintf(expected, sizeof expected, "%s%s%s%s", map, allocate, allocate, touch);
    TRACE_IS(expected);
}

/* Goal: in memory, one page of each huge page comes first, the last before others, then they are asked for; where that
 * is refused all is as without. */
static void step_grow_asks_for_huge_pages_in_memory(void **state)
{
    (void)state;
    static char expected[4096];
    size_t n = (size_t)snprintf(expected, sizeof expected, "map 64 67108864 of 5 from 69206016\n");
    for (int page = 31; page >= 0; page--)
        n += (size_t)snprintf(expected + n, sizeof expected - n, "allocate 5 0 %llu 4096\n",
                              (unsigned long long)(2 * MIB + STEP + 2 * MIB * (page + 1) - 4096));
    snprintf(expected + n, sizeof expected - n,
             "advise 64 67108864 25\nallocate 5 0 69206016 67108864\nadvise 64 67108864 23\n");
    assert_int_equal(leat_os_step_grow(5, 1, base, true), LEAT_OK);
    TRACE_IS(expected);
    plan(ALLOCATE, 1, ENOSPC);
    assert_int_equal(leat_os_step_grow(5, 1, base, true), LEAT_OK);
    TRACE_IS("map 64 67108864 of 5 from 69206016\nallocate 5 0 136310784 4096\n"
             "allocate 5 0 134213632 4096\nallocate 5 0 69206016 67108864\n"
             "advise 64 67108864 23\n");
}

/* Goal: an old kernel's pages are touched one by one: stored to only if they are fresh. */
static void step_touch_without_the_kernels_help(void **state)
{
    (void)state;
    base = __real_mmap64(NULL, STEP, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(base != MAP_FAILED);
    for (size_t i = 0; i < STEP; i += 4096)
        base[i] = base[i + 1] = 7;
    leat_os_step_touch(base, true);
    TRACE_IS("advise 0 67108864 23\n");
    plan(POPULATE, 0, EINVAL);
    leat_os_step_touch(base, false);
    TRACE_IS("advise 0 67108864 22\n");
    for (size_t i = 0; i < STEP; i += 4096)
        assert_true(base[i] == 7);
    plan(POPULATE, 0, EINVAL);
    leat_os_step_touch(base, true);
    TRACE_IS("advise 0 67108864 23\n");
    for (size_t i = 0; i < STEP; i += 4096)
        assert_true(base[i] == 0 && base[i + 1] == 7);
    (void)__real_munmap(base, STEP);
}

/* Goal: a step that is given back is behind no address before its file is cut. */
static void step_shrink_unmaps_before_it_cuts(void **state)
{
    (void)state;
    char expected[300];
    assert_int_equal(leat_os_step_shrink(5, 2, base), LEAT_OK);
    TRACE_IS("no map 128 67108864 -1 0\ncut 5 136314880\n");
    plan(MAP, 0, ENOMEM);
    assert_int_equal(leat_os_step_shrink(5, 2, base), LEAT_E_DISK);
    TRACE_IS("no map 128 67108864 -1 0\n");
    plan(CUT, 0, EIO);
    assert_int_equal(leat_os_step_shrink(5, 2, base), LEAT_OK);
    snprintf(expected, sizeof expected,
             "no map 128 67108864 -1 0\ncut 5 136314880\n"
             "node log %d the pool stays longer than it is used: %s\n",
             (int)LEAT_NODE_LOG_WARN, strerror(EIO));
    TRACE_IS(expected);
}

/* Goal: a boot's name is whole, or empty. */
static void boot_id_is_whole_or_empty(void **state)
{
    (void)state;
    static const char id[] = "01234567-89ab-cdef-0123-456789abcdef\n", zeros[BOOT_ID_BYTES],
                      calls[] = "open /proc/sys/kernel/random/boot_id\nread 0 39\nclose 0\n";
    char out[BOOT_ID_BYTES], machine[LEAT_OS_MACHINE_ID_BYTES];
    file.text = id;
    for (unsigned i = 0; i < 4; i++) {
        static const ssize_t sizes[] = {37, 36, 35, -1};
        file.bytes = sizes[i];
        memset(out, 'x', sizeof out);
        leat_os_boot_id(out);
        TRACE_IS(calls);
        if (i < 2) {
            assert_string_equal(out, id);
            assert_memory_equal(out + strlen(id), zeros, sizeof out - strlen(id));
        } else {
            assert_int_equal(out[0], 0);
        }
    }
    file.bytes = 37;
    memset(machine, 'x', sizeof machine);
    leat_os_machine_id(machine);
    assert_int_equal(strlen(machine), 36);
    assert_memory_equal(machine, id, 36);
    file.text = "01234567-89ab-cdef-0123-456789abcdef";
    leat_os_machine_id(machine);
    assert_string_equal(machine, file.text);
    plan(OPEN, 0, ENOENT);
    memset(out, 'x', sizeof out);
    leat_os_boot_id(out);
    TRACE_IS("open /proc/sys/kernel/random/boot_id\n");
    assert_memory_equal(out, zeros, sizeof out);
}

/* Goal: names of pools follow from paths as they always have: another hash would lose them. */
static void path_hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(leat_os_path_hash("") == UINT64_C(0xcbf29ce484222325));
    assert_true(leat_os_path_hash("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(leat_os_path_hash("foobar") == UINT64_C(0x85944171f73967e8));
    assert_true(leat_os_path_hash("\xff") == UINT64_C(0xaf64724c8602eb6e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEP_TEST(step_addresses_begin_on_a_huge_page),
        STEP_TEST(step_grow_allocates_before_it_touches),
        STEP_TEST(step_grow_asks_for_huge_pages_in_memory),
        STEP_TEST(step_touch_without_the_kernels_help),
        STEP_TEST(step_shrink_unmaps_before_it_cuts),
        STEP_TEST(boot_id_is_whole_or_empty),
        STEP_TEST(path_hash_is_fnv_1a),
    };
    return cmocka_run_group_tests_name("os-step-calls", tests, NULL, NULL);
}
