/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the seed corpora: corpus DIR makes the folders of its targets in DIR.
 * The files are kept in tests/fuzz/corpus; run this again where a format changes. */
#include "corpus.h"

#include "wire/batch.h"
#include "wire/entry.h"
#include "wire/frame.h"
#include "wire/message.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *root;

void corpus_file(const char *target, const char *name, const void *bytes, size_t count)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", root, target);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

void corpus_piece(struct corpus_pieces *pieces, uint8_t kind, const void *bytes, size_t count)
{
    LEAT_ASSERT(count <= UINT16_MAX);
    LEAT_ASSERT(pieces->used + FUZZ_PIECE_HEADER_BYTES + count <= sizeof pieces->bytes);
    uint8_t *at = pieces->bytes + pieces->used;
    at[0] = kind;
    leat_put_le16(at + 1, (uint16_t)count);
    if (count) memcpy(at + FUZZ_PIECE_HEADER_BYTES, bytes, count);
    pieces->used += FUZZ_PIECE_HEADER_BYTES + count;
}

static uint32_t batch_make(uint8_t *out, size_t capacity, uint32_t records, uint64_t base_offset)
{
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, capacity);
    for (uint32_t i = 0; i < records; i++) {
        char text[96];
        memset(text, 'a' + (int)(i % 3), sizeof text);
        leat_err rc = leat_batch_builder_add(&builder, 1000 + (int64_t)i, i % 2 ? "key" : NULL,
                                             i % 2 ? 3 : 0, text, 20 + i % 70, "\x02h\x04vw",
                                             i % 5 == 0 ? 5 : 0, i % 5 == 0);
        LEAT_ASSERT(rc == LEAT_OK);
    }
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 42, 3, 0);
    leat_batch_stamp(out, base_offset, 7);
    return bytes;
}

static void batches_write(void)
{
    uint8_t plain[8192], packed[8192];
    uint32_t bytes = batch_make(plain, sizeof plain, 2, 0);
    corpus_file("batch", "two", plain, bytes);
    bytes = batch_make(plain, sizeof plain, 40, 9);
    corpus_file("batch", "forty", plain, bytes);
    uint32_t packed_bytes = 0;
    leat_err rc =
        leat_batch_compress(plain, bytes, LEAT_CODEC_LZ4, 0, packed, sizeof packed, &packed_bytes);
    LEAT_ASSERT(rc == LEAT_OK);
    corpus_file("batch", "lz4", packed, packed_bytes);
    rc =
        leat_batch_compress(plain, bytes, LEAT_CODEC_ZSTD, 0, packed, sizeof packed, &packed_bytes);
    LEAT_ASSERT(rc == LEAT_OK);
    corpus_file("batch", "zstd", packed, packed_bytes);
}

static void entry_put(struct leat_entry_writer *writer, enum leat_entry_type type,
                      const void *payload, uint32_t bytes)
{
    (void)leat_entry_append(writer, type, 0, 0, payload, bytes, leat_crc32c(0, payload, bytes));
}

static void segments_write(void)
{
    static _Alignas(8) uint8_t bytes[LEAT_SEGMENT_BYTES_MIN];
    uint8_t batch[2048];
    struct leat_entry_writer writer;
    leat_entry_writer_init(&writer, bytes, sizeof bytes);
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .capacity = sizeof bytes};
    entry_put(&writer, LEAT_ENTRY_SEGMENT, &header, sizeof header);
    corpus_file("segment", "reserved", bytes, writer.used);
    struct {
        struct leat_start fixed;
        struct leat_producer_state producer;
    } start = {.fixed = {.base_offset = 5, .producer_count = 1}};
    entry_put(&writer, LEAT_ENTRY_START, &start, sizeof start);
    (void)leat_entry_seal(&writer, 0);
    corpus_file("segment", "started", bytes, writer.used);
    for (uint64_t i = 0; i < 3; i++) {
        uint32_t acked = writer.sealed_bytes;
        uint32_t count = batch_make(batch, sizeof batch, 2, 5 + 2 * i);
        (void)leat_entry_append(&writer, LEAT_ENTRY_BATCH, 5 + 2 * i, 2, batch, count,
                                leat_crc32c(0, batch, count));
        struct leat_trim trim = {.first_segment = 1, .first_offset = 3};
        if (i == 1) entry_put(&writer, LEAT_ENTRY_TRIM, &trim, sizeof trim);
        (void)leat_entry_seal(&writer, acked);
    }
    corpus_file("segment", "open", bytes, writer.used);
    struct leat_close end = {.next_offset = 11, .record_count = 6, .bytes = writer.used};
    uint32_t acked = writer.sealed_bytes;
    entry_put(&writer, LEAT_ENTRY_CLOSE, &end, sizeof end);
    (void)leat_entry_seal(&writer, acked);
    corpus_file("segment", "closed", bytes, writer.used);
}

/* One message behind its decoder's number, as message_fuzz.c numbers them. */
static void message_write(uint8_t number, const char *name, const struct leat_msg_writer *writer)
{
    uint8_t bytes[1024] = {number};
    LEAT_ASSERT(!writer->overflow && writer->used < sizeof bytes);
    memcpy(bytes + 1, writer->bytes, writer->used);
    corpus_file("message", name, bytes, writer->used + 1);
}

static void messages_write(void)
{
    uint8_t bytes[512];
    struct leat_msg_writer w;
#define MESSAGE(number, name, call)                                                                \
    leat_msg_writer_init(&w, bytes, sizeof bytes);                                                 \
    call;                                                                                          \
    message_write(number, name, &w)
    MESSAGE(0, "hello",
            leat_msg_hello_encode(&w, &(struct leat_msg_hello){1, 1, {"probe", 5}, -1}));
    struct leat_msg_hello_ok ok = {
        .version = 1, .incarnation = 1ull << 40, .node = {"n1", 2}, .lanes = 2};
    MESSAGE(1, "hello_ok", leat_msg_hello_ok_encode(&w, &ok));
    MESSAGE(2, "append",
            leat_msg_append_encode(&w, &(struct leat_msg_append){{1, 2, 3}, 70000, 4}));
    MESSAGE(3, "error", leat_msg_error_encode(&w, LEAT_E_NOT_OWNER, "owned by n2"));
    struct leat_stream_settings settings = {.streamlets = 2,
                                            .logs = 2,
                                            .copies = 1,
                                            .min_copies = 1,
                                            .durability = LEAT_DURABILITY_DISK,
                                            .segment_bytes_max = 1 << 23,
                                            .retention_ms = -1,
                                            .retention_bytes = 1 << 30,
                                            .batch_bytes_max = 1 << 20};
    MESSAGE(4, "settings", leat_msg_settings_write(&w, &settings));
    struct leat_msg_node node = {9, {"n1", 2}, {"127.0.0.1:7700", 14}, 2};
    MESSAGE(5, "node", leat_msg_node_write(&w, &node));
    struct leat_msg_log log = {1, 2, 3, 4, 5};
    MESSAGE(6, "log", leat_msg_log_write(&w, &log));
    struct leat_msg_log_info info = {.at = log, .bytes = 1 << 20, .text = {"fine", 4}};
    MESSAGE(7, "log_info", leat_msg_log_info_write(&w, &info));
    struct leat_msg_fetch_log one = {.log = {1, 2, 3}, .epoch = 4, .offset = 5};
    struct leat_msg_fetch_log two = {
        .log = {1, 2, 3}, .by_position = true, .position = {1, 17, 64}};
    MESSAGE(8, "fetch",
            (leat_msg_fetch_write(&w, &(struct leat_msg_fetch){1, 1 << 20, 500, 2}),
             leat_msg_fetch_log_write(&w, &one), leat_msg_fetch_log_write(&w, &two)));
    MESSAGE(9, "fetch_log", leat_msg_fetch_log_write(&w, &two));
    struct leat_msg_stream stream = {.name = {"rooms", 5}, .id = 1, .settings = settings};
    stream.log_count = 1;
    MESSAGE(10, "stream", (leat_msg_stream_write(&w, &stream), leat_msg_log_write(&w, &log)));
    struct leat_msg_locate locate = {
        .log = {1, 2, 3}, .what = LEAT_LOCATE_TIME, .value = 1700000000000};
    MESSAGE(11, "locate", leat_msg_locate_write(&w, &locate));
    struct leat_msg_locate place = {
        .log = {1, 2, 3}, .what = LEAT_LOCATE_POSITION, .position = {1, 17, 64}};
    MESSAGE(11, "locate-place", leat_msg_locate_write(&w, &place));
    struct leat_msg_located located = {.offset = 5, .timestamp_ms = -1, .position = {1, 17, 64}};
    MESSAGE(12, "located", leat_msg_located_write(&w, &located));
    struct leat_msg_fetched fetched = {.acked_offset = 9, .bytes = 100, .by_position = true};
    MESSAGE(13, "fetched", leat_msg_fetched_write(&w, &fetched));
    struct leat_msg_string set = {"readers", 7}, member = {"m-1", 3};
    struct leat_msg_set_share share = {{1, 2, 3}, 4, 2};
    struct leat_msg_set_offset offset = {{1, 2, 3}, -1, 70000};
    struct leat_log_ref ref = {1, 2, 3};
    MESSAGE(15, "set_join",
            (leat_msg_set_join_write(&w, &(struct leat_msg_set_join){set, member, 1, 10000, 1}),
             leat_msg_write_string(&w, "rooms", 5)));
    MESSAGE(16, "set_joined",
            (leat_msg_set_joined_write(&w, &(struct leat_msg_set_joined){member, 7, 1}),
             leat_msg_set_share_write(&w, &share)));
    MESSAGE(17, "set_share", leat_msg_set_share_write(&w, &share));
    MESSAGE(18, "set_heartbeat",
            leat_msg_set_heartbeat_write(&w, &(struct leat_msg_set_heartbeat){set, member, 7}));
    MESSAGE(19, "set_leave",
            leat_msg_set_leave_write(&w, &(struct leat_msg_set_leave){set, member}));
    MESSAGE(20, "set_commit",
            (leat_msg_set_commit_write(&w, &(struct leat_msg_set_commit){set, member, 7, 1}),
             leat_msg_set_offset_write(&w, &offset)));
    MESSAGE(21, "set_fetch",
            (leat_msg_set_fetch_write(&w, &(struct leat_msg_set_fetch){set, 1}),
             leat_msg_log_ref_write(&w, &ref)));
    MESSAGE(22, "set_fetched",
            (leat_msg_set_fetched_write(&w, &(struct leat_msg_set_fetched){7, 1}),
             leat_msg_set_offset_write(&w, &offset)));
    MESSAGE(23, "recover",
            leat_msg_recover_write(&w, &(struct leat_msg_recover){{"rooms", 5}, 1, 2, true}));
    MESSAGE(24, "recovered",
            leat_msg_recovered_write(&w, &(struct leat_msg_recovered){UINT64_C(1) << 40}));
    struct leat_msg_segment_copy copy = {{"n1", 2}, true, true, false, 4096};
    MESSAGE(26, "segment_copy", leat_msg_segment_copy_write(&w, &copy));
    MESSAGE(25, "status",
            leat_msg_status_write(&w, &(struct leat_msg_status){.version = {"0.1.0", 5},
                                                                .memory_budget = 1 << 30,
                                                                .cores = 2}));
#undef MESSAGE
    static const uint8_t nested[] = {14, 0x92, 0x81, 0xa1, 'k', 0xc4, 1, 0, 0xcb,
                                     0,  0,    0,    0,    0,   0,    0, 0};
    corpus_file("message", "nested", nested, sizeof nested);
}

static void frames_write(void)
{
    uint8_t bytes[512];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes + LEAT_FRAME_HEADER_BYTES, 256);
    leat_msg_hello_encode(&w, &(struct leat_msg_hello){1, 1, {"probe", 5}, -1});
    leat_frame_encode(bytes, LEAT_KIND_HELLO, 1, 0, 1, w.used, 0);
    corpus_file("frame", "hello", bytes, LEAT_FRAME_HEADER_BYTES + w.used);
    leat_msg_writer_init(&w, bytes + LEAT_FRAME_HEADER_BYTES, 256);
    leat_msg_append_encode(&w, &(struct leat_msg_append){{1, 0, 0}, 1, 1});
    uint32_t batch = batch_make(bytes + LEAT_FRAME_HEADER_BYTES + w.used, 256, 1, 0);
    leat_frame_encode(bytes, LEAT_KIND_APPEND, 1, 0, 2, w.used, batch);
    corpus_file("frame", "append", bytes, LEAT_FRAME_HEADER_BYTES + w.used + batch);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: corpus DIR\n");
        return 2;
    }
    root = argv[1];
    batches_write();
    segments_write();
    messages_write();
    frames_write();
    corpus_machine();
    corpus_node();
    corpus_hello();
    corpus_peer();
    corpus_raft();
    corpus_catalogue();
    corpus_groups();
    return 0;
}
