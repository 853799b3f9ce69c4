/* SPDX-License-Identifier: Apache-2.0 */
/* The disk port of an actor: its blocking calls, its queue, and both in turn. */
#include "os/internal.h"

/* What was submitted before runs first; its completions arrive as usual. */
static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    struct os_actor *actor = ctx;
    while (actor->disk.first)
        leat_os_disk_run(actor);
    io->done_bytes = 0;
    io->rc = LEAT_OK;
    leat_os_disk_io_run(io);
    return io->rc;
}

void leat_os_disk_ports_init(struct os_actor *actor)
{
    actor->disk_port = leat_os_disk_calls(actor);
    actor->disk_port.submit = leat_os_disk_submit;
    actor->disk_port.run = disk_run;
}
