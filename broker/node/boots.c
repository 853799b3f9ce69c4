/* SPDX-License-Identifier: Apache-2.0 */
/* "boots": which start of this data directory came up last, and which start is under way.
 *
 * The coordinators remember the mark of a node's last start, and refuse a directory that has been up and does not
 * know this mark: the directory is in an older state (coordinator/metadata/apply_node.c). A start may end after the
 * coordinators have committed its mark and before the node has heard so. The next start begins again under the same
 * mark. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"

/* Within the first sector: a read finds the old contents or the new contents, never a mix. */
struct boots {
    char magic[8];
    uint32_t version, crc; /* crc: of the whole struct, this field zero */
    uint64_t before;       /* came up; 0: none has */
    uint64_t now;          /* under way; 0: none */
};

static uint32_t boots_crc(struct boots boots)
{
    boots.crc = 0;
    return leat_crc32c(0, &boots, sizeof boots);
}

static leat_err boots_write(struct leat_node *node, struct leat_file *file, uint8_t *block,
                            struct leat_error *error)
{
    struct boots boots = {
        .magic = "LEATBOOT", .version = 1, .before = node->boot_before, .now = node->boot};
    boots.crc = boots_crc(boots);
    return leat_node_file_write(node, "boots", file, block, &boots, sizeof boots, error);
}

static leat_err boots_read(struct leat_node *node, struct leat_file *file, uint8_t *block,
                           struct leat_error *error)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    struct boots boots;
    struct leat_disk_io read = {
        .kind = LEAT_DISK_READ, .file = file, .buffer = block, .bytes = LEAT_NODE_FILE_BYTES};
    leat_err rc = disk->run(disk->ctx, &read);
    memcpy(&boots, block, sizeof boots);
    if (rc != LEAT_OK)
        return leat_error_set(error, rc, "can't read \"boots\" in the data directory: %s",
                              leat_err_text(rc));
    /* New, or a first start that was cut short: a file shorter than its one block was never flushed. A file that lost
     * its end later knows no start, and the coordinators refuse it. */
    bool is_short = read.done_bytes > 0 && read.done_bytes < LEAT_NODE_FILE_BYTES;
    if (is_short && LEAT_BUG(SHORT_IS_DAMAGED))
        return leat_error_set(error, LEAT_E_DAMAGED, "the file \"boots\" is damaged");
    if (read.done_bytes < LEAT_NODE_FILE_BYTES || memcmp(block, (uint8_t[8]){0}, 8) == 0)
        return LEAT_OK;
    if (boots_crc(boots) != boots.crc || memcmp(boots.magic, "LEATBOOT", 8) != 0 ||
        boots.version != 1)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the file \"boots\" in the data directory is damaged: restore it "
                              "from a copy, or start with an empty directory");
    node->boot_before = boots.before;
    node->boot = boots.now;
    return LEAT_OK;
}

/* With the file open and a block for it. */
static leat_err boots_with(struct leat_node *node,
                           leat_err (*act)(struct leat_node *node, struct leat_file *file,
                                           uint8_t *block, struct leat_error *error),
                           struct leat_error *error)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    struct leat_file *file;
    uint8_t *block = leat_mem_calloc(LEAT_MEM_BROKER, 1, LEAT_NODE_FILE_BYTES);
    if (block == NULL)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the file \"boots\"");
    leat_err rc = disk->open(disk->ctx, "boots", LEAT_OPEN_CREATE, &file, error);
    if (rc == LEAT_OK) {
        rc = act(node, file, block, error);
        disk->close(disk->ctx, file);
    }
    leat_mem_free(block);
    return rc;
}

leat_err leat_node_boot_begin(struct leat_node *node, struct leat_error *error)
{
    const struct leat_random *random = node->options.store_env->random;
    if (node->options.cluster.node_address == NULL) return LEAT_OK; /* no other node has copies */
    leat_err rc = boots_with(node, boots_read, error);
    if (rc != LEAT_OK || node->boot != 0) return rc;
    while (node->boot == 0)
        node->boot = random->next(random->ctx);
    return boots_with(node, boots_write, error);
}

leat_err leat_node_boot_taken(struct leat_node *node, struct leat_error *error)
{
    if (node->options.cluster.node_address == NULL) return LEAT_OK;
    LEAT_ASSERT(node->boot != 0);
    node->boot_before = node->boot;
    node->boot = 0;
    return boots_with(node, boots_write, error);
}
