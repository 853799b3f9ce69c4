/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies with which a connection begins: bodies.def lists their fields. Private to link/ (tests may include it). */
#ifndef LEAT_LINK_BODIES_H
#define LEAT_LINK_BODIES_H

#include "wire/msg.h"

struct link_nonce_said {
    struct leat_msg_bin nonce;
};
struct link_hello_said {
    uint32_t version_min, version_max;
    uint8_t cluster_id[16];
    struct leat_msg_string node;
    uint64_t incarnation;
    uint32_t cores, purpose;
    int64_t to;
    uint64_t link, connection;
};
struct link_hello_answer {
    uint32_t version;
    uint8_t cluster_id[16];
    struct leat_msg_string node;
    uint64_t incarnation;
    uint32_t cores;
};
#define LEAT_ROWS "link/bodies.def"
#include "wire/rows_declare.h"

#endif
