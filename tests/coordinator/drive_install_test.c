/* SPDX-License-Identifier: Apache-2.0 */
/* When a drive takes a snapshot, when it installs one that it has received, and what a close tells: on a drive
 * without a disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/told.h"

enum { BYTES = 1000 };

static struct leat_raft_drive drive;
static unsigned tables_asked;

static leat_err on_snapshot(void *owner, uint8_t **out_bytes, size_t *out_count)
{
    (void)owner;
    (void)out_bytes;
    (void)out_count;
    tables_asked++;
    return LEAT_E_NO_MEMORY; /* none is taken now */
}

/* In the place of raft's, and a disk. */
void raft_close(struct raft *r, raft_close_cb cb)
{
    assert_ptr_equal(r, &drive.raft);
    assert_null(cb);
}
static leat_err sync_rc;
static unsigned syncs;
static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    (void)ctx;
    assert_int_equal(io->kind, LEAT_DISK_SYNC);
    assert_ptr_equal(io->file, &sync_rc);
    syncs++;
    return sync_rc;
}
static void disk_close(void *ctx, struct leat_file *file)
{
    (void)ctx;
    assert_ptr_equal(file, &sync_rc);
}

static int begin(void **state)
{
    (void)state;
    memset(&drive, 0, sizeof drive);
    drive.hooks.snapshot = on_snapshot;
    tables_asked = 0;
    return 0;
}

/* Goal: a snapshot is taken once the entries since the last take twice its bytes, unless one is on its way, or entries
 * are committed that the tables lack. */
static void snapshot_is_taken_when_it_may(void **state)
{
    static const struct {
        uint64_t bytes, commit;
        bool saving, installing, failed, taken;
    } cases[] = {
        {2 * BYTES, 4, false, false, false, true},      {2 * BYTES, 5, false, false, false, true},
        {2 * BYTES - 1, 5, false, false, false, false}, {2 * BYTES, 6, false, false, false, false},
        {2 * BYTES, 5, true, false, false, false},      {2 * BYTES, 5, false, true, false, false},
        {2 * BYTES, 5, false, false, true, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        begin(state);
        drive.log.start_index = 5;
        assert_int_equal(leat_raft_log_append(&drive.log, 5, 1, RAFT_COMMAND, "it", 2), LEAT_OK);
        struct raft_configuration *conf = &drive.raft.configuration_committed;
        raft_configuration_init(conf);
        assert_int_equal(raft_configuration_add(conf, 1, "h:1", RAFT_VOTER), 0);
        drive.log.snapshot.data_bytes = BYTES;
        drive.applied = 5;
        drive.bytes_since_snapshot = cases[c].bytes;
        drive.raft.commit_index = cases[c].commit;
        drive.log.saving = cases[c].saving;
        drive.snapshot_state =
            cases[c].installing ? LEAT_RAFT_SNAPSHOT_INSTALLS : LEAT_RAFT_SNAPSHOT_NONE;
        drive.failed = cases[c].failed ? LEAT_E_DISK : LEAT_OK;
        leat_raft_drive_snapshot_maybe(&drive);
        assert_int_equal(tables_asked, cases[c].taken);
        raft_configuration_close(conf);
        leat_raft_entries_cut(&drive.log, 0);
        leat_mem_free(drive.log.entries);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    }
}

/* Goal: a received snapshot takes the place of log and tables only when this very snapshot is stored, not when one
 * before it was, and no round is on its way to the disk. */
static void snapshot_is_installed_once_it_is_stored(void **state)
{
    (void)state;
    char bytes[4] = "full";
    const struct raft_update update = {
        .snapshot = {.metadata = {.index = 7}, .chunk = {.base = bytes, .len = sizeof bytes}}};
    drive.log.saving = true; /* one that is taken goes first */
    drive.snapshot_state = LEAT_RAFT_SNAPSHOT_TAKES;
    leat_raft_drive_install_take(&drive, &update);
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_TAKES_FIRST);
    for (unsigned state_is = LEAT_RAFT_SNAPSHOT_TAKES_FIRST; state_is < LEAT_RAFT_SNAPSHOT_SAVED;
         state_is++) {
        drive.snapshot_state = (enum leat_raft_snapshot_state)state_is;
        leat_raft_drive_install_finish(&drive);
        assert_int_equal(drive.snapshot_state, state_is);
    }
    drive.snapshot_state = LEAT_RAFT_SNAPSHOT_SAVED;
    drive.log.writing = true;
    leat_raft_drive_install_finish(&drive);
    assert_int_equal(drive.snapshot_state, LEAT_RAFT_SNAPSHOT_SAVED);
    assert_int_equal(drive.applied, 0);
}

/* Goal: what was never opened can be closed. */
static void drive_that_is_not_open_is_closed(void **state)
{
    (void)state;
    leat_raft_drive_close(&drive);
    leat_raft_drive_close(&drive);
    assert_false(drive.raft_open);
}

/* Goal: the node log tells of a disk that fails while a drive with a round or a snapshot in flight closes, and of no
 * other. */
static void disk_that_fails_on_the_way_out_is_told(void **state)
{
    const struct leat_disk disk = {.run = disk_run, .close = disk_close};
    for (unsigned c = 0; c < 6; c++) {
        begin(state);
        const bool in_flight = c / 2 < 2;
        drive.raft_open = true;
        drive.log.disk = &disk;
        drive.log.vote_file = (struct leat_file *)(void *)&sync_rc;
        drive.log.writing = c / 2 == 0;
        drive.log.saving = c / 2 == 1;
        sync_rc = c % 2 ? LEAT_E_DISK : LEAT_OK;
        syncs = 0;
        told_from_now_on();
        leat_raft_drive_close(&drive);
        leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
        assert_int_equal(syncs, in_flight);
        expect_told(in_flight && sync_rc ? "W coordinator: the disk failed on the way out\n" : "");
        assert_false(drive.raft_open);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(snapshot_is_taken_when_it_may, begin),
        cmocka_unit_test_setup(snapshot_is_installed_once_it_is_stored, begin),
        cmocka_unit_test_setup(drive_that_is_not_open_is_closed, begin),
        cmocka_unit_test_setup(disk_that_fails_on_the_way_out_is_told, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
