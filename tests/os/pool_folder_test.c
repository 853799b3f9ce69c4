/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in the folder of shared memory: whose directory is gone, is collected. */
#include "tests/os/real_rig.h"

#include "base/node_log.h"
#include "os/pool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int pool_make(const char *folder, const char *name, const char *data_dir, uint64_t device,
                     uint64_t parent_inode)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct pool_header header = {
        .magic = POOL_MAGIC,
        .version = POOL_VERSION,
        .data_dir_device = device,
        .data_dir_parent_inode = parent_inode,
    };
    snprintf(header.data_dir, sizeof header.data_dir, "%s", data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &header, sizeof header), sizeof header);
    return fd;
}

/* As a server on that directory makes it. */
static void pool_make_named(const char *folder, const char *name, const char *data_dir,
                            uint64_t outer_inode)
{
    char path[160];
    struct pool_header header = {.magic = POOL_MAGIC, .version = POOL_VERSION};
    leat_os_pool_name_owner(&header, data_dir);
    if (outer_inode != 0) header.outer_inodes[1] = outer_inode;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &header, sizeof header), sizeof header);
    close(fd);
}

static bool pool_there(const char *folder, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Goal: nobody's data goes. Method: one pool of each kind in a folder of the test's own. */
static void pools_of_removed_directories_only_are_collected(void **state)
{
    (void)state;
    char folder[64], gone[96], unmounted[96];
    temp_dir(folder);
    struct stat st;
    assert_int_equal(stat(folder, &st), 0);
    snprintf(gone, sizeof gone, "%s/gone", folder);
    snprintf(unmounted, sizeof unmounted, "%s/mount/leat", folder);
    close(pool_make(folder, "leat-pool-gone", gone, st.st_dev, st.st_ino));
    close(pool_make(folder, "leat-pool-there", folder, st.st_dev, st.st_ino));
    close(pool_make(folder, "leat-pool-other-device", gone, st.st_dev + 1, st.st_ino));
    close(pool_make(folder, "leat-pool-other-root", gone, st.st_dev, st.st_ino + 1));
    close(pool_make(folder, "leat-pool-no-parent", unmounted, st.st_dev, st.st_ino));
    close(pool_make(folder, "leat-pool-not-told", "", st.st_dev, st.st_ino));
    close(pool_make(folder, "another-file", gone, st.st_dev, st.st_ino));
    int used = pool_make(folder, "leat-pool-used", gone, st.st_dev, st.st_ino);
    assert_int_equal(flock(used, LOCK_EX), 0);

    assert_int_equal(leat_os_pools_collect(folder, true), 1);
    assert_false(pool_there(folder, "leat-pool-gone"));
    static const char *const kept[] = {"leat-pool-there",      "leat-pool-other-device",
                                       "leat-pool-no-parent",  "leat-pool-not-told",
                                       "leat-pool-other-root", "another-file",
                                       "leat-pool-used"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(pool_there(folder, kept[i]));
    close(used);
    assert_int_equal(leat_os_pools_collect(folder, true), 1); /* now nobody uses it */
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static char doubts[1024];
static void doubt_note(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    if (strstr(line, "kept")) snprintf(doubts, sizeof doubts, "%s", line);
}

/* Goal: the memory of a directory that was removed with its parents goes as well. Where the nearest parent that is left
 * is another directory than before (a disk was mounted there), the memory stays, and is named with the command. */
static void pool_of_a_directory_removed_with_its_parents_is_collected(void **state)
{
    (void)state;
    char folder[64], command[160], data_dir[128];
    temp_dir(folder);
    snprintf(data_dir, sizeof data_dir, "%s/a/b/leat", folder);
    snprintf(command, sizeof command, "mkdir -p '%s'", data_dir);
    assert_int_equal(system(command), 0);
    pool_make_named(folder, "leat-pool-gone", data_dir, 0);
    pool_make_named(folder, "leat-pool-mounted", data_dir, 1);
    assert_int_equal(leat_os_pools_collect(folder, true), 0);
    snprintf(command, sizeof command, "rm -rf '%s/a'", folder);
    assert_int_equal(system(command), 0);
    leat_node_log_set(doubt_note, NULL, LEAT_NODE_LOG_INFO);
    assert_int_equal(leat_os_pools_collect(folder, true), 1);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    assert_false(pool_there(folder, "leat-pool-gone"));
    assert_true(pool_there(folder, "leat-pool-mounted"));
    snprintf(command, sizeof command, "rm %s/leat-pool-mounted", folder);
    assert_non_null(strstr(doubts, command));
    assert_non_null(strstr(doubts, data_dir));
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static unsigned node_log_lines;
static void line_count(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    node_log_lines++;
    if (strstr(line, "such files in all")) snprintf(doubts, sizeof doubts, "%s", line);
}

/* Goal: a start stays readable on a machine where many were given up: three by name, then their sum. */
static void many_pools_without_a_directory_are_summed_up(void **state)
{
    (void)state;
    char folder[64], command[160], gone[96], name[64];
    struct stat st;
    temp_dir(folder);
    assert_int_equal(stat(folder, &st), 0);
    snprintf(gone, sizeof gone, "%s/gone", folder);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "leat-pool-%u", i);
        close(pool_make(folder, name, gone, st.st_dev + 1, st.st_ino));
    }
    node_log_lines = 0;
    leat_node_log_set(line_count, NULL, LEAT_NODE_LOG_INFO);
    assert_int_equal(leat_os_pools_collect(folder, true), 0);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    assert_int_equal(node_log_lines, 4);
    assert_non_null(strstr(doubts, "has 40 such files in all"));
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Goal: nobody keeps a server from its start by a file where all accounts may make files, and what a killed server
 * left is found under whatever name. */
static void pool_name_that_is_taken_is_left_for_another(void **state)
{
    (void)state;
    char folder[64], usual[POOL_NAME_BYTES], other[POOL_NAME_BYTES], found[POOL_NAME_BYTES],
        path[160];
    static const char data_dir[] = "/srv/leat";
    bool exists = true;
    temp_dir(folder);
    assert_true(leat_os_pool_name(folder, data_dir, usual, &exists));
    assert_false(exists);
    snprintf(path, sizeof path, "%s/%s", folder, usual);
    assert_int_equal(mkfifo(path, 0666), 0); /* an open for reading waits for a writer */
    assert_int_equal(leat_os_pools_collect(folder, true), 0);
    assert_true(leat_os_pool_name(folder, data_dir, other, &exists));
    assert_false(exists);
    assert_string_not_equal(usual, other);
    close(pool_make(folder, other, data_dir, 0, 0));
    assert_true(leat_os_pool_name(folder, data_dir, found, &exists));
    assert_true(exists);
    assert_string_equal(found, other);
    assert_int_equal(unlink(path), 0);
    assert_true(leat_os_pool_name(folder, data_dir, found, &exists));
    assert_true(exists); /* the usual name is free, and holds nothing */
    assert_string_equal(found, other);
    close(pool_make(folder, usual, "", 0, 0)); /* half made */
    assert_true(leat_os_pool_name(folder, data_dir, found, &exists));
    assert_string_equal(found, other);
    assert_true(leat_os_pool_name(folder, "/srv/leat2", found, &exists));
    assert_false(exists);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_removed_directories_only_are_collected),
        cmocka_unit_test(pool_of_a_directory_removed_with_its_parents_is_collected),
        cmocka_unit_test(many_pools_without_a_directory_are_summed_up),
        cmocka_unit_test(pool_name_that_is_taken_is_left_for_another),
    };
    return cmocka_run_group_tests_name("os pool folder", tests, NULL, NULL);
}
