/* SPDX-License-Identifier: Apache-2.0 */
/* From an append to its answer: what is checked, what is counted, which bytes get a trailer, what the log asks of its
 * store, and which records an answer of the store makes safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "poke.h"

/* ---- appends ---- */

static struct leat_append appending;
static struct leat_batch batch;

static void batch_of(uint32_t count, int64_t time_ms, int64_t producer, int32_t sequence)
{
    uint32_t total = fake_batch(bytes, sizeof bytes, count, 100, time_ms, producer,
                                producer < 0 ? -1 : 0, sequence);
    assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
}

static void begun(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    appending = (struct leat_append){.first_offset = 77, .append_time_ms = 88};
    it->gathered_us = 1;
    it->gathered_wall_ms = 2;
    batch_of(3, 5000, -1, -1);
}

static void append_it(void)
{
    struct leat_error error = {0};
    uint32_t used = it->head.writer.used;
    uint64_t had = it->appended_bytes;
    leat_err rc = leat_log_append(it, &batch, &appending, &error);
    trace("%s \"%s\"\n", leat_err_name(rc), error.text);
    trace("   %llu to %llu%s time %lld, %u more%s", (unsigned long long)appending.first_offset,
          (unsigned long long)appending.ack_position, appending.duplicate ? " again" : "",
          (long long)appending.append_time_ms, it->head.writer.used - used,
          it->head.writer.used == it->head.writer.sealed_bytes ? " sealed" : "");
    trace(", next %llu, %llu records %llu bytes, head %llu max %lld sealed to %llu",
          (unsigned long long)it->next_offset, (unsigned long long)it->appended_records,
          (unsigned long long)(it->appended_bytes - had), (unsigned long long)it->head.record_count,
          (long long)it->head.max_timestamp_ms, (unsigned long long)it->head.sealed_offset);
    trace(", clocks %llu %lld%s%s%s, %u producers\n", (unsigned long long)it->gathered_us,
          (long long)it->gathered_wall_ms, it->room_wanted ? ", room" : "",
          it->producers_wanted ? " of producers" : "", it->dirty ? ", dirty" : "",
          it->producers.count);
    if (rc != LEAT_OK) return;
    const uint8_t *stored = it->head.writer.bytes + used + LEAT_ENTRY_HEADER_BYTES;
    trace("   stored at %llu epoch %u attributes %x max %lld%s\n",
          (unsigned long long)leat_get_be64(stored), leat_get_be32(stored + 12), stored[22],
          (long long)leat_get_be64(stored + 35),
          memcmp(stored + LEAT_BATCH_HEADER_BYTES, bytes + LEAT_BATCH_HEADER_BYTES,
                 batch.byte_count - LEAT_BATCH_HEADER_BYTES) == 0
              ? ", its records"
              : "");
    leat_list_init(&it->waiting);
}

static void append_is_stamped_and_counted(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, append_it);
    CASE(begun, append_it, it->clocks_read = true);
    CASE(begun, append_it, it->options.settings.append_time = true);
    CASE(begun, append_it, it->options.settings.append_time = it->clocks_read = true);
    CASE(begun, append_it, batch_of(1, 7000, -1, -1));
    CASE(begun, append_it, batch_of(1, 7001, -1, -1));
    CASE(begun, append_it, batch_of(1, 7001, 5, 0));
    CASE(begun, append_it, it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX);
    CASE(begun, append_it, it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX,
         it->old.seg = it->head.seg);
    CASE(begun, append_it, it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX - 424);
    CASE(begun, append_it, it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX - 425);
    TRACE_IS(
        "(void)0: OK \"\"\n"
        "   1 to 4 time -1, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to 1, "
        "clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->clocks_read = true: OK \"\"\n"
        "   1 to 4 time -1, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to 1, "
        "clocks 1 2, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->options.settings.append_time = true: OK \"\"\n"
        "   1 to 4 time 1001000, 424 more, next 4, 4 records 388 bytes, head 4 max 1001000 sealed "
        "to 1, clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 8 max 1001000, its records\n"
        "it->options.settings.append_time = it->clocks_read = true: OK \"\"\n"
        "   1 to 4 time 2, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to 1, "
        "clocks 1 2, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 8 max 2, its records\n"
        "batch_of(1, 7000, -1, -1): OK \"\"\n"
        "   1 to 2 time -1, 208 more, next 2, 2 records 170 bytes, head 2 max 7000 sealed to 1, "
        "clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 7000, its records\n"
        "batch_of(1, 7001, -1, -1): OK \"\"\n"
        "   1 to 2 time -1, 208 more, next 2, 2 records 170 bytes, head 2 max 7001 sealed to 1, "
        "clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 7001, its records\n"
        "batch_of(1, 7001, 5, 0): OK \"\"\n"
        "   1 to 2 time -1, 208 more, next 2, 2 records 170 bytes, head 2 max 7001 sealed to 1, "
        "clocks 1000000 1001000, dirty, 1 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 7001, its records\n"
        "it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX: OK \"\"\n"
        "   1 to 4 time -1, 456 more sealed, next 4, 4 records 388 bytes, head 4 max 7000 sealed "
        "to 4, clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX, it->old.seg = it->head.seg: OK \"\"\n"
        "   1 to 4 time -1, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to 1, "
        "clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX - 424: OK \"\"\n"
        "   1 to 4 time -1, 456 more sealed, next 4, 4 records 388 bytes, head 4 max 7000 sealed "
        "to 4, clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->head.writer.sealed_bytes -= LOG_RUN_BYTES_MAX - 425: OK \"\"\n"
        "   1 to 4 time -1, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to 1, "
        "clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n");
}

/* Producer 5 has epoch 3. */
static void fenced(void)
{
    batch_of(1, 7000, 5, 0);
    assert_int_equal(leat_log_append(it, &batch, &appending, NULL), LEAT_OK);
    leat_list_init(&it->waiting);
    for (uint32_t i = 0; i <= it->producers.slot_mask; i++)
        if (it->producers.slots[i].producer_id == 5) it->producers.slots[i].epoch = 3;
    batch_of(1, 7000, 5, 1);
}

static void append_is_refused_by_name(void **state)
{
    (void)state;
    CASE(begun, append_it, it->ending = LOG_DELETING);
    CASE(begun, append_it, it->ending = LOG_STOPPING);
    CASE(begun, append_it, it->store_port.refusal = watch_refusal, watched.refusal = LEAT_E_DISK);
    CASE(begun, append_it, leat_log_set_state(it, LEAT_LOG_WAITING, "it waits"));
    CASE(begun, append_it, leat_log_set_state(it, LEAT_LOG_DAMAGED, "it rots"));
    CASE(begun, append_it, log_fail(it, LEAT_E_STALE_EPOCH, "it went"));
    CASE(begun, append_it, it->options.settings.batch_bytes_max = batch.byte_count);
    CASE(begun, append_it, it->options.settings.batch_bytes_max = batch.byte_count - 1);
    CASE(begun, append_it, batch.attributes |= LEAT_BATCH_APPEND_TIME);
    CASE(begun, append_it, batch_of(1, 7000, 5, 3));
    CASE(begun, append_it, fenced());
    TRACE_IS(
        "it->ending = LOG_DELETING: UNKNOWN_STREAM \"the stream is being deleted\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "it->ending = LOG_STOPPING: STARTING \"the server is stopping\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "it->store_port.refusal = watch_refusal, watched.refusal = LEAT_E_DISK: DISK \"the disk "
        "failed a read, write or flush\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "leat_log_set_state(it, LEAT_LOG_WAITING, \"it waits\"): LOG_INCOMPLETE \"it waits; "
        "see leat log recover s --streamlet 0 --log 0\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, dirty, 0 producers\n"
        "leat_log_set_state(it, LEAT_LOG_DAMAGED, \"it rots\"): DAMAGED \"it rots; see leat "
        "log recover s --streamlet 0 --log 0\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, dirty, 0 producers\n"
        "log_fail(it, LEAT_E_STALE_EPOCH, \"it went\"): STALE_EPOCH \"it went\"\n"
        "   77 to 0 time 88, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, dirty, 0 producers\n"
        "it->options.settings.batch_bytes_max = batch.byte_count: OK \"\"\n"
        "   1 to 4 time -1, 424 more, next 4, 4 records 388 bytes, head 4 max 7000 sealed to "
        "1, clocks 1000000 1001000, dirty, 0 producers\n"
        "   stored at 1 epoch 7 attributes 0 max 5002, its records\n"
        "it->options.settings.batch_bytes_max = batch.byte_count - 1: TOO_LARGE \"a batch of "
        "388 bytes; the stream takes at most 387\"\n"
        "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "batch.attributes |= LEAT_BATCH_APPEND_TIME: UNSUPPORTED \"a batch must carry create "
        "times, not log-append times\"\n"
        "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "batch_of(1, 7000, 5, 3): SEQUENCE_GAP \"producer 5 leaves a gap: sequence 0 is "
        "expected, 3 came\"\n"
        "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
        "to 1, clocks 1 2, 0 producers\n"
        "fenced(): PRODUCER_FENCED \"producer 5 of epoch 0 is fenced: epoch 3 is in use\"\n"
        "   1 to 2 time -1, 0 more, next 2, 2 records 0 bytes, head 2 max 7000 sealed to 1, "
        "clocks 1000000 1001000, dirty, 1 producers\n");
}

static void append_waits_for_room(void **state)
{
    (void)state;
    CASE(begun, append_it, it->restored = LOG_UNLOADED);
    CASE(begun, append_it, batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096);
    CASE(begun, append_it, batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096,
         it->reserve_rc = LEAT_E_DISK_FULL, it->reserve_not_before_us = fake->now_us + 1);
    CASE(begun, append_it, batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096,
         it->memory_not_before_us = fake->now_us + 1);
    CASE(begun, append_it, it->room_bytes = 1000000, it->restored = LOG_UNLOADED);
    TRACE_IS("it->restored = LOG_UNLOADED: AGAIN \"\"\n"
             "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
             "to 1, clocks 1 2, room, dirty, 0 producers\n"
             "batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096: AGAIN \"\"\n"
             "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
             "to 1, clocks 1 2, room, dirty, 0 producers\n"
             "batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096, it->reserve_rc = "
             "LEAT_E_DISK_FULL, it->reserve_not_before_us = fake->now_us + 1: DISK_FULL \"no space "
             "left in the data directory for another segment\"\n"
             "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
             "to 1, clocks 1 2, 0 producers\n"
             "batch_of(60, 7000, -1, -1), it->head.writer.capacity = 4096, "
             "it->memory_not_before_us = fake->now_us + 1: NO_MEMORY \"the memory budget has no "
             "room for what another stored segment takes: delete streams, shorten their retention, "
             "or give the server a larger --memory\"\n"
             "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
             "to 1, clocks 1 2, 0 producers\n"
             "it->room_bytes = 1000000, it->restored = LOG_UNLOADED: AGAIN \"\"\n"
             "   77 to 0 time -1, 0 more sealed, next 1, 1 records 0 bytes, head 1 max 7000 sealed "
             "to 1, clocks 1 2, room, dirty, 0 producers\n");
}

/* ---- trailers and commits ---- */

static void open_tell(void)
{
    const struct log_open *head = &it->head;
    trace("   used %u sealed %u/%llu safe %u/%llu shown %u:", head->writer.used,
          head->writer.sealed_bytes, (unsigned long long)head->sealed_offset, head->safe_bytes,
          (unsigned long long)head->safe_offset, (unsigned)head->seg->sealed_bytes);
    for (unsigned i = 0; i < head->seal_count; i++)
        trace(" %u/%llu", head->seals[i].bytes, (unsigned long long)head->seals[i].offset);
    trace(" in flight %u\n", it->commit_count);
}

/* The log's store port takes two commits at a time, and one commit is on its way; three more batches have come
 * since. */
static void follows(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_DISK));
    it->store_port.commits = 2;
    size_t used = trace_used;
    for (unsigned i = 0; i < 4; i++)
        (void)put(fake, 1, 100);
    trace_text[trace_used = used] = '\0';
    assert_int_equal(it->commit_count, 2);
}

static leat_err commit_rc;
static uint32_t commit_to;

static void commit_is_answered(void)
{
    struct leat_store_req *req = &it->commits[it->commit_first].req;
    open_tell();
    req->rc = commit_rc;
    if (commit_to) req->to_bytes = commit_to;
    it->dirty = false;
    req->on_done(req);
    trace("-> %s%s ", it->dirty ? "dirty " : "", it->why);
    open_tell();
}

static void answer_of_the_store_makes_a_prefix_safe(void **state)
{
    (void)state;
    commit_rc = LEAT_OK;
    commit_to = 0;
    CASE_AS_IT_IS(follows, commit_is_answered);
    CASE(follows, commit_is_answered, commit_to = it->head.seals[0].bytes);
    CASE(follows, commit_is_answered, commit_to = it->head.seals[1].bytes);
    CASE(follows, commit_is_answered, commit_to = it->head.seals[it->head.seal_count - 1].bytes);
    commit_to = 0;
    CASE(follows, commit_is_answered, commit_rc = LEAT_E_STALE_EPOCH);
    CASE(follows, commit_is_answered, commit_rc = LEAT_E_DISK_FULL);
    commit_rc = LEAT_OK;
    TRACE_IS(
        "(void)0:    used 1464 sealed 1464/5 safe 504/1 shown 1464: 984/3 1224/4 1464/5 in flight "
        "2\n"
        "-> dirty     used 1464 sealed 1464/5 safe 744/2 shown 1464: 984/3 1224/4 1464/5 in flight "
        "1\n"
        "commit_to = it->head.seals[0].bytes:    used 1464 sealed 1464/5 safe 504/1 shown 1464: "
        "984/3 1224/4 1464/5 in flight 2\n"
        "-> dirty     used 1464 sealed 1464/5 safe 984/3 shown 1464: 1224/4 1464/5 in flight 1\n"
        "commit_to = it->head.seals[1].bytes:    used 1464 sealed 1464/5 safe 504/1 shown 1464: "
        "984/3 1224/4 1464/5 in flight 2\n"
        "-> dirty     used 1464 sealed 1464/5 safe 1224/4 shown 1464: 1464/5 in flight 1\n"
        "commit_to = it->head.seals[it->head.seal_count - 1].bytes:    used 1464 sealed 1464/5 "
        "safe 504/1 shown 1464: 984/3 1224/4 1464/5 in flight 2\n"
        "-> dirty     used 1464 sealed 1464/5 safe 1464/5 shown 1464: in flight 1\n"
        "commit_rc = LEAT_E_STALE_EPOCH:    used 1464 sealed 1464/5 safe 504/1 shown 1464: 984/3 "
        "1224/4 1464/5 in flight 2\n"
        "-> dirty other nodes refuse this owner: the log is another node's now, or this node was "
        "declared crashed    used 1464 sealed 1464/5 safe 504/1 shown 1464: "
        "984/3 1224/4 1464/5 in flight 1\n"
        "commit_rc = LEAT_E_DISK_FULL:    used 1464 sealed 1464/5 safe 504/1 shown 1464: 984/3 "
        "1224/4 1464/5 in flight 2\n"
        "-> dirty a flush of the log's head failed (no space left in the data directory), which is "
        "final    used 1464 sealed 1464/5 safe 504/1 shown 1464: 984/3 1224/4 1464/5 in flight "
        "1\n");
}

static void gathers(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_DISK));
    it->store_port.commits = 2;
    it->commit_count = 1;
    it->commits[0].req.seg = it->head.seg;
    it->commits[0].asked.bytes = it->head.writer.sealed_bytes;
    batch_of(1, 7000, -1, -1);
    assert_int_equal(leat_log_append(it, &batch, &appending, NULL), LEAT_OK);
    leat_list_init(&it->waiting);
}

static void step_seal(void)
{
    log_step_seal(it);
    open_tell();
}

static void shown_already(void)
{
    log_step_seal(it);
}

static void trailers_are_written_and_shown(void **state)
{
    (void)state;
    CASE_AS_IT_IS(gathers, step_seal);
    CASE(gathers, step_seal, it->store_port.commits = 1);
    CASE(gathers, step_seal, it->store_port.commits = 0);
    CASE(gathers, step_seal, it->store_port.commits = 3);
    CASE(gathers, step_seal, it->commit_count = 0);
    CASE(gathers, step_seal, it->options.durability = LEAT_DURABILITY_MEMORY);
    CASE(gathers, step_seal, it->hibernating = LOG_HIBERNATED);
    CASE(gathers, step_seal, it->old.seg = it->head.seg);
    CASE(gathers, step_seal, it->old.seg = it->head.seg, it->commit_count = 0);
    CASE(gathers, step_seal, it->head.seal_count = LOG_SEALS_MAX);
    CASE(gathers, step_seal, shown_already());
    CASE(gathers, step_seal, it->head.writer.sealed_bytes = it->head.writer.used);
    TRACE_IS(
        "(void)0:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->store_port.commits = 1:    used 712 sealed 504/1 safe 504/1 shown 0: in flight 1\n"
        "it->store_port.commits = 0:    used 712 sealed 504/1 safe 504/1 shown 0: in flight 1\n"
        "it->store_port.commits = 3:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->commit_count = 0:    used 744 sealed 744/2 safe 504/1 shown 0: in flight 0\n"
        "it->options.durability = LEAT_DURABILITY_MEMORY:    used 744 sealed 744/2 safe 504/1 "
        "shown 0: in flight 1\n"
        "it->hibernating = LOG_HIBERNATED:    used 712 sealed 504/1 safe 504/1 shown 0: in flight "
        "1\n"
        "it->old.seg = it->head.seg:    used 712 sealed 504/1 safe 504/1 shown 0: in flight 1\n"
        "it->old.seg = it->head.seg, it->commit_count = 0:    used 712 sealed 504/1 safe 504/1 "
        "shown 0: in flight 0\n"
        "it->head.seal_count = LOG_SEALS_MAX:    used 712 sealed 504/1 safe 504/1 shown 0: 0/0 0/0 "
        "0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 0/0 in flight 1\n"
        "shown_already():    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->head.writer.sealed_bytes = it->head.writer.used:    used 712 sealed 712/1 safe 504/1 "
        "shown 712: 712/1 in flight 1\n");
}

static void sealed(void)
{
    gathers();
    log_step_seal(it);
}

static void step_safe(void)
{
    log_step_safe(it);
    open_tell();
}

static void commits_follow_each_other(void **state)
{
    (void)state;
    CASE_AS_IT_IS(sealed, step_safe);
    CASE(sealed, step_safe, it->commit_count = 0);
    CASE(sealed, step_safe, it->commit_count = 0, it->store_port.commits = 1);
    CASE(sealed, step_safe, it->commit_count = 0, it->state = LEAT_LOG_STOPPED);
    CASE(sealed, step_safe, it->commit_count = 0, it->hibernating = LOG_HIBERNATED);
    CASE(sealed, step_safe, it->commit_count = 0, it->head.safe_bytes = it->head.writer.used);
    CASE(sealed, step_safe, it->commit_count = 2);
    CASE(sealed, step_safe, it->store_port.commits = 1);
    CASE(sealed, step_safe, it->state = LEAT_LOG_STOPPED);
    CASE(sealed, step_safe, it->old.seg = it->head.seg);
    CASE(sealed, step_safe, it->commits[0].req.seg = NULL);
    CASE(sealed, step_safe, it->commits[0].asked.bytes = it->head.writer.sealed_bytes);
    CASE(sealed, step_safe, it->commits[0].asked.bytes = it->head.writer.sealed_bytes - 1);
    TRACE_IS(
        "(void)0: COMMIT s0 504..744 and on\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 2\n"
        "it->commit_count = 0: COMMIT s0 504..744 and on\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->commit_count = 0, it->store_port.commits = 1: COMMIT s0 504..744\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->commit_count = 0, it->state = LEAT_LOG_STOPPED:    used 744 sealed 744/2 safe 504/1 "
        "shown 744: 744/2 in flight 0\n"
        "it->commit_count = 0, it->hibernating = LOG_HIBERNATED:    used 744 sealed 744/2 safe "
        "504/1 shown "
        "744: "
        "744/2 in flight 0\n"
        "it->commit_count = 0, it->head.safe_bytes = it->head.writer.used:    used 744 sealed "
        "744/2 safe 744/1 shown 744: 744/2 in flight 0\n"
        "it->commit_count = 2:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 2\n"
        "it->store_port.commits = 1:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->state = LEAT_LOG_STOPPED:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->old.seg = it->head.seg:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->commits[0].req.seg = NULL:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->commits[0].asked.bytes = it->head.writer.sealed_bytes:    used 744 sealed 744/2 safe "
        "504/1 shown 744: 744/2 in flight 1\n"
        "it->commits[0].asked.bytes = it->head.writer.sealed_bytes - 1: COMMIT s0 504..744 and on\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 2\n");
}

static void ahead(void)
{
    sealed();
    it->options.durability = LEAT_DURABILITY_MEMORY;
    it->store_port.ahead = watch_ahead;
}

static void what_comes_meanwhile_is_sent_ahead(void **state)
{
    (void)state;
    CASE_AS_IT_IS(ahead, step_safe);
    CASE(ahead, step_safe, it->options.durability = LEAT_DURABILITY_DISK);
    CASE(ahead, step_safe, it->store_port.ahead = NULL);
    CASE(ahead, step_safe, it->commit_count = 0, fake->memory_is_safe = true);
    CASE(ahead, step_safe, it->commit_count = 0, fake->memory_is_safe = false);
    CASE(ahead, step_safe, it->state = LEAT_LOG_STOPPED);
    CASE(ahead, step_safe, it->hibernating = LOG_HIBERNATED);
    CASE(ahead, step_safe, it->old.seg = it->head.seg);
    CASE(ahead, step_safe, it->commits[0].req.seg = NULL);
    CASE(ahead, step_safe, it->commits[0].asked.bytes = it->head.writer.sealed_bytes);
    CASE(ahead, step_safe, it->commits[0].asked.bytes = it->head.writer.sealed_bytes - 1);
    TRACE_IS(
        "(void)0: ahead s0 744\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->options.durability = LEAT_DURABILITY_DISK: COMMIT s0 504..744 and on\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 2\n"
        "it->store_port.ahead = NULL:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->commit_count = 0, fake->memory_is_safe = true:    used 744 sealed 744/2 safe "
        "744/2 shown 744: in flight 0\n"
        "it->commit_count = 0, fake->memory_is_safe = false: COMMIT s0 504..744\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->state = LEAT_LOG_STOPPED:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 "
        "in flight 1\n"
        "it->hibernating = LOG_HIBERNATED:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->old.seg = it->head.seg:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in "
        "flight 1\n"
        "it->commits[0].req.seg = NULL:    used 744 sealed 744/2 safe 504/1 shown 744: 744/2 "
        "in flight 1\n"
        "it->commits[0].asked.bytes = it->head.writer.sealed_bytes:    used 744 sealed 744/2 "
        "safe 504/1 shown 744: 744/2 in flight 1\n"
        "it->commits[0].asked.bytes = it->head.writer.sealed_bytes - 1: ahead s0 744\n"
        "   used 744 sealed 744/2 safe 504/1 shown 744: 744/2 in flight 1\n");
}

/* ---- made anew ---- */

static void anew_tell(void)
{
    const struct leat_log *log_made = it;
    trace("-> %llu closed %llu memory, %llu..%llu acked %llu s%llu..%llu%s%s%s%s%s:",
          (unsigned long long)log_made->closed_bytes, (unsigned long long)log_made->memory_bytes,
          (unsigned long long)log_made->first_offset, (unsigned long long)log_made->next_offset,
          (unsigned long long)log_acked(log_made), (unsigned long long)log_made->first_segment,
          (unsigned long long)log_made->next_segment, log_is_unloaded(log_made) ? " cold" : "",
          log_front_is_unknown(log_made) ? " front?" : "", log_made->damage_look ? " look" : "",
          log_made->jumped ? " jumped" : "", log_backfill_runs(log_made) ? " follow" : "");
    for (uint32_t i = 0; i < log_made->slot_count; i++)
        trace(" %llu%s%s%s", (unsigned long long)slot(i)->seg->id.v, slot(i)->closed ? "c" : "-",
              log_slot_is_lost(slot(i)) ? "l" : "",
              slot(i)->seg->log_pointer == it ? "" : " not its own");
    trace("%s\n", log_made->dirty ? ", dirty" : "");
}

static void three(void)
{
    segments(3);
}

static void anew(uint64_t lost, uint64_t jump, bool evicted)
{
    reopen(fake, lost, jump, evicted);
    it = fake->log;
}

static void log_is_made_of_what_is_held(void **state)
{
    (void)state;
    CASE(three, anew_tell, anew(0, 0, false));
    CASE(three, anew_tell, anew(0, 0, true));
    CASE(three, anew_tell, anew(2, 0, false));
    CASE(three, anew_tell, anew(8, 0, false));
    CASE(three, anew_tell, anew(15, 0, false));
    CASE(three, anew_tell, anew(0, 1000, false));
    CASE(three, anew_tell, slot(1)->seg->integrity = LEAT_INTEGRITY_CORRUPT, anew(0, 0, true));
    CASE(three, anew_tell, fake->backfill_follows = true, anew(1, 0, false));
    TRACE_IS("anew(0, 0, false): -> 90576 closed 163840 memory, 0..800 acked 800 s0..4 cold front? "
             "look: 0c 1c 2c 3c, dirty\n"
             "anew(0, 0, true): -> 90576 closed 0 memory, 0..800 acked 800 s0..4 cold front? look: "
             "0c 1c 2c 3c, dirty\n"
             "anew(2, 0, false): -> 79064 closed 147456 memory, 0..800 acked 800 s0..4 cold front? "
             "look: 0c 2c 3c, dirty\n"
             "anew(8, 0, false): -> 84736 closed 98304 memory, 0..800 acked 800 s0..4 cold front? "
             "look: 0c 1c 2c, dirty\n"
             "anew(15, 0, false): -> 0 closed 0 memory, 800..800 acked 800 s4..4 look:\n"
             "anew(0, 1000, false): -> 90576 closed 163840 memory, 0..1800 acked 1800 s0..4 cold "
             "front? look jumped: 0c 1c 2c 3c, dirty\n"
             "slot(1)->seg->integrity = LEAT_INTEGRITY_CORRUPT, anew(0, 0, true): -> 90576 closed "
             "0 memory, 0..800 "
             "acked 800 s0..4 cold front? look: 0c 1cl 2c 3c, dirty\n"
             "fake->backfill_follows = true, anew(1, 0, false): -> 79064 closed 147456 memory, "
             "100..800 acked 800 s1..4 cold front? look follow: 1c 2c 3c, dirty\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(append_is_stamped_and_counted),
        TRACE_TEST(append_is_refused_by_name),
        TRACE_TEST(append_waits_for_room),
        TRACE_TEST(answer_of_the_store_makes_a_prefix_safe),
        TRACE_TEST(trailers_are_written_and_shown),
        TRACE_TEST(commits_follow_each_other),
        TRACE_TEST(what_comes_meanwhile_is_sent_ahead),
        TRACE_TEST(log_is_made_of_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
