/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes, one for each connection for fetches, and the memory of their answers. */
#include "internal.h"

#include "base/assert.h"
#include "base/mem.h"

/* ---- answers' memory ---- */

void leat_consumer_answer_unref(struct leat_consumer_engine *engine,
                                struct leat_consumer_answer *answer)
{
    LEAT_ASSERT_CMP(answer->refs, >, 0);
    if (--answer->refs) return;
    answer->lane->answers--;
    leat_free_list_give(&engine->free_answers, answer);
}

void leat_consumer_answers_free(struct leat_consumer_engine *engine)
{
    struct leat_consumer_answer *answer;
    while ((answer = leat_free_list_take(&engine->free_answers))) {
        leat_mem_free(answer->bytes);
        leat_mem_free(answer->runs);
        leat_mem_free(answer);
    }
}

void leat_consumer_lanes_cancel(struct leat_consumer_engine *engine)
{
    for (uint32_t i = 0; i < engine->lane_count; i++) {
        struct leat_consumer_lane *lane = engine->lanes[i];
        if (lane->fetching) leat_client_cancel(engine->client, &lane->fetch);
        if (lane->locating) leat_client_cancel(engine->client, &lane->locate);
        lane->fetching = lane->locating = false;
        lane->fetch_count = lane->locate_count = 0;
    }
}

static void lane_free(struct leat_consumer_lane *lane)
{
    leat_mem_free(lane->fetch_logs);
    leat_mem_free(lane->before_logs);
    leat_mem_free(lane->locate_logs);
    leat_mem_free(lane->fetch_control);
    leat_mem_free(lane->locate_control);
    leat_mem_free(lane);
}

void leat_consumer_lanes_free(struct leat_consumer_engine *engine)
{
    for (uint32_t i = 0; i < engine->lane_count; i++)
        lane_free(engine->lanes[i]);
    engine->lane_count = 0;
}

struct leat_consumer_answer *leat_consumer_answer_take(struct leat_consumer_engine *engine,
                                                       struct leat_consumer_lane *lane,
                                                       size_t bytes, uint32_t runs)
{
    struct leat_consumer_answer *answer = leat_free_list_take(&engine->free_answers);
    if (!answer) answer = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *answer);
    if (!answer) return NULL;
    if (answer->capacity < bytes) {
        /* Room for a full answer at once: these buffers are kept, and their sizes vary little. */
        size_t room = engine->options.fetch_bytes > bytes ? engine->options.fetch_bytes : bytes;
        leat_mem_free(answer->bytes);
        answer->bytes = leat_mem_calloc(LEAT_MEM_CLIENT, 1, room);
        answer->capacity = answer->bytes ? room : 0;
    }
    if (answer->run_capacity < runs) {
        struct leat_consumer_run *grown =
            leat_mem_realloc(LEAT_MEM_CLIENT, answer->runs, runs, sizeof *grown);
        if (grown) {
            answer->runs = grown;
            answer->run_capacity = runs;
        }
    }
    answer->run_count = 0;
    answer->refs = 1; /* of the filler */
    answer->lane = lane;
    lane->answers++;
    if (answer->capacity < bytes || answer->run_capacity < runs) {
        leat_consumer_answer_unref(engine, answer);
        return NULL;
    }
    return answer;
}

/* ---- lanes ---- */

static struct leat_consumer_lane *lane_make(struct leat_consumer_engine *engine, uint64_t owner,
                                            uint32_t number)
{
    if (engine->lane_count == CONSUMER_LANES_MAX) return NULL;
    struct leat_consumer_lane *lane = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *lane);
    if (!lane) return NULL;
    lane->fetch_logs =
        leat_mem_calloc(LEAT_MEM_CLIENT, CONSUMER_FETCH_LOGS_MAX, sizeof *lane->fetch_logs);
    lane->before_logs =
        leat_mem_calloc(LEAT_MEM_CLIENT, CONSUMER_FETCH_LOGS_MAX, sizeof *lane->before_logs);
    lane->locate_logs =
        leat_mem_calloc(LEAT_MEM_CLIENT, CONSUMER_LOCATE_LOGS_MAX, sizeof *lane->locate_logs);
    lane->fetch_control =
        leat_mem_calloc(LEAT_MEM_CLIENT, CONSUMER_FETCH_LOGS_MAX + 1, CONSUMER_FETCH_LOG_BYTES);
    lane->locate_control =
        leat_mem_calloc(LEAT_MEM_CLIENT, CONSUMER_LOCATE_LOGS_MAX + 1, CONSUMER_FETCH_LOG_BYTES);
    lane->engine = engine;
    lane->owner = owner;
    lane->lane = number;
    lane->retry_at_us = UINT64_MAX;
    if (!lane->fetch_logs || !lane->before_logs || !lane->locate_logs || !lane->fetch_control ||
        !lane->locate_control) {
        lane_free(lane);
        return NULL;
    }
    engine->lanes[engine->lane_count++] = lane;
    return lane;
}

struct leat_consumer_lane *leat_consumer_lane_of(struct leat_consumer_engine *engine,
                                                 uint64_t owner, uint32_t number)
{
    struct leat_consumer_lane *spare = NULL;
    for (uint32_t i = 0; i < engine->lane_count; i++) {
        struct leat_consumer_lane *lane = engine->lanes[i];
        if (lane->owner == owner && lane->lane == number) return lane;
        if (!lane->fetching && !lane->locating && lane->answers == 0) spare = lane;
    }
    struct leat_consumer_lane *lane = lane_make(engine, owner, number);
    if (lane || !spare) return lane;
    spare->owner = owner; /* of an incarnation that is gone */
    spare->lane = number;
    return spare;
}
