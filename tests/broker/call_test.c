/* SPDX-License-Identifier: Apache-2.0 */
/* Requests off the data path, by call.c alone: who has a place, what a call holds and gives back, how it is answered
 * and refused, and which log it names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/streams.h"
#include "broker/data/call_find.h"
#include "broker/data/route.h"
#include "broker/net/call.h"
#include "tests/broker/alone.h"

enum { MOST = 80, BYTES = 500 };

static struct {
    struct leat_peer peer;
    struct leat_sharer sharer, link_sharer;
    struct leat_link_ticket ticket;
    uint8_t *scratch;
    size_t output, own; /* that calls have taken */
    bool no_output, no_own, does_not_fit;
    leat_err name, seek;
} it;

/* ---- what it calls ---- */

static struct leat_peer *known(const struct leat_peer *peer)
{
    assert_true(peer == &it.peer || peer == &alone.cores[1].link_peer);
    return peer == &it.peer ? &it.peer : &alone.cores[1].link_peer;
}
bool leat_output_take(struct leat_peer *peer, size_t bytes)
{
    (void)known(peer);
    if (it.no_output) return false;
    it.output += bytes;
    return true;
}
void leat_output_give(struct leat_peer *peer, size_t bytes)
{
    (void)known(peer);
    assert_in_range(bytes, 0, it.output);
    it.output -= bytes;
}
bool leat_output_fits(struct leat_peer *peer, size_t bytes)
{
    assert_ptr_equal(peer, &it.peer);
    assert_int_equal(it.output, 0); /* the memory that the call held may be its answer's */
    said("fits %zu?", bytes);
    return !it.does_not_fit;
}
void leat_output_wait(struct leat_peer *peer, size_t bytes, bool again)
{
    assert_ptr_equal(peer, &it.peer);
    assert_true(again);
    said("wait for %zu", bytes);
}
bool leat_own_take(struct leat_peer *peer, bool only, size_t bytes)
{
    (void)known(peer);
    said("own %zu%s", bytes, only ? ", its only" : "");
    if (it.no_own) return false;
    it.own += bytes;
    return true;
}
void leat_own_give(struct leat_core *core, struct leat_peer *peer, size_t bytes)
{
    assert_int_equal(core->index, 1);
    (void)known(peer);
    assert_in_range(bytes, 1, it.own); /* a connection that gets nothing back is not woken for it */
    it.own -= bytes;
}
void leat_peer_begin(struct leat_peer *peer)
{
    known(peer)->requests++;
}
void leat_peer_end(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 100);
    known(peer)->requests--;
}
void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *refusal)
{
    assert_ptr_equal(peer, &it.peer);
    assert_int_equal(kind, LEAT_KIND_STATUS);
    said("refuse %u %s: %s", request, leat_err_name(code), refusal);
}
void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes)
{
    assert_ptr_equal(peer, &it.peer);
    assert_ptr_equal(out, it.scratch);
    assert_int_equal(kind, LEAT_KIND_STATUS);
    assert_int_equal(flags, LEAT_FRAME_ANSWER);
    assert_int_equal(payload_bytes, 0);
    said("answer %u, %u bytes", request, control_bytes);
}
void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t control_bytes)
{
    assert_ptr_equal(links, &it);
    assert_memory_equal(ticket, &it.ticket, sizeof *ticket);
    assert_ptr_equal(control, it.scratch + LEAT_FRAME_HEADER_BYTES);
    said("answer by link, %u bytes", control_bytes);
}
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *refusal)
{
    assert_ptr_equal(links, &it);
    assert_memory_equal(ticket, &it.ticket, sizeof *ticket);
    said("refuse by link %s: %s", leat_err_name(rc), refusal);
}
leat_err leat_stream_name_check(const char *name, size_t bytes, struct leat_error *error)
{
    said("name \"%.*s\"", (int)bytes, name);
    return it.name == LEAT_OK ? LEAT_OK : leat_error_set(error, it.name, "no such name");
}
leat_err leat_stream_seek(struct leat_core *core, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream, struct leat_error *error)
{
    assert_int_equal(core->index, 1);
    (void)seek, (void)name, (void)bytes;
    *out_stream = &alone.stream;
    return it.seek == LEAT_OK || it.seek == LEAT_E_AGAIN
               ? it.seek
               : leat_error_set(error, it.seek, "no such stream");
}
leat_err leat_partition_place(struct leat_core *core, struct leat_log_ref ref, uint32_t *out_home,
                              struct leat_error *error)
{
    assert_int_equal(core->index, 1);
    said("place %s", ref_text(ref));
    *out_home = 1;
    if (ref.streamlet == 2) return leat_error_set(error, LEAT_E_UNKNOWN_LOG, "there is none");
    return alone.desc->streamlets[ref.streamlet].owner == ALONE_SELF ? LEAT_OK : LEAT_E_NOT_OWNER;
}
void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes)
{
    said("forward to %llu: %.*s", (unsigned long long)owner, (int)control_bytes,
         (const char *)control);
    leat_call_refuse(call, LEAT_E_AGAIN, "sent on");
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    struct leat_core *core = &alone.cores[1];
    core->calls_max = MOST;
    core->scratch = it.scratch = malloc(LEAT_CORE_SCRATCH_BYTES);
    assert_non_null(it.scratch);
    core->members.links = (void *)&it;
    core->link_peer = (struct leat_peer){.core = core, .sharer = &it.link_sharer};
    memset(&it.ticket, 7, sizeof it.ticket);
    core->serving = &it.ticket;
    it.peer = (struct leat_peer){.core = core, .sharer = &it.sharer, .address_number = 55};
}

static void end(void)
{
    assert_int_equal(alone.cores[1].calls, 0);
    assert_int_equal(it.sharer.calls + it.link_sharer.calls, 0);
    assert_int_equal(it.peer.requests + alone.cores[1].link_peer.requests, 0);
    assert_int_equal(it.output, 0);
    assert_int_equal(it.own, 0);
    free(it.scratch);
    said_enough();
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

static struct leat_call *create(bool by_link)
{
    struct leat_frame frame = {.kind = LEAT_KIND_STATUS, .request = 5};
    return leat_call_create(by_link ? &alone.cores[1].link_peer : &it.peer, &frame, BYTES);
}

/* ---- places ---- */

static void call_has_what_it_needs(void **state)
{
    (void)state;
    for (unsigned by_link = 0; by_link < 2; by_link++) {
        begin();
        struct leat_call *call = create(by_link);
        assert_said("");
        assert_ptr_equal(call->core, &alone.cores[1]);
        assert_ptr_equal(call->peer, by_link ? &alone.cores[1].link_peer : &it.peer);
        assert_int_equal(call->kind, LEAT_KIND_STATUS);
        assert_int_equal(call->request, 5);
        assert_int_equal(call->by_link, by_link);
        assert_int_equal(call->held, BYTES);
        assert_int_equal(call->own, 0);
        assert_int_equal(it.output, BYTES);
        assert_int_equal(alone.cores[1].calls, 1);
        assert_int_equal(call->peer->sharer->calls, 1);
        assert_int_equal(call->peer->requests, 1);
        leat_call_refuse(call, LEAT_E_DISK, "so it is");
        assert_said(by_link ? "refuse by link DISK: so it is\n" : "refuse 5 DISK: so it is\n");
        end();
    }
}

/* Goal: an eighth of the places is for other nodes, and an address has half of all places; a call without a place may
 * use the own bytes of its connection. */
static void places_are_shared_out(void **state)
{
    (void)state;
    static const struct {
        uint32_t calls, own;
        bool by_link, placed;
    } rows[] = {
        {69, 0, false, true}, {70, 0, false, false}, {39, 39, false, true}, {40, 40, false, false},
        {79, 20, true, true}, {80, 10, true, false}, {80, 9, true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned no_own = 0; no_own < 2; no_own++) {
            begin();
            uint32_t *own = rows[i].by_link ? &it.link_sharer.calls : &it.sharer.calls;
            alone.cores[1].calls = rows[i].calls;
            *own = rows[i].own;
            it.no_own = no_own;
            it.peer.requests = 1; /* another one is under way */
            struct leat_call *call = create(rows[i].by_link);
            const char *asked = rows[i].by_link ? "own 500, its only\n" : "own 500\n";
            if (rows[i].placed) {
                assert_said("");
                assert_int_equal(call->own, 0);
            } else if (!no_own) {
                assert_said(asked);
                assert_int_equal(call->own, BYTES);
                assert_int_equal(it.own, BYTES);
            } else {
                char expected[256];
                snprintf(
                    expected, sizeof expected,
                    "%srefuse %s AGAIN: too many requests are under way on this core, try again\n",
                    asked, rows[i].by_link ? "by link" : "5");
                assert_said(expected);
                assert_null(call);
            }
            if (call != NULL) leat_call_refuse(call, LEAT_E_DISK, NULL);
            assert_int_equal(alone.cores[1].calls, rows[i].calls);
            assert_int_equal(*own, rows[i].own);
            alone.cores[1].calls = *own = it.peer.requests = 0;
            end();
        }
    }
}

static void call_without_memory_is_turned_away(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        if (i & 1) alone.cores[1].calls = MOST;
        if (i & 2)
            it.no_output = true;
        else
            leat_mem_fail_at(1);
        assert_null(create(false));
        leat_mem_fail_at(0);
        assert_said(
            i & 1 ? "own 500, its only\n"
                    "refuse 5 AGAIN: too many requests are under way on this core, try again\n"
                  : "refuse 5 AGAIN: too many requests are under way on this core, try again\n");
        if (i & 1) alone.cores[1].calls = 0;
        end();
    }
    begin();
    alone.cores[1].stopping = true;
    assert_null(create(false));
    assert_null(create(true));
    assert_said("refuse 5 STARTING: the server is stopping\n"
                "refuse by link STARTING: the server is stopping\n");
    end();
}

/* Goal: the memory that a call holds is counted until the call ends. */
static void memory_of_a_call_is_counted(void **state)
{
    (void)state;
    begin();
    struct leat_call *call = create(false);
    void *block = leat_call_memory(call, 3, 100);
    assert_non_null(block);
    assert_int_equal(call->held, BYTES + 300);
    assert_true(leat_call_hold(call, 11));
    assert_int_equal(call->held, BYTES + 311);
    assert_int_equal(it.output, BYTES + 311);
    assert_null(leat_call_memory(call, SIZE_MAX, 2));
    leat_mem_fail_at(1);
    assert_null(leat_call_memory(call, 1, 100));
    leat_mem_fail_at(0);
    it.no_output = true;
    assert_null(leat_call_memory(call, 1, 100));
    assert_false(leat_call_hold(call, 11));
    assert_int_equal(call->held, BYTES + 311);
    assert_int_equal(it.output, BYTES + 311);
    leat_mem_free(block);
    leat_call_refuse(call, LEAT_E_DISK, NULL);
    end();
}

/* ---- answers ---- */

static void call_is_answered(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        struct leat_msg_writer writer;
        struct leat_call *call = create(i == 1 || i == 2);
        leat_call_writer(&alone.cores[1], &writer);
        assert_int_equal(writer.capacity, LEAT_CORE_SCRATCH_BYTES - LEAT_FRAME_HEADER_BYTES);
        leat_msg_write_array(&writer, 0);
        /* The node has stopped meanwhile; or is alone, and has clients. */
        if (i == 2 || i == 5) alone.cores[1].members.links = NULL;
        if (i == 3) it.does_not_fit = true;
        if (i == 4) writer.overflow = true;
        leat_call_answer(call, &writer);
        static const char *const expected[] = {
            "fits 1?\nanswer 5, 1 bytes\n",
            "answer by link, 1 bytes\n",
            "",
            ("fits 1?\nwait for 1\nrefuse 5 AGAIN: the memory of "
             "this core for answers is full of those "
             "that clients have not taken: try again\n"),
            ("refuse 5 TOO_LARGE: the answer does not fit one "
             "frame (1 MiB): ask for less at once\n"),
            "fits 1?\nanswer 5, 1 bytes\n"};
        assert_said(expected[i]);
        end();
    }
}

static void call_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        struct leat_call *call = create(i == 3);
        if (i >= 3) alone.cores[1].members.links = NULL;
        leat_call_refuse(call, LEAT_E_NOT_FOUND, i == 0 ? NULL : i == 1 ? "" : "why");
        static const char *const expected[] = {
            "refuse 5 NOT_FOUND: not found\n", "refuse 5 NOT_FOUND: not found\n",
            "refuse 5 NOT_FOUND: why\n", "", "refuse 5 NOT_FOUND: why\n"};
        assert_said(expected[i]);
        end();
    }
}

/* ---- calls whose stream is looked for ---- */

static void on_again(struct leat_stream_seek *seek)
{
    (void)seek;
}

static void body_is_kept(void **state)
{
    (void)state;
    begin();
    struct leat_call_kept kept;
    uint8_t body[LEAT_CALL_KEPT_BYTES + 1];
    memset(&kept, 0, sizeof kept);
    memset(body, 9, sizeof body);
    struct leat_frame frame = {.control = body, .control_bytes = LEAT_CALL_KEPT_BYTES};
    struct leat_call *call = create(false);
    assert_true(leat_call_keep(call, &kept, &frame, on_again));
    assert_int_equal(kept.control_bytes, LEAT_CALL_KEPT_BYTES);
    assert_memory_equal(kept.control, body, LEAT_CALL_KEPT_BYTES);
    assert_true(kept.seek.on_again == on_again);
    assert_ptr_equal(kept.seek.owner, call);
    assert_int_equal(kept.seek.catch_up.address, 55);
    frame.control_bytes++;
    assert_false(leat_call_keep(call, &kept, &frame, on_again));
    assert_said("refuse 5 INVALID: the control body is longer than any that is valid\n");
    end();
}

static void log_of_a_call_is_found(void **state)
{
    (void)state;
    enum { FOUND, NAME, SEEKS, NONE, NO_LOG, OTHERS, CASES };
    static const char *const expected[CASES] = {
        "name \"orders\"\nplace 7/1/1\n",
        "name \"orders\"\nrefuse 5 INVALID: no such name\n",
        "name \"orders\"\n",
        "name \"orders\"\nrefuse 5 UNKNOWN_STREAM: no such stream\n",
        "name \"orders\"\nplace 7/2/1\nrefuse 5 UNKNOWN_LOG: there is none\n",
        "name \"orders\"\nplace 7/1/1\nforward to 200: body\nrefuse 5 AGAIN: sent on\n",
    };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        struct leat_call_kept kept;
        struct leat_log_ref log = {0, 0, 0};
        uint32_t home = 77;
        memset(&kept, 0, sizeof kept);
        struct leat_frame frame = {.control = (const uint8_t *)"body", .control_bytes = 4};
        struct leat_call *call = create(false);
        assert_true(leat_call_keep(call, &kept, &frame, on_again));
        if (i == NAME) it.name = LEAT_E_INVALID;
        if (i == SEEKS) it.seek = LEAT_E_AGAIN;
        if (i == NONE) it.seek = LEAT_E_UNKNOWN_STREAM;
        if (i == OTHERS) alone.desc->streamlets[1].owner = 200;
        bool found = leat_call_log_find(call, &kept, (struct leat_msg_string){"orders", 6},
                                        i == NO_LOG ? 2 : 1, 1, &log, &home);
        assert_said(expected[i]);
        assert_int_equal(found, i == FOUND);
        if (found) {
            assert_string_equal(ref_text(log), "7/1/1");
            assert_int_equal(home, 1);
        }
        if (i == FOUND || i == SEEKS) leat_call_refuse(call, LEAT_E_DISK, NULL);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_has_what_it_needs),
        cmocka_unit_test(places_are_shared_out),
        cmocka_unit_test(call_without_memory_is_turned_away),
        cmocka_unit_test(memory_of_a_call_is_counted),
        cmocka_unit_test(call_is_answered),
        cmocka_unit_test(call_is_refused),
        cmocka_unit_test(body_is_kept),
        cmocka_unit_test(log_of_a_call_is_found),
    };
    return cmocka_run_group_tests_name("broker call", tests, NULL, NULL);
}
