/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of other coordinators: the check of their rights, and the part that answers. */
#include <string.h>

#include "coordinator/membership/detect.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"

static void submit_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                        const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    leat_err rc = coordinator->failed;
    if (rc == LEAT_OK && !co_leads(coordinator)) rc = LEAT_E_NOT_LEADER;
    if (rc == LEAT_OK && coordinator->drive.log.full) rc = LEAT_E_DISK_FULL;
    if (rc == LEAT_OK)
        rc = co_records_submit(coordinator, peer, frame->payload, frame->payload_bytes);
    if (rc == LEAT_E_DENIED || rc == LEAT_E_INVALID)
        co_complain(coordinator, peer, "it asks for what it may not, or for nothing that is known");
    if (rc == LEAT_OK)
        leat_link_answer(coordinator->links, ticket, "\x90", 1);
    else
        leat_link_answer_error(coordinator->links, ticket, rc, leat_err_text(rc));
}

static void feed_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct co_feed_said said;
    leat_err rc = co_feed_said_decode(frame->control, frame->control_bytes, &said);
    if (rc != LEAT_OK || !coordinator->votes || !coordinator->machine.formed) {
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_STARTING,
                               "this node does not vote, or not yet");
        return;
    }
    leat_link_answer(coordinator->links, ticket, "\x90", 1);
    co_feed_wanted(coordinator, peer, said.from);
}

static void admin_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    struct co_admin_said said;
    char name[LEAT_NODE_NAME_BYTES_MAX + 1] = "";
    leat_err rc = co_admin_said_decode(frame->control, frame->control_bytes, &said);
    if (rc != LEAT_OK || said.node.bytes == 0 || said.node.bytes >= sizeof name) {
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_INVALID, "a malformed request");
        return;
    }
    memcpy(name, said.node.text, said.node.bytes);
    co_change_begin(coordinator, said.replace, name, NULL, ticket);
}

static void serve(void *owner, struct leat_link *link, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket)
{
    struct leat_coordinator *coordinator = owner;
    struct co_peer *peer = leat_link_user(link);
    const char *why = "";
    if (!co_peer_may(coordinator, peer, frame->kind, &why)) {
        /* A leader's report may come before the message that it leads: dropping the report does no harm. */
        if (frame->kind != CO_KIND_RECOVERY) co_complain(coordinator, peer, why);
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_DENIED, why);
        return;
    }
    switch (frame->kind) {
    case CO_KIND_STATE:
        co_state_take(coordinator, peer, frame);
        break;
    case CO_KIND_RAFT:
        co_raft_take(coordinator, peer, frame);
        break;
    case CO_KIND_INSTALL:
        co_install_take(coordinator, peer, frame, ticket);
        break;
    case CO_KIND_FORM:
        co_form_take(coordinator, frame, ticket);
        break;
    case CO_KIND_SUBMIT:
        submit_take(coordinator, peer, frame, ticket);
        break;
    case CO_KIND_FEED:
        feed_take(coordinator, peer, frame, ticket);
        break;
    case CO_KIND_ENTRIES:
        co_feed_entries(coordinator, peer, frame, ticket);
        break;
    case CO_KIND_SNAPSHOT:
        co_feed_snapshot(coordinator, peer, frame, ticket);
        break;
    case CO_KIND_JOIN:
        co_join_take(coordinator, frame, ticket);
        break;
    case CO_KIND_ADMIN:
        admin_take(coordinator, frame, ticket);
        break;
    case CO_KIND_PING:
        co_ping_take(coordinator, peer, frame);
        break;
    case CO_KIND_PONG:
        co_pong_take(coordinator, peer, frame);
        break;
    case CO_KIND_LOST:
        co_lost_take(coordinator, peer, frame);
        break;
    case CO_KIND_COLLECT:
    case CO_KIND_PULL:
    case CO_KIND_RECOVERY:
        coordinator->on_recovery(coordinator, peer, frame, ticket);
        break;
    default:
        leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED,
                               "coordinators have no request of that kind");
    }
}

static void on_reset(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    co_feed_peer_gone(coordinator, peer);
    co_install_peer_gone(coordinator, peer);
}

const struct co_peer_events co_serve_events = {.on_request = serve,
                                               .on_state = co_form_advance,
                                               .on_down = co_detect_peer_down,
                                               .on_reset = on_reset};
