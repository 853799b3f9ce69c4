/* SPDX-License-Identifier: Apache-2.0 */
/* See tail_walk.h. A log is reserved, started, written to with one-sided writes whose replies get lost, acked, rolled
 * and hibernated; copies are lost and generations raised; processes crash, machines reboot, owners of the past write
 * on; the coordinator declares crashes, and attempts to recover hear any of the nodes, decide with leat_tail_decide(),
 * and commit late or never. At no time may an acked record be missing from the log, or another stand in its place.
 *
 * There are no bit flips, no trims, and no recycled buffers here: the simulator has those. */
#include <string.h>

#include "base/assert.h"
#include "tests/coordinator/tail_walk_parts.h"

/* ---- recovery ---- */

/* The result of an attempt, as rows. */
struct found {
    struct replica replicas[REPLICAS];
    struct leat_tail_row rows[REPLICAS];
    unsigned at[REPLICAS]; /* of each row, which replica */
    size_t count;
};

static bool is_current(const struct world *it, const struct leat_tail_row *row)
{
    return row->state == LEAT_TAIL_OPEN && row->epoch.v == it->record.stamp_epoch.v &&
           row->generation >= it->record.stamp_version;
}

static struct leat_tail_row row_of(const struct world *it, const struct replica *rep)
{
    const struct leat_tail_record *tail = &it->record.tail;
    bool decided = !it->record.opened && (uint64_t)rep->segment == tail->segment &&
                   rep->epoch == it->tail_epoch && begins(full_of(rep), it->tail) &&
                   it->tail.count >= rep->base.count;
    return (struct leat_tail_row){
        .segment = (uint64_t)rep->segment,
        .node = rep->node,
        .state = rep->closed ? LEAT_TAIL_CLOSED : LEAT_TAIL_OPEN,
        .epoch = {rep->epoch},
        .generation = rep->generation,
        .prefix = id_of(rep->epoch, rep->segment, rep->data, rep->close_entry),
        .previous = rep->previous,
        .base_offset = rep->base.count,
        .next_offset = rep->base.count + rep->data.count,
        .flags = (rep->data.count == 0 ? LEAT_TAIL_ONLY_START : 0u) |
                 (decided ? LEAT_TAIL_HAS_DECIDED : 0u),
    };
}

/* A broken rule of the decision changes the rows that the decision sees. */
static void rows_break(const struct world *it, struct found *found)
{
    const struct leat_log_record *record = &it->record;
    uint64_t low = UINT64_MAX, high = 0, closed = 0;
    bool any = false;
    for (size_t i = 0; i < found->count; i++) {
        struct leat_tail_row *row = &found->rows[i];
        bool later = row->epoch.v > record->stamp_epoch.v && row->state == LEAT_TAIL_OPEN;
        if (later && (it->rule == WALK_OTHERS_EPOCH || it->rule == WALK_EPOCHS)) {
            row->epoch = record->stamp_epoch;
            row->generation = record->stamp_version;
        }
        if (row->generation < record->stamp_version && it->rule == WALK_OLD_GENERATION)
            row->generation = record->stamp_version;
        if (it->rule == WALK_PREVIOUS_UNASKED) row->previous = (struct leat_prefix_id){0, 0};
        if (row->state == LEAT_TAIL_CLOSED && row->segment > closed) closed = row->segment;
        if (!is_current(it, row)) continue;
        any = true;
        if (row->segment < low) low = row->segment;
        if (row->segment > high) high = row->segment;
    }
    for (size_t i = 0; i < found->count && record->opened; i++) {
        struct leat_tail_row *row = &found->rows[i];
        bool counts = row->state == LEAT_TAIL_CLOSED &&
                      ((it->rule == WALK_IDLE_CLOSES && !any && row->segment == closed) ||
                       (it->rule == WALK_CUT_BEFORE_COMMIT && any && row->segment == low));
        if (it->rule == WALK_HIGHEST && is_current(it, row) && row->segment < high)
            row->state = LEAT_TAIL_MISSING;
        if (!counts) continue;
        row->state = LEAT_TAIL_OPEN;
        row->epoch = record->stamp_epoch;
        row->generation = record->stamp_version;
        for (size_t k = 0; k < found->count && it->rule == WALK_CUT_BEFORE_COMMIT; k++)
            if (found->rows[k].segment == low && found->rows[k].state == LEAT_TAIL_OPEN && k != i)
                found->rows[k].state = LEAT_TAIL_MISSING;
    }
}

static void look(const struct world *it, unsigned heard, struct found *found)
{
    memcpy(found->replicas, it->replicas, sizeof found->replicas);
    found->count = 0;
    for (unsigned i = 0; i < REPLICAS; i++) {
        const struct replica *rep = &it->replicas[i];
        if (!rep->used || !(heard >> rep->node & 1)) continue;
        if (!rep->started && it->rule != WALK_RESERVED_COUNTS) continue;
        found->at[found->count] = i;
        found->rows[found->count++] = row_of(it, rep);
    }
    rows_break(it, found);
}

static void fence(struct world *it, unsigned heard)
{
    for (uint32_t node = 0; node < it->nodes; node++) {
        if (!(heard >> node & 1)) continue;
        if (it->fenced[node] < it->owner_epoch) it->fenced[node] = it->owner_epoch;
        if (it->owners[node].on && it->owners[node].epoch <= it->owner_epoch)
            it->owners[node].on = false;
    }
}

/* The content of the log up to the decided end. */
static struct content content_of(const struct world *it, const struct found *found,
                                 const struct leat_tail *tail, uint32_t *out_epoch)
{
    *out_epoch = it->tail_epoch;
    if (tail->reason != LEAT_TAIL_BY_OPEN) return it->tail;
    for (size_t i = 0; i < found->count; i++) {
        if (!leat_tail_holds(tail, i)) continue;
        *out_epoch = found->replicas[found->at[i]].epoch;
        return full_of(&found->replicas[found->at[i]]);
    }
    LEAT_ASSERT(false); /* somebody holds what an open replica says */
    return it->tail;
}

/* Each node that is said to hold the end has all bytes of the log up to the end. */
static bool holders_have(const struct world *it, const struct found *found,
                         const struct leat_tail *tail, struct content upto)
{
    for (size_t i = 0; i < found->count; i++)
        if (leat_tail_holds(tail, i) && it->rule == WALK_NONE &&
            !begins(full_of(&found->replicas[found->at[i]]), upto))
            return false;
    return true;
}

/* A segment that has just begun ends the log only if a node that answered has all records before this segment. */
static bool previous_has(const struct found *found, const struct leat_tail *tail,
                         struct content upto)
{
    bool needed = false, has = false;
    for (size_t i = 0; i < found->count && tail->reason == LEAT_TAIL_BY_OPEN; i++) {
        const struct replica *rep = &found->replicas[found->at[i]];
        if (leat_tail_holds(tail, i)) needed |= rep->data.count == 0 && rep->previous.bytes != 0;
        has |= (uint64_t)rep->segment + 1 == tail->end.segment && begins(full_of(rep), upto);
    }
    return !needed || has;
}

/* Broken on purpose: a decision is carried out before any node has committed it. */
static void cut_all(struct world *it, unsigned heard, const struct leat_tail_record *end,
                    struct content upto, uint32_t epoch)
{
    for (uint32_t node = 0; node < it->nodes; node++) {
        struct replica *rep =
            heard >> node & 1 ? walk_find(it, node, (int)end->segment, epoch) : NULL;
        if (!rep || upto.count < rep->base.count) continue;
        rep->data.count = upto.count - rep->base.count;
        rep->data.ids = upto.ids >> 4 * rep->base.count;
        rep->closed = true;
    }
}

static void recover(struct world *it)
{
    static struct found found;
    const struct leat_tail_question question = {&it->record, it->copies / 2 + 1, false};
    struct leat_tail tail;
    unsigned heard = 0;
    for (uint32_t node = 0; node < it->nodes; node++)
        if (!it->down[node] && chance(it, 3)) heard |= 1u << node;
    if (!heard) return;
    uint32_t epoch = it->rule == WALK_EPOCHS ? it->owner_epoch + 1 : it->next_epoch++;
    if (it->rule == WALK_FENCE_LATE) {
        look(it, heard, &found);
        for (unsigned i = 0; i < 6; i++) {
            uint32_t node = chance(it, it->nodes);
            if (it->owners[node].on && !it->down[node]) walk_owner_step(it, node);
        }
    }
    fence(it, heard);
    if (it->rule != WALK_FENCE_LATE) look(it, heard, &found);
    leat_tail_decide(&question, found.rows, found.count, &tail);
    it->count->reasons[tail.reason]++;
    if (!tail.ends) {
        it->count->waits++;
        return;
    }
    uint32_t writer, node = pick(it, heard);
    struct content upto = content_of(it, &found, &tail, &writer);
    bool none = tail.end.segment == UINT64_MAX;
    it->lost |= !holders_have(it, &found, &tail, upto) || !previous_has(&found, &tail, upto);
    it->attempt = epoch;
    walk_owner_new(it, node, epoch, none ? -1 : (int)tail.end.segment, upto, tail.end.prefix_id);
    it->owners[node].pending = true;
    it->owners[node].tail_epoch = writer;
    if (it->rule == WALK_CUT_BEFORE_COMMIT && tail.reason == LEAT_TAIL_BY_OPEN)
        cut_all(it, heard, &tail.end, upto, writer);
}

static void commit(struct world *it, uint32_t node)
{
    struct owner *own = &it->owners[node];
    if (it->owner_up || it->attempt != own->epoch) return;
    it->owner = node;
    it->owner_epoch = own->epoch;
    it->owner_up = true;
    it->tail = own->tail;
    it->tail_epoch = own->tail_epoch;
    own->pending = false;
    if (it->rule != WALK_CUT_BEFORE_COMMIT) it->record.opened = false;
    it->record.tail = (struct leat_tail_record){
        .segment = own->tail_segment < 0 ? UINT64_MAX : (uint64_t)own->tail_segment,
        .prefix_id = own->tail_id,
        .next_offset = own->tail.count};
    it->count->commits++;
    if (!begins(own->tail, it->acked)) it->lost = true;
    it->acked = own->tail;
}

/* ---- the world ---- */

static void crash(struct world *it, uint32_t node)
{
    it->down[node] = true;
    it->owners[node].on = false;
    bool keeps = it->rule == WALK_REBOOT_KEEPS;
    if (chance(it, keeps ? 3 : 6) != 0) return; /* a process: its memory stays */
    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *rep = &it->replicas[i];
        if (!rep->used || rep->node != node || rep->closed) continue;
        if (keeps) {
            rep->data = first_of(rep->data, chance(it, rep->data.count + 1));
        } else if (rep->hibernated < 0) {
            rep->used = false;
        } else {
            if (rep->data.count > (uint32_t)rep->hibernated)
                rep->data = first_of(rep->data, (uint32_t)rep->hibernated);
            rep->buffered = false;
        }
    }
}

static void step(struct world *it)
{
    unsigned dice = chance(it, 100);
    uint32_t node = chance(it, it->nodes);
    struct owner *own = &it->owners[node];
    if (dice < 86 && own->on && !it->down[node])
        walk_owner_step(it, node);
    else if (dice >= 86 && dice < 88 && !it->down[node] && chance(it, 2) == 0)
        crash(it, node);
    else if (dice >= 88 && dice < 92)
        it->down[node] = false;
    else if (dice >= 92 && dice < 94 && it->owner_up && chance(it, 2) == 0)
        it->owner_up = false; /* declared crashed; it may live */
    else if (dice >= 94 && dice < 97 && !it->owner_up)
        recover(it);
    else if (dice >= 97 && own->on && own->pending && !it->down[node])
        commit(it, node);
}

const char *walk_rule_name(enum walk_rule rule)
{
    static const char *const names[WALK_RULES_END] = {
        "none",
        "idle-closes",
        "reserved-counts",
        "epochs",
        "version-after-crash",
        "opened-unsaid",
        "reboot-keeps",
        "cut-before-commit",
        "data-before-close",
        "ack-before-version",
        "fence-late",
        "resume-keeps",
        "old-generation",
        "previous-unasked",
        "others-epoch",
        "head-only",
        "highest",
        "sealed-before-close",
    };
    return names[rule];
}

bool walk_once(enum walk_rule rule, uint64_t seed, unsigned steps, struct walk_count *count)
{
    static struct world it;
    memset(&it, 0, sizeof it);
    leat_xoshiro_seed(&it.rng, seed);
    it.rule = rule;
    it.nodes = 3 + (uint32_t)(seed & 1);
    it.copies = 2 + (uint32_t)(seed >> 1 & 1);
    it.count = count;
    it.record.tail.segment = UINT64_MAX;
    it.owner_epoch = 1;
    it.owner_up = true;
    it.next_epoch = 2;
    it.next_record = 1;
    walk_owner_new(&it, 0, 1, -1, (struct content){0}, (struct leat_prefix_id){0, 0});
    for (unsigned i = 0; i < steps && !it.lost && !it.full; i++)
        step(&it);
    LEAT_ASSERT(!it.full);
    if (it.lost && count->lost++ == 0) count->first_lost = count->walks;
    count->walks++;
    return !it.lost;
}
