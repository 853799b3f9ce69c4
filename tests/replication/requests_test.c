/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about replicas that are being opened, adopted or dropped; which owner may send these requests; and what the
 * requests cost. A backup alone, whose store answers by hand. */
#include "tests/replication/backup_rig.h"

static const unsigned kinds[] = {LEAT_REP_RESTAMP, LEAT_REP_FLUSH};

/* Goal: nothing more is begun with a replica that is to go, though nothing is under way with it yet. */
static void replica_that_is_to_go_is_not_used(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_DISK, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    struct rep_pair pair = {rep->handle, rig->ends[2].bytes, 0};
    requests_forget(rig);
    leat_mem_fail_at(1);
    backup_drop(rep); /* there is no memory to ask the store */
    leat_mem_fail_at(0);
    assert_true(rep->drop_wanted && !rep->busy);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    for (unsigned i = 0; i < 2; i++)
        rig_ask_rows(rig, &rig_w1, kinds[i], &pair, 1);
    TRACE_IS("1: AGAIN\n"
             "2: answer h1=AGAIN\n"
             "3: answer h1=AGAIN\n");
    rig_free(rig);
}

/* Goal: requests about a replica that is still being opened are refused. */
static void replica_that_is_being_opened_is_not_used(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 2);
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    body.handle = LEAT_CONTAINER(rig->backup->replicas.prev, struct replica, link)->handle;
    trace_begin();
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    for (unsigned i = 0; i < 2; i++)
        rig_ask_rows(rig, &rig_w1, kinds[i], &(struct rep_pair){body.handle, 1, 0}, 1);
    TRACE_IS("1: NOT_FOUND\n"
             "2: answer h1=NOT_FOUND\n"
             "3: answer h1=NOT_FOUND\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: a request without an owner's epoch is not of an earlier owner. A node other than the writer may have a replica
 * dropped; the place then stays the writer's. */
static void owner_of_the_past_is_one_that_says_so(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    rep->owner_epoch.v = RIG_EPOCH;
    body.owner.v = RIG_EPOCH - 1;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_ask(rig, &rig_w2, LEAT_REP_DROP, &body);
    body.owner.v = 0;
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_E_DISK);
    body.owner.v = RIG_EPOCH;
    rig_ask(rig, &rig_w2, LEAT_REP_HIBERNATE, &body);
    rig_ask(rig, &rig_w2, LEAT_REP_DROP, &body);
    TRACE_IS("1: STALE_EPOCH\n"
             "2: STALE_EPOCH\n"
             "store HIBERNATE s7 656:1\n"
             "3: DISK\n"
             "4: STALE_EPOCH\n"
             "store DROP s7 leave\n"
             "5: answer\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: a request of its writer confirms a replica. */
static void word_of_its_writer_confirms_a_replica(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_pair pair = {rep->handle, 2, 0};
    rep->settled = false;
    rig_ask_rows(rig, &rig_w2, LEAT_REP_RESTAMP, &pair, 1);
    assert_false(rep->settled);
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    assert_true(rep->settled);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("1: answer h1=STALE_EPOCH\n"
             "store STAMP s7 v2 role 1 writer 11\n"
             "2: answer h1=OK\n");
    rig_free(rig);
}

/* Goal: a copy that is closed, and called whole after that, is on the disk with its closing already. */
static void copy_of_level_disk_is_on_it_once_it_is_closed(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_DISK, true);
    struct rep_body body = rig_body(rig, rep->handle, 7, 3);
    rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
    assert_int_equal(rep->flushed, 0);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    assert_int_equal(rep->flushed, rig->ends[3].bytes);
    assert_true(rep->seg->incomplete);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    assert_false(rep->seg->incomplete);
    trace_begin();
    rig_free(rig);
}

/* Goal: RESUME of a hibernated replica succeeds only where the store has memory of the replica's writer. */
static void replica_goes_on_where_its_writer_has_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    trace_begin();
    void *at_store = rep->writer->at_store;
    rep->writer->at_store = NULL;
    rig_ask(rig, &rig_w1, LEAT_REP_RESUME, &body);
    rep->writer->at_store = at_store;
    TRACE_IS("1: INVALID\n");
    rig_free(rig);
}

/* Goal: a request that can't be begun, for lack of memory or because it makes no sense, is refused and costs
 * nothing. */
static void request_that_is_not_begun_costs_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    requests_forget(rig);
    leat_mem_fail_at(1);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    leat_mem_fail_at(0);
    assert_int_equal(rep->busy, 0);
    size_t bytes = 0;
    for (unsigned i = 0; i < 3; i++) {
        rig_ask(rig, &rig_w1, LEAT_REP_RESUME, &body); /* it is not hibernated */
        if (i == 0) bytes = leat_mem_bytes(LEAT_MEM_STORE);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), bytes);
    }
    TRACE_IS("1: NO_MEMORY\n"
             "2: INVALID\n"
             "3: INVALID\n"
             "4: INVALID\n");
    rig_free(rig);
}

static bool gone(void *arg, uint32_t stream)
{
    (void)arg;
    return stream == rig_log.stream;
}

/* Goal: a replica that a log of this node is about to adopt stays, though its stream was deleted: the log that adopts
 * the replica finds the deletion out. */
static void replica_that_is_being_adopted_does_not_go_with_its_stream(void **state)
{
    (void)state;
    for (unsigned adopting = 0; adopting < 2; adopting++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
        rig->backup->options.stream_deleted = gone;
        rep->opened_us = rep->gone_us = 0;
        rep->adopting = adopting;
        world_run(rig->world, BACKUP_GONE_US + 1000);
        rig_audit(rig, 0, true);
        assert_int_equal(rep->drop_wanted, !adopting);
        rep->adopting = false;
        rig->req_count = 0;
        trace_begin();
        rig_free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(replica_that_is_to_go_is_not_used),
        TRACE_TEST(replica_that_is_being_opened_is_not_used),
        TRACE_TEST(owner_of_the_past_is_one_that_says_so),
        TRACE_TEST(word_of_its_writer_confirms_a_replica),
        TRACE_TEST(copy_of_level_disk_is_on_it_once_it_is_closed),
        TRACE_TEST(replica_goes_on_where_its_writer_has_memory),
        TRACE_TEST(request_that_is_not_begun_costs_nothing),
        TRACE_TEST(replica_that_is_being_adopted_does_not_go_with_its_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
