/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/fetch_rig.h"
#include "broker/data/core_data.h"
#include "broker/data/route.h"
#include "broker/net/call.h"

struct fetch_rig it;

/* ---- reads and waits ---- */

static unsigned at_of(const struct leat_fetch_item *item)
{
    unsigned at = 0;
    for (const struct leat_fetch_item *each = item->fetch->items; each != item; each = each->next)
        at++;
    return at;
}

bool leat_fetch_read_at(struct leat_fetch *fetch)
{
    struct leat_fetch_item *item = fetch->at;
    unsigned at = at_of(item);
    if (it.later) return false;
    fetch->at = item->next;
    if (item->refused != LEAT_OK) {
        item->result.code = item->refused;
        fetch->refused = true;
        return true;
    }
    bool by_position = item->result.by_position;
    item->result = it.results[at];
    item->end_missing = it.end_missing;
    item->result.by_position = by_position;
    if (!it.left) item->watch_from = item->result.acked_offset;
    fetch->refused |= item->result.code != LEAT_OK;
    fetch->full |= it.full;
    fetch->bytes += item->result.bytes;
    fetch->records += item->result.bytes / 10;
    if (item->result.bytes == 0 || !it.lent[at]) return true;
    struct leat_fetch_read *read = calloc(1, sizeof *read);
    assert_non_null(read);
    it.reads++;
    read->fetch = fetch;
    read->item = item;
    read->read.iov_count = 3 + at;
    if (fetch->reads_last != NULL)
        fetch->reads_last->next = read;
    else
        fetch->reads = read;
    fetch->reads_last = read;
    return true;
}
void leat_fetch_drop_reads(struct leat_fetch *fetch)
{
    struct leat_fetch_read *read = fetch->reads;
    if (read != NULL) said("drop reads");
    fetch->reads = fetch->reads_last = NULL;
    while (read != NULL) {
        struct leat_fetch_read *next = read->next;
        it.reads--;
        free(read);
        read = next;
    }
}
void leat_fetch_release_read(struct leat_fetch_read *read)
{
    it.reads--;
    free(read);
}
bool leat_fetch_peer_holds_enough(const struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    return it.enough;
}
void leat_fetch_wait(struct leat_fetch *fetch)
{
    fetch->state = LEAT_FETCH_WAITING;
    for (const struct leat_fetch_item *item = fetch->items; item != NULL; item = item->next)
        assert_true(leat_list_empty(&item->waiting)); /* it may stand at its log */
    said("wait until %llu", (unsigned long long)fetch->deadline_us);
}
void leat_fetch_wake(struct leat_fetch *fetch)
{
    assert_int_equal(fetch->state, LEAT_FETCH_WAITING);
    fetch->state = LEAT_FETCH_UNWATCHING;
    said("wake");
}
void leat_fetch_on_timer(struct leat_timer *timer)
{
    (void)timer;
    fail();
}
void leat_fetch_on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    (void)wait, (void)buffer;
    fail();
}

/* ---- what it is made of ---- */

bool leat_stock_admits(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                       uint32_t count)
{
    bool fetches = stock == &alone.cores[0].fetch_pool;
    assert_ptr_equal(peer, &it.peer);
    said("admits %u %s%s?", count, fetches ? "fetch" : "logs", only ? ", its only" : "");
    return fetches ? !it.no_fetch : !it.no_items;
}
bool leat_stock_widen(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    (void)peer, (void)only, (void)count;
    return stock == &alone.cores[0].fetch_pool || !it.no_width;
}
void leat_stock_narrow(struct leat_stock *stock, struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("narrow %s", stock == &alone.cores[0].fetch_pool ? "fetches" : "logs");
}
void leat_stock_wait(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    assert_ptr_equal(peer, &it.peer);
    said("wait for %u %s%s", count, stock == &alone.cores[0].fetch_pool ? "fetch" : "logs",
         only ? ", its only" : "");
}
void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer)
{
    bool fetch = stock == &alone.cores[0].fetch_pool;
    assert_ptr_equal(sharer, &it.sharer);
    size_t bytes = fetch ? sizeof(struct leat_fetch) : sizeof(struct leat_fetch_item);
    void *taken = malloc(bytes);
    assert_non_null(taken);
    memset(taken, 0xa5, bytes); /* whatever it was */
    if (fetch)
        it.fetches++, it.last = taken;
    else
        it.items++;
    return taken;
}
void leat_stock_give(struct leat_stock *stock, void *element, struct leat_peer *peer,
                     struct leat_sharer *sharer)
{
    assert_true(peer == NULL || peer == &it.peer);
    assert_ptr_equal(sharer, &it.sharer);
    if (stock == &alone.cores[0].fetch_pool) {
        assert_ptr_equal(it.stopped, &((struct leat_fetch *)element)->timer);
        it.fetches--;
    } else
        it.items--;
    free(element);
}
void leat_sharer_leave(struct leat_core *core, struct leat_sharer *sharer)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(sharer, &it.sharer);
    said("leave");
}
leat_err leat_partition_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                              uint32_t *out_home, struct leat_error *error)
{
    assert_int_equal(core->index, 0);
    assert_int_equal(epoch, 9);
    *out_home = ref.log % ALONE_CORES;
    return it.route == LEAT_OK ? LEAT_OK : leat_error_set(error, it.route, "not here");
}
const char *leat_partition_absent_words(leat_err absent)
{
    return absent == LEAT_E_STARTING ? "it comes" : "it has gone";
}
bool leat_confirm_needed(const struct leat_core *core)
{
    assert_int_equal(core->index, 0);
    return it.clustered;
}
void leat_confirm_ask(struct leat_core *core, struct leat_confirm *confirm)
{
    assert_int_equal(core->index, 0);
    said("confirm");
    it.confirm = confirm;
}
void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    it.stopped = timer;
}
void leat_buffer_wait_end(struct leat_peer *peer, struct leat_buffer_wait *wait)
{
    assert_ptr_equal(peer, &it.peer);
    leat_list_remove(&wait->link);
}
void leat_buffer_give(struct leat_core *core, void *buffer)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(buffer, &it);
    said("give the buffer");
}

/* ---- the connection ---- */

void leat_peer_begin(struct leat_peer *peer)
{
    peer->requests++;
}
void leat_peer_end(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 1000);
    peer->requests--;
}
bool leat_peer_is_slow(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    return it.slow;
}
void leat_peer_drained(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 1000); /* it is not gone meanwhile */
    said("drained");
}
void leat_peer_owes(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("owes");
}
void leat_lend(struct leat_fetch_read *read)
{
    assert_non_null(read);
    said("lend");
}
void leat_lend_end(struct leat_fetch_read *read)
{
    assert_non_null(read);
    said("back");
}
void leat_lend_taken(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("taken");
}
void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *refusal)
{
    assert_ptr_equal(peer, &it.peer);
    assert_int_equal(kind, LEAT_KIND_FETCH);
    said("refuse %u %s: %s", request, leat_err_name(code), refusal);
}
void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer)
{
    assert_int_equal(core->index, 0);
    leat_msg_writer_init(out_writer, it.scratch + LEAT_FRAME_HEADER_BYTES,
                         sizeof it.scratch - LEAT_FRAME_HEADER_BYTES);
}
void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes)
{
    struct leat_msg_reader reader;
    assert_ptr_equal(peer, &it.peer);
    assert_ptr_equal(out, it.scratch);
    assert_int_equal(kind, LEAT_KIND_FETCH);
    assert_int_equal(flags, LEAT_FRAME_ANSWER);
    said("answer %u, with %u bytes", request, payload_bytes);
    leat_msg_reader_init(&reader, out + LEAT_FRAME_HEADER_BYTES, control_bytes);
    uint32_t count = leat_msg_read_array(&reader);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_fetched row;
        leat_msg_fetched_read(&reader, &row);
        said("  %s %u bytes, %llu to %llu%s%s%.*s", leat_err_name(row.code), row.bytes,
             (unsigned long long)row.first_offset, (unsigned long long)row.acked_offset,
             row.by_position ? ", by position" : "", row.text.bytes > 0 ? ": " : "",
             (int)row.text.bytes, row.text.text);
    }
    assert_true(leat_msg_read_done(&reader));
}
static void net_send(struct leat_conn *conn, struct leat_send *send)
{
    const struct leat_fetch_read *read = LEAT_CONTAINER(send, struct leat_fetch_read, send);
    assert_ptr_equal(conn, &it);
    assert_ptr_equal(send->iovs, read->read.iovs);
    said("send %u", send->iov_count);
    it.sends[it.send_count++] = send;
}

/* ---- the tests' own ---- */

void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    struct leat_core *core = &alone.cores[0];
    it.net.send = net_send;
    core->net = &it.net;
    core->scratch = it.scratch;
    core->item_pool.count = LEAT_FETCH_LOGS_MAX;
    struct leat_list *const lists[] = {&core->data->fetches, &core->data->ready_fetches,
                                       &core->data->deferred_fetches};
    for (unsigned i = 0; i < 3; i++)
        leat_list_init(lists[i]);
    it.peer.core = core;
    it.peer.conn = (void *)&it;
    it.peer.sharer = &it.sharer;
    leat_list_init(&it.peer.limited);
    for (unsigned i = 0; i < FETCH_ITEMS; i++)
        it.results[i] = (struct leat_msg_fetched){.first_offset = 5, .acked_offset = 60};
}

void end(void)
{
    assert_int_equal(it.fetches, 0);
    assert_int_equal(it.items, 0);
    assert_int_equal(it.reads, 0);
    assert_int_equal(it.peer.requests, 0);
    assert_int_equal(it.peer.reads, 0);
    assert_true(leat_list_empty(&alone.cores[0].data->fetches));
    assert_true(leat_list_empty(&alone.cores[0].data->ready_fetches));
    assert_true(leat_list_empty(&alone.cores[0].data->deferred_fetches));
    said_enough();
    alone_end();
}

enum leat_handled frame(uint32_t number, uint32_t logs, uint32_t min_bytes, uint32_t max_bytes,
                        uint32_t wait_ms)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    struct leat_msg_fetch body = {
        .min_bytes = min_bytes, .max_bytes = max_bytes, .wait_ms = wait_ms, .log_count = logs};
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_fetch_write(&writer, &body);
    for (uint32_t i = 0; i < logs && i < FETCH_ITEMS; i++)
        leat_msg_fetch_log_write(
            &writer, &(struct leat_msg_fetch_log){
                         .log = {ALONE_STREAM, 1, i % ALONE_CORES}, .epoch = 9, .offset = 40});
    assert_false(writer.overflow);
    struct leat_frame sent_frame = {
        .request = number, .control = bytes, .control_bytes = (uint32_t)writer.used};
    return leat_fetch_frame(&it.peer, &sent_frame);
}

void has(unsigned at, leat_err code, uint32_t bytes)
{
    it.results[at].code = code;
    it.results[at].bytes = bytes;
    it.lent[at] = bytes > 0;
}

void confirmed(leat_err rc)
{
    struct leat_confirm *confirm = it.confirm;
    assert_non_null(confirm);
    it.confirm = NULL;
    confirm->on_done(confirm, rc);
}

void sent(unsigned at)
{
    struct leat_send *send = it.sends[at];
    assert_non_null(send);
    it.sends[at] = NULL;
    send->on_sent(send, LEAT_OK);
}
