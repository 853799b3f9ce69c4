/* SPDX-License-Identifier: Apache-2.0 */
/* Messages made of chance: any struct of the tables, filled as one version could send it. */
#ifndef LEAT_TESTS_KAFKA_FILL_H
#define LEAT_TESTS_KAFKA_FILL_H

#include "kafka/codec/schema.h"

struct fill {
    uint64_t state; /* of the chance; any number but 0 */
    int16_t version;
    bool flexible;
    struct leat_kafka_arena *arena;
};
uint64_t fill_next(struct fill *fill);
/** Strings lie in the arena, too. */
void fill_struct(struct fill *fill, const struct leat_kafka_type *type, void *out);

#endif
