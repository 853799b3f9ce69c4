/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's actor: membership, and recovery on top of it. */
#include "coordinator/coordinator.h"

#include <string.h>

#include "base/assert.h"
#include "coordinator/membership/actor.h"
#include "coordinator/membership/services.h"
#include "coordinator/metadata/machine.h"
#include "coordinator/recovery/recovery.h"

/* ---- turns ---- */

static void actor_wake(void *actor)
{
    co_wake(actor);
}

static void actor_turn_end(void *actor)
{
    struct leat_coordinator *coordinator = actor;
    if (!co_turn_advance(coordinator)) return;
    co_recovery_turn_end(coordinator);
    co_turn_tell(coordinator);
}

static void actor_check(const void *actor)
{
    co_check(actor);
}

const struct leat_actor_ops leat_coordinator_actor = {actor_wake, actor_turn_end, actor_check};

/* ---- life ---- */

leat_err leat_coordinator_open(const struct leat_env *env,
                               const struct leat_coordinator_options *options,
                               struct leat_coordinator **out_coordinator, struct leat_error *error)
{
    struct leat_coordinator *coordinator = NULL;
    leat_err rc = co_create(env, options, co_recovery_take, &coordinator, error);
    if (rc != LEAT_OK) return rc;
    rc = co_recovery_init(coordinator);
    if (rc == LEAT_OK) rc = co_open(coordinator, error);
    if (rc != LEAT_OK) {
        if (error && error->code != rc) (void)leat_error_set(error, rc, "%s", leat_err_text(rc));
        leat_coordinator_close(&coordinator);
        return rc;
    }
    *out_coordinator = coordinator;
    return LEAT_OK;
}

void leat_coordinator_close(struct leat_coordinator **coordinator)
{
    if (!*coordinator) return;
    co_close(*coordinator);
    co_recovery_close(*coordinator);
    co_destroy(coordinator);
}

/* ---- look-ups ---- */

bool leat_coordinator_log(const struct leat_coordinator *coordinator, struct leat_log_ref ref,
                          struct leat_log_record *out_record, struct leat_epoch *out_epoch)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct leat_machine_stream *stream;
    const struct leat_machine_log *log =
        leat_machine_log_find(co_tables(coordinator), ref, &stream);
    if (!log) return false;
    *out_record = log->record;
    *out_epoch = log->epoch;
    return true;
}

void leat_coordinator_cluster_id(const struct leat_coordinator *coordinator, uint8_t out_id[16])
{
    memcpy(out_id, co_tables(coordinator)->cluster_id, 16);
}
