/* SPDX-License-Identifier: Apache-2.0 */
/* One source file of coordinator/ by itself: the test plays links, answers, clock and random numbers, and writes each
 * request to the trace with every field. The test also plays the other functions that the source calls. For one test
 * program only. */
#ifndef LEAT_TESTS_COORDINATOR_SOLO_RIG_H
#define LEAT_TESTS_COORDINATOR_SOLO_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "tests/trace.h"

enum { PEERS = 4, CALLS = 64, SOLO_NOW_US = 100 * 1000 * 1000 };

static struct leat_coordinator *coordinator;
static struct leat_clock solo_clock;
static struct leat_random solo_random;
static struct leat_post solo_post;
static struct leat_env solo_env;
static uint64_t now_us, dice;
static struct leat_link_identity own_identity;
static struct leat_error refusal = {.text = "words of a refusal"};
static const struct leat_link_ticket ticket = {.slot = 1, .request = 5};

static struct peer_of_test {
    struct co_peer peer;
    bool up;
    struct leat_link_identity identity;
} peers[PEERS];                             /* n0 to n3 */
static struct leat_link_call *calls[CALLS]; /* under way */
static unsigned call_count;
static leat_err link_rc; /* of calls that are made now */

static inline struct peer_of_test *of(const void *peer)
{
    return (struct peer_of_test *)(uintptr_t)peer;
}
static inline const char *name_of(const void *peer)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3"};
    return peer ? names[of(peer) - peers] : "nobody";
}

/* ---- bytes as text ---- */

static inline uint64_t bytes_number(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* One value of a control body; arrays as "[count". Bytes that are no text as hexadecimal digits. */
static inline size_t control_part(const uint8_t *at)
{
    size_t bytes = 0, head = 1;
    if (*at < 0x80) {
        trace(" %u", *at);
    } else if (*at < 0xa0) {
        trace(" [%u", *at & 15);
    } else if (*at < 0xc0) {
        bytes = *at & 31;
        trace(" '%.*s'", (int)bytes, (const char *)at + 1);
    } else if (*at == 0xc2 || *at == 0xc3) {
        trace(" %s", *at == 0xc3 ? "true" : "false");
    } else if (*at >= 0xcc && *at <= 0xcf) {
        bytes = (size_t)1 << (*at - 0xcc);
        trace(" %llu", (unsigned long long)bytes_number(at + 1, (unsigned)bytes));
    } else if (*at == 0xdc) {
        head = 3;
        trace(" [%u", (unsigned)bytes_number(at + 1, 2));
    } else if (*at == 0xc4 || *at == 0xc5) {
        head = *at == 0xc4 ? 2 : 3;
        bytes = bytes_number(at + 1, (unsigned)head - 1);
        trace(" <");
        for (size_t i = 0; i < bytes; i++)
            trace("%02x", at[head + i]);
        trace(">");
    } else {
        assert_true(*at == 0xd9 || *at == 0xda);
        head = *at == 0xd9 ? 2 : 3;
        bytes = bytes_number(at + 1, (unsigned)head - 1);
        trace(" '%.*s'", (int)bytes, (const char *)at + head);
    }
    return head + bytes;
}
static inline void control_trace(const uint8_t *control, size_t bytes)
{
    for (size_t at = 0; at < bytes;)
        at += control_part(control + at);
}
static inline unsigned sum_of(const uint8_t *bytes, size_t count)
{
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = (sum * 31 + bytes[i]) & 0xffff;
    return sum;
}
/* Few bytes in full; of many how many, and a sum. */
static inline void bytes_trace(const uint8_t *bytes, size_t count)
{
    trace(" +%zu", count);
    if (count > 40) trace("=%u", sum_of(bytes, count));
    for (size_t i = 0; i < count && count <= 40; i++)
        trace("%s%02x", i ? "" : ":", bytes[i]);
}

/* ---- in the place of links ---- */

bool leat_link_is_up(const struct leat_link *link)
{
    return of(link)->up;
}
const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    return &of(link)->identity;
}
const struct leat_link_identity *leat_links_identity(const struct leat_links *links)
{
    assert_ptr_equal(links, coordinator->links);
    return &own_identity;
}
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    trace("cut %s: %s: %s\n", name_of(link), leat_err_name(rc), why);
}
leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call)
{
    trace("call %s kind %u%s", name_of(link), call->kind, call->one_way ? " one way" : "");
    if (call->timeout_us) trace(" within %llu", (unsigned long long)call->timeout_us);
    control_trace(call->control, call->control_bytes);
    for (unsigned i = 0; i < call->payload_count; i++)
        bytes_trace(call->payload[i].base, call->payload[i].bytes);
    trace("%s\n", link_rc == LEAT_OK ? "" : " fails");
    assert_true(call->on_done && call_count < CALLS);
    if (link_rc == LEAT_OK) calls[call_count++] = call;
    return link_rc;
}
void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *to,
                      const void *control, uint32_t bytes)
{
    assert_ptr_equal(links, coordinator->links);
    assert_int_equal(to->request, ticket.request);
    assert_int_equal(to->slot, ticket.slot);
    trace("answer");
    control_trace(control, bytes);
    trace("\n");
}
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *to,
                            leat_err rc, const char *text)
{
    assert_ptr_equal(links, coordinator->links);
    assert_int_equal(to->request, ticket.request);
    assert_int_equal(to->slot, ticket.slot);
    trace("refuse %s: %s\n", leat_err_name(rc), text);
}
/* The oldest call that is under way ends so. */
static inline void call_ends(leat_err rc)
{
    assert_true(call_count > 0);
    struct leat_link_call *call = calls[0];
    memmove(calls, calls + 1, --call_count * sizeof *calls);
    refusal.code = rc;
    call->on_done(call, rc, NULL, &refusal);
}

/* ---- the rest of the world ---- */

static uint64_t solo_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static uint64_t solo_next(void *ctx)
{
    (void)ctx;
    return dice++;
}
static void solo_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    if (to == LEAT_ACTOR_COORDINATOR)
        trace("asked\n");
    else
        trace("mail to %u\n", to);
    mail->deliver(coordinator, mail);
}
static void solo_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %u: %s\n", level, line);
}

/* The number of raft's allocations; the n-th from now fails (0: none). */
static long raft_pieces;
static unsigned raft_fail_at;

static void *raft_piece(void *old, size_t bytes)
{
    if (raft_fail_at && --raft_fail_at == 0) return NULL;
    raft_pieces += !old;
    return realloc(old, bytes ? bytes : 1);
}
static void *heap_malloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return raft_piece(NULL, bytes);
}
static void *heap_calloc(void *ctx, size_t count, size_t bytes)
{
    (void)ctx;
    void *piece = raft_piece(NULL, count * bytes);
    if (piece) memset(piece, 0, count * bytes);
    return piece;
}
static void *heap_realloc(void *ctx, void *old, size_t bytes)
{
    (void)ctx;
    return raft_piece(old, bytes);
}
static void heap_free(void *ctx, void *piece)
{
    (void)ctx;
    raft_pieces -= piece != NULL;
    free(piece);
}
static struct raft_heap solo_heap = {
    .malloc = heap_malloc, .free = heap_free, .calloc = heap_calloc, .realloc = heap_realloc};

static inline int solo_begin(void **state)
{
    (void)state;
    trace_begin();
    leat_mem_fail_at(0);
    raft_fail_at = 0;
    raft_pieces = 0;
    raft_heap_set(&solo_heap);
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    solo_clock = (struct leat_clock){.now_us = solo_now};
    solo_random = (struct leat_random){.next = solo_next};
    solo_post = (struct leat_post){.send = solo_send, .self = 3};
    solo_env = (struct leat_env){.clock = &solo_clock, .random = &solo_random, .post = &solo_post};
    coordinator->env = &solo_env;
    coordinator->links = (struct leat_links *)(void *)coordinator;
    coordinator->clustered = true;
    coordinator->voter_id = 1;
    leat_list_init(&coordinator->peers);
    leat_list_init(&coordinator->queue);
    leat_list_init(&coordinator->pending);
    memset(peers, 0, sizeof peers);
    for (unsigned i = 0; i < PEERS; i++) {
        struct co_peer *peer = &peers[i].peer;
        peer->link = (struct leat_link *)(void *)&peers[i];
        peer->coordinator = coordinator;
        peers[i].up = true;
        peer->state.known = true;
        peer->state.voter_id = i + 10;
        snprintf(peer->state.address, sizeof peer->state.address, "h%u:1", i);
        snprintf(peer->state.node, sizeof peer->state.node, "n%u", i);
        snprintf(peers[i].identity.node, sizeof peers[i].identity.node, "n%u", i);
        leat_list_init(&peer->list);
        leat_list_push_back(&coordinator->peers, &peer->list);
    }
    memset(&own_identity, 0, sizeof own_identity);
    snprintf(own_identity.node, sizeof own_identity.node, "me");
    now_us = SOLO_NOW_US;
    dice = 1000;
    call_count = 0;
    link_rc = LEAT_OK;
    leat_node_log_set(solo_node_log, NULL, LEAT_NODE_LOG_DEBUG);
    return 0;
}
static inline int solo_finish(void **state)
{
    (void)state;
    while (call_count)
        call_ends(LEAT_E_CANCELLED);
    free(coordinator);
    coordinator = NULL;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    assert_int_equal(raft_pieces, 0);
    raft_heap_set_default();
    return 0;
}

/* A frame whose control body is numbers. */
static uint8_t frame_control[256];
static inline struct leat_frame frame_of(unsigned count, const uint64_t *numbers,
                                         const void *payload, size_t bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, frame_control, sizeof frame_control);
    leat_msg_write_array(&writer, count);
    for (unsigned i = 0; i < count; i++)
        leat_msg_write_u64(&writer, numbers[i]);
    return (struct leat_frame){.control = frame_control,
                               .control_bytes = writer.used,
                               .payload = payload,
                               .payload_bytes = (uint32_t)bytes};
}
#define NUMBERS(...)                                                                               \
    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[])                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define SOLO_TEST(name) cmocka_unit_test_setup_teardown(name, solo_begin, solo_finish)

#endif
