/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients as bytes: see asks.h. */
#include "tests/sim/asks.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "broker/probe.h"
#include "multilog/log.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
    WAIT_MS = 100, /* a fetch is answered after that at the latest */
    KAFKA_API_VERSIONS = 18,
    KAFKA_FETCH = 1,
    KAFKA_LIST_OFFSETS = 2,
};

/* ---- which log ---- */

bool sim_serves(const struct sim_server *server)
{
    return server->process && server->process->alive && server->ready && !server->stopping;
}

static const struct leat_log *log_find(const struct sim_server *server, struct leat_log_ref ref,
                                       uint32_t *out_epoch)
{
    struct leat_partition_seen seen;
    bool has = leat_node_partition_at(server->node, ref, &seen) && !seen.going &&
               leat_node_partition_epoch(server->node, &seen, out_epoch);
    return has ? seen.log : NULL;
}

bool sim_log_epoch(const struct sim_server *server, struct leat_log_ref ref, uint32_t *out_epoch)
{
    return sim_serves(server) && log_find(server, ref, out_epoch) != NULL;
}

bool sim_place_find(const struct sim_server *server, uint32_t stream, unsigned nth,
                    struct sim_place *out_place)
{
    const struct sim_stream *of = &server->scenario->streams[stream];
    const struct leat_log *found[CHECK_STREAMLETS_MAX * CHECK_LOGS_MAX];
    struct sim_place places[CHECK_STREAMLETS_MAX * CHECK_LOGS_MAX];
    unsigned count = 0, all = of->settings.streamlets * of->settings.logs;
    if (!sim_serves(server) || of->id == 0) return false;
    for (unsigned i = 0; i < all; i++) {
        struct sim_place *place = &places[count];
        *place = (struct sim_place){
            .log = {of->id, i / of->settings.logs, i % of->settings.logs},
            .topic = of->name,
            .partition = i,
        };
        found[count] = log_find(server, place->log, &place->epoch);
        if (found[count]) count++;
    }
    if (count == 0) return false;
    struct leat_log_info info;
    leat_log_info(found[nth % count], &info);
    *out_place = places[nth % count];
    out_place->end = info.acked_offset;
    return true;
}

/* ---- the native protocol ---- */

static void writer_begin(struct leat_msg_writer *writer, uint8_t *out)
{
    leat_msg_writer_init(writer, out + LEAT_FRAME_HEADER_BYTES,
                         SIM_ASK_BYTES_MAX - LEAT_FRAME_HEADER_BYTES);
}

static size_t writer_end(const struct leat_msg_writer *writer, uint8_t *out, enum leat_kind kind,
                         uint32_t number)
{
    LEAT_ASSERT(!writer->overflow);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, 0, number, (uint32_t)writer->used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer->used;
}

size_t sim_ask_hello(uint8_t *out, const char *name, int64_t lane, uint32_t number)
{
    struct leat_msg_writer writer;
    writer_begin(&writer, out);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MIN);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MAX);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_i64(&writer, lane);
    return writer_end(&writer, out, LEAT_KIND_HELLO, number);
}

size_t sim_ask_status(uint8_t *out, uint32_t number)
{
    struct leat_msg_writer writer;
    writer_begin(&writer, out);
    leat_msg_write_array(&writer, 0);
    return writer_end(&writer, out, LEAT_KIND_CLUSTER_STATUS, number);
}

size_t sim_ask_describe(uint8_t *out, const char *stream, uint32_t number)
{
    struct leat_msg_writer writer;
    writer_begin(&writer, out);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, stream, strlen(stream));
    return writer_end(&writer, out, LEAT_KIND_STREAM_DESCRIBE, number);
}

size_t sim_ask_fetch(uint8_t *out, const struct sim_place *place, uint64_t offset, uint32_t number)
{
    struct leat_msg_writer writer;
    writer_begin(&writer, out);
    leat_msg_fetch_write(&writer,
                         &(struct leat_msg_fetch){1, leat_node_limits.fetch_bytes, WAIT_MS, 1});
    leat_msg_fetch_log_write(
        &writer,
        &(struct leat_msg_fetch_log){.log = place->log, .epoch = place->epoch, .offset = offset});
    return writer_end(&writer, out, LEAT_KIND_FETCH, number);
}

size_t sim_ask_locate(uint8_t *out, const struct sim_place *place, enum leat_locate what,
                      uint32_t number)
{
    struct leat_msg_writer writer;
    writer_begin(&writer, out);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 1);
    leat_msg_locate_write(&writer, &(struct leat_msg_locate){.log = place->log, .what = what});
    return writer_end(&writer, out, LEAT_KIND_LOCATE, number);
}

/* ---- Kafka's, in the oldest versions served ---- */

struct bytes {
    uint8_t *at;
    size_t used;
};

static void put(struct bytes *to, uint64_t value, unsigned count)
{
    LEAT_ASSERT(to->used + count <= SIM_ASK_BYTES_MAX);
    for (unsigned i = count; i-- > 0; value >>= 8)
        to->at[to->used + i] = (uint8_t)value;
    to->used += count;
}

static void put_text(struct bytes *to, const char *text)
{
    put(to, strlen(text), 2);
    for (const char *at = text; *at; at++)
        put(to, (uint8_t)*at, 1);
}

static struct bytes request_begin(uint8_t *out, unsigned key, unsigned version, uint32_t number)
{
    struct bytes to = {out, 4}; /* the length comes last */
    put(&to, key, 2);
    put(&to, version, 2);
    put(&to, number, 4);
    put_text(&to, ""); /* the client's id */
    return to;
}

static size_t request_end(struct bytes to)
{
    leat_put_be32(to.at, (uint32_t)(to.used - 4));
    return to.used;
}

/* One partition of one topic follows. */
static void put_partition(struct bytes *to, const struct sim_place *place)
{
    put(to, 1, 4);
    put_text(to, place->topic);
    put(to, 1, 4);
    put(to, place->partition, 4);
}

size_t sim_ask_kafka_versions(uint8_t *out, uint32_t number)
{
    return request_end(request_begin(out, KAFKA_API_VERSIONS, 0, number));
}

size_t sim_ask_kafka_fetch(uint8_t *out, const struct sim_place *place, uint64_t offset,
                           uint32_t number)
{
    struct bytes to = request_begin(out, KAFKA_FETCH, 4, number);
    put(&to, UINT32_MAX, 4); /* no replica */
    put(&to, WAIT_MS, 4);
    put(&to, 1, 4); /* byte at least */
    put(&to, leat_node_limits.fetch_bytes, 4);
    put(&to, 0, 1); /* what is not committed, too */
    put_partition(&to, place);
    put(&to, offset, 8);
    put(&to, leat_node_limits.fetch_bytes, 4);
    return request_end(to);
}

size_t sim_ask_kafka_offsets(uint8_t *out, const struct sim_place *place, int64_t time,
                             uint32_t number)
{
    struct bytes to = request_begin(out, KAFKA_LIST_OFFSETS, 1, number);
    put(&to, UINT32_MAX, 4);
    put_partition(&to, place);
    put(&to, (uint64_t)time, 8);
    return request_end(to);
}
