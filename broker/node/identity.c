/* SPDX-License-Identifier: Apache-2.0 */
/* "identity": made before anything else in a new data directory. It names the cluster, so that the
 * store can be opened (and refuse foreign bytes) before the coordinator has come up. */
#include <string.h>

#include "base/bug.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"

struct identity {
    char magic[8];
    uint32_t version, crc; /* crc: of the whole struct, this field zero */
    uint8_t cluster_id[16];
};

static uint32_t identity_crc(struct identity identity)
{
    identity.crc = 0;
    return leat_crc32c(0, &identity, sizeof identity);
}

static void identity_see(void *arg, const char *name)
{
    if (strcmp(name, "catalogue") == 0 || strcmp(name, "raft") == 0) *(bool *)arg = true;
}

static leat_err identity_check_unused(struct leat_node *node, struct leat_error *error)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    bool used = false;
    (void)disk->list(disk->ctx, ".", identity_see, &used); /* unreadable: the next write says so */
    if (used)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the data directory holds data, but its file \"identity\" is missing "
                              "or empty: restore it from a copy, or choose another directory");
    return LEAT_OK;
}

static leat_err identity_write(struct leat_node *node, struct leat_file *file, uint8_t *block,
                               const uint8_t cluster_id[16], struct leat_error *error)
{
    struct identity identity = {.magic = "LEATIDNT", .version = 1};
    memcpy(identity.cluster_id, cluster_id, sizeof identity.cluster_id);
    identity.crc = identity_crc(identity);
    leat_err rc =
        leat_node_file_write(node, "identity", file, block, &identity, sizeof identity, error);
    if (rc != LEAT_OK) return rc;
    memcpy(node->cluster_id, cluster_id, sizeof node->cluster_id);
    return LEAT_OK;
}

/* A server alone is its own cluster. A node of a cluster learns the cluster's id later, from the other nodes. */
static leat_err identity_make(struct leat_node *node, struct leat_file *file, uint8_t *block,
                              struct leat_error *error)
{
    const struct leat_random *random = node->options.store_env->random;
    uint8_t cluster_id[16];
    node->joining = node->options.cluster.node_address != NULL;
    if (node->joining) return LEAT_OK;
    leat_err rc = identity_check_unused(node, error);
    for (size_t i = 0; i < sizeof cluster_id; i += 8)
        leat_put_le64(cluster_id + i, random->next(random->ctx));
    return rc != LEAT_OK ? rc : identity_write(node, file, block, cluster_id, error);
}

/* First the identity, then the store: a start that is cut short between the two finds a store of no cluster, which is
 * as good as a new store. */
leat_err leat_node_identity_set(struct leat_node *node, const uint8_t cluster_id[16],
                                struct leat_error *error)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    struct leat_file *file;
    uint8_t *block = leat_mem_calloc(LEAT_MEM_BROKER, 1, LEAT_NODE_FILE_BYTES);
    if (block == NULL)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to write \"identity\"");
    leat_err rc = disk->open(disk->ctx, "identity", LEAT_OPEN_CREATE, &file, error);
    if (rc == LEAT_OK) {
        rc = identity_write(node, file, block, cluster_id, error);
        disk->close(disk->ctx, file);
    }
    leat_mem_free(block);
    if (rc != LEAT_OK) return rc;
    return leat_store_join(node->store, cluster_id, error);
}

leat_err leat_node_identity(struct leat_node *node, struct leat_error *error)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    struct leat_file *file;
    leat_err rc = disk->open(disk->ctx, "identity", LEAT_OPEN_CREATE, &file, error);
    if (rc != LEAT_OK) return rc;
    uint8_t *block = leat_mem_calloc(LEAT_MEM_BROKER, 1, LEAT_NODE_FILE_BYTES);
    struct identity identity;
    if (block == NULL) {
        disk->close(disk->ctx, file);
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to read \"identity\"");
    }
    struct leat_disk_io read = {
        .kind = LEAT_DISK_READ, .file = file, .buffer = block, .bytes = LEAT_NODE_FILE_BYTES};
    rc = disk->run(disk->ctx, &read);
    memcpy(&identity, block, sizeof identity);
    if (rc != LEAT_OK) {
        rc = leat_error_set(error, rc, "can't read \"identity\" in the data directory: %s",
                            leat_err_text(rc));
    } else if (read.done_bytes == 0 || leat_get_le64(block) == 0) {
        /* New, or a first start that was cut short before its write was durable. */
        rc = identity_make(node, file, block, error);
    } else if (read.done_bytes < sizeof identity || identity_crc(identity) != identity.crc ||
               memcmp(identity.magic, "LEATIDNT", 8) != 0) {
        rc = leat_error_set(error, LEAT_E_DAMAGED,
                            "the file \"identity\" in the data directory is damaged: restore it "
                            "from a copy");
    } else if (identity.version != 1) {
        rc = leat_error_set(error, LEAT_E_UNSUPPORTED,
                            "the data directory has format %u, this program knows 1",
                            identity.version);
    } else {
        /* SUBTLE: the identity is written again, unchanged. Else (1) a start wrote the identity, the flush failed,
         * and the node stopped; (2) the next start reads the identity out of the page cache and makes the store under
         * its cluster id; (3) the power goes: the store would be of a cluster, and the node of none, for ever. */
        if (LEAT_BUG(IDENTITY_UNSYNCED))
            memcpy(node->cluster_id, identity.cluster_id, sizeof node->cluster_id);
        else
            rc = identity_write(node, file, block, identity.cluster_id, error);
    }
    leat_mem_free(block);
    disk->close(disk->ctx, file);
    return rc;
}
