/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes as one core knows them, by members.c alone: the table, whose earlier incarnations are fenced, which
 * nodes have links, and what is handed on. Links, replication and calls are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/replicate.h"
#include "broker/net/call.h"
#include "broker/node/native.h"
#include "tests/broker/alone_calls.h"

enum { LINKS = 16 };

static struct {
    uint64_t links[ALONE_CORES];
    struct {
        bool open, accepted;
        const struct leat_link_handler *handler;
        void *user;
    } link[LINKS];
    unsigned link_count;
    leat_err prepare, create, replicate, open, call;
    struct leat_link_call *under_way;
    bool not_known; /* leat_peer_call(): no such request */
    uint64_t owner; /* of what is handed on */
    bool by_link;
    uint8_t large[64 * 1024 + 1];
} it;

/* ---- what it calls ---- */

static unsigned core_of(const struct leat_links *links)
{
    size_t core = (size_t)((const uint64_t *)(const void *)links - it.links);
    assert_in_range(core, 0, ALONE_CORES - 1);
    return (unsigned)core;
}
static unsigned number_of(const struct leat_link *link)
{
    size_t at = (size_t)((const char *)link - (const char *)&it.link[0]) / sizeof it.link[0];
    assert_in_range(at, 0, LINKS - 1);
    return (unsigned)at;
}
leat_err leat_links_create(const struct leat_links_options *options, struct leat_links **out_links,
                           struct leat_error *error)
{
    const struct leat_core *core = LEAT_CONTAINER(options->timers, struct leat_core, timers);
    assert_ptr_equal(options->env, core->env);
    assert_ptr_equal(options->hub, &alone.node.hub);
    assert_ptr_equal(options->key, &it.large);
    for (unsigned i = 0; i < LEAT_LINK_PURPOSES; i++) {
        if (i == LEAT_LINK_SERVE) assert_ptr_equal(options->services[i].handler, &core->serve_in);
        if (i != LEAT_LINK_SERVE) assert_null(options->services[i].handler);
        assert_false(options->services[i].strangers);
    }
    assert_ptr_equal(core->serve_in.owner, core);
    assert_memory_equal(options->identity.cluster_id, alone.node.cluster_id, 16);
    said("core %u: links of %s %llu, %u cores, queued %llu", core->index, options->identity.node,
         (unsigned long long)options->identity.incarnation, options->identity.cores,
         (unsigned long long)options->queued_bytes_max);
    if (it.create != LEAT_OK) return leat_error_set(error, it.create, "no place");
    *out_links = (void *)&it.links[core->index];
    return LEAT_OK;
}
void leat_links_destroy(struct leat_links **links)
{
    if (*links != NULL) said("core %u: links end", core_of(*links));
    *links = NULL;
}
leat_err leat_links_fence(struct leat_links *links, const char *node, uint64_t incarnation)
{
    said("core %u: fence %s to %llu", core_of(links), node, (unsigned long long)incarnation);
    return LEAT_OK;
}
leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error)
{
    assert_int_equal(options->to_actor, core_of(links));
    assert_int_equal(options->purpose, LEAT_LINK_SERVE);
    assert_false(options->stranger);
    assert_null(options->handler->owner);
    said("core %u: open %s %llu at %s", core_of(links), options->expect_node,
         (unsigned long long)options->expect_incarnation, options->address);
    if (it.open != LEAT_OK) return leat_error_set(error, it.open, "too many");
    assert_in_range(it.link_count, 0, LINKS - 1);
    it.link[it.link_count].open = true;
    it.link[it.link_count].handler = options->handler;
    *out_link = (void *)&it.link[it.link_count++];
    return LEAT_OK;
}
void leat_link_close(struct leat_link **link)
{
    unsigned number = number_of(*link);
    const struct leat_member *member = it.link[number].user;
    assert_true(it.link[number].open);
    said("core %u: close %s", member->core->index, member->info.name);
    it.link[number].open = false;
    *link = NULL;
}
void leat_link_user_set(struct leat_link *link, void *user)
{
    it.link[number_of(link)].user = user;
}
bool leat_link_accepted(const struct leat_link *link)
{
    return it.link[number_of(link)].accepted;
}
const char *leat_link_address(const struct leat_link *link)
{
    assert_non_null(link);
    return "b:1";
}
struct leat_links *leat_link_links(const struct leat_link *link)
{
    assert_non_null(link);
    return (void *)&it.links[1];
}
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    said("core %u: ticket %u: %s: %s", core_of(links), ticket->request, leat_err_name(rc), text);
}
leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call)
{
    const struct leat_member *member = it.link[number_of(link)].user;
    assert_true(it.link[number_of(link)].open);
    assert_true(leat_list_empty(&call->list));
    assert_false(call->one_way);
    assert_null(call->payload);
    assert_int_equal(call->payload_count, 0);
    said("call %s: kind %u, %u bytes, %llu us", member->info.name, call->kind, call->control_bytes,
         (unsigned long long)call->timeout_us);
    if (it.call == LEAT_OK) it.under_way = call;
    return it.call;
}
leat_err leat_replicate_prepare(struct leat_core *core, struct leat_links_options *options)
{
    said("core %u: prepare", core->index);
    options->queued_bytes_max = 77;
    assert_ptr_equal(options->services[LEAT_LINK_SERVE].handler, &core->serve_in);
    return it.prepare;
}
leat_err leat_replicate_open(struct leat_core *core, struct leat_error *error)
{
    said("core %u: replicate", core->index);
    assert_ptr_equal(core->members.links, &it.links[core->index]);
    return it.replicate == LEAT_OK ? LEAT_OK : leat_error_set(error, it.replicate, "no backup");
}
void leat_replicate_fini(struct leat_core *core)
{
    said("core %u: copies end", core->index);
}
void leat_replicate_sink_fini(struct leat_core *core)
{
    assert_null(core->members.links);
    said("core %u: sink ends", core->index);
}
void leat_replicate_on_member(struct leat_core *core, const struct leat_member *member,
                              uint64_t before)
{
    assert_ptr_equal(member->core, core);
    said("core %u: member %u %s %llu, was %llu%s%s", core->index, member->number, member->info.name,
         (unsigned long long)member->info.incarnation, (unsigned long long)before,
         member->self ? ", self" : "", member->serve != NULL ? ", linked" : "");
}
bool leat_peer_call(struct leat_peer *peer, const struct leat_frame *frame)
{
    const struct leat_core *core = LEAT_CONTAINER(peer, struct leat_core, link_peer);
    said("core %u: kind %u request %u for ticket %u", core->index, frame->kind, frame->request,
         core->serving->request);
    return !it.not_known;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    alone.node.options.cluster.node_address = "n1:1";
    alone.node.options.cluster.key = (void *)&it.large;
    memcpy(alone.node.cluster_id, "0123456789abcdef", 16);
}

static void end(void)
{
    for (unsigned q = 0; q < ALONE_CORES; q++) {
        leat_members_fini(&alone.cores[q]);
        assert_int_equal(alone.cores[q].members.count, 0);
    }
    for (unsigned i = 0; i < it.link_count; i++)
        assert_false(it.link[i].open);
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    alone_end();
}

static struct leat_node_info info_of(const char *name, uint64_t incarnation)
{
    struct leat_node_info info = {.incarnation = incarnation, .cores = 4, .state = LEAT_NODE_UP};
    snprintf(info.name, sizeof info.name, "%s", name);
    snprintf(info.address, sizeof info.address, "%s:7", name);
    snprintf(info.node_address, sizeof info.node_address, "%s:1", name);
    return info;
}

static void told_of(struct leat_node_info info)
{
    leat_node_on_node(&alone.node, &info);
    memset(&info, 0x5a, sizeof info);
    alone_deliver_all();
}

static void told(const char *name, uint64_t incarnation)
{
    told_of(info_of(name, incarnation));
}

static void comes_up(unsigned core)
{
    struct leat_error error;
    assert_int_equal(leat_members_open(&alone.cores[core], &error), LEAT_OK);
}

/* Node b is 5, known and linked. */
static void begin_with_b(void)
{
    begin();
    told("b", 5);
    comes_up(0), comes_up(1);
    said_enough();
}

static void end_quietly(void)
{
    end();
    said_enough();
}

/* ---- the table ---- */

static void logs_lie_on_lanes(void **state)
{
    (void)state;
    assert_int_equal(leat_lane_of_log((struct leat_log_ref){0, 0, 0}, 3, 4), 0);
    assert_int_equal(leat_lane_of_log((struct leat_log_ref){7, 2, 1}, 3, 100), 14);
    assert_int_equal(leat_lane_of_log((struct leat_log_ref){7, 2, 1}, 3, 14), 0);
    assert_int_equal(leat_lane_of_log((struct leat_log_ref){7, 2, 1}, 3, 15), 14);
    assert_int_equal(
        leat_lane_of_log((struct leat_log_ref){UINT32_MAX, UINT32_MAX, 5}, UINT32_MAX, 1000),
        ((UINT64_C(4294967295) % 1000) + (UINT64_C(4294967295) * UINT64_C(4294967295)) % 1000 + 5) %
            1000);
    begin();
    alone.desc->streamlets[1].owner = 101;
    assert_true(leat_core_owns(&alone.cores[0], alone.desc, 0));
    assert_false(leat_core_owns(&alone.cores[0], alone.desc, 1));
    end_quietly();
}

static void node_is_told_of_before_links_are_there(void **state)
{
    (void)state;
    begin();
    told("b", 5);
    assert_said("mail to 0\ncore 0: member 0 b 5, was 0\nmail to 1\ncore 1: member 0 b 5, was 0\n");
    told("n1", ALONE_SELF);
    assert_said("mail to 0\ncore 0: member 1 n1 100, was 0, self\nmail to 1\n"
                "core 1: member 1 n1 100, was 0, self\n");
    told("b", 6);
    assert_said("mail to 0\ncore 0: member 0 b 6, was 5\nmail to 1\ncore 1: member 0 b 6, was 5\n");
    for (unsigned q = 0; q < ALONE_CORES; q++) {
        const struct leat_core *core = &alone.cores[q];
        const struct leat_member *b = leat_member_find(core, 6);
        assert_ptr_equal(b, core->members.rows[0]);
        assert_string_equal(b->info.node_address, "b:1");
        assert_false(b->self);
        assert_null(leat_member_find(core, 5));
        assert_int_equal(core->members.count, 2);
        assert_int_equal(leat_member_find(core, ALONE_SELF)->number, 1);
    }
    end();
    assert_said("core 0: copies end\ncore 0: sink ends\ncore 1: copies end\ncore 1: sink ends\n");
}

static void node_has_so_many_cores(void **state)
{
    (void)state;
    begin();
    told("b", 5);
    struct leat_node_info info = info_of("c", 6);
    info.cores = 0;
    told_of(info);
    info.cores = 1;
    info.incarnation = 7;
    snprintf(info.name, sizeof info.name, "d");
    told_of(info);
    told("n1", ALONE_SELF); /* says 4 */
    assert_int_equal(leat_member_cores(&alone.cores[1], 5), 4);
    assert_int_equal(leat_member_cores(&alone.cores[1], 6), ALONE_CORES);
    assert_int_equal(leat_member_cores(&alone.cores[1], 7), 1);
    assert_int_equal(leat_member_cores(&alone.cores[1], 8), ALONE_CORES);
    assert_int_equal(leat_member_cores(&alone.cores[1], ALONE_SELF), ALONE_CORES);
    end_quietly();
}

static const char *words(uint64_t incarnation)
{
    static char text[LEAT_ERROR_TEXT_BYTES];
    leat_member_words(&alone.cores[1], incarnation, text, sizeof text);
    return text;
}

static void incarnation_has_words(void **state)
{
    (void)state;
    begin();
    assert_string_equal(words(0), "no node");
    assert_string_equal(words(5), "a node as it was before its last start (incarnation 5)");
    told("c", 1), told("c", 90);
    for (uint64_t incarnation = 10; incarnation <= 19; incarnation++) {
        told("b", incarnation);
        told("b", incarnation); /* the same counts once */
    }
    assert_string_equal(words(19), "node b (b:7)");
    for (uint64_t incarnation = 11; incarnation < 19; incarnation++) {
        char expected[80];
        snprintf(expected, sizeof expected,
                 "node b as it was before its last start (incarnation %u)", (unsigned)incarnation);
        assert_string_equal(words(incarnation), expected);
    }
    assert_string_equal(words(1), "node c as it was before its last start (incarnation 1)");
    assert_string_equal(words(10), "a node as it was before its last start (incarnation 10)");
    struct leat_node_info info = info_of("b", 19);
    info.state = LEAT_NODE_DOWN;
    told_of(info);
    assert_string_equal(words(19), "node b (b:7: down)");
    end_quietly();
}

/* ---- links ---- */

static void server_alone_has_no_links(void **state)
{
    (void)state;
    begin();
    alone.node.options.cluster.node_address = NULL;
    comes_up(0);
    assert_said("");
    assert_null(alone.cores[0].members.links);
    end_quietly();
}

static void core_that_comes_up_links_to_those_it_knows(void **state)
{
    (void)state;
    begin();
    told("b", 5), told("n1", ALONE_SELF);
    struct leat_node_info info = info_of("c", 6);
    info.state = LEAT_NODE_DOWN;
    told_of(info);
    said_enough();
    comes_up(1);
    assert_said("core 1: prepare\n"
                "core 1: links of n1 100, 2 cores, queued 77\n"
                "core 1: replicate\n"
                "core 1: fence b to 4\n"
                "core 1: open b 5 at b:1\n"
                "core 1: fence c to 5\n");
    assert_ptr_equal(it.link[0].user, leat_member_find(&alone.cores[1], 5));
    assert_ptr_equal(leat_member_find(&alone.cores[1], 5)->serve, &it.link[0]);
    told("d", 8); /* core 0 is not up */
    assert_said("mail to 0\ncore 0: member 3 d 8, was 0\nmail to 1\ncore 1: fence d to 7\n"
                "core 1: member 3 d 8, was 0\ncore 1: open d 8 at d:1\n");
    end();
    assert_said("core 0: copies end\ncore 0: sink ends\ncore 1: copies end\ncore 1: close b\n"
                "core 1: close d\ncore 1: links end\ncore 1: sink ends\n");
}

static void core_does_not_come_up(void **state)
{
    (void)state;
    static const char *const words_of[] = {"no memory for replication", "no place", "no backup"};
    static const char *const expected[] = {
        "core 0: prepare\n", "core 0: prepare\ncore 0: links of n1 100, 2 cores, queued 77\n",
        "core 0: prepare\ncore 0: links of n1 100, 2 cores, queued 77\ncore 0: replicate\n"};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_error error;
        begin();
        told("b", 5);
        said_enough();
        *(leat_err *[]){&it.prepare, &it.create, &it.replicate}[i] = LEAT_E_NO_MEMORY;
        assert_int_equal(leat_members_open(&alone.cores[0], &error), LEAT_E_NO_MEMORY);
        assert_said(expected[i]);
        assert_string_equal(error.text, words_of[i]);
        end_quietly();
    }
}

#define TWICE(said_of_one) "mail to 0\n" said_of_one(0) "mail to 1\n" said_of_one(1)

static void link_follows_its_node(void **state)
{
    (void)state;
    begin_with_b();
#define SAME(q) "core " #q ": fence b to 4\ncore " #q ": member 0 b 5, was 5, linked\n"
    told("b", 5);
    assert_said(TWICE(SAME));
    struct leat_node_info info = info_of("b", 5);
    snprintf(info.node_address, sizeof info.node_address, "x:1");
    told_of(info);
#define MOVED(q)                                                                                   \
    "core " #q ": close b\ncore " #q ": fence b to 4\ncore " #q ": member 0 b 5, was 5\ncore " #q  \
    ": open b 5 at x:1\n"
    assert_said(TWICE(MOVED));
    info.incarnation = 6;
    told_of(info);
#define ANEW(q)                                                                                    \
    "core " #q ": close b\ncore " #q ": fence b to 5\ncore " #q ": member 0 b 6, was 5\ncore " #q  \
    ": open b 6 at x:1\n"
    assert_said(TWICE(ANEW));
    info.state = LEAT_NODE_DOWN;
    told_of(info);
#define DOWN(q)                                                                                    \
    "core " #q ": close b\ncore " #q ": fence b to 5\ncore " #q ": member 0 b 6, was 6\n"
    assert_said(TWICE(DOWN));
    told_of(info);
#define STILL(q) "core " #q ": fence b to 5\ncore " #q ": member 0 b 6, was 6\n"
    assert_said(TWICE(STILL));
    end_quietly();
}

static void no_link_is_opened_or_fenced(void **state)
{
    (void)state;
    begin();
    comes_up(0), comes_up(1);
    said_enough();
    told("n1", ALONE_SELF);
#define SELF(q) "core " #q ": member 0 n1 100, was 0, self\n"
    assert_said(TWICE(SELF));
    struct leat_node_info info = info_of("b", 5);
    info.node_address[0] = '\0'; /* embedded */
    told_of(info);
#define EMBEDDED(q) "core " #q ": fence b to 4\ncore " #q ": member 1 b 5, was 0\n"
    assert_said(TWICE(EMBEDDED));
    told("c", 1); /* nobody was before it */
#define FIRST(q) "core " #q ": member 2 c 1, was 0\ncore " #q ": open c 1 at c:1\n"
    assert_said(TWICE(FIRST));
    told("d", 2);
#define SECOND(q)                                                                                  \
    "core " #q ": fence d to 1\ncore " #q ": member 3 d 2, was 0\ncore " #q ": open d 2 at d:1\n"
    assert_said(TWICE(SECOND));
    it.open = LEAT_E_TOO_MANY;
    told("e", 1);
#define NONE(q)                                                                                    \
    "core " #q ": member 4 e 1, was 0\ncore " #q ": open e 1 at e:1\n"                             \
    "node log error: no link to node e at e\n"
    assert_said(TWICE(NONE));
    end_quietly();
}

static void lost_link_is_told_once(void **state)
{
    (void)state;
    begin_with_b();
    const struct leat_link_handler *handler = it.link[0].handler;
    const struct leat_error error = {LEAT_E_CLOSED, "reset"};
    handler->on_up(NULL, (void *)&it.link[0]);
    assert_said("");
    handler->on_down(NULL, (void *)&it.link[0], false, &error);
    assert_said("");
    handler->on_down(NULL, (void *)&it.link[0], true, &error);
    assert_said("node log info: the link to b\n");
    it.link[0].accepted = true;
    handler->on_down(NULL, (void *)&it.link[0], true, &error);
    assert_said("");
    end_quietly();
}

/* ---- requests of other nodes ---- */

static void request_of_another_node_is_a_call(void **state)
{
    (void)state;
    begin_with_b();
    struct leat_core *core = &alone.cores[1];
    const struct leat_link_ticket ticket = {.request = 9};
    struct leat_frame frame = {.kind = LEAT_NODE_KIND_BROKER + 12, .request = 3};
    core->serve_in.on_request(core, (void *)&it.link[1], &frame, &ticket);
    assert_said("core 1: kind 12 request 3 for ticket 9\n");
    assert_null(core->serving);
    assert_int_equal(frame.kind, LEAT_NODE_KIND_BROKER + 12);
    it.not_known = true;
    frame.kind = LEAT_NODE_KIND_BROKER;
    core->serve_in.on_request(core, (void *)&it.link[1], &frame, &ticket);
    assert_said("core 1: kind 0 request 3 for ticket 9\ncore 1: ticket 9: UNSUPPORTED: this "
                "request is not handed on between brokers\n");
    assert_null(core->serving);
    frame.kind = LEAT_NODE_KIND_BROKER - 1;
    core->serve_in.on_request(core, (void *)&it.link[1], &frame, &ticket);
    assert_said("core 1: ticket 9: UNSUPPORTED: this kind of request is not for a link between "
                "brokers\n");
    frame.kind = LEAT_NODE_KIND_BROKER + 12; /* by a link that this node opened */
    it.link[1].handler->on_request(NULL, (void *)&it.link[1], &frame, &ticket);
    assert_said("core 1: ticket 9: UNSUPPORTED: this kind of request is not for a link between "
                "brokers\n");
    end_quietly();
}

/* ---- requests for other nodes ---- */

static void hand_on(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct leat_call *call = leat_call_create(peer, frame, sizeof *call);
    assert_non_null(call);
    call->kind = 12;
    call->by_link = it.by_link;
    leat_call_forward(call, it.owner, frame->control, frame->control_bytes);
}

static void handed_on(uint64_t owner)
{
    uint8_t bytes[] = {1, 2, 3};
    struct leat_msg_writer body = {.bytes = bytes, .used = 3, .capacity = 3};
    it.owner = owner;
    alone_call(hand_on, &body);
    memset(bytes, 0x5a, sizeof bytes);
}

static void request_is_answered_by_its_owner(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        begin_with_b();
        handed_on(5);
        assert_said("call b: kind 396, 3 bytes, 45000000 us\n");
        assert_memory_equal(it.under_way->control, "\1\2\3", 3);
        it.large[0] = 4, it.large[64 * 1024 - 1] = 5;
        struct leat_frame answer = {.control = it.large, .control_bytes = 64 * 1024 + more};
        it.under_way->on_done(it.under_way, LEAT_OK, &answer, NULL);
        assert_said(more == 0 ? "answer\n"
                              : "refuse TOO_LARGE: the owner's answer does not fit one frame\n");
        if (more == 0) assert_int_equal(calls.answer_bytes, 64 * 1024);
        if (more == 0) assert_memory_equal(calls.answer, it.large, 64 * 1024);
        end_quietly();
    }
}

static void request_is_refused_by_its_owner(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        const char *text, *expected;
    } rows[] = {
        {LEAT_E_CLOSED, "gone", "refuse TIMEOUT: gone\n"},
        {LEAT_E_CANCELLED, NULL, "refuse TIMEOUT\n"},
        {LEAT_E_TIMEOUT, NULL, "refuse TIMEOUT\n"},
        {LEAT_E_NOT_OWNER, "not mine", "refuse NOT_OWNER: not mine\n"},
        {LEAT_E_INVALID, NULL, "refuse INVALID\n"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_error error = {rows[i].rc, ""};
        begin_with_b();
        handed_on(5);
        said_enough();
        if (rows[i].text != NULL) snprintf(error.text, sizeof error.text, "%s", rows[i].text);
        it.under_way->on_done(it.under_way, rows[i].rc, NULL, rows[i].text != NULL ? &error : NULL);
        assert_said(rows[i].expected);
        end_quietly();
    }
}

static void request_is_not_handed_on(void **state)
{
    (void)state;
    begin_with_b();
    it.by_link = true; /* once is enough */
    handed_on(5);
    assert_said("refuse AGAIN: this is for node b (b:7) to answer: try again\n");
    handed_on(9);
    assert_said("refuse AGAIN: this is for a node as it was before its last start (incarnation 9) "
                "to answer: try again\n");
    it.by_link = false;
    handed_on(9);
    assert_said("refuse AGAIN: nobody serves it now: it was with a node as it was before its last "
                "start (incarnation 9), and who goes on with it is being found out. leat cluster "
                "status tells what is waited for\n");
    it.call = LEAT_E_CLOSED;
    handed_on(5);
    assert_said("call b: kind 396, 3 bytes, 45000000 us\nrefuse AGAIN: node b (b:7) can't be "
                "reached right now\n");
    it.call = LEAT_OK;
    leat_mem_fail_at(1);
    handed_on(5);
    leat_mem_fail_at(0);
    assert_said("refuse AGAIN\n");
    struct leat_node_info info = info_of("b", 5);
    info.state = LEAT_NODE_DOWN;
    told_of(info);
    said_enough();
    handed_on(5);
    assert_said("refuse AGAIN: this is for node b (b:7: down) to answer: try again\n");
    end_quietly();
}

/* ---- questions ---- */

static void asked(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                  const char *why)
{
    assert_ptr_equal(ask->owner, &it);
    said("asked %s %u: %s", leat_err_name(rc), answer != NULL ? answer->control_bytes : 0, why);
}

static leat_err ask_of(struct leat_ask *ask, uint64_t incarnation, struct leat_error *error)
{
    return leat_ask_start(&alone.cores[1], ask, incarnation, LEAT_KIND_PLACES, it.large, 7, error);
}

static void other_node_is_asked(void **state)
{
    (void)state;
    struct leat_error error;
    struct leat_ask ask = {.on_done = asked, .owner = &it};
    begin_with_b();
    assert_int_equal(ask_of(&ask, 5, &error), LEAT_OK);
    char expected[96];
    snprintf(expected, sizeof expected, "call b: kind %d, 7 bytes, 3000000 us\n",
             LEAT_NODE_KIND_BROKER + LEAT_KIND_PLACES);
    assert_said(expected);
    assert_ptr_equal(it.under_way, &ask.link_call);
    assert_ptr_equal(it.under_way->control, it.large);
    const struct leat_frame answer = {.control_bytes = 8};
    struct leat_error none = {LEAT_OK, ""}, why = {LEAT_E_AGAIN, "x"};
    it.under_way->on_done(it.under_way, LEAT_OK, &answer, NULL);
    assert_true(said_one("asked OK 8: "));
    it.under_way->on_done(it.under_way, LEAT_E_AGAIN, NULL, &why);
    assert_said("asked AGAIN 0: x\n");
    it.under_way->on_done(it.under_way, LEAT_E_TIMEOUT, NULL, &none);
    snprintf(expected, sizeof expected, "asked TIMEOUT 0: %s\n", leat_err_text(LEAT_E_TIMEOUT));
    assert_said(expected);
    ask.timeout_us = 9;
    assert_int_equal(ask_of(&ask, 5, &error), LEAT_OK);
    snprintf(expected, sizeof expected, "call b: kind %d, 7 bytes, 9 us\n",
             LEAT_NODE_KIND_BROKER + LEAT_KIND_PLACES);
    assert_said(expected);
    end_quietly();
}

static void other_node_is_not_asked(void **state)
{
    (void)state;
    struct leat_error error;
    struct leat_ask ask = {.on_done = asked, .owner = &it};
    begin_with_b();
    assert_int_equal(ask_of(&ask, 9, &error), LEAT_E_AGAIN);
    assert_string_equal(error.text, "a node as it was before its last start (incarnation 9) can't "
                                    "be asked");
    it.call = LEAT_E_CLOSED;
    assert_int_equal(ask_of(&ask, 5, &error), LEAT_E_AGAIN);
    assert_string_equal(error.text, "node b (b:7) can't be reached right now");
    struct leat_node_info info = info_of("b", 5);
    info.state = LEAT_NODE_DOWN;
    told_of(info);
    assert_int_equal(ask_of(&ask, 5, &error), LEAT_E_AGAIN);
    assert_string_equal(error.text, "node b (b:7: down) can't be asked");
    end_quietly();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_lie_on_lanes),
        cmocka_unit_test(node_is_told_of_before_links_are_there),
        cmocka_unit_test(node_has_so_many_cores),
        cmocka_unit_test(incarnation_has_words),
        cmocka_unit_test(server_alone_has_no_links),
        cmocka_unit_test(core_that_comes_up_links_to_those_it_knows),
        cmocka_unit_test(core_does_not_come_up),
        cmocka_unit_test(link_follows_its_node),
        cmocka_unit_test(no_link_is_opened_or_fenced),
        cmocka_unit_test(lost_link_is_told_once),
        cmocka_unit_test(request_of_another_node_is_a_call),
        cmocka_unit_test(request_is_answered_by_its_owner),
        cmocka_unit_test(request_is_refused_by_its_owner),
        cmocka_unit_test(request_is_not_handed_on),
        cmocka_unit_test(other_node_is_asked),
        cmocka_unit_test(other_node_is_not_asked),
    };
    return cmocka_run_group_tests_name("broker members", tests, NULL, NULL);
}
