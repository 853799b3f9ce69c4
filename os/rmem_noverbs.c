/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for the verbs transport where its libraries were not there when this was built. */
#include "os/rmem.h"

void leat_os_verbs_open(struct os_rmem *rmem, const char *host, struct leat_error *error)
{
    (void)rmem;
    (void)host;
    leat_error_set(error, LEAT_E_UNSUPPORTED,
                   "this leatd was built without libibverbs and librdmacm");
}

leat_err leat_os_verbs_writer_open(struct os_rmem *rmem, struct os_actor *actor)
{
    (void)rmem;
    (void)actor;
    return LEAT_OK;
}

void leat_os_verbs_actor_close(struct os_rmem *rmem, struct os_actor *actor)
{
    (void)rmem;
    (void)actor;
}

void leat_os_verbs_close(struct os_rmem *rmem)
{
    (void)rmem;
}

void leat_os_verbs_step(struct os_rmem_arena *arena, uint64_t step)
{
    (void)arena;
    (void)step;
}

size_t leat_os_verbs_grant(const struct os_rmem_arena *arena, uint8_t out[RMEM_SECTION_BYTES])
{
    (void)arena;
    (void)out;
    return 0;
}

void leat_os_verbs_revoke(struct os_rmem_arena *arena)
{
    (void)arena;
}

void leat_os_verbs_release(struct os_rmem_arena *arena)
{
    (void)arena;
}
