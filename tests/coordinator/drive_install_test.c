/* SPDX-License-Identifier: Apache-2.0 */
/* When a drive takes a snapshot, and when it installs one that it has received: each condition by itself, on a drive
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(snapshot_is_taken_when_it_may, begin),
        cmocka_unit_test_setup(snapshot_is_installed_once_it_is_stored, begin),
        cmocka_unit_test_setup(drive_that_is_not_open_is_closed, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
