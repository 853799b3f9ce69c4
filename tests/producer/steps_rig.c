/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/producer/steps_rig.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct steps steps;
const leat_err all_ok[STEPS_CODES] = {LEAT_OK, LEAT_OK, LEAT_OK, LEAT_OK, LEAT_OK};
struct leat_log_ref told_of;
unsigned told_count;
static size_t bytes_before;

static void note(const char *format, ...) LEAT_PRINTF(1, 2);
static void note(const char *format, ...)
{
    size_t used = strlen(steps.did);
    va_list args;
    va_start(args, format);
    vsnprintf(steps.did + used, sizeof steps.did - used, format, args);
    va_end(args);
    assert_true(strlen(steps.did) + 1 < sizeof steps.did);
}

void steps_did(const char *want)
{
    assert_string_equal(steps.did, want);
    steps.did[0] = 0;
}

/* ---- the client ---- */

static void note_append(const struct leat_request *request)
{
    struct leat_msg_append append;
    assert_int_equal(leat_msg_append_decode(request->control, request->control_bytes, &append),
                     LEAT_OK);
    assert_int_equal(append.batch_count, request->payload_count);
    assert_true(leat_log_ref_equal(append.log, request->log));
    note("append %u/%u/%u@%u:", append.log.stream, append.log.streamlet, append.log.log,
         append.epoch);
    for (uint32_t i = 0; i < request->payload_count; i++) {
        struct leat_batch batch;
        struct leat_record_reader reader;
        struct leat_record record;
        static uint8_t room[LEAT_BATCH_BYTES_MAX];
        const uint8_t *records;
        size_t bytes;
        assert_int_equal(
            leat_batch_check(request->payload[i].base, request->payload[i].bytes, &batch, NULL),
            LEAT_OK);
        assert_int_equal(leat_batch_records(&batch, room, sizeof room, &records, &bytes), LEAT_OK);
        if (batch.record_count > 1 && steps.stream.settings.batch_bytes_max && !steps.no_memory)
            assert_true(batch.byte_count <= steps.stream.settings.batch_bytes_max);
        note(" %lld.%d+%d", (long long)batch.producer_id, batch.producer_epoch,
             batch.base_sequence);
        leat_record_reader_init(&reader, &batch, records, bytes);
        for (char before = '#'; leat_record_next(&reader, &record) == LEAT_OK; before = ',')
            note("%c%u", before, leat_get_le32(record.value));
    }
    note(";");
}

leat_err leat_client_send(struct leat_client *client, struct leat_request *request)
{
    (void)client;
    request->sent = !steps.unsent;
    if (request->kind == LEAT_KIND_PRODUCER_ID) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, request->control, request->control_bytes);
        assert_int_equal(leat_msg_read_array(&reader), 2);
        long long id = leat_msg_read_i64(&reader), epoch = leat_msg_read_i64(&reader);
        assert_false(reader.failed);
        assert_null(steps.id);
        steps.id = request;
        note("id? %lld.%lld;", id, epoch);
        return LEAT_OK;
    }
    assert_int_equal(request->kind, LEAT_KIND_APPEND);
    if (steps.send_rc) {
        note("no;");
        leat_err rc = steps.send_rc;
        steps.send_rc = LEAT_OK;
        return rc;
    }
    assert_true(steps.append_count < STEPS_APPENDS);
    steps.appends[steps.append_count++] = request;
    note_append(request);
    return LEAT_OK;
}

const char *leat_client_why(const struct leat_client *client)
{
    (void)client;
    return "the script's why";
}

void leat_client_cancel(struct leat_client *client, struct leat_request *request)
{
    (void)client;
    assert_ptr_equal(request, steps.id);
    steps.id = NULL;
    note("no id;");
}

bool leat_client_withdraw(struct leat_client *client, struct leat_request *request)
{
    (void)client;
    for (uint32_t i = 0; i < steps.append_count; i++)
        if (steps.appends[i] == request) {
            note(steps.withdraws ? "withdrawn;" : "not withdrawn;");
            if (!steps.withdraws) return false;
            memmove(&steps.appends[i], &steps.appends[i + 1],
                    (--steps.append_count - i) * sizeof steps.appends[0]);
            return true;
        }
    fail();
    return false;
}

void leat_client_lookup(struct leat_client *client, struct leat_client_lookup *lookup)
{
    (void)client;
    assert_null(steps.lookup);
    assert_int_equal(lookup->timeout_us, STEPS_TIMEOUT_US);
    steps.lookup = lookup;
    note("lookup %s%s;", lookup->name, lookup->may_create ? "" : " only");
}

void leat_client_lookup_cancel(struct leat_client *client, struct leat_client_lookup *lookup)
{
    (void)client;
    assert_ptr_equal(lookup, steps.lookup);
    steps.lookup = NULL;
    note("no lookup;");
}

const struct leat_client_stream *leat_client_stream(const struct leat_client *client,
                                                    const char *name)
{
    (void)client;
    return steps.stream.id && strcmp(name, "s") == 0 ? &steps.stream : NULL;
}

uint64_t leat_client_pause_us(struct leat_client *client, uint32_t attempt)
{
    (void)client;
    return 1000 * (UINT64_C(1) + attempt);
}

/* ---- the world ---- */

static uint64_t now_us(void *ctx)
{
    (void)ctx;
    return steps.now_us;
}
static int64_t wall_ms(void *ctx)
{
    (void)ctx;
    return 1700000000000;
}
static void wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us; /* a turn comes when the test says so */
}

static void on_disposition(void *arg, const struct leat_produced *produced)
{
    uint32_t n = (uint32_t)((unsigned *)arg - steps.told);
    steps.told[n]++;
    if (produced->rc == LEAT_OK && produced->offset == UINT64_MAX)
        note("#%u there;", n);
    else if (produced->rc == LEAT_OK)
        note("#%u at %llu;", n, (unsigned long long)produced->offset);
    else
        note("#%u %s '%s';", n, leat_err_name(produced->rc), produced->text);
    if (produced->rc) assert_int_equal(produced->offset, UINT64_MAX);
}

/* Taken and left in turn, as one that is not recursive has to be. */
static bool locked;
static void lock(void *ctx)
{
    (void)ctx;
    assert_false(locked);
    locked = true;
}
static void unlock(void *ctx)
{
    (void)ctx;
    assert_true(locked);
    locked = false;
}

void steps_begin(uint32_t batch_records)
{
    bytes_before = leat_mem_bytes(LEAT_MEM_CLIENT);
    memset(&steps, 0, sizeof steps);
    steps.now_us = 1000000;
    steps.clock = (struct leat_clock){NULL, now_us, wall_ms, wake_at};
    steps.env.clock = &steps.clock;
    assert_int_equal(leat_timers_init(&steps.timers, &steps.clock, LEAT_PRODUCER_ENGINE_TIMERS),
                     LEAT_OK);
    struct leat_producer_engine_options options = {.batch_bytes = 1024,
                                                   .batch_records = batch_records,
                                                   .buffer_bytes = 64 * 1024,
                                                   .timeout_us = STEPS_TIMEOUT_US,
                                                   .create_streams = true};
    assert_int_equal(
        leat_producer_engine_create(&steps.env, &steps.timers, NULL, &options, &steps.engine),
        LEAT_OK);
    locked = false;
    steps.engine->share.lock = lock;
    steps.engine->share.unlock = unlock;
}

void steps_end(void)
{
    steps.withdraws = true;
    assert_true(leat_producer_engine_stop(steps.engine));
    leat_producer_engine_destroy(&steps.engine);
    assert_false(locked);
    assert_int_equal(steps.timers.count, 0);
    leat_timers_fini(&steps.timers);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), bytes_before);
}

void steps_first(uint32_t streamlets, int64_t id)
{
    steps_turn(1);
    steps_known(5, streamlets, 0);
    steps_turn(1);
    steps_id(id, 3);
    steps_turn(1);
}

void steps_ready(uint32_t batch_records, uint32_t streamlets)
{
    steps_begin(batch_records);
    assert_int_equal(steps_add(STEPS_RECORDS - 1, -1), LEAT_OK);
    leat_producer_engine_flush(steps.engine);
    steps_first(streamlets, 100);
    assert_int_equal(steps.append_count, 1);
    steps_answer((const leat_err[]){LEAT_OK}, 0, NULL);
    steps_turn(1);
    steps.did[0] = 0;
}

leat_err steps_add_sized(uint32_t n, int32_t streamlet, uint32_t bytes)
{
    uint8_t value[2048] = {0};
    assert_true(bytes >= 4 && bytes <= sizeof value);
    leat_put_le32(value, n);
    return leat_producer_engine_add(steps.engine, "s", streamlet, 0, NULL, 0, value, bytes,
                                    on_disposition, &steps.told[n]);
}

leat_err steps_add(uint32_t n, int32_t streamlet)
{
    return steps_add_sized(n, streamlet, 4);
}

void add(uint32_t from, uint32_t to, int32_t streamlet)
{
    for (uint32_t n = from; n <= to; n++)
        assert_int_equal(steps_add(n, streamlet), LEAT_OK);
}

static void on_told(void *another, const struct leat_produced *produced)
{
    told_of = produced->log;
    told_count++;
    if (another) add(9, 9, -1);
}

void add_told(int32_t streamlet, bool another)
{
    uint8_t value[4] = {1};
    told_of = (struct leat_log_ref){7, 7, 7};
    assert_int_equal(leat_producer_engine_add(steps.engine, "s", streamlet, 0, NULL, 0, value,
                                              sizeof value, on_told, another ? &steps : NULL),
                     LEAT_OK);
}

void first_under_way(void)
{
    steps_begin(1);
    add(1, 1, -1);
    steps_first(1, 100);
    steps_did("lookup s;id? -1.-1;append 5/0/0@40: 100.3+0#1;");
}

void three_under_way(void)
{
    steps_ready(1, 1);
    add(1, 3, -1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3;");
}

void count_call(void *arg)
{
    ++*(unsigned *)arg;
}

uint64_t look_us(void)
{
    return leat_timer_armed(&steps.engine->look) ? steps.engine->look.at_us - steps.now_us
                                                 : UINT64_MAX;
}

void steps_turn(uint64_t us)
{
    steps.now_us += us;
    leat_timers_run(&steps.timers);
    leat_producer_engine_on_turn_end(steps.engine);
}

/* ---- answers ---- */

void steps_known(uint32_t id, uint32_t streamlets, uint32_t batch_bytes_max)
{
    struct leat_client_lookup *lookup = steps.lookup;
    struct leat_error error = {0};
    assert_non_null(lookup);
    assert_true(streamlets * 2 <= STEPS_LOGS);
    steps.lookup = NULL;
    steps.stream = (struct leat_client_stream){
        .id = id,
        .settings = {.streamlets = streamlets, .logs = 2, .batch_bytes_max = batch_bytes_max},
        .log_count = streamlets * 2,
        .logs = steps.logs};
    for (uint32_t i = 0; i < streamlets * 2; i++)
        steps.logs[i] = (struct leat_client_log){.ref = {id, i / 2, i % 2}, .epoch = {40 + i}};
    lookup->on_done(lookup, LEAT_OK, &steps.stream, &error);
}

void steps_lookup_fails(leat_err rc, const char *text)
{
    struct leat_client_lookup *lookup = steps.lookup;
    struct leat_error error = {.code = rc};
    assert_non_null(lookup);
    steps.lookup = NULL;
    snprintf(error.text, sizeof error.text, "%s", text);
    lookup->on_done(lookup, rc, NULL, &error);
}

static void done(struct leat_request *request, leat_err rc, const struct leat_msg_writer *body,
                 const char *text)
{
    struct leat_error error = {.code = rc};
    struct leat_frame frame = {0};
    snprintf(error.text, sizeof error.text, "%s", text);
    if (body) {
        frame.control = body->bytes;
        frame.control_bytes = body->used;
    }
    request->on_done(request, rc, body ? &frame : NULL, &error);
}

/* The request for an id, and the body of its answer. */
static struct leat_request *id_answer(struct leat_msg_writer *body, int64_t id, int64_t epoch)
{
    struct leat_request *request = steps.id;
    assert_non_null(request);
    steps.id = NULL;
    leat_msg_write_array(body, 2);
    leat_msg_write_i64(body, id);
    leat_msg_write_i64(body, epoch);
    return request;
}

void steps_id(int64_t id, int64_t epoch)
{
    uint8_t bytes[64];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    struct leat_request *request = id_answer(&body, id, epoch);
    done(request, LEAT_OK, &body, "");
}

/* Numbers that an answer could have lie where the next calls have their variables: a number that is read and was not
 * written is one of these. */
__attribute__((noinline)) static void stack_fill(void)
{
    volatile int64_t words[256];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = 4;
}

void steps_id_cut(int64_t id, int64_t epoch)
{
    uint8_t bytes[64];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    struct leat_request *request = id_answer(&body, id, epoch);
    struct leat_error error = {0};
    const struct leat_frame frame = {.control = bytes, .control_bytes = body.used - 1};
    stack_fill();
    request->on_done(request, LEAT_OK, &frame, &error);
}

void steps_id_fails(leat_err rc, const char *text)
{
    struct leat_request *request = steps.id;
    assert_non_null(request);
    steps.id = NULL;
    done(request, rc, NULL, text);
}

static struct leat_request *append_take(void)
{
    assert_true(steps.append_count > 0);
    struct leat_request *request = steps.appends[0];
    memmove(&steps.appends[0], &steps.appends[1], --steps.append_count * sizeof steps.appends[0]);
    return request;
}

void steps_answer(const leat_err *codes, uint64_t offset, const char *text)
{
    uint8_t bytes[512];
    struct leat_msg_writer body;
    struct leat_request *request = append_take();
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, request->payload_count + (text != NULL));
    for (uint32_t i = 0; i < request->payload_count; i++) {
        leat_msg_write_array(&body, 2);
        leat_msg_write_u64(&body, codes[i]);
        leat_msg_write_u64(&body, offset + i);
    }
    if (text) leat_msg_write_string(&body, text, (uint32_t)strlen(text));
    done(request, LEAT_OK, &body, "");
}

void answer_all(leat_err code, const char *text)
{
    const leat_err codes[STEPS_CODES] = {code, code, code, code, code};
    steps_answer(codes, 10, text);
}

void steps_append_fails(leat_err rc, const char *text)
{
    struct leat_request *request = append_take();
    request->sent = !steps.unsent;
    done(request, rc, NULL, text);
}

void steps_answer_bytes(const uint8_t *bytes, uint32_t count)
{
    struct leat_msg_writer body = {.bytes = (uint8_t *)(uintptr_t)bytes, .used = count};
    done(append_take(), LEAT_OK, &body, "");
}
