/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/append_rig.h"
#include "broker/data/core_data.h"

#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "wire/message.h"

struct append_rig it;
static size_t bytes_before;

/* ---- what it calls ---- */

uint64_t leat_batch_bytes(const uint8_t *data, size_t bytes)
{
    return bytes < 4 ? 0 : data[0];
}
enum leat_codec leat_batch_codec(const uint8_t *data, size_t bytes)
{
    return bytes < 4 ? LEAT_CODEC_NONE : (enum leat_codec)data[1];
}
leat_err leat_batch_check(const uint8_t *data, size_t bytes, struct leat_batch *out_batch,
                          struct leat_error *error)
{
    assert_int_equal(bytes, data[0]);
    *out_batch = (struct leat_batch){.bytes = data,
                                     .byte_count = data[0],
                                     .codec = (enum leat_codec)data[1],
                                     .record_count = data[3],
                                     .max_timestamp_ms = 500};
    if (data[2] == 0) return LEAT_OK;
    return leat_error_set(error, (leat_err)data[2], "it is wrong");
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(ref.stream, ALONE_STREAM);
    assert_int_equal(ref.streamlet, 1);
    assert_int_equal(core->index, ref.log);
    return it.gone ? NULL : &it.partition[core->index];
}
leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    return it.absent;
}
const char *leat_partition_absent_words(leat_err absent)
{
    return absent == LEAT_E_NO_MEMORY ? "the heap is full" : "?";
}
leat_err leat_partition_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                              uint32_t *out_home, struct leat_error *error)
{
    assert_int_equal(core->index, it.route_core);
    assert_int_equal(epoch, 9);
    if (it.route != LEAT_OK) return leat_error_set(error, it.route, "not here");
    *out_home = ref.log;
    return LEAT_OK;
}
leat_err leat_log_append(struct leat_log *log, const struct leat_batch *batch,
                         struct leat_append *append, struct leat_error *error)
{
    const char *name = log == (void *)&it.partition[0] ? "a" : "b";
    leat_err rc = it.append_at < APPENDS ? it.appends[it.append_at++] : LEAT_OK;
    said("append to %s: %u bytes, %u records, up to %lld, of %u%s", name, batch->byte_count,
         batch->record_count, (long long)batch->max_timestamp_ms, append->address,
         append->duplicate ? ", duplicate" : "");
    if (rc == LEAT_E_AGAIN) return rc;
    if (rc != LEAT_OK) return leat_error_set(error, rc, "the log says no");
    append->first_offset = 100 + 10 * it.waiting_count;
    it.waiting[it.waiting_count++] = append;
    return LEAT_OK;
}
bool leat_log_await_acked(struct leat_log *log, struct leat_append *append)
{
    assert_true(log == (void *)&it.partition[0] || log == (void *)&it.partition[1]);
    if (!it.unacked) return false;
    said("await what is appended");
    append->first_offset = 0;
    it.waiting[it.waiting_count++] = append;
    return true;
}
bool leat_confirm_needed(const struct leat_core *core)
{
    (void)core;
    return it.clustered;
}
void leat_confirm_ask(struct leat_core *core, struct leat_confirm *confirm)
{
    said("confirm on %u", core->index);
    it.confirm = confirm;
}
leat_err leat_unpack(struct leat_peer *peer, struct leat_batch *batch, struct leat_error *error)
{
    assert_ptr_equal(peer, &it.peer);
    leat_err rc = it.unpack_at < APPENDS ? it.unpacks[it.unpack_at++] : LEAT_OK;
    said("unpack %u bytes", batch->byte_count);
    if (rc == LEAT_OK) batch->max_timestamp_ms = 700;
    return rc == LEAT_OK || rc == LEAT_E_AGAIN ? rc : leat_error_set(error, rc, "bad records");
}
bool leat_unpack_waits(const struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    return it.unpack_waits;
}
void leat_unpack_leave(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("leave unpack");
}

/* ---- the connection, and stocks ---- */

void leat_peer_begin(struct leat_peer *peer)
{
    peer->requests++;
}
void leat_peer_end(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 1000);
    peer->requests--;
}
void leat_peer_pause(struct leat_peer *peer, enum leat_pause why)
{
    assert_ptr_equal(peer, &it.peer);
    assert_int_equal(why, LEAT_PAUSE_ROOM);
    said("pause");
}
void leat_peer_resume(struct leat_peer *peer, enum leat_pause why)
{
    assert_ptr_equal(peer, &it.peer);
    assert_int_equal(why, LEAT_PAUSE_ROOM);
    said("resume");
}
void leat_peer_send_bytes(struct leat_peer *peer, const void *bytes, size_t count)
{
    assert_ptr_equal(peer, &it.peer);
    assert_in_range(it.answer_bytes + count, 1, ANSWER_MOST);
    memcpy(it.answer + it.answer_bytes, bytes, count);
    it.answer_bytes += count;
    said("send");
}
bool leat_stock_admits(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                       uint32_t count)
{
    assert_ptr_equal(stock, &alone.cores[0].part_pool);
    assert_ptr_equal(peer, &it.peer);
    said("admits %u parts%s?", count, only ? ", its only" : "");
    return !it.no_parts;
}
bool leat_stock_widen(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    assert_ptr_equal(stock, &alone.cores[0].part_pool);
    assert_ptr_equal(peer, &it.peer);
    (void)only, (void)count;
    return !it.no_width;
}
void leat_stock_narrow(struct leat_stock *stock, struct leat_peer *peer)
{
    assert_ptr_equal(stock, &alone.cores[0].part_pool);
    assert_ptr_equal(peer, &it.peer);
    said("narrow");
}
void leat_stock_wait(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    assert_ptr_equal(stock, &alone.cores[0].part_pool);
    assert_ptr_equal(peer, &it.peer);
    said("wait for %u parts%s", count, only ? ", its only" : "");
}
void *leat_stock_take_for(struct leat_stock *stock, struct leat_peer *peer, bool only)
{
    assert_ptr_equal(stock, &alone.cores[0].append_pool);
    assert_ptr_equal(peer, &it.peer);
    (void)only;
    if (it.no_request) return NULL;
    it.requests++;
    void *request = malloc(sizeof(struct leat_append_request));
    assert_non_null(request);
    memset(request, 0xa5, sizeof(struct leat_append_request)); /* whatever it was */
    return request;
}
void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer)
{
    assert_ptr_equal(stock, &alone.cores[0].part_pool);
    assert_ptr_equal(sharer, it.peer.sharer);
    it.parts++;
    void *part = malloc(sizeof(struct leat_append_part));
    assert_non_null(part);
    memset(part, 0xa5, sizeof(struct leat_append_part));
    return part;
}
void leat_stock_give(struct leat_stock *stock, void *element, struct leat_peer *peer,
                     struct leat_sharer *sharer)
{
    assert_ptr_equal(peer, &it.peer);
    assert_ptr_equal(sharer, it.peer.sharer);
    bool request = stock == &alone.cores[0].append_pool;
    if (request)
        it.requests--;
    else
        it.parts--;
    free(element);
}

/* ---- the tests' own ---- */

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    it.peer.core = &alone.cores[0];
    it.peer.conn = (void *)&it;
    it.peer.sharer = (void *)&it;
    it.peer.address = 6;
    leat_list_init(&it.peer.answers);
    leat_list_init(&it.peer.room.by_log);
    leat_list_init(&it.peer.room.by_time);
    for (uint32_t i = 0; i < ALONE_CORES; i++) {
        struct leat_core *core = &alone.cores[i];
        leat_list_init(&core->answer_peers);
        leat_list_init(&core->data->room_waits);
        core->data->forward_bytes_max = 1000;
        it.partition[i] = (struct leat_partition){.ref = {ALONE_STREAM, 1, i},
                                                  .core = core,
                                                  .stream = &alone.stream,
                                                  .log = (void *)&it.partition[i]};
        leat_list_init(&it.partition[i].blocked);
        alone.cores[i].scratch = malloc(LEAT_CORE_SCRATCH_BYTES);
        assert_non_null(alone.cores[i].scratch);
    }
    alone.node.forwards_bytes_max = 2000;
    alone.desc->settings.validate = LEAT_VALIDATE_FULL;
}

void end(void)
{
    assert_null(it.peer.append_first);
    assert_null(it.peer.append_last);
    assert_null(it.peer.append_now);
    assert_int_equal(it.peer.requests, 0);
    assert_int_equal(it.requests, 0);
    assert_int_equal(it.parts, 0);
    assert_int_equal(atomic_load(&alone.node.forwards_bytes), 0);
    for (uint32_t i = 0; i < ALONE_CORES; i++) {
        assert_int_equal(alone.cores[i].data->forward_bytes, 0);
        assert_true(leat_list_empty(&alone.cores[i].data->room_waits));
        assert_true(leat_list_empty(&it.partition[i].blocked));
        free(alone.cores[i].scratch);
    }
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

enum leat_handled frame(uint32_t number, uint32_t log, const struct batch *batches, uint32_t count,
                        uint32_t said_count)
{
    uint8_t control[64], payload[1024];
    uint32_t used = 0;
    struct leat_msg_writer writer;
    struct leat_msg_append body = {{ALONE_STREAM, 1, log}, 9, said_count};
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_append_write(&writer, &body);
    memset(payload, 0xee, sizeof payload);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(payload + used, &batches[i], 4);
        used += batches[i].bytes;
    }
    struct leat_frame sent = {.request = number,
                              .control = control,
                              .control_bytes = (uint32_t)writer.used,
                              .payload = payload,
                              .payload_bytes = used - it.cut};
    enum leat_handled handled = leat_append_frame(&it.peer, &sent);
    memset(payload, 0xdd, sizeof payload); /* the connection's, and gone */
    return handled;
}

enum leat_handled frame_plain(uint32_t number, uint32_t log)
{
    return frame(number, log, &(struct batch){10, PLAIN, 0, 2}, 1, 1);
}

void acked(unsigned at, leat_err rc)
{
    struct leat_append *append = it.waiting[at];
    assert_non_null(append);
    it.waiting[at] = NULL;
    append->on_acked(append, rc);
}

static void answer_say(const struct leat_frame *answer)
{
    char line[512];
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    size_t used = (size_t)snprintf(line, sizeof line, "answer %u:", answer->request);
    if (answer->flags & LEAT_FRAME_ERROR) {
        struct leat_msg_error error;
        assert_int_equal(leat_msg_error_decode(answer->control, answer->control_bytes, &error),
                         LEAT_OK);
        said("%s error %s: %.*s", line, leat_err_name(error.code), (int)error.text.bytes,
             error.text.text);
        return;
    }
    uint32_t count = leat_msg_read_array(&reader);
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        if (reader.at < reader.end && (*reader.at & 0xf0) != 0x90) { /* no array: the sentence */
            struct leat_msg_string words = leat_msg_read_string(&reader);
            used += (size_t)snprintf(line + used, sizeof line - used, " %.*s", (int)words.bytes,
                                     words.text);
            continue;
        }
        assert_int_equal(leat_msg_read_array(&reader), 2);
        uint64_t code = leat_msg_read_u64(&reader), offset = leat_msg_read_u64(&reader);
        used += (size_t)snprintf(line + used, sizeof line - used, " %s %llu",
                                 leat_err_name((leat_err)code), (unsigned long long)offset);
    }
    assert_false(reader.failed);
    said("%s", line);
}

void answers(void)
{
    said_enough();
    bool wanted = !leat_list_empty(&it.peer.answers);
    leat_list_remove(&it.peer.answers);
    it.answer_bytes = 0;
    if (wanted) leat_append_answer(&it.peer);
    said_enough();
    for (size_t at = 0; at < it.answer_bytes;) {
        struct leat_frame answer;
        size_t want;
        assert_int_equal(leat_frame_decode(it.answer + at, it.answer_bytes - at, &answer, &want),
                         LEAT_OK);
        assert_int_equal(answer.kind, LEAT_KIND_APPEND);
        assert_true(answer.flags & LEAT_FRAME_ANSWER);
        answer_say(&answer);
        at += answer.frame_bytes;
    }
}
