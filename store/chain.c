/* SPDX-License-Identifier: Apache-2.0 */
/* Disk operations that follow each other. */
#include "store/private.h"

/* One behind the other: on this thread as they are submitted, beside it as one chain. */
void leat_disk_append(const struct leat_disk *disk, struct leat_disk_io **before,
                      struct leat_disk_io *io)
{
    if (!io->beside)
        disk->submit(disk->ctx, io);
    else if (*before)
        (*before)->then = io;
    *before = io;
}
