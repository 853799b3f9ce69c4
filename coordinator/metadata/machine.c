/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine's entries: each is checked against the tables when it is applied, not when it
 * was proposed. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>

static leat_machine_apply_fn *const applies[] = {
    [LEAT_COMMAND_FORM] = leat_machine_apply_form,
    [LEAT_COMMAND_STREAM_CREATE] = leat_machine_apply_stream_create,
    [LEAT_COMMAND_STREAM_DELETE] = leat_machine_apply_stream_delete,
    [LEAT_COMMAND_PRODUCER_IDS] = leat_machine_apply_producer_ids,
    [LEAT_COMMAND_OPENED] = leat_machine_apply_opened,
    [LEAT_COMMAND_NODE_UP] = leat_machine_apply_node_up,
    [LEAT_COMMAND_ADOPT] = leat_machine_apply_adopt,
    [LEAT_COMMAND_ACCEPT_LOSS] = leat_machine_apply_accept_loss,
    [LEAT_COMMAND_BARRIER] = leat_machine_apply_barrier,
    [LEAT_COMMAND_REQUEST] = leat_machine_apply_request,
    [LEAT_COMMAND_VERSION_RAISE] = leat_machine_apply_version,
    [LEAT_COMMAND_MOVE] = leat_machine_apply_move,
    [LEAT_COMMAND_NODE_DRAIN] = leat_machine_apply_node_drain,
    [LEAT_COMMAND_NODE_STATE] = leat_machine_apply_node_state,
    [LEAT_COMMAND_CRASH] = leat_machine_apply_crash,
    [LEAT_COMMAND_STREAM_CHANGE] = leat_machine_apply_stream_change,
    [LEAT_COMMAND_RECOVER] = leat_machine_apply_recover,
    [LEAT_COMMAND_ASSIGN] = leat_machine_apply_assign,
};

/* A cluster is formed by the first entry of all, before any request. */
static bool kind_wraps(uint32_t kind)
{
    return kind != LEAT_COMMAND_REQUEST && kind != LEAT_COMMAND_FORM;
}

static leat_err command_apply(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                              bool wrapped, struct leat_machine_result *result)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    struct leat_msg_reader ahead = reader;
    struct leat_entry_head head;
    (void)leat_entry_head_read(&ahead, &head);
    if (ahead.failed) return leat_machine_malformed(result);
    if (head.version != LEAT_COMMAND_VERSION)
        return result->rc = leat_error_set(&result->error, LEAT_E_CORRUPT,
                                           "a committed coordinator entry has version %" PRIu32
                                           "; this program knows %d: it is older than its data",
                                           head.version, LEAT_COMMAND_VERSION);
    /* No version of the program puts these into a REQUEST: bytes of a node that lies. */
    if (wrapped && !kind_wraps(head.kind)) return leat_machine_malformed(result);
    if (head.kind >= sizeof applies / sizeof *applies || !applies[head.kind])
        return result->rc = leat_error_set(&result->error, LEAT_E_CORRUPT,
                                           "a committed coordinator entry is of kind %" PRIu32
                                           ", which this program does not know",
                                           head.kind);
    return applies[head.kind](machine, &reader, result);
}

static bool kind_known(struct leat_msg_reader reader, uint32_t *out_kind)
{
    struct leat_entry_head head;
    (void)leat_entry_head_read(&reader, &head);
    *out_kind = head.kind;
    return !reader.failed && head.version == LEAT_COMMAND_VERSION &&
           head.kind < sizeof applies / sizeof *applies && applies[head.kind];
}

bool leat_machine_command_known(const uint8_t *bytes, size_t count)
{
    struct leat_msg_reader inner;
    struct leat_entry_request request;
    uint32_t kind;
    if (leat_entry_request_decode(bytes, count, &request) != LEAT_OK || request.session == 0 ||
        request.sequence == 0)
        return false;
    leat_msg_reader_init(&inner, request.command.data, request.command.bytes);
    return kind_known(inner, &kind) && kind_wraps(kind);
}

leat_err leat_machine_apply_plain(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                                  struct leat_machine_result *result)
{
    return command_apply(machine, bytes, count, true, result);
}

leat_err leat_machine_apply(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                            struct leat_machine_result *out_result)
{
    *out_result = (struct leat_machine_result){.rc = LEAT_OK};
    leat_err rc = command_apply(machine, bytes, count, false, out_result);
    return out_result->malformed ? LEAT_OK : rc;
}
