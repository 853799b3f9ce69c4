/* SPDX-License-Identifier: Apache-2.0 */
/* Replication's control requests over link/: one leat_rep_link for each core, with both sides.
 *
 *     leat_primary -> leat_rep_link_net() -> a link to core 0 of each node      (LEAT_LINK_REPLICATE)
 *     links of others -> leat_rep_link_handler() -> leat_backup                 (on the backup's core)
 */
#ifndef LEAT_REPLICATION_OVER_LINK_H
#define LEAT_REPLICATION_OVER_LINK_H

#include "replication/backup/backup.h"
#include "replication/primary/primary.h"

struct leat_rep_link; /* opaque */

/** The links are the core's; create this first, give its handler to the links' service
 * LEAT_LINK_REPLICATE (on the backup's core), then leat_rep_link_start(). Thread: startup. */
leat_err leat_rep_link_create(struct leat_rep_link **out_rep_link) LEAT_NODISCARD;
const struct leat_link_handler *leat_rep_link_handler(struct leat_rep_link *rep_link);
/** For leat_primary_options and leat_backup_options. */
struct leat_rep_net leat_rep_link_net(struct leat_rep_link *rep_link);
/** primary: told when links come and go; NULL on none. backup: gets requests; NULL: this core has
 * none. Both outlive this, or are set to NULL here first. Thread: the core. */
void leat_rep_link_start(struct leat_rep_link *rep_link, struct leat_links *links,
                         struct leat_primary *primary, struct leat_backup *backup);
/**
 * Where a node is. Opens the link to its backup, which is on LEAT_ACTOR_CORE_0; incarnation 0: closes
 * it. Tells the primary too (leat_primary_node_set()).
 * Errors: those of leat_link_open(). Thread: the core.
 */
leat_err leat_rep_link_node_set(struct leat_rep_link *rep_link, const struct leat_rep_node *node,
                                const char *address, struct leat_error *error) LEAT_NODISCARD;
/** Closes its links: requests under way end with LEAT_E_CANCELLED, later. */
void leat_rep_link_destroy(struct leat_rep_link **rep_link);

#endif
