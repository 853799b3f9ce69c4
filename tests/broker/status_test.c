/* SPDX-License-Identifier: Apache-2.0 */
/* Producers' ids, ping, and the state of a server, by status.c alone: which ids are given, when the coordinators are
 * asked for more, and what each field of a status is. */
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
#include "broker/admin/report.h"
#include "broker/data/replicate.h"
#include "broker/net/heap.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

static struct {
    struct leat_coordinate *request;
    struct leat_random random;
    struct leat_env store_env;
    struct leat_store_usage usage;
    uint32_t chance;
    leat_err space;
    struct leat_mail *to_store;
} it;

/* ---- what it calls ---- */

void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_ptr_equal(request, &alone.cores[1].admin->producer_request);
    assert_int_equal(request->kind, LEAT_COORDINATE_PRODUCER_IDS);
    assert_int_equal(request->asker, 0);
    assert_int_equal(request->wait_us_max, 2 * 1000 * 1000);
    assert_int_equal(request->change, 0);
    said("ids");
    it.request = request;
}
void leat_store_usage(const struct leat_store *store, struct leat_store_usage *out_usage)
{
    assert_ptr_equal(store, &it);
    *out_usage = it.usage;
}
uint64_t leat_node_heap_over(const struct leat_node *node)
{
    assert_ptr_equal(node, &alone.node);
    return 7;
}
void leat_replicate_accounts(const struct leat_core *core, struct leat_msg_accounts *accounts)
{
    said("core %u: accounts", core->index);
    accounts->writes += 10 + core->index;
}
uint64_t leat_report_logs_troubled(const struct leat_core *core)
{
    return 3 + core->index;
}
static void secret(void *ctx, void *out, size_t bytes)
{
    assert_ptr_equal(ctx, &it.random);
    assert_int_equal(bytes, sizeof it.chance);
    memcpy(out, &it.chance, sizeof it.chance);
}
static int64_t wall_ms(void *ctx)
{
    assert_ptr_equal(ctx, &alone);
    return 1234567;
}
static leat_err space(void *ctx, uint64_t *out_free_bytes)
{
    assert_ptr_equal(ctx, &alone);
    said("space");
    *out_free_bytes = 4000;
    return it.space;
}
static uint64_t cpu_us(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return 55;
}
static uint64_t thread_cpu_ns(void *ctx)
{
    assert_null(ctx);
    return 900;
}
static void send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &alone);
    if (to == LEAT_ACTOR_STORE) {
        said("mail to the store");
        it.to_store = mail;
        return;
    }
    said("mail to %u", to);
    alone.to[alone.mail_count] = to;
    alone.mails[alone.mail_count++] = mail;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    it.random = (struct leat_random){.ctx = &it.random, .secret = secret};
    alone.env.random = &it.random;
    alone.clock.wall_ms = wall_ms;
    alone.disk.space = space;
    alone.post.send = send;
    it.store_env = alone.env;
    alone.node.options.store_env = &it.store_env;
    alone.node.store = (void *)&it;
    leat_list_init(&alone.cores[1].admin->producer_waits);
    memset(&alone.cores[1].admin->producer_request, 0x5a,
           sizeof alone.cores[1].admin->producer_request);
}

static void end(void)
{
    assert_int_equal(calls.open, 0);
    said_enough();
    alone_end();
}

static void asks(uint32_t fields, int64_t id, int64_t epoch)
{
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, fields);
    if (fields >= 1) leat_msg_write_i64(&writer, id);
    if (fields >= 2) leat_msg_write_i64(&writer, epoch);
    alone_call(leat_call_producer_id, &writer);
}

static void assert_given(int64_t id, int64_t epoch)
{
    struct leat_msg_reader reader;
    assert_true(said_one("answer\n"));
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    assert_int_equal(leat_msg_read_i64(&reader), id);
    assert_int_equal(leat_msg_read_i64(&reader), epoch);
    assert_true(leat_msg_read_done(&reader));
}

static void block_comes(leat_err rc, int64_t first, uint32_t count)
{
    struct leat_coordinate *request = it.request;
    assert_non_null(request);
    it.request = NULL;
    request->rc = rc == LEAT_OK ? LEAT_OK : leat_error_set(&request->error, rc, "no leader");
    request->first_id = first;
    request->id_count = count;
    request->on_done(request);
}

/* ---- ids ---- */

static void new_producer_gets_a_number_behind_chance(void **state)
{
    (void)state;
    begin();
    it.chance = 0x80000005;
    asks(0, 0, 0);
    assert_said("ids\n");
    block_comes(LEAT_OK, 9, 2);
    assert_given(0x0000000500000009, 0);
    it.chance = 0x7fffffff;
    asks(1, -1, 0); /* of the same block */
    assert_given(0x7fffffff0000000a, 0);
    asks(2, -1, -1);
    assert_said("ids\n");
    it.chance = 1;
    block_comes(LEAT_OK, INT64_C(0x3fffffffe), 1); /* its lower half */
    assert_given(0x1fffffffe, 0);
    assert_said("");
    end();
}

static void producer_gets_its_next_epoch(void **state)
{
    (void)state;
    begin();
    asks(2, 77, 0);
    assert_given(77, 1);
    asks(2, 0, 5);
    assert_given(0, 6);
    asks(2, 77, INT16_MAX - 1);
    assert_given(77, INT16_MAX);
    assert_said("");
    alone.cores[1].admin->producer_next = 4;
    alone.cores[1].admin->producer_left = 3;
    asks(2, 77, INT16_MAX); /* the last one: a new id */
    assert_given(4, 0);
    asks(2, 77, -1);
    assert_given(5, 0);
    asks(2, -1, 3);
    assert_given(6, 0);
    asks(2, 77, INT16_MAX + 1);
    assert_said("refuse INVALID: a producer id is asked for as [id or -1, epoch or -1]\n");
    uint8_t body[] = {0x92, 0x01};
    struct leat_msg_writer writer = {.bytes = body, .used = 2, .capacity = 2};
    alone_call(leat_call_producer_id, &writer);
    assert_true(said_one("refuse INVALID"));
    uint8_t text[] = {0x91, 0xa1, 'x'};
    writer = (struct leat_msg_writer){.bytes = text, .used = 3, .capacity = 3};
    alone_call(leat_call_producer_id, &writer);
    assert_true(said_one("refuse INVALID"));
    calls.none = true;
    asks(0, 0, 0);
    assert_said("");
    end();
}

static void coordinators_are_asked_for_one_block_at_a_time(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 4; i++)
        asks(0, 0, 0);
    assert_said("ids\n");
    block_comes(LEAT_OK, 20, 3);
    assert_said("answer\nanswer\nanswer\nids\n");
    assert_int_equal(calls.open, 1);
    asks(0, 0, 0); /* behind the one that waits */
    assert_said("");
    block_comes(LEAT_OK, 30, 5);
    assert_said("answer\nanswer\n");
    assert_int_equal(alone.cores[1].admin->producer_left, 3);
    assert_int_equal(alone.cores[1].admin->producer_next, 32);
    end();
}

static void who_waits_for_an_id_is_told_why_there_is_none(void **state)
{
    (void)state;
    begin();
    asks(0, 0, 0), asks(0, 0, 0);
    assert_said("ids\n");
    block_comes(LEAT_E_TIMEOUT, 5, 3); /* none of these */
    assert_said("refuse TIMEOUT: no leader\nrefuse TIMEOUT: no leader\n");
    asks(0, 0, 0); /* it is asked anew */
    assert_said("ids\n");
    block_comes(LEAT_OK, 20, 1);
    assert_given(20, 0);
    end();
}

static void on_id(struct leat_producer_wait *wait)
{
    said("%s %lld", leat_err_name(wait->rc), (long long)wait->id);
}

static void core_ends_while_ids_are_waited_for(void **state)
{
    (void)state;
    begin();
    struct leat_producer_wait again = {.on_done = on_id, .rc = LEAT_E_TIMEOUT};
    struct leat_producer_wait waits[2] = {{.on_done = on_id}, {.on_done = on_id}};
    alone.cores[1].admin->producer_next = 4;
    alone.cores[1].admin->producer_left = 1;
    leat_producer_id(&alone.cores[1], &again);
    assert_said("OK 4\n");
    leat_producer_id(&alone.cores[1], &waits[0]);
    leat_producer_id(&alone.cores[1], &waits[1]);
    assert_said("ids\n");
    leat_producer_ids_fini(&alone.cores[1]);
    assert_true(leat_list_empty(&alone.cores[1].admin->producer_waits));
    assert_true(leat_list_empty(&waits[1].link));
    leat_producer_ids_fini(&alone.cores[0]); /* it never came up */
    assert_said("");
    end();
}

/* ---- ping and status ---- */

static void ping_tells_the_time(void **state)
{
    (void)state;
    begin();
    uint8_t body[] = {0x90};
    struct leat_msg_writer writer = {.bytes = body, .used = 1, .capacity = 1};
    alone_call(leat_call_ping, &writer);
    assert_said("answer\n");
    struct leat_msg_reader reader;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 1);
    assert_int_equal(leat_msg_read_i64(&reader), 1234567);
    assert_true(leat_msg_read_done(&reader));
    calls.none = true;
    alone_call(leat_call_ping, &writer);
    alone_call(leat_call_status, &writer);
    assert_said("");
    end();
}

static void counted(struct leat_counters *counters, uint64_t by)
{
    counters->appended_records = by;
    counters->appended_bytes = 2 * by;
    counters->fetched_records = 3 * by;
    counters->fetched_bytes = 4 * by;
    counters->connections = 5 * by;
}

static struct leat_msg_status status(void)
{
    uint8_t body[] = {0x90};
    struct leat_msg_writer writer = {.bytes = body, .used = 1, .capacity = 1};
    alone_call(leat_call_status, &writer);
    assert_said("mail to the store\n");
    it.to_store->deliver(&it, it.to_store);
    alone_deliver_all();
    assert_said("space\nmail to 0\ncore 0: accounts\nmail to 1\ncore 1: accounts\nmail to 1\n"
                "answer\n");
    struct leat_msg_reader reader;
    struct leat_msg_status out;
    alone_answer(&reader);
    leat_msg_status_read(&reader, &out);
    assert_true(leat_msg_read_done(&reader));
    return out;
}

static void status_is_of_all_cores(void **state)
{
    (void)state;
    begin();
    struct leat_node *node = &alone.node;
    snprintf(node->version, sizeof node->version, "v9");
    node->started_us = 1000;
    alone.now_us = 1000 + 77777 * 1000 + 999;
    node->options.cpu_us = cpu_us, node->options.cpu_ctx = &it;
    node->options.cluster.thread_cpu_ns = thread_cpu_ns;
    node->options.memory_bytes = 10000, node->pool_bytes = 6000;
    node->options.pool_in_file = true;
    it.usage = (struct leat_store_usage){
        .memory_used = 500, .arenas_used = 600, .cpu_zeroing_ns = 300, .cpu_flush_ns = 1};
    counted(&alone.cores[0].counters, 1), counted(&alone.cores[1].counters, 10);
    struct leat_msg_status out = status();
    assert_int_equal(out.version.bytes, 2);
    assert_memory_equal(out.version.text, "v9", 2);
    const struct leat_msg_status expected = {.version = out.version,
                                             .uptime_ms = 77777,
                                             .cpu_us = 55,
                                             .memory_budget = 10000,
                                             .memory_used = 4507,
                                             .disk_free = 4000,
                                             .cores = 2,
                                             .appended_records = 11,
                                             .appended_bytes = 22,
                                             .fetched_records = 33,
                                             .fetched_bytes = 44,
                                             .connections = 55,
                                             .accounts = {.writes = 21,
                                                          .cpu_zeroing_ns = 300,
                                                          .cpu_flush_ns = 600,
                                                          .own_buffer_bytes = 500,
                                                          .copy_buffer_bytes = 600,
                                                          .logs_troubled = 7,
                                                          .pool_in_file = 1}};
    assert_memory_equal(&out, &expected, sizeof out);
    it.usage.cpu_zeroing_ns = 901; /* more than its thread: it is not told */
    it.space = LEAT_E_DISK;
    node->options.cpu_us = NULL;
    out = status();
    assert_int_equal(out.accounts.cpu_flush_ns, 0);
    assert_int_equal(out.disk_free, 0);
    assert_int_equal(out.cpu_us, 0);
    node->options.cluster.thread_cpu_ns = NULL;
    it.usage.cpu_zeroing_ns = 0;
    assert_int_equal(status().accounts.cpu_flush_ns, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_producer_gets_a_number_behind_chance),
        cmocka_unit_test(producer_gets_its_next_epoch),
        cmocka_unit_test(coordinators_are_asked_for_one_block_at_a_time),
        cmocka_unit_test(who_waits_for_an_id_is_told_why_there_is_none),
        cmocka_unit_test(core_ends_while_ids_are_waited_for),
        cmocka_unit_test(ping_tells_the_time),
        cmocka_unit_test(status_is_of_all_cores),
    };
    return cmocka_run_group_tests_name("broker status", tests, NULL, NULL);
}
