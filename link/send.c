/* SPDX-License-Identifier: Apache-2.0 */
/* Frames out: calls, answers. */
#include <string.h>

#include "base/assert.h"
#include "link/internal.h"
#include "wire/message.h"

/* ---- frames ---- */

static void call_done(struct leat_link *link, struct leat_link_call *call, leat_err rc,
                      const struct leat_frame *answer, const struct leat_error *error)
{
    leat_list_remove(&call->list);
    link->call_count--;
    call->link = NULL;
    call->on_done(call, rc, answer, error);
}

static void call_sent(struct leat_link *link, struct leat_link_call *call)
{
    call->sent = true;
    if (call->early) {
        call->early = false;
        if (link->state == LINK_UP) link->links->env->net->resume(link->net);
    }
    if (!call->one_way) return;
    struct leat_error error = {.code = LEAT_OK};
    call_done(link, call, LEAT_OK, NULL, &error);
}

static void slot_on_sent(struct leat_send *send, leat_err rc)
{
    struct leat_link_slot *slot = send->owner;
    struct leat_link *link = slot->link;
    struct leat_link_call *call = slot->call;
    struct leat_link_answer *answer = slot->answer;
    bool close_after = slot->close_after;
    link->queued_bytes -= slot->bytes_in_all;
    link->slots_out--;
    leat_link_slot_give(link->links, slot);
    leat_link_enter(link);
    if (call && rc == LEAT_OK) call_sent(link, call); /* else it ends when the connection does */
    if (answer) answer->on_sent(answer, rc);
    if (close_after && link->net) link->links->env->net->close(link->net);
    (void)leat_link_leave(link); /* nothing follows */
}

bool leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags, uint32_t number,
                          const void *control, uint32_t control_bytes, struct leat_link_call *call,
                          struct leat_link_answer *answer, bool close_after)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    const struct leat_iov *payload = call ? call->payload : answer ? answer->payload : NULL;
    unsigned payload_count = call ? call->payload_count : answer ? answer->payload_count : 0;
    LEAT_ASSERT_CMP(payload_count, <=, (unsigned)LEAT_LINK_PAYLOADS_MAX);
    struct leat_link_slot *slot = leat_link_slot_take(link->links, control_bytes);
    if (!slot) return false;
    uint8_t *head = slot->big ? slot->big : slot->bytes;
    size_t payload_bytes = 0;
    if (control_bytes) memcpy(head + LEAT_FRAME_HEADER_BYTES, control, control_bytes);
    for (unsigned i = 0; i < payload_count; i++) {
        slot->iovs[1 + i] = payload[i];
        payload_bytes += payload[i].bytes;
    }
    LEAT_ASSERT_CMP(payload_bytes + LEAT_TAG_BYTES, <=, (size_t)LEAT_FRAME_BYTES_MAX);
    payload_bytes += LEAT_TAG_BYTES;
    leat_frame_encode(head, (enum leat_kind)kind, LEAT_NODE_VERSION_MAX, flags, number,
                      control_bytes, (uint32_t)payload_bytes);
    slot->iovs[0] = (struct leat_iov){head, (size_t)LEAT_FRAME_HEADER_BYTES + control_bytes};
    /* Frames leave in the order of these calls, so here is where they get their numbers. */
    leat_mac_tag(link->mac_out, slot->iovs, 1 + payload_count, slot->tag);
    slot->iovs[1 + payload_count] = (struct leat_iov){slot->tag, LEAT_TAG_BYTES};
    slot->link = link;
    slot->call = call;
    slot->answer = answer;
    slot->close_after = close_after;
    slot->bytes_in_all = slot->iovs[0].bytes + payload_bytes;
    slot->send = (struct leat_send){
        .iovs = slot->iovs, .iov_count = 2 + payload_count, .on_sent = slot_on_sent, .owner = slot};
    link->queued_bytes += slot->bytes_in_all;
    link->slots_out++;
    link->links->env->net->send(link->net, &slot->send);
    return true;
}

/* ---- calls ---- */

static leat_err room_check(const struct leat_link *link, uint32_t control_bytes,
                           const struct leat_iov *payload, unsigned payload_count)
{
    if (link->state != LINK_UP || link->gone) return LEAT_E_CLOSED;
    uint64_t bytes = (uint64_t)LEAT_FRAME_HEADER_BYTES + control_bytes + LEAT_TAG_BYTES;
    for (unsigned i = 0; i < payload_count; i++)
        bytes += payload[i].bytes;
    if (control_bytes > LEAT_CONTROL_BYTES_MAX || bytes > LEAT_FRAME_BYTES_MAX ||
        payload_count > LEAT_LINK_PAYLOADS_MAX)
        return LEAT_E_TOO_LARGE;
    if (link->queued_bytes + bytes > link->links->queued_bytes_max) return LEAT_E_AGAIN;
    return LEAT_OK;
}

leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    LEAT_ASSERT_CMP(call->kind, >, (uint16_t)LEAT_NODE_KIND_PING);
    leat_err rc = room_check(link, call->control_bytes, call->payload, call->payload_count);
    if (rc == LEAT_OK && link->call_count == LEAT_LINK_CALLS_MAX) rc = LEAT_E_AGAIN;
    if (rc != LEAT_OK) return rc;
    if (++link->next_number == 0) link->next_number = 1;
    call->number = call->one_way ? 0 : link->next_number;
    call->link = link;
    call->sent = call->early = call->excused = false;
    if (!leat_link_frame_send(link, call->kind, 0, call->number, call->control, call->control_bytes,
                              call, NULL, false))
        return LEAT_E_NO_MEMORY;
    call->deadline_us = UINT64_MAX;
    if (call->timeout_us != 0) {
        call->deadline_us = leat_links_now(link->links) + call->timeout_us;
        leat_links_due(link->links, call->deadline_us);
    }
    leat_list_push_back(&link->calls, &call->list);
    link->call_count++;
    return LEAT_OK;
}

leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control,
                        uint32_t control_bytes)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    leat_err rc = room_check(link, control_bytes, NULL, 0);
    if (rc != LEAT_OK) return rc;
    if (!leat_link_frame_send(link, kind, 0, 0, control, control_bytes, NULL, NULL, false))
        return LEAT_E_NO_MEMORY;
    return LEAT_OK;
}

void leat_link_answered(struct leat_link *link, struct leat_link_call *call,
                        const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = LEAT_OK;
    if (frame->flags & LEAT_FRAME_ERROR) {
        struct leat_msg_error refused = {.code = LEAT_E_INVALID, .text = {"", 0}};
        rc = leat_msg_error_decode(frame->control, frame->control_bytes, &refused);
        if (rc == LEAT_OK) rc = refused.code ? refused.code : LEAT_E_INVALID;
        (void)leat_error_set(&error, rc, "%.*s",
                             (int)(refused.text.bytes > 255 ? 255 : refused.text.bytes),
                             refused.text.text); /* the code is the argument */
    } else if (frame->kind != call->kind) {
        rc = leat_error_set(&error, LEAT_E_INVALID, "the peer answered with another kind");
    }
    call_done(link, call, rc, rc ? NULL : frame, &error);
}

void leat_link_calls_excuse(struct leat_link *link, uint64_t until_us)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    LEAT_LIST_EACH(&link->calls, at)
    {
        struct leat_link_call *call = LEAT_CONTAINER(at, struct leat_link_call, list);
        if (call->excused || call->deadline_us >= until_us) continue;
        call->excused = true;
        call->deadline_us = until_us;
    }
}

void leat_link_calls_expire(struct leat_link *link, uint64_t now_us, uint64_t *next_us)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_error error;
    struct leat_list expired;
    leat_list_init(&expired);
    LEAT_LIST_EACH(&link->calls, at)
    {
        struct leat_link_call *call = LEAT_CONTAINER(at, struct leat_link_call, list);
        if (call->deadline_us > now_us) {
            if (call->deadline_us < *next_us) *next_us = call->deadline_us;
        } else if (!call->sent) {
            leat_link_cut(link, LEAT_E_TIMEOUT, "the peer takes no bytes within a call's time");
            break; /* the other calls end with the connection; not the calls that are aside already */
        } else {
            /* Aside first: a callback may do anything with the other calls. */
            leat_list_remove(at);
            leat_list_push_back(&expired, at);
        }
    }
    while (!leat_list_empty(&expired)) {
        struct leat_link_call *call = LEAT_CONTAINER(expired.next, struct leat_link_call, list);
        leat_err rc = leat_error_set(&error, LEAT_E_TIMEOUT,
                                     "no answer within the time allowed; "
                                     "whether it took effect is unknown");
        call_done(link, call, rc, NULL, &error);
    }
}

void leat_link_calls_fail(struct leat_link *link, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    uint64_t now_us = leat_links_now(link->links);
    while (!leat_list_empty(&link->calls)) {
        struct leat_link_call *call = LEAT_CONTAINER(link->calls.next, struct leat_link_call, list);
        struct leat_error error;
        leat_err own = call->deadline_us <= now_us && rc == LEAT_E_CLOSED ? LEAT_E_TIMEOUT : rc;
        (void)leat_error_set(&error, own, "%s", why); /* the code is the argument */
        call_done(link, call, own, NULL, &error);
    }
    LEAT_ASSERT(link->call_count == 0);
}

/* ---- answers ---- */

struct leat_link *leat_link_of(struct leat_links *links, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(links->actor);
    if (ticket->slot >= links->table_capacity) return NULL;
    struct leat_link *link = links->table[ticket->slot];
    if (!link || link->gone || link->state != LINK_UP) return NULL;
    return link->connection == ticket->connection ? link : NULL;
}

static leat_err answer_send(struct leat_links *links, const struct leat_link_ticket *ticket,
                            uint8_t flags, const void *control, uint32_t control_bytes,
                            struct leat_link_answer *answer)
{
    struct leat_link *link = leat_link_of(links, ticket);
    if (!link || ticket->request == 0) return LEAT_E_CLOSED;
    LEAT_ASSERT(link->request_count > 0);
    link->request_count--;
    if (leat_link_frame_send(link, ticket->kind, LEAT_FRAME_ANSWER | flags, ticket->request,
                             control, control_bytes, NULL, answer, false))
        return LEAT_OK;
    leat_link_cut(link, LEAT_E_NO_MEMORY, "no memory for an answer");
    return LEAT_E_CLOSED;
}

void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t control_bytes)
{
    LEAT_ASSERT_OWNER(links->actor);
    if (answer_send(links, ticket, 0, control, control_bytes, NULL) != LEAT_OK)
        LEAT_MAYBE(true); /* nobody is left who could take it */
}

leat_err leat_link_answer_send(struct leat_links *links, const struct leat_link_ticket *ticket,
                               struct leat_link_answer *answer)
{
    LEAT_ASSERT_OWNER(links->actor);
    return answer_send(links, ticket, 0, answer->control, answer->control_bytes, answer);
}

void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text)
{
    LEAT_ASSERT_OWNER(links->actor);
    uint8_t bytes[LEAT_ERROR_TEXT_BYTES + 64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    size_t text_bytes = strlen(text);
    char shortened[LEAT_ERROR_TEXT_BYTES];
    if (text_bytes >= sizeof shortened) text_bytes = sizeof shortened - 1;
    memcpy(shortened, text, text_bytes);
    shortened[text_bytes] = 0;
    leat_msg_error_encode(&writer, rc, shortened);
    LEAT_ASSERT(!writer.overflow);
    if (answer_send(links, ticket, LEAT_FRAME_ERROR, bytes, writer.used, NULL) != LEAT_OK)
        LEAT_MAYBE(true); /* nobody is left who could take it */
}
