/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes, each a coordinator and somebody who asks it, in the simulated world. */
#ifndef LEAT_TESTS_COORDINATOR_CLUSTER_RIG_H
#define LEAT_TESTS_COORDINATOR_CLUSTER_RIG_H

#include "coordinator/coordinator.h"
#include "coordinator/membership/state.h"
#include "tests/sim/sim.h"

enum { RIG_NODES_MAX = 6, RIG_REQUESTS_MAX = 4096, RIG_STREAM_IDS_MAX = 65536 };
#define RIG_SECOND ((uint64_t)1000000)

struct rig_request {
    struct leat_coordinate request;
    struct rig_node *node;
    uint32_t boot;
    bool in_use, done;
    uint64_t asked_us, done_us;
    char text[LEAT_NODE_NAME_BYTES_MAX + 1];
};
struct rig_node {
    struct rig *rig;
    char name[16], address[24];
    struct sim_disk *disk;
    struct sim_process *process;
    struct sim_actor *client, *actor;
    struct leat_coordinator *coordinator;
    struct leat_link_hub hub;
    struct leat_coordinator_options options;
    struct leat_error open_error;
    bool up, ready;
    uint32_t boots;
    uint8_t node_id;
    uint64_t incarnation;
    unsigned streams_told, deleted_told, nodes_told;
    struct leat_node_info last_node;
};
/* The test's part of the broker; all functions may be NULL. Without on_collect and on_pull a node answers that it
 * can't. */
struct rig_broker {
    void (*on_stream)(struct rig_node *node, struct leat_stream_desc *desc);
    void (*on_node)(struct rig_node *node, const struct leat_node_info *info);
    void (*on_collect)(void *node, struct leat_collect *collect);
    void (*on_pull)(void *node, struct leat_pull *pull);
    void (*on_standing)(void *node, enum leat_standing standing);
    void (*on_death)(struct rig_node *node, enum sim_death death);
};
struct rig {
    const struct rig_broker *broker;
    void *model; /* the broker's */
    struct sim_world *world;
    struct rig_node nodes[RIG_NODES_MAX];
    unsigned node_count;
    char voter_list[LEAT_VOTERS_MAX][24];
    const char *voters[LEAT_VOTERS_MAX];
    uint32_t voter_count;
    struct rig_request *requests;
    uint64_t snapshot_bytes_min, raft_segment_bytes;
};

/** voters: how many of the nodes 0.. are named as coordinators (0: node 0 begins alone). */
struct rig *rig_create(uint64_t seed, unsigned nodes, uint32_t voters);
void rig_destroy(struct rig *rig);
void rig_boot(struct rig *rig, unsigned node);
void rig_kill(struct rig *rig, unsigned node, enum sim_death death);
/** The disk is replaced by an empty one. The node must be down. */
void rig_wipe(struct rig *rig, unsigned node);
void rig_run(struct rig *rig, uint64_t us);
/** Run until it is true, at most for so long. */
bool rig_until(struct rig *rig, uint64_t us, bool (*is)(struct rig *rig));
/** A request of this kind, to be filled in before rig_ask(). NULL: too many. */
struct rig_request *rig_request(struct rig *rig, unsigned node, enum leat_coordinate_kind kind);
void rig_ask(struct rig_request *request);
/** Ask and run until answered. */
leat_err rig_wait(struct rig *rig, struct rig_request *request, uint64_t us);
void rig_forget(struct rig_request *request);
struct rig_request *rig_create_stream(struct rig *rig, unsigned node, const char *name);
/** Ask for it and run until answered. */
leat_err rig_create_one(struct rig *rig, unsigned node, const char *name);
leat_err rig_node_up(struct rig *rig, unsigned node);
void rig_status(struct rig *rig, unsigned node, struct leat_coordinator_status *out);
/** The view of each node, to find out why a test hangs. */
void rig_dump(struct rig *rig);
/** Index of the node that leads; -1: none, or more than one. */
int rig_leader(struct rig *rig);
bool rig_all_ready(struct rig *rig);
/** All nodes that are up have applied the same, and their tables are equal byte by byte. */
bool rig_all_equal(struct rig *rig);
/** Both. */
bool rig_is_settled(struct rig *rig);

#endif
