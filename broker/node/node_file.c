/* SPDX-License-Identifier: Apache-2.0 */
/* The small files of a data directory that are read before anything else ("identity", "boots"): one block each. */
#include <string.h>

#include "base/assert.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"

leat_err leat_node_file_write(struct leat_node *node, const char *name, struct leat_file *file,
                              uint8_t *block, const void *content, size_t bytes,
                              struct leat_error *error)
{
    enum {
        SECTOR_BYTES = 512
    }; /* within the first sector: a read finds the old contents or the new contents, never a mix */
    const struct leat_disk *disk = node->options.store_env->disk;
    LEAT_ASSERT_CMP(bytes, <=, SECTOR_BYTES);
    memset(block, 0, LEAT_NODE_FILE_BYTES);
    memcpy(block, content, bytes);
    struct leat_disk_io write = {
        .kind = LEAT_DISK_WRITE, .file = file, .buffer = block, .bytes = LEAT_NODE_FILE_BYTES};
    struct leat_disk_io sync = {.kind = LEAT_DISK_SYNC, .file = file};
    leat_err rc = disk->run(disk->ctx, &write);
    if (rc == LEAT_OK) rc = disk->run(disk->ctx, &sync);
    if (rc == LEAT_OK) rc = disk->sync_dir(disk->ctx, ".");
    if (rc != LEAT_OK)
        return leat_error_set(error, rc, "can't write \"%s\" in the data directory: %s", name,
                              leat_err_text(rc));
    return LEAT_OK;
}
