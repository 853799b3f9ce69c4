/* SPDX-License-Identifier: Apache-2.0 */
/* What this coordinator is: its name, its cluster, and whether it votes. */
#include <string.h>

#include "base/assert.h"
#include "coordinator/membership/voters.h"

bool co_cluster_known(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    static const uint8_t none[16];
    return memcmp(coordinator->cluster_id, none, sizeof none) != 0;
}

bool co_same_cluster(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    return co_cluster_known(coordinator) && memcmp(peer->state.cluster_id, coordinator->cluster_id,
                                                   sizeof peer->state.cluster_id) == 0;
}

/* Also a node with an empty raft log that is not among the voters yet: if the change stops there, the node would get
 * no entries otherwise. Entries that raft brings later are applied already, and skipped. */
bool co_learns(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!coordinator->votes) return true;
    const struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++)
        if (configuration->servers[i].id == coordinator->voter_id)
            return configuration->servers[i].role != RAFT_VOTER;
    return true;
}

leat_err co_vote_start(struct leat_coordinator *coordinator, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(coordinator);
    coordinator->votes = true; /* first: hooks ask for it */
    leat_err rc = leat_raft_drive_start(&coordinator->drive, error);
    if (rc != LEAT_OK) {
        coordinator->votes = false;
        return rc;
    }
    coordinator->forming = LEAT_VOTER_FOLLOWER;
    return LEAT_OK;
}

const char *co_own_name(const struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct leat_coordinator_options *options = &coordinator->options;
    return options->node_name ? options->node_name : options->node_address;
}
