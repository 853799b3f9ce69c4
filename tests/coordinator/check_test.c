/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on the cluster's tables between two entries: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"
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

/* Goal: the state of a log's record of its end follows from record and epoch, and takes only the steps of
 * coordinator/metadata/README.md. */
static void records_have_states(void **state)
{
    (void)state;
    static const struct {
        struct leat_log_record record;
        enum leat_record_state is;
    } cases[] = {
        {{.tail.segment = UINT64_MAX}, LEAT_RECORD_EMPTY},
        {{.tail.segment = 0}, LEAT_RECORD_ENDED},
        {{.tail.segment = 0, .stamp_epoch = {7}}, LEAT_RECORD_ENDED}, /* closed by its owner */
        {{.tail = {.segment = 0, .jumped = true}}, LEAT_RECORD_LEFT},
        {{.tail = {.segment = UINT64_MAX, .jumped = true}}, LEAT_RECORD_LEFT},
        {{.opened = true, .stamp_epoch = {7}}, LEAT_RECORD_OPENED},
        {{.opened = true, .stamp_epoch = {6}}, LEAT_RECORD_WAITS},
        {{.opened = true, .stamp_epoch = {6}, .heard = 1}, LEAT_RECORD_WAITS_HEARD},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct leat_epoch epoch = {7};
        assert_int_equal(leat_record_state(&cases[i].record, epoch), cases[i].is);
        assert_int_equal(leat_record_waits(&cases[i].record, epoch),
                         cases[i].is == LEAT_RECORD_WAITS ||
                             cases[i].is == LEAT_RECORD_WAITS_HEARD);
    }
    static enum leat_record_state at;
    static const char *const may[] = {
        [LEAT_RECORD_EMPTY] = "ENLO..", [LEAT_RECORD_ENDED] = "ENLO..",
        [LEAT_RECORD_LEFT] = "ENLO..",  [LEAT_RECORD_OPENED] = "ENLOWH",
        [LEAT_RECORD_WAITS] = "ENLOWH", [LEAT_RECORD_WAITS_HEARD] = "ENLO.H"};
    assert_steps(at, may, "follow[*state] & 1u << to", leat_record_enter(&at, step_to));
    /* A change that is no step changes nothing. */
    static struct leat_machine_log log = {.record.tail.segment = 3, .epoch = {7}};
    static const struct leat_log_record waits = {.opened = true, .stamp_epoch = {6}};
    assert_broken("follow[*state] & 1u << to",
                  leat_machine_log_enter(&log, &waits, (struct leat_epoch){7}));
    assert_true(!log.record.opened && log.record.tail.segment == 3);
    static const struct leat_log_record opened = {.opened = true, .stamp_epoch = {7}};
    assert_broken(NULL, leat_machine_log_enter(&log, &opened, (struct leat_epoch){7}));
    assert_broken(NULL, leat_machine_log_enter(&log, &opened, (struct leat_epoch){8}));
    assert_true(leat_machine_log_waits(&log) && log.epoch.v == 8);
}

/* Goal: the states of a recovery attempt, and of a node in it, take the steps of coordinator/recovery/README.md and no
 * others. */
static void attempts_have_states(void **state)
{
    (void)state;
    static struct co_recovery attempt;
    static const char *const phase_may[] = {[LEAT_RECOVERY_NONE] = "NC..",
                                            [LEAT_RECOVERY_COLLECT] = "N.P.",
                                            [LEAT_RECOVERY_PREPARE] = "N..C",
                                            [LEAT_RECOVERY_COMMIT] = "N..."};
    assert_steps(attempt.phase, phase_may, "follow[it->phase] & 1u << to",
                 co_phase_enter(&attempt, step_to));
    static const char *const node_may[] = {[CO_NODE_UNASKED] = ".A..",
                                           [CO_NODE_ASKED] = "..HM",
                                           [CO_NODE_HEARD] = "....",
                                           [CO_NODE_MUTE] = "...."};
    assert_steps(attempt.nodes[1], node_may, "follow[it->nodes[node]] & 1u << to",
                 co_node_enter(&attempt, 1, step_to));
    assert_true(attempt.asked == 1 && attempt.answered == 2 && attempt.good == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_checked),  cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(limits_are_checked),   cmocka_unit_test(records_have_states),
        cmocka_unit_test(attempts_have_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
