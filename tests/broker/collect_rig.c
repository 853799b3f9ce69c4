/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/collect_rig.h"
#include "broker/data/core_data.h"

struct collect_rig it;
static size_t bytes_before;

/* ---- what it calls ---- */

void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    said("timer %llu", (unsigned long long)delay_us);
    it.timer = timer;
}
void leat_collected(const struct leat_post *post, struct leat_collect *collect)
{
    assert_ptr_equal(post, &alone.post);
    assert_ptr_equal(collect, &it.collect);
    said("collected %s, %zu rows", leat_err_name(collect->rc), collect->row_count);
}
void leat_pulled(const struct leat_post *post, struct leat_pull *pull)
{
    assert_ptr_equal(post, &alone.post);
    assert_ptr_equal(pull, &it.wanted);
    assert_null(it.timer);
    said("pulled %s%s%s", leat_err_name(pull->rc), pull->rc == LEAT_OK ? "" : ": ",
         pull->rc == LEAT_OK ? "" : pull->error.text);
}
leat_err leat_backup_fence(struct leat_backup *backup, const char *node, uint64_t incarnation,
                           void (*on_done)(void *arg), void *arg)
{
    assert_ptr_equal(backup, &it);
    said("fence %s %llu", node, (unsigned long long)incarnation);
    it.on_fenced = on_done;
    it.fence_arg = arg;
    return it.fence;
}
void leat_backup_collect(struct leat_backup *backup,
                         bool (*wanted)(void *arg, struct leat_log_ref log),
                         void (*each)(void *arg, const struct leat_replica_info *info), void *arg)
{
    assert_ptr_equal(backup, &it);
    said("look");
    for (size_t i = 0; i < it.replica_count; i++)
        if (wanted(arg, it.replicas[i].log)) each(arg, &it.replicas[i]);
}
leat_err leat_backup_look(struct leat_backup *backup, uint64_t handle,
                          struct leat_prefix_id prefix_id, void (*on_done)(void *arg, bool begins),
                          void *arg)
{
    assert_ptr_equal(backup, &it);
    said("look at %llu for %s", (unsigned long long)handle, prefix_id_text(prefix_id));
    it.on_looked = on_done;
    it.look_arg = arg;
    return it.look;
}
leat_err leat_backup_flush(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                           void (*on_done)(void *arg, leat_err rc), void *arg)
{
    assert_ptr_equal(backup, &it);
    said("flush %s segment %llu %s", ref_text(log), (unsigned long long)segment.v,
         prefix_id_text(prefix_id));
    it.on_flushed = on_done;
    it.flush_arg = arg;
    return it.flush;
}
bool leat_backup_holds(const struct leat_backup *backup, struct leat_log_ref log,
                       struct leat_segment_id segment, struct leat_prefix_id prefix_id)
{
    assert_ptr_equal(backup, &it);
    assert_true(leat_log_ref_equal(log, it.wanted.log));
    assert_int_equal(segment.v, it.wanted.segment);
    assert_int_equal(prefix_id.crc, it.wanted.prefix_id.crc);
    return it.holds;
}
leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull)
{
    char from[64] = "";
    assert_ptr_equal(backup, &it);
    assert_null(pull->into);
    assert_false(pull->whole);
    for (unsigned i = 0, used = 0; i < pull->node_count; i++)
        used += (unsigned)snprintf(from + used, sizeof from - used, " %u", pull->nodes[i]);
    said("pull %s segment %llu %s next %llu version %u%s, from%s", ref_text(pull->log),
         (unsigned long long)pull->segment.v, prefix_id_text(pull->prefix_id),
         (unsigned long long)pull->next_offset, pull->version,
         pull->provisional ? " provisional" : "", from);
    it.pulling = pull;
    return it.pull;
}
bool leat_scan_only_start(const struct leat_scan *scan)
{
    return scan->next_offset == scan->base_offset;
}
void leat_scan_segment(const uint8_t *segment, uint32_t bytes, struct leat_scan *out_scan)
{
    assert_non_null(segment);
    said("scan %u bytes", bytes);
    *out_scan = it.scan;
}
size_t leat_rows_filter(struct leat_replica_row *rows, size_t count,
                        const struct leat_log_record *record)
{
    char ids[256] = "";
    size_t kept = 0;
    for (size_t i = 0, used = 0; i < count && used < 200; i++)
        used += (size_t)snprintf(ids + used, sizeof ids - used, " %llu",
                                 (unsigned long long)rows[i].segment);
    said("filter %s, whose end is %llu:%s", ref_text(rows[0].log),
         (unsigned long long)record->tail.segment, ids);
    for (size_t i = 0; i < count; i++)
        if (rows[i].segment != 66) rows[kept++] = rows[i]; /* which is not asked for */
    return kept;
}

/* ---- the tests' own ---- */

static void on_crashed(void *owner)
{
    assert_ptr_equal(owner, &it);
    it.crashes++;
}

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    alone.node.life = LEAT_LIFE_UP;
    alone.cores[1].env = NULL; /* all of it is on core 0 */
    alone.node.options.on_crashed = on_crashed;
    alone.node.options.owner = &it;
    struct leat_core *core = &alone.cores[0];
    core->data->replicate->backup = (void *)&it;
    for (unsigned i = 0; i < 4; i++) {
        it.members[i].number = 10 + i;
        snprintf(it.members[i].info.name, sizeof it.members[i].info.name, "n%u", i);
        it.members[i].self = i == 1;
        core->members.rows[core->members.count++] = &it.members[i];
    }
    for (uint32_t i = 0; i < LOGS; i++)
        it.logs[i] = (struct leat_collect_log){
            .log = {ALONE_STREAM, 0, i},
            .record = {.tail = {.segment = 4 + i, .prefix_id = {1000, 4 + i}}}};
    it.collect = (struct leat_collect){
        .attempt = 0xabc, .crashed = it.crashed, .logs = it.logs, .log_count = LOGS};
    it.wanted = (struct leat_pull){.log = {ALONE_STREAM, 1, 0},
                                   .segment = 4,
                                   .prefix_id = {1000, 4},
                                   .next_offset = 50,
                                   .version = 3,
                                   .source_count = 2,
                                   .sources = {{.node = "n3"}, {.node = "n0"}, {.node = "n2"}}};
}

void end(void)
{
    leat_mem_free(it.collect.rows);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

void expire(void)
{
    struct leat_timer *timer = it.timer;
    assert_non_null(timer);
    it.timer = NULL;
    timer->on_expired(timer);
}
