/* SPDX-License-Identifier: Apache-2.0 */
/* A core's state for its logs, from the start of the core to its end. */
#include "broker/data/core_data.h"

#include "base/mem.h"
#include "broker/data/confirm.h"
#include "broker/data/fetch.h"
#include "broker/data/lend.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/serve.h"
#include "broker/data/stream.h"

struct core_data_parts {
    struct leat_core_data data;
    struct leat_replicate replicate;
    struct leat_confirmer confirmer;
    struct leat_lender lender;
    struct leat_news_line news;
};

leat_err leat_core_data_make(struct leat_core *core)
{
    struct core_data_parts *parts = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *parts);
    if (parts == NULL) return LEAT_E_NO_MEMORY;
    core->data = &parts->data;
    core->data->replicate = &parts->replicate;
    core->data->confirmer = &parts->confirmer;
    core->data->lender = &parts->lender;
    core->data->news = &parts->news;
    return LEAT_OK;
}

void leat_core_data_init(struct leat_core *core)
{
    struct leat_core_data *data = core->data;
    const struct leat_node_options *options = &core->node->options;
    struct leat_list *lists[] = {
        &data->dirty_logs,       &data->opening_logs,  &data->care_logs, &data->idle_logs,
        &data->room_waits,       &data->home_logs,     &data->fetches,   &data->ready_fetches,
        &data->deferred_fetches, &data->starved_reads, &data->locates,   &data->locating};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_restore_budget_init(&data->restore_budget,
                             leat_node_warm_bytes(options->memory_bytes, options->cores));
    leat_news_init(core);
    data->forward_bytes_max = leat_node_forward_bytes(options->memory_bytes, options->cores);
    leat_confirmer_init(core);
}

bool leat_core_tables_init(struct leat_core *core)
{
    struct leat_core_data *data = core->data;
    data->partition_mask = 1023;
    data->stream_mask = 255;
    data->partitions =
        leat_mem_calloc(LEAT_MEM_BROKER, data->partition_mask + 1, sizeof *data->partitions);
    data->streams_by_id =
        leat_mem_calloc(LEAT_MEM_BROKER, data->stream_mask + 1, sizeof *data->streams_by_id);
    data->streams_by_name =
        leat_mem_calloc(LEAT_MEM_BROKER, data->stream_mask + 1, sizeof *data->streams_by_name);
    data->openers = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_OPENERS_MAX, sizeof *data->openers);
    return data->partitions != NULL && data->streams_by_id != NULL &&
           data->streams_by_name != NULL && data->openers != NULL;
}

leat_err leat_core_buffers_init(struct leat_core *core, uint32_t count)
{
    return leat_lender_init(core, count);
}

void leat_core_logs_free(struct leat_core *core)
{
    struct leat_core_data *data = core->data;
    for (uint32_t i = 0; data->partitions != NULL && i <= data->partition_mask; i++)
        while (data->partitions[i] != NULL)
            leat_partition_destroy(data->partitions[i]);
    for (uint32_t i = 0; data->streams_by_id != NULL && i <= data->stream_mask; i++)
        while (data->streams_by_id[i] != NULL)
            leat_stream_remove(core, data->streams_by_id[i]);
}

void leat_core_data_free(struct leat_core *core)
{
    struct leat_core_data *data = core->data;
    if (data == NULL) return;
    leat_mem_free(data->partitions);
    leat_mem_free(data->streams_by_id);
    leat_mem_free(data->streams_by_name);
    leat_mem_free(data->openers);
    leat_lender_fini(core);
    core->data = NULL;
    leat_mem_free(LEAT_CONTAINER(data, struct core_data_parts, data));
}

void leat_core_data_turn_end(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_core_data *data = core->data;
    if (!leat_list_empty(&data->opening_logs)) leat_partition_send_openings(core);
    leat_lend_turn_end(core);
    if (!leat_list_empty(&data->ready_fetches) || !leat_list_empty(&data->starved_reads))
        leat_fetch_run_ready(core);
}
