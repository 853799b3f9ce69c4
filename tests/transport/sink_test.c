/* SPDX-License-Identifier: Apache-2.0 */
/* The backup's side of tcp and rpc, without a network: the link and the host's memory are this program, which notes
 * every call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "replication/transport/data.h"
#include "replication/transport/transport.h"
#include "tests/trace.h"

struct leat_link {
    struct leat_link_identity peer;
};

static struct {
    struct leat_link link;
    bool gone, deaf;
    leat_err enter_rc, leave_rc;
    uint8_t memory[256];
    struct leat_mail *mail;
    uint64_t cpu_ns;
    struct leat_env env;
    struct leat_post post;
    struct leat_rmem_host host;
    struct leat_transport_sink *sink;
    const struct leat_link_handler *handler;
} it;

struct leat_links *leat_link_links(const struct leat_link *link)
{
    assert_ptr_equal(link, &it.link);
    return (struct leat_links *)&it;
}

const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    return &link->peer;
}

struct leat_link *leat_link_of(struct leat_links *links, const struct leat_link_ticket *ticket)
{
    (void)ticket;
    assert_ptr_equal(links, &it);
    return it.gone ? NULL : &it.link;
}

leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control, uint32_t bytes)
{
    struct leat_data_done done;
    (void)link;
    assert_int_equal(kind, LEAT_DATA_DONE);
    assert_int_equal(bytes, sizeof done);
    memcpy(&done, control, sizeof done);
    trace("DONE t%u n%llu %s\n", done.target, (unsigned long long)done.number,
          leat_err_name((leat_err)done.rc));
    return it.deaf ? LEAT_E_AGAIN : LEAT_OK;
}

void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    (void)link;
    trace("cut %s \"%s\"\n", leat_err_name(rc), why);
}

void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t bytes)
{
    (void)links;
    trace("%u: %02x %u\n", ticket->request, *(const uint8_t *)control, bytes);
}

void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    (void)links;
    trace("%u: %s \"%s\"\n", ticket->request, leat_err_name(rc), text);
}

static leat_err enter(void *ctx, const struct leat_rmem_from *from,
                      const struct leat_rmem_address *address, uint64_t offset, uint64_t bytes,
                      uint8_t **out_at)
{
    (void)ctx;
    trace("enter %s/%llu arena %u @%llu+%llu\n", from->node, (unsigned long long)from->incarnation,
          address->number, (unsigned long long)offset, (unsigned long long)bytes);
    *out_at = it.memory + offset;
    return it.enter_rc;
}

static leat_err leave(void *ctx, const struct leat_rmem_address *address)
{
    (void)ctx;
    trace("leave %u\n", address->number);
    return it.leave_rc;
}

static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, 3);
    assert_null(it.mail);
    it.mail = mail;
}

static uint64_t cpu_ns(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return it.cpu_ns += 10;
}

static int begin(void **state)
{
    memset(&it, 0, sizeof it);
    trace_begin();
    snprintf(it.link.peer.node, sizeof it.link.peer.node, "writer");
    it.link.peer.incarnation = 7;
    it.post = (struct leat_post){NULL, post_send, 3};
    it.env.post = &it.post;
    it.host = (struct leat_rmem_host){.enter = enter, .leave = leave};
    struct leat_transport_sink_options options = {.env = &it.env,
                                                  .host = &it.host,
                                                  .baseline = &leat_transport_rpc,
                                                  .cpu_ns = cpu_ns,
                                                  .cpu_ctx = &it};
    leat_mem_fail_at(1);
    assert_int_equal(leat_transport_sink_create(&options, &it.sink), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(leat_transport_sink_create(&options, &it.sink), LEAT_OK);
    it.handler = leat_transport_sink_handler(it.sink);
    return *state != NULL;
}

static int end(void **state)
{
    (void)state;
    leat_transport_sink_destroy(&it.sink);
    assert_null(it.sink);
    leat_transport_sink_destroy(&it.sink); /* there is none */
    return 0;
}

static uint64_t connection = 1;

static void hear(unsigned kind, const void *control, uint32_t bytes, const char *payload,
                 uint32_t request, uint32_t slot)
{
    struct leat_frame frame = {.kind = (uint16_t)kind,
                               .control = control,
                               .control_bytes = bytes,
                               .payload = (const uint8_t *)payload,
                               .payload_bytes = payload ? (uint32_t)strlen(payload) : 0};
    struct leat_link_ticket ticket = {.request = request, .slot = slot, .connection = connection};
    it.handler->on_request(it.handler->owner, &it.link, &frame, &ticket);
}

static void writes_from(unsigned kind, uint32_t target, uint64_t number, uint32_t slot)
{
    struct leat_data_write write = {
        .address = {.number = 8}, .offset = 4 * number, .number = number, .target = target};
    hear(kind, &write, sizeof write, "abcd", kind == LEAT_DATA_REQUEST ? 9 : 0, slot);
}

static void put(uint32_t target, uint64_t number)
{
    writes_from(LEAT_DATA_WRITE, target, number, 1);
}

static void turn_ends(void)
{
    struct leat_mail *mail = it.mail;
    it.mail = NULL;
    if (mail) mail->deliver(NULL, mail);
}

/* Goal: writes that arrive are put in place, and the writer learns once in a turn up to which write. */
static void writes_are_put_in_place_and_told_once_a_turn(void **state)
{
    (void)state;
    put(1, 1);
    put(1, 2);
    put(2, 1);
    put(1, 3);
    writes_from(LEAT_DATA_WRITE, 1, 1, 2); /* over another link */
    TRACE_IS("enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @8+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @12+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @4+4\n"
             "leave 8\n");
    assert_memory_equal(it.memory + 4, "abcdabcdabcd", 12);
    turn_ends();
    TRACE_IS("DONE t1 n3 OK\n"
             "DONE t2 n1 OK\n"
             "DONE t1 n1 OK\n");
    turn_ends();
    put(1, 4);
    turn_ends();
    TRACE_IS("enter writer/7 arena 8 @16+4\n"
             "leave 8\n"
             "DONE t1 n4 OK\n");
    put(1, 7);
    connection = 2; /* another link, in the same slot */
    put(1, 1);
    connection = 1;
    turn_ends();
    TRACE_IS("enter writer/7 arena 8 @28+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "DONE t1 n7 OK\n"
             "DONE t1 n1 OK\n");
    it.gone = true;
    put(1, 5);
    turn_ends();
    it.gone = false;
    it.deaf = true;
    put(1, 6);
    turn_ends();
    TRACE_IS("enter writer/7 arena 8 @20+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @24+4\n"
             "leave 8\n"
             "DONE t1 n6 OK\n"
             "cut AGAIN \"the writer does not read what it is told\"\n");
}

/* Goal: the writes that are in place are reported before the refused write, and nothing is reported after it. */
static void refusal_is_told_behind_what_is_in_place(void **state)
{
    (void)state;
    struct leat_transport_sink_status status;
    put(1, 1);
    leat_transport_sink_status(it.sink, &status);
    assert_int_equal(status.bytes, 4);
    assert_int_equal(status.refused, 0);
    it.enter_rc = LEAT_E_CANCELLED;
    put(1, 2);
    it.enter_rc = LEAT_OK;
    put(1, 3);
    it.leave_rc = LEAT_E_CANCELLED;
    put(2, 1);
    turn_ends();
    TRACE_IS("enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @8+4\n"
             "enter writer/7 arena 8 @12+4\n"
             "leave 8\n"
             "enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "DONE t1 n1 OK\n"
             "DONE t1 n2 CANCELLED\n"
             "DONE t2 n1 CANCELLED\n");
    leat_transport_sink_status(it.sink, &status);
    assert_int_equal(status.writes, 4);
    assert_int_equal(status.bytes, 8);
    assert_int_equal(status.refused, 2);
}

/* Goal: more words than there is room for in a turn leave before it ends. */
static void words_beyond_their_room_leave_at_once(void **state)
{
    (void)state;
    for (uint32_t target = 1; target <= 64; target++)
        put(target, 1);
    trace_begin();
    put(65, 1);
    assert_non_null(strstr(trace_text, "DONE t1 n1 OK\n"));
    assert_non_null(strstr(trace_text, "DONE t64 n1 OK\n"));
    trace_begin();
    turn_ends();
    TRACE_IS("DONE t65 n1 OK\n");
}

/* Goal: rpc: each has its answer. */
static void request_has_its_own_answer(void **state)
{
    (void)state;
    writes_from(LEAT_DATA_REQUEST, 1, 1, 1);
    it.enter_rc = LEAT_E_OFFSET_OUT_OF_RANGE;
    writes_from(LEAT_DATA_REQUEST, 1, 2, 1);
    assert_null(it.mail);
    TRACE_IS("enter writer/7 arena 8 @4+4\n"
             "leave 8\n"
             "9: 90 1\n"
             "enter writer/7 arena 8 @8+4\n"
             "9: OFFSET_OUT_OF_RANGE \"offset outside the log's valid range\"\n");
}

/* Goal: a node that has no rpc takes no such request. */
static void request_is_refused_without_its_transport(void **state)
{
    struct leat_transport_sink_options options = {.env = &it.env, .host = &it.host};
    (void)state;
    leat_transport_sink_destroy(&it.sink);
    assert_int_equal(leat_transport_sink_create(&options, &it.sink), LEAT_OK);
    it.handler = leat_transport_sink_handler(it.sink);
    writes_from(LEAT_DATA_REQUEST, 1, 1, 1);
    TRACE_IS("9: UNSUPPORTED \"not a message for the memory of a backup\"\n");
}

/* Goal: attached is who may write there. */
static void attach_asks_the_host(void **state)
{
    (void)state;
    static const leat_err refusals[] = {LEAT_OK, LEAT_E_NOT_FOUND, LEAT_E_DENIED, LEAT_E_CANCELLED};
    struct leat_rmem_address address = {.number = 8};
    for (unsigned i = 0; i < 4; i++) {
        it.enter_rc = refusals[i];
        hear(LEAT_DATA_ATTACH, &address, sizeof address, NULL, 9, 1);
    }
    it.enter_rc = LEAT_OK;
    it.leave_rc = LEAT_E_CANCELLED;
    hear(LEAT_DATA_ATTACH, &address, sizeof address, NULL, 9, 1);
    hear(LEAT_DATA_ATTACH, &address, sizeof address - 1, NULL, 9, 1);
    TRACE_IS("enter writer/7 arena 8 @0+0\n"
             "leave 8\n"
             "9: 90 1\n"
             "enter writer/7 arena 8 @0+0\n"
             "9: NOT_FOUND \"the backup has no such arena (any more)\"\n"
             "enter writer/7 arena 8 @0+0\n"
             "9: DENIED \"not allowed to whoever asks\"\n"
             "enter writer/7 arena 8 @0+0\n"
             "9: CANCELLED \"the backup has revoked the arena\"\n"
             "enter writer/7 arena 8 @0+0\n"
             "leave 8\n"
             "9: CANCELLED \"the backup has revoked the arena\"\n"
             "9: INVALID \"malformed request\"\n");
}

/* Goal: a malformed message is refused, or ends the link where no request waits for an answer. */
static void nonsense_is_refused(void **state)
{
    (void)state;
    struct leat_data_write write = {.address = {.number = 8}};
    hear(LEAT_DATA_WRITE, &write, sizeof write - 1, "x", 0, 1);
    hear(LEAT_DATA_REQUEST, &write, sizeof write + 1, "x", 9, 1);
    hear(LEAT_DATA_DONE, &write, sizeof write, NULL, 0, 1);
    hear(LEAT_DATA_DONE, &write, sizeof write, NULL, 9, 1);
    TRACE_IS("cut INVALID \"not a message for the memory of a backup\"\n"
             "9: UNSUPPORTED \"not a message for the memory of a backup\"\n"
             "cut INVALID \"not a message for the memory of a backup\"\n"
             "9: UNSUPPORTED \"not a message for the memory of a backup\"\n");
}

/* Goal: one write of sixteen is measured, and stands for all; the part of the cost that a network card would take over
 * is counted apart. */
static void one_of_sixteen_is_measured(void **state)
{
    (void)state;
    struct leat_transport_sink_status status;
    for (uint64_t n = 1; n <= 16; n++)
        put(1, n);
    leat_transport_sink_status(it.sink, &status);
    assert_int_equal(status.cpu_ns, 160);
    assert_int_equal(status.cpu_emulation_ns, 160);
    writes_from(LEAT_DATA_REQUEST, 1, 17, 1); /* of which a card takes over nothing */
    leat_transport_sink_status(it.sink, &status);
    assert_int_equal(status.cpu_ns, 2 * 160);
    assert_int_equal(status.cpu_emulation_ns, 160);
    turn_ends();
    leat_transport_sink_status(it.sink, &status);
    assert_int_equal(status.cpu_ns, 3 * 160);
    assert_int_equal(status.cpu_emulation_ns, 2 * 160);
    it.handler->on_up(it.handler->owner, &it.link); /* nothing: whoever writes attaches */
    it.handler->on_down(it.handler->owner, &it.link, true, NULL);
    trace_begin();
}

#define SINK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SINK_TEST(writes_are_put_in_place_and_told_once_a_turn),
        SINK_TEST(refusal_is_told_behind_what_is_in_place),
        SINK_TEST(words_beyond_their_room_leave_at_once),
        SINK_TEST(request_has_its_own_answer),
        SINK_TEST(request_is_refused_without_its_transport),
        SINK_TEST(attach_asks_the_host),
        SINK_TEST(nonsense_is_refused),
        SINK_TEST(one_of_sixteen_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
