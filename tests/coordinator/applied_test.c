/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of an entry never changes: voters of different versions apply the same log, and each start applies the log
 * again. So this file has the results of random walks over entries of all kinds, as a digest of all answers, all
 * reports and the tables: a version with another digest makes voters differ. A change of an entry's effect needs
 * another form of the entry (more fields, another kind), and entries that a release wrote are applied as before.
 *
 * APPLIED_NODE_LOG=1 prints a line for each entry. The first line that differs between two versions shows where they
 * part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "coordinator/metadata/private.h"
#include "tests/coordinator/applied.h"

enum { VERSION_AT = 3 }; /* in a snapshot, behind the head of an array */

static uint32_t digest;
static struct leat_machine *machine, *other;
static struct applied_entry entry;
static unsigned outcomes[32][2]; /* of each kind: taken, refused */

static void mix(uint64_t value)
{
    digest = leat_crc32c(digest, &value, sizeof value);
}
static void mix_text(const char *text)
{
    digest = leat_crc32c(digest, text, strlen(text) + 1);
}

/* ---- what is told, and what is answered ---- */

static void mix_desc(const struct leat_stream_desc *desc)
{
    const struct leat_stream_settings *it = &desc->settings;
    const uint64_t values[] = {desc->id,
                               desc->internal,
                               desc->remade,
                               desc->streamlet_count,
                               it->streamlets,
                               it->logs,
                               it->copies,
                               it->min_copies,
                               it->durability,
                               it->segment_bytes_max,
                               (uint64_t)it->retention_ms,
                               (uint64_t)it->retention_bytes,
                               it->batch_bytes_max,
                               it->append_time,
                               it->segment_bytes_asked,
                               it->compression_asked,
                               it->validate};
    mix_text(desc->name);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        mix(values[i]);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        mix(desc->streamlets[i].owner);
        mix(desc->streamlets[i].epoch.v);
    }
}

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    assert_ptr_equal(owner, &digest);
    mix_text("stream");
    mix_desc(desc);
}
static void on_stream_deleted(void *owner, uint32_t stream_id)
{
    assert_ptr_equal(owner, &digest);
    mix_text("deleted");
    mix(stream_id);
}
static void on_node(void *owner, const struct leat_node_info *node)
{
    assert_ptr_equal(owner, &digest);
    mix_text("node");
    mix_text(node->name);
    mix(node->incarnation);
    mix(node->state);
    mix(node->crashed);
    mix(node->draining);
    mix(node->streamlets);
}

static void mix_result(const struct leat_machine_result *result)
{
    const uint64_t values[] = {
        (uint64_t)result->rc, result->stream_id,   (uint64_t)result->first_id,
        result->id_count,     result->incarnation, result->epoch.v,
        result->session,      result->sequence,    result->malformed,
        result->drained_last};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        mix(values[i]);
    assert_int_equal(result->rc != LEAT_OK, result->error.text[0] != '\0');
    if (result->desc) mix_desc(result->desc);
}

/* ---- the tables, and what they answer ---- */

static void mix_node(struct applied_dice *dice, struct leat_machine_node *node)
{
    struct leat_machine_result result = {0};
    mix(leat_machine_seen(machine, node));
    mix(node->logs);
    mix(node->adopted);
    mix(leat_machine_node_has_room(node, applied_below(dice, 30)));
    mix(leat_machine_drains_last(machine, node->info.name, strlen(node->info.name)));
    mix(leat_machine_incarnation_lives(machine, node->info.incarnation));
    assert_ptr_equal(leat_machine_incarnation_find(machine, node->info.incarnation), node);
    mix(leat_machine_has_room(machine, applied_below(dice, 100), &result));
    mix((uint64_t)result.rc);
    for (uint32_t s = 0; s < machine->stream_count; s++)
        for (uint32_t i = 0; i < machine->streams[s].desc->streamlet_count; i++)
            mix(leat_machine_adoptable(machine, &machine->streams[s], i, node));
}

static uint64_t logs_said; /* of streams that are not there */

static void mix_tables(struct applied_dice *dice)
{
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(machine, &bytes, &count), LEAT_OK);
    assert_int_equal(bytes[VERSION_AT], LEAT_SNAPSHOT_VERSION);
    bytes[VERSION_AT] = 8; /* of the form in which the digests below were written down */
    digest = leat_crc32c(digest, bytes, count);
    machine->log_count -= logs_said;
    leat_machine_check(machine);
    machine->log_count += logs_said;
    mix(machine->log_count);
    mix(machine->node_changes);
    mix(leat_machine_nodes_up(machine));
    mix(leat_machine_hosts_up(machine));
    for (uint32_t i = 0; i < machine->node_count; i++)
        mix_node(dice, &machine->nodes[i]);
    for (uint32_t s = 0; s < machine->stream_count; s++) {
        const char *name = machine->streams[s].desc->name;
        assert_ptr_equal(leat_machine_name_find(machine, name, strlen(name)), &machine->streams[s]);
        assert_ptr_equal(leat_machine_stream_find(machine, machine->streams[s].id),
                         &machine->streams[s]);
    }
    struct leat_machine_result result = {0};
    uint64_t session = 1 + applied_below(dice, dice->sessions), sequence = applied_below(dice, 300);
    mix(leat_machine_outcome(machine, session, sequence, &result));
    mix_result(&result);
    leat_mem_free(bytes);
}

static void listen(struct leat_machine *it)
{
    it->on_stream = on_stream;
    it->on_stream_deleted = on_stream_deleted;
    it->on_node = on_node;
    it->owner = &digest;
}

/* The tables go on as what a snapshot makes of them. */
static void restart(void)
{
    uint8_t *bytes;
    size_t count;
    assert_int_equal(leat_machine_snapshot(machine, &bytes, &count), LEAT_OK);
    listen(other);
    assert_int_equal(leat_machine_restore(other, bytes, count), LEAT_OK);
    leat_mem_free(bytes);
    struct leat_machine *was = machine;
    machine = other;
    other = was;
}

/* An allocation that fails stops this voter: the voter goes on from its disk, as if it had never applied the entry. */
static void fail_each_allocation(void)
{
    uint8_t *bytes;
    size_t count;
    struct leat_machine_result result;
    assert_int_equal(leat_machine_snapshot(machine, &bytes, &count), LEAT_OK);
    bool lacks = true;
    for (uint64_t n = 1; lacks; n++) {
        leat_mem_fail_at(n);
        leat_err rc = leat_machine_restore(other, bytes, count);
        lacks = leat_mem_calls() >= n;
        leat_mem_fail_at(0);
        assert_int_equal(rc, lacks ? LEAT_E_NO_MEMORY : LEAT_OK);
        assert_true(rc == LEAT_OK || (other->stream_count == 0 && other->node_count == 0));
    }
    other->on_stream = NULL;
    other->on_stream_deleted = NULL;
    other->on_node = NULL;
    lacks = true;
    for (uint64_t n = 1; lacks; n++) {
        assert_int_equal(leat_machine_restore(other, bytes, count), LEAT_OK);
        leat_mem_fail_at(n);
        leat_err rc = leat_machine_apply(other, entry.bytes, entry.count, &result);
        lacks = leat_mem_calls() >= n;
        leat_mem_fail_at(0);
        assert_int_equal(rc == LEAT_E_NO_MEMORY, lacks);
    }
    uint8_t *again;
    size_t again_count;
    leat_mem_fail_at(1);
    assert_int_equal(leat_machine_snapshot(machine, &again, &again_count), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    leat_mem_free(bytes);
}

/* ---- walks ---- */

static unsigned kind_of(const uint8_t *bytes, size_t count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    (void)leat_msg_read_array(&reader);
    (void)leat_msg_read_u64(&reader);
    uint64_t kind = leat_msg_read_u64(&reader);
    if (kind == LEAT_COMMAND_REQUEST) {
        (void)leat_msg_read_u64(&reader);
        (void)leat_msg_read_u64(&reader);
        struct leat_msg_string inner = leat_msg_read_string(&reader);
        return reader.failed ? 0 : kind_of((const uint8_t *)inner.text, inner.bytes);
    }
    return reader.failed || kind > 31 ? 0 : (unsigned)kind;
}

enum {
    EPOCHS_END = 1,
    IDS_END = 2,
    MANY_LOGS = 4,
    NO_MEMORY = 8,
    VOTERS = 16,
    MANY_NODES = 32,
    MANY_REQUESTS = 64,
    MANY_NAMES = 128
};

static void prepare(struct applied_dice *dice, unsigned how)
{
    leat_machine_init(machine, 2);
    leat_machine_init(other, 2);
    listen(machine);
    if (how & EPOCHS_END) machine->next_epoch = LEAT_EPOCH_MAX - 40;
    if (how & IDS_END) {
        machine->next_producer_id = INT64_MAX - 9000;
        machine->next_stream_id = UINT32_MAX - 9;
    }
    logs_said = how & MANY_LOGS ? LEAT_CLUSTER_LOGS_MAX - 9 : 0;
    machine->log_count = logs_said;
    if (how & VOTERS) {
        machine->voter_count = 3; /* the last is of old: unnamed */
        for (unsigned i = 0; i < 3; i++) {
            struct leat_machine_voter *voter = &machine->voters[i];
            snprintf(voter->address, sizeof voter->address, "host%u:0", i);
            if (i < 2) snprintf(voter->name, sizeof voter->name, "n%u", i);
        }
    }
    if (how & MANY_NODES) {
        dice->nodes = 60;
        machine->node_count = LEAT_NODES_MAX - 20;
        for (uint32_t i = 0; i < machine->node_count; i++) {
            struct leat_node_info *info = &machine->nodes[i].info;
            snprintf(info->name, sizeof info->name, "m%u", i);
            info->state = i % 2 ? LEAT_NODE_GONE : LEAT_NODE_UP;
            info->incarnation = machine->next_incarnation++;
        }
    }
    if (how & MANY_REQUESTS) {
        dice->wrapped = 100;
        dice->sessions = LEAT_SESSIONS_MAX + 90;
    }
    if (how & MANY_NAMES) {
        dice->streams = 90;
        machine->gone_count = machine->gone_next = LEAT_GONE_NAMES_MAX - 20;
    }
}

static uint32_t walk(uint64_t seed, unsigned steps, unsigned how)
{
    const bool node_log = getenv("APPLIED_NODE_LOG") != NULL;
    struct applied_dice dice;
    struct leat_machine_result result;
    applied_dice_init(&dice, seed);
    digest = 0;
    prepare(&dice, how);
    for (unsigned i = 0; i < steps; i++) {
        applied_draw(&dice, machine, &entry);
        if ((how & NO_MEMORY) && i % 2 == 0) fail_each_allocation();
        mix(leat_machine_command_known(entry.bytes, entry.count));
        leat_err rc = leat_machine_apply(machine, entry.bytes, entry.count, &result);
        mix((uint64_t)rc);
        mix_result(&result);
        outcomes[kind_of(entry.bytes, entry.count)][rc != LEAT_OK || result.rc != LEAT_OK]++;
        if (i % (steps > 1000 ? 300 : 12) == 0) mix_tables(&dice);
        if (node_log)
            printf("%llu %u kind %u: %d, %d: %08x %s\n", (unsigned long long)seed, i,
                   kind_of(entry.bytes, entry.count), rc, result.rc, digest, result.error.text);
        /* Rows of logs that are not there would not go into a snapshot. */
        if (i % 64 == 63 && !(how & MANY_LOGS)) restart();
    }
    mix_tables(&dice);
    leat_machine_fini(machine);
    leat_machine_fini(other);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS) + leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return digest;
}

static const struct {
    uint64_t seed;
    unsigned steps, how;
    uint32_t digest;
} walks[] = {
    {1, 700, 0, 0x1cf1d1bf},     {2, 700, 0, 0x6e20213e},    {3, 700, 0, 0xf6df206e},
    {4, 700, 0, 0x5a15fc9a},     {5, 700, 0, 0xe730a130},    {6, 700, 0, 0xea6b5b0d},
    {7, 700, 0, 0x948461b9},     {8, 700, 0, 0x30f37049},    {9, 700, 0, 0x99601556},
    {10, 700, 0, 0x71838a15},    {11, 700, 0, 0xffe6bf34},   {12, 700, 0, 0x93864c45},
    {13, 700, 0, 0xe5eb39b4},    {14, 700, 0, 0xfcb9657f},   {15, 700, 0, 0xbf20ded8},
    {16, 700, 0, 0x068a0bbe},    {17, 700, 0, 0xfbffbf3f},   {18, 700, 0, 0x430a9e26},
    {19, 700, 0, 0x73c4fd55},    {20, 700, 0, 0xe570819d},   {21, 700, 0, 0xf6d0cb70},
    {22, 700, 0, 0x7cbc327a},    {23, 700, 0, 0xf1fba21f},   {24, 700, 0, 0xe4aeff40},
    {25, 700, 16, 0x76c0b1e2},   {26, 700, 16, 0x8b8f9da4},  {27, 700, 16, 0x9de10bff},
    {28, 700, 16, 0xe85117d7},   {29, 700, 16, 0xe5ff5d8d},  {30, 700, 16, 0xb1cbfd62},
    {31, 700, 1, 0x07abffd5},    {32, 700, 1, 0x96d7b973},   {33, 700, 2, 0xc6771253},
    {34, 700, 2, 0x4033eeb1},    {35, 700, 4, 0x729fb7ad},   {36, 700, 4, 0x47e101f4},
    {37, 700, 4, 0x20378337},    {38, 700, 4, 0x98e44425},   {39, 700, 4, 0x0f392980},
    {40, 700, 4, 0x17bd17cf},    {41, 700, 4, 0x0217864b},   {42, 700, 4, 0x87a7fade},
    {43, 400, 8, 0xf2725563},    {44, 400, 8, 0x2287f83b},   {45, 400, 8, 0xa5312ae0},
    {46, 400, 24, 0x9c72f1a8},   {60, 1500, 32, 0x8473ec8c}, {61, 4400, 64, 0x9c0320df},
    {62, 3000, 128, 0x65728652},
};

static void entries_are_applied_as_ever(void **state)
{
    (void)state;
    unsigned differ = 0;
    machine = calloc(1, sizeof *machine);
    other = calloc(1, sizeof *other);
    assert_true(machine && other);
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        uint32_t came = walk(walks[i].seed, walks[i].steps, walks[i].how);
        if (came == walks[i].digest) continue;
        print_message("{%llu, %u, %u, 0x%08x},\n", (unsigned long long)walks[i].seed,
                      walks[i].steps, walks[i].how, came);
        differ++;
    }
    free(machine);
    free(other);
    assert_int_equal(differ, 0);
    for (unsigned kind = LEAT_COMMAND_FORM; kind <= LEAT_COMMAND_STREAM_CHANGE; kind++) {
        if (kind > LEAT_COMMAND_RECOVER && kind < LEAT_COMMAND_STREAM_CHANGE) continue;
        if (kind != LEAT_COMMAND_REQUEST && (outcomes[kind][0] < 10 || outcomes[kind][1] < 10))
            fail_msg("kind %u: %u taken, %u refused", kind, outcomes[kind][0], outcomes[kind][1]);
        if (getenv("APPLIED_NODE_LOG"))
            printf("kind %u: %u taken, %u refused\n", kind, outcomes[kind][0], outcomes[kind][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_are_applied_as_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
