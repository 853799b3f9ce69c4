/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other nodes write into: how much each writer gets, and when memory comes back, call by call. A backup
 * alone, whose host port answers by hand. */
#include "tests/replication/backup_rig.h"

enum { STEP = LEAT_ARENA_STEP_BYTES };

static struct {
    struct leat_rmem_host host;
    const struct leat_rmem_host *real;
    struct leat_rmem_grow *grow; /* under way */
    struct leat_rmem_arena *of;
    leat_err open_rc;
    bool told; /* of writers, by the coordinators */
    uint64_t less;
    char text[LEAT_ERROR_TEXT_BYTES]; /* of the last refusal */
} memory;

static leat_err host_open(void *ctx, const char *writer, uint64_t incarnation, uint64_t limit_bytes,
                          struct leat_rmem_arena **out_arena, struct leat_error *error)
{
    trace("open %s %llu up to %llu\n", writer, (unsigned long long)incarnation,
          (unsigned long long)(limit_bytes / STEP));
    if (memory.open_rc) return leat_error_set(error, memory.open_rc, "no");
    return memory.real->open(ctx, writer, incarnation, limit_bytes, out_arena, error);
}

static void host_grow(void *ctx, struct leat_rmem_arena *arena, struct leat_rmem_grow *grow)
{
    (void)ctx;
    trace("grow %s\n", arena->writer);
    assert_null(memory.grow);
    memory.grow = grow;
    memory.of = arena;
}

static void host_revoke(void *ctx, struct leat_rmem_arena *arena)
{
    trace("revoke %s\n", arena->writer);
    memory.real->revoke(ctx, arena);
}

static void host_retire(void *ctx, struct leat_rmem_arena *arena)
{
    trace("retire %s\n", arena->writer);
    memory.real->retire(ctx, arena);
}

static bool is_node(void *arg, const char *node, uint64_t incarnation)
{
    (void)arg, (void)node, (void)incarnation;
    return memory.told;
}

static uint64_t less_bytes(void *arg)
{
    (void)arg;
    return memory.less;
}

static void refuse(void *ctx, const struct leat_link_ticket *ticket, leat_err rc, const char *text)
{
    rig_refuse(ctx, ticket, rc, text);
    snprintf(memory.text, sizeof memory.text, "%s", text);
}

static struct rig *rig_memory(void)
{
    struct rig *rig = rig_new();
    struct leat_backup_options *options = &rig->backup->options;
    memset(&memory, 0, sizeof memory);
    options->net.refuse = refuse;
    memory.real = options->rmem;
    memory.told = true;
    memory.host = *memory.real;
    memory.host.open = host_open;
    memory.host.grow = host_grow;
    memory.host.revoke = host_revoke;
    memory.host.retire = host_retire;
    options->rmem = &memory.host;
    options->is_node = is_node;
    return rig;
}

static void grown(struct rig *rig, leat_err rc)
{
    struct leat_rmem_grow *grow = memory.grow;
    memory.grow = NULL;
    if (!rc) memory.of->grown_bytes += STEP;
    grow->rc = rc;
    if (rc) (void)leat_error_set(&grow->error, rc, "none is left");
    grow->on_grown(grow);
    world_run(rig->world, 50 * 1000);
}

static void attach(struct rig *rig, const char *node, uint64_t incarnation)
{
    struct leat_link_identity who = {.incarnation = incarnation, .cores = 1};
    snprintf(who.node, sizeof who.node, "%s", node);
    rig_hear(rig, &who, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    world_run(rig->world, 50 * 1000);
}

/* Goal: a node's first step is granted when it is there, to all of its cores that asked; what can't be is refused by
 * name. */
static void first_step_is_granted_to_all_who_asked(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    memory.told = false;
    attach(rig, "w3", 13);
    memory.told = true;
    memory.open_rc = LEAT_E_TOO_MANY;
    attach(rig, "w3", 13);
    memory.open_rc = LEAT_OK;
    leat_mem_fail_at(1);
    attach(rig, "w3", 13);
    leat_mem_fail_at(0);
    unsigned count = rig->backup->writer_count;
    rig->backup->writer_count = BACKUP_WRITERS_MAX;
    attach(rig, "w3", 13);
    rig->backup->writer_count = count;
    TRACE_IS("1: STARTING\n"
             "open w3 13 up to 2\n"
             "2: TOO_MANY\n"
             "3: NO_MEMORY\n"
             "4: TOO_MANY\n");
    attach(rig, "w3", 13);
    attach(rig, "w3", 13);
    TRACE_IS("open w3 13 up to 2\n"
             "grow w3\n");
    grown(rig, LEAT_OK);
    attach(rig, "w3", 13);
    TRACE_IS("1: answer\n"
             "2: answer\n"
             "3: answer\n");
    assert_int_equal(rig->backup->writer_count, count + 1);
    struct backup_writer *writer = backup_writer_find(rig->backup, "w3", 13);
    writer->ready = false;
    writer->attach_count = BACKUP_ATTACHES_MAX - 1;
    attach(rig, "w3", 13);
    assert_int_equal(writer->attach_count, BACKUP_ATTACHES_MAX);
    attach(rig, "w3", 13);
    TRACE_IS("1: AGAIN\n");
    writer->attach_count = 0;
    writer->failed = true;
    attach(rig, "w3", 13);
    TRACE_IS("1: NO_MEMORY\n");
    rig_free(rig);
}

/* Goal: a writer that gets no first step of memory is refused, each time until there is a step. */
static void writer_without_a_first_step_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    attach(rig, "w3", 13);
    grown(rig, LEAT_E_NO_MEMORY);
    struct backup_writer *writer = backup_writer_find(rig->backup, "w3", 13);
    assert_true(writer->starved && !writer->ready);
    attach(rig, "w3", 13);
    TRACE_IS("open w3 13 up to 2\n"
             "grow w3\n"
             "1: NO_MEMORY\n"
             "2: NO_MEMORY\n");
    rig_free(rig);
}

static void arena_on_grown(struct leat_arena_grow *grow)
{
    trace("grown: %s\n", leat_err_name(grow->rc));
}

static void fence_on_done(void *arg)
{
    (void)arg;
    trace("fence is over\n");
}

/* Goal: a writer without memory is told what helps only where the memory for all writers is taken; a failure of the
 * host is told as it is. */
static void refusal_names_a_remedy_only_where_it_helps(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    rig->backup->options.first_bytes_max = rig->backup->options.writers_bytes_max = 1;
    attach(rig, "w3", 13);
    assert_non_null(strstr(memory.text, "larger --memory"));
    memory.text[0] = '\0';
    attach(rig, "w3", 13); /* again, with nothing under way */
    assert_non_null(strstr(memory.text, "larger --memory"));
    rig->backup->options.first_bytes_max = rig->backup->options.writers_bytes_max = 0;
    attach(rig, "w4", 14);
    grown(rig, LEAT_E_NO_MEMORY);
    assert_non_null(strstr(memory.text, "none is left"));
    attach(rig, "w4", 14);
    assert_string_equal(memory.text, leat_err_text(LEAT_E_NO_MEMORY));
    rig->backup->options.first_bytes_max = rig->backup->options.writers_bytes_max = 1;
    backup_writer_find(rig->backup, "w3", 13)->fenced = true; /* its memory is on its way back */
    attach(rig, "w3", 13);
    assert_string_equal(memory.text, leat_err_text(LEAT_E_AGAIN));
    backup_writer_find(rig->backup, "w3", 13)->fenced = false;
    backup_writer_find(rig->backup, "w3", 13)->starved = false;
    backup_writer_find(rig->backup, "w3", 13)->failed = true;
    attach(rig, "w3", 13);
    assert_string_equal(memory.text, leat_err_text(LEAT_E_NO_MEMORY));
    TRACE_IS("open w3 13 up to 2\n"
             "1: NO_MEMORY\n"
             "2: NO_MEMORY\n"
             "open w4 14 up to 2\n"
             "grow w4\n"
             "3: NO_MEMORY\n"
             "4: NO_MEMORY\n"
             "5: AGAIN\n"
             "6: NO_MEMORY\n");
    rig_free(rig);
}

/* Goal: a writer that has memory and gets no more of it keeps what it has: its next session is granted, also when the
 * coordinators don't name its node any more. */
static void writer_that_gets_no_more_keeps_its_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    struct backup_writer *writer = backup_writer_find(rig->backup, "w1", 11);
    struct leat_arena_grow grow = {.on_grown = arena_on_grown};
    rig->backup->options.writers_bytes_max = 1;
    writer->arena.grow(writer->arena.ctx, &grow);
    world_run(rig->world, 50 * 1000);
    assert_int_equal(grow.rc, LEAT_E_NO_MEMORY);
    memory.told = false;
    attach(rig, "w1", 11);
    TRACE_IS("grown: NO_MEMORY\n"
             "3: answer\n");
    rig_free(rig);
}

/* Goal: a fenced writer that the coordinators never named is told of the fence, which is for good. */
static void fenced_writer_is_told_of_its_fence(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    memory.told = false;
    assert_int_equal(leat_backup_fence(rig->backup, "w3", 13, fence_on_done, NULL), LEAT_OK);
    world_run(rig->world, 1000);
    attach(rig, "w3", 13);
    TRACE_IS("fence is over\n"
             "3: STALE_EPOCH\n");
    rig_free(rig);
}

/* Goal: a writer that is released while its memory grows stays until the growth has ended. */
static void writer_stays_while_its_memory_grows(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    struct leat_arena_grow grow = {.on_grown = arena_on_grown};
    struct backup_writer *writer = backup_writer_find(rig->backup, "w2", 12);
    writer->arena.grow(writer->arena.ctx, &grow);
    world_run(rig->world, 1000);
    leat_backup_release(rig->backup, "w2", 12);
    world_run(rig->world, 50 * 1000);
    assert_ptr_equal(backup_writer_find(rig->backup, "w2", 12), writer);
    TRACE_IS("grow w2\n"
             "revoke w2\n"
             "retire w2\n");
    writer->grow.rc = LEAT_E_CLOSED;
    memory.grow = NULL;
    writer->grow.on_grown(&writer->grow);
    world_run(rig->world, 50 * 1000);
    TRACE_IS("grown: CLOSED\n");
    rig_free(rig);
}

static const struct {
    unsigned own, other, fenced, most, first, less;
    bool growing; /* the other, a step */
    bool lives;   /* the fenced writer is none */
    bool alone;   /* nothing else uses the memory */
} shares[] = {
    {0, 0, 0, 1, 0, 0, false, false, false}, {0, 1, 0, 1, 0, 0, false, false, false},
    {0, 1, 0, 2, 0, 0, false, false, false}, {0, 1, 0, 2, 0, 0, true, false, false},
    {0, 1, 0, 1, 3, 0, true, false, false},  {0, 1, 9, 2, 0, 0, false, false, false},
    {0, 2, 0, 1, 2, 0, false, false, false}, {1, 0, 0, 4, 0, 0, false, false, false},
    {2, 0, 0, 4, 0, 0, false, false, false}, {1, 3, 0, 4, 0, 0, false, false, false},
    {1, 2, 0, 4, 0, 0, false, false, false}, {1, 2, 0, 4, 0, 0, true, false, false},
    {1, 0, 2, 4, 0, 0, false, false, false}, {1, 0, 3, 4, 0, 0, false, false, false},
    {1, 0, 0, 4, 0, 1, false, false, false}, {1, 0, 0, 5, 0, 1, false, false, false},
    {1, 0, 0, 4, 0, 9, false, false, false}, {9, 9, 9, 0, 0, 0, false, false, false},
    {1, 0, 1, 4, 0, 0, false, true, false},  {1, 0, 1, 6, 0, 0, false, true, false},
    {1, 0, 0, 4, 0, 0, false, false, true},
};

/* Goal: how many steps of memory each writer may have out of the steps for all writers: the writer's own steps count,
 * the steps of other writers, the steps of a fenced writer, and the steps under way. A writer without memory, as its
 * replicas leave it, has no part; from the third writer on each has a smaller share. */
static void share_of_each_follows_from_what_all_have(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    struct backup_writer *own = backup_writer_find(rig->backup, "w1", 11);
    struct backup_writer *other = backup_writer_find(rig->backup, "w2", 12);
    struct leat_rmem_arena gone = {.writer = "gone"};
    struct backup_writer fenced = {.backup = rig->backup, .rmem = &gone, .fenced = true};
    struct backup_writer bare = {.backup = rig->backup, .fenced = true};
    leat_list_push_back(&rig->backup->writers, &fenced.link);
    leat_list_push_back(&rig->backup->writers, &bare.link);
    uint64_t own_had = own->rmem->grown_bytes, other_had = other->rmem->grown_bytes;
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct leat_arena_grow grow = {.on_grown = NULL};
        rig->backup->options.writers_bytes_max = (uint64_t)shares[i].most * STEP;
        rig->backup->options.first_bytes_max = (uint64_t)shares[i].first * STEP;
        memory.less = (uint64_t)shares[i].less * STEP;
        own->rmem->grown_bytes = (uint64_t)shares[i].own * STEP;
        other->rmem->grown_bytes = (uint64_t)shares[i].other * STEP;
        gone.grown_bytes = (uint64_t)shares[i].fenced * STEP;
        other->grow.on_grown = shares[i].growing ? (void (*)(struct leat_rmem_grow *))1 : NULL;
        own->ready = true;
        fenced.fenced = !shares[i].lives;
        rig->backup->options.less_bytes = shares[i].alone ? NULL : less_bytes;
        trace("own %u other %u%s %s %u of %u, first %u, less %u: ", shares[i].own, shares[i].other,
              shares[i].growing ? "+1" : "", shares[i].lives ? "third" : "fenced", shares[i].fenced,
              shares[i].most, shares[i].first, shares[i].less);
        own->growing = &grow;
        own->grow_mail.deliver = NULL;
        own->arena.grow(own->arena.ctx, &grow);
        own->grow_mail.deliver(NULL, &own->grow_mail);
        if (!memory.grow) trace("no\n");
        memory.grow = NULL;
        own->growing = NULL;
        own->grow.on_grown = NULL;
        rig->world->nodes[1].disk.event_count = 0; /* the mails of it */
    }
    TRACE_IS("own 0 other 0 fenced 0 of 1, first 0, less 0: grow w1\n"
             "own 0 other 1 fenced 0 of 1, first 0, less 0: no\n"
             "own 0 other 1 fenced 0 of 2, first 0, less 0: grow w1\n"
             "own 0 other 1+1 fenced 0 of 2, first 0, less 0: no\n"
             "own 0 other 1+1 fenced 0 of 1, first 3, less 0: grow w1\n"
             "own 0 other 1 fenced 9 of 2, first 0, less 0: grow w1\n"
             "own 0 other 2 fenced 0 of 1, first 2, less 0: no\n"
             "own 1 other 0 fenced 0 of 4, first 0, less 0: grow w1\n"
             "own 2 other 0 fenced 0 of 4, first 0, less 0: no\n"
             "own 1 other 3 fenced 0 of 4, first 0, less 0: no\n"
             "own 1 other 2 fenced 0 of 4, first 0, less 0: grow w1\n"
             "own 1 other 2+1 fenced 0 of 4, first 0, less 0: no\n"
             "own 1 other 0 fenced 2 of 4, first 0, less 0: grow w1\n"
             "own 1 other 0 fenced 3 of 4, first 0, less 0: no\n"
             "own 1 other 0 fenced 0 of 4, first 0, less 1: no\n"
             "own 1 other 0 fenced 0 of 5, first 0, less 1: grow w1\n"
             "own 1 other 0 fenced 0 of 4, first 0, less 9: no\n"
             "own 9 other 9 fenced 9 of 0, first 0, less 0: grow w1\n"
             "own 1 other 0 third 1 of 4, first 0, less 0: no\n"
             "own 1 other 0 third 1 of 6, first 0, less 0: grow w1\n"
             "own 1 other 0 fenced 0 of 4, first 0, less 0: grow w1\n");
    leat_list_remove(&fenced.link);
    leat_list_remove(&bare.link);
    own->rmem->grown_bytes = own_had;
    other->rmem->grown_bytes = other_had;
    other->grow.on_grown = NULL;
    rig_free(rig);
}

/* Goal: the memory of a node that has gone is revoked at once, and given back when it has no replica. */
static void memory_of_who_has_gone_comes_back(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    const struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    leat_backup_release(rig->backup, "w1", 10); /* an incarnation before */
    leat_backup_release(rig->backup, "w2", 12);
    world_run(rig->world, 1000);
    TRACE_IS("revoke w2\n"
             "retire w2\n");
    assert_null(backup_writer_find(rig->backup, "w2", 12));
    leat_backup_release(rig->backup, "w1", 11);
    world_run(rig->world, 1000);
    TRACE_IS("revoke w1\n"
             "store MOVE s7\n");
    attach(rig, "w1", 11); /* it comes after all, and its memory is not back yet */
    TRACE_IS("1: AGAIN\n");
    rig_stored(rig, LEAT_STORE_MOVE, LEAT_OK);
    world_run(rig->world, 1000);
    TRACE_IS("retire w1\n");
    assert_int_equal(rep->busy, 0);
    rig_free(rig);
}

/* ---- words about whole logs ---- */

/* Goal: an owner that has all of a log lets its replicas go, but what a later owner counts on, and what it is not sure
 * of. */
static void owner_that_has_all_of_its_log_lets_replicas_go(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    struct leat_log_ref other = rig_log;
    other.log++;
    for (uint64_t id = 1; id <= 6; id++)
        (void)rig_found(rig, id, LEAT_SEGMENT_CLOSED, 3);
    rig_replica(rig, 2)->owner_epoch.v = 6;
    rig_replica(rig, 3)->owner_epoch.v = 7;
    rig_replica(rig, 6)->seg->log = other; /* of another log in its bucket */
    struct leat_segment_range unsure = {.first = 4, .end = 5};
    leat_backup_drop_log(rig->backup, rig_log, (struct leat_epoch){6}, &unsure);
    TRACE_IS("store DROP s1\n"
             "store DROP s2\n"
             "store DROP s5\n");
    assert_true(rig_replica(rig, 1)->drop_wanted && !rig_replica(rig, 3)->drop_wanted);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_E_DISK); /* it stays, and stays known */
    assert_true(rig_replica(rig, 1)->damaged && !rig_replica(rig, 1)->dropping);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    assert_null(rig_replica(rig, 2));
    assert_int_equal(rig->backup->replica_count, 5);
    rig_free(rig);
}

/* Goal: a backup for whose tables there is no memory is none. */
static void backup_without_memory_is_none(void **state)
{
    (void)state;
    struct rig *rig = rig_memory();
    const struct leat_backup_options options = rig->backup->options;
    size_t before = leat_mem_bytes(LEAT_MEM_STORE);
    unsigned fails = 0;
    for (;; fails++) {
        struct leat_backup *backup = NULL;
        leat_mem_fail_at(fails + 1);
        leat_err rc = leat_backup_create(&options, &backup);
        leat_mem_fail_at(0);
        if (!rc) {
            assert_int_equal(backup->options.unflushed_seconds, 10);
            leat_backup_destroy(&backup);
            break;
        }
        assert_int_equal(rc, LEAT_E_NO_MEMORY);
        assert_null(backup);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    }
    assert_int_equal(fails, 4);
    struct leat_segment *seg = rig_segment(rig, 7);
    struct leat_found found = {.kind = LEAT_FOUND_LOST, .seg = seg};
    leat_mem_fail_at(1);
    assert_int_equal(leat_backup_take_found(rig->backup, &found), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(rig->backup->replica_count, 0);
    assert_int_equal(leat_backup_take_found(rig->backup, &found), LEAT_OK);
    assert_true(rig_replica(rig, 7)->damaged);
    rig_free(rig);
}

static void replica_on_fence(void *arg, const struct leat_replica_info *info)
{
    (void)arg;
    trace("s%llu is a replica\n", (unsigned long long)info->segment.v);
}

static void on_fenced_look(void *arg)
{
    trace("fenced\n");
    leat_backup_each(arg, NULL, false, replica_on_fence, NULL);
}

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    trace("adopted: %s s%llu\n", leat_err_name(rc), (unsigned long long)seg->id.v);
}

/* Goal: a fence that waits for a replica that a log of this node is adopting ends with the adoption, and finds no
 * replica then. */
static void fence_amid_an_adoption_ends_with_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    (void)rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    leat_err rc =
        leat_backup_adopt(rig->backup, rig_log, (struct leat_epoch){6}, (struct leat_segment_id){7},
                          rig->ends[1], 0, INT64_MIN, 9, on_adopted, NULL);
    assert_int_equal(rc, LEAT_OK);
    rc = leat_backup_fence(rig->backup, "w1", 11, on_fenced_look, rig->backup);
    assert_int_equal(rc, LEAT_OK);
    world_run(rig->world, 100 * 1000);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    TRACE_IS("store HIBERNATE s7 456:1\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "store STAMP s7 v1 role 0 writer 0\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("fenced\n"
             "adopted: OK s7\n");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(first_step_is_granted_to_all_who_asked),
        TRACE_TEST(writer_without_a_first_step_is_refused),
        TRACE_TEST(refusal_names_a_remedy_only_where_it_helps),
        TRACE_TEST(writer_that_gets_no_more_keeps_its_memory),
        TRACE_TEST(fenced_writer_is_told_of_its_fence),
        TRACE_TEST(writer_stays_while_its_memory_grows),
        TRACE_TEST(share_of_each_follows_from_what_all_have),
        TRACE_TEST(memory_of_who_has_gone_comes_back),
        TRACE_TEST(owner_that_has_all_of_its_log_lets_replicas_go),
        TRACE_TEST(backup_without_memory_is_none),
        TRACE_TEST(fence_amid_an_adoption_ends_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
