/* SPDX-License-Identifier: Apache-2.0 */
/* A node that stops, by stop.c alone: core after core, each log once, the flush behind all of them, and logs that still
 * give memory back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/partition.h"
#include "broker/node/stop.h"
#include "tests/broker/alone.h"

enum { LOGS = 3 };

static struct {
    struct leat_partition logs[ALONE_CORES][LOGS];
    struct leat_partition *buckets[ALONE_CORES][2];
    struct leat_mail *to_store;
    struct leat_env store_env;
    void (*on_stopped[ALONE_CORES][LOGS])(void *arg, struct leat_log *log);
    void *arg[ALONE_CORES];
    void (*on_flushed)(void *arg, leat_err rc);
    void *flush_arg;
    unsigned restless; /* log that has not come to rest, of core 0; LOGS: none */
    leat_err stopped;
    bool in_memory; /* the store has bytes that are in no file */
} it;

void leat_fetch_stop(struct leat_core *core)
{
    assert_true(core->stopping);
    said("core %u: fetches end", core->index);
}
void leat_partition_wake(struct leat_partition *partition)
{
    assert_true(leat_partition_goes(partition));
    said("wake %u/%u", partition->core->index, partition->ref.log);
}
void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg)
{
    const struct leat_partition *partition = (void *)log;
    said("stop %u/%u", partition->core->index, partition->ref.log);
    it.on_stopped[partition->core->index][partition->ref.log] = on_stopped;
    it.arg[partition->core->index] = arg;
}
void leat_log_delete(struct leat_log *log, void (*on_gone)(void *arg, struct leat_log *log),
                     void *arg)
{
    fail_msg("log %p is deleted for %p", (void *)log, on_gone == NULL ? NULL : arg);
}
void leat_partition_destroy(struct leat_partition *partition)
{
    fail_msg("log %u is destroyed", partition->ref.log);
}
bool leat_log_rest(struct leat_log *log)
{
    const struct leat_partition *partition = (void *)log;
    return partition->core->index != 0 || partition->ref.log != it.restless;
}
void leat_peer_close_all(struct leat_core *core)
{
    said("core %u: close connections", core->index);
}
void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    (void)timers;
    for (unsigned q = 0; q < ALONE_CORES; q++)
        if (timer == &alone.cores[q].tick) said("core %u: no more ticks", q);
}
bool leat_store_is_on_disk(const struct leat_store *store)
{
    assert_ptr_equal(store, &it);
    return !it.in_memory;
}
void leat_store_flush_all(struct leat_store *store, void (*on_done)(void *arg, leat_err rc),
                          void *arg)
{
    assert_ptr_equal(store, &it);
    said("flush all");
    it.on_flushed = on_done;
    it.flush_arg = arg;
}

static void send(void *ctx, unsigned to, struct leat_mail *mail)
{
    if (to == LEAT_ACTOR_STORE) {
        said("mail to the store");
        it.to_store = mail;
        return;
    }
    said("mail to %u", to);
    alone.to[alone.mail_count] = to;
    alone.mails[alone.mail_count++] = mail;
    (void)ctx;
}

static void on_stopped(void *owner, leat_err rc)
{
    assert_ptr_equal(owner, &it);
    it.stopped = rc;
    said("stopped %s", leat_err_name(rc));
}

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    alone.post.send = send;
    it.store_env.post = &alone.post;
    it.restless = LOGS;
    alone.node.store = (void *)&it;
    alone.node.life = LEAT_LIFE_UP;
    alone.node.options.store_env = &it.store_env;
    alone.node.options.on_stopped = on_stopped;
    alone.node.options.owner = &it;
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        struct leat_core *core = &alone.cores[q];
        core->data->partitions = it.buckets[q];
        core->data->partition_mask = 1;
        for (uint32_t i = 0; i < LOGS; i++) {
            it.logs[q][i] = (struct leat_partition){
                .ref = {ALONE_STREAM, 1, i}, .core = core, .log = (void *)&it.logs[q][i]};
            it.logs[q][i].hash_next = core->data->partitions[i % 2]; /* two in the first */
            core->data->partitions[i % 2] = &it.logs[q][i];
        }
    }
}

static void end(void)
{
    said_enough();
    alone_end();
}

static void log_stops(unsigned core, unsigned log)
{
    it.on_stopped[core][log](it.arg[core], (void *)&it.logs[core][log]);
}

static void node_stops_step_by_step(void **state)
{
    (void)state;
    begin();
    leat_node_stop(&alone.node);
    assert_said("mail to 0\n");
    leat_node_stop(&alone.node); /* once */
    assert_said("");
    alone_deliver();
    assert_said(
        "core 0: fetches end\nwake 0/2\nstop 0/2\nwake 0/0\nstop 0/0\nwake 0/1\nstop 0/1\n");
    assert_int_equal(alone.cores[0].data->logs_to_stop, 3);
    log_stops(0, 1), log_stops(0, 0);
    assert_said("");
    assert_false(alone.cores[0].stopped);
    log_stops(0, 2);
    assert_said("core 0: no more ticks\ncore 0: close connections\nmail to 1\n");
    assert_true(alone.cores[0].stopped);
    alone_deliver();
    for (unsigned i = 0; i < LOGS; i++)
        log_stops(1, i);
    said_enough();
    it.to_store->deliver(NULL, it.to_store);
    assert_said("flush all\n");
    it.on_flushed(it.flush_arg, LEAT_OK);
    assert_said("mail to 0\n");
    alone_deliver();
    assert_true(alone.cores[0].ending);
    for (it.restless = 0; it.restless < 2; it.restless++) {
        leat_core_ending(&alone.cores[0]);
        assert_said("");
    }
    it.restless = 1; /* it still gives memory back */
    leat_core_ending(&alone.cores[0]);
    assert_said("");
    assert_true(alone.cores[0].ending);
    it.logs[0][1].log = NULL; /* one without a log rests */
    leat_core_ending(&alone.cores[0]);
    assert_said("mail to 1\n");
    assert_false(alone.cores[0].ending);
    alone_deliver();
    leat_core_ending(&alone.cores[1]);
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("stopped OK\n");
    end();
}

/* Goal: each log that already goes for another reason is counted, and reports its own end; a log that is stopped for a
 * move is not counted. */
static void logs_that_go_already_are_waited_for(void **state)
{
    (void)state;
    for (uint32_t moved = 1; moved <= 2; moved++) {
        begin();
        it.logs[0][0].state = moved == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_DRAINED;
        it.logs[0][1].state = LEAT_PARTITION_DRAINED;
        it.logs[0][2].state = LEAT_PARTITION_DRAINED;
        it.logs[0][2].give_up = (void *)&it;
        leat_node_stop(&alone.node);
        alone_deliver();
        assert_said("mail to 0\ncore 0: fetches end\n");
        assert_int_equal(alone.cores[0].data->logs_to_stop, LOGS - moved);
        for (uint32_t i = moved; i < LOGS; i++) {
            assert_said("");
            leat_core_log_stopped(&alone.cores[0]);
        }
        assert_said("core 0: no more ticks\ncore 0: close connections\nmail to 1\n");
        alone.mail_count = 0;
        end();
    }
}

static void core_without_logs_stops_at_once(void **state)
{
    (void)state;
    begin();
    it.buckets[0][0] = it.buckets[0][1] = NULL;
    leat_node_stop(&alone.node);
    alone_deliver();
    assert_said("mail to 0\ncore 0: fetches end\ncore 0: no more ticks\ncore 0: close connections\n"
                "mail to 1\n");
    alone.mail_count = 0;
    end();
}

/* Goal: not up, it has nothing to be hibernated; a flush that fails is told. */
static void node_that_is_not_up_only_flushes(void **state)
{
    (void)state;
    begin();
    alone.node.life = LEAT_LIFE_COMES_UP;
    leat_node_stop(&alone.node);
    assert_said("mail to the store\n");
    assert_true(alone.cores[0].stopped && alone.cores[1].stopped);
    leat_node_stop(&alone.node); /* once */
    assert_said("");
    it.to_store->deliver(NULL, it.to_store);
    it.on_flushed(it.flush_arg, LEAT_E_DISK);
    said_enough();
    for (unsigned i = 0; i < 2; i++) {
        alone_deliver();
        alone.cores[i].data->partitions = NULL; /* never made */
        leat_core_ending(&alone.cores[i]);
    }
    alone_deliver();
    assert_said("mail to 1\nmail to 0\nnode log error: the last flush failed\nstopped DISK\n");
    end();
}

/* Goal: the memory of a node may go only when the node has stopped without a failure and without a complaint, and all
 * bytes are in files. */
static void memory_is_spent_where_nothing_needs_it(void **state)
{
    (void)state;
    enum { SPENT, NOT_STOPPED, NEVER_UP, FAILED, IN_MEMORY, COMPLAINT, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        alone.node.life = i == NOT_STOPPED ? LEAT_LIFE_UP
                          : i == NEVER_UP  ? LEAT_LIFE_GIVES_UP
                                           : LEAT_LIFE_STOPS;
        if (i == FAILED) alone.node.rc = LEAT_E_DISK;
        it.in_memory = i == IN_MEMORY;
        atomic_store(&alone.node.complaint_count, i == COMPLAINT);
        assert_int_equal(leat_node_pool_is_spent(&alone.node), i == SPENT);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_stops_step_by_step),
        cmocka_unit_test(logs_that_go_already_are_waited_for),
        cmocka_unit_test(core_without_logs_stops_at_once),
        cmocka_unit_test(node_that_is_not_up_only_flushes),
        cmocka_unit_test(memory_is_spent_where_nothing_needs_it),
    };
    return cmocka_run_group_tests_name("broker stop", tests, NULL, NULL);
}
