/* The leader's side of recovery: see recovery.h and docs/recovery.md. */
#include "coordinator/recovery.h"

void co_recovery_rows(struct leat_coordinator *coordinator, uint64_t incarnation,
                      struct leat_collect *collect)
{
    (void)coordinator;
    (void)incarnation;
    (void)collect;
}

void co_recovery_pulled(struct leat_coordinator *coordinator, uint64_t incarnation,
                        uint64_t attempt, const leat_err *codes, uint32_t count)
{
    (void)coordinator;
    (void)incarnation;
    (void)attempt;
    (void)codes;
    (void)count;
}
