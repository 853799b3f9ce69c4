/* SPDX-License-Identifier: Apache-2.0 */
/* Classic groups: consumer groups whose leader member assigns the partitions (Kafka's classic protocol).
 *
 * One namespace with the native groups of groups.h: a classic group is a group of mode LEAT_GROUPS_CLASSIC, is in the
 * same table of the same home, and has its committed offsets by log, like an ordered group. A group without members
 * may change between classic and ordered, and keeps its offsets; any other mixture is refused
 * (LEAT_E_OTHER_PROTOCOL).
 *
 * The members name protocols with opaque metadata; the home picks a protocol that all members know, makes a member
 * the leader, gives the leader all metadata, and hands its assignments on. The home does not interpret these, so
 * eager and cooperative assignors work alike.
 *
 * Durable, and answered only after the ack: generation, protocol, leader, offsets. Members with their metadata and
 * assignments are stored as far as the table has room; a classic group whose members were not stored goes on in the
 * same generation counter, and its members are told to join anew.
 */
#ifndef LEAT_GROUPS_CLASSIC_H
#define LEAT_GROUPS_CLASSIC_H

#include "groups/groups.h"
#include "wire/message.h"

enum {
    LEAT_CLASSIC_TEXT_BYTES_MAX = 255, /* of protocol type, protocol, instance, client, host */
    LEAT_CLASSIC_PROTOCOLS_MAX = 16,
    /* What all classic groups of one home hold for their members at most (leat_groups_options.group_bytes_max: less);
     * more is refused: LEAT_E_TOO_MANY. */
    LEAT_CLASSIC_MEMORY_BYTES_MAX = 4 * 1024 * 1024,
    LEAT_CLASSIC_METADATA_BYTES_MAX = 4096, /* of one committed offset */
    LEAT_CLASSIC_CLIENT_IN_ID_MAX = 26,     /* of a client's name in its member id */
    LEAT_CLASSIC_SETTLE_US_DEFAULT = 500 * 1000,
    LEAT_CLASSIC_LEAVERS_MAX = LEAT_GROUPS_MEMBERS_MAX,
};
/* As a generation: none, for the commit of a client that is no member. */
#define LEAT_CLASSIC_GENERATION_NONE UINT32_MAX

enum leat_classic_phase {
    LEAT_CLASSIC_EMPTY,
    LEAT_CLASSIC_PREPARING,  /* members are joining */
    LEAT_CLASSIC_COMPLETING, /* the leader is to share out */
    LEAT_CLASSIC_STABLE,
};

struct leat_classic_protocol {
    struct leat_msg_string name, metadata;
};
struct leat_classic_share {
    struct leat_msg_string member, assignment;
};
struct leat_classic_leaver {
    struct leat_msg_string member, instance; /* either may be empty */
    leat_err rc;                             /* out */
};
struct leat_classic_row {
    struct leat_msg_string member, instance, client, host, metadata, assignment;
};
struct leat_classic_listed {
    struct leat_msg_string name, protocol_type;
    enum leat_classic_phase phase;
    enum leat_groups_mode mode;
};

/* What a request to a classic group carries beside struct leat_groups_request (its `classic`). Strings in:
 * borrowed until answered. Strings and rows out lie in `memory`, which is given, whatever the answer is:
 * leat_mem_free(). */
struct leat_classic_call {
    struct leat_msg_string instance; /* JOIN, SYNC, HEARTBEAT, COMMIT; empty: a dynamic member */
    /* JOIN */
    struct leat_msg_string client, host;
    uint32_t rebalance_ms; /* how long the others wait for this member */
    bool needs_id; /* a new dynamic member is told its id first: LEAT_E_MEMBER_ID_REQUIRED */
    bool can_skip; /* understands `skip_assignment` */
    const struct leat_classic_protocol
        *protocols; /* [protocol_count], in the order of preference */
    uint32_t protocol_count;
    /* JOIN and, where not empty, SYNC: must be the group's */
    struct leat_msg_string protocol_type, protocol;
    /* SYNC of the leader */
    const struct leat_classic_share *shares;
    uint32_t share_count;
    /* LEAVE */
    struct leat_classic_leaver *leavers;
    uint32_t leaver_count;

    void *memory;
    /* JOIN, SYNC, DESCRIBE */
    struct leat_msg_string group_protocol_type, group_protocol;
    /* JOIN */
    char leader[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    bool skip_assignment;
    /* JOIN of the leader, DESCRIBE */
    struct leat_classic_row *members;
    uint32_t member_count;
    /* SYNC */
    struct leat_msg_string assignment;
    /* DESCRIBE */
    enum leat_classic_phase phase;
    enum leat_groups_mode mode;
    /* LIST */
    struct leat_classic_listed *listed;
    uint32_t listed_count;
};

#endif
