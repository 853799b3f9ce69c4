/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the protocol listener, and each core's state for it. */
#include "base/assert.h"
#include "base/mem.h"
#include "kafka/apis.h"
#include "kafka/kafka.h"

_Static_assert(sizeof(struct leat_kafka_request) <= LEAT_FRONT_REQUEST_BYTES,
               "the memory budget counts them");

static leat_err door_core_open(struct leat_door *door, struct leat_core *core)
{
    LEAT_ASSERT(leat_front_own(core) == NULL);
    struct leat_kafka_core *here = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *here);
    if (here == NULL) return LEAT_E_NO_MEMORY;
    here->door = LEAT_CONTAINER(door, struct leat_kafka_door, door);
    here->share.bytes_max = leat_front_memory_bytes(core);
    leat_front_own_set(core, here);
    leat_err rc =
        leat_front_stock_open(core, sizeof(struct leat_kafka_request),
                              leat_front_structs(core, LEAT_KAFKA_REQUESTS_MAX), &here->requests);
    if (rc == LEAT_OK) rc = leat_front_stock_open(core, sizeof(void *), 1, &here->memory);
    return rc;
}

static void door_core_close(struct leat_door *door, struct leat_core *core)
{
    struct leat_kafka_core *here = leat_front_own(core);
    (void)door;
    if (here == NULL) return;
    leat_front_stock_close(&here->requests);
    leat_front_stock_close(&here->memory);
    leat_mem_free(here);
    leat_front_own_set(core, NULL);
}

leat_err leat_kafka_open(const struct leat_kafka_options *options, struct leat_door **out_door)
{
    struct leat_kafka_door *door = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *door);
    if (door == NULL) return LEAT_E_NO_MEMORY;
    door->options = *options;
    door->table = leat_kafka_table();
    if (options->partitions == 0) door->options.partitions = 1;
    if (options->copies == 0) door->options.copies = 1;
    door->door = (struct leat_door){
        .address = options->address,
        .advertise = options->advertise,
        .optional = options->optional,
        .core_open = door_core_open,
        .core_close = door_core_close,
        .on_accept = leat_kafka_accept,
    };
    *out_door = &door->door;
    return LEAT_OK;
}

void leat_kafka_close(struct leat_door **door)
{
    if (*door == NULL) return;
    leat_mem_free(LEAT_CONTAINER(*door, struct leat_kafka_door, door));
    *door = NULL;
}
