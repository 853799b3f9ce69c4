/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies between nodes: raft's messages, committed entries, rows of a collection, bodies between primary and
 * backup, grants. The first byte picks a decoder. A body that decodes is encoded again; the result must decode, and
 * encode to the same bytes. */
#include "fuzz.h"

#include "base/mem.h"
#include "coordinator/membership/messages.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/recovery/attempt.h"
#include "link/bodies.h"
#include "replication/control/messages.h"
#include "rows_fuzz.h"

enum { OUT_BYTES = 256 * 1024, RAFT_CONTROL_BYTES_MAX = 160 };

typedef bool (*recode_fn)(const uint8_t *in, size_t count, struct leat_msg_writer *writer);

/* ---- between primary and backup ---- */

/* Sections lie inside; an address that is taken names memory that can exist. */
static void grant_check(const struct leat_rmem_grant *grant)
{
    struct leat_rmem_address address;
    for (unsigned kind = 0; kind < LEAT_RMEM_KINDS; kind++) {
        size_t bytes = 0;
        const uint8_t *body = leat_rmem_grant_find(grant, (enum leat_rmem_kind)kind, &bytes);
        if (!body) continue;
        LEAT_ASSERT(body >= grant->data + 2 && body + bytes <= grant->data + grant->bytes);
    }
    if (leat_rmem_grant_address(grant, &address) != LEAT_OK) return;
    LEAT_ASSERT(address.number != 0 && address.limit_bytes > 0);
    LEAT_ASSERT_CMP(address.limit_bytes, <=, (uint64_t)LEAT_RMEM_STEPS_MAX * LEAT_ARENA_STEP_BYTES);
    struct leat_rmem_grant again = {0};
    LEAT_ASSERT(leat_rmem_grant_add(&again, LEAT_RMEM_NONE, &address, sizeof address));
    LEAT_ASSERT(leat_rmem_grant_address(&again, &address) == LEAT_OK);
}

static bool recode_attached(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct rep_attached attached;
    uint8_t out[REP_ATTACHED_BYTES_MAX];
    if (rep_attached_decode(in, count, &attached) != LEAT_OK) return false;
    grant_check(&attached.grant);
    leat_msg_write_raw(writer, out, rep_attached_encode(&attached, out));
    return true;
}

static bool recode_pairs(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    static struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    static uint8_t out[LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8];
    uint32_t rows;
    if (rep_pairs_decode(in, count, pairs, &rows) != LEAT_OK) return false;
    leat_msg_write_raw(writer, out, rep_pairs_encode(pairs, rows, out, sizeof out));
    return true;
}

/* ---- raft ---- */

/* Two bytes of length, the control body, the payload. */
static bool recode_raft(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_frame frame = {.kind = CO_KIND_RAFT};
    struct raft_message message;
    uint8_t control[2 + RAFT_CONTROL_BYTES_MAX];
    uint64_t to;
    if (count < 2) return false;
    frame.control_bytes = leat_get_le16(in);
    if (frame.control_bytes > count - 2) return false;
    frame.control = in + 2;
    frame.payload = frame.control + frame.control_bytes;
    frame.payload_bytes = (uint32_t)(count - 2 - frame.control_bytes);
    if (co_message_decode(&frame, &message, &to) != LEAT_OK) return false;
    uint64_t from = message.server_id;
    message.server_id = to;
    struct leat_msg_writer head;
    leat_msg_writer_init(&head, control + 2, RAFT_CONTROL_BYTES_MAX);
    co_message_encode(&head, from, &message);
    leat_put_le16(control, (uint16_t)head.used);
    leat_msg_write_raw(writer, control, 2 + head.used);
    size_t bytes = co_message_payload_bytes(&message);
    LEAT_ASSERT(bytes <= frame.payload_bytes);
    uint8_t *payload = malloc(bytes + 1);
    if (bytes) co_message_payload(&message, payload);
    leat_msg_write_raw(writer, payload, bytes);
    free(payload);
    leat_raft_message_drop(&message);
    return true;
}

static bool recode_rows(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_replica_row *rows;
    size_t row_count;
    (void)writer; /* who encodes them is a node that has a broker */
    if (co_rows_decode(in, count, &rows, &row_count) != LEAT_OK) return false;
    LEAT_ASSERT(row_count <= count);
    for (size_t i = 0; i < row_count; i++)
        LEAT_ASSERT(rows[i].kind >= LEAT_REPLICA_MARK && rows[i].kind <= LEAT_REPLICA_LOST);
    leat_mem_free(rows);
    return false;
}

/* A grant without the message around it: nearly all inputs are one. */
static bool recode_grant(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_rmem_grant grant = {.bytes = (uint32_t)count};
    if (count > sizeof grant.data) return false;
    (void)writer;
    if (count) memcpy(grant.data, in, count);
    grant_check(&grant);
    return false;
}

static const recode_fn by_hand[] = {recode_attached, recode_pairs, recode_raft, recode_rows,
                                    recode_grant};
static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "replication/control/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "link/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/membership/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/recovery/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/metadata/bodies.def"
#include "tests/rows_list.h"
};
enum { BY_HAND = sizeof by_hand / sizeof by_hand[0], ROWS = sizeof rows / sizeof rows[0] };

static bool recode(unsigned number, const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    number %= BY_HAND + ROWS;
    if (number < BY_HAND) return by_hand[number](in, count, writer);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    return rows_copy(&reader, rows[number - BY_HAND](), writer, 0) && leat_msg_read_done(&reader);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return rows_mutate(rows, ROWS, BY_HAND, data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    static uint8_t first[OUT_BYTES], second[OUT_BYTES];
    struct leat_msg_writer one, two;
    leat_msg_writer_init(&one, first, sizeof first);
    if (!recode(data[0], data + 1, size - 1, &one) || one.overflow) return 0;
    leat_msg_writer_init(&two, second, sizeof second);
    LEAT_ASSERT(recode(data[0], first, one.used, &two));
    LEAT_ASSERT(one.used == two.used && memcmp(first, second, one.used) == 0);
    return 0;
}
