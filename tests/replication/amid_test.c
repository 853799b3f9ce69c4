/* SPDX-License-Identifier: Apache-2.0 */
/* Events in the middle of other work: a log that goes with writes under way, an audit during SETTLE, an answer to an
 * earlier request. A primary alone. */
#include "tests/replication/case_rig.h"

/* ---- writes that are under way ---- */

/* Goal: a write that is under way when its copy is given up, or its log goes, ends without either. */
static void write_ends_without_its_copy_or_its_log(void **state)
{
    (void)state;
    for (unsigned log_goes = 0; log_goes < 2; log_goes++) {
        begun();
        rig->primary->options.window = 2;
        for (unsigned i = 1; i <= 2; i++) {
            set->target = 128 + 64 * i;
            rep_copy_write(copy);
        }
        assert_int_equal(set->writes, 2);
        if (log_goes)
            leat_primary_log_destroy(&rig->log);
        else
            rep_copy_remove(copy);
        assert_int_equal(copy->writes, 2);
        assert_ptr_equal(copy->source, log_goes ? NULL : set);
        rig_wrote(rig, 1, LEAT_OK);
        assert_int_equal(copy->writes, 1);
        assert_int_equal(copy->done, 128);
        rig_wrote(rig, 1, LEAT_OK);
        if (!log_goes) assert_int_equal(set->writes, set->copies[0]->writes); /* of the other one */
        if (log_goes) assert_true(leat_list_empty(&rig_peer(rig, 1)->copies));
        trace_begin();
        rig_free(rig);
    }
}

/* Goal: a copy that was given up goes with the last thing that is under way of it: an answer, or a write. */
static void copy_that_was_given_up_goes_with_its_last_write(void **state)
{
    (void)state;
    for (unsigned write_first = 0; write_first < 2; write_first++) {
        begun();
        const struct rep_peer *peer = copy->peer;
        rig->quiet = true;
        owned->version = owned->need = 2;
        rep_mark_dirty(owned);
        rig_mails(rig);
        assert_true(copy->batched);
        set->target = 192;
        rep_copy_write(copy);
        assert_int_equal(copy->writes, 1);
        rig_peer(rig, 3)->node.draining = true;
        rig_peer(rig, 1)->node.draining = true; /* nobody to take its place */
        rep_copy_remove(copy);
        if (write_first) rig_wrote(rig, 1, LEAT_OK);
        if (!write_first) rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
        assert_ptr_equal(peer->copies.next, &copy->by_peer);
        if (!write_first) rig_wrote(rig, 1, LEAT_OK);
        if (write_first) rig_answer_rows(rig, 1, LEAT_REP_RESTAMP, LEAT_OK);
        assert_true(leat_list_empty(&peer->copies));
        trace_begin();
    }
}

/* Goal: a copy that waits for a batch leaves the batch when it is given up, whatever else is under way. */
static void copy_that_was_given_up_is_in_no_batch(void **state)
{
    (void)state;
    begun();
    calm();
    copy->writes = 1;
    leat_list_push_back(&copy->peer->flush.waiting, &copy->in_batch);
    rep_copy_remove(copy);
    assert_true(leat_list_empty(&rig_peer(rig, 1)->flush.waiting));
    TRACE_IS("");
}

/* Goal: a batch has so many rows, and the others go with the next. */
static void batch_has_so_many_rows(void **state)
{
    (void)state;
    static struct rep_copy copies[LEAT_REP_BATCH_MAX + 2];
    begun();
    calm();
    rig->quiet = true;
    for (unsigned i = 0; i < LEAT_REP_BATCH_MAX + 2; i++) {
        copies[i] = (struct rep_copy){.set = set, .peer = copy->peer, .handle = i};
        leat_list_init(&copies[i].in_batch);
        leat_list_push_back(&copy->peer->flush.waiting, &copies[i].in_batch);
    }
    rep_peer_batches(copy->peer);
    assert_int_equal(copy->peer->flush.count, LEAT_REP_BATCH_MAX);
    assert_true(copies[LEAT_REP_BATCH_MAX - 1].batched && !copies[LEAT_REP_BATCH_MAX].batched);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    assert_int_equal(copy->peer->flush.count, 2);
    assert_true(copies[LEAT_REP_BATCH_MAX + 1].batched);
    trace_begin();
}

/* Goal: a copy that is there only after its segment has started is none: nothing of it is counted anywhere. */
static void copy_that_comes_too_late_is_none(void **state)
{
    (void)state;
    rig = rig_new(1);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig->quiet = true;
    rig_pass(rig, rig->primary->options.open_wait_us); /* reserved without it */
    rig_commit(rig, 0, 0, 128);
    assert_int_equal(rep_set_find(rig->log, 0)->state, REP_SET_STARTED);
    assert_int_equal(rep_set_find(rig->log, 0)->copy_count, 1);
    rig_peer(rig, 1)->node.draining = true; /* not asked again */
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    assert_int_equal(rep_set_find(rig->log, 0)->copy_count, 0);
    assert_int_equal(rig_peer(rig, 1)->open_count, 0);
    assert_true(leat_list_empty(&rig_peer(rig, 1)->copies));
    trace_begin();
}

/* Goal: a refused OPEN is recorded under the number of the node that refused, however large that number is. */
static void refusal_is_noted_of_its_node(void **state)
{
    (void)state;
    rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig->quiet = true;
    const unsigned asked = rig->calls[0].node;
    struct rep_peer *peer = rig_peer(rig, asked);
    peer->node.number = 64;
    rig_refuse(rig, asked, LEAT_REP_OPEN, LEAT_E_AGAIN);
    peer->node.number = asked;
    assert_int_equal(rep_set_find(rig->log, 0)->refused[0], 0);
    assert_int_equal(rep_set_find(rig->log, 0)->refused[1], 1);
    trace_begin();
}

static void commit_asked(void)
{
    struct leat_store_req req = {
        .kind = LEAT_STORE_COMMIT, .seg = set->seg, .from_bytes = 128, .to_bytes = 192};
    rig->store_port.request(rig->store_port.ctx, &rig->post, &req);
    trace("-> %u mails\n", rig->mail_count);
    set->commit = NULL;
}

/* Goal: a commit is looked at again where no write will bring its answer: where there is none, where the disk or a
 * version is waited for. */
static void commit_is_looked_at_where_no_write_answers_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, commit_asked);
    CASE(begun, commit_asked, owned->need = 2);
    CASE(begun, commit_asked, owned->options.durability = LEAT_DURABILITY_DISK);
    CASE(begun, commit_asked, copy->peer->state = rig_peer(rig, 2)->state = REP_PEER_UP);
    TRACE_IS("(void)0: n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n"
             "-> 0 mails\n"
             "owned->need = 2: n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n"
             "-> 1 mails\n"
             "owned->options.durability = LEAT_DURABILITY_DISK: store COMMIT s0 128..192\n"
             "n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n"
             "-> 1 mails\n"
             "copy->peer->state = rig_peer(rig, 2)->state = REP_PEER_UP: -> 1 mails\n");
}

static void given_up(void)
{
    const struct rep_peer *peer = copy->peer;
    unsigned open = peer->open_count;
    rep_copy_remove(copy);
    trace("-> %d open\n", (int)(peer->open_count - open));
}

/* Goal: a copy that is given up no longer counts among its node's open or hibernated copies. */
static void open_copies_of_a_node_are_counted(void **state)
{
    (void)state;
    CASE(begun, given_up, copy->state = REP_COPY_OPENING);
    CASE_AS_IT_IS(begun, given_up);
    CASE(begun, given_up, copy->state = REP_COPY_HIBERNATED);
    CASE(begun, given_up, copy->state = REP_COPY_CLOSED);
    TRACE_IS("copy->state = REP_COPY_OPENING: -> 0 open\n"
             "(void)0: -> -1 open\n"
             "copy->state = REP_COPY_HIBERNATED: -> -1 open\n"
             "copy->state = REP_COPY_CLOSED: -> 0 open\n");
}

/* Goal: when as many writes are under way as there may be, the rest waits. */
static void bytes_wait_while_too_many_writes_are_under_way(void **state)
{
    (void)state;
    begun();
    calm();
    rig->primary->writes_fresh = REP_WRITES_MAX;
    leat_list_init(&rig->primary->writes_free);
    set->target = 192;
    rep_copy_write(copy);
    assert_int_equal(copy->sent, 128);
    assert_false(leat_list_empty(&owned->waits_link));
    TRACE_IS("");
}

static void told(void)
{
    rep_own_damaged(set);
    trace(".\n");
}

static void read_from_its_file(void)
{
    begun();
    set->seg->buffer = NULL;
}

/* Goal: bytes read from this node's file that are not the written bytes are reported, once. */
static void own_copy_is_damaged_where_its_file_is(void **state)
{
    (void)state;
    CASE_AS_IT_IS(read_from_its_file, told);
    CASE(read_from_its_file, told, set->seg->buffer = rig->buffers[0]);
    CASE(read_from_its_file, told, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(read_from_its_file, told, rig->primary->options.events.on_damaged = NULL);
    TRACE_IS("(void)0: damaged s0\n"
             ".\n"
             "set->seg->buffer = rig->buffers[0]: .\n"
             "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: .\n"
             "rig->primary->options.events.on_damaged = NULL: .\n");
}

/* ---- sessions ---- */

static uint32_t row_state = LEAT_SEGMENT_OPEN;

static void row_comes(unsigned node, uint64_t handle)
{
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct rep_row row = {
        .handle = handle, .log = {1, 2, 3}, .epoch = {RIG_EPOCH}, .version = 1, .state = row_state};
    rig->quiet = true;
    rep_audit_all(rig_peer(rig, node));
    rig_pass(rig, 20 * 1000);
    rig->quiet = false;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, 1);
    rep_row_write(&writer, &row);
    rig_answer_bytes(rig, node, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
    trace(".\n");
}

static void own_row(void)
{
    row_comes(1, 10);
}

static void row_of_another(void)
{
    row_comes(3, 30);
}

static void refused_row(void)
{
    uint8_t control[64];
    struct rep_pair refused = {10, (uint64_t)LEAT_E_NOT_FOUND, 0};
    own_row();
    rig->quiet = true;
    rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, control,
                     rep_pairs_encode(&refused, 1, control, sizeof control));
    trace("-> %u copies, version %u\n", set->copy_count, owned->version);
}

/* Goal: the copies of a head are confirmed without the bytes passed over. A replica that is no copy of the head is
 * dropped when there are enough copies, and each of them counts. */
static void row_of_a_head_is_judged(void **state)
{
    (void)state;
    CASE(begun, own_row, set->seg->passed_bytes = 7);
    CASE_AS_IT_IS(begun, row_of_another);
    CASE(begun, row_of_another, copy->state = REP_COPY_OPENING);
    CASE(begun, row_of_another, copy->incomplete = copy->batched = true);
    CASE(begun, row_of_another, copy->found = true);
    CASE(begun, row_of_another, rig_peer(rig, 3)->cut = true);
    CASE(begun, row_of_another, rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_HIBERNATED);
    CASE(begun, row_of_another, rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_CLOSED);
    CASE(begun, row_of_another, rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_RESERVED);
    row_state = LEAT_SEGMENT_OPEN;
    CASE_AS_IT_IS(begun, refused_row); /* an open one is its session's */
    TRACE_IS("set->seg->passed_bytes = 7: n1 SETTLE h10=KEEP/e5/p0, 10 s\n"
             ".\n"
             "(void)0: n3 SETTLE h30=DROP/e5/p0, 10 s\n"
             ".\n"
             "copy->state = REP_COPY_OPENING: .\n"
             "copy->incomplete = copy->batched = true: .\n"
             "copy->found = true: .\n"
             "rig_peer(rig, 3)->cut = true: n3 SETTLE h30=LEAVE/e5/p0, 10 s\n"
             ".\n"
             "rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_HIBERNATED: n3 SETTLE "
             "h30=DROP/e5/p0, 10 s\n"
             ".\n"
             "rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_CLOSED: n3 SETTLE "
             "h30=DROP/e5/p0, 10 s\n"
             ".\n"
             "rig_peer(rig, 3)->cut = true, row_state = LEAT_SEGMENT_RESERVED: n3 SETTLE "
             "h30=LEAVE/e5/p0, 10 s\n"
             ".\n"
             "(void)0: n1 SETTLE h10=KEEP/e5/p0, 10 s\n"
             ".\n"
             "-> 2 copies, version 1\n");
}

/* Goal: a write of an ended session may still land until its backup restarts, so its open replicas are left. */
static void session_that_ended_may_still_write(void **state)
{
    (void)state;
    begun();
    struct rep_peer *peer = rig_peer(rig, 1);
    assert_false(peer->cut);
    rig->quiet = true;
    rig_peer_down(rig, 1);
    assert_true(peer->cut);
    rig_node_up(rig, 1);
    assert_true(peer->cut);
    rig_peer_down(rig, 1);
    struct leat_rep_node node = rig_node(1);
    node.incarnation++;
    leat_primary_node_set(rig->primary, &node);
    assert_false(peer->cut);
    rig_peer_down(rig, 1); /* there was no session */
    assert_false(peer->cut);
    trace_begin();
}

static void comes_up(void)
{
    rig_peer_up(rig, 1);
    trace("-> %s\n", rig_peer(rig, 1)->attach_busy ? "asked" : "not asked");
}

static void not_attached(void)
{
    begun();
    rig_peer(rig, 1)->state = REP_PEER_UP;
}

/* Goal: a node is asked for memory once, when it can be reached and has given none. */
static void node_is_attached_once(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, comes_up);
    CASE_AS_IT_IS(not_attached, comes_up);
    CASE(not_attached, comes_up, rig_peer(rig, 1)->state = REP_PEER_ASKED);
    CASE(not_attached, comes_up, rig_peer(rig, 1)->attach_busy = true);
    CASE(not_attached, comes_up, rig->call_rc = LEAT_E_CLOSED);
    TRACE_IS("(void)0: -> not asked\n"
             "(void)0: n1 ATTACH, 10 s\n"
             "-> asked\n"
             "rig_peer(rig, 1)->state = REP_PEER_ASKED: -> not asked\n"
             "rig_peer(rig, 1)->attach_busy = true: -> asked\n"
             "rig->call_rc = LEAT_E_CLOSED: -> not asked\n");
}

/* Goal: a grant that comes when its node is not there any more is none, and it is asked again a little later. */
static void grant_that_comes_too_late_is_none(void **state)
{
    (void)state;
    not_attached();
    rig->quiet = true;
    rig_peer_up(rig, 1);
    rig_peer_down(rig, 1);
    rig_peer(rig, 1)->retry_us = 0;
    rig_grant(rig, 1);
    assert_int_equal(rig_peer(rig, 1)->state, REP_PEER_DOWN);
    assert_int_equal(rig_peer(rig, 1)->retry_us, rig->now_us + REP_RETRY_US);
    trace_begin();
}

static void audit(void)
{
    rep_audit_step(rig_peer(rig, 1), rig->now_us);
    trace("-> %s\n", rig_peer(rig, 1)->audit_state == REP_AUDIT_ASKED ? "asked" : "not asked");
}

static void audited_long_ago(void)
{
    begun();
    rig_peer(rig, 1)->audited_us = rig->now_us - rig->primary->options.audit_us;
}

/* Goal: a backup is asked for its unconfirmed replicas (AUDIT) when an audit is due and neither an audit nor a SETTLE
 * is under way: both use the same memory for their rows. */
static void audit_waits_for_what_is_settled(void **state)
{
    (void)state;
    CASE_AS_IT_IS(audited_long_ago, audit);
    CASE(audited_long_ago, audit, rig_peer(rig, 1)->audited_us++);
    CASE(audited_long_ago, audit, rig_peer(rig, 1)->audited_us = 0);
    CASE(audited_long_ago, audit, rig_peer(rig, 1)->audit_state = REP_AUDIT_SETTLING);
    CASE(audited_long_ago, audit, rig_peer(rig, 1)->state = REP_PEER_UP);
    TRACE_IS("(void)0: n1 AUDIT from0, 10 s\n"
             "-> asked\n"
             "rig_peer(rig, 1)->audited_us++: -> not asked\n"
             "rig_peer(rig, 1)->audited_us = 0: n1 AUDIT from0, 10 s\n"
             "-> asked\n"
             "rig_peer(rig, 1)->audit_state = REP_AUDIT_SETTLING: -> not asked\n"
             "rig_peer(rig, 1)->state = REP_PEER_UP: -> not asked\n");
}

/* ---- questions ---- */

static void silent(void)
{
    struct rep_peer *left = rep_silence_shed(rig->primary, rig->now_us);
    if (left) rep_peer_lost(left);
    trace("-> %s\n", rig_peer(rig, 1)->state == REP_PEER_ATTACHED ? "stays" : "is left");
}

/* Silent for 400 ms, of 300 that are given; answers took 10 s, and that was so long ago. */
static void slow_before(uint64_t ago_us)
{
    struct rep_peer *peer = rig_peer(rig, 1);
    calm();
    rig->now_us += UINT64_C(1000) * 1000 * 1000;
    rig->primary->options.quiet_us = 300 * 1000;
    peer->ops = 1;
    peer->ops_us = peer->heard_us = rig->now_us - 400 * 1000;
    peer->missed = 4;
    peer->took_us = 10 * 1000 * 1000;
    peer->took_at_us = rig->now_us - ago_us;
}

/* Goal: a node that was slow lately gets more time to answer; the surplus halves every three seconds. */
static void slowness_is_forgotten(void **state)
{
    (void)state;
    CASE(begun, silent, slow_before(0));
    CASE(begun, silent, slow_before(7 * 3000 * 1000 - 1));
    CASE(begun, silent, slow_before(7 * 3000 * 1000));
    CASE(begun, silent, slow_before(UINT64_C(64) * 3000 * 1000 - 1));
    CASE(begun, silent, slow_before(UINT64_C(64) * 3000 * 1000));
    CASE(begun, silent, slow_before(UINT64_C(65) * 3000 * 1000));
    TRACE_IS("slow_before(0): -> stays\n"
             "slow_before(7 * 3000 * 1000 - 1): -> stays\n"
             "slow_before(7 * 3000 * 1000): cut n1\n"
             "detach n1\n"
             "-> is left\n"
             "slow_before(UINT64_C(64) * 3000 * 1000 - 1): cut n1\n"
             "detach n1\n"
             "-> is left\n"
             "slow_before(UINT64_C(64) * 3000 * 1000): cut n1\n"
             "detach n1\n"
             "-> is left\n"
             "slow_before(UINT64_C(65) * 3000 * 1000): cut n1\n"
             "detach n1\n"
             "-> is left\n");
}

static void both_asked(void)
{
    begun();
    rig->primary->options.quiet_us = 1000;
    for (unsigned i = 1; i <= 2; i++) {
        struct rep_peer *peer = rig_peer(rig, i);
        peer->ops = 1; /* an answer is due */
        peer->ops_us = peer->heard_us = rig->now_us - 100 * 1000;
    }
    rig->quiet = true;
    assert_true(rep_silence_look(rig->primary, rig->now_us));
    rig->quiet = false;
    assert_true(rig_peer(rig, 1)->asking && rig_peer(rig, 2)->asking);
    rig_peer(rig, 2)->round--;
}

static leat_err answer_rc;

static void first_answers(void)
{
    if (answer_rc)
        rig_refuse(rig, 1, LEAT_REP_ASK, answer_rc);
    else
        rig_answer_bytes(rig, 1, LEAT_REP_ASK, LEAT_OK, (const uint8_t *)"\x90", 1);
    trace("-> missed %u\n", rig_peer(rig, 2)->missed);
}

/* Goal: an answer counts against who was asked no later, has said nothing since, and is not behind in that round
 * already. */
static void answer_counts_against_who_was_asked_as_well(void **state)
{
    (void)state;
    CASE_AS_IT_IS(both_asked, first_answers);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->asked_us++);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->asked_us--);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->asking = false);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->heard_us = rig->now_us);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->heard_us = rig->now_us + 1);
    CASE(both_asked, first_answers, rig_peer(rig, 2)->round++);
    CASE(both_asked, first_answers, answer_rc = LEAT_E_UNSUPPORTED);
    CASE(both_asked, first_answers, answer_rc = LEAT_E_TIMEOUT);
    CASE(both_asked, first_answers, answer_rc = LEAT_E_CLOSED);
    CASE(both_asked, first_answers, answer_rc = LEAT_E_CANCELLED);
    answer_rc = LEAT_OK;
    TRACE_IS("(void)0: -> missed 1\n"
             "rig_peer(rig, 2)->asked_us++: -> missed 0\n"
             "rig_peer(rig, 2)->asked_us--: -> missed 1\n"
             "rig_peer(rig, 2)->asking = false: -> missed 0\n"
             "rig_peer(rig, 2)->heard_us = rig->now_us: -> missed 1\n"
             "rig_peer(rig, 2)->heard_us = rig->now_us + 1: -> missed 0\n"
             "rig_peer(rig, 2)->round++: -> missed 0\n"
             "answer_rc = LEAT_E_UNSUPPORTED: -> missed 1\n"
             "answer_rc = LEAT_E_TIMEOUT: -> missed 0\n"
             "answer_rc = LEAT_E_CLOSED: -> missed 0\n"
             "answer_rc = LEAT_E_CANCELLED: -> missed 0\n");
}

/* ---- a link without room ---- */

static unsigned calls_to(unsigned node, unsigned kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < rig->call_count; i++)
        count += rig->calls[i].node == node && rig->calls[i].call->kind == kind;
    return count;
}

/* Goal: all requests that wait for room in a link are sent when there is room. */
static void requests_wait_for_room_in_the_link(void **state)
{
    (void)state;
    begun();
    rig->quiet = true;
    rig->call_rc = LEAT_E_AGAIN;
    rig_reserve(rig, 1);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_pass(rig, 100 * 1000);
    for (unsigned node = 1; node <= 2; node++)
        assert_int_equal(calls_to(node, LEAT_REP_OPEN) + calls_to(node, LEAT_REP_CLOSE), 0);
    rig->call_rc = LEAT_OK;
    rig_pass(rig, 100 * 1000);
    for (unsigned node = 1; node <= 2; node++) {
        assert_int_equal(calls_to(node, LEAT_REP_OPEN), 1);
        assert_int_equal(calls_to(node, LEAT_REP_CLOSE), 1);
    }
    trace_begin();
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 11, 4096);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    assert_int_equal(copy->state, REP_COPY_CLOSED);
    unsigned free_ops = 0;
    LEAT_LIST_EACH(&rig->primary->ops_free, it) free_ops++;
    assert_true(free_ops >= 2); /* the structs of both are free */
    trace_begin();
}

/* Goal: rows of one batch wait for room, too: no row counts as sent before, and each row is sent once there is room. */
static void rows_wait_for_room_in_the_link(void **state)
{
    (void)state;
    static struct rep_copy copies[3];
    begun();
    calm();
    rig->quiet = true;
    struct rep_batch *batch = &copy->peer->flush;
    for (unsigned i = 0; i < 3; i++) {
        copies[i] = (struct rep_copy){.set = set, .peer = copy->peer, .handle = i, .done = 10 + i};
        leat_list_init(&copies[i].in_batch);
        leat_list_push_back(&batch->waiting, &copies[i].in_batch);
    }
    rig->call_rc = LEAT_E_AGAIN;
    for (unsigned again = 0; again < 2; again++) {
        rep_peer_batches(copy->peer);
        assert_true(!batch->busy && batch->count == 0);
        assert_false(copies[0].batched || copies[1].batched || copies[2].batched);
        assert_true(leat_timer_armed(&rig->primary->timer));
    }
    rig->call_rc = LEAT_OK;
    rep_peer_batches(copy->peer);
    assert_true(batch->busy && batch->count == 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(batch->rows[i], &copies[i]);
        assert_int_equal(batch->values[i], 10 + i);
    }
    trace_begin();
}

/* Goal: an answer with another number of rows is an answer for no row: no copy counts as flushed. */
static void answer_with_another_number_of_rows_flushes_nothing(void **state)
{
    (void)state;
    uint8_t control[2 * REP_PAIR_BYTES_MAX + 8];
    const struct rep_pair rows[2] = {{10, LEAT_OK, 0}, {11, LEAT_OK, 0}};
    begin_at(LEAT_DURABILITY_DISK);
    rig->quiet = true;
    assert_int_equal(calls_to(1, LEAT_REP_FLUSH), 1);
    assert_false(rep_is_held(rig->log));
    uint32_t bytes = rep_pairs_encode(rows, 2, control, sizeof control);
    rig_answer_bytes(rig, 1, LEAT_REP_FLUSH, LEAT_OK, control, bytes);
    assert_true(rep_is_held(rig->log)); /* the copy is lost: no ack under this generation */
    for (unsigned i = 0; i < set->copy_count; i++)
        assert_int_equal(set->copies[i]->flushed, 0);
    trace_begin();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(write_ends_without_its_copy_or_its_log),
        TRACE_TEST(copy_that_was_given_up_goes_with_its_last_write),
        TRACE_TEST(copy_that_was_given_up_is_in_no_batch),
        TRACE_TEST(batch_has_so_many_rows),
        TRACE_TEST(copy_that_comes_too_late_is_none),
        TRACE_TEST(refusal_is_noted_of_its_node),
        TRACE_TEST(commit_is_looked_at_where_no_write_answers_it),
        TRACE_TEST(open_copies_of_a_node_are_counted),
        TRACE_TEST(bytes_wait_while_too_many_writes_are_under_way),
        TRACE_TEST(own_copy_is_damaged_where_its_file_is),
        TRACE_TEST(row_of_a_head_is_judged),
        TRACE_TEST(session_that_ended_may_still_write),
        TRACE_TEST(node_is_attached_once),
        TRACE_TEST(grant_that_comes_too_late_is_none),
        TRACE_TEST(audit_waits_for_what_is_settled),
        TRACE_TEST(slowness_is_forgotten),
        TRACE_TEST(answer_counts_against_who_was_asked_as_well),
        TRACE_TEST(requests_wait_for_room_in_the_link),
        TRACE_TEST(rows_wait_for_room_in_the_link),
        TRACE_TEST(answer_with_another_number_of_rows_flushes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
