/* SPDX-License-Identifier: Apache-2.0 */
/* ASSIGN says what ADOPT, ACCEPT_LOSS, MOVE and RECOVER said: entries of those kinds, drawn by dice and written again
 * as ASSIGN, come to the same tables and answers. And each of the old kinds, in bytes that an earlier version wrote, is
 * read as ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/adopt.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/metadata/private.h"
#include "tests/coordinator/applied.h"
#include "tests/coordinator/machine_rig.h"

enum { ROWS_MAX = 2048 };

static struct leat_assign_entry head;
static struct leat_assign_row rows[ROWS_MAX];
static uint32_t row_count;
static uint64_t seen;
static bool rest;

/* ---- an old entry, read without the product's readers ---- */

static struct leat_assign_row *row_next(void)
{
    assert_true(row_count < ROWS_MAX);
    rows[row_count] = (struct leat_assign_row){.rows = 1};
    return &rows[row_count++];
}

static void tail_read(struct leat_msg_reader *r, struct leat_tail_record *tail)
{
    tail->segment = leat_msg_read_u64(r);
    tail->prefix_id.bytes = leat_msg_read_u32(r);
    tail->prefix_id.crc = leat_msg_read_u32(r);
    tail->next_offset = leat_msg_read_u64(r);
}

static bool adopt_read(struct leat_msg_reader *r)
{
    head = (struct leat_assign_entry){.reason = LEAT_ASSIGN_START};
    head.attempt = leat_msg_read_u64(r);
    uint32_t number = leat_msg_read_u32(r);
    rest = leat_msg_read_bool(r);
    head.incarnation = leat_msg_read_u64(r);
    (void)leat_msg_read_u64(r);
    struct leat_msg_string bytes = leat_msg_read_string(r);
    seen = leat_msg_read_u64(r);
    bool leaves = leat_msg_read_bool(r), plain = true;
    struct leat_msg_reader in;
    if (r->failed || head.attempt == 0 || number != 0 || !rest || !leaves) return false;
    leat_msg_reader_init(&in, bytes.text, bytes.bytes);
    while (!in.failed && in.at < in.end) {
        struct leat_assign_row *row = row_next();
        plain = plain && leat_msg_read_array(&in) == 8;
        row->log = leat_msg_read_log(&in);
        uint32_t decision = leat_msg_read_u32(&in);
        tail_read(&in, &row->tail);
        row->owner = head.incarnation;
        row->decision = decision == LEAT_DECIDED_TAIL ? LEAT_RECOVER_TAIL : LEAT_RECOVER_WAITS;
        plain = plain && decision <= LEAT_DECIDED_WAIT && row->log.stream != 0;
    }
    return plain && !in.failed;
}

static bool loss_read(struct leat_msg_reader *r)
{
    struct leat_assign_row *row = row_next();
    head = (struct leat_assign_entry){.reason = LEAT_ASSIGN_LOSS};
    row->log = leat_msg_read_log(r);
    row->tail.segment = leat_msg_read_u64(r);
    row->tail.next_offset = leat_msg_read_u64(r);
    row->owner = row->seen_owner = head.incarnation = leat_msg_read_u64(r);
    row->seen_log_epoch = leat_msg_read_u32(r);
    row->tail.prefix_id.bytes = leat_msg_read_u32(r);
    row->tail.prefix_id.crc = leat_msg_read_u32(r);
    row->heard = leat_msg_read_bool(r);
    row->decision = LEAT_RECOVER_LEFT;
    return row->log.stream != 0;
}

static bool move_read(struct leat_msg_reader *r, struct leat_machine *m)
{
    head = (struct leat_assign_entry){.reason = LEAT_ASSIGN_MOVE};
    head.incarnation = leat_msg_read_u64(r);
    uint32_t epoch = leat_msg_read_u32(r);
    struct leat_msg_string name = leat_msg_read_string(r);
    uint32_t count = leat_msg_read_array(r);
    if (r->failed) return false;
    const struct leat_machine_node *to = leat_machine_node_find(m, name.text, name.bytes);
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        struct leat_assign_row *row = row_next();
        if (leat_msg_read_array(r) != 7) return false;
        row->log = leat_msg_read_log(r);
        tail_read(r, &row->tail);
        row->seen_owner = head.incarnation;
        row->owner = to ? to->info.incarnation : 0;
        row->seen_epoch = epoch;
        row->decision = LEAT_RECOVER_TAIL;
        if (row->log.stream == 0) return false;
    }
    return count > 0;
}

static bool recover_read(struct leat_msg_reader *r)
{
    head = (struct leat_assign_entry){.reason = LEAT_ASSIGN_RECOVERY};
    head.attempt = leat_msg_read_u64(r);
    uint32_t count = leat_msg_read_array(r);
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        struct leat_assign_row of = {0};
        if (leat_msg_read_array(r) != 6) return false;
        of.log = (struct leat_log_ref){.stream = leat_msg_read_u32(r)};
        of.log.streamlet = leat_msg_read_u32(r);
        of.seen_owner = leat_msg_read_u64(r);
        of.seen_epoch = leat_msg_read_u32(r);
        of.owner = leat_msg_read_u64(r);
        of.rows = leat_msg_read_array(r);
        if (of.rows == 0 || of.log.stream == 0) return false;
        for (uint32_t q = 0; q < of.rows && !r->failed; q++) {
            struct leat_assign_row *row = row_next();
            *row = of;
            row->log.log = q;
            uint32_t fields = leat_msg_read_array(r);
            row->seen_log_epoch = leat_msg_read_u32(r);
            row->seen_stamp = leat_msg_read_u32(r);
            row->seen_version = leat_msg_read_u32(r);
            row->decision = leat_msg_read_u32(r);
            if (fields >= 8) tail_read(r, &row->tail);
            if (fields == 9) row->heard = leat_msg_read_u64(r);
            if (row->decision > LEAT_RECOVER_STANDS) return false;
        }
    }
    return true;
}

/* The kind, or 0: not one of those, or not well-formed, or one part of several. */
static unsigned old_read(const struct applied_entry *entry, struct leat_machine *m)
{
    struct leat_msg_reader r;
    leat_msg_reader_init(&r, entry->bytes, entry->count);
    (void)leat_msg_read_array(&r);
    uint64_t version = leat_msg_read_u64(&r), kind = leat_msg_read_u64(&r);
    row_count = 0;
    rest = false;
    if (r.failed || version != LEAT_COMMAND_VERSION) return 0;
    bool read = kind == LEAT_COMMAND_ADOPT         ? adopt_read(&r)
                : kind == LEAT_COMMAND_ACCEPT_LOSS ? loss_read(&r)
                : kind == LEAT_COMMAND_MOVE        ? move_read(&r, m)
                : kind == LEAT_COMMAND_RECOVER     ? recover_read(&r)
                                                   : false;
    return read && leat_msg_read_done(&r) ? (unsigned)kind : 0;
}

/* ---- written again ---- */

static void write_entry(struct applied_entry *out)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, out->bytes, sizeof out->bytes);
    head.streamlets = rest;
    for (uint32_t i = 0; i < row_count; i += rows[i].rows)
        head.streamlets++;
    leat_assign_entry_write(&w, &head);
    for (uint32_t i = 0; i < row_count; i += rows[i].rows) {
        leat_assign_streamlet_write(&w, &rows[i]);
        for (uint32_t q = 0; q < rows[i].rows; q++)
            leat_assign_log_write(&w, &rows[i + q]);
    }
    if (rest) leat_assign_rest_write(&w, head.incarnation, seen);
    assert_false(w.overflow);
    out->count = w.used;
}

static void assign_says_what_the_old_kinds_said(void **state)
{
    (void)state;
    unsigned outcomes[32][2] = {0};
    struct leat_machine *m = calloc(1, sizeof *m), *copy = calloc(1, sizeof *copy);
    struct applied_entry *old = calloc(2, sizeof *old), *new = old + 1;
    assert_true(m && copy && old);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct applied_dice dice;
        struct leat_machine_result a, b;
        applied_dice_init(&dice, seed);
        dice.wrapped = 0;
        leat_machine_init(m, 2);
        for (unsigned i = 0; i < 700; i++) {
            applied_draw(&dice, m, old);
            unsigned kind = old_read(old, m);
            if (kind) machine_restore_copy(m, copy);
            leat_err rc = leat_machine_apply(m, old->bytes, old->count, &a);
            if (!kind || a.malformed) continue;
            write_entry(new);
            assert_int_equal(leat_machine_apply(copy, new->bytes, new->count, &b), rc);
            if (a.rc != b.rc || a.epoch.v != b.epoch.v || a.incarnation != b.incarnation ||
                a.first_id != b.first_id || a.id_count != b.id_count || b.malformed)
                fail_msg("seed %u, %u, kind %u: %d %s, %d %s", (unsigned)seed, i, kind, a.rc,
                         a.error.text, b.rc, b.error.text);
            machines_compare(m, copy);
            outcomes[kind][a.rc != LEAT_OK]++;
        }
        leat_machine_fini(m);
        leat_machine_fini(copy);
    }
    free(m);
    free(copy);
    free(old);
    const unsigned kinds[] = {LEAT_COMMAND_ADOPT, LEAT_COMMAND_ACCEPT_LOSS, LEAT_COMMAND_MOVE,
                              LEAT_COMMAND_RECOVER};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (outcomes[kinds[k]][0] < 100 || outcomes[kinds[k]][1] < 100)
            fail_msg("kind %u: %u taken, %u refused", kinds[k], outcomes[kinds[k]][0],
                     outcomes[kinds[k]][1]);
}

/* ---- bytes of an earlier version ---- */

/* Nodes a (1) and b (2); stream s (1), of which a has both streamlets of one log, under epoch 1. */
static void world_make(struct leat_machine *m, struct command *command)
{
    struct leat_stream_settings settings = {.streamlets = 2, .logs = 1};
    leat_machine_init(m, 1);
    node_up(m, command, "a");
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings), LEAT_OK);
    node_up(m, command, "b");
    assert_int_equal(opened(m, command, 1, 1, 1), LEAT_OK);
}

static leat_err bytes_apply(struct leat_machine *m, const uint8_t *bytes, size_t count)
{
    struct leat_machine_result result;
    assert_int_equal(leat_machine_apply(m, bytes, count, &result), LEAT_OK);
    return result.rc;
}

static void entries_of_earlier_versions_are_read(void **state)
{
    (void)state;
    /* Log 1/0/0 moves to b: [1, 12, 1, 1, "b", [[1, 0, 0, 4, 512, 0x1234, 100]]] */
    static const uint8_t move[] = {0x96, 1, 12, 1,    1, 0xa1, 'b',  0x91, 0x97, 1,
                                   0,    0, 4,  0xcd, 2, 0,    0xcd, 0x12, 0x34, 100};
    /* What is missing of log 1/0/0 is given up: [1, 8, 1, 0, 0, 5, 200, 1, 1, 512, 0x1234, false] */
    static const uint8_t loss[] = {0x9c, 1, 8,    1, 0, 0,    5,    0xcc, 200,
                                   1,    1, 0xcd, 2, 0, 0xcd, 0x12, 0x34, 0xc2};
    /* Log 1/0/0 ends in segment 3, and the rest of node a stays: [1, 7, 99, 0, true, 1, 6, bin of
     * [1, 0, 0, 0, 3, 512, 0x1234, 100], changes of node a, false] */
    static const uint8_t rows_of[] = {0x98, 1, 0, 0, 0, 3, 0xcd, 2, 0, 0xcd, 0x12, 0x34, 100};
    /* From a, which crashed, to b: [1, 16, 99, [[1, 0, 1, 1, 2, [[1, 1, 1, 1, 7, 512, 0x1234, 100]]]]] */
    static const uint8_t recover[] = {0x94, 1, 16,   99,   0x91, 0x96, 1,  0, 1,
                                      1,    2, 0x91, 0x98, 1,    1,    1,  1, 7,
                                      0xcd, 2, 0,    0xcd, 0x12, 0x34, 100};
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    for (unsigned c = 0; c < 4; c++) {
        world_make(m, command);
        const struct leat_machine_log *log = &m->streams[0].logs[0];
        const uint32_t epoch = m->next_epoch;
        assert_true(log->record.opened);
        uint8_t adopt[64] = {0x9a, 1, 7, 99, 0, 0xc3, 1, 6, 0xc4, sizeof rows_of};
        memcpy(adopt + 10, rows_of, sizeof rows_of);
        adopt[10 + sizeof rows_of] = (uint8_t)leat_machine_seen(m, &m->nodes[0]);
        adopt[11 + sizeof rows_of] = 0xc2;
        if (c == 3) assert_int_equal(crash(m, command, "a", 1), LEAT_OK);
        leat_err rc = c == 0   ? bytes_apply(m, move, sizeof move)
                      : c == 1 ? bytes_apply(m, loss, sizeof loss)
                      : c == 2 ? bytes_apply(m, adopt, 12 + sizeof rows_of)
                               : bytes_apply(m, recover, sizeof recover);
        assert_int_equal(rc, LEAT_OK);
        const uint64_t segments[] = {4, 5, 3, 7}, owners[] = {2, 1, 1, 2};
        const struct leat_stream_desc *desc = m->streams[0].desc;
        assert_false(log->record.opened);
        assert_int_equal(log->record.tail.segment, segments[c]);
        assert_int_equal(log->record.tail.prefix_id.bytes, 512);
        assert_int_equal(log->record.tail.prefix_id.crc, 0x1234);
        assert_int_equal(log->record.tail.next_offset, c == 1 ? (uint64_t)1 << 40 : 100);
        assert_int_equal(log->record.tail.jumped, c == 1);
        assert_int_equal(log->jumped_to, c == 1 ? (uint64_t)1 << 40 : 0);
        assert_int_equal(log->epoch.v, epoch);
        assert_int_equal(desc->streamlets[0].owner, owners[c]);
        assert_int_equal(desc->streamlets[0].epoch.v, c == 1 ? 1 : epoch);
        assert_int_equal(desc->streamlets[1].epoch.v, c == 2 ? epoch : 1); /* the rest of node a */
        leat_machine_fini(m);
    }
    free(m);
    free(command);
}

/* ---- what no reason may say ---- */

static leat_err assigned(struct leat_machine *m, const struct leat_assign_entry *entry,
                         const struct leat_assign_row *said, bool ends)
{
    struct command command;
    struct leat_machine_result result;
    struct leat_msg_writer w;
    struct leat_assign_entry of = *entry;
    of.streamlets = 1 + ends;
    leat_msg_writer_init(&w, command.bytes, sizeof command.bytes);
    leat_assign_entry_write(&w, &of);
    leat_assign_streamlet_write(&w, said);
    leat_assign_log_write(&w, said);
    if (ends) leat_assign_rest_write(&w, entry->incarnation, leat_machine_seen(m, &m->nodes[0]));
    command_end(&command, &w);
    assert_int_equal(leat_machine_apply(m, command.bytes, command.count, &result), LEAT_OK);
    return result.malformed ? LEAT_E_CORRUPT : result.rc;
}

static void reason_decides_what_is_its_own(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    world_make(m, command);
    for (unsigned reason = 0; reason < 7; reason++)
        for (unsigned decision = 0; decision < 6; decision++)
            for (unsigned odd = 0; odd < 8; odd++) {
                struct leat_assign_entry entry = {
                    .reason = reason, .incarnation = 1, .attempt = 9, .part = odd == 1};
                struct leat_assign_row said = {.log = {1, 0, odd == 2},
                                               .seen_owner = 1,
                                               .owner = reason == LEAT_ASSIGN_MOVE ? 2 : 1,
                                               .rows = 1,
                                               .seen_epoch = 77, /* nothing is taken */
                                               .seen_log_epoch = 77,
                                               .decision = decision,
                                               .heard = decision == LEAT_RECOVER_WAITS ||
                                                        decision == LEAT_RECOVER_LEFT};
                if (odd == 3) said.owner = 3 - said.owner;
                if (odd == 4) said.seen_owner = 2;
                if (odd == 5) entry.incarnation = 2;
                if (odd == 7) said.heard = 0;
                leat_err rc = assigned(m, &entry, &said, odd == 6);
                bool start = reason == LEAT_ASSIGN_START, move = reason == LEAT_ASSIGN_MOVE;
                bool loss = reason == LEAT_ASSIGN_LOSS, recovery = reason == LEAT_ASSIGN_RECOVERY;
                bool may = (start && decision <= LEAT_RECOVER_TAIL) ||
                           (recovery && decision <= LEAT_RECOVER_STANDS) ||
                           (move && decision == LEAT_RECOVER_TAIL) ||
                           (loss && decision == LEAT_RECOVER_LEFT);
                /* Whoever starts has asked nobody else. */
                if (odd != 7 && start && decision == LEAT_RECOVER_WAITS) may = false;
                if (odd == 2 && recovery) may = false;
                if (odd == 3 && (start || loss)) may = false;
                if (odd == 4 && (move || loss)) may = false;
                if (odd == 5 && !recovery) may = false;
                if (odd == 6 && !start) may = false;
                if ((rc != LEAT_E_CORRUPT) != may)
                    fail_msg("reason %u, decision %u, %u: %d", reason, decision, odd, rc);
            }
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* ---- a start in parts ---- */

enum { STREAMLETS = 2500, LOGS = 50, PARTS_MAX = 8 };

/* Node a was the owner of many logs, all opened under epoch 1, and found the end of each log. */
static struct leat_coordinate many_make(struct leat_machine *m, struct command *command)
{
    const struct leat_stream_settings settings = {.streamlets = STREAMLETS, .logs = LOGS};
    struct leat_machine_log *logs;
    leat_machine_init(m, 1);
    node_up(m, command, "a");
    m->next_stream_id = m->next_epoch = 2;
    struct leat_stream_desc *desc = leat_machine_desc_create(1, "s", 1, &settings);
    assert_non_null(desc);
    assert_int_equal(leat_machine_stream_add(m, desc, &logs), LEAT_OK);
    struct leat_coordinate request = {.incarnation = 1, .decision_count = STREAMLETS * LOGS};
    request.decisions =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, request.decision_count, sizeof *request.decisions);
    assert_non_null(request.decisions);
    for (uint32_t i = 0; i < STREAMLETS * LOGS; i++) {
        logs[i] =
            (struct leat_machine_log){.epoch = {1}, .record = {.opened = true, .stamp_epoch = {1}}};
        request.decisions[i] =
            (struct leat_log_decision){.log = {1, i / LOGS, i % LOGS},
                                       .kind = LEAT_DECIDED_TAIL,
                                       .tail = {.segment = i, .prefix_id = {512, 0xdeadbeef}}};
    }
    for (uint32_t s = 0; s < STREAMLETS; s++) {
        m->streams[0].owners[s] = 0;
        desc->streamlets[s].owner = 1;
        desc->streamlets[s].epoch.v = 1;
        m->nodes[0].info.streamlets++;
        m->nodes[0].logs += LOGS;
    }
    return request;
}

/* An entry has less than 1 MiB; the entries of one change take effect together, in their order, or not at all. */
static void start_of_many_logs_is_several_entries(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    for (unsigned c = 0; c < 5; c++) {
        struct raft_buffer parts[PARTS_MAX];
        struct leat_machine_result result;
        struct leat_error error;
        unsigned count;
        uint8_t *bytes;
        struct leat_coordinate request = many_make(m, command);
        assert_int_equal(leat_adopt_encode(m, &request, 9, parts, 1, &count, &bytes, &error),
                         LEAT_E_TOO_MANY);
        assert_int_equal(
            leat_adopt_encode(m, &request, 9, parts, PARTS_MAX, &count, &bytes, &error), LEAT_OK);
        assert_true(count >= 3);
        for (unsigned i = 0; i < count; i++)
            assert_true(parts[i].len < 1 << 20);
        for (unsigned i = 0; i < count; i++) {
            if (c == 1 && i == 0) continue;                      /* its first part is missing */
            if (c == 2 && i == count - 2) continue;              /* the one before the last is */
            if (c == 3 && i == count - 1) m->nodes[0].changes++; /* something has changed */
            for (unsigned n = 0; n < (c == 4 && i == 0 ? 2 : 1); n++) { /* it begins anew */
                assert_int_equal(leat_machine_apply(m, parts[i].base, parts[i].len, &result),
                                 LEAT_OK);
                assert_false(result.malformed);
            }
        }
        const bool taken = c == 0 || c == 4;
        assert_int_equal(result.rc, taken ? LEAT_OK : LEAT_E_AGAIN);
        for (uint32_t i = 0; i < STREAMLETS * LOGS; i++) {
            const struct leat_machine_log *log = &m->streams[0].logs[i];
            assert_int_equal(log->record.opened, !taken);
            assert_int_equal(log->record.tail.segment, taken ? i : 0);
            assert_int_equal(log->epoch.v, taken ? 2 : 1);
        }
        leat_machine_check(m);
        leat_mem_free(bytes);
        leat_mem_free(request.decisions);
        leat_machine_fini(m);
    }
    free(m);
    free(command);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS) + leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
}

/* Rows that are kept until the last part comes have room by the logs that there are; a cluster without any starts. */
static void start_without_logs_is_one_entry(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    struct leat_machine_result result;
    assert_true(m && command);
    leat_machine_init(m, 1);
    node_up(m, command, "a");
    const struct leat_assign_entry entry = {
        .reason = LEAT_ASSIGN_START, .incarnation = 1, .attempt = 9, .streamlets = 1};
    for (unsigned c = 0; c < 3; c++) {
        struct leat_msg_writer w;
        leat_msg_writer_init(&w, command->bytes, sizeof command->bytes);
        leat_assign_entry_write(&w, &(struct leat_assign_entry){.reason = entry.reason,
                                                                .incarnation = 1,
                                                                .attempt = 9,
                                                                .streamlets = c == 0 ? 1 : 2});
        if (c == 1) leat_assign_rest_write(&w, 1, leat_machine_seen(m, &m->nodes[0]));
        if (c == 2)
            leat_assign_streamlet_write(&w, &(struct leat_assign_row){.log = {1, 0, 0}, .rows = 0});
        leat_assign_rest_write(&w, 1, leat_machine_seen(m, &m->nodes[0]));
        command_end(command, &w);
        assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
        assert_int_equal(result.malformed, c == 1); /* the rest is one, and the last */
        assert_int_equal(result.rc, c == 0   ? LEAT_OK
                                    : c == 1 ? LEAT_E_CORRUPT
                                             : LEAT_E_AGAIN); /* no row of no log */
        assert_null(m->staged);
    }
    leat_machine_fini(m);
    free(m);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assign_says_what_the_old_kinds_said),
        cmocka_unit_test(entries_of_earlier_versions_are_read),
        cmocka_unit_test(reason_decides_what_is_its_own),
        cmocka_unit_test(start_of_many_logs_is_several_entries),
        cmocka_unit_test(start_without_logs_is_one_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
