/* SPDX-License-Identifier: Apache-2.0 */
/* A core's state for requests that are neither appends nor fetches, from the start of the core to its end. */
#include "broker/admin/core_admin.h"

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/places.h"
#include "broker/data/core_data.h"
#include "broker/data/stream.h"

struct core_admin_parts {
    struct leat_core_admin admin;
    struct leat_placer placer;
};

leat_err leat_core_admin_make(struct leat_core *core)
{
    struct core_admin_parts *parts = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *parts);
    if (parts == NULL) return LEAT_E_NO_MEMORY;
    core->admin = &parts->admin;
    core->admin->placer = &parts->placer;
    leat_list_init(&core->admin->stream_awaits);
    leat_list_init(&core->admin->producer_waits);
    leat_places_init(core);
    return LEAT_OK;
}

void leat_core_admin_fini(struct leat_core *core)
{
    leat_producer_ids_fini(core);
    leat_places_fini(core);
    const struct leat_core_data *data = core->data;
    for (uint32_t i = 0; data->streams_by_id != NULL && i <= data->stream_mask; i++)
        for (struct leat_stream *stream = data->streams_by_id[i]; stream != NULL;
             stream = stream->by_id_next)
            leat_places_forget(core, stream);
}

void leat_core_admin_free(struct leat_core *core)
{
    if (core->admin == NULL) return;
    leat_mem_free(LEAT_CONTAINER(core->admin, struct core_admin_parts, admin));
    core->admin = NULL;
}
