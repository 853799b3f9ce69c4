/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage: reading at start, and telling a torn end from damage. */
#include "coordinator/raft/private.h"

#include <inttypes.h>
#include <raft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/node_log.h"

struct vote_block {
    uint32_t magic, crc;
    uint32_t version, zero32;
    struct leat_raft_vote_state state;
};

/* No voter ever counts so far; a larger number is damage, and an increment must not wrap. */
static const uint64_t number_max = UINT64_C(1) << 62;

/* ---- vote ---- */

static bool vote_block_valid(const uint8_t *bytes, struct leat_raft_vote_state *out_state)
{
    struct vote_block block;
    memcpy(&block, bytes, sizeof block);
    if (block.magic != LEAT_RAFT_VOTE_MAGIC || block.version != LEAT_RAFT_FORMAT_VERSION ||
        block.crc != leat_raft_header_crc(&block, sizeof block))
        return false;
    const struct leat_raft_vote_state *state = &block.state;
    if (state->sequence > number_max || state->term > number_max || state->first_segment == 0 ||
        state->first_segment > number_max || state->durable_segment > number_max)
        return false;
    *out_state = *state;
    return true;
}

static leat_err vote_load(struct leat_raft_log *log, struct leat_error *error)
{
    bool any = false;
    for (uint64_t i = 0; i < 2; i++) {
        size_t done = 0;
        leat_err rc =
            leat_raft_io(log->disk, LEAT_DISK_READ, log->vote_file, i * LEAT_RAFT_VOTE_BLOCK_BYTES,
                         log->vote_block, LEAT_RAFT_VOTE_BLOCK_BYTES, &done);
        if (rc != LEAT_OK) return leat_error_set(error, rc, "raft/vote can't be read");
        struct leat_raft_vote_state state;
        if (done < sizeof(struct vote_block) || !vote_block_valid(log->vote_block, &state))
            continue;
        if (!any || state.sequence > log->vote.sequence) log->vote = state;
        any = true;
    }
    if (any) {
        /* A vote that a killed process had not synced is kept by this one: it may not change again. */
        leat_err rc = leat_raft_io(log->disk, LEAT_DISK_SYNC, log->vote_file, 0, NULL, 0, NULL);
        return rc ? leat_error_set(error, rc, "raft/vote can't be flushed") : LEAT_OK;
    }
    return leat_error_set(error, LEAT_E_DAMAGED,
                          "raft/vote is damaged: both of its blocks fail their check. This node "
                          "may not vote; restore the file from a copy");
}

/* ---- one segment ---- */

static bool round_header_valid(const uint8_t *at, uint64_t segment, uint64_t offset,
                               struct leat_raft_round_header *out_header)
{
    memcpy(out_header, at, sizeof *out_header);
    return out_header->magic == LEAT_RAFT_ROUND_MAGIC && out_header->segment == segment &&
           out_header->at == offset &&
           out_header->crc == leat_raft_header_crc(out_header, sizeof *out_header);
}

static bool all_zero(const uint8_t *bytes, uint64_t count)
{
    /* Every byte equals the one before it: the library compares wide, and a segment has 8 MiB. */
    return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0);
}

static bool frames_valid(const uint8_t *at, const struct leat_raft_round_header *round)
{
    const uint8_t *end = at + round->bytes;
    uint64_t index = round->first_index;
    for (uint32_t i = 0; i < round->count; i++, index++) {
        struct leat_raft_frame_header frame;
        if ((size_t)(end - at) < sizeof frame) return false;
        memcpy(&frame, at, sizeof frame);
        at += sizeof frame;
        uint64_t padded = LEAT_ALIGN_UP((uint64_t)frame.bytes, 8);
        if (padded > (uint64_t)(end - at) || frame.index != index ||
            frame.bytes > LEAT_RAFT_ENTRY_BYTES_MAX ||
            frame.crc != leat_raft_frame_crc(&frame, at) ||
            !all_zero(at + frame.bytes, padded - frame.bytes))
            return false;
        at += padded;
    }
    return at == end && round->count > 0;
}

/* A frame's checksum is right, so a voter wrote it; of what raft can't have given to it nothing may be taken, or
 * libraft, and the tables, get it. */
static leat_err frame_judge(const struct leat_raft_log *log,
                            const struct leat_raft_frame_header *frame, const uint8_t *data,
                            struct leat_error *error)
{
    const struct leat_raft_entry *before = leat_raft_log_get(log, frame->index - 1);
    bool known = frame->type >= RAFT_COMMAND && frame->type <= RAFT_CHANGE;
    if (frame->type == RAFT_CHANGE) known = leat_raft_configuration_valid(data, frame->bytes);
    if (!known || frame->index == 0 || frame->index > number_max || frame->term == 0 ||
        (before && before->term > frame->term))
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the coordinator's log has an entry that can't be: number %" PRIu64
                              " of term %" PRIu64 " and type %u. This node may not vote; restore "
                              "raft/ from a copy",
                              frame->index, frame->term, frame->type);
    if (frame->term > log->vote.term)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "raft/vote knows term %" PRIu64 ", but the log has an entry of "
                              "term %" PRIu64 ": raft/vote is older than the log",
                              log->vote.term, frame->term);
    return LEAT_OK;
}

/* Take a valid round's entries. What lies below the snapshot is not needed. */
static leat_err round_take(struct leat_raft_log *log, const uint8_t *at,
                           const struct leat_raft_round_header *round, struct leat_error *error)
{
    uint64_t index = round->first_index;
    for (uint32_t i = 0; i < round->count; i++, index++) {
        struct leat_raft_frame_header frame;
        memcpy(&frame, at, sizeof frame);
        const uint8_t *data = at + sizeof frame;
        at = data + LEAT_ALIGN_UP((uint64_t)frame.bytes, 8);
        if (log->entry_count == 0 && log->written_index == 0) log->start_index = index;
        if (index > leat_raft_log_last_index(log) + 1)
            return leat_error_set(error, LEAT_E_DAMAGED,
                                  "the coordinator's log has a gap: entry %" PRIu64
                                  " follows %" PRIu64,
                                  index, leat_raft_log_last_index(log));
        if (index < log->start_index) { /* the log was cut back past its first live entry */
            leat_raft_entries_cut(log, 0);
            log->start_index = index;
        }
        leat_raft_entries_cut(log, index);
        leat_err rc = frame_judge(log, &frame, data, error);
        if (rc != LEAT_OK) return rc;
        rc = leat_raft_entries_push(log, frame.term, frame.type, data, frame.bytes);
        if (rc != LEAT_OK) return leat_error_set(error, rc, "no memory for the coordinator's log");
        log->written_index = index;
    }
    return LEAT_OK;
}

/* A round after the place `from` proves that all bytes before the round had been synced. */
static uint64_t later_round_find(const uint8_t *bytes, uint64_t count, uint64_t segment,
                                 uint64_t from)
{
    struct leat_raft_round_header header;
    for (uint64_t at = LEAT_ALIGN_UP(from + 1, 8); at + sizeof header <= count; at += 8)
        if (leat_get_le32(bytes + at) == LEAT_RAFT_ROUND_MAGIC &&
            round_header_valid(bytes + at, segment, at, &header))
            return at;
    return 0;
}

struct segment_scan {
    const uint8_t *bytes;
    uint64_t count;
    uint64_t number;
    bool header_valid;
    struct leat_raft_segment_header header;
    uint64_t end; /* of the valid rounds */
    uint64_t last_index;
};

static leat_err segment_scan(struct leat_raft_log *log, struct segment_scan *scan,
                             struct leat_error *error)
{
    scan->end = 0;
    if (scan->count < sizeof scan->header) return LEAT_OK;
    memcpy(&scan->header, scan->bytes, sizeof scan->header);
    scan->header_valid =
        scan->header.magic == LEAT_RAFT_SEGMENT_MAGIC &&
        scan->header.version == LEAT_RAFT_FORMAT_VERSION && scan->header.number == scan->number &&
        scan->header.crc == leat_raft_header_crc(&scan->header, sizeof scan->header);
    if (!scan->header_valid) return LEAT_OK;
    uint64_t at = sizeof scan->header;
    for (;;) {
        struct leat_raft_round_header round;
        if (at + sizeof round > scan->count ||
            !round_header_valid(scan->bytes + at, scan->number, at, &round) ||
            round.bytes > scan->count - at - sizeof round ||
            !frames_valid(scan->bytes + at + sizeof round, &round))
            break;
        leat_err rc = round_take(log, scan->bytes + at + sizeof round, &round, error);
        if (rc != LEAT_OK) return rc;
        uint64_t last = round.first_index + round.count - 1;
        if (last > scan->last_index) scan->last_index = last;
        at += sizeof round + round.bytes;
        scan->end = at;
    }
    return LEAT_OK;
}

/* Is what follows the valid rounds a torn round that was never acknowledged? */
static leat_err segment_end_judge(struct leat_raft_log *log, const struct segment_scan *scan,
                                  bool is_last, struct leat_error *error)
{
    char path[64];
    leat_raft_path(path, "log", scan->number);
    if (log->vote.durable_segment == scan->number && scan->end < log->vote.durable_end)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "%s is damaged at byte %" PRIu64 ": it was durable up to byte "
                              "%" PRIu64 ". This node may not vote; restore the file from a copy",
                              path, scan->end, log->vote.durable_end);
    if (!is_last) return LEAT_OK; /* its successor says where it ends */
    uint64_t from = scan->end ? scan->end : sizeof(struct leat_raft_segment_header);
    uint64_t later = later_round_find(scan->bytes, scan->count, scan->number, from);
    if (later != 0)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "%s is damaged at byte %" PRIu64 ": what was made durable later is "
                              "valid at byte %" PRIu64
                              ". This node may not vote; restore the file from a copy",
                              path, scan->end, later);
    return LEAT_OK;
}

/* Zero a torn round, so that its bytes can never be looked at again. */
static leat_err torn_erase(struct leat_raft_log *log, struct leat_file *file, uint8_t *bytes,
                           uint64_t count, uint64_t from)
{
    memset(bytes + from, 0, count - from);
    leat_err rc =
        leat_raft_io(log->disk, LEAT_DISK_WRITE, file, from, bytes + from, count - from, NULL);
    if (rc == LEAT_OK) rc = leat_raft_io(log->disk, LEAT_DISK_SYNC, file, 0, NULL, 0, NULL);
    return rc;
}

static leat_err segment_load(struct leat_raft_log *log, uint64_t number, bool is_last,
                             uint8_t *bytes, uint64_t *previous_end, bool has_previous,
                             struct leat_error *error)
{
    char path[64];
    leat_raft_path(path, "log", number);
    struct leat_file *file;
    leat_err rc = log->disk->open(log->disk->ctx, path, 0, &file, error);
    if (rc != LEAT_OK) return rc;
    size_t count = 0;
    rc = leat_raft_io(log->disk, LEAT_DISK_READ, file, 0, bytes, LEAT_RAFT_SEGMENT_BYTES, &count);
    if (rc != LEAT_OK) {
        (void)leat_error_set(error, rc, "%s can't be read", path);
        goto out;
    }
    struct segment_scan scan = {.bytes = bytes, .count = count, .number = number};
    rc = segment_scan(log, &scan, error);
    if (rc == LEAT_OK) rc = segment_end_judge(log, &scan, is_last, error);
    if (rc != LEAT_OK) goto out;
    if (scan.end == 0 && !is_last) {
        rc = leat_error_set(error, LEAT_E_DAMAGED,
                            "%s is damaged at its beginning. This node may not vote; restore the "
                            "file from a copy",
                            path);
        goto out;
    }
    if (scan.header_valid && scan.end != 0 && has_previous &&
        scan.header.previous_end != *previous_end) {
        rc = leat_error_set(error, LEAT_E_DAMAGED,
                            "the segment before %s is damaged at byte %" PRIu64
                            ": it reached byte %" PRIu64
                            ". This node may not vote; restore the file from a copy",
                            path, *previous_end, scan.header.previous_end);
        goto out;
    }
    if (is_last && !all_zero(bytes + scan.end, count - scan.end)) {
        leat_node_log_warn("coordinator: %s ends in a write that was cut off at byte %" PRIu64
                           "; nothing of it was acknowledged, it is dropped",
                           path, scan.end);
        rc = torn_erase(log, file, bytes, count, scan.end);
        if (rc != LEAT_OK) goto out;
    }
    /* SUBTLE: unsynced writes of a killed process are found here, in the page cache, and raft counts them as
     * persisted from now on: (1) a round is written, (2) kill -9, (3) the round is loaded, and this voter's
     * acknowledgement commits its entries, (4) the power goes, and the round is lost. */
    if (is_last) rc = leat_raft_io(log->disk, LEAT_DISK_SYNC, file, 0, NULL, 0, NULL);
    if (rc != LEAT_OK) {
        (void)leat_error_set(error, rc, "%s can't be flushed", path);
        goto out;
    }
    if (is_last && scan.end == 0) /* a crash may have come between creating and allocating it */
        rc = log->disk->allocate(log->disk->ctx, file, log->segment_bytes);
    if (rc != LEAT_OK) goto out;
    *previous_end = scan.end;
    rc = leat_raft_segment_push(
        log, (struct leat_raft_segment){
                 .number = number, .end = scan.end, .last_index = scan.last_index, .file = file});
    if (rc == LEAT_OK) return LEAT_OK;
out:
    log->disk->close(log->disk->ctx, file);
    return rc;
}

leat_err leat_raft_log_segments_load(struct leat_raft_log *log, const uint64_t *numbers,
                                     size_t count, struct leat_error *error)
{
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, LEAT_RAFT_SEGMENT_BYTES, 1);
    if (!bytes) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to read raft's log");
    leat_err rc = LEAT_OK;
    uint64_t previous_end = 0;
    uint64_t expected = log->vote.first_segment;
    for (size_t i = 0; i < count && rc == LEAT_OK; i++, expected++) {
        if (numbers[i] != expected) {
            rc = leat_error_set(error, LEAT_E_DAMAGED,
                                "raft/log-%020" PRIu64 " is missing. This node may not vote; "
                                "restore the file from a copy",
                                expected);
            break;
        }
        rc = segment_load(log, numbers[i], i + 1 == count, bytes, &previous_end, i > 0, error);
    }
    log->next_segment = expected;
    if (rc == LEAT_OK && expected <= log->vote.durable_segment && log->vote.durable_end > 0)
        rc = leat_error_set(error, LEAT_E_DAMAGED,
                            "raft/log-%020" PRIu64 " is missing. This node may not vote; restore "
                            "the file from a copy",
                            expected);
    leat_mem_free(bytes);
    return rc;
}

/* ---- the directory ---- */

struct listing {
    bool vote;
    uint64_t *segments, *snapshots;
    size_t segment_count, snapshot_count, capacity;
    bool overflow;
};

static bool number_parse(const char *name, const char *prefix, uint64_t *out_number)
{
    size_t bytes = strlen(prefix);
    if (strncmp(name, prefix, bytes) != 0 || strlen(name) != bytes + 20) return false;
    uint64_t number = 0;
    for (const char *c = name + bytes; *c; c++) {
        if (*c < '0' || *c > '9') return false;
        number = number * 10 + (uint64_t)(*c - '0');
    }
    *out_number = number;
    return true;
}

static void list_each(void *arg, const char *name)
{
    struct listing *listing = arg;
    uint64_t number;
    if (strcmp(name, "vote") == 0) listing->vote = true;
    /* Names are of one width, so sorted by name is sorted by number. */
    if (number_parse(name, "log-", &number)) {
        if (listing->segment_count == listing->capacity)
            listing->overflow = true;
        else
            listing->segments[listing->segment_count++] = number;
    }
    if (number_parse(name, "snapshot-", &number)) {
        if (listing->snapshot_count == listing->capacity)
            listing->overflow = true;
        else
            listing->snapshots[listing->snapshot_count++] = number;
    }
}

static leat_err listing_read(const struct leat_disk *disk, struct listing *listing,
                             struct leat_error *error)
{
    *listing = (struct listing){.capacity = LEAT_RAFT_SEGMENTS_MAX};
    listing->segments =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, listing->capacity, sizeof *listing->segments);
    listing->snapshots =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, listing->capacity, sizeof *listing->snapshots);
    if (!listing->segments || !listing->snapshots)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to list raft's files");
    leat_err rc = disk->list(disk->ctx, "raft", list_each, listing);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "the directory raft can't be listed");
    if (listing->overflow)
        return leat_error_set(error, LEAT_E_TOO_MANY, "the directory raft holds more than %d files",
                              LEAT_RAFT_SEGMENTS_MAX);
    return LEAT_OK;
}

static leat_err file_remove(const struct leat_disk *disk, const char *kind, uint64_t number)
{
    char path[64];
    leat_raft_path(path, kind, number);
    return disk->remove(disk->ctx, path);
}

/* The snapshot and the entries must join. Entries that the snapshot replaces whole are dropped, as Raft has it: the
 * entries end before the snapshot, or differ from it at its last entry.
 *
 * SUBTLE: dropped on disk too. (1) A snapshot up to 64 is received and stored; the process dies before it has dropped
 * its log, 1 to 62. (2) The next start goes on at 65, in the same segment. (3) The start after that finds 65 after
 * 62: a gap, and the voter stays out. Old entries that reached 70, of another term, were worse: entry 64 still
 * differed from the snapshot, and all entries acknowledged since then were dropped with the old entries. */
static leat_err log_join(struct leat_raft_log *log, struct leat_error *error)
{
    uint64_t index = log->snapshot.index;
    if (log->entry_count == 0) {
        log->start_index = index + 1;
        log->written_index = index;
        return LEAT_OK;
    }
    if (log->start_index > index + 1)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the coordinator's log begins with entry %" PRIu64 ", but %s%" PRIu64
                              ": a snapshot is missing",
                              log->start_index, index ? "the snapshot ends with " : "it needs ",
                              index ? index : 1);
    if (log->start_index > index) return LEAT_OK;
    const struct leat_raft_entry *at = leat_raft_log_get(log, index);
    if (at && at->term == log->snapshot.term) return LEAT_OK;
    leat_err rc = leat_raft_log_reset(log, index + 1);
    if (rc != LEAT_OK)
        return leat_error_set(error, rc, "raft's log can't be begun anew after its snapshot");
    return LEAT_OK;
}

static leat_err log_load(struct leat_raft_log *log, struct listing *listing,
                         struct leat_error *error)
{
    size_t dead = 0;
    /* Nor may a snapshot's name go with the power, once the log has let go of what it replaces. */
    leat_err rc = log->disk->sync_dir(log->disk->ctx, "raft");
    if (rc != LEAT_OK) return leat_error_set(error, rc, "the directory raft/ can't be flushed");
    for (; dead < listing->segment_count && listing->segments[dead] < log->vote.first_segment &&
           rc == LEAT_OK;
         dead++)
        rc = file_remove(log->disk, "log", listing->segments[dead]);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "a dead segment of raft can't be removed");
    /* The newest snapshot is renamed into place only when whole: an older one is a leftover. */
    for (size_t i = 0; i + 1 < listing->snapshot_count; i++) {
        rc = file_remove(log->disk, "snapshot", listing->snapshots[i]);
        if (rc != LEAT_OK) return leat_error_set(error, rc, "an old snapshot can't be removed");
    }
    if (listing->snapshot_count > 0) {
        rc = leat_raft_snapshot_load(log, listing->snapshots[listing->snapshot_count - 1], error);
        if (rc != LEAT_OK) return rc;
    }
    rc = leat_raft_log_segments_load(log, listing->segments + dead, listing->segment_count - dead,
                                     error);
    if (rc != LEAT_OK) return rc;
    return log_join(log, error);
}

static leat_err vote_open(struct leat_raft_log *log, struct leat_error *error)
{
    log->vote_memory = leat_mem_calloc(LEAT_MEM_COORDINATOR, 2 * LEAT_RAFT_VOTE_BLOCK_BYTES, 1);
    if (!log->vote_memory) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory");
    log->vote_block = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)log->vote_memory,
                                               (uintptr_t)LEAT_RAFT_VOTE_BLOCK_BYTES);
    return LEAT_OK;
}

/* A formation that a crash cut off had promised nothing: begin anew. */
static leat_err unformed_clear(struct leat_raft_log *log, const struct listing *listing)
{
    leat_err rc = LEAT_OK;
    for (size_t i = 0; i < listing->segment_count && rc == LEAT_OK; i++)
        rc = file_remove(log->disk, "log", listing->segments[i]);
    for (size_t i = 0; i < listing->snapshot_count && rc == LEAT_OK; i++)
        rc = file_remove(log->disk, "snapshot", listing->snapshots[i]);
    return rc == LEAT_OK ? log->disk->sync_dir(log->disk->ctx, "raft") : rc;
}

leat_err leat_raft_log_open(struct leat_raft_log *log, const struct leat_disk *disk,
                            uint64_t segment_bytes, bool *out_new, struct leat_error *error)
{
    LEAT_ASSERT_CMP(segment_bytes, <=, LEAT_RAFT_SEGMENT_BYTES);
    *log = (struct leat_raft_log){.disk = disk,
                                  .start_index = 1,
                                  .next_segment = 1,
                                  .segment_bytes =
                                      segment_bytes ? segment_bytes : LEAT_RAFT_SEGMENT_BYTES};
    struct listing listing = {0};
    leat_err rc = disk->make_dir(disk->ctx, "raft");
    if (rc == LEAT_OK) rc = vote_open(log, error);
    if (rc == LEAT_OK) rc = listing_read(disk, &listing, error);
    if (rc != LEAT_OK) goto out;
    if (!listing.vote) {
        if (listing.segment_count || listing.snapshot_count) {
            rc = leat_error_set(error, LEAT_E_DAMAGED,
                                "raft/vote is missing, but raft's log is there. This node may not "
                                "vote; restore the file from a copy");
            goto out;
        }
        *out_new = true;
        goto out;
    }
    rc = disk->open(disk->ctx, "raft/vote", 0, &log->vote_file, error);
    if (rc == LEAT_OK) rc = vote_load(log, error);
    if (rc != LEAT_OK) goto out;
    *out_new = !log->vote.formed;
    rc = log->vote.formed ? log_load(log, &listing, error) : unformed_clear(log, &listing);
out:
    leat_mem_free(listing.segments);
    leat_mem_free(listing.snapshots);
    if (rc != LEAT_OK) {
        log->vote.formed = 0; /* note nothing on the way out */
        leat_raft_log_close(log);
    }
    return rc;
}

/* ---- forming ---- */

static leat_err vote_create(struct leat_raft_log *log)
{
    const struct leat_disk *disk = log->disk;
    leat_err rc = disk->open(disk->ctx, "raft/vote.new", LEAT_OPEN_CREATE, &log->vote_file, NULL);
    if (rc == LEAT_OK)
        rc = disk->allocate(disk->ctx, log->vote_file, 2 * LEAT_RAFT_VOTE_BLOCK_BYTES);
    if (rc == LEAT_OK) rc = leat_raft_vote_write(log);
    if (rc != LEAT_OK) return rc;
    disk->close(disk->ctx, log->vote_file);
    log->vote_file = NULL;
    rc = disk->rename(disk->ctx, "raft/vote.new", "raft/vote");
    if (rc == LEAT_OK) rc = disk->sync_dir(disk->ctx, "raft");
    if (rc == LEAT_OK) rc = disk->open(disk->ctx, "raft/vote", 0, &log->vote_file, NULL);
    return rc;
}

leat_err leat_raft_log_form(struct leat_raft_log *log, const struct leat_raft_entry *entries,
                            size_t count, struct leat_error *error)
{
    log->vote = (struct leat_raft_vote_state){.sequence = log->vote.sequence,
                                              .term = count > 0 ? 1 : 0,
                                              .first_segment = 1,
                                              .durable_segment = 1};
    log->next_segment = 1;
    leat_err rc = log->vote_file ? leat_raft_vote_write(log) : vote_create(log);
    /* The directory's own name too, also when an earlier start was killed just before this. */
    if (rc == LEAT_OK) rc = log->disk->sync_dir(log->disk->ctx, "raft");
    if (rc == LEAT_OK) rc = log->disk->sync_dir(log->disk->ctx, ".");
    for (size_t i = 0; i < count && rc == LEAT_OK; i++)
        rc =
            leat_raft_log_append(log, i + 1, 1, entries[i].type, entries[i].data, entries[i].bytes);
    if (rc == LEAT_OK && count > 0) rc = leat_raft_log_flush_now(log);
    if (rc == LEAT_OK) {
        log->vote.formed = 1;
        rc = leat_raft_log_mark(log);
    }
    if (rc != LEAT_OK)
        return leat_error_set(error, rc, "raft's first files can't be written: %s",
                              leat_err_text(rc));
    return LEAT_OK;
}
