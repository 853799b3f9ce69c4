/* SPDX-License-Identifier: Apache-2.0 */
/* Requests find their way: matching, time limits, lost connections, metadata. */
#include "tests/client/fake_server.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rig {
    struct fake_world world;
    struct leat_client *client;
    uint32_t done;
    leat_err rc;
    char text[LEAT_ERROR_TEXT_BYTES];
};

static void turn_end(void *owner)
{
    struct rig *rig = owner;
    if (rig->client) leat_client_on_turn_end(rig->client);
}
static bool done(void *owner)
{
    return ((struct rig *)owner)->done > 0;
}

static struct rig *rig_make(uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof *rig);
    fake_init(&rig->world, seed);
    rig->world.owner = rig;
    rig->world.turn_end = turn_end;
    rig->client = fake_client(&rig->world, 200000);
    return rig;
}
static void rig_end(struct rig *rig)
{
    leat_client_destroy(&rig->client);
    fake_fini(&rig->world);
    free(rig);
}

static void on_lookup(struct leat_client_lookup *lookup, leat_err rc,
                      const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct rig *rig = lookup->owner;
    rig->done++;
    rig->rc = rc;
    if (rc == LEAT_OK)
        assert_int_equal(stream->log_count, 2);
    else
        memcpy(rig->text, error->text, sizeof rig->text);
}
static void on_request(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct rig *rig = request->owner;
    assert_true((rc == LEAT_OK) == (answer != NULL));
    rig->done++;
    rig->rc = rc;
    memcpy(rig->text, error->text, sizeof rig->text);
}

static leat_err look_up(struct rig *rig, bool may_create)
{
    struct leat_client_lookup lookup = {.name = "s",
                                        .may_create = may_create,
                                        .timeout_us = 2000000,
                                        .on_done = on_lookup,
                                        .owner = rig};
    rig->done = 0;
    leat_client_lookup(rig->client, &lookup);
    assert_int_equal(rig->done, 0); /* never inside the call */
    assert_true(fake_run(&rig->world, rig->world.now_us + 5000000, done));
    assert_int_equal(rig->done, 1);
    return rig->rc;
}

static leat_err ask_id(struct rig *rig, uint64_t timeout_us)
{
    static const uint8_t body[] = {0x92, 0xff, 0xff}; /* [-1, -1] */
    struct leat_request request = {.kind = LEAT_KIND_PRODUCER_ID,
                                   .control = body,
                                   .control_bytes = sizeof body,
                                   .timeout_us = timeout_us,
                                   .on_done = on_request,
                                   .owner = rig};
    rig->done = 0;
    assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
    assert_int_equal(rig->done, 0);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, done));
    assert_int_equal(rig->done, 1);
    return rig->rc;
}

/* A request that only the owner of the stream's first log can answer. */
static struct leat_request locate(struct rig *rig)
{
    static const uint8_t body[] = {0x90};
    return (struct leat_request){.kind = LEAT_KIND_LOCATE,
                                 .log = {5, 0, 0},
                                 .control = body,
                                 .control_bytes = sizeof body,
                                 .timeout_us = 30000000,
                                 .on_done = on_request,
                                 .owner = rig};
}

static void client_lookup_learns_stream(void **state)
{
    (void)state;
    struct rig *rig = rig_make(1);
    assert_int_equal(look_up(rig, true), LEAT_OK);
    const struct leat_client_stream *stream = leat_client_stream(rig->client, "s");
    assert_non_null(stream);
    assert_int_equal(stream->logs[1].lane, 1);
    rig_end(rig);
}

static void client_unknown_stream_names_the_fix(void **state)
{
    (void)state;
    struct rig *rig = rig_make(2);
    assert_int_equal(look_up(rig, false), LEAT_E_UNKNOWN_STREAM);
    assert_non_null(strstr(rig->text, "stream create"));
    rig_end(rig);
}

static void client_mute_server_times_out(void **state)
{
    (void)state;
    struct rig *rig = rig_make(3);
    rig->world.mute = true;
    uint64_t before = rig->world.now_us;
    assert_int_equal(ask_id(rig, 300000), LEAT_E_TIMEOUT);
    assert_true(rig->world.now_us - before >= 300000 && rig->world.now_us - before < 320000);
    rig_end(rig);
}

/* Goal: only the client itself ends a request with CANCELLED. A server that gives a request up counts as a server that
 * did not answer, so the caller asks again. */
static void client_request_that_the_server_gives_up_is_not_cancelled(void **state)
{
    (void)state;
    struct rig *rig = rig_make(17);
    rig->world.gives_up = true;
    assert_int_equal(ask_id(rig, 300000), LEAT_E_TIMEOUT);
    assert_int_equal(rig->world.refused, 1);
    assert_int_equal(rig->world.dropped, 0);
    rig_end(rig);
}

/* Goal: a node that never answers, on a connection that looks well, costs a lookup the time of one request, not the
 * whole time of the lookup. */
static void client_lookup_asks_again_when_nobody_answers(void **state)
{
    (void)state;
    struct rig *rig = rig_make(13);
    struct leat_client_lookup lookup = {.name = "s",
                                        .may_create = true,
                                        .timeout_us = 3600000000,
                                        .on_done = on_lookup,
                                        .owner = rig};
    rig->world.mute = true;
    leat_client_lookup(rig->client, &lookup);
    assert_false(fake_run(&rig->world, rig->world.now_us + 1000000, done));
    rig->world.mute = false;
    assert_true(fake_run(&rig->world, rig->world.now_us + 1000000, done));
    assert_int_equal(rig->rc, LEAT_OK);
    rig_end(rig);
}

static void client_no_server_times_out_by_name(void **state)
{
    (void)state;
    struct rig *rig = rig_make(4);
    rig->world.down = true;
    assert_int_equal(ask_id(rig, 500000), LEAT_E_TIMEOUT);
    assert_non_null(strstr(rig->text, "fake:1"));
    /* The pauses grow: not a connection per round trip. */
    assert_true(rig->world.connects > 2 && rig->world.connects < 100);
    rig_end(rig);
}

/* A request on a connection that breaks is CLOSED; `sent` says that its fate is unknown. */
static void client_lost_connection_fails_its_requests(void **state)
{
    (void)state;
    struct rig *rig = rig_make(5);
    assert_int_equal(look_up(rig, true), LEAT_OK);
    rig->world.faults.drop_before = 1000;
    assert_int_equal(ask_id(rig, 1000000), LEAT_E_CLOSED);
    rig->world.faults.drop_before = 0;
    assert_int_equal(ask_id(rig, 1000000), LEAT_OK); /* made anew */
    rig_end(rig);
}

static void client_repeated_answers_are_taken_once(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6);
    rig->world.faults.twice = 1000;
    for (int i = 0; i < 20; i++)
        assert_int_equal(ask_id(rig, 1000000), LEAT_OK);
    rig_end(rig);
}

/* Goal: a request that arrived damaged ends as one whose connection was lost, and says what the server said. */
static void client_damaged_request_ends_with_its_connection(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6);
    assert_int_equal(ask_id(rig, 1000000), LEAT_OK);
    rig->world.says_damaged = true;
    assert_int_equal(ask_id(rig, 1000000), LEAT_E_CLOSED);
    assert_non_null(strstr(rig->text, " was lost: refused by the script"));
    rig->world.says_damaged = false;
    assert_int_equal(ask_id(rig, 1000000), LEAT_OK);
    rig_end(rig);
}

/* Goal: a stopped node breaks no connection; a request to it ends all the same once the cluster has declared the node
 * dead, and not before. Method: only another node reports the stopped node's state. */
static void client_request_to_a_silent_node_ends_when_others_call_it_dead(void **state)
{
    (void)state;
    struct rig *rig = rig_make(14);
    rig->world.other = true;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    struct leat_request request = locate(rig);
    rig->done = 0;
    rig->world.frozen = "fake:1";
    assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
    uint64_t asked = rig->world.metadatas;
    assert_false(fake_run(&rig->world, rig->world.now_us + 3000000, done));
    assert_true(rig->world.metadatas - asked > 20 && rig->world.metadatas - asked < 60);
    rig->world.dead = true;
    assert_true(fake_run(&rig->world, rig->world.now_us + 1100000, done));
    assert_int_equal(rig->rc, LEAT_E_CLOSED);
    rig_end(rig);
}

/* Goal: a cluster is split, and the client reaches both sides. A node on the side of a silent node names that node as
 * up, so the client asks another node, believes it, and asks that node too where the logs are. Method: fake:3 alone
 * knows that fake:1 is dead; fake:2 answers first, and afterwards answers nothing. */
static void client_doubts_a_node_that_names_a_silent_node_as_up(void **state)
{
    (void)state;
    struct rig *rig = rig_make(20);
    rig->world.other = 2;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    struct leat_request owed = locate(rig);
    rig->done = 0;
    rig->world.frozen = "fake:1";
    rig->world.dead = true;
    rig->world.knows = "fake:3";
    assert_int_equal(leat_client_send(rig->client, &owed), LEAT_OK);
    assert_false(fake_run(&rig->world, rig->world.now_us + 250000, done));
    assert_true(fake_run(&rig->world, rig->world.now_us + 1000000, done));
    assert_int_equal(rig->rc, LEAT_E_CLOSED);
    rig->world.frozen = "fake:2";
    uint64_t before = rig->world.now_us;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    assert_true(rig->world.now_us - before < 50000);
    rig_end(rig);
}

/* Goal: during a long silence of a node the client asks other nodes ever more rarely. When that silence ends, the
 * client starts anew: at the next silence, moments later, it asks as quickly as at the first. */
static void client_second_silence_is_asked_about_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_make(18);
    rig->world.other = true;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    struct leat_request request = locate(rig);
    struct leat_request first = request;
    first.timeout_us = 4750000; /* moments after one of these questions */
    rig->done = 0;
    rig->world.frozen = "fake:1";
    assert_int_equal(leat_client_send(rig->client, &first), LEAT_OK);
    uint64_t asked = rig->world.metadatas;
    assert_true(fake_run(&rig->world, rig->world.now_us + 6000000, done));
    assert_int_equal(rig->rc, LEAT_E_TIMEOUT);
    assert_true(rig->world.metadatas > asked + 40); /* a question each second by now */
    rig->world.frozen = NULL;
    assert_int_equal(ask_id(rig, 1000000), LEAT_OK);
    rig->done = 0;
    rig->world.frozen = "fake:1";
    rig->world.dead = true;
    assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
    assert_true(fake_run(&rig->world, rig->world.now_us + 150000, done));
    assert_int_equal(rig->rc, LEAT_E_CLOSED);
    rig_end(rig);
}

/* A request that any node can answer does not wait for a silent node. */
static void client_lookup_at_a_silent_node_is_asked_elsewhere(void **state)
{
    (void)state;
    struct rig *rig = rig_make(15);
    rig->world.other = true;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    rig->world.frozen = "fake:1";
    uint64_t before = rig->world.now_us;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    assert_true(rig->world.now_us - before < 150000);
    rig_end(rig);
}

/* Goal: a node that answers at once, and names itself as down, is left: what the node owes ends, and the next look-up
 * is asked elsewhere. Without another address the client stays. Method: afterwards this node answers nothing. */
static void client_leaves_a_node_that_names_itself_as_down(void **state)
{
    (void)state;
    for (unsigned other = 0; other < 2; other++) {
        struct rig *rig = rig_make(19);
        rig->world.other = other;
        assert_int_equal(look_up(rig, true), LEAT_OK);
        struct leat_request owed = locate(rig);
        rig->done = 0;
        rig->world.frozen = "fake:1";
        assert_int_equal(leat_client_send(rig->client, &owed), LEAT_OK);
        assert_false(fake_run(&rig->world, rig->world.now_us + 5000, done));
        rig->world.frozen = NULL;
        rig->world.dead = true;
        assert_int_equal(look_up(rig, true), LEAT_OK);
        rig->done = 0;
        rig->rc = LEAT_OK;
        assert_int_equal(fake_run(&rig->world, rig->world.now_us + 5000, done), other);
        assert_int_equal(rig->rc, other ? LEAT_E_CLOSED : LEAT_OK);
        uint64_t before = rig->world.now_us, connects = rig->world.connects;
        if (other) rig->world.frozen = "fake:1";
        assert_int_equal(look_up(rig, true), LEAT_OK);
        assert_true(rig->world.now_us - before < 50000);
        assert_int_equal(rig->world.connects - connects, other);
        rig_end(rig);
    }
}

/* Goal: a request that any node can answer does not wait for ever where all nodes are silent: the client sends the
 * request to one of the silent nodes, and the request ends when that node answers. */
static void client_request_for_any_node_waits_at_a_silent_one_if_all_are(void **state)
{
    (void)state;
    struct rig *rig = rig_make(17);
    rig->world.other = true;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    static const uint8_t body[] = {0x92, 0xff, 0xff};
    struct leat_request lost = {.kind = LEAT_KIND_PRODUCER_ID,
                                .control = body,
                                .control_bytes = sizeof body,
                                .timeout_us = 30000000,
                                .on_done = on_request,
                                .owner = rig};
    rig->world.silent = "fake:2";
    rig->world.frozen = "fake:1";
    assert_int_equal(leat_client_send(rig->client, &lost), LEAT_OK);
    rig->done = 0;
    assert_false(fake_run(&rig->world, rig->world.now_us + 100000, done));
    struct leat_request second = lost;
    assert_int_equal(leat_client_send(rig->client, &second), LEAT_OK);
    rig->world.frozen = NULL;
    assert_true(fake_run(&rig->world, rig->world.now_us + 400000, done));
    assert_int_equal(rig->rc, LEAT_OK);
    leat_client_cancel(rig->client, &lost);
    rig_end(rig);
}

/* Goal: as long as metadata names an incarnation that has been followed by another, each request meets the
 * new one and fails; no connection is left over each time, else there is room for none in the end. */
static void client_requests_to_an_incarnation_of_old_leave_no_connections(void **state)
{
    (void)state;
    struct rig *rig = rig_make(19);
    rig->world.behind = true;
    static const uint8_t body[] = {0x92, 0x90, 0x00};
    struct leat_request request = {.kind = LEAT_KIND_LOCATE,
                                   .control = body,
                                   .control_bytes = sizeof body,
                                   .on_done = on_request,
                                   .owner = rig};
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(look_up(rig, true), LEAT_OK);
        request.log = (struct leat_log_ref){5, 0, i % 2};
        rig->done = 0;
        assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
        assert_true(fake_run(&rig->world, rig->world.now_us + 1000000, done));
        assert_int_equal(rig->rc, LEAT_E_NOT_OWNER);
    }
    (void)fake_run(&rig->world, rig->world.now_us + 10000, NULL);
    unsigned open = 0;
    LEAT_LIST_EACH(&rig->world.conns, link)
    open++;
    assert_int_equal(open, 2); /* one for each lane */
    rig->world.behind = false;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    rig->done = 0;
    assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
    assert_true(fake_run(&rig->world, rig->world.now_us + 1000000, done));
    assert_int_equal(rig->rc, LEAT_OK);
    rig_end(rig);
}

/* Goal: metadata of a node that lags behind do not lead a client back to an earlier owner; such a node is above all the
 * earlier owner itself. */
static void client_metadata_of_an_older_epoch_is_not_taken(void **state)
{
    (void)state;
    struct rig *rig = rig_make(18);
    rig->world.epoch = 5;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    rig->world.epoch = 4;
    rig->world.incarnation = 6;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    const struct leat_client_stream *stream = leat_client_stream(rig->client, "s");
    assert_int_equal(stream->logs[0].epoch.v, 5);
    assert_int_equal(stream->logs[0].owner, 7);
    rig->world.epoch = 6;
    assert_int_equal(look_up(rig, true), LEAT_OK);
    stream = leat_client_stream(rig->client, "s");
    assert_int_equal(stream->logs[0].epoch.v, 6);
    assert_int_equal(stream->logs[0].owner, 6);
    /* Another cluster, which has the same address and counts from the beginning. */
    rig->world.epoch = 1;
    rig->world.cluster_id = "another cluster!";
    assert_int_equal(look_up(rig, true), LEAT_OK);
    stream = leat_client_stream(rig->client, "s");
    assert_int_equal(stream->logs[1].epoch.v, 1);
    rig_end(rig);
}

/* There is nobody to ask about the only server there is: it is waited for. */
static void client_silence_of_the_only_server_costs_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_make(16);
    assert_int_equal(look_up(rig, true), LEAT_OK);
    uint64_t asked = rig->world.metadatas, connects = rig->world.connects;
    rig->world.mute = true;
    assert_int_equal(ask_id(rig, 5000000), LEAT_E_TIMEOUT);
    assert_int_equal(rig->world.metadatas, asked);
    assert_int_equal(rig->world.connects, connects);
    rig_end(rig);
}

static void client_destroy_cancels_what_waits(void **state)
{
    (void)state;
    struct rig *rig = rig_make(7);
    static const uint8_t body[] = {0x92, 0xff, 0xff};
    struct leat_request request = {.kind = LEAT_KIND_PRODUCER_ID,
                                   .control = body,
                                   .control_bytes = sizeof body,
                                   .on_done = on_request,
                                   .owner = rig};
    rig->world.mute = true;
    assert_int_equal(leat_client_send(rig->client, &request), LEAT_OK);
    (void)fake_run(&rig->world, rig->world.now_us + 5000, NULL);
    leat_client_destroy(&rig->client);
    assert_int_equal(rig->done, 1);
    assert_int_equal(rig->rc, LEAT_E_CANCELLED);
    rig_end(rig);
}

static void client_bad_address_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_make(8);
    struct leat_client_options options = {.name = "t",
                                          .addresses = "nonsense",
                                          .request_timeout_us = 1,
                                          .retry_us_min = 1,
                                          .retry_us_max = 1,
                                          .streams_max = 1};
    struct leat_client *client = NULL;
    struct leat_error error;
    assert_int_equal(
        leat_client_create(&rig->world.env, &rig->world.timers, &options, &client, &error),
        LEAT_E_CONFIG);
    assert_non_null(strstr(error.text, "HOST:PORT"));
    rig_end(rig);
}

/* Goal: an address whose packets are lost costs its own time limit, not a request's, and the next address is tried. */
static void client_silent_address_tries_the_next(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) { /* which address comes first is random */
        struct rig *rig = rig_make(seed);
        leat_client_destroy(&rig->client);
        struct leat_client_options options = {.addresses = "10.0.0.1:1,10.0.0.2:1",
                                              .request_timeout_us = 30000000,
                                              .retry_us_min = 10000,
                                              .retry_us_max = 100000,
                                              .streams_max = 4};
        struct leat_error error;
        assert_int_equal(
            leat_client_create(&rig->world.env, &rig->world.timers, &options, &rig->client, &error),
            LEAT_OK);
        rig->world.silent = "10.0.0.1:1";
        uint64_t began = rig->world.now_us;
        assert_int_equal(ask_id(rig, 0), LEAT_OK);
        assert_true(rig->world.now_us - began < LEAT_CLIENT_CONNECT_US_MAX + 200000);
        rig_end(rig);
    }
}

/* Goal: a user of a shared client that ends takes back its own requests: a lookup and requests without payload at once,
 * a request whose payload the connection may still hold when its connection closes. No callback is called twice, and
 * the client goes on serving its other users. */
static void client_withdrawn_requests_end_once(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6);
    assert_int_equal(look_up(rig, true), LEAT_OK);
    const struct leat_client_stream *stream = leat_client_stream(rig->client, "s");
    rig->done = 0;
    rig->world.mute = true;
    struct leat_client_lookup lookup = {.name = "s", .on_done = on_lookup, .owner = rig};
    leat_client_lookup(rig->client, &lookup);
    leat_client_lookup_cancel(rig->client, &lookup);
    static const uint8_t body[] = {0x92, 0xff, 0xff};
    static const uint8_t batch[100];
    const struct leat_iov payload = {batch, sizeof batch};
    struct leat_request plain = {.kind = LEAT_KIND_PRODUCER_ID,
                                 .control = body,
                                 .control_bytes = sizeof body,
                                 .on_done = on_request,
                                 .owner = rig};
    struct leat_request held = plain;
    held.kind = LEAT_KIND_APPEND;
    held.log = stream->logs[1].ref; /* another lane than the one that answered so far */
    held.payload = &payload;
    held.payload_count = 1;
    struct leat_request queued = held;
    assert_int_equal(leat_client_send(rig->client, &plain), LEAT_OK);
    assert_true(leat_client_withdraw(rig->client, &plain));
    /* The connection to the log's owner is not open yet: nothing has left. */
    assert_int_equal(leat_client_send(rig->client, &queued), LEAT_OK);
    assert_false(queued.sent);
    assert_true(leat_client_withdraw(rig->client, &queued));
    (void)fake_run(&rig->world, rig->world.now_us + 100000, done);
    assert_int_equal(rig->done, 0);
    assert_int_equal(leat_client_send(rig->client, &held), LEAT_OK);
    assert_true(held.sent);
    assert_false(leat_client_withdraw(rig->client, &held)); /* not written yet */
    assert_int_equal(rig->done, 0);
    assert_true(fake_run(&rig->world, rig->world.now_us + 100000, done));
    assert_int_equal(rig->rc, LEAT_E_CLOSED);
    assert_int_equal(rig->done, 1);
    rig->world.mute = false;
    assert_int_equal(ask_id(rig, 0), LEAT_OK);
    rig_end(rig);
}

/* Goal: each allocation that fails ends in a clean error or is made up for, no callback is called twice, nothing leaks.
 * Method: the n-th allocation fails, n = 1, 2, ... until there is no n-th allocation. */
static void client_each_allocation_fails_cleanly(void **state)
{
    (void)state;
    uint64_t n = 1, refused = 0;
    for (bool swept = false; !swept; n++) {
        struct rig *rig = calloc(1, sizeof *rig);
        fake_init(&rig->world, n);
        rig->world.owner = rig;
        rig->world.turn_end = turn_end;
        struct leat_client_options options = {.addresses = "127.0.0.1:7700",
                                              .request_timeout_us = 200000,
                                              .retry_us_min = 1000,
                                              .retry_us_max = 10000,
                                              .streams_max = 4};
        struct leat_error error;
        leat_mem_fail_at(n);
        leat_err rc =
            leat_client_create(&rig->world.env, &rig->world.timers, &options, &rig->client, &error);
        if (rc == LEAT_OK) rc = look_up(rig, true);
        if (rc == LEAT_OK) rc = ask_id(rig, 0);
        swept = leat_mem_calls() < n;
        leat_mem_fail_at(0);
        if (rc) {
            refused++;
            assert_true(rc == LEAT_E_NO_MEMORY || rc == LEAT_E_CLOSED);
        }
        if (rig->client) { /* and then it works */
            assert_int_equal(look_up(rig, true), LEAT_OK);
            assert_int_equal(ask_id(rig, 0), LEAT_OK);
        }
        rig_end(rig);
    }
    assert_true(n > 5 && refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_lookup_learns_stream),
        cmocka_unit_test(client_unknown_stream_names_the_fix),
        cmocka_unit_test(client_mute_server_times_out),
        cmocka_unit_test(client_lookup_asks_again_when_nobody_answers),
        cmocka_unit_test(client_no_server_times_out_by_name),
        cmocka_unit_test(client_lost_connection_fails_its_requests),
        cmocka_unit_test(client_repeated_answers_are_taken_once),
        cmocka_unit_test(client_damaged_request_ends_with_its_connection),
        cmocka_unit_test(client_silent_address_tries_the_next),
        cmocka_unit_test(client_request_to_a_silent_node_ends_when_others_call_it_dead),
        cmocka_unit_test(client_doubts_a_node_that_names_a_silent_node_as_up),
        cmocka_unit_test(client_second_silence_is_asked_about_at_once),
        cmocka_unit_test(client_lookup_at_a_silent_node_is_asked_elsewhere),
        cmocka_unit_test(client_leaves_a_node_that_names_itself_as_down),
        cmocka_unit_test(client_request_for_any_node_waits_at_a_silent_one_if_all_are),
        cmocka_unit_test(client_requests_to_an_incarnation_of_old_leave_no_connections),
        cmocka_unit_test(client_metadata_of_an_older_epoch_is_not_taken),
        cmocka_unit_test(client_silence_of_the_only_server_costs_nothing),
        cmocka_unit_test(client_destroy_cancels_what_waits),
        cmocka_unit_test(client_request_that_the_server_gives_up_is_not_cancelled),
        cmocka_unit_test(client_bad_address_is_refused),
        cmocka_unit_test(client_withdrawn_requests_end_once),
        cmocka_unit_test(client_each_allocation_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
