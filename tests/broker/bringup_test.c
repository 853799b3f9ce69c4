/* SPDX-License-Identifier: Apache-2.0 */
/* How a node comes up, by bringup.c alone: which step follows which, on which thread, what the coordinators are told,
 * and where each failure ends. */
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
#include "broker/data/replicate.h"
#include "broker/node/bringup.h"
#include "broker/node/native.h"
#include "tests/broker/alone.h"

static struct {
    struct leat_net net;
    struct leat_env store_env;
    struct leat_door door;
    uint8_t cluster[16];
    leat_err identity, boot, listen, door_listen, cut, members[ALONE_CORES], found,
        adopt[ALONE_CORES];
    bool no_room;
    struct leat_coordinate *request;
    struct leat_timer *timer;
    bool on_store;           /* its thread runs */
    unsigned on_core;        /* else that of this core */
    struct leat_env env_1;   /* of core 1 */
    struct leat_post post_1; /* what is sent by this post comes from the thread of core 1 */
} it;

/* ---- what it calls ---- */

void leat_coordinator_cluster_id(const struct leat_coordinator *coordinator, uint8_t out_id[16])
{
    assert_ptr_equal(coordinator, &it);
    memcpy(out_id, it.cluster, 16);
}
static leat_err ends(leat_err rc, struct leat_error *error, const char *text)
{
    return rc == LEAT_OK ? LEAT_OK : leat_error_set(error, rc, "%s", text);
}
leat_err leat_node_identity_set(struct leat_node *node, const uint8_t cluster_id[16],
                                struct leat_error *error)
{
    assert_true(it.on_store && node->joining);
    said("identity is %.16s", (const char *)cluster_id);
    if (it.identity == LEAT_OK) memcpy(node->cluster_id, cluster_id, 16);
    return ends(it.identity, error, "no identity");
}
leat_err leat_node_boot_taken(struct leat_node *node, struct leat_error *error)
{
    assert_true(it.on_store);
    said("boot taken %llu", (unsigned long long)node->incarnation);
    return ends(it.boot, error, "no boot");
}
static const char *or_none(const char *text)
{
    return text != NULL ? text : "-";
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_ptr_equal(request, &alone.node.request);
    assert_ptr_equal(request->owner, &alone.node);
    assert_int_equal(request->change, 0);
    assert_int_equal(request->stream_id, 0);
    assert_int_equal(request->wait_us_max, 0);
    assert_null(request->desc);
    if (request->kind == LEAT_COORDINATE_NODE_UP)
        said("node up: %s %s %u cores, %s %s %s, %llu bytes %llu logs, kafka %s, id %02x%02x, boot "
             "%llu %llu",
             request->node_name, request->address, request->cores, or_none(request->node_address),
             or_none(request->rack), or_none(request->host),
             (unsigned long long)request->memory_bytes, (unsigned long long)request->logs_most,
             or_none(request->kafka_address), request->node_id[0], request->node_id[15],
             (unsigned long long)request->boot, (unsigned long long)request->boot_before);
    else
        said("adopt: %llu, %zu marks", (unsigned long long)request->incarnation,
             request->mark_count);
    if (request->kind != LEAT_COORDINATE_NODE_UP) {
        assert_int_equal(request->kind, LEAT_COORDINATE_ADOPT);
        assert_ptr_equal(request->marks, alone.node.marks);
    }
    it.request = request;
}
void leat_store_id(const struct leat_store *store, uint8_t out_id[16])
{
    assert_ptr_equal(store, &it);
    memset(out_id, 0xab, 16);
}
uint64_t leat_node_logs_most(const struct leat_node *node)
{
    assert_ptr_equal(node, &alone.node);
    return 321;
}
bool leat_heap_holds(uint64_t memory_bytes, uint32_t cores, uint64_t logs, uint64_t segments)
{
    said("holds %llu %u %llu %llu", (unsigned long long)memory_bytes, cores,
         (unsigned long long)logs, (unsigned long long)segments);
    return !it.no_room;
}
uint64_t leat_heap_least_memory(uint64_t memory_bytes, uint32_t cores, uint64_t logs,
                                uint64_t segments)
{
    assert_int_equal(memory_bytes, 64 << 20);
    assert_int_equal(cores, ALONE_CORES);
    assert_int_equal(logs, 2);
    assert_int_equal(segments, 3);
    return 96 << 20;
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    said("%s in %llu us", timer == &alone.cores[0].tick ? "tick" : "try again",
         (unsigned long long)delay_us);
    it.timer = timer;
}
void leat_found_dispositions(struct leat_node *node)
{
    said("fates of %zu", node->decision_count);
}
leat_err leat_found_cut(struct leat_node *node)
{
    assert_true(it.on_store);
    said("cut");
    return it.cut;
}
leat_err leat_members_open(struct leat_core *core, struct leat_error *error)
{
    said("core %u: members", core->index);
    return ends(it.members[core->index], error, "no links");
}
leat_err leat_replicate_take_found(struct leat_core *core)
{
    said("core %u: replicas", core->index);
    return it.found;
}
leat_err leat_adopt_on_core(struct leat_node *node, struct leat_core *core,
                            struct leat_error *error)
{
    assert_ptr_equal(node, core->node);
    said("core %u: logs", core->index);
    return ends(it.adopt[core->index], error, "no logs");
}
void leat_walk_on_adopted(struct leat_core *core)
{
    said("core %u: adopted", core->index);
}
void leat_store_found_done(struct leat_store *store)
{
    assert_ptr_equal(store, &it);
    assert_true(it.on_store);
    said("found is done with");
}
void leat_administer_open(struct leat_core *core)
{
    assert_int_equal(core->node->life, LEAT_LIFE_UP);
    said("core %u: for who administers", core->index);
}
void *leat_peer_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler)
{
    (void)acceptor, (void)conn, (void)out_handler;
    fail();
    return NULL;
}
static void *door_accept(void *acceptor, struct leat_conn *conn,
                         const struct leat_conn_handler **out_handler)
{
    return leat_peer_accept(acceptor, conn, out_handler);
}

static leat_err net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                           char out_address[128], struct leat_error *error)
{
    bool door = on_accept == door_accept;
    assert_ptr_equal(ctx, &it.net);
    assert_ptr_equal(acceptor, &alone.cores[0]);
    assert_true(door || on_accept == leat_peer_accept);
    assert_ptr_equal(out_address, door ? it.door.bound_address : alone.node.bound_address);
    said("listen at %s%s", address, alone.node.life == LEAT_LIFE_UP ? ", up" : "");
    snprintf(out_address, 128, "%s!", address);
    return ends(door ? it.door_listen : it.listen, error, "in use");
}

static void on_ready(void *owner, leat_err rc, const struct leat_error *error, const char *address)
{
    assert_ptr_equal(owner, &it);
    assert_true((rc == LEAT_OK) == (error == NULL) && (rc == LEAT_OK) == (address != NULL));
    said("ready %s: %s", leat_err_name(rc), rc == LEAT_OK ? address : error->text);
}

static void sent(unsigned to, struct leat_mail *mail)
{
    assert_int_equal(alone.mail_count, 0); /* one step at a time */
    if (to == LEAT_ACTOR_STORE)
        said("mail to the store");
    else
        said("mail to %u", to);
    alone.to[0] = to;
    alone.mails[alone.mail_count++] = mail;
}

static void send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &alone);
    assert_int_equal(it.on_core, 0);
    sent(to, mail);
}

static void send_from_1(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &it);
    assert_int_equal(it.on_core, 1);
    sent(to, mail);
}

/* ---- the rig ---- */

static void begin(void)
{
    struct leat_node *node = &alone.node;
    alone_begin();
    alone.node.life = LEAT_LIFE_COMES_UP;
    memset(&it, 0, sizeof it);
    alone.post.send = send;
    it.store_env.post = &alone.post;
    it.net = (struct leat_net){.ctx = &it.net, .listen = net_listen};
    it.door = (struct leat_door){.address = "d:9", .on_accept = door_accept};
    memcpy(it.cluster, "0123456789abcdef", 16);
    memcpy(node->cluster_id, it.cluster, 16);
    for (unsigned q = 0; q < ALONE_CORES; q++)
        alone.cores[q].net = &it.net;
    it.post_1 = (struct leat_post){.ctx = &it, .send = send_from_1};
    it.env_1 = alone.env;
    it.env_1.post = &it.post_1;
    alone.cores[1].env = &it.env_1;
    node->store = (void *)&it;
    node->coordinator = (void *)&it;
    node->options.store_env = &it.store_env;
    node->options.on_ready = on_ready;
    node->options.owner = &it;
    node->options.memory_bytes = 64 << 20;
    snprintf(node->listen_address, sizeof node->listen_address, "l:1");
    node->pool_bytes = 1000;
    node->boot = 8, node->boot_before = 7;
    node->found = (void *)&it;
    node->found_count = 3;
    node->mark_count = 4;
    node->marks = leat_mem_calloc(LEAT_MEM_TEST, 4, sizeof *node->marks);
    node->dispositions = leat_mem_calloc(LEAT_MEM_TEST, 3, sizeof *node->dispositions);
    memset(&node->request, 0x5a, sizeof node->request); /* of something else, before */
}

static void end(void)
{
    leat_mem_free(alone.node.decisions);
    leat_mem_free(alone.node.marks);
    leat_mem_free(alone.node.dispositions);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), 0);
    alone_end();
}

static void step(void)
{
    assert_int_equal(alone.mail_count, 1);
    struct leat_mail *mail = alone.mails[--alone.mail_count];
    unsigned to = alone.to[0];
    it.on_store = to == LEAT_ACTOR_STORE;
    it.on_core = it.on_store ? 0 : to;
    mail->deliver(it.on_store ? (void *)&it : (void *)&alone.cores[to], mail);
    it.on_store = false;
    it.on_core = 0;
}

/* The coordinators have answered. */
static void coordinated(leat_err rc)
{
    struct leat_coordinate *request = it.request;
    assert_non_null(request);
    it.request = NULL;
    request->rc = rc;
    if (rc != LEAT_OK) leat_error_set(&request->error, rc, "not so");
    if (rc == LEAT_OK && request->kind == LEAT_COORDINATE_NODE_UP)
        request->incarnation = ALONE_SELF + 1;
    if (rc == LEAT_OK && request->kind == LEAT_COORDINATE_ADOPT) {
        request->decisions = leat_mem_calloc(LEAT_MEM_TEST, 2, sizeof *request->decisions);
        request->decision_count = 2;
    }
    request->on_done(request);
}

static void assert_failed(const char *expected)
{
    assert_said(expected);
    assert_int_equal(alone.mail_count, 0);
    end();
}

#define NODE_UP_ALONE                                                                              \
    "node up: n1 l:1 2 cores, - - -, 1000 bytes 321 logs, kafka -, id 0000, boot 8 7\n"

/* Up to the answer that it is up, of which nothing is left said. */
static void begin_named(void)
{
    begin();
    leat_node_bring_up(&alone.node);
    assert_said(NODE_UP_ALONE);
}

/* Up to what is adopted. */
static void begin_adopting(void)
{
    begin_named();
    coordinated(LEAT_OK);
    step(), step();
    assert_said("mail to the store\nboot taken 101\nmail to 0\nadopt: 101, 4 marks\n");
}

/* ---- the whole way ---- */

static void node_comes_up(void **state)
{
    (void)state;
    begin_named();
    assert_int_equal(alone.node.incarnation, ALONE_SELF);
    coordinated(LEAT_OK);
    assert_said("mail to the store\n");
    assert_int_equal(alone.node.incarnation, ALONE_SELF + 1);
    assert_int_equal(atomic_load(&alone.node.incarnation_told), ALONE_SELF + 1);
    step();
    assert_said("boot taken 101\nmail to 0\n");
    step();
    assert_said("adopt: 101, 4 marks\n");
    coordinated(LEAT_OK);
    assert_said("holds 67108864 2 2 3\nfates of 2\nmail to the store\n");
    assert_non_null(alone.node.decisions);
    assert_int_equal(alone.node.decision_count, 2);
    step();
    assert_said("cut\nmail to 0\n");
    step();
    assert_said("core 0: members\ncore 0: replicas\ncore 0: logs\ncore 0: adopted\nmail to 1\n");
    step();
    assert_said("core 1: members\ncore 1: logs\ncore 1: adopted\nmail to 0\n");
    assert_int_equal(alone.node.life, LEAT_LIFE_COMES_UP);
    step();
    assert_said("mail to the store\nlisten at l:1, up\ncore 0: for who administers\n"
                "tick in 1000000 us\nready OK: l:1!\n");
    assert_int_equal(alone.node.life, LEAT_LIFE_UP);
    assert_true(alone.node.decisions == NULL && alone.node.marks == NULL &&
                alone.node.dispositions == NULL);
    assert_non_null(alone.node.found);
    step();
    assert_said("found is done with\n");
    assert_null(alone.node.found);
    assert_int_equal(alone.node.found_count, 0);
    end();
}

static void clustered_node_says_who_it_is(void **state)
{
    (void)state;
    begin();
    struct leat_node_cluster *cluster = &alone.node.options.cluster;
    cluster->node_address = "p:2";
    cluster->rack = "r";
    cluster->host = "h";
    leat_node_bring_up(&alone.node);
    assert_said("node up: n1 l:1 2 cores, p:2 r h, 1000 bytes 321 logs, kafka -, id abab, boot 8 "
                "7\n");
    cluster->advertise = "a:3";
    alone.node.options.door = &it.door;
    leat_node_bring_up(&alone.node);
    assert_said("listen at d:9\nnode up: n1 a:3 2 cores, p:2 r h, 1000 bytes 321 logs, kafka d:9!, "
                "id abab, boot 8 7\n");
    it.door.advertise = "e:9";
    leat_node_bring_up(&alone.node); /* as after a while, for its name: the door is open */
    assert_said("node up: n1 a:3 2 cores, p:2 r h, 1000 bytes 321 logs, kafka e:9, id abab, boot 8 "
                "7\n");
    coordinated(LEAT_OK);
    step(), step();
    said_enough();
    it.no_room = true; /* it may have taken over more than its share */
    coordinated(LEAT_OK);
    assert_said("fates of 2\nmail to the store\n");
    step(), step(), step(), step(), step();
    said_enough();
    end();
}

static void other_door_is_not_bound(void **state)
{
    (void)state;
    for (unsigned optional = 0; optional < 2; optional++) {
        begin();
        alone.node.options.door = &it.door;
        it.door.optional = optional;
        it.door.advertise = "e:9";
        it.door_listen = LEAT_E_DENIED;
        leat_node_bring_up(&alone.node);
        assert_string_equal(it.door.bound_address, "");
        assert_string_equal(it.door.not_bound.text, "in use");
        assert_int_equal(it.door.not_bound.code, LEAT_E_DENIED);
        if (optional) {
            assert_said("listen at d:9\n" NODE_UP_ALONE);
            end();
        } else {
            assert_null(it.request);
            assert_failed("listen at d:9\nready DENIED: in use\n");
        }
    }
}

/* ---- which cluster ---- */

static void new_node_learns_its_cluster_first(void **state)
{
    (void)state;
    begin();
    alone.node.joining = true;
    memset(alone.node.cluster_id, 0, 16);
    leat_node_bring_up(&alone.node);
    assert_said("mail to the store\n");
    step();
    assert_said("identity is 0123456789abcdef\nmail to 0\n");
    step();
    assert_said(NODE_UP_ALONE);
    assert_false(alone.node.joining);
    end();
    begin();
    alone.node.joining = true;
    it.identity = LEAT_E_DISK;
    leat_node_bring_up(&alone.node);
    step(), step();
    assert_false(alone.node.joining);
    assert_failed("mail to the store\nidentity is 0123456789abcdef\nmail to 0\n"
                  "ready DISK: no identity\n");
}

static void files_of_another_cluster_are_refused(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 16; at += 15) {
        begin();
        alone.node.options.door = &it.door;
        it.cluster[at]++;
        leat_node_bring_up(&alone.node);
        assert_null(it.request);
        assert_failed("ready WRONG_CLUSTER: the coordinator's files in this data directory are "
                      "another cluster's\n");
    }
}

/* ---- its name ---- */

static void name_that_is_taken_is_waited_for(void **state)
{
    (void)state;
    begin_named();
    for (unsigned i = 0; i < LEAT_NAME_TRIES_MAX; i++) {
        coordinated(LEAT_E_EXISTS);
        if (i == 0) assert_true(said_one("node log warn: not so. This node waits"));
        assert_said("try again in 500000 us\n");
        it.timer->on_expired(it.timer);
        assert_said(NODE_UP_ALONE);
    }
    coordinated(LEAT_E_EXISTS);
    assert_failed("ready EXISTS: not so\n");
    begin_named();
    coordinated(LEAT_E_EXISTS);
    said_enough();
    it.timer->on_expired(it.timer);
    said_enough();
    coordinated(LEAT_OK); /* the other one was dead */
    assert_said("mail to the store\n");
    step(), step();
    said_enough();
    end();
}

static void node_does_not_wait_for_its_name(void **state)
{
    (void)state;
    begin_named();
    alone.node.life = LEAT_LIFE_GIVES_UP;
    coordinated(LEAT_E_EXISTS);
    assert_failed("ready EXISTS: not so\n");
    begin_named();
    coordinated(LEAT_E_TIMEOUT);
    assert_int_equal(alone.node.incarnation, ALONE_SELF);
    assert_failed("ready TIMEOUT: not so\n");
}

/* ---- what fails ---- */

static void nothing_is_adopted_before_the_start_is_noted(void **state)
{
    (void)state;
    begin_named();
    it.boot = LEAT_E_DISK;
    coordinated(LEAT_OK);
    step(), step();
    assert_null(it.request);
    assert_failed("mail to the store\nboot taken 101\nmail to 0\nready DISK: no boot\n");
}

static void nothing_is_cut_without_decisions(void **state)
{
    (void)state;
    begin_adopting();
    coordinated(LEAT_E_CLOSED);
    assert_null(alone.node.decisions);
    assert_failed("ready CLOSED: not so\n");
    begin_adopting();
    it.no_room = true;
    coordinated(LEAT_OK);
    assert_failed("holds 67108864 2 2 3\nready CONFIG: a memory budget of 64 MiB is too small for "
                  "what is here: 2 logs and 3 stored segments need at least 96 MiB (--memory)\n");
}

static void step_that_fails_is_the_last(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "cut\nmail to 0\nmail to 1\nmail to 0\nready DISK: \n",
        "cut\nmail to 0\ncore 0: members\nmail to 1\nmail to 0\nready DISK: no links\n",
        "cut\nmail to 0\ncore 0: members\ncore 0: replicas\nmail to 1\nmail to 0\nready DISK: \n",
        "cut\nmail to 0\ncore 0: members\ncore 0: replicas\ncore 0: logs\nmail to 1\nmail to 0\n"
        "ready DISK: no logs\n",
        "cut\nmail to 0\ncore 0: members\ncore 0: replicas\ncore 0: logs\ncore 0: adopted\n"
        "mail to 1\ncore 1: members\nmail to 0\nready DISK: no links\n",
        "cut\nmail to 0\ncore 0: members\ncore 0: replicas\ncore 0: logs\ncore 0: adopted\n"
        "mail to 1\ncore 1: members\ncore 1: logs\nmail to 0\nready DISK: no logs\n",
    };
    leat_err *const fails[] = {&it.cut,      &it.members[0], &it.found,
                               &it.adopt[0], &it.members[1], &it.adopt[1]};
    for (unsigned i = 0; i < 6; i++) {
        begin_adopting();
        coordinated(LEAT_OK);
        said_enough();
        *fails[i] = LEAT_E_DISK;
        step(), step(), step(), step();
        assert_int_equal(alone.node.life, LEAT_LIFE_COMES_UP);
        assert_non_null(alone.node.decisions); /* the node's end frees them */
        assert_failed(expected[i]);
    }
}

static void address_that_is_in_use_is_told(void **state)
{
    (void)state;
    begin_adopting();
    coordinated(LEAT_OK);
    step(), step(), step();
    said_enough();
    it.listen = LEAT_E_DENIED;
    step();
    assert_said("mail to the store\nlisten at l:1, up\nready DENIED: in use\n");
    step();
    assert_failed("found is done with\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_comes_up),
        cmocka_unit_test(clustered_node_says_who_it_is),
        cmocka_unit_test(other_door_is_not_bound),
        cmocka_unit_test(new_node_learns_its_cluster_first),
        cmocka_unit_test(files_of_another_cluster_are_refused),
        cmocka_unit_test(name_that_is_taken_is_waited_for),
        cmocka_unit_test(node_does_not_wait_for_its_name),
        cmocka_unit_test(nothing_is_adopted_before_the_start_is_noted),
        cmocka_unit_test(nothing_is_cut_without_decisions),
        cmocka_unit_test(step_that_fails_is_the_last),
        cmocka_unit_test(address_that_is_in_use_is_told),
    };
    return cmocka_run_group_tests_name("broker bringup", tests, NULL, NULL);
}
