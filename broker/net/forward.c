/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and questions to another node: what only the owner of a log can answer. See members.h. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "broker/net/members.h"

struct forward {
    struct leat_link_call link_call;
    struct leat_call *call;
    uint8_t control[];
};

static void forward_on_done(struct leat_link_call *link_call, leat_err rc,
                            const struct leat_frame *answer, const struct leat_error *error)
{
    struct forward *forward = link_call->owner;
    struct leat_call *call = forward->call;
    leat_mem_free(forward);
    if (rc != LEAT_OK) {
        /* The owner's own refusal keeps its code; a lost link says that the outcome is unknown. */
        leat_call_refuse(call, rc == LEAT_E_CLOSED || rc == LEAT_E_CANCELLED ? LEAT_E_TIMEOUT : rc,
                         error != NULL ? error->text : NULL);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(call->core, &writer);
    if (answer->control_bytes > writer.capacity) {
        leat_call_refuse(call, LEAT_E_TOO_LARGE, "the owner's answer does not fit one frame");
        return;
    }
    memcpy(writer.bytes, answer->control, answer->control_bytes);
    writer.used = answer->control_bytes;
    leat_call_answer(call, &writer);
}

void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes)
{
    LEAT_ASSERT_OWNER(call->core);
    struct leat_core *core = call->core;
    const struct leat_member *member = leat_member_find(core, owner);
    char words[LEAT_ERROR_TEXT_BYTES];
    struct leat_error error;
    leat_member_words(core, owner, words, sizeof words);
    if (call->by_link || member == NULL || member->serve == NULL) {
        /* Handed on once and not here: its tables were older than ours, or ours are. */
        if (call->by_link || member != NULL)
            leat_error_set(&error, LEAT_E_NOT_OWNER, "this is for %.150s to answer: try again",
                           words);
        else
            leat_error_set(&error, LEAT_E_NOT_OWNER,
                           "nobody serves it now: it was with %.120s, and who goes on with it is "
                           "being found out. leat "
                           "cluster status tells what is waited for",
                           words);
        leat_call_refuse(call, LEAT_E_AGAIN, error.text);
        return;
    }
    struct forward *forward = leat_call_memory(call, 1, sizeof *forward + control_bytes);
    if (forward == NULL) {
        leat_call_refuse(call, LEAT_E_AGAIN, NULL);
        return;
    }
    memcpy(forward->control, control, control_bytes);
    forward->call = call;
    forward->link_call = (struct leat_link_call){
        .kind = (uint16_t)(LEAT_NODE_KIND_BROKER + call->kind),
        .control = forward->control,
        .control_bytes = control_bytes,
        .timeout_us = LEAT_FORWARD_US_MAX,
        .on_done = forward_on_done,
        .owner = forward,
    };
    leat_list_init(&forward->link_call.list);
    leat_err rc = leat_link_call(member->serve, &forward->link_call);
    if (rc == LEAT_OK) return;
    leat_mem_free(forward);
    leat_error_set(&error, LEAT_E_AGAIN, "%.150s can't be reached right now", words);
    leat_call_refuse(call, LEAT_E_AGAIN, error.text);
}

static void ask_on_done(struct leat_link_call *link_call, leat_err rc,
                        const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_ask *ask = link_call->owner;
    const char *why = error != NULL && error->text[0] != '\0' ? error->text : leat_err_text(rc);
    ask->on_done(ask, rc, answer, why);
}

leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_member *member = leat_member_find(core, incarnation);
    char words[LEAT_ERROR_TEXT_BYTES];
    leat_member_words(core, incarnation, words, sizeof words);
    if (member == NULL || member->serve == NULL)
        return leat_error_set(error, LEAT_E_AGAIN, "%.180s can't be asked", words);
    ask->link_call = (struct leat_link_call){
        .kind = (uint16_t)(LEAT_NODE_KIND_BROKER + kind),
        .control = control,
        .control_bytes = control_bytes,
        .timeout_us = ask->timeout_us != 0 ? ask->timeout_us : LEAT_ASK_US_MAX,
        .on_done = ask_on_done,
        .owner = ask,
    };
    leat_list_init(&ask->link_call.list);
    if (leat_link_call(member->serve, &ask->link_call) == LEAT_OK) return LEAT_OK;
    return leat_error_set(error, LEAT_E_AGAIN, "%.180s can't be reached right now", words);
}
