/* SPDX-License-Identifier: Apache-2.0 */
/* Which node may send which request about a replica, and the effect of a refusal. On the world of world.h. */
#include "tests/replication/asks.h"

#include <string.h>

/* The answers to the test's requests. */
static struct {
    struct leat_rep_net net; /* of the backup, for everybody else's */
    leat_err rc;
    unsigned count;
} said;

static void answer_take(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                        uint32_t control_bytes)
{
    if (ticket->connection != UINT64_MAX) {
        said.net.answer(ctx, ticket, control, control_bytes);
        return;
    }
    said.rc = LEAT_OK;
    said.count++;
}

static void refusal_take(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                         const char *text)
{
    if (ticket->connection != UINT64_MAX) {
        said.net.refuse(ctx, ticket, rc, text);
        return;
    }
    said.rc = rc;
    said.count++;
}

/* A log's head, open on the owner and on node 1, whose answers are taken. */
static struct world *world_of(uint64_t seed, enum leat_durability durability,
                              struct replica **out_rep)
{
    struct world *world = world_new(seed, 2, 2, 1, durability, 0);
    append_some(world, 0, 10);
    world_run(world, 1000 * 1000);
    *out_rep = open_copy(world, 1, 0);
    assert_non_null(*out_rep);
    struct leat_backup *backup = world->nodes[1].backup;
    said.net = backup->options.net;
    backup->options.net.answer = answer_take;
    backup->options.net.refuse = refusal_take;
    return world;
}

static struct leat_link_identity owner_of(const struct world *world)
{
    return (struct leat_link_identity){
        .node = "n0", .incarnation = world->nodes[0].incarnation, .cores = 1};
}

static const struct leat_link_identity another = {.node = "n7", .incarnation = 777, .cores = 1};

static void attach_another(struct world *world)
{
    const struct leat_frame attach = {.kind = LEAT_REP_ATTACH};
    request_of(world, 1, &another, &attach);
}

static struct rep_body body_of(const struct replica *rep)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    leat_scan_segment(seg->buffer, seg->capacity, &scan);
    return (struct rep_body){.handle = rep->handle,
                             .log = seg->log,
                             .segment = seg->id,
                             .epoch = seg->epoch,
                             .version = seg->version,
                             .prefix_id = {scan.bytes, scan.crc},
                             .next_offset = scan.next_offset,
                             .max_timestamp_ms = scan.max_timestamp_ms,
                             .owner = {WORLD_EPOCH}};
}

static leat_err ask(struct world *world, const struct leat_link_identity *who,
                    enum leat_rep_kind kind, const struct rep_body *body)
{
    uint8_t control[REP_BODY_BYTES_MAX];
    struct leat_frame frame = {.kind = (uint16_t)kind, .control = control};
    frame.control_bytes = rep_body_encode(body, control);
    unsigned before = said.count;
    request_of(world, 1, who, &frame);
    assert_int_equal(said.count, before + 1); /* once */
    return said.rc;
}

struct wrong {
    struct rep_body body;
    leat_err rc;
    bool of_bytes; /* DROP does not look at them */
};

enum { WRONGS = 12 };

/* Each says one thing that is not so. */
static void wrongs_of(const struct rep_body *good, struct wrong out[WRONGS])
{
    for (unsigned i = 0; i < WRONGS; i++)
        out[i] = (struct wrong){.body = *good, .rc = LEAT_E_NOT_FOUND, .of_bytes = i >= 9};
    out[0].body.handle ^= UINT64_C(1) << 40;
    out[1].body.log.stream++;
    out[2].body.log.streamlet++;
    out[3].body.log.log++;
    out[4].body.segment.v++;
    out[5].body.epoch.v++;
    out[6].body.epoch.v--;
    out[7].body.owner.v = WORLD_EPOCH + 1; /* an owner of the past: see below */
    out[8].body.version--;
    for (unsigned i = 5; i <= 8; i++)
        out[i].rc = LEAT_E_STALE_EPOCH;
    out[9].body.prefix_id.crc ^= 1;
    out[10].body.prefix_id.bytes -= 8;
    out[11].body.prefix_id.bytes = UINT32_MAX - 7;
    for (unsigned i = 9; i < WRONGS; i++)
        out[i].rc = LEAT_E_DAMAGED;
}

static void is_as_it_was(const struct world *world, uint64_t handle,
                         const struct leat_segment *before)
{
    const struct replica *rep = backup_find(world->nodes[1].backup, handle);
    assert_non_null(rep);
    assert_int_equal(rep->busy, 0);
    assert_int_equal(rep->seg->state, before->state);
    assert_int_equal(rep->seg->version, before->version);
    assert_int_equal(rep->seg->prefix_id.bytes, before->prefix_id.bytes);
    assert_int_equal(rep->seg->incomplete, before->incomplete);
}

/* Goal: a request changes nothing in a replica if the sender neither opened the replica nor owns its log now, if the
 * request names another segment, epoch, generation or end than the replica has, or if the replica's state does not
 * allow the request. */
static void word_that_is_not_so_changes_nothing(void **state)
{
    (void)state;
    static const enum leat_rep_kind kinds[] = {LEAT_REP_CLOSE, LEAT_REP_HIBERNATE,
                                               LEAT_REP_COMPLETE, LEAT_REP_DROP};
    struct replica *rep;
    struct world *world = world_of(51, LEAT_DURABILITY_MEMORY, &rep);
    const struct leat_link_identity own = owner_of(world);
    attach_another(world);
    struct rep_body good = body_of(rep);
    uint64_t handle = rep->handle;
    good.version++;
    assert_int_equal(ask(world, &own, LEAT_REP_COMPLETE, &good), LEAT_OK); /* it has that now */
    rep->owner_epoch.v = good.owner.v = WORLD_EPOCH + 2;
    const struct leat_segment before = *rep->seg;
    assert_int_equal(before.version, good.version);
    struct wrong wrongs[WRONGS];
    wrongs_of(&good, wrongs);
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool drop = kinds[k] == LEAT_REP_DROP;
        for (unsigned i = 0; i < WRONGS; i++) {
            if (drop && (wrongs[i].of_bytes || i == 8)) continue;
            leat_err rc = ask(world, &own, kinds[k], &wrongs[i].body);
            assert_int_equal(rc, wrongs[i].rc);
            is_as_it_was(world, handle, &before);
        }
        if (!drop) assert_int_equal(ask(world, &another, kinds[k], &good), LEAT_E_STALE_EPOCH);
        is_as_it_was(world, handle, &before);
    }
    assert_int_equal(ask(world, &own, LEAT_REP_RESUME, &good), LEAT_E_INVALID); /* not hibernated */
    assert_int_equal(ask(world, &own, LEAT_REP_CLOSE, &good), LEAT_OK);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_CLOSED);
    const struct leat_segment closed = *rep->seg;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds - 1; k++)
        assert_int_equal(ask(world, &own, kinds[k], &good), LEAT_E_INVALID);
    assert_int_equal(ask(world, &own, LEAT_REP_RESUME, &good), LEAT_E_INVALID);
    is_as_it_was(world, handle, &closed);
    assert_int_equal(ask(world, &own, LEAT_REP_DROP, &good), LEAT_OK);
    assert_null(backup_find(world->nodes[1].backup, handle));
    world_free(world);
}

/* Goal: only its writer resumes a hibernated copy, with the generation that the request names; the copy has the same
 * bytes again, and no other request changes the copy meanwhile. */
static void hibernated_copy_is_resumed_for_its_writer_alone(void **state)
{
    (void)state;
    static const enum leat_rep_kind others[] = {LEAT_REP_CLOSE, LEAT_REP_HIBERNATE,
                                                LEAT_REP_COMPLETE};
    struct replica *rep;
    struct world *world = world_of(54, LEAT_DURABILITY_MEMORY, &rep);
    const struct leat_link_identity own = owner_of(world);
    attach_another(world);
    struct rep_body good = body_of(rep);
    good.version++;
    assert_int_equal(ask(world, &own, LEAT_REP_COMPLETE, &good), LEAT_OK);
    rep->owner_epoch.v = good.owner.v = WORLD_EPOCH + 2;
    assert_int_equal(ask(world, &own, LEAT_REP_HIBERNATE, &good), LEAT_OK);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_null(rep->seg->buffer);
    const struct leat_segment hibernated = *rep->seg;
    struct wrong wrongs[WRONGS];
    wrongs_of(&good, wrongs);
    for (unsigned i = 0; i < WRONGS; i++) {
        if (wrongs[i].of_bytes) continue;
        assert_int_equal(ask(world, &own, LEAT_REP_RESUME, &wrongs[i].body), wrongs[i].rc);
        is_as_it_was(world, rep->handle, &hibernated);
    }
    assert_int_equal(ask(world, &another, LEAT_REP_RESUME, &good), LEAT_E_STALE_EPOCH);
    for (unsigned k = 0; k < sizeof others / sizeof *others; k++)
        assert_int_equal(ask(world, &own, others[k], &good), LEAT_E_INVALID);
    is_as_it_was(world, rep->handle, &hibernated);
    struct rep_body resume = good;
    resume.version++;
    assert_int_equal(ask(world, &own, LEAT_REP_RESUME, &resume), LEAT_OK);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_OPEN);
    assert_int_equal(rep->seg->version, resume.version);
    struct rep_body again = body_of(rep);
    assert_int_equal(again.prefix_id.bytes, good.prefix_id.bytes);
    assert_int_equal(again.prefix_id.crc, good.prefix_id.crc);
    world_free(world);
}

/* Goal: a stranger that has attached nothing, and whoever was declared gone, are heard in nothing. */
static void word_of_a_stranger_or_of_the_gone_is_not_heard(void **state)
{
    (void)state;
    struct replica *rep;
    struct world *world = world_of(52, LEAT_DURABILITY_MEMORY, &rep);
    struct rep_body good = body_of(rep);
    const struct leat_segment before = *rep->seg;
    struct leat_link_identity gone = owner_of(world);
    for (unsigned kind = LEAT_REP_CLOSE; kind <= LEAT_REP_DROP; kind++)
        assert_int_equal(ask(world, &another, (enum leat_rep_kind)kind, &good), LEAT_E_CLOSED);
    gone.incarnation--; /* as if the one before were fenced: it never attached here */
    assert_int_equal(ask(world, &gone, LEAT_REP_CLOSE, &good), LEAT_E_CLOSED);
    is_as_it_was(world, rep->handle, &before);
    world_free(world);
}

/* Goal: a copy whose close, or hibernate, the disk refused is open as before, and its owner hears of it: called closed
 * it would be taken for as good as others, which are on their disks. */
static void close_or_hibernate_that_the_disk_refuses_is_none(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++)
        for (unsigned way = 0; way < 3; way++) {
            bool incomplete = way == 1, hibernate = way == 2;
            struct replica *rep;
            struct world *world = world_of(53, (enum leat_durability)level, &rep);
            const struct leat_link_identity own = owner_of(world);
            struct rep_body good = body_of(rep);
            rep->seg->incomplete = incomplete;
            const struct leat_segment before = *rep->seg;
            struct fake_world *disk = &world->nodes[1].disk;
            disk->fail_at = disk->op_count + 1;
            assert_int_equal(
                ask(world, &own, hibernate ? LEAT_REP_HIBERNATE : LEAT_REP_CLOSE, &good),
                LEAT_E_DISK);
            assert_int_equal(rep->seg->state, before.state);
            assert_int_equal(rep->seg->incomplete, before.incomplete);
            assert_false(leat_backup_holds(world->nodes[1].backup, rep->seg->log, rep->seg->id,
                                           good.prefix_id));
            world_free(world);
        }
}

static struct replica *opening_one(const struct leat_backup *backup)
{
    for (uint32_t i = 0; i < backup->slot_count; i++)
        if (backup->slots[i] && !backup->slots[i]->seg) return backup->slots[i];
    return NULL;
}

static void info_count(void *arg, const struct leat_replica_info *info)
{
    (void)info;
    ++*(unsigned *)arg;
}

static unsigned count_of(struct leat_backup *backup)
{
    unsigned count = 0;
    leat_backup_each(backup, NULL, true, info_count, &count);
    return count;
}

static void hear(struct world *world, const struct leat_link_identity *who, enum leat_rep_kind kind,
                 const uint8_t *control, uint32_t bytes)
{
    struct leat_frame frame = {.kind = (uint16_t)kind, .control = control, .control_bytes = bytes};
    struct leat_link_ticket ticket = {.connection = UINT64_MAX, .kind = frame.kind};
    leat_backup_request(world->nodes[1].backup, who, &frame, &ticket);
}

/* Everything that may be said or asked of replicas while one is still being opened. */
static void all_is_heard(struct world *world, const struct leat_link_identity *own,
                         struct rep_body *body)
{
    struct leat_backup *backup = world->nodes[1].backup;
    uint8_t control[REP_BODY_BYTES_MAX + 64];
    body->handle = opening_one(backup)->handle;
    for (unsigned kind = LEAT_REP_CLOSE; kind <= LEAT_REP_DROP; kind++) {
        said.rc = LEAT_OK;
        hear(world, own, (enum leat_rep_kind)kind, control, rep_body_encode(body, control));
        assert_int_equal(said.rc, LEAT_E_NOT_FOUND);
    }
    said.rc = LEAT_OK;
    hear(world, own, LEAT_REP_SEAL, control, rep_body_encode(body, control));
    assert_int_not_equal(said.rc, LEAT_OK);
    for (unsigned word = REP_SETTLE_DROP; word <= REP_SETTLE_LEAVE; word++) {
        struct rep_pair pair = {body->handle, word + (uint64_t)REP_SETTLE_WORDS * WORLD_EPOCH, 0};
        hear(world, own, LEAT_REP_SETTLE, control,
             rep_pairs_encode(&pair, 1, control, sizeof control));
    }
    const enum leat_rep_kind rows[] = {LEAT_REP_RESTAMP, LEAT_REP_FLUSH};
    for (unsigned i = 0; i < 2; i++) {
        struct rep_pair pair = {body->handle, 64, 0};
        hear(world, own, rows[i], control, rep_pairs_encode(&pair, 1, control, sizeof control));
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_bool(&writer, true);
    hear(world, own, LEAT_REP_AUDIT, control, writer.used);
    leat_backup_stream_deleted(backup, body->log.stream + 77);
    assert_false(leat_backup_holds(backup, body->log, body->segment, body->prefix_id));
    assert_int_equal(leat_backup_look_any(backup, body->log, body->segment, body->prefix_id),
                     LEAT_E_NOT_FOUND);
}

/* Goal: a replica that is being opened is no replica yet: no lookup finds it, by its handle or its log. Requests that
 * name the replica meanwhile do not stop the opening, and the opening makes the replica. */
static void replica_that_is_being_opened_is_nothing_yet(void **state)
{
    (void)state;
    struct replica *rep;
    struct world *world = world_of(55, LEAT_DURABILITY_MEMORY, &rep);
    const struct leat_link_identity own = owner_of(world);
    struct leat_backup *backup = world->nodes[1].backup;
    struct rep_body body = body_of(rep);
    uint8_t control[REP_BODY_BYTES_MAX];
    unsigned before = count_of(backup), answers = said.count;
    body.segment.v += 1000;
    body.capacity = rep->seg->capacity;
    body.durability = LEAT_DURABILITY_MEMORY;
    assert_null(opening_one(backup));
    hear(world, &own, LEAT_REP_OPEN, control, rep_body_encode(&body, control));
    assert_non_null(opening_one(backup));
    assert_int_equal(said.count, answers); /* not before it is there */
    assert_int_equal(count_of(backup), before);
    all_is_heard(world, &own, &body);
    world_run(world, 200 * 1000);
    assert_null(opening_one(backup));
    const struct replica *opened = backup_find(backup, body.handle);
    assert_non_null(opened);
    assert_int_equal(opened->seg->id.v, body.segment.v);
    assert_int_equal(count_of(backup), before + 1);
    world_free(world);
}

static void on_fenced(void *arg)
{
    *(bool *)arg = true;
}

/* Goal: an OPEN that is not possible opens nothing; a replica that was being opened when its writer was fenced is
 * refused, and goes. */
static void open_that_can_not_be_or_comes_with_a_fence_opens_nothing(void **state)
{
    (void)state;
    struct replica *rep;
    struct world *world = world_of(56, LEAT_DURABILITY_MEMORY, &rep);
    const struct leat_link_identity own = owner_of(world);
    struct leat_backup *backup = world->nodes[1].backup;
    struct rep_body good = body_of(rep);
    uint8_t control[REP_BODY_BYTES_MAX];
    good.segment.v += 1000;
    good.capacity = rep->seg->capacity;
    good.durability = LEAT_DURABILITY_MEMORY;
    for (unsigned i = 0; i < 6; i++) {
        struct rep_body bad = good;
        if (i == 0) bad.capacity = 0;
        if (i == 1) bad.capacity = LEAT_SEGMENT_BYTES_MIN / 2;
        if (i == 2) bad.capacity = LEAT_SEGMENT_BYTES_MAX * 2u;
        if (i == 3) bad.capacity += 4096;
        if (i == 4) bad.durability = 0;
        if (i == 5) bad.durability = LEAT_DURABILITY_DISK + 1;
        assert_int_equal(ask(world, &own, LEAT_REP_OPEN, &bad), LEAT_E_INVALID);
        assert_null(opening_one(backup));
    }
    unsigned before = count_of(backup), answers = said.count;
    bool fenced = false;
    hear(world, &own, LEAT_REP_OPEN, control, rep_body_encode(&good, control));
    const uint64_t handle = opening_one(backup)->handle;
    assert_int_equal(leat_backup_fence(backup, "n0", own.incarnation, on_fenced, &fenced), LEAT_OK);
    world_run(world, 500 * 1000);
    assert_true(fenced);
    assert_int_equal(said.count, answers + 1);
    assert_int_equal(said.rc, LEAT_E_STALE_EPOCH);
    assert_null(backup_find(backup, handle));
    assert_int_equal(count_of(backup), before);
    assert_int_equal(ask(world, &own, LEAT_REP_OPEN, &good), LEAT_E_STALE_EPOCH);
    world_free(world);
}

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    assert_int_equal(rc, LEAT_OK);
    *(struct leat_segment **)arg = seg;
}

static void adopt_head(bool fence)
{
    bool fenced = false;
    struct replica *rep;
    struct world *world = world_of(57, LEAT_DURABILITY_MEMORY, &rep);
    append_some(world, 0, 200);
    world_run(world, 1000 * 1000);
    rep = open_copy(world, 1, 0);
    assert_non_null(rep);
    struct leat_scan scan;
    leat_scan_segment(rep->seg->buffer, rep->seg->capacity, &scan);
    assert_true(scan.base_offset > 0 && scan.next_offset > scan.base_offset);
    struct leat_segment *seg = NULL;
    world->coordinator_down = true;
    struct leat_backup *backup = world->nodes[1].backup;
    if (fence) {
        assert_int_equal(
            leat_backup_fence(backup, "n0", world->nodes[0].incarnation, on_fenced, &fenced),
            LEAT_OK);
        world_run(world, 500 * 1000);
        assert_true(fenced && rep->seg->state < LEAT_SEGMENT_HIBERNATED);
    }
    assert_int_equal(leat_backup_adopt(backup, rep->seg->log, (struct leat_epoch){UINT32_MAX},
                                       rep->seg->id, (struct leat_prefix_id){scan.bytes, scan.crc},
                                       0, INT64_MIN, 0, on_adopted, &seg),
                     LEAT_OK);
    world_run(world, 500 * 1000);
    assert_non_null(seg);
    assert_int_equal(seg->role, LEAT_SEGMENT_OWN);
    assert_int_equal(seg->state, LEAT_SEGMENT_CLOSED);
    assert_int_equal(seg->base_offset, scan.base_offset);
    assert_int_equal(seg->next_offset, scan.next_offset);
    assert_int_equal(seg->max_timestamp_ms, scan.max_timestamp_ms);
    assert_int_equal(seg->prefix_id.bytes, scan.bytes);
    assert_int_equal(seg->prefix_id.crc, scan.crc);
    world_free(world);
}

/* Goal: an open copy that becomes the node's own segment begins and ends where the bytes say, whatever the row said
 * while the copy was open: the offsets of the log's next records follow from these bytes. */
static void adopted_head_begins_and_ends_where_its_bytes_say(void **state)
{
    (void)state;
    adopt_head(false); /* hibernated first: its writer may still write */
    adopt_head(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_that_is_not_so_changes_nothing),
        cmocka_unit_test(hibernated_copy_is_resumed_for_its_writer_alone),
        cmocka_unit_test(word_of_a_stranger_or_of_the_gone_is_not_heard),
        cmocka_unit_test(replica_that_is_being_opened_is_nothing_yet),
        cmocka_unit_test(open_that_can_not_be_or_comes_with_a_fence_opens_nothing),
        cmocka_unit_test(adopted_head_begins_and_ends_where_its_bytes_say),
        cmocka_unit_test(close_or_hibernate_that_the_disk_refuses_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
