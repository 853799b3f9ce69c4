/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a voter: raft/vote, segments of the log, a snapshot, raft/voter, raft/form. Whatever the files
 * hold, the voter is refused by name or goes on: the loaded entries keep raft's order and read the same at the next
 * start, and an entry that is appended then is there at the start after that. The coordinator begins on the same files,
 * and no assertion fails, neither Leat's nor libraft's.
 *
 * The input: pieces (fuzz.h), each a file: bits 0 to 2 of the kind say which file, bits 3 to 6 its number, bit 7 that
 * the checksums stay as they are. Else the checksums are made right, so that the fuzzer gets past them. */
#include "coordinator/raft/private.h"
#include "fuzz.h"

#include <stdio.h>

#include "coordinator/coordinator.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/fake.h"

enum { FILE_VOTE, FILE_LOG, FILE_SNAPSHOT, FILE_VOTER, FILE_FORM, FILE_KINDS };
enum {
    AS_IT_IS = 128,
    SEGMENT_BYTES = 64 * 1024, /* of those that the voter makes */
    VOTE_BYTES = 72,           /* of one block */
    SNAPSHOT_HEADER_BYTES = 56,
    SMALL_FILE_HEADER_BYTES = 16,
};

/* ---- checksums ---- */

static void header_seal(uint8_t *bytes, size_t count, size_t header_bytes)
{
    if (count >= header_bytes) leat_put_le32(bytes + 4, leat_raft_header_crc(bytes, header_bytes));
}

static void frames_seal(uint8_t *at, size_t left)
{
    while (left >= LEAT_RAFT_FRAME_HEADER_BYTES) {
        struct leat_raft_frame_header frame;
        memcpy(&frame, at, sizeof frame);
        size_t padded = LEAT_ALIGN_UP((size_t)frame.bytes, 8);
        if (padded > left - sizeof frame) return;
        frame.crc = leat_raft_frame_crc(&frame, at + sizeof frame);
        memcpy(at, &frame, sizeof frame);
        at += sizeof frame + padded;
        left -= sizeof frame + padded;
    }
}

static void log_seal(uint8_t *bytes, size_t count)
{
    header_seal(bytes, count, LEAT_RAFT_HEADER_BYTES);
    size_t at = LEAT_RAFT_HEADER_BYTES;
    while (at + LEAT_RAFT_ROUND_HEADER_BYTES <= count) {
        struct leat_raft_round_header round;
        memcpy(&round, bytes + at, sizeof round);
        size_t left = count - at - sizeof round;
        if (round.bytes < left) left = round.bytes;
        frames_seal(bytes + at + sizeof round, left);
        header_seal(bytes + at, sizeof round, sizeof round);
        at += sizeof round + left;
        if (left == 0) return;
    }
}

static void snapshot_seal(uint8_t *bytes, size_t count)
{
    if (count < SNAPSHOT_HEADER_BYTES) return;
    leat_put_le32(bytes + 12,
                  leat_crc32c(0, bytes + SNAPSHOT_HEADER_BYTES, count - SNAPSHOT_HEADER_BYTES));
    header_seal(bytes, count, SNAPSHOT_HEADER_BYTES);
}

static void small_file_seal(uint8_t *bytes, size_t count)
{
    if (count < SMALL_FILE_HEADER_BYTES) return;
    leat_put_le32(bytes + 8, (uint32_t)(count - SMALL_FILE_HEADER_BYTES));
    leat_put_le32(bytes + 4, leat_crc32c(0, bytes + 8, count - 8));
}

/* ---- files ---- */

static void file_put(struct fake_world *world, const char *path, uint64_t at, const uint8_t *bytes,
                     size_t count)
{
    struct leat_file *file;
    const struct leat_disk *disk = &world->disk;
    leat_err rc = disk->open(disk->ctx, path, LEAT_OPEN_CREATE, &file, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    if (count)
        rc = leat_raft_io(disk, LEAT_DISK_WRITE, file, at, (void *)(uintptr_t)bytes, count, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    disk->close(disk->ctx, file);
}

static void piece_put(struct fake_world *world, const struct fuzz_piece *piece)
{
    uint64_t number = piece->kind >> 3 & 15;
    bool seal = (piece->kind & AS_IT_IS) == 0;
    char path[64];
    uint8_t *bytes = malloc(piece->count + 1);
    LEAT_ASSERT(bytes);
    if (piece->count) memcpy(bytes, piece->bytes, piece->count);
    switch (piece->kind % 8 % FILE_KINDS) {
    case FILE_VOTE:
        if (seal) header_seal(bytes, piece->count, VOTE_BYTES);
        file_put(world, "raft/vote", (number & 1) * LEAT_RAFT_VOTE_BLOCK_BYTES, bytes,
                 piece->count);
        break;
    case FILE_LOG:
        if (seal) log_seal(bytes, piece->count);
        leat_raft_path(path, "log", number);
        file_put(world, path, 0, bytes, piece->count);
        break;
    case FILE_SNAPSHOT:
        if (seal) snapshot_seal(bytes, piece->count);
        leat_raft_path(path, "snapshot", number);
        file_put(world, path, 0, bytes, piece->count);
        break;
    default:
        if (seal) small_file_seal(bytes, piece->count);
        file_put(world, piece->kind % 8 % FILE_KINDS == FILE_FORM ? "raft/form" : "raft/voter", 0,
                 bytes, piece->count);
    }
    free(bytes);
}

static void world_make(struct fake_world *world, const uint8_t *data, size_t size)
{
    struct fuzz_pieces pieces = {data, data + size};
    struct fuzz_piece piece;
    fake_world_init(world, 1);
    while (fuzz_piece_next(&pieces, &piece))
        piece_put(world, &piece);
}

/* ---- the log ---- */

static void log_check(const struct leat_raft_log *log)
{
    uint64_t term = 0, last = leat_raft_log_last_index(log);
    LEAT_ASSERT_CMP(log->start_index, >=, 1);
    LEAT_ASSERT_CMP(log->start_index, <=, log->snapshot.index + 1);
    LEAT_ASSERT_CMP(last, >=, log->snapshot.index);
    LEAT_ASSERT_CMP(last, >=, log->written_index);
    for (size_t i = 0; i < log->entry_count; i++) {
        const struct leat_raft_entry *entry = leat_raft_log_get(log, log->start_index + i);
        LEAT_ASSERT(entry != NULL);
        LEAT_ASSERT(entry->type >= RAFT_COMMAND && entry->type <= RAFT_CHANGE);
        LEAT_ASSERT(entry->term >= term && entry->term >= 1);
        term = entry->term;
    }
    LEAT_ASSERT_CMP(term, <=, log->vote.term);
    LEAT_ASSERT_CMP(log->snapshot.term, <=, log->vote.term);
    LEAT_ASSERT(!leat_raft_log_get(log, last + 1));
}

/* All that is remembered, in one number. */
static uint32_t log_sum(const struct leat_raft_log *log)
{
    uint64_t numbers[] = {log->vote.term,      log->vote.voted_for, log->start_index,
                          log->snapshot.index, log->snapshot.term,  log->snapshot.conf_index};
    uint32_t sum = leat_crc32c(0, numbers, sizeof numbers);
    sum = leat_crc32c(sum, log->snapshot.conf, log->snapshot.conf_bytes);
    sum = leat_crc32c(sum, log->snapshot.data, log->snapshot.data_bytes);
    for (size_t i = 0; i < log->entry_count; i++) {
        const struct leat_raft_entry *entry = leat_raft_log_get(log, log->start_index + i);
        uint64_t head[] = {entry->term, entry->type, entry->bytes};
        sum = leat_crc32c(sum, head, sizeof head);
        sum = leat_crc32c(sum, entry->data, entry->bytes);
    }
    return sum;
}

static bool log_open(struct leat_raft_log *log, struct fake_world *world)
{
    struct leat_error error = {.code = LEAT_OK};
    bool is_new = false;
    leat_err rc = leat_raft_log_open(log, &world->disk, SEGMENT_BYTES, &is_new, &error);
    if (rc == LEAT_OK && !is_new) return true;
    if (rc == LEAT_OK) leat_raft_log_close(log);
    LEAT_ASSERT(rc == LEAT_OK || rc == error.code);
    if (getenv("FZ")) fprintf(stderr, "open: %d %s\n", rc, error.text);
    return false;
}

static void log_go_on(struct fake_world *world)
{
    struct leat_raft_log log;
    static const uint8_t more[] = "one entry more";
    if (!log_open(&log, world)) return;
    log_check(&log);
    uint32_t sum = log_sum(&log);
    leat_raft_log_close(&log);
    LEAT_ASSERT(log_open(&log, world));
    log_check(&log);
    LEAT_ASSERT(log_sum(&log) == sum);
    uint64_t index = leat_raft_log_last_index(&log) + 1;
    leat_err rc =
        log.vote.term ? LEAT_OK : leat_raft_log_vote(&log, 1, 0); /* no leader has term 0 */
    if (rc == LEAT_OK)
        rc = leat_raft_log_append(&log, index, log.vote.term, RAFT_COMMAND, more, sizeof more);
    if (rc == LEAT_OK) rc = leat_raft_log_flush_now(&log);
    sum = log_sum(&log);
    leat_raft_log_close(&log);
    if (rc != LEAT_OK) return; /* the fake disk has no fault: too many segments */
    LEAT_ASSERT(log_open(&log, world));
    log_check(&log);
    LEAT_ASSERT(leat_raft_log_last_index(&log) == index && log_sum(&log) == sum);
    leat_raft_log_close(&log);
}

/* ---- the coordinator ---- */

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

/* A node without a known copy reports no replicas and cannot pull. */
static void on_collect(void *owner, struct leat_collect *collect)
{
    const struct fake_world *world = owner;
    collect->rc = LEAT_E_UNSUPPORTED;
    leat_collected(world->env.post, collect);
}
static void on_pull(void *owner, struct leat_pull *pull)
{
    const struct fake_world *world = owner;
    pull->rc = LEAT_E_UNREACHABLE;
    leat_pulled(world->env.post, pull);
}

/* Nobody comes, and nobody is reached. */
static leat_err net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                           char out_address[128], struct leat_error *error)
{
    (void)ctx;
    (void)on_accept;
    (void)acceptor;
    (void)error;
    (void)snprintf(out_address, 128, "%s", address);
    return LEAT_OK;
}
static leat_err net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                            void *user, struct leat_conn **out_conn)
{
    (void)ctx;
    (void)address;
    (void)handler;
    (void)user;
    (void)out_conn;
    return LEAT_E_UNREACHABLE;
}
static const struct leat_net net = {.listen = net_listen, .connect = net_connect};

/* As a voter in a cluster of one voter, or of three, if there is a file that only voters of three have. */
static void coordinator_begin(struct fake_world *world)
{
    static const struct leat_key key = {{"of the cluster"}};
    static struct leat_link_hub hub;
    static const char *const voters[] = {"n0:7701", "n1:7701", "n2:7701"};
    struct leat_coordinator_options options = {.cores = 2,
                                               .raft_segment_bytes = SEGMENT_BYTES,
                                               .on_stream = on_stream,
                                               .on_stream_deleted = on_deleted,
                                               .on_ready = on_ready,
                                               .on_collect = on_collect,
                                               .on_pull = on_pull,
                                               .owner = world};
    if (fake_world_file(world, "raft/form")) {
        options.node_name = "n0";
        options.node_address = voters[0];
        options.voters = voters;
        options.voter_count = 3;
        options.hub = &hub;
        options.key = &key;
        world->env.net = &net;
    }
    struct leat_coordinator *coordinator;
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = leat_coordinator_open(&world->env, &options, &coordinator, &error);
    LEAT_ASSERT(rc == error.code);
    if (rc != LEAT_OK) return;
    world->actor = coordinator;
    world->ops_of_actor = &leat_coordinator_actor;
    fake_world_elapse(world, 2000000);
    world->ops_of_actor = NULL;
    leat_coordinator_close(&coordinator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake_world world; /* large */
    world_make(&world, data, size);
    log_go_on(&world);
    fake_world_fini(&world);
    world_make(&world, data, size);
    coordinator_begin(&world);
    fake_world_fini(&world);
    return 0;
}
