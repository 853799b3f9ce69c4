/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state machine: whatever a node may have committed stops no voter, leaves equal
 * tables on all, and these survive as a snapshot. The input is a list of commands. */
#include "fuzz.h"

#include "base/mem.h"
#include "coordinator/metadata/machine.h"

enum {
    COMMAND_BYTES_MAX = 4096,
    LOGS_MAX = 4096, /* tables above that make the fuzzer slow and find nothing new */
};

struct snapshot {
    uint8_t *bytes;
    size_t count;
};

static struct snapshot snapshot_take(const struct leat_machine *machine)
{
    struct snapshot snapshot;
    leat_err rc = leat_machine_snapshot(machine, &snapshot.bytes, &snapshot.count);
    LEAT_ASSERT(rc == LEAT_OK);
    return snapshot;
}

static void snapshots_compare(const struct leat_machine *a, const struct leat_machine *b)
{
    struct snapshot one = snapshot_take(a), two = snapshot_take(b);
    LEAT_ASSERT(one.count == two.count && memcmp(one.bytes, two.bytes, one.count) == 0);
    leat_mem_free(one.bytes);
    leat_mem_free(two.bytes);
}

/* As a leader takes commands of others: in a REQUEST, if it knows them. */
static bool command_wrap(const uint8_t *command, size_t bytes, uint8_t session, uint64_t sequence,
                         struct leat_msg_writer *out)
{
    leat_msg_write_array(out, 5);
    leat_msg_write_u64(out, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(out, LEAT_COMMAND_REQUEST);
    leat_msg_write_u64(out, session);
    leat_msg_write_u64(out, sequence);
    leat_msg_write_bin(out, command, bytes);
    return !out->overflow && leat_machine_command_known(out->bytes, out->used);
}

/* An entry of a newer program stops a voter on purpose. */
static void both_apply(struct leat_machine *a, struct leat_machine *b, const uint8_t *bytes,
                       size_t count, bool known)
{
    struct leat_machine_result one, two;
    leat_err rc = leat_machine_apply(a, bytes, count, &one);
    LEAT_ASSERT(rc == LEAT_OK || (!known && rc == LEAT_E_CORRUPT));
    LEAT_ASSERT(leat_machine_apply(b, bytes, count, &two) == rc);
    leat_machine_check(a);
    LEAT_ASSERT(one.rc == two.rc && one.incarnation == two.incarnation &&
                one.epoch.v == two.epoch.v && one.first_id == two.first_id);
}

/* Each command: a byte (bit 0: as it is, as if a voter had the command in its log; bit 1: one machine restarts from a
 * snapshot first; the other bits: the session that sends the command), two bytes of length, its bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct leat_machine first, second; /* large, and mostly never touched */
    struct leat_machine *a = &first, *b = &second;
    leat_machine_init(a, 2);
    leat_machine_init(b, 2);
    const uint8_t *at = data, *end = data + size;
    for (uint64_t sequence = 1; end - at >= 3 && a->log_count <= LOGS_MAX; sequence++) {
        uint8_t how = at[0], wrapped[COMMAND_BYTES_MAX + 64];
        size_t bytes = at[1] | (size_t)at[2] << 8;
        at += 3;
        if (bytes > (size_t)(end - at)) bytes = (size_t)(end - at);
        const uint8_t *command = at;
        at += bytes;
        if (bytes > COMMAND_BYTES_MAX) continue;
        if ((how & 2) != 0) {
            struct snapshot snapshot = snapshot_take(a);
            LEAT_ASSERT(leat_machine_restore(b, snapshot.bytes, snapshot.count) == LEAT_OK);
            leat_mem_free(snapshot.bytes);
        }
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, wrapped, sizeof wrapped);
        if ((how & 1) != 0)
            both_apply(a, b, command, bytes, false);
        else if (command_wrap(command, bytes, (uint8_t)(1 + (how >> 2)), 1 + (sequence & 15),
                              &writer))
            both_apply(a, b, wrapped, writer.used, true);
    }
    snapshots_compare(a, b);
    struct snapshot last = snapshot_take(a);
    LEAT_ASSERT(leat_machine_restore(b, last.bytes, last.count) == LEAT_OK);
    leat_mem_free(last.bytes);
    snapshots_compare(a, b);
    leat_machine_fini(a);
    leat_machine_fini(b);
    return 0;
}
