/* SPDX-License-Identifier: Apache-2.0 */
/* A backup's work with replicas whose owner or writer has gone, message by message: cut to the end of their log,
 * adopted, moved out of a fenced writer's memory, served to other nodes. A backup alone, whose store answers by
 * hand. */
#include "tests/replication/backup_rig.h"

/* As if its bytes had been read and found to begin with that end. */
static void looked(const struct rig *rig, struct replica *rep, unsigned end)
{
    rep->seg->file = (struct leat_file *)(void *)&rep->seg->file_offset; /* it is in one */
    rep->looked[0] = (struct replica_looked){.prefix_id = rig->ends[end],
                                             .begins = true,
                                             .next_offset = rig->offsets[end],
                                             .max_timestamp_ms = rig->times[end]};
}

static void unfile(struct rig *rig)
{
    for (unsigned i = 0; i < rig->seg_count; i++)
        rig->segs[i].file = NULL;
}

/* ---- SEAL ---- */

/* Goal: the owner's word cuts a replica to the end of its log, each way that it may be there, and counts from then
 * on. */
static void seal_cuts_to_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    const struct {
        const char *what;
        enum leat_segment_state state;
        unsigned has, end;
    } cases[] = {
        {"hibernated, as long", LEAT_SEGMENT_HIBERNATED, 1, 1},
        {"hibernated, longer", LEAT_SEGMENT_HIBERNATED, 2, 1},
        {"closed, longer", LEAT_SEGMENT_CLOSED, 3, 1},
        {"closed, as long", LEAT_SEGMENT_CLOSED, 3, 3},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned fails = 0; fails < (i < 3 ? 2 : 1); fails++) {
            struct replica *rep = rig_found(rig, 20 + 2 * i + fails, cases[i].state, cases[i].has);
            if (cases[i].has != cases[i].end) looked(rig, rep, cases[i].end);
            struct rep_body body = rig_body(rig, rep->handle, rep->seg->id.v, cases[i].end);
            body.owner.v = 6;
            trace("%s%s\n", cases[i].what, fails ? ", the disk refuses it" : "");
            rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
            if (rig->req_count) rig_stored(rig, LEAT_STORE_CLOSE, fails ? LEAT_E_DISK : LEAT_OK);
            const struct leat_segment *seg = rep->seg;
            trace("state %u %u:%u to %llu/%lld%s word %u busy %u\n", (unsigned)seg->state,
                  seg->prefix_id.bytes, seg->prefix_id.crc == rig->ends[cases[i].end].crc,
                  (unsigned long long)seg->next_offset, (long long)seg->max_timestamp_ms,
                  rep->settled ? " settled" : "", rep->owner_epoch.v, rep->busy);
        }
    TRACE_IS("hibernated, as long\n"
             "store CLOSE s20 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "3: answer h1\n"
             "state 4 456:1 to 101/5001 settled word 6 busy 0\n"
             "hibernated, as long, the disk refuses it\n"
             "store CLOSE s21 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "4: DISK\n"
             "state 3 456:1 to 101/5001 word 0 busy 0\n"
             "hibernated, longer\n"
             "store CLOSE s22 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "5: answer h3\n"
             "state 4 456:1 to 101/5001 settled word 6 busy 0\n"
             "hibernated, longer, the disk refuses it\n"
             "store CLOSE s23 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "6: DISK\n"
             "state 3 656:0 to 102/5002 word 0 busy 0\n"
             "closed, longer\n"
             "store CLOSE s24 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "7: answer h5\n"
             "state 4 456:1 to 101/5001 settled word 6 busy 0\n"
             "closed, longer, the disk refuses it\n"
             "store CLOSE s25 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "8: DISK\n"
             "state 4 752:0 to 102/5002 word 0 busy 0\n"
             "closed, as long\n"
             "9: answer h7\n"
             "state 4 752:1 to 102/5002 settled word 6 busy 0\n");
    unfile(rig);
    rig_free(rig);
}

/* Goal: an open replica whose writer is gone is closed where its bytes say. An open replica whose writer may still
 * write is not closed. */
static void seal_of_an_open_one_waits_for_its_writers_end(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    body.next_offset = 0;
    body.max_timestamp_ms = INT64_MIN;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    rep->writer->fenced = true;
    rep->move_wanted = true;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    rep->move_wanted = false;
    uint8_t *buffer = rep->seg->buffer;
    rep->seg->buffer = NULL; /* nothing of it is here */
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    rep->seg->buffer = buffer;
    TRACE_IS("1: AGAIN\n"
             "2: AGAIN\n"
             "3: NOT_FOUND\n");
    rep->seg->capacity = rig->ends[1].bytes; /* it is full */
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    TRACE_IS("store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n");
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    TRACE_IS("1: answer h1 @65536\n");
    assert_int_equal(rep->seg->base_offset, 100);
    rep->writer->fenced = false;
    rig_free(rig);
}

/* Goal: a SEAL by a node without the right, or of a replica that is not here, changes nothing: each fault by itself. */
static void seal_that_is_not_so_changes_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    const struct leat_segment before = *rep->seg;
    rep->owner_epoch.v = 6;
    for (unsigned i = 0; i < 16; i++) {
        struct rep_body body = rig_body(rig, rep->handle, 7, 2);
        body.owner.v = i == 0 ? 5 : i == 15 ? 0 : 6; /* 0: it does not say */
        if (i == 1) body.handle++;
        if (i == 2) body.segment.v++;
        if (i == 3) body.log.log++;
        if (i == 4) body.prefix_id.crc++;
        if (i == 5) body.prefix_id.bytes -= 8;
        if (i == 6) body.prefix_id.bytes = RIG_CAPACITY;
        rep->damaged = i == 7;
        rep->drop_wanted = i == 8;
        rep->seg->incomplete = i == 9;
        rep->seg->integrity = i == 10 || i == 15 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
        rep->busy = i == 11;
        rep->evicting = i == 12;
        rep->move_wanted = i == 13;
        if (i == 14) rig_hear(rig, &rig_w2, LEAT_REP_SEAL, (const uint8_t *)"\x90", 1);
        if (i != 14) rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    }
    TRACE_IS("1: STALE_EPOCH\n"
             "2: NOT_FOUND\n"
             "3: NOT_FOUND\n"
             "4: NOT_FOUND\n"
             "5: NOT_FOUND\n"
             "6: NOT_FOUND\n"
             "7: NOT_FOUND\n"
             "8: NOT_FOUND\n"
             "9: NOT_FOUND\n"
             "10: NOT_FOUND\n"
             "11: NOT_FOUND\n"
             "12: AGAIN\n"
             "13: AGAIN\n"
             "14: AGAIN\n"
             "15: INVALID\n"
             "16: NOT_FOUND\n");
    rep->seg->integrity = LEAT_INTEGRITY_OK;
    assert_int_equal(rep->owner_epoch.v, 6);
    assert_false(rep->settled);
    assert_memory_equal(&rep->seg->prefix_id, &before.prefix_id, sizeof before.prefix_id);
    assert_int_equal(rep->seg->state, before.state);
    rig_free(rig);
}

/* Goal: a SEAL without the owner's epoch does not change the replica's epoch, and a SEAL without bytes passed over does
 * not change their number. */
static void seal_leaves_what_it_does_not_say(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 1);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    body.owner.v = 0;
    rep->owner_epoch.v = 6;
    rep->seg->passed_bytes = 8;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    TRACE_IS("store CLOSE s7 456:1 from 100 to 101/5001 passed 8 state 4\n"
             "1: answer h1\n");
    assert_int_equal(rep->owner_epoch.v, 6);
    assert_int_equal(rep->seg->passed_bytes, 8);
    assert_true(rep->settled && rep->seg->flushed); /* hibernated: it lay in the file */
    rig_free(rig);
}

/* ---- becoming the node's own ---- */

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    trace("adopted: %s", leat_err_name(rc));
    if (seg)
        trace(" s%llu from %llu to %llu/%lld actor %u", (unsigned long long)seg->id.v,
              (unsigned long long)seg->base_offset, (unsigned long long)seg->next_offset,
              (long long)seg->max_timestamp_ms, seg->owner_actor);
    trace("\n");
}

static leat_err adopt(struct rig *rig, unsigned owner, uint64_t id, struct leat_prefix_id prefix_id)
{
    return leat_backup_adopt(rig->backup, rig_log, (struct leat_epoch){owner},
                             (struct leat_segment_id){id}, prefix_id, 0, INT64_MIN, 9, on_adopted,
                             NULL);
}

static void replica_trace(const struct rig *rig, const struct replica *rep)
{
    const struct leat_segment *seg = rep->seg;
    bool backups =
        seg->log_pointer == rep && seg->owner_actor == rig->backup->options.env->post->self;
    trace("state %u %u role %u, %s, busy %u, %s\n", (unsigned)seg->state, seg->prefix_id.bytes,
          (unsigned)seg->role, rep->adopting ? "on its way" : "stays", rep->busy,
          backups ? "the backup's" : "nobody's");
}

enum way { OPEN, FENCED, HIBERNATED, LONGER, CLOSED };

/* Each of its steps fails in turn; at first none does. */
static void adoptions(enum way way)
{
    static const unsigned steps[] = {3, 2, 2, 2, 1};
    for (unsigned fails = 0; fails <= steps[way]; fails++) {
        struct rig *rig = rig_new();
        enum leat_segment_state found =
            way == HIBERNATED ? LEAT_SEGMENT_HIBERNATED : LEAT_SEGMENT_CLOSED;
        struct replica *rep = way <= FENCED ? rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false)
                                            : rig_found(rig, 7, found, way == LONGER ? 3 : 1);
        if (way == FENCED) rep->writer->fenced = true;
        if (way == LONGER) looked(rig, rep, 1);
        trace("%u fails\n", fails);
        assert_int_equal(adopt(rig, 6, 7, rig->ends[1]), LEAT_OK);
        assert_true(rep->adopting);
        for (unsigned step = 1; rig->req_count; step++)
            rig_stored(rig, rig->reqs[0]->kind, step == fails ? LEAT_E_DISK : LEAT_OK);
        if (rig->backup->replica_count) replica_trace(rig, rep);
        if (way == FENCED) backup_writer_find(rig->backup, "w1", 11)->fenced = false;
        unfile(rig);
        rig_free(rig);
    }
}

/* Goal: each step is a row before the next; where one fails it is a replica as before. */
static void adoption_takes_the_steps_that_are_left(void **state)
{
    (void)state;
    adoptions(OPEN); /* its writer may write on */
    TRACE_IS("0 fails\n"
             "store HIBERNATE s7 456:1\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK s7 from 100 to 101/5001 actor 9\n"
             "1 fails\n"
             "store HIBERNATE s7 456:1\n"
             "adopted: DISK\n"
             "state 1 456 role 1, stays, busy 0, the backup's\n"
             "2 fails\n"
             "store HIBERNATE s7 456:1\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "adopted: DISK\n"
             "state 3 456 role 1, stays, busy 0, the backup's\n"
             "3 fails\n"
             "store HIBERNATE s7 456:1\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: DISK\n"
             "state 4 456 role 1, stays, busy 0, the backup's\n");
    adoptions(FENCED);
    TRACE_IS("0 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK s7 from 100 to 101/5001 actor 9\n"
             "1 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "adopted: DISK\n"
             "state 1 456 role 1, stays, busy 0, the backup's\n"
             "2 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: DISK\n"
             "state 4 456 role 1, stays, busy 0, the backup's\n");
    adoptions(HIBERNATED);
    TRACE_IS("0 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK s7 from 100 to 101/5001 actor 9\n"
             "1 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "adopted: DISK\n"
             "state 3 456 role 1, stays, busy 0, the backup's\n"
             "2 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: DISK\n"
             "state 4 456 role 1, stays, busy 0, the backup's\n");
    adoptions(LONGER);
    TRACE_IS("0 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK s7 from 100 to 101/5001 actor 9\n"
             "1 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "adopted: DISK\n"
             "state 4 752 role 1, stays, busy 0, the backup's\n"
             "2 fails\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: DISK\n"
             "state 4 456 role 1, stays, busy 0, the backup's\n");
    adoptions(CLOSED);
    TRACE_IS("0 fails\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK s7 from 100 to 101/5001 actor 9\n"
             "1 fails\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: DISK\n"
             "state 4 456 role 1, stays, busy 0, the backup's\n");
}

/* Goal: an adoption that is not possible is refused with the reason, and changes nothing. */
static void adoption_that_can_not_be_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    rep->owner_epoch.v = 6;
    for (unsigned i = 0; i < 12; i++) {
        struct leat_prefix_id prefix_id = rig->ends[3];
        if (i == 3) prefix_id.crc++;
        if (i == 4) prefix_id.bytes -= 8;
        rep->damaged = i == 5;
        rep->drop_wanted = i == 6;
        rep->seg->incomplete = i == 7;
        rep->busy = i == 8;
        rep->evicting = i == 9;
        rep->move_wanted = i == 10;
        if (i == 11) leat_mem_fail_at(1);
        trace("%u: %s\n", i, leat_err_name(adopt(rig, i == 0 ? 5 : 6, i == 1 ? 8 : 7, prefix_id)));
        if (i == 2) { /* that one was */
            rig_stored(rig, LEAT_STORE_STAMP, LEAT_E_DISK);
            assert_false(rep->adopting);
            requests_forget(rig);
        }
    }
    leat_mem_fail_at(0);
    TRACE_IS("0: STALE_EPOCH\n"
             "1: NOT_FOUND\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "2: OK\n"
             "adopted: DISK\n"
             "3: NOT_FOUND\n"
             "4: NOT_FOUND\n"
             "5: NOT_FOUND\n"
             "6: NOT_FOUND\n"
             "7: NOT_FOUND\n"
             "8: AGAIN\n"
             "9: AGAIN\n"
             "10: AGAIN\n"
             "11: NO_MEMORY\n");
    rig_free(rig);
}

/* Goal: of several replicas that can be adopted, the adoption takes the most finished replica: whole before corrupt, of
 * the right length before a longer replica that has to be cut, closed before hibernated before open, and of open
 * replicas the replica with the most bytes on disk. */
static void adoption_takes_the_one_that_is_furthest(void **state)
{
    (void)state;
    enum { KINDS = 6 };
    trace_begin();
    for (unsigned a = 0; a < KINDS; a++)
        for (unsigned b = 0; b < KINDS; b++) {
            if (a == b) continue;
            struct rig *rig = rig_new();
            struct replica *reps[2];
            for (unsigned i = 0; i < 2; i++) {
                unsigned kind = i ? b : a;
                reps[i] = kind < 2    ? rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false)
                          : kind == 2 ? rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2)
                          : kind == 3 ? rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 1)
                                      : rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 1);
                if (kind < 2) reps[i]->flushed = kind ? RIG_CAPACITY : 0;
                if (kind == 0) reps[i]->seg->state = LEAT_SEGMENT_OPEN;
                if (kind == 2) looked(rig, reps[i], 1);
                if (kind == 5) reps[i]->seg->integrity = LEAT_INTEGRITY_CORRUPT;
            }
            rig->req_count = 0;
            size_t used = trace_used;
            assert_int_equal(adopt(rig, 6, 7, rig->ends[1]), LEAT_OK);
            trace_text[trace_used = used] = '\0';
            trace("%u or %u: %u\n", a, b, reps[0]->adopting ? a : b);
            assert_true(reps[0]->adopting != reps[1]->adopting);
            unfile(rig);
            rig_free(rig);
        }
    TRACE_IS("0 or 1: 1\n"
             "0 or 2: 0\n"
             "0 or 3: 3\n"
             "0 or 4: 4\n"
             "0 or 5: 0\n"
             "1 or 0: 1\n"
             "1 or 2: 1\n"
             "1 or 3: 3\n"
             "1 or 4: 4\n"
             "1 or 5: 1\n"
             "2 or 0: 0\n"
             "2 or 1: 1\n"
             "2 or 3: 3\n"
             "2 or 4: 4\n"
             "2 or 5: 2\n"
             "3 or 0: 3\n"
             "3 or 1: 3\n"
             "3 or 2: 3\n"
             "3 or 4: 4\n"
             "3 or 5: 3\n"
             "4 or 0: 4\n"
             "4 or 1: 4\n"
             "4 or 2: 4\n"
             "4 or 3: 4\n"
             "4 or 5: 4\n"
             "5 or 0: 0\n"
             "5 or 1: 1\n"
             "5 or 2: 2\n"
             "5 or 3: 3\n"
             "5 or 4: 4\n");
    for (unsigned more = 0; more < 2; more++) {
        struct rig *rig = rig_new();
        struct replica *reps[2];
        for (unsigned i = 0; i < 2; i++) {
            reps[i] = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 1);
            reps[i]->flushed = i == more ? rig->ends[1].bytes : 0;
        }
        assert_int_equal(adopt(rig, 6, 7, rig->ends[1]), LEAT_OK);
        assert_true(reps[more]->adopting && !reps[1 - more]->adopting);
        rig_free(rig);
    }
}

/* Goal: a segment that was the node's own becomes a replica that nobody has spoken of, with a row that says so. */
static void own_segment_becomes_a_replica(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 5; way++) {
        struct rig *rig = rig_new();
        struct leat_segment *seg = rig_segment(rig, 7);
        seg->state = LEAT_SEGMENT_CLOSED;
        seg->role = LEAT_SEGMENT_OWN;
        seg->version = 4;
        seg->prefix_id = rig->ends[3];
        seg->integrity = way == 2 ? LEAT_INTEGRITY_MISSING : LEAT_INTEGRITY_OK;
        if (way == 3) rig->world->nodes[1].deleted = rig_log.stream;
        if (way == 4) leat_mem_fail_at(1);
        trace_begin();
        leat_err rc = leat_backup_take_own(rig->backup, seg, 44, way == 1);
        leat_mem_fail_at(0);
        trace("%s\n", leat_err_name(rc));
        if (!rc) {
            const struct replica *rep = rig_replica(rig, 7);
            assert_int_equal(rep->flushed, seg->prefix_id.bytes);
            assert_int_equal(rep->damaged, way == 1 || way == 2);
            assert_int_equal(seg->role, LEAT_SEGMENT_REPLICA);
            assert_ptr_equal(seg->post, rig->backup->options.env->post);
            rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        }
        if (way == 3)
            TRACE_IS("store STAMP s7 v4 role 1 writer 44\n"
                     "OK\n"
                     "store DROP s7\n");
        else if (way == 4)
            TRACE_IS("NO_MEMORY\n");
        else
            TRACE_IS("store STAMP s7 v4 role 1 writer 44\n"
                     "OK\n");
        rig_free(rig);
    }
}

/* ---- fences ---- */

static void on_fenced(void *arg)
{
    (void)arg;
    trace("fenced\n");
}

/* Goal: a fence is over when each open replica of that writer has left its memory; what is under way with it ends
 * first; what is asked in its name from then on is refused. */
static void fence_moves_what_is_open(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *open = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct replica *busy = rig_open(rig, 8, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, busy->handle, 8, 1);
    struct replica *closed = rig_open(rig, 9, LEAT_DURABILITY_MEMORY, false);
    struct replica *bad = rig_open(rig, 10, LEAT_DURABILITY_MEMORY, false);
    closed->seg->state = LEAT_SEGMENT_CLOSED;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    open->settled = bad->settled = true;
    trace_begin();
    assert_int_equal(leat_backup_fence(rig->backup, "w1", 11, on_fenced, NULL), LEAT_OK);
    world_run(rig->world, 100 * 1000);
    TRACE_IS("store MOVE s7\n"
             "store MOVE s10\n");
    assert_true(!open->settled && !bad->settled && !closed->settled);
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    rig_hear(rig, &rig_w1, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    rig_hear(rig, &rig_w2, LEAT_REP_ASK, (const uint8_t *)"\x90", 1);
    TRACE_IS("1: STALE_EPOCH\n"
             "2: STALE_EPOCH\n"
             "3: answer\n");
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_OK);
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_E_NO_MEMORY);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("1: answer h2 @131072\n"
             "store MOVE s8\n");
    assert_true(!open->damaged && bad->damaged);
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_OK);
    TRACE_IS("fenced\n");
    assert_int_equal(busy->busy + open->busy + bad->busy, 0);
    rig_free(rig);
}

/* Goal: a fence of an incarnation covers all earlier incarnations of the same node, and no other node. */
static void fence_is_of_an_incarnation_and_those_before_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    static const struct {
        const char *node;
        uint64_t incarnation;
    } cases[] = {{"w1", 10}, {"w1", 11}, {"w1", 12}, {"w2", 11}, {"w", 1}, {"w11", 1}};
    assert_int_equal(leat_backup_fence(rig->backup, "w1", 11, on_fenced, NULL), LEAT_OK);
    assert_int_equal(leat_backup_fence(rig->backup, "w1", 5, on_fenced, NULL), LEAT_OK);
    assert_int_equal(leat_backup_fence(rig->backup, "w3", 5, on_fenced, NULL), LEAT_OK);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        trace("%s %llu: %d\n", cases[i].node, (unsigned long long)cases[i].incarnation,
              backup_is_fenced(rig->backup, cases[i].node, cases[i].incarnation));
    TRACE_IS("w1 10: 1\n"
             "w1 11: 1\n"
             "w1 12: 0\n"
             "w2 11: 0\n"
             "w 1: 0\n"
             "w11 1: 0\n");
    assert_true(backup_is_fenced(rig->backup, "w3", 5));
    world_run(rig->world, 100 * 1000);
    TRACE_IS("fenced\n"
             "fenced\n"
             "fenced\n");
    assert_null(backup_writer_find(rig->backup, "w1", 11)); /* its memory has gone, and so has it */
    assert_non_null(backup_writer_find(rig->backup, "w2", 12));
    leat_mem_fail_at(1);
    assert_int_equal(leat_backup_fence(rig->backup, "w2", 12, on_fenced, NULL), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_false(backup_is_fenced(rig->backup, "w2", 12)); /* nothing was done */
    rig_free(rig);
}

static void info_trace(void *arg, const struct leat_replica_info *info)
{
    (void)arg;
    trace("s%llu e%u v%u state %u %u:%d from %llu to %llu/%lld writer %llu%s%s%s%s%s%s%s%s begins "
          "%u %u\n",
          (unsigned long long)info->segment.v, info->epoch.v, info->version, (unsigned)info->state,
          info->prefix_id.bytes, info->prefix_id.crc != 0, (unsigned long long)info->base_offset,
          (unsigned long long)info->next_offset, (long long)info->max_timestamp_ms,
          (unsigned long long)info->writer, info->incomplete ? " part" : "",
          info->settled ? " settled" : "", info->damaged ? " damaged" : "",
          info->provisional ? " provisional" : "", info->torn ? " torn" : "",
          info->mark ? " mark" : "", info->only_start ? " start" : "",
          info->durable ? " durable" : "", info->begins[0].bytes, info->begins[1].bytes);
}

static bool any_log(void *arg, struct leat_log_ref log)
{
    return log.stream == *(const uint32_t *)arg;
}

static void one_of_each(struct rig *rig)
{
    struct replica *open = rig_open(rig, 1, LEAT_DURABILITY_DISK, false);
    struct replica *torn = rig_open(rig, 2, LEAT_DURABILITY_DISK, false);
    struct replica *start = rig_open(rig, 3, LEAT_DURABILITY_MEMORY, false);
    struct replica *part = rig_open(rig, 4, LEAT_DURABILITY_MEMORY, true);
    struct replica *hibernated = rig_found(rig, 5, LEAT_SEGMENT_HIBERNATED, 0);
    struct replica *lost = rig_found(rig, 6, LEAT_SEGMENT_HIBERNATED, 2);
    struct replica *closed = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct replica *flushed = rig_found(rig, 8, LEAT_SEGMENT_CLOSED, 3);
    struct replica *empty = rig_open(rig, 9, LEAT_DURABILITY_MEMORY, false);
    struct replica *foreign = rig_open(rig, 10, LEAT_DURABILITY_MEMORY, false);
    open->flushed = rig->ends[3].bytes;
    memset(open->seg->buffer + rig->ends[1].bytes, 0, 4096);
    memset(torn->seg->buffer + rig->ends[2].bytes, 0, 4096);
    torn->flushed = rig->ends[2].bytes - 1;
    memset(start->seg->buffer + rig->ends[0].bytes, 0, 4096);
    memset(empty->seg->buffer, 0, RIG_CAPACITY);
    memset(part->seg->buffer + rig->ends[2].bytes, 0, 4096);
    foreign->seg->epoch.v++;
    hibernated->seg->integrity = LEAT_INTEGRITY_TORN;
    hibernated->seg->next_offset = hibernated->seg->base_offset;
    lost->damaged = true;
    closed->seg->provisional = closed->settled = true;
    closed->flushed = 0;
    flushed->seg->flushed = true;
    looked(rig, flushed, 1);
    flushed->looked[1] = flushed->looked[0];
    flushed->looked[1].prefix_id = rig->ends[0];
}

/* Goal: the report of each replica to recovery. */
static void replicas_are_told_of_as_they_are(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    uint32_t stream = rig_log.stream;
    one_of_each(rig);
    trace_begin();
    leat_backup_each(rig->backup, NULL, true, info_trace, NULL);
    TRACE_IS(
        "s1 e5 v1 state 2 456:1 from 100 to 101/5001 writer 11 mark durable begins 0 0\n"
        "s2 e5 v1 state 2 656:1 from 100 to 102/5002 writer 11 mark begins 0 0\n"
        "s3 e5 v1 state 2 256:1 from 100 to 100/-1 writer 11 mark start begins 0 0\n"
        "s4 e5 v1 state 2 656:1 from 100 to 102/5002 writer 11 part begins 0 0\n"
        "s5 e5 v1 state 3 256:1 from 100 to 100/-1 writer 11 torn mark start durable begins 0 0\n"
        "s6 e5 v1 state 3 656:1 from 100 to 102/5002 writer 11 damaged durable begins 0 0\n"
        "s7 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 settled provisional begins 0 0\n"
        "s8 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 durable begins 456 256\n"
        "s9 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s10 e6 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n");
    leat_backup_each(rig->backup, &rig_log, false, info_trace, NULL);
    TRACE_IS(
        "s1 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s2 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s3 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s4 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 part begins 0 0\n"
        "s5 e5 v1 state 3 256:1 from 100 to 100/-1 writer 11 torn mark start durable begins 0 0\n"
        "s6 e5 v1 state 3 656:1 from 100 to 102/5002 writer 11 damaged durable begins 0 0\n"
        "s7 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 settled provisional begins 0 0\n"
        "s8 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 durable begins 456 256\n"
        "s9 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s10 e6 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n");
    struct leat_log_ref other = rig_log;
    other.streamlet++;
    leat_backup_each(rig->backup, &other, false, info_trace, NULL);
    TRACE_IS("");
    rig_replica(rig, 3)->dropping = rig_replica(rig, 4)->drop_wanted = true;
    rig_replica(rig, 5)->move_wanted = true;
    leat_backup_collect(rig->backup, any_log, info_trace, &stream);
    TRACE_IS(
        "s1 e5 v1 state 2 456:1 from 100 to 101/5001 writer 11 mark durable begins 0 0\n"
        "s2 e5 v1 state 2 656:1 from 100 to 102/5002 writer 11 mark begins 0 0\n"
        "s6 e5 v1 state 3 656:1 from 100 to 102/5002 writer 11 damaged durable begins 0 0\n"
        "s7 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 settled provisional begins 0 0\n"
        "s8 e5 v1 state 4 752:1 from 100 to 102/5002 writer 11 durable begins 456 256\n"
        "s9 e5 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n"
        "s10 e6 v1 state 1 0:0 from 0 to 0/0 writer 11 begins 0 0\n");
    stream++;
    leat_backup_collect(rig->backup, any_log, info_trace, &stream);
    TRACE_IS("");
    rig_replica(rig, 5)->move_wanted = false;
    struct leat_backup_status status;
    leat_backup_status(rig->backup, &status);
    trace("%u replicas, %u open, %u hibernated, %u unsettled, %u writers\n", status.replicas,
          status.replicas_open, status.replicas_hibernated, status.replicas_unsettled,
          status.writers);
    TRACE_IS("10 replicas, 6 open, 2 hibernated, 9 unsettled, 2 writers\n");
    unfile(rig);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(seal_cuts_to_the_end),
        TRACE_TEST(seal_of_an_open_one_waits_for_its_writers_end),
        TRACE_TEST(seal_that_is_not_so_changes_nothing),
        TRACE_TEST(seal_leaves_what_it_does_not_say),
        TRACE_TEST(adoption_takes_the_steps_that_are_left),
        TRACE_TEST(adoption_that_can_not_be_is_refused),
        TRACE_TEST(adoption_takes_the_one_that_is_furthest),
        TRACE_TEST(own_segment_becomes_a_replica),
        TRACE_TEST(fence_moves_what_is_open),
        TRACE_TEST(fence_is_of_an_incarnation_and_those_before_it),
        TRACE_TEST(replicas_are_told_of_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
