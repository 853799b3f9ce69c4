/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a few sizes, kept ready so that the data path does not go to the allocator: blocks
 * past 128 KiB would be mapped and unmapped, hence page-faulted, each time. */
#include "os/internal.h"

#include "base/assert.h"
#include "base/mem.h"

enum {
    BUFFER_BYTES_MIN = 1024,
};

/* At the start of an unused buffer. */
struct os_buffer {
    struct os_buffer *next;
};

static unsigned class_of(size_t bytes, size_t *out_capacity)
{
    size_t capacity = BUFFER_BYTES_MIN;
    unsigned index = 0;
    while (capacity < bytes) {
        capacity *= 2;
        index++;
    }
    LEAT_ASSERT_CMP(index, <, LEAT_OS_BUFFER_CLASSES);
    *out_capacity = capacity;
    return index;
}

size_t leat_os_buffer_capacity(size_t bytes)
{
    size_t capacity;
    (void)class_of(bytes, &capacity); /* the size alone is asked for */
    return capacity;
}

uint8_t *leat_os_buffer_get(struct os_buffers *buffers, size_t bytes, size_t *out_capacity)
{
    size_t capacity;
    unsigned index = class_of(bytes, &capacity);
    struct os_buffer *buffer = buffers->ready[index];
    if (buffer) {
        buffers->ready[index] = buffer->next;
        buffers->ready_bytes -= capacity;
    } else {
        buffer = leat_mem_calloc(LEAT_MEM_NET, 1, capacity);
        if (!buffer) return NULL;
    }
    *out_capacity = capacity;
    return (uint8_t *)buffer;
}

void leat_os_buffer_put(struct os_buffers *buffers, uint8_t *bytes, size_t capacity, uint64_t used)
{
    size_t same;
    unsigned index = class_of(capacity, &same);
    LEAT_ASSERT_CMP(same, ==, capacity);
    if (used + buffers->ready_bytes + capacity > buffers->ready_bytes_max) {
        leat_mem_free(bytes);
        return;
    }
    struct os_buffer *buffer = (struct os_buffer *)(void *)bytes;
    buffer->next = buffers->ready[index];
    buffers->ready[index] = buffer;
    buffers->ready_bytes += capacity;
}

void leat_os_buffers_fini(struct os_buffers *buffers)
{
    for (unsigned i = 0; i < LEAT_OS_BUFFER_CLASSES; i++) {
        while (buffers->ready[i]) {
            struct os_buffer *buffer = buffers->ready[i];
            buffers->ready[i] = buffer->next;
            leat_mem_free(buffer);
        }
    }
    buffers->ready_bytes = 0;
}
