/* SPDX-License-Identifier: Apache-2.0 */
/* How every control body starts. Private to wire. */
#ifndef LEAT_WIRE_BODY_H
#define LEAT_WIRE_BODY_H

#include "wire/message.h"

/* The header of an array of at least `count` fields; returns how many more there are, added by a
 * newer peer, for the decoder to skip. */
static inline uint32_t leat_body_open(struct leat_msg_reader *reader, uint32_t count)
{
    uint32_t fields = leat_msg_read_array(reader);
    if (fields < count) {
        reader->failed = true;
        return 0;
    }
    return fields - count;
}

static inline void leat_body_log_write(struct leat_msg_writer *writer, struct leat_log_ref log)
{
    leat_msg_write_u64(writer, log.stream);
    leat_msg_write_u64(writer, log.streamlet);
    leat_msg_write_u64(writer, log.log);
}

static inline struct leat_log_ref leat_body_log_read(struct leat_msg_reader *reader)
{
    struct leat_log_ref log;
    log.stream = leat_msg_read_u32(reader);
    log.streamlet = leat_msg_read_u32(reader);
    log.log = leat_msg_read_u32(reader);
    return log;
}

#endif
