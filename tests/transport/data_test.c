/* The writer of tcp and rpc, and the choice among transports, without a network: the link is this program, which notes
 * every call and answers by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "replication/transport.h"
#include "replication/transport_data.h"
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

static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, 3);
    net.mails[net.mail_count++] = mail;
}

static void mails(void)
{
    while (net.mail_count) {
        struct leat_mail *mail = net.mails[0];
        net.mail_count--;
        memmove(&net.mails[0], &net.mails[1], net.mail_count * sizeof net.mails[0]);
        mail->deliver(NULL, mail);
    }
}

/* The call at that place among those that are under way has ended. */
static void ends(unsigned at, leat_err rc)
{
    struct leat_link_call *call = net.calls[at];
    struct leat_error error = {rc, "so it says"};
    assert_true(at < net.call_count);
    net.call_count--;
    memmove(&net.calls[at], &net.calls[at + 1], (net.call_count - at) * sizeof net.calls[0]);
    call->on_done(call, rc, NULL, rc ? &error : NULL);
    mails();
}

static void done_says(uint32_t target, uint64_t number, leat_err rc, uint32_t bytes)
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

static void up(void)
{
    net.link->up = true;
    net.link->options.handler->on_up(net.link->options.handler->owner, net.link);
    mails();
}

static void down(leat_err rc)
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

static void on_attached(void *user, struct leat_rmem_target *target)
{
    trace("attached %s%s\n", leat_rmem_kind_name(target->kind), user == rig_now ? "" : " ?");
}

static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    (void)user, (void)target;
    trace("failed %s \"%s\"\n", leat_err_name(error->code), error->text);
}

static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    trace("done %d: %s\n", (int)(write - rig_now->writes), leat_err_name(rc));
}

static struct leat_rmem_grant grant_of(unsigned kinds)
{
    struct leat_rmem_grant grant = {0};
    struct leat_rmem_address address = {.limit_bytes = LEAT_ARENA_STEP_BYTES, .number = 8};
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    for (int kind = LEAT_RMEM_RPC; kind < LEAT_RMEM_KINDS; kind++)
        if (kinds >> kind & 1)
            assert_true(leat_rmem_grant_add(&grant, (enum leat_rmem_kind)kind, "x", 1));
    return grant;
}

static leat_err attach(struct rig *rig, unsigned node, unsigned kinds)
{
    struct leat_rmem_grant grant = grant_of(kinds);
    struct leat_error error = {0};
    leat_err rc =
        rig->writer->attach(rig->writer->ctx, node, &grant, &handler, rig, &rig->target, &error);
    if (rc) trace("%s \"%s\"\n", leat_err_name(rc), error.text);
    return rc;
}

static struct rig *rig_new(enum leat_rmem_kind only)
{
    struct rig *rig = rig_now = calloc(1, sizeof *rig);
    struct leat_error error;
    memset(&net, 0, sizeof net);
    net.room = CALLS_MAX;
    rig->post = (struct leat_post){NULL, post_send, 3};
    rig->env.post = &rig->post;
    struct leat_transport_options options = {
        .env = &rig->env, .links = (struct leat_links *)rig, .only = only};
    assert_int_equal(leat_transport_create(&options, &rig->transport, &error), LEAT_OK);
    rig->writer = leat_transport_writer(rig->transport);
    assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 7),
                     LEAT_OK);
    return rig;
}

/* Attached, by that transport. */
static struct rig *rig_attached(enum leat_rmem_kind only)
{
    struct rig *rig = rig_new(only);
    size_t used = trace_used;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_RPC), LEAT_OK);
    up();
    ends(0, LEAT_OK);
    trace_text[trace_used = used] = '\0';
    return rig;
}

static leat_err write_one(struct rig *rig, unsigned at, uint64_t offset)
{
    rig->iov = (struct leat_iov){"1234", 4};
    rig->writes[at] = (struct leat_rmem_write){
        .iovs = &rig->iov, .iov_count = 1, .offset = offset, .on_done = on_done};
    leat_err rc = leat_rmem_write(rig->target, &rig->writes[at]);
    if (rc) trace("%u: %s\n", at, leat_err_name(rc));
    mails();
    return rc;
}

static void rig_free(struct rig *rig)
{
    size_t used = trace_used;
    leat_transport_destroy(&rig->transport);
    free(rig);
    trace_text[trace_used = used] = '\0';
}

/* Goal: a target's link is opened when it is needed; attached is who was asked about and answered so. */
static void target_is_attached_over_its_link(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        struct rig *rig = rig_new(LEAT_RMEM_NONE);
        assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
        (void)write_one(rig, 0, 0);
        up();
        up();
        ends(0, refused ? LEAT_E_NOT_FOUND : LEAT_OK);
        (void)write_one(rig, 0, 0);
        leat_rmem_detach(rig->target);
        if (!refused) ends(0, LEAT_OK);
        mails();
        assert_int_equal(rig->transport->target_count, 0);
        if (refused)
            TRACE_IS("open there:1 for backup/7 actor 3 purpose 3\n"
                     "0: CLOSED\n"
                     "ATTACH arena 8\n"
                     "failed NOT_FOUND \"so it says\"\n"
                     "0: CLOSED\n");
        else
            TRACE_IS("open there:1 for backup/7 actor 3 purpose 3\n"
                     "0: CLOSED\n"
                     "ATTACH arena 8\n"
                     "attached tcp\n"
                     "WRITE t1 n1 arena 8 @0 of 1\n"
                     "done 0: CANCELLED\n");
        rig_free(rig);
    }
}

/* Goal: what can't be attached is refused by name, and leaves nothing. */
static void attach_that_can_not_be_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(LEAT_RMEM_NONE);
    (void)attach(rig, NODE, 0);
    (void)attach(rig, NODE, 1u << LEAT_RMEM_RPC); /* never chosen */
    (void)attach(rig, NODE + 1, 1u << LEAT_RMEM_TCP);
    (void)attach(rig, LEAT_TRANSPORT_NODES_MAX, 1u << LEAT_RMEM_TCP);
    net.open_rc = LEAT_E_NO_MEMORY;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    net.open_rc = LEAT_OK;
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
        leat_mem_fail_at(0);
    }
    rig->transport->target_count = LEAT_RMEM_TARGETS_MAX;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    rig->transport->target_count = 0;
    struct leat_rmem_grant nonsense = {.bytes = 3, .data = {9, 9, 9}};
    struct leat_rmem_target *target;
    leat_err rc =
        rig->writer->attach(rig->writer->ctx, NODE, &nonsense, &handler, rig, &target, NULL);
    trace("%s\n", leat_err_name(rc));
    TRACE_IS("UNSUPPORTED \"the backup does not offer tcp\"\n"
             "UNSUPPORTED \"the backup does not offer tcp\"\n"
             "UNSUPPORTED \"it is not up\"\n"
             "UNSUPPORTED \"it is not up\"\n"
             "open there:1 for backup/7 actor 3 purpose 3\n"
             "NO_MEMORY \"no\"\n"
             "NO_MEMORY \"no memory to attach an arena\"\n"
             "open there:1 for backup/7 actor 3 purpose 3\n"
             "NO_MEMORY \"no memory to attach an arena\"\n"
             "TOO_MANY \"1024 targets are attached already\"\n"
             "INVALID\n");
    rig_free(rig);
}

/* Goal: tcp: writes end in order, each when the backup says that it, or one behind it, is in place and its bytes have
 * left; what makes no sense says nothing. */
static void tcp_writes_end_as_the_backup_says(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    for (unsigned i = 0; i < 4; i++)
        (void)write_one(rig, i, 64 * i);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "WRITE t1 n2 arena 8 @64 of 1\n"
             "WRITE t1 n3 arena 8 @128 of 1\n"
             "WRITE t1 n4 arena 8 @192 of 1\n");
    ends(0, LEAT_OK);
    done_says(1, 0, LEAT_OK, 16);
    done_says(1, 5, LEAT_OK, 16); /* more than there are */
    done_says(2, 1, LEAT_OK, 16); /* another target */
    done_says(1, 1, LEAT_OK, 15);
    done_says(1, 1, LEAT_OK, 17);
    TRACE_IS("");
    done_says(1, 1, LEAT_OK, 16);
    done_says(1, 1, LEAT_OK, 16);
    TRACE_IS("done 0: OK\n");
    done_says(1, 3, LEAT_OK, 16); /* their bytes are still the link's */
    TRACE_IS("");
    ends(1, LEAT_OK);
    ends(0, LEAT_OK);
    TRACE_IS("done 1: OK\n"
             "done 2: OK\n");
    done_says(1, 4, LEAT_E_CANCELLED, 16);
    ends(0, LEAT_OK);
    TRACE_IS("done 3: CANCELLED\n"
             "failed CANCELLED \"the backup refused a write: cancelled before it was done\"\n");
    (void)write_one(rig, 5, 0);
    struct leat_frame frame = {.kind = LEAT_DATA_WRITE};
    struct leat_link_ticket ticket = {.request = 9};
    net.link->options.handler->on_request(net.link->options.handler->owner, net.link, &frame,
                                          &ticket);
    TRACE_IS("5: CLOSED\n"
             "9: UNSUPPORTED\n");
    leat_rmem_detach(rig->target);
    mails();
    rig_free(rig);
}

/* Goal: rpc: an answer of its own to each, and still in order; after one that failed none counts. */
static void rpc_writes_end_in_order(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_RPC);
    for (unsigned i = 0; i < 4; i++)
        (void)write_one(rig, i, 64 * i);
    ends(2, LEAT_OK);
    TRACE_IS("REQUEST t1 n1 arena 8 @0 of 1\n"
             "REQUEST t1 n2 arena 8 @64 of 1\n"
             "REQUEST t1 n3 arena 8 @128 of 1\n"
             "REQUEST t1 n4 arena 8 @192 of 1\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: OK\n");
    ends(0, LEAT_E_CANCELLED);
    TRACE_IS("done 1: CANCELLED\n"
             "done 2: CANCELLED\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 3: CANCELLED\n"
             "failed CANCELLED \"so it says\"\n");
    leat_rmem_detach(rig->target);
    mails();
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: as many as the window are under way, the rest waits, also where the link has no room; none is lost or
 * overtaken. */
static void writes_beyond_the_window_wait(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_RPC);
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW + 3; i++)
        (void)write_one(rig, i, 0);
    assert_int_equal(net.call_count, LEAT_RMEM_WINDOW);
    trace_begin();
    ends(0, LEAT_OK);
    TRACE_IS("done 0: OK\n"
             "REQUEST t1 n129 arena 8 @0 of 1\n");
    net.room = 0;
    ends(0, LEAT_OK);
    ends(0, LEAT_OK);
    TRACE_IS("done 1: OK\n"
             "done 2: OK\n");
    net.room = CALLS_MAX;
    ends(0, LEAT_OK);
    TRACE_IS("done 3: OK\n"
             "REQUEST t1 n130 arena 8 @0 of 1\n"
             "REQUEST t1 n131 arena 8 @0 of 1\n");
    unsigned left = 0;
    for (; net.call_count; left++)
        ends(0, LEAT_OK);
    trace_begin();
    assert_int_equal(left, LEAT_RMEM_WINDOW + 3 - 4);
    leat_rmem_detach(rig->target);
    mails();
    rig_free(rig);
}

/* Goal: a link that ends, or a node that has gone, ends all writes, and then tells so once; its bytes are let go of
 * first. */
static void link_that_ends_fails_its_targets(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct rig *rig = rig_attached(LEAT_RMEM_TCP);
        for (unsigned i = 0; i < 3; i++) {
            if (i == 2) net.room = 0; /* it waits */
            (void)write_one(rig, i, 0);
        }
        ends(0, LEAT_OK);
        trace_begin();
        if (way == 0) down(LEAT_E_TIMEOUT);
        if (way == 1)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 0),
                             LEAT_OK);
        if (way == 2)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:2", 7),
                             LEAT_OK);
        if (way == 3)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 7),
                             LEAT_OK);
        mails();
        trace("and then\n");
        ends(0, way == 3 ? LEAT_OK : LEAT_E_CLOSED);
        (void)write_one(rig, 3, 0);
        if (way == 0)
            TRACE_IS("done 0: TIMEOUT\n"
                     "and then\n"
                     "done 1: TIMEOUT\n"
                     "done 2: TIMEOUT\n"
                     "failed TIMEOUT \"it went\"\n"
                     "3: CLOSED\n");
        else if (way == 3)
            TRACE_IS("and then\n");
        else
            TRACE_IS("close\n"
                     "done 0: CLOSED\n"
                     "and then\n"
                     "done 1: CLOSED\n"
                     "done 2: CLOSED\n"
                     "failed CLOSED \"the node has gone, or moved\"\n"
                     "3: CLOSED\n");
        leat_rmem_detach(rig->target);
        mails();
        while (net.call_count)
            ends(0, LEAT_E_CANCELLED);
        rig_free(rig);
    }
}

/* Goal: who detaches hears no more of the target, and of each write once, when its bytes are free. */
static void detached_target_ends_its_writes(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2) net.room = 0;
        (void)write_one(rig, i, 0);
    }
    trace_begin();
    leat_rmem_detach(rig->target);
    mails();
    TRACE_IS("");
    ends(1, LEAT_OK);
    TRACE_IS("");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: CANCELLED\n"
             "done 1: CANCELLED\n"
             "done 2: CANCELLED\n");
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* ---- the choice ---- */

/* A transport that is none: what it is asked for is told, and answered by hand. */
struct way {
    struct leat_rmem port;
    struct leat_rmem_target target;
    const struct leat_rmem_target_handler *handler;
    void *user;
    leat_err rc; /* of attach */
};

static leat_err way_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                           const struct leat_rmem_target_handler *told, void *user,
                           struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct way *way = ctx;
    (void)grant;
    trace("%s: attach node %u\n", leat_rmem_kind_name(way->port.kind), node);
    if (way->rc) return leat_error_set(error, way->rc, "not this way");
    way->target = (struct leat_rmem_target){.port = &way->port, .kind = way->port.kind};
    way->handler = told;
    way->user = user;
    *out_target = &way->target;
    return LEAT_OK;
}

static leat_err way_write(struct leat_rmem_target *target, struct leat_rmem_write *write)
{
    trace("%s: write @%llu\n", leat_rmem_kind_name(target->kind),
          (unsigned long long)write->offset);
    return LEAT_OK;
}

static void way_detach(struct leat_rmem_target *target)
{
    trace("%s: detach\n", leat_rmem_kind_name(target->kind));
}

static void way_failed(struct way *way)
{
    struct leat_error error = {LEAT_E_CLOSED, "it ends"};
    way->target.failed = true;
    way->handler->on_failed(way->user, &way->target, &error);
}

static struct rig *rig_ways(struct way ways[2], enum leat_rmem_kind only)
{
    struct rig *rig = rig_new(LEAT_RMEM_NONE);
    for (unsigned i = 0; i < 2; i++) {
        ways[i] = (struct way){.port = {.ctx = &ways[i],
                                        .kind = i ? LEAT_RMEM_SHM : LEAT_RMEM_VERBS,
                                        .attach = way_attach,
                                        .write = way_write,
                                        .detach = way_detach}};
        rig->env.rmems[i] = &ways[i].port;
    }
    rig->transport->only = only;
    return rig;
}

/* Goal: a target goes by the first way that starts and comes through; where none does it is told once, and takes no
 * write any more. */
static void target_takes_the_first_way_that_works(void **state)
{
    (void)state;
    struct way ways[2];
    struct rig *rig = rig_ways(ways, LEAT_RMEM_NONE);
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    ways[1].target.attached = true;
    ways[1].handler->on_attached(ways[1].user, &ways[1].target);
    (void)write_one(rig, 0, 8);
    way_failed(&ways[1]);
    (void)write_one(rig, 0, 8);
    leat_rmem_detach(rig->target);
    TRACE_IS("shm: attach node 5\n"
             "attached shm\n"
             "shm: write @8\n"
             "failed CLOSED \"it ends\"\n"
             "0: CLOSED\n"
             "shm: detach\n");
    ways[1].rc = LEAT_E_UNSUPPORTED;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    way_failed(&ways[0]); /* before it came through */
    up();
    ends(0, LEAT_OK);
    leat_rmem_detach(rig->target);
    mails();
    TRACE_IS("shm: attach node 5\n"
             "verbs: attach node 5\n"
             "verbs: detach\n"
             "open there:1 for backup/7 actor 3 purpose 3\n"
             "ATTACH arena 8\n"
             "attached tcp\n");
    net.open_rc = LEAT_E_NO_MEMORY;
    assert_int_equal(attach(rig, NODE + 1, 1u << LEAT_RMEM_TCP), LEAT_OK);
    way_failed(&ways[0]);
    assert_true(rig->target->failed && !rig->target->attached);
    (void)write_one(rig, 0, 8);
    leat_rmem_detach(rig->target);
    TRACE_IS("shm: attach node 6\n"
             "verbs: attach node 6\n"
             "verbs: detach\n"
             "failed CLOSED \"it ends\"\n"
             "0: CLOSED\n");
    rig_free(rig);
}

/* Goal: who is to take one way takes no other. */
static void only_way_is_taken_or_none(void **state)
{
    (void)state;
    struct way ways[2];
    struct rig *rig = rig_ways(ways, LEAT_RMEM_VERBS);
    ways[0].rc = LEAT_E_UNSUPPORTED;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_E_UNSUPPORTED);
    ways[0].rc = LEAT_OK;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    way_failed(&ways[0]);
    leat_rmem_detach(rig->target);
    rig->env.rmems[0] = NULL;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    TRACE_IS("verbs: attach node 5\n"
             "UNSUPPORTED \"not this way\"\n"
             "verbs: attach node 5\n"
             "verbs: detach\n"
             "failed CLOSED \"it ends\"\n"
             "UNSUPPORTED \"this node has no RDMA: no device\"\n");
    rig_free(rig);
}

/* Goal: links that are open at the end are closed. */
static void links_are_closed_at_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    leat_rmem_detach(rig->target);
    mails();
    trace_begin();
    leat_transport_destroy(&rig->transport);
    TRACE_IS("close\n");
    free(rig);
}

/* Goal: names of transports. */
static void transports_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", "rpc", "tcp", "shm", "verbs", "none", "", "TCP"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        enum leat_rmem_kind kind;
        bool is = leat_transport_parse(names[i], &kind);
        trace("%s: %d %u\n", names[i], is, (unsigned)kind);
    }
    struct leat_env env = {0};
    struct leat_error error;
    struct leat_transport *transport = NULL;
    for (int kind = LEAT_RMEM_NONE; kind < LEAT_RMEM_KINDS; kind++) {
        struct leat_transport_options options = {.env = &env, .only = (enum leat_rmem_kind)kind};
        leat_err rc = leat_transport_create(&options, &transport, &error);
        trace("%s%s%s\n", leat_err_name(rc), rc ? ": " : "", rc ? error.text : "");
        if (!rc) leat_transport_destroy(&transport);
    }
    TRACE_IS("auto: 1 0\n"
             "rpc: 1 1\n"
             "tcp: 1 2\n"
             "shm: 1 3\n"
             "verbs: 1 4\n"
             "none: 0 0\n"
             ": 0 0\n"
             "TCP: 0 0\n"
             "OK\n"
             "CONFIG: replication by rpc does not work on this node\n"
             "CONFIG: replication by tcp does not work on this node\n"
             "CONFIG: replication by shm does not work on this node\n"
             "CONFIG: replication by verbs does not work on this node: no device\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(target_is_attached_over_its_link),
        TRACE_TEST(attach_that_can_not_be_is_refused),
        TRACE_TEST(tcp_writes_end_as_the_backup_says),
        TRACE_TEST(rpc_writes_end_in_order),
        TRACE_TEST(writes_beyond_the_window_wait),
        TRACE_TEST(link_that_ends_fails_its_targets),
        TRACE_TEST(detached_target_ends_its_writes),
        TRACE_TEST(target_takes_the_first_way_that_works),
        TRACE_TEST(only_way_is_taken_or_none),
        TRACE_TEST(links_are_closed_at_the_end),
        TRACE_TEST(transports_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
