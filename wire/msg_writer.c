/* SPDX-License-Identifier: Apache-2.0 */
/* Writing msgpack into caller's memory, by msgpack-c's packer. */
#include "wire/msg.h"

#include <msgpack/pack.h>
#include <string.h>

void leat_msg_writer_init(struct leat_msg_writer *writer, void *bytes, size_t capacity)
{
    *writer = (struct leat_msg_writer){
        .bytes = bytes,
        .capacity = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity,
    };
}

static int bytes_put(void *context, const char *bytes, size_t count)
{
    struct leat_msg_writer *writer = context;
    if (writer->overflow || count > writer->capacity - writer->used) {
        writer->overflow = true;
        return -1;
    }
    if (count > 0) memcpy(writer->bytes + writer->used, bytes, count);
    writer->used += (uint32_t)count;
    return 0;
}

static msgpack_packer packer_of(struct leat_msg_writer *writer)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, writer, bytes_put);
    return packer;
}

/* The packer's results are ignored below: its only failure is ours, and that is sticky. */

void leat_msg_write_raw(struct leat_msg_writer *writer, const void *encoded, size_t bytes)
{
    (void)bytes_put(writer, encoded, bytes); /* its failure is sticky */
}

void leat_msg_write_array(struct leat_msg_writer *writer, uint32_t count)
{
    msgpack_packer packer = packer_of(writer);
    (void)msgpack_pack_array(&packer, count);
}

void leat_msg_write_u64(struct leat_msg_writer *writer, uint64_t value)
{
    msgpack_packer packer = packer_of(writer);
    (void)msgpack_pack_uint64(&packer, value);
}

void leat_msg_write_log(struct leat_msg_writer *writer, struct leat_log_ref log)
{
    leat_msg_write_u64(writer, log.stream);
    leat_msg_write_u64(writer, log.streamlet);
    leat_msg_write_u64(writer, log.log);
}

void leat_msg_write_i64(struct leat_msg_writer *writer, int64_t value)
{
    msgpack_packer packer = packer_of(writer);
    (void)msgpack_pack_int64(&packer, value);
}

void leat_msg_write_bool(struct leat_msg_writer *writer, bool value)
{
    msgpack_packer packer = packer_of(writer);
    if (value)
        (void)msgpack_pack_true(&packer);
    else
        (void)msgpack_pack_false(&packer);
}

void leat_msg_write_string(struct leat_msg_writer *writer, const char *text, size_t bytes)
{
    msgpack_packer packer = packer_of(writer);
    (void)msgpack_pack_str(&packer, bytes);
    (void)msgpack_pack_str_body(&packer, text, bytes);
}

void leat_msg_write_bin(struct leat_msg_writer *writer, const void *data, size_t bytes)
{
    msgpack_packer packer = packer_of(writer);
    (void)msgpack_pack_bin(&packer, bytes);
    (void)msgpack_pack_bin_body(&packer, data, bytes);
}
