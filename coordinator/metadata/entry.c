/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of entries share: refusals, the epochs that are drawn, and where a log ends. */
#include "coordinator/metadata/private.h"

#include "base/bug.h"
#include "wire/message.h"

#define LEAT_ROWS "coordinator/metadata/bodies.def"
#include "wire/rows_make.h"

void leat_machine_stream_told(struct leat_machine *machine, struct leat_stream_desc *desc)
{
    if (machine->on_stream) machine->on_stream(machine->owner, desc);
}

leat_err leat_machine_malformed(struct leat_machine_result *result)
{
    result->malformed = true;
    return result->rc = leat_error_set(&result->error, LEAT_E_CORRUPT,
                                       "a committed coordinator entry does not decode");
}

uint32_t leat_machine_epoch_draw(struct leat_machine *machine)
{
    if (machine->next_epoch > LEAT_EPOCH_MAX) return 0;
    return LEAT_BUG(EPOCH_TWICE) && machine->next_epoch > 1 ? machine->next_epoch
                                                            : machine->next_epoch++;
}

leat_err leat_machine_epochs_used_up(struct leat_machine_result *result)
{
    return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                       "all %d ownership epochs of this cluster are used up",
                                       LEAT_EPOCH_MAX);
}
