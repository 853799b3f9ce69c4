/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted of the cluster's tables between two entries: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/machine.h"
#include "tests/broken.h"
#include "tests/coordinator/machine_rig.h"

static struct leat_machine *it;

static void stream(struct command *command, const char *name)
{
    struct leat_msg_writer writer = command_begin(command, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&writer, name, 1);
    leat_msg_settings_write(&writer, &(struct leat_stream_settings){.streamlets = 2, .logs = 3});
    assert_int_equal(entry_apply(it, command, &writer), LEAT_OK);
}

/* Two nodes, two streams. Returns the first stream. */
static struct leat_machine_stream *begin(void)
{
    static struct command command;
    it = calloc(1, sizeof *it);
    assert_non_null(it);
    leat_machine_init(it, 2);
    node_up(it, &command, "a");
    node_up(it, &command, "b");
    stream(&command, "s");
    stream(&command, "t");
    return &it->streams[0];
}

static void end(void)
{
    leat_machine_fini(it);
    free(it);
}

/* The tables are sound; then something of them is changed, and afterwards is as it was. */
#define BROKEN(rule, what, value)                                                                  \
    do {                                                                                           \
        __typeof__(what) was = what;                                                               \
        assert_broken(NULL, leat_machine_check(it));                                               \
        what = value;                                                                              \
        assert_broken(rule, leat_machine_check(it));                                               \
        what = was;                                                                                \
    } while (0)

static void streams_are_checked(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = begin();
    uint32_t id = it->streams[1].id, desc_id = it->streams[1].desc->id;
    it->streams[1].id = it->streams[1].desc->id = it->streams[0].id;
    assert_broken("i == 0 || machine->streams[i - 1].id < stream->id", leat_machine_check(it));
    it->streams[1].id = id;
    it->streams[1].desc->id = desc_id;
    BROKEN("stream->id == desc->id", stream->desc->id, was + 1);
    BROKEN("stream->log_count == desc->streamlet_count * logs", stream->log_count, was + 1);
    BROKEN("logs == machine->log_count", it->log_count, was + 1);
    BROKEN("owner < machine->node_count", stream->owners[0], (uint16_t)it->node_count);
    end();
}

static void nodes_are_checked(void **state)
{
    (void)state;
    const struct leat_machine_stream *stream = begin();
    struct leat_machine_node *node = &it->nodes[stream->owners[0]];
    BROKEN("node->info.streamlets == owned[i].streamlets", node->info.streamlets, was + 1);
    BROKEN("node->logs == owned[i].logs", node->logs, was - 1);
    bool crashed = node->info.crashed;
    enum leat_node_state before = node->info.state;
    node->info.crashed = true;
    node->info.state = LEAT_NODE_UP;
    assert_broken("!node->info.crashed || node->info.state != LEAT_NODE_UP",
                  leat_machine_check(it));
    node->info.crashed = crashed;
    node->info.state = before;
    BROKEN("machine->node_count <= LEAT_NODES_MAX", it->node_count, LEAT_NODES_MAX + 1);
    end();
}

static void limits_are_checked(void **state)
{
    (void)state;
    (void)begin();
    BROKEN("machine->session_count <= LEAT_SESSIONS_MAX", it->session_count, LEAT_SESSIONS_MAX + 1);
    BROKEN("machine->voter_count <= LEAT_VOTERS_MAX", it->voter_count, LEAT_VOTERS_MAX + 1);
    BROKEN("machine->staged_bytes <= machine->staged_capacity", it->staged_bytes,
           it->staged_capacity + 1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_checked),
        cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(limits_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
