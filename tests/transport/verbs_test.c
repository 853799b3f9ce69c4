/* SPDX-License-Identifier: Apache-2.0 */
/* The transport suite over verbs: on a real RDMA stack (tests/vm runs it in a guest with Soft-RoCE), and on the device
 * of tests/fuzz/fake_verbs.c. */
#include "tests/transport/os_rig.h"

#include <stdio.h>

#ifdef LEAT_TESTS_VERBS_FAKED
enum { WITHOUT_DEVICE = 1 }; /* the device is always there */
#else
enum { WITHOUT_DEVICE = 77 }; /* skipped */
#endif

static struct transport_rig *make(void)
{
    struct os_rig *rig = os_rig_make(NULL, "0.0.0.0");
    rig->rig.writer = os_rig_writer(rig, LEAT_RMEM_VERBS);
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
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    static const struct transport_family family = {"verbs", LEAT_RMEM_VERBS, make, drop, 8};
    struct os_rig *rig = os_rig_make(NULL, "0.0.0.0");
    const char *why = leat_os_rmem_no_verbs(rig->world);
    if (why) {
        printf("%s: %s\n", WITHOUT_DEVICE == 77 ? "skipped" : "failed", why);
        os_rig_drop(rig);
        return WITHOUT_DEVICE;
    }
    os_rig_drop(rig);
    return transport_suite_run(&family);
}
