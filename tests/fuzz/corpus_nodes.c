/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of bodies between nodes, and of the files of voters. */
#include "corpus.h"

#include "base/mem.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/metadata/machine.h"
#include "tests/coordinator/entries.h"

/* ---- the state machine: a list of commands, as machine_fuzz.c reads it ---- */

enum { WRAPPED = 0, PLAIN = 1 };
static uint8_t commands[8192];
static size_t commands_bytes;
static uint8_t command[512];

static struct leat_msg_writer command_begin(enum leat_command_kind kind, uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, command, sizeof command);
    leat_msg_write_array(&w, 2 + fields);
    leat_msg_write_u64(&w, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&w, (uint64_t)kind);
    return w;
}

static void numbers(struct leat_msg_writer *w, uint32_t count, const uint64_t *values)
{
    for (uint32_t i = 0; i < count; i++)
        leat_msg_write_u64(w, values[i]);
}
#define NUMBERS(w, ...)                                                                            \
    numbers(w, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

/* The tables after all that came before, as a snapshot. */
static void snapshot_write(const char *name, uint8_t how, const struct leat_msg_writer *w)
{
    static struct leat_machine machine;
    static uint64_t sequence;
    uint8_t wrapped[600], *bytes;
    size_t count;
    struct leat_msg_writer outer;
    struct leat_machine_result result;
    if (sequence == 0) leat_machine_init(&machine, 2);
    sequence++;
    leat_msg_writer_init(&outer, wrapped, sizeof wrapped);
    leat_msg_write_array(&outer, 5);
    NUMBERS(&outer, LEAT_COMMAND_VERSION, LEAT_COMMAND_REQUEST, 7, sequence);
    leat_msg_write_bin(&outer, w->bytes, w->used);
    leat_err rc = how == PLAIN ? leat_machine_apply(&machine, w->bytes, w->used, &result)
                               : leat_machine_apply(&machine, wrapped, outer.used, &result);
    LEAT_ASSERT(rc == LEAT_OK);
    rc = leat_machine_snapshot(&machine, &bytes, &count);
    LEAT_ASSERT(rc == LEAT_OK);
    corpus_file("snapshot", name, bytes, count);
    leat_mem_free(bytes);
}

/* Appends a command to the others, and writes a corpus file with all commands so far. */
static void command_end(const char *name, uint8_t how, const struct leat_msg_writer *w)
{
    LEAT_ASSERT(!w->overflow && commands_bytes + 3 + w->used < sizeof commands);
    uint8_t *at = commands + commands_bytes;
    at[0] = how;
    at[1] = (uint8_t)w->used;
    at[2] = (uint8_t)(w->used >> 8);
    memcpy(at + 3, w->bytes, w->used);
    commands_bytes += 3 + w->used;
    corpus_file("machine", name, commands, commands_bytes);
    snapshot_write(name, how, w);
}

static void text(struct leat_msg_writer *w, const char *string)
{
    leat_msg_write_string(w, string, strlen(string));
}

static void node_up(const char *name, uint8_t id, uint64_t boot)
{
    uint8_t ids[16] = {id};
    struct leat_msg_writer w = command_begin(LEAT_COMMAND_NODE_UP, 12);
    text(&w, name);
    text(&w, "127.0.0.1:7700");
    leat_msg_write_u64(&w, 2);
    text(&w, "127.0.0.1:7701");
    text(&w, "r1");
    leat_msg_write_bin(&w, ids, sizeof ids);
    leat_msg_write_u64(&w, 1 << 30);
    text(&w, "127.0.0.1:9092");
    leat_msg_write_u64(&w, boot);
    leat_msg_write_u64(&w, 0);
    text(&w, "h1");
    leat_msg_write_u64(&w, 1000); /* logs */
    command_end("node_up", WRAPPED, &w);
}

static void stream_create(const char *name)
{
    struct leat_stream_settings settings = {.streamlets = 2,
                                            .logs = 1,
                                            .copies = 2,
                                            .min_copies = 1,
                                            .durability = LEAT_DURABILITY_DISK,
                                            .segment_bytes_max = 1 << 23,
                                            .retention_ms = -1,
                                            .retention_bytes = 1 << 30,
                                            .batch_bytes_max = 1 << 20};
    struct leat_msg_writer w = command_begin(LEAT_COMMAND_STREAM_CREATE, 2);
    text(&w, name);
    leat_msg_settings_write(&w, &settings);
    command_end("stream_create", WRAPPED, &w);
    settings.streamlets = 3;
    w = command_begin(LEAT_COMMAND_STREAM_CHANGE, 3);
    text(&w, name);
    leat_msg_write_u64(&w, LEAT_CHANGE_STREAMLETS | LEAT_CHANGE_RETENTION_MS);
    leat_msg_settings_write(&w, &settings);
    command_end("stream_change", WRAPPED, &w);
}

static void logs_write(void)
{
    struct leat_msg_writer w = command_begin(LEAT_COMMAND_OPENED, 5);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 3);
    NUMBERS(&w, 1, 0, 0);
    opened_end(&w, 1, 1);
    command_end("opened", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_VERSION_RAISE, 4);
    NUMBERS(&w, 1, 1, 2);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 3);
    NUMBERS(&w, 1, 0, 0);
    command_end("version", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_MOVE, 4);
    NUMBERS(&w, 1, 1);
    text(&w, "n2");
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 7);
    NUMBERS(&w, 1, 0, 0, 4, 512, 77, 100);
    command_end("move", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_ACCEPT_LOSS, 10);
    NUMBERS(&w, 1, 0, 0, 5, 200, 2, 3, 512, 77);
    leat_msg_write_bool(&w, false);
    command_end("accept_loss", WRAPPED, &w);
}

static void adopt_write(void)
{
    uint8_t rows[64];
    struct leat_msg_writer w, inner;
    leat_msg_writer_init(&inner, rows, sizeof rows);
    leat_msg_write_array(&inner, 8);
    NUMBERS(&inner, 1, 1, 0, 0, 3, 512, 77, 100);
    w = command_begin(LEAT_COMMAND_ADOPT, 8);
    NUMBERS(&w, 99, 0);
    leat_msg_write_bool(&w, true);
    NUMBERS(&w, 2, 6);
    leat_msg_write_bin(&w, rows, inner.used);
    adopt_end(&w, 6);
    command_end("adopt", WRAPPED, &w);
}

static void crash_write(void)
{
    struct leat_msg_writer w = command_begin(LEAT_COMMAND_NODE_STATE, 3);
    text(&w, "n2");
    NUMBERS(&w, 2, LEAT_NODE_DOWN);
    command_end("node_state", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_NODE_DRAIN, 2);
    text(&w, "n2");
    leat_msg_write_bool(&w, true);
    command_end("node_drain", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_CRASH, 2);
    text(&w, "n2");
    leat_msg_write_u64(&w, 2);
    command_end("crash", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(&w, 99);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 6);
    NUMBERS(&w, 1, 1, 2, 1, 1);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 4);
    NUMBERS(&w, 1, 0, 0, LEAT_RECOVER_STANDS);
    command_end("recover", WRAPPED, &w);
}

/* One entry of each reason: a start, a recovery, a move, a loss. */
static void assign_write(void)
{
    static const char *const names[] = {"start", "recovery", "move", "loss"};
    static const uint32_t decisions[] = {LEAT_RECOVER_TAIL, LEAT_RECOVER_STANDS, LEAT_RECOVER_TAIL,
                                         LEAT_RECOVER_LEFT};
    for (unsigned i = 0; i < 4; i++) {
        struct leat_assign_entry entry = {.reason = LEAT_ASSIGN_START + i,
                                          .incarnation = i == 1 ? 0 : 1,
                                          .attempt = 99,
                                          .streamlets = i == 0 ? 2 : 1};
        struct leat_assign_row row = {.log = {1, 0, 0},
                                      .seen_owner = 1,
                                      .owner = i == 2 ? 2 : 1,
                                      .rows = 1,
                                      .seen_epoch = 1,
                                      .seen_log_epoch = 1,
                                      .decision = decisions[i],
                                      .tail = {4, {512, 77}, 100, false},
                                      .heard = i == 3};
        struct leat_msg_writer w;
        leat_msg_writer_init(&w, command, sizeof command);
        leat_assign_entry_write(&w, &entry);
        leat_assign_streamlet_write(&w, &row);
        leat_assign_log_write(&w, &row);
        if (i == 0) leat_assign_rest_write(&w, 1, 6);
        command_end(names[i], WRAPPED, &w);
    }
}

void corpus_machine(void)
{
    static const uint8_t cluster[16] = "0123456789abcdef";
    struct leat_msg_writer w = command_begin(LEAT_COMMAND_FORM, 1);
    leat_msg_write_bin(&w, cluster, sizeof cluster);
    command_end("form", PLAIN, &w);
    node_up("n1", 1, 11);
    node_up("n2", 2, 21);
    stream_create("rooms");
    w = command_begin(LEAT_COMMAND_PRODUCER_IDS, 1);
    leat_msg_write_u64(&w, LEAT_PRODUCER_ID_BLOCK);
    command_end("producer_ids", WRAPPED, &w);
    logs_write();
    adopt_write();
    crash_write();
    assign_write();
    w = command_begin(LEAT_COMMAND_STREAM_DELETE, 1);
    text(&w, "rooms");
    command_end("stream_delete", WRAPPED, &w);
    w = command_begin(LEAT_COMMAND_BARRIER, 0);
    command_end("barrier", PLAIN, &w);
}
