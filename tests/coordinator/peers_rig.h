/* SPDX-License-Identifier: Apache-2.0 */
/* The other coordinators, as a coordinator hears of them: this file plays links, raft and the actors that take
 * requests, and writes each request to the trace. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_PEERS_RIG_H
#define LEAT_TESTS_COORDINATOR_PEERS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "coordinator/recovery/attempt.h"
#include "tests/trace.h"

enum { PEERS = 4, LINKS = 16, SELF = 10, TERM = 5 };

/* ---- links ---- */

struct leat_link {
    unsigned number;
    bool up, accepted;
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
    struct leat_link_identity peer;
    void *user;
};
struct leat_links {
    struct leat_link_identity identity;
};
static struct leat_coordinator *coordinator;
static struct leat_link links_of_test[LINKS];
static unsigned link_count; /* that there are */
static struct leat_links all_links;
static leat_err open_rc, tell_rc, create_rc, listen_rc;
static struct leat_links_options created;

bool leat_link_is_up(const struct leat_link *link)
{
    return link->up;
}
bool leat_link_accepted(const struct leat_link *link)
{
    return link->accepted;
}
const char *leat_link_address(const struct leat_link *link)
{
    return link->address;
}
const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    return &link->peer;
}
void *leat_link_user(const struct leat_link *link)
{
    return link->user;
}
void leat_link_user_set(struct leat_link *link, void *user)
{
    link->user = user;
}
struct leat_links *leat_link_links(const struct leat_link *link)
{
    (void)link;
    return &all_links;
}
const struct leat_link_identity *leat_links_identity(const struct leat_links *links)
{
    assert_ptr_equal(links, &all_links);
    return &links->identity;
}
void leat_links_identity_set(struct leat_links *links, const struct leat_link_identity *identity)
{
    assert_ptr_equal(links, &all_links);
    links->identity = *identity;
    trace("identity %s of %02x, %u, %u cores\n", identity->node, identity->cluster_id[15],
          (unsigned)identity->incarnation, identity->cores);
}
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    trace("cut %u: %s (%s)\n", link->number, why, leat_err_text(rc));
}
void leat_link_close(struct leat_link **link)
{
    trace("close %u\n", (*link)->number);
    *link = NULL;
}
void leat_link_retry(struct leat_link *link)
{
    trace("retry %u\n", link->number);
}
leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error)
{
    assert_ptr_equal(links, &all_links);
    assert_int_equal(options->to_actor, LEAT_ACTOR_COORDINATOR);
    assert_int_equal(options->purpose, LEAT_LINK_COORDINATE);
    assert_ptr_equal(options->handler, &coordinator->handler);
    assert_true(options->stranger && !options->expect_node && !options->expect_incarnation);
    trace("open %s\n", options->address);
    if (open_rc != LEAT_OK) return leat_error_set(error, open_rc, "no link");
    struct leat_link *link = &links_of_test[link_count];
    *link = (struct leat_link){.number = link_count++};
    snprintf(link->address, sizeof link->address, "%s", options->address);
    *out_link = link;
    return LEAT_OK;
}
static inline void say_state(const void *control, uint32_t bytes)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, control, bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    struct leat_msg_string id = leat_msg_read_string(&reader), node = leat_msg_read_string(&reader);
    assert_int_equal(id.bytes, 16);
    trace("%u [%02x%02x %.*s", fields, (uint8_t)id.text[0], (uint8_t)id.text[15], (int)node.bytes,
          node.text);
    for (unsigned i = 0; i < 6; i++)
        trace(" %u", (unsigned)leat_msg_read_u64(&reader));
    struct leat_msg_string address = leat_msg_read_string(&reader);
    trace(" %.*s", (int)address.bytes, address.text);
    for (uint32_t left = leat_msg_read_array(&reader); left > 0; left--) {
        struct leat_msg_string name = leat_msg_read_string(&reader);
        trace(" %.*s", (int)name.bytes, name.text);
    }
    trace("]");
    assert_true(leat_msg_read_done(&reader));
}
leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control, uint32_t bytes)
{
    assert_int_equal(kind, CO_KIND_STATE);
    trace("tell %u ", link->number);
    say_state(control, bytes);
    trace("\n");
    return tell_rc;
}
void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t bytes)
{
    assert_ptr_equal(links, &all_links);
    assert_int_equal(ticket->request, 5);
    trace("answer");
    for (uint32_t i = 0; i < bytes; i++)
        trace(" %02x", ((const uint8_t *)control)[i]);
    trace("\n");
}
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    assert_ptr_equal(links, &all_links);
    assert_int_equal(ticket->request, 5);
    trace("answer %s: %s\n", leat_err_text(rc), text);
}
leat_err leat_links_create(const struct leat_links_options *options, struct leat_links **out_links,
                           struct leat_error *error)
{
    created = *options;
    if (create_rc != LEAT_OK) return leat_error_set(error, create_rc, "no links");
    *out_links = &all_links;
    return LEAT_OK;
}
void leat_links_destroy(struct leat_links **links)
{
    trace("links end\n");
    *links = NULL;
}
void *leat_link_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler)
{
    (void)acceptor;
    (void)conn;
    (void)out_handler;
    return NULL;
}

/* ---- raft, and who votes ---- */

static enum raft_state raft_is;
static raft_id raft_leads;
static raft_term raft_term_now;
static bool leads, learns, votes[LINKS]; /* by link */
static uint64_t configuration;
static leat_err save_rc, submit_rc;
static bool may;

enum raft_state raft_state(struct raft *r)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    return raft_is;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    *id = raft_leads;
    *address = NULL;
}
raft_term raft_current_term(const struct raft *r)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    return raft_term_now;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
bool co_learns(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return learns;
}
bool co_peer_votes(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    return votes[peer->link->number];
}
uint64_t co_configuration_index(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return configuration;
}
leat_err co_voter_save(struct leat_coordinator *asked, const uint8_t cluster_id[16])
{
    assert_ptr_equal(asked, coordinator);
    trace("save %02x\n", cluster_id[15]);
    return save_rc;
}
void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->address, sizeof out->address, "%.*s", (int)strcspn(text, " "), text);
}
const char *co_own_name(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return "own";
}
uint32_t co_introductions(const struct leat_coordinator *asked,
                          struct leat_machine_voter out_voters[LEAT_VOTERS_MAX])
{
    assert_ptr_equal(asked, coordinator);
    snprintf(out_voters[0].name, sizeof out_voters[0].name, "v1");
    snprintf(out_voters[1].name, sizeof out_voters[1].name, "v2");
    return 2;
}

/* ---- who takes what comes ---- */

static struct leat_frame frame;
static const struct leat_link_ticket ticket = {.request = 5};

static inline void took(const char *what, struct leat_coordinator *asked, const void *peer,
                        const struct leat_frame *given, const struct leat_link_ticket *with)
{
    assert_ptr_equal(asked, coordinator);
    assert_true(!given || given == &frame);
    assert_true(!with || with == &ticket);
    const struct co_peer *from = peer;
    trace("%s", what);
    if (from) trace(" of %u", from->link->number);
    trace("%s%s\n", given ? " frame" : "", with ? " ticket" : "");
}
#define TAKES(name, what)                                                                          \
    void name(struct leat_coordinator *asked, struct co_peer *peer,                                \
              const struct leat_frame *given)                                                      \
    {                                                                                              \
        took(what, asked, peer, given, NULL);                                                      \
    }
#define TAKES_AND_ANSWERS(name, what)                                                              \
    void name(struct leat_coordinator *asked, struct co_peer *peer,                                \
              const struct leat_frame *given, const struct leat_link_ticket *with)                 \
    {                                                                                              \
        took(what, asked, peer, given, with);                                                      \
    }
#define ANSWERS(name, what)                                                                        \
    void name(struct leat_coordinator *asked, const struct leat_frame *given,                      \
              const struct leat_link_ticket *with)                                                 \
    {                                                                                              \
        took(what, asked, NULL, given, with);                                                      \
    }
#define IS_TOLD(name, what)                                                                        \
    void name(struct leat_coordinator *asked)                                                      \
    {                                                                                              \
        took(what, asked, NULL, NULL, NULL);                                                       \
    }
TAKES(co_raft_take, "raft")
TAKES(co_ping_take, "ping")
TAKES(co_pong_take, "pong")
TAKES(co_report_take, "report")
TAKES(co_lost_take, "lost")
TAKES_AND_ANSWERS(co_install_take, "install")
TAKES_AND_ANSWERS(co_feed_entries, "entries")
TAKES_AND_ANSWERS(co_feed_snapshot, "snapshot")
ANSWERS(co_form_take, "form")
ANSWERS(co_join_take, "join")
ANSWERS(co_collect_take, "collect")
ANSWERS(co_pull_take, "pull")
IS_TOLD(co_form_advance, "forming goes on")
IS_TOLD(co_requests_again, "requests again")

void co_introductions_take(struct leat_coordinator *asked, const struct co_peer *peer,
                           uint32_t count, struct leat_msg_reader *names)
{
    took("introduced", asked, peer, NULL, NULL);
    assert_int_equal(count, 1);
    assert_int_equal(leat_msg_read_string(names).bytes, 2);
}
void co_complain(struct leat_coordinator *asked, const struct co_peer *peer, const char *what)
{
    took("complaint", asked, peer, NULL, NULL);
    trace("  %s\n", what);
}
leat_err co_records_submit(struct leat_coordinator *asked, const struct co_peer *peer,
                           const uint8_t *bytes, size_t count)
{
    took("submit", asked, peer, NULL, NULL);
    assert_ptr_equal(bytes, frame.payload);
    assert_int_equal(count, frame.payload_bytes);
    return submit_rc;
}
void co_feed_wanted(struct leat_coordinator *asked, struct co_peer *peer, uint64_t from)
{
    took("feed", asked, peer, NULL, NULL);
    trace("  from %u\n", (unsigned)from);
}
void co_change_begin(struct leat_coordinator *asked, bool replace, const char *node,
                     struct leat_coordinate *request, const struct leat_link_ticket *with)
{
    assert_null(request);
    took("change", asked, NULL, NULL, with);
    trace("  %d '%s' %u\n", replace, node, (unsigned)strlen(node));
}
bool co_peer_may(const struct leat_coordinator *asked, const struct co_peer *peer, unsigned kind,
                 const char **out_why)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(peer->coordinator, coordinator);
    assert_int_equal(kind, frame.kind);
    if (!may) *out_why = "it may not";
    return may;
}
void co_feed_peer_gone(struct leat_coordinator *asked, struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    trace("no feed of %s\n", peer->state.node);
}
void co_install_peer_gone(struct leat_coordinator *asked, struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    trace("no install of %s\n", peer->state.node);
}
void co_detect_peer_down(struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    trace("down %s\n", peer->state.node);
}
static leat_err net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                           char out_address[128], struct leat_error *error)
{
    assert_ptr_equal(ctx, &listen_rc);
    assert_ptr_equal(on_accept, leat_link_accept);
    assert_ptr_equal(acceptor, &all_links);
    trace("listen %s\n", address);
    if (listen_rc != LEAT_OK) return leat_error_set(error, listen_rc, "taken");
    snprintf(out_address, 128, "bound");
    return LEAT_OK;
}
static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d: %s\n", (int)level, line);
}

/* ---- this node, voter 1 of cluster ..c1; links 0 to 3 are opened to voters 2 to 5, all up ---- */

static struct leat_net net = {.ctx = &listen_rc, .listen = net_listen};
static struct leat_env env = {.net = &net};

static inline struct co_peer *peer(unsigned i)
{
    return links_of_test[i].user;
}
static inline void peer_add(unsigned i)
{
    struct co_peer *made = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *made);
    assert_non_null(made);
    struct leat_link *link = &links_of_test[i];
    *link = (struct leat_link){.number = i, .up = true, .user = made};
    snprintf(link->address, sizeof link->address, "h%u:1", i);
    snprintf(link->peer.node, sizeof link->peer.node, "n%u", i);
    votes[i] = true;
    *made = (struct co_peer){.coordinator = coordinator, .link = link, .wanted = true};
    made->state = (struct co_state){.known = true,
                                    .incarnation = 20 + i,
                                    .role = LEAT_VOTER_FOLLOWER,
                                    .voter_id = 2 + i,
                                    .term = 3,
                                    .cluster_id = {[15] = 0xc1}};
    snprintf(made->state.node, sizeof made->state.node, "n%u", i);
    snprintf(made->state.address, sizeof made->state.address, "a%u:1", i);
    leat_list_push_back(&coordinator->peers, &made->list);
    coordinator->peer_count++;
}
static inline int begin(void **state)
{
    (void)state;
    trace_begin();
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    coordinator->env = &env;
    leat_list_init(&coordinator->peers);
    leat_machine_init(&coordinator->machine, 1);
    coordinator->options.node_address = "own:1";
    coordinator->links = &all_links;
    coordinator->peer_events = &co_serve_events;
    coordinator->on_recovery = co_recovery_take;
    coordinator->votes = true;
    coordinator->incarnation = SELF;
    coordinator->voter_id = 1;
    coordinator->applied = 42;
    coordinator->cluster_id[15] = 0xc1;
    all_links.identity = (struct leat_link_identity){
        .cluster_id = {[0] = 0xc0, [15] = 0xc1}, .node = "own", .cores = 3};
    memset(votes, 0, sizeof votes);
    for (unsigned i = 0; i < PEERS; i++)
        peer_add(i);
    link_count = PEERS;
    open_rc = tell_rc = create_rc = listen_rc = save_rc = submit_rc = LEAT_OK;
    raft_is = RAFT_FOLLOWER;
    raft_leads = 3;
    raft_term_now = TERM;
    configuration = 9;
    leads = learns = false;
    may = true;
    leat_node_log_set(on_node_log, NULL, LEAT_NODE_LOG_INFO);
    return 0;
}
static inline int finish(void **state)
{
    (void)state;
    TRACE_IS("");
    while (!leat_list_empty(&coordinator->peers)) {
        struct co_peer *gone = LEAT_CONTAINER(coordinator->peers.next, struct co_peer, list);
        leat_list_remove(&gone->list);
        leat_mem_free(gone);
    }
    leat_machine_fini(&coordinator->machine);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}
static uint8_t bytes[2048];

static inline void comes(unsigned from, uint16_t kind, uint32_t count)
{
    frame = (struct leat_frame){.kind = kind, .control = bytes, .control_bytes = count};
    coordinator->handler.on_request(coordinator, &links_of_test[from], &frame, &ticket);
}
/* With its own handler, as links have it. */
static inline int handled(void **state)
{
    if (begin(state) != 0) return -1;
    struct leat_error error;
    assert_int_equal(co_peers_init(coordinator, &error), LEAT_OK);
    trace_begin();
    return 0;
}
#define HANDLED_TEST(name) cmocka_unit_test_setup_teardown(name, handled, finish)

#define STATE_OF_SELF "10 [c0c1 own 10 3 1 5 3 42 own:1 v1 v2]\n"
#define TOLD_ALL                                                                                   \
    "tell 0 " STATE_OF_SELF "tell 1 " STATE_OF_SELF "tell 2 " STATE_OF_SELF "tell "                \
    "3 " STATE_OF_SELF
#define PEERS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
