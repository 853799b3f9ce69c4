/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of the loss of a copy, message by message, at each point of the copy's life: a primary alone, whose whole
 * world is the trace. */
#include "tests/replication/primary_rig.h"

/* Its head is on nodes 1 and 2, and begun there up to 128. The log is opened. */
static struct rig *rig_begun(enum leat_durability durability, unsigned nodes)
{
    struct rig *rig = rig_new(nodes);
    rig_log_new(rig, durability, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    if (durability == LEAT_DURABILITY_DISK) {
        rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
        rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
        rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    }
    assert_int_equal(leat_primary_opening(rig->log), 1);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    trace_begin();
    return rig;
}

/* As said. `disk`: with flushes. */
static void replaced(enum leat_durability durability)
{
    bool disk = durability == LEAT_DURABILITY_DISK;
    struct rig *rig = rig_begun(durability, 3);
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 1, LEAT_OK);
    if (disk) rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    if (disk) rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    trace_begin();
    rig_peer_down(rig, 2);
    if (disk)
        TRACE_IS("detach n2\n"
                 "n3 OPEN s0 h0 v2 d2 part, 2 s\n"
                 "store STAMP s0 v2 role0 writer100\n"
                 "n1 RESTAMP h10=2, 2 s\n");
    else
        TRACE_IS("detach n2\n"
                 "n3 OPEN s0 h0 v2 d1 part, 2 s\n"
                 "store STAMP s0 v2 role0 writer100\n"
                 "n1 RESTAMP h10=2, 2 s\n");
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("n3 write @65536+192 from s0+0\n");
    assert_false(rig->log->lacking);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    TRACE_IS("");
    rig_wrote(rig, 3, LEAT_OK);
    if (disk) {
        TRACE_IS("n3 FLUSH h30=192, 10 s\n");
        rig_answer_rows(rig, 3, LEAT_REP_FLUSH, LEAT_OK);
        TRACE_IS("n3 COMPLETE s0 h30 v2 d2 part 192:192, 10 s\n");
    } else {
        TRACE_IS("n3 COMPLETE s0 h30 v2 d1 part 192:192, 10 s\n");
    }
    assert_int_equal(rep_set_whole_count(rep_set_find(rig->log, 0)), 2);
    rig_answer(rig, 3, LEAT_REP_COMPLETE);
    TRACE_IS("versions 1/2/3=e5v2\n");
    assert_int_equal(rep_set_whole_count(rep_set_find(rig->log, 0)), 3);
    rig_pass(rig, 1000 * 1000); /* nothing without its answer */
    TRACE_IS("");
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    assert_int_equal(rig->log->known, 2);
    assert_int_equal(rig->primary->accounts.replaced_copies, 1);
    assert_int_equal(rig->primary->accounts.versions, 1);
    assert_int_equal(rig->primary->accounts.lost_backups, 1);
    trace_begin();
    rig_accounts(rig);
    if (disk)
        TRACE_IS("512 bytes in 4 writes, 0 segments; control 3 open 3 hibernate 0 resume 0 flush 4 "
                 "other 8; refused 0 lost 1 replaced 1 recopied 0 versions 1\n");
    else
        TRACE_IS("512 bytes in 4 writes, 0 segments; control 3 open 3 hibernate 0 resume 0 flush 0 "
                 "other 8; refused 0 lost 1 replaced 1 recopied 0 versions 1\n");
    rig_free(rig);
}

/* Goal: after a loss acks wait; the other copies are restamped, a replacement counts before COMPLETE, then the
 * coordinator gets the new generation, and then acks go on. At both levels. */
static void lost_copy_is_replaced_then_told_then_acks_go_on(void **state)
{
    (void)state;
    replaced(LEAT_DURABILITY_MEMORY);
    replaced(LEAT_DURABILITY_DISK);
}

/* Goal: a write to a lost copy, which a slow node has not ended, holds up no ack: a commit whose bytes the other copies
 * have already is answered. */
static void write_to_a_lost_copy_holds_up_no_commit(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
    rig->quiet = true;
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 1, LEAT_OK);
    rig_peer_down(rig, 2); /* its write does not end */
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_wrote(rig, 3, LEAT_OK);
    rig_answer(rig, 3, LEAT_REP_COMPLETE);
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    rig->quiet = false;
    assert_int_equal(rep_set_find(rig->log, 0)->writes, 1);
    trace_begin();
    rig_commit(rig, 0, 192, 256);
    rig_sealed(rig, 0, 320);
    rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 320);
    for (unsigned i = 0; i < 2; i++) {
        rig_wrote(rig, 1, LEAT_OK);
        rig_wrote(rig, 3, LEAT_OK);
    }
    TRACE_IS("n1 write @4288+64 from s0+192\n"
             "n3 write @65728+64 from s0+192\n"
             "n1 write @4352+64 from s0+256\n"
             "n3 write @65792+64 from s0+256\n"
             "log COMMIT s0: OK\n");
    rig_commit(rig, 0, 256, 320);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_free(rig);
}

/* Goal: a replacement that is lost while it is copied was not counted by any ack, so the generation stays. The
 * generation rises where COMPLETE was under way: the lost replica may be whole, and an open replica for a recovery. */
static void lost_replacement_raises_the_version_only_where_it_may_be_whole(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
        rig_peer_down(rig, 2);
        rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        if (at > 0) rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000); /* else it is being opened */
        if (at > 1) rig_wrote(rig, 3, LEAT_OK);                        /* COMPLETE is asked */
        trace_begin();
        rig_target_failed(rig, 3);
        rig_pass(rig, 1000);
        if (at < 2)
            TRACE_IS("detach n3\n"
                     "versions 1/2/3=e5v2\n");
        else
            TRACE_IS("detach n3\n"
                     "store STAMP s0 v3 role0 writer100\n"
                     "n1 RESTAMP h10=3, 2 s\n");
        assert_int_equal(rig->log->need, at < 2 ? 2 : 3);
        assert_int_equal(rig->log->version, rig->log->need);
        rig_free(rig);
    }
}

/* Goal: a replacement is called whole when it has all bytes, not when none is under way. */
static void replacement_without_its_bytes_is_not_called_whole(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
    rig_peer_down(rig, 2);
    rig->write_rc = LEAT_E_CLOSED; /* no way to it just now */
    trace_begin();
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_pass(rig, 100 * 1000);
    TRACE_IS("");
    rig->write_rc = LEAT_OK;
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n3 write @65536+128 from s0+0\n");
    rig_wrote(rig, 3, LEAT_OK);
    TRACE_IS("n3 COMPLETE s0 h30 v2 d1 part 128:128, 10 s\n");
    rig_free(rig);
}

/* Goal: where no other node can take a lost copy, the log goes on with the remaining copies once the coordinator has
 * the new generation; with too few copies the log does not go on. */
static void log_goes_on_without_a_copy_that_nobody_can_have(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_peer_down(rig, 2);
    TRACE_IS("detach n2\n"
             "store STAMP s0 v2 role0 writer100\n"
             "n1 RESTAMP h10=2, 2 s\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    TRACE_IS("versions 1/2/3=e5v2\n");
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("n1 write @4224+64 from s0+128\n");
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    assert_int_equal(rig->store_port.refusal(rig->store_port.ctx), LEAT_OK);
    rig_peer_down(rig, 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_commit(rig, 0, 192, 256);
    rig_pass(rig, 10 * 1000 * 1000);
    TRACE_IS("detach n1\n"
             "store STAMP s0 v3 role0 writer100\n");
    assert_int_equal(rig->store_port.refusal(rig->store_port.ctx), LEAT_E_TOO_FEW_COPIES);
    rig_node_up(rig, 2);
    TRACE_IS("n2 ATTACH, 10 s\n"
             "attach n2 grant2\n"
             "room\n"
             "n2 OPEN s0 h0 v3 d1 part, 2 s\n");
    assert_int_equal(rig->store_port.refusal(rig->store_port.ctx), LEAT_OK);
    rig_free(rig);
}

/* Goal: a log that another one owns by now has its commits refused, and asks for nothing. */
static void commit_of_a_log_that_is_anothers_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_peer_down(rig, 2);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_commit(rig, 0, 128, 192);
    trace_begin();
    leat_primary_versions_done(rig->primary, LEAT_E_STALE_EPOCH);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: STALE_EPOCH\n");
    rig_wrote(rig, 1, LEAT_OK);
    rig_pass(rig, 3 * 1000 * 1000);
    TRACE_IS("");
    assert_int_equal(rig->store_port.refusal(rig->store_port.ctx), LEAT_E_STALE_EPOCH);
    rig_free(rig);
    rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_commit(rig, 0, 128, 192);
    leat_primary_log_abandon(rig->log);
    TRACE_IS("n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n");
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: STALE_EPOCH\n");
    rig_free(rig);
}

/* Goal: a backup that refuses a step, or a row, or does not answer, has lost that copy: nobody knows what it is
 * like. */
static void copy_whose_backup_refuses_a_step_is_lost(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_DISK, 2);
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    trace_begin();
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_E_DISK);
    TRACE_IS("n1 OPEN s0 h0 v2 d2 part, 2 s\n"
             "store STAMP s0 v2 role0 writer100\n");
    rig_refuse(rig, 2, LEAT_REP_FLUSH, LEAT_E_TIMEOUT);
    TRACE_IS("n2 OPEN s0 h0 v2 d2 part, 2 s\n");
    assert_int_equal(rep_set_find(rig->log, 0)->copy_count, 2); /* being opened anew */
    rig_free(rig);
    rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    trace_begin();
    rig_refuse(rig, 1, LEAT_REP_HIBERNATE, LEAT_E_DISK);
    TRACE_IS("");
    rig_answer(rig, 2, LEAT_REP_HIBERNATE);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    TRACE_IS("log HIBERNATE s0: here\n"
             "log HIBERNATE s0: OK\n");
    assert_int_equal(rig->log->need, 2);
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .seg = &rig->segs[0]});
    TRACE_IS("n2 RESUME s0 h20 v2 d1 128:128 to 1000/2000, 10 s\n"
             "store RESUME s0\n");
    rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
    TRACE_IS(""); /* nothing is opened before all that there are go on */
    rig_refuse(rig, 2, LEAT_REP_RESUME, LEAT_E_NO_MEMORY);
    TRACE_IS("store STAMP s0 v3 role0 writer100\n"
             "log RESUME s0: OK\n"
             "n1 OPEN s0 h0 v3 d1 part to 1000/2000, 2 s\n"
             "n2 OPEN s0 h0 v3 d1 part to 1000/2000, 2 s\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "256 bytes in 2 writes, 0 segments; control 2 open 2 hibernate 1 resume 0 flush 0 other 4; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: RESUME and COMPLETE carry the generation of their time to the backup: a copy that has answered has this
 * generation, and is not restamped. */
static void answer_stands_for_the_generation_that_was_asked(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    rig_refuse(rig, 1, LEAT_REP_HIBERNATE, LEAT_E_DISK);
    rig_answer(rig, 2, LEAT_REP_HIBERNATE);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .seg = &rig->segs[0]});
    rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
    trace_begin();
    rig_answer_at(rig, 2, LEAT_REP_RESUME, 20, 8192);
    TRACE_IS("store STAMP s0 v2 role0 writer100\n"
             "log RESUME s0: OK\n"
             "n1 OPEN s0 h0 v2 d1 part to 1000/2000, 2 s\n");
    rig_free(rig);
    rig = rig_begun(LEAT_DURABILITY_MEMORY, 4);
    leat_primary_log_min_copies_set(rig->log, 1);
    rig_peer_down(rig, 2);
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_peer_down(rig, 1);
    trace_begin();
    rig_wrote(rig, 3, LEAT_OK);
    TRACE_IS("n3 COMPLETE s0 h30 v3 d1 part 128:128, 10 s\n");
    rig_answer(rig, 3, LEAT_REP_COMPLETE);
    TRACE_IS("");
    rig_free(rig);
}

/* Goal: RESTAMP that is answered after another loss has given the copy the generation that was sent, not the present
 * one: the copy is restamped again. */
static void restamp_stands_for_the_generation_that_was_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
    leat_primary_log_min_copies_set(rig->log, 1);
    rig_peer_down(rig, 2);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_wrote(rig, 3, LEAT_OK);
    trace_begin();
    rig_peer_down(rig, 3); /* it may be whole there */
    TRACE_IS("detach n3\n"
             "store STAMP s0 v3 role0 writer100\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("");
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK); /* with generation 2 */
    TRACE_IS("n1 RESTAMP h10=3, 2 s\n");
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    TRACE_IS("versions 1/2/3=e5v3\n");
    rig_free(rig);
}

/* Goal: this node's own STAMP, answered after another loss, has given the segment the generation that was sent: it is
 * stamped again. */
static void stamp_stands_for_the_generation_that_was_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
    leat_primary_log_min_copies_set(rig->log, 1);
    rig_peer_down(rig, 2);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_wrote(rig, 3, LEAT_OK);
    rig_peer_down(rig, 3); /* it may be whole there */
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    trace_begin();
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK); /* with generation 2 */
    TRACE_IS("store STAMP s0 v3 role0 writer100\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("versions 1/2/3=e5v3\n");
    rig_free(rig);
}

/* Goal: OPEN that is answered after a loss in the segment before has given the copy the generation that was sent: the
 * copy is restamped. */
static void open_stands_for_the_generation_that_was_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 1);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_peer_down(rig, 2);
    trace_begin();
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 11, 0x10000); /* with generation 1 */
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    TRACE_IS("n1 RESTAMP h11=2, 2 s\n");
    rig_free(rig);
}

/* Goal: FLUSH makes durable what had arrived when FLUSH was sent: a commit that came meanwhile waits for another
 * FLUSH. */
static void flush_stands_for_the_bytes_that_it_named(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_DISK, 3);
    rig_peer_down(rig, 2);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_wrote(rig, 3, LEAT_OK);
    rig_commit(rig, 0, 128, 192); /* FLUSH of 128 bytes is on its way to node 3 */
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 3, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    trace_begin();
    rig_answer_rows(rig, 3, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("n3 FLUSH h30=192, 10 s\n");
    rig_answer_rows(rig, 3, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("n3 COMPLETE s0 h30 v2 d2 part 192:192, 10 s\n");
    rig_free(rig);
}

/* Goal: a copy whose CLOSE is refused is copied again in the background; it has no part in the log's end. */
static void copy_whose_close_is_refused_is_made_anew(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    trace_begin();
    rig_refuse(rig, 1, LEAT_REP_CLOSE, LEAT_E_DISK);
    TRACE_IS("");
    assert_int_equal(rig->log->need, 0);
    rig_pass(rig, 990 * 1000);
    TRACE_IS("");
    rig_pass(rig, 60 * 1000);
    TRACE_IS("n1 OPEN s0 h0 v1 d1 part to 1000/2000, 2 s\n");
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 11, 4096);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 write @4096+128 from staging\n");
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("n1 CLOSE s0 h11 v1 d1 part 128:128 to 1000/2000, 2 s\n");
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("");
    assert_int_equal(rig->primary->accounts.segments, 1);
    assert_int_equal(rig->primary->accounts.recopied_bytes, 128);
    assert_null(rig->primary->recopy);
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "384 bytes in 3 writes, 1 segments; control 5 open 3 hibernate 0 resume 0 flush 0 other 4; "
        "refused 0 lost 0 replaced 0 recopied 128 versions 0\n");
    rig_free(rig);
}

/* Goal: where this node's own row can't be written, the write is tried again after 200 ms; until then no generation is
 * sent and nothing is acked. */
static void stamp_that_the_store_refuses_is_tried_again(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 2);
    rig_peer_down(rig, 2);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    trace_begin();
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_E_DISK);
    rig_pass(rig, 199 * 1000);
    TRACE_IS("");
    rig_pass(rig, 21 * 1000);
    TRACE_IS("store STAMP s0 v2 role0 writer100\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("versions 1/2/3=e5v2\n");
    rig_free(rig);
}

/* Goal: a second loss while the coordinator is asked raises the version again; what was told before does not let acks
 * go on. */
static void second_loss_is_told_by_itself(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 4);
    leat_primary_log_min_copies_set(rig->log, 1);
    rig_peer_down(rig, 2);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_wrote(rig, 3, LEAT_OK);
    rig_answer(rig, 3, LEAT_REP_COMPLETE);
    trace_begin();
    rig_peer_down(rig, 1);
    TRACE_IS("detach n1\n"
             "n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "store STAMP s0 v3 role0 writer100\n"
             "n3 RESTAMP h30=3, 2 s\n");
    rig_commit(rig, 0, 128, 192);
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    TRACE_IS("n3 write @65664+64 from s0+128\n");
    assert_int_equal(rig->log->known, 2);
    rig_wrote(rig, 3, LEAT_OK);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 3, LEAT_REP_RESTAMP, LEAT_OK);
    rig_pass(rig, 1000 * 1000); /* a replacement first, while there is somewhere for it to go */
    TRACE_IS("");
    while (!rig->primary->versions_busy) {
        rig_refuse(rig, 4, LEAT_REP_OPEN, LEAT_E_AGAIN);
        if (!rig->primary->versions_busy) rig_pass(rig, 20 * 1000);
    }
    TRACE_IS("n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "n4 OPEN s0 h0 v3 d1 part, 2 s\n"
             "versions 1/2/3=e5v3\n");
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "448 bytes in 4 writes, 0 segments; control 3 open 3 hibernate 0 resume 0 flush 0 other "
        "11; refused 6 lost 2 replaced 1 recopied 0 versions 2\n");
    rig_free(rig);
}

/* Goal: a loss before the log is opened needs no generation at the coordinator: the opened entry has the stamp that all
 * copies have. */
static void loss_before_opened_is_part_of_what_is_opened(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    trace_begin();
    rig_peer_down(rig, 2);
    TRACE_IS("detach n2\n"
             "store STAMP s0 v2 role0 writer100\n"
             "n1 RESTAMP h10=2, 2 s\n");
    assert_int_equal(leat_primary_opening(rig->log), 1); /* not all carry 2 yet */
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    assert_int_equal(leat_primary_opening(rig->log), 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("");
    assert_int_equal(leat_primary_opening(rig->log), 2);
    leat_primary_opened(rig->log, LEAT_E_TIMEOUT);
    assert_true(rig->log->opening && !rig->log->opened && !rig->log->fenced);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    leat_primary_opened(rig->log, LEAT_E_STALE_EPOCH);
    assert_true(!rig->log->opened && rig->log->fenced);
    rig_free(rig);
}

/* Goal: the opened entry never has a stamp that fewer copies have than acks need: the lost copies have everything that
 * was acked, and may be the only copies that come back. The log is opened when there are enough copies again, before
 * any further ack. */
static void opened_with_too_few_copies_the_lost_ones_count(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_peer_down(rig, 2);
    rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    assert_int_equal(leat_primary_opening(rig->log), 2);
    leat_primary_opened(rig->log, LEAT_E_TIMEOUT);
    rig_mails(rig);
    rig_peer_down(rig, 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    trace_begin();
    assert_int_equal(leat_primary_opening(rig->log), 2); /* this node alone carries 3 */
    leat_primary_opened(rig->log, LEAT_OK);
    rig_commit(rig, 0, 128, 192);
    rig_pass(rig, 10 * 1000 * 1000);
    TRACE_IS("");
    rig_node_up(rig, 1);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 30, 12288);
    rig_wrote(rig, 1, LEAT_OK);
    rig_answer(rig, 1, LEAT_REP_COMPLETE);
    TRACE_IS("n1 ATTACH, 10 s\n"
             "attach n1 grant1\n"
             "room\n"
             "n1 OPEN s0 h0 v3 d1 part, 2 s\n"
             "n1 write @12288+192 from s0+0\n"
             "n1 COMPLETE s0 h30 v3 d1 part 192:192, 10 s\n"
             "versions 1/2/3=e5v3\n");
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_free(rig);
    rig = rig_new(1); /* and where none was asked for before */
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_pass(rig, 3 * 1000 * 1000);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_peer_down(rig, 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    assert_int_equal(leat_primary_opening(rig->log), 1);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(lost_copy_is_replaced_then_told_then_acks_go_on),
        TRACE_TEST(write_to_a_lost_copy_holds_up_no_commit),
        TRACE_TEST(lost_replacement_raises_the_version_only_where_it_may_be_whole),
        TRACE_TEST(replacement_without_its_bytes_is_not_called_whole),
        TRACE_TEST(log_goes_on_without_a_copy_that_nobody_can_have),
        TRACE_TEST(commit_of_a_log_that_is_anothers_is_refused),
        TRACE_TEST(copy_whose_backup_refuses_a_step_is_lost),
        TRACE_TEST(answer_stands_for_the_generation_that_was_asked),
        TRACE_TEST(restamp_stands_for_the_generation_that_was_sent),
        TRACE_TEST(stamp_stands_for_the_generation_that_was_sent),
        TRACE_TEST(open_stands_for_the_generation_that_was_sent),
        TRACE_TEST(flush_stands_for_the_bytes_that_it_named),
        TRACE_TEST(copy_whose_close_is_refused_is_made_anew),
        TRACE_TEST(stamp_that_the_store_refuses_is_tried_again),
        TRACE_TEST(second_loss_is_told_by_itself),
        TRACE_TEST(loss_before_opened_is_part_of_what_is_opened),
        TRACE_TEST(opened_with_too_few_copies_the_lost_ones_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
