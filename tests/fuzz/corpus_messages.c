/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of bodies between nodes: node_fuzz.c, hello_fuzz.c. */
#include "corpus.h"

#include "coordinator/membership/messages.h"
#include "link/link.h"
#include "replication/control/messages.h"
#include "replication/transport/data.h"
#include "store/store.h"
#include "tests/coordinator/entries.h"
#include "wire/message.h"

static uint8_t body[4096];

/* Behind its decoder's number, as node_fuzz.c numbers them. */
static void node_write(uint8_t number, const char *name, const void *bytes, size_t count)
{
    uint8_t all[1 + sizeof body] = {number};
    memcpy(all + 1, bytes, count);
    corpus_file("node", name, all, 1 + count);
}

static void replication_write(void)
{
    struct rep_attached attached = {.load_bytes = 70000};
    struct leat_rmem_address address = {{1}, LEAT_ARENA_STEP_BYTES, 3, 0};
    LEAT_ASSERT(leat_rmem_grant_add(&attached.grant, LEAT_RMEM_NONE, &address, sizeof address) &&
                leat_rmem_grant_add(&attached.grant, LEAT_RMEM_TCP, "", 0) &&
                leat_rmem_grant_add(&attached.grant, LEAT_RMEM_SHM, "a boot, a path", 14));
    node_write(0, "attached", body, rep_attached_encode(&attached, body));
    node_write(4, "grant", attached.grant.data, attached.grant.bytes);
    struct rep_pair pairs[] = {{7, REP_SETTLE_KEEP + REP_SETTLE_WORDS * 5, 301}, {8, 70000, 0}};
    node_write(1, "pairs", body, rep_pairs_encode(pairs, 2, body, sizeof body));
}

static void raft_write(const char *name, const struct raft_message *message)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, body + 2, 160);
    co_message_encode(&w, 1, message);
    leat_put_le16(body, (uint16_t)w.used);
    co_message_payload(message, body + 2 + w.used);
    node_write(2, name, body, 2 + w.used + co_message_payload_bytes(message));
}

static void raft_messages_write(void)
{
    uint8_t data[] = "entry";
    struct raft_entry entries[] = {
        {.term = 2, .type = RAFT_COMMAND, .buf = {data, sizeof data}},
        {.term = 2, .type = RAFT_BARRIER, .buf = {data, 0}},
    };
    struct raft_message message = {.type = RAFT_APPEND_ENTRIES, .server_id = 2};
    message.append_entries = (struct raft_append_entries){.term = 2,
                                                          .prev_log_index = 7,
                                                          .prev_log_term = 1,
                                                          .leader_commit = 6,
                                                          .entries = entries,
                                                          .n_entries = 2};
    raft_write("append", &message);
    message = (struct raft_message){.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 2};
    message.append_entries_result.term = 2;
    raft_write("appended", &message);
    message = (struct raft_message){.type = RAFT_REQUEST_VOTE, .server_id = 2};
    message.request_vote.term = 3;
    message.request_vote.pre_vote = true;
    raft_write("vote", &message);
    message = (struct raft_message){.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 2};
    message.request_vote_result.term = 3;
    raft_write("voted", &message);
    message = (struct raft_message){.type = RAFT_TIMEOUT_NOW, .server_id = 2};
    message.timeout_now.term = 3;
    raft_write("timeout_now", &message);
}

static void rows_write(void)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, body, sizeof body);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 19);
    for (uint64_t i = 0; i < 13; i++)
        leat_msg_write_u64(&w, i == 4 ? LEAT_REPLICA_MARK : i);
    leat_msg_write_i64(&w, -1);
    for (unsigned i = 0; i < 5; i++)
        leat_msg_write_bool(&w, i % 2);
    node_write(3, "rows", body, w.used);
}

void corpus_node(void)
{
    replication_write();
    raft_messages_write();
    rows_write();
}

/* ---- the node port ---- */

enum { OPENS = 1, HAS_KEY = 2, SPOILT = 1 };

/* A frame of the peer, as hello_fuzz.c reads it. */
static void frame_say(struct corpus_pieces *pieces, uint8_t piece_kind, unsigned kind,
                      uint8_t flags, const void *control, size_t control_bytes, const char *payload)
{
    uint8_t bytes[1024];
    size_t payload_bytes = strlen(payload);
    LEAT_ASSERT(5 + control_bytes + payload_bytes <= sizeof bytes);
    leat_put_le16(bytes, (uint16_t)kind);
    bytes[2] = flags;
    leat_put_le16(bytes + 3, (uint16_t)control_bytes);
    memcpy(bytes + 5, control, control_bytes);
    memcpy(bytes + 5 + control_bytes, payload, payload_bytes);
    corpus_piece(pieces, piece_kind, bytes, 5 + control_bytes + payload_bytes);
}

static void identity_write(struct leat_msg_writer *w)
{
    static const uint8_t cluster[16] = {7};
    leat_msg_write_bin(w, cluster, sizeof cluster);
    leat_msg_write_string(w, "right", 5);
    leat_msg_write_u64(w, 12);
    leat_msg_write_u64(w, 2);
}

static void hello_say(struct corpus_pieces *pieces, enum leat_link_purpose purpose, int64_t to)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, body, sizeof body);
    leat_msg_write_array(&w, 8);
    leat_msg_write_u64(&w, LEAT_NODE_VERSION_MIN);
    leat_msg_write_u64(&w, LEAT_NODE_VERSION_MAX);
    identity_write(&w);
    leat_msg_write_u64(&w, (uint64_t)purpose);
    leat_msg_write_i64(&w, to);
    frame_say(pieces, 0, LEAT_NODE_KIND_HELLO, 0, body, w.used, "");
}

static struct corpus_pieces *pieces_begin(uint8_t who)
{
    static struct corpus_pieces pieces;
    pieces.bytes[0] = who;
    pieces.used = 1;
    return &pieces;
}

static void hello_file(const char *name, const struct corpus_pieces *pieces)
{
    corpus_file("hello", name, pieces->bytes, pieces->used);
}

static void writes_say(struct corpus_pieces *pieces)
{
    struct leat_data_write write = {
        .address = {{1}, LEAT_ARENA_STEP_BYTES, 1, 0}, .offset = 64, .number = 1, .target = 5};
    frame_say(pieces, 0, LEAT_DATA_ATTACH, 0, &write.address, sizeof write.address, "");
    frame_say(pieces, 0, LEAT_DATA_WRITE, 0, &write, sizeof write, "put in place");
    write.offset = 4090;
    write.number = 2;
    frame_say(pieces, 0, LEAT_DATA_REQUEST, 0, &write, sizeof write, "past its end");
}

void corpus_hello(void)
{
    struct corpus_pieces *pieces = pieces_begin(0);
    uint8_t nonce[LEAT_FRAME_HEADER_BYTES + 64];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, nonce + LEAT_FRAME_HEADER_BYTES, 64);
    leat_msg_write_array(&w, 1);
    leat_msg_write_bin(&w, "a nonce of thirty-two bytes, it is", LEAT_NONCE_BYTES);
    leat_frame_encode(nonce, (enum leat_kind)LEAT_NODE_KIND_NONCE, 2, 0, 1, w.used, 0);
    corpus_piece(pieces, 0, nonce, LEAT_FRAME_HEADER_BYTES + w.used);
    corpus_piece(pieces, 0, nonce, LEAT_FRAME_HEADER_BYTES);
    hello_file("stranger", pieces);
    pieces = pieces_begin(OPENS);
    leat_frame_encode(nonce, (enum leat_kind)LEAT_NODE_KIND_NONCE, 2, LEAT_FRAME_ANSWER, 1, w.used,
                      0);
    corpus_piece(pieces, 0, nonce, LEAT_FRAME_HEADER_BYTES + w.used);
    hello_file("stranger_answers", pieces);

    pieces = pieces_begin(HAS_KEY);
    hello_say(pieces, LEAT_LINK_SERVE, 0);
    frame_say(pieces, 0, LEAT_NODE_KIND_BROKER, 0, "\x90", 1, "payload");
    frame_say(pieces, 0, LEAT_NODE_KIND_PING, 0, "\x90", 1, "");
    frame_say(pieces, SPOILT, LEAT_NODE_KIND_BROKER, 0, "\x90", 1, "");
    hello_file("serve", pieces);
    pieces = pieces_begin(HAS_KEY);
    hello_say(pieces, LEAT_LINK_COORDINATE, 1);
    frame_say(pieces, 0, LEAT_NODE_KIND_COORDINATOR, 0, "\x90", 1, "");
    hello_file("moves", pieces);
    pieces = pieces_begin(HAS_KEY);
    hello_say(pieces, LEAT_LINK_DATA, 0);
    writes_say(pieces);
    hello_file("data", pieces);

    pieces = pieces_begin(OPENS | HAS_KEY);
    leat_msg_writer_init(&w, body, sizeof body);
    leat_msg_write_array(&w, 5);
    leat_msg_write_u64(&w, LEAT_NODE_VERSION_MAX);
    identity_write(&w);
    frame_say(pieces, 0, LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER, body, w.used, "");
    frame_say(pieces, 0, LEAT_NODE_KIND_BROKER, 0, "\x90", 1, "");
    hello_file("answers", pieces);
    pieces = pieces_begin(OPENS | HAS_KEY);
    leat_msg_writer_init(&w, body, sizeof body);
    leat_msg_error_encode(&w, LEAT_E_WRONG_CLUSTER, "another cluster");
    frame_say(pieces, 0, LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, body, w.used,
              "");
    hello_file("refuses", pieces);
}

/* ---- between coordinators ---- */

enum { AS_VOTER = 1, ASKS = 16, LATER = 32 };
static struct corpus_pieces talk;

static struct leat_msg_writer body_begin(uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, body, sizeof body);
    leat_msg_write_array(&w, fields);
    return w;
}

static void numbers(struct leat_msg_writer *w, uint32_t count, const uint64_t *values)
{
    for (uint32_t i = 0; i < count; i++)
        leat_msg_write_u64(w, values[i]);
}
#define NUMBERS(w, ...)                                                                            \
    numbers(w, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

/* One message of peer_fuzz.c's. */
static void talk_add(enum co_kind kind, uint8_t how, const struct leat_msg_writer *control,
                     const void *payload, size_t payload_bytes)
{
    uint8_t bytes[4096];
    LEAT_ASSERT(!control->overflow && 2 + control->used + payload_bytes <= sizeof bytes);
    leat_put_le16(bytes, (uint16_t)control->used);
    memcpy(bytes + 2, control->bytes, control->used);
    if (payload_bytes) memcpy(bytes + 2 + control->used, payload, payload_bytes);
    corpus_piece(&talk, (uint8_t)(how | (unsigned)(kind - CO_KIND_STATE)), bytes,
                 2 + control->used + payload_bytes);
}

static void talk_begin(uint8_t who)
{
    talk.bytes[0] = who;
    talk.used = 1;
}

static void talk_file(const char *name)
{
    corpus_file("peer", name, talk.bytes, talk.used);
}

static void raft_say(const struct raft_message *message)
{
    uint8_t payload[512];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, body, sizeof body);
    co_message_encode(&w, 1, message);
    co_message_payload(message, payload);
    talk_add(CO_KIND_RAFT, LATER, &w, payload, co_message_payload_bytes(message));
}

/* After this one nothing is listened to: it is of no cluster. */
static void state_add(void)
{
    static const uint8_t none[16];
    struct leat_msg_writer w = body_begin(10);
    leat_msg_write_bin(&w, none, sizeof none);
    leat_msg_write_string(&w, "liar", 4);
    NUMBERS(&w, 0, LEAT_VOTER_EMPTY, 4711, 3, 1, 9);
    leat_msg_write_string(&w, "liar:7701", 9);
    leat_msg_write_array(&w, 2);
    leat_msg_write_string(&w, "n1", 2);
    leat_msg_write_string(&w, "liar", 4);
    talk_add(CO_KIND_STATE, 0, &w, NULL, 0);
}

static void words_add(void)
{
    struct leat_msg_writer w = body_begin(7);
    leat_msg_write_bool(&w, true);
    NUMBERS(&w, 2, 100);
    leat_msg_write_bool(&w, true);
    NUMBERS(&w, 9, 1);
    leat_msg_write_bool(&w, false);
    talk_add(CO_KIND_PING, 0, &w, NULL, 0);
    talk_add(CO_KIND_PONG, 0, &w, NULL, 0);
    w = body_begin(4);
    NUMBERS(&w, 2, 1, 9, 2);
    talk_add(CO_KIND_LOST, 0, &w, NULL, 0);
}

static void changes_add(void)
{
    struct leat_msg_writer w = body_begin(2);
    leat_msg_write_bin(&w, "0123456789abcdef", 16);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 2);
    leat_msg_write_u64(&w, 7);
    leat_msg_write_string(&w, "n0:7701", 7);
    talk_add(CO_KIND_FORM, ASKS, &w, NULL, 0);
    w = body_begin(2);
    leat_msg_write_bin(&w, "0123456789abcdef", 16);
    leat_msg_write_u64(&w, 7);
    talk_add(CO_KIND_JOIN, ASKS, &w, NULL, 0);
    w = body_begin(2);
    leat_msg_write_bool(&w, false);
    leat_msg_write_string(&w, "n3", 2);
    talk_add(CO_KIND_ADMIN, ASKS, &w, NULL, 0);
    w = body_begin(1);
    leat_msg_write_u64(&w, 1);
    talk_add(CO_KIND_FEED, ASKS | LATER, &w, NULL, 0);
}

/* A node that comes up under its own name. */
static void submit_add(const char *name, size_t bytes)
{
    uint8_t record[512], command[256];
    struct leat_msg_writer w, outer, none = body_begin(0);
    leat_msg_writer_init(&w, command, sizeof command);
    leat_msg_write_array(&w, 14);
    NUMBERS(&w, LEAT_COMMAND_VERSION, LEAT_COMMAND_NODE_UP);
    leat_msg_write_string(&w, name, bytes);
    leat_msg_write_string(&w, "liar:7700", 9);
    leat_msg_write_u64(&w, 1);
    node_up_end(&w);
    leat_msg_writer_init(&outer, record + CO_RECORD_HEADER_BYTES, sizeof record - 4);
    leat_msg_write_array(&outer, 5);
    NUMBERS(&outer, LEAT_COMMAND_VERSION, LEAT_COMMAND_REQUEST, 666, 1);
    leat_msg_write_bin(&outer, w.bytes, w.used);
    leat_put_le32(record, outer.used);
    talk_add(CO_KIND_SUBMIT, ASKS | LATER, &none, record, CO_RECORD_HEADER_BYTES + outer.used);
}

static void recovery_add(void)
{
    uint8_t payload[256];
    struct leat_msg_writer rows, w = body_begin(2);
    NUMBERS(&w, 99, 1);
    leat_msg_writer_init(&rows, payload, sizeof payload);
    leat_msg_write_array(&rows, 2);
    leat_msg_write_array(&rows, 1);
    leat_msg_write_array(&rows, 2);
    leat_msg_write_string(&rows, "n2", 2);
    leat_msg_write_u64(&rows, 3);
    leat_msg_write_array(&rows, 1);
    leat_msg_write_array(&rows, 2);
    NUMBERS(&rows, 1, 0);
    talk_add(CO_KIND_COLLECT, ASKS | LATER, &w, payload, rows.used);
    w = body_begin(1);
    leat_msg_write_u64(&w, 99);
    leat_msg_writer_init(&rows, payload, sizeof payload);
    leat_msg_write_array(&rows, 1);
    leat_msg_write_array(&rows, 11);
    NUMBERS(&rows, 1, 0, 0, 4, 512, 77, 9, 5, 1, LEAT_DURABILITY_DISK);
    leat_msg_write_array(&rows, 1);
    leat_msg_write_array(&rows, 3);
    leat_msg_write_string(&rows, "n0", 2);
    leat_msg_write_string(&rows, "n0:7701", 7);
    leat_msg_write_u64(&rows, 1);
    talk_add(CO_KIND_PULL, ASKS | LATER, &w, payload, rows.used);
    w = body_begin(5);
    leat_msg_write_u64(&w, 1);
    for (unsigned i = 0; i < 2; i++) {
        leat_msg_write_array(&w, 15);
        NUMBERS(&w, 1, LEAT_RECOVERY_NONE, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    }
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, 4);
    NUMBERS(&w, 1, 0, 0);
    leat_msg_write_string(&w, "why", 3);
    talk_add(CO_KIND_RECOVERY, 0, &w, NULL, 0);
}

static void tables_add(void)
{
    static const uint8_t conf[] = {1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, '1', 0, 1};
    static const uint8_t entry[16] = {0, 0, 0, 0, RAFT_BARRIER};
    struct leat_msg_writer w = body_begin(10);
    NUMBERS(&w, 1, 7, 0, 2, 9, 2, 1);
    leat_msg_write_bin(&w, conf, sizeof conf);
    NUMBERS(&w, 5, 0);
    talk_add(CO_KIND_INSTALL, ASKS, &w, "bytes", 5);
    w = body_begin(2);
    NUMBERS(&w, 1, 1);
    talk_add(CO_KIND_ENTRIES, ASKS, &w, entry, sizeof entry);
    w = body_begin(3);
    NUMBERS(&w, 9, 5, 0);
    talk_add(CO_KIND_SNAPSHOT, ASKS, &w, "bytes", 5);
}

void corpus_peer(void)
{
    uint8_t data[] = "entry";
    struct raft_entry entry = {.term = 1, .type = RAFT_COMMAND, .buf = {data, sizeof data}};
    for (uint8_t to = 0; to < 4; to += 3) {
        talk_begin((uint8_t)(to << 1));
        words_add();
        changes_add();
        submit_add("liar", 4);
        recovery_add();
        tables_add();
        state_add();
        talk_file(to ? "to_node" : "to_voter");
    }
    talk_begin(AS_VOTER);
    struct raft_message message = {.type = RAFT_REQUEST_VOTE, .server_id = 2};
    message.request_vote = (struct raft_request_vote){.term = 1, .candidate_id = 7};
    raft_say(&message);
    message = (struct raft_message){.type = RAFT_APPEND_ENTRIES, .server_id = 2};
    message.append_entries =
        (struct raft_append_entries){.term = 1, .entries = &entry, .n_entries = 1};
    raft_say(&message);
    recovery_add();
    talk_file("voter_leads");
    talk_begin(AS_VOTER | 1 << 1);
    message = (struct raft_message){.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 2};
    raft_say(&message);
    message = (struct raft_message){.type = RAFT_TIMEOUT_NOW, .server_id = 2};
    raft_say(&message);
    message = (struct raft_message){.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 2};
    raft_say(&message);
    words_add();
    changes_add();
    submit_add("n3", 2);
    tables_add();
    state_add();
    talk_file("voter_follows");
}
