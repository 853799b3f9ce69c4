/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on a backup's replicas and writers between two turns: each rule is broken once, in structs that the
 * test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replication/backup/state.h"
#include "tests/broken.h"

/* A replica that a node writes to, a replica that is being opened, and a replica that was found at the start. */
enum { OPEN, OPENING, FOUND, REPLICAS };
enum { LOOKED_AT = 16, MANY }; /* so many are looked at where the build is no slow one */

static struct leat_backup backup;
static struct backup_writer writer;
static struct replica reps[MANY], *slots[MANY + 1];
static struct leat_segment segs[MANY];
static uint32_t generations[MANY + 1];
static uint8_t arena[64], pool[64];
static struct leat_rmem_arena rmem;
static struct leat_list bucket, fence;

static struct replica *written = &reps[OPEN], *opening = &reps[OPENING], *found = &reps[FOUND];

/* Replicas after the third were found, too. */
static void sound_of(uint32_t count)
{
    backup = (struct leat_backup){.slots = slots,
                                  .generations = generations,
                                  .slot_count = count + 1,
                                  .slot_free_hint = count,
                                  .replica_count = count,
                                  .writer_count = 1,
                                  .opening_bytes = 1};
    leat_list_init(&backup.writers);
    leat_list_init(&backup.replicas);
    leat_list_init(&backup.fences);
    leat_list_init(&bucket);
    writer = (struct backup_writer){.backup = &backup,
                                    .rmem = &rmem,
                                    .arena = {.base = arena, .limit_bytes = sizeof arena},
                                    .at_store = (void *)&arena,
                                    .ready = true,
                                    .replicas = 2};
    leat_list_push_back(&backup.writers, &writer.link);
    for (uint32_t i = 0; i < count; i++) {
        segs[i] = (struct leat_segment){.state = LEAT_SEGMENT_OPEN,
                                        .role = LEAT_SEGMENT_REPLICA,
                                        .buffer = arena + i,
                                        .capacity = 100,
                                        .log_pointer = &reps[i]};
        generations[i] = 7;
        slots[i] = &reps[i];
        reps[i] = (struct replica){.backup = &backup,
                                   .handle = (uint64_t)7 << 32 | (i + 1),
                                   .seg = i == OPENING ? NULL : &segs[i],
                                   .writer = i >= FOUND ? NULL : &writer,
                                   .busy = i == OPENING,
                                   .flushed = 100};
        leat_list_push_back(&backup.replicas, &reps[i].link);
        leat_list_init(&reps[i].by_log);
        if (i != OPENING) leat_list_push_back(&bucket, &reps[i].by_log);
    }
    slots[count] = NULL;
}

static void sound(void)
{
    sound_of(REPLICAS);
}

/* The writer is fenced, and its replicas have left its arena. */
static void is_fenced(void)
{
    writer.fenced = writer.retiring = true;
    segs[OPEN].buffer = pool;
}

/* `rule` is broken by the statements; NULL: no rule is. */
#define BROKEN(rule, ...)                                                                          \
    do {                                                                                           \
        sound();                                                                                   \
        assert_broken(NULL, leat_backup_check(&backup));                                           \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_backup_check(&backup));                                           \
    } while (0)

static void table_is_checked(void **state)
{
    (void)state;
    BROKEN("rep->backup == backup", written->backup = NULL);
    BROKEN("slot < backup->slot_count", backup.slot_count = REPLICAS - 1);
    BROKEN("backup->slots[slot] == rep", slots[OPEN] = found);
    BROKEN("rep->handle >> 32 == backup->generations[slot]", generations[OPEN]++);
    BROKEN("sums->replicas == backup->replica_count", backup.replica_count--);
    BROKEN("sums->replicas == backup->replica_count", leat_list_remove(&found->link));
    BROKEN("backup->slot_free_hint <= backup->replica_count", backup.slot_free_hint = REPLICAS + 1);
    BROKEN("(sums->opening == 0) == (backup->opening_bytes == 0)", backup.opening_bytes = 0);
    BROKEN(NULL, opening->writer = NULL, writer.replicas = 1, backup.opening_bytes = 0);
    BROKEN("(sums->opening == 0) == (backup->opening_bytes == 0)", opening->seg = &segs[OPENING],
           leat_list_push_back(&bucket, &opening->by_log));
}

static void replica_is_checked(void **state)
{
    (void)state;
    static const char adopting[] =
        "!rep->adopting || (rep->busy > 0 && !rep->dropping && !rep->evicting)";
    static const char dropping[] = "!rep->dropping || (rep->busy > 0 && rep->drop_wanted)";
    static const char moving[] =
        "!rep->move_wanted || (rep->busy > 0 && rep->writer && rep->writer->fenced)";
    static const char listed[] = "(rep->seg != NULL) == !leat_list_empty(&rep->by_log)";
    BROKEN("rep->seg != NULL || rep->busy > 0", opening->busy = 0);
    BROKEN(listed, leat_list_remove(&written->by_log));
    BROKEN(listed, leat_list_push_back(&bucket, &opening->by_log));
    BROKEN(adopting, written->adopting = true);
    BROKEN(NULL, written->adopting = true, written->busy = 1);
    BROKEN(adopting, written->adopting = written->evicting = true, written->busy = 1);
    BROKEN(adopting, written->adopting = written->dropping = written->drop_wanted = true,
           written->busy = 1);
    BROKEN(dropping, written->dropping = written->drop_wanted = true);
    BROKEN(dropping, written->dropping = true, written->busy = 1);
    BROKEN(NULL, written->dropping = written->drop_wanted = true, written->busy = 1);
    BROKEN("!rep->leave || rep->drop_wanted", written->leave = true);
    BROKEN(NULL, written->leave = written->drop_wanted = true);
    BROKEN(moving, written->move_wanted = true, written->busy = 1);
    BROKEN(moving, is_fenced(), written->move_wanted = true);
    BROKEN(moving, is_fenced(), found->move_wanted = true, found->busy = 1);
}

/* Goal: of more than 16 replicas the check looks at the last 16; a slow build looks at all. */
static void last_replicas_are_checked(void **state)
{
    (void)state;
    static const char owned[] = "seg->log_pointer == rep";
    for (uint32_t count = LOOKED_AT; count <= MANY; count++) {
        sound_of(count);
        assert_broken(NULL, leat_backup_check(&backup));
        segs[OPEN].log_pointer = NULL; /* of the replica that came first */
#ifdef LEAT_SLOW_CHECKS
        assert_broken(owned, leat_backup_check(&backup));
#else
        assert_broken(count <= LOOKED_AT ? owned : NULL, leat_backup_check(&backup));
#endif
    }
}

/* Goal: a segment is looked at only while no request for it is under way. */
static void segment_is_checked(void **state)
{
    (void)state;
    static const char flushed[] = "!rep->writer || rep->flushed <= seg->capacity";
    BROKEN("seg->log_pointer == rep", segs[OPEN].log_pointer = NULL);
    BROKEN("seg->role == LEAT_SEGMENT_REPLICA", segs[FOUND].role = LEAT_SEGMENT_OWN);
    BROKEN(NULL, segs[FOUND].role = LEAT_SEGMENT_OWN, found->busy = 1);
    BROKEN(NULL, segs[FOUND].role = LEAT_SEGMENT_OWN, found->evicting = true);
    BROKEN(flushed, written->flushed = 101);
    BROKEN(NULL, found->flushed = 101);
}

/* Goal: after a fence nothing is looked at where the fenced node may write. */
static void fence_is_checked(void **state)
{
    (void)state;
    static const char exposed[] = "!is_exposed(rep)";
    BROKEN(NULL, is_fenced());
    BROKEN(exposed, is_fenced(), segs[OPEN].buffer = arena);
    BROKEN(exposed, is_fenced(), segs[OPEN].buffer = arena + sizeof arena - 1);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena + sizeof arena);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena, written->busy = 1);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena, written->damaged = true);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena, written->drop_wanted = true);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena, segs[OPEN].state = LEAT_SEGMENT_CLOSED);
    BROKEN(NULL, is_fenced(), segs[OPEN].buffer = arena, writer.rmem = NULL,
           writer.at_store = NULL);
}

static void counters_are_checked(void **state)
{
    (void)state;
    BROKEN("backup->serves + backup->looks <= sums->busy", backup.serves = backup.looks = 1);
    BROKEN(NULL, backup.serves = 1);
    BROKEN("backup->serves <= (unsigned)BACKUP_SERVES_MAX",
           backup.serves = found->busy = BACKUP_SERVES_MAX + 1);
    BROKEN("backup->looks <= (unsigned)BACKUP_LOOKS_MAX",
           backup.looks = found->busy = BACKUP_LOOKS_MAX + 1);
    BROKEN("backup->pulls <= (unsigned)LEAT_BACKUP_PULLS_MAX",
           backup.pulls = LEAT_BACKUP_PULLS_MAX + 1);
    BROKEN("backup->fenced_count <= (unsigned)BACKUP_FENCED_MAX",
           backup.fenced_count = BACKUP_FENCED_MAX + 1);
    BROKEN("count == backup->writer_count", backup.writer_count = 2);
    BROKEN("sums->replicas < backup->replica_count || sums->written == replicas",
           writer.replicas = 3);
    BROKEN("sums->written <= replicas", found->writer = &writer);
    BROKEN("moves == backup->moves", writer.moves = 1);
    BROKEN("moves == backup->moves", backup.moves = 1);
    BROKEN("sums->moving <= moves", is_fenced(), written->move_wanted = true, written->busy = 1);
    BROKEN("backup->moves > 0 || leat_list_empty(&backup->fences)",
           leat_list_push_back(&backup.fences, &fence));
    BROKEN(NULL, is_fenced(), written->move_wanted = true, written->busy = 1,
           writer.retiring = false, writer.moves = backup.moves = 1,
           leat_list_push_back(&backup.fences, &fence));
}

static void writer_is_checked(void **state)
{
    (void)state;
    static const char attaching[] =
        "writer->attach_count == 0 || (!writer->ready && !writer->fenced)";
    static const char memory[] = "writer->rmem != NULL || (writer->fenced && writer->at_store == "
                                 "NULL)";
    static const char retiring[] = "!writer->retiring || (writer->fenced && writer->moves == 0)";
    static const char stays[] = "!writer->fenced || !writer->at_store || writer->moves > 0 || "
                                "writer->retiring";
    BROKEN("writer->backup == backup", writer.backup = NULL);
    BROKEN("writer->attach_count <= (unsigned)BACKUP_ATTACHES_MAX",
           writer.attach_count = BACKUP_ATTACHES_MAX + 1);
    BROKEN(attaching, writer.attach_count = 1);
    BROKEN(NULL, writer.attach_count = 1, writer.ready = false);
    BROKEN(attaching, is_fenced(), writer.attach_count = 1, writer.ready = false);
    BROKEN("!writer->starved || !writer->ready", writer.starved = true);
    BROKEN(memory, writer.rmem = NULL, writer.at_store = NULL);
    BROKEN(memory, is_fenced(), writer.rmem = NULL);
    BROKEN("!writer->failed || writer->at_store == NULL", writer.failed = true);
    BROKEN(retiring, writer.retiring = true);
    BROKEN(retiring, is_fenced(), writer.moves = backup.moves = 1);
    BROKEN(stays, is_fenced(), writer.retiring = false);
    BROKEN("writer->rmem != NULL || writer->replicas > 0 || writer->growing != NULL", is_fenced(),
           writer.rmem = NULL, writer.at_store = NULL, writer.replicas = 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_checked),          cmocka_unit_test(replica_is_checked),
        cmocka_unit_test(last_replicas_are_checked), cmocka_unit_test(segment_is_checked),
        cmocka_unit_test(fence_is_checked),          cmocka_unit_test(counters_are_checked),
        cmocka_unit_test(writer_is_checked),
    };
    return cmocka_run_group_tests_name("backup check", tests, NULL, NULL);
}
