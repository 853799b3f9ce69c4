/* SPDX-License-Identifier: Apache-2.0 */
/* Scrub: closed segments in files are read again now and then, so that damage is named while other
 * copies still exist. Rate-limited by bytes per second; one read at a time. The segment's owner is told: it
 * has the file written anew by what memory has, or by the bytes of another node (repair.c), or another copy made. */
#include "store/private.h"

static void damage_report(struct leat_store *store, struct leat_held *held, const char *what)
{
    const struct leat_segment *seg = &held->seg;
    if (!held->damage_named)
        leat_store_complain_of(
            store, "scrub: closed segment %llu of log %u/%u/%u in store/%u at %llu %s",
            (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet, seg->log.log,
            seg->file_number, (unsigned long long)seg->file_offset, what);
    held->damage_named = true;
    leat_held_row_damaged(store, held, true);
    leat_held_tell(store, held, LEAT_HELD_EVENT_DAMAGED);
}

/* Nothing is damaged where memory has the bytes: the owner has them written to the file, and says so. */
static void damage_found(struct leat_store *store, struct leat_held *held, const char *what)
{
    bool own = held->seg.role == LEAT_SEGMENT_OWN && held->seg.owner_actor < LEAT_CORES_MAX;
    if (own && leat_repair_remembers(store, held))
        leat_held_tell(store, held, LEAT_HELD_EVENT_DAMAGED);
    else
        damage_report(store, held, what);
}

static void on_read(struct leat_disk_io *io)
{
    struct leat_store *store = io->owner;
    struct leat_held *held = store->scrubbing;
    store->scrub_reading = false;
    store->scrubbing = NULL;
    leat_node_log_sum_tell(&store->segments_sum, store->env->clock->now_us(store->env->clock->ctx));
    if (!held) return; /* dropped meanwhile: these bytes may be anyone's */
    if (io->rc) {
        damage_found(store, held, "cannot be read");
        return;
    }
    /* As recorded: these do not change while the row says CLOSED and flushed. */
    const struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
    struct leat_scan scan;
    leat_scan_segment(store->scratch, row->prefix_id_bytes, &scan);
    if (io->done_bytes < row->prefix_id_bytes)
        damage_found(store, held, "is cut short");
    else if (scan.bytes != row->prefix_id_bytes || scan.crc != row->prefix_id_crc)
        damage_found(store, held, "is damaged: its bytes do not match their checksums");
    else
        held->damage_named = false; /* repaired: what is found later is other damage */
}

static struct leat_held *next_segment(struct leat_store *store)
{
    uint32_t rows = store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK;
    /* A bounded look-out per step; the next step goes on. */
    for (uint32_t i = 0; i < LEAT_STORE_ROWS_PER_CHUNK && rows; i++) {
        store->scrub_row = store->scrub_row + 1 < rows ? store->scrub_row + 1 : 0;
        struct leat_held *held = *leat_catalogue_held(&store->cat, store->scrub_row);
        const struct leat_row *row = leat_catalogue_row(&store->cat, store->scrub_row);
        if (!held || held->repairing) continue;
        if (row->state == LEAT_SEGMENT_CLOSED && row->flags & LEAT_ROW_FLUSHED) return held;
    }
    return NULL;
}

void leat_scrub_step(struct leat_store *store, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(store);
    uint64_t rate = store->options.scrub_bytes_per_second;
    if (!rate || !store->started || store->scrub_reading || now_us < store->scrub_at_us) return;
    if (leat_store_scratch(store)) return;
    struct leat_held *held = next_segment(store);
    if (!held) {
        store->scrub_at_us = now_us + 1000 * 1000;
        return;
    }
    uint32_t prefix_id = leat_catalogue_row(&store->cat, held->seg.row)->prefix_id_bytes;
    size_t bytes = LEAT_ALIGN_UP(prefix_id, (uint32_t)LEAT_BLOCK_BYTES);
    store->scrub_at_us = now_us + bytes * 1000 * 1000 / rate + 1;
    store->scrubbing = held;
    store->scrub_reading = true;
    store->scrub_io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = held->slot.file->file,
        .offset = (uint64_t)held->slot.unit * LEAT_SLOT_UNIT_BYTES,
        .buffer = store->scratch,
        .bytes = bytes,
        .on_done = on_read,
        .owner = store,
    };
    store->env->disk->submit(store->env->disk->ctx, &store->scrub_io);
}

uint64_t leat_scrub_next_us(const struct leat_store *store)
{
    if (!store->options.scrub_bytes_per_second || !store->started || store->scrub_reading)
        return UINT64_MAX;
    return store->scrub_at_us;
}
