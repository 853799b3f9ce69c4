/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/fetch_read_rig.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"

struct fetch_rig it;

/* ---- what it calls ---- */

void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer)
{
    assert_ptr_equal(stock, &alone.cores[0].read_pool);
    assert_null(sharer);
    if (it.no_read) return NULL;
    it.reads++;
    void *read = malloc(sizeof(struct leat_fetch_read));
    assert_non_null(read);
    memset(read, 0xa5, sizeof(struct leat_fetch_read)); /* whatever it was */
    return read;
}
void leat_stock_give(struct leat_stock *stock, void *element, struct leat_peer *peer,
                     struct leat_sharer *sharer)
{
    assert_ptr_equal(stock, &alone.cores[0].read_pool);
    assert_null(peer);
    assert_null(sharer);
    it.reads--;
    free(element);
}
void *leat_buffer_try(struct leat_core *core)
{
    assert_int_equal(core->index, 0);
    if (it.no_buffer) return NULL;
    return it.buffer[it.buffers++];
}
void leat_buffer_wait(struct leat_core *core, struct leat_peer *peer, struct leat_buffer_wait *wait)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(peer, &it.peer);
    assert_ptr_equal(wait, &it.fetch.buffer_wait);
    said("wait for a buffer");
}
void leat_buffer_give(struct leat_core *core, void *buffer)
{
    assert_int_equal(core->index, 0);
    assert_non_null(buffer);
    it.buffers--;
    said("give a buffer");
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    return it.gone ? NULL : &it.partition[ref.log];
}
leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    return it.absent;
}
leat_err leat_partition_hope(const struct leat_partition *partition, const struct leat_read *read)
{
    assert_non_null(partition);
    return it.hope != LEAT_OK && read->rc == LEAT_E_DAMAGED ? it.hope : read->rc;
}
bool leat_partition_lacks(const struct leat_partition *partition, const struct leat_read *read)
{
    assert_non_null(partition);
    assert_non_null(read);
    return it.lacks;
}
void leat_partition_watch(struct leat_partition *partition)
{
    said("watch %s", ref_text(partition->ref));
}
void leat_takeover_older(struct leat_partition *partition)
{
    said("look for older ones of %s", ref_text(partition->ref));
    leat_backfill_enter(partition, LEAT_BACKFILL_UNDER_WAY);
    if (!it.older_found) leat_backfill_enter(partition, LEAT_BACKFILL_DUE);
}
void leat_log_older_again(struct leat_log *log)
{
    (void)log;
    said("reads wait again");
}
void leat_log_older_done(struct leat_log *log, bool node_down)
{
    (void)log;
    said("older ones done");
}
bool leat_log_front_known(const struct leat_log *log)
{
    (void)log;
    return !it.front_unknown;
}
bool leat_log_reads_wait(const struct leat_log *log)
{
    (void)log;
    return it.reads_wait;
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    assert_non_null(log);
    *out_info =
        (struct leat_log_info){.first_offset = 5, .acked_offset = it.acked, .state = it.log_state};
}
static void read_end(struct leat_read *read)
{
    read->rc = it.rc;
    read->bytes = it.rc == LEAT_OK || it.rc == LEAT_E_NO_MEMORY ? it.bytes : 0; /* by then */
    read->full = it.full;
    read->record_count = it.records;
    read->next.v = it.next;
    read->next_position = (struct leat_position){it.group, 20, 30};
    if (it.pins) read->pinned = &it.seg;
}
static leat_err read_begin(struct leat_log *log, struct leat_read *read, const char *what)
{
    struct leat_partition *partition = (void *)log;
    said("%s %s from %s%llu, %u bytes%s%s", what, ref_text(partition->ref),
         read->by_position ? "position " : "",
         (unsigned long long)(read->by_position ? read->position.position : read->from.v),
         read->max_bytes, read->strict ? ", strict" : "",
         read->disk_buffer != NULL ? ", with a buffer" : "");
    assert_int_equal(read->disk_buffer_bytes,
                     read->disk_buffer != NULL ? LEAT_DISK_BUFFER_BYTES : 0);
    assert_true(leat_list_empty(&read->link));
    assert_false(read->full || read->bytes != 0 || read->iov_count != 0 || read->phase != 0);
    assert_null(read->pinned);
    if (it.reads_begun == 0) assert_int_equal(read->rc, LEAT_OK);
    read->log = log;
    it.read = read;
    if (it.later || (++it.reads_begun == 2 && it.second_later)) return LEAT_E_AGAIN;
    read_end(read);
    return LEAT_OK;
}
leat_err leat_log_read(struct leat_log *log, struct leat_read *read)
{
    return read_begin(log, read, "read");
}
leat_err leat_log_front_await(struct leat_log *log, struct leat_read *read)
{
    return read_begin(log, read, "await the front of");
}
void leat_segment_unpin(struct leat_segment *seg, const struct leat_post *post)
{
    assert_ptr_equal(seg, &it.seg);
    assert_ptr_equal(post, &alone.post);
    said("unpin");
}
void leat_fetch_finish(struct leat_fetch *fetch)
{
    assert_ptr_equal(fetch, &it.fetch);
    assert_null(fetch->at);
    said("finish");
}

/* ---- the tests' own ---- */

void begin(uint32_t count, uint32_t first_log)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    struct leat_core *core = &alone.cores[0];
    core->read_pool.left = 10;
    leat_list_init(&core->data->starved_reads);
    leat_list_init(&core->data->ready_fetches);
    it.peer.core = core;
    leat_list_init(&it.peer.limited);
    for (uint32_t q = 0; q < ALONE_CORES; q++)
        it.partition[q] = (struct leat_partition){
            .ref = {ALONE_STREAM, 1, q}, .core = &alone.cores[q], .log = (void *)&it.partition[q]};
    it.fetch =
        (struct leat_fetch){.core = core, .peer = &it.peer, .bytes_max = 1000, .items = it.items};
    leat_list_init(&it.fetch.link);
    it.fetch.buffer_wait.owner = &it.fetch;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t log = (first_log + i) % ALONE_CORES;
        it.items[i] =
            (struct leat_fetch_item){.fetch = &it.fetch,
                                     .next = i + 1 < count ? &it.items[i + 1] : NULL,
                                     .want = {.log = {ALONE_STREAM, 1, log}, .offset = 40 + i},
                                     .home = log,
                                     .max_bytes = 600};
    }
    it.fetch.at = it.items;
    it.bytes = 200;
    it.records = 7;
    it.next = it.acked = 60;
    it.group = 1;
}

void end(void)
{
    leat_fetch_drop_reads(&it.fetch);
    assert_null(it.fetch.reads);
    assert_null(it.fetch.reads_last);
    assert_int_equal(it.reads, 0);
    assert_int_equal(it.buffers, 0);
    said_enough();
    alone_end();
}

void run(void)
{
    while (it.fetch.at != NULL && leat_fetch_read_at(&it.fetch))
        ;
}

void ends_later(void)
{
    read_end(it.read);
    it.read->on_done(it.read);
}
