/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as a voter stores them, and as learners get them: tables that are loaded give the same bytes again, and
 * their streams can be found, reported and deleted. */
#include "fuzz.h"

#include <stdio.h>

#include "base/mem.h"
#include "coordinator/metadata/machine.h"

static void snapshots_compare(const struct leat_machine *a, const struct leat_machine *b)
{
    uint8_t *one, *two;
    size_t one_count, two_count;
    LEAT_ASSERT(leat_machine_snapshot(a, &one, &one_count) == LEAT_OK);
    LEAT_ASSERT(leat_machine_snapshot(b, &two, &two_count) == LEAT_OK);
    LEAT_ASSERT(one_count == two_count && memcmp(one, two, one_count) == 0);
    leat_mem_free(one);
    leat_mem_free(two);
}

static void delete_apply(struct leat_machine *machine, const char *name)
{
    uint8_t bytes[512];
    struct leat_msg_writer w;
    struct leat_machine_result result;
    leat_msg_writer_init(&w, bytes, sizeof bytes);
    leat_msg_write_array(&w, 3);
    leat_msg_write_u64(&w, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&w, LEAT_COMMAND_STREAM_DELETE);
    leat_msg_write_string(&w, name, strlen(name));
    LEAT_ASSERT(!w.overflow);
    LEAT_ASSERT(leat_machine_apply(machine, bytes, w.used, &result) == LEAT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct leat_machine first, second; /* large, and mostly never touched */
    leat_machine_init(&first, 2);
    leat_machine_init(&second, 2);
    if (leat_machine_restore(&first, data, size) != LEAT_OK) return 0;
    leat_machine_check(&first);
    uint8_t *bytes;
    size_t count;
    LEAT_ASSERT(leat_machine_snapshot(&first, &bytes, &count) == LEAT_OK);
    LEAT_ASSERT(leat_machine_restore(&second, bytes, count) == LEAT_OK);
    leat_mem_free(bytes);
    snapshots_compare(&first, &second);
    for (uint32_t i = first.stream_count; i-- > 0;) {
        char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
        snprintf(name, sizeof name, "%s", first.streams[i].desc->name);
        LEAT_ASSERT(leat_machine_name_find(&first, name, strlen(name)) == &first.streams[i]);
        if (i % 2 == 0) delete_apply(&first, name);
        if (i % 2 == 0) delete_apply(&second, name);
    }
    snapshots_compare(&first, &second);
    leat_machine_fini(&first);
    leat_machine_fini(&second);
    return 0;
}
