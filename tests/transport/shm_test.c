/* SPDX-License-Identifier: Apache-2.0 */
/* The transport suite over shared memory. */
#include "tests/transport/os_rig.h"

static struct transport_rig *make(void)
{
    struct os_rig *rig = os_rig_make(NULL, NULL);
    rig->rig.writer = os_rig_writer(rig, LEAT_RMEM_SHM);
    os_rig_start(rig);
    return &rig->rig;
}

static void drop(struct transport_rig *rig)
{
    os_rig_stop(rig->ctx);
    os_rig_drop(rig->ctx);
}

int main(void)
{
    static const struct transport_family family = {"shm", LEAT_RMEM_SHM, make, drop, 40};
    return transport_suite_run(&family);
}
