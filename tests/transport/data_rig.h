/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of tcp and rpc, and the choice among transports, without a network: the link is this program, which notes
 * every call and answers by hand. For one test program only. */
#ifndef LEAT_TESTS_TRANSPORT_DATA_RIG_H
#define LEAT_TESTS_TRANSPORT_DATA_RIG_H

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

enum { NODE = 5, CALLS_MAX = 256 };

/* ---- the link ---- */

struct leat_link {
    struct leat_link_options options;
    bool up;
};

static struct {
    struct leat_link *link; /* one at a time */
    struct leat_link_call *calls[CALLS_MAX];
    unsigned call_count;
    leat_err open_rc, call_rc;
    struct leat_mail *mails[64];
    unsigned mail_count;
    unsigned room; /* calls that it takes; then LEAT_E_AGAIN */
} net;

leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error)
{
    (void)links;
    trace("open %s for %s/%llu actor %u purpose %u\n", options->address, options->expect_node,
          (unsigned long long)options->expect_incarnation, options->to_actor,
          (unsigned)options->purpose);
    if (net.open_rc) return leat_error_set(error, net.open_rc, "no");
    assert_null(net.link);
    net.link = *out_link = calloc(1, sizeof **out_link);
    net.link->options = *options;
    return LEAT_OK;
}

void leat_link_close(struct leat_link **link)
{
    trace("close\n");
    free(*link);
    *link = net.link = NULL;
}

bool leat_link_is_up(const struct leat_link *link)
{
    return link->up;
}

struct leat_links *leat_link_links(const struct leat_link *link)
{
    (void)link;
    return NULL;
}

void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    (void)links, (void)text;
    trace("%u: %s\n", ticket->request, leat_err_name(rc));
}

leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call)
{
    struct leat_data_write write;
    assert_ptr_equal(link, net.link);
    if (net.call_rc) return net.call_rc;
    if (net.room == 0) return LEAT_E_AGAIN;
    net.room--;
    if (call->kind == LEAT_DATA_ATTACH) {
        const struct leat_rmem_address *address = (const void *)call->control;
        assert_int_equal(call->control_bytes, sizeof *address);
        trace("ATTACH arena %u\n", address->number);
    } else {
        assert_int_equal(call->control_bytes, sizeof write);
        memcpy(&write, call->control, sizeof write);
        assert_int_equal(call->kind == LEAT_DATA_WRITE, call->one_way);
        trace("%s t%u n%llu arena %u @%llu of %u\n", call->one_way ? "WRITE" : "REQUEST",
              write.target, (unsigned long long)write.number, write.address.number,
              (unsigned long long)write.offset, call->payload_count);
    }
    net.calls[net.call_count++] = call;
    return LEAT_OK;
}

static inline void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, 3);
    net.mails[net.mail_count++] = mail;
}

static inline void mails(void)
{
    while (net.mail_count) {
        struct leat_mail *mail = net.mails[0];
        net.mail_count--;
        memmove(&net.mails[0], &net.mails[1], net.mail_count * sizeof net.mails[0]);
        mail->deliver(NULL, mail);
    }
}

/* The call at that place among those that are under way has ended. */
static inline void ends(unsigned at, leat_err rc)
{
    struct leat_link_call *call = net.calls[at];
    struct leat_error error = {rc, "so it says"};
    assert_true(at < net.call_count);
    net.call_count--;
    memmove(&net.calls[at], &net.calls[at + 1], (net.call_count - at) * sizeof net.calls[0]);
    call->on_done(call, rc, NULL, rc ? &error : NULL);
    mails();
}

static inline void done_says(uint32_t target, uint64_t number, leat_err rc, uint32_t bytes)
{
    struct leat_data_done done = {.number = number, .target = target, .rc = (uint32_t)rc};
    uint8_t control[64] = {0};
    memcpy(control, &done, sizeof done);
    struct leat_frame frame = {.kind = LEAT_DATA_DONE, .control = control, .control_bytes = bytes};
    struct leat_link_ticket ticket = {.request = 0};
    net.link->options.handler->on_request(net.link->options.handler->owner, net.link, &frame,
                                          &ticket);
    mails();
}

static inline void up(void)
{
    net.link->up = true;
    net.link->options.handler->on_up(net.link->options.handler->owner, net.link);
    mails();
}

static inline void down(leat_err rc)
{
    struct leat_error error = {rc, "it went"};
    net.link->up = false;
    net.link->options.handler->on_down(net.link->options.handler->owner, net.link, true, &error);
    mails();
}

/* ---- the writer ---- */

struct rig {
    struct leat_env env;
    struct leat_post post;
    struct leat_transport *transport;
    const struct leat_rmem *writer;
    struct leat_rmem_target *target;
    struct leat_rmem_write writes[160];
    struct leat_iov iov;
};

static struct rig *rig_now;

static inline void on_attached(void *user, struct leat_rmem_target *target)
{
    trace("attached %s%s\n", leat_rmem_kind_name(target->kind), user == rig_now ? "" : " ?");
}

static inline void on_failed(void *user, struct leat_rmem_target *target,
                             const struct leat_error *error)
{
    (void)user, (void)target;
    trace("failed %s \"%s\"\n", leat_err_name(error->code), error->text);
}

static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static inline void on_done(struct leat_rmem_write *write, leat_err rc)
{
    trace("done %d: %s\n", (int)(write - rig_now->writes), leat_err_name(rc));
}

static inline struct leat_rmem_grant grant_of(unsigned kinds)
{
    struct leat_rmem_grant grant = {0};
    struct leat_rmem_address address = {.limit_bytes = LEAT_ARENA_STEP_BYTES, .number = 8};
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    for (int kind = LEAT_RMEM_RPC; kind < LEAT_RMEM_KINDS; kind++)
        if (kinds >> kind & 1)
            assert_true(leat_rmem_grant_add(&grant, (enum leat_rmem_kind)kind, "x", 1));
    return grant;
}

/* Its answers are the backup's: the writer needs the kind only. */
static const struct leat_transport_baseline rig_rpc = {.kind = LEAT_DATA_REQUEST};

static inline leat_err attach(struct rig *rig, unsigned node, unsigned kinds)
{
    struct leat_rmem_grant grant = grant_of(kinds);
    struct leat_error error = {0};
    leat_err rc =
        rig->writer->attach(rig->writer->ctx, node, &grant, &handler, rig, &rig->target, &error);
    if (rc) trace("%s \"%s\"\n", leat_err_name(rc), error.text);
    return rc;
}

static inline struct rig *rig_new(enum leat_rmem_kind only)
{
    struct rig *rig = rig_now = calloc(1, sizeof *rig);
    struct leat_error error;
    memset(&net, 0, sizeof net);
    net.room = CALLS_MAX;
    rig->post = (struct leat_post){NULL, post_send, 3};
    rig->env.post = &rig->post;
    struct leat_transport_options options = {
        .env = &rig->env, .links = (struct leat_links *)rig, .baseline = &rig_rpc, .only = only};
    assert_int_equal(leat_transport_create(&options, &rig->transport, &error), LEAT_OK);
    rig->writer = leat_transport_writer(rig->transport);
    assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 7),
                     LEAT_OK);
    return rig;
}

/* Attached, by that transport. */
static inline struct rig *rig_attached(enum leat_rmem_kind only)
{
    struct rig *rig = rig_new(only);
    size_t used = trace_used;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_RPC), LEAT_OK);
    up();
    ends(0, LEAT_OK);
    trace_text[trace_used = used] = '\0';
    return rig;
}

static inline leat_err write_one(struct rig *rig, unsigned at, uint64_t offset)
{
    rig->iov = (struct leat_iov){"1234", 4};
    rig->writes[at] = (struct leat_rmem_write){
        .iovs = &rig->iov, .iov_count = 1, .offset = offset, .on_done = on_done};
    leat_err rc = leat_rmem_write(rig->target, &rig->writes[at]);
    if (rc) trace("%u: %s\n", at, leat_err_name(rc));
    mails();
    return rc;
}

static inline void rig_free(struct rig *rig)
{
    size_t used = trace_used;
    leat_transport_destroy(&rig->transport);
    free(rig);
    trace_text[trace_used = used] = '\0';
}

#endif
