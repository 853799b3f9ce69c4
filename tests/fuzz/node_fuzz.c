/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes send one another: raft's messages, rows of a collection, bodies between primary and backup, what an
 * operator is told of the cluster, grants. The first byte picks one. What decodes is encoded again; that must decode,
 * and encode to the same bytes. */
#include "fuzz.h"

#include "base/mem.h"
#include "coordinator/membership/messages.h"
#include "coordinator/recovery/recovery.h"
#include "replication/control/messages.h"
#include "wire/message_cluster.h"

enum { OUT_BYTES = 256 * 1024, RAFT_CONTROL_BYTES_MAX = 160 };

typedef bool (*recode_fn)(const uint8_t *in, size_t count, struct leat_msg_writer *writer);

/* ---- between primary and backup ---- */

#define BODY(name, bytes_max)                                                                      \
    static bool recode_##name(const uint8_t *in, size_t count, struct leat_msg_writer *writer)     \
    {                                                                                              \
        struct rep_##name value;                                                                   \
        uint8_t out[bytes_max];                                                                    \
        if (rep_##name##_decode(in, count, &value) != LEAT_OK) return false;                       \
        leat_msg_write_raw(writer, out, rep_##name##_encode(&value, out));                         \
        return true;                                                                               \
    }
BODY(body, REP_BODY_BYTES_MAX)
BODY(pull, REP_PULL_BYTES_MAX)
BODY(answer, REP_BODY_BYTES_MAX)
#undef BODY

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

/* An answer to AUDIT. */
static bool recode_audit(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    uint32_t rows = leat_msg_read_array(&reader);
    leat_msg_write_array(writer, rows);
    for (uint32_t i = 0; i < rows && !reader.failed; i++) {
        struct rep_row row;
        rep_row_read(&reader, &row);
        if (reader.failed) break;
        uint32_t before = writer->used;
        rep_row_write(writer, &row);
        LEAT_ASSERT(writer->overflow || writer->used - before <= REP_ROW_BYTES_MAX);
    }
    return leat_msg_read_done(&reader);
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

/* ---- what an operator is told ---- */

#define PIECE(name, type)                                                                          \
    static bool recode_##name(const uint8_t *in, size_t count, struct leat_msg_writer *writer)     \
    {                                                                                              \
        struct type value;                                                                         \
        struct leat_msg_reader reader;                                                             \
        leat_msg_reader_init(&reader, in, count);                                                  \
        leat_msg_##name##_read(&reader, &value);                                                   \
        if (!leat_msg_read_done(&reader)) return false;                                            \
        leat_msg_##name##_write(writer, &value);                                                   \
        return true;                                                                               \
    }
PIECE(voter, leat_msg_voter)
PIECE(report_peer, leat_msg_report_peer)
PIECE(recovery_row, leat_msg_recovery_row)
#undef PIECE

#define BODY(name)                                                                                 \
    static bool recode_##name(const uint8_t *in, size_t count, struct leat_msg_writer *writer)     \
    {                                                                                              \
        struct leat_msg_##name value;                                                              \
        if (leat_msg_##name##_decode(in, count, &value) != LEAT_OK) return false;                  \
        leat_msg_##name##_encode(writer, &value);                                                  \
        return true;                                                                               \
    }
BODY(node_change)
BODY(streamlet_move)
#undef BODY

static bool rows_copy(struct leat_msg_reader reader, uint32_t count, struct leat_msg_writer *writer)
{
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (!reader.failed) leat_msg_recovery_row_write(writer, &row);
    }
    return !reader.failed;
}

static bool report_copy(const struct leat_msg_node_report *report, struct leat_msg_writer *writer)
{
    struct leat_msg_reader peers = report->peers;
    leat_msg_node_report_write(writer, report);
    for (uint32_t i = 0; i < report->peer_count && !peers.failed; i++) {
        struct leat_msg_report_peer peer;
        leat_msg_report_peer_read(&peers, &peer);
        if (!peers.failed) leat_msg_report_peer_write(writer, &peer);
    }
    leat_msg_node_report_end_write(writer, report);
    if (peers.failed || !rows_copy(report->troubled, report->troubled_count, writer)) return false;
    struct leat_msg_reader passed = report->passed;
    leat_msg_node_report_passed_write(writer, report);
    for (uint32_t i = 0; i < report->passed_count && !passed.failed; i++) {
        struct leat_msg_passed row;
        leat_msg_passed_read(&passed, &row);
        if (!passed.failed) leat_msg_passed_write(writer, &row);
    }
    return !passed.failed;
}

static bool recode_cluster(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_cluster cluster;
    struct leat_msg_recovery recovery = {0};
    struct leat_msg_reader reader;
    bool whole = true;
    leat_msg_reader_init(&reader, in, count);
    leat_msg_cluster_read(&reader, &cluster);
    if (reader.failed) return false;
    leat_msg_cluster_write(writer, &cluster);
    uint32_t voters = leat_msg_read_array(&reader);
    leat_msg_write_array(writer, voters);
    for (uint32_t i = 0; i < voters && !reader.failed; i++) {
        struct leat_msg_voter voter;
        leat_msg_voter_read(&reader, &voter);
        if (!reader.failed) leat_msg_voter_write(writer, &voter);
    }
    uint32_t nodes = leat_msg_read_array(&reader);
    leat_msg_write_array(writer, nodes);
    for (uint32_t i = 0; i < nodes && !reader.failed && whole; i++) {
        struct leat_msg_cluster_node node;
        leat_msg_cluster_node_read(&reader, &node);
        if (reader.failed) return false;
        leat_msg_cluster_node_write(writer, &node);
        whole = report_copy(&node.report, writer);
    }
    if (cluster.has_recovery) leat_msg_recovery_read(&reader, &recovery);
    leat_msg_recovery_write(writer, &recovery);
    return whole && leat_msg_read_done(&reader) &&
           rows_copy(recovery.rows, recovery.row_count, writer);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const recode_fn recodes[] = {
        recode_body,           recode_pull,        recode_answer,       recode_attached,
        recode_pairs,          recode_audit,       recode_raft,         recode_rows,
        recode_voter,          recode_report_peer, recode_recovery_row, recode_node_change,
        recode_streamlet_move, recode_cluster,     recode_grant,
    };
    if (size == 0) return 0;
    recode_fn recode = recodes[data[0] % (sizeof recodes / sizeof recodes[0])];
    static uint8_t first[OUT_BYTES], second[OUT_BYTES];
    struct leat_msg_writer one, two;
    leat_msg_writer_init(&one, first, sizeof first);
    if (!recode(data + 1, size - 1, &one) || one.overflow) return 0;
    leat_msg_writer_init(&two, second, sizeof second);
    LEAT_ASSERT(recode(first, one.used, &two));
    LEAT_ASSERT(one.used == two.used && memcmp(first, second, one.used) == 0);
    return 0;
}
