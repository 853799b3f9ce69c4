/* SPDX-License-Identifier: Apache-2.0 */
/* A leader of recovery and a node in one test, with a link between them that hands over bytes and can fail. This file
 * plays links and recovery/recovery.c. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_CALLS_RIG_H
#define LEAT_TESTS_COORDINATOR_CALLS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"

enum { NODES = 5, LEADER = 10, NODE = 11, ATTEMPT = 7, INDEX = 42, ROWS = 60, LOGS = 12 };

static struct leat_coordinator *leader, *node;
static struct co_recovery *it;
static struct leat_xoshiro dice;
static struct leat_post post;
static struct co_peer peer;
static bool no_peer;
static leat_err link_rc;

/* ---- the bench: in the place of links and of recovery/recovery.c ---- */

static struct leat_link_call *call;      /* under way */
static struct leat_link_answer *sending; /* an answer's payload, until it is sent */
static uint8_t answer_control[8192], answer_payload[1 << 20];
static size_t answer_control_bytes, answer_payload_bytes;
static leat_err answer_rc; /* of the last answer; -1: none */
static struct leat_mail *mails[1024];
static unsigned mail_count, behind;

static struct {
    unsigned calls;
    uint64_t incarnation, attempt;
    leat_err rc, codes[CO_PULLS_MAX];
    struct leat_replica_row rows[ROWS];
    size_t count;
} given;

leat_err leat_link_call(struct leat_link *link, struct leat_link_call *asked)
{
    assert_ptr_equal(link, peer.link);
    if (link_rc == LEAT_OK) call = asked;
    return link_rc;
}
void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t bytes)
{
    (void)links;
    assert_int_equal(ticket->request, 5);
    memcpy(answer_control, control, bytes);
    answer_control_bytes = bytes;
    answer_payload_bytes = 0;
    answer_rc = LEAT_OK;
}
leat_err leat_link_answer_send(struct leat_links *links, const struct leat_link_ticket *ticket,
                               struct leat_link_answer *answer)
{
    if (link_rc != LEAT_OK) return link_rc;
    leat_link_answer(links, ticket, answer->control, answer->control_bytes);
    assert_int_equal(answer->payload_count, 1);
    memcpy(answer_payload, answer->payload[0].base, answer->payload[0].bytes);
    answer_payload_bytes = answer->payload[0].bytes;
    sending = answer;
    return LEAT_OK;
}
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    (void)links;
    assert_int_equal(ticket->request, 5);
    assert_true(text && text[0]);
    answer_rc = rc;
}
struct leat_link *leat_link_of(struct leat_links *links, const struct leat_link_ticket *ticket)
{
    (void)links;
    return ticket->slot ? peer.link : NULL;
}
void *leat_link_user(const struct leat_link *link)
{
    assert_ptr_equal(link, peer.link);
    return &peer;
}
void co_feed_behind(struct leat_coordinator *asker, struct co_peer *from, uint64_t index)
{
    assert_ptr_equal(asker, node);
    assert_ptr_equal(from, &peer);
    assert_int_equal(index, INDEX);
    behind++;
}
static unsigned state_told;
void co_state_tell(struct leat_coordinator *asker, bool always)
{
    assert_ptr_equal(asker, leader);
    assert_false(always);
    state_told++;
}
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *asker, uint64_t incarnation)
{
    assert_ptr_equal(asker, leader);
    return incarnation == NODE && !no_peer ? &peer : NULL;
}
void co_recovery_rows(struct leat_coordinator *asker, uint64_t incarnation,
                      struct leat_collect *collect)
{
    (void)asker;
    given.calls++;
    given.incarnation = incarnation;
    given.attempt = collect->attempt;
    given.rc = collect->rc;
    given.count = collect->row_count;
    if (collect->row_count && collect->row_count <= ROWS)
        memcpy(given.rows, collect->rows, collect->row_count * sizeof *collect->rows);
}
void co_recovery_pulled(struct leat_coordinator *asker, uint64_t incarnation, uint64_t attempt,
                        const leat_err *codes, uint32_t count)
{
    (void)asker;
    given.calls++;
    given.incarnation = incarnation;
    given.attempt = attempt;
    given.count = count;
    memcpy(given.codes, codes, count * sizeof *codes);
}
static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, LEAT_ACTOR_COORDINATOR);
    mails[mail_count++] = mail;
}

/* ---- what the node's broker is asked ---- */

static struct leat_collect *collects[CO_COLLECTS_MAX];
static struct leat_pull *pulls[1024];
static unsigned collect_count, pull_count;

static void on_collect(void *owner, struct leat_collect *collect)
{
    assert_ptr_equal(owner, &collects);
    collects[collect_count++] = collect;
}
static void on_pull(void *owner, struct leat_pull *pull)
{
    assert_ptr_equal(owner, &collects);
    pulls[pull_count++] = pull;
}

static inline void mails_deliver(struct leat_coordinator *to)
{
    for (unsigned i = 0; i < mail_count; i++)
        mails[i]->deliver(to, mails[i]);
    mail_count = 0;
}

/* ---- a cluster ---- */

static inline uint64_t below(uint64_t bound)
{
    return leat_xoshiro_below(&dice, bound);
}

static inline void machine_make(struct leat_machine *machine)
{
    leat_machine_init(machine, 1);
    machine->node_count = NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        struct leat_node_info *info = &machine->nodes[i].info;
        snprintf(info->name, sizeof info->name, "n%u", i);
        snprintf(info->node_address, sizeof info->node_address, "host%u:%u", i, i);
        info->incarnation = 10 + i;
        info->state = LEAT_NODE_UP;
    }
    machine->nodes[4].info.crashed = true;
    for (uint32_t s = 0; s < 3; s++) {
        struct leat_stream_settings settings = {.streamlets = 2,
                                                .logs = 2,
                                                .copies = 2,
                                                .min_copies = 2,
                                                .durability = s ? LEAT_DURABILITY_DISK
                                                                : LEAT_DURABILITY_MEMORY};
        struct leat_machine_log *logs;
        struct leat_stream_desc *desc = leat_machine_desc_create(s + 1, &"abc"[s], 1, &settings);
        assert_non_null(desc);
        assert_int_equal(leat_machine_stream_add(machine, desc, &logs), LEAT_OK);
        for (uint32_t i = 0; i < 4; i++)
            logs[i] = (struct leat_machine_log){
                .epoch = {20 + s},
                .record = {.opened = true, .stamp_epoch = {20 + i % 2}, .stamp_version = i + 1}};
        for (uint32_t i = 0; i < 2; i++)
            desc->streamlets[i].owner = 30 + i, desc->streamlets[i].epoch.v = 40 + i;
    }
}

static inline struct leat_coordinator *coordinator_make(uint64_t incarnation)
{
    struct leat_coordinator *made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->recovery = calloc(1, sizeof *made->recovery);
    assert_non_null(made->recovery);
    leat_list_init(&made->recovery->collects);
    leat_list_init(&made->recovery->pullings);
    made->incarnation = incarnation;
    made->applied = INDEX;
    made->options.on_collect = on_collect;
    made->options.on_pull = on_pull;
    made->options.owner = &collects;
    machine_make(&made->machine);
    return made;
}

static inline int begin(void **state)
{
    (void)state;
    leader = coordinator_make(LEADER);
    node = coordinator_make(NODE);
    it = leader->recovery;
    it->attempt = ATTEMPT;
    it->index = INDEX;
    post = (struct leat_post){.send = post_send};
    peer = (struct co_peer){.link = (struct leat_link *)(void *)&peer};
    no_peer = false;
    link_rc = LEAT_OK;
    call = NULL;
    sending = NULL;
    collect_count = pull_count = mail_count = behind = state_told = 0;
    memset(&given, 0, sizeof given);
    answer_rc = (leat_err)-1;
    leat_xoshiro_seed(&dice, 1);
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    co_collect_fini(leader);
    co_collect_fini(node);
    leat_machine_fini(&leader->machine);
    leat_machine_fini(&node->machine);
    leat_mem_free(it->streamlets);
    leat_mem_free(it->crashed);
    leat_mem_free(it->rows);
    leat_mem_free(it->logs);
    leat_mem_free(it->tasks);
    free(it);
    free(node->recovery);
    free(leader);
    free(node);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR) + leat_mem_bytes(LEAT_MEM_ROWS), 0);
    return 0;
}

/* The call's bytes as a frame, to be given to the other side. */
static inline struct leat_frame frame_of(uint8_t *payload)
{
    assert_non_null(call);
    assert_int_equal(call->payload_count, 1);
    memcpy(payload, call->payload[0].base, call->payload[0].bytes);
    return (struct leat_frame){.control = call->control,
                               .control_bytes = call->control_bytes,
                               .payload = payload,
                               .payload_bytes = (uint32_t)call->payload[0].bytes};
}

static const struct leat_link_ticket ticket = {.slot = 1, .request = 5};

static inline void answer_arrives(leat_err rc)
{
    const struct leat_frame frame = {.control = answer_control,
                                     .control_bytes = (uint32_t)answer_control_bytes,
                                     .payload = answer_payload,
                                     .payload_bytes = (uint32_t)answer_payload_bytes};
    struct leat_error error = {.code = rc};
    struct leat_link_call *ended = call;
    call = NULL;
    ended->on_done(ended, rc, rc == LEAT_OK ? &frame : NULL, &error);
    if (sending) sending->on_sent(sending, LEAT_OK);
    sending = NULL;
}

#define CALLS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
