/* SPDX-License-Identifier: Apache-2.0 */
/* Logs and bytes of the model broker, and the checks: every committed end of a log is held against
 * what was acked. */
#include "tests/coordinator/recovery_parts.h"

#include "base/crc32c.h"
#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"

_Noreturn void model_wrong(struct model *model, const char *what, unsigned log)
{
    fprintf(stderr, "seed %llu: log %u: %s\n", (unsigned long long)model->rig->world->seed, log,
            what);
    model_dump(model);
    abort();
}

/* ---- logs and bytes ---- */

int model_stream_slot(struct model *model, uint32_t id)
{
    for (int k = 0; k < MODEL_STREAMS; k++)
        if (model->stream_ids[k] == id) return k;
    return -1;
}
struct leat_log_ref model_ref_of(struct model *model, unsigned log)
{
    return (struct leat_log_ref){model->stream_ids[log / (MODEL_STREAMLETS * MODEL_Q)],
                                 log / MODEL_Q % MODEL_STREAMLETS, log % MODEL_Q};
}
int model_log_of(struct model *model, struct leat_log_ref ref)
{
    int k = model_stream_slot(model, ref.stream);
    return k < 0 ? -1 : k * MODEL_STREAMLETS * MODEL_Q + (int)(ref.streamlet * MODEL_Q + ref.log);
}

struct leat_prefix_id truth_prefix_id(const struct truth *truth, uint32_t count, bool closed)
{
    struct {
        uint64_t log, segment, base, epoch, count, closed;
    } head = {truth->log, truth->segment, truth->base, truth->epoch, count, closed};
    uint32_t crc = leat_crc32c(0, &head, sizeof head);
    crc = leat_crc32c(crc, truth->records, count * sizeof truth->records[0]);
    return (struct leat_prefix_id){64 + 16 * count + (closed ? 32 : 0), crc};
}
struct truth *truth_make(struct model *model, unsigned log, uint64_t segment, uint64_t base,
                         uint32_t epoch)
{
    struct truth *truth = calloc(1, sizeof *truth);
    LEAT_ASSERT(truth && model->truth_count < MODEL_TRUTHS_MAX);
    model->truths[model->truth_count++] = truth;
    truth->log = log;
    truth->segment = segment;
    truth->base = base;
    truth->epoch = epoch;
    return truth;
}

const struct truth *truth_of_tail(struct model *model, unsigned log,
                                  const struct leat_tail_record *tail, uint32_t *out_count,
                                  bool *out_closed)
{
    for (unsigned i = 0; i < model->truth_count; i++) {
        const struct truth *truth = model->truths[i];
        if (truth->log != log || truth->segment != tail->segment) continue;
        for (uint32_t c = 0; c <= truth->count; c++)
            for (int closed = 0; closed < 2; closed++)
                if (prefix_id_same(truth_prefix_id(truth, c, closed != 0), tail->prefix_id)) {
                    *out_count = c;
                    *out_closed = closed != 0;
                    return truth;
                }
    }
    return NULL;
}

/* ---- checks ---- */

static void tail_check(struct model *model, unsigned log, const struct leat_tail_record *tail)
{
    struct model_log *it = &model->logs[log];
    uint32_t count = 0;
    bool closed;
    if (tail->segment == UINT64_MAX) {
        if (it->acked_count != 0) model_wrong(model, "an empty tail, and records were acked", log);
        return;
    }
    const struct truth *truth = truth_of_tail(model, log, tail, &count, &closed);
    if (!truth) model_wrong(model, "a tail of bytes that nobody wrote", log);
    if (truth->base + count != tail->next_offset)
        model_wrong(model, "a tail with another offset", log);
    if (tail->next_offset < it->acked_count)
        fprintf(stderr, "tail: segment %llu of epoch %u, %u records, next offset %llu; acked %u\n",
                (unsigned long long)tail->segment, truth->epoch, count,
                (unsigned long long)tail->next_offset, it->acked_count);
    if (tail->next_offset < it->acked_count)
        model_wrong(model, "the tail lacks acked records", log);
    /* From the end to the beginning, along the chain. */
    while (truth) {
        for (uint32_t i = 0; i < count; i++)
            if (truth->base + i < it->acked_count &&
                it->acked[truth->base + i] != truth->records[i])
                model_wrong(model, "the tail has another record where one was acked", log);
        if (truth->base != 0 && !truth->previous) model_wrong(model, "the chain ends early", log);
        if (truth->previous && truth->previous->base + truth->previous_count != truth->base)
            model_wrong(model, "the chain has a gap", log);
        count = truth->previous_count;
        truth = truth->previous;
    }
}

void model_tables_check(struct model *model, struct rig_node *node, struct leat_stream_desc *desc)
{
    int k = model_stream_slot(model, desc->id);
    struct leat_machine_stream *stream =
        leat_machine_stream_find(&node->coordinator->machine, desc->id);
    if (k < 0 || !stream) return;
    for (uint32_t s = 0; s < MODEL_STREAMLETS; s++) {
        uint32_t epoch = desc->streamlets[s].epoch.v;
        LEAT_ASSERT(epoch < MODEL_EPOCHS_MAX);
        uint64_t *owner = &model->owners[k][s][epoch].owner;
        if (*owner != 0 && *owner != desc->streamlets[s].owner)
            model_wrong(model, "two owners in one epoch", (unsigned)k * 8 + s * 2);
        *owner = desc->streamlets[s].owner;
        for (uint32_t q = 0; q < MODEL_Q; q++) {
            unsigned log = (unsigned)k * MODEL_STREAMLETS * MODEL_Q + s * MODEL_Q + q;
            const struct leat_machine_log *row = &stream->logs[s * MODEL_Q + q];
            struct model_log *it = &model->logs[log];
            if (row->epoch.v < it->sealed_epoch) continue; /* an old state, told again */
            it->sealed_epoch = row->epoch.v;
            if (row->record.opened) continue; /* one that waits: its marks go on saying it */
            it->tail_epoch = row->epoch.v;
            if (it->checked &&
                memcmp(&it->checked_tail.prefix_id, &row->record.tail.prefix_id,
                       sizeof it->checked_tail.prefix_id) == 0 &&
                it->checked_tail.segment == row->record.tail.segment)
                continue;
            tail_check(model, log, &row->record.tail);
            it->checked = true;
            it->checked_tail = row->record.tail;
        }
    }
}

/* ---- for people ---- */

void model_dump(struct model *model)
{
    if (!model->rig->world->entered) rig_dump(model->rig);
    for (unsigned at = 0; at < model->rig->node_count; at++) {
        const struct rig_node *node = &model->rig->nodes[at];
        if (!node->up || !node->coordinator || !co_leads(node->coordinator)) continue;
        const struct co_recovery *it = node->coordinator->recovery;
        fprintf(stderr, "n%u leads, phase %d, %u wait\n", at, (int)it->phase, it->waiting_count);
        for (uint32_t i = 0; i < it->waiting_count && i < LEAT_RECOVERY_WAITING_MAX; i++)
            fprintf(stderr, "log %d waits: %s\n", model_log_of(model, it->waiting[i].log),
                    it->waiting[i].why);
        for (unsigned log = 0; log < MODEL_LOGS; log++) {
            struct leat_machine_stream *stream;
            const struct leat_machine_log *row = leat_machine_log_find(
                &node->coordinator->machine, model_ref_of(model, log), &stream);
            if (row && row->record.opened)
                fprintf(stderr, "log %u: epoch %u, opened by %u, version %u\n", log, row->epoch.v,
                        row->record.stamp_epoch.v, row->record.stamp_version);
            else if (row)
                fprintf(stderr, "log %u: epoch %u, tail %lld, %u bytes, next %llu\n", log,
                        row->epoch.v, (long long)row->record.tail.segment,
                        row->record.tail.prefix_id.bytes,
                        (unsigned long long)row->record.tail.next_offset);
        }
    }
    for (unsigned log = 0; log < MODEL_LOGS; log++) {
        fprintf(stderr, "log %u: acked %u, epoch %u |", log, model->logs[log].acked_count,
                model->logs[log].sealed_epoch);
        for (unsigned at = 0; at < model->rig->node_count; at++) {
            const struct own *own = &model->nodes[at].own[log];
            if (own->active)
                fprintf(stderr, " owner n%u epoch %u opened %d busy %d mask %x version %u", at,
                        own->epoch, own->opened, own->busy, own->mask, own->version);
            for (unsigned i = 0; i < model->nodes[at].copy_count; i++) {
                const struct copy *copy = &model->nodes[at].copies[i];
                if (!copy->truth || copy->truth->log != log) continue;
                if (copy->closed && copy->truth->base + copy->count < model->logs[log].acked_count)
                    continue;
                fprintf(stderr, " n%u:%llu/e%u.v%u=%u%s%s", at,
                        (unsigned long long)copy->truth->segment, copy->truth->epoch, copy->version,
                        copy->count, copy->closed ? "c" : "", copy->pulled ? "p" : "");
            }
        }
        fprintf(stderr, "\n");
    }
}
