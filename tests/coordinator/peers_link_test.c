/* SPDX-License-Identifier: Apache-2.0 */
/* Links to other coordinators: which links exist, what is made and freed with a link, and which part takes which
 * request. */
#include "coordinator/membership/peers.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/peers_rig.h"

/* ---- requests ---- */

static void each_kind_goes_to_who_takes_it(void **state)
{
    (void)state;
    static const struct {
        uint16_t kind;
        const char *taken;
    } rows[] = {{CO_KIND_RAFT, "raft of 2 frame\n"},
                {CO_KIND_INSTALL, "install of 2 frame ticket\n"},
                {CO_KIND_FORM, "form frame ticket\n"},
                {CO_KIND_ENTRIES, "entries of 2 frame ticket\n"},
                {CO_KIND_SNAPSHOT, "snapshot of 2 frame ticket\n"},
                {CO_KIND_JOIN, "join frame ticket\n"},
                {CO_KIND_PING, "ping of 2 frame\n"},
                {CO_KIND_PONG, "pong of 2 frame\n"},
                {CO_KIND_RECOVERY, "report of 2 frame\n"},
                {CO_KIND_LOST, "lost of 2 frame\n"},
                {CO_KIND_COLLECT, "collect frame ticket\n"},
                {CO_KIND_PULL, "pull frame ticket\n"}};
    char all[256];
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        comes(2, rows[i].kind, 0);
        TRACE_IS(rows[i].taken);
    }
    for (uint16_t kind = 271; kind <= 288; kind += 17) {
        comes(2, kind, 0);
        snprintf(all, sizeof all, "answer %s: coordinators have no request of that kind\n",
                 leat_err_text(LEAT_E_UNSUPPORTED));
        TRACE_IS(all);
    }
    may = false;
    for (uint16_t kind = 271; kind <= 288; kind++) {
        comes(2, kind, 0);
        snprintf(all, sizeof all, "%sanswer %s: it may not\n",
                 kind == CO_KIND_RECOVERY ? "" : "complaint of 2\n  it may not\n",
                 leat_err_text(LEAT_E_DENIED));
        TRACE_IS(all);
    }
}

static void submits(const char *before, leat_err rc)
{
    static const uint8_t payload[9];
    frame = (struct leat_frame){
        .kind = CO_KIND_SUBMIT, .payload = payload, .payload_bytes = sizeof payload};
    coordinator->handler.on_request(coordinator, &links_of_test[1], &frame, &ticket);
    char all[512];
    snprintf(all, sizeof all, rc == LEAT_OK ? "%sanswer 90\n" : "%sanswer %s: %s\n", before,
             leat_err_text(rc), leat_err_text(rc));
    TRACE_IS(all);
}

static void records_are_submitted_to_a_leader_with_room(void **state)
{
    (void)state;
#define COMPLAINT "complaint of 1\n  it asks for what it may not, or for nothing that is known\n"
    submits("", LEAT_E_NOT_LEADER);
    coordinator->drive.log.full = true;
    submits("", LEAT_E_NOT_LEADER);
    coordinator->drive.log.full = false;
    coordinator->failed = LEAT_E_DISK;
    submits("", LEAT_E_DISK);
    coordinator->failed = LEAT_OK;
    leads = true;
    submits("submit of 1\n", LEAT_OK);
    coordinator->drive.log.full = true;
    submits("", LEAT_E_DISK_FULL);
    coordinator->drive.log.full = false;
    static const leat_err refused[] = {LEAT_E_AGAIN, LEAT_E_NO_MEMORY};
    for (unsigned i = 0; i < 2; i++) {
        submit_rc = refused[i];
        submits("submit of 1\n", submit_rc);
    }
    submit_rc = LEAT_E_DENIED;
    submits("submit of 1\n" COMPLAINT, LEAT_E_DENIED);
    submit_rc = LEAT_E_INVALID;
    submits("submit of 1\n" COMPLAINT, LEAT_E_INVALID);
    coordinator->failed = LEAT_E_DISK;
    submits("", LEAT_E_DISK);
    coordinator->failed = LEAT_OK;
    submit_rc = LEAT_OK;
    coordinator->votes = false;
    submits("", LEAT_E_NOT_LEADER);
}

static uint32_t array_of(uint32_t count, struct leat_msg_writer *writer)
{
    leat_msg_writer_init(writer, bytes, sizeof bytes);
    leat_msg_write_array(writer, count);
    return writer->used;
}

static void who_votes_feeds(void **state)
{
    (void)state;
    struct leat_msg_writer writer;
    char no[256];
    snprintf(no, sizeof no, "answer %s: this node does not vote, or not yet\n",
             leat_err_text(LEAT_E_STARTING));
    array_of(1, &writer);
    leat_msg_write_u64(&writer, 31);
    comes(3, CO_KIND_FEED, writer.used);
    TRACE_IS(no);
    coordinator->machine.formed = true;
    comes(3, CO_KIND_FEED, writer.used);
    TRACE_IS("answer 90\nfeed of 3\n  from 31\n");
    comes(3, CO_KIND_FEED, 1);
    TRACE_IS(no);
    coordinator->votes = false;
    comes(3, CO_KIND_FEED, writer.used);
    TRACE_IS(no);
}

static void people_ask_for_other_voters(void **state)
{
    (void)state;
    struct leat_msg_writer writer;
    char no[256], long_name[LEAT_NODE_NAME_BYTES_MAX + 2], all[512];
    snprintf(no, sizeof no, "answer %s: a malformed request\n", leat_err_text(LEAT_E_INVALID));
    memset(long_name, 'w', sizeof long_name);
    for (unsigned replace = 0; replace < 2; replace++)
        for (size_t count = 0; count <= sizeof long_name; count++) {
            if (count > 3 && count < LEAT_NODE_NAME_BYTES_MAX) continue;
            array_of(2, &writer);
            leat_msg_write_bool(&writer, replace);
            leat_msg_write_string(&writer, long_name, count);
            comes(3, CO_KIND_ADMIN, writer.used);
            snprintf(all, sizeof all, "change ticket\n  %u '%.*s' %u\n", replace, (int)count,
                     long_name, (unsigned)count);
            TRACE_IS(count == 0 || count > LEAT_NODE_NAME_BYTES_MAX ? no : all);
            comes(3, CO_KIND_ADMIN, writer.used - 1);
            TRACE_IS(no);
        }
}

/* ---- links come and go ---- */

static struct leat_link *stranger(void)
{
    struct leat_link *link = &links_of_test[9];
    *link = (struct leat_link){.number = 9, .up = true, .accepted = true};
    return link;
}
#define TOLD(link) "tell " #link " " STATE_OF_SELF

static void who_connects_becomes_a_peer(void **state)
{
    (void)state;
    const struct leat_link_handler *handler = &coordinator->handler;
    struct leat_link *link = stranger();
    handler->on_up(coordinator, link);
    TRACE_IS(TOLD(9));
    struct co_peer *made = link->user;
    assert_non_null(made);
    assert_true(made->link == link && made->coordinator == coordinator && !made->wanted);
    assert_ptr_equal(coordinator->peers.prev, &made->list);
    assert_int_equal(coordinator->peer_count, PEERS + 1);
    snprintf(made->why, sizeof made->why, "what was");
    made->refused = true;
    handler->on_up(coordinator, link); /* again: the same one */
    TRACE_IS(TOLD(9));
    assert_ptr_equal(link->user, made);
    assert_int_equal(coordinator->peer_count, PEERS + 1);
    assert_true(made->why[0] == 0 && !made->refused);
    snprintf(made->state.node, sizeof made->state.node, "n9");
    struct leat_error error = {.code = LEAT_E_CLOSED};
    handler->on_down(coordinator, link, true, &error);
    TRACE_IS("down n9\nno feed of n9\nno install of n9\n");
    assert_int_equal(coordinator->peer_count, PEERS);
    assert_ptr_equal(coordinator->peers.prev, &peer(3)->list);
}

static void who_has_no_place_is_closed(void **state)
{
    (void)state;
    struct leat_link *link = stranger();
    struct leat_error error = {.code = LEAT_E_CLOSED};
    coordinator->peer_count = CO_PEERS_MAX;
    coordinator->handler.on_up(coordinator, link);
    TRACE_IS("close 9\n");
    assert_null(link->user);
    coordinator->peer_count = CO_PEERS_MAX - 1;
    leat_mem_fail_at(1);
    coordinator->handler.on_up(coordinator, link);
    leat_mem_fail_at(0);
    TRACE_IS("close 9\n");
    coordinator->handler.on_down(coordinator, link, true, &error); /* nobody's */
    coordinator->handler.on_down(coordinator, link, false, &error);
    TRACE_IS("");
    coordinator->handler.on_up(coordinator, link);
    TRACE_IS(TOLD(9));
    assert_int_equal(coordinator->peer_count, CO_PEERS_MAX);
}

static void a_link_that_was_opened_keeps_its_peer(void **state)
{
    (void)state;
    struct leat_error error = {.code = LEAT_E_CLOSED, .text = "it is gone"};
    struct co_peer *it = peer(1);
    it->lost = (struct co_lost){1, 2, 3, 4, 5};
    coordinator->handler.on_down(coordinator, it->link, true, &error);
    TRACE_IS("down n1\nno feed of n1\nno install of n1\n");
    static const struct co_state nothing;
    static const struct co_lost not_lost;
    assert_memory_equal(&it->state, &nothing, sizeof nothing);
    assert_memory_equal(&it->lost, &not_lost, sizeof not_lost);
    assert_true(it->wanted && it->link == &links_of_test[1] && it->why[0] == 0);
    assert_int_equal(coordinator->peer_count, PEERS);
}

static void requests_are_sent_again_when_the_leader_goes(void **state)
{
    (void)state;
    struct leat_error error = {.code = LEAT_E_CLOSED};
    peer(1)->state.role = LEAT_VOTER_LEADER;
    peer(2)->state.role = LEAT_VOTER_LEADER;
    coordinator->handler.on_down(coordinator, peer(1)->link, true, &error);
    TRACE_IS("down n1\nno feed of n1\nno install of n1\nrequests again\n");
    leads = true;
    coordinator->handler.on_down(coordinator, peer(2)->link, true, &error);
    TRACE_IS("down n2\nno feed of n2\nno install of n2\n");
}

static void why_nobody_was_met(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        bool refused;
    } rows[] = {{LEAT_E_WRONG_CLUSTER, true},
                {LEAT_E_CLOSED, false},
                {LEAT_E_UNSUPPORTED, true},
                {LEAT_E_TIMEOUT, false},
                {LEAT_E_CORRUPT, true}};
    struct co_peer *it = peer(2);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct leat_error error;
        (void)leat_error_set(&error, rows[i].rc, "because %u", i);
        coordinator->handler.on_down(coordinator, it->link, false, &error);
        assert_int_equal(it->refused, rows[i].refused);
        assert_string_equal(it->why, error.text);
        assert_string_equal(it->state.node, "n2");
    }
    coordinator->handler.on_up(coordinator, it->link);
    TRACE_IS(TOLD(2));
    assert_true(it->why[0] == 0 && !it->refused);
}

/* ---- which links there are ---- */

static void an_address_is_wanted_once(void **state)
{
    (void)state;
    co_address_want(coordinator, "h2:1");
    co_address_want(coordinator, "own:1");
    co_address_want(coordinator, "alone");
    co_address_want(coordinator, "");
    TRACE_IS("");
    peer(2)->wanted = false; /* it came by itself: that link is not ours */
    co_address_want(coordinator, "h2:1");
    TRACE_IS("open h2:1\n");
    struct co_peer *made = peer(4);
    assert_true(made->wanted && made->link == &links_of_test[4] && !made->state.known);
    assert_int_equal(coordinator->peer_count, PEERS + 1);
    co_address_want(coordinator, "h2:1");
    TRACE_IS("");
    co_address_want(coordinator, "h9:1");
    TRACE_IS("open h9:1\n");
    open_rc = LEAT_E_TOO_MANY;
    co_address_want(coordinator, "h10:1");
    TRACE_IS("open h10:1\nnode log 1: coordinator: no link\nno feed of \nno install of \n");
    assert_int_equal(coordinator->peer_count, PEERS + 2);
    leat_mem_fail_at(1);
    co_address_want(coordinator, "h10:1");
    leat_mem_fail_at(0);
    coordinator->peer_count = CO_PEERS_MAX;
    co_address_want(coordinator, "h10:1");
    TRACE_IS("");
}

static void all_voters_are_wanted(void **state)
{
    (void)state;
    static const char *const listed[] = {"l1:1", "l2:1", "own:1"};
    static struct raft_server servers[] = {{.id = 1, .address = (char *)(uintptr_t) "c1:1 name"},
                                           {.id = 2, .address = (char *)(uintptr_t) "l1:1"},
                                           {.id = 3, .address = (char *)(uintptr_t) "c3:1"}};
    coordinator->options.voters = listed;
    coordinator->options.voter_count = 3;
    coordinator->machine.voter_count = 2;
    snprintf(coordinator->machine.voters[0].address, 8, "m1:1");
    snprintf(coordinator->machine.voters[1].address, 8, "m2:1");
    snprintf(coordinator->machine.voters[2].address, 8, "m3:1"); /* is none any more */
    coordinator->drive.raft.configuration.servers = servers;
    coordinator->drive.raft.configuration.n = 3;
    coordinator->links = NULL;
    co_peers_want(coordinator);
    TRACE_IS("");
    coordinator->links = &all_links;
    coordinator->votes = false;
    co_peers_want(coordinator);
    TRACE_IS("open l1:1\nopen l2:1\nopen m1:1\nopen m2:1\n");
    coordinator->votes = true;
    co_peers_want(coordinator);
    TRACE_IS("open c1:1\nopen c3:1\n");
    co_peers_want(coordinator);
    TRACE_IS("");
}

static void who_is_said_to_be_up_is_tried_at_once(void **state)
{
    (void)state;
    struct leat_node_info node = {.node_address = "h2:1", .state = LEAT_NODE_UP};
    struct leat_link *other = &links_of_test[3];
    co_peer_retry(coordinator, &node);
    TRACE_IS("retry 2\n");
    snprintf(other->address, sizeof other->address, "h2:1");
    peer(3)->wanted = false;
    co_peer_retry(coordinator, &node);
    TRACE_IS("retry 2\n");
    peer(3)->wanted = true;
    co_peer_retry(coordinator, &node);
    TRACE_IS("retry 2\nretry 3\n");
    node.crashed = true;
    co_peer_retry(coordinator, &node);
    node.crashed = false;
    node.state = LEAT_NODE_DOWN;
    co_peer_retry(coordinator, &node);
    node.state = LEAT_NODE_GONE;
    co_peer_retry(coordinator, &node);
    TRACE_IS("");
}

/* ---- begin and end ---- */

static void it_listens_for_coordinators(void **state)
{
    (void)state;
    struct leat_error error;
    struct leat_coordinator_options *options = &coordinator->options;
    options->hub = (struct leat_link_hub *)(void *)&frame;
    options->key = (const struct leat_key *)(const void *)&ticket;
    options->strangers_max = 19;
    options->cores = 6;
    options->cluster_id[15] = 0xc9;
    coordinator->links = NULL;
    assert_int_equal(co_peers_init(coordinator, &error), LEAT_OK);
    TRACE_IS("listen own:1\n");
    assert_ptr_equal(coordinator->links, &all_links);
    assert_ptr_equal(coordinator->handler.owner, coordinator);
    assert_true(created.env == &env && created.timers == &coordinator->timers);
    assert_true(created.hub == options->hub && created.key == options->key);
    assert_int_equal(created.strangers_max, 19);
    assert_int_equal(created.identity.cluster_id[15], 0xc9);
    assert_string_equal(created.identity.node, "own");
    assert_int_equal(created.identity.cores, 6);
    assert_int_equal(created.identity.incarnation, 0);
    for (unsigned i = 0; i < LEAT_LINK_PURPOSES; i++) {
        const struct leat_link_service *service = &created.services[i];
        bool here = i == LEAT_LINK_COORDINATE;
        assert_ptr_equal(service->handler, here ? &coordinator->handler : NULL);
        assert_int_equal(service->strangers, here);
    }
    options->listen_address = "any:1";
    listen_rc = LEAT_E_EXISTS;
    assert_int_equal(co_peers_init(coordinator, &error), LEAT_E_EXISTS);
    TRACE_IS("listen any:1\n");
    create_rc = LEAT_E_NO_MEMORY;
    assert_int_equal(co_peers_init(coordinator, &error), LEAT_E_NO_MEMORY);
    TRACE_IS("");
}

static void all_peers_go_at_the_end(void **state)
{
    (void)state;
    co_peers_fini(coordinator);
    TRACE_IS("links end\nno feed of n0\nno install of n0\nno feed of n1\nno install of n1\n"
             "no feed of n2\nno install of n2\nno feed of n3\nno install of n3\n");
    assert_null(coordinator->links);
    assert_int_equal(coordinator->peer_count, 0);
    assert_true(leat_list_empty(&coordinator->peers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HANDLED_TEST(each_kind_goes_to_who_takes_it),
        HANDLED_TEST(records_are_submitted_to_a_leader_with_room),
        HANDLED_TEST(who_votes_feeds),
        HANDLED_TEST(people_ask_for_other_voters),
        HANDLED_TEST(who_connects_becomes_a_peer),
        HANDLED_TEST(who_has_no_place_is_closed),
        HANDLED_TEST(a_link_that_was_opened_keeps_its_peer),
        HANDLED_TEST(requests_are_sent_again_when_the_leader_goes),
        HANDLED_TEST(why_nobody_was_met),
        HANDLED_TEST(an_address_is_wanted_once),
        HANDLED_TEST(all_voters_are_wanted),
        HANDLED_TEST(who_is_said_to_be_up_is_tried_at_once),
        PEERS_TEST(it_listens_for_coordinators),
        PEERS_TEST(all_peers_go_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
