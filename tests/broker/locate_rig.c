/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/locate_rig.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"

struct locate_rig it;
static size_t bytes_before;
static char buffer[16];

/* ---- what it calls ---- */

void *leat_buffer_try(struct leat_core *core)
{
    assert_int_equal(core->index, 0);
    said("buffer?");
    return it.no_buffer ? NULL : buffer;
}
void leat_buffer_wait(struct leat_core *core, struct leat_peer *peer, struct leat_buffer_wait *wait)
{
    assert_int_equal(core->index, 0);
    said("wait for a buffer, for %zu", (size_t)(peer - it.peers));
    it.waiting = wait;
}
void leat_buffer_give(struct leat_core *core, void *given)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(given, buffer);
    said("give the buffer");
}
leat_err leat_partition_place(struct leat_core *core, struct leat_log_ref ref, uint32_t *out_home,
                              struct leat_error *error)
{
    (void)core;
    if (it.place != LEAT_OK) return leat_error_set(error, it.place, "not here");
    *out_home = ref.log;
    return LEAT_OK;
}
leat_err leat_partition_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                              uint32_t *out_home, struct leat_error *error)
{
    assert_null(error);
    said("route %s, epoch %u", ref_text(ref), epoch);
    *out_home = ref.log;
    return it.route;
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
const char *leat_partition_absent_words(leat_err absent)
{
    return absent == LEAT_E_STARTING ? "it comes" : "it has gone";
}
leat_err leat_partition_hope(const struct leat_partition *partition, const struct leat_read *read)
{
    assert_non_null(partition);
    assert_int_equal(read->rc, LEAT_E_DAMAGED);
    said("hope?");
    return it.hope;
}
void leat_partition_watch(struct leat_partition *partition)
{
    said("watch %s", ref_text(partition->ref));
}
bool leat_log_reads_wait(const struct leat_log *log)
{
    (void)log;
    return it.reads_wait;
}
static void op_end(struct leat_locate_op *op, leat_err rc)
{
    op->rc = rc;
    op->read.rc = it.read_rc;
    op->offset.v = 1000 + (uint64_t)op->value;
    op->timestamp_ms = 2000 + op->value;
    op->epoch.v = 7;
    op->position = (struct leat_position){1, 17, 99};
    op->first_position = (struct leat_position){1, 16, 0};
    op->end_position = (struct leat_position){2, 40, 50};
}
leat_err leat_log_locate(struct leat_log *log, struct leat_locate_op *op)
{
    struct leat_partition *partition = (void *)log;
    said("locate %u %lld %u in %s%s", op->what, (long long)op->value, op->from.position,
         ref_text(partition->ref), op->read.disk_buffer != NULL ? ", with a buffer" : "");
    assert_int_equal(op->read.disk_buffer_bytes,
                     op->read.disk_buffer != NULL ? LEAT_DISK_BUFFER_BYTES : 0);
    op->read.log = log;
    it.op = op;
    if (it.later) return LEAT_E_AGAIN;
    op_end(op, it.rc);
    op->seeks = it.seeks;
    return LEAT_OK;
}
leat_err leat_locate_step(struct leat_locate_op *op)
{
    said("step of %lld", (long long)op->value);
    if (it.steps == 0) return LEAT_OK;
    it.steps--;
    return LEAT_E_AGAIN;
}
void leat_catch_up(struct leat_core *core, struct leat_catch_up *catch_up)
{
    assert_int_equal(core->index, 0);
    assert_null(it.catching_up);
    said("catch up");
    it.catching_up = catch_up;
}

/* ---- the tests' own ---- */

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        it.partition[q] = (struct leat_partition){
            .ref = {ALONE_STREAM, 1, q}, .core = &alone.cores[q], .log = (void *)&it.partition[q]};
        leat_list_init(&alone.cores[q].data->locates);
        leat_list_init(&alone.cores[q].data->locating);
        leat_confirmer_init(&alone.cores[q]);
    }
    for (unsigned i = 0; i < LOCATORS; i++) {
        it.peers[i] = (struct leat_peer){
            .core = &alone.cores[0], .conn = (void *)&it, .address_number = 50 + i / 2};
        leat_list_init(&it.peers[i].locators);
    }
    leat_list_init(&calls.peer.locators);
    calls.peer.conn = (void *)&it;
    leat_list_init(&alone.cores[0].link_peer.locators);
}

void end(void)
{
    for (uint32_t q = 0; q < ALONE_CORES; q++)
        assert_true(leat_list_empty(&alone.cores[q].data->locates) &&
                    leat_list_empty(&alone.cores[q].data->locating));
    for (unsigned i = 0; i < LOCATORS; i++)
        assert_true(leat_list_empty(&it.peers[i].locators));
    assert_int_equal(calls.open, 0);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

static void on_done(struct leat_locator *locator)
{
    said("done %zu", (size_t)((struct locator *)locator->owner - it.locators));
}

struct locator *locates(unsigned at, unsigned peer, uint32_t log, uint32_t count)
{
    struct locator *it_is = &it.locators[at];
    memset(it_is, 0xa5, sizeof *it_is);
    memset(it_is->found, 0, sizeof it_is->found);
    for (uint32_t i = 0; i < PLACES; i++)
        it_is->asked[i] = (struct leat_msg_locate){.log = {ALONE_STREAM, 1, log},
                                                   .what = LEAT_LOCATE_OFFSET,
                                                   .value = 100 * (int64_t)at + i,
                                                   .position = {3, 4, 5}};
    it_is->locator.core = &alone.cores[0];
    it_is->locator.peer = peer == LOCATORS ? &alone.cores[0].link_peer : &it.peers[peer];
    it_is->locator.count = count;
    it_is->locator.asked = it_is->asked;
    it_is->locator.found = it_is->found;
    it_is->locator.epochs = it_is->epochs;
    it_is->locator.ranges = it_is->ranges;
    it_is->locator.on_done = on_done;
    it_is->locator.owner = it_is;
    leat_locator_start(&it_is->locator);
    return it_is;
}

void located(leat_err rc)
{
    assert_non_null(it.op);
    op_end(it.op, rc);
    it.op->on_done(it.op);
}

void caught_up(leat_err rc)
{
    struct leat_catch_up *catch_up = it.catching_up;
    assert_non_null(catch_up);
    it.catching_up = NULL;
    catch_up->on_done(catch_up, rc);
}
