/* SPDX-License-Identifier: Apache-2.0 */
/* Where the copies of a stream are, by places.c alone: which nodes a core asks, what it makes of the answers, for how
 * long it remembers them, and which requests wait for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/places.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

enum { STREAMS = 4, ASKS = 8, SILENT = 900 /* can't be asked */ };

static struct {
    struct leat_core *core; /* that asks */
    struct leat_stream streams[STREAMS];
    uint32_t count, gone; /* streams; the id of one that is not there any more */
    unsigned refs;
    struct leat_ask *asks[ASKS];
    unsigned ask_count;
    struct leat_partition partition[6][ALONE_LOGS]; /* of the first stream, by streamlet */
    struct leat_rep_places told[6][ALONE_LOGS];
    bool begun[6][ALONE_LOGS];
    uint8_t answer[512];
} it;

/* ---- what it calls ---- */

struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    assert_ptr_equal(core, it.core);
    return id >= 1 && id <= it.count && id != it.gone ? &it.streams[id - 1] : NULL;
}
uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(logs, it.streams[ref.stream - 1].desc->settings.logs);
    return ref.log % ALONE_CORES;
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(ref.log % ALONE_CORES, core->index);
    assert_in_range(ref.stream, 1, it.count);
    assert_in_range(ref.streamlet, 0, it.streams[ref.stream - 1].desc->streamlet_count - 1);
    if (ref.stream != 1 || ref.streamlet >= 6) return NULL;
    struct leat_partition *partition = &it.partition[ref.streamlet][ref.log];
    return partition->core != NULL ? partition : NULL;
}
bool leat_primary_log_places(const struct leat_primary_log *rep, struct leat_rep_places *out)
{
    size_t at = (size_t)((const struct leat_rep_places *)(const void *)rep - &it.told[0][0]);
    assert_in_range(at, 0, 6 * ALONE_LOGS - 1);
    assert_int_equal(out->count, 0);
    if (!(&it.begun[0][0])[at]) return false;
    *out = (&it.told[0][0])[at];
    return true;
}
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, control, control_bytes);
    uint32_t fields = leat_msg_read_array(&reader), id = leat_msg_read_u32(&reader);
    assert_ptr_equal(core, it.core);
    assert_int_equal(kind, LEAT_KIND_PLACES);
    assert_false(reader.failed);
    assert_int_equal(fields, 1);
    assert_int_equal(ask->timeout_us, LEAT_PLACES_ASK_US_MAX);
    said("ask %llu of %u", (unsigned long long)incarnation, id);
    if (incarnation == 0 || incarnation >= SILENT)
        return leat_error_set(error, LEAT_E_AGAIN, "down");
    assert_in_range(it.ask_count, 0, ASKS - 1);
    it.asks[it.ask_count++] = ask;
    return LEAT_OK;
}
void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    atomic_fetch_add(&desc->refs, 1);
    it.refs++;
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    assert_in_range(atomic_fetch_sub(&desc->refs, 1), 1, 1000);
    it.refs--;
}

/* ---- streams ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    for (unsigned q = 0; q < ALONE_CORES; q++)
        leat_places_init(&alone.cores[q]);
    it.core = &alone.cores[1];
    for (uint32_t s = 0; s < 6; s++)
        for (uint32_t q = 0; q < ALONE_LOGS; q++)
            it.partition[s][q].log = (void *)&it;
}

static void end(void)
{
    for (uint32_t i = 0; i < it.count; i++) {
        leat_places_forget(it.core, &it.streams[i]);
        assert_null(it.streams[i].places);
        free(it.streams[i].desc);
    }
    assert_int_equal(it.core->admin->placer->logs, 0);
    assert_true(leat_list_empty(&it.core->admin->placer->known));
    assert_int_equal(it.refs, 0);
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), 0);
    alone_end();
}

static struct leat_stream_desc *desc_of(uint32_t id, const uint64_t *owners, uint32_t count)
{
    struct leat_stream_desc *desc = calloc(1, sizeof *desc + count * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    desc->id = id;
    desc->settings = alone.desc->settings;
    desc->streamlet_count = count;
    for (uint32_t s = 0; s < count; s++)
        desc->streamlets[s].owner = owners != NULL ? owners[s] : ALONE_SELF;
    return desc;
}

/* Its id; owners NULL: all are this node's. */
static uint32_t stream_of(const uint64_t *owners, uint32_t count)
{
    uint32_t id = it.count + 1;
    it.streams[it.count++] = (struct leat_stream){.desc = desc_of(id, owners, count)};
    return id;
}

static bool want(uint32_t id)
{
    return leat_places_want(it.core, id);
}

/* The first question is answered. */
static void answered(leat_err rc, const struct leat_msg_writer *rows)
{
    struct leat_ask *ask = it.asks[0];
    struct leat_frame frame = {0};
    assert_in_range(it.ask_count, 1, ASKS);
    memmove(it.asks, it.asks + 1, --it.ask_count * sizeof it.asks[0]);
    if (rows != NULL) {
        assert_false(rows->overflow);
        frame.control = rows->bytes;
        frame.control_bytes = (uint32_t)rows->used;
    }
    ask->on_done(ask, rc, rows != NULL ? &frame : NULL, "why");
}

static struct leat_msg_writer rows_begin(uint32_t count)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, it.answer, sizeof it.answer);
    leat_msg_write_array(&writer, count);
    return writer;
}

/* What is known of the logs of a stream: "-" nothing, else how many are whole, of which nodes. */
static const char *known(uint32_t id)
{
    static char text[512];
    const struct leat_stream *stream = &it.streams[id - 1];
    size_t at = 0;
    for (uint32_t i = 0; i < stream->desc->streamlet_count * ALONE_LOGS; i++) {
        const struct leat_log_places *log =
            leat_front_places(it.core, id, i / ALONE_LOGS, i % ALONE_LOGS);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", i > 0 ? " " : "");
        if (log == NULL) at += (size_t)snprintf(text + at, sizeof text - at, "-");
        if (log == NULL) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%u:", log->others.whole);
        for (uint32_t n = 0; n < log->others.count; n++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%u", log->others.nodes[n]);
    }
    return text;
}

static void hosts(uint32_t streamlet, uint32_t log)
{
    it.partition[streamlet][log].core = &alone.cores[log];
}

/* The other copies of the log are on nodes 3 and 4, one of these copies is complete. */
static void has_copies(uint32_t streamlet, uint32_t log)
{
    hosts(streamlet, log);
    it.partition[streamlet][log].copies = (void *)&it.told[streamlet][log];
    it.begun[streamlet][log] = true;
    it.told[streamlet][log] = (struct leat_rep_places){.count = 2, .whole = 1, .nodes = {3, 4}};
}

/* ---- who is asked ---- */

static void every_other_owner_is_asked_once(void **state)
{
    (void)state;
    static const uint64_t owners[] = {0,      201, 202,    201,        SILENT,
                                      SILENT, 203, SILENT, ALONE_SELF, 202};
    begin();
    uint32_t id = stream_of(owners, 10);
    assert_true(want(id));
    assert_said("ask 0 of 1\nask 201 of 1\nask 202 of 1\nask 900 of 1\nask 203 of 1\nmail to 0\n");
    assert_int_equal(it.core->admin->placer->ask_count, 1);
    assert_int_equal(it.refs, 1);
    alone_deliver();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("");
    assert_true(want(id)); /* it is being asked */
    for (unsigned i = 0; i < 2; i++) {
        answered(LEAT_E_TIMEOUT, NULL);
        assert_int_equal(it.core->admin->placer->ask_count, 1);
    }
    answered(LEAT_E_AGAIN, NULL);
    assert_int_equal(it.core->admin->placer->ask_count, 0);
    assert_int_equal(it.core->admin->placer->logs, 20);
    assert_false(want(id));
    assert_said("");
    assert_string_equal(known(id), "- - - - - - - - - - - - - - - - - - - -");
    end();
}

static void logs_of_this_node_are_looked_at_on_their_cores(void **state)
{
    (void)state;
    begin();
    uint32_t id = stream_of(NULL, 6);
    hosts(0, 0); /* one copy */
    has_copies(0, 1);
    has_copies(1, 0);
    it.told[1][0].count = 7;
    it.told[1][0].whole = 7;
    memcpy(it.told[1][0].nodes, "\1\2\3\4\5\6\7", 7);
    has_copies(1, 1);
    it.begun[1][1] = false;
    has_copies(2, 0), has_copies(2, 1);
    it.partition[2][0].log = NULL;
    it.partition[2][1].state = LEAT_PARTITION_GOES;
    has_copies(5, 1);
    assert_true(want(id));
    assert_said("mail to 0\n");
    assert_string_equal(known(id), "- - - - - - - - - - - -");
    alone_deliver_all();
    assert_said("mail to 1\nmail to 1\n");
    assert_string_equal(known(id), "0: 1:34 7:1234567 - - - - - - - - 1:34");
    end();
}

static void answers_are_read_as_far_as_they_hold(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201, 202, 201, 201, 201, 201};
    begin();
    uint32_t id = stream_of(owners, 6);
    assert_true(want(id));
    alone_deliver_all();
    struct leat_msg_writer rows = rows_begin(13);
    leat_msg_write_bin(&rows, "", 0);
    leat_msg_write_bin(&rows, "\0", 1);
    leat_msg_write_bin(&rows, "\1\5", 2); /* of another's streamlet */
    leat_msg_write_bin(&rows, "\1\5", 2);
    leat_msg_write_bin(&rows, "\1\5", 2);
    leat_msg_write_bin(&rows, "\2\5", 2); /* more are whole than there are */
    leat_msg_write_bin(&rows, "\7\1\2\3\4\5\6\7", 8);
    leat_msg_write_bin(&rows, "\7\1\2\3\4\5\6\7\7", 9); /* more than there may be */
    leat_msg_write_bin(&rows, "\0\6\7", 3);
    leat_msg_write_bin(&rows, "\2\6\7", 3);
    leat_msg_write_bin(&rows, "\1", 1);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    leat_msg_write_bin(&rows, "\1\2\3", 3); /* one log too many */
    answered(LEAT_OK, &rows);
    rows = rows_begin(4);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    leat_msg_write_bin(&rows, "", 0);
    leat_msg_write_bin(&rows, "\2\2\3", 3);
    leat_msg_write_u64(&rows, 5); /* is no row */
    answered(LEAT_OK, &rows);
    assert_string_equal(known(id), "- 0: 2:23 - 1:5 - 7:1234567 - 0:67 2:67 - 1:23");
    end();
}

/* Bytes behind as many rows as there should be are no row. The owner may have changed: what this node has of its own
 * log comes before the answer of another node. */
static void own_log_comes_before_what_others_say(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201};
    begin();
    uint32_t id = stream_of(owners, 1);
    assert_null(leat_places_of(&it.streams[0], 0, 0));
    hosts(0, 0);
    assert_true(want(id));
    struct leat_msg_writer rows = rows_begin(1);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    answered(LEAT_OK, &rows);
    alone_deliver_all();
    assert_string_equal(known(id), "0: -");
    said_enough();
    end();
}

static void refusal_is_not_read(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201};
    begin();
    uint32_t id = stream_of(owners, 1);
    assert_true(want(id));
    alone_deliver_all();
    struct leat_msg_writer rows = rows_begin(1);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    answered(LEAT_E_AGAIN, &rows);
    assert_string_equal(known(id), "- -");
    assert_int_equal(it.core->admin->placer->logs, 2);
    end();
}

/* ---- for how long it is remembered ---- */

static void answers_are_remembered_for_a_while(void **state)
{
    (void)state;
    begin();
    uint32_t id = stream_of(NULL, 1);
    has_copies(0, 0), has_copies(0, 1);
    assert_true(want(id));
    alone.now_us += 10;
    alone_deliver_all();
    said_enough();
    assert_string_equal(known(id), "1:34 1:34");
    assert_false(want(id));
    alone.now_us += LEAT_PLACES_FRESH_US - 11;
    assert_false(want(id));
    assert_said("");
    alone.now_us++;
    it.begun[0][0] = false;
    it.told[0][1].whole = 2;
    assert_false(want(id));
    assert_said("mail to 0\n");
    assert_false(want(id)); /* already asked */
    assert_said("");
    alone_deliver_all();
    said_enough();
    assert_string_equal(known(id), "1:34 2:34"); /* who did not say is as it was */
    assert_int_equal(it.core->admin->placer->logs, 2);
    /* The stream has changed: it is asked about at once. */
    struct leat_stream_desc *old = it.streams[0].desc;
    it.streams[0].desc = desc_of(id, NULL, 3);
    assert_false(want(id));
    assert_said("mail to 0\n");
    it.begun[0][1] = false;
    has_copies(1, 0);
    alone_deliver_all();
    assert_string_equal(known(id), "1:34 2:34 1:34 - - -");
    assert_int_equal(it.core->admin->placer->logs, 6);
    assert_null(leat_places_of(&it.streams[0], 3, 0));
    free(old);
    said_enough();
    end();
}

static void stream_is_not_asked_about(void **state)
{
    (void)state;
    begin();
    assert_false(want(1));
    assert_null(leat_front_places(it.core, 1, 0, 0));
    uint32_t id = stream_of(NULL, 1);
    for (uint32_t copies = 0; copies < 2; copies++) {
        it.streams[0].desc->settings.copies = copies;
        assert_false(want(id));
    }
    it.streams[0].desc->settings.copies = 2;
    it.core->stopping = true;
    assert_false(want(id));
    assert_null(it.streams[0].places);
    assert_said("");
    it.core->stopping = false;
    assert_true(want(id));
    assert_said("mail to 0\n");
    alone_deliver_all();
    said_enough();
    end();
}

static void stream_is_asked_about_when_there_is_memory(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201, 201, 202};
    begin();
    uint32_t id = stream_of(owners, 3);
    for (unsigned n = 1; n <= 4; n++) { /* what is remembered, the question, its rows, the owners */
        leat_mem_fail_at(n);
        assert_false(want(id));
        leat_mem_fail_at(0);
        assert_said("");
        assert_int_equal(it.core->admin->placer->ask_count, 0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), 0);
        assert_int_equal(it.refs, 0);
        leat_places_forget(it.core, &it.streams[0]);
    }
    assert_true(want(id));
    assert_said("ask 201 of 1\nask 202 of 1\nmail to 0\n");
    alone_deliver_all();
    answered(LEAT_E_TIMEOUT, NULL);
    answered(LEAT_E_TIMEOUT, NULL);
    assert_int_equal(it.core->admin->placer->ask_count, 0);
    said_enough();
    end();
}

static void so_many_streams_are_asked_about_at_one_time(void **state)
{
    (void)state;
    begin();
    uint32_t id = stream_of(NULL, 1);
    it.core->admin->placer->ask_count = LEAT_PLACES_ASKS_MAX;
    assert_false(want(id));
    assert_said("");
    it.core->admin->placer->ask_count = LEAT_PLACES_ASKS_MAX - 1;
    assert_true(want(id));
    assert_int_equal(it.core->admin->placer->ask_count, LEAT_PLACES_ASKS_MAX);
    alone_deliver_all();
    assert_int_equal(it.core->admin->placer->ask_count, LEAT_PLACES_ASKS_MAX - 1);
    said_enough();
    end();
}

static void least_lately_wanted_streams_are_forgotten(void **state)
{
    (void)state;
    enum { HALF = LEAT_PLACES_LOGS_MAX / ALONE_LOGS / 2 };
    begin();
    for (unsigned i = 0; i < 2; i++)
        (void)stream_of(NULL, HALF);
    for (uint32_t id = 1; id <= 2; id++) {
        (void)want(id);
        alone_deliver_all();
    }
    assert_int_equal(it.core->admin->placer->logs, LEAT_PLACES_LOGS_MAX);
    assert_non_null(it.streams[0].places);
    (void)want(1); /* now the second is least lately wanted */
    (void)stream_of(NULL, 1);
    (void)want(3);
    alone_deliver_all();
    assert_non_null(it.streams[0].places);
    assert_null(it.streams[1].places);
    assert_non_null(it.streams[2].places);
    assert_int_equal(it.core->admin->placer->logs, LEAT_PLACES_LOGS_MAX / 2 + 2);
    said_enough();
    end();
}

static void stream_goes_while_it_is_asked_about(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        uint32_t id = stream_of(NULL, 1);
        has_copies(0, 0);
        assert_true(want(id));
        if (i == 0) it.gone = id;
        leat_places_forget(it.core, &it.streams[0]);
        leat_places_forget(it.core, &it.streams[0]);
        alone_deliver_all();
        assert_null(it.streams[0].places);
        assert_int_equal(it.core->admin->placer->ask_count, 0);
        said_enough();
        end();
    }
}

/* ---- who waits ---- */

static void wait_is_over(struct leat_places_wait *wait)
{
    assert_true(leat_list_empty(&wait->link));
    said("go on %s", (const char *)wait->owner);
}

static void waits_end_when_all_before_them_was_answered(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201, 202, 203};
    for (unsigned order = 0; order < 2; order++) {
        begin();
        struct leat_places_wait waits[] = {{.on_done = wait_is_over, .owner = (void *)"a"},
                                           {.on_done = wait_is_over, .owner = (void *)"b"},
                                           {.on_done = wait_is_over, .owner = (void *)"c"}};
        for (unsigned i = 0; i < 3; i++)
            assert_true(want(stream_of(&owners[i], 1))), leat_places_wait(it.core, &waits[i]);
        alone_deliver_all();
        said_enough();
        if (order == 0) {
            answered(LEAT_E_AGAIN, NULL);
            assert_said("go on a\n");
            answered(LEAT_E_AGAIN, NULL);
            assert_said("go on b\n");
        } else {
            struct leat_ask *first = it.asks[0];
            it.asks[0] = it.asks[1], it.asks[1] = first;
            answered(LEAT_E_AGAIN, NULL);
            assert_said("");
            answered(LEAT_E_AGAIN, NULL);
            assert_said("go on a\ngo on b\n");
        }
        answered(LEAT_E_AGAIN, NULL);
        assert_said("go on c\n");
        end();
    }
}

static void core_ends_while_others_are_asked(void **state)
{
    (void)state;
    static const uint64_t owners[] = {201, 202};
    begin();
    assert_true(want(stream_of(owners, 2)));
    assert_true(want(stream_of(owners, 2)));
    alone_deliver_all();
    answered(LEAT_E_TIMEOUT, NULL); /* of two that one stream waits for */
    said_enough();
    leat_places_fini(it.core);
    assert_true(leat_list_empty(&it.core->admin->placer->asks));
    struct leat_msg_writer rows = rows_begin(1);
    leat_msg_write_bin(&rows, "\1\2\3", 3);
    while (it.ask_count > 0)
        answered(it.ask_count % 2 == 0 ? LEAT_OK : LEAT_E_CANCELLED, &rows);
    assert_said("");
    end();
}

/* ---- of another node ---- */

static void other_node_asks(uint32_t fields, uint64_t id)
{
    struct leat_msg_writer body = rows_begin(fields);
    if (fields > 0) leat_msg_write_u64(&body, id);
    alone_call(leat_call_places, &body);
}

static void other_node_is_told(void **state)
{
    (void)state;
    static const uint64_t owners[] = {ALONE_SELF, 201, ALONE_SELF};
    begin();
    (void)stream_of(owners, 3);
    hosts(0, 0), has_copies(0, 1), has_copies(2, 0);
    it.told[2][0] =
        (struct leat_rep_places){.count = 7, .whole = 5, .nodes = {1, 2, 3, 4, 5, 6, 7}};
    other_node_asks(1, 1);
    assert_int_equal(it.refs, 1);
    alone_deliver_all();
    assert_said("mail to 0\nmail to 1\nmail to 1\nanswer\n");
    struct leat_msg_writer expected = rows_begin(6);
    leat_msg_write_bin(&expected, "\0", 1);
    leat_msg_write_bin(&expected, "\1\3\4", 3);
    leat_msg_write_bin(&expected, "", 0);
    leat_msg_write_bin(&expected, "", 0);
    leat_msg_write_bin(&expected, "\5\1\2\3\4\5\6\7", 8);
    leat_msg_write_bin(&expected, "", 0);
    assert_int_equal(calls.answer_bytes, expected.used);
    assert_memory_equal(calls.answer, expected.bytes, expected.used);
    assert_null(it.streams[0].places); /* nothing of it is remembered */
    end();
}

static void other_node_is_refused(void **state)
{
    (void)state;
    begin();
    other_node_asks(0, 0);
    assert_said("refuse INVALID\n");
    other_node_asks(1, 1);
    assert_said("refuse UNKNOWN_STREAM\n");
    (void)stream_of(NULL, 1);
    leat_mem_fail_at(1);
    other_node_asks(1, 1);
    leat_mem_fail_at(0);
    assert_said("refuse AGAIN\n");
    calls.none = true;
    other_node_asks(1, 1);
    assert_said("");
    end();
}

/* Goal: a stream of a single log is asked about no more often than others. */
static void single_log_is_remembered_for_a_while(void **state)
{
    (void)state;
    begin();
    uint32_t id = stream_of(NULL, 1);
    it.streams[0].desc->settings.logs = 1;
    has_copies(0, 0);
    assert_true(want(id));
    alone_deliver_all();
    said_enough();
    assert_false(want(id));
    assert_said("");
    end();
}

/* Goal: a core that ends while its own cores look frees what it asked with: their mail does not come any more. */
static void core_ends_while_its_own_cores_look(void **state)
{
    (void)state;
    begin();
    assert_true(want(stream_of(NULL, 1)));
    assert_said("mail to 0\n");
    alone.mail_count = 0;
    leat_places_fini(it.core);
    assert_true(leat_list_empty(&it.core->admin->placer->asks));
    assert_int_equal(it.refs, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_other_owner_is_asked_once),
        cmocka_unit_test(logs_of_this_node_are_looked_at_on_their_cores),
        cmocka_unit_test(answers_are_read_as_far_as_they_hold),
        cmocka_unit_test(own_log_comes_before_what_others_say),
        cmocka_unit_test(refusal_is_not_read),
        cmocka_unit_test(answers_are_remembered_for_a_while),
        cmocka_unit_test(stream_is_not_asked_about),
        cmocka_unit_test(stream_is_asked_about_when_there_is_memory),
        cmocka_unit_test(so_many_streams_are_asked_about_at_one_time),
        cmocka_unit_test(least_lately_wanted_streams_are_forgotten),
        cmocka_unit_test(stream_goes_while_it_is_asked_about),
        cmocka_unit_test(waits_end_when_all_before_them_was_answered),
        cmocka_unit_test(core_ends_while_others_are_asked),
        cmocka_unit_test(other_node_is_told),
        cmocka_unit_test(other_node_is_refused),
        cmocka_unit_test(single_log_is_remembered_for_a_while),
        cmocka_unit_test(core_ends_while_its_own_cores_look),
    };
    return cmocka_run_group_tests_name("broker places", tests, NULL, NULL);
}
