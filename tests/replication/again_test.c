/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that a backup uses again: requests to its store, and writers' places. A backup alone, whose store, disk and
 * other nodes answer by hand. */
#include "tests/replication/pieces_rig.h"

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg, (void)seg;
    trace("adopted: %s\n", leat_err_name(rc));
}

static void on_flushed(void *arg, leat_err rc)
{
    (void)arg;
    trace("flushed: %s\n", leat_err_name(rc));
}

enum way {
    CLOSE,
    PART,
    HIBERNATE,
    COMPLETE,
    RESTAMP,
    FLUSH,
    SEAL,
    ADOPT,
    TAKE,
    DURABLE,
    CONFIRM,
    PULL,
    WAYS
};

/* false: that is not asked for in this way. */
static void begin(struct rig *rig, enum way way, struct leat_backup_pull *pull)
{
    uint32_t durability =
        way == FLUSH || way == DURABLE ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY;
    bool found = way == SEAL || way == ADOPT || way == CONFIRM;
    struct replica *rep = NULL;
    if (found) rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    if (!found && way < TAKE) rep = rig_open(rig, 7, durability, way == PART || way == COMPLETE);
    if (way == DURABLE) rep = rig_open(rig, 7, durability, false);
    struct rep_body body = rig_body(rig, rep ? rep->handle : 0, 7, 2);
    struct rep_pair pair = {rep ? rep->handle : 0, way == FLUSH ? rig->ends[2].bytes : 9, 0};
    static const unsigned kinds[] = {LEAT_REP_CLOSE, LEAT_REP_CLOSE, LEAT_REP_HIBERNATE,
                                     LEAT_REP_COMPLETE};
    if (way <= COMPLETE) rig_ask(rig, &rig_w1, kinds[way], &body);
    if (way == RESTAMP) rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
    if (way == FLUSH) rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
    if (way == SEAL) rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    if (way == ADOPT)
        (void)!leat_backup_adopt(rig->backup, rig_log, (struct leat_epoch){6}, rep->seg->id,
                                 rig->ends[2], 0, INT64_MIN, 9, on_adopted, NULL);
    if (way == TAKE) {
        struct leat_segment *seg = rig_segment(rig, 7);
        rig_image(rig, 7);
        seg->state = LEAT_SEGMENT_CLOSED;
        seg->prefix_id = rig->ends[3];
        assert_int_equal(leat_backup_take_own(rig->backup, seg, 3, false), LEAT_OK);
    }
    if (way == DURABLE)
        assert_int_equal(
            leat_backup_flush(rig->backup, rig_log, rep->seg->id, rig->ends[2], on_flushed, NULL),
            LEAT_OK);
    if (way == CONFIRM) {
        rep->seg->provisional = true;
        backup_confirm(rep, 0);
    }
    if (way == PULL) {
        rig_image(rig, 7);
        *pull = pull_of(rig);
        pull->node_count = 1;
        pull_start(rig, pull);
        piece(rig, LEAT_OK, 0, pull->prefix_id.bytes, 0);
    }
}

/* Goal: a request struct whose request has ended serves the next request, whatever the ended request was for and
 * however it ended. */
static void requests_that_ended_are_free(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        unsigned steps = 0;
        for (unsigned fails = 0; fails <= steps || fails == 0; fails++) {
            struct rig *rig = rig_ports();
            struct leat_backup_pull pull;
            size_t used = trace_used;
            begin(rig, (enum way)way, &pull);
            unsigned step = 1;
            for (; rig->req_count && step < 9; step++)
                rig_stored(rig, rig->reqs[0]->kind, step == fails ? LEAT_E_DISK : LEAT_OK);
            if (fails == 0) steps = step - 1;
            trace_text[trace_used = used] = '\0';
            trace("%d, %u fails: %u, ", way, fails, free_requests(rig));
            unsigned busy = 0;
            LEAT_LIST_EACH(&rig->backup->replicas, it)
            busy += LEAT_CONTAINER(it, struct replica, link)->busy;
            trace("%u busy\n", busy);
            rig_end(rig);
        }
    }
    TRACE_IS("0, 0 fails: 1, 0 busy\n"
             "0, 1 fails: 1, 0 busy\n"
             "1, 0 fails: 1, 0 busy\n"
             "1, 1 fails: 1, 0 busy\n"
             "1, 2 fails: 1, 0 busy\n"
             "2, 0 fails: 1, 0 busy\n"
             "2, 1 fails: 1, 0 busy\n"
             "3, 0 fails: 1, 0 busy\n"
             "3, 1 fails: 1, 0 busy\n"
             "4, 0 fails: 1, 0 busy\n"
             "4, 1 fails: 1, 0 busy\n"
             "5, 0 fails: 1, 0 busy\n"
             "5, 1 fails: 1, 0 busy\n"
             "6, 0 fails: 1, 0 busy\n"
             "6, 1 fails: 1, 0 busy\n"
             "7, 0 fails: 1, 0 busy\n"
             "7, 1 fails: 1, 0 busy\n"
             "7, 2 fails: 1, 0 busy\n"
             "8, 0 fails: 1, 0 busy\n"
             "8, 1 fails: 1, 0 busy\n"
             "9, 0 fails: 1, 0 busy\n"
             "9, 1 fails: 1, 0 busy\n"
             "10, 0 fails: 1, 0 busy\n"
             "10, 1 fails: 1, 0 busy\n"
             "11, 0 fails: 1, 0 busy\n"
             "11, 1 fails: 1, 0 busy\n"
             "11, 2 fails: 1, 0 busy\n"
             "11, 3 fails: 1, 0 busy\n");
}

/* Goal: a pull for which there is no memory leaves nothing. */
static void pull_without_memory_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 4; n++) {
        struct rig *rig = rig_ports();
        rig_image(rig, 7);
        struct leat_backup_pull pull = pull_of(rig);
        pull.node_count = 1;
        pull_start(rig, &pull);
        leat_mem_fail_at(n);
        piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
        leat_mem_fail_at(0);
        trace("%llu: %u free, %u replicas\n", (unsigned long long)n, free_requests(rig),
              rig->backup->replica_count);
        rig->req_count = 0;
        rig_end(rig);
    }
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: NO_MEMORY\n"
             "1: 0 free, 0 replicas\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: NO_MEMORY\n"
             "2: 1 free, 0 replicas\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: NO_MEMORY\n"
             "3: 1 free, 0 replicas\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: NO_MEMORY\n"
             "4: 1 free, 0 replicas\n");
}

/* Goal: a fenced writer goes with the last of its replicas, when its memory has gone. */
static void fenced_writer_goes_with_its_last_replica(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct backup_writer *writer = rep->writer;
    leat_backup_release(rig->backup, rig_w1.node, rig_w1.incarnation);
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_OK);
    assert_ptr_equal(backup_writer_find(rig->backup, "w1", 11), writer);
    world_run(rig->world, 300 * 1000); /* its memory has gone */
    assert_null(writer->rmem);
    assert_ptr_equal(backup_writer_find(rig->backup, "w1", 11), writer);
    unsigned before = rig->backup->writer_count;
    backup_drop(rep);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    assert_null(backup_writer_find(rig->backup, "w1", 11));
    assert_int_equal(rig->backup->writer_count, before - 1);
    trace_begin();
    rig_free(rig);
}

static const struct leat_link_identity w3 = {.node = "w3", .incarnation = 13, .cores = 1};

/* Goal: a writer for which the store had no memory goes when the writer is fenced, and its memory with it. */
static void writer_that_the_store_could_not_have_goes(void **state)
{
    (void)state;
    for (unsigned fenced_first = 0; fenced_first < 2; fenced_first++) {
        struct rig *rig = rig_new();
        unsigned before = rig->backup->writer_count;
        rig_hear(rig, &w3, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
        assert_int_equal(rig->backup->writer_count, before + 1);
        if (fenced_first) leat_backup_release(rig->backup, w3.node, w3.incarnation);
        leat_mem_fail_at(1);
        world_run(rig->world, 300 * 1000);
        leat_mem_fail_at(0);
        if (fenced_first)
            TRACE_IS("1: STALE_EPOCH\n");
        else
            TRACE_IS("1: NO_MEMORY\n");
        if (!fenced_first) leat_backup_release(rig->backup, w3.node, w3.incarnation);
        assert_null(backup_writer_find(rig->backup, w3.node, w3.incarnation));
        assert_int_equal(rig->backup->writer_count, before);
        rig_free(rig);
    }
}

/* Goal: a writer that is fenced before the store has taken its memory on is not asked of the store. */
static void writer_that_the_store_has_not_yet_waits(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    rig_hear(rig, &w3, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    struct backup_writer *writer = backup_writer_find(rig->backup, w3.node, w3.incarnation);
    leat_backup_release(rig->backup, w3.node, w3.incarnation);
    assert_true(writer->fenced && !writer->retiring && writer->rmem);
    world_run(rig->world, 300 * 1000);
    assert_null(backup_writer_find(rig->backup, w3.node, w3.incarnation));
    trace_begin();
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(requests_that_ended_are_free),
        TRACE_TEST(pull_without_memory_leaves_nothing),
        TRACE_TEST(fenced_writer_goes_with_its_last_replica),
        TRACE_TEST(writer_that_the_store_could_not_have_goes),
        TRACE_TEST(writer_that_the_store_has_not_yet_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
