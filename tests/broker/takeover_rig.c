/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/takeover_rig.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"

struct takeover_rig it;
static size_t bytes_before;

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, HOME);
    assert_true(leat_log_ref_equal(ref, LOG));
    return it.there ? &it.partition : NULL;
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    assert_int_equal(delay_us, TICK);
    it.timer = timer;
}
const struct leat_begun_log *leat_begun_find(const struct leat_begun *rows, struct leat_log_ref ref)
{
    if (rows == NULL || rows->count == 0) return NULL;
    return leat_log_ref_equal(rows->rows[0].ref, ref) ? &rows->rows[0] : NULL;
}
leat_err leat_partition_create(struct leat_core *core, struct leat_stream *stream,
                               struct leat_log_ref ref, struct leat_epoch epoch,
                               struct leat_segment *const *segs, size_t seg_count,
                               const struct leat_log_tail *tail,
                               struct leat_partition **out_partition)
{
    assert_int_equal(core->index, HOME);
    assert_ptr_equal(stream, &alone.stream);
    said("make %s, epoch %u, of %zu segments, next %llu at %llu, behind %s%s%s%s", ref_text(ref),
         epoch.v, seg_count, (unsigned long long)tail->next_segment,
         (unsigned long long)tail->next_offset, prefix_id_text(tail->previous),
         tail->jumped ? ", jumped" : "", tail->backfill_follows ? ", older follow" : "",
         tail->stands_in ? ", stands in" : "");
    if (seg_count > 0) assert_ptr_equal(segs[0], &it.seg);
    assert_false(tail->holes);
    if (it.create != LEAT_OK) return it.create;
    it.there = true;
    it.partition.epoch = epoch;
    *out_partition = &it.partition;
    return LEAT_OK;
}
void leat_partition_give_up(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("give up the log");
}
void leat_log_set_state(struct leat_log *log, enum leat_log_state state, const char *why)
{
    assert_ptr_equal(log, &it);
    assert_int_equal(state, LEAT_LOG_WAITING);
    said("it waits: %s", why);
}

/* ---- the log ---- */

uint64_t leat_log_first_retained(const struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return it.retained;
}
bool leat_replicate_stream_is_deleted(const struct leat_core *core, uint32_t stream)
{
    (void)core, (void)stream;
    return it.deleted;
}

bool leat_log_front_known(const struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return it.front_known;
}
void leat_log_front_give_up(struct leat_log *log, bool jumped)
{
    assert_ptr_equal(log, &it);
    said("give up the front%s", jumped ? ", jumped" : "");
}
leat_err leat_log_segment_add(struct leat_log *log, struct leat_segment *seg)
{
    assert_ptr_equal(log, &it);
    assert_ptr_equal(seg, &it.seg);
    said("add segment");
    return it.add;
}
leat_err leat_primary_log_add(struct leat_primary_log *rep, struct leat_segment *seg)
{
    assert_ptr_equal(rep, &it.partition);
    assert_ptr_equal(seg, &it.seg);
    said("look after its copies");
    return it.copies;
}
void leat_primary_log_whole(struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &it.partition);
    said("copies: whole");
}
const struct leat_segment *leat_log_first_held(const struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return it.first_held;
}
const struct leat_segment *leat_log_held(const struct leat_log *log, uint64_t segment)
{
    assert_ptr_equal(log, &it);
    return it.held != NULL && it.held->id.v == segment ? it.held : NULL;
}
bool leat_log_hole_find(const struct leat_log *log, uint64_t below, struct leat_log_hole *out_hole)
{
    assert_ptr_equal(log, &it);
    const struct leat_log_hole *hole =
        it.hole.behind != NULL && it.hole.behind->id.v < below ? &it.hole : &it.lower;
    if (hole->behind == NULL || hole->behind->id.v >= below) return false;
    *out_hole = *hole;
    return true;
}
void leat_log_hole_jumped(struct leat_log *log, uint64_t behind)
{
    assert_ptr_equal(log, &it);
    said("hole in front of %llu is a jump", (unsigned long long)behind);
}
void leat_log_holes_end(struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    said("no holes");
}
void leat_partition_watch(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("watch the log");
}
void leat_log_older_done(struct leat_log *log, bool node_down)
{
    assert_ptr_equal(log, &it);
    assert_int_equal(node_down, it.partition.backfill_node_down);
    said("older ones done");
}
bool leat_log_on_damaged(struct leat_log *log, const struct leat_segment *seg, bool told)
{
    assert_ptr_equal(log, &it);
    assert_false(told);
    said("segment %llu is damaged%s", (unsigned long long)seg->id.v, it.lost ? ", lost" : "");
    return it.lost;
}
uint32_t leat_log_start_end(const uint8_t *bytes, uint32_t count, uint32_t segment_bytes)
{
    (void)bytes;
    said("where does the start of %u bytes end, by %u?", segment_bytes, count);
    return it.start_end;
}
bool leat_log_start_find(const uint8_t *bytes, uint32_t count, struct leat_start *out_start)
{
    (void)bytes;
    said("start entry in %u bytes", count);
    if (it.start_found) *out_start = it.start;
    return it.start_found;
}

/* ---- replicas ---- */

leat_err leat_backup_adopt(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_epoch owner, struct leat_segment_id segment,
                           struct leat_prefix_id prefix_id, uint64_t next_offset,
                           int64_t max_timestamp_ms, unsigned to,
                           void (*on_done)(void *arg, leat_err rc, struct leat_segment *seg),
                           void *arg)
{
    assert_ptr_equal(backup, &it);
    assert_int_equal(to, HOME);
    assert_true(max_timestamp_ms == INT64_MIN);
    said("adopt %s segment %llu %s next %llu, epoch %u", ref_text(log),
         (unsigned long long)segment.v, prefix_id_text(prefix_id), (unsigned long long)next_offset,
         owner.v);
    it.on_adopted = on_done;
    it.adopt_arg = arg;
    it.seg.id = segment;
    it.seg.prefix_id = prefix_id;
    return it.adopt;
}
leat_err leat_backup_look_any(struct leat_backup *backup, struct leat_log_ref log,
                              struct leat_segment_id segment, struct leat_prefix_id prefix_id)
{
    assert_ptr_equal(backup, &it);
    said("look at any %s segment %llu %s", ref_text(log), (unsigned long long)segment.v,
         prefix_id_text(prefix_id));
    return it.look;
}
leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull)
{
    assert_ptr_equal(backup, &it);
    assert_null(pull->into);
    assert_false(pull->provisional);
    said("pull %s segment %llu %s next %llu version %u%s, of %u nodes from %u", ref_text(pull->log),
         (unsigned long long)pull->segment.v, prefix_id_text(pull->prefix_id),
         (unsigned long long)pull->next_offset, pull->version, pull->whole ? " whole" : "",
         pull->node_count, pull->node_count > 0 ? pull->nodes[0] : 0);
    if (it.pull == LEAT_OK) it.pulling = pull;
    return it.pull;
}
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless)
{
    assert_ptr_equal(backup, &it);
    assert_ptr_equal(seg, &it.seg);
    assert_int_equal(incarnation, ALONE_SELF);
    said("take back segment %llu%s", (unsigned long long)seg->id.v, useless ? ", damaged" : "");
    return it.take;
}
void leat_backup_drop_log(struct leat_backup *backup, struct leat_log_ref log,
                          struct leat_epoch epoch, const struct leat_segment_range *unsure)
{
    assert_ptr_equal(backup, &it);
    said("drop what is left of %s, epoch %u, but %llu to %llu", ref_text(log), epoch.v,
         (unsigned long long)unsure->first, (unsigned long long)unsure->end);
}
bool leat_store_rows_damaged(const struct leat_store *store)
{
    assert_ptr_equal(store, &it);
    return it.rows_damaged;
}
struct leat_prefix_id leat_below_best(const struct leat_below_found *found)
{
    return found->candidates[0].prefix_id;
}
bool leat_below_pass(struct leat_below_found *found)
{
    if (found->count < 2) return false;
    found->candidates[0] = found->candidates[1];
    found->count--;
    return true;
}
void leat_below_start(struct leat_below *below)
{
    assert_ptr_equal(below->core, &alone.cores[0]);
    said("newest of %s up to segment %llu?", ref_text(below->ref),
         (unsigned long long)below->segment);
    it.below = below;
}

/* ---- the tests' own ---- */

void node_is(unsigned row, enum leat_node_state state, bool draining)
{
    it.members[row].info.state = state;
    it.members[row].info.draining = draining;
}

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    struct leat_core *core = &alone.cores[0];
    for (unsigned i = 0; i < 4; i++) {
        it.members[i].number = 10 + i;
        it.members[i].self = i == 1;
        it.members[i].info.state = LEAT_NODE_UP;
        core->members.rows[core->members.count++] = &it.members[i];
    }
    node_is(3, LEAT_NODE_GONE, false);
    core->data->replicate->backup = (void *)&it;
    alone.node.store = (void *)&it;
    leat_takeovers_init(core);
    it.partition = (struct leat_partition){.ref = LOG,
                                           .core = &alone.cores[HOME],
                                           .stream = &alone.stream,
                                           .log = (void *)&it,
                                           .copies = (void *)&it.partition,
                                           .epoch = {EPOCH}};
    alone.desc->streamlets[1].epoch.v = 3; /* of the tests' takeovers the lowest */
    it.start_found = it.front_known = true;
    it.start = (struct leat_start){
        .base_offset = 40, .previous = {900, 3}, .first_segment = 2, .first_offset = 20};
    alone.stream.begun = calloc(1, sizeof *alone.stream.begun + sizeof(struct leat_begun_log));
    assert_non_null(alone.stream.begun);
    alone.stream.begun->count = 1;
    *begun() = (struct leat_begun_log){
        .ref = LOG,
        .epoch = {EPOCH},
        .record = {.tail = {.segment = 4, .prefix_id = {1000, 4}, .next_offset = 50}}};
}

struct leat_begun_log *begun(void)
{
    return &alone.stream.begun->rows[0];
}

void end(void)
{
    free(alone.stream.begun);
    alone_end();
    assert_int_equal(takeovers(), 0);
    assert_int_equal(alone.cores[0].takeovers->older_count, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

unsigned takeovers(void)
{
    unsigned count = 0;
    LEAT_LIST_EACH(&alone.cores[0].takeovers->all, each)
    count++;
    return count;
}

struct leat_takeover *ask(void)
{
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    alone_deliver_all();
    said_enough();
    return LEAT_CONTAINER(alone.cores[0].takeovers->all.prev, struct leat_takeover, link);
}

void tick(void)
{
    assert_non_null(it.timer);
    struct leat_timer *timer = it.timer;
    it.timer = NULL;
    timer->on_expired(timer);
}

void adopted(leat_err rc)
{
    assert_non_null(it.on_adopted);
    void (*on_done)(void *, leat_err, struct leat_segment *) = it.on_adopted;
    it.on_adopted = NULL;
    on_done(it.adopt_arg, rc, rc == LEAT_OK ? &it.seg : NULL);
}

void pulled(leat_err rc)
{
    assert_non_null(it.pulling);
    struct leat_backup_pull *pull = it.pulling;
    it.pulling = NULL;
    pull->on_done(pull, rc);
}

void below_found(leat_err rc, uint64_t segment, uint32_t count)
{
    struct leat_below *below = it.below;
    assert_non_null(below);
    it.below = NULL;
    below->found = (struct leat_below_found){.segment = segment, .count = count};
    for (uint32_t i = 0; i < count; i++)
        below->found.candidates[i].prefix_id = (struct leat_prefix_id){1000, 1 + i};
    below->on_done(below, rc);
}

struct leat_takeover *wants(enum takeover_state state, uint32_t bytes)
{
    struct leat_takeover *takeover =
        takeover_create(&alone.cores[HOME], LOG, (struct leat_epoch){EPOCH});
    assert_non_null(takeover);
    takeover->state = state;
    takeover->segment = 4;
    takeover->prefix_id = (struct leat_prefix_id){bytes, bytes > 0 ? 4 : 0};
    takeover->next_offset = 50;
    takeover->tail = (struct leat_tail_record){
        .segment = 4, .prefix_id = takeover->prefix_id, .next_offset = 50};
    takeover_send(takeover);
    alone_deliver_all();
    return takeover;
}

void ends(void)
{
    leat_takeovers_fini(&alone.cores[0]);
    said_enough();
    end();
}

void assert_pauses(const struct leat_takeover *takeover, uint64_t us)
{
    assert_false(takeover->busy);
    assert_int_equal(takeover->again_us, alone.now_us + us);
}

void later(uint64_t us)
{
    said_enough();
    alone.now_us += us;
    tick();
}

void fails(leat_err rc, uint64_t pause_us)
{
    later(pause_us);
    pulled(rc);
}
