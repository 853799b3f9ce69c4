/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls and looks accept only the segment that was asked for: by each part of its name, and at the bounds of its size.
 * A backup alone. */
#include "tests/replication/pieces_rig.h"

static void pulled(struct rig *rig, struct leat_backup_pull *pull)
{
    pull->node_count = 1;
    pull_start(rig, pull);
    if (!ports.call) return;
    piece(rig, LEAT_OK, 0, pull->prefix_id.bytes, 0);
    while (rig->req_count)
        rig_stored(rig, rig->reqs[0]->kind, LEAT_OK);
}

/* Goal: a pull refuses a segment of another log, a segment larger than its own capacity, and a segment that ends before
 * the wanted end. A pull of bytes alone refuses another segment, too. */
static void only_what_was_asked_for_is_pulled(void **state)
{
    (void)state;
    static uint8_t into[2 * RIG_CAPACITY];
    for (unsigned i = 0; i < 8; i++) {
        struct rig *rig = rig_ports();
        rig_image(rig, 7);
        struct leat_backup_pull pull = pull_of(rig);
        if (i == 1) pull.log.streamlet++;
        if (i == 2) pull.prefix_id.bytes = RIG_CAPACITY + 8;
        if (i == 3) pull.prefix_id.bytes = RIG_CAPACITY;
        if (i == 4)
            pull.prefix_id.bytes = rig->ends[3].bytes + 8; /* its checksum is the last one's */
        if (i >= 5) pull.into = into;
        if (i == 6) pull.segment.v++;
        if (i == 7) pull.prefix_id.bytes = LEAT_ENTRY_HEADER_BYTES - 1;
        trace("%u: ", i);
        pulled(rig, &pull);
        rig_end(rig);
    }
    TRACE_IS("0: n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
             "store STAMP s7 v4 role 1 writer 11 provisional\n"
             "pulled: OK\n"
             "1: n2 PULL 1/3/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: DAMAGED\n"
             "2: n2 PULL 1/2/3 s7 65544:1 from 0 count 65544 whole in 5000 ms\n"
             "pulled: DAMAGED\n"
             "3: n2 PULL 1/2/3 s7 65536:1 from 0 count 65536 whole in 5000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store DROP s7\n"
             "pulled: DAMAGED\n"
             "4: n2 PULL 1/2/3 s7 760:1 from 0 count 760 whole in 5000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store DROP s7\n"
             "pulled: DAMAGED\n"
             "5: n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: OK\n"
             "6: n2 PULL 1/2/3 s8 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: DAMAGED\n"
             "7: INVALID\n");
}

/* Goal: a longer replica begins with the wanted end only if its bytes name the wanted log, segment and epoch. */
static void longer_one_is_looked_at_by_its_whole_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        struct rig *rig = rig_ports();
        struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
        struct leat_segment *seg = rep->seg;
        filed(rep);
        if (i == 1) seg->log.stream++;
        if (i == 2) seg->log.streamlet++;
        if (i == 3) seg->log.log++;
        if (i == 4) seg->id.v++;
        if (i == 5) seg->epoch.v++;
        if (i == 6) rig->image[rig->ends[1].bytes - 70] ^= 1;
        assert_int_equal(leat_backup_look(rig->backup, rep->handle, rig->ends[1], NULL, NULL),
                         LEAT_OK);
        disk_read(rig, LEAT_OK, rig->ends[1].bytes);
        trace("%u: %s\n", i, rep->looked[0].begins ? "begins with it" : "does not");
        rig_end(rig);
    }
    TRACE_IS("read 4096+4096\n"
             "0: begins with it\n"
             "read 4096+4096\n"
             "1: does not\n"
             "read 4096+4096\n"
             "2: does not\n"
             "read 4096+4096\n"
             "3: does not\n"
             "read 4096+4096\n"
             "4: does not\n"
             "read 4096+4096\n"
             "5: does not\n"
             "read 4096+4096\n"
             "6: does not\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(only_what_was_asked_for_is_pulled),
        TRACE_TEST(longer_one_is_looked_at_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
