/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the state machine: streams by id and by name, nodes. */
#include "coordinator/metadata/private.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"

void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    atomic_fetch_add_explicit(&desc->refs, 1, memory_order_relaxed);
}

void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    /* acq_rel: the thread that frees must see every other holder's last use. */
    if (desc && atomic_fetch_sub_explicit(&desc->refs, 1, memory_order_acq_rel) == 1)
        leat_mem_free(desc);
}

void leat_machine_init(struct leat_machine *machine, uint32_t cores)
{
    machine->cores = cores;
    machine->next_stream_id = 1;
    machine->next_epoch = 1;
    machine->next_incarnation = 1;
}

void leat_machine_fini(struct leat_machine *machine)
{
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        leat_stream_desc_unref(machine->streams[i].desc);
        leat_mem_free(machine->streams[i].logs);
        leat_mem_free(machine->streams[i].owners);
    }
    leat_mem_free(machine->streams);
    leat_mem_free(machine->names);
    leat_mem_free(machine->staged);
    leat_mem_free(machine->outcomes);
    void (*on_stream)(void *, struct leat_stream_desc *) = machine->on_stream;
    void (*on_stream_deleted)(void *, uint32_t) = machine->on_stream_deleted;
    void (*on_node)(void *, const struct leat_node_info *) = machine->on_node;
    void *owner = machine->owner;
    uint32_t cores = machine->cores;
    memset(machine, 0, sizeof *machine); /* too large for a compound literal on the stack */
    leat_machine_init(machine, cores);
    machine->on_stream = on_stream;
    machine->on_stream_deleted = on_stream_deleted;
    machine->on_node = on_node;
    machine->owner = owner;
}

bool leat_machine_text_equal(const char *text, const char *view, size_t view_bytes)
{
    return strlen(text) == view_bytes && memcmp(text, view, view_bytes) == 0;
}

/* Index of the first stream with an id >= `id`. */
static uint32_t stream_index(const struct leat_machine *machine, uint32_t id)
{
    uint32_t low = 0, high = machine->stream_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (machine->streams[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct leat_machine_stream *leat_machine_stream_find(const struct leat_machine *machine,
                                                     uint32_t id)
{
    uint32_t i = stream_index(machine, id);
    if (i == machine->stream_count || machine->streams[i].id != id) return NULL;
    return &machine->streams[i];
}

static uint32_t name_hash(const char *name, size_t bytes)
{
    return leat_crc32c(0, name, bytes);
}

/* The slot that holds the name, or the free slot for the name. */
static uint32_t name_slot(struct leat_machine *machine, const char *name, size_t bytes)
{
    uint32_t mask = machine->name_capacity - 1;
    for (uint32_t slot = name_hash(name, bytes) & mask;; slot = (slot + 1) & mask) {
        if (machine->names[slot] == 0) return slot;
        struct leat_machine_stream *stream =
            leat_machine_stream_find(machine, machine->names[slot]);
        LEAT_ASSERT(stream);
        if (leat_machine_text_equal(stream->desc->name, name, bytes)) return slot;
    }
}

struct leat_machine_stream *leat_machine_name_find(struct leat_machine *machine, const char *name,
                                                   size_t bytes)
{
    if (machine->name_capacity == 0) return NULL;
    uint32_t id = machine->names[name_slot(machine, name, bytes)];
    return id == 0 ? NULL : leat_machine_stream_find(machine, id);
}

static leat_err names_reserve(struct leat_machine *machine)
{
    if ((machine->stream_count + 1) * 2 <= machine->name_capacity) return LEAT_OK;
    uint32_t capacity = machine->name_capacity == 0 ? 64 : machine->name_capacity * 2;
    uint32_t *names = leat_mem_calloc(LEAT_MEM_ROWS, capacity, sizeof *names);
    if (!names) return LEAT_E_NO_MEMORY;
    leat_mem_free(machine->names);
    machine->names = names;
    machine->name_capacity = capacity;
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        const char *name = machine->streams[i].desc->name;
        machine->names[name_slot(machine, name, strlen(name))] = machine->streams[i].id;
    }
    return LEAT_OK;
}

static leat_err streams_reserve(struct leat_machine *machine)
{
    if (machine->stream_count < machine->stream_capacity) return LEAT_OK;
    uint32_t capacity = machine->stream_capacity == 0 ? 64 : machine->stream_capacity * 2;
    void *streams =
        leat_mem_realloc(LEAT_MEM_ROWS, machine->streams, capacity, sizeof *machine->streams);
    if (!streams) return LEAT_E_NO_MEMORY;
    machine->streams = streams;
    machine->stream_capacity = capacity;
    return LEAT_OK;
}

/* Takes desc on success. Ids must come ascending: they do, from the counter and from snapshots. */
leat_err leat_machine_stream_add(struct leat_machine *machine, struct leat_stream_desc *desc,
                                 struct leat_machine_log **out_logs)
{
    LEAT_ASSERT(machine->stream_count == 0 ||
                machine->streams[machine->stream_count - 1].id < desc->id);
    uint32_t log_count = desc->settings.streamlets * desc->settings.logs;
    if (names_reserve(machine) != LEAT_OK || streams_reserve(machine) != LEAT_OK)
        return LEAT_E_NO_MEMORY;
    struct leat_machine_log *logs = leat_mem_calloc(LEAT_MEM_ROWS, log_count, sizeof *logs);
    uint16_t *owners = leat_mem_calloc(LEAT_MEM_ROWS, desc->settings.streamlets, sizeof *owners);
    if (!logs || !owners) {
        leat_mem_free(logs);
        leat_mem_free(owners);
        return LEAT_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < desc->settings.streamlets; i++)
        owners[i] = LEAT_OWNER_NONE;
    uint32_t slot = name_slot(machine, desc->name, strlen(desc->name));
    machine->streams[machine->stream_count++] = (struct leat_machine_stream){
        .id = desc->id, .desc = desc, .logs = logs, .owners = owners, .log_count = log_count};
    machine->names[slot] = desc->id;
    machine->log_count += log_count;
    *out_logs = logs;
    return LEAT_OK;
}

/* Open addressing without tombstones: what follows the hole moves up. */
static void name_remove(struct leat_machine *machine, const char *name)
{
    uint32_t mask = machine->name_capacity - 1;
    uint32_t hole = name_slot(machine, name, strlen(name));
    machine->names[hole] = 0;
    for (uint32_t slot = (hole + 1) & mask; machine->names[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t id = machine->names[slot];
        const char *moved = leat_machine_stream_find(machine, id)->desc->name;
        machine->names[slot] = 0;
        machine->names[name_slot(machine, moved, strlen(moved))] = id;
    }
}

void leat_machine_stream_drop(struct leat_machine *machine, struct leat_machine_stream *stream)
{
    name_remove(machine, stream->desc->name);
    machine->log_count -= stream->log_count;
    leat_stream_desc_unref(stream->desc);
    leat_mem_free(stream->logs);
    leat_mem_free(stream->owners);
    uint32_t index = (uint32_t)(stream - machine->streams);
    memmove(stream, stream + 1, (machine->stream_count - index - 1) * sizeof *stream);
    machine->stream_count--;
}

struct leat_stream_desc *leat_machine_desc_create(uint32_t id, const char *name, size_t name_bytes,
                                                  const struct leat_stream_settings *settings)
{
    LEAT_ASSERT_CMP(name_bytes, <=, LEAT_STREAM_NAME_BYTES_MAX);
    struct leat_stream_desc *desc = leat_mem_calloc(
        LEAT_MEM_ROWS, 1, sizeof *desc + (size_t)settings->streamlets * sizeof desc->streamlets[0]);
    if (!desc) return NULL;
    atomic_init(&desc->refs, 1);
    desc->id = id;
    memcpy(desc->name, name, name_bytes);
    desc->settings = *settings;
    desc->internal = name_bytes >= 5 && memcmp(name, "leat.", 5) == 0;
    desc->streamlet_count = settings->streamlets;
    return desc;
}

struct leat_stream_desc *leat_machine_desc_copy(const struct leat_stream_desc *old)
{
    struct leat_stream_desc *desc =
        leat_machine_desc_create(old->id, old->name, strlen(old->name), &old->settings);
    if (!desc) return NULL;
    desc->remade = old->remade;
    memcpy(desc->streamlets, old->streamlets, old->streamlet_count * sizeof desc->streamlets[0]);
    return desc;
}

struct leat_machine_node *leat_machine_node_find(struct leat_machine *machine, const char *name,
                                                 size_t bytes)
{
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (leat_machine_text_equal(machine->nodes[i].info.name, name, bytes))
            return &machine->nodes[i];
    return NULL;
}
