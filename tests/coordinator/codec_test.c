/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies between coordinators, as bytes: every field comes back, and impossible values are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/messages.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/raft_bytes.h"
#include "tests/coordinator/raft_heap.h"

static struct leat_xoshiro rng;
static uint8_t control[4096], payload[LEAT_RAFT_ENTRY_BYTES_MAX + 4096];

static uint64_t any(uint64_t most)
{
    uint64_t dice = leat_xoshiro_below(&rng, 4);
    return dice == 0   ? most
           : dice == 1 ? 0
                       : leat_xoshiro_next(&rng) % (most == UINT64_MAX ? most : most + 1);
}

static void fill(struct raft_message *m, enum raft_message_type type)
{
    memset(m, 0, sizeof *m);
    m->type = type;
    m->server_id = 1 + any(UINT64_MAX - 1);
    switch (type) {
    case RAFT_APPEND_ENTRIES:
        m->append_entries.version = (unsigned char)any(UINT8_MAX);
        m->append_entries.term = any(UINT64_MAX);
        m->append_entries.prev_log_index = any(UINT64_MAX);
        m->append_entries.prev_log_term = any(UINT64_MAX);
        m->append_entries.leader_commit = any(UINT64_MAX);
        break;
    case RAFT_APPEND_ENTRIES_RESULT:
        m->append_entries_result.version = (unsigned char)any(UINT8_MAX);
        m->append_entries_result.term = any(UINT64_MAX);
        m->append_entries_result.rejected = any(UINT64_MAX);
        m->append_entries_result.last_log_index = any(UINT64_MAX);
        m->append_entries_result.features = (uint16_t)any(UINT16_MAX);
        m->append_entries_result.capacity = (unsigned short)any(UINT16_MAX);
        break;
    case RAFT_REQUEST_VOTE:
        m->request_vote.version = (unsigned char)any(UINT8_MAX);
        m->request_vote.term = any(UINT64_MAX);
        m->request_vote.candidate_id = any(UINT64_MAX);
        m->request_vote.last_log_index = any(UINT64_MAX);
        m->request_vote.last_log_term = any(UINT64_MAX);
        m->request_vote.disrupt_leader = any(1);
        m->request_vote.pre_vote = any(1);
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        m->request_vote_result.version = (unsigned char)any(UINT8_MAX);
        m->request_vote_result.term = any(UINT64_MAX);
        m->request_vote_result.vote_granted = any(1);
        m->request_vote_result.pre_vote = any(1);
        m->request_vote_result.features = (uint16_t)any(UINT16_MAX);
        m->request_vote_result.capacity = (unsigned short)any(UINT16_MAX);
        break;
    case RAFT_TIMEOUT_NOW:
        m->timeout_now.version = (unsigned char)any(UINT8_MAX);
        m->timeout_now.term = any(UINT64_MAX);
        m->timeout_now.last_log_index = any(UINT64_MAX);
        m->timeout_now.last_log_term = any(UINT64_MAX);
        break;
    case RAFT_INSTALL_SNAPSHOT:
        fail();
    }
}

static struct leat_frame encoded(const struct raft_message *m, uint64_t from)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    co_message_encode(&writer, from, m);
    struct leat_msg_reader whole; /* one array of as many values as it says */
    leat_msg_reader_init(&whole, control, writer.used);
    leat_msg_skip_n(&whole, leat_msg_read_array(&whole));
    assert_true(leat_msg_read_done(&whole));
    struct leat_frame frame = {
        .control = control, .control_bytes = writer.used, .payload = payload};
    frame.payload_bytes = (uint32_t)co_message_payload_bytes(m);
    assert_true(frame.payload_bytes <= sizeof payload);
    if (frame.payload_bytes) co_message_payload(m, payload);
    return frame;
}

static void entries_free(struct raft_message *m)
{
    if (m->type != RAFT_APPEND_ENTRIES || m->append_entries.n_entries == 0) return;
    raft_free(m->append_entries.entries[0].batch);
    raft_free(m->append_entries.entries);
}

static leat_err decoded(const struct leat_frame *frame)
{
    struct raft_message got;
    uint64_t to;
    leat_err rc = co_message_decode(frame, &got, &to);
    if (rc == LEAT_OK) entries_free(&got);
    return rc;
}

static const enum raft_message_type types[] = {RAFT_APPEND_ENTRIES, RAFT_APPEND_ENTRIES_RESULT,
                                               RAFT_REQUEST_VOTE, RAFT_REQUEST_VOTE_RESULT,
                                               RAFT_TIMEOUT_NOW};

static void codec_every_field_comes_back(void **state)
{
    (void)state;
    leat_xoshiro_seed(&rng, 1);
    for (unsigned turn = 0; turn < 3000; turn++) {
        struct raft_message m, got;
        struct raft_entry entries[5];
        fill(&m, types[turn % 5]);
        if (m.type == RAFT_APPEND_ENTRIES) {
            m.append_entries.entries = entries;
            m.append_entries.n_entries = (unsigned)leat_xoshiro_below(&rng, 6);
            for (unsigned i = 0; i < m.append_entries.n_entries; i++)
                entries[i] = (struct raft_entry){
                    .term = any(UINT64_MAX),
                    .type = leat_xoshiro_below(&rng, 2) ? RAFT_COMMAND : RAFT_BARRIER,
                    .buf = {(void *)&"some bytes of an entry"[i], leat_xoshiro_below(&rng, 18)}};
        }
        uint64_t from = 1 + any(UINT64_MAX - 1), to = 0;
        struct leat_frame frame = encoded(&m, from);
        assert_int_equal(co_message_decode(&frame, &got, &to), LEAT_OK);
        assert_int_equal(to, m.server_id);
        assert_int_equal(got.server_id, from);
        assert_int_equal(got.type, m.type);
        if (m.type == RAFT_APPEND_ENTRIES) {
            for (unsigned i = 0; i < m.append_entries.n_entries; i++) {
                const struct raft_entry *a = &entries[i], *b = &got.append_entries.entries[i];
                assert_int_equal(a->term, b->term);
                assert_int_equal(a->type, b->type);
                assert_int_equal(a->buf.len, b->buf.len);
                assert_memory_equal(a->buf.base, b->buf.base, a->buf.len);
                assert_ptr_equal(b->batch, got.append_entries.entries[0].batch);
            }
            entries_free(&got);
            m.append_entries.entries = got.append_entries.entries = NULL;
        }
        assert_memory_equal(&got.append_entries, &m.append_entries,
                            sizeof m - offsetof(struct raft_message, append_entries));
        for (uint32_t cut = 0; cut < frame.control_bytes && turn < 50; cut++) {
            struct leat_frame part = frame;
            part.control_bytes = cut;
            assert_int_equal(decoded(&part), LEAT_E_INVALID);
        }
        for (uint32_t cut = 0; cut < frame.payload_bytes && turn < 50; cut++) {
            struct leat_frame part = frame;
            part.payload_bytes = cut;
            assert_int_equal(decoded(&part), LEAT_E_INVALID);
        }
        frame.payload_bytes++;
        if (m.type == RAFT_APPEND_ENTRIES) assert_int_equal(decoded(&frame), LEAT_E_INVALID);
    }
}

/* A head and so many numbers; one of them is another than may be. */
static leat_err numbers(uint64_t version, uint64_t type, uint64_t from, unsigned count,
                        unsigned large, uint64_t value)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 4 + count);
    leat_msg_write_u64(&writer, version);
    leat_msg_write_u64(&writer, type);
    leat_msg_write_u64(&writer, from);
    leat_msg_write_u64(&writer, 7);
    for (unsigned i = 0; i < count; i++)
        leat_msg_write_u64(&writer, i == large ? value : 0);
    struct leat_frame frame = {
        .control = control, .control_bytes = writer.used, .payload = payload};
    return decoded(&frame);
}

static void codec_message_that_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 3, 6, 9, 0), LEAT_OK);
    assert_int_equal(numbers(2, RAFT_APPEND_ENTRIES_RESULT, 3, 6, 9, 0), LEAT_E_INVALID);
    assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 0, 6, 9, 0), LEAT_E_INVALID);
    assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 3, 5, 9, 0), LEAT_E_INVALID);
    assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 3, 7, 9, 0), LEAT_OK); /* a newer one */
    assert_int_equal(numbers(1, RAFT_INSTALL_SNAPSHOT, 3, 6, 9, 0), LEAT_E_INVALID);
    assert_int_equal(numbers(1, 99, 3, 6, 9, 0), LEAT_E_INVALID);
    assert_int_equal(numbers(1, 99, 3, 0, 9, 0), LEAT_E_INVALID); /* of no field either */
    assert_int_equal(numbers(1, RAFT_INSTALL_SNAPSHOT, 3, 0, 9, 0), LEAT_E_INVALID);
    const uint64_t most[] = {UINT8_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT16_MAX, UINT16_MAX};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 3, 6, i, most[i]), LEAT_OK);
        if (most[i] == UINT64_MAX) continue;
        assert_int_equal(numbers(1, RAFT_APPEND_ENTRIES_RESULT, 3, 6, i, most[i] + 1),
                         LEAT_E_INVALID);
    }
}

static leat_err one_entry(uint32_t length, uint32_t type)
{
    struct raft_entry entry = {.type = RAFT_COMMAND, .term = 1, .buf = {(void *)"0123456789", 10}};
    struct raft_message m;
    fill(&m, RAFT_APPEND_ENTRIES);
    m.append_entries.entries = &entry;
    m.append_entries.n_entries = 1;
    struct leat_frame frame = encoded(&m, 3);
    leat_put_le32(payload, length);
    leat_put_le32(payload + 4, type);
    return decoded(&frame);
}

static void codec_entry_is_taken_up_to_its_limit(void **state)
{
    (void)state;
    for (size_t bytes = LEAT_RAFT_ENTRY_BYTES_MAX; bytes <= LEAT_RAFT_ENTRY_BYTES_MAX + 1;
         bytes++) {
        void *body = calloc(1, bytes);
        assert_non_null(body);
        struct raft_entry entry = {.type = RAFT_COMMAND, .term = 1, .buf = {body, bytes}};
        struct raft_message m;
        fill(&m, RAFT_APPEND_ENTRIES);
        m.append_entries.entries = &entry;
        m.append_entries.n_entries = 1;
        struct leat_frame frame = encoded(&m, 3);
        assert_int_equal(decoded(&frame),
                         bytes == LEAT_RAFT_ENTRY_BYTES_MAX ? LEAT_OK : LEAT_E_INVALID);
        free(body);
    }
    /* Of other messages a payload is none of ours. */
    struct raft_message vote;
    fill(&vote, RAFT_REQUEST_VOTE);
    assert_int_equal(co_message_payload_bytes(&vote), 0);
}

static void codec_entry_that_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(one_entry(10, RAFT_COMMAND), LEAT_OK);
    assert_int_equal(one_entry(10, RAFT_BARRIER), LEAT_OK);
    assert_int_equal(one_entry(11, RAFT_COMMAND), LEAT_E_INVALID);
    assert_int_equal(one_entry(9, RAFT_COMMAND), LEAT_E_INVALID);
    assert_int_equal(one_entry(UINT32_MAX, RAFT_COMMAND), LEAT_E_INVALID);
    assert_int_equal(one_entry(10, 0), LEAT_E_INVALID);
    assert_int_equal(one_entry(10, RAFT_CHANGE + 1), LEAT_E_INVALID);
    assert_int_equal(one_entry(10, RAFT_CHANGE), LEAT_E_INVALID); /* no configuration */
}

/* A command, a configuration, and a command: as leaders send when voters change. */
static struct leat_frame change_among_commands(struct raft_message *m, struct raft_entry entries[3])
{
    entries[0] = (struct raft_entry){.type = RAFT_COMMAND, .term = 4, .buf = {(void *)"first", 5}};
    entries[1] = (struct raft_entry){
        .type = RAFT_CHANGE, .term = 5, .buf = {(void *)(uintptr_t)one_voter, sizeof one_voter}};
    entries[2] = (struct raft_entry){.type = RAFT_COMMAND, .term = 6, .buf = {(void *)"last", 4}};
    fill(m, RAFT_APPEND_ENTRIES);
    m->append_entries.entries = entries;
    m->append_entries.n_entries = 3;
    return encoded(m, 3);
}

static void codec_configuration_among_entries_is_looked_at(void **state)
{
    (void)state;
    struct raft_message m, got;
    struct raft_entry entries[3];
    uint64_t to;
    struct leat_frame frame = change_among_commands(&m, entries);
    assert_int_equal(co_message_decode(&frame, &got, &to), LEAT_OK);
    for (unsigned i = 0; i < 3; i++) {
        const struct raft_entry *entry = &got.append_entries.entries[i];
        assert_int_equal(entry->type, entries[i].type);
        assert_int_equal(entry->term, entries[i].term);
        assert_int_equal(entry->buf.len, entries[i].buf.len);
        assert_memory_equal(entry->buf.base, entries[i].buf.base, entry->buf.len);
    }
    entries_free(&got);
    payload[16 + 5 + 16] = 2; /* a form of configurations that is not known */
    assert_int_equal(decoded(&frame), LEAT_E_INVALID);
}

/* However short a frame is and whatever lengths it names: no byte after its end is read. */
static void codec_reads_nothing_behind_a_frame(void **state)
{
    (void)state;
    enum { PAGE = 4096 };
    uint8_t *pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    struct raft_message m;
    struct raft_entry entries[3];
    struct leat_frame frame = change_among_commands(&m, entries);
    const uint32_t whole = frame.payload_bytes, heads[] = {0, 16 + 5, 16 + 5 + 16 + 20};
    for (uint32_t bytes = 0; bytes <= whole; bytes++)
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t lengths[] = {whole, UINT32_MAX, LEAT_RAFT_ENTRY_BYTES_MAX};
            for (unsigned n = 0; n < (i < 3 ? 3 : 1); n++) {
                if (i < 3 && heads[i] + 4 > bytes) continue;
                frame.payload = memcpy(pages + PAGE - bytes, payload, bytes);
                frame.payload_bytes = bytes;
                if (i < 3) leat_put_le32(pages + PAGE - bytes + heads[i], lengths[n]);
                assert_int_equal(decoded(&frame),
                                 i == 3 && bytes == whole ? LEAT_OK : LEAT_E_INVALID);
            }
        }
    munmap(pages, 2 * PAGE);
}

static void codec_entries_without_memory_leave_nothing(void **state)
{
    (void)state;
    struct raft_message m;
    struct raft_entry entries[3];
    struct leat_frame frame = change_among_commands(&m, entries);
    heap_begin();
    for (unsigned n = 1; n <= 2; n++) {
        refuse = n;
        assert_int_equal(decoded(&frame), LEAT_E_NO_MEMORY);
        assert_int_equal(blocks, 0);
    }
    refuse = 0;
    assert_int_equal(decoded(&frame), LEAT_OK);
    m.append_entries.n_entries = 0; /* a heartbeat needs none */
    frame = encoded(&m, 3);
    refuse = 1;
    assert_int_equal(decoded(&frame), LEAT_OK);
    assert_int_equal(blocks, 0);
    raft_heap_set_default();
}

/* ---- what nodes hold ---- */

static void row_put(struct leat_msg_writer *writer, const struct leat_replica_row *row,
                    uint32_t fields)
{
    leat_msg_write_array(writer, fields);
    leat_msg_write_u64(writer, row->log.stream);
    leat_msg_write_u64(writer, row->log.streamlet);
    leat_msg_write_u64(writer, row->log.log);
    leat_msg_write_u64(writer, row->segment);
    leat_msg_write_u64(writer, row->kind);
    leat_msg_write_u64(writer, row->epoch.v);
    leat_msg_write_u64(writer, row->version);
    leat_msg_write_u64(writer, row->prefix_id.bytes);
    leat_msg_write_u64(writer, row->prefix_id.crc);
    leat_msg_write_u64(writer, row->previous.bytes);
    leat_msg_write_u64(writer, row->previous.crc);
    leat_msg_write_u64(writer, row->base_offset);
    leat_msg_write_u64(writer, row->next_offset);
    leat_msg_write_i64(writer, row->max_timestamp_ms);
    leat_msg_write_bool(writer, row->only_start);
    leat_msg_write_bool(writer, row->durable);
    leat_msg_write_bool(writer, row->holds_tail);
    leat_msg_write_bool(writer, row->torn);
    leat_msg_write_bool(writer, row->provisional);
    for (uint32_t more = 19; more < fields; more++)
        leat_msg_write_u64(writer, 0); /* of a later version */
}

static void codec_rows_of_what_a_node_holds_come_back(void **state)
{
    (void)state;
    leat_xoshiro_seed(&rng, 2);
    for (unsigned turn = 0; turn < 500; turn++) {
        struct leat_msg_writer writer;
        struct leat_replica_row rows[3], *got;
        size_t count = leat_xoshiro_below(&rng, 4), back = 99;
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, (uint32_t)count);
        for (size_t i = 0; i < count; i++) {
            memset(&rows[i], 0, sizeof rows[i]);
            rows[i].log = (struct leat_log_ref){
                (uint32_t)any(UINT32_MAX), (uint32_t)any(UINT32_MAX), (uint32_t)any(UINT32_MAX)};
            rows[i].segment = any(UINT64_MAX);
            rows[i].kind = (enum leat_replica_kind)(
                LEAT_REPLICA_MARK +
                leat_xoshiro_below(&rng, LEAT_REPLICA_LOST - LEAT_REPLICA_MARK + 1));
            rows[i].epoch.v = (uint32_t)any(UINT32_MAX);
            rows[i].version = (uint32_t)any(UINT32_MAX);
            rows[i].prefix_id =
                (struct leat_prefix_id){(uint32_t)any(UINT32_MAX), (uint32_t)any(UINT32_MAX)};
            rows[i].previous =
                (struct leat_prefix_id){(uint32_t)any(UINT32_MAX), (uint32_t)any(UINT32_MAX)};
            rows[i].base_offset = any(UINT64_MAX);
            rows[i].next_offset = any(UINT64_MAX);
            rows[i].max_timestamp_ms = (int64_t)any(UINT64_MAX / 2) - (int64_t)any(UINT64_MAX / 2);
            rows[i].only_start = any(1);
            rows[i].durable = any(1);
            rows[i].holds_tail = any(1);
            rows[i].torn = any(1);
            rows[i].provisional = any(1);
            row_put(&writer, &rows[i], turn % 3 ? 19 : 21);
        }
        assert_int_equal(co_rows_decode(control, writer.used, &got, &back), LEAT_OK);
        assert_int_equal(back, count);
        if (count) assert_memory_equal(got, rows, count * sizeof rows[0]);
        leat_mem_free(got);
        for (uint32_t cut = 0; cut < writer.used && turn < 20; cut++)
            assert_int_equal(co_rows_decode(control, cut, &got, &back), LEAT_E_INVALID);
    }
    for (unsigned kind = 0; kind <= LEAT_REPLICA_LOST + 1; kind++) {
        for (uint32_t fields = 18; fields <= 19; fields++) {
            struct leat_msg_writer writer;
            struct leat_replica_row row = {.kind = (enum leat_replica_kind)kind}, *got;
            size_t back;
            leat_msg_writer_init(&writer, control, sizeof control);
            leat_msg_write_array(&writer, 1);
            row_put(&writer, &row, fields);
            bool fine = fields == 19 && kind >= LEAT_REPLICA_MARK && kind <= LEAT_REPLICA_LOST;
            assert_int_equal(co_rows_decode(control, writer.used, &got, &back),
                             fine ? LEAT_OK : LEAT_E_INVALID);
            if (fine) leat_mem_free(got);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec_every_field_comes_back),
        cmocka_unit_test(codec_message_that_cannot_be_is_refused),
        cmocka_unit_test(codec_entry_is_taken_up_to_its_limit),
        cmocka_unit_test(codec_entry_that_cannot_be_is_refused),
        cmocka_unit_test(codec_configuration_among_entries_is_looked_at),
        cmocka_unit_test(codec_reads_nothing_behind_a_frame),
        cmocka_unit_test(codec_entries_without_memory_leave_nothing),
        cmocka_unit_test(codec_rows_of_what_a_node_holds_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
