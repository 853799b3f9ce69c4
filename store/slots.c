/* Store files: where a segment's bytes lie on disk.
 *
 * A slot is allocated (fallocate) before the segment that needs it is reserved, so that no later
 * write of that segment can meet a full disk. Files grow by doubling from 1 MiB up to steps of 64
 * MiB: a data directory of a demonstration stays small. Files are never shrunk or removed; slots
 * are recycled, which also makes their blocks overwritten ones (a commit of 64 KiB: 101 us instead
 * of 174). Growth blocks the store's thread; it is rare, and nothing of it is on the append path.
 */
#include "store/private.h"

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
    leat_list_init(&file->keeps);
    leat_list_init(&file->helds);
    leat_list_init(&file->flush_syncs);
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
    file->grown_units = (uint32_t)(bytes / LEAT_SLOT_UNIT_BYTES);
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

/* Where the next slot of that size would end, if the file grew for it. */
static uint32_t next_end(const struct leat_store_file *file, uint32_t units)
{
    return LEAT_ALIGN_UP(file->grown_units, units) + units;
}

/* The next size of a file that must have `units_needed` free at one piece. */
static leat_err file_grow(struct leat_slots *slots, struct leat_store_file *file,
                          uint32_t units_needed)
{
    const uint32_t step = LEAT_STORE_SLOT_STEP_BYTES / LEAT_SLOT_UNIT_BYTES;
    const uint32_t first = LEAT_STORE_SLOT_FIRST_BYTES / LEAT_SLOT_UNIT_BYTES;
    uint32_t from = file->grown_units;
    uint32_t least = next_end(file, units_needed);
    uint32_t want = from + (from < first ? first : from < step ? from : step);
    if (want < least) want = least;
    if (want > FILE_UNITS) want = FILE_UNITS;
    leat_err rc =
        slots->disk->allocate(slots->disk->ctx, file->file, (uint64_t)want * LEAT_SLOT_UNIT_BYTES);
    if (rc == LEAT_E_DISK_FULL && want > least) {
        want = least;
        rc = slots->disk->allocate(slots->disk->ctx, file->file,
                                   (uint64_t)want * LEAT_SLOT_UNIT_BYTES);
    }
    if (rc) return rc;
    leat_buddy_add(&file->buddy, from, want - from);
    file->grown_units = want;
    slots->disk_bytes += (uint64_t)(want - from) * LEAT_SLOT_UNIT_BYTES;
    return LEAT_OK;
}

leat_err leat_slots_take(struct leat_slots *slots, uint32_t capacity, struct leat_slot *out_slot)
{
    unsigned order = leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES);
    for (uint32_t i = 0; i < slots->count; i++) {
        struct leat_store_file *file = slots->files[i];
        if (!file || file->failed || file->buddy.free_units < (1u << order)) continue;
        if (!leat_buddy_take(&file->buddy, order, &out_slot->unit)) continue;
        out_slot->file = file;
        return LEAT_OK;
    }
    for (uint32_t i = 0; i < LEAT_STORE_FILES_MAX; i++) {
        struct leat_store_file *file = slots->files[i];
        if (!file) {
            leat_err rc = file_open(slots, i, LEAT_OPEN_CREATE, NULL);
            /* The name must survive a power cut before anything in the file counts as durable. */
            if (!rc) rc = slots->disk->sync_dir(slots->disk->ctx, "store");
            if (rc && slots->files[i]) slots->files[i]->failed = true;
            if (rc) return rc;
            file = slots->files[i];
        }
        if (file->failed || next_end(file, 1u << order) > FILE_UNITS) continue;
        leat_err rc = file_grow(slots, file, 1u << order);
        if (rc) return rc;
        bool taken = leat_buddy_take(&file->buddy, order, &out_slot->unit);
        LEAT_ASSERT(taken);
        out_slot->file = file;
        return LEAT_OK;
    }
    return LEAT_E_DISK_FULL;
}

void leat_slots_give(struct leat_slots *slots, struct leat_slot slot, uint32_t capacity)
{
    (void)slots;
    leat_buddy_give(&slot.file->buddy, slot.unit, leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES));
}
