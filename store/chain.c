/* SPDX-License-Identifier: Apache-2.0 */
/* Disk operations that follow each other. */
#include "store/private.h"

/* In order: on this thread in the order of submission, on other threads as a chain. */
void leat_disk_append(const struct leat_disk *disk, struct leat_disk_io **before,
                      struct leat_disk_io *io)
{
    if (!io->beside)
        disk->submit(disk->ctx, io);
    else if (*before)
        (*before)->then = io;
    *before = io;
}
