/* SPDX-License-Identifier: Apache-2.0 */
/* The port suite on the real ports. */
#include "tests/os/real_rig.h"

int main(void)
{
    static const struct port_family family = {"real", real_rig_make, real_rig_drop};
    return port_suite_run(&family);
}
