/* SPDX-License-Identifier: Apache-2.0 */
/* Where the logs of a streamlet end, for their owner: by this node's own tables. */
#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/membership/requests.h"

leat_err co_tails_answer(struct leat_coordinator *coordinator, struct leat_coordinate *request)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_log_ref ref = {request->stream_id, request->streamlet, 0};
    struct leat_machine_stream *stream;
    if (!leat_machine_log_find(&coordinator->machine, ref, &stream))
        return leat_error_set(&request->error, LEAT_E_UNKNOWN_STREAM,
                              "there is no such stream or streamlet (any more)");
    const struct leat_stream_desc *desc = stream->desc;
    uint32_t logs = desc->settings.logs;
    request->ends = leat_mem_calloc(LEAT_MEM_COORDINATOR, logs, sizeof *request->ends);
    if (!request->ends)
        return leat_error_set(&request->error, LEAT_E_NO_MEMORY, "no memory for an answer");
    for (uint32_t q = 0; q < logs; q++) {
        const struct leat_machine_log *log = &stream->logs[ref.streamlet * logs + q];
        ref.log = q;
        request->ends[q] = (struct leat_log_end){.log = ref,
                                                 .epoch = log->epoch,
                                                 .record = log->record,
                                                 .waits = leat_machine_log_waits(log)};
    }
    request->end_count = logs;
    request->epoch = desc->streamlets[ref.streamlet].epoch;
    request->incarnation = desc->streamlets[ref.streamlet].owner;
    return LEAT_OK;
}
