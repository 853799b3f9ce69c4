/* SPDX-License-Identifier: Apache-2.0 */
/* What a node of a client's world for tests says about nodes and the owners of logs. */
#include "tests/client/fake_metadata.h"

#include <string.h>

#include "wire/message.h"

static void node_write(struct leat_msg_writer *body, uint64_t incarnation, const char *name,
                       const char *address)
{
    struct leat_msg_string named = {name, (uint32_t)strlen(name)};
    struct leat_msg_string at = {address, (uint32_t)strlen(address)};
    struct leat_msg_node node = {incarnation, named, at, 2};
    leat_msg_node_write(body, &node);
}

static void stream_write(struct fake_world *world, struct leat_msg_writer *body,
                         struct leat_msg_string name)
{
    struct leat_msg_stream stream = {
        .code = world->stream_id ? LEAT_OK : LEAT_E_UNKNOWN_STREAM,
        .name = name,
        .id = world->stream_id,
        .settings = {.streamlets = world->streamlets,
                     .logs = world->logs,
                     .batch_bytes_max = world->batch_bytes_max},
        .log_count = world->streamlets * world->logs,
    };
    leat_msg_stream_write(body, &stream);
    for (uint32_t i = 0; world->stream_id && i < stream.log_count; i++) {
        bool moved = i / world->logs + 1 == world->moved;
        struct leat_msg_log log = {i / world->logs, i % world->logs,
                                   world->incarnation - world->behind + moved, world->epoch + moved,
                                   i % 2};
        if (world->away > 0) log.owner += 1000;
        leat_msg_log_write(body, &log);
    }
    if (world->away > 0) world->away--;
}

void fake_metadata_write(struct fake_world *world, const char *address,
                         const struct leat_frame *frame, struct leat_msg_writer *body)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    bool names = leat_msg_read_array(&reader) > 0;
    struct leat_msg_string name =
        names ? leat_msg_read_string(&reader) : (struct leat_msg_string){0};
    if (leat_msg_read_bool(&reader) && world->stream_id == 0) world->stream_id = 5;
    leat_msg_write_array(body, 3);
    leat_msg_write_bin(body, world->cluster_id, 16);
    bool told = world->away > 0 && world->away_told;
    leat_msg_write_array(body, 1 + told + world->other);
    bool dead = world->dead && (!world->knows || strcmp(address, world->knows) == 0);
    node_write(body, world->incarnation - world->behind, "n", dead ? "" : "fake:1");
    for (unsigned i = 0; i < world->other; i++)
        node_write(body, world->incarnation + 1 + i, i ? "o" : "m", i ? "fake:3" : "fake:2");
    if (told) node_write(body, world->incarnation + 1000, "gone", "");
    leat_msg_write_array(body, names);
    if (names) stream_write(world, body, name);
}
