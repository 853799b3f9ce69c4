/* SPDX-License-Identifier: Apache-2.0 */
/* The msgpack cursor: bounds before bytes, no allocation, strings are views. */
#include "wire/msg.h"

#include "base/bytes.h"
#include "base/node_log.h"

enum { NESTING_MAX = 8 };

void leat_msg_reader_init(struct leat_msg_reader *reader, const void *bytes, size_t count)
{
    *reader = (struct leat_msg_reader){.at = bytes};
    reader->end = count > 0 ? reader->at + count : reader->at; /* nothing may be NULL */
}

static const uint8_t *take(struct leat_msg_reader *reader, size_t count)
{
    if (reader->failed || count > (size_t)(reader->end - reader->at)) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *at = reader->at;
    reader->at += count;
    return at;
}

/* A big-endian unsigned of 1, 2, 4 or 8 bytes. */
static uint64_t take_number(struct leat_msg_reader *reader, uint32_t width)
{
    const uint8_t *at = take(reader, width);
    if (at == NULL) return 0;
    switch (width) {
    case 1:
        return *at;
    case 2:
        return leat_get_be16(at);
    case 4:
        return leat_get_be32(at);
    default:
        return leat_get_be64(at);
    }
}

static uint8_t take_tag(struct leat_msg_reader *reader)
{
    const uint8_t *at = take(reader, 1);
    return at == NULL ? 0xc1 /* never used by msgpack: nothing accepts it */ : *at;
}

static uint64_t fail(struct leat_msg_reader *reader)
{
    reader->failed = true;
    return 0;
}

uint32_t leat_msg_read_array(struct leat_msg_reader *reader)
{
    uint8_t tag = take_tag(reader);
    uint64_t count;
    if ((tag & 0xf0) == 0x90)
        count = tag & 0x0f;
    else if (tag == 0xdc || tag == 0xdd)
        count = take_number(reader, tag == 0xdc ? 2 : 4);
    else
        return (uint32_t)fail(reader);
    /* An element takes a byte at least: no loop or allocation for missing elements. */
    if (reader->failed || count > (uint64_t)(reader->end - reader->at))
        return (uint32_t)fail(reader);
    return (uint32_t)count;
}

uint32_t leat_msg_read_map(struct leat_msg_reader *reader)
{
    uint8_t tag = take_tag(reader);
    uint64_t count;
    if ((tag & 0xf0) == 0x80)
        count = tag & 0x0f;
    else if (tag == 0xde || tag == 0xdf)
        count = take_number(reader, tag == 0xde ? 2 : 4);
    else
        return (uint32_t)fail(reader);
    if (reader->failed || count * 2 > (uint64_t)(reader->end - reader->at))
        return (uint32_t)fail(reader);
    return (uint32_t)count;
}

/* Any integer form. Negative ones come back with *out_negative set. */
static uint64_t read_integer(struct leat_msg_reader *reader, bool *out_negative)
{
    uint8_t tag = take_tag(reader);
    *out_negative = false;
    if (tag < 0x80) return tag;
    if (tag >= 0xe0) {
        *out_negative = true;
        return (uint64_t)(int64_t)(int8_t)tag;
    }
    if (tag >= 0xcc && tag <= 0xcf) return take_number(reader, 1u << (tag - 0xcc));
    if (tag < 0xd0 || tag > 0xd3) return fail(reader);
    uint32_t width = 1u << (tag - 0xd0);
    uint64_t raw = take_number(reader, width);
    uint32_t shift = 64 - 8 * width;
    int64_t value = (int64_t)(raw << shift) >> shift;
    *out_negative = value < 0;
    return (uint64_t)value;
}

uint64_t leat_msg_read_u64(struct leat_msg_reader *reader)
{
    bool negative;
    uint64_t value = read_integer(reader, &negative);
    return negative || reader->failed ? fail(reader) : value;
}

uint32_t leat_msg_read_u32(struct leat_msg_reader *reader)
{
    uint64_t value = leat_msg_read_u64(reader);
    return (uint32_t)(value > UINT32_MAX ? fail(reader) : value);
}

struct leat_log_ref leat_msg_read_log(struct leat_msg_reader *reader)
{
    struct leat_log_ref log;
    log.stream = leat_msg_read_u32(reader);
    log.streamlet = leat_msg_read_u32(reader);
    log.log = leat_msg_read_u32(reader);
    return log;
}

int64_t leat_msg_read_i64(struct leat_msg_reader *reader)
{
    bool negative;
    uint64_t value = read_integer(reader, &negative);
    if (reader->failed || (!negative && value > INT64_MAX)) return (int64_t)fail(reader);
    return (int64_t)value;
}

bool leat_msg_read_bool(struct leat_msg_reader *reader)
{
    uint8_t tag = take_tag(reader);
    if (tag == 0xc2 || tag == 0xc3) return tag == 0xc3;
    return fail(reader) != 0;
}

struct leat_msg_string leat_msg_read_string(struct leat_msg_reader *reader)
{
    uint8_t tag = take_tag(reader);
    uint64_t count;
    if ((tag & 0xe0) == 0xa0)
        count = tag & 0x1f;
    else if (tag >= 0xd9 && tag <= 0xdb)
        count = take_number(reader, 1u << (tag - 0xd9));
    else if (tag >= 0xc4 && tag <= 0xc6)
        count = take_number(reader, 1u << (tag - 0xc4));
    else
        count = fail(reader);
    const uint8_t *text = take(reader, (size_t)count);
    if (text == NULL) return (struct leat_msg_string){"", 0};
    return (struct leat_msg_string){(const char *)text, (uint32_t)count};
}

/* Step over one value's own bytes; returns how many values lie inside it. */
static uint64_t skip_shallow(struct leat_msg_reader *reader)
{
    if (reader->at == reader->end) return fail(reader);
    uint8_t tag = *reader->at;
    if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) return leat_msg_read_array(reader);
    if ((tag & 0xf0) == 0x80 || tag == 0xde || tag == 0xdf)
        return 2 * (uint64_t)leat_msg_read_map(reader);
    if ((tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb) || (tag >= 0xc4 && tag <= 0xc6)) {
        (void)leat_msg_read_string(reader); /* only stepped over; failure is sticky */
        return 0;
    }
    (void)take(reader, 1);
    if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return 0;
    if (tag == 0xca || tag == 0xcb)
        (void)take(reader, tag == 0xca ? 4 : 8); /* float, double */
    else if (tag >= 0xcc && tag <= 0xd3)
        (void)take(reader, (size_t)1 << ((tag - 0xcc) & 3)); /* integers */
    else if (tag >= 0xd4 && tag <= 0xd8)
        (void)take(reader, 1 + ((size_t)1 << (tag - 0xd4))); /* fixed extensions */
    else if (tag >= 0xc7 && tag <= 0xc9)
        (void)take(reader, 1 + (size_t)take_number(reader, 1u << (tag - 0xc7)));
    else
        return fail(reader);
    return 0;
}

void leat_msg_skip(struct leat_msg_reader *reader)
{
    uint64_t left[NESTING_MAX + 1] = {1}; /* values still to skip at each depth */
    uint32_t depth = 0;
    while (!reader->failed) {
        while (left[depth] == 0) {
            if (depth == 0) return;
            depth--;
        }
        left[depth]--;
        uint64_t inner = skip_shallow(reader);
        if (inner == 0) continue;
        if (depth == NESTING_MAX) {
            reader->failed = true;
            return;
        }
        left[++depth] = inner;
    }
}

void leat_msg_skip_n(struct leat_msg_reader *reader, uint32_t count)
{
    for (uint32_t i = 0; i < count && !reader->failed; i++)
        leat_msg_skip(reader);
}

void leat_msg_texts_clean(uint8_t *body, size_t bytes)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, body, bytes);
    while (!reader.failed && reader.at < reader.end) {
        uint8_t tag = *reader.at;
        if ((tag & 0xe0) != 0xa0 && (tag < 0xd9 || tag > 0xdb)) {
            (void)skip_shallow(&reader);
            continue;
        }
        struct leat_msg_string text = leat_msg_read_string(&reader);
        if (!reader.failed) leat_node_log_clean((char *)(uintptr_t)text.text, text.bytes);
    }
}

bool leat_msg_read_done(const struct leat_msg_reader *reader)
{
    return !reader->failed && reader->at == reader->end;
}

bool leat_msg_read_end(struct leat_msg_reader *reader, uint32_t left)
{
    leat_msg_skip_n(reader, left);
    return leat_msg_read_done(reader);
}
