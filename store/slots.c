/* SPDX-License-Identifier: Apache-2.0 */
/* Store files: the places of segments on disk.
 *
 * A slot is allocated (fallocate) before its segment is reserved, so that no later write of the segment can meet a
 * full disk. Files grow by doubling from 1 MiB up to steps of 64 MiB: a data directory of a demonstration stays
 * small. Files are never shrunk or removed; slots are recycled. Growth blocks the store's thread (35 us a step);
 * growth is rare, and not on the append path.
 */
#include "store/private.h"

#include "base/bug.h"
#include "base/node_log.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_UNITS = LEAT_STORE_FILE_BYTES / LEAT_SLOT_UNIT_BYTES };

leat_err leat_slots_init(struct leat_slots *slots, const struct leat_disk *disk)
{
    *slots = (struct leat_slots){.disk = disk};
    slots->files = leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_FILES_MAX, sizeof *slots->files);
    return slots->files ? LEAT_OK : LEAT_E_NO_MEMORY;
}

void leat_slots_fini(struct leat_slots *slots)
{
    for (uint32_t i = 0; slots->files && i < slots->count; i++) {
        struct leat_store_file *file = slots->files[i];
        if (!file) continue;
        if (file->file) slots->disk->close(slots->disk->ctx, file->file);
        leat_buddy_fini(&file->buddy);
        leat_mem_free(file);
    }
    leat_mem_free(slots->files);
    *slots = (struct leat_slots){0};
}

static leat_err file_open(struct leat_slots *slots, uint32_t number, unsigned flags,
                          struct leat_error *error)
{
    LEAT_ASSERT_CMP(number, <, LEAT_STORE_FILES_MAX);
    struct leat_store_file *file = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *file);
    if (!file) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for a store file");
    file->number = number;
    leat_list_init(&file->ready);
    leat_list_init(&file->todo);
    leat_list_init(&file->flush_wait);
    for (int i = 0; i < LEAT_STORE_LANES; i++) {
        struct leat_store_round *round = &file->rounds[i];
        round->of = file;
        leat_list_init(&round->reqs);
        leat_list_init(&round->helds);
        leat_list_init(&round->flush_syncs);
    }
    leat_err rc = leat_buddy_init(&file->buddy, FILE_UNITS);
    char path[32];
    snprintf(path, sizeof path, "store/%u", number);
    if (!rc)
        rc =
            slots->disk->open(slots->disk->ctx, path, flags | LEAT_OPEN_DIRECT, &file->file, error);
    uint64_t bytes = 0;
    if (!rc) rc = slots->disk->size(slots->disk->ctx, file->file, &bytes);
    if (rc) {
        if (file->file) slots->disk->close(slots->disk->ctx, file->file);
        leat_buddy_fini(&file->buddy);
        leat_mem_free(file);
        return rc;
    }
    if (bytes > LEAT_STORE_FILE_BYTES) bytes = LEAT_STORE_FILE_BYTES;
    file->found_units = (uint32_t)(bytes / LEAT_SLOT_UNIT_BYTES);
    file->grown_units = file->here_units = file->found_units;
    slots->disk_bytes += (uint64_t)file->grown_units * LEAT_SLOT_UNIT_BYTES;
    slots->files[number] = file;
    if (number >= slots->count) slots->count = number + 1;
    return LEAT_OK;
}

struct listing {
    struct leat_slots *slots;
    struct leat_error *error;
    leat_err rc;
};

static void on_name(void *arg, const char *name)
{
    struct listing *listing = arg;
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    /* What is not ours is left alone. */
    if (listing->rc || end == name || *end || number >= LEAT_STORE_FILES_MAX) return;
    char again[24];
    snprintf(again, sizeof again, "%lu", number);
    if (strcmp(again, name) != 0) return;
    listing->rc = file_open(listing->slots, (uint32_t)number, 0, listing->error);
}

leat_err leat_slots_open(struct leat_slots *slots, struct leat_error *error)
{
    leat_err rc = slots->disk->make_dir(slots->disk->ctx, "store");
    if (rc) return leat_error_set(error, rc, "cannot make the directory 'store'");
    struct listing listing = {.slots = slots, .error = error};
    rc = slots->disk->list(slots->disk->ctx, "store", on_name, &listing);
    if (rc) return leat_error_set(error, rc, "cannot list the directory 'store'");
    return listing.rc;
}

/* Forgets a file without segments. */
static void file_forget(struct leat_slots *slots, uint32_t number)
{
    struct leat_store_file *file = slots->files[number];
    if (!file) return;
    slots->disk_bytes -= (uint64_t)file->grown_units * LEAT_SLOT_UNIT_BYTES;
    slots->files[number] = NULL;
    slots->disk->close(slots->disk->ctx, file->file);
    leat_buddy_fini(&file->buddy);
    leat_mem_free(file);
}

static leat_err file_create(struct leat_slots *slots, uint32_t number)
{
    struct leat_error error = {0};
    leat_err rc = file_open(slots, number, LEAT_OPEN_CREATE, &error);
    /* The name must survive a power cut before anything in the file counts as durable. */
    if (!rc) rc = slots->disk->sync_dir(slots->disk->ctx, "store");
    if (rc != LEAT_E_NO_MEMORY) {
        if (rc && slots->files[number]) slots->files[number]->failed = true;
        slots->lacks_file = false;
        return rc;
    }
    /* The file is not refused for good: the next request that needs it tries again. */
    file_forget(slots, number);
    if (!slots->lacks_file)
        leat_node_log_error("store: there can't be another file for segments now: %s; appends that "
                            "need one wait until there can",
                            error.text[0] ? error.text : "its directory can't be opened");
    slots->lacks_file = true;
    return rc;
}

/* ---- growth ---- */

/* Where the next slot of that size would end, if the file grew for it. */
static uint32_t next_end(const struct leat_store_file *file, uint32_t units)
{
    return LEAT_ALIGN_UP(file->grown_units, units) + units;
}

static bool lacks_end(const struct leat_store_file *file)
{
    return file->here_units < file->grown_units;
}

/* As much as there is already, within bounds: what is small stays small. */
static uint32_t step_units(const struct leat_slots *slots)
{
    uint64_t bytes = slots->disk_bytes;
    if (bytes < LEAT_STORE_SLOT_FIRST_BYTES) bytes = LEAT_STORE_SLOT_FIRST_BYTES;
    if (bytes > LEAT_STORE_SLOT_STEP_BYTES) bytes = LEAT_STORE_SLOT_STEP_BYTES;
    return (uint32_t)(bytes / LEAT_SLOT_UNIT_BYTES);
}

/* The file by a step, at least to `least` units. What is new is in no buddy yet. */
static leat_err file_allocate(struct leat_slots *slots, struct leat_store_file *file,
                              uint32_t least)
{
    const struct leat_disk *disk = slots->disk;
    uint32_t want = file->grown_units + step_units(slots);
    if (want < least) want = least;
    if (want > FILE_UNITS) want = FILE_UNITS;
    leat_err rc = disk->allocate(disk->ctx, file->file, (uint64_t)want * LEAT_SLOT_UNIT_BYTES);
    if (rc == LEAT_E_DISK_FULL && least && want > least) {
        want = least;
        rc = disk->allocate(disk->ctx, file->file, (uint64_t)want * LEAT_SLOT_UNIT_BYTES);
    }
    if (rc) return rc;
    slots->disk_bytes += (uint64_t)(want - file->grown_units) * LEAT_SLOT_UNIT_BYTES;
    file->grown_units = file->here_units = want;
    return LEAT_OK;
}

/* SUBTLE: a place that a row claims must not be given out, also when the file does not have it.
 *  1. A file grows for segment A, whose row is written; neither is synced. Power goes: the row got
 *     through, the file's growth did not. A is LOST and kept.
 *  2. The file grows again and A's place goes to segment B.
 *  3. At the next start both rows claim the place. A is dropped, the place is free, and the next segment is written
 *     over B.
 * So the place counts as grown even if the disk is too full, and nothing is taken from the file until its end is
 * there. The file is not failed for this reason: requests for its segments would be refused until the next start, and
 * readers of a segment that needs a repair would wait for ever, long after there is room again. */
leat_err leat_slots_cover(struct leat_slots *slots, uint32_t number, uint32_t units)
{
    leat_err rc = slots->files[number] ? LEAT_OK : file_create(slots, number);
    if (rc) return rc;
    struct leat_store_file *file = slots->files[number];
    uint32_t from = file->grown_units;
    if (units <= from) return LEAT_OK;
    bool known = lacks_end(file);
    file->grown_units = units;
    leat_buddy_add(&file->buddy, from, units - from);
    rc = leat_slots_fill(slots, file);
    if (rc == LEAT_E_DISK_FULL && !known)
        leat_node_log_warn("store: store/%u has lost its end, and there is no space left for it: "
                           "no segment gets a place there until there is",
                           number);
    return rc;
}

leat_err leat_slots_fill(struct leat_slots *slots, struct leat_store_file *file)
{
    if (!lacks_end(file)) return LEAT_OK;
    uint64_t bytes = (uint64_t)file->grown_units * LEAT_SLOT_UNIT_BYTES;
    leat_err rc = slots->disk->allocate(slots->disk->ctx, file->file, bytes);
    if (rc) return rc;
    slots->disk_bytes += (uint64_t)(file->grown_units - file->here_units) * LEAT_SLOT_UNIT_BYTES;
    file->here_units = file->grown_units;
    return LEAT_OK;
}

static leat_err file_grow(struct leat_slots *slots, struct leat_store_file *file,
                          uint32_t units_needed)
{
    uint32_t from = file->grown_units;
    leat_err rc = file_allocate(slots, file, next_end(file, units_needed));
    if (!rc) leat_buddy_add(&file->buddy, from, file->grown_units - from);
    return rc;
}

/* ---- written ahead ----
 * Space of `disk` segments is overwritten with zeros before it is given out: a commit of 112 KiB to blocks that were
 * only allocated took 200 us, to written ones 100 us, with half of the CPU time. Pieces of 1 MiB, concurrent with
 * commits, cost these next to nothing. Not for `memory` segments: they are written in such pieces themselves. Space
 * that a segment gives back has been written.
 *
 * When it is too slow, or the disk is full, segments get space that was only allocated. After a start it is unknown
 * which free space was written; it is given out as it is. */

/* Gives out allocated but unwritten space, for a request that can't wait. false: there is none. */
static bool fresh_give_up(struct leat_slots *slots)
{
    uint32_t units = slots->fresh_end - slots->fresh_from;
    if (units && !slots->ahead->failed)
        leat_buddy_add(&slots->ahead->buddy, slots->fresh_from, units);
    slots->fresh_from = slots->fresh_end = 0;
    return units != 0;
}

static void on_zeroed(struct leat_disk_io *io)
{
    struct leat_slots *slots = io->owner;
    if (io->rc) {
        /* No segment was there. The rest of the step stays unused until a restart. */
        leat_node_log_warn("store: store/%u cannot be written ahead: %s", slots->zeroing->number,
                           leat_err_text(io->rc));
        if (slots->ahead == slots->zeroing) {
            slots->fresh_from = slots->fresh_end = 0;
            slots->ahead = NULL;
        }
    } else {
        leat_buddy_add(&slots->zeroing->buddy, slots->zero_from, slots->zero_units);
    }
    slots->zeroing = NULL;
}

static void zero_piece(struct leat_slots *slots)
{
    uint32_t units = slots->fresh_end - slots->fresh_from;
    const uint32_t most = LEAT_STORE_ZERO_BYTES / LEAT_SLOT_UNIT_BYTES;
    if (units > most) units = most;
    slots->zeroing = slots->ahead;
    slots->zero_from = slots->fresh_from;
    slots->zero_units = units;
    slots->fresh_from += units;
    slots->zero = (struct leat_disk_io){
        .kind = LEAT_DISK_ZERO,
        .file = slots->ahead->file,
        .offset = (uint64_t)slots->zero_from * LEAT_SLOT_UNIT_BYTES,
        .bytes = (size_t)units * LEAT_SLOT_UNIT_BYTES,
        .on_done = on_zeroed,
        .owner = slots,
    };
    slots->disk->submit(slots->disk->ctx, &slots->zero);
}

/* Does what is free in all files last for half a step? */
static bool enough_free(const struct leat_slots *slots)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < slots->count; i++)
        if (slots->files[i] && !slots->files[i]->failed && !lacks_end(slots->files[i]))
            units += slots->files[i]->buddy.free_units;
    return units >= step_units(slots) / 2;
}

static bool has_room(const struct leat_store_file *file)
{
    return !file->failed && !lacks_end(file) && file->grown_units < FILE_UNITS;
}

/* The file for the next step: not the last step's file, which is being used up. Zeros in the file that takes the
 * commits would make each of its syncs write the changed metadata, too. So two files take turns; the successor of a
 * full file has no unwritten free space. */
static leat_err ahead_choose(struct leat_slots *slots, struct leat_store_file **out_file)
{
    struct leat_store_file *file = slots->ahead_before;
    for (uint32_t i = 0; !file || !has_room(file); i++) {
        if (i == LEAT_STORE_FILES_MAX) return LEAT_E_DISK_FULL;
        leat_err rc = slots->files[i] ? LEAT_OK : file_create(slots, i);
        if (rc) return rc;
        file = slots->files[i];
        if (file == slots->ahead || file->buddy.free_units) file = NULL;
    }
    *out_file = file;
    return LEAT_OK;
}

static leat_err extend(struct leat_slots *slots)
{
    struct leat_store_file *file = NULL;
    leat_err rc = ahead_choose(slots, &file);
    if (rc) return rc;
    uint32_t from = file->grown_units;
    rc = file_allocate(slots, file, 0);
    if (rc) return rc;
    slots->ahead_before = slots->ahead;
    slots->ahead = file;
    slots->fresh_from = from;
    slots->fresh_end = file->grown_units;
    return LEAT_OK;
}

bool leat_slots_step(struct leat_slots *slots)
{
    if (!slots->ahead || slots->no_more) return false;
    bool fresh = slots->fresh_from != slots->fresh_end;
    if (slots->look_ahead && !fresh && !enough_free(slots)) {
        /* Out of space: reported by the next request that needs space, which also starts this again. */
        if (extend(slots)) slots->ahead = NULL;
        fresh = slots->fresh_from != slots->fresh_end;
    }
    slots->look_ahead = false;
    if (!fresh || slots->zeroing) return false;
    zero_piece(slots);
    return true;
}

/* ---- slots ---- */

static bool is_ahead(const struct leat_slots *slots, const struct leat_store_file *file)
{
    return file == slots->ahead || file == slots->ahead_before;
}

/* One step of the files that are written ahead is kept for `disk` segments. */
static bool is_for_disk(const struct leat_slots *slots, const struct leat_store_file *file)
{
    return is_ahead(slots, file) && file->buddy.free_units <= step_units(slots);
}

static bool take_from(struct leat_store_file *file, unsigned order, struct leat_slot *out_slot)
{
    if (!file || file->failed || lacks_end(file) || file->buddy.free_units < (1u << order) ||
        !leat_buddy_take(&file->buddy, order, &out_slot->unit))
        return false;
    out_slot->file = file;
    return true;
}

static bool take_free(struct leat_slots *slots, unsigned order, bool sparing,
                      struct leat_slot *out_slot)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        struct leat_store_file *file = slots->files[i];
        if (!file || (sparing && is_for_disk(slots, file))) continue;
        if (take_from(file, order, out_slot)) return true;
    }
    return false;
}

static leat_err take_grown(struct leat_slots *slots, unsigned order, bool sparing,
                           struct leat_slot *out_slot)
{
    for (uint32_t i = 0; i < LEAT_STORE_FILES_MAX; i++) {
        struct leat_store_file *file = slots->files[i];
        if (file && sparing && is_ahead(slots, file)) continue;
        leat_err rc = file ? LEAT_OK : file_create(slots, i);
        if (rc) return rc;
        file = slots->files[i];
        if (file->failed || leat_slots_fill(slots, file)) continue;
        if (take_from(file, order, out_slot)) return LEAT_OK; /* its end is there again */
        if (next_end(file, 1u << order) > FILE_UNITS) continue;
        rc = file_grow(slots, file, 1u << order);
        if (rc) return rc;
        bool taken = leat_buddy_take(&file->buddy, order, &out_slot->unit);
        LEAT_ASSERT(taken);
        out_slot->file = file;
        return LEAT_OK;
    }
    return LEAT_E_DISK_FULL;
}

static leat_err slot_take(struct leat_slots *slots, uint32_t capacity,
                          enum leat_durability durability, struct leat_slot *out_slot)
{
    unsigned order = leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES);
    bool ahead = durability == LEAT_DURABILITY_DISK;
    slots->look_ahead |= ahead;
    /* First from files that are written ahead: other files are only partly written. */
    if (ahead && (take_from(slots->ahead_before, order, out_slot) ||
                  take_from(slots->ahead, order, out_slot)))
        return LEAT_OK;
    if (take_free(slots, order, !ahead, out_slot)) return LEAT_OK;
    if (ahead && fresh_give_up(slots) && take_free(slots, order, false, out_slot)) return LEAT_OK;
    leat_err rc = take_grown(slots, order, !ahead, out_slot);
    if (rc == LEAT_E_DISK_FULL) {
        /* Now it is for all. */
        (void)fresh_give_up(slots);
        if (take_free(slots, order, false, out_slot)) return LEAT_OK;
    }
    if (!rc && ahead && out_slot->file != slots->ahead) {
        (void)fresh_give_up(slots);
        slots->ahead_before = slots->ahead;
        slots->ahead = out_slot->file;
    }
    return rc;
}

static void space_again(struct leat_slots *slots)
{
    leat_node_log_info("the data directory has space for segments again");
    slots->full_bytes = 0;
}

/* The disk counts as full until a segment as large as the refused segment fits again: a smaller segment that fits
 * proves nothing. */
leat_err leat_slots_take(struct leat_slots *slots, uint32_t capacity,
                         enum leat_durability durability, struct leat_slot *out_slot)
{
    leat_err rc = slot_take(slots, capacity, durability, out_slot);
    if (rc == LEAT_E_DISK_FULL && slots->full_bytes == 0) {
        if (!LEAT_BUG(FULL_UNWRITTEN))
            leat_node_log_error(
                "no space left in the data directory for another segment of %u KiB: appends "
                "that need one are refused until there is; reads go on",
                capacity / 1024);
        slots->full_bytes = capacity;
    } else if (rc == LEAT_OK && slots->full_bytes && capacity >= slots->full_bytes) {
        space_again(slots);
    }
    return rc;
}

void leat_slots_give(struct leat_slots *slots, struct leat_slot slot, uint32_t capacity)
{
    struct leat_store_file *file = slot.file;
    leat_buddy_give(&file->buddy, slot.unit, leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES));
    if (!slots->full_bytes || file->failed || lacks_end(file)) return;
    /* The merged free block counts: the next request for a segment may come much later. */
    unsigned order = leat_buddy_order(slots->full_bytes, LEAT_SLOT_UNIT_BYTES);
    while (order < LEAT_BUDDY_ORDERS && file->buddy.free_count[order] == 0)
        order++;
    if (order < LEAT_BUDDY_ORDERS) space_again(slots);
}
