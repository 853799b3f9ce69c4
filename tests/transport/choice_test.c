/* SPDX-License-Identifier: Apache-2.0 */
/* Which transport a target takes; and what becomes of writes that the link has no room for. */
#include "tests/transport/data_rig.h"

/* ---- the choice ---- */

/* A fake transport: its calls go into the trace, and are answered by hand. */
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
    assert_non_null(error); /* a transport may write the text itself */
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

/* Goal: a target uses the first transport that starts and attaches; where none does, the failure is reported once, and
 * the target takes no more writes. */
static void target_takes_the_first_way_that_works(void **state)
{
    (void)state;
    struct way ways[2];
    struct rig *rig = rig_ways(ways, LEAT_RMEM_NONE);
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    (void)write_one(rig, 0, 8); /* too early */
    ways[1].target.attached = true;
    ways[1].handler->on_attached(ways[1].user, &ways[1].target);
    (void)write_one(rig, 0, 8);
    way_failed(&ways[1]);
    (void)write_one(rig, 0, 8);
    leat_rmem_detach(rig->target);
    TRACE_IS("shm: attach node 5\n"
             "0: CLOSED\n"
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

/* Goal: a caller that permits only one transport gets no other transport. */
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
    rig->env.rmems[1] = NULL;
    rig->transport->only = LEAT_RMEM_SHM;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    TRACE_IS("verbs: attach node 5\n"
             "UNSUPPORTED \"not this way\"\n"
             "verbs: attach node 5\n"
             "verbs: detach\n"
             "failed CLOSED \"it ends\"\n"
             "UNSUPPORTED \"this node has no RDMA: no device\"\n"
             "UNSUPPORTED \"this node has no transport shm\"\n");
    rig_free(rig);
}

/* Goal: a caller that wants no text need not pass a place for the text. */
static void caller_without_an_error_attaches(void **state)
{
    (void)state;
    struct way ways[2];
    struct rig *rig = rig_ways(ways, LEAT_RMEM_VERBS);
    struct leat_rmem_grant grant = grant_of(1u << LEAT_RMEM_TCP);
    for (unsigned i = 0; i < 2; i++) {
        ways[0].rc = i ? LEAT_OK : LEAT_E_UNSUPPORTED;
        assert_int_equal(
            rig->writer->attach(rig->writer->ctx, NODE, &grant, &handler, rig, &rig->target, NULL),
            ways[0].rc);
    }
    leat_rmem_detach(rig->target);
    TRACE_IS("verbs: attach node 5\n"
             "verbs: attach node 5\n"
             "verbs: detach\n");
    rig_free(rig);
}

static leat_err way_source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    struct way *way = ctx;
    trace("%s: source %d, %zu bytes\n", leat_rmem_kind_name(way->port.kind), *(int *)base, bytes);
    return way->rc ? leat_error_set(error, way->rc, "no memory for it") : LEAT_OK;
}

/* Goal: memory that is written from is named to each transport that wants to know it, up to the first that refuses. */
static void source_is_named_to_all_ways(void **state)
{
    (void)state;
    struct way ways[2];
    struct rig *rig = rig_ways(ways, LEAT_RMEM_NONE);
    const struct leat_rmem *writer = &rig->transport->writer;
    struct leat_error error = {0};
    int memory = 7;
    assert_int_equal(writer->source(writer->ctx, &memory, 8, &error), LEAT_OK);
    TRACE_IS("");
    ways[1].port.source = way_source;
    assert_int_equal(writer->source(writer->ctx, &memory, 8, &error), LEAT_OK);
    TRACE_IS("shm: source 7, 8 bytes\n");
    ways[0].port.source = way_source;
    assert_int_equal(writer->source(writer->ctx, &memory, 8, &error), LEAT_OK);
    TRACE_IS("verbs: source 7, 8 bytes\n"
             "shm: source 7, 8 bytes\n");
    ways[0].rc = LEAT_E_NO_MEMORY;
    assert_int_equal(writer->source(writer->ctx, &memory, 8, &error), LEAT_E_NO_MEMORY);
    TRACE_IS("verbs: source 7, 8 bytes\n");
    assert_string_equal(error.text, "no memory for it");
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

/* ---- who waits, and who is told ---- */

/* Goal: a write that the link has no room for waits, also where nothing else is under way; it is sent when the link has
 * taken another target's. */
static void write_waits_for_room_on_the_link(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_RPC);
    struct leat_rmem_target *first = rig->target;
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_RPC), LEAT_OK);
    ends(0, LEAT_OK);
    trace_begin();
    net.room = 1;
    (void)write_one(rig, 0, 0);
    struct leat_rmem_target *second = rig->target;
    rig->target = first;
    (void)write_one(rig, 1, 4);
    TRACE_IS("REQUEST t2 n1 arena 8 @0 of 1\n");
    rig->target = second;
    (void)write_one(rig, 2, 8);
    ends(0, LEAT_OK); /* still no room */
    TRACE_IS("done 0: OK\n");
    net.room = 1;
    (void)write_one(rig, 3, 8);
    TRACE_IS("REQUEST t2 n2 arena 8 @8 of 1\n");
    net.room = 2;
    ends(0, LEAT_OK);
    TRACE_IS("done 2: OK\n"
             "REQUEST t2 n3 arena 8 @8 of 1\n"
             "REQUEST t1 n1 arena 8 @4 of 1\n");
    leat_rmem_detach(first);
    leat_rmem_detach(second);
    while (net.call_count)
        ends(0, LEAT_OK);
    mails();
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: a link that takes nothing any more fails its target; who has let go of it is not told. */
static void target_fails_where_the_link_takes_nothing(void **state)
{
    (void)state;
    for (unsigned detached = 0; detached < 2; detached++) {
        struct rig *rig = rig_attached(LEAT_RMEM_TCP);
        trace_begin();
        net.call_rc = LEAT_E_CLOSED;
        rig->iov = (struct leat_iov){"1234", 4};
        rig->writes[0] =
            (struct leat_rmem_write){.iovs = &rig->iov, .iov_count = 1, .on_done = on_done};
        assert_int_equal(leat_rmem_write(rig->target, &rig->writes[0]), LEAT_OK);
        if (detached) leat_rmem_detach(rig->target);
        mails();
        if (!detached) leat_rmem_detach(rig->target);
        mails();
        trace(".\n");
        if (detached)
            TRACE_IS("done 0: CLOSED\n"
                     ".\n");
        else
            TRACE_IS("done 0: CLOSED\n"
                     "failed CLOSED \"the connection was closed; whether the last requests took "
                     "effect is unknown\"\n"
                     ".\n");
        rig_free(rig);
    }
}

/* Goal: attaching fails, and the failure is reported, where the link takes no request. */
static void attach_that_the_link_does_not_take_fails(void **state)
{
    (void)state;
    struct rig *rig = rig_new(LEAT_RMEM_TCP);
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    net.call_rc = LEAT_E_NO_MEMORY;
    up();
    mails();
    leat_rmem_detach(rig->target);
    mails();
    TRACE_IS("open there:1 for backup/7 actor 3 purpose 3\n"
             "failed NO_MEMORY \"the memory budget is used up\"\n");
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: a caller without space for an error text is refused as well; a write past the arena's end is refused. */
static void refusals_need_no_sentence(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    struct leat_rmem_target *target = NULL;
    struct leat_rmem_grant grant = grant_of(0);
    leat_err rc = rig->writer->attach(rig->writer->ctx, NODE, &grant, &handler, rig, &target, NULL);
    assert_int_equal(rc, LEAT_E_UNSUPPORTED);
    trace_begin();
    (void)write_one(rig, 0, LEAT_ARENA_STEP_BYTES - 3);
    (void)write_one(rig, 1, LEAT_ARENA_STEP_BYTES - 4);
    TRACE_IS("0: OFFSET_OUT_OF_RANGE\n"
             "WRITE t1 n1 arena 8 @67108860 of 1\n");
    leat_rmem_detach(rig->target);
    ends(0, LEAT_OK);
    rig_free(rig);
}

/* Goal: the failure of a target is reported once, whatever else happens to its node. */
static void failure_is_told_once(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    trace_begin();
    down(LEAT_E_TIMEOUT);
    assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 0),
                     LEAT_OK);
    mails();
    TRACE_IS("failed TIMEOUT \"it went\"\n"
             "close\n");
    leat_rmem_detach(rig->target);
    mails();
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(target_takes_the_first_way_that_works),
        TRACE_TEST(source_is_named_to_all_ways),
        TRACE_TEST(only_way_is_taken_or_none),
        TRACE_TEST(caller_without_an_error_attaches),
        TRACE_TEST(links_are_closed_at_the_end),
        TRACE_TEST(write_waits_for_room_on_the_link),
        TRACE_TEST(target_fails_where_the_link_takes_nothing),
        TRACE_TEST(refusals_need_no_sentence),
        TRACE_TEST(failure_is_told_once),
        TRACE_TEST(attach_that_the_link_does_not_take_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
