/* SPDX-License-Identifier: Apache-2.0 */
/* Each condition by itself: what holds a version back, what is sent ahead, what is owed an answer, which head is to be
 * resumed for a copy. A primary alone. */
#include "tests/replication/primary_rig.h"

/* A head on nodes 1 and 2, begun up to 128. */
static struct rig *rig_begun(unsigned nodes)
{
    struct rig *rig = rig_new(nodes);
    size_t used = trace_used;
    rig->quiet = true;
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    rig->quiet = false;
    trace_text[trace_used = used] = '\0';
    return rig;
}

/* Goal: bytes go ahead of a commit only where nothing but bytes is wanted of any copy, and one is under way. */
static void bytes_go_ahead_only_where_all_copies_are_plain(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 13; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct rig *rig = rig_begun(2);
            struct rep_set *set = rep_set_find(rig->log, 0);
            struct rep_copy *copy = set->copies[k];
            struct leat_store_req any = {.kind = LEAT_STORE_EVICT};
            rig->quiet = true;
            rig_commit(rig, 0, 128, 192);
            rig->quiet = false;
            if (i == 1) copy->state = REP_COPY_HIBERNATED;
            if (i == 2) copy->incomplete = true;
            if (i == 3) copy->counted = false;
            if (i == 4) copy->stamp = 0;
            if (i == 5) set->state = REP_SET_CLOSED;
            if (i == 6) set->dropping = true;
            if (i == 7) set->state = REP_SET_HIBERNATING;
            if (i == 8) set->evict = &any;
            if (i == 9) rig->log->need = 2; /* held */
            if (i == 10) rig->log->fenced = true;
            if (i == 11) rig->log->options.durability = LEAT_DURABILITY_DISK;
            rig_sealed(rig, 0, 256);
            rig->store_port.ahead(rig->store_port.ctx, &rig->segs[0], i == 12 ? 192 : 256);
            if (i)
                TRACE_IS("");
            else
                TRACE_IS("n1 write @4288+64 from s0+192\n"
                         "n2 write @8384+64 from s0+192\n");
            copy->state = REP_COPY_OPEN;
            set->state = REP_SET_STARTED, set->dropping = false;
            set->evict = NULL;
            rig->log->need = 0;
            rig->log->options.durability = LEAT_DURABILITY_MEMORY;
            rig_free(rig);
            trace_begin();
        }
}

/* Goal: the coordinator is told of a version when all that is to hold good carries it; each thing that holds it back,
 * by itself. */
static void version_is_told_when_nothing_holds_it_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct rig *rig = rig_begun(2);
            struct leat_primary_log *log = rig->log;
            struct rep_set *set = rep_set_find(log, 0);
            struct rep_copy *copy = set->copies[k];
            struct leat_store_req any = {.kind = LEAT_STORE_RESUME};
            log->need = log->version = set->stamped = 2;
            set->copies[0]->stamp = set->copies[1]->stamp = 2;
            if (i == 1) log->opened = false;
            if (i == 2) log->known = 2;
            if (i == 3) log->version_busy = true;
            if (i == 4) log->fenced = true;
            if (i == 5) set->state = REP_SET_RESUMING;
            if (i == 6) set->state = REP_SET_HIBERNATING;
            if (i == 7) set->resume = &any;
            if (i == 8) set->stamped = 1;
            if (i == 9) copy->stamp = 1;
            if (i == 10) copy->incomplete = true;
            if (i == 11) copy->state = REP_COPY_OPENING;
            if (i == 12) log->options.min_copies = 4;
            /* These don't: what is closed, goes, or was never there; a reservation's copy that is being opened. */
            if (i == 13) set->state = REP_SET_CLOSED;
            if (i == 14) set->dropping = true;
            if (i == 15) copy->state = REP_COPY_OPENING, set->state = REP_SET_RESERVED;
            if (i == 16) set->state = REP_SET_RESERVED;
            if (i >= 13 && i <= 14) copy->stamp = 1;
            if (i == 17) rig->primary->versions_busy = true;
            if (i == 18) rig->primary->versions_retry_us = rig->now_us + 1;
            if (i == 19) rig->primary->versions_retry_us = rig->now_us;
            rep_version_step(log);
            rep_versions_send(rig->primary);
            bool told = i == 0 || (i >= 13 && i <= 16) || i == 19;
            if (told)
                TRACE_IS("versions 1/2/3=e5v2\n");
            else
                TRACE_IS("");
            copy->state = REP_COPY_OPEN;
            rig->primary->versions_busy = false;
            rig_free(rig);
            trace_begin();
        }
}

/* Goal: each request to a backup, and each write, makes it owe an answer from then on; after 10 ms the backup is
 * asked. */
static void what_is_under_way_is_owed_an_answer(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++)
        for (unsigned late = 0; late < 2; late++) {
            struct rig *rig = rig_begun(2);
            struct rep_peer *peer = rig_peer(rig, 1);
            struct rep_write write = {
                .copy = LEAT_CONTAINER(peer->copies.next, struct rep_copy, by_peer)};
            uint64_t since_us = rig->now_us - 10 * 1000 + 1 - late;
            rig->primary->options.quiet_us = 100 * 1000;
            peer->heard_us = peer->wrote_us = 0;
            leat_list_init(&write.link);
            if (i == 1) peer->ops = 1;
            if (i == 2) peer->restamp.busy = true;
            if (i == 3) peer->flush.busy = true;
            if (i == 4) peer->asking = true;
            if (i == 5) leat_list_push_back(&peer->writes, &write.link);
            if (i == 6) peer->ops = 1, peer->state = REP_PEER_UP;
            peer->ops_us = peer->restamp.sent_us = peer->flush.sent_us = peer->asked_us =
                write.posted_us = since_us;
            bool again = rep_silence_look(rig->primary, rig->now_us);
            trace("%u %s: %s\n", i, late ? "10 ms" : "less", again ? "again" : "no");
            peer->ops = 0;
            peer->state = REP_PEER_ATTACHED;
            peer->restamp.busy = peer->flush.busy = false;
            leat_list_remove(&write.link);
            rig->call_count = 0;
            size_t used = trace_used;
            rig_free(rig);
            trace_text[trace_used = used] = '\0';
        }
    TRACE_IS("0 less: no\n"
             "0 10 ms: no\n"
             "1 less: again\n"
             "n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "1 10 ms: again\n"
             "2 less: again\n"
             "n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "2 10 ms: again\n"
             "3 less: again\n"
             "n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "3 10 ms: again\n"
             "4 less: again\n"
             "n2 ASK, 2 s\n"
             "4 10 ms: again\n"
             "5 less: again\n"
             "n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "5 10 ms: again\n"
             "6 less: no\n"
             "6 10 ms: no\n");
}

/* Goal: a hibernated head that lacks a copy is resumed to make a new copy once the time to wait for the lost node is
 * over, if a node can take the copy. An open head is not hibernated while it lacks a copy that can be made. */
static void head_is_wanted_for_a_copy_that_can_be_made(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct rig *rig = rig_begun(i == 7 ? 2 : 3);
        struct rep_set *set = rep_set_find(rig->log, 0);
        const struct leat_segment *head = &rig->segs[0];
        rig->quiet = true;
        rig_peer_down(rig, 1); /* its copy is lost, and node 3 may have one */
        rig_refuse(rig, i == 7 ? 2 : 3, i == 7 ? LEAT_REP_RESTAMP : LEAT_REP_OPEN, LEAT_E_AGAIN);
        while (set->copy_count > 1)
            rep_copy_remove(set->copies[1]);
        if (i != 8 && i != 9) set->state = REP_SET_HIBERNATED;
        set->lost_us = rig->now_us - 60 * 1000 * 1000 - (i == 6 ? 0 : 1);
        if (i == 1) set->state = REP_SET_RESERVED;
        if (i == 2) set->state = REP_SET_CLOSED;
        if (i == 3) set->dropping = true;
        if (i == 4) rig->log->releasing = true;
        if (i == 5) rig->log->fenced = true;
        if (i == 6) set->lost_us += 1000;
        if (i == 9) rig_peer_down(rig, 3);
        if (i == 10) set->copies[0]->incomplete = true;
        if (i == 11) rig->log->options.copies = 2;
        rig->quiet = false;
        trace("%u: %d\n", i, rig->store_port.copy_wanted(rig->store_port.ctx, head));
        rig->log->options.copies = 3;
        size_t used = trace_used;
        rig_free(rig);
        trace_text[trace_used = used] = '\0';
    }
    TRACE_IS("0: 1\n"
             "1: 0\n"
             "2: 0\n"
             "3: 0\n"
             "4: 0\n"
             "5: 0\n"
             "6: 0\n"
             "7: 1\n"
             "8: 1\n"
             "9: 0\n"
             "10: 1\n"
             "11: 0\n");
}

/* Goal: at most twenty hibernated heads are resumed in a second, and fewer where these have more bytes than closed
 * segments are copied at. */
static void heads_are_resumed_at_a_bounded_rate(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes;
        unsigned heads;
    } cases[] = {{128, 20}, {3 * 1024 * 1024, 20}, {8 * 1024 * 1024, 8}, {64 * 1024 * 1024, 1}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *rig = rig_begun(3);
        struct rep_set *set = rep_set_find(rig->log, 0);
        rig->quiet = true;
        rep_copy_remove(set->copies[0]);
        set->state = REP_SET_HIBERNATING;
        set->target = cases[i].bytes;
        rig->now_us += 100 * 1000 * 1000;
        for (unsigned second = 0; second < 2; second++) {
            unsigned heads = 0;
            while (heads < 100 && rig->store_port.copy_wanted(rig->store_port.ctx, &rig->segs[0]))
                heads++;
            assert_int_equal(heads, cases[i].heads);
            rig->now_us = rig->primary->wakes_at_us;
        }
        set->target = 128;
        rig_free(rig);
        trace_begin();
    }
}

/* Goal: a copy is lost if its backup, asked to confirm the copy, does not have it, whether the copy came back with its
 * node or was made here. Copies that the request drops or does not name are not lost by that answer. */
static void copy_that_its_backup_does_not_have_is_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig *rig = rig_begun(2);
        rig->quiet = true;
        rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
        rig_answer(rig, 1, LEAT_REP_CLOSE);
        rig_answer(rig, 2, LEAT_REP_CLOSE);
        rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
        struct rep_peer *peer = rig_peer(rig, 1);
        struct rep_set *set = rep_set_find(rig->log, 0);
        peer->settle_pairs[0] =
            (struct rep_pair){i == 2 ? 11 : 10, i == 3 ? REP_SETTLE_DROP : REP_SETTLE_KEEP, 0};
        peer->settle_count = 1;
        uint8_t control[64];
        struct leat_msg_writer writer;
        rep_audit_all(peer);
        rig_pass(rig, 20 * 1000);
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, 0);
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used); /* and it leaves */
        struct rep_pair refused = {10, (uint64_t)LEAT_E_NOT_FOUND, 0};
        rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, control,
                         rep_pairs_encode(&refused, i != 1, control, sizeof control));
        assert_int_equal(set->copy_count, i == 0 ? 1 : 2);
        rig_free(rig);
        trace_begin();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(bytes_go_ahead_only_where_all_copies_are_plain),
        TRACE_TEST(version_is_told_when_nothing_holds_it_back),
        TRACE_TEST(what_is_under_way_is_owed_an_answer),
        TRACE_TEST(head_is_wanted_for_a_copy_that_can_be_made),
        TRACE_TEST(heads_are_resumed_at_a_bounded_rate),
        TRACE_TEST(copy_that_its_backup_does_not_have_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
