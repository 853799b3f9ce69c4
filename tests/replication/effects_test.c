/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of one event at a primary: an answer, a refusal, a write that has ended, a log that goes, the end of the
 * primary. A primary alone; each case looks at the state right after the event. */
#include "tests/replication/case_rig.h"

static unsigned length(const struct leat_list *head)
{
    unsigned count = 0;
    for (const struct leat_list *it = head->next; it != head; it = it->next)
        count++;
    return count;
}

/* ---- answers ---- */

/* Goal: an answer shows that its backup is not silent; a request that ran out of time shows nothing. */
static void answer_is_heard_and_a_timeout_is_not(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    rig->now_us += 5000;
    uint64_t heard_us = rig_peer(rig, 2)->heard_us;
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    rig_refuse(rig, 2, LEAT_REP_HIBERNATE, LEAT_E_TIMEOUT);
    assert_int_equal(rig_peer(rig, 1)->heard_us, rig->now_us);
    assert_int_equal(rig_peer(rig, 2)->heard_us, heard_us);
    begun();
    rig->primary->options.quiet_us = 100 * 1000;
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    rig_pass(rig, 30 * 1000);
    rig->now_us += 5000;
    heard_us = rig_peer(rig, 2)->heard_us;
    rig_refuse(rig, 1, LEAT_REP_ASK, LEAT_E_UNSUPPORTED); /* an answer, too */
    rig_refuse(rig, 2, LEAT_REP_ASK, LEAT_E_TIMEOUT);
    assert_int_equal(rig_peer(rig, 1)->heard_us, rig->now_us);
    assert_int_equal(rig_peer(rig, 2)->heard_us, heard_us);
}

/* Goal: an answer that took as long as the longest of late is the longest of late from now on. */
static void slow_answer_is_remembered_from_its_time(void **state)
{
    (void)state;
    begun();
    struct rep_peer *peer = rig_peer(rig, 1);
    peer->took_us = 40 * 1000;
    peer->took_at_us = rig->now_us;
    peer->heard_us = 0;
    rig->now_us += 100;
    peer->ops = 1;
    peer->ops_us = rig->now_us - 40 * 1000;
    rep_peer_heard(peer);
    assert_int_equal(peer->took_us, 40 * 1000);
    assert_int_equal(peer->took_at_us, rig->now_us);
    rig->now_us += 100;
    peer->heard_us = 0;
    peer->ops_us = rig->now_us - 39 * 1000;
    rep_peer_heard(peer);
    assert_int_equal(peer->took_at_us, rig->now_us - 100);
}

/* Goal: of two silent backups the first to be left is the backup that has owed an answer for longer. */
static void backup_that_owes_longest_is_left_first(void **state)
{
    (void)state;
    for (unsigned longer = 1; longer <= 2; longer++) {
        begun();
        rig->primary->options.quiet_us = 100;
        rig->now_us += 1000 * 1000;
        for (unsigned i = 1; i <= 2; i++) {
            struct rep_peer *peer = rig_peer(rig, i);
            peer->heard_us = peer->wrote_us = peer->took_us = 0;
            peer->missed = 4;
            peer->ops = 1;
            peer->ops_us = rig->now_us - (i == longer ? 300 : 200);
        }
        trace_begin();
        const struct rep_peer *left = rep_silence_shed(rig->primary, rig->now_us);
        assert_ptr_equal(left, rig_peer(rig, longer));
    }
}

/* Goal: a request that waits for its turn at a backup leaves with the answer that makes room. */
static void request_that_waits_leaves_with_an_answer(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    rig_peer(rig, 1)->ops = LEAT_REP_CALLS_MAX;
    rig_peer(rig, 2)->ops = LEAT_REP_CALLS_MAX;
    rig_peer(rig, 3)->node.draining = true;
    rig_reserve(rig, 1);
    calm();
    trace_begin();
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    TRACE_IS("n1 OPEN s1 h0 v1 d1, 2 s\n");
}

static void is_part(void)
{
    copy->incomplete = true;
    copy->counted = false;
    rep_copy_step(copy);
}

static void damaged(unsigned kind)
{
    trace_begin();
    set->seg->buffer = NULL; /* in the file alone */
    rig_refuse(rig, 1, kind, LEAT_E_DAMAGED);
    trace("%s", strstr(trace_text, "damaged") ? "own copy is damaged\n" : "no\n");
}

/* Goal: this node's own copy is called damaged only where a backup refuses the bytes that were copied from it: at the
 * CLOSE of a copy that was incomplete. */
static void own_copy_is_damaged_where_its_bytes_are_refused(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    damaged(LEAT_REP_CLOSE);
    assert_null(strstr(trace_text, "own"));
    begun();
    is_part();
    damaged(LEAT_REP_COMPLETE);
    assert_null(strstr(trace_text, "own"));
    begun();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    copy->incomplete = true;
    damaged(LEAT_REP_CLOSE);
    assert_non_null(strstr(trace_text, "own"));
}

/* Goal: a copy that is given up during a request is freed at once; the answer is nobody's. */
static void copy_that_is_given_up_amid_a_request_is_freed(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    struct rep_peer *peer = copy->peer;
    assert_int_equal(length(&peer->copies), 1);
    rep_copy_lost(copy);
    assert_int_equal(length(&peer->copies), 0);
    rig_answer(rig, peer == rig_peer(rig, 1) ? 1 : 2, LEAT_REP_HIBERNATE);
    assert_int_equal(peer->ops, 0);
}

/* ---- writes ---- */

/* Goal: a write that could not be posted is free again, and those under way stand in their order. */
static void writes_are_kept_in_their_order(void **state)
{
    (void)state;
    begun();
    calm();
    unsigned free_before = length(&rig->primary->writes_free);
    assert_true(free_before >= 2);
    rig->write_rc = LEAT_E_CLOSED;
    assert_false(rep_copy_write_from(copy, rig->buffers[0], 64));
    assert_int_equal(length(&rig->primary->writes_free), free_before);
    rig->write_rc = LEAT_OK;
    assert_true(rep_copy_write_from(copy, rig->buffers[0], 64));
    rig->now_us += 100;
    assert_true(rep_copy_write_from(copy, rig->buffers[0], 32));
    assert_int_equal(length(&copy->peer->writes), 2);
    const struct rep_write *first =
        LEAT_CONTAINER(copy->peer->writes.next, const struct rep_write, link);
    assert_int_equal(first->bytes, 64);
    assert_int_equal(first->posted_us, rig->now_us - 100);
    assert_int_equal(length(&rig->primary->writes_free), free_before - 2);
}

/* Goal: a write in messages is cut smaller than a one-sided write, over both transports that send messages; and more of
 * such pieces are under way than the window has writes. */
static void writes_by_messages_are_cut(void **state)
{
    (void)state;
    static const enum leat_rmem_kind kinds[] = {LEAT_RMEM_SHM, LEAT_RMEM_TCP, LEAT_RMEM_RPC};
    for (unsigned i = 0; i < 3; i++) {
        begun();
        copy->peer->target->kind = kinds[i];
        set->target = 128 + LEAT_REP_MESSAGE_BYTES_MAX + 64;
        rep_copy_write(copy);
        assert_int_equal(copy->writes, i == 0 ? 1 : 2);
        begun(); /* the window is full of small writes */
        copy->peer->target->kind = kinds[i];
        copy->writes = rig->primary->options.window;
        set->target = 128 + LEAT_REP_MESSAGE_BYTES_MAX;
        rep_copy_write(copy);
        assert_int_equal(copy->sent, i == 0 ? 128 : set->target);
    }
}

/* Goal: a log that asks ahead for fewer bytes than are asked for already changes nothing. */
static void target_does_not_go_back(void **state)
{
    (void)state;
    begun();
    rig_commit(rig, 0, 128, 192);
    rig->store_port.ahead(rig->store_port.ctx, set->seg, 160);
    assert_int_equal(set->target, 192);
}

static uint64_t cpu_ns;
static uint64_t cpu(void *ctx)
{
    (void)ctx;
    return cpu_ns += 10;
}

/* Goal: the CPU time of posts is measured once in so many posts, and counted as often. */
static void cpu_time_of_posts_is_measured_once_in_a_while(void **state)
{
    (void)state;
    begun();
    rig->primary->options.cpu.ns = cpu;
    rig->primary->posts = 0;
    uint64_t before = rig->primary->accounts.cpu_append;
    cpu_ns = 1000;
    for (unsigned i = 0; i <= REP_CPU_EVERY; i++) {
        rig_commit(rig, 0, 128 + 64 * i, 192 + 64 * i);
        rig_wrote(rig, 1, LEAT_OK);
        rig_wrote(rig, 2, LEAT_OK);
        uint64_t measured = i < REP_CPU_EVERY ? 1 : 2;
        assert_int_equal(rig->primary->accounts.cpu_append - before, measured * 10 * REP_CPU_EVERY);
        assert_int_equal(cpu_ns, 1000 + measured * 20);
    }
}

/* ---- batches ---- */

/* Goal: rows that are sent to a backup owe an answer from now on, and the primary looks again in a tick. */
static void rows_that_are_sent_owe_an_answer(void **state)
{
    (void)state;
    begun();
    calm();
    trace_begin();
    rig->now_us += 100;
    leat_list_push_back(&copy->peer->flush.waiting, &copy->in_batch);
    rep_peer_batches(copy->peer);
    assert_int_equal(copy->peer->flush.sent_us, rig->now_us);
    armed_trace();
    TRACE_IS("n1 FLUSH h10=128, 10 s\n"
             ", again in 20000 us\n");
}

static void row_write(struct leat_msg_writer *writer, uint64_t segment, uint64_t handle)
{
    rep_row_write(writer, &(struct rep_row){.handle = handle,
                                            .log = {1, 2, 3},
                                            .segment = {segment},
                                            .epoch = {RIG_EPOCH},
                                            .version = 1,
                                            .state = LEAT_SEGMENT_CLOSED,
                                            .prefix_id = {128, 128}});
}

static void rows_answer(uint64_t first, uint64_t last)
{
    uint8_t control[512];
    struct leat_msg_writer writer;
    rep_audit_all(rig_peer(rig, 1));
    rig_pass(rig, 20 * 1000);
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, (uint32_t)(last - first + 1));
    for (uint64_t id = first; id <= last; id++)
        row_write(&writer, id, 10 + id);
    rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
}

/* Goal: a copy counts as confirmed only by the SETTLE that named the copy, not by a later SETTLE with fewer rows. */
static void copy_is_confirmed_by_the_settle_that_names_it(void **state)
{
    (void)state;
    rig = rig_new(1);
    rig->quiet = true;
    struct leat_segment *segs[2];
    for (unsigned id = 0; id < 2; id++) {
        segs[id] = &rig->segs[id];
        *segs[id] = (struct leat_segment){.log = {1, 2, 3},
                                          .id = {id},
                                          .epoch = {RIG_EPOCH},
                                          .version = 1,
                                          .capacity = RIG_CAPACITY,
                                          .state = LEAT_SEGMENT_CLOSED,
                                          .prefix_id = {128, 128}};
    }
    struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, 3);
    options.opened = true;
    assert_int_equal(leat_primary_log_create(rig->primary, &options, segs, 2, &rig->log), LEAT_OK);
    rig->store_port = leat_primary_port(rig->log);
    memcpy(rig_peer(rig, 1)->node.host, "h0", 3); /* this node's own */
    rows_answer(0, 1);
    assert_true(rep_set_find(rig->log, 0)->misplaced); /* where it lies is judged at once */
    rig_refuse(rig, 1, LEAT_REP_SETTLE, LEAT_E_TIMEOUT);
    rows_answer(0, 0);
    rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, (const uint8_t *)"\x90", 1);
    assert_false(rep_set_find(rig->log, 0)->copies[0]->found);
    assert_true(rep_set_find(rig->log, 1)->copies[0]->found);
    rig_free(rig);
}

/* Goal: a row waits for a copy that was given up amid writes only if both are the same replica. */
static void row_of_another_replica_does_not_wait(void **state)
{
    (void)state;
    for (uint64_t handle = 10; handle <= 11; handle++) {
        begun();
        rig_commit(rig, 0, 128, 192); /* under way to node 1 */
        rig_wrote(rig, 2, LEAT_OK);
        rig_peer(rig, 1)->node.draining = true;
        rep_copy_lost(copy);
        rig_mails(rig);
        rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 4096);
        rig_wrote(rig, 3, LEAT_OK);
        rig_answer(rig, 3, LEAT_REP_COMPLETE);
        owned->known = owned->need;
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        uint8_t control[128];
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, 1);
        row_write(&writer, 0, handle);
        trace_begin();
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
        TRACE_IS(handle == 10 ? "" : "n1 SETTLE h11=DROP/e5/p0, 10 s\n");
    }
}

/* ---- logs ---- */

static void on_idle(void *arg)
{
    (void)arg;
    trace("idle\n");
}

/* Goal: a log that is given up asks nothing more, and is waited for no more. */
static void log_that_is_given_up_asks_nothing(void **state)
{
    (void)state;
    begun();
    rep_copy_lost(copy); /* another is to be made */
    rep_wait(owned);
    set->stamp_busy = true;
    leat_primary_log_release(owned, on_idle, NULL);
    trace_begin();
    rig_mails(rig);
    TRACE_IS("");
    assert_true(leat_list_empty(&owned->waits_link));
    assert_true(leat_list_empty(&rig->primary->waits));
}

/* Goal: a log that lacked a node for a copy is looked at in each tick only until there is one. */
static void log_that_lacks_nothing_waits_for_nothing(void **state)
{
    (void)state;
    begun();
    rig_peer(rig, 3)->node.draining = true;
    rep_copy_lost(copy);
    rig_peer(rig, 1)->node.draining = true;
    rig_mails(rig);
    assert_true(owned->lacking);
    rig_peer(rig, 3)->node.draining = false;
    rep_mark_dirty(owned);
    rig_mails(rig);
    assert_false(owned->lacking);
}

/* Goal: when the older segments of a log have come, all backups are asked about their replicas in a tick. */
static void log_that_is_whole_has_its_copies_asked_for(void **state)
{
    (void)state;
    begun();
    calm();
    trace_begin();
    leat_primary_log_whole(owned);
    armed_trace();
    TRACE_IS(", again in 20000 us\n");
}

/* Goal: a copy of a closed segment is made anew only after the store has answered the CLOSE. */
static void copy_is_not_made_anew_before_its_segment_is_closed(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_refuse(rig, 1, LEAT_REP_CLOSE, LEAT_E_DISK);
    trace_begin();
    rig_pass(rig, 3000 * 1000);
    TRACE_IS("");
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_pass(rig, 3000 * 1000);
    assert_non_null(strstr(trace_text, "OPEN s0"));
}

/* A closed segment on nodes 1 and 2, whose store has answered. */
static void closed(void)
{
    begun();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    calm();
    trace_begin();
}

/* Goal: a lost copy of a closed segment is made anew as soon as the time for its node's return is over, to the
 * microsecond. */
static void copy_is_made_anew_when_its_time_has_come(void **state)
{
    (void)state;
    for (unsigned early = 0; early < 2; early++) {
        closed();
        rig->now_us += 3000 * 1000;
        rep_copy_lost(copy);
        set->lost_us = rig->now_us - rig->primary->options.grace_none_us + early;
        trace_begin();
        rep_recopy_step(rig->primary, rig->now_us);
        assert_int_equal(strstr(trace_text, "OPEN s0") == NULL, early);
    }
}

/* Goal: a segment that is dropped while a piece of it is read goes as soon as the read has ended. */
static void drop_goes_on_when_a_read_has_ended(void **state)
{
    (void)state;
    closed();
    rep_copy_lost(copy);
    set->seg->buffer = NULL;
    rig->now_us += 3000 * 1000;
    rep_recopy_step(rig->primary, rig->now_us);
    const struct rep_copy *anew = rig->primary->recopy_copy;
    unsigned node = rig_node_of(anew->peer->node.number);
    rig_answer_at(rig, node, LEAT_REP_OPEN, 30, 4096);
    rig->now_us += 1000 * 1000;
    rep_recopy_step(rig->primary, rig->now_us);
    assert_int_equal(rig->io_count, 1);
    rig_peer_down(rig, node); /* nobody waits for the piece any more */
    rig_end(rig, LEAT_STORE_DROP, 0, 128);
    rig_mails(rig);
    calm();
    while (set->copy_count > 0) { /* these are dropped at their backups */
        unsigned other = rig_node_of(set->copies[0]->peer->node.number);
        rig_answer(rig, other, LEAT_REP_DROP);
    }
    trace_begin();
    rig_mails(rig);
    TRACE_IS("");
    struct leat_disk_io *io = rig->ios[--rig->io_count];
    io->rc = LEAT_OK;
    io->done_bytes = io->bytes;
    io->on_done(io);
    rig_mails(rig);
    TRACE_IS("store DROP s0\n");
}

/* Goal: heads that are woken for a copy are paced by their bytes, to the byte. */
static void woken_heads_are_paced_by_their_bytes(void **state)
{
    (void)state;
    begun();
    rep_copy_lost(copy);
    set->state = REP_SET_HIBERNATED;
    set->lost_us = 0;
    set->target = 64 * 1024;
    rig->primary->options.recopy_bytes_per_second = 1024 * 1024;
    rig->now_us += 3000 * 1000;
    assert_true(rep_head_copy_wanted(owned, set->seg));
    assert_int_equal(rig->primary->wakes_at_us, rig->now_us + 62500);
}

/* Goal: a head is not to be hibernated while a write from its buffer has not ended, even a write to a lost copy; one
 * that is hibernated is not woken for that. */
static void head_keeps_its_buffer_amid_writes(void **state)
{
    (void)state;
    begun();
    for (unsigned i = 0; i < 4; i++) {
        bool writes = i & 1, hibernated = i & 2;
        set->writes = writes;
        set->state = hibernated ? REP_SET_HIBERNATED : REP_SET_STARTED;
        assert_int_equal(rep_head_copy_wanted(owned, set->seg), writes && !hibernated);
    }
    set->writes = 0;
}

/* ---- better places ---- */

static void rack(struct leat_rep_node *node, const char *name)
{
    snprintf(node->rack, sizeof node->rack, "%s", name);
}

/* Goal: of better places the best is taken, though a worse place is looked at after it; the node with number 0 is one
 * of them. */
static void best_of_better_places_is_taken(void **state)
{
    (void)state;
    closed();
    rig_node_up(rig, 4);
    rack(&rig->primary->options.self, "r");
    rack(&rig_peer(rig, 1)->node, "q"); /* with this node's host, and the rack of node 2 */
    memcpy(rig_peer(rig, 1)->node.host, "h0", 3);
    rack(&rig_peer(rig, 2)->node, "q");
    rack(&rig_peer(rig, 3)->node, "r");
    memcpy(rig_peer(rig, 4)->node.host, "h2", 3);
    assert_ptr_equal(rep_place_better(set), rig_peer(rig, 3));
    closed();
    rep_copy_remove(set->copies[0]->peer == rig_peer(rig, 1) ? set->copies[0] : set->copies[1]);
    memcpy(rig_peer(rig, 2)->node.host, "h0", 3);
    rig_peer(rig, 3)->node.draining = true;
    assert_ptr_equal(rep_place_better(set), rig_peer(rig, 1));
}

static void copies_add(unsigned first, unsigned last)
{
    for (unsigned node = first; node <= last; node++) {
        struct rep_copy *more = rep_copy_new(set, rig_peer(rig, node));
        more->state = REP_COPY_CLOSED;
        more->counted = true;
    }
}

/* Goal: a segment with as many copies as there may be gets no better copy; nor does a segment with a copy too many that
 * can't go yet. */
static void segment_with_all_copies_gets_no_better_one(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        closed();
        for (unsigned node = 4; node <= 8; node++)
            rig_node_up(rig, node);
        memcpy(copy->peer->node.host, "h0", 3);
        owned->options.copies = full ? LEAT_COPIES_MAX : LEAT_COPIES_MAX - 1;
        copies_add(4, full ? 8 : 7);
        assert_int_equal(set->copy_count, owned->options.copies - 1);
        set->places = 0;
        rep_place_judge(set);
        rig->primary->crowded_left = rig->primary->crowded_count;
        assert_int_equal(rig->primary->crowded_count, 1);
        const struct rep_copy *better = rep_better_begin(rig->primary, rig->now_us);
        assert_int_equal(better != NULL, !full);
    }
    closed();
    memcpy(copy->peer->node.host, "h0", 3);
    owned->options.copies = 2; /* the owner and one */
    set->copies[0]->found = set->copies[1]->found = true;
    set->places = 0;
    rep_place_judge(set);
    rig->primary->crowded_left = rig->primary->crowded_count;
    trace_begin();
    assert_null(rep_better_begin(rig->primary, rig->now_us));
    TRACE_IS("");
}

/* ---- life ---- */

static leat_err source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    (void)error;
    trace("source of %s: %zu bytes%s\n", (const char *)ctx, bytes,
          (uintptr_t)base % 4096 ? ", not aligned" : "");
    return LEAT_OK;
}

/* Goal: the memory that closed segments are copied from is named to the transport; the end of a primary ends its
 * sessions and its timer, and a second end does nothing. */
static void primary_ends_with_all_that_it_began(void **state)
{
    (void)state;
    begun();
    struct leat_primary_options options = rig->primary->options;
    struct leat_rmem rmem = {
        .ctx = (char[]){"ctx"}, .source = source, .attach = rig_attach, .detach = rig_detach};
    struct leat_primary *other = NULL;
    options.rmem = &rmem;
    trace_begin();
    assert_int_equal(leat_primary_create(&options, &other), LEAT_OK);
    leat_primary_destroy(&other);
    TRACE_IS("source of ctx: 262144 bytes\n");
    leat_primary_destroy(&other);
    rig = rig_new(2);
    rep_arm(rig->primary, 1000);
    assert_int_equal(rig->timers.count, 1);
    leat_primary_destroy(&rig->primary);
    assert_null(rig->primary);
    assert_int_equal(rig->timers.count, 0);
    TRACE_IS("detach n1\n"
             "detach n2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(answer_is_heard_and_a_timeout_is_not),
        TRACE_TEST(slow_answer_is_remembered_from_its_time),
        TRACE_TEST(backup_that_owes_longest_is_left_first),
        TRACE_TEST(request_that_waits_leaves_with_an_answer),
        TRACE_TEST(own_copy_is_damaged_where_its_bytes_are_refused),
        TRACE_TEST(copy_that_is_given_up_amid_a_request_is_freed),
        TRACE_TEST(writes_are_kept_in_their_order),
        TRACE_TEST(writes_by_messages_are_cut),
        TRACE_TEST(target_does_not_go_back),
        TRACE_TEST(cpu_time_of_posts_is_measured_once_in_a_while),
        TRACE_TEST(rows_that_are_sent_owe_an_answer),
        TRACE_TEST(copy_is_confirmed_by_the_settle_that_names_it),
        TRACE_TEST(row_of_another_replica_does_not_wait),
        TRACE_TEST(log_that_is_given_up_asks_nothing),
        TRACE_TEST(log_that_lacks_nothing_waits_for_nothing),
        TRACE_TEST(log_that_is_whole_has_its_copies_asked_for),
        TRACE_TEST(copy_is_not_made_anew_before_its_segment_is_closed),
        TRACE_TEST(copy_is_made_anew_when_its_time_has_come),
        TRACE_TEST(drop_goes_on_when_a_read_has_ended),
        TRACE_TEST(woken_heads_are_paced_by_their_bytes),
        TRACE_TEST(head_keeps_its_buffer_amid_writes),
        TRACE_TEST(best_of_better_places_is_taken),
        TRACE_TEST(segment_with_all_copies_gets_no_better_one),
        TRACE_TEST(primary_ends_with_all_that_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
