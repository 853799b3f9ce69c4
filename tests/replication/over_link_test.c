/* SPDX-License-Identifier: Apache-2.0 */
/* Replication's requests over links, without a network: links, primary and backup are this program, which notes every
 * call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "replication/over_link.h"
#include "tests/trace.h"

struct leat_link {
    struct leat_link_options options;
    void *user;
    bool up;
};

static struct {
    struct leat_link *link; /* opened last */
    leat_err open_rc, call_rc, readdress_rc;
    struct leat_link_identity self;
    struct leat_rep_link *rep_link;
    struct leat_rep_net net;
} it;

#define PRIMARY ((struct leat_primary *)&it.self)
#define BACKUP  ((struct leat_backup *)&it.net)
#define LINKS   ((struct leat_links *)&it)

leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error)
{
    assert_ptr_equal(links, LINKS);
    trace("open %s for %s/%llu purpose %u actor %u\n", options->address, options->expect_node,
          (unsigned long long)options->expect_incarnation, (unsigned)options->purpose,
          options->to_actor);
    if (it.open_rc) return leat_error_set(error, it.open_rc, "no");
    it.link = *out_link = calloc(1, sizeof **out_link);
    it.link->options = *options;
    return LEAT_OK;
}

void leat_link_close(struct leat_link **link)
{
    trace("close\n");
    free(*link);
    *link = NULL;
}

void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    (void)why;
    assert_ptr_equal(link, it.link);
    trace("cut %s\n", leat_err_name(rc));
}

leat_err leat_link_readdress(struct leat_link *link, const char *address)
{
    assert_ptr_equal(link, it.link);
    trace("readdress %s\n", address);
    return it.readdress_rc;
}

bool leat_link_is_up(const struct leat_link *link)
{
    return link->up;
}

void leat_link_user_set(struct leat_link *link, void *user)
{
    link->user = user;
}

void *leat_link_user(const struct leat_link *link)
{
    return link->user;
}

const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    (void)link;
    return &it.self;
}

const struct leat_link_identity *leat_links_identity(const struct leat_links *links)
{
    assert_ptr_equal(links, LINKS);
    return &it.self;
}

struct leat_links *leat_link_links(const struct leat_link *link)
{
    (void)link;
    return LINKS;
}

leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call)
{
    (void)call;
    assert_ptr_equal(link, it.link);
    trace("call\n");
    return it.call_rc;
}

void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t bytes)
{
    assert_ptr_equal(links, LINKS);
    trace("%u: %.*s\n", ticket->request, (int)bytes, (const char *)control);
}

void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    (void)text;
    assert_ptr_equal(links, LINKS);
    trace("%u: %s\n", ticket->request, leat_err_name(rc));
}

void leat_primary_node_set(struct leat_primary *primary, const struct leat_rep_node *node)
{
    assert_ptr_equal(primary, PRIMARY);
    trace("node %u %llu\n", node->number, (unsigned long long)node->incarnation);
}

void leat_primary_peer_up(struct leat_primary *primary, unsigned node)
{
    assert_ptr_equal(primary, PRIMARY);
    trace("up %u\n", node);
}

void leat_primary_peer_down(struct leat_primary *primary, unsigned node)
{
    assert_ptr_equal(primary, PRIMARY);
    trace("down %u\n", node);
}

void leat_primary_peer_refused(struct leat_primary *primary, unsigned node, leat_err rc)
{
    assert_ptr_equal(primary, PRIMARY);
    trace("refused %u %s\n", node, leat_err_name(rc));
}

void leat_backup_request(struct leat_backup *backup, const struct leat_link_identity *writer,
                         const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    assert_ptr_equal(backup, BACKUP);
    trace("%u: request %u of %s\n", ticket->request, frame->kind, writer->node);
}

static int begin(void **state)
{
    (void)state;
    memset(&it, 0, sizeof it);
    trace_begin();
    snprintf(it.self.node, sizeof it.self.node, "self");
    leat_mem_fail_at(1);
    assert_int_equal(leat_rep_link_create(&it.rep_link), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(leat_rep_link_create(&it.rep_link), LEAT_OK);
    it.net = leat_rep_link_net(it.rep_link);
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_rep_link_destroy(&it.rep_link);
    leat_rep_link_destroy(&it.rep_link);
    return 0;
}

static void node_set(unsigned number, const char *name, uint64_t incarnation, const char *address)
{
    struct leat_error error;
    struct leat_rep_node node = {.number = number, .incarnation = incarnation};
    snprintf(node.name, sizeof node.name, "%s", name);
    leat_err rc = leat_rep_link_node_set(it.rep_link, &node, address, &error);
    if (rc) trace("%s\n", leat_err_name(rc));
}

/* Goal: each node that is up has a link, also with the first and the last possible number; this node has no link to
 * itself; a new address moves the link, a new incarnation restarts it. */
static void link_of_each_node_follows_the_table(void **state)
{
    (void)state;
    leat_rep_link_start(it.rep_link, LINKS, PRIMARY, BACKUP);
    node_set(3, "self", 5, "here:1");
    node_set(0, "a", 7, "there:1");
    node_set(0, "a", 7, "there:2");
    it.link->up = true;
    node_set(0, "a", 8, "there:2");
    node_set(0, "a", 0, "there:2");
    TRACE_IS("node 3 5\n"
             "node 0 7\n"
             "open there:1 for a/7 purpose 2 actor 0\n"
             "node 0 7\n"
             "readdress there:2\n"
             "node 0 8\n"
             "close\n"
             "down 0\n"
             "open there:2 for a/8 purpose 2 actor 0\n"
             "node 0 0\n"
             "close\n");
    node_set(LEAT_REP_NODES_MAX - 1, "z", 9, "there:3");
    it.open_rc = LEAT_E_NO_MEMORY;
    node_set(0, "a", 9, "there:2");
    it.open_rc = LEAT_OK;
    node_set(0, "a", 9, "there:2"); /* again, as it is not there */
    TRACE_IS("node 255 9\n"
             "open there:3 for z/9 purpose 2 actor 0\n"
             "node 0 9\n"
             "open there:2 for a/9 purpose 2 actor 0\n"
             "NO_MEMORY\n"
             "node 0 9\n"
             "open there:2 for a/9 purpose 2 actor 0\n");
    it.readdress_rc = LEAT_E_INVALID;
    node_set(0, "a", 9, "nowhere");
    TRACE_IS("node 0 9\n"
             "readdress nowhere\n"
             "INVALID\n");
    leat_rep_link_destroy(&it.rep_link);
    TRACE_IS("close\n"
             "close\n");
    assert_int_equal(leat_rep_link_create(&it.rep_link), LEAT_OK);
}

/* Goal: the primary hears of its links; what it calls goes over the node's. */
static void primary_hears_of_its_links(void **state)
{
    (void)state;
    struct leat_error refused = {LEAT_E_DENIED, "no"};
    struct leat_link_call call = {0};
    struct leat_frame frame = {.kind = 9};
    struct leat_link_ticket ticket = {.request = 4};
    for (unsigned primary = 0; primary < 2; primary++) {
        leat_rep_link_start(it.rep_link, LINKS, primary ? PRIMARY : NULL, BACKUP);
        trace("%s primary: %s\n", primary ? "a" : "no",
              leat_err_name(it.net.call(it.net.ctx, 2, &call)));
        it.net.cut(it.net.ctx, 2);
        node_set(2, "b", 7, "there:1");
        const struct leat_link_handler *handler = it.link->options.handler;
        handler->on_down(handler->owner, it.link, false, &refused);
        it.link->up = true;
        handler->on_up(handler->owner, it.link);
        trace("%s\n", leat_err_name(it.net.call(it.net.ctx, 2, &call)));
        it.call_rc = LEAT_E_AGAIN;
        trace("%s\n", leat_err_name(it.net.call(it.net.ctx, 2, &call)));
        it.call_rc = LEAT_OK;
        it.net.cut(it.net.ctx, 2);
        handler->on_request(handler->owner, it.link, &frame, &ticket);
        handler->on_down(handler->owner, it.link, true, &refused);
        it.link->up = true;
        node_set(2, "b", 0, "there:1");
    }
    TRACE_IS("no primary: CLOSED\n"
             "open there:1 for b/7 purpose 2 actor 0\n"
             "call\n"
             "OK\n"
             "call\n"
             "AGAIN\n"
             "cut TIMEOUT\n"
             "4: UNSUPPORTED\n"
             "close\n"
             "a primary: CLOSED\n"
             "node 2 7\n"
             "open there:1 for b/7 purpose 2 actor 0\n"
             "refused 2 DENIED\n"
             "up 2\n"
             "call\n"
             "OK\n"
             "call\n"
             "AGAIN\n"
             "cut TIMEOUT\n"
             "4: UNSUPPORTED\n"
             "down 2\n"
             "node 2 0\n"
             "close\n"
             "down 2\n");
}

/* Goal: a primary that is gone before its links hears nothing of their end. */
static void end_of_all_links_is_not_told(void **state)
{
    (void)state;
    leat_rep_link_start(it.rep_link, LINKS, PRIMARY, BACKUP);
    node_set(2, "b", 7, "there:1");
    it.link->up = true;
    trace_begin();
    leat_rep_link_destroy(&it.rep_link);
    TRACE_IS("close\n");
    assert_int_equal(leat_rep_link_create(&it.rep_link), LEAT_OK);
}

/* Goal: the backup is asked by whoever has a link here, and answers over it; a core without one says so. */
static void backup_is_asked_over_links(void **state)
{
    (void)state;
    struct leat_link link = {.up = true};
    struct leat_frame frame = {.kind = 9};
    struct leat_link_ticket ticket = {.request = 4};
    const struct leat_link_handler *handler = leat_rep_link_handler(it.rep_link);
    leat_rep_link_start(it.rep_link, LINKS, NULL, NULL);
    handler->on_up(handler->owner, &link);
    handler->on_request(handler->owner, &link, &frame, &ticket);
    leat_rep_link_start(it.rep_link, LINKS, NULL, BACKUP);
    handler->on_request(handler->owner, &link, &frame, &ticket);
    it.net.answer(it.net.ctx, &ticket, "yes", 3);
    it.net.refuse(it.net.ctx, &ticket, LEAT_E_NOT_FOUND, "no");
    handler->on_down(handler->owner, &link, true, NULL);
    TRACE_IS("4: STARTING\n"
             "4: request 9 of self\n"
             "4: yes\n"
             "4: NOT_FOUND\n");
}

#define OVER_LINK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_LINK_TEST(link_of_each_node_follows_the_table),
        OVER_LINK_TEST(primary_hears_of_its_links),
        OVER_LINK_TEST(end_of_all_links_is_not_told),
        OVER_LINK_TEST(backup_is_asked_over_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
