/* SPDX-License-Identifier: Apache-2.0 */
/* Every message decoder. The first byte picks one. What decodes is encoded again; that must decode,
 * and encode to the same bytes. */
#include "fuzz.h"

#include "wire/message.h"

enum { OUT_BYTES = 64 * 1024 };

typedef bool (*recode_fn)(const uint8_t *in, size_t count, struct leat_msg_writer *writer);

#define BODY(name)                                                                                 \
    static bool recode_##name(const uint8_t *in, size_t count, struct leat_msg_writer *writer)     \
    {                                                                                              \
        struct leat_msg_##name value;                                                              \
        if (leat_msg_##name##_decode(in, count, &value) != LEAT_OK) return false;                  \
        leat_msg_##name##_encode(writer, &value);                                                  \
        return true;                                                                               \
    }
BODY(hello)
BODY(hello_ok)
BODY(append)
#undef BODY

static bool recode_error(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_error error;
    if (leat_msg_error_decode(in, count, &error) != LEAT_OK) return false;
    char *text = strndup(error.text.text, error.text.bytes);
    leat_msg_error_encode(writer, error.code, text);
    free(text);
    return true;
}

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
PIECE(settings, leat_stream_settings)
PIECE(node, leat_msg_node)
PIECE(log, leat_msg_log)
PIECE(log_info, leat_msg_log_info)
PIECE(fetch_log, leat_msg_fetch_log)
PIECE(fetched, leat_msg_fetched)
PIECE(locate, leat_msg_locate)
PIECE(located, leat_msg_located)
PIECE(set_share, leat_msg_set_share)
PIECE(set_heartbeat, leat_msg_set_heartbeat)
PIECE(set_leave, leat_msg_set_leave)
PIECE(recover, leat_msg_recover)
PIECE(recovered, leat_msg_recovered)
PIECE(trim, leat_msg_trim)
PIECE(trimmed, leat_msg_trimmed)
PIECE(status, leat_msg_status)
PIECE(segment_copy, leat_msg_segment_copy)
#undef PIECE

static bool recode_stream(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_stream stream;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    leat_msg_stream_read(&reader, &stream);
    if (reader.failed) return false;
    leat_msg_stream_write(writer, &stream);
    for (uint32_t i = 0; i < stream.log_count; i++) {
        struct leat_msg_log log;
        leat_msg_log_read(&reader, &log);
        leat_msg_log_write(writer, &log);
    }
    return leat_msg_read_done(&reader);
}

static bool recode_fetch(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_fetch fetch;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    leat_msg_fetch_read(&reader, &fetch);
    if (reader.failed) return false;
    leat_msg_fetch_write(writer, &fetch);
    for (uint32_t i = 0; i < fetch.log_count; i++) {
        struct leat_msg_fetch_log log;
        leat_msg_fetch_log_read(&reader, &log);
        leat_msg_fetch_log_write(writer, &log);
    }
    return leat_msg_read_done(&reader);
}

/* A head, then the elements of its list. */
#define LIST(name, count, element, type)                                                           \
    static bool recode_##name(const uint8_t *in, size_t bytes, struct leat_msg_writer *writer)     \
    {                                                                                              \
        struct leat_msg_##name head;                                                               \
        struct leat_msg_reader reader;                                                             \
        leat_msg_reader_init(&reader, in, bytes);                                                  \
        leat_msg_##name##_read(&reader, &head);                                                    \
        if (reader.failed) return false;                                                           \
        leat_msg_##name##_write(writer, &head);                                                    \
        for (uint32_t i = 0; i < head.count; i++) {                                                \
            struct type one;                                                                       \
            leat_msg_##element##_read(&reader, &one);                                              \
            leat_msg_##element##_write(writer, &one);                                              \
        }                                                                                          \
        return leat_msg_read_done(&reader);                                                        \
    }
LIST(set_joined, share_count, set_share, leat_msg_set_share)
LIST(set_commit, offset_count, set_offset, leat_msg_set_offset)
LIST(set_fetch, log_count, log_ref, leat_log_ref)
LIST(set_fetched, offset_count, set_offset, leat_msg_set_offset)
#undef LIST

static bool recode_set_join(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    struct leat_msg_set_join join;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    leat_msg_set_join_read(&reader, &join);
    if (reader.failed) return false;
    leat_msg_set_join_write(writer, &join);
    for (uint32_t i = 0; i < join.stream_count && !reader.failed; i++) {
        struct leat_msg_string name = leat_msg_read_string(&reader);
        leat_msg_write_string(writer, name.text, name.bytes);
    }
    return leat_msg_read_done(&reader);
}

/* The bare cursor: skipping takes exactly what is there, or fails. */
static bool recode_skip(const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    (void)writer;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    leat_msg_skip(&reader);
    LEAT_ASSERT(reader.at <= reader.end);
    leat_msg_reader_init(&reader, in, count);
    leat_msg_skip_n(&reader, leat_msg_read_map(&reader));
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const recode_fn recodes[] = {
        recode_hello,      recode_hello_ok,  recode_append,        recode_error,
        recode_settings,   recode_node,      recode_log,           recode_log_info,
        recode_fetch,      recode_fetch_log, recode_stream,        recode_locate,
        recode_located,    recode_fetched,   recode_skip,          recode_set_join,
        recode_set_joined, recode_set_share, recode_set_heartbeat, recode_set_leave,
        recode_set_commit, recode_set_fetch, recode_set_fetched,   recode_recover,
        recode_recovered,  recode_status,    recode_segment_copy,  recode_trim,
        recode_trimmed,
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
