/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at walks to a place, in the seeds whose closed segments rot. A consumer is about to go back to a
 * place that it has kept (address.c), and waits for up to 4 s until the place is in a closed segment that the victim
 * owns and has only in its file. Then a bit flips in the header of an entry in front of the place: in an offset or a
 * length, by which a walk finds its way. */
#include <stddef.h>
#include <stdio.h>

#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"
#include "tests/sim/stage.h"
#include "wire/entry.h"

enum { ENTRIES_MAX = 1024, WAITS_MAX = 40 };

static bool entry_peek(const struct scenario *scenario, const struct leat_segment *seg, uint32_t at,
                       struct leat_entry *out_entry)
{
    char path[32];
    snprintf(path, sizeof path, "store/%u", seg->file_number);
    return at + sizeof *out_entry <= seg->prefix_id.bytes &&
           sim_disk_peek(scenario->victim->disk, path, seg->file_offset + at, out_entry,
                         sizeof *out_entry);
}

/* The batches in front of that place. */
static unsigned batches_before(const struct scenario *scenario, const struct leat_segment *seg,
                               uint32_t place, uint32_t *out_at)
{
    unsigned count = 0;
    struct leat_entry entry;
    for (uint32_t at = 0; at < place && count < ENTRIES_MAX;
         at += leat_entry_bytes(entry.payload_bytes)) {
        if (!entry_peek(scenario, seg, at, &entry) || entry.type == LEAT_ENTRY_NONE) break;
        if (entry.type == LEAT_ENTRY_BATCH) out_at[count++] = at;
    }
    return count;
}

bool sim_aim_place_waits(struct sim_client *client)
{
    static uint32_t at[ENTRIES_MAX];
    struct scenario *scenario = client->scenario;
    struct sim_address *address = &client->address;
    struct sim_rng rng;
    if (!scenario->closed_rot || scenario->deletes || scenario->faults_over) return false;
    struct leat_log_ref log = address->log;
    log.stream = scenario->streams[log.stream].id;
    const struct leat_segment *seg = sim_closed_find(scenario, log, address->at.segment);
    if (!seg && address->waited++ < WAITS_MAX) return true;
    address->waited = 0;
    unsigned count = seg ? batches_before(scenario, seg, address->at.position, at) : 0;
    if (count == 0) return false;
    sim_rng_init(&rng, scenario->world->seed + scenario->world->now_us, "aim-place");
    bool length = sim_rng_chance(&rng, 500);
    uint32_t field = length ? offsetof(struct leat_entry, payload_bytes)
                            : offsetof(struct leat_entry, base_offset);
    uint32_t where = at[sim_rng_below(&rng, count)] + field + (uint32_t)sim_rng_below(&rng, 3);
    sim_closed_flip(scenario, seg, where, (unsigned)sim_rng_below(&rng, 8));
    sim_stage_came(scenario);
    sim_trace(scenario->world,
              "aim: a %s flips in front of place %u of segment %llu of log %u/%u/%u",
              length ? "length" : "offset", address->at.position, (unsigned long long)seg->id.v,
              address->log.stream, address->log.streamlet, address->log.log);
    return false;
}
