/* SPDX-License-Identifier: Apache-2.0 */
/* Background work, message by message: audits and the answer for each row, closed segments that are copied again,
 * silent backups. A primary alone, whose whole world is the trace. */
#include "tests/replication/primary_rig.h"

static void row_answer(struct rig *rig, unsigned node, const struct rep_row *rows, uint32_t count,
                       uint64_t next)
{
    uint8_t control[1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, next);
    leat_msg_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++)
        rep_row_write(&writer, &rows[i]);
    rig_answer_bytes(rig, node, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
}

/* A closed segment of the log, made by an earlier owner, epoch 3. */
static struct leat_segment *closed_one(struct rig *rig, uint64_t id, bool in_memory)
{
    struct leat_segment *seg = &rig->segs[id];
    rig->buffers[id] = calloc(1, RIG_CAPACITY);
    *seg = (struct leat_segment){.log = {1, 2, 3},
                                 .id = {id},
                                 .epoch = {3},
                                 .version = 1,
                                 .capacity = RIG_CAPACITY,
                                 .state = LEAT_SEGMENT_CLOSED,
                                 .buffer = in_memory ? rig->buffers[id] : NULL,
                                 .file_offset = 65536 * (1 + id),
                                 .prefix_id = {5000, 77},
                                 .next_offset = 1000 + id,
                                 .max_timestamp_ms = 2000 + (int64_t)id};
    return seg;
}

static struct rep_row row_of(const struct leat_segment *seg, uint64_t handle)
{
    return (struct rep_row){.handle = handle,
                            .log = seg->log,
                            .segment = seg->id,
                            .epoch = seg->epoch,
                            .version = 1,
                            .state = seg->state,
                            .prefix_id = seg->prefix_id};
}

/* A log of one closed segment, number 2, taken over by this node; nodes 1 and up have told nothing yet. */
static struct rig *taken_over(unsigned nodes, uint32_t copies, bool in_memory)
{
    struct rig *rig = rig_new(nodes);
    rig->quiet = true;
    struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, copies);
    struct leat_segment *seg = closed_one(rig, 2, in_memory);
    options.opened = true;
    options.unsure = (struct leat_segment_range){.first = 8, .end = 10};
    assert_int_equal(leat_primary_log_create(rig->primary, &options, &seg, 1, &rig->log), LEAT_OK);
    rig->store_port = leat_primary_port(rig->log);
    rig_pass(rig, 20 * 1000);
    rig->quiet = false;
    return rig;
}

static void copies_trace(void *arg, const struct leat_rep_segment_status *status)
{
    (void)arg;
    for (unsigned i = 0; i < status->count; i++)
        trace("n%u: %u bytes%s\n", rig_node_of(status->copies[i].node), status->copies[i].bytes,
              status->copies[i].closed ? ", closed" : "");
}

/* Goal: each backup is asked for all that it has when a log comes; the same bytes count, and their backup hears it. The
 * status shows what each copy has. */
static void copy_that_is_found_counts_when_its_backup_has_heard_it(void **state)
{
    (void)state;
    struct rig *rig = taken_over(2, 3, true);
    const struct leat_segment *seg = &rig->segs[2];
    rig->segs[2].passed_bytes = 7;
    trace_begin();
    struct rep_row row = row_of(seg, 12);
    row_answer(rig, 1, &row, 1, 0);
    TRACE_IS("n1 SETTLE h12=KEEP/e5/p8, 10 s\n");
    row.handle = 22;
    row_answer(rig, 2, &row, 1, 0);
    TRACE_IS("n2 SETTLE h22=KEEP/e5/p8, 10 s\n");
    const struct rep_set *set = rep_set_find(rig->log, 2);
    assert_int_equal(set->copy_count, 2);
    assert_true(set->copies[0]->found && set->copies[1]->found);
    leat_primary_log_each(rig->log, copies_trace, NULL);
    TRACE_IS("n1: 5000 bytes, closed\n"
             "n2: 5000 bytes, closed\n");
    uint8_t none[] = {0x90};
    rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, none, 1);
    assert_true(!set->copies[0]->found && set->copies[1]->found);
    struct rep_pair refused = {22, (uint64_t)LEAT_E_NOT_FOUND, 0};
    uint8_t control[64];
    rig_answer_bytes(rig, 2, LEAT_REP_SETTLE, LEAT_OK, control,
                     rep_pairs_encode(&refused, 1, control, sizeof control));
    assert_int_equal(set->copy_count, 1);
    TRACE_IS("");
    rig_pass(rig, 29 * 1000 * 1000);
    TRACE_IS("n2 OPEN s2 h0 v1 d1 part to 1002/2002 passed 7 e3/5, 2 s\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "0 bytes in 0 writes, 1 segments; control 0 open 0 hibernate 0 resume 0 flush 0 other 8; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: whether the owner keeps or drops the replica of a row depends on the log's state of that segment. */
static void row_is_judged_by_what_the_log_has(void **state)
{
    (void)state;
    enum { KEPT_HANDLE = 12 };
    static const struct {
        const char *what;
        uint64_t segment, bytes;
        uint32_t epoch, crc, state, log;
    } cases[] = {
        {"the copy that counts", 2, 5000, 3, 77, LEAT_SEGMENT_CLOSED, 3},
        {"never heard of", 3, 64, 3, 1, LEAT_SEGMENT_CLOSED, 3},
        {"never heard of, open", 3, 64, 3, 1, LEAT_SEGMENT_OPEN, 3},
        {"of an owner to come", 3, 64, 6, 1, LEAT_SEGMENT_CLOSED, 3},
        {"of this owner", 3, 64, 5, 1, LEAT_SEGMENT_CLOSED, 3},
        {"of another log", 3, 64, 3, 1, LEAT_SEGMENT_CLOSED, 4},
        {"not sure: 7", 7, 64, 3, 1, LEAT_SEGMENT_CLOSED, 3},
        {"not sure: 8", 8, 64, 3, 1, LEAT_SEGMENT_CLOSED, 3},
        {"not sure: 9", 9, 64, 3, 1, LEAT_SEGMENT_CLOSED, 3},
        {"not sure: 10", 10, 64, 3, 1, LEAT_SEGMENT_CLOSED, 3},
    };
    struct rig *rig = taken_over(1, 2, true);
    struct rep_row row = row_of(&rig->segs[2], KEPT_HANDLE);
    row_answer(rig, 1, &row, 1, 0);
    static const uint8_t none[] = {0x90};
    rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, none, 1);
    trace_begin();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        row = (struct rep_row){.handle = i ? 100 + i : KEPT_HANDLE,
                               .log = {1, 2, cases[i].log},
                               .segment = {cases[i].segment},
                               .epoch = {cases[i].epoch},
                               .version = 1,
                               .state = cases[i].state,
                               .prefix_id = {(uint32_t)cases[i].bytes, cases[i].crc}};
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        trace("%s\n", cases[i].what);
        row_answer(rig, 1, &row, 1, 0);
        if (rig->call_count) rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, none, 1);
    }
    TRACE_IS("n1 AUDIT from0 all, 10 s\n"
             "the copy that counts\n"
             "n1 SETTLE h12=KEEP/e5/p1, 10 s\n"
             "n1 AUDIT from0 all, 10 s\n"
             "never heard of\n"
             "n1 SETTLE h101=DROP/e5/p0, 10 s\n"
             "n1 AUDIT from0 all, 10 s\n"
             "never heard of, open\n"
             "n1 SETTLE h102=DROP/e5/p0, 10 s\n"
             "n1 AUDIT from0 all, 10 s\n"
             "of an owner to come\n"
             "n1 AUDIT from0 all, 10 s\n"
             "of this owner\n"
             "n1 SETTLE h104=DROP/e5/p0, 10 s\n"
             "n1 AUDIT from0 all, 10 s\n"
             "of another log\n"
             "n1 AUDIT from0 all, 10 s\n"
             "not sure: 7\n"
             "n1 SETTLE h106=DROP/e5/p0, 10 s\n"
             "n1 AUDIT from0 all, 10 s\n"
             "not sure: 8\n"
             "n1 AUDIT from0 all, 10 s\n"
             "not sure: 9\n"
             "n1 AUDIT from0 all, 10 s\n"
             "not sure: 10\n"
             "n1 SETTLE h109=DROP/e5/p0, 10 s\n");
    rig_free(rig);
}

/* Goal: a further replica of a segment is dropped where enough copies count. Where not, the replica stays, or is cut to
 * the end if an earlier owner had left it open or longer. */
static void other_replica_of_a_segment_goes_when_there_are_enough(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t bytes, crc, state, epoch;
    } cases[] = {
        {"the same", 5000, 77, LEAT_SEGMENT_CLOSED, 3},
        {"other bytes", 5000, 78, LEAT_SEGMENT_CLOSED, 3},
        {"shorter", 4999, 77, LEAT_SEGMENT_CLOSED, 3},
        {"longer", 5001, 77, LEAT_SEGMENT_CLOSED, 3},
        {"longer, of another epoch", 5001, 77, LEAT_SEGMENT_CLOSED, 4},
        {"hibernated", 5000, 77, LEAT_SEGMENT_HIBERNATED, 3},
        {"open", 0, 0, LEAT_SEGMENT_OPEN, 3},
        {"a reservation", 0, 0, LEAT_SEGMENT_RESERVED, 3},
    };
    for (unsigned enough = 0; enough < 2; enough++) {
        trace_begin();
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct rig *rig = taken_over(3, 3, true);
            static const uint8_t none[] = {0x90};
            rig->quiet = true;
            for (unsigned node = 1; node <= 1 + enough; node++) {
                struct rep_row row = row_of(&rig->segs[2], 12);
                row_answer(rig, node, &row, 1, 0);
                rig_answer_bytes(rig, node, LEAT_REP_SETTLE, LEAT_OK, none, 1);
            }
            rig->quiet = false;
            trace("%s\n", cases[i].what);
            struct rep_row row = {.handle = 32,
                                  .log = {1, 2, 3},
                                  .segment = {2},
                                  .epoch = {cases[i].epoch},
                                  .version = 1,
                                  .state = cases[i].state,
                                  .prefix_id = {cases[i].bytes, cases[i].crc}};
            row_answer(rig, 3, &row, 1, 0);
            rig_free(rig);
        }
        if (enough)
            TRACE_IS("the same\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "other bytes\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "shorter\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "longer\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "longer, of another epoch\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "hibernated\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "open\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n"
                     "a reservation\n"
                     "n3 SETTLE h32=DROP/e5/p0, 10 s\n");
        else
            TRACE_IS("the same\n"
                     "n3 SETTLE h32=KEEP/e5/p1, 10 s\n"
                     "other bytes\n"
                     "shorter\n"
                     "longer\n"
                     "n3 SEAL s2 h32 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n"
                     "longer, of another epoch\n"
                     "hibernated\n"
                     "n3 SEAL s2 h32 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n"
                     "open\n"
                     "n3 SEAL s2 h32 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n"
                     "a reservation\n"
                     "n3 SEAL s2 h32 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n");
    }
}

/* Goal: a backup that has cut a replica on request is then asked for all its replicas, and no backup has two such
 * requests at a time. */
static void replica_that_was_cut_is_asked_about_again(void **state)
{
    (void)state;
    struct rig *rig = taken_over(1, 2, true);
    struct rep_row rows[2] = {row_of(&rig->segs[2], 12), row_of(&rig->segs[2], 13)};
    rows[0].state = rows[1].state = LEAT_SEGMENT_HIBERNATED;
    trace_begin();
    row_answer(rig, 1, rows, 2, 0);
    TRACE_IS("n1 SEAL s2 h12 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n");
    rig_pass(rig, 100 * 1000);
    TRACE_IS("");
    rig_answer(rig, 1, LEAT_REP_SEAL);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n");
    row_answer(rig, 1, rows, 1, 0);
    rig_refuse(rig, 1, LEAT_REP_SEAL, LEAT_E_AGAIN);
    rig_pass(rig, 100 * 1000);
    TRACE_IS("n1 SEAL s2 h12 v1 d1 5000:77 to 1002/2002 e3/5, 10 s\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "0 bytes in 0 writes, 0 segments; control 0 open 0 hibernate 0 resume 0 flush 0 other 6; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: an owner that has asked for another, or is given up, or that has older segments to come, calls nothing one too
 * many. */
static void owner_that_does_not_know_lets_nothing_go(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct rig *rig = taken_over(1, 2, true);
        struct rep_row row = row_of(&rig->segs[2], 12);
        row.segment.v = 1;
        if (way == 0) rig->log->options.backfill_follows = true;
        if (way == 1) leat_primary_log_silence(rig->log, true);
        if (way == 2) rig->log->releasing = true;
        trace_begin();
        row_answer(rig, 1, &row, 1, 0);
        if (way == 3)
            TRACE_IS("n1 SETTLE h12=DROP/e5/p0, 10 s\n");
        else
            TRACE_IS("");
        if (way == 0) leat_primary_log_whole(rig->log);
        if (way == 1) leat_primary_log_silence(rig->log, false);
        rig_pass(rig, 30 * 1000);
        if (way == 0)
            TRACE_IS("n1 AUDIT from0 all, 10 s\n");
        else
            TRACE_IS("");
        rig_free(rig);
    }
}

/* Goal: a backup that has more than one answer holds is asked on from there, at once; what was asked for meanwhile is
 * asked after it; else each is asked every 30 s, and not for what has its word. */
static void audit_goes_on_to_its_end(void **state)
{
    (void)state;
    struct rig *rig = taken_over(1, 2, true);
    trace_begin();
    row_answer(rig, 1, NULL, 0, 256);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from256 all, 10 s\n");
    rep_audit_all(rig_peer(rig, 1));
    row_answer(rig, 1, NULL, 0, 0);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n");
    row_answer(rig, 1, NULL, 0, 0);
    rig_pass(rig, 29900 * 1000);
    TRACE_IS("n1 OPEN s2 h0 v1 d1 part to 1002/2002 e3/5, 2 s\n");
    rig_pass(rig, 200 * 1000);
    TRACE_IS("n1 AUDIT from0, 10 s\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "0 bytes in 0 writes, 0 segments; control 0 open 0 hibernate 0 resume 0 flush 0 other 5; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: a copy that its backup has found damaged is lost; another is made, and it is not called one too many before. */
static void copy_that_is_damaged_there_is_lost(void **state)
{
    (void)state;
    struct rig *rig = taken_over(2, 2, true);
    static const uint8_t none[] = {0x90};
    struct rep_row row = row_of(&rig->segs[2], 12);
    row_answer(rig, 1, &row, 1, 0);
    rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, none, 1);
    row_answer(rig, 2, NULL, 0, 0);
    row.state = LEAT_SEGMENT_RESERVED;
    rep_audit_all(rig_peer(rig, 1));
    rig_pass(rig, 20 * 1000);
    trace_begin();
    row_answer(rig, 1, &row, 1, 0);
    TRACE_IS("");
    assert_int_equal(rep_set_find(rig->log, 2)->copy_count, 0);
    rig_pass(rig, 1100 * 1000);
    TRACE_IS("n1 OPEN s2 h0 v1 d1 part to 1002/2002 e3/5, 2 s\n");
    rig_free(rig);
}

/* ---- copying again ---- */

/* Goal: a closed segment that lacks a copy is read from its file in pieces, at the rate allowed, and closed there. */
static void closed_segment_is_copied_from_its_file(void **state)
{
    (void)state;
    struct rig *rig = taken_over(1, 2, false);
    row_answer(rig, 1, NULL, 0, 0);
    trace_begin();
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("n1 OPEN s2 h0 v1 d1 part to 1002/2002 e3/5, 2 s\n");
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 12, 0x10000);
    rig_pass(rig, 8 * 1000);
    TRACE_IS("read 196608+8192\n");
    rig->ios[0]->rc = LEAT_OK;
    rig->ios[0]->done_bytes = 8192;
    rig->ios[0]->on_done(rig->ios[0]);
    rig->io_count = 0;
    TRACE_IS("n1 write @65536+5000 from staging\n");
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("n1 CLOSE s2 h12 v1 d1 part 5000:77 to 1002/2002 e3/5, 2 s\n");
    const struct rep_copy *copy = rep_set_find(rig->log, 2)->copies[0];
    assert_true(copy->incomplete && !copy->counted);
    assert_int_equal(rig_peer(rig, 1)->open_count, 1);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    assert_true(!copy->incomplete && copy->counted);
    assert_int_equal(rig_peer(rig, 1)->open_count, 0);
    rig_pass(rig, 100 * 1000);
    TRACE_IS("n1 AUDIT from0, 10 s\n");
    assert_int_equal(rig->primary->accounts.recopied_bytes, 5000);
    assert_null(rig->primary->recopy);
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "5000 bytes in 1 writes, 1 segments; control 2 open 1 hibernate 0 resume 0 flush 0 other "
        "3; refused 0 lost 0 replaced 0 recopied 5000 versions 0\n");
    rig_free(rig);
}

/* Goal: a segment that can't be read is reported to the log, and the copy that needed the bytes is given up. */
static void segment_that_can_not_be_read_is_told_of(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 5; way++) {
        struct rig *rig = taken_over(1, 2, false);
        row_answer(rig, 1, NULL, 0, 0);
        rig_pass(rig, 1000 * 1000);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 12, 0x10000);
        rig_pass(rig, 8 * 1000);
        trace_begin();
        struct leat_disk_io *io = rig->ios[0];
        rig->io_count = 0;
        io->rc = way == 0 ? LEAT_E_DISK : LEAT_OK;
        io->done_bytes = way == 1 ? 4999 : 5000;
        if (way == 2) rig_target_failed(rig, 1); /* nobody waits for it any more */
        io->on_done(io);
        rig_mails(rig);
        if (way >= 3) {
            rig_wrote(rig, 1,
                      LEAT_OK); /* its checksum is another there, or the disk there is at fault */
            rig_refuse(rig, 1, LEAT_REP_CLOSE, way == 3 ? LEAT_E_DAMAGED : LEAT_E_DISK);
        }
        if (way < 2)
            TRACE_IS("damaged s2\n");
        else if (way == 2)
            TRACE_IS("detach n1\n");
        else if (way == 3)
            TRACE_IS("n1 write @65536+5000 from staging\n"
                     "n1 CLOSE s2 h12 v1 d1 part 5000:77 to 1002/2002 e3/5, 2 s\n"
                     "damaged s2\n");
        else
            TRACE_IS("n1 write @65536+5000 from staging\n"
                     "n1 CLOSE s2 h12 v1 d1 part 5000:77 to 1002/2002 e3/5, 2 s\n");
        assert_int_equal(rep_set_find(rig->log, 2)->copy_count, 0);
        assert_int_equal(rep_set_find(rig->log, 2)->writes, 0);
        rig_free(rig);
    }
}

/* Goal: for a segment that goes meanwhile nothing is reported, and no piece is written. */
static void segment_that_goes_is_not_copied_on(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        struct rig *rig = taken_over(1, 2, false);
        row_answer(rig, 1, NULL, 0, 0);
        rig_pass(rig, 1000 * 1000);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 12, 0x10000);
        rig_pass(rig, 8 * 1000);
        struct rep_set *set = rep_set_find(rig->log, 2);
        struct leat_disk_io *io = rig->ios[0];
        rig->io_count = 0;
        trace_begin();
        set->dropping = true;
        io->rc = fails ? LEAT_E_DISK : LEAT_OK;
        io->done_bytes = 8192;
        io->on_done(io);
        assert_int_equal(set->copy_count, 0);
        assert_int_equal(set->writes, 0);
        set->dropping = false;
        TRACE_IS("");
        rig_free(rig);
    }
}

/* Goal: a copy of a segment that is corrupt on this node is made from memory only; without the memory its bytes are
 * fetched first. */
static void damaged_segment_is_copied_out_of_memory_alone(void **state)
{
    (void)state;
    for (unsigned in_memory = 0; in_memory < 2; in_memory++) {
        struct rig *rig = taken_over(1, 2, in_memory);
        row_answer(rig, 1, NULL, 0, 0);
        rig->segs[2].integrity = LEAT_INTEGRITY_CORRUPT;
        trace_begin();
        rig_pass(rig, 2000 * 1000);
        if (in_memory)
            TRACE_IS("n1 OPEN s2 h0 v1 d1 part to 1002/2002 e3/5, 2 s\n");
        else
            TRACE_IS("");
        rig_free(rig);
    }
}

/* Goal: copying again keeps to its rate: a second's worth of bytes takes a second, also after a pause. */
static void closed_segments_are_copied_at_their_rate(void **state)
{
    (void)state;
    struct rig *rig = taken_over(1, 2, false);
    rig->primary->options.recopy_bytes_per_second = 1024 * 1024;
    rig->segs[2].capacity = 2 * 1024 * 1024;
    rig->segs[2].prefix_id.bytes = rep_set_find(rig->log, 2)->target = 5 * 256 * 1024;
    row_answer(rig, 1, NULL, 0, 0);
    rig->quiet = true;
    while (rig->call_count == 0 || rig->calls[0].call->kind != LEAT_REP_OPEN)
        rig_pass(rig, 1000);
    rig_pass(rig, 5 * 1000 * 1000); /* what was saved up is no more than one piece */
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 12, 0x10000);
    rig->quiet = false;
    trace_begin();
    uint64_t from_us = rig->now_us;
    for (unsigned i = 0; i < 5; i++) {
        while (rig->io_count == 0)
            rig_pass(rig, 1000);
        trace("after %llu ms\n", (unsigned long long)(rig->now_us - from_us) / 50000 * 50);
        struct leat_disk_io *io = rig->ios[--rig->io_count];
        io->rc = LEAT_OK;
        io->done_bytes = io->bytes;
        io->on_done(io);
        rig_wrote(rig, 1, LEAT_OK);
    }
    TRACE_IS("read 196608+262144\n"
             "after 0 ms\n"
             "n1 write @65536+262144 from staging\n"
             "read 458752+262144\n"
             "after 250 ms\n"
             "n1 write @327680+262144 from staging\n"
             "read 720896+262144\n"
             "after 500 ms\n"
             "n1 write @589824+262144 from staging\n"
             "read 983040+262144\n"
             "after 750 ms\n"
             "n1 write @851968+262144 from staging\n"
             "read 1245184+262144\n"
             "after 1000 ms\n"
             "n1 write @1114112+262144 from staging\n"
             "n1 CLOSE s2 h12 v1 d1 part 1310720:77 to 1002/2002 e3/5, 2 s\n");
    rig_free(rig);
}

/* Goal: how long a copy is waited for follows from who is away. */
static void copy_is_waited_for_as_long_as_who_has_it_may_come(void **state)
{
    (void)state;
    trace_begin();
    for (unsigned way = 0; way < 5; way++) {
        struct rig *rig = taken_over(1, 2, true);
        rig->quiet = true;
        struct leat_rep_node away = rig_node(3);
        row_answer(rig, 1, NULL, 0, 0);
        away.incarnation = way >= 3 ? 103 : 0;
        away.crashed = way == 1;
        away.gone = way == 2;
        leat_primary_node_set(rig->primary, &away);
        if (way == 4) rig_peer_up(rig, 3);
        if (way == 4) rig_grant(rig, 3);
        if (way == 4) rig_attached(rig, 3); /* here, and has not told what it has */
        uint64_t from_us = rig->now_us;
        while (!rig->primary->recopy && rig->now_us < from_us + 100 * 1000 * 1000) {
            rig_pass(rig, 1000 * 1000);
            for (unsigned i = 0; i < rig->call_count; i++)
                if (rig->calls[i].node == 1 && rig->calls[i].call->kind == LEAT_REP_AUDIT)
                    row_answer(rig, 1, NULL, 0, 0);
        }
        rig->quiet = false;
        trace("%llu s\n", (unsigned long long)(rig->now_us - from_us) / 1000 / 1000);
        rig_free(rig);
    }
    TRACE_IS("60 s\n"
             "20 s\n"
             "1 s\n"
             "60 s\n"
             "60 s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(copy_that_is_found_counts_when_its_backup_has_heard_it),
        TRACE_TEST(row_is_judged_by_what_the_log_has),
        TRACE_TEST(other_replica_of_a_segment_goes_when_there_are_enough),
        TRACE_TEST(replica_that_was_cut_is_asked_about_again),
        TRACE_TEST(owner_that_does_not_know_lets_nothing_go),
        TRACE_TEST(audit_goes_on_to_its_end),
        TRACE_TEST(copy_that_is_damaged_there_is_lost),
        TRACE_TEST(closed_segment_is_copied_from_its_file),
        TRACE_TEST(segment_that_can_not_be_read_is_told_of),
        TRACE_TEST(segment_that_goes_is_not_copied_on),
        TRACE_TEST(damaged_segment_is_copied_out_of_memory_alone),
        TRACE_TEST(closed_segments_are_copied_at_their_rate),
        TRACE_TEST(copy_is_waited_for_as_long_as_who_has_it_may_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
