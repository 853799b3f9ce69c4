/* SPDX-License-Identifier: Apache-2.0 */
/* The one state machine of a test, and the entries that the test writes and applies to it. After cmocka.h. */
#ifndef LEAT_TESTS_COORDINATOR_ONE_MACHINE_H
#define LEAT_TESTS_COORDINATOR_ONE_MACHINE_H

#include "coordinator/metadata/machine.h"
#include "tests/coordinator/entries.h"

static struct leat_machine *machine;
static struct leat_machine_result result; /* of the last entry */

struct entry {
    uint8_t bytes[8192];
    struct leat_msg_writer w;
};

/* Setup and teardown of a test: an empty machine. */
static inline int machine_begin(void **state)
{
    (void)state;
    machine = calloc(1, sizeof *machine);
    assert_non_null(machine);
    leat_machine_init(machine, 1);
    return 0;
}
static inline int machine_end(void **state)
{
    (void)state;
    leat_machine_fini(machine);
    free(machine);
    return 0;
}

static inline void entry_begin(struct entry *e, unsigned kind, uint32_t fields)
{
    leat_msg_writer_init(&e->w, e->bytes, sizeof e->bytes);
    leat_msg_write_array(&e->w, 2 + fields);
    leat_msg_write_u64(&e->w, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&e->w, kind);
}

static inline leat_err applied(const struct entry *e)
{
    assert_false(e->w.overflow);
    assert_int_equal(leat_machine_apply(machine, e->bytes, e->w.used, &result), LEAT_OK);
    leat_machine_check(machine);
    assert_int_equal(result.rc != LEAT_OK, result.error.text[0] != '\0');
    return result.rc;
}

/* A server alone; the incarnation that it gets. */
static inline void node_up(const char *name, uint64_t incarnation)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_write_u64(&e.w, 1);
    node_up_end(&e.w);
    assert_int_equal(applied(&e), LEAT_OK);
    assert_int_equal(result.incarnation, incarnation);
}

static inline leat_err drain(const char *name, bool draining)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_NODE_DRAIN, 2);
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_write_bool(&e.w, draining);
    return applied(&e);
}

static inline leat_err state_of(const char *name, uint64_t incarnation, enum leat_node_state state)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_NODE_STATE, 3);
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_write_u64(&e.w, incarnation);
    leat_msg_write_u64(&e.w, state);
    return applied(&e);
}

static inline leat_err crash(const char *name, uint64_t incarnation)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_CRASH, 2);
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_write_u64(&e.w, incarnation);
    return applied(&e);
}

static inline leat_err stream_make(const char *name, uint32_t streamlets, uint32_t logs)
{
    struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&e.w, name, strlen(name));
    leat_msg_settings_write(&e.w, &settings);
    return applied(&e);
}

#endif
