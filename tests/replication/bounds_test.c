/* SPDX-License-Identifier: Apache-2.0 */
/* A backup's answers at the very bounds of its requests. A backup alone, whose store answers by hand. */
#include "tests/replication/backup_rig.h"

/* Goal: the generation of a replica does not limit how much of the replica can be flushed, and its length does not
 * limit its generation. */
static void bytes_are_flushed_whatever_the_version_is(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_DISK, false);
    rep->seg->version = rig->ends[1].bytes + 1;
    struct rep_pair pair = {rep->handle, rig->ends[1].bytes, 0};
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    pair.value++;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rep->seg->buffer = NULL;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    rep->seg->buffer =
        rig->image; /* as much as was flushed, as much as there is room for, and more */
    pair.value = rep->flushed;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    pair.value--;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    pair.value = RIG_CAPACITY;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    pair.value++;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    TRACE_IS("store COMMIT s7 0..456\n"
             "1: answer h1=OK\n"
             "2: answer h1=STALE_EPOCH\n"
             "store STAMP s7 v457 role 1 writer 11\n"
             "3: answer h1=OK\n"
             "4: answer h1=INVALID\n"
             "store COMMIT s7 456..456\n"
             "5: answer h1=OK\n"
             "6: answer h1=INVALID\n"
             "store COMMIT s7 456..65536\n"
             "7: answer h1=OK\n"
             "8: answer h1=INVALID\n");
    rig_free(rig);
}

/* Goal: COMPLETE makes an incomplete replica whole only if its bytes name the same stream, segment and epoch. */
static void part_is_whole_by_its_whole_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, true);
        struct leat_segment *seg = rep->seg;
        struct rep_body body = rig_body(rig, rep->handle, 7, 1);
        if (i == 1) seg->log.stream++;
        if (i == 2) seg->id.v++;
        if (i == 3) seg->epoch.v++;
        body.log = seg->log;
        body.segment = seg->id;
        body.epoch = seg->epoch;
        rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
        seg->log = rig_log;
        rig->req_count = 0;
        rig_free(rig);
    }
    TRACE_IS("store STAMP s7 v1 role 1 writer 11\n"
             "5: DAMAGED\n"
             "9: DAMAGED\n"
             "13: DAMAGED\n");
}

/* Goal: a part that has no memory here, or says to be longer than it can be, is not whole. */
static void part_is_whole_within_its_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, true);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    uint8_t *buffer = rep->seg->buffer;
    rep->seg->buffer = NULL;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
    rep->seg->incomplete = false;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rep->seg->incomplete = true;
    rep->seg->buffer = buffer;
    body.prefix_id.bytes = RIG_CAPACITY + 8;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    TRACE_IS("1: DAMAGED\n"
             "2: DAMAGED\n"
             "3: DAMAGED\n"
             "4: DAMAGED\n");
    rig_free(rig);
}

/* Goal: a version has 32 bits, all of them. */
static void version_is_as_large_as_can_be(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_pair pair = {rep->handle, UINT32_MAX, 0};
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    pair.value++;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    TRACE_IS("store STAMP s7 v4294967295 role 1 writer 11\n"
             "1: answer h1=OK\n"
             "2: answer h1=INVALID\n");
    rig_free(rig);
}

/* Goal: a body that can't be read opens nothing; a node that says nothing of its free space has space. */
static void open_needs_a_message_and_no_opinion_about_room(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    rig_image(rig, 7);
    struct rep_body body = rig_body(rig, 0, 7, 0);
    rig_hear(rig, &rig_w1, LEAT_REP_OPEN, (const uint8_t *)"\xc1", 1);
    rig_hear(rig, &rig_w1, LEAT_REP_OPEN, (const uint8_t *)"\x91\x00", 2);
    uint8_t control[REP_BODY_BYTES_MAX + 1] = {0};
    rig_hear(rig, &rig_w1, LEAT_REP_OPEN, control, rep_body_encode(&body, control) + 1);
    rig->backup->options.is_full = NULL;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("1: INVALID\n"
             "2: INVALID\n"
             "3: INVALID\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v1 role 1 writer 11 there\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: there are so many replicas and no more. */
static void table_ends_somewhere(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct leat_backup *backup = rig->backup;
    struct rep_body body = rig_body(rig, 0, 7, 0);
    uint32_t count = backup->slot_count, hint = backup->slot_free_hint;
    backup->slot_count = backup->slot_free_hint = BACKUP_SLOTS_MAX; /* as if there were so many */
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("1: TOO_MANY\n");
    assert_int_equal(backup->replica_count, 0);
    backup->slot_count = backup->slot_free_hint = BACKUP_SLOTS_MAX - BACKUP_SLOTS_PER_STEP;
    struct replica *last = NULL;
    assert_int_equal(backup_replica_new(backup, &last), LEAT_OK);
    assert_int_equal(backup->slot_count, BACKUP_SLOTS_MAX);
    backup_replica_free(last);
    backup->slot_count = count;
    backup->slot_free_hint = hint;
    rig_free(rig);
}

/* Goal: where the store has no place nothing of what was asked is left, however often it is. */
static void open_without_a_place_leaves_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 0);
    size_t bytes = 0;
    for (unsigned i = 0; i < 3; i++) {
        rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_NO_MEMORY);
        if (i == 0) bytes = leat_mem_bytes(LEAT_MEM_STORE);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), bytes);
        assert_int_equal(rig->backup->replica_count, 0);
        assert_int_equal(rig->backup->opening_bytes, 0);
    }
    trace_begin();
    rig_free(rig);
}

/* Goal: an audit says from where, and of what; more than that is not looked at. */
static void audit_has_two_fields(void **state)
{
    (void)state;
    static const char *const messages[] = {"\x92\x00\xc2", "\x91\x00\xc2", "\x93\x00\xc2\x00",
                                           "\xc0\x00\xc2"};
    struct rig *rig = rig_new();
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
        rig_hear(rig, &rig_w1, LEAT_REP_AUDIT, (const uint8_t *)messages[i], i == 2 ? 4 : 3);
    TRACE_IS("1: answer next 0:\n"
             "2: INVALID\n"
             "3: answer next 0:\n"
             "4: INVALID\n");
    rig_free(rig);
}

/* Goal: the beginning of a replica's records is read up to the last byte of the segment's space, and no byte after
 * it. */
static void beginning_is_read_within_the_segment(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
        struct leat_entry entry, begins;
        struct leat_start start;
        uint8_t *buffer = rep->seg->buffer;
        memcpy(&entry, buffer, sizeof entry);
        uint64_t was = leat_entry_bytes(entry.payload_bytes);
        memcpy(&begins, buffer + was, sizeof begins);
        memcpy(&start, buffer + was + sizeof begins, sizeof start);
        uint64_t at = RIG_CAPACITY - sizeof begins - sizeof start;
        entry.payload_bytes += (uint32_t)(at - was) + 8 * more;
        assert_int_equal(leat_entry_bytes(entry.payload_bytes), at + 8 * more);
        start.base_offset = 77;
        memcpy(buffer, &entry, sizeof entry);
        memcpy(buffer + at + 8 * more, &begins, sizeof begins);
        if (!more) memcpy(buffer + at + sizeof begins, &start, sizeof start);
        struct rep_body body = rig_body(rig, rep->handle, 7, 2);
        rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
        rig->req_count = 0;
        rig_free(rig);
    }
    TRACE_IS("store CLOSE s7 656:1 from 77 to 102/5002 passed 0 state 4\n"
             "5: DAMAGED\n");
}

/* Goal: only a trailer ends a replica at some place, and no other entry with the same checksum. */
static void only_a_trailer_ends_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct leat_entry start;
    memcpy(&start, rep->seg->buffer, sizeof start);
    uint32_t at = (uint32_t)leat_entry_bytes(start.payload_bytes);
    memcpy(&start, rep->seg->buffer + at, sizeof start);
    struct leat_prefix_id begins = {at + sizeof start, start.crc};
    trace("%s\n",
          leat_err_name(leat_backup_flush(rig->backup, rig_log, rep->seg->id, begins, NULL, NULL)));
    rep->seg->prefix_id = begins; /* of one that is open this says nothing */
    trace("%s\n",
          leat_err_name(leat_backup_flush(rig->backup, rig_log, rep->seg->id, begins, NULL, NULL)));
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    body.prefix_id = begins;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .crc = 5};
    memcpy(rep->seg->buffer + RIG_CAPACITY - sizeof trailer, &trailer, sizeof trailer);
    body.prefix_id = (struct leat_prefix_id){RIG_CAPACITY, 5};
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body); /* to the last byte */
    rig->req_count = 0;
    rep->busy = 0;
    body.prefix_id.bytes = sizeof start - 1;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    body.prefix_id.bytes = RIG_CAPACITY + 8;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    TRACE_IS("NOT_FOUND\n"
             "NOT_FOUND\n"
             "2: DAMAGED\n"
             "store HIBERNATE s7 65536:1\n"
             "4: DAMAGED\n"
             "5: DAMAGED\n");
    rig_free(rig);
}

/* Goal: a writer without memory here is a stranger, though another writer has the same incarnation. */
static void writer_is_found_by_name_and_incarnation(void **state)
{
    (void)state;
    static const struct leat_link_identity strangers[] = {{.node = "w2", .incarnation = 11},
                                                          {.node = "w1", .incarnation = 12}};
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    for (unsigned i = 0; i < 2; i++)
        rig_ask(rig, &strangers[i], LEAT_REP_DROP, &body);
    TRACE_IS("1: CLOSED\n"
             "2: CLOSED\n");
    assert_false(rep->drop_wanted);
    rig_free(rig);
}

/* Goal: SETTLE decides nothing about a replica that is being opened. */
static void word_about_what_is_being_opened_is_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 0);
    body.prefix_id = (struct leat_prefix_id){0};
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    struct replica *rep = LEAT_CONTAINER(rig->backup->replicas.prev, struct replica, link);
    for (unsigned word = REP_SETTLE_DROP; word <= REP_SETTLE_LEAVE; word++) {
        struct rep_pair pair = {rep->handle, word + REP_SETTLE_WORDS * (uint64_t)RIG_EPOCH, 0};
        rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, &pair, 1);
        assert_true(!rep->drop_wanted && !rep->leave && !rep->settled);
    }
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    TRACE_IS("store RESERVE s7 1/2/3 e5 cap 65536 d1 v1 role 1 writer 11 there\n"
             "2: answer\n"
             "3: answer h1=NOT_FOUND\n"
             "4: answer\n"
             "1: answer h1 @65536\n");
    rig_free(rig);
}

static bool any_log(void *arg, struct leat_log_ref log)
{
    (void)arg, (void)log;
    return true;
}

static void on_each(void *arg, const struct leat_replica_info *info)
{
    (void)info;
    (*(unsigned *)arg)++;
}

/* Goal: a replica that is being opened is not reported before it has a segment. */
static void replica_that_is_being_opened_is_told_of_to_nobody(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct leat_backup_status status;
    struct rep_body body = rig_body(rig, 0, 7, 0);
    unsigned told = 0;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    leat_backup_collect(rig->backup, any_log, on_each, &told);
    leat_backup_each(rig->backup, NULL, true, on_each, &told);
    leat_backup_status(rig->backup, &status);
    assert_int_equal(told, 0);
    assert_int_equal(status.replicas, 1);
    assert_int_equal(status.replicas_open + status.replicas_unsettled, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    leat_backup_collect(rig->backup, any_log, on_each, &told);
    leat_backup_status(rig->backup, &status);
    assert_int_equal(told, 1);
    assert_int_equal(status.replicas_open, 1);
    trace_begin();
    rig_free(rig);
}

/* Goal: a handle that no replica here can have names none, however far past the table it lies. */
static void handle_past_the_table_names_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    (void)rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    const uint64_t handles[] = {0, UINT32_MAX, (uint64_t)1 << 32 | 0x7fffffff};
    for (unsigned i = 0; i < 3; i++) {
        struct rep_pair pair = {handles[i], REP_SETTLE_KEEP + REP_SETTLE_WORDS * 9, 0};
        rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, &pair, 1);
    }
    TRACE_IS("1: answer h0=NOT_FOUND\n"
             "2: answer h4294967295=NOT_FOUND\n"
             "3: answer h2147483647=NOT_FOUND\n");
    rig_free(rig);
}

/* Goal: a request that can't be read is refused, and so is a request for more bytes than an answer holds. */
static void request_that_is_none_is_refused(void **state)
{
    (void)state;
    enum { PIECE_BYTES = 512 * 1024 };
    struct rig *rig = rig_new();
    uint8_t control[REP_PULL_BYTES_MAX];
    rig_hear(rig, &rig_w1, LEAT_REP_SETTLE, (const uint8_t *)"\xc1", 1);
    for (uint32_t more = 0; more < 2; more++) {
        struct rep_pull pull = {.log = rig_log,
                                .segment = {7},
                                .prefix_id = {2 * PIECE_BYTES, 5},
                                .count = PIECE_BYTES + more,
                                .whole = true};
        rig_hear(rig, &rig_w2, LEAT_REP_PULL, control, rep_pull_encode(&pull, control));
    }
    TRACE_IS("1: INVALID\n"
             "2: NOT_FOUND\n"
             "3: INVALID\n");
    rig_free(rig);
}

/* Goal: a replica that was hibernated and resumed is closed like any other replica. */
static void replica_that_was_resumed_is_closed(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    rig_ask(rig, &rig_w1, LEAT_REP_RESUME, &body);
    rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_OPEN);
    memcpy(rep->seg->buffer, rig->image, RIG_CAPACITY);
    trace_begin();
    body = rig_body(rig, rep->handle, 7, 3);
    rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
             "1: answer h1\n");
    rig_free(rig);
}

static bool stream_2(void *arg, uint32_t stream)
{
    (void)arg;
    return stream == 2;
}

/* Goal: at a start what was found of streams that were deleted meanwhile goes, and nothing else. */
static void found_replicas_of_deleted_streams_go(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    (void)rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct replica *rep = rig_found(rig, 8, LEAT_SEGMENT_CLOSED, 3);
    rep->seg->log.stream = 2;
    struct rep_body body = rig_body(rig, 0, 9, 0);
    body.prefix_id = (struct leat_prefix_id){0};
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    leat_backup_drop_deleted(rig->backup, stream_2, NULL);
    assert_true(rep->drop_wanted && rep->dropping);
    TRACE_IS("store RESERVE s9 1/2/3 e5 cap 65536 d1 v1 role 1 writer 11 there\n"
             "store DROP s8\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: a fence moves the replicas that stay out of the writer's memory, and lets go the replicas that go. */
static void fence_does_not_move_what_goes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
        rep->busy = 1; /* something is under way */
        if (i == 1) backup_drop(rep);
        if (i == 2) rep->seg->state = LEAT_SEGMENT_CLOSED;
        leat_backup_release(rig->backup, rig_w1.node, rig_w1.incarnation);
        trace("%u: ", i);
        backup_idle(rep);
        trace(".\n");
        rig->req_count = 0;
        rep->busy = 0;
        rig_free(rig);
    }
    TRACE_IS("0: store MOVE s7\n"
             ".\n"
             "1: store DROP s7\n"
             ".\n"
             "2: .\n");
}

/* Goal: a writer that is fenced already is not fenced again: a fence waits for each replica once. */
static void writer_is_fenced_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    rep->busy = 1;
    for (unsigned i = 0; i < 2; i++)
        leat_backup_release(rig->backup, rig_w1.node, rig_w1.incarnation);
    assert_int_equal(rep->writer->moves, 1);
    assert_int_equal(rig->backup->moves, 1);
    backup_idle(rep);
    TRACE_IS("store MOVE s7\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: a request struct that has ended serves the next request. */
static void requests_are_used_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
        backup_drop(rep);
        assert_int_equal(free_requests(rig), 0);
        rig_stored(rig, LEAT_STORE_DROP, i ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(free_requests(rig), 1);
        rig_free(rig);
    }
    struct rig *rig = rig_new(); /* two at a time */
    for (uint64_t id = 7; id <= 8; id++)
        backup_drop(rig_found(rig, id, LEAT_SEGMENT_CLOSED, 3));
    size_t bytes = leat_mem_bytes(LEAT_MEM_STORE);
    for (unsigned i = 0; i < 2; i++)
        rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    requests_forget(rig);
    assert_int_equal(bytes - leat_mem_bytes(LEAT_MEM_STORE), 2 * sizeof(struct backup_request));
    rig_free(rig);
    trace_begin();
}

/* Goal: a writer whose memory the store can't have is refused, and who asks again as well. */
static void writer_that_the_store_refused_has_no_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct backup_writer *writer = backup_writer_find(rig->backup, "w1", 11);
    writer->ready = false;
    rig_hear(rig, &rig_w1, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    TRACE_IS("");
    writer->add.rc = LEAT_E_TOO_MANY;
    writer->add.on_done(&writer->add);
    rig_hear(rig, &rig_w1, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    TRACE_IS("1: TOO_MANY\n"
             "2: NO_MEMORY\n");
    rig_free(rig);
}

static void holds(const struct rig *rig, const struct replica *rep, int more)
{
    struct leat_segment_id id = {(uint64_t)(7 + more)};
    trace("%d", leat_backup_holds(rig->backup, rig_log, id, rep->seg->prefix_id));
}

/* Goal: held is a segment whose bytes are there, whole, by all of its name. */
static void segment_is_held_by_its_whole_name(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct leat_log_ref other = rig_log;
    other.log++;
    holds(rig, rep, 0);
    holds(rig, rep, 1);
    holds(rig, rep, -1);
    trace("%d ", leat_backup_holds(rig->backup, other, rep->seg->id, rep->seg->prefix_id));
    for (unsigned i = 0; i < 6; i++) {
        rep->damaged = i == 1;
        rep->drop_wanted = i == 2;
        rep->seg->incomplete = i == 3;
        rep->seg->integrity = i == 4 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
        rep->seg->state = i == 5 ? LEAT_SEGMENT_HIBERNATED : LEAT_SEGMENT_CLOSED;
        holds(rig, rep, 0);
    }
    rep->seg->state = LEAT_SEGMENT_OPEN;
    holds(rig, rep, 0);
    TRACE_IS("1000 1000010");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(bytes_are_flushed_whatever_the_version_is),
        TRACE_TEST(part_is_whole_by_its_whole_name),
        TRACE_TEST(part_is_whole_within_its_memory),
        TRACE_TEST(version_is_as_large_as_can_be),
        TRACE_TEST(open_needs_a_message_and_no_opinion_about_room),
        TRACE_TEST(table_ends_somewhere),
        TRACE_TEST(open_without_a_place_leaves_nothing),
        TRACE_TEST(audit_has_two_fields),
        TRACE_TEST(beginning_is_read_within_the_segment),
        TRACE_TEST(only_a_trailer_ends_it),
        TRACE_TEST(writer_is_found_by_name_and_incarnation),
        TRACE_TEST(word_about_what_is_being_opened_is_none),
        TRACE_TEST(replica_that_is_being_opened_is_told_of_to_nobody),
        TRACE_TEST(handle_past_the_table_names_nothing),
        TRACE_TEST(request_that_is_none_is_refused),
        TRACE_TEST(replica_that_was_resumed_is_closed),
        TRACE_TEST(found_replicas_of_deleted_streams_go),
        TRACE_TEST(fence_does_not_move_what_goes),
        TRACE_TEST(writer_is_fenced_once),
        TRACE_TEST(requests_are_used_again),
        TRACE_TEST(writer_that_the_store_refused_has_no_memory),
        TRACE_TEST(segment_is_held_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
