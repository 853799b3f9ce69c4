/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of what a node keeps in files: raft_fuzz.c, catalogue_fuzz.c, groups_fuzz.c. */
#include "coordinator/raft/private.h"
#include "corpus.h"

#include <stdio.h>

#include "base/mem.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/state.h"
#include "groups/internal.h"
#include "store/private.h"
#include "tests/coordinator/fake.h"
#include "wire/batch.h"
#include "wire/entry.h"

/* ---- a voter's files, as a coordinator leaves them ---- */

enum { FILE_VOTE, FILE_LOG, FILE_SNAPSHOT, FILE_VOTER, FILE_FORM, VOTE_BYTES = 72, NUMBERS = 16 };

static void file_add(struct corpus_pieces *pieces, struct fake_world *world, const char *path,
                     uint8_t kind, unsigned number)
{
    const struct fake_inode *file = fake_world_file(world, path);
    if (!file) return;
    size_t bytes = file->bytes;
    while (bytes > 0 && file->now[bytes - 1] == 0)
        bytes--;
    corpus_piece(pieces, (uint8_t)(kind | number << 3), file->now, LEAT_ALIGN_UP(bytes, (size_t)8));
}

static void files_write(struct fake_world *world, const char *name)
{
    static struct corpus_pieces pieces;
    char path[64];
    pieces.used = 0;
    const struct fake_inode *vote = fake_world_file(world, "raft/vote");
    LEAT_ASSERT(vote && vote->bytes == 2 * LEAT_RAFT_VOTE_BLOCK_BYTES);
    corpus_piece(&pieces, FILE_VOTE, vote->now, VOTE_BYTES);
    corpus_piece(&pieces, FILE_VOTE | 1 << 3, vote->now + LEAT_RAFT_VOTE_BLOCK_BYTES, VOTE_BYTES);
    for (unsigned i = 0; i < NUMBERS; i++) {
        leat_raft_path(path, "log", i);
        file_add(&pieces, world, path, FILE_LOG, i);
        leat_raft_path(path, "snapshot", i);
        file_add(&pieces, world, path, FILE_SNAPSHOT, i);
    }
    file_add(&pieces, world, "raft/voter", FILE_VOTER, 0);
    corpus_file("raft", name, pieces.bytes, pieces.used);
}

static void on_stream(void *owner, struct leat_stream_desc *desc)
{
    (void)owner;
    (void)desc;
}
static void on_deleted(void *owner, uint32_t stream_id)
{
    (void)owner;
    (void)stream_id;
}
static void on_ready(void *owner)
{
    (void)owner;
}
static void on_done(struct leat_coordinate *request)
{
    if (request->rc == LEAT_OK) leat_stream_desc_unref(request->desc);
}

/* snapshot_bytes: a snapshot is taken after so many; 0: none. */
static void voter_live(const char *name, uint64_t snapshot_bytes, unsigned streams)
{
    static struct fake_world world;
    struct leat_coordinator_options options = {.cores = 2,
                                               .raft_segment_bytes = 4096,
                                               .snapshot_bytes_min = snapshot_bytes,
                                               .on_stream = on_stream,
                                               .on_stream_deleted = on_deleted,
                                               .on_ready = on_ready};
    struct leat_coordinator *coordinator;
    fake_world_init(&world, 1);
    leat_err rc = leat_coordinator_open(&world.env, &options, &coordinator, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    world.actor = coordinator;
    world.ops_of_actor = &leat_coordinator_actor;
    fake_world_elapse(&world, 1000000);
    for (unsigned i = 0; i < streams; i++) {
        struct leat_coordinate request = {.kind = LEAT_COORDINATE_STREAM_CREATE,
                                          .on_done = on_done};
        (void)snprintf(request.name, sizeof request.name, "rooms%u", i);
        leat_coordinate(&world.post, &request);
        fake_world_elapse(&world, 1000000);
        LEAT_ASSERT(request.rc == LEAT_OK);
    }
    leat_coordinator_close(&coordinator);
    files_write(&world, name);
    fake_world_fini(&world);
}

/* raft/voter and raft/form of one that is prepared: their headers, of which the target fills in the rest. */
static void prepared_write(void)
{
    static struct corpus_pieces pieces;
    uint8_t bytes[256] = {0};
    struct leat_msg_writer w;
    leat_put_le32(bytes, 0x4d46524c);
    leat_put_le32(bytes + 12, 1);
    leat_msg_writer_init(&w, bytes + 16, sizeof bytes - 16);
    leat_msg_write_array(&w, 2);
    leat_msg_write_u64(&w, 7);
    leat_msg_write_bin(&w, "0123456789abcdef", 16);
    corpus_piece(&pieces, FILE_VOTER, bytes, 16 + w.used);
    leat_msg_writer_init(&w, bytes + 16, sizeof bytes - 16);
    leat_msg_write_array(&w, 2);
    leat_msg_write_bin(&w, "0123456789abcdef", 16);
    leat_msg_write_array(&w, 2);
    for (unsigned i = 0; i < 2; i++) {
        leat_msg_write_array(&w, 2);
        leat_msg_write_u64(&w, 7 + i);
        leat_msg_write_string(&w, i ? "n1:7701" : "n0:7701", 7);
    }
    corpus_piece(&pieces, FILE_FORM, bytes, 16 + w.used);
    corpus_file("raft", "prepared", pieces.bytes, pieces.used);
}

void corpus_raft(void)
{
    prepared_write();
    voter_live("formed", 0, 0);
    voter_live("streams", 0, 3);
    voter_live("snapshot", 600, 4);
}

/* ---- the store ---- */

enum { PIECE_ROW, PIECE_FILE, PIECE_MEMORY, CAPACITY = LEAT_SEGMENT_BYTES_MIN };
static const uint8_t cluster[16] = "the cluster 0001";

static void entry_put(struct leat_entry_writer *writer, enum leat_entry_type type,
                      const void *payload, uint32_t bytes)
{
    (void)leat_entry_append(writer, type, 0, 0, payload, bytes, leat_crc32c(0, payload, bytes));
}

/* Segment `number`: its bytes into a piece, its row into another. */
static void segment_add(struct corpus_pieces *pieces, uint32_t number,
                        enum leat_segment_state state, uint8_t flags)
{
    static _Alignas(8) uint8_t bytes[2 + CAPACITY + 6];
    uint8_t *at = bytes + 8;
    struct leat_entry_writer writer;
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .stream = 1,
                                         .epoch = 4,
                                         .segment = number,
                                         .capacity = CAPACITY,
                                         .durability = LEAT_DURABILITY_DISK,
                                         .streamlets = 1,
                                         .logs = 1,
                                         .copies = 1,
                                         .segment_bytes_max = LEAT_SEGMENT_BYTES_MAX};
    memcpy(header.cluster_id, cluster, sizeof cluster);
    leat_entry_writer_init(&writer, at, CAPACITY - 64);
    entry_put(&writer, LEAT_ENTRY_SEGMENT, &header, sizeof header);
    struct leat_start start = {.base_offset = 5};
    entry_put(&writer, LEAT_ENTRY_START, &start, sizeof start);
    (void)leat_entry_seal(&writer, 0);
    struct leat_trim trim = {.first_segment = 1, .first_offset = 3};
    entry_put(&writer, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    struct leat_close end = {.next_offset = 5, .bytes = writer.used};
    if (state == LEAT_SEGMENT_CLOSED) entry_put(&writer, LEAT_ENTRY_CLOSE, &end, sizeof end);
    struct leat_prefix_id prefix_id = leat_entry_seal(&writer, writer.sealed_bytes);
    uint8_t *piece = at - 2;
    leat_put_le16(piece, (uint16_t)number);
    corpus_piece(pieces, flags & LEAT_ROW_IN_POOL ? PIECE_MEMORY : PIECE_FILE, piece,
                 2 + (size_t)writer.used);
    struct {
        uint16_t number;
        struct leat_row row;
    } __attribute__((packed))
    row = {.number = (uint16_t)number,
           .row = {.state = (uint8_t)state,
                   .durability =
                       flags & LEAT_ROW_IN_POOL ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK,
                   .flags = flags,
                   .stream = 1,
                   .epoch = 4,
                   .segment = number,
                   .capacity = CAPACITY,
                   .slot_unit = number,
                   .prefix_id_bytes = state == LEAT_SEGMENT_RESERVED ? 0 : prefix_id.bytes,
                   .prefix_id_crc = state == LEAT_SEGMENT_RESERVED ? 0 : prefix_id.crc,
                   .base_offset = 5,
                   .next_offset = 5,
                   .pool_at = (uint64_t)number * LEAT_SLOT_UNIT_BYTES,
                   .version = 1}};
    corpus_piece(pieces, PIECE_ROW, &row, sizeof row);
}

static struct corpus_pieces *catalogue_begin(void)
{
    static struct corpus_pieces pieces;
    struct leat_catalogue_header header = {.magic = LEAT_CATALOGUE_MAGIC,
                                           .version = LEAT_CATALOGUE_VERSION,
                                           .row_bytes = LEAT_ROW_BYTES,
                                           .row_count = LEAT_STORE_ROWS_PER_CHUNK};
    memcpy(header.cluster_id, cluster, sizeof cluster);
    memcpy(pieces.bytes, &header, sizeof header);
    leat_put_le16(pieces.bytes + sizeof header, LEAT_STORE_ROWS_PER_CHUNK);
    pieces.used = sizeof header + 2;
    return &pieces;
}

void corpus_catalogue(void)
{
    struct corpus_pieces *pieces = catalogue_begin();
    corpus_file("catalogue", "empty", pieces->bytes, pieces->used);
    segment_add(pieces, 1, LEAT_SEGMENT_OPEN, 0);
    corpus_file("catalogue", "open", pieces->bytes, pieces->used);
    segment_add(pieces, 2, LEAT_SEGMENT_HIBERNATED, 0);
    segment_add(pieces, 3, LEAT_SEGMENT_CLOSED, LEAT_ROW_FLUSHED);
    segment_add(pieces, 4, LEAT_SEGMENT_RESERVED, 0);
    corpus_file("catalogue", "states", pieces->bytes, pieces->used);
    pieces = catalogue_begin();
    segment_add(pieces, 1, LEAT_SEGMENT_OPEN, LEAT_ROW_IN_POOL);
    segment_add(pieces, 2, LEAT_SEGMENT_CLOSED, LEAT_ROW_IN_POOL);
    segment_add(pieces, 3, LEAT_SEGMENT_OPEN, LEAT_ROW_IN_POOL | LEAT_ROW_REPLICA);
    corpus_file("catalogue", "memory", pieces->bytes, pieces->used);
    pieces = catalogue_begin();
    segment_add(pieces, 1, LEAT_SEGMENT_OPEN, LEAT_ROW_REPLICA);
    segment_add(pieces, 2, LEAT_SEGMENT_CLOSED, LEAT_ROW_REPLICA | LEAT_ROW_FLUSHED);
    segment_add(pieces, 3, LEAT_SEGMENT_HIBERNATED, LEAT_ROW_REPLICA | LEAT_ROW_TORN);
    corpus_file("catalogue", "replicas", pieces->bytes, pieces->used);
}

/* ---- consumer groups ---- */

enum { PIECE_RECORD, PIECE_TABLE };
static uint8_t encoded[4096];

static struct leat_group *native_make(enum leat_groups_mode mode)
{
    struct leat_group *group = leat_group_create("readers", mode);
    struct leat_group_member *member = leat_group_member_add(group);
    (void)snprintf(member->id, sizeof member->id, "m-1");
    member->session_ms = 10000;
    member->streams[0] = 1;
    member->stream_count = 1;
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){1, 0, 0});
    leat_err rc = leat_group_commit(group, log, mode == LEAT_GROUPS_PARALLEL ? 0 : -1, 70, true);
    if (rc == LEAT_OK && mode == LEAT_GROUPS_PARALLEL)
        rc = leat_group_commit(group, log, 2, 270, true);
    LEAT_ASSERT(rc == LEAT_OK);
    group->generation = 3;
    leat_group_assign(group);
    return group;
}

static struct leat_group *group_make(void)
{
    struct leat_classic_protocol protocol = {{"range", 5}, {"metadata", 8}};
    struct leat_classic_call call = {.client = {"probe", 5},
                                     .host = {"203.0.113.7", 11},
                                     .protocols = &protocol,
                                     .protocol_count = 1};
    struct leat_group *group = leat_group_create("g", LEAT_GROUPS_CLASSIC);
    group->classic = leat_classic_create();
    struct leat_classic_member *member = leat_classic_member_add(group->classic);
    (void)snprintf(member->id, sizeof member->id, "probe-1");
    (void)snprintf(group->classic->leader, sizeof group->classic->leader, "probe-1");
    (void)snprintf(group->classic->protocol_type, sizeof group->classic->protocol_type, "consumer");
    (void)snprintf(group->classic->protocol, sizeof group->classic->protocol, "range");
    leat_err rc = leat_classic_facts_set(group->classic, member, &call);
    if (rc == LEAT_OK)
        rc =
            leat_classic_assignment_set(group->classic, member, (struct leat_msg_string){"all", 3});
    struct leat_group_log *log = leat_group_log_add(group, (struct leat_log_ref){1, 0, 0});
    if (rc == LEAT_OK) rc = leat_group_commit(group, log, -1, 70, true);
    if (rc == LEAT_OK) rc = leat_group_offset_note(log, 5, "note", 4);
    LEAT_ASSERT(rc == LEAT_OK);
    group->classic->phase = LEAT_CLASSIC_STABLE;
    group->generation = 3;
    return group;
}

static struct leat_msg_writer record_begin(enum record_kind kind, uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, encoded, sizeof encoded);
    leat_msg_write_array(&w, 1 + fields);
    leat_msg_write_u64(&w, (uint64_t)kind);
    return w;
}

static void record_end(struct corpus_pieces *pieces, const struct leat_msg_writer *w)
{
    LEAT_ASSERT(!w->overflow);
    corpus_piece(pieces, PIECE_RECORD, w->bytes, w->used);
}

static void commit_add(struct corpus_pieces *pieces, const char *group, int64_t segment_group,
                       bool noted)
{
    struct leat_msg_writer w = record_begin(RECORD_COMMIT, 2);
    leat_msg_write_string(&w, group, strlen(group));
    leat_msg_write_array(&w, 1);
    leat_msg_write_array(&w, noted ? 7 : 5);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_i64(&w, segment_group);
    leat_msg_write_u64(&w, 700);
    if (noted) leat_msg_write_u64(&w, 5);
    if (noted) leat_msg_write_bin(&w, "note", 4);
    record_end(pieces, &w);
}

static void groups_write(const char *name, const struct leat_group *group, int64_t segment_group)
{
    static struct corpus_pieces pieces;
    struct leat_msg_writer w;
    pieces.used = 0;
    leat_msg_writer_init(&w, encoded, sizeof encoded);
    leat_msg_write_array(&w, 1);
    leat_group_encode(&w, group, true);
    corpus_piece(&pieces, PIECE_TABLE, w.bytes, w.used);
    commit_add(&pieces, group->name, segment_group, group->classic != NULL);
    w = record_begin(RECORD_NOTHING, 0);
    record_end(&pieces, &w);
    w = record_begin(RECORD_NATIVE_GROUP, 1);
    leat_group_encode(&w, group, true);
    record_end(&pieces, &w);
    if (group->classic) {
        w = record_begin(RECORD_CLASSIC_GROUP, 3);
        leat_msg_write_string(&w, group->name, strlen(group->name));
        leat_msg_write_u64(&w, group->generation + 1);
        leat_classic_encode(&w, group->classic, true);
        record_end(&pieces, &w);
    }
    corpus_file("groups", name, pieces.bytes, pieces.used);
    w = record_begin(RECORD_DELETE, 1);
    leat_msg_write_string(&w, group->name, strlen(group->name));
    record_end(&pieces, &w);
    char deleted[64];
    (void)snprintf(deleted, sizeof deleted, "%s_deleted", name);
    corpus_file("groups", deleted, pieces.bytes, pieces.used);
}

void corpus_groups(void)
{
    struct leat_group *group = native_make(LEAT_GROUPS_ORDERED);
    groups_write("ordered", group, -1);
    leat_group_destroy(&group);
    group = native_make(LEAT_GROUPS_PARALLEL);
    groups_write("parallel", group, 4);
    leat_group_destroy(&group);
    group = group_make();
    groups_write("group", group, -1);
    leat_group_destroy(&group);
}
