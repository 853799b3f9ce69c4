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

static void frames_write(void)
{
    uint8_t bytes[512];
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes + LEAT_FRAME_HEADER_BYTES, 256);
    leat_msg_hello_write(&w, &(struct leat_msg_hello){1, 1, {"probe", 5}, -1});
    leat_frame_encode(bytes, LEAT_KIND_HELLO, 1, 0, 1, w.used, 0);
    corpus_file("frame", "hello", bytes, LEAT_FRAME_HEADER_BYTES + w.used);
    leat_msg_writer_init(&w, bytes + LEAT_FRAME_HEADER_BYTES, 256);
    leat_msg_append_write(&w, &(struct leat_msg_append){{1, 0, 0}, 1, 1});
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
