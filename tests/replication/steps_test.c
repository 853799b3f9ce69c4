/* SPDX-License-Identifier: Apache-2.0 */
/* A segment and its copies, from reservation to end, message by message: a primary alone, whose whole world is the
 * trace. */
#include "tests/replication/primary_rig.h"

/* Segment `id` reserved on nodes 1 and 2, as handles 10 + id and 20 + id. */
static void reserved(struct rig *rig, uint64_t id)
{
    rig_reserve(rig, id);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10 + id, 4096 * (1 + id));
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20 + id, 8192 * (1 + id));
}

/* Its first bytes are everywhere. */
static void begun(struct rig *rig, uint64_t id, uint32_t bytes)
{
    rig_commit(rig, id, 0, bytes);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    if (rig->log->options.durability != LEAT_DURABILITY_DISK) return;
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
}

static struct rig *rig_begun(enum leat_durability durability, uint32_t bytes)
{
    struct rig *rig = rig_new(2);
    rig_log_new(rig, durability, 3);
    reserved(rig, 0);
    begun(rig, 0, bytes);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    trace_begin();
    return rig;
}

/* Goal: a segment is reserved here and at the backups at the same time, and answered when all have it. */
static void segment_is_reserved_everywhere_at_once(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct rig *rig = rig_new(3);
        rig_log_new(rig, (enum leat_durability)level, 3);
        rig_reserve(rig, 7);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("store RESERVE s7 1/2/3 e5 v1 cap65536 d1\n"
                     "n1 OPEN s7 h0 v1 d1, 2 s\n"
                     "n2 OPEN s7 h0 v1 d1, 2 s\n");
        else
            TRACE_IS("store RESERVE s7 1/2/3 e5 v1 cap65536 d2\n"
                     "n1 OPEN s7 h0 v1 d2, 2 s\n"
                     "n2 OPEN s7 h0 v1 d2, 2 s\n");
        rig_answer_at(rig, 2, LEAT_REP_OPEN, 21, 8192);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 11, 4096);
        TRACE_IS("");
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        TRACE_IS("log RESERVE s7: OK\n");
        assert_int_equal(rep_set_whole_count(rep_set_find(rig->log, 7)), 3);
        rig_free(rig);
    }
}

/* Goal: at level `memory` what is committed is written to each copy from where it ends there, and answered when all
 * have it; what is sealed meanwhile goes ahead, up to the window, and is asked for by the next commit. */
static void commit_in_memory_is_done_when_each_copy_has_its_bytes(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    reserved(rig, 0);
    trace_begin();
    rig_commit(rig, 0, 0, 128);
    TRACE_IS("n1 write @4096+128 from s0+0\n"
             "n2 write @8192+128 from s0+0\n");
    rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 128); /* no more than there is */
    TRACE_IS("");
    rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 192);
    rig_sealed(rig, 0, 192);
    TRACE_IS("n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n");
    rig_wrote(rig, 2, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    TRACE_IS("");
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
    rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 1000); /* no commit is under way */
    TRACE_IS("");
    rig_commit(rig, 0, 128, 192);
    TRACE_IS("");
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "384 bytes in 4 writes, 0 segments; control 2 open 2 hibernate 0 resume 0 flush 0 other 6; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: no more than the window's writes of a replica are under way, the rest follows as they end; and what is written
 * at a time is no more than the transport is given. */
static void writes_of_a_copy_keep_to_the_window(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct rig *rig = rig_new(0);
        rig->quiet = true;
        rig->kind = way ? LEAT_RMEM_TCP : LEAT_RMEM_SHM;
        rig_node_up(rig, 1);
        rig_pass(rig, 1000);
        rig_audits_answer(rig);
        rig->quiet = false;
        rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
        rig_reserve(rig, 0);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
        trace_begin();
        rig_commit(rig, 0, 0, 64);
        for (uint32_t i = 1; i < 6; i++) {
            rig_sealed(rig, 0, 64 + 64 * i);
            rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 64 + 64 * i);
        }
        TRACE_IS("n1 write @4096+64 from s0+0\n"
                 "n1 write @4160+64 from s0+64\n"
                 "n1 write @4224+64 from s0+128\n"
                 "n1 write @4288+64 from s0+192\n");
        rig_wrote(rig, 1, LEAT_OK);
        TRACE_IS("n1 write @4352+128 from s0+256\n"
                 "log COMMIT s0: OK\n");
        rig_wrote(rig, 1, LEAT_OK);
        rig_wrote(rig, 1, LEAT_OK);
        rig_wrote(rig, 1, LEAT_OK);
        rig_wrote(rig, 1, LEAT_OK);
        TRACE_IS("");
        rig_free(rig);
    }
}

/* Goal: at level `disk` an ack needs the local commit, and each copy's flush of all that has arrived there. */
static void commit_on_disk_is_done_when_each_copy_is_flushed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3);
    rig_log_new(rig, LEAT_DURABILITY_DISK, 3);
    reserved(rig, 0);
    trace_begin();
    rig_commit(rig, 0, 0, 128);
    TRACE_IS("store COMMIT s0 0..128\n"
             "n1 write @4096+128 from s0+0\n"
             "n2 write @8192+128 from s0+0\n");
    rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], 192); /* not at this level */
    rig_wrote(rig, 1, LEAT_OK);
    TRACE_IS("n1 FLUSH h10=128, 10 s\n");
    rig_wrote(rig, 2, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("n2 FLUSH h20=128, 10 s\n");
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_commit(rig, 0, 128, 192);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("store COMMIT s0 128..192\n"
             "n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n"
             "n1 FLUSH h10=192, 10 s\n"
             "n2 FLUSH h20=192, 10 s\n");
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_commit(rig, 0, 192, 256);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_E_DISK);
    TRACE_IS("store COMMIT s0 192..256\n"
             "n1 write @4288+64 from s0+192\n"
             "n2 write @8384+64 from s0+192\n"
             "log COMMIT s0: DISK\n");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "384 bytes in 4 writes, 0 segments; control 2 open 2 hibernate 0 resume 0 flush 4 other 6; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: a log that rolls has two segments; the first is closed here and there, and its buffer is given back when
 * nothing is written from it; the second goes on. A dropped one goes from the backups first. */
static void segment_is_closed_evicted_and_dropped(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 128);
    reserved(rig, 1);
    begun(rig, 1, 256);
    trace_begin();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    TRACE_IS("n2 CLOSE s0 h20 v1 d1 128:128 to 1000/2000, 2 s\n"
             "n1 CLOSE s0 h10 v1 d1 128:128 to 1000/2000, 2 s\n"
             "store CLOSE s0\n");
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    TRACE_IS("log CLOSE s0: OK\n");
    assert_int_equal(rig->primary->accounts.segments, 0);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    TRACE_IS("");
    assert_int_equal(rig->primary->accounts.segments, 1);
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_EVICT, .seg = &rig->segs[0]});
    TRACE_IS("store EVICT s0\n");
    rig_stored(rig, LEAT_STORE_EVICT, LEAT_OK);
    TRACE_IS("log EVICT s0: OK\n");
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_DROP, .seg = &rig->segs[0]});
    TRACE_IS("n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n");
    rig_answer(rig, 1, LEAT_REP_DROP);
    TRACE_IS("");
    rig_refuse(rig, 2, LEAT_REP_DROP, LEAT_E_NOT_FOUND); /* an audit asks for it again */
    TRACE_IS("store DROP s0\n");
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    TRACE_IS("log DROP s0: OK\n");
    assert_null(rep_set_find(rig->log, 0));
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("");
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "768 bytes in 4 writes, 1 segments; control 6 open 4 hibernate 0 resume 0 flush 0 other 5; "
        "refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: a request that the store refuses is refused to the log: a close, a drop. */
static void store_that_refuses_is_believed(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 128);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    trace_begin();
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_E_DISK);
    TRACE_IS("log CLOSE s0: DISK\n");
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_DROP, .seg = &rig->segs[0]});
    rig_answer(rig, 1, LEAT_REP_DROP);
    rig_answer(rig, 2, LEAT_REP_DROP);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_E_DISK);
    TRACE_IS("n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n"
             "store DROP s0\n"
             "log DROP s0: DISK\n");
    rig_free(rig);
}

/* Goal: a head is hibernated on this node and at its backups, and resumed likewise; each copy then goes on where it
 * was. */
static void head_is_hibernated_and_resumed(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct rig *rig = rig_begun((enum leat_durability)level, 128);
        rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("n2 HIBERNATE s0 h20 v1 d1 128:128 to 1000/2000, 10 s\n"
                     "n1 HIBERNATE s0 h10 v1 d1 128:128 to 1000/2000, 10 s\n"
                     "store HIBERNATE s0\n");
        else
            TRACE_IS("n2 HIBERNATE s0 h20 v1 d2 128:128 to 1000/2000, 10 s\n"
                     "n1 HIBERNATE s0 h10 v1 d2 128:128 to 1000/2000, 10 s\n"
                     "store HIBERNATE s0\n");
        rig_answer(rig, 1, LEAT_REP_HIBERNATE);
        rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
        TRACE_IS("log HIBERNATE s0: here\n"); /* readers do not wait for node 2 */
        rig_pass(rig, 1000);
        TRACE_IS("");
        rig_answer(rig, 2, LEAT_REP_HIBERNATE);
        TRACE_IS("log HIBERNATE s0: OK\n");
        rig_pass(rig, 1000 * 1000);
        TRACE_IS("");
        rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .seg = &rig->segs[0]});
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("n2 RESUME s0 h20 v1 d1 128:128 to 1000/2000, 10 s\n"
                     "n1 RESUME s0 h10 v1 d1 128:128 to 1000/2000, 10 s\n"
                     "store RESUME s0\n");
        else
            TRACE_IS("n2 RESUME s0 h20 v1 d2 128:128 to 1000/2000, 10 s\n"
                     "n1 RESUME s0 h10 v1 d2 128:128 to 1000/2000, 10 s\n"
                     "store RESUME s0\n");
        rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
        rig_answer_at(rig, 2, LEAT_REP_RESUME, 20, 0x20000);
        TRACE_IS("");
        rig_answer_at(rig, 1, LEAT_REP_RESUME, 10, 0x10000);
        TRACE_IS("log RESUME s0: OK\n");
        rig_commit(rig, 0, 128, 192);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("n1 write @65664+64 from s0+128\n"
                     "n2 write @131200+64 from s0+128\n");
        else
            TRACE_IS("store COMMIT s0 128..192\n"
                     "n1 write @65664+64 from s0+128\n"
                     "n2 write @131200+64 from s0+128\n");
        trace_begin();
        rig_accounts(rig);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS(
                "256 bytes in 2 writes, 0 segments; control 2 open 2 hibernate 2 resume 2 flush 0 "
                "other 4; refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
        else
            TRACE_IS(
                "256 bytes in 2 writes, 0 segments; control 2 open 2 hibernate 2 resume 2 flush 2 "
                "other 4; refused 0 lost 0 replaced 0 recopied 0 versions 0\n");
        rig_free(rig);
    }
}

/* Goal: a hibernate, or a resume, that the store refuses leaves the head what it was, and it can be asked for again. */
static void hibernate_or_resume_that_is_refused_is_none(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 128);
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    trace_begin();
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_E_DISK);
    TRACE_IS("log HIBERNATE s0: DISK\n");
    assert_int_equal(rep_set_find(rig->log, 0)->state, REP_SET_STARTED);
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    rig_answer(rig, 2, LEAT_REP_HIBERNATE);
    TRACE_IS("n1 RESUME s0 h10 v1 d1 128:128 to 1000/2000, 10 s\n"
             "n2 RESUME s0 h20 v1 d1 128:128 to 1000/2000, 10 s\n");
    rig_answer_at(rig, 1, LEAT_REP_RESUME, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_RESUME, 20, 8192);
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    rig_answer(rig, 2, LEAT_REP_HIBERNATE);
    trace_begin();
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .seg = &rig->segs[0]});
    trace_begin();
    rig_stored(rig, LEAT_STORE_RESUME, LEAT_E_NO_MEMORY);
    TRACE_IS("log RESUME s0: NO_MEMORY\n");
    assert_int_equal(rep_set_find(rig->log, 0)->state, REP_SET_HIBERNATED);
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .seg = &rig->segs[0]});
    TRACE_IS("store RESUME s0\n");
    rig_free(rig);
}

/* Goal: writes from a buffer end before the buffer goes: eviction, hibernation and drop come after that. */
static void buffer_stays_while_writes_come_from_it(void **state)
{
    (void)state;
    static const enum leat_store_req_kind kinds[] = {LEAT_STORE_EVICT, LEAT_STORE_HIBERNATE,
                                                     LEAT_STORE_DROP};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 128);
        rig_commit(rig, 0, 128, 192);
        rig_wrote(rig, 1, LEAT_OK);
        rig_target_failed(rig, 2); /* its write is under way for long */
        rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        leat_primary_versions_done(rig->primary, LEAT_OK);
        rig_mails(rig);
        if (kinds[i] == LEAT_STORE_EVICT) rig_end(rig, LEAT_STORE_CLOSE, 0, 192);
        trace_begin();
        if (kinds[i] == LEAT_STORE_HIBERNATE)
            rig_end(rig, LEAT_STORE_HIBERNATE, 0, 192);
        else
            rig_ask(rig, (struct leat_store_req){.kind = kinds[i], .seg = &rig->segs[0]});
        rig_pass(rig, 50 * 1000);
        if (kinds[i] == LEAT_STORE_DROP) rig_answer(rig, 1, LEAT_REP_DROP); /* no copy is left */
        trace("-- and then\n");
        rig_wrote(rig, 2, LEAT_E_CANCELLED);
        if (kinds[i] == LEAT_STORE_EVICT)
            TRACE_IS("-- and then\n"
                     "store EVICT s0\n");
        else if (kinds[i] == LEAT_STORE_HIBERNATE)
            TRACE_IS("n1 HIBERNATE s0 h10 v2 d1 192:192 to 1000/2000, 10 s\n"
                     "-- and then\n"
                     "store HIBERNATE s0\n");
        else
            TRACE_IS("n1 DROP s0 h10 v2 d1, 2 s\n"
                     "-- and then\n"
                     "store DROP s0\n");
        rig_free(rig);
    }
}

/* Goal: that an operator has seen what was passed over is the store's to write, and the backups' to hear. */
static void given_up_is_told_to_the_store_and_to_each_backup(void **state)
{
    (void)state;
    struct rig *rig = rig_begun(LEAT_DURABILITY_MEMORY, 128);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    trace_begin();
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_GIVE_UP, .seg = &rig->segs[0]});
    TRACE_IS("store GIVE_UP s0\n");
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n"
             "n2 AUDIT from0 all, 10 s\n");
    rig_free(rig);
}

/* ---- nobody to ask ---- */

/* Goal: a node that refuses OPEN is not asked again for a while, and another node is asked at once; where all nodes
 * have refused they are asked again after 2 ms, and then twice as long each time, up to 200 ms. */
static void open_that_is_refused_goes_to_another_node(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    trace_begin();
    rig_refuse(rig, 1, LEAT_REP_OPEN, LEAT_E_AGAIN);
    TRACE_IS("n3 OPEN s0 h0 v1 d1, 2 s\n");
    rig_refuse(rig, 3, LEAT_REP_OPEN, LEAT_E_NO_MEMORY);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_refuse(rig, 1, LEAT_REP_OPEN, LEAT_E_AGAIN);
    rig_refuse(rig, 3, LEAT_REP_OPEN, LEAT_E_AGAIN);
    TRACE_IS("n1 OPEN s0 h0 v1 d1, 2 s\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "log RESERVE s0: OK\n");
    for (unsigned i = 0; i < 8; i++) {
        uint64_t from_us = rig->now_us;
        while (rig->call_count == 0)
            rig_pass(rig, 1000);
        trace("after %llu ms\n", (unsigned long long)(rig->now_us - from_us) / 1000);
        while (rig->call_count)
            rig_refuse(rig, rig->calls[0].node, LEAT_REP_OPEN, LEAT_E_AGAIN);
    }
    TRACE_IS("n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 6 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 8 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 16 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 20 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 32 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 64 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 128 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "after 200 ms\n"
             "n3 OPEN s0 h0 v1 d1, 2 s\n");
    assert_int_equal(rig->primary->accounts.refused_opens, 20);
    trace_begin();
    rig_accounts(rig);
    TRACE_IS(
        "0 bytes in 0 writes, 0 segments; control 1 open 1 hibernate 0 resume 0 flush 0 other 6; "
        "refused 20 lost 0 replaced 0 recopied 0 versions 0\n");
    rig_free(rig);
}

/* Goal: with enough copies a segment does without the last one after two seconds; with fewer it is refused by name, and
 * what was reserved is given back. */
static void segment_without_enough_copies_is_refused_in_time(void **state)
{
    (void)state;
    for (unsigned nodes = 1; nodes <= 2; nodes++) {
        struct rig *rig = rig_new(nodes);
        rig_log_new(rig, LEAT_DURABILITY_MEMORY, nodes == 1 ? 4 : 3);
        rig_reserve(rig, 0);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
        rig_pass(rig, 1999 * 1000);
        if (nodes == 1)
            TRACE_IS("store RESERVE s0 1/2/3 e5 v1 cap65536 d1\n"
                     "n1 OPEN s0 h0 v1 d1, 2 s\n");
        else
            TRACE_IS("store RESERVE s0 1/2/3 e5 v1 cap65536 d1\n"
                     "n1 OPEN s0 h0 v1 d1, 2 s\n"
                     "n2 OPEN s0 h0 v1 d1, 2 s\n");
        rig_pass(rig, 21 * 1000);
        if (nodes == 1)
            TRACE_IS("n1 DROP s0 h10 v1 d1, 2 s\n");
        else
            TRACE_IS("log RESERVE s0: OK\n");
        if (nodes == 1) {
            rig_answer(rig, 1, LEAT_REP_DROP);
            rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
            TRACE_IS("store DROP s0\n"
                     "log RESERVE s0: TOO_FEW_COPIES\n");
            assert_null(rep_set_find(rig->log, 0));
        }
        rig_free(rig);
    }
}

/* Goal: a segment that the store refuses to reserve is dropped at the backups too, and the log gets the reason. */
static void segment_that_the_store_refuses_is_given_back(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    trace_begin();
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_DISK_FULL);
    TRACE_IS("n1 DROP s0 h10 v1 d1, 2 s\n");
    rig_answer(rig, 1, LEAT_REP_DROP);
    TRACE_IS("log RESERVE s0: DISK_FULL\n");
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192); /* nobody's: an audit drops it */
    TRACE_IS("");
    rig_free(rig);
}

/* Goal: the first segment under a new owner waits for its last copy 60 ms, where it has enough. */
static void first_segment_of_a_new_owner_does_not_wait_for_its_last_copy(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 4);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    trace_begin();
    rig_pass(rig, 59 * 1000);
    TRACE_IS("");
    rig_pass(rig, 21 * 1000);
    TRACE_IS("log RESERVE s4: OK\n");
    rig_commit(rig, 4, 0, 128); /* who answers now has no part in it: it goes by an audit */
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_pass(rig, 1000);
    TRACE_IS("n1 write @4096+128 from s4+0\n"
             "n2 OPEN s4 h0 v1 d1 part, 2 s\n");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(segment_is_reserved_everywhere_at_once),
        TRACE_TEST(commit_in_memory_is_done_when_each_copy_has_its_bytes),
        TRACE_TEST(writes_of_a_copy_keep_to_the_window),
        TRACE_TEST(commit_on_disk_is_done_when_each_copy_is_flushed),
        TRACE_TEST(segment_is_closed_evicted_and_dropped),
        TRACE_TEST(store_that_refuses_is_believed),
        TRACE_TEST(head_is_hibernated_and_resumed),
        TRACE_TEST(hibernate_or_resume_that_is_refused_is_none),
        TRACE_TEST(buffer_stays_while_writes_come_from_it),
        TRACE_TEST(given_up_is_told_to_the_store_and_to_each_backup),
        TRACE_TEST(open_that_is_refused_goes_to_another_node),
        TRACE_TEST(segment_without_enough_copies_is_refused_in_time),
        TRACE_TEST(segment_that_the_store_refuses_is_given_back),
        TRACE_TEST(first_segment_of_a_new_owner_does_not_wait_for_its_last_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
