/* SPDX-License-Identifier: Apache-2.0 */
/* Whose word decides about a replica, on the world of world.h: the owner's of now, not one of the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replication/asks.h"

static struct world *closed_segments(uint64_t seed, unsigned nodes, unsigned copies)
{
    struct world *world = world_new(seed, nodes, copies, 1, LEAT_DURABILITY_MEMORY, 0);
    for (unsigned i = 0; i < 200; i++)
        for (unsigned tries = 0; !world_append(&world->logs[0], 3000) && tries < 200000; tries++) {
            world_step(world);
            world_care(world);
        }
    world_run(world, 4 * 1000 * 1000);
    assert_true(world_is_whole(world));
    return world;
}

/* Closed ones. */
static uint32_t replicas(const struct world *world, unsigned node)
{
    struct leat_backup_status status;
    leat_backup_status(world->nodes[node].backup, &status);
    return status.replicas - status.replicas_open - status.replicas_hibernated;
}

/* A closed copy on that node. */
static struct rep_copy *copy_on(const struct world *world, unsigned node)
{
    const struct leat_list *head = &world->logs[0].rep->settled;
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        for (unsigned i = 0; i < set->copy_count; i++)
            if (set->copies[i]->peer->node.number == node) return set->copies[i];
    }
    return NULL;
}

/* `who` says that. Its answer goes nowhere. */
static void say_of(struct world *world, unsigned node, const struct leat_link_identity *who,
                   uint64_t handle, enum rep_settle word, uint64_t epoch)
{
    struct rep_pair pair = {handle, word + REP_SETTLE_WORDS * epoch, 0};
    uint8_t control[64];
    struct leat_frame frame = {.kind = LEAT_REP_SETTLE, .control = control};
    frame.control_bytes = rep_pairs_encode(&pair, 1, control, sizeof control);
    request_of(world, node, who, &frame);
}

/* The owner of all logs says that. */
static void say(struct world *world, unsigned node, uint64_t handle, enum rep_settle word,
                uint64_t epoch)
{
    struct leat_link_identity who = {
        .node = "n0", .incarnation = world->nodes[0].incarnation, .cores = 1};
    say_of(world, node, &who, handle, word, epoch);
}

/* Goal: a late request of an earlier owner does not drop a replica that a later owner counts on. */
static void word_of_an_owner_of_the_past_drops_nothing(void **state)
{
    (void)state;
    struct world *world = closed_segments(31, 3, 3);
    uint64_t handle = copy_on(world, 1)->handle;
    uint32_t before = replicas(world, 1);
    say(world, 1, handle, REP_SETTLE_DROP, WORLD_EPOCH - 1); /* of before the one who made it */
    assert_int_equal(replicas(world, 1), before);
    say(world, 1, handle, REP_SETTLE_KEEP, WORLD_EPOCH + 1);
    say(world, 1, handle, REP_SETTLE_DROP, WORLD_EPOCH);
    assert_int_equal(replicas(world, 1), before);
    const struct leat_segment_range none = {0, 0};
    leat_backup_drop_log(world->nodes[1].backup, world->logs[0].ref,
                         (struct leat_epoch){WORLD_EPOCH}, &none);
    world_run(world, 200 * 1000);
    assert_int_equal(replicas(world, 1), 1);
    say(world, 1, handle, REP_SETTLE_DROP, WORLD_EPOCH + 1);
    assert_int_equal(replicas(world, 1), 0);
    world_free(world);
}

/* Goal: a copy that another owner has dropped while this owner's KEEP was under way does not count: the copy is made
 * again. */
static void copy_that_goes_before_its_backup_hears_is_made_anew(void **state)
{
    (void)state;
    struct world *world = closed_segments(32, 3, 3);
    world->primary->options.grace_us = 0;
    world->message_us_max = 20 * 1000;
    world_link_cut(world, 1);
    struct rep_copy *copy = NULL;
    for (unsigned i = 0; i < 1000000 && !(copy && copy->found); i++) {
        world_step(world);
        copy = copy_on(world, 1);
    }
    assert_true(copy && copy->found);
    uint64_t recopied = world->primary->accounts.recopied_bytes;
    say(world, 1, copy->handle, REP_SETTLE_DROP, WORLD_EPOCH);
    world_run(world, 60 * 1000 * 1000);
    assert_true(world->primary->accounts.recopied_bytes > recopied);
    assert_true(world_is_whole(world));
    copy = copy_on(world, 1);
    assert_true(copy && !copy->found);
    world_free(world);
}

/* Goal: a copy that its backup finds corrupt no longer counts: another copy is made, at the rate of all such copies,
 * and the corrupt copy goes when that is done. */
static void copy_that_rots_is_made_anew(void **state)
{
    (void)state;
    struct world *world = closed_segments(33, 4, 3);
    struct leat_primary_status status;
    struct leat_backup *backup = world->nodes[1].backup;
    world->primary->options.audit_us = 30 * 1000 * 1000; /* as usual */
    uint64_t handle = copy_on(world, 1)->handle;
    uint64_t recopied = world->primary->accounts.recopied_bytes;
    leat_backup_on_damaged(backup, backup_find(backup, handle)->seg);
    bool seen = false;
    for (unsigned i = 0; i < 400 && !seen; i++) {
        world_run(world, 100 * 1000);
        leat_primary_status(world->primary, &status);
        seen = status.segments_under_replicated == 1;
    }
    assert_true(seen);
    assert_non_null(backup_find(backup, handle)); /* before there is another */
    /* The one that goes waits for no audit but that which follows. */
    world_run(world, 10 * 1000 * 1000);
    assert_true(world->primary->accounts.recopied_bytes > recopied);
    assert_true(world_is_whole(world));
    assert_null(backup_find(backup, handle));
    leat_primary_status(world->primary, &status);
    assert_int_equal(status.segments_under_replicated, 0);
    world_free(world);
}

static void on_evicted(struct leat_store_req *req)
{
    (void)req;
}

/* The owner has its closed segments in files alone. */
static void owner_evicts(struct world *world)
{
    enum { SEGMENTS_MAX = 64 };
    static struct leat_store_req reqs[SEGMENTS_MAX];
    const struct leat_list *head = &world->logs[0].rep->settled;
    const struct world_node *owner = &world->nodes[0];
    unsigned count = 0;
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        assert_true(set->seg->flushed && count < SEGMENTS_MAX);
        reqs[count] = (struct leat_store_req){
            .kind = LEAT_STORE_EVICT, .seg = set->seg, .on_done = on_evicted, .owner = world};
        owner->store_port.request(owner->store_port.ctx, owner->env.post, &reqs[count++]);
    }
    world_run(world, 100 * 1000);
}

/* Until a piece of a closed segment is being read from the owner's file for another copy. */
static struct rep_copy *piece_being_read(struct world *world)
{
    struct leat_primary *primary = world->primary;
    for (unsigned i = 0; i < 1000000 && !(primary->reading && primary->read_copy); i++)
        world_step(world);
    assert_true(primary->reading && primary->read_copy);
    return primary->read_copy;
}

/* Goal: a piece that was read for a copy which is lost meanwhile is not written to the next one, of which nobody knows
 * yet where it lies: the beginning of its node's arena belongs to another replica. */
static void piece_for_a_lost_copy_is_not_written_to_the_next(void **state)
{
    (void)state;
    unsigned met = 0;
    for (uint64_t seed = 41; seed < 61; seed++) {
        struct world *world = closed_segments(seed, 6, 3);
        struct leat_primary *primary = world->primary;
        primary->options.grace_us = 0;
        owner_evicts(world);
        world_node_kill(world, 1, false);
        struct rep_copy *copy = piece_being_read(world);
        world->message_us_max = 100 * 1000; /* the next one's answer takes longer than the read */
        rep_copy_lost(copy);
        for (unsigned i = 0; i < 10000 && primary->reading; i++) {
            if (!primary->recopy) rep_recopy_step(primary, world->now_us);
            if (primary->recopy && primary->recopy_copy->state != REP_COPY_OPEN) met++;
            world_step(world);
        }
        world_check(world);
        world_free(world);
    }
    assert_int_not_equal(met, 0);
}

/* Goal: an owner that has asked for another owner sends no more requests about replicas. The same replicas are dropped
 * where it has not asked. */
static void owner_that_gives_its_log_away_drops_nothing(void **state)
{
    (void)state;
    for (unsigned silent = 0; silent < 2; silent++) {
        struct world *world = closed_segments(33, 4, 2);
        world->primary->options.grace_us = 0;
        uint32_t most = 0;
        unsigned node = 0;
        for (unsigned n = 1; n < 4; n++)
            if (replicas(world, n) > most) most = replicas(world, n), node = n;
        assert_true(most > 1);
        world_node_kill(world, node, false);
        world_run(world, 60 * 1000 * 1000); /* copies are made on the others */
        assert_true(world_is_whole(world));
        if (silent) leat_primary_log_silence(world->logs[0].rep, true);
        world_node_start(world, node);
        world_run(world, 10 * 1000 * 1000);
        if (silent)
            assert_int_equal(replicas(world, node), most);
        else
            assert_true(replicas(world, node) < most);
        world_free(world);
    }
}

static struct leat_segment *adopted;
static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    assert_int_equal(rc, LEAT_OK);
    adopted = seg;
}

static leat_err adopt(struct world *world, const struct replica *rep, uint32_t owner)
{
    adopted = NULL;
    return leat_backup_adopt(world->nodes[1].backup, world->logs[0].ref, (struct leat_epoch){owner},
                             rep->seg->id, rep->seg->prefix_id, rep->seg->next_offset,
                             rep->seg->max_timestamp_ms, 0, on_adopted, NULL);
}

/* Goal: a replica that a later owner counts on stays a replica: an earlier owner on this node cannot adopt it, since
 * the node would give it back as another replica. The refusal says not to ask again. */
static void replica_that_a_later_owner_counts_on_is_not_adopted(void **state)
{
    (void)state;
    struct world *world = closed_segments(34, 3, 3);
    struct replica *rep = backup_find(world->nodes[1].backup, copy_on(world, 1)->handle);
    say(world, 1, rep->handle, REP_SETTLE_KEEP, WORLD_EPOCH + 2);
    assert_int_equal(adopt(world, rep, WORLD_EPOCH + 1), LEAT_E_STALE_EPOCH);
    rep->busy++;
    assert_int_equal(adopt(world, rep, WORLD_EPOCH + 1), LEAT_E_STALE_EPOCH);
    assert_int_equal(adopt(world, rep, WORLD_EPOCH + 2), LEAT_E_AGAIN);
    rep->busy--;
    assert_int_equal(adopt(world, rep, WORLD_EPOCH + 2), LEAT_OK);
    world_run(world, 200 * 1000);
    assert_non_null(adopted);
    world_free(world);
}

/* Goal: no owner can count on a replica while this node adopts it: the request is refused. If the adoption fails and
 * the replica stays a replica, no owner has confirmed the replica. */
static void word_for_a_replica_that_is_being_adopted_is_refused(void **state)
{
    (void)state;
    struct world *world = closed_segments(35, 3, 3);
    struct replica *rep = backup_find(world->nodes[1].backup, copy_on(world, 1)->handle);
    uint32_t before = rep->owner_epoch.v;
    rep->adopting = true;
    say(world, 1, rep->handle, REP_SETTLE_KEEP, WORLD_EPOCH + 1);
    assert_int_equal(rep->owner_epoch.v, before);
    say(world, 1, rep->handle, REP_SETTLE_DROP, WORLD_EPOCH + 1);
    assert_false(rep->drop_wanted);
    rep->adopting = false;
    say(world, 1, rep->handle, REP_SETTLE_KEEP, WORLD_EPOCH + 1);
    assert_int_equal(rep->owner_epoch.v, WORLD_EPOCH + 1);
    world_free(world);
}

static void append_care(struct world *world, unsigned batches)
{
    for (unsigned i = 0; i < batches; i++)
        for (unsigned tries = 0; !world_append(&world->logs[0], 3000) && tries < 200000; tries++) {
            world_step(world);
            world_care(world);
        }
    for (unsigned i = 0; i < 40; i++) {
        world_run(world, 100 * 1000);
        world_care(world);
    }
}

/* Goal: a node keeps its copy of a segment that the log lacks and may have lost. The node drops the same copy where the
 * owner is sure that the segment is not part of its log. */
static void copies_of_what_an_owner_is_not_sure_of_stay(void **state)
{
    (void)state;
    for (unsigned unsure = 0; unsure < 2; unsure++) {
        struct world *world = world_new(41, 4, 2, 1, LEAT_DURABILITY_MEMORY, 1024 * 1024);
        append_care(world, 200);
        unsigned node = 1;
        for (unsigned n = 2; n < 4; n++)
            if (replicas(world, n) > replicas(world, node)) node = n;
        uint32_t before = replicas(world, node);
        assert_true(before > 1);
        world_node_kill(world, node, false);
        append_care(world, 800);
        uint64_t first = leat_log_first_held(world->logs[0].log)->id.v;
        if (unsure) world->logs[0].rep->options.unsure = (struct leat_segment_range){0, first};
        world_node_start(world, node);
        world_run(world, 40 * 1000 * 1000);
        uint32_t left = 0;
        LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
        {
            const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
            left += rep->seg && rep->seg->id.v < first;
        }
        assert_int_equal(left, unsure ? before : 0);
        world_free(world);
    }
}

/* Whole closed replicas of a node. */
static unsigned whole(const struct world *world, unsigned node)
{
    unsigned count = 0;
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        count += rep->seg && rep->seg->state == LEAT_SEGMENT_CLOSED && !rep->seg->incomplete &&
                 !rep->damaged;
    }
    return count;
}

/* Goal: a copy of a closed segment whose COMPLETE failed is not reported as a copy: the next start finds an incomplete
 * replica, and drops it. */
static void copy_that_the_disk_does_not_call_whole_is_none(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t op = 1, fell_due = 1; fell_due; op++) {
        struct world *world = closed_segments(37, 3, 2);
        struct fake_world *disk = &world->nodes[1].disk;
        unsigned before = whole(world, 1);
        assert_true(before > 0 && whole(world, 2) > 0);
        world->primary->options.grace_us = 0;
        world_node_kill(world, 2, false);
        disk->fail_at = disk->op_count + op;
        world_run(world, 20 * 1000 * 1000); /* what 2 had is copied to 1 */
        fell_due = disk->op_count >= disk->fail_at;
        unsigned told = whole(world, 1);
        refused += told == before;
        disk->fail_at = 0;
        leat_primary_log_silence(world->logs[0].rep, true); /* nobody makes others meanwhile */
        world_node_kill(world, 1, false);
        world_node_start(world, 1);
        assert_in_range(whole(world, 1), told, 1000);
        world_free(world);
    }
    assert_true(refused >= 2);
}

/* Goal: a segment of this node's own that becomes a replica when its stream was deleted already goes, too. */
static void segment_that_comes_when_its_stream_has_gone_goes(void **state)
{
    (void)state;
    struct world *world = closed_segments(36, 3, 3);
    struct leat_backup *backup = world->nodes[1].backup;
    const struct leat_log_ref ref = world->logs[0].ref;
    assert_int_equal(adopt(world, backup_find(backup, copy_on(world, 1)->handle), WORLD_EPOCH + 1),
                     LEAT_OK);
    world_run(world, 200 * 1000);
    assert_non_null(adopted);
    const struct leat_segment_id id = adopted->id;
    const struct leat_prefix_id prefix_id = adopted->prefix_id;
    world->nodes[1].deleted = ref.stream;
    leat_backup_stream_deleted(backup, ref.stream);
    world_run(world, 100 * 1000);
    assert_int_equal(leat_backup_take_own(backup, adopted, world->nodes[1].incarnation, false),
                     LEAT_OK);
    assert_false(leat_backup_holds(backup, ref, id, prefix_id));
    world_run(world, 200 * 1000);
    assert_int_equal(replicas(world, 1), 0);
    world_free(world);
}

/* Goal: a replica whose reservation was under way when its stream was deleted goes after a while, though nobody has a
 * word to say about it. */
static void replica_that_missed_its_deletion_goes(void **state)
{
    (void)state;
    struct world *world = closed_segments(37, 3, 3);
    struct leat_backup *backup = world->nodes[1].backup;
    uint64_t handle = copy_on(world, 1)->handle;
    world_run(world, 60 * 1000 * 1000);
    assert_non_null(backup_find(backup, handle));
    world->nodes[1].deleted = world->logs[0].ref.stream;
    backup_find(backup, handle)->adopting = true; /* a log of this node has it next */
    world_run(world, 60 * 1000 * 1000);
    assert_non_null(backup_find(backup, handle));
    backup_find(backup, handle)->adopting = false;
    world_run(world, 60 * 1000 * 1000);
    assert_null(backup_find(backup, handle));
    world_free(world);
}

static bool lies_within(const struct world *world, unsigned node, unsigned log,
                        const uint8_t *place, uint32_t bytes)
{
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        if (!is_open_of(rep, world->logs[log].ref)) continue;
        const uint8_t *other = rep->seg->buffer;
        if (other < place + bytes && place < other + rep->seg->capacity) return true;
    }
    return false;
}

/* Two logs of two nodes, whose heads are open, and the stream of the first has been deleted: so the second node has
 * heard, and the first has not. */
static struct world *deleted_there(uint64_t seed, struct replica **out_rep)
{
    struct world *world = world_new(seed, 2, 2, 2, LEAT_DURABILITY_MEMORY, 0);
    append_some(world, 0, 10);
    append_some(world, 1, 10);
    world_run(world, 1000 * 1000);
    *out_rep = open_copy(world, 1, 0);
    assert_non_null(*out_rep);
    world->nodes[1].deleted = world->logs[0].ref.stream;
    leat_backup_stream_deleted(world->nodes[1].backup, world->logs[0].ref.stream);
    return world;
}

/* Goal: no other segment takes a place into which an owner may still write: neither before the owner has heard of the
 * deletion, nor when the owner was silent for so long that the copy is dropped without it. */
static void deletion_that_an_owner_has_not_heard_of_frees_no_place(void **state)
{
    (void)state;
    struct replica *rep;
    struct world *world = deleted_there(39, &rep);
    uint64_t handle = rep->handle;
    const uint8_t *place = rep->seg->buffer;
    uint32_t bytes = rep->seg->capacity;
    for (unsigned i = 0; i < 300; i++) {
        append_some(world, 1, 1);
        assert_false(lies_within(world, 1, 1, place, bytes));
    }
    assert_ptr_equal(backup_find(world->nodes[1].backup, handle), rep);
    append_some(world, 0, 1); /* the owner goes on there */
    world_run(world, 1000 * 1000);
    world_check(world);
    world_run(world, 60 * 1000 * 1000);
    assert_null(backup_find(world->nodes[1].backup, handle));
    for (unsigned i = 0; i < 300; i++) {
        append_some(world, 1, 1);
        assert_false(lies_within(world, 1, 1, place, bytes));
    }
    world_free(world);
}

/* Goal: a request of the log's present owner does not free the place either, whether this owner is the copy's node or
 * another node. A request of the writer does. */
static void word_of_another_than_its_writer_frees_no_place(void **state)
{
    (void)state;
    enum { HERE, ELSEWHERE, ITS_WRITER, WAYS };
    const struct leat_segment_range none = {0, 0};
    const struct leat_link_identity other = {.node = "n7", .incarnation = 777, .cores = 1};
    const struct leat_frame attach = {.kind = LEAT_REP_ATTACH};
    for (int way = HERE; way < WAYS; way++) {
        struct world *world = world_new(41, 2, 2, 2, LEAT_DURABILITY_MEMORY, 0);
        append_some(world, 0, 10);
        append_some(world, 1, 10);
        world_run(world, 1000 * 1000);
        const struct replica *rep = open_copy(world, 1, 0);
        assert_non_null(rep);
        uint64_t handle = rep->handle;
        const uint8_t *place = rep->seg->buffer;
        uint32_t bytes = rep->seg->capacity;
        if (way == HERE) {
            leat_backup_drop_log(world->nodes[1].backup, world->logs[0].ref,
                                 (struct leat_epoch){WORLD_EPOCH + 1}, &none);
        } else if (way == ELSEWHERE) {
            request_of(world, 1, &other, &attach);
            say_of(world, 1, &other, handle, REP_SETTLE_DROP, WORLD_EPOCH + 1);
        } else {
            say(world, 1, handle, REP_SETTLE_DROP, WORLD_EPOCH + 1);
        }
        world_run(world, 200 * 1000);
        assert_null(backup_find(world->nodes[1].backup, handle));
        bool again = false;
        for (unsigned i = 0; i < 300; i++) {
            append_some(world, 1, 1);
            again = again || lies_within(world, 1, 1, place, bytes);
        }
        assert_int_equal(again, way == ITS_WRITER);
        world_free(world);
    }
}

/* The answers to the test's requests. */
static struct answered {
    void (*answer)(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                   uint32_t control_bytes);
    struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    uint32_t count;
} answered;

static void answer_take(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                        uint32_t control_bytes)
{
    if (ticket->connection != UINT64_MAX)
        answered.answer(ctx, ticket, control, control_bytes);
    else
        assert_int_equal(rep_pairs_decode(control, control_bytes, answered.pairs, &answered.count),
                         LEAT_OK);
}

static leat_err row_of(struct world *world, const struct leat_link_identity *who, uint16_t kind,
                       uint64_t handle, uint64_t value)
{
    struct rep_pair pair = {handle, value, 0};
    uint8_t control[64];
    struct leat_frame frame = {.kind = kind, .control = control};
    frame.control_bytes = rep_pairs_encode(&pair, 1, control, sizeof control);
    answered.count = 0;
    request_of(world, 1, who, &frame);
    assert_int_equal(answered.count, 1);
    return (leat_err)answered.pairs[0].value;
}

/* Goal: a copy is flushed and stamped for its own writer, as far as it can be, and never back to what was. */
static void rows_of_another_writer_or_out_of_range_change_nothing(void **state)
{
    (void)state;
    struct world *world = world_new(43, 2, 2, 1, LEAT_DURABILITY_MEMORY, 0);
    append_some(world, 0, 10);
    world_run(world, 1000 * 1000);
    struct leat_backup *backup = world->nodes[1].backup;
    const struct replica *rep = open_copy(world, 1, 0);
    assert_non_null(rep);
    const struct leat_link_identity own = {
        .node = "n0", .incarnation = world->nodes[0].incarnation, .cores = 1};
    const struct leat_link_identity other = {.node = "n7", .incarnation = 777, .cores = 1};
    const struct leat_frame attach = {.kind = LEAT_REP_ATTACH};
    request_of(world, 1, &other, &attach);
    answered.answer = backup->options.net.answer;
    backup->options.net.answer = answer_take;
    uint64_t handle = rep->handle, version = rep->seg->version, flushed = rep->flushed;
    const struct {
        const struct leat_link_identity *who;
        uint16_t kind;
        uint64_t value;
        leat_err rc;
    } rows[] = {{&other, LEAT_REP_FLUSH, flushed, LEAT_E_STALE_EPOCH},
                {&other, LEAT_REP_RESTAMP, version + 1, LEAT_E_STALE_EPOCH},
                {&own, LEAT_REP_FLUSH, (uint64_t)rep->seg->capacity + 1, LEAT_E_INVALID},
                {&own, LEAT_REP_FLUSH, UINT32_MAX + UINT64_C(1), LEAT_E_INVALID},
                {&own, LEAT_REP_RESTAMP, version + 1, LEAT_OK},
                {&own, LEAT_REP_RESTAMP, version, LEAT_E_STALE_EPOCH}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(row_of(world, rows[i].who, rows[i].kind, handle, rows[i].value),
                         rows[i].rc);
        assert_int_equal(rep->seg->version, version + (i >= 4));
        assert_int_equal(rep->flushed, flushed);
    }
    backup->options.net.answer = answered.answer;
    world_free(world);
}

static void on_fenced(void *arg)
{
    *(bool *)arg = true;
}

/* Goal: the copy does not wait for a request of an owner that is gone, either. */
static void open_copy_of_a_deleted_stream_goes_with_its_writer(void **state)
{
    (void)state;
    struct replica *rep;
    struct world *world = deleted_there(40, &rep);
    struct leat_backup *backup = world->nodes[1].backup;
    uint64_t handle = rep->handle, other = open_copy(world, 1, 1)->handle;
    bool fenced = false;
    assert_int_equal(
        leat_backup_fence(backup, "n0", world->nodes[0].incarnation, on_fenced, &fenced), LEAT_OK);
    world_run(world, 500 * 1000);
    assert_true(fenced);
    assert_null(backup_find(backup, handle));
    assert_non_null(backup_find(backup, other));
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_of_an_owner_of_the_past_drops_nothing),
        cmocka_unit_test(copy_that_goes_before_its_backup_hears_is_made_anew),
        cmocka_unit_test(copy_that_rots_is_made_anew),
        cmocka_unit_test(piece_for_a_lost_copy_is_not_written_to_the_next),
        cmocka_unit_test(owner_that_gives_its_log_away_drops_nothing),
        cmocka_unit_test(copies_of_what_an_owner_is_not_sure_of_stay),
        cmocka_unit_test(replica_that_a_later_owner_counts_on_is_not_adopted),
        cmocka_unit_test(word_for_a_replica_that_is_being_adopted_is_refused),
        cmocka_unit_test(copy_that_the_disk_does_not_call_whole_is_none),
        cmocka_unit_test(segment_that_comes_when_its_stream_has_gone_goes),
        cmocka_unit_test(replica_that_missed_its_deletion_goes),
        cmocka_unit_test(deletion_that_an_owner_has_not_heard_of_frees_no_place),
        cmocka_unit_test(word_of_another_than_its_writer_frees_no_place),
        cmocka_unit_test(rows_of_another_writer_or_out_of_range_change_nothing),
        cmocka_unit_test(open_copy_of_a_deleted_stream_goes_with_its_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
