/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: which incarnations are refused from then on, and what becomes of the replicas of a writer that is fenced. A
 * backup alone, whose store answers by hand. */
#include "tests/replication/backup_rig.h"

static void on_fenced(void *arg)
{
    (*(unsigned *)arg)++;
}

static void fence(struct rig *rig, const char *node, uint64_t incarnation, unsigned *done)
{
    assert_int_equal(leat_backup_fence(rig->backup, node, incarnation, on_fenced, done), LEAT_OK);
}

/* Goal: a fence covers an incarnation of a node and all earlier incarnations: a later fence raises it, an earlier fence
 * lowers nothing, and no other node is affected. */
static void fence_is_for_a_node_up_to_an_incarnation(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    unsigned done = 0;
    const struct {
        const char *node;
        uint64_t incarnation;
    } fences[] = {{"w1", 7}, {"w3", 20}, {"w1", 9}, {"w1", 8}, {"w4", 3}};
    for (unsigned i = 0; i < 5; i++)
        fence(rig, fences[i].node, fences[i].incarnation, &done);
    world_run(rig->world, 1000);
    assert_int_equal(done, 5);
    assert_int_equal(rig->backup->fenced_count, 3);
    const struct {
        const char *node;
        uint64_t incarnation;
        bool fenced;
    } asked[] = {{"w1", 7, true},  {"w1", 9, true},   {"w1", 10, false}, {"w2", 1, false},
                 {"w3", 20, true}, {"w3", 21, false}, {"w4", 3, true},   {"w4", 4, false}};
    for (unsigned i = 0; i < 8; i++)
        if (backup_is_fenced(rig->backup, asked[i].node, asked[i].incarnation) != asked[i].fenced)
            fail_msg("%s in incarnation %u", asked[i].node, (unsigned)asked[i].incarnation);
    rig_free(rig);
}

/* Goal: as many nodes are remembered as there is room for; one more changes nothing of the others. */
static void fences_end_with_their_table(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct leat_backup *backup = rig->backup;
    unsigned done = 0;
    char node[16];
    for (unsigned i = 0; i <= BACKUP_FENCED_MAX; i++) {
        snprintf(node, sizeof node, "x%u", i);
        fence(rig, node, 5, &done);
    }
    assert_int_equal(backup->fenced_count, BACKUP_FENCED_MAX);
    assert_true(backup_is_fenced(backup, "x0", 5));
    snprintf(node, sizeof node, "x%u", BACKUP_FENCED_MAX - 1);
    assert_true(backup_is_fenced(backup, node, 5));
    assert_false(backup_is_fenced(backup, "w1", 5)); /* a sanitizer sees a look behind the table */
    world_run(rig->world, 1000);
    assert_int_equal(done, BACKUP_FENCED_MAX + 1);
    rig_free(rig);
}

/* Goal: each fence is answered once no write into any replica of its writer can land, and so are all requests that wait
 * for it. */
static void fences_wait_for_replicas_to_move(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    unsigned done = 0;
    assert_ptr_equal(backup_find(rig->backup, rep->handle), rep);
    assert_null(backup_find(rig->backup, rig->backup->slot_count + 1)); /* behind the table */
    fence(rig, "w1", 11, &done);
    fence(rig, "w1", 11, &done);
    fence(rig, "w3", 5, &done);
    world_run(rig->world, 1000);
    assert_int_equal(done, 0);
    assert_true(rep->busy);
    TRACE_IS("store MOVE s7\n");
    size_t bytes = leat_mem_bytes(LEAT_MEM_STORE);
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_OK);
    assert_int_equal(done, 3);
    assert_false(rep->damaged || rep->move_wanted);
    assert_true(leat_mem_bytes(LEAT_MEM_STORE) < bytes); /* the fences' */
    assert_int_not_equal(free_requests(rig), 0);
    rig_free(rig);
}

/* Goal: a replica with its bytes in a file, or a closed replica, is neither moved nor called corrupt; a replica that
 * can't be moved is corrupt. */
static void fence_moves_what_lies_in_its_writers_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
        uint8_t *buffer = rep->seg->buffer;
        if (i == 1) rep->seg->state = LEAT_SEGMENT_HIBERNATED, rep->seg->buffer = NULL;
        if (i == 2) rep->seg->state = LEAT_SEGMENT_CLOSED;
        requests_forget(rig);
        if (i == 3) leat_mem_fail_at(1);
        leat_backup_release(rig->backup, rig_w1.node, rig_w1.incarnation);
        leat_mem_fail_at(0);
        trace("%u:%s\n", i, rep->damaged ? " damaged" : "");
        assert_false(rep->settled); /* its owner's word counts no more */
        rig->req_count = 0;
        rep->busy = 0;
        rep->seg->buffer = buffer;
        rig_free(rig);
    }
    TRACE_IS("store MOVE s7\n"
             "0:\n"
             "1:\n"
             "2:\n"
             "3: damaged\n");
}

static bool gone(void *arg, uint32_t stream)
{
    (void)arg;
    return stream == rig_log.stream;
}

/* Goal: a deleted stream's replica in its writer's memory goes with the writer, and is not moved first. */
static void fence_lets_go_what_is_of_a_deleted_stream(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    rig->backup->options.stream_deleted = gone;
    leat_backup_release(rig->backup, rig_w1.node, rig_w1.incarnation);
    assert_true(rep->dropping);
    TRACE_IS("store DROP s7\n");
    rig->req_count = 0;
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(fence_is_for_a_node_up_to_an_incarnation),
        TRACE_TEST(fences_end_with_their_table),
        TRACE_TEST(fences_wait_for_replicas_to_move),
        TRACE_TEST(fence_moves_what_lies_in_its_writers_memory),
        TRACE_TEST(fence_lets_go_what_is_of_a_deleted_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
