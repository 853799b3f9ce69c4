/* SPDX-License-Identifier: Apache-2.0 */
/* What a home log keeps, as structs: bodies.def lists their fields. Private to the groups. */
#ifndef LEAT_GROUPS_STORED_H
#define LEAT_GROUPS_STORED_H

#include "groups/classic_table.h"
#include "groups/table.h"
#include "wire/row.h"

enum record_kind {
    RECORD_NOTHING = 0,
    RECORD_NATIVE_GROUP = 1,
    RECORD_COMMIT = 2,
    RECORD_DELETE = 3,
    RECORD_CLASSIC_GROUP = 4,
};

/* `fields`: how many are there, see bodies.def. `classic` has no bytes here: the classic group stands there. */
struct leat_stored_log {
    struct leat_group_log log; /* without its pointers */
    uint32_t number_count, fields;
    struct leat_msg_bin metadata;
};
struct leat_stored_classic_member {
    struct leat_msg_bin id, instance, client, host, assignment;
    uint32_t session_ms, rebalance_ms, text_count, fields;
    uint64_t address;
};
struct leat_stored_classic {
    struct leat_msg_bin protocol_type, protocol, leader;
    uint32_t phase, member_count;
};
struct leat_stored_group {
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    uint32_t generation, next_serial, mode, member_count, log_count, fields;
    const struct leat_classic *classic;
    uint64_t maker;
};
struct leat_stored_offset {
    struct leat_log_ref log;
    int64_t group;
    uint64_t offset;
    uint32_t leader_epoch_plus_1, fields;
    struct leat_msg_bin metadata;
};
struct leat_stored_record {
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    uint32_t generation, offset_count;
    const struct leat_classic *classic;
    uint64_t maker;
};

#define LEAT_ROWS "groups/bodies.def"
#include "wire/rows_declare.h"

#endif
