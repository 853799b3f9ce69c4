/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a backup gets from its own node: adopt replicas, take the node's segments as replicas, make bytes
 * durable, pull; and which of two logs is meant. A backup alone, whose store, disk and other nodes answer by hand. */
#include "tests/replication/pieces_rig.h"

/* ---- the table ---- */

static unsigned slot_of(const struct replica *rep)
{
    return (unsigned)rep->handle;
}

static unsigned generation_of(const struct replica *rep)
{
    return (unsigned)(rep->handle >> 32);
}

/* Goal: a replica gets the first place that is free from where the last one was found on, whoever stands before it. */
static void replica_gets_the_next_free_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct leat_backup *it = rig->backup;
    struct replica *rep;
    unsigned before = it->replica_count;
    for (unsigned i = 1; i <= 3; i++) {
        rep = rig_found(rig, i, LEAT_SEGMENT_CLOSED, 3);
        assert_int_equal(slot_of(rep), i);
        assert_int_equal(generation_of(rep), 1);
        assert_int_equal(it->slot_free_hint, i);
        assert_int_equal(rep->opened_us, backup_now(it));
    }
    assert_int_equal(it->replica_count, before + 3);
    it->slot_free_hint = 0; /* all three are in use */
    rep = rig_found(rig, 4, LEAT_SEGMENT_CLOSED, 3);
    assert_int_equal(slot_of(rep), 4);
    assert_int_equal(it->slot_free_hint, 4);
    /* The second goes: its place is free, and the next one there is another. */
    rep = rig_replica(rig, 2);
    uint64_t gone = rep->handle;
    backup_drop(rep);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    assert_null(backup_find(it, gone));
    rep = rig_found(rig, 5, LEAT_SEGMENT_CLOSED, 3);
    assert_int_equal(slot_of(rep), 2);
    assert_int_equal(generation_of(rep), 2);
    assert_null(backup_find(it, gone));
    assert_ptr_equal(backup_find(it, rep->handle), rep);
    /* Behind the last place the table grows, and nothing behind its end is looked at. */
    uint32_t count = it->slot_count;
    it->slot_free_hint = count;
    rep = rig_found(rig, 6, LEAT_SEGMENT_CLOSED, 3);
    assert_int_equal(slot_of(rep), count + 1);
    assert_int_equal(it->slot_count, count + BACKUP_SLOTS_PER_STEP);
    trace_begin();
    rig_free(rig);
}

/* Goal: a replica found at a start has as many bytes in its file as its row says; a lost replica counts for nothing. */
static void found_replica_is_what_was_found(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 2);
    assert_int_equal(rep->flushed, rig->ends[2].bytes);
    assert_false(rep->damaged || rep->settled);
    assert_ptr_equal(rep->seg->log_pointer, rep);
    assert_int_equal(rep->seg->owner_actor, rig->backup->options.env->post->self);
    assert_ptr_equal(rep->seg->post, rig->backup->options.env->post);
    struct leat_found lost = {.kind = LEAT_FOUND_LOST, .seg = rig_segment(rig, 8)};
    lost.seg->owner_actor = 99;
    assert_int_equal(leat_backup_take_found(rig->backup, &lost), LEAT_OK);
    assert_true(rig_replica(rig, 8)->damaged);
    assert_int_equal(lost.seg->owner_actor, rig->backup->options.env->post->self);
    trace_begin();
    rig_free(rig);
}

/* Goal: without memory for the replica the segment stays with its log, and the request can serve others. */
static void own_segment_is_not_taken_without_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    (void)rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3); /* the table has places */
    struct leat_segment *seg = rig_segment(rig, 8);
    seg->role = LEAT_SEGMENT_OWN;
    seg->state = LEAT_SEGMENT_CLOSED;
    for (uint32_t i = 1; i <= 2; i++) {
        requests_forget(rig);
        leat_mem_fail_at(i);
        assert_int_equal(leat_backup_take_own(rig->backup, seg, 44, false), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_int_equal(free_requests(rig), i - 1);
        assert_int_equal(seg->role, LEAT_SEGMENT_OWN);
        assert_null(seg->log_pointer);
    }
    TRACE_IS("");
    seg->owner_actor = 99; /* the core of the log that it was in */
    assert_int_equal(leat_backup_take_own(rig->backup, seg, 44, false), LEAT_OK);
    assert_int_equal(seg->owner_actor, rig->backup->options.env->post->self);
    TRACE_IS("store STAMP s8 v1 role 1 writer 44\n");
    assert_int_equal(free_requests(rig), 0);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    trace_begin();
    rig_free(rig);
}

/* ---- durably ---- */

static void on_flushed(void *arg, leat_err rc)
{
    (void)arg;
    trace("flushed: %s\n", leat_err_name(rc));
}

static void flush(struct rig *rig, uint64_t id, unsigned end, leat_err rc)
{
    leat_err now = leat_backup_flush(rig->backup, rig_log, (struct leat_segment_id){id},
                                     rig->ends[end], on_flushed, NULL);
    trace("%s\n", leat_err_name(now));
    if (now) return;
    enum leat_store_req_kind kind = rig->reqs[rig->req_count - 1]->kind;
    rig_stored(rig, kind, rc);
}

/* Goal: bytes of an open one at level disk are written, up to where they are wanted, if they are not yet; of all others
 * nothing is to be done, and that is answered later as well. */
static void bytes_of_an_open_replica_become_durable(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_DISK, false);
    flush(rig, 7, 1, LEAT_E_DISK);
    assert_int_equal(rep->flushed, 0);
    flush(rig, 7, 1, LEAT_OK);
    assert_int_equal(rep->flushed, rig->ends[1].bytes);
    flush(rig, 7, 1, LEAT_OK);
    flush(rig, 7, 0, LEAT_OK);
    assert_int_equal(rep->flushed, rig->ends[1].bytes);
    flush(rig, 7, 2, LEAT_OK);
    assert_int_equal(rep->flushed, rig->ends[2].bytes);
    flush(rig, 8, 2, LEAT_OK);
    TRACE_IS("store COMMIT s7 0..456\n"
             "OK\n"
             "flushed: DISK\n"
             "store COMMIT s7 0..456\n"
             "OK\n"
             "flushed: OK\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "OK\n"
             "flushed: OK\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "OK\n"
             "flushed: OK\n"
             "store COMMIT s7 456..656\n"
             "OK\n"
             "flushed: OK\n"
             "NOT_FOUND\n");
    rep = rig_open(rig, 9, LEAT_DURABILITY_MEMORY, false);
    flush(rig, 9, 1, LEAT_OK);
    assert_int_equal(rep->flushed, 0);
    for (int at = LEAT_SEGMENT_HIBERNATED; at <= LEAT_SEGMENT_CLOSED; at++) {
        rep = rig_found(rig, 10 + (uint64_t)at, (enum leat_segment_state)at, 3);
        rep->seg->durability = LEAT_DURABILITY_DISK;
        rep->seg->provisional = true;
        rep->seg->version = 6;
        rep->flushed = 0; /* as if nobody had said it */
        flush(rig, 10 + (uint64_t)at, 3, LEAT_OK);
    }
    TRACE_IS("store STAMP s9 v1 role 1 writer 11\n"
             "OK\n"
             "flushed: OK\n"
             "store STAMP s13 v6 role 1 writer 11 provisional\n"
             "OK\n"
             "flushed: OK\n"
             "store STAMP s14 v6 role 1 writer 11 provisional\n"
             "OK\n"
             "flushed: OK\n");
    rig_free(rig);
}

/* Goal: while something else is under way with it, or memory is short, it is asked for again. */
static void bytes_in_use_are_flushed_later(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 3);
    for (unsigned i = 1; i <= 4; i++) {
        rep->busy = i == 1;
        rep->evicting = i == 2;
        rep->move_wanted = i == 3;
        if (i == 4) requests_forget(rig);
        if (i == 4) leat_mem_fail_at(1);
        flush(rig, 7, 3, LEAT_OK);
        leat_mem_fail_at(0);
        assert_int_equal(rep->busy, i == 1);
    }
    flush(rig, 7, 3, LEAT_OK);
    TRACE_IS("AGAIN\n"
             "AGAIN\n"
             "AGAIN\n"
             "NO_MEMORY\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "OK\n"
             "flushed: OK\n");
    rig_free(rig);
}

/* ---- adopted ---- */

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg, (void)seg;
    trace("adopted: %s\n", leat_err_name(rc));
}

/* Goal: an adopted replica ends where the coordinators have committed its end. The next offset and the largest
 * timestamp come from the committed record, or from the replica's bytes where the record does not have them. */
static void adopted_replica_ends_as_it_was_committed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
        leat_err rc =
            leat_backup_adopt(rig->backup, rig_log, (struct leat_epoch){9}, rep->seg->id,
                              rig->ends[2], i ? 0 : 150, i ? INT64_MIN : 6000, 3, on_adopted, NULL);
        assert_int_equal(rc, LEAT_OK);
        assert_true(rep->adopting);
        rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
        struct leat_segment *seg = rep->seg;
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        assert_int_equal(seg->owner_actor, 3);
        rig_free(rig);
    }
    TRACE_IS("store CLOSE s7 656:1 from 100 to 150/6000 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK\n"
             "store CLOSE s7 656:1 from 100 to 102/5002 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n"
             "adopted: OK\n");
}

/* ---- sealed ---- */

/* Goal: a faulty SEAL is refused with its fault, whatever replica is here; the bytes that a start has passed over after
 * a copy that ends there already are not the owner's word. */
static void seal_is_refused_for_what_is_wrong_with_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 2);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2),
                    other = rig_body(rig, rep->handle, 7, 1);
    rig_hear(rig, &rig_w2, LEAT_REP_SEAL, (const uint8_t *)"\x90", 1);
    rep->owner_epoch.v = RIG_EPOCH + 1;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &other); /* nor does it hold that */
    rep->owner_epoch.v = RIG_EPOCH;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &other);
    rep->seg->passed_bytes = 9;
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    assert_int_equal(rep->seg->passed_bytes, 9);
    struct replica *hibernated = rig_found(rig, 6, LEAT_SEGMENT_HIBERNATED, 2);
    hibernated->seg->passed_bytes = 9;
    struct rep_body ends = rig_body(rig, hibernated->handle, 6, 2);
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &ends);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    assert_int_equal(hibernated->seg->passed_bytes, 9);
    struct replica *open = rig_open(rig, 8, LEAT_DURABILITY_MEMORY, false);
    body = rig_body(rig, open->handle, 8, 2);
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    open->seg->capacity = body.prefix_id.bytes - 8; /* what lies behind that is another's */
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    open->seg->capacity = RIG_CAPACITY;
    TRACE_IS("1: INVALID\n"
             "2: STALE_EPOCH\n"
             "3: STALE_EPOCH\n"
             "4: NOT_FOUND\n"
             "5: answer h1\n"
             "store CLOSE s6 656:1 from 100 to 102/5002 passed 9 state 4\n"
             "6: answer h2\n"
             "8: AGAIN\n"
             "9: NOT_FOUND\n");
    rig_free(rig);
}

/* ---- pulling ---- */

static struct leat_backup_pull pull_used_before(const struct rig *rig, struct replica *left)
{
    struct leat_backup_pull pull = pull_of(rig);
    pull.node_count = 1;
    pull.rep = left;
    pull.at = 64;
    pull.node_at = 1;
    pull.slow = pull.patient = true;
    pull.rc = LEAT_E_DISK;
    return pull;
}

/* Goal: a pull begins from the start, whatever an earlier pull has left in the struct. */
static void pull_begins_anew(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica left = {.busy = 5};
    struct leat_backup_pull pull = pull_used_before(rig, &left);
    ports.call_rc = LEAT_E_CLOSED; /* no node is there */
    pull_start(rig, &pull);
    ports.call_rc = LEAT_OK;
    pull = pull_used_before(rig, &left);
    pull_start(rig, &pull);
    piece(rig, LEAT_E_NOT_FOUND, 0, 0, 0);
    assert_int_equal(rig->backup->pulls, 0);
    assert_true(left.busy == 5 && !left.damaged && !left.drop_wanted);
    TRACE_IS("pulled: CLOSED\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n");
    rig_end(rig);
}

/* Goal: a pull is refused for a segment longer than LEAT_SEGMENT_BYTES_MAX, for a segment too short for an entry, and
 * beyond the limit of pulls at one time. */
static void pull_is_of_what_there_may_be(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {LEAT_ENTRY_HEADER_BYTES - 1, LEAT_ENTRY_HEADER_BYTES,
                                     LEAT_SEGMENT_BYTES_MAX, LEAT_SEGMENT_BYTES_MAX + 1};
    struct rig *rig = rig_ports();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct leat_backup_pull pull = pull_of(rig);
        pull.prefix_id.bytes = sizes[i];
        pull.node_count = 0;
        pull_start(rig, &pull);
        assert_int_equal(rig->backup->pulls, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct leat_backup_pull pull = pull_of(rig);
        pull.node_count = 0;
        rig->backup->pulls = LEAT_BACKUP_PULLS_MAX - i;
        pull_start(rig, &pull);
        assert_int_equal(rig->backup->pulls, LEAT_BACKUP_PULLS_MAX - i);
    }
    rig->backup->pulls = 0;
    TRACE_IS("INVALID\n"
             "pulled: NOT_FOUND\n"
             "pulled: NOT_FOUND\n"
             "INVALID\n"
             "AGAIN\n"
             "pulled: NOT_FOUND\n");
    rig_end(rig);
}

/* ---- looking ---- */

static void on_looked(void *arg, bool begins)
{
    (void)arg;
    trace("begins: %d\n", begins);
}

static void look(struct rig *rig, struct replica *rep, struct leat_prefix_id prefix_id)
{
    leat_err rc = leat_backup_look(rig->backup, rep->handle, prefix_id, on_looked, NULL);
    if (rc) trace("%s\n", leat_err_name(rc));
}

/* The same with nothing but a header up to its first end. */
static void image_without_start(struct rig *rig)
{
    struct leat_segment_header header;
    struct leat_entry_writer writer;
    memcpy(&header, rig->image + LEAT_ENTRY_HEADER_BYTES, sizeof header);
    memset(rig->image, 0, sizeof rig->image);
    leat_entry_writer_init(&writer, rig->image, RIG_CAPACITY);
    (void)leat_entry_append(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header,
                            leat_crc32c(0, &header, sizeof header));
    rig->ends[1] = leat_entry_seal(&writer, 0);
}

/* Goal: the longer copy begins with exactly these bytes, has a start entry, and all these bytes have been read from
 * disk. */
static void longer_copy_begins_with_just_these_bytes(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 3);
    filed(rep);
    struct leat_prefix_id end = rig->ends[1], more = {end.bytes + 8, end.crc};
    look(rig, rep, end);
    disk_read(rig, LEAT_E_DISK, end.bytes);
    rep->looked[0] = (struct replica_looked){0};
    look(rig, rep, end);
    disk_read(rig, LEAT_OK, end.bytes - 1);
    rep->looked[0] = (struct replica_looked){0};
    look(rig, rep, more); /* it ends in front of that, with that checksum */
    disk_read(rig, LEAT_OK, more.bytes);
    look(rig, rep, end);
    disk_read(rig, LEAT_OK, end.bytes);
    assert_non_null(backup_begins(rep, end));
    assert_null(backup_begins(rep, more));
    image_without_start(rig);
    look(rig, rep, rig->ends[1]);
    disk_read(rig, LEAT_OK, rig->ends[1].bytes);
    TRACE_IS("read 4096+4096\n"
             "begins: 0\n"
             "read 4096+4096\n"
             "begins: 0\n"
             "read 4096+4096\n"
             "begins: 0\n"
             "read 4096+4096\n"
             "begins: 1\n"
             "read 4096+4096\n"
             "begins: 0\n");
    /* Nor does one in memory. */
    rep->seg->buffer = rig->image;
    assert_int_equal(leat_backup_look_any(rig->backup, rig_log, rep->seg->id, rig->ends[1]),
                     LEAT_E_NOT_FOUND);
    rep->seg->buffer = NULL;
    rig_end(rig);
}

/* Goal: memory after the last remembered end is not read as a remembered end; a replica without bytes is not looked
 * at. */
static void copy_is_known_by_what_was_remembered(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 3);
    filed(rep);
    const struct replica_looked behind = {.prefix_id = rig->ends[1], .begins = true};
    memcpy((uint8_t *)rep + offsetof(struct replica, looked) + sizeof rep->looked, &behind,
           sizeof behind);
    assert_null(backup_begins(rep, rig->ends[1]));
    memset((uint8_t *)rep + offsetof(struct replica, looked) + sizeof rep->looked, 0,
           sizeof behind);
    struct rep_body body = rig_body(rig, 0, 9, 0);
    body.prefix_id = (struct leat_prefix_id){0};
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body); /* and the store does not answer */
    struct replica *reserved = LEAT_CONTAINER(rig->backup->replicas.prev, struct replica, link);
    assert_null(reserved->seg);
    trace_begin();
    look(rig, reserved, rig->ends[1]);
    TRACE_IS("NOT_FOUND\n");
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    trace_begin();
    rig_end(rig);
}

/* ---- which of two logs ---- */

/* Another log that is looked for in the same place. */
static struct leat_log_ref neighbour(const struct leat_backup *backup)
{
    struct leat_log_ref log = rig_log;
    do
        log.stream++;
    while (backup_bucket(backup, log) != backup_bucket(backup, rig_log));
    return log;
}

/* Goal: of two logs in the same place of the table, only the named log is looked at, asked for, or adopted. */
static void neighbour_in_the_table_is_another_log(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    filed(rep);
    struct leat_log_ref other = neighbour(rig->backup);
    assert_int_equal(backup_look(rig->backup, other, rep->seg->id, rig->ends[1], on_looked, NULL),
                     LEAT_E_NOT_FOUND);
    assert_int_equal(
        leat_backup_flush(rig->backup, other, rep->seg->id, rig->ends[2], on_flushed, NULL),
        LEAT_E_NOT_FOUND);
    assert_int_equal(leat_backup_adopt(rig->backup, other, (struct leat_epoch){9}, rep->seg->id,
                                       rig->ends[2], 0, INT64_MIN, 0, NULL, NULL),
                     LEAT_E_NOT_FOUND);
    assert_false(leat_backup_holds(rig->backup, other, rep->seg->id, rig->ends[2]));
    assert_true(leat_backup_holds(rig->backup, rig_log, rep->seg->id, rig->ends[2]));
    assert_int_equal(rep->busy, 0);
    /* Nor does it hide the one that is meant. */
    struct replica *behind = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    filed(behind);
    leat_list_remove(&rep->by_log);
    rep->seg->log = other;
    leat_list_push_front(backup_bucket(rig->backup, other), &rep->by_log);
    assert_int_equal(backup_look(rig->backup, rig_log, rep->seg->id, rig->ends[1], on_looked, NULL),
                     LEAT_OK);
    assert_int_equal(behind->busy, 1);
    disk_read(rig, LEAT_OK, rig->ends[1].bytes);
    assert_int_equal(behind->busy + rep->busy, 0);
    trace_begin();
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(replica_gets_the_next_free_place),
        TRACE_TEST(found_replica_is_what_was_found),
        TRACE_TEST(own_segment_is_not_taken_without_memory),
        TRACE_TEST(bytes_of_an_open_replica_become_durable),
        TRACE_TEST(bytes_in_use_are_flushed_later),
        TRACE_TEST(adopted_replica_ends_as_it_was_committed),
        TRACE_TEST(seal_is_refused_for_what_is_wrong_with_it),
        TRACE_TEST(pull_begins_anew),
        TRACE_TEST(pull_is_of_what_there_may_be),
        TRACE_TEST(longer_copy_begins_with_just_these_bytes),
        TRACE_TEST(copy_is_known_by_what_was_remembered),
        TRACE_TEST(neighbour_in_the_table_is_another_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
